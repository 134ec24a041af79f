"""Model selection: fit a model for each number of classes, and compare criteria."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from softcount.core import interrupt
from softcount.core.contract import SklearnContract
from softcount.core.display import PrintedTable
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.parameters import OneOf
from softcount.core.types import IntArray
from softcount.metrics.likelihood import Random, held_out, split

Criterion = Literal["aic", "bic", "icl", "heldout"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)


@dataclass(frozen=True)
class Row:
    """Criteria for one number of classes; None where the model does not provide a figure.

    ``k``               number of classes
    ``log_likelihood``  of all data, in nats
    ``parameters``      number of free parameters
    ``aic, bic, icl``   smaller is better
    ``heldout``         mean log p(x) of the held-out items, larger is better; −inf if one of them
                        has probability zero
    ``perplexity``      of the held-out items, per token, if they have tokens
    ``verdict``         how learning ended
    """

    k: int
    log_likelihood: float
    parameters: int | None
    aic: float | None
    bic: float | None
    icl: float | None
    heldout: float | None
    perplexity: float | None
    verdict: str | None

    def loss(self, by: Criterion) -> float:
        """Return the criterion as a loss, so that smaller is better; inf if it is unknown."""
        value: float | None = getattr(self, by)
        if value is None or math.isnan(value):
            return math.inf
        return -value if by == "heldout" else value


@dataclass(frozen=True, eq=False)
class Selection:
    """Comparison of numbers of classes.

    ``table``    a `Row` for each number of classes
    ``by``       the criterion that decides
    ``best``     the model with ``best_k`` classes, fitted to all data
    ``n_items``  number of items
    """

    table: tuple[Row, ...]
    by: Criterion
    best: Any
    n_items: int

    @property
    def best_k(self) -> int:
        """The number of classes chosen by the criterion ``by``."""
        return self.winner(self.by)

    def winner(self, by: Criterion) -> int:
        """Return the number of classes that a criterion prefers; of ties, the smallest."""
        row = min(self.table, key=lambda row: row.loss(by))
        if row.loss(by) == math.inf:
            raise _make_no_winner_error(by, self.best)
        return row.k

    @property
    def known(self) -> tuple[Criterion, ...]:
        """The criteria with a figure for at least one number of classes."""
        return tuple(by for by in CRITERIA if any(row.loss(by) < math.inf for row in self.table))

    def losses(self) -> dict[Criterion, list[float]]:
        """Return each criterion's excess loss over its best row, in nats per item.

        AIC, BIC and ICL are on the scale of −2 log p(all data), so they are divided by 2n.
        """
        excess = {}
        for by in self.known:
            losses = np.array([row.loss(by) for row in self.table])
            scale = 1.0 if by == "heldout" else 2.0 * self.n_items
            excess[by] = ((losses - losses.min()) / scale).tolist()
        return excess

    def __str__(self) -> str:
        from softcount.metrics.report import write_selection

        return write_selection(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.rows()._repr_html_()

    def rows(self) -> PrintedTable:
        """Return the criteria as a table: a row per number of classes."""
        names = [each.name for each in fields(Row)][1:]
        columns = {name: [getattr(row, name) for row in self.table] for name in names}
        kept = {name: c for name, c in columns.items() if any(value is not None for value in c)}
        kept["chosen"] = ["*" if row.k == self.best_k else "" for row in self.table]
        return PrintedTable(kept, {"k": [row.k for row in self.table]}, title=f"by {self.by}")

    def to_frame(self) -> Any:
        """Return the criteria as a data frame (needs pandas)."""
        return self.rows().to_frame()

    def svg(self) -> str:
        """Draw all criteria as curves over the number of classes, as an ``<svg>`` element."""
        from softcount.metrics.report import draw_selection

        return str(draw_selection(self))

    def plot(self, ax: Any = None) -> Any:
        """Draw the same curves with matplotlib, on ``ax`` or on new axes; return the axes."""
        from softcount.metrics.report import plot_selection

        return plot_selection(self, ax)


@interrupt.graceful()
def select(
    model: Any,
    data: Any,
    k: Iterable[int] = range(2, 21),
    by: Criterion = "bic",
    *,
    share: float = 0.2,
    random_state: Random = 0,
    on_fit: Callable[[Row], object] | None = None,
) -> Selection:
    """Fit a model with each number of classes, and choose the best.

    ``model``   any estimator with ``n_components``, ``fit`` and ``score_samples``; it is cloned
                with all its settings, restarts included. Its methods ``aic``, ``bic`` and ``icl``
                are used where it has them
    ``k``       the numbers of classes to try
    ``by``      'bic', 'aic', 'icl', or 'heldout': the log-likelihood of held-out items under a
                second fit to the others. A fraction ``share`` of the items is held out, drawn with
                ``random_state``, the same for every k
    ``on_fit``  called with each `Row` as soon as it is available

    After Ctrl-C the choice is among the numbers of classes completed by then.

    >>> from softcount import MultinomialMixture
    >>> texts = ["a b a b", "b a b a", "c d d c", "d c c d", "e f f e", "f e e f"] * 5
    >>> found = select(MultinomialMixture(), texts, k=range(1, 6))
    >>> found.best_k, found.best.n_components
    (3, 3)
    """
    numbers = _check_arguments(model, k, by)
    data = data if hasattr(data, "shape") else list(data)
    n_items = data.shape[0] if hasattr(data, "shape") else len(data)
    parts = split(data, share, random_state) if by == "heldout" else None
    fewest = n_items if parts is None else len(parts[0])
    if numbers[-1] > fewest:
        raise DataError(
            f"there are {fewest} items to learn from, too few for k={numbers[-1]} classes",
            "try fewer classes, or give more data" + (" or hold out less" if parts else ""),
        )
    rows: list[Row] = []
    best, least = None, math.inf
    for n in numbers:
        fitted = _clone_with(model, n).fit(data)
        if interrupt.asked() and rows:  # this fit was cut short: not comparable with the others
            break
        row = _make_row(fitted, n, data, _score_held_out(model, n, data, parts))
        rows.append(row)
        if row.loss(by) < least:
            best, least = fitted, row.loss(by)
        if on_fit is not None:
            on_fit(row)
        if interrupt.asked():
            break
    if best is None:
        raise _make_no_winner_error(by, model)
    return Selection(tuple(rows), by, best, n_items)


def _check_arguments(model: Any, k: Iterable[int], by: str) -> list[int]:
    """Return the numbers of classes to try, sorted.

    Raises a `LearnerError` if there are none, or if the criterion or the model does not fit.
    """
    numbers = sorted(set(k)) if isinstance(k, Iterable) else []
    wrong = [n for n in numbers if n != int(n) or n < 1]
    if wrong:
        raise LearnerError(
            f"k contains {wrong[0]}, which is not a valid number of classes",
            "give whole numbers, 1 or more",
        )
    if not numbers:
        raise LearnerError(
            f"k={brief(k)} contains no numbers of classes", "give some, such as k=range(2, 21)"
        )
    OneOf(*CRITERIA, hint=f"choose one of {', '.join(CRITERIA)}").check("by", by)
    name = type(model).__name__
    if not hasattr(model, "get_params") or "n_components" not in model.get_params():
        raise LearnerError(
            f"{name} has no n_components, so there is no number of classes to choose",
            "give an unfitted estimator, such as MultinomialMixture()",
        )
    needed = ["fit", "score_samples", *([] if by == "heldout" else [by])]
    missing = [method for method in needed if not hasattr(model, method)]
    if missing:
        raise LearnerError(
            f"{name} has no {' and no '.join(missing)}",
            f"selecting by {by!r} needs the methods {', '.join(needed)}",
        )
    return [int(n) for n in numbers]


def _make_no_winner_error(by: Criterion, model: Any) -> DataError:
    """Return the error for a criterion that is finite for no number of classes."""
    if by == "heldout":
        return DataError(
            "for every number of classes, some held-out item has probability zero",
            "smooth the model, so that unseen words have non-zero probability",
        )
    return DataError(
        f"{type(model).__name__} has no finite {by} on these data", "choose another criterion"
    )


def _clone_with(model: Any, n: int) -> Any:
    if isinstance(model, SklearnContract):
        return model._unfitted().set_params(n_components=n)
    from sklearn.base import clone

    return clone(model).set_params(n_components=n)


def _score_held_out(
    model: Any, n: int, data: Any, parts: tuple[IntArray, IntArray] | None
) -> tuple[float | None, float | None]:
    """Return the log-likelihood per item and the perplexity per token of the held-out items.

    ``parts``  indices of the training and the held-out items; None: nothing is held out
    """
    if parts is None:
        return None, None
    from sklearn.utils import _safe_indexing

    learn, held = (_safe_indexing(data, part) for part in parts)
    fitted = _clone_with(model, n).fit(learn)
    vectorizer = getattr(fitted, "vectorizer_", None)  # without one, the data are counts
    tokens = None if vectorizer is None else vectorizer.transform(held).sum(axis=1)
    scores = held_out(fitted, held, tokens)
    if scores.impossible:
        return -math.inf, None
    counts_tokens = hasattr(fitted, "words_") and not getattr(fitted, "bernoulli", False)
    return scores.log_likelihood, scores.perplexity if counts_tokens else None


def _make_row(fitted: Any, n: int, data: Any, scores: tuple[float | None, float | None]) -> Row:
    criteria = {
        by: float(getattr(fitted, by)(data)) if hasattr(fitted, by) else None
        for by in ("aic", "bic", "icl")
    }
    verdict = getattr(fitted, "verdict_", None)
    return Row(
        k=n,
        log_likelihood=float(np.sum(fitted.score_samples(data))),
        parameters=getattr(fitted, "n_parameters_", None),
        heldout=scores[0],
        perplexity=scores[1],
        verdict=None if verdict is None else str(verdict),
        **criteria,
    )
