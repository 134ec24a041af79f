"""What is lost where improbable symbols are left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.kernels.rule_charts import Text, Words
from softcount.models.grammar.binarised import Binarised
from softcount.models.grammar.rule_passes import derived, expected
from softcount.types import Array

SLACK = 1e-9
"""Logs that differ by less are the same."""


class Lost(NamedTuple):
    """What some sentences lost.

    ``sentences``  that have a derivation
    ``share``      of symbols of cells that were left out, of those made of what had stayed
    ``again``      sentences that had to be gone through again with nothing left out
    ``mean``       log p(sentence) that was lost, in the mean
    ``worst``      the most that one sentence lost
    ``trees``      best trees that are less probable than those found with nothing left out
    """

    sentences: int
    share: float
    again: int
    mean: float
    worst: float
    trees: int


def lost(
    own: Binarised,
    chances: Array,
    root: Array,
    words: Words,
    some: Text,
    prune: float,
    threads: int = 1,
) -> Lost:
    """What sentences lose by ``prune``: goes through all of them with it and without it.

    >>> from softcount.models.grammar.rule_passes import text
    >>> from softcount.models.grammar.rule_text import from_text
    >>> rules = from_text("S -> S S [0.4] | 'a'")
    >>> own = Binarised(rules)
    >>> words = own.words(rules.chances, own.rows("aaaa"))
    >>> lost(own, rules.chances, own.root, words, text(np.array([4])), 1e-4).trees
    0
    """
    n = len(some.indptr) - 1
    grammar = own.grammar(chances, root)
    full, less = (
        expected(own, grammar, words, some, np.ones(n), threads, False, p) for p in (0.0, prune)
    )
    grammar = own.grammar(chances, root, best=True)
    best, found = (
        derived(grammar, words, some, np.arange(n), threads=threads, prune=p) for p in (0.0, prune)
    )
    has = np.isfinite(full.logs) & (np.diff(some.indptr) > 0)
    gap = full.logs[has] - less.logs[has]
    made, left_out, again = less.left_out
    return Lost(
        len(gap),
        float(left_out / max(made, 1.0)),
        int(again),
        float(gap.mean()) if len(gap) else 0.0,
        float(gap.max(initial=0.0)),
        int(np.count_nonzero(best.logs[has] - found.logs[has] > SLACK)),
    )
