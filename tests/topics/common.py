"""What tests of topic models share."""

from __future__ import annotations

import softcount as sc

LEARNERS = [
    None,
    sc.EM(max_iter=10),
    sc.EM(max_iter=8, schedule=sc.learners.Squarem()),
    sc.EM(max_iter=8, temper=(0.5, 0.8, 1.0)),
    sc.TemperedEM(max_iter=8),
    sc.HardEM(max_iter=5),
    sc.OnlineEM(max_iter=3, batch_size=7),
    sc.IncrementalEM(max_iter=3, batch_size=7),
    sc.MonteCarloEM(max_iter=5, samples=2),
    sc.VariationalBayes(max_iter=10),
    sc.StochasticVB(max_iter=3, batch_size=7),
    sc.Gibbs(max_iter=10, n_init=2),
    sc.CollapsedGibbs(max_iter=10),
    sc.CollapsedGibbs(max_iter=10, optimise=2),
]
