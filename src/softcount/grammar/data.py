"""Sentences for grammars, with supervision: constraints on spans, and whole trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, overload

import numpy as np
from scipy.sparse import csr_matrix, vstack

from softcount.core.errors import DataError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import Array, BoolArray, IntArray
from softcount.hmm.data import SentenceCorpus, SentenceShard, StateSetBuilder
from softcount.text.disk import BLOCK, DiskArray, ShardsOnAccess, is_on_disk
from softcount.text.sequences import Like, Sequences, sequences
from softcount.text.shards import cut_by_work, split_items
from softcount.text.treebank import StoredTrees, Trees, lowercase, trees
from softcount.text.trees import Tree, escape_brackets, find_crossing, from_spans

SHARD_WORK = 1 << 25
"""Maximum sum of n³ over the sentences of a shard, unless it is a single sentence: about 1,500 of a
newspaper. A chart takes time cubic in the number of words, so an E-step of a shard takes a second
with a few symbols and minutes with the rules of a treebank, which is long beside what the tables
cost; and shards enough are left to be shared out."""


@dataclass(frozen=True, eq=False)
class SpanConstraints:
    """The symbols allowed over spans: each span has the number of a set; set 0 is all symbols.

    ``sets``     int64: the set of each span, sentences concatenated; None: set 0 everywhere.
                 Dense grammars: of spans of two words or more, short ones first, and of
                 nonterminals. Rule-based grammars: of all spans, by start, then by end
    ``allowed``  bool (sets, symbols): membership mask
    ``sizes``    int64 (sentences,): number of spans of each sentence in ``sets``; None: none
    """

    sets: IntArray | None
    allowed: BoolArray
    sizes: IntArray | None = None

    @classmethod
    def unconstrained(cls, n_symbols: int) -> SpanConstraints:
        """Make constraints that allow any symbol over any span."""
        return cls(None, np.ones((1, n_symbols), np.bool_))


@dataclass(frozen=True, eq=False)
class TreeShard(PickledWithoutCaches):
    """A set of sentences with constraints on their spans.

    ``trees``  (sentences, entries): number of times that the known tree of each sentence uses each
               entry of the tables; rows of sentences with an unknown tree are empty. None: no tree
               is known
    """

    text: SentenceShard
    constraints: SpanConstraints
    trees: csr_matrix | None = None

    def __len__(self) -> int:
        return len(self.text)

    @classmethod
    def concatenate(cls, shards: Sequence[TreeShard]) -> TreeShard:
        """Make one shard of several of the same corpus."""
        if len(shards) == 1:
            return shards[0]
        constraints, trees = shards[0].constraints, shards[0].trees
        if constraints.sets is not None:
            parts = [(shard.constraints.sets, shard.constraints.sizes) for shard in shards]
            sets, sizes = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            constraints = replace(constraints, sets=sets, sizes=sizes)
        if trees is not None:
            trees = vstack([shard.trees for shard in shards], format="csr")
        text = SentenceShard.concatenate([shard.text for shard in shards])
        return cls(text, constraints, trees)

    @cached_property
    def first_sets(self) -> Array:
        """Index pointer of the sets by sentence; empty if there are none."""
        if self.constraints.sizes is None:
            return np.zeros(0, np.int64)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.constraints.sizes)])

    @property
    def has_labels(self) -> bool:
        """Whether any labels are known, rather than brackets alone."""
        sizes = self.constraints.allowed[1:].sum(axis=1)
        return bool((sizes > 0).any() or self.text.sets.any())

    @cached_property
    def order(self) -> Array:
        """Indices of the non-empty sentences, the longest first."""
        lengths = np.diff(self.text.indptr)
        return np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]


def cut_sentences(lengths: IntArray) -> list[tuple[int, int]]:
    """Cut sentences, in order, into shards of at most `SHARD_WORK`.

    Returns the first sentence of each shard and the one after its last.
    """
    return cut_by_work(lengths.astype(np.float64) ** 3, SHARD_WORK)


@dataclass(frozen=True, eq=False)
class TreeCorpus:
    """The corpus of a grammar, in memory."""

    texts: SentenceCorpus
    constraints: SpanConstraints
    trees: csr_matrix | None = None

    @cached_property
    def everything(self) -> TreeShard:
        """All sentences."""
        return TreeShard(self.texts.everything, self.constraints, self.trees)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def lengths(self) -> IntArray:
        """The number of words of each sentence."""
        return self.texts.lengths

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[TreeShard]:
        if batch_size is not None:
            batches = split_items(len(self), len(self), batch_size, seed)
            return [self.select(batch) for batch in batches]
        cut = cut_sentences(self.lengths)
        return [self.everything] if len(cut) == 1 else [self.part(*ends) for ends in cut]

    def part(self, first: int, last: int) -> TreeShard:
        """Make a shard of the sentences ``first`` to ``last`` (exclusive), without copying them."""
        constraints, trees = self.constraints, self.trees
        if constraints.sets is not None and constraints.sizes is not None:
            begin, end = self.everything.first_sets[[first, last]]
            sets, sizes = constraints.sets[begin:end], constraints.sizes[first:last]
            constraints = replace(constraints, sets=sets, sizes=sizes)
        if trees is not None:
            begin, end = trees.indptr[[first, last]]
            parts = (trees.data[begin:end], trees.indices[begin:end])
            indptr = trees.indptr[first : last + 1] - begin
            trees = csr_matrix((*parts, indptr), (last - first, trees.shape[1]))
        return TreeShard(self.texts.part(first, last), constraints, trees)

    def select(self, numbers: Array) -> TreeShard:
        """Make a shard of these sentences."""
        text, constraints = self.texts.select(numbers), self.constraints
        if constraints.sets is not None and constraints.sizes is not None:
            sets, first = constraints.sets, self.everything.first_sets
            parts = (sets[first[n] : first[n + 1]] for n in numbers.tolist())
            chosen = np.concatenate([np.zeros(0, np.int64), *parts])
            constraints = replace(constraints, sets=chosen, sizes=constraints.sizes[numbers])
        return TreeShard(text, constraints, None if self.trees is None else self.trees[numbers])

    @property
    def has_labels(self) -> bool:
        """Whether any labels are known, rather than brackets alone."""
        return self.everything.has_labels

    def name(self, number: int) -> str:
        return self.texts.name(number)


Bracket = tuple[str | None, int, int]
"""A constituent: label (None: any), start, and exclusive end."""
FORMS = "give for each sentence None, a tree, or a list of (start, end) and (label, start, end)"


@dataclass(frozen=True, eq=False)
class MatchingTrees(Sequence[Tree | None]):
    """The trees of sentences, with the words of these; they are read and checked in blocks.

    ``text``     the sentences
    ``trees``    trees, on disk or in memory
    ``numbers``  which of the trees is that of each sentence; None: they are in the same order
    """

    text: Sequences
    trees: Trees
    numbers: IntArray | None = None

    def __len__(self) -> int:
        return len(self.text)

    @overload
    def __getitem__(self, n: int) -> Tree | None: ...
    @overload
    def __getitem__(self, n: slice) -> list[Tree | None]: ...
    def __getitem__(self, n: int | slice) -> Tree | list[Tree | None] | None:
        if isinstance(n, slice):
            chosen = np.arange(len(self))[n]
            own = chosen if self.numbers is None else self.numbers[chosen]
            return _match_words(self.trees.select(own), self.text.select(chosen))
        return self[slice(n, n + 1)][0]

    def __iter__(self) -> Iterator[Tree | None]:
        for first in range(0, len(self), BLOCK):
            yield from self[first : first + BLOCK]

    def select(self, numbers: Any, text: Sequences) -> MatchingTrees:
        """Select trees of sentences, given these."""
        chosen = np.arange(len(self))[numbers]
        return replace(
            self, text=text, numbers=chosen if self.numbers is None else self.numbers[chosen]
        )


def _match_words(known: Trees, text: Sequences) -> list[Tree | None]:
    """Return trees with the words of their sentences; raise if they have others."""
    found = list(known)
    for n, tree in enumerate(found):
        if tree is None or (words := tree.words()) == (expected := text.sentence(n)):
            continue
        if difference := find_other_word(words, expected):
            raise DataError(
                f"{known.name(n)} differs from {text.name(n)}: {difference}",
                "give one tree (or None) for each sentence, with the words of that sentence",
            )
        found[n] = from_spans(expected, tree.spans())
    return found


@dataclass(frozen=True, eq=False)
class SupervisedSentences:
    """Sentences with whatever is known about their trees.

    ``brackets``  for each sentence the constituents that no other may cross; of sentences on disk
                  it may be empty, and then there are none
    ``trees``     for each sentence its whole tree, or None; of sentences on disk it may be empty
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
        """Read sentences (None: the leaves of the trees) with known trees and brackets."""
        if sentences is None and known_trees is None:
            raise DataError("there are no sentences and no trees", "give sentences, or trees")
        whole = None if known_trees is None else trees(known_trees)
        are_trees = isinstance(sentences, Trees)
        if isinstance(sentences, list | tuple) and any(isinstance(s, Tree) for s in sentences):
            are_trees = all(s is None or isinstance(s, Tree) for s in sentences)
        if are_trees:  # to be parsed: only their words are used, not the gold structure
            sentences = _list_words(trees(sentences))
        if sentences is None and whole is not None:
            sentences = _list_words(whole)
        text = sequences(sentences, like=like, lowercase=lower)
        given = None if brackets is None else _read_brackets(brackets, text)
        if whole is not None:
            _check_count(len(whole), len(text), "trees")
            whole = whole.changed(lowercase) if lower else whole
        if is_on_disk(text.tokens):
            known = () if whole is None else MatchingTrees(text, whole)
            return cls(text, given or (), known)
        found: list[Tree | None] = [None] * len(text)
        if whole is not None:
            found = _match_words(whole, text)
        return cls(text, [[] for _ in found] if given is None else given, found)

    @property
    def is_on_disk(self) -> bool:
        """Whether sentences, and trees perhaps, are read when they are used."""
        return is_on_disk(self.text.tokens)

    @property
    def knows_nothing(self) -> bool:
        """Whether there are no trees and no brackets, as far as can be told without reading."""
        return not self.trees and not self.brackets

    def select(self, numbers: Any) -> SupervisedSentences:
        """Select sentences; those on disk are read, and trees on disk whenever they are used."""
        text = self.text.select(numbers)
        brackets: Sequence[Sequence[Bracket]] = [[] for _ in range(len(text))]
        if self.brackets:
            brackets = [self.brackets[n] for n in np.arange(len(self.text))[numbers].tolist()]
        if isinstance(self.trees, MatchingTrees):
            return SupervisedSentences(text, brackets, self.trees.select(numbers, text))
        return SupervisedSentences(text, brackets, [None] * len(text))

    def parts(self) -> Iterator[SupervisedSentences]:
        """Yield the sentences in parts that are in memory: a single one if all are."""
        if not self.is_on_disk:
            yield self
        elif not self.knows_nothing:
            for first in range(0, len(self.text), BLOCK):
                yield self.select(slice(first, first + BLOCK))

    def check_not_empty(self) -> None:
        """Raise if there is not a single word."""
        if not len(self.text.tokens):
            raise DataError("there is not a single word in the sentences", "look at the data")

    def check_words_known(self, known: Sequence[str]) -> None:
        """Raise if a word is in no rule."""
        new = self.text.words[len(known) :]
        if new:
            first = _find_word(self.text, len(known))
            number = int(np.searchsorted(self.text.indptr, first, side="right")) - 1
            raise DataError(
                f"{len(new):,} word(s) are in no rule, the first of them {brief(new[0])} "
                f"({self.text.name(number)})",
                "give rules for them, or omit these sentences",
            )


