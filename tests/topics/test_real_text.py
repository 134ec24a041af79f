"""Seed words on 20 Newsgroups."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import softcount as sc
from softcount.metrics import completion_perplexity
from tests import real

SEEDS = {
    0: ["hockey", "nhl", "team"],
    1: ["space", "nasa", "orbit"],
    2: ["gun", "guns", "firearms"],
    3: ["encryption", "clipper", "key"],
}
EXPECTED = {
    0: {"game", "games", "season", "players", "play", "league", "teams"},
    1: {"launch", "shuttle", "satellite", "earth", "lunar", "moon", "mission"},
    2: {"weapons", "crime", "amendment", "law", "weapon", "laws", "firearm"},
    3: {"chip", "keys", "security", "privacy", "escrow", "nsa", "des"},
}
GROUPS = [11, 15, 17, 12]
"""Of hockey, space, guns and cryptography, counted from one."""


def corpus(part: str, words: list[str]) -> tuple[Any, Any]:
    pairs, labels, ends = [], [], [0]
    for line in real.lines(f"20news_bow/{part}.txt.gz"):
        label, _, bag = line.partition("\t")
        pairs += re.findall(r"(\d+):(\d+)", bag)
        labels.append(int(label))
        ends.append(len(pairs))
    columns, counts = np.array(pairs, dtype=np.int64).T
    shape = (len(labels), len(words))
    return sparse.csr_matrix((counts.astype(float), columns, ends), shape), np.array(labels)


@pytest.mark.slow
def test_seed_words_make_topics_of_their_groups() -> None:
    words = real.lines("20news_bow/vocab.txt.gz")
    train, _ = corpus("train", words)
    test, labels = corpus("test", words)
    often = np.bincount(train.indices, minlength=len(words))
    kept = np.flatnonzero((often >= 10) & ~np.isin(words, list(ENGLISH_STOP_WORDS)))
    names = [words[w] for w in kept]
    some = np.random.default_rng(0).permutation(train.shape[0])[:5000]
    train, test = train[some][:, kept], test[:, kept]
    seeds = {k: [names.index(word) for word in given] for k, given in SEEDS.items()}
    seeded, free = (
        sc.LDA(20, seed_words=given, learner=sc.EM(max_iter=30)).fit(train)
        for given in (seeds, None)
    )
    shares = seeded.transform(test)
    for k, group in enumerate(GROUPS):
        top = {names[word] for word, _ in seeded.top_words(15)[k]}
        assert len(top & set(SEEDS[k])) >= 2
        assert len(top & EXPECTED[k]) >= 3, sorted(top)
        of_group = shares[labels == group].mean(axis=0)
        assert shares[labels != group, k].mean() < 0.5 * of_group[k]
    # what seeds add to topics costs little
    figures = [completion_perplexity(model.topics_, test[:2000]) for model in (seeded, free)]
    assert figures[0] < 1.05 * figures[1]
