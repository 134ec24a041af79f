"""The tension of the diagonal against scipy, and its draws against a grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.optimize import minimize_scalar

from softcount.align.families import HIGHEST, DiagonalTension, SentenceShapes

Lengths = list[tuple[int, int]]
some_shapes = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4, unique=True
)


def log_odds(l: int, m: int, tension: float) -> np.ndarray:
    """log p(i | j) without the empty word, (l, m)."""
    i, j = np.mgrid[:l, :m]
    logs = -tension * np.abs((i + 0.5) / l - (j + 0.5) / m)
    return logs - np.log(np.exp(logs).sum(axis=0))


def objective(shapes: Lengths, counts: list[np.ndarray], tension: float) -> float:
    return sum(
        float((c[:-1] * log_odds(l, m, tension)).sum())
        for (l, m), c in zip(shapes, counts, strict=True)
    )


def made(
    shapes: Lengths, seed: int, near: float
) -> tuple[DiagonalTension, list[np.ndarray], np.ndarray]:
    """A family, and random counts that prefer the diagonal by so much."""
    rng, shapes = np.random.default_rng(seed), sorted(shapes)
    family = DiagonalTension(SentenceShapes.of(*np.array(shapes).T))
    counts = []
    for l, m in shapes:
        words = 20.0 * rng.random((l, m)) * np.exp(log_odds(l, m, near))
        counts.append(np.vstack([words, rng.random((1, m))]))
    return family, counts, np.concatenate([c.reshape(-1) for c in counts])


@given(some_shapes, st.integers(0, 10**6), st.sampled_from([0.0, 4.0, 30.0]), st.floats(0.0, 100.0))
@settings(max_examples=150, deadline=None)
def test_the_best_tension(shapes: Lengths, seed: int, near: float, start: float) -> None:
    family, counts, flat = made(shapes, seed, near)
    shapes = sorted(shapes)
    found = family.maximise(flat, np.array([start]), np.random.default_rng(0))
    assert 0.0 <= found[0] <= HIGHEST
    best = minimize_scalar(
        lambda x: -objective(shapes, counts, x), bounds=(0.0, HIGHEST), options={"xatol": 1e-9}
    )
    value = objective(shapes, counts, float(found[0]))
    assert value >= -best.fun - 1e-9 * (1.0 + abs(best.fun))
    assert value >= objective(shapes, counts, start) - 1e-9


@given(some_shapes, st.integers(0, 10**6), st.floats(0.0, 100.0))
@settings(max_examples=50, deadline=None)
def test_the_expected_log(shapes: Lengths, seed: int, tension: float) -> None:
    family, counts, flat = made(shapes, seed, 3.0)
    expected = objective(sorted(shapes), counts, tension)
    assert family.expected_log(flat, np.array([tension])) == pytest.approx(expected, rel=1e-9)


def test_counts_on_the_diagonal_alone_pull_as_far_as_can_be() -> None:
    family = DiagonalTension(SentenceShapes.of(np.array([4]), np.array([4])))
    counts = np.vstack([np.eye(4), np.zeros((1, 4))]).reshape(-1)
    found = family.maximise(counts, np.array([0.0]), np.random.default_rng(0))
    assert found[0] == pytest.approx(HIGHEST, rel=1e-6)


def test_counts_off_the_diagonal_leave_no_tension() -> None:
    family = DiagonalTension(SentenceShapes.of(np.array([4]), np.array([4])))
    counts = np.vstack([np.eye(4)[::-1], np.zeros((1, 4))]).reshape(-1)
    assert family.maximise(counts, np.array([50.0]), np.random.default_rng(0))[0] < 1e-9


@pytest.mark.parametrize("old", [0.0, 3.0, 100.0])
def test_counts_that_say_nothing_do_no_harm(old: float) -> None:
    """One source word, or no counts at all."""
    for l, m in ((1, 3), (3, 3)):
        family = DiagonalTension(SentenceShapes.of(np.array([l]), np.array([m])))
        found = family.maximise(family.zeros(), np.array([old]), np.random.default_rng(0))
        assert 0.0 <= found[0] <= HIGHEST
        drawn = family.draw(family.zeros(), np.array([old]), np.random.default_rng(0))
        assert 0.0 <= drawn[0] <= HIGHEST


def test_draws_have_the_posterior_of_a_grid() -> None:
    shapes: Lengths = [(3, 4), (5, 5)]
    family, counts, flat = made(shapes, 4, 5.0)
    grid = np.linspace(0.0, HIGHEST, 20_001)
    logs = np.array([objective(shapes, counts, x) for x in grid[:4001]])
    density = np.exp(logs - logs.max())
    density /= trapezoid(density, grid[:4001])
    assert density[-1] < 1e-12  # nothing is beyond
    mean = trapezoid(density * grid[:4001], grid[:4001])
    spread = np.sqrt(trapezoid(density * (grid[:4001] - mean) ** 2, grid[:4001]))
    rng, draws, now = np.random.default_rng(1), [], np.array([60.0])
    for _ in range(6000):
        now = family.draw(flat, now, rng)
        draws.append(float(now[0]))
    kept = np.array(draws[200:])
    error = spread * np.sqrt(_time(kept) / len(kept))
    assert abs(kept.mean() - mean) < 5.0 * error
    assert kept.std() == pytest.approx(spread, rel=0.1)


def _time(chain: np.ndarray) -> float:
    """How many draws one independent draw is worth."""
    x = chain - chain.mean()
    ahead = [float((x[:-lag] * x[lag:]).mean() / (x**2).mean()) for lag in range(1, 200)]
    positive = next((n for n, value in enumerate(ahead) if value < 0.0), len(ahead))
    return 1.0 + 2.0 * sum(ahead[:positive])
