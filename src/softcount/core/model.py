"""The base class of models, and the interface of the corpora they learn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from softcount.core.errors import ImpossibleItem, LearnerError
from softcount.core.estimate import Estimate, by_tables
from softcount.core.types import EStep, FloatArray, IntArray, Params, PosteriorRows, Stats
from softcount.engines.base import Shard
from softcount.families.base import Family, start_tables
from softcount.learners.base import Learner
from softcount.learners.named import EM
from softcount.learners.schedules import Sampler


class Model(ABC):
    """A latent-variable model: families of distributions, and an E-step.

    A model of your own sets ``name`` and ``families`` and defines `expect`. Everything else that
    the loop, the learners and the laws use is defined here with its default; see docs/model.md.
    """

    name: str
    """Its name in signatures."""
    families: Mapping[str, Family]
    """Its distributions, by name, without those whose parameters belong to single items."""
    default_learner: Learner = EM()
    """The learner used by default."""
    few_steps: bool = False
    """Whether the default learner stops after few steps on purpose, as more would do worse."""
    monotone: bool = True
    """Whether soft EM with this E-step can never lower the objective."""
    no_bound: str = ""
    """Why the log-likelihood cannot be decomposed into Q, entropy and KL; empty if it can."""
    entropy_of: Sequence[str] = ()
    """Families whose mean row entropy is recorded in the trace."""
    threads_inside: bool = False
    """Whether the E-step of one shard uses several threads (otherwise: one thread per shard)."""
    local_name: str = ""
    """Name of the table of parameters that belong to items; empty if there are none."""
    lays_out_draws: bool = False
    """Whether `lay_out` lays out draws, too: 1 for the drawn value of each row; for models whose
    rows depend on each other."""
    holds_out: bool = False
    """Whether it defines `held_out_log_likelihood`."""
    averages_draws: bool = False
    """Whether its collapsed samplers accumulate what is learned, over all runs."""

    @abstractmethod
    def expect(self, params: Params, shard: Shard, how: EStep, local: Any = None) -> Stats:
        """Compute expected counts and log-likelihood of a shard, without side effects.

        ``params``  the parameters of each family
        ``how``     which kind of E-step: soft, hard or sampled, tempered, …
        ``local``   what the last E-step on this shard left in `Stats.local` (None at first)
        """

    def collapse(self, shards: Sequence[Shard], params: Params, stream: int) -> Sampler:
        """Make a sampler of all shards' hidden values, with the parameters integrated out.

        Its initial values are drawn from their posterior at ``params``; ``stream`` seeds the draws.
        """
        raise LearnerError(
            f"{self.name} has no collapsed sampler", "use Gibbs(), which samples any model"
        )

    def held_out_log_likelihood(
        self, params: Params, shard: Shard, how: EStep, local: Any = None
    ) -> Stats:
        """Compute log-likelihood and number of a shard's held-out tokens, without side effects."""
        raise NotImplementedError(f"{self.name} holds no data out")

    def lay_out(self, params: Params, shard: Shard, how: EStep, local: Any = None) -> PosteriorRows:
        """Return the posteriors of a shard's hidden values, without side effects.

        This is the one method in which a model says what its hidden values are: a row for each,
        a column for each value it may have.
        """
        raise LearnerError(
            f"{self.name} does not say how its posteriors are laid out",
            "define lay_out in its core, which returns a softcount.core.types.PosteriorRows",
        )

    def count_posteriors(
        self, params: Params, shard: Shard, posteriors: FloatArray, how: EStep
    ) -> Stats:
        """Return the expected counts of a shard under given posteriors, laid out by `lay_out`.

        Only for models whose counts are determined by them; the counts of a Markov chain, say,
        need posteriors of pairs of states.
        """
        raise LearnerError(
            f"the counts of {self.name} do not follow from these posteriors alone",
            "give m_step what e_step returned, unchanged: it has the counts",
        )

    def rows_used(self, params: Params, shard: Shard, how: EStep, local: Any = None) -> Stats:
        """Return the items' own parameters as an E-step uses them, without side effects.

        The counts of the result are "rows", (items, …), and "numbers", the items' numbers. For
        models with parameters that belong to items (``local_name``).
        """
        raise NotImplementedError(f"{self.name} has no parameters that belong to items")

    def rows_reported(self, params: Params, shard: Shard, how: EStep, local: Any = None) -> Stats:
        """Return the items' own parameters as users see them: normalised rows."""
        raise NotImplementedError(f"{self.name} has no parameters that belong to items")

    def totals(self, shard: Shard) -> Mapping[str, float]:
        """Return the number of events in a shard, by family, where it is known (for the laws)."""
        return {}

    def estimate(self, corpus: Any) -> Estimate:
        """Estimate what a batch EM step over a corpus needs; by default from the table sizes."""
        return by_tables(self.families.values(), corpus)

    def params(self, given: Any) -> Params:
        """Convert parameters as users give them to arrays of the families' shapes."""
        return start_tables(given, self.families)


class Corpus(Protocol):
    """Data that can be cut into shards."""

    def __len__(self) -> int:
        """Return the number of items."""

    def shards(self, batch_size: int | None, seed: int) -> Sequence[Shard]:
        """Cut the data into shards.

        ``batch_size``  None: the corpus's own cut, which depends on the data alone; a number: the
                        items are shuffled with ``seed``, and each shard has this many
        """


class NamingCorpus(Corpus, Protocol):
    """A corpus that knows how to name an item in messages."""

    def name(self, number: int) -> str:
        """Return the name of an item for messages."""


def require_bound(model: Model) -> None:
    """Raise a `LearnerError` if the log-likelihood has no lower bound Q + H for this model.

    That is so where counts are not expectations under a posterior.
    """
    if model.no_bound:
        raise LearnerError(
            f"{model.name}: the log-likelihood cannot be decomposed, {model.no_bound}",
            "use a model whose E-step is that of EM",
        )


def check_possible(numbers: IntArray, logs: FloatArray, why: str, hint: str) -> None:
    """Raise `ImpossibleItem` for the first item whose log-probability is −inf.

    ``numbers``  the items' numbers, (items,)
    ``logs``     their log-probabilities, (items,)
    """
    impossible = numbers[np.isneginf(logs)]
    if len(impossible):
        first = int(impossible.min())
        raise ImpossibleItem(f"item {first} {why}", hint, item=first)
