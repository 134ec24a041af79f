"""Sentences as arrays, and supervision: tags, sets of tags, and dictionaries of tags."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from softcount.core.bounds import MAX_WEIGHT, MIN_WEIGHT, clean_weights
from softcount.core.errors import DataError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.hmm.kernels import StateLists
from softcount.hmm.kernels.packs import Packs, pack_sentences
from softcount.text.disk import DiskArray, ShardsOnAccess, is_on_disk
from softcount.text.sequences import Like, Sequences, sequences
from softcount.text.shards import cut_by_work, split_items
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
"""Lists of allowed states are used instead of matrices if they have this many times fewer
transitions."""
SHARD_TOKENS = 1 << 21
"""Maximum number of tokens in a shard, unless it is a single sentence. What a shard costs beside
its tokens, some copies of all tables, takes little of its time then, even with a large vocabulary;
and all that an E-step needs for its tokens is about 100 MB."""
USUAL_DIMENSIONS = 64
"""Vectors of more dimensions count as several tokens: the data of a shard are at most 1 GB."""
MANY_WORDS = 1 << 12
"""Shards have tables of their own words alone if the vocabulary is larger and they lack more than
half of it. Smaller tables are made as fast as a choice from them."""


@dataclass(frozen=True, eq=False)
class StateSets(PickledWithoutCaches):
    """Sets of states allowed at tokens; set 0 is the set of all states.

    ``allowed``  membership mask, (sets, states)
    """

    allowed: BoolArray  # (sets, states)

    @classmethod
    def all_of(cls, n_states: int) -> StateSets:
        """Make the sets of an unconstrained model: only the set of all states."""
        return cls(np.ones((1, n_states), np.bool_))

    @property
    def n_states(self) -> int:
        return int(self.allowed.shape[1])

    @cached_property
    def sizes(self) -> IntArray:
        """The number of states in each set, (sets,)."""
        sizes: IntArray = self.allowed.sum(axis=1)
        return sizes

    @cached_property
    def lists(self) -> StateLists:
        """The states of each set, as lists."""
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])
        return StateLists(indptr, np.append(np.nonzero(self.allowed)[1], 0))


@dataclass(frozen=True, eq=False)
class TokenKinds:
    """Equivalence classes of tokens: same emission row and same set of allowed states.

    ``of_tokens``       the kind of each token
    ``rows``, ``sets``  the emission row and the set of states of each kind
    """

    of_tokens: IntArray  # (tokens,)
    rows: IntArray  # (kinds,)
    sets: IntArray  # (kinds,)
    states: StateSets

    @cached_property
    def cells(self) -> tuple[IntArray, IntArray, IntArray]:
        """Cells, one for each state allowed to the tokens of a kind: see `few_states`.

        Returns the index pointer of the cells by kind, (kinds + 1,), and the kind and the state of
        each cell, (cells,) each.
        """
        lists, sizes = self.states.lists, self.states.sizes[self.sets]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        kinds = np.repeat(np.arange(len(sizes)), sizes)
        within = np.arange(len(kinds)) - indptr[kinds]
        return indptr, kinds, lists.states[lists.indptr[self.sets[kinds]] + within]


@dataclass(frozen=True, eq=False)
class SetsOnDisk:
    """The set of states allowed at each token of a text on disk, as an array that is read in parts.

    ``tokens``    words, or vectors
    ``of_words``  the set of each word; None: set 0
    ``tags``      the known tags of the text; None: there are none
    ``of_tags``   the set of each tag, which takes precedence over that of the word
    """

    tokens: DiskArray
    of_words: IntArray | None = None
    tags: DiskArray | None = None
    of_tags: IntArray | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows: Any) -> IntArray:
        """Return the sets of some tokens: a slice, or an array of token numbers."""
        if self.of_words is None:
            sets = np.zeros(_count_rows(rows, len(self)), np.int32)
        else:
            sets = self.of_words[self.tokens[rows]]
        if self.tags is None or self.of_tags is None:
            return sets
        tags = self.tags[rows]
        return np.where(tags >= 0, self.of_tags[np.maximum(tags, 0)], sets).astype(np.int32)

    def parts(self) -> Iterator[IntArray]:
        """Yield the sets of all tokens, some millions at a time."""
        for first in range(0, len(self), SHARD_TOKENS):
            yield self[first : first + SHARD_TOKENS]

    def any(self) -> bool:
        """Return whether some token has another set than that of all states."""
        return any(sets.any() for sets in self.parts())


def _count_rows(rows: Any, n: int) -> int:
    """Return how many of n rows a slice, or an array of numbers or of truth values, selects."""
    if isinstance(rows, slice):
        return len(range(*rows.indices(n)))
    rows = np.asarray(rows)
    return int(rows.sum()) if rows.dtype == np.bool_ else len(rows)


@dataclass(frozen=True, eq=False)
class SentenceShard(PickledWithoutCaches):
    """A set of sentences with the states allowed at their tokens.

    ``numbers``    indices of the sentences in the corpus
    ``observed``   word indices, or vectors
    ``indptr``     sentence n has the tokens ``indptr[n]`` to ``indptr[n + 1]`` (exclusive)
    ``sets``       index into ``states`` of the set allowed at each token
    ``weights``    weight of each sentence
    ``new_words``  words not in the model's vocabulary; their indices follow those of the vocabulary
    ``n_words``    the size of that vocabulary; 0: unknown, or there are vectors
    ``sparse``     `is_sparse` of the corpus that this is a part of; None: it is a whole by itself
    """

    numbers: IntArray  # (sentences,)
    observed: Array  # (tokens,) or (tokens, dimensions)
    indptr: IntArray  # (sentences + 1,)
    sets: IntArray  # (tokens,)
    states: StateSets
    weights: FloatArray  # (sentences,)
    new_words: Sequence[str] = ()
    n_words: int = 0
    sparse: bool | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def n_tokens(self) -> int:
        return int(self.indptr[-1])

    @classmethod
    def concatenate(cls, shards: Sequence[SentenceShard]) -> SentenceShard:
        """Make one shard of several of the same corpus."""
        if len(shards) == 1:
            return shards[0]
        lengths = [np.zeros(1, np.int64), *(np.diff(shard.indptr) for shard in shards)]
        return replace(
            shards[0],
            numbers=np.concatenate([shard.numbers for shard in shards]),
            observed=np.concatenate([shard.observed for shard in shards]),
            indptr=np.cumsum(np.concatenate(lengths)),
            sets=np.concatenate([shard.sets for shard in shards]),
            weights=np.concatenate([shard.weights for shard in shards]),
        )

    @cached_property
    def own_words(self) -> IntArray | None:
        """The words of the vocabulary that occur; None if the vocabulary is small, or most do."""
        if self.n_words < MANY_WORDS:
            return None
        uses = np.bincount(self.observed, minlength=self.n_words)[: self.n_words]
        return np.flatnonzero(uses) if 2 * np.count_nonzero(uses) < self.n_words else None

    @cached_property
    def rows(self) -> IntArray:
        """The emission row of each token: its own for vectors, for words that of the word.

        The rows are those of all words or, if there are `own_words`, of these; new words follow.
        """
        if self.observed.ndim > 1:
            return np.arange(self.n_tokens)
        words: IntArray = self.observed.astype(np.int64)
        if self.own_words is None:
            return words
        row_of = np.empty(self.n_words + len(self.new_words), np.int64)
        row_of[self.own_words] = np.arange(len(self.own_words))
        row_of[self.n_words :] = len(self.own_words) + np.arange(len(self.new_words))
        rows: IntArray = row_of[words]
        return rows

    @cached_property
    def kinds(self) -> TokenKinds:
        """The tokens grouped by emission row and set of allowed states."""
        n_sets = len(self.states.allowed)
        pairs, of_tokens = np.unique(self.rows * n_sets + self.sets, return_inverse=True)
        return TokenKinds(of_tokens, pairs // n_sets, pairs % n_sets, self.states)

    @cached_property
    def packs(self) -> Packs:
        """The sentences in packs, for `softcount.hmm.kernels.packs`."""
        return pack_sentences(self.indptr, LANES, ROWS)

    @cached_property
    def is_sparse(self) -> bool:
        """Whether so few states are allowed that lists of them are faster than matrices."""
        if self.sparse is not None:
            return self.sparse
        transitions, before = 0.0, np.zeros(0)
        for sets in self.sets.parts() if isinstance(self.sets, SetsOnDisk) else (self.sets,):
            sizes = self.states.sizes[sets].astype(float)
            joined = np.concatenate([before, sizes])
            transitions += float(joined[:-1] @ joined[1:]) + float(sizes.sum())
            before = sizes[-1:]
        return SPARSE * transitions < self.n_tokens * self.states.n_states**2

    @cached_property
    def token_weights(self) -> FloatArray:
        """The weight of each token's sentence."""
        return np.repeat(self.weights, np.diff(self.indptr))

    @cached_property
    def squares(self) -> FloatArray:
        """Σ w x² of the vectors, (dimensions,)."""
        sums: FloatArray = self.token_weights @ self.observed**2
        return sums


