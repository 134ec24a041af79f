"""Declarations of estimators' parameters: name, type, default, bounds and a line of help.

A model's ``parameters.py`` declares them as fields of a dataclass, from which its estimator
inherits:

>>> @dataclass(eq=False, repr=False)
... class TaggerParameters:
...     n_components: Annotated[
...         int | None,
...         Integer(least=1, most=10**6),
...         Doc("How many states; by default as many as there are tags."),
...     ] = None
...     _: KW_ONLY
...     dtype: Annotated[str, OneOf("float64", "float32"), Doc("How exact.")] = "float64"

Everything else is derived from the declarations: the check of the values that a user gives,

>>> check_parameters(TaggerParameters(0))
Traceback (most recent call last):
    ...
softcount.core.errors.LearnerError: n_components=0: must be a whole number, at least 1

and the options of commands and the tables of the documentation:

>>> [(each.name, each.type, each.default) for each in describe(TaggerParameters)]
[('n_components', <class 'int'>, None), ('dtype', <class 'str'>, 'float64')]

``eq=False, repr=False``: estimators are compared by identity and have a repr like scikit-learn's.
Checks that involve several parameters at once are left to the estimator. This module imports
neither numpy nor scikit-learn, so that ``softcount tag --help`` starts as fast as Python itself.
"""

from __future__ import annotations

import builtins
import math
import sys
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY as KW_ONLY
from dataclasses import MISSING, fields, is_dataclass
from dataclasses import dataclass as dataclass
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Union, get_args, get_origin
from typing import Annotated as Annotated

from softcount.core.bounds import (
    MAX_NUMBER,
    MAX_RUNS,
    MAX_SQUARE,
    MAX_VALUE,
    MAX_WHOLE,
    MIN_NUMBER,
    within_range,
)
from softcount.core.errors import LearnerError, StartError, brief

if TYPE_CHECKING:
    import numpy as np

    from softcount.core.types import Array
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


def as_float(value: Any) -> float:
    """Convert to a float; integers too large for 64 bits become infinite.

    >>> as_float(10**400)
    inf
    """
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def check_number(
    name: str, value: Any, hint: str = "", *, above: bool = False, most: float = MAX_NUMBER
) -> None:
    """Raise a `LearnerError` unless ``value`` is a finite number from 0 to ``most``.

    ``above``  if True, 0 itself is not allowed
    """
    number = as_float(value) if isinstance(value, Real) and not is_boolean(value) else math.nan
    if not 0.0 <= number < math.inf or (above and number == 0.0):
        wanted = "above 0 and finite" if above else "finite and not negative"
        raise LearnerError(f"{name}={brief(value)}: must be a number, {wanted}", hint)
    if number > most:
        raise LearnerError(f"{name}={brief(value)}: must be at most {most:g}", hint)
    if 0.0 < number < MIN_NUMBER:
        raise LearnerError(
            f"{name}={brief(value)}: is too small, must be at least {MIN_NUMBER:.2g}"
            + ("" if above else " or 0"),
            hint,
        )


def check_whole(
    name: str, value: Any, least: int = 1, hint: str = "", most: int = MAX_WHOLE
) -> None:
    """Raise a `LearnerError` unless ``value`` is a whole number from ``least`` to ``most``."""
    if not isinstance(value, Integral) or is_boolean(value) or int(value) < least:
        raise LearnerError(f"{name}={brief(value)}: must be a whole number, at least {least}", hint)
    if int(value) > most:
        raise LearnerError(f"{name}={brief(value)}: must be a whole number, at most {most}", hint)


