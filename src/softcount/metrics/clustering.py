"""Clustering evaluation: how well predicted ("found") classes agree with gold classes.

Classes may have any hashable names (numbers, strings, …). The number of found classes may differ
from that of gold classes. Items whose gold class is unknown (−1 or None) are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import (
    adjusted_rand_score,
    homogeneity_completeness_v_measure,
    normalized_mutual_info_score,
)

from softcount.core.errors import DataError, brief
from softcount.core.types import IntArray

Labels = Iterable[Hashable]


@dataclass(frozen=True)
class Agreement:
    """All measures of agreement; ``print`` shows them as a table.

    ``n``              number of items with a known gold class; only these are counted
    ``unknown``        number of items left out because their gold class is unknown
    ``found_classes``  number of found classes among the items counted
    ``gold_classes``   number of gold classes among the items counted
    ``majority``       share of the largest gold class: the accuracy of a single class for all items
    ``many_to_one``    accuracy when each found class is mapped to its most frequent gold class
    ``one_to_one``     accuracy under the best one-to-one matching
    ``homogeneity``    1 if every found class holds items of one gold class only
    ``completeness``   1 if every gold class lies within one found class
    ``v_measure``      harmonic mean of homogeneity and completeness
    ``adjusted_rand``  agreement on pairs of items; 0 is expected by chance, 1 is perfect
    """

    n: int
    unknown: int
    found_classes: int
    gold_classes: int
    majority: float
    many_to_one: float
    one_to_one: float
    homogeneity: float
    completeness: float
    v_measure: float
    adjusted_rand: float

    @property
    def purity(self) -> float:
        """The same as ``many_to_one``."""
        return self.many_to_one

    @property
    def nmi(self) -> float:
        """The same as ``v_measure``."""
        return self.v_measure

    def __str__(self) -> str:
        rows = {
            "majority baseline": self.majority,
            "many-to-one (purity)": self.many_to_one,
            "one-to-one": self.one_to_one,
            "homogeneity": self.homogeneity,
            "completeness": self.completeness,
            "V-measure (NMI)": self.v_measure,
            "adjusted Rand": self.adjusted_rand,
        }
        head = f"{self.n} items, {self.found_classes} found classes, {self.gold_classes} gold"
        if self.unknown:
            head += f" (left out, their gold class being unknown: {self.unknown})"
        return "\n".join([head, *(f"  {name:<21}{figure:7.3f}" for name, figure in rows.items())])


def agreement(found: Labels, gold: Labels) -> Agreement:
    """Compute all measures of this module.

    >>> print(agreement([0, 0, 1, 1, 1], ["noun", "noun", "verb", "noun", None]))
    4 items, 2 found classes, 2 gold (left out, their gold class being unknown: 1)
      majority baseline      0.750
      many-to-one (purity)   0.750
      one-to-one             0.750
      homogeneity            0.384
      completeness           0.311
      V-measure (NMI)        0.344
      adjusted Rand          0.000
    """
    pair = _cross_tabulate(found, gold)
    counts = pair.counts()
    homogeneity, completeness, v = _compute_v_measure(pair)
    return Agreement(
        n=len(pair.gold),
        unknown=pair.unknown,
        found_classes=len(pair.found_names),
        gold_classes=len(pair.gold_names),
        majority=float(counts.sum(axis=0).max() / len(pair.gold)),
        many_to_one=_share_of_largest(counts),
        one_to_one=_share_of_matched(counts),
        homogeneity=homogeneity,
        completeness=completeness,
        v_measure=v,
        adjusted_rand=float(adjusted_rand_score(pair.gold, pair.found)),
    )


def purity(found: Labels, gold: Labels) -> float:
    """Return the share of items that belong to the most frequent gold class of their found class.

    Σ_k max_c n_kc / n. It grows with the number of found classes and is 1 when every item has a
    class of its own: compare it only between clusterings with the same number of classes.

    >>> purity("aaabb", "xxyyy")
    0.8
    """
    return _share_of_largest(_cross_tabulate(found, gold).counts())


def many_to_one_map(found: Labels, gold: Labels) -> dict[Any, Any]:
    """Map each found class to its most frequent gold class; of ties, the one that occurs first.

    >>> many_to_one_map([0, 0, 0, 1, 2], ["noun", "noun", "verb", "verb", "noun"])
    {0: 'noun', 1: 'verb', 2: 'noun'}
    """
    pair = _cross_tabulate(found, gold)
    best = pair.counts().argmax(axis=1)
    return {name: pair.gold_names[c] for name, c in zip(pair.found_names, best, strict=True)}


def many_to_one(
    found: Labels, gold: Labels, mapping: Mapping[Any, Hashable] | None = None
) -> float:
    """Return the accuracy when each found class is mapped to a gold class.

    ``mapping``  found class → gold class; by default to the most frequent gold class on these same
                 items, which makes it equal to `purity`. A mapping from other items
                 (`many_to_one_map`) gives an accuracy that does not automatically grow with the
                 number of classes. Items of found classes missing from the mapping count as wrong.

    >>> many_to_one([0, 1, 1, 2], ["noun", "verb", "noun", "noun"], {0: "noun", 1: "verb"})
    0.5
    """
    if mapping is None:
        return purity(found, gold)
    pair = _cross_tabulate(found, gold)
    number = {name: c for c, name in enumerate(pair.gold_names)}
    mapped = [number.get(mapping.get(name), -1) for name in pair.found_names]
    return float(np.mean(np.array(mapped)[pair.found] == pair.gold))


def one_to_one(found: Labels, gold: Labels) -> float:
    """Return the accuracy under the best one-to-one matching of found classes to gold classes.

    max over injections m of Σ_k n_{k,m(k)} / n, by the Hungarian algorithm. If one side has fewer
    classes, the items of unmatched classes count as wrong.

    >>> one_to_one("aabbc", "xyyyx")
    0.6
    """
    return _share_of_matched(_cross_tabulate(found, gold).counts())


def matching(found: Labels, gold: Labels) -> dict[Any, Any]:
    """Return the matching behind `one_to_one`, found class → gold class, without pairs of classes
    that have no item in common.

    >>> matching("aabbbc", "xyyyyx")
    {'a': 'x', 'b': 'y'}
    """
    pair = _cross_tabulate(found, gold)
    counts = pair.counts()
    return {
        pair.found_names[k]: pair.gold_names[c]
        for k, c in zip(*linear_sum_assignment(counts, maximize=True), strict=True)
        if counts[k, c]
    }


def v_measure(found: Labels, gold: Labels) -> float:
    """Return the harmonic mean of homogeneity and completeness (Rosenberg & Hirschberg 2007).

    h = 1 − H(gold | found) / H(gold), c = 1 − H(found | gold) / H(found), V = 2hc / (h + c).

    >>> round(v_measure("aabb", "xxyz"), 3)
    0.8
    """
    return _compute_v_measure(_cross_tabulate(found, gold))[2]


def nmi(found: Labels, gold: Labels) -> float:
    """Return the normalised mutual information, 2 I / (H(found) + H(gold)).

    Normalised by the arithmetic mean of the entropies, as here, it equals `v_measure`.

    >>> round(nmi("aabb", "xxyz"), 3)
    0.8
    """
    pair = _cross_tabulate(found, gold)
    return _clip_at_one(normalized_mutual_info_score(pair.gold, pair.found))


def adjusted_rand(found: Labels, gold: Labels) -> float:
    """Return the adjusted Rand index (Hubert & Arabie 1985): the share of pairs of items on which
    both labellings agree, corrected for chance.

    1 is perfect, 0 is expected by chance; it can be negative.

    >>> adjusted_rand("aabb", "yyxx"), adjusted_rand("abab", "xxyy")
    (1.0, -0.5)
    """
    pair = _cross_tabulate(found, gold)
    return float(adjusted_rand_score(pair.gold, pair.found))


class _Contingency(NamedTuple):
    """Two labellings of the same items; classes are numbered in order of first occurrence."""

    found: IntArray  # (items,)
    gold: IntArray  # (items,)
    found_names: list[Hashable]
    gold_names: list[Hashable]
    unknown: int

    def counts(self) -> IntArray:
        """Return the contingency table n_kc: the items in both found class k and gold class c."""
        shape = len(self.found_names), len(self.gold_names)
        flat = np.bincount(self.found * shape[1] + self.gold, minlength=shape[0] * shape[1])
        return flat.reshape(shape)


def _cross_tabulate(found: Labels, gold: Labels) -> _Contingency:
    found_labels, gold_labels = _as_list(found, "found"), _as_list(gold, "gold")
    if len(found_labels) != len(gold_labels):
        raise DataError(
            f"{len(found_labels)} found classes for {len(gold_labels)} gold classes",
            "give one of each for every item, in the same order; −1 or None for unknown gold",
        )
    if not gold_labels:
        raise DataError(
            "there are no items to compare", "give a found and a gold class for each item"
        )
    kept = [i for i, label in enumerate(gold_labels) if not is_unknown(label)]
    if not kept:
        raise DataError(
            f"the gold class of all {len(gold_labels)} items is unknown (−1 or None)",
            "at least one item must have a known gold class",
        )
    found_numbers, found_names = numbered([found_labels[i] for i in kept], "found")
    gold_numbers, gold_names = numbered([gold_labels[i] for i in kept], "gold")
    unknown = len(gold_labels) - len(kept)
    return _Contingency(found_numbers, gold_numbers, found_names, gold_names, unknown)


def is_unknown(label: Hashable) -> bool:
    """Whether a gold label means "unknown": −1 or None."""
    return label is None or (isinstance(label, int | float | np.number) and label == -1)


def _as_list(labels: Any, side: str) -> list[Hashable]:
    shape = np.shape(labels) if hasattr(labels, "shape") else (0,)
    if len(shape) != 1:
        raise DataError(
            f"the {side} classes are an array of shape {shape}",
            "give one class for every item; for posteriors, use argmax(axis=1)",
        )
    if not isinstance(labels, Iterable):
        raise DataError(
            f"the {side} classes are {brief(labels)}", "give a list with one class for each item"
        )
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def numbered(labels: list[Hashable], side: str) -> tuple[IntArray, list[Hashable]]:
    """Return labels as numbers (items,), and their names in order of first occurrence."""
    try:
        names = list(dict.fromkeys(labels))
    except TypeError:
        # try each: a tuple of lists, for instance, is not hashable, although tuples can be
        for label in labels:
            try:
                hash(label)
            except TypeError:
                raise DataError(
                    f"a {side} class is {brief(label)}, which cannot be the name of a class",
                    "use a hashable value: a number, a string, or a tuple",
                ) from None
        raise
    if any(isinstance(name, float | np.floating) and name != name for name in names):
        raise DataError(
            f"a {side} class is NaN, which is not a valid class name",
            "write an unknown gold class as −1 or None",
        )
    number = {name: n for n, name in enumerate(names)}
    return np.array([number[label] for label in labels], dtype=np.int64), names


def _share_of_largest(counts: IntArray) -> float:
    return float(counts.max(axis=1).sum() / counts.sum())


def _share_of_matched(counts: IntArray) -> float:
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / counts.sum())


def _compute_v_measure(pair: _Contingency) -> tuple[float, float, float]:
    """Return homogeneity, completeness and V-measure."""
    h, c, v = homogeneity_completeness_v_measure(pair.gold, pair.found)
    return _clip_at_one(h), _clip_at_one(c), _clip_at_one(v)


def _clip_at_one(figure: float) -> float:
    """Clip a figure that rounding has put above 1."""
    return min(1.0, float(figure))
