"""Engines: where the work is done."""

from softcount.engines.base import Engine, Session
from softcount.engines.local import Local

__all__ = ["Engine", "Local", "Session"]
