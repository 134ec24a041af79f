"""Why EM works: the log-likelihood is a lower bound plus a gap, and each half-step changes one.

For any posterior q over the hidden values, log p(x | θ) = F(q, θ) + KL(q ‖ p(z | x, θ)), where
F = Q + H: the expected complete-data log-likelihood and the entropy of q (Neal & Hinton 1998).
With q the posterior at Θ_t, Q is EM's Q(Θ, Θ_t); at Θ = Θ_t the gap closes.
"""

from __future__ import annotations

from dataclasses import dataclass

from softcount.core.fit import open_session
from softcount.core.model import Corpus, Model, require_bound
from softcount.core.types import EStep, Params
from softcount.engines.base import Engine
from softcount.learners.schedules import expected_log


@dataclass(frozen=True)
class Decomposition:
    """log_likelihood = bound + kl, and bound = q + entropy, in nats.

    ``log_likelihood``  log p(x | Θ)
    ``q``               Q(Θ, Θ_t) = E[log p(x, z | Θ)] under the posterior at Θ_t
    ``entropy``         H of that posterior; never negative (but for rounding)
    ``bound``           F = Q + H
    ``kl``              KL divergence of that posterior from the one at Θ. A correct model never
                        makes it negative (but for rounding), so it is not clipped at zero here
    """

    log_likelihood: float
    q: float
    entropy: float
    bound: float
    kl: float


def decompose(
    model: Model,
    data: Corpus,
    params: Params,
    at: Params | None = None,
    engine: Engine | None = None,
) -> Decomposition:
    """Decompose the log-likelihood at ``params``, with the posterior at ``at`` (default: the same).

    Pass the parameters of a fit as they are: ``decompose(core, corpus, fit.params)``. Add those
    that belong to items, where a model has such (``{**fit.params, **fit.local}``); without them a
    topic model's documents have uniform topic proportions, as at the start of learning.

    Only hidden values are summed over: parameters are fixed, and priors are left out. So under
    `VariationalBayes` the log-likelihood of a step is that of the weights exp E[log θ], as in the
    trace; its objective, the ELBO, is this minus KL(q(θ) ‖ p(θ)).
    """
    require_bound(model)
    at = params if at is None else at
    with open_session(model, data, engine) as session:
        posterior = session.expect(model.expect, at, EStep(theory=True, against=params))
        session.reset()
        here = session.expect(model.expect, params, EStep(score_only=True, theory=True))
    beside, counts = posterior.uncounted, posterior.counts
    there = expected_log(model.families, counts, at) + beside.expected
    q = expected_log(model.families, counts, params) + beside.ahead
    entropy = posterior.log_likelihood - there
    bound = q + entropy
    return Decomposition(here.log_likelihood, q, entropy, bound, here.log_likelihood - bound)
