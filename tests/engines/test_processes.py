"""Worker processes: how they start and end, Ctrl-C, and what cannot be saved when one is killed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softcount.core import interrupt
from softcount.core.errors import SoftcountError
from softcount.core.types import EStep
from softcount.engines import Local, Processes
from softcount.engines import processes as module
from softcount.engines.local import LocalSession
from tests.engines import shards as work
from tests.engines.programs import environment
from tests.engines.shards import VALUES, bits, codes

posix = pytest.mark.skipif(os.name == "nt", reason="needs signals")


def pids(engine: Processes) -> set[int]:
    """The processes of its pool."""
    return {worker._process.pid for worker in module._pool(engine.workers or 1).workers.values()}


def is_alive(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert holds()


# how they start and end
def test_workers_are_shared_and_end_when_told():
    engine = Processes(1)
    with engine.open([1, 2]) as session:
        session.expect(work.weigh, {}, EStep())
        first = pids(engine)
        with deepcopy(engine).open([1, 2]) as other:
            other.expect(work.weigh, {}, EStep())
        engine.close()  # not while a session is open
        assert session.expect(work.weigh, {}, EStep()).log_likelihood == 3
    with engine.open([1, 2]) as session:
        session.expect(work.weigh, {}, EStep())
    assert pids(engine) == first
    assert all(map(is_alive, first))
    engine.close()
    assert not any(map(is_alive, first))


def test_workers_end_some_time_after_they_were_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module._Pool, "idle", 0.05)
    engine = Processes(1)
    with engine.open([1, 2]) as session:
        session.expect(work.weigh, {}, EStep())
        first = pids(engine)
    wait_until(lambda: not any(map(is_alive, first)))
    with engine.open([1, 2]) as session:
        assert session.expect(work.weigh, {}, EStep()).log_likelihood == 3
    engine.close()


def test_a_single_shard_stays_here():
    with Processes(2).open(VALUES[:1], threads_inside=True) as session:
        assert isinstance(session, LocalSession)
        (told,) = session.map(work.tell, {}, EStep())
    assert (told["process"], told["threads"]) == (os.getpid(), 2)


def test_threads_inside_are_per_worker(processes: Processes):
    engine = Processes(2, threads_per_worker=3)
    assert (engine.threads, processes.threads) == (6, 2)
    with engine.open([1, 2], threads_inside=True) as session:
        assert {told["threads"] for told in session.map(work.tell, {}, EStep())} == {3}
    with engine.open([1, 2]) as session:
        assert {told["threads"] for told in session.map(work.tell, {}, EStep())} == {1}


@pytest.mark.parametrize("settings", [{"workers": 0}, {"threads_per_worker": 0}])
def test_no_workers_is_an_error(settings: dict[str, int]):
    with pytest.raises(SoftcountError, match="at least one"):
        Processes(**settings)


def test_engines_can_be_pickled():
    assert pickle.loads(pickle.dumps(Processes(3))) == Processes(3)


def test_a_worker_that_cannot_start_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(module, "START", "raise SystemExit('no such luck')")
    monkeypatch.setattr(module, "_pools", {})
    with (
        Processes(2).open([1, 2]) as session,
        pytest.raises(SoftcountError, match="ended at its start"),
    ):
        session.expect(work.weigh, {}, EStep())
    module._end_pools()
    assert "no such luck" in capfd.readouterr().err


def test_parts_of_results_move_as_blocks(processes: Processes):
    """A worker adds up its shards: two sums for 64 shards, and the shards themselves only once."""
    table = np.ones(1 << 15)
    with processes.open([table + n for n in range(64)]) as session:
        session.expect(work.add_table, {}, EStep())
        sent, received = session.moved
        assert 64 * table.nbytes < sent < 65 * table.nbytes
        assert 2 * table.nbytes < received < 3 * table.nbytes
        session.expect(work.add_table, {}, EStep())
        assert session.moved[0] - sent < table.nbytes


@posix
def test_workers_end_with_the_process_that_started_them(tmp_path: Path):
    """Even if that is killed while they are at work."""
    script = (
        "import os, sys, numpy as np\n"
        "from softcount.engines import Processes\n"
        "from softcount.core.types import EStep\n"
        "from tests.engines import shards as work\n"
        "from tests.engines.test_processes import pids\n"
        "engine = Processes(2)\n"
        "with engine.open([1, 2]) as session:\n"
        "    session.expect(work.weigh, {}, EStep())\n"
        "    print(*pids(engine), flush=True)\n"
        "    session.expect(work.doze, {'seconds': np.array(600.0)}, EStep())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(), stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        workers = [int(pid) for pid in process.stdout.readline().split()]
        assert len(workers) == 2
        time.sleep(0.2)
        process.kill()
    wait_until(lambda: not any(map(is_alive, workers)))


SCRIPT = '''
from dataclasses import dataclass
import numpy as np
import softcount as sc
from softcount.core.fit import fit
from softcount.core.types import EStep, Stats
from softcount.engines import Dask, Local, Processes
from softcount.families import Categorical

print("the script runs")

class Faces(sc.Model):
    """A model of the script's own."""

    name = "faces"

    def __init__(self):
        self.families = {"face": Categorical((1, 2))}

    def expect(self, params, shard, how, local=None):
        counts = np.array([[shard.count("H"), shard.count("T")]], float)
        total = float((counts * np.log(params["face"])).sum())
        note = Note(len(shard)) if STATES else None
        return Stats({"face": counts}, total, total, 1, len(shard), local=note)

