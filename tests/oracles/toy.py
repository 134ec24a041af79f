"""Models of a few lines of plain numpy, for testing learners, engines and the loop.

Nothing here uses softcount's kernels or stories. `Coins` is worked example A: each item is a number
of heads and tails, thrown with one hidden coin. `Topics` is a tiny PLSA whose document rows live
with the shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import gammaln, xlogy

from softcount.core.model import Model
from softcount.core.types import EStep, Stats
from softcount.families import Categorical


@dataclass(frozen=True)
class Throws:
    """Heads and tails of each item, which coin it was (-1: hidden), and the item's number."""

    faces: np.ndarray
    coin: np.ndarray
    number: np.ndarray

    def take(self, which: np.ndarray) -> Throws:
        return Throws(self.faces[which], self.coin[which], self.number[which])


class ThrowsCorpus:
    """Items such as "HHT", or ("A", "HHT") where the coin was seen."""

    def __init__(self, items: Sequence[str | tuple[str, str]], n_shards: int = 3) -> None:
        pairs = [("?", item) if isinstance(item, str) else item for item in items]
        faces = [[tosses.count("H"), tosses.count("T")] for _, tosses in pairs]
        self.all = Throws(
            np.array(faces, dtype=float).reshape(-1, 2),
            np.array([{"?": -1, "A": 0, "B": 1}[coin] for coin, _ in pairs], dtype=int),
            np.arange(len(pairs), dtype=np.uint64),
        )
        self.n_shards = n_shards

    def __len__(self) -> int:
        return len(self.all.faces)

    def shards(self, batch_size: int | None, seed: int) -> list[Throws]:
        if batch_size is None:
            parts = np.array_split(np.arange(len(self)), min(self.n_shards, len(self)))
        else:
            order = np.random.default_rng(seed).permutation(len(self))
            parts = [order[i : i + batch_size] for i in range(0, len(self), batch_size)]
        return [self.all.take(part) for part in parts]


class Coins(Model):
    """P(throws) = Σ_z which[z] flip[z, H]^heads flip[z, T]^tails."""

    name = "coins"

    def __init__(self, n_coins: int = 2, which: object = 1.0, flip: object = 1.0) -> None:
        self.families = {
            "which": Categorical((1, n_coins), prior=which),
            "flip": Categorical((n_coins, 2), prior=flip),
        }
        self.calls = 0

    def expect(self, params, shard: Throws, how: EStep, local=None) -> Stats:
        self.calls += 1
        joint = self.log_joint(params, shard)
        tempered = how.temper * joint
        totals = np.logaddexp.reduce(tempered, axis=1)
        weights = np.exp(tempered - totals[:, None])
        score = totals.sum() / how.temper
        if how.fill == "hard":
            weights = np.eye(joint.shape[1])[joint.argmax(axis=1)]
            score = joint.max(axis=1).sum()
        elif how.fill == "sample":
            weights = draw(weights, shard.number, how)
        counts = {"which": weights.sum(axis=0)[None], "flip": weights.T @ shard.faces}
        return Stats(
            {} if how.score_only else counts,
            float(np.logaddexp.reduce(joint, axis=1).sum()),
            float(score),
            len(shard.faces),
            float(shard.faces.sum()),
        )

    def log_joint(self, params, shard: Throws) -> np.ndarray:
        with np.errstate(divide="ignore"):
            joint = np.log(params["which"])[0] + sum(
                xlogy(shard.faces[:, [x]], params["flip"][:, x]) for x in (0, 1)
            )
        seen = shard.coin >= 0
        others = np.arange(joint.shape[1]) != shard.coin[:, None]
        joint[seen[:, None] & others] = -np.inf
        return joint


def draw(weights: np.ndarray, number: np.ndarray, how: EStep) -> np.ndarray:
    """Mean of one-hot draws; each depends on the stream, the item and the sample alone."""
    drawn = np.zeros_like(weights)
    for sample in range(how.samples):
        u = uniforms(how.stream, number, sample)
        z = (weights.cumsum(axis=1) < u[:, None]).sum(axis=1)
        drawn[np.arange(len(z)), np.minimum(z, weights.shape[1] - 1)] += 1 / how.samples
    return drawn


def uniforms(stream: int, number: np.ndarray, sample: int) -> np.ndarray:
    """Uniform numbers by hashing (the finaliser of splitmix64, twice)."""
    with np.errstate(over="ignore"):
        x = number * np.uint64(0x9E3779B97F4A7C15) + np.uint64(stream)
        for salt in (sample, 12345):
            x = x + np.uint64(salt) * np.uint64(0xD1B54A32D192ED03)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(11)) / 2.0**53


def em_step(params, faces: np.ndarray):
    """One EM step on hidden coins, written out in linear space: (new params, log-likelihood)."""
    which, flip = params["which"][0], params["flip"]
    joint = which * np.prod(flip[None] ** faces[:, None], axis=2)
    posterior = joint / joint.sum(axis=1, keepdims=True)
    heads_tails = posterior.T @ faces
    new = {
        "which": posterior.mean(axis=0)[None],
        "flip": heads_tails / heads_tails.sum(axis=1, keepdims=True),
    }
    return new, float(np.log(joint.sum(axis=1)).sum())


