"""Parameters that are declared: what is checked, what is said, and what commands read of them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import KW_ONLY, MISSING, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pytest

from softcount.core.errors import LearnerError
from softcount.core.parameters import (
    Boolean,
    Doc,
    Instance,
    Integer,
    Number,
    OneOf,
    Prior,
    Probability,
    Smoothing,
    check_parameters,
    describe,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softcount.learners import Learner


def _even(name: str, value: Any) -> None:
    if value % 2:
        raise LearnerError(f"{name}={value}: must be even")


@dataclass(eq=False, repr=False)
class Declared:
    n_components: Annotated[int | None, Integer(most=100), Doc("How many.")] = None
    _: KW_ONLY
    smoothing: Annotated[
        float | Mapping[str, float], Smoothing("emissions", "transitions"), Doc("Added.")
    ] = 0.1
    learner: Annotated[Learner | None, Instance("schedule", "a learner", "such as EM()")] = None
    pairs: Annotated[int, _even] = 2
    anything: Any = None


@dataclass(eq=False, repr=False)
class More(Declared):
    pairs: Annotated[int, Integer(least=0), Doc("Pairs, odd ones too.")] = 3
    needed: Annotated[str, OneOf("a", "b")] = "a"


class Estimator(More):
    """Its parameters are those of its base."""


def test_what_is_declared_can_be_read():
    count, smoothing, learner, pairs, anything = describe(Declared)
    assert (count.name, count.type, count.default, count.optional) == (
        "n_components",
        int,
        None,
        True,
    )
    assert count.doc == "How many."
    assert count.constraint == Integer(most=100)
    assert not count.kw_only
    assert smoothing.kw_only
    assert (smoothing.type, smoothing.optional, smoothing.default) == (float, False, 0.1)
    assert learner.optional
    assert learner.type is object
    assert anything.constraint is None
    assert pairs.constraint is not None


def test_subclasses_declare_more_or_otherwise():
    assert [each.name for each in describe(Estimator, ["needed", "pairs"])] == ["needed", "pairs"]
    assert describe(Estimator, ["pairs"])[0].doc == "Pairs, odd ones too."
    check_parameters(Estimator(pairs=3))
    with pytest.raises(LearnerError, match="pairs=3: must be even"):
        check_parameters(Declared(pairs=3))


def test_a_class_that_declares_nothing_has_nothing_to_check():
    assert describe(object) == []
    check_parameters(object())


def test_a_parameter_without_a_default_says_so():
    @dataclass
    class Must:
        x: Annotated[int, Integer()]

    assert describe(Must)[0].default is MISSING


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_components": 0}, "n_components=0: must be a whole number, at least 1"),
        ({"n_components": 101}, "n_components=101: must be a whole number, at most 100"),
        ({"n_components": 2.5}, "n_components=2.5: must be a whole number"),
        ({"n_components": True}, "n_components=True: must be a whole number"),
        ({"smoothing": -1}, "smoothing=-1: must be a number, finite and not negative"),
        ({"smoothing": None}, "smoothing=None: must be a number"),
        ({"smoothing": {"emission": 1}}, "smoothing names an unknown table, 'emission'"),
        ({"smoothing": {"emissions": "x"}}, r"smoothing\['emissions'\]='x': must be a number"),
        ({"learner": "em"}, "learner='em' is not a learner"),
    ],
)
def test_what_will_not_do_is_said(given, message):
    with pytest.raises(LearnerError, match=message):
        check_parameters(Declared(**given))


def test_what_will_do_is_not_complained_of():
    check_parameters(Declared(np.int64(7), smoothing={"emissions": 0.5}, anything=object()))


@pytest.mark.parametrize(
    ("constraint", "good", "bad", "message"),
    [
        (Number(above=True), 1e-9, 0, "x=0: must be a number, above 0 and finite"),
        (Number(most=2), 2, 3, "x=3: must be at most 2"),
        (Number(), np.float32(1), float("nan"), "x=nan: must be a number"),
        (Number(), 0, 1e-320, "is too small, must be at least 2.2e-308 or 0"),
        (Number(), 0, True, "x=True: must be a number"),
        (Probability(), 0.5, 1.0, "x=1.0: must be below 1"),
        (Probability(one=True), 1, 1.5, "x=1.5: must be at most 1"),
        (OneOf("a", "b"), "a", "c", "x='c' is unknown\n  hint: choose a, b"),
        (OneOf("a", "b"), "b", np.array(["a", "b"]), "is unknown"),
        (Boolean(), np.True_, 1, "x=1: must be True or False\n  hint: True or False"),
        (Prior(), [0.5, 2.0], [0.0, 1.0], "x=.*\n  hint: give numbers above 0"),
        (Prior(), 1, 0, "x=0: must be a number, above 0"),
        (Prior(("weights", "words")), {"words": 1}, {"word": 1}, "x names an unknown table, word"),
    ],
)
def test_constraints(constraint, good, bad, message):
    constraint.check("x", good)
    with pytest.raises(LearnerError, match=message):
        constraint.check("x", bad)


def test_declarations_cost_no_numpy():
    code = "import sys, softcount.core.parameters; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
