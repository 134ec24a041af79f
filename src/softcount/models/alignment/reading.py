"""From sentence pairs as users give them to those that a model learns from or aligns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softcount.corpus.bitext import Bitext, bitext
from softcount.corpus.numbering import Vocabulary
from softcount.models.alignment.lexicon import Lexicon
from softcount.models.alignment.shards import Shard, part_shard

CHUNK = 1 << 12
"""So many new pairs are looked at together."""

Words = tuple[Vocabulary, Vocabulary]
"""Source words and target words that have their numbers."""


def new_pairs(data: Any, words: Words, lowercase: bool) -> Bitext:
    """Pairs in the numbers of a model's words; words that it does not know have higher ones."""
    return bitext(data, lowercase=lowercase, like=words)


def chunks(pairs: Bitext, lexicon: Lexicon, null: bool) -> Iterator[Shard]:
    """All pairs without an empty side, some at a time."""
    full = np.flatnonzero(pairs.source.lengths * pairs.target.lengths)
    for first in range(0, len(full), CHUNK):
        yield part_shard(pairs, full[first : first + CHUNK], lexicon, null)
