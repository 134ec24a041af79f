"""Records: values of almost any kind as JSON and arrays, so that they fit into a safetensors file.

Checkpoints, shards and the data of a fit are written in this form. Nothing in a file is executed,
and no class is looked up but those of softcount and of modules that the reader names: dataclasses
and named tuples of them are made from their fields.

>>> structure, arrays = pack({"words": ["a", "b"], "x": np.arange(3)})
>>> unpack(structure, arrays)
{'words': ['a', 'b'], 'x': array([0, 1, 2])}
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from importlib import import_module
from json import dumps
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from softcount.core import store
from softcount.core.errors import StoreError, brief
from softcount.core.types import Array

KIND = "record"
"""The kind of a file that holds a record."""

PACKAGE = "softcount"

FEW = 16
"""Lists of at most this many strings stay readable in the JSON; longer ones become arrays."""

BROKEN = (
    *(LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, ImportError, RecursionError),
)
"""Errors that the contents of a damaged or foreign file may lead to."""


class NotRecordable(StoreError):
    """A value that has no form as a record."""


def pack(value: Any) -> tuple[Any, dict[str, Array]]:
    """Return a value as a structure of JSON values and the arrays that it refers to.

    Plain Python values, containers, arrays, sparse matrices, enums, dataclasses and named tuples
    can be packed. Private fields of a dataclass with a default are caches, and are left out.
    """
    packer = _Packer()
    return packer.pack(value, ""), packer.arrays


def unpack(structure: Any, arrays: Mapping[str, Array], modules: Collection[str] = ()) -> Any:
    """Make the value that `pack` was given.

    ``modules``  names of modules, imported already, whose dataclasses and named tuples may be made
                 besides softcount's own
    """
    try:
        return _Unpacker(arrays, modules).unpack(structure)
    except StoreError:
        raise
    except BROKEN as error:
        raise StoreError(f"this is not an intact record: {error}", store.DAMAGED) from error


def write_record(path: str | PathLike[str], value: Any, signature: str = "") -> None:
    """Write a value to a file, atomically and with a checksum."""
    structure, arrays = pack(value)
    store.write(path, KIND, arrays, {"structure": structure}, signature)


def read_record(path: str | PathLike[str], modules: Collection[str] = ()) -> Any:
    """Read a value that `write_record` wrote; see `unpack` for ``modules``."""
    stored = store.read(path, KIND)
    return unpack(stored.meta.get("structure"), stored.arrays, modules)


def digest(value: Any) -> str:
    """Return a digest of a value, the same in every process and on every machine."""
    structure, arrays = pack(value)
    total = sha256(dumps(structure).encode())
    for name, array in arrays.items():
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


class _Packer:
    """Collects the arrays of a record; their names are the paths of the values."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def pack(self, value: Any, path: str) -> Any:
        if value is None or isinstance(value, bool) or type(value) in (int, str):
            return value if not isinstance(value, str) else self._string(value)
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), path)}
        if isinstance(value, Enum):
            return {"enum": _name_of(type(value)), "name": value.name}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._record(value, value._fields, path)
        if is_dataclass(value) and not isinstance(value, type):
            names = [
                field.name
                for field in fields(value)
                if field.init and not field.name.startswith("_")
            ]
            return self._record(value, names, path)
        if isinstance(value, list):
            return self._list(value, path)
        if isinstance(value, tuple | set | frozenset):
            name = type(value).__name__
            items = list(value) if name == "tuple" else sorted(value, key=repr)
            return {name: self._list(items, f"{path}/{name}")}
        if isinstance(value, Mapping):
            pairs = [
                [self.pack(key, f"{path}/key{n}"), self.pack(each, f"{path}/{_label(key, n)}")]
                for n, (key, each) in enumerate(value.items())
            ]
            return {"dict": pairs}
        if isinstance(value, Path):
            return {"path": fspath(value)}
        if hasattr(value, "tocsr") and hasattr(value, "nnz"):
            rows = value.tocsr()
            parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
            packed = {name: self._array(part, f"{path}/{name}") for name, part in parts.items()}
            kind = [value.format, "array" in type(value).__name__, list(map(int, value.shape))]
            return {"sparse": kind, **packed}
        raise NotRecordable(
            f"a value of type {type(value).__name__} cannot be written: {brief(value)}",
            "use numbers, strings, lists, mappings, arrays, or dataclasses and named tuples of "
            "these",
        )

    def _string(self, text: str) -> Any:
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON files cannot hold
            return {"text": text.encode("utf-8", "surrogatepass").hex()}
        return text

    def _array(self, array: Array, path: str) -> Any:
        kind = array.dtype.kind
        if kind == "b":
            self.arrays[path] = array.astype(np.uint8)
            return {"bools": path}
        if kind in "iuf" and array.dtype.itemsize <= 8:
            self.arrays[path] = array
            return {"array": path}
        if kind in "OU":
            items = self._list(array.reshape(-1).tolist(), f"{path}/items")
            return {"objects": items, "kind": kind, "shape": list(array.shape)}
        raise NotRecordable(f"an array of dtype {array.dtype} cannot be written")

    def _list(self, items: list[Any], path: str) -> Any:
        if len(items) <= FEW:
            return [self.pack(item, f"{path}/{n}") for n, item in enumerate(items)]
        if all(type(item) is str for item in items):
            return {"strings": self._strings(items, path)}
        if all(type(item) is list for item in items):
            inner = [word for item in items for word in item]
            if all(type(word) is str for word in inner):
                self.arrays[f"{path}/lengths"] = np.array([len(item) for item in items], np.int64)
                return {"sentences": self._strings(inner, path)}
        for kind, dtype in ((int, np.int64), (float, np.float64)):
            if all(type(item) is kind for item in items):
                try:
                    self.arrays[path] = np.array(items, dtype)
                except OverflowError:  # an integer of more than 64 bits
                    break
                return {"numbers": path}
        return [self.pack(item, f"{path}/{n}") for n, item in enumerate(items)]

    def _strings(self, items: list[str], path: str) -> str:
        encoded = [item.encode("utf-8", "surrogatepass") for item in items]
        ends = np.cumsum([len(item) for item in encoded], dtype=np.int64)
        self.arrays[f"{path}/ends"] = ends
        self.arrays[f"{path}/bytes"] = np.frombuffer(b"".join(encoded), np.uint8)
        return path

    def _record(self, value: Any, names: Collection[str], path: str) -> Any:
        packed = {name: self.pack(getattr(value, name), f"{path}/{name}") for name in names}
        return {"record": _name_of(type(value)), "fields": packed}


