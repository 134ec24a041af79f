"""Hidden Markov models for sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.hmm.estimators import HMM

__all__ = ["HMM"]
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.hmm.estimators": ("HMM",),
    },
)
