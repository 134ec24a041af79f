"""Aligners as their users see them: every model with every learner, and what is there after fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import softcount as sc
from softcount.core.errors import DataError, ImpossibleItem, LearnerError
from tests.align.small import (
    BOTH,
    LEARNERS,
    MODELS,
    ONE_WAY,
    PAIRS,
    assert_alike,
    assert_same,
    directions,
    many,
    tables,
)

one_way = pytest.mark.parametrize("name", ONE_WAY)
every = pytest.mark.parametrize("name", MODELS)
LEARNED = [*ONE_WAY, "Aligner"]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", LEARNED)
def test_every_learner_with_every_model(name: str, learner: str) -> None:
    model = MODELS[name](learner=LEARNERS[learner], smoothing=0.01).fit(PAIRS)
    trace = model.trace_
    assert len(trace) > 1
    for figures in (trace.perplexity, trace.log_likelihood, trace.entropy):
        assert np.isfinite(figures).all()
    assert (trace.perplexity >= 1.0).all()
    assert (trace.entropy >= 0.0).all()
    assert trace.perplexity[-1] < 0.7 * trace.perplexity[0] or model.warm_up
    for way in directions(model):
        sums = way.table().sum(axis=1)
        assert np.isfinite(sums).all()
        np.testing.assert_allclose(sums, 1.0, atol=1e-9)
    found = model.align()
    assert len(found) == len(PAIRS)
    right = sum(len({*links} & {(k, k) for k in range(6)}) for links in found)
    assert right > 40  # of about 100; 70 % of the pairs are in order


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@one_way
def test_em_never_climbs_down(name: str, smoothing: float) -> None:
    learner = sc.EM(max_iter=12, tol=0)
    model = MODELS[name](learner=learner, smoothing=smoothing, init="random", random_state=3)
    trace = model.fit(PAIRS).trace_
    assert len(trace) == 13
    assert (np.diff(trace.objective) >= -1e-9).all()
    if not smoothing:
        assert (np.diff(trace.perplexity) <= 1e-9).all()
        tokens = sum(len(target.split()) for _, target in PAIRS)
        expected = np.exp(-trace.log_likelihood / tokens)
        np.testing.assert_allclose(trace.perplexity, expected)


def test_two_directions_by_themselves_climb_as_well() -> None:
    plain = {"agree": False, "stem": None, "smoothing": 0.0}
    model = sc.Aligner(**plain, learner=sc.EM(max_iter=8, tol=0)).fit(PAIRS)
    assert (np.diff(model.trace_.perplexity) <= 1e-9).all()
    there = sc.align.HMMAligner(learner=sc.EM(max_iter=8, tol=0), warm_up=5).fit(PAIRS)
    np.testing.assert_allclose(
        there.raw_params_["translation"], model.forward_.raw_params_["translation"], atol=1e-10
    )


@one_way
def test_the_trace_says_what_the_tables_say(name: str) -> None:
    model = MODELS[name]().fit(PAIRS)
    rows = [row for row in model.params_["translation"].values() if row]
    bits = [-sum(p * math.log2(p) for p in row.values() if p > 0.0) for row in rows]
    assert model.trace_.entropy[-1] == pytest.approx(sum(bits) / len(bits), abs=1e-9)
    own = model.score_samples().sum()
    assert model.trace_.log_likelihood[-1] == pytest.approx(own, rel=1e-9)


@one_way
def test_model_1_comes_first(name: str) -> None:
    """``warm_up`` is Model 1's own steps."""
    if name == "IBM1":
        return
    warm = MODELS[name](warm_up=3, learner=sc.EM(max_iter=1, tol=0)).fit(PAIRS, keep_params=True)
    start = warm.trace_.params[0]["translation"]
    plain = sc.align.IBM1(learner=sc.EM(max_iter=3, tol=0)).fit(PAIRS)
    np.testing.assert_allclose(start, plain.raw_params_["translation"], rtol=1e-12)


# the same again
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", LEARNED)
def test_threads_change_no_bit(name: str, dtype: str) -> None:
    text = many()
    one, two = (
        MODELS[name](engine=sc.Local(threads=n), dtype=dtype, smoothing=0.001).fit(text)
        for n in (1, 2)
    )
    assert_same(tables(one), tables(two))
    assert one.trace_.perplexity.tolist() == two.trace_.perplexity.tolist()
    assert one.align() == two.align()
    assert_alike(one.posteriors(text[:50]), two.posteriors(text[:50]))


