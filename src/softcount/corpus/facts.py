"""What an archive says of itself: ``meta.json``, written last and trusted by nobody."""

from __future__ import annotations

import hashlib
import json
import math
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from softcount.corpus.rows import DAMAGED, SMALL, WIDE, RowFiles, write_file
from softcount.errors import StoreError

META, VOCABULARY, ORIGIN = "meta.json", "vocabulary.json", "origin.bin"
FORMAT, FORMAT_VERSION = "softcount archive", 1
WANTED = {"min_count", "max_share", "max_words", "stop_words"}
LARGEST_META = 1 << 26
"""No honest meta.json has more bytes."""


@dataclass(frozen=True)
class Facts:
    """What an archive holds.

    ``tokens``      counts added up
    ``counts``      the dtype of counts.bin
    ``shards``      borders: shard s has documents shards[s] ≤ d < shards[s + 1]
    ``sources``     names of places, and how many documents came from each; empty: from one
    ``shuffle``     the seed by which documents were shuffled, or None
    ``vectorizer``  how texts were cut into words (`softcount.corpus.texts.described`), or None
    ``wanted``      which words were kept, for people to read
    ``files``       size and SHA-256 of every other file
    """

    n_documents: int
    n_words: int
    n_entries: int
    tokens: float
    counts: str
    shards: list[int]
    sources: list[tuple[str, int]]
    shuffle: int | None
    vectorizer: dict[str, Any] | None
    wanted: dict[str, Any]
    files: dict[str, tuple[int, str]]

    def rows(self, folder: Path) -> RowFiles:
        return RowFiles(folder, self.n_documents, self.n_words, self.n_entries, self.counts)

    def write(self, folder: Path) -> None:
        facts = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
        facts["sha256"] = _digest(facts)
        write_file(folder / META, json.dumps(facts, indent=1) + "\n")


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()


def read_facts(folder: Path) -> Facts:
    """What an archive says of itself, if it can be true: its files are there, of the right sizes.

    Raises `StoreError` otherwise. The files' contents are checked when they are used.
    """
    path = folder / META
    if not folder.is_dir():
        raise StoreError(f"there is no archive {folder}", "build one: softcount corpus build")
    if not path.exists():
        raise StoreError(
            f"{folder} is no archive: it has no {META}",
            "name the files in the folder, or make an archive of them: softcount corpus build",
        )
    try:
        if size_of(path) > LARGEST_META:
            raise StoreError(f"{path} is too large", DAMAGED)
        said = json.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}", DAMAGED) from error
    except StoreError:  # is a ValueError too
        raise
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is not JSON: {error}", DAMAGED) from error
    facts = _checked(path, said)
    for name, size in _sizes(facts, folder).items():
        if size_of(folder / name) != size:
            raise StoreError(
                f"{folder / name} has {size_of(folder / name)} bytes, not {size}", DAMAGED
            )
    return facts


def size_of(path: Path) -> int:
    """Bytes of a regular file; a pipe or a device could keep us waiting for ever."""
    try:
        status = path.stat()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}", DAMAGED) from error
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path} is not a file", DAMAGED)
    return status.st_size


def _checked(path: Path, said: Any) -> Facts:
    """Facts of the right types, if they do not contradict each other."""
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise StoreError(f"{path} describes no softcount archive", DAMAGED)
    if said.get("format_version") != FORMAT_VERSION:
        raise StoreError(
            f"{path} has format version {said.get('format_version')!r}, "
            f"and this softcount reads {FORMAT_VERSION}",
            "install a softcount that reads it, or build the archive again",
        )
    if said.pop("sha256", None) != _digest(said):
        raise StoreError(f"{path} does not match its own checksum", DAMAGED)
    for name, is_sound in _SOUND.items():
        if name not in said or not is_sound(said[name]):
            raise StoreError(f"{path}: {name} is missing or is nothing that it can be", DAMAGED)
    values = {field.name: said[field.name] for field in fields(Facts)}
    values["sources"] = [(name, n) for name, n in values["sources"]]
    values["files"] = {name: (size, digest) for name, (size, digest) in values["files"].items()}
    facts = Facts(**values)
    _demand_agreement(path, facts)
    return facts


def _demand_agreement(path: Path, facts: Facts) -> None:
    borders = facts.shards
    rising = all(a < b for a, b in pairwise(borders))
    if not rising or borders[0] != 0 or borders[-1] != facts.n_documents:
        raise StoreError(f"{path}: the shards' borders are out of order", DAMAGED)
    if facts.sources and sum(n for _, n in facts.sources) != facts.n_documents:
        raise StoreError(f"{path}: the sources have other numbers of documents", DAMAGED)


def _sizes(facts: Facts, folder: Path) -> dict[str, int]:
    """The bytes that every file must have; names that are none of ours are refused."""
    expected = facts.rows(folder).sizes()
    if facts.shuffle is not None:
        expected[ORIGIN] = 8 * facts.n_documents
    if VOCABULARY in facts.files:
        expected[VOCABULARY] = facts.files[VOCABULARY][0]
    if {name: size for name, (size, _) in facts.files.items()} != expected:
        raise StoreError(f"{folder / META}: the files are not those of an archive", DAMAGED)
    return expected


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 56


def _is_figure(value: Any) -> bool:
    return value is None or type(value) in (int, float)


def _is_list_of(value: Any, is_sound: Any) -> bool:
    return isinstance(value, list) and all(map(is_sound, value))


def _is_source(value: Any) -> bool:
    return _is_pair(value) and isinstance(value[0], str) and _is_number(value[1])


def _is_stamp(value: Any) -> bool:
    return _is_pair(value) and _is_number(value[0]) and isinstance(value[1], str)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


_SOUND: dict[str, Callable[[Any], bool]] = {
    "n_documents": lambda v: _is_number(v) and v > 0,
    "n_words": lambda v: _is_number(v) and v < 1 << 31,
    "n_entries": _is_number,
    "tokens": lambda v: type(v) is float and math.isfinite(v) and v >= 0.0,
    "counts": lambda v: v in (SMALL, WIDE),
    "shards": lambda v: _is_list_of(v, _is_number) and len(v) > 1,
    "sources": lambda v: _is_list_of(v, _is_source),
    "shuffle": lambda v: v is None or _is_number(v),
    "vectorizer": lambda v: v is None or isinstance(v, dict),
    "wanted": lambda v: (
        isinstance(v, dict) and set(v) == WANTED and all(map(_is_figure, v.values()))
    ),
    "files": lambda v: isinstance(v, dict) and all(map(_is_stamp, v.values())),
}