@dataclass(frozen=True, eq=False)
class SentenceCorpus:
    """The corpus of a hidden Markov model, in memory or on disk.

    Of a corpus on disk, what is in memory are some arrays with a number for each sentence, and one
    shard at a time: no more than `SHARD_TOKENS` tokens, unless a single sentence has more. Shards
    are made when they are accessed, and not kept; the cut and the numbers in them are those of the
    same corpus in memory.

    ``everything``  all sentences. Of a corpus on disk, ``observed`` and ``sets`` are read when they
                    are indexed: it is not a shard to work on, but what shards are made of
    ``name_of``     function from a sentence's index to its name in messages
    """

    everything: SentenceShard
    name_of: Callable[[int], object] | None = None

    def __len__(self) -> int:
        return len(self.everything)

    @property
    def indptr(self) -> IntArray:
        """Sentence n has the tokens ``indptr[n]`` to ``indptr[n + 1]`` (exclusive)."""
        return self.everything.indptr

    @property
    def lengths(self) -> IntArray:
        """The number of tokens of each sentence."""
        return np.diff(self.indptr)

    @property
    def is_on_disk(self) -> bool:
        """Whether tokens are read when shards are made."""
        return isinstance(self.everything.sets, SetsOnDisk)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[SentenceShard]:
        if batch_size is None:
            return self.cut_at(self.borders())
        batches = split_items(len(self), len(self), batch_size, seed)
        if self.is_on_disk:
            return ShardsOnAccess(self._to_send.select, [(batch,) for batch in batches])
        return [self.select(batch) for batch in batches]

    def borders(self) -> list[tuple[int, int]]:
        """Cut the sentences, in order, into shards of at most `SHARD_TOKENS` tokens.

        Returns the first sentence of each shard and the one after its last.
        """
        observed = self.everything.observed
        wide = observed.shape[1] / USUAL_DIMENSIONS if observed.ndim > 1 else 1.0
        return cut_by_work(self.lengths, SHARD_TOKENS / max(wide, 1.0))

    def cut_at(self, borders: Sequence[tuple[int, int]]) -> Sequence[SentenceShard]:
        """Return the shards of these first and last sentences (exclusive)."""
        if self.is_on_disk:
            # whoever makes the shards should not have to read all sentences
            whole = replace(self.everything, sparse=self.everything.is_sparse)
            return ShardsOnAccess(replace(self._to_send, everything=whole).part, borders)
        if len(borders) == 1:
            return [self.everything]
        return [self.part(first, last) for first, last in borders]

    @property
    def _to_send(self) -> SentenceCorpus:
        """The corpus without what other processes need not know."""
        return replace(self, name_of=None)

    def part(self, first: int, last: int) -> SentenceShard:
        """Make a shard of the sentences ``first`` to ``last`` (exclusive).

        Of a corpus in memory, without copying them.
        """
        whole = self.everything
        begin, end = whole.indptr[first], whole.indptr[last]
        return replace(
            whole,
            numbers=whole.numbers[first:last],
            observed=whole.observed[begin:end],
            indptr=whole.indptr[first : last + 1] - begin,
            sets=whole.sets[begin:end],
            weights=whole.weights[first:last],
            sparse=whole.is_sparse,  # as draws and paths should not depend on the cut
        )

    def select(self, numbers: IntArray) -> SentenceShard:
        """Make a shard of these sentences."""
        whole = self.everything
        lengths = np.diff(whole.indptr)[numbers]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        tokens = np.arange(indptr[-1]) + np.repeat(whole.indptr[numbers] - indptr[:-1], lengths)
        return replace(
            whole,
            numbers=whole.numbers[numbers],
            observed=whole.observed[tokens],
            indptr=indptr,
            sets=whole.sets[tokens],
            weights=whole.weights[numbers],
        )

    def name(self, number: int) -> str:
        return f"sentence {number}" if self.name_of is None else str(self.name_of(number))


