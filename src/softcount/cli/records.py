"""Lines with some labels: tab-separated columns, or JSON objects; the same lines out, filled in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from softcount.cli.gold import UNKNOWN
from softcount.cli.lines import numbered
from softcount.errors import DataError, shown

LABEL, CONFIDENCE = "label", "confidence"
COLUMNS = (LABEL, "text")


@dataclass(frozen=True, eq=False)
class Records:
    """The lines of a file.

    ``path``     where they are from
    ``fields``   what each line says, by the names of columns or keys; nothing for a blank line
    ``labels``   each line's label as text; None where it is unknown
    ``is_json``  whether lines are JSON objects
    """

    path: str
    fields: Sequence[Mapping[str, Any]]
    labels: Sequence[str | None]
    is_json: bool

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
        said = f"the only label is {found[0]!r}" if found else "no line has a label"
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
                f"{self.path}:{number + 1}: {name!r} is {shown(value)}", "give a text in quotes"
            )
        return value


def read_records(path: str, columns: Sequence[str] = COLUMNS) -> Records:
    """Read a file: JSON objects if its first line that is not blank begins with {, else columns.

    The last column takes the rest of its line, tabs included.
    """
    lines = [text for _, text in numbered(path)]
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise DataError(f"{path}: the file is empty, or all its lines are", "one item a line")
    is_json = first.lstrip().startswith("{")
    if is_json:
        fields = [_object(line, f"{path}:{n}") for n, line in enumerate(lines, 1)]
    else:
        _check_columns(columns)
        fields = [_cut(line, columns, f"{path}:{n}") for n, line in enumerate(lines, 1)]
    labels = [_label(one.get(LABEL), f"{path}:{n}") for n, one in enumerate(fields, 1)]
    return Records(path, fields, labels, is_json)


def print_records(
    records: Records, labels: Iterable[str | None], confidence: Iterable[float]
) -> None:
    """Every line as it was, with its label (None: still unknown) and how sure that is.

    Labels that were given stay. Columns get one more, JSON objects a key ``confidence``.
    """
    originals = {
        label: fields[LABEL]
        for fields, label in zip(records.fields, records.labels, strict=True)
        if label is not None
    }
    write = sys.stdout.write
    for fields, label, sure in zip(records.fields, labels, confidence, strict=True):
        rounded = float(f"{sure:.6g}")
        if not records.is_json:
            cells = {**fields, LABEL: label or ""}
            write("\t".join(cells.values()) + f"\t{rounded:g}\n")
        elif fields:
            said = originals.get(label, label) if label is not None else None
            whole = {**fields, LABEL: said, CONFIDENCE: rounded}
            write(json.dumps(whole, ensure_ascii=False) + "\n")
        else:
            write("\n")
    sys.stdout.flush()  # here, where a closed pipe is no fault


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


def _cut(line: str, columns: Sequence[str], where: str) -> dict[str, str]:
    if not line.strip():
        return dict.fromkeys(columns, "")
    cells = line.split("\t", len(columns) - 1)
    if len(cells) < len(columns):
        raise DataError(
            f"{where}: {len(cells)} column{'s' * (len(cells) > 1)}, while there should be "
            f"{len(columns)}: {', '.join(columns)}",
            "separate them by tabs; leave the label empty where it is unknown; "
            "--columns names other columns",
        )
    return dict(zip(columns, cells, strict=True))


def _object(line: str, where: str) -> dict[str, Any]:
    if not line.strip():
        return {}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}", "one JSON object a line") from error
    if not isinstance(value, dict):
        raise DataError(f"{where}: {shown(value)} is no JSON object", "one JSON object a line")
    return value


def _label(value: Any, where: str) -> str | None:
    """A label as text; None if it is unknown."""
    if value is None:
        return None
    if isinstance(value, list | dict | float):
        raise DataError(f"{where}: {shown(value)} is no label", "give a text, or a whole number")
    text = str(value).strip()
    return None if text in UNKNOWN else text
