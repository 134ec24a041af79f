"""Fingerprints of a machine's arithmetic: where they differ, so may the last bits of a fit.

The kernels of softcount give the same bits on every processor. Matrix products by BLAS and
numpy's and scipy's functions do not: they use what instructions there are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version

import numpy as np
from scipy.special import digamma, gammaln

from softcount._version import __version__
from softcount.core.types import Array, FloatArray
from softcount.kernels.threads import single_threaded

SIZE = 4096
"""Numbers that each function is tried on: more than any vector register holds."""


def versions() -> dict[str, str]:
    """Return the versions of all that must be the same in all processes of a fit."""
    return {
        "Python": ".".join(map(str, sys.version_info[:3])),
        "softcount": __version__,
        **{name: version(name) for name in ("numpy", "scipy", "numba")},
    }


def fingerprint() -> dict[str, str]:
    """Return digests of what some functions give for fixed arguments, by their names.

    >>> fingerprint() == fingerprint()
    True
    """
    functions: dict[str, Callable[[FloatArray], Array]] = {
        "exp": lambda x: np.exp(4.0 * np.sin(x)),
        "exp in float32": lambda x: np.exp(4.0 * np.sin(x).astype(np.float32)),
        "log": np.log,
        "log in float32": lambda x: np.log(x.astype(np.float32)),
        "digamma": digamma,
        "log Γ": gammaln,
        "sum": lambda x: np.array([x.sum(), np.sin(x).sum()]),
        "matrix product": _multiply,
        "Cholesky": lambda x: np.linalg.cholesky(_multiply(x) + 1e4 * np.eye(64)),
    }
    # exact in binary, so that the arguments are the same everywhere
    arguments = (np.arange(SIZE) * 2654435761 % 2**20 + 1) / 2.0**13
    with single_threaded():
        return {
            name: sha256(np.ascontiguousarray(function(arguments)).tobytes()).hexdigest()[:16]
            for name, function in functions.items()
        }


def _multiply(x: FloatArray) -> FloatArray:
    matrix = x.reshape(64, -1)
    product: FloatArray = matrix @ matrix.T
    return product
