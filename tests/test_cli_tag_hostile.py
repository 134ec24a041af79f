"""``softcount tag`` with files that mean harm, or just look like it."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from softcount.errors import DataError
from softcount.hmm import HMM
from softcount.hmm.command import read_text, stream
from tests.commands import done, file_of, lines, refused, run
from tests.tagging import KNOWN_PAIRS, ROW, SENTENCES, TEXT, conllu


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return file_of(tmp_path / "text.txt", TEXT)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "kept"
    HMM(2, smoothing=0.1).fit(SENTENCES).save(path)
    return path


@pytest.fixture
def kept_tags(tmp_path: Path) -> Path:
    path = tmp_path / "kept_tags"
    tags = [[tag for _, tag in one] for one in KNOWN_PAIRS]
    HMM(6, smoothing=0.1).fit([[word for word, _ in one] for one in KNOWN_PAIRS], tags).save(path)
    return path


# where a fault is
@pytest.mark.parametrize(
    ("raw", "message"),
    [(b"a b\n\nc\0d\n", ":3 has a NUL byte"), (b"a b\n\nc \xff\n", ":3 is not UTF-8")],
)
def test_a_fault_is_named_by_its_line(tmp_path: Path, kept: Path, raw: bytes, message: str) -> None:
    (tmp_path / "bad").write_bytes(raw)
    for args in (("-k", "2"), ("--load", kept)):
        refused("tag", tmp_path / "bad", *args, message=f"bad{message}")
        refused("tag", *args, stdin=raw, message=f"standard input{message}")


def test_a_fault_in_a_later_piece_is_named_by_its_line(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcount.corpus.lines.PIECE", 16)
    (tmp_path / "bad").write_bytes(b"the dog barks\n" * 20 + b"the\0dog\n")
    result = run("tag", "--load", kept, tmp_path / "bad")
    assert result.exit_code == 1
    assert "bad:21 has a NUL byte" in result.stderr
    assert 15 <= len(lines(result)) <= 20  # whatever came in pieces before
    rows = conllu(KNOWN_PAIRS).encode()
    (tmp_path / "bad").write_bytes(rows + rows.replace(b"\told\t", b"\t\t"))
    result = run("tag", "--load", kept, tmp_path / "bad", "--format", "conllu")
    assert result.exit_code == 1
    assert f"bad:{2 * len(rows.splitlines()) - 3} has the form ''" in result.stderr


def test_conllu_with_too_few_columns_is_no_text(tmp_path: Path, kept: Path) -> None:
    damaged = conllu(KNOWN_PAIRS).replace("\t_\n", "\n", 1)
    (tmp_path / "bad").write_text(damaged)
    refused("tag", "-k", "2", stdin=damaged, message="standard input:2 has 9 columns")
    refused("tag", "--load", kept, tmp_path / "bad", message="bad:2 has 9 columns")


# files that are not there twice
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("raw", [TEXT.encode(), conllu(KNOWN_PAIRS).encode()])
def test_a_pipe_is_read_once(tmp_path: Path, kept: Path, raw: bytes) -> None:
    (tmp_path / "plain").write_bytes(raw)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for args in (("-k", "2"), ("--load", kept)):
        wanted = done("tag", tmp_path / "plain", *args).stdout
        writer = threading.Thread(target=pipe.write_bytes, args=(raw,))
        writer.start()
        assert done("tag", pipe, *args).stdout == wanted
        writer.join()


def test_packed_files_whatever_they_are_called(tmp_path: Path, kept: Path) -> None:
    wanted = done("tag", "--load", kept, stdin=TEXT).stdout
    (tmp_path / "packed").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "plain.gz").write_text(TEXT)
    for name in ("packed", "plain.gz"):
        assert done("tag", "--load", kept, tmp_path / name).stdout == wanted


# CoNLL-U as it comes
@pytest.mark.parametrize("piece", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "# the end\n", "# the end"])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_conllu_by_pieces_is_the_whole(
    tmp_path: Path,
    kept_tags: Path,
    monkeypatch: pytest.MonkeyPatch,
    piece: int,
    end: str,
    line: str,
) -> None:
    raw = ("\ufeff# begin\n\n\n" + conllu(KNOWN_PAIRS * 3) + end).replace("\n", line).encode()
    file = tmp_path / "file"
    file.write_bytes(raw)
    load = ("tag", "--load", kept_tags, file, "--proba")
    wanted = done(*load, "--html", tmp_path / "page").stdout_bytes  # all at once
    assert wanted.count(b"\n") == raw.count(b"\n")
    assert b"Prob=" in wanted
    monkeypatch.setattr("softcount.corpus.lines.PIECE", piece)
    assert done(*load).stdout_bytes == wanted
    assert done("tag", "--load", kept_tags, "--proba", stdin=raw).stdout_bytes == wanted
    assert done("tag", "--load", kept_tags, file, "--json").stdout.count("\n") == 6


def test_conllu_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.corpus.lines.PIECE", 64)
    file = tmp_path / "file.conllu"
    file.write_text(conllu(KNOWN_PAIRS * 50))
    parts = list(stream(str(file), None))
    assert len(parts) == 100
    whole = file.read_text().split("\n")
    for part in parts:
        (words,) = [part.sequences.sentence(0)]
        assert whole[part.line(0) - 1].split("\t")[1] == words[0]


def test_states_have_one_column_whatever_is_in_a_part(
    tmp_path: Path, kept_tags: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part may have states without names only, while others have names."""
    monkeypatch.setattr("softcount.corpus.lines.PIECE", 1)
    monkeypatch.setattr(HMM, "predict", lambda self, some, method: [[5] * n for n in some.lengths])
    (tmp_path / "file").write_text(conllu(KNOWN_PAIRS))
    found = done("tag", "--load", kept_tags, tmp_path / "file").stdout
    assert "State=" not in found


