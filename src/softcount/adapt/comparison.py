"""Methods of adaptation side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

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
from softcount.core.types import Array
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


# Methods side by side: on several ways from one domain to another, with labels drawn anew.


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
        found = [
            getattr(one, what)
            for one in self.results
            if one.method == method and (one.source, one.target) == transfer
        ]
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
    """How well methods do on several ways from one domain to another.

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
    transfers = _list_transfers(domains, pairs)
    chosen = _by_name(methods, target_labels > 0)
    strange = sorted(set(tune or {}) - set(chosen))
    if strange:
        raise LearnerError(f"tune speaks of {brief(strange[0])}", f"methods: {', '.join(chosen)}")
    results: list[Result] = []

    def tell(found: Result) -> None:
        results.append(found)
        if on_result is not None:
            on_result(found)

    for sources, target in transfers:
        for draw in range(draws):
            trial = _Trial(domains, sources, target, target_labels, vectorizer, random_state + draw)
            for name, method in chosen.items():
                if draw == 0 or trial.is_random or _seed_names(method):
                    tell(trial.run(name, method, (tune or {}).get(name), draw))
            if ceiling and (draw == 0 or trial.splits):
                tell(trial.run_ceiling(draw))
    return Comparison(results)


def _list_transfers(
    domains: Mapping[str, Domain], pairs: Sequence[tuple[str | tuple[str, ...], str]] | None
) -> list[tuple[tuple[str, ...], str]]:
    given = list(permutations(domains, 2)) if pairs is None else list(pairs)
    found = [((s,) if isinstance(s, str) else tuple(s), t) for s, t in given]
    for sources, target in found:
        for name in (*sources, target):
            if name not in domains:
                raise DataError(f"there is no domain {brief(name)}", f"{', '.join(domains)}")
        if target in sources or not sources:
            raise DataError(f"{brief(target)} cannot be its own source", "name another")
    if not found:
        raise DataError("there is nothing to compare", "give two domains or more")
    return found


def _check_domain(name: str, one: Domain) -> Domain:
    """A domain with a known label for each item, and rows that can be picked."""
    known = set()
    for X, y in ((one.X, one.y), (one.X_test, one.y_test)):
        if X is None and y is None:
            continue
        n_items, n_labels = (0 if part is None else _length(part) for part in (X, y))
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


def _by_name(
    methods: Mapping[str, Any] | Iterable[Any] | None, target_labels: bool
) -> dict[str, Any]:
    if methods is None:
        return dict(make_methods(target_labels))
    if isinstance(methods, Mapping):
        return dict(methods)
    listed = list(methods)
    found = {type(one).__name__: one for one in listed}
    if len(found) < len(listed):
        raise LearnerError("two methods have one name", "give a mapping from names to methods")
    return found


class _Trial:
    """One draw of the labels that the target shows."""

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
        home = domains[target]
        self.splits = home.X_test is None
        if self.splits:
            home = _halve(home, rng)
        y = hard_labels(home.y, _length(home.X)).numbers
        shown_labels = _draw_labelled(y, target_labels, rng)
        self.is_random = self.splits or 0 < shown_labels.sum() < len(y)
        parts = [domains[name].X for name in sources]
        X = _stack([*parts, home.X])
        self.X, self.X_test = _vectorize(X, home.X_test, vectorizer)
        own = [label if keep else None for label, keep in zip(home.y, shown_labels, strict=True)]
        self.y = [label for name in sources for label in domains[name].y] + own
        self.y_test = np.asarray(home.y_test)
        number = [k for k, part in enumerate(parts, 1) for _ in range(_length(part))]
        self.domain = np.array(number + [-1] * len(y))
        self.all_of_target = list(home.y)

    def run(self, name: str, method: Any, grid: Any, draw: int) -> Result:
        """A method's accuracy."""
        own = clone(method)
        own.set_params(**dict.fromkeys(_seed_names(own), self.seed))
        return self._measure(name, own, self.y, grid, draw)

    def run_ceiling(self, draw: int) -> Result:
        """The accuracy with all labels of the target, and no source."""
        y = [None] * int((self.domain > 0).sum()) + self.all_of_target
        return self._measure(CEILING, TargetOnly(), y, None, draw)

    def _measure(self, name: str, method: Any, y: list[Any], grid: Any, draw: int) -> Result:
        begun = time.process_time()
        domains = dict.fromkeys(_domain_arguments(method), self.domain)
        if grid is not None:
            method = GridSearchCV(method, dict(grid), cv=self._folds(), error_score="raise")
        method.fit(self.X, y, **domains)
        right = float((method.predict(self.X_test) == self.y_test).mean())
        seconds = time.process_time() - begun
        settings = method.best_params_ if grid is not None else {}
        return Result(self.source, self.target, name, draw, right, seconds, settings)

    def _folds(self) -> list[tuple[Array, Array]]:
        try:
            return domain_folds(self.y, self.domain, "target", COMPARED_FOLDS, self.seed)
        except DataError:  # too few labels there
            return domain_folds(self.y, self.domain, "source", COMPARED_FOLDS, self.seed)


