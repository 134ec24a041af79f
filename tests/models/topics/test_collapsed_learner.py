"""LDA learned by collapsed Gibbs: exact means, chains, priors, archives, calibration."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.corpus.archive import Archive
from softcount.corpus.bags import Bags
from softcount.families.columns import Columns
from softcount.fit import fit
from softcount.topics.core import TopicCore
from softcount.topics.data import Documents, RowPrior, known_topics
from tests.oracles.topics import joint, normalised, surprise, tally

RNG = np.random.default_rng(2)
TRUTH = RNG.dirichlet(np.full(40, 0.1), 4)
SHARES = RNG.dirichlet([0.1, 0.2, 0.4, 0.8], 300)
X = np.array([RNG.multinomial(60, row) for row in SHARES @ TRUTH])


def learned(learner: sc.Learner, X: Any = X, y: Any = None, **options: Any) -> sc.LDA:
    return sc.LDA(4, learner=learner, **options).fit(X, labels=y)


def core_of(K: int, V: int, alpha: Any, prior: Any) -> TopicCore:
    return TopicCore("topics", Columns((K, V), prior), RowPrior(np.asarray(alpha, float), "draw"))


COUNTS = np.array([[2, 1, 0], [0, 1, 1], [1, 0, 1]])


@pytest.mark.parametrize("dense_prior", [True, False], ids=["seeds", "no seeds"])
def test_the_mean_is_the_exact_posterior_mean(dense_prior: bool) -> None:
    """E[φ | w] over all topics that the words may have, with labels and seeds."""
    alpha, beta = np.array([0.5, 0.8]), 0.4
    seeds = np.array([[2, 0, 0], [0, 1, 0]]) * dense_prior
    known = np.array([[True, False], [False, False], [False, False]])
    every = list(product(range(2), repeat=int(COUNTS.sum())))
    chances = normalised(np.array([joint(COUNTS, alpha, beta, z, known, seeds) for z in every]))
    exact = np.zeros((2, 3))
    for p, z in zip(chances, every, strict=True):
        mass = tally(COUNTS, z, 2)[1] + seeds + beta
        exact += p * mass / mass.sum(axis=1, keepdims=True)
    core = core_of(2, 3, alpha, beta + seeds if dense_prior else beta)
    corpus = Documents(Bags.of(COUNTS), known_topics([0, -1, -1], 3, 2))
    learner = sc.CollapsedGibbs(max_iter=2500, burn_in=0.02, thin=1)
    start = {"topics": np.full((2, 3), 1 / 3)}
    found = fit(core, corpus, learner, init=start)
    np.testing.assert_allclose(found.params["topics"], exact, atol=0.03)
    # every step's objective is log p(w, z) of some z that is possible
    possible = np.unique([joint(COUNTS, alpha, beta, z, known, seeds) for z in every])
    for objective in found.trace.objective[:50]:
        assert np.abs(possible - objective).min() < 1e-8


def test_the_model_reports_the_mean_of_the_draws_it_kept() -> None:
    learner = sc.CollapsedGibbs(max_iter=30, burn_in=0.4, thin=3)
    model = sc.LDA(4, learner=learner).fit(X, keep_params=True)
    steps = [state.step for state in model.trace_ if learner.keeps(state.step)]
    assert steps == list(range(steps[0], 31, 3))
    (draws,) = model.fit_.draws
    assert len(draws) == len(steps)
    tables = [model.trace_[step].params["topics"] for step in steps]
    for draw, table in zip(draws, tables, strict=True):
        assert np.array_equal(draw["topics"], table)
        # E[φ | w, z] = (n + β) / (n_k + Vβ), n being whole: the totals of all topics show it
        assert table.sum(axis=1) == pytest.approx(np.ones(4))
    assert model.topics_ == pytest.approx(np.mean(tables, axis=0), rel=1e-12)


def test_topics_are_found_and_the_verdict_says_so() -> None:
    model = learned(sc.CollapsedGibbs(max_iter=60))
    closest = np.array([[np.abs(a - b).sum() for b in model.topics_] for a in TRUTH])
    assert sorted(closest.argmin(axis=1)) == [0, 1, 2, 3]
    assert closest.min(axis=1).max() < 0.4
    assert model.verdict_ is sc.Verdict.SAMPLED
    assert "CollapsedGibbs(max_iter=60" in model.signature_
    assert model.transform(X[:5]).sum(axis=1) == pytest.approx(np.ones(5))


def test_seeds_of_random_numbers_and_threads() -> None:
    learner = sc.CollapsedGibbs(max_iter=10)
    one, same = (learned(learner, engine=sc.Local(threads=n), random_state=4) for n in (1, 2))
    other = learned(learner, random_state=5)
    assert one.topics_.tobytes() == same.topics_.tobytes()
    assert np.array_equal(one.trace_.objective, same.trace_.objective)
    assert one.topics_.tobytes() != other.topics_.tobytes()


def test_chains_and_diagnostics() -> None:
    learner = sc.CollapsedGibbs(max_iter=40, n_chains=3, burn_in=0.5, thin=2)
    model = learned(learner)
    assert [len(draws) for draws in model.fit_.draws] == [10, 10, 10]
    assert set(model.fit_.diagnostics) == {"rhat", "ess_bulk", "ess_tail"}
    assert all(np.isfinite(figure) for figure in model.fit_.diagnostics.values())
    objectives = [trace.objective[-1] for trace in model.fit_.traces]
    assert len(set(objectives)) == 3


def test_priors_can_be_learned() -> None:
    alpha = np.array([0.1, 0.2, 0.4, 0.8])
    model = learned(sc.CollapsedGibbs(max_iter=120, optimise=5))
    plain = learned(sc.CollapsedGibbs(max_iter=120))
    assert plain.doc_prior_ == pytest.approx(np.full(4, 0.1))
    assert np.array_equal(model.doc_prior_, model.fit_.priors["documents"])
    closest = [np.abs(model.topics_ - row).sum(axis=1).argmin() for row in TRUTH]
    assert model.doc_prior_[closest] == pytest.approx(alpha, rel=0.4)
    assert float(model.fit_.priors["topics"][0]) == pytest.approx(0.1, rel=0.4)
    assert model.trace_.objective[-20:].mean() > plain.trace_.objective[-20:].mean() + 10


def test_learned_priors_are_what_documents_are_folded_in_with() -> None:
    model = learned(sc.CollapsedGibbs(max_iter=60, optimise=5))
    empty = model.transform(np.zeros((1, 40)))[0]
    assert empty == pytest.approx(model.doc_prior_ / model.doc_prior_.sum(), rel=1e-6)


@pytest.mark.parametrize("optimise", [1, 4])
def test_models_whose_priors_cannot_be_learned(optimise: int) -> None:
    learner = sc.CollapsedGibbs(max_iter=4, optimise=optimise)
    with pytest.raises(sc.LearnerError, match=f"optimise={optimise}.*cannot be learned") as caught:
        sc.MultinomialMixture(2, learner=learner).fit(X[:20])
    assert caught.value.hint


def test_a_negative_interval_is_refused() -> None:
    with pytest.raises(sc.LearnerError, match="optimise"):
        sc.CollapsedGibbs(optimise=-1)


def test_labels_are_kept_to() -> None:
    """Documents of one topic each: their words are counted there and nowhere else."""
    y = np.arange(300) % 4
    model = learned(sc.CollapsedGibbs(max_iter=6, thin=1), y=y)
    mass = np.array([X[y == k].sum(axis=0) for k in range(4)]) + 0.01
    assert model.topics_ == pytest.approx(mass / mass.sum(axis=1, keepdims=True), rel=1e-9)


def test_an_archive_is_as_good_as_memory(tmp_path: Path) -> None:
    texts = [" ".join(f"w{w:02}" for w in np.repeat(np.arange(40), row)) for row in X[:100]]
    archive = Archive.build(texts, tmp_path / "a")
    learner = sc.CollapsedGibbs(max_iter=8)
    stored, direct = (learned(learner, data, scouts=0) for data in (archive, texts))
    assert stored.word_names().tolist() == direct.word_names().tolist()
    assert stored.topics_ == pytest.approx(direct.topics_, rel=1e-9)
    assert stored.trace_.objective == pytest.approx(direct.trace_.objective, rel=1e-9)


@pytest.mark.parametrize("cut", [7, 100])
def test_however_documents_are_cut_all_are_sampled(cut: int) -> None:
    core = core_of(3, 40, np.full(3, 0.1), 0.01)
    labels = [d % 3 if d % 2 else -1 for d in range(60)]
    corpus = Documents(Bags.of(X[:60]), known_topics(labels, 60, 3), cut=cut)
    learner = sc.CollapsedGibbs(max_iter=5)
    found = fit(core, corpus, learner, init={"topics": core.topics.random(RNG)})
    tokens = float(X[:60].sum())
    state = found.trace[-1]
    assert state.perplexity == pytest.approx(np.exp(-state.objective / tokens))
    sampler = core.collapse(corpus.shards(), {"topics": core.topics.uniform()}, 1)
    of_documents = sampler.document_counts()
    assert np.array_equal(of_documents.sum(axis=1), X[:60].sum(axis=1))
    for d, label in enumerate(labels):
        assert label < 0 or of_documents[d, label] == X[d].sum()


@pytest.mark.parametrize("settings", [{}, {"optimise": 2}])
def test_counts_that_are_not_whole(settings: dict[str, int]) -> None:
    with pytest.raises(sc.DataError, match="whole numbers"):
        learned(sc.CollapsedGibbs(max_iter=2, **settings), X / 2, scouts=0)


@pytest.mark.slow
def test_calibration() -> None:
    """Talts et al. (2018), by way of the loop: where log p(w, z) of the truth ranks is uniform."""
    rng, alpha, beta, draws = np.random.default_rng(8), np.array([0.5, 1.0]), 0.3, 9
    learner = sc.CollapsedGibbs(max_iter=30 + 10 * draws, burn_in=0.25, thin=10)
    ranks: Counter[int] = Counter()
    for repeat in range(600):
        theta, phi = rng.dirichlet(alpha, 3), rng.dirichlet([beta] * 4, 2)
        z = (rng.random((3, 6)) > theta[:, :1]).astype(int)
        words = np.array([[rng.choice(4, p=phi[k]) for k in row] for row in z])
        counts = np.array([np.bincount(row, minlength=4) for row in words])
        order = np.argsort(words, axis=1, kind="stable")
        true = joint(counts, alpha, beta, np.take_along_axis(z, order, axis=1).ravel())
        core, corpus = core_of(2, 4, alpha, beta), Documents(Bags.of(counts))
        start = {"topics": core.topics.random(rng)}
        found = fit(core, corpus, learner, init=start, seed=repeat)
        kept = [state.objective for state in found.trace if learner.keeps(state.step)][-draws:]
        assert len(kept) == draws
        ties = [objective + 1e-6 * rng.random() for objective in [true, *kept]]
        ranks[sum(objective < ties[0] for objective in ties[1:])] += 1
    assert surprise(ranks, dict.fromkeys(range(draws + 1), 1 / (draws + 1))) < 1
