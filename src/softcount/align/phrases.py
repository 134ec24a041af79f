"""Phrase pairs that alignments allow, and a table of them with scores.

A phrase pair is a box: a stretch of source words and one of target words, with at least one link
between them and no link from a word of either to a word outside (Och & Ney 2004). Words without
links may stand at its borders.

The scores of a table are those of Koehn, Och & Marcu (2003), from counts c of phrase pairs and of
links between words:

    φ(source | target) = c(source, target) / c(target)
    lex(source | target) = Π_i mean over the links (i, j) of word i of w(s_i | t_j)

and the same in the other direction. w is a relative frequency, w(s | t) = c(s, t) / c(t); a word
without links counts as linked to the empty word.
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
    """Whether no word from left to right is linked to one before least or behind most."""
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
    """Count the least box and those that reach over words without links beside it."""
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
    """How many boxes there are; as many as there is room for are written.

    Words are counted through the corpus: those of pair n are indptr[n] to indptr[n + 1].
    ``low`` and ``high`` say how far a word's links reach; without links they are huge and −1.
    A box is (pair, start, end, start on the other side, end on the other side), ends exclusive.

    For every stretch of the other side's words, the words that they are linked to span the least
    box; it grows over words without links (Och & Ney 2004).
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
    """For each box a number that tells its links, as seen from its corner, from other ones.

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
"""The number of phrase pairs that are turned into Python objects at a time."""


@dataclass(frozen=True, eq=False)
class Phrases:
    """Phrase pairs of a corpus, in the order of pair, target words, source words.

    Words and links are counted through the corpus, not from the start of the sentence.

    ``bitext``  the corpus they are taken from
    ``links``   (2, links): source and target words of its links, in order
    ``source``  (n, 2): first source word of each phrase pair, and the one behind the last
    ``target``  (n, 2): the same of target words
    ``pair``    (n,): the sentence pair

    ``phrases[k]`` is a source and a target phrase; iterating over them yields such pairs.
    """

    bitext: Bitext
    links: IntArray
    pair: IntArray
    source: IntArray
    target: IntArray

    def __len__(self) -> int:
        return len(self.pair)

    def __getitem__(self, k: int) -> tuple[str, str]:
        return next(self._texts(*self._only(k)))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for start in range(0, len(self), AT_ONCE):
            yield from self._texts(start, start + AT_ONCE)

    def alignment(self, k: int) -> list[Link]:
        """The links of a phrase pair, counted from its own first words."""
        return next(self._alignments(*self._only(k)))

    def alignments(self) -> Iterator[list[Link]]:
        """`alignment` of every phrase pair."""
        for start in range(0, len(self), AT_ONCE):
            yield from self._alignments(start, start + AT_ONCE)

    def _only(self, k: int) -> tuple[int, int]:
        if not 0 <= k < len(self):
            raise IndexError(f"there are {len(self)} phrase pairs: none is number {k}")
        return k, k + 1

    def _texts(self, start: int, stop: int) -> Iterator[tuple[str, str]]:
        def texts(side: Side, spans: IntArray) -> Iterator[str]:
            for first, end in spans.tolist():
                yield " ".join([side.words[token] for token in side.tokens[first:end].tolist()])

        source = texts(self.bitext.source, self.source[start:stop])
        return zip(source, texts(self.bitext.target, self.target[start:stop]), strict=True)

    def _alignments(self, start: int, stop: int) -> Iterator[list[Link]]:
        """All links of a phrase's source words lie in the box, and stand together."""
        source, target = self.links
        ends = np.searchsorted(source, self.source[start:stop]).tolist()
        corners = self.source[start:stop, 0].tolist(), self.target[start:stop, 0].tolist()
        for (a, b), i, j in zip(ends, *corners, strict=True):
            inside = zip(source[a:b].tolist(), target[a:b].tolist(), strict=True)
            yield [(x - i, y - j) for x, y in inside]


