"""What a command reads it does not write, whatever it is called, and nothing is written twice."""

from __future__ import annotations

import inspect
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import pytest
from typer.main import get_command

from softcount.cli.app import app
from softcount.cli.frame import Command, GuardedCommand, make_group
from softcount.cli.options import Argument, Input, Output
from softcount.cli.targets import (
    FIT_FOLDER,
    PLAIN,
    WRITTEN,
    Plain,
    Written,
    option_name,
    read_marks,
)
from tests.commands import done, refused, run
from tests.world import ARCHIVE, CALLS, Call, aliases, contents, restore

CALLS_IN_ALL = 2_000


# every command
def every_command(command: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    command = get_command(app) if command is None else command
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path.strip(), command
        return
    for name, one in inner.items():
        yield from every_command(one, f"{path} {name}")


READ = {
    "cluster": {"file", "stop_words", "gold", "load", "constraints"},
    "classify": {"file", "train", "unlabelled", "stop_words", "gold", "load", "constraints"},
    "annotators": {"file", "known", "gold", "load"},
    "rules": {"rules", "file", "known", "gold", "stop_words", "load"},
    "bags": {"file", "stop_words", "load"},
    "bootstrap": {"file", "seeds", "stop_words", "gold"},
    "propagate": {"file", "graph", "gold", "load"},
    "cotrain": {"file", "stop_words", "gold"},
    "ask": {"file", "stop_words", "answers"},
    "adapt": {"source", "target", "target_labelled", "stop_words", "gold"},
    "select": {"file", "stop_words"},
    "topics": {"texts", "stop_words", "seed_words", "labels", "frozen_topics", "dates", "load"},
    "similar": {"model", "file"},
    "senses": {"file", "stop_words", "load"},
    "align": {"file", "corpus", "source", "target", "dictionary", "links", "load", "gold"},
    "translate": {"file", "pairs", "source", "target", "load"},
    "tag": {"file", "dictionary", "tagged", "gold", "load"},
    "grammar": {"file", "rules", "treebank", "brackets", "trees", "gold"},
    "parse": {"model", "file", "brackets", "gold"},
    "story": {"model", "data", "init"},
    "corpus build": {"files", "stop_words", "like", "source", "target"},
    "corpus info": {"corpus"},
    "resume": set(),
    "show": set(),
    "warm-up": set(),
    "demo": set(),
}
"""What is known to be read. Whatever is new among options must be put here, or be marked."""


def test_every_command_is_guarded() -> None:
    found = dict(every_command())
    assert set(found) == set(READ)
    assert [name for name, one in found.items() if not isinstance(one, GuardedCommand)] == []


def kinds_in(hint: Any) -> set[Any]:
    """The types that a type is made of."""
    return {hint}.union(*map(kinds_in, get_args(hint)))


def texts_of(command: Any) -> set[str]:
    """Options that are texts or paths, by the types that the command's function has for them."""
    hints = get_type_hints(inspect.unwrap(command.callback))
    return {name for name, hint in hints.items() if kinds_in(hint) & {str, Path}}


@pytest.mark.parametrize(("name", "command"), [*every_command()])
def test_every_option_that_may_name_a_file_is_known(name: str, command: Any) -> None:
    marks = read_marks(command.callback)
    assert texts_of(command) - set(marks) == READ[name]
    assert set(marks) <= texts_of(command)


@pytest.mark.parametrize(("name", "command"), [*every_command()])
def test_plain_text_does_not_look_like_a_file(name: str, command: Any) -> None:
    marks, hints = read_marks(command.callback), get_type_hints(inspect.unwrap(command.callback))
    for one in command.params:
        if isinstance(marks.get(one.name), Plain) and marks[one.name] != FIT_FOLDER:
            assert Path not in kinds_in(hints[one.name])
            assert not re.search("FILE|MODEL|ARCHIVE|PATH|FOLDER", one.metavar or "")


def test_all_that_is_written_is_tried_here() -> None:
    for name, command in every_command():
        marks = read_marks(command.callback)
        written = {
            option_name(one) for one in command.params if isinstance(marks.get(one.name), Written)
        }
        tried = {
            option
            for call in CALLS
            if f"{call.words} ".startswith(f"{name} ")
            for option in call.written
        }
        assert name == "demo" or tried == written


def test_a_new_command_is_guarded_without_a_word(tmp_path: Path) -> None:
    class Copy(Command):
        """Copy a file."""

        file: Annotated[str, Argument("What is read.", metavar="FILE")]
        to: Annotated[Path, Output("What is written.", file=WRITTEN)]

        def run(self) -> None:
            self.to.write_text("spoilt")

    class Other(Command):
        """Do nothing."""

    new = make_group("", {"copy": Copy, "other": Other})
    from typer.testing import CliRunner

    file = tmp_path / "file"
    file.write_text("precious")
    result = CliRunner().invoke(new, ["copy", str(file), "--to", str(file)])
    assert result.exit_code == 1
    assert "this is the file of FILE, too" in result.stderr
    assert file.read_text() == "precious"


def test_only_files_to_read_count_as_standard_input() -> None:
    class Show(Command):
        """Show a file."""

        file: Annotated[str, Argument("What is read.")]
        other: Annotated[str, Input("What else is read.")] = ""
        word: Annotated[str, Input("A word.", metavar="WORD", file=PLAIN)] = ""
        mark: Annotated[str, Input("A mark.", metavar="MARK", parser=str)] = ""

        def run(self) -> None:
            print("shown")

    class Other(Command):
        """Do nothing."""

    new = make_group("", {"show": Show, "other": Other})
    from typer.testing import CliRunner

    result = CliRunner().invoke(new, ["show", "-", "--word", "-", "--mark", "-"])
    assert (result.exit_code, result.stdout) == (0, "shown\n"), result.stderr
    result = CliRunner().invoke(new, ["show", "-", "--other", "-"])
    assert result.exit_code == 2
    assert "only one file can be standard input" in result.stderr


# one by one
WRITING = [(call, option) for call in CALLS for option in call.written]


@pytest.mark.parametrize(("call", "option"), WRITING, ids=lambda one: getattr(one, "words", one))
def test_what_is_read_is_not_written(call: Call, option: str, world: Path) -> None:
    given = [*call.words.format(*call.read).split(), *call.more]
    before = contents(world)
    for name in (*call.read, *call.also):
        for other in aliases(name, world):
            if name == ARCHIVE:
                refused(*given, option, f"{other}/new", message="which is read")
                other = f"{other}/words.bin"
            refused(*given, option, other, message="this is the file of")
    for name, raw in contents(world).items():
        assert before.get(name, raw) == raw


@pytest.mark.parametrize("call", [call for call in CALLS if len(call.written) > 1])
def test_nothing_is_written_twice(call: Call, world: Path) -> None:
    given = [*call.words.format(*call.read).split(), *call.more]
    one, other = call.written[:2]
    (world / "sub").mkdir()
    (world / "link").symlink_to("new")
    for name in ("new", "./new", "sub/../new", "link", str(world / "new")):
        refused(*given, one, "new", other, name, message="this is the file of")
    assert not (world / "new").exists()


def test_a_hard_link_is_the_same_file(world: Path) -> None:
    os.link("docs", "other")
    refused("cluster", "docs", "-k", "2", "--save", "other", message="this is the file of FILE")


def test_text_that_names_no_file_does_not_matter(world: Path) -> None:
    for _ in range(2):
        done("senses", "docs", "--word", "cat", "--min-count", "1", "--save", "cat")


def test_what_the_program_imports_is_read(world: Path) -> None:
    given = ("story", "coins.py", "tosses", "--chars", "--max-iter", "1")
    refused(*given, "--save", "sides.py", message="this is the file of what coins.py imports")
    done(*given, "--save", "fresh.py")


def test_the_file_of_standard_input(world: Path) -> None:
    with standing_for(0, Path("docs")):
        refused(
            *("cluster", "-", "-k", "2", "--save", "docs"),
            message="this is the file of standard input",
            stdin=Path("docs").read_bytes(),
        )
    done("cluster", "-", "-k", "2", "--save", "docs.m", stdin=Path("docs").read_bytes())


def test_the_files_of_standard_output_and_errors(world: Path) -> None:
    with standing_for(1, Path("docs")):
        refused("cluster", "docs", "-k", "2", message="standard output goes to the file of FILE")
    with standing_for(2, Path("docs")):
        result = run("cluster", "docs", "-k", "2")
        assert (result.exit_code, result.stderr) == (1, "")  # it would be in the file
        assert "standard error goes to the file of FILE" in result.stdout
    with standing_for(1, Path("docs")), standing_for(2, Path("docs")):
        result = run("cluster", "docs", "-k", "2", "--save", "no/where")
        assert (result.exit_code, result.stderr, result.stdout) == (1, "", "")
    Path("out").touch()
    with standing_for(1, Path("out")):
        refused(
            *("cluster", "docs", "-k", "2", "--save", "out"),
            message="--save out: this is the file of standard output, too",
        )
        done("align", "pairs", "-m", "ibm1", "--output", "/dev/stdout")
    assert Path("out").read_text().count("\n") == 3
    with standing_for(1, Path(ARCHIVE, "words.bin")):
        refused("corpus", "info", ARCHIVE, message="standard output goes to the file of CORPUS")


def test_what_is_no_file_may_be_written_and_read(world: Path) -> None:
    done("cluster", "docs", "-k", "2", "--save", "/dev/null", "--html", "/dev/null")
    assert Path("/dev/null").is_char_device()
    read, write = os.pipe()
    try:
        done("grammar", "source", "-k", "2", "--grammar-text", f"/dev/fd/{write}")
        assert b" -> " in os.read(read, 100)
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sub", "there is a folder of that name"),
        ("-", "this cannot go to standard output"),
        ("no/where", "there is no folder"),
        ("docs/where", "there is no folder"),
        ("x" * 300, "name too long"),
        ("loop", "symbolic links"),
        ("/dev/fd/99", "Bad file descriptor"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(
    name: str, message: str, world: Path
) -> None:
    (world / "sub").mkdir()
    (world / "loop").symlink_to("loop")
    result = run("cluster", "docs", "-k", "2", "--save", name)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write anywhere")
def test_a_file_that_is_protected_stays(world: Path) -> None:
    (world / "kept").write_text("kept")
    (world / "kept").chmod(0o444)
    refused("cluster", "docs", "-k", "2", "--save", "kept", message="may not be written to")


# at random
@contextmanager
def standing_for(number: int, path: Path) -> Iterator[None]:
    """Have a stream of this process go to the end of a file, as a shell would."""
    kept = os.dup(number)
    opened = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        os.dup2(opened, number)
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
        os.close(opened)


class Caller:
    """Calls at random, of all commands, with names at random for what is read and written."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.draw = folder, random.Random(seed)
        self.seen: Counter[str] = Counter()

    def one(self) -> None:
        draw = self.draw
        call = draw.choice(CALLS)
        names = {base: draw.choice(aliases(base, self.folder)) for base in call.read}
        given = [*call.words.format(*names.values()).split(), *call.more]
        optional = {o: base for o, base in call.optional.items() if draw.random() < 0.25}
        for option, base in optional.items():
            given += [option, draw.choice(aliases(base, self.folder))]
        read = {*call.read, *call.also, *optional.values()}
        stdin = None
        if draw.random() < 0.1 and call.read[0] != ARCHIVE and call.words.split()[1] == "{}":
            given[1], stdin = "-", call.read[0]
        written = dict[str, str]()
        for option in call.written:
            if draw.random() < 0.4 or (option == "--output" and "corpus" in call.words):
                written[option] = self.target(sorted(read), written)
        for option, name in written.items():
            given += [option, name]
        out = draw.choice(sorted(read)) if draw.random() < 0.05 else None
        self.check(given, read, written, stdin, None if out == ARCHIVE else out)

    def target(self, read: list[str], others: dict[str, str]) -> str:
        """Where something goes: often where it must not."""
        draw = self.draw
        kind = draw.random()
        if kind < 0.45:
            base = draw.choice(read)
            name = draw.choice(aliases(base, self.folder))
            return f"{name}/{draw.choice(['words.bin', 'new'])}" if base == ARCHIVE else name
        if kind < 0.55 and others:
            return draw.choice(["", "./", "sub/../", "around/"]) + draw.choice(
                [*others.values()]
            ).removeprefix("/")
        if kind < 0.6:
            return draw.choice(["/dev/null", "sub", ".", "no/where", "-", "around/new"])
        if kind < 0.7:
            dangling = self.folder / "dangling"
            if not dangling.is_symlink():
                dangling.symlink_to("far")
            return "dangling"
        return draw.choice(["new", "./new", "sub/new", "other.html"])

    def check(
        self,
        given: list[str],
        read: set[str],
        written: dict[str, str],
        stdin: str | None,
        out: str | None,
    ) -> None:
        before = contents(self.folder)
        raw = None if stdin is None else before[stdin]
        with ExitStack() as streams:
            for number, name in ((0, stdin), (1, out)):
                if name is not None:
                    streams.enter_context(standing_for(number, self.folder / name))
            result = run(*given, stdin=raw)
            if out is not None:
                os.write(1, result.stdout_bytes)  # what a shell's >> would have made of it
        told = f"{given} < {stdin} >> {out}\n{result.stderr}"
        assert result.exception is None or isinstance(result.exception, SystemExit), told
        after = contents(self.folder)
        for name, content in before.items():
            if name in read or (name.startswith(f"{ARCHIVE}/") and ARCHIVE in read):
                assert after.get(name) == content, f"{name} was read and is changed: {told}"
        assert not [name for name in after if name.endswith(".tmp")], told
        if ARCHIVE in read:
            inside = [{n for n in one if n.startswith(f"{ARCHIVE}/")} for one in (before, after)]
            assert inside[0] == inside[1], f"there is more in what was read: {told}"
        if result.exit_code == 0:
            places = [os.path.realpath(name) for name in written.values() if name != "/dev/null"]
            files = [place for place in places if not place.endswith("/-")]
            assert len(set(files)) == len(files), f"written twice: {told}"
            assert all(os.path.exists(place) for place in files), told
        self.seen[f"exit {result.exit_code}"] += 1
        for fault in ("this is the file of", "is a folder, which is read", "goes to the file of"):
            self.seen[fault] += fault in result.stderr
        if after != before:
            self.seen["written"] += 1
            restore(self.folder, {n: c for n, c in before.items() if not n.startswith("hard-")})


@pytest.mark.slow
def test_two_thousand_calls_change_nothing_that_is_read(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # commands are put together once, and not for every call: that takes half of the time
    monkeypatch.setattr("typer.testing._get_command", cache(get_command), raising=False)
    caller = Caller(world, seed=19)
    for _ in range(CALLS_IN_ALL):
        caller.one()
    # all kinds of calls were among them
    assert caller.seen["exit 0"] > CALLS_IN_ALL / 5
    assert caller.seen["written"] > CALLS_IN_ALL / 10
    assert caller.seen["this is the file of"] > CALLS_IN_ALL / 10
    assert caller.seen["is a folder, which is read"] > 5
    assert caller.seen["goes to the file of"] > 10
