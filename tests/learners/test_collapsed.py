"""Collapsed Gibbs in the loop: exact posterior means, chains, draws, models without a sampler."""

from __future__ import annotations

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import LearnerError
from softcount.core.fit import fit, trace
from softcount.core.types import EStep
from softcount.core.verdict import Verdict
from softcount.learners import CollapsedGibbs, anneal
from softcount.mixture.gibbs import CollapsedMixture
from tests.oracles.toy import Coins, Throws, ThrowsCorpus, params, posterior_mean, worlds

ITEMS = [("A", "HHT"), "HHHT", "TT", "HTT", ("B", "TTHT"), "HH", ""]
DATA = ThrowsCorpus(ITEMS, n_shards=3)
PRIOR = {"which": [[1.0, 2.0]], "flip": 0.8}
START = params((0.5, 0.5), (0.7, 0.3))


class Sampler:
    """The coins' sampler, with the families' own names for its counts."""

    def __init__(self, state: CollapsedMixture) -> None:
        self.state = state
        self.tempers: list[float] = []

    def sweep(self, stream: int, temper: float) -> None:
        self.tempers.append(temper)
        self.state.sweep(stream, temper)

    def log_joint(self) -> float:
        return self.state.log_joint()

    def counts(self) -> dict[str, np.ndarray]:
        found = self.state.counts()
        return {"which": found["weights"], "flip": found["words"]}


class CollapsibleCoins(Coins):
    """`Coins` with a collapsed sampler."""

    def collapse(self, shards, params, stream) -> Sampler:
        data = Throws(*(np.concatenate([getattr(s, part) for s in shards]) for part in PARTS))
        hot = [
            self.expect(params, data.take([i]), EStep(fill="sample", stream=stream)).counts["which"]
            for i in range(len(data.faces))
        ]
        seen = data.coin >= 0
        state = CollapsedMixture(
            np.arange(0, data.faces.size + 1, 2),
            np.tile([0, 1], len(data.faces)),
            data.faces.ravel(),
            2,
            alpha=np.array(PRIOR["which"][0]),
            beta=PRIOR["flip"],
            assignments=np.concatenate(hot).argmax(axis=1),
            allowed=(np.where(seen, data.coin, 0), np.where(seen, data.coin + 1, 2)),
        )
        self.sampler = Sampler(state)
        return self.sampler


PARTS = ("faces", "coin", "number")


def coins() -> CollapsibleCoins:
    return CollapsibleCoins(**PRIOR)


def learnt(learner: CollapsedGibbs, **options):
    return fit(coins(), DATA, learner, init=START, **options)


def test_the_mean_is_the_exact_posterior_mean():
    found = learnt(CollapsedGibbs(max_iter=1000, burn_in=0.02))
    exact = posterior_mean(DATA.all, 2, PRIOR["which"], PRIOR["flip"])
    for name in exact:
        np.testing.assert_allclose(found.params[name], exact[name], atol=0.03)
    # the joint that the objective reports is that of a possible world
    possible = [log_p for log_p, _, _ in worlds(DATA.all, 2, PRIOR["which"], PRIOR["flip"])]
    for objective in found.trace.objective[:50]:
        assert np.min(np.abs(np.array(possible) - objective)) < 1e-9


def test_steps_belong_together():
    model = coins()
    steps = list(trace(model, DATA, CollapsedGibbs(max_iter=4), start=START, seed=3))
    assert [step.step for step in steps] == [0, 1, 2, 3, 4]
    assert np.array_equal(steps[0].params["flip"], START["flip"])
    for step in steps:
        stats = model.expect(step.params, DATA.all, EStep())
        assert step.log_likelihood == pytest.approx(stats.log_likelihood, abs=1e-12)
    counts = model.sampler.counts()
    mean = (counts["flip"] + 0.8) / (counts["flip"] + 0.8).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(steps[-1].params["flip"], mean)
    assert steps[-1].objective == model.sampler.log_joint()


def test_chains_draws_and_diagnostics():
    learner = CollapsedGibbs(max_iter=40, n_init=3, burn_in=0.25, thin=2)
    found = learnt(learner)
    assert found.verdict is Verdict.SAMPLED
    assert [len(draws) for draws in found.draws] == [15, 15, 15]
    assert len(found.traces) == 3
    assert not np.array_equal(found.traces[0].objective, found.traces[1].objective)
    assert set(found.diagnostics) == {"rhat", "ess_bulk", "ess_tail"}
    assert "CollapsedGibbs(max_iter=40" in found.signature


def test_seeds_and_threads():
    learner = CollapsedGibbs(max_iter=20)
    one, same = (learnt(learner, seed=5, engine=sc.Local(threads=n)) for n in (1, 2))
    other = learnt(learner, seed=6)
    assert np.array_equal(one.trace.objective, same.trace.objective)
    assert np.array_equal(one.params["flip"], same.params["flip"])
    assert not np.array_equal(one.trace.objective, other.trace.objective)


def test_temper_reaches_the_sampler():
    model = coins()
    fit(model, DATA, CollapsedGibbs(max_iter=3, temper=anneal(0.25, steps=2)), init=START)
    assert model.sampler.tempers == [0.5, 1.0, 1.0]


def test_models_without_a_sampler():
    with pytest.raises(LearnerError, match=r"coins has no collapsed sampler\n.*Gibbs\(\)"):
        fit(Coins(**PRIOR), DATA, CollapsedGibbs(), init=START)


@pytest.mark.parametrize("dials", [{"n_init": 0}, {"thin": 0}, {"burn_in": 1.0}])
def test_bad_dials(dials):
    with pytest.raises(LearnerError, match=next(iter(dials))):
        CollapsedGibbs(**dials)
