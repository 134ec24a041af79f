"""Sentences of one language: read from files and from Python data, as numbers of words.

A text is cut where ``str.split`` would cut it; lists of words stay as they are, white space in a
word or not. Lines end at \\n only; \\r\\n does no harm. An empty sentence is kept, so that what is
written with one sentence per line matches what was read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import IntArray
from softcount.text.lines import Name, read_pieces
from softcount.text.vocabulary import (
    NumberedLines,
    SideBuilder,
    Vocabulary,
    add_lines,
    add_sentences,
)

Like = Vocabulary | Sequence[str]
"""Words that have their numbers already."""

FORMS = "give a list of sentences: texts, or lists of words"


@dataclass(frozen=True, eq=False)
class Side:
    """The sentences of one language.

    ``words``   each different word, in order of first appearance
    ``tokens``  numbers of words, one sentence after the other (int32)
    ``indptr``  sentence n is ``tokens[indptr[n]:indptr[n + 1]]`` (int64)
    """

    words: list[str]
    tokens: IntArray
    indptr: IntArray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def lengths(self) -> IntArray:
        """How many words each sentence has."""
        return np.diff(self.indptr)

    def sentence(self, n: int) -> list[str]:
        """The words of a sentence."""
        some = self.tokens[self.indptr[n] : self.indptr[n + 1]]
        return [self.words[token] for token in some.tolist()]

    def select(self, numbers: IntArray) -> Side:
        """These sentences, in this order; the vocabulary is the same."""
        lengths = self.lengths[numbers]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.repeat(self.indptr[numbers] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return replace(self, tokens=self.tokens[places], indptr=indptr)


@dataclass(frozen=True, eq=False, repr=False)
class Sequences:
    """Sentences, and where they came from.

    ``side``     the words and the sentences as numbers of words
    ``origin``   the file that the sentences were read from, if there is one
    ``numbers``  the number that each sentence (its line, if it is from a file) had there, from 0;
                 None: they are all here

    >>> some = sequences(["the dog barks", "", "the cat sleeps"])
    >>> len(some), some.lengths.tolist(), some.sentence(2)
    (3, [3, 0, 3], ['the', 'cat', 'sleeps'])
    >>> some.words, some.tokens.tolist(), some.name(2)
    (['the', 'dog', 'barks', 'cat', 'sleeps'], [0, 1, 2, 0, 3, 4], 'sentence 2')
    >>> some
    <Sequences: 3 sentences, 6 words>
    """

    side: Side
    origin: str = ""
    numbers: IntArray | None = None

    def __len__(self) -> int:
        return len(self.side)

    def __repr__(self) -> str:
        return f"<Sequences: {describe_size(self)}>"

    @property
    def words(self) -> list[str]:
        """Each different word, in order of first appearance, known ones first."""
        return self.side.words

    @property
    def tokens(self) -> IntArray:
        """Numbers of words, one sentence after the other (int32)."""
        return self.side.tokens

    @property
    def indptr(self) -> IntArray:
        """Sentence n is ``tokens[indptr[n]:indptr[n + 1]]`` (int64)."""
        return self.side.indptr

    @property
    def lengths(self) -> IntArray:
        """How many words each sentence has."""
        return self.side.lengths

    def sentence(self, n: int) -> list[str]:
        """The words of a sentence."""
        return self.side.sentence(n)

    def name(self, n: int) -> str:
        """What messages call a sentence: "sentence 17", or "news.txt:18" if it is from there."""
        return name_sentence(self.origin, n if self.numbers is None else int(self.numbers[n]))

    def select(self, numbers: Any) -> Sequences:
        """These sentences, in this order; words and names stay as they are.

        So a model that learns from them knows all words, also those of other sentences; give it the
        sentences as lists of words if it must not.

        >>> sequences(["a b", "c"]).select([1]).name(0)
        'sentence 1'
        """
        chosen = np.arange(len(self))[numbers]
        kept = chosen if self.numbers is None else self.numbers[chosen]
        return Sequences(self.side.select(chosen), self.origin, kept)


def sequences(data: Any, *, like: Like | None = None, lowercase: bool = False) -> Sequences:
    """Sentences as Python has them.

    ``data``       texts, which are cut at white space; or lists of words, which are not; or
                   Sequences
    ``like``       words that have numbers: they keep them, and words that are not among them get
                   the numbers that follow
    ``lowercase``  words in lower case

    >>> new = sequences([["A", "dog"], []], like=["the", "dog"], lowercase=True)
    >>> new.words, new.tokens.tolist(), new.indptr.tolist()
    (['the', 'dog', 'a'], [2, 1], [0, 2, 2])
    """
    if isinstance(data, Sequences) and like is None and not lowercase:
        return data
    builder = SideBuilder(Vocabulary.of(like or ()), lowercase)
    if isinstance(data, Sequences):
        builder.add(NumberedLines(data.tokens, data.indptr[1:], data.words))
        return Sequences(make_side(builder), data.origin, data.numbers)
    add_sentences(list_sentences(data), builder, sentence_names(""), "is")
    if not len(builder):
        raise DataError("no sentences in the data", "give one at least")
    return Sequences(make_side(builder))


def read_sequences(
    path: str | os.PathLike[str], *, like: Like | None = None, lowercase: bool = False
) -> Sequences:
    """Sentences from a file, one per line: UTF-8, packed by gzip or not.

    A blank line is an empty sentence. ``like`` and ``lowercase`` are those of `sequences`. Files
    are read a piece at a time: what stays in memory is four bytes per word and the vocabulary.
    """
    origin = os.fspath(path)
    return from_pieces(read_pieces(origin), origin, like=like, lowercase=lowercase)


def from_pieces(
    some: Iterable[bytes],
    origin: str,
    before: int = 0,
    *,
    like: Like | None = None,
    lowercase: bool = False,
) -> Sequences:
    """Sentences from pieces of text, whole lines of UTF-8; so many lines were ``before`` them."""
    builder = SideBuilder(Vocabulary.of(like or ()), lowercase)
    add_lines(some, builder, lambda n: name_sentence(origin, before + n))
    if not len(builder):
        raise DataError(f"no sentences in {origin or 'the data'}", "give one at least")
    numbers = np.arange(before, before + len(builder)) if before else None
    return Sequences(make_side(builder), origin, numbers)


def describe_size(some: Sequences) -> str:
    """How many sentences and words there are, and where they are from."""
    size = f"{count_noun(len(some), 'sentence')}, {count_noun(len(some.tokens), 'word')}"
    return size + (f" from {some.origin}" if some.origin else "")


def count_noun(n: int, what: str) -> str:
    """So many of them.

    >>> count_noun(1, "word"), count_noun(1200, "word")
    ('1 word', '1,200 words')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def name_sentence(origin: str, number: int) -> str:
    """What messages call a sentence, or the line of a file, counted from 0."""
    return f"{origin}:{number + 1}" if origin else f"sentence {number}"


def sentence_names(origin: str) -> Name:
    """What messages call each of the sentences from there."""
    return lambda number: name_sentence(origin, number)


def list_sentences(data: Any) -> list[Any]:
    """Sentences as a list; one text is not many sentences."""
    if isinstance(data, str | bytes):
        raise DataError(
            f"the data are one text: {brief(data)}",
            "give a list of sentences; for the name of a file, there is read_sequences",
        )
    if not isinstance(data, Iterable):
        raise DataError(f"the data are {brief(data)}", FORMS)
    return list(data)


def make_side(builder: SideBuilder) -> Side:
    """The sentences that were added, as they are now."""
    return Side(builder.words, builder.tokens, builder.indptr)
