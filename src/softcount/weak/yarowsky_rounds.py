"""The rounds of bootstrapping: rules label items, and labelled items teach rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from softcount import interrupt
from softcount.models.mixture.labels import UNKNOWN
from softcount.types import Array
from softcount.weak.decision_list import Rules, Tally, learn
from softcount.weak.discourse import settle

MU, NU = 0.6, 0.01
"""How much neighbours, and uniformity, count in a step of propagation (Whitney & Sarkar 2012)."""
TIE = 1e-6
"""What strength counts beside a vote: enough to settle ties."""
NOBODY, GIVEN, DOCUMENT = -1, -2, -3


class Labelled(NamedTuple):
    """Items with labels (−1: none), how sure these are, and by whom.

    ``by`` is the number of the feature whose rule decided, or one of `NOBODY` (no label), `GIVEN`
    (known beforehand), `DOCUMENT` (others of the same document).
    """

    labels: Array
    confidence: Array
    by: Array


@dataclass(frozen=True)
class Caution:
    """How rules are taken: above which share, how much smoothed, and how many more each round.

    ``step`` is None if there is no limit.
    """

    threshold: float
    smoothing: float
    step: int | None


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """What stays the same over the rounds.

    ``items``      a `Compressed`: which features each item has
    ``given``      each item's label if it is known beforehand, −1 if not
    ``seeds``      rules that stay what they are
    ``views``      masks over features, one for each view; one of ones: no views
    ``documents``  the number of each item's document, and ``discourse`` the weight; or None
    """

    items: Any
    given: Array
    seeds: Rules
    n_classes: int
    caution: Caution
    views: Sequence[Array]
    propagating: bool = False
    documents: Array | None = None
    discourse: float = 0.0

    @property
    def n_features(self) -> int:
        return len(self.seeds.label)

    @interrupt.graceful()
    def run(self, max_rounds: int, record: Callable[[Labelled], None]) -> Rules:
        """Rounds until nothing changes, then a list of all rules that the last labels teach.

        As long as caution leaves rules out, the next round takes more, and may change something.
        """
        rules = [self.seeds.kept(view) for view in self.views]
        tallies = [Tally(self.items, self.n_features, self.n_classes) for _ in rules]
        seen: set[int] = set()
        found = self._labelled(self.seeds)
        record(found)
        for number in range(1, max_rounds + 1):
            alone = found if len(rules) == 1 else None
            changed, left_out = self._round(number, rules, tallies, alone)
            found = self._labelled(_merged(rules))
            record(found)
            state = hash(tuple(tally.labels.tobytes() for tally in tallies))
            if not left_out and (not changed or state in seen):  # a circle has no end
                break
            seen.add(state)
            if interrupt.asked():
                interrupt.tell(f"after {number:,} rounds: the rules learned by then are kept")
                break
        if max_rounds == 0:
            return self.seeds
        everything, _ = learn(tallies[0].of(found.labels), self.caution.smoothing)
        return everything.overridden(self.seeds)

    def _round(
        self, number: int, rules: list[Rules], tallies: list[Tally], alone: Labelled | None
    ) -> tuple[bool, bool]:
        """Each view labels items for the next one to learn from; one that is alone for itself."""
        changed = any_left_out = False
        most = None if self.caution.step is None else number * self.caution.step
        for view, tally in enumerate(tallies):
            found = self._labelled(rules[view]) if alone is None else alone
            changed |= not np.array_equal(found.labels, tally.labels)
            pupil = (view + 1) % len(rules)
            counts = tally.of(found.labels)
            if alone is None:
                counts = counts * self.views[pupil][:, None]
            learnt, left_out = learn(counts, self.caution.smoothing, self.caution.threshold, most)
            rules[pupil] = learnt.overridden(self.seeds.kept(self.views[pupil]))
            any_left_out |= left_out
        return changed, any_left_out

    def _labelled(self, rules: Rules) -> Labelled:
        return self._propagated(rules) if self.propagating else self.decided(rules)

    def decided(self, rules: Rules) -> Labelled:
        """Items labelled by their strongest rules, and by documents."""
        found = rules.decide(self.items)
        return self._settled(Labelled(found.labels, found.strength, found.features))

    def _settled(self, found: Labelled) -> Labelled:
        """What is known stays; then documents have their say."""
        labels, confidence, by = found
        known = self.given != UNKNOWN
        labels = np.where(known, self.given, labels)
        confidence = np.where(known, 1.0, confidence)
        by = np.where(known, GIVEN, by)
        if self.documents is None or not self.discourse:
            return Labelled(labels, confidence, by)
        said = settle(labels, confidence, self.documents, self.discourse, self.n_classes)
        labels = np.where(known, self.given, said.labels)
        chosen = said.shares[np.arange(len(labels)), np.maximum(labels, 0)]
        confidence = np.where(known | (labels == UNKNOWN), confidence, chosen)
        return Labelled(labels, confidence, np.where(said.moved & ~known, DOCUMENT, by))

    # Whitney & Sarkar's graph of features and items
    @cached_property
    def _matrix(self) -> Any:
        ones = np.ones(len(self.items.columns))
        shape = (len(self.items.indptr) - 1, self.n_features)
        return sparse.csr_matrix((ones, self.items.columns, self.items.indptr), shape=shape)

    @cached_property
    def _votes(self) -> Tally:
        return Tally(self.items, self.n_features, self.n_classes)

    @cached_property
    def _degrees(self) -> Array:
        return np.bincount(self.items.columns, minlength=self.n_features)

    def _propagated(self, rules: Rules) -> Labelled:
        """Items that have rules get the labels that all their features, once smoothed, speak for.

        Every rule of an item has one vote for its label φ; if votes tie, strength decides. Then
        each feature f takes the mean of its items' labels, unlabelled ones counting as uniform:
        one step of propagation, θ_f = (μ Σ_{x ∋ f} φ_x + ν/K) / (μ |{x ∋ f}| + ν); and an item
        takes the label with the largest Σ_{f ∈ x} θ_f(k).
        """
        K = self.n_classes
        votes = np.zeros((self.n_features, K))
        votes[rules.order, rules.label[rules.order]] = 1.0 + TIE * rules.strength[rules.order]
        counted = self._matrix @ votes
        elected, most = _largest(counted)
        labels = np.where(most > 0.0, elected, UNKNOWN)
        labels = np.where(self.given != UNKNOWN, self.given, labels)
        counts = self._votes.of(labels)
        unlabelled = (self._degrees - counts.sum(axis=1))[:, None]
        shares = MU * (counts + unlabelled / K) + NU / K
        scores = self._matrix @ (shares / shares.sum(axis=1, keepdims=True))
        chosen, score = _largest(scores)  # of as many distributions as the item has features
        confidence = score / np.maximum(np.diff(self.items.indptr), 1)
        quiet = labels == UNKNOWN
        found = np.where(quiet, UNKNOWN, chosen)
        by = rules.decide(self.items).features
        return self._settled(Labelled(found, np.where(quiet, 0.0, confidence), by))


def _largest(scores: Array) -> tuple[Array, Array]:
    """Where each row is largest, and how large: by columns, of which there are few."""
    where = np.zeros(len(scores), np.int64)
    largest = scores[:, 0].copy()
    for k in range(1, scores.shape[1]):
        larger = scores[:, k] > largest
        where[larger] = k
        largest[larger] = scores[larger, k]
    return where, largest


def _merged(rules: Sequence[Rules]) -> Rules:
    """The rules of all views, which have no feature in common."""
    whole = rules[0]
    for more in rules[1:]:
        own = more.label != UNKNOWN
        whole = Rules(
            np.where(own, more.label, whole.label),
            np.where(own, more.strength, whole.strength),
            np.where(own, more.count, whole.count),
            np.where(own, more.total, whole.total),
        )
    return whole
