"""What is hidden: the base class of models, and the corpora they learn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from softcount.core.errors import ImpossibleItem, LearnerError
from softcount.core.estimate import Estimate, by_tables
from softcount.core.types import EStep, FloatArray, IntArray, Params, Stats
from softcount.engines.base import Shard
from softcount.families.base import Family, start_tables
from softcount.learners.base import Learner
from softcount.learners.named import EM
from softcount.learners.schedules import Sampler


class Model(ABC):
    """What is hidden: families of distributions, and an E-step.

    A model of your own sets ``name`` and ``families`` and defines `expect`. Everything else that
    the loop, the learners and the laws ask stands here with its default; see docs/model.md.
    """

    name: str
    """What to call it in signatures."""
    families: Mapping[str, Family]
    """Its distributions, by name. Those that belong to shards are not among them."""
    default_learner: Learner = EM()
    """How it is learned by default."""
    few_steps: bool = False
    """Whether the few steps of its default learner are meant, and more would do worse."""
    monotone: bool = True
    """Whether its E-step is such that soft EM cannot lower the objective."""
    no_bound: str = ""
    """Why the log-likelihood cannot be taken apart into Q and an entropy; empty: it can."""
    entropy_of: Sequence[str] = ()
    """Families whose rows' mean entropy the trace shows."""
    threads_inside: bool = False
    """Whether one shard's E-step uses many threads (else: one thread for each shard)."""
    local_name: str = ""
    """What the table of parameters is called that belong to items; empty: there are none."""
    holds_out: bool = False
    """Whether it has `held_out_log_likelihood`."""

    @abstractmethod
    def expect(self, params: Params, shard: Shard, how: EStep, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; pure.

        ``local`` is what the last E-step on this shard left in `Stats.local` (None at first).
        """

    def collapse(self, shards: Sequence[Shard], params: Params, stream: int) -> Sampler:
        """A sampler of all shards' hidden values, with the parameters integrated out.

        It begins with values drawn from their posterior at ``params``.
        """
        raise LearnerError(
            f"{self.name} has no collapsed sampler", "use Gibbs(), which samples any model"
        )

    def held_out_log_likelihood(
        self, params: Params, shard: Shard, how: EStep, local: Any = None
    ) -> Stats:
        """Log-likelihood and number of the tokens that are held out within a shard; pure."""
        raise NotImplementedError(f"{self.name} holds nothing out")

    def rows_used(self, params: Params, shard: Shard, how: EStep, local: Any = None) -> Stats:
        """The items' "rows" as an E-step takes them, and the items' "numbers", as counts; pure.

        For models that have parameters of items (``local_name``).
        """
        raise NotImplementedError(f"{self.name} has no parameters of items")

    def rows_reported(self, params: Params, shard: Shard, how: EStep, local: Any = None) -> Stats:
        """The same as users see them: proper rows."""
        raise NotImplementedError(f"{self.name} has no parameters of items")

    def totals(self, shard: Shard) -> Mapping[str, float]:
        """How many events a shard must have, by family, as far as that is known: for the laws."""
        return {}

    def estimate(self, corpus: Any) -> Estimate:
        """What a batch EM step over a corpus needs; by default judged by the sizes of tables."""
        return by_tables(self.families.values(), corpus)

    def params(self, given: Any) -> Params:
        """Parameters as users give them, as arrays of the families' shapes."""
        return start_tables(given, self.families)


class Corpus(Protocol):
    """Data that can be cut into shards."""

    def __len__(self) -> int:
        """How many items there are."""

    def shards(self, batch_size: int | None, seed: int) -> Sequence[Shard]:
        """The data in shards.

        None: the corpus's own cut, which depends on the data alone. A number: items shuffled by
        the seed, so many in each shard.
        """


class NamingCorpus(Corpus, Protocol):
    """A corpus that can say which item is meant."""

    def name(self, number: int) -> str:
        """An item as messages show it."""


def demand_bound(model: Model) -> None:
    """Raise a `LearnerError` if the counts of a model are not a posterior's: it has no bound."""
    if model.no_bound:
        raise LearnerError(
            f"{model.name}: the log-likelihood cannot be taken apart, {model.no_bound}",
            "ask a model whose E-step is that of EM",
        )


def demand_possible(numbers: IntArray, logs: FloatArray, why: str, hint: str) -> None:
    """Raise `ImpossibleItem` for the first item whose log-probability is −inf.

    ``numbers``  the items' numbers, (items,)
    ``logs``     their log-probabilities, (items,)
    """
    impossible = numbers[np.isneginf(logs)]
    if len(impossible):
        first = int(impossible.min())
        raise ImpossibleItem(f"item {first} {why}", hint, item=first)
