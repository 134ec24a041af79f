"""One file for one fitted model: arrays in the safetensors layout, all else as JSON beside them.

Nothing in a file is ever executed. The safetensors library compares every declared size with the
file's own before it trusts it, and a SHA-256 over everything that is returned tells damage from
data.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from softcount.drafts import write_whole
from softcount.errors import StoreError
from softcount.types import Array

FORMAT = "softcount"
"""The one metadata key: the library writes several keys in no fixed order."""

FORMAT_VERSION = 1

LOADERS = {
    "Annotators": "softcount.annotators:Annotators",
    "GaussianHMM": "softcount.hmm.estimators:GaussianHMM",
    "HMM": "softcount.hmm:HMM",
    "LabelPropagation": "softcount.labels.propagation:LabelPropagation",
    "LanguageModel": "softcount.translate.language_model:LanguageModel",
    "PCFG": "softcount.grammar:PCFG",
    "SenseInducer": "softcount.senses:SenseInducer",
    "Translator": "softcount.translate:Translator",
    "story": "softcount.stories:StoryModel",
    **{name: f"softcount.topics:{name}" for name in ("LDA", "PLSA")},
    **{
        name: f"softcount.align:{name}"
        for name in ("Aligner", "Diagonal", "GibbsAligner", "HMMAligner", "IBM1", "IBM2")
    },
    **{
        name: f"softcount.mixture:{name}"
        for name in (
            "DirichletProcessGaussianMixture",
            "DirichletProcessMixture",
            "GaussianMixture",
            "KMeans",
            "MultinomialMixture",
            "NaiveBayes",
            "NaiveBayesCV",
            "SoftKMeans",
        )
    },
}
"""Which class restores a file of which kind, as ``module:name``, imported only when needed."""

UNREADABLE = (SafetensorError, ValueError, TypeError, AttributeError, KeyError, RecursionError)
"""What broken headers, dtypes and shapes that numpy lacks, and JSON not ours can raise."""

DAMAGED = "the file is damaged or was not written by softcount: save the model again"


@dataclass(frozen=True)
class Stored:
    """What a file holds: the kind of model, its arrays, its other facts, and how it came about."""

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
    """Write one model file, all or nothing: what was there before survives any failure.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write(folder / "m.softcount", "story", {"t": np.ones(2)}, {"names": ["a", "b"]}, "a run")
    >>> read(folder / "m.softcount").meta
    {'names': ['a', 'b']}
    """
    target = Path(path)
    content = _content(kind, arrays, meta, signature)
    try:
        write_whole(target, content)
    except OSError as error:
        raise StoreError(
            f"cannot write {target}: {error.strerror or error}",
            "choose a folder that exists, may be written to and has room; "
            "a file that was there before is untouched",
        ) from error


def read(path: str | os.PathLike[str], kind: str | None = None) -> Stored:
    """Read one model file, of the given kind if one is given.

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


def _content(
    kind: str, arrays: Mapping[str, Array], meta: Mapping[str, Any], signature: str
) -> bytes:
    """The bytes of a file."""
    plain = {name: _plain(np.asarray(array)) for name, array in arrays.items()}
    for name, array in plain.items():
        if not _is_storable(array) or name == "__metadata__":
            raise StoreError(
                f"array {name!r} of dtype {array.dtype} cannot be stored",
                "store integers or floats of at most 64 bits; put all else into meta, as JSON",
            )
    facts = {"format_version": FORMAT_VERSION, "kind": kind, "signature": signature, "meta": meta}
    try:
        # the checksum is of what a reader will find: JSON turns keys into strings, for example
        facts = json.loads(json.dumps(facts, allow_nan=False))
        facts["sha256"] = _digest(facts, plain)
        return save(plain, metadata={FORMAT: json.dumps(facts)})
    except (TypeError, ValueError, RecursionError, SafetensorError) as error:
        raise StoreError(
            f"the names and meta data cannot be written as JSON: {error}",
            "use strings, finite numbers, lists and mappings only; NaN and long lists of numbers "
            "may be stored in arrays",
        ) from error


def _read(source: Path) -> Stored:
    status = source.stat()
    if not stat.S_ISREG(status.st_mode):  # a pipe or a device could keep us waiting for ever
        raise StoreError(f"{source} is not a file", "give the path of a saved model")
    with safe_open(source, framework="numpy") as file:
        facts = _facts(source, (file.metadata() or {}).get(FORMAT))
        np.empty(status.st_size, np.uint8)  # a MemoryError here, where the library would panic
        names = file.keys()
        arrays = {name: _plain(file.get_tensor(name)) for name in names}
    if not all(map(_is_storable, arrays.values())):
        raise StoreError(f"{source} holds arrays that are no numbers", DAMAGED)
    if facts.pop("sha256") != _digest(facts, arrays):
        raise StoreError(f"{source} does not match its own checksum", DAMAGED)
    return Stored(facts["kind"], arrays, facts["meta"], facts["signature"])


def _facts(source: Path, text: str | None) -> dict[str, Any]:
    """What a file says beside its arrays, if it is of this format and version."""
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
    return facts


def _digest(facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """SHA-256 over all that a file says."""
    names = sorted(arrays)
    forms = [(name, arrays[name].dtype.str, arrays[name].shape) for name in names]
    digest = hashlib.sha256(json.dumps([facts, forms]).encode())
    for name in names:
        digest.update(arrays[name].reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _plain(array: Array) -> Array:
    """The array as little-endian numbers in C order."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _is_storable(array: Array) -> bool:
    return array.dtype.kind in "iuf" and array.dtype.itemsize <= 8
