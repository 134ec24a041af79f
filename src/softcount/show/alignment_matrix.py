"""One sentence pair as a heat map: source words down, target words across."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from softcount.corpus.links import Link, Links
from softcount.show.groups import shortened
from softcount.show.snippets import clean
from softcount.types import Array

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
