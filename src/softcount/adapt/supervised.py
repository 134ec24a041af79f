"""Adaptation methods that use labels of the target, and baselines."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from softcount.adapt.base import (
    Adapter,
    class_weights,
    expand_classes,
    make_classifier,
    stack_columns,
)
from softcount.adapt.data import Task, choose_on_target, choose_setting, read_domains, target_folds
from softcount.adapt.parameters import (
    ClassifierParameters,
    InterpolationParameters,
    SourcePriorParameters,
    WeightedParameters,
)
from softcount.core.bounds import within_range
from softcount.core.contract import Transformer, as_configured
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.types import Array, FloatArray, IntArray

WEIGHTS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Candidate weights of a target item, for `Weighted`."""
N_STEPS = 20
"""`Interpolation` tries this many steps of λ from 0 to 1."""
PENALTIES, DEFAULT_PENALTY = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), 0.3
"""Candidates of λ for `SourcePrior`, and the default if there are too few labels to choose."""
MAX_ITER = 500


class SourceOnly(ClassifierParameters, Adapter):
    """Baseline without adaptation: a classifier of the source is applied to the target.

    ``classifier``  any scikit-learn classifier; None: logistic regression
    ``vectorizer``  turns texts into rows; None: tf-idf

    >>> texts = ["a good book", "a bad book", "good oven", "bad oven"]
    >>> SourceOnly().fit(texts, [1, 0, -1, -1]).predict(["this oven is good"]).tolist()
    [1]
    """

    _needs = ("source",)

    def _learn(self, task: Task) -> None:
        """Train on labelled items of the sources."""
        self.classifier_ = self._train_classifier(task, task.source)


class TargetOnly(ClassifierParameters, Adapter):
    """Baseline that learns from the target's few labels only, and ignores the source.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    >>> texts = ["a good book", "a bad book", "sharp knife", "blunt knife"]
    >>> model = TargetOnly().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["so sharp"]).tolist()
    [1]
    """

    _needs = ("target",)

    def _learn(self, task: Task) -> None:
        """Train on labelled items of the target."""
        self.classifier_ = self._train_classifier(task, task.target)


class Merge(ClassifierParameters, Adapter):
    """Baseline that learns from the labels of all domains together.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    >>> texts = ["a good book", "a bad book", "sharp knife", "blunt knife"]
    >>> model = Merge().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["good and sharp", "bad and blunt"]).tolist()
    [1, 0]
    """

    def _learn(self, task: Task) -> None:
        """Train on all labelled items."""
        self.classifier_ = self._train_classifier(task, task.labelled)


class Weighted(WeightedParameters, Adapter):
    """Learn from the labels of all domains, with larger weights for those of the target.

    ``weight``  weight of a target item relative to a source item; None: the one of 1, 2, 3, 5, 10,
                20 with the best held-out accuracy on the target's labels, or 1 if there are too few
                to hold any out
    ``classifier``, ``vectorizer``  as for `SourceOnly`; the classifier must accept sample weights

    Attribute after ``fit``: ``weight_``, the weight used.

    >>> texts = ["a good book", "a bad book", "a sharp knife", "a bad, blunt knife"]
    >>> model = Weighted(weight=5.0).fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["sharp", "blunt"]).tolist()
    [1, 0]
    """

    weight_: float

    def _check_settings(self) -> None:
        """Check the weight, and that the classifier accepts sample weights."""
        super()._check_settings()
        classifier = make_classifier() if self.classifier is None else self.classifier
        if not has_fit_parameter(classifier, "sample_weight"):
            raise LearnerError(
                f"{brief(classifier)} does not accept sample weights",
                "give a classifier whose fit has sample_weight, such as LogisticRegression()",
            )

    def _learn(self, task: Task) -> None:
        """Train on all labelled items, with the weight given or chosen."""
        self.weight_ = choose_on_target(
            task, self.weight, WEIGHTS, 1.0, self._train, self._posteriors
        )
        self._train(task, task.labelled, self.weight_)

    def _train(self, task: Task, rows: IntArray, weight: float) -> None:
        weights = np.where(task.in_target[rows], weight, 1.0)
        self.classifier_ = self._train_classifier(task, rows, weight=weights)


