"""Links that are known for some pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np

from softcount.corpus.bitext import Bitext
from softcount.errors import DataError, shown
from softcount.types import Array


class Known(NamedTuple):
    """Known links (i, j) of pair n: those from ``indptr[n]`` to ``indptr[n + 1]``, sorted by j.

    A target word that has any comes from one of these source words; of the others nothing is known.
    """

    indptr: Array
    sources: Array
    targets: Array

    def select(self, numbers: Array) -> Known:
        """Those of some pairs."""
        lengths = np.diff(self.indptr)[numbers]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        chosen = np.repeat(self.indptr[numbers] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return Known(indptr, self.sources[chosen], self.targets[chosen])

    def flipped(self) -> Known:
        """With source and target exchanged."""
        pairs = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        order = np.lexsort((self.targets, self.sources, pairs))
        return Known(self.indptr, self.targets[order], self.sources[order])


def known_links(given: Sequence[Any] | Known | None, pairs: Bitext) -> Known | None:
    """Known links, as users give them: for each pair None or (i, j) links.

    >>> from softcount.corpus.bitext import bitext
    >>> pairs = bitext([("the house", "das haus"), ("a", "b")])
    >>> known_links([[(1, 1)], None], pairs)
    Known(indptr=array([0, 1, 1]), sources=array([1], dtype=int32), targets=array([1], dtype=int32))
    """
    if given is None or isinstance(given, Known):
        return given
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise DataError(f"the links are {shown(given)}", "give one list of (i, j) a pair")
    if len(given) != len(pairs):
        raise DataError(
            f"there are links for {len(given)} pairs, and {len(pairs)} pairs",
            "give one list of links a pair; None or an empty one where nothing is known",
        )
    sizes = zip(pairs.source.lengths.tolist(), pairs.target.lengths.tolist(), strict=True)
    each = [
        _checked(links, pairs.name(n), *size)
        for n, (links, size) in enumerate(zip(given, sizes, strict=True))
    ]
    if not any(each):
        return None
    flat = np.array([link for links in each for link in links], np.int32).reshape(-1, 2)
    indptr = np.concatenate([[0], np.cumsum([len(links) for links in each])])
    return Known(indptr.astype(np.int64), flat[:, 0].copy(), flat[:, 1].copy())


def _checked(links: Any, name: str, l: int, m: int) -> list[tuple[int, int]]:
    if links is not None and (not isinstance(links, Iterable) or isinstance(links, str | bytes)):
        raise DataError(f"{name} has the links {shown(links)}", "give a list of (i, j), or None")
    found = set()
    for link in () if links is None else links:
        i, j = _places(link, name)
        if not (0 <= i < l and 0 <= j < m):
            raise DataError(
                f"{name} has the link ({i}, {j}), but {l} source and {m} target words",
                "links are (source place, target place), counted from 0",
            )
        found.add((i, j))
    return sorted(found, key=lambda link: (link[1], link[0]))


def _places(link: Any, name: str) -> tuple[int, int]:
    try:
        i, j = (index(place) for place in link)
    except (TypeError, ValueError):
        raise DataError(f"{name} has the link {shown(link)}", "a link is (i, j)") from None
    return i, j
