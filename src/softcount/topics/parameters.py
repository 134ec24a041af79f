"""The parameters of topic models, declared: checks and options follow from this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softcount.core.bounds import MAX_CLASSES, MAX_RUNS
from softcount.core.parameters import (
    KW_ONLY,
    Annotated,
    Doc,
    Integer,
    LearningParameters,
    Number,
    OneOf,
    Smoothing,
    dataclass,
)

LDA_SMOOTHING = {"documents": 0.1, "words": 0.01}
"""What LDA adds to every count of a topic in a document, and of a word in a topic."""


@dataclass(eq=False, repr=False)
class TopicParameters(LearningParameters):
    """What PLSA and LDA share; here as PLSA has them."""

    n_components: Annotated[int, Integer(most=MAX_CLASSES), Doc("How many topics.")] = 20
    _: KW_ONLY
    smoothing: Annotated[
        float | Mapping[str, float] | None,
        Smoothing("words", hint="0 does not smooth"),
        Doc("What is added to every count of a word in a topic."),
    ] = 0.0
    seed_words: Annotated[
        Any, Doc("Words that belong to a topic: a mapping from topics to lists of words.")
    ] = None
    seed_strength: Annotated[
        float,
        Number(above=True, hint="1 is usual"),
        Doc("A seed word counts for its topic so many times as often as the corpus has it."),
    ] = 1.0
    frozen_topics: Annotated[
        Any, Doc("The first topics, which stay as they are: rows of p(word | topic), or mappings.")
    ] = None
    init: Annotated[
        Any,
        Doc(
            "Where to start: anchors (words that one topic alone has), random, or tables. By "
            "default anchors for EM; random for other learners, for several runs or short runs, "
            "and if something is known of topics."
        ),
    ] = None
    short_runs: Annotated[
        int | None,
        Integer(least=0, most=MAX_RUNS, hint="0: none; 1: a warm-up"),
        Doc(
            "Try so many random starts by two quick passes each, and go on from the best. By "
            "default three for at most 2000 documents, else one, which warms up."
        ),
    ] = None
    dtype: Annotated[
        str,
        OneOf("float64", "float32", hint="float64 or float32"),
        Doc("float32: seven digits, less memory and less time."),
    ] = "float64"
    vectorizer: Annotated[Any, Doc("What counts the words of texts, as scikit-learn has them.")] = (
        None
    )


@dataclass(eq=False, repr=False)
class LDAParameters(TopicParameters):
    """The same with smoothing of documents, too."""

    _: KW_ONLY
    smoothing: Annotated[
        float | Mapping[str, float] | None,
        Smoothing(*LDA_SMOOTHING, hint="0.1 is usual for documents, 0.01 for words"),
        Doc(
            "What is added to every count: one number for all, or {'documents': …, 'words': …} for "
            "those of a topic in a document and of a word in a topic. By default 0.1 and 0.01."
        ),
    ] = None
