"""Both directions at once: `Aligner`, and what it shares with `GibbsAligner`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Self, Unpack, get_args

import numpy as np

from softcount import store
from softcount.align import agreement as kernels
from softcount.align.agreement import (
    BACKWARD,
    FORWARD,
    AgreementCore,
    TwoWay,
    TwoWayPairs,
    one_way,
    together,
)
from softcount.align.data import Block, Words
from softcount.align.decoding import (
    HALF,
    Aligning,
    Found,
    Method,
    above,
    checked_level,
    symmetrise_all,
)
from softcount.align.dictionary import Dictionary
from softcount.align.estimators import IBM1, IBM2, Diagonal, HMMAligner, OneWay, Options
from softcount.align.growth import Grown, Past, grown, past_of
from softcount.align.stored import StoredAligner, pack, part, unpack
from softcount.bounds import MAX_RUNS
from softcount.corpus.bitext import Bitext
from softcount.corpus.links import FlatLinks, Link
from softcount.errors import LearnerError, shown
from softcount.fit import fit
from softcount.models.learnable import FitOptions, Learnable, all_or_nothing, naming
from softcount.models.settings import check_number, check_whole
from softcount.theory import Decomposition
from softcount.types import Array, Fit, How, Params

MEANS = ("product", "soft-union")
"""Ways to join the posteriors of both directions; all others symmetrise best alignments."""
METHODS = (*MEANS, "forward", "backward", *get_args(Method))


class TwoWays(Aligning, StoredAligner, Learnable):
    """An aligner of both directions.

    ``agree``         whether the directions learn from each other
    ``usual_method``  how links are chosen if nothing is said
    """

    agree: bool
    warm_up: int
    threshold: float
    dictionary: Any
    usual_method: str = "product"
    forward_: OneWay
    backward_: OneWay
    _corpus: TwoWayPairs | None

    @property
    @abstractmethod
    def _name(self) -> str:
        """What signatures call it."""

    @abstractmethod
    def _one_way(self, dictionary: Any) -> OneWay:
        """A direction's own estimator."""

    @abstractmethod
    def _learn_more(self, forward: Grown, backward: Grown) -> None:
        """Learn from more pairs."""

    # learning
    def fit(  # type: ignore[override]  # known links come with the pairs
        self,
        pairs: Any,
        links: Sequence[Any] | None = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from sentence pairs; see `IBM1.fit`."""
        with all_or_nothing(self):
            core, corpus = self.bind(pairs, links)
            return self.learn(core, corpus, init, **options)

    def _directions(self) -> tuple[OneWay, OneWay]:
        """Both directions' own estimators."""
        if self.dictionary is None:
            return self._one_way(None), self._one_way(None)
        told = Dictionary.of(self.dictionary)
        return self._one_way(self.dictionary), self._one_way(told.flipped().plain())

    def bind(
        self, data: Any, links: Sequence[Any] | None = None
    ) -> tuple[AgreementCore, TwoWayPairs]:
        """The core and the corpus."""
        self._check_settings()
        self.forward_, self.backward_ = self._directions()
        forward, there = self.forward_.bind(data, links)
        known = there.known and there.known.flipped()
        backward, back = self.backward_.bind_pairs(there.pairs.flipped(), known)
        return AgreementCore(self._name, forward, backward, self.agree), TwoWayPairs(there, back)

    def prior_hint(self) -> str:
        return "give smoothing above 0, for example 0.01"

    def _check_settings(self) -> None:
        super()._check_settings()
        hint = "0: none; 5 steps of Model 1 are usual"
        check_whole("warm_up", self.warm_up, 0, hint, MAX_RUNS)
        check_number("threshold", self.threshold)
        if self.threshold >= 1.0:
            raise LearnerError(f"threshold={self.threshold}", "give a probability below 1")

    def bind_more(self, core: AgreementCore, data: Any) -> TwoWayPairs:
        forward = self.forward_.bind_more(core.ways[0][1], data)
        backward = self.backward_.bind_more(core.ways[1][1], forward.pairs.flipped())
        return TwoWayPairs(forward, backward)

    def keep(self, core: AgreementCore, corpus: TwoWayPairs, found: Fit) -> None:
        super().keep(core, corpus, found)
        ways = ((self.forward_, corpus.forward), (self.backward_, corpus.backward))
        for (way, pairs), (name, own) in zip(ways, core.ways, strict=True):
            way.core_, way.raw_params_ = own, one_way(found.params, name)
            way.signature_, way._corpus, way._before = found.signature, pairs, None
        self._corpus, self.n_iter_ = corpus, found.trace[-1].step

    def partial_fit(self, pairs: Any, links: Sequence[Any] | None = None) -> Self:
        """Learn from more pairs; see `IBM1.partial_fit`."""
        if not hasattr(self, "raw_params_"):
            return self.fit(pairs, links=links)
        with all_or_nothing(self), all_or_nothing(self.forward_), all_or_nothing(self.backward_):
            self._check_settings()
            for way, as_set in zip(
                (self.forward_, self.backward_), self._directions(), strict=True
            ):
                way.set_params(**as_set.get_params())  # settings may have changed
            forward_past, backward_past = self.pasts()
            forward = grown(self.forward_, pairs, links, forward_past)
            there = forward.corpus
            known = there.known and there.known.flipped()
            backward = grown(self.backward_, there.pairs.flipped(), known, backward_past)
            self._learn_more(forward, backward)
            self.forward_._before, self.backward_._before = forward.past, backward.past
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

    def _believable(self) -> Params:
        """Parameters by which all pairs learned from are possible."""
        return self.raw_params_

    def pasts(self) -> tuple[Past, Past]:
        """Expected counts of all pairs that either direction has seen."""
        ways = (self.forward_, self.backward_)
        if self._corpus is None:
            return ways[0].past(), ways[1].past()
        (shard,) = self._corpus.shards()
        counts = self.core_.expect(self._believable(), shard, How()).counts
        forward, backward = (
            past_of(one_way(counts, name), way._before)
            for name, way in zip((FORWARD, BACKWARD), ways, strict=True)
        )
        return forward, backward

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
    def shards(self, pairs: Any) -> tuple[Bitext, Iterator[TwoWay]]:
        self._require_fit()
        text, forward = self.forward_.shards(pairs)
        _, backward = self.backward_.shards(None if self._is_own(text) else text.flipped())
        return text, map(TwoWay, forward, backward)

    def _is_own(self, text: Bitext) -> bool:
        own = getattr(self.forward_, "_corpus", None)
        return own is not None and text is own.pairs

    def align(
        self, pairs: Any = None, *, method: str | None = None, threshold: float | None = None
    ) -> list[list[Link]]:
        """The links (i, j) of each pair: source place and target place, counted from 0.

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
    ) -> tuple[FlatLinks, Array]:
        """As `align`, in flat arrays, and the links' probabilities if they are wanted."""
        by = method or self.usual_method
        if by not in METHODS:
            raise LearnerError(f"method={shown(by)} is unknown", f"choose {', '.join(METHODS)}")
        if threshold is not None and by not in MEANS:
            raise LearnerError(f"a threshold is for {' and '.join(MEANS)}, not for {by}")
        if by not in MEANS:
            return self.chosen(pairs, lambda shard: self._best(shard, by, probabilities))
        level = checked_level(self.threshold if threshold is None else threshold)
        return self.chosen(
            pairs, lambda shard: (above(*found, level) for found in self.beliefs(shard, by))
        )

    def _best(self, shard: TwoWay, method: str, probabilities: bool) -> Iterator[Found]:
        """The best alignments of both directions, symmetrised."""
        believed = self.beliefs(shard) if probabilities else None
        forward = self.forward_.decisions(shard.forward)
        backward = self.backward_.decisions(shard.backward, shard.backward_blocks())
        for (block, there), (other, back) in zip(forward, backward, strict=True):
            turned = _turned(above(other, back, HALF).links)
            links = _symmetrised(above(block, there, HALF).links, turned, method)
            found = Found(block.numbers, links, np.zeros(0))
            yield found if believed is None else found.valued(block, next(believed)[1])

    def beliefs(self, shard: TwoWay, method: str | None = None) -> Iterator[tuple[Block, Array]]:
        """The mean of both directions' posteriors, block by block."""
        geometric = (method or self.usual_method) == "product"
        forward = self.forward_.beliefs(shard.forward)
        backward = self.backward_.beliefs(shard.backward, shard.backward_blocks())
        for (block, links), (other, back) in zip(forward, backward, strict=True):
            together(kernels.join, (block, other), (links, back), self.threads, geometric)
            yield block, links

    def score_samples(self, pairs: Any = None) -> Array:
        """log p(target | source) + log p(source | target) of each pair; 0 if a side is empty."""
        text, _ = self.shards(pairs)
        turned = None if self._is_own(text) else text.flipped()
        return self.forward_.score_samples(text) + self.backward_.score_samples(turned)

    # files
    def packed(self) -> tuple[dict[str, Array], list[list[str]]]:
        past, back = self.pasts()
        arrays = pack(self.forward_, past, FORWARD) | pack(self.backward_, back, BACKWARD)
        return arrays, [list(side.words) for side in self.forward_.words_]

    def unpack(self, stored: store.Stored, words: Words) -> None:
        self._check_settings()
        self.forward_, self.backward_ = self._directions()
        unpack(self.forward_, part(stored, FORWARD), words)
        unpack(self.backward_, part(stored, BACKWARD), (words[1], words[0]))
        self.core_ = AgreementCore(
            self._name, self.forward_.core_, self.backward_.core_, self.agree
        )
        self.raw_params_ = {
            way + name: table
            for way, own in ((FORWARD, self.forward_), (BACKWARD, self.backward_))
            for name, table in own.raw_params_.items()
        }
        for way in (self.forward_, self.backward_):
            way.signature_ = stored.signature
        self._corpus = None


def _symmetrised(forward: FlatLinks, backward: FlatLinks, method: Any) -> FlatLinks:
    if method in ("forward", "backward"):
        return forward if method == "forward" else backward
    return symmetrise_all(forward, backward, method)


def _turned(links: FlatLinks) -> FlatLinks:
    """Links of the other direction, in the order of (i, j)."""
    order = np.lexsort((links.source, links.target, links.pair))
    return FlatLinks(links.indptr, links.target[order], links.source[order])


# The aligner to begin with: both directions, which learn to agree.


MODELS: dict[str, Any] = {
    "ibm1": IBM1,
    "ibm2": IBM2,
    "diagonal": Diagonal,
    "hmm": HMMAligner,
}


@dataclass(eq=False, repr=False)
class Aligner(Options, TwoWays):
    """Both directions, which learn to agree (Liang, Taskar & Klein 2006).

    ``model``      "hmm", "diagonal", "ibm2" or "ibm1", for both directions
    ``agree``      False: each direction learns for itself
    ``warm_up``    so many steps of Model 1 come first, in agreement as well
    ``threshold``  links that are more probable than this, by the geometric mean of both directions
    ``settings``   more settings of the directions' models, such as {"p_null": 0.1}

    For the other settings see `IBM1`. A dictionary works both ways.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> Aligner().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    model: str = "hmm"
    _: KW_ONLY
    agree: bool = True
    warm_up: int = 5
    threshold: float = 0.5
    smoothing: float = 0.0003
    stem: int | None = 4
    settings: dict[str, Any] | None = None

    @property
    def _name(self) -> str:
        return f"Aligner({self.model}{', agree' if self.agree else ''})"

    def _one_way(self, dictionary: Any) -> OneWay:
        """A direction's own estimator."""
        if self.model not in MODELS:
            raise LearnerError(
                f"model={shown(self.model)} is unknown", f"choose one of {', '.join(MODELS)}"
            )
        shared = {field.name: getattr(self, field.name) for field in fields(Options)}
        given = {**self._own_settings(), **shared, "dictionary": dictionary, "init": None}
        way: OneWay = MODELS[self.model](**given)
        return way

    def _own_settings(self) -> dict[str, Any]:
        """Settings that the model of a direction has and this one has not."""
        given = self.settings if self.settings is not None else {}
        if not isinstance(given, Mapping):
            raise LearnerError(f"settings={shown(given)}", 'write {"p_null": 0.2}')
        known = set(MODELS[self.model]._get_param_names()) - set(self._get_param_names())
        strange = sorted(str(name) for name in given if name not in known)
        if strange:
            raise LearnerError(
                f"settings: {self.model} has no setting {strange[0]!r} of its own",
                f"choose among {', '.join(sorted(known))}",
            )
        return dict(given)

    def start_values(self, core: AgreementCore, corpus: TwoWayPairs, init: Any) -> Any:
        ways = ((self.forward_, corpus.forward), (self.backward_, corpus.backward))
        starts = [
            way.start_values(own, pairs, "uniform" if init is None else init)
            for (way, pairs), (_, own) in zip(ways, core.ways, strict=True)
        ]
        if any(callable(start) for start in starts):
            raise LearnerError(f"init={init!r} is not known here", "'uniform', or leave it out")
        start = {
            way + name: values
            for (way, _), own in zip(core.ways, starts, strict=True)
            for name, values in own.items()
        }
        return self._warmed_up(start, corpus) if init is None and self.warm_up else start

    def _warmed_up(self, start: dict[str, Array], corpus: TwoWayPairs) -> dict[str, Array]:
        """Model 1 in both directions, in agreement; its first step has nothing to agree on yet."""
        forward = self.forward_.model1(corpus.forward)
        backward = self.backward_.model1(corpus.backward)
        for agree, steps in ((False, 1), (self.agree, self.warm_up - 1)):
            core = AgreementCore("warm-up", forward, backward, agree)
            core.usual_dials = {"max_iter": steps, "tol": 0.0}
            if steps:
                tables = {name: start[name] for name in core.families}
                with naming(corpus):
                    start |= fit(core, corpus, None, self.engine, init=tables).params
        return start

    def _learn_more(self, forward: Grown, backward: Grown) -> None:
        own = forward.remembering(), backward.remembering()
        core = AgreementCore(self._name, own[0], own[1], self.agree)
        corpus = TwoWayPairs(forward.corpus, backward.corpus)
        start = {
            name + table: values
            for name, way in ((FORWARD, forward), (BACKWARD, backward))
            for table, values in way.start.items()
        }
        found = self._run(core, corpus, self.learner, start, 0, {})
        for way in (forward, backward):
            way.forgetting()
        self.keep(AgreementCore(self._name, forward.core, backward.core, self.agree), corpus, found)
