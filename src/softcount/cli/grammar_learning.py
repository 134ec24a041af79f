"""Grammars made as the command line says, and learned from sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.cli import grammar_known as known
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.progress import Progress
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.treebank import Change, Trees
    from softcount.learners import Learner
    from softcount.models.grammar import PCFG
    from softcount.models.grammar.told import Bracket

MORE_TAGS = 1.5
"""Words have so many times the symbols that constituents have, if nothing is said of them."""


@dataclass(frozen=True)
class Known:
    """Files that say what is known already.

    ``treebank``  whose rules are the grammar
    ``brackets``, ``trees``  those of the sentences that are learned from
    """

    rules: str | None = None
    treebank: str | None = None
    brackets: str | None = None
    trees: str | None = None
    labels: bool = False
    keep_functions: bool = False

    @property
    def changes(self) -> list[Change]:
        """What is done to trees of files."""
        return known.cleaning(self.keep_functions)


@dataclass(frozen=True, eq=False)
class Lessons:
    """What is learned from: sentences (None: those of the trees), and what is known of them."""

    text: Sequences | None
    trees: Trees | None = None
    brackets: Sequence[list[Bracket]] | None = None

    def __len__(self) -> int:
        some = self.trees if self.text is None else self.text
        return 0 if some is None else len(some)

    @property
    def tells_trees(self) -> bool:
        """Whether anything is known of trees."""
        return self.trees is not None or self.brackets is not None

    @property
    def lengths(self) -> list[int]:
        """How many words each sentence has."""
        if self.text is not None:
            return [int(length) for length in self.text.lengths]
        return [] if self.trees is None else [len(words) for words in self.trees.words()]

    def up_to(self, longest: int | None) -> tuple[Lessons, str]:
        """Those of at most so many words, and a remark on the others."""
        lengths = self.lengths
        chosen = [n for n, length in enumerate(lengths) if longest is None or length <= longest]
        if len(chosen) == len(lengths):
            return self, ""
        if not any(lengths[n] for n in chosen):
            raise DataError(
                f"--max-length {longest}: all sentences are longer", "let them have more words"
            )
        brackets = None if self.brackets is None else [self.brackets[n] for n in chosen]
        trees = None if self.trees is None else self.trees.select(chosen)
        text = None if self.text is None else _apart(self.text, chosen)
        remark = (
            f"{len(lengths) - len(chosen):,} of {len(lengths):,} sentences have more than "
            f"{longest} words, and are not learned from"
        )
        return replace(self, text=text, trees=trees, brackets=brackets), remark


def _apart(text: Sequences, chosen: Sequence[int]) -> Sequences:
    """Some sentences, with no other words than theirs."""
    from softcount.corpus.sequences import sequences

    some = [text.sentence(n) for n in chosen]
    numbers = np.array(chosen) if text.numbers is None else text.numbers[chosen]
    return replace(sequences(some), origin=text.origin, numbers=numbers)


def lessons(text: Sequences | None, files: Known, symbols: Sequence[str] | None) -> Lessons:
    """Sentences and what files say of them; ``symbols``: labels that may be, None: any."""
    trees = brackets = None
    if files.trees is not None:
        trees = known.read_trees(files.trees, files.changes)
        if text is not None:
            known.demand_as_many("--trees", files.trees, len(trees), len(text), "trees")
    if files.brackets is not None:
        assert text is not None
        brackets = known.read_brackets(files.brackets, text, files.changes, files.labels, symbols)
    return Lessons(text, trees, brackets)


def n_preterminals(n: int | None, p: int | None, files: Known) -> int | None:
    """How many symbols words have; None: as many as trees say.

    >>> n_preterminals(5, None, Known()), n_preterminals(5, 3, Known())
    (8, 3)
    """
    if p is not None or n is None or files.trees is not None:
        return p
    return math.ceil(MORE_TAGS * n)


def learner_for(
    name: LearnerName | None, max_iter: int | None, tol: float | None, n_init: int | None
) -> Learner | None:
    """The learner with the dials that were given; None: as the model does if nothing is said."""
    if name is None and max_iter is None and tol is None and n_init is None:
        return None
    return learner_called(name or LearnerName.EM, max_iter, tol, n_init)


def counted(files: Known, settings: dict[str, Any]) -> PCFG:
    """The grammar of a treebank."""
    from softcount.corpus.treebank import lowercase
    from softcount.models.grammar import PCFG

    assert files.treebank is not None
    changes = [*files.changes, lowercase] if settings["lowercase"] else files.changes
    return PCFG.from_treebank(known.read_trees(files.treebank, changes), **settings)


def learn(model: PCFG, some: Lessons) -> None:
    """Fit a model, with a line of progress."""
    progress = Progress(len(some))
    try:
        model.fit(some.text, some.trees, some.brackets, on_step=progress)
    finally:
        progress.end()
