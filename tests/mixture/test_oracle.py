"""Mixtures against the same model told as a story, and against sums that are written out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

import softcount as sc
from softcount.core.fit import fit
from softcount.core.types import EStep, Stats
from softcount.mixture.data import MixtureCorpus
from tests.oracles import enumeration
from tests.oracles.told import Told, furthest

Array = np.ndarray
Event = enumeration.Event


# documents, as stories tell them


def from_classes(n_classes: int, n_words: int, bernoulli: bool) -> Any:
    """One class out of those allowed; from it every word, or a coin for every word there is."""

    def factory(table: Any, story: Any) -> Any:
        weights = table("weights", range(n_classes))
        words = table("words", (False, True) if bernoulli else range(n_words))

        @story
        def document(allowed: Sequence[int], row: Sequence[int]) -> Iterator[Any]:
            for k in allowed:
                if bernoulli:
                    yield weights[k], *(words[k, w, bool(n)] for w, n in enumerate(row))
                else:
                    yield weights[k], *(words[k, w] for w, n in enumerate(row) for _ in range(n))

        return document

    return factory


@dataclass(frozen=True)
class Case:
    """Documents, the classes that each may have, and parameters."""

    counts: Array
    labels: Array  # −1: unknown
    components: int
    bernoulli: bool
    weights: Array
    words: Array  # p(word | class), or of its presence

    @property
    def n_classes(self) -> int:
        return len(self.weights)

    def allowed(self, d: int) -> tuple[int, ...]:
        first = self.labels[d] * self.components
        if self.labels[d] == -1:
            return tuple(range(self.n_classes))
        return tuple(range(first, first + self.components))

    def told(self) -> Told:
        factory = from_classes(*self.words.shape, self.bernoulli)
        items = [(self.allowed(d), tuple(map(int, row))) for d, row in enumerate(self.counts)]
        return Told(factory, items)

    def by_event(self, weights: Array, words: Array) -> dict[Event, float]:
        """Tables of the mixture as a story has them."""
        found = {("weights", (k,)): float(p) for k, p in enumerate(weights.reshape(-1))}
        for (k, w), p in np.ndenumerate(words[..., 0] if self.bernoulli else words):
            if self.bernoulli:
                found["words", (k, w, False)] = float(p)
                found["words", (k, w, True)] = float(words[k, w, 1])
            else:
                found["words", (k, w)] = float(p)
        return found

    def tables(self) -> dict[str, Array]:
        words = np.stack([1 - self.words, self.words], axis=2) if self.bernoulli else self.words
        return {"weights": self.weights, "words": words}

    def bound(self) -> tuple[Any, MixtureCorpus]:
        if (self.labels == -1).all():
            model = sc.MultinomialMixture(self.n_classes, bernoulli=self.bernoulli, smoothing=0)
            return model._bind(self.counts)
        bayes = sc.NaiveBayes(n_components=self.components, bernoulli=self.bernoulli, smoothing=0)
        return bayes._bind(self.counts, self.labels)

    def expect(self, how: EStep, batch_size: int | None = None) -> Stats:
        core, items = self.bound()
        params = core.params(self.tables())
        parts = [core.expect(params, shard, how) for shard in items.shards(batch_size)]
        return sum(parts[1:], parts[0])

    def counts_by_event(self, stats: Stats) -> dict[Event, float]:
        words = np.asarray(stats.counts["words"])
        shape = (self.n_classes, -1, 2) if self.bernoulli else (self.n_classes, -1)
        return self.by_event(np.asarray(stats.counts["weights"]), words.reshape(shape))


@st.composite
def cases(draw: Any, bernoulli: bool, labelled: bool) -> Case:
    n_docs, n_words, groups = (draw(st.integers(1, most)) for most in (5, 4, 3))
    components = draw(st.integers(1, 3)) if labelled else 1
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    labels = np.full(n_docs, -1)
    if labelled:
        labels = rng.integers(-1, groups, n_docs)
        labels[0] = max(labels[0], 0)
        _, labels = np.unique(np.append(labels, -1), return_inverse=True)  # all classes occur
        labels, groups = labels[:-1] - 1, int(labels.max())
    n_classes = groups * components
    words = rng.dirichlet(np.ones(n_words), n_classes)
    if bernoulli:
        words = rng.uniform(0.02, 0.98, (n_classes, n_words))
    return Case(
        rng.integers(0, 4, (n_docs, n_words)),
        labels,
        components,
        bernoulli,
        rng.dirichlet(np.ones(n_classes)),
        words,
    )


KINDS = {
    "multinomial": cases(bernoulli=False, labelled=False),
    "bernoulli": cases(bernoulli=True, labelled=False),
    "naive bayes": cases(bernoulli=False, labelled=True),
    "bernoulli naive bayes": cases(bernoulli=True, labelled=True),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_story_of_a_mixture_has_the_same_counts(kind: str, data: Any) -> None:
    case = data.draw(KINDS[kind])
    tale = case.told()
    rows = enumeration.rows(tale.corpus)
    tables = case.tables()
    weights = case.by_event(tables["weights"], tables["words"])
    weights = {(name, key): p for (name, key), p in weights.items() if (name, key[:-1]) in rows}
    whole = sum(enumeration.log_likelihood(item, weights) for item in tale.corpus)
    for beta in (1.0, 0.4, 2.5):
        mine, story = case.expect(EStep(temper=beta)), tale.expect(weights, EStep(temper=beta))
        exact = enumeration.corpus_counts(tale.corpus, weights, beta)
        assert furthest(case.counts_by_event(mine), exact) <= 1e-10
        assert furthest(case.counts_by_event(mine), tale.counts(story)) <= 1e-10
        assert mine.log_likelihood == pytest.approx(whole, abs=1e-10, rel=1e-12)
        assert mine.score == pytest.approx(story.score, abs=1e-10, rel=1e-12)
        score = sum(enumeration.tempered_score(item, weights, beta) for item in tale.corpus)
        assert mine.score == pytest.approx(score, abs=1e-10, rel=1e-12)
    hard = case.expect(EStep(fill="hard"))
    best = sum(enumeration.best_score(item, weights) for item in tale.corpus)
    assert furthest(case.counts_by_event(hard), enumeration.hard_counts(tale.corpus, weights)) == 0
    assert hard.score == pytest.approx(best, abs=1e-10, rel=1e-12)
    assert hard.log_likelihood == pytest.approx(whole, abs=1e-10, rel=1e-12)
    assert mine.items == story.items == len(case.counts)


CUT = 1e-12
"""Shares of an item below this are left out of counts (docs/decisions/mixtures.md)."""


def off(found: dict[Event, float], wanted: dict[Event, float]) -> float:
    """How far tables are apart, beyond what leaving out small shares does to the words of a class:
    up to CUT of each item, beside the class's own share of all items."""

    def slack(event: Event) -> float:
        table, key = event
        return 2.0 * CUT / max(wanted["weights", key[:1]], CUT) if table == "words" else 0.0

    return max(abs(found[event] - wanted[event]) - slack(event) for event in wanted)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_em_takes_the_steps_of_the_enumerated_story(kind: str, data: Any) -> None:
    case = data.draw(KINDS[kind])
    tale = case.told()
    tables = case.tables()
    weights = case.by_event(tables["weights"], tables["words"])
    core, items = case.bound()
    learner = sc.EM(max_iter=3, tol=0)
    result = fit(core, items, learner, init=core.params(tables), keep_params=True)
    for state in result.trace:
        words = state.params["words"].reshape(tables["words"].shape)
        assert off(case.by_event(state.params["weights"], words), weights) <= 1e-9
        counts = enumeration.corpus_counts(tale.corpus, weights)
        weights = enumeration.normalised(counts, weights, weights)


