"""A learner is three words: how hidden values are filled in, how counts become parameters, when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar, Literal, get_args

from softcount.bounds import MAX_RUNS, MAX_STEPS, MAX_TEMPER, MAX_WHOLE, MIN_TEMPER, as_float
from softcount.errors import LearnerError, shown
from softcount.learners.schedules import Batch
from softcount.learners.squarem import Squarem
from softcount.learners.steps import Schedule
from softcount.types import Fill, Update

Stop = Literal["objective", "change", "perplexity"]
"""What must stand still for a run to have converged."""


@dataclass(frozen=True, kw_only=True)
class Learner:
    """How to learn, for any model.

    ``e``         how hidden values are filled in: soft (posterior weights), hard (the best), sample
    ``m``         how counts become parameters: maximise, mean_field, draw
    ``schedule``  when: Batch(), Stepwise(), Incremental(), Squarem()
    ``max_iter``  at most so many steps
    ``tol``       a run has converged when a step changes ``stop`` by no more than this (objective
                  and perplexity: of their size); 0 runs all steps
    ``temper``    power β of the posteriors: a number, one a step, or a function of the step
    ``n_init``    how many runs, from different starts; the best is kept
    ``samples``   how many draws of each item's hidden values, for ``e="sample"``

    The named learners (`EM`, `VariationalBayes`, …) are combinations that have a name; every other
    combination works as well:

    >>> annealed_hard = Learner(e="hard", temper=(0.2, 0.5, 1.0), max_iter=30)
    >>> print(annealed_hard)
    Learner(max_iter=30, tol=1e-06, e='hard', temper=(0.2, 0.5, 1.0))
    """

    e: Fill = "soft"
    m: Update = "maximise"
    schedule: Schedule = Batch()  # noqa: RUF009 (frozen, so one for all is safe)
    max_iter: int = 100
    tol: float = 1e-6
    stop: Stop = "objective"
    temper: float | Sequence[float] | Callable[[int], float] = 1.0
    n_init: int = 1
    samples: int = 1
    fewest_steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        one_of("e", self.e, get_args(Fill))
        one_of("m", self.m, get_args(Update))
        one_of("stop", self.stop, get_args(Stop))
        at_least("max_iter", self.max_iter, self.fewest_steps, MAX_STEPS)
        for dial in ("n_init", "samples"):
            at_least(dial, getattr(self, dial), most=MAX_RUNS)
        if not 0 <= as_float(self.tol) < float("inf"):
            raise LearnerError(
                f"tol={shown(self.tol)} must be finite and not negative",
                "tol=0 runs all max_iter steps",
            )
        if isinstance(self.temper, Sequence):
            object.__setattr__(self, "temper", tuple(as_float(beta) for beta in self.temper))
        self._check_temper()
        if isinstance(self.schedule, Squarem) and (self.e == "sample" or self.m != "maximise"):
            raise LearnerError(
                f"Squarem() extrapolates steps of soft or hard EM; it cannot speed up e={self.e!r} "
                f"with m={self.m!r}",
                "use schedule=Batch() here",
            )
        if self.schedule.held_out and (self.e, self.m) != ("soft", "maximise"):
            raise LearnerError(
                f"Tempered() lowers the power of soft EM's posteriors; it has no use for "
                f"e={self.e!r} with m={self.m!r}",
                "leave e and m out, or use schedule=Batch()",
            )

    def _check_temper(self) -> None:
        if callable(self.temper):
            return
        betas = self.temper if isinstance(self.temper, tuple) else (self.temper,)
        if not betas or not all(MIN_TEMPER <= as_float(beta) <= MAX_TEMPER for beta in betas):
            raise LearnerError(
                f"temper={shown(self.temper)}: powers must be positive and finite, "
                f"from {MIN_TEMPER:g} to {MAX_TEMPER:g}",
                "1 is no tempering at all; anneal(start=0.1, steps=20) rises to it",
            )

    def temper_at(self, step: int) -> float:
        """β at this step."""
        if isinstance(self.temper, Sequence):
            return float(self.temper[min(step, len(self.temper) - 1)])
        if not callable(self.temper):
            return float(self.temper)
        beta = as_float(self.temper(step))
        if not MIN_TEMPER <= beta <= MAX_TEMPER:
            raise LearnerError(
                f"temper gives {beta} at step {step}: powers must be positive and finite, "
                f"from {MIN_TEMPER:g} to {MAX_TEMPER:g}",
                "let the function return a number above 0 for every step from 0 to max_iter",
            )
        return beta

    @property
    def last_temper(self) -> float:
        """The power that counts in the end; before it is reached no run has converged."""
        if isinstance(self.temper, Sequence):
            return float(self.temper[-1])
        return self.temper_at(self.max_iter)

    @property
    def stochastic(self) -> bool:
        """Whether it draws, so that it wanders for ever and never converges."""
        return self.e == "sample" or self.m == "draw"

    @property
    def monotone(self) -> bool:
        """Whether the objective cannot fall."""
        return not self.stochastic and self.schedule.climbs

    @property
    def begins(self) -> str | None:
        """The start that this learner cannot do without, if there is one."""
        return None

    def keeps(self, step: int) -> bool:
        """Whether the parameters of this step are a draw to keep (here: the second half)."""
        return self.m == "draw" and step > self.max_iter // 2

    def __str__(self) -> str:
        dials = {"max_iter": self.max_iter, "tol": self.tol}
        usual = {field.name: field.default for field in fields(self)}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.init and field.name not in dials and value != usual[field.name]:
                dials[field.name] = value
        return (
            f"{type(self).__name__}({', '.join(f'{k}={_readable(v)}' for k, v in dials.items())})"
        )


def at_least(dial: str, value: int, least: int = 1, most: int = MAX_WHOLE) -> None:
    """Complain unless ``value`` is a whole number of at least ``least``, at most ``most``.

    Of steps 10.0 is as good as 10; what is counted off by Python must be whole by its type.
    """
    if dial != "max_iter" and not isinstance(value, Integral):
        raise LearnerError(f"{dial}={shown(value)}: must be a whole number, at least {least}")
    if not least <= as_float(value) < float("inf") or value != int(value):
        raise LearnerError(f"{dial}={shown(value)}: must be a whole number, at least {least}")
    if value > most:
        raise LearnerError(f"{dial}={shown(value)}: must be a whole number, at most {most}")


def one_of(dial: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise LearnerError(f"{dial}={value!r} is unknown", f"choose one of {', '.join(choices)}")


def _readable(value: Any) -> str:
    return str(getattr(value, "__name__", None) or repr(value))
