"""Senses of a word, found by what stands around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.senses.estimators import Sense, SenseInducer

__all__ = ["Sense", "SenseInducer"]
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.senses.estimators": (
            "Sense",
            "SenseInducer",
        ),
    },
)
