"""Comparison of adaptation methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from softcount.adapt.adversarial import AdversarialNetwork
from softcount.adapt.base import Adapter
from softcount.adapt.data import domain_folds
from softcount.adapt.denoising import DenoisingProjection
from softcount.adapt.pivots import PivotProjection
from softcount.adapt.supervised import (
    EasyAdapt,
    Interpolation,
    Merge,
    PredictionFeature,
    SourceOnly,
    SourcePrior,
    TargetOnly,
    Weighted,
)
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.parameters import check_number, check_whole
from softcount.core.types import BoolArray, IntArray
from softcount.labels import propagation as tfidf
from softcount.labels.data import hard_labels
from softcount.mixture.data import is_unknown
from softcount.text.documents import find_texts

WITHOUT_TARGET_LABELS: tuple[type[Adapter], ...] = (
    SourceOnly,
    PivotProjection,
    DenoisingProjection,
    AdversarialNetwork,
)
WITH_TARGET_LABELS: tuple[type[Adapter], ...] = (
    TargetOnly,
    Merge,
    Weighted,
    Interpolation,
    PredictionFeature,
    SourcePrior,
    EasyAdapt,
)


def make_methods(target_labels: bool) -> dict[str, Adapter]:
    """Make all methods with default settings; without target labels, only those that need none.

    >>> list(make_methods(False))
    ['SourceOnly', 'PivotProjection', 'DenoisingProjection', 'AdversarialNetwork']
    """
    methods = WITHOUT_TARGET_LABELS + (WITH_TARGET_LABELS if target_labels else ())
    return {method.__name__: method() for method in methods}


CEILING = "all target labels"
"""Name of the upper bound: a classifier trained on the labels of all target items."""
COMPARED_FOLDS = 5


class Domain(NamedTuple):
    """Items of a domain with their labels, and optionally separate test items.

    Without test items, half of the items are held out for testing, drawn anew every time.
    """

    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None


class Result(NamedTuple):
    """Result of one method on one transfer from source to target.

    ``accuracy`` is on unseen items of the target, ``seconds`` is CPU time for tuning, learning and
    predicting; ``settings`` are those that were tuned.
    """

    source: str
    target: str
    method: str
    draw: int
    accuracy: float
    seconds: float
    settings: Mapping[str, Any]


class Comparison:
    """Result of `compare`: a table when printed, a chart in a notebook.

    ``results`` has every run.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = tuple(results)

    @property
    def methods(self) -> list[str]:
        """The methods, in the order in which they ran."""
        return list(dict.fromkeys(one.method for one in self.results))

    @property
    def transfers(self) -> list[tuple[str, str]]:
        """(source, target), in the order in which they ran."""
        return list(dict.fromkeys((one.source, one.target) for one in self.results))

    def accuracy(self, method: str, transfer: tuple[str, str] | None = None) -> float:
        """Return a method's mean accuracy over draws; over all transfers if none is given."""
        if transfer is None:
            return float(np.mean([self.accuracy(method, one) for one in self.transfers]))
        return self._mean("accuracy", method, transfer)

    def seconds(self, method: str) -> float:
        """Return the mean CPU seconds of a run of this method."""
        return float(np.mean([self._mean("seconds", method, one) for one in self.transfers]))

    def table(self) -> dict[str, dict[str, float]]:
        """Return accuracies: a row for each method, a column for each transfer, and the mean."""
        return {
            method: {
                **{f"{s} → {t}": self.accuracy(method, (s, t)) for s, t in self.transfers},
                "mean": self.accuracy(method),
            }
            for method in self.methods
        }

    def svg(self) -> str:
        """Draw a chart: a dot for each method and transfer, a bar for the mean."""
        # imported by name, because charts are a layer above this one
        return str(import_module("softcount.adapt.report").draw_comparison(self))

    def _mean(self, what: str, method: str, transfer: tuple[str, str]) -> float:
        runs = [one for one in self.results if (one.source, one.target) == transfer]
        found = [getattr(one, what) for one in runs if one.method == method]
        if not found:
            raise KeyError(f"there is no result of {method} on {' → '.join(transfer)}")
        return float(np.mean(found))

    def __str__(self) -> str:
        return str(import_module("softcount.adapt.report").write_comparison(self))

    def _repr_html_(self) -> str:
        return self.svg()


