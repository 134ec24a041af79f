"""Phrase pairs that agree with an alignment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softcount.align.decoding import symmetrise_all
from softcount.core.errors import DataError, brief
from softcount.core.types import Array
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import mix
from softcount.text.bitext import Bitext, as_bitext
from softcount.text.links import FlatLinks, Link, format_links
from softcount.text.sequences import Side


@njit
def reaches(mine: Array, other: Array, low: Array, high: Array) -> None:
    """The first and the last place that each of my words is linked to."""
    for k in range(len(mine)):
        low[mine[k]] = min(low[mine[k]], other[k])
        high[mine[k]] = max(high[mine[k]], other[k])


@inline
def _closed(left: int, right: int, low: Array, high: Array, least: int, most: int) -> bool:
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
    high: Array,
    max_length: int,
    out: Array,
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
def boxes(
    indptr: Array,
    other_indptr: Array,
    low: Array,
    high: Array,
    other_low: Array,
    other_high: Array,
    max_length: int,
    out: Array,
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


# Phrase pairs that alignments allow, and a table of them with scores.
#
# A phrase pair is a box: a stretch of source words and one of target words, with at least one link
# between them and no link from a word of either to a word outside (Och & Ney 2004). Words without
# links may stand at its borders.
#
# The scores of a table are those of Koehn, Och & Marcu (2003), from counts c of phrase pairs and of
# links between words:
#
#     φ(source | target) = c(source, target) / c(target)
#     lex(source | target) = Π_i mean over the links (i, j) of word i of w(s_i | t_j)
#
# and the same in the other direction. w is a relative frequency, w(s | t) = c(s, t) / c(t); a word
# without links counts as linked to the empty word.


BAR = "|||"
AT_ONCE = 10_000
"""So many phrase pairs are turned into Python's own objects at a time."""


@dataclass(frozen=True, eq=False)
class Phrases:
    """Phrase pairs of a corpus, in the order of pair, target words, source words.

    Words and links are counted through the corpus, not from the start of the sentence.

    ``bitext``  the corpus they are taken from
    ``links``   (2, links): source and target words of its links, in order
    ``source``  (n, 2): first source word of each phrase pair, and the one behind the last
    ``target``  (n, 2): the same of target words
    ``pair``    (n,): the sentence pair

    ``phrases[k]`` is a source and a target phrase; so is what going through them yields.
    """

    bitext: Bitext
    links: Array
    pair: Array
    source: Array
    target: Array

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

    def at(self, numbers: Array) -> Phrases:
        """Some of them."""
        parts = (part[numbers] for part in (self.pair, self.source, self.target))
        return Phrases(self.bitext, self.links, *parts)

    def _only(self, k: int) -> tuple[int, int]:
        if not 0 <= k < len(self):
            raise IndexError(f"there are {len(self)} phrase pairs: none is number {k}")
        return k, k + 1

    def _texts(self, start: int, stop: int) -> Iterator[tuple[str, str]]:
        source = _texts(self.bitext.source, self.source[start:stop])
        return zip(source, _texts(self.bitext.target, self.target[start:stop]), strict=True)

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
    scores: Array
    counts: Array

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
    links.demand_inside(corpus.source.lengths, corpus.target.lengths, corpus.name)
    links = symmetrise_all(links, links, "union")  # sorted, and none twice
    source, target = through = _counted_through(corpus, links)
    room = len(corpus.source.tokens), len(corpus.target.tokens)
    ends = *_reaches(source, target, room[0]), *_reaches(target, source, room[1])
    given = corpus.source.indptr, corpus.target.indptr, *ends, max_length
    out = np.empty((boxes(*given, np.empty((0, 5), np.int64)), 5), np.int64)
    boxes(*given, out)
    return Phrases(corpus, through, out[:, 0], out[:, 1:3], out[:, 3:5])


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
    source = _numbered(every.bitext.source, every.source)
    target = _numbered(every.bitext.target, every.target)
    at, both = _distinct(source, target, _fingerprints(every))
    n_source, n_target = (np.bincount(x)[x[at]] for x in (source, target))
    given_target, given_source = _word_scores(every.bitext, *every.links)
    one_each = every.at(at)
    scores = [
        both / n_target,
        _products(given_target, one_each.source),
        both / n_source,
        _products(given_source, one_each.target),
    ]
    counts = np.stack([n_target, n_source, both], axis=1)
    return PhraseTable(one_each, np.stack(scores, axis=1), counts)


def _texts(side: Side, spans: Array) -> Iterator[str]:
    words = side.words
    for start, end in spans.tolist():
        yield " ".join([words[token] for token in side.tokens[start:end].tolist()])


def _counted_through(corpus: Bitext, links: FlatLinks) -> Array:
    """Links counted through the corpus instead of from the start of the sentence."""
    pair = links.pair
    source = corpus.source.indptr[pair] + links.source
    return np.stack([source, corpus.target.indptr[pair] + links.target])


def _reaches(mine: Array, other: Array, n_words: int) -> tuple[Array, Array]:
    low, high = np.full(n_words, np.iinfo(np.int64).max), np.full(n_words, -1)
    reaches(mine, other, low, high)
    return low, high


