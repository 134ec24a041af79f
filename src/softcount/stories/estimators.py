"""`StoryModel`: the estimator for a model that the user wrote as a story."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from os import PathLike
from typing import Any

import numpy as np

from softcount.core import store
from softcount.core.errors import ImpossibleItem, LearnerError, StoreError, StoryError
from softcount.core.estimator import Estimator
from softcount.core.fit import open_session
from softcount.core.parameters import (
    KW_ONLY,
    Annotated,
    Doc,
    LearningParameters,
    check_number,
    dataclass,
    no_mode,
)
from softcount.core.posteriors import Posteriors, expect
from softcount.core.types import EStep, FloatArray, Params, Stats
from softcount.stories.core import Derivation, ForwardSampler, StoryCore, derive
from softcount.stories.data import AnyStoryCorpus, StoryCorpus, compile_in_parts, compile_items
from softcount.stories.derivations import (
    MOST,
    count_given,
    lay_out,
    lay_out_events,
    list_all,
    name_item,
)
from softcount.stories.language import Story, find_story, table
from softcount.stories.tables import TablesView, pack_tables, unpack_tables
from softcount.text.items import Items

KIND = "story"
_KEPT_SHAPES = 10_000  # training items kept for generate()


@dataclass(eq=False, repr=False)
class StoryParameters(LearningParameters):
    """Declared parameters of `StoryModel`."""

    story: Annotated[Callable[..., Any], Doc("A generator function decorated with @story.")]
    _: KW_ONLY
    init: Annotated[
        Any, Doc("Initial parameters: random, uniform, or values as nested mappings.")
    ] = "random"
    prior: Annotated[
        float | Mapping[str, float],
        Doc("Dirichlet concentration, one for all tables or by table; 1 is flat."),
    ] = 1.0
    smoothing: Annotated[
        float | Mapping[str, float] | None, Doc("Add this to every count (instead of prior).")
    ] = None
    frozen: Annotated[Iterable[str], Doc("Tables that keep their initial values.")] = ()


class StoryModel(StoryParameters, Estimator):
    """A model that the user wrote down as a story.

    ``learner``       the learner (default `EM()`)
    ``engine``        where the work is done (default: threads on this machine)
    ``init``          'random', 'uniform' (1/V everywhere), or initial values as nested mappings
    ``prior``         Dirichlet concentration of every table, or a mapping by table; 1 is flat
    ``smoothing``     add this to every count: the same as ``prior = 1 + smoothing``
    ``frozen``        names of tables that keep their initial values
    ``random_state``  seed; results are bit-identical for the same seed and any number of threads

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

    def _after_fit(self, corpus: AnyStoryCorpus) -> None:
        """Keep some items: `generate` makes new ones of the same shapes."""
        self._examples = corpus.items[:_KEPT_SHAPES]

    @property
    def _story(self) -> Story:
        return find_story(self.story)

    @property
    def _display_name(self) -> str:
        return f"StoryModel {self._story.name}"

    def _lacks_prior(self) -> str:
        return ""  # a story always has a prior: a flat one unless another is given

    def _lacks_mode(self) -> str:
        return no_mode(self._prior())

    def _bind(self, data: Iterable[Any]) -> tuple[StoryCore, AnyStoryCorpus]:
        """Trace and compile the data; return the core and the corpus for the loop."""
        story, prior = self._story, self._prior()
        if isinstance(data, Items):
            self._check_settings()  # before all are traced
        corpus = compile_items(story, _sequence(data))
        core = StoryCore(story.name, corpus.support, corpus.tables, prior, tuple(self.frozen))
        return core, corpus

    def _bind_more(self, core: StoryCore, data: Iterable[Any]) -> AnyStoryCorpus:
        """Compile further data for the tables of a fitted core."""
        return compile_items(self._story, _sequence(data), core.support)

    def _prior(self) -> float | Mapping[str, float]:
        setting = self.prior if self.smoothing is None else self.smoothing
        above = self.smoothing is None
        for amount in setting.values() if isinstance(setting, Mapping) else (setting,):
            check_number("prior" if above else "smoothing", amount, "1 is flat", above=above)
        if self.smoothing is None:
            return self.prior
        if self.prior != 1.0:
            raise LearnerError(
                "prior and smoothing are both given, but they set the same thing",
                "give only one of them: smoothing=a is the same as prior=1+a",
            )
        if isinstance(self.smoothing, Mapping):
            return {table: 1.0 + amount for table, amount in self.smoothing.items()}
        return 1.0 + self.smoothing

    def _start_values(self, core: StoryCore, corpus: AnyStoryCorpus, init: Any) -> Any:
        return core.start(init)

    def _read_features(self, core: StoryCore, table: str, given: Any) -> FloatArray:
        """Return features as given by key, or by a function of a key's parts, (entries,)."""
        if not isinstance(given, Mapping) and not callable(given):
            return super()._read_features(core, table, given)
        keys = core.support.tables[table].entry_keys()
        if callable(given):
            return np.array([float(given(*key)) for key in keys])
        by_key = {key if isinstance(key, tuple) else (key,): value for key, value in given.items()}
        unknown = set(by_key) - set(keys)
        if unknown:
            raise LearnerError(
                f"features name {next(iter(unknown))!r}, which is no entry of the table {table!r}",
                "give its key: the condition, then the outcome",
            )
        return np.array([float(by_key.get(key, 0.0)) for key in keys])

    @property
    def params_(self) -> TablesView:
        """The learned tables: ``params_["flip"]["A"]["H"]``."""
        self._require_fit()
        return self.core_.view_params(self.raw_params_)

    # step by step
    def e_step(
        self, data: Iterable[Any], params: Any = None, *, by: str | None = None, **known: Any
    ) -> Posteriors:
        """Do the E-step by itself: the posterior of every derivation of every item.

        ``by``  "derivations": one column for each, named by its hidden values; "events": the
                expected count of each table entry in each item, which any number of derivations
                allows. None: derivations, if no item has more than 200

        For the rest see `softcount.core.estimator.Estimator.e_step`.

        >>> from softcount import story, table
        >>> which, flip = table("which"), table("flip")
        >>> @story
        ... def coins(tosses):
        ...     for z in "AB":
        ...         yield which[z], *(flip[z, x] for x in tosses)
        >>> start = {
        ...     "which": {"A": 0.3, "B": 0.7},
        ...     "flip": {"A": {"H": 0.3, "T": 0.7}, "B": {"H": 0.6, "T": 0.4}},
        ... }
        >>> StoryModel(coins).e_step(["HHH", "TTT"], start)
        item       A       B
        HHH   0.0508  0.9492
        TTT   0.6967  0.3033
        """
        if by not in (None, "derivations", "events"):
            raise LearnerError(f"by={by!r} is unknown", "choose 'derivations' or 'events'")
        model: Any = copy(self)
        model._by = by
        found: Posteriors = super(StoryModel, model).e_step(data, params, **known)
        return found

    _by: str | None = None

    def _infer(
        self, core: StoryCore, corpus: AnyStoryCorpus, params: Params, how: EStep
    ) -> Posteriors:
        with open_session(core, corpus, self.engine) as session:
            stats, _ = expect(core, len(corpus), params, how, session)
        items = list(corpus.items)
        listed = None
        if self._by != "events":
            listed = list_all(self._story, items, None if self._by is None else MOST)
        if listed is None and self._by == "derivations":
            raise LearnerError(
                f"an item has more than {MOST} derivations", "use by='events': their counts"
            )
        values, columns = (
            lay_out_events(core, self._story, items, params, how)
            if listed is None
            else lay_out(core, listed, params, how)
        )
        return Posteriors(
            values,
            columns,
            {"item": [name_item(item) for item in items]},
            "event" if listed is None else "hidden value",
            np.arange(len(items)),
            stats=stats,
            params=params,
            independent=listed is not None,
        )

    def _count_given(
        self, core: StoryCore, corpus: AnyStoryCorpus, params: Params, values: Any, posteriors: Any
    ) -> tuple[Stats, Params]:
        listed = list_all(self._story, list(corpus.items))
        if listed is None:
            raise LearnerError(
                f"an item has more than {MOST} derivations: their posteriors cannot be given",
                "give m_step what e_step returned, unchanged",
            )
        if getattr(posteriors, "of", "hidden value") != "hidden value":
            raise LearnerError(
                "these posteriors are expected counts of events", "use by='derivations'"
            )
        even = {name: family.uniform() for name, family in core.families.items()}
        return count_given(core, listed, {**even, **params}, values), {}

    def score(self, items: Iterable[Any]) -> FloatArray:
        """Return the log-likelihood of each item, (items,); -inf for impossible ones."""
        self._require_fit()
        items = _sequence(items)
        logs = np.full(len(items), -np.inf)
        for part in compile_in_parts(self._story, items, self.core_.support):
            if part.bundles:
                for numbers, values in self._map(self.core_.logs, part):
                    logs[numbers] = values
        return logs

    def posterior(self, item: Any) -> dict[str, dict[tuple[Hashable, ...], float]]:
        """Return the expected count of each table entry in an item, by table and key."""
        self._require_fit()
        corpus = StoryCorpus(self._story, [item], self.core_.support)
        try:
            stats = self.core_.expect(self.raw_params_, corpus.shards()[0], EStep())
        except ImpossibleItem as error:
            error.call_it(corpus.name(0))
            raise
        return self.core_.counts_by_key(stats)

    def best(self, item: Any) -> Derivation:
        """Return the most probable derivation of an item."""
        self._require_fit()
        return derive(self.core_, self._story, self.raw_params_, item, "hard")

    def sample_hidden(  # type: ignore[override]  # whole derivations, one item at a time
        self, item: Any, random_state: int = 0
    ) -> Derivation:
        """Draw a derivation of an item from the posterior."""
        self._require_fit()
        return derive(self.core_, self._story, self.raw_params_, item, "sample", random_state)

    def generate(self, n: int = 1, random_state: int = 0) -> list[Any]:
        """Draw ``n`` new items, each with the shape of a random training item.

        Works for stories that do not inspect the observed values. Values that the story only
        conditions on (such as the source sentence of an alignment) are copied from the training
        item.
        """
        self._require_fit()
        if not getattr(self, "_examples", None):
            raise StoryError(
                "this model was loaded from a file and has no training items to take shapes from",
                "fit the model again, or call generate before you save it",
            )
        forward = ForwardSampler(self.core_, self._story, self.raw_params_, self._examples)
        rng = np.random.default_rng(random_state)
        return [forward.draw(rng) for _ in range(n)]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the learned tables to a file (not the story, which is code)."""
        self._require_fit()
        arrays, facts = pack_tables(self.core_.support, self.raw_params_)
        store.write(path, KIND, arrays, {"name": self.core_.name, **facts}, self.signature_)

    @classmethod
    def load(cls, path: str | PathLike[str], story: Callable[..., Any]) -> StoryModel:
        """Read tables that `save` wrote; ``story`` is the story they were learned with."""
        return cls.restore(store.read(path, KIND), story=story)

    @classmethod
    def restore(cls, stored: store.Stored, story: Callable[..., Any] | None = None) -> StoryModel:
        """Make a model from the contents of a file (see `softcount.load`)."""
        if story is None:
            raise StoreError(
                f"the file holds the tables of story {stored.meta.get('name')!r}, but not its code",
                "pass the story: softcount.load(path, story=…)",
            )
        model = cls(story)
        support, model.raw_params_ = unpack_tables(stored)
        tables = {name: table(name) for name in support.tables}
        model.core_ = StoryCore(find_story(story).name, support, tables)
        model.signature_ = stored.signature
        return model


def _sequence(items: Iterable[Any]) -> Sequence[Any]:
    return items if isinstance(items, Items) else list(items)