@dataclass(frozen=True)
class Uncut:
    """A corpus of sentences in a single shard, however many they are."""

    corpus: SentenceCorpus

    def __len__(self) -> int:
        return len(self.corpus)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[SentenceShard]:
        return [self.corpus.everything]

    def name(self, number: int) -> str:
        return self.corpus.name(number)


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
    hint = f"give {n} non-negative numbers"
    if weights.shape != (n,):
        raise DataError(f"sample_weight has the shape {weights.shape}", hint)
    return clean_weights(weights, "sample_weight", hint, most, least)


# Supervision: tags of some words, sets of possible tags, a tag dictionary.

VECTORS = Units("sequence", "vector")
CHOICES = (set, frozenset, list, tuple)
"""Types accepted as a set of tags."""


class StateSetBuilder:
    """Builder of `StateSets`: numbers distinct sets of states; number 0 is the set of all."""

    def __init__(self, n_states: int) -> None:
        self.n_states = n_states
        self._numbers: dict[tuple[int, ...], int] = {tuple(range(n_states)): 0}

    def number(self, states: Iterable[int]) -> int:
        """Return the number of a set, adding it if it is new."""
        return self._numbers.setdefault(tuple(sorted(set(states))), len(self._numbers))

    def build(self) -> StateSets:
        """Make the sets, in the order of their numbers."""
        allowed = np.zeros((len(self._numbers), self.n_states), np.bool_)
        for states, number in self._numbers.items():
            allowed[number, list(states)] = True
        return StateSets(allowed)


