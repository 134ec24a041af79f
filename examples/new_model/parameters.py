"""The parameters of `PoissonMixture`, declared once: the estimator checks them by this."""

from __future__ import annotations

from softcount.core.parameters import (
    KW_ONLY,
    Annotated,
    Doc,
    Integer,
    LearningParameters,
    Number,
    dataclass,
)


@dataclass(eq=False, repr=False)
class PoissonMixtureParameters(LearningParameters):
    """What a mixture of Poissons has beside what every estimator has."""

    n_components: Annotated[int, Integer(least=1), Doc("How many classes.")] = 2
    _: KW_ONLY
    smoothing: Annotated[
        float, Number(), Doc("So many items of rate 1 are added to every class.")
    ] = 0.0
