"""Words of running text become numbers, in the order in which they first appear."""

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
from softcount.core.types import IntArray
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import mix
from softcount.text.lines import Name, encode_texts


class NumberedLines(NamedTuple):
    """Lines as numbers of words: line n ends before token ``ends[n]``, ``words[k]`` is word k."""

    tokens: IntArray
    ends: IntArray
    words: Sequence[str]

    def line_of(self, number: int) -> int:
        """The first line that has the word with this number."""
        token = np.flatnonzero(self.tokens == number)[0]
        return int(np.searchsorted(self.ends, token, side="right"))


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words that have their numbers already. Keep it to encode again: ``numbers`` takes a while.

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
            raise DataError(f"the vocabulary has {brief(twice)} twice", "give each word once")
        return numbers


class WordSpans(NamedTuple):
    """Words of a text: where each begins and ends, and a hash of it (32 bits)."""

    firsts: IntArray
    lasts: IntArray
    codes: IntArray


class WordHash(NamedTuple):
    """The words that have a number.

    ``slots``   by their hash (open addressing; Knuth 1973, § 6.4): the hash in the high half,
                number + 1 in the low half; 0: free. A power of two.
    ``text``    one after the other, each with \\n behind it
    ``starts``  where each begins in it, and where the next one will
    """

    slots: IntArray
    text: IntArray
    starts: IntArray


class LineTokeniser:
    """Cuts UTF-8 text at white space, a piece at a time; each new word gets the next number.

    White space is what ``str.split`` takes for it: no-break and ideographic spaces too.

    >>> cutter = LineTokeniser()
    >>> found = cutter.cut("le chat\\nle\\u00a0chien".encode(), str)
    >>> found.tokens.tolist(), found.ends.tolist(), found.words
    ([0, 1, 0, 2], [2, 4], ['le', 'chat', 'chien'])
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self._table = WordHash(
            np.zeros(1 << 8, np.uint64), np.zeros(1 << 10, np.uint8), np.zeros(1 << 8, np.int64)
        )

    def cut(self, text: bytes, name: Name) -> NumberedLines:
        """The words of whole lines; words are those of all pieces so far."""
        data = np.frombuffer(text, np.uint8)
        most = len(data) // 2 + 1
        firsts, lasts = np.empty((2, most), np.int64)
        spans = WordSpans(firsts, lasts, np.empty(most, np.uint32))
        ends = np.empty(text.count(b"\n") + 1, np.int64)
        n, n_lines = _find_words(data, spans, ends)
        tokens, done, n_words = np.empty(n, np.int32), 0, len(self.words)
        while done < n:
            done, n_words = _number_words(data, spans, done, tokens, self._table, n_words)
            if done < n:
                self._grow(n_words, int(spans.lasts[done] - spans.firsts[done]))
        found = NumberedLines(tokens, ends[:n_lines], self.words)
        self._decode(n_words, found, name)
        return found

    def _grow(self, n_words: int, size: int) -> None:
        """Make room for one more word, of so many bytes, and many others."""
        slots, text, starts = self._table
        if 2 * n_words + 2 > len(slots):
            larger = np.zeros(2 * len(slots), np.uint64)
            _rehash(slots, larger)
            slots = larger
        if n_words + 2 > len(starts):
            starts = np.resize(starts, 2 * len(starts))
        if starts[n_words] + size + 1 > len(text):
            text = np.resize(text, 2 * len(text) + size)
        self._table = WordHash(slots, text, starts)

    def _decode(self, n_words: int, found: NumberedLines, name: Name) -> None:
        """Turn the new words into strings."""
        before, (_, text, starts) = len(self.words), self._table
        raw = text[starts[before] : starts[n_words]].tobytes()
        try:
            new = raw.decode().split("\n")[:-1]
        except UnicodeDecodeError as error:
            number = before + raw.count(b"\n", 0, error.start)
            word = raw[: error.end].split(b"\n")[-1]
            raise DataError(
                f"{name(found.line_of(number))} is not UTF-8 text: {brief(word)}",
                "convert the text to UTF-8",
            ) from error
        if b"\0" in raw:
            number = before + next(n for n, word in enumerate(new) if "\0" in word)
            raise DataError(
                f"{name(found.line_of(number))} has a NUL byte in it",
                "is this text? If it is UTF-16, convert it to UTF-8",
            )
        self.words.extend(new)


def number_lists(sentences: Sequence[Sequence[str]], name: Name) -> NumberedLines:
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
                f"{name(n)} has something else among its words: {brief(sentence)}", WORDS
            ) from error
        ends.append(len(tokens))
    found = NumberedLines(np.asarray(tokens), _int64(ends), list(numbers))
    for number, word in enumerate(found.words):
        if not is_sound(word):
            raise DataError(
                f"{name(found.line_of(number))} has {brief(word)} among its words", WORDS
            )
    return found


def _int64(values: array[int]) -> IntArray:
    # numpy has two names for this type, and np.asarray chooses the rarer one
    return np.asarray(values).view(np.int64)


WORDS = "words are strings of one letter at least, without NUL and half characters"


def is_sound(word: Any) -> bool:
    """Whether this can be a word: see `WORDS`."""
    if not isinstance(word, str) or not word or "\0" in word:
        return False
    return word.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in word)


class SideBuilder:
    """One side of a bitext as its lines come: words of the vocabulary first, then new ones.

    >>> side = SideBuilder(Vocabulary(["le"]))
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

    def add(self, lines: NumberedLines) -> None:
        """Lines whose words have numbers of their own, the same in all that is added."""
        have, need = len(self._new), len(lines.words)
        if have < need:
            more = np.full(max(need, 2 * have) - have, -1, np.int32)
            self._new = np.concatenate([self._new, more])
        fresh = np.empty(need, np.int32)
        fresh = fresh[: _list_new(lines.tokens, self._new, fresh)]
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
    def tokens(self) -> IntArray:
        return np.asarray(self._tokens)

    @property
    def indptr(self) -> IntArray:
        return _int64(self._indptr)


