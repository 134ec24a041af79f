"""Corpora that are larger than the memory allowed: every model learns from disk under a hard limit.

Simulates data (words by Zipf's law) piece by piece, builds corpora of it, and fits each model for
two steps in a process of its own that may have no more than 1 GB: a memory cgroup where this
machine allows one, else RLIMIT_DATA. Beside it the same fit to data in memory without a limit (to a
part of the data where that says so), in the same run. Prints the most memory that each process had,
how much of it before the fit, items a second and step, and how many a CPU second (and step) from
disk for each one in memory: seconds depend on what else this machine does, CPU seconds less so.

    python benchmarks/larger_than_memory.py [--scale 0.01] [--only ibm1,hmm] [--limit 1.0]
                                            [--keep FOLDER] [--json]

--scale 0.01 takes a hundredth of the data; corpora stay in the folder of --keep, for another run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import softcount as sc
from softcount.text.corpora import build_corpus, open_corpus

WORDS = 50_000
BLOCK = 10_000
CGROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


# data


def draw_words(n: int, seed: int) -> Any:
    """Numbers of words by Zipf's law."""
    steps = np.cumsum(1.0 / np.arange(1, WORDS + 1))
    rng = np.random.default_rng(seed)
    return np.searchsorted(steps, rng.uniform(0.0, steps[-1], size=n))


NAMES = np.array([f"w{n}" for n in range(WORDS)], dtype=object)


def sentences(n: int, length: int, words: int = WORDS) -> Iterator[str]:
    """Lines of about ``length`` words."""
    rng = np.random.default_rng(0)
    for first in range(0, n, BLOCK):
        lengths = rng.integers(1, 2 * length, size=min(BLOCK, n - first))
        drawn = NAMES[draw_words(int(lengths.sum()), first) % words].tolist()
        begin = 0
        for size in lengths.tolist():
            yield " ".join(drawn[begin : begin + size])
            begin += size


def pairs(n: int) -> Iterator[str]:
    """Pairs whose words are translated one by one."""
    for line in sentences(n, 12):
        yield f"{line} ||| {line.replace('w', 'v')}"


def documents(n: int) -> Iterator[Any]:
    """Matrices of counts, ten words a document."""
    from scipy import sparse

    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        rows = np.repeat(np.arange(size), 10)
        columns = draw_words(10 * size, first)
        yield sparse.csr_matrix((np.ones(10 * size), (rows, columns)), shape=(size, WORDS))


def points(n: int) -> Iterator[Any]:
    """Points around ten centres, in ten dimensions."""
    for first in range(0, n, BLOCK):
        rng = np.random.default_rng(first)
        size = min(BLOCK, n - first)
        yield from rng.normal(size=(size, 10)) + 4.0 * rng.integers(10, size=(size, 1))


def tosses(n: int) -> Iterator[str]:
    """Twelve tosses of one of two coins."""
    rng = np.random.default_rng(0)
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        p = np.where(rng.random((size, 1)) < 0.5, 0.9, 0.2)
        for row in rng.random((size, 12)) < p:
            yield "".join(np.where(row, "H", "T").tolist())


# fits


which, flip = sc.table("which"), sc.table("flip")


@sc.story
def coins(tosses: Any) -> Any:
    """One of two coins is tossed."""
    for z in "AB":
        yield which[z], *(flip[z, x] for x in tosses)


EM = {"learner": sc.EM(max_iter=2, tol=0.0)}


@dataclass(frozen=True)
class Case:
    """A model, and what it learns from.

    ``corpus``    the name of the corpus
    ``make``      the estimator
    ``share``     the proportion of the data that the fit in memory gets, where all is too slow
    """

    corpus: str
    make: Callable[[], Any]
    share: float = 1.0


@dataclass(frozen=True)
class Data:
    """Simulated data: how many, of what kind, and of which a second's work is counted."""

    n: int
    kind: str
    simulate: Callable[[int], Iterator[Any]]
    unit: str
    tokens_each: float = 1.0


DATA = {
    "pairs": Data(1_000_000, "pairs", pairs, "pairs"),
    "text": Data(2_500_000, "sentences", lambda n: sentences(n, 20), "sentences"),
    "short": Data(200_000, "sentences", lambda n: sentences(n, 8, 10_000), "sentences"),
    "documents": Data(10_000_000, "documents", documents, "documents"),
    "points": Data(10_000_000, "vectors", points, "points"),
    "tosses": Data(1_000_000, "items", tosses, "items"),
}
CASES = {
    "ibm1": Case("pairs", lambda: sc.align.IBM1(**EM)),
    "aligner": Case("pairs", lambda: sc.Aligner("hmm", warm_up=1, **EM), 0.25),
    "hmm": Case("text", lambda: sc.HMM(20, **EM), 0.25),
    "pcfg": Case("short", lambda: sc.PCFG(8, n_preterminals=12, **EM), 0.1),
    "mixture": Case("documents", lambda: sc.MultinomialMixture(20, init="random", **EM), 0.25),
    "gaussian": Case("points", lambda: sc.GaussianMixture(10, init="random", **EM), 0.25),
    "lda": Case("documents", lambda: sc.LDA(20, init="random", **EM), 0.05),
    "story": Case("tosses", lambda: sc.StoryModel(coins, **EM), 0.25),
}


