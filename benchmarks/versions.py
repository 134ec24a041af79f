"""This version beside an older one: CPU seconds of fits and of commands, by turns, in one run.

    git worktree add ../older v0.8.0
    python benchmarks/versions.py ../older [--rounds 5] [--only hmm,align] [--json]

Each case runs in a process of its own, old and new by turns, so that a busy machine slows both.
What is compared is the best of all rounds, and the median of the rounds' ratios beside it. Kernels
are compiled before anything is timed. Fits are timed by themselves, after a first, shorter fit;
commands from their start to their end. Cases use what both versions have, by
the same name or, where 0.10 moved it, in its namespace.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent

# Text that looks like text: words by Zipf's law, in sentences, documents and pairs. It is made by
# the case itself, so that both versions see the same data and none has to be at hand.
DATA = """
import sys, time
import numpy as np
import softcount as sc
rng = np.random.default_rng(7)
p = 1.0 / np.arange(1, 4001); p /= p.sum()
def words(n):
    return [f"w{w}" for w in rng.choice(4000, n, p=p)]
def sentences(n, shortest=5, longest=30):
    return [words(k) for k in rng.integers(shortest, longest, n)]
def timed(fit, small, data):
    fit(small)
    began = time.process_time()
    fit(data)
    print(time.process_time() - began)
def steps(n, learner=sc.EM, **more):
    return learner(max_iter=n, tol=0.0, **more)
def public(namespace, name):  # before 0.10 all names were at the top
    return getattr(sc, name) if hasattr(sc, name) else getattr(getattr(sc, namespace), name)
"""

FITS = {
    "hmm": """
text = sentences(20000)
timed(lambda s: sc.HMM(40, learner=steps(15), random_state=1).fit(s), text[:20], text)
""",
    "hmm, order 2": """
text = sentences(4000)
timed(lambda s: sc.HMM(15, order=2, learner=steps(10)).fit(s), text[:20], text)
""",
    "hmm, tagging": """
text = sentences(150000)
model = sc.HMM(40, smoothing=0.1, learner=steps(2)).fit(text[:500])
timed(model.predict, text[:20], text)
""",
    "lda": """
texts = [" ".join(s) for s in sentences(1500, 30, 120)]
timed(lambda s: sc.LDA(50, learner=steps(60)).fit(s), texts[:100], texts)
""",
    "lda, collapsed gibbs": """
texts = [" ".join(s) for s in sentences(1500, 30, 120)]
learner = sc.CollapsedGibbs(max_iter=40)
timed(lambda s: sc.LDA(30, learner=learner).fit(s), texts[:100], texts)
""",
    "multinomial mixture": """
texts = [" ".join(s) for s in sentences(3000, 30, 80)]
timed(lambda s: sc.MultinomialMixture(20, learner=steps(60)).fit(s), texts[:100], texts)
""",
    "gaussian mixture": """
points = rng.normal(size=(30000, 8))
timed(lambda x: sc.GaussianMixture(8, learner=steps(15)).fit(x), points[:500], points)
""",
    "naive bayes, few labels": """
texts = [" ".join(s) for s in sentences(3000, 30, 80)]
def fit(some):
    labels = [("a", "b")[i % 2] if i < 40 else None for i in range(len(some))]
    sc.NaiveBayes(learner=steps(60)).fit(some, labels)
timed(fit, texts[:100], texts)
""",
    "ibm1": """
pairs = [(s, [w + "x" for w in s[::-1]]) for s in sentences(30000)]
timed(lambda b: public("align", "IBM1")(learner=steps(5)).fit(b), pairs[:50], pairs)
""",
    "aligner, both directions": """
pairs = [(s, [w + "x" for w in s[::-1]]) for s in sentences(6000)]
timed(lambda b: sc.Aligner().fit(b), pairs[:50], pairs)
""",
    "pcfg": """
text = [[f"t{len(w) % 3}{w[-1]}" for w in s] for s in sentences(1000, 4, 15)]
timed(lambda s: sc.PCFG(15, 15, learner=steps(8)).fit(s), text[:10], text)
""",
    "story": """