def compare(
    methods: Mapping[str, Any] | Iterable[Any] | None,
    data: Mapping[str, Domain | tuple[Any, ...]],
    *,
    pairs: Sequence[tuple[str | tuple[str, ...], str]] | None = None,
    target_labels: float = 0,
    draws: int = 3,
    vectorizer: Any = None,
    tune: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
    ceiling: bool = True,
    random_state: int = 0,
    on_result: Callable[[Result], object] | None = None,
) -> Comparison:
    """Measure the accuracy of methods on several transfers from one domain to another.

    ``methods``        a mapping from names, or a list; None: all, those that need labels of the
                       target only if there are some. A method may be a pipeline, such as a
                       projection followed by a network
    ``data``           domains by name: (X, y), or (X, y, X_test, y_test), see `Domain`
    ``pairs``          (source, target) by name, with a tuple of names for several sources; None:
                       all ordered pairs
    ``target_labels``  number of target items with visible labels, or their proportion if below 1;
                       balanced over classes. Other labels of the target are hidden from all
                       methods, and test items are not seen at all
    ``draws``          number of draws of these labels
    ``vectorizer``     turns items into rows; it is fitted to source and target, but not to test
                       items. None: tf-idf for texts; matrices are left as they are
    ``tune``           by name of a method, a grid of settings. They are chosen on held-out labels
                       of the target if each class has five, else of the source
    ``ceiling``        whether to add a classifier trained on all labels of the target
    ``random_state``   seed of the draws and of the methods
    ``on_result``      callback for every `Result`

    >>> books = (["a good book", "a bad book", "good plot", "bad plot"], [1, 0, 1, 0])
    >>> ovens = (["good oven", "bad oven", "a good grill", "a bad grill"], [1, 0, 1, 0])
    >>> from softcount.adapt.supervised import SourceOnly
    >>> found = compare([SourceOnly()], {"books": books, "ovens": ovens}, ceiling=False)
    >>> found.accuracy("SourceOnly", ("books", "ovens"))
    1.0
    """
    check_whole("draws", draws)
    check_whole("random_state", random_state, 0)
    check_number("target_labels", target_labels, "a share below 1, or a number of items")
    domains = {name: _check_domain(name, Domain(*one)) for name, one in data.items()}
    given = permutations(domains, 2) if pairs is None else pairs
    transfers = [((s,) if isinstance(s, str) else tuple(s), t) for s, t in given]
    for sources, target in transfers:
        for name in (*sources, target):
            if name not in domains:
                raise DataError(
                    f"there is no domain {brief(name)}", f"the domains are {', '.join(domains)}"
                )
        if target in sources or not sources:
            raise DataError(
                f"{brief(target)} cannot be its own source", "name another domain as source"
            )
    if not transfers:
        raise DataError("there is nothing to compare", "give two domains or more")
    if methods is None:
        methods = make_methods(target_labels > 0)
    if not isinstance(methods, Mapping):
        listed = list(methods)
        methods = {type(one).__name__: one for one in listed}
        if len(methods) < len(listed):
            raise LearnerError(
                "two methods have the same name", "give a mapping from names to methods"
            )
    grids = {} if tune is None else tune
    if unknown := sorted(set(grids) - set(methods)):
        raise LearnerError(
            f"tune has settings for {brief(unknown[0])}, which is not a method",
            f"the methods are {', '.join(methods)}",
        )

    def run_all() -> Iterator[Result]:
        for sources, target in transfers:
            for draw in range(draws):
                seed = random_state + draw
                trial = _Trial(domains, sources, target, target_labels, vectorizer, seed)
                for name, method in methods.items():
                    if draw == 0 or trial.is_random or _list_settings(method, "random_state"):
                        own = clone(method)
                        own.set_params(**dict.fromkeys(_list_settings(own, "random_state"), seed))
                        yield trial.run(name, own, trial.y, grids.get(name), draw)
                if ceiling and (draw == 0 or trial.splits):
                    y = [None] * int((trial.domain > 0).sum()) + trial.target_labels
                    yield trial.run(CEILING, TargetOnly(), y, None, draw)

    results = []
    for result in run_all():
        results.append(result)
        if on_result is not None:
            on_result(result)
    return Comparison(results)


def _check_domain(name: str, one: Domain) -> Domain:
    """Check that every item of a domain has a known label; make sparse rows indexable."""
    known = set()
    for X, y in ((one.X, one.y), (one.X_test, one.y_test)):
        if X is None and y is None:
            continue
        n_items, n_labels = (0 if part is None else _num_samples(part) for part in (X, y))
        if n_items != n_labels:
            raise DataError(
                f"{name}: {n_items} items and {n_labels} labels", "give a label for each item"
            )
        labels = list(y)
        if any(is_unknown(label) for label in labels):
            raise DataError(
                f"{name}: some labels are unknown", "give all of them: compare hides them itself"
            )
        known |= set(labels) if X is one.X else set()
        if not set(labels) <= known:
            strange = next(label for label in labels if label not in known)
            raise DataError(
                f"{name}: no item to learn from has the label {brief(strange)}, which is tested",
                "write labels in one way",
            )
    picked = [X.tocsr() if sparse.issparse(X) else X for X in (one.X, one.X_test)]
    return Domain(picked[0], list(one.y), picked[1], one.y_test)


