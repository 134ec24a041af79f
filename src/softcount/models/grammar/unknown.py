"""Words that a treebank grammar has no rule for: what they look like says which symbols they have.

Words seen once stand for those never seen. Of those that look alike, some are VBG, some NN: so

    p(A | looks)  =  (n₁(looks, A) + κ p(A | less exact looks)) / (n₁(looks) + κ)

with n₁ the number of words seen once, where looks are, from the least exact on, anything; the marks
of the word (capitals, digits, hyphens); and these with its last letter, the last two, and the last
three (Samuelsson 1993; Brants 2000, "TnT"). If the word is there in lower case, which it may have
lost at the start of a sentence, this counts as `ALIKE` words seen once. Brackets are what they are
as trees have them: ( is -LRB-, if that is there. A new word has the
probability of a word that was seen once, and had each symbol as often as the looks say:

    p(word | A)  =  p(A | looks) / n(A)

This is the mass n₁/n of Good (1953), shared out among as many new words as there are words seen
once. As nothing is taken away from known words, p(word | A) sums to more than 1 over all words.

A known word may have a symbol that it never had before. It has them as if it had been seen some
more, ``known`` times: p(word | A) = p of the rule + known p(A | looks) / n(A).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.corpus.looks import endings, marks
from softcount.corpus.trees import written
from softcount.errors import LearnerError
from softcount.models.grammar.binarised import Binarised
from softcount.models.grammar.rules import Rules
from softcount.types import Array

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
    >>> from softcount.models.grammar.rules import from_trees
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
