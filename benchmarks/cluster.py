"""What a step costs on a cluster: bytes moved, CPU seconds of client and workers, seconds.

Fits each model with threads (Local), with worker processes (Processes) and on Dask workers of this
machine, and measures every step after the first, which sends the shards: bytes that this process
sent (parameters, written to a file once, however many workers read it) and received (sums), its own
CPU seconds, those of the workers, and seconds of wall time. The median of the steps is shown. All
runs of a model must have the same objective, to the bit.

    python benchmarks/cluster.py [--scale 0.1] [--only ibm1,hmm] [--steps 3] [--blocks 1,4] [--json]

--scale 0.1 takes a tenth of the data, --blocks largest blocks of shards to try besides the usual.
At the end it prints an estimate for data and clusters that are not at hand, from these figures and
from a model of a step that is printed with it (see `MODEL`).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import softcount as sc
from softcount.text.bitext import as_bitext
from softcount.text.sequences import sequences

TICK = os.sysconf("SC_CLK_TCK")
V = 50_000


# data


def draw_words(n: int, words: int, seed: int = 0) -> Any:
    """Numbers of words by Zipf's law."""
    steps = np.cumsum(1.0 / np.arange(1, words + 1))
    rng = np.random.default_rng(seed)
    return np.searchsorted(steps, rng.uniform(0.0, steps[-1], size=n))


def sentences(n: int, length: int, words: int) -> list[str]:
    """Lines of ``length`` words."""
    drawn = draw_words(n * length, words).reshape(n, length)
    names = np.array([f"w{k}" for k in range(words)], dtype=object)
    return [" ".join(row) for row in names[drawn].tolist()]


def pairs(n: int) -> Any:
    """Pairs whose words are translated one by one."""
    return as_bitext([(line, line.replace("w", "v")) for line in sentences(n, 16, 6000)])


def documents(n: int, length: int) -> Any:
    """A matrix of counts."""
    from scipy import sparse

    rows = np.repeat(np.arange(n), length)
    columns = draw_words(n * length, V)
    return sparse.csr_matrix((np.ones(n * length), (rows, columns)), shape=(n, V))


# models


@dataclass(frozen=True)
class Case:
    """A model and its data.

    ``unit``     what ``size`` counts
    ``size``     how many there are at scale 1
    ``data``     function that makes so many
    ``model``    function from a learner and an engine to the estimator
    ``target``   how many the estimate is for
    ``growth``   the power of the number of items with which the tables grow: vocabularies are
                 limited, but new pairs of words go on to occur together
    """

    unit: str
    size: int
    data: Callable[[int], Any]
    model: Callable[..., Any]
    target: float
    growth: float = 0.0


