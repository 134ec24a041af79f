"""The papers of Cora as Planetoid cut them: words, citations, classes, and which are for what."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from _corpora import lines
from numpy.typing import NDArray
from scipy.sparse import csr_matrix


class Papers(NamedTuple):
    """Papers with the words they have, who cites whom, and the class of each."""

    words: csr_matrix
    citations: csr_matrix
    labels: NDArray[np.int64]
    split: NDArray[np.str_]
    """train (140), val (500), test (1,000) or rest."""


def cora() -> Papers:
    """2,708 papers of 7 classes, 1,433 words, 5,278 citations."""
    rows = [line.split("\t") for line in lines("planetoid_cora/nodes.tsv.gz")]
    words = [np.array(row[3].split(), dtype=np.int64) for row in rows]
    ends = np.cumsum([0, *map(len, words)])
    columns = np.concatenate(words)
    shape = (len(rows), int(columns.max()) + 1)
    present = csr_matrix((np.ones(len(columns)), columns, ends), shape=shape)
    pairs = [line.split("\t") for line in lines("planetoid_cora/edges.tsv.gz")]
    ends_of_edges = np.array(pairs, dtype=np.int64).T
    edges = csr_matrix((np.ones(len(pairs)), tuple(ends_of_edges)), shape=(len(rows), len(rows)))
    labels = np.array([int(row[1]) for row in rows])
    return Papers(present, edges, labels, np.array([row[2] for row in rows]))
