"""Worked example of word alignment: two pairs, Model 1 without the empty word, in fractions."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import softcount as sc

PAIRS = [("three rabbits", "trois lapins"), ("rabbits of grenoble", "lapins de Grenoble")]
Tables = dict[str, dict[str, Fraction]]


def fractions(**rows: str) -> Tables:
    """three="trois 1/2 lapins 1/2" → {"three": {"trois": 1/2, "lapins": 1/2}}"""
    read = {source: row.split() for source, row in rows.items()}
    return {
        source: dict(zip(row[::2], map(Fraction, row[1::2]), strict=True))
        for source, row in read.items()
    }


THIRDS = "lapins 1/3 de 1/3 Grenoble 1/3"
FIRST = fractions(
    three="trois 1/2 lapins 1/2",
    rabbits="trois 1/4 lapins 5/12 de 1/6 Grenoble 1/6",
    of=THIRDS,
    grenoble=THIRDS,
)
LAST = "lapins 5/18 de 13/36 Grenoble 13/36"
SECOND = fractions(
    three="trois 11/20 lapins 9/20",
    rabbits="trois 715/3373 lapins 1800/3373 de 429/3373 Grenoble 429/3373",
    of=LAST,
    grenoble=LAST,
)
MISPRINT = fractions(rabbits="trois 2/7 lapins 11/21 de 2/21 Grenoble 2/21")


def learned(steps: int) -> sc.align.IBM1:
    return sc.align.IBM1(null=False, learner=sc.EM(max_iter=steps, tol=0)).fit(PAIRS)


def likelihood(t: Tables) -> Fraction:
    """Π over pairs and target words of 1/l Σ_i t(f | e_i)."""
    total = Fraction(1)
    for source, target in PAIRS:
        es = source.split()
        for f in target.split():
            total *= sum((t[e].get(f, Fraction(0)) for e in es), Fraction(0)) / len(es)
    return total


def step(t: Tables) -> Tables:
    """One step of EM, written out."""
    counts: dict[str, Counter[str]] = {e: Counter() for e in t}
    for source, target in PAIRS:
        for f in target.split():
            total = sum(t[e][f] for e in source.split())
            for e in source.split():
                counts[e][f] += t[e][f] / total  # type: ignore[assignment]
    return {
        e: {f: Fraction(c) / sum(row.values()) for f, c in row.items()} for e, row in counts.items()
    }


def entropy(t: Tables) -> float:
    """Bits, the mean over source words."""
    rows = [sum(-float(p) * math.log2(p) for p in row.values()) for row in t.values()]
    return sum(rows) / len(rows)


@pytest.mark.parametrize(("steps", "table"), [(1, FIRST), (2, SECOND)])
def test_c_tables(steps: int, table: Tables) -> None:
    found = learned(steps).params_["translation"]
    assert {e: set(row) for e, row in found.items() if e} == {e: set(r) for e, r in table.items()}
    for e, row in table.items():
        assert found[e] == pytest.approx({f: float(p) for f, p in row.items()}, abs=1e-14)


def test_c_is_what_the_definition_gives() -> None:
    even = {e: dict.fromkeys(row, Fraction(1, 4)) for e, row in FIRST.items()}
    assert step(even) == FIRST
    assert step(FIRST) == SECOND


def test_c_perplexity() -> None:
    """Five words; at the start each of the four target words is as likely."""
    start = {e: dict.fromkeys(["trois", "lapins", "de", "Grenoble"], Fraction(1, 4)) for e in FIRST}
    expected = [float(likelihood(t)) ** (-1 / 5) for t in (start, FIRST, SECOND)]
    assert expected[0] == pytest.approx(4.0)
    np.testing.assert_allclose(learned(2).trace_.perplexity, expected, rtol=1e-12)


def test_c_entropies() -> None:
    """2 bits at the start, over four words, then less: not the 1.9 and 1.4 that were printed."""
    expected = [2.0, entropy(FIRST), entropy(SECOND)]
    np.testing.assert_allclose(learned(2).trace_.entropy, expected, rtol=1e-12)
    # by hand: H(1/4, 5/12, 1/6, 1/6) = 2/4 + 5/12 log2(12/5) + 2/6 log2 6
    rabbits = 0.5 + 5 / 12 * math.log2(12 / 5) + math.log2(6) / 3
    assert expected[1] == pytest.approx((1.0 + rabbits + 2.0 * math.log2(3)) / 4)
    assert expected[0] > expected[1] > expected[2]
    assert not {1.9, 1.4} & {round(bits, 1) for bits in expected}


def test_c_misprint() -> None:
    """Counts that are carried over without being normalised in the second sentence."""
    found = learned(2).params_["translation"]["rabbits"]
    wrong = MISPRINT["rabbits"]
    assert max(abs(found[f] - float(p)) for f, p in wrong.items()) > 0.03


def test_c_goes_on_to_what_a_reader_expects() -> None:
    model = learned(200)
    assert model.align() == [[(0, 0), (1, 1)], [(0, 0), (1, 1), (1, 2)]]
    assert model.translations("three", 1)[0][0] == "trois"
    assert model.translations("rabbits", 1)[0][0] == "lapins"
