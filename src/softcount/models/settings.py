"""Settings and start values of models, checked: a mistake is told, and what would do."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from softcount.bounds import (
    MAX_NUMBER,
    MAX_SQUARE,
    MAX_VALUE,
    MAX_WHOLE,
    MIN_NUMBER,
    as_float,
    within_range,
)
from softcount.errors import LearnerError, StartError, shown
from softcount.families.base import Family
from softcount.types import Array


def check_number(
    name: str, value: Any, hint: str = "", *, above: bool = False, most: float = MAX_NUMBER
) -> None:
    """Complain unless ``value`` is finite, not negative (``above``: above zero), and at most
    ``most``."""
    number = as_float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    if not 0.0 <= number < np.inf or (above and number == 0.0):
        wanted = "above 0 and finite" if above else "finite and not negative"
        raise LearnerError(f"{name}={shown(value)}: must be a number, {wanted}", hint)
    if number > most:
        raise LearnerError(f"{name}={shown(value)}: must be at most {most:g}", hint)
    if 0.0 < number < MIN_NUMBER:
        raise LearnerError(
            f"{name}={shown(value)}: is too small, must be at least {MIN_NUMBER:.2g}"
            + ("" if above else " or 0"),
            hint,
        )


def check_whole(
    name: str, value: Any, least: int = 1, hint: str = "", most: int = MAX_WHOLE
) -> None:
    """Complain unless ``value`` is a whole number of at least ``least``, at most ``most``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise LearnerError(f"{name}={shown(value)}: must be a whole number, at least {least}", hint)
    if int(value) > most:
        raise LearnerError(f"{name}={shown(value)}: must be a whole number, at most {most}", hint)


def check_prior(name: str, value: Any) -> None:
    """Complain of Dirichlet concentrations that are out of bounds: a number, or an array."""
    if np.ndim(value) == 0:
        check_number(name, value, "1 is flat; 1.1 adds 0.1 to every count", above=True)
        return
    with within_range(name):
        array = np.asarray(value, dtype=np.float64)
    if not ((array >= MIN_NUMBER) & (array <= MAX_NUMBER)).all():
        raise LearnerError(
            f"{name}={shown(value)}", f"give numbers above 0, none beyond {MAX_NUMBER:g}"
        )


def check_niw(prior: Any) -> None:
    """Complain of a normal–inverse-Wishart prior (None: none) whose numbers are out of bounds.

    Whether they go with a form of covariance is for the family to say.
    """
    if prior is None:
        return
    check_number("kappa of the prior", prior.kappa, "0.01 is weak", above=True)
    if prior.dof is not None:
        check_number("dof of the prior", prior.dof, "the number of dimensions + 2 is weak")
    for what, values, most in (
        ("mean", prior.mean, MAX_VALUE),
        ("scale", prior.scale, MAX_SQUARE),
    ):
        with within_range(f"the {what} of the prior"):
            array = np.asarray(values, dtype=np.float64)
        if not (np.abs(array) <= most).all():
            raise LearnerError(
                f"the {what} of the prior is {shown(values)}",
                f"give finite numbers, none beyond {most:g}",
            )


def shaped(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Start values of a table as an array of its shape; rows may be grouped in another way."""
    with within_range(f"the start of {name!r}"):
        values = np.asarray(given, dtype=float)
    if values.size != np.prod(shape) or values.shape[-1:] != shape[-1:]:
        raise StartError(
            f"the start of {name!r} has the shape {values.shape}, not {shape}",
            "give one row a class, in the order of the columns of the data",
        )
    return values.reshape(shape)


def start_tables(given: Mapping[str, Any], families: Mapping[str, Family]) -> dict[str, Array]:
    """Start values of all tables, as arrays of the families' shapes."""
    if set(given) != set(families):
        raise StartError(f"start values are given for {sorted(given)}", f"give {sorted(families)}")
    return {
        name: shaped(name, given[name], family.uniform().shape) for name, family in families.items()
    }


def generator(random_state: Any) -> np.random.Generator:
    """Random numbers, from a seed or as they are given."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise LearnerError(f"random_state={shown(random_state)}", "a whole number from 0") from None


def demand_prior(learner: Any, smoothing: float) -> bool:
    """Whether the learner looks for a mode; others need a prior."""
    maximises = learner is None or learner.m == "maximise"
    if not maximises and smoothing == 0.0:
        raise LearnerError(f"{learner} needs a prior above 0", "give smoothing, for example 0.1")
    return maximises


def mixture_priors(
    smoothing: float, prior: float | Mapping[str, float] | None, maximises: bool, table: str
) -> dict[str, float]:
    """Dirichlet concentrations of a mixture's class weights and of what its classes say."""
    check_number("smoothing", smoothing, "0.1 is usual; 0 does not smooth")
    # adding a to every count gives the mode under 1 + a, and the mean under a
    usual = {"weights": 1.0, table: smoothing + (1.0 if maximises else 0.0)}
    if prior is None:
        return usual
    if not isinstance(prior, Mapping):
        check_prior("prior", prior)
        return {**usual, table: prior}
    strange = set(prior) - {"weights", table}
    if strange:
        raise LearnerError(
            f"prior names {', '.join(sorted(strange))}", f"name weights, {table} or both"
        )
    for name, number in prior.items():
        check_prior(f"prior[{name!r}]", number)
    return {**usual, **prior}


def no_prior(smoothing: Any, prior: Any, table: str) -> str:
    """The setting by which what a mixture's classes say has no prior; nothing, if it has one."""
    given = prior is not None and (not isinstance(prior, Mapping) or table in prior)
    return "" if given or smoothing != 0 else "smoothing=0"


def no_mode(prior: Any) -> str:
    """The setting by which a mixture has no mode; nothing, if it has one."""
    values = prior.items() if isinstance(prior, Mapping) else [("", prior)]
    for table, value in values:
        number: Any = value  # whole numbers may be too large for a float
        if isinstance(value, Real) and 0 < number < 1:
            return f"prior={value}" + (f" of {table!r}" if table else "")
    return ""


def not_smoothed(given: float | Mapping[str, float], *names: str) -> str:
    """The setting by which one of these tables has no smoothing; nothing, if all have."""
    if not isinstance(given, Mapping):
        return "smoothing=0" if given == 0 else ""
    zeros = [name for name in names if given.get(name, 0.0) == 0]
    return f"smoothing[{zeros[0]!r}]=0" if zeros else ""


def smoothings(given: float | Mapping[str, float], *names: str) -> tuple[float, ...]:
    """What is added to the counts of each of these tables: one number for all, or a mapping."""
    if not isinstance(given, Mapping):
        check_number("smoothing", given, "0: none; 0.1 is a little")
        return (float(given),) * len(names)
    strange = set(given) - set(names)
    if strange:
        raise LearnerError(
            f"smoothing speaks of {shown(sorted(strange)[0])}", f"give {' and '.join(names)}"
        )
    for name, number in given.items():
        check_number(f"smoothing[{name!r}]", number)
    return tuple(float(given.get(name, 0.0)) for name in names)
