"""How to learn: how hidden values are filled in, how counts become parameters, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, get_args

from softcount.core.bounds import MAX_RUNS, MAX_STEPS, MAX_TEMPER, MAX_WHOLE, MIN_TEMPER
from softcount.core.errors import LearnerError, ParameterError, brief
from softcount.core.parameters import as_float
from softcount.core.types import Fill, Update
from softcount.learners.schedules import Batch, Schedule, Squarem, at_least

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
    own_schedule: ClassVar[type[Schedule] | None] = None
    """A schedule made of the learner's hyperparameters of the same names; None: it is given."""

    def __post_init__(self) -> None:
        if self.own_schedule is not None:
            names = (each.name for each in fields(self.own_schedule))  # type: ignore[arg-type]
            own = self.own_schedule(**{name: getattr(self, name) for name in names})
            object.__setattr__(self, "schedule", own)
        one_of("e", self.e, get_args(Fill))
        one_of("m", self.m, get_args(Update))
        one_of("stop", self.stop, get_args(Stop))
        at_least("max_iter", self.max_iter, self.fewest_steps, MAX_STEPS)
        at_least("n_init", self.n_init, most=MAX_RUNS)
        at_least("samples", self.samples, most=MAX_RUNS)
        if not 0 <= as_float(self.tol) < float("inf"):
            raise LearnerError(
                f"tol={brief(self.tol)} must be finite and not negative",
                "tol=0 runs all max_iter steps",
            )
        if isinstance(self.temper, Sequence):
            object.__setattr__(self, "temper", tuple(as_float(beta) for beta in self.temper))
        if not callable(self.temper):
            betas = self.temper if isinstance(self.temper, tuple) else (self.temper,)
            if not betas or not all(MIN_TEMPER <= as_float(beta) <= MAX_TEMPER for beta in betas):
                raise LearnerError(
                    f"temper={brief(self.temper)}: powers must be positive and finite, "
                    f"from {MIN_TEMPER:g} to {MAX_TEMPER:g}",
                    "1 is no tempering at all; anneal(start=0.1, steps=20) rises to it",
                )
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
        return not self.stochastic and self.schedule.monotone

    @property
    def required_init(self) -> str | None:
        """The start that this learner cannot do without, if there is one."""
        return None

    def keeps(self, step: int) -> bool:
        """Whether the parameters of this step are a draw to keep (here: the second half)."""
        return self.m == "draw" and step > self.max_iter // 2

    @property
    def n_kept(self) -> int:
        """How many draws of a chain are kept, at most."""
        return int(self.max_iter - int(0.5 * self.max_iter)) + 1

    # hyperparameters, as scikit-learn's searches ask for them
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}

    def set_params(self, **hyperparameters: Any) -> Self:
        """A learner with these hyperparameters; this one stays as it is, for others may use it.

        >>> print(Learner(max_iter=10).set_params(max_iter=20, tol=0.0))
        Learner(max_iter=20, tol=0.0)
        """
        known = {field.name for field in fields(self) if field.init}
        unknown = sorted(set(hyperparameters) - known)
        if unknown:
            raise ParameterError(
                f"{type(self).__name__} has no hyperparameter {unknown[0]!r}",
                f"it has {', '.join(sorted(known))}",
            )
        return replace(self, **hyperparameters)

    def __sklearn_clone__(self) -> Self:
        return self  # it never changes: a copy would be the same

    def __str__(self) -> str:
        shown = {"max_iter": self.max_iter, "tol": self.tol}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.init and field.name not in shown and value != field.default:
                shown[field.name] = value
        each = ", ".join(
            f"{name}={getattr(value, '__name__', None) or repr(value)}"  # functions by their names
            for name, value in shown.items()
        )
        return f"{type(self).__name__}({each})"


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a `LearnerError` unless the value is one of these."""
    if value not in choices:
        raise LearnerError(f"{name}={value!r} is unknown", f"choose one of {', '.join(choices)}")


# Annealing: posteriors raised to a power β that rises to one. A small β makes all hidden values
# nearly equal, so that learning first finds the coarse shape of the likelihood and is less easily
# caught by a poor local maximum (Ueda & Nakano 1998).


@dataclass(frozen=True)
class Anneal:
    """β_t = start^(1 − t / steps) until step ``steps``, then 1."""

    start: float
    steps: int

    def __call__(self, step: int) -> float:
        return float(self.start ** (1 - step / self.steps)) if step < self.steps else 1.0


def anneal(start: float = 0.1, steps: int = 20) -> Anneal:
    """A temper schedule that rises geometrically from ``start`` to 1 in ``steps`` steps.

    ``start`` above 1 begins with over-confident posteriors instead, which sink to one.

    >>> beta = anneal(start=0.25, steps=2)
    >>> [beta(step) for step in range(4)]
    [0.25, 0.5, 1.0, 1.0]
    """
    if not MIN_TEMPER <= start <= MAX_TEMPER or not 1 <= steps <= MAX_WHOLE:
        raise LearnerError(
            f"anneal(start={brief(start)}, steps={brief(steps)}): start must be positive and "
            f"finite, from {MIN_TEMPER:g} to {MAX_TEMPER:g}, and there must be at least one step",
            "anneal(start=0.1, steps=20) is a common choice",
        )
    return Anneal(start, steps)