def is_boolean(value: object) -> bool:
    """Return whether the value is a Boolean of Python or numpy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


@dataclass(frozen=True)
class Doc:
    """A one-sentence description of a parameter, also used as the help text of an option."""

    text: str


class ParameterConstraint(Protocol):
    """The values that a parameter may have."""

    def check(self, name: str, value: Any) -> None:
        """Raise a `LearnerError` if the value is invalid, saying why and what is allowed."""


@dataclass(frozen=True)
class Integer:
    """A whole number from ``least`` to ``most``."""

    least: int = 1
    most: int = MAX_WHOLE
    hint: str = ""

    def check(self, name: str, value: Any) -> None:
        check_whole(name, value, self.least, self.hint, self.most)


@dataclass(frozen=True)
class Number:
    """A finite number from 0 to ``most``; with ``above``, 0 itself is not allowed."""

    above: bool = False
    most: float = MAX_NUMBER
    hint: str = ""

    def check(self, name: str, value: Any) -> None:
        check_number(name, value, self.hint, above=self.above, most=self.most)


@dataclass(frozen=True)
class Probability:
    """A number from 0 to 1, or below 1 unless ``one`` is allowed."""

    one: bool = False
    hint: str = "0.1 is usual"

    def check(self, name: str, value: Any) -> None:
        check_number(name, value, self.hint)
        if value > 1.0 or (value == 1.0 and not self.one):
            wanted = "must be at most 1" if self.one else "must be below 1"
            raise LearnerError(f"{name}={brief(value)}: {wanted}", self.hint)


class OneOf:
    """One of a few values, mostly strings.

    ``hint``  which to choose; by default a list of the choices
    """

    def __init__(self, *choices: Any, hint: str = "") -> None:
        self.choices, self.hint = choices, hint

    def check(self, name: str, value: Any) -> None:
        try:
            known = value in self.choices
        except (TypeError, ValueError):  # arrays compare elementwise
            known = False
        if not known:
            hint = self.hint or f"choose {', '.join(map(str, self.choices))}"
            raise LearnerError(f"{name}={brief(value)} is unknown", hint)


@dataclass(frozen=True)
class Boolean:
    """True or False."""

    hint: str = "True or False"

    def check(self, name: str, value: Any) -> None:
        if not is_boolean(value):
            raise LearnerError(f"{name}={brief(value)}: must be True or False", self.hint)


class Smoothing:
    """A pseudo-count added to every count: one number, or a mapping from tables to numbers.

    ``tables``  the keys that a mapping may have
    """

    def __init__(self, *tables: str, hint: str = "0 means no smoothing; 0.1 is a little") -> None:
        self.tables, self.hint = tables, hint

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            check_number(name, value, self.hint)
            return
        unknown = sorted(map(str, set(value) - set(self.tables)))
        if unknown:
            raise LearnerError(
                f"{name} names an unknown table, {brief(unknown[0])}",
                f"the tables are {' and '.join(self.tables)}",
            )
        for table, number in value.items():
            check_number(f"{name}[{table!r}]", number)


@dataclass(frozen=True)
class Prior:
    """Dirichlet concentrations above 0: a number, an array, or a mapping from tables to these.

    ``tables``  the keys that a mapping may have; empty if a mapping is not allowed
    """

    tables: tuple[str, ...] = ()

    def check(self, name: str, value: Any) -> None:
        if not self.tables or not isinstance(value, Mapping):
            check_prior(name, value)
            return
        unknown = sorted(map(str, set(value) - set(self.tables)))
        if unknown:
            known = (
                f"{', '.join(self.tables)} or both" if len(self.tables) == 2 else str(self.tables)
            )
            raise LearnerError(
                f"{name} names an unknown table, {', '.join(unknown)}", f"name {known}"
            )
        for table, number in value.items():
            check_prior(f"{name}[{table!r}]", number)


@dataclass(frozen=True)
class Instance:
    """An object that has the attribute ``having``.

    ``what``  the kind of object, for messages: "a learner"
    """

    having: str
    what: str
    hint: str = ""

    def check(self, name: str, value: Any) -> None:
        if not hasattr(value, self.having):
            raise LearnerError(f"{name}={value!r} is not {self.what}", self.hint)


@dataclass(frozen=True)
class _Called:
    """A constraint given as a function of a name and a value."""

    function: Callable[[str, Any], None]

    def check(self, name: str, value: Any) -> None:
        self.function(name, value)


class Parameter(NamedTuple):
    """The declaration of one parameter.

    ``type``        its type apart from None: int, float, bool, str, or object for anything else
    ``default``     its default value; ``dataclasses.MISSING`` if it is required
    ``optional``    whether it may be None
    ``doc``         its help text
    ``constraint``  the values it may have; None: any
    ``kw_only``     whether it is keyword-only
    """

    name: str
    type: type
    default: Any
    optional: bool
    doc: str
    constraint: ParameterConstraint | None
    kw_only: bool


def describe(cls: type, only: Collection[str] | None = None) -> list[Parameter]:
    """List the declared parameters of an estimator, or of the dataclass that it inherits from.

    ``only``  names of the parameters to list, in this order; None: all
    """
    described = _describe(cls)
    return list(described.values()) if only is None else [described[name] for name in only]


@cache
def _describe(cls: type) -> dict[str, Parameter]:
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        module = sys.modules.get(base.__module__)
        names = _Names(vars(module) if module else {})
        for name, hint in vars(base).get("__annotations__", {}).items():
            hints[name] = eval(hint, {}, names) if isinstance(hint, str) else hint
    described = {}
    for declared in fields(cls) if is_dataclass(cls) else ():
        if not declared.init:
            continue
        hint = hints[declared.name]
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        doc = next((note.text for note in notes if isinstance(note, Doc)), "")
        constraint = next((note for note in notes if hasattr(note, "check")), None)
        if constraint is None:
            function = next((note for note in notes if callable(note)), None)
            constraint = None if function is None else _Called(function)
        parts = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
        plain = [part for part in parts if part is not types.NoneType]
        default = declared.default
        if default is MISSING and declared.default_factory is not MISSING:
            default = declared.default_factory()
        described[declared.name] = Parameter(
            declared.name,
            type=plain[0] if plain and plain[0] in (int, float, bool, str) else object,
            default=default,
            optional=len(plain) < len(parts),
            doc=doc,
            constraint=constraint,
            kw_only=bool(declared.kw_only),
        )
    return described


def check_parameters(estimator: Any) -> None:
    """Raise a `LearnerError` for the first declared parameter whose value is invalid."""
    for parameter in describe(type(estimator)):
        value = getattr(estimator, parameter.name)
        if parameter.constraint is not None and not (value is None and parameter.optional):
            parameter.constraint.check(parameter.name, value)


class _Unknown:
    """A placeholder for types that are imported for the type checker only."""

    def __class_getitem__(cls, _: Any) -> type:
        return cls


class _Names(dict[str, Any]):
    """The names of a module; missing names evaluate to `_Unknown`."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, _Unknown)


