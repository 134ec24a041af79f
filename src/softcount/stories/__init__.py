"""Models that users write down themselves, as stories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.stories.derivation import Derivation
    from softcount.stories.estimators import StoryModel
    from softcount.stories.language import story, table

__all__ = ["Derivation", "StoryModel", "story", "table"]
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.stories.derivation": ("Derivation",),
        "softcount.stories.estimators": ("StoryModel",),
        "softcount.stories.language": (
            "story",
            "table",
        ),
    },
)
