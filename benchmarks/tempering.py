"""MED with a tenth of its words held out: plain EM learns them away, tempered EM does not.

Perplexity of held-out words of the documents learned from, step by step: PLSA with plain EM, and
with TemperedEM, which lowers the power of its posteriors whenever that perplexity falls no more
(Hofmann 1999). Stop words, and words of one document, are left out. Beside it the perplexity of the
unigram model, and that of the tempered topics when documents are folded in without a temper.

    python benchmarks/tempering.py [--json] [--svg FILE]
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
from _corpora import smart_ir
from _figures import report
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

import softcount as sc
from softcount.core.fit import Run
from softcount.learners.schedules import Schedule, Step, Tables
from softcount.text.bags import Bags
from softcount.topics.data import hold_out

TOPICS, SHARE, STEPS = (32, 64, 128), 0.1, 50
LEARNERS = ("EM", "tempered")
LEAST = 1e-100  # the probability of what is impossible, as TemperedEM has it


@dataclass(frozen=True)
class Watched(Schedule):
    """Plain EM with an eye on held-out words, which it does not act upon."""

    held_out: float = SHARE
    monotone: ClassVar[bool] = True

    def steps(self, run: Run, tables: Tables) -> Iterator[Step]:
        while True:
            figure = run.held_out_log_likelihood(tables.params).perplexity
            step = replace(run.e_step(tables), held_out=figure)
            yield step
            tables = run.m_step(step.stats, tables)


@cache
def parted() -> tuple[csr_matrix, csr_matrix, csr_matrix]:
    """All words, those to learn from, and those held out."""
    vectorizer = CountVectorizer(stop_words="english", min_df=2)
    counts = vectorizer.fit_transform(smart_ir("med").documents)
    seen, held = hold_out(Bags.of(counts), SHARE)
    return counts, seen.matrix, held.matrix


@cache
def learned(n_topics: int, name: str) -> sc.PLSA:
    plain = sc.Learner(schedule=Watched(), max_iter=STEPS)
    learner = plain if name == "EM" else sc.TemperedEM(held_out=SHARE)
    return sc.PLSA(n_topics, init="random", learner=learner, short_runs=0).fit(parted()[0])


def perplexity(chances: np.ndarray) -> float:
    """exp of −log p a held-out word; ``chances`` of every word in every document."""
    held = parted()[2].tocoo()
    logs = np.log(np.maximum(chances[held.row, held.col], LEAST))
    return float(np.exp(-(held.data @ logs) / held.sum()))


def measure() -> dict[str, float]:
    counts, seen, held = parted()
    often = seen.sum(axis=0).A1
    figures = {
        "words to learn from": float(seen.sum()),
        "words held out": float(held.sum()),
        "unigram": perplexity(np.broadcast_to(often / often.sum(), counts.shape)),
    }
    for n in TOPICS:
        for name in LEARNERS:
            model = learned(n, name)
            trace, what = model.trace_, f"K={n}, {name}"
            figures |= {
                f"{what}, best": float(trace.held_out.min()),
                f"{what}, best at step": float(trace.held_out.argmin()),
                f"{what}, last": float(trace.held_out[-1]),
                f"{what}, last step": float(len(trace) - 1),
                f"{what}, last temper": float(trace.temper[-1]),
                f"{what}, words learned from, last": float(trace.perplexity[-1]),
                f"{what}, folded in": perplexity(model.transform(seen) @ model.topics_),
                f"{what}, seconds": float(trace.seconds.sum()),
            }
    return figures


def draw(figures: Mapping[str, float]) -> str:
    """Held-out perplexity against steps, as SVG."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "tempering", "svg.fonttype": "none"})
    _, ax = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
    ax.axhline(figures["unigram"], color="grey", lw=1, ls=":", label="unigram")
    for color, n in zip(("C0", "C1", "C2"), TOPICS, strict=True):
        for name, line in zip(LEARNERS, ("--", "-"), strict=True):
            values = learned(n, name).trace_.held_out
            ax.plot(range(len(values)), values, line, color=color, label=f"{name}, K={n}")
    steps, levels = [0, 1, 2, 5, 10, 20, 50, 100, 200], [1000, 2000, 4000, 8000]
    ax.set(xscale="symlog", xlim=(0, None), xticks=steps, xticklabels=steps, xlabel="step")
    ax.set(yscale="log", ylim=(900, 10000), yticks=levels, yticklabels=levels)
    ax.set(ylabel="perplexity of held-out words")
    ax.minorticks_off()
    ax.grid(axis="y", alpha=0.4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, ncols=2)
    buffer = io.StringIO()
    plt.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


if __name__ == "__main__":
    report(__doc__, measure, draw)
