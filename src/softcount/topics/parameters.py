"""Declared parameters of topic models, from which checks and command-line options are derived."""

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
"""Default pseudo-counts of LDA: of a topic in a document, and of a word in a topic."""


@dataclass(eq=False, repr=False)
class TopicParameters(LearningParameters):
    """Parameters of topic models, with the defaults of PLSA."""

    n_components: Annotated[int, Integer(most=MAX_CLASSES), Doc("Number of topics.")] = 20
    _: KW_ONLY
    smoothing: Annotated[
        float | Mapping[str, float] | None,
        Smoothing("words", hint="0 means no smoothing"),
        Doc("Pseudo-count added to every count of a word in a topic."),
    ] = 0.0
    seed_words: Annotated[
        Any, Doc("Words known to belong to a topic: a mapping from topics to lists of words.")
    ] = None
    seed_strength: Annotated[
        float,
        Number(above=True, hint="1 is usual"),
        Doc("Pseudo-count of a seed word in its topic, as a multiple of its corpus count."),
    ] = 1.0
    frozen_topics: Annotated[
        Any, Doc("The first topics, which stay fixed: rows of p(word | topic), or mappings.")
    ] = None
    init: Annotated[
        Any,
        Doc(
            "Initial topics: anchors (from words that occur in one topic only), random, or tables. "
            "Default: anchors for EM; random for other learners, for several runs or short runs, "
            "and with seed words, labels or frozen topics."
        ),
    ] = None
    short_runs: Annotated[
        int | None,
        Integer(least=0, most=MAX_RUNS, hint="0: none; 1: a warm-up"),
        Doc(
            "Try this many random starts with two quick passes each, and continue from the best. "
            "Default: three for at most 2000 documents, else one, as a warm-up."
        ),
    ] = None
    dtype: Annotated[
        str,
        OneOf("float64", "float32", hint="float64 or float32"),
        Doc("float32: seven digits of precision, less memory and less time."),
    ] = "float64"
    vectorizer: Annotated[
        Any, Doc("Counts the words of texts, such as scikit-learn's CountVectorizer.")
    ] = None


@dataclass(eq=False, repr=False)
class LDAParameters(TopicParameters):
    """Parameters of LDA, which also smooths the topic proportions of documents."""

    _: KW_ONLY
    smoothing: Annotated[
        float | Mapping[str, float] | None,
        Smoothing(*LDA_SMOOTHING, hint="0.1 is usual for documents, 0.01 for words"),
        Doc(
            "Pseudo-count added to every count: one number for all, or {'documents': …, 'words': "
            "…} for counts of a topic in a document and of a word in a topic. Default: 0.1 and "
            "0.01."
        ),
    ] = None