def build(name: str, scale: float, folder: Path) -> tuple[float, float]:
    """Build a corpus unless it is there; return seconds, and its size in GB."""
    data, place, began = DATA[name], folder / name, time.perf_counter()
    if not place.exists():
        build_corpus(data.simulate(max(1, int(scale * data.n))), place, data.kind)
    size = sum(file.stat().st_size for file in place.iterdir())
    return time.perf_counter() - began, size / 2**30


def in_memory(name: str, n: int) -> Any:
    """Return the first n items of the data, in memory."""
    data = DATA[name]
    if data.kind == "documents":
        from scipy import sparse

        return sparse.vstack(list(data.simulate(n)), format="csr")
    if data.kind == "vectors":
        return np.array(list(data.simulate(n)))
    return list(data.simulate(n))


def peak() -> float:
    """The most memory this process had, in GB."""
    with suppress(OSError):
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


# a process with a limit


def fit(name: str, scale: float, folder: Path | None) -> dict[str, Any]:
    """Fit a model to a corpus, or to data in memory, and measure; run in a process of its own."""
    case = CASES[name]
    n = max(1, int(scale * DATA[case.corpus].n * (1.0 if folder else case.share)))
    warm = case.make().fit(in_memory(case.corpus, 50))  # compile
    items = open_corpus(folder / case.corpus) if folder else in_memory(case.corpus, n)
    del warm
    before, cpu, began = peak(), time.process_time(), time.perf_counter()
    model = case.make().fit(items)
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    trace = model.trace_ if hasattr(model, "trace_") else ()
    steps = sum(state.seconds for state in trace)
    return {
        "items": n,
        "peak": peak(),
        "before": before,
        "CPU s": used,
        "wall s": wall,
        "steps s": steps,
        "objective": float(trace[-1].objective) if len(trace) else None,
    }


def limited(command: list[str], limit: float | None) -> tuple[dict[str, Any], str]:
    """Run a command in a process with this much memory, in GB; return its figures, and how."""
    how, group = "no limit", None
    settings: dict[str, Any] = {}
    if limit is not None:
        size = int(limit * 2**30)
        group = make_group(size)
        how = "cgroup" if group else "RLIMIT_DATA"

        def enter() -> None:
            if group:
                (group / "cgroup.procs").write_text(str(os.getpid()))
            else:
                resource.setrlimit(resource.RLIMIT_DATA, (size, size))

        settings["preexec_fn"] = enter
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
        if done.returncode:
            return {"failed": done.stderr.strip().splitlines()[-1:] or done.returncode}, how
        found = json.loads(done.stdout.splitlines()[-1])
        if group:
            found["peak of the cgroup"] = most_of_group(group) / 2**30
        return found, how
    finally:
        if group:
            with suppress(OSError):
                group.rmdir()


def make_group(size: int) -> Path | None:
    """Make a memory cgroup (version 1 or 2) with a limit; None if that is not allowed here."""
    for root, name in zip(CGROUPS, ("memory.limit_in_bytes", "memory.max"), strict=True):
        group = root / f"softcount-{os.getpid()}"
        try:
            group.mkdir()
            (group / name).write_text(str(size))
            with suppress(OSError):  # no way out by swapping
                (group / "memory.memsw.limit_in_bytes").write_text(str(size))
        except OSError:
            with suppress(OSError):
                group.rmdir()
            continue
        return group
    return None


def most_of_group(group: Path) -> int:
    """The most memory of a cgroup, what the system caches of files among it."""
    for name in ("memory.max_usage_in_bytes", "memory.peak"):
        with suppress(OSError):
            return int((group / name).read_text())
    return 0


def measure(name: str, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Fit one model from disk with a limit, and in memory without."""
    case = CASES[name]
    seconds, size = build(case.corpus, arguments.scale, folder)
    own = [sys.executable, __file__, "--scale", str(arguments.scale), "--fit", name]
    disk, how = limited([*own, "--keep", str(folder)], arguments.limit)
    memory, _ = limited(own, None)
    return {
        "corpus": case.corpus,
        "built s": seconds,
        "corpus GB": size,
        "limit": f"{arguments.limit:g} GB by {how}",
        "disk": disk,
        "memory": memory,
        "share in memory": case.share,
    }


def describe(name: str, figures: dict[str, Any]) -> str:
    """A line of the table."""
    cells = [name, f"{figures['corpus GB']:.2f}"]
    for side in ("disk", "memory"):
        run = figures[side]
        if "failed" in run:
            cells += [f"failed: {run['failed']}", ""]
            continue
        unit = DATA[figures["corpus"]].unit
        cells += [
            f"{run['peak']:.2f} ({run['before']:.2f})",
            f"{2 * run['items'] / run['wall s']:,.0f} {unit}",
        ]
    cells.append(f"{figures['share in memory']:.0%}")
    runs = [figures[side] for side in ("disk", "memory")]
    if not any("failed" in run for run in runs):
        disk, memory = (run["items"] / run["CPU s"] for run in runs)
        cells.append(f"{disk / memory:.2f}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure every model, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--limit", type=float, default=1.0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(fit(arguments.fit, arguments.scale, arguments.keep)))
        return
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    print(
        "| model | corpus, GB | from disk: peak GB (before the fit) | a second and step |", end=""
    )
    print(
        " in memory: peak GB (before the fit) | a second and step | of the data | disk / memory |"
    )
    print("|---" * 8 + "|", flush=True)
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.only.split(","):
            found[name] = measure(name, arguments, arguments.keep or Path(temporary))
            print(describe(name, found[name]), flush=True)
    print("\n" + "; ".join(sorted({each["limit"] for each in found.values()})))
    if arguments.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
