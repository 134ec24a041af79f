"""Every learner learns grammars of both kinds; known grammars are found again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.errors import LearnerError
from tests.models.grammar.text import (
    LEARNERS,
    SENTENCES,
    TOY,
    assert_same,
    estimator,
    kinds,
    learning,
)

BRACKETS = [[(2, 7)], None, [(0, 5), (6, 10)], [(1, 7)], None, [(0, 2), (2, 8)]]


def rows(kind: str, model: Any, name: str) -> list[Any]:
    """The distributions of a table."""
    table = model.params_[name]
    if kind == "rules" and name == "rules":
        return np.split(table, model.form_.own.rules.indptr[1:-1])
    return list(table)


@kinds
@pytest.mark.parametrize("brackets", [None, BRACKETS], ids=["raw", "brackets"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner(learner: str, kind: str, brackets: Any) -> None:
    model = learning(kind, learner)
    before = model.params_ if kind == "rules" else None
    model.fit(SENTENCES, brackets=brackets)
    bayes = learner in ("VariationalBayes", "StochasticVB")
    for name in model.params_:
        for row in rows(kind, model, name):
            assert (row >= 0.0).all()
            assert row.sum() == pytest.approx(1.0) or (bayes and row.sum() < 1.0)
    if before is not None:
        assert not np.array_equal(model.params_["rules"], before["rules"])
    assert [one.words() for one in model.predict(SENTENCES)] == SENTENCES
    assert np.isfinite(model.score_samples(SENTENCES, brackets=brackets)).all()
    again = learning(kind, learner).fit(SENTENCES, brackets=brackets)
    assert_same(again.params_, model.params_)


@kinds
@pytest.mark.parametrize("learner", [name for name in LEARNERS if name != "HardEM"])
def test_every_learner_with_a_few_trees(learner: str, kind: str) -> None:
    """The tree that is known has more rules of its own than without it."""
    trees = ["(S (NP she) (VP (V sees)))", *[None] * len(SENTENCES)]
    text = [["she", "sees"], *SENTENCES]
    model = learning(kind, learner)
    if kind == "dense":
        model.set_params(n_nonterminals=3, n_preterminals=4)
    model.fit(text, trees)
    assert np.isfinite(model.score_samples(text)).all()
    assert [one.words() for one in model.predict(text)] == text


@kinds
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("brackets", [None, BRACKETS], ids=["raw", "brackets"])
def test_em_never_falls(kind: str, smoothing: float, brackets: Any) -> None:
    model = estimator(kind, smoothing=smoothing, learner=sc.EM(max_iter=30, tol=0))
    trace = np.asarray(model.fit(SENTENCES, brackets=brackets).trace_.objective)
    assert (np.diff(trace) >= -1e-9 * abs(trace[0])).all()
    assert trace[-1] > trace[0] + 1.0


@kinds
@pytest.mark.parametrize(
    "learner", [sc.HardEM(max_iter=10, tol=0), sc.VariationalBayes(max_iter=30, tol=0)], ids=str
)
def test_hard_em_and_vb_never_fall(kind: str, learner: Any) -> None:
    model = estimator(kind, smoothing=0.2, learner=learner).fit(SENTENCES)
    trace = np.asarray(model.trace_.objective)
    trace = trace[np.isfinite(trace)]
    assert len(trace) > 2
    assert (np.diff(trace) >= -1e-9 * abs(trace[0])).all()


@kinds
@pytest.mark.parametrize("learner", ["OnlineEM", "IncrementalEM", "MonteCarloEM", "annealed"])
def test_others_get_somewhere(kind: str, learner: str) -> None:
    model = learning(kind, learner, smoothing=0.01).fit(SENTENCES)
    trace = np.asarray(model.trace_.log_likelihood)
    start = estimator(kind, smoothing=0.01, learner=sc.EM(max_iter=1)).fit(SENTENCES)
    assert model.score(SENTENCES) > start.trace_.log_likelihood[0] / len(SENTENCES)
    assert np.isfinite(trace[-1])


@kinds
def test_laws(kind: str) -> None:
    model = estimator(kind, smoothing=0.5, learner=sc.EM(max_iter=3)).fit(SENTENCES)
    report = sc.check_model(model, SENTENCES)
    assert report.passed, report
    assert len(report) > 5


@kinds
def test_likelihood_taken_apart(kind: str) -> None:
    model = estimator(kind, smoothing=0.1, learner=sc.EM(max_iter=2)).fit(SENTENCES)
    parts = model.decompose(SENTENCES, model.params_)
    assert parts.log_likelihood == pytest.approx(model.score_samples(SENTENCES).sum())


@kinds
def test_learners_that_need_a_prior(kind: str) -> None:
    with pytest.raises(LearnerError, match="prior"):
        estimator(kind, learner=sc.VariationalBayes()).fit(SENTENCES)


@pytest.mark.parametrize("init", ["random", "uniform", None])
def test_starts_of_rules(init: Any) -> None:
    model = sc.PCFG.from_rules(TOY, init=init, learner=sc.EM(max_iter=1, tol=0))
    start = model.fit(SENTENCES, keep_params=True).trace_.params[0]
    own = model.form_.own.rules
    even = np.repeat(1.0 / np.diff(own.indptr), np.diff(own.indptr))
    assert np.allclose(start["rules"], even) == (init == "uniform")
    assert np.array_equal(start["rules"], own.chances) == (init is None)


@kinds
def test_development_chooses_the_run(kind: str) -> None:
    learner = sc.EM(max_iter=2, tol=0, n_init=3)
    model = estimator(kind, smoothing=0.1, init="random", learner=learner)
    model.fit(SENTENCES[:3], development=SENTENCES[3:])
    assert np.isfinite(model.score_samples(SENTENCES[:3])).all()


# known grammars are found again
PALINDROMES = """
S -> A C [0.25] | B D [0.25] | A A [0.25] | B B [0.25]
C -> S A
D -> S B
A -> 'a'
B -> 'b'
"""
ENGLISH = """
S  -> NP VP
NP -> D N [0.6] | D JN [0.2] | 'she' [0.2]
JN -> J N
VP -> V NP [0.5] | 'sleeps' [0.3] | VP PP [0.2]
PP -> P NP
D  -> 'the' | 'a'
N  -> 'dog' | 'cat' | 'man'
J  -> 'old' | 'big'
V  -> 'sees' | 'likes'
P  -> 'with' | 'near'
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "sizes", "starts"), [(PALINDROMES, (5, 2), 10), (ENGLISH, (8, 8), 6)]
)
def test_a_grammar_is_found_again(rules: str, sizes: tuple[int, int], starts: int) -> None:
    """Trees are not seen, and symbols have no names: the best run is as likely as the truth."""
    truth = sc.PCFG.from_rules(rules)
    made = [one.words() for one in truth.generate(250, random_state=1)]
    text = [words for words in made if len(words) <= 14]
    assert len(text) > 240
    model = sc.PCFG(*sizes, learner=sc.EM(n_init=starts, max_iter=60)).fit(text)
    assert model.score(text) > 1.01 * truth.score(text)
