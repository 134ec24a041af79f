"""Text made fit to be shown: nothing in it acts unseen, is too long, or breaks a line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

_SEEN_AS_NOTHING = (
    # controls: no page can hold some of them, and others are orders to terminals. Tabs and line
    # ends stay: they do in a page what they are for
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    # they set the direction of all that follows, up to the end of the line or further: what is
    # read is not what is there
    "\u202a-\u202e\u2066-\u2069"
    # marks of direction, which have no width and move what is near
    "\u061c\u200e\u200f"
    # of no width at all: two words that look the same are not
    "\xad\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\ufeff"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
    # letters that have a width but no shape
    "\u3164\uffa0"
    # ends of lines for some programs and not for others
    "\u2028\u2029"
    # halves of pairs, which UTF-8 cannot say, and what will never be a character
    "\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17))
)

_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
"""Flags of parts of countries: Scotland's is a black flag and five letters that are not shown."""

_APART = "\u2068[^\u202a-\u202e\u2066-\u2069\n<>]*\u2069"
"""What we put around words that are read from the right: nothing gets out of a pair that is whole,
on one line and in one element of a page."""

_ODD = re.compile(f"{_FLAG}|{_APART}|[{_SEEN_AS_NOTHING}]")

_JOINING = re.compile(
    # letters change their shapes, or join, by whether there is a (non-)joiner between them:
    # Persian and other languages in Arabic letters, Syriac, N'Ko, Mongolian, Hindi and its kin
    "[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1700-\u18af\u1900-\u1cff\ua800-\uabff"
    "\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
    # a family is some people with joiners between them
    "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
)
_UNSPACED = re.compile("[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff]")
"""Thai, Lao, Tibetan, Burmese, Khmer: words have no spaces, and where a line may end between them
is said by a space of no width."""

_MONGOLIAN = re.compile("[\u1800-\u18af]")
_SCRIPTS = {"\u200c": _JOINING, "\u200d": _JOINING, "\u200b": _UNSPACED, "\u180e": _MONGOLIAN}
"""Characters that mean something beside letters of some scripts."""

_NEAR = 20
"""A mark of direction belongs to letters that are no further away: in Hebrew text it stands where
letters are not, after "C++" for instance."""

_BORDER = re.compile("[\n<>]")
"""What is beyond the end of a line, or of an element of a page, is not near."""


def clean(text: object) -> str:
    """Replace characters that cannot be seen, in a text or a page, by marks that can.

    Right-to-left text stays as it is, and so do joiners where scripts or emoji need them.

    >>> clean("a\\x00b \\u202egnp.exe \\ud800")
    'a␀b ⟨U+202E⟩gnp.exe ⟨U+D800⟩'
    >>> clean("\\u05e9\\u05dc\\u05d5\\u05dd") == "\\u05e9\\u05dc\\u05d5\\u05dd"
    True
    """
    return _ODD.sub(_mark, str(text))


def _mark(found: re.Match[str]) -> str:
    character, text, at = found[0], found.string, found.start()
    if len(character) > 1:
        return character if character[0] != "\u2068" else f"\u2068{clean(character[1:-1])}\u2069"
    # does the text around have a use for it?
    before, after = text[max(at - 1, 0) : at], text[at + 1 : at + 2]
    is_needed = False
    if script := _SCRIPTS.get(character):
        is_needed = bool(script.match(before) or script.match(after))
    elif character == "\xad":  # where a word may be cut, which a page may do by an element
        is_needed = (before.isalpha() or before == ">") and (after.isalpha() or after == "<")
    elif character in "\u061c\u200e\u200f":
        left = _BORDER.split(text[max(at - _NEAR, 0) : at])[-1]
        right = _BORDER.split(text[at + 1 : at + 1 + _NEAR])[0]
        is_needed = _is_read_leftwards("".join(filter(str.isalpha, left + right)))
    if is_needed:
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode has pictures of these
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def _is_read_leftwards(text: str) -> bool:
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def flatten(text: object) -> str:
    """Clean a text and put it on one line: line ends and other space become single blanks.

    >>> flatten("a\\n\\x0cb\\u2028c")
    'a b c'
    """
    return clean(_SPACE.sub(" ", str(text)))