def _seed_names(method: Any) -> list[str]:
    """The settings of a method, or of the steps of a pipeline, that are seeds."""
    return [
        f"{prefix}random_state"
        for prefix, step in _steps(method)
        if "random_state" in step.get_params(deep=False)
    ]


def _domain_arguments(method: Any) -> list[str]:
    """Names under which ``fit`` of a method, or of a pipeline, takes domains."""
    return [
        f"{prefix}sample_domain"
        for prefix, step in _steps(method)
        if has_fit_parameter(step, "sample_domain")
    ]


def _steps(method: Any) -> list[tuple[str, Any]]:
    """What begins the names of settings of each step, and the step; one without a name if this is
    no pipeline."""
    if isinstance(method, Pipeline):
        return [(f"{name}__", step) for name, step in method.steps]
    return [("", method)]


def _halve(home: Domain, rng: np.random.Generator) -> Domain:
    """One half to learn from, the other to test on, each with half of every class."""
    y = list(home.y)
    numbers = hard_labels(y, _length(home.X)).numbers
    here = _draw_labelled(numbers, len(y) // 2, rng)
    one, other = np.flatnonzero(here), np.flatnonzero(~here)
    return Domain(
        _safe_indexing(home.X, one),
        [y[i] for i in one],
        _safe_indexing(home.X, other),
        [y[i] for i in other],
    )


def _draw_labelled(y: Array, target_labels: float, rng: np.random.Generator) -> Array:
    """Which items show their labels: so many, or such a share, evenly of all classes."""
    if not 0 <= target_labels <= len(y):
        raise LearnerError(
            f"target_labels={brief(target_labels)}, of {len(y)} items",
            "give a share below 1, or a number",
        )
    wanted = round(target_labels * len(y)) if target_labels < 1 else int(target_labels)
    keep = np.zeros(len(y), dtype=bool)
    order = rng.permutation(len(y))
    place = np.empty(len(y), dtype=np.int64)  # of each item among those of its class
    for k in np.unique(y):
        place[order[y[order] == k]] = np.arange((y == k).sum())
    keep[order[np.argsort(place[order], kind="stable")][:wanted]] = True
    return keep


def _vectorize(X: Any, X_test: Any, vectorizer: Any) -> tuple[Any, Any]:
    found = find_texts(X) if getattr(X, "ndim", 1) == 1 else None
    if vectorizer is None and found is None:
        return X, X_test
    own = tfidf.default_vectorizer(found or []) if vectorizer is None else clone(vectorizer)
    return own.fit_transform(X), own.transform(X_test)


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _stack(parts: Sequence[Any]) -> Any:
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    if all(hasattr(part, "shape") and part.ndim == 2 for part in parts):
        return np.vstack(parts)
    return [item for part in parts for item in part]
