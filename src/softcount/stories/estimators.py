"""`StoryModel`: a user's story, learned from data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np

from softcount.core import store
from softcount.core.errors import ImpossibleItem, LearnerError, StoreError, StoryError
from softcount.core.estimator import Estimator
from softcount.core.parameters import (
    KW_ONLY,
    Annotated,
    Doc,
    LearningParameters,
    check_number,
    dataclass,
    no_mode,
)
from softcount.core.types import EStep, FloatArray
from softcount.stories.core import Derivation, ForwardSampler, StoryCore, derive
from softcount.stories.data import StoryCorpus
from softcount.stories.language import Story, find_story, table
from softcount.stories.tables import TablesView, pack_tables, unpack_tables

KIND = "story"
_KEPT_SHAPES = 10_000  # training items kept for generate()


@dataclass(eq=False, repr=False)
class StoryParameters(LearningParameters):
    """The parameters of a story's model, declared."""

    story: Annotated[Callable[..., Any], Doc("A generator function decorated with @story.")]
    _: KW_ONLY
    init: Annotated[Any, Doc("random, uniform, or start values as nested mappings.")] = "random"
    prior: Annotated[
        float | Mapping[str, float], Doc("Dirichlet concentration, also by table; 1 is flat.")
    ] = 1.0
    smoothing: Annotated[
        float | Mapping[str, float] | None, Doc("Instead: add so much to every count.")
    ] = None
    frozen: Annotated[Iterable[str], Doc("Tables that keep their start values.")] = ()


class StoryModel(StoryParameters, Estimator):
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

    def _after_fit(self, corpus: StoryCorpus) -> None:
        """Some items, whose shapes `generate` takes."""
        self._examples = corpus.items[:_KEPT_SHAPES]

    @property
    def _story(self) -> Story:
        return find_story(self.story)

    @property
    def _display_name(self) -> str:
        return f"StoryModel {self._story.name}"

    def _lacks_prior(self) -> str:
        return ""  # it is flat, unless it is given

    def _lacks_mode(self) -> str:
        return no_mode(self._prior())

    def _bind(self, data: Iterable[Any]) -> tuple[StoryCore, StoryCorpus]:
        """Trace and compile the data; gives what the loop works with."""
        story, prior = self._story, self._prior()
        corpus = StoryCorpus(story, list(data))
        core = StoryCore(story.name, corpus.support, corpus.tables, prior, tuple(self.frozen))
        return core, corpus

    def _bind_more(self, core: StoryCore, data: Iterable[Any]) -> StoryCorpus:
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

    def _start_values(self, core: StoryCore, corpus: StoryCorpus, init: Any) -> Any:
        return core.start(init)

    @property
    def params_(self) -> TablesView:
        """The learned tables: ``params_["flip"]["A"]["H"]``."""
        self._require_fit()
        return self.core_.view_params(self.raw_params_)

    def score(self, items: Iterable[Any]) -> FloatArray:
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
            stats = self.core_.expect(self.raw_params_, corpus.shards()[0], EStep())
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
        forward = ForwardSampler(self.core_, self._story, self.raw_params_, self._examples)
        rng = np.random.default_rng(random_state)
        return [forward.draw(rng) for _ in range(n)]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the learned tables to a file (not the story: that is code)."""
        self._require_fit()
        arrays, facts = pack_tables(self.core_.support, self.raw_params_)
        store.write(path, KIND, arrays, {"name": self.core_.name, **facts}, self.signature_)

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
        support, model.raw_params_ = unpack_tables(stored)
        tables = {name: table(name) for name in support.tables}
        model.core_ = StoryCore(find_story(story).name, support, tables)
        model.signature_ = stored.signature
        return model
