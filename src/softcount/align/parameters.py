"""Declarations of the aligners' parameters: see `softcount.core.parameters`.

Nothing here imports numpy, so that ``softcount align``, whose options are built from these
declarations, starts quickly.
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
"""The names of the directional models, as given to `Aligner`."""

MEANS = ("product", "soft-union")
"""Ways to combine the posteriors p and q of both directions: links with √(p q) or (p + q) / 2 above
the threshold (after Liang, Taskar & Klein 2006; DeNero & Klein 2007)."""

WIDEST_JUMP = 10_000
"""Upper limit of ``max_jump``: wider than any jump in a real sentence."""

TableSmoothing = Annotated[
    float,
    Smoothing(hint="0: no smoothing; 0.01 is a small amount"),
    Doc("Added to the count of every pair of words that co-occur."),
]
Stem = Annotated[
    int | None,
    Integer(hint="None: no stems; 4 letters is usual"),
    Doc("Length of the prefix that counts as a word's stem; words with one stem share counts."),
]
WarmUp = Annotated[
    int,
    Integer(0, MAX_RUNS, "0: no warm-up; 5 steps of Model 1 is usual"),
    Doc("The number of IBM Model 1 steps used for initialisation."),
]
Null = Annotated[
    float, Probability(), Doc("The probability that a target word is aligned to the empty word.")
]
Threshold = Annotated[
    float,
    Probability(hint="give a probability below 1"),
    Doc("Links with a posterior above this are predicted."),
]


@dataclass(kw_only=True, eq=False, repr=False)
class DictionaryParameters:
    """Parameters of all aligners: prior knowledge and preprocessing."""

    dictionary: Annotated[
        Any,
        Doc("Known translations: {'house': 'maison', 'of': ['de', 'du']}."),
    ] = None
    dictionary_strength: Annotated[
        float | None,
        Number(above=True),
        Doc("Pseudo-count of each dictionary entry; by default no other translation is possible."),
    ] = None
    lowercase: Annotated[bool, Boolean(), Doc("Lower-case all words.")] = False


@dataclass(kw_only=True, eq=False, repr=False)
class TableParameters(LearningParameters, DictionaryParameters):
    """Parameters of all aligners but the sampler: how the translation table is learned."""

    smoothing: TableSmoothing = 0.0
    stem: Stem = None
    stem_strength: Annotated[
        float, Number(), Doc("The number of pseudo-counts each source word gets from its stem.")
    ] = 5.0
    dtype: Annotated[
        str,
        OneOf("float64", "float32", hint="float64 or float32"),
        Doc("Precision: float32 takes half the memory."),
    ] = "float64"


@dataclass(kw_only=True, eq=False, repr=False)
class DirectionParameters(TableParameters):
    """Parameters of the directional aligners."""

    null: Annotated[
        bool, Boolean(), Doc("Whether target words can be aligned to the empty word (NULL).")
    ] = True


@dataclass(kw_only=True, eq=False, repr=False)
class IBM2Parameters(DirectionParameters):
    """Parameters of `softcount.align.IBM2`."""

    warm_up: WarmUp = 5


@dataclass(kw_only=True, eq=False, repr=False)
class DiagonalParameters(DirectionParameters):
    """Parameters of `softcount.align.Diagonal`."""

    p_null: Null = 0.08
    tension: Annotated[
        float,
        Number(hint="0: all positions are equally likely; 4 is usual"),
        Doc("The initial tension λ: how strongly links favour the diagonal."),
    ] = 4.0
    warm_up: WarmUp = 0


@dataclass(kw_only=True, eq=False, repr=False)
class HMMAlignerParameters(DirectionParameters):
    """Parameters of `softcount.align.HMMAligner`."""

    p_null: Null = 0.1
    max_jump: Annotated[
        int,
        Integer(1, WIDEST_JUMP),
        Doc("All wider jumps are as likely as one of this width."),
    ] = 20
    warm_up: WarmUp = 5


@dataclass(eq=False, repr=False)
class BidirectionalParameters(TableParameters):
    """Parameters of `softcount.align.Aligner`."""

    model: Annotated[
        str, OneOf(*MODELS), Doc("ibm1, ibm2, diagonal or hmm, for both directions.")
    ] = "hmm"
    _: KW_ONLY
    agree: Annotated[bool, Boolean(), Doc("Train the two directions to agree.")] = True
    warm_up: WarmUp = 5
    threshold: Threshold = 0.5
    smoothing: TableSmoothing = 0.0003
    stem: Stem = 4
    settings: Annotated[
        Any, Doc("Further parameters of the directional models, such as {'p_null': 0.1}.")
    ] = None


@dataclass(kw_only=True, eq=False, repr=False)
class GibbsAlignerParameters(DictionaryParameters):
    """Parameters of `softcount.align.GibbsAligner`."""

    prior: Annotated[
        float,
        Number(above=True, hint="0.001 is usual"),
        Doc("Dirichlet prior of translations: the smaller, the fewer translations per word."),
    ] = 0.001
    p_null: Null = 0.2
    n_init: Annotated[int, Integer(1, MAX_RUNS), Doc("The number of chains in each direction.")] = 4
    max_iter: Annotated[int, Integer(1, MAX_RUNS), Doc("The number of sweeps of each chain.")] = 8
    kept: Annotated[
        int, Integer(1, MAX_RUNS), Doc("The number of final sweeps of each chain to average.")
    ] = 2
    threshold: Threshold = 0.5
    warm_up: WarmUp = 4
    engine: Annotated[
        Engine | None,
        Instance("open", "an engine", "give one, such as Local()"),
        Doc("Where to compute; by default in threads on this machine."),
    ] = None
    random_state: Annotated[Any, Doc("The seed; equal seeds give bit-identical results.")] = 0
    verbose: Annotated[int, Doc("1: show phases and steps of a fit on stderr.")] = 0
