"""The E-step of stories: what the loop, the learners and the engines work with."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from softcount.core.errors import LearnerError, SoftcountError
from softcount.core.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.core.model import Model, demand_possible
from softcount.core.types import Array, Counts, EStep, Params, SparseCounts, Stats
from softcount.families import LogLinear, SparseCategorical
from softcount.families.base import Family
from softcount.stories.data import StoryCorpus
from softcount.stories.inside_outside import StoryShard, certain_total, run
from softcount.stories.language import StoryTable
from softcount.stories.starts import read_start, uniform_start
from softcount.stories.tables import Support, TableSupport, TablesView, TableView

_MOSTLY = 1 / 32  # the share of a table from which on its counts are better off dense


class StoryCore(Model):
    """A story's tables as families, and `expect`.

    ``prior`` is the Dirichlet concentration of all tables, or by table; ``frozen`` names tables
    that keep their start values.
    """

    threads_inside = False

    def __init__(
        self,
        name: str,
        support: Support,
        tables: Mapping[str, StoryTable],
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

    def expect(self, params: Params, shard: StoryShard, how: EStep, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; an item of probability zero is an error."""
        theta = self._theta(params, shard)
        is_plain = how.fill != "hard" and how.temper == 1.0
        if how.score_only or not is_plain:
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
        if is_plain:
            log_likelihood = score
        if how.fill == "sample":
            counts /= how.samples
            score = log_likelihood
        return Stats(
            self._by_table(shard, counts), log_likelihood, score, shard.items, shard.tokens
        )

    def logs(self, params: Params, shard: StoryShard) -> tuple[Array, Array]:
        """The shard's item numbers and their log-likelihoods (-inf for what is impossible)."""
        theta = self._theta(params, shard)
        return self._run(shard, theta, EStep(score_only=True), None)

    def totals(self, shard: StoryShard) -> dict[str, float]:
        """The total count of each table that has the same one in every derivation."""
        found = {}
        for entries in shard.touched:
            marked = np.zeros(sum(len(each.places) for each in shard.touched) + 1, np.int64)
            marked[entries.local] = 1
            totals = [certain_total(block, marked) for block in shard.blocks]
            if None not in totals:
                found[entries.table] = float(sum(total for total in totals if total))
        return found

    def _theta(self, params: Params, shard: StoryShard) -> Array:
        """The probabilities of the shard's entries; the last one is that of the impossible."""
        theta = np.zeros(sum(len(entries.places) for entries in shard.touched) + 1)
        for entries in shard.touched:
            theta[entries.local] = params[entries.table][entries.places]
        return theta

    def _by_table(self, shard: StoryShard, counts: Array) -> dict[str, Counts]:
        found: dict[str, Counts] = {}
        for entries in shard.touched:
            size, value = len(self.support.tables[entries.table]), counts[entries.local]
            if len(entries.places) < _MOSTLY * size:
                found[entries.table] = SparseCounts(entries.places, value, size)
            else:
                found[entries.table] = dense = np.zeros(size)
                dense[entries.places] = value
        return found

    def _run(
        self, shard: StoryShard, theta: Array, how: EStep, counts: Array | None
    ) -> tuple[Array, Array]:
        numbers: list[Array] = []
        logs: list[Array] = []

        def attain(items: Array, values: Array) -> None:
            numbers.append(items)
            logs.append(values)

        for block in shard.blocks:
            run(block, theta, how, counts, attain)
        return np.concatenate(numbers), np.concatenate(logs)

    def _total(self, shard: StoryShard, theta: Array, how: EStep, counts: Array | None) -> float:
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
        """What `softcount.core.fit.fit` takes as init: 'random', 'uniform', or values by table."""
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
            return read_start(init, self.support, self.families, uniform)
        return lambda rng: read_start(init, self.support, self.families, self._random(rng))

    def _random(self, rng: np.random.Generator) -> Params:
        return {name: family.random(rng) for name, family in self.families.items()}

    def params(self, values: Mapping[str, Any]) -> Params:
        """Parameters from readable values (nested mappings); what is left out is uniform."""
        uniform = uniform_start(self.support, self.families)
        return read_start(values, self.support, self.families, uniform)

    def view_params(self, params: Params) -> TablesView:
        """Parameters as nested mappings that print themselves."""
        return TablesView(
            {name: TableView(table, params[name]) for name, table in self.support.tables.items()}
        )

    def counts_by_key(self, stats: Stats) -> dict[str, dict[tuple[Hashable, ...], float]]:
        """Counts by table and key, zeros left out."""
        found = {}
        for name, counts in stats.counts.items():
            dense = np.asarray(counts)
            keys = self.support.tables[name].entry_keys()
            found[name] = {keys[e]: float(dense[e]) for e in np.flatnonzero(dense).tolist()}
        return found


def _family(entries: TableSupport, table: StoryTable, prior: float, frozen: bool) -> Family:
    if table.features is not None:
        return LogLinear(entries.indptr, _features(entries, table), l2=table.l2)
    rows = np.full(len(entries.indptr) - 1, frozen)
    outcomes = entries.codes[:, -1]
    return SparseCategorical(entries.indptr, prior=prior, frozen=rows, outcomes=outcomes)


def _features(entries: TableSupport, table: StoryTable) -> Any:
    """Entries by features."""
    assert table.features is not None
    columns: dict[Hashable, int] = {}
    row, column, value = [], [], []
    for number, key in enumerate(entries.entry_keys()):
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
