"""What travels between models, learners and engines: counts, steps, what a fit leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softcount.core.verdict import Verdict

FloatArray = NDArray[np.floating[Any]]
"""Numbers of 64 bits, or of 32 where a model is asked for them; say the shape in a comment."""
IntArray = NDArray[np.integer[Any]]
"""Whole numbers: indices, counts of things, offsets."""
BoolArray = NDArray[np.bool_]
"""Truth values: masks."""
Array = NDArray[Any]
"""Any of these, where the type of the numbers does not matter."""
Params = Mapping[str, Array]
"""One array of parameters for each family, by the family's name."""

Fill = Literal["soft", "hard", "sample"]
"""How hidden values are filled in: posterior weights, the single best value, or a draw."""

Update = Literal["maximise", "mean_field", "draw"]
"""How counts become parameters: their mode, exp of the expected log, or a posterior draw."""


@dataclass(frozen=True)
class SparseCounts:
    """Counts of the few entries of a large table that a shard touches; all others are zero.

    ``index`` is sorted and has no repeats.
    """

    index: Array
    value: Array
    size: int

    __array_ufunc__ = None  # let array + sparse come to __radd__

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, SparseCounts):
            dense = np.array(other)
            dense.reshape(-1)[self.index] += self.value
            return dense
        if np.array_equal(self.index, other.index):
            return replace(self, value=self.value + other.value)
        both = np.concatenate([self.index, other.index])
        order = np.argsort(both, kind="stable")  # a merge: linear in two sorted runs
        both = both[order]
        first = np.flatnonzero(np.diff(both, prepend=-1))
        value = np.concatenate([self.value, other.value])[order]
        return SparseCounts(both[first], np.add.reduceat(value, first), self.size)

    __radd__ = __add__

    def __mul__(self, factor: float) -> SparseCounts:
        return replace(self, value=self.value * factor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        dense = np.zeros(self.size, dtype=dtype or self.value.dtype)
        dense[self.index] = self.value
        return dense


Counts = Array | SparseCounts


@dataclass(frozen=True)
class Uncounted:
    """What log p(x, z | θ) has that no family counts: fixed probabilities, and a shard's own rows.

    Expectations under the posterior of the E-step, in nats, for E-steps that are asked for
    ``theory``; all zero for models whose families count everything.

    ``expected``  E[log …] with the parameters of the E-step
    ``ahead``     the same with the parameters of `EStep.against`; if there are none, with what the
                  E-step itself moved (`Stats.local`)
    ``prior``     what `Stats.score` has of the prior of parameters that belong to the shard
    """

    expected: float = 0.0
    ahead: float = 0.0
    prior: float = 0.0

    def __add__(self, other: Uncounted) -> Uncounted:
        return Uncounted(
            self.expected + other.expected, self.ahead + other.ahead, self.prior + other.prior
        )


NOTHING_UNCOUNTED = Uncounted()


@dataclass(frozen=True)
class Stats:
    """The result of an E-step over some data: expected counts, and how well the data fit.

    Stats of two shards add with ``+``.

    ``counts``          sufficient statistics, one entry a family
    ``log_likelihood``  log p(x | θ), in nats
    ``score``           what the E-step attained, the learner's objective before the prior:
                        soft and sample log p(x | θ) (tempered: log Σ_z p(x, z)^β / β),
                        hard log p(x, ẑ | θ)
    ``items``           how many items (their weights added up)
    ``tokens``          how many observations, for perplexity
    ``local``           new values of parameters that belong to the shard; stays with the engine
    ``uncounted``       what log p(x, z) has beside the counts, if the E-step was asked for theory
    ``magnitude``       what the terms of the log-likelihood add up to without their signs, where
                        that is far more than the number of observations: rounding grows with it
    """

    counts: Mapping[str, Counts]
    log_likelihood: float = 0.0
    score: float = 0.0
    items: float = 0.0
    tokens: float = 0.0
    local: Any = field(default=None, compare=False)
    uncounted: Uncounted = NOTHING_UNCOUNTED
    magnitude: float = 0.0

    def __add__(self, other: Stats) -> Stats:
        return Stats(
            {name: self.counts[name] + other.counts[name] for name in self.counts},
            self.log_likelihood + other.log_likelihood,
            self.score + other.score,
            self.items + other.items,
            self.tokens + other.tokens,
            uncounted=self.uncounted + other.uncounted,
            magnitude=self.magnitude + other.magnitude,
        )

    @property
    def perplexity(self) -> float:
        """exp of the negative log-likelihood a token."""
        with np.errstate(over="ignore"):
            return float(np.exp(-self.log_likelihood / max(self.tokens, 1.0)))


@dataclass(frozen=True)
class EStep:
    """How an E-step is to be done.

    ``stream`` seeds its draws: a draw depends on the stream and the item, never on the thread.
    ``threads`` is how many threads a kernel may use inside one shard.
    ``score_only`` asks for the log-likelihood alone; counts may then be left empty.
    ``update`` is what becomes of counts of a shard's own; None leaves it to the model.
    ``mini_batch`` says that tables move after every shard, which must make the most of its turn.
    ``theory`` asks for `Stats.uncounted`, so that Q and the entropy can be separated.
    ``against`` are other parameters, at which `Uncounted.ahead` is computed.
    """

    fill: Fill = "soft"
    temper: float = 1.0
    samples: int = 1
    stream: int = 0
    threads: int = 1
    score_only: bool = False
    update: Update | None = None
    mini_batch: bool = False
    theory: bool = False
    against: Params | None = None


@dataclass(frozen=True)
class State:
    """Where learning stands after a step; step 0 is the start.

    ``q`` and ``bound`` (asked for with ``theory=True``) are Q(Θ_t, Θ_{t-1}) and the lower bound
    Q + H that the previous E-step put under the log-likelihood, both at this step's parameters.
    ``held_out`` is the perplexity of held-out words, for learners that hold some out.
    ``entropy`` is the mean entropy of a table's rows in bits, for models that name a table.
    ``rounding`` is how much of the objective may be rounding, beside a tiny part of its size.
    ``restarted_from`` is, at the first step after a new start was made from where the run stood
    (classes were merged), that new start, or {} if the trace keeps no parameters; elsewhere None.
    There it takes the place of Θ_{t-1} in ``q``, ``bound`` and ``change``, and there, and only
    there, the objective of a monotone learner may fall.
    """

    step: int
    params: Params
    objective: float
    log_likelihood: float
    perplexity: float
    seconds: float
    change: float
    temper: float = 1.0
    q: float = float("nan")
    bound: float = float("nan")
    held_out: float = float("nan")
    entropy: float = float("nan")
    rounding: float = 0.0
    restarted_from: Params | None = None

    @property
    def restarted(self) -> bool:
        """Whether this step was made from a new start, not from the state before."""
        return self.restarted_from is not None


@dataclass(frozen=True)
class Trace(Sequence[State]):
    """Every step of one run, the start included; each figure is also a column (an array).

    ``warm_up``  the runs of simpler models that came before the start, one after the other: their
                 objectives are of other models, and not to be compared with those of this one
    """

    states: tuple[State, ...]
    verdict: Verdict
    keeps_params: bool = False
    warm_up: tuple[Trace, ...] = ()

    def __getitem__(self, index: Any) -> Any:
        return self.states[index]

    def __len__(self) -> int:
        return len(self.states)

    def column(self, name: str) -> Array:
        return np.array([getattr(state, name) for state in self.states])

    objective = property(lambda self: self.column("objective"))
    log_likelihood = property(lambda self: self.column("log_likelihood"))
    perplexity = property(lambda self: self.column("perplexity"))
    seconds = property(lambda self: self.column("seconds"))
    change = property(lambda self: self.column("change"))
    q = property(lambda self: self.column("q"))
    bound = property(lambda self: self.column("bound"))
    temper = property(lambda self: self.column("temper"))
    held_out = property(lambda self: self.column("held_out"))
    entropy = property(lambda self: self.column("entropy"))

    def then(self, later: Trace) -> Trace:
        """This run, continued by another whose start was made from where this one ended.

        The later run's start is this run's end in another form, and no state of its own: its first
        step says that it was `State.restarted_from` there.
        """
        here = len(self.states) - 1
        start, *steps = (replace(state, step=here + state.step) for state in later.states)
        if steps:
            steps[0] = replace(steps[0], restarted_from=start.params)
        kept = self.keeps_params and later.keeps_params
        return Trace((*self.states, *steps), later.verdict, kept)

    @property
    def params(self) -> list[Params]:
        """The parameters after every step, if the fit was asked to keep them."""
        if not self.keeps_params:
            raise AttributeError("this trace has no parameters: fit with keep_params=True")
        return [state.params for state in self.states]


@dataclass(frozen=True)
class Fit:
    """What a fit leaves behind.

    ``params``     the parameters of the best run (for a sampler: the mean of its kept draws)
    ``trace``      the best run, step by step
    ``traces``     all runs (restarts or chains), the best one included
    ``draws``      kept draws of each chain, empty unless the learner samples parameters
    ``signature``  one line that makes the run citable
    ``diagnostics`` R-hat and effective sample sizes over chains, empty unless sampled
    ``priors``     priors that the best run learned, empty unless the learner fits some
    ``local``      parameters that belong to items (the topics of documents), of the same state as
                   ``params`` and the last of the trace; empty unless the fit was asked to keep them
    """

    params: Params
    trace: Trace
    traces: tuple[Trace, ...]
    signature: str
    draws: tuple[tuple[Params, ...], ...] = ()
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    priors: Mapping[str, Array] = field(default_factory=dict)
    local: Params = field(default_factory=dict)

    @cached_property
    def verdict(self) -> Verdict:
        return self.trace.verdict
