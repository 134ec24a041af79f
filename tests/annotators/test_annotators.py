"""Annotators: what they find, what they take for votes, what they do at the edges."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import softcount as sc
from softcount.core import store
from softcount.core.errors import DataError, LearnerError, StoreError
from tests.core.damage import EVERY, array, meta, refused, without
from tests.core.damage import settings as setting
from tests.core.learners import learners

Triples = list[tuple[Any, Any, Any]]
SMALL: Triples = [
    ("s1", "ann", "yes"),
    ("s1", "bob", "yes"),
    ("s1", "eve", "no"),
    ("s2", "ann", "no"),
    ("s2", "bob", "no"),
    ("s2", "eve", "yes"),
    ("s3", "ann", "yes"),
    ("s3", "eve", "no"),
]


def simulated(
    seed: int, n: int = 400, A: int = 8, K: int = 3, each: int = 5, least: float = 0.5
) -> tuple[Triples, np.ndarray, np.ndarray]:
    """Votes, true labels, and true confusions."""
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.ones(K), size=(A, K)) * (1.0 - least)
    confusion[:, np.arange(K), np.arange(K)] += least
    truth = rng.integers(K, size=n)
    votes = [
        (i, a, int(rng.choice(K, p=confusion[a, truth[i]])))
        for i in range(n)
        for a in rng.permutation(A)[:each].tolist()
    ]
    return votes, truth, confusion


def by_name(model: sc.Annotators) -> dict[Any, dict[Any, float]]:
    """p(label | item), by name."""
    names = model.classes_.tolist()
    rows = zip(model.items_.tolist(), model.proba_.tolist(), strict=True)
    return {item: dict(zip(names, row, strict=True)) for item, row in rows}


# what is found


def test_confusions_are_recovered() -> None:
    votes, truth, confusion = simulated(0, n=4000)
    model = sc.Annotators().fit(votes)
    order = np.argsort(model.annotators_)
    assert np.abs(model.confusion_[order] - confusion).max() < 0.06
    right = np.diagonal(confusion, axis1=1, axis2=2).mean(axis=1)
    np.testing.assert_allclose(model.accuracy_[order], right, atol=0.03)
    majority = np.array(list(sc.annotators.majority_vote(votes).values()))
    assert (model.labels_ == truth).mean() > (majority == truth).mean() + 0.02


def test_accuracy_counts_labels_as_often_as_they_are_true() -> None:
    """Three of four items are "yes": who always says so is right of these."""
    votes = [(i, a, "no" if i == 3 and a != "always" else "yes") for i in range(4) for a in "bcd"]
    votes += [(i, "always", "yes") for i in range(4)]
    model = sc.Annotators(smoothing=1e-6).fit(votes)
    found = dict(zip(model.annotators_.tolist(), model.accuracy_.tolist(), strict=True))
    assert found == pytest.approx({"b": 1.0, "c": 1.0, "d": 1.0, "always": 0.75}, abs=1e-4)


def test_an_annotator_who_always_says_the_contrary_helps() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=300)
    said = lambda p: np.where(rng.random(300) < p, truth, 1 - truth)  # noqa: E731
    matrix = np.stack([said(0.75), said(0.75), said(0.75), said(0.02)], axis=1)
    model = sc.Annotators().fit(matrix)
    assert model.accuracy_[3] < 0.1
    assert (model.labels_ == truth).mean() > 0.95
    assert (sc.Annotators().fit(matrix[:, :3]).labels_ == truth).mean() < 0.9


def test_known_labels_keep_their_items_and_teach_of_annotators() -> None:
    """Most annotators are wrong: without any known label there is no way to tell."""
    rng = np.random.default_rng(2)
    truth = rng.integers(2, size=400)
    wrong = [np.where(rng.random(400) < 0.2, truth, 1 - truth) for _ in range(3)]
    matrix = np.stack([*wrong, np.where(rng.random(400) < 0.9, truth, 1 - truth)], axis=1)
    without_any = sc.Annotators().fit(matrix)
    assert (without_any.labels_ == truth).mean() < 0.2
    y = np.where(np.arange(400) < 200, truth, -1)
    model = sc.Annotators().fit(matrix, y)
    assert (model.labels_[200:] == truth[200:]).mean() > 0.9
    np.testing.assert_array_equal(model.labels_[:200], truth[:200])
    assert (model.proba_[:200].max(axis=1) == 1.0).all()


def test_a_start_from_known_labels_needs_few_of_them() -> None:
    """Three of four annotators mostly say the contrary: the majority is no place to begin."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=400)
    said = [np.where(rng.random(400) < p, truth, 1 - truth) for p in (0.2, 0.2, 0.2, 0.9)]
    matrix, y = np.stack(said, axis=1), np.where(np.arange(400) < 10, truth, -1)
    found = {
        init: (sc.Annotators(init=init).fit(matrix, y).labels_ == truth)[10:].mean()
        for init in ("majority", "known")
    }
    assert found["known"] > 0.9
    assert found["majority"] < 0.1
    assert np.isfinite(sc.Annotators(init="known", smoothing=0.0).fit(matrix, y).proba_).all()


