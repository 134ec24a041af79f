"""Every learner on four stories: laws, exact steps, exact bounds, exact posteriors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from tests.oracles import enumeration, stories
from tests.oracles.told import Told, furthest, log_likelihood, nested

DATA: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "coins": (stories.coins, [("HHT",), ("TTT",), ("HHH",), ("HT",), ("TTH",)]),
    "hmm": (stories.hmm, [(list("abca"),), (list("ba"),), (list("cab"),), (list("aab"),)]),
    "ibm1": (
        stories.ibm1,
        [
            (["the", "house"], ["das", "Haus"]),
            (["the", "book"], ["das", "Buch"]),
            (["a", "book"], ["ein", "Buch"]),
            (["house"], ["Haus", "das"]),
        ],
    ),
    "pcfg": (stories.pcfg, [("abab",), ("ba",), ("aabb",), ("b",), ("ababa",)]),
}
LEARNERS = {
    "EM": sc.EM(max_iter=30),
    "Squarem": sc.EM(schedule=sc.learners.Squarem(), max_iter=30),
    "annealed": sc.EM(temper=sc.learners.anneal(start=0.2, steps=5), max_iter=30),
    "HardEM": sc.HardEM(max_iter=30),
    "OnlineEM": sc.OnlineEM(batch_size=2, max_iter=15),
    "IncrementalEM": sc.IncrementalEM(batch_size=2, max_iter=30),
    "VariationalBayes": sc.VariationalBayes(max_iter=30),
    "StochasticVB": sc.StochasticVB(batch_size=2, max_iter=15),
    "MonteCarloEM": sc.MonteCarloEM(samples=5, max_iter=15),
    "Gibbs": sc.Gibbs(n_init=2, max_iter=30),
}


@cache
def told(name: str) -> Told:
    factory, items = DATA[name]
    return Told(factory, items)


@pytest.mark.parametrize("story", DATA)
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_on_every_story(story: str, name: str) -> None:
    tale, learner = told(story), LEARNERS[name]
    model = tale.model(learner=learner, random_state=1).fit(tale.items)
    assert_proper(tale, model.fit_.params)
    objective = model.trace_.objective
    figures = objective[1:] if learner.m == "mean_field" else objective
    assert np.isfinite(figures).all()
    assert np.isfinite(model.trace_.log_likelihood).all()
    if learner.monotone and learner.temper == 1.0:
        slack = 1e-9 * np.maximum(1.0, np.abs(figures[1:]))
        assert (np.diff(figures) >= -slack).all()
    assert model.verdict_ not in (sc.Verdict.FELL, sc.Verdict.STUCK)
    assert (model.verdict_ is sc.Verdict.SAMPLED) == learner.stochastic
    if learner.m == "maximise":
        assert model.trace_.log_likelihood[-1] > model.trace_.log_likelihood[0]


def assert_proper(tale: Told, params: Any) -> None:
    """Every entry that occurs has a chance, and every row of them adds up to one."""
    tables = tale.readable(params)
    assert tables.keys() == set(enumeration.events(tale.corpus))
    for (name, condition), outcomes in enumeration.rows(tale.corpus).items():
        row = [tables[name, (*condition, outcome)] for outcome in outcomes]
        assert min(row) >= 0.0
        assert sum(row) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("story", DATA)
def test_the_laws_hold(story: str) -> None:
    tale = told(story)
    sc.check_model(tale.model(), tale.items).raise_if_failed()
    fitted = tale.model(learner=sc.EM(max_iter=3)).fit(tale.items)
    report = sc.check_model(fitted, tale.items, params=fitted.fit_.params, seed=1)
    report.raise_if_failed()
    assert "save and load" in [law.name for law in report]


@pytest.mark.parametrize("story", ["documents", "twice", "segmentation", "partly_tagged", "null"])
def test_the_laws_hold_for_odder_stories(story: str) -> None:
    factory, items = {
        "documents": (stories.documents, [(list("aab"),), (list("b"),), (list("abbb"),)]),
        "twice": (stories.twice, [("H",), ("T",), ("H",)]),
        "segmentation": (stories.segmentation, [("aab",), ("abab",), ("ababab",)]),
        "partly_tagged": (
            stories.partly_tagged,
            [([("a", None), ("b", "X")],), ([("b", None), ("a", None)],), ([("a", "Y")],)],
        ),
        "null": (stories.ibm1_null, DATA["ibm1"][1]),
    }[story]
    tale = Told(factory, items)
    sc.check_model(tale.model(), tale.items).raise_if_failed()


# EM against brute force, step by step


@pytest.mark.parametrize("story", DATA)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), alpha=st.sampled_from([1.0, 1.5, 3.0]))
def test_em_takes_the_same_steps(story: str, seed: int, alpha: float) -> None:
    tale = told(story)
    weights = tale.random(seed)
    model = tale.model(learner=sc.EM(max_iter=4, tol=0), prior=alpha)
    model.fit(tale.items, init=nested(weights), keep_params=True)
    for step, params in enumerate(model.trace_.params):
        assert furthest(tale.readable(params), weights) <= 1e-10
        expected = log_likelihood(tale.corpus, weights)
        assert model.trace_.log_likelihood[step] == pytest.approx(expected, rel=1e-10)
        objective = expected + enumeration.log_prior(weights, alpha)
        assert model.trace_.objective[step] == pytest.approx(objective, rel=1e-10)
        weights = enumeration.em_step(tale.corpus, weights, alpha)


@pytest.mark.parametrize("story", DATA)
def test_annealed_em_takes_the_same_steps(story: str) -> None:
    tale = told(story)
    betas = (0.2, 0.5, 1.0, 1.0)
    weights = tale.random(3)
    model = tale.model(learner=sc.EM(max_iter=3, tol=0, temper=betas))
    model.fit(tale.items, init=nested(weights), keep_params=True)
    for params, beta in zip(model.trace_.params, betas, strict=True):
        assert furthest(tale.readable(params), weights) <= 1e-10
        weights = enumeration.em_step(tale.corpus, weights, beta=beta)


@pytest.mark.parametrize("story", DATA)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_hard_em_takes_the_same_first_step(story: str, seed: int) -> None:
    """Later steps may meet ties, which may be broken either way."""
    tale = told(story)
    weights = tale.random(seed)
    model = tale.model(learner=sc.HardEM(max_iter=1, tol=0))
    model.fit(tale.items, init=nested(weights), keep_params=True)
    best = sum(enumeration.best_score(item, weights) for item in tale.corpus)
    assert model.trace_.objective[0] == pytest.approx(best, rel=1e-10)
    counts = enumeration.hard_counts(tale.corpus, weights)
    after = enumeration.normalised(counts, enumeration.events(tale.corpus), weights)
    assert furthest(tale.readable(model.trace_.params[1]), after) <= 1e-10


@pytest.mark.parametrize("story", DATA)
def test_online_em_blends_counts(story: str) -> None:
    """All data in one batch: from the start's counts η₁ = (1 + t0)^−κ of the way to the next."""
    tale = told(story)
    weights = tale.random(8)
    learner = sc.OnlineEM(batch_size=100, kappa=0.7, t0=2.0, max_iter=1, tol=0)
    model = tale.model(learner=learner)
    model.fit(tale.items, init=nested(weights), keep_params=True)
    shape, eta = enumeration.events(tale.corpus), 3.0**-0.7
    first = enumeration.corpus_counts(tale.corpus, weights)
    between = enumeration.normalised(first, shape, weights)
    second = enumeration.corpus_counts(tale.corpus, between)
    blended = {event: (1 - eta) * first[event] + eta * second[event] for event in shape}
    after = enumeration.normalised(blended, shape, between)
    assert furthest(tale.readable(model.trace_.params[1]), after) <= 1e-10


