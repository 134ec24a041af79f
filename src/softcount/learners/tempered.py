"""EM whose posteriors are flattened, as far as words that it does not learn from ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from softcount.bounds import MIN_TEMPER
from softcount.errors import LearnerError, shown
from softcount.learners.base import Learner
from softcount.learners.steps import Schedule, Step, Tables, Work, look


@dataclass(frozen=True, kw_only=True)
class Tempered:
    """Steps at one power β while held-out perplexity falls, then at lower ones (Hofmann 1999).

    A step at β is tried; while held-out perplexity does not fall by more than ``tol`` of its size,
    it is tried again from the same place with a lower β ← rate · β; when β would sink below
    ``least``, the schedule ends. So every step foresees held-out words better than the one before,
    and the last one does best; only the first step is taken in any case. What belongs to the shards
    (the topics of documents) is judged together with the tables that came with it.
    """

    held_out: float = 0.1
    rate: float = 0.9
    least: float = 0.3
    tol: float = 1e-4
    climbs: ClassVar[bool] = False  # objectives under different powers cannot be compared
    shuffles: ClassVar[bool] = False
    batch_size: ClassVar[None] = None

    def __post_init__(self) -> None:
        for dial, hint in (
            ("held_out", "0.1 keeps a tenth of the words from learning"),
            ("rate", "0.9 lowers the power by a tenth at a time"),
        ):
            if not 0 < getattr(self, dial) < 1:
                raise LearnerError(
                    f"{dial}={shown(getattr(self, dial))} must be above 0 and below 1", hint
                )
        if not MIN_TEMPER <= self.least <= 1:
            raise LearnerError(
                f"least={shown(self.least)}: the lowest power is above 0 ({MIN_TEMPER:g} at "
                "least) and at most 1",
                "least=1 never lowers it: plain EM that stops early",
            )

    def steps(self, work: Work, tables: Tables) -> Iterator[Step]:
        here, beta = _foreseen(work, tables), work.temper
        bar = float("inf")  # the start was not learned, so whatever is learned from it may be worse
        while True:
            shards = work.snapshot()
            step = here.look(work, beta)
            yield step
            ahead = _after(work, step)
            while not ahead.held_out < bar:
                beta *= self.rate
                if beta < self.least:
                    return
                work.restore(shards)
                ahead = _after(work, here.look(work, beta))
            here, bar = ahead, (1.0 - self.tol) * ahead.held_out


@dataclass(frozen=True)
class Foreseen:
    """Tables, and the perplexity of held-out words with them."""

    tables: Tables
    held_out: float

    def look(self, work: Work, beta: float) -> Step:
        """An E-step at the power β."""
        work.temper = beta
        return replace(look(work, self.tables), held_out=self.held_out)


def _foreseen(work: Work, tables: Tables) -> Foreseen:
    return Foreseen(tables, work.foresee(tables.params).perplexity)


def _after(work: Work, step: Step) -> Foreseen:
    return _foreseen(work, work.update(step.stats, step.tables))


@dataclass(frozen=True, kw_only=True)
class TemperedEM(Learner):
    """EM at a power β of the posteriors that held-out words choose: soft · maximise · Tempered.

    Hofmann (1999): P(z | d, w) ∝ (P(z | d) P(w | z))^β, with β = 1 as long as the perplexity of
    held-out words falls, then with lower and lower β. Plain EM with many topics learns its
    documents by heart; this does not, and needs no prior. For topic models.

    ``held_out``  the share of the words of every document that is kept from learning
    ``rate``      β ← rate · β, when held-out perplexity falls no more
    ``least``     β stays above this
    ``tol``       perplexity falls if it falls by more than this, of its size
    ``temper``    β to begin with

    ``trace_.held_out`` is the perplexity of held-out words at every step, ``trace_.temper`` is β;
    the last step is the best. Objectives under different β cannot be compared.

    >>> print(TemperedEM(rate=0.8))
    TemperedEM(max_iter=500, tol=0.0001, rate=0.8)
    """

    schedule: Schedule = field(init=False)
    max_iter: int = 500
    tol: float = 1e-4
    held_out: float = 0.1
    rate: float = 0.9
    least: float = 0.3

    def __post_init__(self) -> None:
        tempered = Tempered(held_out=self.held_out, rate=self.rate, least=self.least, tol=self.tol)
        object.__setattr__(self, "schedule", tempered)
        super().__post_init__()
