"""Which pairs of an aligned text are shown: the most uncertain ones and typical ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from softcount.align.report import choose_pairs, measure_doubt

probabilities = st.floats(0, 1, width=32)


@given(
    hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=probabilities
    )
)
def test_doubt_is_the_entropy_of_all_links_by_words(posterior: Any) -> None:
    bits = sum(-x * math.log2(x) for p in posterior.flat for x in (p, 1 - p) if x > 0)
    assert measure_doubt(posterior) == pytest.approx(bits / sum(posterior.shape), abs=1e-12)


def test_posteriors_that_rounding_made_larger_than_one_are_no_trouble() -> None:
    assert measure_doubt(np.array([[1.0 + 1e-12, -1e-15]])) == 0.0


@given(
    st.lists(st.tuples(st.floats(0, 3), st.integers(2, 30), st.integers(0, 8)), max_size=30),
    st.integers(0, 12),
)
def test_chosen_pairs_are_the_worst_and_others_and_none_comes_twice(
    given_pairs: list[tuple[float, int, int]], n: int
) -> None:
    doubts, lengths = (np.array([one[k] for one in given_pairs]) for k in (0, 1))
    texts = [one[2] for one in given_pairs]
    uncertain, typical = choose_pairs(doubts, lengths, texts, n)
    shown = [texts[k] for k in uncertain + typical]
    assert len(shown) == len(set(shown)) == min(n, len(set(texts)))
    worst = sorted(max(d for d, _, t in given_pairs if t == text) for text in set(texts))
    assert [doubts[k] for k in uncertain] == worst[::-1][: n - n // 2]


def test_typical_pairs_are_in_the_middle() -> None:
    doubts = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    assert choose_pairs(doubts, np.full(5, 9), "abcde", 2) == ([4], [2])
    uncertain, typical = choose_pairs(doubts, np.array([9, 9, 90, 9, 9]), "abcde", 2)
    assert uncertain == [4]
    assert typical in ([1], [3])  # the one in the middle is too long
