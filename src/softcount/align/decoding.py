"""From posteriors to links, and two directions symmetrised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from softcount.align.data import LinkBlock, cumulate
from softcount.align.kernels import links as kernels
from softcount.align.kernels.positions import BOTH, grow_links
from softcount.core.errors import DataError, brief
from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.text.links import FlatLinks, Link, Shape

HALF = 0.5
"""Best alignments have links of 1 and of 0."""


@dataclass(frozen=True, eq=False)
class ChosenLinks:
    """Links that were chosen in some pairs.

    ``numbers``  (pairs,) the numbers of the pairs in the corpus
    ``links``    the links of each of these pairs, in the order of (i, j)
    ``values``   (links,) their probabilities, or nothing
    """

    numbers: IntArray
    links: FlatLinks
    values: FloatArray

    def without_values(self) -> ChosenLinks:
        """Without probabilities."""
        return replace(self, values=np.zeros(0, self.values.dtype))

    def with_values(self, block: LinkBlock, posteriors: FloatArray) -> ChosenLinks:
        """With probabilities from posteriors of the block's links."""
        pair, widths = self.links.pair, block.sizes[1]
        at = block.offsets[pair] + self.links.source * widths[pair] + self.links.target
        return replace(self, values=posteriors[at])


def select_links(block: LinkBlock, links: FloatArray, level: float) -> ChosenLinks:
    """The links of a block whose value is above a level, in the order of (i, j)."""
    parts = (block.sizes[0], block.offsets, links, level)
    often = kernels.count_above(*parts)
    indptr = cumulate(often)
    n = int(indptr[-1])
    sources, targets = np.empty(n, np.int32), np.empty(n, np.int32)
    values = np.empty(n, links.dtype)
    kernels.take_above(*parts, sources, targets, values)
    return ChosenLinks(block.numbers, FlatLinks(indptr, sources, targets), values)


def join_links(found: Iterable[ChosenLinks], n_pairs: int) -> tuple[FlatLinks, FloatArray]:
    """All links, in the order of pairs; pairs that are not there have none."""
    each = list(found)
    often = np.zeros(n_pairs, np.int64)
    for one in each:
        often[one.numbers] = np.diff(one.links.indptr)
    indptr = cumulate(often)
    none = np.zeros(0, np.int32)
    sources = np.concatenate([none, *(one.links.source for one in each)])
    targets = np.concatenate([none, *(one.links.target for one in each)])
    values = np.concatenate([np.zeros(0), *(one.values for one in each)])
    return FlatLinks(indptr, sources, targets), values


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
#    words at least one has no link in A yet. A link that is added further on in that order is come
#    to in the same pass. Repeat until a pass adds nothing.
# 2. ``-final``: go through the links that only ``forward`` has, then those that only ``backward``
#    has; add those of whose two words at least one has no link in A yet. ``-final-and``: neither
#    has.
#
# Forward links, one for each target word, are what symal calls the inverse alignment. The order of
# visits, and so what it finds, depends on which side is called the target: swapping the directions
# and transposing the links transposes ``intersection`` and ``union``, but not always the others.
#
# Each holds the links of the one it grows from; but ``-final-and`` may have a link that ``-final``
# has not: both its words may have been linked to others before it is come to.
#
# NLTK's ``grow_diag_final_and`` (3.10) is another method: it never finds a word linked, and so
# takes the union.
#
# Posteriors p and q of both directions: ``product`` keeps links with √(p q) > δ, ``soft-union``
# those with (p + q) / 2 > δ (after Liang, Taskar & Klein 2006; DeNero & Klein 2007).


LinkMethod = Literal[
    "intersection", "union", "grow", "grow-diag", "grow-diag-final", "grow-diag-final-and"
]
PosteriorMethod = Literal["product", "soft-union"]


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
            side.demand_inside(*np.array(shape)[:, None])
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
    _check_method(method, get_args(LinkMethod))
    there, back = FlatLinks.of(forward), FlatLinks.of(backward)
    if len(there) != len(back):
        raise DataError(
            f"forward links of {len(there)} pairs, backward links of {len(back)}",
            "give the links of the same pairs in the same order; none is an empty list",
        )
    keys = _LinkKeys(there, back)
    union, side = keys.union()
    if method == "intersection":
        union = union[side == BOTH]
    elif method != "union":
        pair, target, source = keys.split(union)
        union = union[_grow(len(there), pair, target, source, side, method)]
    return keys.links(union)


