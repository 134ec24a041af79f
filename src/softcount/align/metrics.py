"""Evaluation of word alignments: precision, recall, F1, and the alignment error rate (AER).

With A the predicted links, S the sure and P ⊇ S the possible gold links, counted over the whole
corpus (Och & Ney 2003):

    precision = |A ∩ P| / |A|        recall = |A ∩ S| / |S|
    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

If a denominator is 0, there is nothing to be wrong about: without predicted links precision is 1,
without sure links recall is 1, without either AER is 0. So no score is ever NaN, and AER = 1 − F1
whenever all gold links are sure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from softcount.core.errors import DataError
from softcount.text.links import Link, Links


@dataclass(frozen=True)
class AlignmentScores:
    """Scores of predicted links against gold links.

    ``n_links``    the number of predicted links
    ``precision``  the fraction of predicted links that are possible gold links
    ``recall``     the fraction of sure gold links that are predicted
    ``f1``         the harmonic mean of the two; 0 if both are 0
    ``aer``        the alignment error rate: lower is better
    """

    n_links: int
    precision: float
    recall: float
    f1: float
    aer: float

    def __str__(self) -> str:
        return (
            f"AER {100 * self.aer:.1f}, precision {100 * self.precision:.1f}, "
            f"recall {100 * self.recall:.1f}, F1 {100 * self.f1:.1f} ({self.n_links} links)"
        )


def align_scores(
    found: Iterable[Iterable[Link]], gold: Iterable[Links | Iterable[Link]]
) -> AlignmentScores:
    """Compute precision, recall, F1 and AER of a whole corpus.

    ``found``  the predicted links of every pair: (source position, target position)
    ``gold``   the result of `softcount.text.links.read_links`, or lists of links, all of them sure

    >>> gold = [Links(sure=[(0, 0), (1, 1)], possible=[(1, 2)])]
    >>> scores = align_scores([[(0, 0), (1, 2), (2, 2)]], gold)
    >>> scores.precision, scores.recall, scores.aer
    (0.666..., 0.5, 0.4)
    """
    predicted = [set(map(tuple, links)) for links in found]
    reference = [links if isinstance(links, Links) else Links(links) for links in gold]
    if len(predicted) != len(reference):
        raise DataError(
            f"links of {len(predicted)} pairs for gold links of {len(reference)}",
            "give links of the same pairs in the same order, an empty list if a pair has none",
        )
    pairs = list(zip(predicted, reference, strict=True))
    n_found = sum(map(len, predicted))
    n_sure = sum(len(links.sure) for links in reference)
    hits_sure = sum(len(links & right.sure) for links, right in pairs)
    hits_possible = sum(len(links & right.possible) for links, right in pairs)
    precision = hits_possible / n_found if n_found else 1.0
    recall = hits_sure / n_sure if n_sure else 1.0
    total = precision + recall
    return AlignmentScores(
        n_links=n_found,
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / total if total else 0.0,
        aer=1 - (hits_sure + hits_possible) / (n_found + n_sure) if n_found + n_sure else 0.0,
    )


def aer(found: Iterable[Iterable[Link]], gold: Iterable[Links | Iterable[Link]]) -> float:
    """Compute the alignment error rate of a whole corpus: see `align_scores`.

    >>> aer([[(0, 0)]], [[(0, 0), (1, 1)]])  # 1 − (1 + 1) / (1 + 2)
    0.333...
    """
    return align_scores(found, gold).aer
