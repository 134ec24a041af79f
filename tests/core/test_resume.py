"""A fit that is cut off anywhere goes on from its folder, and learns the same bits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount.align.gibbs
import softcount.core.estimator
import softcount.core.fit
from softcount.core.fit import Run, fit
from softcount.core.folder import FitFolder
from tests.golden.cases import CASES, figures


class CutOff(BaseException):
    """What a kill looks like from inside."""


class Cutter:
    """Cuts a fit off at one of its E-steps or checkpoints, and counts what is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: float = np.inf
        self.events, self.marks, self.first_steps = 0, 0, list[int]()
        for name in ("_how", "mark", "stream"):
            self._watch(monkeypatch, name)
        original = Run.trace

        def traced(run: Run, start: Any) -> Any:
            states, first = original(run, start), True
            while True:
                try:
                    state = next(states)
                except StopIteration as end:
                    return end.value
                if first:
                    self.first_steps.append(state.step)
                    first = False
                yield state

        monkeypatch.setattr(Run, "trace", traced)

    def _watch(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        original = getattr(Run, name)

        def watched(run: Run, *args: Any, **given: Any) -> Any:
            done = original(run, *args, **given)
            if run.keeper is not None:
                self.marks += name == "mark"
                self.events += 1
                if self.events > self.left:
                    raise CutOff
            return done

        monkeypatch.setattr(Run, name, watched)


@pytest.fixture
def cutter(monkeypatch: pytest.MonkeyPatch) -> Cutter:
    return Cutter(monkeypatch)


@pytest.fixture
def in_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Callable[[], Any]], Any]:
    """A function that makes all outermost fits of a call write to one folder."""

    def call(work: Callable[[], Any]) -> Any:
        folder = FitFolder(tmp_path / "run", seconds=0)
        folder.open({"identity": {}}, {})
        depth = 0

        def fit_there(*args: Any, **given: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                if depth == 1:
                    given["folder"] = folder
                return fit(*args, **given)
            finally:
                depth -= 1

        with monkeypatch.context() as patched:
            patched.setattr(softcount.core.estimator, "fit", fit_there)
            patched.setattr(softcount.align.gibbs, "fit", fit_there)
            try:
                return work()
            finally:
                folder.close()

    return call


def comparable(found: dict[str, Any]) -> str:
    return json.dumps(found, sort_keys=True)


@pytest.mark.parametrize("name", CASES)
def test_cut_off_anywhere(
    name: str, cutter: Cutter, in_folder: Callable[[Callable[[], Any]], Any], tmp_path: Path
) -> None:
    whole = in_folder(lambda: figures(name))
    total, cutter.events = cutter.events, 0
    assert comparable(whole) == comparable(figures(name))
    if total < 2:
        return  # nothing to cut: no E-steps, as with Spectral()
    rng = random.Random(name)
    for path in sorted(tmp_path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    cutter.left, cutter.events = rng.randrange(1, total), 0
    with pytest.raises(CutOff):
        in_folder(lambda: figures(name))
    marked = cutter.marks
    cutter.left, cutter.first_steps = np.inf, []
    assert comparable(in_folder(lambda: figures(name))) == comparable(whole)
    if marked > 2:  # it did go on: the first step was not the start
        assert cutter.first_steps
