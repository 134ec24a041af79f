"""A page about a topic model: self-contained, readable without a script, better with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.show.groups import shortened
from softcount.show.over_time import topics_over_time
from softcount.show.report import document, ending, signed
from softcount.show.snippets import clean
from softcount.show.topic_map import LARGEST, distances
from softcount.show.topic_parts import (
    TopicsShown,
    time_curves,
    topic_list,
    topic_map,
    topic_section,
)
from softcount.show.topic_words import DEFAULT, topic_words
from softcount.show.typical import as_text, examples, telling_words, typical
from softcount.types import Array

LONGEST_WORD = 40
RESTING = (
    "Topics that use the same words stand near each other; the area of a circle is the topic's "
    "share of all words."
)
BARS = (
    "Blue: how often a word is in this topic; grey: how often it is in all. Figures: how many "
    "per cent of the topic the word is, and how many per cent of the word's uses are here."
)


def topic_report(
    model: Any,
    *,
    texts: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    times: Sequence[Any] | Array | None = None,
    lengths: Array | Sequence[float] | None = None,
    title: str = "Topics",
) -> str:
    """A page (HTML) about a fitted topic model: words, map, typical documents, sizes, curves.

    ``texts``    the documents that were learned from, to show some
    ``names``    what the documents are called; without names they have numbers
    ``times``    when they are from, see `softcount.show.over_time.topics_over_time`
    ``lengths``  words in each document; without them words are counted in the texts, and without
                 texts every document counts the same

    >>> from softcount.models.topics import LDA
    >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
    >>> topic_report(LDA(2).fit(notes), texts=notes)[:15]
    '<!doctype html>'
    """
    topics, weights = model.topics_, model.weights_ / model.weights_.sum()
    documents = _documents(model, texts, names, times, lengths)
    words, called = topic_words(topics, weights), model.word_names()
    fit_words = {int(w): shortened(clean(called[w]), LONGEST_WORD) for w in words.chosen}
    shown = TopicsShown(weights, words, fit_words, distances(topics))
    if documents is not None:
        shown = _with_documents(shown, documents)
    return _page(model, shown, title)


@dataclass(frozen=True, eq=False)
class _Documents:
    """What is known of documents: ``shares``, p(topic | document), ``sizes``, words in each …"""

    shares: Array
    sizes: Array | None
    texts: Sequence[Any] | None
    names: Sequence[Any] | None
    times: Sequence[Any] | Array | None


def _documents(model: Any, texts: Any, names: Any, times: Any, lengths: Any) -> _Documents | None:
    texts, names = _by_number(texts), _by_number(names)
    given = {"texts": texts, "names": names, "times": times, "lengths": lengths}
    given = {what: one for what, one in given.items() if one is not None}
    shares: Any = getattr(model, "documents_", None)
    if shares is None and texts is not None:  # a model from a file may not have kept them
        shares = model.transform(texts)
    if shares is None and given:
        raise DataError(
            f"this model knows of no documents to have {', '.join(given)}", "give texts"
        )
    for what, one in given.items():
        if len(one) != len(shares):
            raise DataError(
                f"there are {len(one):,} {what}, but {len(shares):,} documents in the model",
                f"give the {what} of those that were learned from, in the same order",
            )
    return (
        None if shares is None else _Documents(shares, _sizes(texts, lengths), texts, names, times)
    )


def _by_number(given: Any) -> Any:
    """Entries in their order: a column of a data frame has other numbers, a generator none."""
    return given if given is None or isinstance(given, Sequence) else list(given)


def _sizes(texts: Sequence[Any] | None, lengths: Any) -> Array | None:
    if lengths is not None:
        return np.asarray(lengths, dtype=np.float64)
    return None if texts is None else np.array([len(as_text(text).split()) for text in texts])


def _with_documents(shown: TopicsShown, known: _Documents) -> TopicsShown:
    shares, times = known.shares, known.times
    best = typical(shares, shown.weights, known.sizes)
    some = shares if known.sizes is None else shares[known.sizes > 0]  # others have no largest
    return replace(
        shown,
        mainly=np.bincount(some.argmax(axis=1), minlength=shares.shape[1]),
        examples=[
            examples(
                numbers,
                shares[:, k],
                telling_words(shown.words, shown.names, k),
                known.texts,
                known.names,
            )
            for k, numbers in enumerate(best)
        ],
        table=None if times is None else topics_over_time(shares, known.sizes, times),
    )


def _page(model: Any, shown: TopicsShown, title: str) -> str:
    K, V = model.topics_.shape
    known = "" if shown.mainly is None else f" in {int(shown.mainly.sum()):,} documents"
    lead = f"{K:,} topic{'s' * (K != 1)} over {V:,} words{known}, by {type(model).__name__}."
    sections = "".join(topic_section(shown, k) for k in shown.order)
    body = (
        '<div class="explorer"><div class="overview">'
        f'{topic_map(shown)}<p class="status" aria-live="polite">{escape(RESTING)}</p>'
        f'{topic_list(shown)}{KEYS}</div><div class="chosen">{DIAL}'
        f'<p class="scale">{escape(BARS)}</p>{sections}</div></div>'
        f"{time_curves(shown)}<h2>How it was learned</h2>{_end(model, title)}"
        f'<script type="application/json" id="topic-data">{_data(shown)}</script>'
    )
    return document(clean(title), lead, body, _part("topics.css"), _part("topics.js"))


KEYS = (
    '<p class="keys sans"><kbd>↑</kbd> <kbd>↓</kbd> in this list, <kbd>←</kbd> <kbd>→</kbd> '
    "anywhere, or a topic's number.</p>"
)
DIAL = (
    '<div class="dial" hidden><label for="relevance">Words that are</label><span>only here</span>'
    f'<input type="range" id="relevance" min="0" max="10" value="{DEFAULT}" autocomplete="off" '
    f'aria-valuetext="{DEFAULT / 10}"><span>common here</span>'
    f'<span>λ = <output id="relevance-value" for="relevance">{DEFAULT / 10}</output></span></div>'
)


def _end(model: Any, title: str) -> str:
    fit = getattr(model, "fit_", None)
    if fit is None:  # a model from a file has no steps to show
        return signed(model.signature_)
    last = fit.trace[-1]
    told = (
        f"perplexity {last.perplexity:,.1f} · objective {last.objective:,.1f} · {last.step} steps"
    )
    return f'<p class="scale">{escape(told.replace("-", "−"))}</p>{ending(fit, clean(title))}'


def _data(shown: TopicsShown) -> str:
    """What the script works with, as JSON that cannot end the element it stands in."""
    words = shown.words
    data = {
        "n": words.n,
        "largest": LARGEST,
        "weights": [float(f"{weight:.4g}") for weight in shown.weights],
        "words": list(shown.names.values()),
        "rarity": words.rarity.tolist(),
        "spread": words.spread,
        "places": [places.tolist() for places in words.places],
        "logs": [logs.tolist() for logs in words.logs],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
