"""Word alignment: which source word each target word comes from."""

from softcount.models.alignment.both import Aligner
from softcount.models.alignment.estimators import IBM1, IBM2, Diagonal, HMMAligner
from softcount.models.alignment.gibbs import GibbsAligner

__all__ = ["IBM1", "IBM2", "Aligner", "Diagonal", "GibbsAligner", "HMMAligner"]