@dataclass(frozen=True, eq=False)
class TagSupervision:
    """Supervision given by the user: known tags, and sets of possible tags.

    ``text``     the sentences with their known tags
    ``choices``  token → names of its possible tags
    """

    text: Tagged
    choices: Mapping[int, Collection[str]]

    @classmethod
    def read(cls, data: Any, tags: Any, like: Like | None, lowercase: bool) -> TagSupervision:
        """Read sentences and their tags."""
        if isinstance(data, Tagged) and tags is None:
            return cls(tagged(data, like=like, lowercase=lowercase), {})
        if tags is None:
            return cls.without_tags(sequences(data, like=like, lowercase=lowercase))
        on_disk = data.sequences if isinstance(data, Tagged) else data
        if isinstance(on_disk, Sequences) and is_on_disk(on_disk.tokens):
            raise DataError(
                "tags are given beside sentences on disk",
                'build a corpus of tagged sentences, kind "tagged", and omit tags',
            )
        plain, choices = _split_choices(tags, SENTENCES)
        known = tagged(data, plain, like=like, lowercase=lowercase)
        return cls(known, _by_token(choices, known.sequences.indptr))

    @classmethod
    def read_for_vectors(cls, lengths: IntArray, tags: Any) -> TagSupervision:
        """Read the tags of sequences of vectors."""
        text = sequences([["·"] * n for n in lengths.tolist()])
        if tags is None:
            return cls.without_tags(text)
        plain, choices = _split_choices(tags, VECTORS)
        name = f"{VECTORS.sequence} {{}}".format
        known = Tagged(text, *number_tags(plain, lengths, name, units=VECTORS))
        return cls(known, _by_token(choices, text.indptr))

    @classmethod
    def without_tags(cls, text: Sequences) -> TagSupervision:
        """Make the supervision of sentences of which nothing is known."""
        unknown = np.broadcast_to(np.array(UNKNOWN, np.int32), len(text.tokens))  # takes no space
        return cls(Tagged(text, unknown, []), {})

    @property
    def names(self) -> set[str]:
        """All tags that occur."""
        return set(self.text.names).union(*self.choices.values())


Choices = dict[tuple[int, int], Collection[str]]
"""Sets of tags by sentence and word."""


def _by_token(choices: Choices, indptr: IntArray) -> dict[int, Collection[str]]:
    """Re-key sets of tags from (sentence, word) to token."""
    return {int(indptr[n]) + i: names for (n, i), names in choices.items()}


def _split_choices(tags: Any, units: Units) -> tuple[list[Any], Choices]:
    """Split tags into plain tags, with None in place of sets, and the sets."""
    plain: list[Any] = []
    choices: Choices = {}
    hint = f"give for each {units.token} a tag, a set of possible tags, or None for any"
    if not isinstance(tags, Iterable):
        raise DataError(f"tags={brief(tags)} is not a list", hint)
    for n, sentence in enumerate(tags):
        if sentence is None or not isinstance(sentence, Iterable) or isinstance(sentence, str):
            plain.append(sentence)  # None; anything else is rejected by `tagged`
            continue
        word_tags = list(sentence)
        plain.append(word_tags)
        for i, names in enumerate(word_tags):
            if not isinstance(names, CHOICES):
                continue
            where = f"{units.token} {i} of {units.sequence} {n}"
            if not names:
                raise DataError(f"{where} has an empty set of possible tags", hint)
            for tag in names:
                if not isinstance(tag, str | int | np.integer) or str(tag) in ("", "-1"):
                    raise DataError(f"{where} has an invalid possible tag {brief(tag)}", hint)
            choices[n, i], word_tags[i] = frozenset(map(str, names)), None
    return plain, choices


