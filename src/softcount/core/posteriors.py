"""The two half-steps of EM by themselves: posteriors at given parameters, parameters from them.

The E-step gives the posterior of every hidden value, q(z) = p(z | x, θ); the M-step the parameters
that fit it best, argmax_θ E_q[log p(x, z | θ)] (Dempster, Laird & Rubin 1977). Each model says in
one method, `softcount.core.model.Model.lay_out`, which hidden values its data have; everything else
is here, for all models.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.core.display import Grid, Printed, make_frame, name_of
from softcount.core.errors import DataError, LearnerError, MissingEntry, brief
from softcount.core.fit import open_session
from softcount.core.model import Model
from softcount.core.types import EStep, FloatArray, IntArray, Params, PosteriorRows, Stats
from softcount.engines.blocks import tree_sum
from softcount.learners.schedules import expected_log

if TYPE_CHECKING:
    from softcount.engines.base import Engine, Shard

NEARLY = 1e-6
"""Posteriors that a user gives may exceed 1 by this much."""


@dataclass(frozen=True, eq=False, repr=False)
class Posteriors(Printed):
    """Posterior probabilities of hidden values, q(z) = p(z | x, θ): the result of an E-step.

    One row per item (or per hidden value of an item: a word of a sentence, a target position, a
    span), one column per value it may have.

    ``values``   (rows, columns), NaN where a row cannot have a column's value
    ``columns``  names of the hidden values
    ``index``    names of the rows, by what they are: "item", or "sentence", "position" and "word"
    ``of``       what is hidden: "class", "state", "topic", …
    ``items``    the number of the item that each row belongs to, (rows,)
    ``weights``  how often a row occurs, (rows,): a word may occur several times in a document
    ``stats``    expected counts and log-likelihood of the data, from which the M-step is made; None
                 if the values were changed
    ``local``    updated parameters that belong to items, of models that have such
    ``params``   the parameters of the E-step, as arrays
    ``independent``  whether rows are independent of each other, given the parameters

    >>> from softcount import MultinomialMixture
    >>> start = {"weights": [0.38, 0.62], "words": [[0.76, 0.24], [0.31, 0.69]]}
    >>> posteriors = MultinomialMixture(2, smoothing=0).e_step([[3, 0], [0, 3]], start)
    >>> posteriors
    item       0       1
       0  0.9003  0.0997
       1  0.0251  0.9749
    >>> posteriors[0].round(4).tolist()
    [0.9003, 0.0251]
    """

    values: FloatArray
    columns: tuple[Hashable, ...]
    index: Mapping[str, Sequence[Any]]
    of: str
    items: IntArray
    weights: FloatArray | None = None
    stats: Stats | None = None
    local: Params = field(default_factory=dict)
    params: Params = field(default_factory=dict)
    independent: bool = True
    names_in: Callable[[int], Sequence[Hashable]] | None = None
    """The names of the columns within one item, where they differ from item to item."""

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def __getitem__(self, column: Hashable) -> FloatArray:
        """Return a column by its name: the posterior of one hidden value in all rows."""
        if column not in self.columns:
            raise MissingEntry(
                f"no {self.of} is called {brief(column)}",
                f"they are {', '.join(map(name_of, self.columns[:20]))}",
            )
        return self.values[:, self.columns.index(column)]

    def item(self, number: int) -> Posteriors:
        """Return the rows of one item, with its own names of columns."""
        rows: IntArray = np.flatnonzero(self.items == number)
        if not len(rows):
            raise MissingEntry(f"item {number} has no hidden values", "look at its name in index")
        values, columns = self.values[rows], self.columns
        if self.names_in is not None:
            exists = ~np.isnan(values).all(axis=0)
            columns, values = tuple(self.names_in(number)), values[:, exists]
        index = {name: [each[r] for r in rows.tolist()] for name, each in self.index.items()}
        first = next(iter(index))
        if len(index) > 1:
            del index[first]
        return replace(self.take(rows), values=values, columns=columns, index=index, names_in=None)

    def take(self, rows: IntArray) -> Posteriors:
        """Return some of the rows."""
        return replace(
            self,
            values=self.values[rows],
            index={name: [each[r] for r in rows.tolist()] for name, each in self.index.items()},
            items=self.items[rows],
            weights=None if self.weights is None else self.weights[rows],
            stats=None,
            local={},
        )

    @property
    def log_likelihood(self) -> float:
        """log p(x | θ) of all data, in nats."""
        return float("nan") if self.stats is None else self.stats.log_likelihood

    @cached_property
    def entropy(self) -> FloatArray:
        """The entropy of each row, in nats, (rows,)."""
        p = np.nan_to_num(self.values)
        sums: FloatArray = -np.sum(p * np.log(np.where(p > 0.0, p, 1.0)), axis=1)
        return sums

    def replaced(self, values: Any) -> Posteriors:
        """Return posteriors of the same layout with other values: of an M-step of one's own."""
        values = np.asarray(values, dtype=float)
        if values.shape != self.values.shape:
            raise DataError(
                f"the values have the shape {values.shape}, not {self.values.shape}",
                f"give one row per {next(iter(self.index))} and one column per {self.of}",
            )
        return replace(self, values=values, stats=None, local={})

    def grid(self) -> Grid:
        """Return the table that is printed."""
        names = list(self.index.values())
        rows = [
            [*(names_of[r] for names_of in names), *row]
            for r, row in enumerate(self.values.tolist())
        ]
        return Grid([*self.index, *self.columns], rows, n_names=len(names))

    def to_frame(self) -> Any:
        """Return a data frame: one row per hidden value, one column per value it may have."""
        columns = {name: self.values[:, c] for c, name in enumerate(self.columns)}
        return make_frame(columns, self.index, self.of)

    def draw(self, n: int = 1, random_state: Any = 0) -> Draws:
        """Draw values of all rows from their posteriors, n times.

        Rows that occur several times (``weights``) are drawn for each occurrence.
        """
        if not self.independent:
            raise LearnerError(
                f"the hidden values of an item depend on each other: {self.of} by {self.of} they "
                "cannot be drawn",
                "use the model's own sampling of whole items (posterior_sample, sample_trees)",
            )
        times = np.ones(len(self), np.int64)
        if self.weights is not None:
            times = np.maximum(np.ceil(self.weights - 1e-9).astype(np.int64), 0)
        rows = np.repeat(np.arange(len(self)), times)
        p = np.nan_to_num(self.values)[rows]
        cumulative = np.cumsum(p, axis=1)
        rng = np.random.default_rng(random_state)
        found = np.empty((n, len(rows)), np.int64)
        logs = np.empty(n)
        with np.errstate(divide="ignore"):
            log_p = np.log(p)
        for draw in range(n):
            at = rng.random(len(rows)) * cumulative[:, -1]
            # the first column whose cumulative probability exceeds the number: never one of 0
            found[draw] = (at[:, None] >= cumulative).sum(axis=1)
            logs[draw] = log_p[np.arange(len(rows)), found[draw]].sum()
        return Draws(self, rows, found, logs + self.log_likelihood)


