"""Every way to learn, with few steps."""

from __future__ import annotations

from typing import Any

import softcount as sc


def learners(batch_size: int, sweeps: int) -> dict[str, Any]:
    """By name; mini-batches of so many sentences, samplers of so many sweeps."""
    batches: dict[str, Any] = {"batch_size": batch_size, "max_iter": 2}
    chains: dict[str, Any] = {"max_iter": sweeps, "n_init": 2}
    return {
        "usual": None,
        "EM": sc.EM(max_iter=4, tol=0),
        "restarts": sc.EM(max_iter=3, tol=0, n_init=3),
        "Squarem": sc.EM(max_iter=4, schedule=sc.learners.Squarem()),
        "annealed": sc.EM(max_iter=4, temper=(0.3, 0.6, 1.0)),
        "HardEM": sc.HardEM(max_iter=3),
        "OnlineEM": sc.OnlineEM(**batches),
        "IncrementalEM": sc.IncrementalEM(**batches),
        "MonteCarloEM": sc.MonteCarloEM(samples=3, max_iter=3),
        "VariationalBayes": sc.VariationalBayes(max_iter=4),
        "StochasticVB": sc.StochasticVB(**batches),
        "Gibbs": sc.Gibbs(**chains),
        "CollapsedGibbs": sc.CollapsedGibbs(**chains),
    }
