"""The engine for a cluster: a scheduler and workers of Dask, and a folder that all of them see.

Everything has a name, and workers are caches: a shard, a table of parameters and the state that an
E-step leaves with a shard are files, which any worker can read. So whatever is lost (a worker, a
result, the scheduler) is asked for again, and has the same bits. Nothing relies on what Dask
remembers: results that it would compute anew by itself are asked for by us, under a new name.

Needs the package ``distributed`` (``pip install softcount[dask]``), which is imported when a
session is opened.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Self, cast

from softcount.core import interrupt
from softcount.core.errors import SoftcountError, brief
from softcount.core.records import NotRecordable
from softcount.core.types import Array, Stats
from softcount.engines import folder, progress
from softcount.engines.base import Shard
from softcount.engines.blocks import cut_blocks, tree_sum
from softcount.engines.cloud import Place
from softcount.engines.cluster import LOOK, MOST_SAID, WaitingWarning, connect, disconnect
from softcount.engines.dask_tasks import Reply, Request, add, do, load
from softcount.engines.packing import Functions, checksum, is_lazy, pack, plain_params
from softcount.engines.remote import Block, Call, RemoteSession, Version

PATIENCE = 300.0
"""Seconds to wait for workers, if there are none, by default."""
MEMORY = 1 << 30
"""Bytes of shards, parameters and states that a worker keeps, by default."""
MOST_WORKERS = 1024
TRIES = 5
"""How often a block is asked for, if workers end while they work on it."""
LARGE = 1 << 20
"""Bytes of a sum from which it is added up on the workers: an addition takes Dask some 2 ms, in
which a megabyte could have been sent."""
WHILE = 0.2
"""Seconds that the work on a block should take, at least, where there are shards enough."""

AGAINST = "against "
"""Beginning of the names of parameters that an E-step has in `EStep.against`."""


@dataclass(frozen=True, eq=False)
class Dask:
    """Workers of a Dask cluster.

    Without an address, workers are started on this machine, for trying out; they end a minute after
    they were last used, or by `close`. The number of workers affects speed and nothing else, as
    long as the processors' arithmetic is the same, which is checked.

    ``address_or_client``  of a scheduler (``"tcp://…:8786"``), or a `distributed.Client`
    ``workers``            number of workers to start on this machine, if there is no address (None:
                           one per usable processor)
    ``folder``             a folder that this process and all workers see by the same path, or the
                           URL of one that fsspec reaches (``"s3://bucket/folder"``); each session
                           makes a folder in it, and removes it at its end. Required with an address
    ``strict``             refuse workers whose arithmetic differs from this machine's
    ``patience``           seconds to wait for workers when there are none
    ``memory``             bytes of shards, parameters and states that a worker keeps beside its
                           work; what it does not keep it reads anew
    """

    address_or_client: Any = None
    workers: int | None = None
    folder: str | os.PathLike[str] | None = None
    strict: bool = False
    patience: float = PATIENCE
    memory: int = MEMORY

    def __post_init__(self) -> None:
        own = self.address_or_client is None
        n = self.workers
        if n is not None and not own:
            raise SoftcountError(
                f"Dask(workers={brief(n)}): a scheduler that is running has its own workers",
                "leave workers out, or leave the address out to start some on this machine",
            )
        if n is not None and not 1 <= n <= MOST_WORKERS:
            raise SoftcountError(
                f"Dask(workers={brief(n)}): there must be at least one, and no more than "
                f"{MOST_WORKERS}",
                "leave workers out to start one per processor",
            )
        if not own and self.folder is None:
            raise SoftcountError(
                "Dask(address): the workers of a cluster need a folder",
                'give folder="…", a path that this process and all workers see',
            )

    @property
    def threads(self) -> int | None:
        """Number of threads that may be used in this process; None: all processors."""
        return self.workers

    def open(self, shards: Sequence[Shard], *, threads_inside: bool = False) -> DaskSession:
        return DaskSession(shards, self, threads_inside)

    def close(self) -> None:
        """End the workers that were started on this machine, and clients that are not the user's.

        Nothing happens while a session is open.
        """
        if self.address_or_client is None or isinstance(self.address_or_client, str):
            disconnect(self.address_or_client, self.workers)

    # clients can neither be copied nor pickled; their address can
    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        given = self.address_or_client
        address = getattr(getattr(given, "scheduler", None), "address", given)
        more = self.workers, self.folder, self.strict, self.patience, self.memory
        return Dask, (address, *more)


# The session: what is asked of which worker.


class _Asked(NamedTuple):
    """A block, by its position, that a worker has been asked for."""

    position: int
    address: str


@dataclass(eq=False)
class _Turn:
    """A call while it is at work.

    ``params``   names of the files of parameters, by family; ``against`` those of `EStep.against`
    ``tries``    how often the block at a position was lost
    ``in_full``  positions of blocks for which everything is sent along
    """

    call: Call
    blocks: Sequence[Block]
    params: Mapping[str, str]
    against: Mapping[str, str] | None
    running: dict[Any, _Asked] = field(default_factory=dict)
    tries: Counter[int] = field(default_factory=Counter)
    in_full: set[int] = field(default_factory=set)
    n_done: int = 0
    """Number of shards whose work is done."""

    def tell(self, position: int, workers: int) -> None:
        """Tell whoever wants to know that a block is done."""
        self.n_done += len(self.blocks[position])
        progress.tell(self.n_done, sum(map(len, self.blocks)), workers)


class _Again(Exception):
    """A sum that workers added up was lost: a worker has gone, or lacked something."""


class DaskSession(RemoteSession):
    """Shards in a folder that the workers of a cluster see."""

    def __init__(self, shards: Sequence[Shard], engine: Dask, threads_inside: bool) -> None:
        super().__init__(shards, threads=1)
        self._engine, self._threads_inside = engine, threads_inside
        self._functions = Functions()
        self._sequence = pack(shards, "the sequence of shards") if is_lazy(shards) else None
        self._sequence_name = "" if self._sequence is None else self._sequence.digest
        self._parcels: dict[int, str] = {}
        """What there is of a shard: "" if it is a file, or else the name of its parcel."""
        self._modules: set[str] = set()
        """Whose classes the files of shards and states hold."""
        self._homes: dict[int, str] = {}
        """The worker that had a shard last, and may have kept it in memory."""
        self._given: dict[str, set[str]] = defaultdict(set)
        """The parcels that a worker has."""
        self._workers: dict[str, int] = {}
        """Workers, and their numbers of threads, as of a moment ago."""
        self._pace: dict[tuple[str, str], float] = {}
        """Seconds per shard, by the name of the function (see `Functions`)."""
        self._sizes: dict[tuple[str, str], int] = {}
        """Bytes of a sum, by the name of the function."""
        self._params: dict[str, tuple[Array, int, str]] = {}
        """Parameters as they are in files: the array, its checksum, the name of the file."""
        self._param_files: set[str] = set()
        self._n_files = 0
        self._turns: list[_Turn] = []
        self._connection = connect(
            given=engine.address_or_client, workers=engine.workers, folder=engine.folder
        )
        self._connection.enter()
        self._folder = folder.make_session(self._connection.folder)
        self._probe = self._folder / folder.OWNER
        """A file that all workers must see."""
        self._is_open = True
        try:
            self._connection.meet_workers(self._probe, engine.strict, opening=True)
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        if not self._is_open or os.getpid() != self._process:
            return
        self._connection.forget(str(self._folder))
        self._end()

    def _end(self) -> None:
        self._is_open = False
        folder.remove_session(self._folder)
        self._connection.leave()

    # states
    def _gather(self, versions: Mapping[int, Version]) -> Mapping[int, Any]:
        return {
            shard: folder.read(self._state(shard, version), self._modules)
            for shard, version in versions.items()
        }

    def _scatter(self, states: Mapping[int, Any], version: Version) -> None:
        for shard, state in states.items():
            size, modules = folder.write(self._state(shard, version), state)
            self._modules |= modules
            self.moved[0] += size

    def _state(self, shard: int, version: Version) -> Place:
        return self._folder / f"states/{version}/{shard}"

    def _drop_dead(self) -> None:
        """Remove the states that nobody will ask for again."""
        for shard, version in self._take_dead():
            path = self._state(shard, version)
            path.unlink(missing_ok=True)
            if isinstance(path, Path):
                with suppress(OSError):  # there are states of other shards
                    path.parent.rmdir()

    # work
    def _total(self, call: Call, which: Sequence[int]) -> Stats:
        name = self._functions.name(call.function)
        blocks = cut_blocks(which, lambda shard: None, self._block_size(name, len(which)))
        with self._turn(call, blocks) as turn:
            tables = sum(array.nbytes for array, _, _ in self._params.values())
            if len(blocks) > 1 and self._sizes.get(name, tables) >= LARGE:
                with suppress(_Again):
                    return self._add_on_workers(turn)
        with self._turn(call, blocks) as turn:
            parts = (self._take(turn, reply) for reply in self._replies(turn))
            total: Stats = tree_sum(parts, map(len, blocks))
            return total

    def _results(self, call: Call, blocks: Sequence[Block]) -> Iterator[Any]:
        with self._turn(call, blocks) as turn:
            for reply in self._replies(turn):
                yield self._take(turn, reply)

    @contextmanager
    def _turn(self, call: Call, blocks: Sequence[Block]) -> Iterator[_Turn]:
        """Write the parameters of a call to files; afterwards drop what is not wanted any more."""
        arrays, apart = plain_params(call.params), plain_params(call.how.against)
        files = self._write_params(arrays | {AGAINST + name: apart[name] for name in apart})
        params = {name: files[name] for name in arrays}
        against = {name: files[AGAINST + name] for name in apart}
        turn = _Turn(call, blocks, params, None if call.how.against is None else against)
        self._turns.append(turn)
        try:
            yield turn
        finally:
            self._turns.remove(turn)
            if turn.running:
                with suppress(Exception):
                    self._connection.client.cancel(list(turn.running), force=True)
            if self._is_open:
                self._drop_params()
                self._drop_dead()

    def _write_params(self, arrays: Mapping[str, Array]) -> dict[str, str]:
        """Write arrays that have changed to files; return the names of all files."""
        before, self._params = self._params, {}
        for name, array in arrays.items():
            known, total = before.get(name), checksum(array)
            if known is None or known[0] is not array or known[1] != total:
                self._n_files += 1
                known = array, total, str(self._n_files)
                path = self._folder / f"params/{known[2]}"
                self.moved[0] += folder.write(path, array)[0]
                self._param_files.add(known[2])
            self._params[name] = known
        return {name: file for name, (_, _, file) in self._params.items()}

    def _drop_params(self) -> None:
        """Remove the files of parameters that neither the last call needs nor one at work."""
        needed = {file for _, _, file in self._params.values()}
        for turn in self._turns:
            needed.update(turn.params.values(), (turn.against or {}).values())
        for file in self._param_files - needed:
            (self._folder / f"params/{file}").unlink(missing_ok=True)
        self._param_files &= needed

    def _block_size(self, name: tuple[str, str], n: int) -> int:
        """Return the largest number of shards in a block; a power of two."""
        if self.largest_block is not None:
            return self.largest_block
        threads = sum(self._find_workers().values())
        if name not in self._pace:
            wanted = n / (4 * threads)
        else:
            wanted = min(n / threads, WHILE / max(self._pace[name], 1e-9))
        return 1 << max(0, int(wanted).bit_length() - 1)

    def _take(self, turn: _Turn, reply: Reply) -> Any:
        """Return the value of a reply, or raise its error."""
        if reply.error is not None:
            if reply.trace and not isinstance(reply.error, SoftcountError):
                reply.error.add_note(f"In a worker process:\n{reply.trace}")
            raise reply.error
        assert reply.value is not None
        if turn.call.adds:
            self._sizes[self._functions.name(turn.call.function)] = reply.value.size
        self.moved[1] += reply.value.size
        return load(reply.value)

    def _replies(self, turn: _Turn, fetches: bool = True) -> Iterator[Any]:
        """Deal blocks out to workers. Yield their replies in order; ask again for what is lost.

        A worker has one block more than threads, so that the next is at hand. It gets blocks whose
        shards it had before, and when there are no more, those of others.

        ``fetches``  otherwise replies stay with workers, and pairs (future, address) are yielded
        """
        n, turned, threads = len(turn.blocks), 0, sum(self._find_workers().values())
        window = n if turn.call.adds or turn.call.writes else 4 * threads
        waiting = self._assign(turn)
        done: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        finished: dict[int, Any] = {}
        while turned < n:
            if turned in finished:
                yield finished.pop(turned)
                turned += 1
                continue
            workers = self._find_workers()
            loads = Counter(asked.address for asked in turn.running.values())
            for address, threads in workers.items():
                while loads[address] <= threads:
                    is_idle = loads[address] < threads
                    position = _choose(waiting, address, is_idle, turned + window)
                    if position is None:
                        break
                    future = self._ask(turn, position, address)
                    turn.running[future] = _Asked(position, address)
                    self._connection.tell(future, done, fetches)
                    loads[address] += 1
            future, result = _next(done)
            asked = turn.running.pop(future, None)  # None: asked for again in the meantime
            if asked is not None:
                lost = isinstance(result, Exception)
                if not fetches:
                    if lost:
                        raise _Again
                    finished[asked.position] = future, asked.address
                    turn.tell(asked.position, len(workers))
                    continue
                if lost or not self._accept(turn, asked, result):
                    self._count_try(turn, asked.position, result if lost else None)
                    waiting[""].appendleft(asked.position)
                    continue
                finished[asked.position] = result
                turn.tell(asked.position, len(workers))
                if result.error is not None:  # what comes after it is not wanted
                    n = min(n, asked.position + 1)
                    for positions in waiting.values():
                        while positions and positions[-1] >= n:
                            positions.pop()
            for future, asked in list(turn.running.items()):
                if asked.address not in self._workers:
                    if not fetches:
                        raise _Again
                    del turn.running[future]
                    future.cancel(force=True)
                    self._count_try(turn, asked.position, None)
                    waiting[""].appendleft(asked.position)

    def _assign(self, turn: _Turn) -> dict[str, deque[int]]:
        """Return the positions of blocks by the workers that should have them; "": any worker."""
        workers = list(self._find_workers())
        waiting: dict[str, deque[int]] = defaultdict(deque)
        for position, block in enumerate(turn.blocks):
            home = self._homes.get(block[0], "")
            if home not in workers:
                keeps = turn.call.adds or turn.call.writes
                home = workers[position * len(workers) // len(turn.blocks)] if keeps else ""
            waiting[home].append(position)
        return waiting

    def _ask(self, turn: _Turn, position: int, address: str) -> Any:
        """Ask a worker for a block."""
        call, block = turn.call, turn.blocks[position]
        digest, method = self._functions.name(call.function)
        parcels = {digest: self._functions.packed(digest)}
        if self._sequence is not None:
            parcels[self._sequence_name] = self._sequence
        shards = tuple(self._find_shard(shard) for shard in block)
        known = set() if position in turn.in_full else self._given[address]
        for shard, name in zip(block, shards, strict=True):
            if name and name not in known:
                parcels[name] = pack(self.shards[shard], "a shard")
        parcels = {name: packed for name, packed in parcels.items() if name not in known}
        # few blocks: each may use all threads of its worker
        alone = self._threads_inside and len(turn.blocks) <= len(self._workers)
        threads = self._workers.get(address, 1) if alone else 1
        request = Request(
            folder=str(self._folder),
            function=(digest, method),
            params=turn.params,
            against=turn.against,
            how=replace(call.how, against=None, threads=threads),
            adds=call.adds,
            block=block,
            shards=shards,
            sequence=self._sequence_name,
            reads=tuple(self._versions.get(shard) for shard in block),
            writes=call.writes,
            modules=tuple(self._modules),
            memory=self._engine.memory,
            parcels=parcels,
        )
        self.moved[0] += sum(packed.size for packed in parcels.values())
        return self._connection.submit(do, request, address)

    def _find_shard(self, shard: int) -> str:
        """Write a shard to a file and return ""; if it cannot be one, return its parcel's name."""
        if self._sequence is not None:
            return ""
        if shard not in self._parcels:
            item = self.shards[shard]
            path = self._folder / f"shards/{shard}"
            try:
                size, modules = folder.write(path, item)
                self._parcels[shard] = ""
                self._modules |= modules
                self.moved[0] += size
            except NotRecordable:
                self._parcels[shard] = pack(item, "a shard").digest
        return self._parcels[shard]

    def _accept(self, turn: _Turn, asked: _Asked, reply: Reply) -> bool:
        """Note what a reply says; return whether the work was done: the worker may lack things."""
        if reply.lacks:
            self._given[reply.where] -= set(reply.lacks)
            turn.in_full.add(asked.position)
            return False
        self._note(turn, reply)
        self._note_home(turn, asked.position, reply.where)
        name = self._functions.name(turn.call.function)
        self._pace[name] = reply.seconds / len(turn.blocks[asked.position])
        return True

    def _count_try(self, turn: _Turn, position: int, error: Exception | None) -> None:
        """Count that a block was lost, and raise an error if it was too often."""
        turn.tries[position] += 1
        if turn.tries[position] < TRIES:
            return
        block = turn.blocks[position]
        shards = f"shard{'s' * (len(block) > 1)} {block[0]}" + f" to {block[-1]}" * (len(block) > 1)
        reason = "" if error is None else f": {str(error)[:MOST_SAID]}"
        raise SoftcountError(
            f"the cluster lost the work on {shards} {TRIES} times{reason}",
            "workers that end again and again may lack memory: look at what they say",
        ) from error

    def _note(self, turn: _Turn, reply: Reply) -> None:
        """Note which shards have new states."""
        self._modules |= reply.modules
        for shard in reply.wrote:
            assert turn.call.writes is not None
            self._left(shard, turn.call.writes)

    def _note_home(self, turn: _Turn, position: int, address: str) -> None:
        """Note that a worker has the shards of a block, and all parcels that it needed."""
        block = turn.blocks[position]
        self._homes |= dict.fromkeys(block, address)
        names = {self._parcels.get(shard, "") for shard in block} - {""}
        own = self._functions.name(turn.call.function)[0], self._sequence_name
        self._given[address].update(names, own)

    def _add_on_workers(self, turn: _Turn) -> Stats:
        """Sum in the fixed tree on the workers: only the total comes here.

        Neighbours are mostly at the same worker, so that few parts move. A part stays with its
        worker as Dask's result; if a worker goes, all of it is begun anew (`_Again`).
        """
        submit = self._connection.submit
        sums: list[tuple[int, Any, str]] = []
        workers = set(self._find_workers())
        for position, (part, address) in enumerate(self._replies(turn, fetches=False)):
            size, total = len(turn.blocks[position]), part
            self._note_home(turn, position, address)
            while sums and sums[-1][0] == size:
                _, left, address = sums.pop()
                total, size = submit(add, left, address, total), 2 * size
            sums.append((size, total, address))
        _, total, _ = sums.pop()
        while sums:
            _, left, address = sums.pop()
            total = submit(add, left, address, total)
        done: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        self._connection.tell(total, done, fetches=True)
        reply = None
        while reply is None:
            _, reply = _next(done)
            if isinstance(reply, Exception) or workers - set(self._find_workers()):
                raise _Again
        if reply.lacks:
            self._given.clear()
            raise _Again
        self._note(turn, reply)
        n = sum(map(len, turn.blocks))
        self._pace[self._functions.name(turn.call.function)] = reply.seconds / n
        return cast(Stats, self._take(turn, reply))

    # workers
    def _find_workers(self) -> dict[str, int]:
        """Return the workers and their numbers of threads; wait until there are some."""
        began, told = time.monotonic(), False
        while not (workers := self._connection.meet_workers(self._probe, self._engine.strict)):
            waited = time.monotonic() - began
            where = f"the cluster at {self._connection.address}"
            if waited > self._engine.patience:
                raise SoftcountError(
                    f"{where} has had no workers for {waited:.0f} seconds",
                    "start some by `dask worker ADDRESS`, or wait longer: Dask(…, patience=3600)",
                )
            progress.tell(0, len(self), 0)
            if waited > 2 * LOOK and not told:
                told = True
                most = self._engine.patience
                text = f"{where} has no workers: waiting for some, up to {most:.0f} seconds"
                warnings.warn(text, WaitingWarning, stacklevel=2)
            time.sleep(interrupt.NAP)
            interrupt.check()
        if workers is not self._workers:
            self._workers = workers
            for address in [one for one in self._given if one not in workers]:
                del self._given[address]
        return workers


def _choose(waiting: Mapping[str, deque[int]], address: str, is_idle: bool, end: int) -> int | None:
    """Take the position of the next block for a worker, before ``end``, if there is one.

    A worker without work takes over from the one that has most before it.
    """
    for name in (address, ""):
        if waiting[name] and waiting[name][0] < end:
            return waiting[name].popleft()
    if is_idle:
        longest = max(waiting.values(), key=len)
        if longest and longest[-1] < end:
            return longest.pop()
    return None


def _next(done: SimpleQueue[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return the next future that is done, with its result or an exception.

    Nothing after a moment, to look at other things.
    """
    interrupt.check()
    with suppress(Empty):
        return done.get(timeout=interrupt.NAP)
    return None, None
