"""What a history of labels says beside a plain replay of its rounds."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.labels.history import GIVEN, Event, History, gold_numbers

VIEWS = ["subject", "body"]


@st.composite
def stories(draw: st.DrawFn) -> dict[str, Any]:
    """Classes, what was given, gold labels or none, and rounds of labels, confidence and views."""
    classes = draw(st.sampled_from([["a", "b", "c"], [3, 7], [False, True], ["only"]]))
    n = draw(st.integers(0, 6))
    numbers = st.lists(st.integers(-1, len(classes) - 1), min_size=n, max_size=n)
    golden = st.lists(st.integers(-2, len(classes) - 1), min_size=n, max_size=n)
    sure = st.lists(st.floats(0, 1), min_size=n, max_size=n)
    views = st.one_of(
        st.sampled_from(VIEWS), st.lists(st.sampled_from(VIEWS), min_size=n, max_size=n)
    )
    rounds = draw(st.lists(st.tuples(numbers, sure, views), max_size=5))
    return {
        "classes": classes,
        "given": draw(numbers),
        "gold": draw(st.none() | golden),
        "rounds": rounds,
    }


def told(story: dict[str, Any]) -> History:
    gold = None if story["gold"] is None else np.array(story["gold"], dtype=int)
    history = History(story["classes"], np.array(story["given"], dtype=int), gold)
    for labels, sure, view in story["rounds"]:
        history.record(np.array(labels, dtype=int), np.array(sure), view)
    return history


def replayed(story: dict[str, Any]) -> list[tuple[dict[int, Any], dict[int, Event]]]:
    """After each round every item's label by its name, and what happened in it, by items."""
    n = len(story["given"])
    rounds = [(story["given"], [1.0] * n, GIVEN), *story["rounds"]]
    now: dict[int, Any] = {}
    found = []
    for number, (labels, sure, view) in enumerate(rounds):
        events = {}
        for item in range(n):
            name = None if labels[item] == -1 else story["classes"][labels[item]]
            if now.get(item) != name:
                by = view if isinstance(view, str) else view[item]
                events[item] = Event(number, name, sure[item], by)
                now[item] = name
        found.append(({item: name for item, name in now.items() if name is not None}, events))
    return found


@given(stories())
def test_rounds_count_what_a_replay_counts(story: dict[str, Any]) -> None:
    history, replay = told(story), replayed(story)
    assert len(history) == len(replay)
    before: dict[int, Any] = {}
    for number, (now, events) in enumerate(replay):
        one = history.rounds[number]
        assert one.number == number
        assert one.labelled == len(now)
        assert one.new == len(now.keys() - before.keys())
        assert one.lost == len(before.keys() - now.keys())
        assert one.changed == sum(now[i] != before[i] for i in now.keys() & before.keys())
        sure = [event.confidence for event in events.values() if event.label is not None]
        mean = sum(sure) / len(sure) if sure else math.nan
        assert one.confidence == pytest.approx(mean, nan_ok=True)
        counts = [sum(name == label for name in now.values()) for label in story["classes"]]
        assert history.counts()[number].tolist() == counts
        before = now


@given(stories())
def test_events_are_those_of_a_replay(story: dict[str, Any]) -> None:
    history, replay = told(story), replayed(story)
    for number, (_, events) in enumerate(replay):
        assert history.events(number) == sorted(events.items())
        assert history.events(number - len(replay)) == sorted(events.items())
    for item in range(len(story["given"])):
        own = [events[item] for _, events in replay if item in events]
        assert history.of(item) == own
        assert all(type(event.label) in (str, int, bool, type(None)) for event in own)
        labelled = [event for event in own if event.label is not None]
        assert history.first_rounds()[item] == (labelled[0].round if labelled else -1)
        last = own[-1].confidence if own and own[-1].label is not None else math.nan
        assert history.confidence()[item] == pytest.approx(last, nan_ok=True)


@given(stories())
def test_accuracy_is_of_what_was_not_given_and_is_known(story: dict[str, Any]) -> None:
    history = told(story)
    gold = story["gold"] or [-1] * len(story["given"])
    for accuracy, (now, _) in zip(history.accuracy, replayed(story), strict=True):
        compared = [
            gold[item] >= 0 and story["classes"][gold[item]] == name
            for item, name in now.items()
            if story["given"][item] == -1 and gold[item] != -1
        ]
        right = sum(compared) / len(compared) if compared else math.nan
        assert accuracy == pytest.approx(right, nan_ok=True)


def test_gold_of_another_class_is_never_right() -> None:
    history = History(["a", "b"], np.array([0, -1, -1, -1]), np.array([1, 0, -2, -1]))
    history.record(np.array([0, 0, 0, 1]), np.ones(4), "body")
    assert history.rounds[1].accuracy == 0.5


def test_rounds_without_changes_keep_nothing_and_say_so() -> None:
    history = History(["a", "b"], np.array([0, -1]), np.array([0, 1]))
    history.record(np.array([0, 1]), np.array([1.0, 0.6]), "body")
    history.record(np.array([0, 1]), np.array([1.0, 0.9]), "subject")
    last = history.rounds[-1]
    assert (last.labelled, last.new, last.changed, last.lost) == (2, 0, 0, 0)
    assert math.isnan(last.confidence)
    assert last.accuracy == 1.0
    assert history.events(-1) == []
    assert history.of(1) == [Event(1, "b", 0.6, "body")]


