"""`LabelPropagation`: labels that spread along a graph of nearest neighbours.

The fixed point is the harmonic function (Zhu, Ghahramani & Lafferty 2003): with the transition
matrix T = D⁻¹W, D the sums of the rows of the weights W, and labelled rows l clamped,

    F_u = T_uu F_u + T_ul Y_l,    F_u = (I − T_uu)⁻¹ T_ul Y_l.

Sweeps of "each row becomes the mean of its neighbours, renormalised" bring label mass to every row
that it can reach, and then mix slowly: a small change in a sweep is no sign of being close to the
limit. So the sweeps only spread the mass; from there on conjugate gradients solve the same
equations, (D_uu − W_uu) F_u = W_ul Y_l.

How far off the result can be is known. A sweep's change r = T_uu F + T_ul Y − F and the error are
related by e = (I − T_uu)⁻¹ r, hence Σ_c |e_ic| ≤ b = h_i max_j Σ_c |r_jc|, where h = (I − T_uu)⁻¹ 1
is how many steps a random walk takes from an item to a label. h is one more column of the same
system. In the end the shares of an item are made to add up to one. Their sum was 1 − b or more, so
that none of them is farther off than b / (1 − b).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
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
from softcount.core.estimate import NUMBER, Estimate, announce, of_rows
from softcount.core.estimator import all_or_nothing
from softcount.core.parameters import check_parameters, generator
from softcount.core.store import AGAIN, Saveable, Stored, numbers, strings
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.core.verdict import Verdict
from softcount.kernels.threads import single_threaded, usable_cpus
from softcount.labels.data import SemiSupervisedClassifier
from softcount.labels.history import History
from softcount.labels.kernels import BLOCK, CHUNK, QUERIES, DenseRows, NeighbourPairs, SparseRows
from softcount.labels.parameters import PropagationParameters
from softcount.mixture.data import UNKNOWN, Labels, read_labels
from softcount.mixture.model_selection import warn_of_unlabelled_fold
from softcount.mixture.naive_bayes import read_classes
from softcount.text import documents as texts

POWERS = 3
"""Steps of the power method: of use for neighbours are the large dimensions, which come first."""
SMALLEST, LARGEST = 1e-10, 1e140
"""Between these the squares of numbers have all their digits, and long sums of them are finite."""
SWEEPS = 100
"""The estimate of work a sweep spreads the search for neighbours over so many."""
TINY = 1e-300
CLOSE = 1e-6
"""To this part of themselves the steps to a label are known."""


class UnreachedWarning(UserWarning):
    """No label reached some items: they get the prior.

    ``items``  their numbers, from 0
    """

    def __init__(self, text: str, items: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.items = items


# Graphs: symmetric, sparse, without loops


def make_symmetric(graph: Any) -> Any:
    """The graph with each edge in both directions, with the larger of its two weights, and without
    loops."""
    both = graph.maximum(graph.T).tocsr()
    both.setdiag(0.0)
    both.eliminate_zeros()
    both.sort_indices()
    return both


def read_graph(X: Any) -> Any:
    """A graph as users give it: weights of n × n edges, none negative.

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
    """Complain of weights that are negative or not finite, or have no finite sum."""
    if graph.nnz and not (np.isfinite(graph.data).all() and graph.data.min() >= 0.0):
        raise DataError(
            "Negative values in data: some weight of an edge is negative, or no number",
            "give weights of 0 (no edge) and above",
        )
    with np.errstate(over="ignore"):
        total = graph.data.sum()
    if not np.isfinite(total):
        raise DataError("the weights of edges add up to infinity", "only ratios matter: scale them")


# The harmonic function


