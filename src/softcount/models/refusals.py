"""Learners that a model cannot be learned by: told at once, with something that works instead.

Every estimator says what it has and what it lacks (`Abilities`). It is asked before anything is
read or compiled, and in an order in which no remedy leads to the next complaint.
"""

from __future__ import annotations

from collections.abc import Collection
from numbers import Real
from typing import TYPE_CHECKING

from softcount.errors import LearnerError

if TYPE_CHECKING:
    from softcount.learners.base import Learner


class Abilities:
    """What an estimator says of learners (a mixin)."""

    learner: Learner | None
    usual: str = "EM"
    """The learner, if none is given."""
    holds_out: bool = False
    """Whether some of its data can be held out, as `TemperedEM` asks."""
    learns_priors: bool = False
    """Whether its collapsed sampler can fit the priors."""

    @property
    def called(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    def lacks_sampler(self) -> str:
        """Why `CollapsedGibbs` cannot be had; nothing, if it can."""
        return f"{self.called} has no collapsed sampler"

    def solutions(self) -> Collection[str]:
        """Starts that `Spectral` can solve for."""
        return ()

    def lacks_prior(self) -> str:
        """The setting by which there is no prior for learners that average or draw; or nothing."""
        smoothing = getattr(self, "smoothing", None)
        return "smoothing=0" if isinstance(smoothing, Real) and smoothing == 0 else ""

    def prior_hint(self) -> str:
        """What gives it one."""
        return "give smoothing above 0, for example 0.1"

    def lacks_mode(self) -> str:
        """The setting by which there is nothing to maximise; or nothing."""
        return ""


def check_learner(model: Abilities, called: str = "") -> None:
    """Complain of a learner that cannot learn this model; ``called``: the name to use for it."""
    name, learner = called or model.called, model.learner
    maximises = learner.m == "maximise" if learner else model.usual in ("EM", "HardEM")
    if learner is not None:
        _check_schedule(model, learner, name)
    if not maximises and model.lacks_prior():
        by = model.usual if learner is None else learner
        raise LearnerError(
            f"{by} needs a prior above 0, but {name} has none ({model.lacks_prior()})",
            model.prior_hint() + ("" if model.lacks_mode() else "; or use EM()"),
        )
    if maximises and model.lacks_mode():
        raise LearnerError(
            f"{name} has {model.lacks_mode()}: a prior below 1 has no mode, so there is nothing to "
            "maximise",
            "use VariationalBayes() or Gibbs(), or give 1 or more",
        )


def _check_schedule(model: Abilities, learner: Learner, name: str) -> None:
    kind, schedule = type(learner).__name__, learner.schedule
    instead = "VariationalBayes()" if model.lacks_mode() else "EM()"
    if getattr(schedule, "collapses", False):
        lack = model.lacks_sampler().replace(model.called, name)
        if lack:
            more = f", and {model.prior_hint()}" if model.lacks_prior() else ""
            raise LearnerError(lack, f"use Gibbs(), which samples any model{more}; or {instead}")
        optimise = getattr(schedule, "optimise", 0)
        if optimise and not model.learns_priors:
            raise LearnerError(
                f"optimise={optimise}: the priors of {name} cannot be learned",
                "leave it at 0; LDA can learn its priors",
            )
    if schedule.held_out and not model.holds_out:
        raise LearnerError(
            f"{name} has no held-out words, by which {kind} would end",
            f"use {instead}; the temper is chosen on held-out words for topic models alone",
        )
    if learner.begins and learner.begins not in model.solutions():
        raise LearnerError(
            f"{name} cannot be solved for from moments, as {kind} would (init={learner.begins!r})",
            f"use {instead}; {kind} is for MultinomialMixture, and as a start for HMM of order 1",
        )
