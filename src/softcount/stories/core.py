"""The E-step of stories, their start values, and their tables as people read them."""

from __future__ import annotations

import html
import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from softcount.bounds import as_float
from softcount.errors import LearnerError, MissingEntry, SoftcountError, StartError
from softcount.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.families import LogLinear, SparseCategorical
from softcount.families.base import Family
from softcount.families.rows import row_sums
from softcount.models.possible import demand_possible
from softcount.stories.circuit import Support, TableSupport
from softcount.stories.data import StoryCorpus
from softcount.stories.engine import Shard, certain_total, run
from softcount.stories.language import Table
from softcount.types import Array, Counts, How, Params, SparseCounts, Stats

_SHOWN = 8  # rows, and outcomes a row, that are printed


class TableView(Mapping[Hashable, Any]):
    """A table, or the part of it below some condition: ``view["A"]["H"]`` or ``view["A", "H"]``.

    Rows iterate over their outcomes, the most probable first. An outcome that other rows have, and
    this one has not, was never counted here: its probability is 0, though it is not listed.
    """

    def __init__(
        self, support: TableSupport, values: Array, depth: int = 0, prefix: int = 0
    ) -> None:
        self._support, self._values = support, values
        self._depth, self._prefix = depth, prefix

    @property
    def is_row(self) -> bool:
        return self._depth == self._support.arity - 1

    def _below(self) -> Array:
        """Numbers, in the next level, of what stands below this prefix."""
        level = self._support.levels[self._depth]
        borders = level.radix * np.array([self._prefix, self._prefix + 1])
        start, stop = np.searchsorted(level.keys, borders)
        return np.arange(start, stop)

    def __getitem__(self, key: Hashable) -> Any:
        view: Any = self
        for part in key if isinstance(key, tuple) and self._wants_parts(key) else (key,):
            if not isinstance(view, TableView):
                raise MissingEntry(
                    f"table {self._support.name!r} has no entry {key!r}: it has too many parts",
                    f"a key has {self._support.arity} of them",
                )
            view = view._step(part, key)
        return view

    def __contains__(self, key: object) -> bool:
        """Whether it is listed; what has a probability of 0 need not be."""
        view: Any = self
        for part in key if isinstance(key, tuple) and self._wants_parts(key) else (key,):
            if not isinstance(view, TableView) or view._rank(part) < 0:
                return False
            view = view._step(part, part)
        return True

    def _wants_parts(self, key: tuple[Hashable, ...]) -> bool:
        """A tuple is a path of parts unless it is itself a part."""
        if self._rank(key) >= 0:
            return False
        return not (self.is_row and self._support.can_be(key))

    def _rank(self, part: Any) -> int:
        """Where a part stands in the next level; −1: nowhere."""
        code = self._support.lexicon.find([part])
        return int(self._support.levels[self._depth].rank(np.array([self._prefix]), code)[0])

    def _step(self, part: Hashable, key: Hashable) -> Any:
        rank = self._rank(part)
        if rank >= 0 and self.is_row:
            return float(self._values[rank])
        if rank >= 0:
            return TableView(self._support, self._values, self._depth + 1, rank)
        if self.is_row and self._support.can_be(part):
            return 0.0
        what = "outcome" if self.is_row else "condition"
        known = [str(each) for each in self._outcomes()] if self.is_row else list(map(str, self))
        close = get_close_matches(str(part), known, n=1)
        raise MissingEntry(
            f"table {self._support.name!r} has no entry {key!r}: the {what} {part!r} never "
            f"occurred {'in it' if self.is_row else 'here'}",
            (f"did you mean {close[0]}? " if close else "")
            + "the table lists what it has; declare further outcomes with table(name, outcomes=…)",
        )

    def _outcomes(self) -> list[Hashable]:
        """All outcomes of all rows."""
        values = self._support.lexicon.values
        return [values[code] for code in self._support.outcomes.tolist()]

    def __iter__(self) -> Iterator[Hashable]:
        below = self._below()
        if self.is_row:
            below = below[np.argsort(-self._values[below], kind="stable")]
        level = self._support.levels[self._depth]
        known = self._support.lexicon.values
        return (known[code] for code in (level.keys[below] % level.radix).tolist())

    def __len__(self) -> int:
        return len(self._below())

    def rows(self) -> Iterator[tuple[tuple[Hashable, ...], TableView]]:
        """All rows below, with their conditions."""
        if self.is_row:
            yield (), self
            return
        for part in self:
            for rest, row in self._step(part, part).rows():
                yield (part, *rest), row

    def to_dict(self) -> dict[Any, Any]:
        """The same as plain nested dictionaries."""
        return {k: v.to_dict() if isinstance(v, TableView) else v for k, v in self.items()}

    def _lines(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """What is printed: conditions, and the likeliest outcomes with their probabilities."""
        for number, (condition, row) in enumerate(self.rows()):
            if number == _SHOWN:
                yield "…", []
                return
            cells = [(str(outcome), f"{row[outcome]:.4f}") for outcome in islice(row, _SHOWN)]
            more = [("…", "")] if len(row) > _SHOWN else []
            yield ", ".join(map(str, condition)), cells + more

    def __repr__(self) -> str:
        lines = [self._support.name]
        for condition, cells in self._lines():
            row = "  ".join(f"{outcome} {p}".rstrip() for outcome, p in cells)
            lines.append("  " + ": ".join(part for part in (condition, row) if part))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for condition, cells in self._lines():
            row = "".join(f"<td>{html.escape(outcome)} <b>{p}</b></td>" for outcome, p in cells)
            rows.append(f"<tr><th>{html.escape(condition)}</th>{row}</tr>")
        name = html.escape(self._support.name)
        # by its name: pages are a layer above this one
        visible = import_module("softcount.show.marks").visible
        return str(visible(f"<table><caption>{name}</caption>{''.join(rows)}</table>"))


class TablesView(Mapping[str, TableView]):
    """All tables of a story by name."""

    def __init__(self, tables: Mapping[str, TableView]) -> None:
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> TableView:
        if name not in self._tables:
            raise MissingEntry(
                f"there is no table {name!r} in this story", f"it has {', '.join(self._tables)}"
            )
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def to_dict(self) -> dict[str, dict[Any, Any]]:
        """The same as plain nested dictionaries."""
        return {name: view.to_dict() for name, view in self.items()}

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._tables.values()))

    def _repr_html_(self) -> str:
        return "".join(view._repr_html_() for view in self._tables.values())


