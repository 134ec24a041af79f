"""Kinds of words in plain sentences, by a hidden Markov model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import getsource
from typing import Any

import softcount as sc
from softcount import samples
from softcount.show.finding import Finding, bars, on_one_scale

TAGS = "ABCDEF"

first, after, emit = sc.table("first"), sc.table("after"), sc.table("emit")


@sc.story
def tail(words: Sequence[str], i: int, tag: str) -> Iterator[Any]:
    """What follows a tag: the end, or another tag with its word."""
    if i == len(words):
        yield after[tag, "end"]
        return
    for nxt in TAGS:
        yield after[tag, nxt], emit[nxt, words[i]], tail(words, i + 1, nxt)


@sc.story
def sentence(words: Sequence[str]) -> Iterator[Any]:
    """A first tag with its word, and the rest."""
    for tag in TAGS:
        yield first[tag], emit[tag, words[0]], tail(words, 1, tag)


def tagged(model: sc.StoryModel, words: Sequence[str]) -> str:
    """A sentence with the likeliest kind of every word."""
    kinds = [entry.key[0] for entry in model.best(words).events if entry.table == "emit"]
    return " ".join(f"{word}/{kind}" for word, kind in zip(words, kinds, strict=True))


def find() -> Finding:
    items = samples.sentences()
    model = sc.StoryModel(sentence, learner=sc.EM(n_init=10), smoothing=0.01).fit(items)
    return Finding(
        "Six kinds of words in a hundred sentences",
        "Every word has a hidden kind, and each kind prefers some kinds to follow it. Nobody told "
        "of nouns or verbs: words that stand in like places end up together, so that “sees” is "
        "found beside “in”, for “the” or “a” comes after both.",
        on_one_scale([bars(f"kind {tag}", row) for tag, row in model.params_["emit"].items()]),
        [tagged(model, words) for words in items[:3]],
        model.fit_,
        "\n".join(map(getsource, (tail, sentence))),
    )