class HarmonicSolution(NamedTuple):
    """The harmonic function on the free items, and how solving for it ended."""

    shares: FloatArray  # (free items, classes)
    steps: FloatArray  # (free items,): of a random walk to a label, on average
    error: float
    """How far any share can be from its limit."""
    n_iter: int
    """Sweeps and steps of conjugate gradients taken."""
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
    """The shares of the ``free`` items, each of which is connected to a labelled one.

    ``given``  (items, classes): shares of the items that are not free; other rows do not matter
    ``start``  (classes,): shares of those free items that no sweep reaches before ``max_iter``
    ``watch``  is shown the shares of the free items, and which of them have been reached
    """
    between = graph[free][:, free].tocsr()
    sums = np.asarray(graph[free].sum(axis=1)).reshape(-1, 1)
    clamped = given.copy()
    clamped[free] = 0.0
    incoming = (graph[free] @ clamped) / sums

    def sweep(values: FloatArray) -> FloatArray:
        """Every row as the weighted mean of its neighbours': T values + incoming."""
        moved: FloatArray = between @ values
        moved /= sums
        moved += incoming
        return moved

    shares = np.zeros_like(incoming)
    n_reached = taken = 0
    while taken < max_iter:
        moved = sweep(shares)
        totals = moved.sum(axis=1)
        arrived = totals > 0.0
        shares = moved / np.where(arrived, totals, 1.0)[:, None]
        watch(shares, arrived)
        taken += 1
        before, n_reached = n_reached, int(arrived.sum())
        if n_reached in (before, len(arrived)):
            break
    shares[shares.sum(axis=1) == 0.0] = start

    # conjugate gradients, with the number of steps to a label as the last column
    ones = np.ones(len(shares))
    incoming = np.column_stack([incoming, ones])
    begin = np.column_stack([shares, ones])
    values = begin.copy()
    _, exponent = np.frexp(sums.max(initial=TINY))
    weight = np.ldexp(sums, -exponent)  # with the same digits, and no square is infinite
    with np.errstate(over="ignore", invalid="ignore"):
        while True:  # once; again if rounding has led the residuals astray
            change = sweep(values) - values
            error = _bound_error(values, change)
            if error <= tol or taken >= max_iter:
                break
            direction, power = change.copy(), (weight * change * change).sum(axis=0)
            begun = error
            while taken < max_iter and _bound_error(values, change) > tol:
                ahead = direction - (between @ direction) / sums
                bend = (weight * direction * ahead).sum(axis=0)
                step = power / np.maximum(bend, TINY)
                values += step * direction
                change -= step * ahead
                last_power, power = power, (weight * change * change).sum(axis=0)
                direction *= power / np.maximum(last_power, TINY)
                direction += change
                taken += 1
                watch(_normalise(np.maximum(values[:, :-1], 0.0)), np.ones(len(values), bool))
            error = _bound_error(values, sweep(values) - values)
            if not error <= 0.5 * begun:
                break  # the last digits are reached, and tol asks for more; or there are none (NaN)
    if not np.isfinite(values).all():  # weights are too far apart for numbers of 64 bits
        values, error = begin, np.inf
    verdict = Verdict.CONVERGED if error <= tol else Verdict.OUT_OF_STEPS
    shares = _normalise(np.maximum(values[:, :-1], 0.0))
    return HarmonicSolution(shares, values[:, -1], error, taken, verdict)


def _bound_error(values: FloatArray, change: FloatArray) -> float:
    """A bound on how far any share is from its limit; infinite before the steps are known."""
    short = float(np.abs(change[:, -1]).max(initial=0.0))
    if short > CLOSE:
        return np.inf
    # (I − T) h ≥ 1 − short everywhere makes h / (1 − short) an upper bound of the steps
    longest = float(values[:, -1].max(initial=0.0)) / (1.0 - short)
    bound = longest * float(np.abs(change[:, :-1]).sum(axis=1).max(initial=0.0))
    return bound / (1.0 - bound) if bound < 1.0 else np.inf


def _normalise(shares: FloatArray) -> FloatArray:
    """Each row divided by its sum; rows of zeros stay."""
    totals = shares.sum(axis=1, keepdims=True)
    normalised: FloatArray = shares / np.where(totals > 0.0, totals, 1.0)
    return normalised