@pytest.mark.parametrize("story", DATA)
@pytest.mark.parametrize("name", ["IncrementalEM", "Squarem"])
def test_faster_learners_end_where_em_stands_still(story: str, name: str) -> None:
    tale = told(story)
    schedule = (
        sc.learners.Incremental(batch_size=2) if name == "IncrementalEM" else sc.learners.Squarem()
    )
    learner = sc.Learner(schedule=schedule, max_iter=3000, tol=1e-14)
    model = tale.model(learner=learner, prior=1.2).fit(tale.items, init=nested(tale.random(2)))
    here = tale.readable(model.fit_.params)
    assert furthest(here, enumeration.em_step(tale.corpus, here, 1.2)) <= 1e-5


@pytest.mark.parametrize("story", DATA)
def test_monte_carlo_em_steps_are_em_steps_on_average(story: str) -> None:
    """With many draws a step is EM's, within five standard errors of a mean of them."""
    tale = told(story)
    weights, samples = tale.random(4), 4000
    model = tale.model(learner=sc.MonteCarloEM(samples=samples, max_iter=1))
    model.fit(tale.items, init=nested(weights), keep_params=True)
    after = enumeration.em_step(tale.corpus, weights)
    assert furthest(tale.readable(model.trace_.params[1]), after) <= 5 * 0.5 / math.sqrt(samples)


