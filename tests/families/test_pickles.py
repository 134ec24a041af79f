"""Families are sent and saved without what can be computed again, and are the same afterwards."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from softcount.families import Categorical, SparseCategorical, StickBreaking
from softcount.families.base import Family
from softcount.families.large import LargeTable

INDPTR = np.array([0, 2, 5, 5, 9])
OUTCOMES = np.array([0, 3, 1, 2, 3, 0, 1, 2, 4], np.uint16)
MASK = np.array([True, False, *[True] * 7])
FROZEN = np.array([False, True, False, False])
PRIORS = np.linspace(1.0, 2.0, 9)

FAMILIES = {
    "dense": Categorical((4, 3), 1.3),
    "dense, tied": Categorical((4, 3), 1.3, tied=np.array([0, 1, 0, 1])),
    "dense, held": Categorical((4, 3), 1.3, frozen=FROZEN),
    "sparse": SparseCategorical(INDPTR, PRIORS, MASK, FROZEN, outcomes=OUTCOMES),
    "stick": StickBreaking(4, 1.5),
    "large": LargeTable(INDPTR, OUTCOMES, 1.3, block=3),
    "large, held": LargeTable(INDPTR, OUTCOMES, PRIORS, MASK, FROZEN, block=3, n_outcomes=7),
    "large, half the bits": LargeTable(INDPTR, OUTCOMES, 1.3, dtype="float32"),
}


def figures(family: Family) -> list[bytes]:
    """Whatever a family does, as bits."""
    rng = np.random.default_rng(1)
    counts = rng.exponential(size=family.zeros().shape)
    old = family.random(rng)
    found = [
        *(family.update(how, counts, old, rng) for how in ("maximise", "mean_field", "draw")),
        *(family.mean(counts, old), family.bound(family.free(old), old), family.proper(old * 2.0)),
        *(family.log_prior(old), family.divergence(counts, old), family.expected_log(counts, old)),
        *(family.change(old, family.uniform()), family.prior_size, family.n_free),
        *(family.entropy(old), family.average([old, family.uniform()])),
    ]
    return [np.asarray(value).tobytes() for value in found]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_sent_is_the_same(name: str) -> None:
    family = FAMILIES[name]
    again = pickle.loads(pickle.dumps(family))
    assert figures(again) == figures(family)
    assert family.alike(family.uniform()) == again.alike(again.uniform())


@pytest.mark.parametrize("name", FAMILIES)
def test_what_was_computed_is_not_sent(name: str) -> None:
    family = pickle.loads(pickle.dumps(FAMILIES[name]))
    before = pickle.dumps(family)
    assert figures(family)
    assert pickle.dumps(family) == before


def test_a_large_table_is_as_large_as_its_outcomes() -> None:
    n = 50_000
    rows = np.array([0, 0, *range(n // 2, n + 1, n // 2)])  # the first is empty, and so is held
    table = LargeTable(rows, np.tile(np.arange(n // 2, dtype=np.uint16), 2))
    table.maximise(np.ones(n), table.uniform(), np.random.default_rng(0))
    assert len(pickle.dumps(table)) < 2 * n + 2000
