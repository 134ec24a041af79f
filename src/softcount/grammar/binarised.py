"""Rules of any length as rules of two symbols, and words that were never seen.

Rules as the charts want them: binary, unary, or of words, in flat arrays; and back again.

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

from softcount.corpus.looks import endings, marks
from softcount.corpus.trees import Tree, written
from softcount.errors import LearnerError
from softcount.grammar.kernels.rules import Joins, RuleCounts, RuleTables, Words, chains
from softcount.grammar.rules import Rules, borders
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

    >>> from softcount.grammar.rules import from_text
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
    ) -> RuleTables:
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
        return RuleTables(np.ascontiguousarray(root, np.float64), self.n_left, joins, found, best)

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
    def tally(self, logs: Array, words: Words) -> RuleCounts:
        """Room for counts."""
        sizes = (self.n_known, len(self._left), len(self._child), len(words.symbols), 3)
        return RuleCounts(logs, *(np.zeros(size) for size in sizes))

    def used(self, tally: RuleCounts, words: Words) -> Used:
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
        """The symbol that each number of a derivation makes: see `grammar.kernels.rules`."""
        return np.concatenate([self._parent, self._tops, words.symbols])

    def rule_of(self, words: Words) -> Array:
        """The rule of each number of a derivation; −1 where there is none."""
        none = np.full(len(words.symbols) - len(self._word_rule), CERTAIN, np.int32)
        return np.concatenate([self._join_rule, self._chain_rule, self._word_rule, none])

    def counted(self, codes: Array, weights: Array, words: Words, tally: RuleCounts) -> None:
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


# Words that a treebank grammar has no rule for: what they look like says which symbols they have.
#
# Words seen once stand for those never seen. Of those that look alike, some are VBG, some NN: so
#
#     p(A | looks)  =  (n₁(looks, A) + κ p(A | less exact looks)) / (n₁(looks) + κ)
#
# with n₁ the number of words seen once, where looks are, from the least exact on, anything; the
# marks of the word (capitals, digits, hyphens); and these with its last letter, the last two, and
# the last three (Samuelsson 1993; Brants 2000, "TnT"). If the word is there in lower case, which it
# may have lost at the start of a sentence, this counts as `ALIKE` words seen once. Brackets are
# what they are as trees have them: ( is -LRB-, if that is there. A new word has the probability of
# a word that was seen once, and had each symbol as often as the looks say:
#
#     p(word | A)  =  p(A | looks) / n(A)
#
# This is the mass n₁/n of Good (1953), shared out among as many new words as there are words seen
# once. As nothing is taken away from known words, p(word | A) sums to more than 1 over all words.
#
# A known word may have a symbol that it never had before. It has them as if it had been seen some
# more, ``known`` times: p(word | A) = p of the rule + known p(A | looks) / n(A).


LESS_EXACT = 1.0
"""κ: less exact looks count as so many words seen once."""
ALIKE = 3.0
KNOWN = 0.3
"""How often known words were seen elsewhere, as it were."""
HARDLY = 0.01
"""Symbols that words of such looks hardly ever have are not added to known words."""


class UnknownWords:
    """p(word | symbol) by what words look like, from rules that have counts.

    Only symbols that have rules of single words, preterminals, have such words. If no word was seen
    once, those that were seen least stand for the new ones.

    >>> from softcount.corpus.trees import tree
    >>> from softcount.grammar.rules import from_trees
    >>> rules = from_trees([tree("(S (DT the) (NN dog) (VBG barking))"), tree("(S (VBG going))")])
    >>> UnknownWords(rules).chances(["running"]).round(2)  # S, DT, NN, VBG
    array([[0.  , 0.01, 0.03, 0.48]])
    """

    def __init__(self, rules: Rules) -> None:
        if rules.counts is None:
            raise LearnerError(
                "these rules have no counts: nothing is known of words that are in none of them",
                "take the rules from trees",
            )
        own = [
            (rule.rhs[0], rules.number[rule.lhs], count)
            for rule, count in zip(rules.rules, rules.counts, strict=True)
            if rule.is_lexical
        ]
        numbers = np.array([a for _, a, _ in own], np.int64)
        self._symbols, column = np.unique(numbers, return_inverse=True)
        # trees may count less than once; what is seen less than once says no more than that
        self._often = np.maximum(np.add.reduceat(rules.counts, rules.indptr[:-1]), 1.0)
        self._words: dict[str, Array] = {}
        for (word, _, count), at in zip(own, column.tolist(), strict=True):
            self._words.setdefault(word, np.zeros(len(self._symbols)))[at] += count
        self._looks = self._of_looks()

    def _of_looks(self) -> dict[str, Array]:
        """p(symbol | looks) of all looks that words seen once have."""
        totals = {word: float(counts.sum()) for word, counts in self._words.items()}
        least = max(1.0, min(totals.values(), default=1.0))
        seen: dict[str, Array] = {"": np.zeros(len(self._symbols))}
        above: dict[str, str] = {}
        for word, total in totals.items():
            if total <= least:
                chain = _looks(word)
                above.update(zip(chain[1:], chain, strict=False))
                for looks in chain:
                    seen[looks] = seen.get(looks, 0.0) + self._words[word]
        found = {"": (seen[""] + 1.0 / max(len(self._symbols), 1)) / (seen[""].sum() + 1.0)}
        for looks in sorted(above, key=len):  # those above are shorter
            behind = LESS_EXACT * found[above[looks]]
            found[looks] = (seen[looks] + behind) / (seen[looks].sum() + LESS_EXACT)
        return found

    def symbols_of(self, word: str) -> Array:
        """p(symbol | looks of the word), of all N symbols."""
        found = np.zeros(len(self._often))
        found[self._symbols] = self._shares(word)
        return found

    def _shares(self, word: str) -> Array:
        if (same := written(word)) != word and same in self._words:
            counts = self._words[same]
            return np.asarray(counts / counts.sum())
        shares = self._looks[next(x for x in reversed(_looks(word)) if x in self._looks)]
        alike = self._words.get(word.lower()) if word != word.lower() else None
        if alike is not None:
            shares = (shares + ALIKE * alike / alike.sum()) / (1.0 + ALIKE)
        return shares

    def chances(self, words: Sequence[str]) -> Array:
        """p(word | symbol) of words that are in no rule, (words, N)."""
        shares = [self.symbols_of(word) for word in words]
        found: Array = np.array(shares).reshape(-1, len(self._often)) / self._often
        return found

    def placed(
        self, own: Binarised, chances: Array, tokens: Sequence[str], known: float = KNOWN
    ) -> tuple[Array, Array]:
        """Rows of tokens, and what the last of them are: what `Binarised.words` is given.

        ``chances``  p of rules
        ``known``    how often known words were seen elsewhere, as it were; 0: they have the symbols
                     of their rules only, and counts of what was used are counts of rules
        """
        kinds = [word for word in dict.fromkeys(tokens) if known or word not in own.word_rows]
        more, first = self.chances(kinds), len(own.word_rows) + 1
        place = {word: first + k for k, word in enumerate(kinds)}
        words = own.words(chances, own.rows(kinds))
        for k, row in enumerate(words.rows.tolist()):
            if row == first - 1:
                continue
            low, high = words.indptr[row : row + 2]
            symbols = words.symbols[low:high]
            if (symbols >= own.n_known).any():  # a word among several items stays what it is
                place[kinds[k]] = row
                more[k] = 0.0
                continue
            more[k][more[k] * self._often < HARDLY] = 0.0
            more[k] *= known
            more[k, symbols] += words.chances[low:high]
        known_rows = own.word_rows
        rows = [place[token] if token in place else known_rows[token] for token in tokens]
        return np.array(rows, np.int64), more


def _looks(word: str) -> list[str]:
    """What a word looks like, the least exact first; each is longer than the one before."""
    shape = "".join(marks(word)) + "/"
    return ["", shape, *(shape + ending for ending in endings(word))]
