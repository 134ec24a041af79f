"""How good alignments are: error rates of every model, on corpora whose links people have drawn.

Hansards      English–French, lower case; the 447 test pairs at the head of 10,000 and 100,000
              training pairs; alignment error rate in per cent. Settings were chosen on the 37
              trial pairs (--trial shows these instead)
Collins       Spanish from English, 5,401 pairs, of which 200 have links (all sure): F1
small         five corpora of 100 to 1,164 pairs, learned from by themselves, with and without a
              dictionary of 500 entries taken from the other half's links

python benchmarks/alignment_quality.py [--json] [--trial] [--pairs N …] [--only PART]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from _bitexts import SMALL, Gold, Pair, collins, hansards, hansards_gold, small
from _tables import show

import softcount as sc
from softcount.metrics import align_scores
from softcount.text.links import Links

ONE = sc.Local(threads=1)
SIZES = (10_000, 100_000)
SYMMETRIC = ("grow-diag-final-and", "grow-diag", "intersection")


def apart(model: str, **settings: Any) -> sc.Aligner:
    """Both directions, each for itself, as the textbooks have it."""
    plain = {"agree": False, "smoothing": 0.0, "stem": None}
    return sc.Aligner(model, engine=ONE, **{**plain, **settings})


VB = sc.VariationalBayes(max_iter=5)
MODELS: dict[str, Callable[[], Any]] = {
    "Model 1": lambda: apart("ibm1", warm_up=0),
    "Model 2": lambda: apart("ibm2"),
    "Diagonal": lambda: apart("diagonal", warm_up=0),
    "Diagonal, VB": lambda: apart("diagonal", warm_up=0, smoothing=0.01, learner=VB),
    "HMM": lambda: apart("hmm"),
    "Model 1, agreement": lambda: sc.Aligner("ibm1", warm_up=0, engine=ONE),
    "HMM, agreement, no stems": lambda: sc.Aligner(stem=None, smoothing=0.001, engine=ONE),
    "HMM, agreement (default)": lambda: sc.Aligner(engine=ONE),
    "GibbsAligner": lambda: sc.align.GibbsAligner(engine=ONE),
}


def cpu_fit(model: Any, pairs: Any, **options: Any) -> float:
    began = time.process_time()
    model.fit(pairs, **options)
    return time.process_time() - began


def tell(name: str) -> None:
    print(name, "…", file=sys.stderr, flush=True)


def hansards_table(n: int, part: str) -> dict[str, dict[str, float]]:
    """AER of every model, both directions and symmetrised."""
    known = hansards_gold(part)
    pairs = sc.text.as_bitext([*known.pairs, *hansards(n)])
    table = {}
    for name, make in MODELS.items():
        tell(f"Hansards, {n} pairs, {name}")
        model = make()
        seconds = cpu_fit(model, pairs)
        table[name] = {"s": seconds, **aers(model, known.links)}
    return table


def aers(model: Any, gold: Sequence[Links]) -> dict[str, float]:
    """AER in per cent of the first pairs: both directions, symmetrised, and by posteriors."""

    def aer(**how: Any) -> float:
        return 100.0 * align_scores(model.align(**how)[: len(gold)], gold).aer

    found = {name: aer(method=name) for name in ("forward", "backward", *SYMMETRIC)}
    return {**found, "posteriors": aer()}


def collins_table() -> dict[str, dict[str, float]]:
    """F1 of every model, Spanish words given English ones and the other way."""
    train, known = collins()
    pairs = sc.text.as_bitext(train)
    table = {}
    for name, make in MODELS.items():
        tell(f"Collins, {name}")
        model = make().fit(pairs)
        table[name] = {
            method or "posteriors": 100.0
            * align_scores(model.align(known.pairs, method=method), known.links).f1
            for method in ("forward", "backward", "intersection", "grow-diag-final-and", None)
        }
    return table


def small_table() -> dict[str, dict[str, float]]:
    """AER on the second half of each small corpus, without and with a dictionary."""
    table = {}
    for name, languages in SMALL.items():
        tell(languages)
        known = small(name)
        half = len(known.pairs) // 2
        entries = dictionary(Gold(known.pairs[:half], known.links[:half]))
        rest = Gold(known.pairs[half:], known.links[half:])
        row = {"pairs": float(len(known.pairs))}
        told: dict[str, dict[str, Any]] = {
            "": {},
            ", hard dictionary": {"dictionary": entries},
            ", soft dictionary": {"dictionary": entries, "dictionary_strength": 5.0},
        }
        for title, more in told.items():
            for kind in (sc.Aligner, sc.align.GibbsAligner):
                model = kind(engine=ONE, **more).fit(known.pairs)
                row[kind.__name__ + title] = (
                    100.0 * align_scores(model.align()[half:], rest.links).aer
                )
        table[languages] = row
    return table


def dictionary(known: Gold, most: int = 500) -> dict[str, list[str]]:
    """The pairs of words that are linked most often; a word may have several translations."""
    often: Counter[Pair] = Counter()
    for (source, target), links in zip(known.pairs, known.links, strict=True):
        e, f = source.split(), target.split()
        often.update((e[i], f[j]) for i, j in links.sure)
    entries: dict[str, list[str]] = {}
    for (source, target), _ in often.most_common(most):
        entries.setdefault(source, []).append(target)
    return entries


def measure(options: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    part = "trial" if options.trial else "test"
    tables = {}
    if options.only in (None, "hansards"):
        for n in options.pairs:
            tables[f"Hansards {part}, {n} pairs, AER"] = hansards_table(n, part)
    if options.only in (None, "collins"):
        tables["Collins, F1"] = collins_table()
    if options.only in (None, "small"):
        tables["small corpora, AER"] = small_table()
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--trial", action="store_true", help="the trial pairs, not the test pairs")
    parser.add_argument("--pairs", type=int, nargs="+", default=SIZES, help="sizes of training")
    parser.add_argument("--only", choices=["hansards", "collins", "small"])
    options = parser.parse_args()
    tables = measure(options)
    if options.json:
        print(json.dumps(tables))
        return
    for title, table in tables.items():
        show(title, table, 1)


if __name__ == "__main__":
    main()
