"""A worker process of `Processes`: it keeps shards and their states, and answers one job at a time.

It reads messages from its standard input and writes answers to what was its standard output (what
is printed goes to standard error). It ends when its input ends, however that comes about: when the
process that started it is gone, so is the worker.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import FileIO
from queue import SimpleQueue
from typing import Any

import numpy as np

from softcount.core import interrupt
from softcount.core.errors import SoftcountError
from softcount.core.types import Array, EStep
from softcount.engines.base import Shard
from softcount.engines.blocks import add_up
from softcount.engines.packing import Packed, find_method, pack, sendable
from softcount.engines.remote import Block, Version
from softcount.kernels.threads import single_threaded

LENGTH = struct.Struct("<Q")


# A message is a header, which is a small tuple, and a body. It is written as the number of its
# parts, their lengths, and the parts.

NOTHING = Packed(b"", [])


def send(file: FileIO, header: tuple[Any, ...], body: Packed = NOTHING) -> int:
    """Write a message; return its size in bytes."""
    first = pickle.dumps(header, protocol=5)
    parts = [memoryview(part).cast("B") for part in body.beside]
    lengths = [len(first), len(body.main), *(part.nbytes for part in parts)]
    head = b"".join(map(LENGTH.pack, [len(lengths), *lengths]))
    for part in (memoryview(head + first + body.main), *parts):
        while part.nbytes:
            part = part[file.write(part) or 0 :]
    return sum(lengths)


def receive(file: FileIO) -> tuple[tuple[Any, ...], Packed]:
    """Read a message: its header and its body. Raise EOFError at the end."""
    (n,) = LENGTH.unpack(_read(file, LENGTH.size))
    lengths = _read(file, n * LENGTH.size)
    first, main, *beside = (_read(file, length) for (length,) in LENGTH.iter_unpack(lengths))
    return pickle.loads(first), Packed(bytes(main), list(beside))


def _read(file: FileIO, n: int) -> memoryview:
    """Read n bytes into fresh memory, so that arrays in it can be written to."""
    place: memoryview = np.empty(n, np.uint8).data
    done = 0
    while done < n:
        got = file.readinto(place[done:])
        if not got:
            raise EOFError
        done += got
    return place


# Jobs and answers.


@dataclass(frozen=True)
class WorkerTask:
    """A call's work on a block.

    ``function``  the name of what was sent, and of its method (see `Functions`)
    ``reads``     the version of each shard's state, or None
    ``kept``      whether a snapshot needs that state after this
    """

    function: tuple[str, str]
    how: EStep
    adds: bool
    block: Block
    reads: tuple[Version | None, ...]
    kept: tuple[bool, ...]
    writes: Version | None


@dataclass(frozen=True)
class Answer:
    """What became of a job.

    ``wrote``  the shards whose states were replaced, also if it failed after that
    ``trace``  where in the worker an error was raised
    ``size``   bytes of the message
    """

    value: Any = None
    error: BaseException | None = None
    trace: str = ""
    wrote: tuple[int, ...] = ()
    size: int = 0


@dataclass
class Shelf:
    """What a session has here."""

    shards: Sequence[Shard] | dict[int, Shard] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Array] = field(default_factory=dict)
    states: dict[int, dict[Version, Any]] = field(default_factory=lambda: defaultdict(dict))
    broken: BaseException | None = None
    """Why a message of this session could not be read."""

    def work(self, task: WorkerTask, wrote: list[int]) -> Any:
        """Do a task, and list the shards whose states it replaced."""
        if self.broken is not None:
            raise self.broken
        function = find_method(self.functions[task.function[0]], task.function[1])
        reads = dict(zip(task.block, zip(task.reads, task.kept, strict=True), strict=True))

        def state(shard: int) -> Any:
            version = reads[shard][0]
            return None if version is None else self.states[shard][version]

        if not task.adds and task.writes is None:
            (shard,) = task.block
            return function(self.params, self.shards[shard], task.how, state(shard))

        def keep(shard: int, new: Any) -> None:
            version, kept = reads[shard]
            if version is not None and not kept:
                del self.states[shard][version]
            assert task.writes is not None
            self.states[shard][task.writes] = new
            wrote.append(shard)

        parts = ((shard, self.shards[shard], state(shard)) for shard in task.block)
        return add_up(function, self.params, task.how, parts, keep)


class Worker:
    """The loop of a worker process: one thread reads messages, the main thread does what they say.

    The method ``do_KIND`` does what a message of that kind says. Those of jobs have a number, and
    get an answer.
    """

    def __init__(self, source: FileIO, sink: FileIO) -> None:
        self.source, self.sink = source, sink
        self.messages: SimpleQueue[tuple[tuple[Any, ...], Packed]] = SimpleQueue()
        self.shelves: dict[int, Shelf] = defaultdict(Shelf)
        self.given_up: dict[int, threading.Event] = {}

    def listen(self) -> None:
        """Read messages until the input ends."""
        try:
            while True:
                header, body = receive(self.source)
                kind, number, *_ = header
                if kind == "cancel":
                    for job in number:
                        if job in self.given_up:
                            self.given_up[job].set()
                    continue
                if kind in JOBS:
                    self.given_up[number] = threading.Event()
                self.messages.put((header, body))
        except EOFError:
            os._exit(0)  # whatever the main thread does: nobody wants to know
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def run(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        with single_threaded():
            while True:
                (kind, *more), body = self.messages.get()
                if kind in JOBS:
                    number, session, *more = more
                    self.answer(number, partial(getattr(self, f"do_{kind}"), session, *more))
                else:
                    session, *more = more
                    try:
                        getattr(self, f"do_{kind}")(session, *more, body)
                    except Exception as error:  # a class that cannot be found, for example
                        self.shelves[session].broken = error
                del more, body

    def answer(self, number: int, job: Callable[[list[int]], Any]) -> None:
        """Do a job and send what became of it."""
        wrote: list[int] = []
        try:
            with interrupt.given_up_at(self.given_up[number]):
                answer = Answer(job(wrote))
        except BaseException as error:
            answer = Answer(None, sendable(error), traceback.format_exc())
        answer = replace(answer, wrote=tuple(wrote))
        try:
            body = pack(answer, "what the function returned")
        except SoftcountError as error:
            body = pack(replace(answer, value=None, error=error))
        del self.given_up[number]
        send(self.sink, (number,), body)

    # jobs
    def do_work(self, session: int, task: WorkerTask, wrote: list[int]) -> Any:
        return self.shelves[session].work(task, wrote)

    def do_fetch(self, session: int, versions: Mapping[int, Version], wrote: list[int]) -> Any:
        states = self.shelves[session].states
        return {shard: states[shard][version] for shard, version in versions.items()}

    # all other messages
    def do_place(self, session: int, folder: str, paths: list[str], body: Packed) -> None:
        """Be in the folder of the process that started this one, and find modules where it does."""
        sys.path[:] = paths
        os.chdir(folder)

    def do_sequence(self, session: int, body: Packed) -> None:
        self.shelves[session].shards = body.load()

    def do_shards(self, session: int, body: Packed) -> None:
        shards = self.shelves[session].shards
        assert isinstance(shards, dict)
        shards.update(body.load())

    def do_drop_shards(self, session: int, shards: Sequence[int], body: Packed) -> None:
        kept = self.shelves[session].shards
        assert isinstance(kept, dict)
        for shard in shards:
            kept.pop(shard, None)

    def do_function(self, session: int, digest: str, body: Packed) -> None:
        self.shelves[session].functions[digest] = body.load()

    def do_params(self, session: int, names: Sequence[str], body: Packed) -> None:
        """Replace parameters; those among ``names`` that were not sent stay as they are."""
        shelf = self.shelves[session]
        now = shelf.params | body.load()
        shelf.params = {name: now[name] for name in names}

    def do_states(self, session: int, version: Version, body: Packed) -> None:
        for shard, state in body.load().items():
            self.shelves[session].states[shard][version] = state

    def do_drop_states(
        self, session: int, states: Sequence[tuple[int, Version]], body: Packed
    ) -> None:
        for shard, version in states:
            self.shelves[session].states[shard].pop(version, None)

    def do_forget(self, session: int, body: Packed) -> None:
        self.shelves.pop(session, None)
        gc.collect()  # models and shards may refer to one another


JOBS = ("work", "fetch")


def main() -> None:
    """Be a worker process until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    source, sink = FileIO(os.dup(0), "rb"), FileIO(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    send(sink, ("ready",))
    Worker(source, sink).run()
