"""The part of a document that shows best what it has of a topic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from softcount.show.marks import visible

LONGEST = 260
LOOKED_AT = 20_000
"""How many characters of a document are looked at."""

STARTS = 50
"""How many places a stretch may begin at."""

STRAY = " .,:;>|*-"
WORD = re.compile(r"\w+")
SPACE = re.compile(r"\s+")


def clean(text: object) -> str:
    """A text that any file, page and terminal can hold: what cannot be seen has marks instead.

    >>> clean("a\\x00b\\ud800")
    'a␀b⟨U+D800⟩'
    """
    return visible(str(text))


def on_one_line(text: object) -> str:
    """The same on one line: ends of lines, of any kind, and other stretches of space are blanks.

    >>> on_one_line("a\\n\\x0cb\\u2028c")
    'a b c'
    """
    return visible(SPACE.sub(" ", str(text)))


def snippet(text: str, telling: Mapping[str, float], most: int = LONGEST) -> str:
    """The stretch with most of the telling words, as HTML with these marked.

    ``telling``  words in lower case, and what they are worth

    >>> snippet("Dear all! A goal < 3 minutes before the end", {"goal": 2.0}, most=20)
    'Dear all! A <mark>goal</mark> &lt;…'
    """
    line = on_one_line(text[:LOOKED_AT]).strip()
    hits = [
        (found.start(), found.end(), telling[word])
        for found in WORD.finditer(line)
        if (word := found[0].lower()) in telling
    ]
    start = _best_start(line, hits, most)
    end = _end(line, start, most)
    parts, at = ["…" if start else ""], start
    for first, last, _ in hits:
        if start <= first and last <= end:
            parts += [escape(line[at:first]), f"<mark>{escape(line[first:last])}</mark>"]
            at = last
    cut = end < len(line) or len(text) > LOOKED_AT
    return "".join([*parts, escape(line[at:end].rstrip()), "…" if cut else ""])


def _best_start(flat: str, hits: list[tuple[int, int, float]], most: int) -> int:
    """Where the stretch begins: a little before a telling word, or at the start of the text.

    A word counts once in a stretch: one that repeats a word says less than one of many words.
    """
    best, start = -1.0, 0
    far = [first for first, _, _ in hits if first > most // 4]
    for begin in (0, *(_before(flat, first) for first in far[:: 1 + len(far) // STARTS])):
        inside = {
            flat[a:b].lower(): worth for a, b, worth in hits if begin <= a and b <= begin + most
        }
        value = sum(inside.values())
        if value > 1.2 * best:  # the start of a text is the best place, unless another is better
            best, start = value, begin
    while start and start < len(flat) and flat[start] in STRAY:
        start += 1
    return start


def _before(flat: str, place: int) -> int:
    """The beginning of the sentence that a place is in, if near, or of a word before it."""
    sentence = max(flat.rfind(stop, max(0, place - 60), place) for stop in (". ", "! ", "? "))
    if sentence >= 0:
        return sentence + 2
    space = flat.find(" ", max(0, place - 30), place)
    return space + 1 if space >= 0 else place


def _end(flat: str, start: int, most: int) -> int:
    if len(flat) <= start + most:
        return len(flat)
    space = flat.rfind(" ", start + most // 2, start + most)
    return space if space >= 0 else start + most
