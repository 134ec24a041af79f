"""The parameters of methods of adaptation, declared: their checks follow."""

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

Vectorizer = Annotated[Any, Doc("How texts become rows; by default tf-idf with 1 + log tf.")]


@dataclass(eq=False, repr=False)
class ClassifierParameters:
    """A classifier of scikit-learn's, and how texts become rows for it."""

    classifier: Annotated[Any, Doc("Any of scikit-learn's; by default logistic regression.")] = None
    _: KW_ONLY
    vectorizer: Vectorizer = None


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedParameters(ClassifierParameters):
    """How much more labels of the target weigh."""

    weight: Annotated[
        float | None,
        Number(above=True, hint="None finds one"),
        Doc("How many items of the source one of the target is worth; by default chosen."),
    ] = None


@dataclass(kw_only=True, eq=False, repr=False)
class InterpolationParameters(ClassifierParameters):
    """How two classifiers are mixed."""

    weight: Annotated[
        float | None,
        Probability(one=True, hint="0: the source alone; 1: the target alone; None finds one"),
        Doc("The weight of the target's classifier; by default chosen."),
    ] = None


@dataclass(kw_only=True, eq=False, repr=False)
class SourcePriorParameters(ClassifierParameters):
    """How strongly the target is drawn to the source."""

    l2: Annotated[
        float | None,
        Number(above=True, hint="None finds one"),
        Doc("How strongly weights are drawn to those of the source; by default chosen."),
    ] = None


@dataclass(kw_only=True, eq=False, repr=False)
class PivotParameters(ClassifierParameters):
    """Pivots, their predictors, and the directions that are kept of these."""

    n_pivots: Annotated[int, Integer(), Doc("Number of pivots; at most half of the words.")] = 500
    n_components: Annotated[int, Integer(), Doc("Number of directions that are kept.")] = 50
    choose: Annotated[
        str,
        OneOf("frequency", "information"),
        Doc(
            "Pivots are the words most frequent in both domains, or those that tell most of the "
            "source's labels."
        ),
    ] = "frequency"
    min_share: Annotated[
        float,
        Number(hint="0.01: one item in a hundred; 0: any"),
        Doc("Pivots occur in at least this share of the items of both domains."),
    ] = 0.01
    loss: Annotated[
        str, OneOf("ridge", "logistic"), Doc("Of the predictors; logistic is slower.")
    ] = "ridge"
    l2: Annotated[
        float,
        Number(above=True, hint="0.01 suits reviews"),
        Doc("Penalty on the predictors' weights, as a share of the sum of all squares of X."),
    ] = 0.01
    scale: Annotated[
        float,
        Number(above=True, hint="1: new features are as long as words"),
        Doc("How long rows of new features are beside those of words."),
    ] = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class DenoisingParameters(ClassifierParameters):
    """What is dropped, how often layers restore it, and what they read."""

    corruption: Annotated[
        float,
        Probability(
            hint="the share of words that are dropped: 0.8 suits reviews, 0.5 to 0.9 are usual"
        ),
        Doc("The probability with which each word is dropped."),
    ] = 0.8
    n_layers: Annotated[int, Integer(most=MAX_RUNS), Doc("Number of layers.")] = 2
    n_outputs: Annotated[int, Integer(), Doc("Number of words that are restored.")] = 2000
    presence: Annotated[
        bool | None,
        Boolean("True, False, or None: as fits"),
        Doc("Whether layers read only if a word occurs; by default where most entries are 0."),
    ] = None
    scale: Annotated[
        float,
        Number(above=True, hint="1: new features are as long as words; 1.4 suits reviews"),
        Doc("How long rows of new features are beside those of words."),
    ] = 1.4


@dataclass(kw_only=True, eq=False, repr=False)
class AdversarialParameters:
    """The network, and how it is trained."""

    reversal: Annotated[
        float,
        Number(hint="1 is usual; 0 does not adapt"),
        Doc("Weight of the reversed gradient; 0: a plain network."),
    ] = 1.0
    n_units: Annotated[int, Integer(most=MAX_CLASSES), Doc("Number of hidden units.")] = 50
    learning_rate: Annotated[
        float, Number(above=True, hint="0.02 is usual"), Doc("How far a step moves each array.")
    ] = 0.02
    batch_size: Annotated[
        int, Integer(2, hint="half of it source, half target"), Doc("Items in each batch.")
    ] = 64
    max_iter: Annotated[int, Integer(most=MAX_RUNS), Doc("At most so many epochs.")] = 30
    validation: Annotated[
        float,
        Probability(hint="0.1 holds out a tenth"),
        Doc("Share of the source's labels held out to tell when to stop; 0: never early."),
    ] = 0.1
    patience: Annotated[
        int, Integer(), Doc("Stop after so many epochs without a smaller loss of these.")
    ] = 3
    vectorizer: Vectorizer = None
    random_state: Annotated[Any, Doc("Of first weights, held-out labels and batches.")] = 0
