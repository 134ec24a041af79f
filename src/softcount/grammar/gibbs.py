"""Trees sampled with the rules' probabilities integrated out.

Trees as lists of the entries that they use: see `softcount.grammar.kernels.dense` for trees.

Entries are numbered through all tables, one after the other: K + T roots, then K rows of (K + T)²
rules, then T rows of words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from softcount.errors import LearnerError
from softcount.families.base import Family
from softcount.families.dirichlet import DirichletRows
from softcount.grammar.binarised import CERTAIN, Binarised
from softcount.grammar.data import Shard
from softcount.grammar.inside_outside import Derived, Shape
from softcount.grammar.kernels.dense import Nodes
from softcount.grammar.kernels.rules import Words
from softcount.kernels.collapsed import log_rising
from softcount.kernels.jit import lean, njit
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array, Params


@njit
def cells_of(
    symbols: Array,
    ends: Array,
    indptr: Array,
    rows: Array,
    possible: Array,
    n_nonterminals: int,
    n_symbols: int,
    n_words: int,
) -> tuple[Array, Array]:
    """The cells of one tree a sentence, the root's first, then in preorder; and their borders.

    Words from number ``n_words`` on are in no table, and have no cell. Sentences that are empty, or
    not possible, have none.
    """
    of_rules = n_symbols
    of_words = of_rules + n_nonterminals * n_symbols * n_symbols
    cells, borders = np.empty(2 * indptr[-1], np.int64), np.zeros(len(indptr), np.int64)
    used = 0
    for s in range(len(indptr) - 1):
        if possible[s] and indptr[s] < indptr[s + 1]:
            first, begin = 2 * indptr[s], 0
            cells[used] = symbols[first]
            used += 1
            for node in range(first, 2 * indptr[s + 1] - 1):
                symbol, end = symbols[node], ends[node]
                if end > begin + 1:
                    # behind the left child and all below it
                    right = symbols[node + 2 * (ends[node + 1] - begin)]
                    pair = symbols[node + 1] * n_symbols + right
                    cells[used] = of_rules + symbol * n_symbols * n_symbols + pair
                    used += 1
                    continue
                word = rows[indptr[s] + begin]
                if word < n_words:
                    cells[used] = of_words + (symbol - n_nonterminals) * n_words + word
                    used += 1
                begin = end
        borders[s + 1] = used
    return cells[:used], borders


# Metropolis–Hastings over derivations, all parameters integrated out.
#
# A derivation is a list of cells, entries of tables that have a number each. Given those of all
# other sentences it has the probability of its cells one after the other,
#
#     P(t) = Π_c (n_c + α_c) / (n_row(c) + Σα_row(c)),
#
# n being what was counted before, t's own earlier cells included. The order does not matter, so
# that P of a derivation is found while its cells are counted, and while they are taken away. A
# derivation t' that was drawn with probability Q(t') in proportion to Π θ_c replaces t with the
# probability min(1, P(t') Q(t) / (P(t) Q(t'))) (Johnson, Griffiths & Goldwater 2007). Cells of rows
# that are not integrated out have the same factor in P and in Q.


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


# Derivations as lists of cells: the entries of tables that they use, which have a number each.
#
# Tables are numbered through one after the other: root, rules and words of dense grammars, root and
# rules of grammars of rules.


class Derivations(NamedTuple):
    """Sentence s uses ``cells[borders[s]:borders[s + 1]]``, its root's cell first.

    ``logs`` are those of sentences: −inf where there is no derivation.
    """

    cells: Array
    borders: Array
    logs: Array


def of_trees(shape: Shape, n_words: int, shard: Shard, nodes: Nodes, logs: Array) -> Derivations:
    """Trees of a dense grammar, one a sentence; a word that is new to the model has no cell."""
    text = shard.text
    sizes = (shape.k, shape.n_symbols, n_words)
    known = (text.indptr, text.rows, np.isfinite(logs))
    return Derivations(*cells_of(nodes.symbols[0], nodes.ends[0], *known, *sizes), logs)


def of_rules(own: Binarised, words: Words, found: Derived) -> Derivations:
    """Derivations of a grammar of rules, one a sentence.

    What has probability one has no cell, nor have words that are in no rule.

    >>> from softcount.grammar.inside_outside import derived, rule_text
    >>> from softcount.grammar.rules import from_text
    >>> rules = from_text("S -> 'a' S 'b' [0.4] | 'a' 'b' [0.6]")
    >>> own, text = Binarised(rules), rule_text(np.array([4, 2]))
    >>> words = own.words(rules.chances, own.rows("aabbab"))
    >>> grammar = own.grammar(rules.chances, own.root)
    >>> found = derived(grammar, words, text, np.arange(2))
    >>> cells, borders, logs = of_rules(own, words, found)
    >>> cells.tolist(), borders.tolist()  # root S; rules from 1 on
    ([0, 1, 2, 0, 2], [0, 3, 5])
    """
    rules = own.rule_of(words)[found.codes]
    begins = found.borders[:-1][np.diff(found.borders) > 0]
    roots = own.made(words)[found.codes[begins]]
    kept = np.insert(rules != CERTAIN, begins, True)
    cells = np.insert(own.n_known + rules.astype(np.int64), begins, roots)[kept]
    n_roots = np.searchsorted(begins, found.borders)  # those of sentences before
    n_kept = np.concatenate([[0], np.cumsum(kept)])
    return Derivations(cells, n_kept[found.borders + n_roots], found.logs)


def with_known(found: Derivations, numbers: Array, trees: csr_matrix) -> Derivations:
    """Derivations of all sentences: some were found, others are known.

    ``numbers``  of the sentences that were found
    ``trees``    how often each sentence's tree has each cell; empty rows of those that were found
    """
    sizes = np.asarray(trees.sum(axis=1)).reshape(-1).astype(np.int64)
    sizes[numbers] = np.diff(found.borders)
    borders = np.concatenate([[0], np.cumsum(sizes)])
    is_found = np.zeros(len(sizes), np.bool_)
    is_found[numbers] = True
    here = np.repeat(is_found, sizes)
    cells, logs = np.empty(borders[-1], np.int64), np.zeros(len(sizes))
    cells[here], logs[numbers] = found.cells, found.logs
    cells[~here] = np.repeat(trees.indices, trees.data.astype(np.int64))
    return Derivations(cells, borders, logs)


# Grammars with their parameters integrated out, trees sampled sentence by sentence.


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
            settle(old, (new.cells, new.borders), *about, *chance, accepted)
            self._trees[number] = settled(old, (new.cells, new.borders), accepted)
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
        return float(log_joint(self._prior, self._tally, _flat(self._in_order())))

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
