"""Sentences and their translations: read from files and from Python data, as numbers of words.

A sentence is cut where ``str.split`` would cut it: at any white space, the no-break space (U+00A0)
and the ideographic space (U+3000) among them. Lines end at \\n only; \\r\\n does no harm. In
``source ||| target`` the bars are a word of their own. An empty side is kept as it is, so that what
is written one line per pair matches what was read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import IntArray
from softcount.text.lines import MARK, Name, encode_texts, read_pieces
from softcount.text.sequences import Side
from softcount.text.vocabulary import (
    LineTokeniser,
    NumberedLines,
    SideBuilder,
    Vocabulary,
    add_lines,
    add_sentences,
    split_sides,
)

BARS = "|||"
FORMS = 'give (source, target) tuples of texts or lists of words, or texts "source ||| target"'

Like = tuple[Vocabulary | Sequence[str], Vocabulary | Sequence[str]]
"""Source and target words that have their numbers already."""


@dataclass(frozen=True, eq=False)
class Bitext:
    """Pairs of sentences, the second of which is a translation of the first.

    ``origin``   the file that the pairs were read from, if there is one
    ``numbers``  the number that each pair had there; None: they are all here

    >>> pairs = as_bitext(["the house ||| das haus", "a house ||| ein haus"])
    >>> len(pairs), pairs.n_links, pairs.source.words, pairs.target.tokens.tolist()
    (2, 8, ['the', 'house', 'a'], [0, 1, 2, 1])
    >>> pairs.pair(1), pairs.name(1)
    ((['a', 'house'], ['ein', 'haus']), 'pair 1')
    """

    source: Side
    target: Side
    origin: str = ""
    numbers: IntArray | None = None  # (pairs,)

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise DataError(
                f"there are {len(self.source)} source and {len(self.target)} target sentences",
                "give as many of one as of the other; an untranslated one gets an empty one",
            )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def n_links(self) -> int:
        """Σ_n l_n·m_n: how many links there can be, the empty word left out."""
        return int(self.source.lengths @ self.target.lengths)

    def flipped(self) -> Bitext:
        """Source and target exchanged."""
        return replace(self, source=self.target, target=self.source)

    def pair(self, n: int) -> tuple[list[str], list[str]]:
        """The words of a pair."""
        return self.source.sentence(n), self.target.sentence(n)

    def name(self, n: int) -> str:
        """What messages call a pair: "pair 17", or "corpus.fr-en:18" if it was read from there."""
        return _called(self.origin, n if self.numbers is None else int(self.numbers[n]))

    def select(self, numbers: Any) -> Bitext:
        """These pairs, in this order; vocabularies and names stay as they are.

        >>> as_bitext([("a", "b"), ("c", "d")]).select([1]).name(0)
        'pair 1'
        """
        chosen = np.arange(len(self))[numbers]
        kept = chosen if self.numbers is None else self.numbers[chosen]
        return Bitext(self.source.select(chosen), self.target.select(chosen), self.origin, kept)


def _called(origin: str, number: int) -> str:
    return f"{origin}:{number + 1}" if origin else f"pair {number}"


def _names(origin: str, before: int) -> Name:
    """What the lines of a piece are called; ``before``: how many lines came before it."""
    return lambda line: _called(origin, before + line)


# Python data
def as_bitext(
    data: Any, targets: Any = None, *, lowercase: bool = False, like: Like | None = None
) -> Bitext:
    """Pairs of sentences as Python has them.

    ``data``       texts "source ||| target"; or (source, target) tuples of texts, which are cut at
                   white space, or of lists of words, which are not; or a Bitext
    ``targets``    if it is given, ``data`` are the source sentences alone, and these the others
    ``lowercase``  words in lower case
    ``like``       source and target words that have numbers: they keep them, and words that are
                   not among them get the numbers that follow

    >>> old = as_bitext([("the house", "das haus")])
    >>> new = as_bitext(["The old house"], ["Das alte Haus"], lowercase=True,
    ...              like=(old.source.words, old.target.words))
    >>> new.source.tokens.tolist(), new.source.words
    ([0, 2, 1], ['the', 'house', 'old'])
    """
    sides = _Sides(lowercase, like)
    if isinstance(data, Bitext) and targets is None:
        if like is None and not lowercase:
            return data
        for old, new in ((data.source, sides.source), (data.target, sides.target)):
            new.add(NumberedLines(old.tokens, old.indptr[1:], old.words))
        return replace(sides.bitext(data.origin), numbers=data.numbers)
    items = _list_items(data)
    if targets is not None:
        others = _list_items(targets)
    elif all(isinstance(item, str) for item in items):
        sides.read_joint(encode_texts(items), "")
        return sides.bitext("")
    else:
        for n, item in enumerate(items):
            if not isinstance(item, list | tuple) or len(item) != 2:
                raise DataError(f"pair {n} is {brief(item)}", FORMS)
        items, others = [item[0] for item in items], [item[1] for item in items]
    for sentences, side in ((items, sides.source), (others, sides.target)):
        add_sentences(sentences, side, _names("", 0))
    return sides.bitext("")


def _list_items(data: Any) -> list[Any]:
    if isinstance(data, str | bytes):
        raise DataError(
            f"the data are one text: {brief(data)}",
            "give a list of pairs; for the name of a file, there is read_bitext",
        )
    if not isinstance(data, Iterable):
        raise DataError(f"the data are {brief(data)}", FORMS)
    return list(data)


class _Sides:
    """Both sides of a bitext while it is read."""

    def __init__(self, lowercase: bool, like: Like | None) -> None:
        known = [Vocabulary.of(words) for words in like or ((), ())]
        self.source, self.target = (SideBuilder(words, lowercase) for words in known)

    def read_joint(self, some: Iterable[bytes], origin: str, before: int = 0) -> None:
        """Add lines "source ||| target"; ``before``: how many were read already."""
        cutter = LineTokeniser()
        bars = cutter.cut(BARS.encode(), str).tokens[0]
        for piece in some:
            name = _names(origin, before + len(self.source))
            lines = cutter.cut(piece, name)
            left, right = np.empty_like(lines.tokens), np.empty_like(lines.tokens)
            left_ends, right_ends = np.empty_like(lines.ends), np.empty_like(lines.ends)
            bad, times = split_sides(
                lines.tokens, lines.ends, bars, left, left_ends, right, right_ends
            )
            if bad >= 0:
                fault = f"{BARS} {times} times" if times else f"no {BARS}"
                raise DataError(
                    f"{name(bad)} has {fault}", f"write source {BARS} target, with spaces around"
                )
            self.source.add(NumberedLines(left[: left_ends[-1]], left_ends, lines.words))
            self.target.add(NumberedLines(right[: right_ends[-1]], right_ends, lines.words))

    def bitext(self, origin: str) -> Bitext:
        source, target = (
            Side(side.words, side.tokens, side.indptr) for side in (self.source, self.target)
        )
        pairs = Bitext(source, target, origin)
        if not len(pairs):
            raise DataError(f"no pairs in {origin or 'the data'}", "give one at least")
        return pairs


# files
def read_bitext(
    path: str | os.PathLike[str],
    target_path: str | os.PathLike[str] | None = None,
    *,
    lowercase: bool = False,
    like: Like | None = None,
) -> Bitext:
    """Pairs of sentences from a file of lines "source ||| target", or from two files.

    UTF-8, packed by gzip or not. ``lowercase`` and ``like`` are those of `as_bitext`. Files are
    read a piece at a time: what stays in memory is four bytes per word and the vocabularies.
    """
    sides = _Sides(lowercase, like)
    origin = os.fspath(path)
    if target_path is None:
        sides.read_joint(read_pieces(origin), origin)
        return sides.bitext(origin)
    other = os.fspath(target_path)
    add_lines(read_pieces(origin), sides.source, _names(origin, 0))
    add_lines(read_pieces(other), sides.target, _names(other, 0))
    if len(sides.source) != len(sides.target):
        raise DataError(
            f"{origin} has {len(sides.source)} lines and {other} has {len(sides.target)}",
            "line n of one file must be the translation of line n of the other",
        )
    return sides.bitext(origin)


# streams
def stream_pairs(
    lines: Iterable[str | bytes],
    n: int,
    *,
    lowercase: bool = False,
    like: Like | None = None,
    origin: str = "",
    before: int = 0,
) -> Iterator[Bitext]:
    """Bitexts of n pairs each, and a last one of what is left, from lines "source ||| target".

    Each one is there as soon as its lines are. Lines of bytes are UTF-8. ``like`` is that of
    `as_bitext`: each bitext has new words of its own after these. ``origin`` is where the lines
    come from, as messages are to call it, and ``before`` how many came from there already.

    >>> [len(some) for some in stream_pairs(["a ||| b", "c ||| d", "e ||| f"], 2)]
    [2, 1]
    """
    if n < 1:
        raise DataError(f"there cannot be {n} pairs at a time", "give n of 1 or more")
    known = None if like is None else (Vocabulary.of(like[0]), Vocabulary.of(like[1]))
    left = iter(lines)
    while block := [_as_bytes(line) for line in islice(left, n)]:
        if not before:
            block[0] = block[0].removeprefix(MARK)
        sides = _Sides(lowercase, known)
        sides.read_joint([b"\n".join(block) + b"\n"], origin, before)
        numbers = np.arange(before, before + len(block))
        yield replace(sides.bitext(origin), numbers=numbers)
        before += len(block)


def _as_bytes(line: str | bytes) -> bytes:
    """A line in UTF-8, with no line's end in it."""
    raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
    return raw.removesuffix(b"\n").replace(b"\n", b" ")
