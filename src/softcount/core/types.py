"""Data types shared by models, learners and engines: counts, E-steps, states, traces, fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from softcount.core.verdict import Verdict

if TYPE_CHECKING:
    from softcount.core.display import PrintedTable
    from softcount.core.posteriors import Posteriors
    from softcount.core.tilting import Tilt

FloatArray = NDArray[np.floating[Any]]
"""64-bit floats, or 32-bit where a model is configured so; give the shape in a comment."""
IntArray = NDArray[np.integer[Any]]
"""Integers: indices, counts, offsets."""
BoolArray = NDArray[np.bool_]
"""Booleans: masks."""
Array = NDArray[Any]
"""Any of these, where the dtype does not matter."""
Params = Mapping[str, Array]
"""One array of parameters per family, by the family's name."""

Fill = Literal["soft", "hard", "sample"]
"""How hidden values are filled in: posterior weights, the single best value, or a draw."""

Update = Literal["maximise", "mean_field", "draw"]
"""How counts become parameters: posterior mode, exp of the expected log, or posterior draw."""


LARGE = 1 << 16
"""Tables of fewer entries than this gain nothing from dense sums: their sums stay sparse."""

MUCH = 0.5
"""Two sparse vectors are added in a dense one if they have more than this fraction of its length.

A merge takes 4 ns per entry of the two, and so do the merges to come with their union; a dense sum
takes 4 ns per entry of the table, and half the memory per entry."""


