"""Long sentences under very uneven tables: whatever is possible is found to be."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import softcount as sc
from tests.models.grammar.test_partly_known import random_brackets
from tests.oracles.trees import Grammar, not_crossing

K, T, V = 2, 2, 3


def logs_of(tables: Any) -> dict[str, Any]:
    with np.errstate(divide="ignore"):
        return {name: np.log(table) for name, table in tables.items()}


def inside(tables: Any, words: Any, brackets: Any) -> float:
    """log p by plain recursion, each number being a logarithm."""
    logs, n = logs_of(tables), len(words)
    rules = logs["rules"].reshape(K, K + T, K + T)
    crossed = not_crossing(n, [one[-2:] for one in brackets])
    over: dict[tuple[int, int], Any] = {}
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            own = np.full(K + T, -np.inf)
            if width == 1:
                own[K:] = logs["words"][:, words[i]]
            elif (i, i + width) not in crossed:
                pairs = [
                    over[i, k][:, None] + over[k, i + width][None] for k in range(i + 1, i + width)
                ]
                own[:K] = np.logaddexp.reduce(rules + np.logaddexp.reduce(pairs), axis=(1, 2))
            over[i, i + width] = own
    return float(np.logaddexp.reduce(logs["root"][0] + over[0, n]))


def uneven(rng: Any, least: float, zeros: float) -> dict[str, Any]:
    """Rows of which one entry is nearly all, others go down to ``least``, and some are none."""
    shapes = {"root": (1, K + T), "rules": (K, (K + T) ** 2), "words": (T, V)}
    found = {}
    for name, shape in shapes.items():
        table = 10.0 ** rng.uniform(np.log10(least), 0.0, shape)
        table[rng.random(shape) < zeros] = 0.0
        table[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] = 1.0
        found[name] = table / table.sum(axis=1, keepdims=True)
    return found


def model_of(tables: Any) -> sc.PCFG:
    model = sc.PCFG(K, T, learner=sc.EM(max_iter=1), unknown=False).fit(["a", "b", "c"])
    model.raw_params_ = tables
    return model


def bracketed(seed: int) -> tuple[list[list[int]], list[Any]]:
    """Words by number; brackets of which many leave whole widths without a span."""
    rng = np.random.default_rng(seed)
    numbers = [rng.integers(V, size=n).tolist() for n in (17, 18, 20, 23)]
    right = [(i, 20) for i in range(19)]
    left = [(0, j) for j in range(2, 24)]
    return numbers, [random_brackets(rng, 17), [(0, 9), (9, 18)], right, left]


def as_text(numbers: Any) -> list[list[str]]:
    return [["abc"[w] for w in words] for words in numbers]


seeds = pytest.mark.parametrize("seed", range(6))


@seeds
@pytest.mark.parametrize(
    ("least", "zeros"), [(1e-10, 0.0), (1e-10, 0.4), (1e-100, 0.0), (1e-90, 0.4), (1e-300, 0.0)]
)
def test_what_is_possible(least: float, zeros: float, seed: int) -> None:
    tables = uneven(np.random.default_rng(seed), least, zeros)
    model, (numbers, brackets) = model_of(tables), bracketed(seed)
    text = as_text(numbers)
    wanted = [inside(tables, *both) for both in zip(numbers, brackets, strict=True)]
    found = model.score_samples(text, brackets=brackets)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    for best, log_p in zip(model.predict(text, brackets=brackets), found, strict=True):
        assert (best is None) == np.isneginf(log_p)
    may = np.isfinite(found)
    assert [len(some) for some in model.sample_trees(text, 2, brackets=brackets)] == (
        2 * may
    ).tolist()
    text, known = (
        [one for one, m in zip(some, may, strict=True) if m] for some in (text, brackets)
    )
    counts = model.expected(text, brackets=known) if text else {}
    sizes = {
        "root": len(text),
        "rules": sum(len(s) - 1 for s in text),
        "words": sum(map(len, text)),
    }
    for name, table in counts.items():
        assert table.sum() == pytest.approx(sizes[name], rel=1e-6), name


@seeds
@pytest.mark.parametrize(("least", "zeros"), [(1e-90, 0.4), (1e-300, 0.0)])
def test_grammars_of_rules(least: float, zeros: float, seed: int) -> None:
    """The same as rules."""
    tables = uneven(np.random.default_rng(seed), least, zeros)
    numbers, brackets = bracketed(seed)
    text, model = as_text(numbers), sc.PCFG.from_rules(model_of(tables).grammar(0.0))
    wanted = [inside(tables, *both) for both in zip(numbers, brackets, strict=True)]
    found = model.score_samples(text, brackets=brackets)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    for best, log_p in zip(model.predict(text, brackets=brackets), found, strict=True):
        assert (best is None) == np.isneginf(log_p)


@seeds
def test_chances_that_are_out_of_reach(seed: int) -> None:
    """Two entries of 1e-300 in one step, and no other way: that is taken for nothing."""
    tables = uneven(np.random.default_rng(seed), 1e-300, 0.4)
    model, (numbers, brackets) = model_of(tables), bracketed(seed)
    found = model.score_samples(as_text(numbers), brackets=brackets)
    for words, some, log_p in zip(numbers, brackets, found, strict=True):
        assert log_p <= inside(tables, words, some) + 1e-6


@pytest.mark.parametrize("n", [100, 200])
@pytest.mark.parametrize("branching", ["left", "right", "none"])
def test_sentences_of_many_words(n: int, branching: str) -> None:
    rng = np.random.default_rng(n)
    tables = uneven(rng, 1e-3, 0.0)
    model = model_of(tables)
    words = rng.integers(V, size=n).tolist()
    some = {"left": [(0, j) for j in range(2, n)], "right": [(i, n) for i in range(n - 1)]}
    brackets = some.get(branching, [])
    (log_p,) = model.score_samples([["abc"[w] for w in words]], brackets=[brackets])
    assert np.isfinite(log_p)
    if branching != "none":  # a chain: one sum a word
        logs = logs_of(tables)
        rules = logs["rules"].reshape(K, K + T, K + T)
        order = words if branching == "left" else words[::-1]
        chain = np.full(K + T, -np.inf)
        chain[K:] = logs["words"][:, order[0]]
        for word in order[1:]:
            tags = np.full(K + T, -np.inf)
            tags[K:] = logs["words"][:, word]
            pair = (chain, tags) if branching == "left" else (tags, chain)
            new = np.full(K + T, -np.inf)
            new[:K] = np.logaddexp.reduce(rules + pair[0][:, None] + pair[1], axis=(1, 2))
            chain = new
        assert log_p == pytest.approx(np.logaddexp.reduce(logs["root"][0] + chain), rel=1e-9)


def test_the_recursion_is_that_of_all_trees() -> None:
    tables = uneven(np.random.default_rng(0), 1e-3, 0.2)
    for words in product(range(V), repeat=4):
        wanted = Grammar(tables, K, T).log_p(words, not_crossing(4, [(1, 3)]))
        assert inside(tables, words, [(1, 3)]) == pytest.approx(wanted)
