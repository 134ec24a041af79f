"""Settings that aligners have in common, written once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


@dataclass(kw_only=True, eq=False, repr=False)
class Knowledge:
    """What is known before learning, and where the work is done; see `IBM1`."""

    dictionary: Any = None
    dictionary_strength: float | None = None
    lowercase: bool = False
    engine: Engine | None = None
    random_state: Any = 0


@dataclass(kw_only=True, eq=False, repr=False)
class Options(Knowledge):
    """What all but samplers have: how tables are learned, and by which numbers; see `IBM1`."""

    smoothing: float = 0.0
    stem: int | None = None
    stem_strength: float = 5.0
    dtype: str = "float64"
    init: Any = None
    learner: Learner | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class OneWayOptions(Options):
    """What models of one direction have; see `IBM1`."""

    null: bool = True
