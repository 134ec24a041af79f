"""The parameters of `SenseInducer`, declared: checks and options of the command follow."""

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
        raise LearnerError(f"{name}={brief(value)} is no list of words", "give a list of texts")


@dataclass(eq=False, repr=False)
class SenseInducerParameters(ShortRunParameters):
    """How contexts are described, and how many senses they are sorted into."""

    n_components: Annotated[int, Integer(1, MAX_CLASSES), Doc("How many senses.")] = 2
    _: KW_ONLY
    window: Annotated[
        int | None,
        Integer(1),
        Doc("Look at so many words on each side; by default at the whole sentence."),
    ] = 25
    near: Annotated[
        int, Integer(0), Doc("So many on each side count once more, with their place.")
    ] = 3
    min_count: Annotated[
        int, Integer(1), Doc("Leave out words that fewer contexts than this have.")
    ] = 2
    stop_words: Annotated[
        Collection[str], check_words, Doc("Words that count only with their place.")
    ] = ()
    svd: Annotated[
        int | None,
        Integer(1),
        Doc(
            "Reduce tf-idf of the contexts to so many dimensions, and look for Gaussian senses "
            "there; if not given, senses are multinomials of words."
        ),
    ] = None
    smoothing: Annotated[
        float,
        Number(hint="0.1 is usual; 0 does not smooth"),
        Doc("Add so much to every count of a word in a sense."),
    ] = 0.1
    init: Annotated[Any, Doc("Where learning begins, as of the mixtures.")] = "kmeans"
    short_runs: Annotated[
        int,
        Integer(0, MAX_RUNS, "0: no short runs, every start is run to the end"),
        Doc("Try so many starts by a few quick passes, and go on from the best."),
    ] = 5
