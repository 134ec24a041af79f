"""Small texts that ship with the package, written for it: enough to learn from in a second.

>>> from softcount import samples
>>> len(samples.notes()), len(samples.pairs()), len(samples.sentences())
(60, 100, 100)
"""

from __future__ import annotations

from importlib import resources


def _lines(name: str) -> list[str]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return text.splitlines()


def notes() -> list[str]:
    """Sixty short notes on three themes: the sea, the kitchen, football.

    >>> notes()[0]
    'The wind turned west before dawn and the boat left the harbour under full sail.'
    """
    return _lines("notes.txt")


def note_labels() -> list[str]:
    """The theme of every note, to compare with what was learnt without it.

    >>> sorted(set(note_labels()))
    ['football', 'kitchen', 'sea']
    """
    return _lines("notes.labels.txt")


def pairs() -> list[tuple[list[str], list[str]]]:
    """A hundred sentences in English and German, as words.

    >>> pairs()[0]
    (['the', 'house', 'is', 'big'], ['das', 'haus', 'ist', 'groß'])
    """
    sides = (line.split(" ||| ") for line in _lines("pairs.txt"))
    return [(english.split(), german.split()) for english, german in sides]


def sentences() -> list[list[str]]:
    """A hundred short English sentences with few words and a plain grammar.

    >>> sentences()[0]
    ['the', 'old', 'dog', 'sleeps', 'on', 'the', 'rug']
    """
    return [line.split() for line in _lines("sentences.txt")]
