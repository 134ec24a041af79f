"""All errors and warnings of the package, in one place to catch them from."""

from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
