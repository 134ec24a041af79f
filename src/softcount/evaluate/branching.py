"""Trees that know nothing of a sentence but its length: what a grammar has to beat.

Constituents have the label X and tags the label XX, as what is unknown has in the Penn Treebank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from softcount.corpus.trees import Tree
from softcount.errors import DataError, shown

PHRASE, TAG = "X", "XX"

Split = Callable[[int], int]
"""How many words go to the left, of so many."""


def right_branching(words: Sequence[str]) -> Tree:
    """Every word, then all the rest: the strongest of these in English.

    >>> print(right_branching(["the", "dog", "barks"]))
    (X (XX the) (X (XX dog) (XX barks)))
    """
    return _branching(words, lambda n: 1)


def left_branching(words: Sequence[str]) -> Tree:
    """All but the last word, then the last one.

    >>> print(left_branching(["the", "dog", "barks"]))
    (X (X (XX the) (XX dog)) (XX barks))
    """
    return _branching(words, lambda n: n - 1)


def balanced(words: Sequence[str]) -> Tree:
    """Halves of halves; of an odd number of words, the left half has one more.

    >>> print(balanced(["the", "dog", "barks"]))
    (X (X (XX the) (XX dog)) (XX barks))
    """
    return _branching(words, lambda n: (n + 1) // 2)


def random_tree(words: Sequence[str], rng: np.random.Generator) -> Tree:
    """One of all binary trees, each as probable as any other.

    There are C(n − 1) binary trees of n words, C(m) = (2m)! / (m! (m + 1)!) being Catalan's
    numbers. So k of n words go to the left with probability C(k − 1) C(n − k − 1) / C(n − 1), which
    prefers lopsided splits; equal chances for every split would prefer balanced trees.

    ``rng``  one generator for all sentences: a seed would give the same tree again and again

    >>> rng = np.random.default_rng(2)
    >>> print(random_tree(["the", "dog", "barks"], rng))
    (X (XX the) (X (XX dog) (XX barks)))
    """
    if not isinstance(rng, np.random.Generator):
        raise DataError(
            f"rng is {shown(rng)}",
            "make a generator once, rng = numpy.random.default_rng(seed), and give it every time",
        )
    # C(m) / 4^m, which floats can hold for any m: the factors 4 cancel out
    m = np.arange(1.0, max(1, len(words)))
    shapes = np.concatenate([[1.0], np.cumprod((2 * m - 1) / (2 * m + 2))])

    def split(n: int) -> int:
        chances = np.cumsum(shapes[: n - 1] * shapes[n - 2 :: -1])
        return 1 + int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))

    return _branching(words, split)


def _branching(words: Sequence[str], split: Split) -> Tree:
    """The binary tree of these splits, from the top down and then up again: it may be deep."""
    if isinstance(words, str):
        raise DataError(f"the words are {shown(words)}", "give a list of words")
    if not len(words):
        raise DataError("a sentence without words has no tree", "None stands for a missing tree")
    order, ahead = [], [(0, len(words))]
    while ahead:
        start, end = ahead.pop()
        order.append((start, end))
        if end - start > 1:
            middle = start + split(end - start)
            ahead += [(middle, end), (start, middle)]
    done: list[Tree] = []
    for start, end in reversed(order):
        if end - start == 1:
            done.append(Tree(TAG, (words[start],)))
        else:
            done.append(Tree(PHRASE, (done.pop(), done.pop())))
    return done.pop()