class FeatureCopies(Transformer):
    """Feature augmentation (Daumé III 2007), for any number of domains: Φ(x) of domain d is
    ⟨x, 0, …, x, …, 0⟩, with a general copy of x first and another one at the position of d.

    Positions are in the order of the domains in ``fit``, sorted: ``domains_``. An unseen domain has
    the general copy only.

    >>> copies = FeatureCopies().fit([[1.0, 2.0], [3.0, 4.0]], sample_domain=[1, -1])
    >>> copies.domains_.tolist()
    [-1, 1]
    >>> copies.transform([[5.0, 6.0]], sample_domain=[1]).toarray()
    array([[5., 6., 0., 0., 5., 6.]])
    """

    # with metadata routing, domains are passed on by default
    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__transform = {"sample_domain": True}  # noqa: RUF012

    domains_: IntArray
    n_features_in_: int

    def fit(self, X: Any, y: Any = None, sample_domain: Any = None) -> Self:
        """Learn the domains."""
        with within_range("the data"):
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        if sample_domain is None:
            raise DataError(
                "FeatureCopies needs domains", "give sample_domain, a number for each item"
            )
        self.domains_ = np.unique(read_domains(sample_domain, X.shape[0]))
        return self

    @as_configured
    def fit_transform(self, X: Any, y: Any = None, sample_domain: Any = None) -> Any:
        """Fit, and return the augmented features of these items."""
        return self.fit(X, y, sample_domain).transform(X, sample_domain)

    @as_configured
    def transform(self, X: Any, sample_domain: Any = None) -> Any:
        """Return augmented features (items, columns · (1 + domains)), sparse; without
        ``sample_domain``, the general copy only."""
        check_is_fitted(self, "domains_")
        with within_range("the data"):
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        X = sparse.csr_matrix(X)
        n, width = X.shape
        domain = np.zeros(n) if sample_domain is None else read_domains(sample_domain, n)
        position = np.searchsorted(self.domains_, domain)
        row_lengths = np.diff(X.indptr)
        known = np.repeat(np.isin(domain, self.domains_), row_lengths)  # of each entry
        rows = np.repeat(np.arange(n), row_lengths)[known]
        columns = X.indices[known] + np.repeat((1 + position) * width, row_lengths)[known]
        shape = (n, width * (1 + len(self.domains_)))
        specific = sparse.csr_matrix((X.data[known], (rows, columns)), shape=shape)
        return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=shape) + specific

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the augmented features: those of the general copies as they are,
        those of each domain's with its number, as in "plot (domain -1)".

        ``input_features``  names of the columns, such as a vectorizer's; None: x0, x1, …
        """
        check_is_fitted(self, "domains_")
        numbered = [f"x{column}" for column in range(self.n_features_in_)]
        given = getattr(self, "feature_names_in_", numbered)
        names = [*map(str, given if input_features is None else input_features)]
        if len(names) != self.n_features_in_:
            raise DataError(
                f"{len(names)} names for {self.n_features_in_} columns",
                "give one for each column, in order",
            )
        copies = [f"{name} (domain {d})" for d in self.domains_.tolist() for name in names]
        return np.array([*names, *copies], dtype=object)


class EasyAdapt(ClassifierParameters, Adapter):
    """EasyAdapt (Daumé III 2007): a linear classifier of augmented features (`FeatureCopies`),
    trained on the labels of all domains. Each word has a general weight, and one for each domain.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    Attributes after ``fit``: ``copies_`` and ``classifier_``. For an item of an unseen domain only
    the general weights are used; so are they without ``sample_domain``, unless there is exactly one
    target.

    >>> texts = ["a good book", "a thin plot", "a thin phone", "a bad phone"]
    >>> model = EasyAdapt().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["thin"]).tolist(), model.predict(["thin"], sample_domain=1).tolist()
    ([1], [0])
    """

    copies_: FeatureCopies

    def _learn(self, task: Task) -> None:
        """Train on the augmented features of all labelled items."""
        rows = task.labelled
        self.copies_ = FeatureCopies()
        copies = self.copies_.fit_transform(task.X[rows], None, task.domain[rows])
        self.classifier_ = self._train_classifier(task, rows, copies)

    def _represent(self, X: Any, domain: IntArray) -> Any:
        return self.copies_.transform(X, domain)

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """Return the sum of a word's general weight and that of a domain, (classes, columns)."""
        domain = self._default_domain() if sample_domain is None else sample_domain
        parts = class_weights(self.classifier_, self.classes_)
        width = self.n_features_in_
        positions = [-1, *np.flatnonzero(self.copies_.domains_ == domain)]
        starts = [(1 + int(position)) * width for position in positions]
        return np.asarray(np.sum([parts[:, start : start + width] for start in starts], axis=0))


