"""Declared parameters of hidden Markov models, from which checks and command options derive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from softcount.core.bounds import MAX_CLASSES
from softcount.core.parameters import (
    KW_ONLY,
    Annotated,
    Boolean,
    Doc,
    Integer,
    LearningParameters,
    Number,
    OneOf,
    Smoothing,
    dataclass,
)

if TYPE_CHECKING:
    from softcount.families.gaussian import NIW


@dataclass(eq=False, repr=False)
class MarkovParameters(LearningParameters):
    """Parameters of the Markov chain, shared by `HMM` and `GaussianHMM`."""

    n_components: Annotated[
        int | None,
        Integer(most=MAX_CLASSES),
        Doc("Number of states; by default, the number of tags."),
    ] = None
    _: KW_ONLY
    order: Annotated[
        int,
        Integer(least=1, most=2, hint="1 or 2"),
        Doc("Order of the chain. 1: a state depends on the previous one; 2: on the previous two."),
    ] = 1
    stop: Annotated[
        bool, Boolean(), Doc("Whether the end of a sentence is modelled, with p(end | state).")
    ] = True
    smoothing: Annotated[
        float | Mapping[str, float],
        Smoothing("transitions", "emissions"),
        Doc(
            "Pseudo-count added to all counts; for learners with a prior, the Dirichlet parameter. "
            "A mapping gives transitions (and starts) and emissions separate values."
        ),
    ] = 0.0
    zero: Annotated[Mapping[str, Any] | None, Doc("Table → mask of the entries fixed at zero.")] = (
        None
    )
    frozen: Annotated[
        Any, Doc("Tables kept at their initial values; or table → the rows to keep.")
    ] = None
    tied: Annotated[
        Mapping[str, Any] | None,
        Doc("Table → a group number for each row: rows of one group share their parameters."),
    ] = None
    dtype: Annotated[
        str,
        OneOf("float64", "float32"),
        Doc("Precision of E-steps: float64; or float32, less exact, in about half the time."),
    ] = "float64"


@dataclass(eq=False, repr=False)
class HMMParameters(MarkovParameters):
    """Further parameters of hidden Markov models of words."""

    _: KW_ONLY
    dictionary: Annotated[Any, Doc("The tags each word may have: word → tags.")] = None
    open_tags: Annotated[
        Any, Doc("The tags that words not in the dictionary may have; by default, any tag.")
    ] = None
    emissions: Annotated[
        str,
        OneOf("table", "features"),
        Doc(
            "table: one probability per word and state. features: log-linear in the form of the "
            "word (suffixes, case, digits), which covers unseen words too; slower."
        ),
    ] = "table"
    l2: Annotated[
        float,
        Number(hint="0.1 is usual"),
        Doc("L2 penalty on the feature weights."),
    ] = 0.1
    ascent: Annotated[
        str,
        OneOf("lbfgs", "gradient", "converged"),
        Doc(
            "How feature weights are fitted in each M-step: lbfgs, ten steps; gradient, a single "
            "step up the gradient; converged, L-BFGS to the top."
        ),
    ] = "lbfgs"
    lowercase: Annotated[bool, Doc("Whether to lower-case all words.")] = False


@dataclass(eq=False, repr=False)
class GaussianHMMParameters(MarkovParameters):
    """Further parameters of hidden Markov models of vectors."""

    _: KW_ONLY
    covariance: Annotated[
        str,
        OneOf("full", "tied", "diag", "spherical", hint="full, tied, diag or spherical"),
        Doc("Covariance type: full, tied, diag or spherical."),
    ] = "full"
    floor: Annotated[
        float,
        Number(hint="1e-6 is usual"),
        Doc("Minimum variance in any direction, as a fraction of that of the data."),
    ] = 1e-6
    prior: Annotated[
        NIW | None,
        Doc("Prior for Bayesian learners; by default, a weak one on the scale of the data."),
    ] = None
