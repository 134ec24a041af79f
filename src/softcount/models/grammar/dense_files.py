"""Dense grammars in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount import store
from softcount.corpus.numbering import Vocabulary
from softcount.errors import StoreError
from softcount.models.files import TABLE
from softcount.models.grammar.dense import RULES, WORDS
from softcount.models.grammar.dense_form import DenseForm
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array

OFTEN = "often"
NAMES = ("nonterminals", "preterminals", "words")


def is_dense(stored: store.Stored) -> bool:
    """Whether a file has such a grammar: those of rules have no list of words."""
    return NAMES[-1] in stored.meta


def facts(form: DenseForm) -> dict[str, Any]:
    """Symbols and words as JSON has them."""
    lists = (form.nonterminals, form.preterminals, form.vocabulary.words)
    return {name: list(some) for name, some in zip(NAMES, lists, strict=True)}


def arrays(form: DenseForm) -> dict[str, Array]:
    """What it has beside the tables."""
    return {OFTEN: form.often}


def form(stored: store.Stored) -> DenseForm:
    """Symbols and words from a file, whose tables fit them."""
    nonterminals, preterminals, words = (_names(stored, name) for name in NAMES)
    k, t, v = map(len, (nonterminals, preterminals, words))
    for table, shape in ((RULES, (k, (k + t) ** 2)), (WORDS, (t, v))):
        numbers(stored, TABLE + table, shape)
    often = numbers(stored, OFTEN, (v,))
    if often.min() < 1 or (often % 1).any():
        raise StoreError("how often words are there makes no sense", AGAIN)
    symbols = tuple(nonterminals), tuple(preterminals)
    return DenseForm(*symbols, Vocabulary(words), often.astype(np.int64))


def _names(stored: store.Stored, name: str) -> list[str]:
    given: list[str] = stored.meta[name]
    strings(given, len(given), name)
    if not given or "" in given or len(set(given)) != len(given):
        raise StoreError(f"the {name} make no sense", AGAIN)
    return given
