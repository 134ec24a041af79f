"""Collapsed Gibbs sampling of multinomial mixtures, one document at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from softcount.core.errors import LearnerError, StoreError
from softcount.core.types import Array, FloatArray, IntArray
from softcount.mixture import kernels as kernel
from softcount.text.bags import check_whole_counts

AGAIN = "restore a sampler of the same documents and settings"
"""Hint for states of other samplers."""

PRIORS = (1e-100, 1e30)
"""Smallest and largest concentration: products of a few such factors still fit into a float."""


@dataclass(frozen=True)
class Restaurant:
    """A Chinese restaurant process over classes, at most ``capacity`` of them at a time.

    A document joins a class in proportion to its size, or opens a new one in proportion to
    ``concentration`` (Aldous 1985; for mixtures: Neal 2000, algorithm 3).
    """

    concentration: float
    capacity: int


class CollapsedMixture:
    """State of the collapsed Gibbs sampler: the class of each document, parameters integrated out.

    ``indptr, words, counts``  the documents in CSR form; counts are whole numbers
    ``n_words``      V, the size of the vocabulary
    ``alpha``        Dirichlet prior of the class weights, one per class; or a `Restaurant`
    ``beta``         Dirichlet prior of the words of a class, one number or one per word
    ``assignments``  the initial class of every document
    ``allowed``      arrays (lower, upper): the possible classes of d are lower_d ≤ k < upper_d

    Probabilities are those of word sequences: there are no multinomial coefficients.

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
        concentration = 0.0
        if isinstance(alpha, Restaurant):
            concentration, alpha = float(alpha.concentration), np.zeros(alpha.capacity)
        else:
            alpha = _check_concentrations("alpha", np.atleast_1d(np.asarray(alpha, np.float64)))
        beta = np.broadcast_to(np.asarray(beta, np.float64), n_words)
        beta, n_classes = _check_concentrations("beta", beta), len(alpha)
        borders, which, values = check_whole_counts(indptr, words, counts, n_words)
        n_documents = len(borders) - 1
        if allowed is None:
            allowed = np.zeros(n_documents), np.full(n_documents, n_classes)
        lower, upper = (np.ascontiguousarray(each, np.int64) for each in allowed)
        lengths = np.diff(np.append(0.0, np.cumsum(values))[borders])
        self._bags = kernel.BagArrays(borders, which, values, lengths, lower, upper)
        # span: how many factors between min β and max Σ_k n_kw + β + MANY fit into a float
        largest = np.bincount(which, values).max(initial=0.0) + beta.max(initial=1.0) + kernel.MANY
        bits = max(np.log2(largest), -np.log2(beta.min(initial=1.0)))
        self._prior = kernel.CollapsedPrior(
            alpha, concentration, beta, float(beta.sum()), int(kernel.SPAN_BITS / bits)
        )
        sizes, totals = np.zeros((2, n_classes))
        self._state = kernel.Assignments(
            np.array(assignments, np.int64), sizes, totals, np.zeros((n_words, n_classes))
        )
        kernel.count_all(self._bags, self._state)
        self.full = False
        """Whether in the last sweep a document could not open a class: all places were taken."""

    @property
    def assignments(self) -> IntArray:
        """The class of every document."""
        return self._state.classes

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Resample the class of every document, given all others.

        ``temper``  inverse temperature: the exponent of the conditional probabilities

        The result depends only on the state and the random stream.
        """
        seed = np.uint64(stream)
        self.full = kernel.sweep(self._bags, self._prior, self._state, seed, float(temper)) > 0

    def conditional(self, document: int) -> FloatArray:
        """Return log p(z_d = k | z_−d, x) for every class k, up to a constant, (K,); −inf where
        not allowed."""
        lower, upper = self._bags.lower[document], self._bags.upper[document]
        current = self._state.classes[document]
        workspace, logs = np.empty((2, len(self._state.sizes)))
        kernel.move(self._bags, self._state, document, current, -1.0)
        kernel.conditional(self._bags, self._prior, self._state, document, workspace, logs)
        kernel.move(self._bags, self._state, document, current, 1.0)
        logs[:lower] = logs[upper:] = -np.inf
        return logs

    def log_joint(self) -> float:
        """Return log p(x, z), the parameters integrated out.

        In a Chinese restaurant process z is a partition: the names of the classes, and the capacity
        of the restaurant, do not enter the probability.
        """
        sizes, alpha = self._state.sizes, self._prior.alpha
        if self._prior.concentration > 0:
            used = sizes[sizes > 0]
            a = self._prior.concentration
            log_classes = len(used) * np.log(a) + gammaln(used).sum()
            alpha_total = a
        else:
            log_classes = (gammaln(alpha + sizes) - gammaln(alpha)).sum()
            alpha_total = alpha.sum()
        log_total = gammaln(alpha_total) - gammaln(alpha_total + sizes.sum())
        return float(log_classes + log_total + kernel.log_words(self._prior, self._state))

    def state(self) -> dict[str, Array]:
        """Return copies of all that a sweep changes; the counts follow from the classes."""
        return {"classes": self._state.classes.copy(), "full": np.array([self.full])}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from what `state` returned; the same bits follow."""
        classes, now = state["classes"], self._state
        lower, upper = self._bags.lower, self._bags.upper
        if classes.shape != lower.shape or not ((lower <= classes) & (classes < upper)).all():
            raise StoreError("this is the state of a sampler of other documents", AGAIN)
        now.classes[:] = classes
        for counts in (now.sizes, now.totals, now.words):
            counts[:] = 0.0
        kernel.count_all(self._bags, now)
        self.full = bool(state["full"][0])

    def counts(self) -> dict[str, FloatArray]:
        """Return the number of documents (1, K) and the word counts (K, V) of each class."""
        return {
            "weights": self._state.sizes[None].copy(),
            "words": np.ascontiguousarray(self._state.words.T),
        }


def _check_concentrations(name: str, values: FloatArray) -> FloatArray:
    """Raise a `LearnerError` unless all values lie in `PRIORS`, where products do not overflow."""
    least, most = PRIORS
    if not ((values >= least) & (values <= most)).all():
        raise LearnerError(
            f"{name} must lie between {least:g} and {most:g}",
            "it is the concentration of a Dirichlet prior: 0.1 and 1 are usual",
        )
    return np.ascontiguousarray(values)
