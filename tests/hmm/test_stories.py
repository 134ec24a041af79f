"""Hidden Markov models told as stories: the story engine, which knows none of them, agrees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.types import EStep
from tests.oracles.sequences import random_tables

EXACT = 1e-10
STEPS = 4
STATES = (0, 1, 2)
SENTENCES = [
    ["the", "dog", "barks"],
    ["a", "cat"],
    ["the", "cat", "and", "a", "dog", "bark"],
    ["go"],
    ["the", "dog", "and", "the", "cat", "go"],
    ["a", "dog", "barks", "and", "barks"],
]
WORDS = list(dict.fromkeys(word for words in SENTENCES for word in words))
TAGS: list[Any] = [
    [None, {1, 2}, None],
    None,
    [0, None, 2, 0, {0, 1}, None],
    [None],
    [{0, 2}, 1, None, None, None, {1, 2}],
    [-1, 2, -1, None, 0],
]

orders = pytest.mark.parametrize("order", [1, 2])
stops = pytest.mark.parametrize("stop", [True, False])
knowledge = pytest.mark.parametrize("tags", [None, TAGS], ids=["nothing", "some tags"])


def may_be(tag: Any, state: int) -> bool:
    if tag is None or tag == -1:
        return True
    return state in tag if isinstance(tag, set) else state == tag


def two(first: int, second: int) -> str:
    return f"{first} then {second}"


def hidden_chain(order: int, stop: bool) -> Any:
    """Item: words, and what is known of their tags."""
    start, second = sc.table("start"), sc.table("second")
    moves, emit = sc.table("transitions"), sc.table("emissions")

    def after(behind: tuple[int, ...], outcome: Any) -> Any:
        if order == 1:
            return moves[behind[-1], outcome]
        if len(behind) == 1:
            return second[behind[0], outcome]
        return moves[two(*behind), outcome]

    @sc.story
    def rest(words: Sequence[str], tags: Any, i: int, behind: tuple[int, ...]) -> Iterator[Any]:
        for state in STATES:
            if tags is not None and not may_be(tags[i], state):
                continue
            arrived = after(behind, state) if behind else start[state]
            here = (*behind, state)[-order:]
            if i + 1 < len(words):
                yield arrived, emit[state, words[i]], rest(words, tags, i + 1, here)
            elif stop:
                yield arrived, emit[state, words[i]], after(here, "end")
            else:
                yield arrived, emit[state, words[i]]

    @sc.story
    def sentence(words: Sequence[str], tags: Any) -> Iterator[Any]:
        yield rest(words, tags, 0, ())

    return sentence


def keyed(tables: Any, order: int) -> dict[str, dict[Any, float]]:
    """Entries by what stories call them: the condition if there is one, and the outcome."""
    k = len(STATES)
    outcomes = [*STATES, "end"]
    found: dict[str, dict[Any, float]] = {}
    for name, table in tables.items():
        own = found.setdefault(name, {})
        for row, values in enumerate(np.asarray(table)):
            pair = name == "transitions" and order == 2
            condition: Any = two(*divmod(row, k)) if pair else row
            for column, value in enumerate(values):
                outcome = WORDS[column] if name == "emissions" else outcomes[column]
                own[(outcome,) if name == "start" else (condition, outcome)] = float(value)
    return found


def start_of(tables: Any, order: int) -> dict[str, Any]:
    """The same as stories take their start."""
    found: dict[str, Any] = {}
    for name, entries in keyed(tables, order).items():
        for key, p in entries.items():
            if len(key) == 1:
                found.setdefault(name, {})[key[0]] = p
            else:
                found.setdefault(name, {}).setdefault(key[0], {})[key[1]] = p
    return found


def items(tags: Any) -> list[Any]:
    return list(zip(SENTENCES, [None] * len(SENTENCES) if tags is None else tags, strict=True))


def both(order: int, stop: bool, tags: Any, learner: Any, smoothing: float = 0.0) -> Any:
    """The model and the story, learned from the same start."""
    rng = np.random.default_rng(order + 10 * stop)
    tables = random_tables(rng, len(STATES), len(WORDS), order, stop)
    model = sc.HMM(
        len(STATES), order=order, stop=stop, init=tables, learner=learner, smoothing=smoothing
    ).fit(SENTENCES, tags)
    assert model.words_ == WORDS
    told = sc.StoryModel(hidden_chain(order, stop), learner=learner, smoothing=smoothing)
    return model, told.fit(items(tags), init=start_of(tables, order))


def check_tables(model: Any, told: Any, order: int) -> None:
    """Every entry of a story's tables; a story has none that nothing leads to."""
    for name, entries in keyed(model.params_, order).items():
        seen = 0
        for key, p in entries.items():
            table = told.params_[name]
            row = table if len(key) == 1 else table.get(key[0], {})
            if key[-1] in row:
                seen += 1
                assert row[key[-1]] == pytest.approx(p, abs=EXACT), (name, key)
        assert seen >= len(entries) / 2, name


