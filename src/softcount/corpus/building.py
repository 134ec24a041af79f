"""An archive is made: documents are read once, in order, with bounded memory.

The documents' words get provisional numbers and go to disk as they come. Then it is known which
words count, and all is written once more with final numbers, words in alphabetical order (or that
of another corpus whose words they are to be), and the documents shuffled if that is wanted.
"""

from __future__ import annotations

import json
import os
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from softcount.corpus import sources as came
from softcount.corpus.bags import Compressed
from softcount.corpus.facts import ORIGIN, VOCABULARY, Facts
from softcount.corpus.rows import INDPTR, RowFiles, RowWriter, cut, mapped, write_file, writing
from softcount.corpus.sources import Sources
from softcount.corpus.texts import described
from softcount.corpus.wordlist import Found, Known, Wanted, WordTable, renumbering
from softcount.drafts import open_whole_folder
from softcount.errors import DataError, StoreError
from softcount.types import Array

AT_ONCE = 1 << 20
"""So many words of text are in memory at a time, or a few more: a document is never cut."""
SHARD_ENTRIES, SHARD_DOCUMENTS = 1 << 22, 1 << 16
"""A shard's limits: so many counts, so many documents."""

OnProgress = Callable[[str, int], None]
"""Is told what is being done and how many documents are done."""


