"""Connections to Dask clusters: clients, the workers that they reach, and clusters of our own."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import weakref
from abc import abstractmethod
from contextlib import suppress
from functools import cache
from multiprocessing.spawn import get_executable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from softcount.core.errors import SoftcountError, brief
from softcount.engines import arithmetic
from softcount.engines.cloud import Place, find_place
from softcount.engines.dask_tasks import forget, greet
from softcount.engines.folder import make_session, remove_session
from softcount.engines.remote import Shared
from softcount.kernels.threads import Threads, in_child, usable_cpus

LOOK = 0.5
"""Seconds between looks at which workers there are."""
MOST_SAID = 200
"""Characters of another library's message that are repeated in ours."""
FETCHERS = 4
"""Threads that fetch results."""
FETCHING = 120.0
"""Seconds that fetching one may take."""
STARTING = 300.0
"""Seconds that the workers of a cluster of our own have to start."""


class ArithmeticWarning(UserWarning):
    """Machines compute some functions differently, so that the last bits of results may differ."""


class WaitingWarning(UserWarning):
    """There are no workers: a fit waits for them."""


# Connections: clients, and what is known of the workers that they reach.


class Connection(Shared):
    """A client of a scheduler, and the folder of its sessions."""

    def __init__(self, folder: Place) -> None:
        super().__init__()
        self.folder = folder
        self._numbers = itertools.count()
        self._met: dict[str, str] = {}
        """Why a worker cannot be used, by its address; "" if it can."""
        self._meeting: set[str] = set()
        self._workers: dict[str, int] = {}
        self._looked = -LOOK
        self._threads = Threads(FETCHERS, "softcount-fetch")

    @property
    @abstractmethod
    def client(self) -> Any:
        """The client; a new one, if the last one was closed."""

    @property
    def address(self) -> str:
        return str(self.client.scheduler.address)

    def submit(self, function: Any, argument: Any, address: str, *more: Any) -> Any:
        """Submit work for a worker.

        If that goes, Dask does nothing, and we ask another: tasks that may go to any worker, but
        prefer one that has gone, are not always given to those that come later.
        """
        key = f"softcount-{function.__name__}-{secrets.token_hex(4)}-{next(self._numbers)}"
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.client.submit(
                *(function, argument, *more),
                key=key,
                workers=[address],
                pure=False,
            )

    def tell(self, future: Any, done: SimpleQueue[tuple[Any, Any]], fetches: bool) -> None:
        """Put a future into a queue when it is done, with its result or an exception.

        Results are fetched by threads of their own: one that was lost with its worker, which Dask
        might wait for, holds nobody up.
        """

        def fetch(future: Any) -> None:
            try:
                result = future.result(timeout=FETCHING) if fetches else future.exception(FETCHING)
            except Exception as error:
                result = error
            done.put((future, result))

        future.add_done_callback(lambda future: self._threads.submit(fetch, future))

    def forget(self, path: str) -> None:
        """Tell the workers to drop what belongs to a session, as far as they are there."""
        with suppress(Exception):
            self.client.run(forget, path, wait=False)

    def meet_workers(self, probe: Place, strict: bool, opening: bool = False) -> dict[str, int]:
        """Return usable workers and their numbers of threads, as of a moment ago.

        ``opening``  raise an error for workers that cannot be used; later ones are left out
        """
        if not opening and time.monotonic() - self._looked < LOOK:
            return self._workers
        try:
            found = {str(address): int(n) for address, n in self.client.nthreads().items()}
        except Exception as error:  # the scheduler may come back
            if isinstance(error, SoftcountError):
                raise
            found = {}
        new = [one for one in found if one not in self._met and one not in self._meeting]
        if new and not opening and any(one in self._met for one in found):
            # a worker that comes later takes seconds to import what it needs: nobody waits for it
            self._meeting.update(new)
            self._threads.submit(self._meet_aside, new, probe, strict)
        elif new:
            self._meet(new, probe, strict, opening)
        workers = {address: n for address, n in found.items() if not self._met.get(address, "?")}
        if workers != self._workers:
            self._workers = workers
        self._looked = time.monotonic()
        return self._workers

    def _meet_aside(self, addresses: list[str], probe: Place, strict: bool) -> None:
        try:
            self._meet(addresses, probe, strict, opening=False)
        finally:
            self._meeting.difference_update(addresses)

    def _meet(self, addresses: list[str], probe: Place, strict: bool, opening: bool) -> None:
        """Find out whether workers can be used."""
        try:
            cards = self.client.run(greet, str(probe), workers=addresses, on_error="return")
        except Exception:  # they have gone, or the scheduler has: they are asked again
            return
        mine, odd = arithmetic.fingerprint(), []
        for address, card in cards.items():
            if isinstance(card, OSError | TimeoutError):  # this one has gone
                continue
            reason = _refuse(card, self.folder)
            functions = [] if reason else [f for f in mine if card["arithmetic"].get(f) != mine[f]]
            if functions:
                text = f"worker {address} computes {', '.join(functions)} differently"
                odd.append(text)
                if strict:
                    reason = f"{text} from this machine", "strict=False only warns of that"
            self._met[address] = " ".join(reason)
            if reason and opening:
                raise SoftcountError(f"worker {address} {reason[0]}", reason[1])
            if reason:
                text = f"worker {address}, which came later, is not used: it {reason[0]}"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        if odd and not strict:
            warnings.warn(
                f"{'; '.join(odd)} from this machine: the last bits of results may depend on which "
                "machines do the work",
                ArithmeticWarning,
                stacklevel=2,
            )