# Start values: from what a user writes to parameters, with every mistake named.


_ROUNDING = 0.02
"""A row's sum may be off by so much (printed figures are rounded); it is then made exact."""


def uniform_start(support: Support, families: Mapping[str, Family]) -> Params:
    """1/V for every entry of a table with V outcomes.

    What never occurs with a condition keeps its share, as in the uniform start of IBM Model 1.
    """
    params = {}
    for name, table in support.tables.items():
        params[name] = families[name].uniform().copy()
        params[name][: len(table)] = 1.0 / table.n_outcomes
    return params


def given(
    start: Mapping[str, Any], support: Support, families: Mapping[str, Family], fallback: Params
) -> Params:
    """Parameters from nested mappings or flat tuple keys; rows left out stay as in `fallback`."""
    strange = set(start) - set(support.tables)
    if strange:
        raise StartError(
            f"start values for {_join(strange)}, but the story has no such table",
            f"its tables are {_join(support.tables)}",
        )
    params = dict(fallback)
    for name, value in start.items():
        table = support.tables[name]
        params[name] = np.array(fallback[name], dtype=np.float64)
        if isinstance(value, Mapping) and isinstance(families[name], LogLinear):
            raise StartError(
                f"table {name!r} is log-linear: its start values are weights, not probabilities",
                "leave it out, or give the array of all its parameters",
            )
        if isinstance(value, Mapping):
            params[name][: len(table)] = _from_mapping(table, value, params[name][: len(table)])
        else:
            params[name] = _from_array(name, value, params[name])
    return params


def _from_array(name: str, value: Any, like: Array) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.shape != like.shape:
        raise StartError(
            f"start values of table {name!r} have shape {array.shape}, not {like.shape}",
            "arrays must have one number an entry; nested mappings are easier",
        )
    _check_numbers(name, array)
    return array


