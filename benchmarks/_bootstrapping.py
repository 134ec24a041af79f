"""Corpora and seeds of the study of bootstrapping."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from _corpora import FOLDER, lines

import softcount as sc

NOISE = "?"


class Names(NamedTuple):
    """Names in their contexts as lists of features; the seeds; test items with their classes."""

    train: list[list[str]]
    test: list[list[str]]
    gold: np.ndarray
    seeds: list[sc.labels.Rule]


class Tagged(NamedTuple):
    """A token of SemCor with a sense, in its sentence."""

    document: str
    lemma: str
    pos: str
    sense: str
    tokens: list[str]
    position: int


def collins_singer() -> Names:
    """88,860 names without labels, shuffled, and 1,000 with; ? is noise, none of the classes."""
    train = [line.split() for line in lines("collins_singer_ne/train.ex.gz")]
    order = np.random.default_rng(0).permutation(len(train))
    test = [line.split("\t") for line in lines("collins_singer_ne/test.exy")]
    seeds = sc.labels.read_rules(FOLDER / "collins_singer_ne/seed.rules")
    return Names(
        [train[i] for i in order],
        [text.split() for _, text in test],
        np.array([label for label, _ in test], dtype=object),
        seeds,
    )


def view(feature: str) -> str:
    """Whether a feature of a name is its context, or the name itself."""
    return "context" if feature.startswith(("X01_", "X11_", "X3_")) else "spelling"


def semcor_tokens() -> list[Tagged]:
    """Nouns and verbs of SemCor that have a sense (of several the first), in order.

    Names are left out, whose senses are only person, location and group.
    """
    found = []
    for line in lines("semcor3/semcor3.tsv.gz"):
        _, document, _, text = line.split("\t")
        fields = [token.rsplit("|", 3) for token in text.split(" ")]
        words = [field[0].casefold() for field in fields]
        for i, (_, tag, lemma, sense) in enumerate(fields):
            if tag in ("NN", "VB") and sense:
                found.append(Tagged(document, lemma, tag, sense.split(";")[0], words, i))
    return found


def telling(X: Any, gold: Any, features: Any, least: float = 0.9) -> dict[str, list[str]]:
    """Two collocations a sense BY THE LABELS: the largest G² of those that are 90 % right.

    The second is chosen among the contexts that do not have the first.
    """
    found: dict[str, list[str]] = {}
    for sense in np.unique(gold):
        left, chosen = np.ones(len(gold), dtype=bool), []
        for _ in range(2):
            here, there = left & (gold == sense), left & (gold != sense)
            a, b = (np.asarray(X[rows].sum(axis=0)).ravel() for rows in (here, there))
            score = log_likelihood_ratio(a, here.sum(), b, there.sum())
            best = int(np.where(a >= least * np.maximum(a + b, 1), score, 0.0).argmax())
            chosen.append(str(features[best]))
            left &= X[:, best].toarray().ravel() == 0
        found[str(sense)] = chosen
    return found


def log_likelihood_ratio(a: Any, n: int, b: Any, m: int) -> Any:
    """Dunning's G² of a in n against b in m; 0 where it is not more common in the first."""

    def likelihood(k: Any, n: int, p: Any) -> Any:
        p = np.clip(p, 1e-12, 1 - 1e-12)
        return k * np.log(p) + (n - k) * np.log(1 - p)

    n, m = max(n, 1), max(m, 1)
    apart = likelihood(a, n, a / n) + likelihood(b, m, b / m)
    both = (a + b) / (n + m)
    together = likelihood(a, n, both) + likelihood(b, m, both)
    return np.where(a / n > b / m, 2 * (apart - together), 0.0)
