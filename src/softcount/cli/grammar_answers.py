"""Trees of sentences as ``softcount grammar`` and ``softcount parse`` print and score them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import typer

from softcount.cli.answers import few_named

if TYPE_CHECKING:
    from softcount.cli.grammar_learning import Lessons
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.treebank import Trees
    from softcount.corpus.trees import Tree
    from softcount.models.grammar import PCFG

FAILED, TAG = "FAILED", "XX"
"""The mark of a sentence without a tree, and what stands for the tags of its words."""
SEPARATOR = " ||| "
TOLD = 100
"""Of so many sentences it is told what they lose by what is left out."""


def say(remark: str) -> None:
    """A remark on stderr, if there is one."""
    if remark:
        typer.echo(f"softcount: {remark}", err=True)


def failed(words: Sequence[str]) -> Tree:
    """What stands for the tree of a sentence that has none.

    >>> print(failed(["no", "(", "way"]))
    (FAILED (XX no) (XX -LRB-) (XX way))
    """
    from softcount.corpus.trees import Tree

    return Tree(FAILED, tuple(Tree(TAG, (word,)) for word in words))


@dataclass(frozen=True, eq=False)
class Parsed:
    """Trees of sentences: None if one is empty, or has none."""

    text: Sequences
    trees: Sequence[Tree | None]

    def lines(self) -> list[str]:
        """Penn brackets, exactly one line for each sentence."""
        return [self.line(n) for n in range(len(self.trees))]

    def line(self, n: int) -> str:
        """A sentence's tree; nothing for nothing."""
        tree, words = self.trees[n], self.text.sentence(n)
        return "" if not words else str(failed(words) if tree is None else tree)

    def drawings(self) -> list[str]:
        """The trees for eyes, with an empty line below each."""
        from softcount.show.tree_text import drawn

        found = []
        for n, tree in enumerate(self.trees):
            words = self.text.sentence(n)
            if words:
                found.append(f"{drawn(failed(words) if tree is None else tree)}\n")
        return found

    @property
    def failures(self) -> list[int]:
        """Lines of sentences that have words and no tree, from 1."""
        text, lengths = self.text, self.text.lengths.tolist()
        return [
            (n if text.numbers is None else int(text.numbers[n])) + 1
            for n, (tree, length) in enumerate(zip(self.trees, lengths, strict=True))
            if tree is None and length
        ]


@contextmanager
def in_silence() -> Iterator[None]:
    """Nothing is said of sentences without a tree: lines and remarks name them."""
    from softcount.models.possible import ImpossibleWarning

    with warnings.catch_warnings(action="ignore", category=ImpossibleWarning):
        yield


def parsed(
    model: PCFG, text: Sequences, *, method: str = "viterbi", brackets: Any = None
) -> Parsed:
    """The tree of each sentence, with words as they are written there."""
    with in_silence():
        found = model.predict(text, brackets=brackets, method=method)
    return Parsed(text, [_spelt(model, tree, text, n) for n, tree in enumerate(found)])


def parsed_as_told(model: PCFG, text: Sequences, told: Lessons) -> Parsed:
    """The tree of each sentence that agrees with its brackets; those that are known stay."""
    from softcount.corpus.trees import from_spans

    brackets = None
    if told.brackets is not None:  # of sentences that were too long, labels may be new
        labels = {*model.labels_}
        brackets = [
            [(label if label in labels else None, start, end) for label, start, end in some]
            for some in told.brackets
        ]
    found = list(parsed(model, text, brackets=brackets).trees)
    for n, tree in enumerate(told.trees or ()):
        if tree is not None:
            found[n] = from_spans(text.sentence(n), tree.spans())
    return Parsed(text, found)


def _spelt(model: PCFG, tree: Tree | None, text: Sequences, n: int) -> Tree | None:
    """A tree with the words of its sentence, which the model may have in lower case."""
    from softcount.corpus.trees import from_spans

    if tree is None or not model.lowercase:
        return tree
    return from_spans(text.sentence(n), tree.spans())


