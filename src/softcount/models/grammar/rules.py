"""Context-free rules with their probabilities, as users know them."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike

from softcount.corpus.trees import Tree
from softcount.errors import DataError, shown
from softcount.types import Array

ROOTS = "%start"
"""In texts, the left side of what is no rule, but says which symbols are roots."""
_UNFIT = re.compile(r"[\\|[\]\s→]|-(?=>)")


@dataclass(frozen=True, slots=True)
class Rule:
    """A symbol and what it may consist of, in which each item is a word or a symbol.

    >>> print(Rule("VP", ("give", "NP"), (True, False)))
    VP -> 'give' NP
    """

    lhs: str
    rhs: tuple[str, ...]
    is_word: tuple[bool, ...]

    def __str__(self) -> str:
        """As a text of rules has it: see `rule_text`."""
        items = zip(self.rhs, self.is_word, strict=True)
        right = (_quoted(item) if word else _plain(item) for item, word in items)
        return f"{_plain(self.lhs)} -> {' '.join(right)}"

    @property
    def is_unary(self) -> bool:
        """Whether it consists of one symbol."""
        return self.is_word == (False,)

    @property
    def is_lexical(self) -> bool:
        """Whether it consists of one word."""
        return self.is_word == (True,)

    @property
    def symbols(self) -> list[str]:
        """The symbols that it consists of."""
        return [item for item, word in zip(self.rhs, self.is_word, strict=True) if not word]


def _quoted(word: str) -> str:
    quote = '"' if "'" in word else "'"
    inside = word.replace("\\", r"\\").replace("\n", r"\n").replace(quote, "\\" + quote)
    return f"{quote}{inside}{quote}"


def _plain(symbol: str) -> str:
    """A symbol, with \\ before what would be read as something else."""
    found = _UNFIT.sub(lambda one: r"\n" if one[0] == "\n" else "\\" + one[0], symbol)
    return "\\" + found if found[:1] in ("#", "'", '"') else found


@dataclass(frozen=True, eq=False, repr=False)
class Rules:
    """Rules by their left sides.

    ``rules``    those of one left side are together
    ``chances``  p(right side | left side)
    ``root``     p(symbol is the root of a tree), of the symbols that may be
    ``counts``   how often rules were used, if somebody counted: `UnknownWords` goes by it
    """

    rules: tuple[Rule, ...]
    chances: Array
    root: Mapping[str, float]
    counts: Array | None = None

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"<Rules: {len(self):,} rules of {len(self.symbols):,} symbols>"

    def __str__(self) -> str:
        pairs = zip(self.rules, self.chances, strict=True)
        lines = [f"{rule} [{chance:.6g}]" for rule, chance in pairs]
        if list(self.root) != list(self.symbols[:1]):  # what is read has the first symbol
            roots = (f"{_plain(symbol)} [{p:.6g}]" for symbol, p in self.root.items() if p > 0.0)
            lines.insert(0, f"{ROOTS} -> {' | '.join(roots)}")
        return "\n".join(lines)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """All left sides, in order."""
        return tuple(dict.fromkeys(rule.lhs for rule in self.rules))

    @cached_property
    def number(self) -> dict[str, int]:
        """The place of each symbol among ``symbols``."""
        return {symbol: a for a, symbol in enumerate(self.symbols)}

    @cached_property
    def indptr(self) -> Array:
        """Symbol a has the rules from ``indptr[a]`` to ``indptr[a + 1]``."""
        return borders([self.number[rule.lhs] for rule in self.rules], len(self.symbols))


def borders(rows: ArrayLike, n: int) -> Array:
    """Where the entries of each of n rows begin, and the end, if entries go by rows.

    >>> borders([0, 0, 2], 3)
    array([0, 2, 2, 3])
    """
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])


def from_counts(counts: Mapping[Rule, float], root: Mapping[str, float]) -> Rules:
    """Rules from how often they and the roots were used: the shares of each left side."""
    by_left: dict[str, list[tuple[Rule, float]]] = defaultdict(list)
    for rule, count in counts.items():
        by_left[rule.lhs].append((rule, count))
    total = math.fsum(root.values())
    sums = {left: math.fsum(n for _, n in some) for left, some in by_left.items()}
    every = [pair for some in by_left.values() for pair in some]
    return Rules(
        tuple(rule for rule, _ in every),
        np.array([n / sums[rule.lhs] for rule, n in every]),
        {symbol: n / total for symbol, n in root.items()},
        np.array([n for _, n in every]),
    )


def scaled(chances: Mapping[Rule, float], root: Mapping[str, float]) -> Rules:
    """Rules from numbers that they are in proportion to, and that count nothing.

    Rules with a symbol that has none are left out.
    """
    kept: Mapping[Rule, float] = chances
    while True:
        lefts = {rule.lhs for rule in kept}
        left = {rule: n for rule, n in kept.items() if lefts.issuperset(rule.symbols)}
        if len(left) == len(kept):
            break
        kept = left
    tops = {symbol: chance for symbol, chance in root.items() if symbol in lefts}
    if not tops:
        raise DataError("no rule of a root is left", "ask for less probable rules as well")
    return replace(from_counts(kept, tops), counts=None)


def from_trees(
    trees: Iterable[Tree | None], weights: Sequence[float] | Array | None = None
) -> Rules:
    """The rules of trees of any shape, and how often they are used there: a treebank grammar.

    ``trees``    None is passed over
    ``weights``  how often each tree counts; those that count 0 times give no rules. Where all count
                 less than once, the one that counts most counts once: weights may sum to one

    >>> from softcount.corpus.trees import tree
    >>> print(from_trees([tree("(S (NP it) (VP rains))"), tree("(S (VP (VB go)))")]))
    S -> NP VP [0.5]
    S -> VP [0.5]
    NP -> 'it' [1]
    VP -> 'rains' [0.5]
    VP -> VB [0.5]
    VB -> 'go' [1]
    """
    counts: dict[Rule, float] = defaultdict(float)
    root: dict[str, float] = defaultdict(float)
    some, most = list(trees), 0.0
    for n, (tree, weight) in enumerate(zip(some, _weights(weights, len(some)), strict=True)):
        if not (math.isfinite(weight) and weight >= 0.0):
            raise DataError(f"tree {n} counts {shown(weight)} times", "weights are 0 or more")
        if tree is None or weight == 0.0:
            continue
        root[tree.label] += weight
        most = max(most, weight)
        for node in tree.nodes():
            counts[rule_of(node)] += weight
    if not root:
        raise DataError("there are no trees to take rules from", "give one at least")
    if most < 1.0:
        counts = {rule: count / most for rule, count in counts.items()}
    return from_counts(counts, root)


def _weights(weights: Sequence[float] | Array | None, n: int) -> Iterable[float]:
    if weights is None:
        return repeat(1.0, n)
    if len(weights) != n:
        raise DataError(f"there are {len(weights)} weights for {n} trees", "give one a tree")
    return [float(weight) for weight in weights]


def rule_of(node: Tree) -> Rule:
    """The rule that a constituent is made by."""
    items = node.children
    return Rule(
        node.label,
        tuple(item if isinstance(item, str) else item.label for item in items),
        tuple(isinstance(item, str) for item in items),
    )
