"""Declared parameters of the semi-supervised learners; checks and command-line options are derived
from these declarations."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from softcount.core.bounds import MAX_STEPS
from softcount.core.errors import LearnerError, brief
from softcount.core.parameters import (
    KW_ONLY,
    Annotated,
    Boolean,
    Doc,
    Integer,
    Number,
    OneOf,
    Probability,
    check_whole,
    dataclass,
)


@dataclass(frozen=True)
class Quota(Integer):
    """A whole number for all classes, or a mapping from classes to whole numbers."""

    hint: str = "the number of items of each class that each view labels in a round"

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            check_whole(name, value, self.least, self.hint, self.most)
            return
        for label, number in value.items():
            check_whole(f"{name}[{label!r}]", number, 0, self.hint)


def check_function(name: str, value: Any) -> None:
    """Raise unless ``value`` is callable."""
    if not callable(value):
        raise LearnerError(
            f"{name}={brief(value)} is not a function", "give a function of a feature's name"
        )


Vectorizer = Annotated[Any, Doc("Vectorizer that turns texts into rows of features.")]
Rounds = Annotated[
    int,
    Integer(0, hint="0 learns from the given labels only"),
    Doc("Maximum number of rounds."),
]


@dataclass(kw_only=True, eq=False, repr=False)
class PropagationParameters:
    """Parameters of the nearest-neighbour graph, and of how labels spread along it."""

    weights: Annotated[
        str,
        OneOf("cosine", "gaussian", "precomputed"),
        Doc("Edge weights: cosine, gaussian or precomputed."),
    ] = "cosine"
    alpha: Annotated[
        float | None,
        # no upper bound: it multiplies squared distances, which may be arbitrarily small
        Number(above=True, most=math.inf, hint="None chooses it from the data"),
        Doc(
            "Of gaussian weights, exp(-alpha * squared distance); by default chosen from the data."
        ),
    ] = None
    n_neighbors: Annotated[int, Integer(), Doc("Number of neighbours of each item.")] = 10
    svd: Annotated[
        int | None, Integer(), Doc("Reduce items to this many dimensions first, by SVD.")
    ] = None
    class_mass: Annotated[
        bool | Mapping[Any, float],
        Doc(
            "Class-mass normalisation: scale the classes so that each has the same proportion of "
            "all items as of the labelled ones."
        ),
    ] = True
    algorithm: Annotated[
        str,
        OneOf("harmonic", "propagation"),
        Doc(
            "harmonic: each item gets the mean of its neighbours; propagation: as textbooks print "
            "it, with a transition matrix whose columns add up to 1."
        ),
    ] = "harmonic"
    tol: Annotated[
        float,
        Number(above=True, hint="1e-5 is usual"),
        Doc("Stop when every probability is within this distance of its limit."),
    ] = 1e-5
    max_iter: Annotated[int, Integer(most=MAX_STEPS), Doc("Maximum number of sweeps.")] = 1000
    vectorizer: Vectorizer = None
    n_jobs: Annotated[
        int | None, Integer(), Doc("Number of threads; by default one per processor.")
    ] = None
    random_state: Annotated[Any, Doc("Seed of the SVD.")] = 0


@dataclass(eq=False, repr=False)
class CoTrainingParameters:
    """Parameters of the views, their classifiers, and what these label in a round."""

    views: Annotated[Any, Doc("Two or more views of an item.")]
    classifier: Annotated[
        Any, Doc("Classifier for all views, or a mapping with one for each view.")
    ] = None
    _: KW_ONLY
    per_class: Annotated[
        int | Mapping[Any, int] | None,
        Quota(),
        Doc(
            "Number of items of each class that a view labels in a round; by default such that all "
            "items are labelled in about 20 rounds, with classes in the proportions of the given "
            "labels."
        ),
    ] = None
    rounds: Rounds = 100
    pool: Annotated[
        int | None,
        Integer(hint="Blum and Mitchell used 75; None uses all items"),
        Doc("Choose from a pool of this many items, drawn at random; by default from all."),
    ] = None
    prediction: Annotated[
        str,
        OneOf("product", "agreement", hint="choose product or agreement"),
        Doc(
            "How to label items that no view has labelled. product: multiply the views' "
            "probabilities. agreement: the label all views agree on, else that of the most "
            "confident view."
        ),
    ] = "product"
    vectorizer: Vectorizer = None
    random_state: Annotated[Any, Doc("Seed of the draws of the pool.")] = 0


@dataclass(eq=False, repr=False)
class SelfTrainingParameters:
    """Parameters of the classifier, and of which items it labels in a round."""

    classifier: Annotated[
        Any, Doc("Any scikit-learn classifier; by default multinomial Naive Bayes.")
    ] = None
    _: KW_ONLY
    threshold: Annotated[
        float | None,
        Probability(hint="0.75 is scikit-learn's; 0.95 is cautious"),
        Doc("Label only items whose best class is more probable than this."),
    ] = None
    per_class: Annotated[
        int | Mapping[Any, int] | None,
        Quota(),
        Doc("Label only this many items of each class in a round, the most confident ones."),
    ] = None
    best: Annotated[
        int | None,
        Integer(hint="the number of items labelled in each round"),
        Doc("Label only this many items in a round, the most confident ones."),
    ] = None
    keep: Annotated[
        bool, Boolean(), Doc("Whether an item keeps its first label in later rounds.")
    ] = False
    max_rounds: Rounds = 100
    vectorizer: Vectorizer = None


@dataclass(kw_only=True, eq=False, repr=False)
class YarowskyParameters:
    """Parameters of which rules are added in a round, and of the weight of documents."""

    variant: Annotated[
        str,
        OneOf("plain", "cautious", "propagating", "propagating-cautious"),
        Doc(
            "plain: each round uses all rules above the threshold. cautious: only the most "
            "frequent of these, some more in each round. propagating, propagating-cautious: the "
            "same, but all features of an item vote for its label."
        ),
    ] = "cautious"
    threshold: Annotated[
        float,
        Probability(hint="0.95 is usual"),
        Doc("Minimum precision of a rule: P(label | feature) among the labelled items."),
    ] = 0.95
    smoothing: Annotated[
        float, Number(hint="0.1 is usual"), Doc("Added to every count of a rule.")
    ] = 0.1
    step: Annotated[
        int, Integer(), Doc("cautious: number of rules added per label in each round.")
    ] = 5
    max_rounds: Annotated[
        int, Integer(0), Doc("Maximum number of rounds; 0 only applies the seed rules.")
    ] = 500
    discourse: Annotated[
        float,
        Number(hint="0 ignores documents"),
        Doc(
            "Weight of the other items of an item's document relative to its own rule: one sense "
            "per discourse, as a soft constraint."
        ),
    ] = 0.0
    views: Annotated[
        Callable[[Any], Hashable] | None,
        check_function,
        Doc("Function from a feature's name to the name of its view; views take turns."),
    ] = None
    abstain: Annotated[
        bool, Boolean(), Doc("Whether items to which no rule applies get no label.")
    ] = False
    vectorizer: Vectorizer = None
