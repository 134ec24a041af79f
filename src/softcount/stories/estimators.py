"""`StoryModel`, as users call it.

Running a story forward: make new items of the shapes that the training data had.

A story that does not look at observed values says, for each shape of item, which tables its values
are drawn from. Given a shape, the sum over derivations with every observation left open is a
circuit like any other; we draw a derivation from it, and then the values from the rows that it
names. Values that only appear as conditions (the source words of an alignment) are kept from a
training item.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount import store
from softcount.errors import ImpossibleItem, LearnerError, StoreError, StoryError
from softcount.models.base import Estimator
from softcount.models.settings import check_number, no_mode
from softcount.store import Stored
from softcount.stories.circuit import Circuit, Level, Lexicon, Support, TableSupport, compile_alone
from softcount.stories.core import StoryCore, TablesView, bind
from softcount.stories.data import StoryCorpus
from softcount.stories.derivation import Derivation, derive
from softcount.stories.engine import NO_LEAVES, Pass
from softcount.stories.language import Entry, Looked, Shape, Story, is_symbol, story_of, table
from softcount.stories.tracing import Trail, trace_story
from softcount.types import Array, How, Params

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


class Forward:
    """Draws items like those of the training data."""

    def __init__(self, core: StoryCore, story: Story, params: Params, items: Sequence[Any]) -> None:
        self.core, self.story, self.params, self.items = core, story, params, items
        self._plans: dict[Any, _Plan] = {}

    def draw(self, rng: np.random.Generator) -> Any:
        """An item of the shape of a random training item."""
        item = self.items[int(rng.integers(len(self.items)))]
        try:
            shape = Shape(item)
            if shape.key not in self._plans:
                trail = trace_story(self.story, item, symbolic=True)
                self._plans[shape.key] = _Plan(self.core, self.params, trail)
        except Looked:
            raise StoryError(
                f"story {self.story.name!r} looks at the observed values, so it cannot be run "
                "forward",
                "use observed values only as table indices and as arguments of stories",
            ) from None
        values = self._plans[shape.key].values(shape.values, rng)
        return _refilled(item, iter(values))


class _Plan:
    """How values of one shape are drawn."""

    def __init__(self, core: StoryCore, params: Params, trail: Trail) -> None:
        self.core, self.params, self.trail = core, params, trail
        self.drawn = [is_symbol(entry.key[-1]) for entry in trail.entries]
        given = {p.slots for entry in trail.entries for p in entry.key[:-1] if is_symbol(p)}
        if given & {entry.key[-1].slots for entry in self._outcomes(range(trail.n_events))}:
            raise StoryError(
                "this story cannot be run forward: a value is drawn from one table and is the "
                "condition of another",
                "generate works where every observed value is an outcome or a condition, not both",
            )
        circuit = compile_alone(trail)
        assert circuit is not None  # it was learned from
        self.circuit: Circuit = circuit

    def _outcomes(self, events: Iterable[int]) -> list[Entry]:
        """What events stand for, of those whose outcome is drawn."""
        return [self.trail.entries[event] for event in events if self.drawn[event]]

    def values(self, old: Sequence[Any], rng: np.random.Generator) -> list[Any]:
        """New values for the slots that are drawn; those that are only conditions stay."""
        values, filled = list(old), set()
        for entry in self._outcomes(self._happened(old, rng)):
            slot = entry.key[-1].slots
            if slot in filled:
                raise StoryError(
                    "this story cannot be run forward: a derivation explains one observed value "
                    "twice",
                    "each observed value must be the outcome of one table entry",
                )
            filled.add(slot)
            values[slot] = self._outcome(entry, old, rng)
        return values

    def _happened(self, old: Sequence[Any], rng: np.random.Generator) -> list[int]:
        """The events of a derivation that is drawn with all outcomes left open."""
        theta = np.array([self._open(entry, old) for entry in self.trail.entries])
        constants = self.circuit.constants
        work = Pass(self.circuit.rows, theta[constants], "sample")
        work.inside(NO_LEAVES, theta)
        how = How(fill="sample", stream=int(rng.integers(2**63)))
        only = np.ones((1, 1), bool)
        work.count(only, how, only.astype(np.int64), np.zeros_like(theta))
        times = work.collect(len(constants)).astype(int)
        return np.repeat(constants, times).tolist()

    def _row(self, entry: Entry, old: Sequence[Any]) -> tuple[TableSupport, slice]:
        table = self.core.support.tables[entry.table]
        prefix: Array = np.zeros(1, np.int64)
        for level, part in zip(table.levels, entry.key[:-1], strict=False):
            value = old[part.slots] if is_symbol(part) else part
            prefix = level.rank(prefix, table.lexicon.find([value]))
        row = int(prefix[0])
        return table, slice(table.indptr[row], table.indptr[row + 1]) if row >= 0 else slice(0)

    def _open(self, entry: Entry, old: Sequence[Any]) -> float:
        """The weight of an event when its observed outcome is left open: its row's mass."""
        table, row = self._row(entry, old)
        if is_symbol(entry.key[-1]):
            return float(self.params[entry.table][row].sum())
        codes = [table.lexicon.find([old[p.slots] if is_symbol(p) else p]) for p in entry.key]
        found = int(table.find(codes)[0])
        return float(self.params[entry.table][found]) if found >= 0 else 0.0

    def _outcome(self, entry: Entry, old: Sequence[Any], rng: np.random.Generator) -> Any:
        table, row = self._row(entry, old)
        weights = np.asarray(self.params[entry.table][row])
        chosen = row.start + rng.choice(len(weights), p=weights / weights.sum())
        return table.lexicon.values[table.codes[chosen, -1]]


