"""Phrase extraction from word alignments, and phrase tables with scores.

A phrase pair is a box of the alignment matrix: a source span and a target span with at least one
link between them and no link from a word of either to a word outside (Och & Ney 2004). Unaligned
words may be at its borders.

The scores of a phrase table are those of Koehn, Och & Marcu (2003), from counts c of phrase pairs
and of links between words:

    φ(source | target) = c(source, target) / c(target)
    lex(source | target) = Π_i mean over the links (i, j) of word i of w(s_i | t_j)

and the same in the other direction. w is a relative frequency, w(s | t) = c(s, t) / c(t); an
unaligned word counts as linked to the empty word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softcount.align.decoding import symmetrise_all
from softcount.core.errors import DataError, brief
from softcount.core.types import Array, FloatArray, IntArray
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import mix
from softcount.text.bitext import Bitext, as_bitext
from softcount.text.links import FlatLinks, Link, format_links
from softcount.text.sequences import Side


@inline
def _closed(left: int, right: int, low: IntArray, high: IntArray, least: int, most: int) -> bool:
    """Whether no word from left to right is linked to one before ``least`` or after ``most``."""
    i = left
    while i <= right and low[i] >= least and high[i] <= most:
        i += 1
    return i > right


@inline
def _widen(
    count: int,
    first: int,
    last: int,
    box: tuple[int, int, int, int, int],
    high: IntArray,
    max_length: int,
    out: IntArray,
) -> int:
    """Add the minimal box, and its extensions over adjacent unaligned words; return the count."""
    n, left, right, start, end = box
    begin = left
    while begin > first and high[begin - 1] < 0 and right - begin + 1 < max_length:
        begin -= 1
    while begin <= left:
        stop = right
        while stop < last and stop - begin < max_length and (stop == right or high[stop] < 0):
            if count < len(out):
                out[count] = (n, begin, stop + 1, start, end + 1)
            count += 1
            stop += 1
        begin += 1
    return count


@njit
def find_boxes(
    indptr: IntArray,
    other_indptr: IntArray,
    low: IntArray,
    high: IntArray,
    other_low: IntArray,
    other_high: IntArray,
    max_length: int,
    out: IntArray,
) -> int:
    """Find all boxes and return their number; as many as fit are written to ``out``.

    Word positions are global, in the corpus: those of pair n are indptr[n] to indptr[n + 1].
    ``low`` and ``high`` are the first and the last word that a word is linked to; for an unaligned
    word they are huge and −1. A box is (pair, start, end, start on the other side, end on the other
    side), ends exclusive.

    For every span of the other side, the words linked to it span the minimal box, which is then
    extended over adjacent unaligned words (Och & Ney 2004).
    """
    count = 0
    for n in range(len(indptr) - 1):
        first, last = indptr[n], indptr[n + 1]
        for start in range(other_indptr[n], other_indptr[n + 1]):
            left, right = last, -1
            for end in range(start, min(start + max_length, other_indptr[n + 1])):
                left = min(left, other_low[end])
                right = max(right, other_high[end])
                if right - left >= max_length:
                    break
                if right >= 0 and _closed(left, right, low, high, start, end):
                    box = (n, left, right, start, end)
                    count = _widen(count, first, last, box, high, max_length, out)
    return count


@njit
def fingerprints(
    start: Array, end: Array, other_start: Array, indptr: Array, other: Array, out: Array
) -> None:
    """Compute a hash of each box's links, relative to its corner.

    The links of word i are other[indptr[i]] to other[indptr[i + 1]].
    """
    for b in range(len(start)):
        total = np.uint64(0)
        for i in range(start[b], end[b]):
            for k in range(indptr[i], indptr[i + 1]):
                place = (i - start[b]) * 2**32 + other[k] - other_start[b] + 1
                total += mix(np.uint64(place))
        out[b] = total


BAR = "|||"
AT_ONCE = 10_000
"""Phrase pairs are converted to Python objects this many at a time."""


@dataclass(frozen=True, eq=False)
class Phrases:
    """The phrase pairs of a corpus, sorted by sentence pair, target span, source span.

    Word positions are global, in the corpus, not relative to the sentence.

    ``bitext``  the corpus
    ``links``   (2, links): the source and target positions of its links, sorted
    ``source``  (n, 2): the source span of each phrase pair, end exclusive
    ``target``  (n, 2): the target span
    ``pair``    (n,): the sentence pair

    ``phrases[k]`` is (source phrase, target phrase); iteration yields such pairs.
    """

    bitext: Bitext
    links: IntArray
    pair: IntArray
    source: IntArray
    target: IntArray

    def __len__(self) -> int:
        return len(self.pair)

    def __getitem__(self, k: int) -> tuple[str, str]:
        return next(self._texts(*self._make_range(k)))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for start in range(0, len(self), AT_ONCE):
            yield from self._texts(start, start + AT_ONCE)

    def alignment(self, k: int) -> list[Link]:
        """Return the links of a phrase pair, relative to its first words."""
        return next(self._alignments(*self._make_range(k)))

    def alignments(self) -> Iterator[list[Link]]:
        """Yield the links of every phrase pair: see `alignment`."""
        for start in range(0, len(self), AT_ONCE):
            yield from self._alignments(start, start + AT_ONCE)

    def _make_range(self, k: int) -> tuple[int, int]:
        """Return (k, k + 1); raise if there is no phrase pair k."""
        if not 0 <= k < len(self):
            raise IndexError(f"no phrase pair {k}: there are {len(self)}, numbered from 0")
        return k, k + 1

    def _texts(self, start: int, stop: int) -> Iterator[tuple[str, str]]:
        def texts(side: Side, spans: IntArray) -> Iterator[str]:
            for first, end in spans.tolist():
                yield " ".join([side.words[token] for token in side.tokens[first:end].tolist()])

        source = texts(self.bitext.source, self.source[start:stop])
        return zip(source, texts(self.bitext.target, self.target[start:stop]), strict=True)

    def _alignments(self, start: int, stop: int) -> Iterator[list[Link]]:
        """Yield the links of phrase pairs ``start`` to ``stop``.

        All links of a phrase's source words lie in the box, and are adjacent in ``links``.
        """
        source, target = self.links
        ends = np.searchsorted(source, self.source[start:stop]).tolist()
        corners = self.source[start:stop, 0].tolist(), self.target[start:stop, 0].tolist()
        for (a, b), i, j in zip(ends, *corners, strict=True):
            inside = zip(source[a:b].tolist(), target[a:b].tolist(), strict=True)
            yield [(x - i, y - j) for x, y in inside]


class PhrasePair(NamedTuple):
    """An entry of a phrase table.

    ``scores``     φ and lex of the source given the target, then of the target given the source
    ``alignment``  its most frequent alignment (the first one, in case of ties)
    ``counts``     the counts of the target phrase, the source phrase, and the phrase pair
    """

    source: str
    target: str
    scores: tuple[float, ...]
    alignment: list[Link]
    counts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PhraseTable:
    """Distinct phrase pairs with their scores, in the order of a byte-wise sort of `lines`.

    ``phrases``  one occurrence of each, with its most frequent alignment
    ``scores``   (n, 4), ``counts`` (n, 3): see `PhrasePair`

    >>> table = phrase_table([("la casa", "the house")], [[(0, 0), (1, 1)]])
    >>> print("\\n".join(table.lines()))
    casa ||| house ||| 1 1 1 1 ||| 0-0 ||| 1 1 1
    la casa ||| the house ||| 1 1 1 1 ||| 0-0 1-1 ||| 1 1 1
    la ||| the ||| 1 1 1 1 ||| 0-0 ||| 1 1 1
    """

    phrases: Phrases
    scores: FloatArray
    counts: IntArray

    def __len__(self) -> int:
        return len(self.phrases)

    def __getitem__(self, k: int) -> PhrasePair:
        scores, counts = tuple(self.scores[k].tolist()), tuple(self.counts[k].tolist())
        return PhrasePair(*self.phrases[k], scores, self.phrases.alignment(k), counts)

    def __iter__(self) -> Iterator[PhrasePair]:
        figures = zip(self.scores, self.counts, strict=True)
        rows = zip(self.phrases, self.phrases.alignments(), figures, strict=True)
        for (source, target), links, (scores, counts) in rows:
            yield PhrasePair(source, target, tuple(scores.tolist()), links, tuple(counts.tolist()))

    def lines(self) -> Iterator[str]:
        """Yield lines in Moses format: source, target, four scores, links, counts.

        A bar in a word is escaped as ``&#124;``, as in the scripts of Moses.
        """
        for entry in self:
            texts = (text.replace("|", "&#124;") for text in (entry.source, entry.target))
            scores = " ".join(f"{x:.6g}" for x in entry.scores)
            counts = " ".join(map(str, entry.counts))
            yield f" {BAR} ".join([*texts, scores, format_links(entry.alignment), counts])


def extract_phrases(
    pairs: Bitext | Iterable[Any],
    alignments: FlatLinks | Iterable[Iterable[Link]],
    max_length: int = 7,
) -> Phrases:
    """Extract all phrase pairs that are consistent with the alignments.

    ``pairs``       sentence pairs: a `Bitext`, or (source, target) texts or lists of words
    ``alignments``  the links (i, j) of every pair
    ``max_length``  the maximum number of words of either phrase

    >>> list(extract_phrases([("no casa verde", "not green house")], [[(0, 0), (1, 2), (2, 1)]], 2))
    [('no', 'not'), ('verde', 'green'), ('casa verde', 'green house'), ('casa', 'house')]
    """
    if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < 1:
        raise DataError(f"max_length is {brief(max_length)}", "give an integer of 1 or more")
    corpus, links = as_bitext(pairs), FlatLinks.of(alignments)
    links.check_inside(corpus.source.lengths, corpus.target.lengths, corpus.name)
    links = symmetrise_all(links, links, "union")  # sorted, without duplicates
    # global positions, in the corpus, not relative to the sentence
    source = corpus.source.indptr[links.pair] + links.source
    target = corpus.target.indptr[links.pair] + links.target

    def find_reaches(mine: IntArray, other: IntArray, n: int) -> tuple[IntArray, IntArray]:
        """Find the first and the last word of the other side that each word is linked to."""
        low, high = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
        np.minimum.at(low, mine, other)
        np.maximum.at(high, mine, other)
        return low, high

    reaches = (
        *find_reaches(source, target, len(corpus.source.tokens)),
        *find_reaches(target, source, len(corpus.target.tokens)),
    )
    arguments = corpus.source.indptr, corpus.target.indptr, *reaches, max_length
    # the first call only counts
    out = np.empty((find_boxes(*arguments, np.empty((0, 5), np.int64)), 5), np.int64)
    find_boxes(*arguments, out)
    return Phrases(corpus, np.stack([source, target]), out[:, 0], out[:, 1:3], out[:, 3:5])


def phrase_table(
    pairs: Bitext | Iterable[Any],
    alignments: FlatLinks | Iterable[Iterable[Link]],
    max_length: int = 7,
) -> PhraseTable:
    """Make the table of distinct phrase pairs, with scores; for arguments see `extract_phrases`.

    >>> pairs = [("la casa", "the house"), ("la", "it")]
    >>> for entry in phrase_table(pairs, [[(0, 0), (1, 1)], [(0, 0)]], 1):
    ...     print(entry.source, entry.target, entry.scores, entry.counts)
    casa house (1.0, 1.0, 1.0, 1.0) (1, 1, 1)
    la it (1.0, 1.0, 0.5, 0.5) (1, 2, 1)
    la the (1.0, 1.0, 0.5, 0.5) (1, 2, 1)
    """
    every = extract_phrases(pairs, alignments, max_length)
    corpus, (at_source, at_target) = every.bitext, every.links
    source = _number_phrases(corpus.source, every.source)
    target = _number_phrases(corpus.target, every.target)
    # sort occurrences by phrase pair, then by links, so that equal ones are adjacent
    indptr = np.searchsorted(at_source, np.arange(len(corpus.source.tokens) + 1))
    links = np.empty(len(every), np.uint64)
    start, end = every.source.T
    fingerprints(start, end, every.target[:, 0], indptr, at_target, links)
    pair = source * (target.max(initial=0) + 1) + target
    order = np.lexsort((links, pair))
    pair, links = pair[order], links[order]
    new_pair = np.diff(pair, prepend=-1) > 0
    n_pair = np.diff(np.flatnonzero(new_pair), append=len(pair))
    # for each phrase pair, choose the first occurrence with the most frequent links
    first = np.flatnonzero(new_pair | (np.diff(links, prepend=links[:1]) != 0))
    count = np.diff(first, append=len(pair))
    best = np.lexsort((order[first], -count, pair[first]))
    chosen = order[first][best[np.flatnonzero(np.diff(pair[first], prepend=-1))]]
    n_source, n_target = (np.bincount(x)[x[chosen]] for x in (source, target))
    # w(s | t) and w(t | s) of each link: every box that contains a word contains all its links, so
    # that the mean over them is the same in all boxes
    s, t = corpus.source.tokens[at_source], corpus.target.tokens[at_target]
    words = _rank(s.astype(np.int64) * len(corpus.target.words) + t)
    together = np.bincount(words)[words]
    given_target = _average_links(
        corpus.source, at_source, together / _count_links(corpus.target, at_target)[t]
    )
    given_source = _average_links(
        corpus.target, at_target, together / _count_links(corpus.source, at_source)[s]
    )
    distinct = Phrases(
        corpus, every.links, every.pair[chosen], every.source[chosen], every.target[chosen]
    )
    scores = [
        n_pair / n_target,
        _multiply_spans(given_target, distinct.source),
        n_pair / n_source,
        _multiply_spans(given_source, distinct.target),
    ]
    counts = np.stack([n_target, n_source, n_pair], axis=1)
    return PhraseTable(distinct, np.stack(scores, axis=1), counts)


def _number_phrases(side: Side, spans: IntArray) -> IntArray:
    """Number the phrases: equal numbers for equal phrases, in the order of their lines."""
    # identify equal phrases: number the k-grams at every corpus position, for k = 1, 2, …
    length = np.diff(spans)[:, 0]
    here: IntArray = np.zeros(len(side.tokens), np.int64)
    same: IntArray = np.empty(len(spans), np.int64)
    before = 0
    for k in range(length.max(initial=0)):
        here = _rank(here[: len(side.tokens) - k] * len(side.words) + side.tokens[k:])
        ending = length == k + 1
        same[ending] = before + here[spans[ending, 0]]
        before += int(here.max()) + 1
    same = _rank(same)
    one_of = np.empty(int(same.max(initial=-1)) + 1, np.int64)
    one_of[same] = np.arange(len(spans))
    spans = spans[one_of]
    # sort them like lines sorted byte by byte: word by word, the rank of the prefix and the next
    # word give the next rank
    n_words = len(side.words)
    rank = np.empty(n_words, np.int64)
    rank[sorted(range(n_words), key=side.words.__getitem__)] = np.arange(n_words)
    end = sum(word < BAR for word in side.words)  # ||| follows a phrase, and sorts like a word
    tokens = np.append((rank + (rank >= end))[side.tokens], end)
    number: IntArray = np.zeros(len(spans), np.int64)
    for k in range(np.diff(spans).max(initial=0)):
        at = spans[:, 0] + k
        following = tokens[np.where(at < spans[:, 1], at, -1)]
        number = _rank(number * (n_words + 1) + following)
    return number[same]


def _rank(keys: IntArray) -> IntArray:
    """Return each key's rank among the distinct keys."""
    return np.unique(keys, return_inverse=True)[1]