def add_sentences(
    sentences: list[Any], side: SideBuilder, name: Name, verb: str = "has the sentence"
) -> None:
    """All texts, which are cut at white space, or all lists of words, which are not.

    ``verb``  what messages put between the name of an item and a sentence that is none
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


def add_lines(some: Iterable[bytes], side: SideBuilder, name: Name) -> None:
    """Pieces of text, cut at white space; ``name`` says what messages call a line of them all."""
    cutter = LineTokeniser()
    for piece in some:
        before = len(side)
        side.add(cutter.cut(piece, lambda line, before=before: name(before + line)))  # type: ignore[misc]


# Compiled loops: UTF-8 text is cut at white space, and its words are numbered as they appear.
#
# White space is what Python's ``str.split`` takes for it, whatever the script; a line ends at \n
# and nowhere else. No word is decoded here: bytes that are white space never occur inside another
# character of UTF-8, so a text is sound if each of its different words is.


_INSIDE, _SPACE, _PERHAPS, _NEWLINE = 0, 1, 2, 3
"""A byte: of a word, white space, the first of white space above ASCII, or the end of a line."""


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
    """How many bytes of white space above ASCII begin at i; 0: it is something else."""
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
    """Find all words, and how many of them end each line.

    What stands behind the last \\n is a line too. Returns how many words and lines there are.
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

    Returns how many words are done, and how many different ones there are now. If not all are done,
    the next one is new and the table has no room for it.
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
    """Write to ``fresh`` the tokens for which ``new`` has −1, each once; it has −2 afterwards."""
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
    """What is left and right of the ``bar`` of each line; a blank line has two empty sides.

    Returns the first line that has not just one, and how many it has; −1, 1 if there is none such.
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
