"""The one loop: a model, a learner, an engine. Everything that iterates reads `trace`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcount._version import __version__
from softcount.core import interrupt
from softcount.core.errors import DataError, ImpossibleItem, LearnerError, SoftcountError
from softcount.core.model import Corpus, Model, demand_bound
from softcount.core.types import Array, Counts, EStep, Fit, Params, State, Stats, Trace
from softcount.core.verdict import Verdict
from softcount.engines.base import Engine, Expect, Session
from softcount.engines.local import Local
from softcount.families.base import check_start
from softcount.learners.base import Learner
from softcount.learners.named import OnlineEM, StochasticVB
from softcount.learners.schedules import Batch, Pending, Sampler, Step, Tables, expected_log

__all__ = ["Corpus", "Model", "WarmStart", "fit", "trace"]


@dataclass(frozen=True)
class WarmStart:
    """A start that simpler models of the same data learn first.

    ``params``  where they begin, and where the tables begin that none of them has
    ``models``  learned one after the other, each by its default learner: what it learns takes the
                place of the tables of the same names. Their steps are in `Trace.warm_up`
    """

    params: Params
    models: Sequence[Model]


Start = Params | Callable[[np.random.Generator], Params]
Init = Start | WarmStart
OnStep = Callable[[State], object]

SHORT_RUN_BATCH = 256
"""How many items short runs look at before they take a step."""

SLACK = 1e-9
"""The fraction of its size by which an objective may fall through rounding alone."""

ROUNDING = 2.0**-43
"""The same, of the number of observations and of the counts that priors stand for. An objective may
be far smaller than the terms it is the sum of: n observations of probability 1 − ε have a
log-likelihood near 0, each of whose terms has an error of about 2^-53; and log Γ(n), of which the
bounds of variational Bayes are differences, is about n log n, for which 2^10 leaves room up to
n = 10^15 and beyond."""


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

    Under `EM` this is the textbook's algorithm,

        repeat
            E-step   counts, log p(x | θ)  =  Σ over shards of model.expect(θ, shard)
                     yield State(θ, log p(x | θ)), and stop if it has converged
            M-step   θ  =  family.maximise(counts) for every family of distributions

    Other learners fill in hidden values by the best or by draws (`Learner.e`), make parameters
    from counts in another way (`Learner.m`), or more often (`Learner.schedule`).

    A state's parameters and its figures belong together: the E-step at θ_t gives state t.
    ``run`` tells restarts of one seed apart; ``theory`` fills in ``q`` and ``bound``.
    To read it to the end: ``for state in trace(model, data, EM(), start=params): ...``.
    """
    with open_session(model, data, engine, learner.schedule.batch_size, seed) as session:
        return (yield from Run(model, session, learner, seed, run, theory).trace(start))


def open_session(
    model: Model, data: Corpus, engine: Engine | None, batch_size: int | None = None, seed: int = 0
) -> Session:
    """The data's shards, opened on the engine (`Local` if None)."""
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
) -> Fit:
    """Learn to the end, ``learner.n_init`` times, and keep the best run.

    ``learner``      how; None: by the model's ``default_learner``
    ``init``         start parameters, a function that makes some from random numbers, or a
                     `WarmStart`
    ``short_runs``   try so many starts by two quick passes each; go on from the best. One short run
                     is a warm-up: of a start that is given there is none, nor for mini-batches
    ``development``  choose the run by the log-likelihood of these data, not by the objective
    ``on_step``      called with every state; a run stops when one of them returns True
    ``keep_params``  keep the parameters of every step in the trace
    ``keep_local``   keep parameters that belong to items as well, in ``local`` and (with
                     ``keep_params``) in the trace; for models that have such (`Model.local_name`)

    The first Ctrl-C ends the run after the step it is in: what it has learned by then is kept, and
    the verdict says so. A second one leaves at once.
    """
    learner = learner or model.default_learner
    runs_differ = callable(init) or learner.stochastic or learner.schedule.shuffles
    if learner.n_init > 1 and not runs_differ:
        raise LearnerError(
            f"all {learner.n_init} runs would be the same: they begin at the same parameters, and "
            f"{type(learner).__name__} leaves nothing to chance",
            "set n_init=1, or let init be random",
        )
    warm_up: list[Trace] = []
    if isinstance(init, WarmStart):
        start = dict(init.params)
        for simpler in init.models:
            tables = {name: start[name] for name in simpler.families}
            before = fit(simpler, data, None, engine, init=tables, keep_params=keep_params)
            start |= before.params
            warm_up.append(before.trace)
        init = start
    may_warm_up = callable(init) and learner.schedule.batch_size is None
    if short_runs > 1 or (short_runs == 1 and may_warm_up):
        init = _best_of_short_runs(model, data, learner, engine, init, short_runs)
    watchers = (on_step,) if callable(on_step) else tuple(on_step)
    results: list[_Result] = []
    with open_session(model, data, engine, learner.schedule.batch_size, seed) as session:
        for number in range(learner.n_init):
            run = Run(model, session, learner, seed, number, theory, keep_local)
            results.append(run.drain(init, watchers, keep_params))
            if keep_local and development is None:  # tables of items are large: keep one run's
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
    return Fit(
        params=results[best].params,
        trace=traces[best],
        traces=traces,
        signature=f"softcount {__version__} · {model.name} · {learner} · seed {seed} · {shards}",
        draws=tuple(result.draws for result in results) if learner.m == "draw" else (),
        diagnostics=diagnostics,
        priors=results[best].priors,
        local=results[best].local,
    )


