"""Sentences as sequences of word indices, read from files and from Python data.

Strings are split as by ``str.split``; lists of words stay as they are, even if a word contains
white space. Lines end in \\n; \\r\\n is accepted. Empty sentences are kept, so that output with one
sentence per line matches the input.

Sentences may be on disk: the word indices are then a `DiskArray`, and everything else is as usual.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import IntArray
from softcount.text.disk import (
    CorpusFolder,
    DiskArray,
    OnProgress,
    StoredColumn,
    find_rows,
    new_corpus,
    number_items,
    read_in_blocks,
)
from softcount.text.lines import Name, read_pieces
from softcount.text.vocabulary import (
    NumberedLines,
    SideBuilder,
    Vocabulary,
    add_lines,
    add_sentences,
)

Like = Vocabulary | Sequence[str]
"""An existing vocabulary, whose words keep their indices."""

FORMS = "give a list of sentences: strings, or lists of words"


@dataclass(frozen=True, eq=False)
class Side:
    """The sentences of one language.

    ``words``   the vocabulary, in order of first occurrence
    ``tokens``  word indices, sentences concatenated (int32); of a corpus on disk a `DiskArray`
    ``indptr``  sentence n is ``tokens[indptr[n]:indptr[n + 1]]`` (int64)
    """

    words: list[str]
    tokens: IntArray
    indptr: IntArray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def lengths(self) -> IntArray:
        """The number of words in each sentence."""
        return np.diff(self.indptr)

    def sentence(self, n: int) -> list[str]:
        """Return the words of a sentence."""
        tokens = self.tokens[self.indptr[n] : self.indptr[n + 1]]
        return [self.words[token] for token in tokens.tolist()]

    def select(self, numbers: IntArray) -> Side:
        """Select sentences, in this order; the vocabulary stays the same."""
        places, indptr = find_rows(self.indptr, numbers)
        return replace(self, tokens=self.tokens[places], indptr=indptr)


@dataclass(frozen=True, eq=False, repr=False)
class Sequences:
    """Sentences, and their origin.

    ``side``     the vocabulary, and the sentences as word indices
    ``origin``   the file that the sentences were read from, if there is one
    ``numbers``  the original number of each sentence (its line, if read from a file), from 0;
                 None: 0, 1, 2, …

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
        """The vocabulary: words of ``like`` first, then in order of first occurrence."""
        return self.side.words

    @property
    def tokens(self) -> IntArray:
        """Word indices, sentences concatenated (int32): an array, or a `DiskArray`."""
        return self.side.tokens

    @property
    def indptr(self) -> IntArray:
        """Sentence n is ``tokens[indptr[n]:indptr[n + 1]]`` (int64)."""
        return self.side.indptr

    @property
    def lengths(self) -> IntArray:
        """The number of words in each sentence."""
        return self.side.lengths

    def count_words(self) -> IntArray:
        """Return the number of occurrences of each word, (words,)."""
        counts = np.zeros(len(self.words), np.int64)
        for tokens in self.tokens.parts() if isinstance(self.tokens, DiskArray) else (self.tokens,):
            counts += np.bincount(tokens, minlength=len(counts))
        return counts

    def sentence(self, n: int) -> list[str]:
        """Return the words of a sentence."""
        return self.side.sentence(n)

    def name(self, n: int) -> str:
        """Return the name of a sentence for messages: "sentence 17", or "news.txt:18"."""
        number = n if self.numbers is None else int(self.numbers[n])
        if isinstance(self.tokens, DiskArray):
            return self.tokens.corpus.name_item(number, "sentence")
        return name_sentence(self.origin, number)

    def select(self, numbers: Any) -> Sequences:
        """Select sentences, in this order; the vocabulary and the names stay the same.

        What is on disk is read.

        So a model fitted to them has the words of the other sentences in its vocabulary, too; to
        avoid that, give it the sentences as lists of words.

        >>> sequences(["a b", "c"]).select([1]).name(0)
        'sentence 1'
        """
        chosen = number_items(numbers, len(self))
        kept = chosen if self.numbers is None else self.numbers[chosen]
        return Sequences(self.side.select(chosen), self.origin, kept)


def sequences(data: Any, *, like: Like | None = None, lowercase: bool = False) -> Sequences:
    """Make sequences from Python data.

    ``data``       strings, which are split at white space; or lists of words, which are not; or
                   Sequences
    ``like``       an existing vocabulary, whose words keep their indices; new words get the indices
                   that follow
    ``lowercase``  whether to lower-case words

    >>> new = sequences([["A", "dog"], []], like=["the", "dog"], lowercase=True)
    >>> new.words, new.tokens.tolist(), new.indptr.tolist()
    (['the', 'dog', 'a'], [2, 1], [0, 2, 2])
    """
    if isinstance(data, Sequences) and like is None and not lowercase:
        return data
    builder = SideBuilder(Vocabulary.of(like or ()), lowercase)
    if isinstance(data, Sequences) and isinstance(data.tokens, DiskArray):
        return replace(data, side=renumber_side(data.side, builder))
    if isinstance(data, Sequences):
        builder.add(NumberedLines(data.tokens, data.indptr[1:], data.words))
        return Sequences(make_side(builder), data.origin, data.numbers)
    add_sentences(list_sentences(data), builder, sentence_names(""), "is")
    if not len(builder):
        raise DataError("no sentences in the data", "give at least one")
    return Sequences(make_side(builder))


