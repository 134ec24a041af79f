"""Topics from anchor words: words that (nearly) only one topic uses.

Two different tokens of a document follow Q = Φᵀ R Φ with R = E[θ θᵀ], which a document's counts c
of n tokens estimate without bias by (c cᵀ − diag c) / n(n − 1). Row i of Q, divided by its sum
p(i), is Σ_k p(k | i) q_k, where q_k is what occurs beside topic k; the row of an anchor word is q_k
itself, a corner. So: find the corners, write every row as a mixture of them, and turn p(k | i)
round with Bayes' rule (Arora, Ge, Halpern, Mimno, Moitra, Sontag, Wu, Zhu 2013, "A practical
algorithm for topic modeling with provable guarantees").

As for mixtures (`softcount.mixture.starts`), rows are projected on the main directions of
co-occurrence with χ² distances, documents weigh as many tokens as they have, and none of them may
make up a direction on its own. The directions are found by subspace iteration from a random block
(Halko, Martinsson, Tropp 2011), so that documents can stream by and nothing V×V is ever built.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from softcount.corpus.bags import Bags
from softcount.errors import DataError
from softcount.kernels.blas import single_threaded
from softcount.models.anchors import common_words, find_corners, mixtures, word_scale
from softcount.types import Array

_BLOCK = 4096  # documents that are looked at together
_SPARE = 20  # directions followed beyond twice those that are wanted
_TURNS = 4  # of subspace iteration
_FREE = 2  # turns before documents are capped: until then directions are rough
_RANK = 1e-8  # directions weaker than this part of the strongest are rounding error
_PAIRS = 1e-9  # of n²: fewer pairs are rounding error


class HasBags(Protocol):
    """Some documents."""

    @property
    def bags(self) -> Bags:
        """Their words."""


def anchor_topics(parts: Sequence[HasBags], n_topics: int, rng: np.random.Generator) -> Array:
    """p(word | topic), (K, V), from what occurs together in documents; a start for EM.

    Every word that occurs has a positive probability in all topics, others have zero. Documents of
    fewer than two tokens have no pairs: they count for frequencies only. Topics for which there is
    no corner lie half way between all words' frequencies and some document.

    The parts are read five times, six if topics are missing, one at a time: an archive's shards
    will do. Memory: a part, and at most five blocks of V × (2K + 20) numbers, 40 V (2K + 20) bytes;
    how documents are cut into parts changes the result by rounding error only, if no two words tie.

    >>> from softcount.topics.data import Documents
    >>> counts = csr_matrix([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 2, 3], [0, 0, 3, 2]])
    >>> parts = Documents(Bags.of(counts)).shards()
    >>> topics = anchor_topics(parts, 2, np.random.default_rng(0))
    >>> np.sort(topics.round(1), axis=0)
    array([[0.1, 0.1, 0.1, 0.1], [0.4, 0.4, 0.4, 0.4]])
    """
    if isinstance(parts, Iterator):
        raise DataError("the parts can be read only once", "give a list, or an archive's shards")
    with single_threaded():
        tally = _tallied(parts)
        overall: Array = tally.words / tally.words.sum()
        if n_topics == 1:
            return overall[None]
        topics = _by_corners(parts, tally, n_topics, rng)
        blend = 1.0 / np.sqrt(1.0 + tally.documents)  # opens what is zero for want of data
        topics *= 1 - blend
        topics += blend * overall
        missing = n_topics - len(topics)
        if missing:
            topics = np.vstack([topics, (_some(parts, tally, missing, rng) + overall) / 2])
        return topics


# documents as they stream by
class Block(NamedTuple):
    """Some documents that are not empty, n tokens each.

    ``counts``    c / n
    ``same``      the pairs of a token with itself, over n²: c, or c² where c < 1, so that it never
                  takes away more than there is
    ``tokens``    n
    ``per_pair``  n over the share of pairs that are of different tokens; 0 if there are none
    """

    counts: Any
    same: Any
    tokens: Array
    per_pair: Array


def _blocks(parts: Sequence[HasBags]) -> Iterator[Block]:
    for part in parts:
        yield from _blocks_of(part.bags)


def _blocks_of(bags: Bags) -> Iterator[Block]:
    filled = np.flatnonzero(bags.lengths > 0.0)
    for first in range(0, len(filled), _BLOCK):
        some = filled[first : first + _BLOCK]
        yield _block(bags.matrix[some], bags.lengths[some])


def _block(counts: Any, tokens: Array) -> Block:
    places, n = (counts.indices, counts.indptr), np.repeat(tokens, np.diff(counts.indptr))
    shares = counts.data / n
    same = csr_matrix((shares * np.minimum(counts.data, 1.0) / n, *places), counts.shape)
    different = 1.0 - same.sum(axis=1).A1
    per_pair: Array = np.zeros_like(tokens)
    np.divide(tokens, different, out=per_pair, where=different > _PAIRS)
    return Block(csr_matrix((shares, *places), counts.shape), same, tokens, per_pair)


@dataclass(frozen=True)
class Tally:
    """What one look at all documents tells.

    ``words``      how often each word occurs
    ``within``     how many documents have it
    ``first``      p(i): how often it is one of a pair
    ``documents``  how many documents are not empty
    ``paired``     how many of them have pairs
    ``tokens``     how many tokens those have
    """

    words: Array
    within: Array
    first: Array
    documents: int
    paired: int
    tokens: float


def _tallied(parts: Sequence[HasBags]) -> Tally:
    words = within = first = np.zeros(0)
    documents, paired, tokens = 0, 0, 0.0
    for block in _blocks(parts):
        if not documents:
            words, within, first = np.zeros((3, block.counts.shape[1]))
        words += block.counts.T @ block.tokens
        within += np.bincount(block.counts.indices, minlength=len(words))
        first += _firsts(block, block.per_pair)
        documents += len(block.tokens)
        paired += int(np.count_nonzero(block.per_pair))
        tokens += float(block.tokens[block.per_pair > 0.0].sum())
    if not documents:
        raise DataError("no document has a word in it", "give at least one document with words")
    return Tally(words, within, first / max(first.sum(), 1e-300), documents, paired, tokens)


def _firsts(block: Block, per_pair: Array) -> Array:
    """Q 1 of these documents, not yet divided by their weights."""
    return np.maximum(block.counts.T @ per_pair - block.same.T @ per_pair, 0.0)  # type: ignore[no-any-return]


# co-occurrence in its main directions
def _by_corners(
    parts: Sequence[HasBags], tally: Tally, n_topics: int, rng: np.random.Generator
) -> Array:
    """φ_k(i) ∝ p(k | i) p(i), as many topics as there are corners."""
    scale = word_scale(tally.first, tally.within, tally.paired)
    first, rows = _neighbours(parts, tally, scale, n_topics, rng)
    if not rows.shape[1]:
        return np.zeros((0, len(first)))
    seen = np.flatnonzero(first > 0.0)
    usable = tally.within * ((first > 0.0) & (scale > 0.0))
    corners = find_corners(rows, common_words(usable, tally.paired, n_topics), n_topics)
    weights = mixtures(rows[seen], rows[corners])
    weights *= first[seen, None]
    topics = np.zeros((len(corners), len(first)))
    topics[:, seen] = (weights / weights.sum(axis=0)).T
    return topics


def _neighbours(
    parts: Sequence[HasBags], tally: Tally, scale: Array, n_topics: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """p, and the rows of D^−1 Q S in the main directions U of S Q S; D = diag p, S = diag scale."""
    used = np.flatnonzero(scale)
    width = min(2 * n_topics + _SPARE, len(used))
    if not width:
        return tally.first, np.zeros((len(scale), 0))
    block = np.zeros((len(scale), width))
    block[used] = rng.normal(size=(len(used), width))
    values = np.zeros(0)
    for turn in range(_TURNS):
        block = scale[:, None] * np.linalg.qr(block)[0]
        strong = values[: n_topics if turn >= _FREE else 0]
        first, product = _product(parts, tally, block, strong, n_topics)
        values, turned = np.linalg.eigh(_even(block.T @ product))
        values, product = values[::-1], product @ turned[:, ::-1]
        if turn < _TURNS - 1:
            block = scale[:, None] * product
    n_strong = int((values[:n_topics] > _RANK * max(values[0], 1e-12)).sum())
    rows = product[:, :n_strong].copy()  # the rest of it can go
    seen = (first > 0.0)[:, None]
    np.divide(rows, first[:, None], out=rows, where=seen)
    return first, rows


def _even(table: Array) -> Array:
    return (table + table.T) / 2


def _product(
    parts: Sequence[HasBags], tally: Tally, block: Array, strong: Array, n_topics: int
) -> tuple[Array, Array]:
    """Q 1 and Q X for a block X = S U, documents capped if the values of directions are known.

    ``strong``  the values of the first directions in U
    """
    strong = strong[strong > _RANK * max(strong.max(initial=0.0), 1e-12)]
    white = np.zeros(block.shape[1])
    white[: len(strong)] = 1.0 / strong
    own = (block**2) @ white
    cap = max(tally.paired**-0.5, 3 * n_topics / tally.paired)
    product, first, diagonal = np.zeros_like(block), np.zeros(len(block)), np.zeros(len(block))
    for some in _blocks(parts):
        seen = some.counts @ block
        leverage = some.per_pair / tally.tokens * (seen**2 @ white - some.same @ own)
        per_pair = some.per_pair * np.minimum(1.0, cap / np.maximum(leverage, cap))
        first += _firsts(some, per_pair)
        diagonal += some.same.T @ per_pair
        seen *= per_pair[:, None]
        product += some.counts.T @ seen
    product -= diagonal[:, None] * block
    total = first.sum()
    product /= total
    return first / total, product


# topics that co-occurrence does not show
def _some(parts: Sequence[HasBags], tally: Tally, n: int, rng: np.random.Generator) -> Array:
    """The words of n documents that are not empty, as frequencies; different ones if there are."""
    numbers = rng.choice(tally.documents, n, replace=n > tally.documents)
    words = np.zeros((n, len(tally.words)))
    before = 0
    for block in _blocks(parts):
        here = np.flatnonzero((before <= numbers) & (numbers < before + len(block.tokens)))
        words[here] = block.counts[numbers[here] - before].toarray()
        before += len(block.tokens)
    return words
