"""The parameters of mixtures, declared: checks and options of commands follow."""

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
NumberOfClasses = Annotated[int, Integer(1, MAX_CLASSES), Doc("How many classes.")]
MostClasses = Annotated[
    int, Integer(1, MAX_CLASSES), Doc("At most so many classes: more than you expect.")
]
Concentration = Annotated[
    float,
    Number(above=True, hint="1 is usual; the larger, the more classes"),
    Doc("The larger, the more classes."),
]


@dataclass(kw_only=True, eq=False, repr=False)
class WordParameters(ShortRunParameters):
    """How words are counted and smoothed."""

    bernoulli: Annotated[
        bool, Boolean(), Doc("Look at whether a word occurs, not at how often it does.")
    ] = False
    smoothing: Annotated[
        float,
        Number(hint="0.1 is usual; 0 does not smooth"),
        Doc("Add so much to every count of a word in a class."),
    ] = 0.1
    prior: Annotated[
        float | Mapping[str, float] | None,
        Prior(("weights", "words")),
        Doc("Instead: the Dirichlet concentration of words, or by table (weights, words)."),
    ] = None
    init: Annotated[
        Any, Doc("kmeans, random, spectral, anchor, uniform, or tables of weights and words.")
    ] = "kmeans"
    vectorizer: Annotated[Any, Doc("How texts become counts, as scikit-learn's vectorizers.")] = (
        None
    )


@dataclass(eq=False, repr=False)
class MultinomialMixtureParameters(WordParameters):
    """A mixture of bags of words."""

    n_components: NumberOfClasses = 8


@dataclass(eq=False, repr=False)
class DirichletProcessMixtureParameters(MultinomialMixtureParameters):
    """The same with as many classes as the data call for."""

    n_components: MostClasses = 50
    _: KW_ONLY
    concentration: Concentration = 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveBayesParameters(WordParameters):
    """How labels and documents without labels are learned from."""

    n_components: Annotated[
        int, Integer(1, MAX_CLASSES), Doc("Hidden components of each class.")
    ] = 1
    unlabelled_weight: Annotated[
        float,
        Number(
            hint="0 leaves unlabelled documents out, 1 counts them in full; NaiveBayesCV chooses"
        ),
        Doc("What an unlabelled document counts beside a labelled one."),
    ] = 1.0
    length: Annotated[
        float | None,
        Number(above=True, hint="100 is usual"),
        Doc("Stretch or shrink every document to so many words; by default as they are."),
    ] = None
    init: Annotated[Any, Doc("labelled, or tables of weights and words.")] = "labelled"


def check_some(name: str, value: Any) -> None:
    """Raise a `LearnerError` if there are no values to choose from."""
    if not len(value):
        raise LearnerError(f"{name} is empty", "give some values of λ")


def check_folds(name: str, value: Any) -> None:
    """Raise a `LearnerError` for a number of folds below 2; other folds are for scikit-learn."""
    if isinstance(value, Integral) and int(value) < 2:
        raise LearnerError(f"{name}={value} must be at least 2", "5 is usual")


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveBayesCVParameters(NaiveBayesParameters):
    """The same, with weights of unlabelled documents to choose from."""

    unlabelled_weights: Annotated[Sequence[float], check_some, Doc("Weights to choose from.")] = (
        *(0.0, 0.01, 0.03),
        *(0.1, 0.3, 1.0),
    )
    cv: Annotated[Any, check_folds, Doc("How many folds, or folds as scikit-learn has them.")] = 5


@dataclass(eq=False, repr=False)
class GaussianMixtureParameters(ShortRunParameters):
    """A mixture of Gaussians."""

    n_components: NumberOfClasses = 8
    _: KW_ONLY
    covariance: Annotated[
        Covariance,
        OneOf("full", "tied", "diag", "spherical", "identity"),
        Doc("The form of covariances; tied: one full one for all."),
    ] = "full"
    floor: Annotated[
        float,
        Number(hint="1e-6 is usual"),
        Doc("The smallest variance in any direction, as a share of the columns' own."),
    ] = 1e-6
    prior: Annotated[
        NIW | None, Doc("A normal–inverse-Wishart prior on the scale of the centred data.")
    ] = None
    init: Annotated[Any, Doc("kmeans, k-means++, random, or means, covariances and weights.")] = (
        "kmeans"
    )


@dataclass(eq=False, repr=False)
class DirichletProcessGaussianMixtureParameters(GaussianMixtureParameters):
    """The same with as many classes as the data call for."""

    n_components: MostClasses = 50
    _: KW_ONLY
    concentration: Concentration = 1.0


@dataclass(eq=False, repr=False)
class KMeansParameters(ShortRunParameters):
    """k-means."""

    n_components: NumberOfClasses = 8
    _: KW_ONLY
    init: Annotated[Any, Doc("k-means++, random, kmeans, or means.")] = "k-means++"


@dataclass(eq=False, repr=False)
class SoftKMeansParameters(KMeansParameters):
    """The same with responsibilities."""

    _: KW_ONLY
    variance: Annotated[
        float,
        Number(
            above=True,
            most=MAX_SQUARE,
            hint="the mean squared distance of a point from its centre, in one dimension",
        ),
        Doc("The variance of each class in each dimension."),
    ] = 1.0