class Interpolation(InterpolationParameters, Adapter):
    """Linear interpolation of two classifiers.

        p(y | x) = λ p_target(y | x) + (1 − λ) p_source(y | x)

    ``weight``  λ; None: the one of 0, 0.05, … 1 with the best held-out accuracy on the target's
                labels; 0.5 if there are too few to hold any out
    ``classifier``, ``vectorizer``  as for `SourceOnly`

    Attributes after ``fit``: ``weight_``, ``source_`` and ``target_`` (the two classifiers).

    >>> texts = ["a good book", "a bad book", "sharp knife", "blunt knife"]
    >>> model = Interpolation().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["good and sharp", "bad and blunt"]).tolist(), model.weight_
    ([1, 0], 0.5)
    """

    _needs = ("source", "target")
    source_: Any
    target_: Any
    weight_: float

    def _learn(self, task: Task) -> None:
        """Train both classifiers; the weight is chosen on labels that neither has seen."""
        self.source_ = self._train_classifier(task, task.source)
        self.weight_ = 0.5 if self.weight is None else float(self.weight)
        folds = target_folds(task) if self.weight is None else []
        if folds:
            held_out = np.concatenate([test for _, test in folds])
            source, target = self._classify(self.source_, task.X[held_out]), []
            for train, test in folds:
                classifier = self._train_classifier(task, train)
                target.append(self._classify(classifier, task.X[test]))
            self.weight_ = choose_setting(
                [i / N_STEPS for i in range(N_STEPS + 1)],
                lambda weight: weight * np.vstack(target) + (1.0 - weight) * source,
                task.y[held_out],
            )
        self.target_ = self._train_classifier(task, task.target)

    def _mix(self, target: FloatArray, source: FloatArray) -> FloatArray:
        return self.weight_ * target + (1.0 - self.weight_) * source

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        """Compute the interpolated p(class | item)."""
        return self._mix(self._classify(self.target_, X), self._classify(self.source_, X))

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """Return the interpolation of both classifiers' weights, (classes, columns)."""
        weights = (class_weights(c, self.classes_) for c in (self.target_, self.source_))
        return self._mix(*weights)


class PredictionFeature(ClassifierParameters, Adapter):
    """A classifier trained on the target's labels, with the source classifier's predictions as
    additional features: p(class | item), one for each class.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    Attributes after ``fit``: ``source_`` and ``target_`` (the two classifiers).

    >>> texts = ["a good book", "a bad book", "a good, sharp knife", "a bad, blunt knife"]
    >>> model = PredictionFeature().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["good", "blunt"]).tolist()
    [1, 0]
    """

    _needs = ("source", "target")
    source_: Any
    target_: Any

    def _learn(self, task: Task) -> None:
        """Train on the source, then on the target with the source's posteriors as features."""
        self.source_ = self._train_classifier(task, task.source)
        rows = task.target
        posteriors = self._classify(self.source_, task.X[rows])
        self.target_ = self._train_classifier(task, rows, stack_columns(task.X[rows], posteriors))
        self._source_posteriors = posteriors

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        """Compute p(class | item) with the target's classifier."""
        return self._classify(self.target_, stack_columns(X, self._classify(self.source_, X)))

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """Return a word's own weight plus its effect through the source's posteriors, (classes,
        columns).

        With the source's posteriors p, its weights w, and v the weights of p, the latter is the
        derivative Σ_k v_k p_k (w_k − Σ_j p_j w_j), averaged over the target's labelled items.
        """
        weights = class_weights(self.target_, self.classes_)
        own, of_posteriors = np.split(weights, [self.n_features_in_], axis=1)
        source = class_weights(self.source_, self.classes_)
        if len(source) == 1:
            source = np.vstack([np.zeros_like(source), source])
        p = self._source_posteriors
        spread = np.diag(p.mean(axis=0)) - p.T @ p / len(p)
        return np.asarray(own + of_posteriors @ spread @ source)


