"""Ctrl-C: the first keeps what was learned, the second leaves at once."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core import interrupt
from softcount.core.interrupt import StoppedWarning
from softcount.core.types import EStep, Stats
from softcount.core.verdict import Verdict
from softcount.engines import Local
from tests.commands import PETS, TECH, run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals")

TEXTS = [*TECH, *PETS] * 5
POINTS = np.random.default_rng(0).normal(size=(60, 2))
PAIRS = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")] * 4
VOTES = [(i, a, (i + a) % 2) for i in range(9) for a in range(3)]
which, flip = sc.table("which"), sc.table("flip")


@sc.story
def coins(tosses):
    for z in "AB":
        yield which[z], *(flip[z, x] for x in tosses)


@pytest.fixture(autouse=True)
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ctrl-C does what it usually does, and none came before."""
    monkeypatch.setattr(interrupt, "_heard_at", -interrupt.SOON)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press_at(step: int, times: int = 1) -> Callable[[Any], None]:
    """Ctrl-C, so often, when a state has come so far."""

    def watch(state: Any) -> None:
        if state.step == step:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    return watch


LONG = sc.EM(max_iter=10**9, tol=0)
FITS: dict[str, tuple[Any, Any]] = {
    "story": (sc.StoryModel(coins, learner=LONG), ["HHH", "TTH", "HTT"]),
    "mixture": (sc.MultinomialMixture(2, learner=LONG), TEXTS),
    "restarts": (
        sc.MultinomialMixture(2, learner=sc.EM(max_iter=10**9, tol=0, n_init=5), init="random"),
        TEXTS,
    ),
    "short_runs": (sc.MultinomialMixture(2, learner=LONG, short_runs=3, init="random"), TEXTS),
    "gaussian": (sc.GaussianMixture(2, learner=LONG), POINTS),
    "process": (
        sc.DirichletProcessMixture(4, learner=sc.VariationalBayes(max_iter=10**9, tol=0)),
        TEXTS,
    ),
    "plsa": (sc.PLSA(2, learner=LONG), TEXTS),
    "lda": (sc.LDA(2, learner=sc.VariationalBayes(max_iter=10**9, tol=0)), TEXTS),
    "online": (sc.LDA(2, learner=sc.OnlineEM(max_iter=10**9, tol=0, batch_size=4)), TEXTS),
    "gibbs": (sc.HMM(2, learner=sc.Gibbs(max_iter=10**5), smoothing=0.1), TEXTS),
    "collapsed": (sc.LDA(2, learner=sc.CollapsedGibbs(max_iter=10**5)), TEXTS),
    "hmm": (sc.HMM(2, learner=LONG), TEXTS),
    "pcfg": (sc.PCFG(2, 2, learner=LONG), TEXTS),
    "ibm1": (sc.align.IBM1(learner=LONG), PAIRS),
    "aligner": (sc.Aligner(learner=LONG), PAIRS),
    "annotators": (sc.Annotators(learner=LONG), VOTES),
}


@pytest.mark.parametrize("name", FITS)
def test_the_first_ends_the_run_after_its_step_and_keeps_the_model(name: str, tmp_path: Path):
    model, data = FITS[name]
    with pytest.warns(StoppedWarning, match="after 3 steps: the parameters of the last one"):
        model.fit(data, on_step=press_at(3))
    assert model.verdict_ is Verdict.INTERRUPTED
    assert not model.verdict_.good
    assert len(model.trace_) == 4
    assert model.raw_params_
    model.save(tmp_path / "model")


def test_what_is_kept_is_what_so_many_steps_give():
    stopped = sc.MultinomialMixture(2, learner=LONG)
    with pytest.warns(StoppedWarning):
        stopped.fit(TEXTS, on_step=press_at(3))
    whole = sc.MultinomialMixture(2, learner=sc.EM(max_iter=3, tol=0)).fit(TEXTS)
    for name, table in whole.params_.items():
        assert table.tobytes() == stopped.params_[name].tobytes()
    assert stopped.trace_.objective.tolist() == whole.trace_.objective.tolist()


@pytest.mark.parametrize("name", FITS)
def test_the_second_leaves_at_once_and_the_model_as_it_was(name: str):
    model, data = FITS[name]
    before = {name: id(value) for name, value in model.__dict__.items()}
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, on_step=press_at(2, times=2))
    assert {name: id(value) for name, value in model.__dict__.items()} == before


def test_two_in_a_row_leave_though_another_fit_has_begun():
    with pytest.warns(StoppedWarning):
        sc.MultinomialMixture(2, learner=LONG).fit(TEXTS, on_step=press_at(1))
    with pytest.raises(KeyboardInterrupt):
        sc.MultinomialMixture(2, learner=LONG).fit(TEXTS, on_step=press_at(1))