# The parameters that all estimators share.


@dataclass(kw_only=True, eq=False, repr=False)
class LearningParameters:
    """Learner, initial parameters, engine and seed of an estimator.

    Learners check their own hyperparameters, such as the numbers of steps and of runs.
    """

    init: Annotated[Any, Doc("Initial parameters.")] = None
    learner: Annotated[
        Learner | str | None,
        Doc("The learner or its name; by default one that suits the model."),
    ] = None
    max_iter: Annotated[
        int | None, Doc("Maximum number of steps; overrides that of the learner.")
    ] = None
    tol: Annotated[
        float | None, Doc("Stop when the relative change of the objective is below this.")
    ] = None
    n_init: Annotated[int | None, Doc("Number of runs, or chains; the best is kept.")] = None
    engine: Annotated[
        Engine | None,
        Instance("open", "an engine", "give one, such as Local()"),
        Doc("Where the work is done; by default in threads on this machine."),
    ] = None
    random_state: Annotated[Any, Doc("Seed; the same seed gives bit-identical results.")] = 0
    verbose: Annotated[int, Doc("1: show phases and steps of a fit on stderr.")] = 0


@dataclass(kw_only=True, eq=False, repr=False)
class ShortRunParameters(LearningParameters):
    """`LearningParameters` for models that can choose their initial parameters by short runs."""

    short_runs: Annotated[
        int,
        Integer(0, MAX_RUNS, "0: no short runs, every start is run to the end"),
        Doc("Try this many starts with a few quick passes each, and continue from the best."),
    ] = 0


# Settings that depend on each other, or hold arrays: numpy is imported only when one is checked.


def check_prior(name: str, value: Any) -> None:
    """Raise a `LearnerError` if Dirichlet concentrations (a number or an array) are invalid."""
    import numpy as np

    if np.ndim(value) == 0:
        check_number(name, value, "1 is flat; 1.1 adds 0.1 to every count", above=True)
        return
    with within_range(name):
        array = np.asarray(value, dtype=np.float64)
    if not ((array >= MIN_NUMBER) & (array <= MAX_NUMBER)).all():
        raise LearnerError(
            f"{name}={brief(value)}: concentrations must be above 0 and finite",
            f"give numbers above 0 and at most {MAX_NUMBER:g}",
        )