class _Trial:
    """The items of one transfer, with one draw of the visible target labels.

    ``X``, ``y``, ``domain``  training data: sources 1, 2, …, the target −1
    ``X_test``, ``y_test``    test items of the target
    ``target_labels``         all labels of the target
    ``splits``                whether the test items were drawn from the target's items
    ``is_random``             whether another draw would give different data
    """

    def __init__(
        self,
        domains: Mapping[str, Domain],
        sources: tuple[str, ...],
        target: str,
        target_labels: float,
        vectorizer: Any,
        seed: int,
    ) -> None:
        self.source, self.target, self.seed = "+".join(sources), target, seed
        rng = np.random.default_rng(seed)
        own = domains[target]
        self.splits = own.X_test is None
        if self.splits:  # a training and a test half, each with half of every class
            numbers = hard_labels(own.y, _num_samples(own.X)).numbers
            kept = _draw_labelled(numbers, len(own.y) // 2, rng)
            halves = np.flatnonzero(kept), np.flatnonzero(~kept)
            X, y = ([_safe_indexing(part, half) for half in halves] for part in (own.X, own.y))
            own = Domain(X[0], y[0], X[1], y[1])
        shown = _draw_labelled(hard_labels(own.y, _num_samples(own.X)).numbers, target_labels, rng)
        self.is_random = self.splits or 0 < shown.sum() < len(shown)
        parts = [domains[name].X for name in sources]
        number = [k for k, part in enumerate(parts, 1) for _ in range(_num_samples(part))]
        self.domain = np.array(number + [-1] * len(shown))
        self.y = [label for name in sources for label in domains[name].y]
        self.y += [label if keep else None for label, keep in zip(own.y, shown, strict=True)]
        self.target_labels, self.y_test = list(own.y), np.asarray(own.y_test)
        self.X, self.X_test = _stack([*parts, own.X]), own.X_test
        texts = find_texts(self.X)
        if vectorizer is not None or texts is not None:
            default = tfidf.default_vectorizer
            rows = default(texts or []) if vectorizer is None else clone(vectorizer)
            self.X, self.X_test = rows.fit_transform(self.X), rows.transform(self.X_test)

    def run(self, name: str, method: Any, y: list[Any], grid: Any, draw: int) -> Result:
        """Measure the accuracy of a method trained on the labels ``y`` and tuned on a ``grid``."""
        start = time.process_time()
        domains = dict.fromkeys(_list_settings(method, "sample_domain", of_fit=True), self.domain)
        if grid is not None:
            try:
                folds = domain_folds(self.y, self.domain, "target", COMPARED_FOLDS, self.seed)
            except DataError:  # too few labels there
                folds = domain_folds(self.y, self.domain, "source", COMPARED_FOLDS, self.seed)
            method = GridSearchCV(method, dict(grid), cv=folds, error_score="raise")
        method.fit(self.X, y, **domains)
        right = float((method.predict(self.X_test) == self.y_test).mean())
        seconds = time.process_time() - start
        settings = method.best_params_ if grid is not None else {}
        return Result(self.source, self.target, name, draw, right, seconds, settings)


def _list_settings(method: Any, name: str, *, of_fit: bool = False) -> list[str]:
    """Return the names, such as step__random_state, of a parameter of a method or of the steps of a
    pipeline; ``of_fit``: of an argument of their ``fit``."""
    steps = [("", method)]
    if isinstance(method, Pipeline):
        steps = [(f"{step}__", one) for step, one in method.steps]
    return [
        f"{prefix}{name}"
        for prefix, one in steps
        if (has_fit_parameter(one, name) if of_fit else name in one.get_params(deep=False))
    ]


def _draw_labelled(y: IntArray, target_labels: float, rng: np.random.Generator) -> BoolArray:
    """Draw the items whose labels are visible, balanced over classes; return a mask."""
    if not 0 <= target_labels <= len(y):
        raise LearnerError(
            f"target_labels={brief(target_labels)}, but there are {len(y)} items",
            "give a proportion below 1, or a number of items",
        )
    wanted = round(target_labels * len(y)) if target_labels < 1 else int(target_labels)
    keep = np.zeros(len(y), dtype=bool)
    order = rng.permutation(len(y))
    rank = np.empty(len(y), dtype=np.int64)  # of each item among those of its class
    for k in np.unique(y):
        rank[order[y[order] == k]] = np.arange((y == k).sum())
    keep[order[np.argsort(rank[order], kind="stable")][:wanted]] = True
    return keep


def _stack(parts: Sequence[Any]) -> Any:
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    if all(hasattr(part, "shape") and part.ndim == 2 for part in parts):
        return np.vstack(parts)
    return [item for part in parts for item in part]
