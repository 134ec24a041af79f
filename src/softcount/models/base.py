"""Models that are estimators of scikit-learn, too."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from softcount.models.learnable import (
    FitOptions,
    Learnable,
    NamingCorpus,
    all_or_nothing,
    naming,
)

__all__ = ["Estimator", "FitOptions", "NamingCorpus", "all_or_nothing", "naming"]


class Estimator(BaseEstimator, Learnable):  # type: ignore[misc]
    """A model with its data still to come.

    A subclass offers `bind` and `bind_more` (from data to what the loop works with) and
    `start_values`.
    After `fit`: ``params_``, ``trace_``, ``verdict_``, ``signature_`` and all of it as ``fit_``.
    """
