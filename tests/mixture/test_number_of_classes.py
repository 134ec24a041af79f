"""The posterior over the number of classes of Dirichlet processes, against all partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import exp, lgamma, log

import pytest

import softcount as sc
from softcount.errors import DataError, LearnerError

X = [[4, 0, 0], [3, 1, 0], [0, 1, 4]]
CONCENTRATION, BETA = 1.5, 0.5


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """All ways to put the items into blocks."""
    if not items:
        yield []
        return
    first, *rest = items
    for blocks in partitions(rest):
        yield [[first], *blocks]
        for n in range(len(blocks)):
            yield [*blocks[:n], [first, *blocks[n]], *blocks[n + 1 :]]


def log_block(block: list[int]) -> float:
    """log p(words of the block), with the word probabilities integrated out."""
    counts = [sum(X[d][w] for d in block) for w in range(3)]
    total = lgamma(3 * BETA) - lgamma(3 * BETA + sum(counts))
    return total + sum(lgamma(BETA + n) - lgamma(BETA) for n in counts)


def exact() -> dict[int, float]:
    """p(number of blocks | X) under the Chinese restaurant process."""
    mass: dict[int, float] = defaultdict(float)
    for blocks in partitions([0, 1, 2]):
        prior = sum(log(CONCENTRATION) + lgamma(len(block)) for block in blocks)
        mass[len(blocks)] += exp(prior + sum(map(log_block, blocks)))
    return {k: mass[k] / sum(mass.values()) for k in sorted(mass)}


@pytest.mark.parametrize(
    ("learner", "data"),
    [
        (sc.CollapsedGibbs(max_iter=6000, thin=1), None),
        (sc.Gibbs(max_iter=6000, thin=1), X),
    ],
    ids=["collapsed", "gibbs"],
)
def test_proportions_of_draws_are_the_posterior(learner: sc.Learner, data: object) -> None:
    settings = {"concentration": CONCENTRATION, "smoothing": BETA, "init": "random"}
    model = sc.DirichletProcessMixture(12, learner=learner, **settings).fit(X)
    found, expected = model.n_classes_posterior(data), exact()
    assert sum(found.values()) == pytest.approx(1.0)
    for k, p in expected.items():
        assert found.get(k, 0.0) == pytest.approx(p, abs=0.04)


def test_what_is_missing_is_named() -> None:
    model = sc.DirichletProcessMixture(4).fit(X)
    with pytest.raises(LearnerError, match="draws no samples"):
        model.n_classes_posterior()
    model = sc.DirichletProcessMixture(4, learner=sc.Gibbs(max_iter=4)).fit(X)
    with pytest.raises(DataError, match="not classes"):
        model.n_classes_posterior()