def test_known_labels_are_called_as_the_votes_are_though_not_all_are_known() -> None:
    """Against all votes, and only of the label that comes last in order."""
    assert sc.Annotators().fit(SMALL).labels_.tolist() == ["yes", "no", "yes"]
    assert sc.Annotators().fit(SMALL, {"s2": "yes"}).labels_[1] == "yes"


def test_a_mapping_and_a_list_of_known_labels_are_the_same() -> None:
    one = sc.Annotators().fit(SMALL, {"s3": "no", "elsewhere": "yes"})
    other = sc.Annotators().fit(SMALL, [None, -1, "no"])
    np.testing.assert_array_equal(one.proba_, other.proba_)
    assert one.labels_.tolist()[2] == "no"
    nothing = sc.Annotators().fit(SMALL, [None, -1, None])
    np.testing.assert_array_equal(nothing.proba_, sc.Annotators().fit(SMALL).proba_)


# invariance


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_names_and_the_order_of_votes_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    votes, _, _ = simulated(seed, n=15, A=4, each=3)
    learner = sc.EM(max_iter=10, tol=0)
    before = by_name(sc.Annotators(learner=learner).fit(votes))
    other_label = dict(zip(range(3), rng.permutation(["x", "y", "z"]).tolist(), strict=True))
    other_item = rng.permutation(15)
    renamed = [
        (f"item {other_item[i]}", ("annotator", -a), other_label[label]) for i, a, label in votes
    ]
    shuffled = [renamed[i] for i in rng.permutation(len(renamed))]
    after = by_name(sc.Annotators(learner=learner).fit(shuffled))
    for item, row in before.items():
        for label, p in row.items():
            assert after[f"item {other_item[item]}"][other_label[label]] == pytest.approx(
                p, abs=1e-12
            )


# edges


def test_a_label_that_nobody_ever_voted_for_can_be_known() -> None:
    model = sc.Annotators().fit(SMALL, {"s3": "maybe"})
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    assert model.labels_.tolist()[2] == "maybe"
    assert np.isfinite(model.confusion_).all()
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1.0)


def test_items_without_votes_get_the_weights_of_classes() -> None:
    votes = [*SMALL, ("s4", "ann", None)]
    model = sc.Annotators(learner=sc.EM(max_iter=500, tol=1e-12)).fit(votes)
    assert model.items_.tolist() == ["s1", "s2", "s3", "s4"]
    np.testing.assert_allclose(model.proba_[3], model.weights_)
    assert sc.annotators.majority_vote(votes)["s4"] is None
    np.testing.assert_allclose(model.predict_proba({"new": {}}), [model.weights_])


def test_one_vote_and_one_class() -> None:
    model = sc.Annotators().fit([("s", "a", "yes")])
    assert model.labels_.tolist() == ["yes"]
    assert model.proba_.tolist() == [[1.0]]
    assert model.accuracy_.tolist() == [1.0]


