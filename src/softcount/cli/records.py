"""Read partially labelled lines, tab-separated or JSON, and print them with labels filled in."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from softcount.cli.reading import UNKNOWN, read_lines
from softcount.core.drafts import write_whole
from softcount.core.errors import DataError, brief

LABEL, CONFIDENCE = "label", "confidence"
COLUMNS = (LABEL, "text")
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Records:
    """The lines of a file.

    ``path``     the file they were read from
    ``fields``   the values of each line by column name or JSON key; empty for a blank line
    ``labels``   each line's label as text; None if unknown
    ``is_json``  whether lines are JSON objects
    ``blank``    numbers, from 0, of the blank lines
    """

    path: str
    fields: Sequence[Mapping[str, Any]]
    labels: Sequence[str | None]
    is_json: bool
    blank: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.fields)

    def texts(self, name: str) -> list[str]:
        """Return a column as a list of texts; empty text where a line has none."""
        texts = []
        for number, fields in enumerate(self.fields, 1):
            value = "" if fields.get(name) is None else fields[name]
            if not isinstance(value, str):
                fault = f"{self.path}:{number}: {name!r} is {brief(value)}, not a text"
                raise DataError(fault, "put it in quotes")
            texts.append(value)
        if not any(name in fields for fields in self.fields):
            known = ", ".join(dict.fromkeys(chain.from_iterable(self.fields))) or "nothing"
            what = "keys" if self.is_json else "columns (--columns)"
            raise DataError(f"{self.path}: there is no {name!r}", f"the {what} are {known}")
        return texts

    def check_labels(self, least: int = 2) -> None:
        """Raise if there are fewer than ``least`` different labels to learn from."""
        labels = sorted({label for label in self.labels if label is not None})
        if len(labels) < least:
            known = ", ".join(map(brief, labels))
            fault = f"no labels other than {known}" if labels else "no line has a label"
            raise DataError(
                f"{self.path}: {fault}",
                f"label lines of at least {least} classes; an empty label, or -1, means unknown",
            )


def read_records(path: str, columns: Sequence[str] = COLUMNS) -> Records:
    """Read a file: JSON objects if the first line that is not blank starts with {, else columns.

    The last column takes the rest of the line, tabs included.
    """
    lines = [text for _, text in read_lines(path)]
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise DataError(
            f"{path}: the file is empty, or all its lines are", "give one item per line"
        )
    is_json = first.lstrip().startswith("{")
    if not is_json:
        if LABEL not in columns or len(set(columns)) < len(columns) or "" in columns:
            raise DataError(
                f"--columns {','.join(columns)}: one column must be called {LABEL}, and names "
                "must be different and not empty",
                "name all columns in order, such as label,subject,body",
            )
        # a header line would be read as an item, and the word "label" in it as a class
        if [cell.strip().lower() for cell in first.split("\t")] == [c.lower() for c in columns]:
            raise DataError(
                f"{path}: the first line is a header with the names of the columns, and would be "
                "read as an item",
                "delete this line; --columns names the columns",
            )
    fields, labels, blank = [], [], set()
    for n, line in enumerate(lines):
        place = f"{path}:{n + 1}"
        cells = read_object(line, place) if is_json else split_columns(line, columns, place)
        if cells is None:
            blank.add(n)
        fields.append(cells or {})
        labels.append(read_label(fields[-1].get(LABEL), place))
    return Records(path, fields, labels, is_json, frozenset(blank))


def print_records(
    records: Records, labels: Iterable[str | None], confidence: Iterable[float]
) -> None:
    """Print every line with its label filled in (None: still unknown) and its confidence.

    Given labels and blank lines stay unchanged. The confidence is an additional last column, or the
    JSON key ``confidence``; if there is a column or key of that name already, it is replaced.
    """
    written: dict[str | None, Any] = {None: None if records.is_json else ""}
    for fields, label in zip(records.fields, records.labels, strict=True):
        if label is not None and not isinstance(fields[LABEL], str):
            written[label] = fields[LABEL]  # 1 and true keep their JSON type
    answers = zip(records.fields, records.labels, labels, confidence, strict=True)
    for number, (fields, given, label, sure) in enumerate(answers):
        line = ""
        if number not in records.blank:
            known = fields[LABEL] if given is not None else written.get(label, label)
            rounded = float(f"{sure:.6g}") if math.isfinite(sure) else None
            whole = {**fields, LABEL: known, CONFIDENCE: rounded}
            if records.is_json:
                line = json.dumps(whole, ensure_ascii=False)
                # lone surrogates can be written in JSON as \u escapes, but not in UTF-8
                line = json.dumps(whole) if SURROGATE.search(line) else line
            else:
                whole[CONFIDENCE] = "" if rounded is None else f"{rounded:g}"
                line = "\t".join(whole.values())
        sys.stdout.write(line + "\n")
    sys.stdout.flush()  # now, while a closed pipe is still handled as no error


def column_names(text: str) -> tuple[str, ...]:
    """Split the value of an option such as ``label,subject,body`` into column names."""
    return tuple(name.strip() for name in text.split(","))


def split_columns(line: str, columns: Sequence[str], place: str) -> dict[str, str] | None:
    """Split a line into cells, keyed by column name; None if the line is blank."""
    cells = line.split("\t", len(columns) - 1)
    if len(cells) == len(columns):
        return dict(zip(columns, cells, strict=True))
    if not line.strip():
        return None
    raise DataError(
        f"{place}: {len(cells)} column{'s' * (len(cells) > 1)}, expected "
        f"{len(columns)}: {', '.join(columns)}",
        "separate columns by tabs; leave the label empty if it is unknown; "
        "use --columns if the columns are others",
    )


def read_object(line: str, place: str) -> dict[str, Any] | None:
    """Parse a JSON object; None if the line is blank. Raise if a key is repeated: one of the values
    would be lost, and the line could not be printed unchanged."""

    def check_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
        if repeated:
            raise DataError(f"{place}: the key {repeated[0]!r} occurs twice", "give each key once")
        return dict(pairs)

    if not line.strip():
        return None
    try:
        value = json.loads(line, object_pairs_hook=check_keys)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not JSON: {error}", "give one JSON object per line") from error
    if not isinstance(value, dict):
        raise DataError(
            f"{place}: {brief(value)} is not a JSON object", "give one JSON object per line"
        )
    return value


def read_label(value: Any, place: str) -> str | None:
    """Return a label as text, with true and false spelled as in JSON; None if it is unknown."""
    if value is None:
        return None
    if isinstance(value, list | dict | float):
        raise DataError(
            f"{place}: {brief(value)} is not a valid label", "give a text or a whole number"
        )
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    return None if text in UNKNOWN else text


def write_records(path: Path, records: Records, option: str) -> None:
    """Write the lines to a file, each as it was read, with its label filled in.

    ``option``  the option that named the file, for messages
    """
    lines = []
    for number, fields in enumerate(records.fields):
        if number in records.blank:
            lines.append("")
        elif records.is_json:
            lines.append(json.dumps(fields, ensure_ascii=False))
        else:
            lines.append("\t".join(fields.values()))
    text = "".join(f"{line}\n" for line in lines)
    try:
        write_whole(path, text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise DataError(
            f"cannot write the lines {path}: {error.strerror}",
            f"choose another place with {option}",
        ) from error