def _from_mapping(table: TableSupport, value: Mapping[Any, Any], fallback: Array) -> Array:
    keys, numbers = [], []
    for key, value_of in _flat(value, table):
        number = _number(table.name, key, value_of)
        if number == 0.0 and _is_zero(table, key):
            continue
        keys.append(key)
        numbers.append(number)
    codes = [table.lexicon.find(key[p] for key in keys) for p in range(table.arity)]
    entries = table.find(codes)
    if len(entries) and entries.min() < 0:
        raise _never_occurs(table, keys[int(np.argmin(entries))])
    given = np.zeros(len(table))
    given[entries] = numbers
    _check_numbers(table.name, given)
    rows = np.searchsorted(table.indptr, entries, side="right") - 1
    mentioned = np.zeros(len(table.indptr) - 1, bool)
    mentioned[rows] = True
    sums = row_sums(given, table.indptr)
    for row in np.flatnonzero(mentioned & (np.abs(sums - 1.0) > _ROUNDING)):
        condition = table.every_key()[table.indptr[row]][:-1]
        raise StartError(
            f"start values of table {table.name!r}{_given(condition)} add up to {sums[row]:g}",
            "each row must add up to 1 over the outcomes that occur",
        )
    exact = np.abs(sums - 1.0) <= 1e-9
    scale = np.where(exact | ~mentioned, 1.0, sums)
    lengths = np.diff(table.indptr)
    chosen = np.repeat(mentioned, lengths)
    return np.where(chosen, given / np.repeat(scale, lengths), fallback)


def _flat(
    value: Mapping[Any, Any], table: TableSupport, prefix: tuple[Hashable, ...] = ()
) -> Iterator[tuple[tuple[Hashable, ...], Any]]:
    """Full keys, with what they are given."""
    for key, inner in value.items():
        path = (*prefix, *_parts(key, inner, table, prefix))
        if isinstance(inner, Mapping) and len(path) < table.arity:
            yield from _flat(inner, table, path)
        elif len(path) == table.arity:
            yield path, inner
        else:
            raise StartError(
                f"start values of table {table.name!r}: {path!r} is not a full key of "
                f"{table.arity} parts",
                "nest mappings condition by condition down to the outcome",
            )


def _parts(
    key: Hashable, inner: Any, table: TableSupport, prefix: tuple[Hashable, ...]
) -> tuple[Hashable, ...]:
    """A tuple stands for several parts of a key, or is itself one: what the table has decides.

    Where it could be both or neither, it is one if it leaves as many parts as are needed.
    """
    if not isinstance(key, tuple):
        return (key,)
    needed = table.arity - len(prefix)
    fitting = [
        parts
        for parts in ((key,), key)
        if (len(parts) < needed if isinstance(inner, Mapping) else len(parts) == needed)
    ]
    known = [parts for parts in fitting if table.has((*prefix, *parts))]
    return (known or fitting[::-1] or [(key,)])[0]


def _is_zero(table: TableSupport, key: tuple[Hashable, ...]) -> bool:
    """Whether the table has no such entry, though it has the row, and the outcome in others."""
    return not table.has(key) and table.has(key[:-1]) and table.can_be(key[-1])


def _number(name: str, key: tuple[Hashable, ...], value: Any) -> float:
    try:
        number = as_float(value)
    except (TypeError, ValueError):
        raise StartError(
            f"start value of {name}[{_join(key)}] is {value!r}, not a number",
            "give a probability, such as 0.5",
        ) from None
    if not math.isfinite(number) or number < 0.0:
        raise StartError(
            f"start value of {name}[{_join(key)}] is {number}",
            "probabilities are finite and not negative",
        )
    return number


def _check_numbers(name: str, values: Array) -> None:
    if not np.isfinite(values).all() or (values < 0).any():
        raise StartError(
            f"start values of table {name!r} are not all finite and non-negative",
            "look for NaN and for negative numbers",
        )


def _never_occurs(table: TableSupport, key: tuple[Hashable, ...]) -> StartError:
    known = [str(outcome) for outcome in {k[-1] for k in table.every_key()}]
    close = get_close_matches(str(key[-1]), known, n=1)
    return StartError(
        f"start value for {table.name}[{_join(key)}], an entry that never occurs in the data",
        (f"did you mean {close[0]!r}? " if close else "")
        + "leave it out, or declare table(name, outcomes=…)",
    )


