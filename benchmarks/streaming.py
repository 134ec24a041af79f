"""Topics of a corpus that is larger than memory should be asked for: 50 million tokens from disk.

Simulates documents of a hundred words, writes them to an archive a block at a time, and learns from
it by one pass of mini-batches. Says how much memory the whole process ever had (peak resident set),
CPU seconds, and bytes a token on disk. The archive goes to a temporary folder and is removed.

    python benchmarks/streaming.py [--json]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _figures import report
from scipy import sparse

import softcount as sc
from softcount.text.archive import Archive

TOKENS, WORDS, TOPICS, LENGTH, BLOCK = 50_000_000, 50_000, 20, 100, 10_000


def documents() -> Iterator[sparse.csr_matrix]:
    """Blocks of counts: words by a power law, which every topic begins at another word."""
    rng = np.random.default_rng(0)
    steps = np.cumsum(1.0 / np.arange(1, WORDS + 1))
    rows, ones = np.repeat(np.arange(BLOCK), LENGTH), np.ones(BLOCK * LENGTH)
    for _ in range(TOKENS // (BLOCK * LENGTH)):
        few = rng.integers(TOPICS, size=(BLOCK, 3))  # a document has three topics at most
        topics = np.take_along_axis(few, rng.integers(3, size=(BLOCK, LENGTH)), axis=1)
        ranks = np.searchsorted(steps, rng.uniform(0.0, steps[-1], size=(BLOCK, LENGTH)))
        words = (ranks + topics * (WORDS // TOPICS)) % WORDS
        yield sparse.csr_matrix((ones, (rows, words.ravel())), shape=(BLOCK, WORDS))


def peak() -> float:
    """The most memory this process ever had, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def measure() -> dict[str, float]:
    """Build, learn, and look at the memory in between."""
    before = peak()
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        archive = Archive.build(documents(), Path(folder) / "archive", shuffle=0)
        built, size = peak(), sum(file.stat().st_size for file in archive.path.iterdir())
        learning = time.process_time()
        learner = sc.OnlineEM(max_iter=1, batch_size=4096)
        model = sc.LDA(TOPICS, init="random", learner=learner).fit(archive)
        done = time.process_time()
    return {
        "tokens": archive.tokens,
        "documents": float(len(archive)),
        "topics": float(TOPICS),
        "bytes a token on disk": size / archive.tokens,
        "MB before": before,
        "MB, most, building": built,
        "MB, most, learning": peak(),
        "CPU s building": learning - began,
        "CPU s learning": done - learning,
        "perplexity": model.trace_[-1].perplexity,
    }


if __name__ == "__main__":
    report(__doc__, measure)
