"""How a run ended, in a sentence."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Any


class _InNotebooks:
    """What a notebook shows of a verdict; an enumeration has no room for such names itself."""

    def _repr_html_(self: Any) -> str:
        # imported by name: the report package is a layer above this one
        render = import_module("softcount.report.page").render
        return str(render("report/templates/verdict.html", verdict=self)).strip()


class Verdict(_InNotebooks, StrEnum):
    """How a run ended. Each is a sentence; ``.good`` says whether to trust the result."""

    CONVERGED = "converged: another step would change next to nothing"
    OUT_OF_STEPS = "ran out of steps before it converged: allow more steps, or a larger tolerance"
    ENOUGH = (
        "took the few steps that are usual for this model: more would raise the likelihood, but "
        "make the hidden values less accurate"
    )
    STUCK = (
        "stuck: the hidden values are indistinguishable, as every class has the same "
        "distribution; start from unequal values, for instance random ones"
    )
    UNSATISFIED = (
        "converged, but the data and the model do not allow all that the constraints ask for: "
        "constraints_ has what is missing"
    )
    CIRCLED = (
        "ran into a cycle: the same labels would recur for ever; what is kept is the state where "
        "the cycle closed, not a fixed point"
    )
    FELL = "fell: the objective decreased, which must never happen here; please report it"
    STOPPED = "stopped by a callback"
    INTERRUPTED = (
        "stopped by Ctrl-C before it converged: the result of the last complete step is kept"
    )
    SAMPLED = "sampled: the chain ran its course; look at the diagnostics before you trust it"

    STREAMED = (
        "learned from all data so far, each mini-batch once: more may follow, and it need not "
        "have converged"
    )
    SOLVED = "solved: estimated from moments, without steps; EM from here may still improve it"

    @property
    def good(self) -> bool:
        return self not in (
            Verdict.OUT_OF_STEPS,
            Verdict.INTERRUPTED,
            Verdict.STUCK,
            Verdict.UNSATISFIED,
            Verdict.CIRCLED,
            Verdict.FELL,
        )
