"""The arrays of one direction of an aligner in a file, looked at before they are believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.align.core import PLACES, TABLE
from softcount.align.data import PairLexicon, narrow
from softcount.align.hmm import JUMPS
from softcount.core import store
from softcount.core.bounds import MAX_COUNT, MIN_ROW
from softcount.core.errors import StoreError
from softcount.core.store import AGAIN, numbers, strings
from softcount.core.store import TABLE as PREFIX
from softcount.core.types import Array, IntArray
from softcount.families.base import Family, check_start
from softcount.text.vocabulary import Vocabulary

TABLES = PREFIX
"""Parameters have names that begin so."""
PAST = "past."
"""Expected counts of all pairs seen so far have names that begin so."""


def select_direction(stored: store.Stored, prefix: str) -> store.Stored:
    """What a file holds of one direction."""
    arrays = {
        name.removeprefix(prefix): array
        for name, array in stored.arrays.items()
        if name.startswith(prefix)
    }
    return store.Stored(stored.kind, arrays, stored.meta, stored.signature)


def read_vocabulary(words: Any) -> Vocabulary:
    """Words in the order of their numbers."""
    strings(words, len(words), "words")
    if len(set(words)) != len(words):
        raise StoreError("a word is there twice", AGAIN)
    return Vocabulary(words)


def read_lexicon(stored: store.Stored, n_sources: int, n_targets: int) -> PairLexicon:
    """The pairs of words that have an entry."""
    indptr = read_integers(stored, "lexicon.indptr", (n_sources + 2,))
    targets = read_integers(stored, "lexicon.targets", (None,))
    if indptr[0] != 0 or indptr[-1] != len(targets) or (np.diff(indptr) < 0).any():
        raise StoreError("the rows of the lexicon do not fit together", AGAIN)
    if len(targets) and (targets.min() < 0 or targets.max() >= n_targets):
        raise StoreError("the lexicon has words that are none", AGAIN)
    rises = np.diff(targets) > 0
    borders = indptr[1:-1]
    rises[borders[(borders > 0) & (borders < len(targets))] - 1] = True
    if not rises.all():
        raise StoreError("the lexicon is not sorted", AGAIN)
    return PairLexicon(indptr, narrow(targets, n_targets), n_targets)


def read_target_counts(stored: store.Stored, n_targets: int) -> IntArray:
    """How often each target word was seen."""
    counts = read_integers(stored, "often", (n_targets,))
    if counts.min(initial=0) < 0:
        raise StoreError("words are there less than never", AGAIN)
    return counts


def read_sizes(stored: store.Stored) -> tuple[IntArray, IntArray]:
    """Lengths of sentences, if the file has the counts that belong to them."""
    heights, widths = sizes = read_integers(stored, "sizes", (2, None))
    good = sizes.shape[1] > 0 and sizes.min() > 0 and sizes.max() < 1 << 31
    # before anything of the size that they claim is made
    if good and PAST + PLACES in stored.arrays:
        good = stored.arrays[PAST + PLACES].size == int(np.sum((heights + 1.0) * widths))
    if good and PAST + JUMPS in stored.arrays:
        good = stored.arrays[PAST + JUMPS].size > int(np.sum(np.unique(heights) + 1))
    if not good:
        raise StoreError("the lengths of sentences make no sense", AGAIN)
    return heights, widths


def read_params(stored: store.Stored, families: Mapping[str, Family]) -> dict[str, Array]:
    """The parameters of all families."""
    shapes = {name: family.param_shape for name, family in families.items()}
    given = {name: _read_table(stored, TABLES + name, shape) for name, shape in shapes.items()}
    checked = check_start(families, given)
    for name, table in given.items():
        if not np.allclose(checked[name], table, 1e-6, 1e-9):
            raise StoreError(f"rows of table {name!r} add up to more than one", AGAIN)
    return {name: table.astype(checked[name].dtype, copy=False) for name, table in given.items()}


def _read_table(stored: store.Stored, name: str, shape: tuple[int, ...]) -> Array:
    given = stored.arrays[name]
    checked = numbers(stored, name, shape)
    if name == TABLES + JUMPS and not checked.sum() >= MIN_ROW:
        raise StoreError("the weights of jumps are all zeros, or next to nothing", AGAIN)
    return given if name == TABLES + TABLE and given.dtype == np.float32 else checked


def read_past(stored: store.Stored, families: Mapping[str, Family]) -> dict[str, Array]:
    """Expected counts of all pairs seen so far, of all families."""
    shapes = {name: family.zeros().shape for name, family in families.items()}
    counts = {
        name: numbers(stored, PAST + name, shape, MAX_COUNT) for name, shape in shapes.items()
    }
    if any(each.min(initial=0.0) < 0.0 for each in counts.values()):
        raise StoreError("counts are negative", AGAIN)
    return counts


def read_integers(stored: store.Stored, name: str, shape: tuple[int | None, ...]) -> IntArray:
    """Whole numbers of a file."""
    if stored.arrays[name].dtype.kind not in "iu":
        raise StoreError(f"{name} are not whole numbers", AGAIN)
    return numbers(stored, name, shape).astype(np.int64)
