"""The one loop: a model, a learner, an engine. Everything that iterates reads `trace`."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from softcount import interrupt
from softcount._version import __version__
from softcount.engines.base import Engine, Session
from softcount.errors import ImpossibleItem, LearnerError, StartError
from softcount.families.base import Family
from softcount.job import Corpus, HasLocal, Job, Model, demand_bound, open_session
from softcount.learners import named
from softcount.learners.base import Learner
from softcount.learners.schedules import Batch
from softcount.learners.steps import Pending, Step, expected_log
from softcount.stop import ended, judge, rounding
from softcount.types import Array, Fit, How, Params, State, Trace
from softcount.verdict import Verdict

__all__ = ["Corpus", "Model", "fit", "trace"]

Init = Params | Callable[[np.random.Generator], Params]
OnStep = Callable[[State], object]

SCOUTS_BATCH = 256
"""How many items scouts look at before they take a step."""


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
    """Learn step by step: yields the start and every step after it, returns the verdict.

    A state's parameters and its figures belong together: the E-step at θ_t gives state t.
    ``run`` tells restarts of one seed apart; ``theory`` fills in ``q`` and ``bound``.
    To read it to the end: ``for state in trace(model, data, EM(), start=params): ...``.
    """
    with open_session(model, data, engine, learner.schedule.batch_size, seed) as session:
        return (yield from _Run(model, session, learner, seed, run, theory).states(start))


@interrupt.graceful()
def fit(
    model: Model,
    data: Corpus,
    learner: Learner | None = None,
    engine: Engine | None = None,
    *,
    init: Init,
    seed: int = 0,
    scouts: int = 0,
    development: Corpus | None = None,
    on_step: Sequence[OnStep] | OnStep = (),
    keep_params: bool = False,
    theory: bool = False,
    keep_local: bool = False,
) -> Fit:
    """Learn to the end, ``learner.n_init`` times, and keep the best run.

    ``learner``      how; if None, what the model names as ``usual_learner``, else `EM()`
    ``init``         start parameters, or a function that makes some from random numbers
    ``scouts``       try so many starts by two quick passes each; go on from the best. One scout is
                     a warm-up: of a start that is given there is none, nor for mini-batches
    ``development``  choose the run by the log-likelihood of these data, not by the objective
    ``on_step``      called with every state; a run stops when one of them returns True
    ``keep_params``  keep the parameters of every step in the trace
    ``keep_local``   keep parameters that belong to items as well, in ``local`` and (with
                     ``keep_params``) in the trace; for models that have such, as `HasLocal`

    The first Ctrl-C ends the run after the step it is in: what it has learned by then is kept, and
    the verdict says so. A second one leaves at once.
    """
    learner = learner or usual(model)
    if not callable(init) and learner.n_init > 1 and not _runs_differ(learner):
        raise LearnerError(
            f"all {learner.n_init} runs would be the same: they begin at the same parameters, and "
            f"{type(learner).__name__} leaves nothing to chance",
            "set n_init=1, or let init be random",
        )
    watchers = (on_step,) if callable(on_step) else tuple(on_step)
    results = []
    if scouts > 1 or (scouts == 1 and callable(init) and learner.schedule.batch_size is None):
        init = _scouted(model, data, learner, engine, init, scouts)
    with open_session(model, data, engine, learner.schedule.batch_size, seed) as session:
        for number in range(learner.n_init):
            run = _Run(model, session, learner, seed, number, theory, keep_local)
            results.append(run.drain(init, watchers, keep_params))
            if keep_local and development is None:  # tables of items are large: keep one run's
                best_so_far = int(np.argmax([result.objective for result in results]))
                results = [
                    result if n == best_so_far else replace(result, local={})
                    for n, result in enumerate(results)
                ]
            if interrupt.asked():
                break
        signature = _signature(model, learner, seed, len(session))
    best = results[_best(model, results, development, engine)]
    return Fit(
        params=best.params,
        trace=best.trace,
        traces=tuple(result.trace for result in results),
        signature=signature,
        draws=tuple(result.draws for result in results) if learner.m == "draw" else (),
        diagnostics=_diagnostics(results) if learner.m == "draw" else {},
        priors=best.priors,
        local=best.local,
    )


def usual(model: Model) -> Learner:
    """What a model is learned by if nothing else is said: its ``usual_learner``, else `EM()`."""
    kind = getattr(named, getattr(model, "usual_learner", "EM"))
    chosen: Learner = kind(**getattr(model, "usual_dials", {}))
    return chosen


def _scouted(
    model: Model,
    data: Corpus,
    learner: Learner,
    engine: Engine | None,
    init: Init,
    scouts: int,
) -> Callable[[np.random.Generator], Params]:
    """A start that is the best of some, each tried by short stepwise runs.

    Mini-batches learn most of what there is to learn in a pass or two (Liang & Klein 2009), which
    is enough to tell good starts from bad ones.
    """
    if not callable(init):
        raise LearnerError(
            f"all {scouts} scouts would begin at the same parameters", "let init be random"
        )
    size = max(1, min(SCOUTS_BATCH, len(data) // 4))
    stepwise = named.OnlineEM if learner.m == "maximise" else named.StochasticVB
    scout = stepwise(max_iter=2, tol=0.0, n_init=scouts, batch_size=size)

    def best(rng: np.random.Generator) -> Params:
        return fit(model, data, scout, engine, init=init, seed=int(rng.integers(2**31))).params

    return best


@dataclass(frozen=True)
class _Result:
    """What one run leaves behind; ``kept`` are the states whose parameters are draws."""

    params: Params
    trace: Trace
    draws: tuple[Params, ...]
    kept: tuple[State, ...]
    priors: Mapping[str, Array]
    local: Params

    @property
    def objective(self) -> float:
        """For choosing among runs: of the last step, or the mean over the draws.

        Runs that end by held-out words are chosen by these: their tempers may differ.
        """
        if self.kept:
            return float(np.mean([state.objective for state in self.kept]))
        last: State = self.trace[-1]
        return last.objective if np.isnan(last.held_out) else -last.held_out


class _Run:
    """One run from one start."""

    def __init__(
        self,
        model: Model,
        session: Session,
        learner: Learner,
        seed: int,
        run: int,
        theory: bool,
        keep_local: bool = False,
    ) -> None:
        if theory:
            demand_bound(model)
        if theory and not (learner.e == "soft" and isinstance(learner.schedule, Batch)):
            raise LearnerError(
                f"theory=True: Q and the bound belong to soft batch steps, not to {learner}",
                "use EM() or VariationalBayes(), or theory=False",
            )
        self.learner = learner
        self.theory = theory
        self.climbs = getattr(model, "climbs", True)
        self.few = getattr(model, "few_steps", False) and learner == usual(model)
        self.job = Job(model, session, learner, seed, run)
        self.job.theory, self.job.keeps_local = theory, keep_local
        self.prior_size = sum(family.prior_size for family in self.job.families.values())
        self.last: Step | None = None

    def states(self, start: Params) -> Generator[State, None, Verdict]:
        self.job.session.reset()
        families = self.job.families
        steps = self.learner.schedule.steps(self.job, self.job.start(check_start(families, start)))
        before = None
        while True:
            began = time.perf_counter()
            step = next(steps, None)
            if step is None:
                assert before is not None
                return ended(families, before)
            now = self._state(step, time.perf_counter() - began)
            self.last = step
            verdict = judge(self.learner, families, before, now, self.climbs, self.few)
            yield now
            if verdict:
                return verdict
            before = now
            self.job.step += 1

    def _state(self, step: Step, seconds: float) -> State:
        """The step's figures; ``seconds`` is what this step alone took."""
        change = q = bound = float("nan")
        if self.last and not isinstance(step.tables.params, Pending):
            old, new = self.last.tables.params, step.tables.params
            changes = [f.change(old[name], new[name]) for name, f in self.job.families.items()]
            change = max(changes, default=0.0)
            if self.theory:
                stats = self.last.stats
                beside = stats.uncounted
                was = expected_log(self.job.families, stats.counts, old) + beside.expected
                q = expected_log(self.job.families, stats.counts, new) + beside.ahead
                bound = q + (stats.score - beside.prior) - was
        return State(
            step=self.job.step,
            params=step.tables.params,
            objective=step.objective,
            log_likelihood=step.stats.log_likelihood,
            perplexity=step.stats.perplexity,
            seconds=seconds,
            change=change,
            temper=self.job.temper,
            held_out=step.held_out,
            entropy=self._entropy(step.tables.params),
            q=q,
            bound=bound,
            rounding=rounding(step.stats, self.prior_size),
        )

    def _entropy(self, params: Params) -> float:
        """The entropy of what the model names as ``entropy_of``, if it does."""
        names = getattr(self.job.model, "entropy_of", ())
        weights = self.learner.m == "mean_field" and self.job.step > 0
        each = [self.job.families[name].entropy(params[name], weights) for name in names]
        return float(np.mean(each)) if each else float("nan")

    def drain(self, init: Init, watchers: Sequence[OnStep], keep_params: bool) -> _Result:
        """Run to the end."""
        start = init(self.job.rng("start")) if callable(init) else init
        states, draws, kept = [], [], []
        steps = self.states(start)
        while True:
            try:
                state = next(steps)
            except StopIteration as end:
                verdict = end.value
                break
            bare = replace(state, params={})
            if keep_params:
                own = {**state.params, **self._local(reported=False)}
                states.append(replace(state, params=own))
            else:
                states.append(bare)
            if self.learner.keeps(state.step):
                draws.append(dict(state.params))
                kept.append(bare)
            answers = [watch(state) for watch in watchers]
            if any(_says_stop(answer) for answer in answers):
                verdict = Verdict.STOPPED
                break
            if interrupt.asked():
                verdict = Verdict.INTERRUPTED
                interrupt.tell(
                    f"after {state.step:,} step{'s' * (state.step != 1)}: the parameters of the "
                    "last one are kept"
                )
                break
        return _Result(
            self._params(draws),
            Trace(tuple(states), verdict, keep_params),
            tuple(draws),
            tuple(kept),
            self.last.tables.priors if self.last else {},
            self._local(reported=True),
        )

    def _local(self, *, reported: bool) -> Params:
        """What belongs to items, of the state that was looked at last; nothing, if not asked."""
        job = self.job
        if not job.keeps_local:
            return {}
        assert isinstance(job.model, HasLocal)
        assert self.last is not None
        rows = job.model.rows_reported if reported else job.model.rows_used
        found = job.rows(rows, self.last.tables.params)
        numbers = np.concatenate([np.asarray(stats.counts["numbers"]) for stats in found])
        parts = np.concatenate([np.asarray(stats.counts["rows"]) for stats in found])
        table = np.empty_like(parts)
        table[numbers] = parts
        return {job.model.local_name: table}

    def _params(self, draws: Sequence[Params]) -> Params:
        """What to report: the mean of the draws, the posterior mean, or where the run ended."""
        assert self.last is not None
        tables, families = self.last.tables, self.job.families
        if draws:
            return {
                name: family.average([draw[name] for draw in draws])
                for name, family in families.items()
            }
        if self.learner.m == "mean_field" and tables.counts is not None:
            return {
                name: family.mean(tables.counts[name], tables.params[name])
                for name, family in families.items()
            }
        return dict(tables.params)


