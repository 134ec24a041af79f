"""HTML report of topics: their words, a map, typical documents, change over time."""

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
"""λ, the weight of a word's frequency in its relevance, from 0 to 1 in tenths; its default."""

FINE = 1000
"""Logarithms are stored in thousandths of a nat."""

MOST_WORDS, FEWEST_WORDS, ALL_WORDS = 30, 10, 3000
"""Limits on the number of words per topic, and roughly on that of all topics together."""
WIDEST = 8
"""The largest number of topics stored for a word."""


class TopicWords(NamedTuple):
    """The words that a page can show, for any position of its slider.

    ``n``       the number of words shown per topic
    ``chosen``  the columns of these words in the topics, in order
    ``rarity``  −log p(w) of each word, in thousandths of a nat
    ``places``  for each topic, the positions of its words in ``chosen``
    ``logs``    for each topic, −log p(w | k) of its words, in thousandths of a nat
    ``spread``  for each word, its most probable topics and p(k | w) in per cent: k, p, k, p …
    """

    n: int
    chosen: IntArray
    rarity: IntArray
    places: Sequence[IntArray]
    logs: Sequence[IntArray]
    spread: Sequence[Sequence[int]]

    def top(self, k: int, n: int, tenths: int = DEFAULT) -> list[tuple[int, float, float]]:
        """Return the most relevant words of a topic: (column, p(w | k), p(w))."""
        places, logs = self.places[k], self.logs[k]
        rarity = self.rarity[places]
        best = np.argsort(-_rank(logs, rarity, tenths), kind="stable")[:n]
        p, overall = np.exp(-logs[best] / FINE), np.exp(-rarity[best] / FINE)
        columns = self.chosen[places[best]]
        return list(zip(columns.tolist(), p.tolist(), overall.tolist(), strict=True))


def choose_words(topics: FloatArray, weights: FloatArray) -> TopicWords:
    """Choose, for each topic, the words that are among its most relevant for some λ of the slider.

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
    places = [np.searchsorted(chosen, of_topic) for of_topic in columns]
    # p(k | w) of a word's most probable topic, and of the others with at least 2 %
    joint = topics[:, chosen] * weights[:, None]
    percent = np.rint(100.0 * joint / np.maximum(joint.sum(axis=0), 1e-300)).astype(np.int64)
    order = np.argsort(-percent, axis=0, kind="stable")[:WIDEST]
    spread = [
        [int(x) for k in ks if percent[k, w] >= 2 or k == ks[0] for x in (k, percent[k, w])]
        for w, ks in enumerate(order.T)
    ]
    return TopicWords(n, chosen, rarity[chosen], places, logs, spread)


def _thousandths(probabilities: FloatArray) -> IntArray:
    """Return −log p in thousandths of a nat."""
    with np.errstate(divide="ignore"):
        logs = -FINE * np.log(probabilities)
    # integers, so that the page's script ranks words exactly as is done here
    whole: IntArray = np.rint(np.minimum(logs, 1e6)).astype(np.int64)
    return whole


def _rank(logs: IntArray, rarity: IntArray, tenths: int) -> IntArray:
    """Compute relevance, λ log p(w | k) + (1 − λ) log [p(w | k) / p(w)] (Sievert & Shirley 2014).

    λ = 1 ranks words by their frequency in the topic, λ = 0 by their lift over the corpus. The
    result is an integer, ten times the relevance in thousandths, with ties broken in favour of the
    word that is more common in the topic.
    """
    relevance = (10 - tenths) * rarity - 10 * logs
    ranks: IntArray = (relevance << 20) - logs
    return ranks


WIDTH, HEIGHT = 640, 440
MARGIN = 14
INK = 0.2
"""The fraction of the map's area that circles fill."""

LARGEST, SMALLEST = 62.0, 3.0
WIDEST_GAP = 20.0
FILLED = 0.45
"""The fraction of the map's area that circles and the gaps around them fill."""

STRETCH = 1.6
ROUNDS, FEW_ROUNDS = 300, 30
MANY = 300
"""From this number of topics on, circles are moved in few rounds only: each is quadratic."""

WORK = 4 * 10**7
"""Rough limit on words × pairs of topics for distances."""