def check_niw(prior: Any) -> None:
    """Raise a `LearnerError` if a normal–inverse-Wishart prior (or None) is out of bounds.

    Whether it suits the form of covariance is checked by the family.
    """
    import numpy as np

    if prior is None:
        return
    check_number("kappa of the prior", prior.kappa, "0.01 is weak", above=True)
    if prior.dof is not None:
        check_number("dof of the prior", prior.dof, "the number of dimensions + 2 is weak")
    for what, values, most in (("mean", prior.mean, MAX_VALUE), ("scale", prior.scale, MAX_SQUARE)):
        with within_range(f"the {what} of the prior"):
            array = np.asarray(values, dtype=np.float64)
        if not (np.abs(array) <= most).all():
            raise LearnerError(
                f"the {what} of the prior is {brief(values)}: must be finite and not too large",
                f"give finite numbers of absolute value at most {most:g}",
            )


def generator(random_state: Any) -> np.random.Generator:
    """Make a random number generator from a seed, or return the one given."""
    import numpy as np

    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise LearnerError(
            f"random_state={brief(random_state)}: not a seed", "give a whole number, at least 0"
        ) from None


def require_prior(learner: Any, smoothing: float) -> bool:
    """Return whether the learner seeks a mode; raise if it needs a prior and there is none."""
    maximises = learner is None or learner.m == "maximise"
    if not maximises and smoothing == 0.0:
        raise LearnerError(f"{learner} needs a prior above 0", "give smoothing, for example 0.1")
    return maximises


def mixture_priors(
    smoothing: float, prior: float | Mapping[str, float] | None, maximises: bool, table: str
) -> dict[str, float]:
    """Return the Dirichlet concentrations of a mixture's class weights and of its emissions."""
    check_number("smoothing", smoothing, "0.1 is usual; 0 does not smooth")
    if prior is not None:
        Prior(("weights", table)).check("prior", prior)
    # adding a to every count gives the mode under 1 + a, and the mean under a
    usual = {"weights": 1.0, table: smoothing + (1.0 if maximises else 0.0)}
    if prior is None:
        return usual
    return {**usual, **(prior if isinstance(prior, Mapping) else {table: prior})}


def no_prior(smoothing: Any, prior: Any, table: str) -> str:
    """Return the setting that leaves a mixture's emissions without a prior; "" if they have one."""
    given = prior is not None and (not isinstance(prior, Mapping) or table in prior)
    return "" if given or smoothing != 0 else "smoothing=0"


def no_mode(prior: Any) -> str:
    """Return the setting that leaves a mixture without a posterior mode; "" if it has one."""
    values = prior.items() if isinstance(prior, Mapping) else [("", prior)]
    for table, value in values:
        number: Any = value  # integers may be too large for a float
        if isinstance(value, Real) and 0 < number < 1:
            return f"prior={value}" + (f" of {table!r}" if table else "")
    return ""


def not_smoothed(given: float | Mapping[str, float], *names: str) -> str:
    """Return the setting that leaves one of these tables unsmoothed; "" if all are smoothed."""
    if not isinstance(given, Mapping):
        return "smoothing=0" if given == 0 else ""
    zeros = [name for name in names if given.get(name, 0.0) == 0]
    return f"smoothing[{zeros[0]!r}]=0" if zeros else ""


def smoothings(given: float | Mapping[str, float], *names: str) -> tuple[float, ...]:
    """Return the smoothing of each of these tables, from one number for all or a mapping."""
    Smoothing(*names).check("smoothing", given)
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    return tuple(float(by_name.get(name, 0.0)) for name in names)


def reshape_start(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Convert a table's initial values to an array of its shape.

    Leading dimensions may differ from the table's as long as the number of rows is the same.
    """
    import numpy as np

    with within_range(f"the start of {name!r}"):
        values = np.asarray(given, dtype=float)
    if values.size != np.prod(shape) or values.shape[-1:] != shape[-1:]:
        raise StartError(
            f"the start of {name!r} has the shape {values.shape}, not {shape}",
            "give one row per class, with entries in the order of the columns of the data",
        )
    return values.reshape(shape)
