"""Numbering of the words of running text, in order of first appearance."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import IntArray
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import mix
from softcount.text.lines import Name, encode_texts


class NumberedLines(NamedTuple):
    """Lines as word numbers: line n ends before token ``ends[n]``, and ``words[k]`` is word k."""

    tokens: IntArray
    ends: IntArray
    words: Sequence[str]

    def line_of(self, number: int) -> int:
        """Return the first line that has the word with this number."""
        token = np.flatnonzero(self.tokens == number)[0]
        return int(np.searchsorted(self.ends, token, side="right"))


@dataclass(frozen=True, eq=False)
class Vocabulary(PickledWithoutCaches):
    """A fixed vocabulary. Keep it for later encoding: computing ``numbers`` takes a while.

    >>> Vocabulary(["the", "house"]).numbers
    {'the': 0, 'house': 1}
    """

    words: Sequence[str]

    @classmethod
    def of(cls, words: Vocabulary | Sequence[str]) -> Vocabulary:
        """Return the words as a vocabulary, unless they are one already."""
        return words if isinstance(words, Vocabulary) else cls(words)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """word → number"""
        numbers = {word: number for number, word in enumerate(self.words)}
        if len(numbers) != len(self.words):
            twice = next(word for n, word in enumerate(self.words) if numbers[word] != n)
            raise DataError(f"the vocabulary has {brief(twice)} twice", "give each word once")
        return numbers


class WordSpans(NamedTuple):
    """The words of a text: where each begins and ends, and its 32-bit hash."""

    firsts: IntArray
    lasts: IntArray
    codes: IntArray


class WordHash(NamedTuple):
    """A hash table from words to their numbers.

    ``slots``   open addressing (Knuth 1973, § 6.4): the hash in the high half, number + 1 in the
                low half; 0: free. Their number is a power of two
    ``text``    the words one after the other, each followed by \\n
    ``starts``  where each word begins in the text, and where the next one will
    """

    slots: IntArray
    text: IntArray
    starts: IntArray


class WordTable:
    """Words found in text, numbered in order of first appearance."""

    def __init__(self) -> None:
        self.n_words = 0
        self._table = WordHash(
            np.zeros(1 << 8, np.uint64), np.zeros(1 << 10, np.uint8), np.zeros(1 << 8, np.int64)
        )

    def number(self, data: IntArray, spans: WordSpans, n: int) -> IntArray:
        """Return the numbers of the first n words of ``data`` that ``spans`` says."""
        tokens, done = np.empty(n, np.int32), 0
        while done < n:
            done, self.n_words = _number_words(data, spans, done, tokens, self._table, self.n_words)
            if done < n:
                self._grow(int(spans.lasts[done] - spans.firsts[done]))
        return tokens

    def _grow(self, size: int) -> None:
        """Enlarge the table for another word of ``size`` bytes, and many more."""
        slots, text, starts = self._table
        if 2 * self.n_words + 2 > len(slots):
            larger = np.zeros(2 * len(slots), np.uint64)
            _rehash(slots, larger)
            slots = larger
        if self.n_words + 2 > len(starts):
            starts = np.resize(starts, 2 * len(starts))
        if starts[self.n_words] + size + 1 > len(text):
            text = np.resize(text, 2 * len(text) + size)
        self._table = WordHash(slots, text, starts)

    def raw(self, before: int = 0) -> bytes:
        """Return the words from the one with this number on, each followed by \\n."""
        _, text, starts = self._table
        return text[starts[before] : starts[self.n_words]].tobytes()


class LineTokeniser:
    """Tokeniser that splits UTF-8 text at white space, piece by piece, and numbers new words.

    White space is defined as in ``str.split``, including no-break and ideographic spaces.

    >>> tokeniser = LineTokeniser()
    >>> lines = tokeniser.cut("le chat\\nle\\u00a0chien".encode(), str)
    >>> lines.tokens.tolist(), lines.ends.tolist(), lines.words
    ([0, 1, 0, 2], [2, 4], ['le', 'chat', 'chien'])
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self._table = WordTable()

    def cut(self, text: bytes, name: Name) -> NumberedLines:
        """Split whole lines into words; the result's ``words`` are those of all pieces so far.

        ``name``  gives the names of the lines of this piece in messages
        """
        data = np.frombuffer(text, np.uint8)
        most = len(data) // 2 + 1
        firsts, lasts = np.empty((2, most), np.int64)
        spans = WordSpans(firsts, lasts, np.empty(most, np.uint32))
        ends = np.empty(text.count(b"\n") + 1, np.int64)
        n, n_lines = _find_words(data, spans, ends)
        lines = NumberedLines(self._table.number(data, spans, n), ends[:n_lines], self.words)
        self._decode(lines, name)
        return lines

    def _decode(self, lines: NumberedLines, name: Name) -> None:
        """Decode the new words and append them to ``words``."""
        before = len(self.words)
        raw = self._table.raw(before)
        try:
            new = raw.decode().split("\n")[:-1]
        except UnicodeDecodeError as error:
            number = before + raw.count(b"\n", 0, error.start)
            word = raw[: error.end].split(b"\n")[-1]
            raise DataError(
                f"{name(lines.line_of(number))} is not UTF-8 text: {brief(word)}",
                "convert the text to UTF-8",
            ) from error
        if b"\0" in raw:
            number = before + next(n for n, word in enumerate(new) if "\0" in word)
            raise DataError(
                f"{name(lines.line_of(number))} has a NUL byte in it",
                "check that this is text; if it is UTF-16, convert it to UTF-8",
            )
        self.words.extend(new)


