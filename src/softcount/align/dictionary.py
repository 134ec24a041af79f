"""A bilingual dictionary: what is known of translations before learning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from softcount.align.data import PairLexicon
from softcount.core.errors import LearnerError, brief
from softcount.core.types import BoolArray, FloatArray, IntArray

FORMS = 'write {"house": "maison"}, {"house": ["maison", "chambre"]} or {"house": {"maison": 0.8}}'


@dataclass(frozen=True)
class Dictionary:
    """Translations of some source words, with weights; a weight of None leaves it to learning.

    >>> Dictionary.of({"house": "maison", "of": ["de", "du"]}).entries
    {'house': {'maison': None}, 'of': {'de': None, 'du': None}}
    """

    entries: Mapping[str, Mapping[str, float | None]]

    @classmethod
    def of(
        cls, given: Mapping[str, Any] | Iterable[tuple[str, str]], lowercase: bool = False
    ) -> Dictionary:
        """From a mapping, or from (source word, target word) pairs."""
        if isinstance(given, Mapping):
            found = cls({str(word): _read(word, known) for word, known in given.items()})
        else:
            found = cls(_from_pairs(given))
        if "" in found.entries or any("" in known for known in found.entries.values()):
            raise LearnerError("the dictionary has an empty word", FORMS)
        return found._lowercase() if lowercase else found

    def _lowercase(self) -> Dictionary:
        found: dict[str, dict[str, float | None]] = {}
        for source, known in self.entries.items():
            row = found.setdefault(source.lower(), {})
            row |= {target.lower(): weight for target, weight in known.items()}
        return Dictionary(found)

    def reversed(self) -> Dictionary:
        """From target words to source words; weights are those of one direction, and are lost."""
        found: dict[str, dict[str, float | None]] = {}
        for source, known in self.entries.items():
            for target in known:
                found.setdefault(target, {})[source] = None
        return Dictionary(found)

    def plain(self) -> dict[str, list[str]]:
        """As a setting, without weights."""
        return {source: list(known) for source, known in self.entries.items()}

    @property
    def words(self) -> tuple[list[str], list[str]]:
        """All its source words, and all its target words."""
        targets = {target: None for known in self.entries.values() for target in known}
        return list(self.entries), list(targets)

    def number_entries(
        self, sources: Mapping[str, int], targets: Mapping[str, int]
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Source and target words as numbers, and the weights (NaN: none)."""
        unknown = [word for word in self.words[0] if word not in sources]
        unknown += [word for word in self.words[1] if word not in targets]
        if unknown:
            raise LearnerError(
                f"the dictionary has the word {brief(unknown[0])}, which is new to the model",
                "fit it, or partial_fit",
            )
        each = [
            (sources[source], targets[target], np.nan if weight is None else weight)
            for source, known in self.entries.items()
            for target, weight in known.items()
        ]
        rows, columns, weights = np.array(each, dtype=float).reshape(-1, 3).T
        return rows.astype(np.int64), columns.astype(np.int64), weights


def _from_pairs(given: Iterable[Any]) -> dict[str, dict[str, float | None]]:
    if not isinstance(given, Iterable) or isinstance(given, Iterator):  # it is read several times
        raise LearnerError(f"the dictionary is {brief(given)}", FORMS)
    found: dict[str, dict[str, float | None]] = {}
    for entry in given:
        if not isinstance(entry, list | tuple) or len(entry) != 2:
            raise LearnerError(f"the dictionary has the entry {brief(entry)}", FORMS)
        found.setdefault(str(entry[0]), {})[str(entry[1])] = None
    return found


def _read(word: Any, known: Any) -> dict[str, float | None]:
    if isinstance(known, str):
        return {known: None}
    if isinstance(known, Mapping):
        good = (
            isinstance(weight, Real) and 0.0 < float(weight) < np.inf for weight in known.values()
        )
        if known and all(good):
            return {str(target): float(weight) for target, weight in known.items()}
    elif isinstance(known, Iterable) and (words := [str(target) for target in known]):
        return dict.fromkeys(words)
    raise LearnerError(f"the dictionary gives {brief(word)} as {brief(known)}", FORMS)


@dataclass(frozen=True, eq=False)
class DictionaryConstraints:
    """What a dictionary says of a table of translations, by its rows and by its entries.

    ``counts``  (entries,) pseudo-counts; None: there are none
    ``rows``    (rows,) source words that have no translations but the dictionary's; None: all are
                free
    ``mask``    (entries,) False where an entry is ruled out; None: all are possible
    ``fixed``   (rows,) the rows whose probabilities are given, and (entries,) these probabilities;
                None: none are given
    """

    counts: FloatArray | None = None
    rows: BoolArray | None = None
    mask: BoolArray | None = None
    fixed: tuple[BoolArray, FloatArray] | None = None

    def start(self, table: FloatArray, indptr: IntArray) -> FloatArray:
        """A start that agrees with it."""
        if self.rows is None or self.mask is None:
            return table
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        free = np.where(self.mask, table, 0.0)
        totals = np.bincount(rows, free, len(indptr) - 1)
        new = np.where(self.rows[rows], free / np.maximum(totals[rows], 1e-300), table)
        if self.fixed is not None:
            frozen, values = self.fixed
            new = np.where(frozen[rows], values, new)
        return new.astype(table.dtype)


def constrain_table(
    entries: tuple[IntArray, IntArray, FloatArray], lexicon: PairLexicon, strength: float | None
) -> DictionaryConstraints:
    """Numbered entries of a dictionary in terms of a lexicon that has them all.

    ``strength``  None: nothing else is possible; a number: so many pseudo-counts for each entry
    """
    sources, targets, weights = entries
    where = lexicon.find(sources, targets)
    if (where < 0).any():
        raise LearnerError(
            "the dictionary has entries that the model was not made with", "fit it, or partial_fit"
        )
    if strength is not None:
        counts = np.zeros(len(lexicon))
        counts[where] = strength * np.where(np.isnan(weights), 1.0, weights)
        return DictionaryConstraints(counts=counts)
    rows = lexicon.rows()
    given_rows = np.zeros(lexicon.n_sources + 1, bool)
    given_rows[sources] = True
    mask = ~given_rows[rows]
    mask[where] = True
    given = ~np.isnan(weights)
    if not given.any():
        return DictionaryConstraints(rows=given_rows, mask=mask)
    frozen = np.zeros(lexicon.n_sources + 1, bool)
    frozen[sources[given]] = True
    values = np.zeros(len(lexicon))
    values[where[given]] = weights[given]
    totals = np.bincount(rows, values, lexicon.n_sources + 1)
    values /= np.where(totals[rows] > 0.0, totals[rows], 1.0)
    return DictionaryConstraints(rows=given_rows, mask=mask, fixed=(frozen, values))