def test_ties_go_to_the_first_label_in_order() -> None:
    votes = [("s", "a", "b"), ("s", "c", "a")]
    assert sc.annotators.majority_vote(votes) == {"s": "a"}
    assert sc.Annotators().fit(votes).labels_.tolist() == ["a"]


def test_strangers_are_left_out_with_a_warning() -> None:
    model = sc.Annotators().fit(SMALL)
    with pytest.warns(UserWarning, match=r"1 annotator \('zoe'\): their votes are left out"):
        found = model.predict_proba([("n", "ann", "yes"), ("n", "zoe", "no")])
    np.testing.assert_array_equal(found, model.predict_proba([("n", "ann", "yes")]))
    with pytest.warns(UserWarning, match=r"1 label \('perhaps'\)"):
        found = model.predict_proba([("n", "ann", "perhaps")])
    np.testing.assert_allclose(found, [model.weights_])


def test_a_uniform_start_is_stuck_and_says_so() -> None:
    model = sc.Annotators(init="uniform").fit(SMALL)
    assert model.verdict_ is sc.Verdict.STUCK


def test_switched_labels_are_told() -> None:
    votes, _, _ = simulated(3, least=0.7, K=2)
    good = sc.Annotators().fit(votes)
    switched = {
        "weights": good.weights_[::-1][None],
        "confusion": good.confusion_[:, ::-1],
    }
    with pytest.warns(sc.errors.SwitchWarning, match="labels may be switched"):
        sc.Annotators(init=switched).fit(votes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sc.Annotators(init="random", learner=sc.EM(n_init=3)).fit(votes)


def test_settings_are_checked() -> None:
    for wrong in ({"smoothing": -1.0}, {"prior": {"words": 1.0}}, {"init": "nowhere"}):
        with pytest.raises(LearnerError):
            sc.Annotators(**wrong).fit(SMALL)
    assert repr(clone(sc.Annotators(smoothing=0.5))) == "Annotators(smoothing=0.5)"


def test_what_nobody_knows_is_asked_for() -> None:
    with pytest.raises(DataError, match="not an annotator of this model"):
        sc.Annotators().fit(SMALL).confusion_of("zoe")
    with pytest.raises(DataError, match="2 columns, while the model knows 3"):
        sc.Annotators().fit(SMALL).predict(np.array([["yes", "no"]]))


# learners, laws, files


@pytest.mark.parametrize("known", [None, {"s1": "yes"}])
def test_the_laws_hold(known: Any) -> None:
    class WithKnown(sc.Annotators):
        def _bind(self, votes: Any, y: Any = None) -> Any:
            return super()._bind(votes, known)

    sc.check_model(
        WithKnown(), [*SMALL, ("s4", "ann", None), ("s1", "ann", "no")]
    ).raise_if_failed()
    fitted = sc.Annotators().fit(SMALL)
    report = sc.check_model(fitted, SMALL)
    report.raise_if_failed()
    assert "save and load" in str(report)


@pytest.mark.parametrize("name", [n for n in learners(50, 30) if n != "CollapsedGibbs"])
def test_every_learner_finds_most_labels(name: str) -> None:
    votes, truth, _ = simulated(4, n=300, least=0.6)
    learner = learners(50, 30)[name]
    model = sc.Annotators(learner=learner, init="random" if name == "restarts" else "majority")
    model.fit(votes)
    assert (model.labels_ == truth).mean() > 0.9
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1.0, atol=0.05)


def test_the_history_tells_every_step() -> None:
    votes, truth, _ = simulated(8, n=200)
    y = np.where(np.arange(200) < 20, truth, -1)
    model = sc.Annotators().fit(votes, y, keep_params=True)
    history = sc.annotators.annotator_history(model, votes, y, gold=dict(enumerate(truth.tolist())))
    assert len(history) == len(model.trace_) + 1
    assert history.rounds[0].labelled == 20
    assert history.rounds[1].labelled == 200
    assert history.rounds[-1].accuracy == (model.labels_ == truth)[20:].mean()
    last = [history.of(item)[-1].label for item in range(200)]
    assert last == model.labels_.tolist()
    with pytest.raises(AttributeError, match="keep_params"):
        sc.annotators.annotator_history(sc.Annotators().fit(votes, y), votes, y)


