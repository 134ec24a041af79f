"""Declarations of the parameters of language models and translators: see `core.parameters`."""

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
"""Upper limit of ``reorder``: positions read beyond the first unread one are bits of an integer."""

_STEP = Probability(one=True, hint="a probability; 0: never")


@dataclass(eq=False, repr=False)
class LanguageModelParameters:
    """Parameters of `softcount.translate.language_model.LanguageModel`."""

    order: Annotated[
        int,
        Integer(1, hint="3 for trigrams"),
        Doc("The order n of the n-gram model."),
    ] = 3
    discount: Annotated[
        Any, Doc("The Kneser–Ney discount: one number, or three; by default estimated.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Parameters of `softcount.Translator`: the search limits, and the weights of the model."""

    beam: Annotated[
        int | None,
        Integer(1, hint="or None: keep all hypotheses, for short sentences only"),
        Doc("The beam width: how many partial translations are kept per stack."),
    ] = 100
    reorder: Annotated[
        int,
        Integer(0, MOST_REORDER, "0: words keep their order"),
        Doc("Reordering limit: how far beyond the first unread word a word may be translated."),
    ] = 3
    candidates: Annotated[
        int,
        Integer(),
        Doc("Candidates y for each x: this many by t(x | y) p(y), and as many by t(x | y)."),
    ] = 10
    insertions: Annotated[
        int, Integer(0), Doc("How many of the most frequent words y can be inserted without an x.")
    ] = 8
    channel: Annotated[float, Number(), Doc("The weight of log P(X | Y).")] = 1.0
    language: Annotated[float, Number(), Doc("The weight of log P(Y).")] = 1.0
    distortion: Annotated[float, Number(), Doc("The cost of a jump of one word.")] = 0.5
    null: Annotated[float, _STEP, Doc("The probability that x is aligned to NULL.")] = 0.03
    share: Annotated[
        float, _STEP, Doc("The probability that x is aligned to the same y as the x read before.")
    ] = 0.01
    insert: Annotated[
        float, _STEP, Doc("The probability that a word y is inserted: aligned to no x.")
    ] = 0.2

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def margin(self) -> float:
        """Pruning threshold: how far (in nats) a hypothesis may be below the best of its stack."""
        return float("inf") if self.beam is None else 8.0

    @property
    def width(self) -> int:
        """The maximum number of hypotheses in a stack."""
        return sys.maxsize if self.beam is None else int(self.beam)
