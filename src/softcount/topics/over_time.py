"""Topics over time: documents cut into periods, and how large a part each topic has in each.

Periods are years, months or days of the calendar, or equal stretches.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.types import Array, FloatArray, IntArray

Bins = int | Literal["year", "month", "day"]
UNITS = {"day": "D", "month": "M", "year": "Y"}
"""From the finest to the coarsest, with numpy's letters."""

MOST_PERIODS = 120
"""Largest number of periods that still makes a readable curve, unless somebody asks for more."""

LIMIT = 10_000
MONTH = re.compile(r"\d{4}-\d{2}")
EIGHT_FIGURES = re.compile(r"\d{8}")
HINT = "give ISO dates (1994, 1994-03, 1994-03-07), datetimes, or numbers; None where unknown"


class Periods(NamedTuple):
    """Periods one after the other, empty ones among them too.

    ``place``  the number of the period of each item, −1 where its time is not known
    """

    names: tuple[str, ...]
    place: IntArray


def cut_periods(dates: Sequence[Any] | Array, bins: Bins | None = None) -> Periods:
    """The period of each time.

    ``dates``  ISO dates, datetimes, or numbers; None, "", NaN and NaT are not known
    ``bins``   how many stretches of equal width, or 'year', 'month', 'day'; None: the finest of
               these three that gives at most 120 periods, and then years by twos, fives, tens …;
               numbers that are whole have a period each, as far as that is possible

    >>> cut_periods(["1994-03-30", None, "1994-04-02"], "month")
    Periods(names=('1994-03', '1994-04'), place=array([ 0, -1,  1]))
    >>> cut_periods([1990, 1992, 1992]).names
    ('1990', '1991', '1992')
    """
    values = _read_dates(dates)
    calendar = values.dtype.kind == "M"
    known = ~(np.isnat(values) if calendar else np.isnan(values))
    if not known.any():
        raise DataError("no document has a time", HINT)
    place = np.full(len(values), -1)
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        names, place[known] = _cut_equally(values[known], int(bins))
    elif bins is not None and bins not in UNITS:
        raise LearnerError(f"bins={bins!r} is not known", f"a whole number, or of {list(UNITS)}")
    elif calendar:
        names, place[known] = _cut_calendar(values[known], bins)
    elif bins is None:
        names, place[known] = _cut_numbers(values[known])
    else:
        raise DataError(f"bins={bins!r}, but the dates are numbers", "give dates, or no bins")
    return Periods(names, place)


def _read_dates(dates: Sequence[Any] | Array) -> Array:
    """As datetime64 with NaT, or as float64 with NaN."""
    if isinstance(dates, np.ndarray) and dates.dtype.kind == "M":
        return dates.astype("datetime64[us]")
    found = [_read_date(value, d) for d, value in enumerate(dates)]
    if not any(isinstance(value, np.datetime64) for value in found):
        return np.array([np.nan if value is None else value for value in found], dtype=np.float64)
    for d, value in enumerate(found):
        if value is None:
            found[d] = np.datetime64("NaT", "us")
        elif isinstance(value, float):  # among dates, a number of four figures is a year
            if value != int(value) or not 1000 <= value <= 9999:
                raise DataError(
                    f"document {d}: {value:g} is no date, but other documents have dates", HINT
                )
            found[d] = np.datetime64(f"{int(value)}", "us")
    return np.array(found, dtype="datetime64[us]")


def _read_date(value: Any, d: int) -> np.datetime64 | float | None:
    """When document d is from; None if that is not known."""
    text = value.strip() if isinstance(value, str) else None
    try:
        if value is None or text == "" or value != value:  # NaN and NaT are not themselves
            return None
    except TypeError:  # pandas' NA is neither equal nor unequal
        return None
    try:
        if text is not None:
            if MONTH.fullmatch(text):
                return np.datetime64(text, "us")
            try:
                value = (
                    datetime.fromisoformat(text) if EIGHT_FIGURES.fullmatch(text) else float(text)
                )
            except ValueError:
                value = datetime.fromisoformat(text)
            if value != value:
                return None
        if isinstance(value, np.datetime64):
            fine: np.datetime64 = value.astype("datetime64[us]")
            return fine
        if isinstance(value, datetime):
            plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return np.datetime64(plain.isoformat(), "us")
        if isinstance(value, date):
            return np.datetime64(value, "us")
        if not isinstance(value, bool | np.bool_) and math.isfinite(value):
            return float(value)
    except (ValueError, TypeError, OverflowError):
        pass
    raise DataError(f"document {d}: {brief(value)} is no time", HINT)


