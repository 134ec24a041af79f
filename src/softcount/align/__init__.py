"""Word alignment: which source word each target word comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.lazy import attach

if TYPE_CHECKING:
    from softcount.align.bidirectional import Aligner
    from softcount.align.estimators import IBM1, IBM2, Diagonal, HMMAligner
    from softcount.align.gibbs import GibbsAligner

__all__ = ["IBM1", "IBM2", "Aligner", "Diagonal", "GibbsAligner", "HMMAligner"]
__getattr__, __dir__ = attach(
    __name__,
    {
        "softcount.align.bidirectional": ("Aligner",),
        "softcount.align.estimators": (
            "Diagonal",
            "HMMAligner",
            "IBM1",
            "IBM2",
        ),
        "softcount.align.gibbs": ("GibbsAligner",),
    },
)
