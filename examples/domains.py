"""Four exercises on product reviews: the loss of accuracy in a new domain, and how to reduce it.

1. Transfer loss: a classifier trained on books, tested on kitchen appliances, compared with one
   trained on kitchen appliances.
2. EasyAdapt with labels for 5 % of the target.
3. Structural correspondence: 500 pivots, 20 dimensions, no labels of the target.
4. Label propagation from the source to the target along a nearest-neighbour graph of reviews.

    python examples/domains.py [FOLDER [SOURCE TARGET]]

FOLDER has a file DOMAIN.text.tsv.gz for each domain, one review per line: label (1 or -1), stars,
title, text. Half of the target's reviews are for training, the others for testing.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score

import softcount as sc

USUAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "blitzer_sentiment"
SHARE, PIVOTS, DIMENSIONS = 0.05, 500, 20
Labels = NDArray[np.int64]


def reviews(folder: Path, domain: str) -> tuple[list[str], Labels]:
    """Read texts with their titles, shuffled, and whether each is positive."""
    with gzip.open(folder / f"{domain}.text.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t", 3) for line in file]
    order = np.random.default_rng(0).permutation(len(rows))
    texts = [f"{rows[i][2]}. {rows[i][3]}".replace("\\n", " ") for i in order]
    return texts, np.array([int(rows[i][0]) > 0 for i in order], dtype=np.int64)


class Exercises:
    """Source, target and test reviews as rows of one matrix each."""

    def __init__(self, folder: Path, source: str, target: str) -> None:
        texts, self.y_source = reviews(folder, source)
        others, y_others = reviews(folder, target)
        half = self.n_target = len(others) // 2
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=5, sublinear_tf=True)
        rows: Any = words.fit_transform(texts + others[:half])
        self.target = rows[len(texts) :]
        self.test = words.transform(others[half:])
        self.y_target, self.y_test = y_others[:half], y_others[half:]
        self.rows = rows
        self.domain = np.array([1] * len(texts) + [-1] * half)
        self.unlabelled = np.concatenate([self.y_source, np.full(half, -1)])

    def right(self, model: Any) -> float:
        """Return a model's accuracy on the target's test reviews."""
        return float(accuracy_score(self.y_test, model.predict(self.test)))

    def transfer_loss(self) -> None:
        """Exercise 1."""
        there = self.right(sc.adapt.SourceOnly().fit(self.rows, self.unlabelled, self.domain))
        home = self.right(
            sc.adapt.TargetOnly().fit(self.target, self.y_target, np.full(self.n_target, -1))
        )
        print(f"1. trained on the source {there:.3f}, on the target {home:.3f}: ", end="")
        print(f"{home - there:.3f} is lost")

    def easyadapt(self) -> None:
        """Exercise 2."""
        few = self.unlabelled.copy()
        shown = np.flatnonzero(self.domain < 0)[: round(SHARE * self.n_target)]
        few[shown] = self.y_target[: len(shown)]
        figures = {
            type(model).__name__: self.right(model.fit(self.rows, few, self.domain))
            for model in (sc.adapt.TargetOnly(), sc.adapt.Merge(), sc.adapt.EasyAdapt())
        }
        summary = ", ".join(f"{name} {right:.3f}" for name, right in figures.items())
        print(f"2. with {len(shown)} labels of the target: {summary}")

    def pivots(self) -> None:
        """Exercise 3."""
        model = sc.adapt.PivotProjection(n_pivots=PIVOTS, n_components=DIMENSIONS)
        model.fit(self.rows, self.unlabelled, self.domain)
        print(f"3. {PIVOTS} pivots, {DIMENSIONS} dimensions: {self.right(model):.3f}")

    def propagation(self) -> None:
        """Exercise 4."""
        model = sc.labels.LabelPropagation().fit(self.rows, self.unlabelled)
        print(f"4. labels spread along a graph: {self.right(model):.3f}")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else USUAL
    source, target = sys.argv[2:4] if len(sys.argv) > 3 else ("books", "kitchen")
    if not (folder / f"{source}.text.tsv.gz").is_file():
        print(f"skipped: there are no reviews in {folder.name}, give the folder they are in")
        raise SystemExit(0)
    exercises = Exercises(folder, source, target)
    print(f"from {source} to {target}, accuracy on {len(exercises.y_test):,} reviews")
    exercises.transfer_loss()
    exercises.easyadapt()
    exercises.pivots()
    exercises.propagation()
