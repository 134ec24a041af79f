"""The combinations of the three words that have a name of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

from softcount.errors import LearnerError
from softcount.learners.base import Learner, at_least
from softcount.learners.schedules import Incremental, Stepwise
from softcount.learners.steps import Schedule
from softcount.types import Fill, Update


@dataclass(frozen=True, kw_only=True)
class EM(Learner):
    """Expectation–maximisation: soft · maximise · Batch (Dempster, Laird & Rubin 1977).

    The one to begin with: it climbs at every step, and every step is exact. With a prior above 1
    it finds the posterior mode. ``schedule=Squarem()`` makes it faster where it crawls.

    >>> from softcount.learners import Squarem
    >>> print(EM(max_iter=50, schedule=Squarem()))
    EM(max_iter=50, tol=1e-06, schedule=Squarem())
    """


@dataclass(frozen=True, kw_only=True)
class HardEM(Learner):
    """Viterbi training: hard · maximise · Batch (for HMMs: Rabiner, Wilpon & Juang 1986).

    Every hidden value is set to its best guess. Fast and crude: it settles in few steps, near
    where it began. K-means is hard EM of a Gaussian mixture.

    >>> HardEM().e
    'hard'
    """

    e: Fill = "hard"


@dataclass(frozen=True, kw_only=True)
class _MiniBatches(Learner):
    """Learners whose schedule is `Stepwise`, with its dials as their own."""

    schedule: Schedule = field(init=False)
    batch_size: int = 256
    kappa: float = 0.7
    t0: float = 2.0

    def __post_init__(self) -> None:
        stepwise = Stepwise(batch_size=self.batch_size, kappa=self.kappa, t0=self.t0)
        object.__setattr__(self, "schedule", stepwise)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class OnlineEM(_MiniBatches):
    """EM by mini-batches: soft · maximise · Stepwise (Cappé & Moulines 2009; Liang & Klein 2009).

    For much data: the tables move after every mini-batch, so that a few passes are often enough.
    The objective may waver.

    >>> OnlineEM(batch_size=64).schedule
    Stepwise(batch_size=64, kappa=0.7, t0=2.0)
    """


@dataclass(frozen=True, kw_only=True)
class IncrementalEM(Learner):
    """EM shard by shard: soft · maximise · Incremental (Neal & Hinton 1998).

    Fewer passes than EM and still never down, at the price of keeping every shard's counts.

    >>> IncrementalEM(batch_size=10).schedule
    Incremental(batch_size=10)
    """

    schedule: Schedule = field(init=False)
    batch_size: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedule", Incremental(self.batch_size))
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class VariationalBayes(Learner):
    """Mean-field variational Bayes: soft · mean_field · Batch (Attias 2000; Beal 2003).

    Learns a posterior over the parameters, not a point: with a prior below 1 it empties classes
    that nothing needs. The objective is the ELBO, a lower bound on the log evidence (−inf at the
    start, where there is no posterior yet). During learning the parameters are exp E[log θ], which
    need not sum to one, and the log-likelihood is that of these weights; the fit ends with the
    posterior mean.

    >>> VariationalBayes().m
    'mean_field'
    """

    m: Update = "mean_field"


@dataclass(frozen=True, kw_only=True)
class StochasticVB(_MiniBatches):
    """VB by mini-batches: soft · mean_field · Stepwise (Hoffman, Blei, Wang & Paisley 2013).

    As `VariationalBayes`, for much data.

    >>> StochasticVB(kappa=0.9).m
    'mean_field'
    """

    m: Update = "mean_field"


@dataclass(frozen=True, kw_only=True)
class MonteCarloEM(Learner):
    """EM with drawn hidden values: sample · maximise · Batch (Wei & Tanner 1990).

    For posteriors that can be drawn from but not summed over; also shakes EM out of shallow
    maxima. It wanders for ever, less with more ``samples``; it runs all its steps.

    >>> MonteCarloEM(samples=50).stochastic
    True
    """

    e: Fill = "sample"
    samples: int = 10


@dataclass(frozen=True, kw_only=True)
class Gibbs(Learner):
    """Gibbs sampling: sample · draw · Batch (Geman & Geman 1984; Diebolt & Robert 1994).

    Hidden values given parameters, parameters given hidden values, in turn: in the long run draws
    from the exact posterior. Chains begin at different starts, so that their agreement (R-hat) and
    their effective sample sizes can be judged. The fit reports the mean of one chain's draws (the
    chain with the best mean objective): classes may be named differently in every chain, and a mean
    over chains would blur them.

    ``n_chains``  how many chains
    ``burn_in``   the fraction of steps thrown away at the beginning
    ``thin``      keep every thin-th draw after that

    >>> gibbs = Gibbs(max_iter=10, burn_in=0.5, thin=2)
    >>> [step for step in range(11) if gibbs.keeps(step)]
    [6, 8, 10]
    """

    e: Fill = "sample"
    m: Update = "draw"
    max_iter: int = 1000
    n_init: int = field(init=False)
    n_chains: int = 4
    burn_in: float = 0.5
    thin: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_init", self.n_chains)
        at_least("n_chains", self.n_chains)
        at_least("thin", self.thin)
        if not 0 <= self.burn_in < 1:
            raise LearnerError(
                f"burn_in={self.burn_in} is a fraction of the steps, below 1",
                "burn_in=0.5 keeps the second half",
            )
        super().__post_init__()

    def keeps(self, step: int) -> bool:
        first = int(self.burn_in * self.max_iter) + 1
        return step >= first and (step - first) % self.thin == 0
