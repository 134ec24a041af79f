"""Words of documents that are kept from learning, and how well they are foreseen."""

from __future__ import annotations

import numpy as np

from softcount.corpus.bags import Bags
from softcount.errors import DataError
from softcount.kernels import topics as kernels
from softcount.kernels.pool import over_rows
from softcount.models.topics.rows import TINY
from softcount.types import Array, Stats

SEED = 0
"""Of the draw: the same documents are always parted alike, whatever else is random."""


def hold_out(bags: Bags, share: float) -> tuple[Bags, Bags]:
    """The documents twice: with the words to learn from, and with those held out.

    Every token is held out with the probability ``share``. A document that would be left without a
    word keeps all of its own, and a word that would be left in no document is never held out: no
    table could foresee it.

    >>> seen, held = hold_out(Bags.of(np.full((50, 4), 10)), 0.1)
    >>> seen.lengths.sum() + held.lengths.sum(), bool(150 < held.lengths.sum() < 250)
    (np.float64(2000.0), True)
    """
    rows = bags.by_document
    documents = np.repeat(np.arange(len(bags)), np.diff(rows.indptr))
    broken = np.flatnonzero(rows.value != np.floor(rows.value))
    if len(broken):
        d, count = documents[broken[0]], rows.value[broken[0]]
        raise DataError(
            f"document {d} has {count:g} of word {rows.columns[broken[0]]}: only whole words can "
            "be held out",
            "use EM() for weighted or scaled documents",
        )
    drawn = np.random.default_rng(SEED).binomial(rows.value.astype(np.int64), share)
    held = drawn.astype(np.float64)
    for owner, n in ((rows.columns, bags.n_words), (documents, len(bags))):
        left = np.bincount(owner, rows.value - held, minlength=n)
        held[left[owner] == 0.0] = 0.0
    if not held.any():
        raise DataError(
            f"no word could be held out (held_out={share}): the documents are too few or too short",
            "use EM(), or hold out a larger share",
        )
    return _counted(bags, rows.value - held), _counted(bags, held)


def _counted(bags: Bags, values: Array) -> Bags:
    """The same documents with other counts, of which some may be zero."""
    matrix = bags.matrix.copy()
    matrix.data = values
    return Bags.of(matrix)


def foreseen(held: Bags, theta: Array, phi: Array, threads: int) -> Stats:
    """log p(held-out words | θ, φ), with tables as `softcount.models.topics.core.wide` makes them.

    Probabilities below TINY count as TINY: a learner without a prior may come to hold a word
    impossible in a document in which it then occurs.
    """
    rows = held.by_document
    ratios, unused, logs = np.empty(len(rows.value)), np.empty_like(theta), np.empty(len(held))
    parts = (*rows, theta, phi, ratios, unused, logs)
    over_rows(kernels.by_document, rows.indptr, threads, *parts)
    # ratio = count / probability, or 0 for probability 0
    chances = np.divide(rows.value, ratios, out=np.zeros_like(ratios), where=ratios > 0.0)
    log_likelihood = float(rows.value @ np.log(np.maximum(chances, TINY)))
    return Stats({}, log_likelihood, log_likelihood, float(len(held)), float(rows.value.sum()))
