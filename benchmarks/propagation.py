"""Label propagation beside scikit-learn's: accuracy, empty documents, a graph, time and memory.

20 Newsgroups by date, posts without headers: propagation sees the words of the test posts, not
their labels. Mean over draws of as many labelled training posts of every group; accuracy on the
test posts. k and the form of tf-idf are the library's defaults; they were chosen on the training
posts alone (`--choose` shows it: labels of some, accuracy on the others). Cora with Planetoid's 140
labels, accuracy on its 1,000 test papers. Time and memory are those of one process each, from the
tf-idf matrix to the labels, less what it took to load the matrix; CPU seconds of all threads.

    python benchmarks/propagation.py [--draws 3] [--json] [--choose] [--large]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _cora import cora
from _corpora import newsgroups_texts
from _costs import memory
from few_labels import some_labels
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.semi_supervised import LabelPropagation as Theirs

import softcount as sc
from softcount.labels.propagation import default_vectorizer

NUMBERS, EMPTY, UNKNOWN = (100, 300, 1000), (0, 1, 5, 38), -1
SMALL = 5000
LARGE = 100_000
Labels = NDArray[np.int64]
Figures = dict[str, float]
Corpus = tuple[list[str], Labels]
OURS = ("cosine + class mass", "SVD-100 + class mass")

METHODS: dict[str, Callable[[], Any]] = {
    "cosine + class mass": lambda: sc.labels.LabelPropagation(),
    "gaussian + class mass": lambda: sc.labels.LabelPropagation(weights="gaussian"),
    "SVD-100 + class mass": lambda: sc.labels.LabelPropagation(svd=100),
    "scikit-learn knn": lambda: Theirs(kernel="knn", n_neighbors=10, n_jobs=-1),
    "scikit-learn rbf": lambda: Theirs(kernel="rbf", gamma=20.0),
}


def accuracy(model: Any, X: Any, shown: Labels, gold: Labels, asked: Labels) -> float:
    model.fit(X, shown)
    return float((model.transduction_[asked] == gold[asked]).mean())


def newsgroups(draws: int) -> Figures:
    """Test accuracy by number of labels; the graph is the same for all, and built once."""
    posts = newsgroups_texts(("headers",))
    texts = [*posts.train, *posts.test]
    X = default_vectorizer(texts).fit_transform(texts)
    gold = np.concatenate([posts.train_labels, posts.test_labels])
    asked = np.arange(len(posts.train), len(texts))
    first = np.where(np.arange(len(texts)) < len(posts.train), gold, UNKNOWN)
    figures = {}
    for kind, settings in {"cosine": {}, "SVD-100": {"svd": 100}}.items():
        graph = sc.labels.LabelPropagation(**settings).fit(X, first).graph_
        for n in NUMBERS:
            right: dict[str, list[float]] = {kind: [], f"{kind} + class mass": []}
            for draw in range(draws):
                shown = np.full(len(texts), UNKNOWN)
                shown[: len(posts.train)] = some_labels(posts.train_labels, n, draw)
                for name, values in right.items():
                    model = sc.labels.LabelPropagation(
                        weights="precomputed", class_mass=name != kind
                    )
                    values.append(accuracy(model, graph, shown, gold, asked))
            found = {f"20NG, {n} labels, {name}": np.mean(each) for name, each in right.items()}
            figures |= {name: float(value) for name, value in found.items()}
    return figures


def empties() -> Figures:
    """Accuracy among 5,000 posts, none of them empty, 300 with a label, when some are emptied."""
    posts = newsgroups_texts(("headers",))
    read = default_vectorizer(posts.train).build_analyzer()
    full = [i for i, text in enumerate(posts.train) if read(text)][:SMALL]
    texts, gold = [posts.train[i] for i in full], posts.train_labels[full]
    shown = some_labels(gold, 300, 0)
    emptied = np.random.default_rng(0).permutation(np.flatnonzero(shown == UNKNOWN))
    figures = {}
    for n in EMPTY:
        changed = list(texts)
        for i in emptied[:n]:
            changed[i] = ""
        X = default_vectorizer(changed).fit_transform(changed)
        asked = np.setdiff1d(np.flatnonzero(shown == UNKNOWN), emptied[:n])
        for name in ("cosine + class mass", "gaussian + class mass", "scikit-learn knn"):
            right = accuracy(METHODS[name](), X, shown, gold, asked)
            figures[f"{n} empty of {SMALL:,}, {name}"] = right
    return figures


def citations() -> Figures:
    """Cora by who cites whom, by words, and by both."""
    papers = cora()
    shown = np.where(papers.split == "train", papers.labels, UNKNOWN)
    asked = np.flatnonzero(papers.split == "test")
    words = TfidfTransformer().fit_transform(papers.words)
    by_words = sc.labels.LabelPropagation()
    figures = {"words": accuracy(by_words, words, shown, papers.labels, asked)}
    graph = papers.citations + papers.citations.T
    for name, edges in {"citations": graph, "both": graph + by_words.graph_}.items():
        model = sc.labels.LabelPropagation(weights="precomputed")
        figures[name] = accuracy(model, edges, shown, papers.labels, asked)
    plain = sc.labels.LabelPropagation(weights="precomputed", class_mass=False)
    figures["citations, no class mass"] = accuracy(plain, graph, shown, papers.labels, asked)
    theirs = METHODS["scikit-learn knn"]()
    figures["words, scikit-learn knn"] = accuracy(theirs, words, shown, papers.labels, asked)
    return {f"Cora, {name}": value for name, value in figures.items()}


# time and memory: every method in a process of its own
def costs(corpora: dict[str, tuple[Corpus, tuple[str, ...]]]) -> Figures:
    """CPU seconds, seconds and memory above what loading took, with 1,000 labels."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for called, ((texts, gold), methods) in corpora.items():
            X = default_vectorizer(texts).fit_transform(texts)
            sparse.save_npz(Path(folder, "X.npz"), X)
            np.save(Path(folder, "y.npy"), some_labels(gold, 1000, 0))
            for name in methods:
                said = _in_a_process(name, folder)
                figures |= {f"{called}, {name}, {what}": value for what, value in said.items()}
    return figures


