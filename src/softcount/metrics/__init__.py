"""Evaluation: found classes beside gold ones, unseen data, number of classes, topics, rankings,
word alignments, tags, trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.align.metrics import AlignmentScores, aer, align_scores
    from softcount.grammar.metrics import (
        BracketScores,
        balanced,
        bracket_scores,
        left_branching,
        random_tree,
        right_branching,
    )
    from softcount.hmm.metrics import (
        Confusion,
        InductionScores,
        TagScores,
        confusion,
        induction_scores,
        mapping,
        tag_scores,
    )
    from softcount.metrics.clustering import (
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
    from softcount.metrics.likelihood import (
        HeldOut,
        document_completion,
        held_out,
        perplexity,
        split,
    )
    from softcount.metrics.selection import Selection, select
    from softcount.topics.metrics import (
        Coherence,
        Completion,
        average_precision,
        completion,
        completion_perplexity,
        diversity,
        mean_average_precision,
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
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.align.metrics": (
            "AlignmentScores",
            "aer",
            "align_scores",
        ),
        "softcount.grammar.metrics": (
            "BracketScores",
            "balanced",
            "bracket_scores",
            "left_branching",
            "random_tree",
            "right_branching",
        ),
        "softcount.hmm.metrics": (
            "Confusion",
            "InductionScores",
            "TagScores",
            "confusion",
            "induction_scores",
            "mapping",
            "tag_scores",
        ),
        "softcount.metrics.clustering": (
            "Agreement",
            "adjusted_rand",
            "agreement",
            "many_to_one",
            "many_to_one_map",
            "matching",
            "nmi",
            "one_to_one",
            "purity",
            "v_measure",
        ),
        "softcount.metrics.likelihood": (
            "HeldOut",
            "document_completion",
            "held_out",
            "perplexity",
            "split",
        ),
        "softcount.metrics.selection": (
            "Selection",
            "select",
        ),
        "softcount.topics.metrics": (
            "Coherence",
            "Completion",
            "average_precision",
            "completion",
            "completion_perplexity",
            "diversity",
            "mean_average_precision",
            "npmi",
            "umass",
        ),
    },
)
