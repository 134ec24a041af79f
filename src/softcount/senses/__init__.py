"""Word sense induction: the senses of a word, learned from its contexts."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
