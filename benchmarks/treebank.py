"""Grammars read off a treebank: how well they parse new sentences, and how fast.

The Wall Street Journal sample without traces and functions: the first nine tenths of its trees are
counted, sentences of the last tenth are parsed. Words are the only input but where it says tags;
lengths are with punctuation. Figures are by evalb's conventions (labelled) and those of
`bracket_scores` (unlabelled, trivial brackets left out), in per cent; CPU ms a sentence, by one
thread.

    grammars   rules as they are, and markovised: h children beside it, v labels from it up
    methods    `PCFG.from_treebank` as users have it: best trees, and trees of least risk
    words      words that were never seen, or never so: the best grammar without help for these
    nltk       induce_pcfg and ViterbiParser on the same sentences of tags, as far as time allows;
               log p of best trees must be the same

The last tenth has few short sentences: with --folds 5, those of the first nine tenths are parsed
by what is counted elsewhere in these. Settings were chosen so.

    python benchmarks/treebank.py [--json] [--longest 15] [--folds N] [--only PART]
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _tables import Table, show

from softcount import PCFG, Local
from softcount.grammar.metrics import bracket_scores, right_branching
from softcount.grammar.rule_based import RuleInference, make_rule_text
from softcount.grammar.rule_tables import KNOWN, BinarisedRules, UnknownWords
from softcount.grammar.rules import count_rules
from softcount.text.treebank import (
    binarise_left,
    binarise_right,
    read_trees,
    remove_functions,
    remove_traces,
    trees,
    undo_binarising,
)
from softcount.text.trees import Tree, fold_tree

FILE = "wsj_sample/wsj_sample.mrg.gz"
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
TRAIN = 0.9
PARTS = ("grammars", "methods", "words", "nltk")
BINARY = partial(binarise_right, horizontal=2)
BEST = partial(binarise_right, horizontal=1, vertical=2, tags=True)
GRAMMARS: dict[str, Callable[[Tree], Tree]] = {
    "rules as they are": lambda tree: tree,
    "h = 1, v = 1": partial(binarise_right, horizontal=1),
    "h = 2, v = 1": BINARY,
    "h = 1, v = 2": partial(binarise_right, horizontal=1, vertical=2),
    "h = 2, v = 2": partial(binarise_right, horizontal=2, vertical=2),
    "h = 2, v = 3": partial(binarise_right, horizontal=2, vertical=3),
    "h = 2, v = 2, tags too": partial(binarise_right, horizontal=2, vertical=2, tags=True),
    "h = 1, v = 2, from the left, tags too": partial(
        binarise_left, horizontal=1, vertical=2, tags=True
    ),
    "h = 1, v = 2, tags too": BEST,
}
SHORT = 10  # words of sentences that nltk is given


class Split(NamedTuple):
    """Trees to count, and trees of sentences to be parsed."""

    train: list[Tree]
    test: list[Tree]


class Found(NamedTuple):
    """Best trees, None where there is none, their log p, CPU ms a sentence, and rules."""

    trees: list[Tree | None]
    logs: np.ndarray
    ms: float
    rules: int


def splits(longest: int, folds: int) -> list[Split]:
    """Nine tenths and the last one; or, of the nine tenths, each fold and all others."""
    path = FOLDER / FILE
    if not path.is_file():
        raise SystemExit(f"this study needs {FILE} in ../shared/data")
    some = [t for t in read_trees(path).changed(remove_traces, remove_functions) if t]
    n = round(TRAIN * len(some))
    cuts = [n, len(some)] if folds < 2 else [n * fold // folds for fold in range(folds + 1)]
    last = len(some) if folds < 2 else n
    return [
        Split(
            some[:low] + some[high:last], [t for t in some[low:high] if len(t.words()) <= longest]
        )
        for low, high in pairwise(cuts)
    ]


def tags_for_words(tree: Tree) -> Tree:
    """The tree of its tags: each is its own word."""

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        return Tree(node.label, (node.label,) if node.is_preterminal else tuple(parts))

    return fold_tree(tree, make)


def parsed(seen: Sequence[Tree], sentences: Sequence[list[str]], known: float | None) -> Found:
    """The best trees of sentences by the grammar of trees that were seen.

    ``known``  see `UnknownWords.place_tokens`; None: words that were never seen make it impossible
    """
    rules = count_rules(seen)
    own, unknown = BinarisedRules(rules), UnknownWords(rules)
    grammar = own.make_tables(rules.probabilities, own.root, viterbi=True)

    def derived(some: Sequence[list[str]]) -> tuple[list[Tree | None], np.ndarray]:
        tokens = [word for sentence in some for word in sentence]
        rows, more = own.find_rows(tokens), None
        if known is not None:
            rows, more = unknown.place_tokens(own, rules.probabilities, tokens, known)
        words = own.make_lexical(rules.probabilities, rows, more)
        text = make_rule_text(np.array([len(sentence) for sentence in some]))
        found = RuleInference(own, grammar, words, text).trace()
        codes = np.split(found.codes, found.indptr[1:-1])
        return [own.make_tree(*pair, words) for pair in zip(codes, some, strict=True)], found.log_p

    derived(sentences[:1])  # compiles
    begun = time.process_time()
    best, logs = derived(sentences)
    ms = 1000.0 * (time.process_time() - begun) / len(sentences)
    return Found(best, logs, ms, len(rules))


def figures(found: Sequence[Tree | None], gold: Sequence[Tree]) -> dict[str, float]:
    labelled, plain = (bracket_scores(found, gold, labelled=how) for how in (True, False))
    return {
        "F1": 100 * labelled.f1,
        "precision": 100 * labelled.precision,
        "recall": 100 * labelled.recall,
        "unlabelled F1": 100 * plain.f1,
        "exact": 100 * labelled.exact,
        "parsed": 100 * (1 - labelled.unparsed / labelled.sentences),
    }


def scored(data: list[Split], change: Callable[[Tree], Tree], known: float | None = KNOWN) -> Any:
    best: list[Tree | None] = []
    costs = []
    for seen, new in data:
        found = parsed([change(t) for t in seen], [t.words() for t in new], known)
        best += [
            t and undo_binarising(t, tags=True) for t in found.trees
        ]  # no tag has a ^ of its own
        costs.append((found.ms, found.rules))
    ms, rules = np.mean(costs, axis=0)
    return {**figures(best, gold_of(data)), "ms": ms, "rules": rules}


def gold_of(data: list[Split]) -> list[Tree]:
    return [t for one in data for t in one.test]


def branching(data: list[Split]) -> dict[str, float]:
    """Right branching: S over VPs."""

    def make(node: Tree, parts: list[Tree | str]) -> Tree:
        return Tree("XX" if node.is_preterminal else "VP", tuple(parts))

    gold = gold_of(data)
    guessed = [fold_tree(right_branching(t.words()), make) for t in gold]
    tops = [Tree("S", t.children) for t in guessed]
    return {**figures(tops, gold), "ms": 0.0, "rules": 0.0}


def grammars(data: list[Split]) -> Table:
    tags = [Split(*([tags_for_words(t) for t in some] for some in one)) for one in data]
    table = {"right branching": branching(data)}
    table |= {name: scored(data, change) for name, change in GRAMMARS.items()}
    table["the same from gold tags, without words"] = scored(tags, BEST, 0.0)
    return table


def methods(data: list[Split]) -> Table:
    """What is asked of which grammar."""
    table: Table = {}
    for name, around in {
        "rules as they are": {},
        "h = 1, v = 2": {"horizontal": 1, "vertical": 2},
    }.items():
        models = [PCFG.from_treebank(one.train, engine=Local(threads=1), **around) for one in data]
        for method in ("viterbi", "labelled", "brackets"):
            best: list[Tree | None] = []
            begun = time.process_time()
            for model, one in zip(models, data, strict=True):
                best += model.predict([t.words() for t in one.test], method=method)
            ms = 1000.0 * (time.process_time() - begun) / len(best)
            table[f"{name}, {method}"] = {**figures(best, gold_of(data)), "ms": ms}
    return table


def unseen(data: list[Split]) -> Table:
    """Settings of words that were never seen, or never so."""
    ways = {"impossible": None, "new ones by looks": 0.0, "and known ones a little": 0.1}
    ways |= {f"and known ones, {KNOWN} times": KNOWN, "and known ones, once": 1.0}
    return {name: scored(data, BEST, known) for name, known in ways.items()}


def beside_nltk(data: Split, seconds: float) -> Table:
    """Rules of tags, h = 2, v = 1: nltk has no love of long ones. It goes on until time is over."""
    from nltk import Nonterminal, ViterbiParser, induce_pcfg
    from nltk import Tree as TheirTree

    train = [Tree("TOP", (BINARY(tags_for_words(t)),)) for t in data.train]
    gold = [Tree("TOP", (tags_for_words(t),)) for t in data.test if len(t.words()) <= SHORT]
    productions = [p for t in train for p in TheirTree.fromstring(str(t)).productions()]
    patient = {"max_time": None} if "max_time" in signature(ViterbiParser).parameters else {}
    parser = ViterbiParser(induce_pcfg(Nonterminal("TOP"), productions), **patient)
    theirs: list[Any] = []
    begun = time.process_time()
    for tree in gold:
        theirs.append(next(iter(parser.parse(tree.words())), None))
        if time.process_time() - begun > seconds:
            break
    ms = 1000.0 * (time.process_time() - begun) / len(theirs)
    gold = gold[: len(theirs)]
    ours = parsed(train, [t.words() for t in gold], None)
    for log, tree in zip(ours.logs, theirs, strict=True):
        same = tree is None if log == -np.inf else math.isclose(log, tree.logprob() * math.log(2))
        assert same, "the best trees are not equally good"
    texts = [t and " ".join(str(TheirTree.convert(t)).split()) for t in theirs]
    again = [t and undo_binarising(t) for t in trees(texts)]
    own = [t and undo_binarising(t) for t in ours.trees]
    return {
        "softcount": {**figures(own, gold), "sentences": len(gold), "ms": ours.ms},
        "nltk": {**figures(again, gold), "sentences": len(gold), "ms": ms},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--longest", type=int, default=15, help="words of a sentence, at most")
    parser.add_argument("--folds", type=int, default=1, help="cross-validate within the first part")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--peer-seconds", type=float, default=60.0, help="CPU time for nltk")
    options = parser.parse_args()
    data, parts = splits(options.longest, options.folds), [options.only] if options.only else PARTS
    about = f"{len(gold_of(data))} sentences of ≤ {options.longest} words"
    tables: dict[str, Table] = {}
    if "grammars" in parts:
        tables[f"{about}, {len(data[0].train):,} trees counted"] = grammars(data)
    if "methods" in parts:
        tables[f"{about}: what is asked"] = methods(data)
    if "words" in parts:
        tables[f"{about}: new words"] = unseen(data)
    if "nltk" in parts:
        tables[f"sentences of ≤ {SHORT} tags"] = beside_nltk(data[0], options.peer_seconds)
    if options.json:
        print(json.dumps(tables))
        return
    for title, table in tables.items():
        show(title, table, 1)


if __name__ == "__main__":
    main()
