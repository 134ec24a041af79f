"""Graphs of items: symmetric, sparse, without loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from softcount.errors import DataError
from softcount.types import Array
from softcount.weak.neighbours import Found


def joined(found: Found, weights: Array, n: int) -> Any:
    """The graph in which two items are joined if either is among the nearest of the other."""
    kept = weights > 0.0
    rows, others = found.row[kept], found.other[kept]
    return symmetric(sparse.csr_matrix((weights[kept], (rows, others)), shape=(n, n)))


def symmetric(graph: Any) -> Any:
    """The graph with each edge both ways, with the larger of its two weights, and no loops."""
    both = graph.maximum(graph.T).tocsr()
    both.setdiag(0.0)
    both.eliminate_zeros()
    both.sort_indices()
    return both


def read_graph(X: Any) -> Any:
    """A graph as users give it: weights of n × n edges, none negative.

    >>> read_graph(np.array([[5.0, 1.0], [0.0, 0.0]])).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    graph = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    if graph.shape[0] != graph.shape[1]:
        raise DataError(
            f"a graph of shape {graph.shape} joins items to other things",
            "weights='precomputed' takes one row and one column for every item",
        )
    demand_weights(graph)
    return symmetric(graph)


def demand_weights(matrix: Any) -> None:
    """Complain of weights that are none."""
    if matrix.nnz and not (np.isfinite(matrix.data).all() and matrix.data.min() >= 0.0):
        raise DataError(
            "Negative values in data: some weight of an edge is negative, or no number",
            "give weights of 0 (no edge) and above",
        )
    with np.errstate(over="ignore"):
        total = matrix.data.sum()
    if not np.isfinite(total):
        raise DataError("the weights of edges add up to infinity", "only ratios matter: scale them")


def reached(graph: Any, labelled: Array) -> Array:
    """Whether each item is joined, by whatever way, to one that is labelled."""
    _, component = sparse.csgraph.connected_components(graph, directed=False)
    found: Array = np.isin(component, component[labelled])
    return found
