"""Classes that are known already, to compare answers with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from softcount.cli.lines import numbered
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.cli.answers import Answers
    from softcount.show.groups import Comparison

UNKNOWN = ("", "-1")


def read_gold(path: str | None, file: str, n_lines: int) -> list[str | None] | None:
    """The gold class of each line of ``file``, None where it is unknown; None without a path."""
    if path is None:
        return None
    if path == file == "-":
        raise typer.BadParameter("only one file can be standard input")
    labels = one_a_line("--gold", path, file, n_lines, "class")
    if all(label in UNKNOWN for label in labels):
        raise DataError(
            f"--gold {path}: no line has a known class", "give at least one; -1 is unknown"
        )
    return [None if label in UNKNOWN else label for label in labels]


def one_a_line(option: str, path: str, file: str, n_lines: int, what: str) -> list[str]:
    """What a file says of each line of another."""
    said = [text.strip() for _, text in numbered(path)]
    if len(said) != n_lines:
        raise DataError(
            f"{option} {path}: {len(said):,} lines, while {file} has {n_lines:,}",
            f"give one {what} a line, in the same order; a blank line where it is unknown",
        )
    return said


def compared(answers: Answers, gold: Sequence[str | None] | None) -> Comparison | None:
    """How well the answers agree with the gold classes; None if there are none."""
    if gold is None:
        return None
    from softcount.metrics import agreement
    from softcount.show.groups import Comparison

    wanted = [gold[i] for i in answers.where]
    said = [answers.names[k] for k in answers.chosen.tolist()]
    known = [(a, b) for a, b in zip(said, wanted, strict=True) if b is not None]
    if not known:
        raise DataError(
            "--gold: every line with a known class is blank", "give a known class for some line"
        )
    right = sum(a == b for a, b in known) / len(known)
    return Comparison(agreement(said, wanted), right if answers.kind == "label" else None)