def number_lists(sentences: Sequence[Sequence[str]], name: Name) -> NumberedLines:
    """Number the words of sentences that are lists of words; the words are not changed.

    >>> number_lists([["New York", "is"], [], ["is"]], str).tokens.tolist()
    [0, 1, 1]
    """
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    tokens, ends = array("i"), array("q")
    for n, sentence in enumerate(sentences):
        try:
            tokens.extend(map(numbers.__getitem__, sentence))
        except TypeError as error:  # not hashable, such as a list
            raise DataError(
                f"{name(n)} has something else among its words: {brief(sentence)}", WORDS
            ) from error
        ends.append(len(tokens))
    lines = NumberedLines(np.asarray(tokens), _int64(ends), list(numbers))
    for number, word in enumerate(lines.words):
        if not is_sound(word):
            raise DataError(
                f"{name(lines.line_of(number))} has {brief(word)} among its words", WORDS
            )
    return lines


def _int64(values: array[int]) -> IntArray:
    # numpy has two types of 64-bit integers, and np.asarray chooses the less common one
    return np.asarray(values).view(np.int64)


WORDS = "words are strings of at least one character, without NUL and lone surrogates"


def is_sound(word: Any) -> bool:
    """Return whether this is a valid word: see `WORDS`."""
    if not isinstance(word, str) or not word or "\0" in word:
        return False
    return word.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in word)


class SideBuilder:
    """Builder of one side of a bitext: known words keep their numbers, new ones follow.

    >>> side = SideBuilder(Vocabulary(["le"]))
    >>> side.add(number_lists([["un", "chat"], ["le", "chat"]], str))
    >>> side.words, side.tokens, side.indptr
    (['le', 'un', 'chat'], array([1, 2, 0, 2], dtype=int32), array([0, 2, 4]))
    """

    def __init__(self, known: Vocabulary, lowercase: bool = False) -> None:
        self._known, self._lowercase = known, lowercase
        self._added: dict[str, int] = {}
        self._new = np.zeros(0, np.int32)
        # these grow in place, without a copy that would need the memory twice
        self._tokens, self._indptr = array("i"), array("q", [0])

    def __len__(self) -> int:
        return len(self._indptr) - 1

    def add(self, lines: NumberedLines) -> None:
        """Append lines; all lines added must share one numbering of words."""
        have, need = len(self._new), len(lines.words)
        if have < need:
            unnumbered = np.full(max(need, 2 * have) - have, -1, np.int32)
            self._new = np.concatenate([self._new, unnumbered])
        fresh = np.empty(need, np.int32)
        fresh = fresh[: _list_new(lines.tokens, self._new, fresh)]
        self._new[fresh] = self._numbers([lines.words[number] for number in fresh.tolist()])
        self._indptr.frombytes((lines.ends + len(self._tokens)).tobytes())
        self._tokens.frombytes(self._new[lines.tokens].tobytes())

    def take(self) -> tuple[IntArray, IntArray]:
        """Return the tokens and the lengths of the lines added so far, and forget the lines.

        Their words are kept. Lines added from now on may have another numbering of words.
        """
        lines = self.tokens, np.diff(self.indptr)
        self._tokens, self._indptr = array("i"), array("q", [0])
        self._new = np.zeros(0, np.int32)
        return lines

    def _numbers(self, words: list[str]) -> list[int]:
        known, added = self._known.numbers, self._added
        first = len(known)
        if self._lowercase:
            # the same as lowercasing whole lines: even a final sigma depends on its word only
            words = [word.lower() for word in words]
        return [
            known[word] if word in known else added.setdefault(word, first + len(added))
            for word in words
        ]

    @property
    def words(self) -> list[str]:
        known = self._known.words
        if not self._added and isinstance(known, list):
            return known  # avoid a copy of the whole vocabulary
        return [*known, *self._added]

    @property
    def tokens(self) -> IntArray:
        return np.asarray(self._tokens)

    @property
    def indptr(self) -> IntArray:
        return _int64(self._indptr)