def all_posts(n: int | None = None) -> Corpus:
    posts = newsgroups_texts(("headers",))
    gold = np.concatenate([posts.train_labels, posts.test_labels])
    return [*posts.train, *posts.test][:n], gold[:n]


def pieces() -> Corpus:
    """100,000 pieces of posts, of as many words each."""
    texts, gold = all_posts()
    cut = [text.split() for text in texts]
    size = sum(map(len, cut)) // LARGE
    found = [
        (" ".join(words[a : a + size]), label)
        for words, label in zip(cut, gold.tolist(), strict=True)
        for a in range(0, len(words), size)
    ][:LARGE]
    return [text for text, _ in found], np.array([label for _, label in found])


def halves() -> Corpus:
    """100,000 documents as long as posts: of two posts of a group half the words each."""
    texts, gold = all_posts()
    cut = [np.array(text.split(), dtype=object) for text in texts]
    rng = np.random.default_rng(0)
    of_group = [np.flatnonzero(gold == k) for k in range(gold.max() + 1)]
    labels = rng.integers(len(of_group), size=LARGE)
    found = []
    for label in labels.tolist():
        chosen = [cut[i] for i in rng.choice(of_group[label], 2, replace=False)]
        found.append(" ".join(w for words in chosen for w in words[rng.random(len(words)) < 0.5]))
    return found, labels


def _in_a_process(name: str, folder: str) -> Figures:
    command = [sys.executable, __file__, "--one", name, "--folder", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said: Figures = json.loads(done.stdout.splitlines()[-1])
    return said


def one(name: str, folder: str) -> Figures:
    """Run a method once on a few documents, to compile it; then measure it."""
    X, shown = sparse.load_npz(Path(folder, "X.npz")), np.load(Path(folder, "y.npy"))
    few = np.flatnonzero(shown != UNKNOWN)[:300]
    METHODS[name]().fit(X[few], np.where(np.arange(len(few)) < 100, shown[few], UNKNOWN))
    before, began, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
    METHODS[name]().fit(X, shown)
    seconds = {"seconds": time.perf_counter() - began, "CPU s": time.process_time() - cpu}
    return {**seconds, "MB": memory("VmHWM") - before}


def choices() -> Figures:
    """What k and tf-idf were chosen by: training posts alone, accuracy on those without labels."""
    posts = newsgroups_texts(("headers",))
    gold = posts.train_labels
    usual = default_vectorizer(posts.train)
    forms: dict[str, Any] = {
        "1 + log tf": usual,
        "tf": TfidfVectorizer(analyzer=usual.analyzer),
        "1 + log tf, words of 2 posts": usual.__class__(
            analyzer=usual.analyzer, sublinear_tf=True, min_df=2
        ),
    }
    figures = {}
    for form, vectorizer in forms.items():
        X = vectorizer.fit_transform(posts.train)
        for k in (5, 10, 20) if form == "1 + log tf" else (10,):
            graph = sc.labels.LabelPropagation(n_neighbors=k).fit(X, gold).graph_
            for n in NUMBERS:
                right = []
                for draw in range(100, 103):
                    shown = some_labels(gold, n, draw)
                    model = sc.labels.LabelPropagation(weights="precomputed")
                    asked = np.flatnonzero(shown == UNKNOWN)
                    right.append(accuracy(model, graph, shown, gold, asked))
                figures[f"training posts, {form}, k={k}, {n} labels"] = float(np.mean(right))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--choose", action="store_true", help="show what settings were chosen by")
    parser.add_argument("--large", action="store_true", help="100,000 documents, and no more")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", sc.errors.UnreachedWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", RuntimeWarning)  # scikit-learn divides by zero
    if options.one:
        print(json.dumps(one(options.one, options.folder)))
        return
    if options.choose:
        figures = choices()
    elif options.large:
        figures = costs(
            {"100,000 pieces": (pieces(), OURS), "100,000 halves": (halves(), OURS[:1])}
        )
    else:
        few = (all_posts(SMALL), (*OURS, "scikit-learn knn", "scikit-learn rbf"))
        every = (all_posts(), (*OURS, "scikit-learn knn"))
        spent = costs({"5,000 posts": few, "18,846 posts": every})
        figures = {**newsgroups(options.draws), **empties(), **citations(), **spent}
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:55} {value:,.4g}")


if __name__ == "__main__":
    main()
