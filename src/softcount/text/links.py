"""Links between the words of sentence pairs: as text, as sets, and as flat arrays.

A link (i, j) says that source word i and target word j belong together, counted from 0. In the
Pharaoh format a line holds the links of one pair:

    0-0 1-2 3?1 4-3:0.97

``i-j`` is sure, ``i?j`` only possible (Och & Ney 2003), and ``:p`` is a link's probability. An
empty line is a pair without links.
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

FURTHEST = 999_999_999
FORM = "write links as 0-0 (sure), 0?0 (possible) or 0-0:0.9 (with a probability), 0-based"
_ONE = re.compile(r"(\d{1,9})([-?])(\d{1,9})(?::(\S*))?", re.ASCII)


@dataclass(frozen=True)
class Links:
    """The links of one sentence pair. Iterating over it yields the sure ones, in order.

    ``sure``           links that every annotator would make
    ``possible``       all links that are not wrong: the sure ones and more
    ``probabilities``  of those links that have one

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
    """The links of a line in the Pharaoh format.

    ``shape``  numbers of source and target words: links beyond them are errors
    ``where``  what messages call the line

    >>> parse_links("0-0 1?2 3-1:0.97").probabilities
    {(3, 1): 0.97}
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    probabilities: dict[Link, float] = {}
    for token in line.split():
        form = _ONE.fullmatch(token)
        if form is None:
            raise DataError(f"{where}: {brief(token)} is no link", FORM)
        link = int(form[1]), int(form[3])
        if shape is not None:
            _check_link(link, shape, where)
        (sure if form[2] == "-" else possible).add(link)
        if form[4] is not None:
            try:
                p = float(form[4])
            except ValueError:
                p = -1.0
            if not 0.0 <= p <= 1.0:
                raise DataError(
                    f"{where}: the probability in {brief(token)} is not between 0 and 1", FORM
                )
            if probabilities.setdefault(link, p) != p:
                fault = f"{where}: the link {link[0]}-{link[1]} has two probabilities"
                raise DataError(fault, "give every link once")
    return Links(sure, possible, probabilities)


def format_links(
    links: Links | Iterable[Link], probabilities: Mapping[Link, float] | None = None
) -> str:
    """A line in the Pharaoh format, links in the order of (i, j).

    ``probabilities``  written to six digits behind the links that have one

    >>> format_links([(1, 2), (0, 0)]), format_links([(0, 0)], {(0, 0): 0.25})
    ('0-0 1-2', '0-0:0.25')
    """
    if not isinstance(links, Links):
        if not probabilities:
            return " ".join([f"{i}-{j}" for i, j in sorted(set(links))])
        links = Links(links)
    given = links.probabilities if probabilities is None else probabilities
    return " ".join(
        f"{i}{'-' if (i, j) in links.sure else '?'}{j}"
        + (f":{given[i, j]:.6g}" if (i, j) in given else "")
        for i, j in sorted(links.possible)
    )


def read_links(
    source: str | os.PathLike[str] | Iterable[str], shapes: Sequence[Shape] | None = None
) -> list[Links]:
    """The links of every line of a file (plain or ``.gz``), or of lines.

    ``source``  the name of a file, or lines as from an open file
    ``shapes``  the lengths of every pair: there must be as many, and no link may lie beyond them

    >>> [sorted(links.possible) for links in read_links(["0-0 1?1", ""])]
    [[(0, 0), (1, 1)], []]
    """
    if isinstance(source, str | os.PathLike):
        before, lines = f"{os.fspath(source)}:", _lines(Path(source))
    else:
        before, lines = "line ", iter(source)
    found = []
    for n, line in enumerate(lines):
        shape = shapes[n] if shapes is not None and n < len(shapes) else None
        found.append(parse_links(line, shape, f"{before}{n + 1}"))
    if shapes is not None and len(found) != len(shapes):
        raise DataError(
            f"{len(found)} lines of links for {len(shapes)} pairs",
            "give one line for every pair, an empty one for a pair without links",
        )
    return found


@dataclass(frozen=True, eq=False)
class FlatLinks:
    """The links of many pairs in three arrays: those of pair n are indptr[n] to indptr[n + 1].

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
        """From the links of every pair."""
        if isinstance(alignments, FlatLinks):
            return alignments
        lists = [links if isinstance(links, list) else list(links) for links in alignments]
        indptr = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(links) for links in lists], out=indptr[1:])
        flat = _numbers(lists, 2 * int(indptr[-1])).reshape(-1, 2)
        return cls(indptr, np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1]))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def pair(self) -> IntArray:
        """The number of each link's pair."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def flipped(self, values: FloatArray) -> tuple[FlatLinks, FloatArray]:
        """Source and target exchanged, in the order of (i, j) again; so with a value of each."""
        order = np.lexsort((self.source, self.target, self.pair))
        links = FlatLinks(self.indptr, self.target[order], self.source[order])
        return links, values[order] if len(values) else values

    def lists(self) -> list[list[Link]]:
        """The links of every pair, as they stand."""
        links = list(zip(self.source.tolist(), self.target.tolist(), strict=True))
        ends = self.indptr.tolist()
        return [links[a:b] for a, b in pairwise(ends)]

    def text(self, probabilities: FloatArray | None = None) -> bytes:
        """All pairs in the Pharaoh format, a line each, the links as they stand.

        >>> flat = FlatLinks.of([[(0, 0), (2, 10)], []])
        >>> flat.text(), flat.text(np.array([1.0, 0.5]))
        (b'0-0 2-10\\n\\n', b'0-0:1 2-10:0.5\\n\\n')
        """
        if probabilities is not None:
            columns = (column.tolist() for column in (self.source, self.target, probabilities))
            links = [f"{i}-{j}:{p:.6g}" for i, j, p in zip(*columns, strict=True)]
            lines = (" ".join(links[a:b]) for a, b in pairwise(self.indptr.tolist()))
            return "".join(f"{line}\n" for line in lines).encode()
        given = self.indptr, self.source, self.target
        out = np.empty(_write_pharaoh(*given, np.empty(0, np.uint8)), np.uint8)
        _write_pharaoh(*given, out)
        return out.tobytes()

    def check_inside(
        self,
        source_lengths: Array,
        target_lengths: Array,
        name: Callable[[int], str] = "pair {}".format,
    ) -> None:
        """Raise an error for links beyond the sentences, and for another number of pairs.

        ``name``  what messages call a pair
        """
        if len(source_lengths) != len(self):
            fault = f"links of {len(self)} pairs for {len(source_lengths)} pairs"
            raise DataError(fault, "give the links of every pair; none is an empty list")
        pair = self.pair
        beyond = (self.source >= source_lengths[pair]) | (self.target >= target_lengths[pair])
        for k in np.flatnonzero(beyond)[:1]:
            n = int(pair[k])
            shape = int(source_lengths[n]), int(target_lengths[n])
            _check_link((int(self.source[k]), int(self.target[k])), shape, name(n))


def _numbers(lists: Sequence[Sequence[Link]], count: int) -> Array:
    """All positions in one array, two for each link."""
    try:
        # unlike numpy, array takes no fraction for a whole number
        flat = np.array(array("i", chain.from_iterable(chain.from_iterable(lists))), np.int32)
        good = len(flat) == count and flat.min(initial=0) >= 0 and flat.max(initial=0) <= FURTHEST
    except (TypeError, OverflowError):
        good = False
    if not good:
        pair, link = next((n, x) for n, one in enumerate(lists) for x in one if not _is_link(x))
        fault = f"pair {pair}: {brief(link)} is no link"
        raise DataError(fault, "a link is (source position, target position), two numbers from 0")
    return flat


def _is_link(link: object) -> bool:
    if not isinstance(link, tuple | list | np.ndarray) or len(link) != 2:
        return False
    return all(isinstance(x, int | np.integer) and 0 <= x <= FURTHEST for x in link)


def _check_link(link: Link, shape: Shape, where: str) -> None:
    if not (link[0] < shape[0] and link[1] < shape[1]):
        fault = f"{where}: the link {link[0]}-{link[1]} leaves its pair of "
        raise DataError(
            f"{fault}{shape[0]} source and {shape[1]} target words",
            "links are (source, target) and counted from 0: is the file of other text, "
            "of the other direction, or counted from 1?",
        )


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file; what is not ASCII cannot be a link, and is shown as it is."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for line in file:
                yield line.decode("utf-8", errors="backslashreplace")
    except (OSError, EOFError) as error:
        raise DataError(f"cannot read {path}: {error}", "give a text file of links") from error


_ZERO, _DASH, _SPACE, _NEWLINE = (ord(letter) for letter in "0- \n")


@inline
def _put_number(number: int, out: Array, at: int) -> int:
    """Write the digits of a number, where there is room; gives the place behind them."""
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
    """Write one letter, where there is room; gives the place behind it."""
    if at < len(out):
        out[at] = letter
    return at + 1


@njit
def _write_pharaoh(indptr: Array, source: Array, target: Array, out: Array) -> int:
    """How many bytes the links ``i-j`` take, one line for each pair; writes while there is room."""
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
