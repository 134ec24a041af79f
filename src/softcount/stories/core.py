"""The E-step of stories, single derivations, and forward sampling of new items."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from softcount.core.errors import ImpossibleItem, LearnerError, SoftcountError, StoryError, brief
from softcount.core.estimate import COPIES, NUMBER, Estimate, make_estimate, n_entries
from softcount.core.model import Model, check_possible
from softcount.core.types import (
    Counts,
    EStep,
    Fill,
    FloatArray,
    IntArray,
    Params,
    SparseCounts,
    Stats,
)
from softcount.families import LogLinear, SparseCategorical
from softcount.families.base import Family
from softcount.stories import kernels
from softcount.stories.circuit import (
    NO_LEAVES,
    Circuit,
    InsideOutside,
    certain_total,
    compile_alone,
    run,
)
from softcount.stories.data import AnyStoryCorpus, StoryShard
from softcount.stories.language import (
    Hypergraph,
    ItemShape,
    Story,
    StoryTable,
    Symbol,
    TableEntry,
    ValueInspected,
    describe,
    trace_story,
)
from softcount.stories.starts import read_start, uniform_start
from softcount.stories.tables import Support, TableSupport, TablesView, TableView

_MOSTLY = 1 / 32  # counts that touch at least this fraction of a table are kept as a dense array


class StoryCore(Model):
    """The model behind a story: its tables as families, and the E-step `expect`.

    ``prior`` is the Dirichlet concentration of all tables, or a mapping by table; ``frozen`` names
    the tables that keep their initial values.
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
            unknown = set(names) - set(support.tables)
            if unknown:
                raise LearnerError(
                    f"{what} names {', '.join(sorted(unknown))}, but this story has no such table",
                    f"its tables are {', '.join(support.tables)}",
                )
        named = set(frozen) | (set(prior) if isinstance(prior, Mapping) else set())
        for table in named & {name for name in support.tables if tables[name].features}:
            raise LearnerError(
                f"table {table!r} is log-linear: it has no Dirichlet prior and cannot be frozen",
                "its prior is the penalty of its weights: table(…, features=…, l2=…)",
            )
        self.families: dict[str, Family] = {
            table: _make_family(entries, tables[table], by_table.get(table, 1.0), table in frozen)
            for table, entries in support.tables.items()
        }

    def estimate(self, corpus: AnyStoryCorpus) -> Estimate:
        """Estimate by the compiled circuits: an E-step holds a value for every node and item."""
        data, held = corpus.n_bytes
        entries = sum(map(n_entries, self.families.values()))
        return make_estimate(
            len(corpus),
            float(corpus.n_tokens),
            2.0 * data / NUMBER + 8.0 * entries,
            data=held,
            tables=COPIES * NUMBER * entries,
            circuits=2.0 * held,
        )

    def expect(self, params: Params, shard: StoryShard, how: EStep, local: Any = None) -> Stats:
        """Compute expected counts and log-likelihood of a shard.

        Raises `ImpossibleItem` for an item of probability zero.
        """
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
                "the E-step returned counts that are not finite",
                "this is a bug in softcount: please report it with the story and its tables",
            )
        if is_plain:
            log_likelihood = score
        if how.fill == "sample":
            counts /= how.samples
            score = log_likelihood
        by_table: dict[str, Counts] = {}
        for entries in shard.touched:
            size, value = len(self.support.tables[entries.table]), counts[entries.local]
            if len(entries.places) < _MOSTLY * size:
                by_table[entries.table] = SparseCounts(entries.places, value, size)
            else:
                by_table[entries.table] = dense = np.zeros(size)
                dense[entries.places] = value
        return Stats(by_table, log_likelihood, score, shard.items, shard.tokens)

    def logs(
        self, params: Params, shard: StoryShard, how: EStep | None = None, local: Any = None
    ) -> tuple[IntArray, FloatArray]:
        """Return the shard's item numbers and their log-likelihoods (-inf if impossible)."""
        return run(shard.blocks, self._theta(params, shard), EStep(score_only=True), None)

    def totals(self, shard: StoryShard) -> dict[str, float]:
        """Return the total count of each table whose total is the same in every derivation."""
        by_table = {}
        for entries in shard.touched:
            marked = np.zeros(sum(len(each.places) for each in shard.touched) + 1, np.int64)
            marked[entries.local] = 1
            totals = [certain_total(block, marked) for block in shard.blocks]
            if None not in totals:
                by_table[entries.table] = float(sum(total for total in totals if total))
        return by_table

    def _theta(self, params: Params, shard: StoryShard) -> FloatArray:
        """Gather the probabilities of the shard's entries, (entries + 1,).

        The last one is 0: it stands for everything that is in no table.
        """
        theta = np.zeros(sum(len(entries.places) for entries in shard.touched) + 1)
        for entries in shard.touched:
            theta[entries.local] = params[entries.table][entries.places]
        return theta

    def _total(
        self, shard: StoryShard, theta: FloatArray, how: EStep, counts: FloatArray | None
    ) -> float:
        """Sum the log-likelihood over items, adding to ``counts`` unless it is None.

        Raises `ImpossibleItem` for an item of probability zero.
        """
        numbers, logs = run(shard.blocks, theta, how, counts)
        check_possible(
            numbers,
            logs,
            "has probability zero under the present tables",
            "a table entry that every derivation needs is zero: start from unequal but positive "
            "values, or smooth the tables (smoothing=0.1)",
        )
        return float(logs.sum())

    def start(self, init: Any) -> Any:
        """Convert the user's init ('random', 'uniform', or values by table) for the loop.

        Returns what `softcount.core.fit.fit` takes as ``init``: parameters, or a function that
        makes them from random numbers.
        """
        if isinstance(init, str) and init == "random":
            return self._random_start
        if isinstance(init, str) and init == "uniform":
            return uniform_start(self.support, self.families)
        if not isinstance(init, Mapping):
            raise LearnerError(
                f"init={init!r} is unknown", "use 'random', 'uniform', or a mapping of tables"
            )
        if set(init) >= set(self.support.tables):
            return self.params(init)
        return lambda rng: read_start(init, self.support, self.families, self._random_start(rng))

    def _random_start(self, rng: np.random.Generator) -> Params:
        return {name: family.random(rng) for name, family in self.families.items()}

    def params(self, values: Mapping[str, Any]) -> Params:
        """Convert nested mappings to parameters; tables and rows left out are uniform."""
        uniform = uniform_start(self.support, self.families)
        return read_start(values, self.support, self.families, uniform)

    def view_params(self, params: Params) -> TablesView:
        """Show parameters as nested mappings with a readable repr."""
        return TablesView(
            {name: TableView(table, params[name]) for name, table in self.support.tables.items()}
        )

    def counts_by_key(self, stats: Stats) -> dict[str, dict[tuple[Hashable, ...], float]]:
        """Return the non-zero counts by table and key."""
        by_key = {}
        for name, counts in stats.counts.items():
            dense = np.asarray(counts)
            keys = self.support.tables[name].entry_keys()
            by_key[name] = {keys[e]: float(dense[e]) for e in np.flatnonzero(dense).tolist()}
        return by_key


