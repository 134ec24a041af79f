"""Silence, tying, copying, sets of labels and words, beside all hidden values one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.annotators.estimators import compare_in_group
from softcount.core.types import EStep
from tests.oracles import voting as plain

LABELS = "xyz"
WORDS = ("p", "q", "r")
ANNOTATORS = [f"a{number}" for number in range(4)]
GROUP = [["a2", "a0", "a3"]]


def some_items(seed: int, n: int = 6) -> list[dict[str, Any]]:
    """What annotators say of items; some say nothing, or a set of labels."""
    rng = np.random.default_rng(seed)
    items: list[dict[str, Any]] = []
    for _ in range(n):
        said: dict[str, Any] = {}
        for a in ANNOTATORS:
            if rng.random() < 0.3:
                continue
            said[a] = LABELS[rng.integers(3)]
            if rng.random() < 0.3:
                said[a] = frozenset({"x", "y"}) if rng.random() < 0.6 else frozenset({"x", "z"})
        items.append(said or {"a1": "x"})
    items[0] = dict.fromkeys(ANNOTATORS, "y")  # in an order in which all are seen
    return items


def some_texts(seed: int, n: int = 6) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[*WORDS], *(rng.choice(WORDS, rng.integers(0, 4)).tolist() for _ in range(n - 1))]


def as_world(model: sc.Annotators, params: Any, groups: Any, asks_all: bool) -> plain.World:
    """The tables of a core as dictionaries."""
    K = len(LABELS)
    tables: dict[str, Any] = {}
    if "confusion" in params:
        array = params["confusion"].reshape(-1, K, K)
        tables["confusion"] = {
            a: {k: dict(zip(LABELS, array[i, j], strict=True)) for j, k in enumerate(LABELS)}
            for i, a in enumerate(ANNOTATORS)
        }
    for name in ("right", "care"):
        if name in params:
            tables[name] = dict(zip(ANNOTATORS, params[name][:, 0], strict=True))
    if "guess" in params:
        rows = (dict(zip(LABELS, row, strict=True)) for row in params["guess"])
        tables["guess"] = dict(zip(ANNOTATORS, rows, strict=True))
    if "silence" in params:
        array = params["silence"][:, 1].reshape(-1, K)
        tables["silent"] = {
            a: dict(zip(LABELS, array[i], strict=True)) for i, a in enumerate(ANNOTATORS)
        }
    if "copying" in params:
        followers = [a for group in groups for a in group[1:]]
        tables["copies"] = dict(zip(followers, params["copying"][:, 1], strict=True))
    if "words" in params:
        rows = (dict(zip(WORDS, row, strict=True)) for row in params["words"])
        tables["words"] = dict(zip(LABELS, rows, strict=True))
    weights = dict(zip(LABELS, params["weights"].reshape(-1), strict=True))
    return plain.World(LABELS, weights, model.tying, tables, groups or (), asks_all)


def as_events(counts: Any, groups: Any) -> dict[tuple[Any, ...], float]:
    """The counts of a core, named as the events of the oracle."""
    K = len(LABELS)
    events: dict[tuple[Any, ...], float] = {}
    for j, k in enumerate(LABELS):
        events["label", k] = counts["weights"].reshape(-1)[j]
    for i, a in enumerate(ANNOTATORS):
        for (j, k), (m, l) in product(enumerate(LABELS), repeat=2):
            if "confusion" in counts:
                events["confusion", a, k, l] = counts["confusion"].reshape(-1, K, K)[i, j, m]
        for j, k in enumerate(LABELS):
            if "silence" in counts:
                speaks, silent = counts["silence"].reshape(-1, K, 2)[i, j]
                events["speaks", a, k], events["silent", a, k] = speaks, silent
            if "guess" in counts:
                events["guess", a, k] = counts["guess"][i, j]
        for name, names in (("right", ("right", "wrong")), ("care", ("care", "careless"))):
            if name in counts:
                for column, event in enumerate(names):
                    events[event, a] = counts[name][i, column]
    if "copying" in counts:
        followers = [a for group in groups for a in group[1:]]
        for a, row in zip(followers, counts["copying"], strict=True):
            events["own", a], events["copied", a] = row
    if "words" in counts:
        for j, k in enumerate(LABELS):
            for m, word in enumerate(WORDS):
                events["word", k, word] = np.asarray(counts["words"])[j, m]
    return events


def bound(
    seed: int, tying: str, silence: bool, groups: Any, with_words: bool, known: bool
) -> tuple[Any, ...]:
    items = some_items(seed)
    texts = some_texts(seed) if with_words else None
    y = {0: "z", 2: "x"} if known else None
    model = sc.Annotators(tying=tying, silence=silence, groups=groups)
    core, corpus = model._bind(dict(enumerate(items)), y, texts)
    rng = np.random.default_rng(seed)
    params = {name: family.random(rng) for name, family in core.families.items()}
    (shard,) = corpus.shards()
    truth = [y.get(number) for number in range(len(items))] if y else None
    oracle = plain.enumerated(
        as_world(model, params, groups, silence), items, model.annotators_.tolist(), texts, truth
    )
    return model, core, shard, params, oracle


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("with_words", [False, True])
@pytest.mark.parametrize("groups", [None, GROUP])
@pytest.mark.parametrize("silence", [False, True])
@pytest.mark.parametrize("tying", ["none", "one-coin", "mace"])
def test_the_e_step_is_what_all_hidden_values_add_up_to(
    tying: str, silence: bool, groups: Any, with_words: bool, known: bool
) -> None:
    for seed in range(3):
        model, core, shard, params, oracle = bound(seed, tying, silence, groups, with_words, known)
        assert model.annotators_.tolist() == ANNOTATORS
        totals, posteriors, counts, best = oracle
        stats = core.expect(params, shard, EStep())
        assert stats.log_likelihood == pytest.approx(np.log(totals).sum(), abs=1e-10)
        for event, count in as_events(stats.counts, groups).items():
            assert count == pytest.approx(counts.get(event, 0.0), abs=1e-10), event
        if not known:
            found = core.posteriors(params, shard, EStep())
            expected = [[shares[k] for k in LABELS] for shares in posteriors]
            np.testing.assert_allclose(found, expected, atol=1e-10)
        hard = core.expect(params, shard, EStep(fill="hard"))
        assert hard.score == pytest.approx(np.log(best).sum(), abs=1e-10)


class Bound:
    """A model whose votes come with texts or known labels, as the laws want data."""

    def __init__(self, model: sc.Annotators, **more: Any) -> None:
        self.model, self.more = model, more

    def _bind(self, votes: Any) -> Any:
        return self.model._bind(votes, **self.more)


@pytest.mark.parametrize(
    "settings",
    [
        {"tying": "none", "silence": True, "groups": GROUP},
        {"tying": "one-coin", "groups": GROUP, "class_balance": "uniform"},
        {"tying": "mace", "silence": True},
    ],
    ids=["none", "one-coin", "mace"],
)
@pytest.mark.parametrize("more", [{}, {"texts": some_texts(5, 12)}, {"y": {1: "x", 4: "z"}}])
def test_laws(settings: dict[str, Any], more: dict[str, Any]) -> None:
    votes = dict(enumerate(some_items(5, 12)))
    sc.check_model(Bound(sc.Annotators(**settings), **more), votes).raise_if_failed()


def test_votes_in_a_group_are_compared_with_the_last_one_before() -> None:
    group = np.array([2, 0, 1])
    item = np.array([0, 0, 0, 1, 1, 2, 3])
    annotator = np.array([0, 1, 2, 0, 1, 1, 3])
    said = np.array([5, 5, 4, 1, 1, 1, 1])
    states = compare_in_group(group, item, annotator, said, 4)
    # item 0: 2 says 4, 0 differs, 1 agrees with 0; item 1: 2 is silent; 3 is in no group
    assert states.tolist() == [2, 1, 0, 0, 1, 0, 0]


def test_a_fixed_balance_stays() -> None:
    votes = dict(enumerate(some_items(1, 30)))
    balance = {"x": 0.2, "y": 0.3, "z": 0.5}
    for init in ("majority", "random"):
        model = sc.Annotators(class_balance=balance, init=init, silence=True).fit(votes)
        np.testing.assert_array_equal(model.weights_, [0.2, 0.3, 0.5])
    assert sc.Annotators(class_balance="uniform").fit(votes).weights_.tolist() == [1 / 3] * 3
    with pytest.raises(sc.DataError, match="the labels are x, y, z"):
        sc.Annotators(class_balance={"x": 0.5, "y": 0.5}).fit(votes)


@pytest.mark.parametrize("tying", ["none", "one-coin", "mace"])
def test_trust_is_votes_that_nobody_gave(tying: str) -> None:
    votes = dict(enumerate(some_items(2, 40)))
    model = sc.Annotators(tying=tying, trust=1e6).fit(votes)
    guessed = 0.2 / 3 if tying == "mace" else 0.0  # careless, and right by chance
    np.testing.assert_allclose(model.accuracy_, 0.8 + guessed, atol=0.1 if guessed else 1e-3)
    few = sc.Annotators(tying=tying, trust=5).fit(votes)
    assert np.ptp(few.accuracy_) > 0.01


def test_rules_that_are_trusted_are_not_learned_to_be_wrong() -> None:
    """Two rules for one label each contradict nothing, so that all of one may be wrong."""
    votes = [(i, f"finds_{'ab'[i % 2]}", "ab"[i % 2]) for i in range(300)]
    votes += [(i, "both", "ab"[i % 2]) for i in range(200)]
    votes += [(i, "finds_a", "a") for i in range(200, 300)]
    model = sc.Annotators(tying="one-coin", trust=1000).fit(votes)
    assert np.mean(model.labels_[:200] == np.array(["a", "b"] * 100)) == 1.0
    assert model.accuracy_.min() > 0.7


def simulate(
    seed: int, n: int = 600, copiers: int = 0, wrong: float = 0.3
) -> tuple[dict[int, dict[str, str]], list[str]]:
    """Three annotators of their own mind, and some who repeat what the first of the bad ones says;
    true labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    votes: dict[int, dict[str, str]] = {}
    for i in range(n):
        of = {f"good{j}": "ab"[truth[i] ^ int(rng.random() < 0.2)] for j in range(3)}
        bad = "ab"[truth[i] ^ int(rng.random() < wrong)]
        of["bad"] = bad
        for j in range(copiers):
            copied = rng.random() < 0.95
            of[f"copy{j}"] = bad if copied else "ab"[rng.integers(2)]
        votes[i] = of
    return votes, ["ab"[k] for k in truth]


