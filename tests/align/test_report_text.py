"""One sentence pair in the terminal: shades, brackets, and columns that stay in line."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from softcount.align.report import alignment_view
from softcount.core.errors import DataError

SHADES = {0.0: " ", 0.04: " ", 0.06: "░", 0.31: "▒", 0.61: "▓", 0.95: "█"}


@pytest.mark.parametrize(("p", "block"), SHADES.items())
@pytest.mark.parametrize("linked", [False, True])
def test_a_cell_shows_its_probability_and_its_link(p: float, block: str, linked: bool) -> None:
    line = alignment_view("a", "b", [[p]], [(0, 0)] * linked, width=60).split("\n")[2]
    assert line == (f"a [{block}]" if linked else f"a  {block}").rstrip()


def test_view_has_words_above_their_columns() -> None:
    text = alignment_view("a bc", "x yy z", np.eye(3)[:2], [(0, 0), (1, 1)], width=60)
    assert text.split("\n")[:6] == [
        "    x",
        "    │  yy",
        "    │  │  z",
        "    │  │  │",
        " a [█]",
        "bc    [█]",
    ]


def test_columns_stay_in_line_below_wide_and_narrow_words() -> None:
    rows = ["日本語", "e\u0301", "שלום", "word"]
    text = alignment_view(rows, ["你好", "x"], np.ones((4, 2)), [], width=60)
    lines = text.split("\n")[3:7]
    assert {cell_len(line[: line.index("█")]) for line in lines} == {8}
    assert "\u2068שלום\u2069" in text


def test_a_matrix_wider_than_the_terminal_becomes_a_list() -> None:
    source, target = ["the", "green", "house"], ["das", "grüne", "haus", "da"]
    p = np.array([[0.9, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 0, 0]])
    args = source, target, p, [(0, 0), (1, 1), (1, 2)]
    wide, narrow = (alignment_view(*args, width=width) for width in (60, 12))
    assert "[█]" in wide
    assert narrow.split("\n") == [
        "  the  das █ 0.90",
        "green  grüne ▒ 0.50  haus   0.00",
        "house  –",
        "    –  da",
    ]


def test_wide_words_take_two_columns_a_character() -> None:
    assert "│" in alignment_view("a", "你好", [[1.0]], [], width=7)
    assert "│" not in alignment_view("a", "你好", [[1.0]], [], width=6)


def test_view_asks_how_wide_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    args = ("a b", " ".join(["word"] * 9), np.zeros((2, 9)), [])
    monkeypatch.setenv("COLUMNS", "100")
    assert "│" in alignment_view(*args)
    monkeypatch.setenv("COLUMNS", "20")
    assert "│" not in alignment_view(*args)


@pytest.mark.parametrize(
    ("source", "target", "brief"), [("", "", ""), ("", "a b", "–  a  b"), ("a b", "", "a  –\nb  –")]
)
def test_view_of_empty_sides(source: str, target: str, brief: str) -> None:
    shape = len(source.split()), len(target.split())
    assert alignment_view(source, target, np.zeros(shape), []) == brief


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(max_size=30), min_size=1, max_size=4),
    st.lists(st.text(max_size=30), min_size=1, max_size=4),
    st.integers(1, 90),
)
def test_view_of_any_words_is_plain_text_of_so_many_lines(
    source: list[str], target: list[str], width: int
) -> None:
    p = np.full((len(source), len(target)), 0.4)
    text = alignment_view(source, target, p, [(0, 0)], width=width)
    text.encode("utf-8")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    lines = text.split("\n")
    if "[ ] link" in lines[-1]:
        assert len(lines) == len(target) + 1 + len(source) + 2
        assert max(map(cell_len, lines[:-1])) <= width
    else:
        assert len(lines) == len(source) + (len(target) > 1)


def test_what_does_not_fit_the_words_is_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(2, 1\) for 1 source and 2 target"):
        alignment_view("a", "b c", [[0.1], [0.2]], [])
    with pytest.raises(DataError, match="the pair: the link 0-2 is outside"):
        alignment_view("a", "b c", [[0.1, 0.2]], [(0, 2)])
    for bad in (math.nan, 1.5, -0.5):
        with pytest.raises(DataError, match="not a probability"):
            alignment_view("a", "b", [[bad]], [])
