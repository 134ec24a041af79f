"""Kill workers, schedulers and fits on a cluster at random moments, and compare the bits.

    python -m tests.engines.kills [--kills 30] [--ends 5] [--only hmm,lda]

Each model learns on two workers. SIGKILL comes at a random part of the time that a fit takes: for
one worker; each fifth time for both, so that there is none for a while. Another is started for each
that was killed, and joins late. Then (``--ends``) the scheduler, the workers and the fit itself are
killed together; a new fit goes on from the folder, on a new cluster.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from softcount.engines import Dask
from tests.core.kills import MODELS, fit
from tests.engines.programs import ROOT, Programs, environment
from tests.engines.shards import SMALL_CUTS

DISTRIBUTED = [name for name in MODELS if name != "lda gibbs"]
"""Models that learn on the cluster: collapsed samplers are local."""


def learn(name: str, folder: Path | None = None, engine: Dask | None = None) -> str:
    """Fit a model to data in several shards; return a digest of what it learned."""
    with ExitStack() as stack:
        for limit, value in SMALL_CUTS.items():
            stack.enter_context(mock.patch(limit, value))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        return fit(name, folder, engine)


def kill_workers(name: str, kills: int, programs: Programs, place: Path) -> tuple[int, int]:
    """Return in how many fits workers were killed before the end, and how many came out the same.

    ``place``  the folder of the cluster
    """
    engine, rng = Dask(programs.address, folder=place), random.Random(name)
    wanted = learn(name)
    learn(name, engine=engine)  # the workers load what they need
    began = time.monotonic()
    assert learn(name, engine=engine) == wanted, f"{name}: a cluster learns something else"
    duration = time.monotonic() - began
    hit = same = 0
    for number in range(kills):
        wait_for_workers(programs, engine)
        ended = threading.Event()
        victims = programs.workers[:] if number % 5 == 4 else [rng.choice(programs.workers)]
        moment, pause = rng.uniform(0.0, 0.9) * duration, rng.uniform(0.0, 1.0)

        def strike(
            ended: threading.Event = ended,
            victims: list[subprocess.Popen[bytes]] = victims,
            moment: float = moment,
            pause: float = pause,
        ) -> None:
            nonlocal hit
            hit += not ended.wait(moment)
            programs.kill(programs.workers, *victims)
            time.sleep(pause)
            for _ in victims:
                programs.start_worker()

        killer = threading.Thread(target=strike)
        killer.start()
        same += learn(name, engine=engine) == wanted
        ended.set()
        killer.join()
    return hit, same


def wait_for_workers(programs: Programs, engine: Dask, n: int = 2) -> None:
    """Wait until so many workers are there, and none that was killed is counted any more."""
    with engine.open([1, 2]) as session:
        client = session._connection.client
        while len(client.scheduler_info()["workers"]) != n or len(client.nthreads()) != n:
            time.sleep(0.1)
    assert len(programs.workers) == n


def end_everything(name: str, ends: int, place: Path) -> tuple[int, int]:
    """Return how many fits were killed, together with their cluster, and came out the same."""
    rng, wanted = random.Random(name), learn(name)
    hit = same = 0
    for number in range(ends):
        folder, digests = place / f"{name} {number}", []
        duration: float | None = rng.uniform(0.5, 4.0)
        while not digests:
            with Programs() as programs:
                programs.start_scheduler()
                programs.start_worker()
                programs.start_worker()
                command = ("-m", "tests.engines.kills", "--child", name, programs.address)
                child = subprocess.Popen(
                    [sys.executable, *command, str(folder)],
                    env=environment(),
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                assert child.stdout is not None
                assert child.stdout.readline() == "begins\n"
                if duration is not None:
                    time.sleep(duration)
                    programs.kill(programs.schedulers)
                    programs.kill(programs.workers)
                    child.kill()
                digests = child.stdout.read().split()
                child.wait()
                hit += not digests
                duration = None  # the next one is let alone
        same += digests == [wanted]
    return hit, same


def be_child(name: str, address: str, folder: str) -> None:
    """Be a fit that is to be killed: it says when it begins, and what it learned."""
    place = Path(f"{folder} cluster")
    place.mkdir(exist_ok=True)
    print("begins", flush=True)
    print(learn(name, Path(folder), Dask(address, folder=place)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30, help="fits of which workers are killed")
    parser.add_argument("--ends", type=int, default=5, help="fits that are killed with everything")
    parser.add_argument("--only", default="", help="names of models, comma-separated")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        be_child(*options.child)
        return
    failed = False
    for name in options.only.split(",") if options.only else DISTRIBUTED:
        with tempfile.TemporaryDirectory() as place, Programs() as programs:
            programs.start_scheduler()
            programs.start_worker()
            programs.start_worker()
            began = time.monotonic()
            hit, same = kill_workers(name, options.kills, programs, Path(place))
            all_hit, all_same = end_everything(name, options.ends, Path(place))
            seconds = time.monotonic() - began
        failed |= same < options.kills or all_same < options.ends
        print(
            f"{name:12} workers killed in {hit:3} of {options.kills} fits, the same bits "
            f"{same:3} times; everything killed in {all_hit} of {options.ends}, the same bits "
            f"{all_same} times   {seconds:.0f} s",
            flush=True,
        )
    sys.exit(failed)


if __name__ == "__main__":
    main()
