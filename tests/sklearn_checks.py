"""scikit-learn's own checks of estimators, as often as they can fail separately.

All of them run for one estimator of each kind. Variants of an estimator (another covariance,
another number of components) share with it how data are read, how parameters are kept and what is
refused; for them only the checks run that look at what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

OF_RESULTS = {
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_clustering",
    "check_estimator_sparse_matrix",
    "check_estimators_dtypes",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_transformer_general",
}


def checks(
    kinds: Sequence[Any],
    variants: Sequence[Any] = (),
    expected_failed_checks: Callable[[Any], dict[str, str]] | None = None,
) -> pytest.MarkDecorator:
    """Parametrise a test of ``(estimator, check)``."""
    every = parametrize_with_checks([*kinds], expected_failed_checks=expected_failed_checks)
    some = parametrize_with_checks([*variants], expected_failed_checks=expected_failed_checks)
    pairs = [*_pairs(every), *(pair for pair in _pairs(some) if _name(pair) in OF_RESULTS)]
    return pytest.mark.parametrize(*every.args[:1], pairs, **every.kwargs)


def _pairs(mark: pytest.MarkDecorator) -> Iterator[Any]:
    yield from mark.args[1]


def _name(pair: Any) -> str:
    """The name of a pair's check, which may be wrapped, or marked as one that fails."""
    check = (pair.values if hasattr(pair, "values") else pair)[1]
    while isinstance(check, partial):
        check = check.func
    return str(check.__name__)
