"""Word alignments of sentence pairs: as text, as sets of links, and as flat arrays.

A link (i, j) aligns source word i with target word j, counted from 0. In the Pharaoh format each
line holds the links of one pair:

    0-0 1-2 3?1 4-3:0.97

``i-j`` is a sure link, ``i?j`` a possible one (Och & Ney 2003), and ``:p`` gives the probability of
a link. An empty line is a pair without links.
"""

from __future__ import annotations

import gzip
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import Array, FloatArray, IntArray
from softcount.kernels.jit import inline, njit

Link = tuple[int, int]
Shape = tuple[int, int]
"""The numbers of source and target words of a pair."""

MAX_POSITION = 999_999_999
FORM = "write links as 0-0 (sure), 0?0 (possible) or 0-0:0.9 (with a probability), 0-based"
_LINK = re.compile(r"(\d{1,9})([-?])(\d{1,9})(?::(\S*))?", re.ASCII)


@dataclass(frozen=True)
class Links:
    """The links of one sentence pair. Iteration yields the sure ones, sorted.

    ``sure``           unambiguous links
    ``possible``       all acceptable links, including the sure ones
    ``probabilities``  {link: probability}, for those links that have one

    >>> gold = Links(sure={(0, 0)}, possible={(1, 2)})
    >>> sorted(gold.possible), list(gold)
    ([(0, 0), (1, 2)], [(0, 0)])
    """

    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()
    probabilities: Mapping[Link, float] = field(default_factory=dict)

    def __init__(
        self,
        sure: Iterable[Link],
        possible: Iterable[Link] = (),
        probabilities: Mapping[Link, float] | None = None,
    ) -> None:
        sure = frozenset(sure)
        object.__setattr__(self, "sure", sure)
        object.__setattr__(self, "possible", sure.union(possible))
        object.__setattr__(self, "probabilities", dict(probabilities or {}))

    def __iter__(self) -> Iterator[Link]:
        return iter(sorted(self.sure))


