"""Evaluation: found classes beside gold ones, unseen data, number of classes, topics, rankings,
word alignments, tags."""

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
from softcount.evaluate.confusions import Confusion, confusion
from softcount.evaluate.likelihood import (
    HeldOut,
    document_completion,
    held_out,
    perplexity,
    split,
)
from softcount.evaluate.retrieval import average_precision, mean_average_precision
from softcount.evaluate.selection import Selection, select
from softcount.evaluate.tagging import (
    InductionScores,
    TagScores,
    induction_scores,
    mapping,
    tag_scores,
)
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
    "Confusion",
    "HeldOut",
    "InductionScores",
    "Selection",
    "TagScores",
    "adjusted_rand",
    "aer",
    "agreement",
    "align_scores",
    "average_precision",
    "completion",
    "completion_perplexity",
    "confusion",
    "diversity",
    "document_completion",
    "held_out",
    "induction_scores",
    "many_to_one",
    "many_to_one_map",
    "mapping",
    "matching",
    "mean_average_precision",
    "nmi",
    "npmi",
    "one_to_one",
    "perplexity",
    "purity",
    "select",
    "split",
    "tag_scores",
    "umass",
    "v_measure",
]
