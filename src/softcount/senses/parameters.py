"""Declared parameters of `SenseInducer`, from which checks and command-line options are derived."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from softcount.core.bounds import MAX_CLASSES, MAX_RUNS
from softcount.core.errors import LearnerError, brief
from softcount.core.parameters import KW_ONLY, Doc, Integer, Number, ShortRunParameters, dataclass


def check_words(name: str, value: Any) -> None:
    """Raise a `LearnerError` unless ``value`` is a collection of strings."""
    listed = isinstance(value, Collection) and not isinstance(value, str)
    if not listed or not all(isinstance(word, str) for word in value):
        raise LearnerError(f"{name}={brief(value)} is not a list of words", "give a list of texts")


@dataclass(eq=False, repr=False)
class SenseInducerParameters(ShortRunParameters):
    """Features of contexts, and the mixture that clusters them into senses."""

    n_components: Annotated[int, Integer(1, MAX_CLASSES), Doc("Number of senses.")] = 2
    _: KW_ONLY
    window: Annotated[
        int | None,
        Integer(1),
        Doc("Number of words on each side that form the context; None: the whole sentence."),
    ] = 25
    near: Annotated[
        int,
        Integer(0),
        Doc("This many nearest words on each side are counted again with their position."),
    ] = 3
    min_count: Annotated[
        int, Integer(1), Doc("Leave out words that occur in fewer contexts than this.")
    ] = 2
    stop_words: Annotated[
        Collection[str], check_words, Doc("Words that count only together with their position.")
    ] = ()
    svd: Annotated[
        int | None,
        Integer(1),
        Doc(
            "Reduce the tf-idf vectors of the contexts to this many dimensions and fit a Gaussian "
            "mixture there; if not given, senses are multinomials over words."
        ),
    ] = None
    smoothing: Annotated[
        float,
        Number(hint="0.1 is usual; 0 does not smooth"),
        Doc("Pseudocount added to every count of a word in a sense."),
    ] = 0.1
    init: Annotated[Any, Doc("Initial parameters, as for the mixtures.")] = "kmeans"
    short_runs: Annotated[
        int,
        Integer(0, MAX_RUNS, "0: no short runs, every start is run to the end"),
        Doc("Try this many starts with a few quick passes each, and continue from the best."),
    ] = 5
