"""Both directions at once: `Aligner`, and what it shares with `GibbsAligner`.

Liang, Taskar & Klein (2006), *Alignment by agreement*: the model of the target given the source and
that of the source given the target learn together, each from links that both believe in.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self, get_args

import numpy as np

from softcount.align import kernels
from softcount.align.core import TABLE, AlignmentCore, ShardEStep
from softcount.align.data import BitextCorpus, BitextShard, Dictionary, LinkBlock, Vocabularies
from softcount.align.decoding import (
    HALF,
    ChosenLinks,
    LinkMethod,
    check_threshold,
    select_links,
    symmetrise_all,
)
from softcount.align.estimators import (
    IBM1,
    IBM2,
    BaseAligner,
    Continuation,
    Diagonal,
    DirectionalAligner,
    HMMAligner,
    LinkMatrices,
)
from softcount.align.kernels import PairSizes
from softcount.align.parameters import MEANS, BidirectionalParameters, TableParameters
from softcount.core import store
from softcount.core.errors import LearnerError, brief
from softcount.core.estimate import Estimate
from softcount.core.estimator import all_or_nothing
from softcount.core.fit import WarmStart
from softcount.core.model import Model
from softcount.core.theory import Decomposition
from softcount.core.types import Array, EStep, Fit, FloatArray, Params, Stats
from softcount.families.base import Family
from softcount.kernels.threads import over_rows
from softcount.learners.base import Learner
from softcount.learners.named import EM
from softcount.text.bitext import Bitext
from softcount.text.links import FlatLinks, Link

FORWARD, BACKWARD = "forward.", "backward."
"""Tables of the target given the source, and of the source given the target, have such names."""

METHODS = (*MEANS, "forward", "backward", *get_args(LinkMethod))
"""Ways to choose links; but for `MEANS`, they symmetrise best alignments."""

MODELS: dict[str, type[DirectionalAligner]] = {
    "ibm1": IBM1,
    "ibm2": IBM2,
    "diagonal": Diagonal,
    "hmm": HMMAligner,
}

NO_BOUND = (
    "for two directions that agree count links by the product of two posteriors, which is the "
    "posterior of neither"
)


class BidirectionalShard(NamedTuple):
    """The same pairs, seen from either side."""

    forward: BitextShard
    backward: BitextShard

    def backward_blocks(self) -> Iterator[LinkBlock]:
        """Blocks of the same pairs as the forward direction's."""
        for block in self.forward.blocks():
            yield LinkBlock(self.backward, block.first, block.last)


