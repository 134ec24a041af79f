"""Declared parameters of `Annotators`; checks and command-line options are derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from softcount.core.errors import LearnerError, brief
from softcount.core.parameters import (
    Boolean,
    Doc,
    LearningParameters,
    Number,
    OneOf,
    Prior,
    dataclass,
)

Tying = Literal["none", "one-coin", "mace"]
TABLES = ("weights", "confusion", "right", "care", "guess", "silence", "copying", "words")
"""The tables that a prior may be given for; a model has only some of them."""


def check_groups(name: str, groups: Any) -> None:
    """Raise a `LearnerError` unless these are groups of at least two, and nobody is in two."""
    if groups is None:
        return
    listed = isinstance(groups, list | tuple) and all(isinstance(g, list | tuple) for g in groups)
    if not listed or any(len(group) < 2 for group in groups):
        raise LearnerError(
            f"{name}={brief(groups)} are no groups of annotators",
            "give lists of at least two names, such as [['ann', 'bob']]",
        )
    members = [member for group in groups for member in group]
    if len(set(members)) < len(members):
        raise LearnerError(
            f"{name}: an annotator is named twice", "put every annotator into at most one group"
        )


def check_balance(name: str, balance: Any) -> None:
    """Raise a `LearnerError` unless this is "uniform" or a mapping from labels to shares."""
    if balance is None or (isinstance(balance, str) and balance == "uniform"):
        return
    if not isinstance(balance, Mapping) or not balance:
        raise LearnerError(
            f"{name}={brief(balance)} is no class balance",
            "give 'uniform', or the share of each label, such as {'yes': 0.3, 'no': 0.7}",
        )
    shares = list(balance.values())
    if not all(isinstance(share, int | float) and share > 0 for share in shares):
        raise LearnerError(f"{name}: every share must be above 0", "leave no label out")
    if abs(sum(shares) - 1.0) > 1e-6:
        raise LearnerError(f"{name}: the shares sum to {sum(shares):g}", "make them sum to 1")


@dataclass(kw_only=True, eq=False, repr=False)
class AnnotatorsParameters(LearningParameters):
    """What annotators may do, smoothing of their tables, and initial parameters."""

    tying: Annotated[
        Tying,
        OneOf("none", "one-coin", "mace"),
        Doc(
            "none: a confusion matrix for each annotator. one-coin: one accuracy, the same for all "
            "labels. mace: one probability to care, and a distribution over labels if not."
        ),
    ] = "none"
    silence: Annotated[
        bool,
        Boolean(),
        Doc("Whether it is information that an annotator says nothing about an item."),
    ] = False
    trust: Annotated[
        float,
        Number(hint="0: nothing is believed of annotators beforehand; 1000 is a lot"),
        Doc(
            "Pseudo-votes of each annotator, four of five of them right: what is believed of "
            "annotators beforehand. Labelling rules need it."
        ),
    ] = 0.0
    class_balance: Annotated[
        Any,
        check_balance,
        Doc("Fixed probabilities of the labels: uniform, or the share of each label."),
    ] = None
    groups: Annotated[
        Sequence[Sequence[Any]] | None,
        check_groups,
        Doc("Groups of annotators of whom each may copy from the one before."),
    ] = None
    smoothing: Annotated[
        float,
        Number(hint="0.1 is usual; 0 does not smooth"),
        Doc("Pseudocount added to every cell of each annotator's confusion matrix."),
    ] = 0.1
    prior: Annotated[
        float | Mapping[str, float] | None,
        Prior(TABLES),
        Doc("Dirichlet concentration, instead of smoothing; or by table (weights, confusion)."),
    ] = None
    init: Annotated[
        Any,
        Doc(
            "Initial parameters: majority, known, random, uniform, or tables of weights and "
            "confusion."
        ),
    ] = "majority"
    length: Annotated[
        float | None,
        Number(above=True, hint="10 is usual"),
        Doc(
            "Rescale every text beside votes to this many words; by default texts are as long as "
            "they are."
        ),
    ] = None
    vectorizer: Annotated[
        Any, Doc("Turns texts into counts, with the interface of scikit-learn's vectorizers.")
    ] = None
