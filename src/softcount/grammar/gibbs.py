"""Collapsed sampling of trees: the probabilities of rules are integrated out.

A derivation is a list of cells: the table entries that it uses, numbered across all tables. Given
the derivations of all other sentences, its probability is the product over its cells in order,

    P(t) = Π_c (n_c + α_c) / (n_row(c) + Σα_row(c)),

where n are the counts so far, including t's own earlier cells. The order does not matter, so P of a
derivation is computed while its cells are counted or removed. A proposal t', drawn with probability
Q(t') proportional to Π θ_c, replaces t with probability min(1, P(t') Q(t) / (P(t) Q(t')))
(Metropolis–Hastings; Johnson, Griffiths & Goldwater 2007). Cells of rows that are not integrated
out have the same factor in P and in Q.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softcount.core.errors import LearnerError
from softcount.core.types import Array, BoolArray, FloatArray, IntArray, Params
from softcount.families.base import Family
from softcount.families.categorical import DirichletRows
from softcount.kernels.collapsed import log_rising
from softcount.kernels.jit import lean
from softcount.kernels.random import item_stream, uniform

if TYPE_CHECKING:
    from softcount.grammar.core import Grammar
    from softcount.grammar.data import TreeShard

FIXED = -1
"""Stands for the number of a row whose probabilities are fixed, not integrated out."""
N_BLOCKS, MAX_BLOCK = 20, 100
"""Number of blocks of sentences, and maximum number of sentences in a block."""
PRIOR_BOUNDS = (1e-50, 1e12)
"""Smallest and largest prior for which the factors of one cell do not under- or overflow."""


class DerivationCells(NamedTuple):
    """Derivations as cells: sentence s uses ``cells[indptr[s]:indptr[s + 1]]``, root first.

    ``cells``   int64
    ``indptr``  int64 (sentences + 1,)
    ``log_p``   float64 (sentences,): log p of each sentence; −inf if it has no derivation
    """

    cells: IntArray
    indptr: IntArray
    log_p: FloatArray


class CellPriors(NamedTuple):
    """Dirichlet priors of all cells.

    ``alpha``   float64 (cells,): α; 0 where an entry is impossible
    ``totals``  float64 (rows,): Σα
    ``row_of``  int64 (cells,): the row of each cell, or `FIXED`
    """

    alpha: FloatArray
    totals: FloatArray
    row_of: IntArray


class CellCounts(NamedTuple):
    """Counts of cells and of rows (whole numbers): float64 (cells,) and (rows,)."""

    cells: FloatArray
    rows: FloatArray


@lean
def _count_cells(
    cells: IntArray,
    first: int,
    last: int,
    by: int,
    priors: CellPriors,
    counts: CellCounts,
    probabilities: FloatArray,
) -> float:
    """Add (``by`` 1) or remove (−1) the counts of cells; return log P / Q up to a constant."""
    (alpha, alpha_totals, row_of), (used, totals) = priors, counts
    log_ratio = 0.0
    for i in range(first, last):
        cell = cells[i]
        row = row_of[cell]
        if by < 0:
            used[cell] -= 1.0
        if row != FIXED:
            if by < 0:
                totals[row] -= 1.0
            mass, total = used[cell] + alpha[cell], totals[row] + alpha_totals[row]
            log_ratio += math.log(mass / total / probabilities[cell])
            if by > 0:
                totals[row] += 1.0
        if by > 0:
            used[cell] += 1.0
    return log_ratio


@lean
def accept_or_reject(
    old: tuple[Array, Array],
    new: tuple[Array, Array],
    possible: BoolArray,
    probabilities: FloatArray,
    priors: CellPriors,
    counts: CellCounts,
    number: int,
    seed: np.uint64,
    temper: float,
    accepted: BoolArray,
) -> None:
    """Accept or reject the proposed derivation of each sentence, given all others.

    ``old, new``       cells and indptr; the old ones are counted in ``counts``, which is kept up to
                       date
    ``possible``       whether there is a new derivation
    ``probabilities``  θ of cells, from counts that none of these sentences is part of; new
                       derivations were drawn with θ to the power of ``temper``, as is P
    ``number``         of the first sentence: draws depend on its number and on the seed alone
    ``accepted``       is filled in
    """
    (old_cells, old_borders), (new_cells, new_borders) = old, new
    stream, known = np.empty(1, np.uint64), (priors, counts, probabilities)
    for s in range(len(accepted)):
        accepted[s] = possible[s]
        if not possible[s]:
            continue
        ours, theirs = (old_borders[s], old_borders[s + 1]), (new_borders[s], new_borders[s + 1])
        # a stream apart from those that derivations are drawn with
        stream[0] = item_stream(item_stream(seed, number + s), 1)
        before = _count_cells(old_cells, ours[0], ours[1], -1, *known)
        after = _count_cells(new_cells, theirs[0], theirs[1], 1, *known)
        if not uniform(stream, 0) < math.exp(min(0.0, temper * (after - before))):
            accepted[s] = False
            _count_cells(new_cells, theirs[0], theirs[1], -1, *known)
            _count_cells(old_cells, ours[0], ours[1], 1, *known)


@lean
def log_joint(priors: CellPriors, counts: CellCounts, probabilities: FloatArray) -> float:
    """log p(words, trees) = Σ_rows [Σ_c log α_c^(n_c) − log (Σα)^(n)], x^(n) a rising factorial;
    cells of rows that are not integrated out have Σ n_c log θ_c."""
    total = 0.0
    for cell in range(len(priors.alpha)):
        n = counts.cells[cell]
        if n > 0.0:
            if priors.row_of[cell] == FIXED:
                total += n * math.log(probabilities[cell])
            else:
                total += log_rising(priors.alpha[cell], n)
    for row in range(len(priors.totals)):
        if counts.rows[row] > 0.0:
            total -= log_rising(priors.totals[row], counts.rows[row])
    return total


class CollapsedTrees:
    """The state of the collapsed sampler: a derivation of every sentence.

    Trees of whole sentences are drawn at once, given those of all others (Johnson, Griffiths &
    Goldwater 2007). Where a tree uses a rule more than once, p(tree | all others) is no product of
    probabilities, so no chart has it; but it is close to one, that of the posterior means

        θ_c = (n_c + α_c) / Σ_row (n + α),

    by which a tree is proposed; the Metropolis–Hastings step makes up for the difference.

    Making θ and the tables of charts anew for each sentence would take longer than its chart.
    Sentences are therefore proposed in blocks, θ being made from the counts of all sentences
    *outside* the block. While the block's sentences are accepted or rejected, one after the other,
    nothing outside changes: θ is the same before and after each step, and every step obeys detailed
    balance for p(tree | all others), those of the same block included. So the size of blocks is a
    matter of speed alone: larger ones cost less, but their θ knows less, and fewer are accepted.

    ``params``  the tables; frozen rows keep them
    ``first``   derivations to begin with
    ``size``    of blocks; None: a twentieth of the sentences, but no more than 100
    """

    acceptance = math.nan
    """The proportion of proposals accepted in the last sweep."""

    def __init__(
        self,
        grammar: Grammar,
        shard: TreeShard,
        params: Params,
        first: DerivationCells,
        size: int | None = None,
        threads: int = 1,
    ) -> None:
        self._grammar, self._params, self._threads = grammar, params, threads
        n = len(first.indptr) - 1
        self._size = size or max(1, min(n // N_BLOCKS, MAX_BLOCK))
        self._blocks = grammar.blocks(shard, self._size)
        self._priors = priors = _make_priors(grammar.families)
        wrong = np.flatnonzero(priors.alpha[first.cells] == 0.0)
        if len(wrong):
            sentence = int(np.searchsorted(first.indptr, wrong[0], side="right")) - 1
            raise LearnerError(
                f"sentence {sentence} begins with a tree that the model holds impossible",
                "begin with tables that are 0 wherever the model says so",
            )
        self._set_derivations(first.cells, first.indptr)

    def _set_derivations(self, cells: IntArray, indptr: IntArray) -> None:
        """Cut derivations into blocks, and count their cells."""
        self._trees = []  # the cells of each block, and where those of its sentences begin
        for begin in range(0, len(indptr) - 1, self._size):
            own = indptr[begin : begin + self._size + 1]
            self._trees.append((cells[own[0] : own[-1]].copy(), own - own[0]))
        priors = self._priors
        counts = np.bincount(cells, minlength=len(priors.alpha)).astype(np.float64)
        self._counts = CellCounts(counts, _row_sums(priors.row_of, counts, len(priors.totals)))

    def state(self) -> dict[str, Array]:
        """Return copies of all that a sweep changes; counts are made anew from the derivations."""
        cells = [own for own, _ in self._trees]
        n_cells = [np.diff(indptr) for _, indptr in self._trees]
        return {
            "cells": np.concatenate([np.zeros(0, np.int64), *cells]),
            "indptr": np.cumsum(np.concatenate([np.zeros(1, np.int64), *n_cells])),
            "acceptance": np.array(self.acceptance),
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from what `state` returned; the same bits follow."""
        self._set_derivations(state["cells"], state["indptr"])
        self.acceptance = float(state["acceptance"])

    @property
    def cells(self) -> list[Array]:
        """The cells of each sentence's derivation."""
        return [own for cells, indptr in self._trees for own in np.split(cells, indptr[1:-1])]

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Propose a derivation of each sentence; ``temper`` is a power of p.

        The result depends on the derivations and the stream alone.
        """
        n_accepted = n_tried = 0
        for number, block in enumerate(self._blocks):
            old = self._trees[number]
            own = np.bincount(old[0], minlength=len(self._priors.alpha))
            counts = self._tables(self._counts.cells - own)  # of all other blocks
            means = {
                name: family.mean(counts[name], np.asarray(self._params[name]))
                for name, family in self._grammar.families.items()
            }
            tempered = means if temper == 1.0 else {n: table**temper for n, table in means.items()}
            new = self._grammar.sample_derivations(tempered, block, stream, self._threads)
            accepted = np.empty(len(new.log_p), np.bool_)
            state = (np.isfinite(new.log_p), _flatten(means), self._priors, self._counts)
            draws = (number * self._size, np.uint64(stream), float(temper))
            accept_or_reject(old, (new.cells, new.indptr), *state, *draws, accepted)
            ours, theirs = np.split(old[0], old[1][1:-1]), np.split(new.cells, new.indptr[1:-1])
            kept = [theirs[s] if is_new else ours[s] for s, is_new in enumerate(accepted)]
            borders = np.cumsum([0, *map(len, kept)])
            self._trees[number] = np.concatenate([np.zeros(0, np.int64), *kept]), borders
            filled = np.diff(old[1]) > 0
            n_accepted += int(accepted[filled].sum())
            n_tried += int(filled.sum())
        self.acceptance = n_accepted / n_tried if n_tried else math.nan

    def log_joint(self) -> float:
        """log p(words, trees), the parameters integrated out."""
        params = {name: self._params[name] for name in self._grammar.families}
        return float(log_joint(self._priors, self._counts, _flatten(params)))

    def counts(self) -> dict[str, Array]:
        """Return the counts of all entries, one table for each family."""
        return self._tables(self._counts.cells.copy())

    def _tables(self, flat: Array) -> dict[str, Array]:
        found, begin = {}, 0
        for name, family in self._grammar.families.items():
            shape = as_dirichlet(name, family).shape
            end = begin + math.prod(shape)
            found[name], begin = flat[begin:end].reshape(shape), end
        return found


def as_dirichlet(name: str, family: Family) -> DirichletRows:
    """Return the family if its parameters can be integrated out; raise otherwise."""
    if not isinstance(family, DirichletRows):
        raise LearnerError(
            f"the {name} are no plain categorical table, whose parameters could be integrated out",
            "use Gibbs() or EM()",
        )
    if family.ties is not None:
        raise LearnerError(
            f"the {name} have tied rows, which a collapsed sampler does not know",
            "use Gibbs(), or leave all rows free",
        )
    return family


def check_collapsible(families: Mapping[str, Family], weights: FloatArray) -> None:
    """Raise if collapsed sampling does not support these tables, priors or weights."""
    _make_priors(families)
    if (weights != 1.0).any():
        raise LearnerError(
            "a collapsed sampler takes every sentence once: there can be no weights",
            "use Gibbs(), or leave the weights out",
        )


def _make_priors(families: Mapping[str, Family]) -> CellPriors:
    """Return the priors of all cells: 0 where an entry is impossible, 1 in fixed rows."""
    alpha, rows, n_rows = [], [], 0
    for name, family in families.items():
        own = as_dirichlet(name, family)
        sizes = np.diff(own.indptr)
        fixed = np.repeat(own.held_rows, sizes)
        given = np.where(fixed, 1.0, np.broadcast_to(own.alpha, own.n_entries))
        if (given < PRIOR_BOUNDS[0]).any() or (given > PRIOR_BOUNDS[1]).any():
            raise LearnerError(
                f"the prior of the {name} must be from {PRIOR_BOUNDS[0]:g} to {PRIOR_BOUNDS[1]:g}",
                "it is a Dirichlet prior's concentration: 0.1 and 1 are usual",
            )
        alpha.append(np.where(fixed, given, own.supported(given)))
        rows.append(np.where(fixed, FIXED, np.repeat(np.arange(own.n_rows) + n_rows, sizes)))
        n_rows += own.n_rows
    every, row_of = np.concatenate(alpha), np.concatenate(rows)
    return CellPriors(every, _row_sums(row_of, every, n_rows), row_of)


def _row_sums(row_of: Array, values: FloatArray, n_rows: int) -> Array:
    free = row_of != FIXED
    return np.bincount(row_of[free], values[free], minlength=n_rows)


def _flatten(tables: Mapping[str, Array]) -> Array:
    return np.concatenate([np.asarray(table).reshape(-1) for table in tables.values()])
