"""Trees from sentences: what is found in raw text, and in bracketed text.

Sentences of 2 to 10 words without punctuation, as sequences of tags (Pereira & Schabes 1992; Klein
& Manning 2002): the Wall Street Journal sample and MASC with their trees, and ATIS, whose brackets
are what stands below each head of its dependency trees (sentences in which these cross are left
out). Every tenth sentence is kept from learning, and asked about:

    unlabelled F1 of the best trees, mean over starts, spread, that of the start of the highest
    objective, and the highest; and the share of brackets of least-risk trees that cross none (mean)

for EM, variational Bayes, Viterbi training and the collapsed sampler, from raw and from bracketed
sentences; beside branching to the right and left, halves, random trees, and the gold trees made
binary, which no binary tree can beat.

    python benchmarks/grammar_induction.py [--json] [--starts N] [--only CORPUS] [--symbols K T]
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _tables import Table, show

import softcount as sc
from softcount.grammar.metrics import balanced, left_branching, random_tree, right_branching
from softcount.metrics import bracket_scores
from softcount.text.treebank import read_trees, remove_punctuation, remove_traces
from softcount.text.trees import Tree, binarise_right, find_crossing, from_spans

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
LONGEST = 10
SYMBOLS = (15, 20)
SPARSE = {"rules": 0.1, "words": 0.1}


class Corpus(NamedTuple):
    """Trees whose words are tags."""

    train: list[Tree]
    test: list[Tree]


def found(pattern: str) -> Path:
    """The file of a corpus."""
    paths = sorted(FOLDER.glob(pattern))
    if not paths:
        raise SystemExit(f"this study needs {pattern} in ../shared/data")
    return paths[0]


def treebank(pattern: str) -> Corpus:
    """Penn trees."""
    some = read_trees(found(pattern), unlabelled="X").changed(remove_traces, remove_punctuation)
    return parted(_of_tags(tree) for tree in some if tree is not None)


def _of_tags(tree: Tree) -> Tree:
    tags = [node.label for node in tree.nodes() if node.is_preterminal]
    return from_spans(tags, _inner(tree.spans()))


def _inner(spans: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    return [span for span in spans if span[2] - span[1] > 1]


def atis() -> Corpus:
    """What stands below each head is a constituent."""
    trees = []
    for part in ("train", "dev", "test"):
        for tags, heads in conllu(found(f"ud/*atis*{part}*")):
            spans = sorted(set(_inner([("X", *span) for span in yields(heads)])))
            if not any(find_crossing(spans, i, j) for _, i, j in spans):
                trees.append(from_spans(tags, spans))
    return parted(trees)


def conllu(path: Path) -> Iterator[tuple[list[str], list[int]]]:
    """Tags and heads, from 1, without punctuation (of which nothing depends)."""
    for block in gzip.decompress(path.read_bytes()).decode("utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line[:1].isdigit()]
        rows = [row for row in rows if row[0].isdigit() and row[3] != "PUNCT"]
        place = {row[0]: n for n, row in enumerate(rows, 1)}
        if rows and all(row[6] in place or row[6] == "0" for row in rows):
            yield [row[3] for row in rows], [place.get(row[6], 0) for row in rows]


def yields(heads: list[int]) -> list[tuple[int, int]]:
    """The first and last word below each word, itself included, as spans."""
    first, last = list(range(len(heads))), list(range(1, len(heads) + 1))
    for n in range(len(heads)):
        at = heads[n]
        while at:
            first[at - 1], last[at - 1] = min(first[at - 1], n), max(last[at - 1], n + 1)
            at = heads[at - 1]
    return list(zip(first, last, strict=True))


def parted(trees: Any) -> Corpus:
    """Those of a length that is wanted, for learning and for testing."""
    some = [tree for tree in trees if tree is not None and 2 <= len(tree.words()) <= LONGEST]
    return Corpus([tree for n, tree in enumerate(some) if n % 10], some[::10])


CORPORA = {
    "WSJ": lambda: treebank("wsj_sample/*.mrg.gz"),
    "MASC": lambda: treebank("masc_ptb/*.mrg.gz"),
    "ATIS": atis,
}


def ways() -> dict[str, tuple[bool, dict[str, Any]]]:
    """Whether brackets are given, and settings."""
    learners: dict[str, dict[str, Any]] = {
        "EM": {"learner": sc.EM(max_iter=100)},
        "VB": {"learner": sc.VariationalBayes(max_iter=100), "smoothing": SPARSE},
        "Viterbi EM": {"learner": sc.HardEM(max_iter=100), "smoothing": SPARSE},
        "collapsed Gibbs": {"learner": sc.CollapsedGibbs(max_iter=100), "smoothing": SPARSE},
    }
    return {
        f"{name}, {'bracketed' if bracketed else 'raw'}": (bracketed, settings)
        for bracketed in (False, True)
        for name, settings in learners.items()
    }


def tell(name: str) -> None:
    print(name, "…", file=sys.stderr, flush=True)


def f1(trees: Any, gold: list[Tree]) -> float:
    return 100.0 * float(bracket_scores(trees, gold, punctuation=()).f1)


def whole(trees: Any, gold: list[Tree]) -> float:
    """The share of brackets that cross none of the gold ones (Pereira & Schabes)."""
    right = every = 0
    for tree, best in zip(trees, gold, strict=True):
        theirs = [span[1:] for span in best.spans()]
        for _, i, j in _inner(tree.spans()) if tree is not None else ():
            every += 1
            right += not any(i < a < j < b or a < i < b < j for a, b in theirs)
    return 100.0 * right / max(every, 1)


def learned(corpus: Corpus, starts: int, symbols: tuple[int, int]) -> Table:
    raw, asked = ([tree.words() for tree in some] for some in corpus)
    table: Table = {}
    for name, (bracketed, settings) in ways().items():
        tell(name)
        figures = []
        for seed in range(starts):
            model = sc.PCFG(*symbols, random_state=seed, **settings)
            model.fit(raw, brackets=corpus.train if bracketed else None)
            best = f1(model.predict(asked), corpus.test)
            risk = whole(model.predict(asked, method="brackets"), corpus.test)
            figures.append((model.trace_[-1].objective, best, risk))
        objectives, scores, kept = np.array(figures).T
        table[name] = {
            "mean F1": scores.mean(),
            "±": scores.std(),
            "best start": scores[objectives.argmax()],
            "highest": scores.max(),
            "not crossing": kept.mean(),
        }
    return table


def baselines(corpus: Corpus) -> Table:
    rng = np.random.default_rng(0)
    asked = [tree.words() for tree in corpus.test]
    given = {
        "left-branching": [left_branching(words) for words in asked],
        "random": [random_tree(words, rng) for words in asked],
        "halves": [balanced(words) for words in asked],
        "right-branching": [right_branching(words) for words in asked],
        "gold, binary": [binarise_right(tree) for tree in corpus.test],
    }
    table: Table = {}
    for name, trees in given.items():
        score = f1(trees, corpus.test)
        kept = whole(trees, corpus.test)
        table[name] = dict.fromkeys(("mean F1", "best start", "highest"), score)
        table[name] |= {"±": 0.0, "not crossing": kept}
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--only", choices=sorted(CORPORA))
    parser.add_argument("--symbols", type=int, nargs=2, default=SYMBOLS, metavar=("K", "T"))
    given = parser.parse_args()
    tables: dict[str, Table] = {}
    for name in [given.only] if given.only else CORPORA:
        corpus = CORPORA[name]()
        tell(f"{name}: {len(corpus.train)} sentences, {len(corpus.test)} to be asked about")
        tables[name] = learned(corpus, given.starts, tuple(given.symbols)) | baselines(corpus)
        if not given.json:
            show(name, tables[name], 1)
    if given.json:
        print(json.dumps(tables, indent=1))


if __name__ == "__main__":
    main()