CASES = {
    "ibm1": Case("pairs", 400_000, pairs, sc.align.IBM1, 10e6, 0.7),
    "aligner": Case(
        "pairs",
        400_000,
        pairs,
        lambda **options: sc.Aligner("ibm1", warm_up=0, **options),
        10e6,
        0.7,
    ),
    "lda": Case(
        "documents",
        40_000,
        lambda n: documents(n, 100),
        lambda **options: sc.LDA(100, init="random", **options),
        100e6,
    ),
    "hmm": Case(
        "tokens",
        8_000_000,
        lambda n: sequences(sentences(n // 20, 20, 10_000)),
        lambda **options: sc.HMM(45, **options),
        1e9,
    ),
    "mixture": Case(
        "documents",
        600_000,
        lambda n: documents(n, 20),
        lambda **options: sc.MultinomialMixture(50, init="random", **options),
        100e6,
    ),
}


# measuring


@dataclass(frozen=True)
class Now:
    """Clocks and counters at one time."""

    wall: float
    client: float
    workers: float
    sent: int
    received: int


class Watched:
    """An engine whose session can be looked at.

    ``block``  the largest number of shards in a block; None: what the engine chooses
    """

    def __init__(self, engine: Any, block: int | None = None) -> None:
        self.engine, self.block, self.session = engine, block, None

    @property
    def threads(self) -> Any:
        return self.engine.threads

    def __deepcopy__(self, memo: Any) -> Watched:
        return self

    def open(self, shards: Any, *, threads_inside: bool = False) -> Any:
        self.session = self.engine.open(shards, threads_inside=threads_inside)
        if self.block is not None:
            self.session.largest_block = self.block
        return self.session

    def look(self) -> Now:
        sent, received = getattr(self.session, "moved", (0, 0))
        return Now(
            time.perf_counter(), time.process_time(), cpu_of_children(), int(sent), int(received)
        )


def cpu_of_children() -> float:
    """CPU seconds of all processes that this one, or one of them, has started (on Linux)."""
    parents, spent = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = file.read_text()
        except OSError:  # it has ended
            continue
        fields = text.rpartition(")")[2].split()
        number = int(file.parent.name)
        parents[number] = int(fields[1])
        spent[number] = (int(fields[11]) + int(fields[12])) / TICK

    def is_ours(number: int) -> bool:
        while number in parents:
            number = parents[number]
            if number == os.getpid():
                return True
        return False

    return sum(seconds for number, seconds in spent.items() if is_ours(number))


def measure(case: Case, data: Any, engine: Any, block: int | None, steps: int) -> dict[str, Any]:
    """Fit, and return the median figures of a step."""
    watched = Watched(engine, block)
    seen: list[Now] = []
    learner = sc.EM(max_iter=steps + 1, tol=0.0)
    model = case.model(learner=learner, engine=watched)
    model.fit(data, on_step=lambda state: seen.append(watched.look()))
    rows = list(pairwise(seen[1:]))  # the first step sends the shards

    def median(read: Callable[[Now], float]) -> float:
        return statistics.median(read(b) - read(a) for a, b in rows)

    return {
        "wall s": median(lambda now: now.wall),
        "client CPU s": median(lambda now: now.client),
        "workers CPU s": median(lambda now: now.workers),
        "MB sent": median(lambda now: now.sent) / 1e6,
        "MB received": median(lambda now: now.received) / 1e6,
        "MB sent in all": seen[-1].sent / 1e6,
        "shards": len(watched.session),
        "objective": float(model.trace_[-1].objective).hex(),
        "MB of tables": sum(_sizes(model)) / 1e6,
    }


def _sizes(model: Any) -> Iterator[int]:
    sides = getattr(model, "_directions", (model,))
    for side in sides:
        for table in side.raw_params_.values():
            yield np.asarray(table).nbytes


def engines(workers: list[int]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the engines to compare, by name."""
    for n in workers:
        yield f"Local, {n} threads" if n > 1 else "Local, 1 thread", lambda n=n: sc.Local(threads=n)
    yield "Processes, 2", lambda: sc.Processes(2)
    for n in workers:
        yield f"Dask, {n} worker{'s' * (n > 1)}", lambda n=n: sc.Dask(workers=n)


COLUMNS = ("wall s", "client CPU s", "workers CPU s", "MB sent", "MB received")


def run(name: str, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Measure a model with all engines, and print a table."""
    case = CASES[name]
    n = max(200, int(case.size * options.scale))
    data = case.data(n)
    few = case.data(200)
    found: dict[str, dict[str, Any]] = {}
    print(f"\n{name}: {n:,} {case.unit}")
    print(f"| engine | {' | '.join(COLUMNS)} |\n{'|---' * (len(COLUMNS) + 1)}|", flush=True)
    case.model(learner=sc.EM(max_iter=1, tol=0.0)).fit(few)  # compile
    for label, make in engines(options.workers):
        blocks = (
            [None, *options.blocks] if label == f"Dask, {max(options.workers)} workers" else [None]
        )
        for block in blocks:
            engine = make()
            key = label if block is None else f"{label}, blocks of {block}"
            found[key] = row = measure(case, data, engine, block, options.steps)
            print(f"| {key} | {' | '.join(f'{row[c]:.3g}' for c in COLUMNS)} |", flush=True)
    (first, *others) = found.values()
    same = all(row["objective"] == first["objective"] for row in others)
    print(
        f"{first['shards']} shards; tables {first['MB of tables']:,.0f} MB; "
        f"{'the same bits everywhere' if same else 'THE OBJECTIVES DIFFER'}",
        flush=True,
    )
    for row in found.values():
        row["items"] = n
    return found


# the estimate

NETWORK, DISK = 1.25e9, 1.0e9
"""Bytes a second: of a connection of 10 Gbit/s, and of a shared file system for all together."""
THREADS, MEMORY = 4, 16e9
"""Threads and bytes of memory of a worker."""

MODEL = f"""\
A step on W workers with {THREADS} threads each takes

    E-step      C n / min(W × {THREADS}, shards × threads that a shard can use)
                C: CPU seconds an item with Local and one thread; n items
    parameters  P / d  +  W P / d  written once by the client, and read by every worker;
                P: bytes of the tables, d = {DISK / 1e9:g} GB/s, the shared file system for all
    sums        S log2(W) / b  +  S / b  added in a tree between workers, then sent to the client;
                S: bytes of the counts, b = {NETWORK / 1e9:g} GB/s, one connection
    client      c (P / P0)  its own CPU seconds, measured with Dask, in proportion to the tables

one after the other. Tables of alignment grow with the {CASES["ibm1"].growth:g}th power of the
pairs, others not at all. A worker holds P, and for each thread a sum S, dense in the end."""


def estimate(name: str, found: Mapping[str, Mapping[str, Any]], workers: int) -> dict[str, Any]:
    """Apply the model to a case."""
    case = CASES[name]
    local = found["Local, 1 thread"]
    dask = next(row for key, row in found.items() if key.startswith("Dask, 2"))
    times = case.target / local["items"]
    larger = times**case.growth
    P = local["MB of tables"] * 1e6 * larger
    S = max(dask["MB received"], local["MB of tables"]) * 1e6 * larger
    shards = max(1, round(local["shards"] * times))
    used = min(workers * THREADS, shards)
    parts = {
        "E-step": local["client CPU s"] * times / used,
        "parameters": (1 + workers) * P / DISK,
        "sums": S * (math.log2(workers) + 1.0) / NETWORK,
        "client": dask["client CPU s"] * larger,
    }
    return {
        **parts,
        "step": sum(parts.values()),
        "alone": local["client CPU s"] * times / THREADS,
        "shards": shards,
        "GB of tables": P / 1e9,
        "GB of a worker": (P + THREADS * S) / 1e9,
        "wall": max(parts, key=lambda part: parts[part]),
        "fits": P + THREADS * S < MEMORY,
    }


def print_estimates(found: Mapping[str, Any]) -> dict[str, Any]:
    """Print the model of a step, and what it says."""
    names = ("E-step", "parameters", "sums", "client", "step")
    print(f"\n{MODEL}\n")
    print("| | workers | " + " | ".join(f"{name} s" for name in names), end=" | ")
    print("one machine s | shards | GB of tables | GB of a worker | the wall |")
    print("|---" * 12 + "|")
    answers = {}
    for name in found:
        for workers in (10, 100):
            one = answers[f"{name}, {workers}"] = estimate(name, found[name], workers)
            cells = [f"{CASES[name].target:,.0f} {CASES[name].unit}, {name}", str(workers)]
            cells += [f"{one[part]:.3g}" for part in (*names, "alone")]
            cells += [f"{one['shards']:,}", f"{one['GB of tables']:.2g}"]
            cells += [f"{one['GB of a worker']:.2g}", one["wall"]]
            cells[-1] += "" if one["fits"] else ", and memory"
            print(f"| {' | '.join(cells)} |")
    return answers


def numbers(text: str) -> list[int]:
    """Read whole numbers, separated by commas."""
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    """Measure every model, and print tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--workers", type=numbers, default=[1, 2, 4])
    parser.add_argument("--blocks", type=numbers, default=[1, 4])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {name: run(name, options) for name in options.only.split(",")}
    estimates = print_estimates(found)
    if options.json:
        print(json.dumps({"measured": found, "estimated": estimates}, indent=1))


if __name__ == "__main__":
    main()
