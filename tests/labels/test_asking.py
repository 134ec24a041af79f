"""Which items to label next, against enumeration of what is hidden."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import entropy

import softcount as sc
from softcount.core.errors import DataError, LearnerError
from softcount.labels import ask

TEXTS = [
    *(
        "good good fine",
        "bad awful bad",
        "good bad",
        "fine good good",
        "awful",
        "",
        "bad fine awful",
    ),
    *("zebra", "good awful fine bad", "fine"),
]
LABELS = ["+", "-", *[None] * 8]
SENTENCES = ["the dog barks", "a cat", "the cat sees the dog", "dog", "barks barks the", "a a cat"]


@pytest.fixture(scope="module")
def classifier() -> Any:
    return sc.NaiveBayes(smoothing=0.3).fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def tagger() -> Any:
    return sc.HMM(3, smoothing=0.2, max_iter=3, random_state=4).fit(SENTENCES)


def test_margin_and_entropy_of_classes(classifier: Any) -> None:
    p = classifier.predict_proba(TEXTS)
    gaps = np.abs(p[:, 0] - p[:, 1])
    free = np.arange(2, len(TEXTS))
    questions = ask(classifier, TEXTS, LABELS, n=4)
    assert list(questions) == free[np.argsort(gaps[2:], kind="stable")][:4].tolist()
    assert questions.scores == pytest.approx(1.0 - np.sort(gaps[2:])[:4])
    unsure = entropy(p, axis=1)
    questions = ask(classifier, TEXTS, LABELS, n=3, by="entropy")
    assert questions.scores == pytest.approx(np.sort(unsure[2:])[::-1][:3])


def test_labelled_items_are_never_asked_for(classifier: Any) -> None:
    for by in ("margin", "entropy", "committee", "information", "random"):
        questions = ask(classifier, TEXTS, LABELS, n=100, by=by)
        assert sorted(questions) == list(range(2, len(TEXTS)))
        assert (np.diff(questions.scores) <= 0.0).all()
    assert len(ask(classifier, TEXTS, ["+"] * len(TEXTS), n=5)) == 0


def test_scikit_learns_classifiers_may_ask() -> None:
    from sklearn.linear_model import LogisticRegression

    X = np.array([[0.0], [1.0], [0.2], [0.52], [0.9]])
    y = np.array([0, 1, -1, -1, -1])
    model = LogisticRegression().fit(X[:2], y[:2])
    assert list(ask(model, X, y, n=1)) == [3]
    with pytest.raises(LearnerError, match="a committee needs draws"):
        ask(model, X, y, by="committee")


def paths(model: Any, words: list[str]) -> dict[tuple[int, ...], float]:
    """p(z, x) of every sequence of states."""
    start, moves = model.params_["start"][0], model.params_["transitions"]
    says = model.emission_proba(words)  # (states, words)
    found = {}
    for z in product(range(len(start)), repeat=len(words)):
        p = start[z[0]] * np.prod([says[k, i] for i, k in enumerate(z)])
        p *= np.prod([moves[a, b] for a, b in pairwise(z)])
        found[z] = p * (moves[z[-1], -1] if moves.shape[1] > len(start) else 1.0)
    return found


def test_entropy_of_whole_sequences(tagger: Any) -> None:
    exact = [entropy(np.array([*paths(tagger, text.split()).values()]) + 0.0) for text in SENTENCES]
    wanted = np.argsort(-np.array(exact), kind="stable")
    for n in (1, 3, len(SENTENCES)):
        questions = ask(tagger, SENTENCES, n=n, by="entropy")
        assert list(questions) == wanted[:n].tolist()
        assert questions.scores == pytest.approx(np.array(exact)[wanted[:n]], rel=1e-9)


def test_margin_of_the_least_certain_word(tagger: Any) -> None:
    scores = []
    for text in SENTENCES:
        words = text.split()
        posterior = np.zeros((len(words), 3))
        for z, p in paths(tagger, words).items():
            posterior[np.arange(len(words)), z] += p
        two = np.sort(posterior / posterior.sum(axis=1, keepdims=True), axis=1)[:, -2:]
        scores.append(1.0 - (two[:, 1] - two[:, 0]).min())
    questions = ask(tagger, SENTENCES, n=len(SENTENCES))
    assert questions.scores == pytest.approx(sorted(scores, reverse=True))


def test_tags_that_are_known() -> None:
    tags = [["D", "N", "V"], None, ["D", "N", "V", "D", "N"], None, [None, None, "D"], None]
    model = sc.HMM(smoothing=0.2, max_iter=2).fit(SENTENCES, tags)
    assert sorted(ask(model, SENTENCES, tags)) == [1, 3, 4, 5]
    assert sorted(ask(model, SENTENCES, tags, by="information")) == [1, 3, 4, 5]


def test_trees() -> None:
    grammar = sc.PCFG.from_rules("S -> S S [0.4] | 'a' [0.3] | 'b' [0.3]")
    texts = ["a b", "a b a", "a", "a b a b a"]
    trees = grammar.k_best(texts, 1000)
    p = [np.exp([log for log, _ in some]) for some in trees]
    wanted = sorted((float(entropy(one)) for one in p), reverse=True)
    questions = ask(grammar, texts, by="entropy")
    assert questions.scores == pytest.approx(wanted, abs=1e-9)
    assert next(iter(questions)) == 3
    shares = [one / one.sum() for one in p]
    gaps = [one[0] - (one[1] if len(one) > 1 else 0.0) for one in shares]
    questions = ask(grammar, texts)
    assert questions.scores == pytest.approx(sorted(1.0 - np.array(gaps), reverse=True))


def test_committees_of_kept_draws() -> None:
    learner = sc.Gibbs(max_iter=30, burn_in=0.5)
    model = sc.NaiveBayes(smoothing=0.3, learner=learner, random_state=2).fit(TEXTS, LABELS)
    draws = [draw for chain in model.fit_.draws for draw in chain]
    free = TEXTS[2:]
    p = []
    for draw in draws:  # by Bayes' rule, word by word
        prior, words = draw["weights"].reshape(-1), draw["words"]
        columns = model.vectorizer_.vocabulary_
        joint = np.array(
            [
                prior * np.prod([words[:, columns[w]] for w in text.split()], axis=0)
                if text
                else prior
                for text in free
            ]
        )
        p.append(joint / joint.sum(axis=1, keepdims=True))
    p = np.array(p)
    mutual = entropy(p.mean(axis=0), axis=1) - entropy(p, axis=2).mean(axis=0)
    questions = ask(model, TEXTS, LABELS, by="information", committee=len(draws))
    assert questions.scores == pytest.approx(np.sort(mutual)[::-1], abs=1e-9)
    votes = np.eye(2)[p.argmax(axis=2)].mean(axis=0)
    questions = ask(model, TEXTS, LABELS, by="committee", committee=len(draws))
    assert questions.scores == pytest.approx(np.sort(entropy(votes, axis=1))[::-1], abs=1e-9)


def test_committees_are_drawn_from_the_posterior() -> None:
    """With all labels known it is a Dirichlet around the counts, with the prior of averages."""
    from softcount.labels.asking import _draw_params

    labels = ["+", "-"] * 5
    model = sc.NaiveBayes(smoothing=0.5).fit(TEXTS, labels)
    rng = np.random.default_rng(0)
    draws = [draw["words"] for draw in _draw_params(model, TEXTS, labels, 4000, rng)]
    counts = np.zeros_like(draws[0])
    for text, label in zip(TEXTS, labels, strict=True):
        for word in text.split():
            row = model.classes_.tolist().index(label)
            counts[row, model.vectorizer_.vocabulary_[word]] += 1.0
    alpha = counts + 0.5
    total = alpha.sum(axis=1, keepdims=True)
    error = np.sqrt(alpha * (total - alpha) / total**2 / (total + 1.0) / 4000)
    assert (np.abs(np.mean(draws, axis=0) - alpha / total) < 5.0 * error).all()


def test_outliers_are_asked_for_last(classifier: Any) -> None:
    """A text that nothing resembles is the least certain, and of no use for the others."""
    assert 7 in list(ask(classifier, TEXTS, LABELS, n=3))
    assert list(ask(classifier, TEXTS, LABELS, n=8, density=2.0)).index(7) >= 5


def test_same_seed_same_questions(classifier: Any) -> None:
    one, other = (ask(classifier, TEXTS, LABELS, by="committee", random_state=5) for _ in range(2))
    assert np.array_equal(one.items, other.items)
    assert np.array_equal(one.scores, other.scores)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "luck"}, "margin, entropy"),
        ({"n": 0}, "n=0"),
        ({"committee": 1, "by": "committee"}, "committee=1"),
        ({"density": -1.0}, "density"),
    ],
)
def test_what_cannot_be(classifier: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(LearnerError) as caught:
        ask(classifier, TEXTS, LABELS, **settings)
    assert message in f"{caught.value}"


def test_other_data_than_those_of_the_fit(classifier: Any) -> None:
    with pytest.raises(DataError, match="not the data that the model was fitted to"):
        ask(classifier, ["other words", "good bad", "bad"], ["+", "-", None], by="committee")
    with pytest.raises(DataError, match="2 labels for 10 items"):
        ask(classifier, TEXTS, ["+", "-"])
    bare = sc.NaiveBayes(smoothing=0.0).fit(TEXTS[:2], ["+", "-"])
    with pytest.raises(LearnerError, match="needs a prior"):
        ask(bare, TEXTS[:2], [None, None], by="committee")
