"""Constituency trees, and the brackets of the Penn Treebank that they are written with.

A tree is written as "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))". Between brackets, texts are cut
where ``str.split`` would cut them. What is read is kept as it is, -LRB- and its like too. What is
written is one line: ( and ) in a word or a label become -LRB- and -RRB-, white space in it becomes
_, so that any tree can be read again, and all others come back as they were.

Nothing here calls itself: a tree may be as deep as memory allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar, cast

from softcount.core.errors import DataError, brief

Span = tuple[str, int, int]
"""A label, the number of its first word, and that of the first word behind it."""
Part = TypeVar("Part")
Bracket = TypeVar("Bracket", bound=tuple[str | None, int, int])
Where = Callable[[int], str]
"""What messages call a place of a text."""

BALANCE = "each ( needs its )"
LABELS = "a constituent is (LABEL …), and a label is not empty"
CHILDREN = "children are a tuple of trees and words: one at least, and no empty words"
_TOKEN = re.compile(r"[()]|[^\s()]+")
_UNFIT = re.compile(r"[\s()]")
_ESCAPED = {"(": "-LRB-", ")": "-RRB-"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A constituent: its label and what it consists of, which are constituents and words.

    >>> it = Tree("NP", (Tree("DT", ("the",)), Tree("NN", ("dog",))))
    >>> print(it)
    (NP (DT the) (NN dog))
    >>> it == tree("(NP (DT the) (NN dog))"), it.words()
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
        # by its name: pictures are a layer above this one, and notebooks alone ask for them here
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
        # pickle and copy would go down by themselves, level by level, until they fail
        steps = [s if isinstance(s, str) else (s.label, len(s.children)) for s in self.steps() if s]
        return _put_together, (steps,)

    @property
    def is_preterminal(self) -> bool:
        """Whether this is a tag and its word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def words(self) -> list[str]:
        """The sentence."""
        return [step for step in self.steps() if isinstance(step, str)]

    def nodes(self) -> Iterator[Tree]:
        """All constituents, preterminals included: from the top down, from left to right."""
        ahead = [self]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += [child for child in reversed(node.children) if isinstance(child, Tree)]

    def spans(self) -> list[Span]:
        """Label, start and end of all constituents, preterminals included, in order of `nodes`.

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
        """Once through the tree: constituents where they begin, words, None where one ends."""
        ahead: list[Tree | str | None] = [self]
        while ahead:
            step = ahead.pop()
            yield step
            if isinstance(step, Tree):
                ahead.append(None)
                ahead += reversed(step.children)


def escape_brackets(text: str) -> str:
    """A word or a label as it is written in Penn brackets.

    >>> escape_brackets("("), escape_brackets("dog")
    ('-LRB-', 'dog')
    """
    if not _UNFIT.search(text):
        return text
    return _UNFIT.sub(lambda found: _ESCAPED.get(found[0], "_"), text)


def _put_together(steps: Sequence[str | tuple[str, int]]) -> Tree:
    """A tree from its words and its (label, number of children), top-down."""
    done: list[Tree | str] = []
    for step in reversed(steps):
        if isinstance(step, str):
            done.append(step)
        else:
            label, n = step
            done.append(Tree(label, tuple(done.pop() for _ in range(n))))
    return cast(Tree, done.pop())


def fold_tree(tree: Tree, make: Callable[[Tree, list[Part | str]], Part]) -> Part:
    """What ``make`` makes of a tree, from the bottom up.

    ``make``  takes a constituent, and its words and what was made of its constituents

    >>> depth = lambda node, parts: 1 + max(0 if isinstance(p, str) else p for p in parts)
    >>> fold_tree(tree("(S (NP (PRP it)) (VBZ rains))"), depth)
    3
    """
    done: list[Part] = []
    for node in reversed(list(tree.nodes())):
        # the parts of a node were made just before it, the first one last
        done.append(make(node, [c if isinstance(c, str) else done.pop() for c in node.children]))
    return done.pop()


# reading
def tree(text: str, *, unlabelled: str | None = None) -> Tree:
    """A tree from Penn brackets, on one line or on several.

    ``unlabelled``  the label of constituents that have none, as ((S …) (. .)); None: such a tree is
                    an error. An outermost bracket around one constituent, as in ( (S …)), is never
                    part of the tree

    Places in messages count characters from 1.

    >>> tree("( (S (NP (-LRB- -LRB-) (NN x)) (VP (VBZ is))) )").words()
    ['-LRB-', 'x', 'is']
    """
    if not isinstance(text, str):
        raise DataError(f"a tree is {brief(text)}", 'give a text in Penn brackets: "(S (NP …) …)"')
    return parse_whole(text, lambda place: f"character {place + 1}", unlabelled)


def parse_whole(text: str, where: Where, unlabelled: str | None = None) -> Tree:
    """The tree of a text that is nothing else."""
    found, end = parse_tree(text, 0, where, unlabelled)
    if behind := _TOKEN.search(text, end):
        what = "a ) too many" if behind[0] == ")" else brief(text[behind.start() :], 24)
        raise DataError(f"behind the tree, at {where(behind.start())}, is {what}", BALANCE)
    return found


@dataclass(slots=True)
class _OpenBracket:
    """A constituent whose end has not come."""

    place: int
    label: str = ""
    children: list[Tree | str] = field(default_factory=list)


def parse_tree(
    text: str, start: int, where: Where, unlabelled: str | None = None
) -> tuple[Tree, int]:
    """The tree that begins at ``start`` or behind it, and where it ends."""
    open_ones: list[_OpenBracket] = []
    for found in _TOKEN.finditer(text, start):
        token = found[0]
        if token == "(":
            open_ones.append(_OpenBracket(found.start()))
        elif not open_ones:
            raise DataError(
                f"at {where(found.start())} is {brief(token, 24)}, but no tree", BALANCE
            )
        elif token != ")":
            last = open_ones[-1]
            if last.label or last.children:
                last.children.append(token)
            else:
                last.label = token
        else:
            last = open_ones.pop()
            label, only = last.label or unlabelled, last.children[:1]
            if not only:
                what = f"the constituent {last.label}" if last.label else "the bracket"
                raise DataError(
                    f"{what} at {where(last.place)} is empty",
                    "a constituent has words in it: (NN dog)",
                )
            is_wrapper = not (last.label or open_ones) and len(last.children) == 1
            if is_wrapper and isinstance(only[0], Tree):  # ( (S …) )
                return only[0], found.end()
            if label is None:
                raise DataError(
                    f"the constituent at {where(last.place)} has no label",
                    "give it one, or say which one all such get, as in unlabelled='X'",
                )
            node = Tree(label, tuple(last.children))
            if not open_ones:
                return node, found.end()
            open_ones[-1].children.append(node)
    if not open_ones:
        raise DataError("there is no tree in the text", 'give Penn brackets: "(S (NP …) …)"')
    last, n = open_ones[-1], len(open_ones)
    missing = "one ) is missing" if n == 1 else f"{n} ) are missing"
    raise DataError(
        f"{last.label or 'the bracket'} at {where(last.place)} does not end: {missing}", BALANCE
    )


# building
def find_crossing(spans: Iterable[Bracket], start: int, end: int) -> list[Bracket]:
    """Those of the spans that overlap with start … end while neither is inside the other.

    >>> find_crossing([("A", 0, 2), ("B", 1, 3), ("C", 2, 4)], 1, 3)
    [('A', 0, 2), ('C', 2, 4)]
    """
    return [s for s in spans if s[1] < start < s[2] < end or start < s[1] < end < s[2]]


def from_spans(words: Sequence[str], spans: Iterable[Span], label: str = "TOP") -> Tree:
    """The flattest tree that has these constituents: ``from_spans(t.words(), t.spans())`` is t.

    ``spans``  label, start and end, in any order; of two that cover the same words, the one that
               comes first is above
    ``label``  that of the whole, if no span covers all words

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
    above = [(("", 0, n), top)]  # the spans that hold what comes, with what they have so far
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
                f"the spans {outer} and {span} cross", "constituents of a tree are nested"
            )
        above.append((span, []))
    return cast(Tree, top[0])