@dataclass(frozen=True, eq=False, repr=False)
class Draws(Printed):
    """Draws of hidden values from their posterior.

    ``posteriors``  what they were drawn from
    ``rows``        the row of `Posteriors` that each hidden value belongs to, (values,)
    ``numbers``     the column that was drawn, (draws, values)
    ``log_joint``   log p(x, z | θ) of each draw, (draws,), for all data together
    """

    posteriors: Posteriors
    rows: IntArray
    numbers: IntArray
    log_joint: FloatArray

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, draw: int) -> list[Any]:
        """Return the values of one draw, by their names."""
        columns = self.posteriors.columns
        return [columns[k] for k in self.numbers[draw].tolist()]

    @property
    def best(self) -> list[Any]:
        """The best sampled assignment: the draw with the largest log p(x, z | θ)."""
        return self[int(self.log_joint.argmax())]

    def frequencies(self) -> Posteriors:
        """Return the relative frequencies of values in the draws, laid out as the posteriors.

        They approach the posteriors as there are more draws.
        """
        values = np.zeros(self.posteriors.values.shape)
        for draw in self.numbers:
            np.add.at(values, (self.rows, draw), 1.0)
        n = np.bincount(self.rows, minlength=len(values))[:, None] * len(self)
        return self.posteriors.replaced(values / np.maximum(n, 1))

    def grid(self) -> Grid:
        """Return the table that is printed: one row per hidden value, one column per draw."""
        index = self.posteriors.index
        columns = self.posteriors.columns
        cells = [
            [*(names[r] for names in index.values()), *(columns[k] for k in drawn)]
            for r, drawn in zip(self.rows.tolist(), self.numbers.T.tolist(), strict=True)
        ]
        heads = [*index, *(f"draw {n}" for n in range(len(self)))]
        return Grid(heads, cells, n_names=len(index))


# The E-step


def gather_rows(parts: Sequence[PosteriorRows]) -> tuple[PosteriorRows, IntArray]:
    """Join the rows of all shards, sorted by item; return also where each came from."""
    width = max(part.values.shape[1] for part in parts)
    values = np.concatenate(
        [
            np.pad(part.values, ((0, 0), (0, width - part.values.shape[1])), constant_values=np.nan)
            for part in parts
        ]
    )
    items = np.concatenate([part.items for part in parts])
    order = np.argsort(items, kind="stable")
    keys = {
        name: np.concatenate([part.keys[name] for part in parts])[order] for name in parts[0].keys
    }
    weights = None
    if parts[0].weights is not None:
        weights = np.concatenate([np.asarray(part.weights) for part in parts])[order]
    return PosteriorRows(values[order], items[order], keys, weights), order


