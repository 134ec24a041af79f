"""Where a word occurs, and what stands around it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from softcount.core.errors import DataError, brief
from softcount.text.documents import find_texts
from softcount.text.tokenise import words


class Occurrence(NamedTuple):
    """A word's place: the number of the sentence, and of the token in it, both from 0."""

    sentence: int
    position: int


def split_sentences(sentences: Any) -> list[list[str]]:
    """Sentences as lists of words, folded to lower case; token lists keep their tokens.

    >>> split_sentences(["The bank, closed."]), split_sentences([["The", "bank", ",", "closed"]])
    ([['the', 'bank', 'closed']], [['the', 'bank', ',', 'closed']])
    """
    found = find_texts(sentences)
    if found is None:
        raise DataError(
            f"the data are no sentences: {brief(sentences)}",
            "give a list of texts, or of lists of words",
        )
    return [
        words(one) if isinstance(one, str) else [token.casefold() for token in one] for one in found
    ]


def list_forms(target: str | Iterable[str]) -> frozenset[str]:
    """The forms of a word that are looked for, in lower case.

    >>> sorted(list_forms({"Line", "lines"}))
    ['line', 'lines']
    """
    given = [target] if isinstance(target, str) else list(target)
    forms = frozenset(form.strip().casefold() for form in given if isinstance(form, str))
    if len(given) == 0 or "" in forms or not all(isinstance(form, str) for form in given):
        raise DataError(
            f"the target is {brief(target)}", "give a word, or several forms: {'line', 'lines'}"
        )
    return forms


def find_occurrences(
    sentences: Sequence[Sequence[str]], forms: Collection[str]
) -> list[Occurrence]:
    """Every occurrence of any of the forms, in order."""
    return [
        Occurrence(number, position)
        for number, tokens in enumerate(sentences)
        for position, token in enumerate(tokens)
        if token in forms
    ]


def demand_found(
    found: Sequence[Occurrence], sentences: Sequence[Sequence[str]], forms: Collection[str]
) -> None:
    """Raise if a word never occurs, and suggest words that do."""
    if found:
        return
    present = {token for tokens in sentences for token in tokens}
    near = sorted({w for form in forms for w in get_close_matches(form, present, n=3, cutoff=0.7)})
    several = [form for form in forms if len(words(form)) > 1]
    if several:
        hint = f"{several[0]!r} is several words; give one, or lists of words that hold it as one"
    elif near:
        hint = f"did you mean {', '.join(near)}? Several forms may be given together"
    else:
        hint = "look for a word that the sentences have"
    raise DataError(
        f"{' or '.join(sorted(forms))} never occurs in {len(sentences)} sentences", hint
    )


def check_positions(
    sentences: Sequence[Sequence[str]], positions: Sequence[Any]
) -> list[Occurrence]:
    """Occurrences where the user says they are: for each sentence a number or several."""
    if len(positions) != len(sentences):
        raise DataError(
            f"{len(positions)} positions for {len(sentences)} sentences",
            "give one for each sentence, or a list of them, which may be empty",
        )
    found = []
    for number, (tokens, here) in enumerate(zip(sentences, positions, strict=True)):
        for position in here if isinstance(here, Iterable) else [here]:
            if position != int(position) or not 0 <= position < len(tokens):
                raise DataError(
                    f"sentence {number} has {len(tokens)} words, none at {position}",
                    "positions are whole numbers and begin with 0",
                )
            found.append(Occurrence(number, int(position)))
    return found


def context_features(
    tokens: Sequence[str], position: int, window: int | None, near: int, dropped: Collection[str]
) -> list[str]:
    """What is seen around a token: words within the window, and the nearest ones with their place.

    ``the_`` is the word just before, ``_of`` the one just after, ``on·_`` has a word between.
    Punctuation is passed over; the token itself is left out, wherever it occurs in the window.

    >>> context_features("he stood in line , for bread".split(), 3, 2, 1, {"in"})
    ['stood', 'for', 'bread', 'in_', '_for']
    """
    before = [token for token in tokens[:position] if is_word(token)][::-1]
    after = [token for token in tokens[position + 1 :] if is_word(token)]
    around = before[:window][::-1] + after[:window]
    placed = [f"{w}{'·' * i}_" for i, w in enumerate(before[:near])]
    placed += [f"_{'·' * i}{w}" for i, w in enumerate(after[:near])]
    itself = tokens[position]
    return [word for word in around if word != itself and word not in dropped] + placed


def format_passage(tokens: Sequence[str], position: int, window: int | None) -> str:
    """A token among its neighbours, marked.

    >>> format_passage("he stood in line for bread".split(), 3, 2)
    '… stood in [line] for bread'
    """
    low = 0 if window is None else max(0, position - window)
    high = len(tokens) if window is None else position + 1 + window
    marked = [*tokens[low:position], f"[{tokens[position]}]", *tokens[position + 1 : high]]
    return "… " * (low > 0) + " ".join(marked) + " …" * (high < len(tokens))


def is_word(token: str) -> bool:
    """Whether a token is more than punctuation."""
    return any(character.isalnum() for character in token)
