"""The version, on its own so that nothing need be imported to know it."""

__version__ = "0.11.0"
