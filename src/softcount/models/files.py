"""Models in files: their tables, their settings, and what they know of their data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, Self, TypeVar

import numpy as np

from softcount import store
from softcount.bounds import MIN_ROW
from softcount.errors import SoftcountError, StoreError
from softcount.families import Categorical, LogLinear
from softcount.families.base import Family
from softcount.fit import check_start
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array

M = TypeVar("M")
TABLE = "table."
OBJECTS = ("learner", "engine", "vectorizer")
"""Settings that are objects, and never in a file."""


class Stored:
    """What all estimators that can be saved share (a mixin)."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, for `softcount.load`. Settings that are code are left out."""
        self._require_fit()  # type: ignore[attr-defined]
        it = content(self, *self.stored())
        store.write(path, it.kind, it.arrays, it.meta, it.signature)

    @classmethod
    def load(cls, path: str | PathLike[str], **given: Any) -> Self:
        """Read a model that `save` wrote; ``given`` are settings that a file cannot hold."""
        return cls.restore(store.read(path, cls.__name__), **given)

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        """A model from what a file holds (see `softcount.load`)."""
        return restore(cls, stored, given)

    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays and facts that a file must hold beside tables and settings."""
        return {}, {}

    @abstractmethod
    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> Any:
        """Take back what `stored` wrote; gives the core that the tables belong to."""


def content(model: Any, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> store.Stored:
    """What a file holds of a fitted model."""
    names = getattr(model, "feature_names_in_", None)
    meta = {
        "settings": plain_settings(model),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else list(names),
        **facts,
    }
    tables = {TABLE + name: table for name, table in model.raw_params_.items()}
    return store.Stored(type(model).__name__, {**tables, **arrays}, meta, model.signature_)


def plain_settings(model: Any) -> dict[str, Any]:
    """An estimator's settings, as far as JSON can say them."""
    settings = {name: _plain(value) for name, value in model.get_params(deep=False).items()}
    return {name: value for name, value in settings.items() if value is not LEFT_OUT}


LEFT_OUT = object()


def _plain(value: Any) -> Any:
    """A setting as JSON can say it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "bui":
        value = value.tolist()
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return LEFT_OUT if any(part is LEFT_OUT for part in parts) else parts
    if isinstance(value, Mapping):
        entries = {str(name): _plain(entry) for name, entry in value.items()}
        return LEFT_OUT if any(entry is LEFT_OUT for entry in entries.values()) else entries
    return value if value is None or isinstance(value, str | int | float) else LEFT_OUT


def restore(cls: type[M], stored: store.Stored, given: Mapping[str, Any]) -> M:
    """A model from a file: whatever is wrong with the file, the answer is a `StoreError`."""
    settings = settings_of(cls, stored, given)
    return guarded(cls, lambda: _restored(cls, stored, settings, given))


def guarded(cls: type[M], made: Callable[[], M]) -> M:
    """A model that is made from a file, if the file makes sense."""
    try:
        return made()
    except StoreError:
        raise
    except (
        SoftcountError,
        LookupError,
        TypeError,
        ArithmeticError,
        ValueError,
        AttributeError,
    ) as error:
        raise StoreError(
            f"the file does not describe a {cls.__name__}: {getattr(error, 'message', error)}",
            AGAIN,
        ) from error


def settings_of(cls: type[M], stored: store.Stored, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a file, and those that are given beside it."""
    known = set(cls._get_param_names())  # type: ignore[attr-defined]
    strange = set(given) - known
    if strange:
        raise TypeError(f"{cls.__name__} has no setting {sorted(strange)[0]!r}")
    settings = stored.meta.get("settings")
    if not isinstance(settings, Mapping):
        raise StoreError(f"the file does not describe a {cls.__name__}: no settings", AGAIN)
    strange = set(settings) - known
    strange |= {name for name in OBJECTS if settings.get(name) is not None}
    if strange:
        raise StoreError(f"a {cls.__name__} has no setting {sorted(strange)[0]!r}", AGAIN)
    return {**settings, **given}


def _restored(
    cls: type[M], stored: store.Stored, settings: Mapping[str, Any], given: Mapping[str, Any]
) -> M:
    model: Any = cls(**settings)
    model.n_features_in_ = _n_features(stored.meta["n_features"])
    names = strings(stored.meta["feature_names"], model.n_features_in_, "names of columns")
    if names is not None:
        model.feature_names_in_ = names
    # shapes are looked at before anything of the size that the settings claim is made
    model.core_ = model.rebuilt(stored, given)
    model.raw_params_ = _tables(model.core_.families, stored)
    model.signature_ = stored.signature
    return model  # type: ignore[no-any-return]


def _n_features(given: Any) -> int:
    if not isinstance(given, int) or given < 1:
        raise StoreError(f"{given!r} is no number of columns", AGAIN)
    return given


def _tables(families: Mapping[str, Family], stored: store.Stored) -> dict[str, Array]:
    """The tables, if they are parameters of these families."""
    shapes = {name: family.uniform().shape for name, family in families.items()}
    given = {name: numbers(stored, TABLE + name, shape) for name, shape in shapes.items()}
    checked = check_start(families, given)
    for name, family in families.items():
        if isinstance(family, Categorical) and checked[name] is not given[name]:
            raise StoreError(f"rows of table {name!r} add up to more than one", AGAIN)
        if isinstance(family, Categorical) and given[name].sum(axis=1).min() < MIN_ROW:
            raise StoreError(f"a row of table {name!r} is all zeros, or next to nothing", AGAIN)
        if isinstance(family, LogLinear) and not _belongs(family, given[name]):
            raise StoreError(f"chances and weights of table {name!r} do not go together", AGAIN)
    return given


def _belongs(family: LogLinear, table: Array) -> bool:
    """Whether the chances of a log-linear table are those that its weights give."""
    with np.errstate(all="ignore"):
        own = family.bound(family.free(table), table)
    return bool(np.isfinite(own).all() and np.allclose(own, table, rtol=1e-6, atol=1e-9))
