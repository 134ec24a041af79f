"""Topics over time: the proportion of each topic in each period.

Periods are calendar years, months or days, or intervals of equal width.
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
"""Calendar units from the finest to the coarsest, with numpy's codes."""

MOST_PERIODS = 120
"""The default number of periods is at most this, so that curves stay readable."""

LIMIT = 10_000
MONTH = re.compile(r"\d{4}-\d{2}")
EIGHT_DIGITS = re.compile(r"\d{8}")
HINT = "give ISO dates (1994, 1994-03, 1994-03-07), datetimes, or numbers; None where unknown"


class Periods(NamedTuple):
    """Consecutive periods, including empty ones.

    ``place``  the period number of each item, −1 if its date is unknown, (items,)
    """

    names: tuple[str, ...]
    place: IntArray


def cut_periods(dates: Sequence[Any] | Array, bins: Bins | None = None) -> Periods:
    """Assign each date to a period.

    ``dates``  ISO dates, datetimes, or numbers; None, "", NaN and NaT are unknown
    ``bins``   the number of intervals of equal width, or 'year', 'month', 'day'. None: the finest
               of these three that gives at most 120 periods, otherwise intervals of 2, 5, 10 …
               years; whole numbers get one period each if there are not too many

    >>> cut_periods(["1994-03-30", None, "1994-04-02"], "month")
    Periods(names=('1994-03', '1994-04'), place=array([ 0, -1,  1]))
    >>> cut_periods([1990, 1992, 1992]).names
    ('1990', '1991', '1992')
    """
    values = _read_dates(dates)
    calendar = values.dtype.kind == "M"
    known = ~(np.isnat(values) if calendar else np.isnan(values))
    if not known.any():
        raise DataError("no document has a date", HINT)
    place = np.full(len(values), -1)
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        names, place[known] = _cut_equally(values[known], int(bins))
    elif bins is not None and bins not in UNITS:
        raise LearnerError(
            f"bins={bins!r} is not valid", f"give a whole number, or one of {list(UNITS)}"
        )
    elif calendar:
        names, place[known] = _cut_calendar(values[known], bins)
    elif bins is None:
        names, place[known] = _cut_numbers(values[known])
    else:
        raise DataError(
            f"bins={bins!r}, but the dates are numbers", "give dates, or leave out bins"
        )
    return Periods(names, place)


def _read_dates(dates: Sequence[Any] | Array) -> Array:
    """Convert dates to datetime64 with NaT, or numbers to float64 with NaN."""
    if isinstance(dates, np.ndarray) and dates.dtype.kind == "M":
        return dates.astype("datetime64[us]")
    values = [_read_date(value, d) for d, value in enumerate(dates)]
    if not any(isinstance(value, np.datetime64) for value in values):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    for d, value in enumerate(values):
        if value is None:
            values[d] = np.datetime64("NaT", "us")
        elif isinstance(value, float):  # among dates, a four-digit number is a year
            if value != int(value) or not 1000 <= value <= 9999:
                raise DataError(
                    f"document {d}: {value:g} is not a date, but other documents have dates", HINT
                )
            values[d] = np.datetime64(f"{int(value)}", "us")
    return np.array(values, dtype="datetime64[us]")


def _read_date(value: Any, d: int) -> np.datetime64 | float | None:
    """Read the date of document d; None if it is unknown."""
    text = value.strip() if isinstance(value, str) else None
    try:
        if value is None or text == "" or value != value:  # NaN and NaT differ from themselves
            return None
    except TypeError:  # the comparison of pandas' NA has no truth value
        return None
    try:
        if text is not None:
            if MONTH.fullmatch(text):
                return np.datetime64(text, "us")
            try:
                value = (
                    datetime.fromisoformat(text) if EIGHT_DIGITS.fullmatch(text) else float(text)
                )
            except ValueError:
                value = datetime.fromisoformat(text)
            if value != value:
                return None
        if isinstance(value, np.datetime64):
            microseconds: np.datetime64 = value.astype("datetime64[us]")
            return microseconds
        if isinstance(value, datetime):
            plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return np.datetime64(plain.isoformat(), "us")
        if isinstance(value, date):
            return np.datetime64(value, "us")
        if not isinstance(value, bool | np.bool_) and math.isfinite(value):
            return float(value)
    except (ValueError, TypeError, OverflowError):
        pass
    raise DataError(f"document {d}: {brief(value)} is not a date", HINT)