# Trees of other shapes that say the same: chains as one label, and two children at most.
#
# What is done here can be undone. So labels must not have in them what marks the change: the joint
# of chains, @ at the start of a label, ^; tags of words may have the latter two (^ at their start
# only, if they are to tell what is above them).


JOINT = "+"
MADE, ABOVE, BESIDE = "@", "^", "/"
"""A label is NP; below S, NP^S; and @NP^S/DT/JJ is what is left of it beside DT and JJ."""


# chains
def collapse_unaries(tree: Tree, joint: str = JOINT, *, preterminals: bool = False) -> Tree:
    """Each chain of constituents that are alone in the one above becomes one of joint label.

    ``preterminals``  whether tags of words are parts of chains; if not, a chain ends above the tag

    `expand_unaries` is the inverse.

    >>> print(collapse_unaries(tree("(S (VP (VB wait) (NP (QP (CD 5)))))")))
    (S+VP (VB wait) (NP+QP (CD 5)))
    """
    _check_joint(joint)

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        if joint in node.label:
            raise DataError(
                f"the label {brief(node.label)} has the joint {brief(joint)} in it",
                "choose another joint",
            )
        only = parts[0]
        if len(parts) == 1 and isinstance(only, Tree) and (preterminals or not only.is_preterminal):
            return Tree(node.label + joint + only.label, only.children)
        return Tree(node.label, tuple(parts))

    return fold_tree(tree, make)


