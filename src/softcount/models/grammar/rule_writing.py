"""Rules written as a text that `rule_text` can read again."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from softcount.errors import DataError
from softcount.models.grammar.rules import Rule, Rules, from_counts

TOP = "TOP"
_UNFIT = re.compile(r"[\s|\[\]]|->|→")
_UNFIT_FIRST = ("'", '"', "#")


class Written(NamedTuple):
    """Rules as a text.

    ``renamed``   symbols that no text of rules can have, and what they are called there
    ``left_out``  how many rules are not there: no text can have their words, or one of their
                  symbols has no rules
    """

    text: str
    renamed: dict[str, str]
    left_out: int


def as_text(rules: Rules) -> Written:
    """Rules as a text, the root's first; several roots are below one new symbol.

    >>> from softcount.models.grammar.rules import from_trees
    >>> from softcount.corpus.trees import tree
    >>> print(as_text(from_trees([tree("(S (N it) ('' !))"), tree("(N no)")])).text)
    TOP -> S [0.5]
    TOP -> N [0.5]
    S -> N _'' [1]
    N -> 'it' [0.5]
    N -> 'no' [0.5]
    _'' -> '!' [1]
    """
    chances = zip(rules.rules, rules.chances.tolist(), strict=True)
    kept = _usable({rule: chance for rule, chance in chances if _writable(rule)})
    lefts = {rule.lhs for rule in kept}
    root = {symbol: chance for symbol, chance in rules.root.items() if symbol in lefts}
    if not root:
        raise DataError(
            "no tree can be made of rules that a text could have", "save the grammar instead"
        )
    names = _names(rules.symbols)
    top = _free(TOP, names.values())
    if len(root) > 1:
        kept |= {Rule(top, (symbol,), (False,)): chance for symbol, chance in root.items()}
    first = top if len(root) > 1 else next(iter(root))
    shares = from_counts(kept, root)
    pairs = zip(shares.rules, shares.chances.tolist(), strict=True)
    ordered = sorted(pairs, key=lambda pair: pair[0].lhs != first)
    lines = [f"{_named(rule, names)} [{chance:.6g}]" for rule, chance in ordered]
    renamed = {old: new for old, new in names.items() if old != new}
    return Written("\n".join(lines), renamed, len(rules) - len(kept) + len(root) * (len(root) > 1))


def _writable(rule: Rule) -> bool:
    """Whether its words can be put in quotes."""
    items = zip(rule.rhs, rule.is_word, strict=True)
    return not any(word and ("\n" in item or ("'" in item and '"' in item)) for item, word in items)


def _usable(chances: Mapping[Rule, float]) -> dict[Rule, float]:
    """Rules whose symbols all have rules."""
    kept = dict(chances)
    while True:
        lefts = {rule.lhs for rule in kept}
        left = {rule: n for rule, n in kept.items() if lefts.issuperset(rule.symbols)}
        if len(left) == len(kept):
            return kept
        kept = left


def _names(symbols: Sequence[str]) -> dict[str, str]:
    """What symbols are called in a text: most as they are."""
    names = {symbol: symbol for symbol in symbols if _fit(symbol) == symbol}
    for symbol in symbols:
        if symbol not in names:
            names[symbol] = _free(_fit(symbol), [*names.values(), *symbols])
    return names


def _fit(symbol: str) -> str:
    plain = _UNFIT.sub("_", symbol)
    return f"_{plain}" if plain.startswith(_UNFIT_FIRST) else plain


def _free(name: str, taken: Collection[str]) -> str:
    others = (f"{name}{number}" for number in count(2))
    return name if name not in taken else next(one for one in others if one not in taken)


def _named(rule: Rule, names: Mapping[str, str]) -> Rule:
    items = zip(rule.rhs, rule.is_word, strict=True)
    right = tuple(item if word else names.get(item, item) for item, word in items)
    return Rule(names.get(rule.lhs, rule.lhs), right, rule.is_word)
