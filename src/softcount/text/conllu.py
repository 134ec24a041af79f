"""CoNLL-U: one word per line, ten TAB-separated columns, a blank line after each sentence.

The format is that of universaldependencies.org/format.html. Words are numbered 1, 2, … in each
sentence; a line 2-3 is a token made of two words, a line 5.1 a word that is not in the text. Such
lines, comments (#) and all columns but one are kept as they are, so the output is the input with
tags filled in.

The column of a tag is "upos", "xpos", or a key in MISC: "State" for State=3. "_" means that a tag
is unknown. A sentence has at least one word: comments on their own and further blank lines are
kept, but are not sentences. Lines end in \\n or \\r\\n, which the last one may lack.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import IntArray
from softcount.text.lines import Name, decode_text, open_lines
from softcount.text.sequences import Like, Sequences, count_noun, make_side
from softcount.text.tagged import Tagged, tagged
from softcount.text.vocabulary import WORDS, SideBuilder, Vocabulary, is_sound, number_lists

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
FORM, MISC = COLUMNS.index("form"), COLUMNS.index("misc")
NOTHING = "_"
FIELDS = "a line has ten TAB-separated columns: " + " ".join(COLUMNS).upper()
IDS = "words are 1, 2, …; a token of two words is 1-2 before them, an empty word 1.1 after word 1"
_ID = re.compile(r"(\d{1,9})(?:([-.])(\d{1,9}))?", re.ASCII)


@dataclass(frozen=True, eq=False, repr=False)
class ConlluFile:
    """The lines of a CoNLL-U file and the positions of its words.

    ``lines``   all lines, without \\n
    ``places``  the line of each word, sentences concatenated (int64)
    ``indptr``  sentence n has the words ``places[indptr[n]:indptr[n + 1]]`` (int64)
    ``origin``  the name of the file, if there is one
    ``before``  number of lines of the file before these

    >>> row = "{}\\t{}\\t_\\t{}\\t_\\t_\\t_\\t_\\t_\\t_"
    >>> file = read_conllu(["# text = it rains", row.format(1, "it", "PRON"),
    ...                     row.format(2, "rains", "_"), ""])
    >>> file.forms(), file.tags()
    ([['it', 'rains']], [['PRON', None]])
    >>> print(file.text([[None, "3"]], "State").split("\\n")[2][-7:])
    State=3
    >>> file
    <ConlluFile: 1 sentence, 2 words>
    """

    lines: list[str]
    places: IntArray
    indptr: IntArray
    origin: str = ""
    before: int = 0

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        size = f"{count_noun(len(self), 'sentence')}, {count_noun(len(self.places), 'word')}"
        return f"<ConlluFile: {size}{f' from {self.origin}' if self.origin else ''}>"

    def forms(self) -> list[list[str]]:
        """Return the words of each sentence."""
        return self._cut([line.split("\t", FORM + 1)[FORM] for line in self._words()])

    def tags(self, column: str = "upos") -> list[list[str | None]]:
        """Return the tags of each sentence; None: unknown."""
        index = column_index(column)
        fields = [line.removesuffix("\r").split("\t", index + 1)[index] for line in self._words()]
        if index == MISC:
            return self._cut([_value(field, column) for field in fields])
        return self._cut([None if field in ("", NOTHING) else field for field in fields])

    def sequences(self, *, like: Like | None = None, lowercase: bool = False) -> Sequences:
        """Return the sentences without tags; messages name the line of the first word."""
        builder = SideBuilder(Vocabulary.of(like or ()), lowercase)
        builder.add(number_lists(self.forms(), str))
        numbers = self.places[self.indptr[:-1]] + self.before if self.origin else None
        return Sequences(make_side(builder), self.origin, numbers)

    def tagged(
        self,
        column: str = "upos",
        *,
        like: Like | None = None,
        names: Sequence[str] = (),
        lowercase: bool = False,
    ) -> Tagged:
        """Return the sentences with their tags."""
        text = self.sequences(like=like, lowercase=lowercase)
        return tagged(text, self.tags(column), names=names)

    def text(self, tags: Any = None, column: str = "upos") -> str:
        """Return the text of the file with tags in a column; without tags, as it was read.

        ``tags``  for each sentence a list of tags, names or numbers, one per word; None or −1
                  leaves the line of a word unchanged, and None in place of a list all lines of a
                  sentence
        """
        if tags is None:
            return "\n".join(self.lines)
        index = column_index(column)
        lines = self.lines.copy()
        for place, tag in zip(self.places.tolist(), self._flat(tags, index), strict=True):
            if tag is None:
                continue
            body = lines[place].removesuffix("\r")
            columns = body.split("\t")
            if index == MISC:  # replace the old entry, or append
                entries = [] if columns[MISC] in ("", NOTHING) else columns[MISC].split("|")
                old = [k for k, entry in enumerate(entries) if entry.startswith(f"{column}=")]
                at = old[0] if old else len(entries)
                tag = "|".join([*entries[:at], f"{column}={tag}", *entries[at + 1 :]])
            columns[index] = tag
            lines[place] = "\t".join(columns) + lines[place][len(body) :]
        return "\n".join(lines)

    def write(self, out: BinaryIO, tags: Any = None, column: str = "upos") -> None:
        """Write the file with tags in a column (see `text`) to a binary stream."""
        out.write(self.text(tags, column).encode())

    def _words(self) -> Iterator[str]:
        return (self.lines[place] for place in self.places.tolist())

    def _cut(self, flat: list[Any]) -> list[list[Any]]:
        """Split a list with an item per word into a list for each sentence."""
        return [flat[first:last] for first, last in pairwise(self.indptr.tolist())]

    def _flat(self, tags: Any, index: int) -> list[str | None]:
        """Flatten and check the tags to be written, one per word."""
        given = list(tags)
        if len(given) != len(self):
            raise DataError(
                f"there are {len(self)} sentences and tags for {len(given)}",
                "give a list of tags for each sentence",
            )
        flat: list[str | None] = []
        for n, own in enumerate(given):
            name = _name_lines(self.origin, self.before)(int(self.places[self.indptr[n]]))
            length = int(self.indptr[n + 1] - self.indptr[n])
            texts = [None] * length if own is None else [_format_tag(t, index, name) for t in own]
            if len(texts) != length:
                raise DataError(
                    f"the sentence at {name} has {length} words and {len(texts)} tags",
                    "give one tag for each word; None leaves it unchanged",
                )
            flat.extend(texts)
        return flat


def column_index(column: str) -> int:
    """Return the index of a column: "upos", "xpos", or MISC for any other key.

    >>> column_index("xpos"), column_index("State")
    (4, 9)
    """
    name = column.lower() if isinstance(column, str) else ""
    if name in ("upos", "xpos"):
        return COLUMNS.index(name)
    if not name or name in (*COLUMNS, NOTHING) or re.search(r"[\s|=]", name):
        raise DataError(
            f"the column of tags is {brief(column)}", 'give "upos", "xpos", or a key in MISC'
        )
    return MISC


# reading
def read_conllu(source: str | os.PathLike[str] | Iterable[str | bytes]) -> ConlluFile:
    """Read CoNLL-U from a file (UTF-8, optionally gzipped) or from lines.

    Lines may end in \\n or not; lines of bytes are UTF-8.
    """
    if isinstance(source, str | os.PathLike):
        origin = os.fspath(source)
        with open_lines(origin) as file:
            return from_pieces([file.read()], origin)
    raw = []
    for n, line in enumerate(source, 1):
        if not isinstance(line, str | bytes):
            raise DataError(f"line {n} is {brief(line)}", "give lines of text")
        # lone surrogates pass here, and are reported with their position when all is decoded
        raw.append(line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass"))
    joint = b"\n".join(line.removesuffix(b"\n") for line in raw)
    if raw and raw[-1].endswith(b"\n"):
        joint += b"\n"
    return from_pieces([joint], "")


def from_pieces(pieces: Iterable[bytes], origin: str) -> ConlluFile:
    """Read CoNLL-U from pieces of UTF-8, which may begin with a byte order mark."""
    file = _read(b"".join(pieces), origin, 0)
    if not len(file):
        raise DataError(f"no sentences in {origin or 'the lines'}", "give at least one")
    return file


def parts(pieces: Iterable[bytes], origin: str) -> Iterator[ConlluFile]:
    """Yield whole sentences as soon as they arrive: the parts concatenated are the file.

    ``pieces``  whole lines of UTF-8

    A part may have only comments and blank lines, and no sentence.
    """
    held: list[bytes] = []
    before = 0
    for piece in pieces:
        # the end of the last blank line; 0 if there is none
        joint = b"\n" + piece
        with_return = joint.rfind(b"\n\r\n") + 2
        end = max(joint.rfind(b"\n\n") + 1, with_return if with_return > 1 else 0)
        held.append(piece[:end])
        if end:
            part = _read(b"".join(held), origin, before)
            yield part
            before += len(part.lines) - 1
            held.clear()
        held.append(piece[end:])
    if rest := b"".join(held):
        yield _read(rest, origin, before)


def _name_lines(origin: str, before: int) -> Name:
    return lambda line: f"{origin}:{before + line + 1}" if origin else f"line {line + 1}"


def _read(raw: bytes, origin: str, before: int) -> ConlluFile:
    name = _name_lines(origin, before)
    lines = decode_text(raw, name).split("\n")
    places: list[int] = []
    indptr = [0]
    ids = _Ids(name)
    for place, line in enumerate([*lines, ""]):  # the end of the file ends a sentence too
        body = (line.removeprefix("\ufeff") if before + place == 0 else line).removesuffix("\r")
        if not body:
            ids.end()
            if len(places) > indptr[-1]:
                indptr.append(len(places))
        elif body[0] != "#":
            columns = body.split("\t")
            if len(columns) != len(COLUMNS):
                raise DataError(f"{ids.name(place)} has {len(columns)} columns", FIELDS)
            if ids.is_word(columns[0], place):
                if not is_sound(columns[FORM]):
                    raise DataError(f"{ids.name(place)} has the form {brief(columns[FORM])}", WORDS)
                places.append(place)
    where = (np.array(places, np.int64), np.array(indptr, np.int64))
    return ConlluFile(lines, *where, origin, before)


class _Ids:
    """Checker of the sequence of ids in a sentence."""

    def __init__(self, name: Name) -> None:
        self.name = name
        self._word = self._empty = self._span_end = self._span_place = 0

    def is_word(self, text: str, place: int) -> bool:
        """Return whether this is the id of a word; raise if it cannot follow the ids so far."""
        if text == str(self._word + 1):
            self._word += 1
            self._empty = 0
            return True
        form = _ID.fullmatch(text)
        sign, first, second = form.group(2, 1, 3) if form else (None, "", "")
        if sign == "." and int(first) == self._word and int(second) == self._empty + 1:
            self._empty += 1
        elif sign == "-" and self._span_end < int(first) == self._word + 1 <= int(second):
            self._span_end, self._span_place = int(second), place
        else:
            raise DataError(
                f"{self.name(place)} has the id {brief(text)}, after word {self._word}", IDS
            )
        return False

    def end(self) -> None:
        """Check and reset at the end of a sentence."""
        if self._span_end > self._word:
            raise DataError(
                f"{self.name(self._span_place)} has a token up to word {self._span_end}, "
                f"but the sentence ends after word {self._word}",
                IDS,
            )
        self._word = self._empty = self._span_end = 0


def _value(misc: str, key: str) -> str | None:
    """Return the value of a key in MISC; None if it has none."""
    for entry in misc.split("|"):
        if entry.startswith(f"{key}="):
            value = entry[len(key) + 1 :]
            return None if value in ("", NOTHING) else value
    return None


def _format_tag(tag: Any, index: int, name: str) -> str | None:
    """Format a tag for output; None: leave the line unchanged."""
    if tag is None or (isinstance(tag, int | np.integer) and tag == -1):
        return None
    text = str(tag) if isinstance(tag, str | int | np.integer) else ""
    if not is_sound(text) or re.search(r"[\t\r\n|]" if index == MISC else r"[\t\r\n]", text):
        raise DataError(
            f"the sentence at {name} cannot have the tag {brief(tag)}",
            "give numbers, or names without TABs and line breaks (and without | in MISC)",
        )
    return text
