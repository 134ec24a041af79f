"""From rough moment estimates to usable parameters: one averaging step, and no missing class."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import softmax

from softcount.types import Array


def frequencies(counts: csr_matrix, weights: Array) -> Array:
    """How often each word occurs, as probabilities."""
    total = counts.T @ weights
    return total / total.sum()  # type: ignore[no-any-return]


def settle(
    counts: csr_matrix,
    weights: Array,
    mix: Array,
    words: Array,
    n_components: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """π and θ after one posterior average, filled up to ``n_components`` classes.

    ``mix`` and ``words`` come from moments: right up to O(N^−½), with entries clipped at zero.
    A blend of N^−½ with the overall frequencies opens those again; averaging the documents by
    their posteriors (one EM step, whose fixed point in the limit is the truth) takes up what
    pairs and triples leave unused. One pseudo-word a class keeps every word of the data possible.
    """
    overall = frequencies(counts, weights)
    blend = 1.0 / np.sqrt(1.0 + counts.shape[0])
    words = (1 - blend) * words + blend * overall
    mix = (1 - blend) * mix + blend / len(mix)
    log_joint = counts @ np.log(np.where(words > 0, words, 1.0)).T + np.log(mix)
    posterior = softmax(log_joint, axis=1) * weights[:, None]
    size = posterior.sum(axis=0)
    alive = size >= min(0.5, size.max())  # half a document, unless there is not that much
    words = (counts.T @ posterior[:, alive]).T + overall
    words /= words.sum(axis=1, keepdims=True)
    return _filled(counts, size[alive] / size[alive].sum(), words, overall, n_components, rng)


def _filled(
    counts: csr_matrix,
    mix: Array,
    words: Array,
    overall: Array,
    n_components: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Classes that the moments do not show: overall frequencies, half way to some document."""
    missing = n_components - len(mix)
    if not missing:
        return mix, words
    some = counts[rng.choice(counts.shape[0], missing)].toarray()
    some /= some.sum(axis=1, keepdims=True)
    mix = np.append(mix * (len(mix) / n_components), np.full(missing, 1 / n_components))
    return mix, np.vstack([words, (some + overall) / 2])
