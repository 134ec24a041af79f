"""Cutting text into words, in many scripts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.text.tokenise import spaces, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n\t", []),
        ("?! … — « »", []),
        ("The dog's bone: rock-hard.", ["the", "dog's", "bone", "rock-hard"]),
        ("it’s 'quoted' -dash- a--b", ["it’s", "quoted", "dash", "a", "b"]),
        ("e-mail@example.org 3.14", ["e-mail", "example", "org", "3", "14"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("ἈΡΧΉ", ["ἀρχή"]),
        ("हिन्दी में", ["हिन्दी", "में"]),  # vowel signs are marks, and no borders
        ("שָׁלוֹם", ["שָׁלוֹם"]),
        ("cafe\u0301 café", ["cafe\u0301", "café"]),
        ("日本語", ["日本語"]),
        ("a\x00b \u200bc", ["a", "b", "c"]),
        ("😀", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(max_size=60))
def test_words_are_what_is_no_punctuation(text: str) -> None:
    """Letters, marks and digits, in order; nothing else but what may stand between them."""
    found = words(text)
    kept = [c for c in text.casefold() if unicodedata.category(c)[0] in "LM" or c.isalnum()]
    inside = [c for c in "".join(found) if c not in "'’-_"]
    assert [c for c in inside if unicodedata.category(c)[0] in "LM" or c.isalnum()] == kept
    assert len(inside) == len(kept)
    assert all(word and word[0] not in "'’-" and word[-1] not in "'’-" for word in found)


@given(st.text(max_size=60))
def test_words_of_words_are_themselves(text: str) -> None:
    once = words(text)
    assert words(" ".join(once)) == once


@given(st.text(max_size=60))
def test_spaces_keep_all_but_spaces(text: str) -> None:
    assert "".join(spaces(text)) == "".join(text.split())
    assert all(piece and not any(c.isspace() for c in piece) for piece in spaces(text))