def split_directions(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters, counts or arrays of either direction, under their own names."""
    forward, backward = (
        {name.removeprefix(prefix): v for name, v in values.items() if name.startswith(prefix)}
        for prefix in (FORWARD, BACKWARD)
    )
    return forward, backward


def join_directions(values: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Those of both directions, under the names that both together have."""
    return {
        prefix + name: value
        for prefix, own in zip((FORWARD, BACKWARD), values, strict=True)
        for name, value in own.items()
    }


@dataclass(frozen=True, eq=False)
class BidirectionalCorpus:
    """The corpus of both directions."""

    forward: BitextCorpus
    backward: BitextCorpus

    def __len__(self) -> int:
        return len(self.forward)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[BidirectionalShard]:
        both = (side.shards(batch_size, seed) for side in (self.forward, self.backward))
        return [BidirectionalShard(*each) for each in zip(*both, strict=True)]

    def name(self, number: int) -> str:
        return self.forward.name(number)


class AgreementCore(Model):
    """Each direction counts links by the product of both directions' posteriors.

    Links that one direction alone believes in are not learned from (Liang, Taskar & Klein 2006).
    That is a heuristic E-step: the objective, log p(f | e) + log p(e | f), need not rise.

    ``agree``     False: both learn side by side, each for itself
    ``max_iter``  the steps of a warm-up; None: as many as are usual
    """

    threads_inside = True
    few_steps = True
    default_learner = EM(max_iter=5)

    def __init__(
        self,
        name: str,
        forward: AlignmentCore,
        backward: AlignmentCore,
        agree: bool = True,
        max_iter: int | None = None,
    ) -> None:
        if max_iter is not None:  # of a warm-up: all its steps, however little they change
            self.default_learner = EM(max_iter=max_iter, tol=0.0)
        self.name, self.agree = name, agree
        self.monotone = forward.monotone and backward.monotone and not agree
        self.no_bound = NO_BOUND if agree else ""
        self.forward, self.backward = forward, backward
        self.families: dict[str, Family] = join_directions([forward.families, backward.families])
        self.entropy_of = (FORWARD + TABLE, BACKWARD + TABLE)

    def estimate(self, corpus: BidirectionalCorpus) -> Estimate:
        """What both directions need."""
        found, more = self.forward.estimate(corpus.forward), self.backward.estimate(corpus.backward)
        return found.plus(more.work, **more.parts)

    def expect(
        self, params: Params, shard: BidirectionalShard, how: EStep, local: Any = None
    ) -> Stats:
        """Counts of both directions, and the sum of their log-likelihoods."""
        own, others = split_directions(params)
        if not self.agree:
            one = self.forward.expect(own, shard.forward, how)
            other = self.backward.expect(others, shard.backward, how)
        else:
            forward = ShardEStep(self.forward, own, shard.forward, how)
            backward = ShardEStep(self.backward, others, shard.backward, how)
            for here, there in zip(shard.forward.blocks(), shard.backward_blocks(), strict=True):
                links, back = forward.posteriors(here), backward.posteriors(there)
                if not how.score_only:
                    sizes = PairSizes(*here.sizes, here.offsets, there.offsets)
                    given = (sizes, links, back)
                    over_rows(kernels.multiply_directions, here.offsets, how.threads, *given)
                forward.count(here, links)
                backward.count(there, back)
            one, other = forward.stats(), backward.stats()
        return Stats(
            join_directions([one.counts, other.counts]),
            one.log_likelihood + other.log_likelihood,
            one.score + other.score,
            one.items,
            one.tokens + other.tokens,
            uncounted=one.uncounted + other.uncounted,
        )

    def totals(self, shard: BidirectionalShard) -> dict[str, float]:
        """Every word of either side has one source."""
        return join_directions(
            [self.forward.totals(shard.forward), self.backward.totals(shard.backward)]
        )


class BidirectionalAligner(BaseAligner):
    """An aligner of both directions.

    After `fit`: ``forward_`` and ``backward_``, the aligners of one direction, and what these have.
    """

    default_learner: ClassVar[Learner] = AgreementCore.default_learner
    agree: bool
    """Whether the directions learn from each other."""
    threshold: float
    dictionary: Any
    _usual_method: str = "product"
    """How links are chosen if nothing is said."""
    forward_: DirectionalAligner
    backward_: DirectionalAligner
    _corpus: BidirectionalCorpus | None

    @property
    @abstractmethod
    def _name(self) -> str:
        """What signatures call it."""

    @abstractmethod
    def _make_direction(self, dictionary: Any) -> DirectionalAligner:
        """A direction's own estimator."""

    @abstractmethod
    def _learn_more(
        self, core: AgreementCore, corpus: BidirectionalCorpus, more: Sequence[Continuation]
    ) -> Fit:
        """Learn from more pairs."""

    @property
    def _directions(self) -> tuple[DirectionalAligner, DirectionalAligner]:
        return self.forward_, self.backward_

    # learning
    def _make_directions(self) -> tuple[DirectionalAligner, DirectionalAligner]:
        """Both directions' own estimators; a dictionary is read either way."""
        if self.dictionary is None:
            return self._make_direction(None), self._make_direction(None)
        backward = Dictionary.of(self.dictionary).reversed()
        return self._make_direction(self.dictionary), self._make_direction(backward)

    def _bind(
        self, data: Any, links: Sequence[Any] | None = None
    ) -> tuple[AgreementCore, BidirectionalCorpus]:
        self._check_settings()
        self.forward_, self.backward_ = self._make_directions()
        forward, there = self.forward_._bind(data, links)
        constraints = there.constraints and there.constraints.reversed()
        backward, back = self.backward_._bind_pairs(there.pairs.flipped(), constraints)
        core = AgreementCore(self._name, forward, backward, self.agree)
        return core, BidirectionalCorpus(there, back)

    def _bind_more(self, core: AgreementCore, data: Any) -> BidirectionalCorpus:
        there = self.forward_._bind_more(core.forward, data)
        back = self.backward_._bind_more(core.backward, there.pairs.flipped())
        return BidirectionalCorpus(there, back)

    def _uniform_start(self, core: AgreementCore) -> dict[str, Array]:
        """All translations of a word as likely as each other, in both directions."""
        forward = self.forward_._uniform_start(core.forward)
        return join_directions([forward, self.backward_._uniform_start(core.backward)])

    def _warm_up_model(self, corpus: BidirectionalCorpus, agree: bool, steps: int) -> AgreementCore:
        """Model 1 in both directions, for this number of steps."""
        forward = self.forward_._model1(corpus.forward, steps)
        backward = self.backward_._model1(corpus.backward, steps)
        return AgreementCore("warm-up", forward, backward, agree, steps)

    def _keep_fit(self, core: AgreementCore, corpus: BidirectionalCorpus, found: Fit) -> None:
        super()._keep_fit(core, corpus, found)
        cores, corpora = (core.forward, core.backward), (corpus.forward, corpus.backward)
        each = zip(self._directions, cores, corpora, split_directions(found.params), strict=True)
        for own, side, pairs, params in each:
            own.core_, own.raw_params_, own.signature_ = side, params, found.signature
            own._corpus, own._past = pairs, None
        self._corpus, self.n_iter_ = corpus, found.trace[-1].step

    def partial_fit(self, pairs: Any, links: Sequence[Any] | None = None) -> Self:
        """Learn from more pairs; see `IBM1.partial_fit`."""
        if not hasattr(self, "raw_params_"):
            return self.fit(pairs, links=links)
        with all_or_nothing(self), all_or_nothing(self.forward_), all_or_nothing(self.backward_):
            self._check_settings()
            for own, as_set in zip(self._directions, self._make_directions(), strict=True):
                own.set_params(**as_set.get_params())  # settings may have changed
            forward_past, backward_past = self._expected_counts()
            forward = self.forward_._continue(pairs, links, forward_past)
            there = forward.corpus
            constraints = there.constraints and there.constraints.reversed()
            backward = self.backward_._continue(there.pairs.flipped(), constraints, backward_past)
            core = AgreementCore(self._name, forward.core, backward.core, self.agree)
            corpus = BidirectionalCorpus(there, backward.corpus)
            self._keep_fit(core, corpus, self._learn_more(core, corpus, (forward, backward)))
            self.forward_._past, self.backward_._past = forward.past, backward.past
            return self

    def decompose(self, data: Any, params: Any, at: Any = None, **known: Any) -> Decomposition:
        """Not for both directions at once: ask ``forward_`` or ``backward_``, each for itself.

        Where they agree, links are counted by the product of both posteriors, and what a sampler
        has drawn is no posterior at all: no bound on the likelihood goes with either.
        """
        raise LearnerError(
            f"{type(self).__name__} has two models, of which each has a likelihood of its own",
            "model.forward_.decompose(pairs, model.forward_.params_), and so for backward_",
        )

    def _possible_params(self) -> Params:
        """Parameters by which all pairs learned from are possible."""
        return self.raw_params_

    def _expected_counts(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Expected counts of all pairs that either direction has seen, by family."""
        if self._corpus is None:
            return self.forward_._expected_counts(), self.backward_._expected_counts()
        (shard,) = self._corpus.shards()
        counts = self.core_.expect(self._possible_params(), shard, EStep()).counts
        forward, backward = split_directions(counts)
        return self.forward_._add_past(forward), self.backward_._add_past(backward)

    # tables
    @property
    def source_words_(self) -> list[str]:
        """The source words."""
        return self.forward_.source_words_

    @property
    def target_words_(self) -> list[str]:
        """The target words."""
        return self.forward_.target_words_

    def table(self) -> Any:
        """t(target word | source word), as `IBM1.table` has it; see ``backward_`` for the other."""
        return self.forward_.table()

    def translations(self, word: str | None, n: int = 10) -> list[tuple[str, float]]:
        """The n most probable translations of a source word; None: what comes from no word."""
        return self.forward_.translations(word, n)

    # aligning
    def _shards(self, pairs: Any) -> tuple[Bitext, Iterator[BidirectionalShard]]:
        self._require_fit()
        text, forward = self.forward_._shards(pairs)
        _, backward = self.backward_._shards(self._flip(text))
        return text, map(BidirectionalShard, forward, backward)

    def _flip(self, text: Bitext) -> Bitext | None:
        """The pairs as the backward direction sees them; None: those learned from."""
        own = getattr(self.forward_, "_corpus", None)
        return None if own is not None and text is own.pairs else text.flipped()

    def align(
        self, pairs: Any = None, *, method: str | None = None, threshold: float | None = None
    ) -> list[list[Link]]:
        """The links (i, j) of each pair: source position and target position, counted from 0.

        ``pairs``      None: the pairs learned from
        ``method``     "product": the geometric mean of both directions' posteriors is above the
                       threshold; "soft-union": their arithmetic mean is; "forward", "backward": the
                       best alignment of one direction; "intersection", "union", "grow-diag",
                       "grow-diag-final", "grow-diag-final-and": both of these, symmetrised. None:
                       what is usual for the model, "product" or "soft-union"
        ``threshold``  instead of the model's own
        """
        return self.links(pairs, method=method, threshold=threshold)[0].lists()

    def links(
        self,
        pairs: Any = None,
        *,
        method: str | None = None,
        threshold: float | None = None,
        probabilities: bool = False,
    ) -> tuple[FlatLinks, FloatArray]:
        """As `align`, in flat arrays, and the links' probabilities if they are wanted."""
        by = method or self._usual_method
        if by not in METHODS:
            raise LearnerError(f"method={brief(by)} is unknown", f"choose {', '.join(METHODS)}")
        if threshold is not None and by not in MEANS:
            raise LearnerError(f"a threshold is for {' and '.join(MEANS)}, not for {by}")
        if by not in MEANS:
            return self._choose(pairs, lambda shard: self._best(shard, by, probabilities))
        level = check_threshold(self.threshold if threshold is None else threshold)
        return self._choose(
            pairs,
            lambda shard: (
                select_links(*found, level) for found in self._posterior_blocks(shard, by)
            ),
        )

    def _best(
        self, shard: BidirectionalShard, method: Any, probabilities: bool
    ) -> Iterator[ChosenLinks]:
        """The best alignments of both directions, symmetrised."""
        posteriors = self._posterior_blocks(shard) if probabilities else None
        forward = self.forward_._posterior_blocks(shard.forward, best=True)
        blocks = shard.backward_blocks()
        backward = self.backward_._posterior_blocks(shard.backward, blocks, best=True)
        for (block, there), (other, back) in zip(forward, backward, strict=True):
            links = select_links(block, there, HALF).links
            reverse, _ = select_links(other, back, HALF).links.flipped(np.zeros(0))
            if method == "backward":
                links = reverse
            elif method != "forward":
                links = symmetrise_all(links, reverse, method)
            chosen = ChosenLinks(block.numbers, links, np.zeros(0))
            yield chosen.with_values(block, None if posteriors is None else next(posteriors)[1])

    def _posterior_blocks(
        self, shard: BidirectionalShard, method: str | None = None
    ) -> LinkMatrices:
        """The mean of both directions' posteriors, block by block."""
        geometric = (method or self._usual_method) == "product"
        forward = self.forward_._posterior_blocks(shard.forward)
        backward = self.backward_._posterior_blocks(shard.backward, shard.backward_blocks())
        for (block, links), (other, back) in zip(forward, backward, strict=True):
            given = (PairSizes(*block.sizes, block.offsets, other.offsets), links, back, geometric)
            over_rows(kernels.average_directions, block.offsets, self._threads, *given)
            yield block, links

    def score_samples(self, pairs: Any = None) -> FloatArray:
        """log p(target | source) + log p(source | target) of each pair; 0 if a side is empty."""
        text, _ = self._shards(pairs)
        backward = self.backward_.score_samples(self._flip(text))
        return self.forward_.score_samples(text) + backward

    # files
    def _pack(self) -> tuple[dict[str, Array], list[list[str]]]:
        each = zip(self._directions, self._expected_counts(), strict=True)
        arrays = join_directions([own._pack_arrays(past) for own, past in each])
        return arrays, [list(side.words) for side in self.forward_._vocabularies]

    def _unpack(self, stored: store.Stored, words: Vocabularies) -> None:
        self._check_settings()
        self.forward_, self.backward_ = self._make_directions()
        forward, backward = split_directions(stored.arrays)
        self.forward_._unpack(replace(stored, arrays=forward), words)
        self.backward_._unpack(replace(stored, arrays=backward), (words[1], words[0]))
        self.forward_.signature_ = self.backward_.signature_ = stored.signature
        self.core_ = AgreementCore(
            self._name, self.forward_.core_, self.backward_.core_, self.agree
        )
        self.raw_params_ = join_directions(own.raw_params_ for own in self._directions)
        self._corpus = None


@dataclass(eq=False, repr=False)
class Aligner(BidirectionalParameters, BidirectionalAligner):
    """Both directions, which learn to agree (Liang, Taskar & Klein 2006): the one to begin with.

    ``model``      "hmm", "diagonal", "ibm2" or "ibm1", for both directions
    ``agree``      False: each direction learns for itself
    ``warm_up``    the number of steps of Model 1 to begin with, in agreement as well: they are in
                   ``trace_.warm_up``
    ``threshold``  links that are more probable than this, by the geometric mean of both directions
    ``settings``   more parameters of the directions' models, such as {"p_null": 0.1}

    For the other parameters see `IBM1`. A dictionary works in both directions.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> Aligner().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    @property
    def _name(self) -> str:
        return f"Aligner({self.model}{', agree' if self.agree else ''})"

    def _make_direction(self, dictionary: Any) -> DirectionalAligner:
        kind, more = MODELS[self.model], {} if self.settings is None else self.settings
        if not isinstance(more, Mapping):
            raise LearnerError(f"settings={brief(more)}", 'write {"p_null": 0.2}')
        known = set(kind._get_param_names()) - set(self._get_param_names())
        strange = sorted(str(name) for name in more if name not in known)
        if strange:
            raise LearnerError(
                f"settings: {self.model} has no setting {strange[0]!r} of its own",
                f"choose among {', '.join(sorted(known))}",
            )
        shared = {field.name: getattr(self, field.name) for field in fields(TableParameters)}
        return kind(**{**more, **shared, "dictionary": dictionary, "init": None})

    def _start_values(self, core: AgreementCore, corpus: BidirectionalCorpus, init: Any) -> Any:
        if init is not None:
            starts = [
                self.forward_._start_values(core.forward, corpus.forward, init),
                self.backward_._start_values(core.backward, corpus.backward, init),
            ]
            if any(callable(start) for start in starts):
                raise LearnerError(f"init={init!r} is not known here", "'uniform', or leave it out")
            return join_directions(starts)
        # Model 1 in both directions, in agreement; its first step has nothing to agree on yet
        stages = ((False, min(self.warm_up, 1)), (self.agree, self.warm_up - 1))
        models = [self._warm_up_model(corpus, agree, steps) for agree, steps in stages if steps > 0]
        start = self._uniform_start(core)
        return WarmStart(start, models) if models else start

    def _learn_more(
        self, core: AgreementCore, corpus: BidirectionalCorpus, more: Sequence[Continuation]
    ) -> Fit:
        forward, backward = (each.core_with_past() for each in more)
        with_past = AgreementCore(self._name, forward, backward, self.agree)
        start = join_directions([each.start for each in more])
        return self._run(with_past, corpus, self._learner, start, 0, {})
