"""The page about a grammar, and trees as text and as pictures."""

from __future__ import annotations

import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.cells import cell_len

from softcount.corpus.sequences import Sequences, sequences
from softcount.corpus.treebank import Trees
from softcount.corpus.trees import Tree, from_spans
from softcount.errors import DataError, shown
from softcount.grammar.inside_outside import ROOT, RULES, WORDS
from softcount.hmm.report import SMALLEST, chosen, one_word
from softcount.show.finding import bars, ended
from softcount.show.report import bar_table, document, ending, signed
from softcount.show.snippets import clean, on_one_line
from softcount.types import Array, Fit

if TYPE_CHECKING:
    from rich.console import Console


MOST = 12
"""So many rules and words of a symbol are kept."""
RULES_IN_A_LINE, WORDS_IN_A_LINE = 3, 6

Chances = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class SymbolShown:
    """A symbol.

    ``root``    how probable it is that a tree is of this symbol
    ``number``  how many constituents of the trees have it; None if no trees are known
    ``share``   the part of all constituents that these are
    ``rules``   its most probable right sides of symbols, or of several items
    ``words``   the most probable words that it may be
    """

    name: str
    root: float
    number: int | None
    share: float
    rules: Chances
    words: Chances

    def in_a_line(self) -> str:
        """Its rules, then its words."""
        rules = [text for text, _ in self.rules[:RULES_IN_A_LINE]]
        words = " ".join(one_word(word) for word, _ in self.words[:WORDS_IN_A_LINE])
        return " | ".join([*rules, *([words] if words else [])])


@dataclass(frozen=True, eq=False)
class GrammarShown:
    """All symbols, the most frequent first.

    ``fit``     None if nothing was learned, or the model came from a file
    ``notes``   remarks, each a sentence
    ``scores``  lines on how trees agree with gold ones, if there are any
    """

    symbols: Sequence[SymbolShown]
    signature: str
    fit: Fit | None = None
    notes: Sequence[str] = ()
    scores: Sequence[str] = ()

    def remarks(self) -> list[str]:
        """All that is said beside the symbols."""
        found = [*self.notes, *self.scores]
        return found if self.fit is None else [*found, str(self.fit.verdict), ended(self.fit)]

    def first(self, n: int) -> GrammarShown:
        """With no more than so many symbols, and a remark on the others."""
        others = len(self.symbols) - n
        if others <= 0:
            return self
        remark = f"{n} of {len(self.symbols):,} symbols; --summary has all"
        return replace(self, symbols=self.symbols[:n], notes=[*self.notes, remark])

    def as_tsv(self) -> str:
        """For programs: a symbol a line; remarks as #."""
        lines = [f"# {remark}" for remark in (self.signature, *self.remarks())]
        lines.append("symbol\tconstituents\tshare\trules and words")
        for one in self.symbols:
            number, share = ("", "") if one.number is None else (one.number, f"{one.share:.4f}")
            lines.append(f"{one.name}\t{number}\t{share}\t{one.in_a_line()}")
        return "\n".join(lines) + "\n"

    def show(self, console: Console) -> None:
        """In a terminal: a line for each symbol, then how the run ended."""
        from rich.table import Table
        from rich.text import Text

        from softcount.show.terminal import bar, verdict_line

        largest = max((one.share for one in self.symbols), default=0.0) or 1.0
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=True)
        table.add_column("symbol", overflow="fold", max_width=24)
        table.add_column("constituents", justify="right")
        table.add_column("", style="cyan", min_width=10, no_wrap=True)
        table.add_column("rules and words", no_wrap=True, overflow="ellipsis", ratio=1)
        for one in self.symbols:
            number = "" if one.number is None else f"{one.number:,}"
            length = bar(one.share / largest)
            table.add_row(Text(one.name), number, length, Text(one.in_a_line()))
        console.print(table)
        for remark in (*self.notes, *self.scores):
            console.print(Text(remark))
        if self.fit is not None:
            console.print(verdict_line(self.fit.verdict))
            console.print(Text(ended(self.fit)))
        # one line, to be copied whole
        console.print(Text(self.signature, style="dim"), soft_wrap=True)