def symmetrise_posteriors(
    p: ArrayLike, q: ArrayLike, method: PosteriorMethod = "product", threshold: float = 0.5
) -> list[Link]:
    """The links of one pair that both directions together find likely, in the order of (i, j).

    ``p, q``       (source words, target words): probabilities of the links in either direction
    ``threshold``  δ: above which geometric ("product") or arithmetic ("soft-union") mean of the two

    >>> p, q = [[0.9, 0.1], [0.1, 0.8]], [[0.8, 0.0], [0.0, 0.1]]
    >>> symmetrise_posteriors(p, q), symmetrise_posteriors(p, q, "soft-union", 0.4)
    ([(0, 0)], [(0, 0), (1, 1)])
    """
    _check_method(method, get_args(PosteriorMethod))
    ours, theirs = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    if ours.ndim != 2 or ours.shape != theirs.shape:
        raise DataError(
            f"posteriors of shapes {ours.shape} and {theirs.shape}",
            "both are (source words, target words): transpose those of the reverse direction",
        )
    if not 0.0 <= threshold <= 1.0:
        raise DataError(f"the threshold is {brief(threshold)}", "give a number from 0 to 1")
    likely = (
        ours * theirs > threshold**2 if method == "product" else ours + theirs > 2.0 * threshold
    )
    i, j = np.nonzero(likely)
    return list(zip(i.tolist(), j.tolist(), strict=True))


def _check_method(method: str, known: tuple[str, ...]) -> None:
    if method not in known:
        raise DataError(f"there is no method {brief(method)}", f"choose from {', '.join(known)}")


def _grow(
    n_pairs: int,
    pair: IntArray,
    target: IntArray,
    source: IntArray,
    side: IntArray,
    method: str,
) -> BoolArray:
    """Which links of the union the method keeps."""
    indptr = np.searchsorted(pair, np.arange(n_pairs + 1))
    n_steps = 4 if method == "grow" else 8
    # zeros that numpy does not touch cost nothing, however far out a link lies
    of_source, of_target = (np.zeros(x.max(initial=-1) + 1, np.bool_) for x in (source, target))
    near = np.empty((np.diff(indptr).max(initial=0), 8), np.int64)
    final, both_free = "-final" in method, method.endswith("-and")
    return grow_links(
        indptr, target, source, side, n_steps, final, both_free, near, of_source, of_target
    )


class _LinkKeys:
    """Links of both directions as one number each, in the order of (pair, target, source)."""

    def __init__(self, forward: FlatLinks, backward: FlatLinks) -> None:
        self._both = forward, backward
        self._n_pairs = len(forward)
        self._width, self._height = (
            1 + max(int(getattr(x, name).max(initial=0)) for x in self._both)
            for name in ("source", "target")
        )
        if self._n_pairs * self._width * self._height >= 2**61:
            raise DataError(
                f"links as far out as {self._width - 1}-{self._height - 1} "
                f"in a corpus of {self._n_pairs} pairs",
                "no sentence is that long: check the links",
            )

    def union(self) -> tuple[IntArray, IntArray]:
        """The key of every link of either direction, and which have it."""
        keys = [
            ((x.pair * self._height + x.target) * self._width + x.source) * 2 + bit
            for bit, x in enumerate(self._both)
        ]
        marked = np.sort(np.concatenate(keys))
        marked = marked[np.diff(marked, prepend=-1) > 0]
        key, bit = marked >> 1, marked & 1
        first = np.flatnonzero(np.diff(key, prepend=-1))
        return key[first], np.add.reduceat(bit + 1, first) if len(first) else key

    def split(self, key: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Pair, target and source position."""
        rest, source = np.divmod(key, self._width)
        pair, target = np.divmod(rest, self._height)
        return pair, target, source

    def links(self, key: IntArray) -> FlatLinks:
        """The links in the order of (pair, source, target)."""
        pair, target, source = self.split(key)
        rest, target = np.divmod(
            np.sort((pair * self._width + source) * self._height + target), self._height
        )
        indptr = np.searchsorted(pair, np.arange(self._n_pairs + 1))
        return FlatLinks(indptr, (rest % self._width).astype(np.int32), target.astype(np.int32))
