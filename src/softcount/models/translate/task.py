"""One sentence made ready for the decoder."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.kernels.decoder import Task
from softcount.models.language import LanguageModel
from softcount.models.translate.channel import Channel
from softcount.models.translate.settings import Settings, weighted
from softcount.types import Array


class Prepared(NamedTuple):
    """A sentence X: the decoder's task, the words Y may have, and the unweighted logarithms."""

    x: list[str]
    task: Task
    words: list[str]
    log_t: Array
    log_null: Array


def prepare(
    x: list[str], channel: Channel, language: LanguageModel, insertable: Array, how: Settings
) -> Prepared:
    """Candidates for every word; words that come from no word y may stand for themselves."""
    chosen = [_candidates(word, channel, how.candidates) for word in x]
    known = np.unique(np.concatenate([insertable, *chosen]))
    words = [channel.sources[y] for y in known] + [
        word for word, ys in zip(x, chosen, strict=True) if not len(ys)
    ]
    places = np.full(len(channel.sources), -1)
    places[known] = np.arange(len(known))
    log_t = np.full((len(words), len(x)), -np.inf)
    log_null = np.full(len(x), -np.inf)
    options: list[Array] = []
    itself = len(known)
    for j, (word, ys) in enumerate(zip(x, chosen, strict=True)):
        if word in channel.targets:
            _fill(log_t[:, j], log_null[j : j + 1], channel, channel.targets[word], places)
        if len(ys):
            options.append(places[ys])
        else:
            log_t[itself, j] = 0.0
            options.append(np.array([itself]))
            itself += 1
    log_null += np.log(how.null) if how.null else -np.inf
    task = _task(options, places[insertable], words, log_t, log_null, language, how)
    return Prepared(x, task, words, log_t, log_null)


def _candidates(word: str, channel: Channel, n: int) -> Array:
    known = word in channel.targets
    return channel.candidates(channel.targets[word], n) if known else np.zeros(0, np.int64)


def _fill(log_t: Array, log_null: Array, channel: Channel, x: int, places: Array) -> None:
    """log t(x | y) for the words y that have a place, and log t(x | NULL)."""
    rows, t, null = channel.column(x)
    here = places[rows] >= 0
    log_t[places[rows[here]]] = np.log(np.minimum(t[here], 1.0))
    if null:
        log_null[0] = np.log(min(null, 1.0))


def _task(
    options: list[Array],
    insertable: Array,
    words: list[str],
    log_t: Array,
    log_null: Array,
    language: LanguageModel,
    how: Settings,
) -> Task:
    numbers = np.array([language.numbers_.get(word, 0) for word in words], np.int64)
    alone = how.language * language.automaton_.log_prob[1 + numbers]
    channel, null = weighted(how.channel, log_t), weighted(how.channel, log_null)
    # Pharaoh's estimate (Koehn 2004): the best word on its own, as if nothing stood before it
    best = [np.max(channel[us, j] + alone[us]) for j, us in enumerate(options)]
    return Task(
        np.cumsum([0, *map(len, options)]),
        np.concatenate([np.zeros(0, np.int64), *options]),
        insertable,
        numbers,
        channel,
        null,
        np.maximum(best, null),
    )
