"""Evaluation of taggers: accuracy, agreement of induced states with gold tags, confusion matrices.

Tags are strings or numbers: a list for every sentence, or one flat list for the whole text.
Tokens whose gold tag is unknown (−1, None, or "_" as in CoNLL-U) are excluded from all scores.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size

from softcount.core.errors import DataError, brief
from softcount.core.types import Array
from softcount.metrics.clustering import (
    agreement,
    is_unknown,
    many_to_one,
    many_to_one_map,
    matching,
    numbered,
)
from softcount.report.text import clean

Tags = Iterable[Any]
"""A list of tags for every sentence, or one flat list of tags."""


class TagLists(NamedTuple):
    """Tags or words of every token, by sentence; a flat list is one sentence.

    ``nested``  whether there was a list for every sentence
    ``what``    the name of the data in messages
    """

    sentences: list[list[Any]]
    nested: bool
    what: str


class ComparedTokens(NamedTuple):
    """The tokens with a known gold tag, concatenated.

    ``sentence``  the sentence of each token or, for flat lists, its own index
    ``place``     the index of each token among all tokens
    ``source``    the gold tags of all tokens
    """

    found: list[Hashable]
    gold: list[Hashable]
    sentence: Array
    place: Array
    source: TagLists

    @property
    def left_out(self) -> int:
        """Number of tokens without a known gold tag."""
        return sum(map(len, self.source.sentences)) - len(self.place)


def compare_tokens(found: Tags, gold: Tags, *, gaps: bool = False) -> ComparedTokens:
    """Pair two taggings of the same sentences, token by token.

    ``gaps``  whether found tags may be None for a whole sentence: then each of its tokens has None
    """
    theirs = read_tokens(gold, "gold tags")
    if gaps and theirs.nested and isinstance(found, Iterable) and getattr(found, "ndim", 1) == 1:
        blank = [[None] * len(tags) for tags in theirs.sentences]
        each = enumerate(as_list(found))
        found = [blank[n] if tags is None and n < len(blank) else tags for n, tags in each]
    ours = read_tokens(found, "found tags")
    check_alike(ours, theirs)
    our_tags, their_tags = (list(chain.from_iterable(side.sentences)) for side in (ours, theirs))
    if not their_tags:
        raise DataError("there are no tokens to compare", "give one found and one gold tag each")
    numbered(our_tags, "found")  # raises if any item cannot be a tag
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
    return ComparedTokens(
        found=[our_tags[i] for i in place],
        gold=[their_tags[i] for i in place],
        sentence=where[place],
        place=np.array(place),
        source=theirs,
    )


def read_tokens(data: Any, what: str) -> TagLists:
    """Read tags or words: a list for every sentence, or one flat list."""
    if getattr(data, "ndim", 1) != 1:
        raise DataError(
            f"the {what} are an array of shape {np.shape(data)}",
            "give a list of them for every sentence; of posteriors, take argmax(axis=1)",
        )
    if not isinstance(data, Iterable):
        raise DataError(f"the {what} are {brief(data)}", "give a list of them for every sentence")
    items = as_list(data)
    nested = [is_list(item) for item in items]
    if all(nested):
        return TagLists([as_list(item) for item in items], True, what)
    if any(nested):
        number = nested.index(False)
        raise DataError(
            f"sentence {number} of the {what} is {brief(items[number])}, not a list",
            "give a list of them for every sentence, or one flat list for everything",
        )
    return TagLists([items], False, what)


def as_list(data: Iterable[Any]) -> list[Any]:
    """Convert to a list of built-in numbers and strings."""
    return data.tolist() if isinstance(data, np.ndarray) else list(data)


def is_list(item: Any) -> bool:
    """Return whether an item is a list of tags or words, rather than a single one."""
    return isinstance(item, Iterable) and not isinstance(item, str | bytes)


def check_alike(one: TagLists, other: TagLists) -> None:
    """Raise unless both have the same numbers of sentences and of tokens."""
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


LONGEST_TAG = 16
REST, NONE = "(rest)", "(none)"
CORNER = "gold \\ found"


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion matrix of gold and predicted tags; ``print`` shows the most frequent.

    ``gold``    the gold tags, most frequent first: the rows
    ``found``   the predicted tags: those that are gold tags too, in the same order, then the others
    ``counts``  numbers of tokens, (gold, found)
    """

    gold: list[Any]
    found: list[Any]
    counts: Array

    def most_confused(self, n: int = 10) -> list[tuple[Any, Any, int]]:
        """Return the n most frequent mistakes, as (gold tag, found tag, tokens).

        >>> confusion(["N", "N", "V", "N"], ["N", "V", "N", "V"]).most_confused()
        [('V', 'N', 2), ('N', 'V', 1)]
        """
        _check_positive(n)
        differ = np.array([[g != f for f in self.found] for g in self.gold])
        rows, columns = np.nonzero(self.counts * differ)
        order = np.argsort(-self.counts[rows, columns], kind="stable")[:n]
        return [
            (self.gold[r], self.found[c], int(self.counts[r, c]))
            for r, c in zip(rows[order], columns[order], strict=True)
        ]

    def table(self, n: int = 10) -> str:
        """Format the n most frequent tags of either side; all others are summed as the rest."""
        _check_positive(n)
        counts, heads = self.counts, []
        for names in (self.gold, self.found):  # rows, and after a transposition columns
            totals = counts.sum(axis=1)
            kept = np.sort(np.argsort(-totals, kind="stable")[:n])  # in their own order
            called = [NONE if names[i] is None else names[i] for i in kept]
            cut = [" ".join(clean(name).split()) for name in called]
            for i, head in enumerate(cut):
                if cell_len(head) > LONGEST_TAG:
                    cut[i] = set_cell_size(head, LONGEST_TAG - 1) + "…"
            rest = counts.sum(axis=0) - counts[kept].sum(axis=0)
            truncated = len(kept) < len(counts)
            counts = np.vstack([counts[kept], rest] if truncated else [counts[kept]]).T
            heads.append([*cut, REST] if truncated else cut)
        rows, columns = heads
        body = [[str(count) if count else "·" for count in row] for row in counts.tolist()]
        edge = max(map(cell_len, [CORNER, *rows]))
        widths = [max(map(cell_len, column)) for column in zip(columns, *body, strict=True)]
        return "\n".join(
            set_cell_size(head, edge)
            + "".join(
                "  " + " " * (width - cell_len(cell)) + cell
                for cell, width in zip(cells, widths, strict=True)
            )
            for head, cells in [(CORNER, columns), *zip(rows, body, strict=True)]
        )

    def __str__(self) -> str:
        return self.table()


