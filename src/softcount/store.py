"""One file for one fitted model: arrays in the safetensors layout, all else as JSON beside them.

A file is eight bytes (the header's length, little-endian), the header (JSON: name, dtype, shape and
place of each array, and ``__metadata__``, a mapping of strings), and the arrays' bytes. Nothing in
it is ever executed. A reader trusts no declared size before it has compared it with the file's own,
and a SHA-256 over everything that is returned tells damage from data.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from softcount.errors import StoreError
from softcount.types import Array

FORMAT = "softcount"
FORMAT_VERSION = 1
HEADER_LIMIT = 100_000_000
"""Bytes of header that readers of safetensors accept."""

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip
TAGS = {dtype: tag for tag, dtype in DTYPES.items()}

LOADERS = {"story": "softcount.models.story:StoryModel"}
"""Which class restores a file of which kind, as ``module:name``, imported only when needed."""

DAMAGED = "the file is damaged or was not written by softcount: save the model again"


@dataclass(frozen=True)
class Stored:
    """What a file holds: the kind of model, its arrays, its other facts, and how it came about."""

    kind: str
    arrays: Mapping[str, Array]
    meta: Mapping[str, Any]
    signature: str


@dataclass(frozen=True)
class Place:
    """Where one array lies in the file's data."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, Array],
    meta: Mapping[str, Any],
    signature: str,
) -> None:
    """Write one model file, all or nothing: what was there before survives any failure.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write(folder / "m.softcount", "story", {"t": np.ones(2)}, {"names": ["a", "b"]}, "a run")
    >>> read(folder / "m.softcount").meta
    {'names': ['a', 'b']}
    """
    target = Path(path)
    plain = {name: _plain(name, array) for name, array in arrays.items()}
    header = _header(kind, plain, meta, signature)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(header)
            for name in _order(plain):
                file.write(plain[name].reshape(-1).view(np.uint8).data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise StoreError(
            f"cannot write {target}: {error.strerror or error}",
            "choose a folder that exists, may be written to and has room; "
            "a file that was there before is untouched",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    _settle(target.parent)


def read(path: str | os.PathLike[str], kind: str | None = None) -> Stored:
    """Read one model file, of the given kind if one is given.

    Raises `StoreError` for anything but an intact file of this format.
    """
    source = Path(path)
    try:
        with _open_regular(source) as file:
            stored = _read(source, file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise StoreError(
            f"cannot read {source}: {error.strerror or error}", "check the path and its permissions"
        ) from error
    except MemoryError as error:
        raise StoreError(
            f"{source} does not fit into memory", "read it on a machine with more memory"
        ) from error
    if kind is not None and stored.kind != kind:
        raise StoreError(
            f"{source} holds a model of kind {stored.kind!r}, not {kind!r}",
            "load it with softcount.load, which finds the right class by itself",
        )
    return stored


def load(path: str | os.PathLike[str], **given: Any) -> Any:
    """Restore the model in a file, of whatever kind; ``given`` is handed to its ``restore``.

    A file holds tables, never code: what a model needs beside its tables (a story's function) must
    be given.
    """
    stored = read(path)
    if stored.kind not in LOADERS:
        raise StoreError(
            f"{path} holds a model of unknown kind {stored.kind!r}",
            f"this version knows {', '.join(sorted(LOADERS))}: it may need to be updated",
        )
    module, name = LOADERS[stored.kind].split(":")
    return getattr(import_module(module), name).restore(stored, **given)


# writing


def _plain(name: str, array: Array) -> Array:
    """The array as little-endian, C-ordered numbers."""
    array = np.asarray(array)
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
    if plain.dtype.str not in TAGS or name == "__metadata__":
        raise StoreError(
            f"array {name!r} of dtype {array.dtype} cannot be stored",
            "store integers or floats of at most 64 bits; put all else into meta, as JSON",
        )
    return plain


def _order(arrays: Mapping[str, Array]) -> list[str]:
    """Widest dtype first, so that every array starts at a multiple of its item size."""
    return sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))


def _header(
    kind: str, arrays: Mapping[str, Array], meta: Mapping[str, Any], signature: str
) -> bytes:
    try:
        facts = json.dumps(meta, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            f"the meta data cannot be written as JSON: {error}",
            "use strings, finite numbers, lists and mappings only; NaN may be stored in an array",
        ) from error
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "kind": kind,
        "signature": signature,
        "meta": facts,
        "sha256": _digest(kind, signature, facts, arrays),
    }
    entries: dict[str, Any] = {"__metadata__": metadata}
    begin = 0
    for name in _order(arrays):
        array = arrays[name]
        end = begin + array.nbytes
        entries[name] = {
            "dtype": TAGS[array.dtype.str],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_LIMIT:
        raise StoreError(
            f"the meta data takes {len(text)} bytes, and at most {HEADER_LIMIT} can be read back",
            "store long lists of numbers as arrays",
        )
    return struct.pack("<Q", len(text)) + text


def _settle(folder: Path) -> None:
    """Make the new name survive a power cut too, on systems where a folder can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _digest(kind: str, signature: str, facts: str, arrays: Mapping[str, Array]) -> str:
    """SHA-256 over all that a file says; every part is preceded by its length."""
    digest = hashlib.sha256()

    def add(part: Any) -> None:
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)

    for text in (FORMAT, str(FORMAT_VERSION), kind, signature, facts):
        add(text.encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        array = arrays[name]
        add(name.encode("utf-8", "surrogatepass"))
        add(array.dtype.str.encode())
        add(repr(array.shape).encode())
        add(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


# reading


@contextlib.contextmanager
def _open_regular(source: Path) -> Iterator[BufferedReader]:
    """Open a file, but no folder, pipe or device: reading those could wait for ever."""
    if not stat.S_ISREG(source.stat().st_mode):
        raise StoreError(f"{source} is not a file", "give the path of a saved model")
    with source.open("rb") as file:
        yield file


def _read(source: Path, file: BufferedReader, size: int) -> Stored:
    header, data_begin = _read_header(source, file, size)
    metadata = _metadata(source, header.pop("__metadata__", None))
    places = _places(source, header, size - data_begin)
    arrays = {place.name: _read_array(source, file, place) for place in places}
    kind, signature, facts = metadata["kind"], metadata["signature"], metadata["meta"]
    if _digest(kind, signature, facts, arrays) != metadata["sha256"]:
        raise StoreError(f"{source} does not match its own checksum", DAMAGED)
    meta = _json_object(source, facts, "the meta data")
    return Stored(kind, arrays, meta, signature)


def _read_header(source: Path, file: BufferedReader, size: int) -> tuple[dict[str, Any], int]:
    start = file.read(8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 2 <= length <= min(size - 8, HEADER_LIMIT):
        raise StoreError(
            f"{source} is not a model file: it has {size} bytes and claims a header of {length}",
            DAMAGED,
        )
    return _json_object(source, file.read(length), "the header"), 8 + length


def _json_object(source: Path, text: str | bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{source}: {what} is not readable JSON", DAMAGED) from error
    if not isinstance(value, dict):
        raise StoreError(f"{source}: {what} is not a JSON object", DAMAGED)
    return value


def _metadata(source: Path, found: Any) -> dict[str, str]:
    """The file's facts about itself, if they are of this format and version."""
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise StoreError(f"{source} is not a softcount model", DAMAGED)
    if found.get("format_version") != str(FORMAT_VERSION):
        raise StoreError(
            f"{source} has format version {found.get('format_version')!r}, "
            f"and this softcount reads {FORMAT_VERSION}",
            "install a softcount that reads it, or fit and save the model again",
        )
    needed = ("kind", "signature", "meta", "sha256")
    missing = [key for key in needed if not isinstance(found.get(key), str)]
    if missing:
        raise StoreError(f"{source} lacks {', '.join(missing)}", DAMAGED)
    return found


def _places(source: Path, header: Mapping[str, Any], data_size: int) -> list[Place]:
    """Where the arrays lie: one after another, without gaps or overlaps, to the last byte."""
    places = sorted(
        (_place(source, name, entry) for name, entry in header.items()),
        key=lambda place: (place.begin, place.end),
    )
    at = 0
    for place in places:
        if place.begin != at:
            raise StoreError(f"{source}: array {place.name!r} is out of place", DAMAGED)
        at = place.end
    if at != data_size:
        raise StoreError(
            f"{source} declares {at} bytes of arrays and holds {data_size}",
            "the file was cut short or has grown: save the model again",
        )
    return places


def _place(source: Path, name: str, entry: Any) -> Place:
    try:
        dtype = np.dtype(DTYPES[entry["dtype"]])
        shape = tuple(entry["shape"])
        begin, end = entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{source}: array {name!r} is not described properly", DAMAGED) from error
    whole = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
    if not whole or len(shape) > 32 or end - begin != dtype.itemsize * math.prod(shape):
        raise StoreError(f"{source}: array {name!r} contradicts its own size", DAMAGED)
    return Place(name, dtype, shape, begin, end)


def _read_array(source: Path, file: BufferedReader, place: Place) -> Array:
    try:
        array = np.empty(place.shape, place.dtype)
    except (ValueError, OverflowError) as error:
        raise StoreError(
            f"{source}: array {place.name!r} is of no possible shape", DAMAGED
        ) from error
    if file.readinto(array.reshape(-1).view(np.uint8).data) != place.end - place.begin:
        raise StoreError(f"{source} was cut short", DAMAGED)
    return array
