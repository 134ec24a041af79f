"""Language models in files: n-grams and their counts, from which the rest follows."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from softcount import store
from softcount.errors import StoreError
from softcount.models.files import guarded, plain_settings
from softcount.models.language.kneser_ney import usable
from softcount.models.language.ngrams import NGrams
from softcount.models.language.words import MARKS
from softcount.models.settings import check_whole
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array

M = TypeVar("M")


def content(model: Any) -> store.Stored:
    """What a file holds of a fitted model."""
    arrays = {**model.ngrams_._asdict(), "discounts": model.discounts_}
    meta = {"settings": plain_settings(model), "words": model.words_}
    return store.Stored(type(model).__name__, arrays, meta, model.signature_)


def restore(cls: type[M], stored: store.Stored) -> M:
    """A model from a file: whatever is wrong with the file, the answer is a `StoreError`."""
    return guarded(cls, lambda: _restored(cls, stored))


def _restored(cls: type[M], stored: store.Stored) -> M:
    model: Any = cls(**stored.meta["settings"])
    check_whole("order", model.order)
    words = stored.meta["words"]
    strings(words, len(words), "words")
    if tuple(words[: len(MARKS)]) != MARKS or len(set(words)) != len(words):
        raise StoreError("the words are not those of a language model", AGAIN)
    ngrams = NGrams(*(_whole(stored, name) for name in NGrams._fields))
    if not _is_trie(ngrams, len(words), model.order) or not _is_counted(ngrams):
        raise StoreError("the n-grams do not fit together", AGAIN)
    discounts = numbers(stored, "discounts", (model.order, 3))
    if not usable(discounts):
        raise StoreError("the discounts cannot be taken from counts", AGAIN)
    model.keep(words, ngrams, discounts, stored.signature)
    return model  # type: ignore[no-any-return]


def _whole(stored: store.Stored, name: str) -> Array:
    """An array of whole numbers, none of them negative."""
    array = np.asarray(stored.arrays[name])
    if array.ndim != 1 or array.dtype != np.int64 or array.min(initial=0) < 0:
        raise StoreError(f"{name!r} is no list of whole numbers", AGAIN)
    return array


def _is_trie(ngrams: NGrams, n_words: int, order: int) -> bool:
    """Whether nodes, children and suffixes are as kernels take for granted."""
    words, first, suffix, counts = ngrams
    size = len(words)
    fits = len(first) == size + 1 and len(suffix) == len(counts) == size > n_words
    if not fits or first[0] != 1 or first[1] != 1 + n_words or first[-1] != size:
        return False
    if np.any(np.diff(first) < 0) or np.any(first[:-1] <= np.arange(size)):
        return False
    levels, parents = ngrams.levels, ngrams.parents
    if len(levels) > order + 2 or levels[-1] != size:
        return False
    if not np.array_equal(words[1 : 1 + n_words], np.arange(n_words)) or words.max() >= n_words:
        return False
    siblings = parents[2:] == parents[1:-1]
    if np.any(siblings & (np.diff(words[1:]) <= 0)) or np.any(suffix[: 1 + n_words] != 0):
        return False
    level = np.repeat(np.arange(len(levels) - 1), np.diff(levels))
    longer = np.arange(1 + n_words, size)
    return bool(
        np.all(suffix < np.arange(size) + (np.arange(size) == 0))
        and np.all(level[suffix[longer]] == level[longer] - 1)
        and np.all(words[suffix[longer]] == words[longer])
        and np.all(parents[suffix[longer]] == suffix[parents[longer]])
    )


def _is_counted(ngrams: NGrams) -> bool:
    """Whether every n-gram that is longer than one word was seen, and some words were."""
    n_words = int(ngrams.first[1]) - 1
    seen = ngrams.counts[1 + n_words :]
    start = 1 + MARKS.index("<s>")
    return bool(np.all(seen > 0) and ngrams.counts[1:].sum() > 0 and ngrams.counts[start] == 0)
