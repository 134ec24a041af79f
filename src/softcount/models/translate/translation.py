"""What a translator answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Translation:
    """One translation Y of a sentence X, and what it is worth.

    ``words``       Y
    ``score``       weights · (channel, language) + distortion
    ``channel``     log P(x, a | y): Σ log t(x_j | y_i), with fertilities
    ``language``    log P(y)
    ``distortion``  minus the weighted sum of all jumps
    ``links``       (i, j): y_i and x_j belong together, as an aligner would say
    """

    words: tuple[str, ...]
    score: float
    channel: float
    language: float
    distortion: float
    links: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Explanation:
    """P(Y | X) ∝ P(X | Y) P(Y) at work on one sentence.

    ``best``            the likeliest translations
    ``channel_alone``   what would be chosen without P(Y)
    ``language_alone``  the most fluent way to put a word for every word, without P(X | Y)
    """

    sentence: tuple[str, ...]
    best: Sequence[Translation]
    channel_alone: Translation
    language_alone: Translation

    @property
    def shares(self) -> list[float]:
        """P(Y | X) among the likeliest: proportional to exp(score)."""
        scores = np.array([one.score for one in self.best])
        p = np.exp(scores - scores.max())
        return [float(share) for share in p / p.sum()]

    def __str__(self) -> str:
        lines = [
            f"X: {' '.join(self.sentence)}",
            "  P(Y|X)  log P(X|Y)   log P(Y)     order   Y",
        ]
        for share, one in zip(self.shares, self.best, strict=True):
            lines.append(f"  {share:6.3f} {_parts(one)}   {one}")
        lines.append(f"channel alone  {_parts(self.channel_alone)}   {self.channel_alone}")
        lines.append(f"language alone {_parts(self.language_alone)}   {self.language_alone}")
        return "\n".join(lines)


def _parts(one: Translation) -> str:
    return f"{one.channel:11.2f} {one.language:10.2f} {one.distortion:9.2f}"
