"""Co-training on real text."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import softcount as sc
from tests import real

ESCAPES = (("\\n", "\n"), ("\\t", "\t"), ("\\\\", "\\"))


def posts(part: str, groups: set[str]) -> tuple[list[str], list[str]]:
    """Raw posts of some newsgroups."""
    rows = [line.split("\t") for line in real.lines(f"20news_bydate/{part}.tsv.gz")]
    kept = [(group, text) for group, _, text in rows if group in groups]
    labels, texts = map(list, zip(*kept, strict=True))
    for escaped, plain in ESCAPES:
        texts = [text.replace(escaped, plain) for text in texts]
    return texts, labels


@pytest.mark.slow
def test_subjects_and_bodies_of_four_newsgroups() -> None:
    """From five labels a group; far better than without the unlabelled posts."""
    groups = {"rec.autos", "rec.sport.hockey", "sci.med", "talk.politics.guns"}
    texts, labels = posts("train", groups)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(texts))
    texts, labels = [texts[i] for i in order], [labels[i] for i in order]
    shown: list[str | None] = [None] * len(texts)
    for group in groups:
        for i in [i for i, label in enumerate(labels) if label == group][:5]:
            shown[i] = group
    new, true = posts("test", groups)
    scores = []
    for rounds in (0, 100):
        counter = CountVectorizer(stop_words="english")
        model = sc.labels.CoTraining(["subject", "body"], rounds=rounds, vectorizer=counter)
        scores.append(model.fit(texts, shown, gold=labels).score(new, true))
    assert model.verdict_.good
    assert model.history_.accuracy[-1] > 0.9
    assert scores[1] > max(0.88, scores[0] + 0.1)


@pytest.mark.slow
def test_names_from_seven_rules() -> None:
    """Spelling and context of names, from the items that seed rules label."""
    rules = dict(line.split()[1::-1] for line in real.lines("collins_singer_ne/seed.rules"))
    items = [line.split() for line in real.lines("collins_singer_ne/train.ex.gz")]
    tested = [line.split("\t") for line in real.lines("collins_singer_ne/test.exy")]
    clean = [(label, item.split()) for label, item in tested if label != "?"]
    seeded = [next((rules[f] for f in item if f in rules), None) for item in items]

    def context(item: list[str]) -> list[str]:
        return [f for f in item if f.startswith(("X01_", "X11_", "X3_"))]

    def spelling(item: list[str]) -> list[str]:
        return [f for f in item if not f.startswith(("X01_", "X11_", "X3_"))]

    model = sc.labels.CoTraining([spelling, context]).fit(items, seeded)
    labels, new = zip(*clean, strict=True)
    assert model.score(new, labels) > 0.9
