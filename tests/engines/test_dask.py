"""A cluster of Dask: what is in the folder, what may be lost, and whom it works with."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

import softcount as sc
from softcount.core.errors import SoftcountError
from softcount.core.fit import fit
from softcount.core.types import EStep
from softcount.engines import Dask, Local, arithmetic, folder
from softcount.engines import cluster as connections
from softcount.engines import dask as module
from softcount.engines.cluster import ArithmeticWarning, WaitingWarning
from softcount.engines.dask_tasks import forget
from tests.core.kills import in_child
from tests.engines import shards as work
from tests.engines.kills import end_everything, kill_workers
from tests.engines.programs import Programs, environment
from tests.engines.shards import VALUES, bits, figures
from tests.engines.test_processes import is_alive, posix
from tests.engines.test_same_bits import learn, topics
from tests.oracles import toy

pytest.importorskip("distributed")


@pytest.fixture
def client(cluster: Dask) -> Any:
    """A client of the cluster, as users have them."""
    with cluster.open([1, 2]) as session:
        return session._connection.client


@pytest.fixture
def engine(client: Any, tmp_path: Path) -> Dask:
    return Dask(client, folder=tmp_path)


def files(folder: Path) -> list[str]:
    """The files of the only session in a folder."""
    (session,) = folder.iterdir()
    return [str(path.relative_to(session)) for path in session.rglob("*") if path.is_file()]


# the folder
def test_the_folder_has_what_is_needed_and_no_more(engine: Dask, tmp_path: Path):
    with engine.open([np.full(4, x) for x in VALUES[:6]]) as session:

        def step(**params: Any) -> None:
            session.expect(work.keep_sum, params, EStep())

        def states() -> int:
            return sum(name.startswith("states") for name in files(tmp_path))

        fixed = np.ones(3)
        for n in range(3):
            step(x=np.full(2, float(n)), y=fixed)
            found = files(tmp_path)
            assert sum(name.startswith("shards") for name in found) == 6
            assert sum(name.startswith("params") for name in found) == 2
            assert states() == 6
        before = session.snapshot()
        step(x=fixed)
        step(x=fixed)
        assert states() == 12
        session.restore(before)
        del before
        step(x=fixed)
        assert states() == 6
        session.reset()
        session.expect(work.add_params, {}, EStep(score_only=True))
        assert states() == 0
        assert len(files(tmp_path)) == 6 + 1  # the shards, and the owner
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_kept_in_memory_is_read_again(client: Any, tmp_path: Path):
    engine = Dask(client, folder=tmp_path, memory=1)
    found, expected = (learn("topics", "accelerated", one) for one in (engine, None))
    assert figures(found) == figures(expected)


def test_states_that_cannot_be_files_are_an_error(engine: Dask):
    with engine.open([1, 2]) as session:
        with pytest.raises(SoftcountError, match="state that the E-step leaves") as caught:
            session.expect(work.keep_object, {}, EStep())
        assert "arrays" in caught.value.hint


@pytest.mark.parametrize("url", ["local://{}/with spaces", "file://{}"])
def test_the_folder_may_have_a_url(client: Any, tmp_path: Path, url: str):
    pytest.importorskip("fsspec")
    engine = Dask(client, folder=url.format(tmp_path))
    found, expected = (learn("topics", "accelerated", one) for one in (engine, None))
    assert figures(found) == figures(expected)
    assert not [*tmp_path.glob("**/softcount-session-*")]
    with pytest.raises(SoftcountError, match="Protocol not known"):
        Dask(client, folder="nope://somewhere").open([1, 2])
    with pytest.raises(SoftcountError, match=r"does not see the folder memory://"):
        Dask(client, folder="memory://of this process").open([1, 2])


def test_another_sees_the_same_folder(engine: Dask):
    """Two sessions in one folder do not get in each other's way."""
    with engine.open(VALUES) as one, engine.open(VALUES[::-1]) as other:
        for session in (one, other):
            session.expect(work.keep_row, {}, EStep())
        assert bits(one.states()[0]) == bits(other.states()[36])


