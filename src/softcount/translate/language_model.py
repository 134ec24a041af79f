"""n-gram language models with Kneser–Ney smoothing.

A back-off n-gram model is an automaton: one state per context, one transition per word.

N-grams are the nodes of a trie, numbered level by level and, within a level, by their parent (the
n-gram without its last word) and their last word. So the children of a node are adjacent and sorted
by word. Node 0 is the empty n-gram; the unigram of word w is node 1 + w.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain, count, pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from softcount.core import store
from softcount.core.contract import SklearnContract
from softcount.core.errors import DataError, LearnerError, StoreError, brief
from softcount.core.estimate import NUMBER, Estimate, count_bytes, make_estimate
from softcount.core.parameters import check_parameters, check_whole
from softcount.core.store import AGAIN, numbers
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.core.warnings import warn_of_ignored
from softcount.kernels.jit import njit
from softcount.translate.parameters import LanguageModelParameters


class Automaton(NamedTuple):
    """An n-gram model as a finite automaton. Node i is the n-gram w_1 … w_k.

    ``words``     w_k
    ``first``     the children of i are the nodes first_i to first_{i+1}
    ``suffix``    the node of w_2 … w_k
    ``state``     the longest suffix of w_1 … w_k that has children: the state after this n-gram
    ``log_prob``  log p(w_k | w_1 … w_{k-1})
    ``back_off``  the log back-off weight of the context w_1 … w_k, for words unseen after it
    """

    words: IntArray  # each (nodes,), except ``first``: (nodes + 1,)
    first: IntArray
    suffix: IntArray
    state: IntArray
    log_prob: FloatArray
    back_off: FloatArray


@njit
def child(words: Array, first: Array, node: Any, word: Any) -> Any:
    """Return the node of the n-gram ``node`` extended by a word, or -1."""
    if node == 0:
        return 1 + word
    low, high = first[node], first[node + 1]
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < first[node + 1] and words[low] == word else -1


@njit
def advance(model: Automaton, state: Any, word: Any) -> tuple[Any, Any]:
    """Return log p(word | state), and the next state."""
    backed_off = 0.0
    node = child(model.words, model.first, state, word)
    while node < 0:
        backed_off += model.back_off[state]
        state = model.suffix[state]
        node = child(model.words, model.first, state, word)
    return backed_off + model.log_prob[node], model.state[node]


@njit
def log_probs(model: Automaton, start: Any, words: Array, borders: Array) -> Array:
    """Compute log p of each sentence i: its words borders_i to borders_{i+1}, including </s>."""
    totals = np.zeros(len(borders) - 1)
    for i in range(len(totals)):
        state = start
        for t in range(borders[i], borders[i + 1]):
            log_p, state = advance(model, state, words[t])
            totals[i] += log_p
    return totals


@njit
def after(model: Automaton, start: Any, words: Array) -> Any:
    """Return the state after these words."""
    state = start
    for word in words:
        state = advance(model, state, word)[1]
    return state


class NGrams(NamedTuple):
    """The nodes of a trie of n-grams, with the counts that Kneser–Ney smoothing needs.

    ``counts``  of an n-gram of the highest order, or one that begins with <s>: its frequency; of
                all others: the number of distinct words that precede it (Kneser & Ney 1995)
    """

    words: IntArray  # each (nodes,), except ``first``: (nodes + 1,)
    first: IntArray
    suffix: IntArray
    counts: IntArray

    @property
    def levels(self) -> list[int]:
        """Level borders: the n-grams of length k are the nodes levels_k to levels_{k+1}."""
        borders = [0, 1]
        while borders[-1] < len(self.words):
            borders.append(int(self.first[borders[-1]]))
        return borders

    @property
    def parents(self) -> Array:
        """The parent of each node: its n-gram without the last word; 0 for the empty n-gram."""
        parents: Array = np.repeat(np.arange(len(self.words)), np.diff(self.first))
        return np.concatenate([[0], parents])


class _Level(NamedTuple):
    """The n-grams of one length: parent and last word, suffix, count, and which begin with <s>."""

    parents: IntArray  # each (n-grams,)
    words: IntArray
    suffix: IntArray
    counts: IntArray
    begins: BoolArray


def count_ngrams(tokens: IntArray, borders: IntArray, n_words: int, order: int) -> NGrams:
    """Count all n-grams up to ``order`` in sentences <s> … </s>, none across sentence borders.

    >>> ngrams = count_ngrams(np.array([2, 3, 3, 1]), np.array([0, 4]), 4, 2)
    >>> ngrams.levels
    [0, 1, 5, 8]
    >>> ngrams.words[5:].tolist(), ngrams.counts[5:].tolist()
    ([3, 1, 3], [1, 1, 1])
    """
    at = np.arange(len(tokens)) - np.repeat(borders[:-1], np.diff(borders))
    none = np.zeros(n_words, np.int64)
    often = np.bincount(tokens[at > 0], minlength=n_words)
    levels = [_Level(none, np.arange(n_words), none, often, none.astype(bool))]
    node, size = 1 + tokens.astype(np.int64), 1
    for k in range(2, order + 1):
        # n-grams of length k, from the nodes of the (k − 1)-grams that end at each token
        before, n = levels[-1], len(levels[-1].words)
        ends = np.flatnonzero(at >= k - 1)
        found, index, inverse, counts = np.unique(
            node[ends - 1] * n_words + tokens[ends],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        one = ends[index]
        longer = _Level(found // n_words, found % n_words, node[one], counts, at[one] == k - 1)
        preceding = np.bincount(longer.suffix - size, minlength=n)
        levels[-1] = before._replace(counts=np.where(before.begins, before.counts, preceding))
        levels.append(longer)
        size += n
        node = np.zeros(len(tokens), np.int64)
        node[ends] = size + inverse
    parents, words, suffix, counts, _ = (np.concatenate(part) for part in zip(*levels, strict=True))
    first = 1 + np.searchsorted(parents, np.arange(len(parents) + 2))
    return NGrams(np.r_[0, words], first, np.r_[0, suffix], np.r_[0, counts])


HALF = 0.5
"""The discount if it cannot be estimated from the counts: half of a count of one."""


def are_usable(discounts: Array) -> bool:
    """Whether discounts are positive, and no larger than the counts 1, 2 and 3 they apply to."""
    return bool(np.all((discounts > 0) & (discounts <= [1, 2, 3])))


def estimate_discounts(counts: Array) -> Array:
    """Estimate D_1, D_2 and D_3+ for the n-grams of one level.

    With n_c the number of n-grams that have count c, Y = n_1 / (n_1 + 2 n_2) and
    D_c = c - (c + 1) Y n_{c+1} / n_c (Chen & Goodman 1998, eq. 26). If these are undefined, outside
    (0, c], or would leave less of a larger count, as happens with tiny corpora, all three are Y
    (Ney, Essen & Kneser 1994); if Y is undefined or not below one, all three are one half.

    >>> estimate_discounts(np.repeat([1, 2, 3, 4], [40, 12, 6, 4])).round(3).tolist()
    [0.625, 1.062, 1.333]
    >>> estimate_discounts(np.array([1, 1, 2])).tolist()
    [0.5, 0.5, 0.5]
    >>> estimate_discounts(np.array([1, 7])).tolist()
    [0.5, 0.5, 0.5]
    """
    n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(float)
    single = n[0] / (n[0] + 2 * n[1]) if n[0] > 0 and n[1] > 0 else HALF
    if n[:3].all():
        c = np.arange(1, 4)
        modified: Array = c - (c + 1) * single * n[1:] / n[:3]
        if are_usable(modified) and np.all(np.diff(modified) <= 1):
            return modified
    return np.full(3, single)


def smooth_counts(ngrams: NGrams, discounts: Array) -> Automaton:
    """Compute all probabilities by interpolated Kneser–Ney smoothing.

    Kneser & Ney (1995); with three discounts, the modified form (Chen & Goodman 1998):

    p(w | h) = (c(hw) - D(c(hw))) / Σ_v c(hv) + γ(h) p(w | h'), where h' is h without its first word
    and γ(h) = Σ_v D(c(hv)) / Σ_v c(hv). Unigrams are interpolated with the uniform distribution
    over all words, <unk> and </s>.
    """
    words, first, suffix, counts = ngrams
    size, parents = len(counts), ngrams.parents
    levels = list(pairwise(ngrams.levels))[1:]
    discount = np.zeros(size)
    for (low, high), row in zip(levels, discounts, strict=False):  # there may be no long n-grams
        discount[low:high] = np.r_[0.0, row][np.minimum(counts[low:high], 3)]
    totals = np.bincount(parents[1:], counts[1:], size)
    discounted = np.bincount(parents[1:], discount[1:], size)
    inner = totals > 0
    gamma = np.divide(discounted, totals, out=np.ones(size), where=inner)
    p = np.ones(size)
    p[0] = 1.0 / (ngrams.levels[2] - 2)  # all unigrams but <s>, which is never predicted
    p[1:] = (counts[1:] - discount[1:]) / totals[parents[1:]]
    state = np.arange(size)
    for low, high in levels:
        p[low:high] += gamma[parents[low:high]] * p[suffix[low:high]]
        state[low:high] = np.where(inner[low:high], state[low:high], state[suffix[low:high]])
    p[[0, 1 + MARKS.index(START)]] = 1.0, 0.0
    with np.errstate(divide="ignore"):
        return Automaton(words, first, suffix, state, np.log(p), np.log(gamma))


UNKNOWN, END, START = "<unk>", "</s>", "<s>"
MARKS = (UNKNOWN, END, START)
"""Special words, with indices 0, 1 and 2; other words follow in the order of first appearance."""


def split_words(sentence: Any) -> list[str]:
    """Convert a sentence to a list of words: texts are split at white space.

    >>> split_words("of the  people")
    ['of', 'the', 'people']
    """
    if isinstance(sentence, str):
        return sentence.split()
    try:
        words = list(sentence)
    except TypeError:
        words = [sentence]
    for word in words:
        if not isinstance(word, str):
            raise DataError(
                f"{brief(word)} is not a word", "give sentences as texts, or as lists of words"
            )
    return words


def split_all(sentences: Any) -> Iterator[list[str]]:
    """Yield each sentence as a list of words; errors name the sentence's index."""
    if isinstance(sentences, str) or not isinstance(sentences, Iterable):
        raise DataError(
            f"{brief(sentences)} is not a list of sentences", "give a list of texts: [text]"
        )
    for number, sentence in enumerate(sentences):
        try:
            yield split_words(sentence)
        except DataError as error:
            error.message = f"sentence {number}: {error.message}"
            raise


def number_sentences(sentences: Any) -> tuple[list[str], Array, Array]:
    """Return the vocabulary, all sentences <s> … </s> in one array of indices, and borders."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    for mark in MARKS:
        numbers[mark]  # assigns the next index
    lists = list(split_all(sentences))
    if not lists:
        raise DataError("there are no sentences", "give at least one")
    for number, words in enumerate(lists):
        for mark in (START, END):
            if mark in words:
                raise DataError(
                    f"sentence {number} contains {mark!r}",
                    "remove it: the model adds sentence boundaries itself",
                )
    marked = chain.from_iterable(chain((START,), words, (END,)) for words in lists)
    tokens = np.fromiter(map(numbers.__getitem__, marked), np.int32)
    return list(numbers), tokens, _borders(len(words) + 2 for words in lists)


def look_up_sentences(sentences: Any, numbers: Mapping[str, int]) -> tuple[Array, Array]:
    """Return all sentences, each with its </s>, in one array of indices, and borders."""
    lists = list(split_all(sentences))
    marked = chain.from_iterable(chain((numbers.get(w, 0) for w in words), (1,)) for words in lists)
    return np.fromiter(marked, np.int32), _borders(len(words) + 1 for words in lists)


def _borders(lengths: Iterable[int]) -> Array:
    return np.fromiter(accumulate(lengths, initial=0), np.int64)


def _is_trie(ngrams: NGrams, n_words: int, order: int) -> bool:
    """Whether nodes, children, suffixes and counts are as the kernels assume."""
    words, first, suffix, counts = ngrams
    size = len(words)
    fits = len(first) == size + 1 and len(suffix) == len(counts) == size > n_words
    if not fits or first[0] != 1 or first[1] != 1 + n_words or first[-1] != size:
        return False
    if np.any(np.diff(first) < 0) or np.any(first[:-1] <= np.arange(size)):
        return False
    levels, parents = ngrams.levels, ngrams.parents
    if len(levels) > order + 2 or levels[-1] != size:
        return False
    if not np.array_equal(words[1 : 1 + n_words], np.arange(n_words)) or words.max() >= n_words:
        return False
    siblings = parents[2:] == parents[1:-1]
    if np.any(siblings & (np.diff(words[1:]) <= 0)) or np.any(suffix[: 1 + n_words] != 0):
        return False
    # every n-gram of two or more words has a positive count, and so has some word, but not <s>
    start = 1 + MARKS.index(START)
    if np.any(counts[1 + n_words :] <= 0) or counts[1:].sum() <= 0 or counts[start] != 0:
        return False
    level = np.repeat(np.arange(len(levels) - 1), np.diff(levels))
    longer = np.arange(1 + n_words, size)
    return bool(
        np.all(suffix < np.arange(size) + (np.arange(size) == 0))
        and np.all(level[suffix[longer]] == level[longer] - 1)
        and np.all(words[suffix[longer]] == words[longer])
        and np.all(parents[suffix[longer]] == suffix[parents[longer]])
    )


class LanguageModel(LanguageModelParameters, store.Saveable, SklearnContract):
    """An n-gram language model with interpolated Kneser–Ney smoothing.

    p(w_1 … w_m) = Π_i p(w_i | w_{i-n+1} … w_{i-1}), with <s> before the first word and </s> as the
    last; p as in Chen & Goodman (1998). Sentences are lists of words, or texts, which are split at
    white space. Unseen words are treated as <unk>, which has a probability like any other word:
    after every context the probabilities of the known words, <unk> and </s> sum to one.

    ``order``     n: the length of the n-grams, including the predicted word
    ``discount``  the discount subtracted from every count: one number, or three, for counts of 1, 2
                  and more; None: three for each n-gram length, estimated from how many n-grams
                  occur 1, 2, 3 and 4 times (for tiny corpora, where this fails, see
                  `softcount.translate.language_model.estimate_discounts`)

    >>> model = LanguageModel(order=2).fit(["the house is small", "the house is old"])
    >>> model.next_words("the house", 1)
    [('is', 0.82...)]
    >>> model.log_prob("the house is old") > model.log_prob("the is house old")
    True
    """

    words_: list[str]
    """<unk>, </s>, <s>, and the other words in the order of first appearance."""
    discounts_: Array
    """(order, 3): the discounts of counts of 1, 2 and more, of unigrams, bigrams, …"""
    _ngrams: NGrams
    _automaton: Automaton
    """The smoothed probabilities, for the kernels of `softcount.translate.language_model`."""
    _numbers: dict[str, int]
    """The index of each word but <s> and </s>."""
    signature_: str
    """One line that describes the training data."""

    def fit(self, sentences: Any, y: Any = None) -> Self:
        """Count the n-grams of sentences (texts or lists of words); ``y`` is ignored."""
        warn_of_ignored(self, y, "To classify, fit one for each class")
        check_parameters(self)
        discounts = np.full((self.order, 3), HALF)
        if self.discount is not None:
            try:
                discounts[:] = np.asarray(self.discount, dtype=float)
            except (TypeError, ValueError, OverflowError):
                discounts[:] = np.nan
            if not are_usable(discounts):
                raise LearnerError(
                    f"discount={brief(self.discount)}: must be above 0 and at most the count",
                    "give one number, at most 1; or three, at most 1, 2 and 3; or None",
                )
        words, tokens, borders = number_sentences(sentences)
        ngrams = count_ngrams(tokens, borders, len(words), self.order)
        if self.discount is None:
            levels = pairwise(ngrams.levels[1:])
            for row, (low, high) in zip(discounts, levels, strict=False):
                row[:] = estimate_discounts(ngrams.counts[low:high])
        signature = f"language model · order {self.order} · {len(borders) - 1} sentences"
        self._keep(words, ngrams, discounts, signature)
        return self

    def estimate(self, sentences: Any, y: Any = None) -> Estimate:
        """Estimate the memory and the work that `fit` needs, without fitting."""
        check_parameters(self)
        _, tokens, borders = number_sentences(sentences)
        n, data = len(tokens), count_bytes(tokens)
        grams = 9.0 * NUMBER * self.order * n  # arrays for sorting, uniqueness and trie links
        return make_estimate(len(borders) - 1, n, 100.0 * self.order * n, data=data, grams=grams)

    def _keep(self, words: list[str], ngrams: NGrams, discounts: Array, signature: str) -> None:
        """Set the fitted attributes from these counts."""
        self.words_, self._ngrams, self.discounts_ = words, ngrams, discounts
        self._automaton = smooth_counts(ngrams, discounts)
        self._numbers = {word: i for i, word in enumerate(words) if word not in (START, END)}
        self.signature_ = signature

    # probabilities of sentences
    def log_prob(self, sentence: Any) -> float:
        """Compute log p(sentence), including </s>."""
        return float(self.score_samples([sentence])[0])

    def score_samples(self, sentences: Any) -> Array:
        """Compute log p of each sentence."""
        self._require_fit()
        words, borders = look_up_sentences(sentences, self._numbers)
        return log_probs(self._automaton, self._start, words, borders)

    def score(self, sentences: Any, y: Any = None) -> float:
        """Compute the mean of log p(sentence)."""
        return float(np.mean(self._score_non_empty(sentences)[0]))

    def perplexity(self, sentences: Any) -> float:
        """Compute exp(-Σ log p / N), where N is the number of words, counting each </s>."""
        logs, n = self._score_non_empty(sentences)
        return float(np.exp(-logs.sum() / n))

    def _score_non_empty(self, sentences: Any) -> tuple[FloatArray, int]:
        """Compute log p of each sentence, and N; raise if there are no sentences."""
        self._require_fit()
        words, borders = look_up_sentences(sentences, self._numbers)
        if len(borders) == 1:
            raise DataError("there are no sentences", "give at least one")
        return log_probs(self._automaton, self._start, words, borders), len(words)

    # prediction and sampling
    def next_words(self, context: Any = "", n: int | None = 10) -> list[tuple[str, float]]:
        """Return the n most probable next words (None: all) after the start of a sentence."""
        self._require_fit()
        if n is not None:
            check_whole("n", n)
        numbers = np.array([self._numbers.get(word, 0) for word in split_words(context)], np.int32)
        p = self._distribution(int(after(self._automaton, self._start, numbers)))
        likeliest = np.argsort(-p, kind="stable")
        predicted = likeliest[likeliest != MARKS.index(START)][:n]
        return [(self.words_[w], float(p[w])) for w in predicted]

    def generate(self, n: int = 1, random_state: Any = 0) -> list[list[str]]:
        """Sample new sentences word by word; a word may be <unk>."""
        self._require_fit()
        check_whole("n", n, 0)
        rng = np.random.default_rng(random_state)
        sentences: list[list[str]] = []
        for _ in range(n):
            state, words = self._start, list[str]()
            while True:
                sums = np.cumsum(self._distribution(state))
                word = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
                if word == MARKS.index(END):
                    break
                words.append(self.words_[word])
                state = int(after(self._automaton, state, np.array([word], np.int32)))
            sentences.append(words)
        return sentences

    def _distribution(self, state: int) -> Array:
        """Compute p(w | state) of every word, in the order of ``words_``."""
        model = self._automaton
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
    def _start(self) -> int:
        """The state at the beginning of a sentence."""
        return int(self._automaton.state[1 + MARKS.index(START)])

    def _require_fit(self) -> None:
        if not hasattr(self, "_automaton"):
            # imported only here: a caller that catches this error has imported sklearn already
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this LanguageModel has not been fitted: call fit first")

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        return {**self._ngrams._asdict(), "discounts": self.discounts_}, {"words": self.words_}

    def unpack(self, stored: store.Stored, given: Mapping[str, Any]) -> None:
        check_parameters(self)
        words = store.vocabulary(stored.meta["words"])
        if tuple(words[: len(MARKS)]) != MARKS:
            raise StoreError("the words are not those of a language model", AGAIN)
        for name in NGrams._fields:
            array = stored.arrays[name]
            if array.ndim != 1 or array.dtype != np.int64 or array.min(initial=0) < 0:
                raise StoreError(f"{name!r} is not a list of non-negative integers", AGAIN)
        ngrams = NGrams(*(np.asarray(stored.arrays[name]) for name in NGrams._fields))
        if not _is_trie(ngrams, len(words), self.order):
            raise StoreError("the n-grams are inconsistent", AGAIN)
        discounts = numbers(stored, "discounts", (self.order, 3))
        if not are_usable(discounts):
            raise StoreError("the discounts are invalid", AGAIN)
        self._keep(words, ngrams, discounts, stored.signature)
