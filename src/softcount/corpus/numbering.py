"""Words of running text become numbers, in the order in which they first appear."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from softcount.errors import DataError, shown
from softcount.kernels import tokens as kernel
from softcount.types import Array

Name = Callable[[int], str]
"""What messages call a line, by its number in its piece of text."""


class Numbered(NamedTuple):
    """Lines as numbers of words: line n ends before token ``ends[n]``, ``words[k]`` is word k."""

    tokens: Array
    ends: Array
    words: Sequence[str]

    def line_of(self, number: int) -> int:
        """The first line that has the word with this number."""
        token = np.flatnonzero(self.tokens == number)[0]
        return int(np.searchsorted(self.ends, token, side="right"))


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words that have their numbers already. Kept by who encodes often: ``numbers`` takes a while.

    >>> Vocabulary(["the", "house"]).numbers
    {'the': 0, 'house': 1}
    """

    words: Sequence[str]

    @classmethod
    def of(cls, words: Vocabulary | Sequence[str]) -> Vocabulary:
        """These words as a vocabulary, if they are not one."""
        return words if isinstance(words, Vocabulary) else cls(words)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """word → number"""
        numbers = {word: number for number, word in enumerate(self.words)}
        if len(numbers) != len(self.words):
            twice = next(word for n, word in enumerate(self.words) if numbers[word] != n)
            raise DataError(f"the vocabulary has {shown(twice)} twice", "give each word once")
        return numbers


