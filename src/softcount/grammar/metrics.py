"""Bracket scores, and baselines.

Trees compared with gold ones: precision, recall and F1 of their brackets.

A bracket is (label, start, end) of a constituent; the tags of words are none. What is counted is a
matter of convention, and figures of different conventions cannot be compared:

unlabelled    as grammars learned from raw text are scored. The spans of a tree are a set: of two
              constituents over the same words one is left. Trivial spans are left out: the whole
              sentence, which every tree has, and single words. (Klein & Manning 2002 count the
              whole sentence, trivial="sentence"; their figures are higher.) Sentences of fewer than
              two words have nothing to be found, and are in no figure.
labelled      as parsers are scored by evalb (Sekine & Collins 1997). Brackets are a multiset, and
              trivial ones count. A label TOP, ROOT or S1 at the top is left out. Labels are
              compared as they are: NP-SBJ is not NP.

In both, punctuation and traces (-NONE-) are taken out of the trees first, and so are constituents
of which nothing is left. The tags of the gold tree say what is punctuation, so that the parser need
not know. Where labels do not count, it is what Klein & Manning (2002) leave out, parentheses and
signs of currencies among it; where they do, it is what evalb leaves out. With right the brackets of
found that are in gold too, of the whole corpus,

    precision = right / found        recall = right / gold        F1 = 2 right / (found + gold)

A fraction without a denominator says that there was nothing to be wrong about, and is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Literal, NamedTuple

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.text.treebank import PUNCTUATION, TRACE, trees
from softcount.text.trees import Span, Tree, escape_brackets

EVALB_PUNCTUATION = frozenset({",", ".", ":", "``", "''"})
ROOTS = frozenset({"TOP", "ROOT", "S1"})

Trivial = bool | Literal["sentence"]


@dataclass(frozen=True)
class BracketScores:
    """Agreement of trees with gold trees; ``print`` shows it in two lines.

    ``labelled``     whether labels had to be right, too
    ``sentences``    sentences that count
    ``left_out``     those that do not: no gold tree, no words, or a single one where constituents
                     of one word do not count
    ``unparsed``     sentences that count and have no tree: no brackets were found in them
    ``found``        how many brackets were found
    ``gold``         how many there are
    ``right``        how many of those found are right
    ``precision``    share of those found that are right
    ``recall``       share of gold that was found
    ``f1``           harmonic mean of the two, over all brackets of the corpus
    ``sentence_f1``  mean of the F1 of each sentence: 1 if there was nothing to find and nothing was
                     found, 0 if it is unparsed
    ``exact``        share of the sentences in which the brackets are those of gold
    ``crossing``     how many brackets of a parsed sentence cross one of gold, on average
    ``no_crossing``  share of the parsed sentences in which none does

    The last two are None if nothing was parsed.
    """

    labelled: bool
    sentences: int
    left_out: int
    unparsed: int
    found: int
    gold: int
    right: int
    precision: float
    recall: float
    f1: float
    sentence_f1: float
    exact: float
    crossing: float | None
    no_crossing: float | None

    def __str__(self) -> str:
        figures = f"precision {100 * self.precision:.1f}, recall {100 * self.recall:.1f}"
        counts = f"{self.right} right of {self.found} found, {self.gold} gold"
        lines = [
            f"{'' if self.labelled else 'un'}labelled F1 {100 * self.f1:.1f}, {figures} ({counts})",
            f"{self.sentences} sentences: mean F1 {100 * self.sentence_f1:.1f}, "
            f"exact {100 * self.exact:.1f}%",
        ]
        if self.no_crossing is not None:
            lines[1] += f", no crossing brackets {100 * self.no_crossing:.1f}%"
        if self.unparsed:
            lines[1] += f", unparsed {self.unparsed}"
        if self.left_out:
            lines[1] += f" (left out: {self.left_out})"
        return "\n".join(lines)


def bracket_scores(
    found: Iterable[Tree | str | None],
    gold: Iterable[Tree | str | None],
    *,
    labelled: bool = False,
    trivial: Trivial | None = None,
    punctuation: Collection[str] | None = None,
) -> BracketScores:
    """Compute precision, recall and F1 of brackets, exact match, and crossing brackets.

    ``found``        a tree for every sentence, or a text in Penn brackets; None where there is
                     none, which costs recall
    ``gold``         the trees that they should be; None where it is unknown: such a sentence is
                     left out. The words must be the same, with punctuation and traces or without
    ``labelled``     whether labels must be right, too
    ``trivial``      whether constituents of the whole sentence and of one word count; "sentence":
                     only the former; None: if labelled
    ``punctuation``  the tags of what is taken out before anything is counted; None:
                     `EVALB_PUNCTUATION` if labelled, and otherwise corpus.treebank's `PUNCTUATION`

    >>> found = ["(X (X (D the) (N dog)) (X (V saw) (N us)))"]
    >>> gold = ["(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (PRP us))) (. .))"]
    >>> print(bracket_scores(found, gold))
    unlabelled F1 100.0, precision 100.0, recall 100.0 (2 right of 2 found, 2 gold)
    1 sentences: mean F1 100.0, exact 100.0%, no crossing brackets 100.0%
    """
    trivial = labelled if trivial is None else trivial
    if not (isinstance(trivial, bool) or trivial == "sentence"):
        raise DataError(f"trivial is {brief(trivial)}", "give True, False or 'sentence'")
    if punctuation is None:
        punctuation = EVALB_PUNCTUATION if labelled else PUNCTUATION
    elif isinstance(punctuation, str):
        raise DataError(f"punctuation is {brief(punctuation)}", "give a set of tags, as {',', '.'}")
    shortest, dropped = 1 if trivial is True else 2, frozenset({TRACE, *punctuation})
    ours, theirs = trees(found), trees(gold)
    if len(ours) != len(theirs):
        raise DataError(
            f"{len(ours)} trees found for {len(theirs)} gold trees",
            "give the trees of the same sentences in the same order; None is a missing one",
        )
    scores = []
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if other is None:
            continue
        whole = _flatten(other)
        here = None
        if one is not None:
            here = _match_words(theirs.name(number), _flatten(one), whole, dropped)
        there = _drop_tags(whole, dropped)
        n = len(there.words)
        if n < shortest:
            continue
        longest = n if trivial else n - 1
        expected = _count_brackets(there, labelled, shortest, longest)
        actual = _count_brackets(here, labelled, shortest, longest) if here else Counter[Span]()
        scores.append(
            _SentenceScore(
                found=actual.total(),
                gold=expected.total(),
                right=(actual & expected).total(),
                crossing=_count_crossing(actual, expected, n),
                parsed=here is not None,
            )
        )
    if not scores:
        raise DataError(
            f"none of the {len(theirs)} gold trees has brackets that count",
            "give trees of sentences of two words or more, punctuation aside",
        )
    n_found, n_gold, n_right = (sum(some) for some in list(zip(*scores, strict=True))[:3])
    n_crossing = np.array([score.crossing for score in scores if score.parsed])
    return BracketScores(
        labelled=labelled,
        sentences=len(scores),
        left_out=len(theirs) - len(scores),
        unparsed=len(scores) - len(n_crossing),
        found=n_found,
        gold=n_gold,
        right=n_right,
        precision=n_right / n_found if n_found else 1.0,
        recall=n_right / n_gold if n_gold else 1.0,
        f1=_f1(n_right, n_found, n_gold),
        sentence_f1=float(
            np.mean([_f1(one.right, one.found, one.gold) if one.parsed else 0.0 for one in scores])
        ),
        exact=float(np.mean([one.parsed and one.right == one.found == one.gold for one in scores])),
        crossing=float(np.mean(n_crossing)) if len(n_crossing) else None,
        no_crossing=float(np.mean(n_crossing == 0)) if len(n_crossing) else None,
    )


class _FlatTree(NamedTuple):
    """A tree as lists: words, the tag of each (None if it has none), constituents, the top last."""

    words: list[str]
    tags: list[str | None]
    constituents: list[Span]


class _SentenceScore(NamedTuple):
    """The counts of a sentence."""

    found: int
    gold: int
    right: int
    crossing: int
    parsed: bool


def _flatten(tree: Tree) -> _FlatTree:
    """Read a tree in a single traversal: words, nodes and spans would take three."""
    plain = _FlatTree([], [], [])
    open_ones: list[tuple[Tree, int]] = []
    for step in tree.steps():
        if isinstance(step, str):
            above = open_ones[-1][0]
            plain.words.append(escape_brackets(step))
            plain.tags.append(above.label if above.is_preterminal else None)
        elif step is not None:
            open_ones.append((step, len(plain.words)))
        else:
            node, start = open_ones.pop()
            if not node.is_preterminal:
                plain.constituents.append((node.label, start, len(plain.words)))
    return plain


def _match_words(name: str, found: _FlatTree, gold: _FlatTree, out: frozenset[str]) -> _FlatTree:
    """Remove the words with tags ``out``, by the gold tags or else by the tree's own tags."""
    bare = _drop_tags(gold, out)
    for version in (gold, _drop_tags(gold, frozenset({TRACE})), bare):
        if found.words == version.words:
            return _drop_tags(found._replace(tags=version.tags), out)
    left = _drop_tags(found, out)
    if left.words != bare.words:
        pairs = enumerate(zip_longest(left.words, bare.words))
        at, (ours, theirs) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        raise DataError(
            f"{name} has other words in found than in gold: beside punctuation, word {at} is "
            f"{brief(ours)} in found and {brief(theirs)} in gold",
            "give trees of the same sentences in the same order; of punctuation, either all may be "
            "missing or none",
        )
    return left


