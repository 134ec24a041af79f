"""All methods by their names."""

from __future__ import annotations

from softcount.adapt.adversarial import AdversarialNetwork
from softcount.adapt.base import Adapter
from softcount.adapt.baselines import Merge, SourceOnly, TargetOnly, Weighted
from softcount.adapt.denoising import DenoisingProjection
from softcount.adapt.easyadapt import EasyAdapt
from softcount.adapt.interpolation import Interpolation
from softcount.adapt.pivots import PivotProjection
from softcount.adapt.prediction import PredictionFeature
from softcount.adapt.prior import SourcePrior

WITHOUT_TARGET_LABELS: tuple[type[Adapter], ...] = (
    SourceOnly,
    PivotProjection,
    DenoisingProjection,
    AdversarialNetwork,
)
WITH_TARGET_LABELS: tuple[type[Adapter], ...] = (
    TargetOnly,
    Merge,
    Weighted,
    Interpolation,
    PredictionFeature,
    SourcePrior,
    EasyAdapt,
)


def usual_methods(target_labels: bool) -> dict[str, Adapter]:
    """Every method with its usual settings; without labels in the target, those that need none.

    >>> list(usual_methods(False))
    ['SourceOnly', 'PivotProjection', 'DenoisingProjection', 'AdversarialNetwork']
    """
    some = WITHOUT_TARGET_LABELS + (WITH_TARGET_LABELS if target_labels else ())
    return {one.__name__: one() for one in some}
