"""Occurrences of a word and their contexts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from softcount.core.errors import DataError, brief
from softcount.text.documents import find_texts
from softcount.text.tokenise import words


class Occurrence(NamedTuple):
    """The position of a word: the sentence and the token in it, both counted from 0."""

    sentence: int
    position: int


def split_sentences(sentences: Any) -> list[list[str]]:
    """Split sentences into words, folded to lower case; token lists keep their tokens.

    >>> split_sentences(["The bank, closed."]), split_sentences([["The", "bank", ",", "closed"]])
    ([['the', 'bank', 'closed']], [['the', 'bank', ',', 'closed']])
    """
    texts = find_texts(sentences)
    if texts is None:
        raise DataError(
            f"the data contain no sentences: {brief(sentences)}",
            "give a list of texts, or of lists of words",
        )
    return [
        words(text) if isinstance(text, str) else [token.casefold() for token in text]
        for text in texts
    ]


def list_forms(target: str | Iterable[str]) -> frozenset[str]:
    """Return the forms of the target word, in lower case.

    >>> sorted(list_forms({"Line", "lines"}))
    ['line', 'lines']
    """
    targets = [target] if isinstance(target, str) else list(target)
    forms = frozenset(form.strip().casefold() for form in targets if isinstance(form, str))
    if len(targets) == 0 or "" in forms or not all(isinstance(form, str) for form in targets):
        raise DataError(
            f"the target is {brief(target)}", "give a word, or several forms: {'line', 'lines'}"
        )
    return forms


def find_occurrences(
    sentences: Sequence[Sequence[str]], forms: Collection[str]
) -> list[Occurrence]:
    """Find every occurrence of any of the forms, in order."""
    return [
        Occurrence(number, position)
        for number, tokens in enumerate(sentences)
        for position, token in enumerate(tokens)
        if token in forms
    ]


def check_occurs(
    occurrences: Sequence[Occurrence], sentences: Sequence[Sequence[str]], forms: Collection[str]
) -> None:
    """Raise if there are no occurrences, and suggest similar words that do occur."""
    if occurrences:
        return
    present = {token for tokens in sentences for token in tokens}
    near = sorted({w for form in forms for w in get_close_matches(form, present, n=3, cutoff=0.7)})
    several = [form for form in forms if len(words(form)) > 1]
    if several:
        hint = f"{several[0]!r} is several words; give one, or lists of words where it is one token"
    elif near:
        hint = f"did you mean {', '.join(near)}? You can give several forms together"
    else:
        hint = "give a word that occurs in the sentences"
    raise DataError(
        f"{' or '.join(sorted(forms))} never occurs in {len(sentences)} sentences", hint
    )


def check_positions(
    sentences: Sequence[Sequence[str]], positions: Sequence[Any]
) -> list[Occurrence]:
    """Return the occurrences that the user lists: for each sentence a position or several."""
    if len(positions) != len(sentences):
        raise DataError(
            f"{len(positions)} positions for {len(sentences)} sentences",
            "give one for each sentence, or a list of them, which may be empty",
        )
    occurrences = []
    for number, (tokens, listed) in enumerate(zip(sentences, positions, strict=True)):
        for position in listed if isinstance(listed, Iterable) else [listed]:
            if position != int(position) or not 0 <= position < len(tokens):
                raise DataError(
                    f"sentence {number} has {len(tokens)} words, none at {position}",
                    "positions are whole numbers, counted from 0",
                )
            occurrences.append(Occurrence(number, int(position)))
    return occurrences


def context_features(
    tokens: Sequence[str], position: int, window: int | None, near: int, dropped: Collection[str]
) -> list[str]:
    """Return the context features of a token: words in the window, and nearby words by position.

    ``the_`` is the word just before, ``_of`` the one just after; in ``on·_`` one word is between.
    Punctuation is skipped; the token itself is left out, wherever it occurs in the window.

    ``window``   the number of words on either side; None: the whole sentence
    ``near``     the number of words on either side that become positional features
    ``dropped``  words that are left out of the window, but not of the positional features

    >>> context_features("he stood in line , for bread".split(), 3, 2, 1, {"in"})
    ['stood', 'for', 'bread', 'in_', '_for']
    """
    before = [token for token in tokens[:position] if is_word(token)][::-1]
    after = [token for token in tokens[position + 1 :] if is_word(token)]
    around = before[:window][::-1] + after[:window]
    positional = [f"{w}{'·' * i}_" for i, w in enumerate(before[:near])]
    positional += [f"_{'·' * i}{w}" for i, w in enumerate(after[:near])]
    target = tokens[position]
    return [word for word in around if word != target and word not in dropped] + positional


def format_passage(tokens: Sequence[str], position: int, window: int | None) -> str:
    """Format a token, in brackets, with its neighbours.

    >>> format_passage("he stood in line for bread".split(), 3, 2)
    '… stood in [line] for bread'
    """
    low = 0 if window is None else max(0, position - window)
    high = len(tokens) if window is None else position + 1 + window
    marked = [*tokens[low:position], f"[{tokens[position]}]", *tokens[position + 1 : high]]
    return "… " * (low > 0) + " ".join(marked) + " …" * (high < len(tokens))


def is_word(token: str) -> bool:
    """Return whether a token has a letter or a digit."""
    return any(character.isalnum() for character in token)
