"""Learning from more pairs: what was seen before stays, as counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.align.core import TABLE, AlignmentCore
from softcount.align.data import Known, Lexicon, Pairs, Words, known_links, new_pairs
from softcount.align.dictionary import Dictionary
from softcount.align.families.past import WithPast
from softcount.corpus.numbering import Vocabulary
from softcount.errors import DataError
from softcount.families.rows import row_sums
from softcount.types import Array, Counts

NOTHING = "there is nothing to learn from: every pair has an empty side"


@dataclass(frozen=True, eq=False)
class Past:
    """Expected counts of all pairs that one direction has seen.

    ``table``   of the lexicon's entries
    ``others``  of the families beside the translations, by name
    """

    table: Array
    others: Mapping[str, Array]


def past_of(counts: Mapping[str, Counts], before: Past | None) -> Past:
    """An E-step's counts, and what was counted before."""
    others = {name: np.asarray(value) for name, value in counts.items() if name != TABLE}
    table = np.asarray(counts[TABLE], dtype=np.float64)
    if before is None:
        return Past(table, others)
    both = {name: before.others[name] + value for name, value in others.items()}
    return Past(before.table + table, both)


@dataclass(frozen=True, eq=False)
class Grown:
    """A direction that is about to learn from more pairs: its start, and its past in new terms."""

    core: AlignmentCore
    corpus: Pairs
    start: dict[str, Array]
    past: Past

    def remembering(self) -> AlignmentCore:
        """The core with the past added to all that it will count."""
        for name, past in {TABLE: self.past.table, **self.past.others}.items():
            self.core.families[name] = WithPast(self.core.families[name], past)
        return self.core

    def forgetting(self) -> None:
        """The core's own families again."""
        for name, family in self.core.families.items():
            if isinstance(family, WithPast):
                self.core.families[name] = family.family


def grown(way: Any, data: Any, links: Sequence[Any] | Known | None, past: Past) -> Grown:
    """A fitted direction with the words and the lengths of more pairs; its words are replaced."""
    told = Dictionary.of(way.dictionary or {}, way.lowercase)
    text = new_pairs(data, _with_words(way.words_, told), way.lowercase)
    old: Lexicon = way.lexicon_
    n_sources = len(text.source.words)
    rows = np.append(np.arange(old.n_sources), n_sources)
    numbers = (Vocabulary(side.words).numbers for side in (text.source, text.target))
    sources, targets, _ = told.numbered(*numbers)
    more = (
        np.concatenate([np.repeat(rows, np.diff(old.indptr)), sources]),
        np.concatenate([old.targets.astype(np.int64), targets]),
    )
    corpus = Pairs(text, way.null, known_links(links, text), more)
    if not len(corpus):
        raise DataError(NOTHING, "look at the pairs")
    lexicon = corpus.lexicon
    way.words_ = Vocabulary(text.source.words), Vocabulary(text.target.words)
    way.lexicon_ = lexicon
    often = np.bincount(text.target.tokens, minlength=len(text.target.words))
    often[: len(way.often_)] += way.often_
    way.often_ = often
    way.guide()
    before: AlignmentCore = way.core_
    core = way.made_core(way.made_table(), _sizes(before.sizes, corpus.everything.sizes))
    entries = lexicon.match(rows, old, np.arange(old.n_targets))
    seen, values = np.zeros(len(lexicon)), np.zeros(len(lexicon))
    seen[entries], values[entries] = past.table, way.raw_params_[TABLE]
    params, others = core.adopt(before, way.raw_params_, past.others)
    table = way.guidance_.start(_with_room(values, seen, lexicon), lexicon.indptr)
    start = {TABLE: table.astype(way.dtype), **params}
    return Grown(core, corpus, start, Past(seen, others))


def _with_words(words: Words, told: Dictionary) -> Words:
    """A model's words, and those of its dictionary that are new."""
    source, target = (
        Vocabulary([*old.words, *(word for word in new if word not in old.numbers)])
        for old, new in zip(words, told.words, strict=True)
    )
    return source, target


def _sizes(before: tuple[Array, Array], now: tuple[Array, Array]) -> tuple[Array, Array]:
    heights, widths = (np.concatenate(each) for each in zip(before, now, strict=True))
    return heights, widths


def _with_room(values: Array, seen: Array, lexicon: Lexicon) -> Array:
    """Old probabilities, with room for what is new: as if each row had been seen once more."""
    lengths = np.diff(lexicon.indptr)
    often = np.repeat(row_sums(seen, lexicon.indptr), lengths)
    even = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
    room: Array = (values * often + even) / (often + 1.0)
    return room
