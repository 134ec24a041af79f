"""Sentences for grammars, and what is known of their trees: constraints on spans, whole trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from softcount.core.errors import DataError, brief
from softcount.core.types import Array, BoolArray, IntArray
from softcount.hmm.data import SentenceCorpus, SentenceShard, StateSetBuilder
from softcount.text.sequences import Like, Sequences, sequences
from softcount.text.shards import split_items
from softcount.text.treebank import Trees, lowercase, trees
from softcount.text.trees import Tree, escape_brackets, find_crossing, from_spans


@dataclass(frozen=True, eq=False)
class SpanConstraints:
    """Which symbols spans may have: each has the number of a set, set 0 being all symbols.

    ``sets``     int64: the set of each span, one sentence after the other; None: set 0 everywhere.
                 Dense grammars: of spans of two words or more, the short ones first, and of
                 nonterminals. Rule-based grammars: of all spans, by start, then by end
    ``allowed``  bool (sets, symbols): whether a symbol is in a set
    ``sizes``    int64 (sentences,): how many spans of each sentence have a set; None: none
    """

    sets: IntArray | None
    allowed: BoolArray
    sizes: IntArray | None = None

    @classmethod
    def unconstrained(cls, n_symbols: int) -> SpanConstraints:
        """Any span may have any symbol."""
        return cls(None, np.ones((1, n_symbols), np.bool_))


@dataclass(frozen=True, eq=False)
class TreeShard:
    """Some sentences, their words, and constraints on their spans.

    ``trees``  (sentences, entries): how often the known tree of each sentence uses each entry of
               the tables; rows of sentences whose tree is unknown are empty. None: no tree is known
    """

    text: SentenceShard
    constraints: SpanConstraints
    trees: csr_matrix | None = None

    def __len__(self) -> int:
        return len(self.text)

    @cached_property
    def first_sets(self) -> Array:
        """Where the sets of each sentence begin; empty if there are none."""
        if self.constraints.sizes is None:
            return np.zeros(0, np.int64)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.constraints.sizes)])

    @cached_property
    def order(self) -> Array:
        """Sentences with words, the longest first."""
        lengths = np.diff(self.text.indptr)
        return np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]


@dataclass(frozen=True, eq=False)
class TreeCorpus:
    """The corpus of a grammar: one shard of all sentences, or mini-batches."""

    texts: SentenceCorpus
    constraints: SpanConstraints
    trees: csr_matrix | None = None

    @cached_property
    def everything(self) -> TreeShard:
        """All sentences."""
        return TreeShard(self.texts.everything, self.constraints, self.trees)

    def __len__(self) -> int:
        return len(self.texts)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[TreeShard]:
        if batch_size is None:
            return [self.everything]
        return [self.select(some) for some in split_items(len(self), len(self), batch_size, seed)]

    def select(self, numbers: Array) -> TreeShard:
        """A shard of some of the sentences."""
        text, constraints = self.texts.select(numbers), self.constraints
        if constraints.sets is not None and constraints.sizes is not None:
            sets, first = constraints.sets, self.everything.first_sets
            own = (sets[first[n] : first[n + 1]] for n in numbers.tolist())
            chosen = np.concatenate([np.zeros(0, np.int64), *own])
            constraints = replace(constraints, sets=chosen, sizes=constraints.sizes[numbers])
        return TreeShard(text, constraints, None if self.trees is None else self.trees[numbers])

    @property
    def has_labels(self) -> bool:
        """Whether labels are known, not brackets alone."""
        sizes = self.constraints.allowed[1:].sum(axis=1)
        return bool((sizes > 0).any() or self.texts.everything.sets.any())

    def name(self, number: int) -> str:
        return self.texts.name(number)


Bracket = tuple[str | None, int, int]
"""A label (None: any), the first word, and the first one after it."""
FORMS = "give for each sentence None, a tree, or a list of (start, end) and (label, start, end)"


@dataclass(frozen=True, eq=False)
class SupervisedSentences:
    """Sentences and what is known of their trees.

    ``brackets``  for each sentence the constituents that no other may cross
    ``trees``     for each sentence its whole tree, or None
    """

    text: Sequences
    brackets: Sequence[Sequence[Bracket]]
    trees: Sequence[Tree | None]

    @classmethod
    def read(
        cls,
        sentences: Any,
        known_trees: Any = None,
        brackets: Any = None,
        like: Like | None = None,
        lower: bool = False,
    ) -> SupervisedSentences:
        """Sentences (None: those of the trees) with whole trees and brackets."""
        if sentences is None and known_trees is None:
            raise DataError("there are no sentences and no trees", "give sentences, or trees")
        whole = None if known_trees is None else trees(known_trees)
        are_trees = isinstance(sentences, Trees)
        if isinstance(sentences, list | tuple) and any(isinstance(s, Tree) for s in sentences):
            are_trees = all(s is None or isinstance(s, Tree) for s in sentences)
        if are_trees:  # to be parsed: the right answers are not looked at
            sentences = trees(sentences).words()
        if sentences is None and whole is not None:
            sentences = whole.words()
        text = sequences(sentences, like=like, lowercase=lower)
        found: list[Tree | None] = [None] * len(text)
        if whole is not None:
            _check_as_many(len(whole), len(text), "trees")
            found = list(whole.changed(lowercase) if lower else whole)
        for n, tree in enumerate(found):  # which must have the sentences' words
            if tree is None or (words := tree.words()) == (own := text.sentence(n)):
                continue
            if whole is not None and (difference := find_other_word(words, own)):
                raise DataError(
                    f"{whole.name(n)} has other words than {text.name(n)}: {difference}",
                    "trees have the sentences' words, one tree (or None) for each sentence",
                )
            found[n] = from_spans(own, tree.spans())
        given = [[] for _ in found] if brackets is None else _read_brackets(brackets, text)
        return cls(text, given, found)

    def check_not_empty(self) -> None:
        """Raise an error if there is not a single word."""
        if not len(self.text.tokens):
            raise DataError("there is not a single word in the sentences", "look at the data")

    def check_words_known(self, known: Sequence[str]) -> None:
        """Raise an error if a word is in no rule."""
        new = self.text.words[len(known) :]
        if new:
            first = int(np.flatnonzero(self.text.tokens == len(known))[0])
            number = int(np.searchsorted(self.text.indptr, first, side="right")) - 1
            raise DataError(
                f"{len(new):,} word(s) are in no rule, the first of them {brief(new[0])} "
                f"({self.text.name(number)})",
                "give rules for them, or leave these sentences out",
            )


def find_other_word(tree: Sequence[str], sentence: Sequence[str]) -> str:
    """Where the words of a tree are not those of its sentence; empty if they are.

    Brackets may be written as trees have them.

    >>> find_other_word(["the", "dog"], ["the", "cat", "sat"])
    "word 1 is 'dog' in the tree, and 'cat' in the sentence"
    >>> find_other_word(["-LRB-", "x"], ["(", "x"])
    ''
    """
    for n, (one, other) in enumerate(zip_longest(tree, sentence)):
        if one is None or other is None:
            return f"{len(tree)} words in the tree, and {len(sentence)} in the sentence"
        if escape_brackets(one) != escape_brackets(other):
            return f"word {n} is {brief(one)} in the tree, and {brief(other)} in the sentence"
    return ""


def _check_as_many(n: int, n_sentences: int, what: str) -> None:
    if n != n_sentences:
        raise DataError(
            f"there are {n:,} {what} for {n_sentences:,} sentences",
            "give one for each sentence, or None",
        )


def _read_brackets(given: Any, text: Sequences) -> list[list[Bracket]]:
    """Read the brackets of each sentence, which must not cross each other."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DataError(f"brackets={brief(given)}", FORMS)
    each = list(given)
    _check_as_many(len(each), len(text), "lists of brackets")
    found = []
    for n, (some, length) in enumerate(zip(each, text.lengths.tolist(), strict=True)):
        where, own = text.name(n), list[Bracket]()
        if isinstance(some, Tree):
            own = [(None, start, end) for _, start, end in some.spans()]
            if own[0][2] != length:
                raise DataError(f"{where} has {length} words, its tree {own[0][2]}", FORMS)
        elif isinstance(some, str) or not isinstance(some, Iterable | None):
            raise DataError(f"{where} has the brackets {brief(some)}", FORMS)
        elif some is not None:
            own = [_read_bracket(one, length, where) for one in some]
        for m, (_, start, end) in enumerate(own):
            for _, first, last in find_crossing(own[:m], start, end):
                raise DataError(
                    f"{where} has the brackets {(first, last)} and {(start, end)}, which cross",
                    "leave one of them out",
                )
        found.append(own)
    return found