def _list_words(known: Trees) -> Any:
    """Return the sentences of trees; on disk if the trees are."""
    return known.sentences if isinstance(known.items, StoredTrees) else known.words()


def _find_word(text: Sequences, word: int) -> int:
    """Return the place of the first token of this word."""
    before = 0
    for tokens in text.tokens.parts() if isinstance(text.tokens, DiskArray) else (text.tokens,):
        found = np.flatnonzero(tokens == word)
        if len(found):
            return before + int(found[0])
        before += len(tokens)
    raise IndexError(f"no token has the word {word}")


def find_other_word(tree: Sequence[str], sentence: Sequence[str]) -> str:
    """Describe the first difference between a tree's words and its sentence; empty if equal.

    Brackets may be escaped as in trees.

    >>> find_other_word(["the", "dog"], ["the", "cat", "sat"])
    "word 1 is 'dog' in the tree, and 'cat' in the sentence"
    >>> find_other_word(["-LRB-", "x"], ["(", "x"])
    ''
    """
    for n, (leaf, word) in enumerate(zip_longest(tree, sentence)):
        if leaf is None or word is None:
            return f"{len(tree)} words in the tree, and {len(sentence)} in the sentence"
        if escape_brackets(leaf) != escape_brackets(word):
            return f"word {n} is {brief(leaf)} in the tree, and {brief(word)} in the sentence"
    return ""


