"""Grammars by every learner, and the same grammars as stories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import LearnerError
from softcount.grammar.rules import GrammarRule, parse_rules
from tests.grammar.cases import (
    LEARNERS,
    SENTENCES,
    TOY,
    assert_same,
    estimator,
    kinds,
    learning,
)
from tests.oracles.trees import random_tables

# Every learner learns grammars of both kinds; known grammars are found again


BRACKETS = [[(2, 7)], None, [(0, 5), (6, 10)], [(1, 7)], None, [(0, 2), (2, 8)]]


def rows(kind: str, model: Any, name: str) -> list[Any]:
    """The distributions of a table."""
    table = model.params_[name]
    if kind == "rules" and name == "rules":
        return np.split(table, model.core_.rules.indptr[1:-1])
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
        model.set_params(n_components=3, n_preterminals=4)
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
    own = model.core_.rules
    even = np.repeat(1.0 / np.diff(own.indptr), np.diff(own.indptr))
    assert np.allclose(start["rules"], even) == (init == "uniform")
    assert np.array_equal(start["rules"], own.probabilities) == (init is None)


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


# Grammars told as stories: the story engine, which knows none of them, agrees


EXACT = 1e-10
STEPS = 4
K, T = 2, 2
N = K + T
STORY_SENTENCES = [list(text) for text in ("abc", "cab", "ab", "c", "bacab", "abba", "cbaa")]
WORDS = list("abc")
STORY_BRACKETS = [[(0, 2)], None, [], None, [(1, 4), (0, 4)], [(2, 4)], None]
knowledge = pytest.mark.parametrize("brackets", [None, STORY_BRACKETS], ids=["nothing", "brackets"])
steps = {"learner": sc.EM(max_iter=STEPS, tol=0.0)}

# n-ary, unary and binary rules; words alone and among others
TEXT = """
S -> A B [0.4] | A S B [0.2] | 'a' S [0.2] | B [0.1] | A 'b' C [0.1]
A -> 'a' [0.5] | C [0.2] | A C [0.3]
B -> 'b' [0.5] | C [0.1] | C A [0.2] | 'c' B A 'a' [0.2]
C -> 'c' [0.7] | 'a' [0.2] | 'b' [0.1]
"""


def crosses(some: Any, i: int, j: int) -> bool:
    return any(a < i < b < j or i < a < j < b for a, b in some or ())


def dense() -> Any:
    """Item: words, and what is known of them."""
    root, rules, emit = sc.table("root"), sc.table("rules"), sc.table("words")

    @sc.story
    def span(words: Sequence[str], known: Any, i: int, j: int, symbol: int) -> Iterator[Any]:
        if j - i == 1 and symbol >= K:
            yield emit[symbol, words[i]]
        if j - i == 1 or symbol >= K or crosses(known, i, j):
            return
        for k, left, right in product(range(i + 1, j), range(N), range(N)):
            below = span(words, known, i, k, left), span(words, known, k, j, right)
            yield rules[symbol, (left, right)], *below

    @sc.story
    def sentence(words: Sequence[str], known: Any) -> Iterator[Any]:
        for symbol in range(N):
            yield root[symbol], span(words, known, 0, len(words), symbol)

    return sentence


def of_rules(rules: Sequence[GrammarRule]) -> Any:
    """The same with rules, which have no cycles of unary ones."""
    chance = sc.table("rules")

    @sc.story
    def beside(words: Any, known: Any, i: int, j: int, rule: int, n: int) -> Iterator[Any]:
        """What is left of a rule from its item n on."""
        item, is_word = rules[rule].rhs[n], rules[rule].is_word[n]
        is_last = n + 1 == len(rules[rule].rhs)
        for k in [j] if is_last else range(i + 1, j):
            if is_word and words[i:k] != [item]:
                continue
            head = () if is_word else (span(words, known, i, k, item),)
            tail = () if is_last else (beside(words, known, k, j, rule, n + 1),)
            yield *head, *tail

    @sc.story
    def span(words: Any, known: Any, i: int, j: int, symbol: str) -> Iterator[Any]:
        if crosses(known, i, j):
            return
        for number, rule in enumerate(rules):
            if rule.lhs == symbol and len(rule.rhs) <= j - i:
                yield chance[symbol, number], beside(words, known, i, j, number, 0)

    @sc.story
    def sentence(words: Sequence[str], known: Any) -> Iterator[Any]:
        yield span(words, known, 0, len(words), "S")

    return sentence


def items(brackets: Any) -> list[Any]:
    return list(zip(STORY_SENTENCES, brackets or [None] * len(STORY_SENTENCES), strict=True))


def both_dense(brackets: Any = None, smoothing: float = 0.0, **settings: Any) -> Any:
    """The model and the story, learned from the same start; and entries of tables, by name."""
    tables = random_tables(np.random.default_rng(3), K, T, len(WORDS))
    model = sc.PCFG(K, T, smoothing=smoothing, init=tables, **settings)
    model.fit(STORY_SENTENCES, brackets=brackets)
    told = sc.StoryModel(dense(), smoothing=smoothing, **settings)
    return model, told.fit(items(brackets), init=nested(keyed(tables))), keyed


def keyed(tables: Any) -> dict[str, dict[Any, float]]:
    """Entries by what stories call them: the condition if there is one, and the outcome."""
    found: dict[str, dict[Any, float]] = {name: {} for name in tables}
    for name, table in tables.items():
        for (row, column), p in np.ndenumerate(np.asarray(table)):
            if name == "root":
                found[name][(column,)] = float(p)
            elif name == "rules":
                found[name][row, divmod(column, N)] = float(p)
            else:
                found[name][K + row, WORDS[column]] = float(p)
    return found


def both_rules(brackets: Any = None, smoothing: float = 0.0, **settings: Any) -> Any:
    rules = parse_rules(TEXT)
    model = sc.PCFG.from_rules(TEXT, smoothing=smoothing, **settings)
    model.fit(STORY_SENTENCES, brackets=brackets)

    def by_rule(tables: Any) -> dict[str, dict[Any, float]]:
        pairs = enumerate(zip(rules.rules, np.asarray(tables["rules"]).tolist(), strict=True))
        return {"rules": {(rule.lhs, n): p for n, (rule, p) in pairs}}

    told = sc.StoryModel(of_rules(rules.rules), smoothing=smoothing, **settings)
    start = nested(by_rule({"rules": rules.probabilities}))
    return model, told.fit(items(brackets), init=start), by_rule


def nested(entries: Any) -> dict[str, Any]:
    """Entries as stories take their start."""
    found: dict[str, Any] = {}
    for name, own in entries.items():
        for key, p in own.items():
            into = found.setdefault(name, {})
            (into if len(key) == 1 else into.setdefault(key[0], {}))[key[-1]] = p
    return found


both = pytest.mark.parametrize("both", [both_dense, both_rules], ids=["dense", "rules"])


def check_tables(model: Any, told: Any, entries_of: Any) -> None:
    """Every entry of a story's tables; a story has none that nothing leads to."""
    for name, entries in entries_of(model.params_).items():
        table, seen = told.params_[name], 0
        for key, p in entries.items():
            row = table if len(key) == 1 else table.get(key[0], {})
            if key[-1] in row:
                seen += 1
                assert row[key[-1]] == pytest.approx(p, abs=EXACT), (name, key)
        assert seen >= 0.9 * len(entries), name


