"""What the two kinds of grammars, dense and of rules, have in common for those who use them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from softcount.corpus.numbering import Vocabulary
from softcount.corpus.sequences import Sequences
from softcount.corpus.trees import Tree
from softcount.errors import DataError, LearnerError
from softcount.grammar.data import Sentences, Shard, Told
from softcount.grammar.rules import Rule, Rules
from softcount.types import Array, Params

MOST_NODES, TRIES = 10_000, 1000
"""New trees have so many nodes at most; else others are drawn, but not for ever."""


class Choices(NamedTuple):
    """How tables learn, and how charts are gone through.

    ``rules``, ``words``  Dirichlet priors
    ``frozen``            tables, and symbols, whose probabilities stay as they begin
    ``prune``             see `PCFG`
    """

    rules: float = 1.0
    words: float = 1.0
    frozen: Collection[str] = ()
    dtype: str = "float64"
    prune: float = 0.0

    def held(self, table: str, symbols: Sequence[str]) -> Array | None:
        """Which rows of a table stay; None: none of them."""
        held = np.array([table in self.frozen or symbol in self.frozen for symbol in symbols])
        return held if held.any() else None


class Spans(NamedTuple):
    """Where a sentence is expected to have which symbols, and how many."""

    starts: Array
    ends: Array
    symbols: Array
    shares: Array


class Asked(NamedTuple):
    """Sentences, and the parameters that an answer about them is wanted for."""

    core: Any
    params: Params
    shard: Shard
    text: Sequences
    threads: int


class Form(Protocol):
    """A kind of grammar: its symbols and words, and what it says of sentences."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of symbols, by their numbers."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Words that have their numbers."""

    def core(self, choices: Choices) -> Any:
        """What learns."""

    def corpus(self, told: Told, weights: Array) -> Sentences:
        """What it learns from."""

    def logs(self, asked: Asked) -> Array:
        """log p of each sentence."""

    def best(self, asked: Asked) -> tuple[list[Tree | None], Array]:
        """The best tree of each sentence, and log p of both."""

    def drawn(self, asked: Asked, stream: int, samples: int) -> list[list[Tree]]:
        """Trees drawn from the posterior of each sentence."""

    def some_best(self, asked: Asked, k: int) -> list[list[tuple[float, Tree]]]:
        """The k best trees of each sentence with log p of each and the sentence."""

    def spans(self, asked: Asked) -> Iterator[Spans]:
        """Expected spans of each sentence."""

    def least_risk(self, spans: Spans, sentence: Sequence[str], labelled: bool) -> Tree | None:
        """The tree of the most expected brackets."""

    def expected_rules(self, asked: Asked) -> dict[Rule, float]:
        """How often sentences are expected to use which rules."""

    def rules(self, params: Params, least: float) -> Rules:
        """Rules whose probability is at least so much."""

    def made(self, params: Params, rng: np.random.Generator) -> Tree | None:
        """A new tree; None if it became too large."""


def generated(form: Form, params: Params, rng: np.random.Generator) -> Tree:
    """A new tree of a size that is not out of bounds."""
    for _ in range(TRIES):
        tree = form.made(params, rng)
        if tree is not None:
            return tree
    raise DataError(
        f"{TRIES} new trees had more than {MOST_NODES:,} nodes each: the grammar comes to no end",
        "give rules that lead to words a higher probability",
    )


def demand_freezable(
    frozen: Collection[str], tables: Collection[str], labels: Collection[str]
) -> None:
    """Complain of what cannot be frozen, as there is no such table or symbol."""
    for name in frozen:
        if name not in tables and name not in labels:
            raise LearnerError(
                f"there is neither a table nor a symbol {name!r} to be frozen",
                f"tables are {', '.join(tables)}",
            )
