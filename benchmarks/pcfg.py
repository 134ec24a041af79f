"""Grammars: CPU milliseconds a sentence beside torch-struct and NLTK, in one run and one thread.

Dense grammars of K nonterminals and as many preterminals, all rules drawn at random, and random
sentences. What is measured is a pass of EM: the log-likelihood and the expected counts of all
rules. torch-struct's `SentCFG` does log partition and `backward`, in batches of 1, 4 and 16
sentences, of which the fastest counts, in float32 (as is usual with it, and faster) and in float64.
Both have to find the same. Also: growth with the length of sentences and with K, best trees, draws.

A grammar of rules is read off the trees of the WSJ sample; NLTK's `ViterbiParser` finds the best
trees of a few short sentences by the rules of 150 trees (all rules would take it hours).

    python benchmarks/pcfg.py [--json] [--fast]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from _corpora import lines

from softcount.core.types import EStep, Stats
from softcount.grammar.core import GrammarOptions
from softcount.grammar.data import SpanConstraints, TreeShard
from softcount.grammar.dense import DenseGrammar, DenseSymbols
from softcount.grammar.rule_based import RuleInference, make_rule_text
from softcount.grammar.rule_tables import BinarisedRules
from softcount.grammar.rules import GrammarRules, count_rules
from softcount.hmm.data import SentenceShard, StateSets
from softcount.text.treebank import Trees, read_trees, remove_functions, remove_traces
from softcount.text.vocabulary import Vocabulary

N_WORDS, LENGTH = 1000, 20
DTYPES = ("float64", "float32")
BATCHES = (1, 4, 16)
NEAR = 1e-4
"""So near have the peer's figures to be, of float32."""


class Simulated(NamedTuple):
    """A random grammar and random sentences, all of one length."""

    k: int
    n: int
    params: dict[str, np.ndarray]
    shard: TreeShard


def simulated(k: int, n: int, sentences: int, seed: int = 0) -> Simulated:
    rng = np.random.default_rng(seed)
    root = np.concatenate([rng.dirichlet(np.ones(k)), np.zeros(k)])[None]
    rules, words = (rng.dirichlet(np.ones(size), k) for size in (4 * k * k, N_WORDS))
    tokens = rng.integers(0, N_WORDS, sentences * n).astype(np.int32)
    sets, indptr = np.zeros(len(tokens), np.int32), np.arange(sentences + 1) * n
    numbers, weights = np.arange(sentences), np.ones(sentences)
    text = SentenceShard(numbers, tokens, indptr, sets, StateSets.all_of(k), weights)
    tables = {"root": root, "rules": rules, "words": words}
    return Simulated(k, n, tables, TreeShard(text, SpanConstraints.unconstrained(k)))


def core(k: int, dtype: str) -> DenseGrammar:
    nonterminals, preterminals = (tuple(f"{letter}{n}" for n in range(k)) for letter in "NP")
    words = Vocabulary([str(word) for word in range(N_WORDS)])
    symbols = DenseSymbols(nonterminals, preterminals, words, np.ones(N_WORDS, np.int64))
    return DenseGrammar.create(symbols, GrammarOptions(dtype=dtype))


def ours(data: Simulated, dtype: str) -> Stats:
    return core(data.k, dtype).expect(data.params, data.shard, EStep())


def theirs(data: Simulated, dtype: str, batch: int) -> tuple[float, np.ndarray]:
    """The log-likelihood and expected rules, by torch-struct."""
    import torch
    from torch_struct import SentCFG

    kind, k = getattr(torch, dtype), data.k
    with np.errstate(divide="ignore"):
        logs = {
            name: torch.tensor(np.log(table), dtype=kind) for name, table in data.params.items()
        }
    tokens = torch.tensor(data.shard.text.observed.astype(np.int64)).reshape(-1, data.n)
    rules = logs["rules"].reshape(k, 2 * k, 2 * k).requires_grad_(True)
    root, words = logs["root"][0, :k].requires_grad_(True), logs["words"].T
    total = 0.0
    for first in range(0, len(tokens), batch):
        terms = words[tokens[first : first + batch]].requires_grad_(True)
        n = len(terms)
        tree = SentCFG((terms, rules.expand(n, -1, -1, -1), root.expand(n, -1)))
        partition = tree.partition.sum()
        partition.backward()
        total += partition.item()
    return total, rules.grad.numpy().reshape(k, -1)


