"""Initial parameters of a story, read from what the user writes, with precise error messages."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from softcount.core.errors import StartError
from softcount.core.parameters import as_float
from softcount.core.types import FloatArray, Params
from softcount.families.base import Family
from softcount.families.loglinear import LogLinear
from softcount.families.rows import row_sums
from softcount.stories.tables import Support, TableSupport

_ROUNDING = 0.02
"""A row's sum may differ from 1 by this much (printed figures are rounded); it is then rescaled."""


def uniform_start(support: Support, families: Mapping[str, Family]) -> Params:
    """Return 1/V for every entry of a table with V outcomes.

    Outcomes that never occur with a condition keep their probability mass, as in the uniform
    initialisation of IBM Model 1; so rows may sum to less than one.
    """
    params = {}
    for name, table in support.tables.items():
        params[name] = families[name].uniform().copy()
        params[name][: len(table)] = 1.0 / table.n_outcomes
    return params


def read_start(
    start: Mapping[str, Any], support: Support, families: Mapping[str, Family], fallback: Params
) -> Params:
    """Read parameters from nested mappings or flat tuple keys.

    Rows that ``start`` leaves out are taken from ``fallback``.
    """
    unknown = set(start) - set(support.tables)
    if unknown:
        raise StartError(
            f"start values for {_join(unknown)}, but the story has no such table",
            f"its tables are {_join(support.tables)}",
        )
    params = dict(fallback)
    for name, value in start.items():
        table = support.tables[name]
        params[name] = np.array(fallback[name], dtype=np.float64)
        if isinstance(value, Mapping) and isinstance(families[name], LogLinear):
            raise StartError(
                f"table {name!r} is log-linear: its start values are weights, not probabilities",
                "leave it out, or give the array of all its parameters",
            )
        if isinstance(value, Mapping):
            params[name][: len(table)] = _read_mapping(table, value, params[name][: len(table)])
            continue
        array = np.asarray(value, dtype=np.float64)
        if array.shape != params[name].shape:
            raise StartError(
                f"start values of table {name!r} have shape {array.shape}, not "
                f"{params[name].shape}",
                "an array must have one number per entry; nested mappings are easier",
            )
        _check_numbers(name, array)
        params[name] = array
    return params


def _read_mapping(
    table: TableSupport, value: Mapping[Any, Any], fallback: FloatArray
) -> FloatArray:
    """Read a table's probabilities, (entries,); rows not mentioned are taken from `fallback`."""
    keys, numbers = [], []
    for key, raw_number in _flatten(value, table):
        number = _read_number(table.name, key, raw_number)
        if number == 0.0 and not table.has(key) and table.has(key[:-1]) and table.can_be(key[-1]):
            continue  # the row exists, and the outcome in other rows: the entry is zero anyway
        keys.append(key)
        numbers.append(number)
    codes = [table.lexicon.find(key[p] for key in keys) for p in range(table.arity)]
    entries = table.find(codes)
    if len(entries) and entries.min() < 0:
        key = keys[int(np.argmin(entries))]
        outcomes = [str(outcome) for outcome in {k[-1] for k in table.entry_keys()}]
        close = get_close_matches(str(key[-1]), outcomes, n=1)
        raise StartError(
            f"start value for {table.name}[{_join(key)}], an entry that never occurs in the data",
            (f"did you mean {close[0]!r}? " if close else "")
            + "leave it out, or declare table(name, outcomes=…)",
        )
    probabilities = np.zeros(len(table))
    probabilities[entries] = numbers
    _check_numbers(table.name, probabilities)
    rows = np.searchsorted(table.indptr, entries, side="right") - 1
    mentioned = np.zeros(len(table.indptr) - 1, bool)
    mentioned[rows] = True
    sums = row_sums(probabilities, table.indptr)
    for row in np.flatnonzero(mentioned & (np.abs(sums - 1.0) > _ROUNDING)):
        condition = _join(table.entry_keys()[table.indptr[row]][:-1])
        of_row = f"{table.name!r} given {condition}" if condition else repr(table.name)
        raise StartError(
            f"start values of table {of_row} add up to {sums[row]:g}",
            "each row must add up to 1 over the outcomes that occur",
        )
    exact = np.abs(sums - 1.0) <= 1e-9
    scale = np.where(exact | ~mentioned, 1.0, sums)
    lengths = np.diff(table.indptr)
    chosen = np.repeat(mentioned, lengths)
    return np.where(chosen, probabilities / np.repeat(scale, lengths), fallback)


def _flatten(
    value: Mapping[Any, Any], table: TableSupport, prefix: tuple[Hashable, ...] = ()
) -> Iterator[tuple[tuple[Hashable, ...], Any]]:
    """Yield full keys with their values."""
    for key, inner in value.items():
        path = (*prefix, *_split_key(key, inner, table, prefix))
        if isinstance(inner, Mapping) and len(path) < table.arity:
            yield from _flatten(inner, table, path)
        elif len(path) == table.arity:
            yield path, inner
        else:
            raise StartError(
                f"start values of table {table.name!r}: {path!r} is not a full key of "
                f"{table.arity} parts",
                "nest mappings condition by condition down to the outcome",
            )


def _split_key(
    key: Hashable, inner: Any, table: TableSupport, prefix: tuple[Hashable, ...]
) -> tuple[Hashable, ...]:
    """Return the parts of a key that the user wrote.

    A tuple may stand for several parts of a key, or be a single part itself: the table's own keys
    decide. Where both readings occur in the table it is a single part; where neither does, it is
    several parts if their number fits.
    """
    if not isinstance(key, tuple):
        return (key,)
    needed = table.arity - len(prefix)
    fitting = [
        parts
        for parts in ((key,), key)
        if (len(parts) < needed if isinstance(inner, Mapping) else len(parts) == needed)
    ]
    known = [parts for parts in fitting if table.has((*prefix, *parts))]
    return (known or fitting[::-1] or [(key,)])[0]


def _read_number(name: str, key: tuple[Hashable, ...], value: Any) -> float:
    try:
        number = as_float(value)
    except (TypeError, ValueError):
        raise StartError(
            f"start value of {name}[{_join(key)}] is {value!r}, not a number",
            "give a probability, such as 0.5",
        ) from None
    if not math.isfinite(number) or number < 0.0:
        raise StartError(
            f"start value of {name}[{_join(key)}] is {number}",
            "probabilities are finite and not negative",
        )
    return number


def _check_numbers(name: str, values: FloatArray) -> None:
    if not np.isfinite(values).all() or (values < 0).any():
        raise StartError(
            f"start values of table {name!r} are not all finite and non-negative",
            "look for NaN and for negative numbers",
        )


def _join(parts: Any) -> str:
    return ", ".join(map(str, parts))