def read_sequences(
    path: str | os.PathLike[str], *, like: Like | None = None, lowercase: bool = False
) -> Sequences:
    """Read sentences from a file, one per line: UTF-8, optionally gzipped.

    A blank line is an empty sentence. ``like`` and ``lowercase`` are those of `sequences`. Files
    are read in pieces: only four bytes per token and the vocabulary stay in memory.
    """
    origin = os.fspath(path)
    return from_pieces(read_pieces(origin), origin, like=like, lowercase=lowercase)


def from_pieces(
    pieces: Iterable[bytes],
    origin: str,
    before: int = 0,
    *,
    like: Like | None = None,
    lowercase: bool = False,
) -> Sequences:
    """Read sentences from pieces of text, whole lines of UTF-8.

    ``before``  number of lines of the file before these
    """
    builder = SideBuilder(Vocabulary.of(like or ()), lowercase)
    add_lines(pieces, builder, lambda n: name_sentence(origin, before + n))
    if not len(builder):
        raise DataError(f"no sentences in {origin or 'the data'}", "give at least one")
    numbers = np.arange(before, before + len(builder)) if before else None
    return Sequences(make_side(builder), origin, numbers)


def renumber_side(side: Side, builder: SideBuilder) -> Side:
    """Return sentences on disk with the words' numbers in a builder's vocabulary; nothing is read.

    Words new to the vocabulary are added to it in the order in which they are in the corpus's: that
    of their first occurrence.
    """
    assert isinstance(side.tokens, DiskArray)
    n = len(side.words)
    builder.add(NumberedLines(np.arange(n, dtype=np.int32), np.array([n]), side.words))
    numbers, _ = builder.take()
    tokens = side.tokens.renumbered(numbers)
    return Side(builder.words, cast(IntArray, tokens), side.indptr)


# Sentences on disk

KIND = "sentences"


def build_sequences(
    data: Any,
    path: str | os.PathLike[str],
    *,
    lowercase: bool = False,
    on_progress: OnProgress = lambda sentences: None,
) -> Sequences:
    """Write sentences to a folder, for corpora larger than memory, and open them.

    The vocabulary is in memory, and some thousand sentences at a time.

    ``data``       an iterable of sentences, as for `sequences`, or a mapping from names to such
    ``path``       the folder to create
    ``lowercase``  whether to lower-case words

    >>> import tempfile
    >>> some = build_sequences(["the dog barks", "", "the cat"], tempfile.mkdtemp() + "/corpus")
    >>> some.tokens[:].tolist(), some.words, some.select([2]).sentence(0)
    ([0, 1, 2, 0, 3], ['the', 'dog', 'barks', 'cat'], ['the', 'cat'])
    """
    columns = {"tokens": StoredColumn("<i4"), "lengths": StoredColumn("<i4")}
    with new_corpus(path, KIND, columns, on_progress) as writer:
        builder = SideBuilder(Vocabulary(()), lowercase)
        for block, name in read_in_blocks(data, writer, "sentence"):
            add_sentences(block, builder, name, "is")
            tokens, lengths = builder.take()
            writer.append(len(block), tokens=tokens, lengths=lengths)
        writer.write_names("words", builder.words)
    return open_sequences(CorpusFolder.open(path))


def open_sequences(corpus: CorpusFolder) -> Sequences:
    """Open sentences on disk; their lengths and the vocabulary are read, words when needed."""
    words = corpus.read_names("words")
    tokens = corpus.column("tokens", least=0, below=len(words))
    return Sequences(Side(words, cast(IntArray, tokens), corpus.offsets("lengths", "tokens")))


def describe_size(text: Sequences) -> str:
    """Describe the numbers of sentences and words, and the origin."""
    size = f"{count_noun(len(text), 'sentence')}, {count_noun(len(text.tokens), 'word')}"
    return size + (f" from {text.origin}" if text.origin else "")


def count_noun(n: int, what: str) -> str:
    """Format a number with a noun, in the plural unless it is 1.

    >>> count_noun(1, "word"), count_noun(1200, "word")
    ('1 word', '1,200 words')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def name_sentence(origin: str, number: int) -> str:
    """Return the name of a sentence (or line of a file) for messages, given its number from 0."""
    return f"{origin}:{number + 1}" if origin else f"sentence {number}"


def sentence_names(origin: str) -> Name:
    """Return the function that names the sentences of this origin."""
    return lambda number: name_sentence(origin, number)


def list_sentences(data: Any) -> list[Any]:
    """Convert sentences to a list; a single string is an error."""
    if isinstance(data, str | bytes):
        raise DataError(
            f"the data are one text: {brief(data)}",
            "give a list of sentences; to read a file, use read_sequences",
        )
    if not isinstance(data, Iterable):
        raise DataError(f"the data are {brief(data)}", FORMS)
    return list(data)


def make_side(builder: SideBuilder) -> Side:
    """Make a `Side` of the sentences added so far."""
    return Side(builder.words, builder.tokens, builder.indptr)