def _drop_tags(tree: _FlatTree, tags: frozenset[str]) -> _FlatTree:
    """Remove the words with some tags, and the constituents that have no other words."""
    if tags.isdisjoint(tree.tags):
        return tree
    kept = [tag not in tags for tag in tree.tags]
    place = list(accumulate(kept, initial=0))
    return _FlatTree(
        [word for word, stays in zip(tree.words, kept, strict=True) if stays],
        [tag for tag, stays in zip(tree.tags, kept, strict=True) if stays],
        [
            (label, place[start], place[end])
            for label, start, end in tree.constituents
            if place[start] < place[end]
        ],
    )


def _count_brackets(tree: _FlatTree, labelled: bool, shortest: int, longest: int) -> Counter[Span]:
    """Count the constituents that are scored."""
    spans = tree.constituents
    if labelled and spans and spans[-1][0] in ROOTS:
        spans = spans[:-1]
    spans = [span for span in spans if shortest <= span[2] - span[1] <= longest]
    return Counter(spans if labelled else {("", start, end) for _, start, end in spans})


def _count_crossing(found: Counter[Span], gold: Counter[Span], n: int) -> int:
    """Count the predicted brackets that cross a gold bracket.

    Of gold brackets that begin at a word, the longest crosses all that the others cross.
    """
    last, first = list(range(n + 1)), list(range(n + 1))
    for _, start, end in gold:
        last[start] = max(last[start], end)
        first[end] = min(first[end], start)
    return sum(
        times
        for (_, start, end), times in found.items()
        if max(last[start + 1 : end], default=0) > end
        or min(first[start + 1 : end], default=n) < start
    )


