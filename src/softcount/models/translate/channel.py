"""P(X | Y) word by word: what an aligner has learned, as a decoder asks for it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from softcount.errors import DataError, LearnerError
from softcount.types import Array


class Aligner(Protocol):
    """What a translator needs of a fitted aligner, whose target side is X and source side Y."""

    @property
    def source_words_(self) -> Any:
        """The words y, in the order of the table's rows."""

    @property
    def target_words_(self) -> Any:
        """The words x, in the order of the table's columns."""

    def table(self) -> Any:
        """t(x | y), one row a word y, the last row for NULL, as a sparse matrix."""


class Channel:
    """t(x | y) by columns, with how common each y is.

    ``sources``  the words y;  ``targets``  number of each word x
    ``prior``    p(y), one number a word
    """

    def __init__(self, sources: list[str], targets: list[str], table: Any, prior: Array) -> None:
        self.sources, self.prior = sources, prior
        self.targets = {word: i for i, word in enumerate(targets)}
        self.columns = sparse.csc_matrix(table)
        self._known: dict[tuple[int, int], Array] = {}

    def column(self, x: int) -> tuple[Array, Array, float]:
        """Words y with t(x | y) > 0, these t(x | y), and t(x | NULL)."""
        part = slice(*self.columns.indptr[x : x + 2])
        rows, t = self.columns.indices[part], self.columns.data[part]
        words = (rows < len(self.sources)) & (t > 0)
        return rows[words], t[words], float(t[rows == len(self.sources)].sum())

    def candidates(self, x: int, n: int) -> Array:
        """Words that x may come from: the n best by t(x | y) p(y), and the n best by t(x | y)."""
        if (x, n) not in self._known:
            rows, t, _ = self.column(x)
            likely = np.lexsort((rows, -t * self.prior[rows]))[:n]
            faithful = np.lexsort((rows, -t))[:n]
            self._known[x, n] = rows[np.union1d(likely, faithful)]
        return self._known[x, n]


def channel_of(aligner: Aligner, prior: Any) -> Channel:
    """What an aligner has learned; ``prior``: from a word y to its p(y)."""
    missing = [
        name for name in ("table", "source_words_", "target_words_") if not hasattr(aligner, name)
    ]
    if missing:
        raise LearnerError(
            f"{type(aligner).__name__} has no {missing[0]}: it is no aligner, or not fitted",
            "give a fitted aligner, such as IBM1().fit(pairs)",
        )
    sources, targets = list(aligner.source_words_), list(aligner.target_words_)
    table = sparse.csc_matrix(aligner.table())
    if table.shape != (len(sources) + 1, len(targets)):
        raise DataError(
            f"the aligner's table has the shape {table.shape} for {len(sources)} and "
            f"{len(targets)} words",
            "it needs one row a source word and one for NULL, and one column a target word",
        )
    if not np.isfinite(table.data).all() or table.data.min(initial=0.0) < 0.0:
        raise DataError("the aligner's table holds what is no probability", "fit it again")
    return Channel(sources, targets, table, np.array([prior(word) for word in sources]))
