"""Two taggings of the same tokens, read and seen to match: what all scores of tags begin with."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from softcount.errors import DataError, shown
from softcount.evaluate.clustering import is_unknown, numbered
from softcount.types import Array

Tags = Iterable[Any]
"""A list of tags for every sentence, or one flat list of tags."""


class Read(NamedTuple):
    """What there is for every token, by sentence; a flat list is one sentence.

    ``what`` is its name in messages.
    """

    sentences: list[list[Any]]
    nested: bool
    what: str


class Tokens(NamedTuple):
    """The tokens with a known gold tag, one after another.

    ``sentence`` is each one's sentence, or, of flat lists, its own number; ``place`` is its number
    among all tokens; ``source`` are the gold tags of all tokens.
    """

    found: list[Hashable]
    gold: list[Hashable]
    sentence: Array
    place: Array
    source: Read

    @property
    def left_out(self) -> int:
        """How many tokens have no known gold tag."""
        return sum(map(len, self.source.sentences)) - len(self.place)


def tokens_of(found: Tags, gold: Tags, *, gaps: bool = False) -> Tokens:
    """The tokens of two taggings, after a look at whether they are of the same sentences.

    ``gaps``  whether found tags may be None for a whole sentence: then each of its tokens has None
    """
    theirs = read_tokens(gold, "gold tags")
    ours = read_tokens(_without_gaps(found, theirs) if gaps else found, "found tags")
    demand_alike(ours, theirs)
    our_tags, their_tags = (list(chain.from_iterable(side.sentences)) for side in (ours, theirs))
    if not their_tags:
        raise DataError("there are no tokens to compare", "give one found and one gold tag each")
    numbered(our_tags, "found")  # refuses what can be no tag, wherever it stands
    _, names = numbered(their_tags, "gold")
    unknown = {name for name in names if name == "_" or is_unknown(name)}
    place = [i for i, tag in enumerate(their_tags) if tag not in unknown]
    if not place:
        raise DataError(
            f'the gold tag of all {len(their_tags)} tokens is unknown (−1, None or "_")',
            "at least one token must have a known gold tag",
        )
    lengths = [len(tags) for tags in theirs.sentences]
    where = np.repeat(np.arange(len(lengths)), lengths) if theirs.nested else np.arange(lengths[0])
    return Tokens(
        found=[our_tags[i] for i in place],
        gold=[their_tags[i] for i in place],
        sentence=where[place],
        place=np.array(place),
        source=theirs,
    )


def _without_gaps(found: Any, gold: Read) -> Any:
    """Found tags with a list of None in place of None, as long as the gold tags."""
    if not gold.nested or not isinstance(found, Iterable) or getattr(found, "ndim", 1) != 1:
        return found
    gaps = [[None] * len(tags) for tags in gold.sentences]
    each = enumerate(listed(found))
    return [gaps[n] if tags is None and n < len(gaps) else tags for n, tags in each]


def read_tokens(data: Any, what: str) -> Read:
    """A list for every sentence, or a flat list of tags or words."""
    if getattr(data, "ndim", 1) != 1:
        raise DataError(
            f"the {what} are an array of shape {np.shape(data)}",
            "give a list of them for every sentence; of posteriors, take argmax(axis=1)",
        )
    if not isinstance(data, Iterable):
        raise DataError(f"the {what} are {shown(data)}", "give a list of them for every sentence")
    items = listed(data)
    nested = [is_list(item) for item in items]
    if all(nested):
        return Read([listed(item) for item in items], True, what)
    if any(nested):
        number = nested.index(False)
        raise DataError(
            f"sentence {number} of the {what} is {shown(items[number])}, not a list",
            "give a list of them for every sentence, or one flat list for everything",
        )
    return Read([items], False, what)


def listed(data: Iterable[Any]) -> list[Any]:
    """As a list of what Python itself calls numbers and strings."""
    return data.tolist() if isinstance(data, np.ndarray) else list(data)


def is_list(item: Any) -> bool:
    """Whether it holds tags or words, and is none itself."""
    return isinstance(item, Iterable) and not isinstance(item, str | bytes)


def demand_alike(one: Read, other: Read) -> None:
    """The same number of sentences, and of tokens in each; otherwise say where not."""
    hint = f"give as many {one.what} as {other.what}, in the same order"
    if one.nested != other.nested:
        flat, lists = (other, one) if one.nested else (one, other)
        raise DataError(
            f"the {flat.what} are one flat list, the {lists.what} a list for every sentence",
            "give both in the same form",
        )
    if len(one.sentences) != len(other.sentences):
        raise DataError(
            f"{len(one.sentences)} sentences of {one.what} for {len(other.sentences)} "
            f"of {other.what}",
            "give the same sentences in the same order; an empty one is an empty list",
        )
    for number, (a, b) in enumerate(zip(one.sentences, other.sentences, strict=True)):
        if len(a) != len(b):
            lengths = f"{len(a)} {one.what} and {len(b)} {other.what}"
            where = f"sentence {number} has" if one.nested else "there are"
            raise DataError(f"{where} {lengths}", hint)