@dataclass(frozen=True)
class SparseCounts:
    """Counts of the few entries of a large table that a shard touches; all others are zero.

    Sums of them become dense as soon as they have `MUCH` of the table; that depends on the counts
    alone. ``index`` is sorted and has no repeats.
    """

    index: Array
    value: Array
    size: int

    __array_ufunc__ = None  # so that array + sparse calls __radd__

    def __add__(self, other: Counts) -> Counts:
        from softcount.kernels import sparse  # compiled code, which stands on these types

        if not isinstance(other, SparseCounts):
            dense = np.array(other)
            sparse.add_at(dense.reshape(-1), self.index, self.value)
            return dense
        if np.array_equal(self.index, other.index):
            return replace(self, value=self.value + other.value)
        n = len(self.index) + len(other.index)
        dtype = np.result_type(self.value, other.value)
        if self.size >= LARGE and n > MUCH * self.size:
            dense = np.zeros(self.size, dtype)
            for part in (self, other):
                sparse.add_at(dense, part.index, part.value)
            return dense
        index = np.empty(n, np.result_type(self.index, other.index))
        value = np.empty(n, dtype)
        pairs = (self.index, self.value), (other.index, other.value)
        left, right = ((i.astype(index.dtype, copy=False), v) for i, v in pairs)
        n = sparse.merge(*left, *right, index, value)
        return SparseCounts(index[:n], value[:n], self.size)

    __radd__ = __add__

    def __mul__(self, factor: float) -> SparseCounts:
        return replace(self, value=self.value * factor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        dense = np.zeros(self.size, dtype=dtype or self.value.dtype)
        dense[self.index] = self.value
        return dense


MOST_COLUMNS = 0.5
"""Fraction of the columns from which on a sum is a dense table: that takes at most twice the memory
and is read and added to several times as fast."""


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """Counts of the few columns of a wide table that a shard touches; all others are zero.

    ``columns``    sorted, without repeats, (columns touched,)
    ``value``      (columns touched, rows)
    ``n_columns``  the number of columns of the table

    A sum is dense as soon as it touches `MOST_COLUMNS` of the columns.

    >>> one = ColumnCounts(np.array([2]), np.array([[1.0, 4.0]]), 9)
    >>> both = one + ColumnCounts(np.array([2, 5]), np.array([[1.0, 1.0], [7.0, 0.0]]), 9)
    >>> both.columns, both.value[0]
    (array([2, 5]), array([2., 5.]))
    >>> np.asarray(both)[1]
    array([0., 0., 5., 0., 0., 0., 0., 0., 0.])
    """

    columns: IntArray
    value: FloatArray
    n_columns: int

    __array_ufunc__ = None  # so that array + columns calls __radd__

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the table, (rows, columns)."""
        return self.value.shape[1], self.n_columns

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, ColumnCounts):
            dense = np.array(other)
            dense[:, self.columns] += self.value.T
            return dense
        if np.array_equal(self.columns, other.columns):
            return replace(self, value=self.value + other.value)
        both = np.union1d(self.columns, other.columns)
        value = np.zeros((len(both), self.value.shape[1]), self.value.dtype)
        value[np.searchsorted(both, self.columns)] = self.value
        value[np.searchsorted(both, other.columns)] += other.value
        counts = ColumnCounts(both, value, self.n_columns)
        return counts if len(both) < MOST_COLUMNS * self.n_columns else np.asarray(counts)

    __radd__ = __add__

    def __mul__(self, factor: float) -> ColumnCounts:
        return replace(self, value=self.value * factor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        dense = np.zeros(self.shape, dtype=dtype or self.value.dtype)
        dense[:, self.columns] = self.value.T
        return dense


class DerivedCounts(ABC):
    """Counts of one family that are computed from another's, when they are read as an array."""

    __array_ufunc__ = None

    @abstractmethod
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Compute the counts."""

    def __add__(self, other: Counts) -> Counts:
        return np.asarray(self) + other

    def __mul__(self, factor: float) -> Counts:
        return np.asarray(self) * factor

    __radd__ = __add__
    __rmul__ = __mul__


Counts = Array | SparseCounts | ColumnCounts | DerivedCounts


@dataclass(frozen=True)
class Uncounted:
    """Terms of log p(x, z | θ) in no family's counts: fixed probabilities, items' own parameters.

    Expectations under the posterior of the E-step, in nats, filled in by E-steps with ``theory``;
    all zero for models whose families count everything.

    ``expected``  E[log …] with the parameters of the E-step
    ``ahead``     the same with the parameters `EStep.against`, or if there are none, with the local
                  parameters as updated by the E-step itself (`Stats.local`)
    ``prior``     the part of `Stats.score` that is the log-prior of the shard's own parameters
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
    """The result of an E-step over some data: expected counts, and the likelihood of the data.

    The Stats of two shards are added with ``+``.

    ``counts``          expected sufficient statistics, one array per family
    ``log_likelihood``  log p(x | θ), in nats
    ``score``           the learner's objective without the prior of the families:
                        soft and sample log p(x | θ) (tempered: log Σ_z p(x, z)^β / β),
                        hard log p(x, ẑ | θ)
    ``items``           number of items (the sum of their weights)
    ``tokens``          number of observations, for perplexity
    ``local``           new values of parameters that belong to the shard; kept by the engine
    ``uncounted``       terms of log p(x, z) that are not in the counts, if ``theory`` was asked for
    ``magnitude``       Σ |terms of the log-likelihood|, where that is far larger than the number of
                        observations: rounding errors grow with it
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
        """exp of the negative log-likelihood per token."""
        with np.errstate(over="ignore"):
            return float(np.exp(-self.log_likelihood / max(self.tokens, 1.0)))


@dataclass(frozen=True, eq=False)
class PosteriorRows:
    """The posteriors of a shard's hidden values, as its model lays them out.

    ``values``   (rows, columns), NaN where a row cannot have a column's value
    ``items``    the number of the item that each row belongs to, (rows,)
    ``keys``     further numbers that say which hidden value a row is: a position, a word, (rows,)
    ``weights``  how often a row occurs, (rows,); None: once
    """

    values: FloatArray
    items: IntArray
    keys: Mapping[str, Array] = field(default_factory=dict)
    weights: FloatArray | None = None


@dataclass(frozen=True)
class EStep:
    """Options of an E-step.

    ``fill``        how hidden values are filled in: soft, hard or sample
    ``temper``      the power β to which posteriors are raised
    ``samples``     number of draws per item, for ``fill="sample"``
    ``stream``      seeds the draws: a draw depends on the stream and the item, never on the thread
    ``threads``     number of threads that a kernel may use inside one shard
    ``score_only``  compute the log-likelihood only; counts may be left empty
    ``update``      how the shard's own parameters are updated; None leaves it to the model
    ``mini_batch``  parameters are updated after every shard, so the E-step should bring the shard's
                    own parameters close to convergence
    ``theory``      fill in `Stats.uncounted`, so that Q and the entropy can be separated
    ``against``     other parameters, at which `Uncounted.ahead` is computed
    ``tilt``        weights on hidden values, which multiply p(x, z). The score is then that of the
                    weighted values; the log-likelihood is not, but with ``score_only`` it may be
                    left out. The counts have, under `softcount.core.tilting.EXPECTED`, what
                    `Tilt.expect` returns
    ``into``        returns, for the name of a family, the counts that all shards share; a function
                    makes them at first, of zeros. A shard may add its counts to these, instead of
                    returning them, if their sum does not depend on the order. None: shards are not
                    all taken in turn by this process
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
    tilt: Tilt | None = None
    into: Callable[[str, Callable[[], Any]], Any] | None = None


@dataclass(frozen=True)
class State:
    """The state of a run after a step; step 0 is the start.

    ``q`` and ``bound`` (computed with ``theory=True``) are Q(Θ_t, Θ_{t-1}) and the lower bound
    Q + H on the log-likelihood from the previous E-step, both at this step's parameters.
    ``held_out`` is the perplexity of held-out words, for learners that hold some out.
    ``entropy`` is the mean row entropy, in bits, of the tables that the model names.
    ``rounding`` bounds the rounding error of the objective, besides a tiny fraction of its size.
    ``restarted_from`` is None, except at the first step after the run was restarted from a modified
    state (classes were merged). There it is that new start, or {} if the trace keeps no parameters;
    it takes the place of Θ_{t-1} in ``q``, ``bound`` and ``change``, and only there may the
    objective of a monotone learner fall.
    ``slack`` is the largest violation of a constraint on expectations, if there are any.
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
    slack: float = float("nan")
    restarted_from: Params | None = None

    @property
    def restarted(self) -> bool:
        """Whether this step started from a modified state, not from the state before."""
        return self.restarted_from is not None


@dataclass(frozen=True)
class Trace(Sequence[State]):
    """All states of one run, the start included; each figure is also a column (an array).

    ``warm_up``  the runs of simpler models that provided the start, in order; their objectives are
                 those of other models and cannot be compared with this one's
    ``posteriors``  the posteriors at every step's parameters, if the fit was asked to keep them
    """

    states: tuple[State, ...]
    verdict: Verdict
    keeps_params: bool = False
    warm_up: tuple[Trace, ...] = ()
    posteriors: tuple[Posteriors, ...] = ()

    def __getitem__(self, index: Any) -> Any:
        return self.states[index]

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def table(self) -> PrintedTable:
        """Return the figures of all steps as a table, which is how a trace prints."""
        from softcount.core.steps import tabulate

        return tabulate(self)

    def to_frame(self) -> Any:
        """Return the figures of all steps as a data frame, a row per step (needs pandas)."""
        return self.table().to_frame()

    def plot(self, figure: str = "objective", ax: Any = None) -> Any:
        """Draw a figure over the steps with matplotlib, on ``ax`` or new axes; return the axes."""
        from softcount.core.steps import plot

        return plot(self, figure, ax)

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
    slack = property(lambda self: self.column("slack"))

    def then(self, later: Trace) -> Trace:
        """Append a later run whose start was made from the end of this one.

        The later run's start is this run's end in another form, not a state of its own; its first
        step records it in `State.restarted_from`.
        """
        here = len(self.states) - 1
        start, *steps = (replace(state, step=here + state.step) for state in later.states)
        if steps:
            steps[0] = replace(steps[0], restarted_from=start.params)
        kept = self.keeps_params and later.keeps_params
        return Trace((*self.states, *steps), later.verdict, kept)

    def half_steps(self) -> Iterator[tuple[int, str, Any]]:
        """Yield the half-steps of the run: (step, "E", posteriors), (step, "M", parameters), ….

        The E-step at a step's parameters comes after them; the M-step that follows makes those of
        the next step. The start's parameters come first, as if an M-step had made them.
        """
        if not self.posteriors:
            raise AttributeError("this trace has no posteriors: fit with keep_posteriors=True")
        for state, posteriors in zip(self.states, self.posteriors, strict=True):
            yield state.step, "M", state.params
            yield state.step, "E", posteriors

    @property
    def params(self) -> list[Params]:
        """The parameters after every step, if the fit was asked to keep them."""
        if not self.keeps_params:
            raise AttributeError("this trace has no parameters: fit with keep_params=True")
        return [state.params for state in self.states]


@dataclass(frozen=True)
class Fit:
    """The result of a fit.

    ``params``     the parameters of the best run (for a sampler: the mean of its kept draws)
    ``trace``      the best run, step by step
    ``traces``     all runs (restarts or chains), the best one included
    ``draws``      kept draws of each chain, empty unless the learner samples parameters
    ``signature``  one line that identifies the run, to cite it by
    ``diagnostics`` R-hat and effective sample sizes over chains, empty unless sampled
    ``priors``     priors that the best run learned, empty unless the learner fits some
    ``local``      parameters that belong to items (topic proportions of documents), of the same
                   state as ``params`` and the last of the trace; empty unless kept on request
    """

    params: Params
    trace: Trace
    traces: tuple[Trace, ...]
    signature: str
    draws: tuple[tuple[Params, ...], ...] = ()
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    priors: Mapping[str, Array] = field(default_factory=dict)
    local: Params = field(default_factory=dict)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def table(self) -> PrintedTable:
        """Return a table of all runs, which is how a fit prints."""
        from softcount.core.steps import tabulate_runs

        return tabulate_runs(self)

    @cached_property
    def verdict(self) -> Verdict:
        return self.trace.verdict