def _refilled(item: Any, values: Any) -> Any:
    """The item with new values in its places."""
    if type(item) is str:
        drawn = [next(values) for _ in item]
        return "".join(map(str, drawn))

    def fill(part: Any) -> Any:
        if type(part) in (list, tuple):
            return type(part)(map(fill, part))
        if hasattr(part, "tolist"):
            return fill(part.tolist())
        return part if part is None or type(part) is bool else next(values)

    return fill(item)


# A story's learned tables as arrays and plain facts, for `softcount.store`, and back.


def packed(core: StoryCore, params: Params) -> tuple[dict[str, Array], dict[str, Any]]:
    """The tables' keys and probabilities."""
    arrays: dict[str, Array] = {}
    facts: list[dict[str, Any]] = []
    for number, (name, entries) in enumerate(core.support.tables.items()):
        arrays[f"{number}.probability"] = np.asarray(params[name])[: len(entries)]
        for depth, level in enumerate(entries.levels):
            arrays[f"{number}.level.{depth}"] = level.keys
        facts.append({"name": name, "arity": entries.arity, "radix": entries.levels[0].radix})
    values = [_to_json(value) for value in core.support.lexicon.values]
    return arrays, {"name": core.name, "tables": facts, "values": values}


def unpacked(stored: Stored, story: Story) -> tuple[StoryCore, Params]:
    """A core and its parameters; every number is checked before it is used as a place."""
    try:
        lexicon = Lexicon(_from_json(value) for value in stored.meta["values"])
        tables: dict[str, TableSupport] = {}
        params: dict[str, Array] = {}
        for number, facts in enumerate(stored.meta["tables"]):
            name = str(facts["name"])
            tables[name] = _table(stored.arrays, number, facts, lexicon)
            params[name] = _probabilities(stored.arrays[f"{number}.probability"], tables[name])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, StoreError):
            raise
        raise _damaged(str(error)) from error
    core = StoryCore(story.name, Support(tables, lexicon), {name: table(name) for name in tables})
    return core, params


def _table(
    arrays: Mapping[str, Array], number: int, facts: Mapping[str, Any], lexicon: Lexicon
) -> TableSupport:
    radix, arity = int(facts["radix"]), int(facts["arity"])
    if not 1 <= arity <= 64 or not 1 <= radix <= max(len(lexicon), 1):
        raise _damaged("a table's form is out of range")
    levels: list[Level] = []
    n_prefixes = 1
    for depth in range(arity):
        keys = arrays[f"{number}.level.{depth}"]
        good = keys.dtype == np.int64 and keys.ndim == 1 and len(keys) > 0
        if not good or keys[0] < 0 or keys[-1] >= n_prefixes * radix or (np.diff(keys) <= 0).any():
            raise _damaged("a table's keys are out of order")
        levels.append(Level(keys, radix, n_prefixes))
        n_prefixes = len(keys)
    return TableSupport(str(facts["name"]), tuple(levels), lexicon)


