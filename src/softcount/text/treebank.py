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

Trees may be on disk (`build_trees`): they are parsed when they are accessed, and everything else is
as usual.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, cast, overload

import numpy as np

from softcount.core.errors import DataError, StoreError, brief
from softcount.core.types import IntArray
from softcount.text.disk import (
    BLOCK,
    DAMAGED,
    CorpusFolder,
    DiskArray,
    OnProgress,
    StoredColumn,
    new_corpus,
    read_in_blocks,
)
from softcount.text.lines import MARK, Name, decode_text, open_lines
from softcount.text.sequences import Sequences, Side, count_noun, sequences
from softcount.text.trees import (
    Tree,
    binarise_left,
    binarise_right,
    collapse_unaries,
    escape_brackets,
    expand_unaries,
    fold_tree,
    parse_tree,
    parse_whole,
    tree,
    undo_binarising,
)
from softcount.text.vocabulary import SideBuilder, Vocabulary, number_lists

__all__ = [
    "PUNCTUATION",
    "TRACE",
    "Change",
    "StoredTrees",
    "Trees",
    "add_root",
    "binarise_left",
    "binarise_right",
    "build_trees",
    "collapse_unaries",
    "compose",
    "expand_unaries",
    "from_pieces",
    "lowercase",
    "open_trees",
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
class StoredTrees(Sequence[Tree | None]):
    """Trees on disk, as text; they are parsed when they are accessed, and not kept.

    ``text``      their bytes, UTF-8, one after the other
    ``indptr``    tree n is ``text[indptr[n]:indptr[n + 1]]``; missing trees have no bytes
    ``tokens``    the indices of all words in the corpus's vocabulary, trees concatenated
    ``begins``    tree n has the words ``tokens[begins[n]:begins[n + 1]]``
    ``changes``   what is applied to trees when they are read, in order
    """

    text: DiskArray
    indptr: IntArray
    tokens: DiskArray
    begins: IntArray
    changes: tuple[Change, ...] = ()

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @overload
    def __getitem__(self, n: int) -> Tree | None: ...
    @overload
    def __getitem__(self, n: slice) -> list[Tree | None]: ...
    def __getitem__(self, n: int | slice) -> Tree | list[Tree | None] | None:
        if isinstance(n, slice):
            return self.read(np.arange(len(self))[n])
        return self.read(np.array([range(len(self))[n]]))[0]

    def __iter__(self) -> Iterator[Tree | None]:
        for first in range(0, len(self), BLOCK):  # few reads of the disk, and few trees in memory
            yield from self[first : first + BLOCK]

    def read(self, numbers: IntArray) -> list[Tree | None]:
        """Read and parse these trees."""
        sizes = np.diff(self.indptr)[numbers]
        ends = np.cumsum(sizes)
        if len(numbers) and (np.diff(numbers) == 1).all():
            text = self.text[self.indptr[numbers[0]] : self.indptr[numbers[-1] + 1]]
        else:
            shifts = self.indptr[numbers] - (ends - sizes)
            text = self.text[np.repeat(shifts, sizes) + np.arange(sizes.sum())]
        raw = text.tobytes()
        change = compose(*self.changes)
        borders = pairwise([0, *ends.tolist()])
        return [
            change(self._parse(raw[begin:end], number)) if end > begin else None
            for (begin, end), number in zip(borders, numbers.tolist(), strict=True)
        ]

    def _parse(self, raw: bytes, number: int) -> Tree:
        try:
            return parse_whole(raw.decode(), lambda place: f"character {place + 1}")
        except (DataError, UnicodeDecodeError) as error:
            name = self.text.corpus.name_item(number, "tree")
            raise StoreError(f"{name} in {self.text.corpus.folder}: {error}", DAMAGED) from error

    @property
    def sentences(self) -> Sequences:
        """The words of all trees, on disk; empty for missing trees."""
        if self.changes:
            raise DataError(
                "these trees are changed when they are read, so their words are not on disk",
                "change the trees before they are written, by build_trees",
            )
        words = self.tokens.corpus.read_names("words")
        return Sequences(Side(words, cast(IntArray, self.tokens), self.begins))


@dataclass(frozen=True, eq=False, repr=False)
class Trees(Sequence[Tree | None]):
    """Trees, some of which may be missing, and their origin.

    ``items``    the trees, a list or `StoredTrees`; None: missing
    ``origin``   the file that they were read from, if there is one
    ``numbers``  the line on which each tree begins, from 0; None: not read from lines. Of a part of
                 a corpus on disk: the number of each tree there
    ``corpus``   the corpus on disk that they are a part of, which names them

    >>> some = read_trees(["(S (NP (PRP it)) (VP (VBZ rains)))", "", "(NP (-NONE- *))"])
    >>> some
    <Trees: 2 trees, 1 missing>
    >>> print(some[0], some[1], some.name(2))
    (S (NP (PRP it)) (VP (VBZ rains))) None line 3
    >>> some.changed(remove_traces)
    <Trees: 1 tree, 2 missing>
    """

    items: Sequence[Tree | None]
    origin: str = ""
    numbers: list[int] | None = None
    corpus: CorpusFolder | None = None

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, n: int) -> Tree | None: ...
    @overload
    def __getitem__(self, n: slice) -> list[Tree | None]: ...
    def __getitem__(self, n: int | slice) -> Tree | Sequence[Tree | None] | None:
        return self.items[n]

    def __iter__(self) -> Iterator[Tree | None]:
        return iter(self.items)

    def __repr__(self) -> str:
        if isinstance(self.items, StoredTrees):
            missing = int(np.count_nonzero(np.diff(self.items.indptr) == 0))
        else:
            missing = self.items.count(None)
        size = count_noun(len(self) - missing, "tree") + (
            f", {missing:,} missing" if missing else ""
        )
        return f"<Trees: {size}{f' from {self.origin}' if self.origin else ''}>"

    def name(self, n: int) -> str:
        """Return the name of a tree for messages: "tree 17", or "wsj.mrg:18" by its first line."""
        number = n if self.numbers is None else self.numbers[n]
        if self.corpus is not None:
            return self.corpus.name_item(number, "tree")
        return f"tree {n}" if self.numbers is None else _place(self.origin, number)

    def changed(self, *changes: Change) -> Trees:
        """Apply these changes to all trees, in order; indices and names stay the same.

        Trees on disk are changed whenever they are read.
        """
        if isinstance(self.items, StoredTrees):
            changed = replace(self.items, changes=(*self.items.changes, *changes))
            return replace(self, items=changed)
        change = compose(*changes)
        return replace(self, items=[change(item) for item in self.items])

    def select(self, numbers: Any) -> Trees:
        """Select trees, in this order; names stay the same if they are those of lines.

        What is on disk is read.
        """
        places = numbers if isinstance(numbers, slice | np.ndarray) else list(numbers)
        chosen = np.arange(len(self))[places]
        lines = chosen if self.numbers is None else np.array(self.numbers, np.int64)[chosen]
        if isinstance(self.items, StoredTrees):
            return Trees(self.items.read(chosen), self.origin, lines.tolist(), self.corpus)
        kept = None if self.numbers is None else lines.tolist()
        return replace(self, items=[self.items[n] for n in chosen.tolist()], numbers=kept)

    def words(self) -> list[list[str]]:
        """Return the sentences; that of a missing tree is empty."""
        return [[] if item is None else item.words() for item in self]

    @property
    def sentences(self) -> Sequences:
        """The sentences as `Sequences`; they are on disk if the trees are."""
        if isinstance(self.items, StoredTrees):
            return self.items.sentences
        return sequences(self.words())


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
    return Trees(_read_items(data, lambda n: f"tree {n}", unlabelled))


