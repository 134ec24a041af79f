"""Which words a corpus has and which of them count, however many there are."""

from __future__ import annotations

import heapq
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softcount.corpus.rows import writing
from softcount.errors import DataError, shown
from softcount.types import Array

MOST_AT_ONCE = 1 << 20
"""So many words, and those of one more piece of text, are kept in memory: some 500 MB at worst."""


class Found(NamedTuple):
    """A word, how many documents have it, and the numbers it went by."""

    word: str
    documents: int
    numbers: tuple[int, ...]


class WordTable:
    """Numbers for words, in the order in which they come, and how many documents have each.

    A table that grows too large is put on disk, sorted, and a new one begun with new numbers, so
    that a word may have several; `merged` brings them together. Memory stays bounded, counts exact.

    ``numbers``  word → number; a word that is not there gets the next one. New after `add`.
    """

    def __init__(self, folder: Path, most: int = MOST_AT_ONCE) -> None:
        self._folder, self._most = folder, most
        self._runs: list[Path] = []
        self._begin(0)

    def _begin(self, first: int) -> None:
        self._first = first
        self.numbers: defaultdict[str, int] = defaultdict(count(first).__next__)
        self._documents = np.zeros(0, np.int64)

    @property
    def size(self) -> int:
        """How many numbers were given."""
        return self._first + len(self.numbers)

    def add(self, words: Array) -> None:
        """Numbers of words in some documents, each once for each document that has the word."""
        seen = np.bincount(words - self._first, minlength=len(self.numbers))
        seen[: len(self._documents)] += self._documents
        self._documents = seen
        if len(self.numbers) > self._most:
            self._put_away()

    def _put_away(self) -> None:
        path = self._folder / f"words-{len(self._runs)}.jsonl"
        with writing(path), path.open("x", encoding="ascii") as file:
            for one in self._sorted():
                file.write(json.dumps(one) + "\n")
        self._runs.append(path)
        self._begin(self.size)

    def _sorted(self) -> list[tuple[str, int, int]]:
        each = zip(self.numbers.items(), self._documents.tolist(), strict=True)
        return sorted((word, documents, number) for (word, number), documents in each)

    def merged(self) -> Iterator[Found]:
        """All words in alphabetical order."""
        runs: list[Iterable[tuple[str, int, int]]] = [self._sorted(), *map(_read, self._runs)]
        for word, same in groupby(heapq.merge(*runs), key=itemgetter(0)):
            _, documents, numbers = zip(*same, strict=True)
            yield Found(word, sum(documents), numbers)


def _read(run: Path) -> Iterator[tuple[str, int, int]]:
    with run.open(encoding="ascii") as file:
        for line in file:
            word, documents, number = json.loads(line)
            yield word, documents, number


@dataclass(frozen=True)
class Wanted:
    """Which words count.

    ``min_count``   in so many documents at least
    ``max_share``   in no larger part of the documents
    ``max_words``   so many words at most: those that most documents have
    ``stop_words``  none of these
    """

    min_count: int = 1
    max_share: float = 1.0
    max_words: int | None = None
    stop_words: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.min_count < 1 or not 0.0 <= self.max_share <= 1.0:
            raise DataError(
                f"min_count={self.min_count}, max_share={self.max_share} let no word pass",
                "min_count is 1 or more, max_share is from 0 to 1",
            )
        if self.max_words is not None and self.max_words < 1:
            raise DataError(f"max_words={self.max_words} leaves no word", "give 1 or more")

    def choose(self, found: Iterable[Found], n_documents: int) -> Iterator[Found]:
        """Those that count, in the order in which they come."""
        most = self.max_share * n_documents
        kept = (
            one
            for one in found
            if self.min_count <= one.documents <= most and one.word not in self.stop_words
        )
        if self.max_words is None:
            return kept
        best = heapq.nsmallest(
            self.max_words, enumerate(kept), key=lambda e: (-e[1].documents, e[0])
        )
        return iter([one for _, one in sorted(best, key=itemgetter(0))])


@dataclass(frozen=True)
class Known:
    """The words of another corpus, which are the ones that count, in its order.

    ``words``     None: its columns have no names
    ``n_words``   how many these are
    ``analyzer``  how its texts were cut (`softcount.corpus.texts.ANALYZERS`); None: nobody knows
    """

    words: Sequence[str] | None
    n_words: int
    analyzer: str | None = None

    def renumbering(self, found: Iterable[Found], size: int) -> Array:
        """The place of each number's word among these words; −1: it is none of them.

        >>> Known(["b", "a"], 2).renumbering([Found("a", 2, (0, 3)), Found("x", 1, (2,))], 4)
        array([ 1, -1, -1,  1], dtype=int32)
        """
        places = {word: place for place, word in enumerate(self.words or ())}
        new = np.full(size, -1, np.int32)
        for one in found:
            new[list(one.numbers)] = places.get(one.word, -1)
        return new


def stop_list(words: Iterable[str]) -> frozenset[str]:
    """Words to leave out.

    >>> sorted(stop_list(["the", "of"]))
    ['of', 'the']
    """
    if isinstance(words, str):
        raise DataError(f"stop_words is one text: {shown(words)}", "give a list of words")
    return frozenset(words)


def renumbering(chosen: Iterable[Found], size: int) -> tuple[list[str], Array]:
    """The words that were chosen, and the new number of each old one; −1: it does not count.

    >>> renumbering([Found("a", 2, (0, 3)), Found("b", 1, (2,))], 4)
    (['a', 'b'], array([ 0, -1,  1,  0], dtype=int32))
    """
    words: list[str] = []
    new = np.full(size, -1, np.int32)
    for one in chosen:
        for number in one.numbers:
            new[number] = len(words)
        words.append(one.word)
    if not words:
        raise DataError(
            "no words are left: every document is empty, or all its words were left out",
            "look at the documents, at min_count, max_share and the stop words",
        )
    return words, new
