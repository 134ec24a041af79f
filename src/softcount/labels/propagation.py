"""`LabelPropagation`: labels spread along a graph of nearest neighbours.

The fixed point is the harmonic function (Zhu, Ghahramani & Lafferty 2003): with the transition
matrix T = D⁻¹W, where D has the row sums of the weights W, and labelled rows l clamped,

    F_u = T_uu F_u + T_ul Y_l,    F_u = (I − T_uu)⁻¹ T_ul Y_l.

Sweeps that replace each row by the normalised mean of its neighbours bring label mass to every row
that can be reached, and then converge slowly: a small change in a sweep does not imply that the
limit is close. So sweeps are only used to spread the mass; then conjugate gradients solve the same
equations, (D_uu − W_uu) F_u = W_ul Y_l.

The error of the result can be bounded. The residual r = T_uu F + T_ul Y − F, the change in a sweep,
and the error are related by e = (I − T_uu)⁻¹ r, hence Σ_c |e_ic| ≤ b = h_i max_j Σ_c |r_jc|, where
h = (I − T_uu)⁻¹ 1 is the expected number of steps of a random walk from an item to a label. h is
one more column of the same system. Finally the probabilities of each item are normalised. Their sum
was at least 1 − b, so that the error of each is at most b / (1 − b).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted, validate_data

from softcount._version import __version__
from softcount.core.bounds import MAX_WEIGHT, MIN_WEIGHT, within_range
from softcount.core.errors import DataError, LearnerError, StoreError, brief
from softcount.core.estimate import NUMBER, Estimate, announce, estimate_rows
from softcount.core.estimator import all_or_nothing
from softcount.core.parameters import check_parameters, generator
from softcount.core.posteriors import Posteriors
from softcount.core.store import AGAIN, SaveableTables, Stored, numbers, strings
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.core.verdict import Verdict
from softcount.kernels.threads import single_threaded, usable_cpus
from softcount.labels.data import SemiSupervisedClassifier
from softcount.labels.history import History
from softcount.labels.kernels import BLOCK, CHUNK, QUERIES, DenseRows, NeighbourPairs, SparseRows
from softcount.labels.parameters import PropagationParameters
from softcount.mixture.data import UNKNOWN, Labels, read_labels
from softcount.mixture.labelled_scores import warn_of_unlabelled_fold
from softcount.mixture.naive_bayes import read_classes
from softcount.text import documents as texts

POWERS = 3
"""Power iterations of the SVD: neighbours depend on the leading axes, which converge first."""
SMALLEST, LARGEST = 1e-10, 1e140
"""Between these, squares of numbers keep full precision, and long sums of them are finite."""
SWEEPS = 100
"""Number of sweeps over which the estimate of work per sweep spreads the neighbour search."""
TINY = 1e-300
CLOSE = 1e-6
"""Relative accuracy to which the numbers of steps to a label must be known."""


class UnreachedWarning(UserWarning):
    """Warning that no label reaches some items, which therefore get the prior.

    ``items``  the numbers of these items, from 0
    """

    def __init__(self, text: str, items: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.items = items


# Graphs: symmetric, sparse, without self-loops


def make_symmetric(graph: Any) -> Any:
    """Symmetrise a graph with the larger of the two weights of each edge; remove self-loops."""
    symmetric = graph.maximum(graph.T).tocsr()
    symmetric.setdiag(0.0)
    symmetric.eliminate_zeros()
    symmetric.sort_indices()
    return symmetric


def read_graph(X: Any) -> Any:
    """Check and symmetrise a precomputed graph: an n × n matrix of non-negative edge weights.

    >>> read_graph(np.array([[5.0, 1.0], [0.0, 0.0]])).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    graph = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    if graph.shape[0] != graph.shape[1]:
        raise DataError(
            f"a graph of shape {graph.shape} is not square",
            "weights='precomputed' takes one row and one column for every item",
        )
    check_edges(graph)
    return make_symmetric(graph)


def check_edges(graph: Any) -> None:
    """Raise if any edge weight is negative or not finite, or if their sum is not finite."""
    if graph.nnz and not (np.isfinite(graph.data).all() and graph.data.min() >= 0.0):
        raise DataError(
            "Negative values in data: an edge weight is negative or not finite",
            "give weights of 0 (no edge) or more",
        )
    with np.errstate(over="ignore"):
        total = graph.data.sum()
    if not np.isfinite(total):
        raise DataError(
            "the sum of the edge weights overflows", "only ratios matter: scale them down"
        )


# The harmonic function


class HarmonicSolution(NamedTuple):
    """The harmonic function on the free items, and the status of the solver."""

    posteriors: FloatArray  # (free items, classes)
    steps: FloatArray  # (free items,): expected steps of a random walk to a label
    error: float
    """Upper bound on the distance of any probability from its limit."""
    n_iter: int
    """Number of sweeps and steps of conjugate gradients."""
    verdict: Verdict


