"""Agreement with gold classes, against enumeration, hand counts and formulas written out."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.metrics import (
    adjusted_rand,
    agreement,
    many_to_one,
    many_to_one_map,
    matching,
    nmi,
    one_to_one,
    purity,
    v_measure,
)

FIGURES = [purity, many_to_one, one_to_one, v_measure, nmi, adjusted_rand]
cases = settings(max_examples=40, deadline=None)
SYMMETRIC = [one_to_one, v_measure, nmi, adjusted_rand]

labellings = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["noun", "verb", "det", "adj"])),
    min_size=1,
    max_size=25,
).map(lambda pairs: tuple(map(list, zip(*pairs, strict=True))))


def best_by_enumeration(found, gold):
    """Most items that a one-to-one renaming of the found classes can get right."""
    ours, theirs = sorted(set(found)), sorted(set(gold))
    theirs += ["nobody"] * (len(ours) - len(theirs))
    shared = Counter(zip(found, gold, strict=True))
    return max(
        sum(shared[pair] for pair in zip(ours, names, strict=True))
        for names in permutations(theirs, len(ours))
    )


def entropy(*columns):
    counts = Counter(zip(*columns, strict=True))
    n = sum(counts.values())
    return -sum(c / n * log(c / n) for c in counts.values())


def rand_over_pairs(found, gold):
    """The adjusted Rand index from its definition, over all pairs of items."""
    pairs = list(combinations(range(len(gold)), 2))
    together = [(found[i] == found[j], gold[i] == gold[j]) for i, j in pairs]
    both = sum(f and g for f, g in together)
    ours, theirs = sum(f for f, _ in together), sum(g for _, g in together)
    chance = ours * theirs / len(pairs)
    most = (ours + theirs) / 2
    return (both - chance) / (most - chance)


def test_purity_by_hand():
    """Class 0 holds 3 x and 1 y, class 1 holds 2 y and 2 z, class 2 one z: 3 + 2 + 1 of 9."""
    found = [0, 0, 0, 0, 1, 1, 1, 1, 2]
    gold = ["x", "x", "y", "x", "y", "y", "z", "z", "z"]
    assert purity(found, gold) == pytest.approx(6 / 9)
    assert many_to_one_map(found, gold) == {0: "x", 1: "y", 2: "z"}
    assert matching(found, gold) == {0: "x", 1: "y", 2: "z"}
    assert one_to_one(found, gold) == pytest.approx(6 / 9)


def test_one_to_one_gives_up_a_majority_for_a_better_whole():
    """Both found classes are mostly x; only one of them may have it."""
    found, gold = "aaaaabbb", "xxxyyxxy"
    assert purity(found, gold) == pytest.approx(5 / 8)
    assert one_to_one(found, gold) == pytest.approx(4 / 8)
    assert matching(found, gold) in ({"a": "x", "b": "y"}, {"a": "y", "b": "x"})


@cases
@given(labellings)
def test_one_to_one_is_the_best_of_all_permutations(pair):
    found, gold = pair
    best = best_by_enumeration(found, gold)
    assert one_to_one(found, gold) == pytest.approx(best / len(gold))
    partner = matching(found, gold)
    assert len(set(partner.values())) == len(partner)
    assert sum(partner.get(f) == g for f, g in zip(found, gold, strict=True)) == best


@cases
@given(labellings)
def test_purity_is_the_accuracy_of_the_map(pair):
    found, gold = pair
    mapping = many_to_one_map(found, gold)
    right = sum(mapping[f] == g for f, g in zip(found, gold, strict=True))
    assert purity(found, gold) == pytest.approx(right / len(gold))
    assert many_to_one(found, gold) == many_to_one(found, gold, mapping) == purity(found, gold)
    for name, chosen in mapping.items():
        inside = Counter(g for f, g in zip(found, gold, strict=True) if f == name)
        assert inside[chosen] == max(inside.values())


@cases
@given(labellings)
def test_v_measure_is_made_of_entropies(pair):
    found, gold = pair
    ours, theirs, both = entropy(found), entropy(gold), entropy(found, gold)
    h = 1 - (both - ours) / theirs if theirs else 1.0
    c = 1 - (both - theirs) / ours if ours else 1.0
    v = 2 * h * c / (h + c) if h + c > 1e-12 else 0.0
    all_of_it = agreement(found, gold)
    assert all_of_it.homogeneity == pytest.approx(h, abs=1e-9)
    assert all_of_it.completeness == pytest.approx(c, abs=1e-9)
    assert v_measure(found, gold) == pytest.approx(v, abs=1e-9)
    assert nmi(found, gold) == pytest.approx(v, abs=1e-9)


@cases
@given(labellings)
def test_adjusted_rand_over_all_pairs(pair):
    found, gold = pair
    if len(set(found)) in (1, len(found)) and len(set(gold)) in (1, len(gold)):
        return  # the definition is 0 / 0, or nearly: see the test of ends
    assert adjusted_rand(found, gold) == pytest.approx(rand_over_pairs(found, gold), abs=1e-9)


@pytest.mark.parametrize("figure", FIGURES)
@cases
@given(pair=labellings)
def test_names_do_not_matter(figure, pair):
    found, gold = pair
    renamed = [("class", 7 - f) for f in found]
    numbers = [{"noun": 3, "verb": 0, "det": 12, "adj": 1}[g] for g in gold]
    assert figure(renamed, np.array(numbers)) == pytest.approx(figure(found, gold), abs=1e-12)


@pytest.mark.parametrize("figure", SYMMETRIC)
@cases
@given(pair=labellings)
def test_symmetric_where_it_should_be(figure, pair):
    found, gold = pair
    assert figure(gold, found) == pytest.approx(figure(found, gold), abs=1e-12)


@pytest.mark.parametrize("figure", FIGURES)
@cases
@given(pair=labellings, seed=st.integers(0, 99))
def test_the_order_of_items_does_not_matter(figure, pair, seed):
    found, gold = pair
    order = np.random.default_rng(seed).permutation(len(gold))
    shuffled = figure([found[i] for i in order], [gold[i] for i in order])
    assert shuffled == pytest.approx(figure(found, gold), abs=1e-12)


@cases
@given(labellings)
def test_bounds(pair):
    figures = agreement(*pair)
    assert 0 < figures.one_to_one <= figures.many_to_one <= 1
    assert figures.majority <= figures.many_to_one
    low, high = sorted([figures.homogeneity, figures.completeness])
    assert -1e-12 <= low <= figures.v_measure + 1e-12 <= high + 2e-12
    assert high <= 1
    assert -0.5 - 1e-12 <= figures.adjusted_rand <= 1


@cases
@given(labellings)
def test_agreement_holds_the_figures_of_the_functions(pair):
    found, gold = pair
    figures = agreement(found, gold)
    assert figures.n == len(gold)
    assert figures.unknown == 0
    assert figures.found_classes == len(set(found))
    assert figures.gold_classes == len(set(gold))
    assert figures.majority == pytest.approx(max(Counter(gold).values()) / len(gold))
    assert figures.purity == figures.many_to_one == purity(found, gold)
    assert figures.one_to_one == one_to_one(found, gold)
    assert figures.v_measure == figures.nmi == v_measure(found, gold)
    assert figures.adjusted_rand == adjusted_rand(found, gold)


def test_the_ends():
    """Perfect under other names; everything in one class; every item a class of its own."""
    gold = ["x", "x", "y", "y"]
    assert {figure([5, 5, 2, 2], gold) for figure in FIGURES} == {1.0}
    together = agreement([0] * 4, gold)
    assert (together.many_to_one, together.one_to_one, together.v_measure) == (0.5, 0.5, 0.0)
    assert (together.homogeneity, together.completeness, together.adjusted_rand) == (0, 1, 0)
    apart = agreement(range(4), gold)
    assert (apart.many_to_one, apart.one_to_one) == (1.0, 0.5)
    assert apart.homogeneity == pytest.approx(1.0)
    assert {figure([0], ["x"]) for figure in FIGURES} == {1.0}


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("unknown", [-1, None, -1.0, np.int64(-1)])
def test_items_of_unknown_gold_class_are_left_out(figure, unknown):
    found, gold = [0, 0, 1, 1, 2], [1, 2, 2, 2, 1]
    with_unknown = figure([*found, 2, 7], [*gold, unknown, unknown])
    assert with_unknown == figure(found, gold)
    assert agreement([*found, 2, 7], [*gold, unknown, unknown]).unknown == 2


def test_only_gold_can_be_unknown():
    """A found class of −1 is a class, and so is a gold class that is called "-1"."""
    assert agreement([-1, None, 0], ["-1", "x", "x"]).found_classes == 3
    assert agreement([-1, None, 0], ["-1", "x", "x"]).gold_classes == 2


def test_a_map_from_other_items():
    mapping = many_to_one_map([0, 0, 1, 1, 2], ["x", "x", "y", "y", "x"])
    assert many_to_one([0, 1, 2, 2], ["x", "x", "x", "y"], mapping) == pytest.approx(2 / 4)
    assert many_to_one([9, 0], ["x", "x"], mapping) == pytest.approx(1 / 2)
    assert many_to_one([0, 1], ["never seen", "y"], mapping) == pytest.approx(1 / 2)
    assert many_to_one([0, 1, 0], ["x", "y", None], mapping) == 1.0


def test_matching_leaves_out_pairs_that_share_nothing():
    """b is left with y, of which it has none, because x is worth more to a."""
    assert matching("aaaaaab", "xxxxxyx") == {"a": "x"}


def test_the_table():
    lines = str(agreement([0, 0, 1, 1], ["x", "x", "y", None])).splitlines()
    expected = "3 items, 2 found classes, 2 gold (left out, their gold class being unknown: 1)"
    assert lines[0] == expected
    assert lines[1].split() == ["majority", "baseline", "0.667"]
    assert len({len(line) for line in lines[1:]}) == 1
    assert "left out" not in str(agreement([0], ["x"]))


@pytest.mark.parametrize("figure", [*FIGURES, agreement, matching, many_to_one_map])
@pytest.mark.parametrize(
    ("found", "gold", "message"),
    [
        ([0, 1], ["x"], "2 found classes for 1 gold"),
        ([], [], "no items"),
        ([0, 1], [-1, None], "all 2 items is unknown"),
        ([0, 1], ["x", ["y"]], r"\['y'\], which cannot be the name"),
        ([np.zeros(2), 1], ["x", "y"], "cannot be the name"),
        ([0, 1], [np.zeros(2), "y"], "cannot be the name"),
        ([0.0, float("nan")], ["x", "y"], "NaN"),
        ([0, 1], np.array([1.0, np.nan]), "NaN"),
        (np.full((2, 3), 1 / 3), ["x", "y"], r"shape \(2, 3\)"),
        (None, ["x"], "found classes are None"),
    ],
)
def test_bad_labels_are_refused(figure, found, gold, message):
    with pytest.raises(DataError, match=message) as caught:
        figure(found, gold)
    assert caught.value.hint
