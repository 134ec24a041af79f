"""Counts of the words of texts, as `softcount.text.tokenise.words` finds them, by compiled loops.

Texts in ASCII are cut into words here; words of others are found by `words`, and numbered here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from softcount.core.types import BoolArray, IntArray
from softcount.kernels.jit import inline, lean
from softcount.kernels.random import mix
from softcount.text.tokenise import words
from softcount.text.vocabulary import WordSpans, WordTable

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