def check_start(families: Mapping[str, Family], start: Params) -> dict[str, Array]:
    """The start parameters as arrays; complains of what no family could begin with.

    Weights are welcome: rows that sum to more than one are made proper, for otherwise the first
    step might seem to fall. Rows that sum to less leave room for what never occurs, and stay.
    """
    if set(start) != set(families):
        raise StartError(
            f"the start has tables for {sorted(start)}, the model for {sorted(families)}",
            "give one table for each of the model's families",
        )
    checked = {}
    for name, family in families.items():
        values = np.asarray(start[name])
        if values.dtype.kind != "f":
            values = values.astype(float)
        fault = _fault(family, values)
        if fault:
            raise StartError(f"the start of {name!r} {fault}", "correct it, or start at random")
        checked[name] = family.proper(values)
    return checked


def _fault(family: Family, values: Array) -> str:
    shape = family.param_shape
    if values.shape != shape:
        return f"has the shape {values.shape}, not {shape}"
    for fault, what in ((np.isnan(values), "NaN"), (np.isinf(values), "an infinite value")):
        if fault.any():
            return f"has {what} at index {_where(fault)}"
    try:
        with np.errstate(all="ignore"):  # the log of what should not be negative
            if family.sound(values):
                return ""
    except np.linalg.LinAlgError:
        return "has a covariance that is not positive definite"
    negative = values < 0
    return f"has a negative value at index {_where(negative)}" if negative.any() else "is improper"


