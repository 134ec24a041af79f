"""Methods side by side: who sees what, what is drawn, and what is said of it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline

import softcount as sc
from softcount.adapt.comparison import CEILING, Comparison, Domain, Result
from tests.adapt.problems import two_domains

SEEN: list[dict[str, Any]] = []


class Spy(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Remembers what it was shown, and says 1 of everything."""

    def __init__(self, dial: int = 0) -> None:
        self.dial = dial

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        SEEN.append({"X": X, "y": list(y), "domain": sample_domain, "dial": self.dial})
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> Any:
        SEEN[-1]["asked"] = X
        return np.ones(X.shape[0], dtype=int)


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def domain(seed: int, n: int = 40, tests: bool = True) -> Domain:
    X, _, _, y = two_domains(seed, n)
    X, y = sparse.csr_matrix(np.abs(X[:n])), y[:n]
    return Domain(X, y, X[:10] * 2.0, 1 - y[:10]) if tests else Domain(X, y)


def test_labels_of_the_target_are_hidden_but_for_those_drawn() -> None:
    data = {"a": domain(1), "b": domain(2)}
    found = sc.adapt.compare({"spy": Spy()}, data, target_labels=8, draws=3, ceiling=False)
    assert len(SEEN) == len(found.results) == 6
    for number, seen in enumerate(SEEN):
        source, target = ("a", "b") if number < 3 else ("b", "a")
        assert seen["domain"].tolist() == [1] * 40 + [-1] * 40
        assert seen["y"][:40] == list(data[source].y)
        shown = [i for i in range(40) if seen["y"][40 + i] is not None]
        assert [seen["y"][40 + i] for i in shown] == [data[target].y[i] for i in shown]
        assert sorted(data[target].y[shown].tolist()) == [0] * 4 + [1] * 4
        assert (seen["asked"] != data[target].X_test).nnz == 0
        assert found.results[number].accuracy == np.mean(data[target].y_test == 1)
    assert len({tuple(seen["y"]) for seen in SEEN[:3]}) == 3


@pytest.mark.parametrize(("asked", "expected"), [(0, 0), (0.05, 2), (0.5, 20), (7, 7), (40, 40)])
def test_how_many_labels_are_shown(asked: float, expected: int) -> None:
    data = {"a": domain(1), "b": domain(2)}
    sc.adapt.compare({"spy": Spy()}, data, pairs=[("a", "b")], target_labels=asked, ceiling=False)
    assert sum(label is not None for label in SEEN[0]["y"][40:]) == expected


def test_what_is_the_same_in_every_draw_is_done_once() -> None:
    data = {"a": domain(1), "b": domain(2)}
    sc.adapt.compare({"spy": Spy()}, data, draws=5, ceiling=False)
    assert len(SEEN) == 2


def test_without_items_to_test_on_half_are_kept() -> None:
    data = {"a": domain(1, tests=False), "b": domain(2, tests=False)}
    found = sc.adapt.compare({"spy": Spy()}, data, pairs=[("a", "b")], draws=4, ceiling=False)
    assert len(SEEN) == 4
    rows = {tuple(row) for row in data["b"].X.toarray()}
    for seen, result in zip(SEEN, found.results, strict=True):
        learned = {tuple(row) for row in seen["X"].toarray()[40:]}
        asked = {tuple(row) for row in seen["asked"].toarray()}
        assert len(learned) == len(asked) == 20
        assert learned | asked == rows
        truth = {tuple(r): k for r, k in zip(data["b"].X.toarray(), data["b"].y, strict=True)}
        right = np.mean([truth[tuple(row)] == 1 for row in seen["asked"].toarray()])
        assert result.accuracy == right


def test_several_sources() -> None:
    data = {"a": domain(1), "b": domain(2), "c": domain(3)}
    found = sc.adapt.compare({"spy": Spy()}, data, pairs=[(("a", "b"), "c")], ceiling=False)
    assert SEEN[0]["domain"].tolist() == [1] * 40 + [2] * 40 + [-1] * 40
    assert found.transfers == [("a+b", "c")]


def test_words_are_learned_from_source_and_target_but_not_from_tests() -> None:
    books = Domain(["good book", "bad book"], [1, 0], ["unseen book"], [1])
    pans = Domain(["good pan", "bad pan"], [1, 0], ["secret pan"], [1])
    data = {"books": books, "pans": pans}
    sc.adapt.compare({"spy": Spy()}, data, vectorizer=CountVectorizer(), ceiling=False)
    assert SEEN[0]["X"].shape == (4, 4)
    SEEN.clear()
    sc.adapt.compare({"spy": Spy()}, data, pairs=[("books", "pans")], ceiling=False)
    np.testing.assert_allclose(SEEN[0]["X"].multiply(SEEN[0]["X"]).sum(axis=1), 1.0)


def test_settings_are_chosen_on_labels_that_are_shown() -> None:
    data = {"a": domain(1), "b": domain(2)}
    for labels, where in ((0, "source"), (12, "target")):
        SEEN.clear()
        found = sc.adapt.compare(
            {"spy": Spy()},
            data,
            pairs=[("a", "b")],
            target_labels=labels,
            draws=1,
            ceiling=False,
            tune={"spy": {"dial": [3, 4]}},
        )
        assert found.results[0].settings == {"dial": 3}
        assert [seen["dial"] for seen in SEEN] == [3] * 5 + [4] * 5 + [3]
        for seen in SEEN[:-1]:
            n_source = int((seen["domain"] > 0).sum())
            assert (n_source < 40) == (where == "source")
            assert (len(seen["domain"]) - n_source < 40) == (where == "target")


