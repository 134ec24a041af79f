"""Sentences as arrays, and supervision: tags, sets of tags, and dictionaries of tags."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softcount.core.bounds import MAX_WEIGHT, MIN_WEIGHT, without_dust
from softcount.core.errors import DataError, brief
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.hmm.kernels import StateLists
from softcount.hmm.kernels.packs import Packs, pack_sentences
from softcount.text.sequences import Like, sequences
from softcount.text.shards import split_items
from softcount.text.tagged import (
    SENTENCES,
    UNKNOWN,
    Tagged,
    Units,
    number_tags,
    tag_dictionary,
    tagged,
)
from softcount.text.vocabulary import is_sound

LANES, ROWS = 128, 1 << 13
"""Maximum numbers of sentences and of tokens in a pack; one longer sentence is a pack too."""
SPARSE = 4.0
"""Loops over lists of states are used if these have this many times fewer transitions than
matrices."""


@dataclass(frozen=True, eq=False)
class StateSets:
    """Sets of states that tokens may be in; set 0 has all of them.

    ``allowed``  whether a state is in a set
    """

    allowed: BoolArray  # (sets, states)

    @classmethod
    def all_of(cls, n_states: int) -> StateSets:
        """Only the set of all states."""
        return cls(np.ones((1, n_states), np.bool_))

    @property
    def n_states(self) -> int:
        return int(self.allowed.shape[1])

    @cached_property
    def sizes(self) -> IntArray:
        """How many states each set has."""
        sizes: IntArray = self.allowed.sum(axis=1)
        return sizes

    @cached_property
    def lists(self) -> StateLists:
        """The states of each set."""
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])
        return StateLists(indptr, np.append(np.nonzero(self.allowed)[1], 0))


@dataclass(frozen=True, eq=False)
class TokenKinds:
    """Tokens of one kind have the same row of emissions, and may be in the same states.

    ``of_tokens``       the kind of each token
    ``rows``, ``sets``  the row and the set of each kind
    """

    of_tokens: IntArray  # (tokens,)
    rows: IntArray  # (kinds,)
    sets: IntArray  # (kinds,)
    states: StateSets

    @cached_property
    def cells(self) -> tuple[IntArray, IntArray, IntArray]:
        """A cell for each state that tokens of a kind may be in: see `few_states`.

        Gives where the cells of each kind begin, (kinds + 1,); and their kinds and states, (cells,)
        """
        lists, sizes = self.states.lists, self.states.sizes[self.sets]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        kinds = np.repeat(np.arange(len(sizes)), sizes)
        within = np.arange(len(kinds)) - indptr[kinds]
        return indptr, kinds, lists.states[lists.indptr[self.sets[kinds]] + within]


@dataclass(frozen=True, eq=False)
class SentenceShard:
    """Some sentences, and what is known of their states.

    ``numbers``    the sentences' numbers in the corpus
    ``observed``   numbers of words, or vectors
    ``indptr``     sentence n has the tokens ``indptr[n]`` to ``indptr[n + 1]``
    ``sets``       which set of ``states`` each token may be in
    ``weights``    how often each sentence counts
    ``new_words``  words that are new to the model; their numbers come after those that are not
    """

    numbers: IntArray  # (sentences,)
    observed: Array  # (tokens,) or (tokens, dimensions)
    indptr: IntArray  # (sentences + 1,)
    sets: IntArray  # (tokens,)
    states: StateSets
    weights: FloatArray  # (sentences,)
    new_words: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def n_tokens(self) -> int:
        return int(self.indptr[-1])

    @cached_property
    def rows(self) -> IntArray:
        """Each token's row of emissions: its word's, or its own."""
        if self.observed.ndim > 1:
            return np.arange(self.n_tokens)
        words: IntArray = self.observed.astype(np.int64)
        return words

    @cached_property
    def kinds(self) -> TokenKinds:
        """The kinds of tokens."""
        n_sets = len(self.states.allowed)
        pairs, of_tokens = np.unique(self.rows * n_sets + self.sets, return_inverse=True)
        return TokenKinds(of_tokens, pairs // n_sets, pairs % n_sets, self.states)

    @cached_property
    def packs(self) -> Packs:
        """The sentences in packs, for `softcount.hmm.kernels.packs`."""
        return pack_sentences(self.indptr, LANES, ROWS)

    @cached_property
    def is_sparse(self) -> bool:
        """Whether tokens may be in so few states that lists of them are faster than matrices."""
        sizes = self.states.sizes[self.sets].astype(float)
        transitions = float(sizes[:-1] @ sizes[1:]) + float(sizes.sum())
        return SPARSE * transitions < self.n_tokens * self.states.n_states**2

    @cached_property
    def token_weights(self) -> FloatArray:
        """The weight of each token's sentence."""
        return np.repeat(self.weights, np.diff(self.indptr))

    @cached_property
    def squares(self) -> FloatArray:
        """Σ w x² of vectors, for each dimension."""
        found: FloatArray = self.token_weights @ self.observed**2
        return found