def test_a_handler_of_somebody_else_is_left_alone():
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    sc.MultinomialMixture(2, learner=sc.EM(max_iter=3, tol=0)).fit(TEXTS, on_step=press_at(1))
    assert pressed == [1]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_fit_as_ever():
    found = []
    thread = threading.Thread(target=lambda: found.append(sc.HMM(2).fit(TEXTS).verdict_))
    thread.start()
    thread.join()
    assert found


def test_a_warm_up_that_is_stopped_leaves_a_model(monkeypatch: pytest.MonkeyPatch):
    from softcount.align.core import IBM1Core

    usual = IBM1Core.expect

    def pressed(*args: Any, **settings: Any) -> Any:
        if not interrupt.asked():
            signal.raise_signal(signal.SIGINT)
        return usual(*args, **settings)

    monkeypatch.setattr(IBM1Core, "expect", pressed)
    with pytest.warns(StoppedWarning):
        aligner = sc.Aligner().fit(PAIRS)
    assert aligner.verdict_ is Verdict.INTERRUPTED
    assert len(aligner.align(PAIRS)) == len(PAIRS)


@pytest.mark.parametrize("threads", [1, 2])
def test_chains_of_links_that_are_stopped_keep_what_was_drawn(
    threads: int, monkeypatch: pytest.MonkeyPatch
):
    from softcount.align import gibbs as collapsed

    usual = collapsed.CollapsedAligner.sweep
    ready = threading.Event()

    def pressed(self: Any, *args: Any, **settings: Any) -> None:
        usual(self, *args, **settings)
        if not ready.is_set():
            ready.set()
            os.kill(os.getpid(), signal.SIGINT)
            while not interrupt.asked():
                time.sleep(0.001)

    monkeypatch.setattr(collapsed.CollapsedAligner, "sweep", pressed)
    with pytest.warns(StoppedWarning):
        aligner = sc.align.GibbsAligner(max_iter=10**6, kept=1, engine=Local(threads)).fit(PAIRS)
    assert aligner.verdict_ is Verdict.INTERRUPTED
    assert aligner.align([("a house", "ein haus")]) == [[(0, 0), (1, 1)]]


def test_numbers_of_classes_are_chosen_among_those_that_were_done():
    rows = []

    def watch(row: Any) -> None:
        rows.append(row)
        if row.k == 3:
            signal.raise_signal(signal.SIGINT)

    found = sc.select(sc.MultinomialMixture(), TEXTS, k=range(1, 9), on_fit=watch)
    assert [row.k for row in found.table] == [1, 2, 3]
    assert found.best.n_components == found.best_k


