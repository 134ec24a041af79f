"""Why EM climbs: L = F + KL, and each part against enumeration of the hidden coins."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.fit import fit
from softcount.core.theory import decompose
from softcount.engines import Local
from softcount.learners import EM, VariationalBayes
from tests.oracles.toy import (
    Coins,
    DocumentCorpus,
    ThrowsCorpus,
    Topics,
    em_step,
    params,
    plsa_step,
)

ITEMS = st.lists(st.text("HT", min_size=1, max_size=5), min_size=1, max_size=8)
RATE = st.floats(0.05, 0.95)
PARAMS = st.builds(lambda w, a, b: params((w, 1 - w), (a, b)), RATE, RATE, RATE)


def joint(table, faces):
    return table["which"] * np.prod(table["flip"][None] ** faces[:, None], axis=2)


@given(items=ITEMS, here=PARAMS, at=PARAMS)
@settings(deadline=None)
def test_each_part_is_what_its_name_says(items, here, at):
    data = ThrowsCorpus(items, n_shards=2)
    parts = decompose(Coins(), data, here, at=at, engine=Local(1))
    now, then = joint(here, data.all.faces), joint(at, data.all.faces)
    posterior_now = now / now.sum(axis=1, keepdims=True)
    posterior_then = then / then.sum(axis=1, keepdims=True)
    kl = (posterior_then * np.log(posterior_then / posterior_now)).sum()
    assert parts.log_likelihood == pytest.approx(np.log(now.sum(axis=1)).sum(), abs=1e-9)
    assert parts.q == pytest.approx((posterior_then * np.log(now)).sum(), abs=1e-9)
    entropy = -(posterior_then * np.log(posterior_then)).sum()
    assert parts.entropy == pytest.approx(entropy, abs=1e-9)
    assert parts.bound == pytest.approx(parts.q + parts.entropy, abs=1e-12)
    assert parts.kl == pytest.approx(kl, abs=1e-9)
    assert parts.kl >= -1e-9


@given(items=ITEMS, here=PARAMS)
@settings(deadline=None)
def test_the_bound_touches_where_it_was_made(items, here):
    parts = decompose(Coins(), ThrowsCorpus(items), here, engine=Local(1))
    assert parts.kl == pytest.approx(0, abs=1e-9)
    assert parts.bound == pytest.approx(parts.log_likelihood, abs=1e-9)


@given(items=ITEMS, start=PARAMS)
@settings(deadline=None, max_examples=30)
def test_q_and_bound_as_columns_of_the_trace(items, start):
    data, model = ThrowsCorpus(items), Coins()
    learner = EM(max_iter=4, tol=0)
    run = fit(model, data, learner, init=start, theory=True, keep_params=True).trace
    assert np.isnan(run.q[0])
    assert np.isnan(run.bound[0])
    at = start
    for before, state in pairwise(run):
        then = joint(at, data.all.faces)
        weights = then / then.sum(axis=1, keepdims=True)
        at, _ = em_step(at, data.all.faces)
        now = joint(at, data.all.faces)
        q = np.where(weights > 1e-12, weights * np.log(np.maximum(now, 1e-300)), 0).sum()
        assert state.q == pytest.approx(q, abs=1e-6)
        # the step climbs to the top of the bound, and the likelihood lies above it
        assert before.log_likelihood <= state.bound + 1e-9
        assert state.bound <= state.log_likelihood + 1e-9


def test_columns_are_empty_unless_asked_for():
    run = fit(
        Coins(), ThrowsCorpus(["HT", "TT"]), EM(max_iter=2), init=params((0.5, 0.5), (0.3, 0.6))
    )
    assert np.isnan(run.trace.q).all()
    assert np.isnan(run.trace.bound).all()


def test_under_temper_and_in_vb_the_bound_lies_between_two_objectives():
    data, start = ThrowsCorpus(["HHT", "TTH", "HHH", "T"]), params((0.5, 0.5), (0.3, 0.6))
    run = fit(Coins(), data, EM(max_iter=5, tol=0, temper=0.4), init=start, theory=True).trace
    assert (run.objective[:-1] <= run.bound[1:] + 1e-9).all()
    assert (run.bound[1:] <= run.objective[1:] + 1e-9).all()
    vb = fit(Coins(), data, VariationalBayes(max_iter=5, tol=0), init=start, theory=True).trace
    scores = vb.log_likelihood  # of the weights, before the price of the posterior
    assert (vb.bound[1:] <= scores[1:] + 1e-9).all()


def test_rows_that_live_with_shards_are_those_of_a_first_look():
    """Nothing learnt in the first E-step may creep into the likelihood of the second."""
    counts = np.array([[5.0, 0, 1], [0, 4, 2], [3, 3, 0]])
    words = np.array([[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]])
    parts = decompose(Topics(2, 3), DocumentCorpus(counts), {"words": words})
    expected = plsa_step(words, np.full((3, 2), 0.5), counts)[2]
    assert parts.log_likelihood == pytest.approx(expected)
    assert parts.kl == pytest.approx(0, abs=1e-9)