def demand_the_same(data: Simulated) -> dict[str, float]:
    """How far the two are apart; ends the program if that is too far."""
    mine = ours(data, "float64")
    apart = {}
    for dtype in DTYPES:
        total, rules = theirs(data, dtype, BATCHES[-1])
        logs = abs(total / mine.log_likelihood - 1.0)
        counts = float(np.abs(rules - np.asarray(mine.counts["rules"])).max())
        if max(logs, counts) > NEAR:
            raise SystemExit(f"torch-struct and ours are apart: log p {logs}, counts {counts}")
        apart[f"torch-struct {dtype}, largest difference of log p (share)"] = logs
        apart[f"torch-struct {dtype}, largest difference of expected rules"] = counts
    return apart


def cpu(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def in_turns(ways: Mapping[str, tuple[int, Callable[[], Any]]], rounds: int) -> dict[str, float]:
    """The cheapest of some rounds, in which all take turns: milliseconds a sentence."""
    for _, work in ways.values():
        work()  # compiles
    turns = [{name: cpu(work) for name, (_, work) in ways.items()} for _ in range(rounds)]
    return {name: 1e3 * min(turn[name] for turn in turns) / n for name, (n, _) in ways.items()}


def beside_torch(k: int, peers: bool) -> dict[str, float]:
    """A pass of EM."""
    many, few = simulated(k, LENGTH, 128), simulated(k, LENGTH, BATCHES[-1])
    ways = {dtype: (len(many.shard), partial(ours, many, dtype)) for dtype in DTYPES}
    sizes = [(dtype, batch) for dtype in DTYPES for batch in BATCHES if peers]
    for dtype, batch in sizes:
        ways[f"{dtype} {batch}"] = (len(few.shard), partial(theirs, few, dtype, batch))
    found = in_turns(ways, 3)
    figures = {f"{dtype}, ms a sentence": found[dtype] for dtype in DTYPES}
    if not peers:
        return figures
    best = {dtype: min(BATCHES, key=lambda n, of=dtype: found[f"{of} {n}"]) for dtype in DTYPES}
    for dtype, batch in best.items():
        figures[f"torch-struct {dtype}, ms a sentence"] = found[f"{dtype} {batch}"]
        figures[f"torch-struct {dtype}, its best size of a batch"] = batch
    for mine, other in (("float64", "float32"), ("float64", "float64"), ("float32", "float32")):
        ratio = found[f"{other} {best[other]}"] / found[mine]
        figures[f"{mine}, times faster than torch-struct in {other}"] = ratio
    return figures | demand_the_same(few)


def growth() -> dict[str, float]:
    """With the length of sentences and the size of the grammar; and passes for trees."""
    figures = {}
    for k, n in ((20, 10), (20, 40), (20, 80), (5, 20), (50, 20), (100, 20)):
        sentences = max(4, 64 * 20**2 * 20**2 // (n * n * k * k))
        data = simulated(k, n, sentences)
        found = in_turns({"": (sentences, partial(ours, data, "float64"))}, 3)
        figures[f"K={k}, {n} words, float64, ms a sentence"] = found[""]
    data, k = simulated(20, LENGTH, 128), 20
    inference = core(k, "float64").infer(data.params, data.shard)
    ways = {
        "log-likelihoods": lambda: inference.inside_outside(with_counts=False),
        "best trees": lambda: inference.trace(viterbi=True),
        "drawn trees": lambda: inference.trace(viterbi=False),
    }
    found = in_turns({name: (128, work) for name, work in ways.items()}, 3)
    return figures | {f"K=20, 20 words, {name}, ms a sentence": ms for name, ms in found.items()}


class Treebank:
    """Inference over sentences by the rules of trees."""

    def __init__(self, rules: GrammarRules, sentences: list[list[str]]) -> None:
        own, self.rules, self.sentences = BinarisedRules(rules), rules, sentences
        rows = own.find_rows(word for one in sentences for word in one)
        words = own.make_lexical(rules.probabilities, rows)
        text = make_rule_text(np.array([len(one) for one in sentences]))
        self.sums, self.best = (
            RuleInference(
                own, own.make_tables(rules.probabilities, own.root, viterbi=v), words, text
            )
            for v in (False, True)
        )

    def expected(self) -> Any:
        return self.sums.inside_outside()

    def parsed(self) -> Any:
        return self.best.trace()


def treebank() -> Trees:
    return read_trees(lines("wsj_sample/wsj_sample.mrg.gz")).changed(
        remove_traces, remove_functions
    )


def rules_of_trees(every: Trees) -> dict[str, float]:
    """Passes by all rules of the treebank over its sentences of fifteen words."""
    some = Treebank(count_rules(every), [one for one in every.words() if len(one) == 15])
    n = len(some.sentences)
    found = in_turns({"inside and outside": (n, some.expected), "best trees": (n, some.parsed)}, 3)
    figures = {"WSJ sample, rules": float(len(some.rules)), "sentences of 15 words": float(n)}
    return figures | {f"WSJ sample, 15 words, {name}, ms": ms for name, ms in found.items()}


def beside_nltk(every: Trees) -> dict[str, float]:
    """Best trees of a few sentences of up to seven words by the rules of 150 trees."""
    from nltk.grammar import PCFG, Nonterminal, ProbabilisticProduction
    from nltk.parse import ViterbiParser

    first = every.select(range(150))
    rules = count_rules(first)
    some = Treebank(rules, [one for one in first.words() if 2 <= len(one) <= 7][:3])
    productions = [
        ProbabilisticProduction(
            Nonterminal(rule.lhs),
            [i if word else Nonterminal(i) for i, word in zip(rule.rhs, rule.is_word, strict=True)],
            prob=float(p),
        )
        for rule, p in zip(rules.rules, rules.probabilities, strict=True)
    ]
    for symbol, p in rules.root.items():
        right = [Nonterminal(symbol)]
        productions.append(ProbabilisticProduction(Nonterminal("ROOT"), right, prob=p))
    parser = ViterbiParser(PCFG(Nonterminal("ROOT"), productions))
    n = len(some.sentences)
    ways = {
        "ours": (n, some.parsed),
        "ViterbiParser": (n, lambda: [list(parser.parse(one)) for one in some.sentences]),
    }
    found = in_turns(ways, 1)
    for mine, one in zip(some.parsed().logs, some.sentences, strict=True):
        (best,) = parser.parse(one)
        if abs(mine - math.log(best.prob())) > 1e-9:
            raise SystemExit(f"NLTK's best tree is another one: {one}")
    title = f"{n} short sentences, {len(rules)} rules, best trees"
    figures = {f"{title}, {name}, ms a sentence": ms for name, ms in found.items()}
    figures[f"{title}, times faster"] = found["ViterbiParser"] / found["ours"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--fast", action="store_true", help="dense grammars of 20 words alone")
    options = parser.parse_args()
    absent = [name for name in ("torch_struct", "nltk") if find_spec(name) is None]
    if absent:
        print(f"not installed, left out: {', '.join(absent)}", file=sys.stderr)
    warnings.filterwarnings("ignore", module="torch")
    if "torch_struct" not in absent:
        import torch

        torch.set_num_threads(1)
    figures = {}
    for k in (10, 20, 30):
        found = beside_torch(k, "torch_struct" not in absent)
        figures |= {f"K={k}, {LENGTH} words, {title}": value for title, value in found.items()}
    if not options.fast:
        figures |= growth()
        every = treebank()
        figures |= rules_of_trees(every)
        if "nltk" not in absent:
            figures |= beside_nltk(every)
    if options.json:
        print(json.dumps(figures))
        return
    for title, value in figures.items():
        print(f"{title:86} {value:,.4g}")


if __name__ == "__main__":
    main()