def measure_distances(topics: FloatArray) -> FloatArray:
    """Compute the Jensen–Shannon distance of every pair of topics, (topics, topics).

    The distance is √JS with JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2 in bits, which is a
    metric (Endres & Schindelin 2003): 0 for equal topics, 1 for topics without common words. With
    many topics, rare words that are most common in the same topic are merged into one word, which
    can only make distances smaller.

    >>> measure_distances(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])).round(3).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    phi = np.asarray(topics)
    K, V = phi.shape
    most = max(100, 2 * WORK // K**2 - K)
    if most < V:  # keep the most common words, and merge the others by their largest topic
        order = np.argsort(-phi.sum(axis=0), kind="stable")
        common, rare = phi[:, order[:most]], phi[:, order[most:]]
        group = (np.arange(V - most), rare.argmax(axis=0))
        member = sparse.csr_matrix((np.ones(V - most), group), shape=(V - most, K))
        phi = np.column_stack([common, rare @ member])
    phi = phi.astype(np.float32)
    negentropy = _sum_x_log_x(phi)
    divergence = np.zeros((K, K))
    for k in range(K - 1):
        of_mean = _sum_x_log_x(np.float32(0.5) * (phi[k] + phi[k + 1 :]))
        divergence[k, k + 1 :] = 0.5 * (negentropy[k] + negentropy[k + 1 :]) - of_mean
    distance = np.sqrt(np.clip(divergence, 0.0, 1.0))
    return distance + distance.T


def _sum_x_log_x(rows: FloatArray) -> FloatArray:
    """Compute Σ x log₂ x of each row in single precision, which is enough for a picture."""
    x = np.maximum(rows, 1e-30, dtype=np.float32)
    total: FloatArray = (x * np.log2(x)).sum(axis=1, dtype=np.float64)
    return total


def embed(distances: FloatArray, dimensions: int = 2) -> FloatArray:
    """Classical multidimensional scaling (Torgerson 1952): points with nearly these distances.

    The leading eigenvectors of B = −½ J D² J, J = I − 11ᵀ/n, times the roots of their eigenvalues.

    >>> points = embed(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]]))
    >>> [round(float(np.linalg.norm(points[a] - points[b])), 6) for a, b in [(0, 1), (1, 2)]]
    [3.0, 5.0]
    """
    square = distances**2
    centred = square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean()
    K = len(distances)
    n = min(dimensions, K)
    values, vectors = linalg.eigh(-0.5 * centred, subset_by_index=[K - n, K - 1])
    points = np.zeros((K, dimensions))
    points[:, :n] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    # the sign of an eigenvector is arbitrary: make its largest entry positive
    largest = points[np.abs(points).argmax(axis=0), np.arange(dimensions)]
    return points * np.where(largest < 0.0, -1.0, 1.0)


class TopicMap(NamedTuple):
    """Circles on a map: ``centre`` (topics, 2) and ``radius`` (topics,)."""

    centre: FloatArray
    radius: FloatArray


def lay_out_map(distances: FloatArray, weights: FloatArray) -> TopicMap:
    """Place topics as circles with areas in proportion to their weights, without overlaps.

    ``distances``  between topics, (topics, topics)
    ``weights``    of the topics, (topics,)
    """
    radius = np.sqrt(weights / weights.sum() * INK * WIDTH * HEIGHT / np.pi)
    radius = np.clip(radius, SMALLEST, LARGEST)
    low = radius[:, None] + MARGIN
    high = np.array([WIDTH, HEIGHT]) - low
    points = embed(distances)
    room = np.array([WIDTH, HEIGHT]) - 2 * (MARGIN + radius.max())
    scale = room / np.maximum(np.ptp(points, axis=0), 1e-9)
    scale = np.minimum(scale, STRETCH * scale.min())  # limit the ratio of the axes
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    centre = np.clip((points - middle) * scale + [WIDTH / 2, HEIGHT / 2], low, high)
    # push overlapping circles apart, a little at a time, and keep them inside the frame
    across = 2.0 * np.sqrt(WIDTH * HEIGHT / (np.pi * len(radius)))
    gap = min(WIDEST_GAP, across * (np.sqrt(FILLED) - np.sqrt(INK)))
    needed = radius[:, None] + radius + gap
    np.fill_diagonal(needed, 0.0)
    # a small spiral separates circles with the same centre, which have no direction to move in
    angle = 2.4 * np.arange(len(radius))
    centre = centre + 0.01 * np.column_stack([np.cos(angle), np.sin(angle)])
    for _ in range(ROUNDS if len(radius) < MANY else FEW_ROUNDS):
        x, y = (centre[:, None, axis] - centre[None, :, axis] for axis in (0, 1))
        length = np.sqrt(x * x + y * y)
        overlap = np.maximum(needed - length, 0.0)
        if overlap.max() < 0.5:
            break
        push = 0.4 * overlap / np.maximum(length, 1e-9)
        centre = centre + np.column_stack([(push * x).sum(axis=1), (push * y).sum(axis=1)])
        centre = np.clip(centre, low, high)
    return TopicMap(centre, radius)


class MapLabel(NamedTuple):
    """A label: the coordinates of its middle, and its text."""

    x: float
    y: float
    text: str


LETTER, LINE = 6.4, 13.0
"""The width of a letter of a label, and the height of a line."""


def place_labels(chart: TopicMap, texts: Sequence[Sequence[str]]) -> list[MapLabel | None]:
    """Place a label below, above, or beside each circle, beginning with the largest circles.

    No label covers another label or a circle; None where there is no room.

    ``texts``  for each circle, the candidates for its label, best first
    """
    labels: list[MapLabel | None] = [None] * len(texts)
    boxes = np.zeros((0, 4))
    circles = np.column_stack([chart.centre, chart.radius])
    for k in np.argsort(-chart.radius, kind="stable"):
        others = np.delete(circles, k, axis=0)
        for x, y, text in _list_places(circles[k], texts[k]):
            half = LETTER * len(text) / 2
            box = np.array([x - half, y - LINE / 2, x + half, y + LINE / 2])
            inside = box.min() >= 2 and box[2] <= WIDTH - 2 and box[3] <= HEIGHT - 2
            covers = (box[:2] < boxes[:, 2:]) & (boxes[:, :2] < box[2:])
            nearest = np.clip(others[:, :2], box[:2], box[2:])
            distance = np.hypot(*(others[:, :2] - nearest).T)
            if inside and not covers.all(axis=1).any() and not (distance < others[:, 2]).any():
                labels[k] = MapLabel(round(x, 1), round(y, 1), text)
                boxes = np.vstack([boxes, box])
                break
    return labels


def _list_places(circle: FloatArray, texts: Sequence[str]) -> Iterator[tuple[float, float, str]]:
    """Yield candidates for a label and its middle: below, above, right and left of a circle."""
    x, y, r = circle.tolist()
    for text in texts:
        below, beside = r + 0.7 * LINE, r + LETTER * len(text) / 2 + 3
        for dx, dy in ((0, below), (0, -below), (beside, 0), (-beside, 0)):
            yield x + dx, y + dy, text


LONGEST_NAME = 80
CANDIDATES = 40
"""The number of documents of a topic that are searched for distinct examples."""
DOUBT = 20.0
"""Pseudo-count of words that shrinks a document's proportions towards the corpus's."""
READ_THE_SAME = 80
"""Documents with the same first letters, this many, are duplicates: quoted, or reposted."""
SIGNS = re.compile(r"<[^>]*>|[\W_]+")
"""What is ignored when documents are compared: markup, punctuation and white space."""


class TypicalDocument(NamedTuple):
    """A document that is typical of a topic.

    ``share``    p(topic | document)
    ``snippet``  the part of its text to show, or empty
    """

    name: str
    share: float
    snippet: Sequence[SnippetPart] = ()


def find_typical(
    posteriors: FloatArray, weights: FloatArray, sizes: Array | None
) -> list[IntArray]:
    """Find the most typical documents of each topic, best first.

    Documents are ranked by the shrunken proportion (n p(topic | document) + c p(topic)) / (n + c)
    with c = 20, because a document of n words says little if n is small. Documents with less of
    the topic than the corpus are left out.

    ``posteriors``  p(topic | document), (documents, topics)
    ``weights``     p(topic), (topics,)
    ``sizes``       n, (documents,); None: no shrinkage

    >>> posteriors = np.array([[0.9, 0.1], [1.0, 0.0], [0.0, 1.0]])
    >>> find_typical(posteriors, np.array([0.6, 0.4]), [90, 1, 50])
    [array([0, 1]), array([2])]
    """
    confidence = np.ones(len(posteriors))
    if sizes is not None:
        n = np.asarray(sizes, dtype=np.float64)
        confidence = n / (n + DOUBT)
    typical = []
    for k, weight in enumerate(weights):
        rank = confidence * (posteriors[:, k] - weight)
        most = min(CANDIDATES, len(rank))
        best = np.argpartition(-rank, most - 1)[:most] if most else np.arange(0)
        best = best[np.lexsort((best, -rank[best]))]
        typical.append(best[(rank[best] >= 0.0) & (posteriors[best, k] > 0.0)])
    return typical


def choose_examples(
    numbers: IntArray, shares: FloatArray, telling: dict[str, float], texts: Any, names: Any
) -> list[TypicalDocument]:
    """Choose the first few of these documents that are not duplicates of each other.

    ``numbers``  the documents, best first
    ``shares``   p(topic | document) of all documents, (documents,)
    ``telling``  weights of the topic's words, by which snippets are chosen
    """
    examples: dict[str, TypicalDocument] = {}
    for d in numbers.tolist():
        name = f"document {d}" if names is None else shorten(clean(names[d]), LONGEST_NAME)
        snippet = [] if texts is None else find_snippet(join_text(texts[d]), telling)
        if snippet or texts is None:
            text = "".join(part.text for part in snippet) or name
            example = TypicalDocument(name, float(shares[d]), snippet)
            examples.setdefault(SIGNS.sub("", text)[:READ_THE_SAME], example)
        if len(examples) == EXAMPLES:
            break
    return list(examples.values())


def join_text(document: Any) -> str:
    """Return a document as a text; the words of a list are joined by spaces."""
    if isinstance(document, str):
        return document
    return " ".join(map(str, document)) if isinstance(document, Sequence) else str(document)


WORDS_WITHOUT_SCRIPT = 12
"""The number of words of a topic that are shown if scripts are disabled."""
WORDS_IN_LINE, WORDS_ON_MAP, NEAREST = 8, 2, 4
NAMING = 4
"""λ in tenths for the words that label a topic: with a larger one, a word that is common in all
topics (in news: said) comes first in most of them."""
LONGEST_LABEL, LONGEST_WORD = 22, 40
CURVE = (200, 40)
"""The width and height of a curve over time."""


@dataclass(frozen=True, eq=False)
class TopicsSummary:
    """Everything that a page shows about topics.

    ``weights``   the proportion of all words that each topic accounts for, (topics,)
    ``names``     column → word for ``words.chosen``, in order, cleaned for display
    ``apart``     distances between topics, (topics, topics)
    ``mainly``    the number of documents with each topic as their largest; None if unknown
    ``examples``  typical documents of each topic, if documents are known
    ``table``     topics over time, if documents have dates
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
        """The topics, largest first."""
        return [int(k) for k in np.argsort(-self.weights, kind="stable")]

    @cached_property
    def _naming(self) -> list[list[str]]:
        """The words that label each topic."""
        top_words = (self.words.top(k, WORDS_IN_LINE, NAMING) for k in range(len(self.weights)))
        return [[self.names[column] for column, *_ in words] for words in top_words]

    def top(self, k: int, n: int = WORDS_IN_LINE) -> list[str]:
        """Return the words that label a topic, at most eight."""
        return self._naming[k][:n]

    def list_words(self, k: int) -> list[tuple[str, float, float, float, float]]:
        """List a topic's most relevant words.

        Returns for each word: the word; the lengths of two bars, for p(w) and p(k, w), in per cent
        of the longest; p(w | k) and p(k | w) in per cent.
        """
        rows = self.words.top(k, WORDS_WITHOUT_SCRIPT, DEFAULT)
        joint = [self.weights[k] * p for _, p, _ in rows]
        # rounded logarithms may leave p(w) below p(k, w)
        overall = [max(p_word, p_both) for (_, _, p_word), p_both in zip(rows, joint, strict=True)]
        longest = max(overall, default=1.0)
        return [
            (self.names[column], 100 * a / longest, 100 * b / longest, 100 * p, 100 * b / a)
            for (column, p, _), a, b in zip(rows, overall, joint, strict=True)
        ]

    def find_nearest(self, k: int) -> list[tuple[int, float]]:
        """Return the nearest topics of topic k, and their distances."""
        order = np.argsort(self.apart[k], kind="stable")
        return [(int(j), float(self.apart[k, j])) for j in order if j != k][:NEAREST]

    def list_telling(self, k: int) -> dict[str, float]:
        """Return the words of a topic in lower case, with log [p(w | k) / p(w)]."""
        return {
            self.names[column].lower(): max(math.log(p / overall), 0.1)
            for column, p, overall in self.words.top(k, self.words.n)
        }

    def describe_peak(self, k: int) -> str:
        """Describe when the proportion of a topic was largest."""
        assert self.table is not None
        column = np.nan_to_num(self.table.shares[:, k], nan=-1.0)
        best = int(column.argmax())
        if column[best] <= 0.0:
            return "none"
        return f"highest in {self.table.periods[best]}, {format_percent(column[best])}"

    def trace_time(self, k: int) -> str:
        """Return the SVG path of a topic's proportion over time."""
        assert self.table is not None
        return trace_curve(self.table.shares[:, k].tolist(), *CURVE, filled=True)

    def list_data(self) -> dict[str, Any]:
        """Return the data of the page's script."""
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
    """Format a proportion in per cent, with a no-break space.

    >>> format_percent(0.0512), format_percent(0.00012)
    ('5.1\\xa0%', '0.012\\xa0%')
    """
    number = f"{100 * share:.1f}" if share >= 0.001 or not share else f"{100 * share:.2g}"
    return f"{number}\u00a0%"


