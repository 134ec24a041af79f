"""Fits in other processes: forked, spawned or loky's, they end and have the same bits."""

from __future__ import annotations

import json
import multiprocessing
import os
import select
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NoReturn

import numba
import numpy as np
import pytest
from joblib import Parallel, delayed
from numba.core.compiler_lock import global_compiler_lock
from threadpoolctl import threadpool_info

import softcount as sc
from softcount.core.types import EStep, Stats
from softcount.engines import Local
from softcount.kernels import threads
from softcount.kernels.threads import single_threaded
from tests.every_estimator import ESTIMATORS, POINTS, TWO, answers

LIMIT = 600.0
"""Seconds after which a child is taken for one that waits for ever; it needs a few, unless it has
to compile all kernels on a busy machine."""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """What this process says, which has pools of threads thereafter."""
    found = answers()
    assert threads._pool.cache_info().currsize > 0
    assert found == answers()
    return found


def in_fork(do: Callable[[], Any]) -> Any:
    """What ``do()`` gives in a forked child; a child that never ends is ended, and fails."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        tell_and_end(do, write_end)
    return heard(child, read_end, write_end)


def tell_and_end(do: Callable[[], Any], write_end: int) -> NoReturn:
    """The child's part; it never comes back into the test."""
    status = 1
    try:
        told = json.dumps(do()).encode()
        with os.fdopen(write_end, "wb") as file:
            file.write(told)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def heard(child: int, read_end: int, write_end: int) -> Any:
    """The parent's part."""
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        ready, _, _ = select.select([file], [], [], LIMIT)
        if not ready:
            os.kill(child, signal.SIGKILL)
        told = file.read()
    status = os.waitpid(child, 0)[1]
    assert ready, "the child waits for ever"
    assert status == 0
    return json.loads(told)


# all estimators in all kinds of processes
@needs_fork
@pytest.mark.slow
def test_a_fork_has_the_same_bits(expected: dict[str, str]) -> None:
    assert in_fork(answers) == expected


@needs_fork
@pytest.mark.slow
def test_a_fork_of_a_fork_has_the_same_bits(expected: dict[str, str]) -> None:
    some = ["MultinomialMixture", "GaussianMixture", "PCFG"]

    def both() -> list[dict[str, str]]:
        return [answers(some), in_fork(lambda: answers(some))]

    assert in_fork(both) == [{name: expected[name] for name in some}] * 2


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_pool_of_processes_has_the_same_bits(expected: dict[str, str], method: str) -> None:
    workers = multiprocessing.get_context(method).Pool(2)
    try:
        names = list(ESTIMATORS)
        calls = [workers.apply_async(answers, (names[k::2],)) for k in range(2)]
        found = {name: bits for call in calls for name, bits in call.get(LIMIT).items()}
    finally:
        workers.terminate()
    assert found == expected


@pytest.mark.slow
def test_loky_has_the_same_bits(expected: dict[str, str]) -> None:
    names = list(ESTIMATORS)
    run = Parallel(n_jobs=2, backend="loky", timeout=LIMIT)
    found: dict[str, str] = {}
    for part in run(delayed(answers)(names[k::2]) for k in range(2)):
        found |= part
    assert found == expected


# what else a fork must not break
@needs_fork
def test_a_fit_goes_on_in_a_child_that_a_callback_forked() -> None:
    """The session, with a pool of its own, was opened by the parent."""

    def climb(on_step: Callable[[Any], object]) -> list[float]:
        model = sc.GaussianMixture(3, engine=TWO, learner=sc.EM(max_iter=3))
        return list(model.fit(POINTS, on_step=on_step).fit_.trace.objective)

    plain = climb(lambda state: None)
    read_end, write_end = os.pipe()
    child: list[int] = []

    def fork_once(state: Any) -> None:
        if not child and state.step == 0:
            child.append(os.fork())

    try:
        found = climb(fork_once)
    finally:
        if child == [0]:
            tell_and_end(lambda: found, write_end)
    assert heard(child[0], read_end, write_end) == found == plain