def test_cross_validation_that_is_stopped_leaves_a_model(monkeypatch: pytest.MonkeyPatch):
    labels = [0, -1, -1, 1, -1, -1] * 5
    usual = sc.NaiveBayesCV._accuracies
    calls = []

    def pressed(self: Any, *args: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return usual(self, *args)

    monkeypatch.setattr(sc.NaiveBayesCV, "_accuracies", pressed)
    with pytest.warns(StoppedWarning):
        model = sc.NaiveBayesCV().fit(TEXTS, labels)
    assert len(calls) == 2
    assert len(model.cv_scores_) == 1
    assert model.predict(PETS).shape == (3,)


LABELS = [0, -1, -1, 1, -1, -1]


def test_rounds_of_teaching_end(monkeypatch: pytest.MonkeyPatch):
    from softcount.labels.history import History

    usual = History.record

    def pressed(self: Any, *args: Any) -> None:
        usual(self, *args)
        if interrupt._listener and not interrupt.asked():  # not what History itself records
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(History, "record", pressed)
    rows = [{"one": text, "other": text} for text in TECH + PETS]
    both = sc.labels.CoTraining(views=["one", "other"], per_class=1)
    for model, data in ((both, rows), (sc.labels.SelfTraining(best=1), TECH + PETS)):
        interrupt._heard_at = -interrupt.SOON
        with pytest.warns(StoppedWarning, match="rounds: the labels given by then are kept"):
            model.fit(data, LABELS)
        assert model.verdict_ is Verdict.INTERRUPTED
        assert len(model.transduction_) == 6


def test_batches_that_come_bit_by_bit(monkeypatch: pytest.MonkeyPatch):
    from softcount.core import stream

    model = sc.LDA(2, learner=sc.OnlineEM(batch_size=5))
    usual = stream._update

    def pressed(*args: Any) -> Any:
        if not interrupt.asked():
            signal.raise_signal(signal.SIGINT)
        return usual(*args)

    monkeypatch.setattr(stream, "_update", pressed)
    with pytest.warns(StoppedWarning, match="after 1 of 6 mini-batches"):
        model.partial_fit(TEXTS)
    assert model.transform(TEXTS).shape == (30, 2)


# long work in compiled code
@pytest.mark.parametrize("threads", [1, 2])
def test_a_second_one_is_heard_within_a_shard(threads: int, monkeypatch: pytest.MonkeyPatch):
    """The main thread is free to hear while another one works, and tells it to give up."""
    ended = threading.Event()
    given_up = []

    def endless(params: Any, shard: Any, how: Any, local: Any) -> Stats:
        if how.temper == 1.0:  # the first time
            time.sleep(2 * interrupt.SLOW)
            return Stats({})
        try:
            if shard == 0:
                os.kill(os.getpid(), signal.SIGINT)
                while not interrupt.asked():
                    time.sleep(0.001)
                os.kill(os.getpid(), signal.SIGINT)
            for _ in range(6000):
                time.sleep(0.01)
                interrupt.check()
        except interrupt.GivenUp:
            given_up.append(shard)
            raise
        finally:
            ended.set()
        return Stats({})

    with interrupt.graceful(), Local(threads).open(range(threads)) as session:
        session.expect(endless, {}, EStep())
        with pytest.raises(KeyboardInterrupt):
            session.expect(endless, {}, EStep(temper=0.5))
    assert ended.wait(30)
    assert given_up


def test_errors_beside_come_through():
    def fails() -> None:
        raise FloatingPointError("as it is")

    with interrupt.graceful(), pytest.raises(FloatingPointError, match="as it is"):
        interrupt.beside(fails)


def test_grammars_give_up_between_sentences():
    """Sentences are parsed a few at a time; between batches, an interrupt is looked for."""
    from softcount.grammar.core import iterate_batches

    def work() -> None:
        for first, _ in iterate_batches(0, 100):
            if first == 32:
                interrupt._thread.given_up.set()
            assert first <= 32

    with interrupt.awaited() as heard:
        aside = heard(work)
        with pytest.raises(interrupt.GivenUp):
            aside()


# commands
COMMANDS = {
    "cluster": ["cluster", "-k", "2"],
    "topics": ["topics", "-k", "2"],
    "tag": ["tag", "-k", "2"],
    "grammar": ["grammar", "-k", "2"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_stopped_saves_and_answers(
    name: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from softcount.cli.frame import FitProgress

    monkeypatch.setattr(FitProgress, "__call__", lambda self, state: press_at(2)(state))
    saved = tmp_path / "saved"
    option = "--save"
    command = [*COMMANDS[name], "--max-iter", "100000", option, saved, texts]
    before = interrupt.times_asked()
    result = run(*command)
    assert result.exit_code == 0, result.stderr
    assert "softcount: warning: stopped by Ctrl-C after 2 steps" in result.stderr
    assert len(result.stdout.splitlines()) == 6
    assert sc.load(saved)
    assert interrupt.times_asked() == before + 1


def start(folder: Path, *command: str) -> tuple[subprocess.Popen[bytes], int]:
    """A command with a terminal for its stderr, so that it shows its progress."""
    ours, theirs = os.openpty()
    paths = os.pathsep.join(filter(None, ["src", os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-m", "softcount", *command],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": paths},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    return process, ours


def read_until(terminal: int, wanted: bytes) -> bytes:
    said, deadline = b"", time.monotonic() + 120
    while wanted not in said and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1.0)[0]:
            said += os.read(terminal, 1 << 16)
    assert wanted in said
    return said


@pytest.mark.slow
def test_the_exit_code_says_so_though_all_was_done(texts: Path, tmp_path: Path):
    saved = tmp_path / "saved"
    process, terminal = start(
        tmp_path,
        *("cluster", "-k", "2", "--max-iter", "100000000", "--tol", "0"),
        *("--save", str(saved), str(texts)),
    )
    with process:
        read_until(terminal, b"/100000000")
        process.send_signal(signal.SIGINT)
        said = read_until(terminal, b"the parameters of the last one")
        assert b"stopping after this step" in said
        assert process.stdout is not None
        assert len(process.stdout.read().splitlines()) == 6
        assert process.wait(60) == 130
    os.close(terminal)
    assert sc.load(saved)


@pytest.mark.slow
def test_two_leave_a_grammar_at_once(tmp_path: Path):
    """A step of this takes minutes; nobody waits for it."""
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(list("abcdefgh"), 60)) for _ in range(400)]
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(lines) + "\n")
    process, terminal = start(tmp_path, "grammar", "-k", "60", str(texts))
    with process:
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    os.close(terminal)


def test_without_ctrl_c_nobody_is_told(recwarn: Any):
    with warnings.catch_warnings():
        warnings.simplefilter("error", StoppedWarning)
        sc.MultinomialMixture(2).fit(TEXTS)
    assert not interrupt.asked()


def test_the_first_shard_is_heard_as_well():
    """Nobody knows how long it will take; quick work is done here after that."""
    responsive = interrupt.Responsive()
    with interrupt.graceful():
        first, second = (responsive(threading.current_thread) for _ in range(2))
    assert first is not threading.main_thread()
    assert second is threading.main_thread()
