"""Which words occur together: the entries of a table of translations."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softcount.corpus.bitext import Side
from softcount.kernels import lexicon as kernels
from softcount.types import Array

PIECE = 1 << 22
"""So many links are looked at before the words that were found are put away."""

NARROW = 1 << 16
"""With no more target words than this their numbers take two bytes."""


class Places(NamedTuple):
    """Where each source word occurs: row borders, pair, and place in the pair.

    The last row is the empty word's, which stands behind the last word of every pair.
    """

    indptr: Array
    pairs: Array
    places: Array


def places_of(side: Side, n_words: int, null: bool) -> Places:
    """The places of all words, numbered below ``n_words``; those of the empty word if wanted."""
    found = Places(*kernels.occurrences(side.tokens, side.indptr, n_words))
    if null:
        return found
    words = found.indptr[n_words]
    indptr = found.indptr.copy()
    indptr[-1] = words
    return Places(indptr, found.pairs[:words], found.places[:words])


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Target words that each source word may be translated by; the last row is the empty word's.

    ``targets`` are sorted within each row.
    """

    indptr: Array
    targets: Array
    n_targets: int

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def n_sources(self) -> int:
        """How many source words there are, the empty one left out."""
        return len(self.indptr) - 2

    def rows(self) -> Array:
        """The source word of every entry."""
        return np.repeat(np.arange(self.n_sources + 1), np.diff(self.indptr))

    def find(self, sources: Array, targets: Array) -> Array:
        """The entries of these pairs of words; −1: there is none."""
        found = np.full(len(sources), -1, np.int64)
        kernels.find(self.indptr, self.targets, sources, targets, found)
        return found

    def match(self, rows: Array, other: Lexicon, columns: Array) -> Array:
        """The entries of a smaller lexicon here; −1: there is none.

        Its row r is row ``rows[r]`` here (−1: none), its target f is ``columns[f]``, all sorted.
        """
        found = np.full(len(other), -1, np.int64)
        kernels.match(self.indptr, self.targets, rows, other.indptr, columns[other.targets], found)
        return found

    def with_pairs(self, sources: Array, targets: Array, n_sources: int, n_targets: int) -> Lexicon:
        """This lexicon with more entries, and with more words."""
        rows = np.concatenate([self.rows(), sources])
        rows[: len(self)][self.rows() == self.n_sources] = n_sources  # the empty word stays last
        both = np.sort(rows * n_targets + np.concatenate([self.targets, targets]), kind="stable")
        both = both[np.append(True, both[1:] != both[:-1])] if len(both) else both
        lengths = np.bincount(both // n_targets, minlength=n_sources + 1)
        return Lexicon(_borders(lengths), narrow(both % n_targets, n_targets), n_targets)


def lexicon_of(places: Places, target: Side, n_targets: int, threads: int = 1) -> Lexicon:
    """All pairs of words that occur together."""
    n_rows = len(places.indptr) - 1
    lengths = np.zeros(n_rows, np.int64)
    links = kernels.links_before(*places[:2], target.indptr)
    wanted = np.arange(PIECE, int(links[-1]), PIECE)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(links, wanted), [n_rows]]))

    def piece(first: int, last: int) -> Array:
        out = np.empty(links[last] - links[first] + 1, np.int32)
        used = kernels.cooccurring(
            first, last, *places[:2], target.tokens, target.indptr, n_targets, out, lengths
        )
        return narrow(out[:used], n_targets)

    with ThreadPoolExecutor(threads) as pool:
        pieces = list(pool.map(lambda cut: piece(*cut), pairwise(cuts.tolist())))
    return Lexicon(_borders(lengths), np.concatenate(pieces), n_targets)


def narrow(targets: Array, n_targets: int) -> Array:
    """Numbers of target words in as few bytes as they need; always a copy."""
    return targets.astype(np.uint16 if n_targets <= NARROW else np.int32)


def _borders(lengths: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
