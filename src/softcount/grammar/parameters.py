"""Parameters of `PCFG`, declared once: the estimator inherits them, its commands read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softcount.core.bounds import MAX_CLASSES
from softcount.core.parameters import (
    KW_ONLY,
    Annotated,
    Boolean,
    Doc,
    Integer,
    LearningParameters,
    OneOf,
    Probability,
    Smoothing,
    dataclass,
)


@dataclass(eq=False, repr=False)
class PCFGParameters(LearningParameters):
    """See `softcount.PCFG`."""

    n_components: Annotated[
        int | None,
        Integer(most=MAX_CLASSES),
        Doc("How many nonterminals, the symbols of constituents. [else as many as labels have]"),
    ] = None
    n_preterminals: Annotated[
        int | None,
        Integer(most=MAX_CLASSES),
        Doc(
            "How many preterminals, the symbols of words. [else as many as trees have; commands "
            "without trees: half as many again as nonterminals]"
        ),
    ] = None
    _: KW_ONLY
    rules: Annotated[
        Any, Doc('The grammar as a text, or "treebank": the rules of the trees learned from.')
    ] = None
    smoothing: Annotated[
        float | Mapping[str, float],
        Smoothing("rules", "words"),
        Doc(
            "Added to every count; for learners with a prior, their prior. One number, or one for "
            '"rules" and one for "words". [else 0; commands: 0.1 with such learners]'
        ),
    ] = 0.0
    frozen: Annotated[
        Any, Doc("Names of tables, or of symbols, whose probabilities stay as they begin.")
    ] = None
    unknown: Annotated[
        bool,
        Boolean("give True or False"),
        Doc("Whether words that were never seen may be parsed."),
    ] = True
    horizontal: Annotated[
        int | None,
        Integer(0, hint="None: rules as they are"),
        Doc(
            "Of treebanks: long right sides are taken apart, and a part knows so many neighbours "
            "to its left. [else rules as they are]"
        ),
    ] = None
    vertical: Annotated[
        int,
        Integer(1, hint="1: labels know nothing of those above"),
        Doc(
            "Of treebanks: how many labels, from its own up, a symbol consists of: with 2, NP "
            "below S is not NP below VP. Trees have plain labels all the same."
        ),
    ] = 1
    prune: Annotated[
        float,
        Probability(hint="0: nothing is left out; 1e-6 is a little"),
        Doc("Leave out of charts what a coarse grammar finds less probable than this."),
    ] = 0.0
    lowercase: Annotated[
        bool, Boolean("give True or False"), Doc("Turn words into lower case.")
    ] = False
    dtype: Annotated[
        str,
        OneOf("float64", "float32", hint="float64 or float32"),
        Doc("float32: less exact E-steps of dense grammars, in less time."),
    ] = "float64"
    init: Annotated[Any, Doc('Where learning begins: "random", "uniform" (rules), or tables.')] = (
        None
    )
