"""The four models of ``softcount demo``: a small text, its story, and the results to show.

Stories are declared when a module is imported; ``softcount demo --help`` need not wait for that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import getsource
from itertools import permutations
from typing import Any

import softcount as sc
from softcount import samples
from softcount.report.finding import Finding, make_all_bars, make_bars, share_scale

# Two coins behind a card.
TOSSES = [
    "HHTHHHHTHH", "TTHTTTHTTT", "HHHHTHHHHH", "HTTTTHTTTT", "TTTHTTTTHT",
    "HHHTHHTHHH", "THTTTTTHTT", "HTHHHHHHHT", "HHHHHTHHTH", "TTTTHTTTTT",
]  # fmt: skip

which, flip = sc.table("which"), sc.table("flip")


@sc.story
def coins(tosses: str) -> Iterator[Any]:
    """A coin is picked behind a card, then tossed ten times."""
    for coin in "AB":
        yield which[coin], *(flip[coin, side] for side in tosses)


def find_coins() -> Finding:
    """Learn the biases of two coins behind a card."""
    model = sc.StoryModel(coins, learner=sc.EM(n_init=5)).fit(TOSSES)
    return Finding(
        "Two coins behind a card",
        "Ten times, somebody picked one of two coins out of sight and tossed it ten times. "
        "Which coin it was is hidden; the bias of each coin can still be learned.",
        make_all_bars(model.params_),
        [],
        model.fit_,
        getsource(coins),
    )


# The themes of the notes, by unsupervised Naive Bayes.
THEMES = "ABC"

theme, word = sc.table("theme"), sc.table("word")


@sc.story
def note(words: Sequence[str]) -> Iterator[Any]:
    """A note has one theme, which generates all its words."""
    for z in THEMES:
        yield theme[z], *(word[z, w] for w in words)


def content_words(notes: Sequence[str]) -> list[list[str]]:
    """Return the words of each note, without very common words and those of a single note."""
    split = [re.findall(r"[a-z]+", text.lower()) for text in notes]
    n_notes = Counter(w for words in split for w in set(words))
    return [[w for w in words if 2 <= n_notes[w] <= len(notes) / 6] for words in split]


def agreement(themes: Sequence[Any], labels: Sequence[str]) -> int:
    """Count the labels that agree under the best one-to-one mapping of themes to labels."""
    names = sorted(set(labels))
    pairs = Counter(zip(themes, map(names.index, labels), strict=True))
    return max(
        sum(pairs[z, name] for name, z in enumerate(naming)) for naming in permutations(THEMES)
    )


def find_themes() -> Finding:
    """Learn the themes of the notes, by unsupervised Naive Bayes."""
    items = content_words(samples.notes())
    model = sc.StoryModel(note, learner=sc.EM(n_init=20), smoothing=0.5).fit(items)
    themes = [model.best(item).events[0].key[0] for item in items]
    agree = agreement(themes, samples.note_labels())
    return Finding(
        "Three themes in sixty notes",
        "Each short note is about one of three things. A story with one theme per note, learned "
        f"without labels, agrees with the held-out labels on {agree} of {len(items)} notes, under "
        "the best mapping of themes to labels. (Words of a single note, and words of more than a "
        "sixth of the notes, were left out.)",
        share_scale(
            [make_bars(f"words of theme {z}", row) for z, row in model.params_["word"].items()]
        ),
        [],
        model.fit_,
        getsource(note),
    )


# Word translations from sentence pairs, by IBM Model 1 (Brown et al. 1993).
SHOWN = ("house", "book", "cat", "child", "sleeps", "drinks", "old", "today", "the")

t = sc.table("t")


@sc.story
def link(es: Sequence[str], f: str) -> Iterator[Any]:
    """A word is the translation of one of the words of the other sentence."""
    for e in es:
        yield t[e, f]


@sc.story
def pair(es: Sequence[str], fs: Sequence[str]) -> Iterator[Any]:
    """Each word of the translation is generated independently."""
    yield tuple(link(es, f) for f in fs)


def find_translations() -> Finding:
    """Learn word translations from sentence pairs, by IBM Model 1 (Brown et al. 1993)."""
    model = sc.StoryModel(pair, init="uniform").fit(samples.pairs())
    return Finding(
        "Translations from a hundred sentence pairs",
        "English sentences and their German translations; which word translates which is hidden. "
        "The most probable translations of some words:",
        share_scale([make_bars(english, model.params_["t"][english], top=3) for english in SHOWN]),
        [],
        model.fit_,
        "\n".join(map(getsource, (link, pair))),
    )


# Kinds of words in plain sentences, by a hidden Markov model.
TAGS = "ABCDEF"

first, after, emit = sc.table("first"), sc.table("after"), sc.table("emit")


@sc.story
def tail(words: Sequence[str], i: int, tag: str) -> Iterator[Any]:
    """A tag is followed by the end, or by another tag with its word."""
    if i == len(words):
        yield after[tag, "end"]
        return
    for nxt in TAGS:
        yield after[tag, nxt], emit[nxt, words[i]], tail(words, i + 1, nxt)


@sc.story
def sentence(words: Sequence[str]) -> Iterator[Any]:
    """A sentence is a first tag with its word, and the rest."""
    for tag in TAGS:
        yield first[tag], emit[tag, words[0]], tail(words, 1, tag)


def tagged(model: sc.StoryModel, words: Sequence[str]) -> str:
    """Format a sentence with the kind of every word on the most probable path."""
    kinds = [entry.key[0] for entry in model.best(words).events if entry.table == "emit"]
    return " ".join(f"{word}/{kind}" for word, kind in zip(words, kinds, strict=True))


def find_tags() -> Finding:
    """Learn kinds of words from plain sentences, by a hidden Markov model."""
    items = samples.sentences()
    model = sc.StoryModel(sentence, learner=sc.EM(n_init=10), smoothing=0.01).fit(items)
    return Finding(
        "Six kinds of words in a hundred sentences",
        "Every word has a hidden kind, and each kind is followed by some kinds more often than by "
        "others. The model knows nothing of nouns or verbs: words in similar contexts end up "
        "together, so that “sees” is found with “in”, because “the” or “a” follows both.",
        share_scale([make_bars(f"kind {tag}", row) for tag, row in model.params_["emit"].items()]),
        [tagged(model, words) for words in items[:3]],
        model.fit_,
        "\n".join(map(getsource, (tail, sentence))),
    )


FINDERS = (find_coins, find_themes, find_translations, find_tags)
"""Functions that fit the demo's models, in the order in which the demo shows them."""
