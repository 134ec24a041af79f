"""A mixture of bags of words, plain and written with care, for the laws to be tried on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy

from softcount.core.model import Model
from softcount.core.types import EStep, Stats
from softcount.families import Categorical

K, V = 2, 3


@dataclass(frozen=True)
class Bags:
    """Word counts of some items, and the items' numbers in the whole corpus."""

    words: np.ndarray
    number: np.ndarray


class BagCorpus:
    def __init__(self, words: np.ndarray) -> None:
        self.words = words

    def __len__(self) -> int:
        return len(self.words)

    def shards(self, batch_size: int | None, seed: int) -> list[Bags]:
        order = np.arange(len(self))
        if batch_size is not None:
            order = np.random.default_rng(seed).permutation(order)
        parts = [order[i : i + (batch_size or 5)] for i in range(0, len(order), batch_size or 5)]
        return [Bags(self.words[part], part) for part in parts]


class Mixture(Model):
    """P(words) = Σ_z theme[z] Π_w word[z, w]^n_w: plain, and written with care."""

    name = "mixture"

    def __init__(self) -> None:
        self.families: dict[str, Any] = {
            "theme": Categorical((1, K)),
            "word": Categorical((K, V)),
        }

    def joint(self, params: Mapping[str, Any], shard: Bags) -> np.ndarray:
        words = xlogy(shard.words[:, None, :], params["word"][None]).sum(axis=2)
        return np.asarray(np.log(params["theme"][0]) + words)

    def weights(self, joint: np.ndarray, shard: Bags, how: EStep) -> np.ndarray:
        soft = np.exp(how.temper * joint)
        soft /= soft.sum(axis=1, keepdims=True)
        if how.fill == "hard":
            return np.eye(K)[joint.argmax(axis=1)]
        if how.fill == "sample":
            return np.array([self.draws(soft[i], n, how) for i, n in enumerate(shard.number)])
        return soft

    def draws(self, chances: np.ndarray, number: int, how: EStep) -> np.ndarray:
        rng = np.random.default_rng((how.stream, number))
        return rng.multinomial(how.samples, chances) / how.samples

    def expect(
        self, params: Mapping[str, Any], shard: Bags, how: EStep, local: Any = None
    ) -> Stats:
        joint = self.joint(params, shard)
        weights = self.weights(joint, shard, how)
        score = logsumexp(how.temper * joint, axis=1).sum() / how.temper
        if how.fill == "hard":
            score = joint.max(axis=1).sum()
        return Stats(
            {"theme": weights.sum(axis=0)[None], "word": weights.T @ shard.words},
            log_likelihood=float(logsumexp(joint, axis=1).sum()),
            score=float(score),
            items=float(len(shard.words)),
            tokens=float(shard.words.sum()),
        )

    def totals(self, shard: Bags) -> dict[str, float]:
        return {"theme": len(shard.words), "word": shard.words.sum()}


class Estimator:
    """The least that ``check_model`` asks for."""

    def __init__(self, core: Any) -> None:
        self.core = core

    def _bind(self, data: np.ndarray) -> tuple[Any, BagCorpus]:
        return self.core, BagCorpus(data)


DATA = np.random.default_rng(3).multinomial(4, [0.5, 0.3, 0.2], size=12).astype(float)
