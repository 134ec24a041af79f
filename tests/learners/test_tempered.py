"""EM with a temper that held-out words choose: its laws, and every step against plain numpy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.core.fit import fit
from softcount.core.verdict import Verdict
from softcount.families import Categorical
from softcount.learners import Learner, Tempered, TemperedEM
from softcount.learners.schedules import Schedule
from softcount.text.bags import Bags
from softcount.topics.core import DocumentPrior, TopicCore
from softcount.topics.data import TopicDocuments
from tests.oracles.toy import Coins, ThrowsCorpus, random_start

K = 4
FIGURES = {"rel": 1e-9}


def corpus(seed: int, n: int = 25, words: int = 12, length: int = 14) -> Any:
    """Documents of two topics each, too short for four topics to be learned well."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(words, 0.3), K)
    shares = rng.dirichlet(np.full(K, 0.3), n)
    return np.array([rng.multinomial(length, share @ topics) for share in shares])


def core(words: int = 12) -> TopicCore:
    return TopicCore("topics", Categorical((K, words)), DocumentPrior(np.ones(K)))


def learned(seed: int, learner: Learner, **options: Any) -> Any:
    counts, model = corpus(seed), core()
    documents = TopicDocuments(Bags.of(counts), held_out=learner.schedule.held_out)
    return documents, fit(
        model, documents, learner, init=random_start(model), keep_params=True, **options
    )


def tempered_step(phi: Any, theta: Any, counts: Any, beta: float) -> Any:
    """Hofmann's tempered E-step and the M-step after it, all posteriors at once."""
    joint = (theta[:, :, None] * phi[None]) ** beta
    total = joint.sum(axis=1, keepdims=True)
    posterior = joint / np.where(total > 0, total, 1)  # of a word that no document has: nothing
    expected = posterior * counts[:, None, :]
    of_words, of_documents = expected.sum(axis=0), expected.sum(axis=2)
    return (
        of_words / of_words.sum(axis=1, keepdims=True),
        of_documents / of_documents.sum(axis=1, keepdims=True),
    )


def perplexity(phi: Any, theta: Any, counts: Any) -> float:
    chances = (theta @ phi)[counts > 0]
    return float(np.exp(-(counts[counts > 0] @ np.log(chances)) / counts.sum()))


@given(seed=st.integers(0, 500), rate=st.sampled_from([0.6, 0.8, 0.9]))
@settings(max_examples=25, deadline=None)
def test_every_step_and_the_end_are_hofmanns(seed: int, rate: float) -> None:
    """Tables, figures and the choice of β, from the tables and the rows of the step before."""
    learner = TemperedEM(rate=rate, tol=1e-3, held_out=0.2)
    documents, found = learned(seed, learner)
    seen, held = (bags.matrix.toarray() for bags in documents.split)
    trace, theta = found.trace, np.full((len(seen), K), 1 / K)
    for now, then in pairwise(trace):
        phi = now.params["topics"]
        assert now.held_out == pytest.approx(perplexity(phi, theta, held), **FIGURES)
        assert now.perplexity == pytest.approx(perplexity(phi, theta, seen), **FIGURES)
        beta = now.temper
        if then.step > 1:
            assert then.held_out < now.held_out * (1 - 1e-3)
        while beta > then.temper * 1.001:  # every higher power was tried, and brought nothing
            tried = tempered_step(phi, theta, seen, beta)
            assert perplexity(*tried, held) >= now.held_out * (1 - 1e-3)
            beta *= rate
        assert beta == pytest.approx(then.temper)
        assert then.step > 1 or beta == 1.0  # the first step is not judged
        made, theta = tempered_step(phi, theta, seen, then.temper)
        assert then.params["topics"] == pytest.approx(made, abs=1e-9)
    assert found.verdict is Verdict.CONVERGED
    last = trace[-1]
    assert last.held_out == pytest.approx(perplexity(last.params["topics"], theta, held), **FIGURES)
    beta = last.temper
    while beta >= learner.least:
        tried = tempered_step(last.params["topics"], theta, seen, beta)
        assert perplexity(*tried, held) >= last.held_out * (1 - 1e-3)
        beta *= rate


@given(seed=st.integers(0, 500))
@settings(max_examples=20, deadline=None)
def test_laws_of_the_trace(seed: int) -> None:
    _, found = learned(seed, TemperedEM(tol=0.0, max_iter=60))
    trace = found.trace
    assert trace.temper[0] == 1.0
    assert (np.diff(trace.temper) <= 0).all()
    assert (trace.temper >= 0.3).all()
    assert (np.diff(trace.held_out[1:]) < 0).all()  # so the last is the best
    assert found.params["topics"].tobytes() == trace.params[-1]["topics"].tobytes()
    assert found.verdict in (Verdict.CONVERGED, Verdict.OUT_OF_STEPS)


def test_a_corpus_on_which_it_lowers_the_temper() -> None:
    """The laws above would hold for a run that never left β = 1."""
    tempers = {float(learned(seed, TemperedEM())[1].trace.temper[-1]) for seed in range(5)}
    assert min(tempers) < 0.9


@pytest.mark.parametrize("seed", range(3))
def test_steps_at_one_are_plain_em(seed: int) -> None:
    documents, found = learned(seed, TemperedEM())
    plain = fit(
        core(),
        TopicDocuments(documents.split[0]),
        sc.EM(max_iter=len(found.trace), tol=0.0),
        init=found.trace.params[0],
        keep_params=True,
    )
    warm = [state for state in found.trace if state.temper == 1.0]
    assert len(warm) > 2
    for ours, theirs in zip(warm, plain.trace, strict=False):
        assert ours.params["topics"].tobytes() == theirs.params["topics"].tobytes()
        assert ours.log_likelihood == theirs.log_likelihood == ours.objective