@both
@knowledge
def test_steps_of_em(both: Any, brackets: Any) -> None:
    model, told, entries_of = both(brackets, **steps)
    ours, theirs = (np.asarray(one.trace_.log_likelihood) for one in (model, told))
    assert len(ours) == STEPS + 1
    assert ours[-1] > ours[0] + 1.0
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=EXACT)
    check_tables(model, told, entries_of)


@both
def test_smoothing(both: Any) -> None:
    model, told, entries_of = both(smoothing=0.3, **steps)
    ours, theirs = (np.asarray(one.trace_.log_likelihood) for one in (model, told))
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=EXACT)
    check_tables(model, told, entries_of)


@both
@knowledge
def test_viterbi_training(both: Any, brackets: Any) -> None:
    model, told, entries_of = both(brackets, learner=sc.HardEM(max_iter=3, tol=0.0))
    ours, theirs = (np.asarray(one.trace_.objective) for one in (model, told))
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=EXACT)
    check_tables(model, told, entries_of)


@both
@knowledge
def test_what_is_said_of_sentences(both: Any, brackets: Any) -> None:
    """log p, expected counts and the probability of best trees, sentence by sentence."""
    model, told, entries_of = both(learner=sc.EM(max_iter=1, tol=0.0))
    logs = model.score_samples(STORY_SENTENCES, brackets=brackets)
    np.testing.assert_allclose(logs, told.score(items(brackets)), rtol=0.0, atol=EXACT)
    for n, item in enumerate(items(brackets)):
        known = None if brackets is None else [brackets[n]]
        counts = entries_of(model.expected_counts([STORY_SENTENCES[n]], brackets=known))
        expected = told.posterior(item)
        for name, entries in counts.items():
            for key, count in entries.items():
                theirs = expected.get(name, {}).get(key, 0.0)
                assert theirs == pytest.approx(count, abs=EXACT), (name, key)
        ((log_p, _),) = model.k_best([STORY_SENTENCES[n]], 1, brackets=known)[0]
        assert told.best(item).log_probability == pytest.approx(log_p, abs=EXACT)