def _read_bracket(one: Any, length: int, where: str) -> Bracket:
    parts = tuple(one) if isinstance(one, Sequence) and not isinstance(one, str) else ()
    label, *ends = parts if len(parts) == 3 else (None, *parts)
    sound = len(ends) == 2 and all(isinstance(end, int | np.integer) for end in ends)
    if not sound or not (label is None or (isinstance(label, str) and label)):
        raise DataError(f"{where} has the bracket {brief(one)}", FORMS)
    start, end = map(int, ends)
    if not 0 <= start < end <= length:
        raise DataError(
            f"{where} has the bracket {brief(one)}, but {length} words",
            "start is the first word, from 0, end the first one after it",
        )
    return label, start, end


def span_sets(
    firsts: Array,
    ends: Array,
    some: Sequence[Bracket],
    own: Mapping[tuple[int, int], Iterable[int]],
    sets: StateSetBuilder,
) -> Array:
    """The number of the set of symbols that each span (first, end) may have.

    None, if it crosses a bracket; its own, if it has labels; else any (Pereira & Schabes 1992).

    >>> sets, ends = StateSetBuilder(3), np.array([2, 3, 4])
    >>> span_sets(np.array([0, 1, 2]), ends, [("NP", 1, 3)], {(1, 3): [0]}, sets).tolist()
    [1, 2, 1]
    """
    found = np.zeros(len(firsts), np.int64)
    if some:
        crossed = np.zeros(len(firsts), np.bool_)
        for _, start, end in some:
            crossed |= (firsts < start) & (start < ends) & (ends < end)
            crossed |= (start < firsts) & (firsts < end) & (end < ends)
        found[crossed] = sets.number([])
    for (start, end), symbols in own.items():
        found[(firsts == start) & (ends == end)] = sets.number(symbols)
    return found
