"""Topic models: every word of a document has a hidden topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.topics.estimators import LDA, PLSA

__all__ = ["LDA", "PLSA"]
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.topics.estimators": (
            "LDA",
            "PLSA",
        ),
    },
)