def best_lines(model: PCFG, text: Sequences, k: int, brackets: Any = None) -> tuple[Parsed, str]:
    """The best tree of each sentence, and lines of the k best of all."""
    best: list[Tree | None] = []
    lines: list[str] = []
    with in_silence():
        found = model.k_best(text, k, brackets=brackets)
    for n, some in enumerate(found):
        line = str((n if text.numbers is None else int(text.numbers[n])) + 1)
        trees = [(log, _spelt(model, tree, text, n)) for log, tree in some]
        best.append(trees[0][1] if trees else None)
        words = text.sentence(n)
        if not trees and words:
            trees = [(float("-inf"), failed(words))]
        lines += [SEPARATOR.join((line, f"{log:.6f}", str(tree))) for log, tree in trees]
    return Parsed(text, best), joined(lines)


def joined(lines: Iterable[str]) -> str:
    """Lines, each with its end."""
    return "".join(f"{line}\n" for line in lines)


def remark_on(failures: Sequence[int], total: int) -> str:
    """A sentence on those without a tree; empty if there are none."""
    if not failures:
        return ""
    are = "has" if len(failures) == 1 else "have"
    return (
        f"{few_named(failures)} of {total:,} {are} no tree by this grammar, and "
        f"{'is' if len(failures) == 1 else 'are'} marked ({FAILED} …)"
    )


def remark_on_pruning(model: PCFG, text: Sequences) -> str:
    """What the first sentences lose by what is left out; empty if nothing is."""
    if not model.prune:
        return ""
    first = [text.sentence(n) for n in range(min(len(text), TOLD))]
    lost = model.pruning_loss(first)
    return (
        f"--prune: of {lost.sentences} sentences, {lost.trees} have a less probable tree; log p is "
        f"{lost.mean:.2g} lower on average, {lost.worst:.2g} at worst; {lost.again} were parsed "
        "again with nothing left out"
    )


# beside gold trees
def bare(gold: Tree) -> list[str]:
    """The words of a gold tree that count."""
    from softcount.corpus.treebank import without_punctuation

    left = without_punctuation(gold)
    return [] if left is None else left.words()


def beside_branching(
    found: Sequence[Tree | None], gold: Trees, labels: Sequence[str] = ()
) -> list[str]:
    """Scores, and those of trees that know nothing but how many words there are."""
    from softcount.evaluate.brackets import bracket_scores
    from softcount.evaluate.branching import left_branching, right_branching

    told = _scores(found, gold, labels)
    words = [[] if tree is None else bare(tree) for tree in gold]
    for name, branching in (("right", right_branching), ("left", left_branching)):
        scores = bracket_scores([branching(some) if some else None for some in words], gold)
        told.append(
            f"{name}-branching trees: F1 {100 * scores.f1:.1f}, mean F1 "
            f"{100 * scores.sentence_f1:.1f}, exact {100 * scores.exact:.1f}%"
        )
    return told


def beside_gold(found: Sequence[Tree | None], gold: Trees, labels: Sequence[str]) -> list[str]:
    """Unlabelled scores, labelled ones if labels are the same, and how many have a tree."""
    told = _scores(found, gold, labels)
    pairs = [pair for pair in zip(found, gold, strict=True) if pair[1] is not None]
    n = sum(tree is not None for tree, _ in pairs)
    told.append(f"coverage {n / max(len(pairs), 1):.1%}: {n:,} of {len(pairs):,} have a tree")
    return told


def _scores(found: Sequence[Tree | None], gold: Trees, labels: Sequence[str]) -> list[str]:
    """Unlabelled scores, and labelled ones if labels are the same."""
    from softcount.evaluate.brackets import bracket_scores

    told = str(bracket_scores(found, gold)).splitlines()
    theirs = {node.label for tree in gold if tree is not None for node in tree.nodes()}
    if theirs.intersection(labels):
        told += str(bracket_scores(found, gold, labelled=True)).splitlines()
    return told


def batches(text: Sequences, size: int) -> Iterable[Sequences]:
    """Sentences, so many at a time."""
    borders = [*range(0, len(text), size), len(text)]
    return (text.select(slice(first, last)) for first, last in pairwise(borders))