def _read_items(data: Iterable[Any], name: Name, unlabelled: str | None) -> list[Tree | None]:
    items: list[Tree | None] = []
    for n, item in enumerate(data):
        is_blank = item is None or (isinstance(item, str) and not item.strip())
        try:
            if is_blank or isinstance(item, Tree):
                items.append(None if is_blank else item)
            else:
                items.append(tree(item, unlabelled=unlabelled))
        except DataError as error:
            raise DataError(f"{name(n)}: {error.message}", error.hint) from None
    return items


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


# Trees on disk

KIND = "trees"


def build_trees(
    data: Any,
    path: str | os.PathLike[str],
    *,
    unlabelled: str | None = None,
    on_progress: OnProgress = lambda trees: None,
) -> Trees:
    """Write trees to a folder, for treebanks larger than memory, and open them.

    They are written as they are in files: ( in a word becomes -LRB-. The vocabulary is in memory,
    and some thousand trees at a time.

    ``data``        an iterable of trees, strings in Penn brackets, and None, as for `trees`, or a
                    mapping from names to such
    ``path``        the folder to create
    ``unlabelled``  label for constituents without one; None: these are an error (see `tree`)

    >>> import tempfile
    >>> bank = build_trees(["(X (Y a) b)", None, "(X b c)"], tempfile.mkdtemp() + "/corpus")
    >>> bank, print(bank[2]), bank.sentences.tokens[:].tolist()
    (X b c)
    (<Trees: 2 trees, 1 missing>, None, [0, 1, 1, 2])
    """
    if isinstance(data, Trees) and data.origin and data.numbers == list(range(len(data))):
        data = {data.origin: data}
    columns = {
        "text": StoredColumn("|u1"),
        "sizes": StoredColumn("<i4"),
        "tokens": StoredColumn("<i4"),
        "lengths": StoredColumn("<i4"),
    }
    with new_corpus(path, KIND, columns, on_progress) as writer:
        builder, is_empty = SideBuilder(Vocabulary(())), True
        for block, name in read_in_blocks(data, writer, "tree"):
            items = _read_items(block, name, unlabelled)
            texts = [_encode(item, name(n)) for n, item in enumerate(items)]
            words = [[] if item is None else item.words() for item in items]
            sound = [[escape_brackets(word) for word in sentence] for sentence in words]
            builder.add(number_lists(sound, name))
            tokens, lengths = builder.take()
            writer.append(
                len(block),
                text=np.frombuffer(b"".join(texts), np.uint8),
                sizes=np.array([len(text) for text in texts]),
                tokens=tokens,
                lengths=lengths,
            )
            is_empty &= not len(tokens)
        if is_empty and writer.n_items:
            raise DataError("there is not a single tree", "look at the data")
        writer.write_names("words", builder.words)
    return open_trees(CorpusFolder.open(path))


def _encode(item: Tree | None, name: str) -> bytes:
    try:
        return b"" if item is None else str(item).encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{name} has half of a surrogate pair: {brief(error.object[error.start])}",
            "repair the text: it cannot be written as UTF-8",
        ) from None


def open_trees(corpus: CorpusFolder) -> Trees:
    """Open trees on disk; their lengths are read, trees when they are accessed."""
    n_words = len(corpus.read_names("words"))
    items = StoredTrees(
        corpus.column("text"),
        corpus.offsets("sizes", "text"),
        corpus.column("tokens", least=0, below=n_words),
        corpus.offsets("lengths", "tokens"),
    )
    return Trees(items, corpus=corpus)


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
