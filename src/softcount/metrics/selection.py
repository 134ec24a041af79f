"""How many classes? One fit for each number of classes, and criteria side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from softcount.core import interrupt
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.parameters import OneOf
from softcount.core.types import IntArray
from softcount.metrics.likelihood import Random, held_out, split

Criterion = Literal["aic", "bic", "icl", "heldout"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)


@dataclass(frozen=True)
class Row:
    """What is known of one number of classes; None where a model cannot say it.

    ``log_likelihood``  of all data, in nats, and ``parameters`` that were free to move
    ``aic, bic, icl``   the smaller the better
    ``heldout``         mean log p(x) of the items held out, the larger the better; −inf if one of
                        them is impossible. And their ``perplexity`` a token, if they have tokens
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
        """The criterion, turned so that the smaller is the better; inf where it is not known."""
        value: float | None = getattr(self, by)
        if value is None or math.isnan(value):
            return math.inf
        return -value if by == "heldout" else value


@dataclass(frozen=True, eq=False)
class Selection:
    """Numbers of classes compared.

    ``table``   a `Row` for each number
    ``by``      the criterion that decides
    ``best``    the model with ``best_k`` classes, fitted to all data
    ``n_items`` how many items there are
    """

    table: tuple[Row, ...]
    by: Criterion
    best: Any
    n_items: int

    @property
    def best_k(self) -> int:
        """The number of classes that the criterion prefers."""
        return self.winner(self.by)

    def winner(self, by: Criterion) -> int:
        """The number that some criterion prefers; of equally good ones the smallest."""
        row = min(self.table, key=lambda row: row.loss(by))
        if row.loss(by) == math.inf:
            raise _no_winner(by, self.best)
        return row.k

    @property
    def known(self) -> tuple[Criterion, ...]:
        """The criteria that have a figure for some number of classes."""
        return tuple(by for by in CRITERIA if any(row.loss(by) < math.inf for row in self.table))

    def losses(self) -> dict[Criterion, list[float]]:
        """How much worse than its best each criterion finds each row, in nats an item.

        AIC, BIC and ICL are on the scale of −2 log p(all data), so that they are divided by 2n.
        """
        found = {}
        for by in self.known:
            losses = np.array([row.loss(by) for row in self.table])
            scale = 1.0 if by == "heldout" else 2.0 * self.n_items
            found[by] = ((losses - losses.min()) / scale).tolist()
        return found

    def __str__(self) -> str:
        from softcount.metrics.report import write_selection

        return write_selection(self)

    def svg(self) -> str:
        """All criteria as curves over the numbers of classes, as an ``<svg>`` element."""
        from softcount.metrics.report import draw_selection

        return str(draw_selection(self))

    def plot(self, ax: Any = None) -> Any:
        """The same curves by matplotlib, on ``ax`` or on new axes, which are given back."""
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
    """Fit a model with each number of classes, and choose.

    ``model``  any estimator with ``n_components``, ``fit`` and ``score_samples``; it is cloned, and
               learns as it is told to, restarts included. ``aic``, ``bic``, ``icl`` are asked for
               where it has them
    ``k``      the numbers of classes to try
    ``by``     'bic', 'aic', 'icl', or 'heldout': a second fit, to all items but a ``share`` that
               ``random_state`` draws, the same for every k; how likely that share is decides
    ``on_fit`` called with each `Row` as soon as it is there

    After Ctrl-C the choice is among the numbers that were done by then.

    >>> from softcount import MultinomialMixture
    >>> texts = ["a b a b", "b a b a", "c d d c", "d c c d", "e f f e", "f e e f"] * 5
    >>> found = select(MultinomialMixture(), texts, k=range(1, 6))
    >>> found.best_k, found.best.n_components
    (3, 3)
    """
    numbers = _check(model, k, by)
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
        fitted = _with(model, n).fit(data)
        if interrupt.asked() and rows:  # it was stopped half-way: no match for the others
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
        raise _no_winner(by, model)
    return Selection(tuple(rows), by, best, n_items)


def _check(model: Any, k: Iterable[int], by: str) -> list[int]:
    """The numbers to try, sorted; a `LearnerError` if there is nothing to compare by or with."""
    given = sorted(set(k)) if isinstance(k, Iterable) else []
    wrong = [n for n in given if n != int(n) or n < 1]
    if wrong:
        raise LearnerError(
            f"k has {wrong[0]}, which is no number of classes", "whole numbers, 1 or more"
        )
    if not given:
        raise LearnerError(
            f"k={brief(k)} has no numbers to choose from", "give some, such as k=range(2, 21)"
        )
    OneOf(*CRITERIA, hint=f"choose one of {', '.join(CRITERIA)}").check("by", by)
    name = type(model).__name__
    if not hasattr(model, "get_params") or "n_components" not in model.get_params():
        raise LearnerError(
            f"{name} has no n_components, so there is no number of classes to choose",
            "give an estimator, not fitted, such as MultinomialMixture()",
        )
    needed = ["fit", "score_samples", *([] if by == "heldout" else [by])]
    missing = [method for method in needed if not hasattr(model, method)]
    if missing:
        raise LearnerError(
            f"{name} has no {' and no '.join(missing)}",
            f"select by {by!r} needs {', '.join(needed)}",
        )
    return [int(n) for n in given]


def _no_winner(by: Criterion, model: Any) -> DataError:
    if by == "heldout":
        return DataError(
            "with every number of classes some item of the held-out share is impossible",
            "smooth the model, so that what it has not seen is possible",
        )
    return DataError(
        f"{type(model).__name__} gives no finite {by} for these data", "choose another criterion"
    )


def _with(model: Any, n: int) -> Any:
    from sklearn.base import clone

    return clone(model).set_params(n_components=n)


def _score_held_out(
    model: Any, n: int, data: Any, parts: tuple[IntArray, IntArray] | None
) -> tuple[float | None, float | None]:
    """Log-likelihood an item and perplexity a token of what was held out, if anything was."""
    if parts is None:
        return None, None
    from sklearn.utils import _safe_indexing

    learn, held = (_safe_indexing(data, part) for part in parts)
    fitted = _with(model, n).fit(learn)
    vectorizer = getattr(fitted, "vectorizer_", None)  # without one, data speak for themselves
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