# variational Bayes


@pytest.mark.parametrize("story", DATA)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), alpha=st.sampled_from([0.3, 1.0, 2.0]))
def test_variational_bayes_takes_the_same_steps(story: str, seed: int, alpha: float) -> None:
    tale = told(story)
    weights = tale.random(seed)
    model = tale.model(learner=sc.VariationalBayes(max_iter=4, tol=0), prior=alpha)
    model.fit(tale.items, init=nested(weights), keep_params=True)
    assert model.trace_.objective[0] == -math.inf
    shape = enumeration.events(tale.corpus)
    counts = enumeration.corpus_counts(tale.corpus, weights)
    here = enumeration.Variational(counts, alpha, shape)
    for step in range(1, 5):
        assert furthest(tale.readable(model.trace_.params[step]), here.weights()) <= 1e-9
        elbo = here.elbo(tale.corpus)
        assert model.trace_.objective[step] == pytest.approx(elbo, rel=1e-9)
        last, here = here, here.step(tale.corpus)
    mean = enumeration.normalised({e: last.counts.get(e, 0.0) + alpha for e in shape}, shape)
    assert furthest(tale.readable(model.fit_.params), mean) <= 1e-9


TINY: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "coins": (stories.coins, [("HH",), ("T",), ("H",)]),
    "hmm": (stories.hmm, [(list("ab"),), (list("b"),), (list("aa"),)]),
    "ibm1": (stories.ibm1, [(["a", "b"], ["x", "y"]), (["b", "c"], ["y", "z"])]),
    "pcfg": (lambda t, s: stories.pcfg(t, s, ("SSA", "SAS", "AAA")), [("aba",), ("ab",), ("b",)]),
}


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("story", TINY)
def test_the_elbo_stays_below_the_evidence(story: str, alpha: float) -> None:
    tale = Told(*TINY[story])
    evidence = enumeration.log_evidence(tale.corpus, alpha)
    for seed in range(3):
        learner = sc.VariationalBayes(max_iter=60, tol=0)
        model = tale.model(learner=learner, prior=alpha, random_state=seed).fit(tale.items)
        elbo = model.trace_.objective[1:]
        assert (np.diff(elbo) >= -1e-9).all()
        assert elbo[-1] <= evidence
        assert elbo[-1] >= evidence - 6.0  # a bound, and not an idle one


# Gibbs


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.7, 2.0])
@pytest.mark.parametrize("story", TINY)
def test_gibbs_draws_have_the_exact_posterior_means(story: str, alpha: float) -> None:
    tale = Told(*TINY[story])
    learner = sc.Gibbs(n_init=8, max_iter=1200, burn_in=0.1)
    model = tale.model(learner=learner, prior=alpha).fit(tale.items)
    exact = enumeration.posterior_means(tale.corpus, alpha)
    chains = [
        {name: np.mean([draw[name] for draw in chain], axis=0) for name in chain[0]}
        for chain in model.fit_.draws
    ]
    means = [tale.readable(chain) for chain in chains]
    for event, expected in exact.items():
        values = np.array([mean[event] for mean in means])
        error = values.std(ddof=1) / math.sqrt(len(values)) + 1e-3
        assert abs(values.mean() - expected) <= 5 * error, event
        assert error <= 0.05, event  # else the test would prove nothing