def _numbered(side: Side, spans: Array) -> Array:
    """A number for each phrase: equal for equal ones, in the order of lines that begin so."""
    same = _told_apart(side, spans)
    one_of = np.empty(int(same.max(initial=-1)) + 1, np.int64)
    one_of[same] = np.arange(len(spans))
    return _in_order(side, spans[one_of])[same]


def _told_apart(side: Side, spans: Array) -> Array:
    """A number for each phrase, equal for equal ones.

    Every place of the corpus gets a number for the words read from there, one word more each round.
    """
    length = np.diff(spans)[:, 0]
    here = np.zeros(len(side.tokens), np.int64)
    number = np.empty(len(spans), np.int64)
    before = 0
    for k in range(length.max(initial=0)):
        here = _ranks(here[: len(side.tokens) - k] * len(side.words) + side.tokens[k:])
        ending = length == k + 1
        number[ending] = before + here[spans[ending, 0]]
        before += int(here.max()) + 1
    return _ranks(number)


def _in_order(side: Side, spans: Array) -> Array:
    """The rank of each phrase among all, as lines sorted byte by byte have them.

    Word by word, the rank of what was read so far and the next word make the next rank.
    """
    n_words = len(side.words)
    rank = np.empty(n_words, np.int64)
    rank[sorted(range(n_words), key=side.words.__getitem__)] = np.arange(n_words)
    end = sum(word < BAR for word in side.words)  # a bar ends phrases, and is sorted like a word
    tokens = np.append((rank + (rank >= end))[side.tokens], end)
    number = np.zeros(len(spans), np.int64)
    for k in range(np.diff(spans).max(initial=0)):
        here = spans[:, 0] + k
        following = tokens[np.where(here < spans[:, 1], here, -1)]
        number = _ranks(number * (n_words + 1) + following)
    return number


def _ranks(keys: Array) -> Array:
    """Each key's rank among the distinct ones."""
    order = np.argsort(keys)
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.cumsum(np.diff(keys[order], prepend=keys[order[:1]]) > 0)
    return ranks


def _fingerprints(every: Phrases) -> Array:
    source, target = every.links
    indptr = np.searchsorted(source, np.arange(len(every.bitext.source.tokens) + 1))
    out = np.empty(len(every), np.uint64)
    start, end = every.source.T
    fingerprints(start, end, every.target[:, 0], indptr, target, out)
    return out


def _distinct(source: Array, target: Array, links: Array) -> tuple[Array, Array]:
    """For each distinct phrase pair an occurrence with its most frequent links, and its count."""
    pair = source * (target.max(initial=0) + 1) + target
    order = np.lexsort((links, pair))
    pair, links = pair[order], links[order]
    new_pair = np.diff(pair, prepend=-1) > 0
    first = np.flatnonzero(new_pair | (np.diff(links, prepend=links[:1]) != 0))
    count = np.diff(first, append=len(pair))
    best = np.lexsort((order[first], -count, pair[first]))
    starts = np.flatnonzero(np.diff(pair[first], prepend=-1))
    both = np.diff(np.flatnonzero(new_pair), append=len(pair))
    return order[first][best[starts]], both


def _word_scores(corpus: Bitext, source: Array, target: Array) -> tuple[Array, Array]:
    """w(s | t) of each source word of the corpus, w(t | s) of each target word: means over links.

    A word's links all lie in any box that the word lies in, so its mean is the same in all of them.
    """
    s, t = corpus.source.tokens[source], corpus.target.tokens[target]
    pair = _ranks(s.astype(np.int64) * len(corpus.target.words) + t)
    together = np.bincount(pair)[pair]
    return (
        _means(corpus.source, source, together / _linked(corpus.target, target)[t]),
        _means(corpus.target, target, together / _linked(corpus.source, source)[s]),
    )


def _alone(side: Side, at: Array) -> Array:
    """How often each word has no link."""
    free = np.ones(len(side.tokens), dtype=bool)
    free[at] = False
    return np.bincount(side.tokens[free], minlength=len(side.words))


def _linked(side: Side, at: Array) -> Array:
    """How many links each word has, those to the empty word included."""
    return np.bincount(side.tokens[at], minlength=len(side.words)) + _alone(side, at)


def _means(side: Side, at: Array, share: Array) -> Array:
    """For each word of the corpus the mean share of its links; w(word | empty) if it has none."""
    n_links = np.bincount(at, minlength=len(side.tokens))
    total = np.bincount(at, weights=share, minlength=len(side.tokens))
    alone = _alone(side, at)
    unlinked = alone[side.tokens] / max(alone.sum(), 1)
    return np.where(n_links > 0, total / np.maximum(n_links, 1), unlinked)


def _products(values: Array, spans: Array) -> Array:
    """The product of the values from start to end, for each span."""
    out = np.ones(len(spans))
    padded = np.append(values, 1.0)
    for k in range(np.diff(spans).max(initial=0)):
        here = spans[:, 0] + k
        out *= padded[np.where(here < spans[:, 1], here, -1)]
    return out
