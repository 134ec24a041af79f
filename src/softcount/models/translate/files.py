"""Translators in files: the table of the channel, and the language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from softcount import store
from softcount.errors import StoreError
from softcount.models.files import guarded
from softcount.models.language import LanguageModel
from softcount.models.language import files as language_files
from softcount.models.stored import AGAIN, numbers, strings

T = TypeVar("T")
LANGUAGE, TABLE = "language.", "table."


@dataclass
class StoredAligner:
    """What a translator needs of its aligner."""

    source_words_: list[str]
    target_words_: list[str]
    columns: Any

    def table(self) -> Any:
        """t(x | y), the last row for NULL."""
        return self.columns


def content(translator: Any) -> store.Stored:
    """What a file holds of a translator."""
    channel, model = translator.channel_, language_files.content(translator.language_model)
    table = channel.columns
    arrays = {TABLE + name: getattr(table, name) for name in ("data", "indices", "indptr")}
    arrays |= {LANGUAGE + name: array for name, array in model.arrays.items()}
    meta = {
        "settings": translator.settings._asdict(),
        "source_words": channel.sources,
        "target_words": list(channel.targets),
        "language": model.meta,
    }
    return store.Stored(type(translator).__name__, arrays, meta, model.signature)


def restore(cls: type[T], stored: store.Stored) -> T:
    """A translator from a file: whatever is wrong with the file, the answer is a `StoreError`."""
    return guarded(cls, lambda: _restored(cls, stored))


def _restored(cls: Callable[..., T], stored: store.Stored) -> T:
    arrays = {
        name.removeprefix(LANGUAGE): array
        for name, array in stored.arrays.items()
        if name.startswith(LANGUAGE)
    }
    language = LanguageModel.restore(
        store.Stored(LanguageModel.__name__, arrays, stored.meta["language"], stored.signature)
    )
    return cls(_aligner(stored), language, **stored.meta["settings"])


def _aligner(stored: store.Stored) -> StoredAligner:
    sources, targets = stored.meta["source_words"], stored.meta["target_words"]
    for words in (sources, targets):
        strings(words, len(words), "words")
        if len(set(words)) != len(words):
            raise StoreError("a word is there twice", AGAIN)
    data = numbers(stored, TABLE + "data", (None,))
    indices, indptr = (stored.arrays[TABLE + name] for name in ("indices", "indptr"))
    if any(part.dtype.kind != "i" for part in (indices, indptr)):
        raise StoreError("places in the table are no whole numbers", AGAIN)
    table = sparse.csc_matrix((data, indices, indptr), (len(sources) + 1, len(targets)))
    table.check_format(full_check=True)
    if table.has_canonical_format and np.all(data <= 1.0 + 1e-9):
        return StoredAligner(sources, targets, table)
    raise StoreError("the table is none of probabilities", AGAIN)
