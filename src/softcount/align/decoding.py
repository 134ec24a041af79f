"""From posteriors to links, and two directions symmetrised."""

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
"""Best alignments have links of 1 and of 0."""


class ChosenLinks(NamedTuple):
    """Links that were chosen in some pairs.

    ``numbers``  (pairs,) the numbers of the pairs in the corpus
    ``links``    the links of each of these pairs, in the order of (i, j)
    ``values``   (links,) their probabilities, or nothing
    """

    numbers: IntArray
    links: FlatLinks
    values: FloatArray

    def with_values(self, block: LinkBlock, posteriors: FloatArray | None) -> ChosenLinks:
        """With probabilities from posteriors of the block's links; None: without any."""
        if posteriors is None:
            return self._replace(values=np.zeros(0, self.values.dtype))
        pair, m = self.links.pair, block.sizes[1]
        at = block.offsets[pair] + self.links.source * m[pair] + self.links.target
        return self._replace(values=posteriors[at])


def select_links(block: LinkBlock, links: FloatArray, level: float) -> ChosenLinks:
    """The links of a block whose value is above a level, in the order of (i, j)."""
    above = np.flatnonzero(links > level)
    pair = np.searchsorted(block.offsets, above, side="right") - 1
    l, m = block.sizes
    sources, targets = np.divmod(above - block.offsets[pair], m[pair])
    words = sources < l[pair]  # without the empty word
    above, pair, sources, targets = above[words], pair[words], sources[words], targets[words]
    flat = FlatLinks(
        cumulate(np.bincount(pair, minlength=len(l))),
        sources.astype(np.int32),
        targets.astype(np.int32),
    )
    return ChosenLinks(block.numbers, flat, links[above])


def check_threshold(threshold: float) -> float:
    """The threshold, if it is a probability below 1."""
    if not isinstance(threshold, Real) or not 0.0 <= threshold < 1.0:
        raise DataError(
            f"threshold={brief(threshold)} is no threshold", "give a probability below 1"
        )
    return threshold


# One alignment out of two: of the target given the source, and of the source given the target.
#
# Links: ``intersection`` and ``union``; and between them what Moses' symal calls *grow* (Koehn, Och
# & Marcu 2003; Koehn et al. 2005). With A the links kept so far and U the union:
#
# 1. A = intersection. Go through A in the order of (target, source); look at each link's neighbours
#    (above, left, below, right; with ``-diag`` then the four corners); add those in U of whose two
#    words at least one has no link in A yet. A link that is added further on in that order is
#    visited in the same pass. Repeat until a pass adds nothing.
# 2. ``-final``: go through the links that only ``forward`` has, then those that only ``backward``
#    has; add those of whose two words at least one has no link in A yet. ``-final-and``: neither
#    has.
#
# Forward links, one for each target word, are what symal calls the inverse alignment. The order of
# visits, and so the result, depends on which side is called the target: swapping the directions and
# transposing the links transposes ``intersection`` and ``union``, but not always the others.
#
# Each holds the links of the one it grows from; but ``-final-and`` may have a link that ``-final``
# has not: both its words may have been linked to others before it is visited.
#
# NLTK's ``grow_diag_final_and`` (3.10) is another method: it never finds a word linked, and so
# takes the union.


LinkMethod = Literal[
    "intersection", "union", "grow", "grow-diag", "grow-diag-final", "grow-diag-final-and"
]


def symmetrise(
    forward: Iterable[Link],
    backward: Iterable[Link],
    method: LinkMethod = "grow-diag-final-and",
    shape: Shape | None = None,
) -> list[Link]:
    """The links of one pair out of those of both directions, in the order of (i, j).

    ``forward``   links (i, j) of the model of the target given the source
    ``backward``  of the source given the target; also (source position, target position)
    ``shape``     numbers of source and target words: links beyond them are errors

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
    """`symmetrise` for all pairs of a corpus; ``.lists()`` of the result has a list for each.

    >>> symmetrise_all([[(0, 0)], []], [[(0, 0)], [(1, 0)]], "union").lists()
    [[(0, 0)], [(1, 0)]]
    """
    if method not in (known := get_args(LinkMethod)):
        raise DataError(f"there is no method {brief(method)}", f"choose from {', '.join(known)}")
    there, back = FlatLinks.of(forward), FlatLinks.of(backward)
    if len(there) != len(back):
        raise DataError(
            f"forward links of {len(there)} pairs, backward links of {len(back)}",
            "give the links of the same pairs in the same order; none is an empty list",
        )
    width, height = (
        1 + max(int(getattr(x, name).max(initial=0)) for x in (there, back))
        for name in ("source", "target")
    )
    if len(there) * width * height >= 2**61:
        raise DataError(
            f"links as far out as {width - 1}-{height - 1} in a corpus of {len(there)} pairs",
            "no sentence is that long: check the links",
        )
    # the union: one number for each link, in the order of (pair, target, source), and its sides
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
            # zeros that numpy does not touch cost nothing, however far out a link lies
            linked = tuple(np.zeros(x.max(initial=-1) + 1, np.bool_) for x in (source, target))
            near = np.empty((np.diff(indptr).max(initial=0), 8), np.int64)
            grow_links(indptr, target, source, side, _STEPS[method], near, linked, keep)
        pair, target, source = pair[keep], target[keep], source[keep]
    indptr = np.searchsorted(pair, np.arange(len(there) + 1))
    rest, target = np.divmod(np.sort((pair * width + source) * height + target), height)
    return FlatLinks(indptr, (rest % width).astype(np.int32), target.astype(np.int32))


FORWARD, BACKWARD, BOTH = 1, 2, 3
"""Which directions have a link."""

_STEPS = {
    "grow": (4, False, False),
    "grow-diag": (8, False, False),
    "grow-diag-final": (8, True, False),
    "grow-diag-final-and": (8, True, True),
}
"""How many neighbours are looked at; whether there is a last step; whether it wants both free."""

PLACE = np.array([[4, 0, 5], [1, -1, 3], [6, 2, 7]], dtype=np.int64)
"""When symal looks at the neighbour at (1 + target step, 1 + source step); straight ones first."""


@inline
def _look(k: int, end: int, step: int, target: IntArray, source: IntArray, near: IntArray) -> None:
    """The neighbours of link k that stand behind it (or before it: step −1)."""
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
    """Add links of the union to those that are kept, which are those of both directions.

    The union's links stand pair by pair, in the order of (target, source), each with the directions
    that have it (``side``). ``near`` has room for the neighbours of one pair's links; ``linked``
    (all False, before and after) says which of its source and target words are linked.
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
        # neighbours of kept links that have an unlinked word, until there are none
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
        # links of whose words one (or both) is not linked yet, direction by direction
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
