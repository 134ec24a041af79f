"""Rules in the layout of charts: binarised, in flat arrays; and the model of unknown words.

A rule A → X Y Z becomes A → X ⟨Y Z⟩ and ⟨Y Z⟩ → Y Z. The symbol ⟨Y Z⟩ has no other rule, so the
latter has probability one, and it is shared by all rules that end in Y Z: each of the grammar's
rules is still one parameter. A word in a right side of several items becomes a symbol that derives
this word with probability one.

Symbols are numbered: first the N nonterminals, the left sides of the grammar's rules; then the
words that are symbols; then rests such as ⟨Y Z⟩, the only symbols that are never a left child.
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
from softcount.text.tokenise import endings, marks
from softcount.text.trees import Tree, escape_brackets

CERTAIN = -1
"""Stands for the number of a rule that has probability one whatever the parameters."""


class BinarisedRules:
    """Binarised rules in flat arrays.

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

        # binary rules; longer rules are binarised from the right
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
        """Make the tables of chart parsing from parameters.

        ``probabilities``  (rules,)
        ``root``           (N,): p(symbol is the root)
        ``allowed``        bool (sets, N): sets of symbols allowed in cells; set 0 is all
        ``viterbi``        whether for best derivations (max) rather than for sums
        """
        sets = np.ones((1, self.n_nonterminals), bool) if allowed is None else allowed
        unary = np.ascontiguousarray(probabilities[self._unary_rule])
        found = make_unary_rules(self._unary_indptr, self._unary_child, unary, sets, viterbi)
        if found is None:
            raise LearnerError(
                "the sum over chains of unary rules diverges",
                "rules of a left side must sum to at most one, and some must lead to words",
            )
        binary_probabilities = _fill_certain(probabilities, self._binary_rule)
        children = (self._binary_indptr, self._wide, self._left, self._parent)
        binary = BinaryRules(*children, binary_probabilities)
        return RuleTables(np.ascontiguousarray(root, float), self.n_left, binary, found, viterbi)

    def find_rows(self, words: Iterable[str]) -> IntArray:
        """Return the rows of words; words in no rule have the last row, which is empty."""
        unknown = len(self.word_rows)
        return np.array([self.word_rows.get(word, unknown) for word in words], np.int64)

    def make_lexical(
        self, probabilities: FloatArray, rows: IntArray, unknown: FloatArray | None = None
    ) -> LexicalRules:
        """Make the lexical rules of tokens.

        ``rows``     (tokens,): rows from `find_rows`, or ``len(word_rows) + 1`` plus a row of
                     ``unknown``
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
        """Number of entries of `make_lexical` that are rules; unknown words follow them."""
        return len(self._lexical_symbols)

    def make_counts(self, log_p: FloatArray, lexical: LexicalRules) -> RuleCounts:
        """Make zero counts."""
        rules = (self.n_nonterminals, len(self._left), len(self._unary_child))
        return RuleCounts(log_p, *(np.zeros(n) for n in (*rules, len(lexical.symbols), 3)))

    def rule_counts(self, counts: RuleCounts) -> FloatArray:
        """Convert counts of binarised rules to counts of the grammar's own rules, (rules,)."""
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
        """Return the left side of each derivation code: see `softcount.grammar.kernels.rules`."""
        return np.concatenate([self._parent, self._unary_parent, lexical.symbols])

    def code_rules(self, lexical: LexicalRules) -> IntArray:
        """Return the rule of each derivation code; `CERTAIN` where there is none."""
        none = np.full(len(lexical.symbols) - len(self._lexical_rule), CERTAIN, np.int32)
        return np.concatenate([self._binary_rule, self._unary_rule, self._lexical_rule, none])

    def make_tree(
        self, codes: IntArray, sentence: Sequence[str], lexical: LexicalRules
    ) -> Tree | None:
        """Make the tree of a derivation, in the grammar's own symbols; None if it is empty."""
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
    """Look up the probabilities of rules; 1 where the number is `CERTAIN`."""
    return np.where(numbers >= 0, probabilities[numbers], 1.0)


# Unknown words of treebank grammars

LESS_EXACT = 1.0
"""κ: weight of the less specific form, in words seen once."""
ALIKE = 3.0
"""Weight of the same word in lower case, in words seen once."""
KNOWN = 0.3
"""Pseudo-count of further occurrences of known words, with symbols according to their form."""
RARELY = 0.01
"""Symbols less probable than this given the form of a known word are not added to it."""


