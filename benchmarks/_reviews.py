"""Product reviews of four domains (Blitzer, Dredze & Pereira 2007), positive and negative."""

from __future__ import annotations

import numpy as np
from _corpora import lines
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer

from softcount.adapt.comparison import Domain

NAMES = ("books", "dvd", "electronics", "kitchen")
WIDTH = 5000


def domain(name: str) -> Domain:
    """2,000 reviews to learn from, and some thousands to test on; counts of words and pairs."""
    return Domain(*_part(name, "train"), *_part(name, "test"))


def domains() -> dict[str, Domain]:
    """All four."""
    return {name: domain(name) for name in NAMES}


def vocabulary() -> list[str]:
    """What the columns are: words, and pairs of words with _ between them."""
    return lines("blitzer_sentiment/vocab5000.txt.gz")


def weigher() -> TfidfTransformer:
    """How counts become rows: (1 + log tf) · idf, of length 1."""
    return TfidfTransformer(sublinear_tf=True)


def _part(name: str, part: str) -> tuple[csr_matrix, NDArray[np.int64]]:
    """Lines of ``label word:count …``; 1 is positive, 0 negative."""
    rows = [line.split() for line in lines(f"blitzer_sentiment/{name}.{part}.svmlight.gz")]
    y = np.array([int(float(row[0]) > 0) for row in rows])
    pairs = [[cell.split(":") for cell in row[1:]] for row in rows]
    ends = np.cumsum([0, *map(len, pairs)])
    columns, counts = np.array([pair for row in pairs for pair in row], dtype=np.float64).T
    X = csr_matrix((counts, columns.astype(np.int64), ends), shape=(len(rows), WIDTH))
    return X, y