def _probabilities(array: Array, entries: TableSupport) -> Array:
    if array.dtype != np.float64 or array.shape != (len(entries),):
        raise _damaged("a table has not one number an entry")
    if not np.isfinite(array).all() or (array < 0).any():
        raise _damaged("a table has numbers that are not probabilities")
    return array


def _to_json(value: Hashable) -> Any:
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    if value is None or type(value) in (str, int, float, bool):
        return value
    raise StoreError(
        f"a table's key has the part {value!r}, which cannot be written to a file",
        "use words, numbers and tuples of them as parts of keys",
    )


def _from_json(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(map(_from_json, value))
    if value is None or type(value) in (str, int, float, bool):
        return value  # type: ignore[no-any-return]
    raise _damaged("a value is of an unknown kind")


def _damaged(what: str) -> StoreError:
    return StoreError(f"this is not a file of story tables: {what}", "save the model again")


# The estimator: a user's story, learned from data.


KIND = "story"
_KEPT_SHAPES = 10_000  # training items kept for generate()


class StoryModel(Estimator):
    """A model that the user wrote down as a story.

    ``learner``       how to learn (default `EM()`)
    ``engine``        where (default: threads on this machine)
    ``init``          'random', 'uniform' (1/V everywhere), or start values as nested mappings
    ``prior``         Dirichlet concentration of every table, or by table; 1 is flat
    ``smoothing``     add so much to every count: the same as ``prior = 1 + smoothing``
    ``frozen``        names of tables that keep their start values
    ``random_state``  seed; the same seed gives the same bits for any number of threads

    >>> from softcount import EM, story, table
    >>> which, flip = table("which"), table("flip")
    >>> @story
    ... def coins(tosses):
    ...     for z in "AB":
    ...         yield which[z], *(flip[z, x] for x in tosses)
    >>> model = StoryModel(coins, learner=EM(max_iter=3, tol=0)).fit(
    ...     ["HHH", "TTT", "HHH", "TTT"],
    ...     init={
    ...         "which": {"A": 0.3, "B": 0.7},
    ...         "flip": {"A": {"H": 0.3, "T": 0.7}, "B": {"H": 0.6, "T": 0.4}},
    ...     },
    ... )
    >>> model.trace_.log_likelihood.round(6).tolist()
    [-7.499076, -4.931993, -2.945809, -2.772725]
    """

    core_: StoryCore

    def __init__(
        self,
        story: Callable[..., Any],
        *,
        learner: Learner | None = None,
        engine: Engine | None = None,
        init: str | Mapping[str, Any] = "random",
        prior: float | Mapping[str, float] = 1.0,
        smoothing: float | Mapping[str, float] | None = None,
        frozen: Iterable[str] = (),
        random_state: Any = 0,
    ) -> None:
        self.story = story
        self.learner = learner
        self.engine = engine
        self.init = init
        self.prior = prior
        self.smoothing = smoothing
        self.frozen = frozen
        self.random_state = random_state

    def remember(self, corpus: StoryCorpus) -> None:
        """Some items, whose shapes `generate` takes."""
        self._examples = corpus.items[:_KEPT_SHAPES]

    @property
    def _story(self) -> Story:
        return story_of(self.story)

    @property
    def called(self) -> str:
        return f"StoryModel {self._story.name}"

    def lacks_prior(self) -> str:
        return ""  # it is flat, unless it is given

    def lacks_mode(self) -> str:
        return no_mode(self._prior())

    def bind(self, data: Iterable[Any]) -> tuple[StoryCore, StoryCorpus]:
        """Trace and compile the data; gives what the loop works with."""
        return bind(self._story, data, self._prior(), tuple(self.frozen))

    def bind_more(self, core: StoryCore, data: Iterable[Any]) -> StoryCorpus:
        """Compile further data for tables that exist already."""
        return StoryCorpus(self._story, list(data), core.support)

    def _prior(self) -> float | Mapping[str, float]:
        given = self.prior if self.smoothing is None else self.smoothing
        above = self.smoothing is None
        for amount in given.values() if isinstance(given, Mapping) else (given,):
            check_number("prior" if above else "smoothing", amount, "1 is flat", above=above)
        if self.smoothing is None:
            return self.prior
        if self.prior != 1.0:
            raise LearnerError(
                "prior and smoothing say the same thing twice",
                "give one of them: smoothing=a is prior=1+a",
            )
        if isinstance(self.smoothing, Mapping):
            return {table: 1.0 + amount for table, amount in self.smoothing.items()}
        return 1.0 + self.smoothing

    def start_values(self, core: StoryCore, corpus: StoryCorpus, init: Any) -> Any:
        return core.start(init)

    @property
    def params_(self) -> TablesView:
        """The learned tables: ``params_["flip"]["A"]["H"]``."""
        self._require_fit()
        return self.core_.readable(self.raw_params_)

    def score(self, items: Iterable[Any]) -> Array:
        """log-likelihood of each item; -inf for what the tables cannot explain."""
        self._require_fit()
        items = list(items)
        if not items:
            return np.empty(0)
        corpus = StoryCorpus(self._story, items, self.core_.support, strict=False)
        logs = np.full(len(corpus), -np.inf)
        for shard in corpus.shards() if corpus.bundles else ():
            numbers, values = self.core_.logs(self.raw_params_, shard)
            logs[numbers] = values
        return logs

    def posterior(self, item: Any) -> dict[str, dict[tuple[Hashable, ...], float]]:
        """The expected count of each table entry in an item, by table and key."""
        self._require_fit()
        corpus = StoryCorpus(self._story, [item], self.core_.support)
        try:
            stats = self.core_.expect(self.raw_params_, corpus.shards()[0], How())
        except ImpossibleItem as error:
            error.call_it(corpus.name(0))
            raise
        return self.core_.counts_by_key(stats)

    def best(self, item: Any) -> Derivation:
        """The most probable derivation of an item."""
        self._require_fit()
        return derive(self.core_, self._story, self.raw_params_, item, "hard")

    def sample_hidden(self, item: Any, random_state: int = 0) -> Derivation:
        """A derivation of an item, drawn from the posterior."""
        self._require_fit()
        return derive(self.core_, self._story, self.raw_params_, item, "sample", random_state)

    def generate(self, n: int = 1, random_state: int = 0) -> list[Any]:
        """New items, each of the shape of a random training item.

        Works for stories that do not look at the observed values; values that are conditions only
        (such as the source sentence of an alignment) are kept from the training item.
        """
        self._require_fit()
        if not getattr(self, "_examples", None):
            raise StoryError(
                "this model was loaded from a file and has no training items to take shapes from",
                "fit it, or generate before saving",
            )
        forward = Forward(self.core_, self._story, self.raw_params_, self._examples)
        rng = np.random.default_rng(random_state)
        return [forward.draw(rng) for _ in range(n)]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the learned tables to a file (not the story: that is code)."""
        self._require_fit()
        arrays, meta = packed(self.core_, self.raw_params_)
        store.write(path, KIND, arrays, meta, self.signature_)

    @classmethod
    def load(cls, path: str | PathLike[str], story: Callable[..., Any]) -> StoryModel:
        """Read tables that `save` wrote, for the same story."""
        return cls.restore(store.read(path, KIND), story=story)

    @classmethod
    def restore(cls, stored: store.Stored, story: Callable[..., Any] | None = None) -> StoryModel:
        """A model from what a file holds (see `softcount.load`)."""
        if story is None:
            raise StoreError(
                f"the file holds the tables of story {stored.meta.get('name')!r}, but not its code",
                "pass the story: softcount.load(path, story=…)",
            )
        model = cls(story)
        model.core_, model.raw_params_ = unpacked(stored, story_of(story))
        model.signature_ = stored.signature
        return model
