"""The engine for one machine without shared memory: a pool of worker processes.

What several threads cannot do at once (Python code of a model's own, for one) several processes
can. A worker is a fresh interpreter: nothing is forked, and the user's script is not run again, so
that it needs no ``if __name__ == "__main__"``.

Each worker owns consecutive shards, which are sent to it once, and keeps their states. Everything
goes through pipes: on two processors, 40 MB there and 40 MB back take 85 ms, and 115 ms by shared
memory that is fresh for each message, whose pages the system has to clear first.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import FileIO
from multiprocessing.spawn import get_executable
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, cast

from softcount.core import interrupt
from softcount.core.errors import SoftcountError, brief
from softcount.core.types import Array, Stats
from softcount.engines import progress
from softcount.engines.base import Session, Shard
from softcount.engines.blocks import cut_blocks
from softcount.engines.local import Local
from softcount.engines.packing import (
    Functions,
    Packed,
    checksum,
    describe,
    is_lazy,
    pack,
    plain_params,
)
from softcount.engines.remote import Block, Call, RemoteSession, Shared, Version
from softcount.engines.worker import NOTHING, Answer, WorkerTask, receive, send
from softcount.kernels.threads import in_child, usable_cpus

MOST_WORKERS = 1024
AHEAD = 3
"""Blocks that a worker has at a time: the next are there when it has done one."""
TRIES = 3
"""How often a block is asked for, if workers end while they work on it."""
SOON = 2.0
"""Seconds that a worker has to end by itself."""

OWN_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""On Windows Ctrl-C must not reach workers; elsewhere they ignore it by themselves."""

START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv.pop()); "
    "from softcount.engines.worker import main; main()"
)


@dataclass(frozen=True)
class Processes:
    """Worker processes on this machine (``workers=None``: one per usable processor).

    The number of workers affects speed and nothing else. A corpus of a single shard is not worth
    sending: it stays in this process. The workers are shared by all engines of as many workers, and
    end a minute after they were last used, or by `close`.

    ``workers``             number of processes
    ``threads_per_worker``  number of threads inside of a shard, for models that use several

    >>> import math
    >>> from softcount.core.types import EStep
    >>> with Processes(2).open([2, 3, 5]) as session:
    ...     list(session.map(example, {}, EStep()))
    [2.0, 3.0, 5.0]
    >>> Processes(2).close()
    """

    workers: int | None = None
    threads_per_worker: int = 1

    def __post_init__(self) -> None:
        for name in ("workers", "threads_per_worker"):
            n = getattr(self, name)
            if n is not None and not 1 <= n <= MOST_WORKERS:
                raise SoftcountError(
                    f"Processes({name}={brief(n)}): there must be at least one, and no more than "
                    f"{MOST_WORKERS}",
                    f"leave {name} out",
                )

    @property
    def threads(self) -> int:
        """Number of threads that may be used in this process, while the workers have no work."""
        return (self.workers or usable_cpus()) * self.threads_per_worker

    def open(self, shards: Sequence[Shard], *, threads_inside: bool = False) -> Session:
        if len(shards) == 1:
            return Local(self.threads).open(shards, threads_inside=threads_inside)
        threads = self.threads_per_worker if threads_inside else 1
        return ProcessSession(shards, _pool(self.workers or usable_cpus()), threads)

    def close(self) -> None:
        """End the worker processes, if no session is open."""
        pool = _pools.get(self.workers or usable_cpus())
        if pool is not None:
            pool.end_if_idle()


def example(params: Any, shard: float, how: Any, local: Any) -> float:
    """Return a shard, for the example above."""
    return float(shard)


class WorkerLost(Exception):
    """A worker process has ended."""


# The session: what is asked of which worker.


@dataclass
class _Sent:
    """What a session has sent to a worker process."""

    worker: _Worker
    functions: set[str] = field(default_factory=set)
    shards: set[int] = field(default_factory=set)
    params: dict[str, tuple[Array, int]] = field(default_factory=dict)
    """Arrays, and their checksums."""


