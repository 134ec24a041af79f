"""What users call: estimators with scikit-learn's contract, which learn by the loop.

Nothing here imports scikit-learn, which takes longer than some commands do; the few things that
are its own (tags, its error for models that are not fitted) are fetched when they are asked for.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, Unpack

import numpy as np

from softcount.core import interrupt
from softcount.core.bounds import MAX_SEED
from softcount.core.errors import ImpossibleItem, LearnerError, ParameterError, brief
from softcount.core.estimate import Estimate, announce, estimate
from softcount.core.fit import fit
from softcount.core.model import Corpus, Model, NamingCorpus
from softcount.core.parameters import check_parameters, check_whole
from softcount.core.theory import Decomposition, decompose
from softcount.core.types import Fit, Params, State, Trace
from softcount.core.verdict import Verdict
from softcount.kernels.threads import usable_cpus
from softcount.learners.base import Learner
from softcount.learners.named import EM
from softcount.learners.names import make_learner

if TYPE_CHECKING:
    from softcount.engines.base import Engine

# Parameters that other libraries (or older versions) call by another name.

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    theirs: ours
    for ours, names in {
        ("n_components", "n_states", "n_topics", "n_senses", "n_clusters"): (
            "n_clusters n_topics n_states n_classes n_senses n_mixtures num_topics num_states "
            "num_clusters k K n_hidden n_symbols n_nonterminals"
        ),
        ("max_iter",): (
            "n_iter num_iter iterations n_iterations max_iterations epochs max_epochs n_epochs "
            "passes sweeps rounds max_rounds steps"
        ),
        ("n_init",): "chains n_chains n_restarts restarts n_starts",
        ("tol",): "tolerance eps epsilon thresh",
        ("random_state",): "seed random_seed rng",
        ("smoothing", "prior", "concentration"): (
            "alpha doc_topic_prior doc_prior pseudocount laplace"
        ),
        ("smoothing", "prior"): "beta eta topic_word_prior word_prior",
        ("concentration",): "weight_concentration_prior",
        ("engine",): "n_jobs n_threads num_threads threads workers",
        ("init",): "init_params start weights_init means_init",
        ("l2",): "regularisation regularization C penalty",
        ("short_runs",): "scouts",
        ("covariance",): "covariance_type",
        ("floor",): "reg_covar",
        ("learner",): "algorithm method",
        ("dates",): "times",
        ("seed_words",): "seeds",
        ("frozen_topics",): "frozen",
    }.items()
    for theirs in names.split()
}
"""What to look for instead: the first of these that an estimator has is named."""

HINTS = {"engine": "engine=Local(threads=4) works in so many threads; by default all are used"}


class SklearnContract:
    """Parameters, `clone`, `repr`, tags: what scikit-learn asks of an estimator.

    Parameters are the arguments of ``__init__``, which keeps them as they are: those of a dataclass
    are its fields. `clone`, pipelines and searches then work, ``learner__max_iter`` included.
    """

    def __new__(cls, *args: Any, **given: Any) -> Self:
        for name in given:
            if name not in cls._get_param_names():
                raise _unknown_parameter(cls, name)
        return super().__new__(cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The names of the parameters, as scikit-learn asks for them."""
        names = inspect.signature(cls.__init__).parameters
        return sorted(name for name in names if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; ``deep``: with those of parameters that have some themselves."""
        params = {name: getattr(self, name) for name in self._get_param_names()}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    inner = value.get_params()
                    params |= {f"{name}__{each}": values for each, values in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters; what was learned stays until it is fitted again."""
        nested: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for path, value in params.items():
            name, inside, rest = path.partition("__")
            if name not in self._get_param_names():
                raise _unknown_parameter(type(self), name)
            if inside:
                nested[name][rest] = value
            else:
                setattr(self, name, value)
        for name, given in nested.items():
            self._set_nested(name, given)
        return self

    def _set_nested(self, name: str, given: Mapping[str, Any]) -> None:
        """Change parameters of a parameter."""
        inner = getattr(self, name)
        if not hasattr(inner, "set_params"):
            raise ParameterError(f"{name}={brief(inner)} has no parameters of its own")
        # what it gives back counts: a learner stays as it is and gives another one
        setattr(self, name, inner.set_params(**given))

    def __repr__(self) -> str:
        declared = inspect.signature(type(self).__init__).parameters
        given = [
            f"{name}={value if isinstance(value, Learner) else repr(value)}"
            for name, value in self.get_params(deep=False).items()
            if not _is_same(value, declared[name].default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of whatever is in its pipelines and searches."""
        from sklearn.base import BaseEstimator  # whoever asks has it already

        return BaseEstimator().__sklearn_tags__()


def _unknown_parameter(cls: type[SklearnContract], name: str) -> ParameterError:
    """The error, with the name that the parameter has here, if it has one."""
    known = cls._get_param_names()
    ours = next((each for each in OTHER_NAMES.get(name, ()) if each in known), None)
    if ours is None:
        hint = f"it has {', '.join(known)}"
    else:
        hint = HINTS.get(ours, f"it is called {ours} here")
    return ParameterError(f"{cls.__name__} has no parameter {name!r}", hint)


def _is_same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    try:
        return type(value) is type(default) and bool(value == default)
    except (TypeError, ValueError):  # arrays, which compare entry by entry
        return False


class FitOptions(TypedDict, total=False):
    """Options of any model's ``fit`` beside its data.

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


class HasLearner(SklearnContract):
    """An estimator that is learned by a `Learner`.

    ``learner``  a `Learner`, or its name ("em", "hard-em", "vb", …); None: ``default_learner``
    ``max_iter``, ``tol``, ``n_init``  instead of what the learner has; None: as it has them
    """

    default_learner: ClassVar[Learner] = EM()
    """How it is learned, if nothing else is said."""
    learner: Learner | str | None = None
    max_iter: int | None = None
    tol: float | None = None
    n_init: int | None = None

    @property
    def _learner(self) -> Learner:
        """The learner, whatever was given: by name, by its hyperparameters, or not at all."""
        chosen = self.default_learner if self.learner is None else self.learner
        if isinstance(chosen, str):
            chosen = make_learner(chosen)
        if not isinstance(chosen, Learner):
            raise LearnerError(
                f"learner={brief(chosen)} is no learner", "give one, such as EM(), or its name"
            )
        given = {"max_iter": self.max_iter, "tol": self.tol, "n_init": self.n_init}
        changed = {name: value for name, value in given.items() if value is not None}
        return chosen.set_params(**changed) if changed else chosen

    @property
    def _maximises(self) -> bool:
        """Whether the learner looks for a mode; others average over a posterior, or draw."""
        return self._learner.m == "maximise"

    def _set_nested(self, name: str, given: Mapping[str, Any]) -> None:
        if name == "learner" and (self.learner is None or isinstance(self.learner, str)):
            own = self.default_learner if self.learner is None else make_learner(self.learner)
            self.learner = own.set_params(**given)
        else:
            super()._set_nested(name, given)


class Estimator(HasLearner):
    """A model with its data still to come.

    A subclass offers `_bind` and `_bind_more` (from data to what the loop works with) and
    `_start_values`, and as many of these parameters as make sense:

    ``learner``       how to learn: a `Learner`, or its name ("em", "hard-em", "vb", …); None: by
                      ``default_learner``
    ``max_iter``, ``tol``, ``n_init``  instead of what the learner has; None: as it has them
    ``init``          where learning begins
    ``short_runs``    so many starts are tried by a few quick passes, and the best is gone on with
    ``engine``        where: None: in threads on this machine
    ``random_state``  a seed, or a source of random numbers

    After `fit`: ``params_``, ``trace_``, ``verdict_``, ``signature_`` and all of it as ``fit_``.
    """

    engine: Engine | None = None
    random_state: Any = 0
    init: Any = None
    short_runs: int = 0

    fit_: Fit
    core_: Any
    raw_params_: Params
    """The learned parameters as the core has them."""
    signature_: str
    """One line that makes the run citable."""

    # what learners may ask of it
    _holds_out: ClassVar[bool] = False
    """Whether some of its data can be held out, as `TemperedEM` asks."""
    _learns_priors: ClassVar[bool] = False
    """Whether its collapsed sampler can fit the priors."""

    @property
    def _display_name(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    def _lacks_sampler(self) -> str:
        """Why `CollapsedGibbs` cannot be had; nothing, if it can."""
        return f"{self._display_name} has no collapsed sampler"

    def _solvable_starts(self) -> Collection[str]:
        """Starts that `Spectral` can solve for."""
        return ()

    def _lacks_prior(self) -> str:
        """The setting by which there is no prior for learners that average or draw; or nothing."""
        smoothing = self.get_params(deep=False).get("smoothing")
        return "smoothing=0" if isinstance(smoothing, Real) and smoothing == 0 else ""

    def _prior_hint(self) -> str:
        """What gives it one."""
        return "give smoothing above 0, for example 0.1"

    def _lacks_mode(self) -> str:
        """The setting by which there is nothing to maximise; or nothing."""
        return ""

    # what a subclass says
    @abstractmethod
    def _bind(self, data: Any) -> tuple[Model, NamingCorpus]:
        """The model's core and its corpus, made from data as users give them."""

    @abstractmethod
    def _bind_more(self, core: Any, data: Any) -> Corpus:
        """A corpus of further data for a core that exists already."""

    @abstractmethod
    def _start_values(self, core: Any, corpus: Any, init: Any) -> Any:
        """What the loop takes as its start: parameters, or a function of random numbers."""

    def _after_fit(self, corpus: Any) -> None:
        """Keep of the data what later methods need; nothing, unless a model says otherwise."""

    def _keeps_local(self, corpus: Any) -> bool:
        """Whether parameters that belong to items are to be kept; few models have such."""
        return False

    def _n_short_runs(self, corpus: Any, start: Any) -> int:
        """How many short runs choose the start."""
        return self.short_runs

    def _read_params(self, core: Any, corpus: Any, given: Any) -> Any:
        """Parameters as users have them, as arrays."""
        return core.params(given)

    # how it learns
    @property
    def _threads(self) -> int:
        """How many threads may be used: the engine's, if it says."""
        threads: int | None = getattr(self.engine, "threads", None)
        return usable_cpus() if threads is None else int(threads)

    def fit(self, data: Any, init: Any = None, **options: Unpack[FitOptions]) -> Self:
        """Learn from data; ``init``: start values, instead of what the model was made with.

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(data)
            return self._learn(core, corpus, init, **options)

    @interrupt.graceful()
    def _learn(self, core: Any, corpus: Any, init: Any, **options: Unpack[FitOptions]) -> Self:
        """Learn from a corpus that is bound already."""
        self._check_settings()
        announce(self._estimate(core, corpus), options.get("on_step", ()))
        if options.get("development") is not None:
            options["development"] = self._bind_more(core, options["development"])
        learner = self._learner
        chosen = learner.required_init or (self.init if init is None else init)
        start = self._start_values(core, corpus, chosen)
        short_runs = self._n_short_runs(corpus, start)
        self._keep_fit(core, corpus, self._run(core, corpus, learner, start, short_runs, options))
        return self

    def _run(
        self,
        core: Any,
        corpus: Any,
        learner: Learner,
        start: Any,
        short_runs: int,
        options: FitOptions,
    ) -> Fit:
        """The loop."""
        with naming(corpus):
            return fit(
                core,
                corpus,
                learner,
                self.engine,
                init=start,
                seed=self._seed(),
                short_runs=short_runs,
                keep_local=self._keeps_local(corpus),
                **options,
            )

    def _keep_fit(self, core: Any, corpus: Any, found: Fit) -> None:
        """Set the attributes of a fitted model."""
        self.core_ = core
        self.fit_ = found
        self.raw_params_ = found.params
        self.signature_ = found.signature
        self._after_fit(corpus)

    def estimate(self, data: Any, *more: Any, **given: Any) -> Estimate:
        """What `fit` will need of these data: bytes, and work for each step. Nothing is learned.

        Further arguments are those of `fit` that are data. See `softcount.core.estimate.Estimate`.
        """
        other = copy(self)
        other._check_settings()
        return other._estimate(*other._bind(data, *more, **given))

    def _estimate(self, core: Any, corpus: Any) -> Estimate:
        """What learning from a corpus that is bound will need."""
        return estimate(core, corpus, self._learner)

    def _check_settings(self) -> None:
        """Raise a `LearnerError` if a parameter is out of bounds, or does not fit the others.

        Those that are declared (`softcount.core.parameters`) are checked by their declarations; a
        subclass adds what depends on several at once.
        """
        check_parameters(self)
        self._check_learning()

    def _check_learning(self) -> None:
        """Raise a `LearnerError` unless learner and engine can be used."""
        check_learner(self)
        if self.engine is not None and not hasattr(self.engine, "open"):
            raise LearnerError(f"engine={self.engine!r} is no engine", "give one, such as Local()")

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            check_whole("random_state", self.random_state, 0, most=MAX_SEED)
            return int(self.random_state)
        rng: Any = self.random_state or np.random.default_rng()
        if not hasattr(rng, "integers") and not hasattr(rng, "randint"):
            raise LearnerError(
                f"random_state={brief(rng)}: cannot draw from it", "give a whole number, or None"
            )
        return int(rng.integers(2**31) if hasattr(rng, "integers") else rng.randint(2**31))

    # what was learned
    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "raw_params_")

    def _require_fit(self) -> None:
        if not self.__sklearn_is_fitted__():
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
            raise AttributeError("there is no trace: the model was loaded from a file")
        return self.fit_

    def decompose(self, data: Any, params: Any, at: Any = None, **known: Any) -> Decomposition:
        """Why EM climbs: log-likelihood = Q + H + KL at ``params``, seen from ``at``.

        Parameters as ``params_`` shows them, as a trace keeps them, or as a start is given.

        ``known``  what `fit` was given beside the data: labels, links, tags, weights of items.
                   Then the data must be those learned from

        See `softcount.decompose`.
        """
        model = copy(self)  # what it learns of the data by binding them is not for this one
        core: Any
        corpus: Any
        if hasattr(self, "core_") and not known:
            core, corpus = self.core_, self._bind_more(self.core_, data)
        else:
            core, corpus = model._bind(data, **known)
        here = model._read_params(core, corpus, params)
        there = None if at is None else model._read_params(core, corpus, at)
        with naming(corpus):
            return decompose(core, corpus, here, there, self.engine)


# Learners that cannot learn a model are refused at once, with something that works instead, and in
# an order in which no remedy leads to the next error.


def check_learner(model: Estimator, name: str = "") -> None:
    """Raise a `LearnerError` if the learner cannot learn this model.

    ``name``  what to call the model
    """
    name, learner = name or model._display_name, model._learner
    kind, schedule, init = type(learner).__name__, learner.schedule, learner.required_init
    lacks_prior, lacks_mode = model._lacks_prior(), model._lacks_mode()
    instead = "VariationalBayes()" if lacks_mode else "EM()"
    if schedule.collapses:
        lack = model._lacks_sampler().replace(model._display_name, name)
        if lack:
            more = f", and {model._prior_hint()}" if lacks_prior else ""
            raise LearnerError(lack, f"use Gibbs(), which samples any model{more}; or {instead}")
        if schedule.optimise and not model._learns_priors:
            raise LearnerError(
                f"optimise={schedule.optimise}: the priors of {name} cannot be learned",
                "leave it at 0; LDA can learn its priors",
            )
    if schedule.held_out and not model._holds_out:
        raise LearnerError(
            f"{name} has no held-out words, by which {kind} would end",
            f"use {instead}; the temper is chosen on held-out words for topic models alone",
        )
    if init and init not in model._solvable_starts():
        raise LearnerError(
            f"{name} cannot be solved for from moments, as {kind} would (init={init!r})",
            f"use {instead}; {kind} is for MultinomialMixture, and as a start for HMM of order 1",
        )
    if learner.m != "maximise" and lacks_prior:
        by = kind if model.learner is None else learner
        raise LearnerError(
            f"{by} needs a prior above 0, but {name} has none ({lacks_prior})",
            model._prior_hint() + ("" if lacks_mode else "; or use EM()"),
        )
    if learner.m == "maximise" and lacks_mode:
        raise LearnerError(
            f"{name} has {lacks_mode}: a prior below 1 has no mode, so there is nothing "
            "to maximise",
            "use VariationalBayes() or Gibbs(), or give 1 or more",
        )