def parse_links(line: str, shape: Shape | None = None, where: str = "the line") -> Links:
    """Parse a line in the Pharaoh format.

    ``shape``  the numbers of source and target words: raise if a link is outside of them
    ``where``  the name of the line in messages

    >>> parse_links("0-0 1?2 3-1:0.97").probabilities
    {(3, 1): 0.97}
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    probabilities: dict[Link, float] = {}
    for token in line.split():
        match = _LINK.fullmatch(token)
        if match is None:
            raise DataError(f"{where}: {brief(token)} is not a link", FORM)
        link = int(match[1]), int(match[3])
        if shape is not None:
            _check_link(link, shape, where)
        (sure if match[2] == "-" else possible).add(link)
        if match[4] is not None:
            try:
                p = float(match[4])
            except ValueError:
                p = -1.0
            if not 0.0 <= p <= 1.0:
                raise DataError(
                    f"{where}: the probability in {brief(token)} is not between 0 and 1", FORM
                )
            if probabilities.setdefault(link, p) != p:
                fault = f"{where}: the link {link[0]}-{link[1]} has two probabilities"
                raise DataError(fault, "give each link only once")
    return Links(sure, possible, probabilities)


def format_links(
    links: Links | Iterable[Link], probabilities: Mapping[Link, float] | None = None
) -> str:
    """Format links as a line in the Pharaoh format, sorted by (i, j).

    ``probabilities``  {link: probability}, written with six digits; None: those of ``links``

    >>> format_links([(1, 2), (0, 0)]), format_links([(0, 0)], {(0, 0): 0.25})
    ('0-0 1-2', '0-0:0.25')
    """
    if not isinstance(links, Links):
        if not probabilities:
            return " ".join([f"{i}-{j}" for i, j in sorted(set(links))])
        links = Links(links)
    p = links.probabilities if probabilities is None else probabilities
    return " ".join(
        f"{i}{'-' if (i, j) in links.sure else '?'}{j}" + (f":{p[i, j]:.6g}" if (i, j) in p else "")
        for i, j in sorted(links.possible)
    )


def read_links(
    source: str | os.PathLike[str] | Iterable[str], shapes: Sequence[Shape] | None = None
) -> list[Links]:
    """Read links in the Pharaoh format, one pair per line.

    ``source``  the name of a file (plain or ``.gz``), or an iterable of lines
    ``shapes``  the lengths of every pair: raise if there are more or fewer lines, or if a link is
                outside of its pair

    >>> [sorted(links.possible) for links in read_links(["0-0 1?1", ""])]
    [[(0, 0), (1, 1)], []]
    """
    if isinstance(source, str | os.PathLike):
        prefix, lines = f"{os.fspath(source)}:", _read_lines(Path(source))
    else:
        prefix, lines = "line ", iter(source)
    alignments = []
    for n, line in enumerate(lines):
        shape = shapes[n] if shapes is not None and n < len(shapes) else None
        alignments.append(parse_links(line, shape, f"{prefix}{n + 1}"))
    if shapes is not None and len(alignments) != len(shapes):
        raise DataError(
            f"{len(alignments)} lines of links for {len(shapes)} pairs",
            "give one line per pair, an empty one for a pair without links",
        )
    return alignments


@dataclass(frozen=True, eq=False)
class FlatLinks:
    """The links of many pairs in flat arrays; pair n has links indptr[n] to indptr[n + 1].

    >>> flat = FlatLinks.of([[(0, 0), (2, 1)], [], [(1, 1)]])
    >>> flat.indptr.tolist(), flat.source.tolist(), flat.target.tolist()
    ([0, 2, 2, 3], [0, 2, 1], [0, 1, 1])
    >>> flat.lists()
    [[(0, 0), (2, 1)], [], [(1, 1)]]
    """

    indptr: IntArray  # (pairs + 1,)
    source: IntArray  # (links,)
    target: IntArray  # (links,)

    @classmethod
    def of(cls, alignments: FlatLinks | Iterable[Iterable[Link]]) -> FlatLinks:
        """Convert lists of links, one list per pair."""
        if isinstance(alignments, FlatLinks):
            return alignments
        lists = [links if isinstance(links, list) else list(links) for links in alignments]
        indptr = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(links) for links in lists], out=indptr[1:])
        flat = _flatten(lists, 2 * int(indptr[-1])).reshape(-1, 2)
        return cls(indptr, np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1]))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def pair(self) -> IntArray:
        """The index of each link's pair."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def flipped(self, values: FloatArray) -> tuple[FlatLinks, FloatArray]:
        """Exchange source and target, and sort by (i, j) again; reorder ``values`` likewise."""
        order = np.lexsort((self.source, self.target, self.pair))
        links = FlatLinks(self.indptr, self.target[order], self.source[order])
        return links, values[order] if len(values) else values

    def lists(self) -> list[list[Link]]:
        """Return a list of links (i, j) for each pair, in the stored order."""
        links = list(zip(self.source.tolist(), self.target.tolist(), strict=True))
        borders = self.indptr.tolist()
        return [links[a:b] for a, b in pairwise(borders)]

    def text(self, probabilities: FloatArray | None = None) -> bytes:
        """Format all pairs in the Pharaoh format, one line per pair, in the stored order.

        >>> flat = FlatLinks.of([[(0, 0), (2, 10)], []])
        >>> flat.text(), flat.text(np.array([1.0, 0.5]))
        (b'0-0 2-10\\n\\n', b'0-0:1 2-10:0.5\\n\\n')
        """
        if probabilities is not None:
            columns = (column.tolist() for column in (self.source, self.target, probabilities))
            links = [f"{i}-{j}:{p:.6g}" for i, j, p in zip(*columns, strict=True)]
            lines = (" ".join(links[a:b]) for a, b in pairwise(self.indptr.tolist()))
            return "".join(f"{line}\n" for line in lines).encode()
        arrays = self.indptr, self.source, self.target
        # the first call only counts bytes
        out = np.empty(_write_pharaoh(*arrays, np.empty(0, np.uint8)), np.uint8)
        _write_pharaoh(*arrays, out)
        return out.tobytes()

    def check_inside(
        self,
        source_lengths: Array,
        target_lengths: Array,
        name: Callable[[int], str] = "pair {}".format,
    ) -> None:
        """Raise if a link is outside of its sentences, or if the numbers of pairs differ.

        ``name``  the function that names a pair in messages
        """
        if len(source_lengths) != len(self):
            fault = f"links of {len(self)} pairs for {len(source_lengths)} pairs"
            raise DataError(fault, "give one list of links per pair, an empty list if it has none")
        pair = self.pair
        beyond = (self.source >= source_lengths[pair]) | (self.target >= target_lengths[pair])
        for k in np.flatnonzero(beyond)[:1]:
            n = int(pair[k])
            shape = int(source_lengths[n]), int(target_lengths[n])
            _check_link((int(self.source[k]), int(self.target[k])), shape, name(n))


