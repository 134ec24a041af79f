"""One story told twice: to the library and to the brute-force interpreter, for comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

import softcount as sc
from softcount.core.types import EStep, Params, Stats
from tests.oracles import enumeration
from tests.oracles.enumeration import Derivation, Event


class Told:
    """``factory`` (see `tests.oracles.stories`) with some data; an item is a tuple of arguments."""

    def __init__(
        self, factory: Callable[..., Any], items: Sequence[tuple[Any, ...]], **options: Any
    ) -> None:
        self.story = factory(sc.table, sc.story)
        oracle = factory(enumeration.OracleTable, enumeration.story)
        self.items = [item if len(item) > 1 else item[0] for item in items]
        self.corpus = [enumeration.derivations(oracle(*item)) for item in items]
        self.options = options

    @cached_property
    def bound(self) -> tuple[Any, Any]:
        """The library's core and corpus."""
        return self.model()._bind(self.items)  # type: ignore[no-any-return]

    @property
    def core(self) -> Any:
        return self.bound[0]

    def model(self, **options: Any) -> Any:
        return sc.StoryModel(self.story, **{**self.options, **options})

    @property
    def possible(self) -> bool:
        return all(self.corpus)

    def random(self, seed: int, zeros: float = 0.0) -> dict[Event, float]:
        """Random proper tables; ``zeros`` is the chance of an entry to be zero."""
        rng = np.random.default_rng(seed)
        weights = {}
        for (name, condition), outcomes in enumeration.rows(self.corpus).items():
            row = rng.dirichlet(np.ones(len(outcomes))) + 1e-3
            row *= rng.random(len(outcomes)) >= zeros
            row = row / row.sum() if row.sum() else np.full(len(outcomes), 1 / len(outcomes))
            weights.update(
                {(name, (*condition, o)): float(p) for o, p in zip(outcomes, row, strict=True)}
            )
        return weights

    def params(self, weights: enumeration.Weights) -> Params:
        return self.core.params(nested(weights))  # type: ignore[no-any-return]

    def expect(self, weights: enumeration.Weights, how: EStep | None = None) -> Stats:
        """The library's E-step over all shards."""
        core, corpus = self.bound
        parts = [
            core.expect(self.params(weights), s, how or EStep()) for s in corpus.shards(None, 0)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def counts(self, stats: Stats) -> dict[Event, float]:
        """The library's counts by event; what has none is left out."""
        return flat(self.core.counts_by_key(stats))

    def readable(self, params: Params) -> dict[Event, float]:
        """The library's parameters by event."""
        view = self.core.view_params(params)
        return {
            (name, (*condition, outcome)): row[outcome]
            for name in view
            for condition, row in view[name].rows()
            for outcome in row
        }


def nested(weights: enumeration.Weights) -> dict[str, dict[tuple[Any, ...], float]]:
    """Weights as start values with flat keys."""
    tables: dict[str, dict[tuple[Any, ...], float]] = {}
    for (name, key), value in weights.items():
        tables.setdefault(name, {})[key] = value
    return tables


def flat(counts: Any) -> dict[Event, float]:
    return {(name, key): n for name, by_key in counts.items() for key, n in by_key.items()}


def furthest(left: Any, right: Any) -> float:
    """The largest difference of two sets of numbers; what one of them lacks is zero there."""
    return max((abs(left.get(k, 0.0) - right.get(k, 0.0)) for k in {*left, *right}), default=0.0)


def log_likelihood(corpus: Sequence[Sequence[Derivation]], weights: enumeration.Weights) -> float:
    return sum(enumeration.log_likelihood(item, weights) for item in corpus)
