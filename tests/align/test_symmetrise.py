"""Two alignments made one: against the published procedure, by laws, and by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.align.decoding import symmetrise, symmetrise_all
from softcount.core.errors import DataError
from softcount.text.links import FlatLinks, format_links

METHODS = ["intersection", "union", "grow", "grow-diag", "grow-diag-final", "grow-diag-final-and"]
GROWING = METHODS[2:]
SIZE = 5

cases = settings(max_examples=80, deadline=None)
anything = st.frozensets(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)), max_size=14)


@st.composite
def directed(draw):
    """Links as aligners find them: at most one for each target word; for each source word."""
    choice = st.lists(st.none() | st.integers(0, SIZE), min_size=SIZE + 1, max_size=SIZE + 1)
    forward = {(i, j) for j, i in enumerate(draw(choice)) if i is not None}
    backward = {(i, j) for i, j in enumerate(draw(choice)) if j is not None}
    return forward, backward


both = directed() | st.tuples(anything, anything)


def published(forward, backward, method):
    """The pseudo-code of Koehn et al. (2005), word by word, on the set of links kept so far."""
    union, kept = set(forward) | set(backward), set(forward) & set(backward)
    steps = [(-1, 0), (0, -1), (1, 0), (0, 1)]
    if "diag" in method:
        steps += [(-1, -1), (-1, 1), (1, -1), (1, 1)]

    def free_source(i):
        return all(i != other for other, _ in kept)

    def free_target(j):
        return all(j != other for _, other in kept)

    size = None
    while size != len(kept):
        size = len(kept)
        for j, i in product(range(SIZE + 1), repeat=2):
            if (i, j) in kept:
                for step_j, step_i in steps:
                    new = i + step_i, j + step_j
                    if new in union and (free_source(new[0]) or free_target(new[1])):
                        kept.add(new)
    if "final" in method:
        needed = all if method.endswith("and") else any
        for links in (forward, backward):
            for j, i in product(range(SIZE + 1), repeat=2):
                if (i, j) in links and needed([free_source(i), free_target(j)]):
                    kept.add((i, j))
    return sorted(kept)


@cases
@given(both, st.sampled_from(GROWING))
def test_is_the_published_procedure(links, method):
    assert symmetrise(*links, method) == published(*links, method)


@pytest.mark.parametrize("method", GROWING)
def test_is_the_published_procedure_in_many_crowded_cases(method):
    """Which corner comes first matters only where several would link the same word."""
    rng = np.random.default_rng(5)
    grids = rng.random((400, 2, SIZE + 1, SIZE + 1)) < rng.uniform(0.1, 0.5, (400, 2, 1, 1))
    forward, backward = ([np.argwhere(x) for x in side] for side in grids.swapaxes(0, 1))
    forward, backward = (
        [[tuple(y) for y in x.tolist()] for x in side] for side in (forward, backward)
    )
    expected = [published(f, b, method) for f, b in zip(forward, backward, strict=True)]
    assert symmetrise_all(forward, backward, method).lists() == expected


@cases
@given(both)
def test_intersection_and_union(links):
    forward, backward = map(set, links)
    assert symmetrise(*links, "intersection") == sorted(forward & backward)
    assert symmetrise(*links, "union") == sorted(forward | backward)


@cases
@given(both)
def test_each_holds_the_one_before(links):
    least, most, grow, diag, final, final_and = (set(symmetrise(*links, m)) for m in METHODS)
    assert least <= grow <= most
    assert least <= diag <= final <= most
    assert diag <= final_and <= most


@cases
@given(both)
def test_what_the_last_step_leaves_out(links):
    union = symmetrise(*links, "union")
    for method, enough in (("grow-diag-final", all), ("grow-diag-final-and", any)):
        kept = symmetrise(*links, method)
        sources, targets = {i for i, _ in kept}, {j for _, j in kept}
        assert all(enough([i in sources, j in targets]) for i, j in union)


@cases
@given(both, st.sampled_from(METHODS))
def test_two_of_the_same_are_the_same(links, method):
    assert symmetrise(links[0], links[0], method) == sorted(links[0])


def test_the_stricter_last_step_may_find_other_links():
    forward = [(2, 0), (4, 1), (5, 2), (1, 3), (3, 4), (0, 5)]
    backward = [(0, 0), (1, 1), (2, 5), (3, 4), (4, 4), (5, 0)]
    strict, wide = (set(symmetrise(forward, backward, method)) for method in GROWING[:1:-1])
    assert strict - wide
    assert wide - strict


def reverse_links(links):
    return [(j, i) for i, j in links]


@cases
@given(both)
def test_directions_may_be_swapped(links):
    forward, backward = links
    for method in ("intersection", "union"):
        swapped = symmetrise(reverse_links(backward), reverse_links(forward), method)
        assert sorted(reverse_links(swapped)) == symmetrise(forward, backward, method)


def test_forward_links_come_first_in_the_last_step():
    forward, backward = [(0, 0)], [(0, 1)]
    assert symmetrise(forward, backward) == [(0, 0)]
    assert symmetrise(backward, forward) == [(0, 1)]


def test_the_order_of_visits_depends_on_the_side():
    """So swapping the directions need not give the same links: as documented."""
    differs = 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        forward = [(int(i), j) for j, i in enumerate(rng.integers(0, 4, 4))]
        backward = [(i, int(j)) for i, j in enumerate(rng.integers(0, 4, 4))]
        swapped = symmetrise(reverse_links(backward), reverse_links(forward), "grow-diag")
        differs += sorted(reverse_links(swapped)) != symmetrise(forward, backward, "grow-diag")
    assert 0 < differs < 100


def test_by_hand():
    forward = [(0, 0), (1, 1), (1, 2), (4, 4)]
    backward = [(0, 0), (1, 1), (2, 2), (3, 5)]
    assert symmetrise(forward, backward, "grow") == [(0, 0), (1, 1), (1, 2), (2, 2)]
    assert symmetrise(forward, backward, "grow-diag") == [(0, 0), (1, 1), (1, 2), (2, 2)]
    everything = [(0, 0), (1, 1), (1, 2), (2, 2), (3, 5), (4, 4)]
    assert symmetrise(forward, backward, "grow-diag-final-and") == everything
    assert symmetrise([(0, 0), (1, 1)], [(0, 0)], "grow-diag") == [(0, 0), (1, 1)]
    assert symmetrise([(0, 0), (1, 1)], [(0, 0)], "grow") == [(0, 0)]
    one_free = [(0, 0)], [(0, 0), (5, 0)]
    assert symmetrise(*one_free, "grow-diag-final") == [(0, 0), (5, 0)]
    assert symmetrise(*one_free, "grow-diag-final-and") == [(0, 0)]


@cases
@given(st.lists(both, max_size=6), st.sampled_from(METHODS))
def test_a_corpus_is_its_pairs(pairs, method):
    forward, backward = [list(f) for f, _ in pairs], [list(b) for _, b in pairs]
    together = symmetrise_all(forward, backward, method)
    assert together.lists() == [symmetrise(*links, method) for links in pairs]
    again = symmetrise_all(FlatLinks.of(forward), FlatLinks.of(backward), method)
    assert again.lists() == together.lists()


@cases
@given(directed())
def test_beside_nltk(links):
    """NLTK never finds a word linked, so it takes more."""
    gdfa = pytest.importorskip("nltk.translate.gdfa")
    theirs = gdfa.grow_diag_final_and(SIZE + 1, SIZE + 1, *map(format_links, links))
    assert set(symmetrise(*links)) <= set(theirs) <= set(symmetrise(*links, "union"))


def test_links_far_out():
    far = [(999_999_999, 3), (5, 999_999_999)]
    assert symmetrise(far, far[:1]) == sorted(far)
    with pytest.raises(DataError, match="999999999-999999999 in a corpus of 10 pairs"):
        symmetrise_all([far] * 10, [far] * 10)


def test_nothing_to_symmetrise():
    for method in METHODS:
        assert symmetrise([], [], method) == []
        assert symmetrise_all([], [], method).lists() == []
        assert symmetrise_all([[], []], [[], []], method).lists() == [[], []]


def test_bad_input():
    with pytest.raises(DataError, match="no method 'grow-final'"):
        symmetrise([], [], "grow-final")
    with pytest.raises(DataError, match="forward links of 1 pairs, backward links of 2"):
        symmetrise_all([[]], [[], []])
    assert symmetrise([(1, 2)], [(1, 2)], shape=(2, 3)) == [(1, 2)]
    for forward, backward in (([(1, 2)], []), ([], [(1, 2)])):
        with pytest.raises(DataError, match="the link 1-2 is outside its pair of 2 source and 2"):
            symmetrise(forward, backward, shape=(2, 2))
