"""Whether rules can derive anything, and what of them is of no use."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable

from softcount.errors import DataError
from softcount.models.grammar.rules import Rule, Rules


class GrammarWarning(UserWarning):
    """Some rules of a grammar are of no use."""


def demand_defined(rules: Rules) -> None:
    """Raise an error if a symbol has no rules, as if some were left out."""
    known = set(rules.symbols)
    used = [*rules.root, *(symbol for rule in rules.rules for symbol in rule.symbols)]
    if not rules.root:
        raise DataError("no symbol is a root", "give rules of which none is left out")
    for symbol in used:
        if symbol not in known:
            raise DataError(
                f"the symbol {symbol} has no rules", "give rules of which none is left out"
            )


def check(rules: Rules) -> None:
    """Raise an error if nothing is derived, or if unary rules never end; warn of useless rules."""
    by_left: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules.rules:
        by_left[rule.lhs].append(rule)
    _demand_ends(by_left)
    fruitful = _fruitful(rules.rules)
    if not any(symbol in fruitful for symbol in rules.root):
        names = ", ".join(rules.root)
        raise DataError(
            f"the grammar derives nothing: {names} never comes to an end in words",
            "give some symbol a rule that has nothing but words in it",
        )
    _warn("come to no end in words", [s for s in by_left if s not in fruitful])
    reached = _reached(rules.root, by_left)
    _warn("cannot be reached from the root", [s for s in by_left if s not in reached])


def _warn(what: str, symbols: list[str]) -> None:
    if symbols:
        some = ", ".join(symbols[:5]) + (", …" if len(symbols) > 5 else "")
        told = f"{len(symbols):,} symbol(s) {what}, and their rules are of no use: {some}"
        warnings.warn(told, GrammarWarning, stacklevel=4)


def _demand_ends(by_left: dict[str, list[Rule]]) -> None:
    """Symbols that have nothing but unary rules among each other have chains without an end."""
    closed = {left for left, some in by_left.items() if all(rule.is_unary for rule in some)}
    above: dict[str, list[str]] = defaultdict(list)
    for left in closed:
        for rule in by_left[left]:
            above[rule.rhs[0]].append(left)
    ahead = [symbol for symbol in by_left if symbol not in closed]
    while ahead:
        for left in above[ahead.pop()]:
            if left in closed:
                closed.discard(left)
                ahead.append(left)
    if not closed:
        return
    path = [next(symbol for symbol in by_left if symbol in closed)]
    while path[-1] not in path[:-1]:
        path.append(by_left[path[-1]][0].rhs[0])
    cycle = " -> ".join(path[path.index(path[-1]) :])
    raise DataError(
        f"the unary rules {cycle} go round for ever: their probability is one",
        "give one of these symbols a rule that leads elsewhere",
    )


def _fruitful(rules: Iterable[Rule]) -> set[str]:
    """Symbols that some words can be derived from."""
    waiting: dict[str, list[tuple[Rule, list[int]]]] = defaultdict(list)
    found: set[str] = set()
    ahead: list[str] = []
    for rule in rules:
        needs = set(rule.symbols)
        missing = [len(needs)]
        for symbol in needs:
            waiting[symbol].append((rule, missing))
        if not needs:
            ahead.append(rule.lhs)
    while ahead:
        symbol = ahead.pop()
        if symbol in found:
            continue
        found.add(symbol)
        for rule, missing in waiting[symbol]:
            missing[0] -= 1
            if missing[0] == 0:
                ahead.append(rule.lhs)
    return found


def _reached(root: Iterable[str], by_left: dict[str, list[Rule]]) -> set[str]:
    found = set(root)
    ahead = list(root)
    while ahead:
        for rule in by_left[ahead.pop()]:
            new = [symbol for symbol in rule.symbols if symbol not in found]
            found.update(new)
            ahead += dict.fromkeys(new)
    return found
