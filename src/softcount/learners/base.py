"""The base class of learners: how hidden values are filled in, and how and when to update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from softcount.core.bounds import MAX_RUNS, MAX_STEPS, MAX_TEMPER, MAX_WHOLE, MIN_TEMPER
from softcount.core.errors import LearnerError, ParameterError, brief
from softcount.core.parameters import as_float
from softcount.core.types import Fill, Update
from softcount.learners.schedules import Batch, Schedule, Squarem, at_least

if TYPE_CHECKING:
    from softcount.learners.constraints import Constraint

Stop = Literal["objective", "change", "perplexity"]
"""The figure whose change decides convergence."""


@dataclass(frozen=True, kw_only=True)
class Learner:
    """A learning algorithm, for any model.

    ``e``         how hidden values are filled in: soft (posterior weights), hard (the best), sample
    ``m``         how counts become parameters: maximise, mean_field, draw
    ``schedule``  when parameters are updated: Batch(), Stepwise(), Incremental(), Squarem()
    ``max_iter``  maximum number of steps
    ``tol``       a run has converged when a step changes the figure ``stop`` by no more than this
                  (relative to its size for objective and perplexity); 0 runs all steps
    ``stop``      the figure that decides convergence: objective, change or perplexity
    ``temper``    power β of the posteriors: a number, a sequence of one per step, or a function of
                  the step
    ``n_init``    number of runs, from different starts; the best is kept
    ``samples``   number of draws of each item's hidden values, for ``e="sample"``
    ``constraints``  what is known of expectations of hidden values: see
                     `softcount.learners.constraints`

    The named learners (`EM`, `VariationalBayes`, …) are combinations that have a name; other
    combinations work as well:

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
    constraints: Sequence[Constraint] = ()
    fewest_steps: ClassVar[int] = 1
    own_schedule: ClassVar[type[Schedule] | None] = None
    """Schedule class to construct from the learner's own hyperparameters; None: it is given."""

    def __post_init__(self) -> None:
        if self.own_schedule is not None:
            names = (each.name for each in fields(self.own_schedule))  # type: ignore[arg-type]
            schedule = self.own_schedule(**{name: getattr(self, name) for name in names})
            object.__setattr__(self, "schedule", schedule)
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
        if self.constraints:
            object.__setattr__(self, "constraints", tuple(self.constraints))
            if self.e != "soft" or self.m == "draw" or not isinstance(self.schedule, Batch):
                raise LearnerError(
                    "constraints are about expectations over all data: they need soft E-steps and "
                    "batch updates",
                    "use EM(constraints=…), or VariationalBayes(constraints=…)",
                )
            if self.temper != 1.0:
                raise LearnerError(
                    f"temper={self.temper}: constraints need the posteriors themselves",
                    "leave temper or the constraints out",
                )
        if self.schedule.held_out and (self.e, self.m) != ("soft", "maximise"):
            raise LearnerError(
                f"Tempered() lowers the power of soft EM's posteriors; it has no use for "
                f"e={self.e!r} with m={self.m!r}",
                "leave e and m out, or use schedule=Batch()",
            )

    def temper_at(self, step: int) -> float:
        """Return β at this step."""
        if isinstance(self.temper, Sequence):
            return float(self.temper[min(step, len(self.temper) - 1)])
        if not callable(self.temper):
            return float(self.temper)
        beta = as_float(self.temper(step))
        if not MIN_TEMPER <= beta <= MAX_TEMPER:
            raise LearnerError(
                f"temper gives {beta} at step {step}: powers must be positive and finite, "
                f"from {MIN_TEMPER:g} to {MAX_TEMPER:g}",
                "make the function return a number above 0 for every step from 0 to max_iter",
            )
        return beta

    @property
    def last_temper(self) -> float:
        """The final power; a run cannot have converged before it is reached."""
        if isinstance(self.temper, Sequence):
            return float(self.temper[-1])
        return self.temper_at(self.max_iter)

    @property
    def stochastic(self) -> bool:
        """Whether it draws at random, so that a run never converges to a point."""
        return self.e == "sample" or self.m == "draw"

    @property
    def monotone(self) -> bool:
        """Whether the objective cannot fall."""
        return not self.stochastic and self.schedule.monotone

    @property
    def required_init(self) -> str | None:
        """The ``init`` that this learner requires, if any."""
        return None

    def keeps(self, step: int) -> bool:
        """Return whether this step's parameters are a draw to keep (here: in the second half)."""
        return self.m == "draw" and step > self.max_iter // 2

    @property
    def n_kept(self) -> int:
        """Maximum number of draws kept per chain."""
        return int(self.max_iter - int(0.5 * self.max_iter)) + 1

    # hyperparameters, in the form that scikit-learn's searches use
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}

    def set_params(self, **hyperparameters: Any) -> Self:
        """Return a learner with these hyperparameters; this one, which may be shared, is unchanged.

        >>> print(Learner(max_iter=10).set_params(max_iter=20, tol=0.0))
        Learner(max_iter=20, tol=0.0)
        """
        known = {field.name for field in fields(self) if field.init}
        unknown = sorted(set(hyperparameters) - known)
        if unknown:
            raise ParameterError(
                f"{type(self).__name__} has no hyperparameter {unknown[0]!r}",
                f"its hyperparameters are {', '.join(sorted(known))}",
            )
        return replace(self, **hyperparameters)

    def __sklearn_clone__(self) -> Self:
        return self  # learners are immutable, so no copy is needed

    def __str__(self) -> str:
        shown: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "schedule" and self.constraints:
                continue  # it is made of the constraints
            if field.init and field.name not in shown and value != field.default:
                shown[field.name] = value
        if len(self.constraints) > MANY:
            shown["constraints"] = Shortened(f"{len(self.constraints)} of them")
        each = ", ".join(
            f"{name}={getattr(value, '__name__', None) or repr(value)}"  # functions by their names
            for name, value in shown.items()
        )
        return f"{type(self).__name__}({each})"


MANY = 3
"""More constraints than this are only counted in a learner's signature."""


class Shortened(str):
    """A text that stands for something longer, and is shown without quotes."""

    def __repr__(self) -> str:
        return f"({self})"


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a `LearnerError` unless the value is one of the choices."""
    if value not in choices:
        raise LearnerError(f"{name}={value!r} is unknown", f"choose one of {', '.join(choices)}")


# Annealing: posteriors raised to a power β that rises to one. A small β makes all hidden values
# nearly equally likely, so that learning first finds the coarse shape of the likelihood and is less
# easily trapped in a poor local maximum (Ueda & Nakano 1998).


@dataclass(frozen=True)
class Anneal:
    """β_t = start^(1 − t / steps) until step ``steps``, then 1."""

    start: float
    steps: int

    def __call__(self, step: int) -> float:
        return float(self.start ** (1 - step / self.steps)) if step < self.steps else 1.0


def anneal(start: float = 0.1, steps: int = 20) -> Anneal:
    """Make a temper schedule that rises geometrically from ``start`` to 1 in ``steps`` steps.

    With ``start`` above 1 posteriors are over-confident at first, and the power falls to 1.

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
