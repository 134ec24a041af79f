"""Pickles without caches: what can be computed again does not travel."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class PickledWithoutCaches:
    """Base of classes whose pickles and copies leave out cached properties.

    >>> import pickle
    >>> class Squares(PickledWithoutCaches):
    ...     def __init__(self, n):
    ...         self.n = n
    ...     @cached_property
    ...     def all(self):
    ...         return [i * i for i in range(self.n)]
    >>> squares = Squares(3)
    >>> squares.all
    [0, 1, 4]
    >>> squares.__getstate__()
    {'n': 3}
    """

    def __getstate__(self) -> dict[str, Any]:
        cached = {
            name
            for each in type(self).__mro__
            for name, value in vars(each).items()
            if isinstance(value, cached_property)
        }
        return {name: value for name, value in vars(self).items() if name not in cached}
