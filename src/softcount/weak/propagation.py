"""Label propagation: items that are alike have like labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softcount import store
from softcount.bounds import MAX_STEPS
from softcount.errors import LearnerError, shown
from softcount.estimate import NUMBER, Estimate, announce, of_rows
from softcount.kernels.pool import usable_cpus
from softcount.models.base import all_or_nothing
from softcount.models.mixture.labels import UNKNOWN, Labels, read_labels
from softcount.models.mixture.scoring import ScoresLabelled, warn_of_unlabelled_fold
from softcount.models.settings import check_number, check_whole
from softcount.types import Array
from softcount.weak import propagation_files
from softcount.weak.class_mass import class_prior, factors_for, given_shares, scaled
from softcount.weak.graph import demand_weights, joined, reached, read_graph
from softcount.weak.harmonic import settle
from softcount.weak.history import History, gold_numbers
from softcount.weak.neighbours import BLOCK, CHUNK, QUERIES, Found
from softcount.weak.rows import COSINE, GAUSSIAN, PRECOMPUTED, ReadsRows

WEIGHTS = (COSINE, GAUSSIAN, PRECOMPUTED)


SWEEPS = 100
"""Over so many sweeps the search for neighbours is spread out, where work a sweep is told."""


class UnreachedWarning(UserWarning):
    """No label reached some items: they get what is known beforehand, and no more.

    ``items``  their numbers, from 0
    """

    def __init__(self, text: str, items: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.items = items


class LabelPropagation(ScoresLabelled, ReadsRows, BaseEstimator):  # type: ignore[misc]
    """Labels spread along a graph of the nearest items, until each item has the weighted mean of
    its neighbours' labels (Zhu & Ghahramani 2002; Zhu, Ghahramani & Lafferty 2003).

    Two items are joined if either is among the nearest of the other. No item is its own neighbour,
    and labelled items keep their labels.

    ``weights``       what an edge weighs: "cosine", or "gaussian": exp(−α‖x − y‖²); "precomputed":
                      X is the graph, one row and one column an item, 0 where there is no edge
    ``alpha``         α; None: one over the mean squared distance between neighbours
    ``n_neighbors``   how many neighbours of each item are looked for, exactly
    ``svd``           reduce the items to so many dimensions first; None: as they are
    ``class_mass``    scale the classes so that their masses match what is known beforehand: True:
                      the smoothed shares of the labels; a mapping from labels to shares; False: not
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

    def __init__(
        self,
        *,
        weights: str = COSINE,
        alpha: float | None = None,
        n_neighbors: int = 10,
        svd: int | None = None,
        class_mass: bool | Mapping[Any, float] = True,
        tol: float = 1e-5,
        max_iter: int = 1000,
        vectorizer: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.weights = weights
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.svd = svd
        self.class_mass = class_mass
        self.tol = tol
        self.max_iter = max_iter
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state

    # learning
    def fit(self, X: Any, y: Any = None, *, gold: Any = None) -> Self:
        """Spread the labels there are; ``gold``: true labels, for the accuracy over sweeps."""
        with all_or_nothing(self):
            self._check_settings()
            matrix = self.read(X, first=True)
            labels = read_labels(y, matrix.shape[0])
            warn_of_unlabelled_fold()
            announce(self._foreseen(matrix, len(labels.classes)), ())
            self.graph_ = self._build(matrix)
            self._spread(labels, gold)
        self._warn(~self.reached_, "items", stacklevel=3)
        return self

    def estimate(self, X: Any, y: Any = None) -> Estimate:
        """What `fit` will need: bytes, and work a sweep. Nothing is learned."""
        other = copy(self)
        other._check_settings()
        matrix = other.read(X, first=True)
        return other._foreseen(matrix, len(read_labels(y, matrix.shape[0]).classes))

    def _foreseen(self, matrix: Any, n_classes: int) -> Estimate:
        """Neighbours, the graph of them both ways, and the shares of classes."""
        n, width = matrix.shape
        if self.weights == PRECOMPUTED:
            return of_rows(matrix, n_classes)
        edges = n * min(self.n_neighbors, n)
        width = width if self.svd is None else self.svd
        dense = self.svd is not None or not sparse.issparse(matrix)
        searched = n * width if dense else 0
        apart = min(edges, CHUNK) * width if dense and self.weights == GAUSSIAN else 0
        block = (QUERIES * min(n, BLOCK) * usable_cpus()) if dense else 0
        found = of_rows(matrix, n_classes, neighbours=10.0 * NUMBER * edges)
        work = 2.0 * n * n * width if dense else 2.0 * matrix.nnz**2 / max(width, 1)
        return found.plus(work / SWEEPS, search=NUMBER * (2.0 * searched + 3.0 * apart + block))

    def _check_settings(self) -> None:
        if self.weights not in WEIGHTS:
            raise LearnerError(f"weights={shown(self.weights)}", f"one of {', '.join(WEIGHTS)}")
        check_whole("n_neighbors", self.n_neighbors)
        check_whole("max_iter", self.max_iter, most=MAX_STEPS)
        check_number("tol", self.tol, "1e-5 is usual", above=True)
        for name in ("svd", "n_jobs"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))
        if self.alpha is not None:  # a distance, which may be as long as any
            hint = "None finds one that fits"
            check_number("alpha", self.alpha, hint, above=True, most=np.inf)
        if self.weights == PRECOMPUTED and self.svd is not None:
            raise LearnerError("an SVD of a graph is none", "leave out svd or 'precomputed'")

    def _build(self, matrix: Any) -> Any:
        """The graph of these items; keeps what new ones are compared with."""
        self.alpha_: float | None = None
        self.axes_ = None
        self._rows: Any = None
        if self.weights == PRECOMPUTED:
            return read_graph(matrix)
        self.learn_axes(matrix)
        rows, says = self.placed(matrix)
        self._says = np.flatnonzero(says)
        self._rows = self.searchable(rows[self._says])
        found = self._nearest(None)
        if self.weights == GAUSSIAN:
            self.alpha_ = self.alpha or _usual_alpha(found.value)
        return joined(found, self._edge_weights(found), matrix.shape[0])

    def _nearest(self, queries: Any) -> Found:
        """The neighbours of some rows among those learned from, by their numbers there."""
        k = min(self.n_neighbors, max(len(self._says), 1))
        row, other, value = self._rows.nearest(queries, k, self.n_jobs or usable_cpus())
        return Found(row if queries is not None else self._says[row], self._says[other], value)

    def _edge_weights(self, found: Found) -> Array:
        if self.alpha_ is None:
            return found.value
        weights: Array = np.exp(-self.alpha_ * found.value)
        return weights

    def _spread(self, labels: Labels, gold: Any) -> None:
        known = labels.known
        self.classes_ = labels.classes
        given = given_shares(labels)
        self.prior_ = class_prior(self.class_mass, labels.classes, given[known])
        self.reached_ = reached(self.graph_, known)
        free = np.flatnonzero(self.reached_ & ~known)
        numbers = gold_numbers(gold, self.classes_, len(known))
        at_first = np.where(known, labels.likeliest(), UNKNOWN)
        self.history_ = History(self.classes_, at_first, numbers)

        def watch(shares: Array, arrived: Array) -> None:
            sure, found = np.ones(len(given)), at_first.copy()
            sure[free] = shares.max(axis=1)
            found[free[arrived]] = shares[arrived].argmax(axis=1)
            self.history_.record(found, sure, "graph")

        it = settle(self.graph_, given, free, self.prior_, self.tol, self.max_iter, watch)
        self.verdict_, self.n_iter_, self.error_ = it.verdict, it.n_iter, it.error
        self.steps_to_label_ = np.where(known, 0.0, np.inf)
        self.steps_to_label_[free] = it.steps
        self._harmonic = np.where(self.reached_[:, None], given, self.prior_)
        self._harmonic[free] = it.shares
        self.factors_ = factors_for(it.shares, self.prior_, bool(self.class_mass))
        self._conclude(labels, free, it.shares)

    def _conclude(self, labels: Labels, free: Array, shares: Array) -> None:
        """The labels of all items, once the classes have their masses."""
        known = labels.known
        final = self._harmonic.copy()
        final[free] = scaled(shares, self.factors_)
        self.label_distributions_ = final
        chosen = np.where(known, labels.likeliest(), final.argmax(axis=1))
        self.transduction_ = self.classes_[chosen]
        view = np.where(self.reached_, "class mass" if self.class_mass else "graph", "prior")
        self.history_.record(chosen, final.max(axis=1), view.tolist())
        self.signature_ = propagation_files.signature(self)

    # what it says of data
    def predict_proba(self, X: Any) -> Array:
        """The shares of each class for new items, from their nearest among those learned from."""
        return self._proba(X, stacklevel=4)

    def _proba(self, X: Any, stacklevel: int) -> Array:
        check_is_fitted(self)
        matrix = self.read(X, first=False)
        if self.weights == PRECOMPUTED:
            weights = sparse.csr_matrix(matrix)
            demand_weights(weights)
        else:
            weights = self._weights_to(matrix)
        weights = weights[:, self.reached_] if not self.reached_.all() else weights
        shares = weights @ self._harmonic[self.reached_]
        totals = np.asarray(weights.sum(axis=1)).reshape(-1)
        alone = totals == 0.0
        shares = scaled(shares / np.where(alone, 1.0, totals)[:, None], self.factors_)
        shares[alone] = self.prior_
        self._warn(alone, "new items", stacklevel)
        return shares

    def _weights_to(self, matrix: Any) -> Any:
        """(new items, items learned from): weights of the nearest."""
        rows, says = self.placed(matrix)
        where = np.flatnonzero(says)
        found = self._nearest(rows[where])
        value = found.value
        if self.alpha_ is not None:  # of one item only ratios matter: the nearest weighs 1
            nearest = np.full(len(where), np.inf)
            np.minimum.at(nearest, found.row, value)
            value = np.exp(-self.alpha_ * (value - nearest[found.row]))
        shape = (matrix.shape[0], len(self._harmonic))
        return sparse.csr_matrix((value, (where[found.row], found.other)), shape=shape)

    def predict(self, X: Any) -> Array:
        """The likeliest class of each new item."""
        shares = self._proba(X, stacklevel=4)
        chosen: Array = self.classes_[shares.argmax(axis=1)]
        return chosen

    def _warn(self, lost: Array, what: str, stacklevel: int) -> None:
        items = np.flatnonzero(lost).tolist()
        n = len(items)
        if n:
            what = what if n > 1 else what.removesuffix("s")
            why = "empty, or joined to no label by any way of neighbours"
            whom = "them" if n > 1 else "it"
            text = f"{n:,} {what} got the prior, for no label reaches {whom}: {why}"
            warnings.warn(UnreachedWarning(text, items), stacklevel=stacklevel)

    # files
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, for `softcount.load`, without graph and history."""
        check_is_fitted(self)
        propagation_files.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], **given: Any) -> Self:
        """A model from a file; settings that are code (vectorizer) may be given again."""
        return cls.restore(store.read(path), **given)

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        """A model from what a file holds (see `softcount.load`)."""
        return propagation_files.restore(cls, stored, given)  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "factors_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.weights == PRECOMPUTED
        return tags


def _usual_alpha(squared: Array) -> float:
    mean = float(squared.mean()) if len(squared) else 0.0
    return 1.0 / mean if mean > 0.0 else 1.0
