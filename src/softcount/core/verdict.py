"""When a run ends, and what to say about it: verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from softcount.core.errors import SoftcountError

if TYPE_CHECKING:
    from softcount.core.types import Params, State
    from softcount.families.base import Family
    from softcount.learners.base import Learner


class Verdict(StrEnum):
    """How a run ended. Each is a sentence; ``.good`` says whether to trust the result."""

    CONVERGED = "converged: another step would change next to nothing"
    OUT_OF_STEPS = "ran out of steps before it converged: allow more steps, or a larger tolerance"
    ENOUGH = (
        "took the few steps that are usual for this model: more would fit these data better, "
        "and tell less of their hidden values"
    )
    STUCK = (
        "stuck: the hidden values are indistinguishable, every class has the same distribution; "
        "start from unequal values, for instance at random"
    )
    CIRCLED = (
        "went round in a circle: the same labels came back and would for ever; what is kept is "
        "where the circle closed, not a point of rest"
    )
    FELL = "fell: the objective went down, which this learner must not do; please report it"
    STOPPED = "stopped by a callback"
    INTERRUPTED = (
        "stopped by Ctrl-C before it converged: what is kept is where the last whole step led"
    )
    SAMPLED = "sampled: the chain ran its course; look at the diagnostics before you trust it"

    STREAMED = (
        "learned from all that came, each mini-batch once: more may come, and nothing says that "
        "it has converged"
    )
    SOLVED = "solved: from moments, in one go; steps of EM from here may still improve it"

    @property
    def good(self) -> bool:
        return self not in (
            Verdict.OUT_OF_STEPS,
            Verdict.INTERRUPTED,
            Verdict.STUCK,
            Verdict.CIRCLED,
            Verdict.FELL,
        )


SLACK = 1e-9
"""Part of its size by which an objective may fall through rounding alone."""

ROUNDING = 2.0**-43
"""The same, of the number of observations and of the counts that priors stand for. An objective may
be far smaller than the terms it is the sum of: n observations of probability 1 − ε have a
log-likelihood near 0, each of whose terms has an error of about 2^-53; and log Γ(n), of which the
bounds of variational Bayes are differences, is about n log n, for which 2^10 leaves room up to
n = 10^15 and beyond."""


def judge(
    learner: Learner,
    families: Mapping[str, Family],
    before: State | None,
    now: State,
    monotone: bool = True,
    few: bool = False,
) -> Verdict | None:
    """The verdict, if the run ends with the step ``now``; None if it goes on.

    ``monotone``  whether the model's E-step is such that soft EM cannot lower the objective
    ``few``       whether the learner's few steps are all that the model asks for
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
    still = False
    if before is not None and now.temper == before.temper:
        # whether it went down, by more than rounding
        slack = SLACK * max(1.0, abs(before.objective)) + max(before.rounding, now.rounding)
        if monotone and learner.monotone and now.objective < before.objective - slack:
            return Verdict.FELL
        # whether the step changed next to nothing; tol = 0: nothing at all
        if now.temper == learner.last_temper and not learner.schedule.held_out:
            if learner.stop == "change":
                still = now.change <= learner.tol
            elif learner.stop == "perplexity":
                still = abs(now.perplexity - before.perplexity) <= learner.tol * now.perplexity
            else:
                size = max(1.0, abs(now.objective))
                still = abs(now.objective - before.objective) <= learner.tol * size
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
