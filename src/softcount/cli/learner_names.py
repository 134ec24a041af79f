"""Learners by the names they have on the command line."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softcount.learners import Learner


SHORT = {
    "online": "online-em",
    "vb": "variational-bayes",
    "svb": "stochastic-vb",
    "mcem": "monte-carlo-em",
}
"""Other names of some."""


class LearnerName(StrEnum):
    """What ``--learner`` may say."""

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


def learner_called(
    name: LearnerName,
    max_iter: int | None,
    tol: float | None,
    n_init: int | None,
    **more: Any,
) -> Learner:
    """The learner, with the dials that were given; the others stay as they are."""
    from softcount import learners

    kinds: dict[LearnerName, type[Learner]] = {
        LearnerName.EM: learners.EM,
        LearnerName.HARD_EM: learners.HardEM,
        LearnerName.ONLINE_EM: learners.OnlineEM,
        LearnerName.INCREMENTAL_EM: learners.IncrementalEM,
        LearnerName.VARIATIONAL_BAYES: learners.VariationalBayes,
        LearnerName.STOCHASTIC_VB: learners.StochasticVB,
        LearnerName.MONTE_CARLO_EM: learners.MonteCarloEM,
        LearnerName.GIBBS: learners.Gibbs,
        LearnerName.COLLAPSED_GIBBS: learners.CollapsedGibbs,
        LearnerName.TEMPERED_EM: learners.TemperedEM,
        LearnerName.SPECTRAL: learners.Spectral,
    }
    samples = name in (LearnerName.GIBBS, LearnerName.COLLAPSED_GIBBS)
    runs = "n_chains" if samples else "n_init"
    dials: dict[str, Any] = {"max_iter": max_iter, "tol": tol, runs: n_init, **more}
    return kinds[name](**{dial: value for dial, value in dials.items() if value is not None})
