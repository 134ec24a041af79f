"""What all tests share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis
import pytest

from softcount.core import interrupt
from tests.adapt import reviews as adapted
from tests.commands import PETS, TECH, done
from tests.world import contents, make_world, restore


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes some seconds (run all the same)")
    # by default an example that takes 0.2 s fails, however busy the machine is
    hypothesis.settings.register_profile("untimed", deadline=None)
    hypothesis.settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def forgotten_interrupts() -> None:
    """Ctrl-C of another test just before is not the first of two."""
    interrupt._heard_at = -interrupt.SOON


# files for the commands
@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TECH + PETS) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    path = tmp_path / "labelled.tsv"
    path.write_text("tech\tApple iPod\npets\tcat dog\n\ntech\tiPhone\npets\tmouse\n")
    return path


@pytest.fixture
def points(tmp_path: Path) -> Path:
    path = tmp_path / "points.txt"
    path.write_text("0.1 0\n0 0.2\n\n9\t9.1\n9.2 9\n0.1\t0.2\n9 9\n")
    return path


@pytest.fixture
def archive(texts: Path, tmp_path: Path) -> Path:
    """The same texts in another order, on disk."""
    folder = tmp_path / "texts.archive"
    done("corpus", "build", texts, "-o", folder, "--shuffle", "1")
    return folder


# files for all commands
@pytest.fixture(scope="session")
def made_world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of `tests.world`, made once."""
    folder, here = tmp_path_factory.mktemp("made"), Path.cwd()
    try:
        os.chdir(folder)
        make_world(folder)
        return contents(folder)
    finally:
        os.chdir(here)


@pytest.fixture
def world(made_world: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with these files, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "sides", raising=False)  # imported from another one
    restore(tmp_path, made_world)
    return tmp_path


# files for adaptation
@pytest.fixture
def books(tmp_path: Path) -> Path:
    return adapted.books_in(tmp_path)


@pytest.fixture
def kitchen(tmp_path: Path) -> Path:
    return adapted.kitchen_in(tmp_path)


@pytest.fixture
def few(tmp_path: Path) -> Path:
    return adapted.few_in(tmp_path)


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return adapted.gold_in(tmp_path)
