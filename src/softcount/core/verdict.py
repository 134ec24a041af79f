"""How a run ended, in a sentence."""

from __future__ import annotations

from enum import StrEnum


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
