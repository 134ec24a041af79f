"""The multinomial mixture with its parameters integrated out, sampled one document at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from softcount.core.errors import DataError, LearnerError
from softcount.core.types import Array
from softcount.mixture import kernels as kernel
from softcount.text.bags import check_whole_counts

PRIORS = (1e-100, 1e30)
"""The smallest prior and the largest: few factors of this size still fit into a float."""


@dataclass(frozen=True)
class Restaurant:
    """A Chinese restaurant process over classes, at most ``capacity`` of them at a time.

    A document joins a class in proportion to its size, or opens a new one in proportion to
    ``concentration`` (Aldous 1985; for mixtures: Neal 2000, algorithm 3).
    """

    concentration: float
    capacity: int

    def __post_init__(self) -> None:
        if not 0 < self.concentration < np.inf:
            raise LearnerError(
                f"concentration={self.concentration} must be positive and finite",
                "1 is usual; a larger one opens more classes",
            )
        if self.capacity < 1:
            raise LearnerError(
                f"capacity={self.capacity}: there must be room for at least one class"
            )


class CollapsedMixture:
    """A state of the sampler: which class each document is in.

    ``indptr, words, counts``  the documents in CSR form; counts are whole numbers
    ``n_words``      V, the size of the vocabulary
    ``alpha``        Dirichlet prior of the classes' weights, one a class; or a `Restaurant`
    ``beta``         Dirichlet prior of the classes' words, one number or one a word
    ``assignments``  the class of every document, to begin with
    ``allowed``      arrays (lower, upper): document d may be in the classes lower_d ≤ k < upper_d

    Probabilities are of a document's words in their order: there are no multinomial coefficients.

    >>> two = CollapsedMixture([0, 1, 2, 3], [0, 0, 1], [5, 4, 6], 2, alpha=np.ones(2), beta=0.1,
    ...                        assignments=[0, 1, 1])
    >>> for stream in range(20):
    ...     two.sweep(stream)
    >>> a, b, c = two.assignments
    >>> bool(a == b != c)
    True
    >>> sorted(two.counts()["weights"][0].tolist())
    [1.0, 2.0]
    """

    def __init__(
        self,
        indptr: ArrayLike,
        words: ArrayLike,
        counts: ArrayLike,
        n_words: int,
        *,
        alpha: ArrayLike | Restaurant,
        beta: ArrayLike,
        assignments: ArrayLike,
        allowed: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        of_classes, concentration = _of_classes(alpha)
        of_words, n_classes = _of_words(beta, n_words), len(of_classes)
        borders, which, values = check_whole_counts(indptr, words, counts, n_words)
        lengths = np.diff(np.append(0.0, np.cumsum(values))[borders])
        ranges = _ranges(allowed, indptr, n_classes)
        self._bags = kernel.BagArrays(borders, which, values, lengths, *ranges)
        self._prior = kernel.CollapsedPrior(
            of_classes, concentration, of_words, float(of_words.sum()), _span(of_words, self._bags)
        )
        self._seats = kernel.Seats(
            _classes(assignments, self._bags),
            np.zeros(n_classes),
            np.zeros(n_classes),
            np.zeros((n_words, n_classes)),
        )
        kernel.seat_all(self._bags, self._seats)
        self.full = False
        """Whether in the last sweep a document could open no class for want of room."""

    @property
    def assignments(self) -> Array:
        """The class of every document."""
        return self._seats.classes

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Draw every document's class anew, given all others; ``temper`` is a power of p.

        What is drawn depends on the state and the stream alone.
        """
        seed = np.uint64(stream)
        self.full = kernel.sweep(self._bags, self._prior, self._seats, seed, float(temper)) > 0

    def conditional(self, document: int) -> Array:
        """log p(z_d = k | z_−d, x) for every class k, up to a constant; −inf where not allowed."""
        lower, upper = self._bags.lower[document], self._bags.upper[document]
        now = self._seats.classes[document]
        room, logs = np.empty((2, len(self._seats.sizes)))
        kernel.move(self._bags, self._seats, document, now, -1.0)
        kernel.conditional(self._bags, self._prior, self._seats, document, room, logs)
        kernel.move(self._bags, self._seats, document, now, 1.0)
        logs[:lower] = logs[upper:] = -np.inf
        return logs

    def log_joint(self) -> float:
        """log p(x, z), the parameters integrated out.

        In a restaurant z is a partition: what its classes are called, and how many there is room
        for, has no probability.
        """
        sizes, alpha = self._seats.sizes, self._prior.alpha
        if self._prior.concentration > 0:
            used = sizes[sizes > 0]
            a = self._prior.concentration
            of_classes = len(used) * np.log(a) + gammaln(used).sum()
            alpha_total = a
        else:
            of_classes = (gammaln(alpha + sizes) - gammaln(alpha)).sum()
            alpha_total = alpha.sum()
        of_all = gammaln(alpha_total) - gammaln(alpha_total + sizes.sum())
        return float(of_classes + of_all + kernel.log_words(self._prior, self._seats))

    def counts(self) -> dict[str, Array]:
        """Documents a class (1, K) and word counts of each class (K, V)."""
        return {
            "weights": self._seats.sizes[None].copy(),
            "words": np.ascontiguousarray(self._seats.words.T),
        }


