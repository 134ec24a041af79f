"""Probabilistic context-free grammars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.grammar.estimators import PCFG

__all__ = ["PCFG"]
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.grammar.estimators": ("PCFG",),
    },
)