def class_prior(
    wanted: bool | Mapping[Any, float], classes: Array, shares: FloatArray
) -> FloatArray:
    """The share of each class: as a mapping says, or (its labels + 1) / (labels + classes).

    >>> class_prior(True, np.array(["a", "b"]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    array([0.75, 0.25])
    """
    if not isinstance(wanted, Mapping):
        prior = shares.sum(axis=0) + 1.0
    else:
        names = list(map(str, classes.tolist()))
        by_name = {str(name): share for name, share in wanted.items()}  # as a model file has them
        strange = set(by_name) ^ set(names)
        if strange:
            raise LearnerError(
                f"class_mass and the labels do not agree on {brief(sorted(strange)[0])}",
                "give a share for every label there is, and no other",
            )
        try:
            prior = np.array([by_name[name] for name in names], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            prior = np.full(len(names), np.nan)
        if not (prior.min() >= MIN_WEIGHT and prior.max() <= MAX_WEIGHT):
            raise LearnerError(
                f"class_mass={brief(dict(wanted))}",
                f"give shares above 0, from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}",
            )
    normalised: FloatArray = prior / prior.sum()
    return normalised


# Texts as tf-idf, and what a model file must hold to weigh new texts the same way

SWITCHES = ("sublinear_tf", "use_idf", "smooth_idf")


def default_vectorizer(documents: Sequence[Any]) -> TfidfVectorizer:
    """(1 + log tf) · idf, rows of length 1; words as `softcount.text.documents` finds them."""
    analyzer = texts.default_vectorizer(documents).analyzer
    return TfidfVectorizer(analyzer=analyzer, sublinear_tf=True)


def store_vectorizer(vectorizer: Any) -> tuple[dict[str, FloatArray], dict[str, Any]]:
    """Arrays and facts of a vectorizer, or of None, for a file."""
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
    """The vectorizer that a file describes; ``own``: the user's, which takes precedence."""
    described, weighing = stored.meta["vectorizer"], stored.meta["weighing"]
    vocabulary = strings(stored.meta["vocabulary"], n_words, "words")
    if own is not None:
        return texts.adopt_vectorizer(own, vocabulary, n_words)
    if described is None:
        return None
    counter = texts.restore_vectorizer(described, vocabulary)
    if weighing is None:
        return counter
    sound = (
        isinstance(weighing, dict)
        and set(weighing) == {*SWITCHES, "norm"}
        and all(isinstance(weighing[name], bool) for name in SWITCHES)
        and weighing["norm"] in ("l1", "l2", None)
    )
    if not sound:
        raise StoreError("the file does not say how words are weighed", AGAIN)
    settings = {**counter.get_params(), **weighing}
    settings.pop("dtype")
    vectorizer = TfidfVectorizer(**settings)
    vectorizer._validate_vocabulary()
    if vectorizer.use_idf:
        vectorizer.idf_ = numbers(stored, "idf", (n_words,))
    return vectorizer


# Rows that are compared


def _scale_rows(X: Any) -> Any:
    """Rows of length 1, however large or small their numbers are."""
    largest = _largest_entries(X)
    some = largest[largest > 0.0]
    if len(some) and not SMALLEST < some.min() <= some.max() < LARGEST:
        # by hand: scikit-learn takes small dense rows for empty ones
        by = np.where(largest > 0.0, largest, 1.0)
        if sparse.issparse(X):
            X = sparse.csr_matrix(
                (X.data / np.repeat(by, np.diff(X.indptr)), X.indices, X.indptr), X.shape
            )
        else:
            X = X / by[:, None]
    return normalize(X)


def _check_distances(X: Any) -> None:
    """Complain of rows so long that nobody can say how far apart they are."""
    if not (_largest_entries(X) < LARGEST).all():
        raise DataError(
            "some numbers are so large that distances are infinite", "scale the columns first"
        )


def _largest_entries(X: Any) -> FloatArray:
    """The largest number of each row, whatever its sign."""
    largest = abs(X).max(axis=1)
    return np.asarray(largest.toarray() if sparse.issparse(largest) else largest).reshape(-1)


class LabelPropagation(PropagationParameters, Saveable, SemiSupervisedClassifier):
    """Labels spread along a graph of the nearest items, until each item has the weighted mean of
    its neighbours' labels (Zhu & Ghahramani 2002; Zhu, Ghahramani & Lafferty 2003).

    Two items are joined if either is among the nearest of the other. No item is its own neighbour,
    and labelled items keep their labels.

    ``weights``       what an edge weighs: "cosine", or "gaussian": exp(−α‖x − y‖²); "precomputed":
                      X is the graph, one row and one column an item, 0 where there is no edge
    ``alpha``         α; None: one over the mean squared distance between neighbours
    ``n_neighbors``   how many neighbours of each item are looked for, exactly
    ``svd``           reduce the items to so many dimensions first; None: as they are
    ``class_mass``    scale the classes so that their masses match the prior: True: the smoothed
                      shares of the labels; a mapping from labels to shares; False: do not scale
    ``tol``           stop when every share is known to be this close to its limit
    ``max_iter``      at most so many sweeps
    ``vectorizer``    how texts become rows; None: tf-idf with 1 + log tf
    ``n_jobs``        threads; None: one for each processor. The result is the same
    ``random_state``  of the SVD

    X is a list of texts, a sparse matrix or an array. Labels are −1 (or None) where unknown; a
    matrix of shares (items × classes) gives soft labels. Afterwards ``transduction_`` has a label
    for every item, ``label_distributions_`` the shares, ``graph_`` the graph, ``history_`` what was
    reached when, ``steps_to_label_`` how many steps a random walk takes to a label, ``verdict_``
    how it ended. Items that no label reaches, empty ones for example, get the prior, with an
    `UnreachedWarning`.

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
    """No tables."""
    axes_: FloatArray | None
    """(dimensions, columns): where an SVD puts items; None without."""
    alpha_: float | None
    _rows: SparseRows | DenseRows | None
    """What new items are compared with; None for a graph."""
    _nonempty: IntArray
    """The numbers of the items that are these rows: empty ones are nobody's neighbours."""
    _harmonic: FloatArray
    """(items, classes): shares before classes are scaled."""

    # learning
    def fit(self, X: Any, y: Any = None, *, gold: Any = None) -> Self:
        """Spread the labels there are; ``gold``: true labels, for the accuracy over sweeps."""
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
        """What `fit` will need: bytes, and work a sweep. Nothing is learned."""
        other = copy(self)
        other._check_settings()
        matrix = other._read(X, first=True)
        return other._estimate(matrix, len(read_labels(y, matrix.shape[0]).classes))

    def _estimate(self, matrix: Any, n_classes: int) -> Estimate:
        """Neighbours, the graph of them in both directions, and the shares of classes."""
        n, width = matrix.shape
        if self.weights == "precomputed":
            return of_rows(matrix, n_classes)
        edges = n * min(self.n_neighbors, n)
        width = width if self.svd is None else self.svd
        dense = self.svd is not None or not sparse.issparse(matrix)
        searched = n * width if dense else 0
        apart = min(edges, CHUNK) * width if dense and self.weights == "gaussian" else 0
        block = (QUERIES * min(n, BLOCK) * usable_cpus()) if dense else 0
        estimate = of_rows(matrix, n_classes, neighbours=10.0 * NUMBER * edges)
        work = 2.0 * n * n * width if dense else 2.0 * matrix.nnz**2 / max(width, 1)
        return estimate.plus(work / SWEEPS, search=NUMBER * (2.0 * searched + 3.0 * apart + block))

    def _check_settings(self) -> None:
        check_parameters(self)
        if self.weights == "precomputed" and self.svd is not None:
            raise LearnerError("a graph has no SVD", "leave out svd or weights='precomputed'")

    def _read(self, X: Any, *, first: bool) -> Any:
        """A matrix of items, sparse or dense; ``first``: these say what to expect of others."""
        documents = texts.find_texts(X)
        if documents is None:
            if first:
                self.vectorizer_ = None
        elif self.weights == "precomputed":
            raise DataError("texts are no graph", "give weights='cosine' to compare them")
        elif first:
            self.vectorizer_ = texts.copy_vectorizer(self.vectorizer, documents, default_vectorizer)
            X = texts.learn_words(self.vectorizer_, documents)
        elif getattr(self, "vectorizer_", None) is None:
            raise DataError(
                "this model was fitted to a matrix, and cannot read texts by itself",
                "pass the same columns, or fit the model to texts",
            )
        else:
            X = texts.count_words(self.vectorizer_, documents)
        with within_range("the data"):
            return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)

    def _build_graph(self, matrix: Any) -> None:
        """The graph of these items; keeps what new ones are compared with."""
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
        """Find the dimensions of an SVD, of so many as are wanted or as many as there can be."""
        if sparse.issparse(X):
            n_rows_with = np.bincount(X.indices[X.data != 0.0], minlength=X.shape[1])
        else:
            n_rows_with = np.asarray(np.count_nonzero(X, axis=0))
        # a column of one row joins nothing to anything, and texts have many such
        shared = np.flatnonzero(n_rows_with > 1)
        few = min(wanted, X.shape[0] - 1, len(shared) - 1)
        if few < 1:
            raise DataError(
                f"items of shape {X.shape} span no space",
                "an SVD needs two items, and two columns that several items have: leave svd out",
            )
        seed = int(generator(self.random_state).integers(2**31))
        # dimensions without any variance: scikit-learn divides by it, and we do not ask for that
        with single_threaded(), np.errstate(all="ignore"):
            svd = TruncatedSVD(few, n_iter=POWERS, random_state=seed)
            svd.fit(_scale_rows(X)[:, shared])
        self.axes_ = np.zeros((few, X.shape[1]))
        self.axes_[:, shared] = svd.components_

    def _place(self, X: Any) -> tuple[Any, BoolArray]:
        """Rows to be compared, and which of them have anything to be compared by.

        Empty rows of words have not. A row of numbers that are all 0 is a point, if distances
        count.
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
        """The neighbours of some rows among the items learned from, by the numbers of these; None:
        of those items themselves."""
        assert self._rows is not None
        k = min(self.n_neighbors, max(len(self._nonempty), 1))
        pairs = self._rows.nearest(queries, k, self.n_jobs or usable_cpus())
        row = pairs.row if queries is not None else self._nonempty[pairs.row]
        return NeighbourPairs(row, self._nonempty[pairs.other], pairs.value)

    def _propagate(self, labels: Labels, gold: Any) -> None:
        """Solve for the shares of all items, and scale the classes to their masses.

        Class-mass normalisation (Zhu, Ghahramani & Lafferty 2003): with the mass m_c = Σ_i F_ic
        that class c has of the items without a label, and the share q_c that it should have, items
        are judged by q_c F_ic / m_c.
        """
        known = labels.known
        n, K = len(known), len(labels.classes)
        self.classes_ = labels.classes
        given = np.zeros((n, K))
        hard = np.flatnonzero(labels.numbers >= 0)
        given[hard, labels.numbers[hard]] = 1.0
        if labels.shares is not None:
            given += np.nan_to_num(labels.shares)
        self.prior_ = class_prior(self.class_mass, labels.classes, given[known])
        _, component = sparse.csgraph.connected_components(self.graph_, directed=False)
        self.reached_ = np.isin(component, component[known])
        free = np.flatnonzero(self.reached_ & ~known)
        at_first = np.where(known, labels.likeliest(), UNKNOWN)
        self.history_ = History.begin(self.classes_, at_first, gold)

        def watch(shares: FloatArray, arrived: BoolArray) -> None:
            confidence, chosen = np.ones(n), at_first.copy()
            confidence[free] = shares.max(axis=1)
            chosen[free[arrived]] = shares[arrived].argmax(axis=1)
            self.history_.record(chosen, confidence, "graph")

        solution = solve_harmonic(
            self.graph_, given, free, self.prior_, self.tol, self.max_iter, watch
        )
        self.verdict_, self.error_ = solution.verdict, solution.error
        self.n_iter_ = solution.n_iter
        self.steps_to_label_ = np.where(known, 0.0, np.inf)
        self.steps_to_label_[free] = solution.steps
        self._harmonic = np.where(self.reached_[:, None], given, self.prior_)
        self._harmonic[free] = solution.shares
        mass = solution.shares.sum(axis=0)
        # a class without any mass cannot be scaled to have some
        scales = bool(self.class_mass) and mass.all()
        self.factors_ = self.prior_ * mass.sum() / mass if scales else np.ones(K)
        final = self._harmonic.copy()
        final[free] = _normalise(solution.shares * self.factors_)
        self.label_distributions_ = final
        chosen = np.where(known, labels.likeliest(), final.argmax(axis=1))
        self.transduction_ = self.classes_[chosen]
        view = np.where(self.reached_, "class mass" if self.class_mass else "graph", "prior")
        self.history_.record(chosen, final.max(axis=1), view.tolist())
        how = [
            str(self.weights),
            *([f"{self.n_neighbors} neighbours"] if self.weights != "precomputed" else []),
            *([f"SVD {self.svd}"] if self.svd is not None else []),
            *(["class mass"] if self.class_mass else []),
        ]
        self.signature_ = (
            f"softcount {__version__} · label propagation · {', '.join(how)} · tol {self.tol:g} · "
            f"seed {self.random_state}"
        )

    # prediction
    def predict_proba(self, X: Any) -> FloatArray:
        """The shares of each class for new items, from their nearest among those learned from."""
        return self._posteriors(X)

    def predict(self, X: Any) -> Array:
        """The likeliest class of each new item."""
        shares = self._posteriors(X)
        chosen: Array = self.classes_[shares.argmax(axis=1)]
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
            if self.alpha_ is not None:  # of one item only ratios matter: the nearest weighs 1
                nearest = np.full(len(where), np.inf)
                np.minimum.at(nearest, row, value)
                value = np.exp(-self.alpha_ * (value - nearest[row]))
            shape = (matrix.shape[0], len(self._harmonic))
            weights = sparse.csr_matrix((value, (where[row], other)), shape=shape)
        weights = weights[:, self.reached_] if not self.reached_.all() else weights
        shares = weights @ self._harmonic[self.reached_]
        totals = np.asarray(weights.sum(axis=1)).reshape(-1)
        alone = totals == 0.0
        shares = _normalise(shares / np.where(alone, 1.0, totals)[:, None] * self.factors_)
        shares[alone] = self.prior_
        self._warn(alone, "new items", stacklevel=4)
        return shares

    def _warn(self, lost: BoolArray, what: str, stacklevel: int) -> None:
        """Say how many items no label reaches."""
        items = np.flatnonzero(lost).tolist()
        if items:
            what, whom = (what, "them") if len(items) > 1 else (what.removesuffix("s"), "it")
            text = (
                f"{len(items):,} {what} got the prior, for no label reaches {whom}: empty, or "
                "without a path of neighbours to a label"
            )
            warnings.warn(UnreachedWarning(text, items), stacklevel=stacklevel)

    # files: without graph and history
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

    def rebuilt(self, stored: Stored, given: Mapping[str, Any]) -> SimpleNamespace:
        meta, V = stored.meta, self.n_features_in_
        self._check_settings()
        self.classes_ = read_classes(meta["classes"], meta["kind_of_classes"])
        self.vectorizer_ = restore_vectorizer(stored, given.get("vectorizer"), V)
        K = len(self.classes_)
        self._harmonic = numbers(stored, "shares", (None, K))
        self.prior_ = numbers(stored, "prior", (K,))
        for shares in (self._harmonic, self.prior_[None]):
            totals = shares.sum(axis=1)
            if not len(shares) or shares.min() < 0.0 or not np.allclose(totals, 1.0, atol=1e-6):
                raise DataError("shares of classes do not add up to one")
        n = len(self._harmonic)
        reached = numbers(stored, "reached", (n,))
        self.reached_ = reached == 1.0
        self.factors_ = numbers(stored, "factors", (K,))
        sound = self.reached_.any() and (self.reached_ | (reached == 0.0)).all()
        if self.factors_.min() <= 0.0 or not sound:
            raise DataError("classes have no mass, or no item has a label")
        self.transduction_ = self.classes_[self._harmonic.argmax(axis=1)]
        self.axes_ = None if self.svd is None else numbers(stored, "axes", (None, V))
        self.alpha_, self._rows = meta["alpha"], None
        if (self.alpha_ is None) != (self.weights != "gaussian"):
            raise DataError("there is an alpha without distances, or distances without")
        if self.alpha_ is not None and not 0.0 < float(self.alpha_) < np.inf:
            raise DataError(f"alpha is {self.alpha_!r}")
        if meta["has_rows"] is not (self.weights != "precomputed"):
            raise DataError("the rows that new items are compared with are not there")
        if meta["has_rows"]:
            self._restore_rows(stored, n)
        elif n != V:
            raise DataError("the graph is of other items")
        return SimpleNamespace(families={})  # there are no tables

    def _restore_rows(self, stored: Stored, n_items: int) -> None:
        """The rows that new items are compared with."""
        numbered = numbers(stored, "says", (None,))
        self._nonempty = numbered.astype(np.int64)
        rising = (np.diff(self._nonempty) > 0).all() and (self._nonempty == numbered).all()
        n = len(numbered)
        if n and not (rising and self._nonempty[0] >= 0 and self._nonempty[-1] < n_items):
            raise DataError("numbers of items are out of order")
        width = self.n_features_in_ if self.axes_ is None else len(self.axes_)
        if stored.meta["is_sparse"] is True:
            indptr = numbers(stored, "rows.indptr", (n + 1,))
            columns = numbers(stored, "rows.columns", (None,))
            values = numbers(stored, "rows.values", (len(columns),))
            sound = (
                (indptr[0] == 0 and indptr[-1] == len(columns) and (np.diff(indptr) >= 0).all())
                and (columns == np.floor(columns)).all()
                and (indptr == np.floor(indptr)).all()
                and (not len(columns) or 0 <= columns.min() <= columns.max() < width)
            )
            if not sound:
                raise DataError("rows of words are out of order")
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