which, flip = sc.table("which"), sc.table("flip")
@sc.story
def coins(tosses):
    for z in "ABC":
        yield which[z], *(flip[z, x] for x in tosses)
tosses = ["".join("HT"[x] for x in rng.integers(0, 2, 12)) for _ in range(4000)]
timed(lambda t: sc.StoryModel(coins, learner=steps(30)).fit(t), tosses[:50], tosses)
""",
    "annotators": """
votes = [(i, a, int(rng.random() < 0.3)) for i in range(20000) for a in range(5)]
timed(lambda v: sc.Annotators().fit(v), votes[:500], votes)
""",
    "label propagation": """
texts = [" ".join(s) for s in sentences(2500, 30, 80)]
def fit(some):
    labels = [("a", "b")[i % 2] if i < 40 else None for i in range(len(some))]
    public("labels", "LabelPropagation")().fit(some, labels)
timed(fit, texts[:100], texts)
""",
}

COMMANDS = {
    "import softcount": ["-c", "import softcount"],
    "softcount --help": ["-m", "softcount", "--help"],
    "softcount tag --help": ["-m", "softcount", "tag", "--help"],
    "softcount cluster": ["-m", "softcount", "cluster", "texts.txt", "-k", "2"],
    "softcount topics": ["-m", "softcount", "topics", "texts.txt", "-k", "2"],
    "softcount tag": ["-m", "softcount", "tag", "texts.txt", "-k", "3"],
    "softcount align": ["-m", "softcount", "align", "-i", "pairs.txt"],
}


def run(source: Path, arguments: list[str], folder: Path) -> tuple[float, str]:
    """CPU seconds of a process that uses the package in ``source``, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # kernels are kept apart for each version: one must not profit from what the other compiled
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{source}: {' '.join(arguments)[:80]} failed:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)  # finer than os.times: 10 ms there
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return spent, done.stdout


def seconds(source: Path, name: str, folder: Path) -> float:
    """How long a case takes: a fit by itself, a command as a whole."""
    if name in FITS:
        return float(run(source, ["-c", DATA + FITS[name]], folder)[1].split()[-1])
    return run(source, COMMANDS[name], folder)[0]


def compare(older: Path, names: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """Each case's seconds, old and new by turns, and new / old."""
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "texts.txt").write_text("the dog barks\na cat sleeps\nthe old dog sleeps\n" * 4)
        (folder / "pairs.txt").write_text("the house ||| das haus\nthe book ||| das buch\n" * 4)
        for case in names:
            seconds(older, case, folder), seconds(HERE, case, folder)  # compile
            pairs = []
            for turn in range(rounds):
                order = (older, HERE) if turn % 2 == 0 else (HERE, older)
                found = {source: seconds(source, case, folder) for source in order}
                pairs.append((found[older], found[HERE]))
            old, new = (min(column) for column in zip(*pairs, strict=True))
            median = statistics.median(b / a for a, b in pairs)
            figures[case] = {"old": old, "new": new, "best": new / old, "median": median}
            print(
                f"{case:28} {old:8.3f} {new:8.3f}   new / old: best {new / old:5.3f}, "
                f"median {median:5.3f}",
                file=sys.stderr,
                flush=True,
            )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("older", type=Path, help="a checkout of the older version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose names begin so, comma-separated")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    wanted = tuple(options.only.split(",")) if options.only else ("",)
    names = [name for name in (*FITS, *COMMANDS) if name.startswith(wanted)]
    figures = compare(options.older.resolve(), names, options.rounds)
    if options.json:
        print(json.dumps(figures, indent=1))
    slower = [name for name, one in figures.items() if min(one["best"], one["median"]) > 1.03]
    print(f"{len(slower)} of {len(figures)} cases are more than 3 % slower")
    print(*slower, sep="\n", end="\n" * bool(slower))


if __name__ == "__main__":
    main()
