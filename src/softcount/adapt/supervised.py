"""Methods of adaptation that use labels of the target, and baselines."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, TransformerMixin
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
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimator import SklearnContract
from softcount.core.types import FloatArray, IntArray

WEIGHTS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Of a label of the target, for `Weighted` to choose from."""
N_STEPS = 20
"""`Interpolation` chooses its λ in so many steps from 0 to 1."""
PENALTIES, DEFAULT_PENALTY = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), 0.3
"""λ for `SourcePrior` to choose from, and without labels to choose by."""
MAX_ITER = 500


class SourceOnly(ClassifierParameters, Adapter):
    """Direct transfer: what is learned in the source is applied to the target.

    ``classifier``  any of scikit-learn's, or None: logistic regression
    ``vectorizer``  how texts become rows; None: tf-idf

    >>> texts = ["a good book", "a bad book", "good oven", "bad oven"]
    >>> SourceOnly().fit(texts, [1, 0, -1, -1]).predict(["this oven is good"]).tolist()
    [1]
    """

    _needs = ("source",)

    def _learn(self, task: Task) -> None:
        """Train on labelled items of the sources."""
        self.classifier_ = self._train_classifier(task, task.source)


class TargetOnly(ClassifierParameters, Adapter):
    """Only the few labels of the target; the source is left out.

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
    """All labels together, wherever they are from.

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
    """All labels together, those of the target weighing more.

    ``weight``  how many items of the source one of the target is worth; None: that of 1, 2, 3, 5,
                10, 20 under which most held-out labels of the target are right, and 1 if there are
                too few to hold any out
    ``classifier``, ``vectorizer``  as for `SourceOnly`; the classifier must take weights of items

    Afterwards ``weight_`` is the weight.

    >>> texts = ["a good book", "a bad book", "a sharp knife", "a bad, blunt knife"]
    >>> model = Weighted(weight=5.0).fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["sharp", "blunt"]).tolist()
    [1, 0]
    """

    weight_: float

    def _check_settings(self) -> None:
        """The weight, and whether the classifier takes any."""
        super()._check_settings()
        own = make_classifier() if self.classifier is None else self.classifier
        if not has_fit_parameter(own, "sample_weight"):
            raise LearnerError(
                f"{brief(own)} takes no weights of items",
                "give a classifier whose fit has sample_weight, such as LogisticRegression()",
            )

    def _learn(self, task: Task) -> None:
        """Train on all labelled items, with the weight given or found."""
        self.weight_ = choose_on_target(
            task, self.weight, WEIGHTS, 1.0, self._train, self._posteriors
        )
        self._train(task, task.labelled, self.weight_)

    def _train(self, task: Task, rows: IntArray, weight: float) -> None:
        weights = np.where(task.in_target[rows], weight, 1.0)
        self.classifier_ = self._train_classifier(task, rows, weight=weights)


class FeatureCopies(TransformerMixin, SklearnContract, BaseEstimator):  # type: ignore[misc]
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

    domains_: IntArray
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
        row_lengths = np.diff(X.indptr)
        known = np.repeat(np.isin(domain, self.domains_), row_lengths)  # of each entry
        rows = np.repeat(np.arange(n), row_lengths)[known]
        columns = X.indices[known] + np.repeat((1 + place) * width, row_lengths)[known]
        shape = (n, width * (1 + len(self.domains_)))
        own = sparse.csr_matrix((X.data[known], (rows, columns)), shape=shape)
        return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=shape) + own


class EasyAdapt(ClassifierParameters, Adapter):
    """A linear classifier of `FeatureCopies`, trained on all labels: each word has a weight in
    general, and one more in each domain.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    Afterwards: ``copies_`` and ``classifier_``. An item of a domain never seen has the
    weights in general only; so has one without a given domain, unless there is just one target.

    >>> texts = ["a good book", "a thin plot", "a thin phone", "a bad phone"]
    >>> model = EasyAdapt().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["thin"]).tolist(), model.predict(["thin"], sample_domain=1).tolist()
    ([1], [0])
    """

    copies_: FeatureCopies

    def _learn(self, task: Task) -> None:
        """Train on copies of all labelled items."""
        rows = task.labelled
        self.copies_ = FeatureCopies()
        copies = self.copies_.fit_transform(task.X[rows], None, task.domain[rows])
        self.classifier_ = self._train_classifier(task, rows, copies)

    def _represent(self, X: Any, domain: IntArray) -> Any:
        return self.copies_.transform(X, domain)

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """(classes, columns): a word's weight in general and in a domain, added up."""
        domain = self._default_domain() if sample_domain is None else sample_domain
        parts = class_weights(self.classifier_, self.classes_)
        width, places = self.n_features_in_, [-1, *np.flatnonzero(self.copies_.domains_ == domain)]
        starts = [(1 + int(place)) * width for place in places]
        return np.asarray(np.sum([parts[:, start : start + width] for start in starts], axis=0))


