"""Declared parameters of `Annotators`; checks and command-line options are derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from softcount.core.parameters import Doc, LearningParameters, Number, Prior, dataclass


@dataclass(kw_only=True, eq=False, repr=False)
class AnnotatorsParameters(LearningParameters):
    """Smoothing of the confusion matrices, and initial parameters."""

    smoothing: Annotated[
        float,
        Number(hint="0.1 is usual; 0 does not smooth"),
        Doc("Pseudocount added to every cell of each annotator's confusion matrix."),
    ] = 0.1
    prior: Annotated[
        float | Mapping[str, float] | None,
        Prior(("weights", "confusion")),
        Doc("Dirichlet concentration, instead of smoothing; or by table (weights, confusion)."),
    ] = None
    init: Annotated[
        Any,
        Doc(
            "Initial parameters: majority, known, random, uniform, or tables of weights and "
            "confusion."
        ),
    ] = "majority"
