"""Settings that hidden Markov models have in common, written once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


@dataclass(eq=False, repr=False)
class ChainOptions:
    """How states follow each other, and how they are learned; see `HMM`."""

    n_states: int | None = None
    _: KW_ONLY
    order: int = 1
    stop: bool = True
    smoothing: float | Mapping[str, float] = 0.0
    zero: Mapping[str, Any] | None = None
    frozen: Any = None
    tied: Mapping[str, Any] | None = None
    dtype: str = "float64"
    init: Any = None
    learner: Learner | None = None
    engine: Engine | None = None
    random_state: Any = 0