# documents that weigh something, and labels that are not sure


def log_sum(logs: Array) -> Array:
    """log Σ_k exp, over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return top[..., 0] + np.log(np.exp(logs - top).sum(axis=-1))


def log_joint(counts: Array, weights: Array, words: Array) -> Array:
    """log π_k + Σ_w x_dw log θ_kw."""
    return np.array(
        [[math.log(p) + sum(row * np.log(t)) for p, t in zip(weights, words, strict=True)]
         for row in counts]
    )  # fmt: skip


@given(
    seed=st.integers(0, 10**6),
    components=st.integers(1, 3),
    unlabelled_weight=st.sampled_from([0.0, 0.1, 1.0, 3.0]),
    fractions=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_soft_labels_and_weights(
    seed: int, components: int, unlabelled_weight: float, fractions: bool
) -> None:
    """Each share of a soft label is a fraction of a document with that label."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (6, 3)) * (rng.uniform(0.1, 2, (6, 3)) if fractions else 1.0)
    y = rng.dirichlet(np.ones(2), 6)
    y[1] = 0.0, 1.0
    y[2] = np.nan
    sample_weight = rng.uniform(0, 2, 6)
    weights, words = (
        rng.dirichlet(np.ones(2 * components)),
        rng.dirichlet(np.ones(3), 2 * components),
    )
    model = sc.NaiveBayes(
        n_components=components, unlabelled_weight=unlabelled_weight, smoothing=0.3
    )
    core, items = model._bind(counts, y, sample_weight)
    start = core.params({"weights": weights, "words": words})
    stats = core.expect(start, items.shards()[0], EStep())

    joint = log_joint(counts, weights, words).reshape(6, 2, components)
    given_class = np.exp(joint - log_sum(joint)[..., None])
    free = np.exp(joint - log_sum(joint.reshape(6, -1))[:, None, None])
    unknown = np.isnan(y[:, 0])
    shares = np.where(unknown[:, None, None], free, np.nan_to_num(y)[..., None] * given_class)
    each = sample_weight * np.where(unknown, unlabelled_weight, 1.0)
    shares = (shares * each[:, None, None]).reshape(6, -1)
    logs = np.where(
        unknown, log_sum(joint.reshape(6, -1)), (np.nan_to_num(y) * log_sum(joint)).sum(1)
    )
    assert stats.log_likelihood == pytest.approx(each @ logs, rel=1e-12, abs=1e-10)
    assert stats.items == pytest.approx(each.sum())
    np.testing.assert_allclose(stats.counts["weights"][0], shares.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(stats.counts["words"], shares.T @ counts, atol=1e-10)

    model.learner = sc.EM(max_iter=1, tol=0)
    model.fit(counts, y, sample_weight, init={"weights": weights, "words": words})
    smoothed = shares.T @ counts + 0.3
    np.testing.assert_allclose(model.words_, smoothed / smoothed.sum(1, keepdims=True), atol=1e-10)
    np.testing.assert_allclose(model.weights_, shares.sum(0) / shares.sum(), atol=1e-10)


@given(seed=st.integers(0, 10**6), bernoulli=st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_weight_is_a_number_of_copies(seed: int, bernoulli: bool) -> None:
    rng = np.random.default_rng(seed)
    counts, copies = rng.integers(0, 3, (5, 4)), rng.integers(0, 4, 5)
    copies[0] += 1
    start = {"weights": rng.dirichlet(np.ones(2)), "words": rng.dirichlet(np.ones(4), 2)}
    if bernoulli:
        start["words"] = rng.dirichlet(np.ones(2), 8)
    model = sc.MultinomialMixture(2, bernoulli=bernoulli, learner=sc.EM(max_iter=4, tol=0))
    weighted = model.fit(counts, sample_weight=copies, init=start).params_
    repeated = model.fit(np.repeat(counts, copies, axis=0), init=start).params_
    for name in weighted:
        np.testing.assert_allclose(weighted[name], repeated[name], atol=1e-10)


@given(seed=st.integers(0, 10**6), length=st.sampled_from([1.0, 7.5, 100.0]))
@settings(max_examples=20, deadline=None)
def test_documents_of_one_length(seed: int, length: float) -> None:
    rng = np.random.default_rng(seed)
    counts, y = rng.integers(0, 5, (6, 3)), np.array([0, 1, -1, -1, 0, 1])
    sums = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    start = {"weights": rng.dirichlet(np.ones(2)), "words": rng.dirichlet(np.ones(3), 2)}
    scaled = sc.NaiveBayes(length=length).fit(counts, y, init=start)
    plain = sc.NaiveBayes().fit(counts * length / sums, y, init=start)
    np.testing.assert_allclose(scaled.words_, plain.words_, atol=1e-9)
    np.testing.assert_allclose(
        scaled.predict_proba(counts), plain.predict_proba(counts * length / sums), atol=1e-9
    )


@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB])
def test_with_all_labels_it_is_the_naive_bayes_of_the_textbooks(
    kind: Any, weighted: bool, alpha: float
) -> None:
    rng = np.random.default_rng(3)
    X, new = rng.poisson(0.7, (60, 12)), rng.poisson(0.7, (20, 12))
    y = rng.choice(["x", "y", "z"], 60)
    each = rng.uniform(0, 3, 60) if weighted else None
    theirs = kind(alpha=alpha).fit(X, y, each)
    mine = sc.NaiveBayes(smoothing=alpha, bernoulli=kind is BernoulliNB).fit(X, y, each)
    assert mine.classes_.tolist() == theirs.classes_.tolist()
    np.testing.assert_allclose(np.log(mine.words_), theirs.feature_log_prob_, rtol=1e-12)
    np.testing.assert_allclose(np.log(mine.weights_), theirs.class_log_prior_, rtol=1e-12)
    np.testing.assert_allclose(mine.predict_log_proba(new), theirs.predict_log_proba(new), 1e-9)
    assert mine.predict(new).tolist() == theirs.predict(new).tolist()
    assert mine.score(new, theirs.predict(new)) == 1.0