def _where(fault: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(fault)[0])


def _runs_differ(learner: Learner) -> bool:
    """Whether two runs from the same start differ."""
    return learner.stochastic or learner.schedule.shuffles


def _says_stop(answer: object) -> bool:
    """True and nothing else stops: many a callback returns something by accident."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _best(
    model: Model, results: Sequence[_Result], development: Corpus | None, engine: Engine | None
) -> int:
    """The number of the best run; the first among equals."""
    if development is None or len(results) == 1:
        return int(np.argmax([result.objective for result in results]))
    how = How(score_only=True)
    scores = []
    with open_session(model, development, engine) as session:
        for result in results:
            try:
                scores.append(session.expect(model.expect, result.params, how).log_likelihood)
            except ImpossibleItem:
                scores.append(-np.inf)
    return int(np.argmax(scores))


def _diagnostics(results: Sequence[_Result]) -> dict[str, float]:
    """The worst over log-likelihood and objective, neither of which cares how classes are named."""
    from softcount.learners import diagnostics  # scipy: only samplers need it

    shortest = min(len(result.kept) for result in results)
    figures = [
        np.array([[getattr(state, figure) for state in r.kept[:shortest]] for r in results])
        for figure in ("log_likelihood", "objective")
    ]
    return {
        "rhat": max(diagnostics.rhat(draws) for draws in figures),
        "ess_bulk": min(diagnostics.ess_bulk(draws) for draws in figures),
        "ess_tail": min(diagnostics.ess_tail(draws) for draws in figures),
    }


def _signature(model: Model, learner: Learner, seed: int, n_shards: int) -> str:
    shards = f"{n_shards} shard{'s' if n_shards != 1 else ''}"
    return f"softcount {__version__} · {model.name} · {learner} · seed {seed} · {shards}"
