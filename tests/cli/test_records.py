"""Lines with some labels: what is read, and that the same lines come out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.cli.records import COLUMNS, Records, column_names, print_records, read_records
from softcount.core.errors import DataError
from tests.commands import n_lines


def read(tmp_path: Path, raw: bytes | str, columns: Sequence[str] = COLUMNS) -> Records:
    path = tmp_path / "lines.txt"
    path.write_bytes(raw.encode() if isinstance(raw, str) else raw)
    return read_records(str(path), columns)


def printed(
    capsys: pytest.CaptureFixture[str],
    records: Records,
    labels: Sequence[str | None],
    confidence: Sequence[float],
) -> list[str]:
    capsys.readouterr()
    print_records(records, labels, confidence)
    out = capsys.readouterr().out
    assert out.endswith("\n")
    return out.removesuffix("\n").split("\n")


def refused(tmp_path: Path, raw: bytes | str, message: str, columns: Any = COLUMNS) -> None:
    with pytest.raises(DataError, match=message) as error:
        read(tmp_path, raw, columns)
    assert error.value.hint


# what is read
@pytest.mark.parametrize(
    ("raw", "labels", "texts"),
    [
        (b"a\tone\n\ttwo\n", ["a", None], ["one", "two"]),
        (b"\xef\xbb\xbfa\tone\r\n-1\ttwo\r\n", ["a", None], ["one", "two"]),
        (b"\n\na\tone\n\n", [None, None, "a", None], ["", "", "one", ""]),
        (b"a\tone\ttwo\t\n", ["a"], ["one\ttwo\t"]),
        (b"a b \t one \n -1 \ttwo", ["a b", None], [" one ", "two"]),
        (b"\t\na\t", [None, "a"], ["", ""]),
        (b"0\tone\n00\ttwo\n", ["0", "00"], ["one", "two"]),
        ("é\tλ\u2028μ\x0bν\x85\n🙂\t\n".encode(), ["é", "🙂"], ["λ\u2028μ\x0bν\x85", ""]),
        (b'"a"\t"one"\n', ['"a"'], ['"one"']),
    ],
)  # fmt: skip
def test_columns(tmp_path: Path, raw: bytes, labels: list[Any], texts: list[str]) -> None:
    records = read(tmp_path, raw)
    assert not records.is_json
    assert records.labels == labels
    assert records.texts("text") == texts
    assert len(records) == n_lines(raw)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ('"a"', "a"),
        ('" a b "', "a b"),
        ("0", "0"),
        ("7", "7"),
        ("-1", None),
        ('"-1"', None),
        ('""', None),
        ("null", None),
        ("false", "false"),
        ("true", "true"),
        ('"false"', "false"),
    ],
)
def test_labels_in_json(tmp_path: Path, value: str, label: str | None) -> None:
    records = read(tmp_path, f'{{"text": "x", "label": {value}}}\n{{"text": "y"}}\n')
    assert records.is_json
    assert records.labels == [label, None]


def test_other_keys_are_nobodys_business_but_texts_must_be_texts(tmp_path: Path) -> None:
    records = read(tmp_path, '\n {"id": [1, {"a": null}], "text": null}\n{"text": 3}\n')
    assert records.labels == [None] * 3
    with pytest.raises(DataError, match=r":3: 'text' is 3"):
        records.texts("text")
    with pytest.raises(DataError, match="there is no 'body'") as error:
        records.texts("body")
    assert "id, text" in error.value.hint


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty"),
        (b"\n \n\r\n", "is empty"),
        (b"a\tone\nb two\n", r":2: 1 column, expected 2: label, text"),
        (b"label\ttext\na\tone\n", "names of the columns"),
        (b"Label\tText\r\na\tone\n", "names of the columns"),
        (b"a\t\xff\n", "not UTF-8"),
        (b'{"text": "x"}\nnope\n', ":2: not JSON"),
        (b'{"text": "x"}\n[1]\n', r":2: \[1\] is not a JSON object"),
        (b'{"text": "x", "text": "y"}\n', ":1: the key 'text' occurs twice"),
        (b'\n{"a": {"b": 1, "b": 1}}\n', ":2: the key 'b' occurs twice"),
        (b'{"label": 1.5}\n', ":1: 1.5 is not a valid label"),
        (b'{"label": ["a"]}\n', ":1: .* is not a valid label"),
        (b'{"label": {}}\n', ":1: {} is not a valid label"),
        (b'{"a": ' + b"[" * 100_000, ":1: not JSON"),
        (b'{"a": ' + b"1" * 10_000 + b"}", ":1: not JSON"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, raw: bytes, message: str) -> None:
    refused(tmp_path, raw, message)


@pytest.mark.parametrize("columns", ["text", "label,label", "label,,text", "", "label,text,text"])
def test_columns_need_names_of_their_own(tmp_path: Path, columns: str) -> None:
    refused(tmp_path, "a\tone\n", "--columns", column_names(columns))


def test_more_columns(tmp_path: Path) -> None:
    records = read(tmp_path, "1\ta\tone\ttwo\n", column_names(" id, label ,text"))
    assert records.labels == ["a"]
    assert records.texts("id") == ["1"]
    assert records.texts("text") == ["one\ttwo"]
    refused(tmp_path, "1\ta\n", "2 columns, expected 3", ("id", "label", "text"))


def test_labels_to_learn_from(tmp_path: Path) -> None:
    read(tmp_path, "a\tx\nb\ty\n\tz\n").check_labels()
    with pytest.raises(DataError, match="no line has a label"):
        read(tmp_path, "\tx\n-1\ty\n").check_labels()
    with pytest.raises(DataError, match="no labels other than 'a'"):
        read(tmp_path, "a\tx\n a\ty\n").check_labels()
    with pytest.raises(DataError, match="no labels other than 'a', 'b'"):
        read(tmp_path, "a\tx\nb\ty\n").check_labels(3)


# what comes out
def test_columns_come_out_as_they_went_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = read(tmp_path, " a \tone\ttwo\r\n-1\t x\n\n\ty\n-1\tz\n")
    out = printed(capsys, records, ["b", "a", "a", "b", None], [1, 0.123456789, 0.5, 1e-9, 0.0])
    assert out == [" a \tone\ttwo\t1", "a\t x\t0.123457", "", "b\ty\t1e-09", "\tz\t0"]


def test_json_comes_out_as_it_went_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = (
        '{"label": 1, "text": "é\\ud800", "id": 1e3}\n\n{}\n{"text": "\\u2028<b>", "label": -1}\n'
        '{"confidence": 7, "label": "", "x": [null, true]}\n{"label": "1"}\n'
    )
    records = read(tmp_path, raw)
    out = printed(capsys, records, [*"01111", None], [1, 1, 0.5, float("nan"), 0.25, 1])
    assert out[1] == ""
    found = [json.loads(line) if line else None for line in out]
    assert found == [
        {"label": 1, "text": "é\ud800", "id": 1000.0, "confidence": 1.0},
        None,
        {"label": 1, "confidence": 0.5},
        {"text": "\u2028<b>", "label": 1, "confidence": None},
        {"confidence": 0.25, "label": 1, "x": [None, True]},
        {"label": "1", "confidence": 1.0},
    ]
    assert list(found[4] or ()) == ["confidence", "label", "x"]
    "\n".join(out).encode()  # halves of pairs are not in it


@pytest.mark.parametrize("value", ["true", "0", '"two words"'])
def test_labels_keep_their_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    records = read(tmp_path, f'{{"label": {value}}}\n{{"label": null}}\n')
    (label, _) = records.labels
    out = printed(capsys, records, [label, label], [1, 1])
    kept = json.loads(value)
    for line in out:
        assert json.loads(line)["label"] == kept
        assert type(json.loads(line)["label"]) is type(kept)


def test_a_column_of_confidence_is_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = read(tmp_path, "a\tone\n\ttwo\n")
    first = printed(capsys, records, ["a", "b"], [1, 0.5])
    again = read(tmp_path, "\n".join(first), ("label", "text", "confidence"))
    assert again.labels == ["a", "b"]
    assert again.texts("text") == ["one", "two"]
    assert printed(capsys, again, ["a", "b"], [1, 0.75]) == ["a\tone\t1", "b\ttwo\t0.75"]


def test_a_label_for_every_line_or_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="zip"):
        print_records(read(tmp_path, "a\tone\n\ttwo\n"), ["a"], [1.0])


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n\ufeff"), max_size=4)
LABELS = st.sampled_from(["a", "b c", "é", "0", "-1", "", " d "])
LINES = st.lists(st.one_of(st.just(""), st.tuples(LABELS, WORDS).map("\t".join)), min_size=1)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
OBJECTS = st.fixed_dictionaries(
    {"text": st.text(max_size=3)},
    optional={
        "label": st.sampled_from(["a", "b c", " d ", "", "-1", -1, 0, 5, True, False, None]),
        "more": VALUES,
        "confidence": VALUES,
    },
)


def round_trip(raw: str, seed: int, is_json: bool) -> None:
    """Every line comes out, its text and its own label kept; read again, labels are the same."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder)
        records = read(path, raw)
        assert records.is_json == is_json
        known = sorted({label for label in records.labels if label}) or ["new"]
        options = [*known, None]
        learned = [options[(seed + n) % len(options)] for n in range(len(records))]
        wrote: list[str] = []
        patch.setattr("sys.stdout.write", wrote.append)
        print_records(records, learned, [n / len(records) for n in range(len(records))])
        assert len(wrote) == len(records) == len(raw.split("\n")) - raw.endswith("\n")
        columns = COLUMNS if is_json else ("label", "text", "confidence")
        again = read(path, "".join(wrote), columns)
        expected = [
            None if n in records.blank else given if given is not None else learned[n]
            for n, given in enumerate(records.labels)
        ]
        assert again.labels == expected
        assert again.blank == records.blank
        assert again.texts("text") == records.texts("text")
        if is_json:
            for before, after in zip(records.fields, again.fields, strict=True):
                assert {**before, "label": 0, "confidence": 0} == {
                    **after,
                    "label": 0,
                    "confidence": 0,
                }


@given(LINES, st.integers(0, 9))
def test_columns_can_be_read_again(lines: list[str], seed: int) -> None:
    if any(line.strip() for line in lines) and not any(line.startswith("{") for line in lines):
        round_trip("\n".join(lines) + "\n", seed, False)


@given(st.lists(OBJECTS | st.none(), min_size=1), st.integers(0, 9))
def test_json_can_be_read_again(objects: list[Any], seed: int) -> None:
    if any(one is not None for one in objects):
        text = "\n".join("" if one is None else json.dumps(one) for one in objects)
        round_trip(text + "\n", seed, True)
