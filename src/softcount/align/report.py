"""The page about an aligner, and one sentence pair in the terminal.

Of a large text a sample is aligned. The page shows the most uncertain of its sentence pairs and
typical ones, and what the aligner says of words: which are uncertain, which certain, and which
align to nothing.
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
"""Number of pairs that a page looks at, evenly spread over the text."""

MOST_LINKS = 20_000_000
"""Limit on the posteriors in memory: fewer pairs are looked at if they are long."""


@dataclass(frozen=True, eq=False)
class AlignedSample:
    """Pairs with words on both sides, and what an aligner makes of them.

    ``text``        the pairs that the aligner was given, some with an empty side perhaps
    ``places``      where in it those with words are
    ``numbers``     the numbers that these have in the whole text
    ``posteriors``  p(link) of every pair of ``text``
    ``links``       the links that were chosen for them
    """

    text: Bitext
    places: IntArray
    numbers: IntArray
    posteriors: Sequence[FloatArray]
    links: FlatLinks

    def posterior(self, k: int) -> FloatArray:
        """p(link) of the k-th pair that has words."""
        return self.posteriors[int(self.places[k])]

    def words(self, k: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words of the k-th pair that has some."""
        source, target = self.text.pair(int(self.places[k]))
        return tuple(source), tuple(target)

    def links_of(self, k: int) -> list[Link]:
        """The links of the k-th pair that has words."""
        cut = slice(*self.links.indptr[self.places[k] : self.places[k] + 2])
        return list(
            zip(self.links.source[cut].tolist(), self.links.target[cut].tolist(), strict=True)
        )


def align_sample(aligner: Any, text: Bitext, needed: Iterable[int] = ()) -> AlignedSample:
    """Align some pairs of a text, all if they are few.

    ``needed``  pairs to look at in any case, unless they are many
    """
    full = np.flatnonzero(text.source.lengths * text.target.lengths)
    special = np.intersect1d(full, np.fromiter(needed, np.int64))
    numbers = np.union1d(_spread_evenly(text, full), _spread_evenly(text, special))
    # an aligner knows its own pairs again, with the links it was given, if it gets them as they are
    whole = len(numbers) == len(full)
    part = text if whole else text.select(numbers)
    places = numbers if whole else np.arange(len(numbers))
    return AlignedSample(part, places, numbers, aligner.posteriors(part), aligner.links(part)[0])


