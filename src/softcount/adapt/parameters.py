"""Declared parameters of the domain-adaptation methods; their checks are derived from these."""

from __future__ import annotations

from typing import Annotated, Any

from softcount.core.bounds import MAX_CLASSES, MAX_RUNS
from softcount.core.parameters import (
    KW_ONLY,
    Boolean,
    Doc,
    Integer,
    Number,
    OneOf,
    Probability,
    dataclass,
)

Vectorizer = Annotated[
    Any, Doc("Vectorizer that turns texts into rows; by default tf-idf with 1 + log tf.")
]


@dataclass(eq=False, repr=False)
class ClassifierParameters:
    """A scikit-learn classifier, and the vectorizer that makes its rows."""

    classifier: Annotated[
        Any, Doc("Any scikit-learn classifier; by default logistic regression.")
    ] = None
    _: KW_ONLY
    vectorizer: Vectorizer = None


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedParameters(ClassifierParameters):
    """Weight of labelled target items relative to source items."""

    weight: Annotated[
        float | None,
        Number(above=True, hint="None chooses it by cross-validation"),
        Doc("Weight of a target item relative to a source item; by default chosen on the target."),
    ] = None


@dataclass(kw_only=True, eq=False, repr=False)
class InterpolationParameters(ClassifierParameters):
    """Mixing weight of the source's and the target's classifiers."""

    weight: Annotated[
        float | None,
        Probability(
            one=True, hint="0: source only; 1: target only; None chooses it by cross-validation"
        ),
        Doc("Weight of the target's classifier; by default chosen on the target."),
    ] = None


@dataclass(kw_only=True, eq=False, repr=False)
class SourcePriorParameters(ClassifierParameters):
    """Strength of the Gaussian prior whose mean is the source's weights."""

    l2: Annotated[
        float | None,
        Number(above=True, hint="None chooses it by cross-validation"),
        Doc(
            "L2 penalty on the difference between target and source weights; by default chosen on "
            "the target."
        ),
    ] = None


@dataclass(kw_only=True, eq=False, repr=False)
class PivotParameters(ClassifierParameters):
    """Choice of pivots, their predictors, and the singular vectors kept of these."""

    n_pivots: Annotated[int, Integer(), Doc("Number of pivots; at most half of the words.")] = 500
    n_components: Annotated[int, Integer(), Doc("Number of singular vectors kept.")] = 50
    choose: Annotated[
        str,
        OneOf("frequency", "information"),
        Doc(
            "How to choose pivots. frequency: the words most frequent in both domains. "
            "information: those with most mutual information with the source's labels."
        ),
    ] = "frequency"
    min_share: Annotated[
        float,
        Number(hint="0.01: one item in a hundred; 0: any"),
        Doc("Minimum proportion of the items of either domain in which a pivot occurs."),
    ] = 0.01
    loss: Annotated[
        str, OneOf("ridge", "logistic"), Doc("Loss of the predictors; logistic is slower.")
    ] = "ridge"
    l2: Annotated[
        float,
        Number(above=True, hint="0.01 suits reviews"),
        Doc("L2 penalty on the predictors' weights, relative to the sum of squares of X."),
    ] = 0.01
    scale: Annotated[
        float,
        Number(above=True, hint="1 gives new features the same norm as words"),
        Doc("Norm of the new features of an item relative to that of its words."),
    ] = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class DenoisingParameters(ClassifierParameters):
    """Corruption, number and outputs of the layers, and their input."""

    noise: Annotated[
        str,
        OneOf("deletion", "additive"),
        Doc(
            "How items are corrupted. deletion: words are dropped. additive: normal noise is added "
            "to every value."
        ),
    ] = "deletion"

    corruption: Annotated[
        float,
        Probability(
            hint="the proportion of words dropped: 0.8 suits reviews, 0.5 to 0.9 are usual"
        ),
        Doc(
            "Probability with which each word is dropped; of additive noise, its share in the mean "
            "square of what is then read."
        ),
    ] = 0.8
    n_layers: Annotated[int, Integer(most=MAX_RUNS), Doc("Number of layers.")] = 2
    n_outputs: Annotated[int, Integer(), Doc("Number of words that are reconstructed.")] = 2000
    presence: Annotated[
        bool | None,
        Boolean("True, False, or None to decide by the data"),
        Doc("Whether the input is binary word presence; by default if most entries are 0."),
    ] = None
    scale: Annotated[
        float,
        Number(above=True, hint="1 gives new features the same norm as words; 1.4 suits reviews"),
        Doc("Norm of the new features of an item relative to that of its words."),
    ] = 1.4


@dataclass(kw_only=True, eq=False, repr=False)
class AdversarialParameters:
    """Parameters of the network and of its training."""

    reversal: Annotated[
        float,
        Number(hint="1 is usual; 0 does not adapt"),
        Doc("Weight of the reversed gradient, or of the distance; 0: a plain network."),
    ] = 1.0
    domain_loss: Annotated[
        str,
        OneOf("adversary", "mmd", "coral"),
        Doc(
            "What makes the domains alike. adversary: a classifier of domains, whose gradient is "
            "reversed. mmd, coral: a distance between the features of both domains, which is made "
            "small: maximum mean discrepancy, or the difference of covariances."
        ),
    ] = "adversary"
    n_units: Annotated[int, Integer(most=MAX_CLASSES), Doc("Number of hidden units.")] = 50
    learning_rate: Annotated[
        float, Number(above=True, hint="0.02 is usual"), Doc("Size of a step, for each array.")
    ] = 0.02
    batch_size: Annotated[
        int,
        Integer(2, hint="half of a batch is source, half target"),
        Doc("Number of items in each mini-batch."),
    ] = 64
    max_iter: Annotated[int, Integer(most=MAX_RUNS), Doc("Maximum number of epochs.")] = 30
    validation: Annotated[
        float,
        Probability(hint="0.1 holds out a tenth"),
        Doc("Proportion of the source's labels held out for early stopping; 0: do not stop early."),
    ] = 0.1
    patience: Annotated[
        int,
        Integer(),
        Doc("Stop after this many epochs without improvement of the held-out loss."),
    ] = 3
    vectorizer: Vectorizer = None
    random_state: Annotated[
        Any, Doc("Seed of the initial weights, the held-out labels and the batches.")
    ] = 0