def _check_count(n: int, n_sentences: int, what: str) -> None:
    if n != n_sentences:
        raise DataError(
            f"there are {n:,} {what} for {n_sentences:,} sentences",
            "give one for each sentence, or None",
        )


def _read_brackets(given: Any, text: Sequences) -> list[list[Bracket]]:
    """Read the brackets of each sentence, which must not cross each other."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DataError(f"brackets={brief(given)} is not a list", FORMS)
    items = list(given)
    _check_count(len(items), len(text), "lists of brackets")
    brackets = []
    for n, (item, length) in enumerate(zip(items, text.lengths.tolist(), strict=True)):
        where, sentence_brackets = text.name(n), list[Bracket]()
        if isinstance(item, Tree):
            sentence_brackets = [(None, start, end) for _, start, end in item.spans()]
            if sentence_brackets[0][2] != length:
                raise DataError(
                    f"{where} has {length} words, its tree {sentence_brackets[0][2]}", FORMS
                )
        elif isinstance(item, str) or not isinstance(item, Iterable | None):
            raise DataError(f"{where} has the brackets {brief(item)}", FORMS)
        elif item is not None:
            sentence_brackets = [_read_bracket(bracket, length, where) for bracket in item]
        for m, (_, start, end) in enumerate(sentence_brackets):
            for _, first, last in find_crossing(sentence_brackets[:m], start, end):
                raise DataError(
                    f"{where} has the brackets {(first, last)} and {(start, end)}, which cross",
                    "omit one of them",
                )
        brackets.append(sentence_brackets)
    return brackets


def _read_bracket(given: Any, length: int, where: str) -> Bracket:
    """Read (start, end) or (label, start, end), in a sentence of this length."""
    parts = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
    label, *ends = parts if len(parts) == 3 else (None, *parts)
    valid = len(ends) == 2 and all(isinstance(end, int | np.integer) for end in ends)
    if not valid or not (label is None or (isinstance(label, str) and label)):
        raise DataError(f"{where} has the bracket {brief(given)}", FORMS)
    start, end = map(int, ends)
    if not 0 <= start < end <= length:
        raise DataError(
            f"{where} has the bracket {brief(given)}, but {length} words",
            "words are counted from 0, and end is exclusive",
        )
    return label, start, end


@dataclass(frozen=True, eq=False)
class StoredTreeCorpus:
    """The corpus of a grammar, on disk.

    In memory are some arrays with a number for each sentence, and one shard at a time: its words,
    the sets of symbols that are allowed over its spans (if brackets or trees are known) and the
    rules of its trees, but of the trees themselves no more than some thousand. Shards are made when
    they are accessed, and not kept; the cut is that of the same sentences in memory.

    ``texts``      the sentences
    ``given``      what is known of them
    ``supervise``  a method of the grammar, which adds what is known to a shard
    """

    texts: SentenceCorpus
    given: SupervisedSentences
    supervise: Callable[[SentenceShard, SupervisedSentences], TreeShard]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def lengths(self) -> IntArray:
        """The number of words of each sentence."""
        return self.texts.lengths

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[TreeShard]:
        own = replace(self, texts=replace(self.texts, name_of=None))
        if batch_size is None:
            return ShardsOnAccess(own.part, cut_sentences(self.lengths))
        batches = split_items(len(self), len(self), batch_size, seed)
        return ShardsOnAccess(own.select, [(batch,) for batch in batches])

    def part(self, first: int, last: int) -> TreeShard:
        """Make a shard of the sentences ``first`` to ``last`` (exclusive)."""
        return self._add_known(self.texts.part(first, last), slice(first, last))

    def select(self, numbers: Array) -> TreeShard:
        """Make a shard of these sentences."""
        return self._add_known(self.texts.select(numbers), numbers)

    def _add_known(self, text: SentenceShard, numbers: Any) -> TreeShard:
        known = self.given if self.given.knows_nothing else self.given.select(numbers)
        return self.supervise(text, known)

    @property
    def has_labels(self) -> bool:
        """Whether any labels are known, rather than brackets alone."""
        return not self.given.knows_nothing and any(shard.has_labels for shard in self.shards())

    def name(self, number: int) -> str:
        return self.texts.name(number)


def span_sets(
    firsts: Array,
    ends: Array,
    brackets: Sequence[Bracket],
    labelled: Mapping[tuple[int, int], Iterable[int]],
    sets: StateSetBuilder,
) -> Array:
    """Return the number of the set of symbols allowed over each span (first, end).

    The empty set if the span crosses a bracket; the symbols of its labels if it has any; else the
    set of all symbols (Pereira & Schabes 1992).

    ``labelled``  span → symbols that its labels allow

    >>> sets, ends = StateSetBuilder(3), np.array([2, 3, 4])
    >>> span_sets(np.array([0, 1, 2]), ends, [("NP", 1, 3)], {(1, 3): [0]}, sets).tolist()
    [1, 2, 1]
    """
    numbers = np.zeros(len(firsts), np.int64)
    if brackets:
        crossed = np.zeros(len(firsts), np.bool_)
        for _, start, end in brackets:
            crossed |= (firsts < start) & (start < ends) & (ends < end)
            crossed |= (start < firsts) & (firsts < end) & (end < ends)
        numbers[crossed] = sets.number([])
    for (start, end), symbols in labelled.items():
        numbers[(firsts == start) & (ends == end)] = sets.number(symbols)
    return numbers