@pytest.mark.parametrize("learner", ["MonteCarloEM", "Gibbs", "OnlineEM"])
@pytest.mark.parametrize("name", LEARNED)
def test_seeds_tell(name: str, learner: str) -> None:
    def fitted(seed: int) -> dict[str, np.ndarray]:
        model = MODELS[name](learner=LEARNERS[learner], smoothing=0.01, random_state=seed)
        return tables(model.fit(PAIRS))

    first, again, other = fitted(1), fitted(1), fitted(2)
    assert_same(first, again)
    key = next(key for key in first if key.endswith("translation"))
    assert not np.array_equal(first[key], other[key])


@every
def test_a_refit_forgets(name: str) -> None:
    fresh = MODELS[name]().fit(PAIRS[20:])
    for before in (
        MODELS[name]().fit(PAIRS[:20]),
        MODELS[name]().fit(PAIRS[:20]).partial_fit(PAIRS[5:9]),
    ):
        again = before.fit(PAIRS[20:])
        assert again.source_words_ == fresh.source_words_
        assert_same(tables(again), tables(fresh))
        more, other = (m.partial_fit(PAIRS[:3]) for m in (again, clone(fresh).fit(PAIRS[20:])))
        assert_same(tables(more), tables(other))


# as an estimator
@every
def test_settings(name: str) -> None:
    model = MODELS[name](lowercase=True, dictionary={"a": "b"}, random_state=7)
    settings = model.get_params()
    assert settings["lowercase"] is True
    assert settings["dictionary"] == {"a": "b"}
    again = clone(model.fit(PAIRS))
    assert again.get_params() == settings
    assert not hasattr(again, "raw_params_")
    assert again.set_params(lowercase=False).lowercase is False
    assert name in repr(again)
    with pytest.raises(ValueError, match="nonsense"):
        again.set_params(nonsense=1)


@every
def test_nothing_before_fit(name: str) -> None:
    model = MODELS[name]()
    asked: list[Any] = [
        model.align,
        model.links,
        model.posteriors,
        lambda: model.align(PAIRS),
        lambda: model.posteriors(PAIRS),
        lambda: model.trace_,
        lambda: model.save("nowhere"),
        lambda: model.score_samples(PAIRS),
        lambda: model.score(PAIRS),
    ]
    if name in ONE_WAY:
        asked.append(lambda: model.perplexity(PAIRS))
    for ask in asked:
        with pytest.raises(NotFittedError, match="call fit first"):
            ask()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"smoothing": -1.0}, "smoothing"),
    ({"smoothing": "much"}, "smoothing"),
    ({"warm_up": -1}, "warm_up"),
    ({"warm_up": 1.5}, "warm_up"),
    ({"warm_up": "long"}, "warm_up"),
    ({"stem": 0}, "stem"),
    ({"stem": 2.5}, "stem"),
    ({"stem_strength": -1}, "stem_strength"),
    ({"dictionary_strength": 0.0}, "dictionary_strength"),
    ({"dtype": "float16"}, "float64 or float32"),
    ({"learner": "EM"}, "learner"),
    ({"engine": 2}, "engine"),
    ({"init": "guess"}, "init"),
    ({"p_null": 1.0}, "p_null"),
    ({"p_null": -0.1}, "p_null"),
    ({"tension": -1.0}, "tension"),
    ({"max_jump": 0}, "max_jump"),
    ({"max_jump": 10**9}, "max_jump"),
    ({"threshold": 1.0}, "threshold"),
    ({"threshold": "half"}, "threshold"),
    ({"model": "ibm7"}, "ibm1"),
    ({"chains": 0}, "chains"),
    ({"sweeps": 1.5}, "sweeps"),
    ({"kept": 99}, "kept"),
    ({"prior": 0.0}, "prior"),
]


@every
def test_bad_settings_are_named(name: str) -> None:
    known = MODELS[name]().get_params()
    tried = 0
    for settings, message in BAD:
        if set(settings) <= set(known):
            tried += 1
            model = MODELS[name](**settings)
            with pytest.raises(LearnerError, match=message):
                model.fit(PAIRS)
            assert not hasattr(model, "raw_params_")
    assert tried > 5


@pytest.mark.parametrize("learner", ["VariationalBayes", "Gibbs", "StochasticVB"])
@one_way
def test_a_prior_is_asked_for(name: str, learner: str) -> None:
    with pytest.raises(LearnerError, match="smoothing"):
        MODELS[name](learner=LEARNERS[learner]).fit(PAIRS)


