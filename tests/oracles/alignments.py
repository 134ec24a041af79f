"""Alignments by brute force: all of them are listed, and everything follows from the list.

A pair is two lists of words; an alignment has, for every target word, the place of its source word
(from 0) or None for the empty word. Nothing is shared with the library, and nothing is fast.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import logsumexp

Alignment = tuple[int | None, ...]
Events = Counter[tuple[Any, ...]]
Translations = Mapping[tuple[str | None, str], float]
"""t(f | e) of (e, f); None is the empty word."""


def log(p: float) -> float:
    return math.log(p) if p > 0.0 else -math.inf


# where words come from


class Places(Protocol):
    def walk(self, l: int, m: int, a: Alignment) -> tuple[float, Events]:
        """log p(a | l, m), and what happened."""


@dataclass(frozen=True)
class Even:
    """Model 1: all places are as likely."""

    null: bool

    def walk(self, l: int, m: int, a: Alignment) -> tuple[float, Events]:
        return -m * math.log(l + self.null), Counter()


@dataclass(frozen=True)
class Tabled:
    """Model 2: d[l, m, j, i], i None for the empty word."""

    d: Mapping[tuple[int, int, int, int | None], float]

    def walk(self, l: int, m: int, a: Alignment) -> tuple[float, Events]:
        events = [(l, m, j, i) for j, i in enumerate(a)]
        return sum(log(self.d[event]) for event in events), Counter(events)


@dataclass(frozen=True)
class Diagonal:
    """Places near the diagonal, measured from the middle of each word."""

    tension: float
    p0: float

    def walk(self, l: int, m: int, a: Alignment) -> tuple[float, Events]:
        total = 0.0
        for j, i in enumerate(a):
            if i is None:
                total += log(self.p0)
                continue
            weights = [
                math.exp(-self.tension * abs((k + 0.5) / l - (j + 0.5) / m)) for k in range(l)
            ]
            total += log((1.0 - self.p0) * weights[i] / math.fsum(weights))
        return total, Counter((l, m, j, i) for j, i in enumerate(a))


@dataclass(frozen=True)
class Chain:
    """Jumps from the last place that was no empty word; place 0 is before the sentence."""

    widths: Mapping[int, float]
    starts: Mapping[int, float]
    p0: float

    def bin(self, h: int, k: int) -> tuple[str, int]:
        if h == 0:
            return "start", min(k, max(self.starts))
        return "width", max(min(self.widths), min(max(self.widths), k - h))

    def weight(self, h: int, k: int) -> float:
        kind, number = self.bin(h, k)
        return (self.starts if kind == "start" else self.widths)[number]

    def chance(self, h: int, k: int, l: int) -> float:
        """p(k | h, l) of a word that is not the empty one's."""
        z = math.fsum(self.weight(h, any_k) for any_k in range(1, l + 1))
        return self.weight(h, k) / z if z > 0.0 else 0.0

    def walk(self, l: int, m: int, a: Alignment) -> tuple[float, Events]:
        total, h = 0.0, 0
        events: Events = Counter()
        for i in a:
            if i is None:
                total += log(self.p0)
                continue
            total += log(1.0 - self.p0) + log(self.chance(h, i + 1, l))
            events[self.bin(h, i + 1)] += 1
            events["left", l, h] += 1
            h = i + 1
        return total, events


# all alignments of a pair


class ScoredAlignment(NamedTuple):
    """One alignment: log p(f, a | e), the alignment, words that were used, places that were."""

    log_p: float
    a: Alignment
    words: Events
    places: Events


