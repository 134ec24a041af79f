"""What an aligner says of words: which are uncertain, which certain, which align to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.corpus.bitext import Side
from softcount.show.alignment_choice import Looked
from softcount.types import Array

ENOUGH = 5
"""Rarer words say little, unless all are rare."""

TRANSLATIONS = 5
"""So many translations of an uncertain word are shown."""

SURE = 0.01
"""Words of less entropy (bits) are not called uncertain."""

LEAST = 0.005
"""Translations of less probability are not shown."""


@dataclass(frozen=True)
class Uncertain:
    """A word with many translations; ``bits`` is the entropy of t(· | word)."""

    word: str
    times: int
    bits: float
    translations: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Entry:
    """A word and its best translation; ``back`` is t(word | translation), if it is known."""

    word: str
    translation: str
    p: float
    back: float | None
    times: int


@dataclass(frozen=True)
class Unlinked:
    """A word, how often it is there, and how often of these without a link."""

    word: str
    times: int
    without: int


def occurrences(model: Any, side: Side) -> Array:
    """How often each source word of a model occurs."""
    n_words = len(model.source_words_)
    return np.bincount(side.tokens, minlength=n_words)[:n_words]


def uncertain_words(model: Any, counts: Array, n: int) -> list[Uncertain]:
    """Source words of a one-way model that leave most open: entropy (bits) times occurrences."""
    table, names = model.table(), model.source_words_
    rows = frequent(counts)
    bits = np.array([entropy(_row(table, row)) for row in rows])
    order = np.argsort(-(bits * counts[rows]), kind="stable")
    chosen = [(int(rows[k]), float(bits[k])) for k in order if bits[k] >= SURE][:n]
    found = []
    for row, of_row in chosen:
        best = [(f, p) for f, p in model.translations(names[row], TRANSLATIONS) if p >= LEAST]
        found.append(Uncertain(names[row], int(counts[row]), of_row, best))
    return found


def certain_entries(model: Any, back: Any, counts: Array, n: int) -> list[Entry]:
    """Source words whose best translation is most certain, by the other direction as well.

    Ranked by t(f | e) t(e | f), `shrunk`: a word that is seen often counts more.

    ``back``  the model of the other direction, or None
    """
    table, rows = model.table(), frequent(counts)
    rows = rows[np.diff(table.indptr)[rows] > 0]
    at = [int(table.indptr[row] + _row(table, row).argmax()) for row in rows]
    p, targets = table.data[at], table.indices[at]
    others = None if back is None else np.asarray(back.table()[targets, rows]).ravel()
    score = shrunk(p if others is None else p * others, counts[rows])
    names, called = model.source_words_, model.target_words_
    return [
        Entry(
            names[rows[k]],
            called[targets[k]],
            float(p[k]),
            None if others is None else float(others[k]),
            int(counts[rows[k]]),
        )
        for k in np.argsort(-score, kind="stable")[:n]
    ]


def unlinked_words(looked: Looked, n: int) -> tuple[list[Unlinked], list[Unlinked]]:
    """Source words and target words that most often have no link; their shares are `shrunk`."""
    text, links = looked.text, looked.links
    with_words = np.zeros(len(text), np.bool_)
    with_words[looked.places] = True
    return (
        _unlinked(text.source, links.source, links.pair, with_words, n),
        _unlinked(text.target, links.target, links.pair, with_words, n),
    )


def _unlinked(side: Side, linked: Array, pair: Array, pairs: Array, n: int) -> list[Unlinked]:
    counted = np.repeat(pairs, side.lengths)
    free = counted.copy()
    free[side.indptr[pair] + linked] = False
    times, without = (
        np.bincount(side.tokens[which], minlength=len(side.words)) for which in (counted, free)
    )
    words = frequent(times)
    words = words[without[words] > 0]
    score = shrunk(without[words] / times[words], times[words])
    best = words[np.argsort(-score, kind="stable")[:n]]
    return [Unlinked(side.words[w], int(times[w]), int(without[w])) for w in best]


def frequent(counts: Array) -> Array:
    """Words that occur often enough to say something of; the most frequent if all are rare.

    >>> frequent(np.array([7, 1, 0, 5])), frequent(np.array([0, 1, 2]))
    (array([0, 3]), array([2]))
    """
    enough = max(min(ENOUGH, int(counts.max(initial=0))), 1)
    return np.flatnonzero(counts >= enough)


def shrunk(share: Array, times: Array) -> Array:
    """A share as if there had been one more case without: what is seen often is surer."""
    less: Array = share * times / (times + 1)
    return less


def entropy(p: Array) -> float:
    """The entropy of a distribution in bits.

    >>> entropy(np.array([0.5, 0.25, 0.25]))
    1.5
    """
    some = p[p > 0.0]
    return float(-(some * np.log2(some)).sum()) + 0.0


def _row(table: Any, row: int) -> Array:
    values: Array = table.data[table.indptr[row] : table.indptr[row + 1]]
    return values
