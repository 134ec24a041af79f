"""The HTML report of an aligner, and the view of one sentence pair in the terminal.

Only a sample of a large text is aligned. The report shows the most uncertain sentence pairs and
typical ones, and statistics of words: the most uncertain, the most certain, and the unaligned ones.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rich.cells import cell_len, set_cell_size

from softcount.core.errors import DataError, brief
from softcount.core.types import FloatArray, IntArray
from softcount.report.charts import Series, draw_lines
from softcount.report.page import render_page
from softcount.report.text import clean, flatten, isolate, plural
from softcount.text.bitext import Bitext
from softcount.text.links import FlatLinks, Link, Links
from softcount.text.sequences import Side

__all__ = ["alignment_report", "alignment_view"]

MOST_PAIRS = 5_000
"""Maximum size of the sample of pairs, evenly spaced over the text."""

MOST_LINKS = 20_000_000
"""Maximum number of posteriors in memory: the sample is smaller if the sentences are long."""


@dataclass(frozen=True, eq=False)
class AlignedSample:
    """A sample of pairs, with their posteriors and predicted links.

    ``text``        the pairs given to the aligner, possibly some with an empty side
    ``places``      the indices in ``text`` of the non-empty pairs
    ``numbers``     the indices of these pairs in the whole text
    ``posteriors``  the link posteriors of every pair of ``text``
    ``links``       the predicted links of every pair of ``text``
    """

    text: Bitext
    places: IntArray
    numbers: IntArray
    posteriors: Sequence[FloatArray]
    links: FlatLinks

    def posterior(self, k: int) -> FloatArray:
        """Return the link posteriors of the k-th non-empty pair."""
        return self.posteriors[int(self.places[k])]

    def words(self, k: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the words of the k-th non-empty pair."""
        source, target = self.text.pair(int(self.places[k]))
        return tuple(source), tuple(target)

    def links_of(self, k: int) -> list[Link]:
        """Return the predicted links of the k-th non-empty pair."""
        cut = slice(*self.links.indptr[self.places[k] : self.places[k] + 2])
        return list(
            zip(self.links.source[cut].tolist(), self.links.target[cut].tolist(), strict=True)
        )


def align_sample(aligner: Any, text: Bitext, needed: Iterable[int] = ()) -> AlignedSample:
    """Align a sample of the pairs of a text, or all if they are few.

    ``needed``  pairs to include (a sample of them, if they are many)
    """
    non_empty = np.flatnonzero(text.source.lengths * text.target.lengths)
    required = np.intersect1d(non_empty, np.fromiter(needed, np.int64))
    numbers = np.union1d(_sample_evenly(text, non_empty), _sample_evenly(text, required))
    # pass the text itself if possible: an aligner then recognises its training pairs by identity,
    # and applies the links known for them
    whole = len(numbers) == len(non_empty)
    part = text if whole else text.select(numbers)
    places = numbers if whole else np.arange(len(numbers))
    return AlignedSample(part, places, numbers, aligner.posteriors(part), aligner.links(part)[0])