@dataclass(frozen=True, eq=False)
class SentenceCorpus:
    """The corpus of a hidden Markov model: one shard of all sentences, or mini-batches.

    ``name_of``  what messages call a sentence
    """

    everything: SentenceShard
    name_of: Callable[[int], object] | None = None

    def __len__(self) -> int:
        return len(self.everything)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[SentenceShard]:
        if batch_size is None:
            return [self.everything]
        return [self.select(some) for some in split_items(len(self), len(self), batch_size, seed)]

    def select(self, numbers: IntArray) -> SentenceShard:
        """A shard of these sentences."""
        whole = self.everything
        lengths = np.diff(whole.indptr)[numbers]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        tokens = np.arange(indptr[-1]) + np.repeat(whole.indptr[numbers] - indptr[:-1], lengths)
        return SentenceShard(
            whole.numbers[numbers],
            whole.observed[tokens],
            indptr,
            whole.sets[tokens],
            whole.states,
            whole.weights[numbers],
            whole.new_words,
        )

    def name(self, number: int) -> str:
        return f"sentence {number}" if self.name_of is None else str(self.name_of(number))


def sentence_weights(
    given: Any, n: int, most: float = MAX_WEIGHT, least: float = MIN_WEIGHT
) -> FloatArray:
    """Read the weights of n sentences, (sentences,); None: all are 1."""
    if given is None:
        return np.ones(n)
    try:
        weights = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        weights = np.full(n, np.nan)
    hint = f"give {n} numbers, none of them negative"
    if weights.shape != (n,):
        raise DataError(f"sample_weight has the shape {weights.shape}", hint)
    return without_dust(weights, "sample_weight", hint, most, least)


# What is known of states beforehand: tags of some words, sets of tags, a dictionary of tags.

VECTORS = Units("sequence", "vector")
CHOICES = (set, frozenset, list, tuple)
"""Types that a set of tags may be given as."""


class StateSetBuilder:
    """Different sets of states, each with a number; number 0 has all states."""

    def __init__(self, n_states: int) -> None:
        self.n_states = n_states
        self._numbers: dict[tuple[int, ...], int] = {tuple(range(n_states)): 0}

    def number(self, states: Iterable[int]) -> int:
        """The number of a set, a new one if the set is new."""
        return self._numbers.setdefault(tuple(sorted(set(states))), len(self._numbers))

    def build(self) -> StateSets:
        """Make the sets, in the order of their numbers."""
        allowed = np.zeros((len(self._numbers), self.n_states), np.bool_)
        for states, number in self._numbers.items():
            allowed[number, list(states)] = True
        return StateSets(allowed)


@dataclass(frozen=True, eq=False)
class TagSupervision:
    """Tags as users give them: known tags, and sets of possible ones.

    ``choices``  token → names of the tags that it may have
    """

    text: Tagged
    choices: Mapping[int, Collection[str]]

    @classmethod
    def read(cls, data: Any, tags: Any, like: Like | None, lowercase: bool) -> TagSupervision:
        """Read sentences and their tags."""
        if isinstance(data, Tagged) and tags is None:
            return cls(tagged(data, like=like, lowercase=lowercase), {})
        if tags is None:
            text = sequences(data, like=like, lowercase=lowercase)
            return cls(Tagged(text, np.full(len(text.tokens), UNKNOWN, np.int32), []), {})
        plain, choices = _split_choices(tags, SENTENCES)
        known = tagged(data, plain, like=like, lowercase=lowercase)
        return cls(known, _by_token(choices, known.sequences.indptr))

    @classmethod
    def read_for_vectors(cls, lengths: IntArray, tags: Any) -> TagSupervision:
        """Read the tags of sequences of vectors."""
        text = sequences([["·"] * n for n in lengths.tolist()])
        if tags is None:
            return cls(Tagged(text, np.full(len(text.tokens), UNKNOWN, np.int32), []), {})
        plain, choices = _split_choices(tags, VECTORS)
        name = f"{VECTORS.sequence} {{}}".format
        known = Tagged(text, *number_tags(plain, lengths, name, units=VECTORS))
        return cls(known, _by_token(choices, text.indptr))

    @property
    def names(self) -> set[str]:
        """All tags that are mentioned."""
        return set(self.text.names).union(*self.choices.values())


Choices = dict[tuple[int, int], Collection[str]]
"""Sets of tags by sentence and word."""


def _by_token(choices: Choices, indptr: IntArray) -> dict[int, Collection[str]]:
    """Sets of tags by token."""
    return {int(indptr[n]) + i: some for (n, i), some in choices.items()}


