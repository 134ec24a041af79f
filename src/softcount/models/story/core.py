"""The E-step of a story: what the loop, the learners and the engines work with."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from softcount.errors import LearnerError, SoftcountError
from softcount.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.families import LogLinear, SparseCategorical
from softcount.families.base import Family
from softcount.models.possible import demand_possible
from softcount.models.story import start
from softcount.models.story.corpus import StoryCorpus
from softcount.models.story.engine import certain_total, run
from softcount.models.story.language import Table
from softcount.models.story.readable import TablesView, TableView
from softcount.models.story.shards import Shard
from softcount.models.story.support import Support, TableSupport
from softcount.types import Array, Counts, How, Params, SparseCounts, Stats

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
            return start.uniform(self.support, self.families)
        if not isinstance(init, Mapping):
            raise LearnerError(
                f"init={init!r} is not known", "use 'random', 'uniform', or a mapping of tables"
            )
        if set(init) >= set(self.support.tables):
            uniform = start.uniform(self.support, self.families)
            return start.given(init, self.support, self.families, uniform)
        return lambda rng: start.given(init, self.support, self.families, self._random(rng))

    def _random(self, rng: np.random.Generator) -> Params:
        return {name: family.random(rng) for name, family in self.families.items()}

    def params(self, values: Mapping[str, Any]) -> Params:
        """Parameters from readable values (nested mappings); what is left out is uniform."""
        uniform = start.uniform(self.support, self.families)
        return start.given(values, self.support, self.families, uniform)

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
