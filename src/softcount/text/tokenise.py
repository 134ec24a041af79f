"""Cutting text into words, and what a word looks like."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache


@cache
def _pattern() -> re.Pattern[str]:
    r"""Letters, digits and the marks that sit on them, with ' ’ - between them; or U.S. and alike.

    Python's ``\w`` leaves out combining marks, and so would cut words of Hindi, Thai or Hebrew to
    pieces.
    """
    marks = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == "M"]
    inner = rf"[\w{_ranges(marks)}]"
    return re.compile(rf"(?:\b[^\W\d_]\.){{2,}}|{inner}+(?:['’\-]{inner}+)*")


def _ranges(characters: list[str]) -> str:
    """Sorted characters as the ranges of a character class."""
    runs: list[list[int]] = []
    for code in map(ord, characters):
        if runs and code == runs[-1][1] + 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(rf"\U{low:08x}-\U{high:08x}" for low, high in runs)


def words(text: str) -> list[str]:
    """The words of a text, folded to lower case; punctuation is dropped.

    >>> words("The dog's bone: rock-hard, it’s said.")
    ['the', "dog's", 'bone', 'rock-hard', 'it’s', 'said']
    >>> words("In the U.S. and the U.K., e.g. at 3 p.m., a B.A.")
    ['in', 'the', 'u.s.', 'and', 'the', 'u.k.', 'e.g.', 'at', '3', 'p.m.', 'a', 'b.a.']
    """
    return _pattern().findall(text.casefold())


def spaces(text: str) -> list[str]:
    """What stands between spaces, as it is: for text that is cut into words already.

    >>> spaces("Apple released iPod .")
    ['Apple', 'released', 'iPod', '.']
    """
    return text.split()


# What a word looks like: its endings and its shape say something of what it is.


LONGEST_ENDING = 3
"""The longest ending that is looked at."""


def endings(word: str) -> list[str]:
    """The endings of a word in lower case, the shortest first.

    >>> endings("Singing"), endings("a")
    (['g', 'ng', 'ing'], ['a'])
    """
    lower = word.lower()
    return [lower[-n:] for n in range(1, min(LONGEST_ENDING, len(lower)) + 1)]


def marks(word: str) -> list[str]:
    """What else strikes the eye: a capital at the start (A), capitals only (AA), a digit (0), a
    hyphen within (-), neither letters nor digits (.).

    >>> marks("Re-elected2"), marks("NATO"), marks("--"), marks("dog")
    (['A', '0', '-'], ['A', 'AA'], ['.'], [])
    """
    seen = {
        "A": word[:1].isupper(),
        "AA": len(word) > 1 and word.isupper(),
        "0": any(letter.isdigit() for letter in word),
        "-": "-" in word[1:-1],
        ".": not any(letter.isalnum() for letter in word),
    }
    return [mark for mark, is_there in seen.items() if is_there]
