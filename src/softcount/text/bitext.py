"""Parallel text: sentence pairs from files or Python data, with words as vocabulary indices.

Sentences are split like ``str.split``: at any white space, including the no-break space (U+00A0)
and the ideographic space (U+3000). Only \\n ends a line; \\r\\n is handled, too. In
``source ||| target`` the separator ||| must stand as a separate word. Pairs with an empty side are
kept, so that output with one line per pair corresponds to the input.

Pairs may be on disk: the word indices are then `DiskArray`s, and everything else is as usual.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import IntArray
from softcount.text.disk import (
    CorpusFolder,
    DiskArray,
    OnProgress,
    StoredColumn,
    new_corpus,
    read_in_blocks,
)
from softcount.text.lines import MARK, Name, encode_texts, read_pieces
from softcount.text.sequences import Side, renumber_side
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
"""Existing source and target vocabularies, whose indices are to be kept."""


@dataclass(frozen=True, eq=False)
class Bitext:
    """Sentence pairs: source sentences and their translations.

    ``origin``   the file that the pairs were read from, if any
    ``numbers``  the index of each pair in that file; None: 0, 1, …

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
                "give equally many; pair an untranslated sentence with an empty one",
            )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def n_links(self) -> int:
        """The number of possible links, Σ_n l_n·m_n, not counting the empty word."""
        return int(self.source.lengths @ self.target.lengths)

    def flipped(self) -> Bitext:
        """Return the pairs with source and target exchanged."""
        return replace(self, source=self.target, target=self.source)

    def pair(self, n: int) -> tuple[list[str], list[str]]:
        """Return the source words and the target words of a pair."""
        return self.source.sentence(n), self.target.sentence(n)

    def name(self, n: int) -> str:
        """Return the name of a pair for messages: "pair 17", or "corpus.fr-en:18" (line 18)."""
        number = n if self.numbers is None else int(self.numbers[n])
        if isinstance(self.source.tokens, DiskArray):
            return self.source.tokens.corpus.name_item(number, "pair")
        return _name_pair(self.origin, number)

    def select(self, numbers: Any) -> Bitext:
        """Return the pairs ``numbers``, in this order; vocabularies and pair names are unchanged.

        What is on disk is read.

        >>> as_bitext([("a", "b"), ("c", "d")]).select([1]).name(0)
        'pair 1'
        """
        chosen = np.arange(len(self))[numbers]
        original = chosen if self.numbers is None else self.numbers[chosen]
        return Bitext(self.source.select(chosen), self.target.select(chosen), self.origin, original)


def _name_pair(origin: str, number: int) -> str:
    return f"{origin}:{number + 1}" if origin else f"pair {number}"


def _make_namer(origin: str, before: int) -> Name:
    """Make the function that names the lines of a piece; ``before``: the number of lines before."""
    return lambda line: _name_pair(origin, before + line)


