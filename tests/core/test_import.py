"""What ``import softcount`` and ``--help`` bring in: next to nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import softcount
from softcount import samples

HEAVY = ("numba", "scipy", "sklearn", "safetensors", "matplotlib", "dask")


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stderr.split())


HELP = "sys.argv = ['softcount', '--help']\nimport softcount.cli\n" + (
    "try: softcount.cli.main()\nexcept SystemExit: pass"
)


@pytest.mark.parametrize("code", ["import softcount", HELP], ids=["import", "help"])
def test_nothing_heavy_is_imported(code: str) -> None:
    loaded = modules_after(code)
    assert "softcount" in loaded
    assert not loaded & set(HEAVY)


COMMANDS = {
    "align": "align pairs.txt --max-iter 2",
    "tag": "tag sentences.txt -k 3 --max-iter 2",
    "grammar": "grammar sentences.txt -k 3 --max-iter 1",
    "cluster": "cluster notes.txt -k 2 --max-iter 2",
    "topics": "topics notes.txt -k 2 --max-iter 2",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_need_no_scikit_learn_do_not_import_it(command: str) -> None:
    name, file, *options = COMMANDS[command].split()
    argv = ["softcount", name, str(Path(samples.__file__).with_name(file)), *options]
    run = f"sys.argv = {argv!r}\nimport softcount.cli\n"
    loaded = modules_after(run + "try: softcount.cli.main()\nexcept SystemExit: pass")
    assert "numba" in loaded
    assert "sklearn" not in loaded


def test_import_alone_does_not_even_need_numpy() -> None:
    assert "numpy" not in modules_after("import softcount")


@pytest.mark.parametrize("command", ["", "cluster", "tag"])
def test_help_needs_neither_numpy_nor_other_commands(command: str) -> None:
    wanted = HELP.replace("'--help'", f"*{command.split()!r}, '--help'")
    loaded = modules_after(wanted)
    assert "numpy" not in loaded
    commands = {name for name in loaded if name.endswith(".command") and "cli" not in name}
    assert len(commands) <= bool(command)


def test_every_public_name_is_there() -> None:
    names = dir(softcount)
    assert len(names) <= 60
    for name in names:
        found = getattr(softcount, name)
        for inner in dir(found) if isinstance(found, ModuleType) else ():
            assert getattr(found, inner) is not None, (name, inner)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = softcount.nonsense
