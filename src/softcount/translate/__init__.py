"""Translation by the noisy channel: P(Y | X) ∝ P(X | Y) P(Y)."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
