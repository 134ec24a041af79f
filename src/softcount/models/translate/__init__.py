"""Translation by the noisy channel: P(Y | X) ∝ P(X | Y) P(Y)."""

from softcount.models.translate.model import Translator
from softcount.models.translate.translation import Explanation, Translation

__all__ = ["Explanation", "Translation", "Translator"]
