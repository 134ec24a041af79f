"""Grammars told as stories: the story engine, which knows none of them, agrees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.grammar.rules import Rule, from_text
from tests.oracles.trees import random_tables

EXACT = 1e-10
STEPS = 4
K, T = 2, 2
N = K + T
SENTENCES = [list(text) for text in ("abc", "cab", "ab", "c", "bacab", "abba", "cbaa")]
WORDS = list("abc")
BRACKETS = [[(0, 2)], None, [], None, [(1, 4), (0, 4)], [(2, 4)], None]
knowledge = pytest.mark.parametrize("brackets", [None, BRACKETS], ids=["nothing", "brackets"])
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


def of_rules(rules: Sequence[Rule]) -> Any:
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
    return list(zip(SENTENCES, brackets or [None] * len(SENTENCES), strict=True))


def both_dense(brackets: Any = None, smoothing: float = 0.0, **settings: Any) -> Any:
    """The model and the story, learned from the same start; and entries of tables, by name."""
    tables = random_tables(np.random.default_rng(3), K, T, len(WORDS))
    model = sc.PCFG(K, T, smoothing=smoothing, init=tables, **settings)
    model.fit(SENTENCES, brackets=brackets)
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
    rules = from_text(TEXT)
    model = sc.PCFG.from_rules(TEXT, smoothing=smoothing, **settings)
    model.fit(SENTENCES, brackets=brackets)

    def by_rule(tables: Any) -> dict[str, dict[Any, float]]:
        pairs = enumerate(zip(rules.rules, np.asarray(tables["rules"]).tolist(), strict=True))
        return {"rules": {(rule.lhs, n): p for n, (rule, p) in pairs}}

    told = sc.StoryModel(of_rules(rules.rules), smoothing=smoothing, **settings)
    start = nested(by_rule({"rules": rules.chances}))
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
    logs = model.score_samples(SENTENCES, brackets=brackets)
    np.testing.assert_allclose(logs, told.score(items(brackets)), rtol=0.0, atol=EXACT)
    for n, item in enumerate(items(brackets)):
        known = None if brackets is None else [brackets[n]]
        counts = entries_of(model.expected([SENTENCES[n]], brackets=known))
        expected = told.posterior(item)
        for name, entries in counts.items():
            for key, count in entries.items():
                theirs = expected.get(name, {}).get(key, 0.0)
                assert theirs == pytest.approx(count, abs=EXACT), (name, key)
        ((log_p, _),) = model.k_best([SENTENCES[n]], 1, brackets=known)[0]
        assert told.best(item).log_probability == pytest.approx(log_p, abs=EXACT)
