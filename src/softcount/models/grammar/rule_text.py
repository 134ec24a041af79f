"""Rules as texts.

    # a comment, up to the end of the line
    S  -> NP VP [0.9] | VP [0.1]
    NP -> 'she' | "John's" N
    VP -> 'give' NP NP | 'sleep'

A line has a left side, an arrow (-> or →), and right sides with | between them. Words are in
quotes, of either kind, all else are symbols, without white space, brackets and |. A probability in
square brackets follows its right side; right sides of the same symbol that have none share what is
left, all alike. The left side of the first rule is the root, if nothing else is said; a line
"%start -> S [0.9] | NP" says it of several. In words and symbols, a character after \\ stands for
itself, and \\n for the end of a line.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Container, Iterator
from typing import NamedTuple

import numpy as np

from softcount.errors import DataError, shown
from softcount.models.grammar.rules import ROOTS, Rule, Rules
from softcount.models.grammar.soundness import check

TOLERANCE = 0.01
"""Probabilities of a left side may miss 1 by so much, having been rounded; they are rescaled."""
FORM = "write a rule as in NP -> DT N [0.7] | 'she' [0.3], with words in quotes"
_TOKEN = re.compile(
    r"""\s*(?: (?P<comment>\#.*) | (?P<arrow>->|→) | (?P<bar>\|) | \[(?P<chance>[^]]*)\]
    | '(?P<single>(?:\\.|[^'\\])*)' | "(?P<double>(?:\\.|[^"\\])*)"
    | (?P<symbol>(?!['"])(?:\\.|(?!->|→)[^\s|[\]\\])+) )""",
    re.VERBOSE,
)


class _Read(NamedTuple):
    """A rule, its probability, if it has one, and its line, from 1."""

    rule: Rule
    chance: float | None
    line: int


def from_text(text: str, start: str | None = None) -> Rules:
    """Rules from a text: see this module's description.

    ``start``  the root; None: the left side of the first rule

    >>> rules = from_text("S -> NP VP [0.9] | VP [0.1]\\nNP -> 'she'\\nVP -> 'sleeps' | 'sees' NP")
    >>> print(rules)
    S -> NP VP [0.9]
    S -> VP [0.1]
    NP -> 'she' [1]
    VP -> 'sleeps' [0.5]
    VP -> 'sees' NP [0.5]
    """
    if not isinstance(text, str):
        raise DataError(f"the rules are {shown(text)}", "give a text: 'S -> NP VP [0.9] …'")
    read = [rule for n, line in enumerate(text.split("\n"), 1) for rule in _rules(line, n)]
    if not read:
        raise DataError("there are no rules in the text", FORM)
    by_left: dict[str, list[_Read]] = defaultdict(list)
    for one in read:
        by_left[one.rule.lhs].append(one)
    roots = by_left.pop(ROOTS, [])
    _demand_once(read)
    _demand_defined(read, by_left)
    if not by_left:
        raise DataError("there are no rules in the text", FORM)
    chances = np.concatenate([_shares(some) for some in by_left.values()])
    root = _root(start, roots, by_left)
    rules = Rules(tuple(one.rule for some in by_left.values() for one in some), chances, root)
    check(rules)
    return rules


def _root(start: str | None, roots: list[_Read], known: Collection[str]) -> dict[str, float]:
    """What trees begin with: as is said, or in a line of the text, or the first symbol."""
    if start is not None and start not in known:
        raise DataError(f"the start symbol {shown(start)} has no rules", "give a left side of one")
    if start is not None or not roots:
        return {next(iter(known)) if start is None else start: 1.0}
    for one in roots:
        if not one.rule.is_unary:
            raise DataError(f"line {one.line} has a root that is not one symbol", FORM)
    return {one.rule.rhs[0]: p for one, p in zip(roots, _shares(roots), strict=True)}


def _rules(line: str, number: int) -> Iterator[_Read]:
    """The rules of a line."""
    tokens = list(_tokens(line, number))
    if not tokens:
        return
    kinds = [kind for kind, _ in tokens]
    if "arrow" not in kinds:
        raise DataError(f"line {number} has no arrow: {shown(line.strip())}", FORM)
    if kinds[:2] != ["symbol", "arrow"]:
        raise DataError(f"line {number} does not begin with one symbol and an arrow", FORM)
    right: list[tuple[str, str]] = []
    for kind, value in [*tokens[2:], ("bar", "")]:
        if kind == "arrow":
            raise DataError(f"line {number} has two arrows", "write one left side a line")
        if kind != "bar":
            right.append((kind, value))
            continue
        yield _read(tokens[0][1], right, number)
        right = []


def _tokens(line: str, number: int) -> Iterator[tuple[str, str]]:
    end, stop = 0, len(line.rstrip())
    while end < stop:
        found = _TOKEN.match(line, end)
        if found is None:
            left = line[end:].strip()
            raise DataError(f"line {number} cannot be read from {shown(left)} on", FORM)
        end, kind = found.end(), str(found.lastgroup)
        if kind in ("single", "double", "symbol"):
            yield ("symbol" if kind == "symbol" else "word"), _unescaped(found[kind])
        elif kind != "comment":
            yield kind, found[kind]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


def _read(left: str, right: list[tuple[str, str]], line: int) -> _Read:
    """A rule from one of its right sides."""
    chance = None
    if right and right[-1][0] == "chance":
        chance = _chance(right.pop()[1], line)
    if not right:
        raise DataError(f"line {line} has an empty right side of {left}", "no symbol is empty")
    for kind, value in right:
        if kind == "chance":
            raise DataError(f"line {line} has [{value}] before the end of a right side", FORM)
        if not value:
            raise DataError(f"line {line} has a word that is empty", FORM)
    items, words = tuple(value for _, value in right), tuple(kind == "word" for kind, _ in right)
    return _Read(Rule(left, items, words), chance, line)


def _chance(text: str, line: int) -> float:
    try:
        chance = float(text)
    except ValueError:
        chance = math.nan
    if not 0.0 < chance <= 1.0:
        raise DataError(
            f"line {line} has the probability [{text}]", "one is more than 0 and at most 1"
        )
    return chance


def _demand_once(read: list[_Read]) -> None:
    lines: dict[Rule, int] = {}
    for rule, _, line in read:
        if rule in lines:
            raise DataError(
                f"line {line} has the rule {rule} again, after line {lines[rule]}", "leave one out"
            )
        lines[rule] = line


def _demand_defined(read: list[_Read], known: Container[str]) -> None:
    for rule, _, line in read:
        for symbol in rule.symbols:
            if symbol not in known:
                raise DataError(
                    f"line {line} has the symbol {symbol}, which has no rules",
                    f"give it some, or write '{symbol}' in quotes if it is a word",
                )


def _shares(some: list[_Read]) -> list[float]:
    """Probabilities of the rules of one left side."""
    given = [one.chance for one in some if one.chance is not None]
    total, without = math.fsum(given), len(some) - len(given)
    where = f"the probabilities of {some[0].rule.lhs} (line {some[0].line}) add up to {total:.6g}"
    if total > 1.0 + TOLERANCE:
        raise DataError(where, "they are at most 1 together")
    if without and total >= 1.0:
        raise DataError(f"{where}: nothing is left for rules that have none", "give it to all")
    if without:
        share = (1.0 - total) / without
        return [share if one.chance is None else one.chance for one in some]
    if total < 1.0 - TOLERANCE:
        raise DataError(where, "they are 1 together; rules without any share what is left")
    return [chance / total for chance in given]
