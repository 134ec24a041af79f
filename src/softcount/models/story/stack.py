"""Small circuits put on top of one another, to be run by one call.

Data of many shapes (sentence pairs, say) make many circuits with few items each. What such a
circuit costs is the call, not the work.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.kernels.circuit import LEAF, PRODUCT, SCALED, SUM, Rows
from softcount.types import Array


def stacked(circuits: Sequence[Rows], n_leaves: Sequence[int], n_constants: Sequence[int]) -> Rows:
    """One circuit with the rows, leaves, constants and roots of all, in order."""
    row = _starts([len(c.kind) for c in circuits])
    alternative = _starts([len(c.operand) for c in circuits])
    listed = _starts([len(c.constant) for c in circuits])
    leaf, constant = _starts(n_leaves), _starts(n_constants)
    arguments = [
        _moved(c, *starts) for c, *starts in zip(circuits, row, alternative, leaf, strict=False)
    ]
    return Rows(
        np.concatenate([c.kind for c in circuits]),
        np.concatenate([x for x, _ in arguments]),
        np.concatenate([y for _, y in arguments]),
        _joined([c.operand for c in circuits], row).astype(np.uint32),
        np.append(_joined([c.ends[:-1] for c in circuits], listed), listed[-1]),
        _joined([c.constant for c in circuits], constant),
        np.append(_joined([c.users[:-1] for c in circuits], alternative), alternative[-1]),
        _joined([c.use for c in circuits], alternative),
        _joined([c.parent for c in circuits], row).astype(np.uint32),
        _joined([c.roots for c in circuits], row),
    )


def _starts(sizes: Sequence[int]) -> list[int]:
    """Where each begins when they stand one after the other, and where the last one ends."""
    return [0, *np.cumsum(sizes).tolist()]


def _joined(arrays: Sequence[Array], starts: Sequence[int]) -> Array:
    moved = (array + start for array, start in zip(arrays, starts, strict=False))
    return np.concatenate([part.astype(np.int64) for part in moved])


def _moved(c: Rows, row: int, alternative: int, leaf: int) -> tuple[Array, Array]:
    """What a circuit's rows are made of, where it stands now."""
    x_moves, y_moves = np.zeros(SUM + 1, np.int64), np.zeros(SUM + 1, np.int64)
    x_moves[[LEAF, SCALED, PRODUCT, SUM]] = leaf, leaf, row, alternative
    y_moves[[SCALED, PRODUCT, SUM]] = row, row, alternative
    return c.x + x_moves[c.kind], c.y + y_moves[c.kind]
