"""Kill fits at random moments with SIGKILL, resume them, and compare the bits.

    python -m tests.core.kills [--kills 30] [--only hmm,lda]

Every fit writes a checkpoint wherever it can. It is killed after a random part of the time that it
takes, and then resumed in another process; now and then it is killed a second time.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import softcount as sc
from softcount import samples
from softcount.core.folder import FitFolder

RNG = np.random.default_rng(5)
TOSSES = ["".join(RNG.choice(list("HT"), 6, p=[p, 1 - p])) for p in (0.9, 0.2, 0.5) * 40]
VOTES = [
    (item, who, int(RNG.random() < (0.2 if who else 0.45)) ^ (item % 2))
    for item in range(200)
    for who in range(5)
]
which, flip = sc.table("which"), sc.table("flip")


@sc.story
def coins(tosses):
    for z in "ABC":
        yield which[z], *(flip[z, x] for x in tosses)


STEPS = {"max_iter": 40, "tol": 0.0}
NOTES = samples.notes() * 3
SENTENCES = samples.sentences() * 2

MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "mixture": (lambda: sc.MultinomialMixture(3, learner=sc.EM(**STEPS)), NOTES),
    "lda": (lambda: sc.LDA(4, learner=sc.OnlineEM(max_iter=12, tol=0.0, batch_size=24)), NOTES),
    "lda gibbs": (lambda: sc.LDA(4, learner=sc.CollapsedGibbs(max_iter=60, n_init=2)), NOTES),
    "hmm": (lambda: sc.HMM(5, smoothing=0.1, learner=sc.EM(**STEPS)), SENTENCES),
    "hmm gibbs": (lambda: sc.HMM(4, smoothing=0.1, learner=sc.Gibbs(max_iter=30)), SENTENCES),
    "pcfg": (lambda: sc.PCFG(4, 5, learner=sc.EM(max_iter=12, tol=0.0)), SENTENCES[:60]),
    "aligner": (lambda: sc.Aligner(learner=sc.EM(max_iter=12, tol=0.0)), samples.pairs() * 3),
    "story": (
        lambda: sc.StoryModel(coins, learner=sc.IncrementalEM(max_iter=12, tol=0.0, batch_size=16)),
        TOSSES,
    ),
    "annotators": (lambda: sc.Annotators(learner=sc.EM(max_iter=30, tol=0.0, n_init=2)), VOTES),
}


def fit(name: str, folder: Path | None, engine: Any = None) -> str:
    """Fit a model; return a digest of all that it learned, with the trace."""
    make, data = MODELS[name]
    options = {} if folder is None else {"folder": FitFolder(folder, steps=0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = make().set_params(engine=engine).fit(data, **options)
    digest = sha256()
    for table in sorted(model.raw_params_):
        digest.update(np.ascontiguousarray(model.raw_params_[table]).tobytes())
    digest.update(model.trace_.objective.tobytes())
    digest.update(str(model.verdict_).encode())
    return digest.hexdigest()


def in_child(work: Callable[[], str], seconds: float | None = None) -> str | None:
    """Call a function in a forked process, killed after some time; return what it returned."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:  # nothing of the parent's may run here: neither tests nor their clean-up
        code = 1
        try:
            os.close(out)
            os.write(into, work().encode())
            code = 0
        finally:
            os._exit(code)
    os.close(into)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(out) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said or None


def kill_and_resume(name: str, kills: int, seed: int = 0) -> tuple[int, int]:
    """Return how often a fit was killed before its end, and how often it then came out the same."""
    rng = random.Random(f"{name} {seed}")
    with tempfile.TemporaryDirectory() as place:
        wanted = fit(name, None)  # here: its children find all kernels loaded
        began = time.monotonic()
        first = in_child(lambda: fit(name, Path(place, "whole")))
        duration = time.monotonic() - began
        assert first == wanted, f"{name}: a fit with a folder differs from one without"
        hit = same = 0
        for number in range(kills):
            folder = Path(place, str(number))
            cut = None
            for _ in range(rng.choice((1, 1, 2))):
                cut = in_child(partial(fit, name, folder), rng.uniform(0.1, 1.0) * duration)
            hit += cut is None
            same += in_child(partial(fit, name, folder)) == wanted
    return hit, same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--only", default="", help="names of models, comma-separated")
    options = parser.parse_args()
    failed = False
    for name in options.only.split(",") if options.only else MODELS:
        hit, same = kill_and_resume(name, options.kills)
        failed |= same < options.kills
        print(f"{name:12} killed {hit:3} of {options.kills} times; the same bits {same:3} times")
    sys.exit(failed)


if __name__ == "__main__":
    main()
