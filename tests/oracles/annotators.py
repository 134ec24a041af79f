"""Dawid & Skene's model in plain Python: EM with dictionaries, and all hidden labels one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

Triple = tuple[Any, Any, Any]
Shares = dict[Any, dict[Any, float]]


def majority_shares(votes: Sequence[Triple], known: Mapping[Any, Any], labels: list[Any]) -> Shares:
    """Every item's labels by the part of its votes; where one is known, that one."""
    shares: Shares = {item: dict.fromkeys(labels, 0.0) for item, _, _ in votes}
    for item, _, label in votes:
        shares[item][label] += 1.0
    for item, found in shares.items():
        total = sum(found.values())
        shares[item] = {label: n / total for label, n in found.items()}
        if item in known:
            shares[item] = {label: float(label == known[item]) for label in labels}
    return shares


def maximise(
    votes: Sequence[Triple], shares: Shares, labels: list[Any], smoothing: float
) -> tuple[dict[Any, float], dict[Any, dict[Any, dict[Any, float]]]]:
    """π and θ[annotator][true][said] from the shares of items."""
    weights = {k: sum(of[k] for of in shares.values()) / len(shares) for k in labels}
    counts: dict[Any, Any] = defaultdict(lambda: {k: dict.fromkeys(labels, 0.0) for k in labels})
    for item, annotator, said in votes:
        for k in labels:
            counts[annotator][k][said] += shares[item][k]
    confusion: dict[Any, dict[Any, dict[Any, float]]] = {}
    for annotator, rows in counts.items():
        confusion[annotator] = {}
        for k, row in rows.items():
            total = sum(row.values()) + smoothing * len(labels)
            uniform = 1.0 / len(labels)
            confusion[annotator][k] = {
                said: (n + smoothing) / total if total else uniform for said, n in row.items()
            }
    return weights, confusion


def posterior(
    votes: Sequence[Triple],
    known: Mapping[Any, Any],
    weights: Mapping[Any, float],
    confusion: Mapping[Any, Any],
) -> Shares:
    """p(true label | votes) of every item."""
    found: Shares = {item: dict(weights) for item, _, _ in votes}
    for item, annotator, said in votes:
        for k in weights:
            found[item][k] *= confusion[annotator][k][said]
    for item, joint in found.items():
        if item in known:
            joint = {k: p if k == known[item] else 0.0 for k, p in joint.items()}
        total = sum(joint.values())
        found[item] = {k: p / total for k, p in joint.items()}
    return found


def dawid_skene(
    votes: Sequence[Triple], known: Mapping[Any, Any], steps: int, smoothing: float
) -> tuple[Shares, dict[Any, float], dict[Any, Any]]:
    """So many steps of EM after the start at the shares of votes; posteriors at the end."""
    labels = sorted({label for _, _, label in votes} | set(known.values()))
    weights, confusion = maximise(votes, majority_shares(votes, known, labels), labels, smoothing)
    for _ in range(steps):
        shares = posterior(votes, known, weights, confusion)
        weights, confusion = maximise(votes, shares, labels, smoothing)
    return posterior(votes, known, weights, confusion), weights, confusion


def enumerated(
    votes: Sequence[Triple],
    known: Mapping[Any, Any],
    weights: Mapping[Any, float],
    confusion: Mapping[Any, Any],
) -> tuple[float, Shares, dict[tuple[Any, Any, Any], float]]:
    """p(all votes, what is known), posteriors, and expected counts (annotator, true, said).

    By going through all ways to give true labels to all items at once.
    """
    items = list(dict.fromkeys(item for item, _, _ in votes))
    total = 0.0
    shares: Shares = {item: dict.fromkeys(weights, 0.0) for item in items}
    counts: dict[tuple[Any, Any, Any], float] = defaultdict(float)
    for assignment in product(weights, repeat=len(items)):
        truth = dict(zip(items, assignment, strict=True))
        if any(truth[item] != label for item, label in known.items()):
            continue
        p = 1.0
        for item in items:
            p *= weights[truth[item]]
        for item, annotator, said in votes:
            p *= confusion[annotator][truth[item]][said]
        total += p
        for item in items:
            shares[item][truth[item]] += p
        for item, annotator, said in votes:
            counts[annotator, truth[item], said] += p
    for of in shares.values():
        for k in of:
            of[k] /= total
    return total, shares, {key: count / total for key, count in counts.items()}