class PhrasePair(NamedTuple):
    """One line of a phrase table.

    ``scores``     φ and lex of the source given the target, then of the target given the source
    ``alignment``  its most frequent links (of equally frequent ones the first that came)
    ``counts``     of the target phrase, of the source phrase, of both together
    """

    source: str
    target: str
    scores: tuple[float, ...]
    alignment: list[Link]
    counts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PhraseTable:
    """Distinct phrase pairs with their scores, in the order in which a byte-wise sort puts lines.

    ``phrases``  an occurrence of each, with its most frequent links
    ``scores``   (n, 4), ``counts`` (n, 3): as in `PhrasePair`

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
        """Lines as Moses reads them: source, target, four scores, links, counts.

        A bar in a word is written ``&#124;``, as Moses' own scripts do.
        """
        for one in self:
            texts = (text.replace("|", "&#124;") for text in (one.source, one.target))
            scores = " ".join(f"{x:.6g}" for x in one.scores)
            counts = " ".join(map(str, one.counts))
            yield f" {BAR} ".join([*texts, scores, format_links(one.alignment), counts])


def extract_phrases(
    pairs: Bitext | Iterable[Any],
    alignments: FlatLinks | Iterable[Iterable[Link]],
    max_length: int = 7,
) -> Phrases:
    """All phrase pairs that the alignments allow.

    ``pairs``       sentence pairs: a `Bitext`, or (source, target) texts or lists of words
    ``alignments``  the links (i, j) of every pair
    ``max_length``  neither phrase has more words

    >>> list(extract_phrases([("no casa verde", "not green house")], [[(0, 0), (1, 2), (2, 1)]], 2))
    [('no', 'not'), ('verde', 'green'), ('casa verde', 'green house'), ('casa', 'house')]
    """
    if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < 1:
        raise DataError(f"max_length is {brief(max_length)}", "give a whole number from 1 on")
    corpus, links = as_bitext(pairs), FlatLinks.of(alignments)
    links.check_inside(corpus.source.lengths, corpus.target.lengths, corpus.name)
    links = symmetrise_all(links, links, "union")  # sorted, and none twice
    # words and links counted through the corpus, not from the start of the sentence
    source = corpus.source.indptr[links.pair] + links.source
    target = corpus.target.indptr[links.pair] + links.target

    def find_reaches(mine: IntArray, other: IntArray, n: int) -> tuple[IntArray, IntArray]:
        """The first and the last word of the other side that each word is linked to."""
        low, high = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
        np.minimum.at(low, mine, other)
        np.maximum.at(high, mine, other)
        return low, high

    reaches = (
        *find_reaches(source, target, len(corpus.source.tokens)),
        *find_reaches(target, source, len(corpus.target.tokens)),
    )
    given = corpus.source.indptr, corpus.target.indptr, *reaches, max_length
    out = np.empty((find_boxes(*given, np.empty((0, 5), np.int64)), 5), np.int64)
    find_boxes(*given, out)
    return Phrases(corpus, np.stack([source, target]), out[:, 0], out[:, 1:3], out[:, 3:5])


def phrase_table(
    pairs: Bitext | Iterable[Any],
    alignments: FlatLinks | Iterable[Iterable[Link]],
    max_length: int = 7,
) -> PhraseTable:
    """The phrase pairs that the alignments allow, each once, with scores; see `phrases`.

    >>> pairs = [("la casa", "the house"), ("la", "it")]
    >>> for one in phrase_table(pairs, [[(0, 0), (1, 1)], [(0, 0)]], 1):
    ...     print(one.source, one.target, one.scores, one.counts)
    casa house (1.0, 1.0, 1.0, 1.0) (1, 1, 1)
    la it (1.0, 1.0, 0.5, 0.5) (1, 2, 1)
    la the (1.0, 1.0, 0.5, 0.5) (1, 2, 1)
    """
    every = extract_phrases(pairs, alignments, max_length)
    corpus, (at_source, at_target) = every.bitext, every.links
    source = _number_phrases(corpus.source, every.source)
    target = _number_phrases(corpus.target, every.target)
    # occurrences sorted by phrase pair, then by their links: equal ones stand together
    indptr = np.searchsorted(at_source, np.arange(len(corpus.source.tokens) + 1))
    links = np.empty(len(every), np.uint64)
    start, end = every.source.T
    fingerprints(start, end, every.target[:, 0], indptr, at_target, links)
    pair = source * (target.max(initial=0) + 1) + target
    order = np.lexsort((links, pair))
    pair, links = pair[order], links[order]
    new_pair = np.diff(pair, prepend=-1) > 0
    both = np.diff(np.flatnonzero(new_pair), append=len(pair))
    # of each phrase pair the occurrence with the most frequent links
    first = np.flatnonzero(new_pair | (np.diff(links, prepend=links[:1]) != 0))
    count = np.diff(first, append=len(pair))
    best = np.lexsort((order[first], -count, pair[first]))
    chosen = order[first][best[np.flatnonzero(np.diff(pair[first], prepend=-1))]]
    n_source, n_target = (np.bincount(x)[x[chosen]] for x in (source, target))
    # w(s | t) and w(t | s) of each link: a word's links all lie in any box that the word lies in,
    # so that the mean over them is the same in all of these
    s, t = corpus.source.tokens[at_source], corpus.target.tokens[at_target]
    words = _rank(s.astype(np.int64) * len(corpus.target.words) + t)
    together = np.bincount(words)[words]
    given_target = _average_links(
        corpus.source, at_source, together / _count_links(corpus.target, at_target)[t]
    )
    given_source = _average_links(
        corpus.target, at_target, together / _count_links(corpus.source, at_source)[s]
    )
    one_each = Phrases(
        corpus, every.links, every.pair[chosen], every.source[chosen], every.target[chosen]
    )
    scores = [
        both / n_target,
        _multiply_spans(given_target, one_each.source),
        both / n_source,
        _multiply_spans(given_source, one_each.target),
    ]
    counts = np.stack([n_target, n_source, both], axis=1)
    return PhraseTable(one_each, np.stack(scores, axis=1), counts)


def _number_phrases(side: Side, spans: IntArray) -> IntArray:
    """A number for each phrase: equal for equal ones, in the order of lines that begin so."""
    # what phrases are equal: every position of the corpus gets a number for the words read from
    # there, one word more each round
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
    # their order, as lines sorted byte by byte have it: word by word, the rank of what was read so
    # far and the next word make the next rank
    n_words = len(side.words)
    rank = np.empty(n_words, np.int64)
    rank[sorted(range(n_words), key=side.words.__getitem__)] = np.arange(n_words)
    end = sum(word < BAR for word in side.words)  # a bar ends phrases, and is sorted like a word
    tokens = np.append((rank + (rank >= end))[side.tokens], end)
    number: IntArray = np.zeros(len(spans), np.int64)
    for k in range(np.diff(spans).max(initial=0)):
        at = spans[:, 0] + k
        following = tokens[np.where(at < spans[:, 1], at, -1)]
        number = _rank(number * (n_words + 1) + following)
    return number[same]


def _rank(keys: IntArray) -> IntArray:
    """Each key's rank among the distinct ones."""
    return np.unique(keys, return_inverse=True)[1]


