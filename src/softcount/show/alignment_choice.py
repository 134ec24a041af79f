"""Which sentence pairs of an aligned text are worth looking at."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.corpus.bitext import Bitext
from softcount.corpus.links import FlatLinks, Link
from softcount.types import Array

MOST_PAIRS = 5_000
"""So many pairs are looked at, evenly spread over the text."""

MOST_LINKS = 20_000_000
"""Fewer if they are long: so many posteriors are in memory."""


@dataclass(frozen=True, eq=False)
class Looked:
    """Pairs with words on both sides, and what an aligner makes of them.

    ``text``        the pairs that the aligner was given, some with an empty side perhaps
    ``places``      where in it those with words are
    ``numbers``     the numbers that these have in the whole text
    ``posteriors``  p(link) of every pair of ``text``
    ``links``       the links that were chosen for them
    """

    text: Bitext
    places: Array
    numbers: Array
    posteriors: Sequence[Array]
    links: FlatLinks

    @property
    def n_links(self) -> int:
        return len(self.links.source)

    def posterior(self, k: int) -> Array:
        """p(link) of the k-th pair that has words."""
        return self.posteriors[int(self.places[k])]

    def words(self, k: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words of the k-th pair that has some."""
        source, target = self.text.pair(int(self.places[k]))
        return tuple(source), tuple(target)

    def links_of(self, k: int) -> list[Link]:
        """The links of the k-th pair that has words."""
        begin, end = self.links.indptr[self.places[k] : self.places[k] + 2]
        sides = self.links.source[begin:end].tolist(), self.links.target[begin:end].tolist()
        return list(zip(*sides, strict=True))

    def doubts(self, chosen: Array) -> Array:
        """The `doubt` of pairs that have words."""
        return np.array([doubt(self.posterior(k)) for k in chosen.tolist()])


def look(aligner: Any, text: Bitext, needed: Iterable[int] = ()) -> Looked:
    """Align some pairs of a text, all if they are few.

    ``needed``  pairs to look at in any case, unless they are many
    """
    full = np.flatnonzero(text.source.lengths * text.target.lengths)
    special = np.intersect1d(full, np.fromiter(needed, np.int64))
    numbers = np.union1d(_spread(text, full), _spread(text, special))
    # an aligner knows its own pairs again, with the links it was told, if it gets them as they are
    whole = len(numbers) == len(full)
    part = text if whole else text.select(numbers)
    places = numbers if whole else np.arange(len(numbers))
    return Looked(part, places, numbers, aligner.posteriors(part), aligner.links(part)[0])


def _spread(text: Bitext, numbers: Array) -> Array:
    links = int(text.source.lengths[numbers] @ text.target.lengths[numbers])
    most = min(MOST_PAIRS, max(len(numbers) * MOST_LINKS // max(links, 1), 1))
    if len(numbers) <= most:
        return numbers
    return numbers[np.arange(most) * len(numbers) // most]


def doubt(posterior: Array) -> float:
    """How uncertain the links of a pair are, in bits a word: Σ_ij h(p_ij) / (l + m).

    h(p) = −p log₂ p − (1 − p) log₂ (1 − p): nothing if every link is sure to be there or not to be.

    >>> doubt(np.eye(3)), doubt(np.full((2, 2), 0.5))
    (0.0, 1.0)
    """
    p = np.clip(posterior, 0.0, 1.0)
    p = p[(p > 0.0) & (p < 1.0)]
    bits = -(p * np.log2(p) + (1.0 - p) * np.log2(1.0 - p)).sum()
    return float(bits / max(sum(posterior.shape), 1)) + 0.0


def choose(
    doubts: Array, lengths: Array, texts: Sequence[Hashable], n: int
) -> tuple[list[int], list[int]]:
    """The most uncertain pairs, most uncertain first, and typical ones: n together, half of each.

    Typical: both doubt and length are near the middle of all. No text comes twice.

    >>> choose(np.array([0.1, 0.9, 0.2, 0.0]), np.array([5, 5, 5, 1]), "abcd", 2)
    ([1], [0])
    """
    seen: set[Hashable] = set()
    uncertain = _first(np.argsort(-doubts, kind="stable"), texts, seen, n - n // 2)
    apart = np.abs(_standing(doubts) - 0.5) + np.abs(_standing(lengths) - 0.5)
    typical = _first(np.argsort(apart, kind="stable"), texts, seen, n // 2)
    return uncertain, sorted(typical)


def _first(order: Array, texts: Sequence[Hashable], seen: set[Hashable], n: int) -> list[int]:
    def unseen() -> Iterator[int]:
        for place in order.tolist():
            if texts[place] not in seen:
                seen.add(texts[place])
                yield place

    return [place for _, place in zip(range(n), unseen(), strict=False)]


def _standing(values: Array) -> Array:
    """The share of values below each, those that are the same counted by half."""
    order = np.sort(values)
    below, up_to = (np.searchsorted(order, values, side) for side in ("left", "right"))
    standing: Array = (below + up_to) / (2.0 * max(len(values), 1))
    return standing
