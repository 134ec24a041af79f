"""Methods of adaptation by the names that the command line has for them, and what they need."""

from __future__ import annotations

from enum import StrEnum

from softcount.cli.adapt_domains import Domains
from softcount.errors import DataError, shown


class Method(StrEnum):
    """How a classifier comes to the target; simple ones first."""

    SOURCE_ONLY = "source-only"
    TARGET_ONLY = "target-only"
    MERGE = "merge"
    WEIGHTED = "weighted"
    INTERPOLATION = "interpolation"
    PREDICTION = "prediction"
    PRIOR = "prior"
    EASYADAPT = "easyadapt"
    PIVOTS = "pivots"
    DENOISING = "denoising"
    ADVERSARIAL = "adversarial"
    ALL = "all"


USUAL_WITH_LABELS = Method.EASYADAPT
USUAL_WITHOUT_LABELS = Method.DENOISING
"""What labels the lines if nobody says what should, with labels in the target and without."""

CLASSES = {
    Method.SOURCE_ONLY: "SourceOnly",
    Method.TARGET_ONLY: "TargetOnly",
    Method.MERGE: "Merge",
    Method.WEIGHTED: "Weighted",
    Method.INTERPOLATION: "Interpolation",
    Method.PREDICTION: "PredictionFeature",
    Method.PRIOR: "SourcePrior",
    Method.EASYADAPT: "EasyAdapt",
    Method.PIVOTS: "PivotProjection",
    Method.DENOISING: "DenoisingProjection",
    Method.ADVERSARIAL: "AdversarialNetwork",
}
NEEDS = {
    Method.TARGET_ONLY: 2,
    Method.INTERPOLATION: 2,
    Method.PREDICTION: 2,
    Method.MERGE: 1,
    Method.WEIGHTED: 1,
    Method.PRIOR: 1,
    Method.EASYADAPT: 1,
}
"""So many different labels in the target a method is of use with; others do without."""


def usual_method(domains: Domains) -> Method:
    """What labels the lines if nobody says what should: labels of one class only say little, and
    would speak for that class everywhere."""
    enough = len(domains.labels_in("target")) > 1
    return USUAL_WITH_LABELS if enough else USUAL_WITHOUT_LABELS


def possible_methods(domains: Domains) -> list[Method]:
    """Those that can do with the labels there are."""
    return [one for one in CLASSES if NEEDS.get(one, 0) <= len(domains.labels_in("target"))]


def demand_possible(method: Method, domains: Domains) -> None:
    """Complain of a method that cannot do with the labels there are, or not learn some of them."""
    labels = sorted(domains.labels_in("target"))
    if len(labels) < NEEDS.get(method, 0):
        said = f"all labels are {shown(labels[0])}" if labels else "no line has a label"
        others = ", ".join(m for m in possible_methods(domains) if m is not Method.SOURCE_ONLY)
        raise DataError(
            f"--method {method} learns from labels of the target, where {said}",
            f"label some lines of it, or give --target-labelled; {others} do without",
        )
    strange = domains.newcomers()
    if method is Method.SOURCE_ONLY and strange:
        label, where = next(iter(strange.items()))
        raise DataError(
            f"{where}: no source has the label {shown(label)}, and {method} learns no other",
            "correct it, or take a method that learns labels of the target, such as easyadapt",
        )
