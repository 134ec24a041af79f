"""A scheduler and workers of Dask, in processes that can be killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

from softcount.engines import Dask

ROOT = Path(__file__).parent.parent.parent


def environment() -> dict[str, str]:
    """The environment of processes that find softcount and its tests."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


class Programs:
    """A scheduler and workers, as they are started in a shell; they end with the block."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.schedulers: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{program}", *arguments, "--no-dashboard"],
            env={**environment(), "DASK_LOGGING__DISTRIBUTED": "critical"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def start_scheduler(self) -> None:
        self.schedulers.append(self._start("scheduler", f"--port={self.port}", "--host=127.0.0.1"))

    def start_worker(self) -> None:
        arguments = ("--nthreads=1", "--no-nanny", "--death-timeout=60")
        self.workers.append(self._start("worker", self.address, *arguments))

    @staticmethod
    def kill(processes: list[subprocess.Popen[bytes]], *which: subprocess.Popen[bytes]) -> None:
        """SIGKILL some of these processes, or all, and wait until they have ended."""
        for process in which or tuple(processes):
            process.kill()
            process.wait()
            processes.remove(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        Dask(self.address, folder=".").close()
        self.kill(self.workers)
        self.kill(self.schedulers)
