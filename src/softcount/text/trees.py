"""Constituency trees, in the bracket notation of the Penn Treebank.

A tree is written as "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))". Between brackets, text is split
as by ``str.split``. Input is kept as it is, including -LRB- and the like. Output is one line: ( and
) in a word or a label become -LRB- and -RRB-, and white space becomes _, so that any tree can be
read again; trees without such characters are read back unchanged.

No function is recursive: a tree may be as deep as memory allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar, cast

from softcount.core.errors import DataError, brief

Span = tuple[str, int, int]
"""A constituent: label, start, and exclusive end."""
Part = TypeVar("Part")
Bracket = TypeVar("Bracket", bound=tuple[str | None, int, int])
Where = Callable[[int], str]
"""Function from a position in a text to its name in messages."""

BALANCE = "each ( needs a matching )"
LABELS = "a constituent is (LABEL …), with a non-empty label"
CHILDREN = "children are a non-empty tuple of trees and non-empty words"
_TOKEN = re.compile(r"[()]|[^\s()]+")
_UNFIT = re.compile(r"[\s()]")
_ESCAPED = {"(": "-LRB-", ")": "-RRB-"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A constituent: its label and its children, which are constituents and words.

    >>> phrase = Tree("NP", (Tree("DT", ("the",)), Tree("NN", ("dog",))))
    >>> print(phrase)
    (NP (DT the) (NN dog))
    >>> phrase == tree("(NP (DT the) (NN dog))"), phrase.words()
    (True, ['the', 'dog'])
    """

    label: str
    children: tuple[Tree | str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not self.label:
            raise DataError(f"a tree has the label {brief(self.label)}", LABELS)
        if not isinstance(self.children, tuple) or not self.children:
            raise DataError(f"{self.label} has the children {brief(self.children)}", CHILDREN)
        for child in self.children:
            if not (child if isinstance(child, str) else isinstance(child, Tree)):
                raise DataError(f"{self.label} has the child {brief(child)}", CHILDREN)

    def __str__(self) -> str:
        parts: list[str] = []
        for step in self.steps():
            if step is None:
                parts.append(")")
            elif isinstance(step, str):
                parts += (" ", escape_brackets(step))
            else:
                parts += (" (", escape_brackets(step.label))
        return "".join(parts)[1:]

    def __repr__(self) -> str:
        return f"tree({str(self)!r})"

    def _repr_svg_(self) -> str:
        # imported by name, because reports are a layer above this one; only notebooks call this
        return str(import_module("softcount.grammar.report").tree_svg(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        pairs: list[tuple[Tree, Tree]] = [(self, other)]
        while pairs:
            one, two = pairs.pop()
            if one is two:
                continue
            if one.label != two.label or len(one.children) != len(two.children):
                return False
            for a, b in zip(one.children, two.children, strict=True):
                if isinstance(a, Tree) and isinstance(b, Tree):
                    pairs.append((a, b))
                elif a != b:
                    return False
        return True

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # pickle and copy would recurse level by level, and fail on deep trees; pickles hold the
        # name of the function, so it must not change
        steps = [s if isinstance(s, str) else (s.label, len(s.children)) for s in self.steps() if s]
        return _put_together, (steps,)

    @property
    def is_preterminal(self) -> bool:
        """Whether this is a preterminal: a tag over a single word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def words(self) -> list[str]:
        """Return the leaves: the words of the sentence."""
        return [step for step in self.steps() if isinstance(step, str)]

    def nodes(self) -> Iterator[Tree]:
        """Yield all constituents, including preterminals, in preorder."""
        ahead = [self]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += [child for child in reversed(node.children) if isinstance(child, Tree)]

    def spans(self) -> list[Span]:
        """Return label, start and end of all constituents, in the order of `nodes`.

        >>> tree("(S (NP (PRP it)) (VP (VBZ rains)))").spans()
        [('S', 0, 2), ('NP', 0, 1), ('PRP', 0, 1), ('VP', 1, 2), ('VBZ', 1, 2)]
        """
        spans: list[Span] = []
        open_ones: list[int] = []
        place = 0
        for step in self.steps():
            if step is None:
                number = open_ones.pop()
                spans[number] = (*spans[number][:2], place)
            elif isinstance(step, str):
                place += 1
            else:
                open_ones.append(len(spans))
                spans.append((step.label, place, place))
        return spans

    def steps(self) -> Iterator[Tree | str | None]:
        """Traverse the tree: yield constituents where they begin, words, None where one ends."""
        ahead: list[Tree | str | None] = [self]
        while ahead:
            step = ahead.pop()
            yield step
            if isinstance(step, Tree):
                ahead.append(None)
                ahead += reversed(step.children)


def escape_brackets(text: str) -> str:
    """Escape a word or a label for output in Penn brackets.

    >>> escape_brackets("("), escape_brackets("dog")
    ('-LRB-', 'dog')
    """
    if not _UNFIT.search(text):
        return text
    return _UNFIT.sub(lambda found: _ESCAPED.get(found[0], "_"), text)


def _put_together(steps: Sequence[str | tuple[str, int]]) -> Tree:
    """Rebuild a tree from its words and its (label, number of children), in preorder."""
    done: list[Tree | str] = []
    for step in reversed(steps):
        if isinstance(step, str):
            done.append(step)
        else:
            label, n = step
            done.append(Tree(label, tuple(done.pop() for _ in range(n))))
    return cast(Tree, done.pop())


def fold_tree(tree: Tree, make: Callable[[Tree, list[Part | str]], Part]) -> Part:
    """Fold a tree from the bottom up.

    ``make``  function of a constituent and of its children: words, and results for constituents

    >>> depth = lambda node, parts: 1 + max(0 if isinstance(p, str) else p for p in parts)
    >>> fold_tree(tree("(S (NP (PRP it)) (VBZ rains))"), depth)
    3
    """
    done: list[Part] = []
    for node in reversed(list(tree.nodes())):
        # the results for a node's children are on top of the stack, the first child uppermost
        done.append(make(node, [c if isinstance(c, str) else done.pop() for c in node.children]))
    return done.pop()


# reading
def tree(text: str, *, unlabelled: str | None = None) -> Tree:
    """Parse a tree in Penn brackets, on one line or several.

    ``unlabelled``  label for constituents without one, as in ((S …) (. .)); None: these are an
                    error. An outermost unlabelled bracket around one constituent, as in ( (S …)),
                    is never part of the tree

    Positions in messages count characters from 1.

    >>> tree("( (S (NP (-LRB- -LRB-) (NN x)) (VP (VBZ is))) )").words()
    ['-LRB-', 'x', 'is']
    """
    if not isinstance(text, str):
        raise DataError(
            f"a tree is {brief(text)}", 'give a string in Penn brackets: "(S (NP …) …)"'
        )
    return parse_whole(text, lambda place: f"character {place + 1}", unlabelled)


def parse_whole(text: str, where: Where, unlabelled: str | None = None) -> Tree:
    """Parse a text that consists of exactly one tree."""
    parsed, end = parse_tree(text, 0, where, unlabelled)
    if extra := _TOKEN.search(text, end):
        what = "an unmatched )" if extra[0] == ")" else brief(text[extra.start() :], 24)
        raise DataError(f"after the tree, at {where(extra.start())}, is {what}", BALANCE)
    return parsed


@dataclass(slots=True)
class _OpenBracket:
    """A constituent that has not been closed yet."""

    place: int
    label: str = ""
    children: list[Tree | str] = field(default_factory=list)


def parse_tree(
    text: str, start: int, where: Where, unlabelled: str | None = None
) -> tuple[Tree, int]:
    """Parse the first tree at or after ``start``; return it and the position of its end."""
    stack: list[_OpenBracket] = []
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token == "(":
            stack.append(_OpenBracket(match.start()))
        elif not stack:
            raise DataError(
                f"at {where(match.start())} is {brief(token, 24)}, but no tree", BALANCE
            )
        elif token != ")":
            last = stack[-1]
            if last.label or last.children:
                last.children.append(token)
            else:
                last.label = token
        else:
            last = stack.pop()
            label, only = last.label or unlabelled, last.children[:1]
            if not only:
                what = f"the constituent {last.label}" if last.label else "the bracket"
                raise DataError(
                    f"{what} at {where(last.place)} is empty",
                    "a constituent has words in it: (NN dog)",
                )
            is_wrapper = not (last.label or stack) and len(last.children) == 1
            if is_wrapper and isinstance(only[0], Tree):  # ( (S …) )
                return only[0], match.end()
            if label is None:
                raise DataError(
                    f"the constituent at {where(last.place)} has no label",
                    "give it one, or a label for all such constituents, as in unlabelled='X'",
                )
            node = Tree(label, tuple(last.children))
            if not stack:
                return node, match.end()
            stack[-1].children.append(node)
    if not stack:
        raise DataError("there is no tree in the text", 'give Penn brackets: "(S (NP …) …)"')
    last, n = stack[-1], len(stack)
    missing = "one ) is missing" if n == 1 else f"{n} ) are missing"
    raise DataError(
        f"{last.label or 'the bracket'} at {where(last.place)} is not closed: {missing}", BALANCE
    )


# building
def find_crossing(spans: Iterable[Bracket], start: int, end: int) -> list[Bracket]:
    """Return the spans that cross start … end: they overlap, and neither contains the other.

    >>> find_crossing([("A", 0, 2), ("B", 1, 3), ("C", 2, 4)], 1, 3)
    [('A', 0, 2), ('C', 2, 4)]
    """
    return [s for s in spans if s[1] < start < s[2] < end or start < s[1] < end < s[2]]


def from_spans(words: Sequence[str], spans: Iterable[Span], label: str = "TOP") -> Tree:
    """Build the flattest tree with these constituents; inverse of ``t.words(), t.spans()``.

    ``spans``  label, start and end, in any order; of two that cover the same words, the one that
               comes first is above
    ``label``  label of the root, if no span covers all words

    >>> print(from_spans("the dog barks".split(), [("NP", 0, 2), ("VB", 2, 3)]))
    (TOP (NP the dog) (VB barks))
    """
    n = len(words)
    given = sorted(spans, key=lambda span: (span[1], -span[2]))
    for span in given:
        if not 0 <= span[1] < span[2] <= n:
            raise DataError(
                f"the span {brief(span)} is not in a sentence of {n} words",
                "give (label, start, end) with 0 ≤ start < end ≤ number of words",
            )
    if not given or given[0][1:] != (0, n):
        given.insert(0, (label, 0, n))
    top: list[Tree | str] = []
    above = [(("", 0, n), top)]  # the open spans, each with its children so far
    place = 0
    for span in [*given, ("", n, n)]:
        while True:
            outer, children = above[-1]
            stop = min(span[1], outer[2])
            children += words[place:stop]
            place = stop
            if place < outer[2] or len(above) == 1:
                break
            above.pop()
            above[-1][1].append(Tree(outer[0], tuple(children)))
        if span[2] > outer[2]:
            raise DataError(
                f"the spans {outer} and {span} cross", "constituents of a tree must be nested"
            )
        above.append((span, []))
    return cast(Tree, top[0])


# Invertible transformations of trees: collapsing unary chains, and binarising.
#
# To be invertible, labels must not contain the marks of a transformation: the joint of chains, @ at
# the start of a label, ^. Tags of words may contain the latter two (^ only at the start, if tags
# are annotated too).


JOINT = "+"
MADE, ABOVE, BESIDE = "@", "^", "/"
"""A label is NP; below S, NP^S; and @NP^S/DT/JJ is the rest of it next to DT and JJ."""


# unary chains
def collapse_unaries(tree: Tree, joint: str = JOINT, *, preterminals: bool = False) -> Tree:
    """Collapse each unary chain into one constituent with a joint label.

    ``preterminals``  whether chains include preterminals; if not, a chain ends above the tag

    `expand_unaries` is the inverse.

    >>> print(collapse_unaries(tree("(S (VP (VB wait) (NP (QP (CD 5)))))")))
    (S+VP (VB wait) (NP+QP (CD 5)))
    """
    _check_joint(joint)

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        if joint in node.label:
            raise DataError(
                f"the label {brief(node.label)} contains the joint {brief(joint)}",
                "choose another joint",
            )
        only = parts[0]
        if len(parts) == 1 and isinstance(only, Tree) and (preterminals or not only.is_preterminal):
            return Tree(node.label + joint + only.label, only.children)
        return Tree(node.label, tuple(parts))

    return fold_tree(tree, make)


def expand_unaries(tree: Tree, joint: str = JOINT) -> Tree:
    """Expand each joint label into a chain of constituents: the inverse of `collapse_unaries`.

    >>> print(expand_unaries(tree("(S+VP (VB wait))")))
    (S (VP (VB wait)))
    """
    _check_joint(joint)

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        labels = node.label.split(joint)
        if not all(labels):
            raise DataError(
                f"the label {brief(node.label)} has nothing on one side of {brief(joint)}",
                "give the joint that chains were collapsed with",
            )
        expanded = Tree(labels.pop(), tuple(parts))
        for label in reversed(labels):
            expanded = Tree(label, (expanded,))
        return expanded

    return fold_tree(tree, make)


def _check_joint(joint: str) -> None:
    if not isinstance(joint, str) or not joint:
        raise DataError(f"the joint is {brief(joint)}", 'give a non-empty string, such as "+"')


# binarising
def binarise_right(
    tree: Tree, horizontal: int | None = None, vertical: int = 1, *, tags: bool = False
) -> Tree:
    """Binarise to the right: the first child, and a new constituent for the other children.

    ``horizontal``  number of left siblings, the nearest ones, in the label of a new constituent;
                    None: all. A grammar read off such trees generates a child given that many
                    siblings: a Markov process of this order (Klein and Manning 2003, "Accurate
                    unlexicalized parsing"). None keeps the probabilities of all rules
    ``vertical``    number of labels in a label: 1: its own; 2: also the parent's (NP^S); 3: also
                    the grandparent's (NP^S^VP)
    ``tags``        whether tags of words are annotated too (IN^PP)

    `undo_binarising` is the inverse. A word without a tag is its own label.

    >>> print(binarise_right(tree("(S (NP (DT the) (JJ old) (NN dog)) (VB barks))"), 1, 2))
    (S (NP^S (DT the) (@NP^S/DT (JJ old) (NN dog))) (VB barks))
    >>> print(binarise_right(tree("(PP (IN of) (NP (NN ice)))"), 1, 2, tags=True))
    (PP (IN^PP of) (NP^PP (NN^NP ice)))
    """
    return _binarise(tree, horizontal, vertical, tags, to_the_left=False)


def binarise_left(
    tree: Tree, horizontal: int | None = None, vertical: int = 1, *, tags: bool = False
) -> Tree:
    """Binarise to the left: the last child, and a new constituent for the other children.

    As `binarise_right`, but with right siblings in the labels of new constituents.

    >>> print(binarise_left(tree("(NP (DT a) (JJ b) (JJ c) (NN d))")))
    (NP (@NP/NN (@NP/JJ/NN (DT a) (JJ b)) (JJ c)) (NN d))
    """
    return _binarise(tree, horizontal, vertical, tags, to_the_left=True)


def undo_binarising(tree: Tree, *, tags: bool = False) -> Tree:
    """Remove the constituents added by binarising, and the annotation of labels.

    ``tags``  as for `binarise_right`: whether tags of words are annotated

    >>> print(undo_binarising(tree("(S (NP^S (DT the) (@NP^S/DT (JJ old) (NN dog))) (VB barks))")))
    (S (NP (DT the) (JJ old) (NN dog)) (VB barks))
    """
    if _is_made(tree):
        raise DataError(f"the root {brief(tree.label)} was made by binarising", "give whole trees")
    labels: list[str] = []  # of open constituents; empty for those added by binarising
    holders: list[list[Tree | str]] = [[]]
    for step in tree.steps():
        if isinstance(step, str):
            holders[-1].append(step)
        elif step is not None:
            labels.append(plain_label(step.label, is_tag=step.is_preterminal, tags=tags) or "")
            if labels[-1]:
                holders.append([])
        elif label := labels.pop():
            children = tuple(holders.pop())
            holders[-1].append(Tree(label, children))
    return cast(Tree, holders[0][0])


def _binarise(
    tree: Tree, horizontal: int | None, vertical: int, tags: bool, to_the_left: bool
) -> Tree:
    def is_whole(number: object, least: int) -> bool:
        return isinstance(number, int) and not isinstance(number, bool) and number >= least

    if horizontal is not None and not is_whole(horizontal, 0):
        raise DataError(f"horizontal is {brief(horizontal)}", "give 0, 1, … or None for all")
    if not is_whole(vertical, 1):
        raise DataError(f"vertical is {brief(vertical)}", "give 1, 2, …")
    labels = _annotate_labels(tree, vertical, tags)

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        label = labels.pop()  # trees are folded in reverse preorder
        if len(parts) <= 2:
            return Tree(label, tuple(parts))
        names = [child if isinstance(child, str) else child.label for child in node.children]
        h = len(parts) if horizontal is None else horizontal
        if to_the_left:
            rest = parts[0]
            for k in range(1, len(parts) - 1):
                made = BESIDE.join([MADE + label, *names[k + 1 : k + 1 + h]])
                rest = Tree(made, (rest, parts[k]))
            return Tree(label, (rest, parts[-1]))
        rest = parts[-1]
        for k in range(len(parts) - 2, 0, -1):
            made = BESIDE.join([MADE + label, *names[max(0, k - h) : k]])
            rest = Tree(made, (parts[k], rest))
        return Tree(label, (parts[0], rest))

    return fold_tree(tree, make)


def _is_made(node: Tree) -> bool:
    return node.label.startswith(MADE) and not node.is_preterminal


def plain_label(label: str, *, is_tag: bool, tags: bool = False) -> str | None:
    """Remove the annotation from a label; None if the constituent was added by binarising.

    ``is_tag``  whether it is the tag of a word
    ``tags``    as for `binarise_right`

    >>> plain_label("NP^S", is_tag=False), plain_label("@NP^S/DT", is_tag=False)
    ('NP', None)
    """
    if label.startswith(MADE) and not is_tag:
        return None
    end = -1 if is_tag and not tags else label.find(ABOVE, 1)
    return label if end < 0 else label[:end]


def _annotate_labels(tree: Tree, vertical: int, tags: bool) -> list[str]:
    """Return the labels of all nodes, each followed by those of its nearest ancestors."""
    labels: list[str] = []
    ahead: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
    while ahead:
        node, above = ahead.pop()
        if node.is_preterminal and not tags:
            labels.append(node.label)
            continue
        marked = node.label[1:] if node.is_preterminal else node.label
        if ABOVE in marked or _is_made(node):
            raise DataError(
                f"the label {brief(node.label)} looks as if the tree were already binarised",
                f"use labels without {ABOVE}, and without {MADE} at the start",
            )
        labels.append(ABOVE.join([node.label, *above]))
        below = (node.label, *above)[: vertical - 1]
        ahead += [(child, below) for child in reversed(node.children) if isinstance(child, Tree)]
    return labels
