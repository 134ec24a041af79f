"""Base classes of estimators: scikit-learn's interface on top of the fitting loop."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, TypeVar, Unpack

import numpy as np

from softcount.core import interrupt
from softcount.core.bounds import MAX_SEED
from softcount.core.contract import SklearnContract
from softcount.core.display import NamedTables, PrintedTable
from softcount.core.errors import ImpossibleItem, LearnerError, brief
from softcount.core.estimate import Estimate, announce, estimate
from softcount.core.fit import Run, fit, open_session
from softcount.core.folder import resumable
from softcount.core.model import Corpus, Model, NamingCorpus
from softcount.core.parameters import check_parameters, check_whole
from softcount.core.posteriors import Posteriors, draw_whole, infer, update
from softcount.core.posteriors import count as count_posteriors
from softcount.core.progress import LOG, Display, phase
from softcount.core.steps import tabulate_steps
from softcount.core.theory import Decomposition, decompose
from softcount.core.types import (
    EStep,
    Fit,
    FloatArray,
    Params,
    PosteriorRows,
    State,
    Stats,
    Trace,
)
from softcount.core.verdict import Verdict
from softcount.families.base import check_start
from softcount.kernels.threads import usable_cpus
from softcount.learners.base import Learner
from softcount.learners.named import EM
from softcount.learners.names import make_learner

if TYPE_CHECKING:
    from softcount.core.tilting import Sites
    from softcount.engines.base import Engine
    from softcount.learners.projection import Projected, Report

T = TypeVar("T")


class RunOptions(TypedDict, total=False):
    """Options of the fitting loop: see `FitOptions`."""

    development: Any
    on_step: Sequence[Callable[[State], object]] | Callable[[State], object]
    keep_params: bool
    theory: bool
    folder: Any


class FitOptions(RunOptions, total=False):
    """Options of any model's ``fit`` besides its data.

    ``development``  data whose likelihood chooses the best of several runs
    ``on_step``      called with the `State` after every step; returning True stops the run
    ``keep_params``  keep the parameters of every step in ``trace_``
    ``keep_posteriors``  keep the posteriors and parameters of every step in ``trace_``: see
                     `Estimator.e_step`
    ``theory``       record Q and the lower bound of every step in ``trace_``
    ``folder``       write checkpoints to this folder, so that `softcount.resume` continues a fit
                     that was killed; a path, or a `softcount.core.folder.FitFolder`
    """

    keep_posteriors: bool


@contextmanager
def all_or_nothing(model: object) -> Iterator[None]:
    """Restore the model's attributes if an exception is raised inside the block."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__.clear()
        model.__dict__.update(before)
        raise


@contextmanager
def name_impossible_items(corpus: NamingCorpus) -> Iterator[None]:
    """Name the item in `ImpossibleItem` errors raised inside the block."""
    try:
        yield
    except ImpossibleItem as error:
        if error.item is not None:
            error.call_it(corpus.name(error.item))
        raise


class HasLearner(SklearnContract):
    """An estimator that is fitted by a `Learner`.

    ``learner``  a `Learner`, or its name ("em", "hard-em", "vb", …); None: ``default_learner``
    ``max_iter``, ``tol``, ``n_init``  override the learner's values unless None
    """

    default_learner: ClassVar[Learner] = EM()
    """The learner used if none is given."""
    learner: Learner | str | None = None
    max_iter: int | None = None
    tol: float | None = None
    n_init: int | None = None

    @property
    def _learner(self) -> Learner:
        """The learner to use, whether given as an object, by name, or not at all."""
        chosen = self.default_learner if self.learner is None else self.learner
        if isinstance(chosen, str):
            chosen = make_learner(chosen)
        if not isinstance(chosen, Learner):
            raise LearnerError(
                f"learner={brief(chosen)} is not a learner",
                "give a learner, such as EM(), or its name, such as 'em'",
            )
        given = {"max_iter": self.max_iter, "tol": self.tol, "n_init": self.n_init}
        changed = {name: value for name, value in given.items() if value is not None}
        return chosen.set_params(**changed) if changed else chosen

    @property
    def _maximises(self) -> bool:
        """Whether the learner seeks a mode; others average over a posterior, or draw."""
        return self._learner.m == "maximise"

    def _show(self, value: Any) -> str:
        return str(value) if isinstance(value, Learner) else super()._show(value)

    def _set_nested(self, name: str, given: Mapping[str, Any]) -> None:
        if name == "learner" and (self.learner is None or isinstance(self.learner, str)):
            current = self.default_learner if self.learner is None else make_learner(self.learner)
            self.learner = current.set_params(**given)
        else:
            super()._set_nested(name, given)


