"""Corpora larger than memory, of every kind: built once in a folder, opened, and read in parts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from softcount.core.errors import DataError, StoreError, brief
from softcount.text.disk import META, CorpusFolder

T = TypeVar("T", bound=Any)

KINDS = {
    "documents": "softcount.text.archive:documents",
    "items": "softcount.text.items:items",
    "pairs": "softcount.text.bitext:pairs",
    "sentences": "softcount.text.sequences:sequences",
    "tagged": "softcount.text.tagged:tagged",
    "trees": "softcount.text.treebank:trees",
    "vectors": "softcount.text.vectors:vectors",
}
"""Where each kind is read and written: ``module:name`` with functions build_name and open_name."""

PART = 1 << 14
"""Items of a part, if nothing else is said."""


def build_corpus(data: Any, path: str | os.PathLike[str], kind: str, **options: Any) -> Any:
    """Write a corpus to a new folder, in bounded memory, and open it.

    ``data``     an iterable of items; or a mapping from names (of files, say) to such, so that
                 messages call an item by name and number
    ``kind``     what the items are: one of `KINDS`
    ``options``  those of the kind

    >>> import tempfile
    >>> text = build_corpus(["a dog", "a cat"], tempfile.mkdtemp() + "/corpus", "sentences")
    >>> len(text), [part.sentence(0) for part in in_parts(text, 1)]
    (2, [['a', 'dog'], ['a', 'cat']])
    """
    return _find(kind, "build")(data, path, **options)


def open_corpus(path: str | os.PathLike[str]) -> Any:
    """Open a corpus that `build_corpus` wrote; estimators take it like data in memory.

    Documents are an `softcount.text.archive.Archive`, whose parts are matrices of counts.
    """
    if _is_archive(Path(path)):
        from softcount.text.archive import Archive  # imports scikit-learn

        return Archive.open(path)
    corpus = CorpusFolder.open(Path(path))
    if corpus.facts.kind not in KINDS:
        raise StoreError(
            f"{path} is a corpus of {brief(corpus.facts.kind)}, which this version does not know",
            "use the version of softcount that wrote it",
        )
    return _find(corpus.facts.kind, "open")(corpus)


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the kind of the corpus in a folder, as it stands there."""
    return "documents" if _is_archive(Path(path)) else CorpusFolder.open(path).facts.kind


def in_parts(corpus: T, size: int = PART) -> Iterator[T]:
    """Yield a corpus in parts of this many items, each in memory, in order.

    For what takes a list and returns one: ``for part in in_parts(corpus): model.predict(part)``.
    """
    if size < 1:
        raise DataError(f"size={size} is not positive", "give 1 or more")
    for first in range(0, len(corpus), size):
        yield corpus.select(slice(first, first + size))


def _is_archive(folder: Path) -> bool:
    """Return whether documents are in this folder, whose format is another one."""
    try:
        if not (folder / META).is_file():
            return False  # a pipe might block for ever
        with (folder / META).open("rb") as file:
            return b'"format": "softcount archive"' in file.read(100)
    except OSError:
        return False


def _find(kind: str, what: str) -> Any:
    if kind not in KINDS:
        raise DataError(f"kind={brief(kind)} is unknown", f"choose {', '.join(KINDS)}")
    module, _, name = KINDS[kind].partition(":")
    return getattr(import_module(module), f"{what}_{name}")
