"""Context-free grammars by going through all derivations, one after the other, in plain Python.

`Grammar` is a dense one in Chomsky normal form: each derivation is a tree and a product of entries
of tables, and all else is sums over derivations, or the largest of them. `Rules` are any rules
without empty right sides: sums over spans, with chains of unary rules added up until nothing
changes, and counts as derivatives, d log p / d log p(rule).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

Node = tuple[Any, ...]
"""(nonterminal, left, right) or (preterminal, word) of a `Grammar`; (symbol, *children) of `Rules`,
in which a child that is no tuple is a word."""

Event = tuple[str, int, int]
Span = tuple[int, int]
Allowed = Mapping[Span, AbstractSet[int]]
"""The symbols that may be the label of a span; any may where nothing is said."""


class Sentence(NamedTuple):
    """Words, how often the sentence counts, and what its spans may be."""

    words: Sequence[Any]
    weight: float = 1.0
    allowed: Allowed | None = None


@dataclass(frozen=True)
class Grammar:
    """Tables "root", "rules" and "words"; K nonterminals, then T preterminals."""

    tables: Mapping[str, Any]
    K: int
    T: int

    def derivations(
        self, words: Sequence[int], allowed: Allowed | None = None
    ) -> list[tuple[Node, float]]:
        """All trees that are allowed and have p(tree, words) > 0, and this p."""
        n, root = len(words), self.tables["root"]
        over: dict[Span, list[tuple[Node, float]]] = {}
        for width in range(1, n + 1):
            for i in range(n - width + 1):
                span = i, i + width
                some = self._tags(words[i]) if width == 1 else self._joined(over, *span)
                may = (allowed or {}).get(span)
                over[span] = [
                    (tree, p) for tree, p in some if p > 0.0 and (may is None or tree[0] in may)
                ]
        found = ((tree, float(root[0][tree[0]]) * p) for tree, p in over.get((0, n), []))
        return [(tree, p) for tree, p in found if p > 0.0]

    def _tags(self, word: int) -> Iterator[tuple[Node, float]]:
        for t in range(self.T):
            yield (self.K + t, word), float(self.tables["words"][t][word])

    def _joined(
        self, over: Mapping[Span, list[tuple[Node, float]]], i: int, j: int
    ) -> Iterator[tuple[Node, float]]:
        """All trees that two trees side by side make, and p of what is below the top."""
        for k in range(i + 1, j):
            for (left, p), (right, q) in itertools.product(over[i, k], over[k, j]):
                column = left[0] * (self.K + self.T) + right[0]
                for symbol in range(self.K):
                    yield (symbol, left, right), float(self.tables["rules"][symbol][column]) * p * q

    def events(self, tree: Node) -> Iterator[Event]:
        """The entry (table, row, column) of every step of a derivation."""
        yield "root", 0, tree[0]
        for symbol, *children in nodes(tree):
            if symbol >= self.K:
                yield "words", symbol - self.K, children[0]
            else:
                yield "rules", symbol, children[0][0] * (self.K + self.T) + children[1][0]

    def log_p(self, words: Sequence[int], allowed: Allowed | None = None) -> float:
        return log(math.fsum(p for _, p in self.derivations(words, allowed)))

    def best(self, words: Sequence[int], allowed: Allowed | None = None) -> tuple[Node, float]:
        """The best tree, and log of its p."""
        tree, p = max(self.derivations(words, allowed), key=lambda one: one[1])
        return tree, log(p)

    def shares(self, words: Sequence[int], allowed: Allowed | None = None) -> dict[Node, float]:
        """p(tree | words) of each tree."""
        found = self.derivations(words, allowed)
        total = math.fsum(p for _, p in found)
        return {tree: p / total for tree, p in found}

    def posterior_spans(self, words: Sequence[int], allowed: Allowed | None = None) -> Any:
        """p(symbol spans i to j | words), as an array [i, j, symbol]."""
        n = len(words)
        found = np.zeros((n, n + 1, self.K + self.T))
        for tree, share in self.shares(words, allowed).items():
            for symbol, i, j in spans(tree):
                found[i, j, symbol] += share
        return found

    def expected(self, sentences: Iterable[Sentence]) -> dict[str, Any]:
        """Expected counts of all entries of all tables; a sentence that cannot be has none."""
        counts = {name: np.zeros(np.shape(table)) for name, table in self.tables.items()}
        for words, weight, allowed in sentences:
            for tree, share in self.shares(words, allowed).items():
                for table, row, column in self.events(tree):
                    counts[table][row, column] += share * weight
        return counts


def nodes(tree: Node) -> Iterator[Node]:
    """All nodes, top-down."""
    yield tree
    for child in tree[1:]:
        if isinstance(child, tuple):
            yield from nodes(child)


def as_node(symbols: Any, ends: Any, words: Sequence[Any]) -> Node:
    """A tree whose symbols and ends are given in preorder."""
    ahead = zip(symbols.tolist(), ends.tolist(), strict=True)

    def built(begin: int) -> tuple[Node, int]:
        symbol, end = next(ahead)
        if end == begin + 1:
            return (symbol, words[begin]), end
        left, middle = built(begin)
        right, last = built(middle)
        assert last == end
        return (symbol, left, right), end

    return built(0)[0]


def spans(tree: Node, start: int = 0) -> list[tuple[Any, int, int]]:
    """(symbol, start, end) of all nodes, top-down."""
    found, end = [], start
    for child in tree[1:]:
        inside = spans(child, end) if isinstance(child, tuple) else []
        found += inside
        end = inside[0][2] if inside else end + 1
    return [(tree[0], start, end), *found]


def not_crossing(n: int, brackets: Iterable[Span]) -> dict[Span, frozenset[int]]:
    """Nothing is allowed where a span crosses a bracket."""
    crossing = (
        (i, j)
        for i, j in itertools.combinations(range(n + 1), 2)
        for a, b in brackets
        if a < i < b < j or i < a < j < b
    )
    return dict.fromkeys(crossing, frozenset())


def random_tables(rng: Any, K: int, T: int, V: int, concentration: float = 1.0) -> dict[str, Any]:
    """Tables drawn from Dirichlet distributions, the sharper the smaller the concentration."""
    shapes = {"root": (1, K + T), "rules": (K, (K + T) ** 2), "words": (T, V)}
    return {
        name: rng.dirichlet(np.full(columns, concentration), size=rows)
        for name, (rows, columns) in shapes.items()
    }


def log(p: float) -> float:
    return math.log(p) if p > 0.0 else -math.inf


Rule = tuple[Any, tuple[Any, ...], float]


@dataclass(frozen=True)
class Rules:
    """Rules (left side, right side, p) and the symbol to begin with.

    What is the left side of no rule is a word.
    """

    rules: Sequence[Rule]
    start: Any

    def inside(self, words: Sequence[Any]) -> float:
        """p(words): of all derivations, however long their chains of unary rules are."""
        return self._inside(words, [p for _, _, p in self.rules])

    def log_p(self, words: Sequence[Any]) -> float:
        return log(self.inside(words))

    def counts(self, words: Sequence[Any], step: float = 1e-30) -> list[float]:
        """Expected number of uses of each rule, in their order, d log p(words) / d log p(rule).

        By a step into the complex plane, p(rule)·(1 + ih): Im p(words) / (h p(words)) has no
        difference of two near numbers in it, and so is exact to rounding (Squire & Trapp 1998).
        """
        chances = [p for _, _, p in self.rules]
        total = self._inside(words, chances)
        found = []
        for r, p in enumerate(chances):
            moved = self._inside(words, [*chances[:r], p * complex(1.0, step), *chances[r + 1 :]])
            found.append(complex(moved).imag / step / total)
        return found

    def expected(self, sentences: Iterable[Sentence]) -> list[float]:
        """Expected number of uses of each rule in all sentences."""
        every = [
            [sentence.weight * count for count in self.counts(sentence.words)]
            for sentence in sentences
        ]
        return [math.fsum(of_rule) for of_rule in zip(*every, strict=True)]

    def counts_by_differences(self, words: Sequence[Any], step: float = 1e-3) -> list[float]:
        """`counts` by central differences, good to some six digits."""
        chances = [p for _, _, p in self.rules]

        def moved(r: int, by: float) -> float:
            return log(
                self._inside(words, [*chances[:r], chances[r] * math.exp(by), *chances[r + 1 :]])
            )

        return [(moved(r, step) - moved(r, -step)) / (2 * step) for r in range(len(chances))]

    def derivations(
        self, words: Sequence[Any], most_unary: int = 4
    ) -> Iterator[tuple[Node, float]]:
        """All trees with at most so many unary rules one right below the other, and their p."""
        return self._below(self.start, tuple(words), most_unary, most_unary)

    def best(self, words: Sequence[Any], most_unary: int = 4) -> tuple[Node, float]:
        """The best of these trees, and log of its p."""
        tree, p = max(self.derivations(words, most_unary), key=lambda one: one[1])
        return tree, log(p)

    @cached_property
    def symbols(self) -> frozenset[Any]:
        return frozenset(left for left, _, _ in self.rules)

    def _inside(self, words: Sequence[Any], chances: Sequence[Any]) -> Any:
        """p(words) where the rules have these chances."""
        n, symbols = len(words), self.symbols
        of: dict[tuple[Any, int, int], Any] = {}

        def over(right: tuple[Any, ...], i: int, j: int) -> Any:
            """p that symbols one after the other span i to j."""
            first, rest = right[0], right[1:]
            if not rest:
                is_word = first not in symbols
                return float(j - i == 1 and words[i] == first) if is_word else of[first, i, j]
            return sum(over((first,), i, k) * over(rest, k, j) for k in range(i + 1, j))

        for width in range(1, n + 1):
            for i in range(n - width + 1):
                j = i + width
                of.update(((symbol, i, j), 0.0) for symbol in symbols)
                self._settle(chances, of, i, j, over)
        return of[self.start, 0, n] if n else 0.0

    def _settle(
        self,
        chances: Sequence[Any],
        of: dict[tuple[Any, int, int], Any],
        i: int,
        j: int,
        over: Callable[[tuple[Any, ...], int, int], Any],
    ) -> None:
        """Sums of one span, over and over until unary rules change nothing."""
        uses = [
            (chance, left, right, None if self._is_unary(right) else over(right, i, j))
            for chance, (left, right, _) in zip(chances, self.rules, strict=True)
        ]
        for _ in range(100_000):
            new = dict.fromkeys(((symbol, i, j) for symbol in self.symbols), 0.0)
            for chance, left, right, fixed in uses:
                new[left, i, j] += chance * (over(right, i, j) if fixed is None else fixed)
            if all(of[key] == p for key, p in new.items()):
                return
            of.update(new)
        raise ArithmeticError("chains of unary rules have no finite sum")

    def _is_unary(self, right: tuple[Any, ...]) -> bool:
        return len(right) == 1 and right[0] in self.symbols

    def _below(
        self, symbol: Any, words: tuple[Any, ...], left_over: int, most_unary: int
    ) -> Iterator[tuple[Node, float]]:
        """All trees of a symbol over all the words; ``left_over`` unary rules may follow."""
        for left, right, p in self.rules:
            if left != symbol or p == 0.0 or (self._is_unary(right) and left_over == 0):
                continue
            after = left_over - 1 if self._is_unary(right) else most_unary
            for children, q in self._beside(right, words, after, most_unary):
                yield (symbol, *children), p * q

    def _beside(
        self, right: tuple[Any, ...], words: tuple[Any, ...], left_over: int, most_unary: int
    ) -> Iterator[tuple[tuple[Any, ...], float]]:
        """All ways for symbols one after the other to span all the words."""
        if not right:
            yield from [] if words else [((), 1.0)]
            return
        first, rest = right[0], right[1:]
        for k in range(1, len(words) - len(rest) + 1) if rest else [len(words)]:
            if first in self.symbols:
                heads = list(self._below(first, words[:k], left_over, most_unary))
            else:
                heads = [(first, 1.0)] if words[:k] == (first,) else []
            tails = list(self._beside(rest, words[k:], left_over, most_unary)) if heads else []
            for (head, p), (tail, q) in itertools.product(heads, tails):
                yield (head, *tail), p * q


def as_rules(grammar: Grammar) -> Rules:
    """A dense grammar as rules: "ROOT" goes to symbols "0", "1" …, and words stay numbers."""
    size = grammar.K + grammar.T
    root, rules, words = (grammar.tables[name] for name in ("root", "rules", "words"))
    found: list[Rule] = [("ROOT", (str(a),), float(root[0][a])) for a in range(size)]
    for a, b, c in itertools.product(range(grammar.K), range(size), range(size)):
        found.append((str(a), (str(b), str(c)), float(rules[a][b * size + c])))
    for t, word in np.ndindex(np.shape(words)):
        found.append((str(grammar.K + t), (word,), float(words[t][word])))
    return Rules(found, "ROOT")
