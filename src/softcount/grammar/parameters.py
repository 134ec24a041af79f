"""Declared parameters of `PCFG`, inherited by the estimator and read by its commands."""

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
    """Parameters of `softcount.PCFG`."""

    n_components: Annotated[
        int | None,
        Integer(most=MAX_CLASSES),
        Doc("Number of nonterminals, the symbols of constituents. [default: that of the labels]"),
    ] = None
    n_preterminals: Annotated[
        int | None,
        Integer(most=MAX_CLASSES),
        Doc(
            "Number of preterminals, the symbols of words. [default: that of the trees; commands "
            "without trees: 1.5 times the nonterminals]"
        ),
    ] = None
    _: KW_ONLY
    rules: Annotated[
        Any, Doc('The grammar as text, or "treebank": the rules of the training trees.')
    ] = None
    smoothing: Annotated[
        float | Mapping[str, float],
        Smoothing("rules", "words"),
        Doc(
            "Pseudo-count added to every count; for learners with a prior, the Dirichlet "
            'parameter. One number, or one for "rules" and one for "words". [default: 0; commands: '
            "0.1 with such learners]"
        ),
    ] = 0.0
    frozen: Annotated[
        Any, Doc("Names of tables or symbols whose probabilities stay at their initial values.")
    ] = None
    unknown: Annotated[
        bool,
        Boolean("give True or False"),
        Doc("Whether to parse unseen words, modelled by words seen once."),
    ] = True
    horizontal: Annotated[
        int | None,
        Integer(0, hint="None: rules as they are"),
        Doc(
            "For treebanks: binarise long rules, each part conditioned on this many left siblings "
            "(horizontal Markovisation). [default: rules as they are]"
        ),
    ] = None
    vertical: Annotated[
        int,
        Integer(1, hint="1: plain labels; 2: with the parent's label"),
        Doc(
            "For treebanks: number of labels in a symbol, its own and its ancestors' (vertical "
            "Markovisation): with 2, NP below S differs from NP below VP. Printed trees have plain "
            "labels."
        ),
    ] = 1
    prune: Annotated[
        float,
        Probability(hint="0: no pruning; 1e-6 prunes a little"),
        Doc("Prune chart symbols with a posterior below this under a coarse grammar."),
    ] = 0.0
    lowercase: Annotated[bool, Boolean("give True or False"), Doc("Lower-case all words.")] = False
    dtype: Annotated[
        str,
        OneOf("float64", "float32", hint="float64 or float32"),
        Doc("Precision of E-steps of dense grammars; float32 is less exact and faster."),
    ] = "float64"
    init: Annotated[
        Any, Doc('Initial parameters: "random", "uniform" (rule-based grammars), or tables.')
    ] = None
