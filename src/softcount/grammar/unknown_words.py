"""Words that a treebank grammar has no rule for: their looks say which symbols they have.

Words seen once stand for those never seen. Of those that look alike, some are VBG, some NN: so

    p(A | looks)  =  (n₁(looks, A) + κ p(A | less exact looks)) / (n₁(looks) + κ)

with n₁ the number of words seen once, where looks are, from the least exact on, anything; the marks
of the word (capitals, digits, hyphens); and these with its last letter, the last two, and the last
three (Samuelsson 1993; Brants 2000, "TnT"). If the word is there in lower case, which it may have
lost at the start of a sentence, this counts as `ALIKE` words seen once. Brackets are what they are
in trees: ( is -LRB-, if that is there. A new word has the probability of a word that was seen once,
and had each symbol as often as the looks say:

    p(word | A)  =  p(A | looks) / n(A)

This is the mass n₁/n of Good (1953), shared out among as many new words as there are words seen
once. As nothing is taken away from known words, p(word | A) sums to more than 1 over all words.

A known word may have a symbol that it never had before. It has them as if it had been seen
``known`` more times: p(word | A) = p of the rule + known p(A | looks) / n(A).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.core.errors import LearnerError
from softcount.core.types import FloatArray, IntArray
from softcount.grammar.binarise import BinarisedRules
from softcount.grammar.rules import GrammarRules
from softcount.text.tokenise import endings, marks
from softcount.text.trees import escape_brackets

LESS_EXACT = 1.0
"""κ: the number of words seen once that less exact looks count as."""
ALIKE = 3.0
"""The number of words seen once that the same word in lower case counts as."""
KNOWN = 0.3
"""How often known words count as having been seen elsewhere."""
RARELY = 0.01
"""Symbols that are less probable by the looks of a known word are not added to it."""


class UnknownWords:
    """p(word | symbol) by what words look like, from rules that have counts.

    Only preterminals, symbols that have lexical rules, have such words. If no word was seen once,
    those that were seen least stand for the new ones.

    >>> from softcount.text.trees import tree
    >>> from softcount.grammar.rules import count_rules
    >>> rules = count_rules([tree("(S (DT the) (NN dog) (VBG barking))"), tree("(S (VBG going))")])
    >>> UnknownWords(rules).probabilities(["running"]).round(2)  # S, DT, NN, VBG
    array([[0.  , 0.01, 0.03, 0.48]])
    """

    def __init__(self, rules: GrammarRules) -> None:
        if rules.counts is None:
            raise LearnerError(
                "these rules have no counts: nothing is known of words that are in none of them",
                "take the rules from trees",
            )
        lexical = [
            (rule.rhs[0], rules.index[rule.lhs], count)
            for rule, count in zip(rules.rules, rules.counts, strict=True)
            if rule.is_lexical
        ]
        numbers = np.array([a for _, a, _ in lexical], np.int64)
        self._symbols, column = np.unique(numbers, return_inverse=True)
        # trees may count less than once; what is seen less than once says no more than that
        self._symbol_counts = np.maximum(np.add.reduceat(rules.counts, rules.indptr[:-1]), 1.0)
        self._words: dict[str, FloatArray] = {}
        for (word, _, count), at in zip(lexical, column.tolist(), strict=True):
            self._words.setdefault(word, np.zeros(len(self._symbols)))[at] += count
        self._posteriors_by_looks = self._learn_looks()

    def _learn_looks(self) -> dict[str, FloatArray]:
        """p(symbol | looks) of all looks that words seen once have."""
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
        for looks in sorted(above, key=len):  # those above are shorter
            prior = LESS_EXACT * found[above[looks]]
            found[looks] = (seen[looks] + prior) / (seen[looks].sum() + LESS_EXACT)
        return found

    def symbol_posteriors(self, word: str) -> FloatArray:
        """p(symbol | looks of the word), of all N symbols."""
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
        """p(word | symbol) of words that are in no rule, (words, N)."""
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
        """Rows of tokens, and unknown words: what `BinarisedRules.make_lexical` is given.

        ``probabilities``  those of rules
        ``known``          how often known words count as having been seen elsewhere; 0: they have
                           the symbols of their rules only, and counts of what was used are counts
                           of rules
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
    """What a word looks like, the least exact first; each is longer than the one before."""
    shape = "".join(marks(word)) + "/"
    return ["", shape, *(shape + ending for ending in endings(word))]