def shorten(text: str, most: int = 260) -> str:
    """Put a text on one line, without its end if it is long; cut between words if there are any.

    >>> shorten("one  two\\tthree four", most=10)
    'one two…'
    """
    flat = " ".join(text[: 4 * most].split())
    if len(flat) <= most and len(text) <= 4 * most:
        return flat
    cut = flat[: most - 1]
    return (cut.rpartition(" ")[0] or cut) + "…"


def shorten_word(word: str, most: int = 24) -> str:
    """Put a word on one line, without its end if it is long.

    >>> shorten_word("extraordinary", most=6)
    'extra…'
    """
    flat = flatten(word)
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def isolate(text: str) -> str:
    """Isolate a text that is read from the right, so that it turns nothing else around."""
    return f"\u2068{text}\u2069" if _is_read_leftwards(text) else text


def plural(n: int, what: str) -> str:
    """Format a number and what it counts.

    >>> plural(1, "line"), plural(1200, "class")
    ('1 line', '1,200 classes')
    """
    return f"{n:,} {what}{('es' if what.endswith('s') else 's') * (n != 1)}"


# Snippets: the part of a document that shows best what it has of a topic.

LONGEST_SNIPPET = 260
_READ = 20_000
"""Number of characters of a document that are read."""
_STARTS = 50
"""Number of places that a snippet may begin at."""
_STRAY = " .,:;>|*-"
_WORD = re.compile(r"\w+")
_SPACE = re.compile(r"\s+")


class SnippetPart(NamedTuple):
    """A stretch of a snippet; ``telling``: it is a word that counts, to be marked."""

    text: str
    telling: bool = False


def find_snippet(
    text: str, telling: Mapping[str, float], most: int = LONGEST_SNIPPET
) -> list[SnippetPart]:
    """Find the stretch with most of the telling words, cut into parts where these begin and end.

    ``telling``  words in lower case, and what they are worth

    >>> "".join(part.text for part in find_snippet("Dear all! A goal < 3 …", {"goal": 2.0}, 20))
    'Dear all! A goal <…'
    >>> find_snippet("A goal < 3", {"goal": 2.0})
    [SnippetPart(text='A ', telling=False), SnippetPart(text='goal', telling=True),
     SnippetPart(text=' < 3', telling=False)]
    """
    line = flatten(text[:_READ]).strip()
    hits = [
        (found.start(), found.end(), telling[word])
        for found in _WORD.finditer(line)
        if (word := found[0].lower()) in telling
    ]
    # where the stretch begins: a little before a telling word, or at the start of the text. A word
    # counts once in a stretch: one that repeats a word says less than one of many words
    best, start = -1.0, 0
    far = [first for first, _, _ in hits if first > most // 4]
    for begin in (0, *(_step_back(line, first) for first in far[:: 1 + len(far) // _STARTS])):
        inside = {
            line[a:b].lower(): worth for a, b, worth in hits if begin <= a and b <= begin + most
        }
        value = sum(inside.values())
        if value > 1.2 * best:  # the start of a text is the best place, unless another is better
            best, start = value, begin
    while start and start < len(line) and line[start] in _STRAY:
        start += 1
    end = len(line)
    if end > start + most:
        space = line.rfind(" ", start + most // 2, start + most)
        end = space if space >= 0 else start + most
    parts, at = [SnippetPart("…" if start else "")], start
    for first, last, _ in hits:
        if start <= first and last <= end:
            parts += [SnippetPart(line[at:first]), SnippetPart(line[first:last], True)]
            at = last
    cut = end < len(line) or len(text) > _READ
    parts.append(SnippetPart(line[at:end].rstrip() + "…" * cut))
    return [part for part in parts if part.text]


def _step_back(line: str, place: int) -> int:
    """Find the beginning of the sentence that a place is in, if near, or of a word before it."""
    sentence = max(line.rfind(stop, max(0, place - 60), place) for stop in (". ", "! ", "? "))
    if sentence >= 0:
        return sentence + 2
    space = line.find(" ", max(0, place - 30), place)
    return space + 1 if space >= 0 else place
