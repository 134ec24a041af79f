"""From one domain to another: product reviews of four domains, all twelve transfers.

2,000 labelled reviews of the source, 2,000 of the target without labels (``--without``) or with
labels for 5 % of them (``--with``, mean of five draws); accuracy on the 3,586 to 5,945 test reviews
of the target, which nobody sees before. Rows are tf-idf of the 5,000 most frequent words and pairs
of words, idf from source and target. Also: what all 2,000 labels of the target would give.

Settings are the defaults. What a setting is chosen by: see docs/adaptation.md.

    python benchmarks/adaptation.py [--without | --with] [--draws N] [--svg FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from _reviews import NAMES, domains, weigher
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

import softcount as sc
from softcount.adapt.comparison import (
    CEILING,
    WITH_TARGET_LABELS,
    Comparison,
    Result,
    make_methods,
)

SHARE, DRAWS, SEEDS = 0.05, 5, 3
PUBLISHED = {
    "DANN, raw features (Ganin et al. 2016)": 0.763,
    "DANN, denoised features (Ganin et al. 2016)": 0.813,
}
WITHOUT = {
    **make_methods(target_labels=False),
    "PivotProjection, k=20": sc.adapt.PivotProjection(n_components=20),
    "AdversarialNetwork, λ=0": sc.adapt.AdversarialNetwork(reversal=0.0),
    "denoising, then network": Pipeline(
        [("denoising", sc.adapt.DenoisingProjection()), ("network", sc.adapt.AdversarialNetwork())]
    ),
}
SUPERVISED = (sc.adapt.SourceOnly, *WITH_TARGET_LABELS)
STRICT = LogisticRegression(max_iter=1000)
"""Scikit-learn's own C of 1; that of all methods without a classifier of their own is 3."""


def progress(one: Result) -> None:
    print(
        f"{one.source} → {one.target}, {one.method}: {one.accuracy:.4f} {one.seconds:.1f} s",
        flush=True,
    )


def show(found: Comparison) -> None:
    """A row for each method, a column for each transfer, the mean, and seconds a run."""
    pairs = found.transfers
    heads = " | ".join(f"{s[0].upper()}→{t[0].upper()}" for s, t in pairs)
    print(f"\n| | {heads} | mean | CPU s |\n|{'---|' * (len(pairs) + 3)}")
    for method in found.methods:
        cells = " | ".join(f"{found.accuracy(method, pair):.3f}"[1:] for pair in pairs)
        mean, seconds = found.accuracy(method), found.seconds(method)
        print(f"| {method} | {cells} | {f'{mean:.4f}'[1:]} | {seconds:.2f} |")


def worst(found: Comparison, method: str, other: str) -> str:
    """The transfer on which a method gains least beside another."""
    gains = {
        pair: found.accuracy(method, pair) - found.accuracy(other, pair) for pair in found.transfers
    }
    pair = min(gains, key=lambda one: gains[one])
    return f"{method} beside {other}: at least {gains[pair]:+.4f} ({' → '.join(pair)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--without", action="store_true", help="only without labels of the target")
    which.add_argument("--with", dest="labels", action="store_true", help="only with 5 %%")
    parser.add_argument("--draws", type=int, help="of labels, or of networks' seeds")
    parser.add_argument("--svg", type=Path, help="draw the methods without labels into this file")
    options = parser.parse_args()
    data = domains()
    print(f"domains: {', '.join(NAMES)}; published: {PUBLISHED}")
    if not options.labels:
        found = sc.adapt.compare(
            WITHOUT, data, vectorizer=weigher(), draws=options.draws or SEEDS, on_result=progress
        )
        print("\nno labels in the target")
        show(found)
        loss = found.accuracy(CEILING) - found.accuracy("SourceOnly")
        print(f"\ntransfer loss: {loss:.4f}")
        if options.svg:
            options.svg.write_text(found.svg(), encoding="utf-8")
    if not options.without:
        found = sc.adapt.compare(
            {
                **{one.__name__: one() for one in SUPERVISED},
                **{f"{one.__name__}, C=1": one(classifier=STRICT) for one in SUPERVISED},
            },
            data,
            vectorizer=weigher(),
            target_labels=SHARE,
            draws=options.draws or DRAWS,
            on_result=progress,
        )
        print(f"\n{SHARE:.0%} of the target's labels")
        show(found)
        for strict in ("", ", C=1"):
            for other in ("SourceOnly", "TargetOnly"):
                print(worst(found, f"EasyAdapt{strict}", f"{other}{strict}"))


if __name__ == "__main__":
    main()