def solve_harmonic(
    graph: Any,
    given: FloatArray,
    free: IntArray,
    start: FloatArray,
    tol: float,
    max_iter: int,
    watch: Callable[[FloatArray, BoolArray], None],
) -> HarmonicSolution:
    """Solve for the class probabilities of the ``free`` items, all connected to a labelled one.

    ``graph``     symmetric matrix of edge weights (items, items)
    ``given``     (items, classes): probabilities of the labelled items; other rows are ignored
    ``free``      numbers of the free items
    ``start``     (classes,): probabilities of free items that no sweep reaches before ``max_iter``
    ``tol``       stop when the bound on the error is at most this
    ``max_iter``  maximum number of sweeps and steps of conjugate gradients
    ``watch``     callback after each sweep or step, with the probabilities of the free items, and
                  which of them have been reached
    """
    between = graph[free][:, free].tocsr()
    sums = np.asarray(graph[free].sum(axis=1)).reshape(-1, 1)
    clamped = given.copy()
    clamped[free] = 0.0
    incoming = (graph[free] @ clamped) / sums

    def sweep(values: FloatArray) -> FloatArray:
        """Replace every row by the weighted mean of its neighbours: T values + incoming."""
        moved: FloatArray = between @ values
        moved /= sums
        moved += incoming
        return moved

    posteriors = np.zeros_like(incoming)
    n_reached = n_iter = 0
    while n_iter < max_iter:
        moved = sweep(posteriors)
        totals = moved.sum(axis=1)
        reached = totals > 0.0
        posteriors = moved / np.where(reached, totals, 1.0)[:, None]
        watch(posteriors, reached)
        n_iter += 1
        before, n_reached = n_reached, int(reached.sum())
        if n_reached in (before, len(reached)):
            break
    posteriors[posteriors.sum(axis=1) == 0.0] = start

    # conjugate gradients, with the number of steps to a label as the last column
    ones = np.ones(len(posteriors))
    incoming = np.column_stack([incoming, ones])
    initial = np.column_stack([posteriors, ones])
    values = initial.copy()
    _, exponent = np.frexp(sums.max(initial=TINY))
    weight = np.ldexp(sums, -exponent)  # an exact scaling, so that no square overflows
    with np.errstate(over="ignore", invalid="ignore"):
        while True:  # usually once; restarted if rounding errors accumulate in the residuals
            residual = sweep(values) - values
            error = _bound_error(values, residual)
            if error <= tol or n_iter >= max_iter:
                break
            direction, power = residual.copy(), (weight * residual * residual).sum(axis=0)
            first_error = error
            while n_iter < max_iter and _bound_error(values, residual) > tol:
                image = direction - (between @ direction) / sums
                curvature = (weight * direction * image).sum(axis=0)
                step = power / np.maximum(curvature, TINY)
                values += step * direction
                residual -= step * image
                last_power, power = power, (weight * residual * residual).sum(axis=0)
                direction *= power / np.maximum(last_power, TINY)
                direction += residual
                n_iter += 1
                watch(_normalise(np.maximum(values[:, :-1], 0.0)), np.ones(len(values), bool))
            error = _bound_error(values, sweep(values) - values)
            if not error <= 0.5 * first_error:
                break  # no progress: tol is below the rounding errors, or values are NaN
    if not np.isfinite(values).all():  # the weights differ by too many orders of magnitude
        values, error = initial, np.inf
    verdict = Verdict.CONVERGED if error <= tol else Verdict.OUT_OF_STEPS
    posteriors = _normalise(np.maximum(values[:, :-1], 0.0))
    return HarmonicSolution(posteriors, values[:, -1], error, n_iter, verdict)


# The algorithm as textbooks print it


def sweep_as_printed(graph: Any, values: FloatArray, free: IntArray) -> FloatArray:
    """Do one iteration of label propagation as printed: T Q on the free rows, normalised.

    T_ij = w_ij / Σ_k w_kj: the columns of T add up to 1 (Zhu & Ghahramani 2002; Eisenstein 2019,
    eq. 5.33–5.36). So neighbours of few neighbours count for more than others, and the limit is
    not the harmonic function.

    ``values``  Q, (items, classes); rows that are not free stay as they are
    """
    degrees = np.asarray(graph.sum(axis=0)).reshape(-1, 1)
    spread = values / np.where(degrees > 0.0, degrees, 1.0)
    moved = values.copy()
    rows = graph[free] @ spread
    moved[free] = np.where(rows.any(axis=1, keepdims=True), _normalise(rows), values[free])
    return moved


