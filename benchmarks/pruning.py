"""What pruning a grammar of rules saves and what it loses: the WSJ sample, in one run and thread.

Rules are those of the first nine tenths of the trees, words being their tags, so that none are
unknown; sentences are those of the last tenth that have at most 40 words and a tree. Gives CPU
milliseconds a sentence (expected counts; best trees), and what `measure_pruning_loss` says.

    python benchmarks/pruning.py [--json] [--fast]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _corpora import FOLDER

from softcount.grammar.rule_based import RuleInference, make_rule_text, measure_pruning_loss
from softcount.grammar.rule_tables import BinarisedRules
from softcount.grammar.rules import count_rules
from softcount.text.treebank import read_trees, remove_functions, remove_traces
from softcount.text.trees import Tree

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
    trees = [of_tags(t) for t in some.changed(remove_traces, remove_functions) if t is not None]
    cut = len(trees) * 9 // 10
    rules = count_rules(trees[:cut])
    sentences = [words for t in trees[cut:] if len(words := t.words()) <= MOST][:most]
    own = BinarisedRules(rules)
    words = own.make_lexical(
        rules.probabilities, own.find_rows(word for s in sentences for word in s)
    )
    text = make_rule_text(np.array([len(s) for s in sentences]))
    sums, best = (
        RuleInference(own, own.make_tables(rules.probabilities, own.root, viterbi=v), words, text)
        for v in (False, True)
    )
    rows = []
    for prune in THRESHOLDS:
        pruned, parser = (one._replace(prune=prune) for one in (sums, best))
        counts = seconds(pruned.inside_outside, times)
        parses = seconds(parser.trace, times)
        loss = measure_pruning_loss(pruned, parser)
        ms = 1000.0 / len(sentences)
        rows.append({"prune": prune, "counts": counts * ms, "best": parses * ms, **loss._asdict()})
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
            f"{row['prune']:g} | {counts} | {best} | {row['pruned']:.3f} | {row['parsed_again']} | "
            f"{row['mean']:.4f}, {row['worst']:.3f} | {row['worse_trees']}"
        )


if __name__ == "__main__":
    main()
