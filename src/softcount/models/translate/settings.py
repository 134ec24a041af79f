"""The dials of a translator, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from softcount.errors import LearnerError, shown
from softcount.kernels.decoder import Weights
from softcount.models.settings import check_number, check_whole

MOST_REORDER = 30
"""What is read beyond the first unread word is kept in the bits of one number."""
MARGIN = 8.0
"""Hypotheses that are so much (in nats) below the best of their stack are given up."""


class Settings(NamedTuple):
    """As of `softcount.Translator`."""

    beam: int | None
    reorder: int
    candidates: int
    insertions: int
    channel: float
    language: float
    distortion: float
    null: float
    share: float
    insert: float

    @property
    def margin(self) -> float:
        """How far below the best a hypothesis may be."""
        return float("inf") if self.beam is None else MARGIN

    @property
    def width(self) -> int:
        """How many hypotheses a stack may hold."""
        return np.iinfo(np.int64).max if self.beam is None else int(self.beam)

    def weights(self) -> Weights:
        """What steps cost, as the kernels are told."""
        with np.errstate(divide="ignore"):
            insert, share = np.log(self.insert), np.log(self.share)
        return Weights(
            float(self.language),
            float(self.distortion),
            weighted(self.channel, insert),
            weighted(self.channel, share),
            int(self.reorder),
        )


def weighted(weight: float, log: Any) -> Any:
    """``weight`` · ``log``; what is impossible stays so with a weight of 0."""
    with np.errstate(invalid="ignore"):
        times = np.where(np.isneginf(log), -np.inf, weight * np.asarray(log))
    return float(times) if times.ndim == 0 else times


def checked(given: Mapping[str, Any]) -> Settings:
    """The settings, if they make sense."""
    it = Settings(**given)
    if it.beam is not None:
        check_whole("beam", it.beam, 1, "or None: keep everything, for short sentences only")
    check_whole("reorder", it.reorder, 0, "0: words keep their order")
    check_whole("candidates", it.candidates)
    check_whole("insertions", it.insertions, 0)
    for name in ("channel", "language", "distortion"):
        check_number(name, getattr(it, name))
    for name in ("null", "share", "insert"):
        value = getattr(it, name)
        check_number(name, value, "a probability; 0: never")
        if value > 1:
            raise LearnerError(f"{name}={shown(value)}: is no probability", "give at most 1")
    if it.reorder > MOST_REORDER:
        raise LearnerError(f"reorder={it.reorder}: too far", f"give at most {MOST_REORDER}")
    return it
