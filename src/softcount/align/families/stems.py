"""Tables of translations in which words of one stem help each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.align.kernels.positions import lend
from softcount.families.base import Running
from softcount.families.large import LargeTable
from softcount.types import Array, Counts


@dataclass(frozen=True, eq=False)
class Stems:
    """Stems of source and target words; p(word | its stem) of the latter, from ``often``.

    ``strength``  so many counts each source word is lent
    ``least``     added to all counts of stems
    """

    sources: Array
    targets: Array
    shares: Array
    strength: float
    least: float

    @classmethod
    def of(
        cls,
        sources: Sequence[str],
        targets: Sequence[str],
        often: Array,
        letters: int,
        strength: float,
        least: float,
    ) -> Stems:
        """Words with the same first letters have one stem; the empty word comes last.

        >>> often = np.array([3, 1, 1])
        >>> stems = Stems.of(["house"], ["haus", "hausen", "hof"], often, 4, 5.0, 0.1)
        >>> stems.targets.tolist(), stems.shares.tolist()
        ([0, 0, 1], [0.75, 0.25, 1.0])
        """
        here = np.append(_numbered(sources, letters), -1)
        here[-1] = here.max(initial=-1) + 1
        there = _numbered(targets, letters)
        totals = np.bincount(there, often)
        shares = often / np.maximum(totals, 1.0)[there]
        return cls(here, there, shares, strength, least)


def _numbered(words: Sequence[str], letters: int) -> Array:
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(w[:letters], len(numbers)) for w in words], np.int64)


class StemTable(LargeTable):
    """A `LargeTable` whose M-steps see more counts than there are.

    c(f, e) + A · T(s(f) | s(e)) · p(f | s(f)): T is the same table for stems, s a word's stem. Rare
    words are known by their relatives. The objective does not know of it, and may fall.
    """

    def __init__(self, *given: Any, stems: Stems, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.stems = stems
        self._members = np.argsort(stems.sources, kind="stable")
        numbers = np.arange(stems.sources.max(initial=-1) + 2)
        self._begins = np.searchsorted(stems.sources[self._members], numbers)

    def _each(self, word: str, counts: Counts, old: Array, *more: Any) -> Array:
        return super()._each(word, self._lent(counts), old, *more)

    def running(self) -> Running:
        return Running(self)  # what is lent depends on all counts: they cannot be left for later

    def _lent(self, counts: Counts) -> Array:
        given = np.asarray(counts)
        mass = np.empty(len(given))
        stems = self.stems
        lend(
            0,
            len(self._begins) - 1,
            self._members,
            self._begins,
            self.indptr,
            self.outcomes,
            stems.targets,
            stems.shares,
            int(stems.targets.max(initial=-1)) + 1,
            stems.strength,
            stems.least,
            given,
            mass,
        )
        return mass
