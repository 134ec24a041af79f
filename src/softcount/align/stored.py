"""Aligners in files, and their tables as people read them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container, Mapping
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy import sparse

from softcount import store
from softcount.align.core import PLACES, TABLE
from softcount.align.data import Lexicon, Words, narrow
from softcount.align.growth import Past
from softcount.align.hmm import JUMPS
from softcount.bounds import MAX_COUNT, MIN_ROW
from softcount.corpus.numbering import Vocabulary
from softcount.errors import DataError, MissingEntry, StartError, StoreError, shown
from softcount.fit import check_start
from softcount.models.files import TABLE as PREFIX
from softcount.models.files import guarded, plain_settings, settings_of
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array, Params

PAST = "past."


class StoredAligner:
    """What all aligners that can be saved share (a mixin).

    ``turned_``  a note for programs, kept in files: the pairs learned from had source and target
                 exchanged
    """

    turned_ = False

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, for `softcount.load`. Settings that are code are left out."""
        self._require_fit()  # type: ignore[attr-defined]
        arrays, words = self.packed()
        meta = {"settings": plain_settings(self), "words": words, "turned": self.turned_}
        store.write(path, type(self).__name__, arrays, meta, self.signature_)  # type: ignore[attr-defined]

    @classmethod
    def load(cls, path: str | PathLike[str], **given: Any) -> Self:
        """Read a model that `save` wrote; ``given`` are settings that a file cannot hold."""
        return cls.restore(store.read(path, cls.__name__), **given)

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        """A model from what a file holds (see `softcount.load`)."""
        settings = settings_of(cls, stored, given)

        def made() -> Any:
            model: Any = cls(**settings)
            model.signature_ = stored.signature
            model.turned_ = bool(stored.meta.get("turned", False))
            source, target = stored.meta["words"]
            model.unpack(stored, (_vocabulary(source), _vocabulary(target)))
            return model

        return guarded(cls, made)

    @abstractmethod
    def packed(self) -> tuple[dict[str, Array], list[list[str]]]:
        """Arrays and words that a file must hold."""

    @abstractmethod
    def unpack(self, stored: store.Stored, words: tuple[Vocabulary, Vocabulary]) -> None:
        """Take back what `packed` gave."""


def _vocabulary(given: Any) -> Vocabulary:
    strings(given, len(given), "words")
    if len(set(given)) != len(given):
        raise StoreError("a word is there twice", AGAIN)
    return Vocabulary(given)


def pack(way: Any, past: Past, prefix: str = "") -> dict[str, Array]:
    """The arrays of one direction."""
    tables = {PREFIX + name: np.asarray(table) for name, table in way.raw_params_.items()}
    counts = {PAST + name: counts for name, counts in {TABLE: past.table, **past.others}.items()}
    arrays = {
        **tables,
        **counts,
        "lexicon.indptr": way.lexicon_.indptr,
        "lexicon.targets": way.lexicon_.targets.astype(np.int32),
        "sizes": np.stack(way.core_.sizes),
        "often": way.often_,
    }
    return {prefix + name: array for name, array in arrays.items()}


def unpack(way: Any, stored: store.Stored, words: tuple[Vocabulary, Vocabulary]) -> None:
    """One direction from its arrays, looked at before they are believed."""
    way._check_settings()
    way.words_ = words
    way.lexicon_ = _lexicon(stored, len(words[0].words), len(words[1].words))
    way.often_ = whole(stored, "often", (len(words[1].words),))
    if way.often_.min(initial=0) < 0:
        raise StoreError("words are there less than never", AGAIN)
    way.guide()
    core = way.made_core(way.made_table(), _sizes(stored))
    shapes = {name: family.param_shape for name, family in core.families.items()}
    given = {name: _table(stored, PREFIX + name, shape) for name, shape in shapes.items()}
    checked = check_start(core.families, given)
    for name, table in given.items():
        if not np.allclose(checked[name], table, 1e-6, 1e-9):
            raise StoreError(f"rows of table {name!r} add up to more than one", AGAIN)
    way.core_ = core
    way.raw_params_ = {
        name: table.astype(checked[name].dtype, copy=False) for name, table in given.items()
    }
    way._corpus, way._before = None, _past(stored, core.families)


def _sizes(stored: store.Stored) -> tuple[Array, Array]:
    """Lengths of sentences, if the file has the counts that belong to them."""
    heights, widths = sizes = whole(stored, "sizes", (2, None))
    good = sizes.shape[1] > 0 and sizes.min() > 0 and sizes.max() < 1 << 31
    # before anything of the size that they claim is made
    if good and PAST + PLACES in stored.arrays:
        good = stored.arrays[PAST + PLACES].size == int(np.sum((heights + 1.0) * widths))
    if good and PAST + JUMPS in stored.arrays:
        good = stored.arrays[PAST + JUMPS].size > int(np.sum(np.unique(heights) + 1))
    if not good:
        raise StoreError("the lengths of sentences make no sense", AGAIN)
    return heights, widths


def _past(stored: store.Stored, families: Mapping[str, Any]) -> Past:
    shapes = {name: family.zeros().shape for name, family in families.items()}
    counts = {
        name: numbers(stored, PAST + name, shape, MAX_COUNT) for name, shape in shapes.items()
    }
    if any(each.min(initial=0.0) < 0.0 for each in counts.values()):
        raise StoreError("counts are negative", AGAIN)
    return Past(counts.pop(TABLE), counts)


def _table(stored: store.Stored, name: str, shape: tuple[int, ...]) -> Array:
    given = stored.arrays[name]
    checked = numbers(stored, name, shape)
    if name == PREFIX + JUMPS and not checked.sum() >= MIN_ROW:
        raise StoreError("the weights of jumps are all zeros, or next to nothing", AGAIN)
    return given if name == PREFIX + TABLE and given.dtype == np.float32 else checked


def _lexicon(stored: store.Stored, n_sources: int, n_targets: int) -> Lexicon:
    indptr = whole(stored, "lexicon.indptr", (n_sources + 2,))
    targets = whole(stored, "lexicon.targets", (None,))
    if indptr[0] != 0 or indptr[-1] != len(targets) or (np.diff(indptr) < 0).any():
        raise StoreError("the rows of the lexicon do not fit together", AGAIN)
    if len(targets) and (targets.min() < 0 or targets.max() >= n_targets):
        raise StoreError("the lexicon has words that are none", AGAIN)
    rises = np.diff(targets) > 0
    borders = indptr[1:-1]
    rises[borders[(borders > 0) & (borders < len(targets))] - 1] = True
    if not rises.all():
        raise StoreError("the lexicon is not sorted", AGAIN)
    return Lexicon(indptr, narrow(targets, n_targets), n_targets)


def whole(stored: store.Stored, name: str, shape: tuple[int | None, ...]) -> Array:
    """Whole numbers of a file."""
    if stored.arrays[name].dtype.kind not in "iu":
        raise StoreError(f"{name} are not whole numbers", AGAIN)
    checked = numbers(stored, name, shape)
    return checked.astype(np.int64)


def part(stored: store.Stored, prefix: str) -> store.Stored:
    """What a file holds of one direction."""
    arrays = {
        name.removeprefix(prefix): array
        for name, array in stored.arrays.items()
        if name.startswith(prefix)
    }
    return store.Stored(stored.kind, arrays, stored.meta, stored.signature)


# An aligner's tables, as users look at them.


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
