"""Compiling does not count as a step's time, and is announced if it takes long."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

import softcount as sc
from softcount.kernels import compiling
from softcount.kernels.compiling import Progress
from softcount.mixture.core import MixtureCore


class FakeTime:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        time.sleep(0.001)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    made = FakeTime()
    monkeypatch.setattr(compiling, "time", made)
    monkeypatch.setattr(compiling, "_compiling", compiling._Compiling())
    return made


def test_the_clock_stands_still(fake: FakeTime) -> None:
    now = compiling._compiling
    began = compiling.clock()
    fake.now += 2.0
    now.begin("outer")
    fake.now += 5.0
    assert compiling.clock() - began == 2.0
    now.begin("inner")
    fake.now += 7.0
    now.end()
    assert compiling.clock() - began == 2.0
    now.end()
    fake.now += 1.0
    assert compiling.clock() - began == 3.0
    assert (now.progress().ready, now.progress().seconds) == (1, 12.0)


def test_compiling_is_not_a_part_of_a_step(fake: FakeTime, monkeypatch: pytest.MonkeyPatch) -> None:
    expect = MixtureCore.expect

    def slow(self: Any, *args: Any) -> Any:
        fake.now += 1.0
        compiling._compiling.begin("kernel")
        fake.now += 50.0
        compiling._compiling.end()
        return expect(self, *args)

    monkeypatch.setattr(MixtureCore, "expect", slow)
    model = sc.MultinomialMixture(2, max_iter=3, tol=0.0).fit(["a b", "b c", "x y"])
    assert list(model.trace_.seconds) == [1.0] * 4


@pytest.fixture
def told(fake: FakeTime) -> Iterator[list[Progress]]:
    heard: list[Progress] = []
    with compiling.listen(heard.append):
        yield heard


def wait_for(heard: list[Progress]) -> None:
    most = time.monotonic() + 20.0
    while not heard and time.monotonic() < most:
        time.sleep(0.01)


def test_what_takes_long_is_announced(
    fake: FakeTime, told: list[Progress], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "softcount")
    compiling._compiling.begin("forward")
    fake.now += 4.0
    wait_for(told)
    compiling._compiling.end()
    assert told[0] == Progress("forward", 0, 4.0)
    assert told[-1] == Progress("", 1, 4.0)
    assert [record.getMessage() for record in caplog.records] == [str(told[0])]


def test_what_takes_no_time_is_not(fake: FakeTime, told: list[Progress]) -> None:
    compiling._compiling.begin("forward")
    fake.now += 0.1
    time.sleep(0.05)
    compiling._compiling.end()
    assert not told
