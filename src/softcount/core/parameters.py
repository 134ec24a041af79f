"""Parameters of estimators, declared once: name, type, default, bounds and a line of help.

A model's ``parameters.py`` has them as fields of a dataclass, from which its estimator inherits:

>>> @dataclass(eq=False, repr=False)
... class TaggerParameters:
...     n_components: Annotated[
...         int | None,
...         Integer(least=1, most=10**6),
...         Doc("How many states; by default as many as there are tags."),
...     ] = None
...     _: KW_ONLY
...     dtype: Annotated[str, OneOf("float64", "float32"), Doc("How exact.")] = "float64"

From that, and nothing else, follow the check of what a user gives,

>>> check_parameters(TaggerParameters(0))
Traceback (most recent call last):
    ...
softcount.core.errors.LearnerError: n_components=0: must be a whole number, at least 1

and the options of commands and the tables of the documentation:

>>> [(each.name, each.type, each.default) for each in describe(TaggerParameters)]
[('n_components', <class 'int'>, None), ('dtype', <class 'str'>, 'float64')]

``eq=False, repr=False``: estimators are compared by identity and shown as scikit-learn shows its
own. What depends on several parameters at once stays a check of the estimator. This module imports
neither numpy nor scikit-learn, so that ``softcount tag --help`` costs no more than Python itself.
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
    """A number as 64 bits; whole numbers of hundreds of digits are infinite.

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

    ``above``  0 itself is not allowed
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
    """Whether it is True or False, Python's own or numpy's."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


@dataclass(frozen=True)
class Doc:
    """What a parameter is, in a sentence that also serves as the help of an option."""

    text: str


class Constraint(Protocol):
    """What values a parameter may have."""

    def check(self, name: str, value: Any) -> None:
        """Raise a `LearnerError` that says what is wrong with a value, and what would do."""


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
    """A finite number from 0 to ``most``; ``above``: not 0 itself."""

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
    """One of a few values, mostly words.

    ``hint``  what to choose, if that is more than a list of them
    """

    def __init__(self, *choices: Any, hint: str = "") -> None:
        self.choices, self.hint = choices, hint

    def check(self, name: str, value: Any) -> None:
        try:
            known = value in self.choices
        except (TypeError, ValueError):  # an array is compared entry by entry
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
            raise LearnerError(f"{name}={brief(value)}", self.hint)


class Smoothing:
    """What is added to every count: a number for all tables, or a mapping from tables to numbers.

    ``tables``  the names that a mapping may have
    """

    def __init__(self, *tables: str, hint: str = "0: none; 0.1 is a little") -> None:
        self.tables, self.hint = tables, hint

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            check_number(name, value, self.hint)
            return
        unknown = sorted(map(str, set(value) - set(self.tables)))
        if unknown:
            raise LearnerError(
                f"{name} speaks of {brief(unknown[0])}", f"give {' and '.join(self.tables)}"
            )
        for table, number in value.items():
            check_number(f"{name}[{table!r}]", number)


@dataclass(frozen=True)
class Prior:
    """Dirichlet concentrations: a number above 0, or an array of such; of one table or several.

    ``tables``  names that a mapping may have, if one may be given
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
            raise LearnerError(f"{name} names {', '.join(unknown)}", f"name {known}")
        for table, number in value.items():
            check_prior(f"{name}[{table!r}]", number)


@dataclass(frozen=True)
class Instance:
    """Something that can do what is asked of it: it has the attribute ``having``.

    ``what``  what it is, for messages: "a learner"
    """

    having: str
    what: str
    hint: str = ""

    def check(self, name: str, value: Any) -> None:
        if not hasattr(value, self.having):
            article, _, noun = self.what.partition(" ")
            raise LearnerError(f"{name}={value!r} is no {noun or article}", self.hint)


@dataclass(frozen=True)
class _Called:
    """A constraint that is a function of a name and a value."""

    function: Callable[[str, Any], None]

    def check(self, name: str, value: Any) -> None:
        self.function(name, value)


class Parameter(NamedTuple):
    """One parameter, as it is declared.

    ``type``        what it is, None left aside: int, float, bool, str, or object for anything else
    ``default``     its value if it is not given; ``dataclasses.MISSING`` if it must be
    ``optional``    whether it may be None
    ``doc``         its help
    ``constraint``  what it may be; None: anything
    ``kw_only``     whether it must be given by its name
    """

    name: str
    type: type
    default: Any
    optional: bool
    doc: str
    constraint: Constraint | None
    kw_only: bool


