from softcount.adapt.adversarial import AdversarialNetwork as AdversarialNetwork
from softcount.adapt.comparison import compare as compare
from softcount.adapt.data import domain_folds as domain_folds
from softcount.adapt.denoising import DenoisingProjection as DenoisingProjection
from softcount.adapt.pivots import PivotProjection as PivotProjection
from softcount.adapt.report import adaptation_report as adaptation_report
from softcount.adapt.supervised import (
    EasyAdapt as EasyAdapt,
)
from softcount.adapt.supervised import (
    FeatureCopies as FeatureCopies,
)
from softcount.adapt.supervised import (
    Interpolation as Interpolation,
)
from softcount.adapt.supervised import (
    Merge as Merge,
)
from softcount.adapt.supervised import (
    PredictionFeature as PredictionFeature,
)
from softcount.adapt.supervised import (
    SourceOnly as SourceOnly,
)
from softcount.adapt.supervised import (
    SourcePrior as SourcePrior,
)
from softcount.adapt.supervised import (
    TargetOnly as TargetOnly,
)
from softcount.adapt.supervised import (
    Weighted as Weighted,
)
