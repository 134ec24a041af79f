"""Learners: how counts become parameters, and when."""

from softcount.learners.base import Learner
from softcount.learners.collapsed import Collapsed, CollapsedGibbs
from softcount.learners.named import (
    EM,
    Gibbs,
    HardEM,
    IncrementalEM,
    MonteCarloEM,
    OnlineEM,
    StochasticVB,
    VariationalBayes,
)
from softcount.learners.schedules import Batch, Incremental, Stepwise
from softcount.learners.spectral import Spectral
from softcount.learners.squarem import Squarem
from softcount.learners.temper import anneal
from softcount.learners.tempered import Tempered, TemperedEM

__all__ = [
    "EM",
    "Batch",
    "Collapsed",
    "CollapsedGibbs",
    "Gibbs",
    "HardEM",
    "Incremental",
    "IncrementalEM",
    "Learner",
    "MonteCarloEM",
    "OnlineEM",
    "Spectral",
    "Squarem",
    "Stepwise",
    "StochasticVB",
    "Tempered",
    "TemperedEM",
    "VariationalBayes",
    "anneal",
]
