"""Scores of tags on a real corpus."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest

from softcount.metrics import tag_scores
from tests import real


def test_most_frequent_tags_on_a_real_corpus():
    """A tagger that gives each word its most frequent tag, counted without this library."""
    train = real.tagged("ud/en_ewt-ud-train.conllu.gz", 2000)
    test = real.tagged("ud/en_ewt-ud-dev.conllu.gz", 500)
    often: dict[str, Counter[str]] = {}
    for word, tag in chain(*train):
        often.setdefault(word, Counter())[tag] += 1
    best = {word: tags.most_common(1)[0][0] for word, tags in often.items()}
    words, gold = [[w for w, _ in s] for s in test], [[t for _, t in s] for s in test]
    found = [[best.get(w, "NOUN") for w in line] for line in words]
    scores = tag_scores(found, gold, [[w for w, _ in s] for s in train], words)
    old = [(best[w], t) for w, t in chain(*test) if w in best]
    new = [t for w, t in chain(*test) if w not in best]
    assert (scores.known, scores.unknown) == (len(old), len(new))
    assert scores.known_accuracy == pytest.approx(sum(f == t for f, t in old) / len(old))
    assert scores.unknown_accuracy == pytest.approx(new.count("NOUN") / len(new))
    assert scores.unknown_accuracy < scores.accuracy < scores.known_accuracy
