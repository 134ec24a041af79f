"""What every model offers its users: `fit`, and what is there after it.

Nothing here imports scikit-learn, which takes longer than some commands: `softcount.models.base`
has the estimators that are its, too.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, Self, TypedDict, Unpack

import numpy as np

from softcount import interrupt
from softcount.bounds import MAX_RUNS, MAX_SEED
from softcount.errors import ImpossibleItem, LearnerError, shown
from softcount.estimate import Estimate, announce, estimate
from softcount.fit import Corpus, Model, fit
from softcount.models.refusals import Abilities, check_learner
from softcount.models.settings import check_whole
from softcount.theory import Decomposition, decompose
from softcount.types import Fit, State, Trace
from softcount.verdict import Verdict

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


class NamingCorpus(Corpus, Protocol):
    """A corpus that can say which item is meant."""

    def name(self, number: int) -> str:
        """An item as messages show it."""


class FitOptions(TypedDict, total=False):
    """What any model's ``fit`` may be told beside its data.

    ``development``  data by whose likelihood the best of several runs is chosen
    ``on_step``      called with the `State` after every step; returning True stops the run
    ``keep_params``  keep the parameters of every step in ``trace_``
    ``theory``       record Q and the lower bound of every step in ``trace_``
    """

    development: Any
    on_step: Sequence[Callable[[State], object]] | Callable[[State], object]
    keep_params: bool
    theory: bool


@contextmanager
def all_or_nothing(model: object) -> Iterator[None]:
    """Whatever goes wrong inside leaves the model as it was before."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__.clear()
        model.__dict__.update(before)
        raise


@contextmanager
def naming(corpus: NamingCorpus) -> Iterator[None]:
    """An item of probability zero is called by its name."""
    try:
        yield
    except ImpossibleItem as error:
        if error.item is not None:
            error.call_it(corpus.name(error.item))
        raise


