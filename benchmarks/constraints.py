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
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from _bitexts import hansards, hansards_gold
from _corpora import FOLDER, newsgroups_texts
from _tables import show
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

import softcount as sc
from softcount.core.fit import Run
from softcount.learners import EM, Constraint, EachItem, FewValues, OneToOne, Share
from softcount.metrics import align_scores, induction_scores

PARTS = ("words", "tags", "links", "cost")
LABELS, SHOWN = 100, 3
TIMED = 5  # steps of the fits that are timed
STRENGTH = 5.0  # words of different classes meet in documents: not all of them can be right
WEIGHTS = {" alone": 0.0, ", EM, weight .1": 0.1, ", EM, weight 1": 1.0}
STRENGTHS, STEPS = (0.0, 3.0, 10.0), 40  # of the penalty on tags; steps of EM
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
    """Documents of known classes as counts, and words by which somebody would know the classes.

    ``columns``  the column of each word
    """

    train: csr_matrix
    truth: np.ndarray
    test: csr_matrix
    test_truth: np.ndarray
    columns: dict[str, int]
    words: dict[str, list[str]]
    settings: dict[str, Any]


def counted(
    train: Sequence[str],
    truth: np.ndarray,
    test: Sequence[str],
    test_truth: np.ndarray,
    words: dict[str, str],
    vectorizer: CountVectorizer,
    **settings: Any,
) -> Labelled:
    rows = vectorizer.fit_transform(train).tocsr()
    columns = {word: int(column) for word, column in vectorizer.vocabulary_.items()}
    by_class = {name: some.split() for name, some in words.items()}
    missing = {word for some in by_class.values() for word in some} - set(columns)
    assert not missing, missing
    others = vectorizer.transform(test).tocsr()
    return Labelled(rows, truth, others, test_truth, columns, by_class, settings)


def newsgroups() -> Labelled:
    texts = newsgroups_texts(("headers",))
    names = np.array(texts.names)
    vectorizer = CountVectorizer(stop_words="english", min_df=2)
    truths = names[texts.train_labels], names[texts.test_labels]
    settings = {"smoothing": 0.1, "length": 100.0}
    parts = texts.train, truths[0], texts.test, truths[1]
    return counted(*parts, NEWSGROUPS, vectorizer, **settings)


