"""The k best derivations of a forest, the best first, and exactly these.

A vertex is a symbol over some words, an edge a rule that it may begin with. If of every vertex the
chance of its best derivation is known, an edge loses

    log p(rule) + Σ log best(children) − log best(vertex) ≤ 0

against the best, and a derivation has the chance of the best one times what its edges lose: a
search by the best first with an exact heuristic (Hart, Nilsson & Raphael 1968; of parses, Pauls &
Klein 2009, "K-best A* parsing"). What was begun is best gone on with by the best edges, which lose
nothing; at each of them the next edge is put off. So a derivation costs no more than its edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count, islice
from typing import NamedTuple, Protocol

import numpy as np

from softcount.types import Array

Vertex = tuple[int, int, int]
"""A symbol, its first word, and the first word behind it."""
NONE = -1
"""In place of a child that there is not."""


class Edges(NamedTuple):
    """Edges of one vertex, the best first.

    ``scores``           what each loses, 0 or less
    ``codes``            what derivations call it
    ``lefts``, ``rights``  the symbols of its children, `NONE` if there are less
    ``middles``          where the right child begins
    """

    scores: Array
    codes: Array
    lefts: Array
    rights: Array
    middles: Array

    def children(self, number: int, vertex: Vertex) -> tuple[Vertex, ...]:
        """The children that an edge of the vertex leads to."""
        left, right = int(self.lefts[number]), int(self.rights[number])
        _, i, j = vertex
        if right == NONE:
            return () if left == NONE else ((left, i, j),)
        middle = int(self.middles[number])
        return (left, i, middle), (right, middle, j)


class Forest(Protocol):
    """All derivations of one sentence."""

    n_words: int

    def roots(self) -> Edges:
        """The symbols over all words, as ``lefts``; scores are log p of their best derivations."""

    def edges(self, vertex: Vertex) -> Edges:
        """What a vertex may begin with."""


class Derivation(NamedTuple):
    """log p, and the codes of edges in preorder, the left child first."""

    log_p: float
    codes: Array


class _Link(NamedTuple):
    """A list that others may share: its head, and the rest."""

    head: int
    rest: _Link | None


class _Ahead(NamedTuple):
    """Vertices that are still to be gone on from, the leftmost first."""

    vertex: Vertex
    rest: _Ahead | None


class _Begun(NamedTuple):
    """A derivation as far as it is known: its edges, the last one first, what is ahead, and the
    number of the edge that the first vertex ahead is to take. ``total`` is without that edge."""

    total: float
    taken: _Link | None
    ahead: _Ahead
    number: int


def derivations(forest: Forest) -> Iterator[Derivation]:
    """All derivations, one after the other, the best first; ties in any order."""
    top: Vertex = (NONE, 0, forest.n_words)
    known = {top: forest.roots()}

    def edges_of(vertex: Vertex) -> Edges:
        if vertex not in known:
            known[vertex] = forest.edges(vertex)
        return known[vertex]

    queue: list[tuple[float, int, _Begun]] = []
    numbers = count()  # no two entries are compared by more

    def put_off(begun: _Begun) -> None:
        scores = edges_of(begun.ahead.vertex).scores
        if begun.number < len(scores):
            total = begun.total + float(scores[begun.number])
            heappush(queue, (-total, next(numbers), begun))

    put_off(_Begun(0.0, None, _Ahead(top, None), 0))
    while queue:
        begun = heappop(queue)[2]
        total, taken, number = begun.total, begun.taken, begun.number
        ahead: _Ahead | None = begun.ahead
        while ahead is not None:
            put_off(_Begun(total, taken, ahead, number + 1))
            edges = edges_of(ahead.vertex)
            total += float(edges.scores[number])
            taken = _Link(int(edges.codes[number]), taken)
            children, ahead = edges.children(number, ahead.vertex), ahead.rest
            for child in reversed(children):
                ahead = _Ahead(child, ahead)
            number = 0
        yield Derivation(total, _codes(taken))


def best_derivations(forest: Forest, k: int) -> list[Derivation]:
    """The k best, or all if there are fewer."""
    return list(islice(derivations(forest), k))


def _codes(taken: _Link | None) -> Array:
    """Codes from the first to the last, but for that of the root."""
    found = []
    while taken is not None:
        found.append(taken.head)
        taken = taken.rest
    return np.array(found[-2::-1], np.int64)


def edges_from(
    scores: Array, codes: Array, lefts: Array, rights: Array, middles: Array, k: int
) -> Edges:
    """The k best of some edges, in order, against the best of them."""
    kept = k_largest(scores, k)
    own = scores[kept]
    return Edges(
        own - own[0] if len(own) else own, codes[kept], lefts[kept], rights[kept], middles[kept]
    )


def k_largest(scores: Array, k: int) -> Array:
    """Places of the k largest numbers that are more than −inf, the largest first.

    >>> k_largest(np.array([-3.0, -np.inf, -1.0, -2.0]), 2)
    array([2, 3])
    """
    some = np.argpartition(-scores, k - 1)[:k] if len(scores) > k else np.arange(len(scores))
    some = some[scores[some] > -np.inf]
    return some[np.lexsort((some, -scores[some]))]
