"""Labelling rules: labels from keywords alone, beside majority vote, Dawid–Skene and Snorkel.

The rules below were written once, from what the labels mean, before any of them was run; none was
changed after. Tasks: the six coarse classes of TREC questions, good and bad reviews of books and of
kitchen things, and four newsgroups. Every task is done on five random draws of 1,000 training
texts. Trust and tying were chosen after a first run on these tasks had been seen.

Accuracy of labels, on the items that some rule votes on ("labels"); and accuracy on the test data
of a classifier of words ("test"): multinomial Naive Bayes of scikit-learn, learned from the labels
that are most probable; for "with words" the model itself, learned from votes and words together.

Snorkel's label model is measured where ``--snorkel`` names a Python that has it: 500 epochs, seed 0
and its other settings as they are.

    python benchmarks/rules.py [--snorkel PYTHON] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _corpora import lines, newsgroups_texts
from _tables import show
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

import softcount as sc

DRAWS, N = 5, 1000

TREC = r"""
ABBR	\b(abbreviation|acronym|initials)\b
ABBR	\bstands? for\b
ABBR	\bfull form\b
DESC	^how (do|does|did|can|could|would|is|are|was|were)\b
DESC	^why\b
DESC	^what (is|are) (an?|the)? ?\w+ \?$
DESC	\b(definition|meaning|mean|origin|difference|purpose|cause|causes)\b
DESC	^what (does|do|did)\b
ENTY	^what (kind|type|sort)s? of\b
ENTY	\b(animal|color|food|book|movie|film|song|disease|sport|game|language|drug|plant|novel)s?\b
ENTY	\b(term|word|name for|called)\b
ENTY	^which \w+
HUM	^who\b
HUM	^(whose|whom)\b
HUM	\b(actor|actress|president|author|singer|man|woman|inventor|player|team|company|king|wife)\b
HUM	\bwhat \w+ (invented|founded|wrote|won|played|directed|said)\b
LOC	^where\b
LOC	\b(city|country|state|capital|river|island|mountain|continent|ocean|lake|located|countries)\b
LOC	\b(birthplace|address|site)\b
NUM	^how (many|much|far|long|old|tall|big|fast|often|high|deep|large|late|hot|cold)\b
NUM	^when\b
NUM	\b(what|which) (year|date|day|month|century|time|percentage|number)\b
NUM	\b(population|cost|salary|temperature|distance|length|height|speed|rate|zip|phone|birthday)\b
"""
REVIEWS = r"""
good	\b(excellent|perfect|perfectly|wonderful|fantastic|superb|amazing|outstanding)\b
good	\b(great|love|loved|loves|favorite)\b
good	\b(highly recommend|recommend (it|this) to|would recommend|must have|must read|must see)\b
good	\b(easy to|works great|works well|well made|well worth|best)\b
good	\b(happy|pleased|enjoyed|enjoyable|satisfied|beautiful)\b
good	^.{0,60}\b(great|good|love|best|excellent)\b
bad	\b(terrible|horrible|awful|worst|dreadful|pathetic)\b
bad	\b(waste|wasted|save your money|don't buy|do not buy|stay away|avoid)\b
bad	\b(disappointed|disappointing|disappointment|unfortunately)\b
bad	\b(broke|broken|stopped working|defective|returned it|return it|refund|junk|garbage)\b
bad	\b(boring|poor|poorly|bad|useless|cheap|cheaply|annoying|dull)\b
bad	\b(not worth|not recommend|doesn't work|does not work|didn't work|did not work|never again)\b
"""
NEWSGROUPS = r"""
rec.sport.baseball	\b(baseball|pitcher|pitching|inning|innings|batting|shortstop|homer|homers)\b
rec.sport.baseball	\b(mets|yankees|braves|red sox|phillies|cubs|dodgers|orioles|mlb)\b
rec.sport.baseball	\b(hit|hits|runs|base|bullpen|rbi|era)\b
rec.sport.hockey	\b(hockey|nhl|puck|goalie|goalies|ice|stanley cup|playoff|playoffs)\b
rec.sport.hockey	\b(leafs|bruins|penguins|rangers|flyers|canadiens|devils|sabres|oilers|wings)\b
rec.sport.hockey	\b(goal|goals|defenseman|power play|overtime|period)\b
sci.med	\b(doctor|doctors|patient|patients|disease|medical|medicine|symptoms|treatment)\b
sci.med	\b(drug|drugs|infection|pain|blood|cancer|diet|health|physician)\b
sci.med	\b(msg|vitamin|allergy|allergic|yeast|migraine|diagnosed)\b
sci.space	\b(space|nasa|orbit|orbital|shuttle|launch|satellite|moon|lunar)\b
sci.space	\b(spacecraft|rocket|mars|astronaut|hubble|telescope|solar|earth)\b
sci.space	\b(mission|payload|station|flight|jpl|esa)\b
"""


class Task(NamedTuple):
    """Texts with their true labels, to learn from and to test on, and rules."""

    texts: list[str]
    truth: np.ndarray
    test: list[str]
    test_truth: np.ndarray
    rules: list[sc.annotators.Pattern]


def read_patterns(text: str) -> list[sc.annotators.Pattern]:
    """One rule a line."""
    rows = (line.split("\t") for line in text.strip().splitlines())
    return [sc.annotators.Pattern(label, regex) for label, regex in rows]


def trec() -> Task:
    parts = []
    for part in ("train", "test"):
        rows = [line.split("\t") for line in lines(f"qc_trec/{part}.tsv.gz")]
        parts.append([text for _, text in rows])
        parts.append(np.array([label.split(":")[0] for label, _ in rows]))
    return Task(*parts, read_patterns(TREC))


def reviews(name: str) -> Task:
    """500 reviews to test on, the others to learn from."""
    rows = [line.split("\t") for line in lines(f"blitzer_sentiment/{name}.text.tsv.gz")]
    order = np.random.default_rng(0).permutation(len(rows))
    texts = [" ".join(rows[i][2:]).replace("\\n", " ") for i in order]
    truth = np.array(["good" if rows[i][0] == "1" else "bad" for i in order])
    return Task(texts[500:], truth[500:], texts[:500], truth[:500], read_patterns(REVIEWS))


def newsgroups() -> Task:
    """Posts without headers, footers and quotes."""
    found = newsgroups_texts()
    rules = read_patterns(NEWSGROUPS)
    wanted = {rule.label for rule in rules}
    parts: list[Any] = []
    for texts, labels in ((found.train, found.train_labels), (found.test, found.test_labels)):
        names = np.array(found.names)[labels]
        rows = [i for i, name in enumerate(names) if name in wanted]
        parts += [[texts[i] for i in rows], names[rows]]
    return Task(*parts, rules)


TASKS: dict[str, Callable[[], Task]] = {
    "TREC": trec,
    "books": lambda: reviews("books"),
    "kitchen": lambda: reviews("kitchen"),
    "newsgroups": newsgroups,
}


def groups_of(rules: list[sc.annotators.Pattern]) -> list[list[str]]:
    """The rules of one label as a group."""
    labels = sorted({rule.label for rule in rules})
    return [[rule.name for rule in rules if rule.label == label] for label in labels]


def models(rules: list[sc.annotators.Pattern]) -> dict[str, dict[str, Any]]:
    """Settings of `Annotators`, by what they are called in the tables."""
    groups = groups_of(rules)
    usual = {"tying": "one-coin", "silence": True, "trust": 1000}
    return {
        "Dawid–Skene": {},
        "one-coin": {"tying": "one-coin"},
        "MACE": {"tying": "mace"},
        "silence": {"silence": True},
        "one-coin, silence, trust 100": {**usual, "trust": 100},
        "one-coin, silence, trust 1000": usual,
        "…, balance fixed": {**usual, "class_balance": "uniform"},
        "…, groups": {**usual, "groups": groups},
        "…, with words": {**usual, "length": 10, "words": True},
    }


TESTED = ("majority", "one-coin, silence, trust 1000")
"""Methods whose labels are learned from by a classifier."""


def counter() -> CountVectorizer:
    return CountVectorizer(token_pattern=r"(?u)\b\w+\b", min_df=2)


def classify(texts: list[str], labels: np.ndarray, task: Task) -> float:
    """Accuracy on the test data of Naive Bayes learned from these labels."""
    vectorizer = counter()
    model = MultinomialNB(alpha=0.1).fit(vectorizer.fit_transform(texts), labels)
    return float(np.mean(model.predict(vectorizer.transform(task.test)) == task.test_truth))


def one_draw(
    task: Task, votes: Any, rows: np.ndarray, snorkel: Callable[..., Any] | None
) -> dict[str, tuple[float, float]]:
    """Accuracies of labels and on the test data, by method, for one half of the data."""
    texts, truth = [task.texts[i] for i in rows], task.truth[rows]
    matrix = votes[rows]
    names = [rule.name for rule in task.rules]
    some = np.flatnonzero((matrix != None).any(axis=1))  # noqa: E711  # elementwise
    read = sc.annotators.apply_rules(
        {name: (lambda i, j=j: matrix[i, j]) for j, name in enumerate(names)}, range(len(rows))
    )
    covered = [texts[i] for i in some]
    found: dict[str, tuple[float, float]] = {}

    def score(name: str, labels: np.ndarray) -> None:
        right = float(np.mean(labels[some] == truth[some]))
        tested = name in TESTED
        found[name] = right, classify(covered, labels[some], task) if tested else np.nan

    majority = sc.annotators.majority_vote(read)
    score("majority", np.array([str(majority[i]) for i in range(len(rows))]))
    for name, settings in models(task.rules).items():
        settings = dict(settings)
        words = settings.pop("words", False)
        if words:
            settings["vectorizer"] = counter()
        model = sc.Annotators(**settings).fit(read, texts=texts if words else None)
        if words:
            right = float(np.mean(model.labels_[some] == truth[some]))
            test = float(np.mean(model.predict(texts=task.test) == task.test_truth))
            found[name] = right, test
        else:
            score(name, model.labels_)
    if snorkel is not None:
        classes = sorted({rule.label for rule in task.rules})
        numbers = np.array(
            [[-1 if vote is None else classes.index(vote) for vote in row] for row in matrix]
        )
        score("Snorkel", np.array(classes)[snorkel(numbers, len(classes))])
    found["true labels"] = 1.0, classify(texts, truth, task)
    return found


SNORKEL = """
import sys
import numpy as np
from snorkel.labeling.model import LabelModel
votes, K, out = np.load(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
model = LabelModel(cardinality=K, verbose=False)
model.fit(votes, n_epochs=500, seed=0, progress_bar=False)
np.save(out, model.predict_proba(votes).argmax(axis=1))
"""


def run_snorkel(python: Path) -> Callable[[np.ndarray, int], Any]:
    """The labels of Snorkel's label model, computed by another Python."""

    def label(votes: np.ndarray, K: int) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            given, out = Path(folder) / "votes.npy", Path(folder) / "labels.npy"
            np.save(given, votes)
            command = [str(python), "-c", SNORKEL, str(given), str(K), str(out)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
            subprocess.run(command, check=True, capture_output=True, env=environment)
            return np.load(out)

    return label


def measure(snorkel: Callable[..., Any] | None) -> dict[str, dict[str, list[float]]]:
    """Means over draws: "labels" and "test", by method, then task."""
    tables: dict[str, dict[str, dict[str, float]]] = {"labels": {}, "test": {}}
    warnings.simplefilter("ignore")
    for name, make in TASKS.items():
        task = make()
        votes = np.array([[rule(text) for rule in task.rules] for text in task.texts], dtype=object)
        spoken = votes != None  # noqa: E711  # elementwise
        print(
            f"{name}: {len(task.texts):,} texts, {len(task.rules)} rules, "
            f"{spoken.any(axis=1).mean():.3f} covered, {spoken.sum(axis=1).mean():.2f} votes each",
            flush=True,
        )
        found = []
        for seed in range(DRAWS):
            rows = np.random.default_rng(seed).permutation(len(task.texts))
            found.append(one_draw(task, votes, rows[:N], snorkel))
        for place, table in enumerate(tables.values()):
            for method in found[0]:
                if np.isnan(found[0][method][place]):
                    continue
                mean = float(np.mean([draw[method][place] for draw in found]))
                table.setdefault(method, {})[name] = mean
    return tables  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--snorkel", type=Path, help="a Python that has snorkel")
    options = parser.parse_args()
    tables = measure(run_snorkel(options.snorkel) if options.snorkel else None)
    if options.json:
        print(json.dumps(tables))
        return
    for title, table in tables.items():
        for row in table.values():
            row["mean"] = float(np.mean(list(row.values())))
        show(title, table, 3)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
