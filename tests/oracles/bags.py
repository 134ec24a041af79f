"""Bags of instances, one assignment of hidden values after another, in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple


class Tables(NamedTuple):
    """p(class), p(word | class), and for a noisy or the probabilities to trigger and to leak."""

    weights: Sequence[float]
    words: Sequence[Mapping[str, float]]
    trigger: float | None = None
    leak: float | None = None


def enumerated(
    tables: Tables,
    bag: Sequence[Sequence[str]],
    label: int | None,
    known: Sequence[int | None] | None = None,
) -> tuple[float, list[float], dict[tuple[Any, ...], float], float]:
    """p(words, label of a bag), p(positive | …) of each instance, expected counts, and the
    probability of the best hidden values.

    ``label``  1, 0 or None (unknown); ``known``: the same for instances
    """
    total, best = 0.0, 0.0
    positive = [0.0] * len(bag)
    counts: dict[tuple[Any, ...], float] = defaultdict(float)
    states = ("0", "1") if tables.trigger is None else ("0", "1 silent", "1 triggers")
    leaks = (False,) if tables.leak is None else (False, True)
    for hidden in product(states, repeat=len(bag)):
        for leaked in leaks:
            p, events = 1.0, []
            fires = leaked
            if tables.leak is not None:
                p *= tables.leak if leaked else 1.0 - tables.leak
                events.append(("leak", leaked))
            for i, (instance, state) in enumerate(zip(bag, hidden, strict=True)):
                z = int(state[0])
                if known is not None and known[i] is not None and known[i] != z:
                    p = 0.0
                p *= tables.weights[z]
                events.append(("class", z))
                for word in instance:
                    p *= tables.words[z][word]
                    events.append(("word", z, word))
                if tables.trigger is None:
                    fires = fires or z == 1
                elif z == 1:
                    p *= tables.trigger if state == "1 triggers" else 1.0 - tables.trigger
                    events.append(("trigger", state == "1 triggers"))
                    fires = fires or state == "1 triggers"
            if label is not None and fires != bool(label):
                continue
            total += p
            best = max(best, p)
            for i, state in enumerate(hidden):
                positive[i] += p * int(state[0])
            for event in events:
                counts[event] += p
    return (
        total,
        [p / total for p in positive],
        {event: n / total for event, n in counts.items()},
        best,
    )
