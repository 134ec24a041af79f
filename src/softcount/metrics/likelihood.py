"""Held-out likelihood: how well a model predicts unseen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from softcount.core.errors import DataError, brief
from softcount.core.types import BoolArray, IntArray

Random = int | np.random.Generator | None


class Scorer(Protocol):
    """Any model with a method for the log-likelihood of each item."""

    def score_samples(self, data: Any, /) -> ArrayLike:
        """Return log p(x) of each item."""


@dataclass(frozen=True)
class HeldOut:
    """How well a model predicts unseen items; items of probability zero are counted separately.

    ``log_likelihood``  mean log p(x) of the items with non-zero probability, in nats
    ``items``           number of these items
    ``tokens``          number of their tokens; None if the data have no tokens
    ``impossible``      number of items of probability zero, excluded from all other figures
    ``perplexity``      per token, of the items with non-zero probability; None without tokens
    """

    log_likelihood: float
    items: int
    tokens: float | None
    impossible: int
    perplexity: float | None

    def __str__(self) -> str:
        parts = [f"{self.items} items", f"log-likelihood {self.log_likelihood:.4f} per item"]
        if self.perplexity is not None:
            parts.append(f"perplexity {self.perplexity:.2f} ({self.tokens:g} tokens)")
        if self.impossible:
            parts.append(f"impossible and not counted here: {self.impossible}")
        return ", ".join(parts)


def perplexity(log_likelihood: float, tokens: float) -> float:
    """Return the perplexity per token, exp(−log_likelihood / tokens).

    Predicting a token is as hard as a uniform choice among that many words. ``log_likelihood`` is
    the sum over all tokens, in nats.

    >>> import math
    >>> round(perplexity(100 * math.log(1 / 6), tokens=100), 6)
    6.0
    """
    if not (tokens > 0 and np.isfinite(tokens)):
        raise DataError(
            f"perplexity is undefined for {tokens} tokens",
            "the number of tokens must be positive and finite",
        )
    if np.isnan(log_likelihood):
        raise DataError(
            "the log-likelihood is NaN", "check the model: it is not a valid distribution"
        )
    with np.errstate(over="ignore"):  # beyond the largest float the result is infinity
        return float(np.exp(-log_likelihood / tokens))


def held_out(model: Scorer, data: Any, tokens: float | ArrayLike | None = None) -> HeldOut:
    """Compute the log-likelihood and perplexity of unseen data.

    ``tokens``  number of tokens of each item (an array), or of all items together (a number).
                By default the row sums of sparse matrices and of dense arrays of non-negative whole
                numbers, which are taken to be counts; for other data there is no default.

    >>> class Die:
    ...     def score_samples(self, rolls):
    ...         return [sum(-np.log(6) if 1 <= x <= 6 else -np.inf for x in r) for r in rolls]
    >>> print(held_out(Die(), [[1, 6], [3], [2, 7]], tokens=[2, 1, 2]))
    2 items, log-likelihood -2.6876 per item, perplexity 6.00 (3 tokens),
    impossible and not counted here: 1
    """
    if not hasattr(model, "score_samples"):
        raise DataError(
            f"{type(model).__name__} cannot score data: it has no score_samples",
            "give a fitted model whose score_samples(data) is the log-likelihood of each item",
        )
    scores = np.asarray(model.score_samples(data), dtype=float)
    if scores.ndim != 1 or not len(scores):
        raise DataError(
            f"score_samples gave an array of shape {scores.shape}",
            "it must return one log-likelihood for every item, and there must be at least one item",
        )
    wrong = np.flatnonzero(np.isnan(scores) | (scores == np.inf))
    if len(wrong):
        raise DataError(
            f"the log-likelihood of item {wrong[0]} is {scores[wrong[0]]}",
            "check the item and the model: a variance of zero can cause this",
        )
    possible = scores > -np.inf
    items = int(possible.sum())
    impossible = len(scores) - items
    n_tokens = _count_tokens(data, tokens, possible)
    if not items:
        return HeldOut(-np.inf, 0, n_tokens, impossible, None if n_tokens is None else np.inf)
    total = float(scores[possible].sum())
    per_token = perplexity(total, n_tokens) if n_tokens else None
    return HeldOut(total / items, items, n_tokens, impossible, per_token)


def _count_tokens(data: Any, counts: float | ArrayLike | None, possible: BoolArray) -> float | None:
    """Return the number of tokens of the items with non-zero probability; None if unknown.

    ``counts``    numbers of tokens given by the caller, for each item or in total
    ``possible``  whether each item has non-zero probability, (items,)
    """
    if counts is None:
        if not sparse.issparse(data):
            if not isinstance(data, np.ndarray) or data.ndim != 2 or data.dtype.kind not in "biuf":
                return None
            if not ((data >= 0) & (data == np.floor(data))).all():
                return None
        counts = data.sum(axis=1)
    tokens = np.asarray(counts, dtype=float)
    if tokens.ndim == 0:
        if not possible.all():
            raise DataError(
                f"{(~possible).sum()} items have probability zero, and it is unknown how many of "
                f"the {tokens:g} tokens belong to them",
                "give the number of tokens of each item",
            )
        tokens = tokens[None]
    elif tokens.size != len(possible):
        raise DataError(
            f"{tokens.size} token counts for {len(possible)} items",
            "give one count for each item, or one for all items together",
        )
    else:
        tokens = tokens.ravel()[possible]
    if not (np.isfinite(tokens) & (tokens >= 0)).all():
        raise DataError(
            "a token count is negative or not finite", "give the number of tokens of each item"
        )
    return float(tokens.sum())


def split(data: Any, share: float = 0.2, random_state: Random = 0) -> tuple[IntArray, IntArray]:
    """Split items into a training and a held-out set; return their indices, in random order.

    A fraction ``share`` of the items is held out, rounded; both sets have at least one item.

    >>> learn, held = split(["a", "b", "c", "d", "e"], share=0.4)
    >>> len(learn), len(held), sorted([*learn, *held]) == [0, 1, 2, 3, 4]
    (3, 2, True)
    """
    _check_share(share)
    n = data.shape[0] if hasattr(data, "shape") else len(data)
    if n < 2:
        raise DataError(f"cannot split {n} items into two sets", "give at least two items")
    order = np.random.default_rng(random_state).permutation(n)
    held = min(max(round(n * share), 1), n - 1)
    return order[held:], order[:held]


def document_completion(
    matrix: Any, share: float = 0.5, random_state: Random = 0
) -> tuple[Any, Any]:
    """Split every document into an observed half and a half to predict.

    Each token goes to the second half with probability ``share``: of the n_dv tokens of word v in
    document d, Binomial(n_dv, share) do. Both halves are sparse matrices of the shape of
    ``matrix``, (documents, words).

    >>> seen, unseen = document_completion([[4, 0, 2], [0, 1, 3]])
    >>> (seen + unseen).toarray().tolist()
    [[4, 0, 2], [0, 1, 3]]
    """
    _check_share(share)
    try:
        counted: Any = matrix if sparse.issparse(matrix) else np.asarray(matrix)
    except ValueError:  # rows of unequal lengths
        counted = np.empty(0)
    if counted.ndim != 2 or counted.dtype.kind not in "biuf":
        raise DataError(
            f"this is not a matrix of counts: {brief(matrix)}",
            "give a row for each document and a column for each word",
        )
    whole = counted.tocsr(copy=True) if sparse.issparse(counted) else sparse.csr_array(counted)
    whole.sum_duplicates()
    counts = whole.data
    wrong = np.flatnonzero(~((counts >= 0) & (counts == np.floor(counts)) & np.isfinite(counts)))
    if len(wrong):
        row = int(np.searchsorted(whole.indptr, wrong[0], side="right")) - 1
        raise DataError(
            f"the count in row {row}, column {whole.indices[wrong[0]]} is {counts[wrong[0]]}",
            "only whole tokens can be split: give raw counts, not weights such as tf-idf",
        )
    drawn = np.random.default_rng(random_state).binomial(counts.astype(np.int64), share)
    seen, unseen = whole.copy(), whole
    seen.data = (counts - drawn).astype(whole.dtype)
    unseen.data = drawn.astype(whole.dtype)
    seen.eliminate_zeros()
    unseen.eliminate_zeros()
    return seen, unseen


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise DataError(f"share is {share}", "it must lie strictly between 0 and 1")
