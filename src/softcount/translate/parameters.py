"""The parameters of language models and translators, declared once: see `core.parameters`."""

from __future__ import annotations

import sys
from typing import Any

from softcount.core.parameters import (
    Annotated,
    Doc,
    Integer,
    Number,
    Probability,
    check_parameters,
    dataclass,
)

MOST_REORDER = 30
"""What is read beyond the first unread word is kept in the bits of one number."""

_STEP = Probability(one=True, hint="a probability; 0: never")


@dataclass(eq=False, repr=False)
class LanguageModelParameters:
    """Those of `softcount.translate.language_model.LanguageModel`."""

    order: Annotated[
        int,
        Integer(1, hint="3 for trigrams"),
        Doc("The length of the language model's n-grams."),
    ] = 3
    discount: Annotated[
        Any, Doc("What is taken from every count: a number, or three; by default estimated.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Those of `softcount.Translator`: how wide the search is, and what steps are worth."""

    beam: Annotated[
        int | None,
        Integer(1, hint="or None: keep everything, for short sentences only"),
        Doc("How many partial translations are kept."),
    ] = 100
    reorder: Annotated[
        int,
        Integer(0, MOST_REORDER, "0: words keep their order"),
        Doc("How many places before its turn a word may be read."),
    ] = 3
    candidates: Annotated[
        int,
        Integer(),
        Doc("Words y for each x: this many by t(x | y) p(y), and as many by t(x | y)."),
    ] = 10
    insertions: Annotated[
        int, Integer(0), Doc("How many of the commonest words y may come from no x.")
    ] = 8
    channel: Annotated[float, Number(), Doc("The weight of log P(X | Y).")] = 1.0
    language: Annotated[float, Number(), Doc("The weight of log P(Y).")] = 1.0
    distortion: Annotated[float, Number(), Doc("The cost of a jump of one word.")] = 0.5
    null: Annotated[float, _STEP, Doc("The probability that a word x comes from no word.")] = 0.03
    share: Annotated[float, _STEP, Doc("The probability that two words x share one y.")] = 0.01
    insert: Annotated[float, _STEP, Doc("The probability that a word y has no x.")] = 0.2

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def margin(self) -> float:
        """Hypotheses that are so much (in nats) below the best of their stack are given up."""
        return float("inf") if self.beam is None else 8.0

    @property
    def width(self) -> int:
        """How many hypotheses a stack may hold."""
        return sys.maxsize if self.beam is None else int(self.beam)
