"""Bootstrapping beside the same written with dictionaries, and what must not matter."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.labels.yarowsky import SUREST, add_discourse

LETTERS = "abcdefgh"
SEEDS = {"x": ["a"], "y": ["b"]}
items_of = st.lists(
    st.lists(st.sampled_from(LETTERS), max_size=4, unique=True), min_size=2, max_size=14
)
pytestmark = pytest.mark.filterwarnings("ignore:no item")


def by_hand(
    items: list[list[str]],
    rounds: int,
    step: int | None,
    views: Callable[[str], str] = lambda _: "",
    alpha: float = 0.1,
) -> tuple[list[str | None], list[str | None]]:
    """Labels after the rounds, and by the last list: written down with dictionaries."""
    seeds = {feature: (0.9999, 0, label) for label, (feature,) in SEEDS.items()}
    names = sorted({views(f) for item in items for f in item})
    rules: dict[str, dict[str, Any]] = {
        v: {f: rule for f, rule in seeds.items() if views(f) == v} for v in names
    }
    last: dict[str, Any] = {}
    seen: list[Any] = []

    def count(labels: list[str | None]) -> dict[str, Counter[str]]:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for item, label in zip(items, labels, strict=True):
            for f in item if label else ():
                counts[f][label] += 1
        return counts

    def label(item: list[str], known: dict[str, Any]) -> str | None:
        found = [(-known[f][0], -known[f][1], f) for f in item if f in known]
        return known[min(found)[2]][2] if found else None

    def with_seeds(known: dict[str, Any], counts: Any, of: str | None) -> dict[str, Any]:
        mine = {f: s for f, s in seeds.items() if of is None or views(f) == of}
        best = {f: max(counts[f].values(), default=0) for f in mine}
        return known | {f: (s[0], best[f], s[2]) for f, s in mine.items()}

    for number in range(1, rounds + 1):
        changed = left_out = False
        for i, view in enumerate(names):
            labels = [label(item, rules[view]) for item in items]
            changed |= labels != last.get(view, [None] * len(items))
            last[view] = labels
            pupil = names[(i + 1) % len(names)]
            counts = count(labels)
            learnt: dict[str, Any] = {}
            for k in SEEDS:
                above = [f for f in sorted(counts) if views(f) == pupil]
                above = [f for f in above if counts[f][k] / counts[f].total() > 0.95]
                above.sort(key=lambda f: -counts[f].total())
                left_out |= step is not None and len(above) > number * step
                for f in above[: None if step is None else number * step]:
                    n = counts[f].total()
                    learnt[f] = ((counts[f][k] + alpha) / (n + 2 * alpha), counts[f][k], k)
            rules[pupil] = with_seeds(learnt, counts, pupil)
        if not left_out and (not changed or last in seen):
            break
        seen.append(dict(last))
    whole = {f: rule for view in names for f, rule in rules[view].items()}
    labels = [label(item, whole) for item in items]
    counts = count(labels)
    common = sorted(SEEDS, key=lambda k: (-sum(c[k] for c in counts.values()), k))
    final = {}
    for f, c in counts.items():
        k = max(common, key=lambda k: c[k])
        final[f] = ((c[k] + alpha) / (c.total() + 2 * alpha), c[k], k)
    final = with_seeds(final, counts, None)
    return labels, [label(item, final) for item in items]


def fitted(items: Any, **settings: Any) -> sc.labels.Yarowsky:
    return sc.labels.Yarowsky(abstain=True, **settings).fit(items, seeds=SEEDS)


def has_seeds(items: list[list[str]]) -> bool:
    return any("a" in item or "b" in item for item in items)


@pytest.mark.parametrize(("variant", "step"), [("plain", None), ("cautious", 1), ("cautious", 2)])
@settings(max_examples=60)
@given(items=items_of, rounds=st.integers(1, 6))
def test_as_written_with_dictionaries(
    variant: str, step: int | None, items: list[list[str]], rounds: int
) -> None:
    assume(has_seeds(items))
    model = fitted(items, variant=variant, step=step or 5, max_rounds=rounds)
    labels, last = by_hand(items, rounds, step)
    assert model.bootstrapped_.tolist() == labels
    assert model.transduction_.tolist() == last


def halves(feature: str) -> str:
    return "even" if ord(feature) % 2 else "odd"


@settings(max_examples=60)
@given(items=items_of, rounds=st.integers(1, 6))
def test_views_take_turns(items: list[list[str]], rounds: int) -> None:
    assume(has_seeds(items))
    model = fitted(items, step=1, max_rounds=rounds, views=halves)
    labels, last = by_hand(items, rounds, 1, halves)
    assert model.bootstrapped_.tolist() == labels
    assert model.transduction_.tolist() == last


@settings(max_examples=40)
@given(items=items_of)
def test_one_step_of_propagation(items: list[list[str]]) -> None:
    """The first round, with dense matrices."""
    assume(has_seeds(items))
    model = fitted(items, variant="propagating", max_rounds=1)
    letters = sorted({f for item in items for f in item})
    X = np.array([[f in item for f in letters] for item in items], dtype=float)

    def labels_by(rules: dict[str, tuple[float, int]]) -> np.ndarray:
        votes = np.zeros((len(letters), 2))
        for f, (strength, k) in rules.items():
            if f in letters:
                votes[letters.index(f), k] = 1 + 1e-6 * strength
        vote = X @ votes
        phi = np.full((len(items), 2), 0.5)
        has = vote.max(axis=1) > 0
        phi[has] = np.eye(2)[vote[has].argmax(axis=1)]
        theta = (0.6 * X.T @ phi + 0.01 / 2) / (0.6 * X.sum(axis=0) + 0.01)[:, None]
        scores = X @ theta
        assume((abs(scores[has][:, 0] - scores[has][:, 1]) > 1e-9).all())  # no ties
        return np.where(has, scores.argmax(axis=1), -1)

    first = labels_by({"a": (0.9999, 0), "b": (0.9999, 1)})
    counts = np.array([[((first == k) & (X[:, f] > 0)).sum() for k in (0, 1)] for f in
                       range(len(letters))])  # fmt: skip
    rules = {
        letters[f]: ((c.max() + 0.1) / (c.sum() + 0.2), int(c.argmax()))
        for f, c in enumerate(counts)
        if c.sum() and c.max() / c.sum() > 0.95
    }
    second = labels_by(rules | {"a": (0.9999, 0), "b": (0.9999, 1)})
    names = np.array(["x", "y", None], dtype=object)
    assert model.bootstrapped_.tolist() == names[second].tolist()


def test_how_sure_propagation_is_by_hand() -> None:
    """Round 1 is what the seeds say: θ_a and θ_c from items of x only, μ = .6 and ν = .01."""
    model = fitted(["a c", "a", "b"], variant="propagating")
    of_a, of_c = (1.2 + 0.005) / (1.2 + 0.01), (0.6 + 0.005) / (0.6 + 0.01)
    assert model.history_.of(0)[0].confidence == pytest.approx((of_a + of_c) / 2)
    assert model.history_.of(1)[0].confidence == pytest.approx(of_a)


def test_items_without_label_make_propagation_less_sure() -> None:
    """The second item is half of each label: θ_c(x) = (μ · 1.5 + ν/2) / (2μ + ν)."""
    model = fitted(["a c", "c", "b"], variant="propagating")
    of_a, of_c = (0.6 + 0.005) / (0.6 + 0.01), (0.9 + 0.005) / (1.2 + 0.01)
    assert model.history_.of(0)[0].confidence == pytest.approx((of_a + of_c) / 2)


@pytest.mark.parametrize(("of_a", "of_b", "said"), [(0.9, 0.7, "x"), (0.7, 0.9, "y")])
def test_votes_that_tie_in_propagation_go_by_strength(of_a: float, of_b: float, said: str) -> None:
    seeds = [sc.labels.Rule("a", "x", of_a), sc.labels.Rule("b", "y", of_b)]
    model = sc.labels.Yarowsky(variant="propagating").fit(["a b", "a b"], seeds=seeds)
    assert model.history_.of(0)[0].label == said


def test_propagation_learns_from_labels_that_are_known() -> None:
    """What is known of the third item, against its rule, is what q is told by."""
    y = [None, None, "y", None]
    model = sc.labels.Yarowsky(variant="propagating").fit(
        ["a", "a", "a q", "q"], y, seeds={"x": ["a"]}
    )
    assert model.bootstrapped_.tolist() == ["x", "x", "y", "y"]


@pytest.mark.parametrize(("of_a", "of_b", "said"), [(0.9, 0.7, "x"), (0.7, 0.9, "y")])
def test_seeds_have_the_strength_they_are_given(of_a: float, of_b: float, said: str) -> None:
    seeds = [sc.labels.Rule("a", "x", of_a), sc.labels.Rule("b", "y", of_b)]
    model = sc.labels.Yarowsky(max_rounds=0).fit(["a b", "a", "b"], seeds=seeds)
    assert model.transduction_.tolist() == [said, "x", "y"]
    assert model.predict_proba(["a"])[0] == pytest.approx([of_a, 1.0 - of_a])


def test_seeds_are_never_surer_than_sure() -> None:
    seeds = [sc.labels.Rule("a", "x", 10000.0), sc.labels.Rule("b", "y")]
    model = sc.labels.Yarowsky().fit(["a b", "a", "b"], seeds=seeds)
    assert model.rules_[0].strength == 1.0
    assert model.predict_proba(["a b"])[0] == pytest.approx([1.0, 0.0])


# what must not matter
@given(items=items_of, seed=st.integers(0, 99))
def test_the_order_of_items_does_not_matter(items: list[list[str]], seed: int) -> None:
    assume(has_seeds(items))
    order = np.random.default_rng(seed).permutation(len(items))
    model, other = fitted(items), fitted([items[i] for i in order])
    assert other.transduction_.tolist() == model.transduction_[order].tolist()
    assert other.rules_.to_text() == model.rules_.to_text()


@given(items=items_of)
def test_names_of_labels_do_not_matter(items: list[list[str]]) -> None:
    assume(has_seeds(items))
    model = fitted(items)
    other = sc.labels.Yarowsky(abstain=True).fit(items, seeds={"z": ["a"], "k": ["b"]})
    renamed = {"x": "z", "y": "k", None: None}
    assert [renamed[label] for label in model.bootstrapped_] == other.bootstrapped_.tolist()


def test_texts_lists_and_matrices_are_the_same() -> None:
    texts = ["a c", "b d", "c e", "d f", "e", "q"]
    by_text = fitted(texts)
    by_list = fitted([text.split() for text in texts])
    letters = sorted({letter for text in texts for letter in text.split()})
    X = np.array([[letter in text for letter in letters] for text in texts], dtype=float)
    by_matrix = sc.labels.Yarowsky(abstain=True).fit(X * 3, seeds=SEEDS, features=letters)
    expected = ["x", "y", "x", "y", "x", None]
    for model in (by_text, by_list, by_matrix):
        assert model.transduction_.tolist() == expected
    assert by_matrix.predict(X).tolist() == expected
    assert by_matrix.decision(X[2]).feature == "c"


# labels, seeds, both
def test_labels_instead_of_seeds_stay() -> None:
    items = ["a c", "a d", "c", "d", "e"]
    model = sc.labels.Yarowsky(abstain=True).fit(items, [0, 1, -1, -1, -1])
    assert model.transduction_.tolist() == [0, 1, 0, 1, -1]
    assert model.history_.of(0)[0].view == "given"
    both = sc.labels.Yarowsky().fit(items, ["x", None, None, None, "y"], seeds={"y": ["d"]})
    assert both.transduction_.tolist() == ["x", "y", "x", "y", "y"]


def test_items_that_nothing_speaks_for() -> None:
    items = ["a", "a", "b", "q"]
    assert fitted(items).transduction_.tolist() == ["x", "x", "y", None]
    model = sc.labels.Yarowsky().fit(items, seeds=SEEDS)
    assert model.transduction_.tolist() == ["x", "x", "y", "x"]
    assert model.predict_proba(["q"])[0] == pytest.approx(model.prior_)
    assert model.prior_ == pytest.approx([3 / 5, 2 / 5])
    assert model.decision("q") is None
    assert sc.labels.Yarowsky(abstain=True).fit(["a", "q"], [3, -1]).predict(["zz"]).tolist() == [
        -1
    ]


def test_probabilities_are_strengths() -> None:
    model = sc.labels.Yarowsky().fit(
        ["a c", "a c", "b d"], seeds={**SEEDS, "z": ["q", "c d"]}, y=None
    )
    shares = model.predict_proba(["c"])[0]
    assert shares.tolist() == pytest.approx([2.1 / 2.3, 0.1 / 2.3, 0.1 / 2.3])
    assert model.predict_proba(["a", "d c", "zz"]).sum(axis=1) == pytest.approx(np.ones(3))


def test_history_knows_when_and_why() -> None:
    items = ["a c", "a c", "c e", "e g", "b d"]
    model = sc.labels.Yarowsky(step=2).fit(items, seeds=SEEDS, gold=["x", "x", "x", "y", "y"])
    assert model.history_.first_rounds().tolist() == [1, 1, 2, 3, 1]
    assert [event.view for event in model.history_.of(2)] == ["c"]
    assert model.history_.accuracy[[1, -1]].tolist() == [1.0, 0.8]
    assert model.n_iter_ == len(model.history_) - 3 == 4


def test_a_round_that_changes_nothing_is_not_the_last_while_rules_are_left_out() -> None:
    """The only rule of the first round is the seed itself, which is as frequent as its partner."""
    model = fitted(["a c", "c e", "b"], step=1)
    assert model.transduction_.tolist() == ["x", "x", "y"]


def test_no_rounds_only_apply() -> None:
    model = sc.labels.Yarowsky(max_rounds=0, abstain=True).fit(["a c", "c"], seeds=SEEDS)
    assert model.transduction_.tolist() == ["x", None]
    assert [rule.feature for rule in model.rules_] == ["a"]


# one sense per discourse
def by_definition(labels: list[int], sure: list[float], documents: list[int], weight: float) -> Any:
    K = 3
    own = np.zeros((len(labels), K))
    for i, (k, p) in enumerate(zip(labels, sure, strict=True)):
        if k >= 0:
            p = min(max(p, 1 / K), SUREST)
            own[i, k] = np.log(p * (K - 1) / (1 - p))
    scores = own.copy()
    for i, d in enumerate(documents):
        for j, other in enumerate(documents):
            if i != j and d == other:
                scores[i] += weight * own[j]
    return scores


@given(
    st.lists(
        st.tuples(st.integers(-1, 2), st.floats(0.4, 1.0), st.integers(0, 2)),
        min_size=1,
        max_size=10,
    ),
    st.sampled_from([0.0, 0.25, 1.0, 50.0]),
)
def test_documents_add_the_log_odds_of_others(
    rows: list[tuple[int, float, int]], weight: float
) -> None:
    labels, sure, documents = map(list, zip(*rows, strict=True))
    scores = by_definition(labels, sure, documents, weight)
    after, posteriors = add_discourse(
        np.array(labels), np.array(sure), np.array(documents), weight, 3
    )
    for i, row in enumerate(scores):
        shares = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        assert posteriors[i] == pytest.approx(shares, abs=1e-9)
        if row.max() == 0.0:
            assert after[i] == labels[i]
        else:
            assert row[after[i]] == pytest.approx(row.max())


def test_a_document_changes_what_is_weak_and_fills_what_is_empty() -> None:
    items = ["a", "a", "c", "q", "b c", "b c", "z"]
    documents = ["d", "d", "d", "d", "e", "e", None]
    without = fitted(items)
    assert without.transduction_.tolist() == ["x", "x", "y", None, "y", "y", None]
    model = sc.labels.Yarowsky(abstain=True, discourse=1.0).fit(
        items, seeds=SEEDS, documents=documents
    )
    assert model.transduction_.tolist() == ["x", "x", "x", "x", "y", "y", None]
    assert model.history_.of(3)[-1].view == "document"
    assert model.history_.of(3)[-1].confidence == pytest.approx(1.0, abs=1e-4)
    assert model.predict(["c", "a"], documents=[1, 1]).tolist() == ["x", "x"]
    assert model.predict(["c", "a"], documents=[1, None]).tolist()[1] == "x"


def test_given_labels_do_not_yield_to_documents() -> None:
    model = sc.labels.Yarowsky(discourse=100.0)
    model.fit(["a", "a", "a"], ["x", "x", "y"], documents=[0, 0, 0])
    assert model.transduction_.tolist() == ["x", "x", "y"]
