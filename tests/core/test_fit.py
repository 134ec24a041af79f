"""The loop: worked examples, verdicts, restarts, callbacks, streams, and what cannot be begun."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from softcount._version import __version__
from softcount.core.errors import DataError, LearnerError, SoftcountError, StartError
from softcount.core.fit import fit, trace
from softcount.core.types import Stats
from softcount.core.verdict import Verdict
from softcount.engines import Local
from softcount.learners import (
    EM,
    Gibbs,
    HardEM,
    IncrementalEM,
    MonteCarloEM,
    OnlineEM,
    Squarem,
    StochasticVB,
    VariationalBayes,
)
from tests.oracles.toy import Coins, ThrowsCorpus, em_step, params, random_start, simulate

FOUR = ThrowsCorpus(["HHH", "TTT", "HHH", "TTT"])
START = params((0.3, 0.7), (0.3, 0.6))
MIXED = ThrowsCorpus(simulate(60, (0.4, 0.6), (0.2, 0.8), 5, seed=1), n_shards=7)


def test_example_a1_step_by_step():
    result = fit(Coins(), FOUR, EM(max_iter=3, tol=0), init=START, keep_params=True)
    assert np.round(result.trace.log_likelihood, 6).tolist() == [
        -7.499076,
        -4.931993,
        -2.945809,
        -2.772725,
    ]
    lam = [round(float(p["which"][0, 0]), 4) for p in result.trace.params]
    heads = [np.round(p["flip"][:, 0], 4).tolist() for p in result.trace.params]
    assert lam == [0.3, 0.3738, 0.4859, 0.5]
    assert heads == [[0.3, 0.6], [0.068, 0.7578], [0.0004, 0.9722], [0.0, 1.0]]
    assert result.verdict is Verdict.OUT_OF_STEPS
    assert np.array_equal(result.trace.objective, result.trace.log_likelihood)
    assert fit(Coins(), FOUR, EM(), init=START).verdict is Verdict.CONVERGED


def test_example_a2_is_stuck_and_says_so():
    start = params((0.3, 0.7), (0.7, 0.7))
    for learner in (EM(), EM(max_iter=5, tol=0), EM(schedule=Squarem()), IncrementalEM()):
        result = fit(Coins(), FOUR, learner, init=start)
        assert result.verdict is Verdict.STUCK
        assert np.allclose(result.params["which"], [[0.3, 0.7]])
        assert np.allclose(result.params["flip"], 0.5)
        assert np.round(result.trace.log_likelihood[:1], 6).tolist() == [-9.363886]
        assert round(result.trace.log_likelihood[-1], 6) == -8.317766


def test_one_class_has_nothing_to_be_confused_with():
    model = Coins(1)
    assert fit(model, FOUR, EM(), init=random_start(model)).verdict is Verdict.CONVERGED


def test_example_a3_with_the_misprint_put_right():
    data = ThrowsCorpus(["HHH", "HHH", "TTT"])
    result = fit(Coins(), data, EM(max_iter=1), init=params((0.1, 0.9), (0.8, 0.5)))
    assert round(float(result.params["which"][0, 0]), 4) == 0.2109
    assert np.round(result.params["flip"][:, 0], 4).tolist() == [0.9888, 0.5806]


def test_example_a4_labels_make_it_supervised():
    data = ThrowsCorpus([("A", "HHH"), ("A", "HHH"), ("B", "TTT")])
    result = fit(Coins(), data, EM(), init=params((0.5, 0.5), (0.5, 0.4)))
    assert np.allclose(result.params["which"], [[2 / 3, 1 / 3]])
    assert result.params["flip"][:, 0].tolist() == [1.0, 0.0]
    assert result.verdict is Verdict.CONVERGED


def test_a_trace_is_states_and_a_verdict():
    model = Coins()
    steps = trace(model, FOUR, EM(max_iter=3, tol=0), start=START)
    states = []
    while True:
        try:
            states.append(next(steps))
        except StopIteration as end:
            verdict = end.value
            break
    assert verdict is Verdict.OUT_OF_STEPS
    assert [state.step for state in states] == [0, 1, 2, 3]
    assert model.calls == 4 * 3  # one E-step a state, on each of three shards
    for before, state in pairwise(states):
        moved = [np.abs(state.params[n] - before.params[n]).max() for n in state.params]
        assert state.change == max(moved)
    for state in states:  # parameters and figures belong together
        exact = em_step(state.params, FOUR.all.faces)[1]
        assert state.log_likelihood == pytest.approx(exact, abs=1e-12)
        assert state.perplexity == pytest.approx(np.exp(-exact / 12))
        assert state.seconds >= 0
    assert np.isnan(states[0].change)


def test_a_trace_may_be_left_at_any_time():
    steps = trace(Coins(), MIXED, EM(), Local(2), start=START)
    assert next(steps).step == 0
    steps.close()


class TestStopping:
    def test_by_objective(self):
        result = fit(Coins(), MIXED, EM(max_iter=1000, tol=1e-5), init=START)
        relative = np.abs(np.diff(result.trace.objective) / result.trace.objective[1:])
        assert result.verdict is Verdict.CONVERGED
        assert relative[-1] <= 1e-5
        assert (relative[:-1] > 1e-5).all()

    def test_by_change(self):
        result = fit(Coins(), MIXED, EM(max_iter=1000, tol=1e-3, stop="change"), init=START)
        assert result.verdict is Verdict.CONVERGED
        assert result.trace.change[-1] <= 1e-3
        assert (result.trace.change[1:-1] > 1e-3).all()

    def test_by_perplexity(self):
        learner = EM(max_iter=1000, tol=1e-4, stop="perplexity")
        result = fit(Coins(), MIXED, learner, init=START)
        relative = np.abs(np.diff(result.trace.perplexity) / result.trace.perplexity[1:])
        assert result.verdict is Verdict.CONVERGED
        assert relative[-1] <= 1e-4
        assert (relative[:-1] > 1e-4).all()

    def test_no_tolerance_runs_all_steps(self):
        data = ThrowsCorpus([("A", "HHH"), ("B", "TTT")])
        result = fit(Coins(), data, EM(max_iter=9, tol=0), init=START)
        assert len(result.trace) == 10
        assert result.verdict is Verdict.CONVERGED  # it stands still exactly, and one can see it

    def test_temper_must_have_settled(self):
        data = ThrowsCorpus([("A", "HHH"), ("B", "TTT")])  # still after one step
        result = fit(Coins(), data, EM(temper=(0.5, 0.5, 0.5, 0.5, 1.0)), init=START)
        assert len(result.trace) == 6
        assert [state.temper for state in result.trace] == [0.5, 0.5, 0.5, 0.5, 1.0, 1.0]
        assert result.verdict is Verdict.CONVERGED

    def test_a_fall_across_a_change_of_temper_is_no_fault(self):
        result = fit(Coins(), MIXED, EM(temper=(0.3, 0.3, 1.0)), init=START)
        assert result.trace.objective[2] < result.trace.objective[1]
        assert result.verdict is Verdict.CONVERGED

    def test_a_fall_is_reported(self):
        class Falls(Coins):
            def expect(self, params, shard, how, local=None):
                stats = super().expect(params, shard, how, local)
                self.worse = getattr(self, "worse", 0) + 1
                return Stats(stats.counts, stats.log_likelihood, stats.score - self.worse, 1, 1)

        result = fit(Falls(), MIXED, EM(), Local(1), init=START)
        assert result.verdict is Verdict.FELL
        assert not result.verdict.good
        assert len(result.trace) == 2
        drawn = fit(Falls(), MIXED, MonteCarloEM(max_iter=4), Local(1), init=START)
        assert drawn.verdict is Verdict.SAMPLED  # which may go down as it likes

    def test_what_is_not_a_number_is_an_error(self):
        class Broken(Coins):
            def expect(self, params, shard, how, local=None):
                return Stats(super().expect(params, shard, how, local).counts, 0.0, np.nan, 1, 1)

        with pytest.raises(SoftcountError, match="the objective is NaN at step 0"):
            fit(Broken(), MIXED, EM(), init=START)

    def test_samplers_run_their_course(self):
        result = fit(Coins(), FOUR, MonteCarloEM(max_iter=15), init=START)
        assert len(result.trace) == 16
        assert result.verdict is Verdict.SAMPLED


class TestCallbacks:
    def test_stop_the_run(self):
        seen = []

        def enough(state):
            seen.append(state.step)
            return state.step == 2

        result = fit(Coins(), MIXED, EM(tol=0), init=START, on_step=enough)
        assert seen == [0, 1, 2]
        assert len(result.trace) == 3
        assert result.verdict is Verdict.STOPPED

    def test_all_are_called_and_only_true_stops(self):
        seen = []
        watchers = [lambda state: True, seen.append, lambda state: "something"]
        result = fit(Coins(), MIXED, EM(tol=0), init=START, on_step=watchers)
        assert len(seen) == 1
        assert set(seen[0].params) == {"which", "flip"}
        assert result.verdict is Verdict.STOPPED
        again = fit(Coins(), MIXED, EM(max_iter=3, tol=0), init=START, on_step=watchers[1:])
        assert len(again.trace) == 4

    def test_stopping_a_sampler_or_vb_early_leaves_proper_parameters(self):
        for learner in (Gibbs(n_init=2, max_iter=50), VariationalBayes()):
            result = fit(Coins(), MIXED, learner, init=START, on_step=lambda state: True)
            assert result.verdict is Verdict.STOPPED
            assert all(np.array_equal(result.params[name], START[name]) for name in START)


class TestRestarts:
    model = Coins(3)

    def test_the_best_is_kept_and_all_are_remembered(self):
        learner = EM(n_init=5, max_iter=8, tol=0)
        result = fit(self.model, MIXED, learner, init=random_start(self.model))
        ends = [run.objective[-1] for run in result.traces]
        assert len(set(ends)) == 5
        assert result.trace is result.traces[int(np.argmax(ends))]
        exact = em_step(result.params, MIXED.all.faces)[1]
        assert exact == pytest.approx(max(ends))

    def test_development_data_choose(self):
        development = ThrowsCorpus(["HTHTH", "HTHHT", "TTHTH"], n_shards=2)
        learner = EM(n_init=6, max_iter=3, tol=0)
        common = {"init": random_start(self.model), "seed": 2, "keep_params": True}
        result = fit(self.model, MIXED, learner, development=development, **common)
        scores = [em_step(run.params[-1], development.all.faces)[1] for run in result.traces]
        assert result.trace is result.traces[int(np.argmax(scores))]
        by_objective = fit(self.model, MIXED, learner, **common)
        assert not np.array_equal(by_objective.params["flip"], result.params["flip"])

    def test_from_one_start_all_runs_would_be_the_same(self):
        for learner in (EM(n_init=2), HardEM(n_init=2), VariationalBayes(n_init=3)):
            with pytest.raises(LearnerError, match="would be the same"):
                fit(Coins(), FOUR, learner, init=START)

    def test_from_one_start_chains_differ(self):
        for learner in (Gibbs(n_init=2, max_iter=8), OnlineEM(n_init=2, batch_size=5)):
            result = fit(Coins(), MIXED, learner, init=START)
            assert result.traces[0].objective[-1] != result.traces[1].objective[-1]


EVERYBODY = [
    EM(max_iter=5, tol=0),
    EM(max_iter=5, tol=0, schedule=Squarem()),
    HardEM(max_iter=5, tol=0),
    OnlineEM(max_iter=3, tol=0, batch_size=7),
    IncrementalEM(max_iter=3, tol=0),
    VariationalBayes(max_iter=5, tol=0),
    StochasticVB(max_iter=3, tol=0, batch_size=7),
    MonteCarloEM(max_iter=5),
    Gibbs(max_iter=12, n_init=2),
]


@pytest.mark.parametrize("learner", EVERYBODY, ids=str)
def test_same_bits_for_any_number_of_threads_and_the_same_seed(learner):
    model = Coins()

    def bits(threads, seed=5):
        result = fit(model, MIXED, learner, Local(threads), init=random_start(model), seed=seed)
        tables = [table.tobytes() for table in result.params.values()]
        return tables, result.trace.objective.tobytes(), result.signature

    assert bits(1) == bits(2) == bits(4)
    assert bits(2)[0] != bits(2, seed=6)[0]


def test_the_signature_makes_a_run_citable():
    result = fit(Coins(), MIXED, EM(max_iter=2), init=START, seed=7)
    version = re.escape(__version__)
    expected = rf"softcount {version} · coins · EM\(max_iter=2, tol=1e-06\) · seed 7 · 7 shards"
    assert re.fullmatch(expected, result.signature)


def test_parameters_are_kept_on_request_only():
    result = fit(Coins(), MIXED, EM(max_iter=2, tol=0), init=START)
    with pytest.raises(AttributeError, match="keep_params"):
        result.trace.params  # noqa: B018
    kept = fit(Coins(), MIXED, EM(max_iter=2, tol=0), init=START, keep_params=True)
    assert len(kept.trace.params) == 3


def test_vb_ends_with_the_posterior_mean():
    model = Coins(which=0.5, flip=0.5)
    result = fit(model, MIXED, VariationalBayes(), init=START, keep_params=True)
    weights = result.trace.params[-1]
    assert all(np.allclose(table.sum(axis=1), 1) for table in result.params.values())
    assert all((weights[name].sum(axis=1) < 1).all() for name in weights)


class TestWhatCannotBeBegun:
    def test_no_data(self):
        with pytest.raises(DataError, match="empty"):
            fit(Coins(), ThrowsCorpus([]), EM(), init=START)
        with pytest.raises(DataError, match="empty"):
            next(trace(Coins(), ThrowsCorpus([]), EM(), start=START))

    @pytest.mark.parametrize(
        ("value", "what"), [(np.nan, "NaN"), (np.inf, "infinite"), (-0.1, "negative")]
    )
    def test_improper_values(self, value, what):
        start = params((0.3, 0.7), (0.3, value))
        start["flip"][1, 1] = 0.5
        with pytest.raises(StartError, match=rf"'flip' has .*{what}.* index \(1, 0\)"):
            fit(Coins(), FOUR, EM(), init=start)

    def test_missing_unknown_and_misshapen_tables(self):
        with pytest.raises(StartError, match="flip"):
            fit(Coins(), FOUR, EM(), init={"which": START["which"]})
        with pytest.raises(StartError, match="flop"):
            fit(Coins(), FOUR, EM(), init={**START, "flop": START["flip"]})
        with pytest.raises(StartError, match=r"'flip' has the shape \(2, 2\), not \(3, 2\)"):
            fit(Coins(3), FOUR, EM(), init={**START, "which": np.full((1, 3), 1 / 3)})

    def test_weights_are_welcome(self):
        start = {"which": np.array([[1, 3]]), "flip": np.array([[1, 3], [2, 2]])}
        proper = params((0.25, 0.75), (0.25, 0.5))
        weights, shares = (fit(Coins(), FOUR, EM(), init=init) for init in (start, proper))
        assert weights.verdict is Verdict.CONVERGED
        assert np.allclose(weights.trace.objective, shares.trace.objective)

    def test_theory_where_there_is_none(self):
        for learner in (HardEM(), OnlineEM(), EM(schedule=Squarem()), Gibbs()):
            with pytest.raises(LearnerError, match="theory"):
                fit(Coins(), FOUR, learner, init=START, theory=True)


def test_a_sampler_leaves_draws_diagnostics_and_the_mean_of_its_best_chain():
    result = fit(Coins(), MIXED, Gibbs(max_iter=200, n_init=3), init=START, seed=3)
    assert set(result.diagnostics) == {"rhat", "ess_bulk", "ess_tail"}
    assert [len(chain) for chain in result.draws] == [100, 100, 100]
    assert all(np.isfinite(value) for value in result.diagnostics.values())
    means = [np.mean(run.objective[101:]) for run in result.traces]
    best = result.draws[int(np.argmax(means))]
    assert np.allclose(result.params["flip"], np.mean([draw["flip"] for draw in best], axis=0))
