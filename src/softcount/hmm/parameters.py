"""The parameters of hidden Markov models, declared: checks and options follow from this."""

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
    """How states follow each other, and how they are learned."""

    n_components: Annotated[
        int | None,
        Integer(most=MAX_CLASSES),
        Doc("How many states; by default as many as there are tags."),
    ] = None
    _: KW_ONLY
    order: Annotated[
        int,
        Integer(least=1, most=2, hint="1 or 2"),
        Doc("1: a state depends on the one before; 2: on the two before."),
    ] = 1
    stop: Annotated[
        bool, Boolean(), Doc("Whether sentences end with some probability, or just end.")
    ] = True
    smoothing: Annotated[
        float | Mapping[str, float],
        Smoothing("transitions", "emissions"),
        Doc(
            "Added to all counts, and to the prior of learners that have one; a mapping tells "
            "transitions (and starts) from emissions."
        ),
    ] = 0.0
    zero: Annotated[
        Mapping[str, Any] | None, Doc("Table → where its entries are zero for good.")
    ] = None
    frozen: Annotated[Any, Doc("Tables that stay as they begin; or table → which rows.")] = None
    tied: Annotated[
        Mapping[str, Any] | None,
        Doc("Table → a number for each row: rows with the same number are one."),
    ] = None
    dtype: Annotated[
        str,
        OneOf("float64", "float32"),
        Doc("float64; or float32: less exact E-steps, in about half the time."),
    ] = "float64"


@dataclass(eq=False, repr=False)
class HMMParameters(MarkovParameters):
    """What hidden Markov models of words have besides."""

    _: KW_ONLY
    dictionary: Annotated[Any, Doc("The tags that words may have: word → tags.")] = None
    open_tags: Annotated[
        Any, Doc("What words that are not in the dictionary may have; by default any tag.")
    ] = None
    emissions: Annotated[
        str,
        OneOf("table", "features"),
        Doc(
            "table: a probability for each word. features: words by what they look like (endings, "
            "case, digits), also those never seen; slower."
        ),
    ] = "table"
    l2: Annotated[
        float,
        Number(hint="0.1 is usual"),
        Doc("How strongly the weights of features are drawn to zero."),
    ] = 0.1
    lowercase: Annotated[bool, Doc("Words in lower case.")] = False


@dataclass(eq=False, repr=False)
class GaussianHMMParameters(MarkovParameters):
    """What hidden Markov models of vectors have besides."""

    _: KW_ONLY
    covariance: Annotated[
        str,
        OneOf("full", "tied", "diag", "spherical", hint="full, tied, diag or spherical"),
        Doc("The shape of the Gaussians: full, tied, diag or spherical."),
    ] = "full"
    floor: Annotated[
        float,
        Number(hint="1e-6 is usual"),
        Doc("The smallest variance in any direction, as a share of the data's own."),
    ] = 1e-6
    prior: Annotated[
        NIW | None, Doc("For learners with priors; by default a weak one on the data's scale.")
    ] = None
