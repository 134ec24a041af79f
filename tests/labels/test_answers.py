"""How commands that learn from a few labels end."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softcount.cli.records import Records, read_records
from softcount.labels.command import LabelledLines, LinesToLabel, Propagate, summarise_lines
from softcount.labels.history import History
from tests.commands import file_of
from tests.labels.test_report import Parts, brief

LINES = "a\tone <b>\n\ttwo\n\n-1\tthree\n\tfour\n\tfive\n"


def learned(tmp_path: Path) -> tuple[Records, History]:
    records = read_records(str(file_of(tmp_path / "lines.tsv", LINES)))
    history = History(["a", "b"], np.array([0, -1, -1, -1, -1, -1]))
    history.record(np.array([0, 1, 0, 1, 0, -1]), np.array([1, 0.9, 0.5, 0.6, 0.7, 0]), "body")
    return records, history


def end(tmp_path: Path, texts: Any = None, gold: Any = None, **more: Any) -> LabelledLines:
    records, history = learned(tmp_path)
    labels = ["b", "b", "a", "b", "a", None]
    sure = [1, 0.9, 0.5, 0.6, 0.7, 0]
    lines = LinesToLabel(records, None, texts, gold)
    found = summarise_lines(lines, labels, sure, history, "Labels", **more)
    Propagate().print_results(found)
    return found


def test_commands_end_with_lines_and_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end(tmp_path, notes=["a note"], signature="signed")
    out, err = capsys.readouterr()
    assert out == "a\tone <b>\t1\nb\ttwo\t0.9\n\nb\tthree\t0.6\na\tfour\t0.7\n\tfive\t0\n"
    assert err.startswith(
        "# Labels\n# 6 lines: 1 with a label from the start, 5 after 1 round, 4 in the end.\n"
    )
    assert "# a note\n# signed\n" in err
    assert "accuracy 0" not in err
    assert err.endswith("round\tlabelled\tnew\tchanged\tlost\tconfidence\taccuracy\n"
                        "0\t1\t1\t0\t0\t1.0000\t\n1\t5\t4\t0\t0\t0.6750\t\n")  # fmt: skip


def test_gold_is_compared_where_no_label_was_given_and_no_line_is_blank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["one <b>", "two", "", "three", "four", "five"]
    found = end(tmp_path, texts, ["b", "b", "b", "a", "other", "a"])
    told = "ccuracy 0.333 on 3 lines with a gold label, given ones left out; 1 more has no label"
    assert f"# a{told}\n" in capsys.readouterr().err
    whole = Propagate().page(found)
    assert f"A{told}." in whole
    rows = Parts(whole).rows
    assert ["b ✗", "0.600", "4", "three"] in rows
    assert ["b ✓", "0.900", "2", "two"] in rows


def test_classes_that_were_never_learned_may_stand_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = read_records(str(file_of(tmp_path / "lines.tsv", "z\tone\n\ttwo\n")))
    history = History(["a", "b"], np.array([-1, -1]))
    history.record(np.array([0, 1]), np.array([0.5, 0.5]), "body")
    lines = LinesToLabel(records, None, None, ["a", "b"])
    Propagate().print_results(summarise_lines(lines, ["a", "b"], [0.5, 0.5], history, ""))
    out, err = capsys.readouterr()
    assert out == "z\tone\t0.5\nb\ttwo\t0.5\n"
    assert "accuracy 1.000 on 1 line with a gold label, given ones left out\n" in err


def test_whoever_watches_sees_tables() -> None:
    class Screen(StringIO):
        def isatty(self) -> bool:
            return True

    screen, pipe = Screen(), StringIO()
    for stream in (screen, pipe):
        brief().print(stream)
    assert "\t" not in screen.getvalue()
    assert "#" not in screen.getvalue()
    assert pipe.getvalue() == brief().as_tsv()
