"""Annotators as a mixture whose words are votes: emissions, known labels, initial parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from softcount.annotators.data import Ballots, is_missing, read_votes, sorted_classes
from softcount.annotators.paths import AGREES, Habits, Paths, make_paths
from softcount.core.errors import DataError
from softcount.core.model import check_possible
from softcount.core.types import (
    Array,
    Counts,
    EStep,
    FloatArray,
    IntArray,
    Params,
    Stats,
    Uncounted,
)
from softcount.families import Categorical
from softcount.families.base import Family
from softcount.kernels import posterior
from softcount.learners.base import Learner
from softcount.mixture.core import (
    IMPOSSIBLE,
    REMEDY,
    BagEmission,
    MixtureCore,
    fill,
)
from softcount.mixture.data import UNKNOWN, Labels, MixtureCorpus, MixtureShard, read_labels
from softcount.text.bags import Bags


class Confusions(Categorical):
    """Confusion matrices: a distribution over votes for each annotator and true label.

    True labels are indistinguishable if all annotators have the same distribution for them.
    """

    TOLERANCE = 1e-9

    def __init__(self, n_annotators: int, n_classes: int, prior: float | Array) -> None:
        super().__init__((n_annotators * n_classes, n_classes), prior)
        self.of_annotators = (n_annotators, n_classes, n_classes)

    def __reduce__(self) -> tuple[Any, ...]:  # rows are many, and all the same
        return type(self), (*self.of_annotators[:2], self.alpha)

    def alike(self, params: FloatArray) -> bool | None:
        if self.of_annotators[1] < 2:
            return None
        rows = params.reshape(self.of_annotators)
        return bool(np.all(np.abs(rows - rows[:, :1]) <= self.TOLERANCE))


class Voting(BagEmission):
    """Emission of votes: an item is a document whose words are pairs (annotator, label).

    log p(votes | k) = Σ_a Σ_l x_al log θ_akl. Unlike for documents, probabilities sum to one over
    the labels of each annotator, not over all words.
    """

    table = "confusion"
    family: Confusions

    def __init__(self, n_annotators: int, n_classes: int, prior: float | Array) -> None:
        self.family = Confusions(n_annotators, n_classes, prior)

    def joint(
        self, params: FloatArray, x: Bags, log_weights: FloatArray, threads: int, floor: float
    ) -> FloatArray:
        A, K, _ = self.family.of_annotators
        # a row for each true label: (classes, annotators · votes)
        by_class = params.reshape(A, K, -1).transpose(1, 0, 2).reshape(K, -1)
        return super().joint(by_class, x, log_weights, threads, floor)

    def counts(self, x: Bags, posteriors: FloatArray, threads: int) -> FloatArray:
        A, K, _ = self.family.of_annotators
        by_class = np.asarray(super().counts(x, posteriors, threads)).reshape(K, A, -1)
        return np.ascontiguousarray(by_class.transpose(1, 0, 2)).reshape(A * K, -1)

    def generate(
        self, params: FloatArray, classes: IntArray, rng: np.random.Generator, size: Any
    ) -> Any:
        """Draw a label for each vote; ``size`` is (items, annotators), arrays over the votes."""
        items, annotators = size
        probabilities = params.reshape(self.family.of_annotators)[annotators, classes[items]]
        cumulative = np.cumsum(probabilities, axis=1)
        drawn = rng.random(len(items)) * cumulative[:, -1]
        return (drawn[:, None] >= cumulative).sum(axis=1)


class VotingCore(MixtureCore):
    """The mixture of votes, with whatever else annotators do (`Habits`), and words beside votes.

    Votes that have one event each are `Bags`, and this is `MixtureCore`. `Ballots` have paths of
    events (`softcount.annotators.paths`): only the probabilities of votes, and the tables that get
    their counts, are different.
    """

    def __init__(
        self,
        habits: Habits,
        weights: Family,
        families: Mapping[str, Family],
        voting: Voting,
        learner: Learner,
        averages: bool,
        words: BagEmission | None = None,
    ) -> None:
        super().__init__("annotators", weights, voting, learner, averages)
        self.habits, self.words = habits, words
        self.families = {"weights": weights, **families}
        if words is not None:
            self.families["words"] = words.family

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_paths"}

    @cached_property
    def _paths(self) -> dict[tuple[tuple[int, ...], ...], Paths]:
        return {}

    def paths(self, sets: tuple[tuple[int, ...], ...]) -> Paths:
        """Return the paths to votes, with these sets of labels among them."""
        if sets not in self._paths:
            self._paths[sets] = make_paths(self.habits, sets)
        return self._paths[sets]

    def expect(self, params: Params, shard: MixtureShard, how: EStep, local: Any = None) -> Stats:
        x = shard.x
        if isinstance(x, Bags):
            return super().expect(params, shard, how, local)
        assert isinstance(x, Ballots)
        paths, hard = self.paths(x.sets), how.fill == "hard"
        weights = paths.weigh(params, how.temper)
        table = paths.best(weights) if hard else paths.add_up(weights)
        # tempered: log Σ_paths p^β, which is no multiple of log Σ_paths p
        joint = self._joint(params, table, x, how.threads, 0.0, how.temper)
        (group,) = shard.known.by_group()
        filled, logs, attained = fill(joint, group, shard.numbers, replace(how, temper=1.0))
        if hard or how.temper != 1.0:  # what was added up are not the probabilities of votes
            whole = self.joint(params, x, how.threads)
            logs = posterior.totals(whole, group.lower, group.upper)
            attained = logs if how.fill == "sample" else attained / how.temper
        check_possible(shard.numbers, logs, IMPOSSIBLE, REMEDY)
        counts: dict[str, Counts] = {}
        uncounted = Uncounted()
        if not how.score_only:
            cells = np.asarray(self.emission.counts(x.votes, filled, how.threads)).reshape(-1)
            if hard:
                taken = paths.give_to_best(cells, weights)
            elif how.fill == "soft":
                taken = paths.share_out(cells, weights)
            else:
                numbers = (shard.numbers, how.samples, how.stream)
                taken = paths.draw(x.votes, filled, weights, *numbers)
            counts = self._all_counts(x, filled, paths.count(taken), how.threads)
            if how.theory:
                factors = paths.log_factors(taken)
                uncounted = Uncounted(factors, factors)
        tokens = self.emission.tokens(x, shard.known.weights)
        items = float(group.weights.sum())
        return Stats(
            counts, float(logs.sum()), float(attained.sum()), items, tokens, uncounted=uncounted
        )

    def joint(self, params: Params, x: Any, threads: int = 1, floor: float = 0.0) -> FloatArray:
        if isinstance(x, Bags):
            return super().joint(params, x, threads, floor)
        paths = self.paths(x.sets)
        return self._joint(params, paths.add_up(paths.weigh(params)), x, threads, floor)

    def _joint(
        self,
        params: Params,
        table: FloatArray,
        x: Ballots,
        threads: int,
        floor: float,
        temper: float = 1.0,
    ) -> FloatArray:
        """Return β log p(class, votes, words), given p(vote)^β of all votes, (cells,)."""
        with np.errstate(divide="ignore"):
            logs = temper * np.log(np.maximum(params["weights"].reshape(-1), floor))
        joint = self.emission.joint(table, x.votes, logs, threads, floor)
        if self.words is not None and x.words is not None:
            none = np.zeros(len(logs))
            words = self.words.joint(params["words"], x.words, none, threads, floor)
            joint += words if temper == 1.0 else temper * words
        return joint

    def counts(self, x: Any, responsibilities: FloatArray, threads: int = 1) -> dict[str, Counts]:
        """Return the sufficient statistics; paths to a vote count as if all were as probable."""
        if isinstance(x, Bags):
            return super().counts(x, responsibilities, threads)
        paths = self.paths(x.sets)
        weights = paths.weigh({name: self.families[name].uniform() for name in paths.shapes})
        cells = np.asarray(self.emission.counts(x.votes, responsibilities, threads)).reshape(-1)
        taken = paths.share_out(cells, weights)
        return self._all_counts(x, responsibilities, paths.count(taken), threads)

    def _all_counts(
        self, x: Ballots, responsibilities: FloatArray, events: Mapping[str, Counts], threads: int
    ) -> dict[str, Counts]:
        weights = np.ones((1, len(responsibilities))) @ responsibilities
        counts: dict[str, Counts] = {"weights": weights, **events}
        if self.words is not None:
            if x.words is None:
                counts["words"] = self.words.family.zeros()
            else:
                counts["words"] = self.words.counts(x.words, responsibilities, threads)
        return counts


def read_known(y: Any, items: Sequence[Any]) -> Labels | None:
    """Read the known labels of items: a label for each (−1, None or NaN: unknown), or a mapping
    {item: label}.

    Returns None if no label is known. Items of a mapping without votes are left out.
    """
    if y is None:
        return None
    if isinstance(y, Mapping):
        given = [y.get(item) for item in items]
        if y and not any(item in y for item in items):
            raise DataError(
                f"none of the {len(y):,} items in y has votes",
                "use the same item names in y as in the votes",
            )
    elif isinstance(y, np.ndarray) and y.dtype.kind in "US" and (y == str(UNKNOWN)).any():
        raise DataError(
            "a label is the text '-1', which numpy makes of a −1 among texts",
            "give None for unknown labels, or a list instead of an array",
        )
    else:
        given = list(y.tolist() if hasattr(y, "tolist") else y)
    if all(map(is_missing, given)) and len(given) == len(items):
        return None
    labels = read_labels([None if is_missing(label) else label for label in given], len(items))
    if labels.soft_labels is not None:
        raise DataError(
            "y has a distribution over classes for each item",
            "give one label per item; −1 if it is unknown",
        )
    return labels


def majority_vote(votes: Any) -> dict[Any, Any]:
    """Return the majority label of each item; ties: the first in sorted order; no votes: None.

    ``votes``  in any form that `Annotators` takes; a set of labels is a fraction of a vote for each

    >>> majority_vote([("s1", "ann", "yes"), ("s1", "bob", "no"), ("s1", "eve", "yes")])
    {'s1': 'yes'}
    """
    read = read_votes(votes)
    classes = sorted_classes(read.single_labels())
    if not len(classes):
        return dict.fromkeys(read.items)
    shares = np.zeros((len(read.labels), len(classes)))
    for row, label in zip(shares, read.labels, strict=True):
        members = list(label) if isinstance(label, frozenset) else [label]
        row[np.searchsorted(classes, members)] = 1.0 / len(members)
    counts = np.zeros((len(read.items), len(classes)))
    np.add.at(counts, read.of_item, shares[read.of_label])
    chosen, n_votes = classes[counts.argmax(axis=1)].tolist(), counts.max(axis=1).tolist()
    return {
        item: label if n else None
        for item, label, n in zip(read.items, chosen, n_votes, strict=True)
    }


# Initial parameters

HARDLY = 1e-3
"""Weight of an item of unknown label in the initial parameters from known labels."""


def start_majority(core: MixtureCore, items: MixtureCorpus, rng: np.random.Generator) -> Params:
    """Initial parameters from the proportions of votes of each item (Dawid & Skene 1979, §4).

    Items whose label is known have responsibility 1 for it; items without votes are ignored.
    """
    return _start(core, items, rng, vote_shares(items.x, core.n_classes))


def start_known(core: MixtureCore, items: MixtureCorpus, rng: np.random.Generator) -> Params:
    """Initial parameters from items of known label; others count, with a tiny weight, by votes.

    Without that tiny weight, an annotator with few known items could make an item impossible.
    """
    return _start(core, items, rng, HARDLY * vote_shares(items.x, core.n_classes))


def start_random(core: MixtureCore, items: MixtureCorpus, rng: np.random.Generator) -> Params:
    """Initial parameters from half proportions of votes, half random responsibilities.

    The votes are there so that labels keep their names.
    """
    K = core.n_classes
    drawn = rng.dirichlet(np.ones(K), size=len(items))
    return _start(core, items, rng, (vote_shares(items.x, K) + drawn) / 2.0)


def _start(
    core: MixtureCore, items: MixtureCorpus, rng: np.random.Generator, responsibilities: FloatArray
) -> Params:
    """Return the M-step for these responsibilities (items, classes), 1 for the known labels."""
    lower, upper = items.known.lower, items.known.upper
    known = np.flatnonzero(upper - lower == 1)
    responsibilities[known] = 0.0
    responsibilities[known, lower[known]] = 1.0
    return core.from_responsibilities(items.x, responsibilities, rng)


def vote_shares(x: Any, n_classes: int) -> FloatArray:
    """Return the proportions of each item's votes, (items, classes); zeros without votes."""
    if isinstance(x, Ballots):
        labels = x.labels_of_columns(n_classes)
        if x.n_states > 1:  # a vote that may be a copy does not count: many copies are one vote
            n_said = n_classes + int(x.silent) + len(x.sets)
            labels[np.arange(len(labels)) // n_said % x.n_states == AGREES] = 0.0
        of_labels: FloatArray = x.votes.matrix @ labels
        proportions: FloatArray = of_labels / np.maximum(of_labels.sum(axis=1, keepdims=True), 1.0)
        return proportions
    assert isinstance(x, Bags)
    rows = x.by_document
    items = np.repeat(np.arange(len(x)), np.diff(rows.indptr))
    cells = items * n_classes + rows.columns % n_classes
    votes = np.bincount(cells, rows.value, minlength=len(x) * n_classes).reshape(-1, n_classes)
    shares: FloatArray = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
    return shares
