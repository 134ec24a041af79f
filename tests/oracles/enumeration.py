"""Stories by brute force: every derivation of an item is listed, and all follows from the list.

Nothing here is fast and nothing is shared with the library: a derivation is a plain multiset of
events, and each quantity is the textbook's sum over derivations.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Event = tuple[str, tuple[Any, ...]]
"""A table's name and a key: the condition, then the outcome."""

Derivation = Counter[Event]
Weights = Mapping[Event, float]


# telling a story


class OracleTable:
    """Stands for ``softcount.table``: an index gives an event."""

    def __init__(self, name: str, outcomes: Sequence[Any] | None = None) -> None:
        self.name = name

    def __getitem__(self, key: Any) -> OracleEvent:
        return OracleEvent(self.name, key if isinstance(key, tuple) else (key,))


@dataclass(frozen=True)
class OracleEvent:
    name: str
    key: tuple[Any, ...]


@dataclass(frozen=True)
class OracleCall:
    function: Callable[..., Iterator[Any]]
    arguments: tuple[Any, ...]


def story(function: Callable[..., Iterator[Any]]) -> Callable[..., OracleCall]:
    """Stands for ``softcount.story``: a call is only noted, to be told when derivations are."""
    return lambda *arguments: OracleCall(function, arguments)


def derivations(thing: OracleEvent | OracleCall) -> list[Derivation]:
    """Every way in which a call can come about, one by one (equal multisets are kept apart)."""
    if isinstance(thing, OracleEvent):
        return [Counter({(thing.name, thing.key): 1})]
    found = []
    for alternative in thing.function(*thing.arguments):
        parts = alternative if isinstance(alternative, tuple) else (alternative,)
        for choice in itertools.product(*(derivations(part) for part in parts)):
            found.append(sum(choice, Counter()))
    return found


def rows(corpus: Iterable[Iterable[Derivation]]) -> dict[tuple[str, tuple[Any, ...]], list[Any]]:
    """The outcomes that occur under each table's condition."""
    found: dict[tuple[str, tuple[Any, ...]], list[Any]] = {}
    for item in corpus:
        for derivation in item:
            for name, key in derivation:
                outcomes = found.setdefault((name, key[:-1]), [])
                if key[-1] not in outcomes:
                    outcomes.append(key[-1])
    return found


def events(corpus: Iterable[Iterable[Derivation]]) -> list[Event]:
    """Every event that occurs, in order of first appearance by row."""
    return [(n, (*c, o)) for (n, c), outcomes in rows(corpus).items() for o in outcomes]


# the posterior of one item's derivations


