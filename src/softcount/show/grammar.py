"""A page about a grammar: its symbols with their rules and words, trees, how it was learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from softcount.corpus.sequences import Sequences, sequences
from softcount.corpus.treebank import Trees
from softcount.corpus.trees import Tree, from_spans
from softcount.errors import DataError, shown
from softcount.show import tree_svg
from softcount.show.finding import bars, ended
from softcount.show.grammar_symbols import Chances, GrammarShown, SymbolShown, grammar_shown
from softcount.show.report import bar_table, document, ending, signed
from softcount.show.sequences import chosen
from softcount.show.sequences_states import one_word
from softcount.show.snippets import clean

EXAMPLES = 8
ROWS = 8
"""So many rules and words of a symbol stand on the page."""
MOST_SYMBOLS = 200
LONGEST_RULE = 60
BINS = (5, 10, 15, 20, 30, 40, 60)
"""Sentences are counted up to so many words each."""


def grammar_report(
    model: Any,
    sentences: Any = None,
    n: int = EXAMPLES,
    *,
    method: str = "viterbi",
    title: str = "A grammar",
) -> str:
    """A page (HTML) about a grammar: symbols, their rules and words, trees of sentences.

    ``sentences``  text to show, as `PCFG.predict` takes it
    ``n``          how many trees are drawn
    ``method``     how trees are found, see `PCFG.predict`

    >>> from softcount.models.grammar import PCFG
    >>> toy = PCFG.from_rules("S -> NP VP\\nNP -> 'she' | 'fish'\\nVP -> 'eats' NP | 'sleeps'")
    >>> page = grammar_report(toy, ["she eats fish", "fish sleeps"])
    >>> page[:15], page.count('<svg class="sc-tree"')
    ('<!doctype html>', 2)
    """
    if not hasattr(model, "grammar"):
        raise DataError(
            f"there is no such page about a {type(model).__name__}: it has no rules", "give a PCFG"
        )
    if n < 0:
        raise DataError(f"n={shown(n)} trees cannot be shown", "give a number from 0 on")
    if sentences is None:
        return page_of(model, grammar_shown(model), title=title)
    some = sentences.words() if isinstance(sentences, Trees) else sentences
    text = some if isinstance(some, Sequences) else sequences(some)
    trees = [
        tree if tree is None else from_spans(text.sentence(i), tree.spans())
        for i, tree in enumerate(model.predict(text, method=method))
    ]
    return page_of(model, grammar_shown(model, trees), text, trees, n, title=title)


def page_of(
    model: Any,
    grammar: GrammarShown,
    text: Sequences | None = None,
    trees: Sequence[Tree | None] = (),
    n: int = EXAMPLES,
    *,
    title: str = "A grammar",
) -> str:
    """The page, with trees of sentences found already (None: there is none)."""
    lengths = [] if text is None else text.lengths.tolist()
    words = len(model.form_.vocabulary.words)
    lead = f"{_number(len(model.labels_), 'symbol')} over {_number(words, 'different word')}"
    if any(lengths):
        lead += f"; {_number(sum(length > 0 for length in lengths), 'sentence')}"
    notes = "".join(f'<p class="scale">{escape(clean(note))}.</p>' for note in grammar.notes)
    body = (
        f"{notes}{_symbols(grammar)}{_lengths(lengths, trees)}{_examples(trees, n)}"
        f"{_end(model, grammar, clean(title))}"
    )
    return document(clean(title), f"{lead}.", body, _style())


@cache
def _style() -> str:
    return resources.files(__package__).joinpath("grammar.css").read_text(encoding="utf-8")


def _number(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


# symbols
def _symbols(grammar: GrammarShown) -> str:
    some = grammar.symbols[:MOST_SYMBOLS]
    told = "Figures: how probable a rule or a word is, given its symbol."
    if any(one.number is not None for one in some):
        told = f"The most frequent first. {told}"
    if len(grammar.symbols) > len(some):
        told += f" There are {len(grammar.symbols) - len(some):,} more."
    cards = "".join(map(_card, some))
    return f'<h2>Symbols</h2><p class="scale">{told}</p><div class="symbols">{cards}</div>'


def _card(one: SymbolShown) -> str:
    size = [] if one.number is None else [f"{one.share:.1%} of constituents · {one.number:,}"]
    if one.root >= 5e-4:
        size.append(f"root {one.root:.3f}")
    tables = _table("rules", one.rules, LONGEST_RULE) + _table("words", one.words, None)
    return (
        f'<section class="symbol"><h3>{escape(one_word(one.name))}<small>{" · ".join(size)}</small>'
        f"</h3>{tables or '<p class=scale>never used</p>'}</section>"
    )


def _table(title: str, some: Chances, longest: int | None) -> str:
    """The most probable ones, each table on its own scale: some have a thousand, some two."""
    if not some:
        return ""
    named: dict[str, float] = {}
    for text, p in some:
        named.setdefault(_cut(text, longest), p)  # what is cut may be the same
    rows = bars("", named, ROWS)
    scale = "" if rows.full == 1.0 else f" (a full bar is {rows.full:g})"
    return bar_table(replace(rows, title=f"most probable {title}{scale}", left_out=0))


def _cut(text: str, longest: int | None) -> str:
    if longest is None:
        return one_word(text)
    plain = clean(text)
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


# sentences
def _lengths(lengths: Sequence[int], trees: Sequence[Tree | None]) -> str:
    """How many sentences of which length there are, and how many of them have a tree."""
    if not any(lengths):
        return ""
    rows = []
    for first, last in zip((0, *BINS), (*BINS, max(*lengths, BINS[-1])), strict=True):
        own = [n for n, length in enumerate(lengths) if first < length <= last]
        if own:
            parsed = sum(trees[n] is not None for n in own) / len(own)
            rows.append(
                f'<tr><th scope="row">{first + 1}–{last} words</th><td class="p">{len(own):,}</td>'
                f'<td class="bar"><span style="width:{100 * parsed:.1f}%"></span></td>'
                f'<td class="p">{parsed:.1%}</td></tr>'
            )
    head = "".join(
        f'<th scope="col"{span}>{name}</th>'
        for name, span in (("length", ""), ("sentences", ""), ("with a tree", ' colspan="2"'))
    )
    return (
        f'<h2>Sentences</h2><table class="lengths"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _examples(trees: Sequence[Tree | None], n: int) -> str:
    """Trees of sentences of fair length, evenly spread."""
    numbers = chosen([0 if tree is None else len(tree.words()) for tree in trees], n)
    found = [tree for tree in (trees[i] for i in numbers) if tree is not None]
    if not found:
        return ""
    drawn = "".join(f'<div class="wide tree">{tree_svg.svg(tree)}</div>' for tree in found)
    return f"<h2>Trees</h2>{drawn}"


# the end
def _end(model: Any, grammar: GrammarShown, title: str) -> str:
    beside = ""
    if grammar.scores:
        told = escape("\n".join(map(clean, grammar.scores)))
        beside = f"<h2>Beside gold trees</h2><pre>{told}</pre>"
    settings = f"<p><code>{escape(clean(repr(model)))}</code></p>"
    head = f"{beside}<h2>How it was learned</h2>{settings}"
    if grammar.fit is None:  # rules as they were given, or a model from a file
        return head + signed(clean(grammar.signature))
    told = escape(ended(grammar.fit).replace("-", "−").replace("log−", "log-"))
    return f'{head}<p class="scale">{told}</p>{ending(grammar.fit, title)}'
