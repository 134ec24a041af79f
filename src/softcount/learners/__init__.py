"""Learners: how counts become parameters, and when. The module `names` does not import numpy."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
