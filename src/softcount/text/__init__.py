"""Reading and writing text: lines, words, bitexts, tagged sentences, trees; corpora on disk."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
