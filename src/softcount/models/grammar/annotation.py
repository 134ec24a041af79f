"""Grammars whose symbols tell what is around them, which users do not want to see.

Rules of a treebank know too little (an NP below S is not one below VP) and too much (a right side
of nine parts was seen once). So labels may get those above them, and right sides be taken apart,
their parts knowing some of their neighbours (Johnson 1998; Klein & Manning 2003): what
`softcount.corpus.binarising` does. What is said of sentences is said by plain labels.
"""

from __future__ import annotations

import numpy as np

from softcount.corpus.binarising import plain_label, right_binarised, unbinarised
from softcount.corpus.trees import Tree
from softcount.models.grammar.form import Spans


def annotated(tree: Tree, horizontal: int | None, vertical: int) -> Tree:
    """A tree with symbols that tell what is around them; with None and 1 they tell nothing."""
    if horizontal is None and vertical == 1:
        return tree
    return right_binarised(tree, horizontal, vertical, tags=vertical > 1)


class Annotation:
    """The plain labels of symbols.

    ``labels``  plain ones, by their numbers
    ``of``      the plain label of each symbol; −1 of those that users do not know

    >>> known = Annotation(("S", "NP^S", "@NP^S/DT", "NP^VP", "DT^NP"), {4}, vertical=2)
    >>> known.labels, known.of.tolist()
    (('S', 'NP', 'DT'), [0, 1, -1, 1, 2])
    """

    def __init__(self, symbols: tuple[str, ...], tags: set[int], vertical: int) -> None:
        self._above = vertical > 1
        plain = [
            plain_label(symbol, is_tag=a in tags, tags=self._above)
            for a, symbol in enumerate(symbols)
        ]
        self.labels = tuple(dict.fromkeys(label for label in plain if label is not None))
        number = {label: n for n, label in enumerate(self.labels)}
        self.of = np.array([-1 if label is None else number[label] for label in plain])

    def symbols(self, label: str) -> set[int]:
        """The symbols that have a plain label."""
        if label not in self.labels:
            return set()
        return set(np.flatnonzero(self.of == self.labels.index(label)).tolist())

    def tree(self, tree: Tree) -> Tree:
        """A tree as users know it."""
        return unbinarised(tree, tags=self._above)

    def spans(self, spans: Spans) -> Spans:
        """Expected spans by plain labels."""
        plain = self.of[spans.symbols]
        kept = plain >= 0
        keys = np.stack([spans.starts[kept], spans.ends[kept], plain[kept]])
        places, at = np.unique(keys, axis=1, return_inverse=True)
        shares = np.bincount(at.reshape(-1), spans.shares[kept], minlength=places.shape[1])
        starts, ends, symbols = places
        return Spans(starts, ends, symbols, shares)


class NoAnnotation(Annotation):
    """Symbols that tell nothing of what is around them: they are plain labels themselves."""

    def __init__(self, symbols: tuple[str, ...]) -> None:
        self.labels, self.of = symbols, np.arange(len(symbols))

    def tree(self, tree: Tree) -> Tree:
        return tree

    def spans(self, spans: Spans) -> Spans:
        return spans
