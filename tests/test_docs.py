"""The Python blocks of README.md and docs/ run, and give what their comments say.

All blocks of one page share a namespace, in order. ``expression  # → value`` is checked: the value
is compared as text, or, if both are numbers, to as many digits as the page shows. A shell block
with a text block after it is run as well, and must print that text.
"""

from __future__ import annotations

import ast
import os
import re
import runpy
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
INSIDE = r"((?:(?!```).*\n)*)"  # never beyond the end of a block
COMMAND = re.compile(rf"^```sh\n{INSIDE}```\n\n```text\n{INSIDE}```", re.MULTILINE)
PROMISE = re.compile(r"\s*# → (.*)$")


def blocks(page: Path) -> list[str]:
    """Each block, after as many empty lines as stand before it, so that errors name the line."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text[: m.start(1)].count("\n") + m[1] for m in BLOCK.finditer(text)]


def run(block: str, page: str, names: dict[str, Any]) -> None:
    lines = block.splitlines()
    for statement in ast.parse(block, page).body:
        promise = PROMISE.search(lines[(statement.end_lineno or 1) - 1])
        if promise and isinstance(statement, ast.Expr):
            got = eval(
                compile(ast.Expression(statement.value), page, "eval", dont_inherit=True), names
            )
            assert agrees(got, promise[1]), f"{page}:{statement.lineno}: {got!r}, not {promise[1]}"
        else:
            exec(compile(ast.Module([statement], []), page, "exec", dont_inherit=True), names)


def agrees(got: Any, said: str) -> bool:
    """Whether a value is what the page says, to the digits the page shows.

    >>> agrees(0.333333, "0.33"), agrees(0.34, "0.33"), agrees("abc", "'abc'")
    (True, False, True)
    """
    if str(got) == said or repr(got) == said:
        return True
    try:
        stated = float(said)
    except ValueError:
        return False
    digits = len(said.partition(".")[2])
    return abs(float(got) - stated) <= 0.501 * 10.0**-digits


def test_there_is_something_to_check() -> None:
    assert sum(len(blocks(page)) for page in PAGES) >= 10
    assert sum(block.count("# → ") for page in PAGES for block in blocks(page)) >= 10
    assert len(commands()) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    module = ModuleType("page")  # classes of a page can be pickled, as those of a file can
    monkeypatch.setitem(sys.modules, "page", module)
    names = vars(module)
    for block in blocks(page):
        if "import matplotlib" not in block or find_spec("matplotlib"):
            run(block, page.name, names)


def commands() -> list[tuple[str, str]]:
    """Commands on the pages, each with what it is said to print."""
    return [found for page in PAGES for found in COMMAND.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("command", "printed"), commands())
def test_command(command: str, printed: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    here = f'softcount() {{ "{sys.executable}" -m softcount "$@"; }}\n'
    here += f'dask() {{ exec "{sys.executable}" -m dask "$@"; }}\n'  # it is always run with &
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        command = command.replace("8786", str(free.getsockname()[1]))
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    got = subprocess.run(
        ["sh", "-c", here + command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert got.stdout == printed, got.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:  # an example whose corpus is not at hand says so, and leaves with 0
        said = capsys.readouterr().out
        if end.code or not said.startswith("skipped: "):
            raise
        pytest.skip(said.removeprefix("skipped: ").strip())


def test_a_wrong_promise_is_noticed() -> None:
    with pytest.raises(AssertionError, match="page:1: 2, not 3"):
        run("1 + 1  # → 3", "page", {})
