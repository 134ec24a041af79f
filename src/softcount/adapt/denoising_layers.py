"""Layers that undo a corruption which never takes place: its expectation has a closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from softcount.types import Array

BLOCK = 5000
"""At most so many features are in one system of equations."""
RIDGE = 1e-5
"""Added to the diagonal of E[Q], in shares of its mean: without corruption, or where a feature
never occurs, the equations have no single solution."""


@dataclass(frozen=True, eq=False)
class Layer:
    """x ↦ tanh of a reconstruction of some features from all: the mean over blocks k of
    W_k x_k + b_k, where x_k are the features of a block.

    ``blocks``   the columns of each block
    ``weights``  for each block (its columns, outputs), W_kᵀ
    ``bias``     the mean of b_k
    """

    blocks: Sequence[Array]
    weights: Sequence[Array]
    bias: Array

    def __call__(self, X: Any) -> Array:
        """What is reconstructed of rows of a matrix: dense, (rows, outputs)."""
        found = np.zeros((X.shape[0], len(self.bias)), dtype=np.float32)
        for columns, weights in zip(self.blocks, self.weights, strict=True):
            found += _columns(X, columns) @ weights
        found /= len(self.blocks)
        found += self.bias
        return np.tanh(found, out=found)

    def back(self, slopes: Array) -> Array:
        """From slopes along what goes into tanh, (outputs, any), to those along the features."""
        found = np.zeros((sum(map(len, self.blocks)), slopes.shape[1]))
        for columns, weights in zip(self.blocks, self.weights, strict=True):
            found[columns] = weights @ slopes / len(self.blocks)
        return found


def learn_layer(X: Any, corruption: float, outputs: Array, most: int = BLOCK) -> Layer:
    """The layer that reconstructs the columns ``outputs`` of X from all of its columns, of which
    each is set to 0 with the probability ``corruption``.

    More columns than ``most`` are dealt out, by how frequent they are, into blocks of which each
    reconstructs alone (Chen et al. 2012, high dimensions: there blocks are drawn).

    >>> layer = learn_layer(np.array([[1.0, 1.0], [0.0, 0.0]]), 0.5, np.array([0]))
    >>> layer(np.array([[0.0, 1.0], [0.0, 0.0]])).round(2)
    array([[0.64],
           [0.24]], dtype=float32)
    """
    wanted = _columns(X, outputs)
    blocks, weights = dealt(frequency(X), most), []
    bias = np.zeros(len(outputs))
    for columns in blocks:
        part = _columns(X, columns)
        found = denoising(_scatter(part, part, closed=True), _scatter(part, wanted), corruption)
        weights.append(found[:-1].astype(np.float32))
        bias += found[-1] / len(blocks)
    return Layer(blocks, weights, bias.astype(np.float32))


def denoising(scatter: Array, shared: Array, corruption: float) -> Array:
    """Wᵀ = E[Q]⁻¹ E[P]ᵀ: the least squares over all corruptions (Chen et al. 2012, equation 5).

    With q_i = 1 − p, and 1 for the constant, which comes last and is never corrupted:
    E[Q]_ij = S_ij q_i q_j, S_ii q_i on the diagonal, and E[P]_ji = S_ij q_i for the output j.

    ``scatter``  S, (features + 1, features + 1); it is overwritten
    ``shared``   the columns of the outputs in such a matrix, (features + 1, outputs); overwritten
    """
    kept = np.full(len(scatter), 1.0 - corruption)
    kept[-1] = 1.0
    diagonal = scatter.diagonal() * kept
    scatter *= kept
    scatter *= kept[:, np.newaxis]
    np.fill_diagonal(scatter, diagonal + RIDGE * diagonal.mean())
    shared *= kept[:, np.newaxis]
    # columns, as the solver wants them; a symmetric matrix is its own transpose
    factor = cho_factor(scatter.T, overwrite_a=True, check_finite=False)
    found: Array = cho_solve(factor, shared, overwrite_b=True, check_finite=False)
    return found


def dealt(count: Array, most: int) -> list[Array]:
    """Columns in blocks of at most ``most``; each gets some that are frequent and some that are
    rare.

    >>> dealt(np.array([9, 1, 7, 3]), 2)
    [array([0, 3]), array([1, 2])]
    """
    order = np.argsort(-count, kind="stable")
    n_blocks = -(-len(count) // most)
    return [np.sort(order[number::n_blocks]) for number in range(n_blocks)]


def frequency(X: Any) -> Array:
    """In how many rows each column is not 0."""
    found: Array = np.asarray((X != 0).sum(axis=0)).ravel()
    return found


def mean_and_spread(H: Array) -> tuple[Array, float]:
    """The mean of rows, and the mean of their squared distances from it.

    >>> mean_and_spread(np.array([[1.0, 2.0], [3.0, 2.0]]))
    (array([2., 2.]), 1.0)
    """
    mean = H.mean(axis=0, dtype=np.float64)
    spread = sum(float(np.square(row - mean).sum()) for row in H)
    return mean, spread / len(H)


def _columns(X: Any, columns: Array) -> Any:
    return X if np.array_equal(columns, np.arange(X.shape[1])) else X[:, columns]


def _scatter(X: Any, Y: Any, closed: bool = False) -> Array:
    """X̄ᵀY, or X̄ᵀȲ if ``closed``, where a bar puts a constant 1 at the end of every row."""
    if not sparse.issparse(X):  # single precision might leave E[Q] without a root
        X, Y = X.astype(np.float64), Y.astype(np.float64)
    width = Y.shape[1]
    found = np.empty((X.shape[1] + 1, width + closed), dtype=np.float64)
    inner = X.T @ Y
    found[:-1, :width] = inner.toarray() if sparse.issparse(inner) else inner
    found[-1, :width] = np.asarray(Y.sum(axis=0)).ravel()
    if closed:
        found[:-1, -1] = np.asarray(X.sum(axis=0)).ravel()
        found[-1, -1] = X.shape[0]
    return found