def _refuse(card: Any, folder: Place) -> tuple[str, ...]:
    """Return why a worker cannot be used, and what to do about it; nothing if it can."""
    if isinstance(card, BaseException):
        return (
            f"cannot run softcount: {str(card)[:MOST_SAID]}",
            "install the same softcount and the same libraries for all workers",
        )
    mine, its = arithmetic.versions(), card["versions"]
    other = [
        f"{name} {its.get(name)}, not {mine[name]}" for name in mine if its[name] != mine[name]
    ]
    if other:
        return f"has {', '.join(other)}", "install the same versions everywhere"
    if not card["sees"]:
        return (
            f"does not see the folder {folder}",
            "give a folder that this process and all workers reach by the same path, or a URL",
        )
    return ()


class _Given(Connection):
    """A client that the user opened."""

    def __init__(self, client: Any, folder: Place) -> None:
        super().__init__(folder)
        self._client = client

    @property
    def client(self) -> Any:
        if self._client.status == "closed":
            raise SoftcountError("the client of the cluster has been closed", "give a new one")
        return self._client


class _Remote(Connection):
    """A client of ours for a scheduler that somebody else started."""

    def __init__(self, address: str, folder: Place) -> None:
        super().__init__(folder)
        self._address, self._client = address, None

    @property
    def address(self) -> str:
        return self._address

    @property
    def client(self) -> Any:
        if self._client is None or self._client.status == "closed":
            self._client = _open_client(self._address)
        return self._client

    def end(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


class _Own(Connection):
    """A scheduler in this process, and workers in processes of their own.

    Workers are not started by multiprocessing, which would run the user's script again in each of
    them, and let Ctrl-C end them.
    """

    def __init__(self, size: int, folder: Place | None) -> None:
        super().__init__(folder or Path())
        self.size, self._wanted = size, folder
        self._client: Any = None

    @property
    def client(self) -> Any:
        with self.lock:
            if self._client is None:
                self._start()
        return self._client

    def enter(self) -> None:
        super().enter()
        _ = self.client

    def _start(self) -> None:
        import dask
        from distributed import LocalCluster

        self._place = make_session(Path(tempfile.gettempdir()))
        self.folder = self._wanted or self._place
        with dask.config.set({"temporary-directory": str(self._place)}):
            self._cluster = LocalCluster(
                n_workers=0,
                dashboard_address="127.0.0.1:0",  # a port that is free
                silence_logs=logging.CRITICAL,
            )
        paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
        options = {
            "nworkers": self.size,
            "nthreads": 1,
            "memory-limit": 0,
            "local-directory": str(self._place),
            "death-timeout": 60,  # if this process ends without a word
        }
        arguments = [*(f"--{name}={value}" for name, value in options.items()), "--no-dashboard"]
        module = "distributed.cli.dask_worker"
        self._process = subprocess.Popen(
            [get_executable(), "-m", module, self._cluster.scheduler_address, *arguments],
            env={**os.environ, "PYTHONPATH": paths, "DASK_LOGGING__DISTRIBUTED": "critical"},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        client = _open_client(self._cluster.scheduler_address, direct_to_workers=True)
        began = time.monotonic()
        while len(client.nthreads()) < self.size:
            if self._process.poll() is not None or time.monotonic() - began > STARTING:
                client.close()
                self._stop()
                raise SoftcountError(
                    "the workers could not be started",
                    "what they said about that stands in the standard error of this program",
                )
            time.sleep(0.05)
        self._client = client

    def end(self) -> None:
        with self.lock:
            client, self._client = self._client, None
            self._met, self._workers, self._looked = {}, {}, -LOOK
        if client is not None:
            client.close()
            self._stop()

    def _stop(self) -> None:
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        if hasattr(os, "killpg"):
            with suppress(OSError):  # all have ended
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._cluster.close()
        remove_session(self._place)


_clusters: dict[tuple[int, str], _Own] = {}
"""By number of workers, and the folder that was asked for."""
_remotes: dict[tuple[str, str], _Remote] = {}
_givens: weakref.WeakKeyDictionary[Any, dict[str, _Given]] = weakref.WeakKeyDictionary()
_of_parents: list[Any] = []


def connect(given: Any, workers: int | None, folder: str | os.PathLike[str] | None) -> Connection:
    """Return the connection that an engine asks for."""
    _require_distributed()
    path = None if folder is None else find_place(folder)
    if isinstance(path, Path) and not path.is_dir():
        raise SoftcountError(f"the folder {path} of the cluster does not exist", "make it first")
    if given is None:
        key = workers or usable_cpus(), str(path)
        return _clusters.setdefault(key, _Own(key[0], path))
    assert path is not None
    if isinstance(given, str):
        return _remotes.setdefault((given, str(path)), _Remote(given, path))
    if not hasattr(given, "submit") or not hasattr(given, "scheduler"):
        raise SoftcountError(
            f"{brief(given)} is neither the address of a scheduler nor a client of Dask",
            'give an address such as "tcp://127.0.0.1:8786", or a distributed.Client',
        )
    if given.asynchronous:
        raise SoftcountError("the client is asynchronous", "give one that is not")
    return _givens.setdefault(given, {}).setdefault(str(path), _Given(given, path))


def disconnect(given: Any, workers: int | None) -> None:
    """End connections of ours that an engine may have asked for, if they have no sessions."""
    for (address, _), remote in list(_remotes.items()):
        if address == given:
            remote.end_if_idle()
    for (size, _), cluster in list(_clusters.items()):
        if given is None and size == (workers or usable_cpus()):
            cluster.end_if_idle()


def _require_distributed() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise SoftcountError(
            "the engine Dask needs the package distributed", "pip install 'softcount[dask]'"
        ) from error


def _open_client(address: str, **more: Any) -> Any:
    from distributed import Client

    _end_at_exit()
    try:
        return Client(address, set_as_default=False, **more)
    except (OSError, ValueError) as error:
        raise SoftcountError(
            f"there is no scheduler at {address}: {str(error)[:MOST_SAID]}",
            "start one by `dask scheduler`, and workers by `dask worker ADDRESS`",
        ) from error


def _forget_connections() -> None:
    """In a forked process: they are its parent's. They must not even be garbage."""
    global _clusters, _remotes, _givens
    _of_parents.extend([_clusters, _remotes, _givens])
    _clusters, _remotes, _givens = {}, {}, weakref.WeakKeyDictionary()


@cache
def _end_at_exit() -> None:
    """Have connections ended at exit: before what they stand on, which is last in, first out."""
    atexit.register(_end_connections)


def _end_connections() -> None:
    for connection in (*_clusters.values(), *_remotes.values()):
        with suppress(Exception):
            connection.end()


in_child(_forget_connections)
