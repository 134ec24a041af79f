"""Tokenisation, and surface features of words."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache


@cache
def _pattern() -> re.Pattern[str]:
    r"""Return the pattern of a word.

    A word is a run of letters, digits and combining marks, with ' ’ - inside; or an abbreviation
    such as U.S. Python's ``\w`` excludes combining marks, and so would split words of Hindi, Thai
    or Hebrew.
    """
    marks = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == "M"]
    inner = rf"[\w{_ranges(marks)}]"
    return re.compile(rf"(?:\b[^\W\d_]\.){{2,}}|{inner}+(?:['’\-]{inner}+)*")


def _ranges(characters: list[str]) -> str:
    """Format sorted characters as the ranges of a character class."""
    runs: list[list[int]] = []
    for code in map(ord, characters):
        if runs and code == runs[-1][1] + 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(rf"\U{low:08x}-\U{high:08x}" for low, high in runs)


def words(text: str) -> list[str]:
    """Return the words of a text, folded to lower case; punctuation is dropped.

    >>> words("The dog's bone: rock-hard, it’s said.")
    ['the', "dog's", 'bone', 'rock-hard', 'it’s', 'said']
    >>> words("In the U.S. and the U.K., e.g. at 3 p.m., a B.A.")
    ['in', 'the', 'u.s.', 'and', 'the', 'u.k.', 'e.g.', 'at', '3', 'p.m.', 'a', 'b.a.']
    """
    return _pattern().findall(text.casefold())


def spaces(text: str) -> list[str]:
    """Split a text at white space and keep the tokens unchanged: for tokenised text.

    >>> spaces("Apple released iPod .")
    ['Apple', 'released', 'iPod', '.']
    """
    return text.split()


# Surface features: the suffix and the shape of a word are evidence of its class.


LONGEST_ENDING = 3
"""The length of the longest suffix used."""


def endings(word: str) -> list[str]:
    """Return the suffixes of a word in lower case, the shortest first.

    >>> endings("Singing"), endings("a")
    (['g', 'ng', 'ing'], ['a'])
    """
    lower = word.lower()
    return [lower[-n:] for n in range(1, min(LONGEST_ENDING, len(lower)) + 1)]


def marks(word: str) -> list[str]:
    """Return the shape features of a word.

    They are: initial capital (A), all capitals (AA), a digit (0), an inner hyphen (-), neither
    letters nor digits (.).

    >>> marks("Re-elected2"), marks("NATO"), marks("--"), marks("dog")
    (['A', '0', '-'], ['A', 'AA'], ['.'], [])
    """
    features = {
        "A": word[:1].isupper(),
        "AA": len(word) > 1 and word.isupper(),
        "0": any(letter.isdigit() for letter in word),
        "-": "-" in word[1:-1],
        ".": not any(letter.isalnum() for letter in word),
    }
    return [mark for mark, is_present in features.items() if is_present]
