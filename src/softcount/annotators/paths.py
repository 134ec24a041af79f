"""How a vote comes about: all the paths of events that lead to it, given the true label.

The simplest annotator has one event for each vote: to say l though k is true, with probability
θ_akl. Everything else that an annotator may be is a few paths more, each of them a product of
probabilities:

- an annotator may be *silent*, which is an event of its own: p(silent | a, k);
- *one-coin*: right with p_a, else any other label, all equally probable: (1 − p_a) / (K − 1);
- *MACE* (Hovy et al. 2013): with p_a the annotator cares, and says the true label; else a label is
  said regardless of the item, ξ_al. A true label comes about in both ways;
- a vote for a *set* of labels is a vote for one of them, and nobody knows for which;
- *copying*: with p_a the annotator says what the member of the group before has said, else what
  they would have said alone. A vote that agrees comes about in both ways.

The probability of a vote is the sum over its paths, and its counts are shared out among them: by
their posteriors, to the best, or by draws. Nothing else in the E-step of the mixture changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softcount.annotators.kernels import draw_paths
from softcount.core.types import FloatArray, IntArray, Params
from softcount.text.bags import Bags

STATES = 3
"""A vote in a group stands alone, agrees with the vote before it, or differs from it."""
AGREES = 1
"""The second of these."""


class Habits(NamedTuple):
    """What annotators may do.

    ``n_annotators, n_labels``  A and K
    ``tying``      "none", "one-coin" or "mace"
    ``silence``    whether to be silent is an event
    ``followers``  for each annotator, their number among those who may copy, −1 for others
    """

    n_annotators: int
    n_labels: int
    tying: str = "none"
    silence: bool = False
    followers: tuple[int, ...] = ()

    @property
    def n_followers(self) -> int:
        """How many annotators may copy from another."""
        return max(self.followers, default=-1) + 1

    @property
    def n_states(self) -> int:
        """In how many ways a vote may stand to the one before it."""
        return STATES if self.n_followers else 1

    @property
    def is_plain(self) -> bool:
        """Whether every vote has one event."""
        return self.tying == "none" and not self.silence and not self.n_followers

    def shapes(self) -> dict[str, tuple[int, int]]:
        """Return the shapes of the tables, by name."""
        A, K = self.n_annotators, self.n_labels
        shapes = {
            "none": {"confusion": (A * K, K)},
            "one-coin": {"right": (A, 2)},
            "mace": {"care": (A, 2), "guess": (A, K)},
        }[self.tying]
        if self.silence:
            shapes["silence"] = (A * K, 2)
        if self.n_followers:
            shapes["copying"] = (self.n_followers, 2)
        return shapes

    def n_said(self, sets: Sequence[tuple[int, ...]]) -> int:
        """Return the number of different things to say: labels, silence, sets of labels."""
        return self.n_labels + int(self.silence) + len(sets)

    def n_columns(self, sets: Sequence[tuple[int, ...]]) -> int:
        """Return the number of different votes of an annotator."""
        return self.n_states * self.n_said(sets)


@dataclass(frozen=True, eq=False)
class Paths:
    """All paths to all votes: products of parameters, which are numbered over all tables.

    ``shapes``   shapes of the tables, by name
    ``n_cells``  number of cells (annotator, true label, vote)
    ``cell``     the cell that each path leads to, ascending, (paths,)
    ``events``   the parameters of each path; one after the last is 1, (paths, events)
    ``factor``   a constant factor of each path, (paths,)
    ``first``    where the paths of each cell begin, (cells + 1,)
    """

    shapes: Mapping[str, tuple[int, int]]
    n_cells: int
    n_columns: int
    cell: IntArray
    events: IntArray
    factor: FloatArray
    first: IntArray

    def weigh(self, params: Params, temper: float = 1.0) -> FloatArray:
        """Return the probability of each path to the power β, (paths,)."""
        flat = np.concatenate([*(np.asarray(params[n]).reshape(-1) for n in self.shapes), [1.0]])
        weights: FloatArray = self.factor * np.prod(flat[self.events], axis=1)
        return weights if temper == 1.0 else weights**temper

    def add_up(self, weights: FloatArray) -> FloatArray:
        """Return the sum of the weights of all paths to each cell, (cells,)."""
        return np.bincount(self.cell, weights, self.n_cells).astype(np.float64, copy=False)

    def best(self, weights: FloatArray) -> FloatArray:
        """Return the weight of the best path to each cell, (cells,)."""
        best = np.zeros(self.n_cells)
        np.maximum.at(best, self.cell, weights)
        return best

    def share_out(self, counts: FloatArray, weights: FloatArray) -> FloatArray:
        """Share the counts of cells among their paths, in proportion to the weights, (paths,)."""
        totals = self.add_up(weights)
        shares: FloatArray = np.divide(counts, totals, out=np.zeros(self.n_cells), where=totals > 0)
        return shares[self.cell] * weights

    def give_to_best(self, counts: FloatArray, weights: FloatArray) -> FloatArray:
        """Give the counts of a cell to the best path, the first of equals, (paths,)."""
        ties = np.flatnonzero(weights == self.best(weights)[self.cell])
        cells, where = np.unique(self.cell[ties], return_index=True)
        given = np.zeros(len(weights))
        given[ties[where]] = counts[cells]
        return given

    def draw(
        self,
        votes: Bags,
        drawn: FloatArray,
        weights: FloatArray,
        numbers: IntArray,
        samples: int,
        stream: int,
    ) -> FloatArray:
        """Draw the path of each vote, given draws of the items' labels; relative frequencies,
        (paths,)."""
        out = np.zeros(len(weights))
        draw_paths(
            votes.by_document,
            drawn,
            samples,
            self.n_columns,
            self.first,
            weights,
            numbers,
            np.uint64(stream),
            out,
        )
        return out

    def count(self, paths: FloatArray) -> dict[str, FloatArray]:
        """Return the counts of events, by table, from the counts of paths."""
        n_events = self.events.shape[1]
        sizes = [rows * columns for rows, columns in self.shapes.values()]
        weights = np.repeat(paths, n_events)
        flat: FloatArray = np.bincount(self.events.reshape(-1), weights, sum(sizes) + 1).astype(
            np.float64, copy=False
        )
        parts = np.split(flat[:-1], np.cumsum(sizes)[:-1])
        return {
            name: part.reshape(shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def log_factors(self, paths: FloatArray) -> float:
        """Return Σ count · log factor."""
        return float(paths @ np.log(self.factor))


class _Draft:
    """Paths while they are collected; all arrays of a call are broadcast against each other."""

    def __init__(self, shapes: Mapping[str, tuple[int, int]]) -> None:
        sizes = [rows * columns for rows, columns in shapes.values()]
        self.offsets = dict(zip(shapes, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        self.one = sum(sizes)
        self.rows: list[IntArray] = []
        self.factors: list[FloatArray] = []

    def add(self, a: IntArray, k: IntArray, said: IntArray, factor: FloatArray, *events: IntArray):  # type: ignore[no-untyped-def]
        """Add a path for each entry: annotator, true label, what is said; and up to 3 events."""
        padded = [*events, *[np.array(self.one)] * (3 - len(events))]
        arrays = np.broadcast_arrays(a, k, said, factor, *padded)
        flat = [array.reshape(-1) for array in arrays]
        self.factors.append(flat.pop(3).astype(np.float64))
        self.rows.append(np.stack(flat, axis=1).astype(np.int64))


def make_paths(habits: Habits, sets: Sequence[tuple[int, ...]]) -> Paths:
    """List the paths to all votes.

    ``sets``  the sets of labels that are said somewhere
    """
    A, K = habits.n_annotators, habits.n_labels
    shapes = habits.shapes()
    draft = _Draft(shapes)
    at = draft.offsets
    a, k, l = np.ogrid[:A, :K, :K]
    speaks = [at["silence"] + 2 * (a * K + k)] if habits.silence else []
    if habits.tying == "none":
        draft.add(a, k, l, np.ones(1), at["confusion"] + (a * K + k) * K + l, *speaks)
    elif habits.tying == "one-coin":
        others = np.where(k == l, 1.0, 1.0 / max(K - 1, 1))
        draft.add(a, k, l, others, at["right"] + 2 * a + (k != l), *speaks)
    else:
        b, j = a[:, :, 0], k[:, :, 0]  # (annotators, 1), (1, labels): what is said is true
        own = [at["silence"] + 2 * (b * K + j)] if habits.silence else []
        draft.add(b, j, j, np.ones(1), at["care"] + 2 * b, *own)
        guess = at["guess"] + a * K + l + 0 * k
        draft.add(a, k, l, np.ones(1), at["care"] + 2 * a + 1, guess, *speaks)
    labels, factors = np.concatenate(draft.rows), np.concatenate(draft.factors)
    said = labels[:, 2]
    rows, weights = [labels], [factors]
    if habits.silence:
        quiet = _Draft(shapes)
        b, j = a[:, :, 0], k[:, :, 0]
        quiet.add(b, j, np.array(K), np.ones(1), at["silence"] + 2 * (b * K + j) + 1)
        rows, weights = [*rows, *quiet.rows], [*weights, *quiet.factors]
    for number, members in enumerate(sets):
        some = np.isin(said, members)
        copy = labels[some].copy()
        copy[:, 2] = K + int(habits.silence) + number
        rows.append(copy)
        weights.append(factors[some])
    return _arrange(habits, shapes, np.concatenate(rows), np.concatenate(weights), sets)


def _arrange(
    habits: Habits,
    shapes: Mapping[str, tuple[int, int]],
    rows: IntArray,
    factors: FloatArray,
    sets: Sequence[tuple[int, ...]],
) -> Paths:
    """Add the paths of those who copy, and sort all paths by the votes that they lead to.

    ``rows``  annotator, true label, what is said, and three events, (paths, 6)
    """
    A, K, S = habits.n_annotators, habits.n_labels, habits.n_said(sets)
    C = habits.n_columns(sets)
    one = sum(r * c for r, c in shapes.values())
    rows = np.column_stack([rows, np.full(len(rows), one)])
    if habits.n_followers:
        offset = one - 2 * habits.n_followers  # "copying" is the last table
        followers = np.array(habits.followers)
        alone = rows[followers[rows[:, 0]] >= 0]
        kept = factors[followers[rows[:, 0]] >= 0]
        by_themselves = alone.copy()
        by_themselves[:, 6] = offset + 2 * followers[alone[:, 0]]
        agrees, differs = by_themselves.copy(), by_themselves.copy()
        agrees[:, 2] += AGREES * S
        differs[:, 2] += 2 * S
        who, true, what = (
            each.reshape(-1)
            for each in np.meshgrid(
                np.flatnonzero(followers >= 0), np.arange(K), np.arange(S), indexing="ij"
            )
        )
        copied = np.full((len(who), 7), one)
        copied[:, :3] = np.stack([who, true, AGREES * S + what], axis=1)
        copied[:, 6] = offset + 2 * followers[who] + 1
        rows = np.concatenate([rows, agrees, copied, differs])
        factors = np.concatenate([factors, kept, np.ones(len(who)), kept])
    cell = (rows[:, 0] * K + rows[:, 1]) * C + rows[:, 2]
    order = np.argsort(cell, kind="stable")
    n_cells = A * K * C
    first = np.searchsorted(cell[order], np.arange(n_cells + 1))
    return Paths(shapes, n_cells, C, cell[order], rows[order, 3:], factors[order], first)