def sweep_harmonic(graph: Any, values: FloatArray, free: IntArray) -> FloatArray:
    """Do one iteration towards the harmonic function: the free rows become D⁻¹ W Q."""
    moved = values.copy()
    sums = np.asarray(graph[free].sum(axis=1)).reshape(-1, 1)
    rows = (graph[free] @ values) / np.where(sums > 0.0, sums, 1.0)
    moved[free] = np.where(sums > 0.0, rows, values[free])
    return moved


def propagate_as_printed(
    graph: Any,
    given: FloatArray,
    free: IntArray,
    tol: float,
    max_iter: int,
    watch: Callable[[FloatArray, BoolArray], None],
) -> HarmonicSolution:
    """Iterate `sweep_as_printed` from 1/K until no probability changes by more than ``tol``.

    The arguments are those of `solve_harmonic`. How far the limit is, is not known.
    """
    values = given.copy()
    values[free] = 1.0 / given.shape[1]
    n_iter, change, every = 0, np.inf, np.ones(len(free), bool)
    while n_iter < max_iter and change > tol:
        moved = sweep_as_printed(graph, values, free)
        change = float(np.abs(moved - values).max(initial=0.0))
        values, n_iter = moved, n_iter + 1
        watch(values[free], every)
    verdict = Verdict.CONVERGED if change <= tol else Verdict.OUT_OF_STEPS
    return HarmonicSolution(values[free], np.full(len(free), np.nan), change, n_iter, verdict)


def _bound_error(values: FloatArray, residual: FloatArray) -> float:
    """Bound the distance of any probability from its limit; infinite until the steps are known."""
    slack = float(np.abs(residual[:, -1]).max(initial=0.0))
    if slack > CLOSE:
        return np.inf
    # since (I − T) h ≥ 1 − slack everywhere, h / (1 − slack) is an upper bound on the steps
    most_steps = float(values[:, -1].max(initial=0.0)) / (1.0 - slack)
    bound = most_steps * float(np.abs(residual[:, :-1]).sum(axis=1).max(initial=0.0))
    return bound / (1.0 - bound) if bound < 1.0 else np.inf


def _normalise(rows: FloatArray) -> FloatArray:
    """Divide each row by its sum; rows of zeros stay zero."""
    totals = rows.sum(axis=1, keepdims=True)
    normalised: FloatArray = rows / np.where(totals > 0.0, totals, 1.0)
    return normalised


