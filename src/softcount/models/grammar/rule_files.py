"""Rules in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount import store
from softcount.errors import StoreError
from softcount.models.files import TABLE
from softcount.models.grammar.dense import ROOT, RULES
from softcount.models.grammar.rules import Rule, Rules
from softcount.models.grammar.soundness import check, demand_defined
from softcount.models.stored import AGAIN, numbers
from softcount.types import Array

SYMBOL, WORD = "s", "w"
COUNTS = "counts"
MOST_OVER = 1e-6
"""Sums may be above one by so much, having been rounded."""


def facts(rules: Rules) -> dict[str, Any]:
    """Rules as JSON has them: left sides, right sides, and which of their items are words."""
    kinds = ["".join(WORD if word else SYMBOL for word in rule.is_word) for rule in rules.rules]
    return {
        "left": [rule.lhs for rule in rules.rules],
        "right": [list(rule.rhs) for rule in rules.rules],
        "kinds": kinds,
        "roots": list(rules.root),
    }


def arrays(rules: Rules) -> dict[str, Array]:
    """What rules have beside their probabilities, which are a table."""
    return {} if rules.counts is None else {COUNTS: rules.counts}


def rules(stored: store.Stored) -> Rules:
    """Rules from a file, with the probabilities that were learned."""
    meta = stored.meta
    each = zip(meta["left"], meta["right"], meta["kinds"], strict=True)
    found = tuple(_rule(*parts) for parts in each)
    order = list(dict.fromkeys(rule.lhs for rule in found))
    place = {symbol: n for n, symbol in enumerate(order)}
    places = [place[rule.lhs] for rule in found]
    chances = numbers(stored, TABLE + RULES, (len(found),))
    top = numbers(stored, TABLE + ROOT, (1, len(order)))[0]
    roots = meta["roots"]
    if not isinstance(roots, list) or len(set(roots)) != len(roots):
        raise StoreError("the roots make no sense", AGAIN)
    if len(set(found)) != len(found) or places != sorted(places):
        raise StoreError("the rules make no sense", AGAIN)
    if (chances < 0.0).any() or (top < 0.0).any():
        raise StoreError("some probabilities are negative", AGAIN)
    counts = numbers(stored, COUNTS, (len(found),)) if COUNTS in stored.arrays else None
    if counts is not None and not (counts > 0.0).all():
        raise StoreError("rules were used less than never", AGAIN)
    chosen = {symbol: float(top[place[symbol]]) for symbol in roots}
    made = Rules(found, chances, chosen, counts)
    demand_defined(made)
    check(made)
    sums = np.add.reduceat(chances, made.indptr[:-1])
    if (sums == 0.0).any() or (sums > 1.0 + MOST_OVER).any():
        raise StoreError("rules of a left side do not add up to one", AGAIN)
    return made


def _rule(left: Any, right: Any, kinds: Any) -> Rule:
    texts = [left, *right] if isinstance(right, list) and right else [None]
    if not all(isinstance(text, str) and text for text in texts):
        raise StoreError(f"{left!r} -> {right!r} is no rule", AGAIN)
    if not isinstance(kinds, str) or len(kinds) != len(right) or set(kinds) - {SYMBOL, WORD}:
        raise StoreError(f"{kinds!r} does not say what is a word in a rule", AGAIN)
    return Rule(left, tuple(right), tuple(kind == WORD for kind in kinds))
