"""Rules of a grammar: parsing, counting in trees, formatting, and checking.

In text,

    # a comment, up to the end of the line
    S  -> NP VP [0.9] | VP [0.1]
    NP -> 'she' | "John's" N
    VP -> 'give' NP NP | 'sleep'

A line has a left side, an arrow (-> or →), and right sides separated by |. Words are in single or
double quotes; everything else is a symbol, without white space, brackets and |. A probability in
square brackets follows its right side; right sides of the same symbol without one share the
remaining probability equally. The left side of the first rule is the root, unless there is a line
"%start -> S [0.9] | NP". In words and symbols, \\ escapes the next character, and \\n is a line
break.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softcount.core.errors import DataError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import Array
from softcount.text.trees import Tree

START = "%start"
"""In text, the left side of the line that declares the root symbols."""
_SPECIAL = re.compile(r"[\\|[\]\s→]|-(?=>)")


@dataclass(frozen=True, slots=True)
class GrammarRule:
    """A rule: a left side, which is a symbol, and a right side of words and symbols.

    ``is_word``  for each item of the right side, whether it is a word

    >>> print(GrammarRule("VP", ("give", "NP"), (True, False)))
    VP -> 'give' NP
    """

    lhs: str
    rhs: tuple[str, ...]
    is_word: tuple[bool, ...]

    def __str__(self) -> str:
        """Format the rule as in the text of a grammar."""
        items = zip(self.rhs, self.is_word, strict=True)
        right = (_quote(item) if is_word else _escape(item) for item, is_word in items)
        return f"{_escape(self.lhs)} -> {' '.join(right)}"

    @property
    def is_unary(self) -> bool:
        """Whether its right side is one symbol."""
        return self.is_word == (False,)

    @property
    def is_lexical(self) -> bool:
        """Whether its right side is one word."""
        return self.is_word == (True,)

    @property
    def symbols(self) -> list[str]:
        """The symbols of its right side."""
        return [item for item, word in zip(self.rhs, self.is_word, strict=True) if not word]


def _quote(word: str) -> str:
    """Quote a word."""
    quote = '"' if "'" in word else "'"
    inside = word.replace("\\", r"\\").replace("\n", r"\n").replace(quote, "\\" + quote)
    return f"{quote}{inside}{quote}"


def _escape(symbol: str) -> str:
    """Escape the special characters of a symbol."""
    escaped = _SPECIAL.sub(lambda m: r"\n" if m[0] == "\n" else "\\" + m[0], symbol)
    return "\\" + escaped if escaped[:1] in ("#", "'", '"') else escaped


@dataclass(frozen=True, eq=False, repr=False)
class GrammarRules(PickledWithoutCaches):
    """Rules with probabilities, grouped by left side.

    ``rules``          the rules; those with the same left side are adjacent
    ``probabilities``  float64 (rules,): p(right side | left side)
    ``root``           root symbol → p(it is the root of a tree)
    ``counts``         float64 (rules,): number of uses, if the rules come from trees; needed by
                       `UnknownWords`
    """

    rules: tuple[GrammarRule, ...]
    probabilities: Array
    root: Mapping[str, float]
    counts: Array | None = None

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"<GrammarRules: {len(self):,} rules of {len(self.symbols):,} symbols>"

    def __str__(self) -> str:
        pairs = zip(self.rules, self.probabilities, strict=True)
        lines = [f"{rule} [{probability:.6g}]" for rule, probability in pairs]
        if list(self.root) != list(self.symbols[:1]):  # else the default root is right
            roots = (f"{_escape(symbol)} [{p:.6g}]" for symbol, p in self.root.items() if p > 0.0)
            lines.insert(0, f"{START} -> {' | '.join(roots)}")
        return "\n".join(lines)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """All left sides, in order."""
        return tuple(dict.fromkeys(rule.lhs for rule in self.rules))

    @cached_property
    def index(self) -> dict[str, int]:
        """The index of each symbol in ``symbols``."""
        return {symbol: a for a, symbol in enumerate(self.symbols)}

    @cached_property
    def indptr(self) -> Array:
        """Symbol a has the rules from ``indptr[a]`` to ``indptr[a + 1]``."""
        return make_indptr([self.index[rule.lhs] for rule in self.rules], len(self.symbols))


def make_indptr(rows: ArrayLike, n: int) -> Array:
    """Compute the index pointer of n rows, given the row of each entry, sorted.

    >>> make_indptr([0, 0, 2], 3)
    array([0, 2, 2, 3])
    """
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])


def estimate_rules(counts: Mapping[GrammarRule, float], root: Mapping[str, float]) -> GrammarRules:
    """Estimate rules by maximum likelihood: p(rule) is its count over that of its left side."""
    by_left: dict[str, list[tuple[GrammarRule, float]]] = defaultdict(list)
    for rule, count in counts.items():
        by_left[rule.lhs].append((rule, count))
    total = math.fsum(root.values())
    sums = {left: math.fsum(n for _, n in pairs) for left, pairs in by_left.items()}
    counted = [pair for pairs in by_left.values() for pair in pairs]
    return GrammarRules(
        tuple(rule for rule, _ in counted),
        np.array([n / sums[rule.lhs] for rule, n in counted]),
        {symbol: n / total for symbol, n in root.items()},
        np.array([n for _, n in counted]),
    )


def normalise_rules(
    probabilities: Mapping[GrammarRule, float], root: Mapping[str, float]
) -> GrammarRules:
    """Normalise the probabilities of rules by left side; the result has no counts.

    Rules with a symbol that has no rules of its own are removed.
    """
    kept: Mapping[GrammarRule, float] = probabilities
    while True:
        lefts = {rule.lhs for rule in kept}
        left = {rule: n for rule, n in kept.items() if lefts.issuperset(rule.symbols)}
        if len(left) == len(kept):
            break
        kept = left
    tops = {symbol: probability for symbol, probability in root.items() if symbol in lefts}
    if not tops:
        raise DataError("no rule of a root is left", "lower the threshold")
    return replace(estimate_rules(kept, tops), counts=None)


def count_rules(
    trees: Iterable[Tree | None], weights: Sequence[float] | Array | None = None
) -> GrammarRules:
    """Count the rules of trees of any shape: a treebank grammar (Charniak 1996).

    ``trees``    None is skipped
    ``weights``  weight of each tree; trees of weight 0 contribute no rules. If all are below 1,
                 they are scaled so that the largest is 1: weights may sum to one

    >>> from softcount.text.trees import tree
    >>> print(count_rules([tree("(S (NP it) (VP rains))"), tree("(S (VP (VB go)))")]))
    S -> NP VP [0.5]
    S -> VP [0.5]
    NP -> 'it' [1]
    VP -> 'rains' [0.5]
    VP -> VB [0.5]
    VB -> 'go' [1]
    """
    counts: dict[GrammarRule, float] = defaultdict(float)
    root: dict[str, float] = defaultdict(float)
    items = trees if isinstance(trees, Sequence) else list(trees)
    most = 0.0
    if weights is not None and len(weights) != len(items):
        raise DataError(
            f"there are {len(weights)} weights for {len(items)} trees", "give one for each tree"
        )
    for n, tree in enumerate(items):
        weight = 1.0 if weights is None else float(weights[n])
        if not (math.isfinite(weight) and weight >= 0.0):
            raise DataError(f"tree {n} has the weight {brief(weight)}", "weights are at least 0")
        if tree is None or weight == 0.0:
            continue
        root[tree.label] += weight
        most = max(most, weight)
        for node in tree.nodes():
            counts[rule_at(node)] += weight
    if not root:
        raise DataError("there are no trees to take rules from", "give at least one")
    if most < 1.0:
        counts = {rule: count / most for rule, count in counts.items()}
    return estimate_rules(counts, root)


def rule_at(node: Tree) -> GrammarRule:
    """Return the rule that expands a node of a tree."""
    items = node.children
    return GrammarRule(
        node.label,
        tuple(item if isinstance(item, str) else item.label for item in items),
        tuple(isinstance(item, str) for item in items),
    )


# Reading rules


TOLERANCE = 0.01
"""Tolerance for rounded probabilities of a left side to sum to 1; they are rescaled."""
FORM = "write a rule as in NP -> DT N [0.7] | 'she' [0.3], with words in quotes"
_TOKEN = re.compile(
    r"""\s*(?: (?P<comment>\#.*) | (?P<arrow>->|→) | (?P<bar>\|) | \[(?P<probability>[^]]*)\]
    | '(?P<single>(?:\\.|[^'\\])*)' | "(?P<double>(?:\\.|[^"\\])*)"
    | (?P<symbol>(?!['"])(?:\\.|(?!->|→)[^\s|[\]\\])+) )""",
    re.VERBOSE,
)


class _RuleLine(NamedTuple):
    """A rule, its probability (None: not given), and its line number, from 1."""

    rule: GrammarRule
    probability: float | None
    line: int


def parse_rules(text: str, start: str | None = None) -> GrammarRules:
    """Parse the text of a grammar: see this module's docstring.

    ``start``  the root; None: that of the %start line, else the left side of the first rule

    >>> text = "S -> NP VP [0.9] | VP [0.1]\\nNP -> 'she'\\nVP -> 'sleeps' | 'sees' NP"
    >>> print(parse_rules(text))
    S -> NP VP [0.9]
    S -> VP [0.1]
    NP -> 'she' [1]
    VP -> 'sleeps' [0.5]
    VP -> 'sees' NP [0.5]
    """
    if not isinstance(text, str):
        raise DataError(f"the rules are {brief(text)}", "give a string: 'S -> NP VP [0.9] …'")
    read = [rule for n, line in enumerate(text.split("\n"), 1) for rule in _read_line(line, n)]
    by_left: dict[str, list[_RuleLine]] = defaultdict(list)
    lines: dict[GrammarRule, int] = {}
    for item in read:
        if item.rule in lines:
            raise DataError(
                f"line {item.line} has the rule {item.rule} again, after line {lines[item.rule]}",
                "remove one of them",
            )
        lines[item.rule] = item.line
        by_left[item.rule.lhs].append(item)
    roots = by_left.pop(START, [])
    for rule, _, line in read:
        for symbol in rule.symbols:
            if symbol not in by_left:
                raise DataError(
                    f"line {line} has the symbol {symbol}, which has no rules",
                    f"give it some, or write '{symbol}' in quotes if it is a word",
                )
    if not by_left:
        raise DataError("there are no rules in the text", FORM)
    probabilities = np.concatenate([_fill_probabilities(group) for group in by_left.values()])
    if start is not None and start not in by_left:
        raise DataError(
            f"the start symbol {brief(start)} has no rules", "give the left side of a rule"
        )
    if start is not None or not roots:
        root = {next(iter(by_left)) if start is None else start: 1.0}
    else:
        for item in roots:
            if not item.rule.is_unary:
                raise DataError(f"line {item.line} has a root that is not one symbol", FORM)
        filled = zip(roots, _fill_probabilities(roots), strict=True)
        root = {item.rule.rhs[0]: probability for item, probability in filled}
    rules = GrammarRules(
        tuple(item.rule for group in by_left.values() for item in group), probabilities, root
    )
    check_rules(rules)
    return rules


def _read_line(line: str, number: int) -> Iterator[_RuleLine]:
    """Parse the rules of a line."""
    tokens = list(_tokens(line, number))
    if not tokens:
        return
    kinds = [kind for kind, _ in tokens]
    if "arrow" not in kinds:
        raise DataError(f"line {number} has no arrow: {brief(line.strip())}", FORM)
    if kinds[:2] != ["symbol", "arrow"]:
        raise DataError(f"line {number} does not begin with one symbol and an arrow", FORM)
    left, right = tokens[0][1], list[tuple[str, str]]()
    for kind, value in [*tokens[2:], ("bar", "")]:
        if kind == "arrow":
            raise DataError(f"line {number} has two arrows", "write one left side per line")
        if kind != "bar":
            right.append((kind, value))
            continue
        probability = None
        if right and right[-1][0] == "probability":
            written = right.pop()[1]
            try:
                probability = float(written)
            except ValueError:
                probability = math.nan
            if not 0.0 < probability <= 1.0:
                raise DataError(
                    f"line {number} has the probability [{written}]",
                    "probabilities are above 0 and at most 1",
                )
        if not right:
            raise DataError(
                f"line {number} has an empty right side of {left}", "empty rules are not allowed"
            )
        for what, item in right:
            if what == "probability":
                raise DataError(f"line {number} has [{item}] before the end of a right side", FORM)
            if not item:
                raise DataError(f"line {number} has an empty word", FORM)
        items, is_word = zip(*((item, what == "word") for what, item in right), strict=True)
        yield _RuleLine(GrammarRule(left, items, is_word), probability, number)
        right = []


def _tokens(line: str, number: int) -> Iterator[tuple[str, str]]:
    end, stop = 0, len(line.rstrip())
    while end < stop:
        found = _TOKEN.match(line, end)
        if found is None:
            left = line[end:].strip()
            raise DataError(f"line {number} cannot be read from {brief(left)} on", FORM)
        end, kind = found.end(), str(found.lastgroup)
        if kind in ("single", "double", "symbol"):
            plain = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], found[kind])
            yield ("symbol" if kind == "symbol" else "word"), plain
        elif kind != "comment":
            yield kind, found[kind]


