"""The nearest distribution that satisfies constraints on expectations, by brute force.

The hidden values of each item are listed one by one, with p(x, z) and the features of each; then
min Σ_i KL(q_i ‖ p_i) subject to linear constraints is solved for q itself, not for multipliers, by
sequential quadratic programming.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, minimize


@dataclass(frozen=True)
class Listed:
    """The hidden values of one item: p(x, z) of each, (values,), and features, (values, F)."""

    joint: Sequence[float]
    features: Sequence[Sequence[float]]
    weight: float = 1.0


@dataclass(frozen=True)
class Nearest:
    """The nearest distribution of each item, and log p(x) − Σ KL."""

    q: list[np.ndarray]
    objective: float


def project(items: Sequence[Listed], low: Sequence[float], high: Sequence[float]) -> Nearest:
    """Return the distributions nearest to the posteriors with low ≤ Σ_i E[f] ≤ high."""
    ends = np.cumsum([len(item.joint) for item in items])[:-1]
    logs = np.concatenate([np.log(np.array(item.joint, float)) for item in items])
    weights = np.concatenate([np.full(len(item.joint), item.weight) for item in items])
    features = weights[:, None] * np.concatenate([np.array(i.features, float) for i in items])
    owner = np.concatenate([np.full(len(item.joint), n) for n, item in enumerate(items)])
    sums = (owner == np.arange(len(items))[:, None]).astype(float)

    def cost(q: np.ndarray) -> tuple[float, np.ndarray]:
        q = np.maximum(q, 1e-300)
        return float(weights @ (q * (np.log(q) - logs))), weights * (np.log(q) - logs + 1.0)

    start = np.concatenate([np.full(len(i.joint), 1.0 / len(i.joint)) for i in items])
    limits = [LinearConstraint(sums, 1.0, 1.0)]
    equal = np.asarray(low) == np.asarray(high)
    for some in (equal, ~equal):
        if some.any():
            bounds = np.asarray(low)[some], np.asarray(high)[some]
            limits.append(LinearConstraint(features.T[some], *bounds))
    found = minimize(
        cost,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * len(start),
        constraints=limits,
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    assert found.success or found.status == 8, found.message  # 8: no better point along a line
    return Nearest(np.split(found.x, ends), -float(found.fun))
