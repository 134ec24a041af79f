"""Word alignment: CPU seconds and memory beside eflomal, NLTK and fast_align, in one run.

The Hansards (English–French, lower case), every system as a process of its own, one thread, from
the text to the links in a file. CPU seconds are those of the process and its children, memory is
the largest resident set of any of them. Systems that are not installed are left out and said to be.

    Model 1       5 steps, one direction: `softcount align -m ibm1`, beside `fast_align` and NLTK;
                  beside NLTK also without the start of the programs
    agreement     both directions: `softcount align`, beside `eflomal-align -m 3` and both
                  directions of `fast_align -d -o -v`; `sc.Aligner().fit(pairs)` of a list of pairs
                  of texts, and what the list takes by itself; two threads beside one
    slope         both directions of the whole corpus, and of 1,000,000 simulated pairs
    links         nanoseconds a link of one EM step; bytes a pair of words that occur together: what
                  Model 1 takes more than on a single pair of sentences, less four bytes a token
    growth        Model 1 on 10,000 to 1,000,000 simulated pairs

    python benchmarks/alignment.py [--json] [--fast]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _bitexts import hansards

import softcount as sc

FEW, MANY = 10_000, 100_000
GROWTH = (10_000, 100_000, 1_000_000)
LENGTH, WORDS = 12, 50_000
SOFTCOUNT = (sys.executable, "-m", "softcount", "align", "--threads", "1")
NLTK = """
import sys
from time import process_time
from nltk.translate import AlignedSent, IBMModel1
begin = process_time()
lines = [line.split("|||") for line in open(sys.argv[1], encoding="utf-8")]
IBMModel1([AlignedSent(f.split(), e.split()) for e, f in lines], 5)
print(process_time() - begin)
"""


class Cost(NamedTuple):
    """CPU seconds and MB of a process."""

    seconds: float
    memory: float


LAUNCH = """
import json, os, sys
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=[
    (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
_, status, used = os.wait4(child, 0)
print(json.dumps([status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
"""A small process between this one and a command: what a child has of its parent's memory when it
begins counts as its own."""


def run(command: Sequence[str], output: Path) -> Cost:
    """Run a command to its end."""
    launch = [sys.executable, "-S", "-c", LAUNCH, str(output), *command]
    said = subprocess.run(launch, check=True, stdout=subprocess.PIPE).stdout
    status, seconds, memory = json.loads(said)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return Cost(seconds, memory)


def best_of(command: Sequence[str], output: Path, times: int = 2) -> Cost:
    """The cheapest of some runs: the first may have to compile."""
    return min(run(command, output) for _ in range(times))


def write(path: Path, n: int) -> Path:
    path.write_text("".join(f"{e} ||| {f}\n" for e, f in hansards(n)), encoding="utf-8")
    return path


def simulated(path: Path, n: int) -> Path:
    """Pairs of about `LENGTH` words by a power law, target words in place of source words."""
    rng = np.random.default_rng(0)
    steps = np.cumsum(1.0 / np.arange(1, WORDS + 1))
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, n, 10_000):
            lengths = rng.integers(LENGTH // 2, LENGTH * 3 // 2, min(10_000, n - first))
            for words in np.split(
                np.searchsorted(steps, rng.uniform(0, steps[-1], lengths.sum())),
                np.cumsum(lengths)[:-1],
            ):
                text = [str(word) for word in words.tolist()]
                file.write(f"{' '.join(text)} ||| {' '.join('t' + word for word in text)}\n")
    return path


def one_direction(pairs: Path, folder: Path) -> dict[str, Cost]:
    """What Model 1 costs, from a file of pairs to the links of one direction, by system."""
    ours = best_of((*SOFTCOUNT, "-m", "ibm1", "-i", str(pairs)), folder / "links")
    if not shutil.which("fast_align"):
        return {"softcount": ours}
    return {
        "softcount": ours,
        "fast_align": run(("fast_align", "-i", str(pairs)), folder / "links"),
    }


def model1(folder: Path, few: Path, many: Path, n_pairs: int) -> dict[str, float]:
    out, one = folder / "links", write(folder / "one", 1)
    figures: dict[str, float] = {}
    ours = {
        n: best_of((*SOFTCOUNT, "-m", "ibm1", "-i", str(f)), out)
        for n, f in ((FEW, few), (MANY, many))
    }
    single = best_of((*SOFTCOUNT, "-m", "ibm1", "--dtype", "float32", "-i", str(many)), out)
    for n, cost in ours.items():
        figures |= named(f"Model 1, {n} pairs", "softcount", cost)
    figures |= named(f"Model 1, {MANY} pairs", "softcount, float32", single)
    start = best_of((*SOFTCOUNT, "-m", "ibm1", "-i", str(one)), out)
    figures |= named("Model 1, 1 pair", "softcount", start)
    figures["Model 1, bytes a pair of words"] = bytes_a_pair(single.memory - start.memory, n_pairs)
    if shutil.which("fast_align"):
        theirs = best_of(("fast_align", "-i", str(many)), out, 1)
        figures |= named(f"Model 1, {MANY} pairs", "fast_align", theirs)
        figures["Model 1, times faster than fast_align"] = theirs.seconds / ours[MANY].seconds
    if find_spec("nltk"):
        theirs = best_of((sys.executable, "-c", NLTK, str(few)), out, 1)
        figures |= named(f"Model 1, {FEW} pairs", "NLTK", theirs)
        figures["Model 1, times faster than NLTK"] = theirs.seconds / ours[FEW].seconds
        started, own = float(out.read_text()), learning(few)
        figures["Model 1, text to model in a running program, softcount, CPU s"] = own
        figures["Model 1, text to model in a running program, NLTK, CPU s"] = started
        figures["Model 1, text to model in a running program, times faster"] = started / own
    return figures


def bytes_a_pair(megabytes: float, n: int) -> float:
    pairs = sc.text.as_bitext(hansards(n))
    tokens = len(pairs.source.tokens) + len(pairs.target.tokens)
    made = sc.align.IBM1(learner=sc.EM(max_iter=1)).fit(pairs)
    return (megabytes * 2**20 - 4 * tokens) / len(made._lexicon)


def learning(path: Path) -> float:
    """CPU seconds of Model 1 from the text to the model, in a program that already runs."""
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        sc.align.IBM1(engine=sc.Local(threads=1)).fit(sc.text.read_bitext(path))
        seconds.append(time.process_time() - begin)
    return min(seconds)


IN_PYTHON = """
import resource, sys, time
pairs = [tuple(line.rstrip("\\n").split(" ||| ")) for line in open(sys.argv[1], encoding="utf-8")]
if sys.argv[2] != "list":
    import softcount as sc
    sc.Aligner(dtype=sys.argv[2], engine=sc.Local(threads=1)).fit(pairs)
"""
WALL = """
import sys, time
import softcount as sc
pairs = sc.text.read_bitext(sys.argv[1])
for threads in (1, 2):
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        sc.Aligner(dtype="float32", engine=sc.Local(threads=threads)).fit(pairs)
        seconds.append(time.perf_counter() - begin)
    print(min(seconds))
"""


def fast_align(pairs: Path, folder: Path, *flags: str) -> Cost:
    """Both directions of fast_align, one after the other."""
    ways = [
        run(("fast_align", *flags, *way, "-i", str(pairs)), folder / "links")
        for way in ((), ("-r",))
    ]
    return Cost(sum(way.seconds for way in ways), max(way.memory for way in ways))


def both_directions(pairs: Path, folder: Path) -> dict[str, Cost]:
    """What both directions by agreement cost, from a file of pairs to links, by system."""
    costs = {"softcount": best_of((*SOFTCOUNT, "-i", str(pairs)), folder / "links")}
    if shutil.which("eflomal-align"):
        links = ("-f", str(folder / "there"), "-r", str(folder / "back"), "--overwrite")
        costs["eflomal -m 3"] = run(
            ("eflomal-align", "-m", "3", "-i", str(pairs), *links), folder / "log"
        )
    if shutil.which("fast_align"):
        costs["fast_align -d -o -v"] = fast_align(pairs, folder, "-d", "-o", "-v")
    return costs


def agreement(folder: Path, sizes: dict[int, Path]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for n, path in sizes.items():
        what = f"both directions, {n} pairs"
        costs = both_directions(path, folder)
        for name, cost in costs.items():
            figures |= named(what, name, cost)
            if name != "softcount":
                ratio = cost.seconds / costs["softcount"].seconds
                figures[f"{what}, times faster than {name}"] = ratio
        for kind in ("list", "float32", "float64"):
            cost = run((sys.executable, "-c", IN_PYTHON, str(path), kind), folder / "log")
            figures[f"{what}, in Python, {kind}, MB"] = cost.memory
    said = folder / "wall"
    run((sys.executable, "-c", WALL, str(sizes[max(sizes)])), said)
    one, two = map(float, said.read_text().split())
    figures[f"both directions, {max(sizes)} pairs, two threads, times faster"] = one / two
    return figures


def slope(folder: Path) -> dict[str, float]:
    """Memory of both directions on the whole corpus, and on four times as many simulated pairs."""
    figures: dict[str, float] = {}
    every = write(folder / "every", 10**9)
    simulated(folder / "simulated", GROWTH[-1])
    for name, path in (("all pairs", every), ("10⁶ simulated pairs", folder / "simulated")):
        cost = run((*SOFTCOUNT, "-i", str(path)), folder / "links")
        figures |= named(f"both directions, {name}", "softcount", cost)
    return figures


def named(what: str, who: str, cost: Cost) -> dict[str, float]:
    return {f"{what}, {who}, CPU s": cost.seconds, f"{what}, {who}, MB": cost.memory}


def steps(n: int) -> dict[str, float]:
    """Nanoseconds a link of one EM step, in this process."""
    pairs = sc.text.as_bitext(hansards(n))
    figures = {}
    for name, model in (
        ("Model 1", sc.align.IBM1),
        ("Diagonal", sc.align.Diagonal),
        ("HMM", sc.align.HMMAligner),
    ):
        for dtype in ("float64", "float32"):
            ticks: list[float] = []
            made = model(dtype=dtype, engine=sc.Local(threads=1), learner=sc.EM(max_iter=4, tol=0))
            made.fit(pairs, on_step=lambda _, to=ticks: to.append(time.process_time()))
            step = float(np.min(np.diff(ticks)))
            figures[f"{name}, {dtype}, ns a link"] = 1e9 * step / pairs.n_links
    figures["links a pair of words"] = pairs.n_links / len(made._lexicon)
    figures["pairs of words"] = float(len(made._lexicon))
    return figures


def growth(folder: Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    for n in GROWTH:
        path = simulated(folder / "simulated", n)
        command = (*SOFTCOUNT, "-m", "ibm1", "--dtype", "float32", "-i", str(path))
        figures |= named(
            f"simulated, {n} pairs", "softcount, float32", run(command, folder / "out")
        )
    return figures


def absent() -> list[str]:
    """Peers that are not here."""
    programs = [name for name in ("fast_align", "eflomal-align") if not shutil.which(name)]
    return programs + ([] if find_spec("nltk") else ["NLTK"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--fast", action="store_true", help=f"{FEW} pairs alone, no growth")
    options = parser.parse_args()
    if missing := absent():
        print(f"not installed, left out: {', '.join(missing)}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = write(folder / "few", FEW)
        many = few if options.fast else write(folder / "many", MANY)
        figures = model1(folder, few, many, FEW if options.fast else MANY)
        figures |= agreement(folder, {FEW: few} if options.fast else {FEW: few, MANY: many})
        figures |= steps(FEW if options.fast else MANY)
        if not options.fast:
            figures |= growth(folder) | slope(folder)
    if options.json:
        print(json.dumps(figures))
        return
    for title, value in figures.items():
        print(f"{title:60} {value:,.4g}")


if __name__ == "__main__":
    main()