def confusion(found: Tags, gold: Tags) -> Confusion:
    """Compute the confusion matrix, with a row for each gold tag.

    Found tags may be None for a sentence that a tagger could not tag: its tokens are in a column
    of their own, None.

    >>> print(confusion(["N", "N", "V", "D", "N"], ["N", "V", "V", "D", "N"]))
    gold \\ found  N  V  D
    N             2  ·  ·
    V             1  1  ·
    D             ·  ·  1
    """
    tokens = compare_tokens(found, gold, gaps=True)
    ours, our_names = numbered(tokens.found, "found")
    theirs, their_names = numbered(tokens.gold, "gold")
    shape = len(their_names), len(our_names)
    counts = np.bincount(theirs * shape[1] + ours, minlength=shape[0] * shape[1]).reshape(shape)
    rows = np.argsort(-counts.sum(axis=1), kind="stable")
    gold_names = [their_names[row] for row in rows]
    place = {name: at for at, name in enumerate(gold_names)}
    frequency = counts.sum(axis=0)
    columns = sorted(
        range(shape[1]), key=lambda c: (place.get(our_names[c], shape[0]), -frequency[c])
    )
    return Confusion(gold_names, [our_names[c] for c in columns], counts[rows][:, columns])


def _check_positive(n: int) -> None:
    if n < 1:
        raise DataError(f"n={n} is not positive", "give n of 1 or more")


Method = Literal["many-to-one", "one-to-one"]


@dataclass(frozen=True)
class TagScores:
    """Accuracy of tags; ``print`` shows it in one or two lines.

    ``tokens``             number of tokens with a known gold tag, the only ones scored
    ``left_out``           number of tokens whose gold tag is unknown
    ``accuracy``           proportion of the tokens tagged correctly
    ``sentences``          number of sentences with a known gold tag; 0 for flat lists
    ``sentence_accuracy``  proportion of these in which every tag is correct
    ``known``              number of tokens whose word is known
    ``known_accuracy``     proportion of these tagged correctly
    ``unknown``            number of tokens whose word is unknown
    ``unknown_accuracy``   proportion of these tagged correctly

    A proportion of zero items is None, and so are the last four if no known words were given.
    """

    tokens: int
    left_out: int
    accuracy: float
    sentences: int
    sentence_accuracy: float | None
    known: int | None
    known_accuracy: float | None
    unknown: int | None
    unknown_accuracy: float | None

    def __str__(self) -> str:
        line = f"accuracy {_format_percent(self.accuracy, self.tokens)} tokens"
        if self.sentences:
            exact = _format_percent(self.sentence_accuracy, self.sentences)
            line += f", all right in {exact} sentences"
        if self.left_out:
            line += f" (left out, their gold tag being unknown: {self.left_out})"
        if self.known is None or self.unknown is None:
            return line
        return (
            f"{line}\nknown words {_format_percent(self.known_accuracy, self.known)}"
            f", unknown words {_format_percent(self.unknown_accuracy, self.unknown)}"
        )


