"""The themes of the notes, by unsupervised Naive Bayes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import getsource
from itertools import permutations
from typing import Any

import softcount as sc
from softcount import samples
from softcount.show.finding import Finding, bars, on_one_scale

THEMES = "ABC"

theme, word = sc.table("theme"), sc.table("word")


@sc.story
def note(words: Sequence[str]) -> Iterator[Any]:
    """A note has one theme, and every word comes from it."""
    for z in THEMES:
        yield theme[z], *(word[z, w] for w in words)


def content_words(notes: Sequence[str]) -> list[list[str]]:
    """The words of each note that are neither everywhere nor in one note only."""
    split = [re.findall(r"[a-z]+", text.lower()) for text in notes]
    spread = Counter(w for words in split for w in set(words))
    return [[w for w in words if 2 <= spread[w] <= len(notes) / 6] for words in split]


def agreement(found: Sequence[Any], labels: Sequence[str]) -> int:
    """How many labels agree under the best naming of the themes."""
    names = sorted(set(labels))
    pairs = Counter(zip(found, map(names.index, labels), strict=True))
    return max(
        sum(pairs[z, name] for name, z in enumerate(naming)) for naming in permutations(THEMES)
    )


def find() -> Finding:
    items = content_words(samples.notes())
    model = sc.StoryModel(note, learner=sc.EM(n_init=20), smoothing=0.5).fit(items)
    found = [model.best(item).events[0].key[0] for item in items]
    agree = agreement(found, samples.note_labels())
    return Finding(
        "Three themes in sixty notes",
        "Each short note is about one of three things that nobody named. A story of one theme a "
        f"note, learned without labels, agrees with the labels we kept aside for {agree} of "
        f"{len(items)} notes, once the themes are given the names that fit best. (Words of one "
        "note only, and words of more than a sixth of the notes, were left out.)",
        on_one_scale(
            [bars(f"words of theme {z}", row) for z, row in model.params_["word"].items()]
        ),
        [],
        model.fit_,
        getsource(note),
    )
