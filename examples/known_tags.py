"""A tagger with partial supervision: alternatives that contradict known tags are not yielded.

Items are lists of (word, tag or None).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import softcount as sc
from softcount import samples

TAGS = ("det", "adj", "noun", "verb", "prep")
KNOWN = {"the": "det", "old": "adj", "dog": "noun", "sleeps": "verb", "in": "prep"}

after, emit = sc.table("after"), sc.table("emit")


@sc.story
def tail(pairs: Sequence[tuple[str, str | None]], i: int, tag: str) -> Iterator[Any]:
    """The rest of the sentence after a tag."""
    if i == len(pairs):
        yield after[tag, "end"]
        return
    word, known = pairs[i]
    for nxt in TAGS:
        if known is None or known == nxt:
            yield after[tag, nxt], emit[nxt, word], tail(pairs, i + 1, nxt)


@sc.story
def sentence(pairs: Sequence[tuple[str, str | None]]) -> Iterator[Any]:
    """A sentence from its start."""
    yield tail(pairs, 0, "start")


if __name__ == "__main__":
    items = [[(word, KNOWN.get(word)) for word in words] for words in samples.sentences()]
    model = sc.StoryModel(sentence, init="uniform", smoothing=0.01).fit(items)
    for tag in TAGS:
        words = model.params_["emit"][tag]
        print(f"{tag:5}", *sorted(words, key=words.get, reverse=True)[:8])
