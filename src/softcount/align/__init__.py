"""Word alignment: which words of sentence pairs are translations of each other."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
