"""Words counted by compiled loops, as `words` finds them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from softcount.text import counter
from softcount.text.documents import default_vectorizer, learn_words
from softcount.text.tokenise import words

ALPHABET = "abcABC12_...''--  \n\t,!é’αΣ\u0301\u00ad"


def some_texts(alphabet: str, n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(alphabet, k=rng.randrange(30))) for _ in range(n)]


@pytest.mark.parametrize("alphabet", [ALPHABET, "aB.", "aB1_.'- ", "".join(map(chr, range(128)))])
@pytest.mark.parametrize("piece", [1 << 20, 50])
def test_counts_are_those_of_the_words(
    alphabet: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "PIECE", piece)
    texts = some_texts(alphabet, 3000, len(alphabet))
    names, counts = counter.count_texts(texts)
    assert names == list(dict.fromkeys(word for text in texts for word in words(text)))
    for text, row in zip(texts, counts, strict=True):
        found = {names[w]: n for w, n in zip(row.indices.tolist(), row.data.tolist(), strict=True)}
        assert found == Counter(words(text))


def test_words_of_one_letter_in_texts_of_one_word() -> None:
    names, counts = counter.count_texts(["a"] * 1000)
    assert names == ["a"]
    assert counts.toarray().tolist() == [[1]] * 1000


@pytest.mark.parametrize("odd", ["", "lone \ud800 surrogate"])
def test_as_the_vectorizer_does(odd: str) -> None:
    texts = [*some_texts(ALPHABET, 500, 1), "the dog's bone: it’s in the U.S.", "", odd]
    ours = default_vectorizer(texts)
    counts: Any = learn_words(ours, texts)
    theirs = CountVectorizer(analyzer=words)
    expected = theirs.fit_transform(texts)
    expected.sort_indices()
    assert ours.vocabulary_ == theirs.vocabulary_
    assert counts.dtype == expected.dtype
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(counts, part), getattr(expected, part))
    assert (ours.transform(texts) != expected).nnz == 0