class Learnable(Abilities):
    """A model with its data still to come.

    A subclass offers `bind` and `bind_more` (from data to what the loop works with) and
    `start_values`.
    After `fit`: ``params_``, ``trace_``, ``verdict_``, ``signature_`` and all of it as ``fit_``.
    """

    learner: Learner | None
    engine: Engine | None
    random_state: Any
    init: Any
    scouts: int = 0
    """So many starts are tried by a few quick passes, and the best is gone on with."""
    fit_: Fit
    core_: Any
    signature_: str
    """One line that makes the run citable."""

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of whatever is in its pipelines and searches."""
        from sklearn.base import BaseEstimator  # whoever asks has it already

        return BaseEstimator().__sklearn_tags__()

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The names of its settings, as scikit-learn asks for them."""
        names = inspect.signature(cls.__init__).parameters
        return sorted(name for name in names if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Its settings by name."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change settings; what was learned stays until it is fitted again."""
        for name, value in params.items():
            if name not in self._get_param_names():
                raise ValueError(f"{type(self).__name__} has no setting {name!r}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = inspect.signature(type(self).__init__).parameters
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not usual[name].default and value != usual[name].default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    @abstractmethod
    def bind(self, data: Any) -> tuple[Model, NamingCorpus]:
        """The model's core and its corpus, made from data as users give them."""

    @abstractmethod
    def start_values(self, core: Any, corpus: Any, init: Any) -> Any:
        """What the loop takes as its start: parameters, or a function of random numbers."""

    def fit(self, data: Any, init: Any = None, **options: Unpack[FitOptions]) -> Self:
        """Learn from data; ``init``: start values, instead of what the model was made with.

        For the other options see `softcount.models.base.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self.bind(data)
            return self.learn(core, corpus, init, **options)

    @interrupt.graceful()
    def learn(self, core: Any, corpus: Any, init: Any, **options: Unpack[FitOptions]) -> Self:
        """Learn from a corpus that is bound already."""
        self._check_settings()
        announce(self.foreseen(core, corpus), options.get("on_step", ()))
        development = options.get("development")
        options["development"] = None if development is None else self.bind_more(core, development)
        required = self.learner.begins if self.learner else None
        start = self.start_values(core, corpus, required or (self.init if init is None else init))
        scouts = self.n_scouts(corpus, start)
        self.keep(core, corpus, self._run(core, corpus, self.learner, start, scouts, options))
        return self

    def keeps_local(self, corpus: Any) -> bool:
        """Whether parameters that belong to items are to be kept; few models have such."""
        return False

    def estimate(self, data: Any, *more: Any, **given: Any) -> Estimate:
        """What `fit` will need of these data: bytes, and work a step. Nothing is learned.

        Further arguments are those of `fit` that are data. See `softcount.estimate.Estimate`.
        """
        other = copy(self)
        other._check_settings()
        return other.foreseen(*other.bind(data, *more, **given))

    def foreseen(self, core: Any, corpus: Any) -> Estimate:
        """What learning from a corpus that is bound will need."""
        return estimate(core, corpus, self.learner)

    def n_scouts(self, corpus: Any, start: Any) -> int:
        """How many scouts to send."""
        return self.scouts

    def _run(
        self,
        core: Any,
        corpus: Any,
        learner: Learner | None,
        start: Any,
        scouts: int,
        options: FitOptions,
    ) -> Fit:
        """The loop."""
        seed = self._seed()
        with naming(corpus):
            return fit(
                core,
                corpus,
                learner,
                self.engine,
                init=start,
                seed=seed,
                scouts=scouts,
                keep_local=self.keeps_local(corpus),
                **options,
            )

    def keep(self, core: Any, corpus: Any, found: Fit) -> None:
        """Take what was found for this model's own."""
        self.core_ = core
        self.fit_ = found
        self.raw_params_ = found.params
        self.signature_ = found.signature
        self.remember(corpus)

    def _check_settings(self) -> None:
        """Complain of settings that no learning could make sense of."""
        self._check_words()
        hint = "0: no scouts, every start is gone on with"
        check_whole("scouts", self.scouts, 0, hint, MAX_RUNS)

    def _check_words(self) -> None:
        """Complain of what is no learner, or no engine."""
        if self.learner is not None and not hasattr(self.learner, "schedule"):
            raise LearnerError(f"learner={self.learner!r} is no learner", "give one, such as EM()")
        if self.engine is not None and not hasattr(self.engine, "open"):
            raise LearnerError(f"engine={self.engine!r} is no engine", "give one, such as Local()")
        check_learner(self)

    def remember(self, corpus: Any) -> None:
        """Keep of the data what later methods need; nothing, unless a model says otherwise."""

    @abstractmethod
    def bind_more(self, core: Any, data: Any) -> Corpus:
        """A corpus of further data for a core that exists already."""

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            check_whole("random_state", self.random_state, 0, most=MAX_SEED)
            return int(self.random_state)
        rng: Any = self.random_state or np.random.default_rng()
        if not hasattr(rng, "integers") and not hasattr(rng, "randint"):
            raise LearnerError(
                f"random_state={shown(rng)}: cannot draw from it", "give a whole number, or None"
            )
        return int(rng.integers(2**31) if hasattr(rng, "integers") else rng.randint(2**31))

    def _require_fit(self) -> None:
        if not hasattr(self, "raw_params_"):
            from sklearn.exceptions import NotFittedError  # whoever looks for it has it already

            raise NotFittedError(f"this {type(self).__name__} has not been fitted: call fit first")

    @property
    def trace_(self) -> Trace:
        """The best run, step by step, the start included."""
        return self._found().trace

    @property
    def verdict_(self) -> Verdict:
        """How the best run ended, as a sentence."""
        return self._found().verdict

    def _found(self) -> Fit:
        self._require_fit()
        if not hasattr(self, "fit_"):
            raise AttributeError(
                "there is no trace: the model was loaded from a file, or learned by partial_fit"
            )
        return self.fit_

    def decompose(self, data: Any, params: Any, at: Any = None, **known: Any) -> Decomposition:
        """Why EM climbs: log-likelihood = Q + H + KL at ``params``, seen from ``at``.

        Parameters as ``params_`` shows them, as a trace keeps them, or as a start is given.

        ``known``  what `fit` was told of the items beside the data: labels, links, tags, weights.
                   Then the data must be those learned from

        See `softcount.decompose`.
        """
        model, core, corpus = self._bound(data, known)
        here = model.own_params(core, corpus, params)
        there = None if at is None else model.own_params(core, corpus, at)
        with naming(corpus):
            return decompose(core, corpus, here, there, self.engine)

    def _bound(self, data: Any, known: dict[str, Any]) -> tuple[Self, Any, Any]:
        """A model, its core and a corpus of these data: what is known of items is bound anew."""
        if hasattr(self, "core_") and not known:
            return self, self.core_, self.bind_more(self.core_, data)
        model = copy(self)  # what it learns of the data by binding them is not for this one
        return model, *model.bind(data, **known)

    def own_params(self, core: Any, corpus: Any, given: Any) -> Any:
        """Parameters as users have them, as arrays."""
        return core.params(given)
