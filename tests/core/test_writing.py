"""What is written is there whole or not at all, and what was there before is as it was."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softcount.core import drafts
from softcount.core.drafts import DRAFT, open_whole, open_whole_folder, write_whole
from softcount.core.errors import StoreError
from softcount.text.archive import Archive
from tests.commands import done, run
from tests.world import FILES, contents

ROOT = Path(__file__).resolve().parents[2]
HELPER = ROOT / "tests" / "core" / "killed_writers.py"
SOURCE = ROOT / "src" / "softcount"
KILLS = 50

posix = pytest.mark.skipif(os.name == "nt", reason="needs signals and locks")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# killed
@pytest.mark.slow
@posix
@pytest.mark.parametrize("kind", ["save", "answer", "page", "build", "corpus"])
def test_killed_at_random_moments(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    told = subprocess.run(
        [sys.executable, str(HELPER), kind, folder, "19", str(KILLS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    seen = json.loads(told.stdout)
    assert seen["broken"] == 0, seen
    assert kind in ("build", "corpus") or (seen["whole"], seen["missing"]) == (KILLS, 0), seen
    assert seen["drafts"], f"no writer was killed while it wrote: {seen}"
    assert seen["whole"], f"no writer got to the end: {seen}"
    assert seen["left"] == 0, f"the last one did not clear what was left: {seen}"


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_signals_leave_no_draft(kind: str, number: int, tmp_path: Path) -> None:
    target = tmp_path / "target"
    if kind == "file":
        target.write_text("before")
    child = os.fork()
    if child == 0:
        try:
            signal.signal(number, signal.SIG_DFL)  # nohup, and shells in the background, ignore it
            with open_whole(target) if kind == "file" else open_whole_folder(target) as one:
                if isinstance(one, Path):
                    (one / "part").write_text("a part")
                else:
                    one.write(b"a part")
                time.sleep(60)
        finally:
            os._exit(99)  # not reached, if the signal does what signals do
    deadline = time.monotonic() + 60
    while not any(map(DRAFT.fullmatch, names(tmp_path))) and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.05)
    os.kill(child, number)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -number
    assert names(tmp_path) == ({"target"} if kind == "file" else set())
    assert kind == "folder" or target.read_text() == "before"


@posix
def test_signals_are_left_as_they_were(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    heard: list[int] = []
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with open_whole(tmp_path / "a") as file:
            file.write(b"a")
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGTERM, lambda one, _: heard.append(one))  # someone has a use for it
        with open_whole(tmp_path / "a") as file:
            file.write(b"b")
            os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (tmp_path / "a").read_bytes() == b"b"


def test_other_threads_may_write(tmp_path: Path) -> None:
    threads = [
        threading.Thread(target=write_whole, args=(tmp_path / "a", bytes([n]) * 10_000))
        for n in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    raw = (tmp_path / "a").read_bytes()
    assert len(raw) == 10_000
    assert len(set(raw)) == 1
    assert names(tmp_path) == {"a"}


# drafts that were left
def draft_of(folder: Path, name: str = "a") -> Path:
    return drafts._draft_path(folder / name)


@posix
def test_drafts_of_the_dead_are_cleared(tmp_path: Path) -> None:
    draft_of(tmp_path).write_text("half")
    folder = draft_of(tmp_path, "other")
    (folder / "scratch").mkdir(parents=True)
    (folder / "scratch" / "words").write_text("half")
    write_whole(tmp_path / "new", b"new")
    assert names(tmp_path) == {"new"}
    draft_of(tmp_path).write_text("half")
    Archive.build(["a b"], tmp_path / "archive")
    assert names(tmp_path) == {"new", "archive"}


@posix
def test_a_draft_that_is_written_to_stays(tmp_path: Path) -> None:
    with open_whole(tmp_path / "a") as file, open_whole_folder(tmp_path / "b") as folder:
        file.write(b"slowly")
        (folder / "part").write_text("slowly")
        child = os.fork()  # the locks are those of another process, too
        if child == 0:
            write_whole(tmp_path / "c", b"quickly")
            os._exit(0)
        os.waitpid(child, 0)
        write_whole(tmp_path / "d", b"quickly")
        assert folder.is_dir()
    assert names(tmp_path) == {"a", "b", "c", "d"}
    assert (tmp_path / "a").read_bytes() == b"slowly"
    assert names(tmp_path / "b") == {"part"}


@posix
def test_what_is_not_certainly_ours_stays(tmp_path: Path) -> None:
    host = drafts._host()
    other = ("0" if host[0] != "0" else "1") + host[1:]
    kept = {
        f".a.{other}-{'0' * 16}.softcount.tmp",  # of another machine
        f".a.{host}-{'0' * 15}.softcount.tmp",
        f"a.{host}-{'0' * 16}.softcount.tmp",
        ".a.0123456789ab.tmp",
        ".a.tmp",
    }
    for name in kept:
        (tmp_path / name).write_text("someone's")
    precious = tmp_path / "precious"
    precious.write_text("precious")
    link = draft_of(tmp_path)
    link.symlink_to(precious)
    pipe = draft_of(tmp_path)
    os.mkfifo(pipe)
    write_whole(tmp_path / "new", b"new")
    assert names(tmp_path) == {*kept, "new", "precious", link.name, pipe.name}
    assert precious.read_text() == "precious"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs to be an administrator")
def test_drafts_of_other_users_stay(tmp_path: Path) -> None:
    theirs = draft_of(tmp_path)
    theirs.write_text("half")
    os.chown(theirs, 12345, 12345)
    write_whole(tmp_path / "new", b"new")
    assert names(tmp_path) == {"new", theirs.name}


# what was there
@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_permissions_stay(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("before")
    file.chmod(mode)
    with open_whole(file) as draft:
        draft.write(b"after")
        (hidden,) = names(tmp_path) - {"a"}
        assert stat.S_IMODE((tmp_path / hidden).stat().st_mode) == mode  # also while it is written
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert file.read_text() == "after"


@posix
def test_a_new_file_is_as_any_other(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@posix
def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "link"
    link.symlink_to("far/file")
    for text in (b"first", b"second"):  # of a file that is not there yet, too
        write_whole(link, text)
        assert link.is_symlink()
        assert (tmp_path / "far" / "file").read_bytes() == text
    assert names(tmp_path / "far") == {"file"}


@posix
def test_the_longest_name(tmp_path: Path) -> None:
    for name in ("x" * 255, "ж" * 127):
        write_whole(tmp_path / name, b"all")
        assert (tmp_path / name).read_bytes() == b"all"


@posix
def test_a_relative_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_whole("a", b"all")
    with open_whole_folder(Path("b")) as folder:
        (folder / "c").write_bytes(b"all")
    assert contents(tmp_path) == {"a": b"all", "b/c": b"all"}


# what is no file
@posix
def test_what_is_open_already_is_gone_on_with(tmp_path: Path) -> None:
    """As where standard output goes to a file, and a name says /dev/stdout."""
    number = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT)
    try:
        os.write(number, b"before ")
        write_whole(f"/dev/fd/{number}", b"and ")
        os.write(number, b"after")
        (tmp_path / "link").symlink_to(f"/dev/fd/{number}")
        write_whole(tmp_path / "link", b" all")
        same = os.fstat(number).st_ino == (tmp_path / "a").stat().st_ino
    finally:
        os.close(number)
    assert same
    assert (tmp_path / "a").read_bytes() == b"before and after all"


@posix
def test_a_pipe_and_a_reader_that_goes_away(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []

    def read(most: int) -> None:
        with pipe.open("rb", buffering=0) as file:
            found.append(file.read(most) or b"")

    for most, text in ((100, b"short"), (1, b"long" * 100_000)):
        reader = threading.Thread(target=read, args=(most,))
        reader.start()
        write_whole(pipe, text)
        reader.join()
    assert found == [b"short", b"l"]
    assert pipe.is_fifo()


# what fails
def failing(number: int) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


ALIGNED = ("--output", "--dictionary-out", "--phrases", "--html", "--save")


@pytest.mark.parametrize("option", ALIGNED)
def test_a_full_disk_leaves_what_align_wrote_before(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pairs").write_text(FILES["pairs"])
    (tmp_path / "out").write_text("what was there before\n")
    monkeypatch.setattr(os, "fsync", failing(28))
    result = run("align", tmp_path / "pairs", "-m", "ibm1", option, tmp_path / "out")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert (tmp_path / "out").read_text() == "what was there before\n"
    assert names(tmp_path) == {"pairs", "out"}


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of file sizes")
def test_no_room_in_the_middle_of_a_file(tmp_path: Path) -> None:
    import resource

    (tmp_path / "a").write_text("before")
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            write_whole(tmp_path / "a", b"x" * 100_000)
        except OSError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert contents(tmp_path) == {"a": b"before"}


def test_an_interrupted_stream_leaves_the_old_links(tmp_path: Path) -> None:
    pairs, out = tmp_path / "pairs", tmp_path / "out"
    pairs.write_text(FILES["pairs"])
    done("align", pairs, "-m", "ibm1", "--save", tmp_path / "model")
    out.write_text("before\n")
    pairs.write_text("a ||| x\nno pair\n")
    assert run("align", pairs, "--load", tmp_path / "model", "--output", out).exit_code == 1
    assert out.read_text() == "before\n"


def test_documents_that_cannot_be_read_are_not_a_fault_of_the_disk(tmp_path: Path) -> None:
    def documents() -> Iterator[str]:
        yield "a b"
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error") as caught:
        Archive.build(documents(), tmp_path / "a")
    assert not isinstance(caught.value, StoreError)
    assert names(tmp_path) == set()


# one writer
DIRECT = re.compile(
    r"""\.write_(text|bytes)\(|open\([^)]*["'][wax]b?\+?["']|os\.(replace|rename)\(|\.to_csv\("""
    r"""|np\.save|\.tofile\(|mkstemp|NamedTemporaryFile"""
)
INSIDE_A_DRAFT = {
    "cli/rehearsals.py",
    "core/drafts.py",
    "engines/folder.py",
    "kernels/ready.py",
    "text/archive.py",
    "text/disk.py",
}
"""The writer itself, and what writes to a folder that nobody reads before it is whole: a draft, a
session's own folder, a temporary one, and compiled kernels on their way into a wheel. There a file
need not outlive a power cut."""


def test_nothing_is_written_but_by_one_writer() -> None:
    """Whatever opens a file to write to it goes by `softcount.core.drafts`."""
    found = {
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).as_posix() not in INSIDE_A_DRAFT
        for line in path.read_text(encoding="utf-8").splitlines()
        if DIRECT.search(line) and not line.lstrip().startswith(">>>")
    }
    assert found == set()
    assert DIRECT.search((SOURCE / "core" / "drafts.py").read_text(encoding="utf-8"))