def _fill_probabilities(group: list[_RuleLine]) -> list[float]:
    """Return the probabilities of the rules of one left side, filling in missing ones."""
    given = [item.probability for item in group if item.probability is not None]
    total, without = math.fsum(given), len(group) - len(given)
    where = f"the probabilities of {group[0].rule.lhs} (line {group[0].line}) add up to {total:.6g}"
    if total > 1.0 + TOLERANCE:
        raise DataError(where, "they must add up to at most 1")
    if without and total >= 1.0:
        raise DataError(
            f"{where}: nothing is left for rules that have none", "give probabilities to all rules"
        )
    if without:
        remainder = (1.0 - total) / without
        return [remainder if item.probability is None else item.probability for item in group]
    if total < 1.0 - TOLERANCE:
        raise DataError(where, "they must add up to 1, unless some rules have no probability")
    return [probability / total for probability in given]


# Checking rules


class GrammarWarning(UserWarning):
    """Warning of rules of a grammar that can never be used."""


def check_defined(rules: GrammarRules) -> None:
    """Raise if a symbol has no rules, for example because some were removed."""
    known = set(rules.symbols)
    used = [*rules.root, *(symbol for rule in rules.rules for symbol in rule.symbols)]
    if not rules.root:
        raise DataError("no symbol is a root", "give a complete set of rules")
    for symbol in used:
        if symbol not in known:
            raise DataError(f"the symbol {symbol} has no rules", "give a complete set of rules")


