"""Evaluation: found classes beside gold ones, unseen data, number of classes, topics, rankings,
word alignments, tags, trees."""

from softcount.evaluate.alignment import AlignmentScores, aer, align_scores
from softcount.evaluate.brackets import BracketScores, bracket_scores
from softcount.evaluate.branching import balanced, left_branching, random_tree, right_branching
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
    "BracketScores",
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
    "balanced",
    "bracket_scores",
    "completion",
    "completion_perplexity",
    "confusion",
    "diversity",
    "document_completion",
    "held_out",
    "induction_scores",
    "left_branching",
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
    "random_tree",
    "right_branching",
    "select",
    "split",
    "tag_scores",
    "umass",
    "v_measure",
]
