"""Counts of translations that words of one stem lend each other."""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import njit
from softcount.types import Array


@njit
def lend(
    first: int,
    last: int,
    members: Array,
    begins: Array,
    indptr: Array,
    targets: Array,
    target_stems: Array,
    shares: Array,
    n_stems: int,
    strength: float,
    least: float,
    counts: Array,
    out: Array,
) -> None:
    """``out`` ← counts + strength · T(f's stem | e's stem) · p(f | its stem).

    For groups ``first`` to ``last`` of source words of one stem. T comes from the counts of all of
    them, ``least`` added to each; ``shares`` is p(f | its stem).
    """
    mass = np.zeros(n_stems)
    seen = np.zeros(n_stems, np.bool_)
    for g in range(first, last):
        rows = members[begins[g] : begins[g + 1]]
        total = 0.0
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                stem = target_stems[targets[k]]
                mass[stem] += counts[k]
                total += counts[k]
                if not seen[stem]:
                    seen[stem] = True
                    mass[stem] += least
                    total += least
        scale = strength / total if total > 0.0 else 0.0
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                f = targets[k]
                out[k] = counts[k] + scale * mass[target_stems[f]] * shares[f]
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                stem = target_stems[targets[k]]
                mass[stem] = 0.0
                seen[stem] = False
