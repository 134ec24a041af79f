"""Annotators beside plain Python, beside all hidden labels, beside a story, beside crowd-kit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.core.types import EStep
from tests.oracles import annotators as plain

LABELS = "abc"


def some_votes(seed: int, n_items: int = 12, n_annotators: int = 4) -> list[tuple[str, str, str]]:
    """Votes of annotators of whom some are better than others; some vote twice."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_items)
    skill = rng.uniform(0.3, 0.95, size=n_annotators)
    votes = []
    for item in range(n_items):
        for annotator in rng.integers(n_annotators, size=rng.integers(1, 6)).tolist():
            right = rng.random() < skill[annotator]
            label = truth[item] if right else rng.integers(3)
            votes.append((f"i{item}", f"w{annotator}", LABELS[label]))
    return votes


def some_known(votes: list[tuple[str, str, str]], n: int) -> dict[str, str]:
    items = list(dict.fromkeys(item for item, _, _ in votes))
    return {item: LABELS[number % 3] for number, item in enumerate(items[:n])}


def assert_same(model: sc.Annotators, shares: Any, weights: Any, confusion: Any) -> None:
    labels = model.classes_.tolist()
    for item, row in zip(model.items_.tolist(), model.proba_, strict=True):
        np.testing.assert_allclose(row, [shares[item][k] for k in labels], atol=1e-10)
    np.testing.assert_allclose(model.weights_, [weights[k] for k in labels], atol=1e-10)
    for annotator, table in confusion.items():
        found = model.confusion_of(annotator)
        for k in labels:
            for said in labels:
                assert found[k][said] == pytest.approx(table[k][said], abs=1e-10)


@given(
    seed=st.integers(0, 10**6),
    known=st.sampled_from([0, 1, 5]),
    smoothing=st.sampled_from([0.01, 0.1, 2.0]),
    steps=st.sampled_from([1, 2, 7]),
)
@settings(max_examples=25, deadline=None)
def test_it_is_em_as_in_plain_python(seed: int, known: int, smoothing: float, steps: int) -> None:
    votes = some_votes(seed)
    truth = some_known(votes, known)
    learner = sc.EM(max_iter=steps, tol=0)
    model = sc.Annotators(smoothing=smoothing, learner=learner).fit(votes, truth or None)
    assert model.n_iter_ == steps
    assert_same(model, *plain.dawid_skene(votes, truth, steps, smoothing))


@given(seed=st.integers(0, 10**6), known=st.sampled_from([0, 2]))
@settings(max_examples=15, deadline=None)
def test_the_e_step_is_what_all_hidden_labels_add_up_to(seed: int, known: int) -> None:
    rng = np.random.default_rng(seed)
    votes = some_votes(seed, n_items=5, n_annotators=3)
    truth = some_known(votes, known)
    model = sc.Annotators()
    core, corpus = model._bind(votes, truth or None)
    labels = model.classes_.tolist()
    if len(labels) < 2:
        return
    params = {name: family.random(rng) for name, family in core.families.items()}
    weights = dict(zip(labels, params["weights"][0], strict=True))
    K = len(labels)
    table = params["confusion"].reshape(-1, K, K)
    confusion = {
        annotator: {k: dict(zip(labels, table[a, i], strict=True)) for i, k in enumerate(labels)}
        for a, annotator in enumerate(model.annotators_.tolist())
    }
    total, _, counts = plain.enumerated(votes, truth, weights, confusion)
    (shard,) = corpus.shards()
    stats = core.expect(params, shard, EStep())
    assert stats.log_likelihood == pytest.approx(np.log(total), abs=1e-10)
    found = stats.counts["confusion"].reshape(-1, K, K)
    for a, annotator in enumerate(model.annotators_.tolist()):
        for i, k in enumerate(labels):
            for j, said in enumerate(labels):
                assert found[a, i, j] == pytest.approx(
                    counts.get((annotator, k, said), 0.0), abs=1e-10
                )


