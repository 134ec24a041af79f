"""Models that users write down themselves, as stories."""

from softcount.models.story.derivation import Derivation
from softcount.models.story.language import story, table
from softcount.models.story.model import StoryModel

__all__ = ["Derivation", "StoryModel", "story", "table"]
