"""What has changed on the way to the target: the words whose weights moved most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from softcount.types import Array


class MovedWord(NamedTuple):
    """A word, and how much it speaks for a label: in the source alone, and in the target now, both
    on the target's scale.

    ``share`` is that of the target's items that have it.
    """

    word: str
    label: Any
    source: float
    target: float
    share: float

    @property
    def moved(self) -> float:
        """How far its weight has moved."""
        return self.target - self.source


@dataclass(frozen=True)
class Explanation:
    """What `explain` of a method tells; a table when printed.

    ``moved``            words, those that change most in the target first
    ``correspondences``  (word of the target, its nearest words of the source, with cosines), where
                         the method knows any
    """

    moved: Sequence[MovedWord]
    correspondences: Sequence[tuple[str, Sequence[tuple[str, float]]]] = ()

    def __str__(self) -> str:
        wide = max([len(one.word) for one in self.moved] + [4])
        lines = [f"{'word':{wide}}  {'source':>7}  {'target':>7}  {'moved':>7}  in target  for"]
        lines += [
            f"{one.word:{wide}}  {one.source:7.2f}  {one.target:7.2f}  {one.moved:+7.2f}  "
            f"{one.share:9.1%}  {one.label}"
            for one in self.moved
        ]
        if self.correspondences:
            lines += ["", "words of the target, and those of the source that are nearest"]
            lines += [
                f"{word}: {', '.join(f'{near} {cosine:.2f}' for near, cosine in nearest)}"
                for word, nearest in self.correspondences
            ]
        return "\n".join(lines)


def moved_words(
    names: Sequence[str], classes: Array, before: Array, after: Array, target: Any, n: int
) -> list[MovedWord]:
    """The n words that change scores in the target most.

    ``before`` and ``after`` are weights, (classes, words), or one row for the second of two
    classes. Decisions do not change if all weights grow or shrink alike, so the former are scaled
    to the length of the latter first. A word counts by |after − before| times its root mean square
    among the target's items: one that never occurs there changes nothing.

    >>> before, after = np.array([[1.0, 0.0, 1.0]]), np.array([[2.0, 0.0, -2.0]])
    >>> moved_words(["a", "b", "c"], np.array([0, 1]), before, after, np.ones((1, 3)), 3)
    [MovedWord(word='c', label=1, source=2.0, target=-2.0, share=1.0)]
    """
    of_row = classes[1:] if len(before) == 1 else classes
    matrix = sparse.csr_matrix(target)
    squares = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel()
    before = before * _scale(np.sum(after**2 * squares), np.sum(before**2 * squares))
    share = np.bincount(matrix.indices[matrix.data != 0.0], minlength=matrix.shape[1])
    effect = np.abs(after - before) * np.sqrt(squares)
    found = []
    for flat in np.argsort(-effect, axis=None, kind="stable")[:n]:
        row, column = np.unravel_index(flat, effect.shape)
        if effect[row, column] > 0.0:
            weights = float(before[row, column]), float(after[row, column])
            in_target = float(share[column] / matrix.shape[0])
            found.append(MovedWord(names[column], of_row[row].item(), *weights, in_target))
    return found


def _scale(wanted: float, there: float) -> float:
    return float(np.sqrt(wanted / there)) if there > 0.0 else 1.0
