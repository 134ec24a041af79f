"""Language models: how likely a sentence is."""

from softcount.models.language.model import LanguageModel

__all__ = ["LanguageModel"]
