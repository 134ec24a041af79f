"""Hidden Markov models: CPU seconds an EM iteration beside hmmlearn, in one run and one thread.

Sentences are simulated from a hidden Markov model (words by a power law, some 24 of them each):

    (a)  45 states, 10,000 words, 100,000 tokens
    (b)  100 states, 50,000 words, 1,000,000 tokens

hmmlearn's `CategoricalHMM(implementation="scaling")` begins at the same parameters. An iteration
is an E-step and an M-step. Also: a dictionary of tags (some two a word), the share of the
machine's peak (that of one large matrix product) that the E-step reaches, one sentence of a
million tokens; and at the size of (a) other ways to learn (order 2 with 17 states), and tagging
beside hmmlearn's `predict` by the same parameters.

    python benchmarks/hmm.py [--json] [--fast]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

import softcount as sc
from softcount.kernels.threads import single_threaded
from softcount.text.sequences import Sequences, Side

ONE = sc.Local(threads=1)
LENGTH = 24


class Size(NamedTuple):
    """How large a simulation is."""

    states: int
    words: int
    tokens: int


SIZES = {"a": Size(45, 10_000, 100_000), "b": Size(100, 50_000, 1_000_000)}


class Simulated(NamedTuple):
    """Sentences, and parameters near those that made them."""

    text: Sequences
    start: np.ndarray
    moves: np.ndarray
    emissions: np.ndarray
    states: np.ndarray


def simulated(size: Size, seed: int = 0) -> Simulated:
    rng = np.random.default_rng(seed)
    k, v, n = size
    zipf = 1.0 / np.arange(1, v + 1)
    emissions = rng.gamma(0.1, size=(k, v)) * zipf + 1e-9
    emissions /= emissions.sum(axis=1, keepdims=True)
    moves = rng.dirichlet(np.full(k, 0.3), k) * 0.9 + 0.1 / k
    start = rng.dirichlet(np.ones(k))
    lengths = rng.integers(LENGTH // 2, LENGTH * 3 // 2, n * 2 // LENGTH)
    lengths = lengths[: np.searchsorted(np.cumsum(lengths), n) + 1]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    states, tokens = drawn(rng, indptr, start, moves, emissions)
    words = [f"w{w}" for w in range(v)]
    return Simulated(Sequences(Side(words, tokens, indptr)), start, moves, emissions, states)


def drawn(
    rng: np.random.Generator, indptr: np.ndarray, start: Any, moves: Any, emissions: Any
) -> tuple[np.ndarray, np.ndarray]:
    """States and words, position by position over all sentences."""
    lengths, sums = np.diff(indptr), np.cumsum(moves, axis=1)
    states = np.zeros(indptr[-1], np.int64)
    now = rng.choice(len(start), len(lengths), p=start)
    for i in range(lengths.max()):
        there = np.flatnonzero(lengths > i)
        if i:
            chance = rng.random(len(there))[:, None]
            now[there] = np.minimum((chance > sums[now[there]]).sum(axis=1), len(start) - 1)
        states[indptr[there] + i] = now[there]
    tokens = np.empty(len(states), np.int32)
    for k in range(len(start)):
        own = np.flatnonzero(states == k)
        tokens[own] = rng.choice(emissions.shape[1], len(own), p=emissions[k])
    return states, tokens


def cpu(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def begun(data: Simulated) -> dict[str, np.ndarray]:
    """Where learning begins."""
    return {
        "start": data.start[None],
        "transitions": data.moves,
        "emissions": data.emissions * 0.9 + 0.1 / data.emissions.shape[1],
    }


def fitted(data: Simulated, ticks: list[float], **settings: Any) -> Any:
    """A model that is learned in one thread; when it began, and when each step ended."""
    k = None if "dictionary" in settings else len(data.start)
    model = sc.HMM(k, stop=False, init=begun(data), engine=ONE)
    model.set_params(**{"learner": sc.EM(max_iter=3, tol=0), **settings})
    return model.fit(data.text, on_step=lambda _: ticks.append(time.process_time()))


def ours(data: Simulated, **settings: Any) -> float:
    """The cheapest of some iterations."""
    ticks: list[float] = []
    fitted(data, ticks, **settings)
    return float(np.min(np.diff(ticks)))


def peer(params: Any) -> Any:
    """hmmlearn's model with these parameters, which does one EM iteration."""
    from hmmlearn.hmm import CategoricalHMM

    k, v = params["emissions"].shape
    model = CategoricalHMM(k, implementation="scaling", n_iter=1, tol=0, init_params="")
    model.n_features = v
    model.startprob_, model.transmat_ = params["start"][0], params["transitions"]
    model.emissionprob_ = params["emissions"]
    return model


def hmmlearn(data: Simulated) -> float:
    """An EM iteration of hmmlearn."""
    model = peer(begun(data))
    return cpu(lambda: model.fit(data.text.tokens[:, None], data.text.lengths))


