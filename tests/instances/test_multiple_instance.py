"""Labels of bags, beside all labels of instances one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.types import EStep
from softcount.instances import kernels
from tests.oracles.bags import Tables, enumerated

WORDS = ("p", "q", "r")


def some_data(seed: int) -> tuple[list[list[str]], list[str], dict[str, Any], list[Any]]:
    """Instances, their bags (not in order), labels of bags, known labels of instances."""
    rng = np.random.default_rng(seed)
    X = [list(WORDS), *(rng.choice(WORDS, rng.integers(0, 4)).tolist() for _ in range(13))]
    bags = ["b0", "b1", "b2", *(f"b{rng.integers(5)}" for _ in range(11))]
    names = list(dict.fromkeys(bags))
    y = {name: ("no", "yes", None)[number % 3] for number, name in enumerate(names)}
    known: list[Any] = [None] * 14
    known[1] = "yes"  # in the first positive bag
    known[0] = "no"
    return X, bags, y, known


def tables_of(params: Any, noisy: bool) -> Tables:
    return Tables(
        params["weights"].reshape(-1).tolist(),
        [dict(zip(WORDS, row, strict=True)) for row in params["words"]],
        params["triggers"].reshape(-1)[1] if noisy else None,
        params["leak"].reshape(-1)[1] if noisy else None,
    )


@pytest.mark.parametrize("with_known", [False, True])
@pytest.mark.parametrize("noisy", [False, True])
def test_the_e_step_is_what_all_hidden_labels_add_up_to(noisy: bool, with_known: bool) -> None:
    for seed in range(6):
        X, bags, y, known = some_data(seed)
        model = sc.labels.MultipleInstance(noisy=noisy)
        core, corpus = model._bind(X, y, bags, known if with_known else None)
        rng = np.random.default_rng(seed)
        params = {name: family.random(rng) for name, family in core.families.items()}
        tables = tables_of(params, noisy)
        number = {"no": 0, "yes": 1, None: None}
        logs, bests, positive = [], [], {}
        counts: dict[Any, float] = {}
        for name in dict.fromkeys(bags):
            rows = [i for i, bag in enumerate(bags) if bag == name]
            their = [number[known[i]] for i in rows] if with_known else None
            p, shares, events, best = enumerated(
                tables, [X[i] for i in rows], number[y[name]], their
            )
            logs.append(np.log(p))
            bests.append(np.log(best))
            positive |= dict(zip(rows, shares, strict=True))
            for event, n in events.items():
                counts[event] = counts.get(event, 0.0) + n
        (shard,) = corpus.shards(None, 0)
        stats = core.expect(params, shard, EStep())
        assert stats.log_likelihood == pytest.approx(sum(logs), abs=1e-10)
        hard = core.expect(params, shard, EStep(fill="hard"))
        assert hard.score == pytest.approx(sum(bests), abs=1e-10)
        found = model._unsort(core.instance_posteriors(params, shard, EStep()), model._order)
        np.testing.assert_allclose(found, [positive[i] for i in range(len(X))], atol=1e-10)
        for z in (0, 1):
            assert stats.counts["weights"].reshape(-1)[z] == pytest.approx(counts["class", z])
            for m, word in enumerate(WORDS):
                count = np.asarray(stats.counts["words"])[z, m]
                assert count == pytest.approx(counts.get(("word", z, word), 0.0), abs=1e-10)
        if noisy:
            for column in (0, 1):
                for table, event in (("triggers", "trigger"), ("leak", "leak")):
                    count = stats.counts[table].reshape(-1)[column]
                    assert count == pytest.approx(counts.get((event, bool(column)), 0.0), abs=1e-10)


@pytest.mark.parametrize("noisy", [False, True])
def test_the_label_of_a_bag_nobody_has_labelled(noisy: bool) -> None:
    X, bags, y, _ = some_data(3)
    model = sc.labels.MultipleInstance(noisy=noisy, max_iter=3).fit(X, y, bags)
    tables = tables_of(model.params_, noisy)
    names = list(dict.fromkeys(bags))
    for name, (negative, positive) in zip(names, model.predict_proba(X, bags), strict=True):
        instances = [x for x, bag in zip(X, bags, strict=True) if bag == name]
        p = [enumerated(tables, instances, label)[0] for label in (0, 1)]
        assert negative == pytest.approx(p[0] / sum(p), abs=1e-9)
        assert positive == pytest.approx(p[1] / sum(p), abs=1e-9)


class Bound:
    """A model whose bags and labels come with the instances, as the laws want data."""

    def __init__(self, model: sc.labels.MultipleInstance, *more: Any) -> None:
        self.model, self.more = model, more

    def _bind(self, X: Any) -> Any:
        return self.model._bind(X, *self.more)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("with_known", [False, True])
def test_laws(noisy: bool, with_known: bool) -> None:
    X, bags, y, known = some_data(8)
    model = sc.labels.MultipleInstance(noisy=noisy)
    sc.check_model(Bound(model, y, bags, known if with_known else None), X).raise_if_failed()


def test_nothing_is_lost_where_every_instance_is_all_but_negative() -> None:
    """Posteriors of 10^-400 still add up: one of the two instances is positive."""
    joint = np.array([[0.0, -920.0], [0.0, -921.0]])
    out = np.empty_like(joint)
    logs = kernels.soft(joint, np.array([0, 2]), np.array([1]), out)
    odds = np.exp(1.0)
    np.testing.assert_allclose(out[:, 1], [odds / (1 + odds), 1 / (1 + odds)], rtol=1e-12)
    assert logs[0] == pytest.approx(-920.0 + np.log1p(np.exp(-1.0)))
    draws = np.empty_like(joint)
    kernels.draw(joint, np.array([0, 2]), np.array([1]), np.array([0]), np.uint64(1), 4000, draws)
    np.testing.assert_allclose(draws[:, 1], out[:, 1], atol=0.03)
    np.testing.assert_allclose(draws[:, 1].sum(), 1.0)


def simulated(seed: int, n_bags: int = 200) -> tuple[list[str], list[int], dict[int, str], Any]:
    """Documents of sentences, of which one to two of positive documents are about sport."""
    rng = np.random.default_rng(seed)
    sport, other = (
        ["goal", "team", "ball", "match"],
        ["bank", "stock", "cell", "gene", "rain", "wind"],
    )
    X, bags, truth = [], [], []
    y = {}
    for bag in range(n_bags):
        positive = bag % 2 == 1
        n, k = int(rng.integers(4, 9)), int(rng.integers(1, 3)) if positive else 0
        y[bag] = "sport" if positive else "no"
        for i in range(n):
            theme = sport if i < k else other
            X.append(" ".join([*rng.choice(theme, 2), *rng.choice(["the", "a", "of"], 3)]))
            bags.append(bag)
            truth.append(i < k)
    return X, bags, y, np.array(truth)


@pytest.mark.parametrize("noisy", [False, True])
def test_it_finds_the_positive_instances(noisy: bool, tmp_path: Any) -> None:
    X, bags, y, truth = simulated(0)
    shown = {bag: label for bag, label in y.items() if bag < 120}
    model = sc.labels.MultipleInstance(noisy=noisy).fit(X, shown, bags)
    assert model.classes_.tolist() == ["no", "sport"]
    assert np.mean((model.instance_proba_ > 0.5) == truth) > 0.99
    assert np.mean((model.predict_instances(X) > 0.5) == truth) > 0.99
    rows = [i for i, bag in enumerate(bags) if bag >= 120]
    new = [X[i] for i in rows], {b: l for b, l in y.items() if b >= 120}, [bags[i] for i in rows]
    assert model.score(*new) > 0.97
    assert {word for word, _ in model.top_words(4)[1]} == {"goal", "team", "ball", "match"}
    path = tmp_path / "model.softcount"
    model.save(path)
    again = sc.load(path)
    np.testing.assert_array_equal(again.predict_proba(X, bags), model.predict_proba(X, bags))


def test_labels_may_be_given_for_each_instance_and_of_either_order() -> None:
    X, bags, y, _ = simulated(1, 40)
    by_bag = sc.labels.MultipleInstance().fit(X, y, bags)
    by_instance = sc.labels.MultipleInstance().fit(X, [y[bag] for bag in bags], bags)
    np.testing.assert_array_equal(by_bag.proba_, by_instance.proba_)
    order = np.random.default_rng(0).permutation(len(X))
    mixed = sc.labels.MultipleInstance().fit([X[i] for i in order], y, [bags[i] for i in order])
    np.testing.assert_allclose(mixed.instance_proba_, by_bag.instance_proba_[order], atol=1e-9)
    swapped = sc.labels.MultipleInstance(positive="no").fit(X, y, bags)
    assert swapped.classes_.tolist() == ["sport", "no"]
    planted = {**y, 3: "no"}
    assert sc.labels.MultipleInstance().suspects(X, planted, bags)[0].item == 3


@pytest.mark.parametrize("learner", ["hard-em", "vb", "gibbs", "online-em", "mcem"])
def test_learners(learner: str) -> None:
    X, bags, y, truth = simulated(2, 80)
    model = sc.labels.MultipleInstance(learner=learner, max_iter=20).fit(X, y, bags)
    assert np.mean((model.instance_proba_ > 0.5) == truth) > 0.9


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y": {"a": "x"}}, "1 different labels"),
        ({"y": ["x", "y", "y"]}, "two labels"),
        ({"bags": ["a", "b"]}, "2 names of bags for 3 instances"),
        ({"bags": ["a", None, "b"]}, "has no bag"),
        ({"instance_labels": ["z", None, None]}, "but of no bag"),
        ({"y": None}, "no bag has a label"),
    ],
)
def test_data_that_cannot_be(change: dict[str, Any], says: str) -> None:
    data = {"X": ["p", "q", "r"], "y": {"a": "x", "b": "y"}, "bags": ["a", "a", "b"]}
    with pytest.raises(sc.SoftcountError, match=says):
        sc.labels.MultipleInstance().fit(**{**data, **change})


def test_a_positive_bag_without_a_possible_positive_instance_is_named() -> None:
    with pytest.raises(sc.SoftcountError, match="bag 'b'"):
        sc.labels.MultipleInstance(positive="y").fit(
            ["p", "q", "r"],
            {"a": "x", "b": "y"},
            ["a", "a", "b"],
            instance_labels=[None, None, "x"],
        )
