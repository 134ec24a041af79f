"""Estimators of word alignment and small texts for their tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import softcount as sc
from tests.align.pairs import PAIRS

ONE_WAY: dict[str, Callable[..., Any]] = {
    "IBM1": sc.align.IBM1,
    "IBM2": sc.align.IBM2,
    "Diagonal": sc.align.Diagonal,
    "HMMAligner": sc.align.HMMAligner,
}
BOTH: dict[str, Callable[..., Any]] = {
    "Aligner": sc.Aligner,
    "GibbsAligner": sc.align.GibbsAligner,
}
MODELS = ONE_WAY | BOTH

LEARNERS: dict[str, Any] = {
    "usual": None,
    "EM": sc.EM(max_iter=4, tol=0),
    "HardEM": sc.HardEM(max_iter=3),
    "annealed": sc.EM(max_iter=3, temper=(0.3, 0.6, 1.0)),
    "OnlineEM": sc.OnlineEM(batch_size=9, max_iter=2),
    "IncrementalEM": sc.IncrementalEM(batch_size=9, max_iter=2),
    "MonteCarloEM": sc.MonteCarloEM(samples=3, max_iter=3),
    "VariationalBayes": sc.VariationalBayes(max_iter=3),
    "StochasticVB": sc.StochasticVB(batch_size=9, max_iter=2),
    "Gibbs": sc.Gibbs(max_iter=8, n_init=2),
}

AWKWARD = [
    ("", "T1 T2"),
    ("S1", "T1"),
    ("never seen", "nie gesehen"),
    ("S1 S2", ""),
    ("S3", "T1 T2 T3 T4 T5 T6 T7 T8 T9"),
    ("S3 S4 S5 S6 S7 S8 S9", "T4"),
    ("S2 S2 S2", "T2 T2"),
    ("", ""),
    ("S1 new S2", "T1 T2 neu"),
]
"""Empty sides, words and lengths never seen, one word against many."""


def directions(model: Any) -> Iterator[Any]:
    """A model's own directions, or itself."""
    if hasattr(model, "forward_"):
        yield from (model.forward_, model.backward_)
    else:
        yield model


def tables(model: Any) -> dict[str, np.ndarray]:
    """All parameters."""
    return {name: np.asarray(values) for name, values in model.raw_params_.items()}


def assert_same(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    """The same numbers to the bit."""
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        assert values.dtype == theirs[name].dtype, name
        np.testing.assert_array_equal(values, theirs[name], err_msg=name)


def assert_alike(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    """The same matrices to the bit."""
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)


def many(n: int = 250, words: int = 60, seed: int = 5) -> list[tuple[str, str]]:
    """So many links that threads are called."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(n):
        chosen = [min(int(rng.expovariate(0.1)), words - 1) for _ in range(rng.randint(3, 14))]
        others = [f"T{word}" for word in chosen if rng.random() < 0.95] or ["t"]
        pairs.append((" ".join(f"S{word}" for word in chosen), " ".join(others)))
    return pairs


__all__ = [
    "AWKWARD",
    "BOTH",
    "LEARNERS",
    "MODELS",
    "ONE_WAY",
    "PAIRS",
    "assert_alike",
    "assert_same",
    "directions",
    "many",
    "tables",
]
