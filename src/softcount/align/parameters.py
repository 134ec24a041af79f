"""The parameters of aligners, declared once: see `softcount.core.parameters`.

Nothing here imports numpy: the options of ``softcount align`` are made of these declarations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcount.core.bounds import MAX_RUNS
from softcount.core.parameters import (
    KW_ONLY,
    Annotated,
    Boolean,
    Doc,
    Instance,
    Integer,
    LearningParameters,
    Number,
    OneOf,
    Probability,
    Smoothing,
    dataclass,
)

if TYPE_CHECKING:
    from softcount.engines.base import Engine

MODELS = ("ibm1", "ibm2", "diagonal", "hmm")
"""Models of one direction, as `Aligner` calls them."""

MEANS = ("product", "soft-union")
"""Ways to join posteriors p and q of both directions: √(p q) or (p + q) / 2 above the threshold
(after Liang, Taskar & Klein 2006; DeNero & Klein 2007)."""

WIDEST_JUMP = 10_000
"""No sentence has jumps as wide as this."""

TableSmoothing = Annotated[
    float,
    Smoothing(hint="0: none; 0.01 is a little"),
    Doc("Added to the count of every pair of words that occur together."),
]
Stem = Annotated[
    int | None,
    Integer(hint="None: no stems; 4 letters are usual"),
    Doc("Words with the same first letters, this many, lend each other counts."),
]
WarmUp = Annotated[
    int,
    Integer(0, MAX_RUNS, "0: none; 5 steps of Model 1 are usual"),
    Doc("The number of steps of IBM Model 1 to begin with."),
]
Null = Annotated[
    float, Probability(), Doc("The probability that a target word comes from the empty word.")
]
Threshold = Annotated[
    float,
    Probability(hint="give a probability below 1"),
    Doc("Links that are more probable than this are chosen."),
]


@dataclass(kw_only=True, eq=False, repr=False)
class DictionaryParameters:
    """What all aligners have: what is known before learning."""

    dictionary: Annotated[
        Any,
        Doc("Translations that are known: {'house': 'maison', 'of': ['de', 'du']}."),
    ] = None
    dictionary_strength: Annotated[
        float | None,
        Number(above=True),
        Doc("Pseudo-counts for each entry; by default nothing else is possible."),
    ] = None
    lowercase: Annotated[bool, Boolean(), Doc("Put all words in lower case.")] = False


@dataclass(kw_only=True, eq=False, repr=False)
class TableParameters(LearningParameters, DictionaryParameters):
    """What all aligners but the sampler have: how the table of translations is learned."""

    smoothing: TableSmoothing = 0.0
    stem: Stem = None
    stem_strength: Annotated[float, Number(), Doc("How many counts each source word is lent.")] = (
        5.0
    )
    dtype: Annotated[
        str,
        OneOf("float64", "float32", hint="float64 or float32"),
        Doc("Numbers of 64 bits, or of 32: half the memory."),
    ] = "float64"


@dataclass(kw_only=True, eq=False, repr=False)
class DirectionParameters(TableParameters):
    """What aligners of one direction have."""

    null: Annotated[bool, Boolean(), Doc("Target words may also come from the empty word.")] = True


@dataclass(kw_only=True, eq=False, repr=False)
class IBM2Parameters(DirectionParameters):
    """Those of `softcount.align.IBM2`."""

    warm_up: WarmUp = 5


@dataclass(kw_only=True, eq=False, repr=False)
class DiagonalParameters(DirectionParameters):
    """Those of `softcount.align.Diagonal`."""

    p_null: Null = 0.08
    tension: Annotated[
        float,
        Number(hint="0: all places are as likely; 4 is usual"),
        Doc("How near to the diagonal links are at the beginning."),
    ] = 4.0
    warm_up: WarmUp = 0


@dataclass(kw_only=True, eq=False, repr=False)
class HMMAlignerParameters(DirectionParameters):
    """Those of `softcount.align.HMMAligner`."""

    p_null: Null = 0.1
    max_jump: Annotated[
        int,
        Integer(1, WIDEST_JUMP),
        Doc("Wider jumps are all as likely as one of this width."),
    ] = 20
    warm_up: WarmUp = 5


@dataclass(eq=False, repr=False)
class BidirectionalParameters(TableParameters):
    """Those of `softcount.align.Aligner`."""

    model: Annotated[
        str, OneOf(*MODELS), Doc("ibm1, ibm2, diagonal or hmm, for both directions.")
    ] = "hmm"
    _: KW_ONLY
    agree: Annotated[bool, Boolean(), Doc("Let the directions learn from each other.")] = True
    warm_up: WarmUp = 5
    threshold: Threshold = 0.5
    smoothing: TableSmoothing = 0.0003
    stem: Stem = 4
    settings: Annotated[
        Any, Doc("More settings of the directions' models, such as {'p_null': 0.1}.")
    ] = None


@dataclass(kw_only=True, eq=False, repr=False)
class GibbsAlignerParameters(DictionaryParameters):
    """Those of `softcount.align.GibbsAligner`."""

    prior: Annotated[
        float,
        Number(above=True, hint="0.001 is usual"),
        Doc("Dirichlet prior of translations: with a small one words have few translations."),
    ] = 0.001
    p_null: Null = 0.2
    n_init: Annotated[int, Integer(1, MAX_RUNS), Doc("The number of chains in each direction.")] = 4
    max_iter: Annotated[int, Integer(1, MAX_RUNS), Doc("The number of sweeps of each chain.")] = 8
    kept: Annotated[
        int, Integer(1, MAX_RUNS), Doc("The number of last sweeps of each chain that count.")
    ] = 2
    threshold: Threshold = 0.5
    warm_up: WarmUp = 4
    engine: Annotated[
        Engine | None,
        Instance("open", "an engine", "give one, such as Local()"),
        Doc("Where the work is done; by default in threads on this machine."),
    ] = None
    random_state: Annotated[Any, Doc("A seed: the same one gives the same bits.")] = 0