class UnknownWords:
    """Model of unknown words: p(word | symbol) by the form of the word, from rules with counts.

    Unseen words are modelled by words seen once. The symbols of words of the same form (its
    "looks") are smoothed by those of less specific forms:

        p(A | looks)  =  (n₁(looks, A) + κ p(A | less exact looks)) / (n₁(looks) + κ)

    with n₁ the number of words seen once. Forms are, from the least specific on: any word; the
    shape of the word (capitals, digits, hyphens); and the shape with its last letter, the last two,
    and the last three (Samuelsson 1993; Brants 2000, "TnT"). If the word is known in lower case (it
    may be capitalised at the start of a sentence), this counts as `ALIKE` words seen once. Brackets
    are escaped as in trees: ( is -LRB-, if that was seen. An unseen word has the probability of a
    word seen once, distributed over symbols according to its form:

        p(word | A)  =  p(A | looks) / n(A)

    This is the mass n₁/n of Good (1953), divided among as many unseen words as there are words seen
    once. As no mass is taken from known words, p(word | A) sums to more than 1 over all words.

    A known word may have a symbol that it never had in training, as if it had been seen ``known``
    more times: p(word | A) = p of the rule + known p(A | looks) / n(A).

    Only preterminals, the symbols with lexical rules, have such words. If no word was seen once,
    the least frequent words take their place.

    >>> from softcount.text.trees import tree
    >>> from softcount.grammar.rules import count_rules
    >>> rules = count_rules([tree("(S (DT the) (NN dog) (VBG barking))"), tree("(S (VBG going))")])
    >>> UnknownWords(rules).probabilities(["running"]).round(2)  # S, DT, NN, VBG
    array([[0.  , 0.01, 0.03, 0.48]])
    """

    def __init__(self, rules: GrammarRules) -> None:
        if rules.counts is None:
            raise LearnerError(
                "these rules have no counts, which the model of unknown words needs",
                "take the rules from trees",
            )
        lexical = [
            (rule.rhs[0], rules.index[rule.lhs], count)
            for rule, count in zip(rules.rules, rules.counts, strict=True)
            if rule.is_lexical
        ]
        numbers = np.array([a for _, a, _ in lexical], np.int64)
        self._symbols, column = np.unique(numbers, return_inverse=True)
        # weighted trees may have counts below 1, which are treated as 1
        self._symbol_counts = np.maximum(np.add.reduceat(rules.counts, rules.indptr[:-1]), 1.0)
        self._words: dict[str, FloatArray] = {}
        for (word, _, count), at in zip(lexical, column.tolist(), strict=True):
            self._words.setdefault(word, np.zeros(len(self._symbols)))[at] += count
        self._posteriors_by_looks = self._learn_looks()

    def _learn_looks(self) -> dict[str, FloatArray]:
        """Estimate p(symbol | looks) of all forms of words seen once."""
        totals = {word: float(counts.sum()) for word, counts in self._words.items()}
        least = max(1.0, min(totals.values(), default=1.0))
        seen: dict[str, FloatArray] = {"": np.zeros(len(self._symbols))}
        above: dict[str, str] = {}
        for word, total in totals.items():
            if total <= least:
                chain = _list_looks(word)
                above.update(zip(chain[1:], chain, strict=False))
                for looks in chain:
                    seen[looks] = seen.get(looks, 0.0) + self._words[word]
        found = {"": (seen[""] + 1.0 / max(len(self._symbols), 1)) / (seen[""].sum() + 1.0)}
        for looks in sorted(above, key=len):  # less specific forms are shorter, so come first
            prior = LESS_EXACT * found[above[looks]]
            found[looks] = (seen[looks] + prior) / (seen[looks].sum() + LESS_EXACT)
        return found

    def symbol_posteriors(self, word: str) -> FloatArray:
        """Compute p(symbol | looks of the word) for all N symbols."""
        found = np.zeros(len(self._symbol_counts))
        if (same := escape_brackets(word)) != word and same in self._words:
            counts = self._words[same]
            found[self._symbols] = counts / counts.sum()
            return found
        known = self._posteriors_by_looks
        posteriors = known[next(x for x in reversed(_list_looks(word)) if x in known)]
        alike = self._words.get(word.lower()) if word != word.lower() else None
        if alike is not None:
            posteriors = (posteriors + ALIKE * alike / alike.sum()) / (1.0 + ALIKE)
        found[self._symbols] = posteriors
        return found

    def probabilities(self, words: Sequence[str]) -> FloatArray:
        """Compute p(word | symbol) of words that are in no rule, (words, N)."""
        posteriors = np.array([self.symbol_posteriors(word) for word in words])
        found: FloatArray = posteriors.reshape(-1, len(self._symbol_counts)) / self._symbol_counts
        return found

    def place_tokens(
        self,
        binarised: BinarisedRules,
        probabilities: FloatArray,
        tokens: Sequence[str],
        known: float = KNOWN,
    ) -> tuple[IntArray, FloatArray]:
        """Return the rows of tokens and the unknown words, for `BinarisedRules.make_lexical`.

        ``probabilities``  probabilities of the rules
        ``known``          pseudo-count of further occurrences of known words; 0: known words have
                           only the symbols of their rules, so that all their uses are counts of
                           rules
        """
        kinds = [word for word in dict.fromkeys(tokens) if known or word not in binarised.word_rows]
        unknown, first = self.probabilities(kinds), len(binarised.word_rows) + 1
        place = {word: first + k for k, word in enumerate(kinds)}
        lexical = binarised.make_lexical(probabilities, binarised.find_rows(kinds))
        for k, row in enumerate(lexical.rows.tolist()):
            if row == first - 1:
                continue
            low, high = lexical.indptr[row : row + 2]
            symbols = lexical.symbols[low:high]
            if (symbols >= binarised.n_nonterminals).any():  # a word among several items
                place[kinds[k]] = row
                unknown[k] = 0.0
                continue
            unknown[k][unknown[k] * self._symbol_counts < RARELY] = 0.0
            unknown[k] *= known
            unknown[k, symbols] += lexical.probabilities[low:high]
        known_rows = binarised.word_rows
        rows = [place[token] if token in place else known_rows[token] for token in tokens]
        return np.array(rows, np.int64), unknown


def _list_looks(word: str) -> list[str]:
    """List the forms of a word, the least specific first; each is longer than the one before."""
    shape = "".join(marks(word)) + "/"
    return ["", shape, *(shape + ending for ending in endings(word))]