@orders
@stops
@knowledge
def test_steps_of_em(order: int, stop: bool, tags: Any) -> None:
    model, told = both(order, stop, tags, sc.EM(max_iter=STEPS, tol=0.0))
    ours, theirs = (np.asarray(one.trace_.log_likelihood) for one in (model, told))
    assert len(ours) == STEPS + 1
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=EXACT)
    check_tables(model, told, order)


@orders
def test_smoothing(order: int) -> None:
    """Smoothing adds to what stories know: with one state each row, no entry is missing."""
    model, told = both(order, True, None, sc.EM(max_iter=STEPS, tol=0.0), smoothing=0.3)
    ours, theirs = (np.asarray(one.trace_.log_likelihood) for one in (model, told))
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=EXACT)
    check_tables(model, told, order)


@orders
@stops
def test_viterbi_training(order: int, stop: bool) -> None:
    model, told = both(order, stop, None, sc.HardEM(max_iter=3, tol=0.0))
    np.testing.assert_allclose(
        np.asarray(model.trace_.objective), np.asarray(told.trace_.objective), rtol=0.0, atol=EXACT
    )
    check_tables(model, told, order)


@orders
@stops
@knowledge
def test_what_is_said_of_sentences(order: int, stop: bool, tags: Any) -> None:
    """log p, expected counts and best derivations, sentence by sentence."""
    model, told = both(order, stop, None, sc.EM(max_iter=1, tol=0.0))
    logs = model.score_samples(SENTENCES, tags=tags)
    np.testing.assert_allclose(logs, told.score(items(tags)), rtol=0.0, atol=EXACT)
    paths = model.predict(SENTENCES, tags=tags)
    for n, item in enumerate(items(tags)):
        one = None if tags is None else [tags[n]]
        counts = keyed(model.expected_counts([SENTENCES[n]], tags=one), order)
        expected = told.posterior(item)
        for name, entries in counts.items():
            for key, count in entries.items():
                theirs = expected.get(name, {}).get(key, 0.0)
                assert theirs == pytest.approx(count, abs=EXACT), (name, key)
        events = told.best(item).events
        assert [event.key[0] for event in events if event.table == "emissions"] == paths[n]


@orders
def test_counts_of_all(order: int) -> None:
    """An E-step over all sentences is the sum of what the story says of each."""
    model, told = both(order, True, TAGS, sc.EM(max_iter=1, tol=0.0))
    shard = model._read(SENTENCES, TAGS).everything
    stats = model.core_.expect(model.params_, shard, EStep())
    wanted: dict[Any, float] = {}
    for item in items(TAGS):
        for name, entries in told.posterior(item).items():
            for key, count in entries.items():
                wanted[name, key] = wanted.get((name, key), 0.0) + count
    for name, entries in keyed(stats.counts, order).items():
        for key, count in entries.items():
            assert wanted.get((name, key), 0.0) == pytest.approx(count, abs=EXACT), (name, key)
