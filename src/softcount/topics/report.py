"""The page about topics: words, map, documents, change over time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from html import escape
from importlib import resources
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import linalg, sparse

from softcount.errors import DataError, LearnerError, shown
from softcount.show.groups import EXAMPLES, shortened
from softcount.show.report import document, ending, signed
from softcount.show.snippets import clean, snippet
from softcount.types import Array

TENTHS = range(11)
"""λ goes from 0 to 1 by tenths."""

DEFAULT = 6
FINE = 1000
"""Logarithms are kept in thousandths of a nat."""

MOST_WORDS, FEWEST_WORDS, ALL_WORDS = 30, 10, 3000
WIDEST = 8
"""How many topics are kept of a word at most."""


@dataclass(frozen=True, eq=False)
class TopicWords:
    """The words that a page may come to show.

    ``n``       how many words a topic shows at a time
    ``chosen``  which columns of the topics these words are, in order
    ``rarity``  −log p(w) of each, in thousandths of a nat
    ``places``  for each topic, where its words stand among ``chosen``
    ``logs``    for each topic, −log p(w | k) of these, in thousandths of a nat
    ``spread``  for each word, its likeliest topics and p(k | w) in per cent: k, p, k, p …
    """

    n: int
    chosen: Array
    rarity: Array
    places: Sequence[Array]
    logs: Sequence[Array]
    spread: Sequence[Sequence[int]]

    def top(self, k: int, n: int, tenths: int = DEFAULT) -> list[tuple[int, float, float]]:
        """The most relevant words of a topic: (column, p(w | k), p(w))."""
        places, logs = self.places[k], self.logs[k]
        rarity = self.rarity[places]
        best = np.argsort(-_ranks(logs, rarity, tenths), kind="stable")[:n]
        return [(int(self.chosen[places[i]]), _chance(logs[i]), _chance(rarity[i])) for i in best]


def topic_words(topics: Array, weights: Array) -> TopicWords:
    """Of each topic the words that are among its most relevant for any λ of the slider.

    >>> words = topic_words(np.array([[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]]), np.array([0.5, 0.5]))
    >>> [words.top(k, 1, tenths)[0][0] for k in (0, 1) for tenths in (0, 10)]
    [1, 0, 2, 0]
    """
    K = len(topics)
    n = int(np.clip(ALL_WORDS // K, FEWEST_WORDS, MOST_WORDS))
    overall = weights / weights.sum() @ topics
    rarity = _thousandths(overall)
    columns, logs = [], []
    for row in topics:
        possible = np.flatnonzero((row > 0.0) & (overall > 0.0))
        fine = _thousandths(row[possible])
        kept = _candidates(fine, rarity[possible], n)
        columns.append(possible[kept])
        logs.append(fine[kept])
    chosen = np.unique(np.concatenate(columns))
    places = [np.searchsorted(chosen, one) for one in columns]
    spread = _spread(topics[:, chosen], weights / weights.sum())
    return TopicWords(n, chosen, rarity[chosen], places, logs, spread)


def _thousandths(chances: Array) -> Array:
    with np.errstate(divide="ignore"):
        logs = -FINE * np.log(chances)
    # whole, so that the page's script ranks words exactly as is done here
    whole: Array = np.rint(np.minimum(logs, 1e6)).astype(np.int64)
    return whole


def _chance(fine: int) -> float:
    return float(np.exp(-fine / FINE))


def _ranks(logs: Array, rarity: Array, tenths: int) -> Array:
    """Words by λ log p(w | k) + (1 − λ) log [p(w | k) / p(w)] (Sievert & Shirley 2014).

    λ = 1 ranks words by how common they are in the topic, 0 by how much more common than elsewhere.
    As whole numbers: ten times as much, in thousandths; of equals the commoner word ranks higher.
    """
    relevant = (10 - tenths) * rarity - 10 * logs
    ranks: Array = (relevant << 20) - logs
    return ranks


def _candidates(logs: Array, rarity: Array, n: int) -> Array:
    if len(logs) <= n:
        return np.arange(len(logs))
    kept = []
    for tenths in TENTHS:
        ranks = _ranks(logs, rarity, tenths)
        least = np.partition(ranks, len(ranks) - n)[len(ranks) - n]
        good = np.flatnonzero(ranks >= least)
        kept.append(good[np.argsort(-ranks[good], kind="stable")[:n]])
    return np.unique(np.concatenate(kept))


def _spread(topics: Array, weights: Array) -> list[list[int]]:
    """p(k | w) of a word's likeliest topic, and of the others that have 2 % of it."""
    joint = topics * weights[:, None]
    share = np.rint(100.0 * joint / np.maximum(joint.sum(axis=0), 1e-300)).astype(np.int64)
    order = np.argsort(-share, axis=0, kind="stable")[:WIDEST]
    return [
        [int(x) for k in ks if share[k, w] >= 2 or k == ks[0] for x in (k, share[k, w])]
        for w, ks in enumerate(order.T)
    ]


# How far topics are from each other, and where they stand on a map.


