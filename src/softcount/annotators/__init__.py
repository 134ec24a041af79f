"""Labels that many people gave, and none of them always rightly."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
