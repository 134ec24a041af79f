"""Treebanks: trees from files, and what is done to them before they are learned from.

A file has one tree per line, and then a blank line is a tree that is missing, or its trees go over
several lines, as those of the Penn Treebank (.mrg) do, and then a tree ends where its brackets
close, and blank lines mean nothing. A file is of the first kind if the brackets of each line are
balanced, or those of most lines that begin with one; so a damaged line does not make another file
of it. Lines end at \\n only; \\r\\n does no harm.

Functions from trees to trees, one after the other, make of a treebank what is wanted:

    read_trees(path).changed(remove_traces, remove_functions, remove_punctuation, lowercase)

What they leave nothing of becomes None. The three ``without_`` may come in any order. Settings are
given by functools.partial, as in partial(add_root, label="S1").
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
"""Tags of what is left out as in Klein and Manning (2002, "A generative constituent-context model
for improved grammar induction"): marks and brackets, and signs of currencies too. The tags of
square and curly brackets, which later treebanks have, are added."""


@dataclass(frozen=True, eq=False, repr=False)
class Trees(Sequence[Tree | None]):
    """Trees, some of which may be missing, and where they came from.

    ``items``    the trees; None: there is none
    ``origin``   the file that they were read from, if there is one
    ``numbers``  the line on which each tree begins, from 0; None: they are not from lines

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
        told = count_noun(len(self) - missing, "tree") + (
            f", {missing:,} missing" if missing else ""
        )
        return f"<Trees: {told}{f' from {self.origin}' if self.origin else ''}>"

    def name(self, n: int) -> str:
        """What messages call a tree: "tree 17", or "wsj.mrg:18" by the line it begins on."""
        if self.numbers is None:
            return f"tree {n}"
        return _place(self.origin, self.numbers[n])

    def changed(self, *changes: Change) -> Trees:
        """The trees after these changes, one after the other; places and names stay."""
        change = compose(*changes)
        return Trees([change(item) for item in self.items], self.origin, self.numbers)

    def select(self, numbers: Iterable[int]) -> Trees:
        """These trees, in this order; names stay as they are, if they are those of lines."""
        chosen = list(numbers)
        lines = None if self.numbers is None else [self.numbers[n] for n in chosen]
        return Trees([self.items[n] for n in chosen], self.origin, lines)

    def words(self) -> list[list[str]]:
        """The sentences; a missing tree has an empty one."""
        return [[] if item is None else item.words() for item in self.items]


# reading
def trees(data: Any, *, unlabelled: str | None = None) -> Trees:
    """Trees as Python has them: a list of trees, texts in Penn brackets (see `tree`), and None.

    >>> trees(["(X a)", Tree("X", ("b",)), None])
    <Trees: 2 trees, 1 missing>
    """
    if isinstance(data, Trees):
        return data
    if isinstance(data, str | bytes | Tree) or not isinstance(data, Iterable):
        raise DataError(
            f"the trees are {brief(data)}",
            "give a list of them; for the name of a file, there is read_trees",
        )
    found: list[Tree | None] = []
    for n, item in enumerate(data):
        is_blank = item is None or (isinstance(item, str) and not item.strip())
        try:
            if is_blank or isinstance(item, Tree):
                found.append(None if is_blank else item)
            else:
                found.append(tree(item, unlabelled=unlabelled))
        except DataError as error:
            raise DataError(f"tree {n}: {error.message}", error.hint) from None
    return Trees(found)


def read_trees(
    source: str | os.PathLike[str] | Iterable[str | bytes], *, unlabelled: str | None = None
) -> Trees:
    """Trees from a file (UTF-8, packed by gzip or not), by its name or by its lines.

    ``source``      the name of a file; or lines, of text or of bytes, as an open file gives them
    ``unlabelled``  the label of constituents that have none; None: they are an error (see `tree`)

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
        # half a character gets through here and is found, with its place, when all is decoded
        own = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
        raw.append(own if own.endswith(b"\n") else own + b"\n")
    return from_pieces(raw, "", unlabelled=unlabelled)


def from_pieces(some: Iterable[bytes], origin: str, *, unlabelled: str | None = None) -> Trees:
    """Trees from pieces of UTF-8 text, a byte order mark included."""
    raw = b"".join(some).removeprefix(MARK)
    lines = decode_text(raw, lambda line: _place(origin, line)).removesuffix("\n").split("\n")
    # trees end with their lines if those of all lines may, or those of most, and something is
    # wrong with others; within a tree, lines may be balanced too, but stand further to the right
    filled = [line for line in lines if line.strip()]
    balanced = [line for line in filled if line.count("(") == line.count(")")]
    n_top = sum(line[0] == "(" for line in balanced)
    one_a_line = len(balanced) == len(filled) or 2 * n_top > len(filled)
    found: list[Tree | None] = []
    numbers: list[int] = []
    if one_a_line:
        for n, line in enumerate(lines):
            where = _Places(origin, [0], n)
            found.append(parse_whole(line, where, unlabelled) if line.strip() else None)
            numbers.append(n)
    else:  # trees end where their brackets close
        text, end = "\n".join(lines), 0
        where = _Places(origin, [0, *accumulate(len(line) + 1 for line in lines)])
        while begin := _SOMETHING.search(text, end):
            one, end = parse_tree(text, begin.start(), where, unlabelled)
            found.append(one)
            numbers.append(where.line(begin.start()))
    if all(item is None for item in found):
        raise DataError(f"no trees in {origin or 'the lines'}", "give one at least")
    return Trees(found, origin, numbers)


def _place(origin: str, line: int) -> str:
    return f"{origin}:{line + 1}" if origin else f"line {line + 1}"


@dataclass(frozen=True)
class _Places:
    """What messages call places of a text, by the places where its lines start."""

    origin: str
    starts: Sequence[int]
    before: int = 0

    def __call__(self, place: int) -> str:
        line = self.line(place)
        column = place - self.starts[line - self.before] + 1
        return f"{_place(self.origin, line)}, character {column}"

    def line(self, place: int) -> int:
        """The number of its line, from 0."""
        return self.before + bisect_right(self.starts, place) - 1


# changing
def compose(*changes: Change) -> Callable[[Tree | None], Tree | None]:
    """All these changes, one after the other; nothing stays nothing.

    >>> change = compose(remove_traces, remove_functions)
    >>> print(change(tree("(S-1 (NP-SBJ (-NONE- *)) (VP (VB go)))")), change(None))
    (S (VP (VB go))) None
    """

    def change(item: Tree | None) -> Tree | None:
        for one in changes:
            item = None if item is None else one(item)
        return item

    return change


def remove_traces(tree: Tree) -> Tree | None:
    """Without words of the tag -NONE-, and without constituents that have no other words.

    >>> print(remove_traces(tree("(S (NP (-NONE- *)) (VP (VB go) (NP (-NONE- *T*-1))))")))
    (S (VP (VB go)))
    """
    return _without_tags(tree, (TRACE,))


def remove_punctuation(tree: Tree, tags: Collection[str] = PUNCTUATION) -> Tree | None:
    """Without words of these tags, and without constituents that have no other words.

    >>> print(remove_punctuation(tree("(S (PRN (, ,)) (VP (VB go)) (. !))")))
    (S (VP (VB go)))
    """
    return _without_tags(tree, tags)


def _without_tags(tree: Tree, tags: Collection[str]) -> Tree | None:
    def make(node: Tree, parts: list[Tree | str | None]) -> Tree | None:
        if node.is_preterminal and node.label in tags:
            return None
        left = tuple(part for part in parts if part is not None)
        return Tree(node.label, left) if left else None

    return fold_tree(tree, make)


def remove_functions(tree: Tree) -> Tree:
    """Labels up to the first - = or |: categories, without functions, indices and second choices.

    Labels that begin with one of these, as -LRB- and -NONE- do, stay as they are.

    >>> print(remove_functions(tree("(S (NP-SBJ=1-2 (-NONE- *-3)) (ADVP|PRT (RP up)))")))
    (S (NP (-NONE- *-3)) (ADVP (RP up)))
    """

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        category = _CATEGORY.match(node.label)
        return Tree(category[0] if category else node.label, tuple(parts))

    return fold_tree(tree, make)


def lowercase(tree: Tree) -> Tree:
    """Words in lower case.

    >>> print(lowercase(tree("(NP (DT The) (NN DOG))")))
    (NP (DT the) (NN dog))
    """

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        return Tree(node.label, tuple(p.lower() if isinstance(p, str) else p for p in parts))

    return fold_tree(tree, make)


def add_root(tree: Tree, label: str = "TOP") -> Tree:
    """The tree below a constituent of this label; one that is there already is enough.

    >>> print(add_root(tree("(S (VB go))")), add_root(tree("(TOP (S (VB go)))")))
    (TOP (S (VB go))) (TOP (S (VB go)))
    """
    return tree if tree.label == label else Tree(label, (tree,))
