"""Lines with some labels: tab-separated columns, or JSON objects; the same lines out, filled in."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from softcount.cli.reading import UNKNOWN, read_lines
from softcount.core.errors import DataError, brief

LABEL, CONFIDENCE = "label", "confidence"
COLUMNS = (LABEL, "text")
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Records:
    """The lines of a file.

    ``path``     where they are from
    ``fields``   what each line says, by the names of columns or keys; nothing for a blank line
    ``labels``   each line's label as text; None where it is unknown
    ``is_json``  whether lines are JSON objects
    ``blank``    the numbers, from 0, of the lines that have nothing in them
    """

    path: str
    fields: Sequence[Mapping[str, Any]]
    labels: Sequence[str | None]
    is_json: bool
    blank: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.fields)

    def texts(self, name: str) -> list[str]:
        """A column as texts; empty where a line has none."""
        found = [self._text(number, name) for number in range(len(self))]
        if not any(name in fields for fields in self.fields):
            known = ", ".join(dict.fromkeys(chain.from_iterable(self.fields))) or "nothing"
            what = "keys" if self.is_json else "columns (--columns)"
            raise DataError(f"{self.path}: there is no {name!r}", f"its {what} are {known}")
        return found

    def demand_labels(self, least: int = 2) -> None:
        """Complain if there are fewer different labels than this to learn from."""
        found = sorted({label for label in self.labels if label is not None})
        if len(found) >= least:
            return
        said = f"no label but {', '.join(map(brief, found))}" if found else "no line has a label"
        raise DataError(
            f"{self.path}: {said}",
            f"label some lines of at least {least} classes; an empty label, or -1, is unknown",
        )

    def _text(self, number: int, name: str) -> str:
        value = self.fields[number].get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise DataError(
                f"{self.path}:{number + 1}: {name!r} is {brief(value)}", "give a text in quotes"
            )
        return value


def read_records(path: str, columns: Sequence[str] = COLUMNS) -> Records:
    """Read a file: JSON objects if its first line that is not blank begins with {, else columns.

    The last column takes the rest of its line, tabs included.
    """
    lines = [text for _, text in read_lines(path)]
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise DataError(f"{path}: the file is empty, or all its lines are", "one item a line")
    is_json = first.lstrip().startswith("{")
    if not is_json:
        _check_columns(columns)
        _refuse_header(first, columns, path)
    read = [
        _object(line, f"{path}:{n}") if is_json else _cut(line, columns, f"{path}:{n}")
        for n, line in enumerate(lines, 1)
    ]
    labels = [_label((one or {}).get(LABEL), f"{path}:{n}") for n, one in enumerate(read, 1)]
    blank = frozenset(n for n, one in enumerate(read) if one is None)
    return Records(path, [one or {} for one in read], labels, is_json, blank)


def print_records(
    records: Records, labels: Iterable[str | None], confidence: Iterable[float]
) -> None:
    """Every line as it was, with its label (None: still unknown) and how sure that is.

    Labels that were given stay, and so do blank lines. Columns get one more, JSON objects a key
    ``confidence``, unless there is one of that name: then it is there.
    """
    written: dict[str | None, Any] = {None: None if records.is_json else ""}
    for fields, label in zip(records.fields, records.labels, strict=True):
        if label is not None and not isinstance(fields[LABEL], str):
            written[label] = fields[LABEL]  # 1 and true are to stay what they are
    line = _json_line if records.is_json else _cells_line
    write = sys.stdout.write
    answers = zip(records.fields, records.labels, labels, confidence, strict=True)
    for number, (fields, given, label, sure) in enumerate(answers):
        if number in records.blank:
            write("\n")
            continue
        said = fields[LABEL] if given is not None else written.get(label, label)
        rounded = float(f"{sure:.6g}") if math.isfinite(sure) else None
        write(line({**fields, LABEL: said, CONFIDENCE: rounded}) + "\n")
    sys.stdout.flush()  # here, where a closed pipe is no fault


def _cells_line(cells: Mapping[str, Any]) -> str:
    sure = cells[CONFIDENCE]
    whole = {**cells, CONFIDENCE: "" if sure is None else f"{sure:g}"}
    return "\t".join(whole.values())


def _json_line(whole: Mapping[str, Any]) -> str:
    text = json.dumps(whole, ensure_ascii=False)
    # halves of pairs of surrogates, which JSON can say by \u and UTF-8 cannot
    return json.dumps(whole) if SURROGATE.search(text) else text


def column_names(text: str) -> tuple[str, ...]:
    """Names of columns as an option gives them: label,subject,body."""
    return tuple(name.strip() for name in text.split(","))


def _check_columns(columns: Sequence[str]) -> None:
    if LABEL not in columns or len(set(columns)) < len(columns) or "" in columns:
        raise DataError(
            f"--columns {','.join(columns)}: one column must be called {LABEL}, and every column "
            "have a name of its own",
            "name them in their order, such as label,subject,body",
        )


def _refuse_header(first: str, columns: Sequence[str], path: str) -> None:
    """Complain of a line that names the columns: it would be an item, and its label a class."""
    if [cell.strip().lower() for cell in first.split("\t")] == [name.lower() for name in columns]:
        raise DataError(
            f"{path}: the first line has the names of the columns, and would be taken for an item",
            "leave it out; --columns names the columns",
        )


def _cut(line: str, columns: Sequence[str], where: str) -> dict[str, str] | None:
    """A line's cells by the names of their columns; None if the line is blank."""
    cells = line.split("\t", len(columns) - 1)
    if len(cells) < len(columns):
        if not line.strip():
            return None
        raise DataError(
            f"{where}: {len(cells)} column{'s' * (len(cells) > 1)}, while there should be "
            f"{len(columns)}: {', '.join(columns)}",
            "separate them by tabs; leave the label empty where it is unknown; "
            "--columns names other columns",
        )
    return dict(zip(columns, cells, strict=True))


def _object(line: str, where: str) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        value = json.loads(line, object_pairs_hook=_different_keys)
    except DataError as error:
        raise DataError(f"{where}: {error.message}", error.hint) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}", "one JSON object a line") from error
    if not isinstance(value, dict):
        raise DataError(f"{where}: {brief(value)} is no JSON object", "one JSON object a line")
    return value


def _different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless a key would be lost: the line could not come out as it was."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for n, (key, _) in enumerate(pairs) if key in dict(pairs[:n]))
        raise DataError(f"the key {twice!r} is there twice", "give each key once")
    return found


def _label(value: Any, where: str) -> str | None:
    """A label as text, true and false as JSON writes them; None if it is unknown."""
    if value is None:
        return None
    if isinstance(value, list | dict | float):
        raise DataError(f"{where}: {brief(value)} is no label", "give a text, or a whole number")
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    return None if text in UNKNOWN else text