def _ranges(
    allowed: tuple[ArrayLike, ArrayLike] | None, indptr: ArrayLike, n_classes: int
) -> tuple[Array, Array]:
    """The first class that each document may be in, and the one after the last."""
    n = len(np.asarray(indptr)) - 1
    if allowed is None:
        return np.zeros(n, np.int64), np.full(n, n_classes, np.int64)
    lower, upper = (np.ascontiguousarray(border, np.int64) for border in allowed)
    if lower.shape != (n,) or upper.shape != (n,):
        raise DataError(
            f"allowed has {lower.shape} and {upper.shape} borders, but there are {n} documents",
            "give two arrays with one number a document: the first class, and one past the last",
        )
    wrong = np.flatnonzero((lower < 0) | (lower >= upper) | (upper > n_classes))
    if len(wrong):
        d = wrong[0]
        raise DataError(
            f"document {d} is allowed the classes from {lower[d]} to {upper[d]} (exclusive), "
            f"but there are {n_classes}",
            "allow each document at least one of the classes",
        )
    return lower, upper


def _of_classes(alpha: ArrayLike | Restaurant) -> tuple[Array, float]:
    """The weights' prior as one number a class, and the concentration of a restaurant (else 0)."""
    if isinstance(alpha, Restaurant):
        return np.zeros(alpha.capacity), float(alpha.concentration)
    return _positive("alpha", np.atleast_1d(np.asarray(alpha, np.float64))), 0.0


def _of_words(beta: ArrayLike, n_words: int) -> Array:
    values = np.asarray(beta, np.float64)
    if values.shape not in ((), (n_words,)):
        raise LearnerError(
            f"beta has shape {values.shape}, but there are {n_words} words",
            "give one number, or one a word",
        )
    return _positive("beta", np.broadcast_to(values, n_words))


def _positive(name: str, values: Array) -> Array:
    least, most = PRIORS
    if values.ndim != 1 or not ((values >= least) & (values <= most)).all():
        raise LearnerError(
            f"{name} must be numbers from {least:g} to {most:g}",
            "it is a Dirichlet prior's concentration: 0.1 and 1 are usual",
        )
    return np.ascontiguousarray(values)


def _span(beta: Array, bags: kernel.BagArrays) -> int:
    """How many factors from min β to max Σ_k n_kw + β + MANY fit into a float."""
    often = np.bincount(bags.words, bags.counts).max(initial=0.0)
    largest = often + beta.max(initial=1.0) + kernel.MANY
    return int(kernel.SPAN_BITS / max(np.log2(largest), -np.log2(beta.min(initial=1.0))))


def _classes(assignments: ArrayLike, bags: kernel.BagArrays) -> Array:
    """A copy of the assignments, checked."""
    classes = np.array(assignments, np.int64)
    if classes.shape != bags.lengths.shape:
        raise DataError(
            f"there are {len(bags.lengths)} documents, but assignments of shape {classes.shape}"
        )
    wrong = np.flatnonzero((classes < bags.lower) | (classes >= bags.upper))
    if len(wrong):
        raise DataError(
            f"document {wrong[0]} begins in class {classes[wrong[0]]}, where it may not be",
            "begin with assignments that respect what is allowed",
        )
    return classes