def _sample_evenly(text: Bitext, numbers: IntArray) -> IntArray:
    """Return evenly spaced pairs: at most `MOST_PAIRS`, with about `MOST_LINKS` links at most."""
    links = int(text.source.lengths[numbers] @ text.target.lengths[numbers])
    most = min(MOST_PAIRS, max(len(numbers) * MOST_LINKS // max(links, 1), 1))
    if len(numbers) <= most:
        return numbers
    return numbers[np.arange(most) * len(numbers) // most]


def measure_doubt(posterior: FloatArray) -> float:
    """Compute the uncertainty of a pair's links, in bits per word: Σ_ij h(p_ij) / (l + m).

    h(p) = −p log₂ p − (1 − p) log₂ (1 − p) is the binary entropy: 0 if p is 0 or 1.

    >>> measure_doubt(np.eye(3)), measure_doubt(np.full((2, 2), 0.5))
    (0.0, 1.0)
    """
    p = np.clip(posterior, 0.0, 1.0)
    p = p[(p > 0.0) & (p < 1.0)]
    bits = -(p * np.log2(p) + (1.0 - p) * np.log2(1.0 - p)).sum()
    return float(bits / max(sum(posterior.shape), 1)) + 0.0


def choose_pairs(
    doubts: FloatArray, lengths: IntArray, texts: Sequence[Hashable], n: int
) -> tuple[list[int], list[int]]:
    """Choose the most uncertain pairs, in descending order, and typical ones: n in total.

    Half of them are uncertain, half typical: with uncertainty and length near the median. No text
    is chosen twice.

    >>> choose_pairs(np.array([0.1, 0.9, 0.2, 0.0]), np.array([5, 5, 5, 1]), "abcd", 2)
    ([1], [0])
    """
    seen: set[Hashable] = set()

    def take_unseen(order: IntArray, most: int) -> list[int]:
        taken: list[int] = []
        for k in order.tolist():
            if len(taken) < most and texts[k] not in seen:
                seen.add(texts[k])
                taken.append(k)
        return taken

    def rank(values: FloatArray | IntArray) -> FloatArray:
        """Compute the quantile of each value: the fraction below it, counting ties by half."""
        order = np.sort(values)
        below, up_to = (np.searchsorted(order, values, side) for side in ("left", "right"))
        quantiles: FloatArray = (below + up_to) / (2.0 * max(len(values), 1))
        return quantiles

    uncertain = take_unseen(np.argsort(-doubts, kind="stable"), n - n // 2)
    from_middle = np.abs(rank(doubts) - 0.5) + np.abs(rank(lengths) - 0.5)
    typical = take_unseen(np.argsort(from_middle, kind="stable"), n // 2)
    return uncertain, sorted(typical)


ENOUGH = 5
"""Minimum frequency of words in the tables, unless all words are rarer."""

TRANSLATIONS = 5
"""Number of translations shown for an uncertain word."""

SURE = 0.01
"""Minimum entropy (in bits) of an uncertain word."""

LEAST = 0.005
"""Minimum probability of the translations shown."""


@dataclass(frozen=True)
class UncertainWord:
    """A word with many translations; ``bits`` is the entropy of t(· | word)."""

    word: str
    times: int
    bits: float
    translations: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class CertainEntry:
    """A word and its best translation; ``back`` is t(word | translation), if available."""

    word: str
    translation: str
    p: float
    back: float | None
    times: int


@dataclass(frozen=True)
class UnlinkedWord:
    """A word, its frequency, and how many of its occurrences have no link."""

    word: str
    times: int
    without: int


def count_occurrences(model: Any, side: Side) -> IntArray:
    """Count the occurrences of each source word of a model."""
    n_words = len(model.source_words_)
    return np.bincount(side.tokens, minlength=n_words)[:n_words]


def find_uncertain_words(model: Any, counts: IntArray, n: int) -> list[UncertainWord]:
    """Find the most uncertain source words of a directional model, by entropy times frequency."""
    table, names = model.table(), model.source_words_
    rows = find_frequent(counts)
    bits = np.array([measure_entropy(_read_row(table, row)) for row in rows])
    order = np.argsort(-(bits * counts[rows]), kind="stable")
    chosen = [(int(rows[k]), float(bits[k])) for k in order if bits[k] >= SURE][:n]
    words = []
    for row, entropy in chosen:
        best = [(f, p) for f, p in model.translations(names[row], TRANSLATIONS) if p >= LEAST]
        words.append(UncertainWord(names[row], int(counts[row]), entropy, best))
    return words


def find_certain_entries(model: Any, back: Any, counts: IntArray, n: int) -> list[CertainEntry]:
    """Find the source words whose best translation is most certain, in both directions.

    Ranked by t(f | e) t(e | f), shrunk by `shrink` in favour of frequent words.

    ``back``  the model of the other direction, or None
    """
    table, rows = model.table(), find_frequent(counts)
    rows = rows[np.diff(table.indptr)[rows] > 0]
    at = [int(table.indptr[row] + _read_row(table, row).argmax()) for row in rows]
    p, targets = table.data[at], table.indices[at]
    others = None if back is None else np.asarray(back.table()[targets, rows]).ravel()
    score = shrink(p if others is None else p * others, counts[rows])
    source_words, target_words = model.source_words_, model.target_words_
    return [
        CertainEntry(
            source_words[rows[k]],
            target_words[targets[k]],
            float(p[k]),
            None if others is None else float(others[k]),
            int(counts[rows[k]]),
        )
        for k in np.argsort(-score, kind="stable")[:n]
    ]


def find_unlinked_words(
    sample: AlignedSample, n: int
) -> tuple[list[UnlinkedWord], list[UnlinkedWord]]:
    """Find the source words and the target words that most often have no link.

    Ranked by the fraction of unlinked occurrences, shrunk by `shrink`.
    """
    text, links = sample.text, sample.links
    non_empty = np.zeros(len(text), np.bool_)
    non_empty[sample.places] = True

    def find(side: Side, linked: IntArray) -> list[UnlinkedWord]:
        counted = np.repeat(non_empty, side.lengths)
        unlinked = counted.copy()
        unlinked[side.indptr[links.pair] + linked] = False
        times, without = (
            np.bincount(side.tokens[mask], minlength=len(side.words))
            for mask in (counted, unlinked)
        )
        words = find_frequent(times)
        words = words[without[words] > 0]
        score = shrink(without[words] / times[words], times[words])
        best = words[np.argsort(-score, kind="stable")[:n]]
        return [UnlinkedWord(side.words[w], int(times[w]), int(without[w])) for w in best]

    return find(text.source, links.source), find(text.target, links.target)


def find_frequent(counts: IntArray) -> IntArray:
    """Find the words that occur at least `ENOUGH` times; the most frequent ones if all are rarer.

    >>> find_frequent(np.array([7, 1, 0, 5])), find_frequent(np.array([0, 1, 2]))
    (array([0, 3]), array([2]))
    """
    enough = max(min(ENOUGH, int(counts.max(initial=0))), 1)
    return np.flatnonzero(counts >= enough)


def shrink(share: FloatArray, times: IntArray) -> FloatArray:
    """Shrink a fraction as if there were one more negative case: rarer words shrink more."""
    shrunk: FloatArray = share * times / (times + 1)
    return shrunk


def measure_entropy(p: FloatArray) -> float:
    """Compute the entropy of a distribution, in bits.

    >>> measure_entropy(np.array([0.5, 0.25, 0.25]))
    1.5
    """
    positive = p[p > 0.0]
    return float(-(positive * np.log2(positive)).sum()) + 0.0


def _read_row(table: Any, row: int) -> FloatArray:
    values: FloatArray = table.data[table.indptr[row] : table.indptr[row + 1]]
    return values


# One sentence pair in the terminal: its alignment as a matrix of block shades, or as a list

SHADES = ((0.9, "█"), (0.6, "▓"), (0.3, "▒"), (0.05, "░"), (0.0, " "))
"""Shades, each with its minimum probability."""

LONGEST_TEXT_WORD = 20
ROUNDING = 1e-6
NO_LINK = "–"
LEGEND = "[ ] link   " + "   ".join(f"{shade} {100 * p:.0f} %" for p, shade in SHADES[-2::-1])


def alignment_view(
    source: str | Sequence[str],
    target: str | Sequence[str],
    posterior: ArrayLike,
    links: Iterable[Link],
    *,
    width: int | None = None,
) -> str:
    """Draw the alignment matrix of a sentence pair as plain text.

    Rows are source words, columns are target words, links are in brackets.

    ``source, target``  lists of words, or texts to be split at white space
    ``posterior``       (source words, target words): the link probabilities
    ``width``           the number of columns available; None: those of the terminal. If the matrix
                        does not fit, each source word gets a line that lists its links

    >>> p, links = [[0.95, 0.1], [0.0, 0.7]], [(0, 0), (1, 1)]
    >>> print(alignment_view("a house", "ein haus", p, links, width=60))
           ein
           │  haus
           │  │
        a [█] ░
    house    [▓]
    <BLANKLINE>
    [ ] link   ░ 5 %   ▒ 30 %   ▓ 60 %   █ 90 %
    """

    def fit_word(word: str) -> str:
        """Remove control characters, shorten long words, and isolate bidirectional text."""
        flat = flatten(word)
        if cell_len(flat) > LONGEST_TEXT_WORD:
            flat = set_cell_size(flat, LONGEST_TEXT_WORD - 1).rstrip() + "…"
        return isolate(flat)

    rows, columns = (
        [fit_word(word) for word in (side.split() if isinstance(side, str) else side)]
        for side in (source, target)
    )
    shape = len(rows), len(columns)
    chosen = FlatLinks.of([list(links)])
    chosen.check_inside(np.array([shape[0]]), np.array([shape[1]]), lambda _: "the pair")
    p = np.asarray(posterior, dtype=float)
    if p.shape != shape and not p.size == 0 == shape[0] * shape[1]:
        raise DataError(
            f"posteriors of shape {p.shape} for {shape[0]} source and {shape[1]} target words",
            "give a row for each source word and a column for each target word",
        )
    if not ((p >= -ROUNDING) & (p <= 1.0 + ROUNDING)).all():
        raise DataError("a posterior is not a probability", "give numbers from 0 to 1")
    p = np.clip(p, 0.0, 1.0)
    pairs, edge = set(chosen.lists()[0]), max(map(cell_len, rows), default=0)
    labels = [" " * (edge - cell_len(word)) + word for word in rows]
    lines: list[str] = []
    if rows and columns:
        # the header: each target word above its column, one line lower than the word before
        lines = [f"{'':{edge}} {' │ ' * j} {word}" for j, word in enumerate(columns)]
        lines.append(f"{'':{edge}} {' │ ' * len(columns)}")
        for i, label in enumerate(labels):
            shades = [choose_shade(p[i, j]) for j in range(len(columns))]
            cells = (f"[{x}]" if (i, j) in pairs else f" {x} " for j, x in enumerate(shades))
            lines.append(f"{label} {''.join(cells)}")
    available = shutil.get_terminal_size().columns if width is None else width
    if lines and max(map(cell_len, lines)) <= available:
        lines += ["", LEGEND]
    else:  # a line per source word, and one for the target words without a link
        lines = []
        for i, label in enumerate(labels):
            linked = sorted(j for k, j in pairs if k == i)
            words = (f"{columns[j]} {choose_shade(p[i, j])} {p[i, j]:.2f}" for j in linked)
            lines.append(f"{label}  {'  '.join(words) or NO_LINK}")
        unlinked = [word for j, word in enumerate(columns) if j not in {j for _, j in pairs}]
        if unlinked:
            lines.append(f"{NO_LINK:>{max(edge, 1)}}  {'  '.join(unlinked)}")
    return "\n".join(line.rstrip() for line in lines)


def choose_shade(p: float) -> str:
    """Return the block character for a link probability: darker means more probable.

    >>> choose_shade(1.0), choose_shade(0.5), choose_shade(0.01)
    ('█', '▒', ' ')
    """
    return next(block for least, block in SHADES if p >= least)


# The HTML report: alignment matrices, tables of words, learning curves; without scripts

LONGEST = 80
"""Maximum number of words shown per side; longer sentences are cut."""
PALE, DEEP = 1, 60
"""Cells below PALE per cent stay white; from DEEP per cent on, their text is light."""
WORDS = 20
"""Number of rows in a table of words."""


class Cell(NamedTuple):
    """A cell of a matrix: its shade in per cent (None: white), its text, and its link marks."""

    shade: int | None
    figure: str
    css: str = ""
    title: str = ""
    linked: bool = False


@dataclass(frozen=True, eq=False)
class AlignedPair:
    """A sentence pair as shown in the report.

    ``name``       the name of the pair
    ``posterior``  (source words, target words): the link probabilities
    ``doubt``      the uncertainty in bits per word
    ``nothing``    (target words,) the posterior of the empty word; None: not available
    ``gold``       the gold links, if available
    """

    name: str
    source: Sequence[str]
    target: Sequence[str]
    posterior: FloatArray
    links: Sequence[Link]
    doubt: float
    nothing: FloatArray | None = None
    gold: Links | None = None

    @property
    def caption(self) -> str:
        """The uncertainty of the links, and their agreement with the gold links."""
        parts = [f"{self.doubt:.2f} bits per word", plural(len(self.links), "link")]
        if self.gold is not None:
            links, sure = set(self.links), self.gold.sure
            parts.append(f"{len(links & sure)} of {plural(len(sure), 'sure gold link')} found")
            parts.append(f"{len(links - self.gold.possible)} wrong")
        return " · ".join(parts)

    @property
    def direction(self) -> str:
        """The writing direction of the target sentence, "ltr" or "rtl"."""
        return find_direction(self.target)

    def list_rows(self) -> Iterator[tuple[str, list[Cell]]]:
        """Yield each source word with its cells; cells of gold links have a ring."""
        links = set(self.links)
        right = frozenset() if self.gold is None else self.gold.possible
        sure = frozenset() if self.gold is None else self.gold.sure
        for i, shades in enumerate(round_percent(self.posterior[:LONGEST, :LONGEST]).tolist()):
            cells = [PLAIN_CELLS[shade] for shade in shades]
            for j, shade in enumerate(shades):
                linked, ring = (i, j) in links, ""
                if (i, j) in right:
                    ring = "sure" if (i, j) in sure else "possible"
                if linked or ring:
                    css = " ".join(filter(None, ["link" * linked, ring, cells[j].css]))
                    title = " and ".join(
                        filter(None, ["link" * linked, ring and f"{ring} gold link"])
                    )
                    figure = str(shade) if linked else cells[j].figure
                    cells[j] = Cell(shade, figure, css, title, linked)
            yield self.source[i], cells

    def list_nothing(self) -> list[Cell]:
        """Return the cells of the empty word."""
        if self.nothing is None:
            return []
        return [PLAIN_CELLS[shade] for shade in round_percent(self.nothing[:LONGEST]).tolist()]


PLAIN_CELLS = [
    Cell(None, "") if shade < PALE else Cell(shade, str(shade), "deep" * (shade >= DEEP))
    for shade in range(101)
]
"""Cells without a link, by shade in per cent."""


def round_percent(p: FloatArray) -> IntArray:
    """Round probabilities to whole per cent, from 0 to 100.

    >>> round_percent(np.array([0.996, 1e-9])).tolist()
    [100, 0]
    """
    percent: IntArray = np.rint(100.0 * np.clip(np.nan_to_num(p), 0.0, 1.0)).astype(np.int64)
    return percent


def find_direction(words: Sequence[str]) -> str:
    """Find the writing direction of a sentence, "ltr" or "rtl", from its first letter.

    >>> find_direction(["3", "שלום"]), find_direction(["peace"])
    ('rtl', 'ltr')
    """
    for word in words:
        for character in word:
            kind = unicodedata.bidirectional(character)
            if kind in ("L", "R", "AL"):
                return "ltr" if kind == "L" else "rtl"
    return "ltr"


def alignment_report(
    aligner: Any,
    pairs: Any = None,
    n: int = 20,
    *,
    gold: Sequence[Links | Sequence[tuple[int, int]] | None] | None = None,
    title: str = "Word alignment",
) -> str:
    """Render an HTML report of a fitted aligner: matrices, tables of words, learning curves.

    ``pairs``  the text to show; None: the training pairs
    ``n``      the number of matrices: half for the most uncertain pairs, half for typical ones
    ``gold``   gold links of the first pairs, drawn as rings; None where they are not known. If
               given, only pairs with gold links are shown

    Only an evenly spaced sample of a large text is aligned; the report states its size.

    >>> from softcount.align import IBM1
    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> alignment_report(IBM1().fit(pairs), n=2)[:15]
    '<!doctype html>'
    """
    if n < 0:
        raise DataError(f"n={brief(n)} matrices cannot be shown", "give 0 or more")
    text, _ = aligner._shards(pairs)
    right: dict[int, Links] | None = None
    if gold is not None:
        if len(gold) > len(text):
            raise DataError(
                f"there are gold links of {len(gold):,} pairs, but {len(text):,} pairs",
                "give the links of the first pairs, in the same order",
            )
        padded = [*gold, *[None] * (len(text) - len(gold))]
        flat = FlatLinks.of([list(getattr(item, "possible", item or ())) for item in padded])
        flat.check_inside(text.source.lengths, text.target.lengths, text.name)
        right = {
            number: item if isinstance(item, Links) else Links(links)
            for number, (item, links) in enumerate(zip(padded, flat.lists(), strict=True))
            if item is not None
        }
    sample = align_sample(aligner, text, right or {})
    forward, backward = getattr(aligner, "forward_", aligner), getattr(aligner, "backward_", None)
    directions = [("Source words", forward, text.source)]
    if backward is not None:
        directions.append(("Target words", backward, text.target))
    counts = count_occurrences(forward, text.source)
    unlinked = find_unlinked_words(sample, WORDS)
    return render_page(
        "align/report.html",
        clean(title),
        f"{plural(len(text), 'sentence pair')}, aligned by {type(aligner).__name__}.",
        summary=_summarise(text, sample),
        charts=_draw_charts(aligner),
        fit=getattr(aligner, "fit_", None),
        signature=aligner.signature_,
        with_gold=right is not None,
        longest=LONGEST,
        groups=_choose_shown(aligner, sample, n, right),
        uncertain=[
            (name, find_uncertain_words(model, count_occurrences(model, side), WORDS))
            for name, model, side in directions
        ],
        certain=find_certain_entries(forward, backward, counts, WORDS),
        both=backward is not None,
        unlinked=list(zip(("Source words", "Target words"), unlinked, strict=True)),
    )


def _summarise(text: Bitext, sample: AlignedSample) -> str:
    """Summarise the numbers of words and links in one line."""
    empty = int(np.count_nonzero(text.source.lengths * text.target.lengths == 0))
    partial = len(sample.places) < len(text) - empty
    parts = [
        f"{len(side.tokens):,} {name} words ({len(np.unique(side.tokens)):,} different)"
        for name, side in (("source", text.source), ("target", text.target))
    ]
    parts.append(
        f"{plural(len(sample.links.source), 'link')} in {plural(len(sample.places), 'pair')}"
        f"{', the evenly spaced sample of this page' * partial}"
    )
    if empty:
        parts.append(f"{plural(empty, 'pair')} with an empty side")
    return " · ".join(parts)


def _draw_charts(aligner: Any) -> list[tuple[str, str]]:
    """Draw the learning curves, with captions; a loaded model has none."""
    fit = getattr(aligner, "fit_", None)
    if fit is None:
        return []
    curves = (
        ("perplexity", fit.trace.perplexity, "perplexity"),
        ("entropy of translations", fit.trace.entropy, "entropy (bits)"),
    )
    return [
        (
            draw_lines([Series(name, values.tolist())], name, "step", axis),
            f"{name.capitalize()}, step by step: {values[-1]:,.3g} at the end.",
        )
        for name, values, axis in curves
        if np.isfinite(values).any()
    ]


def _choose_shown(
    aligner: Any, sample: AlignedSample, n: int, right: dict[int, Links] | None
) -> list[tuple[str, list[AlignedPair]]]:
    """Choose the pairs to show, the most uncertain and typical ones; ``right``: gold links."""
    chosen = np.arange(len(sample.places))
    if right is not None:
        chosen = chosen[np.isin(sample.numbers, list(right))]
    texts = [sample.words(k) for k in chosen.tolist()]
    lengths = np.array([len(source) + len(target) for source, target in texts])
    doubts = [measure_doubt(sample.posterior(k)) for k in chosen.tolist()]
    shown = choose_pairs(np.array(doubts), lengths, texts, n)
    null = getattr(aligner, "null", False)
    groups: list[tuple[str, list[AlignedPair]]] = []
    for name, places in zip(("uncertain", "typical"), shown, strict=True):
        pairs = []
        for place in places:
            k = int(chosen[place])
            posterior = sample.posterior(k)
            pairs.append(
                AlignedPair(
                    sample.text.name(int(sample.places[k])),
                    *texts[place],
                    posterior,
                    sample.links_of(k),
                    doubts[place],
                    1.0 - posterior.sum(axis=0) if null else None,
                    None if right is None else right[int(sample.numbers[k])],
                )
            )
        if pairs:
            groups.append((name, pairs))
    return groups
