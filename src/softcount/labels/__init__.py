"""Learning from few labels: co-training, self-training, propagation, bootstrapping from rules."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