def test_files_of_others_are_not_executed(engine: Dask, client: Any, tmp_path: Path):
    """Who can write into the folder can spoil what is learned, but not have anything executed."""
    mark = tmp_path.parent / "executed"
    with engine.open([np.full(4, x) for x in VALUES[:4]]) as session:
        session.expect(work.keep_sum, {}, EStep())
        shard = session._folder / "shards" / "2"
        good = shard.read_bytes()
        evil = [
            pickle.dumps(os.mkdir),
            b"",
            b"\xff" * 100,
            good[:-8],
            good.replace(b'"array', b'"arrax'),
        ]
        for name in ("os:mkdir", "antigravity:fly", "softcount.engines.local:_Spilled"):
            facts = {"structure": {"record": name, "fields": {"path": str(mark)}}, "order": {}}
            evil.append(save({}, {folder.KEY: json.dumps(facts)}))
        for content in evil:
            shard.write_bytes(content)
            client.run(forget, str(session._folder))
            with pytest.raises(SoftcountError, match=r"damaged|not a class of|not a record|not an"):
                session.expect(work.keep_sum, {}, EStep())
        assert not mark.exists()
        assert "antigravity" not in set().union(*client.run(modules).values())
        shard.write_bytes(good)
        client.run(forget, str(session._folder))
        session.expect(work.keep_sum, {}, EStep())


def modules() -> set[str]:
    return set(sys.modules)


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of file sizes")
def test_no_room_for_the_workers(engine: Dask, client: Any, tmp_path: Path):
    with engine.open(VALUES) as session, Local(1).open(VALUES) as here:
        session.expect(work.keep_row, {}, EStep())
        before = session.snapshot()
        client.run(limit_files, 100)
        try:
            with pytest.raises(SoftcountError, match=r"cannot write .*states") as caught:
                session.expect(work.keep_row, {}, EStep())
        finally:
            client.run(limit_files, None)
        assert "must have room" in caught.value.hint
        session.restore(before)
        for _ in range(2):
            here.expect(work.keep_row, {}, EStep())
        session.expect(work.keep_row, {}, EStep())
        assert bits(dict(session.states())) == bits(dict(here.states()))
        assert not [*tmp_path.rglob("*.tmp")]