WIDTH, HEIGHT = 640, 440
MARGIN = 14
INK = 0.2
"""The part of the map that circles fill."""

LARGEST, SMALLEST = 62.0, 3.0
WIDEST_GAP = 20.0
FILLED = 0.45
"""The part of the map that circles fill together with the gaps around them."""

STRETCH = 1.6
ROUNDS, FEW_ROUNDS = 300, 30
MANY = 300
"""So many topics are moved in few rounds only, for each takes the square of their number."""

WORK = 4 * 10**7
"""So many words × pairs of topics are looked at, more or less."""


def distances(topics: Array) -> Array:
    """√JS for every pair of topics, (topics, topics): 0 for equal ones, 1 without common words.

    JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2 in bits. Its root is a distance (Endres &
    Schindelin 2003). Where there are many topics, rare words that are commonest in the same topic
    count as one word, which can only make distances smaller.

    >>> distances(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])).round(3).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    phi = _few_columns(np.asarray(topics)).astype(np.float32)
    K = len(phi)
    inside = _x_log_x(phi)
    result = np.zeros((K, K))
    for k in range(K - 1):
        between = _x_log_x(np.float32(0.5) * (phi[k] + phi[k + 1 :]))
        result[k, k + 1 :] = 0.5 * (inside[k] + inside[k + 1 :]) - between
    result = np.sqrt(np.clip(result, 0.0, 1.0))
    return result + result.T


def _x_log_x(rows: Array) -> Array:
    """Σ x log₂ x of each row, taken in single precision, which is enough for a picture."""
    x = np.maximum(rows, 1e-30, dtype=np.float32)
    total: Array = (x * np.log2(x)).sum(axis=1, dtype=np.float64)
    return total


def _few_columns(phi: Array) -> Array:
    """The commonest words as they are, the others added up by the topic that has most of them."""
    K, V = phi.shape
    most = max(100, 2 * WORK // K**2 - K)
    if most >= V:
        return phi
    order = np.argsort(-phi.sum(axis=0), kind="stable")
    common, rare = phi[:, order[:most]], phi[:, order[most:]]
    group = (np.arange(V - most), rare.argmax(axis=0))
    member = sparse.csr_matrix((np.ones(V - most), group), shape=(V - most, K))
    return np.column_stack([common, rare @ member])


def scaled(apart: Array, dimensions: int = 2) -> Array:
    """Classical multidimensional scaling (Torgerson 1952): points whose distances come near these.

    The leading eigenvectors of B = −½ J D² J, J = I − 11ᵀ/n, times the roots of their eigenvalues.

    >>> points = scaled(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]]))
    >>> [round(float(np.linalg.norm(points[a] - points[b])), 6) for a, b in [(0, 1), (1, 2)]]
    [3.0, 5.0]
    """
    square = apart**2
    centred = square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean()
    K = len(apart)
    n = min(dimensions, K)
    values, vectors = linalg.eigh(-0.5 * centred, subset_by_index=[K - n, K - 1])
    points = np.zeros((K, dimensions))
    points[:, :n] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    # an eigenvector has two directions: take that in which its largest entry is positive
    largest = points[np.abs(points).argmax(axis=0), np.arange(dimensions)]
    return points * np.where(largest < 0.0, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Map:
    """Circles on a map: ``centre`` (topics, 2) and ``radius`` (topics)."""

    centre: Array
    radius: Array


def laid_out(apart: Array, weights: Array) -> Map:
    """Topics as circles whose areas are their sizes, moved apart where they would overlap."""
    share = weights / weights.sum()
    radius = np.sqrt(share * INK * WIDTH * HEIGHT / np.pi)
    radius = np.clip(radius, SMALLEST, LARGEST)
    low = radius[:, None] + MARGIN
    high = np.array([WIDTH, HEIGHT]) - low
    points = scaled(apart)
    room = np.array([WIDTH, HEIGHT]) - 2 * (MARGIN + radius.max())
    scale = room / np.maximum(np.ptp(points, axis=0), 1e-9)
    scale = np.minimum(scale, STRETCH * scale.min())  # one axis may be drawn a little longer
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    centre = (points - middle) * scale + [WIDTH / 2, HEIGHT / 2]
    centre = np.clip(centre, low, high)
    return Map(_moved_apart(centre, radius, low, high), radius)


def _moved_apart(centre: Array, radius: Array, low: Array, high: Array) -> Array:
    """Push overlapping circles away from each other, a little at a time, inside the frame."""
    across = 2.0 * np.sqrt(WIDTH * HEIGHT / (np.pi * len(radius)))
    gap = min(WIDEST_GAP, across * (np.sqrt(FILLED) - np.sqrt(INK)))
    needed = radius[:, None] + radius + gap
    np.fill_diagonal(needed, 0.0)
    # circles at one place would not know where to go: a spiral tells them
    angle = 2.4 * np.arange(len(radius))
    at = centre + 0.01 * np.column_stack([np.cos(angle), np.sin(angle)])
    for _ in range(ROUNDS if len(radius) < MANY else FEW_ROUNDS):
        x, y = (at[:, None, axis] - at[None, :, axis] for axis in (0, 1))
        length = np.sqrt(x * x + y * y)
        lacking = np.maximum(needed - length, 0.0)
        if lacking.max() < 0.5:
            break
        push = 0.4 * lacking / np.maximum(length, 1e-9)
        at = at + np.column_stack([(push * x).sum(axis=1), (push * y).sum(axis=1)])
        at = np.clip(at, low, high)
    return at


@dataclass(frozen=True)
class Label:
    """A text at the place where its middle is."""

    x: float
    y: float
    text: str


FIGURE, LINE = 6.4, 13.0
"""How wide a letter of a label is, and how high a line."""


def placed(chart: Map, texts: Sequence[Sequence[str]]) -> list[Label | None]:
    """A label below, above, or beside each circle, the largest first; None where there is no room.

    No label covers another one, or a circle. ``texts``: what each may say, the best first.
    """
    labels: list[Label | None] = [None] * len(texts)
    taken = np.zeros((0, 4))
    circles = np.column_stack([chart.centre, chart.radius])
    for k in np.argsort(-chart.radius, kind="stable"):
        others = np.delete(circles, k, axis=0)
        for label, box in _choices(circles[k], texts[k]):
            if _is_free(box, taken, others):
                labels[k], taken = label, np.vstack([taken, box])
                break
    return labels


def _choices(circle: Array, texts: Sequence[str]) -> Iterator[tuple[Label, Array]]:
    x, y, r = circle.tolist()
    for text in texts:
        half = FIGURE * len(text) / 2
        below, beside = r + 0.7 * LINE, r + half + 3
        for dx, dy in ((0, below), (0, -below), (beside, 0), (-beside, 0)):
            a, b = x + dx, y + dy
            box = np.array([a - half, b - LINE / 2, a + half, b + LINE / 2])
            yield Label(round(a, 1), round(b, 1), text), box


def _is_free(box: Array, taken: Array, circles: Array) -> bool:
    if box[0] < 2 or box[1] < 2 or box[2] > WIDTH - 2 or box[3] > HEIGHT - 2:
        return False
    if ((box[:2] < taken[:, 2:]) & (taken[:, :2] < box[2:])).all(axis=1).any():
        return False
    nearest = np.clip(circles[:, :2], box[:2], box[2:])
    away = np.hypot(*(circles[:, :2] - nearest).T)
    return not (away < circles[:, 2]).any()


# Times of documents as periods: years, months or days of the calendar, or equal stretches.


Bins = int | Literal["year", "month", "day"]
UNITS = {"day": "D", "month": "M", "year": "Y"}
"""From the finest to the coarsest, with numpy's letters."""