@dataclass(frozen=True, eq=False)
class TagConstraints:
    """Names of states, and the states allowed for words.

    ``names``       names of the first states; the others are unnamed
    ``dictionary``  word → possible tags; None: any word may have any tag
    ``open_tags``   possible tags of words not in the dictionary; None: any
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
        """Name the states after all tags that occur, in alphabetical order."""
        lexicon = None if dictionary is None else tag_dictionary(dictionary)
        if lexicon is not None and lowercase:  # the union of the tags of all spellings
            lower: dict[str, dict[str, None]] = {}
            for word, tags in lexicon.items():
                lower.setdefault(word.lower(), {}).update(dict.fromkeys(tags))
            lexicon = {word: list(tags) for word, tags in lower.items()}
        others = [open_tags] if isinstance(open_tags, str) else open_tags
        others = list(others) if isinstance(others, Iterable) else [others]
        others = [] if open_tags is None else others
        for tag in others:
            if not is_sound(tag):
                raise DataError(
                    f"open_tags has {brief(tag)}", "give names of tags, or None for any tag"
                )
        names = sorted({*mentioned, *others}.union(*(lexicon or {}).values()))
        needed = len(names)
        if names and all(map(_is_number, names)):  # the tags are state numbers
            names, needed = [], max(map(int, names)) + 1
        if n_states is None and not needed:
            raise DataError(
                "how many states?", "give n_components, or tags, or a dictionary of tags"
            )
        if n_states is not None and n_states < needed:
            raise DataError(
                f"there are {needed} tags, but n_components={n_states}",
                f"omit n_components, or give at least {needed}",
            )
        return cls(names, n_states or needed, lexicon, others or None)

    def allow(self, supervision: TagSupervision) -> tuple[IntArray, StateSets]:
        """Return the number of the set of states allowed at each token, and all sets."""
        builder, tagged_text = StateSetBuilder(self.n_states), supervision.text
        text, names, tags = tagged_text.sequences, tagged_text.names, tagged_text.tags
        of_word = of_tag = None
        if self.dictionary is not None:
            others = 0
            if self.open_tags is not None:
                others = builder.number(map(self.number, self.open_tags))
            of_word = np.full(max(len(text.words), 1), others, np.int32)
            for w, word in enumerate(text.words):
                if word in self.dictionary:
                    of_word[w] = builder.number(map(self.number, self.dictionary[word]))
        if names:  # a known tag is a singleton set
            of_tag = np.zeros(len(names), np.int32)
            occurring = range(len(names)) if is_on_disk(tags) else np.unique(tags[tags >= 0])
            for tag in map(int, occurring):
                of_tag[tag] = builder.number([self.number(names[tag])])
        if isinstance(text.tokens, DiskArray):
            known = tags if isinstance(tags, DiskArray) else None
            lazy = SetsOnDisk(text.tokens, of_word, known, of_tag)
            return cast(IntArray, lazy), builder.build()
        sets = np.zeros(len(text.tokens), np.int32) if of_word is None else of_word[text.tokens]
        if of_tag is not None:
            sets = np.where(tags >= 0, of_tag[np.maximum(tags, 0)], sets)
        for token, possible in supervision.choices.items():
            sets[token] = builder.number(map(self.number, possible))
        return sets.astype(np.int32), builder.build()

    @property
    def states(self) -> list[Any]:
        """All states: named ones first, then the others by number."""
        return [*self.names, *range(len(self.names), self.n_states)]

    def name_states(self, states: IntArray) -> list[Any]:
        """Convert state numbers to names; unnamed states keep their numbers."""
        numbers, names = states.tolist(), self.names
        return [names[k] if k < len(names) else k for k in numbers] if names else numbers

    def number(self, name: str) -> int:
        """Return the number of the state named by a tag."""
        if not self.names and _is_number(name) and int(name) < self.n_states:
            return int(name)
        if name not in self._numbers:
            raise DataError(f"there is no tag {brief(name)}", f"tags are {brief(list(self.names))}")
        return self._numbers[name]

    def state(self, given: Any) -> int:
        """Return the number of a state, given its tag or its number."""
        if isinstance(given, int | np.integer) and 0 <= given < self.n_states:
            return int(given)
        if not isinstance(given, str):
            raise DataError(f"there is no state {brief(given)}", f"states are {brief(self.states)}")
        return self.number(given)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}


def _is_number(name: str) -> bool:
    """Return whether a tag is a state number."""
    plain = name.isascii() and name.isdecimal() and len(name) < 7
    return plain and str(int(name)) == name
