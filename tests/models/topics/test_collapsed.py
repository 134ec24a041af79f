"""The collapsed topic sampler against log-gammas, enumeration, and a prior it must leave alone."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import chi2

from softcount.errors import DataError, LearnerError
from softcount.models.topics import collapsed
from softcount.models.topics.collapsed import CollapsedTopics

BOTH = pytest.mark.parametrize("lists", [False, True], ids=["dense", "lists"])


def sampler(counts, alpha, beta, z=None, lists=False, seed=0) -> CollapsedTopics:
    """A sampler of a dense table of counts, keeping the words' topics in one way or the other."""
    sparse = csr_matrix(np.asarray(counts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collapsed, "LISTS_FROM", 1 if lists else 10**9)
        return CollapsedTopics(
            sparse.indptr,
            sparse.indices,
            sparse.data,
            sparse.shape[1],
            alpha=alpha,
            beta=beta,
            topics=z,
            seed=seed,
        )


def tokens(counts) -> list[tuple[int, int]]:
    """(document, word) of every token, in order."""
    table = np.asarray(counts)
    return [(d, w) for d, w in product(*map(range, table.shape)) for _ in range(table[d, w])]


def tally(counts, z, n_topics) -> tuple[np.ndarray, np.ndarray]:
    """n_dk and n_kw."""
    n_docs, n_words = np.shape(counts)
    of_documents, of_topics = np.zeros((n_docs, n_topics)), np.zeros((n_topics, n_words))
    for (d, w), k in zip(tokens(counts), z, strict=True):
        of_documents[d, k] += 1
        of_topics[k, w] += 1
    return of_documents, of_topics


def dirichlet_multinomial(rows, prior) -> float:
    """log p of every row's tokens in their order, by log-gammas."""
    total = 0.0
    for row in rows:
        total += math.lgamma(sum(prior)) - math.lgamma(sum(prior) + sum(row))
        total += sum(math.lgamma(a + n) - math.lgamma(a) for a, n in zip(prior, row, strict=True))
    return total


def joint(counts, alpha, beta, z) -> float:
    of_documents, of_topics = tally(counts, z, len(alpha))
    flat = [beta] * np.shape(counts)[1]
    return dirichlet_multinomial(of_documents, alpha) + dirichlet_multinomial(of_topics, flat)


def normalised(logs) -> np.ndarray:
    return np.exp(logs - np.logaddexp.reduce(logs))


@st.composite
def cases(draw):
    n_docs, n_words, n_topics = (draw(st.integers(1, top)) for top in (4, 4, 11))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = rng.integers(0, 4, (n_docs, n_words))
    alpha = draw(st.sampled_from([1e-4, 0.3, 50.0])) * rng.uniform(0.5, 2, n_topics)
    beta = draw(st.sampled_from([1e-9, 0.1, 20.0]))
    return counts, alpha, beta, rng.integers(0, n_topics, counts.sum()), draw(st.booleans())


@given(cases())
@settings(max_examples=40, deadline=None)
def test_conditional_is_the_joint_with_one_topic_changed(case):
    counts, alpha, beta, z, _ = case
    state = sampler(*case)
    for i in range(len(z)):
        logs = [joint(counts, alpha, beta, [*z[:i], k, *z[i + 1 :]]) for k in range(len(alpha))]
        found = normalised(state.conditional(i))
        np.testing.assert_allclose(found, normalised(np.array(logs)), rtol=1e-6, atol=1e-300)
    assert np.array_equal(state.topics, z)
    assert state.log_joint() == pytest.approx(joint(counts, alpha, beta, z), abs=1e-8)


@given(cases(), st.integers(0, 2**64 - 1), st.sampled_from([0.3, 1.0, 3.0]))
@settings(max_examples=60, deadline=None)
def test_sweeps_keep_count(case, stream, temper):
    counts, alpha, beta, _, _ = case
    state, again = sampler(*case), sampler(*case)
    for s in (state, again):
        s.sweep(stream, temper)
        s.sweep(stream ^ 1)
    of_documents, of_topics = tally(counts, state.topics, len(alpha))
    assert np.array_equal(state.document_counts(), of_documents)
    assert np.array_equal(state.counts()["topics"], of_topics)
    # the sampler's own counts, by which it draws
    assert np.array_equal(state._table.totals, of_topics.sum(axis=1))
    assert state.log_joint() == pytest.approx(joint(counts, alpha, beta, state.topics), abs=1e-8)
    fresh = sampler(counts, alpha, beta, state.topics, case[-1])
    for i in range(len(state.topics)):
        assert np.array_equal(state.conditional(i), fresh.conditional(i))
    assert np.array_equal(state.topics, again.topics)


@BOTH
def test_streams_and_seeds_differ(lists):
    counts = np.full((3, 5), 4)
    runs = [sampler(counts, np.ones(4), 1.0, lists=lists, seed=seed) for seed in (0, 0, 1)]
    assert np.array_equal(runs[0].topics, runs[1].topics)
    assert not np.array_equal(runs[0].topics, runs[2].topics)
    runs[0].sweep(1)
    runs[1].sweep(2)
    assert not np.array_equal(runs[0].topics, runs[1].topics)


def surprise(seen: Counter, expected: dict) -> float:
    """χ² over its 0.9999 quantile; what is expected less than five times is put together."""
    n = seen.total()
    pairs = [(seen[key], n * p) for key, p in expected.items() if n * p >= 5]
    rest = n - sum(o for o, _ in pairs), n - sum(e for _, e in pairs)
    pairs += [rest] if rest[1] >= 5 else []
    return sum((o - e) ** 2 / e for o, e in pairs) / chi2.ppf(0.9999, len(pairs) - 1)


def posterior(counts, alpha, beta, temper=1.0) -> dict:
    """p(z | w) of every z, by enumeration."""
    every = list(product(range(len(alpha)), repeat=int(np.sum(counts))))
    return dict(
        zip(
            every,
            normalised(np.array([temper * joint(counts, alpha, beta, z) for z in every])),
            strict=True,
        )
    )


def shapes(table: dict) -> Counter:
    """The same, by which tokens share a topic and what the last token's topic is.

    Of many topics there are too many z for a χ² test to see small differences.
    """
    merged: Counter = Counter()
    for z, n in table.items():
        merged[tuple(z.index(k) for k in z), z[-1]] += n
    return merged


SMALL = np.array([[2, 1, 0], [0, 0, 0], [0, 1, 2]])
FEW = np.array([[2, 0], [0, 1]])
LARGE_ALPHA = np.array([30.0, 20.0])  # a topic more can then make the next less likely


@BOTH
@pytest.mark.parametrize(
    ("counts", "alpha", "beta", "temper"),
    [
        (SMALL, np.array([0.7, 0.4]), 0.5, 1.0),
        (SMALL, np.array([0.7, 0.4]), 0.5, 0.5),
        (SMALL, LARGE_ALPHA, 0.2, 1.0),
        (SMALL, np.array([0.7, 0.4]), 0.05, 1.0),
        (FEW, np.linspace(0.1, 0.5, 9), 0.3, 1.0),
    ],
    ids=["two topics", "tempered", "large prior", "small prior", "nine topics"],
)
def test_a_long_run_is_the_posterior(counts, alpha, beta, temper, lists):
    state, seen = sampler(counts, alpha, beta, lists=lists), Counter()
    thin = 20 if beta < 0.1 else 5
    for t in range(5000 * thin):
        state.sweep(t, temper)
        if t % thin == 0:
            seen[tuple(state.topics.tolist())] += 1
    expected = posterior(counts, alpha, beta, temper)
    assert surprise(seen, expected) < 1
    assert surprise(shapes(seen), shapes(expected)) < 1
    # the test can tell: a somewhat different prior, or power, would not pass
    assert surprise(shapes(seen), shapes(posterior(counts, alpha, 2 * beta, temper))) > 1
    assert surprise(shapes(seen), shapes(posterior(counts, alpha, beta, 1.3 * temper))) > 1


@BOTH
@pytest.mark.parametrize("n_topics", [1, 7, 8, 30, 100])
def test_first_two_tokens_are_drawn_from_their_conditionals(n_topics, lists):
    """One sweep, many streams: the first token, and the second given where the first went."""
    rng = np.random.default_rng(n_topics)
    counts = np.array([[2, 3, 0, 1], [1, 0, 4, 0], [40, 9, 5, 60]])
    alpha, z = rng.gamma(0.5, size=n_topics) + 0.01, rng.integers(0, n_topics, counts.sum())
    n, first, second = 4000, Counter(), Counter()
    state = sampler(counts, alpha, 0.3, z, lists)
    expected = normalised(state.conditional(0))
    common = int(expected.argmax())
    for t in range(n):
        state = sampler(counts, alpha, 0.3, z, lists)
        state.sweep(t)
        first[int(state.topics[0])] += 1
        if state.topics[0] == common:
            second[int(state.topics[1])] += 1
    after = sampler(counts, alpha, 0.3, [common, *z[1:]], lists).conditional(1)
    for seen, p in ((first, expected), (second, normalised(after))):
        assert max(seen) < n_topics
        assert n_topics == 1 or surprise(seen, dict(enumerate(p))) < 1


@pytest.mark.slow
@BOTH
def test_words_drawn_anew_leave_the_prior_alone(lists):
    """Geweke (2004): w from p(w | z) and z by a sweep, in turn, leave z distributed as p(z).

    Words move among tokens of a document, and topics with them: what is compared is each document's
    number of tokens of topic 0, which has a beta-binomial distribution.
    """
    rng, lengths, alpha, beta = np.random.default_rng(3), [4, 0, 1, 6], np.array([0.6, 1.1]), 0.4
    owner = np.repeat(np.arange(4), lengths)
    z, seen = rng.integers(0, 2, 11), [Counter() for _ in lengths]
    for t in range(15_000):
        phi = rng.dirichlet([beta] * 3, 2)
        words = np.array([rng.choice(3, p=phi[k]) for k in z])
        order = np.lexsort((words, owner))
        counts = np.zeros((4, 3), int)
        np.add.at(counts, (owner, words), 1)
        state = sampler(counts, alpha, beta, z[order], lists)
        state.sweep(t)
        z = state.topics.astype(int)
        if t % 5 == 0:
            for d, tops in enumerate(state.document_counts()[:, 0]):
                seen[d][int(tops)] += 1
    for d in (0, 2, 3):
        n = lengths[d]
        ways = [
            math.comb(n, j) * math.exp(dirichlet_multinomial([[j, n - j]], alpha))
            for j in range(n + 1)
        ]
        assert sum(ways) == pytest.approx(1)
        assert surprise(seen[d], dict(enumerate(ways))) < 1


@pytest.mark.slow
@BOTH
def test_calibration(lists):
    """Talts et al. (2018): a true value's rank among posterior draws is uniform."""
    rng, alpha, beta = np.random.default_rng(8), np.array([0.5, 1.0]), 0.3
    ranks, draws = Counter(), 9
    for _ in range(1500):
        theta, phi = rng.dirichlet(alpha, 3), rng.dirichlet([beta] * 4, 2)
        z = (rng.random((3, 6)) > theta[:, :1]).astype(int)
        words = np.array([[rng.choice(4, p=phi[k]) for k in row] for row in z])
        counts = np.array([np.bincount(row, minlength=4) for row in words])
        by_word = np.argsort(words, axis=1, kind="stable")
        start = np.take_along_axis(z, by_word, axis=1).ravel()
        state = sampler(counts, alpha, beta, rng.permutation(start), lists)
        true, rank = (start == 0).sum() + rng.random(), 0
        for t in range(30 * (draws + 1)):
            state.sweep(int(rng.integers(2**63)))
            if t >= 30 and t % 30 == 0:
                rank += (state.topics == 0).sum() + rng.random() < true
        ranks[int(rank)] += 1
    assert surprise(ranks, dict.fromkeys(range(draws + 1), 1 / (draws + 1))) < 1


def drawn_corpus(alpha, beta, n_docs=400, length=80, n_words=60, seed=1):
    """Documents of the model, and the topics behind them in the order of the tokens."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(n_words, beta), len(alpha))
    counts, z = np.zeros((n_docs, n_words), int), []
    for d, theta in enumerate(rng.dirichlet(alpha, n_docs)):
        by_topic = np.array(
            [
                rng.multinomial(n, p)
                for n, p in zip(rng.multinomial(length, theta), phi, strict=True)
            ]
        )
        counts[d] = by_topic.sum(axis=0)
        z += [k for w in range(n_words) for k in range(len(alpha)) for _ in range(by_topic[k, w])]
    return counts, z


@BOTH
def test_optimising_finds_the_priors_that_made_the_data(lists):
    alpha, beta = np.array([0.2, 0.7, 2.0]), 0.15
    counts, z = drawn_corpus(alpha, beta)
    state = sampler(counts, np.ones(3), 1.0, z, lists)
    before = state.log_joint()
    state.optimise()
    np.testing.assert_allclose(state.alpha, alpha, rtol=0.15)
    assert state.beta == pytest.approx(beta, rel=0.25)
    assert state.log_joint() > before + 1000
    assert state.log_joint() == pytest.approx(joint(counts, state.alpha, state.beta, z), rel=1e-12)
    # a maximum: no prior can be moved a little to gain more than rounding and CLOSE leave
    for factor in (0.97, 1.03):
        for change in np.eye(3):
            moved = state.alpha * factor**change
            assert joint(counts, moved, state.beta, z) < state.log_joint()
        assert joint(counts, state.alpha, state.beta * factor, z) < state.log_joint()


@given(cases())
@settings(max_examples=40, deadline=None)
def test_optimising_never_loses(case):
    state = sampler(*case)
    before = state.log_joint()
    state.optimise()
    assert state.log_joint() >= before - 1e-7
    assert np.isfinite(state.alpha).all()
    assert (state.alpha > 0).all()
    state.sweep(1)


def test_a_dead_topic_may_come_back():
    counts = np.full((50, 4), 5)
    state = sampler(counts, np.ones(2), 0.1, np.zeros(1000, int))
    state.optimise()
    assert state.alpha[1] == pytest.approx(1e-5)
    assert state.alpha[0] > 1
    assert np.isfinite(state.conditional(0)).all()


@BOTH
def test_topics_are_found(lists):
    phi = np.kron(np.eye(4), np.full(5, 0.2))
    rng = np.random.default_rng(2)
    counts = np.array([rng.multinomial(40, p @ phi) for p in rng.dirichlet([0.2] * 4, 200)])
    state = sampler(counts, np.full(4, 0.1), 0.05, lists=lists)
    for t in range(60):
        state.sweep(t)
    found = state.counts()["topics"]
    found = found / found.sum(axis=1, keepdims=True)
    best = (found @ phi.T).argmax(axis=1)
    assert sorted(best) == [0, 1, 2, 3]
    np.testing.assert_allclose(found, phi[best], atol=0.06)


@BOTH
def test_a_million_words_in_one_document(lists):
    counts = np.zeros((4, 50), int)
    counts[0] = 20_000
    counts[2, 7] = 1
    state = sampler(counts, np.full(12, 0.1), 0.01, lists=lists)
    state.sweep(5)
    assert state.document_counts().sum(axis=1).tolist() == [10**6, 0, 1, 0]
    assert np.array_equal(state.counts()["topics"].sum(axis=0), counts.sum(axis=0))
    expected = dirichlet_multinomial(state.document_counts(), state.alpha)
    expected += dirichlet_multinomial(state.counts()["topics"], [0.01] * 50)
    assert state.log_joint() == pytest.approx(expected, rel=1e-9)
    state.optimise()
    assert np.isfinite(state.log_joint())


@BOTH
@pytest.mark.parametrize("shape", [(0, 3), (2, 3), (2, 0)])
def test_nothing_to_sample(shape, lists):
    state = sampler(np.zeros(shape, int), np.ones(3), 0.1, lists=lists)
    state.sweep(0)
    state.sweep(0, 0.5)
    state.optimise()
    assert state.log_joint() == 0.0
    assert state.alpha.tolist() == [1.0] * 3
    assert state.document_counts().shape == (shape[0], 3)
    assert state.counts()["topics"].shape == (3, shape[1])


def test_topic_numbers_take_two_bytes_or_four():
    narrow, wide = (sampler([[1, 2]], np.full(K, 0.1), 0.1) for K in (2**16, 2**16 + 1))
    assert narrow.topics.itemsize == 2
    assert wide.topics.itemsize == 4


GOOD = {
    "indptr": [0, 1, 3],
    "words": [0, 0, 1],
    "counts": [1, 2, 1],
    "n_words": 2,
    "alpha": [1.0, 1.0],
    "beta": 0.1,
    "topics": [0, 1, 1, 0],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": [1, 2.5, 1]}, r"document 1 has 2\.5 of word 0"),
        ({"words": [0, 0, 2]}, "word numbers below 2"),
        ({"topics": [0, 1, 1]}, "there are 4 tokens"),
        ({"topics": [0, 1, 2, 0]}, "token 2 begins in topic 2"),
        ({"topics": [0, -1, 1, 0]}, "token 1 begins in topic -1"),
        ({"topics": [0, 0.5, 1, 0]}, r"token 1 begins in topic 0\.5"),
        ({"counts": [1, 2**32, 1]}, "too many for a collapsed sampler"),
    ],
)
def test_bad_data(change, message):
    with pytest.raises(DataError, match=message):
        CollapsedTopics(**(GOOD | change))


@pytest.mark.parametrize(
    "change",
    [{"alpha": [1.0, 0.0]}, {"alpha": []}, {"alpha": [1.0, np.nan]}, {"beta": 0.0}, {"beta": 1e11}],
)
def test_bad_priors(change):
    with pytest.raises(LearnerError, match="must be numbers from"):
        CollapsedTopics(**(GOOD | change))