@dataclass
class Note:
    length: int

STATES = True

class Throws(list):
    def shards(self, batch_size, seed):
        return list(self)

data, start = Throws(["HHT", "TT", "HTHTH"]), {"face": np.array([[0.5, 0.5]])}
for engine in ENGINES:
    STATES = not isinstance(engine, Dask)  # whose states are files, of classes of modules
    found = fit(Faces(), data, sc.EM(max_iter=3), engine, init=start)
    print(found.params["face"].tolist())
'''


@posix
def test_a_script_needs_no_guard_and_may_define_its_model(tmp_path: Path):
    engines = ["Local(1)", "Processes(2)"] + ["Dask(workers=1)"] * bool(find_spec("distributed"))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("ENGINES", f"[{', '.join(engines)}]"))
    done = subprocess.run(
        [sys.executable, script], env=environment(), capture_output=True, text=True, timeout=300
    )
    said = done.stdout.splitlines()
    assert said[0] == "the script runs", done.stderr
    assert said[1:] == ["[[0.5, 0.5]]"] * len(engines)
    assert done.stderr == ""


# what is lost
@posix
def test_a_state_that_is_lost_is_an_error(processes: Processes):
    with processes.open(VALUES) as session:
        session.expect(work.count_visits, {}, EStep())
        os.kill(min(pids(processes)), signal.SIGKILL)
        with pytest.raises(SoftcountError, match="state of shard") as caught:
            session.expect(work.count_visits, {}, EStep())
        assert "checkpoint" in caught.value.hint
        session.restore(dict.fromkeys(range(37), 5))  # from a checkpoint
        assert session.expect(work.count_visits, {}, EStep()).score == 37 * 5


@posix
def test_a_killed_worker_without_states_is_replaced_between_calls(processes: Processes):
    with processes.open(VALUES) as session:
        expected = bits(session.expect(work.weigh, {}, EStep()).log_likelihood)
        for pid in pids(processes):
            os.kill(pid, signal.SIGKILL)
            assert bits(session.expect(work.weigh, {}, EStep()).log_likelihood) == expected
            assert not is_alive(pid)  # not even a zombie


@posix
def test_states_of_a_snapshot_are_lost_with_their_worker(processes: Processes):
    with processes.open(VALUES) as session:
        session.expect(work.count_visits, {}, EStep())
        before = session.snapshot()
        session.reset()
        for pid in pids(processes):
            os.kill(pid, signal.SIGKILL)
        assert session.expect(work.count_visits, {}, EStep()).score == 0
        session.restore(before)
        with pytest.raises(SoftcountError, match="state of shard 0"):
            session.expect(work.count_visits, {}, EStep())
        with pytest.raises(SoftcountError, match="state of shard 0"):
            session.states()


def test_workers_keep_as_many_states_as_are_asked_for(processes: Processes):
    """Whatever was asked for in between: what a session has elsewhere does not grow."""
    with processes.open(VALUES) as session:

        def kept() -> list[int]:
            return list(session.map(work.count_states, {}, EStep()))

        for _ in range(3):
            session.expect(work.count_visits, {}, EStep())
            assert kept() == [1] * 37
        before = session.snapshot()
        for _ in range(3):
            session.expect(work.count_visits, {}, EStep())
            assert kept() == [2] * 37
        session.restore(before)
        assert kept() == [1] * 37
        session.reset()
        del before
        assert kept() == [0] * 37
        assert len(session._alive) == len(session._homes) == 0


# Ctrl-C
@pytest.fixture
def ctrl_c() -> Any:
    """Ctrl-C does what it usually does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press(seconds: float, pids: set[int]) -> threading.Thread:
    """Ctrl-C in a terminal, after a while: all processes get it."""

    def signal_all() -> None:
        time.sleep(seconds)
        for pid in pids | {os.getpid()}:
            os.kill(pid, signal.SIGINT)

    thread = threading.Thread(target=signal_all)
    thread.start()
    return thread


@posix
def test_the_first_ctrl_c_ends_the_step(processes: Processes, ctrl_c: None):
    with interrupt.graceful(), processes.open([1, 2, 3]) as session:
        session.expect(work.weigh, {}, EStep())
        pressed = press(0.1, pids(processes))
        assert session.expect(work.doze, {"seconds": np.array(0.3)}, EStep()).items == 3
        pressed.join()
        assert interrupt.asked()
    interrupt._heard_at = -interrupt.SOON


@posix
def test_another_leaves_at_once(processes: Processes, ctrl_c: None):
    with processes.open([1, 2]) as session:
        session.expect(work.weigh, {}, EStep())
    before = pids(processes)
    pressed = press(0.2, before)
    with pytest.raises(KeyboardInterrupt), processes.open([1, 2]) as session:
        session.expect(work.doze, {"seconds": np.array(600.0)}, EStep())
    pressed.join()
    assert not any(map(is_alive, before))  # they were busy
    with processes.open([1, 2]) as session:
        assert session.expect(work.weigh, {}, EStep()).log_likelihood == 3


def test_work_that_is_given_up_ends_soon(processes: Processes, tmp_path: Path):
    """After an error in one shard, others that look for it stop."""
    params = {"mark": codes(tmp_path / "mark")}
    with processes.open(["slow", "fails"]) as session:
        session.expect(work.weigh_length, {}, EStep())
        with pytest.raises(FloatingPointError):
            session.expect(work.fail_or_wait, params, EStep(), [1, 0])
        assert session.expect(work.weigh_length, {}, EStep()).log_likelihood == 9
        assert (tmp_path / "mark").read_text() == "given up"


# forks
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_has_workers_of_its_own(processes: Processes):
    with processes.open([1, 2]) as session:
        session.expect(work.weigh, {}, EStep())
        mine = pids(processes)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with pytest.raises(SoftcountError, match="opened by another process"):
                    session.expect(work.weigh, {}, EStep())
                session.close()
                with processes.open([3, 4]) as own:
                    assert own.expect(work.weigh, {}, EStep()).log_likelihood == 7
                    assert not pids(processes) & mine
                processes.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert session.expect(work.weigh, {}, EStep()).log_likelihood == 3
        assert pids(processes) == mine


def test_local_does_the_same(processes: Processes):
    with Local(2).open(VALUES) as here, processes.open(VALUES) as there:
        for session in (here, there):
            told = session.map(work.tell, {}, EStep(), [3, 1])
            assert [answer["shard"] for answer in told] == [VALUES[3], VALUES[1]]
            assert dict(session.states()) == {}
