"""The vector primitives against numpy, on every shape of row."""

from __future__ import annotations

import numpy as np
import pytest

from softcount.kernels.jit import njit
from softcount.kernels.lanes import WIDTH, gather, least, meet, peak


@njit
def _gather(matrix, row, operand, weight, start, stop):
    gather(matrix, row, operand, weight, start, stop)


@njit
def _meet(outside, row, inside, operand, weight, start, stop, into):
    meet(outside, row, inside, operand, weight, start, stop, into)


@njit
def _peak(matrix, row):
    return peak(matrix, row)


@njit
def _least(matrix, row):
    return least(matrix, row)


@pytest.mark.parametrize("vectors", [1, 2, 3, 4, 5, 8, 9])
def test_primitives(vectors):
    rng = np.random.default_rng(vectors)
    lanes = vectors * WIDTH
    matrix, other = rng.random((6, lanes)), rng.random((6, lanes))
    operand = np.array([4, 2, 2, 0, 5], np.uint32)
    weight = rng.random(5)
    expected = matrix[3] + weight[1:4] @ matrix[operand[1:4]]
    before = matrix.copy()
    _gather(matrix, 3, operand, weight, 1, 4)
    np.testing.assert_allclose(matrix[3], expected)
    np.testing.assert_array_equal(np.delete(matrix, 3, 0), np.delete(before, 3, 0))
    into = np.ones(5)
    _meet(matrix, 1, other, operand, weight, 0, 4, into)
    np.testing.assert_allclose(into[:4], 1 + weight[:4] * (other[operand[:4]] @ matrix[1]))
    assert into[4] == 1.0
    assert _peak(matrix, 2) == matrix[2].max()
    assert _least(matrix, 2) == matrix[2].min()


def test_sums_have_one_order():
    """Numbers so unequal that any other order of addition would give other bits."""
    lanes = 4 * WIDTH
    above = np.zeros((1, lanes))
    above[0] = 1.0
    rng = np.random.default_rng(0)
    below = 10.0 ** rng.uniform(-12, 12, (1, lanes))
    into = np.zeros(1)
    _meet(above, 0, below, np.zeros(1, np.uint32), np.ones(1), 0, 1, into)
    a, b, c, d = below.reshape(4, WIDTH)
    eight = (a + b) + (c + d)
    four = eight[:4] + eight[4:]
    two = four[:2] + four[2:]
    assert into[0] == two[0] + two[1]