MOST = 120
"""As many periods as still make a curve that one can read, unless somebody asks for more."""

LIMIT = 10_000
MONTH = re.compile(r"\d{4}-\d{2}")
EIGHT_FIGURES = re.compile(r"\d{8}")
HINT = "give ISO dates (1994, 1994-03, 1994-03-07), datetimes, or numbers; None where unknown"


@dataclass(frozen=True, eq=False)
class Periods:
    """Periods one after the other, empty ones among them too.

    ``place``  the number of the period of each item, −1 where its time is not known
    """

    names: tuple[str, ...]
    place: Array


def periods(times: Sequence[Any] | Array, bins: Bins | None = None) -> Periods:
    """The period of each time.

    ``times``  ISO dates, datetimes, or numbers; None, "", NaN and NaT are not known
    ``bins``   how many stretches of equal width, or 'year', 'month', 'day'; None: the finest of
               these three that gives at most 120 periods, and then years by twos, fives, tens …;
               numbers that are whole have a period each, as far as that is possible

    >>> periods(["1994-03-30", None, "1994-04-02"], "month")
    Periods(names=('1994-03', '1994-04'), place=array([ 0, -1,  1]))
    >>> periods([1990, 1992, 1992]).names
    ('1990', '1991', '1992')
    """
    values = _read(times)
    dates = values.dtype.kind == "M"
    known = ~(np.isnat(values) if dates else np.isnan(values))
    if not known.any():
        raise DataError("no document has a time", HINT)
    place = np.full(len(values), -1)
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        names, place[known] = _equal(values[known], int(bins))
    elif bins is not None and bins not in UNITS:
        raise LearnerError(f"bins={bins!r} is not known", f"a whole number, or of {list(UNITS)}")
    elif dates:
        names, place[known] = _calendar(values[known], bins)
    elif bins is None:
        names, place[known] = _numbers(values[known])
    else:
        raise DataError(f"bins={bins!r}, but the times are numbers", "give dates, or no bins")
    return Periods(names, place)


# reading
def _read(times: Sequence[Any] | Array) -> Array:
    """As datetime64 with NaT, or as float64 with NaN."""
    given = np.asarray(times) if hasattr(times, "dtype") else None
    if given is not None and given.dtype.kind == "M":
        return given.astype("datetime64[us]")
    found = [_one(value, d) for d, value in enumerate(times)]
    if not any(isinstance(value, np.datetime64) for value in found):
        return np.array([np.nan if value is None else value for value in found], dtype=np.float64)
    return np.array([_dated(value, d) for d, value in enumerate(found)], dtype="datetime64[us]")