def expand_unaries(tree: Tree, joint: str = JOINT) -> Tree:
    """A constituent for each part of a joint label: the inverse of `collapse_unaries`.

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
        raise DataError(f"the joint is {brief(joint)}", 'give a text, as "+"')


# two children at most
def binarise_right(
    tree: Tree, horizontal: int | None = None, vertical: int = 1, *, tags: bool = False
) -> Tree:
    """Of more than two children the first one, and a constituent that was made for the others.

    ``horizontal``  how many of the children before it the label of one that was made tells, those
                    that are nearest; None: all. A grammar read off such trees draws a child given
                    so many others: a Markov process of this order (Klein and Manning 2003,
                    "Accurate unlexicalized parsing"). None keeps the probabilities of all rules
    ``vertical``    how many labels a label consists of: 1: its own; 2: that of the parent too
                    (NP^S); 3: that of the grandparent too (NP^S^VP)
    ``tags``        whether this goes for tags of words, too (IN^PP); if not, they have their own

    `undo_binarising` is the inverse. Labels of words that have no tags are the words.

    >>> print(binarise_right(tree("(S (NP (DT the) (JJ old) (NN dog)) (VB barks))"), 1, 2))
    (S (NP^S (DT the) (@NP^S/DT (JJ old) (NN dog))) (VB barks))
    >>> print(binarise_right(tree("(PP (IN of) (NP (NN ice)))"), 1, 2, tags=True))
    (PP (IN^PP of) (NP^PP (NN^NP ice)))
    """
    return _binarise(tree, horizontal, vertical, tags, to_the_left=False)


def binarise_left(
    tree: Tree, horizontal: int | None = None, vertical: int = 1, *, tags: bool = False
) -> Tree:
    """Of more than two children the last one, and a constituent that was made for the others.

    As `binarise_right`, but that labels tell of children behind.

    >>> print(binarise_left(tree("(NP (DT a) (JJ b) (JJ c) (NN d))")))
    (NP (@NP/NN (@NP/JJ/NN (DT a) (JJ b)) (JJ c)) (NN d))
    """
    return _binarise(tree, horizontal, vertical, tags, to_the_left=True)


def undo_binarising(tree: Tree, *, tags: bool = False) -> Tree:
    """Without the constituents that binarising made, and labels without what is above them.

    ``tags``  as `binarise_right` had it: whether tags of words tell what is above them

    >>> print(undo_binarising(tree("(S (NP^S (DT the) (@NP^S/DT (JJ old) (NN dog))) (VB barks))")))
    (S (NP (DT the) (JJ old) (NN dog)) (VB barks))
    """
    if _is_made(tree):
        raise DataError(
            f"the whole tree is a part of another one, {brief(tree.label)}", "give whole trees"
        )
    labels: list[str] = []  # of those that are open; empty for those that were made
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
    labels = _with_those_above(tree, vertical, tags)

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        label = labels.pop()  # trees are folded from the last constituent on
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
    """A label without those of the constituents above; None if binarising made it.

    ``is_tag``  whether it is the tag of a word
    ``tags``    as `binarise_right` had it

    >>> plain_label("NP^S", is_tag=False), plain_label("@NP^S/DT", is_tag=False)
    ('NP', None)
    """
    if label.startswith(MADE) and not is_tag:
        return None
    end = -1 if is_tag and not tags else label.find(ABOVE, 1)
    return label if end < 0 else label[:end]


def _with_those_above(tree: Tree, vertical: int, tags: bool) -> list[str]:
    """The labels of all nodes, each with the nearest ones above it."""
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
                f"the label {brief(node.label)} looks as if it was binarised already",
                f"use labels without {ABOVE}, and without {MADE} at the start",
            )
        labels.append(ABOVE.join([node.label, *above]))
        below = (node.label, *above)[: vertical - 1]
        ahead += [(child, below) for child in reversed(node.children) if isinstance(child, Tree)]
    return labels
