"""Categorical distributions over different outcomes: only what can occur has an entry."""

from __future__ import annotations

from softcount.families.base import Running
from softcount.families.dirichlet import DirichletRows
from softcount.families.lazy import LazyRunning
from softcount.types import Array


class SparseCategorical(DirichletRows):
    """Rows of categorical distributions, each over its own outcomes, in the manner of CSR.

    Counts and parameters are flat: row r is ``[indptr[r]:indptr[r + 1]]``. The settings are those
    of `Categorical`; where ``prior`` could be read as one a row or one an entry, it is the latter.
    ``outcomes`` says which outcome each entry stands for; without it, `alike` compares entries by
    their place in the row.

    >>> import numpy as np
    >>> table = SparseCategorical(np.array([0, 2, 5]))
    >>> rng = np.random.default_rng(0)
    >>> table.maximise(np.array([1., 3., 2., 0., 2.]), table.uniform(), rng)
    array([0.25, 0.75, 0.5 , 0.  , 0.5 ])
    """

    def __init__(
        self,
        indptr: Array,
        prior: float | Array = 1.0,
        mask: Array | None = None,
        frozen: Array | None = None,
        tied: Array | None = None,
        outcomes: Array | None = None,
    ) -> None:
        n_entries = int(indptr[-1]) if len(indptr) else 0
        super().__init__(indptr, (n_entries,), prior, mask, frozen, tied, outcomes)

    def running(self) -> Running:
        """An average whose blends cost what the batch touches (with ties: the whole table)."""
        return LazyRunning(self) if self.ties is None else Running(self)