def limit_files(size: int | None) -> None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def test_no_room_here(engine: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with engine.open(VALUES) as session:
        first = session.expect(work.add_params, {"x": np.ones(3)}, EStep())
        with monkeypatch.context() as patched:
            patched.setattr(folder, "save_file", fail)
            with pytest.raises(SoftcountError, match=r"cannot write .*No space left"):
                session.expect(work.add_params, {"x": np.zeros(3)}, EStep())
        again = session.expect(work.add_params, {"x": np.ones(3)}, EStep())
        assert again.score == first.score


# sums on the workers
def test_large_sums_are_taken_on_the_workers(engine: Dask, monkeypatch: pytest.MonkeyPatch):
    table = np.random.default_rng(0).normal(size=1 << 15) * 1e8
    items = [np.roll(table, n) for n in range(11)]
    with Local(1).open(items) as session:
        expected = session.expect(work.add_table, {}, EStep())
    with engine.open(items) as session:
        plain = session.expect(work.add_table, {}, EStep())
        received = session.moved[1]
        assert received > 2 * table.nbytes
        monkeypatch.setattr(module, "LARGE", 1)
        large = session.expect(work.add_table, {}, EStep())
        assert table.nbytes < session.moved[1] - received < 2 * table.nbytes
    assert bits(plain.counts) == bits(large.counts) == bits(expected.counts)


def test_fits_with_sums_on_the_workers(engine: Dask, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LARGE", 1)
    for model, learner in (("topics", "accelerated"), ("coins", "draws")):
        assert figures(learn(model, learner, engine)) == figures(learn(model, learner, None))
    params = {"which": np.array(3.0), "kind": np.array(0)}
    with engine.open([float(n) for n in range(9)]) as session:
        with pytest.raises(sc.errors.ImpossibleItem, match="item 7"):
            session.expect(work.fail, params, EStep())
        assert session.expect(work.weigh, {}, EStep()).log_likelihood == 36


# what may be lost
def kill_at_random(client: Any, pids: list[int], until: threading.Event, times: int) -> None:
    """SIGKILL for workers at random moments."""
    rng = random.Random(1)
    for _ in range(times):
        if until.wait(rng.uniform(0.1, 1.5)):
            return
        with warnings.catch_warnings():
            alive = [pid for pid in client.run(os.getpid, on_error="ignore").values() if pid]
        if alive:
            pid = rng.choice(alive)
            pids.append(pid)
            os.kill(pid, signal.SIGKILL)


@posix
@pytest.mark.filterwarnings("ignore::softcount.engines.cluster.WaitingWarning")
@pytest.mark.parametrize("large", [False, True])
def test_workers_may_be_killed_at_any_moment(
    engine: Dask, client: Any, monkeypatch: pytest.MonkeyPatch, large: bool
):
    if large:
        monkeypatch.setattr(module, "LARGE", 1)
    core, corpus = topics()

    def learn(engine: Any, on_step: Any = ()) -> Any:
        start = toy.random_start(core)
        learner = sc.EM(max_iter=8, tol=0.0)
        return fit(core, corpus, learner, engine, init=start, on_step=on_step)

    expected = learn(None)
    killed: list[int] = []
    done = threading.Event()
    killer = threading.Thread(target=kill_at_random, args=(client, killed, done, 2))
    killer.start()
    try:
        # steps that take long enough for something to happen in them
        found = learn(engine, lambda state: time.sleep(0.2))
    finally:
        done.set()
        killer.join()
    assert killed
    assert figures(found) == figures(expected)


@posix
@pytest.mark.filterwarnings("ignore::softcount.engines.cluster.WaitingWarning")
def test_states_survive_all_workers(engine: Dask, client: Any):
    with engine.open(VALUES) as session:
        session.expect(work.keep_row, {}, EStep())
        states = bits(dict(session.states()))
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        session.expect(work.keep_row, {}, EStep(score_only=True))
        assert bits(dict(session.states())) == states
        with Local(1).open(VALUES) as here:
            here.restore(session.states())
            one, other = (s.expect(work.keep_row, {}, EStep()) for s in (here, session))
        assert bits(one.score) == bits(other.score)


@pytest.fixture
def programs() -> Iterator[Programs]:
    with Programs() as started:
        yield started


@pytest.mark.filterwarnings("ignore::softcount.engines.cluster.WaitingWarning")
def test_everything_may_go_and_come_back(programs: Programs, tmp_path: Path):
    """Workers that come late, a scheduler that is killed and started again."""
    programs.start_scheduler()
    engine = Dask(programs.address, folder=tmp_path, patience=120)
    with engine.open(VALUES) as session, Local(1).open(VALUES) as here:
        programs.start_worker()

        def step() -> tuple[Any, Any]:
            return tuple(bits(s.expect(work.keep_row, {}, EStep()).score) for s in (session, here))

        one, other = step()
        assert one == other
        programs.kill(programs.schedulers)
        programs.kill(programs.workers)
        programs.start_scheduler()
        programs.start_worker()
        one, other = step()
        assert one == other
        # one that comes later gets work as well
        programs.start_worker()
        wait = {"seconds": np.array(0.05)}
        deadline = time.monotonic() + 120
        while len(set(session._homes.values())) < 2 and time.monotonic() < deadline:
            session.expect(work.doze, wait, EStep())
        assert len(set(session._homes.values())) == 2
    assert list(tmp_path.iterdir()) == []


def test_no_workers_is_an_error_in_the_end(programs: Programs, tmp_path: Path):
    programs.start_scheduler()
    engine = Dask(programs.address, folder=tmp_path, patience=2)
    with (
        engine.open(VALUES) as session,
        pytest.warns(WaitingWarning, match="up to 2 seconds"),
        pytest.raises(SoftcountError, match=f"{programs.port} has had no workers"),
    ):
        session.expect(work.weigh, {}, EStep())


@posix
def test_ctrl_c_stops_after_the_step(engine: Dask, tmp_path: Path):
    core, corpus = topics()
    learner = sc.EM(max_iter=6, tol=0.0)

    def press(state: Any) -> None:
        if state.step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    start = toy.random_start(core)
    with pytest.warns(sc.errors.StoppedWarning, match="after 2 steps"):
        found = fit(core, corpus, learner, engine, init=start, on_step=press)
    assert found.verdict is sc.Verdict.INTERRUPTED
    expected = fit(core, corpus, sc.EM(max_iter=2, tol=0.0), init=start)
    assert bits(dict(found.params)) == bits(dict(expected.params))
    assert figures(fit(core, corpus, learner, engine, init=start)) == figures(
        fit(core, corpus, learner, init=start)
    )


@posix
def test_a_second_ctrl_c_leaves_at_once(programs: Programs, tmp_path: Path):
    programs.start_scheduler()
    programs.start_worker()
    script = f"""
import sys, time
import softcount as sc
from softcount.core import interrupt
from softcount.core.types import EStep
from tests.engines import shards as work
engine = sc.Dask({programs.address!r}, folder={str(tmp_path)!r})
with interrupt.graceful(), engine.open([1, 2]) as session:
    session.expect(work.weigh, {{}}, EStep())
    print("begins", flush=True)
    session.expect(work.doze, {{"seconds": 600.0}}, EStep())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    for _ in range(2):
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
    assert process.wait(60) not in (0, None)
    assert list(tmp_path.iterdir()) == []


def test_a_client_that_is_closed_in_the_middle(client: Any, tmp_path: Path):
    from distributed import Client

    with Client(client.scheduler.address, set_as_default=False) as own:
        core, corpus = topics()
        start = toy.random_start(core)

        def close(state: Any) -> None:
            if state.step == 2:
                own.close()

        with pytest.raises(SoftcountError, match="client of the cluster has been closed"):
            fit(core, corpus, sc.EM(), Dask(own, folder=tmp_path), init=start, on_step=close)
    assert list(tmp_path.iterdir()) == []


@posix
def test_forks_are_told(engine: Dask, tmp_path: Path):
    with engine.open(VALUES) as session:
        session.expect(work.weigh, {}, EStep())

        def ask() -> str:
            try:
                session.expect(work.weigh, {}, EStep())
            except SoftcountError as error:
                session.close()
                return error.message
            return "it worked"

        assert "opened by another process" in str(in_child(ask))
        assert session.expect(work.weigh, {}, EStep(), [3]).log_likelihood == VALUES[3]


@posix
def test_a_few_kills():
    """`python -m tests.engines.kills` does it thirty times for each of eight models."""
    with tempfile.TemporaryDirectory() as place, Programs() as programs:
        programs.start_scheduler()
        programs.start_worker()
        programs.start_worker()
        _, same = kill_workers("lda", 2, programs, Path(place))
        assert same == 2
        assert end_everything("story", 1, Path(place))[1] == 1


# whom it works with
def test_other_versions_are_refused(engine: Dask, monkeypatch: pytest.MonkeyPatch):
    mine = {**arithmetic.versions(), "numpy": "0.1"}
    monkeypatch.setattr(arithmetic, "versions", lambda: mine)
    with pytest.raises(
        SoftcountError, match=rf"worker tcp://.* has numpy {np.__version__}, not 0.1"
    ):
        engine.open([1, 2])


def test_other_arithmetic_is_said(
    client: Any, engine: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mine = {**arithmetic.fingerprint(), "exp": "0", "matrix product": "0"}
    monkeypatch.setattr(arithmetic, "fingerprint", lambda: mine)
    with pytest.warns(ArithmeticWarning, match=r"worker tcp://\S+ computes exp, matrix product "):
        engine.open([1, 2]).close()
    (tmp_path / "more").mkdir()
    strict = Dask(client, folder=tmp_path / "more", strict=True)
    with pytest.raises(SoftcountError, match="computes exp, matrix product differently"):
        strict.open([1, 2])


def test_fingerprints_see_a_last_bit(monkeypatch: pytest.MonkeyPatch):
    before = arithmetic.fingerprint()
    usual = np.log
    monkeypatch.setattr(np, "log", lambda x: np.nextafter(usual(x), x.dtype.type(9)))
    after = arithmetic.fingerprint()
    assert {name for name in before if before[name] != after[name]} == {"log", "log in float32"}


def test_a_folder_that_workers_do_not_see(engine: Dask, monkeypatch: pytest.MonkeyPatch):
    card = {"versions": arithmetic.versions(), "arithmetic": {}, "sees": False}
    monkeypatch.setattr(connections, "greet", lambda path: card)
    with pytest.raises(SoftcountError, match="does not see the folder"):
        engine.open([1, 2])


def test_a_worker_without_softcount(engine: Dask, monkeypatch: pytest.MonkeyPatch):
    def lacking(path: str) -> Any:
        raise ModuleNotFoundError("No module named 'softcount'")

    monkeypatch.setattr(connections, "greet", lacking)
    with pytest.raises(SoftcountError, match="cannot run softcount: No module named") as caught:
        engine.open([1, 2])
    assert "install" in caught.value.hint


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "at least one"),
        ({"address_or_client": "tcp://127.0.0.1:1"}, "need a folder"),
        ({"address_or_client": "tcp://127.0.0.1:1", "folder": ".", "workers": 2}, "has its own"),
    ],
)
def test_settings_that_do_not_go_together(settings: dict[str, Any], message: str):
    with pytest.raises(SoftcountError, match=message):
        Dask(**settings)


def test_what_is_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import dask

    with pytest.raises(SoftcountError, match="does not exist"):
        Dask("tcp://127.0.0.1:1", folder=tmp_path / "nowhere").open([1, 2])
    with pytest.raises(SoftcountError, match="neither the address of a scheduler nor a client"):
        Dask(3, folder=tmp_path).open([1, 2])
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}),
        pytest.raises(SoftcountError, match=r"no scheduler at tcp://127\.0\.0\.1:1"),
    ):
        Dask("tcp://127.0.0.1:1", folder=tmp_path).open([1, 2])
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SoftcountError, match="needs the package distributed") as caught:
        Dask(workers=2).open([1, 2])
    assert "pip install" in caught.value.hint


def test_engines_can_be_copied_and_pickled(engine: Dask, cluster: Dask):
    assert deepcopy(engine) is engine
    there = pickle.loads(pickle.dumps(engine))
    assert there.address_or_client == engine.address_or_client.scheduler.address
    assert there.folder == engine.folder
    assert (cluster.threads, engine.threads) == (2, None)


def test_the_cluster_is_out_of_the_way(cluster: Dask, client: Any):
    """It is not the program's default client, and Ctrl-C in a terminal does not reach workers."""
    import distributed

    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()
    if hasattr(os, "getpgid"):
        groups = {os.getpgid(pid) for pid in client.run(os.getpid).values()}
        assert os.getpgid(0) not in groups


@pytest.mark.slow
def test_a_cluster_of_one_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = Dask(workers=1)
    assert figures(learn("coins", "batch", engine)) == figures(learn("coins", "batch", None))
    with engine.open([1, 2]) as session:
        (pid,) = session._connection.client.run(os.getpid).values()
        assert len(list(tmp_path.iterdir())) == 1
    engine.close()
    assert not is_alive(pid)
    assert list(tmp_path.iterdir()) == []
