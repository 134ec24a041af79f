"""EasyAdapt: every feature once for all domains, and once for each of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from softcount.adapt.base import Adapter, weights_in
from softcount.adapt.task import Task, read_domains
from softcount.bounds import within_range
from softcount.errors import DataError
from softcount.types import Array


class FeatureCopies(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Copies of all features: Φ(x) of domain d is ⟨x, 0, …, x, …, 0⟩, with x in the first place,
    for all domains, and in the place of d (Daumé III 2007, for any number of domains).

    Places are those of the domains in ``fit``, sorted: ``domains_``. A domain that is not among
    them has the first copy only: what is known of all domains is all that is known of it.

    >>> copies = FeatureCopies().fit([[1.0, 2.0], [3.0, 4.0]], sample_domain=[1, -1])
    >>> copies.domains_.tolist()
    [-1, 1]
    >>> copies.transform([[5.0, 6.0]], sample_domain=[1]).toarray()
    array([[5., 6., 0., 0., 5., 6.]])
    """

    # with metadata routing, domains are handed on unless somebody asks for something else
    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__transform = {"sample_domain": True}  # noqa: RUF012

    domains_: Array
    n_features_in_: int

    def fit(self, X: Any, y: Any = None, sample_domain: Any = None) -> Self:
        """Remember which domains there are."""
        with within_range("the data"):
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        if sample_domain is None:
            raise DataError("copies are of domains", "give sample_domain, a number for each item")
        self.domains_ = np.unique(read_domains(sample_domain, X.shape[0]))
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_domain: Any = None) -> Any:
        """Copies of these items' features."""
        return self.fit(X, y, sample_domain).transform(X, sample_domain)

    def transform(self, X: Any, sample_domain: Any = None) -> Any:
        """(items, columns · (1 + domains)), sparse; without domains, the first copy only."""
        check_is_fitted(self, "domains_")
        with within_range("the data"):
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        X = sparse.csr_matrix(X)
        n, width = X.shape
        domain = np.zeros(n) if sample_domain is None else read_domains(sample_domain, n)
        place = np.searchsorted(self.domains_, domain)
        known = np.isin(domain, self.domains_)
        of_row = np.diff(X.indptr)
        there = np.repeat(known, of_row)
        rows = np.repeat(np.arange(n), of_row)[there]
        columns = X.indices[there] + np.repeat((1 + place) * width, of_row)[there]
        shape = (n, width * (1 + len(self.domains_)))
        own = sparse.csr_matrix((X.data[there], (rows, columns)), shape=shape)
        shared = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=shape)
        return shared + own


class EasyAdapt(Adapter):
    """A linear classifier of `FeatureCopies`, trained on all labels: each word has a weight in
    general, and one more in each domain.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    Afterwards: ``copies_`` and ``classifier_``. An item of a domain never seen has the
    weights in general only; so has one of which no domain is said, unless there is just one target.

    >>> texts = ["a good book", "a thin plot", "a thin phone", "a bad phone"]
    >>> model = EasyAdapt().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["thin"]).tolist(), model.predict(["thin"], sample_domain=1).tolist()
    ([1], [0])
    """

    copies_: FeatureCopies
    classifier_: Any

    def __init__(self, classifier: Any = None, *, vectorizer: Any = None) -> None:
        self.classifier = classifier
        self.vectorizer = vectorizer

    def learn(self, task: Task) -> None:
        """Train on copies of all labelled items."""
        rows = task.labelled
        self.copies_ = FeatureCopies()
        copies = self.copies_.fit_transform(task.X[rows], None, task.domain[rows])
        self.classifier_ = self.trained(copies, task, rows)

    def shares(self, X: Any, domain: Array) -> Array:
        """p(class | item) in its domain."""
        return self.posterior(self.classifier_, self.copies_.transform(X, domain))

    def word_weights(self, sample_domain: int | None = None) -> Array:
        """(classes, columns): a word's weight in general and in a domain, added up."""
        domain = self.home() if sample_domain is None else sample_domain
        parts = weights_in(self.classifier_, self.classes_)
        width, places = self.n_features_in_, [-1, *np.flatnonzero(self.copies_.domains_ == domain)]
        starts = [(1 + int(place)) * width for place in places]
        found: Array = np.sum([parts[:, start : start + width] for start in starts], axis=0)
        return found