def _cut_calendar(values: Array, bins: str | None) -> tuple[tuple[str, ...], IntArray]:
    for name, unit in UNITS.items():
        numbers = values.astype(f"datetime64[{unit}]").astype(np.int64)
        n = int(np.ptp(numbers)) + 1
        if bins == name or (bins is None and (n <= MOST_PERIODS or unit == "Y")):
            break
    if bins is None and n > MOST_PERIODS:
        return _cut_numbers(numbers + 1970.0)  # numpy counts years from 1970
    _check_n_periods(n)
    first = numbers.min()
    starts = (first + np.arange(n)).astype(f"datetime64[{unit}]")
    return tuple(map(str, starts)), numbers - first


def _cut_numbers(values: Array) -> tuple[tuple[str, ...], IntArray]:
    whole, span, width = bool((values == np.floor(values)).all()), float(np.ptp(values)), 1.0
    if span > 0.0 and not (whole and span < MOST_PERIODS):  # a round width, for 20 to 60 periods
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
        raise LearnerError(f"bins={n}: must be at least 1", "give 1 or more, or leave it out")
    _check_n_periods(n)
    dates = values.dtype.kind == "M"
    numbers = values.astype(np.int64).astype(np.float64) if dates else values
    edges = np.linspace(numbers.min(), numbers.max(), n + 1)
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, n - 1)
    if dates:
        starts = edges[:-1].astype(np.int64).astype("datetime64[us]").astype("datetime64[s]")
        days = starts.astype("datetime64[D]")
        return tuple(map(str, days if len(np.unique(days)) == n else starts)), place
    return tuple(f"{a:g}–{b:g}" for a, b in pairwise(edges)), place


def _check_n_periods(n: int) -> None:
    if n > LIMIT:
        raise DataError(
            f"{n:,} periods are more than {LIMIT:,}", "choose longer periods with bins="
        )


class OverTime(NamedTuple):
    """A table of topic proportions, periods × topics.

    ``periods``    the names of the periods, in order, including periods without documents
    ``shares``     p(topic | period), (periods, topics); NaN where a period has no words
    ``documents``  the number of documents in each period, (periods,)
    ``skipped``    the number of documents without a date
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
    """Compute the proportion of each topic in each period.

        p(topic | period) = Σ_d n_d p(topic | d) / Σ_d n_d, over the documents d of the period

    ``documents``  p(topic | document), such as a model's ``documents_``, (documents, topics)
    ``lengths``    n_d, the number of words of each document, (documents,); None: all weigh the same
    ``dates``      ISO dates, datetimes or numbers; None if unknown
    ``bins``       the number of periods, or 'year', 'month', 'day'; see `cut_periods`

    >>> table = topics_over_time([[1, 0], [0.5, 0.5], [0, 1]], [6, 2, 9], [1990, 1990, 1991])
    >>> table.periods, table.shares.tolist()
    (('1990', '1991'), [[0.875, 0.125], [0.0, 1.0]])
    """
    theta = np.asarray(documents, dtype=np.float64)
    n = len(theta)
    weight = np.ones(n) if lengths is None else np.asarray(lengths, dtype=np.float64)
    for name, values in (("dates", dates), ("lengths", weight)):
        if len(values) != n:
            raise DataError(
                f"there are {n:,} documents but {len(values):,} {name}",
                f"give {name} for each document, in the same order",
            )
    names, place = cut_periods(dates, bins)
    known = np.flatnonzero(place >= 0)
    shape, place = (len(names), n), place[known]
    topic_counts = sparse.csr_matrix((weight[known], (place, known)), shape=shape) @ theta
    words = np.bincount(place, weight[known], minlength=shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(words[:, None] > 0.0, topic_counts / words[:, None], np.nan)
    sizes = np.bincount(place, minlength=shape[0])
    return OverTime(names, shares, sizes, n - len(known))
