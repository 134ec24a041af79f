"""Documents as they come, from one place or several, and what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from softcount.bounds import within_range
from softcount.corpus.bags import Bags
from softcount.corpus.texts import as_it_is
from softcount.corpus.tokenise import spaces, words
from softcount.errors import DataError, shown


class Sources:
    """Documents of several named places, or of one without a name, counted as they pass.

    >>> sources = Sources({"a.txt": ["x", "y"], "b.txt": ["z"]})
    >>> list(sources), sources.counts
    (['x', 'y', 'z'], [('a.txt', 2), ('b.txt', 1)])
    """

    def __init__(self, given: Mapping[str, Iterable[Any]] | Iterable[Any]) -> None:
        if isinstance(given, str | bytes):
            raise DataError(
                f"the data are one text: {shown(given)}", "give a list of texts, one a document"
            )
        self._named = isinstance(given, Mapping)
        places = given if isinstance(given, Mapping) else {"": given}
        self._places = {name: _blocks(documents) for name, documents in places.items()}
        self._counts = dict.fromkeys(self._places, 0)
        self._place = ""

    def __iter__(self) -> Iterator[Any]:
        for place, documents in self._places.items():
            self._place = place
            for one in documents:
                self._counts[place] += one.shape[0] if is_matrix(one) else 1
                yield one

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many documents came from each place that has a name."""
        return list(self._counts.items()) if self._named else []

    @property
    def here(self) -> str:
        """The document that came last."""
        n = self._counts[self._place]
        return f"{self._place}:{n}" if self._named else f"document {n - 1}"


def _blocks(given: Iterable[Any]) -> Iterable[Any]:
    return [given] if is_matrix(given) else given


def is_matrix(one: Any) -> bool:
    """Whether this is a block of counts, not a document."""
    return getattr(one, "ndim", 1) == 2


def peeked(documents: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """The first document, and all of them."""
    for first in documents:
        return first, chain([first], documents)
    raise DataError("there are no documents", "give at least one")


def cutter(first: Any, tokens: bool) -> Callable[[Any], list[str]]:
    """What cuts documents like the first one into words."""
    if isinstance(first, str):
        return spaces if tokens else words
    if isinstance(first, list | tuple):
        return as_it_is  # type: ignore[return-value]
    hint = "give texts, lists of words, or sparse matrices of counts"
    if isinstance(first, bytes):
        hint = "decode it first, for example text.decode('utf-8')"
    raise DataError(f"the first document is {shown(first)}", hint)


def demand_like(one: Any, first: Any, sources: Sources) -> None:
    """Complain of a document that is not of the same kind as the first one."""
    is_text = isinstance(first, str)
    if not isinstance(one, str if is_text else list | tuple):
        others = "texts" if is_text else "lists of words"
        raise DataError(
            f"{sources.here} is {shown(one)}, while others are {others}",
            f"give {others} only; an empty document is an empty one of these",
        )
    if not is_text and not all(isinstance(word, str) for word in one):
        strange = next(word for word in one if not isinstance(word, str))
        raise DataError(f"{sources.here} has {shown(strange)} among its words", "words are strings")


def block_bags(block: Any, before: int, n_words: int | None) -> Bags:
    """A block of counts, of as many words as the others; ``before`` documents came before it."""
    if not is_matrix(block):
        raise DataError(
            f"after {before} documents comes {shown(block)}, while others are matrices",
            "give blocks of counts only",
        )
    if n_words is not None and block.shape[1] != n_words:
        raise DataError(
            f"after {before} documents comes a block of {block.shape[1]} words, "
            f"while others have {n_words}",
            "give the same columns in every block",
        )
    with within_range(f"the block after {before} documents"):
        rows = sparse.csr_matrix(block, dtype=np.float64)
    strange = np.flatnonzero(~(np.isfinite(rows.data) & (rows.data >= 0.0)))
    if len(strange):
        d = int(np.searchsorted(rows.indptr, strange[0], side="right")) - 1
        raise DataError(
            f"document {before + d} has a count of {rows.data[strange[0]]:g}",
            "counts of words are finite and cannot be negative",
        )
    return Bags.of(rows)
