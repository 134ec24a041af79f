"""Cutting text into words."""

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
