"""Methods of adaptation side by side."""

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
    """Every method with its usual settings; without labels in the target, those that need none.

    >>> list(make_methods(False))
    ['SourceOnly', 'PivotProjection', 'DenoisingProjection', 'AdversarialNetwork']
    """
    some = WITHOUT_TARGET_LABELS + (WITH_TARGET_LABELS if target_labels else ())
    return {one.__name__: one() for one in some}


CEILING = "all target labels"
"""What a classifier of the target does that has the labels of all its items to learn from."""
COMPARED_FOLDS = 5


class Domain(NamedTuple):
    """Items of a domain with their labels, and others to test on.

    Where there are none to test on, half of the items are kept for it, drawn anew every time.
    """

    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None


class Result(NamedTuple):
    """One method on one way from source to target.

    ``accuracy`` is on items of the target that it never saw, ``seconds`` are of the processor, for
    tuning, learning and predicting; ``settings`` are those that were tuned.
    """

    source: str
    target: str
    method: str
    draw: int
    accuracy: float
    seconds: float
    settings: Mapping[str, Any]


class Comparison:
    """What `compare` found: a table when printed, a picture in a notebook.

    ``results`` has every single run.
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
        """The mean over draws of a method's accuracy; over all transfers if none is given."""
        if transfer is None:
            return float(np.mean([self.accuracy(method, one) for one in self.transfers]))
        return self._mean("accuracy", method, transfer)

    def seconds(self, method: str) -> float:
        """The processor's seconds that a run of this method takes, on average."""
        return float(np.mean([self._mean("seconds", method, one) for one in self.transfers]))

    def table(self) -> dict[str, dict[str, float]]:
        """Accuracies: a row for each method, a column for each transfer, and their mean."""
        return {
            method: {
                **{f"{s} → {t}": self.accuracy(method, (s, t)) for s, t in self.transfers},
                "mean": self.accuracy(method),
            }
            for method in self.methods
        }

    def svg(self) -> str:
        """A picture: a dot for each method and transfer, a bar for the mean."""
        # by its name: pictures are a layer above this one
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
    """Measure how well methods do on several ways from one domain to another.

    ``methods``        by name, or in a list; None: all, those that learn from labels of the target
                       only if there are some. One may be a pipeline of several, such as a
                       projection before a network
    ``data``           domains by name: (X, y), or (X, y, X_test, y_test), see `Domain`
    ``pairs``          (source, target) by name, a tuple of names for several sources; None: all
    ``target_labels``  how many items of the target show their labels: a number, or a share of
                       them; as many of each class as can be. Other labels of the target are hidden
                       from all methods, and those to test on from everything
    ``draws``          how often these are drawn
    ``vectorizer``     makes rows of the items; it sees those of source and target, but not those to
                       test on. None: tf-idf of texts, and matrices as they are
    ``tune``           by name of a method, settings to choose from. What is chosen is best on
                       held-out labels of the target if each class has five, else of the source
    ``ceiling``        whether to show also what all labels of the target could do
    ``on_result``      called with every `Result`

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
                raise DataError(f"there is no domain {brief(name)}", f"{', '.join(domains)}")
        if target in sources or not sources:
            raise DataError(f"{brief(target)} cannot be its own source", "name another")
    if not transfers:
        raise DataError("there is nothing to compare", "give two domains or more")
    if methods is None:
        methods = make_methods(target_labels > 0)
    if not isinstance(methods, Mapping):
        listed = list(methods)
        methods = {type(one).__name__: one for one in listed}
        if len(methods) < len(listed):
            raise LearnerError("two methods have one name", "give a mapping from names to methods")
    grids = {} if tune is None else tune
    if unknown := sorted(set(grids) - set(methods)):
        raise LearnerError(f"tune speaks of {brief(unknown[0])}", f"methods: {', '.join(methods)}")

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
    """Check that a domain has a known label for each item; make rows that can be picked."""
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
    """The items of one transfer, with one draw of the labels that the target shows.

    ``X``, ``y``, ``domain``  what methods learn from: sources from 1 up, the target −1
    ``X_test``, ``y_test``    items of the target to test on
    ``target_labels``         all labels of the target
    ``splits``                whether items to test on were drawn
    ``is_random``             whether another draw would give other data
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
        if self.splits:  # one half to learn from, the other to test on, each with half of a class
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
        """The accuracy of a method that learns from the labels ``y``, tuned on a ``grid``."""
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
    """The names, such as step__random_state, under which a method, or steps of a pipeline, have a
    parameter; ``of_fit``: under which their ``fit`` takes an argument."""
    steps = [("", method)]
    if isinstance(method, Pipeline):
        steps = [(f"{step}__", one) for step, one in method.steps]
    return [
        f"{prefix}{name}"
        for prefix, one in steps
        if (has_fit_parameter(one, name) if of_fit else name in one.get_params(deep=False))
    ]


def _draw_labelled(y: IntArray, target_labels: float, rng: np.random.Generator) -> BoolArray:
    """Which items show their labels: so many, or such a share, evenly of all classes."""
    if not 0 <= target_labels <= len(y):
        raise LearnerError(
            f"target_labels={brief(target_labels)}, of {len(y)} items",
            "give a share below 1, or a number",
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
