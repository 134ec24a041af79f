"""What a word looks like: its endings and its shape say something of what it is."""

from __future__ import annotations

LONGEST = 3
"""The longest ending that is looked at."""


def endings(word: str) -> list[str]:
    """The endings of a word in lower case, the shortest first.

    >>> endings("Singing"), endings("a")
    (['g', 'ng', 'ing'], ['a'])
    """
    lower = word.lower()
    return [lower[-n:] for n in range(1, min(LONGEST, len(lower)) + 1)]


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