def class_prior(
    class_mass: bool | Mapping[Any, float], classes: Array, labels: FloatArray
) -> FloatArray:
    """Return the class prior: from a mapping, or (labels of the class + 1) / (labels + classes).

    ``class_mass``  the parameter of `LabelPropagation`
    ``labels``      (labelled items, classes): distributions over classes, one-hot for hard labels

    >>> class_prior(True, np.array(["a", "b"]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    array([0.75, 0.25])
    """
    if not isinstance(class_mass, Mapping):
        prior = labels.sum(axis=0) + 1.0
    else:
        names = list(map(str, classes.tolist()))
        by_name = {str(name): p for name, p in class_mass.items()}  # model files have names as text
        unmatched = set(by_name) ^ set(names)
        if unmatched:
            raise LearnerError(
                f"class_mass and the labels do not agree on {brief(sorted(unmatched)[0])}",
                "give the proportion of every label that occurs, and of no other",
            )
        try:
            prior = np.array([by_name[name] for name in names], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            prior = np.full(len(names), np.nan)
        if not (prior.min() >= MIN_WEIGHT and prior.max() <= MAX_WEIGHT):
            raise LearnerError(
                f"class_mass={brief(dict(class_mass))}: invalid proportions",
                f"give numbers above 0, from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}",
            )
    normalised: FloatArray = prior / prior.sum()
    return normalised


# Texts as tf-idf, and the settings in a model file that give new texts the same weights

SWITCHES = ("sublinear_tf", "use_idf", "smooth_idf")


def default_vectorizer(documents: Sequence[Any]) -> TfidfVectorizer:
    """Make a vectorizer with weights (1 + log tf) · idf, rows of norm 1, and softcount's words."""
    analyzer = texts.default_vectorizer(documents).analyzer
    return TfidfVectorizer(analyzer=analyzer, sublinear_tf=True)


def store_vectorizer(vectorizer: Any) -> tuple[dict[str, FloatArray], dict[str, Any]]:
    """Return the arrays and metadata of a vectorizer (or None) for a model file."""
    if vectorizer is None:
        return {}, {"vectorizer": None, "vocabulary": None, "weighing": None}
    names = texts.vocabulary_of(vectorizer)
    arrays, counter, weighing = {}, vectorizer, None
    if type(vectorizer) is TfidfVectorizer:
        shared = CountVectorizer().get_params()
        plain = {name: value for name, value in vectorizer.get_params().items() if name in shared}
        counter = CountVectorizer(**plain)
        weighing = {name: getattr(vectorizer, name) for name in (*SWITCHES, "norm")}
        arrays = {"idf": vectorizer.idf_} if vectorizer.use_idf else {}
    return arrays, {
        "vocabulary": None if names is None else list(map(str, names)),
        "vectorizer": texts.describe_vectorizer(counter),
        "weighing": weighing,
    }


def restore_vectorizer(stored: Stored, own: Any, n_words: int) -> Any:
    """Restore the vectorizer described in a file; ``own``: the user's, which takes precedence."""
    described, weighing = stored.meta["vectorizer"], stored.meta["weighing"]
    vocabulary = strings(stored.meta["vocabulary"], n_words, "words")
    if own is not None:
        return texts.adopt_vectorizer(own, vocabulary, n_words)
    if described is None:
        return None
    counter = texts.restore_vectorizer(described, vocabulary)
    if weighing is None:
        return counter
    is_valid = (
        isinstance(weighing, dict)
        and set(weighing) == {*SWITCHES, "norm"}
        and all(isinstance(weighing[name], bool) for name in SWITCHES)
        and weighing["norm"] in ("l1", "l2", None)
    )
    if not is_valid:
        raise StoreError("the file does not say how words are weighted", AGAIN)
    settings = {**counter.get_params(), **weighing}
    settings.pop("dtype", None)
    vectorizer = TfidfVectorizer(**settings)
    vectorizer._validate_vocabulary()
    if vectorizer.use_idf:
        vectorizer.idf_ = numbers(stored, "idf", (n_words,))
    return vectorizer


# Rows to be compared


def _scale_rows(X: Any) -> Any:
    """Scale rows to norm 1, without overflow or underflow."""
    largest = _largest_entries(X)
    positive = largest[largest > 0.0]
    if len(positive) and not SMALLEST < positive.min() <= positive.max() < LARGEST:
        # scaled here first, because scikit-learn treats very small dense rows as zero
        divisors = np.where(largest > 0.0, largest, 1.0)
        if sparse.issparse(X):
            X = sparse.csr_matrix(
                (X.data / np.repeat(divisors, np.diff(X.indptr)), X.indices, X.indptr), X.shape
            )
        else:
            X = X / divisors[:, None]
    return normalize(X)


def _check_distances(X: Any) -> None:
    """Raise if entries are so large that squared distances overflow."""
    if not (_largest_entries(X) < LARGEST).all():
        raise DataError(
            "some numbers are so large that distances overflow", "scale the columns first"
        )


def _largest_entries(X: Any) -> FloatArray:
    """Return the largest absolute value of each row."""
    largest = abs(X).max(axis=1)
    return np.asarray(largest.toarray() if sparse.issparse(largest) else largest).reshape(-1)


class LabelPropagation(PropagationParameters, SaveableTables, SemiSupervisedClassifier):
    """Label propagation on a neighbour graph: each unlabelled item gets the weighted mean of
    its neighbours' labels (Zhu & Ghahramani 2002; Zhu, Ghahramani & Lafferty 2003).

    Two items are joined if either is among the nearest neighbours of the other. No item is its own
    neighbour, and labelled items keep their labels.

    ``weights``       edge weights: "cosine"; "gaussian": exp(−α‖x − y‖²); "precomputed": X is the
                      graph, with one row and one column per item, 0 where there is no edge
    ``alpha``         α; None: one over the mean squared distance between neighbours
    ``n_neighbors``   number of nearest neighbours of each item; the search is exact
    ``svd``           reduce the items to this many dimensions first; None: do not
    ``class_mass``    scale the classes so that their masses match the prior. True: the smoothed
                      proportions of the labels; a mapping from labels to proportions; False: do not
                      scale
    ``algorithm``     "harmonic": the harmonic function, each item the weighted mean of its
                      neighbours, with transitions D⁻¹W (Zhu, Ghahramani & Lafferty 2003).
                      "propagation": the algorithm as textbooks print it, whose T_ij = w_ij / Σ_k
                      w_kj has columns that add up to 1, with normalised rows (Zhu & Ghahramani
                      2002; Eisenstein 2019, eq. 5.33–5.36); ``class_mass`` is then only used if it
                      is a mapping. The two have different limits
    ``tol``           stop when every probability is known to be within this distance of its limit;
                      with "propagation", when no probability changes by more than this
    ``max_iter``      maximum number of sweeps
    ``vectorizer``    turns texts into rows; None: tf-idf with 1 + log tf
    ``n_jobs``        number of threads; None: one per processor. The result does not depend on it
    ``random_state``  seed of the SVD

    X is a list of texts, a sparse matrix or an array. Unknown labels are −1 or None; a matrix of
    probabilities (items × classes) gives soft labels. Attributes after ``fit``: ``transduction_``
    (a label for every item), ``label_distributions_`` (class probabilities), ``graph_``,
    ``history_`` (when each item was reached), ``steps_to_label_`` (expected number of steps of a
    random walk to a label), ``verdict_``. Items that no label reaches, such as empty ones, get the
    prior, with an `UnreachedWarning`.

    >>> texts = ["good fine", "bad awful", "fine great", "awful dreadful", "great film"]
    >>> model = LabelPropagation().fit(texts, ["+", "-", None, None, None])
    >>> model.transduction_.tolist()
    ['+', '-', '+', '-', '+']
    >>> model.predict(["so awful"]).tolist()
    ['-']
    """

    n_features_in_: int
    vectorizer_: Any
    raw_params_: Mapping[str, Array] = MappingProxyType({})
    """Empty: the model has no parameter tables."""
    axes_: FloatArray | None
    """(dimensions, columns): axes of the SVD; None without SVD."""
    alpha_: float | None
    _rows: SparseRows | DenseRows | None
    """The training rows that new items are compared with; None for a precomputed graph."""
    _nonempty: IntArray
    """Item numbers of these rows; empty items are left out, because they have no neighbours."""
    _given: FloatArray
    """(items, classes): the given labels, zeros where there is none; not saved."""
    _harmonic: FloatArray
    """(items, classes): probabilities before class-mass normalisation."""

    # learning
    def fit(self, X: Any, y: Any = None, *, gold: Any = None) -> Self:
        """Propagate the labels to all items; ``gold``: true labels, for the accuracy by sweep."""
        with all_or_nothing(self):
            self._check_settings()
            matrix = self._read(X, first=True)
            labels = read_labels(y, matrix.shape[0])
            warn_of_unlabelled_fold()
            announce(self._estimate(matrix, len(labels.classes)), ())
            self._build_graph(matrix)
            self._propagate(labels, gold)
        self._warn(~self.reached_, "items", stacklevel=3)
        return self

    def estimate(self, X: Any, y: Any = None) -> Estimate:
        """Estimate the memory that `fit` will need, and its work per sweep, without fitting."""
        other = copy(self)
        other._check_settings()
        matrix = other._read(X, first=True)
        return other._estimate(matrix, len(read_labels(y, matrix.shape[0]).classes))

    def _estimate(self, matrix: Any, n_classes: int) -> Estimate:
        """Estimate the cost of the neighbour search, the symmetric graph and the posteriors."""
        n, width = matrix.shape
        if self.weights == "precomputed":
            return estimate_rows(matrix, n_classes)
        edges = n * min(self.n_neighbors, n)
        width = width if self.svd is None else self.svd
        dense = self.svd is not None or not sparse.issparse(matrix)
        searched = n * width if dense else 0
        apart = min(edges, CHUNK) * width if dense and self.weights == "gaussian" else 0
        block = (QUERIES * min(n, BLOCK) * usable_cpus()) if dense else 0
        estimate = estimate_rows(matrix, n_classes, neighbours=10.0 * NUMBER * edges)
        work = 2.0 * n * n * width if dense else 2.0 * matrix.nnz**2 / max(width, 1)
        return estimate.plus(work / SWEEPS, search=NUMBER * (2.0 * searched + 3.0 * apart + block))

    def _check_settings(self) -> None:
        check_parameters(self)
        if self.weights == "precomputed" and self.svd is not None:
            raise LearnerError(
                "svd cannot be applied to a precomputed graph",
                "leave out svd or weights='precomputed'",
            )

    def _read(self, X: Any, *, first: bool) -> Any:
        """Convert items to a matrix, sparse or dense; ``first``: these are the training items."""
        documents = texts.find_texts(X)
        if documents is None:
            if first:
                self.vectorizer_ = None
        elif self.weights == "precomputed":
            raise DataError(
                "weights='precomputed' needs a graph, but these are texts",
                "give weights='cosine' to compare them",
            )
        elif first:
            self.vectorizer_ = texts.copy_vectorizer(self.vectorizer, documents, default_vectorizer)
            X = texts.learn_words(self.vectorizer_, documents)
        elif getattr(self, "vectorizer_", None) is None:
            raise DataError(
                "this model was fitted to a matrix, and cannot read texts",
                "pass the same columns, or fit the model to texts",
            )
        else:
            X = texts.count_words(self.vectorizer_, documents)
        with within_range("the data"):
            return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)

    def _build_graph(self, matrix: Any) -> None:
        """Build the graph of the training items, and keep the rows for comparison with new ones."""
        self.alpha_ = self.axes_ = self._rows = None
        if self.weights == "precomputed":
            self.graph_ = read_graph(matrix)
            return
        if self.svd is not None:
            self._learn_axes(matrix, self.svd)
        rows, nonempty = self._place(matrix)
        self._nonempty = np.flatnonzero(nonempty)
        self._rows = self._make_searchable(rows[self._nonempty])
        row, other, value = self._find_nearest(None)
        if self.weights == "gaussian":
            mean = float(value.mean()) if len(value) else 0.0
            self.alpha_ = self.alpha or (1.0 / mean if mean > 0.0 else 1.0)
            value = np.exp(-self.alpha_ * value)
        kept = value > 0.0
        n = matrix.shape[0]
        directed = sparse.csr_matrix((value[kept], (row[kept], other[kept])), shape=(n, n))
        self.graph_ = make_symmetric(directed)

    def _learn_axes(self, X: Any, wanted: int) -> None:
        """Learn the axes of a truncated SVD, ``wanted`` of them or as many as possible."""
        if sparse.issparse(X):
            n_rows_with = np.bincount(X.indices[X.data != 0.0], minlength=X.shape[1])
        else:
            n_rows_with = np.asarray(np.count_nonzero(X, axis=0))
        # columns that occur in a single row join no items, and texts have many of them
        shared = np.flatnonzero(n_rows_with > 1)
        n_axes = min(wanted, X.shape[0] - 1, len(shared) - 1)
        if n_axes < 1:
            raise DataError(
                f"items of shape {X.shape} are too few for an SVD",
                "it needs two items, and two columns that several items have: leave svd out",
            )
        seed = int(generator(self.random_state).integers(2**31))
        # scikit-learn divides by the total variance, which may be 0; that result is not used here
        with single_threaded(), np.errstate(all="ignore"):
            svd = TruncatedSVD(n_axes, n_iter=POWERS, random_state=seed)
            svd.fit(_scale_rows(X)[:, shared])
        self.axes_ = np.zeros((n_axes, X.shape[1]))
        self.axes_[:, shared] = svd.components_

    def _place(self, X: Any) -> tuple[Any, BoolArray]:
        """Return the rows in the space where they are compared, and which of them can be compared.

        Empty rows of words cannot. A dense row of zeros is a valid point if weights are gaussian.
        """
        if sparse.issparse(X):
            X = X.tocsr(copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
        nonempty: BoolArray = _largest_entries(X) > 0.0
        if self.axes_ is not None:
            with single_threaded():
                X = np.asarray(_scale_rows(X) @ self.axes_.T)
        elif not sparse.issparse(X) and self.weights == "gaussian":
            nonempty = np.ones(len(X), dtype=bool)
        if self.weights == "cosine":
            return _scale_rows(X), nonempty
        _check_distances(X)
        return X, nonempty

    def _make_searchable(self, rows: Any) -> SparseRows | DenseRows:
        kind = SparseRows if sparse.issparse(rows) else DenseRows
        return kind(rows, self.weights == "gaussian")

    def _find_nearest(self, queries: Any) -> NeighbourPairs:
        """Find the nearest training items of some rows; None: of the training items themselves."""
        assert self._rows is not None
        k = min(self.n_neighbors, max(len(self._nonempty), 1))
        pairs = self._rows.nearest(queries, k, self.n_jobs or usable_cpus())
        row = pairs.row if queries is not None else self._nonempty[pairs.row]
        return NeighbourPairs(row, self._nonempty[pairs.other], pairs.value)

    def _propagate(self, labels: Labels, gold: Any) -> None:
        """Solve for the class probabilities of all items, with class-mass normalisation.

        Class-mass normalisation (Zhu, Ghahramani & Lafferty 2003): with the mass m_c = Σ_i F_ic of
        class c on the unlabelled items, and the proportion q_c that it should have, unlabelled
        items are classified by q_c F_ic / m_c.
        """
        known = labels.known
        n, K = len(known), len(labels.classes)
        self.classes_ = labels.classes
        given = np.zeros((n, K))
        hard = np.flatnonzero(labels.numbers >= 0)
        given[hard, labels.numbers[hard]] = 1.0
        if labels.soft_labels is not None:
            given += np.nan_to_num(labels.soft_labels)
        self.prior_ = class_prior(self.class_mass, labels.classes, given[known])
        _, component = sparse.csgraph.connected_components(self.graph_, directed=False)
        self.reached_ = np.isin(component, component[known])
        free = np.flatnonzero(self.reached_ & ~known)
        initial = np.where(known, labels.likeliest(), UNKNOWN)
        self.history_ = History.begin(self.classes_, initial, gold)

        def watch(posteriors: FloatArray, reached: BoolArray) -> None:
            confidence, chosen = np.ones(n), initial.copy()
            confidence[free] = posteriors.max(axis=1)
            chosen[free[reached]] = posteriors[reached].argmax(axis=1)
            self.history_.record(chosen, confidence, "graph")

        self._given, printed = given, self.algorithm == "propagation"
        limits = (self.tol, self.max_iter, watch)
        if printed:
            solution = propagate_as_printed(self.graph_, given, free, *limits)
        else:
            solution = solve_harmonic(self.graph_, given, free, self.prior_, *limits)
        self.verdict_, self.error_ = solution.verdict, solution.error
        self.n_iter_ = solution.n_iter
        self.steps_to_label_ = np.where(known, 0.0, np.inf)
        self.steps_to_label_[free] = solution.steps
        self._harmonic = np.where(self.reached_[:, None], given, self.prior_)
        self._harmonic[free] = solution.posteriors
        mass = solution.posteriors.sum(axis=0)
        # a class without any mass cannot be scaled to have some
        scales = isinstance(self.class_mass, Mapping) or (bool(self.class_mass) and not printed)
        can_scale = scales and mass.all()
        self.factors_ = self.prior_ * mass.sum() / mass if can_scale else np.ones(K)
        final = self._harmonic.copy()
        final[free] = _normalise(solution.posteriors * self.factors_)
        self.label_distributions_ = final
        chosen = np.where(known, labels.likeliest(), final.argmax(axis=1))
        self.transduction_ = self.classes_[chosen]
        view = np.where(self.reached_, "class mass" if scales else "graph", "prior")
        self.history_.record(chosen, final.max(axis=1), view.tolist())
        settings = [
            str(self.weights),
            *([f"{self.n_neighbors} neighbours"] if self.weights != "precomputed" else []),
            *([f"SVD {self.svd}"] if self.svd is not None else []),
            *(["class mass"] if scales else []),
            *([self.algorithm] if printed else []),
        ]
        self.signature_ = (
            f"softcount {__version__} · label propagation · {', '.join(settings)} · "
            f"tol {self.tol:g} · seed {self.random_state}"
        )

    def iterations(self) -> Iterator[Posteriors]:
        """Yield the class probabilities of all training items, iteration by iteration.

        The first are those before the first sweep, 1/K for items without a label. There is one
        table per sweep of the model's ``algorithm`` (for "harmonic", sweeps of Q ← D⁻¹W Q, which
        tend to what `fit` solves for), without class masses, and no end: stop when you like.

        >>> chain = np.diag(np.ones(3), 1)
        >>> settings = {"weights": "precomputed", "class_mass": False}
        >>> model = LabelPropagation(algorithm="propagation", **settings).fit(chain, [0, -1, -1, 1])
        >>> from itertools import islice
        >>> for table in islice(model.iterations(), 3):
        ...     print(table[1].round(4).tolist())
        [0.0, 0.5, 0.5, 1.0]
        [0.0, 0.1667, 0.8333, 1.0]
        [0.0, 0.2778, 0.7222, 1.0]
        """
        self._require_fit()
        if not hasattr(self, "_given"):
            raise DataError("the graph is not saved with a model", "fit it again")
        values: FloatArray = self._given.copy()
        free = np.flatnonzero(~self._given.any(axis=1))
        values[free] = 1.0 / values.shape[1]
        sweep = sweep_as_printed if self.algorithm == "propagation" else sweep_harmonic
        numbers = np.arange(len(values))
        names, index = tuple(self.classes_.tolist()), {"item": numbers.tolist()}
        while True:
            yield Posteriors(values, names, index, "label", numbers)
            values = sweep(self.graph_, values, free)

    # prediction
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of new items, from their nearest training items."""
        return self._posteriors(X)

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each new item."""
        posteriors = self._posteriors(X)
        chosen: Array = self.classes_[posteriors.argmax(axis=1)]
        return chosen

    def _posteriors(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        matrix = self._read(X, first=False)
        if self.weights == "precomputed":
            weights = sparse.csr_matrix(matrix)
            check_edges(weights)
        else:
            rows, nonempty = self._place(matrix)
            where = np.flatnonzero(nonempty)
            row, other, value = self._find_nearest(rows[where])
            if self.alpha_ is not None:  # only ratios matter: give the nearest neighbour weight 1
                nearest = np.full(len(where), np.inf)
                np.minimum.at(nearest, row, value)
                value = np.exp(-self.alpha_ * (value - nearest[row]))
            shape = (matrix.shape[0], len(self._harmonic))
            weights = sparse.csr_matrix((value, (where[row], other)), shape=shape)
        weights = weights[:, self.reached_] if not self.reached_.all() else weights
        sums = weights @ self._harmonic[self.reached_]
        totals = np.asarray(weights.sum(axis=1)).reshape(-1)
        isolated = totals == 0.0
        posteriors = _normalise(sums / np.where(isolated, 1.0, totals)[:, None] * self.factors_)
        posteriors[isolated] = self.prior_
        self._warn(isolated, "new items", stacklevel=4)
        return posteriors

    def _warn(self, unreached: BoolArray, what: str, stacklevel: int) -> None:
        """Warn of items that no label reaches, if there are any."""
        items = np.flatnonzero(unreached).tolist()
        if items:
            what, whom = (what, "them") if len(items) > 1 else (what.removesuffix("s"), "it")
            text = (
                f"{len(items):,} {what} got the prior, because no label reaches {whom}: empty, or "
                "without a path of neighbours to a label"
            )
            warnings.warn(UnreachedWarning(text, items), stacklevel=stacklevel)

    # model files: without graph and history
    def _require_fit(self) -> None:
        check_is_fitted(self)

    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays, facts = store_vectorizer(self.vectorizer_)
        arrays |= {
            "shares": self._harmonic,
            "reached": self.reached_.astype(np.uint8),
            "prior": self.prior_,
            "factors": self.factors_,
        }
        rows: Any = None if self._rows is None else self._rows.matrix
        if rows is not None:
            arrays["says"] = self._nonempty.astype(np.int64)
        if self.axes_ is not None:
            arrays["axes"] = self.axes_
        if sparse.issparse(rows):
            arrays["rows.indptr"] = rows.indptr.astype(np.int64)
            arrays["rows.columns"] = rows.indices.astype(np.int32)
            arrays["rows.values"] = rows.data
        elif rows is not None:
            arrays["rows"] = rows
        return arrays, {
            **facts,
            "classes": self.classes_.tolist(),
            "kind_of_classes": str(self.classes_.dtype),
            "alpha": self.alpha_,
            "has_rows": rows is not None,
            "is_sparse": sparse.issparse(rows),
        }

    def rebuild(self, stored: Stored, given: Mapping[str, Any]) -> SimpleNamespace:
        meta, V = stored.meta, self.n_features_in_
        self._check_settings()
        self.classes_ = read_classes(meta["classes"], meta["kind_of_classes"])
        self.vectorizer_ = restore_vectorizer(stored, given.get("vectorizer"), V)
        K = len(self.classes_)
        self._harmonic = numbers(stored, "shares", (None, K))
        self.prior_ = numbers(stored, "prior", (K,))
        for rows in (self._harmonic, self.prior_[None]):
            totals = rows.sum(axis=1)
            if not len(rows) or rows.min() < 0.0 or not np.allclose(totals, 1.0, atol=1e-6):
                raise DataError("class probabilities do not sum to one")
        n = len(self._harmonic)
        reached = numbers(stored, "reached", (n,))
        self.reached_ = reached == 1.0
        self.factors_ = numbers(stored, "factors", (K,))
        is_valid = self.reached_.any() and (self.reached_ | (reached == 0.0)).all()
        if self.factors_.min() <= 0.0 or not is_valid:
            raise DataError("a class has no mass, or no item is reached by a label")
        self.transduction_ = self.classes_[self._harmonic.argmax(axis=1)]
        self.axes_ = None if self.svd is None else numbers(stored, "axes", (None, V))
        self.alpha_, self._rows = meta["alpha"], None
        if (self.alpha_ is None) != (self.weights != "gaussian"):
            raise DataError("there must be an alpha if, and only if, weights are gaussian")
        if self.alpha_ is not None and not 0.0 < float(self.alpha_) < np.inf:
            raise DataError(f"invalid alpha: {self.alpha_!r}")
        if meta["has_rows"] is not (self.weights != "precomputed"):
            raise DataError("the rows that new items are compared with are missing")
        if meta["has_rows"]:
            self._restore_rows(stored, n)
        elif n != V:
            raise DataError("the graph has a different number of items")
        return SimpleNamespace(families={})  # there are no tables

    def _restore_rows(self, stored: Stored, n_items: int) -> None:
        """Restore the training rows that new items are compared with."""
        stored_items = numbers(stored, "says", (None,))
        self._nonempty = stored_items.astype(np.int64)
        is_rising = (np.diff(self._nonempty) > 0).all() and (self._nonempty == stored_items).all()
        n = len(stored_items)
        if n and not (is_rising and self._nonempty[0] >= 0 and self._nonempty[-1] < n_items):
            raise DataError("item numbers are invalid")
        width = self.n_features_in_ if self.axes_ is None else len(self.axes_)
        if stored.meta["is_sparse"] is True:
            indptr = numbers(stored, "rows.indptr", (n + 1,))
            columns = numbers(stored, "rows.columns", (None,))
            values = numbers(stored, "rows.values", (len(columns),))
            is_valid = (
                (indptr[0] == 0 and indptr[-1] == len(columns) and (np.diff(indptr) >= 0).all())
                and (columns == np.floor(columns)).all()
                and (indptr == np.floor(indptr)).all()
                and (not len(columns) or 0 <= columns.min() <= columns.max() < width)
            )
            if not is_valid:
                raise DataError("the sparse rows are invalid")
            parts = (values, columns.astype(np.int32), indptr.astype(np.int64))
            rows = sparse.csr_matrix(parts, shape=(n, width))
            rows.sum_duplicates()
        else:
            rows = numbers(stored, "rows", (n, width))
        _check_distances(rows)
        self._rows = self._make_searchable(rows)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "factors_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.weights == "precomputed"
        return tags