def test_copies_are_found_out() -> None:
    """Five who repeat one another outvote three good ones, unless their copying is modelled."""
    votes, truth = simulate(3, copiers=4, wrong=0.4)
    group = ["bad", *(f"copy{j}" for j in range(4))]
    alone = sc.Annotators().fit(votes)
    apart = sc.Annotators(groups=[group], init="majority", max_iter=500).fit(votes)
    right = [np.mean(model.labels_ == truth) for model in (alone, apart)]
    assert right[0] < 0.7
    assert right[1] > 0.85
    assert min(apart.copying_.values()) > 0.85


def test_silence_tells_labels_apart() -> None:
    """Two rules that only ever say one label each: without silence nothing can be learned of how
    reliable they are."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=800)
    votes = {
        i: {
            **({"finds_b": "b"} if rng.random() < (0.8 if k else 0.1) else {}),
            **({"finds_a": "a"} if rng.random() < (0.1 if k else 0.6) else {}),
            **({"also_b": "b"} if rng.random() < (0.5 if k else 0.05) else {}),
        }
        or {"finds_a": None}
        for i, k in enumerate(truth.tolist())
    }
    model = sc.Annotators(silence=True).fit(votes)
    silent = dict(zip(model.annotators_.tolist(), model.silence_, strict=True))
    np.testing.assert_allclose(silent["finds_b"], [0.9, 0.2], atol=0.12)
    assert np.mean(model.labels_ == np.where(truth, "b", "a")) > 0.85


def test_sets_of_labels_are_votes_for_one_of_them() -> None:
    """No vote names the label, but what two sets have in common does."""
    votes = [
        (f"i{i}", a, {LABELS[i % 3], LABELS[(i + shift) % 3]})
        for i in range(30)
        for a, shift in (("ann", 1), ("bob", 2))
    ]
    model = sc.Annotators().fit(votes)
    assert model.labels_.tolist() == [LABELS[i % 3] for i in range(30)]
    assert model.predict([("k", "ann", {"y", "z"}), ("k", "bob", {"y", "x"})]).tolist() == ["y"]
    read = [("i", "ann", {"x", "y"}), ("i", "bob", {"y", "z"}), ("j", "ann", {"x"}), ("j", "b", ())]
    assert sc.annotators.majority_vote(read[:3]) == {"i": "y", "j": "x"}
    assert sc.Annotators().fit([*read[:3], ("j", "bob", set())]).n_votes_.tolist() == [2, 1]


def test_words_classify_items_without_votes(tmp_path: Any) -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(2, size=300)
    themes = (["goal", "team", "ball"], ["stock", "bank", "price"])
    texts = {f"t{i}": " ".join(rng.choice(themes[k], 4)) for i, k in enumerate(truth.tolist())}
    names = np.array(["sport", "money"])
    votes = [
        (f"t{i}", f"a{a}", str(names[k if rng.random() < 0.75 else 1 - k]))
        for i, k in enumerate(truth.tolist()[:200])
        for a in range(3)
    ]
    model = sc.Annotators(length=5).fit(votes, texts=texts)
    assert len(model.items_) == 300
    assert model.items_.tolist()[:2] == ["t0", "t1"]
    assert np.mean(model.labels_ == names[truth]) > 0.98
    assert model.predict(texts=["bank price", "goal"]).tolist() == ["money", "sport"]
    assert {word for word, _ in model.top_words(3)["money"]} == set(themes[1])
    path = tmp_path / "model.softcount"
    model.save(path)
    again = sc.load(path)
    np.testing.assert_array_equal(
        again.predict_proba(votes, texts=texts), model.predict_proba(votes, texts=texts)
    )


@pytest.mark.parametrize("tying", ["none", "one-coin", "mace"])
def test_files_and_learners(tying: str, tmp_path: Any) -> None:
    votes = dict(enumerate(some_items(7, 40)))
    for learner in ("hard-em", "vb", "gibbs", "online-em", "mcem"):
        model = sc.Annotators(tying=tying, silence=True, groups=GROUP, learner=learner, max_iter=10)
        model.fit(votes)
        path = tmp_path / f"{learner}.softcount"
        model.save(path)
        np.testing.assert_array_equal(sc.load(path).predict_proba(votes), model.proba_)
        assert model.accuracy_.shape == (4,)
        np.testing.assert_allclose(model.confusion_.sum(axis=2), 1.0)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"groups": [["a0"]]}, "no groups"),
        ({"groups": [["a0", "a1"], ["a1", "a2"]]}, "named twice"),
        ({"class_balance": {"x": 0.5, "y": 0.2}}, "sum to 0.7"),
        ({"class_balance": [0.5, 0.5]}, "no class balance"),
        ({"tying": "two-coin"}, "unknown"),
        ({"groups": [["a0", "nobody"]]}, "'nobody', who has no votes"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(sc.SoftcountError, match=says):
        sc.Annotators(**settings).fit(dict(enumerate(some_items(1))))


def test_texts_that_cannot_be() -> None:
    votes = dict(enumerate(some_items(1)))
    with pytest.raises(sc.DataError, match="2 texts of 6 items"):
        sc.Annotators().fit(votes, texts=["a", "b"])
    model = sc.Annotators().fit(votes)
    with pytest.raises(sc.DataError, match="no words"):
        model.predict(texts=["a"])
    with pytest.raises(sc.DataError, match="neither votes nor texts"):
        model.predict()