def infer(
    core: Model, corpus: Any, params: Params, how: EStep, engine: Engine | None = None
) -> tuple[PosteriorRows, Stats, Params]:
    """Do an E-step: the posteriors of all hidden values, expected counts, and items' own rows."""
    with open_session(core, corpus, engine) as session:
        rows, _ = gather_rows(list(session.map(core.lay_out, params, how)))
        stats, local = expect(core, len(corpus), params, how, session)
    return rows, stats, local


def expect(
    core: Model, n_items: int, params: Params, how: EStep, session: Any
) -> tuple[Stats, Params]:
    """Compute expected counts, and the items' own parameters as updated by the E-step."""
    stats = session.expect(core.expect, params, how)
    local: dict[str, Any] = {}
    if core.local_name:
        with_rows = replace(how, score_only=True)
        found = list(session.map(core.rows_used, params, with_rows))
        local = _join_rows(core, found, n_items)
    return stats, local


def _join_rows(core: Model, parts: Sequence[Stats], n_items: int) -> dict[str, Any]:
    first = np.asarray(parts[0].counts["rows"])
    table = np.zeros((n_items, *first.shape[1:]), first.dtype)
    for part in parts:
        table[np.asarray(part.counts["numbers"])] = part.counts["rows"]
    return {core.local_name: table}


def draw_whole(
    core: Model, corpus: Any, posteriors: Posteriors, n: int, stream: int, engine: Engine | None
) -> Draws:
    """Draw the hidden values of whole items, n times, where rows depend on each other.

    log p(x, z | θ) of a draw is the expected log of its counts.
    """
    numbers, logs = np.empty((n, len(posteriors)), np.int64), np.empty(n)
    params = posteriors.params
    with open_session(core, corpus, engine) as session:
        for draw in range(n):
            how = EStep("sample", stream=stream + draw, theory=True)
            rows, _ = gather_rows(list(session.map(core.lay_out, params, how)))
            numbers[draw] = np.nan_to_num(rows.values).argmax(axis=1)
            stats = session.expect(core.expect, params, how)
            of_counts = expected_log(core.families, stats.counts, params)
            logs[draw] = of_counts + stats.uncounted.expected
    return Draws(posteriors, np.arange(len(posteriors)), numbers, logs)


# The M-step


def count(
    core: Model, shards: Sequence[Shard], n_items: int, params: Params, values: Any, how: EStep
) -> tuple[Stats, Params]:
    """Compute expected counts under posteriors that a user gives, (rows, columns)."""
    parts = [core.lay_out(params, shard, how) for shard in shards]
    rows, order = gather_rows(parts)
    given = check_posteriors(values, rows.values)
    unsorted = np.empty_like(given)
    unsorted[order] = given
    ends = np.cumsum([len(part.values) for part in parts])
    found = []
    for shard, part, end in zip(shards, parts, ends.tolist(), strict=True):
        width = part.values.shape[1]
        own = unsorted[end - len(part.values) : end, :width]
        found.append(core.count_posteriors(params, shard, own, how))
    local: dict[str, Any] = {}
    if core.local_name:
        how = replace(how, score_only=True)
        pairs = zip(shards, found, strict=True)
        of_items = [core.rows_used(params, shard, how, stats.local) for shard, stats in pairs]
        local = _join_rows(core, of_items, n_items)
    total: Stats = tree_sum(replace(stats, local=None) for stats in found)
    return total, local


def check_posteriors(given: Any, like: FloatArray) -> FloatArray:
    """Return posteriors that a user gives as an array; raise a `DataError` if they are none.

    ``like``  an array of the right shape, NaN where there is no value
    """
    values = np.asarray(given, dtype=float)
    if values.shape != like.shape:
        raise DataError(
            f"the posteriors have the shape {values.shape}, not {like.shape}",
            "give one row per hidden value and one column per value it may have, as e_step does",
        )
    known: FloatArray = np.nan_to_num(values)
    wrong = ~np.isfinite(known) | (known < 0.0) | (known > 1.0 + NEARLY)
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        raise DataError(
            f"row {row} of the posteriors is {brief(values[row].tolist())}", "give probabilities"
        )
    return known


def update(core: Model, stats: Stats, how: Any, old: Params, seed: int = 0) -> dict[str, Any]:
    """Do an M-step: new parameters of every family from expected counts.

    ``how``  the learner's update: "maximise", "mean_field" or "draw"
    ``old``  the parameters of the E-step, of which what is frozen is kept
    """
    rng = np.random.default_rng(seed)
    return {
        name: family.update(
            how, stats.counts[name], old[name] if name in old else family.uniform(), rng
        )
        for name, family in core.families.items()
    }
