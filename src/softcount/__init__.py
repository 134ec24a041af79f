"""softcount learns hidden structure from text that nobody labelled.

Write how the data could have come about (a story), choose a learner, fit:

>>> import softcount as sc
>>> which, flip = sc.table("which"), sc.table("flip")
>>> @sc.story
... def coins(tosses):
...     for z in "AB":
...         yield which[z], *(flip[z, x] for x in tosses)
>>> model = sc.StoryModel(coins).fit(["HHH", "TTT", "HHH", "TTT"])
>>> model.verdict_.good
True

The names below are imported when they are first used, so that ``import softcount`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softcount._version import __version__

if TYPE_CHECKING:
    from softcount.checks import check_model
    from softcount.engines import Local
    from softcount.errors import (
        DataError,
        ImpossibleItem,
        LearnerError,
        MissingEntry,
        SoftcountError,
        StartError,
        StoreError,
        StoryError,
    )
    from softcount.families import Categorical, Gaussian, LogLinear, SparseCategorical
    from softcount.learners import (
        EM,
        Batch,
        Gibbs,
        HardEM,
        Incremental,
        IncrementalEM,
        Learner,
        MonteCarloEM,
        OnlineEM,
        Squarem,
        Stepwise,
        StochasticVB,
        VariationalBayes,
        anneal,
    )
    from softcount.models.story import StoryModel, story, table
    from softcount.store import load
    from softcount.theory import decompose
    from softcount.types import Fit, State, Stats, Trace
    from softcount.verdict import Verdict

_HOME = {
    "softcount.models.story": ("StoryModel", "story", "table"),
    "softcount.learners": (
        "EM",
        "Batch",
        "Gibbs",
        "HardEM",
        "Incremental",
        "IncrementalEM",
        "Learner",
        "MonteCarloEM",
        "OnlineEM",
        "Squarem",
        "Stepwise",
        "StochasticVB",
        "VariationalBayes",
        "anneal",
    ),
    "softcount.engines": ("Local",),
    "softcount.families": ("Categorical", "Gaussian", "LogLinear", "SparseCategorical"),
    "softcount.theory": ("decompose",),
    "softcount.checks": ("check_model",),
    "softcount.store": ("load",),
    "softcount.types": ("Fit", "State", "Stats", "Trace"),
    "softcount.verdict": ("Verdict",),
    "softcount.errors": (
        "DataError",
        "ImpossibleItem",
        "LearnerError",
        "MissingEntry",
        "SoftcountError",
        "StartError",
        "StoreError",
        "StoryError",
    ),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "EM",
    "Batch",
    "Categorical",
    "DataError",
    "Fit",
    "Gaussian",
    "Gibbs",
    "HardEM",
    "ImpossibleItem",
    "Incremental",
    "IncrementalEM",
    "Learner",
    "LearnerError",
    "Local",
    "LogLinear",
    "MissingEntry",
    "MonteCarloEM",
    "OnlineEM",
    "SoftcountError",
    "SparseCategorical",
    "Squarem",
    "StartError",
    "State",
    "Stats",
    "Stepwise",
    "StochasticVB",
    "StoreError",
    "StoryError",
    "StoryModel",
    "Trace",
    "VariationalBayes",
    "Verdict",
    "__version__",
    "anneal",
    "check_model",
    "decompose",
    "load",
    "story",
    "table",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'softcount' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