def grammar_shown(
    model: Any,
    trees: Iterable[Tree | None] | None = None,
    notes: Sequence[str] = (),
    scores: Sequence[str] = (),
) -> GrammarShown:
    """The symbols of a grammar; ``trees``: what sentences were found to have."""
    tables = model.params_
    is_dense = WORDS in tables
    names = model.labels_ if is_dense else model.form_.own.labels
    counts = _counted(trees if names == model.labels_ else None)  # trees have plain labels
    total = counts.total()
    found = _dense(model, tables) if is_dense else _of_rules(model, names)
    each = zip(names, tables[ROOT][0].tolist(), found, strict=True)
    symbols = [
        SymbolShown(
            *(name, root),
            counts[name] if total else None,
            counts[name] / total if total else 0.0,
            *lists,
        )
        for name, root, lists in each
    ]
    symbols.sort(key=lambda one: -one.share)
    return GrammarShown(symbols, model.signature_, getattr(model, "fit_", None), notes, scores)


def _counted(trees: Iterable[Tree | None] | None) -> Counter[str]:
    return Counter(node.label for tree in trees or () if tree is not None for node in tree.nodes())


def _dense(model: Any, tables: dict[str, Array]) -> Iterator[tuple[Chances, Chances]]:
    """Rules and words of each symbol: nonterminals have no words, preterminals no rules."""
    labels, words = model.labels_, model.form_.vocabulary.words
    n = len(labels)
    for row in tables[RULES]:
        yield _best(row, lambda column: f"{labels[column // n]} {labels[column % n]}"), ()
    for row in tables[WORDS]:
        yield (), _best(row, lambda number: words[number])


def _best(row: Array, name: Any) -> Chances:
    best = np.argsort(-row, kind="stable")[:MOST].tolist()
    return [(name(number), float(row[number])) for number in best if row[number] >= SMALLEST]


def _of_rules(model: Any, names: Sequence[str]) -> Iterator[tuple[Chances, Chances]]:
    rules: dict[str, list[tuple[str, float]]] = {name: [] for name in names}
    words: dict[str, list[tuple[str, float]]] = {name: [] for name in names}
    grammar = model.grammar(0.0)
    for rule, chance in zip(grammar.rules, grammar.chances.tolist(), strict=True):
        if rule.is_lexical:
            words[rule.lhs].append((rule.rhs[0], chance))
        else:
            parts = zip(rule.rhs, rule.is_word, strict=True)
            right = " ".join(f"'{item}'" if word else item for item, word in parts)
            rules[rule.lhs].append((right, chance))
    for name in names:
        yield _first(rules[name]), _first(words[name])


def _first(some: Chances) -> Chances:
    return sorted(some, key=lambda pair: -pair[1])[:MOST]


# Where the labels and words of a tree stand in a picture: parents above the middle of children.


@dataclass(slots=True)
class Spot:
    """A label or a word, and its place.

    ``depth``  how many constituents are above it
    ``below``  numbers of the spots below it; none for a word
    ``size``   how wide it is; ``x`` is the column of its middle
    ``box``    how wide it is with all that is below it; ``edge`` is the box's first column
    """

    text: str
    depth: int
    size: int
    below: list[int] = field(default_factory=list)
    box: int = 0
    edge: int = 0
    x: int = 0

    @property
    def left(self) -> int:
        """The first column that it covers itself."""
        return self.x - before(self.size)


def before(size: int) -> int:
    """How many columns are left of the middle one.

    >>> [before(size) for size in (1, 2, 3, 4)]
    [0, 0, 1, 1]
    """
    return (size - 1) // 2


def printable(text: str) -> str:
    """A text without control characters.

    One that is read from the right is kept apart, so that it turns nothing else around.
    """
    plain = on_one_line(text)
    turns = any(unicodedata.bidirectional(character) in ("R", "AL") for character in plain)
    return f"\u2068{plain}\u2069" if turns else plain


def spots(tree: Tree, measure: Callable[[str], int]) -> list[Spot]:
    """All labels and words of a tree, top-down, without places.

    ``measure``  how wide a text is
    """
    found: list[Spot] = []
    above: list[int] = []
    for step in tree.steps():
        if step is None:
            above.pop()
            continue
        if above:
            found[above[-1]].below.append(len(found))
        text = printable(step if isinstance(step, str) else step.label)
        found.append(Spot(text, len(above), max(measure(text), 1)))
        if not isinstance(step, str):
            above.append(len(found) - 1)
    return found