def test_posteriors_are_what_all_hidden_labels_add_up_to() -> None:
    votes, truth = some_votes(3, n_items=6), some_known(some_votes(3, n_items=6), 2)
    model = sc.Annotators(learner=sc.EM(max_iter=3, tol=0)).fit(votes, truth)
    labels = model.classes_.tolist()
    confusion = {
        annotator: model.confusion_of(annotator) for annotator in model.annotators_.tolist()
    }
    weights = dict(zip(labels, model.weights_.tolist(), strict=True))
    _, shares, _ = plain.enumerated(votes, truth, weights, confusion)
    for item, row in zip(model.items_.tolist(), model.proba_, strict=True):
        np.testing.assert_allclose(row, [shares[item][k] for k in labels], atol=1e-10)
    _, free, _ = plain.enumerated(votes, {}, weights, confusion)
    for item, row in zip(model.items_.tolist(), model.predict_proba(votes), strict=True):
        np.testing.assert_allclose(row, [free[item][k] for k in labels], atol=1e-10)


def test_the_same_model_as_a_story() -> None:
    """EM from the same start takes the same steps."""
    prior, says = sc.table("prior"), sc.table("says")

    @sc.story
    def annotated(votes: Any) -> Any:
        for k in LABELS:
            yield prior[k], *(says[annotator, k, label] for annotator, label in votes)

    votes = some_votes(5, 60, 3)
    start = sc.Annotators(learner=sc.EM(max_iter=1, tol=0)).fit(votes)
    ours = sc.Annotators(smoothing=0.0, learner=sc.EM(max_iter=6, tol=0))
    ours.fit(votes, init=start.params_)
    by_item: dict[str, list[tuple[str, str]]] = {}
    for item, annotator, label in votes:
        by_item.setdefault(item, []).append((annotator, label))
    story = sc.StoryModel(annotated, learner=sc.EM(max_iter=6, tol=0)).fit(
        list(by_item.values()),
        init={
            "prior": dict(zip(LABELS, start.weights_.tolist(), strict=True)),
            "says": {a: start.confusion_of(a) for a in start.annotators_.tolist()},
        },
    )
    np.testing.assert_allclose(
        ours.trace_.log_likelihood, story.trace_.log_likelihood, rtol=1e-12, atol=1e-10
    )
    for annotator in ours.annotators_.tolist():
        for k, row in ours.confusion_of(annotator).items():
            for said, p in row.items():
                told = story.params_["says"][annotator][k].get(said, 0.0)
                assert p == pytest.approx(told, abs=1e-9)


@pytest.mark.filterwarnings("ignore:.*keyword:Warning")  # crowd-kit's ways with pandas
@pytest.mark.parametrize("known", [0, 6])
def test_it_agrees_with_crowd_kit_and_with_plain_python(known: int) -> None:
    """The same votes, the same start, as many steps; crowd-kit puts 1e-10 for counts below."""
    rng = np.random.default_rng(8)
    # no annotator votes twice on an item: crowd-kit has no place for that
    votes = sorted({(i, a): (i, a, label) for i, a, label in some_votes(8, 60, 9)}.values())
    votes = [votes[i] for i in rng.permutation(len(votes))]
    truth = some_known(votes, known)
    steps = 12
    model = sc.Annotators(smoothing=1e-10, learner=sc.EM(max_iter=steps, tol=0))
    model.fit(votes, truth or None)
    shares, weights, confusion = plain.dawid_skene(votes, truth, steps, 1e-10)
    assert_same(model, shares, weights, confusion)
    aggregation = pytest.importorskip(
        "crowdkit.aggregation", reason="crowd-kit is not installed: compared with plain Python only"
    )
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(votes, columns=["task", "worker", "label"])
    # its last posteriors are from before its last M-step
    theirs = aggregation.DawidSkene(n_iter=steps + 1, tol=-np.inf)
    theirs.fit(frame, pandas.Series(truth) if truth else None)
    expected = theirs.probas_.loc[model.items_, model.classes_].to_numpy()
    np.testing.assert_allclose(model.proba_, expected, atol=1e-6)
    again = aggregation.DawidSkene(n_iter=steps, tol=-np.inf)
    again.fit(frame, pandas.Series(truth) if truth else None)
    for (worker, label), row in again.errors_.iterrows():
        found = model.confusion_of(worker)
        for k in model.classes_.tolist():
            assert found[k][label] == pytest.approx(row[k], abs=1e-6)
    assert model.fit(frame, truth or None).items_.tolist() == list(dict.fromkeys(frame["task"]))
