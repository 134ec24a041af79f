"""The parameters of learners from few labels, declared: checks and options of commands follow."""

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
    """A whole number for every class, or a mapping from classes to whole numbers."""

    hint: str = "so many items of each class are labelled by each view in each round"

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            check_whole(name, value, self.least, self.hint, self.most)
            return
        for label, number in value.items():
            check_whole(f"{name}[{label!r}]", number, 0, self.hint)


def check_function(name: str, value: Any) -> None:
    """Complain unless ``value`` can be called."""
    if not callable(value):
        raise LearnerError(f"{name}={brief(value)}", "give a function of a feature's name")


Vectorizer = Annotated[Any, Doc("What makes rows of texts.")]
Rounds = Annotated[
    int, Integer(0, hint="0 learns from the given labels alone"), Doc("At most so many rounds.")
]


@dataclass(kw_only=True, eq=False, repr=False)
class PropagationParameters:
    """The graph of neighbours, and how labels spread along it."""

    weights: Annotated[
        str,
        OneOf("cosine", "gaussian", "precomputed"),
        Doc("What an edge weighs: cosine, gaussian or precomputed."),
    ] = "cosine"
    alpha: Annotated[
        float | None,
        # it divides a squared distance, which may be as large as any number
        Number(above=True, most=math.inf, hint="None finds one that fits"),
        Doc("Of gaussian weights, exp(-alpha squared distance); by default one that fits."),
    ] = None
    n_neighbors: Annotated[int, Integer(), Doc("How many neighbours of each item.")] = 10
    svd: Annotated[int | None, Integer(), Doc("Reduce items to so many dimensions first.")] = None
    class_mass: Annotated[
        bool | Mapping[Any, float],
        Doc(
            "Scale the classes so that each has as large a share of all items as it has of the "
            "labelled ones."
        ),
    ] = True
    tol: Annotated[
        float,
        Number(above=True, hint="1e-5 is usual"),
        Doc("Stop when every probability is so close to its limit."),
    ] = 1e-5
    max_iter: Annotated[int, Integer(most=MAX_STEPS), Doc("At most so many sweeps.")] = 1000
    vectorizer: Vectorizer = None
    n_jobs: Annotated[int | None, Integer(), Doc("Threads; by default one a processor.")] = None
    random_state: Annotated[Any, Doc("The seed of the SVD.")] = 0


@dataclass(eq=False, repr=False)
class CoTrainingParameters:
    """The views, their classifiers, and what these label in a round."""

    views: Annotated[Any, Doc("Two or more ways to look at an item.")]
    classifier: Annotated[Any, Doc("One for all views, or a mapping with one for each.")] = None
    _: KW_ONLY
    per_class: Annotated[
        int | Mapping[Any, int] | None,
        Quota(),
        Doc(
            "So many items of each class a view labels in a round; by default all items in about "
            "20 rounds, classes as common as among the given labels."
        ),
    ] = None
    rounds: Rounds = 100
    pool: Annotated[
        int | None,
        Integer(hint="Blum and Mitchell took 75; None takes all items"),
        Doc("Choose from so many items, drawn at random; by default from all."),
    ] = None
    prediction: Annotated[
        str,
        OneOf("product", "agreement", hint="choose product or agreement"),
        Doc(
            "Of items that no view has labelled: product of the views' probabilities, or "
            "agreement: what all views agree on, else what the most confident one says."
        ),
    ] = "product"
    vectorizer: Vectorizer = None
    random_state: Annotated[Any, Doc("The seed of the pool.")] = 0


@dataclass(eq=False, repr=False)
class SelfTrainingParameters:
    """The classifier, and which items it labels in a round."""

    classifier: Annotated[Any, Doc("Any of scikit-learn's; by default Naive Bayes.")] = None
    _: KW_ONLY
    threshold: Annotated[
        float | None,
        Probability(hint="0.75 is scikit-learn's; 0.95 is cautious"),
        Doc("Label only what is more probable than this."),
    ] = None
    per_class: Annotated[
        int | Mapping[Any, int] | None,
        Quota(),
        Doc("Label only so many items of each class in a round, the most confident."),
    ] = None
    best: Annotated[
        int | None,
        Integer(hint="so many items are labelled in each round"),
        Doc("Label only so many items in a round, the most confident."),
    ] = None
    keep: Annotated[bool, Boolean(), Doc("Whether labels once given stay.")] = False
    max_rounds: Rounds = 100
    vectorizer: Vectorizer = None


@dataclass(kw_only=True, eq=False, repr=False)
class YarowskyParameters:
    """Which rules are taken in a round, and what documents count."""

    variant: Annotated[
        str,
        OneOf("plain", "cautious", "propagating", "propagating-cautious"),
        Doc(
            "plain: each round takes all rules above the threshold. cautious: only the most "
            "frequent of these, some more each round. propagating, propagating-cautious: the "
            "same, but all features of an item vote for its label."
        ),
    ] = "cautious"
    threshold: Annotated[
        float,
        Probability(hint="0.95 is usual"),
        Doc("Which share of the labelled items with a rule's feature must have its label."),
    ] = 0.95
    smoothing: Annotated[
        float, Number(hint="0.1 is usual"), Doc("Added to every count of a rule.")
    ] = 0.1
    step: Annotated[int, Integer(), Doc("cautious: so many more rules a label each round.")] = 5
    max_rounds: Annotated[
        int, Integer(0), Doc("At most so many rounds; 0 applies the seeds, no more.")
    ] = 500
    discourse: Annotated[
        float,
        Number(hint="0: documents do not count"),
        Doc(
            "What the other items of its document count beside an item's own rule: one sense per "
            "discourse, as a weight."
        ),
    ] = 0.0
    views: Annotated[
        Callable[[Any], Hashable] | None,
        check_function,
        Doc("A function from a feature's name to that of its view; views take turns."),
    ] = None
    abstain: Annotated[
        bool, Boolean(), Doc("Whether items that no rule applies to get no label.")
    ] = False
    vectorizer: Vectorizer = None
