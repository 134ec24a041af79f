"""Binarised rules: those of any length as rules of two symbols, in flat arrays; and back again.

A rule A → X Y Z becomes A → X ⟨Y Z⟩ and ⟨Y Z⟩ → Y Z. The symbol ⟨Y Z⟩ has no other rule, so that
the latter has probability one, and it is shared by all rules that end so: each of the grammar's
rules is still one parameter. A word among several items becomes a symbol that derives this word,
with probability one.

Symbols are numbered: first the N nonterminals, the left sides of the grammar's rules; then the
words that are symbols; then those such as ⟨Y Z⟩, which alone are never a left child.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from softcount.core.errors import LearnerError
from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.grammar.kernels.rules import (
    BinaryRules,
    LexicalRules,
    RuleCounts,
    RuleTables,
    make_unary_rules,
)
from softcount.grammar.rules import GrammarRules, make_indptr
from softcount.text.trees import Tree

CERTAIN = -1
"""In place of a rule's number: a rule of probability one, whatever the parameters are."""


class BinarisedRules:
    """Rules in flat arrays.

    >>> from softcount.grammar.rules import parse_rules
    >>> own = BinarisedRules(parse_rules("S -> 'a' S 'b' [0.4] | 'a' 'b'"))
    >>> own.n_nonterminals, own.n_left, own.n_symbols  # S; 'a' and 'b'; what follows the first 'a'
    (1, 3, 4)
    """

    def __init__(self, rules: GrammarRules) -> None:
        self.rules, self.labels, index = rules, rules.symbols, rules.index
        self.n_nonterminals = len(rules.symbols)
        self.root = np.zeros(self.n_nonterminals)
        for symbol, p in rules.root.items():
            self.root[index[symbol]] = p

        # unary rules, sorted by left side, as the rules are
        own = [(n, rule) for n, rule in enumerate(rules.rules) if rule.is_unary]
        self._unary_rule = np.array([n for n, _ in own], np.int32)
        self._unary_child = np.array([index[rule.rhs[0]] for _, rule in own], np.int32)
        self._unary_parent = np.array([index[rule.lhs] for _, rule in own], np.int32)
        self._unary_indptr = make_indptr(self._unary_parent, self.n_nonterminals)

        # binary rules: of longer ones, first the last two items, then that and the one before
        word_symbols: dict[str, int] = {}  # words among several items, as symbols
        for rule in rules.rules:
            if len(rule.rhs) > 1:
                for item, is_word in zip(rule.rhs, rule.is_word, strict=True):
                    if is_word:
                        word_symbols.setdefault(item, self.n_nonterminals + len(word_symbols))
        self.n_left = self.n_nonterminals + len(word_symbols)
        rests: dict[tuple[int, int], int] = {}
        binary: list[tuple[int, int, int, int]] = []  # right, left, parent, rule
        for number, rule in enumerate(rules.rules):
            if len(rule.rhs) == 1:
                continue
            items = [
                word_symbols[item] if is_word else index[item]
                for item, is_word in zip(rule.rhs, rule.is_word, strict=True)
            ]
            rest = items[-1]
            for left in reversed(items[1:-1]):
                pair = left, rest
                if pair not in rests:
                    rests[pair] = self.n_left + len(rests)
                    binary.append((rest, left, rests[pair], CERTAIN))
                rest = rests[pair]
            binary.append((rest, items[0], index[rule.lhs], number))
        self.n_symbols = self.n_left + len(rests)
        table = np.array(binary, np.int32).reshape(-1, 4)
        # symbols that may span several words: by binary rules, or by unary ones above them
        is_wide = np.zeros(self.n_symbols, np.bool_)
        is_wide[table[:, 2]] = True
        while not is_wide[self._unary_parent[is_wide[self._unary_child]]].all():
            is_wide[self._unary_parent[is_wide[self._unary_child]]] = True
        # sorted by right child; those whose left child may be wide come first
        table = table[np.lexsort((~is_wide[table[:, 1]], table[:, 0]))]
        n_wide = np.bincount(table[is_wide[table[:, 1]], 0], minlength=self.n_symbols)
        _, self._left, self._parent, self._binary_rule = np.ascontiguousarray(table.T)
        self._binary_indptr = make_indptr(table[:, 0], self.n_symbols)
        self._wide = self._binary_indptr[:-1] + n_wide

        # lexical rules, and words that are symbols, sorted by word
        self.word_rows: dict[str, int] = {}
        lexical: list[tuple[int, int, int]] = []  # word, symbol, rule
        for number, rule in enumerate(rules.rules):
            if rule.is_lexical:
                row = self.word_rows.setdefault(rule.rhs[0], len(self.word_rows))
                lexical.append((row, index[rule.lhs], number))
        for word, word_symbol in word_symbols.items():
            row = self.word_rows.setdefault(word, len(self.word_rows))
            lexical.append((row, word_symbol, CERTAIN))
        table = np.array(lexical, np.int32).reshape(-1, 3)
        table = table[np.argsort(table[:, 0], kind="stable")]
        self._lexical_indptr = make_indptr(table[:, 0], len(self.word_rows) + 1)
        _, self._lexical_symbols, self._lexical_rule = np.ascontiguousarray(table.T)

    def make_tables(
        self,
        probabilities: FloatArray,
        root: FloatArray,
        allowed: BoolArray | None = None,
        viterbi: bool = False,
    ) -> RuleTables:
        """Parameters as charts want them.

        ``probabilities``  (rules,)
        ``root``           (N,): p(symbol is the root)
        ``allowed``        bool (sets, N): the symbols of each set that cells may have; set 0 is all
        ``viterbi``        for best derivations, in place of the sum of all
        """
        sets = np.ones((1, self.n_nonterminals), bool) if allowed is None else allowed
        unary = np.ascontiguousarray(probabilities[self._unary_rule])
        found = make_unary_rules(self._unary_indptr, self._unary_child, unary, sets, viterbi)
        if found is None:
            raise LearnerError(
                "chains of unary rules have no finite sum",
                "rules of a left side have at most probability one, and some lead to words",
            )
        binary_probabilities = _fill_certain(probabilities, self._binary_rule)
        children = (self._binary_indptr, self._wide, self._left, self._parent)
        binary = BinaryRules(*children, binary_probabilities)
        return RuleTables(np.ascontiguousarray(root, float), self.n_left, binary, found, viterbi)

    def find_rows(self, words: Iterable[str]) -> IntArray:
        """The rows of words; those that are in no rule have the last one, which is empty."""
        unknown = len(self.word_rows)
        return np.array([self.word_rows.get(word, unknown) for word in words], np.int64)

    def make_lexical(
        self, probabilities: FloatArray, rows: IntArray, unknown: FloatArray | None = None
    ) -> LexicalRules:
        """Lexical rules of tokens.

        ``rows``     (tokens,), as `find_rows` gives them, or from ``len(word_rows) + 1`` on those
                     of ``unknown``
        ``unknown``  (rows, N): p(token | symbol) of words that are in no rule: see `UnknownWords`
        """
        indptr, symbols = self._lexical_indptr, self._lexical_symbols
        values = _fill_certain(probabilities, self._lexical_rule)
        if unknown is not None:
            at, symbol = np.nonzero(unknown)
            indptr = np.concatenate([indptr, indptr[-1] + make_indptr(at, len(unknown))[1:]])
            symbols = np.concatenate([symbols, symbol.astype(np.int32)])
            values = np.concatenate([values, unknown[at, symbol]])
        return LexicalRules(rows, indptr, symbols, values)

    @property
    def n_lexical(self) -> int:
        """How many entries of `make_lexical` are those of rules; unknown words come after them."""
        return len(self._lexical_symbols)

    def make_counts(self, log_p: FloatArray, lexical: LexicalRules) -> RuleCounts:
        """Counts that are all zero."""
        rules = (self.n_nonterminals, len(self._left), len(self._unary_child))
        return RuleCounts(log_p, *(np.zeros(n) for n in (*rules, len(lexical.symbols), 3)))

    def rule_counts(self, counts: RuleCounts) -> FloatArray:
        """Counts of binarised rules as counts (rules,) of the grammar's own rules."""
        rules = np.zeros(len(self.rules))
        for numbers, used in (
            (self._binary_rule, counts.binary),
            (self._unary_rule, counts.unary),
            (self._lexical_rule, counts.lexical[: self.n_lexical]),
        ):
            own = numbers >= 0
            rules[numbers[own]] += used[own]
        return rules

    def code_symbols(self, lexical: LexicalRules) -> IntArray:
        """The left side of each code of a derivation: see `softcount.grammar.kernels.rules`."""
        return np.concatenate([self._parent, self._unary_parent, lexical.symbols])

    def code_rules(self, lexical: LexicalRules) -> IntArray:
        """The rule of each code of a derivation; `CERTAIN` where there is none."""
        none = np.full(len(lexical.symbols) - len(self._lexical_rule), CERTAIN, np.int32)
        return np.concatenate([self._binary_rule, self._unary_rule, self._lexical_rule, none])

    def make_tree(
        self, codes: IntArray, sentence: Sequence[str], lexical: LexicalRules
    ) -> Tree | None:
        """The tree of a derivation in terms of the grammar's own rules; None if there is none."""
        n_binary, n_rules = len(self._left), len(self._left) + len(self._unary_child)
        done: list[tuple[Tree | str, ...]] = []
        ahead = len(sentence)
        symbols = self.code_symbols(lexical)[codes[::-1]]
        for code, symbol in zip(codes[::-1].tolist(), symbols, strict=True):
            parts: tuple[Tree | str, ...]
            if code >= n_rules:
                ahead -= 1
                parts = (sentence[ahead],)
            else:
                parts = done.pop() if code >= n_binary else done.pop() + done.pop()
            done.append(
                (Tree(self.labels[symbol], parts),) if symbol < self.n_nonterminals else parts
            )
        return next((top for top in done.pop() if isinstance(top, Tree)), None) if done else None


def _fill_certain(probabilities: FloatArray, numbers: IntArray) -> FloatArray:
    """Probabilities of rules; 1 of what is certain."""
    return np.where(numbers >= 0, probabilities[numbers], 1.0)