def _f1(right: int, found: int, gold: int) -> float:
    return 2 * right / (found + gold) if found + gold else 1.0


# Trees that know nothing of a sentence but its length: baselines for grammars.
#
# Constituents have the label X and tags the label XX, as what is unknown has in the Penn Treebank.


PHRASE, TAG = "X", "XX"

Split = Callable[[int], int]
"""Function from the number of words of a span to that of its left child."""


def right_branching(words: Sequence[str]) -> Tree:
    """Make the right-branching tree: the strongest of these baselines in English.

    >>> print(right_branching(["the", "dog", "barks"]))
    (X (XX the) (X (XX dog) (XX barks)))
    """
    return _make_branching(words, lambda n: 1)


def left_branching(words: Sequence[str]) -> Tree:
    """Make the left-branching tree.

    >>> print(left_branching(["the", "dog", "barks"]))
    (X (X (XX the) (XX dog)) (XX barks))
    """
    return _make_branching(words, lambda n: n - 1)


def balanced(words: Sequence[str]) -> Tree:
    """Make the balanced tree; of an odd number of words, the left half has one more.

    >>> print(balanced(["the", "dog", "barks"]))
    (X (X (XX the) (XX dog)) (XX barks))
    """
    return _make_branching(words, lambda n: (n + 1) // 2)


def random_tree(words: Sequence[str], rng: np.random.Generator) -> Tree:
    """Draw a binary tree uniformly at random.

    There are C(n − 1) binary trees of n words, C(m) = (2m)! / (m! (m + 1)!) being Catalan's
    numbers. So k of n words go to the left with probability C(k − 1) C(n − k − 1) / C(n − 1), which
    prefers lopsided splits; equal probabilities for every split would prefer balanced trees.

    ``rng``  one generator for all sentences: a seed would give the same tree again and again

    >>> rng = np.random.default_rng(2)
    >>> print(random_tree(["the", "dog", "barks"], rng))
    (X (XX the) (X (XX dog) (XX barks)))
    """
    if not isinstance(rng, np.random.Generator):
        raise DataError(
            f"rng is {brief(rng)}",
            "make a generator once, rng = numpy.random.default_rng(seed), and give it every time",
        )
    # C(m) / 4^m, which floats can hold for any m: the factors 4 cancel out
    m = np.arange(1.0, max(1, len(words)))
    shapes = np.concatenate([[1.0], np.cumprod((2 * m - 1) / (2 * m + 2))])

    def split(n: int) -> int:
        weights = np.cumsum(shapes[: n - 1] * shapes[n - 2 :: -1])
        return 1 + int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))

    return _make_branching(words, split)


def _make_branching(words: Sequence[str], split: Split) -> Tree:
    """Make the binary tree of these splits, without recursion, since it may be deep."""
    if isinstance(words, str):
        raise DataError(f"the words are {brief(words)}", "give a list of words")
    if not len(words):
        raise DataError("a sentence without words has no tree", "None stands for a missing tree")
    order, ahead = [], [(0, len(words))]
    while ahead:
        start, end = ahead.pop()
        order.append((start, end))
        if end - start > 1:
            middle = start + split(end - start)
            ahead += [(middle, end), (start, middle)]
    done: list[Tree] = []
    for start, end in reversed(order):
        if end - start == 1:
            done.append(Tree(TAG, (words[start],)))
        else:
            done.append(Tree(PHRASE, (done.pop(), done.pop())))
    return done.pop()
