"""Topic models: every word of a document has a hidden topic."""

from softcount.models.topics.estimators import LDA, PLSA

__all__ = ["LDA", "PLSA"]
