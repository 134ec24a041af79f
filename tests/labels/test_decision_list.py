"""Decision lists beside plain counting in dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.labels import yarowsky as seeds
from softcount.labels.yarowsky import Decisions, FeatureCounts, Rules, learn_rules
from softcount.text.bags import Compressed

F, K = 6, 3
items_of = st.lists(st.sets(st.integers(0, F - 1), max_size=4), min_size=1, max_size=12)


def laid(items: list[set[int]]) -> Compressed:
    rows = [sorted(item) for item in items]
    indptr = np.cumsum([0, *map(len, rows)])
    columns = np.array([f for row in rows for f in row], dtype=np.int32)
    return Compressed(indptr, columns, np.ones(len(columns)))


@st.composite
def labelled(draw: st.DrawFn) -> tuple[list[set[int]], list[int]]:
    items = draw(items_of)
    n = len(items)
    return items, draw(st.lists(st.integers(-1, K - 1), min_size=n, max_size=n))


def counted(items: list[set[int]], labels: list[int]) -> dict[int, Counter[int]]:
    counts: dict[int, Counter[int]] = {f: Counter() for f in range(F)}
    for item, label in zip(items, labels, strict=True):
        for f in item:
            if label >= 0:
                counts[f][label] += 1
    return counts


@given(labelled())
def test_strengths_are_shares_with_something_added(data: tuple[list[set[int]], list[int]]) -> None:
    items, labels = data
    rules, _ = learn_rules(FeatureCounts(laid(items), F, K).update(np.array(labels)), 0.1)
    for f, counts in counted(items, labels).items():
        if not counts:
            assert rules.label[f] == -1
            continue
        best = max(counts.values())
        assert counts[int(rules.label[f])] == best
        assert rules.strength[f] == pytest.approx((best + 0.1) / (counts.total() + 0.3))
        assert (rules.count[f], rules.total[f]) == (best, counts.total())


@given(labelled(), st.integers(1, 3), st.sampled_from([0.5, 0.7, 0.95]))
def test_caution_takes_the_most_frequent_above_the_threshold(
    data: tuple[list[set[int]], list[int]], most: int, threshold: float
) -> None:
    items, labels = data
    rules, left_out = learn_rules(
        FeatureCounts(laid(items), F, K).update(np.array(labels)),
        0.1,
        threshold=threshold,
        most=most,
    )
    counts = counted(items, labels)
    expected, any_left = {}, False
    for k in range(K):
        above = [f for f in range(F) if counts[f] and counts[f][k] / counts[f].total() > threshold]
        above.sort(key=lambda f: (-counts[f].total(), f))
        expected |= dict.fromkeys(above[:most], k)
        any_left |= len(above) > most
    assert {f: k for f, k in enumerate(rules.label.tolist()) if k >= 0} == expected
    assert left_out == any_left


@given(labelled(), items_of)
def test_the_strongest_rule_decides(
    data: tuple[list[set[int]], list[int]], others: list[set[int]]
) -> None:
    items, labels = data
    rules, _ = learn_rules(FeatureCounts(laid(items), F, K).update(np.array(labels)), 0.1)
    found = rules.decide(laid(others))
    for n, item in enumerate(others):
        having = [f for f in item if rules.label[f] >= 0]
        if not having:
            assert (found.labels[n], found.confidence[n], found.by[n]) == (-1, 0.0, -1)
            continue
        best = min(having, key=lambda f: (-rules.strength[f], -rules.count[f], f))
        assert found.by[n] == best
        assert found.labels[n] == rules.label[best]
        assert found.confidence[n] == rules.strength[best]


@settings(max_examples=50)
@given(items_of, st.data())
def test_a_tally_that_follows_changes_is_one_made_anew(
    items: list[set[int]], data: st.DataObject
) -> None:
    tally = FeatureCounts(laid(items), F, K)
    some = st.lists(st.integers(-1, K - 1), min_size=len(items), max_size=len(items))
    for _ in range(4):
        labels = data.draw(some)
        found = tally.update(np.array(labels))
        expected = [[c[k] for k in range(K)] for c in counted(items, labels).values()]
        assert found.tolist() == expected


def test_two_labels_that_tie_give_way_to_the_commoner() -> None:
    counts = np.array([[1, 1], [0, 3]])
    rules, _ = learn_rules(counts, 0.1)
    assert rules.label.tolist() == [1, 1]


def test_items_without_features_are_not_decided() -> None:
    rules = Rules(np.array([0]), np.array([0.9]), np.ones(1), np.ones(1))
    found = rules.decide(laid([set(), {0}, set()]))
    assert isinstance(found, Decisions)
    assert found.labels.tolist() == [-1, 0, -1]
    assert rules.decide(laid([set()])).labels.tolist() == [-1]


# rules as people write them
def test_rules_that_are_written_are_read_again(tmp_path) -> None:
    model = sc.labels.Yarowsky().fit(["a b", "b c", "d e"], seeds={"x": ["a"], "y": ["d"]})
    path = tmp_path / "rules.txt"
    path.write_text(model.rules_.to_text())
    again = sc.labels.read_rules(path)
    assert [(r.feature, r.label) for r in again] == [(r.feature, r.label) for r in model.rules_]
    applied = sc.labels.Yarowsky(max_rounds=0).fit(["a b", "b c", "d e"], seeds=again)
    assert applied.transduction_.tolist() == model.transduction_.tolist()


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("L X0_New-York 10000", sc.labels.Rule("X0_New-York", "L", 10000.0)),
        ("L\tNew York", sc.labels.Rule("New York", "L", 0.9999)),
        ("a label\tof the_\t.5", sc.labels.Rule("of the_", "a label", 0.5)),
    ],
)
def test_lines_of_rules(line: str, rule: sc.labels.Rule) -> None:
    assert seeds.parse_rules([(1, line), (2, "  ")], "f") == [rule]


@pytest.mark.parametrize(
    "line", ["alone", "a b c d", "a b x", "a b 0", "a b -1", "a\t\t1", "a b inf"]
)
def test_lines_that_are_no_rules(line: str) -> None:
    with pytest.raises(sc.DataError, match="f:7"):
        seeds.parse_rules([(7, line)], "f")


def test_a_list_is_a_sequence_that_can_be_read() -> None:
    model = sc.labels.Yarowsky().fit(["a b", "b c", "d e"], seeds={"x": ["a"], "y": ["d"]})
    rules = model.rules_
    assert len(rules) == len(list(rules)) == 5
    assert rules[0].strength >= rules[-1].strength
    assert rules[:2] == [rules[0], rules[1]]
    assert [rule.label for rule in rules.of_class("y")] == ["y", "y"]
    assert "d → y" in str(rules)


def test_collocations_read_as_they_stand() -> None:
    found = sc.labels.collocations(["a", "b", ",", "w", "c", "d", "e"], 3, window=2)
    assert found == ["a", "b", "c", "d", "b_", "a·_", "_c", "_·d", "a b_", "b_c", "_c d"]
    assert sc.labels.collocations(["w"], 0) == []
    assert sc.labels.collocations(["w", "c"], 0) == ["c", "_c"]