def describe(cls: type, only: Collection[str] | None = None) -> list[Parameter]:
    """The declared parameters of an estimator, or of the dataclass that it inherits from.

    ``only``  the names of those that are wanted, in this order
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
    """Raise a `LearnerError` for the first declared parameter whose value will not do."""
    for parameter in describe(type(estimator)):
        value = getattr(estimator, parameter.name)
        if parameter.constraint is not None and not (value is None and parameter.optional):
            parameter.constraint.check(parameter.name, value)


class _Unknown:
    """A type that is there for the type checker alone."""

    def __class_getitem__(cls, _: Any) -> type:
        return cls


class _Names(dict[str, Any]):
    """The names of a module; those that it lacks are of unknown types."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, _Unknown)


# How estimators learn: the parameters that all of them have.


@dataclass(kw_only=True, eq=False, repr=False)
class LearningParameters:
    """How an estimator learns, from which start, where, and from which seed.

    What learners may be, and how many steps and runs there may be, they say themselves.
    """

    init: Annotated[Any, Doc("Where learning begins.")] = None
    learner: Annotated[
        Learner | str | None,
        Doc("How to learn: a learner or its name; by default what suits the model."),
    ] = None
    max_iter: Annotated[int | None, Doc("At most so many steps, instead of the learner's.")] = None
    tol: Annotated[
        float | None, Doc("Stop when a step changes the objective by less than this part of it.")
    ] = None
    n_init: Annotated[int | None, Doc("How many runs, or chains; the best is kept.")] = None
    engine: Annotated[
        Engine | None,
        Instance("open", "an engine", "give one, such as Local()"),
        Doc("Where the work is done; by default in threads on this machine."),
    ] = None
    random_state: Annotated[Any, Doc("A seed: the same one gives the same bits.")] = 0


@dataclass(kw_only=True, eq=False, repr=False)
class ShortRunParameters(LearningParameters):
    """The same for models whose start may be chosen by short runs."""

    short_runs: Annotated[
        int,
        Integer(0, MAX_RUNS, "0: no short runs, every start is run to the end"),
        Doc("Try so many starts by a few quick passes, and go on from the best."),
    ] = 0


# Settings that depend on each other, or hold arrays: numpy is imported when they are looked at.


def check_prior(name: str, value: Any) -> None:
    """Raise a `LearnerError` if Dirichlet concentrations, one or an array, are out of bounds."""
    import numpy as np

    if np.ndim(value) == 0:
        check_number(name, value, "1 is flat; 1.1 adds 0.1 to every count", above=True)
        return
    with within_range(name):
        array = np.asarray(value, dtype=np.float64)
    if not ((array >= MIN_NUMBER) & (array <= MAX_NUMBER)).all():
        raise LearnerError(
            f"{name}={brief(value)}", f"give numbers above 0, none beyond {MAX_NUMBER:g}"
        )


def check_niw(prior: Any) -> None:
    """Raise a `LearnerError` if a normal–inverse-Wishart prior (or None) is out of bounds.

    Whether they go with a form of covariance is for the family to say.
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
                f"the {what} of the prior is {brief(values)}",
                f"give finite numbers, none beyond {most:g}",
            )


def generator(random_state: Any) -> np.random.Generator:
    """Random numbers, from a seed or as they are given."""
    import numpy as np

    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise LearnerError(f"random_state={brief(random_state)}", "a whole number from 0") from None


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
    if prior is not None:
        Prior(("weights", table)).check("prior", prior)
    # adding a to every count gives the mode under 1 + a, and the mean under a
    usual = {"weights": 1.0, table: smoothing + (1.0 if maximises else 0.0)}
    if prior is None:
        return usual
    return {**usual, **(prior if isinstance(prior, Mapping) else {table: prior})}


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
    Smoothing(*names).check("smoothing", given)
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    return tuple(float(by_name.get(name, 0.0)) for name in names)


def shaped(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Start values of a table as an array of its shape; rows may be grouped in another way."""
    import numpy as np

    with within_range(f"the start of {name!r}"):
        values = np.asarray(given, dtype=float)
    if values.size != np.prod(shape) or values.shape[-1:] != shape[-1:]:
        raise StartError(
            f"the start of {name!r} has the shape {values.shape}, not {shape}",
            "give one row a class, in the order of the columns of the data",
        )
    return values.reshape(shape)
