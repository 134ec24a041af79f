"""How good topics are: softcount beside scikit-learn, tomotopy and gensim, as a table.

Held-out perplexity (`softcount.metrics.completion`: half of each unseen document is foreseen from
the other half), NPMI of the ten top words over the training documents, the share of different words
among the 25 top ones, and CPU seconds on one thread. Corpora: 20 Newsgroups by date (headers,
footers, quotes and stop words removed); a fifth of ap_blei, kos_uci, MED and CRAN held out. Means
over seeds, as many for each system, with the lowest and highest perplexity: seeds differ by more
than many systems do.

    python benchmarks/topic_quality.py [CORPUS ...] [--topics 20 100] [--seeds 3] [--only WORD ...]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from _corpora import ap_blei, kos_uci, newsgroups_clusters, smart_ir
from _topic_systems import System, Table, absent, available
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from threadpoolctl import threadpool_limits

from softcount.metrics import completion, diversity, npmi

HEAD = ("corpus", "K", "system", "CPU s", "perplexity", "lowest–highest", "NPMI", "diversity")


class Halves(NamedTuple):
    """Documents to learn from, others to be foreseen, and the words."""

    train: csr_matrix
    test: csr_matrix
    words: list[str]


class Quality(NamedTuple):
    """What one run is worth."""

    seconds: float
    perplexity: float
    npmi: float
    diversity: float


def newsgroups() -> Halves:
    posts = newsgroups_clusters()
    return Halves(posts.train, posts.test, posts.vocabulary)


def parted(counts: csr_matrix, words: list[str]) -> Halves:
    """The first four fifths and the rest, with the words of the former."""
    cut = counts.shape[0] * 4 // 5
    kept = np.flatnonzero(np.bincount(counts[:cut].indices, minlength=counts.shape[1]))
    return Halves(counts[:cut, kept], counts[cut:, kept], [words[i] for i in kept])


def abstracts(name: str) -> Halves:
    """Abstracts in an order of chance, without stop words and words of one abstract."""
    vectorizer = CountVectorizer(stop_words="english", min_df=2)
    counts = vectorizer.fit_transform(smart_ir(name).documents).tocsr().astype(np.float64)
    order = np.random.default_rng(0).permutation(counts.shape[0])
    return parted(counts[order], list(vectorizer.get_feature_names_out()))


CORPORA = {
    "20news": newsgroups,
    "ap_blei": lambda: parted(*ap_blei()),
    "kos_uci": lambda: parted(*kos_uci()),
    "med": lambda: abstracts("med"),
    "cran": lambda: abstracts("cran"),
}


def quality(halves: Halves, seconds: float, topics: Table) -> Quality:
    """Topics without any two words have died out and are left out."""
    alive = topics[np.count_nonzero(topics, axis=1) >= 2]
    foreseen = completion(alive, halves.test)
    perplexity = np.inf if foreseen.impossible else foreseen.perplexity
    return Quality(seconds, perplexity, npmi(alive, halves.train).mean, diversity(alive))


def runs(name: str, system: System, halves: Halves, n_topics: int, seeds: int) -> list[Quality]:
    found = []
    if name.startswith("softcount"):  # compile its kernels first
        list(system(halves.train[:64], halves.words, n_topics, 0))
    for seed in range(seeds):
        *_, (seconds, topics) = system(halves.train, halves.words, n_topics, seed)
        found.append(quality(halves, seconds, topics))
    return found


def row(corpus: str, n_topics: int, name: str, found: list[Quality]) -> str:
    mean = Quality(*np.mean(found, axis=0))
    each = [run.perplexity for run in found]
    spread = f"{min(each):.0f}–{max(each):.0f}" if len(each) > 1 else ""
    cells = (f"{mean.seconds:.1f}", f"{mean.perplexity:.0f}", spread, f"{mean.npmi:.3f}")
    return f"| {' | '.join((corpus, str(n_topics), name, *cells, f'{mean.diversity:.2f}'))} |"


def table(options: argparse.Namespace) -> Iterator[str]:
    """Markdown, a line at a time, as soon as it is known."""
    yield f"| {' | '.join(HEAD)} |"
    yield "|" + "---|" * len(HEAD)
    for corpus in options.corpora or CORPORA:
        halves = CORPORA[corpus]()
        for n_topics in options.topics:
            for name, system in available().items():
                if options.only and not any(word in name for word in options.only):
                    continue
                found = runs(name, system, halves, n_topics, options.seeds)
                yield row(corpus, n_topics, name, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=", ".join(CORPORA))
    parser.add_argument("--topics", nargs="+", type=int, default=[20, 100])
    parser.add_argument("--seeds", type=int, default=3, help="runs of each system")
    parser.add_argument("--only", nargs="+", help="systems whose name has one of these words")
    options = parser.parse_args()
    unknown = set(options.corpora) - set(CORPORA)
    if unknown:
        parser.error(f"unknown corpus {', '.join(sorted(unknown))}: choose from {list(CORPORA)}")
    warnings.simplefilter("ignore")  # most runs end before they converge
    with threadpool_limits(1):
        for line in table(options):
            print(line, flush=True)
    for name in absent():
        print(f"\nLeft out: {name} is not installed (pip install {name}).")


if __name__ == "__main__":
    main()
