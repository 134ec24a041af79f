"""Declared parameters of `MultipleInstance`; checks and options of its command follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from softcount.core.parameters import (
    Boolean,
    Doc,
    LearningParameters,
    Number,
    Prior,
    dataclass,
)


@dataclass(kw_only=True, eq=False, repr=False)
class MultipleInstanceParameters(LearningParameters):
    """How labels of bags come about, how words are smoothed, and initial parameters."""

    positive: Annotated[
        Any, Doc("The label of bags with a positive instance; by default the last in order.")
    ] = None
    noisy: Annotated[
        bool,
        Boolean(),
        Doc("A bag may be negative though an instance is positive, and vice versa (noisy or)."),
    ] = False
    length: Annotated[
        float | None,
        Number(above=True, hint="10 is usual"),
        Doc("Rescale every instance to this many words; by default it is as long as it is."),
    ] = None
    smoothing: Annotated[
        float,
        Number(hint="0.1 is usual; 0 does not smooth"),
        Doc("Pseudocount added to every count of a word in a class."),
    ] = 0.1
    prior: Annotated[
        float | Mapping[str, float] | None,
        Prior(("weights", "words", "triggers", "leak")),
        Doc("Dirichlet concentration of the words, instead of smoothing; or by table."),
    ] = None
    init: Annotated[
        Any, Doc("Initial parameters: labelled, random, or tables, such as weights and words.")
    ] = "labelled"
    vectorizer: Annotated[
        Any, Doc("Turns texts into counts, with the interface of scikit-learn's vectorizers.")
    ] = None
