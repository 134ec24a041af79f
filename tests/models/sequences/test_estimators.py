"""HMM as users meet it: learners, settings, odd data, what it keeps to."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from sklearn.base import clone

import softcount as sc
from softcount.errors import LearnerError
from tests.models.sequences.text import LEARNERS, SENTENCES, TAGS, assert_same, orders, stops
from tests.oracles.sequences import random_tables


# learners
@stops
@orders
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner(learner: str, order: int, stop: bool) -> None:
    model = sc.HMM(3, order=order, stop=stop, smoothing=0.1, learner=LEARNERS[learner])
    model.fit(SENTENCES)
    shapes = {name: table.shape for name, table in model.params_.items()}
    v = len(model.words_)
    wanted = {"start": (1, 3), "transitions": (3**order, 3 + stop), "emissions": (3, v)}
    assert shapes == wanted | ({"second": (3, 3 + stop)} if order == 2 else {})
    for table in model.params_.values():
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        assert (table > 0.0).all()
    assert [len(path) for path in model.predict(SENTENCES)] == [len(s) for s in SENTENCES]
    assert np.isfinite(model.score_samples(SENTENCES)).all()
    again = clone(model).fit(SENTENCES)
    assert_same(again.params_, model.params_)
    other = clone(model).set_params(random_state=1).fit(SENTENCES)
    assert not np.array_equal(other.params_["emissions"], model.params_["emissions"])


@stops
@orders
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_em_never_falls(order: int, stop: bool, smoothing: float) -> None:
    learner = sc.EM(max_iter=40, tol=0)
    model = sc.HMM(3, order=order, stop=stop, smoothing=smoothing, learner=learner)
    trace = np.asarray(model.fit(SENTENCES).trace_.objective)
    assert (np.diff(trace) >= -1e-9 * abs(trace[0])).all()
    assert trace[-1] > trace[0] + 10.0


def test_hard_em_and_vb_never_fall() -> None:
    for learner in (sc.HardEM(max_iter=20, tol=0), sc.VariationalBayes(max_iter=40, tol=0)):
        model = sc.HMM(3, smoothing=0.2, learner=learner).fit(SENTENCES)
        trace = np.asarray(model.trace_.objective)
        trace = trace[np.isfinite(trace)]
        assert len(trace) > 2
        assert (np.diff(trace) >= -1e-9 * abs(trace[0])).all(), learner


@stops
@orders
def test_laws(order: int, stop: bool) -> None:
    model = sc.HMM(2, order=order, stop=stop, smoothing=0.5, learner=sc.EM(max_iter=3))
    report = sc.check_model(model.fit(SENTENCES), SENTENCES)
    assert report.passed, report


def test_learners_that_need_a_prior() -> None:
    with pytest.raises(LearnerError, match="prior"):
        sc.HMM(2, learner=sc.VariationalBayes()).fit(SENTENCES)


def test_it_finds_the_grammar() -> None:
    """The best of some starts is the grammar that the sentences were made by."""
    model = sc.HMM(3, learner=sc.EM(n_init=10, max_iter=100)).fit(SENTENCES)
    found: dict[str, set[int]] = {}
    for tags, path in zip(TAGS, model.predict(SENTENCES), strict=True):
        for tag, state in zip(tags, path, strict=True):
            found.setdefault(tag, set()).add(state)
    assert sorted(map(len, found.values())) == [1, 1, 1]


# what stays
@orders
def test_zeros_stay(order: int) -> None:
    rng = np.random.default_rng(0)
    shapes = {"start": (1, 3), "transitions": (3**order, 4), "emissions": (3, 8)}
    if order == 2:
        shapes["second"] = (3, 4)
    zero = {name: rng.random(shape) < 0.12 for name, shape in shapes.items()}
    zero["start"][0, 0] = False
    for name in shapes:
        zero[name][:, -1] = False
    for learner in (sc.EM(max_iter=4), sc.HardEM(max_iter=3), sc.VariationalBayes(max_iter=3)):
        it = sc.HMM(3, order=order, zero=zero, smoothing=0.1, learner=learner)
        found = it.fit(SENTENCES).params_
        for name, where in zero.items():
            assert where.any() == (found[name] == 0.0).any()
            np.testing.assert_array_equal(found[name] == 0.0, where, err_msg=f"{name} {learner}")
            np.testing.assert_allclose(found[name].sum(axis=1), 1.0)


@orders
def test_frozen_rows_stay_to_the_bit(order: int) -> None:
    init = random_tables(np.random.default_rng(1), 3, 8, order, True)
    rows = {"transitions": np.arange(3**order) % 2 == 0, "emissions": [False, True, False]}
    for learner in ("EM", "HardEM", "OnlineEM", "VariationalBayes", "Gibbs"):
        how = {"order": order, "init": init, "smoothing": 0.1, "learner": LEARNERS[learner]}
        found = sc.HMM(3, frozen=rows, **how).fit(SENTENCES).params_
        for name, which in rows.items():
            same = (found[name] == init[name]).all(axis=1)
            np.testing.assert_array_equal(same, which, err_msg=f"{name} {learner}")
        assert not np.array_equal(found["start"], init["start"])
        for frozen in ("emissions", ["emissions"], {"emissions": True}):
            found = sc.HMM(3, frozen=frozen, **how).fit(SENTENCES).params_
            np.testing.assert_array_equal(found["emissions"], init["emissions"])
            assert not np.array_equal(found["transitions"], init["transitions"])


def test_tied_rows_are_one() -> None:
    tied = {"transitions": [0, 1, 0], "emissions": [5, 7, 7]}
    for learner in ("EM", "HardEM", "VariationalBayes", "Gibbs"):
        it = sc.HMM(3, tied=tied, smoothing=0.1, learner=LEARNERS[learner])
        found = it.fit(SENTENCES).params_
        np.testing.assert_array_equal(found["transitions"][0], found["transitions"][2])
        np.testing.assert_array_equal(found["emissions"][1], found["emissions"][2])
        assert not np.array_equal(found["transitions"][0], found["transitions"][1])
        assert not np.array_equal(found["emissions"][0], found["emissions"][1])


def test_tied_rows_are_counted_together() -> None:
    """All tags are known: rows that are one have the sum of their counts."""
    numbers = [[{"DT": 0, "NN": 1, "VB": 2}[tag] for tag in some] for some in TAGS]
    it = sc.HMM(3, tied={"emissions": [0, 1, 1]}, learner=sc.EM(max_iter=2))
    model = it.fit(SENTENCES, numbers)
    pairs = zip(chain.from_iterable(SENTENCES), chain.from_iterable(numbers), strict=True)
    both = [word for word, tag in pairs if tag in (1, 2)]
    wanted = [both.count(word) / len(both) for word in model.words_]
    np.testing.assert_allclose(model.params_["emissions"][1], wanted)


@orders
def test_a_weight_of_two_is_the_sentence_twice(order: int) -> None:
    init = random_tables(np.random.default_rng(1), 2, 8, order, True)
    how = {"order": order, "init": init, "smoothing": 0.1, "learner": sc.EM(max_iter=4, tol=0)}
    weights = np.array([n % 3 for n in range(len(SENTENCES))])
    twice = [s for s, n in zip(SENTENCES, weights, strict=True) for _ in range(n)]
    for word in {w for s in SENTENCES for w in s}:  # both number words alike
        assert word in {w for s in twice for w in s}
    ours = sc.HMM(2, **how).fit(SENTENCES, sample_weight=weights)
    order_of = [ours.words_.index(word) for word in sc.HMM(2, **how).fit(twice).words_]
    there = {**init, "emissions": init["emissions"][:, order_of]}
    theirs = sc.HMM(2, **{**how, "init": there}).fit(twice)
    for name, table in theirs.params_.items():
        own = ours.params_[name]
        np.testing.assert_allclose(own[:, order_of] if name == "emissions" else own, table)
    assert ours.trace_.log_likelihood[-1] == pytest.approx(theirs.trace_.log_likelihood[-1])
