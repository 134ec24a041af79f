"""Sticks broken by hand."""

from __future__ import annotations

import numpy as np


def broken(parts):
    """Weights from v_0 … v_{T−2} (along the last axis), by breaking the stick."""
    parts = np.asarray(parts, dtype=float)
    left, weights = np.ones(parts.shape[:-1]), []
    for k in range(parts.shape[-1]):
        weights.append(left * parts[..., k])
        left = left * (1 - parts[..., k])
    return np.stack([*weights, left], axis=-1)