def laid_out(tree: Tree, measure: Callable[[str], int], gap: int) -> list[Spot]:
    """All labels and words of a tree with their places, top-down; the first box is the picture's.

    ``gap``  how much room is between neighbours

    >>> from softcount.corpus.trees import tree
    >>> some = laid_out(tree("(S (NP it) (VP rains))"), len, 1)
    >>> [(spot.text, spot.depth, spot.x) for spot in some], some[0].box
    ([('S', 0, 2), ('NP', 1, 0), ('it', 2, 0), ('VP', 1, 5), ('rains', 2, 5)], 8)
    """
    found = spots(tree, measure)
    for spot in reversed(found):
        _make_box(spot, [found[n] for n in spot.below], gap)
    for spot in found:  # places in boxes become places in the picture
        spot.x += spot.edge
        for n in spot.below:
            found[n].edge += spot.edge
    return found


def _make_box(spot: Spot, below: Sequence[Spot], gap: int) -> None:
    """Side by side what is below, and the spot itself above the middle of the first and the last.

    Places count from the box's left edge.
    """
    width = -gap
    for one in below:
        one.edge = width + gap
        width = one.edge + one.box
    middle = (below[0].edge + below[0].x + below[-1].edge + below[-1].x) // 2 if below else 0
    spot.x = max(middle, before(spot.size))
    for one in below:
        one.edge += spot.x - middle
    spot.box = spot.x + max(width - middle, spot.size - before(spot.size))


# Trees as plain SVG text: no script, no network, legible in the dark and in print.


FIGURE = 8
"""How wide a letter is taken to be; those of Chinese and its like are two wide."""
GAP, MARGIN = 14, 10
LEVEL, ASCENT, DESCENT = 46, 13, 5
"""How far rows are apart, and what a text covers above and below its base line."""

STYLE = """
.sc-tree { --ink: #3b3a36; --line: #a9a497; --c0: #1d5c8f; display: block;
  font: 14px/1 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
@media (prefers-color-scheme: dark) { .sc-tree { --ink: #cfccc3; --line: #6b685f; --c0: #7db8e8; } }
.sc-tree text { fill: var(--c0); text-anchor: middle; font-weight: 600; }
.sc-tree .w { fill: var(--ink); font-weight: 400; }
.sc-tree path { fill: none; stroke: var(--line); stroke-width: 1.3; stroke-linecap: round; }
"""


def svg(tree: Tree) -> str:
    """A tree as an ``<svg>`` element, which is a whole picture by itself.

    The words stand side by side below, as a sentence.

    >>> from softcount.corpus.trees import tree
    >>> picture = svg(tree("(NP (DT the) (NN dog))"))
    >>> picture[:20], picture.count("<text"), "<title>the dog</title>" in picture
    ('<svg class="sc-tree"', 5, True)
    """
    found = laid_out(tree, _measure, GAP)
    last = max(spot.depth for spot in found)
    width, height = found[0].box + 2 * MARGIN, last * LEVEL + ASCENT + DESCENT + 2 * MARGIN
    edges = "".join(_edges(spot, found, last) for spot in found)
    title = escape(" ".join(map(printable, tree.words())))
    return (
        f'<svg class="sc-tree" role="img" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" xmlns="http://www.w3.org/2000/svg"><title>{title}</title>'
        f'<style>{STYLE}</style><path d="{edges}"/>'
        f"{''.join(_text(spot, last) for spot in found)}</svg>"
    )


def _measure(text: str) -> int:
    return FIGURE * cell_len(text)


def _base(spot: Spot, last: int) -> int:
    """The base line of a text; words are in the last row."""
    return MARGIN + ASCENT + LEVEL * (spot.depth if spot.below else last)


def _text(spot: Spot, last: int) -> str:
    css = "" if spot.below else ' class="w"'
    return f'<text{css} x="{spot.x + MARGIN}" y="{_base(spot, last)}">{escape(spot.text)}</text>'


