"""The E-step of multiple-instance learning: a bag is positive if one of its instances is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from softcount.core.errors import brief
from softcount.core.model import Model, check_possible
from softcount.core.types import Array, Counts, EStep, FloatArray, IntArray, Params, Stats
from softcount.families import Categorical
from softcount.families.base import Family
from softcount.instances import kernels
from softcount.mixture.core import FLOOR, BagEmission
from softcount.text.bags import Bags
from softcount.text.shards import cut_by_work, split_items

MOST_ENTRIES = 1 << 22
"""The largest number of entries (instance, word) in a shard."""
WHY = "has probability zero"
REMEDY = "smooth the model (smoothing=0.1), or check the known labels of its instances"


@dataclass(frozen=True, eq=False)
class BagShard:
    """Bags of instances, and what is known of their labels.

    ``numbers``  the bags' numbers, (bags,)
    ``indptr``   instances of bag b are ``indptr[b]`` to ``indptr[b + 1]``, (bags + 1,)
    ``x``        words of the instances
    ``labels``   1: at least one instance is positive; 0: none; −1: unknown, (bags,)
    ``known``    the same for single instances, (instances,)
    """

    numbers: IntArray
    indptr: IntArray
    x: Bags
    labels: IntArray
    known: IntArray

    def __len__(self) -> int:
        return len(self.numbers)

    def free(self) -> BagShard:
        """Return the same bags, of which nothing is known."""
        return replace(
            self,
            labels=np.full(len(self.labels), kernels.UNKNOWN),
            known=np.full(len(self.known), kernels.UNKNOWN),
        )


@dataclass(frozen=True, eq=False)
class BagCorpus:
    """All bags, as a corpus.

    ``whole``  all of them as one shard
    ``names``  their names
    """

    whole: BagShard
    names: Array

    def __len__(self) -> int:
        return len(self.whole)

    def name(self, number: int) -> str:
        """Return the name of a bag for messages."""
        return f"bag {brief(self.names.tolist()[number])}"

    def take(self, bags: IntArray) -> BagShard:
        """Return the given bags."""
        whole = self.whole
        sizes = np.diff(whole.indptr)[bags]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(whole.indptr[bags] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return BagShard(bags, indptr, whole.x.take(rows), whole.labels[bags], whole.known[rows])

    def shards(self, batch_size: int | None, seed: int) -> Sequence[BagShard]:
        """Cut the bags into shards."""
        if batch_size is not None:
            parts = split_items(len(self), len(self), batch_size, seed)
            return [self.take(part) for part in parts]
        entries = np.diff(self.whole.x.by_document.indptr[self.whole.indptr])
        runs = cut_by_work(entries + 1, MOST_ENTRIES)
        if len(runs) == 1:
            return [self.whole]
        return [self.take(np.arange(*run)) for run in runs]


class BagCore(Model):
    """Instances from two classes of words; the label of a bag says whether one is positive.

    Plain: a bag is positive if at least one instance is. Noisy or: a positive instance triggers
    with probability ρ, a bag is positive if at least one triggers, or by itself with the
    probability of a leak. States of an instance are negative, (noisy: positive, but no trigger,)
    and active.
    """

    def __init__(self, n_words: int, priors: Params, noisy: bool) -> None:
        self.name, self.noisy = "multiple-instance naive bayes", noisy
        self.words = BagEmission(2, n_words, priors["words"])
        self.families: dict[str, Family] = {
            "weights": Categorical((1, 2), priors["weights"]),
            "words": self.words.family,
        }
        if noisy:
            for table in ("triggers", "leak"):
                self.families[table] = Categorical((1, 2), priors[table])

    def joint(
        self, params: Params, shard: BagShard, threads: int, floor: float = 0.0
    ) -> tuple[FloatArray, IntArray]:
        """Return log p(state, words) of instances, a leak last in each bag, and where bags end.

        (rows, states); without noise the rows are the instances.
        """
        with np.errstate(divide="ignore"):
            logs = {
                name: np.log(np.maximum(np.asarray(params[name]).reshape(-1), floor))
                for name in self.families
                if name != "words"
            }
        classes = self.words.joint(params["words"], shard.x, logs["weights"], threads, floor)
        classes[shard.known == kernels.POSITIVE, 0] = -np.inf
        classes[shard.known == kernels.NEGATIVE, 1] = -np.inf
        if not self.noisy:
            return classes, shard.indptr
        silent, triggers = logs["triggers"]
        states = np.column_stack([classes[:, 0], classes[:, 1] + silent, classes[:, 1] + triggers])
        none, leak = logs["leak"]
        ends = shard.indptr[1:]
        rows = np.insert(states, ends, [none, -np.inf, leak], axis=0)
        return rows, shard.indptr + np.arange(len(shard.indptr))

    def expect(self, params: Params, shard: BagShard, how: EStep, local: Any = None) -> Stats:
        joint, indptr = self.joint(params, shard, how.threads)
        filled, logs, attained = self._fill(joint, indptr, shard, how)
        check_possible(shard.numbers, logs, WHY, REMEDY)
        counts: dict[str, Counts] = {}
        if not how.score_only:
            counts = self._count(filled, indptr, shard, how.threads)
        tokens = float(shard.x.lengths.sum())
        return Stats(counts, float(logs.sum()), float(attained.sum()), float(len(shard)), tokens)

    def _fill(
        self, joint: FloatArray, indptr: IntArray, shard: BagShard, how: EStep
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return posteriors of states, log-likelihoods of bags, and terms of the objective."""
        out = np.empty_like(joint)
        logs = kernels.soft(joint, indptr, shard.labels, out)
        if how.fill == "hard":
            return out, logs, kernels.hard(joint, indptr, shard.labels, out)
        attained = logs
        if how.temper != 1.0:
            joint = how.temper * joint
            attained = kernels.soft(joint, indptr, shard.labels, out) / how.temper
        if how.fill == "soft":
            return out, logs, attained
        stream = np.uint64(how.stream)
        kernels.draw(joint, indptr, shard.labels, shard.numbers, stream, how.samples, out)
        return out, logs, logs

    def _count(
        self, filled: FloatArray, indptr: IntArray, shard: BagShard, threads: int
    ) -> dict[str, Counts]:
        if not self.noisy:
            return self.count_classes(shard.x, filled, threads)
        leaks = indptr[1:] - 1
        states = np.delete(filled, leaks, axis=0)
        classes = np.column_stack([states[:, 0], states[:, 1:].sum(axis=1)])
        ones = np.ones((1, len(states)))
        return {
            **self.count_classes(shard.x, classes, threads),
            "triggers": ones @ states[:, 1:],
            "leak": np.ones((1, len(leaks))) @ filled[leaks][:, [0, 2]],
        }

    def count_classes(self, x: Bags, r: FloatArray, threads: int = 1) -> dict[str, Counts]:
        """Return the counts of classes and their words, given responsibilities (instances, 2)."""
        return {"weights": np.ones((1, len(r))) @ r, "words": self.words.counts(x, r, threads)}

    # predictions
    def instance_posteriors(
        self, params: Params, shard: BagShard, how: EStep, local: Any = None
    ) -> FloatArray:
        """Return p(positive | words, what is known of the bag) of each instance, (instances,)."""
        joint, indptr = self.joint(params, shard, how.threads, FLOOR)
        out = np.empty_like(joint)
        kernels.soft(joint, indptr, shard.labels, out)
        if self.noisy:
            out = np.delete(out, indptr[1:] - 1, axis=0)
        positive: FloatArray = out[:, 1:].sum(axis=1)
        return positive

    def bag_posteriors(
        self, params: Params, shard: BagShard, how: EStep, local: Any = None
    ) -> FloatArray:
        """Return p(bag is positive | words of its instances) of each bag, (bags,)."""
        joint, indptr = self.joint(params, shard, how.threads, FLOOR)
        some = np.full(len(joint) + 1, -np.inf)
        for first, last in pairwise(indptr):
            kernels.one_active(joint, first, last, some)
        starts = np.where(np.diff(indptr) > 0, indptr[:-1], len(joint))
        positive: FloatArray = np.exp(some[starts])
        return positive

    def log_likelihoods(
        self, params: Params, shard: BagShard, how: EStep, local: Any = None
    ) -> FloatArray:
        """Return log p(words, what is known) of each bag, (bags,)."""
        joint, indptr = self.joint(params, shard, how.threads)
        return np.asarray(kernels.soft(joint, indptr, shard.labels, np.empty_like(joint)))