def _one(value: Any, d: int) -> np.datetime64 | float | None:
    if _is_missing(value):
        return None
    try:
        return _period_text(value.strip()) if isinstance(value, str) else _object(value)
    except (ValueError, TypeError, OverflowError):
        raise DataError(f"document {d}: {shown(value)} is no time", HINT) from None


def _is_missing(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return not value or not value.strip()
    try:
        return bool(value != value)  # NaN, NaT
    except TypeError:  # pandas' NA is neither equal nor unequal
        return True


def _period_text(text: str) -> np.datetime64 | float | None:
    if MONTH.fullmatch(text):
        return np.datetime64(text, "us")
    if EIGHT_FIGURES.fullmatch(text):
        return _object(datetime.fromisoformat(text))
    try:
        number = float(text)
    except ValueError:
        return _object(datetime.fromisoformat(text))
    return None if number != number else _object(number)


def _object(value: Any) -> np.datetime64 | float:
    if isinstance(value, np.datetime64):
        fine: np.datetime64 = value.astype("datetime64[us]")
        return fine
    if isinstance(value, datetime):
        plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return np.datetime64(plain.isoformat(), "us")
    if isinstance(value, date):
        return np.datetime64(value, "us")
    if isinstance(value, bool | np.bool_) or not np.isfinite(number := float(value)):
        raise ValueError
    return number


def _dated(value: np.datetime64 | float | None, d: int) -> np.datetime64:
    """Among dates, a number of four figures is a year."""
    if value is None:
        return np.datetime64("NaT", "us")
    if isinstance(value, np.datetime64):
        return value
    if value != int(value) or not 1000 <= value <= 9999:
        raise DataError(f"document {d}: {value:g} is no date, but other times are dates", HINT)
    return np.datetime64(f"{int(value)}", "us")


# cutting
def _calendar(values: Array, bins: str | None) -> tuple[tuple[str, ...], Array]:
    for name, unit in UNITS.items():
        numbers = values.astype(f"datetime64[{unit}]").astype(np.int64)
        n = int(np.ptp(numbers)) + 1
        if bins == name or (bins is None and (n <= MOST or unit == "Y")):
            break
    if bins is None and n > MOST:
        return _numbers(numbers + 1970.0)  # numpy counts years from there
    _check_few(n)
    first = numbers.min()
    starts = (first + np.arange(n)).astype(f"datetime64[{unit}]")
    return tuple(map(str, starts)), numbers - first


def _numbers(values: Array) -> tuple[tuple[str, ...], Array]:
    whole = bool((values == np.floor(values)).all())
    width = _width(float(np.ptp(values)), whole)
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


def _width(span: float, whole: bool) -> float:
    """1 for whole numbers that are not too many, or a round width that makes some 20 to 60."""
    if span == 0.0 or (whole and span < MOST):
        return 1.0
    power = 10.0 ** np.floor(np.log10(span / 50.0))
    width = float(next(power * m for m in (1, 2, 5, 10) if power * m >= span / 50.0))
    return max(width, 1.0) if whole else width


def _equal(values: Array, n: int) -> tuple[tuple[str, ...], Array]:
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
        told = days if len(np.unique(days)) == n else starts
        return tuple(map(str, told)), place
    return tuple(f"{a:g}–{b:g}" for a, b in pairwise(edges)), place


def _check_few(n: int) -> None:
    if n > LIMIT:
        raise DataError(f"{n:,} periods are more than {LIMIT:,}", "choose longer ones by bins=")


# Topics over time: how large a part each had in every period.


@dataclass(frozen=True, eq=False)
class OverTime:
    """A table of periods × topics.

    ``periods``    their names, in order; periods without documents are among them
    ``shares``     (periods, topics), rows add up to 1; NaN where a period has no words
    ``documents``  how many documents each period has
    ``skipped``    how many documents have no time
    """

    periods: tuple[str, ...]
    shares: Array
    documents: Array
    skipped: int


def topics_over_time(
    documents: Array,
    lengths: Array | Sequence[float] | None,
    times: Sequence[Any] | Array,
    bins: Bins | None = None,
) -> OverTime:
    """p(topic | period) = Σ_d n_d p(topic | d) / Σ_d n_d over the documents d of the period.

    ``documents``  p(topic | document), as a model's ``documents_``
    ``lengths``    n_d, words in each document; None: every document counts the same
    ``times``      ISO dates, datetimes or numbers; None where there is none
    ``bins``       how many periods, or 'year', 'month', 'day'; see `softcount.topics.report`

    >>> table = topics_over_time([[1, 0], [0.5, 0.5], [0, 1]], [6, 2, 9], [1990, 1990, 1991])
    >>> table.periods, table.shares.tolist()
    (('1990', '1991'), [[0.875, 0.125], [0.0, 1.0]])
    """
    theta = np.asarray(documents, dtype=np.float64)
    n = len(theta)
    weight = np.ones(n) if lengths is None else np.asarray(lengths, dtype=np.float64)
    for name, given in (("times", times), ("lengths", weight)):
        if len(given) != n:
            raise DataError(
                f"there are {n:,} documents but {len(given):,} {name}",
                f"give {name} for each document, in the same order",
            )
    found = periods(times, bins)
    known = np.flatnonzero(found.place >= 0)
    shape = (len(found.names), n)
    place = found.place[known]
    counted = sparse.csr_matrix((weight[known], (place, known)), shape=shape) @ theta
    words = np.bincount(place, weight[known], minlength=shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(words[:, None] > 0.0, counted / words[:, None], np.nan)
    sizes = np.bincount(place, minlength=shape[0])
    return OverTime(found.names, shares, sizes, n - len(known))


# The parts of a page about topics: the map, the list, a section for each topic, time curves.


WITHOUT_SCRIPT = 12
"""How many words of a topic stand on the page itself."""

IN_A_LINE, ON_THE_MAP, NEAREST = 8, 2, 4
NAMING = 4
"""λ in tenths of the words that stand for a topic: with more of it, a word that all topics have
(in news: said) comes first in most of them."""

LONGEST_LABEL = 22


@dataclass(frozen=True)
class Example:
    """A document that is typical of a topic; ``html`` is the part of it to show, or nothing."""

    name: str
    share: float
    html: str = ""


@dataclass(frozen=True, eq=False)
class TopicsShown:
    """Everything that a page shows of topics.

    ``weights``   the share of all words that each topic has
    ``names``     the words in ``words.chosen`` by their columns, in order, fit for a page
    ``apart``     how far topics are from each other
    ``mainly``    how many documents have each topic as their largest; None if that is not known
    ``examples``  typical documents of each topic, if documents are known
    ``table``     the topics over time, if documents have times
    """

    weights: Array
    words: TopicWords
    names: Mapping[int, str]
    apart: Array
    mainly: Array | None = None
    examples: Sequence[Sequence[Example]] = ()
    table: OverTime | None = None

    @property
    def order(self) -> list[int]:
        """The largest topic first."""
        return [int(k) for k in np.argsort(-self.weights, kind="stable")]

    def top(self, k: int, n: int) -> list[str]:
        """The words that stand for a topic where there is room for a few."""
        return [self.names[column] for column, *_ in self.words.top(k, n, NAMING)]


def in_a_line(shown: TopicsShown, k: int, n: int = IN_A_LINE) -> str:
    """A topic's words one after the other, as HTML."""
    return " ".join(f"<bdi>{escape(word)}</bdi>" for word in shown.top(k, n))


def percent(share: float) -> str:
    """A share as readers like it, in one piece.

    >>> percent(0.0512), percent(0.00012)
    ('5.1\\xa0%', '0.012\\xa0%')
    """
    figure = f"{100 * share:.1f}" if share >= 0.001 or not share else f"{100 * share:.2g}"
    return f"{figure}\u00a0%"


# the map
def topic_map(shown: TopicsShown) -> str:
    """The topics as circles on a plane, each a link to what is said of it."""
    chart = laid_out(shown.apart, shown.weights)
    texts = [_labels(shown.top(k, ON_THE_MAP)) for k in range(len(shown.weights))]
    labels = placed(chart, texts)
    parts = []
    for k in shown.order:  # small ones last, so that they lie on top
        (x, y), r = chart.centre[k].round(1), chart.radius[k].round(1)
        said = f"topic {k}: {' '.join(shown.top(k, IN_A_LINE))}"
        number = f'<text class="number" x="{x}" y="{y}">{k}</text>' if r >= 8 else ""
        label = labels[k]
        words = "" if label is None else _text(label.x, label.y, label.text)
        parts.append(
            f'<a href="#topic-{k}" aria-label="{escape(said)}"><title>{escape(said)}</title>'
            f'<circle cx="{x}" cy="{y}" r="{r}" data-r="{r}"/>{number}{words}</a>'
        )
    frame = f'<rect class="frame" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="4"/>'
    return (
        f'<svg class="map" viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="map of topics">'
        f"{frame}{''.join(parts)}</svg>"
    )


def _labels(words: Sequence[str]) -> list[str]:
    """Two words, or one, if they are not too long to stand on a map."""
    texts = [" ".join(words[:n]) for n in range(len(words), 0, -1)]
    return [text for text in texts if len(text) <= LONGEST_LABEL]


def _text(x: float, y: float, text: str) -> str:
    return f'<text class="label" x="{x}" y="{y}">{escape(text)}</text>'


# the list
def topic_list(shown: TopicsShown) -> str:
    """All topics, the largest first, a line each."""
    largest = float(shown.weights.max()) or 1.0
    lines = "".join(
        f'<li><a href="#topic-{k}"><span class="number">{k}</span>'
        f'<span class="length" style="--b:{100 * shown.weights[k] / largest:.1f}"></span>'
        f'<span class="size">{percent(shown.weights[k])}</span>'
        f'<span class="some">{in_a_line(shown, k)}</span></a></li>'
        for k in shown.order
    )
    return f'<ol class="topics">{lines}</ol>'


# a topic
def topic_section(shown: TopicsShown, k: int) -> str:
    """What there is to say of one topic."""
    size = f"{percent(shown.weights[k])} of all words"
    if shown.mainly is not None:
        n = int(shown.mainly[k])
        size += f" · the largest in {n:,} document{'s' * (n != 1)}"
    return (
        f'<section class="topic" id="topic-{k}"><h2>Topic {k}<small>{size}</small></h2>'
        f"{_words(shown, k)}{_time(shown, k)}{_examples(shown, k)}{_near(shown, k)}"
        "</section>"
    )


def _words(shown: TopicsShown, k: int) -> str:
    """Bars of how often a word is in the topic, before bars of how often it is anywhere."""
    rows = shown.words.top(k, WITHOUT_SCRIPT, DEFAULT)
    own = [shown.weights[k] * chance for _, chance, _ in rows]
    every = [max(a, b) for (_, _, a), b in zip(rows, own, strict=True)]
    full = max(every, default=1.0)
    lines = "".join(
        f'<li style="--a:{100 * a / full:.1f};--b:{100 * b / full:.1f}">'
        f"<bdi>{escape(shown.names[column])}</bdi><b></b>"
        f"<i>{100 * chance:.2f}</i><i>{100 * b / a:.0f}</i></li>"
        for (column, chance, _), a, b in zip(rows, every, own, strict=True)
    )
    return (
        '<ol class="words"><li class="head"><span></span><span></span>'
        "<i>% of topic</i><i>% of word</i></li>"
        f"{lines}</ol>"
    )


def _examples(shown: TopicsShown, k: int) -> str:
    if not shown.examples or not shown.examples[k]:
        return ""
    lines = "".join(
        f'<li dir="auto">{one.html} <small><bdi>{escape(one.name)}</bdi>&nbsp;·&nbsp;'
        f"{percent(one.share)}</small></li>"
        for one in shown.examples[k]
    )
    return f'<h3>Typical documents</h3><ul class="examples">{lines}</ul>'


def _near(shown: TopicsShown, k: int) -> str:
    others = [int(j) for j in np.argsort(shown.apart[k], kind="stable") if j != k][:NEAREST]
    if not others:
        return ""
    lines = "".join(
        f'<li><a href="#topic-{j}">topic {j}</a> {in_a_line(shown, j, 4)} '
        f"({shown.apart[k, j]:.2f})</li>"
        for j in others
    )
    head = "<h3>Nearest topics (0: the same, 1: without a common word)</h3>"
    return f'<div class="near">{head}<ul>{lines}</ul></div>'


# time
CURVE_WIDTH, CURVE_HEIGHT = 200, 40
BOX = f'class="curve" viewBox="0 0 {CURVE_WIDTH} {CURVE_HEIGHT}" preserveAspectRatio="none"'


def time_curves(shown: TopicsShown) -> str:
    """A small chart for each topic, each on its own scale; the peak is said in figures."""
    table = shown.table
    if table is None:
        return ""
    cells = "".join(
        f'<a href="#topic-{k}"><span class="some"><b>{k}</b> {in_a_line(shown, k, 4)}</span>'
        f'<svg {BOX} aria-hidden="true">{_area(table, k)}</svg>'
        f"<small>{escape(_peak(table, k))}</small></a>"
        for k in shown.order
    )
    some = "1 document has" if table.skipped == 1 else f"{table.skipped:,} documents have"
    skipped = f" {some} no time." if table.skipped else ""
    n = len(table.periods)
    told = (
        f"{table.periods[0]} to {table.periods[-1]}, {n} period{'s' * (n != 1)}: the share of "
        f"each topic, on its own scale. Below each: where it is highest.{skipped}"
    )
    return f'<h2>Over time</h2><p class="scale">{escape(told)}</p><div class="times">{cells}</div>'


def _area(table: OverTime, k: int) -> str:
    return f'<path class="area" id="curve-{k}" d="{_path(table.shares[:, k])}"/>'


def _time(shown: TopicsShown, k: int) -> str:
    table = shown.table
    if table is None:
        return ""
    ends = f"<span>{escape(table.periods[0])}</span><span>{escape(table.periods[-1])}</span>"
    said = escape(_peak(table, k))
    return (
        f'<h3>Over time: {said}</h3><svg {BOX} role="img" aria-label="over time: {said}">'
        f'<use href="#curve-{k}"/></svg><div class="ends sans">{ends}</div>'
    )


def _peak(table: OverTime, k: int) -> str:
    column = np.nan_to_num(table.shares[:, k], nan=-1.0)
    best = int(column.argmax())
    if column[best] <= 0.0:
        return "none"
    return f"highest in {table.periods[best]}, {percent(column[best])}"


def _path(values: Array) -> str:
    """An area under the known values, in pieces where some are not known."""
    known = np.isfinite(values)
    highest = float(values[known].max(initial=0.0)) or 1.0
    x = np.linspace(0.0, CURVE_WIDTH, len(values)) if len(values) > 1 else np.array([0.0])
    y = CURVE_HEIGHT * (1.0 - np.where(known, values, 0.0) / highest)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    pieces = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        points = [f"{x[i]:.4g} {y[i]:.3g}" for i in range(first, last)]
        if len(points) == 1:  # a period alone has some width too
            points = [f"{x[first] - 1:.4g} {y[first]:.3g}", f"{x[first] + 1:.4g} {y[first]:.3g}"]
        left, right = points[0].split()[0], points[-1].split()[0]
        pieces.append(f"M{left} {CURVE_HEIGHT}L{'L'.join(points)}L{right} {CURVE_HEIGHT}Z")
    return "".join(pieces)


# Documents that are typical of topics.


LONGEST_NAME = 80
LOOKED_AT = 40
"""How many documents of a topic are looked at for some that do not read the same."""

DOUBT = 20.0
READ_THE_SAME = 80
"""Documents of which so many letters are the same are the same to a reader: quoted, or reposted."""

SIGNS = re.compile(r"<[^>]*>|[\W_]+")


def typical(shares: Array, weights: Array, sizes: Array | None) -> list[Array]:
    """For each topic the documents that have most of it, best first.

    By (n p(topic | document) + c p(topic)) / (n + c) with c = 20: of a document of few words one
    cannot be sure. Only documents that have more of the topic than is usual, or as much.

    >>> typical(np.array([[0.9, 0.1], [1.0, 0.0], [0.0, 1.0]]), np.array([0.6, 0.4]), [90, 1, 50])
    [array([0, 1]), array([2])]
    """
    sure = np.ones(len(shares))
    if sizes is not None:
        n = np.asarray(sizes, dtype=np.float64)
        sure = n / (n + DOUBT)
    found = []
    for k, usual in enumerate(weights):
        rank = sure * (shares[:, k] - usual)
        most = min(LOOKED_AT, len(rank))
        best = np.argpartition(-rank, most - 1)[:most] if most else np.arange(0)
        best = best[np.lexsort((best, -rank[best]))]
        found.append(best[(rank[best] >= 0.0) & (shares[best, k] > 0.0)])
    return found


def examples(
    numbers: Array, shares: Array, telling: dict[str, float], texts: Any, names: Any
) -> list[Example]:
    """The first few of these documents that do not read the same; ``shares`` of the topic."""
    found: dict[str, Example] = {}
    for one in _made(numbers, shares, telling, texts, names):
        found.setdefault(SIGNS.sub("", one.html or one.name)[:READ_THE_SAME], one)
        if len(found) == EXAMPLES:
            break
    return list(found.values())


def _made(
    numbers: Array, shares: Array, telling: dict[str, float], texts: Any, names: Any
) -> Iterator[Example]:
    for d in numbers.tolist():
        name = f"document {d}" if names is None else shortened(clean(names[d]), LONGEST_NAME)
        html = "" if texts is None else snippet(as_text(texts[d]), telling)
        if html or texts is None:
            yield Example(name, float(shares[d]), html)


def as_text(document: Any) -> str:
    """A text, or words put together to one."""
    if isinstance(document, str):
        return document
    return " ".join(map(str, document)) if isinstance(document, Sequence) else str(document)


def telling_words(words: TopicWords, names: Mapping[int, str], k: int) -> dict[str, float]:
    """The words of a topic in lower case, with log [p(w | k) / p(w)]; ``names`` by columns."""
    return {
        names[column].lower(): max(math.log(chance / overall), 0.1)
        for column, chance, overall in words.top(k, words.n)
    }


# A page about a topic model: self-contained, readable without a script, better with it.


LONGEST_WORD = 40
RESTING = (
    "Topics that use the same words stand near each other; the area of a circle is the topic's "
    "share of all words."
)
BARS = (
    "Blue: how often a word is in this topic; grey: how often it is in all. Figures: how many "
    "per cent of the topic the word is, and how many per cent of the word's uses are here."
)


def topic_report(
    model: Any,
    *,
    texts: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    times: Sequence[Any] | Array | None = None,
    lengths: Array | Sequence[float] | None = None,
    title: str = "Topics",
) -> str:
    """A page (HTML) about a fitted topic model: words, map, typical documents, sizes, curves.

    ``texts``    the documents that were learned from, to show some
    ``names``    what the documents are called; without names they have numbers
    ``times``    when they are from, see `softcount.topics.report.topics_over_time`
    ``lengths``  words in each document; without them words are counted in the texts, and without
                 texts every document counts the same

    >>> from softcount.topics import LDA
    >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
    >>> topic_report(LDA(2).fit(notes), texts=notes)[:15]
    '<!doctype html>'
    """
    topics, weights = model.topics_, model.weights_ / model.weights_.sum()
    documents = _documents(model, texts, names, times, lengths)
    words, called = topic_words(topics, weights), model.word_names()
    fit_words = {int(w): shortened(clean(called[w]), LONGEST_WORD) for w in words.chosen}
    shown = TopicsShown(weights, words, fit_words, distances(topics))
    if documents is not None:
        shown = _with_documents(shown, documents)
    return _page(model, shown, title)


@dataclass(frozen=True, eq=False)
class _Documents:
    """What is known of documents: ``shares``, p(topic | document), ``sizes``, words in each …"""

    shares: Array
    sizes: Array | None
    texts: Sequence[Any] | None
    names: Sequence[Any] | None
    times: Sequence[Any] | Array | None


def _documents(model: Any, texts: Any, names: Any, times: Any, lengths: Any) -> _Documents | None:
    texts, names = _by_number(texts), _by_number(names)
    given = {"texts": texts, "names": names, "times": times, "lengths": lengths}
    given = {what: one for what, one in given.items() if one is not None}
    shares: Any = getattr(model, "documents_", None)
    if shares is None and texts is not None:  # a model from a file may not have kept them
        shares = model.transform(texts)
    if shares is None and given:
        raise DataError(
            f"this model knows of no documents to have {', '.join(given)}", "give texts"
        )
    for what, one in given.items():
        if len(one) != len(shares):
            raise DataError(
                f"there are {len(one):,} {what}, but {len(shares):,} documents in the model",
                f"give the {what} of those that were learned from, in the same order",
            )
    return (
        None if shares is None else _Documents(shares, _sizes(texts, lengths), texts, names, times)
    )


def _by_number(given: Any) -> Any:
    """Entries in their order: a column of a data frame has other numbers, a generator none."""
    return given if given is None or isinstance(given, Sequence) else list(given)


def _sizes(texts: Sequence[Any] | None, lengths: Any) -> Array | None:
    if lengths is not None:
        return np.asarray(lengths, dtype=np.float64)
    return None if texts is None else np.array([len(as_text(text).split()) for text in texts])


def _with_documents(shown: TopicsShown, known: _Documents) -> TopicsShown:
    shares, times = known.shares, known.times
    best = typical(shares, shown.weights, known.sizes)
    some = shares if known.sizes is None else shares[known.sizes > 0]  # others have no largest
    return replace(
        shown,
        mainly=np.bincount(some.argmax(axis=1), minlength=shares.shape[1]),
        examples=[
            examples(
                numbers,
                shares[:, k],
                telling_words(shown.words, shown.names, k),
                known.texts,
                known.names,
            )
            for k, numbers in enumerate(best)
        ],
        table=None if times is None else topics_over_time(shares, known.sizes, times),
    )


def _page(model: Any, shown: TopicsShown, title: str) -> str:
    K, V = model.topics_.shape
    known = "" if shown.mainly is None else f" in {int(shown.mainly.sum()):,} documents"
    lead = f"{K:,} topic{'s' * (K != 1)} over {V:,} words{known}, by {type(model).__name__}."
    sections = "".join(topic_section(shown, k) for k in shown.order)
    body = (
        '<div class="explorer"><div class="overview">'
        f'{topic_map(shown)}<p class="status" aria-live="polite">{escape(RESTING)}</p>'
        f'{topic_list(shown)}{KEYS}</div><div class="chosen">{DIAL}'
        f'<p class="scale">{escape(BARS)}</p>{sections}</div></div>'
        f"{time_curves(shown)}<h2>How it was learned</h2>{_end(model, title)}"
        f'<script type="application/json" id="topic-data">{_data(shown)}</script>'
    )
    return document(clean(title), lead, body, _part("report.css"), _part("report.js"))


KEYS = (
    '<p class="keys sans"><kbd>↑</kbd> <kbd>↓</kbd> in this list, <kbd>←</kbd> <kbd>→</kbd> '
    "anywhere, or a topic's number.</p>"
)
DIAL = (
    '<div class="dial" hidden><label for="relevance">Words that are</label><span>only here</span>'
    f'<input type="range" id="relevance" min="0" max="10" value="{DEFAULT}" autocomplete="off" '
    f'aria-valuetext="{DEFAULT / 10}"><span>common here</span>'
    f'<span>λ = <output id="relevance-value" for="relevance">{DEFAULT / 10}</output></span></div>'
)


def _end(model: Any, title: str) -> str:
    fit = getattr(model, "fit_", None)
    if fit is None:  # a model from a file has no steps to show
        return signed(model.signature_)
    last = fit.trace[-1]
    told = (
        f"perplexity {last.perplexity:,.1f} · objective {last.objective:,.1f} · {last.step} steps"
    )
    return f'<p class="scale">{escape(told.replace("-", "−"))}</p>{ending(fit, clean(title))}'


def _data(shown: TopicsShown) -> str:
    """What the script works with, as JSON that cannot end the element it stands in."""
    words = shown.words
    data = {
        "n": words.n,
        "largest": LARGEST,
        "weights": [float(f"{weight:.4g}") for weight in shown.weights],
        "words": list(shown.names.values()),
        "rarity": words.rarity.tolist(),
        "spread": words.spread,
        "places": [places.tolist() for places in words.places],
        "logs": [logs.tolist() for logs in words.logs],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
