"""What a fit says of itself in Python: `verbose`, and the log."""

from __future__ import annotations

import io
import logging
import sys
import types

import pytest

import softcount as sc
from softcount.core.progress import Display, Pace, heard_by, phase
from softcount.core.types import State

TEXTS = ["a b a", "b a b", "c d c", "d c d"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _state(step: int, seconds: float) -> State:
    return State(step, {}, -2.0, -2.0, 2.0, seconds, 0.1)


def test_it_is_silent_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    sc.MultinomialMixture(2).fit(TEXTS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "model",
    [sc.MultinomialMixture(2, verbose=1), sc.LDA(2, verbose=1), sc.HMM(2, verbose=1)],
    ids=lambda model: type(model).__name__,
)
def test_a_line_a_step(model: sc.LDA, capsys: pytest.CaptureFixture[str]) -> None:
    data = TEXTS if not isinstance(model, sc.HMM) else [text.split() for text in TEXTS]
    model.fit(data)
    told = capsys.readouterr().err.splitlines()
    steps = [line for line in told if " step " in line and "objective" in line]
    assert len(steps) == len(model.trace_)
    assert all(
        f"{state.objective:,.4f}" in line for line, state in zip(steps, model.trace_, strict=True)
    )
    assert str(model.verdict_) in told[-1]
    assert "\r" not in "".join(told)


def test_it_changes_nothing() -> None:
    one, other = (sc.MultinomialMixture(2, verbose=v).fit(TEXTS) for v in (0, 1))
    assert (one.raw_params_["words"] == other.raw_params_["words"]).all()
    assert one.signature_ == other.signature_


def test_a_terminal_gets_one_line() -> None:
    terminal = _Terminal()
    display = Display("HMM", 4, terminal)
    display.pace.most = 9
    with display, phase("2 short runs"):
        display(_state(0, 0.5))
    display.end(sc.Verdict.CONVERGED)
    assert "2 short runs" in terminal.getvalue()
    assert terminal.getvalue().count("\n") == 1
    assert terminal.getvalue().splitlines()[-1].startswith("HMM: converged")
    assert "\x1b" not in terminal.getvalue()  # which notebooks do not know


def test_a_notebook_gets_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = type("ZMQInteractiveShell", (), {})()
    here = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", here)  # type: ignore[arg-type]
    assert Display("HMM", 4, io.StringIO()).rewrites


def test_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "softcount")
    model = sc.MultinomialMixture(2, short_runs=2, init="random").fit(TEXTS)
    said = {(record.name, record.levelno): [] for record in caplog.records}
    for record in caplog.records:
        said[record.name, record.levelno].append(record.getMessage())
    phases = said["softcount", logging.INFO]
    assert {"counting words", "initial parameters", "2 short runs"} <= set(phases)
    assert phases[-1] == f"{model.signature_}: {model.verdict_}"
    assert len(said["softcount.steps", logging.DEBUG]) >= len(model.trace_)


def test_phases_end_with_errors() -> None:
    said: list[str] = []
    with heard_by(said.append):
        with pytest.raises(ValueError, match="it"), phase("reading"):
            raise ValueError("it")
        with phase("writing"):
            pass
    assert said == ["reading", "", "writing", ""]


def test_the_time_left_is_that_of_recent_steps() -> None:
    pace = Pace()
    assert pace.left(_state(1, 2.0)) == ""  # of how many is not known
    pace.most = 12
    for step in range(3):
        pace.note(_state(step, step))
    assert pace.left(_state(2, 2.0)) == "≤ 15 s left"
    assert pace.left(_state(12, 2.0)) == ""
