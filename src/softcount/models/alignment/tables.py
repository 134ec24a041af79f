"""An aligner's tables, as users look at them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from softcount.errors import DataError, MissingEntry, StartError, shown
from softcount.models.alignment.core import TABLE
from softcount.models.alignment.lexicon import Lexicon
from softcount.models.alignment.reading import Words
from softcount.types import Array, Params


class Translations(dict[str, float]):
    """p(target word | a source word): words that never stand beside it have a probability of 0.

    These are not listed; what is no target word at all is an error.

    >>> row = Translations({"haus": 1.0}, words=("haus", "buch"))
    >>> row["buch"], "buch" in row
    (0.0, False)
    """

    def __init__(self, entries: Mapping[str, float], words: Container[str]) -> None:
        super().__init__(entries)
        self._words = words

    def __missing__(self, word: str) -> float:
        if word in self._words:
            return 0.0
        raise MissingEntry(f"the word {shown(word)} was never seen", "give a target word")

    def __reduce__(self) -> Any:
        return (dict, (dict(self),))  # a copy or a pickle need not carry all words


class Tables:
    """What can be asked of a table of translations (a mixin)."""

    lexicon_: Lexicon
    words_: Words
    raw_params_: Params
    null: bool

    @property
    def source_words_(self) -> list[str]:
        """The source words, in the order of the table's rows."""
        return list(self.words_[0].words)

    @property
    def target_words_(self) -> list[str]:
        """The target words, in the order of the table's columns."""
        return list(self.words_[1].words)

    def table(self) -> Any:
        """t(f | e) as a sparse matrix: a row for each source word, the empty word's last."""
        lexicon, values = self.lexicon_, np.asarray(self.raw_params_[TABLE], dtype=float)
        shape = (lexicon.n_sources + 1, lexicon.n_targets)
        places = lexicon.targets.astype(np.int32)
        return sparse.csr_matrix((values, places, lexicon.indptr), shape)

    def translations(self, word: str | None, n: int = 10) -> list[tuple[str, float]]:
        """The n most probable translations of a source word; None: what comes from no word."""
        lexicon = self.lexicon_
        row = lexicon.n_sources if word is None else self.words_[0].numbers.get(word)
        if row is None:
            raise DataError(f"the word {shown(word)} was never seen", "give a source word")
        cut = slice(int(lexicon.indptr[row]), int(lexicon.indptr[row + 1]))
        values = np.asarray(self.raw_params_[TABLE])[cut]
        best = np.argsort(-values, kind="stable")[:n]
        names = self.words_[1].words
        return [(names[lexicon.targets[cut][k]], float(values[k])) for k in best]

    @property
    def params_(self) -> dict[str, Any]:
        """All tables: "translation" as {source word: {target word: p}}, None the empty word.

        Of a table at its start, rows may sum to less than one: what is left is that of words which
        never occur together with theirs, evenly. Without an empty word there is no row for it.
        """
        lexicon, names, known = self.lexicon_, self.words_[1].words, self.words_[1].numbers
        values = np.asarray(self.raw_params_[TABLE])
        rows = [*self.words_[0].words, *([None] if self.null else [])]
        table = {
            word: Translations(
                {
                    names[f]: float(p)
                    for f, p in zip(lexicon.targets[a:b], values[a:b], strict=True)
                },
                known,
            )
            for word, a, b in zip(rows, lexicon.indptr, lexicon.indptr[1:], strict=False)
        }
        others = {name: np.array(value) for name, value in self.raw_params_.items()}
        return {**others, TABLE: table}

    def flat_table(self, given: Mapping[str | None, Any], otherwise: Array) -> Array:
        """A table as ``params_`` shows it, one number an entry; rows left out are ``otherwise``."""
        lexicon, (sources, targets) = self.lexicon_, (side.numbers for side in self.words_)
        table = np.array(otherwise)
        for word, row in given.items():
            number = lexicon.n_sources if word is None else sources.get(word)
            columns = [targets.get(target) for target in row]
            if number is None or None in columns:
                raise StartError(
                    f"the start of {TABLE!r} has a word that was never seen, for {shown(word)}",
                    "give words of the pairs, as params_ does",
                )
            places = lexicon.find(np.full(len(columns), number), np.array(columns, np.int64))
            values = np.array(list(row.values()), float)
            if (values[places < 0] != 0.0).any():
                raise StartError(
                    f"the start of {TABLE!r} has a translation of {shown(word)} that no pair has",
                    "leave it out",
                )
            table[lexicon.indptr[number] : lexicon.indptr[number + 1]] = 0.0
            table[places[places >= 0]] = values[places >= 0]
        return table