def worlds(
    data: Throws, n_coins: int, which, flip
) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Every way to fill in the coins: log p(x, z) under Dirichlet priors, and posterior alphas."""
    which = np.broadcast_to(which, (1, n_coins)).astype(float)
    flip = np.broadcast_to(flip, (n_coins, 2)).astype(float)
    for z in product(range(n_coins), repeat=len(data.faces)):
        coins = np.array(z)
        if ((data.coin >= 0) & (data.coin != coins)).any():
            continue
        hot = np.eye(n_coins)[coins]
        a, b = which + hot.sum(axis=0), flip + hot.T @ data.faces
        yield log_beta(a) - log_beta(which) + log_beta(b) - log_beta(flip), a, b


def log_beta(alpha: np.ndarray) -> float:
    """Σ over rows of the log normaliser of a Dirichlet."""
    return float((gammaln(alpha).sum(axis=1) - gammaln(alpha.sum(axis=1))).sum())


def evidence(data: Throws, n_coins: int, which, flip) -> float:
    """log p(x), parameters integrated out."""
    return float(np.logaddexp.reduce([log_p for log_p, _, _ in worlds(data, n_coins, which, flip)]))


def posterior_mean(data: Throws, n_coins: int, which, flip):
    """E[θ | x], exactly."""
    total = evidence(data, n_coins, which, flip)
    means = {"which": np.zeros((1, n_coins)), "flip": np.zeros((n_coins, 2))}
    for log_p, a, b in worlds(data, n_coins, which, flip):
        means["which"] += np.exp(log_p - total) * a / a.sum(axis=1, keepdims=True)
        means["flip"] += np.exp(log_p - total) * b / b.sum(axis=1, keepdims=True)
    return means


class DocumentCorpus:
    """Documents as rows of word counts."""

    def __init__(self, counts: np.ndarray, n_shards: int = 3) -> None:
        self.counts = counts
        self.n_shards = n_shards

    def __len__(self) -> int:
        return len(self.counts)

    def shards(self, batch_size: int | None, seed: int) -> list[np.ndarray]:
        if batch_size is None:
            return np.array_split(self.counts, self.n_shards)
        order = np.random.default_rng(seed).permutation(len(self))
        return [self.counts[order[i : i + batch_size]] for i in range(0, len(self), batch_size)]


class Topics(Model):
    """PLSA: P(w | d) = Σ_z topics[d, z] words[z, w]; the documents' topics stay with the shard."""

    name = "topics"

    def __init__(self, n_topics: int, n_words: int) -> None:
        self.n_topics = n_topics
        self.families = {"words": Categorical((n_topics, n_words))}

    def expect(self, params, shard: np.ndarray, how: EStep, local=None) -> Stats:
        if local is None:
            local = np.full((len(shard), self.n_topics), 1 / self.n_topics)
        joint = local[:, :, None] * params["words"][None]  # documents, topics, words
        total = joint.sum(axis=1)
        expected = joint / np.where(total > 0, total, 1)[:, None] * shard[:, None]
        log_likelihood = float(xlogy(shard, total).sum())
        own = expected.sum(axis=2)
        return Stats(
            {} if how.score_only else {"words": expected.sum(axis=0)},
            log_likelihood,
            log_likelihood,
            len(shard),
            float(shard.sum()),
            local=own / own.sum(axis=1, keepdims=True),
        )


def plsa_step(words: np.ndarray, topics: np.ndarray, counts: np.ndarray):
    """One EM step of PLSA, looping over documents and words: (words, topics, log-likelihood)."""
    new_words, new_topics, log_likelihood = np.zeros_like(words), np.zeros_like(topics), 0.0
    for d, w in product(range(counts.shape[0]), range(counts.shape[1])):
        joint = topics[d] * words[:, w]
        if counts[d, w] > 0:
            log_likelihood += counts[d, w] * np.log(joint.sum())
            new_words[:, w] += counts[d, w] * joint / joint.sum()
            new_topics[d] += counts[d, w] * joint / joint.sum()
    return (
        new_words / new_words.sum(axis=1, keepdims=True),
        new_topics / new_topics.sum(axis=1, keepdims=True),
        log_likelihood,
    )


def params(which: Sequence[float], heads: Sequence[float]):
    """Parameters of `Coins`: P(coin), and each coin's P(H)."""
    return {
        "which": np.array([which], dtype=float),
        "flip": np.array([[p, 1 - p] for p in heads], dtype=float),
    }


def simulate(n: int, which: Sequence[float], heads: Sequence[float], tosses: int, seed: int):
    """Items thrown with known coins."""
    rng = np.random.default_rng(seed)
    coins = rng.choice(len(which), size=n, p=which)
    return ["".join("HT"[int(u > heads[z])] for u in rng.random(tosses)) for z in coins]


def random_start(model):
    """A random start for any model."""
    return lambda rng: {name: family.random(rng) for name, family in model.families.items()}
