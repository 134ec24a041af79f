"""The page about an aligner, and alignments in a terminal."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.cells import cell_len, set_cell_size

from softcount.corpus.bitext import Bitext, Side
from softcount.corpus.links import FlatLinks, Link, Links
from softcount.errors import DataError, shown
from softcount.show.groups import shortened
from softcount.show.report import document, signed
from softcount.show.snippets import clean, on_one_line
from softcount.show.svg import Series, line_chart
from softcount.types import Array, Trace

LONGEST = 80
"""So many words of a side are shown; a longer sentence is cut."""

LONGEST_WORD = 24

PALE = 1
"""Cells of fewer per cent are left white."""

DEEP = 60
"""From so many per cent on a cell is so dark that its figure is light."""

NOTHING = "(no word)"


@dataclass(frozen=True, eq=False)
class PairShown:
    """What there is to show of a sentence pair.

    ``name``       what the pair is called
    ``posterior``  (source words, target words): how probable each link is
    ``nothing``    how probable it is that each target word comes from no word; None: not known
    ``gold``       the right links, if they are known
    """

    name: str
    source: Sequence[str]
    target: Sequence[str]
    posterior: Array
    links: Sequence[Link]
    doubt: float
    nothing: Array | None = None
    gold: Links | None = None


def word_html(word: str) -> str:
    """A word, cut if it is long, that turns no other text around."""
    flat = clean(word)
    short = shortened(flat, LONGEST_WORD)
    title = f' title="{escape(flat[:200])}"' if short != flat else ""
    return f"<bdi{title}>{escape(short)}</bdi>"


def direction(words: Sequence[str]) -> str:
    """Whether a sentence is read from the right ("rtl"): its first letter tells.

    >>> direction(["3", "שלום"]), direction(["peace"])
    ('rtl', 'ltr')
    """
    for word in words:
        for character in word:
            kind = unicodedata.bidirectional(character)
            if kind in ("L", "R", "AL"):
                return "ltr" if kind == "L" else "rtl"
    return "ltr"


def pair_figure(pair: PairShown) -> str:
    """A pair with its matrix; the matrix scrolls in its box where there is no room for it."""
    name = escape(clean(pair.name))
    told = [f"{pair.doubt:.2f} bits a word", _plural(len(pair.links), "link"), *_beside_gold(pair)]
    cut = max(len(pair.source), len(pair.target)) > LONGEST
    note = f'<p class="scale">Only the first {LONGEST} words are shown.</p>' if cut else ""
    return (
        f'<figure class="pair"><figcaption><strong>{name}</strong> · {" · ".join(told)}'
        f"</figcaption>{_sentence(pair.source)}{_sentence(pair.target)}{note}"
        f'<div class="box" tabindex="0" role="region" aria-label="Alignment of {name}">'
        f"{matrix(pair)}</div></figure>"
    )


def legend(gold: bool) -> str:
    """What shades, outlines and rings mean."""
    shades = "".join(f'<i class="shade" style="--p:{p}"></i>' for p in (10, 40, 70, 100))
    entries = [f"{shades} how probable a link is, in per cent", '<i class="link"></i> chosen link']
    if gold:
        entries += ['<i class="ring"></i> sure gold link', '<i class="ring dotted"></i> possible']
    return f'<ul class="legend">{"".join(f"<li>{entry}</li>" for entry in entries)}</ul>'


def _plural(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _beside_gold(pair: PairShown) -> list[str]:
    if pair.gold is None:
        return []
    links, sure = set(pair.links), pair.gold.sure
    return [
        f"{len(links & sure)} of {_plural(len(sure), 'sure gold link')} found",
        f"{len(links - pair.gold.possible)} wrong",
    ]


def _sentence(words: Sequence[str]) -> str:
    text = " ".join(escape(clean(word[:200])) for word in words[:LONGEST])
    return f'<p class="sentence" dir="auto">{text}{" …" * (len(words) > LONGEST)}</p>'


def matrix(pair: PairShown) -> str:
    """The heat map as a table: shades and figures are probabilities, in per cent."""
    target = pair.target[:LONGEST]
    head = "".join(f'<th scope="col">{word_html(word)}</th>' for word in target)
    rows = [_row(pair, i) for i in range(min(len(pair.source), LONGEST))]
    if pair.nothing is not None:
        cells = "".join(_plain_cell(per_cent(p)) for p in pair.nothing[:LONGEST])
        rows.append(f'<tr class="nothing"><th scope="row">{NOTHING}</th>{cells}</tr>')
    return (
        f'<table class="matrix" dir="{direction(pair.target)}"><thead><tr><td></td>{head}</tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _row(pair: PairShown, i: int) -> str:
    links = {j for k, j in pair.links if k == i}
    cells = "".join(_cell(pair, i, j, j in links) for j in range(min(len(pair.target), LONGEST)))
    return f'<tr><th scope="row">{word_html(pair.source[i])}</th>{cells}</tr>'


def _cell(pair: PairShown, i: int, j: int, linked: bool) -> str:
    shade = per_cent(pair.posterior[i, j])
    ring = _ring(pair.gold, (i, j))
    if not linked and not ring:
        return _plain_cell(shade)
    css = " ".join(filter(None, ["link" * linked, ring, "deep" * (shade >= DEEP)]))
    figure = str(shade) if shade >= PALE or linked else ""
    title = " and ".join(filter(None, ["link" * linked, ring and f"{ring} gold link"]))
    inside = f"<strong>{figure}</strong>" if linked else figure
    return f'<td class="{css}" style="--p:{shade}" title="{title}">{inside}</td>'


def _ring(gold: Links | None, link: Link) -> str:
    if gold is None or link not in gold.possible:
        return ""
    return "sure" if link in gold.sure else "possible"


def _plain_cell(shade: int) -> str:
    if shade < PALE:
        return "<td></td>"
    css = ' class="deep"' if shade >= DEEP else ""
    return f'<td{css} style="--p:{shade}">{shade}</td>'


def per_cent(p: float) -> int:
    """A probability as a whole number from 0 to 100.

    >>> per_cent(0.996), per_cent(1e-9)
    (100, 0)
    """
    return round(100.0 * float(np.clip(np.nan_to_num(p), 0.0, 1.0)))


# Which sentence pairs of an aligned text are worth looking at.


MOST_PAIRS = 5_000
"""So many pairs are looked at, evenly spread over the text."""

MOST_LINKS = 20_000_000
"""Fewer if they are long: so many posteriors are in memory."""


@dataclass(frozen=True, eq=False)
class Looked:
    """Pairs with words on both sides, and what an aligner makes of them.

    ``text``        the pairs that the aligner was given, some with an empty side perhaps
    ``places``      where in it those with words are
    ``numbers``     the numbers that these have in the whole text
    ``posteriors``  p(link) of every pair of ``text``
    ``links``       the links that were chosen for them
    """

    text: Bitext
    places: Array
    numbers: Array
    posteriors: Sequence[Array]
    links: FlatLinks

    @property
    def n_links(self) -> int:
        return len(self.links.source)

    def posterior(self, k: int) -> Array:
        """p(link) of the k-th pair that has words."""
        return self.posteriors[int(self.places[k])]

    def words(self, k: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words of the k-th pair that has some."""
        source, target = self.text.pair(int(self.places[k]))
        return tuple(source), tuple(target)

    def links_of(self, k: int) -> list[Link]:
        """The links of the k-th pair that has words."""
        begin, end = self.links.indptr[self.places[k] : self.places[k] + 2]
        sides = self.links.source[begin:end].tolist(), self.links.target[begin:end].tolist()
        return list(zip(*sides, strict=True))

    def doubts(self, chosen: Array) -> Array:
        """The `doubt` of pairs that have words."""
        return np.array([doubt(self.posterior(k)) for k in chosen.tolist()])


