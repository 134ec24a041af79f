"""Word alignments beside gold ones: precision, recall, F1, and the alignment error rate.

With A the links found, S the sure and P ⊇ S the possible gold links, counted over the whole corpus
(Och & Ney 2003):

    precision = |A ∩ P| / |A|        recall = |A ∩ S| / |S|
    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

A fraction without a denominator says that there is nothing to be wrong about: where nothing is
found, precision is 1; where nothing is sure, recall is 1; where neither, AER is 0. So no figure is
ever NaN, and AER = 1 − F1 wherever all gold links are sure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from softcount.core.errors import DataError
from softcount.text.links import Link, Links


@dataclass(frozen=True)
class AlignmentScores:
    """How well links agree with gold ones.

    ``n_links``    how many links were found
    ``precision``  share of them that are possible
    ``recall``     share of the sure links that were found
    ``f1``         harmonic mean of the two; 0 if both are 0
    ``aer``        alignment error rate: smaller is better
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
    """Precision, recall, F1 and AER of a whole corpus.

    ``found``  the links of every pair: (source position, target position)
    ``gold``   what `softcount.text.links.read_links` reads, or plain links: all of them sure

    >>> gold = [Links(sure=[(0, 0), (1, 1)], possible=[(1, 2)])]
    >>> scores = align_scores([[(0, 0), (1, 2), (2, 2)]], gold)
    >>> scores.precision, scores.recall, scores.aer
    (0.666..., 0.5, 0.4)
    """
    ours = [set(map(tuple, links)) for links in found]
    theirs = [links if isinstance(links, Links) else Links(links) for links in gold]
    if len(ours) != len(theirs):
        raise DataError(
            f"links of {len(ours)} pairs for gold links of {len(theirs)}",
            "give the links of the same pairs in the same order; none is an empty list",
        )
    both = list(zip(ours, theirs, strict=True))
    n_found = sum(map(len, ours))
    n_sure = sum(len(links.sure) for links in theirs)
    hits_sure = sum(len(links & one.sure) for links, one in both)
    hits_possible = sum(len(links & one.possible) for links, one in both)
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
    """The alignment error rate of a whole corpus, as `align_scores` has it.

    >>> aer([[(0, 0)]], [[(0, 0), (1, 1)]])  # 1 − (1 + 1) / (1 + 2)
    0.333...
    """
    return align_scores(found, gold).aer
