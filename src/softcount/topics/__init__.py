"""Topic models: every word of a document has a hidden topic."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
