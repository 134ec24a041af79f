"""`DenoisingProjection`: marginalised stacked denoising."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils.extmath import row_norms

from softcount.adapt.base import ROWS, Projection
from softcount.adapt.data import Task
from softcount.adapt.parameters import DenoisingParameters
from softcount.core.estimate import NUMBER, Estimate
from softcount.core.types import FloatArray, IntArray
from softcount.kernels.threads import single_threaded
from softcount.labels.data import occurs

BLOCK = 5000
"""At most so many features are in one system of equations."""
RIDGE = 1e-5
"""Added to the diagonal of E[Q], in shares of its mean: without corruption, or where a feature
never occurs, the equations have no single solution."""
NOTHING = 1e-12
"""New features of which none varies more than this say nothing: what is left is rounding."""


@dataclass(frozen=True, eq=False)
class Layer:
    """x ↦ tanh of a reconstruction of some features from all: the mean over blocks k of
    W_k x_k + b_k, where x_k are the features of a block.

    ``blocks``   the columns of each block
    ``weights``  for each block (its columns, outputs), W_kᵀ
    ``bias``     the mean of b_k
    """

    blocks: Sequence[IntArray]
    weights: Sequence[FloatArray]
    bias: FloatArray

    def __call__(self, X: Any) -> FloatArray:
        """What is reconstructed of rows of a matrix: dense, (rows, outputs)."""
        found = np.zeros((X.shape[0], len(self.bias)), dtype=np.float32)
        for columns, weights in zip(self.blocks, self.weights, strict=True):
            found += _columns(X, columns) @ weights
        found /= len(self.blocks)
        found += self.bias
        return np.tanh(found, out=found)

    def back(self, slopes: FloatArray) -> FloatArray:
        """From slopes along what goes into tanh, (outputs, any), to those along the features."""
        found = np.zeros((sum(map(len, self.blocks)), slopes.shape[1]))
        for columns, weights in zip(self.blocks, self.weights, strict=True):
            found[columns] = weights @ slopes / len(self.blocks)
        return found


def learn_layer(X: Any, corruption: float, outputs: IntArray, most: int = BLOCK) -> Layer:
    """The layer that reconstructs the columns ``outputs`` of X from all of its columns, of which
    each is set to 0 with the probability ``corruption``.

    More columns than ``most`` are dealt out, by how frequent they are, into blocks of which each
    reconstructs alone (Chen et al. 2012, high dimensions: there blocks are drawn).

    >>> layer = learn_layer(np.array([[1.0, 1.0], [0.0, 0.0]]), 0.5, np.array([0]))
    >>> layer(np.array([[0.0, 1.0], [0.0, 0.0]])).round(2)
    array([[0.64],
           [0.24]], dtype=float32)
    """
    # the blocks: each gets some columns that are frequent and some that are rare
    order = np.argsort(-count_rows(X), kind="stable")
    n_blocks = -(-len(order) // most)
    blocks = [np.sort(order[number::n_blocks]) for number in range(n_blocks)]
    wanted, weights = _columns(X, outputs), []
    bias = np.zeros(len(outputs))
    for columns in blocks:
        part = _columns(X, columns)
        scatter, shared = _scatter(part, part, closed=True), _scatter(part, wanted)
        found = solve_denoising(scatter, shared, corruption)
        weights.append(found[:-1].astype(np.float32))
        bias += found[-1] / n_blocks
    return Layer(blocks, weights, bias.astype(np.float32))


def solve_denoising(scatter: FloatArray, shared: FloatArray, corruption: float) -> FloatArray:
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
    return np.asarray(cho_solve(factor, shared, overwrite_b=True, check_finite=False))


def count_rows(X: Any) -> FloatArray:
    """Count the rows in which each column is not 0."""
    return np.asarray((X != 0).sum(axis=0)).ravel()


def _columns(X: Any, columns: IntArray) -> Any:
    return X if np.array_equal(columns, np.arange(X.shape[1])) else X[:, columns]


def _scatter(X: Any, Y: Any, closed: bool = False) -> FloatArray:
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


class DenoisingProjection(DenoisingParameters, Projection):
    """Marginalised stacked denoising autoencoders (Chen, Xu, Weinberger & Sha 2012).

    A layer learns to restore items of all domains of which each word was dropped with the
    probability p, in expectation over all ways to drop words: a linear map W in closed form
    (`learn_layer`). h = tanh(W x) then has the common words that *could* stand in an item,
    also where it uses words that no label of the source ever explained. Further layers restore h.
    The classifier sees the words, and beside them a (h − mean of h) of every layer, where a makes
    all layers equally long.

    ``corruption``  p
    ``n_layers``    layers, each on what comes out of the one before
    ``n_outputs``   so many words are restored, from all: those most frequent where they are rarer,
                    in the sources or in the target
    ``presence``    whether layers read only if a word is in an item, or its number; None: only if,
                    where most numbers are 0, as those of words are
    ``scale``       how long rows of new features are (root mean square) beside those of words
    ``classifier``, ``vectorizer``  as for `SourceOnly`

    The defaults of ``corruption``, ``n_layers``, ``n_outputs`` and ``scale`` were chosen on reviews
    of products, by cross-validation of the source's labels and by reverse validation.

    Afterwards: ``layers_``, ``outputs_`` (the columns restored), ``presence_``, ``classifier_``.

    >>> texts = ["good lovely plot", "bad dull plot", "lovely sharp", "dull blunt"] * 2
    >>> model = DenoisingProjection().fit(texts, [1, 0, -1, -1] * 2)
    >>> model.predict(["sharp", "blunt"]).tolist()
    [1, 0]
    """

    layers_: list[Layer]
    outputs_: IntArray
    presence_: bool

    def _estimate(self, task: Task) -> Estimate:
        """Products of all words with all words, dense; layers, and what comes out of them."""
        (n, width), outputs = task.X.shape, min(self.n_outputs, task.X.shape[1])
        layers = NUMBER * self.n_layers * (2.0 * width * outputs + n * outputs)
        found = super()._estimate(task).plus(products=NUMBER * float(width) ** 2, layers=layers)
        return found.plus(width**2 * (width / 3.0 + outputs))

    def _fit_features(self, task: Task) -> None:
        """Learn the layers, and the mean and the length of what comes out of them."""
        n, width = task.X.shape
        rare = count_rows(task.X).sum() < 0.5 * n * width
        self.presence_ = bool(rare) if self.presence is None else self.presence
        X = self._input(task.X)
        in_source, in_target = count_rows(X[~task.in_target]), count_rows(X[task.in_target])
        common = np.argsort(-np.minimum(in_source, in_target), kind="stable")
        self.outputs_ = np.sort(common[: self.n_outputs])
        words = row_norms(task.X, squared=True).mean()
        self.layers_, means, factors = [], [], []
        outputs, found = self.outputs_, X
        for _ in range(self.n_layers):
            layer = learn_layer(found, self.corruption, outputs)
            found = layer(found)
            outputs = np.arange(len(outputs))
            mean = found.mean(axis=0, dtype=np.float64)
            # the mean of squared distances from it, row by row: a copy of all would be large
            spread = sum(float(np.square(row - mean).sum()) for row in found) / len(found)
            same = spread <= NOTHING * len(mean)
            factor = 0.0 if same else self.scale * np.sqrt(words / spread / self.n_layers)
            self.layers_.append(layer)
            means.append(mean)
            factors.append(np.full(len(mean), factor))
        self._mean, self._factor = np.concatenate(means), np.concatenate(factors)

    def _compute_features(self, X: Any) -> FloatArray:
        """h of all layers, side by side."""
        return np.hstack(self._hidden(self._input(X)))

    def _input(self, X: Any) -> Any:
        """What the first layer reads."""
        return occurs(X).astype(np.float32) if self.presence_ else X

    def _hidden(self, X: Any) -> list[FloatArray]:
        """What comes out of each layer."""
        steps = accumulate(self.layers_, lambda x, layer: layer(x), initial=X)
        return list(steps)[1:]

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """(classes, columns): the slope of a class's score along each word, the mean over the items
        of a domain in fit (None: of all targets; of all items, if none was of it).

        That is w_j + D_j / x_j: the weight of the word itself, and what it does by way of h. D_j
        is the slope of the score along the word's presence, and x_j, which presence adds to the
        column, is the mean size of its entries that are not 0 (1, if layers read the numbers).
        """
        words, new = self._split_weights()
        task = self._task
        of_domain = task.in_target if sample_domain is None else task.domain == sample_domain
        X, rows = task.X, np.flatnonzero(of_domain)
        X = self._input(X[rows] if len(rows) else X)
        with single_threaded():
            slopes = np.vstack([self._mean_slope(X, row * self._factor) for row in new])
        if self.presence_:
            total, count = np.asarray(abs(task.X).sum(axis=0)).ravel(), count_rows(task.X)
            slopes /= np.divide(total, count, out=np.ones_like(total), where=total != 0.0)
        return words + slopes

    def _mean_slope(self, X: Any, weights: FloatArray) -> FloatArray:
        """(columns,) The slope along what the first layer reads of the sum of h times weights, the
        mean over rows: from the last layer backwards."""
        parts = np.split(weights, len(self.layers_))
        total = np.zeros((len(parts[0]), 1))
        for start in range(0, X.shape[0], ROWS):
            hidden = self._hidden(X[start : start + ROWS])
            slope = np.zeros_like(hidden[0])
            for number in reversed(range(len(parts))):
                slope = (slope + parts[number]) * (1.0 - hidden[number] ** 2)
                if number:
                    slope = self.layers_[number].back(slope.T).T
            total += slope.sum(axis=0)[:, np.newaxis]
        return self.layers_[0].back(total / X.shape[0]).ravel()
