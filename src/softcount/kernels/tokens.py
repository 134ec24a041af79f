"""Cutting UTF-8 text at white space and numbering its words in the order in which they appear.

White space is what Python's ``str.split`` takes for it, whatever the script; a line ends at \\n and
nowhere else. No word is decoded here: bytes that are white space never occur inside another
character of UTF-8, so a text is sound if each of its different words is.
"""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.kernels.random import mix
from softcount.types import Array

INSIDE, SPACE, PERHAPS, NEWLINE = 0, 1, 2, 3
"""A byte: of a word, white space, the first of white space above ASCII, or the end of a line."""


def _kinds() -> Array:
    """The kind of each byte."""
    kinds = np.full(256, INSIDE, np.uint8)
    spaces = [chr(c) for c in range(0x3001) if chr(c).isspace()]  # U+3000 is the last
    for first, *more in (space.encode() for space in spaces):
        kinds[first] = PERHAPS if more else SPACE
    kinds[ord("\n")] = NEWLINE
    return kinds


KINDS = _kinds()
NEWLINE_BYTE = 10
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
LOW, HALF, ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)


@inline
def _wide_space(data: Array, i: int) -> int:
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
def spans(data: Array, firsts: Array, lasts: Array, codes: Array, ends: Array) -> tuple[int, int]:
    """Where each word begins and ends, a hash of it (32 bits), and how many words end each line.

    What stands behind the last \\n is a line too. Returns how many words and lines there are.
    """
    n, n_lines, i = 0, 0, 0
    while i < len(data):
        kind = KINDS[data[i]]
        if kind == NEWLINE:
            ends[n_lines] = n
            n_lines += 1
        wide = _wide_space(data, i) if kind == PERHAPS else 0
        if kind in (NEWLINE, SPACE) or wide:
            i += max(wide, 1)
            continue
        first, code = i, np.uint64(0)
        while i < len(data):
            kind = KINDS[data[i]]
            if kind and (kind != PERHAPS or _wide_space(data, i)):
                break
            code = (code ^ np.uint64(data[i])) * MULTIPLIER
            i += 1
        firsts[n], lasts[n] = first, i
        codes[n] = mix(code + np.uint64(i - first)) & LOW
        n += 1
    if len(data) and data[-1] != NEWLINE_BYTE:
        ends[n_lines] = n
        n_lines += 1
    return n, n_lines


@njit
def number(
    data: Array,
    firsts: Array,
    lasts: Array,
    codes: Array,
    begin: int,
    tokens: Array,
    slots: Array,
    text: Array,
    starts: Array,
    n_words: int,
) -> tuple[int, int]:
    """Write the numbers of these words, from ``begin`` on; a new word gets the next number.

    ``slots``   the words that have a number, by their hash (open addressing; Knuth 1973, § 6.4):
                the hash in the high half, number + 1 in the low half; 0: free. A power of two.
    ``text``    these words one after the other, each with \\n behind it
    ``starts``  where each begins in it, and where the next one will

    Returns how many words are done, and how many different ones there are now. If not all are done,
    the next one is new and one of the three arrays has no room for it.
    """
    mask = np.uint64(len(slots) - 1)
    for t in range(begin, len(tokens)):
        first, size, code = firsts[t], lasts[t] - firsts[t], np.uint64(codes[t])
        place, found = code & mask, -1
        while slots[place]:
            if slots[place] >> HALF == code:
                other = int(slots[place] & LOW) - 1
                start, k = starts[other], 0
                if starts[other + 1] - start == size + 1:
                    while k < size and data[first + k] == text[start + k]:
                        k += 1
                    if k == size:
                        found = other
                        break
            place = (place + ONE) & mask
        if found < 0:
            start = starts[n_words]
            end = start + size + 1
            if 2 * n_words + 2 > len(slots) or end > len(text) or n_words + 2 > len(starts):
                return t, n_words
            found, n_words = n_words, n_words + 1
            slots[place] = (code << HALF) | np.uint64(n_words)
            for k in range(size):
                text[start + k] = data[first + k]
            text[end - 1], starts[n_words] = NEWLINE_BYTE, end
        tokens[t] = found
    return len(tokens), n_words


@njit
def rehash(slots: Array, larger: Array) -> None:
    """Put the words of ``slots`` into ``larger``, which is empty."""
    mask = np.uint64(len(larger) - 1)
    for slot in slots:
        if slot:
            place = (slot >> HALF) & mask
            while larger[place]:
                place = (place + ONE) & mask
            larger[place] = slot


@njit
def first_seen(tokens: Array, new: Array, fresh: Array) -> int:
    """Write to ``fresh`` the tokens for which ``new`` has −1, each once; it has −2 afterwards."""
    n = 0
    for token in tokens:
        if new[token] == -1:
            new[token] = -2
            fresh[n] = token
            n += 1
    return n


@njit
def halves(
    tokens: Array,
    ends: Array,
    bar: int,
    left: Array,
    left_ends: Array,
    right: Array,
    right_ends: Array,
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
