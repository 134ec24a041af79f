"""Translation by the noisy channel: P(Y | X) ∝ P(X | Y) P(Y)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.translate.estimators import Translator
    from softcount.translate.search import Explanation, Translation

__all__ = ["Explanation", "Translation", "Translator"]
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.translate.estimators": ("Translator",),
        "softcount.translate.search": (
            "Explanation",
            "Translation",
        ),
    },
)
