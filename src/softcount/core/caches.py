"""What is sent to other processes leaves its caches behind."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class PickledWithoutCaches:
    """Base class of objects whose cached properties are not pickled, but computed again.

    >>> class Text(PickledWithoutCaches):
    ...     words = cached_property(lambda self: ["a", "b"])
    >>> text = Text()
    >>> len(text.words), text.__getstate__()
    (2, {})
    """

    def __getstate__(self) -> dict[str, Any]:
        cls = type(self)
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(cls, name, None), cached_property)
        }