@dataclass(eq=False)
class _ProcessTurn:
    """A call while it is at work.

    ``running``  the position of the block of each job, and the worker
    ``tries``    how often a worker ended while it had the block at a position
    ``packed``   parameters, by the names of those that are sent
    """

    call: Call
    blocks: Sequence[Block]
    arrays: dict[str, Array]
    running: dict[Future[Answer], tuple[int, _Worker]] = field(default_factory=dict)
    tries: Counter[int] = field(default_factory=Counter)
    packed: dict[tuple[str, ...], Packed] = field(default_factory=dict)

    @cached_property
    def checksums(self) -> dict[str, int]:
        return {name: checksum(array) for name, array in self.arrays.items()}


class ProcessSession(RemoteSession):
    """Shards in worker processes."""

    numbers = itertools.count(1)

    def __init__(self, shards: Sequence[Shard], pool: _Pool, threads: int) -> None:
        super().__init__(shards, threads)
        self._number = next(self.numbers)
        self._pool, self._n_workers = pool, min(pool.size, max(len(shards), 1))
        self._functions = Functions()
        self._sequence = pack(shards, "the sequence of shards") if is_lazy(shards) else None
        self._owned = False
        """Whether shards have owners: not before an E-step, for what is only mapped is not kept."""
        self._sent: dict[int, _Sent] = {}
        """What each worker has, by its serial number."""
        self._homes: dict[tuple[int, Version], int] = {}
        """The serial number of the worker that has a state."""
        self._unsettled: dict[Future[Answer], tuple[Call, _Worker]] = {}
        """Jobs that were given up, and have not been answered yet."""
        pool.enter()
        self._is_open = True

    def close(self) -> None:
        self._close(at_once=False)

    def __exit__(self, *raised: object) -> None:
        kind = raised[0] if raised else None
        self._close(at_once=isinstance(kind, type) and not issubclass(kind, Exception))

    def _close(self, at_once: bool) -> None:
        """Forget everything; ``at_once``: end workers that are still busy."""
        if not self._is_open or os.getpid() != self._process:
            return
        self._is_open = False
        self._give_up()
        for sent in self._sent.values():
            if at_once and sent.worker.jobs and self._pool.sessions == 1:
                sent.worker.end()
            with suppress(WorkerLost):
                sent.worker.post(("forget", self._number))
        self._sent, self._unsettled = {}, {}
        self._pool.leave()

    # states
    def _gather(self, versions: Mapping[int, Version]) -> Mapping[int, Any]:
        self._settle()
        found: dict[int, Any] = {}
        for number, own in self._by_owner(versions).items():
            sent = self._reach(number)
            self._check_homes(own.items(), sent.worker)
            try:
                answer = interrupt.wait(sent.worker.ask("fetch", self._number, own))
            except WorkerLost:
                self._lose(min(own))
            if answer.error is not None:
                raise answer.error
            found |= answer.value
        return {shard: found[shard] for shard in versions}

    def _scatter(self, states: Mapping[int, Any], version: Version) -> None:
        self._settle()
        self._owned = True
        for number, own in self._by_owner(states).items():
            worker = self._reach(number).worker
            self._post(worker, ("states", self._number, version), pack(own, "a shard's state"))
            self._homes |= {(shard, version): worker.serial for shard in own}

    def _by_owner(self, given: Mapping[int, Any]) -> dict[int, dict[int, Any]]:
        parts: dict[int, dict[int, Any]] = defaultdict(dict)
        for shard in sorted(given):
            parts[self._owner(shard)][shard] = given[shard]
        return parts

    def _check_homes(self, states: Iterable[tuple[int, Version]], worker: _Worker) -> None:
        """Raise an error if a state was lost with another worker."""
        for state in states:
            if self._homes.get(state) != worker.serial:
                self._lose(state[0])

    def _lose(self, shard: int) -> NoReturn:
        raise SoftcountError(
            f"a worker process has ended, and with it the state of shard {shard}, which cannot be "
            "computed anew",
            "continue from a checkpoint, or use an engine that keeps states in a folder: Dask",
        )

    def _settle(self) -> None:
        """Wait for jobs that were given up, for they may have replaced states; drop dead states."""
        while self._unsettled:
            future, (call, worker) = next(iter(self._unsettled.items()))
            with suppress(WorkerLost):
                self._note(call, worker, interrupt.wait(future))
            del self._unsettled[future]
        dead: dict[int, list[tuple[int, Version]]] = defaultdict(list)
        for state in self._take_dead():
            dead[self._homes.pop(state, 0)].append(state)
        for serial, states in dead.items():
            if serial in self._sent:
                with suppress(WorkerLost):
                    self._post(self._sent[serial].worker, ("drop_states", self._number, states))

    def _note(self, call: Call, worker: _Worker, answer: Answer) -> None:
        """Note which shards have new states: their workers have dropped the old ones."""
        self.moved[1] += answer.size
        for shard in answer.wrote:
            assert call.writes is not None
            self._left(shard, call.writes)
            self._homes[shard, call.writes] = worker.serial
        for state in self._dead:
            self._alive.discard(state)
            self._homes.pop(state, None)
        self._dead.clear()

    # work
    def _owner(self, shard: int) -> int:
        """Return the number of the worker that has a shard: consecutive shards, as many each."""
        return shard * self._n_workers // len(self)

    def _total(self, call: Call, which: Sequence[int]) -> Stats:
        return self._add_up(call, cut_blocks(which, self._owner, self.largest_block or len(self)))

    def _results(self, call: Call, blocks: Sequence[Block]) -> Iterator[Any]:
        self._settle()
        self._owned = self._owned or call.adds or call.writes is not None
        turn = _ProcessTurn(call, blocks, plain_params(call.params))
        for number in range(self._n_workers):  # let all start before the first waits for shards
            self._reach(number)
        try:
            yield from self._take_turn(turn)
        finally:
            self._unsettled |= {future: (call, w) for future, (_, w) in turn.running.items()}
            self._give_up()

    def _take_turn(self, turn: _ProcessTurn) -> Iterator[Any]:
        """Ask for blocks and yield the results in order; ask again for what is lost."""
        n = len(turn.blocks)
        own: dict[int, deque[int]] = defaultdict(deque)  # positions of blocks, by their owner
        everybodys: deque[int] = deque()
        for position, block in enumerate(turn.blocks):
            (own[self._owner(block[0])] if self._owned else everybodys).append(position)
        window = n if self._owned else 2 * AHEAD * self._n_workers
        done: SimpleQueue[Future[Answer]] = SimpleQueue()
        answers: dict[int, Answer] = {}
        turned = n_done = 0
        while turned < n:
            if turned in answers:
                answer = answers.pop(turned)
                if answer.error is not None:
                    raise answer.error
                yield answer.value
                turned += 1
                continue
            for number in range(self._n_workers):
                busy = sum(worker.number == number for _, worker in turn.running.values())
                for _ in range(busy, AHEAD):
                    waiting = own[number] or everybodys
                    if not waiting or waiting[0] >= turned + window:
                        break
                    position = waiting.popleft()
                    future, worker = self._begin(turn, turn.blocks[position], number)
                    turn.running[future] = position, worker
                    future.add_done_callback(done.put)
            future = _next(done)
            position, worker = turn.running.pop(future)
            try:
                answers[position] = answer = future.result()
            except WorkerLost:
                turn.tries[position] += 1
                if not worker.was_ready or turn.tries[position] == TRIES:
                    raise worker.explain(turn.blocks[position]) from None
                (own[worker.number] if self._owned else everybodys).appendleft(position)
                continue
            self._note(turn.call, worker, answer)
            n_done += len(turn.blocks[position])
            progress.tell(n_done, sum(map(len, turn.blocks)), self._n_workers)
            if answer.error is not None:  # what comes after it is not wanted any more
                n = min(n, position + 1)
                for waiting in (*own.values(), everybodys):
                    while waiting and waiting[-1] > position:
                        waiting.pop()

    def _begin(
        self, turn: _ProcessTurn, block: Block, number: int
    ) -> tuple[Future[Answer], _Worker]:
        """Send a worker a block's work, and what it lacks for it."""
        sent, call = self._reach(number), turn.call
        versions = tuple(self._versions.get(shard) for shard in block)
        states = [(s, v) for s, v in zip(block, versions, strict=True) if v is not None]
        self._check_homes(states, sent.worker)
        digest, method = self._functions.name(call.function)
        kept = tuple(self._is_kept(shard) for shard in block)
        task = WorkerTask((digest, method), call.how, call.adds, block, versions, kept, call.writes)
        try:
            if digest not in sent.functions:
                header = "function", self._number, digest
                self._post(sent.worker, header, self._functions.packed(digest))
                sent.functions.add(digest)
            self._send_params(turn, sent)
            lacks = [shard for shard in block if shard not in sent.shards]
            if self._sequence is None and lacks:
                shards = pack({shard: self.shards[shard] for shard in lacks}, "a shard")
                self._post(sent.worker, ("shards", self._number), shards)
                sent.shards.update(lacks if self._owned else ())
            future = sent.worker.ask("work", self._number, task)
            if self._sequence is None and not self._owned:
                sent.worker.post(("drop_shards", self._number, block))
        except WorkerLost:
            future = Future()
            future.set_exception(WorkerLost())
        return future, sent.worker

    def _send_params(self, turn: _ProcessTurn, sent: _Sent) -> None:
        """Send the parameters that a worker does not have."""
        names = tuple(turn.arrays)
        now = {name: (turn.arrays[name], turn.checksums[name]) for name in names}
        changed = tuple(
            name
            for name, (array, checksum) in now.items()
            if name not in sent.params
            or sent.params[name][0] is not array
            or sent.params[name][1] != checksum
        )
        if changed or tuple(sent.params) != names:
            if changed not in turn.packed:
                turn.packed[changed] = pack({name: turn.arrays[name] for name in changed})
            self._post(sent.worker, ("params", self._number, names), turn.packed[changed])
            sent.params = now

    def _reach(self, number: int) -> _Sent:
        """Return what a worker has; if there is none, or it has ended, start one."""
        worker = self._pool.worker(number)
        if worker.serial not in self._sent:
            self._sent[worker.serial] = _Sent(worker)
            with suppress(WorkerLost):
                paths = [os.path.abspath(path) for path in sys.path]
                self._post(worker, ("place", self._number, os.getcwd(), paths))
                if self._sequence is not None:
                    self._post(worker, ("sequence", self._number), self._sequence)
        return self._sent[worker.serial]

    def _post(self, worker: _Worker, header: tuple[Any, ...], body: Packed = NOTHING) -> None:
        self.moved[0] += worker.post(header, body)

    def _give_up(self) -> None:
        """Tell workers which of their jobs are not wanted any more."""
        for sent in self._sent.values():
            jobs = list(sent.worker.jobs.items())
            numbers = [number for number, future in jobs if future in self._unsettled]
            if numbers:
                with suppress(WorkerLost):
                    sent.worker.post(("cancel", numbers))


