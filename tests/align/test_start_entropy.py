"""The entropy of tables at their start, and rows of an empty word that is not there."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.families.large import LargeTable

C = [("three rabbits", "trois lapins"), ("rabbits of grenoble", "lapins de Grenoble")]

ONE_WAY: dict[str, Any] = {
    "IBM1": sc.align.IBM1,
    "IBM2": sc.align.IBM2,
    "Diagonal": sc.align.Diagonal,
    "HMMAligner": sc.align.HMMAligner,
}


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", list(ONE_WAY))
def test_a_uniform_start_over_four_words_has_two_bits(name: str, dtype: str, null: bool) -> None:
    """Worked example C: "2 at the uniform start over four words"."""
    model = ONE_WAY[name](init="uniform", null=null, dtype=dtype, learner=sc.EM(max_iter=2, tol=0))
    assert model.fit(C).trace_.entropy[0] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize(
    "learner", [sc.VariationalBayes(max_iter=2), sc.Gibbs(max_iter=2, n_init=1), sc.HardEM()]
)
def test_so_it_has_whatever_the_learner(learner: sc.Learner) -> None:
    model = sc.align.IBM1(smoothing=0.1, learner=learner).fit(C)
    assert model.trace_.entropy[0] == pytest.approx(2.0)


@pytest.mark.parametrize("kind", ["ibm1", "ibm2", "diagonal", "hmm"])
def test_both_directions_together(kind: str) -> None:
    """Four words on each side: two bits in both directions."""
    model = sc.Aligner(kind, init="uniform", learner=sc.EM(max_iter=1, tol=0)).fit(C)
    assert model.trace_.entropy[0] == pytest.approx(2.0)


def test_after_a_step_it_is_that_of_the_table() -> None:
    """One step of example C: 1, entropy of (1/4, 5/12, 1/6, 1/6), and log₂ 3 twice."""
    model = sc.align.IBM1(null=False, learner=sc.EM(max_iter=1, tol=0)).fit(C)
    rabbits = -sum(p * math.log2(p) for p in (1 / 4, 5 / 12, 1 / 6, 1 / 6))
    expected = (1.0 + rabbits + 2.0 * math.log2(3.0)) / 4.0
    assert model.trace_.entropy[1] == pytest.approx(expected)


def test_weights_of_a_mean_field_are_taken_as_if_they_summed_to_one() -> None:
    """They sum to less than one, but not because anything is left for other words."""
    table = LargeTable(np.array([0, 2]), np.array([0, 1]), 0.1, n_outcomes=9)
    assert table.entropy(np.array([0.2, 0.2]), weights=True) == pytest.approx(1.0)
    whole = np.array([0.2, 0.2, *[0.6 / 7] * 7])
    assert table.entropy(np.array([0.2, 0.2])) == pytest.approx(-(whole * np.log2(whole)).sum())
    learner = sc.VariationalBayes(max_iter=3, tol=0)
    model = sc.align.IBM1(null=False, smoothing=0.1, learner=learner).fit(C, keep_params=True)
    raw, indptr = model.trace_.params[2]["translation"], model._lexicon.indptr
    rows = [raw[a:b] / raw[a:b].sum() for a, b in itertools.pairwise(indptr[:-1])]
    expected = np.mean([-(row * np.log2(row)).sum() for row in rows])
    assert model.trace_.entropy[2] == pytest.approx(expected)


@pytest.mark.parametrize("name", list(ONE_WAY))
def test_without_an_empty_word_there_is_no_row_of_it(name: str) -> None:
    bare = ONE_WAY[name](null=False, learner=sc.EM(max_iter=1, tol=0)).fit(C)
    assert list(bare.params_["translation"]) == ["three", "rabbits", "of", "grenoble"]
    assert bare.translations(None) == []
    full = ONE_WAY[name](learner=sc.EM(max_iter=1, tol=0)).fit(C)
    assert list(full.params_["translation"]) == ["three", "rabbits", "of", "grenoble", None]
    assert sum(full.params_["translation"][None].values()) == pytest.approx(1.0)


def test_it_is_gone_in_files_and_in_both_directions(tmp_path: Any) -> None:
    path = tmp_path / "bare.softcount"
    sc.align.IBM1(null=False).fit(C).save(path)
    assert None not in sc.load(path).params_["translation"]
    both = sc.Aligner("ibm1", settings={"null": False}).fit(C)
    assert None not in both.forward_.params_["translation"]
    assert None not in both.backward_.params_["translation"]
