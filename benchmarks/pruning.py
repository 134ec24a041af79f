"""What pruning a grammar of rules saves and what it loses: the WSJ sample, in one run and thread.

Rules are those of the first nine tenths of the trees, words being their tags, so that none are
unknown; sentences are those of the last tenth that have at most 40 words and a tree. Gives CPU
milliseconds a sentence (expected counts; best trees), and what `pruning.lost` says.

    python benchmarks/pruning.py [--json] [--fast]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _corpora import FOLDER

from softcount.corpus.treebank import read_trees, without_functions, without_traces
from softcount.corpus.trees import Tree
from softcount.grammar import inside_outside as rule_passes
from softcount.grammar.binarised import Binarised
from softcount.grammar.core import lost
from softcount.grammar.rules import from_trees

THRESHOLDS = (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
MOST = 40


def of_tags(tree: Tree) -> Tree:
    """The tree with the tag of each word in place of the word."""
    if all(isinstance(child, str) for child in tree.children):
        return Tree(tree.label, (tree.label,))
    return Tree(tree.label, tuple(of_tags(c) for c in tree.children if isinstance(c, Tree)))


def seconds(work: Callable[[], Any], times: int) -> float:
    """CPU time of the fastest of some runs; one more compiles."""
    work()
    found = []
    for _ in range(times):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def measured(times: int, most: int | None) -> list[dict[str, float]]:
    some = read_trees(FOLDER / "wsj_sample" / "wsj_sample.mrg.gz")
    trees = [of_tags(t) for t in some.changed(without_traces, without_functions) if t is not None]
    cut = len(trees) * 9 // 10
    rules = from_trees(trees[:cut])
    sentences = [words for t in trees[cut:] if len(words := t.words()) <= MOST][:most]
    own = Binarised(rules)
    words = own.words(rules.chances, own.rows(word for s in sentences for word in s))
    text = rule_passes.rule_text(np.array([len(s) for s in sentences]))
    grammar, best = (own.grammar(rules.chances, own.root, best=best) for best in (False, True))
    ones, numbers = np.ones(len(sentences)), np.arange(len(sentences))
    rows = []
    for prune in THRESHOLDS:
        counted = partial(rule_passes.expected, own, grammar, words, text, ones, prune=prune)
        parsed = partial(rule_passes.derived, best, words, text, numbers, prune=prune)
        counts, parses = seconds(counted, times), seconds(parsed, times)
        told = lost(own, rules.chances, own.root, words, text, prune)
        ms = 1000.0 / len(sentences)
        rows.append({"prune": prune, "counts": counts * ms, "best": parses * ms, **told._asdict()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fast", action="store_true", help="few sentences, one run")
    args = parser.parse_args()
    rows = measured(1 if args.fast else 3, 40 if args.fast else None)
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{rows[0]['sentences']} sentences of at most {MOST} words that have a tree")
    print("prune | ms counts (times) | ms best (times) | left out | again | mean, worst | trees")
    for row in rows:
        counts, best = (f"{row[k]:.2f} ({rows[0][k] / row[k]:.1f})" for k in ("counts", "best"))
        print(
            f"{row['prune']:g} | {counts} | {best} | {row['share']:.3f} | {row['again']} | "
            f"{row['mean']:.4f}, {row['worst']:.3f} | {row['trees']}"
        )


if __name__ == "__main__":
    main()
