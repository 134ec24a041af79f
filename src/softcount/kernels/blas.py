"""Linear algebra with one thread: sums in several would depend on how many there are."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 (brings a library of its own, which must be found as well)

    return ThreadpoolController()


def single_threaded() -> Any:
    """From now on, BLAS and LAPACK use one thread: until the context ends, or until
    ``restore_original_limits``.

    >>> with single_threaded():
    ...     pass
    """
    return _controller().limit(limits=1, user_api="blas")
