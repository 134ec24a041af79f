"""Which tags each word can have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from softcount.corpus.lines import text_of
from softcount.corpus.numbering import WORDS, is_sound
from softcount.errors import DataError, shown

FORM = "write word TAB tag tag …, or word TAB tag TAB count"
MAPPING = "give a mapping from words to lists of tags"


def read_tag_dictionary(source: str | os.PathLike[str] | Iterable[str]) -> dict[str, list[str]]:
    """The tags of each word from a file (UTF-8, packed by gzip or not) or from lines.

    A line is "word TAB tag tag …" or "word TAB tag TAB count"; a word may have several lines. Tags
    are in the order of the lines, each once. Blank lines say nothing.

    >>> read_tag_dictionary(["can\\tMD NN", "fish\\tNN\\t7", "fish\\tVB\\t2"])
    {'can': ['MD', 'NN'], 'fish': ['NN', 'VB']}
    """
    if isinstance(source, str | os.PathLike):
        origin = os.fspath(source)
        return _read(text_of(origin).removeprefix("\ufeff").split("\n"), f"{origin}:", origin)
    return _read(source, "line ", "the lines")


def _read(lines: Iterable[str], where: str, origin: str) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for number, line in enumerate(lines, 1):
        if not isinstance(line, str):
            raise DataError(f"{where}{number} is {shown(line)}", "give lines of text")
        if line.strip():
            word, tags = _entry(line.rstrip("\r\n"), f"{where}{number}")
            found.setdefault(word, {}).update(dict.fromkeys(tags))
    if not found:
        raise DataError(f"no words in {origin}", FORM)
    return {word: list(tags) for word, tags in found.items()}


def tag_dictionary(data: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """A mapping from words to their tags, checked; each tag once, those of a set in order.

    >>> tag_dictionary({"can": ("MD", "NN", "MD")})
    {'can': ['MD', 'NN']}
    """
    if not isinstance(data, Mapping):
        raise DataError(f"the tag dictionary is {shown(data)}", MAPPING)
    return {_word(word): _tags(word, tags) for word, tags in data.items()}


def _entry(line: str, where: str) -> tuple[str, list[str]]:
    """The word and the tags of a line."""
    word, *columns = line.split("\t")
    if not 1 <= len(columns) <= 2:
        raise DataError(f"{where} has {len(columns)} TABs: {shown(line)}", FORM)
    tags = columns[0].split()
    if not is_sound(word):
        raise DataError(f"{where} has the word {shown(word)}", WORDS)
    if not tags or not all(map(is_sound, tags)):
        raise DataError(f"{where} has the tags {shown(columns[0])} for {shown(word)}", FORM)
    if len(columns) == 2 and (len(tags) > 1 or not _is_count(columns[1])):
        raise DataError(
            f"{where}: {shown(columns[1])} is no count of {shown(columns[0])}",
            f"{FORM}; a count is above 0",
        )
    return word, tags


def _is_count(text: str) -> bool:
    try:
        return 0.0 < float(text) < float("inf")
    except ValueError:
        return False


def _word(word: Any) -> str:
    if not is_sound(word):
        raise DataError(f"the tag dictionary has the word {shown(word)}", WORDS)
    return str(word)


def _tags(word: str, tags: Any) -> list[str]:
    # a string would pass for a list of its letters
    if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
        raise DataError(f"the tag dictionary has {shown(tags)} for {shown(word)}", MAPPING)
    every = list(tags)
    if not every or not all(map(is_sound, every)):
        raise DataError(
            f"the tag dictionary has {shown(every)} for {shown(word)}",
            "give one tag at least; tags are strings of one letter at least",
        )
    # a set has another order in another run
    return sorted(every) if isinstance(tags, set | frozenset) else list(dict.fromkeys(every))
