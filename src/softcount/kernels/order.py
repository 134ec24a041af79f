"""What of a story's derivations can be completed, and in which order its nodes can be computed."""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import njit
from softcount.types import Array

_NEW, _OPEN, _DONE = 0, 1, 2


@njit
def levels(
    node_ends: Array, alternative_ends: Array, parts: Array, n_events: int, roots: Array
) -> tuple[Array, Array, int]:
    """Each node's height above the leaves, which nodes have a finished derivation, and a culprit.

    The culprit is a node that needs itself, or -1. Nodes that no root needs get height -1.
    Depth first with a stack of our own.
    """
    n_nodes = len(node_ends) - 1
    level = np.full(n_nodes, -1, np.int64)
    alive = np.zeros(n_nodes, np.bool_)
    state = np.zeros(n_nodes, np.uint8)
    stack, at = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    for root in roots:
        if state[root] == _DONE:
            continue
        size = 1
        stack[0], at[0], state[root] = root, alternative_ends[node_ends[root]], _OPEN
        while size > 0:
            node = stack[size - 1]
            stop = alternative_ends[node_ends[node + 1]]
            pushed = False
            while at[size - 1] < stop and not pushed:
                part = parts[at[size - 1]] - n_events
                at[size - 1] += 1
                if part >= 0:
                    if state[part] == _OPEN:
                        return level, alive, part
                    if state[part] == _NEW:
                        stack[size], state[part] = part, _OPEN
                        at[size] = alternative_ends[node_ends[part]]
                        size += 1
                        pushed = True
            if not pushed:
                _close(node, node_ends, alternative_ends, parts, n_events, level, alive)
                state[node] = _DONE
                size -= 1
    return level, alive, -1


@njit
def _close(
    node: int,
    node_ends: Array,
    alternative_ends: Array,
    parts: Array,
    n_events: int,
    level: Array,
    alive: Array,
) -> None:
    """All that the node needs is known: find its own height, and whether it can be completed."""
    height = 0
    for a in range(node_ends[node], node_ends[node + 1]):
        possible = True
        for i in range(alternative_ends[a], alternative_ends[a + 1]):
            part = parts[i] - n_events
            if part >= 0:
                height = max(height, level[part])
                possible = possible and alive[part]
        alive[node] = alive[node] or possible
    level[node] = height + 1


@njit
def useful(
    node_ends: Array,
    alternative_ends: Array,
    parts: Array,
    n_events: int,
    roots: Array,
    level: Array,
    alive: Array,
    order: Array,
) -> Array:
    """Which alternatives take part in some finished derivation of a root.

    ``order`` lists the nodes by falling height.
    """
    needed = np.zeros(len(node_ends) - 1, np.bool_)
    needed[roots] = True
    keep = np.zeros(len(alternative_ends) - 1, np.bool_)
    for node in order:
        if not (needed[node] and alive[node]):
            continue
        for a in range(node_ends[node], node_ends[node + 1]):
            possible = True
            for i in range(alternative_ends[a], alternative_ends[a + 1]):
                part = parts[i] - n_events
                possible = possible and (part < 0 or alive[part])
            if possible:
                keep[a] = True
                for i in range(alternative_ends[a], alternative_ends[a + 1]):
                    part = parts[i] - n_events
                    if part >= 0:
                        needed[part] = True
    return keep
