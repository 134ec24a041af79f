"""The estimator: sentences in, probabilities of sentences out."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from softcount import store
from softcount.errors import DataError
from softcount.estimate import NUMBER, Estimate, held, needing
from softcount.kernels.ngrams import Automaton, after, log_probs
from softcount.models.ignored import warn_of_ignored
from softcount.models.language import files
from softcount.models.language.kneser_ney import discounts_by_level, given_discounts, smoothed
from softcount.models.language.ngrams import NGrams, count_ngrams
from softcount.models.language.words import END, MARKS, START, cut, looked_up, numbered
from softcount.models.settings import check_whole
from softcount.types import Array


class LanguageModel(BaseEstimator):  # type: ignore[misc]
    """An n-gram model of sentences with interpolated Kneser-Ney smoothing.

    p(w_1 … w_m) = Π_i p(w_i | w_{i-n+1} … w_{i-1}), with <s> before the first word and </s> as the
    last; p as in Chen & Goodman (1998). Sentences are lists of words, or texts, which are cut at
    white space. A word that was never seen is <unk>, which has its share like any other word: after
    every context the known words, <unk> and </s> add up to one.

    ``order``     n: so many words, the one foretold among them, are looked at
    ``discount``  what is taken from every count: a number, or three, for counts of 1, 2 and more;
                  None: three for each length of n-grams, estimated from how many n-grams occur 1,
                  2, 3 and 4 times (on tiny corpora, where that fails: see
                  `softcount.models.language.kneser_ney.discounts_of`)

    >>> model = LanguageModel(order=2).fit(["the house is small", "the house is old"])
    >>> model.next_words("the house", 1)
    [('is', 0.82...)]
    >>> model.log_prob("the house is old") > model.log_prob("the is house old")
    True
    """

    words_: list[str]
    """<unk>, </s>, <s>, and the words in the order in which they first appeared."""
    discounts_: Array
    """(order, 3): what is taken from counts of 1, 2 and more, of unigrams, bigrams, …"""
    ngrams_: NGrams
    automaton_: Automaton
    """What kernels ask for probabilities (`softcount.kernels.ngrams`)."""
    numbers_: dict[str, int]
    """Number of each word that can be foretold."""
    signature_: str
    """One line that says what was learned from."""

    def __init__(self, order: int = 3, discount: float | Sequence[float] | None = None) -> None:
        self.order = order
        self.discount = discount

    def fit(self, sentences: Any, y: Any = None) -> Self:
        """Count the n-grams of sentences (texts or lists of words); ``y`` is not looked at."""
        warn_of_ignored(self, y, "To tell classes apart by it, learn one for each class")
        check_whole("order", self.order, 1, "3 for trigrams")
        wanted = None if self.discount is None else given_discounts(self.discount, self.order)
        words, tokens, borders = numbered(sentences)
        ngrams = count_ngrams(tokens, borders, len(words), self.order)
        said = f"language model · order {self.order} · {len(borders) - 1} sentences"
        self.keep(
            words,
            ngrams,
            discounts_by_level(ngrams, self.order) if wanted is None else wanted,
            said,
        )
        return self

    def estimate(self, sentences: Any, y: Any = None) -> Estimate:
        """What `fit` will need: bytes, and the work of its one step. Nothing is learned."""
        check_whole("order", self.order, 1, "3 for trigrams")
        _, tokens, borders = numbered(sentences)
        n, data = len(tokens), held(tokens)
        grams = 9.0 * NUMBER * self.order * n  # each is sorted, told apart and linked
        return needing(len(borders) - 1, n, 100.0 * self.order * n, data=data, grams=grams)

    def keep(self, words: list[str], ngrams: NGrams, discounts: Array, signature: str) -> None:
        """Take these counts for this model's own."""
        self.words_, self.ngrams_, self.discounts_ = words, ngrams, discounts
        self.automaton_ = smoothed(ngrams, discounts)
        self.numbers_ = {word: i for i, word in enumerate(words) if word not in (START, END)}
        self.signature_ = signature

    # what it says of sentences
    def log_prob(self, sentence: Any) -> float:
        """log p(sentence), its end included."""
        return float(self.score_samples([sentence])[0])

    def score_samples(self, sentences: Any) -> Array:
        """log p of each sentence."""
        self._require_fit()
        words, borders = looked_up(sentences, self.numbers_)
        return log_probs(self.automaton_, self.start_, words, borders)

    def score(self, sentences: Any, y: Any = None) -> float:
        """The mean of log p(sentence)."""
        return float(np.mean(self._some(sentences)[0]))

    def perplexity(self, sentences: Any) -> float:
        """exp(-Σ log p / N), N being the number of words and ends of sentences."""
        logs, n = self._some(sentences)
        return float(np.exp(-logs.sum() / n))

    def _some(self, sentences: Any) -> tuple[Array, int]:
        """log p of each of at least one sentence, and how many words were foretold."""
        self._require_fit()
        words, borders = looked_up(sentences, self.numbers_)
        if len(borders) == 1:
            raise DataError("there are no sentences", "give at least one")
        return log_probs(self.automaton_, self.start_, words, borders), len(words)

    # what comes next
    def next_words(self, context: Any = "", n: int | None = 10) -> list[tuple[str, float]]:
        """The n likeliest words (None: all) after the beginning of a sentence, likeliest first."""
        self._require_fit()
        if n is not None:
            check_whole("n", n)
        numbers = np.array([self.numbers_.get(word, 0) for word in cut(context)], np.int32)
        p = self.distribution(int(after(self.automaton_, self.start_, numbers)))
        likeliest = np.argsort(-p, kind="stable")
        foretold = likeliest[likeliest != MARKS.index(START)][:n]
        return [(self.words_[w], float(p[w])) for w in foretold]

    def generate(self, n: int = 1, random_state: Any = 0) -> list[list[str]]:
        """New sentences, drawn word by word; a word may be <unk>."""
        self._require_fit()
        check_whole("n", n, 0)
        rng = np.random.default_rng(random_state)
        return [self._drawn(rng) for _ in range(n)]

    def _drawn(self, rng: np.random.Generator) -> list[str]:
        state, words = self.start_, list[str]()
        while True:
            sums = np.cumsum(self.distribution(state))
            word = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
            if word == MARKS.index(END):
                return words
            words.append(self.words_[word])
            state = int(after(self.automaton_, state, np.array([word], np.int32)))

    def distribution(self, state: int) -> Array:
        """p(w | state) for every word, in the order of ``words_``."""
        model = self.automaton_
        chain = [state]
        while chain[-1]:
            chain.append(int(model.suffix[chain[-1]]))
        p = np.zeros(len(self.words_))
        for node in reversed(chain):
            children = slice(int(model.first[node]), int(model.first[node + 1]))
            p *= np.exp(model.back_off[node])
            p[model.words[children]] = np.exp(model.log_prob[children])
        return p

    @property
    def start_(self) -> int:
        """The state in which sentences begin."""
        return int(self.automaton_.state[1 + MARKS.index(START)])

    def _require_fit(self) -> None:
        if not hasattr(self, "automaton_"):
            raise NotFittedError("this LanguageModel has not been fitted: call fit first")

    # files
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, for `softcount.load`."""
        self._require_fit()
        it = files.content(self)
        store.write(path, it.kind, it.arrays, it.meta, it.signature)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a model that `save` wrote."""
        return cls.restore(store.read(path, cls.__name__))

    @classmethod
    def restore(cls, stored: store.Stored) -> Self:
        """A model from what a file holds (see `softcount.load`)."""
        return files.restore(cls, stored)
