"""Where a dense grammar begins if something is known of its symbols."""

from __future__ import annotations

import numpy as np

from softcount.models.grammar.core import PCFGCore
from softcount.models.grammar.shards import Sentences
from softcount.types import Array, How

LOOSE, JITTER = 0.1, 0.1
"""So much of a row is left to what was not seen; and rows differ by so much at random."""


def informed(core: PCFGCore, corpus: Sentences, rng: np.random.Generator) -> dict[str, Array]:
    """What labels say: counts of all sentences, any tree that agrees with them being as likely."""
    even = {name: family.uniform() for name, family in core.families.items()}
    counts = core.expect(even, corpus.everything, How()).counts
    tables = {}
    for name, family in core.families.items():
        seen = np.asarray(counts[name], dtype=float)
        loose = (LOOSE * seen.sum(axis=1, keepdims=True) + 1.0) * family.uniform()
        rows = (seen + loose) * rng.uniform(1.0 - JITTER, 1.0 + JITTER, seen.shape)
        tables[name] = rows / rows.sum(axis=1, keepdims=True)
    return tables