def topic_report(
    model: Any,
    *,
    texts: Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    dates: Sequence[Any] | Array | None = None,
    lengths: Array | Sequence[float] | None = None,
    title: str = "Topics",
) -> str:
    """Return an HTML page about a fitted topic model: words, map, typical documents, curves.

    ``texts``    the training documents, for examples
    ``names``    the names of the documents; default: their numbers
    ``dates``    the dates of the documents, see `softcount.topics.topics_over_time`
    ``lengths``  the number of words of each document; default: counted in the texts, and without
                 texts every document weighs the same
    ``title``    the title of the page

    >>> from softcount.topics import LDA
    >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
    >>> topic_report(LDA(2).fit(notes), texts=notes)[:15]
    '<!doctype html>'
    """
    topics, weights = model.topics_, model.weights_ / model.weights_.sum()
    texts, names = _as_sequence(texts), _as_sequence(names)
    details = {"texts": texts, "names": names, "dates": dates, "lengths": lengths}
    posteriors = _read_posteriors(model, {k: v for k, v in details.items() if v is not None})
    words, vocabulary = choose_words(topics, weights), model.word_names()
    shown = {int(w): shorten(clean(vocabulary[w]), LONGEST_WORD) for w in words.chosen}
    summary = TopicsSummary(weights, words, shown, measure_distances(topics))
    if posteriors is not None:
        sizes = None if lengths is None else np.asarray(lengths, dtype=np.float64)
        if lengths is None and texts is not None:
            sizes = np.array([len(join_text(text).split()) for text in texts])
        rows = posteriors if sizes is None else posteriors[sizes > 0]  # empty ones have no topic
        best = find_typical(posteriors, weights, sizes)
        summary = replace(
            summary,
            mainly=np.bincount(rows.argmax(axis=1), minlength=len(topics)),
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
    corpus = "" if summary.mainly is None else f" in {int(summary.mainly.sum()):,} documents"
    return render_page(
        "topics/report.html",
        clean(title),
        f"{plural(K, 'topic')} over {V:,} words{corpus}, by {type(model).__name__}.",
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


def _as_sequence(values: Any) -> Any:
    """Return values that can be indexed by position.

    The index of a data frame's column may differ from positions, and a generator has no index.
    """
    return values if values is None or isinstance(values, Sequence) else list(values)


def _read_posteriors(model: Any, details: dict[str, Any]) -> FloatArray | None:
    """Return p(topic | document), (documents, topics); None if no documents are known.

    ``details``  the arguments of `topic_report` that have a value for each document
    """
    posteriors: FloatArray | None = getattr(model, "documents_", None)
    if posteriors is None and "texts" in details:  # they may not have been saved with the model
        posteriors = model.transform(details["texts"])
    if posteriors is None:
        if details:
            raise DataError(
                f"{', '.join(details)} given, but the model has no documents", "give texts too"
            )
        return None
    for name, values in details.items():
        if len(values) != len(posteriors):
            raise DataError(
                f"there are {len(values):,} {name}, but {len(posteriors):,} documents in the model",
                f"give the {name} of the training documents, in the same order",
            )
    return posteriors


def _list_circles(topics: TopicsSummary) -> list[dict[str, Any]]:
    """List the circles of the map, small ones last, so that they are drawn on top."""
    chart = lay_out_map(topics.apart, topics.weights)
    texts = []
    for k in range(len(topics.weights)):  # two words, or one, if these are not too long
        words = topics.top(k, WORDS_ON_MAP)
        candidates = [" ".join(words[:n]) for n in range(len(words), 0, -1)]
        texts.append([text for text in candidates if len(text) <= LONGEST_LABEL])
    labels = place_labels(chart, texts)
    (x, y), r = chart.centre.round(1).T, chart.radius.round(1)
    return [{"k": k, "x": x[k], "y": y[k], "r": r[k], "label": labels[k]} for k in topics.order]
