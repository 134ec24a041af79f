"""No step of any learner on any model has an objective, or a likelihood, that is no number.

−inf stands only where a variational posterior does not exist yet: at the start of learners that
average (docs/learners.md).
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import LearnerError
from softcount.core.types import Fit
from softcount.learners.diagnostics import rhat
from tests.core.estimators import DOCUMENTS, PAIRS, estimators, every_learner

SMALL = (0.001, 0.01, 1.0)


def check_figures(found: Fit, averages: bool) -> None:
    for trace in found.traces:
        for state in trace:
            where = (state.step, state.objective, state.log_likelihood)
            assert math.isfinite(state.log_likelihood), where
            if averages and state.step == 0:
                assert state.objective == -math.inf, where
            else:
                assert math.isfinite(state.objective), where


@pytest.mark.parametrize("prior", SMALL)
@pytest.mark.parametrize("name", list(estimators(1.0)))
def test_every_objective_is_finite(name: str, prior: float) -> None:
    fitted = 0
    for learner in every_learner().values():
        model, data = estimators(prior)[name](learner)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sc.errors.CollapseWarning)
                model.fit(*data)
        except LearnerError:
            continue  # which these are, tests/learners/test_refusals.py knows
        process = "DirichletProcess" in name and learner is None
        check_figures(model.fit_, process or (learner is not None and learner.m == "mean_field"))
        fitted += 1
    assert fitted >= 8


@pytest.mark.parametrize("prior", SMALL)
def test_diagnostics_are_numbers(prior: float) -> None:
    """R-hat and effective sizes look at the objective: they can tell nothing where it is inf."""
    for name in ("MultinomialMixture", "LDA", "IBM1", "Aligner", "HMM", "PCFG", "StoryModel"):
        model, data = estimators(prior)[name](sc.Gibbs(max_iter=20, n_init=2))
        found = model.fit(*data).fit_
        objectives = np.array([[state.objective for state in trace[10:]] for trace in found.traces])
        assert np.isfinite(objectives).all()
        assert rhat(objectives) > 0.9
        assert all(math.isfinite(figure) for figure in found.diagnostics.values())


def test_an_aligner_as_it_is() -> None:
    """Its own smoothing is 0.0003."""
    model = sc.Aligner(learner=sc.Gibbs(max_iter=8, n_init=2)).fit(PAIRS)
    check_figures(model.fit_, averages=False)


def test_more_pairs_later() -> None:
    """Families that remember a past have a density of it, too."""
    learner = sc.Gibbs(max_iter=6, n_init=1)
    for model in (sc.align.IBM1(smoothing=0.001, learner=learner), sc.Aligner(learner=learner)):
        model.fit(PAIRS).partial_fit([("of rabbits", "de lapins")])
        check_figures(model.fit_, averages=False)


ZEROS: dict[str, Any] = {
    "LDA": lambda a, l: sc.LDA(2, smoothing=a, learner=l),
    "PLSA": lambda a, l: sc.PLSA(2, smoothing=a, learner=l),
    "MultinomialMixture": lambda a, l: sc.MultinomialMixture(2, smoothing=a, learner=l),
}


@pytest.mark.parametrize("name", list(ZEROS))
@pytest.mark.parametrize("learner", ["EM", "HardEM", "Squarem", "OnlineEM", "IncrementalEM"])
def test_a_start_with_zeros_under_a_prior_above_one(name: str, learner: str) -> None:
    """Its density is zero; it counts as if the zeros were 1e-300, and steps go up from there."""
    table = np.array([[0.5, 0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.3, 0.4, 0.3]])
    init = {"weights": [[0.5, 0.5]], "words": table}
    start = init if name == "MultinomialMixture" else {"topics": table}
    model = ZEROS[name](0.1, every_learner()[learner]).fit(DOCUMENTS, init=start)
    check_figures(model.fit_, averages=False)
    assert model.trace_.objective[0] == pytest.approx(0.5 * math.log(1e-300), rel=0.2)
    assert (np.diff(model.trace_.objective) >= 0.0).all() or learner == "OnlineEM"


def test_a_start_with_zeros_under_a_prior_below_one() -> None:
    """Its density is infinite; that is no reason to stay there."""
    init = {"which": {"A": 1.0, "B": 0.0}}
    made, data = estimators(0.01)["StoryModel"](sc.Gibbs(max_iter=30, n_init=1))
    check_figures(made.fit(*data, init=init).fit_, averages=False)


def test_a_sampler_of_links_has_an_objective_and_no_likelihood() -> None:
    """Documented so: working it out would cost as much as the sampling."""
    model = sc.align.GibbsAligner(prior=0.001).fit(PAIRS)
    state = model.trace_[-1]
    assert math.isfinite(state.objective)
    assert math.isnan(state.log_likelihood)