@needs_fork
def test_a_session_of_the_parent_works_in_the_child() -> None:
    def weigh(params: Any, shard: float, how: Any, local: Any) -> Stats:
        return Stats({}, log_likelihood=shard)

    with Local(2).open([0.1, 0.2, 0.3]) as session:
        here = session.expect(weigh, {}, EStep()).log_likelihood

        def there() -> float:
            found = session.expect(weigh, {}, EStep()).log_likelihood
            session.close()
            return found

        assert in_fork(there) == here
        assert session.expect(weigh, {}, EStep()).log_likelihood == here


@pytest.fixture
def held() -> Iterator[Callable[..., None]]:
    """Lets another thread enter a context, and leave it a little later."""
    threads = []

    def hold(context: Any, seconds: float = 0.5) -> None:
        inside = threading.Event()

        def work() -> None:
            with context:
                inside.set()
                threading.Event().wait(seconds)

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        assert inside.wait(60)

    yield hold
    for thread in threads:
        thread.join()


@needs_fork
def test_a_child_compiles_although_another_thread_did(held: Callable[..., None]) -> None:
    def compile_one() -> int:
        return int(numba.njit(lambda x: x + 1)(1))

    held(global_compiler_lock)
    assert in_fork(compile_one) == 2


@needs_fork
def test_a_child_traces_a_story_although_another_thread_did(held: Callable[..., None]) -> None:
    from softcount.stories import language

    held(language._LOCK)
    assert list(in_fork(lambda: answers(["StoryModel"]))) == ["StoryModel"]


def blas() -> list[int]:
    """How many threads linear algebra may use, library by library."""
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


@pytest.fixture
def free() -> list[int]:
    """The same while no one wants one thread."""
    with single_threaded():
        pass  # loads all libraries
    found = blas()
    assert found
    if max(found) == 1:
        pytest.skip("linear algebra has one thread anyway")
    return found


def test_any_thread_can_set_the_limit(free: list[int], held: Callable[..., None]) -> None:
    """Whichever was the first that ever did."""
    held(single_threaded(), 0.5)
    assert max(blas()) == 1


@needs_fork
def test_the_limit_of_another_thread_is_lifted_in_a_child(
    free: list[int], held: Callable[..., None]
) -> None:
    held(single_threaded(), 2.0)
    assert in_fork(blas) == free

    def limited() -> list[int]:
        with single_threaded():
            return blas()

    assert max(in_fork(limited)) == 1
    assert max(blas()) == 1


@needs_fork
def test_the_limit_of_the_thread_that_forks_stays_in_the_child(free: list[int]) -> None:
    with single_threaded():
        assert max(in_fork(blas)) == 1
    assert blas() == free


# what has not begun when something goes wrong
@pytest.mark.parametrize("where", ["in a piece", "while waiting"])
@pytest.mark.parametrize("by_rows", [False, True])
def test_pieces_that_have_not_begun_never_do(
    where: str, by_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, begun = threading.Event(), []

    def work(piece: int, last: int = 0) -> None:
        begun.append(piece)
        if piece == 0 and where == "in a piece":
            raise KeyboardInterrupt
        gate.wait(60)

    def interrupted(future: Future[Any], timeout: float | None = None) -> None:
        raise KeyboardInterrupt  # what Ctrl-C does to a thread that waits

    indptr = np.arange(0, 100 * threads.FEW, threads.FEW)
    with monkeypatch.context() as patch:
        if where == "while waiting":
            patch.setattr(Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            threads.over_rows(work, indptr, 3) if by_rows else threads.in_turn(work, 12, 3)
    gate.set()
    threads.in_turn(lambda piece: None, 12, 3)  # comes after whatever is left
    assert len(begun) <= 4
