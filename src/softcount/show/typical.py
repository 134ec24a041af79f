"""Documents that are typical of topics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from softcount.show.groups import EXAMPLES, shortened
from softcount.show.snippets import clean, snippet
from softcount.show.topic_parts import Example
from softcount.show.topic_words import TopicWords
from softcount.types import Array

LONGEST_NAME = 80
LOOKED_AT = 40
"""How many documents of a topic are looked at for some that do not read the same."""

DOUBT = 20.0
READ_THE_SAME = 80
"""Documents of which so many letters are the same are the same to a reader: quoted, or reposted."""

SIGNS = re.compile(r"<[^>]*>|[\W_]+")


def typical(shares: Array, weights: Array, sizes: Array | None) -> list[Array]:
    """For each topic the documents that have most of it, best first.

    By (n p(topic | document) + c p(topic)) / (n + c) with c = 20: of a document of few words one
    cannot be sure. Only documents that have more of the topic than is usual, or as much.

    >>> typical(np.array([[0.9, 0.1], [1.0, 0.0], [0.0, 1.0]]), np.array([0.6, 0.4]), [90, 1, 50])
    [array([0, 1]), array([2])]
    """
    sure = np.ones(len(shares))
    if sizes is not None:
        n = np.asarray(sizes, dtype=np.float64)
        sure = n / (n + DOUBT)
    found = []
    for k, usual in enumerate(weights):
        rank = sure * (shares[:, k] - usual)
        most = min(LOOKED_AT, len(rank))
        best = np.argpartition(-rank, most - 1)[:most] if most else np.arange(0)
        best = best[np.lexsort((best, -rank[best]))]
        found.append(best[(rank[best] >= 0.0) & (shares[best, k] > 0.0)])
    return found


def examples(
    numbers: Array, shares: Array, telling: dict[str, float], texts: Any, names: Any
) -> list[Example]:
    """The first few of these documents that do not read the same; ``shares`` of the topic."""
    found: dict[str, Example] = {}
    for one in _made(numbers, shares, telling, texts, names):
        found.setdefault(SIGNS.sub("", one.html or one.name)[:READ_THE_SAME], one)
        if len(found) == EXAMPLES:
            break
    return list(found.values())


def _made(
    numbers: Array, shares: Array, telling: dict[str, float], texts: Any, names: Any
) -> Iterator[Example]:
    for d in numbers.tolist():
        name = f"document {d}" if names is None else shortened(clean(names[d]), LONGEST_NAME)
        html = "" if texts is None else snippet(as_text(texts[d]), telling)
        if html or texts is None:
            yield Example(name, float(shares[d]), html)


def as_text(document: Any) -> str:
    """A text, or words put together to one."""
    if isinstance(document, str):
        return document
    return " ".join(map(str, document)) if isinstance(document, Sequence) else str(document)


def telling_words(words: TopicWords, names: Mapping[int, str], k: int) -> dict[str, float]:
    """The words of a topic in lower case, with log [p(w | k) / p(w)]; ``names`` by columns."""
    return {
        names[column].lower(): max(math.log(chance / overall), 0.1)
        for column, chance, overall in words.top(k, words.n)
    }