class Interpolation(InterpolationParameters, Adapter):
    """p(y | x) = λ p_target(y | x) + (1 − λ) p_source(y | x).

    ``weight``  λ; None: the one, of 0, 0.05, … 1, under which most held-out labels of the target
                are right; 0.5 if there are too few to hold any out
    ``classifier``, ``vectorizer``  as for `SourceOnly`

    Afterwards: ``weight_``, ``source_`` and ``target_`` (the two classifiers).

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
        """Train both classifiers; the weight is found on labels that neither has seen."""
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
        """p(class | item), mixed."""
        return self._mix(self._classify(self.target_, X), self._classify(self.source_, X))

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """(classes, columns): the mean of both classifiers' weights, as they are mixed."""
        weights = (class_weights(one, self.classes_) for one in (self.target_, self.source_))
        return self._mix(*weights)


class PredictionFeature(ClassifierParameters, Adapter):
    """A classifier of the target's labels, of words and of what the source's classifier says.

    What that says is p(class | item): a feature for each class.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    Afterwards: ``source_`` and ``target_`` (the two classifiers).

    >>> texts = ["a good book", "a bad book", "a good, sharp knife", "a bad, blunt knife"]
    >>> model = PredictionFeature().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["good", "blunt"]).tolist()
    [1, 0]
    """

    _needs = ("source", "target")
    source_: Any
    target_: Any

    def _learn(self, task: Task) -> None:
        """Train on the source, then on the target, where the first has its say."""
        self.source_ = self._train_classifier(task, task.source)
        rows = task.target
        posteriors = self._classify(self.source_, task.X[rows])
        self.target_ = self._train_classifier(task, rows, stack_columns(task.X[rows], posteriors))
        self._source_posteriors = posteriors

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        """p(class | item), as the target's classifier sees it."""
        return self._classify(self.target_, stack_columns(X, self._classify(self.source_, X)))

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """(classes, columns): a word's own weight, and what it makes the source say.

        With p the source's posteriors, w its weights and v those of p, the latter is the
        derivative Σ_k v_k p_k (w_k − Σ_j p_j w_j), on average over the target's labelled items.
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
    """Logistic regression of the target's labels, drawn towards the source's weights.

    Minimised by L-BFGS is −Σ log p(y_i | x_i; W, b) + ½ λ (‖W − W_source‖² + ‖b − b_source‖²) over
    the target's labelled items: the mode under a Gaussian prior around the source (Chelba & Acero
    2004). Intercepts are drawn, too, so that labels of one class do not carry everything away.

    ``l2``       λ; None: the one, of 0.01 to 3, under which most held-out labels of the target are
                  right; 0.3 if there are too few to hold any out
    ``classifier``, ``vectorizer``  as for `SourceOnly`; the classifier gives W_source, so it must
                  be linear

    Afterwards: ``l2_``, ``source_`` (the source's classifier), ``coef_``, ``intercept_``: a
    row for each class, or one if these are two.

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
        """Train on the source, then leave it as far as the target's labels ask for."""
        if not len(task.target):  # labels of a single class will do
            task.require(type(self).__name__, "target")
        self.source_ = self._train_classifier(task, task.source)
        self.l2_ = choose_on_target(
            task, self.l2, PENALTIES, DEFAULT_PENALTY, self._train, self._posteriors
        )
        self._train(task, task.target, self.l2_)

    def _train(self, task: Task, rows: IntArray, l2: float) -> None:
        """Learn from those of these items that are of the target."""
        rows = rows[task.in_target[rows]]
        coef = class_weights(self.source_, self.classes_)
        intercepts = np.reshape(self.source_.intercept_, (-1, 1))
        start = np.column_stack([coef, expand_classes(self.source_, intercepts, self.classes_)])
        weights = fit_towards(start, task.X[rows], task.y[rows], l2)
        self.coef_, self.intercept_ = weights[:, :-1], weights[:, -1]

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        """p(class | item), the same in all domains."""
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        if scores.shape[1] == 1:
            return np.hstack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """(classes, columns): ``coef_``."""
        return self.coef_


def fit_towards(start: FloatArray, X: Any, y: IntArray, l2: float) -> FloatArray:
    """The weights and intercepts of which the objective of `SourcePrior` is least.

    ``start``  (rows, columns + 1): W_source and, last, b_source. One row is for two classes, the
               score of the second; else there is a row for each class

    >>> start = np.array([[2.0, 0.0]])
    >>> fit_towards(start, np.array([[1.0]]), np.array([0]), 1e9)[0, 0].round(3)
    np.float64(2.0)
    """
    items = np.arange(len(y))

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(start.shape)
        away = weights - start
        scores = np.asarray(X @ weights[:, :-1].T) + weights[:, -1]
        # −Σ log p(y | scores), and its derivative by each score
        if len(start) == 1:
            sign = np.where(y == 1, 1.0, -1.0)
            margin = sign * scores[:, 0]
            value, slope = np.logaddexp(0.0, -margin).sum(), (-sign * expit(-margin))[:, None]
        else:
            value, slope = -log_softmax(scores, axis=1)[items, y].sum(), softmax(scores, axis=1)
            slope[items, y] -= 1.0
        gradient = np.column_stack([(X.T @ slope).T, slope.sum(axis=0)])
        total = float(value) + 0.5 * l2 * float((away**2).sum())
        return total, (gradient + l2 * away).ravel()

    options = {"maxiter": MAX_ITER, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-6}
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(start.shape))