@dataclass(frozen=True)
class Raw:
    """Documents on disk with provisional numbers for words, and what is known of those words."""

    rows: RowFiles
    found: Iterable[Found] | None
    vectorizer: dict[str, Any] | None


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder that appears under its name when all is well, and else leaves nothing."""
    if os.path.lexists(target):
        raise StoreError(f"{target} is there already", "remove it, or choose another name")
    of_documents = None
    try:
        with open_whole_folder(target) as folder:
            try:
                yield folder
            except OSError as error:
                of_documents = error  # where documents come from may fail, too
                raise
    except OSError as error:
        if error is of_documents:
            raise
        with writing(target):
            raise


def build(
    sources: Sources,
    target: Path,
    wanted: Wanted,
    *,
    tokens: bool,
    vocabulary: Sequence[str] | None,
    known: Known | None,
    shuffle: int | None,
    on_progress: OnProgress,
) -> None:
    """Write an archive of these documents."""
    with new_folder(target) as folder:
        scratch = folder / "scratch"
        with writing(scratch):
            scratch.mkdir()
        first, documents = came.peeked(iter(sources))
        if came.is_matrix(first):
            _demand_matching_columns(vocabulary, known)
            raw = _read_blocks(documents, vocabulary, known, wanted, scratch, on_progress)
        elif vocabulary is not None:
            raise DataError("texts bring their own words", "leave out vocabulary")
        else:
            into_words = _cutter(first, tokens, known)
            raw = _read_texts(first, documents, sources, into_words, scratch, on_progress)
        _finish(raw, folder, wanted, known, sources, shuffle, on_progress)
        shutil.rmtree(scratch)


# the same words as another corpus
def _cutter(first: Any, tokens: bool, known: Known | None) -> Callable[[Any], list[str]]:
    """What cuts documents into words: as those of the other corpus were cut, if there is one."""
    if known is None:
        return came.cutter(first, tokens)
    if known.words is None:
        raise DataError(
            "the archive to be like has no names for its words, so texts cannot be counted by it",
            "give counts in the same columns, or an archive of texts",
        )
    into_words = came.cutter(first, tokens or known.analyzer == "spaces")
    analyzer = described(CountVectorizer(analyzer=into_words))["analyzer"]
    if known.analyzer not in (None, analyzer):
        raise DataError(
            f"the words of the archive to be like were cut otherwise ({known.analyzer!r}, and "
            f"these {analyzer!r})",
            "give documents of the same kind, and leave out tokens",
        )
    return into_words


def _demand_matching_columns(vocabulary: Sequence[str] | None, known: Known | None) -> None:
    if known is None or (vocabulary is None) == (known.words is None):
        return
    if vocabulary is None:
        raise DataError(
            "columns without names cannot be matched with the words they are to be like",
            "give the words of the columns: vocabulary=[…]",
        )
    raise DataError(
        "the archive to be like has no names for its words, and these columns have",
        "leave out vocabulary, if the columns are the same",
    )


# once through the documents
def _read_texts(
    first: Any,
    documents: Iterator[Any],
    sources: Sources,
    into_words: Callable[[Any], list[str]],
    scratch: Path,
    on_progress: OnProgress,
) -> Raw:
    table = WordTable(scratch)

    def cut_up() -> Iterator[list[str]]:
        for one in documents:
            came.demand_like(one, first, sources)
            yield into_words(one)

    with RowWriter(scratch) as writer:
        for part in _numbered(cut_up(), table):
            writer.append(part)
            on_progress("reading", writer.n_documents)
    rows = RowFiles(scratch, writer.n_documents, table.size, writer.n_entries, writer.counts)
    return Raw(rows, table.merged(), described(CountVectorizer(analyzer=into_words)))


def _numbered(documents: Iterator[list[str]], table: WordTable) -> Iterator[Compressed]:
    """Words as numbers, some documents at a time."""
    numbers, ends = array("i"), array("q", [0])
    for words in documents:
        numbers.extend(map(table.numbers.__getitem__, words))
        ends.append(len(numbers))
        if max(len(numbers), len(ends)) >= AT_ONCE:
            yield _added_up(numbers, ends, table)
            numbers, ends = array("i"), array("q", [0])
    if len(ends) > 1:
        yield _added_up(numbers, ends, table)


def _added_up(numbers: Sequence[int], ends: Sequence[int], table: WordTable) -> Compressed:
    """Each word of a document once, with its count."""
    rows = sparse.csr_matrix(
        (np.ones(len(numbers)), np.asarray(numbers), np.asarray(ends)),
        shape=(len(ends) - 1, table.size),
    )
    rows.sum_duplicates()
    table.add(rows.indices)
    return Compressed(rows.indptr, rows.indices, rows.data)


def _read_blocks(
    blocks: Iterator[Any],
    vocabulary: Sequence[str] | None,
    known: Known | None,
    wanted: Wanted,
    scratch: Path,
    on_progress: OnProgress,
) -> Raw:
    if vocabulary is None and wanted != Wanted():
        raise DataError(
            "columns without names cannot be left out: nobody could tell which ones are left",
            "give the words of the columns: vocabulary=[…]",
        )
    n_words = None if known is None else known.n_words  # of columns without names
    if vocabulary is not None:
        n_words = len(vocabulary)
    documents = np.zeros(0, np.int64)
    with RowWriter(scratch) as writer:
        for block in blocks:
            bags = came.block_bags(block, writer.n_documents, n_words)
            n_words = bags.n_words
            seen = np.bincount(bags.by_document.columns, minlength=n_words)
            documents = seen + documents if len(documents) else seen
            writer.append(bags.by_document)
            on_progress("reading", writer.n_documents)
    rows = RowFiles(scratch, writer.n_documents, n_words or 0, writer.n_entries, writer.counts)
    return Raw(rows, None if vocabulary is None else _columns(vocabulary, documents), None)


def _columns(vocabulary: Sequence[str], documents: Array) -> Iterator[Found]:
    for number, (word, n) in enumerate(zip(vocabulary, documents.tolist(), strict=True)):
        yield Found(word, n, (number,))


# once through the numbers
def _finish(
    raw: Raw,
    folder: Path,
    wanted: Wanted,
    known: Known | None,
    sources: Sources,
    shuffle: int | None,
    on_progress: OnProgress,
) -> None:
    n, n_words = raw.rows.n_documents, raw.rows.n_words
    new, files = None, {}
    if raw.found is not None:
        words: Sequence[str]
        if known is not None and known.words is not None:
            words, new = known.words, known.renumbering(raw.found, n_words)
        else:
            words, new = renumbering(wanted.choose(raw.found, n), n_words)
        n_words = len(words)
        files[VOCABULARY] = write_file(folder / VOCABULARY, _one_a_line(words))
    order = None if shuffle is None else np.random.default_rng(shuffle).permutation(n)
    if order is not None:
        files[ORIGIN] = write_file(folder / ORIGIN, order.astype("<i8"))
    with RowWriter(folder) as writer:
        for documents in _runs(raw.rows, order):
            writer.append(_renumbered(raw.rows.take(documents), new, n_words))
            on_progress("writing", writer.n_documents)
        files |= writer.sync()
    indptr = mapped(folder / INDPTR, "<i8", n + 1)
    kept = asdict(wanted) | {"stop_words": len(wanted.stop_words)}
    Facts(
        n_documents=n,
        n_words=n_words,
        n_entries=writer.n_entries,
        tokens=writer.tokens,
        counts=writer.counts,
        shards=[0, *(last for _, last in cut(indptr, SHARD_ENTRIES, SHARD_DOCUMENTS))],
        sources=sources.counts,
        shuffle=shuffle,
        vectorizer=raw.vectorizer,
        wanted=kept,
        files=files,
    ).write(folder)


def _one_a_line(words: Iterable[str]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, words)) + "\n]\n"


def _runs(rows: RowFiles, order: Array | None) -> Iterator[Array]:
    """All documents, in this order or their own, as many at a time as memory is meant to hold."""
    for first in range(0, rows.n_documents, SHARD_DOCUMENTS):
        last = min(first + SHARD_DOCUMENTS, rows.n_documents)
        some = np.arange(first, last) if order is None else order[first:last]
        indptr = rows.indptr
        ends = np.cumsum(indptr[some + 1] - indptr[some])
        borders = np.concatenate([np.zeros(1, np.int64), ends])
        for low, high in cut(borders, SHARD_ENTRIES, SHARD_DOCUMENTS):
            yield some[low:high]


def _renumbered(rows: Compressed, new: Array | None, n_words: int) -> Compressed:
    """Words with their new numbers, in their order; those without one are left out."""
    if new is None:
        return rows
    words = new[rows.columns]
    kept = words >= 0
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    matrix = sparse.csr_matrix(
        (rows.value[kept], words[kept], ends[rows.indptr]), shape=(len(rows.indptr) - 1, n_words)
    )
    matrix.sort_indices()
    return Compressed(matrix.indptr, matrix.indices, matrix.data)
