"""The parameters of `Annotators`, declared: checks and options of the command follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from softcount.core.parameters import Doc, LearningParameters, Number, Prior, dataclass


@dataclass(kw_only=True, eq=False, repr=False)
class AnnotatorsParameters(LearningParameters):
    """How annotators' votes are smoothed, and where learning begins."""

    smoothing: Annotated[
        float,
        Number(hint="0.1 is usual; 0 does not smooth"),
        Doc("Add so much to every count of what an annotator says of a true label."),
    ] = 0.1
    prior: Annotated[
        float | Mapping[str, float] | None,
        Prior(("weights", "confusion")),
        Doc("Instead: its Dirichlet concentration, or by table (weights, confusion)."),
    ] = None
    init: Annotated[
        Any, Doc("majority, known, random, uniform, or tables of weights and confusion.")
    ] = "majority"
