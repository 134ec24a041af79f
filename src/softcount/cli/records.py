"""Lines with some labels: tab-separated columns, or JSON objects; the same lines out, filled in."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
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
        """Return a column as texts; empty where a line has none."""
        texts = []
        for number, fields in enumerate(self.fields, 1):
            value = "" if fields.get(name) is None else fields[name]
            if not isinstance(value, str):
                fault = f"{self.path}:{number}: {name!r} is {brief(value)}"
                raise DataError(fault, "give a text in quotes")
            texts.append(value)
        if not any(name in fields for fields in self.fields):
            known = ", ".join(dict.fromkeys(chain.from_iterable(self.fields))) or "nothing"
            what = "keys" if self.is_json else "columns (--columns)"
            raise DataError(f"{self.path}: there is no {name!r}", f"its {what} are {known}")
        return texts

    def demand_labels(self, least: int = 2) -> None:
        """Raise if there are fewer different labels than this to learn from."""
        labels = sorted({label for label in self.labels if label is not None})
        if len(labels) < least:
            known = ", ".join(map(brief, labels))
            fault = f"no label but {known}" if labels else "no line has a label"
            raise DataError(
                f"{self.path}: {fault}",
                f"label some lines of at least {least} classes; an empty label, or -1, is unknown",
            )


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
        if LABEL not in columns or len(set(columns)) < len(columns) or "" in columns:
            raise DataError(
                f"--columns {','.join(columns)}: one column must be called {LABEL}, and every "
                "column have a name of its own",
                "name them in their order, such as label,subject,body",
            )
        # a line that names the columns would be an item, and its label a class
        if [cell.strip().lower() for cell in first.split("\t")] == [c.lower() for c in columns]:
            raise DataError(
                f"{path}: the first line has the names of the columns, and would be taken for an "
                "item",
                "leave it out; --columns names the columns",
            )
    fields, labels, blank = [], [], set()
    for n, line in enumerate(lines):
        place = f"{path}:{n + 1}"
        cells = _read_object(line, place) if is_json else _split(line, columns, place)
        if cells is None:
            blank.add(n)
        fields.append(cells or {})
        labels.append(_read_label(fields[-1].get(LABEL), place))
    return Records(path, fields, labels, is_json, frozenset(blank))


def print_records(
    records: Records, labels: Iterable[str | None], confidence: Iterable[float]
) -> None:
    """Print every line as it was, with its label (None: still unknown) and its confidence.

    Labels that were given stay, and so do blank lines. Columns get one more, JSON objects a key
    ``confidence``, unless there is one of that name: then it is there.
    """
    written: dict[str | None, Any] = {None: None if records.is_json else ""}
    for fields, label in zip(records.fields, records.labels, strict=True):
        if label is not None and not isinstance(fields[LABEL], str):
            written[label] = fields[LABEL]  # 1 and true are to stay what they are
    answers = zip(records.fields, records.labels, labels, confidence, strict=True)
    for number, (fields, given, label, sure) in enumerate(answers):
        line = ""
        if number not in records.blank:
            known = fields[LABEL] if given is not None else written.get(label, label)
            rounded = float(f"{sure:.6g}") if math.isfinite(sure) else None
            whole = {**fields, LABEL: known, CONFIDENCE: rounded}
            if records.is_json:
                line = json.dumps(whole, ensure_ascii=False)
                # halves of pairs of surrogates, which JSON can say by \u and UTF-8 cannot
                line = json.dumps(whole) if SURROGATE.search(line) else line
            else:
                whole[CONFIDENCE] = "" if rounded is None else f"{rounded:g}"
                line = "\t".join(whole.values())
        sys.stdout.write(line + "\n")
    sys.stdout.flush()  # here, where a closed pipe is no fault


def column_names(text: str) -> tuple[str, ...]:
    """Read the names of columns as an option gives them: label,subject,body."""
    return tuple(name.strip() for name in text.split(","))


def _split(line: str, columns: Sequence[str], place: str) -> dict[str, str] | None:
    """Split a line into cells by the names of their columns; None if it is blank."""
    cells = line.split("\t", len(columns) - 1)
    if len(cells) == len(columns):
        return dict(zip(columns, cells, strict=True))
    if not line.strip():
        return None
    raise DataError(
        f"{place}: {len(cells)} column{'s' * (len(cells) > 1)}, while there should be "
        f"{len(columns)}: {', '.join(columns)}",
        "separate them by tabs; leave the label empty where it is unknown; "
        "--columns names other columns",
    )


def _read_object(line: str, place: str) -> dict[str, Any] | None:
    """Read a JSON object; None if the line is blank. No key may be there twice: one would be lost,
    and the line could not come out as it was."""

    def check_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
        if repeated:
            raise DataError(
                f"{place}: the key {repeated[0]!r} is there twice", "give each key once"
            )
        return dict(pairs)

    if not line.strip():
        return None
    try:
        value = json.loads(line, object_pairs_hook=check_keys)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not JSON: {error}", "one JSON object a line") from error
    if not isinstance(value, dict):
        raise DataError(f"{place}: {brief(value)} is no JSON object", "one JSON object a line")
    return value


def _read_label(value: Any, place: str) -> str | None:
    """Return a label as text, true and false as JSON writes them; None if it is unknown."""
    if value is None:
        return None
    if isinstance(value, list | dict | float):
        raise DataError(f"{place}: {brief(value)} is no label", "give a text, or a whole number")
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    return None if text in UNKNOWN else text
