"""A page about an aligner: matrices of sentence pairs, words, how it learned; no script."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from softcount.corpus.bitext import Bitext
from softcount.corpus.links import FlatLinks, Links
from softcount.errors import DataError, shown
from softcount.show.alignment_choice import Looked, choose, doubt, look
from softcount.show.alignment_matrix import PairShown, legend, pair_figure
from softcount.show.alignment_tables import entry_table, uncertain_table, unlinked_table
from softcount.show.alignment_text import alignment_view
from softcount.show.alignment_words import (
    certain_entries,
    occurrences,
    uncertain_words,
    unlinked_words,
)
from softcount.show.report import document, signed
from softcount.show.snippets import clean
from softcount.show.svg import Series, line_chart
from softcount.types import Array, Trace

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

    >>> from softcount.models.alignment import IBM1
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
        f"{_unlinked(looked)}"
    )
    lead = f"{_counted(len(text), 'sentence pair')}, aligned by {type(aligner).__name__}."
    return document(clean(title), lead, body, _style())


@cache
def _style() -> str:
    return resources.files(__package__).joinpath("alignment.css").read_text(encoding="utf-8")


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


def _unlinked(looked: Looked) -> str:
    source, target = unlinked_words(looked, WORDS)
    tables = [unlinked_table(source, "Source words"), unlinked_table(target, "Target words")]
    return _tables("Words that align to nothing", FREE, tables)


def _tables(title: str, told: str, tables: Sequence[str]) -> str:
    inside = "".join(tables)
    text = told if inside else "There are none."
    return f'<h2>{title}</h2><p class="scale">{text}</p><div class="columns">{inside}</div>'