@dataclass(frozen=True)
class AllAlignments:
    """All alignments of a target sentence with a source sentence, and what follows from them."""

    l: int
    m: int
    alignments: Sequence[ScoredAlignment]

    @property
    def log_p(self) -> float:
        return self.score(1.0)

    def score(self, beta: float) -> float:
        """log Σ_a p(f, a)^β / β."""
        return float(logsumexp([beta * one.log_p for one in self.alignments])) / beta

    @property
    def best(self) -> float:
        return max(one.log_p for one in self.alignments)

    def find(self, a: Alignment) -> ScoredAlignment:
        return next(one for one in self.alignments if one.a == a)

    def posteriors(self, beta: float = 1.0) -> list[float]:
        """p(a | f, e)^β, normalised."""
        total = beta * self.score(beta)
        return [math.exp(beta * one.log_p - total) for one in self.alignments]

    def counts(self, beta: float = 1.0) -> tuple[Events, Events]:
        """Expected words (e, f), and expected events of places."""
        words: Events = Counter()
        places: Events = Counter()
        for p, one in zip(self.posteriors(beta), self.alignments, strict=True):
            for into, events in ((words, one.words), (places, one.places)):
                for event, n in events.items():
                    into[event] += p * n  # type: ignore[assignment]
        return words, places

    def posterior(self, beta: float = 1.0) -> np.ndarray:
        """p(a_j = i), (l + 1, m); the empty word is last."""
        found = np.zeros((self.l + 1, self.m))
        for p, one in zip(self.posteriors(beta), self.alignments, strict=True):
            for j, i in enumerate(one.a):
                found[self.l if i is None else i, j] += p
        return found


def listed(
    es: Sequence[str],
    fs: Sequence[str],
    t: Translations,
    places: Places,
    null: bool,
    known: Sequence[tuple[int, int]] = (),
) -> AllAlignments:
    """All alignments of a pair that its known links (i, j) allow."""
    alignments = []
    for a in itertools.product(*choices(len(es), len(fs), null, known)):
        words = [(None if i is None else es[i], f) for i, f in zip(a, fs, strict=True)]
        log_places, events = places.walk(len(es), len(fs), a)
        total = log_places + sum(log(t[pair]) for pair in words)
        alignments.append(ScoredAlignment(total, a, Counter(words), events))
    return AllAlignments(len(es), len(fs), alignments)


def choices(
    l: int, m: int, null: bool, known: Sequence[tuple[int, int]]
) -> Iterator[list[int | None]]:
    for j in range(m):
        linked = [i for i, jj in known if jj == j]
        everything: list[int | None] = [*range(l), *([None] if null else [])]
        yield [i for i in everything if i in linked] if linked else everything


# the chain as a textbook's hidden Markov model, for pairs too long to list


class Recursion(NamedTuple):
    log_p: float
    best: float
    posterior: np.ndarray
    places: Events


def recursion(links: np.ndarray, chain: Chain) -> Recursion:
    """Forward–backward in logarithms over states (last place, is it the empty word's turn).

    ``links`` has t(f_j | e_i), (l + 1, m), the empty word last.
    """
    l, m = len(links) - 1, links.shape[1]
    states = [(k, empty) for k in range(l + 1) for empty in (False, True) if k or empty]
    move = np.full((len(states) + 1, len(states)), -np.inf)  # the last row is where all begin
    for row, (h, _) in enumerate([*states, (0, True)]):
        for column, (k, empty) in enumerate(states):
            if empty:
                move[row, column] = log(chain.p0) if k == h else -np.inf
            else:
                move[row, column] = log((1.0 - chain.p0) * chain.chance(h, k, l))
    with np.errstate(divide="ignore"):
        emit = np.log(links[[l if empty else k - 1 for k, empty in states]])
    ahead = np.full((m + 1, len(states) + 1), -np.inf)
    ahead[0, -1] = 0.0
    for j in range(m):
        ahead[j + 1, :-1] = logsumexp(ahead[j][:, None] + move, axis=0) + emit[:, j]
    best = ahead[0]
    for j in range(m):
        best = np.append((best[:, None] + move).max(axis=0) + emit[:, j], -np.inf)
    back = np.zeros((m + 1, len(states)))
    for j in range(m - 1, 0, -1):
        back[j] = logsumexp(move[:-1] + emit[:, j] + back[j + 1], axis=1)
    log_p = float(logsumexp(ahead[m]))
    posterior = np.zeros((l + 1, m))
    places: Events = Counter()
    for j in range(m):
        both = np.exp(ahead[j][:, None] + move + emit[:, j] + back[j + 1] - log_p)
        for row, (h, _) in enumerate([*states, (0, True)]):
            for column, (k, empty) in enumerate(states):
                share = both[row, column]
                posterior[l if empty else k - 1, j] += share
                if share > 0.0 and not empty:
                    places[chain.bin(h, k)] += share
                    places["left", l, h] += share
    return Recursion(log_p, float(best.max()), posterior, places)
