"""Corpora larger than memory: columns of numbers in a folder, of which parts are read when used.

    corpus/
      shard-00000.safetensors   consecutive items: one array for each column
      shard-00001.safetensors
      words.json                names of what the numbers stand for
      meta.json                 what the corpus is, with a checksum of every file; written last

A column is a `DiskArray`: it is indexed like the array that it stands for, and typed as one, but
holds nothing but the name of its folder. So a text on disk has the same type as one in memory (a
`Sequences`, say), is picklable, and can be used by other processes that see the same folder.

Nothing in a folder is trusted without a check: sizes when it is opened, numbers when they are read,
and checksums by `CorpusFolder.verify`, as that reads all files.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from softcount.core.drafts import open_whole_folder
from softcount.core.errors import DataError, StoreError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import Array, IntArray
from softcount.text.lines import Name, size_of_file

T = TypeVar("T")

META = "meta.json"
FORMAT, FORMAT_VERSION = "softcount corpus", 1
LARGEST_META = 1 << 26
"""A larger meta.json, in bytes, is refused as damaged."""
DAMAGED = "the corpus is damaged or was not written by softcount: build it again"
SHARD_BYTES = 1 << 24
"""Size of a file from which on the next items go to another one. What is read together is mostly
larger, and what is larger is built up in memory."""
BLOCK, BLOCK_SIZE = 1 << 12, 1 << 20
"""Items that are read and encoded at a time; and letters, words or numbers in these, from which on
there are no more, so that long items do not fill the memory."""
OnProgress = Callable[[int], object]
DTYPES = ("|u1", "<u2", "<i4", "<i8", "<f4", "<f8")


# Reading


@dataclass(frozen=True)
class StoredColumn:
    """What a corpus's metadata say of a column.

    ``dtype``  the dtype of its numbers, one of `DTYPES`
    ``shape``  the shape of a row: () for numbers, (dimensions,) for vectors
    ``rows``   the number of rows in each file
    """

    dtype: str
    shape: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()

    def size_of(self, rows: int) -> int:
        """Return the size of some rows in bytes."""
        return rows * math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class CorpusFacts:
    """The metadata of a corpus, as stored in ``meta.json``.

    ``kind``     what the items are: "sentences", "pairs", …
    ``n_items``  the number of items
    ``columns``  its columns, by name
    ``sources``  name and number of items of each file that it was built from
    ``about``    whatever else the kind needs to know, as JSON
    ``shards``   size and SHA-256 of each file of columns
    ``names``    size and SHA-256 of each file of names
    """

    kind: str
    n_items: int
    columns: Mapping[str, StoredColumn]
    sources: Sequence[tuple[str, int]]
    about: Mapping[str, Any]
    shards: Sequence[tuple[int, str]]
    names: Mapping[str, tuple[int, str]]

    @cached_property
    def digest(self) -> str:
        """A digest of the metadata, checksums of all files among them."""
        contents = json.loads(json.dumps(self.contents()))  # as it is read: lists, not tuples
        return hashlib.sha256(json.dumps(contents, sort_keys=True).encode("ascii")).hexdigest()

    def contents(self) -> dict[str, Any]:
        """Return the metadata as JSON values."""
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}

    @property
    def n_bytes(self) -> int:
        """The size of all files but ``meta.json``."""
        return sum(size for size, _ in chain(self.shards, self.names.values()))


@dataclass(frozen=True, eq=False)
class CorpusFolder(PickledWithoutCaches):
    """A corpus on disk: its folder, and a digest of what is in it.

    Pickles and records hold these two alone; whoever reads them must see the same folder, and
    another corpus in its place is an error.
    """

    folder: Path
    digest: str

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> CorpusFolder:
        """Open the corpus in a folder; raise `StoreError` if there is none."""
        folder = Path(path).absolute()
        return cls(folder, read_facts(folder).digest)

    @property
    def facts(self) -> CorpusFacts:
        """The metadata; an error if there is another corpus in the folder by now."""
        facts = _read_current(self.folder)
        if facts.digest != self.digest:
            raise StoreError(
                f"the corpus in {self.folder} is not the one that these data are from",
                "put that corpus back, or learn from this one from the start",
            )
        return facts

    def column(
        self, name: str, least: float | None = None, below: float | None = None
    ) -> DiskArray:
        """Return a column; whatever is read of it must be ≥ ``least`` and < ``below``, if given."""
        column = self.facts.columns.get(name)
        if column is None:
            raise StoreError(f"the corpus in {self.folder} has no {name}", DAMAGED)
        if below is not None and (column.shape or np.dtype(column.dtype).kind == "f"):
            raise StoreError(f"{name} of the corpus in {self.folder} are not numbers", DAMAGED)
        return DiskArray(self, name, least, below)

    def offsets(self, name: str, column: str) -> IntArray:
        """Read the lengths of items into memory; return where each item begins, (items + 1,).

        ``column``  the column whose rows belong to items, this many to each
        """
        rows = len(self.column(column))
        lengths = np.asarray(self.column(name, least=0, below=rows + 1), np.int64)
        borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        facts = self.facts.columns
        ends = np.cumsum((0, *facts[name].rows)), np.cumsum((0, *facts[column].rows))
        # every file has whole items
        if len(lengths) != self.facts.n_items or (borders[ends[0]] != ends[1]).any():
            raise StoreError(f"the lengths of the corpus in {self.folder} do not fit", DAMAGED)
        return borders

    def read_names(self, name: str) -> list[str]:
        """Read a list of distinct names."""
        path = self.folder / f"{name}.json"
        if name not in self.facts.names:
            raise StoreError(f"the corpus in {self.folder} has no {path.name}", DAMAGED)
        try:
            raw = path.read_bytes()
            names = json.loads(raw)
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{path} is not a list of names: {error}", DAMAGED) from error
        if hashlib.sha256(raw).hexdigest() != self.facts.names[name][1]:
            raise StoreError(f"{path} does not match its checksum", DAMAGED)
        valid = isinstance(names, list) and all(isinstance(each, str) for each in names)
        if not valid or len(set(names)) != len(names):
            raise StoreError(f"{path} is not a list of distinct names", DAMAGED)
        return names  # type: ignore[no-any-return]

    def verify(self) -> None:
        """Read every file and verify its checksum; raise `StoreError` if one does not match."""
        facts = self.facts
        stamps = {_shard_name(n): stamp for n, stamp in enumerate(facts.shards)}
        stamps |= {f"{name}.json": stamp for name, stamp in facts.names.items()}
        for name, (_, digest) in stamps.items():
            path = self.folder / name
            try:
                with path.open("rb") as file:
                    actual = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise StoreError(f"cannot read {path}: {error.strerror}", DAMAGED) from error
            if actual != digest:
                raise StoreError(f"{path} does not match its checksum", DAMAGED)

    def name_item(self, number: int, what: str = "item") -> str:
        """Return the name of an item for messages: FILE:LINE if known."""
        before = 0
        for source, n in self.facts.sources:
            if number < before + n:
                return f"{source}:{number - before + 1}" if source else f"{what} {number}"
            before += n
        return f"{what} {number}"


@dataclass(frozen=True, eq=False)
class DiskArray(PickledWithoutCaches):
    """A column of a corpus on disk, of which slices and selections are read as arrays.

    ``corpus``         the corpus
    ``name``           the name of the column
    ``least, below``   bounds that all numbers must be within, checked when they are read
    ``renumber``       new numbers of what the column's numbers stand for; None: as they are

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "corpus"
    >>> with new_corpus(folder, "points", {"x": StoredColumn("<f8", (2,))}) as writer:
    ...     writer.append(1, x=np.zeros((1, 2)))
    ...     writer.append(2, x=np.ones((2, 2)))
    >>> x = CorpusFolder.open(folder).column("x")
    >>> x.shape, x[1:].tolist(), x[np.array([2, 0])][:, 0].tolist()
    ((3, 2), [[1.0, 1.0], [1.0, 1.0]], [1.0, 0.0])
    """

    corpus: CorpusFolder
    name: str
    least: float | None = None
    below: float | None = None
    renumber: IntArray | None = None

    @cached_property
    def _column(self) -> StoredColumn:
        return self.corpus.facts.columns[self.name]

    @cached_property
    def _ends(self) -> IntArray:
        """The rows at which files begin, and the number of rows, (files + 1,)."""
        return np.cumsum((0, *self._column.rows))

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self._column.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._column.dtype) if self.renumber is None else self.renumber.dtype

    @property
    def nbytes(self) -> int:
        """The size that all of it would have in memory."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.parts())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole: Array = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __getitem__(self, rows: Any) -> Any:
        """Read some rows: a slice, an array of row numbers or of truth values, or a single row."""
        n = len(self)
        if isinstance(rows, slice):
            first, last, step = rows.indices(n)
            if step == 1:
                return self._read([(first, max(first, last))])
            rows = np.arange(first, last, step)
        if isinstance(rows, int | np.integer):
            row = range(n)[int(rows)]  # counts from the end, and raises, as for a list
            return self._read([(row, row + 1)])[0]
        rows = _row_numbers(rows, n)
        if not len(rows):
            return self._read([])
        begins = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        runs = zip(rows[begins], rows[np.append(begins[1:], len(rows)) - 1] + 1, strict=True)
        return self._read(list(runs))

    def parts(self) -> Iterator[Array]:
        """Yield all rows, one file at a time."""
        for first, last in zip(self._ends[:-1], self._ends[1:], strict=True):
            yield self._read([(int(first), int(last))])

    def renumbered(self, numbers: IntArray) -> DiskArray:
        """Return the column with other numbers: number k becomes ``numbers[k]``."""
        before = self.renumber
        return replace(self, renumber=numbers if before is None else numbers[before])

    def _read(self, runs: Sequence[tuple[int, int]]) -> Array:
        """Read runs of consecutive rows, one after the other; each file is opened once."""
        _ = self.corpus.facts  # still the same
        ends, column = self._ends, self._column
        wanted: dict[int, list[tuple[int, int, int]]] = {}  # by file: rows there, and place here
        size = 0
        for first, last in runs:
            file = int(np.searchsorted(ends, first, side="right")) - 1
            while first < last:
                upto = min(int(last), int(ends[file + 1]))
                if first < upto:
                    wanted.setdefault(file, []).append(
                        (int(first - ends[file]), int(upto - ends[file]), size)
                    )
                    size += upto - int(first)
                first, file = upto, file + 1
        found = np.empty((size, *column.shape), column.dtype)
        for number, pieces in wanted.items():
            path = self.corpus.folder / _shard_name(number)
            try:
                with safe_open(path, framework="numpy") as opened:
                    stored = opened.get_slice(self.name)
                    rows = column.rows[number]
                    if tuple(stored.get_shape()) != (rows, *column.shape):
                        raise ValueError(f"{self.name} has another shape")
                    for first, last, at in pieces:
                        piece = stored[first:last]
                        if piece.dtype != found.dtype:
                            raise ValueError(f"{self.name} has the dtype {piece.dtype}")
                        found[at : at + last - first] = piece
            except OSError as error:
                raise StoreError(f"cannot read {path}: {error}", DAMAGED) from error
            except (SafetensorError, ValueError, TypeError, KeyError) as error:
                raise StoreError(f"{path} is not intact: {error}", DAMAGED) from error
        self._check(found)
        return found if self.renumber is None else self.renumber[found]

    def _check(self, values: Array) -> None:
        if not values.size:
            return
        least, most = values.min(), values.max()
        valid = bool(np.isfinite(least) and np.isfinite(most))  # NaN is neither
        if self.least is not None:
            valid &= bool(least >= self.least)
        if self.below is not None:
            valid &= bool(most < self.below)
        if not valid:
            raise StoreError(
                f"the corpus in {self.corpus.folder} has {self.name} out of range", DAMAGED
            )


