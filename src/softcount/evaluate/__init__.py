"""Evaluation: found classes beside gold ones, unseen data, number of classes, topics, rankings,
word alignments."""

from softcount.evaluate.alignment import AlignmentScores, aer, align_scores
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
from softcount.evaluate.retrieval import average_precision, mean_average_precision
from softcount.evaluate.selection import Selection, select
from softcount.evaluate.topics import (
    Coherence,
    Completion,
    completion,
    completion_perplexity,
    diversity,
    npmi,
    umass,
)

__all__ = [
    "Agreement",
    "AlignmentScores",
    "Coherence",
    "Completion",
    "HeldOut",
    "Selection",
    "adjusted_rand",
    "aer",
    "agreement",
    "align_scores",
    "average_precision",
    "completion",
    "completion_perplexity",
    "diversity",
    "document_completion",
    "held_out",
    "many_to_one",
    "many_to_one_map",
    "matching",
    "mean_average_precision",
    "nmi",
    "npmi",
    "one_to_one",
    "perplexity",
    "purity",
    "select",
    "split",
    "umass",
    "v_measure",
]
