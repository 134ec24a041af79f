"""`DenoisingProjection`: marginalised stacked denoising autoencoders."""

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
from softcount.labels.data import indicator_matrix

BLOCK = 5000
"""Maximum number of features in one system of equations."""
RIDGE = 1e-5
"""Added to the diagonal of E[Q], relative to its mean: without corruption, or if a feature never
occurs, the equations have no unique solution."""
NOTHING = 1e-12
"""New features with a mean variance below this are constant up to rounding errors."""


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer: x ↦ tanh of a linear reconstruction of some features from all, the mean over blocks
    k of W_k x_k + b_k, where x_k are the features of block k.

    ``blocks``   the columns of each block
    ``weights``  for each block (its columns, outputs), W_kᵀ
    ``bias``     the mean of b_k
    """

    blocks: Sequence[IntArray]
    weights: Sequence[FloatArray]
    bias: FloatArray

    def __call__(self, X: Any) -> FloatArray:
        """Compute the outputs of rows of a matrix: dense, (rows, outputs)."""
        hidden = np.zeros((X.shape[0], len(self.bias)), dtype=np.float32)
        for columns, weights in zip(self.blocks, self.weights, strict=True):
            hidden += _columns(X, columns) @ weights
        hidden /= len(self.blocks)
        hidden += self.bias
        return np.tanh(hidden, out=hidden)

    def back(self, slopes: FloatArray) -> FloatArray:
        """Back-propagate gradients from the arguments of tanh, (outputs, any), to the features."""
        gradients = np.zeros((sum(map(len, self.blocks)), slopes.shape[1]))
        for columns, weights in zip(self.blocks, self.weights, strict=True):
            gradients[columns] = weights @ slopes / len(self.blocks)
        return gradients


def learn_layer(
    X: Any, corruption: float, outputs: IntArray, most: int = BLOCK, noise: str = "deletion"
) -> Layer:
    """Learn the layer that reconstructs the columns ``outputs`` of X from all of its columns.

    With ``noise="deletion"`` each of these is set to 0 with probability ``corruption``. With
    "additive", normal noise of one variance σ² is added to all of them; ``corruption`` is its share
    in the mean square of the result, σ² / (σ² + mean square of X).

    More columns than ``most`` are distributed by frequency over blocks, each of which reconstructs
    the outputs alone (Chen et al. 2012, for high dimensions; there blocks are drawn at random).

    >>> layer = learn_layer(np.array([[1.0, 1.0], [0.0, 0.0]]), 0.5, np.array([0]))
    >>> layer(np.array([[0.0, 1.0], [0.0, 0.0]])).round(2)
    array([[0.64],
           [0.24]], dtype=float32)
    """
    # each block gets some frequent and some rare columns
    order = np.argsort(-count_rows(X), kind="stable")
    n_blocks = -(-len(order) // most)
    blocks = [np.sort(order[number::n_blocks]) for number in range(n_blocks)]
    wanted, weights = _columns(X, outputs), []
    square = X.multiply(X).sum() if sparse.issparse(X) else np.square(X, dtype=np.float64).sum()
    added = float(square) / X.shape[1] * corruption / (1.0 - corruption)  # rows · σ²
    bias = np.zeros(len(outputs))
    for columns in blocks:
        part = _columns(X, columns)
        scatter, shared = _scatter(part, part, closed=True), _scatter(part, wanted)
        if noise == "additive":
            solution = solve_additive(scatter, shared, added)
        else:
            solution = solve_denoising(scatter, shared, corruption)
        weights.append(solution[:-1].astype(np.float32))
        bias += solution[-1] / n_blocks
    return Layer(blocks, weights, bias.astype(np.float32))


def solve_denoising(scatter: FloatArray, shared: FloatArray, corruption: float) -> FloatArray:
    """Solve the least squares in expectation over all corruptions: Wᵀ = E[Q]⁻¹ E[P]ᵀ (Chen et al.
    2012, equation 5).

    With q_i = 1 − p, and 1 for the constant, which comes last and is never corrupted:
    E[Q]_ij = S_ij q_i q_j, S_ii q_i on the diagonal, and E[P]_ji = S_ij q_i for output j.

    ``scatter``  S, (features + 1, features + 1); it is overwritten
    ``shared``   the columns of the outputs in such a matrix, (features + 1, outputs); overwritten
    """
    kept = np.full(len(scatter), 1.0 - corruption)
    kept[-1] = 1.0
    diagonal = scatter.diagonal() * kept
    scatter *= kept
    scatter *= kept[:, np.newaxis]
    np.fill_diagonal(scatter, diagonal)
    shared *= kept[:, np.newaxis]
    return _solve(scatter, shared)


def solve_additive(scatter: FloatArray, shared: FloatArray, added: float) -> FloatArray:
    """Solve the same in expectation over normal noise added to the features, not to the constant:
    E[Q] = S + n σ² I and E[P] = S, ridge regression.

    ``added``  n σ², for n rows
    """
    features = np.arange(len(scatter) - 1)
    scatter[features, features] += added
    return _solve(scatter, shared)


def _solve(scatter: FloatArray, shared: FloatArray) -> FloatArray:
    """Solve E[Q] Wᵀ = E[P]ᵀ, both overwritten."""
    diagonal = scatter.diagonal()
    np.fill_diagonal(scatter, diagonal + RIDGE * diagonal.mean())
    # transposed to column order for the solver; the matrix is symmetric
    factor = cho_factor(scatter.T, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, shared, overwrite_b=True, check_finite=False))


def count_rows(X: Any) -> FloatArray:
    """Count the rows in which each column is not 0."""
    return np.asarray((X != 0).sum(axis=0)).ravel()


def _columns(X: Any, columns: IntArray) -> Any:
    return X if np.array_equal(columns, np.arange(X.shape[1])) else X[:, columns]


def _scatter(X: Any, Y: Any, closed: bool = False) -> FloatArray:
    """Compute X̄ᵀY, or X̄ᵀȲ if ``closed``, where a bar appends a constant 1 to every row."""
    if not sparse.issparse(X):  # in single precision E[Q] might not be positive definite
        X, Y = X.astype(np.float64), Y.astype(np.float64)
    width = Y.shape[1]
    scatter = np.empty((X.shape[1] + 1, width + closed), dtype=np.float64)
    inner = X.T @ Y
    scatter[:-1, :width] = inner.toarray() if sparse.issparse(inner) else inner
    scatter[-1, :width] = np.asarray(Y.sum(axis=0)).ravel()
    if closed:
        scatter[:-1, -1] = np.asarray(X.sum(axis=0)).ravel()
        scatter[-1, -1] = X.shape[0]
    return scatter


class DenoisingProjection(DenoisingParameters, Projection):
    """Marginalised stacked denoising autoencoders (Chen, Xu, Weinberger & Sha 2012).

    A layer learns to reconstruct items of all domains from which each word was dropped with
    probability p, in expectation over all corruptions: a linear map W in closed form
    (`learn_layer`). h = tanh(W x) then indicates the common words that *could* occur in an item,
    even if its own words never occur in labelled items of the source. Further layers reconstruct h.
    The features of the classifier are the words, and a (h − mean of h) of every layer, where a
    gives all layers the same norm.

    ``noise``       "deletion" as above; "additive": normal noise is added to every value instead
    ``corruption``  p; of additive noise its share in the mean square of what layers then read
    ``n_layers``    number of layers, each applied to the output of the one before
    ``n_outputs``   number of words that are reconstructed from all words: those with the largest
                    minimum of their frequencies in the sources and in the target
    ``presence``    True: layers read whether a word occurs; False: its value; None: whether it
                    occurs, if most values are 0, as for words
    ``scale``       norm of the new features (root mean square) relative to that of the words
    ``classifier``, ``vectorizer``  as for `SourceOnly`

    The defaults of ``corruption``, ``n_layers``, ``n_outputs`` and ``scale`` were chosen on product
    reviews, by cross-validation on the source's labels and by reverse validation.

    Attributes after ``fit``: ``layers_``, ``outputs_`` (the reconstructed columns), ``presence_``,
    ``classifier_``.

    >>> texts = ["good lovely plot", "bad dull plot", "lovely sharp", "dull blunt"] * 2
    >>> model = DenoisingProjection().fit(texts, [1, 0, -1, -1] * 2)
    >>> model.predict(["sharp", "blunt"]).tolist()
    [1, 0]
    """

    layers_: list[Layer]
    outputs_: IntArray
    presence_: bool

    def _estimate(self, task: Task) -> Estimate:
        """Estimate the cost, including dense products of words, layers and their outputs."""
        (n, width), outputs = task.X.shape, min(self.n_outputs, task.X.shape[1])
        layers = NUMBER * self.n_layers * (2.0 * width * outputs + n * outputs)
        total = super()._estimate(task).plus(products=NUMBER * float(width) ** 2, layers=layers)
        return total.plus(width**2 * (width / 3.0 + outputs))

    def _fit_features(self, task: Task) -> None:
        """Learn the layers, and the mean and the norm of their outputs."""
        n, width = task.X.shape
        rare = count_rows(task.X).sum() < 0.5 * n * width
        self.presence_ = bool(rare) if self.presence is None else self.presence
        X = self._input(task.X)
        in_source, in_target = count_rows(X[~task.in_target]), count_rows(X[task.in_target])
        common = np.argsort(-np.minimum(in_source, in_target), kind="stable")
        self.outputs_ = np.sort(common[: self.n_outputs])
        words = row_norms(task.X, squared=True).mean()
        self.layers_, means, factors = [], [], []
        outputs, hidden = self.outputs_, X
        for _ in range(self.n_layers):
            layer = learn_layer(hidden, self.corruption, outputs, noise=self.noise)
            hidden = layer(hidden)
            outputs = np.arange(len(outputs))
            mean = hidden.mean(axis=0, dtype=np.float64)
            # total variance, row by row, because a copy of the whole array would be large
            spread = sum(float(np.square(row - mean).sum()) for row in hidden) / len(hidden)
            is_constant = spread <= NOTHING * len(mean)
            factor = 0.0 if is_constant else self.scale * np.sqrt(words / spread / self.n_layers)
            self.layers_.append(layer)
            means.append(mean)
            factors.append(np.full(len(mean), factor))
        self._mean, self._factor = np.concatenate(means), np.concatenate(factors)

    def _compute_features(self, X: Any) -> FloatArray:
        """Compute h of all layers, concatenated."""
        return np.hstack(self._hidden(self._input(X)))

    def _input(self, X: Any) -> Any:
        """Return the input of the first layer."""
        return indicator_matrix(X).astype(np.float32) if self.presence_ else X

    def _hidden(self, X: Any) -> list[FloatArray]:
        """Return the outputs of each layer."""
        steps = accumulate(self.layers_, lambda x, layer: layer(x), initial=X)
        return list(steps)[1:]

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """Return the mean derivative of each class's score with respect to each word, (classes,
        columns), over the training items of a domain (None: of all targets; of all items, if the
        domain has none).

        That is w_j + D_j / x_j: the word's own weight, and its effect through h. D_j is the
        derivative of the score with respect to the word's presence, and x_j, the change of the
        column when the word is present, is the mean size of its non-zero entries (1, if layers
        read the values).
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
        """Return the gradient of the sum of h times weights with respect to the input of the first
        layer, averaged over rows, (columns,): by back-propagation from the last layer."""
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
