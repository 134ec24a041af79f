"""The laws of each combination of words, on models of a few lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import ImpossibleItem
from softcount.core.fit import fit
from softcount.core.types import SparseCounts, Stats
from softcount.core.verdict import Verdict
from softcount.families import SparseCategorical
from softcount.learners import (
    EM,
    Batch,
    Gibbs,
    HardEM,
    Incremental,
    IncrementalEM,
    Learner,
    MonteCarloEM,
    OnlineEM,
    Squarem,
    Stepwise,
    StochasticVB,
    VariationalBayes,
    anneal,
)
from tests.oracles.toy import (
    Coins,
    DocumentCorpus,
    ThrowsCorpus,
    Topics,
    em_step,
    evidence,
    params,
    plsa_step,
    posterior_mean,
    random_start,
    simulate,
)

TOSSES = st.lists(st.text("HT", min_size=1, max_size=6), min_size=2, max_size=12)
SEEDS = st.integers(0, 2**32 - 1)
OVERLAPPING = ThrowsCorpus(simulate(300, (0.4, 0.6), (0.35, 0.65), 5, seed=3))
START = params((0.5, 0.5), (0.4, 0.5))
CLIMBERS = [
    EM(max_iter=12, tol=0),
    EM(max_iter=12, tol=0, schedule=Squarem()),
    HardEM(max_iter=12, tol=0),
    HardEM(max_iter=12, tol=0, schedule=Squarem()),
    IncrementalEM(max_iter=12, tol=0),
    IncrementalEM(max_iter=12, tol=0, batch_size=1),
    VariationalBayes(max_iter=12, tol=0),
    Learner(max_iter=12, tol=0, m="mean_field", schedule=Incremental()),
    Learner(max_iter=12, tol=0, e="hard", m="mean_field"),
    Learner(max_iter=12, tol=0, e="hard", schedule=Incremental()),
    EM(max_iter=12, tol=0, temper=0.5),
    IncrementalEM(max_iter=12, tol=0, temper=0.5),
]


@pytest.mark.parametrize("learner", CLIMBERS, ids=str)
@given(items=TOSSES, seed=SEEDS, prior=st.sampled_from([1.0, 1.5, 3.0]), coins=st.integers(2, 3))
@settings(max_examples=25, deadline=None)
def test_what_cannot_fall_does_not_fall(learner, items, seed, prior, coins):
    model = Coins(coins, which=prior, flip=prior)
    result = fit(model, ThrowsCorpus(items), learner, init=random_start(model), seed=seed)
    assert learner.monotone
    assert result.verdict is not Verdict.FELL
    objective = result.trace.objective
    first = 1 if learner.m == "mean_field" else 0
    rise = np.diff(objective[first:])
    assert (rise >= -1e-9 * np.maximum(1, np.abs(objective[first:-1]))).all()
    for name, table in result.params.items():
        assert np.allclose(table.sum(axis=1), 1), name


@given(items=TOSSES, seed=SEEDS)
@settings(max_examples=50, deadline=None)
def test_em_is_em(items, seed):
    """Every step equals EM written out in plain numpy."""
    model, data = Coins(), ThrowsCorpus(items)
    learner = EM(max_iter=4, tol=0)
    result = fit(model, data, learner, init=random_start(model), seed=seed, keep_params=True)
    at = result.trace.params[0]
    for state in result.trace:
        assert all(np.allclose(state.params[name], at[name], atol=1e-10) for name in at)
        at, log_likelihood = em_step(at, data.all.faces)
        assert state.log_likelihood == pytest.approx(log_likelihood, abs=1e-9)
        assert state.objective == state.log_likelihood


def e_steps(learner, data, start):
    model = Coins()
    result = fit(model, data, learner, init=start)
    return model.calls / len(data.shards(None, 0)), result


def test_squarem_needs_fewer_e_steps_for_the_same_place():
    plain, slow = e_steps(EM(max_iter=5000, tol=1e-10), OVERLAPPING, START)
    leaping, fast = e_steps(EM(max_iter=5000, tol=1e-10, schedule=Squarem()), OVERLAPPING, START)
    assert slow.verdict is fast.verdict is Verdict.CONVERGED
    assert leaping < plain / 2
    assert fast.trace.objective[-1] >= slow.trace.objective[-1] - 1e-6
    assert (np.diff(fast.trace.objective) >= 0).all()


def test_squarem_leaves_zeros_at_zero():
    start = {"which": np.array([[0.5, 0.5]]), "flip": np.array([[1.0, 0.0], [0.4, 0.6]])}
    data = ThrowsCorpus(["HHH", "HTT", "HHT", "TTT", "HHH"])
    result = fit(Coins(), data, EM(max_iter=60, schedule=Squarem()), init=start)
    plain = fit(Coins(), data, EM(max_iter=2000, tol=1e-13), init=start)
    assert result.params["flip"][0].tolist() == [1.0, 0.0]
    assert result.trace.objective[-1] == pytest.approx(plain.trace.objective[-1], abs=1e-5)


def test_squarem_takes_the_plain_step_where_the_leap_is_impossible():
    class Picky(Coins):
        def expect(self, params, shard, how, local=None):
            stats = super().expect(params, shard, how, local)
            if self.calls == 5:  # the start, two plain steps, one more, and then the first leap
                raise ImpossibleItem("nothing explains this item")
            return stats

    data = ThrowsCorpus(["HHT", "TTH", "HHH", "T"], n_shards=1)
    leaping = fit(Picky(), data, EM(max_iter=2, tol=0, schedule=Squarem()), init=START)
    plain = fit(Coins(), data, EM(max_iter=4, tol=0), init=START)
    assert leaping.trace.objective.tolist() == plain.trace.objective[::2].tolist()


def test_incremental_has_the_fixed_points_of_em():
    model = Coins()
    em = fit(model, OVERLAPPING, EM(max_iter=20000, tol=1e-14), init=START)
    learner = IncrementalEM(max_iter=20000, tol=1e-14, batch_size=50)
    incremental = fit(model, OVERLAPPING, learner, init=START)
    for name in em.params:
        assert np.allclose(incremental.params[name], em.params[name], atol=1e-4)
    assert len(incremental.trace) < len(em.trace)
    stay = fit(model, OVERLAPPING, IncrementalEM(max_iter=1), init=em.params)
    assert np.allclose(stay.params["flip"], em.params["flip"], atol=1e-6)


def test_incremental_reports_a_bound_and_the_exact_likelihood():
    result = fit(Coins(), OVERLAPPING, IncrementalEM(max_iter=8, tol=0), init=START)
    gap = result.trace.log_likelihood - result.trace.objective
    assert gap[0] == pytest.approx(0, abs=1e-9)
    assert (gap >= -1e-9).all()
    assert gap[1] > 1e-6
    exact = em_step(result.params, OVERLAPPING.all.faces)[1]
    assert result.trace.log_likelihood[-1] == pytest.approx(exact)


def test_stepwise_comes_near_em_in_few_passes():
    data = ThrowsCorpus(simulate(3000, (0.4, 0.6), (0.2, 0.8), 6, seed=5))
    model = Coins()
    em = fit(model, data, EM(max_iter=500, tol=1e-10), init=START)
    online = fit(model, data, OnlineEM(max_iter=4, tol=0, batch_size=50), init=START, seed=1)
    assert len(online.trace) == 5
    assert online.trace.log_likelihood[-1] == pytest.approx(em.trace.log_likelihood[-1], rel=1e-3)
    assert np.allclose(online.params["flip"], em.params["flip"], atol=0.03)
    exact = em_step(online.params, data.all.faces)[1]
    assert online.trace.log_likelihood[-1] == pytest.approx(exact)


def test_what_is_rare_stays_possible_in_stepwise_learning():
    """A face that only one batch of many has ever seen, and no prior to keep it alive."""
    data = ThrowsCorpus(["HHH"] * 50 + ["HTH"])
    result = fit(Coins(), data, OnlineEM(max_iter=3, tol=0, batch_size=1), init=START)
    assert np.isfinite(result.trace.objective).all()
    assert result.params["flip"][:, 1].max() > 0


def test_stepwise_blends_as_the_formula_says():
    data = ThrowsCorpus(["HHH", "TTT", "HHT", "HTT"])
    learner = Learner(schedule=Stepwise(batch_size=3, kappa=0.8, t0=1.0), max_iter=1, tol=0)
    result = fit(Coins(), data, learner, init=START, seed=4)
    shards = data.shards(3, 4)

    def counts(at, shard):
        joint = at["which"] * np.prod(at["flip"][None] ** shard.faces[:, None], axis=2)
        posterior = joint / joint.sum(axis=1, keepdims=True)
        return 4 / len(joint) * posterior.T @ np.c_[np.ones(len(joint)), shard.faces]

    def by_hand(order):
        average = counts(START, data.all)
        for t in range(3):
            which, flip = average[:, 0], average[:, 1:]
            at = {"which": which[None] / which.sum(), "flip": flip / flip.sum(1, keepdims=True)}
            if t == 2:
                return at["flip"]
            eta = (t + 1 + 1.0) ** -0.8
            average = (1 - eta) * average + eta * counts(at, order[t])

    found = [np.allclose(result.params["flip"], by_hand(o)) for o in (shards, shards[::-1])]
    assert any(found)  # the order of batches is the learner's own
    assert not np.allclose(by_hand(shards), by_hand(shards[::-1]))


def test_stepwise_passes_over_batches_that_weigh_nothing():
    class Weighted(Coins):
        def expect(self, params, shard, how, local=None):
            stats = super().expect(params, shard, how, local)
            weight = float(shard.number[0] % 2)
            counts = {name: weight * table for name, table in stats.counts.items()}
            return Stats(counts, weight * stats.score, weight * stats.score, weight, 1)

    learner = OnlineEM(max_iter=3, tol=0, batch_size=1)
    both = fit(Weighted(), ThrowsCorpus(["TTT", "HHH", "TTT", "HHT"]), learner, init=START)
    assert both.params["flip"][:, 0].min() > 0.6  # of the heavy ones, none has many tails


def test_variational_bayes_bounds_the_evidence():
    items = ["HHH", "TTT", "HHT", ("A", "HH"), "TTH"]
    for which, flip in ((0.5, 0.5), (1.0, 1.0), (2.0, 0.7)):
        model, data = Coins(which=which, flip=flip), ThrowsCorpus(items)
        log_evidence = evidence(data.all, 2, which, flip)
        learner = VariationalBayes(max_iter=200, tol=1e-12, n_init=5)
        for run in fit(model, data, learner, init=random_start(model)).traces:
            assert run.objective[0] == -np.inf
            assert run.objective[-1] <= log_evidence + 1e-9
            assert run.objective[-1] > log_evidence - 3


def test_variational_bayes_is_exact_when_nothing_is_hidden():
    items = [("A", "HHT"), ("B", "TT"), ("A", "H")]
    model, data = Coins(which=0.5, flip=1.5), ThrowsCorpus(items)
    result = fit(model, data, VariationalBayes(max_iter=3), init=START)
    assert result.trace.objective[-1] == pytest.approx(evidence(data.all, 2, 0.5, 1.5), abs=1e-10)
    exact = posterior_mean(data.all, 2, 0.5, 1.5)
    assert all(np.allclose(result.params[name], exact[name]) for name in exact)


def test_stochastic_vb_comes_near_vb():
    data = ThrowsCorpus(simulate(2000, (0.4, 0.6), (0.2, 0.8), 6, seed=6))
    model = Coins(which=0.5, flip=0.5)
    vb = fit(model, data, VariationalBayes(max_iter=200), init=START)
    stochastic = fit(model, data, StochasticVB(max_iter=5, batch_size=50), init=START)
    assert stochastic.trace.objective[-1] == pytest.approx(vb.trace.objective[-1], rel=1e-3)
    assert stochastic.trace.objective[-1] <= vb.trace.objective[-1] + 1e-6
    assert np.allclose(stochastic.params["flip"], vb.params["flip"], atol=0.03)


def test_gibbs_draws_from_the_exact_posterior():
    items = [("A", "HHH"), ("B", "T"), "HHT", "TTT", "HT"]
    prior = {"which": np.array([[2.0, 1.0]]), "flip": np.array([[1.5, 1.0], [1.0, 1.0]])}
    model, data = Coins(**prior), ThrowsCorpus(items, n_shards=2)
    learner = Gibbs(max_iter=3000, n_init=2, burn_in=0.1)
    result = fit(model, data, learner, init=random_start(model), seed=11)
    exact = posterior_mean(data.all, 2, **prior)
    assert result.verdict is Verdict.SAMPLED
    assert result.diagnostics["rhat"] < 1.02
    assert min(result.diagnostics["ess_bulk"], result.diagnostics["ess_tail"]) > 300
    for name, mean in exact.items():
        draws = np.array([draw[name] for chain in result.draws for draw in chain])
        assert draws.shape[0] == 2 * 2700
        error = 5 * draws.std(axis=0) / np.sqrt(500)  # never fewer than 500 independent draws
        assert (np.abs(draws.mean(axis=0) - mean) < np.minimum(error, 0.05)).all()
        assert np.allclose(result.params[name].sum(axis=1), 1)
    # the reported mean is that of one chain
    assert any(
        np.allclose(result.params["flip"], np.mean([d["flip"] for d in chain], axis=0))
        for chain in result.draws
    )


def test_monte_carlo_em_comes_near_em():
    model = Coins()
    em = fit(model, OVERLAPPING, EM(max_iter=3, tol=0), init=START)
    drawn = fit(model, OVERLAPPING, MonteCarloEM(max_iter=3, samples=400), init=START, seed=2)
    assert drawn.verdict is Verdict.SAMPLED
    assert np.allclose(drawn.params["flip"], em.params["flip"], atol=0.01)
    assert not np.array_equal(drawn.params["flip"], em.params["flip"])


def test_every_combination_runs():
    model, data = Coins(which=1.5, flip=1.5), ThrowsCorpus(["HHH", "TTT", "HHT", "TTH"])
    for e in ("soft", "hard", "sample"):
        for m in ("maximise", "mean_field", "draw"):
            for schedule in (Batch(), Stepwise(batch_size=2), Incremental(), Incremental(1)):
                learner = Learner(e=e, m=m, schedule=schedule, max_iter=6)
                result = fit(model, data, learner, init=START, seed=1)
                assert np.isfinite(result.trace.objective[1:]).all(), learner
                assert all(np.allclose(t.sum(axis=1), 1) for t in result.params.values()), learner


class SparseCoins(Coins):
    """The same coins in sparse tables, which stepwise learning scales lazily."""

    def __init__(self):
        super().__init__(2, which=1.5, flip=1.5)
        self.families = {
            "which": SparseCategorical(np.array([0, 2]), prior=1.5),
            "flip": SparseCategorical(np.array([0, 2, 4]), prior=1.5),
        }

    def expect(self, params, shard, how, local=None):
        dense = {name: np.asarray(table).reshape(-1, 2) for name, table in params.items()}
        stats = super().expect(dense, shard, how, local)
        flat = {name: table.reshape(-1) for name, table in stats.counts.items()}
        seen = {name: np.flatnonzero(table) for name, table in flat.items()}
        counts = {
            name: SparseCounts(seen[name], flat[name][seen[name]], len(flat[name])) for name in flat
        }
        return replace(stats, counts=counts)


@pytest.mark.parametrize(
    "learner",
    [
        EM(max_iter=4, tol=0),
        EM(max_iter=4, tol=0, schedule=Squarem()),
        OnlineEM(max_iter=4, tol=0, batch_size=9),
        StochasticVB(max_iter=4, tol=0, batch_size=9),
        IncrementalEM(max_iter=4, tol=0, batch_size=9),
        VariationalBayes(max_iter=4, tol=0),
    ],
    ids=str,
)
def test_sparse_tables_learn_as_dense_ones(learner):
    dense, sparse = Coins(2, which=1.5, flip=1.5), SparseCoins()
    flat = {name: table.reshape(-1) for name, table in START.items()}
    one = fit(dense, OVERLAPPING, learner, init=START, seed=8)
    other = fit(sparse, OVERLAPPING, learner, init=flat, seed=8)
    assert np.allclose(one.trace.objective, other.trace.objective, rtol=1e-12)
    for name, table in one.params.items():
        assert isinstance(other.params[name], np.ndarray)
        assert np.allclose(table.reshape(-1), other.params[name], atol=1e-10)


def documents():
    rng = np.random.default_rng(9)
    words = rng.dirichlet(np.full(8, 0.3), size=2)
    topics = rng.dirichlet(np.full(2, 0.5), size=14)
    return rng.poisson(12 * topics @ words).astype(float) + np.eye(14, 8)


def test_rows_that_belong_to_documents_are_learnt_where_they_are():
    counts = documents()
    model, data = Topics(2, 8), DocumentCorpus(counts)
    start = random_start(model)(np.random.default_rng(1))
    result = fit(model, data, EM(max_iter=25, tol=0), init=start)
    words, topics = start["words"], np.full((14, 2), 0.5)
    for state in result.trace:
        words, topics, log_likelihood = plsa_step(words, topics, counts)
        assert state.log_likelihood == pytest.approx(log_likelihood, abs=1e-8)


@pytest.mark.parametrize("schedule", [Squarem(), Incremental(), Incremental(4)], ids=str)
def test_local_rows_never_let_the_objective_fall(schedule):
    model, data = Topics(2, 8), DocumentCorpus(documents())
    for seed in range(8):
        learner = EM(max_iter=30, tol=0, schedule=schedule)
        result = fit(model, data, learner, init=random_start(model), seed=seed)
        assert (np.diff(result.trace.objective) >= -1e-9).all()
        assert result.verdict is not Verdict.FELL


def test_each_restart_begins_without_local_state():
    model, data = Topics(2, 8), DocumentCorpus(documents())
    start = random_start(model)
    twice = fit(model, data, EM(max_iter=5, tol=0, n_init=2), init=start, seed=3)
    first = fit(model, data, EM(max_iter=5, tol=0), init=start, seed=3)
    assert twice.traces[0].objective.tolist() == first.trace.objective.tolist()
    fixed = fit(model, data, EM(max_iter=1, tol=0, n_init=2), init=lambda rng: first.params)
    assert fixed.traces[0].objective.tolist() == fixed.traces[1].objective.tolist()


def test_annealing_makes_the_end_independent_of_the_start():
    """Deterministic annealing (Ueda & Nakano): bad starts end at the same height as good ones."""
    data = ThrowsCorpus(simulate(200, (0.3, 0.3, 0.4), (0.1, 0.5, 0.9), 8, seed=7))
    model = Coins(3)
    learner = EM(max_iter=1000, tol=1e-9, n_init=6, temper=anneal(start=0.2, steps=30))
    annealed = fit(model, data, learner, init=random_start(model), seed=1)
    assert all(run.verdict is Verdict.CONVERGED for run in annealed.traces)
    assert all(len(run) > 31 for run in annealed.traces)  # not before the temper had settled
    ends = [run.objective[-1] for run in annealed.traces]
    assert np.ptp(ends) < 0.05
    assert [state.temper for state in annealed.trace][:2] == pytest.approx([0.2, 0.2 ** (29 / 30)])
    assert annealed.trace[-1].temper == 1.0