class SourcePrior(SourcePriorParameters, Adapter):
    """Logistic regression on the target's labels, with a Gaussian prior centred on the source's
    weights.

    L-BFGS minimises −Σ log p(y_i | x_i; W, b) + ½ λ (‖W − W_source‖² + ‖b − b_source‖²) over the
    target's labelled items: the posterior mode under a Gaussian prior around the source (Chelba &
    Acero 2004). Intercepts are penalised, too, so that labels of a single class do not dominate.

    ``l2``        λ; None: the one of 0.01 to 3 with the best held-out accuracy on the target's
                  labels; 0.3 if there are too few to hold any out
    ``classifier``, ``vectorizer``  as for `SourceOnly`; the classifier provides W_source, so it
                  must be linear

    Attributes after ``fit``: ``l2_``, ``source_`` (the source's classifier), ``coef_`` and
    ``intercept_`` (a row for each class, or a single row for two classes).

    >>> texts = ["a good book", "a bad book", "sharp knife", "blunt knife"]
    >>> model = SourcePrior().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["good", "blunt"]).tolist()
    [1, 0]
    """

    _needs = ("source",)
    source_: Any
    coef_: FloatArray
    intercept_: FloatArray
    l2_: float

    def _learn(self, task: Task) -> None:
        """Train on the source, then fit to the target's labels with the source as prior."""
        if not len(task.target):  # labels of a single class are enough
            task.require(type(self).__name__, "target")
        self.source_ = self._train_classifier(task, task.source)
        self.l2_ = choose_on_target(
            task, self.l2, PENALTIES, DEFAULT_PENALTY, self._train, self._posteriors
        )
        self._train(task, task.target, self.l2_)

    def _train(self, task: Task, rows: IntArray, l2: float) -> None:
        """Fit to those of these items that are of the target."""
        rows = rows[task.in_target[rows]]
        coef = class_weights(self.source_, self.classes_)
        intercepts = np.reshape(self.source_.intercept_, (-1, 1))
        start = np.column_stack([coef, expand_classes(self.source_, intercepts, self.classes_)])
        weights = fit_towards(start, task.X[rows], task.y[rows], l2)
        self.coef_, self.intercept_ = weights[:, :-1], weights[:, -1]

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        """Compute p(class | item), the same in all domains."""
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        if scores.shape[1] == 1:
            return np.hstack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """Return ``coef_``, (classes, columns)."""
        return self.coef_


def fit_towards(start: FloatArray, X: Any, y: IntArray, l2: float) -> FloatArray:
    """Minimise the objective of `SourcePrior`; return weights and intercepts, like ``start``.

    ``start``  (rows, columns + 1): W_source and, last, b_source. With two classes there is one
               row, for the score of the second; else a row for each class

    >>> start = np.array([[2.0, 0.0]])
    >>> fit_towards(start, np.array([[1.0]]), np.array([0]), 1e9)[0, 0].round(3)
    np.float64(2.0)
    """
    items = np.arange(len(y))

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(start.shape)
        difference = weights - start
        scores = np.asarray(X @ weights[:, :-1].T) + weights[:, -1]
        # −Σ log p(y | scores), and its derivatives with respect to the scores
        if len(start) == 1:
            sign = np.where(y == 1, 1.0, -1.0)
            margin = sign * scores[:, 0]
            value, slope = np.logaddexp(0.0, -margin).sum(), (-sign * expit(-margin))[:, None]
        else:
            value, slope = -log_softmax(scores, axis=1)[items, y].sum(), softmax(scores, axis=1)
            slope[items, y] -= 1.0
        gradient = np.column_stack([(X.T @ slope).T, slope.sum(axis=0)])
        total = float(value) + 0.5 * l2 * float((difference**2).sum())
        return total, (gradient + l2 * difference).ravel()

    options = {"maxiter": MAX_ITER, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-6}
    result = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(result.x.reshape(start.shape))