def _edges(spot: Spot, found: Sequence[Spot], last: int) -> str:
    """Lines to what is below."""
    start = f"M{spot.x + MARGIN} {_base(spot, last) + DESCENT}"
    ends = [(found[n].x + MARGIN, _base(found[n], last) - ASCENT - 2) for n in spot.below]
    return "".join(f"{start}L{x} {y}" for x, y in ends)


# Trees in the terminal: from the top down with the sentence below, or as indented lines.


TEXT_GAP = 2
CUT = "…"


def drawn(tree: Tree, width: int | None = None) -> str:
    """A tree as plain text.

    ``width``  columns that there are; None: those of the terminal. A tree that is wider has a line
               for each label instead, and below each other what is on one level; where even that
               has no room, the left margin is cut

    >>> from softcount.corpus.trees import tree
    >>> print(drawn(tree("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"), 40))
           S
       ┌───┴────┐
       NP       VP
     ┌─┴──┐     │
     DT   NN   VBZ
     │    │     │
    the  dog  barks
    >>> print(drawn(tree("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"), 12))
    S
    ├─ NP
    │  ├─ DT the
    │  └─ NN dog
    └─ VP
       └─ VBZ barks
    """
    room = shutil.get_terminal_size().columns if width is None else width
    found = laid_out(tree, cell_len, TEXT_GAP)
    return "\n".join(_from_above(found) if found[0].box <= room else _indented(tree, room))


# from the top down
def _from_above(found: Sequence[Spot]) -> Iterable[str]:
    """Rows of labels with rows of lines between them; the words are in the last row."""
    last = max(spot.depth for spot in found)
    rows: list[list[tuple[int, str]]] = [[] for _ in range(2 * last + 1)]
    for spot in found:
        if not spot.below:
            rows[-1].append((spot.left, spot.text))
            for row in rows[2 * spot.depth : -1]:
                row.append((spot.x, "│"))
        else:
            rows[2 * spot.depth].append((spot.left, spot.text))
            children = [found[n].x for n in spot.below]
            rows[2 * spot.depth + 1].append((children[0], _branches(spot.x, children)))
    return map(_row, rows)


def _branches(parent: int, children: Sequence[int]) -> str:
    """The line from the first to the last child, with what leads up from it and down.

    >>> _branches(3, [0, 3, 6]), _branches(2, [0, 5]), _branches(1, [1])
    ('┌──┼──┐', '┌─┴──┐', '│')
    """
    if len(children) == 1:
        return "│"
    line = ["─"] * (children[-1] - children[0] + 1)
    for child in children:
        line[child - children[0]] = "┬"
    line[0], line[-1] = "┌", "┐"
    above = parent - children[0]
    line[above] = {"─": "┴", "┬": "┼", "┌": "├", "┐": "┤"}[line[above]]
    return "".join(line)


def _row(parts: Sequence[tuple[int, str]]) -> str:
    line, end = [], 0
    for start, text in sorted(parts):
        line.append(" " * (start - end) + text)
        end = start + cell_len(text)
    return "".join(line).rstrip()


# as indented lines
def _indented(tree: Tree, room: int) -> Iterable[str]:
    """A line for each constituent; a tag has its word beside it."""
    found = spots(tree, cell_len)
    most = max(room // 2, 6)  # so wide is the margin at most, however deep the tree
    ahead: list[tuple[int, str, str]] = [(0, "", "")]  # spots, their margins, and those below them
    while ahead:
        n, margin, margin_below = ahead.pop()
        spot = found[n]
        only = found[spot.below[0]] if len(spot.below) == 1 else None
        is_tag = only is not None and not only.below
        yield f"{margin}{spot.text}{f' {only.text}' if only and is_tag else ''}"
        for number, below in enumerate(reversed(() if is_tag else spot.below)):
            knee, line = ("├─ ", "│  ") if number else ("└─ ", "   ")
            ahead.append(
                (below, _cut_text(margin_below + knee, most), _cut_text(margin_below + line, most))
            )


def _cut_text(margin: str, most: int) -> str:
    return margin if len(margin) <= most else CUT + margin[len(margin) - most + 1 :]


# A page about a grammar: its symbols with their rules and words, trees, how it was learned.


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

    >>> from softcount.grammar import PCFG
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
    return resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")


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
    drawn = "".join(f'<div class="wide tree">{svg(tree)}</div>' for tree in found)
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
