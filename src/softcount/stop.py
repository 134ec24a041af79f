"""When a run ends, and what to say about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from softcount.errors import SoftcountError
from softcount.families.base import Family
from softcount.types import Params, State, Stats
from softcount.verdict import Verdict

if TYPE_CHECKING:
    from softcount.learners.base import Learner

SLACK = 1e-9
"""Part of its size by which an objective may fall through rounding alone."""

ROUNDING = 2.0**-43
"""The same, of the number of observations and pseudo-counts. An objective may be far smaller than
the terms it is the sum of: n observations of probability 1 − ε have a log-likelihood near 0, each
of whose terms has an error of about 2^-53; and log Γ(n), of which the bounds of variational Bayes
are differences, is about n log n, for which 2^10 leaves room up to n = 10^15 and beyond."""


def rounding(stats: Stats, prior_size: float) -> float:
    """How much of an objective may be rounding, whatever its own size.

    ``prior_size``  how many counts the priors of all families stand for
    """
    return ROUNDING * (stats.items + stats.tokens + stats.magnitude + prior_size)


def judge(
    learner: Learner,
    families: Mapping[str, Family],
    before: State | None,
    now: State,
    climbs: bool = True,
    few: bool = False,
) -> Verdict | None:
    """The verdict, if the run ends with the step ``now``; None if it goes on.

    ``climbs``  whether the model's E-step is such that soft EM cannot lower the objective
    ``few``     whether the learner's few steps are all that the model asks for
    """
    if now.objective != now.objective:
        raise SoftcountError(
            f"the objective is not a number at step {now.step}",
            "this is a fault of the model: its E-step returned NaN; run check_model on it",
        )
    if learner.max_iter == 0:
        return Verdict.SOLVED
    if learner.stochastic:
        return Verdict.SAMPLED if now.step >= learner.max_iter else None
    if climbs and learner.monotone and before and _fell(before, now):
        return Verdict.FELL
    still = (
        before is not None
        and not learner.schedule.held_out
        and now.temper == learner.last_temper
        and _still(learner, before, now)
    )
    if (still and learner.tol > 0) or now.step >= learner.max_iter:
        if indistinguishable(families, now.params):
            return Verdict.STUCK
        if still:
            return Verdict.CONVERGED
        return Verdict.ENOUGH if few else Verdict.OUT_OF_STEPS
    return None


def ended(families: Mapping[str, Family], last: State) -> Verdict:
    """The verdict on a run that its schedule ended."""
    return Verdict.STUCK if indistinguishable(families, last.params) else Verdict.CONVERGED


def indistinguishable(families: Mapping[str, Family], params: Params) -> bool:
    """Whether every family that has rows to compare finds them all the same."""
    answers = [family.alike(params[name]) for name, family in families.items()]
    compared = [answer for answer in answers if answer is not None]
    return bool(compared) and all(compared)


def _fell(before: State, now: State) -> bool:
    """Whether the objective went down, by more than rounding, under one and the same temper."""
    slack = SLACK * max(1.0, abs(before.objective)) + max(before.rounding, now.rounding)
    return now.temper == before.temper and now.objective < before.objective - slack


def _still(learner: Learner, before: State, now: State) -> bool:
    """Whether the step changed next to nothing; tol = 0: nothing at all."""
    if now.temper != before.temper:
        return False
    if learner.stop == "change":
        return now.change <= learner.tol
    if learner.stop == "perplexity":
        return abs(now.perplexity - before.perplexity) <= learner.tol * now.perplexity
    return abs(now.objective - before.objective) <= learner.tol * max(1.0, abs(now.objective))
