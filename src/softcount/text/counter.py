"""Counting words: texts to sparse counts, documents × words.

Texts in ASCII are cut into words by compiled loops, as `softcount.text.tokenise.words` cuts them;
words of other texts are found by it, and numbered here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy import sparse

from softcount.core.contract import SklearnContract
from softcount.core.errors import DataError, LearnerError
from softcount.core.types import Array, BoolArray, IntArray
from softcount.kernels.jit import inline, lean
from softcount.kernels.random import mix
from softcount.text.tokenise import spaces, words
from softcount.text.vocabulary import WordSpans, WordTable

Analyzer = Callable[[Any], Sequence[str]]


def as_it_is(tokens: Sequence[str]) -> Sequence[str]:
    """Return the words of a document that is already tokenised."""
    return tokens


ANALYZERS: dict[str, Analyzer] = {"words": words, "spaces": spaces, "as_it_is": as_it_is}
"""Tokenisers that a model file can name."""


class WordCounter(SklearnContract):
    """Counts the words of texts, as scikit-learn's `CountVectorizer` does, and faster.

    Columns are the words in alphabetical order, or those of a given vocabulary in its own order.

    ``analyzer``    function that returns the words of a text
    ``vocabulary``  the words to count; None: all that occur in the texts of `fit`

    >>> counter = WordCounter()
    >>> counter.fit_transform(["One fish, two fish", "Red fish"]).toarray()
    array([[2, 1, 0, 1],
           [1, 0, 1, 0]])
    >>> counter.get_feature_names_out().tolist(), counter.transform(["a red one"]).toarray()
    (['fish', 'one', 'red', 'two'], array([[0, 1, 1, 0]]))
    """

    _mixins = ("TransformerMixin",)
    vocabulary_: dict[str, int]
    """The column of each word."""

    def __init__(self, analyzer: Analyzer = words, vocabulary: Iterable[str] | None = None) -> None:
        self.analyzer = analyzer
        self.vocabulary = vocabulary

    def fit(self, texts: Iterable[Any], y: Any = None) -> Self:
        """Learn the vocabulary, unless it is given."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[Any], y: Any = None) -> Any:
        """Learn the vocabulary, unless it is given, and count the words of the same texts."""
        if self.vocabulary is not None:
            self.vocabulary_ = _number_words(self.vocabulary)
            return self.transform(texts)
        names, counts = self._count(list(texts))
        if not names:
            raise DataError(
                "no words are left to learn from: every text is empty, or all its words were "
                "dropped",
                "check the texts, and what the vectorizer drops",
            )
        self.vocabulary_ = {name: column for column, name in enumerate(sorted(names))}
        return _rename(counts, names, self.vocabulary_)

    def transform(self, texts: Iterable[Any]) -> Any:
        """Count the words of texts, (texts, words): a CSR matrix. Other words are left out."""
        self._require_vocabulary()
        names, counts = self._count(list(texts))
        return _rename(counts, names, self.vocabulary_)

    def _count(self, texts: Sequence[Any]) -> tuple[list[str], Any]:
        """Return all words, and how often each is in each text."""
        if self.analyzer is words and texts:
            with suppress(UnicodeEncodeError):  # lone surrogates: below
                return count_texts(texts)
        numbers: dict[str, int] = {}
        # a number for every new word: faster than to ask first whether it has one
        lists = [
            [numbers.setdefault(word, len(numbers)) for word in self.analyzer(text)]
            for text in texts
        ]
        ends = np.cumsum(np.fromiter(chain([0], map(len, lists)), np.int64, len(lists) + 1))
        columns = np.fromiter(chain.from_iterable(lists), np.int64, int(ends[-1]))
        counts = np.ones(len(columns), np.int64)
        shape = (len(lists), len(numbers))
        return list(numbers), sparse.csr_matrix((counts, columns, ends), shape=shape)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the words in the order of the columns."""
        self._require_vocabulary()
        return np.asarray(list(self.vocabulary_), dtype=object)

    def build_analyzer(self) -> Analyzer:
        """Return the function that splits a text into words."""
        return self.analyzer

    def _require_vocabulary(self) -> None:
        if hasattr(self, "vocabulary_"):
            return
        if self.vocabulary is None:
            from sklearn.exceptions import NotFittedError  # imported only when it is needed

            raise NotFittedError("this WordCounter has no vocabulary: call fit first")
        self.vocabulary_ = _number_words(self.vocabulary)


def _number_words(vocabulary: Iterable[str]) -> dict[str, int]:
    """Return the column of each word of a vocabulary."""
    if isinstance(vocabulary, str):
        raise LearnerError("vocabulary is a single text", "give a list of words")
    names = list(vocabulary)
    numbers = {word: column for column, word in enumerate(names)}
    if len(numbers) < len(names):
        twice = next(word for column, word in enumerate(names) if numbers[word] != column)
        raise LearnerError(f"{twice!r} is twice in the vocabulary", "give each word once")
    if not names:
        raise LearnerError("the vocabulary has no words", "give at least one")
    return numbers


def _rename(counts: Any, names: Sequence[str], columns: Mapping[str, int]) -> Any:
    """Return counts with each word in its column, in order; words without one are left out.

    ``names``  the words in the order of the present columns
    """
    places = np.fromiter((columns.get(name, -1) for name in names), np.int32, len(names))
    indices, data, ends = places[counts.indices], counts.data, counts.indptr
    if len(places) and places.min() < 0:
        known = indices >= 0
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
        indices, data, ends = indices[known], data[known], kept[ends]
    shape = (counts.shape[0], len(columns))
    renamed = sparse.csr_matrix((data, indices, ends), shape=shape)
    renamed.sum_duplicates()  # and sorts the columns
    return renamed


# The words of texts, by compiled loops

PIECE = 1 << 20
"""About so many letters are read at a time."""

_OTHER, _LETTER, _WORD = 0, 1, 2
"""Kinds of bytes: not in words; letters; digits and _, which are in no abbreviation."""
_KINDS = np.full(128, _OTHER, np.uint8)
for _byte in range(128):
    if chr(_byte).isalpha():
        _KINDS[_byte] = _LETTER
    elif chr(_byte).isdigit() or chr(_byte) == "_":
        _KINDS[_byte] = _WORD
_DOT, _APOSTROPHE, _HYPHEN, _END = b".'-\n"
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)


def count_texts(texts: Sequence[str]) -> tuple[list[str], sparse.csr_matrix]:
    """Return the words of texts, in order of first occurrence, and how often each is in each text.

    >>> names, counts = count_texts(["The dog's U.S. dog", "", "à la dog"])
    >>> names
    ['the', "dog's", 'u.s.', 'dog', 'à', 'la']
    >>> counts.toarray().tolist()
    [[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    """
    table = WordTable()
    columns: list[IntArray] = []
    counts: list[IntArray] = []
    sizes: list[IntArray] = []
    seen = np.zeros(0, np.int64)
    first = 0
    while first < len(texts):
        last, size = first, 0
        while last < len(texts) and (size < PIECE or last == first):
            size += len(texts[last])
            last += 1
        data, ends, cut = _encode(texts[first:last])
        # between two words of a text is at least a byte, and between texts none
        firsts, lasts = np.empty((2, (len(data) + len(ends)) // 2), np.int64)
        spans = WordSpans(firsts, lasts, np.empty(len(firsts), np.uint32))
        indptr = np.zeros(last - first + 1, np.int64)
        n = _find_words(data, ends, cut, spans, indptr)
        tokens = table.number(data, spans, n)
        if len(seen) < table.n_words:
            seen = np.concatenate([seen, np.full(table.n_words + len(seen), -1, np.int64)])
        values = np.empty(n, np.int64)
        n = _merge(tokens, values, indptr, seen)
        columns.append(tokens[:n].copy())
        counts.append(values[:n].copy())
        sizes.append(np.diff(indptr))
        first = last
    names = table.raw().decode().split("\n")[:-1]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(sizes))])
    shape = (len(texts), len(names))
    found = np.concatenate(columns), np.concatenate(counts)
    return names, sparse.csr_matrix((found[1], found[0], ends), shape=shape)


def _encode(texts: Sequence[str]) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the bytes of texts one after the other, where each ends, and whether it is to be cut
    at line ends only: it then is a list of words."""
    parts: list[bytes] = []
    cut = np.zeros(len(texts), np.bool_)
    for number, text in enumerate(texts):
        if text.isascii():
            parts.append(text.lower().encode())
        else:
            parts.append("".join(word + "\n" for word in words(text)).encode())
            cut[number] = True
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
    return np.frombuffer(b"".join(parts), np.uint8), ends, cut


@inline
def _skip_word(data: IntArray, i: int, end: int) -> int:
    """Return where the run of letters, digits and _ from i ends."""
    while i < end and _KINDS[data[i]] != _OTHER:
        i += 1
    return i


@lean
def _find_words(
    data: IntArray, ends: IntArray, cut: BoolArray, spans: WordSpans, indptr: IntArray
) -> int:
    """Find all words; those of text t are ``indptr[t]`` to ``indptr[t + 1]`` (exclusive)."""
    firsts, lasts, codes = spans
    n, i = 0, 0
    for t in range(len(ends)):
        begin, end = i, ends[t]
        while i < end:
            first = i
            if cut[t]:
                while data[i] != _END:
                    i += 1
            elif _KINDS[data[i]] == _OTHER:
                i += 1
                continue
            else:
                # at least two letters with a dot after each, the first of them at a word boundary
                dots = i
                if i == begin or _KINDS[data[i - 1]] == _OTHER:
                    while dots + 1 < end and _KINDS[data[dots]] == _LETTER:
                        if data[dots + 1] != _DOT:
                            break
                        dots += 2
                if dots >= i + 4:
                    i = dots
                else:
                    i = _skip_word(data, i, end)
                    while i + 1 < end and (data[i] == _APOSTROPHE or data[i] == _HYPHEN):
                        if _KINDS[data[i + 1]] == _OTHER:
                            break
                        i = _skip_word(data, i + 1, end)
            code = np.uint64(0)
            for j in range(first, i):
                code = (code ^ np.uint64(data[j])) * _MULTIPLIER
            firsts[n], lasts[n] = first, i
            codes[n] = mix(code + np.uint64(i - first)) & _LOW
            n += 1
            i += cut[t]
        indptr[t + 1] = n
    return n


@lean
def _merge(tokens: IntArray, values: IntArray, indptr: IntArray, seen: IntArray) -> int:
    """Merge equal words of each text, in place; ``seen``: for each word a place before, or −1."""
    n, first = 0, 0
    for t in range(len(indptr) - 1):
        begin, last = n, indptr[t + 1]
        for i in range(first, last):
            w = tokens[i]
            place = seen[w]
            if place >= begin and place < n and tokens[place] == w:
                values[place] += 1
            else:
                seen[w] = n
                tokens[n], values[n] = w, 1
                n += 1
        first, indptr[t + 1] = last, n
    return n