# Python data
def as_bitext(
    data: Any, targets: Any = None, *, lowercase: bool = False, like: Like | None = None
) -> Bitext:
    """Convert sentence pairs from Python objects.

    ``data``       texts "source ||| target"; or (source, target) tuples of texts, which are split
                   at white space, or of lists of words; or a `Bitext`
    ``targets``    the target sentences, if ``data`` are the source sentences alone
    ``lowercase``  lower-case all words
    ``like``       existing source and target vocabularies: their words keep their indices, new
                   words get the following ones

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
        if isinstance(data.source.tokens, DiskArray):
            source = renumber_side(data.source, sides.source)
            return replace(data, source=source, target=renumber_side(data.target, sides.target))
        for old, new in ((data.source, sides.source), (data.target, sides.target)):
            new.add(NumberedLines(old.tokens, old.indptr[1:], old.words))
        return replace(sides.bitext(data.origin), numbers=data.numbers)
    items = _list_items(data)
    if targets is not None:
        others = _list_items(targets)
    elif all(isinstance(item, str) for item in items):
        sides.read_joint(encode_texts(items), _make_namer("", 0))
        return sides.bitext("")
    else:
        sides.add_tuples(items, _make_namer("", 0))
        return sides.bitext("")
    for sentences, side in ((items, sides.source), (others, sides.target)):
        add_sentences(sentences, side, _make_namer("", 0))
    return sides.bitext("")


def _list_items(data: Any) -> list[Any]:
    if isinstance(data, str | bytes):
        raise DataError(
            f"the data are one text: {brief(data)}",
            "give a list of pairs, or use read_bitext to read a file",
        )
    if not isinstance(data, Iterable):
        raise DataError(f"the data are {brief(data)}", FORMS)
    return list(data)


class _Sides:
    """Builder of both sides of a bitext."""

    def __init__(self, lowercase: bool, like: Like | None) -> None:
        known = [Vocabulary.of(words) for words in like or ((), ())]
        self.source, self.target = (SideBuilder(words, lowercase) for words in known)

    def add_tuples(self, items: Sequence[Any], name: Name) -> None:
        """Add (source, target) tuples; ``name`` gives their names in messages."""
        for n, item in enumerate(items):
            if not isinstance(item, list | tuple) or len(item) != 2:
                raise DataError(f"{name(n)} is {brief(item)}", FORMS)
        for which, side in ((0, self.source), (1, self.target)):
            add_sentences([item[which] for item in items], side, name)

    def read_joint(self, pieces: Iterable[bytes], name_line: Name) -> None:
        """Add lines "source ||| target"; ``name_line`` gives the names of these lines."""
        tokeniser = LineTokeniser()
        bars = tokeniser.cut(BARS.encode(), str).tokens[0]
        first = len(self.source)
        for piece in pieces:
            before = len(self.source) - first

            def name(line: int, before: int = before) -> str:
                return name_line(before + line)

            lines = tokeniser.cut(piece, name)
            left, right = np.empty_like(lines.tokens), np.empty_like(lines.tokens)
            left_ends, right_ends = np.empty_like(lines.ends), np.empty_like(lines.ends)
            bad, times = split_sides(
                lines.tokens, lines.ends, bars, left, left_ends, right, right_ends
            )
            if bad >= 0:
                fault = f"{BARS} {times} times" if times else f"no {BARS}"
                raise DataError(
                    f"{name(bad)} has {fault}",
                    f"write source {BARS} target, with spaces around {BARS}",
                )
            self.source.add(NumberedLines(left[: left_ends[-1]], left_ends, lines.words))
            self.target.add(NumberedLines(right[: right_ends[-1]], right_ends, lines.words))

    def bitext(self, origin: str) -> Bitext:
        source, target = (
            Side(side.words, side.tokens, side.indptr) for side in (self.source, self.target)
        )
        pairs = Bitext(source, target, origin)
        if not len(pairs):
            raise DataError(f"no pairs in {origin or 'the data'}", "give at least one")
        return pairs


# files
def read_bitext(
    path: str | os.PathLike[str],
    target_path: str | os.PathLike[str] | None = None,
    *,
    lowercase: bool = False,
    like: Like | None = None,
) -> Bitext:
    """Read sentence pairs from a file of lines "source ||| target", or from two files.

    Files are UTF-8, plain or gzipped, and are read in pieces: only four bytes per word and the
    vocabularies are kept in memory. For ``lowercase`` and ``like`` see `as_bitext`.
    """
    sides = _Sides(lowercase, like)
    origin = os.fspath(path)
    if target_path is None:
        sides.read_joint(read_pieces(origin), _make_namer(origin, 0))
        return sides.bitext(origin)
    other = os.fspath(target_path)
    add_lines(read_pieces(origin), sides.source, _make_namer(origin, 0))
    add_lines(read_pieces(other), sides.target, _make_namer(other, 0))
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
    """Yield bitexts of n pairs each, the last one possibly shorter, from lines "source ||| target".

    Each bitext is yielded as soon as its lines are available. Lines of bytes must be UTF-8. For
    ``like`` see `as_bitext`; each bitext adds its own new words to this vocabulary. ``origin``
    names the source of the lines in messages, and ``before`` is the number of lines already read
    from it.

    >>> [len(pairs) for pairs in stream_pairs(["a ||| b", "c ||| d", "e ||| f"], 2)]
    [2, 1]
    """
    if n < 1:
        raise DataError(f"there cannot be {n} pairs at a time", "give n of 1 or more")
    known = None if like is None else (Vocabulary.of(like[0]), Vocabulary.of(like[1]))
    remaining = iter(lines)
    while block := [_as_bytes(line) for line in islice(remaining, n)]:
        if not before:
            block[0] = block[0].removeprefix(MARK)
        sides = _Sides(lowercase, known)
        sides.read_joint([b"\n".join(block) + b"\n"], _make_namer(origin, before))
        numbers = np.arange(before, before + len(block))
        yield replace(sides.bitext(origin), numbers=numbers)
        before += len(block)


def _as_bytes(line: str | bytes) -> bytes:
    """Encode a line in UTF-8, without its line end; any other newline becomes a space."""
    raw = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
    return raw.removesuffix(b"\n").replace(b"\n", b" ")


# Pairs on disk

KIND = "pairs"
COLUMNS = ("source_tokens", "source_lengths", "target_tokens", "target_lengths")


def build_pairs(
    data: Any,
    path: str | os.PathLike[str],
    *,
    lowercase: bool = False,
    on_progress: OnProgress = lambda pairs: None,
) -> Bitext:
    """Write sentence pairs to a folder, for corpora larger than memory, and open them.

    The vocabularies are in memory, and some thousand pairs at a time.

    ``data``       an iterable of texts "source ||| target", or of (source, target) tuples, as for
                   `as_bitext`; of two files, ``zip(open(…), open(…), strict=True)``. Or a mapping
                   from names to such
    ``path``       the folder to create
    ``lowercase``  whether to lower-case words

    >>> import tempfile
    >>> pairs = build_pairs(["the house ||| das haus", " ||| ja"], tempfile.mkdtemp() + "/corpus")
    >>> len(pairs), pairs.pair(0), pairs.target.tokens[:].tolist()
    (2, (['the', 'house'], ['das', 'haus']), [0, 1, 2])
    """
    with new_corpus(
        path, KIND, {name: StoredColumn("<i4") for name in COLUMNS}, on_progress
    ) as writer:
        sides = _Sides(lowercase, None)
        are_texts: bool | None = None
        for block, name in read_in_blocks(data, writer, "pair"):
            are_texts = isinstance(block[0], str) if are_texts is None else are_texts
            if are_texts:
                odd = next((n for n, item in enumerate(block) if not isinstance(item, str)), None)
                if odd is not None:
                    raise DataError(f"{name(odd)} is {brief(block[odd])}", FORMS)
                sides.read_joint(encode_texts(block), name)
            else:
                sides.add_tuples(block, name)
            rows = (*sides.source.take(), *sides.target.take())
            writer.append(len(block), **dict(zip(COLUMNS, rows, strict=True)))
        writer.write_names("source_words", sides.source.words)
        writer.write_names("target_words", sides.target.words)
    return open_pairs(CorpusFolder.open(path))


def open_pairs(corpus: CorpusFolder) -> Bitext:
    """Open pairs on disk; their lengths and vocabularies are read, words when they are needed."""

    def open_side(side: str) -> Side:
        words, column = corpus.read_names(f"{side}_words"), f"{side}_tokens"
        tokens = corpus.column(column, least=0, below=len(words))
        return Side(words, cast(IntArray, tokens), corpus.offsets(f"{side}_lengths", column))

    return Bitext(open_side("source"), open_side("target"))
