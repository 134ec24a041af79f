"""The texts we ship have the form that the models and the docs count on."""

from __future__ import annotations

from collections import Counter

from softcount import samples


def test_sixty_short_notes_on_three_themes() -> None:
    assert Counter(samples.note_labels()) == {"sea": 20, "kitchen": 20, "football": 20}
    assert len(samples.notes()) == 60
    assert all(10 <= len(note.split()) <= 25 for note in samples.notes())


def test_order_of_the_notes_does_not_give_the_theme_away() -> None:
    labels = samples.note_labels()
    assert all(len(set(labels[i : i + 3])) == 3 for i in range(0, 60, 3))


def test_a_hundred_different_pairs_with_few_words() -> None:
    pairs = samples.pairs()
    assert len({(tuple(e), tuple(g)) for e, g in pairs}) == 100
    for side in (0, 1):
        assert 40 <= len({word for pair in pairs for word in pair[side]}) <= 80


def test_a_hundred_different_short_sentences() -> None:
    sentences = samples.sentences()
    assert len({tuple(words) for words in sentences}) == 100
    assert all(3 <= len(words) <= 8 for words in sentences)
    assert all(word == word.lower() for words in sentences for word in words)
