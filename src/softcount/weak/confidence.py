"""How sure any classifier of scikit-learn is of each class, as probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.utils import get_tags

from softcount.errors import LearnerError, shown
from softcount.types import Array


def posterior(classifier: Any, X: Any) -> Array:
    """p(class | item), a column for each of the classifier's ``classes_``.

    ``predict_proba`` if there is one. If not, the softmax of ``decision_function``, or for two
    classes its logistic: in the right order, and between 0 and 1, but nothing makes these
    frequencies.
    """
    if hasattr(classifier, "predict_proba"):
        found: Array = np.asarray(classifier.predict_proba(X), dtype=np.float64)
        return found
    scores = np.asarray(classifier.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        second = expit(scores)
        return np.column_stack([1.0 - second, second])
    shares: Array = softmax(scores, axis=1)
    return shares


def own_copy(classifier: Any) -> Any:
    """A classifier as it was before any fit; complains of one that only names classes."""
    if not hasattr(classifier, "fit") or isinstance(classifier, type):
        raise LearnerError(
            f"classifier={shown(classifier)} is no classifier",
            "give one of scikit-learn's, such as LogisticRegression()",
        )
    if not hasattr(classifier, "predict_proba") and not hasattr(classifier, "decision_function"):
        raise LearnerError(
            f"{shown(classifier)} does not say how sure it is",
            "give a classifier with predict_proba or decision_function",
        )
    return clone(classifier)


def log_shares(shares: Array) -> Array:
    """Logarithms, with a floor: one classifier's zero must not be the last word."""
    return np.log(np.maximum(shares, np.finfo(np.float64).tiny))


def takes_negative(classifier: Any) -> bool:
    """Whether a classifier takes negative numbers, as far as it says."""
    return not (
        hasattr(classifier, "__sklearn_tags__") and get_tags(classifier).input_tags.positive_only
    )