class Cutter:
    """Cuts UTF-8 text at white space, a piece at a time; each new word gets the next number.

    White space is what ``str.split`` takes for it: no-break and ideographic spaces too.

    >>> cutter = Cutter()
    >>> found = cutter.cut("le chat\\nle\\u00a0chien".encode(), str)
    >>> found.tokens.tolist(), found.ends.tolist(), found.words
    ([0, 1, 0, 2], [2, 4], ['le', 'chat', 'chien'])
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self._slots = np.zeros(1 << 8, np.uint64)
        self._text = np.zeros(1 << 10, np.uint8)
        self._starts = np.zeros(1 << 8, np.int64)

    def cut(self, text: bytes, name: Name) -> Numbered:
        """The words of whole lines; words are those of all pieces so far."""
        data = np.frombuffer(text, np.uint8)
        most = len(data) // 2 + 1
        firsts, lasts = np.empty((2, most), np.int64)
        codes = np.empty(most, np.uint32)
        ends = np.empty(text.count(b"\n") + 1, np.int64)
        n, n_lines = kernel.spans(data, firsts, lasts, codes, ends)
        tokens, done, n_words = np.empty(n, np.int32), 0, len(self.words)
        while done < n:
            done, n_words = kernel.number(
                data,
                firsts,
                lasts,
                codes,
                done,
                tokens,
                self._slots,
                self._text,
                self._starts,
                n_words,
            )
            if done < n:
                self._make_room(n_words, int(lasts[done] - firsts[done]))
        found = Numbered(tokens, ends[:n_lines], self.words)
        self._decode(n_words, found, name)
        return found

    def _make_room(self, n_words: int, size: int) -> None:
        """Room for one more word, of so many bytes, and many others."""
        if 2 * n_words + 2 > len(self._slots):
            slots = np.zeros(2 * len(self._slots), np.uint64)
            kernel.rehash(self._slots, slots)
            self._slots = slots
        if n_words + 2 > len(self._starts):
            self._starts = np.resize(self._starts, 2 * len(self._starts))
        if self._starts[n_words] + size + 1 > len(self._text):
            self._text = np.resize(self._text, 2 * len(self._text) + size)

    def _decode(self, n_words: int, found: Numbered, name: Name) -> None:
        """Turn the new words into strings."""
        before = len(self.words)
        raw = self._text[self._starts[before] : self._starts[n_words]].tobytes()
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            number = before + raw.count(b"\n", 0, error.start)
            word = raw[: error.end].split(b"\n")[-1]
            raise DataError(
                f"{name(found.line_of(number))} is not UTF-8 text: {shown(word)}",
                "convert the text to UTF-8",
            ) from error
        new = text.split("\n")[:-1]
        if "\0" in text:
            number = before + next(n for n, word in enumerate(new) if "\0" in word)
            raise DataError(
                f"{name(found.line_of(number))} has a NUL byte in it",
                "is this text? If it is UTF-16, convert it to UTF-8",
            )
        self.words.extend(new)


def number_lists(sentences: Sequence[Sequence[str]], name: Name) -> Numbered:
    """Sentences that are lists of words already, which stay as they are.

    >>> number_lists([["New York", "is"], [], ["is"]], str).tokens.tolist()
    [0, 1, 1]
    """
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    tokens, ends = array("i"), array("q")
    for n, sentence in enumerate(sentences):
        try:
            tokens.extend(map(numbers.__getitem__, sentence))
        except TypeError as error:  # not hashable: a list or the like
            raise DataError(
                f"{name(n)} has something else among its words: {shown(sentence)}", WORDS
            ) from error
        ends.append(len(tokens))
    found = Numbered(np.asarray(tokens), _int64(ends), list(numbers))
    for number, word in enumerate(found.words):
        if not is_sound(word):
            raise DataError(
                f"{name(found.line_of(number))} has {shown(word)} among its words", WORDS
            )
    return found


def _int64(values: array[int]) -> Array:
    # numpy has two names for this type, and np.asarray chooses the rarer one
    return np.asarray(values).view(np.int64)


WORDS = "words are strings of one letter at least, without NUL and half characters"


def is_sound(word: Any) -> bool:
    """Whether this can be a word: see `WORDS`."""
    if not isinstance(word, str) or not word or "\0" in word:
        return False
    return word.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in word)


class Growing:
    """One side of a bitext as its lines come: words of the vocabulary first, then new ones.

    >>> side = Growing(Vocabulary(["le"]))
    >>> side.add(number_lists([["un", "chat"], ["le", "chat"]], str))
    >>> side.words, side.tokens, side.indptr
    (['le', 'un', 'chat'], array([1, 2, 0, 2], dtype=int32), array([0, 2, 4]))
    """

    def __init__(self, known: Vocabulary, lowercase: bool = False) -> None:
        self._known, self._lowercase = known, lowercase
        self._added: dict[str, int] = {}
        self._new = np.zeros(0, np.int32)
        # these grow where they are: what is there is not copied, so memory is not needed twice
        self._tokens, self._indptr = array("i"), array("q", [0])

    def __len__(self) -> int:
        return len(self._indptr) - 1

    def add(self, lines: Numbered) -> None:
        """Lines whose words have numbers of their own, the same in all that is added."""
        have, need = len(self._new), len(lines.words)
        if have < need:
            more = np.full(max(need, 2 * have) - have, -1, np.int32)
            self._new = np.concatenate([self._new, more])
        fresh = np.empty(need, np.int32)
        fresh = fresh[: kernel.first_seen(lines.tokens, self._new, fresh)]
        self._new[fresh] = self._numbers([lines.words[number] for number in fresh.tolist()])
        self._indptr.frombytes((lines.ends + len(self._tokens)).tobytes())
        self._tokens.frombytes(self._new[lines.tokens].tobytes())

    def _numbers(self, words: list[str]) -> list[int]:
        known, added = self._known.numbers, self._added
        first = len(known)
        if self._lowercase:
            # the same as lowering whole lines: not even a final sigma looks beyond white space
            words = [word.lower() for word in words]
        return [
            known[word] if word in known else added.setdefault(word, first + len(added))
            for word in words
        ]

    @property
    def words(self) -> list[str]:
        known = self._known.words
        if not self._added and isinstance(known, list):
            return known  # a sentence of known words should not cost a copy of them all
        return [*known, *self._added]

    @property
    def tokens(self) -> Array:
        return np.asarray(self._tokens)

    @property
    def indptr(self) -> Array:
        return _int64(self._indptr)