def test_threads_do_not_matter() -> None:
    votes, _, _ = simulated(5, n=2000)
    one, two = (
        sc.Annotators(engine=sc.Local(threads=threads)).fit(votes).proba_ for threads in (1, 2)
    )
    assert one.tobytes() == two.tobytes()


def test_generated_votes_are_like_those_learned_from() -> None:
    votes, _, _ = simulated(6, n=500)
    model = sc.Annotators().fit(votes)
    drawn = model.generate(3000, random_state=1)
    assert len(drawn) == 5 * 3000
    again = sc.Annotators().fit(drawn)
    order, there = np.argsort(again.annotators_), np.argsort(model.annotators_)
    assert np.abs(again.confusion_[order] - model.confusion_[there]).max() < 0.08


@pytest.mark.parametrize(
    "votes", [SMALL, [(i, f"a{a}", bool(label)) for i, a, label in simulated(7, n=20, K=2)[0]]]
)
def test_the_same_model_comes_back(votes: Triples, tmp_path: Path) -> None:
    model = sc.Annotators(smoothing=0.3).fit(votes)
    model.save(tmp_path / "m")
    again = sc.load(tmp_path / "m")
    assert again.signature_ == model.signature_
    np.testing.assert_array_equal(again.predict_proba(votes), model.predict_proba(votes))
    np.testing.assert_array_equal(again.classes_, model.classes_)
    assert again.annotators_.tolist() == model.annotators_.tolist()
    assert again.generate(5, random_state=2) == model.generate(5, random_state=2)


def test_names_that_no_file_can_hold(tmp_path: Path) -> None:
    model = sc.Annotators().fit([("s", ("a", 1), "yes"), ("s", ("b", 2), "no")])
    with pytest.raises(StoreError, match="cannot be saved in a file"):
        model.save(tmp_path / "m")


DAMAGES = {
    "no annotators": without("annotators"),
    "an annotator too many": meta(annotators=["ann", "bob", "eve", "zoe"]),
    "one annotator twice": meta(annotators=["ann", "ann", "eve"]),
    "annotators that are lists": meta(annotators=[["ann"], ["bob"], ["eve"]]),
    "classes of two kinds": meta(classes=["no", 1]),
    "classes out of order": meta(classes=["yes", "no"]),
    "no classes": meta(classes=[]),
    "a smoothing below zero": setting(smoothing=-1),
    "no numbers of votes": array("n_votes", [0, 0, 0]),
    "no sizes": array("sizes", None),
    **{
        f"{name} {how}": array(name, change)
        for name in ("weights", "confusion", "n_votes", "sizes")
        for how, change in EVERY.items()
        if not (name == "sizes" and how in ("shorter", "longer", "of bytes"))
    },
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_refused(damage: Any, tmp_path: Path) -> None:
    sc.Annotators().fit(SMALL).save(tmp_path / "good")
    assert refused(store.read(tmp_path / "good"), damage, tmp_path / "bad")


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "score", "score_samples"])
def test_the_warning_of_strangers_points_here(ask: str) -> None:
    model = sc.Annotators().fit(SMALL)
    with pytest.warns(UserWarning, match="does not know 1 annotator") as caught:
        getattr(model, ask)([*SMALL, ("s1", "zoe", "yes")])
    assert [warning.filename for warning in caught] == [__file__]


def test_a_history_of_other_votes_is_refused_and_changes_nothing() -> None:
    model = sc.Annotators().fit(SMALL, keep_params=True)
    before = dict(vars(model))
    sc.annotators.annotator_history(model, SMALL)
    with pytest.raises(DataError, match="fitted to other votes"):
        sc.annotators.annotator_history(model, SMALL[:3])
    assert all(vars(model)[name] is value for name, value in before.items())