@every
def test_bad_pairs(name: str) -> None:
    model = MODELS[name]()
    for data in (
        [],
        [("", "")],
        [("", "x"), ("y", "")],
        "a ||| b",
        ["a b"],
        [("a",)],
        None,
        [b"x"],
    ):
        with pytest.raises(DataError):
            model.fit(data)
    assert not hasattr(model, "raw_params_")


@every
def test_a_failure_leaves_what_was(name: str) -> None:
    model = MODELS[name]().fit(PAIRS)
    before, links = tables(model), model.align()
    with pytest.raises(DataError):
        model.fit([("", "")])
    with pytest.raises(DataError):
        model.partial_fit([("a b", "c d")], links=[[(5, 5)]])
    with pytest.raises(DataError):
        model.partial_fit([("", "x")])
    assert_same(tables(model), before)
    assert model.align() == links
    assert model.partial_fit(PAIRS[:2]).align(PAIRS[:2]) is not None


@pytest.mark.parametrize("name", ["IBM1", "HMMAligner", "Aligner"])
def test_impossible_pairs_are_named(name: str) -> None:
    """The dictionary allows no source word to become "T2"."""
    more = {"settings": {"null": False}, "stem": None} if name in BOTH else {"null": False}
    model = MODELS[name](dictionary={"S1": "T1"}, smoothing=0.0, **more)
    with pytest.raises(ImpossibleItem, match="pair 2"):
        model.fit([("S3", "T3"), ("", "x"), ("S1", "T2")])


@one_way
def test_starts(name: str) -> None:
    """Tables of a fit are a start, and nothing is learned twice from where nothing moves."""
    model = MODELS[name](learner=sc.EM(max_iter=3, tol=0)).fit(PAIRS)
    start = dict(model.raw_params_)
    on = MODELS[name](learner=sc.EM(max_iter=2, tol=0)).fit(PAIRS, init=start)
    whole = MODELS[name](learner=sc.EM(max_iter=5, tol=0)).fit(PAIRS)
    for key, values in tables(whole).items():
        np.testing.assert_allclose(on.raw_params_[key], values, rtol=1e-8, atol=1e-12)
    with pytest.raises(sc.SoftcountError, match="translation"):
        MODELS[name]().fit(PAIRS, init={"nonsense": np.ones(3)})


def test_model_1_ends_where_it_ends_from_anywhere() -> None:
    """Its likelihood is concave."""
    long = sc.EM(max_iter=1000, tol=1e-12)
    ends = [
        sc.align.IBM1(learner=long, init="random", random_state=seed).fit(PAIRS[:8]).trace_
        for seed in (1, 2)
    ]
    likely = [trace.log_likelihood[-1] for trace in ends]
    assert ends[0].log_likelihood[0] != ends[1].log_likelihood[0]
    assert likely[0] == pytest.approx(likely[1], abs=1e-3)


@one_way
def test_watching_and_held_out_pairs(name: str) -> None:
    seen: list[int] = []
    model = MODELS[name](learner=sc.EM(max_iter=9, tol=0, n_init=2), init="random")
    model.fit(PAIRS[:30], development=PAIRS[30:], on_step=lambda state: seen.append(state.step))
    assert max(seen) == 9
    model.fit(PAIRS, on_step=lambda state: state.step == 2)
    assert model.n_iter_ == 2


def test_scores_of_both_directions() -> None:
    """The sum of what either says; and so says the trace."""
    model = sc.Aligner().fit(PAIRS)
    there, back = model.forward_.score_samples(), model.backward_.score_samples()
    np.testing.assert_allclose(model.score_samples(), there + back)
    np.testing.assert_allclose(model.score_samples(list(PAIRS)), there + back)
    assert model.score(PAIRS) == pytest.approx(np.mean(there + back))
    assert model.score_samples().sum() == pytest.approx(model.trace_[-1].log_likelihood)
    assert model.n_iter_ == 5


def test_stop_by_perplexity() -> None:
    learner = sc.EM(max_iter=500, tol=1e-3, stop="perplexity")
    trace = sc.align.IBM1(learner=learner).fit(PAIRS).trace_
    steps = -np.diff(trace.perplexity) / trace.perplexity[:-1]
    assert len(trace) < 200
    assert steps[-1] <= 1.01e-3
    assert (steps[1:-1] > 0.9e-3).all()
