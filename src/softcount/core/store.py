"""Model files: arrays in the safetensors format, everything else as JSON metadata.

Nothing in a file is ever executed. The safetensors library checks every declared size against the
actual size of the file, and a SHA-256 checksum over everything that is returned detects damage. All
contents are validated before they are used: whatever is wrong with a file, a `StoreError` is
raised.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from softcount.core.bounds import MIN_ROW
from softcount.core.drafts import open_whole, write_whole
from softcount.core.errors import SoftcountError, StoreError
from softcount.core.types import Array
from softcount.families import Categorical, LogLinear
from softcount.families.base import Family, check_start

M = TypeVar("M")

FORMAT = "softcount"
"""The only metadata key: with several, the library would write them in no fixed order."""

FORMAT_VERSION = 1

LARGE = 1 << 26
"""Arrays of more bytes in total are written one by one, without a copy of them in memory."""

LOADERS = {
    name: f"softcount.{module}:{name}"
    for module, names in {
        "align": ("Aligner", "Diagonal", "GibbsAligner", "HMMAligner", "IBM1", "IBM2"),
        "annotators": ("Annotators",),
        "grammar": ("PCFG",),
        "hmm": ("HMM",),
        "hmm.estimators": ("GaussianHMM",),
        "instances": ("MultipleInstance",),
        "labels.propagation": ("LabelPropagation",),
        "mixture": (
            *("DirichletProcessGaussianMixture", "DirichletProcessMixture", "GaussianMixture"),
            *("KMeans", "MultinomialMixture", "NaiveBayes", "NaiveBayesCV", "SoftKMeans"),
        ),
        "senses": ("SenseInducer",),
        "topics": ("LDA", "PLSA"),
        "translate": ("Translator",),
        "translate.language_model": ("LanguageModel",),
    }.items()
    for name in names
} | {"story": "softcount.stories:StoryModel"}
"""The class that restores each kind of file, as ``module:name``, imported only when needed."""

UNREADABLE = (SafetensorError, ValueError, TypeError, AttributeError, KeyError, RecursionError)
"""Errors raised by broken headers, by dtypes and shapes unknown to numpy, and by foreign JSON."""

TABLE = "table."
"""Prefix of the names of tables in a file."""
OBJECTS = ("learner", "engine", "vectorizer")
"""Parameters that may be objects, which are never stored in a file."""
AGAIN = "the file was written by another version, or by hand: save the model again"
DAMAGED = "the file is damaged or was not written by softcount: save the model again"


@dataclass(frozen=True)
class Stored:
    """The contents of a file: the kind of model, its arrays, its metadata, and its signature."""

    kind: str
    arrays: Mapping[str, Array]
    meta: Mapping[str, Any]
    signature: str


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, Array],
    meta: Mapping[str, Any],
    signature: str,
) -> None:
    """Write a model file atomically: an existing file survives any failure.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write(folder / "m.softcount", "story", {"t": np.ones(2)}, {"names": ["a", "b"]}, "a run")
    >>> read(folder / "m.softcount").meta
    {'names': ['a', 'b']}
    """
    target = Path(path)
    plain, facts = _content(kind, arrays, meta, signature)
    try:
        if sum(array.nbytes for array in plain.values()) > LARGE:
            with open_whole(target) as file:
                _write_arrays(file, plain, facts)
        else:
            write_whole(target, _encode(plain, facts))
    except OSError as error:
        raise StoreError(
            f"cannot write {target}: {error.strerror or error}",
            "choose a folder that exists, may be written to and has room; "
            "a file that was there before is untouched",
        ) from error


def read(path: str | os.PathLike[str], kind: str | None = None) -> Stored:
    """Read a model file; check that it is of the given kind unless that is None.

    Raises `StoreError` for anything but an intact file of this format.
    """
    source = Path(path)
    try:
        stored = _read(source)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(
            f"cannot read {source}: {error.strerror or error}", "check the path and its permissions"
        ) from error
    except MemoryError as error:
        raise StoreError(
            f"{source} does not fit into memory", "read it on a machine with more memory"
        ) from error
    except UNREADABLE as error:
        raise StoreError(f"{source} is not an intact model file: {error}", DAMAGED) from error
    if kind is not None and stored.kind != kind:
        raise StoreError(
            f"{source} holds a model of kind {stored.kind!r}, not {kind!r}",
            "load it with softcount.load, which finds the right class by itself",
        )
    return stored


def load(path: str | os.PathLike[str], **given: Any) -> Any:
    """Load the model in a file, of whatever kind; ``given`` is passed to its ``restore``.

    A file holds tables, never code: anything else that a model needs (a story's function) must be
    given.
    """
    stored = read(path)
    if stored.kind not in LOADERS:
        raise StoreError(
            f"{path} holds a model of unknown kind {stored.kind!r}",
            f"this version knows {', '.join(sorted(LOADERS))}: it may need to be updated",
        )
    module, name = LOADERS[stored.kind].split(":")
    return getattr(import_module(module), name).restore(stored, **given)


def _content(
    kind: str, arrays: Mapping[str, Array], meta: Mapping[str, Any], signature: str
) -> tuple[dict[str, Array], str]:
    """Return the arrays of a file as they are written, and everything else as JSON."""
    plain = {name: _plain_array(np.asarray(array)) for name, array in arrays.items()}
    for name, array in plain.items():
        if not _is_storable(array) or name == "__metadata__":
            raise StoreError(
                f"array {name!r} of dtype {array.dtype} cannot be stored",
                "store integers or floats of at most 64 bits; put all else into meta, as JSON",
            )
    facts = {"format_version": FORMAT_VERSION, "kind": kind, "signature": signature, "meta": meta}
    with _as_json():
        # the checksum is of what a reader will see: JSON converts keys to strings, for example
        facts = json.loads(json.dumps(facts, allow_nan=False))
        facts["sha256"] = _digest(facts, plain)
        return plain, json.dumps(facts)


@contextmanager
def _as_json() -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, RecursionError, SafetensorError) as error:
        raise StoreError(
            f"the names and meta data cannot be written as JSON: {error}",
            "use strings, finite numbers, lists and mappings only; NaN and long lists of numbers "
            "may be stored in arrays",
        ) from error


def _encode(arrays: Mapping[str, Array], facts: str) -> bytes:
    """Encode the contents of a file as bytes."""
    with _as_json():
        return save(dict(arrays), metadata={FORMAT: facts})


def _write_arrays(file: BinaryIO, arrays: Mapping[str, Array], facts: str) -> None:
    """Write the contents of a large file, array by array; the library would first copy them all."""
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # so all are aligned
    header: dict[str, Any] = {"__metadata__": {FORMAT: facts}}
    place = 0
    for name in order:
        array = arrays[name]
        kind = f"{array.dtype.kind.upper()}{8 * array.itemsize}"
        ends = [place, place + array.nbytes]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": ends}
        place = ends[1]
    with _as_json():
        text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for name in order:
        file.write(arrays[name].reshape(-1).view(np.uint8).data)


def _read(source: Path) -> Stored:
    status = source.stat()
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device could block for ever
        raise StoreError(f"{source} is not a file", "give the path of a saved model")
    with safe_open(source, framework="numpy") as file:
        text = (file.metadata() or {}).get(FORMAT)
        if text is None:
            raise StoreError(f"{source} is not a softcount model", DAMAGED)
        facts: dict[str, Any] = json.loads(text)
        if facts["format_version"] != FORMAT_VERSION:
            raise StoreError(
                f"{source} has format version {facts['format_version']!r}, "
                f"and this softcount reads {FORMAT_VERSION}",
                "install a softcount that reads it, or fit and save the model again",
            )
        for name, kind in (("kind", str), ("signature", str), ("meta", dict), ("sha256", str)):
            if not isinstance(facts[name], kind):
                raise StoreError(f"{source}: {name} is not of type {kind.__name__}", DAMAGED)
        np.empty(status.st_size, np.uint8)  # raises MemoryError, where the library would panic
        arrays = {name: _plain_array(file.get_tensor(name)) for name in list(file.keys())}
    if not all(map(_is_storable, arrays.values())):
        raise StoreError(f"{source} holds arrays that are no numbers", DAMAGED)
    if facts.pop("sha256") != _digest(facts, arrays):
        raise StoreError(f"{source} does not match its own checksum", DAMAGED)
    return Stored(facts["kind"], arrays, facts["meta"], facts["signature"])


def _digest(facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """Compute the SHA-256 checksum over the contents of a file."""
    names = sorted(arrays)
    forms = [(name, arrays[name].dtype.str, arrays[name].shape) for name in names]
    digest = hashlib.sha256(json.dumps([facts, forms]).encode())
    for name in names:
        digest.update(arrays[name].reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _plain_array(array: Array) -> Array:
    """Return the array as little-endian numbers in C order."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _is_storable(array: Array) -> bool:
    return array.dtype.kind in "iuf" and array.dtype.itemsize <= 8


# Validation of the contents of a file.


def strings(given: Any, n: int, what: str) -> Array | None:
    """Check for a list of ``n`` strings and return it as an array; None stays None."""
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise StoreError(f"the {what} are not a list of strings", AGAIN)
    if len(given) != n:
        raise StoreError(f"there are {len(given)} {what} for {n} columns", AGAIN)
    return np.array(given, dtype=object)


def vocabulary(given: Any) -> list[str]:
    """Check for a list of distinct strings and return it."""
    strings(given, len(given), "words")
    if len(set(given)) != len(given):
        raise StoreError("the vocabulary contains a word twice", AGAIN)
    return given  # type: ignore[no-any-return]


def numbers(
    stored: Stored, name: str, shape: tuple[int | None, ...], most: float = np.inf
) -> Array:
    """Return an array of a file after checking it.

    ``shape``  the required shape (None: any length)
    ``most``   largest absolute value allowed; all numbers must be finite
    """
    array = np.asarray(stored.arrays[name], dtype=np.float64)
    fits = array.ndim == len(shape) and all(
        wanted is None or size == wanted for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits or not np.isfinite(array).all():
        raise StoreError(
            f"{name!r} has the shape {array.shape}, not {shape}, or holds what is no number", AGAIN
        )
    if array.size and np.abs(array).max() > most:
        raise StoreError(f"{name!r} holds {np.abs(array).max():.3g}, beyond {most:g}", AGAIN)
    return array


# Models that can be saved.


class Saveable:
    """Mixin for models that can be saved: their settings, and what `stored` returns."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, for `softcount.load`. Settings that are code are left out."""
        content = self.content()
        write(path, content.kind, content.arrays, content.meta, content.signature)

    @classmethod
    def load(cls, path: str | PathLike[str], **given: Any) -> Self:
        """Read a model that `save` wrote; ``given`` are settings that a file cannot hold."""
        return cls.restore(read(path, cls.__name__), **given)

    @classmethod
    def restore(cls, stored: Stored, **given: Any) -> Self:
        """Make a model from the contents of a file (see `softcount.load`).

        Whatever is wrong with the file, a `StoreError` is raised.
        """
        settings = merge_settings(cls, stored, given)

        def make() -> Any:
            model = cls(**settings)
            model.unpack(stored, given)
            return model

        return convert_errors(cls, make)

    def content(self) -> Stored:
        """Collect the contents of the file of the fitted model."""
        self._require_fit()  # type: ignore[attr-defined]
        arrays, facts = self.stored()
        meta = {"settings": plain_settings(self), **facts}
        return Stored(type(self).__name__, arrays, meta, self.signature_)  # type: ignore[attr-defined]

    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and metadata that a file must hold besides settings."""
        raise NotImplementedError

    def unpack(self, stored: Stored, given: Mapping[str, Any]) -> None:
        """Set the attributes of a fitted model from the contents of a file."""
        raise NotImplementedError


class SaveableTables(Saveable):
    """Mixin for estimators that can be saved: their tables, and facts about their columns."""

    def content(self) -> Stored:
        content = super().content()
        model: Any = self
        names = getattr(model, "feature_names_in_", None)
        meta = {
            "settings": content.meta["settings"],
            "n_features": int(model.n_features_in_),
            "feature_names": None if names is None else list(names),
            **content.meta,
        }
        tables = {TABLE + name: table for name, table in model.raw_params_.items()}
        return replace(content, arrays={**tables, **content.arrays}, meta=meta)

    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and metadata that a file must hold besides tables and settings."""
        return {}, {}

    def unpack(self, stored: Stored, given: Mapping[str, Any]) -> None:
        model: Any = self
        n_features = stored.meta["n_features"]
        if not isinstance(n_features, int) or n_features < 1:
            raise StoreError(f"{n_features!r} is no number of columns", AGAIN)
        model.n_features_in_ = n_features
        names = strings(stored.meta["feature_names"], n_features, "names of columns")
        if names is not None:
            model.feature_names_in_ = names
        # shapes are checked before anything of the size that the settings claim is allocated
        model.core_ = self.rebuild(stored, given)
        model.raw_params_ = _tables(model.core_.families, stored)
        model.signature_ = stored.signature

    @abstractmethod
    def rebuild(self, stored: Stored, given: Mapping[str, Any]) -> Any:
        """Restore attributes from what `stored` wrote; return the core of the tables."""


def plain_settings(model: Any) -> dict[str, Any]:
    """Return an estimator's settings, as far as JSON can represent them."""
    settings = {name: _plain(value) for name, value in model.get_params(deep=False).items()}
    return {name: value for name, value in settings.items() if value is not LEFT_OUT}


LEFT_OUT = object()


def _plain(value: Any) -> Any:
    """Convert a setting to a JSON value; `LEFT_OUT` if that is not possible."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "bui":
        value = value.tolist()
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return LEFT_OUT if any(part is LEFT_OUT for part in parts) else parts
    if isinstance(value, Mapping):
        entries = {str(name): _plain(entry) for name, entry in value.items()}
        return LEFT_OUT if any(entry is LEFT_OUT for entry in entries.values()) else entries
    return value if value is None or isinstance(value, str | int | float) else LEFT_OUT


def convert_errors(cls: type[M], make: Callable[[], M]) -> M:
    """Call ``make``, which makes a model from a file; convert its errors to a `StoreError`."""
    try:
        return make()
    except StoreError:
        raise
    except (
        SoftcountError,
        LookupError,
        TypeError,
        ArithmeticError,
        ValueError,
        AttributeError,
    ) as error:
        raise StoreError(
            f"the file does not describe a {cls.__name__}: {getattr(error, 'message', error)}",
            AGAIN,
        ) from error


def merge_settings(cls: type[M], stored: Stored, given: Mapping[str, Any]) -> dict[str, Any]:
    """Combine the settings of a file with those given by the caller."""
    known = set(cls._get_param_names())  # type: ignore[attr-defined]
    unknown = set(given) - known
    if unknown:
        raise TypeError(f"{cls.__name__} has no setting {sorted(unknown)[0]!r}")
    settings = stored.meta.get("settings")
    if not isinstance(settings, Mapping):
        raise StoreError(f"the file does not describe a {cls.__name__}: no settings", AGAIN)
    unknown = set(settings) - known
    given_objects = [name for name in OBJECTS if settings.get(name) is not None]
    unknown |= {n for n in given_objects if n != "learner" or not isinstance(settings[n], str)}
    if unknown:
        raise StoreError(f"a {cls.__name__} has no setting {sorted(unknown)[0]!r}", AGAIN)
    return {**settings, **given}


def _tables(families: Mapping[str, Family], stored: Stored) -> dict[str, Array]:
    """Read the tables, checking that they are valid parameters of these families."""
    shapes = {name: family.uniform().shape for name, family in families.items()}
    given = {name: numbers(stored, TABLE + name, shape) for name, shape in shapes.items()}
    checked = check_start(families, given)
    for name, family in families.items():
        if isinstance(family, Categorical) and checked[name] is not given[name]:
            raise StoreError(f"rows of table {name!r} add up to more than one", AGAIN)
        if isinstance(family, Categorical) and given[name].sum(axis=1).min() < MIN_ROW:
            raise StoreError(f"a row of table {name!r} is all zeros, or next to nothing", AGAIN)
        if isinstance(family, LogLinear):
            with np.errstate(all="ignore"):  # the probabilities that its weights give
                own = family.bound(family.free(given[name]), given[name])
            if not np.isfinite(own).all() or not np.allclose(own, given[name], 1e-6, 1e-9):
                raise StoreError(
                    f"probabilities and weights of table {name!r} do not go together", AGAIN
                )
    return given
