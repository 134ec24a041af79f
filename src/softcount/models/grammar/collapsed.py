"""Grammars with their parameters integrated out, trees sampled sentence by sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from softcount.errors import LearnerError
from softcount.families.base import Family
from softcount.families.dirichlet import DirichletRows
from softcount.kernels import tree_gibbs as kernel
from softcount.kernels.tree_gibbs import FIXED, Prior, Tally
from softcount.models.grammar.cells import Derivations
from softcount.types import Array, Params

BLOCKS, LARGEST = 20, 100
"""Sentences are put into so many blocks, unless these were larger than that."""
PRIORS = (1e-50, 1e12)
"""The smallest prior and the largest: the factors of one cell still fit into a float."""


class Drawing(Protocol):
    """A grammar by which derivations can be drawn."""

    @property
    def families(self) -> Mapping[str, Family]:
        """Its tables, by name, in the order of their cells."""

    def blocks(self, shard: Any, size: int) -> Sequence[Any]:
        """The sentences of a shard in their order, so many in each block."""

    def derivations(self, params: Params, shard: Any, stream: int, threads: int = 1) -> Derivations:
        """One derivation of each sentence, drawn in proportion to the product of its entries.

        Draws depend on the stream and on the sentences' numbers alone.
        """


class CollapsedTrees:
    """A state of the sampler: a derivation of every sentence.

    Trees of whole sentences are drawn at one go, given those of all others (Johnson, Griffiths &
    Goldwater 2007). Rules that a tree uses more than once make p(tree | all others) no product of
    chances, so that no chart has it; but it is near one, that of the posterior means

        θ_c = (n_c + α_c) / Σ_row (n + α),

    by which a tree is proposed; Metropolis and Hastings' rule makes up for the difference.

    Making θ and the tables of charts anew for each sentence would take longer than its chart.
    Sentences are therefore proposed in blocks, θ being made from the counts of all sentences
    *outside* the block. While the block's sentences are accepted or refused, one after the other,
    nothing outside changes: θ is the same before and after each step, and every step obeys detailed
    balance for p(tree | all others), those of the same block included. So the size of blocks is a
    matter of speed alone: larger ones cost less, but their θ knows less, and fewer are accepted.

    ``first``    derivations to begin with
    ``params``   tables that rows which are frozen keep
    ``size``     of blocks; None: a twentieth of the sentences, but no more than 100
    """

    acceptance = math.nan
    """The share of derivations that was accepted in the last sweep."""

    def __init__(
        self,
        drawing: Drawing,
        shard: Any,
        params: Params,
        first: Derivations,
        size: int | None = None,
        threads: int = 1,
    ) -> None:
        self._drawing, self._params, self._threads = drawing, params, threads
        self._size = size or _usual_size(len(first.borders) - 1)
        self._blocks = drawing.blocks(shard, self._size)
        self._prior = _prior(drawing.families)
        _check_possible(self._prior, first)
        self._trees = list(_cut(first, self._size))
        self._tally = _counted(self._prior, first.cells)

    @property
    def cells(self) -> list[Array]:
        """The cells of each sentence's derivation."""
        return [own for cells, borders in self._trees for own in np.split(cells, borders[1:-1])]

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Propose a derivation of each sentence; ``temper`` is a power of p.

        What comes about depends on the derivations and the stream alone.
        """
        kept = tried = 0
        for number, block in enumerate(self._blocks):
            old = self._trees[number]
            means = self._means(old[0])
            heated = means if temper == 1.0 else {n: table**temper for n, table in means.items()}
            new = self._drawing.derivations(heated, block, stream, self._threads)
            accepted = np.empty(len(new.logs), np.bool_)
            about = (np.isfinite(new.logs), _flat(means), self._prior, self._tally)
            chance = (number * self._size, np.uint64(stream), float(temper))
            kernel.settle(old, (new.cells, new.borders), *about, *chance, accepted)
            self._trees[number] = kernel.settled(old, (new.cells, new.borders), accepted)
            filled = np.diff(old[1]) > 0
            kept, tried = kept + int(accepted[filled].sum()), tried + int(filled.sum())
        self.acceptance = kept / tried if tried else math.nan

    def _means(self, without: Array) -> dict[str, Array]:
        """E[θ | all derivations but those that have these cells]."""
        counts = self._tables(self._tally.cells - np.bincount(without, minlength=self._n_cells))
        return {
            name: family.mean(counts[name], np.asarray(self._params[name]))
            for name, family in self._drawing.families.items()
        }

    @property
    def _n_cells(self) -> int:
        return len(self._prior.alpha)

    def log_joint(self) -> float:
        """log p(words, trees), the parameters integrated out."""
        return float(kernel.log_joint(self._prior, self._tally, _flat(self._in_order())))

    def counts(self) -> dict[str, Array]:
        """What the derivations add up to, one table a family."""
        return self._tables(self._tally.cells.copy())

    def _in_order(self) -> dict[str, Array]:
        return {name: np.asarray(self._params[name]) for name in self._drawing.families}

    def _tables(self, flat: Array) -> dict[str, Array]:
        found, begin = {}, 0
        for name, family in self._drawing.families.items():
            shape = rows_of(name, family).shape
            end = begin + math.prod(shape)
            found[name], begin = flat[begin:end].reshape(shape), end
        return found


def rows_of(name: str, family: Family) -> DirichletRows:
    """The family, if it is one whose parameters can be integrated out."""
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


def demand_collapsible(families: Mapping[str, Family], weights: Array) -> None:
    """Complain of tables, priors and weights that this sampler cannot have."""
    _prior(families)
    if (weights != 1.0).any():
        raise LearnerError(
            "a collapsed sampler takes every sentence once: there can be no weights",
            "use Gibbs(), or leave the weights out",
        )


def _prior(families: Mapping[str, Family]) -> Prior:
    """Priors of all cells: 0 where an entry is impossible, 1 where its row is not free."""
    alpha, rows, n_rows = [], [], 0
    for name, family in families.items():
        own = rows_of(name, family)
        sizes = np.diff(own.indptr)
        fixed = np.repeat(own.held_rows, sizes)
        given = np.where(fixed, 1.0, np.broadcast_to(own.alpha, own.n_entries))
        if (given < PRIORS[0]).any() or (given > PRIORS[1]).any():
            raise LearnerError(
                f"the prior of the {name} must be from {PRIORS[0]:g} to {PRIORS[1]:g}",
                "it is a Dirichlet prior's concentration: 0.1 and 1 are usual",
            )
        alpha.append(np.where(fixed, given, own.supported(given)))
        rows.append(np.where(fixed, FIXED, np.repeat(np.arange(own.n_rows) + n_rows, sizes)))
        n_rows += own.n_rows
    every, row_of = np.concatenate(alpha), np.concatenate(rows)
    return Prior(every, _row_sums(row_of, every, n_rows), row_of)


def _row_sums(row_of: Array, values: Array, n_rows: int) -> Array:
    free = row_of != FIXED
    return np.bincount(row_of[free], values[free], minlength=n_rows)


def _counted(prior: Prior, cells: Array) -> Tally:
    counts = np.bincount(cells, minlength=len(prior.alpha)).astype(np.float64)
    return Tally(counts, _row_sums(prior.row_of, counts, len(prior.totals)))


def _check_possible(prior: Prior, first: Derivations) -> None:
    wrong = np.flatnonzero(prior.alpha[first.cells] == 0.0)
    if len(wrong):
        sentence = int(np.searchsorted(first.borders, wrong[0], side="right")) - 1
        raise LearnerError(
            f"sentence {sentence} begins with a tree that the model holds impossible",
            "begin with tables that are 0 wherever the model says so",
        )


def _usual_size(n: int) -> int:
    return max(1, min(n // BLOCKS, LARGEST))


def _cut(found: Derivations, size: int) -> Iterator[tuple[Array, Array]]:
    """The cells and borders of each block."""
    for begin in range(0, len(found.borders) - 1, size):
        borders = found.borders[begin : begin + size + 1]
        yield found.cells[borders[0] : borders[-1]].copy(), borders - borders[0]


def _flat(tables: Mapping[str, Array]) -> Array:
    return np.concatenate([np.asarray(table).reshape(-1) for table in tables.values()])