def tag_scores(
    found: Tags, gold: Tags, known_words: Iterable[Any] | None = None, words: Tags | None = None
) -> TagScores:
    """Compute the accuracy of predicted tags.

    ``known_words``  the words that the tagger knows: a set, a list, the keys of a dictionary, or
                     the training sentences
    ``words``        the tokens that were tagged, nested like the tags

    Found tags may be None for a sentence that a tagger could not tag: all its tags count as wrong.

    >>> found, gold = [["DET", "NOUN"], ["NOUN", "VERB"]], [["DET", "NOUN"], ["VERB", "_"]]
    >>> words = [["the", "dog"], ["bark", "!"]]
    >>> print(tag_scores(found, gold, known_words={"the", "dog"}, words=words))
    accuracy 66.7% of 3 tokens, all right in 50.0% of 2 sentences (left out, ...: 1)
    known words 100.0% of 2, unknown words 0.0% of 1
    """
    tokens = compare_tokens(found, gold, gaps=True)
    predicted = [tag for tag in tokens.found if tag is not None]
    kinds = [{isinstance(tag, str) for tag in tags} for tags in (predicted, tokens.gold)]
    if kinds in ([{True}, {False}], [{False}, {True}]):  # an accuracy of 0 would hide the mistake
        raise DataError(
            f"found tags such as {brief(predicted[0])} never equal gold tags such as "
            f"{brief(tokens.gold[0])}: one side has names, the other has not",
            "use induction_scores for states without names, or mapping to name them",
        )
    right = np.array([f == g for f, g in zip(tokens.found, tokens.gold, strict=True)], dtype=bool)
    wrong_in = np.bincount(tokens.sentence, ~right)[np.unique(tokens.sentence)]
    sentences = len(wrong_in) if tokens.source.nested else 0
    known = _find_known(tokens, known_words, words)
    return TagScores(
        tokens=len(right),
        left_out=tokens.left_out,
        accuracy=float(right.mean()),
        sentences=sentences,
        sentence_accuracy=float((wrong_in == 0).mean()) if sentences else None,
        known=None if known is None else int(known.sum()),
        known_accuracy=None if known is None else _mean(right[known]),
        unknown=None if known is None else int((~known).sum()),
        unknown_accuracy=None if known is None else _mean(right[~known]),
    )


@dataclass(frozen=True)
class InductionScores:
    """Agreement of induced states with gold tags; ``print`` shows a table.

    ``tokens``           number of tokens with a known gold tag, the only ones scored
    ``left_out``         number of tokens whose gold tag is unknown
    ``states``           number of different states of these tokens
    ``tags``             number of different gold tags
    ``many_to_one``      accuracy with each state mapped to its most frequent gold tag
    ``cross_validated``  the same by two-fold cross-validation: the mapping comes from every second
                         sentence (or token, for flat lists) and is scored on the others, both ways;
                         None if there is only one
    ``one_to_one``       accuracy under the best one-to-one matching
    ``homogeneity``      1 if every state holds tokens of one tag only
    ``completeness``     1 if every tag lies within one state
    ``v_measure``        their harmonic mean
    ``vi``               variation of information in bits: 0 is perfect, smaller is better
    ``nvi``              the same in units of the entropy of the gold tags
    """

    tokens: int
    left_out: int
    states: int
    tags: int
    many_to_one: float
    cross_validated: float | None
    one_to_one: float
    homogeneity: float
    completeness: float
    v_measure: float
    vi: float
    nvi: float

    def __str__(self) -> str:
        rows = {
            "many-to-one": self.many_to_one,
            "  cross-validated": self.cross_validated,
            "one-to-one": self.one_to_one,
            "homogeneity": self.homogeneity,
            "completeness": self.completeness,
            "V-measure": self.v_measure,
            "VI (bits)": self.vi,
            "NVI": self.nvi,
        }
        head = f"{self.tokens} tokens, {self.states} states, {self.tags} tags"
        if self.left_out:
            head += f" (left out, their gold tag being unknown: {self.left_out})"
        known = [(name, figure) for name, figure in rows.items() if figure is not None]
        return "\n".join([head, *(f"  {name:<18}{figure:7.3f}" for name, figure in known)])


