"""The fitting loop: a model, a learner, an engine. All iterative fitting goes through `trace`."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount._version import __version__
from softcount.core import interrupt
from softcount.core.errors import DataError, ImpossibleItem, LearnerError, SoftcountError
from softcount.core.model import Corpus, Model, require_bound
from softcount.core.progress import STEPS, phase, step_line
from softcount.core.spill import empty_table, read_only
from softcount.core.tilting import SATISFIED, Tilt
from softcount.core.types import (
    Array,
    Counts,
    DerivedCounts,
    EStep,
    Fit,
    Params,
    State,
    Stats,
    Trace,
)
from softcount.core.verdict import Verdict
from softcount.core.warnings import NotDistributedWarning
from softcount.engines.base import Engine, Expect, Session
from softcount.engines.blocks import tree_sum
from softcount.engines.local import Local, LocalSession
from softcount.families.base import check_start
from softcount.kernels.compiling import clock
from softcount.learners.base import Learner
from softcount.learners.named import OnlineEM, StochasticVB
from softcount.learners.schedules import Batch, Pending, Sampler, Step, Tables, expected_log

if TYPE_CHECKING:  # it imports safetensors, which few fits need
    from softcount.core.folder import FitFolder, RunFolder

__all__ = ["Corpus", "Model", "WarmStart", "fit", "trace"]


@dataclass(frozen=True)
class WarmStart:
    """Initial parameters that are learned first by simpler models of the same data.

    ``params``  initial parameters of these models, and of the tables that none of them has
    ``models``  fitted one after the other, each by its default learner; what a model learns
                replaces the tables of the same names. Their steps are in `Trace.warm_up`
    """

    params: Params
    models: Sequence[Model]


Start = Params | Callable[[np.random.Generator], Params]
Init = Start | WarmStart
OnStep = Callable[[State], object]

SHORT_RUN_BATCH = 256
"""Number of items in a mini-batch of short runs."""

SLACK = 1e-9
"""The fraction of its size by which an objective may fall through rounding alone."""

ROUNDING = 2.0**-43
"""The same, as a fraction of the number of observations plus the pseudo-counts of priors. An
objective may be far smaller than the terms of its sum: n observations of probability 1 − ε have a
log-likelihood near 0, each of whose terms has an error of about 2^-53; and log Γ(n), of which the
bounds of variational Bayes are differences, is about n log n, for which the factor 2^10 leaves room
up to n = 10^15 and beyond."""


def trace(
    model: Model,
    data: Corpus,
    learner: Learner,
    engine: Engine | None = None,
    *,
    start: Params,
    seed: int = 0,
    run: int = 0,
    theory: bool = False,
) -> Generator[State, None, Verdict]:
    """Fit step by step: yield the start and every step after it, return the verdict.

    Under `EM` this is the textbook's algorithm,

        repeat
            E-step   counts, log p(x | θ)  =  Σ over shards of model.expect(θ, shard)
                     yield State(θ, log p(x | θ)), and stop if it has converged
            M-step   θ  =  family.maximise(counts) for every family of distributions

    Other learners fill in hidden values by the best one or by draws (`Learner.e`), make parameters
    from counts in another way (`Learner.m`), or more often (`Learner.schedule`).

    A state's parameters and its figures belong together: the E-step at θ_t gives state t.
    ``run`` distinguishes restarts with the same seed; ``theory`` fills in ``q`` and ``bound``.
    To run it to the end: ``for state in trace(model, data, EM(), start=params): ...``.
    """
    with open_session(model, data, engine, learner.schedule.batch_size, seed) as session:
        return (yield from Run(model, session, learner, seed, run, theory).trace(start))


def open_session(
    model: Model, data: Corpus, engine: Engine | None, batch_size: int | None = None, seed: int = 0
) -> Session:
    """Cut the data into shards and open them on the engine (`Local` if None)."""
    if len(data) == 0:
        raise DataError("there is nothing to learn from: the data set is empty", "pass some items")
    shards = data.shards(batch_size, seed)
    return (engine or Local()).open(shards, threads_inside=model.threads_inside)


@interrupt.graceful()
def fit(
    model: Model,
    data: Corpus,
    learner: Learner | None = None,
    engine: Engine | None = None,
    *,
    init: Init,
    seed: int = 0,
    short_runs: int = 0,
    development: Corpus | None = None,
    on_step: Sequence[OnStep] | OnStep = (),
    keep_params: bool = False,
    theory: bool = False,
    keep_local: bool = False,
    folder: FitFolder | None = None,
) -> Fit:
    """Fit to the end, ``learner.n_init`` times, and keep the best run.

    ``learner``      the learner; None: the model's ``default_learner``
    ``init``         initial parameters, a function that draws them, or a `WarmStart`
    ``short_runs``   try this many starts by two quick passes each, and continue from the best. One
                     short run is a warm-up: it is skipped for given parameters and mini-batches
    ``development``  choose the run by the log-likelihood of these data, not by the objective
    ``on_step``      called with every state; a run stops when one of them returns True
    ``keep_params``  keep the parameters of every step in the trace
    ``keep_local``   also keep parameters that belong to items, in ``local`` and (with
                     ``keep_params``) in the trace; for models that have such (`Model.local_name`)
    ``folder``       write checkpoints to this folder, and continue from those that are there

    The first Ctrl-C stops the run after the current step: what it has learned is kept, and the
    verdict says so. A second Ctrl-C aborts at once.
    """
    settings = (seed, short_runs, development, on_step, keep_params, theory, keep_local, folder)
    return _fit(model, data, learner, engine, init, *settings)


def _fit(
    model: Model,
    data: Corpus,
    learner: Learner | None,
    engine: Engine | None,
    init: Init,
    seed: int = 0,
    short_runs: int = 0,
    development: Corpus | None = None,
    on_step: Sequence[OnStep] | OnStep = (),
    keep_params: bool = False,
    theory: bool = False,
    keep_local: bool = False,
    folder: FitFolder | None = None,
) -> Fit:
    """Do what `fit` does; initial parameters that nobody else keeps are freed on the way."""
    learner = learner or model.default_learner
    runs_differ = callable(init) or learner.stochastic or learner.schedule.shuffles
    if learner.n_init > 1 and not runs_differ:
        raise LearnerError(
            f"all {learner.n_init} runs would be the same: they start from the same parameters, "
            f"and {type(learner).__name__} is deterministic",
            "set n_init=1, or use a random init",
        )
    warm_up: list[Trace] = []
    if isinstance(init, WarmStart):
        start = dict(init.params)
        for simpler in init.models:
            before = _fit(
                simpler,
                data,
                None,
                engine,
                {name: start.pop(name) for name in simpler.families},
                keep_params=keep_params,
                folder=folder,
            )
            start |= before.params
            warm_up.append(before.trace)
            del before
        init = start
        del start
    # what follows a warm-up or a search that Ctrl-C has cut short is not what it should be
    loop = None if folder is None or interrupt.asked() else folder.next_loop()
    if loop is not None and not model.averages_draws and (found := loop.result()) is not None:
        return found
    may_warm_up = callable(init) and learner.schedule.batch_size is None
    if short_runs > 1 or (short_runs == 1 and may_warm_up):
        init = _best_of_short_runs(model, data, learner, engine, init, short_runs)
    watchers = (on_step,) if callable(on_step) else tuple(on_step)
    results: list[_Result] = []
    starts = [init] * learner.n_init  # the last run has its start to itself, and may forget it
    del init
    with open_session(model, data, engine, learner.schedule.batch_size, seed) as session:
        for number in range(learner.n_init):
            keeper = None if loop is None else loop.run(number, learner.max_iter, learner.n_init)
            run = Run(model, session, learner, seed, number, theory, keep_local, keeper=keeper)
            run.n_items = len(data)
            results.append(run.drain(starts.pop(), watchers, keep_params))
            if keep_local and development is None:  # they are large: keep those of one run only
                best_so_far = int(np.argmax([result.objective for result in results]))
                results = [
                    result if n == best_so_far else replace(result, local={})
                    for n, result in enumerate(results)
                ]
            if interrupt.asked():
                break
        shards = f"{len(session)} shard{'s' if len(session) != 1 else ''}"
    best = 0
    if len(results) > 1 and development is not None:
        scores = []
        with open_session(model, development, engine) as session:
            for result in results:
                try:
                    stats = session.expect(model.expect, result.params, EStep(score_only=True))
                    scores.append(stats.log_likelihood)
                except ImpossibleItem:
                    scores.append(-np.inf)
        best = int(np.argmax(scores))
    elif len(results) > 1:
        best = int(np.argmax([result.objective for result in results]))
    traces = tuple(replace(result.trace, warm_up=tuple(warm_up)) for result in results)
    diagnostics: dict[str, float] = {}
    if learner.m == "draw":
        from softcount.learners.diagnostics import summarise  # only samplers need it

        diagnostics = summarise([result.kept for result in results])
    whole = Fit(
        params=results[best].params,
        trace=traces[best],
        traces=traces,
        signature=f"softcount {__version__} · {model.name} · {learner} · seed {seed} · {shards}",
        draws=tuple(result.draws for result in results) if learner.m == "draw" else (),
        diagnostics=diagnostics,
        priors=results[best].priors,
        local=results[best].local,
    )
    if loop is not None and not interrupt.asked():
        loop.finish(whole, keep_runs=model.averages_draws)
    return whole


def _best_of_short_runs(
    model: Model, data: Corpus, learner: Learner, engine: Engine | None, init: Init, short_runs: int
) -> Callable[[np.random.Generator], Params]:
    """Return a function that draws several starts and picks the best by short stepwise runs.

    Mini-batches learn most of what there is to learn in a pass or two (Liang & Klein 2009), which
    is enough to tell good starts from bad ones.
    """
    if not callable(init):
        raise LearnerError(
            f"all {short_runs} short runs would start from the same parameters",
            "use a random init, or short_runs=0",
        )
    size = max(1, min(SHORT_RUN_BATCH, len(data) // 4))
    stepwise = OnlineEM if learner.m == "maximise" else StochasticVB
    short_run = stepwise(max_iter=2, tol=0.0, n_init=short_runs, batch_size=size)

    def best(rng: np.random.Generator) -> Params:
        seed = int(rng.integers(2**31))
        with phase(f"{short_runs} short runs" if short_runs > 1 else "a short run"):
            return fit(model, data, short_run, engine, init=init, seed=seed).params

    return best


@dataclass(frozen=True)
class _Result:
    """The result of one run.

    ``kept``     the states whose parameters are kept draws
    ``sampler``  the state of a sampler that accumulates what is learned (`Model.averages_draws`)
    """

    params: Params
    trace: Trace
    draws: tuple[Params, ...]
    kept: tuple[State, ...]
    priors: Mapping[str, Array]
    local: Params
    sampler: Mapping[str, Array] = field(default_factory=dict)

    @property
    def objective(self) -> float:
        """The figure by which runs are compared: that of the last step, or the mean over draws.

        Runs with held-out words are compared by their perplexity, as their tempers may differ.
        """
        if self.kept:
            return float(np.mean([state.objective for state in self.kept]))
        last: State = self.trace[-1]
        return last.objective if np.isnan(last.held_out) else -last.held_out


PURPOSES = ("start", "expect", "update", "order", "collapse", "sweep")
"""Purposes of random numbers; each has its own streams."""


class Run:
    """One run from one start: the model's E-step on the engine, the learner's update of families.

    Schedules call it for E- and M-steps, so that they need not know the model, the data or the
    engine.

    ``run``         distinguishes restarts with the same seed
    ``theory``      record Q and the bound of every step
    ``keep_local``  keep parameters that belong to items
    ``first_step``  the number of the first step: not 0 where a stream is continued
    ``keeper``      where checkpoints are written, and the run continues from
    """

    def __init__(
        self,
        model: Model,
        session: Session,
        learner: Learner,
        seed: int,
        run: int,
        theory: bool = False,
        keep_local: bool = False,
        first_step: int = 0,
        keeper: RunFolder | None = None,
    ) -> None:
        if theory:
            require_bound(model)
        if theory and not (learner.e == "soft" and isinstance(learner.schedule, Batch)):
            raise LearnerError(
                f"theory=True: Q and the bound are defined for soft batch steps only, not for "
                f"{learner}",
                "use EM() or VariationalBayes(), or theory=False",
            )
        self.model, self.session, self.learner = model, session, learner
        self.families = model.families
        self.prior_size = sum(family.prior_size for family in self.families.values())
        self.theory, self.keep_local, self.step = theory, keep_local, first_step
        self.keeper = keeper
        self.n_items = 0
        """Number of items, for the table of parameters that belong to them."""
        self.last: Step | None = None
        self.sampler: Sampler | None = None
        self.states: list[State] = []
        """The trace so far, collected by `drain`."""
        self.before: Any = None
        """Snapshot of the shards' own parameters before the last E-step over all data, if kept."""
        self.moved_before = False
        """Whether that E-step, of a mini-batch, updates these parameters before it counts."""
        self._temper: float | None = None
        self._start: Params = {}
        """Initial parameters, if the schedule needs them again when the run is resumed."""
        self._seed, self._run = seed, run
        self._used: Counter[str] = Counter()

    # the loop

    def trace(self, start: Params) -> Generator[State, None, Verdict]:
        """Yield every state, the start included; return the verdict (see `trace`)."""
        self.session.reset()
        schedule, checkpoint = self.learner.schedule, self.keeper and self.keeper.checkpoint
        params = start if checkpoint else check_start(self.families, start)
        if schedule.streams or checkpoint:
            tables = Tables(params, 0.0)
        elif self.learner.m == "mean_field":
            tables = Tables(params, -np.inf)  # a variational posterior does not exist yet
        else:
            tables = self.tables(params)
        before: State | None = None
        if checkpoint:
            before = self.states[-1]
            stats = checkpoint.stats or Stats({})
            self.last = Step(Tables(checkpoint.before, 0.0), stats, before.objective)
            self.step, self._temper = checkpoint.step, checkpoint.temper
            self._start, self._used = start, Counter(checkpoint.used)
            self.session.restore(checkpoint.shards)
        elif schedule.collapses:
            self._start = params
        began = clock()
        steps = schedule.steps(self, tables, checkpoint.schedule if checkpoint else None)
        del start, params, tables  # large tables are kept as long as they are needed, and no longer
        for step in steps:
            now = self._state(step, clock() - began)
            self.last = step
            verdict = self._judge(before, now)
            yield now
            if verdict:
                return verdict
            before = replace(now, params={})
            del step, now
            self.step += 1
            began = clock()
        assert self.last is not None
        if schedule.ending:
            return schedule.ending
        stuck = self._indistinguishable(self.last.tables.params)
        return Verdict.STUCK if stuck else Verdict.CONVERGED

    def _state(self, step: Step, seconds: float) -> State:
        """Compute the figures of a step; ``seconds`` is the duration of this step alone, without
        compiling."""
        families, stats, params = self.families, step.stats, step.tables.params
        change = q = bound = float("nan")
        comparable = not self.learner.schedule.streams and not isinstance(params, Pending)
        if step.tables.change is not None:
            change = step.tables.change
        elif self.last and comparable:
            old = self.last.tables.params
            change = self._change(old, params)
            if self.theory:
                last, uncounted = self.last.stats, self.last.stats.uncounted
                old_q = expected_log(families, last.counts, old) + uncounted.expected
                q = expected_log(families, last.counts, params) + uncounted.ahead
                bound = q + (last.score - uncounted.prior) - old_q
        weights = self.learner.m == "mean_field" and self.step > 0
        entropies = [
            families[name].entropy(params[name], weights) for name in self.model.entropy_of
        ]
        observed = stats.items + stats.tokens + stats.magnitude
        return State(
            step=self.step,
            params=params,
            objective=step.objective,
            log_likelihood=stats.log_likelihood,
            perplexity=stats.perplexity,
            seconds=seconds,
            change=change,
            temper=self.temper,
            held_out=step.held_out,
            entropy=float(np.mean(entropies)) if entropies else float("nan"),
            q=q,
            bound=bound,
            rounding=ROUNDING * (observed + self.prior_size) + step.gap,
            slack=step.slack,
        )

    def _change(self, old: Params, new: Params) -> float:
        """Return the largest change of a parameter."""
        changes = [f.change(old[name], new[name]) for name, f in self.families.items()]
        return max(changes, default=0.0)

    def _judge(self, before: State | None, now: State) -> Verdict | None:
        """Return the verdict if the run ends with the step ``now``; None if it continues."""
        model, learner = self.model, self.learner
        if np.isnan(now.objective):
            raise SoftcountError(
                f"the objective is NaN at step {now.step}",
                "this is a bug in the model: its E-step returned NaN; run check_model on it",
            )
        if learner.max_iter == 0:
            return Verdict.SOLVED
        if learner.stochastic:
            return Verdict.SAMPLED if now.step >= learner.max_iter else None
        converged = False
        if before is not None and now.temper == before.temper:
            slack = SLACK * max(1.0, abs(before.objective)) + max(before.rounding, now.rounding)
            if model.monotone and learner.monotone and now.objective < before.objective - slack:
                return Verdict.FELL
            # whether the step changed almost nothing; with tol = 0: nothing at all
            if now.temper == learner.last_temper and not learner.schedule.held_out:
                if learner.stop == "change":
                    converged = now.change <= learner.tol
                elif learner.stop == "perplexity":
                    moved = abs(now.perplexity - before.perplexity)
                    converged = moved <= learner.tol * now.perplexity
                else:
                    moved = abs(now.objective - before.objective)
                    converged = moved <= learner.tol * max(1.0, abs(now.objective))
        if not (converged and learner.tol > 0) and now.step < learner.max_iter:
            return None
        if self._indistinguishable(now.params):
            return Verdict.STUCK
        if converged:
            lacks = now.slack > SATISFIED and not learner.schedule.forgiving
            return Verdict.UNSATISFIED if lacks else Verdict.CONVERGED
        few_are_meant = model.few_steps and learner == model.default_learner
        return Verdict.ENOUGH if few_are_meant else Verdict.OUT_OF_STEPS

    def _indistinguishable(self, params: Params) -> bool:
        """Return whether in every family with rows to compare all rows are the same."""
        answers = [family.alike(params[name]) for name, family in self.families.items()]
        compared = [answer for answer in answers if answer is not None]
        return bool(compared) and all(compared)

    def drain(self, init: Start, watchers: Sequence[OnStep], keep_params: bool) -> _Result:
        """Run to the end and collect the result."""
        keeper, draws, kept = self.keeper, list[Params](), list[State]()
        if keeper is not None:
            ended: _Result | None = keeper.result()
            if ended is not None:
                if self.model.averages_draws:  # a new sampler takes up what this run's had
                    start = init(self.rng("start")) if callable(init) else init
                    self.collapse(check_start(self.families, start)).restore(ended.sampler)
                return ended
            kept, draws = self._recall(keeper, keep_params)
        if keeper is not None and keeper.checkpoint:
            start = keeper.checkpoint.start
        else:
            start = init(self.rng("start")) if callable(init) else init
        states = self.states
        steps = self.trace(start)
        del init, start
        while True:
            try:
                state = next(steps)
            except StopIteration as end:
                verdict = end.value
                break
            bare = replace(state, params={})
            if keep_params:
                local = self._local(self.model.rows_used) if self.keep_local else {}
                states.append(replace(state, params={**state.params, **local}))
                if keeper is not None:
                    keeper.keep("params", state.step, states[-1].params)
            else:
                states.append(bare)
            if self.learner.keeps(state.step):
                draws.append(dict(state.params))
                kept.append(bare)
                if keeper is not None:
                    keeper.keep("draw", state.step, draws[-1])
            if STEPS.isEnabledFor(logging.DEBUG):
                STEPS.debug("%s: %s", self.model.name, step_line(state, self.n_items))
            answers = [watch(state) for watch in watchers]
            # only True stops the run: callbacks often return some other value by accident
            if any(isinstance(answer, bool | np.bool_) and answer for answer in answers):
                verdict = Verdict.STOPPED
                break
            if interrupt.asked():
                verdict = Verdict.INTERRUPTED
                where = self.learner.schedule.where(state.step, len(self.session))
                interrupt.tell(where if keeper is None else f"{where}; {keeper.way_on}")
                break
            del state
        assert self.last is not None
        tables = self.last.tables
        # the reported parameters: mean of the draws, posterior mean, or those of the last step
        families, params = self.families.items(), tables.params
        if draws:
            params = {name: f.average([draw[name] for draw in draws]) for name, f in families}
        elif self.learner.m == "mean_field" and tables.counts is not None:
            params = {name: f.mean(tables.counts[name], params[name]) for name, f in families}
        result = _Result(
            dict(params),
            Trace(tuple(states), verdict, keep_params),
            tuple(draws),
            tuple(kept),
            tables.priors,
            self._local(self.model.rows_reported) if self.keep_local else {},
        )
        if keeper is not None:
            if self.model.averages_draws and self.sampler is not None:
                result = replace(result, sampler=self.sampler.state())
            if verdict is Verdict.INTERRUPTED:
                keeper.stop(steps)  # to the next point from which it can go on
            else:
                keeper.finish(result)
        return result

    # checkpoints

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self.keeper is not None and self.keeper.is_due(self.step)

    def mark(self, **state: Any) -> None:
        """Write a checkpoint: with ``state``, the schedule can go on from here.

        Samplers and running averages in it are written by their own `state`.
        """
        from softcount.core.folder import Checkpoint, pack_states, take_state

        assert self.keeper is not None
        params = self.last.tables.params if self.last is not None else {}
        checkpoint = Checkpoint(
            schedule=take_state(state),
            start=self._start,
            before={} if isinstance(params, Pending) else params,
            stats=self.last.stats if self.theory and self.last is not None else None,
            trace=pack_states(self.states),
            used=dict(self._used),
            step=self.step,
            temper=self._temper,
            shards=self.session.states(),
        )
        self.keeper.write(checkpoint)

    def _recall(self, keeper: RunFolder, keep_params: bool) -> tuple[list[State], list[Params]]:
        """Restore the trace; return the states whose parameters are kept draws, and these draws."""
        from softcount.core.folder import unpack_states

        if keeper.checkpoint is None:
            return [], []
        bare = unpack_states(keeper.checkpoint.trace)
        kept = [state for state in bare if self.learner.keeps(state.step)]
        if keep_params:
            bare = [replace(one, params=keeper.kept("params", one.step)) for one in bare]
        self.states = bare
        return kept, [keeper.kept("draw", state.step) for state in kept]

    def _local(self, rows: Expect) -> Params:
        """Return the parameters that belong to items, for the last state."""
        assert self.last is not None
        now = self.session.snapshot()
        self.session.restore(self.before)
        how = EStep(score_only=True, update=self.learner.m, mini_batch=self.moved_before)
        table: Array | None = None
        try:
            for stats in self.session.map(rows, self.last.tables.params, how):
                part = np.asarray(stats.counts["rows"])
                if table is None:
                    shape = (self.n_items, *part.shape[1:])
                    in_memory = isinstance(self.session.shards, list | tuple)
                    make = np.empty if in_memory else empty_table
                    table = make(shape, part.dtype)
                table[np.asarray(stats.counts["numbers"])] = part
        finally:
            self.session.restore(now)
        assert table is not None
        return {self.model.local_name: read_only(table)}

    # E-steps

    def e_step(self, tables: Tables) -> Step:
        """Do an E-step over all data: counts, log-likelihood, and objective at these tables."""
        stats = self.expect(tables.params)
        own = replace(stats, counts=dict(stats.counts))  # which `update` takes out one by one
        return Step(tables, own, stats.score + tables.penalty)

    def expect(
        self, params: Params, shards: Sequence[int] | None = None, tilt: Tilt | None = None
    ) -> Stats:
        """Do an E-step over some shards (all, if None), summed in a fixed order.

        ``tilt``  weights on hidden values
        """
        how = replace(self._how(whole=shards is None), tilt=tilt)
        return self.session.expect(self.model.expect, params, how, shards)

    def try_tilt(self, params: Params, tilt: Tilt | None, score_only: bool = True) -> Stats:
        """Do an E-step with these weights on hidden values that leaves no state in the shards."""
        how = EStep(update=self.learner.m, score_only=score_only, tilt=tilt)
        stats: Stats = tree_sum(self.session.map(self.model.expect, params, how))
        return stats

    def expect_each(self, params: Params, shards: Sequence[int]) -> list[Stats]:
        """Do an E-step over some shards, with one result per shard."""
        return self.session.each(self.model.expect, params, self._how(), shards)

    def score(self, params: Params) -> Stats:
        """Compute score, log-likelihood, items and tokens of all data; counts may be empty."""
        return self.session.expect(self.model.expect, params, self._how(score_only=True))

    def _how(self, *, whole: bool = True, score_only: bool = False) -> EStep:
        """Return the options of the next E-step; ``whole``: it goes over all data.

        A step's figures belong to the shards' own parameters *before* its E-step updates them
        (except that a mini-batch updates them before it counts; `moved_before` records that). So
        with ``keep_local`` a snapshot of them is taken here.
        """
        learner = self.learner
        mini_batch = learner.schedule.batch_size is not None
        if self.keep_local and whole:
            self.before, self.moved_before = self.session.snapshot(), mini_batch and not score_only
        return EStep(
            fill=learner.e,
            temper=self.temper,
            samples=learner.samples,
            stream=self.stream("expect"),
            score_only=score_only,
            update=learner.m,
            mini_batch=mini_batch,
            theory=self.theory,
        )

    @property
    def temper(self) -> float:
        """The power β of E-steps: the learner's value at this step, unless it has been set."""
        return self.learner.temper_at(self.step) if self._temper is None else self._temper

    @temper.setter
    def temper(self, beta: float) -> None:
        self._temper = beta

    def held_out_log_likelihood(self, params: Params) -> Stats:
        """Compute log-likelihood and number of held-out tokens, with the shards as they are now."""
        if not self.model.holds_out:
            raise LearnerError(
                f"{self.model.name} has no held-out words, which {self.learner} needs to choose "
                "the temper and to stop",
                "use EM(); only topic models can hold words out",
            )
        how = EStep(score_only=True)
        return self.session.expect(self.model.held_out_log_likelihood, params, how)

    def collapse(self, params: Params) -> Sampler:
        """Make the model's collapsed sampler; its initial values are drawn given ``params``."""
        if not isinstance(self.session, LocalSession):
            warnings.warn(
                f"{self.learner} samples in this process, without the engine's workers: a "
                "collapsed sampler needs all data at once. Gibbs() samples on all of them",
                NotDistributedWarning,
                stacklevel=2,
            )
        self.sampler = self.model.collapse(self.session.shards, params, self.stream("collapse"))
        return self.sampler

    # M-steps

    def m_step(self, stats: Stats, tables: Tables) -> Tables:
        """Update every family's parameters from the counts, as the learner specifies."""
        rng = self.rng("update")
        params = {
            name: family.update(self.learner.m, stats.counts[name], tables.params[name], rng)
            for name, family in self.families.items()
        }
        return self.tables(params, stats.counts)

    def update(self, step: Step) -> Tables:
        """Do the M-step after a step that is not needed any more.

        Its counts are given up family by family, and then its parameters: so there are never two
        copies of both, unless the old ones are needed for the theory or by the learner.
        """
        tables, counts = step.tables, step.stats.counts
        if self.theory or self.learner.m == "mean_field" or not isinstance(counts, dict):
            return self.m_step(step.stats, tables)
        rng = self.rng("update")
        made: dict[str, Array] = {}
        names = list(self.families)
        if self.learner.m == "maximise":  # which may overwrite what others are derived from
            names.sort(key=lambda name: not isinstance(counts[name], DerivedCounts))
        for name in names:
            one, family = counts.pop(name), self.families[name]
            made[name] = family.consume(self.learner.m, one, tables.params[name], rng)
            del one
        params = {name: made[name] for name in self.families}
        new = replace(self.tables(params), change=self._change(tables.params, params))
        self.last = None
        return new

    def tables(self, params: Params, counts: Mapping[str, Counts] | None = None) -> Tables:
        """Combine parameters with their penalty; ``counts``: what they were made from, if any."""
        families = self.families.items()
        if counts is not None and self.learner.m == "mean_field":
            kl = sum(family.divergence(counts[name], params[name]) for name, family in families)
            return Tables(params, -kl, counts)
        # the counts of a point estimate are never needed again, so their memory is released
        return Tables(params, sum(family.log_prior(params[name]) for name, family in families))

    # random numbers

    def rng(self, purpose: str) -> np.random.Generator:
        """Return a fresh generator; the same for the same seed, whatever the threads do."""
        return np.random.Generator(np.random.PCG64(self._seeds(purpose)))

    def stream(self, purpose: str) -> int:
        """Return a fresh integer to seed a kernel with; reproducible like `rng`."""
        return int(self._seeds(purpose).generate_state(1, np.uint64)[0])

    def _seeds(self, purpose: str) -> np.random.SeedSequence:
        """Derive a new stream from seed, run, purpose, and the number of earlier requests."""
        key = (self._run, PURPOSES.index(purpose), self._used[purpose])
        self._used[purpose] += 1
        return np.random.SeedSequence(self._seed, spawn_key=key)