def dictionary(data: Simulated) -> dict[str, list[str]]:
    """The states that made each word, and one more for every other word."""
    rng = np.random.default_rng(1)
    pairs = set(zip(data.text.tokens.tolist(), data.states.tolist(), strict=True))
    often: dict[int, list[int]] = {}
    for w, k in sorted(pairs):
        often.setdefault(w, []).append(k)
    return {
        f"w{w}": [str(k) for k in {*tags[:2], *rng.integers(len(data.start), size=w % 2).tolist()}]
        for w, tags in often.items()
    }


def peak(dtype: str) -> float:
    """GFLOP/s of a large matrix product."""
    n = 768
    a = np.ones((n, n), dtype)
    with single_threaded():
        return 2 * n**3 / min(cpu(lambda: a @ a) for _ in range(8)) / 1e9


def measure(size: Size, peers: bool) -> dict[str, float]:
    """The cheapest iteration of some rounds, in which all take turns."""
    data = simulated(size)
    words = dictionary(data)
    ways: dict[str, Callable[[], float]] = {
        "float64": lambda: ours(data),
        "float32": lambda: ours(data, dtype="float32"),
        "dictionary": lambda: ours(data, dictionary=words),
    }
    if peers:
        ways["hmmlearn"] = lambda: hmmlearn(data)
    rounds = max(1, 500_000 // size.tokens)
    turns = [{name: way() for name, way in ways.items()} for _ in range(rounds)]
    seconds = {name: min(turn[name] for turn in turns) for name in ways}
    figures: dict[str, float] = {"tokens": float(len(data.text.tokens))}
    figures |= {f"{name}, ms an iteration": 1e3 * seconds[name] for name in ways}
    for dtype in ("float64", "float32"):
        reached = 6 * len(data.text.tokens) * size.states**2 / seconds[dtype] / 1e9
        figures[f"{dtype}, share of peak, whole iteration"] = reached / peak(dtype)
        if peers:
            times = seconds["hmmlearn"] / seconds[dtype]
            figures[f"{dtype}, times faster than hmmlearn"] = times
    figures["dictionary, times faster than float64"] = seconds["float64"] / seconds["dictionary"]
    return figures


def other_ways(size: Size) -> dict[str, float]:
    """Iterations of other learners, and of order 2."""
    data, some = simulated(size), {"max_iter": 3, "tol": 0}
    small = simulated(size._replace(states=17))
    learners = {
        "hard EM": sc.HardEM(**some),
        "Gibbs": sc.Gibbs(n_init=1, **some),
        "collapsed Gibbs": sc.CollapsedGibbs(**some),
    }
    figures = {
        f"{name}, ms an iteration": 1e3 * ours(data, learner=learner, smoothing=0.1)
        for name, learner in learners.items()
    }
    figures["17 states, ms an iteration"] = 1e3 * ours(small)
    figures["17 states, order 2, ms an iteration"] = 1e3 * ours(small, order=2, init="random")
    return figures


def tagging(size: Size, peers: bool, runs: int = 5) -> dict[str, float]:
    """Tokens a second, each word in its state of the best sequence; the cheapest of some runs."""
    data = simulated(size)
    text, flat = data.text, data.text.tokens[:, None]
    model = fitted(data, [], smoothing=0.01, learner=sc.EM(max_iter=1))
    ways: dict[str, Callable[[], Any]] = {"tagging": lambda: model.predict(text)}
    if peers:
        other = peer(model.params_)
        ways["hmmlearn, tagging"] = lambda: other.predict(flat, text.lengths)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):  # in turn
        for name, work in ways.items():
            seconds[name].append(cpu(work))
    figures = {f"{name}, tokens a second": len(flat) / min(of) for name, of in seconds.items()}
    if peers:
        mine, theirs = map(min, seconds.values())
        same = np.concatenate(model.predict(text)) == other.predict(flat, text.lengths)
        figures["tagging, times faster than hmmlearn"] = theirs / mine
        figures["tagging, share of words in the same state as hmmlearn's"] = float(same.mean())
    return figures


def one_long_sentence(n: int = 1_000_000) -> dict[str, float]:
    data = simulated(Size(45, 10_000, n))
    text = data.text.side
    whole = Sequences(Side(text.words, text.tokens, np.array([0, len(text.tokens)])))
    seconds = ours(data._replace(text=whole), learner=sc.EM(max_iter=1, tol=0))
    return {"one sentence of a million tokens, 45 states, s an iteration": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--fast", action="store_true", help="(a) alone")
    options = parser.parse_args()
    peers = find_spec("hmmlearn") is not None
    if not peers:
        print("not installed, left out: hmmlearn", file=sys.stderr)
    figures = {}
    for name, size in SIZES.items():
        if name == "a" or not options.fast:
            found = measure(size, peers)
            if name == "a":
                found |= other_ways(size) | tagging(size, peers)
            figures |= {f"({name}) {title}": value for title, value in found.items()}
    if not options.fast:
        figures |= one_long_sentence()
    if options.json:
        print(json.dumps(figures))
        return
    for title, value in figures.items():
        print(f"{title:62} {value:,.4g}")


if __name__ == "__main__":
    main()
