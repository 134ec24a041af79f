"""The model of ``examples/new_model``, which follows "How to add a model" in CONTRIBUTING.md."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import softcount as sc
from examples.new_model import PoissonMixture
from softcount.core.types import EStep

ITEMS = [0, 1, 0, 2, 1, 9, 11, 8, 10, 12]
LEARNERS = ["em", "hard-em", "online-em", "incremental-em", "monte-carlo-em", "vb", "gibbs"]


def test_laws() -> None:
    sc.check_model(PoissonMixture(2, smoothing=0.5), ITEMS).raise_if_failed()
    sc.check_model(PoissonMixture(3), ITEMS).raise_if_failed()


@pytest.mark.parametrize("seed", range(5))
def test_an_e_step_is_that_of_enumeration(seed: int) -> None:
    """All ways in which three items can be dealt to two classes, in plain Python."""
    rng = np.random.default_rng(seed)
    items, weights, rates = [2, 0, 5], rng.dirichlet([1, 1]), rng.gamma(2.0, 2.0, 2)
    core, corpus = PoissonMixture(2)._bind(items)
    params = {"weights": weights[None], "rates": np.repeat(rates[:, None], 2, axis=1)}
    stats = core.expect(params, corpus.shards()[0], EStep())
    total, counts = 0.0, np.zeros((2, 2))
    for classes in product(range(2), repeat=3):
        p = math.prod(
            weights[k] * rates[k] ** x * math.exp(-rates[k]) / math.factorial(x)
            for k, x in zip(classes, items, strict=True)
        )
        total += p
        for k, x in zip(classes, items, strict=True):
            counts[k] += p * x, p
    assert stats.log_likelihood == pytest.approx(math.log(total), rel=1e-12)
    np.testing.assert_allclose(stats.counts["rates"], counts / total, rtol=1e-12)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_tells_the_two_rates_apart(learner: str) -> None:
    model = PoissonMixture(2, smoothing=0.1, learner=learner, max_iter=50, n_init=4).fit(ITEMS)
    assert np.isfinite(model.trace_.objective[1:]).all()
    few, many = sorted(model.rates_.tolist())
    assert few < 3.0 < 7.0 < many


def test_its_half_steps_are_a_fit() -> None:
    model = PoissonMixture(2, learner="em", max_iter=1).fit(ITEMS, keep_posteriors=True)
    posteriors = model.e_step(ITEMS, model.trace_.params[0])
    np.testing.assert_allclose(model.m_step(ITEMS, posteriors)["rates"], model.params_["rates"])
    np.testing.assert_allclose(model.e_step(ITEMS).values, model.predict_proba(ITEMS))


def test_it_is_an_estimator_of_scikit_learn_s_kind() -> None:
    search = GridSearchCV(
        PoissonMixture(2, learner="em"),
        {"n_components": [1, 2], "learner__max_iter": [2, 20]},
        cv=2,
        scoring=lambda model, items, y=None: model.verdict_.good,
    )
    assert search.fit(np.array(ITEMS)).best_params_["learner__max_iter"] in (2, 20)
    assert clone(PoissonMixture(3)).n_components == 3


def test_what_will_not_do_is_refused() -> None:
    with pytest.raises(sc.LearnerError, match="n_components=0: must be a whole number"):
        PoissonMixture(0).fit(ITEMS)
    with pytest.raises(sc.DataError, match="items must be counts"):
        PoissonMixture(2).fit([0.5, 1.0])
