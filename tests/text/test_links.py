"""Links as text and as arrays, there and back; and what is no link."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.text.links import FlatLinks, Links, format_links, parse_links, read_links

cases = settings(max_examples=60, deadline=None)
positions = st.integers(0, 12) | st.integers(0, 999_999_999)
link = st.tuples(positions, positions)
links = st.frozensets(link, max_size=12)


def test_a_line_by_hand():
    read = parse_links("0-0 1?2 3-1:0.97 \t 1-1\n")
    assert read.sure == {(0, 0), (3, 1), (1, 1)}
    assert read.possible == {(0, 0), (3, 1), (1, 1), (1, 2)}
    assert read.probabilities == {(3, 1): 0.97}
    assert list(read) == [(0, 0), (1, 1), (3, 1)]
    assert parse_links("") == parse_links(" \n") == Links([])


def test_a_link_that_is_sure_and_possible_is_sure():
    assert parse_links("0?0 0-0").sure == {(0, 0)}


def test_lines_are_in_order():
    assert format_links([(2, 0), (0, 10), (0, 9), (2, 0)]) == "0-9 0-10 2-0"
    assert format_links(Links([(1, 1)], [(0, 1)])) == "0?1 1-1"
    assert format_links([(1, 1), (0, 1)], {(1, 1): 1 / 3}) == "0-1 1-1:0.333333"
    assert format_links([]) == ""


@cases
@given(links, links, st.data())
def test_text_there_and_back(sure, possible, data):
    several = sorted(sure | possible)
    some = data.draw(st.lists(st.sampled_from(several), unique=True) if several else st.just([]))
    given_ones = {one: data.draw(st.floats(0, 1)) for one in some}
    line = format_links(Links(sure, possible, given_ones))
    read = parse_links(line)
    assert (read.sure, read.possible) == (sure, sure | possible)
    assert read.probabilities == pytest.approx(given_ones, rel=1e-5, abs=1e-300)
    assert format_links(read) == line


@pytest.mark.parametrize(
    "bad",
    [
        *("3-", "-3", "a-b", "-1-2", "1--2", "1-2-3", "1", "1_0-2", "١-٢", "1.0-2", "9999999999-0"),
        *("1-2:", "1-2:x", "1-2:nan", "1-2:1.5", "1-2:-0.1", "1-2:0.5:1", "0-0,1-1", "(0,1)"),
    ],
)
def test_what_is_no_link_is_named_with_its_line(bad):
    with pytest.raises(DataError, match=r"^line 2: ") as error:
        read_links(["0-0", f"1-1 {bad} 2-2"])
    assert bad in str(error.value)


def test_two_probabilities_of_one_link():
    assert parse_links("0-0:0.5 0-0:0.5").probabilities == {(0, 0): 0.5}
    with pytest.raises(DataError, match="the link 0-0 has two probabilities"):
        parse_links("0-0:0.5 0-0:0.6")


def test_links_stay_inside_their_pair():
    shapes = [(2, 3), (1, 1)]
    assert len(read_links(["1-2", "0-0"], shapes)) == 2
    for line, pair in [("2-2", 0), ("1-3", 0), ("0-1", 1)]:
        lines = ["", ""]
        lines[pair] = line
        with pytest.raises(DataError, match=f"line {pair + 1}: the link {line} is outside"):
            read_links(lines, shapes)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_as_many_lines_as_pairs(n):
    with pytest.raises(DataError, match=f"{n} lines of links for 2 pairs"):
        read_links(["0-0"] * n, [(1, 1), (1, 1)])


@pytest.mark.parametrize("name", ["gold.align", "gold.align.gz"])
def test_files(tmp_path, name):
    path = tmp_path / name
    opened = gzip.open if name.endswith("gz") else open
    with opened(path, "wb") as file:
        file.write(b"0-0 1?1\r\n\n2-0")
    assert read_links(path) == [Links([(0, 0)], [(1, 1)]), Links([]), Links([(2, 0)])]
    with opened(path, "wb") as file:
        file.write(b"0-0\n1-\xff\n")
    with pytest.raises(DataError, match=rf"{name}:2: .*xff"):
        read_links(str(path))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        read_links(tmp_path / "none.align")
    (tmp_path / "torn.gz").write_bytes(gzip.compress(b"0-0\n" * 1000)[:-9])
    with pytest.raises(DataError, match="cannot read"):
        read_links(tmp_path / "torn.gz")


@cases
@given(st.lists(st.lists(link, max_size=6), max_size=6))
def test_arrays_there_and_back(alignments):
    flat = FlatLinks.of(alignments)
    assert len(flat) == len(alignments)
    assert flat.lists() == alignments
    assert flat.pair.tolist() == [n for n, one in enumerate(alignments) for _ in one]
    assert FlatLinks.of(flat) is flat


@cases
@given(st.lists(links, max_size=6))
def test_arrays_as_text(alignments):
    alignments = [sorted(one) for one in alignments]
    lines = FlatLinks.of(alignments).text().decode().split("\n")
    assert lines == [*(format_links(one) for one in alignments), ""]


def test_arrays_take_what_is_read():
    assert FlatLinks.of([parse_links("1-0 0-0 2?2"), {(3, 3)}]).lists() == [
        [(0, 0), (1, 0)],
        [(3, 3)],
    ]
    assert FlatLinks.of([np.array([[1, 2]])]).lists() == [[(1, 2)]]


@pytest.mark.parametrize(
    "bad", [(0,), (0, 1, 2), (0, -1), (0, 1.0), ("0", "1"), "0-1", 3, (0, 2**40), (0, 10**9)]
)
def test_what_is_no_link_is_named_with_its_pair(bad):
    with pytest.raises(DataError, match=r"pair 1: .* is not a link"):
        FlatLinks.of([[(0, 0)], [(1, 1), bad]])


def test_arrays_inside_their_pairs():
    flat = FlatLinks.of([[(0, 0)], [(1, 2)]])
    flat.check_inside(np.array([1, 2]), np.array([1, 3]))
    with pytest.raises(DataError, match="pair 1: the link 1-2 is outside its pair of 2 source"):
        flat.check_inside(np.array([1, 2]), np.array([1, 2]))
    with pytest.raises(DataError, match="the second: the link 1-2"):
        flat.check_inside(
            np.array([1, 1]), np.array([1, 3]), ["the first", "the second"].__getitem__
        )
    with pytest.raises(DataError, match="links of 2 pairs for 1 pairs"):
        flat.check_inside(np.array([1]), np.array([1]))
