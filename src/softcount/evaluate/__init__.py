"""Evaluation: found classes beside gold ones, unseen data, and the number of classes."""

from softcount.evaluate.clustering import (
    Agreement,
    adjusted_rand,
    agreement,
    many_to_one,
    many_to_one_map,
    matching,
    nmi,
    one_to_one,
    purity,
    v_measure,
)
from softcount.evaluate.likelihood import (
    HeldOut,
    document_completion,
    held_out,
    perplexity,
    split,
)
from softcount.evaluate.selection import Selection, select

__all__ = [
    "Agreement",
    "HeldOut",
    "Selection",
    "adjusted_rand",
    "agreement",
    "document_completion",
    "held_out",
    "many_to_one",
    "many_to_one_map",
    "matching",
    "nmi",
    "one_to_one",
    "perplexity",
    "purity",
    "select",
    "split",
    "v_measure",
]
