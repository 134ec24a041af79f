"""Compiling: from a trail to a circuit, flat rows that a kernel runs through (kernels/circuit.py).

Two alternatives that multiply the same two things share one product row. For an HMM that makes the
rows of a position a matrix product, for a grammar it shares a pair of spans between all rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softcount.errors import StoryError
from softcount.kernels import circuit as kernel
from softcount.kernels.circuit import Rows
from softcount.kernels.order import levels, useful
from softcount.models.story.language import describe
from softcount.models.story.trail import Trail
from softcount.types import Array


@dataclass(frozen=True)
class Circuit:
    """The rows of one or more trails.

    ``rows.constant`` numbers the events that are the same in all lanes: ``constants[i]`` is event
    i's number in the trail. ``leaves[l]`` is the trail's number of leaf l's event.
    ``node_row`` and ``alternatives`` lead from and to the trail, for those who read derivations.
    """

    rows: Rows
    constants: Array
    leaves: Array
    node_row: Array
    alternatives: Array

    @property
    def n_rows(self) -> int:
        return len(self.rows.kind)

    @property
    def n_alternatives(self) -> int:
        return len(self.rows.operand)


def compile_trail(trail: Trail, roots: Array, varies: Array) -> Circuit | None:
    """A trail's circuit; ``varies[e]`` says whether event e differs between lanes.

    None if some root has no finished derivation.
    """
    shape = (trail.node_ends, trail.alternative_ends, trail.parts, trail.n_events, roots)
    level, alive, culprit = levels(*shape)
    if culprit >= 0:
        raise StoryError(
            f"{describe(*trail.calls[culprit])} needs itself: it is a part of its own derivations",
            "every call must come closer to the end: pass a position or a length that moves",
        )
    if not alive[roots].all():
        return None
    order = np.argsort(-level, kind="stable")
    keep = useful(*shape, level, alive, order)
    return _Assembly(trail, np.flatnonzero(keep), level, varies).circuit(roots)


def compile_alone(trail: Trail) -> Circuit | None:
    """The circuit of a trail that shares it with nobody: every event is a constant."""
    return compile_trail(trail, np.zeros(1, np.int64), np.zeros(trail.n_events, bool))


class _Assembly:
    """A circuit under construction.

    Things to multiply are numbered: leaves, then nodes, then products as they are found; -1 is ONE.
    ``height`` of a thing is the level from which on it can be computed, ``turn`` its place in line
    among things of one height: leaves first, then sums, then products, simple ones first.
    """

    def __init__(self, trail: Trail, kept: Array, level: Array, varies: Array) -> None:
        self.trail, self.kept = trail, kept
        self.node = np.repeat(np.arange(trail.n_nodes), np.diff(trail.node_ends))[kept]
        counts = np.diff(trail.alternative_ends)[kept]
        owner = np.repeat(np.arange(len(kept)), counts)
        first = np.repeat(trail.alternative_ends[kept] - (np.cumsum(counts) - counts), counts)
        parts = trail.parts[np.arange(len(owner)) + first]
        is_event = parts < trail.n_events
        is_leaf = np.zeros(len(parts), bool)
        is_leaf[is_event] = varies[parts[is_event]]
        self._number_events(parts, is_event & ~is_leaf, is_leaf, owner)
        n_leaves = len(self.leaves)
        things = np.where(is_leaf, 0, parts - trail.n_events + n_leaves)
        things[is_leaf] = _ranked(parts[is_leaf], trail.n_events)[1]
        variable = is_leaf | ~is_event
        self.height = [np.zeros(n_leaves, np.int64), level]
        self.turn = [np.full(n_leaves, -1), np.zeros(trail.n_nodes, np.int64)]
        self.factors: list[Array] = []
        self.operand = self._multiply(things[variable], owner[variable])

    def _number_events(self, parts: Array, constant: Array, leaf: Array, owner: Array) -> None:
        self.leaves, _ = _ranked(parts[leaf], self.trail.n_events)
        self.constants, self.constant = _ranked(parts[constant], self.trail.n_events)
        self.constant_counts = np.bincount(owner[constant], minlength=len(self.kept))

    def _multiply(self, things: Array, owner: Array) -> Array:
        """Fold each alternative's things into one by products of neighbours, shared if equal."""
        n_alternatives, n_things = len(self.kept), sum(map(len, self.height))
        turn = 1
        while True:
            counts = np.bincount(owner, minlength=n_alternatives)
            if counts.max(initial=0) <= 1:
                break
            place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
            left = np.flatnonzero((place % 2 == 0) & (place + 1 < counts[owner]))
            a, b = things[left], things[left + 1]
            low, high = np.minimum(a, b), np.maximum(a, b)
            pairs, which = np.unique(low * n_things + high, return_inverse=True)
            low, high = pairs // n_things, pairs % n_things
            heights = np.concatenate(self.height)
            self.height.append(np.maximum(heights[low], heights[high]))
            self.turn.append(np.full(len(pairs), turn))
            self.factors.append(np.stack([low, high], axis=1))
            things[left] = n_things + which
            stays = np.ones(len(things), bool)
            stays[left + 1] = False
            things, owner = things[stays], owner[stays]
            n_things, turn = n_things + len(pairs), turn + 1
        operand = np.full(n_alternatives, -1, np.int64)
        operand[owner] = things
        return operand

    def circuit(self, roots: Array) -> Circuit:
        n_leaves, n_nodes = len(self.leaves), self.trail.n_nodes
        height, turn = np.concatenate(self.height), np.concatenate(self.turn)
        empty = np.empty((0, 2), np.int64)
        factors = np.concatenate(self.factors) if self.factors else empty
        used = self._used(factors, len(height))
        self._place_leaves(height, factors)
        line = np.lexsort((turn, height))
        line = line[used[line]]
        row = np.full(len(height) + 1, -1, np.int64)
        row[line] = np.arange(1, len(line) + 1)
        row[-1] = 0  # the row of ONE, reached by operand -1
        node_row = row[n_leaves : n_leaves + n_nodes]
        by_row = np.argsort(node_row[self.node], kind="stable")
        n_rows = len(line) + 1
        kind, x, y = self._arguments(row, factors, by_row, n_rows)
        counts = self.constant_counts[by_row]
        operand = row[self.operand[by_row]]
        use = np.argsort(operand, kind="stable")
        return Circuit(
            Rows(
                kind,
                x,
                y,
                operand.astype(np.uint32),
                np.concatenate([[0], np.cumsum(counts)]),
                self._constants_of(by_row, counts),
                np.searchsorted(operand[use], np.arange(n_rows + 1)),
                use,
                node_row[self.node[by_row]][use].astype(np.uint32),
                node_row[roots],
            ),
            self.constants,
            self.leaves,
            node_row,
            self.kept[by_row],
        )

    def _used(self, factors: Array, n_things: int) -> Array:
        """Which things get a row: a leaf that only scales other things does not."""
        n_leaves, n_nodes = len(self.leaves), self.trail.n_nodes
        used = np.ones(n_things, bool)
        used[: n_leaves + n_nodes] = False
        used[n_leaves + np.unique(self.node)] = True
        used[self.operand[self.operand >= 0]] = True
        used[factors[:, 1]] = True  # of two factors the larger number is scaled by a leaf
        return used

    def _place_leaves(self, height: Array, factors: Array) -> None:
        """Read a leaf just before it is first used, to keep what is used together together."""
        n_leaves = len(self.leaves)
        height[:n_leaves] = np.iinfo(np.int64).max
        users = np.flatnonzero(factors[:, 1] < n_leaves)
        first_product = len(height) - len(factors)
        np.minimum.at(height, factors[users, 1], height[first_product + users])
        direct = np.flatnonzero((self.operand >= 0) & (self.operand < n_leaves))
        node_height = self.height[1][self.node[direct]]
        np.minimum.at(height, self.operand[direct], node_height)

    def _arguments(
        self, row: Array, factors: Array, by_row: Array, n_rows: int
    ) -> tuple[Array, Array, Array]:
        """What each row is and what it is made of."""
        kind = np.full(n_rows, kernel.ONE, np.int8)
        x, y = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
        n_leaves = len(self.leaves)
        with_row = np.flatnonzero(row[:n_leaves] >= 0)
        kind[row[with_row]], x[row[with_row]] = kernel.LEAF, with_row
        products = row[len(row) - 1 - len(factors) : -1]
        scaled = factors[:, 0] < n_leaves
        kind[products] = np.where(scaled, kernel.SCALED, kernel.PRODUCT)
        x[products] = np.where(scaled, factors[:, 0], row[factors[:, 0]])
        y[products] = row[factors[:, 1]]
        sums = row[n_leaves + self.node[by_row]]
        owners, first, count = np.unique(sums, return_index=True, return_counts=True)
        kind[owners], x[owners], y[owners] = kernel.SUM, first, first + count
        return kind, x, y

    def _constants_of(self, by_row: Array, counts: Array) -> Array:
        """The constants of the alternatives in their new order."""
        starts = np.cumsum(self.constant_counts) - self.constant_counts
        shift = np.repeat(starts[by_row] - (np.cumsum(counts) - counts), counts)
        moved: Array = self.constant[np.arange(counts.sum()) + shift]
        return moved


def _ranked(numbers: Array, below: int) -> tuple[Array, Array]:
    """The different numbers, sorted, and the rank of each among them (numpy's unique, unsorted)."""
    there = np.zeros(below, bool)
    there[numbers] = True
    rank = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(there), rank[numbers]
