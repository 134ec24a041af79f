"""The names of learners, for ``learner="em"`` in Python and ``--learner em`` in the shell.

Nothing here imports numpy, so that ``softcount align --help`` need not wait for it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from softcount.core.errors import LearnerError, brief

if TYPE_CHECKING:
    from softcount.learners.base import Learner

SHORT = {
    "online": "online-em",
    "vb": "variational-bayes",
    "svb": "stochastic-vb",
    "mcem": "monte-carlo-em",
}
"""Short aliases."""


class LearnerName(StrEnum):
    """The names of learners."""

    EM = "em"
    HARD_EM = "hard-em"
    ONLINE_EM = "online-em"
    INCREMENTAL_EM = "incremental-em"
    VARIATIONAL_BAYES = "variational-bayes"
    STOCHASTIC_VB = "stochastic-vb"
    MONTE_CARLO_EM = "monte-carlo-em"
    GIBBS = "gibbs"
    COLLAPSED_GIBBS = "collapsed-gibbs"
    TEMPERED_EM = "tempered-em"
    SPECTRAL = "spectral"

    @classmethod
    def _missing_(cls, value: object) -> LearnerName | None:
        return cls(SHORT[value]) if isinstance(value, str) and value in SHORT else None


def make_learner(name: str, **hyperparameters: Any) -> Learner:
    """Make the learner of that name; hyperparameters that are None keep their defaults.

    >>> print(make_learner("vb", max_iter=20, tol=None))
    VariationalBayes(max_iter=20, tol=1e-06)
    """
    from softcount.learners.named import BY_NAME  # with numpy

    try:
        kind = BY_NAME[LearnerName(name)]
    except ValueError:
        raise LearnerError(
            f"learner={brief(name)} is unknown",
            f"choose one of {', '.join(LearnerName)}; or pass a learner, such as EM(max_iter=50)",
        ) from None
    return kind(**{each: value for each, value in hyperparameters.items() if value is not None})