def log_sum(logs: Iterable[float]) -> float:
    values = list(logs)
    top = max(values, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


def log_joint(derivation: Derivation, weights: Weights) -> float:
    """log p(x, z | θ) = Σ n(event) log θ(event)."""
    if any(weights[event] == 0.0 for event in derivation):
        return -math.inf
    return math.fsum(n * math.log(weights[event]) for event, n in derivation.items())


def log_likelihood(item: Sequence[Derivation], weights: Weights) -> float:
    """log Σ_z p(x, z | θ)."""
    return log_sum(log_joint(derivation, weights) for derivation in item)


def tempered_score(item: Sequence[Derivation], weights: Weights, beta: float) -> float:
    """log Σ_z p(x, z | θ)^β / β."""
    return log_sum(beta * log_joint(derivation, weights) for derivation in item) / beta


def best_score(item: Sequence[Derivation], weights: Weights) -> float:
    """max_z log p(x, z | θ)."""
    return max(log_joint(derivation, weights) for derivation in item)


def posterior(item: Sequence[Derivation], weights: Weights, beta: float = 1.0) -> list[float]:
    """p(z | x, θ)^β, normalised."""
    logs = [beta * log_joint(derivation, weights) for derivation in item]
    total = log_sum(logs)
    return [math.exp(value - total) for value in logs]


def expected_counts(
    item: Sequence[Derivation], weights: Weights, beta: float = 1.0
) -> Counter[Event]:
    """Σ_z p(z | x, θ) n(event in z)."""
    counts: Counter[Event] = Counter()
    for probability, derivation in zip(posterior(item, weights, beta), item, strict=True):
        for event, n in derivation.items():
            counts[event] += probability * n  # type: ignore[assignment]
    return counts


def corpus_counts(
    corpus: Sequence[Sequence[Derivation]], weights: Weights, beta: float = 1.0
) -> Counter[Event]:
    return sum((expected_counts(item, weights, beta) for item in corpus), Counter())


# learning


def normalised(
    counts: Mapping[Event, float], shape: Iterable[Event], old: Weights | None = None
) -> dict[Event, float]:
    """Relative frequencies in each row; a row that nobody saw stays as it was."""
    shape = list(shape)
    totals: dict[Any, float] = {}
    for name, key in shape:
        row = (name, key[:-1])
        totals[row] = totals.get(row, 0.0) + counts.get((name, key), 0.0)
    result = {}
    for name, key in shape:
        total = totals[name, key[:-1]]
        if total > 0.0:
            result[name, key] = counts.get((name, key), 0.0) / total
        else:
            result[name, key] = (old or {})[name, key]
    return result


def em_step(
    corpus: Sequence[Sequence[Derivation]], weights: Weights, alpha: float = 1.0, beta: float = 1.0
) -> dict[Event, float]:
    """One step of EM; with a Dirichlet(α) prior, α ≥ 1, its MAP form."""
    shape = events(corpus)
    counts = corpus_counts(corpus, weights, beta)
    return normalised({event: counts[event] + alpha - 1.0 for event in shape}, shape, weights)


def log_prior(weights: Weights, alpha: float) -> float:
    """Σ (α − 1) log θ, without the constant."""
    return math.fsum((alpha - 1.0) * math.log(p) for p in weights.values()) if alpha != 1 else 0.0


def hard_counts(corpus: Sequence[Sequence[Derivation]], weights: Weights) -> Counter[Event]:
    """Counts of each item's best derivation (the first of equals)."""
    return sum(
        (max(item, key=lambda derivation: log_joint(derivation, weights)) for item in corpus),
        Counter(),
    )


# Bayes, exactly


def log_dirichlet_multinomial(
    counts: Mapping[Event, float], shape: Iterable[Event], alpha: float
) -> float:
    """log ∫ Π θ^n dDir(θ | α), row by row: log B(α + n) − log B(α)."""
    grouped: dict[Any, list[float]] = {}
    for name, key in shape:
        grouped.setdefault((name, key[:-1]), []).append(counts.get((name, key), 0.0))
    total = 0.0
    for row in grouped.values():
        k = len(row)
        total += math.lgamma(k * alpha) - math.lgamma(k * alpha + math.fsum(row))
        total += math.fsum(math.lgamma(alpha + n) - math.lgamma(alpha) for n in row)
    return total


def merged(item: Iterable[Derivation]) -> Counter[frozenset[tuple[Event, int]]]:
    """How many derivations have each multiset of events."""
    return Counter(frozenset(derivation.items()) for derivation in item)


def joint_multisets(
    corpus: Sequence[Sequence[Derivation]],
) -> list[tuple[Derivation, int]]:
    """The multisets of events of all joint derivations of a data set, with how many have each."""
    joint: Counter[frozenset[tuple[Event, int]]] = Counter({frozenset(): 1})
    for item in corpus:
        longer: Counter[frozenset[tuple[Event, int]]] = Counter()
        for (have, n), (more, m) in itertools.product(joint.items(), merged(item).items()):
            added = Counter(dict(have)) + Counter(dict(more))
            longer[frozenset(added.items())] += n * m
        joint = longer
    return [(Counter(dict(multiset)), n) for multiset, n in joint.items()]


def log_evidence(corpus: Sequence[Sequence[Derivation]], alpha: float) -> float:
    """log ∫ p(x | θ) dDir(θ | α): a sum over all joint derivations of Dirichlet-multinomials."""
    shape = events(corpus)
    return log_sum(
        math.log(n) + log_dirichlet_multinomial(counts, shape, alpha)
        for counts, n in joint_multisets(corpus)
    )


def posterior_means(corpus: Sequence[Sequence[Derivation]], alpha: float) -> dict[Event, float]:
    """E[θ | x]: the Dirichlet means, weighed by each joint derivation's posterior."""
    shape = events(corpus)
    joint = joint_multisets(corpus)
    logs = [math.log(n) + log_dirichlet_multinomial(c, shape, alpha) for c, n in joint]
    total = log_sum(logs)
    means = dict.fromkeys(shape, 0.0)
    for value, (counts, _) in zip(logs, joint, strict=True):
        mean = normalised({event: counts[event] + alpha for event in shape}, shape)
        for event in shape:
            means[event] += math.exp(value - total) * mean[event]
    return means


# variational Bayes, on lists of derivations


@dataclass(frozen=True)
class Variational:
    """q(θ) = Π Dir(α + counts) and what follows from it."""

    counts: Mapping[Event, float]
    alpha: float
    shape: Sequence[Event]

    def log_weights(self) -> dict[Event, float]:
        """E_q[log θ] = ψ(α + n) − ψ(Σ (α + n))."""
        from scipy.special import digamma

        totals: dict[Any, float] = {}
        for name, key in self.shape:
            row = (name, key[:-1])
            totals[row] = totals.get(row, 0.0) + self.alpha + self.counts.get((name, key), 0.0)
        return {
            (name, key): float(
                digamma(self.alpha + self.counts.get((name, key), 0.0))
                - digamma(totals[name, key[:-1]])
            )
            for name, key in self.shape
        }

    def divergence(self) -> float:
        """KL(q(θ) ‖ Dir(α)) = Σ n E_q[log θ] − Σ_rows (log B(α + n) − log B(α))."""
        logs = self.log_weights()
        linear = math.fsum(self.counts.get(event, 0.0) * logs[event] for event in self.shape)
        return linear - log_dirichlet_multinomial(self.counts, self.shape, self.alpha)

    def weights(self) -> dict[Event, float]:
        return {event: math.exp(value) for event, value in self.log_weights().items()}

    def elbo(self, corpus: Sequence[Sequence[Derivation]]) -> float:
        """Σ_items log Σ_z exp Σ n E_q[log θ] − KL: the bound with the best q(z) for this q(θ)."""
        weights = self.weights()
        return math.fsum(log_likelihood(item, weights) for item in corpus) - self.divergence()

    def step(self, corpus: Sequence[Sequence[Derivation]]) -> Variational:
        return Variational(corpus_counts(corpus, self.weights()), self.alpha, self.shape)