def _cut_calendar(values: Array, bins: str | None) -> tuple[tuple[str, ...], IntArray]:
    for name, unit in UNITS.items():
        numbers = values.astype(f"datetime64[{unit}]").astype(np.int64)
        n = int(np.ptp(numbers)) + 1
        if bins == name or (bins is None and (n <= MOST_PERIODS or unit == "Y")):
            break
    if bins is None and n > MOST_PERIODS:
        return _cut_numbers(numbers + 1970.0)  # numpy counts years from there
    _check_few(n)
    first = numbers.min()
    starts = (first + np.arange(n)).astype(f"datetime64[{unit}]")
    return tuple(map(str, starts)), numbers - first


def _cut_numbers(values: Array) -> tuple[tuple[str, ...], IntArray]:
    whole, span, width = bool((values == np.floor(values)).all()), float(np.ptp(values)), 1.0
    if span > 0.0 and not (whole and span < MOST_PERIODS):  # a round width that makes some 20 to 60
        power = 10.0 ** np.floor(np.log10(span / 50.0))
        width = float(next(power * m for m in (1, 2, 5, 10) if power * m >= span / 50.0))
        width = max(width, 1.0) if whole else width
    numbers = np.floor(values / width + 1e-9).astype(np.int64)
    first, last = int(numbers.min()), int(numbers.max())
    starts = [k * width for k in range(first, last + 1)]
    if whole and width == 1.0:
        names = [f"{start:.0f}" for start in starts]
    elif whole:
        names = [f"{start:.0f}–{start + width - 1:.0f}" for start in starts]
    else:
        names = [f"{start:g}–{start + width:g}" for start in starts]
    return tuple(names), numbers - first


def _cut_equally(values: Array, n: int) -> tuple[tuple[str, ...], IntArray]:
    if n < 1:
        raise LearnerError(f"bins={n}: there must be one at least", "leave it out, or give more")
    _check_few(n)
    dates = values.dtype.kind == "M"
    numbers = values.astype(np.int64).astype(np.float64) if dates else values
    edges = np.linspace(numbers.min(), numbers.max(), n + 1)
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, n - 1)
    if dates:
        starts = edges[:-1].astype(np.int64).astype("datetime64[us]").astype("datetime64[s]")
        days = starts.astype("datetime64[D]")
        return tuple(map(str, days if len(np.unique(days)) == n else starts)), place
    return tuple(f"{a:g}–{b:g}" for a, b in pairwise(edges)), place


def _check_few(n: int) -> None:
    if n > LIMIT:
        raise DataError(f"{n:,} periods are more than {LIMIT:,}", "choose longer ones by bins=")


class OverTime(NamedTuple):
    """A table of periods × topics.

    ``periods``    their names, in order; periods without documents are among them
    ``shares``     (periods, topics), rows add up to 1; NaN where a period has no words
    ``documents``  how many documents each period has
    ``skipped``    how many documents have no time
    """

    periods: tuple[str, ...]
    shares: FloatArray
    documents: IntArray
    skipped: int


def topics_over_time(
    documents: FloatArray,
    lengths: Array | Sequence[float] | None,
    dates: Sequence[Any] | Array,
    bins: Bins | None = None,
) -> OverTime:
    """p(topic | period) = Σ_d n_d p(topic | d) / Σ_d n_d over the documents d of the period.

    ``documents``  p(topic | document), as a model's ``documents_``
    ``lengths``    n_d, words in each document; None: every document counts the same
    ``dates``      ISO dates, datetimes or numbers; None where there is none
    ``bins``       how many periods, or 'year', 'month', 'day'; see `cut_periods`

    >>> table = topics_over_time([[1, 0], [0.5, 0.5], [0, 1]], [6, 2, 9], [1990, 1990, 1991])
    >>> table.periods, table.shares.tolist()
    (('1990', '1991'), [[0.875, 0.125], [0.0, 1.0]])
    """
    theta = np.asarray(documents, dtype=np.float64)
    n = len(theta)
    weight = np.ones(n) if lengths is None else np.asarray(lengths, dtype=np.float64)
    for name, given in (("dates", dates), ("lengths", weight)):
        if len(given) != n:
            raise DataError(
                f"there are {n:,} documents but {len(given):,} {name}",
                f"give {name} for each document, in the same order",
            )
    names, place = cut_periods(dates, bins)
    known = np.flatnonzero(place >= 0)
    shape, place = (len(names), n), place[known]
    counted = sparse.csr_matrix((weight[known], (place, known)), shape=shape) @ theta
    words = np.bincount(place, weight[known], minlength=shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(words[:, None] > 0.0, counted / words[:, None], np.nan)
    sizes = np.bincount(place, minlength=shape[0])
    return OverTime(names, shares, sizes, n - len(known))
