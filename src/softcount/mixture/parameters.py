"""Declared parameters of mixtures, from which checks and command-line options are derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, Literal

from softcount.core.bounds import MAX_CLASSES, MAX_SQUARE
from softcount.core.errors import LearnerError
from softcount.core.parameters import (
    KW_ONLY,
    Boolean,
    Doc,
    Integer,
    Number,
    OneOf,
    Prior,
    ShortRunParameters,
    dataclass,
)

if TYPE_CHECKING:
    from softcount.families.gaussian import NIW

Covariance = Literal["full", "tied", "diag", "spherical", "identity"]
NumberOfClasses = Annotated[int, Integer(1, MAX_CLASSES), Doc("Number of classes.")]
MostClasses = Annotated[
    int, Integer(1, MAX_CLASSES), Doc("Maximum number of classes: choose more than you expect.")
]
Concentration = Annotated[
    float,
    Number(above=True, hint="1 is usual; larger values give more classes"),
    Doc("Concentration of the Dirichlet process; larger values give more classes."),
]


@dataclass(kw_only=True, eq=False, repr=False)
class WordParameters(ShortRunParameters):
    """How words are counted and smoothed."""

    bernoulli: Annotated[bool, Boolean(), Doc("Model whether a word occurs, not how often.")] = (
        False
    )
    smoothing: Annotated[
        float,
        Number(hint="0.1 is usual; 0 does not smooth"),
        Doc("Pseudocount added to every count of a word in a class."),
    ] = 0.1
    prior: Annotated[
        float | Mapping[str, float] | None,
        Prior(("weights", "words")),
        Doc(
            "Dirichlet concentration of the words, or one for each table (weights, words); "
            "replaces smoothing."
        ),
    ] = None
    init: Annotated[
        Any,
        Doc(
            "Initial parameters: kmeans, random, memberships, spectral, anchor, uniform, or tables "
            "of weights and words."
        ),
    ] = "kmeans"
    vectorizer: Annotated[
        Any, Doc("Turns texts into counts, with the interface of scikit-learn's vectorizers.")
    ] = None


@dataclass(eq=False, repr=False)
class MultinomialMixtureParameters(WordParameters):
    """A mixture of bags of words."""

    n_components: NumberOfClasses = 8


@dataclass(eq=False, repr=False)
class DirichletProcessMixtureParameters(MultinomialMixtureParameters):
    """The same with the number of classes inferred from the data."""

    n_components: MostClasses = 50
    _: KW_ONLY
    concentration: Concentration = 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveBayesParameters(WordParameters):
    """Naive Bayes learned from labelled and unlabelled documents."""

    n_components: Annotated[
        int, Integer(1, MAX_CLASSES), Doc("Number of hidden components of each class.")
    ] = 1
    unlabelled_weight: Annotated[
        float,
        Number(hint="0 ignores unlabelled documents, 1 counts them in full; NaiveBayesCV chooses"),
        Doc("Weight of an unlabelled document relative to a labelled one."),
    ] = 1.0
    length: Annotated[
        float | None,
        Number(above=True, hint="100 is usual"),
        Doc("Rescale every document to this many words; by default documents are not rescaled."),
    ] = None
    init: Annotated[Any, Doc("Initial parameters: labelled, or tables of weights and words.")] = (
        "labelled"
    )


def check_not_empty(name: str, value: Any) -> None:
    """Raise a `LearnerError` if there are no values to choose from."""
    if not len(value):
        raise LearnerError(f"{name} is empty", "give at least one value of λ")


def check_folds(name: str, value: Any) -> None:
    """Raise a `LearnerError` for a number of folds below 2; scikit-learn checks anything else."""
    if isinstance(value, Integral) and int(value) < 2:
        raise LearnerError(f"{name}={value} must be at least 2", "5 is usual")


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveBayesCVParameters(NaiveBayesParameters):
    """The same, with the weight of unlabelled documents chosen by cross-validation."""

    unlabelled_weights: Annotated[
        Sequence[float], check_not_empty, Doc("Candidate weights of unlabelled documents.")
    ] = (
        *(0.0, 0.01, 0.03),
        *(0.1, 0.3, 1.0),
    )
    cv: Annotated[Any, check_folds, Doc("Number of folds, or a scikit-learn splitter.")] = 5


@dataclass(eq=False, repr=False)
class GaussianMixtureParameters(ShortRunParameters):
    """A mixture of Gaussians."""

    n_components: NumberOfClasses = 8
    _: KW_ONLY
    covariance: Annotated[
        Covariance,
        OneOf("full", "tied", "diag", "spherical", "identity"),
        Doc("Form of the covariance matrices; tied: one full matrix shared by all classes."),
    ] = "full"
    floor: Annotated[
        float,
        Number(hint="1e-6 is usual"),
        Doc("Smallest variance in any direction, as a fraction of the variance of the columns."),
    ] = 1e-6
    prior: Annotated[
        NIW | None, Doc("A normal–inverse-Wishart prior on the scale of the centred data.")
    ] = None
    init: Annotated[
        Any,
        Doc(
            "Initial parameters: kmeans, k-means++, random, memberships, or means, covariances and "
            "weights."
        ),
    ] = "kmeans"


@dataclass(eq=False, repr=False)
class DirichletProcessGaussianMixtureParameters(GaussianMixtureParameters):
    """The same with the number of classes inferred from the data."""

    n_components: MostClasses = 50
    _: KW_ONLY
    concentration: Concentration = 1.0


@dataclass(eq=False, repr=False)
class KMeansParameters(ShortRunParameters):
    """k-means."""

    n_components: NumberOfClasses = 8
    _: KW_ONLY
    init: Annotated[
        Any, Doc("Initial centres: k-means++, random, memberships, kmeans, or means.")
    ] = "k-means++"


@dataclass(eq=False, repr=False)
class SoftKMeansParameters(KMeansParameters):
    """Soft k-means: responsibilities instead of hard assignments."""

    _: KW_ONLY
    variance: Annotated[
        float,
        Number(
            above=True,
            most=MAX_SQUARE,
            hint="the mean squared distance of a point from its centre, in one dimension",
        ),
        Doc("Known variance of each class in each dimension."),
    ] = 1.0
