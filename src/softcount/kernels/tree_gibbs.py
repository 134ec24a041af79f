"""Metropolis–Hastings over derivations, all parameters integrated out.

A derivation is a list of cells, entries of tables that have a number each. Given those of all other
sentences it has the probability of its cells one after the other,

    P(t) = Π_c (n_c + α_c) / (n_row(c) + Σα_row(c)),

n being what was counted before, t's own earlier cells included. The order does not matter, so that
P of a derivation is found while its cells are counted, and while they are taken away. A derivation
t' that was drawn with probability Q(t') in proportion to Π θ_c replaces t with the probability
min(1, P(t') Q(t) / (P(t) Q(t'))) (Johnson, Griffiths & Goldwater 2007). Cells of rows that are not
integrated out have the same factor in P and in Q.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.collapsed import log_rising
from softcount.kernels.jit import lean
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array

FIXED = -1
"""In place of a row's number: its chances are known."""


class Prior(NamedTuple):
    """Dirichlet priors α of cells, and Σα of rows; the row of each cell."""

    alpha: Array
    totals: Array
    row_of: Array


class Tally(NamedTuple):
    """How often cells and rows were used, in whole numbers."""

    cells: Array
    rows: Array


@lean
def _count(
    cells: Array,
    first: int,
    last: int,
    by: int,
    alpha: Array,
    alpha_totals: Array,
    row_of: Array,
    counts: Array,
    totals: Array,
    chances: Array,
) -> float:
    """Count cells (by 1), or take them away (−1); gives log P / Q, up to a constant."""
    logs = 0.0
    for i in range(first, last):
        cell = cells[i]
        row = row_of[cell]
        if by < 0:
            counts[cell] -= 1.0
        if row != FIXED:
            if by < 0:
                totals[row] -= 1.0
            mass, total = counts[cell] + alpha[cell], totals[row] + alpha_totals[row]
            logs += math.log(mass / total / chances[cell])
            if by > 0:
                totals[row] += 1.0
        if by > 0:
            counts[cell] += 1.0
    return logs


@lean
def settle(
    old: tuple[Array, Array],
    new: tuple[Array, Array],
    possible: Array,
    chances: Array,
    prior: Prior,
    tally: Tally,
    number: int,
    seed: Any,
    temper: float,
    accepted: Array,
) -> None:
    """Keep the old derivation of each sentence or take the new one, given all others.

    ``old, new``   cells and borders; the old ones are counted in ``tally``, which is kept true
    ``possible``   whether there is a new derivation
    ``chances``    θ of cells, from counts that none of these sentences is part of; new derivations
                   were drawn with θ to the power of ``temper``, and P has that power too
    ``number``     of the first sentence: chance depends on its number and on the seed alone
    ``accepted``   is filled in
    """
    (old_cells, old_borders), (new_cells, new_borders) = old, new
    alpha, alpha_totals, row_of = prior
    counts, totals = tally
    stream = np.empty(1, np.uint64)
    known = (alpha, alpha_totals, row_of, counts, totals, chances)
    for s in range(len(accepted)):
        accepted[s] = possible[s]
        if not possible[s]:
            continue
        ours, theirs = (old_borders[s], old_borders[s + 1]), (new_borders[s], new_borders[s + 1])
        # a stream apart from those that derivations are drawn with
        stream[0] = item_stream(item_stream(seed, number + s), 1)
        before = _count(old_cells, ours[0], ours[1], -1, *known)
        after = _count(new_cells, theirs[0], theirs[1], 1, *known)
        if not uniform(stream, 0) < math.exp(min(0.0, temper * (after - before))):
            accepted[s] = False
            _count(new_cells, theirs[0], theirs[1], -1, *known)
            _count(old_cells, ours[0], ours[1], 1, *known)


@lean
def settled(
    old: tuple[Array, Array], new: tuple[Array, Array], accepted: Array
) -> tuple[Array, Array]:
    """Cells and borders: the new ones where they were accepted."""
    (old_cells, old_borders), (new_cells, new_borders) = old, new
    cells = np.empty(len(old_cells) + len(new_cells), np.int64)
    borders = np.zeros(len(old_borders), np.int64)
    used = 0
    for s in range(len(accepted)):
        first, last = old_borders[s], old_borders[s + 1]
        if accepted[s]:
            first, last = new_borders[s], new_borders[s + 1]
        for i in range(first, last):
            cells[used] = new_cells[i] if accepted[s] else old_cells[i]
            used += 1
        borders[s + 1] = used
    return cells[:used].copy(), borders


@lean
def log_joint(prior: Prior, tally: Tally, chances: Array) -> float:
    """log p(words, trees) = Σ_rows [Σ_c log α_c^(n_c) − log (Σα)^(n)], x^(n) a rising factorial;
    cells of rows that are not integrated out have Σ n_c log θ_c."""
    total = 0.0
    for cell in range(len(prior.alpha)):
        n = tally.cells[cell]
        if n > 0.0:
            if prior.row_of[cell] == FIXED:
                total += n * math.log(chances[cell])
            else:
                total += log_rising(prior.alpha[cell], n)
    for row in range(len(prior.totals)):
        if tally.rows[row] > 0.0:
            total -= log_rising(prior.totals[row], tally.rows[row])
    return total
