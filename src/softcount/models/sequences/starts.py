"""Where to begin: from what is known of tags, or from moments of neighbouring words."""

from __future__ import annotations

import numpy as np

from softcount.families import LogLinear
from softcount.models.sequences.core import MOVES, START, HMMCore
from softcount.models.sequences.emissions import TABLE
from softcount.models.sequences.shards import Sentences, Shard
from softcount.types import Array, How

MANY = 1e6
"""Counts of a row of a table that is taken for what it is."""
LOOSE, JITTER = 0.1, 0.1
"""So much of a row is left to what was not seen; and rows differ by so much at random."""


def informed(
    core: HMMCore, corpus: Sentences, often: Array, rng: np.random.Generator
) -> dict[str, Array]:
    """What tags and dictionaries say: counts of sentences of which something is known.

    All that is possible in them is taken to be equally likely. Words that are not among them begin
    by their frequency (``often``), alike in all states.
    """
    shard = corpus.everything
    of_sentence = np.repeat(np.arange(len(shard)), np.diff(shard.indptr))
    told = corpus.select(np.unique(of_sentence[shard.sets > 0]))
    even = {name: family.uniform() for name, family in core.families.items()}
    counts = core.expect(even, told, How()).counts
    tables = {}
    for name, given in counts.items():
        seen = np.asarray(given, dtype=float)
        seen = seen.reshape(core.n_states, -1) if name == TABLE else seen
        usual = often if name == TABLE else np.ones(seen.shape[1])
        loose = (LOOSE * seen.sum(axis=1, keepdims=True) + 1.0) * (usual / usual.sum())
        tables[name] = (seen + loose) * rng.uniform(1.0 - JITTER, 1.0 + JITTER, seen.shape)
    return _proper(core, tables)


def spectral(
    core: HMMCore, shard: Shard, often: Array, rng: np.random.Generator
) -> dict[str, Array]:
    """Tables from moments; what families rule out is left out."""
    from softcount.models.sequences.moments import spectral_start

    size = (len(often), core.n_states)
    found = spectral_start(shard.observed, shard.indptr, *size, rng, shard.weights)
    moves = found["transitions"]
    if core.stop:
        moves = np.hstack([moves * (1.0 - found["stop"])[:, None], found["stop"][:, None]])
    return _proper(core, {START: found["start"][None], MOVES: moves, TABLE: found["emissions"]})


def _proper(core: HMMCore, tables: dict[str, Array]) -> dict[str, Array]:
    """Rows in proportion to tables, as families allow them."""
    proper = {}
    for name, family in core.families.items():
        rows = tables[name] / tables[name].sum(axis=1, keepdims=True)
        if isinstance(family, LogLinear):
            proper[name] = family.mean(tables[name].reshape(-1), family.uniform())
        else:
            proper[name] = family.mean(MANY * rows, family.uniform())
    return proper
