"""Constraints on expectations: classifiers from words alone, few tags per word, and what they cost.

words  accuracy on test documents of Naive Bayes learned from constraints alone, without any
       labelled document: each word of a list written by hand has its class in nine tenths of
       its documents at least. Beside EM with labelled documents (100, as many of each class),
       and voting by the same words. 20 Newsgroups (20 classes, headers left out) and TREC
       questions (6 classes). A draw takes three of the five words of each class, or other
       labelled documents
tags   many-to-one and V-measure of the states of hidden Markov models without tags, with and
       without a penalty on the number of tags of a word: UD English EWT (17 tags, lower case)
       and the Wall Street Journal sample (45)
cost   CPU time of an E-step with constraints, as a multiple of one without

python benchmarks/constraints.py [--json] [--only PART] [--draws N]
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from _corpora import FOLDER, newsgroups_texts
from _tables import show
from sklearn.feature_extraction.text import CountVectorizer

import softcount as sc
from softcount.learners import EM, Constraint, EachItem, FewValues, Share
from softcount.metrics import induction_scores

PARTS = ("words", "tags", "cost")
LABELS, SHOWN = 100, 3
STRENGTH = 5.0  # words of different classes meet in documents: not all of them can be right
WEIGHTS = {" alone": 0.0, ", EM": 1.0, ", EM, weight by cross-validation": None}
NEWSGROUPS = {
    "alt.atheism": "atheists atheism atheist morality islamic",
    "comp.graphics": "graphics image polygon 3d rendering",
    "comp.os.ms-windows.misc": "windows ini dos microsoft win3",
    "comp.sys.ibm.pc.hardware": "scsi ide motherboard bios 486",
    "comp.sys.mac.hardware": "mac apple quadra centris macintosh",
    "comp.windows.x": "motif xterm x11r5 widget xlib",
    "misc.forsale": "sale shipping offer sell forsale",
    "rec.autos": "car cars ford engine toyota",
    "rec.motorcycles": "bike motorcycle riding bikes helmet",
    "rec.sport.baseball": "baseball pitcher pitching braves hitter",
    "rec.sport.hockey": "hockey nhl puck playoff goalie",
    "sci.crypt": "encryption clipper cryptography nsa crypto",
    "sci.electronics": "circuit voltage electronics amp resistor",
    "sci.med": "patients disease doctor medical symptoms",
    "sci.space": "space orbit nasa shuttle moon",
    "soc.religion.christian": "church christ catholic scripture sin",
    "talk.politics.guns": "gun firearms weapons guns firearm",
    "talk.politics.mideast": "israel arab turkish armenian palestinian",
    "talk.politics.misc": "president clinton government tax congress",
    "talk.religion.misc": "koresh mormon cult satan masons",
}
QUESTIONS = {
    "ABBR": "abbreviation stand acronym initials abbreviated",
    "DESC": "why mean definition difference causes",
    "ENTY": "animal color film book food",
    "HUM": "who president actor company wrote",
    "LOC": "where country city state mountain",
    "NUM": "many when year population far",
}


class Labelled(NamedTuple):
    """Documents of known classes, and words by which somebody would know them."""

    train: list[str]
    truth: np.ndarray
    test: list[str]
    test_truth: np.ndarray
    words: dict[str, list[str]]
    settings: dict[str, Any]


def newsgroups() -> Labelled:
    texts = newsgroups_texts(("headers",))
    names = np.array(texts.names)
    words = {name: words.split() for name, words in NEWSGROUPS.items()}
    vectorizer = CountVectorizer(stop_words="english", min_df=2)
    settings = {"smoothing": 0.1, "length": 100.0, "vectorizer": vectorizer}
    truths = names[texts.train_labels], names[texts.test_labels]
    return Labelled(texts.train, truths[0], texts.test, truths[1], words, settings)


def questions() -> Labelled:
    parts: dict[str, tuple[list[str], np.ndarray]] = {}
    for part in ("train", "test"):
        with gzip.open(FOLDER / f"qc_trec/{part}.tsv.gz", "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        parts[part] = [row[1] for row in rows], np.array([row[0].split(":")[0] for row in rows])
    words = {name: words.split() for name, words in QUESTIONS.items()}
    return Labelled(*parts["train"], *parts["test"], words, {"smoothing": 0.1})


def vote(data: Labelled, words: dict[str, list[str]]) -> float:
    """Accuracy of the class with most of the words in a document; the first of equals."""
    names = list(words)
    counts = np.zeros((len(data.test), len(names)))
    for n, text in enumerate(data.test):
        tokens = set(re.findall(r"\w+", text.lower()))
        counts[n] = [len(tokens & set(words[name])) for name in names]
    return float(np.mean(np.array(names)[counts.argmax(axis=1)] == data.test_truth))


def from_words(data: Labelled, words: dict[str, list[str]], strength: float = STRENGTH) -> Any:
    constraints = [
        Share(name, at_least=0.9, among=word, strength=strength)
        for name, some in words.items()
        for word in some
    ]
    learner = EM(max_iter=20, constraints=constraints)
    return sc.NaiveBayes(learner=learner, **data.settings).fit(data.train)


def from_labels(data: Labelled, draw: int, weight: float | None) -> Any:
    """Learn from labels; the weight of documents without is chosen by cross-validation if None."""
    rng, classes = np.random.default_rng(draw), np.unique(data.truth)
    shown: list[Any] = [None] * len(data.truth)
    for place, name in enumerate(classes):
        n = LABELS // len(classes) + (place < LABELS % len(classes))
        ours = np.flatnonzero(data.truth == name)
        for i in rng.choice(ours, min(n, len(ours)), replace=False):
            shown[i] = name
    learner = EM(max_iter=20)
    if weight is None:
        return sc.NaiveBayesCV(learner=learner, cv=3, **data.settings).fit(data.train, shown)
    settings = {**data.settings, "unlabelled_weight": weight}
    return sc.NaiveBayes(learner=learner, **settings).fit(data.train, shown)


def measure_words(draws: int) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for title, data in (("20 Newsgroups", newsgroups()), ("TREC questions", questions())):
        found: dict[str, list[float]] = {}

        def note(name: str, score: float, into: dict[str, list[float]] = found) -> None:
            into.setdefault(name, []).append(score)

        for draw in range(draws):
            rng = np.random.default_rng(draw)
            some = {
                name: rng.choice(words, SHOWN, replace=False).tolist()
                for name, words in data.words.items()
            }
            note("3 words a class, votes", vote(data, some))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                note("3 words a class, constraints", score(from_words(data, some), data))
                for name, weight in WEIGHTS.items():
                    note(f"100 labels{name}", score(from_labels(data, draw, weight), data))
        note("5 words a class, votes", vote(data, data.words))
        note("5 words a class, constraints", score(from_words(data, data.words), data))
        for name, each in found.items():
            row = table.setdefault(name, {})
            row[title] = float(np.mean(each))
            row["±" if title == "20 Newsgroups" else "± "] = float(np.std(each))
    return table


def score(model: Any, data: Labelled) -> float:
    return float(np.mean(model.predict(data.test) == data.test_truth))


def measure_tags(draws: int) -> dict[str, dict[str, float]]:
    from pos_induction import english, gold, journal

    table = {}
    for title, corpus, n_states in (("EWT", english(), 17), ("WSJ", journal(), 45)):
        text, right = corpus.train.sequences, gold(corpus.train)
        for strength in (0.0, 3.0, 10.0, 30.0):
            many, v, tags = [], [], []
            for draw in range(draws):
                constraints = [FewValues(strength)] if strength else []
                model = sc.HMM(
                    n_states,
                    smoothing=0.01,
                    random_state=draw,
                    learner=EM(max_iter=50, tol=0.0, constraints=constraints),
                )
                scores = induction_scores(model.fit(text).predict(text), right)
                many.append(scores.many_to_one)
                v.append(scores.v_measure)
                tags.append(model.constraints_[0].value if strength else np.nan)
            table[f"{title}, strength {strength:g}"] = {
                "many-to-one": float(np.mean(many)),
                "V": float(np.mean(v)),
                "tags per word": float(np.mean(tags)),
            }
    return table


def cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def measure_cost() -> dict[str, dict[str, float]]:
    """CPU time of fits of ten steps, as multiples of those without constraints, by turns."""
    data = newsgroups()
    rng = np.random.default_rng(0)
    sentences = [[f"w{w}" for w in rng.zipf(1.4, 20) if w < 5000] for _ in range(3000)]
    words = [Share(n, at_least=0.9, among=w) for n, some in data.words.items() for w in some]
    cases: list[tuple[str, Callable[[Sequence[Constraint]], object], list[Constraint]]] = []

    def documents(constraints: Sequence[Constraint]) -> object:
        learner = EM(max_iter=10, tol=0.0, constraints=constraints)
        names = sorted(data.words)
        labels = [names[n] if n < len(names) else None for n in range(len(data.train))]
        return sc.NaiveBayes(learner=learner, **data.settings).fit(data.train, labels)

    def chains(constraints: Sequence[Constraint]) -> object:
        learner = EM(max_iter=10, tol=0.0, constraints=constraints)
        return sc.HMM(20, learner=learner).fit(sentences)

    cases.append(("20 Newsgroups, a share of classes", documents, [Share("sci.med", at_most=0.05)]))
    cases.append(("20 Newsgroups, 100 words", documents, list(words)))
    cases.append(("HMM, a share of states", chains, [Share(0, at_least=0.2)]))
    cases.append(("HMM, one state in each sentence", chains, [EachItem(0, at_least=1)]))
    cases.append(("HMM, few states per word", chains, [FewValues(10)]))
    table = {}
    for name, fit, constraints in cases:
        ratios = []
        for _ in range(3):
            plain, constrained = cpu(lambda f=fit: f([])), cpu(lambda f=fit, c=constraints: f(c))
            ratios.append(constrained / plain)
        table[name] = {"times": float(np.median(ratios[1:]))}
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args()
    results: dict[str, Any] = {}
    if given.only in (None, "words"):
        results["words"] = measure_words(given.draws)
    if given.only in (None, "tags"):
        results["tags"] = measure_tags(given.draws)
    if given.only in (None, "cost"):
        results["cost"] = measure_cost()
    if given.json:
        print(json.dumps(results, indent=1))
        return
    for name, table in results.items():
        show(name, table, 3)


if __name__ == "__main__":
    main()