def induction_scores(found: Tags, gold: Tags) -> InductionScores:
    """Compute the agreement of induced states, which have no names, with gold tags.

    VI = H(gold | found) + H(found | gold), in bits (Meilă 2007), is a distance between partitions.
    NVI = VI / H(gold) (Reichart & Rappoport 2009), or H(found) if there is only one gold tag; a
    single state for all tokens has an NVI of 1, and too many states have more. The other scores are
    those of `agreement`. Every sentence must have states.

    >>> scores = induction_scores([[0, 1], [0, 1, 1]], [["D", "N"], ["D", "N", "V"]])
    >>> scores.many_to_one, scores.one_to_one, round(scores.vi, 3), round(scores.nvi, 3)
    (0.8, 0.8, 0.551, 0.362)
    """
    tokens = compare_tokens(found, gold)
    figures = agreement(tokens.found, tokens.gold)
    # VI = Σ p_rc log2(p_r p_c / p_rc²): every term is ≥ 0, and exactly 0 if row equals column
    counts = confusion(tokens.found, tokens.gold).counts
    n, rows, columns = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    r, c = np.nonzero(counts)
    shared = counts[r, c].astype(np.float64)
    vi = float(shared @ np.log2((rows[r] / shared) * (columns[c] / shared)) / n)
    gold_entropy = float(rows @ np.log2(n / rows) / n)
    # two-fold cross-validation of the many-to-one mapping; folds alternate by sentence
    cross_validated = None
    half = np.unique(tokens.sentence, return_inverse=True)[1] % 2
    if half.any():
        sides = [
            ([tokens.found[i] for i in at], [tokens.gold[i] for i in at])
            for at in (np.flatnonzero(half == 0), np.flatnonzero(half == 1))
        ]
        right = 0.0
        for (our_half, their_half), other in (sides[::-1], sides):
            right += many_to_one(our_half, their_half, many_to_one_map(*other)) * len(their_half)
        cross_validated = right / len(tokens.gold)
    return InductionScores(
        tokens=figures.n,
        left_out=tokens.left_out,
        states=figures.found_classes,
        tags=figures.gold_classes,
        many_to_one=figures.many_to_one,
        cross_validated=cross_validated,
        one_to_one=figures.one_to_one,
        homogeneity=figures.homogeneity,
        completeness=figures.completeness,
        v_measure=figures.v_measure,
        vi=vi,
        nvi=vi / gold_entropy if gold_entropy else vi,
    )


def mapping(found: Tags, gold: Tags, method: Method = "many-to-one") -> dict[Any, Any]:
    """Map each state to a gold tag, so that states can be renamed and scored as tags.

    "many-to-one" maps every state to its most frequent tag; "one-to-one" is the best matching, in
    which surplus states get no tag.

    >>> found, gold = [[0, 1, 2], [1, 1]], [["D", "N", "N"], ["N", "N"]]
    >>> mapping(found, gold)
    {0: 'D', 1: 'N', 2: 'N'}
    >>> mapping(found, gold, "one-to-one")
    {0: 'D', 1: 'N'}
    """
    methods = {"many-to-one": many_to_one_map, "one-to-one": matching}
    if method not in methods:
        raise DataError(f"there is no mapping {brief(method)}", f"choose from {', '.join(methods)}")
    tokens = compare_tokens(found, gold)
    return methods[method](tokens.found, tokens.gold)


def _find_known(tokens: ComparedTokens, known_words: Any, words: Any) -> Array | None:
    """Return whether the word of each compared token is known, (tokens,)."""
    if known_words is None and words is None:
        return None
    if known_words is None or words is None:
        missing = "words" if words is None else "known_words"
        raise DataError(f"{missing} is missing", "give both known_words and words, or neither")
    if isinstance(known_words, str) or not isinstance(known_words, Iterable):
        raise DataError(f"known_words is {brief(known_words)}", "give a set or a list of words")
    read = read_tokens(words, "words")
    check_alike(read, tokens.source)
    every = list(chain.from_iterable(read.sentences))
    parts = (as_list(item) if is_list(item) else [item] for item in known_words)
    known = list(chain.from_iterable(parts))  # accepts a list of words, or of sentences
    for word in known:
        if is_list(word):
            raise DataError(
                f"{brief(word)} in known_words is not a word", "give words only, without their tags"
            )
    known_set = set(known)
    return np.array([every[i] in known_set for i in tokens.place], dtype=bool)


def _mean(right: Array) -> float | None:
    return float(right.mean()) if len(right) else None


def _format_percent(figure: float | None, n: int) -> str:
    return "none" if figure is None else f"{100 * figure:.1f}% of {n}"