def test_the_ceiling_has_all_labels_of_the_target() -> None:
    data = {"a": domain(1), "b": domain(2)}
    found = sc.adapt.compare([sc.adapt.SourceOnly()], data, pairs=[("a", "b")])
    expected = sc.adapt.TargetOnly().fit(data["b"].X, data["b"].y, -1).score(*data["b"][2:])
    assert found.accuracy(CEILING, ("a", "b")) == expected
    assert found.methods == ["SourceOnly", CEILING]


def test_means() -> None:
    def one(method: str, target: str, draw: int, accuracy: float) -> Result:
        return Result("a", target, method, draw, accuracy, 2.0 * accuracy, {})

    found = Comparison(
        [one("x", "b", 0, 0.2), one("x", "b", 1, 0.4), one("x", "c", 0, 0.9), one("y", "b", 0, 1.0)]
    )
    assert found.accuracy("x", ("a", "b")) == pytest.approx(0.3)
    assert found.accuracy("x") == pytest.approx(0.6)  # of transfers, not of runs
    assert found.seconds("x") == pytest.approx(1.2)
    with pytest.raises(KeyError, match="no result of y"):
        found.accuracy("y")
    table = Comparison(found.results[:3]).table()
    assert table["x"]["a → b"] == pytest.approx(0.3)
    assert table["x"]["mean"] == pytest.approx(0.6)


def test_every_method_by_its_name() -> None:
    books = Domain(["good book", "bad book", "good plot", "bad plot"], [1, 0, 1, 0])
    pans = Domain(["good pan", "bad pan", "good lid", "bad lid"], [1, 0, 1, 0])
    seen: list[Result] = []
    found = sc.adapt.compare(
        None, {"books": books, "pans": pans}, target_labels=2, draws=1, on_result=seen.append
    )
    assert len(found.methods) == 12
    assert seen == [*found.results]
    assert "EasyAdapt" in str(found)
    assert found.svg().startswith("<svg")
    assert (
        sc.adapt.compare(None, {"books": books, "pans": pans}, draws=1).methods[0] == "SourceOnly"
    )


@pytest.mark.parametrize(
    ("dials", "says"),
    [
        ({"pairs": [("a", "z")]}, "no domain 'z'"),
        ({"pairs": [("a", "a")]}, "its own source"),
        ({"pairs": []}, "nothing to compare"),
        ({"target_labels": 41}, "target_labels=41, but there are 40 items"),
        ({"target_labels": -1}, "target_labels=-1"),
        ({"target_labels": "2"}, "target_labels='2'"),
        ({"random_state": None}, "random_state=None"),
        ({"draws": 0}, "draws=0"),
        ({"tune": {"other": {}}}, "tune has settings for 'other'"),
    ],
)
def test_what_cannot_be_compared(dials: dict[str, Any], says: str) -> None:
    with pytest.raises((sc.DataError, sc.LearnerError), match=says):
        sc.adapt.compare({"spy": Spy()}, {"a": domain(1), "b": domain(2)}, **dials)


def test_labels_that_are_not_known_cannot_be_hidden() -> None:
    unknown = domain(2)._replace(y=np.full(40, -1))
    with pytest.raises(sc.DataError):
        sc.adapt.compare({"spy": Spy()}, {"a": domain(1), "b": unknown}, pairs=[("a", "b")])
    with pytest.raises(sc.LearnerError, match="two methods have the same name"):
        sc.adapt.compare([Spy(), Spy(1)], {"a": domain(1), "b": domain(2)})


def test_pipelines_of_methods() -> None:
    data = {"a": domain(1, 40), "b": domain(2, 40)}
    chain = Pipeline(
        [("new", sc.adapt.DenoisingProjection()), ("net", sc.adapt.AdversarialNetwork())]
    )
    found = sc.adapt.compare({"both": chain}, data, pairs=[("a", "b")], draws=2, ceiling=False)
    X = sparse.vstack([data["a"].X, data["b"].X], format="csr")
    y, where = [*data["a"].y] + [-1] * 40, np.repeat([1, -1], 40)
    assert len(found.results) == 2  # the network has a seed
    for seed, result in enumerate(found.results):
        new = sc.adapt.DenoisingProjection().fit(X, y, where)
        net = sc.adapt.AdversarialNetwork(random_state=seed).fit(new.transform(X), y, where)
        right = (net.predict(new.transform(data["b"].X_test)) == data["b"].y_test).mean()
        assert result.accuracy == right
    tuned = sc.adapt.compare(
        {"both": chain},
        data,
        pairs=[("a", "b")],
        draws=1,
        ceiling=False,
        tune={"both": {"net__n_units": [2, 3]}},
    )
    assert tuned.results[0].settings["net__n_units"] in (2, 3)


@pytest.mark.parametrize(
    ("strange", "says"),
    [
        ({"y_test": None}, "b: 10 items and 0 labels"),
        ({"y_test": [1]}, "b: 10 items and 1 labels"),
        ({"y_test": ["1"] * 10}, "b: no item to learn from has the label '1'"),
        ({"y_test": [-1] * 10}, "b: some labels are unknown"),
        ({"y": [0] * 39}, "b: 40 items and 39 labels"),
    ],
)
def test_every_domain_is_looked_at(strange: dict[str, Any], says: str) -> None:
    data = {"a": domain(1), "b": domain(2)._replace(**strange)}
    with pytest.raises(sc.DataError, match=says):
        sc.adapt.compare({"spy": Spy()}, data)


def test_matrices_whose_rows_cannot_be_picked() -> None:
    data = {"a": domain(1, tests=False), "b": domain(2, tests=False)}
    expected = sc.adapt.compare([sc.adapt.SourceOnly()], data)
    others = {name: Domain(one.X.tocoo(), one.y) for name, one in data.items()}
    found = sc.adapt.compare([sc.adapt.SourceOnly()], others)
    assert found.table() == expected.table()