def _next(done: SimpleQueue[Future[Answer]]) -> Future[Answer]:
    """Wait for the next job to end, and stay responsive to Ctrl-C."""
    while True:
        with suppress(Empty):
            return done.get(timeout=interrupt.NAP)
        interrupt.check()


# Worker processes, and pools of them.


class _Worker:
    """A worker process, and the thread that reads its answers."""

    serials = itertools.count(1)

    def __init__(self, number: int) -> None:
        self.number, self.serial = number, next(self.serials)
        self.jobs: dict[int, Future[Answer]] = {}
        self.was_ready = False
        self._is_alive = True
        self._numbers = itertools.count(1)
        self._writing = threading.Lock()
        self._state = threading.Lock()
        arguments = [get_executable(), *subprocess._args_from_interpreter_flags()]  # type: ignore[attr-defined]
        paths = json.dumps([os.path.abspath(path) for path in sys.path])
        with _without_interrupts():
            self._process = subprocess.Popen(
                [*arguments, "-c", START, paths],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                creationflags=OWN_GROUP,
            )
        threading.Thread(target=self._listen, name="softcount-worker", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        return self._is_alive

    def post(self, header: tuple[Any, ...], body: Packed = NOTHING) -> int:
        """Send a message, and return its size; raise `WorkerLost` if the worker has ended."""
        if not self._is_alive:
            raise WorkerLost
        try:
            with self._writing:
                return send(cast(FileIO, self._process.stdin), header, body)
        except (OSError, ValueError):
            self._process.kill()  # its end is noticed by the thread that reads
            raise WorkerLost from None
        except BaseException:
            self._process.kill()  # half of a message is of no use
            raise

    def ask(self, kind: str, *more: Any) -> Future[Answer]:
        """Send a job; the answer comes, or `WorkerLost` is raised, where it is waited for."""
        number, future = next(self._numbers), Future[Answer]()
        with self._state:
            if not self._is_alive:
                raise WorkerLost
            self.jobs[number] = future
        try:
            self.post((kind, number, *more))
        except BaseException:
            self.jobs.pop(number, None)
            raise
        return future

    def _listen(self) -> None:
        """Read answers until the process ends."""
        source = cast(FileIO, self._process.stdout)
        with suppress(EOFError, OSError, ValueError):
            while True:
                (number,), body = receive(source)
                if number == "ready":
                    self.was_ready = True
                    continue
                try:
                    answer = replace(body.load(), size=body.size)
                    if answer.trace and not isinstance(answer.error, SoftcountError):
                        answer.error.add_note(f"In a worker process:\n{answer.trace}")
                except Exception as error:
                    what = f"the answer of a worker process cannot be read: {describe(error)}"
                    answer = Answer(error=SoftcountError(what))
                future = self.jobs.pop(number, None)
                if future is not None:
                    future.set_result(answer)
                del answer, body, future
        with self._state:
            self._is_alive = False
            lost, self.jobs = self.jobs, {}
        self._process.kill()
        self._process.wait()
        for future in lost.values():
            future.set_exception(WorkerLost())

    def end(self) -> None:
        """End the process, and wait until it has ended."""
        with suppress(OSError):
            cast(FileIO, self._process.stdin).close()
        try:
            self._process.wait(SOON)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def explain(self, block: Block) -> SoftcountError:
        """Return the error to raise after this worker has ended."""
        code = self._process.wait()
        how = f"exit code {code}"
        if code < 0:
            with suppress(ValueError):
                how = signal.Signals(-code).name
        if not self.was_ready:
            return SoftcountError(
                f"a worker process ended at its start ({how})",
                "what it said about that stands in the standard error of this program",
            )
        shards = f"shard{'s' * (len(block) > 1)} {block[0]}" + f" to {block[-1]}" * (len(block) > 1)
        more = "; the system ends processes when memory runs out" * (how == "SIGKILL")
        return SoftcountError(
            f"worker processes ended {TRIES} times while they worked on {shards} ({how}){more}",
            "use fewer workers or smaller shards, or look at standard error for a reason",
        )


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C: a process started inside is deaf to it until it can ignore it by itself."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Pool(Shared):
    """Worker processes, started when they are first needed, and shared by all sessions.

    They end a minute after the last session: starting one takes a second or two.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.workers: dict[int, _Worker] = {}

    def worker(self, number: int) -> _Worker:
        with self.lock:
            if number not in self.workers or not self.workers[number].is_alive:
                self.workers[number] = _Worker(number)
            return self.workers[number]

    def end(self) -> None:
        with self.lock:
            workers, self.workers = self.workers, {}
        for worker in workers.values():
            worker.end()


_pools: dict[int, _Pool] = {}
_of_parents: list[dict[int, _Pool]] = []


def _pool(size: int) -> _Pool:
    return _pools.setdefault(size, _Pool(size))


def _forget_pools() -> None:
    """In a forked process: the workers are its parent's. They must not even be garbage."""
    global _pools
    _of_parents.append(_pools)
    _pools = {}


@atexit.register
def _end_pools() -> None:
    for pool in _pools.values():
        pool.end()


in_child(_forget_pools)
