"""A dense table of categorical distributions, one a row."""

from __future__ import annotations

import numpy as np

from softcount.errors import LearnerError
from softcount.families.dirichlet import DirichletRows
from softcount.types import Array


class Categorical(DirichletRows):
    """Rows of categorical distributions over the same outcomes, each with a Dirichlet prior.

    Counts and parameters are (rows, outcomes) arrays. ``prior`` is the concentration α (a number,
    one a row, or one an entry; add-a smoothing is 1 + a); ``mask`` is False where an entry is fixed
    at zero; ``frozen`` rows keep what they have; ``tied`` rows with the same number are one.

    >>> import numpy as np
    >>> coins = Categorical((2, 2), prior=2.0)
    >>> rng = np.random.default_rng(0)
    >>> coins.maximise(np.array([[3., 1.], [0., 0.]]), coins.uniform(), rng)
    array([[0.66666667, 0.33333333],
           [0.5       , 0.5       ]])
    """

    def __init__(
        self,
        shape: tuple[int, int],
        prior: float | Array = 1.0,
        mask: Array | None = None,
        frozen: Array | None = None,
        tied: Array | None = None,
    ) -> None:
        if len(shape) != 2 or min(shape) < 0:
            raise LearnerError(
                f"a categorical table cannot have shape {shape}",
                hint="shape is (rows, outcomes)",
            )
        rows, outcomes = shape
        super().__init__(
            np.arange(rows + 1) * outcomes, (rows, outcomes), prior, mask, frozen, tied
        )
