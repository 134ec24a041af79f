"""The folder of a fit: what is in it, what is refused, and what may go wrong without harm."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount import samples
from softcount.core import store
from softcount.core.errors import LearnerError, StoreError
from softcount.core.fit import Run
from softcount.core.folder import (
    CheckpointWarning,
    FitFolder,
    learn_stream,
    read_facts,
    resume,
)
from softcount.core.interrupt import StoppedWarning
from softcount.core.records import digest, pack, unpack
from softcount.engines import Local
from softcount.engines.local import LocalSession
from tests.core.kills import coins, in_child, kill_and_resume

NOTES = samples.notes()
STEPS = {"max_iter": 9, "tol": 0.0}


class Halt(Exception):
    pass


def halt_at(step: int) -> Any:
    def watch(state: Any) -> None:
        if state.step == step:
            raise Halt

    return watch


def model(**settings: Any) -> sc.MultinomialMixture:
    return sc.MultinomialMixture(3, learner=sc.EM(**STEPS), init="random", **settings)


def halted(path: Path, one: Any = None, data: Any = NOTES, step: int = 5) -> FitFolder:
    """A folder of a fit that ended at a step."""
    folder = FitFolder(path, steps=0)
    with pytest.raises(Halt):
        (one or model()).fit(data, folder=folder, on_step=halt_at(step))
    return folder


def checkpoints(path: Path) -> list[Path]:
    return sorted(path.glob("fit-0/run-0/checkpoint-*.record"))


def same_tables(a: Any, b: Any) -> bool:
    return all(np.array_equal(a.raw_params_[name], b.raw_params_[name]) for name in a.raw_params_)


def same(a: Any, b: Any) -> bool:
    return same_tables(a, b) and np.array_equal(a.trace_.objective, b.trace_.objective)


def test_resume_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    whole, path = model().fit(NOTES), tmp_path / "run"
    halted(path)
    steps: list[int] = []
    again = resume(path, on_step=lambda state: steps.append(state.step))
    assert same(again, whole)
    assert again.verdict_ is whole.verdict_
    assert min(steps) == 5  # step 5 was not marked any more
    assert same(resume(path), whole)  # what has ended is only read
    loaded = sc.load(path / "model.softcount")
    assert np.array_equal(loaded.predict(NOTES), whole.predict(NOTES))
    assert not checkpoints(path)
    assert read_facts(path)["model"] == "MultinomialMixture"


def test_another_engine_goes_on(tmp_path: Path) -> None:
    halted(tmp_path / "run")
    assert same(resume(tmp_path / "run", engine=Local(3)), model().fit(NOTES))


def test_the_size_is_bounded(tmp_path: Path) -> None:
    halted(tmp_path / "run", step=8)
    assert len(checkpoints(tmp_path / "run")) == 2


def test_time_between_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(Halt):
        model().fit(NOTES, folder=FitFolder(tmp_path / "run", seconds=3600), on_step=halt_at(8))
    assert not checkpoints(tmp_path / "run")
    assert same(resume(tmp_path / "run"), model().fit(NOTES))


def test_restarts_go_on_where_they_were(tmp_path: Path) -> None:
    many = {"learner": sc.EM(max_iter=4, tol=0.0, n_init=3), "init": "random"}
    whole = sc.MultinomialMixture(3, **many).fit(NOTES)
    seen = 0

    def watch(state: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 12:
            raise Halt

    with pytest.raises(Halt):
        sc.MultinomialMixture(3, **many).fit(
            NOTES, folder=FitFolder(tmp_path / "run", steps=0), on_step=watch
        )
    again = resume(tmp_path / "run")
    assert same(again, whole)
    assert [len(trace) for trace in again.fit_.traces] == [len(t) for t in whole.fit_.traces]


def test_kept_parameters_and_draws_come_back(tmp_path: Path) -> None:
    learner = sc.Gibbs(max_iter=8, n_init=2)
    gibbs = lambda: sc.MultinomialMixture(3, learner=learner)  # noqa: E731
    whole = gibbs().fit(NOTES, keep_params=True)
    folder = FitFolder(tmp_path / "run", steps=0)
    with pytest.raises(Halt):
        gibbs().fit(NOTES, keep_params=True, folder=folder, on_step=halt_at(7))
    again = resume(tmp_path / "run")
    assert same(again, whole)
    for chain, other in zip(whole.fit_.draws, again.fit_.draws, strict=True):
        for draw, another in zip(chain, other, strict=True):
            assert np.array_equal(draw["words"], another["words"])
    for params, others in zip(whole.trace_.params, again.trace_.params, strict=True):
        assert np.array_equal(params["words"], others["words"])
    assert again.fit_.diagnostics == whole.fit_.diagnostics


def test_theory_goes_on(tmp_path: Path) -> None:
    whole = model().fit(NOTES, theory=True)
    folder = FitFolder(tmp_path / "run", steps=0)
    with pytest.raises(Halt):
        model().fit(NOTES, theory=True, folder=folder, on_step=halt_at(4))
    again = resume(tmp_path / "run")
    assert np.array_equal(again.trace_.bound, whole.trace_.bound, equal_nan=True)
    assert np.array_equal(again.trace_.change, whole.trace_.change, equal_nan=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("name", ["lda", "hmm gibbs", "aligner", "story"])
def test_kill(name: str) -> None:
    assert kill_and_resume(name, kills=2) == (2, 2) or kill_and_resume(name, 3, seed=1)[1] == 3


def test_ctrl_c_leaves_a_checkpoint(tmp_path: Path) -> None:
    def interrupt(state: Any) -> None:
        if state.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    folder = FitFolder(tmp_path / "run", seconds=3600)
    with pytest.warns(StoppedWarning, match="softcount.resume"):
        early = model().fit(NOTES, folder=folder, on_step=interrupt)
    assert early.verdict_ is sc.Verdict.INTERRUPTED
    assert len(checkpoints(folder.place)) == 1
    steps: list[int] = []
    again = resume(folder.path, on_step=lambda state: steps.append(state.step))
    assert steps[0] == 4
    assert same(again, model().fit(NOTES))


@pytest.mark.parametrize("kind", ["lda", "vb", "ibm1", "aligner"])
def test_streams_go_on(kind: str, tmp_path: Path) -> None:
    data = samples.pairs() if kind in ("ibm1", "aligner") else NOTES
    blocks = [data[i : i + 12] for i in range(0, 48, 12)]
    make = {
        "lda": lambda: sc.LDA(3, learner=sc.OnlineEM(batch_size=5)),
        "vb": lambda: sc.LDA(3, learner=sc.StochasticVB(batch_size=5)),
        "ibm1": lambda: sc.align.IBM1(),
        "aligner": lambda: sc.Aligner("ibm1"),
    }[kind]
    *_, whole = learn_stream(make(), blocks, tmp_path / "whole")
    plain = make()
    for block in blocks:
        plain.partial_fit(block)
    for number, _ in enumerate(learn_stream(make(), blocks, tmp_path / "run")):
        if number == 1:
            break  # what has been learned is written
    *rest, again = learn_stream(make(), blocks, tmp_path / "run")
    assert len(rest) == 1
    (ended,) = learn_stream(make(), blocks, tmp_path / "run")  # there is nothing new in it
    assert same_tables(ended, again)
    for name in plain.raw_params_:
        assert np.array_equal(whole.raw_params_[name], plain.raw_params_[name])
        assert np.array_equal(again.raw_params_[name], plain.raw_params_[name])
    with pytest.raises(StoreError, match="other settings"):
        next(learn_stream(make().set_params(random_state=1), blocks, tmp_path / "run"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_streams_that_are_killed_go_on(seconds: float, tmp_path: Path) -> None:
    blocks = [NOTES[i % 40 : i % 40 + 12] for i in range(0, 400, 10)]

    def learn(folder: Path) -> str:
        *_, last = learn_stream(sc.LDA(3), iter(blocks), folder, seconds)
        return digest(dict(last.raw_params_))

    began = time.monotonic()
    wanted = in_child(lambda: learn(tmp_path / "whole"))
    duration = time.monotonic() - began
    assert wanted
    killed = 0
    for kill in range(4):
        folder = tmp_path / str(kill)
        killed += in_child(partial(learn, folder), (0.2 + 0.2 * kill) * duration) is None
        assert in_child(partial(learn, folder)) == wanted
    assert killed


def test_ctrl_c_stops_a_stream_after_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [NOTES[i : i + 12] for i in range(0, 48, 12)]
    make = lambda: sc.LDA(3, learner=sc.OnlineEM(batch_size=3))  # noqa: E731
    *_, whole = learn_stream(make(), blocks, tmp_path / "whole")
    seen, original = 0, Run.expect

    def expect(run: Run, *given: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == 7:  # in the second block
            os.kill(os.getpid(), signal.SIGINT)
        return original(run, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "expect", expect)
        with pytest.warns(StoppedWarning, match="after block 1"):
            stopped = list(learn_stream(make(), blocks, tmp_path / "run"))
    assert len(stopped) == 2
    *rest, again = learn_stream(make(), blocks, tmp_path / "run")
    assert len(rest) == 1
    assert same_tables(again, whole)


# what is refused


def test_another_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    halted(path)
    for other, data, word in (
        (model(smoothing=0.5), NOTES, "other settings"),
        (model(), NOTES[1:], "other data"),
        (sc.LDA(3), NOTES, "another model"),
    ):
        with pytest.raises(StoreError, match=word):
            other.fit(data, folder=path)
    with pytest.raises(StoreError, match="other options"):
        model().fit(NOTES, folder=path, keep_params=True)
    assert same(model().fit(NOTES, folder=path), model().fit(NOTES))


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match="not empty"):
        model().fit(NOTES, folder=tmp_path)
    assert os.listdir(tmp_path / ".") == ["letter.txt", ".lock"] or "letter.txt" in os.listdir(
        tmp_path
    )
    with pytest.raises(StoreError, match="holds no fit"):
        resume(tmp_path)
    with pytest.raises(StoreError, match="cannot make the folder"):
        model().fit(NOTES, folder=tmp_path / "letter.txt" / "run")


def test_seeds_that_cannot_be_repeated_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="continued from a seed"):
        model(random_state=np.random.default_rng(0)).fit(NOTES, folder=tmp_path / "run")


def test_two_processes_in_one_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path, refused = tmp_path / "run", []

    def watch(state: Any) -> None:
        if state.step == 2:
            with pytest.raises(StoreError, match="another process") as error:
                model().fit(NOTES, folder=FitFolder(path))
            refused.append(error)

    assert same(model().fit(NOTES, folder=path, on_step=watch), model().fit(NOTES))
    assert refused


def test_what_no_file_can_hold_must_be_given_again(tmp_path: Path) -> None:
    tosses = ["HHT", "TTT", "HHH"] * 9
    story = lambda: sc.StoryModel(coins, learner=sc.EM(**STEPS))  # noqa: E731
    halted(tmp_path / "run", story(), tosses)
    with pytest.raises(StoreError, match=r"'story'.*cannot be written"):
        resume(tmp_path / "run")
    assert same(resume(tmp_path / "run", story=coins), story().fit(tosses))

    class Item(str):
        __slots__ = ()

    halted(tmp_path / "odd", story(), [Item("HHT"), Item("TTT")])
    with pytest.raises(StoreError, match="no copy of the data"):
        resume(tmp_path / "odd", story=coins)


# what may go wrong


def test_a_damaged_checkpoint_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run"
    halted(path)
    newest = checkpoints(path)[-1]
    content = bytearray(newest.read_bytes())
    content[-9] ^= 1
    newest.write_bytes(content)
    with pytest.warns(CheckpointWarning, match="checksum"):
        again = resume(path)
    assert same(again, model().fit(NOTES))


def test_all_checkpoints_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "run"
    halted(path)
    for checkpoint in checkpoints(path):
        checkpoint.write_bytes(checkpoint.read_bytes()[:-9])
    with pytest.warns(CheckpointWarning, match="this run begins anew"):
        again = resume(path)
    assert same(again, model().fit(NOTES))


def test_a_full_disk_costs_nothing_but_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, is_full = tmp_path / "run", False
    write = store.write_whole

    def write_unless_full(target: Any, content: bytes) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(target, content)

    monkeypatch.setattr(store, "write_whole", write_unless_full)

    def watch(state: Any) -> None:
        nonlocal is_full
        is_full = state.step >= 4
        if state.step == 7:
            raise Halt

    with (
        pytest.warns(CheckpointWarning, match=r"No space left.*learning goes on"),
        pytest.raises(Halt),
    ):
        model().fit(NOTES, folder=FitFolder(path, steps=0), on_step=watch)
    is_full = False
    assert len(checkpoints(path)) == 2
    steps: list[int] = []
    assert same(resume(path, on_step=lambda state: steps.append(state.step)), model().fit(NOTES))
    assert steps[0] == 4


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of file sizes")
def test_no_room_in_the_middle_of_a_checkpoint(tmp_path: Path) -> None:
    """As above, but it is the system that refuses to write."""
    import resource

    folder = FitFolder(tmp_path / "run", steps=0)

    def learn() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)

        def watch(state: Any) -> None:
            if state.step in (4, 7):
                room = 1500 if state.step == 4 else limits[0]
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))

        with pytest.warns(
            CheckpointWarning, match=r"no checkpoint could be written.*learning goes"
        ):
            fitted = model().fit(NOTES, folder=folder, on_step=[watch, halt_after(7)])
        return str(fitted.verdict_)

    def halt_after(step: int) -> Any:
        return lambda state: state.step == step

    assert in_child(learn) == str(sc.Verdict.STOPPED)
    assert [path.name[:4] for path in folder.place.rglob("*.tmp")] == []
    assert same(resume(folder.path), model().fit(NOTES, on_step=halt_after(7)))


def test_ctrl_c_during_a_warm_up(tmp_path: Path) -> None:
    """What follows a warm-up that was cut short must not be gone on with."""
    pairs, aligner = samples.pairs(), lambda: sc.align.HMMAligner(warm_up=4, max_iter=4)
    whole, seen, original = aligner().fit(pairs), 0, Run.e_step

    def e_step(run: Run, tables: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return original(run, tables)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "e_step", e_step)
        with pytest.warns(StoppedWarning):
            aligner().fit(pairs, folder=FitFolder(tmp_path / "run", seconds=3600))
    again = resume(tmp_path / "run")
    assert same(again, whole)
    assert [len(trace) for trace in again.trace_.warm_up] == [5]


def test_states_that_no_file_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalSession, "states", lambda session: {0: object()})
    with pytest.warns(CheckpointWarning, match="no checkpoints") as caught:
        fitted = model().fit(NOTES, folder=FitFolder(tmp_path / "run", steps=0))
    assert len(caught) == 1
    assert same(fitted, model().fit(NOTES))


@pytest.mark.parametrize("name", ["fit.json", "settings.record", "data.record"])
def test_damaged_folders(tmp_path: Path, name: str) -> None:
    path = tmp_path / "run"
    halted(path)
    for content in (b"", b"{}", b"[1, 2]", b"\xff" * 50, (path / name).read_bytes()[:-20]):
        (path / name).write_bytes(content)
        with pytest.raises(StoreError):
            resume(path)


def test_no_file_can_have_something_executed(tmp_path: Path) -> None:
    """States of shards that are in temporary files are pickles: no checkpoint can name them."""
    mark = tmp_path / "executed"

    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(mark),)

    for name in (
        *("softcount.engines.local:_Spilled", "softcount.engines.local:LocalSession"),
        *("os:system", "subprocess:Popen", "softcount.core.folder:os.path.join"),
    ):
        arrays = {"main": np.frombuffer(pickle.dumps(Evil()), np.uint8)}
        fields = {"main": {"array": "main"}, "beside": None}
        with pytest.raises(StoreError, match=r"not an? (intact )?record|not a class of softcount"):
            unpack({"record": name, "fields": fields}, arrays)
    assert not mark.exists()
    assert unpack(*pack(np.arange(3))).tolist() == [0, 1, 2]