def test_no_sentences_are_no_fault_of_a_filter(kept: Path) -> None:
    for raw in ("", "# nothing\n\n"):
        assert done("tag", "--load", kept, "--format", "conllu", stdin=raw).stdout == raw


# tags that cannot be printed
def test_tags_with_separators_and_spaces(tmp_path: Path, text: Path) -> None:
    row = ROW.format(1, "dog", "{}", "X", "_") + "\n\n"
    for tag, message in (("N/X", "with the separator / in it"), ("N X", "with a space in it")):
        file, kept = tmp_path / "file.conllu", tmp_path / "kept"
        file.write_text(row.format(tag))
        found = done("tag", file, "--tagged", file, "--save", kept)  # columns take anything
        assert found.stdout == file.read_text()
        assert done("tag", "--load", kept, file).stdout == file.read_text()
        refused("tag", text, "--tagged", file, "--smoothing", ".1", message=message)
        refused("tag", text, "--load", kept, message=message)
        assert len(lines(done("tag", text, "--load", kept, "--json"))) == 5
    refused("tag", text, "--load", kept, "--states", message="with a space in it")


def test_gold_of_other_words(text: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.write_text(TEXT.upper().replace("DOG", "DOG/N"))  # case says nothing
    done("tag", text, "-k", "2", "--gold", gold)
    gold.write_text(TEXT.replace("dog", "dog/N").replace("cat sleeps", "cow sleeps"))
    message = f"--gold {gold}:2 has 'cow', where {text}:2 has 'cat'"
    refused("tag", text, "-k", "2", "--gold", gold, message=message)


# the rest
def test_spectral_is_a_start() -> None:
    result = run("tag", "-k", "2", "--learner", "spectral", stdin=TEXT)
    assert result.exit_code == 2
    assert "--init spectral" in result.stderr


def test_more_states_than_memory_has_room_for(text: Path) -> None:
    refused("tag", text, "-k", "100000", message="100,000 states of order 1")
    refused("tag", text, "-k", "1000", "--order", "2", message="1,000 states of order 2")


def test_standard_input_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input is closed"):
        read_text("-", None)
    with pytest.raises(DataError, match="standard input is closed"):
        list(stream("-", None))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_no_room_for_the_output(text: Path, kept: Path) -> None:
    command = [sys.executable, "-m", "softcount", "tag", "--load", str(kept), str(text)]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 1
    assert b"standard output cannot be written to: No space left" in result.stderr
    assert b"Traceback" not in result.stderr