def add_sentences(
    sentences: list[Any], side: SideBuilder, name: Name, verb: str = "has the sentence"
) -> None:
    """Add sentences, either all texts, which are split at white space, or all lists of words.

    ``verb``  in messages, joins the name of an item and its invalid sentence
    """
    kind = str if sentences and isinstance(sentences[0], str) else (list, tuple)
    for n, sentence in enumerate(sentences):
        if not isinstance(sentence, kind):
            hint = "decode it first, for example text.decode('utf-8')"
            raise DataError(
                f"{name(n)} {verb} {brief(sentence)}",
                hint if isinstance(sentence, bytes) else "give texts only, or lists of words only",
            )
    if kind is str:
        add_lines(encode_texts(sentences), side, name)
    else:
        side.add(number_lists(sentences, name))


def add_lines(pieces: Iterable[bytes], side: SideBuilder, name: Name) -> None:
    """Add pieces of text, split at white space; ``name`` gives the names of lines in messages."""
    tokeniser = LineTokeniser()
    for piece in pieces:
        before = len(side)
        lines = tokeniser.cut(piece, lambda line, before=before: name(before + line))  # type: ignore[misc]
        side.add(lines)


# Compiled loops: UTF-8 text is split at white space, and its words are numbered as they appear.
#
# White space is defined as in Python's ``str.split``, for all scripts; a line ends at \n and
# nowhere else. No word is decoded here: bytes of white space never occur inside another character
# of UTF-8, so a text is valid if each of its distinct words is.


_INSIDE, _SPACE, _PERHAPS, _NEWLINE = 0, 1, 2, 3
"""Kinds of bytes: in a word, white space, perhaps the first of non-ASCII white space, newline."""


_KINDS = np.full(256, _INSIDE, np.uint8)
for _space in filter(str.isspace, map(chr, range(0x3001))):  # U+3000 is the last
    _first, *_more = _space.encode()
    _KINDS[_first] = _PERHAPS if _more else _SPACE
_KINDS[ord("\n")] = _NEWLINE
_NEWLINE_BYTE = 10
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_LOW, _HALF, _ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)


@inline
def _wide_space(data: IntArray, i: int) -> int:
    """Return the length in bytes of the non-ASCII white space at i; 0: it is something else."""
    if i + 1 >= len(data):
        return 0
    first, second = data[i], data[i + 1]
    if first == 0xC2:
        return 2 if second == 0x85 or second == 0xA0 else 0
    if i + 2 >= len(data):
        return 0
    third = data[i + 2]
    found = False
    if first == 0xE1:
        found = second == 0x9A and third == 0x80
    elif first == 0xE2 and second == 0x80:
        found = 0x80 <= third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF
    elif first == 0xE2:
        found = second == 0x81 and third == 0x9F
    elif first == 0xE3:
        found = second == 0x80 and third == 0x80
    return 3 if found else 0


