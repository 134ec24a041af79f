"""Files of votes (who said what of which item), and of true labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softcount.cli.records import LABEL, Records, read_records
from softcount.errors import DataError, shown

ITEM, ANNOTATOR = "item", "annotator"


@dataclass(frozen=True, eq=False)
class Ballot:
    """The votes of a file, and its items and labels as the file writes them.

    ``columns``  items, annotators and labels, one of each a vote; a label of None is no vote
    """

    columns: tuple[list[str], list[str], list[str | None]]
    items: Mapping[str, Any]
    labels: Mapping[str, Any]
    is_json: bool


def read_ballot(path: str, columns: Sequence[str]) -> Ballot:
    """The votes of a file; blank lines are none."""
    if not {ITEM, ANNOTATOR} <= set(columns):
        raise DataError(
            f"--columns {','.join(columns)}: there is no {ITEM}, or no {ANNOTATOR}",
            f"name them in their order, such as {ITEM},{ANNOTATOR},{LABEL}",
        )
    records = read_records(path, columns)
    _check_ends(records, columns[-1], path)
    voted: list[str] = []
    by: list[str] = []
    said: list[str | None] = []
    items: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    for number, (fields, label) in enumerate(zip(records.fields, records.labels, strict=True)):
        if number in records.blank:
            continue
        item = _name(fields, ITEM, path, number)
        if item not in items:
            items[item] = fields[ITEM]
        if label is not None and label not in labels:
            labels[label] = fields[LABEL]
        voted.append(item)
        by.append(_name(fields, ANNOTATOR, path, number))
        said.append(label)
    return Ballot((voted, by, said), items, labels, records.is_json)


def read_true_labels(path: str | None, option: str, ballot: Ballot) -> dict[str, str]:
    """True labels by item; nothing without a file."""
    if path is None:
        return {}
    where = f"{option} {path}"
    records = read_records(path, (ITEM, LABEL))
    _check_ends(records, LABEL, where)
    found: dict[str, str] = {}
    for number, (fields, label) in enumerate(zip(records.fields, records.labels, strict=True)):
        if label is None:
            continue
        item = _name(fields, ITEM, where, number)
        if found.setdefault(item, label) != label:
            raise DataError(
                f"{where}:{number + 1}: {shown(item)} is {label!r} here, and {found[item]!r} "
                "before",
                "give every item one true label",
            )
    if not any(item in ballot.items for item in found):
        raise DataError(
            f"{where}: no item that has votes has a true label here",
            "call items as they are called in the votes",
        )
    return found


def _name(fields: Mapping[str, Any], column: str, where: str, number: int) -> str:
    """An item or an annotator, as text."""
    value = fields.get(column)
    name = value.strip() if isinstance(value, str) else ""
    if type(value) is int:
        name = str(value)
    if not name:
        raise DataError(
            f"{where}:{number + 1}: {shown(value)} is no {column}",
            f"give every line an {column}: a text, or a whole number",
        )
    return name


def _check_ends(records: Records, last: str, where: str) -> None:
    """The last column takes the rest of its line, and names have no tabs in them."""
    if records.is_json:
        return
    for number, fields in enumerate(records.fields):
        if "\t" in fields.get(last, ""):
            raise DataError(
                f"{where}:{number + 1}: there are too many columns",
                "end the line after the last one; --columns names those of the votes",
            )