def look(aligner: Any, text: Bitext, needed: Iterable[int] = ()) -> Looked:
    """Align some pairs of a text, all if they are few.

    ``needed``  pairs to look at in any case, unless they are many
    """
    full = np.flatnonzero(text.source.lengths * text.target.lengths)
    special = np.intersect1d(full, np.fromiter(needed, np.int64))
    numbers = np.union1d(_spread(text, full), _spread(text, special))
    # an aligner knows its own pairs again, with the links it was told, if it gets them as they are
    whole = len(numbers) == len(full)
    part = text if whole else text.select(numbers)
    places = numbers if whole else np.arange(len(numbers))
    return Looked(part, places, numbers, aligner.posteriors(part), aligner.links(part)[0])


def _spread(text: Bitext, numbers: Array) -> Array:
    links = int(text.source.lengths[numbers] @ text.target.lengths[numbers])
    most = min(MOST_PAIRS, max(len(numbers) * MOST_LINKS // max(links, 1), 1))
    if len(numbers) <= most:
        return numbers
    return numbers[np.arange(most) * len(numbers) // most]


def doubt(posterior: Array) -> float:
    """How uncertain the links of a pair are, in bits a word: Σ_ij h(p_ij) / (l + m).

    h(p) = −p log₂ p − (1 − p) log₂ (1 − p): nothing if every link is sure to be there or not to be.

    >>> doubt(np.eye(3)), doubt(np.full((2, 2), 0.5))
    (0.0, 1.0)
    """
    p = np.clip(posterior, 0.0, 1.0)
    p = p[(p > 0.0) & (p < 1.0)]
    bits = -(p * np.log2(p) + (1.0 - p) * np.log2(1.0 - p)).sum()
    return float(bits / max(sum(posterior.shape), 1)) + 0.0


def choose(
    doubts: Array, lengths: Array, texts: Sequence[Hashable], n: int
) -> tuple[list[int], list[int]]:
    """The most uncertain pairs, most uncertain first, and typical ones: n together, half of each.

    Typical: both doubt and length are near the middle of all. No text comes twice.

    >>> choose(np.array([0.1, 0.9, 0.2, 0.0]), np.array([5, 5, 5, 1]), "abcd", 2)
    ([1], [0])
    """
    seen: set[Hashable] = set()
    uncertain = _first(np.argsort(-doubts, kind="stable"), texts, seen, n - n // 2)
    apart = np.abs(_standing(doubts) - 0.5) + np.abs(_standing(lengths) - 0.5)
    typical = _first(np.argsort(apart, kind="stable"), texts, seen, n // 2)
    return uncertain, sorted(typical)


def _first(order: Array, texts: Sequence[Hashable], seen: set[Hashable], n: int) -> list[int]:
    def unseen() -> Iterator[int]:
        for place in order.tolist():
            if texts[place] not in seen:
                seen.add(texts[place])
                yield place

    return [place for _, place in zip(range(n), unseen(), strict=False)]


def _standing(values: Array) -> Array:
    """The share of values below each, those that are the same counted by half."""
    order = np.sort(values)
    below, up_to = (np.searchsorted(order, values, side) for side in ("left", "right"))
    standing: Array = (below + up_to) / (2.0 * max(len(values), 1))
    return standing


# What an aligner says of words: which are uncertain, which certain, which align to nothing.


ENOUGH = 5
"""Rarer words say little, unless all are rare."""

TRANSLATIONS = 5
"""So many translations of an uncertain word are shown."""

SURE = 0.01
"""Words of less entropy (bits) are not called uncertain."""

LEAST = 0.005
"""Translations of less probability are not shown."""


@dataclass(frozen=True)
class Uncertain:
    """A word with many translations; ``bits`` is the entropy of t(· | word)."""

    word: str
    times: int
    bits: float
    translations: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Entry:
    """A word and its best translation; ``back`` is t(word | translation), if it is known."""

    word: str
    translation: str
    p: float
    back: float | None
    times: int


@dataclass(frozen=True)
class Unlinked:
    """A word, how often it is there, and how often of these without a link."""

    word: str
    times: int
    without: int


def occurrences(model: Any, side: Side) -> Array:
    """How often each source word of a model occurs."""
    n_words = len(model.source_words_)
    return np.bincount(side.tokens, minlength=n_words)[:n_words]


def uncertain_words(model: Any, counts: Array, n: int) -> list[Uncertain]:
    """Source words of a one-way model that leave most open: entropy (bits) times occurrences."""
    table, names = model.table(), model.source_words_
    rows = frequent(counts)
    bits = np.array([entropy(_word_row(table, row)) for row in rows])
    order = np.argsort(-(bits * counts[rows]), kind="stable")
    chosen = [(int(rows[k]), float(bits[k])) for k in order if bits[k] >= SURE][:n]
    found = []
    for row, of_row in chosen:
        best = [(f, p) for f, p in model.translations(names[row], TRANSLATIONS) if p >= LEAST]
        found.append(Uncertain(names[row], int(counts[row]), of_row, best))
    return found


def certain_entries(model: Any, back: Any, counts: Array, n: int) -> list[Entry]:
    """Source words whose best translation is most certain, by the other direction as well.

    Ranked by t(f | e) t(e | f), `shrunk`: a word that is seen often counts more.

    ``back``  the model of the other direction, or None
    """
    table, rows = model.table(), frequent(counts)
    rows = rows[np.diff(table.indptr)[rows] > 0]
    at = [int(table.indptr[row] + _word_row(table, row).argmax()) for row in rows]
    p, targets = table.data[at], table.indices[at]
    others = None if back is None else np.asarray(back.table()[targets, rows]).ravel()
    score = shrunk(p if others is None else p * others, counts[rows])
    names, called = model.source_words_, model.target_words_
    return [
        Entry(
            names[rows[k]],
            called[targets[k]],
            float(p[k]),
            None if others is None else float(others[k]),
            int(counts[rows[k]]),
        )
        for k in np.argsort(-score, kind="stable")[:n]
    ]


def unlinked_words(looked: Looked, n: int) -> tuple[list[Unlinked], list[Unlinked]]:
    """Source words and target words that most often have no link; their shares are `shrunk`."""
    text, links = looked.text, looked.links
    with_words = np.zeros(len(text), np.bool_)
    with_words[looked.places] = True
    return (
        _unlinked(text.source, links.source, links.pair, with_words, n),
        _unlinked(text.target, links.target, links.pair, with_words, n),
    )


def _unlinked(side: Side, linked: Array, pair: Array, pairs: Array, n: int) -> list[Unlinked]:
    counted = np.repeat(pairs, side.lengths)
    free = counted.copy()
    free[side.indptr[pair] + linked] = False
    times, without = (
        np.bincount(side.tokens[which], minlength=len(side.words)) for which in (counted, free)
    )
    words = frequent(times)
    words = words[without[words] > 0]
    score = shrunk(without[words] / times[words], times[words])
    best = words[np.argsort(-score, kind="stable")[:n]]
    return [Unlinked(side.words[w], int(times[w]), int(without[w])) for w in best]


def frequent(counts: Array) -> Array:
    """Words that occur often enough to say something of; the most frequent if all are rare.

    >>> frequent(np.array([7, 1, 0, 5])), frequent(np.array([0, 1, 2]))
    (array([0, 3]), array([2]))
    """
    enough = max(min(ENOUGH, int(counts.max(initial=0))), 1)
    return np.flatnonzero(counts >= enough)


def shrunk(share: Array, times: Array) -> Array:
    """A share as if there had been one more case without: what is seen often is surer."""
    less: Array = share * times / (times + 1)
    return less


def entropy(p: Array) -> float:
    """The entropy of a distribution in bits.

    >>> entropy(np.array([0.5, 0.25, 0.25]))
    1.5
    """
    some = p[p > 0.0]
    return float(-(some * np.log2(some)).sum()) + 0.0


def _word_row(table: Any, row: int) -> Array:
    values: Array = table.data[table.indptr[row] : table.indptr[row + 1]]
    return values


# Tables of words, as HTML.


def uncertain_table(words: Sequence[Uncertain], caption: str) -> str:
    """Words that leave most open, with their best translations."""
    rows = (
        [
            word_html(one.word),
            f"{one.times:,}",
            f"{one.bits:.2f}",
            ", ".join(f"{word_html(word)}&nbsp;<i>{p:.2f}</i>" for word, p in one.translations),
        ]
        for one in words
    )
    return table(caption, ["word", "times", "bits", "best translations"], rows)


def entry_table(entries: Sequence[Entry], caption: str) -> str:
    """Words with their most certain translations."""
    both = any(one.back is not None for one in entries)
    heads = ["word", "times", "p", *["p back"] * both, "translation"]
    rows = (
        [
            word_html(one.word),
            f"{one.times:,}",
            f"{one.p:.3f}",
            *([] if one.back is None else [f"{one.back:.3f}"]),
            word_html(one.translation),
        ]
        for one in entries
    )
    return table(caption, heads, rows)


def unlinked_table(words: Sequence[Unlinked], caption: str) -> str:
    """Words without a link."""
    rows = (
        [word_html(one.word), f"{one.times:,}", f"{100 * one.without / one.times:.0f} %"]
        for one in words
    )
    return table(caption, ["word", "times", "without a link"], rows)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is its rows' name; cells are HTML already. No rows: nothing."""
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    if not body:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    return (
        f'<div class="wide"><table class="facts"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


# One sentence pair in the terminal: its alignment as a matrix of block shades, or as a list.


SHADES = ((0.9, "█"), (0.6, "▓"), (0.3, "▒"), (0.05, "░"), (0.0, " "))
"""From which probability on which shade."""

LONGEST_WORD_IN_TEXT = 20
ROUNDING = 1e-6
NOTHING_IN_TEXT = "–"
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
    rows, columns = (
        [_printable(word) for word in (side.split() if isinstance(side, str) else side)]
        for side in (source, target)
    )
    chosen = FlatLinks.of([list(links)])
    chosen.demand_inside(np.array([len(rows)]), np.array([len(columns)]), lambda _: "the pair")
    p = _checked(posterior, (len(rows), len(columns)))
    pairs = set(chosen.lists()[0])
    room = shutil.get_terminal_size().columns if width is None else width
    drawn = [*_matrix(rows, columns, p, pairs), "", LEGEND] if rows and columns else []
    if not drawn or max(cell_len(line) for line in drawn[:-1]) > room:
        drawn = _list(rows, columns, p, pairs)
    return "\n".join(line.rstrip() for line in drawn)


def _checked(posterior: ArrayLike, shape: tuple[int, int]) -> Array:
    p = np.asarray(posterior, dtype=float)
    if p.shape != shape and not p.size == 0 == shape[0] * shape[1]:
        raise DataError(
            f"a posterior of shape {p.shape} for {shape[0]} source and {shape[1]} target words",
            "give a row for each source word and a column for each target word",
        )
    if not ((p >= -ROUNDING) & (p <= 1.0 + ROUNDING)).all():
        raise DataError("a posterior is no probability", "give numbers from 0 to 1")
    clipped: Array = np.clip(p, 0.0, 1.0)
    return clipped


def _printable(word: str) -> str:
    """A word without control characters, cut if it is long.

    One that is read from the right is kept apart, so that it turns nothing else around.
    """
    flat = on_one_line(word)
    if cell_len(flat) > LONGEST_WORD_IN_TEXT:
        flat = set_cell_size(flat, LONGEST_WORD_IN_TEXT - 1).rstrip() + "…"
    turns = any(unicodedata.bidirectional(character) in ("R", "AL") for character in flat)
    return f"\u2068{flat}\u2069" if turns else flat


def _matrix(rows: Sequence[str], columns: Sequence[str], p: Array, links: set[Link]) -> list[str]:
    """Every word of the head stands above its column, the next a line further down."""
    edge = max(map(cell_len, rows))
    head = [f"{'':{edge}} {' │ ' * j} {word}" for j, word in enumerate(columns)]
    head.append(f"{'':{edge}} {' │ ' * len(columns)}")
    lines = [
        f"{_padded(word, edge)} "
        + "".join(_text_cell(p[i, j], (i, j) in links) for j in range(len(columns)))
        for i, word in enumerate(rows)
    ]
    return [*head, *lines]


def _list(rows: Sequence[str], columns: Sequence[str], p: Array, links: set[Link]) -> list[str]:
    """A line for each source word, and one for target words that none is linked to."""
    edge = max(map(cell_len, rows), default=0)
    lines = []
    for i, word in enumerate(rows):
        linked = sorted(j for k, j in links if k == i)
        told = "  ".join(f"{columns[j]} {shade(p[i, j])} {p[i, j]:.2f}" for j in linked)
        lines.append(f"{_padded(word, edge)}  {told or NOTHING_IN_TEXT}")
    left = [word for j, word in enumerate(columns) if j not in {j for _, j in links}]
    if left:
        lines.append(f"{NOTHING_IN_TEXT:>{max(edge, 1)}}  {'  '.join(left)}")
    return lines


def _padded(word: str, edge: int) -> str:
    return " " * (edge - cell_len(word)) + word


def _text_cell(p: float, linked: bool) -> str:
    return f"[{shade(p)}]" if linked else f" {shade(p)} "


def shade(p: float) -> str:
    """A block as dark as a link is probable.

    >>> shade(1.0), shade(0.5), shade(0.01)
    ('█', '▒', ' ')
    """
    return next(block for least, block in SHADES if p >= least)


# A page about an aligner: matrices of sentence pairs, words, how it learned; no script.


__all__ = ["alignment_report", "alignment_view"]

WORDS = 20
"""So many rows has a table of words."""

MEASURE = (
    "Bits a word: the entropy of all links of a pair by its words; 0 if each link is certain to be "
    "there, or certain not to be."
)
UNCERTAIN = "The links of these are the least certain; worst first."
TYPICAL = "These have about as much doubt, and as many words, as most."
OPEN = "Ordered by bits × times: how much is left open by all uses of a word."
CLOSED = "Ordered by probability; words that occur often count more."
FREE = "Ordered by the share of a word's uses that have no link; frequent words count more."


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
        raise DataError(f"n={shown(n)} matrices cannot be shown", "give a number from 0 on")
    text, _ = aligner.shards(pairs)
    right = {} if gold is None else _by_number(gold, text)
    looked = look(aligner, text, right)
    body = (
        f"{_summary(text, looked)}{_learning(aligner)}"
        f"{_matrices(aligner, looked, n, None if gold is None else right)}{_words(aligner, text)}"
        f"{_unlinked_part(looked)}"
    )
    lead = f"{_counted(len(text), 'sentence pair')}, aligned by {type(aligner).__name__}."
    return document(clean(title), lead, body, _style())


@cache
def _style() -> str:
    return resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _by_number(gold: Sequence[Any], text: Bitext) -> dict[int, Links]:
    """What is known of right links, by the pairs' numbers."""
    if len(gold) > len(text):
        raise DataError(
            f"there are gold links of {len(gold):,} pairs, but {len(text):,} pairs",
            "give those of the first pairs, in the same order",
        )
    given = [*gold, *[None] * (len(text) - len(gold))]
    links = FlatLinks.of([list(getattr(one, "possible", one or ())) for one in given])
    links.demand_inside(text.source.lengths, text.target.lengths, text.name)
    all_sure = links.lists()
    return {
        n: one if isinstance(one, Links) else Links(all_sure[n])
        for n, one in enumerate(given)
        if one is not None
    }


# parts of the page
def _summary(text: Bitext, looked: Looked) -> str:
    source, target = len(text.source.tokens), len(text.target.tokens)
    empty = int(np.count_nonzero(text.source.lengths * text.target.lengths == 0))
    part = len(looked.places) < len(text) - empty
    told = [
        f"{source:,} source words ({_different(text.source.tokens)} different)",
        f"{target:,} target words ({_different(text.target.tokens)} different)",
        f"{_counted(looked.n_links, 'link')} in {_counted(len(looked.places), 'pair')}"
        f"{', evenly spread, that this page looks at' * part}",
    ]
    if empty:
        told.append(f"{_counted(empty, 'pair')} with an empty side")
    return f'<p class="scale">{escape(" · ".join(told))}.</p>'


def _different(tokens: Array) -> str:
    return f"{len(np.unique(tokens)):,}"


def _learning(aligner: Any) -> str:
    signature = signed(aligner.signature_)
    fit = getattr(aligner, "fit_", None)
    if fit is None:  # a model from a file has no steps to show
        return signature
    css = "verdict" if fit.verdict.good else "poor verdict"
    return f'{_charts(fit.trace)}<p class="{css}">{escape(fit.verdict)}</p>{signature}'


def _charts(trace: Trace) -> str:
    each = (
        ("perplexity", trace.perplexity, "perplexity"),
        ("entropy of translations", trace.entropy, "entropy (bits)"),
    )
    drawn = [
        f"<figure>{line_chart([Series(name, values.tolist())], name, 'step', axis)}"
        f"<figcaption>{name.capitalize()}, step by step: {values[-1]:,.3g} in the end.</figcaption>"
        "</figure>"
        for name, values, axis in each
        if np.isfinite(values).any()
    ]
    return f'<div class="charts">{"".join(drawn)}</div>'


def _matrices(aligner: Any, looked: Looked, n: int, right: dict[int, Links] | None) -> str:
    """The pairs worth looking at; ``right`` are gold links, if any are given."""
    chosen = np.arange(len(looked.places))
    if right is not None:
        chosen = chosen[np.isin(looked.numbers, list(right))]
    texts = [looked.words(k) for k in chosen.tolist()]
    lengths = np.array([len(source) + len(target) for source, target in texts])
    uncertain, typical = choose(looked.doubts(chosen), lengths, texts, n)
    null = getattr(aligner, "null", False)
    groups = (
        ("The most uncertain pairs", UNCERTAIN, uncertain),
        ("Typical pairs", TYPICAL, typical),
    )
    drawn = "".join(
        f'<h3>{name}</h3><p>{told}</p><div class="pairs">'
        f"{''.join(pair_figure(_pair(looked, int(chosen[k]), null, right)) for k in some)}</div>"
        for name, told, some in groups
        if some
    )
    if not drawn:
        return "<h2>Sentence pairs</h2><p>There are none to show.</p>"
    gold = "" if right is None else " Only pairs with gold links are shown."
    told = f'<p class="scale">{MEASURE}{gold}</p>'
    return f"<h2>Sentence pairs</h2>{legend(right is not None)}{told}{drawn}"


def _pair(looked: Looked, k: int, null: bool, right: dict[int, Links] | None) -> PairShown:
    posterior = looked.posterior(k)
    return PairShown(
        looked.text.name(int(looked.places[k])),
        *looked.words(k),
        posterior,
        looked.links_of(k),
        doubt(posterior),
        1.0 - posterior.sum(axis=0) if null else None,
        None if right is None else right[int(looked.numbers[k])],
    )


def _words(aligner: Any, text: Bitext) -> str:
    """What is certain and what is not; both directions have uncertain words, if there are both."""
    forward = getattr(aligner, "forward_", aligner)
    backward = getattr(aligner, "backward_", None)
    ways = [(forward, text.source, "Source words")]
    if backward is not None:
        ways.append((backward, text.target, "Target words"))
    uncertain = [
        uncertain_table(uncertain_words(model, occurrences(model, side), WORDS), name)
        for model, side, name in ways
    ]
    entries = certain_entries(forward, backward, occurrences(forward, text.source), WORDS)
    return _tables("The most uncertain words", OPEN, uncertain) + _tables(
        "The most certain translations", CLOSED, [entry_table(entries, "Source words")]
    )


def _unlinked_part(looked: Looked) -> str:
    source, target = unlinked_words(looked, WORDS)
    tables = [unlinked_table(source, "Source words"), unlinked_table(target, "Target words")]
    return _tables("Words that align to nothing", FREE, tables)


def _tables(title: str, told: str, tables: Sequence[str]) -> str:
    inside = "".join(tables)
    text = told if inside else "There are none."
    return f'<h2>{title}</h2><p class="scale">{text}</p><div class="columns">{inside}</div>'