def _best_of_short_runs(
    model: Model, data: Corpus, learner: Learner, engine: Engine | None, init: Init, short_runs: int
) -> Callable[[np.random.Generator], Params]:
    """A start that is the best of some, each tried by a short stepwise run.

    Mini-batches learn most of what there is to learn in a pass or two (Liang & Klein 2009), which
    is enough to tell good starts from bad ones.
    """
    if not callable(init):
        raise LearnerError(
            f"all {short_runs} short runs would begin at the same parameters", "let init be random"
        )
    size = max(1, min(SHORT_RUN_BATCH, len(data) // 4))
    stepwise = OnlineEM if learner.m == "maximise" else StochasticVB
    short_run = stepwise(max_iter=2, tol=0.0, n_init=short_runs, batch_size=size)

    def best(rng: np.random.Generator) -> Params:
        return fit(model, data, short_run, engine, init=init, seed=int(rng.integers(2**31))).params

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


PURPOSES = ("start", "expect", "update", "order", "collapse", "sweep")
"""What random numbers are for; each purpose has its own streams."""


class Run:
    """One run from one start: the model's E-step on the engine, the learner's update of families.

    It is what schedules ask for E- and M-steps: of it they need not know the model, the data or
    the engine.

    ``run``         tells restarts of one seed apart
    ``theory``      record Q and the bound of every step
    ``keep_local``  keep parameters that belong to items
    ``first_step``  the number of the first step: not 0 where a stream goes on
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
    ) -> None:
        if theory:
            demand_bound(model)
        if theory and not (learner.e == "soft" and isinstance(learner.schedule, Batch)):
            raise LearnerError(
                f"theory=True: Q and the bound belong to soft batch steps, not to {learner}",
                "use EM() or VariationalBayes(), or theory=False",
            )
        self.model, self.session, self.learner = model, session, learner
        self.families = model.families
        self.prior_size = sum(family.prior_size for family in self.families.values())
        self.theory, self.keep_local, self.step = theory, keep_local, first_step
        self.last: Step | None = None
        self.before: Any = None
        """What the shards had of their own when the last E-step over all data began, if wanted."""
        self.moved_before = False
        """Whether that E-step, one of a mini-batch, moved it before it counted."""
        self._temper: float | None = None
        self._seed, self._run = seed, run
        self._used: Counter[str] = Counter()

    # the loop

    def trace(self, start: Params) -> Generator[State, None, Verdict]:
        """Every state, the start included; returns the verdict (see `trace`)."""
        self.session.reset()
        params = check_start(self.families, start)
        schedule = self.learner.schedule
        if schedule.streams:
            tables = Tables(params, 0.0)
        elif self.learner.m == "mean_field":
            tables = Tables(params, -np.inf)  # a variational posterior does not exist yet
        else:
            tables = self.tables(params)
        before: State | None = None
        began = time.perf_counter()
        for step in schedule.steps(self, tables):
            now = self._state(step, time.perf_counter() - began)
            self.last = step
            verdict = self._judge(before, now)
            yield now
            if verdict:
                return verdict
            before = now
            self.step += 1
            began = time.perf_counter()
        assert before is not None
        if schedule.ending:
            return schedule.ending
        return Verdict.STUCK if self._indistinguishable(before.params) else Verdict.CONVERGED

    def _state(self, step: Step, seconds: float) -> State:
        """The step's figures; ``seconds`` is what this step alone took."""
        families, stats, params = self.families, step.stats, step.tables.params
        change = q = bound = float("nan")
        comparable = not self.learner.schedule.streams and not isinstance(params, Pending)
        if self.last and comparable:
            old = self.last.tables.params
            changes = [f.change(old[name], params[name]) for name, f in families.items()]
            change = max(changes, default=0.0)
            if self.theory:
                seen, beside = self.last.stats, self.last.stats.uncounted
                was = expected_log(families, seen.counts, old) + beside.expected
                q = expected_log(families, seen.counts, params) + beside.ahead
                bound = q + (seen.score - beside.prior) - was
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
            rounding=ROUNDING * (observed + self.prior_size),
        )

    def _judge(self, before: State | None, now: State) -> Verdict | None:
        """The verdict, if the run ends with the step ``now``; None if it goes on."""
        model, learner = self.model, self.learner
        if np.isnan(now.objective):
            raise SoftcountError(
                f"the objective is not a number at step {now.step}",
                "this is a fault of the model: its E-step returned NaN; run check_model on it",
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
            # whether the step changed next to nothing; tol = 0: nothing at all
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
            return Verdict.CONVERGED
        few_are_meant = model.few_steps and learner == model.default_learner
        return Verdict.ENOUGH if few_are_meant else Verdict.OUT_OF_STEPS

    def _indistinguishable(self, params: Params) -> bool:
        """Whether every family that has rows to compare finds them all the same."""
        answers = [family.alike(params[name]) for name, family in self.families.items()]
        compared = [answer for answer in answers if answer is not None]
        return bool(compared) and all(compared)

    def drain(self, init: Start, watchers: Sequence[OnStep], keep_params: bool) -> _Result:
        """Run to the end."""
        start = init(self.rng("start")) if callable(init) else init
        states, draws, kept = [], [], []
        steps = self.trace(start)
        while True:
            try:
                state = next(steps)
            except StopIteration as end:
                verdict = end.value
                break
            bare = replace(state, params={})
            if keep_params:
                own = self._local(self.model.rows_used) if self.keep_local else {}
                states.append(replace(state, params={**state.params, **own}))
            else:
                states.append(bare)
            if self.learner.keeps(state.step):
                draws.append(dict(state.params))
                kept.append(bare)
            answers = [watch(state) for watch in watchers]
            # True and nothing else stops: many a callback returns something by accident
            if any(isinstance(answer, bool | np.bool_) and answer for answer in answers):
                verdict = Verdict.STOPPED
                break
            if interrupt.asked():
                verdict = Verdict.INTERRUPTED
                interrupt.tell(self.learner.schedule.where(state.step, len(self.session)))
                break
        assert self.last is not None
        tables = self.last.tables
        # what is reported: the mean of the draws, the posterior mean, or where the run ended
        families, params = self.families.items(), tables.params
        if draws:
            params = {name: f.average([draw[name] for draw in draws]) for name, f in families}
        elif self.learner.m == "mean_field" and tables.counts is not None:
            params = {name: f.mean(tables.counts[name], params[name]) for name, f in families}
        return _Result(
            dict(params),
            Trace(tuple(states), verdict, keep_params),
            tuple(draws),
            tuple(kept),
            tables.priors,
            self._local(self.model.rows_reported) if self.keep_local else {},
        )

    def _local(self, rows: Expect) -> Params:
        """What belongs to items, of the state that was looked at last."""
        assert self.last is not None
        now = self.session.snapshot()
        self.session.restore(self.before)
        how = EStep(score_only=True, update=self.learner.m, mini_batch=self.moved_before)
        try:
            found = self.session.each(rows, self.last.tables.params, how)
        finally:
            self.session.restore(now)
        numbers = np.concatenate([np.asarray(stats.counts["numbers"]) for stats in found])
        parts = np.concatenate([np.asarray(stats.counts["rows"]) for stats in found])
        table = np.empty_like(parts)
        table[numbers] = parts
        return {self.model.local_name: table}

    # E-steps

    def e_step(self, tables: Tables) -> Step:
        """An E-step over all data: counts, log-likelihood, and the objective at these tables."""
        stats = self.expect(tables.params)
        return Step(tables, stats, stats.score + tables.penalty)

    def expect(self, params: Params, shards: Sequence[int] | None = None) -> Stats:
        """An E-step over some shards (all, if None), summed in a fixed order."""
        how = self._how(whole=shards is None)
        return self.session.expect(self.model.expect, params, how, shards)

    def expect_each(self, params: Params, shards: Sequence[int]) -> list[Stats]:
        """An E-step over some shards, one answer each."""
        return self.session.each(self.model.expect, params, self._how(), shards)

    def score(self, params: Params) -> Stats:
        """How well all data fit (score, log-likelihood, items and tokens; counts may be empty)."""
        return self.session.expect(self.model.expect, params, self._how(score_only=True))

    def _how(self, *, whole: bool = True, score_only: bool = False) -> EStep:
        """How the next E-step is done; ``whole``: what the shards have now is what it sees.

        A step's figures are those of what the shards have *before* its E-step moves it (but for
        what a mini-batch moves before it counts: its E-step is asked in the same way).
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
        """The power β of E-steps: the learner's at this step, unless it is set."""
        return self.learner.temper_at(self.step) if self._temper is None else self._temper

    @temper.setter
    def temper(self, beta: float) -> None:
        self._temper = beta

    def held_out_log_likelihood(self, params: Params) -> Stats:
        """How well the held-out data fit (log-likelihood and tokens), as the shards now stand."""
        if not self.model.holds_out:
            raise LearnerError(
                f"{self.model.name} has no held-out words, by which {self.learner} would end",
                "use EM(); the temper is chosen on held-out words for topic models alone",
            )
        how = EStep(score_only=True)
        return self.session.expect(self.model.held_out_log_likelihood, params, how)

    def collapse(self, params: Params) -> Sampler:
        """The model's collapsed sampler; its hidden values begin as a draw given ``params``."""
        return self.model.collapse(self.session.shards, params, self.stream("collapse"))

    # M-steps

    def m_step(self, stats: Stats, tables: Tables) -> Tables:
        """New tables from the counts: every family's parameters, as the learner makes them."""
        rng = self.rng("update")
        params = {
            name: family.update(self.learner.m, stats.counts[name], tables.params[name], rng)
            for name, family in self.families.items()
        }
        return self.tables(params, stats.counts)

    def tables(self, params: Params, counts: Mapping[str, Counts] | None = None) -> Tables:
        """Parameters with their penalty; ``counts``: what they were made from, if from any."""
        families = self.families.items()
        if counts is not None and self.learner.m == "mean_field":
            price = sum(family.divergence(counts[name], params[name]) for name, family in families)
            return Tables(params, -price, counts)
        # nobody asks a point for its counts: let go of them
        return Tables(params, sum(family.log_prior(params[name]) for name, family in families))

    # random numbers

    def rng(self, purpose: str) -> np.random.Generator:
        """Fresh random numbers; the same for the same seed, whatever the threads do."""
        return np.random.Generator(np.random.PCG64(self._seeds(purpose)))

    def stream(self, purpose: str) -> int:
        """As `rng`: a fresh number to seed a kernel with."""
        return int(self._seeds(purpose).generate_state(1, np.uint64)[0])

    def _seeds(self, purpose: str) -> np.random.SeedSequence:
        """A new stream: by seed, run, purpose, and how often that purpose asked before."""
        key = (self._run, PURPOSES.index(purpose), self._used[purpose])
        self._used[purpose] += 1
        return np.random.SeedSequence(self._seed, spawn_key=key)