def _given(condition: tuple[Hashable, ...]) -> str:
    return f" given {_join(condition)}" if condition else ""


def _join(parts: Any) -> str:
    return ", ".join(map(str, parts))


# The E-step of a story: what the loop, the learners and the engines work with.


_MOSTLY = 1 / 32  # the share of a table from which on its counts are better off dense


class StoryCore:
    """A story's tables as families, and `expect`.

    ``prior`` is the Dirichlet concentration of all tables, or by table; ``frozen`` names tables
    that keep their start values.
    """

    threads_inside = False

    def __init__(
        self,
        name: str,
        support: Support,
        tables: Mapping[str, Table],
        prior: float | Mapping[str, float] = 1.0,
        frozen: tuple[str, ...] = (),
    ) -> None:
        self.name, self.support = name, support
        by_table = prior if isinstance(prior, Mapping) else dict.fromkeys(support.tables, prior)
        for what, names in (("prior", by_table), ("frozen", frozen)):
            strange = set(names) - set(support.tables)
            if strange:
                raise LearnerError(
                    f"{what} names {', '.join(sorted(strange))}, which is no table of this story",
                    f"its tables are {', '.join(support.tables)}",
                )
        named = set(frozen) | (set(prior) if isinstance(prior, Mapping) else set())
        for table in named & {name for name in support.tables if tables[name].features}:
            raise LearnerError(
                f"table {table!r} is log-linear: it has no Dirichlet prior and cannot be frozen",
                "its prior is the penalty of its weights: table(…, features=…, l2=…)",
            )
        self.families: dict[str, Family] = {
            table: _family(entries, tables[table], by_table.get(table, 1.0), table in frozen)
            for table, entries in support.tables.items()
        }

    def estimate(self, corpus: StoryCorpus) -> Estimate:
        """The compiled circuits tell: an E-step holds a value for every node of every item's."""
        data = sum(held(bundle) for bundle in corpus.bundles)
        entries = sum(map(n_entries, self.families.values()))
        return needing(
            len(corpus),
            float(corpus.tokens.sum()),
            2.0 * data / NUMBER + 8.0 * entries,
            data=data,
            tables=COPIES * NUMBER * entries,
            circuits=2.0 * data,
        )

    def expect(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; an item of probability zero is an error."""
        theta = self._theta(params, shard)
        plain = how.fill != "hard" and how.temper == 1.0
        if how.score_only or not plain:
            log_likelihood = self._total(shard, theta, replace(how, fill="soft"), None)
            if how.score_only:
                return Stats({}, log_likelihood, log_likelihood, shard.items, shard.tokens)
        counts = np.zeros(len(theta))
        tempered = theta if how.temper == 1.0 else theta**how.temper
        score = self._total(shard, tempered, how, counts) / how.temper
        if not np.isfinite(counts).all():
            raise SoftcountError(
                "the E-step gave counts that are not finite numbers",
                "this is a fault of softcount: please report the story and its tables",
            )
        if plain:
            log_likelihood = score
        if how.fill == "sample":
            counts /= how.samples
            score = log_likelihood
        return Stats(
            self._by_table(shard, counts), log_likelihood, score, shard.items, shard.tokens
        )

    def logs(self, params: Params, shard: Shard) -> tuple[Array, Array]:
        """The shard's item numbers and their log-likelihoods (-inf for what is impossible)."""
        theta = self._theta(params, shard)
        return self._run(shard, theta, How(score_only=True), None)

    def totals(self, shard: Shard) -> dict[str, float]:
        """The total count of each table that has the same one in every derivation."""
        found = {}
        for share in shard.shares:
            marked = np.zeros(sum(len(each.places) for each in shard.shares) + 1, np.int64)
            marked[share.local] = 1
            totals = [certain_total(block, marked) for block in shard.blocks]
            if None not in totals:
                found[share.table] = float(sum(total for total in totals if total))
        return found

    def _theta(self, params: Params, shard: Shard) -> Array:
        """The probabilities of the shard's entries; the last one is that of the impossible."""
        theta = np.zeros(sum(len(share.places) for share in shard.shares) + 1)
        for share in shard.shares:
            theta[share.local] = params[share.table][share.places]
        return theta

    def _by_table(self, shard: Shard, counts: Array) -> dict[str, Counts]:
        found: dict[str, Counts] = {}
        for share in shard.shares:
            size, value = len(self.support.tables[share.table]), counts[share.local]
            if len(share.places) < _MOSTLY * size:
                found[share.table] = SparseCounts(share.places, value, size)
            else:
                found[share.table] = dense = np.zeros(size)
                dense[share.places] = value
        return found

    def _run(
        self, shard: Shard, theta: Array, how: How, counts: Array | None
    ) -> tuple[Array, Array]:
        numbers: list[Array] = []
        logs: list[Array] = []

        def attain(items: Array, values: Array) -> None:
            numbers.append(items)
            logs.append(values)

        for block in shard.blocks:
            run(block, theta, how, counts, attain)
        return np.concatenate(numbers), np.concatenate(logs)

    def _total(self, shard: Shard, theta: Array, how: How, counts: Array | None) -> float:
        numbers, logs = self._run(shard, theta, how, counts)
        demand_possible(
            numbers,
            logs,
            "has probability zero under the present tables",
            "some entry that it needs is zero: start from unequal but positive values, or smooth "
            "the tables (smoothing=0.1)",
        )
        return float(logs.sum())

    def start(self, init: Any) -> Any:
        """What `softcount.fit.fit` takes as init: 'random', 'uniform', or values by table."""
        if isinstance(init, str) and init == "random":
            return self._random
        if isinstance(init, str) and init == "uniform":
            return uniform_start(self.support, self.families)
        if not isinstance(init, Mapping):
            raise LearnerError(
                f"init={init!r} is not known", "use 'random', 'uniform', or a mapping of tables"
            )
        if set(init) >= set(self.support.tables):
            uniform = uniform_start(self.support, self.families)
            return given(init, self.support, self.families, uniform)
        return lambda rng: given(init, self.support, self.families, self._random(rng))

    def _random(self, rng: np.random.Generator) -> Params:
        return {name: family.random(rng) for name, family in self.families.items()}

    def params(self, values: Mapping[str, Any]) -> Params:
        """Parameters from readable values (nested mappings); what is left out is uniform."""
        uniform = uniform_start(self.support, self.families)
        return given(values, self.support, self.families, uniform)

    def readable(self, params: Params) -> TablesView:
        """Parameters as nested mappings that print themselves."""
        return TablesView(
            {name: TableView(table, params[name]) for name, table in self.support.tables.items()}
        )

    def counts_by_key(self, stats: Stats) -> dict[str, dict[tuple[Hashable, ...], float]]:
        """Counts by table and key, zeros left out."""
        found = {}
        for name, counts in stats.counts.items():
            dense = np.asarray(counts)
            keys = self.support.tables[name].every_key()
            found[name] = {keys[e]: float(dense[e]) for e in np.flatnonzero(dense).tolist()}
        return found


def _family(entries: TableSupport, table: Table, prior: float, frozen: bool) -> Family:
    if table.features is not None:
        return LogLinear(entries.indptr, _features(entries, table), l2=table.l2)
    rows = np.full(len(entries.indptr) - 1, frozen)
    outcomes = entries.codes[:, -1]
    return SparseCategorical(entries.indptr, prior=prior, frozen=rows, outcomes=outcomes)


def _features(entries: TableSupport, table: Table) -> Any:
    """Entries by features."""
    assert table.features is not None
    columns: dict[Hashable, int] = {}
    row, column, value = [], [], []
    for number, key in enumerate(entries.every_key()):
        named = table.features(*key)
        pairs = named.items() if isinstance(named, Mapping) else ((name, 1.0) for name in named)
        for name, amount in pairs:
            row.append(number)
            column.append(columns.setdefault(name, len(columns)))
            value.append(float(amount))
    return sparse.csr_matrix((value, (row, column)), shape=(len(entries), max(len(columns), 1)))


def bind(
    story: Any, items: Any, prior: float | Mapping[str, float], frozen: tuple[str, ...]
) -> tuple[StoryCore, StoryCorpus]:
    """A story and data as the loop wants them."""
    corpus = StoryCorpus(story, items)
    return StoryCore(story.name, corpus.support, corpus.tables, prior, frozen), corpus