def questions() -> Labelled:
    parts: list[Any] = []
    for part in ("train", "test"):
        with gzip.open(FOLDER / f"qc_trec/{part}.tsv.gz", "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        parts += [[row[1] for row in rows], np.array([row[0].split(":")[0] for row in rows])]
    train, truth, test, test_truth = parts
    settings = {"smoothing": 0.1}
    return counted(train, truth, test, test_truth, QUESTIONS, CountVectorizer(), **settings)


def vote(data: Labelled, words: dict[str, list[str]]) -> float:
    """Accuracy of the class with most of the words in a document; the first of equals."""
    votes = [
        (data.test[:, [data.columns[word] for word in some]] > 0).sum(axis=1).A1
        for some in words.values()
    ]
    chosen = np.array(list(words))[np.argmax(votes, axis=0)]
    return float(np.mean(chosen == data.test_truth))


def constrain(data: Labelled, words: dict[str, list[str]]) -> list[Share]:
    return [
        Share(name, at_least=0.9, among=data.columns[word], strength=STRENGTH)
        for name, some in words.items()
        for word in some
    ]


def from_words(data: Labelled, words: dict[str, list[str]]) -> Any:
    learner = EM(max_iter=20, constraints=constrain(data, words))
    return sc.NaiveBayes(learner=learner, **data.settings).fit(data.train)


def from_labels(data: Labelled, draw: int, weight: float) -> Any:
    """Learn from labels, and from documents without, which have this weight."""
    rng, classes = np.random.default_rng(draw), np.unique(data.truth)
    shown: list[Any] = [None] * len(data.truth)
    for place, name in enumerate(classes):
        n = LABELS // len(classes) + (place < LABELS % len(classes))
        ours = np.flatnonzero(data.truth == name)
        for i in rng.choice(ours, min(n, len(ours)), replace=False):
            shown[i] = name
    settings = {**data.settings, "unlabelled_weight": weight}
    return sc.NaiveBayes(learner=EM(max_iter=20), **settings).fit(data.train, shown)


def measure_words(draws: int) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for title, make in (("20 Newsgroups", newsgroups), ("TREC questions", questions)):
        data, found = make(), dict[str, list[float]]()
        for draw in range(draws):
            for name, accuracy in accuracies(data, draw).items():
                found.setdefault(name, []).append(accuracy)
                print(title, draw, name, accuracy, file=sys.stderr, flush=True)
        for name, each in found.items():
            row = table.setdefault(name, {})
            row[title] = float(np.mean(each))
            row["±" if title == "20 Newsgroups" else "± "] = float(np.std(each))
    return table


def accuracies(data: Labelled, draw: int) -> dict[str, float]:
    """Accuracies on test documents of one draw of words and labels."""
    rng = np.random.default_rng(draw)
    some = {n: rng.choice(words, SHOWN, replace=False).tolist() for n, words in data.words.items()}
    found = {"3 words a class, votes": vote(data, some)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["3 words a class, constraints"] = score(from_words(data, some), data)
        for name, weight in WEIGHTS.items():
            found[f"100 labels{name}"] = score(from_labels(data, draw, weight), data)
        if not draw:
            found["5 words a class, votes"] = vote(data, data.words)
            found["5 words a class, constraints"] = score(from_words(data, data.words), data)
    return found


def score(model: Any, data: Labelled) -> float:
    return float(np.mean(model.predict(data.test) == data.test_truth))


def measure_tags(draws: int, sentences: int | None) -> dict[str, dict[str, float]]:
    from pos_induction import ewt, gold, wsj

    table = {}
    for title, corpus, n_states in (("EWT", ewt(), 17), ("WSJ", wsj(), 45)):
        right = gold(corpus.train)[:sentences]
        text = [corpus.train.sequences.sentence(n) for n in range(len(right))]
        for strength in STRENGTHS:
            many, v, tags = [], [], []
            for draw in range(draws):
                constraints = [FewValues(strength)] if strength else []
                model = sc.HMM(
                    n_states,
                    smoothing=0.01,
                    random_state=draw,
                    learner=EM(max_iter=STEPS, tol=0.0, constraints=constraints),
                )
                scores = induction_scores(model.fit(text).predict(text), right)
                many.append(scores.many_to_one)
                v.append(scores.v_measure)
                tags.append(model.constraints_[0].value if strength else np.nan)
            row = table[f"{title}, strength {strength:g}"] = {
                "many-to-one": float(np.mean(many)),
                "±": float(np.std(many)),
                "V": float(np.mean(v)),
                "± ": float(np.std(v)),
                "tags per word": float(np.mean(tags)),
            }
            print(title, strength, row, file=sys.stderr, flush=True)
    return table


def measure_links() -> dict[str, dict[str, float]]:
    gold = hansards_gold("trial")
    pairs = sc.text.as_bitext([*gold.pairs, *hansards(1000)])
    table: dict[str, dict[str, float]] = {}
    for kind in (sc.align.IBM1, sc.align.HMMAligner):
        row = table[kind.__name__] = {}
        for name, constraints in (("AER", []), ("one to one", [OneToOne()])):
            model = kind(learner=EM(max_iter=5, constraints=constraints)).fit(pairs)
            row[name] = 100.0 * align_scores(model.align()[: len(gold.links)], gold.links).aer
            row["slack"] = float(model.trace_.slack[-1])
    return table


def seconds(work: Callable[[], Any]) -> float:
    """CPU time between the first step of a fit and its last."""
    marks: list[float] = []

    def mark(self: Any, *given: Any) -> Any:
        marks.append(time.process_time())
        return judge(self, *given)

    judge, Run._judge = Run._judge, mark  # type: ignore[method-assign]
    try:
        work()
    finally:
        Run._judge = judge  # type: ignore[method-assign]
    return marks[-1] - marks[0]


def measure_cost() -> dict[str, dict[str, float]]:
    """CPU time of the steps of fits, as multiples of those without constraints, by turns."""
    data = newsgroups()
    rng = np.random.default_rng(0)
    sentences = [[f"w{w}" for w in rng.zipf(1.4, 20) if w < 5000] for _ in range(2000)]
    cases: list[tuple[str, Callable[[Sequence[Constraint]], object], list[Constraint]]] = []

    names = sorted(data.words)
    labels = [names[n] if n < len(names) else None for n in range(data.train.shape[0])]

    def documents(constraints: Sequence[Constraint]) -> Any:
        learner = EM(max_iter=TIMED, tol=0.0, constraints=constraints)
        return sc.NaiveBayes(learner=learner, **data.settings).fit(data.train, labels)

    def chains(constraints: Sequence[Constraint]) -> Any:
        learner = EM(max_iter=TIMED, tol=0.0, constraints=constraints)
        return sc.HMM(20, learner=learner).fit(sentences)

    cases.append(("20 Newsgroups, a share of classes", documents, [Share("sci.med", at_most=0.05)]))
    cases.append(("20 Newsgroups, 100 words", documents, list(constrain(data, data.words))))
    cases.append(("HMM, a share of states", chains, [Share(0, at_least=0.2)]))
    cases.append(("HMM, one state in each sentence", chains, [EachItem(0, at_least=1)]))
    cases.append(("HMM, few states per word", chains, [FewValues(10)]))
    table = {}
    for name, fit, constraints in cases:
        ratios = []
        for turn in range(3):
            ratio = seconds(lambda f=fit, c=constraints: f(c)) / seconds(lambda f=fit: f([]))
            if turn:  # the first compiles
                ratios.append(ratio)
        table[name] = {"times": float(np.mean(ratios))}
        print(name, ratios, file=sys.stderr, flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--sentences", type=int, help="of the part about tags; default: all")
    given = parser.parse_args()
    results: dict[str, Any] = {}
    if given.only in (None, "words"):
        results["words"] = measure_words(given.draws)
    if given.only in (None, "tags"):
        results["tags"] = measure_tags(given.draws, given.sentences)
    if given.only in (None, "links"):
        results["links"] = measure_links()
    if given.only in (None, "cost"):
        results["cost"] = measure_cost()
    if given.json:
        print(json.dumps(results, indent=1))
        return
    for name, table in results.items():
        show(name, table, 3)


if __name__ == "__main__":
    main()
