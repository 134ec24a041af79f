"""An aligner whose links are sampled, with jumps and fertilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, Unpack

import numpy as np

from softcount import interrupt
from softcount._version import __version__
from softcount.bounds import MAX_RUNS
from softcount.errors import LearnerError, shown
from softcount.estimate import announce
from softcount.kernels.pool import in_turn
from softcount.models.alignment.agreement import (
    BACKWARD,
    FORWARD,
    AgreementCore,
    TwoWayPairs,
)
from softcount.models.alignment.collapsed import WIDEST, IndexedPairs, Sampled, sampled
from softcount.models.alignment.core import TABLE, best_columns
from softcount.models.alignment.estimators import HMMAligner, check_share
from softcount.models.alignment.growth import Grown
from softcount.models.alignment.hmm import JUMPS
from softcount.models.alignment.known import Known
from softcount.models.alignment.options import Knowledge
from softcount.models.alignment.shards import UNSEEN, Block, Pairs, Shard
from softcount.models.alignment.two_ways import TwoWays
from softcount.models.learnable import FitOptions
from softcount.models.settings import check_number, check_whole
from softcount.types import Array, Fit, Params, State, Trace
from softcount.verdict import Verdict

LEAST = 1e-10
"""The prior of translations that the dictionary rules out."""


class SampledHMM(HMMAligner):
    """One direction: posteriors of the pairs learned from are sampled ones.

    New pairs are aligned by a hidden Markov model with the means of the sampled tables.
    """

    marginals_: tuple[IndexedPairs, Array] | None = None

    def beliefs(
        self, shard: Shard, blocks: Iterable[Block] | None = None
    ) -> Iterator[tuple[Block, Array]]:
        if not self._is_sampled(shard):
            yield from super().beliefs(shard, blocks)
            return
        assert self.marginals_ is not None
        indexed, links = self.marginals_
        each = indexed.matrices(links)
        for block in blocks or shard.blocks():
            flat = np.empty(block.offsets[-1])
            for matrix in block.matrices(flat):
                matrix[:-1] = next(each)
                matrix[-1] = np.maximum(1.0 - matrix[:-1].sum(axis=0), 0.0)
            yield block, flat

    def decisions(
        self, shard: Shard, blocks: Iterable[Block] | None = None
    ) -> Iterator[tuple[Block, Array]]:
        if not self._is_sampled(shard):
            yield from super().decisions(shard, blocks)
            return
        for block, links in self.beliefs(shard, blocks):
            best_columns(block, links, 1)
            yield block, links

    def _is_sampled(self, shard: Shard) -> bool:
        own = getattr(self, "_corpus", None)
        return self.marginals_ is not None and own is not None and shard is own.everything


class Sampling(TwoWays):
    """Both directions, which do not learn from each other, and by no learner but a sampler."""

    usual_method = "soft-union"
    agree = False
    init = None
    learner = None
    forward_: SampledHMM
    backward_: SampledHMM


@dataclass(kw_only=True, eq=False, repr=False)
class GibbsAligner(Knowledge, Sampling):
    """Links drawn one by one, given all others.

    A hidden Markov model with fertilities, all parameters integrated out (in the manner of Östling
    & Tiedemann 2016), both directions, several short chains: probabilities of links are the means
    of what the last sweeps of all chains hold probable. The same seed gives the same links.

    ``prior``      Dirichlet prior of translations: small ones want few translations a word
    ``p_null``     the probability that a target word comes from the empty word
    ``chains``     how many chains a direction
    ``sweeps``     so many times a chain draws all links; the last ``kept`` of them count
    ``threshold``  links that are more probable than this, by the mean of both directions
    ``warm_up``    so many steps of Model 1 come first

    For the other settings see `IBM1`. Of several links known for one word, the first holds.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> GibbsAligner().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    prior: float = 0.001
    p_null: float = 0.2
    chains: int = 4
    sweeps: int = 8
    kept: int = 2
    threshold: float = 0.5
    warm_up: int = 4

    @property
    def _name(self) -> str:
        return "GibbsAligner"

    def _one_way(self, dictionary: Any) -> SampledHMM:
        return SampledHMM(
            p_null=self.p_null,
            max_jump=WIDEST,
            warm_up=max(self.warm_up, 1),
            dictionary=dictionary,
            dictionary_strength=self.dictionary_strength,
            lowercase=self.lowercase,
            engine=self.engine,
        )

    def _check_settings(self) -> None:
        super()._check_settings()
        check_number("prior", self.prior, "0.001 is usual", above=True)
        check_share("p_null", self.p_null)
        for name in ("chains", "sweeps", "kept"):
            check_whole(name, getattr(self, name), most=MAX_RUNS)
        if self.kept > self.sweeps:
            raise LearnerError(f"kept={self.kept} of {self.sweeps} sweeps", "keep no more than all")

    @interrupt.graceful()
    def learn(
        self, core: AgreementCore, corpus: TwoWayPairs, init: Any, **options: Unpack[FitOptions]
    ) -> Self:
        self._check_settings()
        announce(self.foreseen(core, corpus), options.get("on_step", ()))
        if options.get("development") is not None:
            raise LearnerError("a GibbsAligner takes no development data: it has one run")
        tables = self.start_values(core, corpus, init)
        priors = [self._prior(way) for way in (self.forward_, self.backward_)]
        return self._sample(core, corpus, tables, priors, options)

    def start_values(
        self, core: AgreementCore, corpus: TwoWayPairs, init: Any
    ) -> tuple[Array, Array]:
        """Model 1's tables of both directions, to draw the first links with."""
        if init is not None:
            raise LearnerError(f"init={shown(init)}: a GibbsAligner begins with Model 1")
        forward, backward = self.forward_, self.backward_
        return forward._warmed_up(corpus.forward), backward._warmed_up(corpus.backward)

    def _prior(self, way: Any) -> Array | float:
        """One number, or one an entry if a dictionary says something."""
        told = way.guidance_
        prior = self.prior if told.counts is None else self.prior + told.counts
        return prior if told.mask is None else np.where(told.mask, prior, LEAST)

    @interrupt.graceful()
    def _sample(
        self,
        core: AgreementCore,
        corpus: TwoWayPairs,
        tables: Sequence[Array],
        priors: Sequence[Any],
        options: Mapping[str, Any],
    ) -> Self:
        seeds = np.random.SeedSequence(self._seed()).generate_state(2, np.uint64).tolist()
        both = (corpus.forward, corpus.backward)
        indexed = [_indexed(pairs) for pairs in both]
        found: dict[int, Sampled] = {}

        def work(way: int) -> None:
            settings = {"alpha": priors[way], "null": self.p_null, "table": tables[way]}
            runs = {"chains": self.chains, "sweeps": self.sweeps, "kept": self.kept}
            seed = seeds[way]
            stopped = interrupt.asked
            found[way] = sampled(indexed[way], seed=seed, stopped=stopped, **runs, **settings)

        in_turn(work, 2, min(self.threads, 2))
        if interrupt.asked():
            interrupt.tell("before all chains had run their course: the links drawn last are kept")
        params = {
            name + table: values
            for number, (name, way) in enumerate(self._named())
            for table, values in _params(found[number], way).items()
        }
        self.keep(core, corpus, self._fit(params, found, options))
        for number, (_, way) in enumerate(self._named()):
            way.marginals_ = (indexed[number], found[number].links)
        return self

    def _named(self) -> tuple[tuple[str, SampledHMM], tuple[str, SampledHMM]]:
        return (FORWARD, self.forward_), (BACKWARD, self.backward_)

    def _fit(self, params: Params, found: Mapping[int, Sampled], options: Mapping[str, Any]) -> Fit:
        """One state, where the chains ended."""
        nan = float("nan")
        joint = sum(each.log_joint for each in found.values())
        state = State(self.sweeps, params, joint, nan, nan, nan, nan)
        watchers = options.get("on_step", ())
        for watch in (watchers,) if callable(watchers) else watchers:
            watch(state)
        verdict = Verdict.INTERRUPTED if interrupt.asked() else Verdict.SAMPLED
        trace = Trace((replace(state, params={}),), verdict)
        dials = f"chains={self.chains}, sweeps={self.sweeps}, kept={self.kept}, prior={self.prior}"
        line = f"softcount {__version__} · GibbsAligner({dials}) · seed {self._seed()}"
        return Fit(params, trace, (trace,), line)

    def _believable(self) -> Params:
        # a chain may take what the dictionary rules out where nothing else is left
        return {name: np.maximum(values, UNSEEN) for name, values in self.raw_params_.items()}

    def _learn_more(self, forward: Grown, backward: Grown) -> None:
        core = AgreementCore(self._name, forward.core, backward.core, self.agree)
        corpus = TwoWayPairs(forward.corpus, backward.corpus)
        ways = (forward, backward)
        named = zip(self._named(), ways, strict=True)
        priors = [self._prior(own) + way.past.table for (_, own), way in named]
        self._sample(core, corpus, [way.start[TABLE] for way in ways], priors, {})


def _indexed(pairs: Pairs) -> IndexedPairs:
    shard = pairs.everything
    fixed = None if shard.known is None else _fixed(shard.known, shard)
    return IndexedPairs(shard.source, shard.target, shard.lexicon, fixed)


def _fixed(known: Known, shard: Shard) -> Array:
    """The source place of every target word whose links are known, −2 elsewhere."""
    fixed = np.full(len(shard.target.tokens), -2, np.int32)
    pairs = np.repeat(np.arange(len(shard)), np.diff(known.indptr))
    at = shard.target.indptr[pairs] + known.targets
    fixed[at[::-1]] = known.sources[::-1]  # the first of several is written last
    return fixed


def _params(found: Sampled, way: Any) -> dict[str, Array]:
    """The means as tables of a hidden Markov model."""
    table = way.guidance_.start(found.means["translations"], way.lexicon_.indptr)
    widths = found.means["jumps"]
    starts = widths[WIDEST + 1 :]
    return {TABLE: table, JUMPS: np.concatenate([widths / widths.sum(), starts / starts.sum()])}
