"""Trees of other shapes that say the same: chains as one label, and two children at most.

What is done here can be undone. So labels must not have in them what marks the change: the joint of
chains, @ at the start of a label, ^; tags of words may have the latter two (^ at their start only,
if they are to tell what is above them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from softcount.corpus.trees import Tree, folded
from softcount.errors import DataError, shown

JOINT = "+"
MADE, ABOVE, BESIDE = "@", "^", "/"
"""A label is NP; below S, NP^S; and @NP^S/DT/JJ is what is left of it beside DT and JJ."""


# chains
def collapsed_unaries(tree: Tree, joint: str = JOINT, *, preterminals: bool = False) -> Tree:
    """Each chain of constituents that are alone in the one above becomes one of joint label.

    ``preterminals``  whether tags of words are parts of chains; if not, a chain ends above the tag

    `expanded_unaries` is the inverse.

    >>> from softcount.corpus.trees import tree
    >>> print(collapsed_unaries(tree("(S (VP (VB wait) (NP (QP (CD 5)))))")))
    (S+VP (VB wait) (NP+QP (CD 5)))
    """
    _demand_joint(joint)

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        if joint in node.label:
            raise DataError(
                f"the label {shown(node.label)} has the joint {shown(joint)} in it",
                "choose another joint",
            )
        only = parts[0]
        if len(parts) == 1 and isinstance(only, Tree) and (preterminals or not only.is_preterminal):
            return Tree(node.label + joint + only.label, only.children)
        return Tree(node.label, tuple(parts))

    return folded(tree, make)


def expanded_unaries(tree: Tree, joint: str = JOINT) -> Tree:
    """A constituent for each part of a joint label: the inverse of `collapsed_unaries`.

    >>> from softcount.corpus.trees import tree
    >>> print(expanded_unaries(tree("(S+VP (VB wait))")))
    (S (VP (VB wait)))
    """
    _demand_joint(joint)

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        labels = node.label.split(joint)
        if not all(labels):
            raise DataError(
                f"the label {shown(node.label)} has nothing on one side of {shown(joint)}",
                "give the joint that chains were collapsed with",
            )
        expanded = Tree(labels.pop(), tuple(parts))
        for label in reversed(labels):
            expanded = Tree(label, (expanded,))
        return expanded

    return folded(tree, make)


def _demand_joint(joint: str) -> None:
    if not isinstance(joint, str) or not joint:
        raise DataError(f"the joint is {shown(joint)}", 'give a text, as "+"')


# two children at most
def right_binarised(
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

    `unbinarised` is the inverse. Labels of words that have no tags are the words.

    >>> from softcount.corpus.trees import tree
    >>> print(right_binarised(tree("(S (NP (DT the) (JJ old) (NN dog)) (VB barks))"), 1, 2))
    (S (NP^S (DT the) (@NP^S/DT (JJ old) (NN dog))) (VB barks))
    >>> print(right_binarised(tree("(PP (IN of) (NP (NN ice)))"), 1, 2, tags=True))
    (PP (IN^PP of) (NP^PP (NN^NP ice)))
    """
    return _binarised(tree, horizontal, vertical, tags, _to_the_right)


def left_binarised(
    tree: Tree, horizontal: int | None = None, vertical: int = 1, *, tags: bool = False
) -> Tree:
    """Of more than two children the last one, and a constituent that was made for the others.

    As `right_binarised`, but that labels tell of children behind.

    >>> from softcount.corpus.trees import tree
    >>> print(left_binarised(tree("(NP (DT a) (JJ b) (JJ c) (NN d))")))
    (NP (@NP/NN (@NP/JJ/NN (DT a) (JJ b)) (JJ c)) (NN d))
    """
    return _binarised(tree, horizontal, vertical, tags, _to_the_left)


def unbinarised(tree: Tree, *, tags: bool = False) -> Tree:
    """Without the constituents that binarising made, and labels without what is above them.

    ``tags``  as `right_binarised` had it: whether tags of words tell what is above them

    >>> from softcount.corpus.trees import tree
    >>> print(unbinarised(tree("(S (NP^S (DT the) (@NP^S/DT (JJ old) (NN dog))) (VB barks))")))
    (S (NP (DT the) (JJ old) (NN dog)) (VB barks))
    """
    if _is_made(tree):
        raise DataError(
            f"the whole tree is a part of another one, {shown(tree.label)}", "give whole trees"
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


Binarise = Callable[[str, Sequence[Tree | str], Sequence[str], int], Tree]
"""A label, children, their labels, and how many of these labels tell, as one tree."""


def _binarised(
    tree: Tree, horizontal: int | None, vertical: int, tags: bool, binarise: Binarise
) -> Tree:
    if horizontal is not None and not (_is_whole(horizontal) and horizontal >= 0):
        raise DataError(f"horizontal is {shown(horizontal)}", "give 0, 1, … or None for all")
    if not (_is_whole(vertical) and vertical >= 1):
        raise DataError(f"vertical is {shown(vertical)}", "give 1, 2, …")
    labels = _with_those_above(tree, vertical, tags)

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        label = labels.pop()  # trees are folded from the last constituent on
        if len(parts) <= 2:
            return Tree(label, tuple(parts))
        names = [child if isinstance(child, str) else child.label for child in node.children]
        return binarise(label, parts, names, len(parts) if horizontal is None else horizontal)

    return folded(tree, make)


def _to_the_right(label: str, parts: Sequence[Tree | str], names: Sequence[str], h: int) -> Tree:
    rest = parts[-1]
    for k in range(len(parts) - 2, 0, -1):
        rest = Tree(_made(label, names[max(0, k - h) : k]), (parts[k], rest))
    return Tree(label, (parts[0], rest))


def _to_the_left(label: str, parts: Sequence[Tree | str], names: Sequence[str], h: int) -> Tree:
    rest = parts[0]
    for k in range(1, len(parts) - 1):
        rest = Tree(_made(label, names[k + 1 : k + 1 + h]), (rest, parts[k]))
    return Tree(label, (rest, parts[-1]))


def _made(label: str, beside: Sequence[str]) -> str:
    return BESIDE.join([MADE + label, *beside])


def _is_made(node: Tree) -> bool:
    return node.label.startswith(MADE) and not node.is_preterminal


def plain_label(label: str, *, is_tag: bool, tags: bool = False) -> str | None:
    """A label without those of the constituents above; None if binarising made it.

    ``is_tag``  whether it is the tag of a word
    ``tags``    as `right_binarised` had it

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
                f"the label {shown(node.label)} looks as if it was binarised already",
                f"use labels without {ABOVE}, and without {MADE} at the start",
            )
        labels.append(ABOVE.join([node.label, *above]))
        below = (node.label, *above)[: vertical - 1]
        ahead += [(child, below) for child in reversed(node.children) if isinstance(child, Tree)]
    return labels


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
