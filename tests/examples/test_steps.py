"""The worked examples, number by number, through the half-steps of EM."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.special import xlogy

import softcount as sc
from softcount.stories import StoryModel
from tests.examples.test_mixture_examples import B_EVEN, B_START, TWO_DOCUMENTS, lloyd
from tests.examples.test_worked_examples import A1, TWO_AND_TWO, coins, four_digits, three
from tests.oracles import stories

F = Fraction


def printed(figures: Any, digits: int) -> Any:
    """Figures to so many digits."""
    return pytest.approx(figures, abs=0.50001 * 10**-digits)


def told() -> StoryModel:
    return StoryModel(stories.coins(sc.table, sc.story), learner=sc.EM(max_iter=3, tol=0))


# A. Two coins behind a card


def test_a1_half_step_by_half_step() -> None:
    model, params = told(), coins(0.3, 0.3, 0.6)
    for *figures, log_likelihood in A1:
        posteriors = model.e_step(TWO_AND_TWO, params)
        assert (*three(params), *posteriors["A"]) == four_digits(figures)
        assert posteriors.log_likelihood == printed(log_likelihood, 6)
        params = model.m_step(TWO_AND_TWO, posteriors)


def test_a1_whole_table_in_one_call() -> None:
    model = told().fit(TWO_AND_TWO, init=coins(0.3, 0.3, 0.6), keep_posteriors=True)
    last_columns = [posteriors["A"] for posteriors in model.trace_.posteriors]
    assert np.array(last_columns) == printed(np.array([row[3:7] for row in A1]), 4)


def test_a1_by_a_mixture_of_bags_of_tosses() -> None:
    X = [[3, 0], [0, 3], [3, 0], [0, 3]]
    model = sc.MultinomialMixture(2, smoothing=0)
    params: Any = {"weights": [0.3, 0.7], "words": [[0.3, 0.7], [0.6, 0.4]]}
    for row in A1:
        posteriors = model.e_step(X, params)
        assert posteriors[0] == four_digits(row[3:7])
        params = model.m_step(X, posteriors)


def test_a2_a_saddle() -> None:
    model, params = told(), coins(0.3, 0.7, 0.7)
    assert model.e_step(TWO_AND_TWO, params).log_likelihood == printed(-9.363886, 6)
    for _ in range(5):
        params = model.m_step(TWO_AND_TWO, model.e_step(TWO_AND_TWO, params))
        posteriors = model.e_step(TWO_AND_TWO, params)
        assert three(params) == pytest.approx((0.3, 0.5, 0.5), abs=1e-9)
        assert posteriors["A"] == pytest.approx([0.3] * 4, abs=1e-9)
        assert posteriors.log_likelihood == printed(-8.317766, 6)


def test_a3_right_and_as_misprinted() -> None:
    items, model = ["HHH", "HHH", "TTT"], told()
    posteriors = model.e_step(items, coins(0.1, 0.8, 0.5))
    assert posteriors["A"] == four_digits((0.3128, 0.3128, 0.0071))
    assert three(model.m_step(items, posteriors)) == four_digits((0.2109, 0.9888, 0.5806))
    # from the posteriors that were printed, .3, .3 and .5, follow the parameters that were printed
    values = np.array([[0.3, 0.7], [0.3, 0.7], [0.5, 0.5]])
    misprinted = model.m_step(items, posteriors.replaced(values))
    assert three(misprinted) == pytest.approx((1.1 / 3, 1.8 / 3.3, 4.2 / 5.7), rel=1e-12)


def test_a4_nothing_is_hidden() -> None:
    items = [("A", "HHH"), ("A", "HHH"), ("B", "TTT")]
    outcomes = {"which": "AB", "flip": "HT"}
    story = stories.labelled_coins(lambda name: sc.table(name, outcomes[name]), sc.story)
    model = StoryModel(story)
    posteriors = model.e_step(items, "uniform")
    assert posteriors.values.tolist() == [[1.0]] * 3
    assert three(model.m_step(items, posteriors)) == pytest.approx((2 / 3, 1.0, 0.0), abs=1e-12)


# B. Document mixture


@pytest.mark.parametrize(
    ("X", "start", "logs"),
    [
        (TWO_DOCUMENTS, B_START, [-7.96228, -1.38887, -1.38629, -1.38629]),
        (TWO_DOCUMENTS, B_EVEN, [-13.86294] * 4),
        (
            [[10, 0], [5, 5], [5, 5]],
            B_START,
            [-19.53394, -17.41683, -16.03630, -15.77058, -15.77052, -15.77052],
        ),
        ([[10, 0], [5, 5], [5, 5]], B_EVEN, [-20.79442, -19.09543, -19.09543]),
    ],
    ids=["B1", "B2", "B3", "B4"],
)
def test_b_step_by_step(X: Any, start: Any, logs: list[float]) -> None:
    model, params = sc.MultinomialMixture(2, smoothing=0), start
    for log_likelihood in logs:
        weights, words = (np.asarray(params[name]) for name in ("weights", "words"))
        posteriors = model.e_step(X, params)
        assert posteriors.log_likelihood == printed(log_likelihood, 5)
        for row, counts in zip(posteriors.values, np.asarray(X), strict=True):  # as it is defined
            with np.errstate(divide="ignore"):
                logs_of = np.log(weights.reshape(-1))
                logs_of = logs_of + xlogy(counts, words).sum(axis=1)
            joint = np.exp(logs_of - logs_of.max())
            assert row == pytest.approx(joint / joint.sum(), abs=1e-12)
        params = model.m_step(X, posteriors)


# C. Word alignment, with both E-steps

PAIRS = [("three rabbits", "trois lapins"), ("rabbits of grenoble", "lapins de Grenoble")]
THIRDS = {"lapins": F(1, 3), "de": F(1, 3), "Grenoble": F(1, 3)}
LAST = {"lapins": F(5, 18), "de": F(13, 36), "Grenoble": F(13, 36)}
HALVES = {"trois": F(1, 2), "lapins": F(1, 2)}
C1 = {
    "three": HALVES,
    "rabbits": {"trois": F(1, 4), "lapins": F(5, 12), "de": F(1, 6), "Grenoble": F(1, 6)},
    "of": THIRDS,
    "grenoble": THIRDS,
}
C2 = {
    "three": {"trois": F(11, 20), "lapins": F(9, 20)},
    "rabbits": {
        "trois": F(715, 3373),
        "lapins": F(1800, 3373),
        "de": F(429, 3373),
        "Grenoble": F(429, 3373),
    },
    "of": LAST,
    "grenoble": LAST,
}
COURSE = {
    "three": HALVES,
    "rabbits": {"trois": F(3, 16), "lapins": F(85, 144), "de": F(1, 9), "Grenoble": F(1, 9)},
    "of": THIRDS,
    "grenoble": THIRDS,
}


def is_table(found: Any, expected: dict[str, dict[str, Fraction]]) -> None:
    rows = found["translation"]
    assert {word for word in rows if word} == set(expected)
    for word, row in expected.items():
        assert dict(rows[word]) == pytest.approx({f: float(p) for f, p in row.items()}, abs=1e-14)


@pytest.mark.parametrize(("over", "second"), [("source", C2), ("target", COURSE)])
def test_c_both_e_steps(over: str, second: Any) -> None:
    model = sc.align.IBM1(null=False)
    first = model.m_step(PAIRS, model.e_step(PAIRS, "uniform", over=over))
    is_table(first, C1)
    posteriors = model.e_step(PAIRS, first, over=over)
    is_table(model.m_step(PAIRS, posteriors), second)


def test_c_posteriors_of_each_pair() -> None:
    model = sc.align.IBM1(null=False)
    first = model.m_step(PAIRS, model.e_step(PAIRS, "uniform"))
    pair = model.e_step(PAIRS, first).item(1)
    assert pair.columns == ("rabbits", "of", "grenoble")
    assert pair.index["word"] == ["lapins", "de", "Grenoble"]
    by_hand = [[F(5, 12), F(1, 3), F(1, 3)], [F(1, 6), F(1, 3), F(1, 3)]]
    for row, t in zip(pair.values, [*by_hand, by_hand[1]], strict=True):
        assert row == pytest.approx([float(p / sum(t)) for p in t], abs=1e-14)


def test_c_perplexity_as_printed_and_per_word() -> None:
    model = sc.align.IBM1(null=False, learner=sc.EM(max_iter=1, tol=0)).fit(PAIRS)
    likelihood = 1.0
    for source, target in PAIRS:
        es = source.split()
        for f in target.split():
            likelihood *= sum(float(C1[e].get(f, 0)) for e in es) / len(es)
    assert model.perplexity(PAIRS) == pytest.approx(likelihood ** (-1 / 5), rel=1e-12)
    by_pairs = model.score_samples(PAIRS) / math.log(2)
    assert model.perplexity(PAIRS, per="text") == pytest.approx(2 ** -by_pairs.sum(), rel=1e-12)
    assert model.perplexity(PAIRS, per="text") == pytest.approx(1 / likelihood, rel=1e-12)


# D. Six headlines

HEADLINES = [
    *(f"Apple released {thing} ." for thing in ("iPod", "iPhone", "iPad")),
    *(f"Tom bought one {thing} ." for thing in ("iPod", "iPhone", "iPad")),
]


def test_d_an_even_start_cannot_move() -> None:
    model = sc.MultinomialMixture(2, smoothing=0)
    params: Any = "uniform"
    for _ in range(3):
        posteriors = model.e_step(HEADLINES, params)
        assert posteriors.values == pytest.approx(np.full((6, 2), 0.5))
        params = model.m_step(HEADLINES, posteriors)


def test_d_two_templates_by_half_steps() -> None:
    model = sc.MultinomialMixture(2, smoothing=0, random_state=3)
    params: Any = "random"
    for _ in range(60):
        posteriors = model.e_step(HEADLINES, params)
        params = model.m_step(HEADLINES, posteriors)
    labels = posteriors.values.argmax(axis=1).tolist()
    assert labels in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])


def test_d_aic_as_printed_and_as_counted() -> None:
    model = sc.MultinomialMixture(2).fit(HEADLINES)
    K, V = model.words_.shape
    log_likelihood = model.score_samples(HEADLINES).sum()
    free = K - 1 + K * (V - 1)
    assert model.aic(HEADLINES) == pytest.approx(2 * free - 2 * log_likelihood)
    assert model.aic(HEADLINES, count="all") == pytest.approx(2 * (K * V + K) - 2 * log_likelihood)


# E. Six news notes

NOTES = [
    "World_Cup Russia host",
    "World_Cup boost Russia economy",
    "Russia bid World_Cup",
    "Russia economy growing oil",
    "Russia economy recover continue",
    "Russia oil dependence",
]


def cosine(a: Any, b: Any) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def test_e_topics_of_documents_of_each_step() -> None:
    learner = sc.EM(n_init=100, max_iter=300, tol=1e-9)
    model = sc.PLSA(2, init="random", learner=learner)
    model.fit([note.split() for note in NOTES], keep_posteriors=True)
    for state, posteriors in zip(model.trace_, model.trace_.posteriors, strict=True):
        rows = state.params["documents"]
        assert rows.shape == (6, 2)
        assert rows.sum(axis=1) == pytest.approx(np.ones(6))
        assert posteriors.of == "topic"
        # P(z | d, w) ∝ P(z | d) P(w | z)
        topics = state.params["topics"]
        words = model.word_names().tolist()
        d, w = posteriors.index["document"][0], words.index(posteriors.index["word"][0])
        joint = rows[d] * topics[:, w]
        assert posteriors.values[0] == pytest.approx(joint / joint.sum(), abs=1e-9)
    theta = model.documents_
    assert cosine(theta[0], theta[2]) > cosine(theta[1], theta[4])
    assert cosine(theta[3], theta[4]) > cosine(theta[1], theta[4])


# F. k-means as hard EM


def test_f_iteration_by_iteration() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(10, 2)), rng.normal(size=(10, 2)) + 4.0])
    model, centres = sc.KMeans(2), X[:2].copy()
    params: Any = {"means": centres}
    for expected, labels in lloyd(X, centres, 5):
        np.testing.assert_allclose(np.asarray(params["means"]), expected, atol=1e-9)
        posteriors = model.e_step(X, params)
        assert set(posteriors.values.reshape(-1)) == {0.0, 1.0}
        assert posteriors.values.argmax(axis=1).tolist() == labels.tolist()
        params = model.m_step(X, posteriors)


def test_f_from_random_memberships() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    model = sc.KMeans(3, init="memberships", random_state=2).fit(X, keep_params=True)
    first = model.trace_.params[0]["points"][:, :2] + model.offset_
    # each centre is the mean of its members: so all of them together have the mean of the data
    sizes = np.linalg.lstsq(
        np.vstack([first.T, np.ones(3)]), np.append(X.mean(axis=0), 1.0), rcond=None
    )[0]
    assert sizes * 30 == pytest.approx(np.round(sizes * 30), abs=1e-6)
    assert (sizes * 30 > 0.5).all()
    runs = lloyd(X, first, len(model.trace_))
    np.testing.assert_allclose(model.means_, runs[-1][0], atol=1e-9)


# G. Label propagation, as printed and harmonic

CHAIN = np.diag(np.ones(3), 1)
STAR = np.array([[0.0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
EDGES = [(0, 1), (1, 2), (2, 3), (2, 4), (4, 5), (2, 5)]


def second_graph() -> np.ndarray:
    graph = np.zeros((6, 6))
    graph[tuple(zip(*EDGES, strict=True))] = 1.0
    return graph


def propagated(graph: Any, labels: list[int], algorithm: str) -> Any:
    model = sc.labels.LabelPropagation(
        weights="precomputed", class_mass=False, algorithm=algorithm, tol=1e-10, max_iter=10000
    )
    return model.fit(graph, labels)


def test_g_the_printed_iterations_one_by_one() -> None:
    model = propagated(CHAIN, [0, -1, -1, 1], "propagation")
    middle = [table[1][1:3].tolist() for table in islice(model.iterations(), 4)]
    assert middle[0] == [0.5, 0.5]
    assert middle[1] == pytest.approx([1 / 6, 5 / 6], abs=1e-12)
    assert middle[2] == pytest.approx([5 / 18, 13 / 18], abs=1e-12)
    assert middle[3] == printed([0.2407, 0.7593], 4)


@pytest.mark.parametrize(
    ("algorithm", "chain", "second", "star"),
    [
        ("propagation", [1 / 4, 3 / 4], [0.1429, 0.7143, 0.7143, 0.7143], 2 / 3),
        ("harmonic", [1 / 3, 2 / 3], [0.3333, 0.6667, 0.6667, 0.6667], 2 / 3),
    ],
)
def test_g_both_limits(algorithm: str, chain: Any, second: Any, star: float) -> None:
    found = propagated(CHAIN, [0, -1, -1, 1], algorithm)
    assert found.label_distributions_[1:3, 1] == pytest.approx(chain, abs=1e-8)
    assert found.verdict_ is sc.Verdict.CONVERGED
    *_, last = islice(found.iterations(), 200)
    assert last[1][1:3] == pytest.approx(chain, abs=1e-8)
    labels = [0, -1, -1, 1, -1, -1]
    found = propagated(second_graph(), labels, algorithm)
    assert found.label_distributions_[[1, 2, 4, 5], 1] == printed(second, 4)
    found = propagated(STAR, [-1, 1, 1, 0], algorithm)
    assert found.label_distributions_[0, 1] == pytest.approx(star, abs=1e-8)


# H. Six film reviews: tests/mixture/test_collapse_two_classes.py has whole reviews

MARKED = ["réussi", "long", "réussi parfaitement", "long bavard", "parfaitement", "bavard"]
SHOWN = ["+", "-", None, None, None, None]


@pytest.mark.parametrize("algorithm", ["harmonic", "propagation"])
def test_h_labels_reach_reviews_without_a_common_word(algorithm: str) -> None:
    model = sc.labels.LabelPropagation(algorithm=algorithm, class_mass=False).fit(MARKED, SHOWN)
    assert model.transduction_.tolist() == ["+", "-", "+", "-", "+", "-"]


def test_h_naive_bayes_by_half_steps() -> None:
    model = sc.NaiveBayes()
    params = model.fit([MARKED[0], MARKED[1]], ["+", "-"]).params_
    # the labels of the first two hold in every E-step; the words of the others come in by EM
    whole = sc.NaiveBayes().fit(MARKED, SHOWN, keep_posteriors=True)
    assert params["weights"].size == 2
    for posteriors in whole.trace_.posteriors:
        assert posteriors["+"][:2].tolist() == [1.0, 0.0]
    first, *_, last = whole.trace_.posteriors
    assert first["+"][4:] == pytest.approx([0.5, 0.5], abs=1e-9)  # nothing is known yet
    assert (last["+"] > 0.5).tolist() == [True, False, True, False, True, False]


# I. Names and contexts: co-training

NAMES = [
    ("Peachtree Street", "located on", "LOC"),
    ("Dr. Walker", "said", "PER"),
    ("Zanzibar", "located in", None),
    ("Zanzibar", "flew to", None),
    ("Dr. Robert", "recommended", None),
    ("Oprah", "recommended", None),
]


def test_i_names_and_contexts_in_turns() -> None:
    items = [{"name": name, "context": context} for name, context, _ in NAMES]
    labels = [label for _, _, label in NAMES]
    model = sc.labels.CoTraining(["name", "context"], per_class=1).fit(items, labels)
    assert model.transduction_[2:].tolist() == ["LOC", "LOC", "PER", "PER"]
    fifth, sixth = model.history_.of(4)[0], model.history_.of(5)[0]
    assert (fifth.view, fifth.round) == ("name", 1)
    assert (sixth.view, sixth.round) == ("context", 2)
