"""Tables with stems: an M-step is a plain sum over words that begin alike."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.align.families import Stems, StemTable
from softcount.core.types import SparseCounts
from softcount.families.large import LargeTable

RNG = np.random.default_rng(0)
WORDS = ["aab", "aac", "aa", "ab", "bbb", "bba", "c", "cab", "caa"]


class Case(NamedTuple):
    """Words, the pairs that occur together (source None: the empty word), and settings."""

    sources: list[str]
    targets: list[str]
    pairs: list[tuple[int, int]]
    counts: np.ndarray
    often: np.ndarray
    letters: int
    strength: float
    least: float
    mask: np.ndarray | None

    @property
    def indptr(self) -> np.ndarray:
        rows = [row for row, _ in self.pairs]
        return np.searchsorted(rows, np.arange(len(self.sources) + 2)).astype(np.int64)

    @property
    def outcomes(self) -> np.ndarray:
        return np.array([f for _, f in self.pairs], np.uint16)

    def stems(self, strength: float | None = None) -> Stems:
        return Stems.of(
            self.sources,
            self.targets,
            self.often,
            self.letters,
            self.strength if strength is None else strength,
            self.least,
        )

    def table(self, kind: type = StemTable, **more: Any) -> Any:
        return kind(self.indptr, self.outcomes, 1.0 + self.least, self.mask, **more)


@st.composite
def cases(draw: Any) -> Case:
    some = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6, unique=True)
    sources, targets = draw(some), draw(some)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    pairs = [
        (row, f)
        for row in range(len(sources) + 1)
        for f in range(len(targets))
        if row == len(sources) or rng.random() < 0.6
    ]
    counts = 4.0 * rng.random(len(pairs)) * (rng.random(len(pairs)) < 0.7)
    mask = rng.random(len(pairs)) < 0.8 if rng.random() < 0.4 else None
    return Case(
        sources,
        targets,
        pairs,
        counts,
        rng.integers(1, 9, len(targets)),
        int(rng.integers(1, 4)),
        float(rng.choice([0.5, 5.0])),
        float(rng.choice([0.0, 0.1])),
        mask,
    )


def lent(case: Case) -> dict[tuple[int, int], float]:
    """c + A · T(s(f) | s(e)) · p(f | s(f)), with dictionaries."""

    def source_stem(row: int) -> str | None:
        return None if row == len(case.sources) else case.sources[row][: case.letters]

    def target_stem(f: int) -> str:
        return case.targets[f][: case.letters]

    joint: Counter[Any] = Counter()
    for (row, f), count in zip(case.pairs, case.counts, strict=True):
        joint[source_stem(row), target_stem(f)] += count
    for event in {(source_stem(row), target_stem(f)) for row, f in case.pairs}:
        joint[event] += case.least  # type: ignore[assignment]
    totals: Counter[Any] = Counter()
    for (stem, _), mass in joint.items():
        totals[stem] += mass
    words: Counter[str] = Counter()
    for f, often in enumerate(case.often.tolist()):
        words[target_stem(f)] += often
    found = {}
    for (row, f), count in zip(case.pairs, case.counts, strict=True):
        stem, other = source_stem(row), target_stem(f)
        chance = joint[stem, other] / totals[stem] if totals[stem] else 0.0
        found[row, f] = count + case.strength * chance * case.often[f] / words[other]
    return found


def normalised(case: Case, old: np.ndarray) -> np.ndarray:
    """The M-step: rows of (what was lent + a), those without mass stay."""
    mass = lent(case)
    allowed = np.ones(len(case.pairs), bool) if case.mask is None else case.mask
    totals: Counter[int] = Counter()
    for pair, can_be in zip(case.pairs, allowed, strict=True):
        totals[pair[0]] += (mass[pair] + case.least) * can_be
    new = old.copy()
    for k, (pair, can_be) in enumerate(zip(case.pairs, allowed, strict=True)):
        if totals[pair[0]]:
            new[k] = (mass[pair] + case.least) * can_be / totals[pair[0]]
    return new


@given(cases())
@settings(max_examples=150, deadline=None)
def test_an_m_step(case: Case) -> None:
    table = case.table(stems=case.stems())
    old = table.uniform()
    expected = normalised(case, old)
    index = np.flatnonzero(case.counts)
    sparse = SparseCounts(index, case.counts[index], len(case.counts))
    for counts in (case.counts, sparse):
        found = table.maximise(counts, old, RNG)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_every_other_word_sees_the_same_counts(case: Case) -> None:
    table, plain = case.table(stems=case.stems()), case.table(LargeTable)
    old = plain.uniform()
    mass = np.array([lent(case)[pair] for pair in case.pairs])
    for word in ("mean_field", "draw"):
        found = getattr(table, word)(case.counts, old, np.random.default_rng(3))
        expected = getattr(plain, word)(mass, old, np.random.default_rng(3))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(table.mean(case.counts, old), plain.mean(mass, old), rtol=1e-12)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_stepwise_averages_are_lent_from_as_well(case: Case) -> None:
    table = case.table(stems=case.stems())
    old = table.uniform()
    average = table.running()
    index = np.flatnonzero(case.counts)
    average.blend(SparseCounts(index, case.counts[index], len(case.counts)), 1.0)
    found = np.asarray(average.params("maximise", old, RNG))
    np.testing.assert_allclose(found, normalised(case, old), rtol=1e-12, atol=1e-15)


@given(cases())
@settings(max_examples=40, deadline=None)
def test_nothing_is_lent_without_strength(case: Case) -> None:
    table, plain = case.table(stems=case.stems(0.0)), case.table(LargeTable)
    old = plain.uniform()
    found, expected = (t.maximise(case.counts, old, RNG) for t in (table, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_relatives_help() -> None:
    """ "hauses", seen once with two words, is known by "haus"."""
    sources, targets = ["haus", "hauses"], ["house", "old"]
    often = np.array([10, 5])
    stems = Stems.of(sources, targets, often, 4, 5.0, 0.0)
    table = StemTable(np.array([0, 2, 4, 4]), np.array([0, 1, 0, 1], np.uint16), 1.0, stems=stems)
    new = table.maximise(np.array([9.0, 1.0, 0.5, 0.5]), table.uniform(), RNG)
    # T(house | haus-) = 9.5 / 11, so that (0.5 + 5 · 9.5 / 11) / 6
    assert new[2] == pytest.approx((0.5 + 5.0 * 9.5 / 11.0) / 6.0)


def test_the_empty_word_has_no_relatives() -> None:
    stems = Stems.of(["a", "b"], ["x"], np.array([1]), 1, 5.0, 0.0)
    assert stems.sources.tolist() == [0, 1, 2]
    assert Stems.of([], [], np.zeros(0, int), 4, 5.0, 0.0).sources.tolist() == [0]


def test_half_the_bits() -> None:
    stems = Stems.of(["a"], ["x", "xy"], np.array([1, 3]), 1, 2.0, 0.0)
    given_ = (np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.uint16))
    counts = np.array([1.0, 0.0, 1.0, 1.0])
    short, long = (StemTable(*given_, stems=stems, dtype=d) for d in ("float32", "float64"))
    found, expected = (t.maximise(counts, t.uniform(), RNG) for t in (short, long))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # one stem on either side: a word's share of it is its frequency
    np.testing.assert_allclose(expected[:2], [(1 + 2 * 0.25) / 3, 2 * 0.75 / 3])


def test_counts_become_parameters_in_place() -> None:
    """Also where words of one stem are not next to each other, and blocks are small."""
    stems = Stems.of([*"abab"], [*"xyx"], np.array([1, 3, 2]), 1, 2.0, 0.1)
    indptr, outcomes = np.array([0, 3, 5, 7, 8, 11]), np.array([0, 1, 2, 0, 1, 1, 2, 0, 0, 1, 2])
    table = StemTable(indptr, outcomes, stems=stems, block=4)
    counts, old = RNG.uniform(0.0, 3.0, 11), table.uniform()
    wanted = table.maximise(counts, old, RNG)
    found = table.consume("maximise", counts, old, RNG)
    assert found is counts
    assert found.tobytes() == wanted.tobytes()