def _count_unlinked(side: Side, at: IntArray) -> IntArray:
    """Count the unaligned occurrences of each word."""
    free = np.ones(len(side.tokens), dtype=bool)
    free[at] = False
    return np.bincount(side.tokens[free], minlength=len(side.words))


def _count_links(side: Side, at: IntArray) -> IntArray:
    """Count the links of each word, including those to the empty word."""
    return np.bincount(side.tokens[at], minlength=len(side.words)) + _count_unlinked(side, at)


def _average_links(side: Side, at: IntArray, share: FloatArray) -> FloatArray:
    """Average ``share`` over the links of each token; w(word | empty) if it has none."""
    n_links = np.bincount(at, minlength=len(side.tokens))
    total = np.bincount(at, weights=share, minlength=len(side.tokens))
    alone = _count_unlinked(side, at)
    unlinked = alone[side.tokens] / max(alone.sum(), 1)
    return np.where(n_links > 0, total / np.maximum(n_links, 1), unlinked)


def _multiply_spans(values: FloatArray, spans: IntArray) -> FloatArray:
    """Compute the product of the values of each span."""
    out = np.ones(len(spans))
    padded = np.append(values, 1.0)
    for k in range(np.diff(spans).max(initial=0)):
        here = spans[:, 0] + k
        out *= padded[np.where(here < spans[:, 1], here, -1)]
    return out