def join_links(parts: Iterable[FlatLinks]) -> FlatLinks:
    """Return the links of some pairs, and after them those of others, as one.

    >>> join_links([FlatLinks.of([[(0, 0)], []]), FlatLinks.of([[(2, 1)]])]).lists()
    [[(0, 0)], [], [(2, 1)]]
    """
    lengths, sources, targets = zip(
        *((np.diff(part.indptr), part.source, part.target) for part in parts), strict=True
    )
    indptr = np.concatenate([np.zeros(1, np.int64), *lengths])
    np.cumsum(indptr, out=indptr)
    return FlatLinks(indptr, np.concatenate(sources), np.concatenate(targets))


def _flatten(lists: Sequence[Sequence[Link]], count: int) -> Array:
    """Concatenate all positions in one array, two per link; raise for invalid links."""
    try:
        # unlike numpy, array("i") raises for fractions instead of rounding them
        flat = np.array(array("i", chain.from_iterable(chain.from_iterable(lists))), np.int32)
        in_range = flat.min(initial=0) >= 0 and flat.max(initial=0) <= MAX_POSITION
        valid = len(flat) == count and in_range
    except (TypeError, OverflowError):
        valid = False
    if not valid:
        pair, link = next((n, x) for n, links in enumerate(lists) for x in links if not _is_link(x))
        fault = f"pair {pair}: {brief(link)} is not a link"
        raise DataError(fault, "give (source position, target position), two integers from 0")
    return flat


def _is_link(link: object) -> bool:
    if not isinstance(link, tuple | list | np.ndarray) or len(link) != 2:
        return False
    return all(isinstance(x, int | np.integer) and 0 <= x <= MAX_POSITION for x in link)


def _check_link(link: Link, shape: Shape, where: str) -> None:
    if not (link[0] < shape[0] and link[1] < shape[1]):
        fault = f"{where}: the link {link[0]}-{link[1]} is outside its pair of "
        raise DataError(
            f"{fault}{shape[0]} source and {shape[1]} target words",
            "links are (source, target), counted from 0: do they belong to another text, "
            "are they reversed, or counted from 1?",
        )


def _read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file; bytes that are not UTF-8 are escaped, to appear in errors."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for line in file:
                yield line.decode("utf-8", errors="backslashreplace")
    except (OSError, EOFError) as error:
        raise DataError(f"cannot read {path}: {error}", "give a text file of links") from error


_ZERO, _DASH, _SPACE, _NEWLINE = (ord(letter) for letter in "0- \n")


@inline
def _put_number(number: int, out: Array, at: int) -> int:
    """Write the digits of a number, if they fit; return the position after them."""
    size, rest = 1, number // 10
    while rest > 0:
        size += 1
        rest //= 10
    if at + size <= len(out):
        rest = number
        for k in range(size):
            out[at + size - 1 - k] = _ZERO + rest % 10
            rest //= 10
    return at + size


@inline
def _put_letter(letter: int, out: Array, at: int) -> int:
    """Write one character, if it fits; return the position after it."""
    if at < len(out):
        out[at] = letter
    return at + 1


@njit
def _write_pharaoh(indptr: Array, source: Array, target: Array, out: Array) -> int:
    """Write links ``i-j``, one line per pair, as far as they fit; return the bytes needed."""
    at = 0
    for n in range(len(indptr) - 1):
        for k in range(indptr[n], indptr[n + 1]):
            if k > indptr[n]:
                at = _put_letter(_SPACE, out, at)
            at = _put_number(source[k], out, at)
            at = _put_letter(_DASH, out, at)
            at = _put_number(target[k], out, at)
        at = _put_letter(_NEWLINE, out, at)
    return at