def _make_family(entries: TableSupport, table: StoryTable, prior: float, frozen: bool) -> Family:
    """Make a table's family: categorical rows, or log-linear ones if the table has features."""
    if table.features is None:
        rows = np.full(len(entries.indptr) - 1, frozen)
        outcomes = entries.codes[:, -1]
        return SparseCategorical(entries.indptr, prior=prior, frozen=rows, outcomes=outcomes)
    columns: dict[Hashable, int] = {}
    row, column, value = [], [], []
    for number, key in enumerate(entries.entry_keys()):
        named = table.features(*key)
        pairs = named.items() if isinstance(named, Mapping) else ((name, 1.0) for name in named)
        for name, amount in pairs:
            row.append(number)
            column.append(columns.setdefault(name, len(columns)))
            value.append(float(amount))
    shape = (len(entries), max(len(columns), 1))  # entries by features
    features = sparse.csr_matrix((value, (row, column)), shape=shape)
    return LogLinear(entries.indptr, features, l2=table.l2, ascent=table.ascent)


# Single derivations read off a circuit

_DEEPEST = 30  # deepest indentation level of a printed derivation
_SCREEN = 40  # calls of a derivation that an interactive Python prints whole


@dataclass(frozen=True, eq=False, repr=False)
class Derivation:
    """One way in which an item came about: its events, and the sub-stories it consists of.

    ``story``     the call, as text
    ``happened``  the table entries used by this call itself, with their probabilities
    ``parts``     the derivations of the stories that it calls
    """

    story: str
    happened: tuple[tuple[TableEntry, float], ...]
    parts: tuple[Derivation, ...]

    def walk(self) -> Iterator[tuple[int, Derivation]]:
        """Yield this derivation and all inside it, top down, each with its depth."""
        waiting = [(0, self)]
        while waiting:
            depth, each = waiting.pop()
            yield depth, each
            waiting.extend((depth + 1, part) for part in reversed(each.parts))

    @property
    def events(self) -> list[TableEntry]:
        """All table entries used, in order."""
        return [entry for _, each in self.walk() for entry, _ in each.happened]

    @property
    def log_probability(self) -> float:
        """log P(item, this derivation)."""
        logs = (math.log(p) for _, each in self.walk() for _, p in each.happened)
        return math.fsum(logs)

    def __repr__(self) -> str:
        """The tree, as it prints; of one that is longer than a screen, what it is."""
        if sum(1 for _ in islice(self.walk(), _SCREEN + 1)) > _SCREEN:
            return f"<derivation of {self.story}: {len(self.events)} events>"
        return str(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the tree: a call, and below it the calls that it consists of."""
        # how many parts of each ancestor are still to come says where lines go on
        left = [1]
        for depth, each in self.walk():
            del left[depth + 1 :]
            left[depth] -= 1
            shown = left[1 : depth + 1][-_DEEPEST:]
            before = "".join("│  " if n else "   " for n in shown[:-1])
            branch = "" if not depth else "├─ " if shown[-1] else "└─ "
            happened = "  ".join(f"{entry!r} {p:.4g}" for entry, p in each.happened)
            yield f"{before}{branch}{each.story}  {happened}".rstrip()
            left.append(len(each.parts))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def derive(
    core: StoryCore, story: Story, params: Params, item: Any, fill: Fill, seed: int = 0
) -> Derivation:
    """Return the best derivation of an item (``fill="hard"``) or draw one (``fill="sample"``)."""
    graph = trace_story(story, item)
    circuit = compile_alone(graph)
    theta = _probabilities(core, params, graph)
    if circuit is None:
        raise ImpossibleItem(
            f"no derivation explains {brief(item)}", "the story yields no alternative that fits it"
        )
    work = InsideOutside(circuit.rows, theta[circuit.constants], fill)
    value, _ = work.inside(NO_LEAVES, theta)
    if value[0, 0] <= 0.0:
        unseen = next((e for e, p in zip(graph.entries, theta, strict=True) if p == 0.0), None)
        raise ImpossibleItem(
            f"{brief(item)} has probability zero under the learned tables"
            + (f"; for instance {unseen!r} is zero" if unseen else ""),
            "entries that never occurred in training have no probability: declare "
            "table(name, outcomes=…) and smooth",
        )
    # from the root down, choosing anew at every use of a node; with an explicit stack, since
    # derivations may be deeper than Python's recursion limit
    stream = np.zeros(1, np.uint64)
    kernels.seed_streams(np.uint64(seed), np.zeros(1, np.uint64), stream)
    order: list[tuple[int, tuple[tuple[TableEntry, float], ...], int]] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        row = int(circuit.node_row[node])
        if fill == "hard":
            chosen = kernels.best_term(circuit.rows, row, work.values, 0)
        else:
            chosen = kernels.draw_term(circuit.rows, row, work.values, 0, stream)
        a = int(circuit.alternatives[chosen])
        parts = graph.parts[graph.alternative_ends[a] : graph.alternative_ends[a + 1]]
        events = parts[parts < graph.n_events].tolist()
        children = (parts[parts >= graph.n_events] - graph.n_events).tolist()
        happened = tuple((graph.entries[e], float(theta[e])) for e in events)
        order.append((node, happened, len(children)))
        waiting.extend(reversed(children))
    finished: list[Derivation] = []
    for node, happened, n_parts in reversed(order):
        inner = tuple(finished.pop() for _ in range(n_parts))
        finished.append(Derivation(describe(*graph.calls[node]), happened, inner))
    return finished[0]


def _probabilities(core: StoryCore, params: Params, graph: Hypergraph) -> FloatArray:
    """Look up the probability of every event of a graph, (events,); 0 if it is in no table."""
    theta = np.zeros(graph.n_events)
    for number, (table, key) in enumerate(graph.entries):
        codes = [core.support.lexicon.find([part]) for part in key]
        entry = int(core.support.find(table, codes)[0])
        if entry < core.support.size:
            theta[number] = params[table][entry - core.support.offsets[table]]
    return theta


class ForwardSampler:
    """Draws new items with the shapes of training items."""

    def __init__(self, core: StoryCore, story: Story, params: Params, items: Sequence[Any]) -> None:
        self.core, self.story, self.params, self.items = core, story, params, items
        self._compiled: dict[Any, tuple[Hypergraph, Circuit]] = {}  # by shape

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw an item with the shape of a random training item."""
        item = self.items[int(rng.integers(len(self.items)))]
        try:
            shape = ItemShape(item)
            if shape.key not in self._compiled:
                self._compiled[shape.key] = self._compile(item)
        except ValueInspected:
            raise StoryError(
                f"story {self.story.name!r} inspects the observed values, so it cannot be run "
                "forward",
                "use observed values only as table indices and as arguments of stories",
            ) from None
        values = iter(self._draw_values(*self._compiled[shape.key], shape.values, rng))
        if type(item) is str:
            return "".join(map(str, values))

        def fill(part: Any) -> Any:
            """Return the item with new values in its slots."""
            if type(part) in (list, tuple):
                return type(part)(map(fill, part))
            if hasattr(part, "tolist"):
                return fill(part.tolist())
            return part if part is None or type(part) is bool else next(values)

        return fill(item)

    def _compile(self, item: Any) -> tuple[Hypergraph, Circuit]:
        """Trace and compile items of one shape; raise if their values cannot be drawn."""
        graph = trace_story(self.story, item, symbolic=True)
        conditions = {p.slots for e in graph.entries for p in e.key[:-1] if type(p) is Symbol}
        outcomes = {e.key[-1].slots for e in graph.entries if type(e.key[-1]) is Symbol}
        if conditions & outcomes:
            raise StoryError(
                "this story cannot be run forward: a value is drawn from one table and is the "
                "condition of another",
                "generate works where every observed value is an outcome or a condition, not both",
            )
        circuit = compile_alone(graph)
        assert circuit is not None  # the item was in the training data
        return graph, circuit

    def _draw_values(
        self, graph: Hypergraph, circuit: Circuit, old: Sequence[Any], rng: np.random.Generator
    ) -> list[Any]:
        """Draw new values for the slots that are outcomes; those that are only conditions stay."""
        # first draw a derivation with all observed outcomes summed out, then the outcomes
        theta = np.array([self._open_weight(entry, old) for entry in graph.entries])
        work = InsideOutside(circuit.rows, theta[circuit.constants], "sample")
        work.inside(NO_LEAVES, theta)
        how = EStep(fill="sample", stream=int(rng.integers(2**63)))
        only = np.ones((1, 1), bool)
        work.count(only, how, only.astype(np.int64), np.zeros_like(theta))
        times = work.collect(len(circuit.constants)).astype(int)
        values, filled = list(old), set()
        for event in np.repeat(circuit.constants, times).tolist():
            entry = graph.entries[event]
            if type(entry.key[-1]) is not Symbol:
                continue
            slot = entry.key[-1].slots
            if slot in filled:
                raise StoryError(
                    "this story cannot be run forward: a derivation explains one observed value "
                    "twice",
                    "each observed value must be the outcome of one table entry",
                )
            filled.add(slot)
            table, row = self._find_row(entry, old)
            weights = np.asarray(self.params[entry.table][row])
            chosen = row.start + rng.choice(len(weights), p=weights / weights.sum())
            values[slot] = table.lexicon.values[table.codes[chosen, -1]]
        return values

    def _find_row(self, entry: TableEntry, old: Sequence[Any]) -> tuple[TableSupport, slice]:
        """Return the table of an entry, and the slice of its row."""
        table = self.core.support.tables[entry.table]
        prefix: IntArray = np.zeros(1, np.int64)
        for level, part in zip(table.levels, entry.key[:-1], strict=False):
            value = old[part.slots] if type(part) is Symbol else part
            prefix = level.rank(prefix, table.lexicon.find([value]))
        row = int(prefix[0])
        return table, slice(table.indptr[row], table.indptr[row + 1]) if row >= 0 else slice(0)

    def _open_weight(self, entry: TableEntry, old: Sequence[Any]) -> float:
        """Return the weight of an event with its observed outcome summed out: its row's mass."""
        table, row = self._find_row(entry, old)
        if type(entry.key[-1]) is Symbol:
            return float(self.params[entry.table][row].sum())
        values = [old[p.slots] if type(p) is Symbol else p for p in entry.key]
        index = int(table.find([table.lexicon.find([value]) for value in values])[0])
        return float(self.params[entry.table][index]) if index >= 0 else 0.0
