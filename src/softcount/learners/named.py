"""The named learners: well-known combinations of fill, update and schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from softcount.core.errors import LearnerError
from softcount.core.types import Fill, Update
from softcount.learners.base import Learner, one_of
from softcount.learners.names import LearnerName
from softcount.learners.schedules import (
    Collapsed,
    Incremental,
    Schedule,
    Stepwise,
    Tempered,
    at_least,
)


@dataclass(frozen=True, kw_only=True)
class EM(Learner):
    """Expectation–maximisation: soft · maximise · Batch (Dempster, Laird & Rubin 1977).

    The one to begin with: every step is exact and never lowers the objective. With a prior above 1
    it finds a posterior mode. ``schedule=Squarem()`` speeds it up where it converges slowly.

    >>> from softcount.learners import Squarem
    >>> print(EM(max_iter=50, schedule=Squarem()))
    EM(max_iter=50, tol=1e-06, schedule=Squarem())
    """


@dataclass(frozen=True, kw_only=True)
class HardEM(Learner):
    """Viterbi training: hard · maximise · Batch (for HMMs: Rabiner, Wilpon & Juang 1986).

    Every hidden value is set to its most probable value. Fast and crude: it converges in few steps,
    close to where it started. K-means is hard EM for a Gaussian mixture.

    >>> HardEM().e
    'hard'
    """

    e: Fill = "hard"


@dataclass(frozen=True, kw_only=True)
class _MiniBatches(Learner):
    """Base of learners with the schedule `Stepwise`, whose hyperparameters they share."""

    own_schedule: ClassVar[type[Schedule]] = Stepwise
    schedule: Schedule = field(init=False)
    batch_size: int = 256
    kappa: float = 0.7
    t0: float = 2.0


@dataclass(frozen=True, kw_only=True)
class OnlineEM(_MiniBatches):
    """EM by mini-batches: soft · maximise · Stepwise (Cappé & Moulines 2009; Liang & Klein 2009).

    For large data: the tables are updated after every mini-batch, so that a few passes are often
    enough. The objective may fluctuate.

    >>> OnlineEM(batch_size=64).schedule
    Stepwise(batch_size=64, kappa=0.7, t0=2.0)
    """


@dataclass(frozen=True, kw_only=True)
class IncrementalEM(Learner):
    """EM shard by shard: soft · maximise · Incremental (Neal & Hinton 1998).

    Needs fewer passes than EM and still never lowers its objective, at the price of keeping every
    shard's counts.

    >>> IncrementalEM(batch_size=10).schedule
    Incremental(batch_size=10)
    """

    own_schedule: ClassVar[type[Schedule]] = Incremental
    schedule: Schedule = field(init=False)
    batch_size: int | None = None


@dataclass(frozen=True, kw_only=True)
class VariationalBayes(Learner):
    """Mean-field variational Bayes: soft · mean_field · Batch (Attias 2000; Beal 2003).

    Learns a posterior over the parameters, not a point estimate: with a prior below 1 it empties
    classes that the data do not need. The objective is the ELBO, a lower bound on the log evidence
    (−inf at the start, where there is no posterior yet). During learning the parameters are
    exp E[log θ], which need not sum to one, and the log-likelihood is that of these weights; the
    fit reports the posterior mean.

    >>> VariationalBayes().m
    'mean_field'
    """

    m: Update = "mean_field"


@dataclass(frozen=True, kw_only=True)
class StochasticVB(_MiniBatches):
    """VB by mini-batches: soft · mean_field · Stepwise (Hoffman, Blei, Wang & Paisley 2013).

    Like `VariationalBayes`, for large data.

    >>> StochasticVB(kappa=0.9).m
    'mean_field'
    """

    m: Update = "mean_field"


@dataclass(frozen=True, kw_only=True)
class MonteCarloEM(Learner):
    """EM with drawn hidden values: sample · maximise · Batch (Wei & Tanner 1990).

    For posteriors that can be drawn from but not summed over; it can also escape shallow local
    maxima. It never converges to a point, so it runs all its steps; more ``samples`` reduce the
    fluctuations.

    >>> MonteCarloEM(samples=50).stochastic
    True
    """

    e: Fill = "sample"
    samples: int = 10


@dataclass(frozen=True, kw_only=True)
class Gibbs(Learner):
    """Gibbs sampling: sample · draw · Batch (Geman & Geman 1984; Diebolt & Robert 1994).

    Draws hidden values given parameters and parameters given hidden values, in turn: in the long
    run these are draws from the exact posterior. Chains have different starts, so that their
    agreement (R-hat) and their effective sample sizes can be judged. The fit reports the mean of
    one chain's draws (the chain with the best mean objective): classes may be numbered differently
    in every chain, and a mean over chains would mix them up.

    ``n_init``   number of chains
    ``burn_in``  the fraction of steps discarded at the beginning
    ``thin``     keep every thin-th draw after that

    >>> gibbs = Gibbs(max_iter=10, burn_in=0.5, thin=2)
    >>> [step for step in range(11) if gibbs.keeps(step)]
    [6, 8, 10]
    """

    e: Fill = "sample"
    m: Update = "draw"
    max_iter: int = 1000
    n_init: int = 4
    burn_in: float = 0.5
    thin: int = 1

    def __post_init__(self) -> None:
        at_least("thin", self.thin)
        if not 0 <= self.burn_in < 1:
            raise LearnerError(
                f"burn_in={self.burn_in}: must be a fraction of the steps, from 0 to below 1",
                "burn_in=0.5 keeps the second half",
            )
        super().__post_init__()

    def keeps(self, step: int) -> bool:
        first = int(self.burn_in * self.max_iter) + 1
        return step >= first and (step - first) % self.thin == 0

    @property
    def n_kept(self) -> int:
        return int(self.max_iter - int(self.burn_in * self.max_iter)) // self.thin + 1


@dataclass(frozen=True, kw_only=True)
class CollapsedGibbs(Gibbs):
    """Gibbs sampling with the parameters integrated out: sample · draw · Collapsed (Liu 1994).

    Every hidden value is drawn given all other hidden values, so that a change takes effect at
    once: far fewer steps than `Gibbs`, for models that have such a sampler (mixtures of
    multinomials, topics, hidden Markov models, grammars). Reports the mean over one chain's kept
    steps of E[θ | x, z], which varies less than draws of θ (Rao–Blackwell). As for `Gibbs`, that
    mean is not meaningful for classes that switch labels within the chain.

    ``optimise``  for topics: number of sweeps between fits of the priors to the hidden values; 0:
                  never

    >>> print(CollapsedGibbs(max_iter=50))
    CollapsedGibbs(max_iter=50, tol=1e-06)
    """

    own_schedule: ClassVar[type[Schedule]] = Collapsed
    schedule: Schedule = field(init=False)
    max_iter: int = 100
    n_init: int = 1
    thin: int = 5  # successive draws differ little, and every kept draw stays in memory
    optimise: int = 0


@dataclass(frozen=True, kw_only=True)
class TemperedEM(Learner):
    """EM with a power β of the posteriors chosen on held-out words: soft · maximise · Tempered.

    Hofmann (1999): P(z | d, w) ∝ (P(z | d) P(w | z))^β, with β = 1 as long as the perplexity of
    held-out words falls, then with lower and lower β. Plain EM with many topics overfits its
    documents; this does not, and needs no prior. For topic models.

    ``held_out``  the fraction of the words of every document that is held out
    ``rate``      β ← rate · β, when held-out perplexity no longer falls
    ``least``     the lowest β
    ``tol``       the smallest relative decrease of perplexity that counts as falling
    ``temper``    the initial β

    ``trace_.held_out`` is the perplexity of held-out words at every step, ``trace_.temper`` is β;
    the last step is the best. Objectives under different β cannot be compared.

    >>> print(TemperedEM(rate=0.8))
    TemperedEM(max_iter=500, tol=0.0001, rate=0.8)
    """

    own_schedule: ClassVar[type[Schedule]] = Tempered
    schedule: Schedule = field(init=False)
    max_iter: int = 500
    tol: float = 1e-4
    held_out: float = 0.1
    rate: float = 0.9
    least: float = 0.3


Method = Literal["tensor", "anchor"]
STARTS = {"tensor": "spectral", "anchor": "anchor"}


@dataclass(frozen=True, kw_only=True)
class Spectral(Learner):
    """Spectral estimation of the parameters from co-occurrence moments, for models that offer it.

    ``method``    'tensor': whitening and the tensor power method (Anandkumar, Ge, Hsu, Kakade &
                  Telgarsky 2014); 'anchor': words that occur in one class only (Arora et al. 2013)
    ``max_iter``  number of EM steps after that; 0: the solution as it is

    With enough data from the model itself the solution is close to the truth, with no danger of
    poor local maxima; on data that violate the model's assumptions it may be poor. The same
    solution can initialise any learner: ``init="spectral"``, ``init="anchor"``.

    >>> print(Spectral(method="anchor"))
    Spectral(max_iter=0, tol=1e-06, method='anchor')
    """

    fewest_steps: ClassVar[int] = 0
    max_iter: int = 0
    method: Method = "tensor"

    def __post_init__(self) -> None:
        one_of("method", self.method, get_args(Method))
        super().__post_init__()

    @property
    def required_init(self) -> str:
        return STARTS[self.method]


_BY_NAME = (
    *(EM, HardEM, OnlineEM, IncrementalEM, VariationalBayes, StochasticVB, MonteCarloEM),
    *(Gibbs, CollapsedGibbs, TemperedEM, Spectral),
)
BY_NAME: dict[LearnerName, type[Learner]] = dict(zip(LearnerName, _BY_NAME, strict=True))
