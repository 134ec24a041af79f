"""The page about topics: their words, a map, typical documents, change over time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from softcount.core.errors import DataError
from softcount.core.types import Array, FloatArray, IntArray
from softcount.mixture.report import EXAMPLES
from softcount.report.charts import trace_curve
from softcount.report.page import render_page
from softcount.report.text import SnippetPart, clean, find_snippet, plural, shorten
from softcount.topics.over_time import OverTime, topics_over_time

TENTHS, DEFAULT = range(11), 6
"""λ, the weight of how common a word is, goes from 0 to 1 by tenths; where the slider begins."""

FINE = 1000
"""Logarithms are kept in thousandths of a nat."""

MOST_WORDS, FEWEST_WORDS, ALL_WORDS = 30, 10, 3000
WIDEST = 8
"""Largest number of topics that are kept of a word."""


class TopicWords(NamedTuple):
    """The words that a page may come to show.

    ``n``       how many words a topic shows at a time
    ``chosen``  which columns of the topics these words are, in order
    ``rarity``  −log p(w) of each, in thousandths of a nat
    ``places``  for each topic, where its words stand among ``chosen``
    ``logs``    for each topic, −log p(w | k) of these, in thousandths of a nat
    ``spread``  for each word, its likeliest topics and p(k | w) in per cent: k, p, k, p …
    """

    n: int
    chosen: IntArray
    rarity: IntArray
    places: Sequence[IntArray]
    logs: Sequence[IntArray]
    spread: Sequence[Sequence[int]]

    def top(self, k: int, n: int, tenths: int = DEFAULT) -> list[tuple[int, float, float]]:
        """The most relevant words of a topic: (column, p(w | k), p(w))."""
        places, logs = self.places[k], self.logs[k]
        rarity = self.rarity[places]
        best = np.argsort(-_rank(logs, rarity, tenths), kind="stable")[:n]
        p, overall = np.exp(-logs[best] / FINE), np.exp(-rarity[best] / FINE)
        columns = self.chosen[places[best]]
        return list(zip(columns.tolist(), p.tolist(), overall.tolist(), strict=True))


def choose_words(topics: FloatArray, weights: FloatArray) -> TopicWords:
    """Of each topic the words that are among its most relevant for any λ of the slider.

    >>> words = choose_words(np.array([[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]]), np.array([0.5, 0.5]))
    >>> [words.top(k, 1, tenths)[0][0] for k in (0, 1) for tenths in (0, 10)]
    [1, 0, 2, 0]
    """
    K = len(topics)
    n = int(np.clip(ALL_WORDS // K, FEWEST_WORDS, MOST_WORDS))
    weights = weights / weights.sum()
    overall = weights @ topics
    rarity = _thousandths(overall)
    columns, logs = [], []
    for row in topics:
        possible = np.flatnonzero((row > 0.0) & (overall > 0.0))
        fine = _thousandths(row[possible])
        kept = np.arange(len(possible))
        if len(possible) > n:
            best = []
            for tenths in TENTHS:
                ranks = _rank(fine, rarity[possible], tenths)
                good = np.flatnonzero(ranks >= np.partition(ranks, -n)[-n])
                best.append(good[np.argsort(-ranks[good], kind="stable")[:n]])
            kept = np.unique(np.concatenate(best))
        columns.append(possible[kept])
        logs.append(fine[kept])
    chosen = np.unique(np.concatenate(columns))
    places = [np.searchsorted(chosen, one) for one in columns]
    # p(k | w) of a word's likeliest topic, and of the others that have 2 % of it
    joint = topics[:, chosen] * weights[:, None]
    share = np.rint(100.0 * joint / np.maximum(joint.sum(axis=0), 1e-300)).astype(np.int64)
    order = np.argsort(-share, axis=0, kind="stable")[:WIDEST]
    spread = [
        [int(x) for k in ks if share[k, w] >= 2 or k == ks[0] for x in (k, share[k, w])]
        for w, ks in enumerate(order.T)
    ]
    return TopicWords(n, chosen, rarity[chosen], places, logs, spread)


def _thousandths(probabilities: FloatArray) -> IntArray:
    with np.errstate(divide="ignore"):
        logs = -FINE * np.log(probabilities)
    # whole, so that the page's script ranks words exactly as is done here
    whole: IntArray = np.rint(np.minimum(logs, 1e6)).astype(np.int64)
    return whole


def _rank(logs: IntArray, rarity: IntArray, tenths: int) -> IntArray:
    """Words by λ log p(w | k) + (1 − λ) log [p(w | k) / p(w)] (Sievert & Shirley 2014).

    λ = 1 ranks words by how common they are in the topic, 0 by how much more common than elsewhere.
    As whole numbers: ten times as much, in thousandths; of equals the commoner word ranks higher.
    """
    relevant = (10 - tenths) * rarity - 10 * logs
    ranks: IntArray = (relevant << 20) - logs
    return ranks


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
"""From this number of topics on, they are moved in few rounds only: each is quadratic."""

WORK = 4 * 10**7
"""Rough limit on words × pairs of topics that are looked at."""


def measure_distances(topics: FloatArray) -> FloatArray:
    """√JS for every pair of topics, (topics, topics): 0 for equal ones, 1 without common words.

    JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2 in bits. Its root is a distance (Endres &
    Schindelin 2003). Where there are many topics, rare words that are commonest in the same topic
    count as one word, which can only make distances smaller.

    >>> measure_distances(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])).round(3).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    phi = np.asarray(topics)
    K, V = phi.shape
    most = max(100, 2 * WORK // K**2 - K)
    if most < V:  # the commonest words as they are, the others by the topic that has most of them
        order = np.argsort(-phi.sum(axis=0), kind="stable")
        common, rare = phi[:, order[:most]], phi[:, order[most:]]
        group = (np.arange(V - most), rare.argmax(axis=0))
        member = sparse.csr_matrix((np.ones(V - most), group), shape=(V - most, K))
        phi = np.column_stack([common, rare @ member])
    phi = phi.astype(np.float32)
    inside = _sum_x_log_x(phi)
    result = np.zeros((K, K))
    for k in range(K - 1):
        between = _sum_x_log_x(np.float32(0.5) * (phi[k] + phi[k + 1 :]))
        result[k, k + 1 :] = 0.5 * (inside[k] + inside[k + 1 :]) - between
    result = np.sqrt(np.clip(result, 0.0, 1.0))
    return result + result.T


def _sum_x_log_x(rows: FloatArray) -> FloatArray:
    """Σ x log₂ x of each row, taken in single precision, which is enough for a picture."""
    x = np.maximum(rows, 1e-30, dtype=np.float32)
    total: FloatArray = (x * np.log2(x)).sum(axis=1, dtype=np.float64)
    return total


def embed(apart: FloatArray, dimensions: int = 2) -> FloatArray:
    """Classical multidimensional scaling (Torgerson 1952): points whose distances come near these.

    The leading eigenvectors of B = −½ J D² J, J = I − 11ᵀ/n, times the roots of their eigenvalues.

    >>> points = embed(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]]))
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


class TopicMap(NamedTuple):
    """Circles on a map: ``centre`` (topics, 2) and ``radius`` (topics)."""

    centre: FloatArray
    radius: FloatArray


def lay_out_map(apart: FloatArray, weights: FloatArray) -> TopicMap:
    """Topics as circles whose areas are their sizes, moved apart where they would overlap."""
    radius = np.sqrt(weights / weights.sum() * INK * WIDTH * HEIGHT / np.pi)
    radius = np.clip(radius, SMALLEST, LARGEST)
    low = radius[:, None] + MARGIN
    high = np.array([WIDTH, HEIGHT]) - low
    points = embed(apart)
    room = np.array([WIDTH, HEIGHT]) - 2 * (MARGIN + radius.max())
    scale = room / np.maximum(np.ptp(points, axis=0), 1e-9)
    scale = np.minimum(scale, STRETCH * scale.min())  # one axis may be drawn a little longer
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    centre = np.clip((points - middle) * scale + [WIDTH / 2, HEIGHT / 2], low, high)
    # overlapping circles are pushed away from each other, a little at a time, inside the frame
    across = 2.0 * np.sqrt(WIDTH * HEIGHT / (np.pi * len(radius)))
    gap = min(WIDEST_GAP, across * (np.sqrt(FILLED) - np.sqrt(INK)))
    needed = radius[:, None] + radius + gap
    np.fill_diagonal(needed, 0.0)
    # circles at one place would not know where to go: a spiral tells them
    angle = 2.4 * np.arange(len(radius))
    centre = centre + 0.01 * np.column_stack([np.cos(angle), np.sin(angle)])
    for _ in range(ROUNDS if len(radius) < MANY else FEW_ROUNDS):
        x, y = (centre[:, None, axis] - centre[None, :, axis] for axis in (0, 1))
        length = np.sqrt(x * x + y * y)
        lacking = np.maximum(needed - length, 0.0)
        if lacking.max() < 0.5:
            break
        push = 0.4 * lacking / np.maximum(length, 1e-9)
        centre = centre + np.column_stack([(push * x).sum(axis=1), (push * y).sum(axis=1)])
        centre = np.clip(centre, low, high)
    return TopicMap(centre, radius)


class MapLabel(NamedTuple):
    """A text at the place where its middle is."""

    x: float
    y: float
    text: str


LETTER, LINE = 6.4, 13.0
"""Width of a letter of a label, and height of a line."""


def place_labels(chart: TopicMap, texts: Sequence[Sequence[str]]) -> list[MapLabel | None]:
    """A label below, above, or beside each circle, the largest first; None where there is no room.

    No label covers another one, or a circle. ``texts``: what each may say, the best first.
    """
    labels: list[MapLabel | None] = [None] * len(texts)
    taken = np.zeros((0, 4))
    circles = np.column_stack([chart.centre, chart.radius])
    for k in np.argsort(-chart.radius, kind="stable"):
        others = np.delete(circles, k, axis=0)
        for x, y, text in _list_places(circles[k], texts[k]):
            half = LETTER * len(text) / 2
            box = np.array([x - half, y - LINE / 2, x + half, y + LINE / 2])
            inside = box.min() >= 2 and box[2] <= WIDTH - 2 and box[3] <= HEIGHT - 2
            covers = (box[:2] < taken[:, 2:]) & (taken[:, :2] < box[2:])
            nearest = np.clip(others[:, :2], box[:2], box[2:])
            away = np.hypot(*(others[:, :2] - nearest).T)
            if inside and not covers.all(axis=1).any() and not (away < others[:, 2]).any():
                labels[k] = MapLabel(round(x, 1), round(y, 1), text)
                taken = np.vstack([taken, box])
                break
    return labels


def _list_places(circle: FloatArray, texts: Sequence[str]) -> Iterator[tuple[float, float, str]]:
    """Where the middle of a label may be: below, above, right and left of a circle."""
    x, y, r = circle.tolist()
    for text in texts:
        below, beside = r + 0.7 * LINE, r + LETTER * len(text) / 2 + 3
        for dx, dy in ((0, below), (0, -below), (beside, 0), (-beside, 0)):
            yield x + dx, y + dy, text


LONGEST_NAME = 80
CANDIDATES = 40
"""Number of documents of a topic that are searched for some that do not read the same."""
DOUBT = 20.0
READ_THE_SAME = 80
"""Documents that begin with the same letters, this many, read the same: quoted, or reposted."""
SIGNS = re.compile(r"<[^>]*>|[\W_]+")


class TypicalDocument(NamedTuple):
    """A document that is typical of a topic; ``snippet`` is the part of it to show, or nothing."""

    name: str
    share: float
    snippet: Sequence[SnippetPart] = ()


def find_typical(
    posteriors: FloatArray, weights: FloatArray, sizes: Array | None
) -> list[IntArray]:
    """For each topic the documents that have most of it, best first.

    By (n p(topic | document) + c p(topic)) / (n + c) with c = 20: of a document of few words one
    cannot be sure. Only documents that have more of the topic than is usual, or as much.

    >>> posteriors = np.array([[0.9, 0.1], [1.0, 0.0], [0.0, 1.0]])
    >>> find_typical(posteriors, np.array([0.6, 0.4]), [90, 1, 50])
    [array([0, 1]), array([2])]
    """
    sure = np.ones(len(posteriors))
    if sizes is not None:
        n = np.asarray(sizes, dtype=np.float64)
        sure = n / (n + DOUBT)
    found = []
    for k, usual in enumerate(weights):
        rank = sure * (posteriors[:, k] - usual)
        most = min(CANDIDATES, len(rank))
        best = np.argpartition(-rank, most - 1)[:most] if most else np.arange(0)
        best = best[np.lexsort((best, -rank[best]))]
        found.append(best[(rank[best] >= 0.0) & (posteriors[best, k] > 0.0)])
    return found


def choose_examples(
    numbers: IntArray, shares: FloatArray, telling: dict[str, float], texts: Any, names: Any
) -> list[TypicalDocument]:
    """The first few of these documents that do not read the same; ``shares`` of the topic."""
    found: dict[str, TypicalDocument] = {}
    for d in numbers.tolist():
        name = f"document {d}" if names is None else shorten(clean(names[d]), LONGEST_NAME)
        snippet = [] if texts is None else find_snippet(join_text(texts[d]), telling)
        if snippet or texts is None:
            read = "".join(part.text for part in snippet) or name
            one = TypicalDocument(name, float(shares[d]), snippet)
            found.setdefault(SIGNS.sub("", read)[:READ_THE_SAME], one)
        if len(found) == EXAMPLES:
            break
    return list(found.values())


def join_text(document: Any) -> str:
    """A text, or words put together to one."""
    if isinstance(document, str):
        return document
    return " ".join(map(str, document)) if isinstance(document, Sequence) else str(document)


WORDS_WITHOUT_SCRIPT = 12
"""Number of words of a topic on the page itself."""
WORDS_IN_LINE, WORDS_ON_MAP, NEAREST = 8, 2, 4
NAMING = 4
"""λ in tenths of the words that stand for a topic: with more of it, a word that all topics have
(in news: said) comes first in most of them."""
LONGEST_LABEL, LONGEST_WORD = 22, 40
CURVE = (200, 40)
"""Width and height of a curve over time."""


@dataclass(frozen=True, eq=False)
class TopicsSummary:
    """Everything that a page shows of topics.

    ``weights``   the share of all words that each topic has
    ``names``     the words in ``words.chosen`` by their columns, in order, fit for a page
    ``apart``     how far topics are from each other
    ``mainly``    how many documents have each topic as their largest; None if that is not known
    ``examples``  typical documents of each topic, if documents are known
    ``table``     the topics over time, if documents have dates
    """

    weights: FloatArray
    words: TopicWords
    names: Mapping[int, str]
    apart: FloatArray
    mainly: IntArray | None = None
    examples: Sequence[Sequence[TypicalDocument]] = ()
    table: OverTime | None = None

    @property
    def order(self) -> list[int]:
        """The largest topic first."""
        return [int(k) for k in np.argsort(-self.weights, kind="stable")]

    @cached_property
    def _naming(self) -> list[list[str]]:
        """The words that stand for each topic."""
        every = (self.words.top(k, WORDS_IN_LINE, NAMING) for k in range(len(self.weights)))
        return [[self.names[column] for column, *_ in words] for words in every]

    def top(self, k: int, n: int = WORDS_IN_LINE) -> list[str]:
        """The words that stand for a topic where there is room for a few, at most eight."""
        return self._naming[k][:n]

    def list_words(self, k: int) -> list[tuple[str, float, float, float, float]]:
        """A topic's most relevant words: name, bars of how often it is anywhere and in the topic,
        and how many per cent of the topic it is, and of its uses are here.
        """
        rows = self.words.top(k, WORDS_WITHOUT_SCRIPT, DEFAULT)
        own = [self.weights[k] * p for _, p, _ in rows]
        every = [max(anywhere, here) for (_, _, anywhere), here in zip(rows, own, strict=True)]
        full = max(every, default=1.0)
        return [
            (self.names[column], 100 * a / full, 100 * b / full, 100 * p, 100 * b / a)
            for (column, p, _), a, b in zip(rows, every, own, strict=True)
        ]

    def find_nearest(self, k: int) -> list[tuple[int, float]]:
        """The topics that are nearest to one, and how far they are."""
        order = np.argsort(self.apart[k], kind="stable")
        return [(int(j), float(self.apart[k, j])) for j in order if j != k][:NEAREST]

    def list_telling(self, k: int) -> dict[str, float]:
        """The words of a topic in lower case, with log [p(w | k) / p(w)]."""
        return {
            self.names[column].lower(): max(math.log(p / overall), 0.1)
            for column, p, overall in self.words.top(k, self.words.n)
        }

    def describe_peak(self, k: int) -> str:
        """When a topic had its largest share."""
        assert self.table is not None
        column = np.nan_to_num(self.table.shares[:, k], nan=-1.0)
        best = int(column.argmax())
        if column[best] <= 0.0:
            return "none"
        return f"highest in {self.table.periods[best]}, {format_percent(column[best])}"

    def trace_time(self, k: int) -> str:
        """The path of a topic's shares over time."""
        assert self.table is not None
        return trace_curve(self.table.shares[:, k].tolist(), *CURVE, filled=True)

    def list_data(self) -> dict[str, Any]:
        """What the page's script works with."""
        words = self.words
        return {
            "n": words.n,
            "largest": LARGEST,
            "weights": [float(f"{weight:.4g}") for weight in self.weights],
            "words": list(self.names.values()),
            "rarity": words.rarity.tolist(),
            "spread": words.spread,
            "places": [places.tolist() for places in words.places],
            "logs": [logs.tolist() for logs in words.logs],
        }


def format_percent(share: float) -> str:
    """A share as readers like it, in one piece.

    >>> format_percent(0.0512), format_percent(0.00012)
    ('5.1\\xa0%', '0.012\\xa0%')
    """
    figure = f"{100 * share:.1f}" if share >= 0.001 or not share else f"{100 * share:.2g}"
    return f"{figure}\u00a0%"


def topic_report(
    model: Any,
    *,
    texts: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    dates: Sequence[Any] | Array | None = None,
    lengths: Array | Sequence[float] | None = None,
    title: str = "Topics",
) -> str:
    """A page (HTML) about a fitted topic model: words, map, typical documents, sizes, curves.

    ``texts``    the documents that were learned from, to show some
    ``names``    what the documents are called; without names they have numbers
    ``dates``    when they are from, see `softcount.topics.topics_over_time`
    ``lengths``  words in each document; without them words are counted in the texts, and without
                 texts every document counts the same

    >>> from softcount.topics import LDA
    >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
    >>> topic_report(LDA(2).fit(notes), texts=notes)[:15]
    '<!doctype html>'
    """
    topics, weights = model.topics_, model.weights_ / model.weights_.sum()
    texts, names = _number_entries(texts), _number_entries(names)
    given = {"texts": texts, "names": names, "dates": dates, "lengths": lengths}
    posteriors = _read_posteriors(model, {k: v for k, v in given.items() if v is not None})
    words, called = choose_words(topics, weights), model.word_names()
    shown = {int(w): shorten(clean(called[w]), LONGEST_WORD) for w in words.chosen}
    summary = TopicsSummary(weights, words, shown, measure_distances(topics))
    if posteriors is not None:
        sizes = None if lengths is None else np.asarray(lengths, dtype=np.float64)
        if lengths is None and texts is not None:
            sizes = np.array([len(join_text(text).split()) for text in texts])
        some = posteriors if sizes is None else posteriors[sizes > 0]  # others have no largest
        best = find_typical(posteriors, weights, sizes)
        summary = replace(
            summary,
            mainly=np.bincount(some.argmax(axis=1), minlength=len(topics)),
            examples=[
                choose_examples(numbers, posteriors[:, k], summary.list_telling(k), texts, names)
                for k, numbers in enumerate(best)
            ],
            table=None if dates is None else topics_over_time(posteriors, sizes, dates),
        )
    fit, outcome = getattr(model, "fit_", None), ""
    if fit is not None:
        last = fit.trace[-1]
        outcome = f"perplexity {last.perplexity:,.1f} · objective {last.objective:,.1f}"
        outcome = f"{outcome} · {last.step} steps".replace("-", "−")
    K, V = topics.shape
    known = "" if summary.mainly is None else f" in {int(summary.mainly.sum()):,} documents"
    return render_page(
        "topics/report.html",
        clean(title),
        f"{plural(K, 'topic')} over {V:,} words{known}, by {type(model).__name__}.",
        script="topics/report.js",
        topics=summary,
        size=(WIDTH, HEIGHT),
        curve=CURVE,
        circles=_list_circles(summary),
        relevance=DEFAULT,
        percent=format_percent,
        fit=fit,
        signature=model.signature_,
        outcome=outcome,
    )


def _number_entries(given: Any) -> Any:
    """Entries in their order: a column of a data frame has other numbers, a generator none."""
    return given if given is None or isinstance(given, Sequence) else list(given)


def _read_posteriors(model: Any, given: dict[str, Any]) -> FloatArray | None:
    """p(topic | document); ``given``: what is known of the documents."""
    posteriors: FloatArray | None = getattr(model, "documents_", None)
    if posteriors is None and "texts" in given:  # a model from a file may not have kept them
        posteriors = model.transform(given["texts"])
    if posteriors is None:
        if given:
            raise DataError(
                f"this model knows of no documents to have {', '.join(given)}", "give texts"
            )
        return None
    for what, one in given.items():
        if len(one) != len(posteriors):
            raise DataError(
                f"there are {len(one):,} {what}, but {len(posteriors):,} documents in the model",
                f"give the {what} of those that were learned from, in the same order",
            )
    return posteriors


def _list_circles(topics: TopicsSummary) -> list[dict[str, Any]]:
    """The topics on a plane; small ones last, so that they lie on top."""
    chart = lay_out_map(topics.apart, topics.weights)
    texts = []
    for k in range(len(topics.weights)):  # two words, or one, if these are not too long
        words = topics.top(k, WORDS_ON_MAP)
        some = [" ".join(words[:n]) for n in range(len(words), 0, -1)]
        texts.append([text for text in some if len(text) <= LONGEST_LABEL])
    labels = place_labels(chart, texts)
    (x, y), r = chart.centre.round(1).T, chart.radius.round(1)
    return [{"k": k, "x": x[k], "y": y[k], "r": r[k], "label": labels[k]} for k in topics.order]