@pytest.mark.parametrize("item", [-1, 2, np.int64(5)])
def test_there_is_no_such_item(item: int) -> None:
    with pytest.raises(IndexError, match=f"no item {item}.*0 to 1"):
        History(["a"], np.array([0, -1])).of(item)


@pytest.mark.parametrize("number", [-2, 1])
def test_there_is_no_such_round(number: int) -> None:
    history = History(["a"], np.array([0, -1]))
    for ask in (history.events, history.changes):
        with pytest.raises(IndexError, match=f"no round {number}.*0 to 0"):
            ask(number)


@pytest.mark.parametrize(
    ("labels", "sure", "view", "message"),
    [
        ([0], [1.0, 1.0], "body", "labels: 1 for 2"),
        ([0, 1], [1.0], "body", "confidence: 1 for 2"),
        ([0, 1], [1.0, 1.0], ["body"], "view: 1 for 2"),
        ([0, 2], [1.0, 1.0], "body", "labels: not a number from -1 to 1"),
        ([0, -2], [1.0, 1.0], "body", "labels: not a number from -1 to 1"),
        ([[0, 1]], [1.0, 1.0], "body", "labels: not a number"),
    ],
)
def test_what_fits_no_item_is_refused(labels: Any, sure: Any, view: Any, message: str) -> None:
    history = History(["a", "b"], np.array([0, -1]))
    with pytest.raises(DataError, match=message):
        history.record(np.array(labels), np.array(sure), view)
    assert len(history) == 1
    assert history.labels.tolist() == [0, -1]


def test_gold_fits_the_items() -> None:
    with pytest.raises(DataError, match="gold: 1 for 2"):
        History(["a"], np.array([0, -1]), np.array([0]))
    with pytest.raises(DataError, match="gold: not a number from -2 to 0"):
        History(["a"], np.array([0, -1]), np.array([0, 1]))


def test_a_history_is_not_changed_from_outside() -> None:
    given, after = np.array([0, -1]), np.array([0, 1])
    history = History(["a", "b"], given)
    history.record(after, np.ones(2), "body")
    given[:] = after[:] = 0
    assert history.given.tolist() == [0, -1]
    assert history.labels.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        history.labels[0] = 1


def test_a_history_can_be_sent_and_comes_back_the_same() -> None:
    history = History(["a", "b"], np.array([0, -1]))
    history.record(np.array([0, 1]), np.array([1.0, 0.5]), ["body", "subject"])
    again = pickle.loads(pickle.dumps(history))
    assert again.of(1) == history.of(1)
    assert str(again) == str(history)
    again.record(np.array([1, 1]), np.ones(2), "body")
    assert len(again) == 3
    assert len(history) == 2


def test_classes_of_any_kind_are_named_as_python_has_them() -> None:
    history = History(np.array(["a", "b"], dtype=object), np.array([1]))
    assert history.of(0) == [Event(0, "b", 1.0, GIVEN)]


def test_tables_stay_apart_however_large_the_numbers() -> None:
    n = 3_000_000
    history = History(["a", "b"], np.full(n, -1))
    history.record(np.zeros(n, int), np.full(n, 0.25), "body")
    head, first, last = str(history).splitlines()
    assert head.split() == [
        "round", "labelled", "new", "changed", "lost", "confidence", "accuracy"
    ]  # fmt: skip
    assert first.split() == ["0", "0", "0", "0", "0", "–", "–"]
    assert last.split() == ["1", "3,000,000", "3,000,000", "0", "0", "0.250", "–"]
    assert len(head) == len(first) == len(last)
    assert repr(history) == "<History: 2 rounds, 3,000,000 of 3,000,000 items labelled>"


@pytest.mark.parametrize(
    ("gold", "classes", "numbers"),
    [
        (["b", "a", None, "z"], ["a", "b"], [1, 0, -1, -2]),
        ([7, 3, -1, 9], [3, 7], [1, 0, -1, -2]),
        (np.array([1, 0, -1, 1]), [False, True], [1, 0, -1, 1]),
        ([True, False, None, True], [False, True], [1, 0, -1, 1]),
        ([1.0, None, 0.0, -1], [0, 1], [1, -1, 0, -1]),
        ([None] * 4, ["a", "b"], [-1] * 4),
        ([-1] * 4, [0, 1], [-1] * 4),
    ],
)
def test_gold_labels_are_numbered_as_the_classes_are(
    gold: Any, classes: list[Any], numbers: list[int]
) -> None:
    found = gold_numbers(gold, np.array(classes), 4)
    assert found is not None
    assert found.tolist() == numbers


def test_no_gold_is_none() -> None:
    assert gold_numbers(None, np.array(["a"]), 3) is None


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (["a"], "gold: .*2 items and 1 labels"),
        ([], "gold: .*2 items and 0 labels"),
        (["A", "B"], "gold: none of its labels, such as .*'A', is one of the classes"),
        ([[0.5, 0.5], [1.0, 0.0]], "gold: labels are distributions"),
        (["a", 1.5], "gold: labels are of several kinds"),
    ],
)
def test_gold_that_cannot_be_compared_is_refused(gold: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        gold_numbers(gold, np.array(["a", "b"]), 2)


def test_a_strange_gold_label_is_shown_as_it_is() -> None:
    with pytest.raises(DataError, match="such as 'q'"):
        gold_numbers(["q", "q"], np.array(["no", "yes"]), 2)
