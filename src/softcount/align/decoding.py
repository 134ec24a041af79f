"""Link prediction from posteriors, and symmetrisation of two directional alignments."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Literal, NamedTuple, get_args

import numpy as np

from softcount.align.data import LinkBlock, cumulate
from softcount.core.errors import DataError, brief
from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.kernels.jit import inline, njit
from softcount.text.links import FlatLinks, Link, Shape

HALF = 0.5
"""A threshold for best alignments, whose links have the values 1 and 0."""


class ChosenLinks(NamedTuple):
    """Predicted links of some pairs.

    ``numbers``  (pairs,) the indices of the pairs in the corpus
    ``links``    the links of each of these pairs, sorted by (i, j)
    ``values``   (links,) their probabilities, or an empty array
    """

    numbers: IntArray
    links: FlatLinks
    values: FloatArray

    def with_values(self, block: LinkBlock, posteriors: FloatArray | None) -> ChosenLinks:
        """Return the links with their probabilities; None: without any."""
        if posteriors is None:
            return self._replace(values=np.zeros(0, self.values.dtype))
        pair, m = self.links.pair, block.sizes[1]
        at = block.offsets[pair] + self.links.source * m[pair] + self.links.target
        return self._replace(values=posteriors[at])


def select_links(block: LinkBlock, links: FloatArray, level: float) -> ChosenLinks:
    """Select the links of a block whose value is above a level, sorted by (i, j)."""
    above = np.flatnonzero(links > level)
    pair = np.searchsorted(block.offsets, above, side="right") - 1
    l, m = block.sizes
    sources, targets = np.divmod(above - block.offsets[pair], m[pair])
    words = sources < l[pair]  # leave out links to the empty word
    above, pair, sources, targets = above[words], pair[words], sources[words], targets[words]
    flat = FlatLinks(
        cumulate(np.bincount(pair, minlength=len(l))),
        sources.astype(np.int32),
        targets.astype(np.int32),
    )
    return ChosenLinks(block.numbers, flat, links[above])


def check_threshold(threshold: float) -> float:
    """Return the threshold; raise unless it is a probability below 1."""
    if not isinstance(threshold, Real) or not 0.0 <= threshold < 1.0:
        raise DataError(f"threshold={brief(threshold)} is invalid", "give a probability below 1")
    return threshold


# Symmetrisation: one alignment from two, of the target given the source and of the source given the
# target.
#
# The methods are ``intersection``, ``union``, and between them the *grow* heuristics of symal, part
# of Moses (Koehn, Och & Marcu 2003; Koehn et al. 2005). With A the links kept so far and U the
# union:
#
# 1. A = intersection. Visit A in the order of (target, source); for each link check its neighbours
#    (above, left, below, right; with ``-diag`` then the four corners), and add each neighbour in U
#    at least one of whose two words has no link in A yet. An added link that comes later in that
#    order is visited in the same pass. Repeat until a pass adds nothing.
# 2. ``-final``: visit the links that only ``forward`` has, then those that only ``backward`` has,
#    and add each link at least one of whose two words has no link in A yet. ``-final-and``: both
#    words must have no link.
#
# Forward links, one per target word, are what symal calls the inverse alignment. The order of
# visits, and so the result, depends on which side is called the target: swapping the directions and
# transposing the links transposes ``intersection`` and ``union``, but not always the others.
#
# Each method's result includes that of the method it extends; but ``-final-and`` may include a link
# that ``-final`` lacks, because in ``-final`` both its words may already be linked to other words
# when it is visited.
#
# NLTK's ``grow_diag_final_and`` (3.10) differs: it never finds a word to be linked, and so returns
# the union.


LinkMethod = Literal[
    "intersection", "union", "grow", "grow-diag", "grow-diag-final", "grow-diag-final-and"
]


def symmetrise(
    forward: Iterable[Link],
    backward: Iterable[Link],
    method: LinkMethod = "grow-diag-final-and",
    shape: Shape | None = None,
) -> list[Link]:
    """Symmetrise the two directional alignments of one pair; links are sorted by (i, j).

    ``forward``   links (i, j) of the model of the target given the source
    ``backward``  links of the source given the target; also (source position, target position)
    ``shape``     the numbers of source and target words: raise if a link is outside of them

    >>> symmetrise([(0, 0), (1, 1), (1, 2)], [(0, 0), (1, 1), (2, 1)])
    [(0, 0), (1, 1), (1, 2), (2, 1)]
    >>> symmetrise([(0, 0), (1, 1)], [(0, 0), (2, 1)], "intersection")
    [(0, 0)]
    """
    sides = FlatLinks.of([forward]), FlatLinks.of([backward])
    if shape is not None:
        for side in sides:
            side.check_inside(*np.array(shape)[:, None])
    return symmetrise_all(*sides, method).lists()[0]


def symmetrise_all(
    forward: FlatLinks | Iterable[Iterable[Link]],
    backward: FlatLinks | Iterable[Iterable[Link]],
    method: LinkMethod = "grow-diag-final-and",
) -> FlatLinks:
    """Symmetrise all pairs of a corpus; ``.lists()`` of the result has a list for each pair.

    >>> symmetrise_all([[(0, 0)], []], [[(0, 0)], [(1, 0)]], "union").lists()
    [[(0, 0)], [(1, 0)]]
    """
    if method not in (known := get_args(LinkMethod)):
        raise DataError(f"no method {brief(method)}", f"choose from {', '.join(known)}")
    there, back = FlatLinks.of(forward), FlatLinks.of(backward)
    if len(there) != len(back):
        raise DataError(
            f"forward links of {len(there)} pairs, backward links of {len(back)}",
            "give links of the same pairs in the same order, an empty list if a pair has none",
        )
    width, height = (
        1 + max(int(getattr(x, name).max(initial=0)) for x in (there, back))
        for name in ("source", "target")
    )
    if len(there) * width * height >= 2**61:
        raise DataError(
            f"links up to {width - 1}-{height - 1} in a corpus of {len(there)} pairs",
            "no sentence is that long: check the links",
        )
    # the union: an integer key per link, sorted by (pair, target, source); the lowest bit is the
    # direction
    marked = np.unique(
        np.concatenate(
            [
                ((x.pair * height + x.target) * width + x.source) * 2 + bit
                for bit, x in enumerate((there, back))
            ]
        )
    )
    key, bit = marked >> 1, marked & 1
    first = np.flatnonzero(np.diff(key, prepend=-1))
    key, side = key[first], np.add.reduceat(bit + 1, first) if len(first) else key
    rest, source = np.divmod(key, width)
    pair, target = np.divmod(rest, height)
    if method != "union":
        keep = side == BOTH
        if method != "intersection":
            indptr = np.searchsorted(pair, np.arange(len(there) + 1))
            # pages of zeros that are never touched cost no memory, however large a position is
            linked = tuple(np.zeros(x.max(initial=-1) + 1, np.bool_) for x in (source, target))
            near = np.empty((np.diff(indptr).max(initial=0), 8), np.int64)
            grow_links(indptr, target, source, side, _STEPS[method], near, linked, keep)
        pair, target, source = pair[keep], target[keep], source[keep]
    indptr = np.searchsorted(pair, np.arange(len(there) + 1))
    rest, target = np.divmod(np.sort((pair * width + source) * height + target), height)
    return FlatLinks(indptr, (rest % width).astype(np.int32), target.astype(np.int32))


FORWARD, BACKWARD, BOTH = 1, 2, 3
"""The directions that have a link, as bits."""

_STEPS = {
    "grow": (4, False, False),
    "grow-diag": (8, False, False),
    "grow-diag-final": (8, True, False),
    "grow-diag-final-and": (8, True, True),
}
"""The number of neighbours to check; whether there is a final step; whether this requires both
words to be unlinked."""

PLACE = np.array([[4, 0, 5], [1, -1, 3], [6, 2, 7]], dtype=np.int64)
"""The order in which symal checks neighbours, indexed by (1 + target step, 1 + source step):
horizontal and vertical ones first."""


@inline
def _look(k: int, end: int, step: int, target: IntArray, source: IntArray, near: IntArray) -> None:
    """Record the neighbours of link k that come after it in the order (step −1: before it)."""
    other = k + step
    while other != end and abs(target[other] - target[k]) <= 1:
        aside = source[other] - source[k]
        if abs(aside) <= 1:
            near[PLACE[1 + target[other] - target[k], 1 + aside]] = other
        other += step


@njit
def grow_links(
    indptr: IntArray,
    target: IntArray,
    source: IntArray,
    side: IntArray,
    steps: tuple[int, bool, bool],
    near: IntArray,
    linked: tuple[BoolArray, ...],
    keep: BoolArray,
) -> None:
    """Add links of the union to ``keep``, which initially marks the intersection.

    The union's links are sorted by (pair, target, source); ``side`` gives the directions that have
    each. ``near`` is workspace for the neighbours of one pair's links; ``linked`` (all False,
    before and after) marks which of its source and target words are linked.
    """
    n_steps, final, both_free = steps
    of_source, of_target = linked
    for n in range(len(indptr) - 1):
        first, last = indptr[n], indptr[n + 1]
        near[: last - first] = -1
        for k in range(first, last):
            if keep[k]:
                of_source[source[k]] = True
                of_target[target[k]] = True
            _look(k, first - 1, -1, target, source, near[k - first])
            _look(k, last, 1, target, source, near[k - first])
        # grow: add neighbours of kept links that have an unlinked word, until there are none
        added = True
        while added:
            added = False
            for k in range(first, last):
                if not keep[k]:
                    continue
                for s in range(n_steps):
                    new = near[k - first, s]
                    if new >= 0 and not (of_source[source[new]] and of_target[target[new]]):
                        keep[new] = True
                        of_source[source[new]] = True
                        of_target[target[new]] = True
                        added = True
        # final: add links one (or both) of whose words is not linked yet, direction by direction
        for direction in (FORWARD, BACKWARD) if final else (0, 0):
            for k in range(first, last):
                if side[k] != direction or keep[k]:
                    continue
                i, j = of_source[source[k]], of_target[target[k]]
                if not (i and j) and not (both_free and (i or j)):
                    keep[k] = True
                    of_source[source[k]] = True
                    of_target[target[k]] = True
        for k in range(first, last):
            of_source[source[k]] = False
            of_target[target[k]] = False