def _split_choices(tags: Any, units: Units) -> tuple[list[Any], Choices]:
    """Split tags into plain ones, with None in place of sets, and the sets."""
    plain: list[Any] = []
    choices: Choices = {}
    hint = f"give for each {units.token} a tag, a set of tags that it may have, or None: any"
    if not isinstance(tags, Iterable):
        raise DataError(f"tags={brief(tags)}", hint)
    for n, sentence in enumerate(tags):
        if sentence is None or not isinstance(sentence, Iterable) or isinstance(sentence, str):
            plain.append(sentence)  # nothing, or what `tagged` complains of
            continue
        own = list(sentence)
        plain.append(own)
        for i, some in enumerate(own):
            if not isinstance(some, CHOICES):
                continue
            where = f"{units.token} {i} of {units.sequence} {n}"
            if not some:
                raise DataError(f"{where} may have no tag at all", hint)
            for tag in some:
                if not isinstance(tag, str | int | np.integer) or str(tag) in ("", "-1"):
                    raise DataError(f"{where} may have the tag {brief(tag)}", hint)
            choices[n, i], own[i] = frozenset(map(str, some)), None
    return plain, choices


@dataclass(frozen=True, eq=False)
class TagConstraints:
    """Names of states, and which of them words may have.

    ``names``       names of the first states; the others have none
    ``dictionary``  word → tags; None: any word may have any
    ``open_tags``   what words may have that are not in the dictionary; None: any
    """

    names: Sequence[str]
    n_states: int
    dictionary: Mapping[str, Sequence[str]] | None = None
    open_tags: Sequence[str] | None = None

    @classmethod
    def make(
        cls,
        mentioned: Iterable[str],
        n_states: int | None,
        dictionary: Any = None,
        open_tags: Any = None,
        lowercase: bool = False,
    ) -> TagConstraints:
        """Name the states by all tags that are mentioned, in alphabetical order."""
        given = None if dictionary is None else tag_dictionary(dictionary)
        if given is not None and lowercase:  # all tags of a word, whatever case it came in
            lower: dict[str, dict[str, None]] = {}
            for word, tags in given.items():
                lower.setdefault(word.lower(), {}).update(dict.fromkeys(tags))
            given = {word: list(tags) for word, tags in lower.items()}
        others = [open_tags] if isinstance(open_tags, str) else open_tags
        others = list(others) if isinstance(others, Iterable) else [others]
        others = [] if open_tags is None else others
        for tag in others:
            if not is_sound(tag):
                raise DataError(f"open_tags has {brief(tag)}", "give names of tags, or None: any")
        names = sorted({*mentioned, *others}.union(*(given or {}).values()))
        needed = len(names)
        if names and all(map(_is_number, names)):  # states are called by their numbers
            names, needed = [], max(map(int, names)) + 1
        if n_states is None and not needed:
            raise DataError(
                "how many states?", "give n_components, or tags, or a dictionary of tags"
            )
        if n_states is not None and n_states < needed:
            raise DataError(
                f"there are {needed} tags, but n_components={n_states}",
                "leave n_components out, or give at least as many",
            )
        return cls(names, n_states or needed, given, others or None)

    def allow(self, supervision: TagSupervision) -> tuple[IntArray, StateSets]:
        """The set of states that each token may be in, and all sets."""
        builder, tagged_text = StateSetBuilder(self.n_states), supervision.text
        text, names, tags = tagged_text.sequences, tagged_text.names, tagged_text.tags
        sets = np.zeros(len(text.tokens), np.int32)
        if self.dictionary is not None:
            others = 0
            if self.open_tags is not None:
                others = builder.number(map(self.number, self.open_tags))
            of_word = np.full(max(len(text.words), 1), others, np.int32)
            for w, word in enumerate(text.words):
                if word in self.dictionary:
                    of_word[w] = builder.number(map(self.number, self.dictionary[word]))
            sets = of_word[text.tokens]
        if names:  # a tag that is known is a set of one
            of_tag = np.zeros(len(names), np.int32)
            for tag in np.unique(tags[tags >= 0]).tolist():
                of_tag[tag] = builder.number([self.number(names[tag])])
            sets = np.where(tags >= 0, of_tag[np.maximum(tags, 0)], sets)
        for token, some in supervision.choices.items():
            sets[token] = builder.number(map(self.number, some))
        return sets.astype(np.int32), builder.build()

    @property
    def states(self) -> list[Any]:
        """All states: those with names first, then the others by number."""
        return [*self.names, *range(len(self.names), self.n_states)]

    def name_states(self, states: IntArray) -> list[Any]:
        """Names of states; numbers of those without one."""
        numbers, names = states.tolist(), self.names
        return [names[k] if k < len(names) else k for k in numbers] if names else numbers

    def number(self, name: str) -> int:
        """The number of the state that a tag names."""
        if not self.names and _is_number(name) and int(name) < self.n_states:
            return int(name)
        if name not in self._numbers:
            raise DataError(f"there is no tag {brief(name)}", f"tags are {brief(list(self.names))}")
        return self._numbers[name]

    def state(self, given: Any) -> int:
        """The number of a state, given its tag or its number."""
        if isinstance(given, int | np.integer) and 0 <= given < self.n_states:
            return int(given)
        if not isinstance(given, str):
            raise DataError(f"there is no state {brief(given)}", f"states are {brief(self.states)}")
        return self.number(given)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}


def _is_number(name: str) -> bool:
    """Whether a tag is the number of a state."""
    plain = name.isascii() and name.isdecimal() and len(name) < 7
    return plain and str(int(name)) == name