class _Unpacker:
    """Makes values from their structure; everything in it is checked."""

    def __init__(self, arrays: Mapping[str, Array], modules: Collection[str]) -> None:
        self.arrays, self.modules = arrays, modules
        kinds: dict[str, Callable[[Any], Any]] = {
            "float": lambda node: float(node["float"]),
            "text": lambda node: bytes.fromhex(node["text"]).decode("utf-8", "surrogatepass"),
            "array": lambda node: arrays[node["array"]],
            "bools": lambda node: arrays[node["bools"]].astype(np.bool_),
            "objects": self._objects,
            "scalar": lambda node: self.unpack(node["scalar"])[()],
            "enum": lambda node: self._class(node["enum"], Enum)[node["name"]],
            "record": self._record,
            "strings": lambda node: self._strings(node["strings"]),
            "sentences": self._sentences,
            "numbers": lambda node: arrays[node["numbers"]].tolist(),
            "tuple": lambda node: tuple(self.unpack(node["tuple"])),
            "set": lambda node: set(self.unpack(node["set"])),
            "frozenset": lambda node: frozenset(self.unpack(node["frozenset"])),
            "dict": lambda node: {
                self.unpack(key): self.unpack(value) for key, value in node["dict"]
            },
            "path": lambda node: Path(node["path"]),
            "sparse": self._sparse,
        }
        self.kinds = kinds

    def unpack(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.unpack(each) for each in node]
        if isinstance(node, dict):
            return self.kinds[next(iter(node), "")](node)
        return node

    def _objects(self, node: Any) -> Array:
        items = self.unpack(node["objects"])
        if node["kind"] == "U":
            return np.array(items, dtype=str).reshape(node["shape"])
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(node["shape"])

    def _strings(self, path: str) -> list[str]:
        content = self.arrays[f"{path}/bytes"].tobytes()
        begin, items = 0, []
        for end in self.arrays[f"{path}/ends"].tolist():
            items.append(content[begin:end].decode("utf-8", "surrogatepass"))
            begin = end
        return items

    def _sentences(self, node: Any) -> list[list[str]]:
        words, begin, items = self._strings(node["sentences"]), 0, []
        for length in self.arrays[f"{node['sentences']}/lengths"].tolist():
            items.append(words[begin : begin + length])
            begin += length
        return items

    def _sparse(self, node: Any) -> Any:
        from scipy import sparse

        parts = [self.unpack(node[name]) for name in ("data", "indices", "indptr")]
        kind, is_array, shape = node["sparse"]
        make = sparse.csr_array if is_array else sparse.csr_matrix
        matrix = make(tuple(parts), shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix.asformat(kind)

    def _record(self, node: Any) -> Any:
        values = {name: self.unpack(each) for name, each in node["fields"].items()}
        return self._class(node["record"])(**values)

    def _class(self, name: str, kind: type = object) -> Any:
        """Find a class by its name, if it may be made."""
        module, _, path = name.partition(":")
        is_ours = module == PACKAGE or module.startswith(f"{PACKAGE}.")
        if not is_ours and module not in self.modules:
            raise StoreError(
                f"the file holds a {name}, which is not a class of softcount",
                "import the module that defines it, and pass its name in modules",
            )
        found: Any = import_module(module) if is_ours else sys.modules[module]
        for part in path.split("."):
            found = getattr(found, part)
        makeable = is_dataclass(found) or hasattr(found, "_fields") or issubclass(found, Enum)
        if not makeable or not issubclass(found, kind) or found.__module__ != module:
            raise StoreError(f"the file holds a {name}, which is not a record", store.DAMAGED)
        return found


def _name_of(cls: type) -> str:
    if "<locals>" in cls.__qualname__:
        raise NotRecordable(
            f"{cls.__qualname__} is defined inside a function: it could not be found again",
            "define the class at the top level of a module",
        )
    return f"{cls.__module__}:{cls.__qualname__}"


def _label(key: Any, number: int) -> str:
    """Name the value of a key in the names of arrays."""
    return key if isinstance(key, str) and key.isidentifier() else f"value{number}"