class Estimator(HasLearner):
    """The base class of estimators.

    A subclass defines `_bind` and `_bind_more` (from data to the core and corpus that the loop
    works with) and `_start_values`, and as many of these parameters as make sense:

    ``learner``       a `Learner`, or its name ("em", "hard-em", "vb", …); None: ``default_learner``
    ``max_iter``, ``tol``, ``n_init``  override the learner's values unless None
    ``init``          the initial parameters
    ``short_runs``    try this many starts with a few quick passes, and continue from the best
    ``engine``        where the work is done; None: in threads on this machine
    ``random_state``  a seed, or a random number generator
    ``verbose``       1: show phases and steps on stderr

    After `fit`: ``params_``, ``trace_``, ``verdict_``, ``signature_``, and all of them in ``fit_``;
    with ``constraints`` of a learner also ``constraints_``, which says what became of each.
    """

    engine: Engine | None = None
    random_state: Any = 0
    verbose: int = 0
    init: Any = None
    short_runs: int = 0

    fit_: Fit
    core_: Any
    raw_params_: Params
    """The learned parameters as arrays, in the form that the core uses."""
    signature_: str
    """One line that identifies the run, to cite it by."""
    constraints_: Report
    """What became of each constraint, if the learner has any."""

    # which learners can be used
    _holds_out: ClassVar[bool] = False
    """Whether some of its data can be held out, as `TemperedEM` requires."""
    _learns_priors: ClassVar[bool] = False
    """Whether its collapsed sampler can fit the priors."""

    @property
    def _display_name(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    def _lacks_sampler(self) -> str:
        """Return why `CollapsedGibbs` cannot be used; "" if it can."""
        return f"{self._display_name} has no collapsed sampler"

    def _solvable_starts(self) -> Collection[str]:
        """Return the values of ``init`` that `Spectral` can solve for."""
        return ()

    def _lacks_prior(self) -> str:
        """Return the setting that leaves Bayesian learners without a prior; "" if there is one."""
        smoothing = self.get_params(deep=False).get("smoothing")
        return "smoothing=0" if isinstance(smoothing, Real) and smoothing == 0 else ""

    def _prior_hint(self) -> str:
        """Return the hint that says how to give the model a prior."""
        return "give smoothing above 0, for example 0.1"

    def _lacks_mode(self) -> str:
        """Return the setting that leaves the posterior without a mode; "" if it has one."""
        return ""

    # what a subclass defines
    @abstractmethod
    def _bind(self, data: Any) -> tuple[Model, NamingCorpus]:
        """Make the model's core and its corpus from data as users give them."""

    @abstractmethod
    def _bind_more(self, core: Any, data: Any) -> Corpus:
        """Make a corpus of further data for an existing core."""

    @abstractmethod
    def _start_values(self, core: Any, corpus: Any, init: Any) -> Any:
        """Return the loop's ``init``: parameters, or a function that draws them."""

    def _after_fit(self, corpus: Any) -> None:
        """Keep whatever later methods need of the data; by default nothing."""

    def _keeps_local(self, corpus: Any) -> bool:
        """Return whether to keep parameters that belong to items; few models have such."""
        return False

    def _n_short_runs(self, corpus: Any, start: Any) -> int:
        """Return how many short runs to choose the start by."""
        return self.short_runs

    def _read_params(self, core: Any, corpus: Any, given: Any) -> Any:
        """Convert parameters as users give them to arrays."""
        return core.params(given)

    # fitting
    @property
    def _threads(self) -> int:
        """Number of threads that may be used: the engine's, if it specifies one."""
        threads: int | None = getattr(self.engine, "threads", None)
        return usable_cpus() if threads is None else int(threads)

    @resumable
    def fit(self, data: Any, init: Any = None, **options: Unpack[FitOptions]) -> Self:
        """Fit the model to data; ``init``: initial parameters, overriding the model's own ``init``.

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(data)
            return self._learn(core, corpus, init, **options)

    @interrupt.graceful()
    def _learn(self, core: Any, corpus: Any, init: Any, **options: Unpack[FitOptions]) -> Self:
        """Fit the model to a corpus made by `_bind`."""
        self._check_settings()
        watchers = options.get("on_step", ())
        watchers = [watchers] if callable(watchers) else [*watchers]
        with ExitStack() as watching:
            if self.verbose:
                display = Display(self._display_name, len(corpus))
                watchers.append(watching.enter_context(display))
            options["on_step"] = watchers
            self._fit_to(core, corpus, init, **options)
            if self.verbose:
                display.end(self.fit_.verdict)
        LOG.info("%s: %s", self.signature_, self.fit_.verdict)
        return self

    def _fit_to(self, core: Any, corpus: Any, init: Any, **options: Unpack[FitOptions]) -> None:
        announce(self._estimate(core, corpus), options["on_step"])
        if options.get("development") is not None:
            options["development"] = self._bind_more(core, options["development"])
        keep_posteriors = options.pop("keep_posteriors", False)
        if keep_posteriors:
            self._require_layout(core)
            options["keep_params"] = True
        learner = self._learner
        chosen = learner.required_init or (self.init if init is None else init)
        with phase("initial parameters"):
            start = self._start_values(core, corpus, chosen)
        short_runs = self._n_short_runs(corpus, start)
        self._keep_fit(core, corpus, self._run(core, corpus, learner, start, short_runs, options))
        if keep_posteriors:
            self._keep_posteriors(corpus)

    def _require_layout(self, core: Any) -> None:
        """Raise a `LearnerError` if the model has no posteriors that could be laid out."""
        if type(core).lay_out is Model.lay_out and type(self)._infer is Estimator._infer:
            core.lay_out({}, None, EStep())

    def _keep_posteriors(self, corpus: Any) -> None:
        """Add the posteriors of every step to the trace."""
        found = [
            self._infer(self.core_, corpus, state.params, self._e_options(state.temper))
            for state in self.fit_.trace
        ]
        trace = replace(self.fit_.trace, posteriors=tuple(found))
        self.fit_ = replace(self.fit_, trace=trace)

    def _run(
        self,
        core: Any,
        corpus: Any,
        learner: Learner,
        start: Any,
        short_runs: int,
        options: RunOptions,
    ) -> Fit:
        """Run the fitting loop."""
        if learner.constraints:
            learner = replace(learner, schedule=self._plan(core, corpus, learner))
        with name_impossible_items(corpus):
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

    def _plan(self, core: Any, corpus: Any, learner: Learner) -> Projected:
        """Return the schedule of learning under the learner's constraints."""
        from softcount.learners.projection import Plan  # it compiles a kernel

        return Plan.of(
            learner.constraints,
            self._display_name,
            core.families,
            lambda: self._sites(core, corpus),
            lambda table, given: self._read_features(core, table, given),
        )

    def _sites(self, core: Any, corpus: Any) -> Sites:
        """Return the hidden values of a corpus, as constraints speak of them."""
        raise LearnerError(
            f"the hidden values of {self._display_name} cannot be spoken of one by one",
            "constrain its events: Events(table, features, at_least=…), which any model has",
        )

    def _read_features(self, core: Any, table: str, given: Any) -> FloatArray:
        """Return features of a table's entries as an array of its shape."""
        shape = core.families[table].param_shape
        features = np.asarray(given, dtype=float)
        if features.shape != shape or not np.isfinite(features).all():
            raise LearnerError(
                f"features of the table {table!r} have the shape {features.shape}, not {shape}",
                "give a number for each of its entries",
            )
        return features

    def _keep_fit(self, core: Any, corpus: Any, found: Fit) -> None:
        """Set the attributes of a fitted model."""
        if self._learner.constraints:
            self.constraints_ = self._report_constraints(core, corpus, found)
        self.core_ = core
        self.fit_ = found
        self.raw_params_ = found.params
        self.signature_ = found.signature
        self._after_fit(corpus)

    def _report_constraints(self, core: Any, corpus: Any, found: Fit) -> Report:
        """Return what became of each constraint at the learned parameters."""
        from softcount.learners.projection import report

        schedule = self._plan(core, corpus, self._learner)
        learner = replace(self._learner, schedule=schedule)
        with open_session(core, corpus, self.engine) as session:
            return report(Run(core, session, learner, seed=0, run=0), schedule, found.params)

    def estimate(self, data: Any, *more: Any, **given: Any) -> Estimate:
        """Estimate memory and work per step that `fit` needs for these data, without fitting.

        Further arguments are the other data arguments of `fit`. See
        `softcount.core.estimate.Estimate`.
        """
        other = copy(self)
        other._check_settings()
        return other._estimate(*other._bind(data, *more, **given))

    def _estimate(self, core: Any, corpus: Any) -> Estimate:
        """Estimate what fitting to a corpus made by `_bind` needs."""
        return estimate(core, corpus, self._learner)

    def _check_settings(self) -> None:
        """Raise a `LearnerError` if a parameter is out of bounds, or inconsistent with others.

        Declared parameters (`softcount.core.parameters`) are checked by their declarations; a
        subclass adds checks that involve several parameters.
        """
        check_parameters(self)
        self._check_learning()

    def _check_learning(self) -> None:
        """Raise a `LearnerError` unless learner and engine can be used."""
        check_learner(self)
        if self.engine is not None and not hasattr(self.engine, "open"):
            raise LearnerError(
                f"engine={self.engine!r} is not an engine", "give one, such as Local()"
            )

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            check_whole("random_state", self.random_state, 0, most=MAX_SEED)
            return int(self.random_state)
        rng: Any = self.random_state or np.random.default_rng()
        if not hasattr(rng, "integers") and not hasattr(rng, "randint"):
            raise LearnerError(
                f"random_state={brief(rng)}: neither a seed nor a random number generator",
                "give a whole number, or None",
            )
        return int(rng.integers(2**31) if hasattr(rng, "integers") else rng.randint(2**31))

    # inference
    def _map(
        self,
        function: Callable[..., T],
        corpus: NamingCorpus,
        how: EStep | None = None,
        params: Params | None = None,
    ) -> Iterator[T]:
        """Yield what a function returns for each shard of a corpus, computed on the engine.

        Shards come in order and are not kept, nor are results, so that a corpus on disk needs
        little memory.

        ``function``  (params, shard, how, local) → anything: a method of the core, as `expect` is
        ``params``    None: those that were learned
        """
        with (
            name_impossible_items(corpus),
            open_session(self.core_, corpus, self.engine) as session,
        ):
            used = self.raw_params_ if params is None else params
            yield from session.map(function, used, how or EStep())

    # step by step
    def e_step(self, data: Any, params: Any = None, **known: Any) -> Posteriors:
        """Do the E-step by itself: the posteriors of all hidden values at given parameters.

        ``params``  parameters as in ``params_``, as kept in a trace, or as given to ``init``; the
                    model need not have been fitted. None: those that were learned
        ``known``   what `fit` was given besides the data: labels, links, tags, sample weights. The
                    data are then taken as training data

        The result prints as a table, with one row per hidden value and one column per value it may
        have; ``to_frame()`` makes a data frame of it. With ``HardEM`` the best values have 1.
        `m_step` makes parameters of it.
        """
        model, core, corpus = self._bind_again(data, known)
        if params is None:
            self._require_fit()
            raw = self._learned_params(corpus)
        else:
            given = model._read_start(core, corpus, params)
            of_families = {name: given[name] for name in core.families}
            raw = {**given, **check_start(core.families, of_families)}
        with name_impossible_items(corpus):
            return model._infer(core, corpus, raw, self._e_options())

    def m_step(self, data: Any, posteriors: Any = None, **known: Any) -> Any:
        """Do the M-step by itself: the parameters that posteriors lead to, as in ``params_``.

        ``posteriors``  what `e_step` returned for these data; or other posteriors of the same
                        layout, where expected counts follow from them (mixtures, topics, stories,
                        Model 1): an array, a data frame, or `Posteriors.replaced`. None: those at
                        the learned parameters
        ``known``       what `fit` was given besides the data

        ``e_step`` and ``m_step`` by turns are what `fit` does, and the states of its trace.
        """
        if posteriors is None:
            posteriors = self.e_step(data, **known)
        model, core, corpus = self._bind_again(data, known)
        if isinstance(posteriors, Posteriors):
            old, stats, local = posteriors.params, posteriors.stats, posteriors.local
        else:
            old, stats, local = {}, None, {}
            if hasattr(self, "raw_params_") and core is getattr(self, "core_", None):
                old = self._learned_params(corpus)
        if stats is None:
            values = getattr(posteriors, "values", posteriors)
            stats, local = model._count_given(core, corpus, old, values, posteriors)
        new = update(core, stats, self._learner.m, old, self._seed())
        return model._show_params(core, {**new, **local})

    def steps(self) -> PrintedTable:
        """Return the run as textbooks print it: a row per step, with parameters and posteriors.

        These are there if `fit` was asked to keep them (``keep_params``, ``keep_posteriors``), and
        if they are few; of posteriors the last column is left out. Prints as a table.
        """
        trace = self.trace_
        shown = []
        if trace.keeps_params:
            shown = [self._show_params(self.core_, params) for params in trace.params]
        return tabulate_steps(trace, shown)

    def sample_hidden(
        self, data: Any, n: int = 1, random_state: Any = 0, params: Any = None, **known: Any
    ) -> Any:
        """Draw the hidden values of all items from their posterior, n times.

        ``params``, ``known``  as for `e_step`

        Returns `softcount.core.posteriors.Draws`, which prints as a table; ``best`` is the draw
        with the largest log p(x, z | θ), the best sampled assignment.
        """
        check_whole("n", n)
        posteriors = self.e_step(data, params, **known)
        _, core, corpus = self._bind_again(data, known)
        if posteriors.independent or not core.lays_out_draws:
            return posteriors.draw(n, random_state)
        stream = int(np.random.default_rng(random_state).integers(2**62))
        return draw_whole(core, corpus, posteriors, n, stream, self.engine)

    def _e_options(self, temper: float = 1.0) -> EStep:
        """Return the options of an E-step by itself: hard if the learner is, otherwise soft."""
        learner = self._learner
        return EStep("hard" if learner.e == "hard" else "soft", temper, update=learner.m)

    def _bind_again(self, data: Any, known: Mapping[str, Any]) -> tuple[Self, Any, Any]:
        """Return core and corpus of data, and the model that names their values.

        Binding training data sets attributes, which must not change this model: then it is a copy.
        """
        if hasattr(self, "core_") and not known:
            return self, self.core_, self._bind_more(self.core_, data)
        model = copy(self)
        core: Any
        corpus: Any
        core, corpus = model._bind(data, **known)
        return model, core, corpus

    def _read_start(self, core: Any, corpus: Any, given: Any) -> Params:
        """Return parameters as arrays; the name of a start, such as "uniform", draws one."""
        if not isinstance(given, str):
            read: Params = self._read_params(core, corpus, given)
            return read
        start = self._start_values(core, corpus, given)
        start = start(np.random.default_rng(self._seed())) if callable(start) else start
        return start if isinstance(start, Mapping) else start.params

    def _learned_params(self, corpus: Any) -> Params:
        """Return the learned parameters for an E-step over a corpus."""
        return self.raw_params_

    def _infer(self, core: Any, corpus: Any, params: Params, how: EStep) -> Posteriors:
        """Do an E-step, and name the hidden values."""
        rows, stats, local = infer(core, corpus, params, how, self.engine)
        named = self._name_hidden(core, corpus, rows)
        shared = {"stats": stats, "local": local, "params": params, "weights": rows.weights}
        return Posteriors(values=rows.values, items=rows.items, **{**shared, **named})

    def _count_given(
        self, core: Any, corpus: Any, params: Params, values: Any, posteriors: Any
    ) -> tuple[Stats, Params]:
        """Return expected counts, and items' own parameters, under posteriors of the user's."""
        even = {name: family.uniform() for name, family in core.families.items()}
        shards, how = corpus.shards(None, 0), self._e_options()
        return count_posteriors(core, shards, len(corpus), {**even, **params}, values, how)

    def _name_hidden(self, core: Any, corpus: Any, rows: PosteriorRows) -> dict[str, Any]:
        """Return the names of hidden values: ``columns``, ``index`` and ``of`` of `Posteriors`."""
        columns = tuple(range(rows.values.shape[1]))
        return {"columns": columns, "index": {"item": rows.items.tolist()}, "of": "value"}

    def _show_params(self, core: Any, params: Params) -> Any:
        """Return parameters in the form of ``params_``; they may have items' own rows."""
        model: Any = copy(self)
        model.core_, model.raw_params_ = core, params
        return model.params_

    # what was learned
    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "raw_params_")

    def _require_fit(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError  # imported only when it is needed

            raise NotFittedError(f"this {type(self).__name__} has not been fitted: call fit first")

    @property
    def params_(self) -> Any:
        """The learned tables by name."""
        self._require_fit()
        return NamedTables({name: np.array(table) for name, table in self.raw_params_.items()})

    @property
    def trace_(self) -> Trace:
        """The best run, step by step, the start included."""
        return self._get_fit().trace

    @property
    def verdict_(self) -> Verdict:
        """How the best run ended, as a sentence."""
        return self._get_fit().verdict

    def _get_fit(self) -> Fit:
        self._require_fit()
        if not hasattr(self, "fit_"):
            raise AttributeError("there is no trace: the model was loaded from a file")
        return self.fit_

    def decompose(self, data: Any, params: Any, at: Any = None, **known: Any) -> Decomposition:
        """Decompose the log-likelihood at ``params`` into Q + H + KL, with the posterior at ``at``.

        ``params``, ``at``  parameters as in ``params_``, as kept in a trace, or as given to
                            ``init``; ``at`` defaults to ``params``
        ``known``           what `fit` was given besides the data: labels, links, tags, sample
                            weights. The data must then be the training data

        This shows why EM never lowers the log-likelihood; see `softcount.decompose`.
        """
        model, core, corpus = self._bind_again(data, known)
        here = model._read_params(core, corpus, params)
        there = None if at is None else model._read_params(core, corpus, at)
        with name_impossible_items(corpus):
            return decompose(core, corpus, here, there, self.engine)


# Learners that cannot fit a model are refused at once, with a hint that names an alternative. The
# order of the checks is such that following a hint never leads to another of these errors.


def check_learner(model: Estimator, name: str = "") -> None:
    """Raise a `LearnerError` if the learner cannot fit this model.

    ``name``  the model's name in the message; by default its display name
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
            f"{name} has no held-out words, which {kind} needs to choose the temper and to stop",
            f"use {instead}; {kind} is for topic models only",
        )
    if init and init not in model._solvable_starts():
        raise LearnerError(
            f"{kind} estimates parameters from moments (init={init!r}), which is not possible for "
            f"{name}",
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
