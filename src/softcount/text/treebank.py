"""Treebanks: reading trees from files, and preprocessing them.

A file either has one tree per line, and a blank line is a missing tree; or its trees extend over
several lines, as in the Penn Treebank (.mrg), and then a tree ends where its brackets close, and
blank lines are ignored. A file is of the first kind if the brackets of every line are balanced, or
those of most lines that begin with one; so a damaged line does not change the kind of the file.
Lines end in \\n; \\r\\n is accepted.

To preprocess a treebank, apply functions from trees to trees, one after the other:

    read_trees(path).changed(remove_traces, remove_functions, remove_punctuation, lowercase)

A tree of which nothing is left becomes None. The three ``remove_`` functions may come in any order.
Use functools.partial for settings, as in partial(add_root, label="S1").
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, overload

from softcount.core.errors import DataError, brief
from softcount.text.lines import MARK, decode_text, open_lines
from softcount.text.sequences import count_noun
from softcount.text.trees import (
    Tree,
    binarise_left,
    binarise_right,
    collapse_unaries,
    expand_unaries,
    fold_tree,
    parse_tree,
    parse_whole,
    tree,
    undo_binarising,
)

__all__ = [
    "PUNCTUATION",
    "TRACE",
    "Change",
    "Trees",
    "add_root",
    "binarise_left",
    "binarise_right",
    "collapse_unaries",
    "compose",
    "expand_unaries",
    "from_pieces",
    "lowercase",
    "read_trees",
    "remove_functions",
    "remove_punctuation",
    "remove_traces",
    "trees",
    "undo_binarising",
]

Change = Callable[[Tree], Tree | None]
TRACE = "-NONE-"
_CATEGORY = re.compile(r"[^-=|]+")
_SOMETHING = re.compile(r"\S")
PUNCTUATION = frozenset({",", ".", ":", "``", "''", "$", "#"}) | {
    f"-{side}{kind}B-" for side in "LR" for kind in "RSC"
}
"""Tags removed as in Klein and Manning (2002, "A generative constituent-context model for improved
grammar induction"): punctuation marks, brackets, and currency signs. The tags of square and curly
brackets, found in later treebanks, are added."""


@dataclass(frozen=True, eq=False, repr=False)
class Trees(Sequence[Tree | None]):
    """Trees, some of which may be missing, and their origin.

    ``items``    the trees; None: missing
    ``origin``   the file that they were read from, if there is one
    ``numbers``  the line on which each tree begins, from 0; None: not read from lines

    >>> some = read_trees(["(S (NP (PRP it)) (VP (VBZ rains)))", "", "(NP (-NONE- *))"])
    >>> some
    <Trees: 2 trees, 1 missing>
    >>> print(some[0], some[1], some.name(2))
    (S (NP (PRP it)) (VP (VBZ rains))) None line 3
    >>> some.changed(remove_traces)
    <Trees: 1 tree, 2 missing>
    """

    items: list[Tree | None]
    origin: str = ""
    numbers: list[int] | None = None

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, n: int) -> Tree | None: ...
    @overload
    def __getitem__(self, n: slice) -> list[Tree | None]: ...
    def __getitem__(self, n: int | slice) -> Tree | list[Tree | None] | None:
        return self.items[n]

    def __repr__(self) -> str:
        missing = self.items.count(None)
        size = count_noun(len(self) - missing, "tree") + (
            f", {missing:,} missing" if missing else ""
        )
        return f"<Trees: {size}{f' from {self.origin}' if self.origin else ''}>"

    def name(self, n: int) -> str:
        """Return the name of a tree for messages: "tree 17", or "wsj.mrg:18" by its first line."""
        if self.numbers is None:
            return f"tree {n}"
        return _place(self.origin, self.numbers[n])

    def changed(self, *changes: Change) -> Trees:
        """Apply these changes to all trees, in order; indices and names stay the same."""
        change = compose(*changes)
        return Trees([change(item) for item in self.items], self.origin, self.numbers)

    def select(self, numbers: Iterable[int]) -> Trees:
        """Select trees, in this order; names stay the same if they are those of lines."""
        chosen = list(numbers)
        lines = None if self.numbers is None else [self.numbers[n] for n in chosen]
        return Trees([self.items[n] for n in chosen], self.origin, lines)

    def words(self) -> list[list[str]]:
        """Return the sentences; that of a missing tree is empty."""
        return [[] if item is None else item.words() for item in self.items]


# reading
def trees(data: Any, *, unlabelled: str | None = None) -> Trees:
    """Make `Trees` from a list of trees, strings in Penn brackets (see `tree`), and None.

    >>> trees(["(X a)", Tree("X", ("b",)), None])
    <Trees: 2 trees, 1 missing>
    """
    if isinstance(data, Trees):
        return data
    if isinstance(data, str | bytes | Tree) or not isinstance(data, Iterable):
        raise DataError(
            f"the trees are {brief(data)}",
            "give a list of them; to read a file, use read_trees",
        )
    items: list[Tree | None] = []
    for n, item in enumerate(data):
        is_blank = item is None or (isinstance(item, str) and not item.strip())
        try:
            if is_blank or isinstance(item, Tree):
                items.append(None if is_blank else item)
            else:
                items.append(tree(item, unlabelled=unlabelled))
        except DataError as error:
            raise DataError(f"tree {n}: {error.message}", error.hint) from None
    return Trees(items)


def read_trees(
    source: str | os.PathLike[str] | Iterable[str | bytes], *, unlabelled: str | None = None
) -> Trees:
    """Read trees from a file (UTF-8, optionally gzipped) or from lines.

    ``source``      the name of a file; or lines of text or bytes, such as an open file
    ``unlabelled``  label for constituents without one; None: these are an error (see `tree`)

    >>> lines = ["( (S (NP (PRP it))", "     (VP (VBZ rains))))", "", "(X (UH oh))"]
    >>> some = read_trees(lines)
    >>> len(some), some.name(1)
    (2, 'line 4')
    """
    if isinstance(source, str | os.PathLike):
        origin = os.fspath(source)
        with open_lines(origin) as file:
            return from_pieces([file.read()], origin, unlabelled=unlabelled)
    raw = []
    for n, line in enumerate(source):
        if not isinstance(line, str | bytes):
            raise DataError(f"line {n + 1} is {brief(line)}", "give lines of text")
        # lone surrogates pass here, and are reported with their position when all is decoded
        encoded = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
        raw.append(encoded if encoded.endswith(b"\n") else encoded + b"\n")
    return from_pieces(raw, "", unlabelled=unlabelled)


def from_pieces(pieces: Iterable[bytes], origin: str, *, unlabelled: str | None = None) -> Trees:
    """Read trees from pieces of UTF-8 text, which may begin with a byte order mark."""
    raw = b"".join(pieces).removeprefix(MARK)
    lines = decode_text(raw, lambda line: _place(origin, line)).removesuffix("\n").split("\n")
    # there is one tree per line if all lines are balanced, or most of them, the others being
    # damaged; lines within a tree may be balanced too, but are indented
    filled = [line for line in lines if line.strip()]
    balanced = [line for line in filled if line.count("(") == line.count(")")]
    n_top = sum(line[0] == "(" for line in balanced)
    one_per_line = len(balanced) == len(filled) or 2 * n_top > len(filled)
    items: list[Tree | None] = []
    numbers: list[int] = []
    if one_per_line:
        for n, line in enumerate(lines):
            where = _Places(origin, [0], n)
            items.append(parse_whole(line, where, unlabelled) if line.strip() else None)
            numbers.append(n)
    else:  # trees end where their brackets close
        text, end = "\n".join(lines), 0
        where = _Places(origin, [0, *accumulate(len(line) + 1 for line in lines)])
        while begin := _SOMETHING.search(text, end):
            item, end = parse_tree(text, begin.start(), where, unlabelled)
            items.append(item)
            numbers.append(where.line(begin.start()))
    if all(item is None for item in items):
        raise DataError(f"no trees in {origin or 'the lines'}", "give at least one")
    return Trees(items, origin, numbers)


def _place(origin: str, line: int) -> str:
    return f"{origin}:{line + 1}" if origin else f"line {line + 1}"


@dataclass(frozen=True)
class _Places:
    """Names of positions in a text for messages, given the positions where its lines start."""

    origin: str
    starts: Sequence[int]
    before: int = 0

    def __call__(self, place: int) -> str:
        line = self.line(place)
        column = place - self.starts[line - self.before] + 1
        return f"{_place(self.origin, line)}, character {column}"

    def line(self, place: int) -> int:
        """Return the line number of a position, from 0."""
        return self.before + bisect_right(self.starts, place) - 1


# changing
def compose(*changes: Change) -> Callable[[Tree | None], Tree | None]:
    """Compose changes, applied in order; None stays None.

    >>> change = compose(remove_traces, remove_functions)
    >>> print(change(tree("(S-1 (NP-SBJ (-NONE- *)) (VP (VB go)))")), change(None))
    (S (VP (VB go))) None
    """

    def change(item: Tree | None) -> Tree | None:
        for apply in changes:
            item = None if item is None else apply(item)
        return item

    return change


def remove_traces(tree: Tree) -> Tree | None:
    """Remove words with the tag -NONE-, and constituents that have no other words.

    >>> print(remove_traces(tree("(S (NP (-NONE- *)) (VP (VB go) (NP (-NONE- *T*-1))))")))
    (S (VP (VB go)))
    """
    return _remove_tags(tree, (TRACE,))


def remove_punctuation(tree: Tree, tags: Collection[str] = PUNCTUATION) -> Tree | None:
    """Remove words with these tags, and constituents that have no other words.

    >>> print(remove_punctuation(tree("(S (PRN (, ,)) (VP (VB go)) (. !))")))
    (S (VP (VB go)))
    """
    return _remove_tags(tree, tags)


def _remove_tags(tree: Tree, tags: Collection[str]) -> Tree | None:
    def make(node: Tree, parts: list[Tree | str | None]) -> Tree | None:
        if node.is_preterminal and node.label in tags:
            return None
        left = tuple(part for part in parts if part is not None)
        return Tree(node.label, left) if left else None

    return fold_tree(tree, make)


def remove_functions(tree: Tree) -> Tree:
    """Truncate labels at the first - = or |: remove functions, indices and alternatives.

    Labels that begin with one of these, such as -LRB- and -NONE-, stay as they are.

    >>> print(remove_functions(tree("(S (NP-SBJ=1-2 (-NONE- *-3)) (ADVP|PRT (RP up)))")))
    (S (NP (-NONE- *-3)) (ADVP (RP up)))
    """

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        category = _CATEGORY.match(node.label)
        return Tree(category[0] if category else node.label, tuple(parts))

    return fold_tree(tree, make)


def lowercase(tree: Tree) -> Tree:
    """Lower-case the words.

    >>> print(lowercase(tree("(NP (DT The) (NN DOG))")))
    (NP (DT the) (NN dog))
    """

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        return Tree(node.label, tuple(p.lower() if isinstance(p, str) else p for p in parts))

    return fold_tree(tree, make)


def add_root(tree: Tree, label: str = "TOP") -> Tree:
    """Add a root with this label above the tree, unless it already has one.

    >>> print(add_root(tree("(S (VB go))")), add_root(tree("(TOP (S (VB go)))")))
    (TOP (S (VB go))) (TOP (S (VB go)))
    """
    return tree if tree.label == label else Tree(label, (tree,))
