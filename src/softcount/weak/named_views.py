"""Views of raw items by name: what a post says in its subject and in its body, what a name looks
like and what stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from softcount.corpus.looks import endings, marks
from softcount.errors import DataError, shown

BLANK_LINE = re.compile(r"\r?\n[ \t]*\r?\n")
HEADER = re.compile(r"[!-9;-~]+:|From ")
"""How the line of a header begins: a name without spaces and a colon; or the line before a post in
a mailbox.
"""
SUBJECT = re.compile(r"^subject:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
ANSWER = re.compile(r"\s*(?:re(?:\[\d+\]|\^\d+|\*\d+)?\s*:\s*)+", re.IGNORECASE)
MARK = "|||"
NEAR = 2
"""How many words on each side are looked at together with their place."""


def subject(post: str) -> str:
    """The subject of a raw e-mail or post, without any Re: before it; empty if there is none.

    >>> subject("From: a@b.c\\nSubject: Re: RE: old bikes\\n\\nI sold mine.")
    'old bikes'
    """
    found = SUBJECT.search(_cut(post)[0].replace("\r\n", "\n"))
    if found is None:
        return ""
    return ANSWER.sub("", " ".join(found[1].split()), count=1).strip()


def body(post: str) -> str:
    """What comes after the headers of a raw e-mail or post; all of it if there are none.

    >>> body("From: a@b.c\\nSubject: Re: old bikes\\n\\nI sold mine.")
    'I sold mine.'
    """
    return _cut(post)[1]


def spelling(item: Any) -> list[str]:
    """What some words look like, whatever stands around them: the words together and one by one,
    the ending of the last, and marks such as capitals or digits.

    The item is ``(left, words, right)``, each a text or a list of words, or all in one text:
    ``left ||| words ||| right``.

    >>> spelling("flights to ||| New York ||| were late")
    ['=New York', 'New', 'York', '-rk', '-ork', '+A']
    """
    named = _three(item)[1]
    if not named:
        return []
    found = {f"+{mark}": None for word in named for mark in marks(word)}
    last = [f"-{end}" for end in endings(named[-1])[1:]]
    return [f"={' '.join(named)}", *named, *last, *found]


def context(item: Any) -> list[str]:
    """What stands around some words, whatever they look like: the words of the sentence in lower
    case, and those nearest by once more with their place. See `spelling` for the form of an item.

    >>> context("flights to ||| New York ||| were late")
    ['flights', 'to', 'were', 'late', 'to_', 'flights·to_', '_were', '_were·late']
    """
    left, _, right = ([word.lower() for word in words] for words in _three(item))
    before = [f"{'·'.join(left[-n:])}_" for n in range(1, min(NEAR, len(left)) + 1)]
    after = [f"_{'·'.join(right[:n])}" for n in range(1, min(NEAR, len(right)) + 1)]
    return [*left, *right, *before, *after]


NAMED: Mapping[str, Callable[[Any], Any]] = {
    "subject": subject,
    "body": body,
    "spelling": spelling,
    "context": context,
}
"""Views that are known by name."""


def _cut(post: str) -> tuple[str, str]:
    """Headers and body. What stands before the first blank line is headers if all of it is."""
    if not isinstance(post, str):
        raise DataError(f"{shown(post)} is no text", "subject and body are those of a raw post")
    head, *rest = BLANK_LINE.split(post.lstrip("\r\n"), maxsplit=1)
    lines = head.splitlines()
    if lines and HEADER.match(lines[0]) and all(_is_header(line) for line in lines):
        return head, "".join(rest)
    return "", post


def _is_header(line: str) -> bool:
    return line[:1] in " \t" or HEADER.match(line) is not None


def _three(item: Any) -> tuple[list[str], list[str], list[str]]:
    """Left words, words, right words."""
    parts = item.split(MARK) if isinstance(item, str) else item
    if not isinstance(parts, list | tuple) or len(parts) != 3:
        raise DataError(
            f"{shown(item)} is not a word in its sentence",
            f"give left {MARK} words {MARK} right, or (left, words, right)",
        )
    left, named, right = (
        part.split() if isinstance(part, str) else [str(word) for word in part] for part in parts
    )
    return left, named, right
