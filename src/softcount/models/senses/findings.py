"""What there is to say of each sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.corpus.contexts import Occurrence, passage
from softcount.types import Array

MARKS, EXAMPLES = 12, 4
EXAMPLE_WINDOW = 12


@dataclass(frozen=True)
class Sense:
    """What was found of one sense.

    ``share``     how much of all occurrences
    ``words``     what marks it, the most telling first, each with the part of its contexts that
                  have it; ``the_`` is a word just before the target, ``_of`` one just after it
    ``examples``  its most typical contexts, the target in brackets
    """

    number: int
    share: float
    words: tuple[tuple[str, float], ...]
    examples: tuple[str, ...]

    def __str__(self) -> str:
        marks = ", ".join(name for name, _ in self.words)
        lines = "".join(f"\n  {example}" for example in self.examples)
        return f"sense {self.number} ({self.share:.1%}): {marks}{lines}"


def marking(counts: Any, shares: Array, names: Array) -> list[tuple[tuple[str, float], ...]]:
    """The words that mark each sense, with the part q(w | k) of its contexts that have them.

    Those with the largest q(w | k) log [q(w | k) / q(w)]: common in the sense, and more so than
    elsewhere. One context as all are on average is added to every sense, lest a word that occurs
    twice, both times in it, look certain.

    >>> from scipy.sparse import csr_matrix
    >>> counts = csr_matrix([[1, 0, 1], [1, 0, 1], [0, 2, 1], [0, 1, 1]])
    >>> shares = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    >>> [[word for word, _ in row] for row in marking(counts, shares, np.array(["a", "b", "c"]))]
    [['a'], ['b']]
    """
    present = (counts > 0).astype(np.float64)
    overall = np.asarray(present.mean(axis=0)).reshape(-1)
    size = shares.sum(axis=0)[:, None]
    found = np.asarray((present.T @ shares).T)
    q = (found + overall) / (size + 1.0)
    telling = q * np.log(np.where(overall > 0.0, q / np.where(overall > 0.0, overall, 1.0), 1.0))
    rows = []
    for k, worth in enumerate(telling):
        best = [w for w in np.argsort(-worth, kind="stable")[:MARKS] if worth[w] > 1e-9]
        rows.append(tuple((str(names[w]), float(q[k, w])) for w in best))
    return rows


def typical(
    k: int, joint: Array, tokens: Sequence[Sequence[str]], found: Sequence[Occurrence]
) -> tuple[str, ...]:
    """Contexts of a sense, those first in which the next best sense is farthest behind."""
    others = np.delete(joint, k, axis=1)
    lead = joint[:, k] - others.max(axis=1) if others.size else joint[:, k]
    own = np.flatnonzero(joint.argmax(axis=1) == k)
    texts: dict[str, None] = {}
    for i in own[np.argsort(-lead[own], kind="stable")].tolist():
        texts[passage(tokens[found[i].sentence], found[i].position, EXAMPLE_WINDOW)] = None
        if len(texts) == EXAMPLES:
            break
    return tuple(texts)
