"""Labels of bags, and hidden labels of the instances in them (multiple-instance learning)."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
