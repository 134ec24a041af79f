"""Log-likelihoods taken apart by going through all hidden values: shares nothing with src.

A model is a list of items; an item is the log p(x, z) of each of its hidden values z, in one fixed
order. All else follows: `take_apart`. The other functions write down such lists, one for each kind
of model, from its tables as numpy has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

Items = list[Any]
"""log p(x, z) of every hidden value of each item."""


class Parts(NamedTuple):
    """What `softcount.decompose` should say."""

    log_likelihood: float
    q: float
    entropy: float
    bound: float
    kl: float


def total(logs: Any) -> float:
    """log Σ exp."""
    peak = np.max(logs)
    return float(peak + np.log(np.exp(logs - peak).sum())) if np.isfinite(peak) else -np.inf


def product_of(shares: Any, logs: Any) -> float:
    """Σ shares · logs; what has no share costs nothing."""
    some = shares > 0.0
    return float((shares[some] * logs[some]).sum())


def take_apart(
    here: Items, there: Items, weights: Sequence[float] | None = None, temper: float = 1.0
) -> Parts:
    """L at ``here``, seen from the posterior of ``there`` (its power ``temper``, made proper)."""
    found = np.zeros(3)
    for n, (now, then) in enumerate(zip(here, there, strict=True)):
        shares = np.exp(temper * then - total(temper * then))
        logs = np.log(np.where(shares > 0.0, shares, 1.0))
        item = (total(now), product_of(shares, now), -product_of(shares, logs))
        found += (1.0 if weights is None else weights[n]) * np.array(item)
    likelihood, q, entropy = found.tolist()
    return Parts(likelihood, q, entropy, q + entropy, likelihood - q - entropy)


def is_open(here: Items, there: Items) -> bool:
    """Whether Q hangs on something impossible whose share is next to nothing.

    Then Q is −inf, or would be if it were not for rounding: E-steps leave out tiny shares.
    """
    return any(
        bool(((then - total(then) < np.log(1e-9)) & np.isfinite(then) & ~np.isfinite(now)).any())
        for now, then in zip(here, there, strict=True)
    )


def tempered(items: Items, temper: float, weights: Sequence[float] | None = None) -> float:
    """Σ log Σ_z p(x, z)^β / β."""
    each = np.array([total(temper * logs) / temper for logs in items])
    return float(each.sum() if weights is None else each @ np.asarray(weights))


def log(values: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, dtype=float))


def times(counts: Any, logs: Any) -> Any:
    """counts · logs, with 0 · −inf = 0, summed over the last axis."""
    counts = np.broadcast_to(counts, np.shape(logs))
    return np.where(counts > 0, counts * np.where(counts > 0, logs, 0.0), 0.0).sum(axis=-1)


# one hidden class an item
def classes(weights: Any, of_classes: Any) -> Items:
    """``of_classes`` log p(x | k), (items, classes)."""
    return list(log(np.ravel(weights)) + of_classes)


def bags(x: Any, words: Any) -> Any:
    """log p of the words of each document in each class; words in order, no coefficient."""
    return np.array([times(row, log(words)) for row in np.asarray(x, dtype=float)])


def coins(x: Any, chances: Any, n_classes: int) -> Any:
    """The same for words that are there or not; ``chances`` has (absent, present) a class, word."""
    table = log(chances).reshape(n_classes, -1, 2)
    there = np.asarray(x) > 0
    return np.array([np.where(row, table[:, :, 1], table[:, :, 0]).sum(axis=1) for row in there])


def bells(points: Any, rows: Any, known_variance: float | None = None) -> Any:
    """log densities; a row is mean, precision (D², D or one number), and the log of its norm."""
    D = np.shape(points)[1]
    found = np.empty((len(points), len(rows)))
    for k, row in enumerate(np.asarray(rows)):
        mean, cells, norm = row[:D], row[D:-1], row[-1]
        if known_variance is not None:
            cells = np.array([1.0 / known_variance])
        precision = (
            cells.reshape(D, D)
            if len(cells) == D * D and D > 1
            else np.diag(np.broadcast_to(cells, D))
        )
        for n, x in enumerate(points):
            found[n, k] = norm - (x - mean) @ precision @ (x - mean) / 2.0
    return found


# one hidden topic a word
def topics(x: Any, theta: Any, phi: Any) -> Items:
    """All topics of all words of each document: K^n hidden values."""
    items = []
    for counts, row in zip(np.asarray(x, dtype=int), np.asarray(theta), strict=True):
        words = np.repeat(np.arange(len(counts)), counts)
        each = log(row)[:, None] + log(phi)[:, words]
        items.append(
            np.array(
                [
                    sum(each[k, n] for n, k in enumerate(z)) if len(z) else 0.0
                    for z in product(range(len(row)), repeat=len(words))
                ]
            )
        )
    return items


# chains
def chains(
    sentences: Sequence[Any],
    start: Any,
    moves: Any,
    second: Any,
    emit: Callable[[Any], Any],
    stop: bool,
    allowed: Callable[[int, int], Any] = lambda s, n: None,
) -> Items:
    """All sequences of states of each sentence.

    ``moves``    rows of states, or (order 2, if there is ``second``) of pairs of states
    ``emit``     log p(token | state) of all states
    ``allowed``  the states that token n of sentence s may have; None: all
    """
    start, moves = log(start).ravel(), log(moves)
    second, K = None if second is None else log(second), len(start)
    items = []
    for s, sentence in enumerate(sentences):
        seen = [emit(token) for token in sentence]
        may = [allowed(s, n) for n in range(len(sentence))]
        logs = []
        for z in product(range(K), repeat=len(sentence)):
            if any(m is not None and k not in m for k, m in zip(z, may, strict=True)):
                continue
            p = start[z[0]] + sum(row[k] for row, k in zip(seen, z, strict=True))
            path = [*z, K] if stop else list(z)
            for n in range(1, len(path)):
                if second is None:
                    p += moves[path[n - 1], path[n]]
                elif n == 1:
                    p += second[path[0], path[1]]
                else:
                    p += moves[K * path[n - 2] + path[n - 1], path[n]]
            logs.append(p)
        items.append(np.array(logs))
    return items


# alignments
def alignments(
    pairs: Sequence[tuple[Sequence[Any], Sequence[Any]]],
    t: Callable[[Any, Any], float],
    place: Callable[[Any, int, int], float],
    null: bool,
    known: Sequence[Any] | None = None,
) -> Items:
    """All alignments of each pair.

    ``t``      p(target word | source word, or None: the empty one)
    ``place``  log p(a | l, m); a has l for the empty word
    ``known``  links (i, j) of each pair, or None
    """
    items = []
    for n, (source, target) in enumerate(pairs):
        l, m = len(source), len(target)
        may = [list(range(l + null))] * m
        for j in range(m) if known is not None and known[n] else ():
            sure = [i for i, at in known[n] if at == j]
            may = [*may[:j], sure or may[j], *may[j + 1 :]]
        logs = []
        for a in product(*may):
            words = sum(
                log(t(f, None if i == l else source[i])) for f, i in zip(target, a, strict=True)
            )
            logs.append(float(words) + place(a, l, m))
        items.append(np.array(logs))
    return items


def even_places(null: bool) -> Callable[[Any, int, int], float]:
    """IBM Model 1."""
    return lambda a, l, m: -m * float(np.log(l + null))


def tabled_places(
    table: Any, sizes: set[tuple[int, int]], null: bool
) -> Callable[[Any, int, int], float]:
    """IBM Model 2: for each (l, m) in order, for each target place, l + 1 numbers.

    Sizes that the table has not are as Model 1 has them.
    """
    at, begins = 0, {}
    for l, m in sorted(sizes):
        begins[l, m] = at
        at += (l + 1) * m

    def place(a: Any, l: int, m: int) -> float:
        if (l, m) not in begins:
            return -m * float(np.log(l + null))
        first = begins[l, m]
        return float(sum(log(table[first + j * (l + 1) + i]) for j, i in enumerate(a)))

    return place


def diagonal_places(tension: float, p_null: float) -> Callable[[Any, int, int], float]:
    def place(a: Any, l: int, m: int) -> float:
        logs = 0.0
        for j, i in enumerate(a):
            near = [np.exp(-tension * abs((k + 0.5) / l - (j + 0.5) / m)) for k in range(l)]
            logs += float(log(p_null if i == l else (1 - p_null) * near[i] / sum(near)))
        return logs

    return place


def jumping_places(weights: Any, reach: int, p_null: float) -> Callable[[Any, int, int], float]:
    """p(k | h) ∝ w(k − h) between places 1 … l; the first has weights of its own; the empty word
    has p_null wherever it stands, and does not move."""

    def weight(h: int, k: int) -> float:
        if h == 0:
            return float(weights[2 * reach + min(k, reach)])
        return float(weights[reach + max(-reach, min(reach, k - h))])

    def place(a: Any, l: int, m: int) -> float:
        logs, h = 0.0, 0
        for i in a:
            if i == l:
                logs += float(log(p_null))
                continue
            k = i + 1
            jump = weight(h, k) / sum(weight(h, other) for other in range(1, l + 1))
            logs += float(log((1 - p_null) * jump))
            h = k
        return logs

    return place


# trees
Rules = dict[Any, list[tuple[tuple[Any, ...], float]]]
"""Right sides of each symbol, and the log p of each; what is no symbol is a word."""


def trees(sentences: Sequence[Sequence[Any]], root: dict[Any, float], rules: Rules) -> Items:
    """All derivations of each sentence, by rules without chains over one span."""

    def spanned(right: tuple[Any, ...], words: tuple[Any, ...]) -> Iterator[float]:
        if not right:
            if not words:
                yield 0.0
            return
        head, rest = right[0], right[1:]
        for cut in range(1, len(words) - len(rest) + 1):
            if rest or cut == len(words):
                heads = list(derived(head, words[:cut]))
                for below in spanned(rest, words[cut:]) if heads else ():
                    for own in heads:
                        yield own + below

    def derived(symbol: Any, words: tuple[Any, ...]) -> Iterator[float]:
        if symbol not in rules:
            if words == (symbol,):
                yield 0.0
            return
        for right, p in rules[symbol]:
            for below in spanned(right, words):
                yield p + below

    return [
        np.array([p + below for top, p in root.items() for below in derived(top, tuple(sentence))])
        for sentence in sentences
    ]
