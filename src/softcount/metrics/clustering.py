"""How well found classes agree with gold ones.

Classes may have any names (numbers, strings, whatever can be a key of a dictionary). Found classes
need not be as many as gold ones. Items whose gold class is −1 or None (unknown) are left out.
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
    """All figures at once; ``print`` shows them as a table.

    ``n``              items with a known gold class, the only ones counted
    ``unknown``        items left out, because their gold class is unknown
    ``found_classes``  how many found classes these items have
    ``gold_classes``   how many gold classes they have
    ``majority``       share of the largest gold class: what one class for all would reach
    ``many_to_one``    accuracy with each found class called after its most frequent gold class
    ``one_to_one``     accuracy under the best one-to-one matching
    ``homogeneity``    1 if every found class holds items of one gold class only
    ``completeness``   1 if every gold class lies within one found class
    ``v_measure``      their harmonic mean
    ``adjusted_rand``  agreement about pairs of items; 0 is chance, 1 is perfect
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
    """Every figure of this module.

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
    pair = _compare(found, gold)
    counts = pair.counts()
    homogeneity, completeness, v = _entropies(pair)
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
    """Share of items that belong to the most frequent gold class of their found class.

    Σ_k max_c n_kc / n. It grows with the number of found classes and is 1 when every item has a
    class of its own: compare it only between equally many classes.

    >>> purity("aaabb", "xxyyy")
    0.8
    """
    return _share_of_largest(_compare(found, gold).counts())


def many_to_one_map(found: Labels, gold: Labels) -> dict[Any, Any]:
    """The most frequent gold class of each found class; of equals, the one that came first.

    >>> many_to_one_map([0, 0, 0, 1, 2], ["noun", "noun", "verb", "verb", "noun"])
    {0: 'noun', 1: 'verb', 2: 'noun'}
    """
    pair = _compare(found, gold)
    best = pair.counts().argmax(axis=1)
    return {name: pair.gold_names[c] for name, c in zip(pair.found_names, best, strict=True)}


def many_to_one(
    found: Labels, gold: Labels, mapping: Mapping[Any, Hashable] | None = None
) -> float:
    """Accuracy with each found class called after a gold class.

    ``mapping`` says after which; without it, after its most frequent one on these very items, which
    makes it the same as `purity`. A mapping from other items (`many_to_one_map`) gives an accuracy
    that does not grow by itself with the number of classes. Found classes that the mapping does not
    know count as wrong.

    >>> many_to_one([0, 1, 1, 2], ["noun", "verb", "noun", "noun"], {0: "noun", 1: "verb"})
    0.5
    """
    if mapping is None:
        return purity(found, gold)
    pair = _compare(found, gold)
    number = {name: c for c, name in enumerate(pair.gold_names)}
    called = [number.get(mapping.get(name), -1) for name in pair.found_names]
    return float(np.mean(np.array(called)[pair.found] == pair.gold))


def one_to_one(found: Labels, gold: Labels) -> float:
    """Accuracy under the best matching of found classes with gold classes, one to one.

    max over injections m of Σ_k n_{k,m(k)} / n, by the Hungarian algorithm. Items of classes that
    get no partner, because the other side has fewer, count as wrong.

    >>> one_to_one("aabbc", "xyyyx")
    0.6
    """
    return _share_of_matched(_compare(found, gold).counts())


def matching(found: Labels, gold: Labels) -> dict[Any, Any]:
    """The pairs behind `one_to_one`, found class → gold class; only those that share an item.

    >>> matching("aabbbc", "xyyyyx")
    {'a': 'x', 'b': 'y'}
    """
    pair = _compare(found, gold)
    counts = pair.counts()
    return {
        pair.found_names[k]: pair.gold_names[c]
        for k, c in zip(*linear_sum_assignment(counts, maximize=True), strict=True)
        if counts[k, c]
    }


def v_measure(found: Labels, gold: Labels) -> float:
    """Harmonic mean of homogeneity and completeness (Rosenberg & Hirschberg 2007).

    h = 1 − H(gold | found) / H(gold), c = 1 − H(found | gold) / H(found), V = 2hc / (h + c).

    >>> round(v_measure("aabb", "xxyz"), 3)
    0.8
    """
    return _entropies(_compare(found, gold))[2]


def nmi(found: Labels, gold: Labels) -> float:
    """Mutual information over the mean of the two entropies, 2 I / (H(found) + H(gold)).

    With this, the arithmetic mean, it is the same number as `v_measure`.

    >>> round(nmi("aabb", "xxyz"), 3)
    0.8
    """
    pair = _compare(found, gold)
    return _at_most_one(normalized_mutual_info_score(pair.gold, pair.found))


def adjusted_rand(found: Labels, gold: Labels) -> float:
    """Share of pairs of items judged alike, corrected for chance (Hubert & Arabie 1985).

    1 is perfect, 0 is what chance gives; it can be negative.

    >>> adjusted_rand("aabb", "yyxx"), adjusted_rand("abab", "xxyy")
    (1.0, -0.5)
    """
    pair = _compare(found, gold)
    return float(adjusted_rand_score(pair.gold, pair.found))


class _Contingency(NamedTuple):
    """Two labellings of the same items, as numbers in the order in which classes first occur."""

    found: IntArray  # (items,)
    gold: IntArray  # (items,)
    found_names: list[Hashable]
    gold_names: list[Hashable]
    unknown: int

    def counts(self) -> IntArray:
        """n_kc: how many items found class k and gold class c share."""
        shape = len(self.found_names), len(self.gold_names)
        flat = np.bincount(self.found * shape[1] + self.gold, minlength=shape[0] * shape[1])
        return flat.reshape(shape)


def _compare(found: Labels, gold: Labels) -> _Contingency:
    ours, theirs = _as_list(found, "found"), _as_list(gold, "gold")
    if len(ours) != len(theirs):
        raise DataError(
            f"{len(ours)} found classes for {len(theirs)} gold classes",
            "give one of each for every item, in the same order; −1 or None is unknown gold",
        )
    if not theirs:
        raise DataError("there are no items to compare", "give one found and one gold class each")
    kept = [i for i, label in enumerate(theirs) if not is_unknown(label)]
    if not kept:
        raise DataError(
            f"the gold class of all {len(theirs)} items is unknown (−1 or None)",
            "at least one item must have a known gold class",
        )
    found_numbers, found_names = numbered([ours[i] for i in kept], "found")
    gold_numbers, gold_names = numbered([theirs[i] for i in kept], "gold")
    unknown = len(theirs) - len(kept)
    return _Contingency(found_numbers, gold_numbers, found_names, gold_names, unknown)


def is_unknown(label: Hashable) -> bool:
    """Whether a gold label says that nobody knows: −1 or None."""
    return label is None or (isinstance(label, int | float | np.number) and label == -1)


def _as_list(labels: Any, side: str) -> list[Hashable]:
    shape = np.shape(labels) if hasattr(labels, "shape") else (0,)
    if len(shape) != 1:
        raise DataError(
            f"the {side} classes are an array of shape {shape}",
            "give one class for every item; of posteriors, take argmax(axis=1)",
        )
    if not isinstance(labels, Iterable):
        raise DataError(f"the {side} classes are {brief(labels)}", "give a list, a class an item")
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def numbered(labels: list[Hashable], side: str) -> tuple[IntArray, list[Hashable]]:
    """Labels as numbers, and their names, in the order in which they first occur."""
    try:
        names = list(dict.fromkeys(labels))
    except TypeError:
        # a tuple of lists, for one, cannot be hashed, though tuples can
        for label in labels:
            try:
                hash(label)
            except TypeError:
                raise DataError(
                    f"a {side} class is {brief(label)}, which cannot be the name of a class",
                    "use a number, a string, or a tuple",
                ) from None
        raise
    if any(isinstance(name, float | np.floating) and name != name for name in names):
        raise DataError(
            f"a {side} class is NaN, which is not even equal to itself",
            "an unknown gold class is −1 or None",
        )
    number = {name: n for n, name in enumerate(names)}
    return np.array([number[label] for label in labels], dtype=np.int64), names


def _share_of_largest(counts: IntArray) -> float:
    return float(counts.max(axis=1).sum() / counts.sum())


def _share_of_matched(counts: IntArray) -> float:
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / counts.sum())


def _entropies(pair: _Contingency) -> tuple[float, float, float]:
    """Homogeneity, completeness, V-measure."""
    h, c, v = homogeneity_completeness_v_measure(pair.gold, pair.found)
    return _at_most_one(h), _at_most_one(c), _at_most_one(v)


def _at_most_one(figure: float) -> float:
    """Without what rounding put above 1."""
    return min(1.0, float(figure))
