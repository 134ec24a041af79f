"""The learner's own dials: what they accept, and what they say of themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softcount.core.errors import LearnerError
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

WORDS = {
    EM: ("soft", "maximise", Batch),
    HardEM: ("hard", "maximise", Batch),
    OnlineEM: ("soft", "maximise", Stepwise),
    IncrementalEM: ("soft", "maximise", Incremental),
    VariationalBayes: ("soft", "mean_field", Batch),
    StochasticVB: ("soft", "mean_field", Stepwise),
    MonteCarloEM: ("sample", "maximise", Batch),
    Gibbs: ("sample", "draw", Batch),
}


@pytest.mark.parametrize("named", WORDS)
def test_named_learners_are_three_words(named):
    learner = named()
    assert (learner.e, learner.m, type(learner.schedule)) == WORDS[named]
    assert learner.monotone == (named in (EM, HardEM, IncrementalEM, VariationalBayes))
    assert learner.stochastic == (named in (MonteCarloEM, Gibbs))
    assert replace(learner, max_iter=7).max_iter == 7


@pytest.mark.parametrize(
    ("dials", "complaint"),
    [
        ({"e": "firm"}, "soft, hard, sample"),
        ({"m": "guess"}, "maximise, mean_field, draw"),
        ({"stop": "never"}, "objective, change, perplexity"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"max_iter": 2.5}, "max_iter=2.5"),
        ({"n_init": 0}, "n_init=0"),
        ({"samples": -1}, "samples=-1"),
        ({"tol": -1e-3}, "tol=-0.001"),
        ({"tol": float("nan")}, "tol=nan"),
        ({"temper": 0}, "temper=0"),
        ({"temper": ()}, "temper="),
        ({"temper": [0.5, -1.0]}, "temper="),
        ({"schedule": Squarem(), "m": "mean_field"}, "Squarem"),
        ({"schedule": Squarem(), "e": "sample"}, "Squarem"),
    ],
)
def test_dials_that_cannot_be(dials, complaint):
    with pytest.raises(LearnerError, match=complaint.replace("(", r"\(")):
        Learner(**dials)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OnlineEM(batch_size=0),
        lambda: OnlineEM(kappa=0.5),
        lambda: OnlineEM(kappa=1.1),
        lambda: StochasticVB(t0=-1),
        lambda: IncrementalEM(batch_size=0),
        lambda: Gibbs(n_init=0),
        lambda: Gibbs(burn_in=1.0),
        lambda: Gibbs(thin=0),
        lambda: anneal(start=0),
        lambda: anneal(steps=0),
    ],
)
def test_dials_of_named_learners_that_cannot_be(make):
    with pytest.raises(LearnerError):
        make()


def test_temper_by_number_sequence_and_function():
    assert EM(temper=0.5).temper_at(9) == EM(temper=0.5).last_temper == 0.5
    by_step = EM(temper=[0.1, 0.4])
    assert [by_step.temper_at(step) for step in range(4)] == [0.1, 0.4, 0.4, 0.4]
    rising = EM(temper=anneal(start=0.01, steps=2), max_iter=50)
    assert [rising.temper_at(step) for step in (0, 1, 2, 3)] == pytest.approx([0.01, 0.1, 1, 1])
    assert rising.last_temper == 1.0
    with pytest.raises(LearnerError, match="at step 3"):
        EM(temper=lambda step: 3.0 - step).temper_at(3)


def test_a_learner_says_what_differs_from_the_usual():
    assert str(EM()) == "EM(max_iter=100, tol=1e-06)"
    assert str(HardEM(n_init=3, tol=0)) == "HardEM(max_iter=100, tol=0, n_init=3)"
    assert str(OnlineEM(kappa=0.9)) == "OnlineEM(max_iter=100, tol=1e-06, kappa=0.9)"
    assert "temper=Anneal(start=0.1, steps=5)" in str(EM(temper=anneal(steps=5)))
    assert str(Gibbs(n_init=2)) == "Gibbs(max_iter=1000, tol=1e-06, n_init=2)"


def test_gibbs_keeps_draws_after_burn_in():
    kept = [step for step in range(101) if Gibbs(max_iter=100, burn_in=0.2, thin=10).keeps(step)]
    assert kept == [21, 31, 41, 51, 61, 71, 81, 91]
    assert [step for step in range(5) if Gibbs(max_iter=4, burn_in=0).keeps(step)] == [1, 2, 3, 4]
    assert not EM().keeps(99)


def test_step_sizes_decay():
    stepwise = Stepwise(kappa=0.7, t0=2.0)
    assert stepwise.step_size(1) == pytest.approx(3**-0.7)
    assert stepwise.step_size(98) == pytest.approx(100**-0.7)
