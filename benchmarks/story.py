"""A hidden Markov model written as a story, beside hmmlearn, in one run.

Simulated data: K = 45 tags, V = 10,000 words, 4,100 sentences, about 100,000 tokens. Prints CPU
seconds an EM iteration (one thread each, the best of several, the two taking turns so that a noisy
machine slows both), and what tracing and compiling the story cost an alternative.

    python benchmarks/story.py [--json]
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _figures import report
from hmmlearn.hmm import CategoricalHMM

import softcount as sc
from softcount.core.types import EStep, Params, Stats
from softcount.stories.core import StoryCore
from softcount.stories.data import StoryCorpus

K, V, N_SENTENCES, MEAN_LENGTH = 45, 10_000, 4_100, 24.4
ROUNDS = 7

first, trans, emit = sc.table("first"), sc.table("trans"), sc.table("emit")
TAGS = range(K)


@sc.story
def sentence(words):
    for tag in TAGS:
        yield first[tag], emit[tag, words[0]], tail(words, 1, tag)


@sc.story
def tail(words, i, tag):
    if i == len(words):
        yield ()
        return
    for after in TAGS:
        yield trans[tag, after], emit[after, words[i]], tail(words, i + 1, after)


def simulated(rng: np.random.Generator) -> list[list[int]]:
    """Sentences drawn from a random HMM."""
    moves = rng.dirichlet(np.full(K, 0.3), K).cumsum(axis=1)
    words = rng.dirichlet(np.full(V, 0.05), K).cumsum(axis=1)
    sentences = []
    for length in np.maximum(rng.poisson(MEAN_LENGTH, N_SENTENCES), 1):
        tag, drawn = int(rng.integers(K)), []
        for _ in range(length):
            drawn.append(int(np.searchsorted(words[tag], rng.random())))
            tag = min(int(np.searchsorted(moves[tag], rng.random())), K - 1)
        sentences.append([min(word, V - 1) for word in drawn])
    return sentences


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def em_iteration(core: StoryCore, shards: list[Any], params: Params) -> tuple[Params, Stats]:
    """One E-step and one M-step on one thread, as the loop does them."""
    with sc.Local(threads=1).open(shards) as session:
        stats = session.expect(core.expect, params, EStep())
    rng = np.random.default_rng(0)
    families = core.families.items()
    return {n: f.maximise(stats.counts[n], params[n], rng) for n, f in families}, stats


def peer(core: StoryCore, params: Params) -> CategoricalHMM:
    """hmmlearn with the same parameters."""
    model = CategoricalHMM(
        K, implementation="scaling", init_params="", n_iter=1, tol=0.0, n_features=V
    )
    tables = {"first": np.zeros(K), "trans": np.zeros((K, K)), "emit": np.full((K, V), 1e-300)}
    for name, table in tables.items():
        table[tuple(np.array(core.support.tables[name].entry_keys()).T)] = params[name]
    model.startprob_, model.transmat_ = tables["first"], tables["trans"]
    model.emissionprob_ = tables["emit"]
    return model


def measure() -> dict[str, float]:
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    items = simulated(np.random.default_rng(0))
    StoryCorpus(sentence, items[:2]).shards()  # compile the kernels first
    compiling, corpus = cpu(lambda: StoryCorpus(sentence, items))
    core = StoryCore("sentence", corpus.support, corpus.tables)
    shards = corpus.shards()
    rng = np.random.default_rng(1)
    params: Params = {name: family.random(rng) for name, family in core.families.items()}
    em_iteration(core, shards, params)
    observed = np.concatenate(items)[:, None]
    lengths = [len(item) for item in items]
    ours, theirs = [], []
    for _ in range(ROUNDS):
        seconds, (_, stats) = cpu(lambda: em_iteration(core, shards, params))
        ours.append(seconds)
        other = peer(core, params)
        theirs.append(cpu(lambda other=other: other.fit(observed, lengths))[0])
    return {
        "tokens": len(observed),
        "alternatives traced": corpus.traced_alternatives,
        "tracing + compiling, µs an alternative": compiling / corpus.traced_alternatives * 1e6,
        "softcount, CPU s an iteration": min(ours),
        "hmmlearn, CPU s an iteration": min(theirs),
        "times faster": min(theirs) / min(ours),
        "log-likelihood": stats.log_likelihood,
        "difference from hmmlearn's": stats.log_likelihood - other.monitor_.history[0],
    }


if __name__ == "__main__":
    report(__doc__, measure)