def _spread_evenly(text: Bitext, numbers: IntArray) -> IntArray:
    links = int(text.source.lengths[numbers] @ text.target.lengths[numbers])
    most = min(MOST_PAIRS, max(len(numbers) * MOST_LINKS // max(links, 1), 1))
    if len(numbers) <= most:
        return numbers
    return numbers[np.arange(most) * len(numbers) // most]


def measure_doubt(posterior: FloatArray) -> float:
    """How uncertain the links of a pair are, in bits a word: Σ_ij h(p_ij) / (l + m).

    h(p) = −p log₂ p − (1 − p) log₂ (1 − p): nothing if every link is sure to be there or not to be.

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
    """The most uncertain pairs, most uncertain first, and typical ones: n together, half of each.

    Typical: both doubt and length are near the middle of all. No text comes twice.

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
        """The share of values below each, those that are the same counted by half."""
        order = np.sort(values)
        below, up_to = (np.searchsorted(order, values, side) for side in ("left", "right"))
        share: FloatArray = (below + up_to) / (2.0 * max(len(values), 1))
        return share

    uncertain = take_unseen(np.argsort(-doubts, kind="stable"), n - n // 2)
    from_middle = np.abs(rank(doubts) - 0.5) + np.abs(rank(lengths) - 0.5)
    typical = take_unseen(np.argsort(from_middle, kind="stable"), n // 2)
    return uncertain, sorted(typical)


ENOUGH = 5
"""Rarer words say little, unless all are rare."""

TRANSLATIONS = 5
"""Number of translations shown of an uncertain word."""

SURE = 0.01
"""Words with less entropy (in bits) than this are not called uncertain."""

LEAST = 0.005
"""Translations less probable than this are not shown."""


@dataclass(frozen=True)
class UncertainWord:
    """A word with many translations; ``bits`` is the entropy of t(· | word)."""

    word: str
    times: int
    bits: float
    translations: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class CertainEntry:
    """A word and its best translation; ``back`` is t(word | translation), if it is known."""

    word: str
    translation: str
    p: float
    back: float | None
    times: int


@dataclass(frozen=True)
class UnlinkedWord:
    """A word, how often it is there, and how often of these without a link."""

    word: str
    times: int
    without: int


def count_occurrences(model: Any, side: Side) -> IntArray:
    """How often each source word of a model occurs."""
    n_words = len(model.source_words_)
    return np.bincount(side.tokens, minlength=n_words)[:n_words]


def find_uncertain_words(model: Any, counts: IntArray, n: int) -> list[UncertainWord]:
    """Source words of a one-way model that leave most open: entropy (bits) times occurrences."""
    table, names = model.table(), model.source_words_
    rows = find_frequent(counts)
    bits = np.array([measure_entropy(_read_row(table, row)) for row in rows])
    order = np.argsort(-(bits * counts[rows]), kind="stable")
    chosen = [(int(rows[k]), float(bits[k])) for k in order if bits[k] >= SURE][:n]
    found = []
    for row, of_row in chosen:
        best = [(f, p) for f, p in model.translations(names[row], TRANSLATIONS) if p >= LEAST]
        found.append(UncertainWord(names[row], int(counts[row]), of_row, best))
    return found


def find_certain_entries(model: Any, back: Any, counts: IntArray, n: int) -> list[CertainEntry]:
    """Source words whose best translation is most certain, by the other direction as well.

    Ranked by t(f | e) t(e | f), shrunk by `shrink`: a word that is seen often counts more.

    ``back``  the model of the other direction, or None
    """
    table, rows = model.table(), find_frequent(counts)
    rows = rows[np.diff(table.indptr)[rows] > 0]
    at = [int(table.indptr[row] + _read_row(table, row).argmax()) for row in rows]
    p, targets = table.data[at], table.indices[at]
    others = None if back is None else np.asarray(back.table()[targets, rows]).ravel()
    score = shrink(p if others is None else p * others, counts[rows])
    names, called = model.source_words_, model.target_words_
    return [
        CertainEntry(
            names[rows[k]],
            called[targets[k]],
            float(p[k]),
            None if others is None else float(others[k]),
            int(counts[rows[k]]),
        )
        for k in np.argsort(-score, kind="stable")[:n]
    ]


def find_unlinked_words(
    sample: AlignedSample, n: int
) -> tuple[list[UnlinkedWord], list[UnlinkedWord]]:
    """Source words and target words that most often have no link, by `shrink` of their shares."""
    text, links = sample.text, sample.links
    with_words = np.zeros(len(text), np.bool_)
    with_words[sample.places] = True

    def find(side: Side, linked: IntArray) -> list[UnlinkedWord]:
        counted = np.repeat(with_words, side.lengths)
        free = counted.copy()
        free[side.indptr[links.pair] + linked] = False
        times, without = (
            np.bincount(side.tokens[which], minlength=len(side.words)) for which in (counted, free)
        )
        words = find_frequent(times)
        words = words[without[words] > 0]
        score = shrink(without[words] / times[words], times[words])
        best = words[np.argsort(-score, kind="stable")[:n]]
        return [UnlinkedWord(side.words[w], int(times[w]), int(without[w])) for w in best]

    return find(text.source, links.source), find(text.target, links.target)


def find_frequent(counts: IntArray) -> IntArray:
    """Words that occur often enough to say something of; the most frequent if all are rare.

    >>> find_frequent(np.array([7, 1, 0, 5])), find_frequent(np.array([0, 1, 2]))
    (array([0, 3]), array([2]))
    """
    enough = max(min(ENOUGH, int(counts.max(initial=0))), 1)
    return np.flatnonzero(counts >= enough)


def shrink(share: FloatArray, times: IntArray) -> FloatArray:
    """A share as if there had been one more case without: what is seen often is surer."""
    less: FloatArray = share * times / (times + 1)
    return less


def measure_entropy(p: FloatArray) -> float:
    """The entropy of a distribution in bits.

    >>> measure_entropy(np.array([0.5, 0.25, 0.25]))
    1.5
    """
    some = p[p > 0.0]
    return float(-(some * np.log2(some)).sum()) + 0.0


def _read_row(table: Any, row: int) -> FloatArray:
    values: FloatArray = table.data[table.indptr[row] : table.indptr[row + 1]]
    return values


# One sentence pair in the terminal: its alignment as a matrix of block shades, or as a list

SHADES = ((0.9, "█"), (0.6, "▓"), (0.3, "▒"), (0.05, "░"), (0.0, " "))
"""Shades, each with the smallest probability it stands for."""

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
    """A sentence pair as plain text: source words down, target words across, links in brackets.

    ``source, target``  words, or texts to be cut at white space
    ``posterior``       (source words, target words): how probable each link is
    ``width``           columns that there are; None: those of the terminal. Where the matrix does
                        not fit in, each source word has a line with what it is linked to

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
        """A word without control characters, cut if it is long, that turns nothing else around."""
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
            f"a posterior of shape {p.shape} for {shape[0]} source and {shape[1]} target words",
            "give a row for each source word and a column for each target word",
        )
    if not ((p >= -ROUNDING) & (p <= 1.0 + ROUNDING)).all():
        raise DataError("a posterior is not a probability", "give numbers from 0 to 1")
    p = np.clip(p, 0.0, 1.0)
    pairs, edge = set(chosen.lists()[0]), max(map(cell_len, rows), default=0)
    labels = [" " * (edge - cell_len(word)) + word for word in rows]
    lines: list[str] = []
    if rows and columns:
        # every word of the head stands above its column, the next a line further down
        lines = [f"{'':{edge}} {' │ ' * j} {word}" for j, word in enumerate(columns)]
        lines.append(f"{'':{edge}} {' │ ' * len(columns)}")
        for i, label in enumerate(labels):
            shades = [choose_shade(p[i, j]) for j in range(len(columns))]
            cells = (f"[{x}]" if (i, j) in pairs else f" {x} " for j, x in enumerate(shades))
            lines.append(f"{label} {''.join(cells)}")
    room = shutil.get_terminal_size().columns if width is None else width
    if lines and max(map(cell_len, lines)) <= room:
        lines += ["", LEGEND]
    else:  # a line for each source word, and one for target words that none is linked to
        lines = []
        for i, label in enumerate(labels):
            linked = sorted(j for k, j in pairs if k == i)
            each = (f"{columns[j]} {choose_shade(p[i, j])} {p[i, j]:.2f}" for j in linked)
            lines.append(f"{label}  {'  '.join(each) or NO_LINK}")
        left = [word for j, word in enumerate(columns) if j not in {j for _, j in pairs}]
        if left:
            lines.append(f"{NO_LINK:>{max(edge, 1)}}  {'  '.join(left)}")
    return "\n".join(line.rstrip() for line in lines)


def choose_shade(p: float) -> str:
    """A block as dark as a link is probable.

    >>> choose_shade(1.0), choose_shade(0.5), choose_shade(0.01)
    ('█', '▒', ' ')
    """
    return next(block for least, block in SHADES if p >= least)


# The page: matrices of sentence pairs, words, how it learned; no script

LONGEST = 80
"""Number of words of a side that are shown; longer sentences are cut."""
PALE, DEEP = 1, 60
"""Cells below PALE per cent stay white; from DEEP per cent on, their figures are light."""
WORDS = 20
"""Number of rows in a table of words."""


class Cell(NamedTuple):
    """A cell of a matrix: its shade in per cent (None: white), and what stands in it."""

    shade: int | None
    figure: str
    css: str = ""
    title: str = ""
    linked: bool = False


@dataclass(frozen=True, eq=False)
class AlignedPair:
    """What there is to show of a sentence pair.

    ``name``       what the pair is called
    ``posterior``  (source words, target words): how probable each link is
    ``doubt``      in bits per word
    ``nothing``    how probable it is that each target word comes from no word; None: not known
    ``gold``       the right links, if they are known
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
        """How uncertain the links are, and how they compare with the right ones."""
        said = [f"{self.doubt:.2f} bits per word", plural(len(self.links), "link")]
        if self.gold is not None:
            links, sure = set(self.links), self.gold.sure
            said.append(f"{len(links & sure)} of {plural(len(sure), 'sure gold link')} found")
            said.append(f"{len(links - self.gold.possible)} wrong")
        return " · ".join(said)

    @property
    def direction(self) -> str:
        """Whether the target is read from the right."""
        return find_direction(self.target)

    def list_rows(self) -> Iterator[tuple[str, list[Cell]]]:
        """The words of the source, each with its cells; those of gold links have a ring."""
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
        """The cells of the empty word."""
        if self.nothing is None:
            return []
        return [PLAIN_CELLS[shade] for shade in round_percent(self.nothing[:LONGEST]).tolist()]


PLAIN_CELLS = [
    Cell(None, "") if shade < PALE else Cell(shade, str(shade), "deep" * (shade >= DEEP))
    for shade in range(101)
]
"""Cells without a link, by their shades."""


def round_percent(p: FloatArray) -> IntArray:
    """Probabilities as whole numbers from 0 to 100.

    >>> round_percent(np.array([0.996, 1e-9])).tolist()
    [100, 0]
    """
    percent: IntArray = np.rint(100.0 * np.clip(np.nan_to_num(p), 0.0, 1.0)).astype(np.int64)
    return percent


def find_direction(words: Sequence[str]) -> str:
    """Whether a sentence is read from the right ("rtl"): its first letter tells.

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
    """A page (HTML) about a fitted aligner: alignment matrices, words, how it was learned.

    ``pairs``  the text to show; None: what was learned from
    ``n``      how many matrices: half of them the most uncertain pairs, half typical ones
    ``gold``   right links, to be drawn as rings: those of the first pairs, None where they are not
               known. Only pairs that have some are shown then

    Of a large text a part is looked at, evenly spread; the page says how much.

    >>> from softcount.align import IBM1
    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> alignment_report(IBM1().fit(pairs), n=2)[:15]
    '<!doctype html>'
    """
    if n < 0:
        raise DataError(f"n={brief(n)} matrices cannot be shown", "give a number from 0 on")
    text, _ = aligner._shards(pairs)
    right: dict[int, Links] | None = None
    if gold is not None:
        if len(gold) > len(text):
            raise DataError(
                f"there are gold links of {len(gold):,} pairs, but {len(text):,} pairs",
                "give those of the first pairs, in the same order",
            )
        given = [*gold, *[None] * (len(text) - len(gold))]
        flat = FlatLinks.of([list(getattr(one, "possible", one or ())) for one in given])
        flat.check_inside(text.source.lengths, text.target.lengths, text.name)
        right = {
            number: one if isinstance(one, Links) else Links(links)
            for number, (one, links) in enumerate(zip(given, flat.lists(), strict=True))
            if one is not None
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
    """How many words and links there are, in a line."""
    empty = int(np.count_nonzero(text.source.lengths * text.target.lengths == 0))
    part = len(sample.places) < len(text) - empty
    said = [
        f"{len(side.tokens):,} {name} words ({len(np.unique(side.tokens)):,} different)"
        for name, side in (("source", text.source), ("target", text.target))
    ]
    said.append(
        f"{plural(len(sample.links.source), 'link')} in {plural(len(sample.places), 'pair')}"
        f"{', evenly spread, that this page looks at' * part}"
    )
    if empty:
        said.append(f"{plural(empty, 'pair')} with an empty side")
    return " · ".join(said)


def _draw_charts(aligner: Any) -> list[tuple[str, str]]:
    """Curves with their captions; a model from a file has none."""
    fit = getattr(aligner, "fit_", None)
    if fit is None:
        return []
    each = (
        ("perplexity", fit.trace.perplexity, "perplexity"),
        ("entropy of translations", fit.trace.entropy, "entropy (bits)"),
    )
    return [
        (
            draw_lines([Series(name, values.tolist())], name, "step", axis),
            f"{name.capitalize()}, step by step: {values[-1]:,.3g} in the end.",
        )
        for name, values, axis in each
        if np.isfinite(values).any()
    ]


def _choose_shown(
    aligner: Any, sample: AlignedSample, n: int, right: dict[int, Links] | None
) -> list[tuple[str, list[AlignedPair]]]:
    """The most uncertain pairs, and typical ones; ``right`` are gold links, if any are given."""
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