@njit
def _find_words(data: IntArray, spans: WordSpans, ends: IntArray) -> tuple[int, int]:
    """Find all words, and the number of words up to the end of each line.

    Text after the last \\n is a line too. Returns the numbers of words and lines.
    """
    n, n_lines, i = 0, 0, 0
    while i < len(data):
        kind = _KINDS[data[i]]
        if kind == _NEWLINE:
            ends[n_lines] = n
            n_lines += 1
        wide = _wide_space(data, i) if kind == _PERHAPS else 0
        if kind in (_NEWLINE, _SPACE) or wide:
            i += max(wide, 1)
            continue
        first, code = i, np.uint64(0)
        while i < len(data):
            kind = _KINDS[data[i]]
            if kind and (kind != _PERHAPS or _wide_space(data, i)):
                break
            code = (code ^ np.uint64(data[i])) * _MULTIPLIER
            i += 1
        spans.firsts[n], spans.lasts[n] = first, i
        spans.codes[n] = mix(code + np.uint64(i - first)) & _LOW
        n += 1
    if len(data) and data[-1] != _NEWLINE_BYTE:
        ends[n_lines] = n
        n_lines += 1
    return n, n_lines


@njit
def _number_words(
    data: IntArray, spans: WordSpans, begin: int, tokens: IntArray, table: WordHash, n_words: int
) -> tuple[int, int]:
    """Write the numbers of these words, from ``begin`` on; a new word gets the next number.

    Returns the number of words processed, and the number of distinct words now. If not all are
    processed, the next word is new and the table has no room for it.
    """
    firsts, lasts, codes = spans
    slots, text, starts = table
    mask = np.uint64(len(slots) - 1)
    for t in range(begin, len(tokens)):
        first, size, code = firsts[t], lasts[t] - firsts[t], np.uint64(codes[t])
        place, found = code & mask, -1
        while slots[place]:
            if slots[place] >> _HALF == code:
                other = int(slots[place] & _LOW) - 1
                start, k = starts[other], 0
                if starts[other + 1] - start == size + 1:
                    while k < size and data[first + k] == text[start + k]:
                        k += 1
                    if k == size:
                        found = other
                        break
            place = (place + _ONE) & mask
        if found < 0:
            start = starts[n_words]
            end = start + size + 1
            if 2 * n_words + 2 > len(slots) or end > len(text) or n_words + 2 > len(starts):
                return t, n_words
            found, n_words = n_words, n_words + 1
            slots[place] = (code << _HALF) | np.uint64(n_words)
            for k in range(size):
                text[start + k] = data[first + k]
            text[end - 1], starts[n_words] = _NEWLINE_BYTE, end
        tokens[t] = found
    return len(tokens), n_words


@njit
def _rehash(slots: IntArray, larger: IntArray) -> None:
    """Put the words of ``slots`` into ``larger``, which is empty."""
    mask = np.uint64(len(larger) - 1)
    for slot in slots:
        if slot:
            place = (slot >> _HALF) & mask
            while larger[place]:
                place = (place + _ONE) & mask
            larger[place] = slot


@njit
def _list_new(tokens: IntArray, new: IntArray, fresh: IntArray) -> int:
    """Write the tokens with ``new`` −1 to ``fresh``, each once, and mark them −2 in ``new``.

    Returns their number.
    """
    n = 0
    for token in tokens:
        if new[token] == -1:
            new[token] = -2
            fresh[n] = token
            n += 1
    return n


@njit
def split_sides(
    tokens: IntArray,
    ends: IntArray,
    bar: int,
    left: IntArray,
    left_ends: IntArray,
    right: IntArray,
    right_ends: IntArray,
) -> tuple[int, int]:
    """Split each line at its ``bar`` into left and right; a blank line has two empty sides.

    Returns the first line without exactly one bar, and its number of bars; −1, 1 if there is none.
    """
    t, n_left, n_right = 0, 0, 0
    for line in range(len(ends)):
        bars, blank = 0, t == ends[line]
        while t < ends[line]:
            if tokens[t] == bar:
                bars += 1
            elif bars:
                right[n_right] = tokens[t]
                n_right += 1
            else:
                left[n_left] = tokens[t]
                n_left += 1
            t += 1
        if bars != 1 and not blank:
            return line, bars
        left_ends[line], right_ends[line] = n_left, n_right
    return -1, 1
