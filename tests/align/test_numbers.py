"""Long, unequal and unlikely pairs: finite numbers, or an error that names the pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import ImpossibleItem
from softcount.core.types import EStep
from tests.align.cases import KINDS, Case, core_of, matrices, random_params
from tests.align.small import MODELS

every_model = pytest.mark.parametrize("kind", KINDS)
HOWS = (
    EStep(),
    EStep(temper=0.5),
    EStep(temper=3.0),
    EStep(fill="hard"),
    EStep(fill="sample", samples=2),
)


def words(n: int, letter: str, seed: int = 0, different: int = 50) -> list[str]:
    numbers = np.random.default_rng((seed, n)).integers(0, different, n)
    return [f"{letter}{number}" for number in numbers]


def check(
    kind: str,
    case: Case,
    start: Callable[[Any], Any] = lambda params: params,
    hows: Sequence[EStep] = HOWS,
) -> None:
    """Counts of every kind are finite and add up, and so do the parameters that they make."""
    corpus = case.corpus()
    core = core_of(kind, corpus, case)
    params = start(random_params(core, case))
    for how in hows:
        stats = core.expect(params, corpus.everything, how)
        assert np.isfinite([stats.log_likelihood, stats.score]).all(), how
        assert np.asarray(stats.counts["translation"]).sum() == pytest.approx(stats.tokens), how
        for name, family in core.families.items():
            counts = np.asarray(stats.counts[name])
            assert np.isfinite(counts).all(), (how, name)
            made = family.maximise(counts, params[name], np.random.default_rng(0))
            assert np.isfinite(made).all(), (how, name)


LONG = Case([(words(500, "s"), words(500, "t")), (["s1"], ["t1", "t2"])], None, True, 1, reach=9)


@pytest.mark.slow
@every_model
def test_sentences_of_five_hundred_words(kind: str) -> None:
    check(kind, LONG, hows=[EStep(), EStep(fill="hard")])


@every_model
@pytest.mark.parametrize("null", [True, False])
def test_pairs_of_very_unequal_length(kind: str, null: bool) -> None:
    data = [(words(90, "s"), ["t1"]), (["s1"], words(90, "t")), (["s1"], ["t2"])]
    check(kind, Case(data, None, null, 1, reach=9))


@every_model
@pytest.mark.parametrize("null", [True, False])
def test_pairs_of_one_word(kind: str, null: bool) -> None:
    check(kind, Case([(["a"], ["X"])], None, null, 1))
    check(kind, Case([(["a"], ["X"]), (["b"], ["X"]), (["a"], ["Y"])], None, null, 2))


@every_model
def test_a_word_repeated_in_the_target(kind: str) -> None:
    check(kind, Case([(["a"], ["X"] * 100_000), (["b", "a"], ["X", "Y"])], None, True, 1))


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_word_repeated_in_the_source(kind: str) -> None:
    check(kind, Case([(["a"] * 100_000, ["X"]), (["b", "a"], ["X", "Y"])], None, True, 1))


SMALL = Case([(words(6, "s", n, 5), words(7, "t", n, 5)) for n in range(5)], None, True, 1)


@every_model
@pytest.mark.parametrize("least", [1e-30, 1e-300])
def test_chances_next_to_nothing(kind: str, least: float) -> None:
    """All entries tiny, some of them zero; and tiny ones beside large ones."""

    def tiny(params: Any) -> Any:
        table = np.full(len(params["translation"]), least)
        table[1::3] = 0.0
        return {**params, "translation": table}

    def mixed(params: Any) -> Any:
        table = params["translation"].copy()
        table[::2] = least ** np.linspace(0.0, 1.0, len(table[::2]))
        return {**params, "translation": table}

    check(kind, SMALL, tiny)
    check(kind, SMALL, mixed)


@every_model
@pytest.mark.parametrize(
    ("dtype", "least"), [("float64", 1e-310), ("float64", 5e-324), ("float32", 1e-44)]
)
def test_what_cannot_be_divided_by_is_finite_or_impossible(
    kind: str, dtype: str, least: float
) -> None:
    corpus = SMALL.corpus()
    core = core_of(kind, corpus, SMALL, dtype=dtype)
    params = random_params(core, SMALL)
    table = np.full(len(params["translation"]), least, dtype)
    table[1::3] = 0.0
    for how in HOWS:
        try:
            stats = core.expect({**params, "translation": table}, corpus.everything, how)
        except ImpossibleItem:
            continue
        counts = np.asarray(stats.counts["translation"])
        assert counts.sum() == pytest.approx(stats.tokens, rel=1e-6)
        assert np.isfinite(stats.score)


@every_model
def test_high_powers_in_few_bits(kind: str) -> None:
    """10⁻⁵ to the tenth is nothing in 32 bits; posteriors are not."""
    corpus = SMALL.corpus()
    core = core_of(kind, corpus, SMALL, dtype="float32")
    params = random_params(core, SMALL)
    params["translation"] *= np.float32(1e-5)
    stats = core.expect(params, corpus.everything, EStep(temper=10.0))
    assert np.isfinite(stats.score)
    assert np.asarray(stats.counts["translation"]).sum() == pytest.approx(stats.tokens, rel=1e-5)


@every_model
@pytest.mark.parametrize("how", HOWS)
def test_impossible_pairs_are_named(kind: str, how: EStep) -> None:
    """By their number in the whole corpus: pairs with an empty side count."""
    data = [([], ["X"]), (["a"], ["X"]), (["b", "a"], ["Y", "X"]), (["b"], ["Z"]), (["c"], ["Z"])]
    case = Case(data, None, False, 1)
    corpus = case.corpus()
    core = core_of(kind, corpus, case)
    params = random_params(core, case)
    at = corpus.lexicon.find(np.array([1, 2]), np.array([2, 2]))  # b and c as Z
    params["translation"][at] = 0.0
    for shard, named in ((corpus.everything, 3), (corpus.shards(1, 0)[_where(corpus, 4)], 4)):
        with pytest.raises(ImpossibleItem, match=f"item {named} "):
            core.expect(params, shard, how)


def _where(corpus: Any, number: int) -> int:
    return next(i for i, shard in enumerate(corpus.shards(1, 0)) if number in shard.numbers)


@pytest.mark.parametrize("name", MODELS)
def test_a_word_repeated_a_million_times(name: str) -> None:
    """Half of them in one pair beside a few others."""
    pairs = sc.text.as_bitext([("a a", "x x"), ("b a", "y x"), ("b", "y")])
    again = pairs.select(np.repeat([0, 1, 2], [500_000, 3, 2]))
    model = MODELS[name]().fit(again)
    assert model.align(["a ||| x"]) == [[(0, 0)]]
    assert model.translations("a")[0] == ("x", pytest.approx(1.0, abs=1e-3))
    assert model.translations("b")[0][0] == "y"
    assert np.isfinite(model.score_samples(["a a ||| x x"])).all()


@pytest.mark.parametrize("null", [True, False])
def test_a_long_detour_is_finite(null: bool) -> None:
    """Two paths with hardly a way between them; the good one begins by far the less likely."""
    case = Case([(["a", "b"], [*"VWXYZ"])], None, null, 1, reach=1, p_null=1e-3)
    corpus = case.corpus()
    core = core_of("chain", corpus, case)
    params = random_params(core, case)
    params["jumps"] = np.array([1e-200, 1.0, 1e-200, 1.0])
    ahead = np.array([1.0, 1.0, 1e-290, 1e-290, 1e-290])
    table = np.concatenate([ahead, ahead[::-1], np.full(5 * null, 1e-300)])
    assert len(table) == len(params["translation"])
    params["translation"] = table
    (matrix,) = matrices(core, params, corpus.everything, EStep())
    assert np.isfinite(matrix).all()  # 1e-490 is beyond numbers: what is left need not sum to one
    assert ((matrix >= 0.0) & (matrix <= 1.0)).all()
