"""Labels that many people gave, and none of them always rightly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.annotators.core import majority_vote
    from softcount.annotators.estimators import Annotators, SwitchWarning

__all__ = ["Annotators", "SwitchWarning", "majority_vote"]
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.annotators.core": ("majority_vote",),
        "softcount.annotators.estimators": (
            "Annotators",
            "SwitchWarning",
        ),
    },
)
