"""Rules as the charts want them: binary, unary, or of words, in flat arrays; and back again.

A rule A → X Y Z becomes A → X ⟨Y Z⟩ and ⟨Y Z⟩ → Y Z. The symbol ⟨Y Z⟩ has no other rule, so that
the latter has probability one, and it is the same for all rules that end so: each rule of users is
one parameter still. A word among several items is a symbol that is this word, with probability one.

Symbols are numbered: first the N left sides of users' rules, then the words that are symbols,
then those such as ⟨Y Z⟩, which alone are never a left child.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from softcount.corpus.trees import Tree
from softcount.errors import LearnerError
from softcount.kernels.rule_charts import Grammar, Joins, Tally, Words
from softcount.kernels.unary_chains import chains
from softcount.models.grammar.rules import Rules, borders
from softcount.types import Array

CERTAIN = -1
"""In place of a rule's number: has probability one, whatever the parameters are."""


class Used(NamedTuple):
    """How often what was used.

    ``root``   (N,) symbols that were the root
    ``rules``  one number a rule
    ``more``   (rows, N) symbols of words that are in no rule: see `Binarised.words`
    """

    root: Array
    rules: Array
    more: Array


class Binarised:
    """Rules in flat arrays.

    >>> from softcount.models.grammar.rule_text import from_text
    >>> own = Binarised(from_text("S -> 'a' S 'b' [0.4] | 'a' 'b'"))
    >>> own.n_known, own.n_left, own.n_symbols  # S; 'a' and 'b'; what is behind the first 'a'
    (1, 3, 4)
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.labels = rules.symbols
        self.n_known = len(rules.symbols)
        self.root = np.zeros(self.n_known)
        for symbol, chance in rules.root.items():
            self.root[rules.number[symbol]] = chance
        self._alone: dict[str, int] = {}  # words among several items, as symbols
        for rule in rules.rules:
            if len(rule.rhs) > 1:
                for item, is_word in zip(rule.rhs, rule.is_word, strict=True):
                    if is_word:
                        self._alone.setdefault(item, self.n_known + len(self._alone))
        self.n_left = self.n_known + len(self._alone)
        self._chain()
        self._join()
        self._word()

    # from rules to arrays
    def _join(self) -> None:
        """Binary rules, by the right child."""
        symbols = self.rules.number
        behind: dict[tuple[int, int], int] = {}
        found: list[tuple[int, int, int, int]] = []  # right, left, parent, rule
        for number, rule in enumerate(self.rules.rules):
            if len(rule.rhs) == 1:
                continue
            items = [
                self._alone[item] if is_word else symbols[item]
                for item, is_word in zip(rule.rhs, rule.is_word, strict=True)
            ]
            rest = items[-1]
            for item in reversed(items[1:-1]):
                pair = item, rest
                if pair not in behind:
                    behind[pair] = self.n_left + len(behind)
                    found.append((rest, item, behind[pair], CERTAIN))
                rest = behind[pair]
            found.append((rest, items[0], symbols[rule.lhs], number))
        self.n_symbols = self.n_left + len(behind)
        table = np.array(found, np.int32).reshape(-1, 4)
        is_wide = self._are_wide(table[:, 2])
        table = table[np.lexsort((~is_wide[table[:, 1]], table[:, 0]))]
        n_wide = np.bincount(table[is_wide[table[:, 1]], 0], minlength=self.n_symbols)
        _, self._left, self._parent, self._join_rule = np.ascontiguousarray(table.T)
        self._right_indptr = borders(table[:, 0], self.n_symbols)
        self._wide = self._right_indptr[:-1] + n_wide

    def _are_wide(self, parents: Array) -> Array:
        """Whether symbols may be of several words: by binary rules, or by unary ones above them."""
        found = np.zeros(self.n_symbols, np.bool_)
        found[parents] = True
        while not found[self._tops[found[self._child]]].all():
            found[self._tops[found[self._child]]] = True
        return found

    def _chain(self) -> None:
        """Unary rules, by the left side, as the rules are."""
        own = [(n, rule) for n, rule in enumerate(self.rules.rules) if rule.is_unary]
        symbols = self.rules.number
        self._chain_rule = np.array([n for n, _ in own], np.int32)
        self._child = np.array([symbols[rule.rhs[0]] for _, rule in own], np.int32)
        self._tops = np.array([symbols[rule.lhs] for _, rule in own], np.int32)
        self._chain_indptr = borders(self._tops, self.n_known)

    def _word(self) -> None:
        """Rules of words, and words as symbols, by the word."""
        self.word_rows: dict[str, int] = {}
        found: list[tuple[int, int, int]] = []  # word, symbol, rule
        for number, rule in enumerate(self.rules.rules):
            if rule.is_lexical:
                row = self.word_rows.setdefault(rule.rhs[0], len(self.word_rows))
                found.append((row, self.rules.number[rule.lhs], number))
        for word, symbol in self._alone.items():
            row = self.word_rows.setdefault(word, len(self.word_rows))
            found.append((row, symbol, CERTAIN))
        table = np.array(found, np.int32).reshape(-1, 3)
        table = table[np.argsort(table[:, 0], kind="stable")]
        self._word_indptr = borders(table[:, 0], len(self.word_rows) + 1)
        _, self._word_symbols, self._word_rule = np.ascontiguousarray(table.T)

    # parameters as kernels want them
    def grammar(
        self, chances: Array, root: Array, allowed: Array | None = None, best: bool = False
    ) -> Grammar:
        """Tables of these parameters.

        ``chances``, ``root``  p of rules, and p(symbol is the root) (N,)
        ``allowed``            (sets, N), the symbols of each set that cells may have; set 0 is all
        ``best``               for best derivations, in place of the sum of all
        """
        sets = np.ones((1, self.n_known), bool) if allowed is None else allowed
        unary = np.ascontiguousarray(chances[self._chain_rule])
        found = chains(self._chain_indptr, self._child, unary, sets, best)
        if found is None:
            raise LearnerError(
                "chains of unary rules have no finite sum",
                "rules of a left side have at most probability one, and some lead to words",
            )
        joins = Joins(
            self._right_indptr,
            self._wide,
            self._left,
            self._parent,
            _filled(chances, self._join_rule),
        )
        return Grammar(np.ascontiguousarray(root, np.float64), self.n_left, joins, found, best)

    def rows(self, words: Iterable[str]) -> Array:
        """The rows of tokens: words that are in no rule have the last one, which is empty."""
        unknown = len(self.word_rows)
        return np.array([self.word_rows.get(word, unknown) for word in words], np.int64)

    def words(self, chances: Array, rows: Array, more: Array | None = None) -> Words:
        """p(token | symbol) of tokens.

        ``rows``  of tokens, as `rows` gives them, or from ``len(word_rows) + 1`` on those of more
        ``more``  (rows, N): p(token | symbol) of words that are in no rule, as someone else says
        """
        indptr, symbols = self._word_indptr, self._word_symbols
        values = _filled(chances, self._word_rule)
        if more is not None:
            at, symbol = np.nonzero(more)
            indptr = np.concatenate([indptr, indptr[-1] + borders(at, len(more))[1:]])
            symbols = np.concatenate([symbols, symbol.astype(np.int32)])
            values = np.concatenate([values, more[at, symbol]])
        return Words(rows, indptr, symbols, values)

    @property
    def n_of_rules(self) -> int:
        """How many entries of `words` are those of rules; the others come behind them."""
        return len(self._word_symbols)

    # from what was counted to rules
    def tally(self, logs: Array, words: Words) -> Tally:
        """Room for counts."""
        sizes = (self.n_known, len(self._left), len(self._child), len(words.symbols), 3)
        return Tally(logs, *(np.zeros(size) for size in sizes))

    def used(self, tally: Tally, words: Words) -> Used:
        """What was counted, as users know it."""
        rules = np.zeros(len(self.rules))
        known = len(self._word_symbols)
        for numbers, counts in (
            (self._join_rule, tally.joins),
            (self._chain_rule, tally.chains),
            (self._word_rule, tally.words[:known]),
        ):
            own = numbers >= 0
            rules[numbers[own]] += counts[own]
        own_rows = len(self.word_rows) + 1
        more = np.zeros((len(words.indptr) - 1 - own_rows, self.n_known))
        at = np.repeat(np.arange(len(more)), np.diff(words.indptr[own_rows:]))
        more[at, words.symbols[known:]] = tally.words[known:]
        return Used(tally.root, rules, more)

    def made(self, words: Words) -> Array:
        """The symbol that each number of a derivation makes: see `softcount.kernels.rule_trees`."""
        return np.concatenate([self._parent, self._tops, words.symbols])

    def rule_of(self, words: Words) -> Array:
        """The rule of each number of a derivation; −1 where there is none."""
        none = np.full(len(words.symbols) - len(self._word_rule), CERTAIN, np.int32)
        return np.concatenate([self._join_rule, self._chain_rule, self._word_rule, none])

    def counted(self, codes: Array, weights: Array, words: Words, tally: Tally) -> None:
        """Add the numbers of derivations to a tally, but for roots."""
        cuts = np.cumsum([len(self._left), len(self._child)])
        sums = np.bincount(codes, weights, minlength=cuts[1] + len(words.symbols))
        for into, some in zip(tally[2:5], np.split(sums, cuts), strict=True):
            into += some

    def tree(self, codes: Array, sentence: Sequence[str], words: Words) -> Tree | None:
        """The tree of a derivation, as users know it; None if there is no derivation."""
        n_joins, n_rules = len(self._left), len(self._left) + len(self._child)
        done: list[tuple[Tree | str, ...]] = []
        ahead = len(sentence)
        for code, symbol in zip(codes[::-1].tolist(), self.made(words)[codes[::-1]], strict=True):
            parts: tuple[Tree | str, ...]
            if code >= n_rules:
                ahead -= 1
                parts = (sentence[ahead],)
            else:
                parts = done.pop() if code >= n_joins else done.pop() + done.pop()
            done.append((Tree(self.labels[symbol], parts),) if symbol < self.n_known else parts)
        return next((top for top in done.pop() if isinstance(top, Tree)), None) if done else None


def _filled(chances: Array, numbers: Array) -> Array:
    """The chances of rules; 1 of what is certain."""
    return np.where(numbers >= 0, chances[numbers], 1.0)
