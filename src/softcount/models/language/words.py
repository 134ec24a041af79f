"""Sentences as numbers of words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain, count
from typing import Any

import numpy as np

from softcount.errors import DataError, shown
from softcount.types import Array

UNKNOWN, END, START = "<unk>", "</s>", "<s>"
MARKS = (UNKNOWN, END, START)
"""Their numbers are 0, 1 and 2; other words follow in the order in which they first appear."""


def cut(sentence: Any) -> list[str]:
    """A sentence as a list of words: texts are cut at white space.

    >>> cut("of the  people")
    ['of', 'the', 'people']
    """
    if isinstance(sentence, str):
        return sentence.split()
    try:
        words = list(sentence)
    except TypeError:
        words = [sentence]
    for word in words:
        if not isinstance(word, str):
            raise DataError(
                f"{shown(word)} is no word", "give sentences as texts, or as lists of words"
            )
    return words


def cut_all(sentences: Any) -> Iterator[list[str]]:
    """Several sentences; whatever is wrong is said with the sentence's number."""
    if isinstance(sentences, str) or not isinstance(sentences, Iterable):
        raise DataError(f"{shown(sentences)} is no list of sentences", "put it into a list: [text]")
    for number, sentence in enumerate(sentences):
        try:
            yield cut(sentence)
        except DataError as error:
            error.message = f"sentence {number}: {error.message}"
            raise


def numbered(sentences: Any) -> tuple[list[str], Array, Array]:
    """The words there are, and every sentence as <s> … </s> in one array with its borders."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    for mark in MARKS:
        numbers[mark]
    lists = list(cut_all(sentences))
    if not lists:
        raise DataError("there are no sentences", "give at least one")
    for number, words in enumerate(lists):
        for mark in (START, END):
            if mark in words:
                raise DataError(
                    f"sentence {number} contains {mark!r}",
                    "leave out the marks of begin and end: they are put there by the model",
                )
    marked = chain.from_iterable(chain((START,), words, (END,)) for words in lists)
    tokens = np.fromiter(map(numbers.__getitem__, marked), np.int32)
    return list(numbers), tokens, _borders(len(words) + 2 for words in lists)


def looked_up(sentences: Any, numbers: Mapping[str, int]) -> tuple[Array, Array]:
    """Sentences as words and their end, for words that are known by their numbers."""
    lists = list(cut_all(sentences))
    marked = chain.from_iterable(chain((numbers.get(w, 0) for w in words), (1,)) for words in lists)
    return np.fromiter(marked, np.int32), _borders(len(words) + 1 for words in lists)


def _borders(lengths: Iterable[int]) -> Array:
    return np.fromiter(accumulate(lengths, initial=0), np.int64)
