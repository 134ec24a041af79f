"""How well a model predicts data that it has not seen."""

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
    """Anything that gives the log-likelihood of each item."""

    def score_samples(self, data: Any, /) -> ArrayLike:
        """log p(x) of each item."""


@dataclass(frozen=True)
class HeldOut:
    """How well a model predicts unseen items; those that it holds to be impossible are apart.

    ``log_likelihood``  mean log p(x) of the items that are possible, in nats
    ``items``           how many these are
    ``tokens``          how many tokens they have; None if there is nothing to count
    ``impossible``      items of probability zero, which are in none of the other figures
    ``perplexity``      per token, of the items that are possible; None without tokens
    """

    log_likelihood: float
    items: int
    tokens: float | None
    impossible: int
    perplexity: float | None

    def __str__(self) -> str:
        parts = [f"{self.items} items", f"log-likelihood {self.log_likelihood:.4f} an item"]
        if self.perplexity is not None:
            parts.append(f"perplexity {self.perplexity:.2f} ({self.tokens:g} tokens)")
        if self.impossible:
            parts.append(f"impossible and not counted here: {self.impossible}")
        return ", ".join(parts)


def perplexity(log_likelihood: float, tokens: float) -> float:
    """exp(−log_likelihood / tokens): as hard to guess as a choice among that many words.

    ``log_likelihood`` is the sum over all tokens, in nats.

    >>> import math
    >>> round(perplexity(100 * math.log(1 / 6), tokens=100), 6)
    6.0
    """
    if not (tokens > 0 and np.isfinite(tokens)):
        raise DataError(f"no perplexity of {tokens} tokens", "count the tokens; at least one")
    if np.isnan(log_likelihood):
        raise DataError("the log-likelihood is NaN", "look at the model: it is no distribution")
    with np.errstate(over="ignore"):  # past the largest float, infinity is the honest answer
        return float(np.exp(-log_likelihood / tokens))


def held_out(model: Scorer, data: Any, tokens: float | ArrayLike | None = None) -> HeldOut:
    """Log-likelihood and perplexity of unseen data.

    ``tokens``  how many tokens the data have: each item (an array), or all together (a number).
                Sparse matrices, and dense arrays of whole numbers that are not negative, are counts
                and say it themselves: the sums of their rows. Nothing else does.

    >>> class Die:
    ...     def score_samples(self, rolls):
    ...         return [sum(-np.log(6) if 1 <= x <= 6 else -np.inf for x in r) for r in rolls]
    >>> print(held_out(Die(), [[1, 6], [3], [2, 7]], tokens=[2, 1, 2]))
    2 items, log-likelihood -2.6876 an item, perplexity 6.00 (3 tokens),
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
            "it must give one log-likelihood for every item, of which there must be one at least",
        )
    wrong = np.flatnonzero(np.isnan(scores) | (scores == np.inf))
    if len(wrong):
        raise DataError(
            f"the log-likelihood of item {wrong[0]} is {scores[wrong[0]]}",
            "look at the item, and at the model: a variance of zero can do this",
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


def _count_tokens(data: Any, given: float | ArrayLike | None, possible: BoolArray) -> float | None:
    """How many tokens the possible items have, if it can be known."""
    if given is None:
        if not sparse.issparse(data):
            if not isinstance(data, np.ndarray) or data.ndim != 2 or data.dtype.kind not in "biuf":
                return None
            if not ((data >= 0) & (data == np.floor(data))).all():
                return None
        given = data.sum(axis=1)
    tokens = np.asarray(given, dtype=float)
    if tokens.ndim == 0:
        if not possible.all():
            raise DataError(
                f"{(~possible).sum()} items are impossible, and it is not known how many of the "
                f"{tokens:g} tokens are theirs",
                "give the number of tokens of each item",
            )
        tokens = tokens[None]
    elif tokens.size != len(possible):
        raise DataError(
            f"{tokens.size} numbers of tokens for {len(possible)} items",
            "give one number for each item, or one for all together",
        )
    else:
        tokens = tokens.ravel()[possible]
    if not (np.isfinite(tokens) & (tokens >= 0)).all():
        raise DataError("a number of tokens is negative or not finite", "count the tokens again")
    return float(tokens.sum())


def split(data: Any, share: float = 0.2, random_state: Random = 0) -> tuple[IntArray, IntArray]:
    """Numbers of the items to learn from and of those to hold out, both in random order.

    ``share`` of the items are held out, rounded, but at least one; at least one is learned from.

    >>> learn, held = split(["a", "b", "c", "d", "e"], share=0.4)
    >>> len(learn), len(held), sorted([*learn, *held]) == [0, 1, 2, 3, 4]
    (3, 2, True)
    """
    _check_share(share)
    n = data.shape[0] if hasattr(data, "shape") else len(data)
    if n < 2:
        raise DataError(f"data of {n} items cannot be split in two", "give at least two items")
    order = np.random.default_rng(random_state).permutation(n)
    held = min(max(round(n * share), 1), n - 1)
    return order[held:], order[:held]


def document_completion(
    matrix: Any, share: float = 0.5, random_state: Random = 0
) -> tuple[Any, Any]:
    """Two halves of every document: one to look at, one to predict.

    Each token goes to the second half with probability ``share``: of n_dv tokens of a word,
    Binomial(n_dv, share) do. The halves are sparse matrices of the shape of the whole.

    >>> seen, unseen = document_completion([[4, 0, 2], [0, 1, 3]])
    >>> (seen + unseen).toarray().tolist()
    [[4, 0, 2], [0, 1, 3]]
    """
    _check_share(share)
    try:
        given: Any = matrix if sparse.issparse(matrix) else np.asarray(matrix)
    except ValueError:  # rows of unequal lengths
        given = np.empty(0)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise DataError(
            f"this is no matrix of counts: {brief(matrix)}",
            "give a row for each document and a column for each word",
        )
    whole = given.tocsr(copy=True) if sparse.issparse(given) else sparse.csr_array(given)
    whole.sum_duplicates()
    counts = whole.data
    wrong = np.flatnonzero(~((counts >= 0) & (counts == np.floor(counts)) & np.isfinite(counts)))
    if len(wrong):
        row = int(np.searchsorted(whole.indptr, wrong[0], side="right")) - 1
        raise DataError(
            f"the count in row {row}, column {whole.indices[wrong[0]]} is {counts[wrong[0]]}",
            "tokens can be dealt out only if they are whole: give raw counts, not weights",
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
        raise DataError(f"share is {share}", "it must lie between 0 and 1, and be neither")