def _count_unlinked(side: Side, at: IntArray) -> IntArray:
    """How often each word has no link."""
    free = np.ones(len(side.tokens), dtype=bool)
    free[at] = False
    return np.bincount(side.tokens[free], minlength=len(side.words))


def _count_links(side: Side, at: IntArray) -> IntArray:
    """How many links each word has, those to the empty word included."""
    return np.bincount(side.tokens[at], minlength=len(side.words)) + _count_unlinked(side, at)


def _average_links(side: Side, at: IntArray, share: FloatArray) -> FloatArray:
    """For each word of the corpus the mean share of its links; w(word | empty) if it has none."""
    n_links = np.bincount(at, minlength=len(side.tokens))
    total = np.bincount(at, weights=share, minlength=len(side.tokens))
    alone = _count_unlinked(side, at)
    unlinked = alone[side.tokens] / max(alone.sum(), 1)
    return np.where(n_links > 0, total / np.maximum(n_links, 1), unlinked)


def _multiply_spans(values: FloatArray, spans: IntArray) -> FloatArray:
    """The product of the values from start to end, for each span."""
    out = np.ones(len(spans))
    padded = np.append(values, 1.0)
    for k in range(np.diff(spans).max(initial=0)):
        here = spans[:, 0] + k
        out *= padded[np.where(here < spans[:, 1], here, -1)]
    return out
