"""Beam search over one sentence: stacks by the number of words read, and the paths through them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels import decoder
from softcount.kernels.decoder import Stack, Steps, Task
from softcount.kernels.ngrams import Automaton
from softcount.models.language.words import END, MARKS
from softcount.models.translate.settings import Settings
from softcount.types import Array

Path = tuple[tuple[int, int], ...]
"""Steps in their order: which place of X was read, and which word was written."""


class Layer(NamedTuple):
    """A stack's hypotheses have the numbers from ``begin``; the steps that lead to them.

    ``target``, ``source``  hypotheses;  ``gain``  of the step that leads from one to the other
    """

    begin: int
    score: Array
    target: Array
    source: Array
    place: Array
    word: Array
    gain: Array


class Lattice(NamedTuple):
    """All that the search has kept; ``ends`` are hypotheses that have read all of X."""

    layers: list[Layer]
    ends: Array
    totals: Array


def search(task: Task, how: Settings, model: Automaton, start: int) -> Lattice:
    """Read X word by word, with an insertion before any word that is translated."""
    weights = how.weights()
    stack = decoder.beginning(start, task.estimate.sum())
    none = np.zeros(0, np.int64)
    layers = [Layer(0, stack.score, none, none, none, none, np.zeros(0))]
    ids, size = np.zeros(1, np.int64), 1
    for _ in range(len(task.estimate)):
        if len(task.insertable) and weights.insertion > -np.inf:
            steps = decoder.insertions(stack, task, weights, model)
            opened, layer = _kept(stack, ids, steps, how, size)
            layers.append(layer)
            ids = np.concatenate([ids, np.arange(size, size + len(opened.score))])
            size += len(opened.score)
            stack = Stack(*map(np.concatenate, zip(stack, opened, strict=True)))
        steps = decoder.readings(stack, task, weights, model, how.margin)
        stack, layer = _kept(stack, ids, steps, how, size)
        layers.append(layer)
        ids = np.arange(size, size + len(stack.score))
        size += len(ids)
    last = decoder.endings(stack, model, MARKS.index(END))
    return Lattice(layers, ids, stack.score + how.language * last)


def _kept(stack: Stack, ids: Array, steps: Steps, how: Settings, begin: int) -> tuple[Stack, Layer]:
    new, arrived, where = decoder.selected(stack, steps, how.width, how.margin)
    source = steps.source[arrived]
    layer = Layer(
        begin,
        new.score,
        begin + where,
        ids[source],
        steps.place[arrived],
        steps.word[arrived],
        steps.score[arrived] - stack.score[source],
    )
    return new, layer


def best_paths(lattice: Lattice) -> Iterator[tuple[float, Path]]:
    """Paths through the lattice, the best first.

    A* from the end: what a path can gain before it reaches a hypothesis is known, for it is the
    hypothesis's score.
    """
    scores = np.concatenate([layer.score for layer in lattice.layers])
    source, place, word, gain = (
        np.concatenate([getattr(layer, name) for layer in lattice.layers])
        for name in ("source", "place", "word", "gain")
    )
    target = np.concatenate([layer.target for layer in lattice.layers])
    order = np.argsort(target, kind="stable")
    first = np.searchsorted(target[order], np.arange(len(scores) + 1))
    tie = count()
    ends = zip(lattice.totals, lattice.ends, strict=True)
    queue: list[tuple[float, int, int, float, Any]] = [
        (-total, next(tie), int(end), total - scores[end], None) for total, end in ends
    ]
    heapq.heapify(queue)
    while queue:
        total, _, node, after, path = heapq.heappop(queue)
        if node == 0:
            yield float(-total), _unrolled(path)
            continue
        for e in order[first[node] : first[node + 1]]:
            gained = after + gain[e]
            there = int(source[e])
            step = (int(place[e]), int(word[e]), path)
            heapq.heappush(queue, (-(gained + scores[there]), next(tie), there, gained, step))


def _unrolled(path: object) -> Path:
    steps = []
    while isinstance(path, tuple):
        steps.append((path[0], path[1]))
        path = path[2]
    return tuple(steps)