@dataclass(frozen=True)
class Watched(Schedule):
    """All data, then one update, without end, with an eye on held-out words."""

    monotone: ClassVar[bool] = True
    held_out: float = 0.1

    def steps(self, run: Any, tables: Any, saved: Any = None) -> Any:
        while True:
            figure = run.held_out_log_likelihood(tables.params).perplexity
            step = replace(run.e_step(tables), held_out=figure)
            yield step
            tables = run.m_step(step.stats, tables)


def test_plain_em_overfits_where_tempering_does_not() -> None:
    _, plain = learned(0, Learner(schedule=Watched(), max_iter=100))
    _, tempered = learned(0, TemperedEM())
    best, last = plain.trace.held_out.min(), plain.trace.held_out[-1]
    assert last > 1.5 * best
    assert tempered.trace.held_out[-1] < best


def test_out_of_steps_is_said_and_the_last_is_still_the_best() -> None:
    _, found = learned(1, TemperedEM(max_iter=3))
    assert found.verdict is Verdict.OUT_OF_STEPS
    assert len(found.trace) == 4
    assert found.trace.held_out[-1] == found.trace.held_out[1:].min()


def test_the_best_of_several_runs_is_best_on_held_out_words() -> None:
    _, found = learned(2, TemperedEM(n_init=4))
    ends = [trace.held_out[-1] for trace in found.traces]
    assert len(set(ends)) > 1
    assert found.trace.held_out[-1] == min(ends)
    highest = max(found.traces, key=lambda trace: trace.objective[-1])
    assert highest is not found.trace  # so that the choice by objective would have been another


def test_topics_all_alike_are_stuck() -> None:
    counts = corpus(0)
    documents = TopicDocuments(Bags.of(counts), held_out=0.1)
    found = fit(core(), documents, TemperedEM(), init={"topics": np.full((K, 12), 1 / 12)})
    assert found.verdict is Verdict.STUCK


@pytest.mark.parametrize("cut", [1 << 17, 7])
def test_shards_and_threads_change_nothing(cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bags = Bags.of(corpus(3))
    whole = learned(3, TemperedEM(max_iter=30))[1]
    monkeypatch.setattr("softcount.text.bags.MOST_DOCUMENTS", cut)
    runs = [
        fit(
            core(),
            TopicDocuments(bags, held_out=0.1),
            TemperedEM(max_iter=30),
            sc.Local(threads=threads),
            init=random_start(core()),
        )
        for threads in (1, 3)
    ]
    assert runs[0].params["topics"].tobytes() == runs[1].params["topics"].tobytes()
    assert runs[0].trace.held_out == pytest.approx(whole.trace.held_out, rel=1e-6)


def test_other_learners_hold_nothing_out() -> None:
    _, found = learned(0, sc.EM(max_iter=3))
    assert np.isnan(found.trace.held_out).all()


def test_models_that_hold_nothing_out_are_refused() -> None:
    model, data = Coins(), ThrowsCorpus(["HHT", "TTT"])
    with pytest.raises(sc.LearnerError, match="coins has no held-out words") as raised:
        fit(model, data, TemperedEM(), init=random_start(model))
    assert "use EM()" in raised.value.hint
    with pytest.raises(sc.LearnerError, match="has no held-out words"):
        sc.MultinomialMixture(2, learner=TemperedEM()).fit([[1, 2], [3, 0], [0, 2]])


def test_documents_that_are_not_parted_are_refused() -> None:
    with pytest.raises(sc.LearnerError, match="no words of these documents are held out"):
        fit(core(), TopicDocuments(Bags.of(corpus(0))), TemperedEM(), init=random_start(core()))


@pytest.mark.parametrize(
    "dials",
    [
        {"held_out": 0.0},
        {"held_out": 1.0},
        {"held_out": float("nan")},
        {"rate": 0.0},
        {"rate": 1.0},
        {"least": 0.0},
        {"least": 1.1},
        {"tol": -1.0},
        {"temper": 0.0},
        {"e": "hard"},
        {"m": "mean_field"},
    ],
    ids=str,
)
def test_dials_that_make_no_sense(dials: dict[str, Any]) -> None:
    with pytest.raises(sc.LearnerError):
        TemperedEM(**dials)


def test_the_schedule_by_itself() -> None:
    """A learner of any name may have it, and begins at its own temper."""
    _, found = learned(1, Learner(schedule=Tempered(rate=0.7), temper=0.9))
    assert found.trace.temper[0] == 0.9
    assert (np.diff(found.trace.temper) <= 0).all()
    assert found.trace.temper[-1] < 0.9


def test_a_start_that_foresees_better_than_the_first_step_is_left() -> None:
    """Smoothed frequencies may do better than the first step; they are no topics for all that."""
    documents, _ = learned(4, TemperedEM())
    often = sum(bags.matrix.sum(axis=0).A1 for bags in documents.split)
    noise = np.random.default_rng(0).uniform(0.5, 1.5, (K, 12))
    start = {"topics": often * noise / (often * noise).sum(axis=1, keepdims=True)}
    found = fit(core(), documents, TemperedEM(), init=start)
    assert found.trace.held_out[1] > found.trace.held_out[0]
    assert found.trace.held_out[-1] < found.trace.held_out[0]