def check_rules(rules: GrammarRules) -> None:
    """Raise if the grammar derives nothing or unary rules never end; warn of useless rules."""
    by_left: dict[str, list[GrammarRule]] = defaultdict(list)
    for rule in rules.rules:
        by_left[rule.lhs].append(rule)
    # a symbol ends if it has a rule that is not unary, or a unary rule to a symbol that ends
    ends = _derive_symbols((r.lhs, r.symbols if r.is_unary else []) for r in rules.rules)
    path = [symbol for symbol in by_left if symbol not in ends][:1]
    if path:
        while path[-1] not in path[:-1]:
            path.append(by_left[path[-1]][0].rhs[0])
        cycle = " -> ".join(path[path.index(path[-1]) :])
        raise DataError(
            f"the unary rules {cycle} form a cycle of probability one, which never ends",
            "give one of these symbols a rule that leads elsewhere",
        )
    productive = _derive_symbols((rule.lhs, rule.symbols) for rule in rules.rules)
    if not any(symbol in productive for symbol in rules.root):
        names = ", ".join(rules.root)
        raise DataError(
            f"the grammar derives nothing: {names} never ends in words",
            "give some symbol a rule whose right side has only words",
        )
    _warn("derive no words", [s for s in by_left if s not in productive])
    reachable, ahead = set(rules.root), list(rules.root)
    while ahead:
        new = {a for rule in by_left[ahead.pop()] for a in rule.symbols} - reachable
        reachable |= new
        ahead += new
    _warn("cannot be reached from the root", [s for s in by_left if s not in reachable])


def _warn(what: str, symbols: list[str]) -> None:
    if symbols:
        names = ", ".join(symbols[:5]) + (", …" if len(symbols) > 5 else "")
        message = f"{len(symbols):,} symbol(s) {what}, so their rules are never used: {names}"
        warnings.warn(message, GrammarWarning, stacklevel=4)


def _derive_symbols(rules: Iterable[tuple[str, Sequence[str]]]) -> set[str]:
    """Return the least set of symbols with a rule (symbol, needs) whose needs are in the set."""
    waiting: dict[str, list[tuple[str, list[int]]]] = defaultdict(list)
    found: set[str] = set()
    ahead: list[str] = []
    for symbol, right in rules:
        needs = set(right)
        missing = [len(needs)]
        for need in needs:
            waiting[need].append((symbol, missing))
        if not needs:
            ahead.append(symbol)
    while ahead:
        symbol = ahead.pop()
        if symbol in found:
            continue
        found.add(symbol)
        for above, missing in waiting[symbol]:
            missing[0] -= 1
            if missing[0] == 0:
                ahead.append(above)
    return found