def _row_numbers(rows: Any, n: int) -> IntArray:
    """Return numbers of rows from 0 for whatever selects rows of an array with ``n`` rows."""
    numbers = np.asarray(rows)
    if isinstance(rows, tuple) or numbers.ndim != 1:
        raise IndexError(f"rows are selected by numbers or truth values, not by {brief(rows)}")
    if numbers.dtype == np.bool_:
        if len(numbers) != n:
            raise IndexError(f"there are {n} rows, and {len(numbers)} truth values")
        return np.flatnonzero(numbers)
    if len(numbers) and numbers.dtype.kind not in "iu":
        raise IndexError(f"these are not numbers of rows: {brief(rows)}")
    numbers = numbers.astype(np.int64)
    if len(numbers) and not -n <= numbers.min() <= numbers.max() < n:
        raise IndexError(f"there are {n} rows")
    return np.where(numbers < 0, numbers + n, numbers)


def number_items(numbers: Any, n: int) -> IntArray:
    """Return the numbers of the items that a slice or an array selects of ``n``."""
    if isinstance(numbers, slice):
        return np.arange(*numbers.indices(n))
    chosen: IntArray = np.arange(n)[numbers]
    return chosen


def find_rows(indptr: IntArray, items: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows that belong to some items, one after the other, and the items' new borders.

    ``indptr``  item n has the rows ``indptr[n]`` to ``indptr[n + 1]`` (exclusive)
    """
    begins = indptr[items]
    lengths = indptr[items + 1] - begins
    borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return np.repeat(begins - borders[:-1], lengths) + np.arange(borders[-1]), borders


def is_on_disk(array: Any) -> bool:
    """Return whether an array is a column of a corpus on disk."""
    return isinstance(array, DiskArray)


@dataclass(frozen=True, eq=False)
class ShardsOnAccess(Sequence[T], Generic[T]):
    """Shards that are made when they are accessed, and not kept.

    Engines send this sequence to other processes as it is; shards are made there.

    ``make``       function (or bound method of a corpus) that makes a shard
    ``arguments``  its arguments for each shard
    """

    make: Callable[..., T]
    arguments: Sequence[tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.arguments)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> ShardsOnAccess[T]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return replace(self, arguments=self.arguments[index])
        return self.make(*self.arguments[index])


def _shard_name(number: int) -> str:
    return f"shard-{number:05d}.safetensors"


def _read_current(folder: Path) -> CorpusFacts:
    """Return the metadata of the corpus that is in a folder now; read again only if it changed."""
    try:
        now = (folder / META).stat()
    except (OSError, ValueError):
        return read_facts(folder)  # which says what is wrong
    return _facts_of(folder, (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns))


@lru_cache(maxsize=64)
def _facts_of(folder: Path, stamp: tuple[int, ...]) -> CorpusFacts:
    return read_facts(folder)


def is_corpus(path: str | os.PathLike[str]) -> bool:
    """Return whether this is the folder of a corpus (or of an archive of documents)."""
    try:
        return (Path(path) / META).is_file()
    except (OSError, ValueError):  # a name that cannot be one
        return False


def read_facts(folder: Path) -> CorpusFacts:
    """Read the metadata of a corpus, and check that they are plausible and that files exist.

    Raises `StoreError` otherwise. Sizes are checked here; contents when they are used.
    """
    path = folder / META
    if not folder.is_dir():
        raise StoreError(f"there is no corpus {folder}", "build one: softcount corpus build")
    if not path.exists():  # it is written last, into a folder that has another name until then
        raise StoreError(
            f"{folder} is not a corpus: it has no {META}",
            "name the files in the folder, or build a corpus from them: softcount corpus build; "
            "one that is being built appears when it is complete",
        )
    try:
        if size_of_file(path, DAMAGED) > LARGEST_META:
            raise ValueError("it is too large")
        meta = json.loads(path.read_bytes())
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            raise ValueError("it does not describe a softcount corpus")
        if meta.get("format_version") != FORMAT_VERSION:
            raise StoreError(
                f"{path} has format version {brief(meta.get('format_version'))}, "
                f"but this softcount reads version {FORMAT_VERSION}",
                "install a softcount that reads it, or build the corpus again",
            )
        claimed = meta.pop("sha256", None)
        columns = {
            name: StoredColumn(each["dtype"], tuple(each["shape"]), tuple(each["rows"]))
            for name, each in meta["columns"].items()
        }
        facts = CorpusFacts(
            **{each.name: meta[each.name] for each in fields(CorpusFacts)} | {"columns": columns}
        )
        if facts.digest != claimed:
            raise ValueError("it does not match its own checksum")
        _check_facts(facts)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise StoreError(f"{path} is not intact: {said}", DAMAGED) from error
    stamps = {_shard_name(n): size for n, (size, _) in enumerate(facts.shards)}
    stamps |= {f"{name}.json": size for name, (size, _) in facts.names.items()}
    for name, size in stamps.items():
        if (actual := size_of_file(folder / name, DAMAGED)) != size:
            raise StoreError(f"{folder / name} has {actual} bytes, not {size}", DAMAGED)
    return facts


def _check_facts(facts: CorpusFacts) -> None:
    """Raise `ValueError` or `TypeError` for metadata that cannot be those of a corpus."""
    sizes = [size for size, _ in (*facts.shards, *facts.names.values())]
    counts = [facts.n_items, *sizes, *(n for _, n in facts.sources)]
    for column in facts.columns.values():
        if column.dtype not in DTYPES or len(column.rows) != len(facts.shards):
            raise ValueError("its columns are invalid")
        counts += [*column.rows, *column.shape]
    if not all(type(count) is int and 0 <= count < 1 << 56 for count in counts):
        raise ValueError("its sizes are invalid")
    for n, (size, _) in enumerate(facts.shards):  # a small file must not ask for much memory
        if size < sum(column.size_of(column.rows[n]) for column in facts.columns.values()):
            raise ValueError("its columns are larger than its files")
    strings = [facts.kind, *facts.names, *(name for name, _ in facts.sources)]
    if not all(isinstance(each, str) for each in strings) or not isinstance(facts.about, dict):
        raise ValueError("its facts are invalid")
    if not all(name.isidentifier() for name in facts.names):  # no path that leads elsewhere
        raise ValueError("its files have invalid names")


# Writing


@dataclass
class CorpusWriter:
    """Writer of a corpus: items are appended, and go to files of about `SHARD_BYTES`.

    ``folder``   an empty folder
    ``columns``  dtype and shape of the columns' rows, by name
    ``on_progress``  called with the number of items so far
    ``about``    further facts, which may be filled in until the end
    ``sources``  name and number of items of each file that the items are from
    """

    folder: Path
    kind: str
    columns: Mapping[str, StoredColumn]
    on_progress: OnProgress = lambda items: None
    about: dict[str, Any] = field(default_factory=dict)
    sources: list[tuple[str, int]] = field(default_factory=list)
    n_items: int = 0
    _names: dict[str, tuple[int, str]] = field(default_factory=dict)
    _shards: list[tuple[int, str]] = field(default_factory=list)
    _rows: dict[str, list[int]] = field(default_factory=dict)
    _waiting: dict[str, list[Array]] = field(default_factory=dict)
    _size: int = 0

    def append(self, items: int, **rows: Array) -> None:
        """Append items with their rows of each column."""
        assert rows.keys() == self.columns.keys()
        self.n_items += items
        for name, values in rows.items():
            array = np.asarray(values, self.columns[name].dtype)
            self._waiting.setdefault(name, []).append(array)
            self._size += array.nbytes
        if self._size >= SHARD_BYTES:
            self._flush()
        self.on_progress(self.n_items)

    def write_names(self, name: str, names: Sequence[str]) -> None:
        """Write a list of distinct names."""
        text = "[\n" + ",\n".join(map(json.dumps, names)) + "\n]\n"
        self._names[name] = self._write(f"{name}.json", text.encode("ascii"))

    def finish(self) -> None:
        """Write what is left, and the metadata."""
        if self._size or not self._shards:
            self._flush()
        columns = {
            name: replace(column, rows=tuple(self._rows[name]))
            for name, column in self.columns.items()
        }
        facts = CorpusFacts(
            self.kind,
            self.n_items,
            columns,
            self.sources,
            self.about,
            self._shards,
            self._names,
        )
        contents = {**facts.contents(), "sha256": facts.digest}
        self._write(META, (json.dumps(contents, indent=1) + "\n").encode("ascii"))

    def _flush(self) -> None:
        arrays = {}
        for name, column in self.columns.items():
            waiting = [each.reshape(-1) for each in self._waiting.get(name, ())]
            whole = np.concatenate([np.zeros(0, column.dtype), *waiting])
            arrays[name] = whole.reshape(-1, *column.shape)
            self._rows.setdefault(name, []).append(len(arrays[name]))
        self._waiting, self._size = {}, 0
        self._shards.append(self._write(_shard_name(len(self._shards)), save(arrays)))

    def _write(self, name: str, content: bytes) -> tuple[int, str]:
        """Write a new file and flush it to the disk; return its size and SHA-256."""
        try:
            with (self.folder / name).open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _cannot_write(self.folder.parent, error) from error
        return len(content), hashlib.sha256(content).hexdigest()


@contextmanager
def new_corpus(
    path: str | os.PathLike[str],
    kind: str,
    columns: Mapping[str, StoredColumn],
    on_progress: OnProgress = lambda items: None,
) -> Iterator[CorpusWriter]:
    """Make a corpus that appears under its name, complete, at the end of the ``with`` block.

    After an error nothing is left. The folder must not exist yet.
    """
    target = Path(path)
    if os.path.lexists(target):
        raise StoreError(f"{target} already exists", "remove it, or choose another name")
    of_block: OSError | None = None
    try:
        with open_whole_folder(target) as folder:
            writer = CorpusWriter(folder, kind, columns, on_progress)
            try:
                yield writer
            except OSError as error:
                of_block = error  # reading the items failed, not writing them
                raise
            if not writer.n_items:
                raise DataError(f"there are no {kind}", "give at least one")
            writer.finish()
    except OSError as error:
        if error is of_block:
            raise
        raise _cannot_write(target, error) from error


def _cannot_write(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot write {path}: {error.strerror or error}",
        "choose a folder that exists, is writable and has free space",
    )


def read_in_blocks(
    data: Any, writer: CorpusWriter, unit: str, size: int | None = None
) -> Iterator[tuple[list[Any], Name]]:
    """Yield items in lists of some thousand, each with a function that names them in messages.

    ``data``  any iterable; or a mapping from the names of sources to iterables, as in
              ``{"news.txt": lines}``: an item is then called ``news.txt:17``
    ``unit``  what an item is called otherwise
    ``size``  the most items of a list; by default `BLOCK`
    """
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise DataError(
            f"the data are {brief(data)}", f"give an iterable, one {unit} after another"
        )
    sources = data if isinstance(data, Mapping) else {"": data}
    for source, items in sources.items():
        if not isinstance(source, str | os.PathLike):
            raise DataError(f"{brief(source)} is not a name", "name the parts of the data by texts")
        called, before = os.fspath(source), 0
        for block in _cut_into_blocks(items, size or BLOCK):
            first = before if called else writer.n_items

            def name(n: int, called: str = called, first: int = first) -> str:
                return f"{called}:{first + n + 1}" if called else f"{unit} {first + n}"

            yield block, name
            before += len(block)
        if isinstance(data, Mapping):
            writer.sources.append((called, before))


def _cut_into_blocks(items: Iterable[Any], most: int) -> Iterator[list[Any]]:
    block: list[Any] = []
    size = 0
    for item in items:
        block.append(item)
        if isinstance(item, np.ndarray):
            size += item.size
        elif isinstance(item, str | bytes | list | tuple):
            size += len(item)
        if len(block) >= most or size >= BLOCK_SIZE:
            yield block
            block, size = [], 0
    if block:
        yield block
