"""HTML report and text overview of grammars; drawings of trees as SVG and as text."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.cells import cell_len

from softcount.core.errors import DataError, brief
from softcount.core.types import Fit, FloatArray
from softcount.grammar.core import ROOT, RULES, WORDS
from softcount.hmm.report import SMALLEST, choose_sentences
from softcount.report.finding import Bars, describe_outcome, make_bars
from softcount.report.page import render, render_page
from softcount.report.tables import Column, Overview, draw_bars
from softcount.report.text import clean, flatten, isolate, plural, shorten_word
from softcount.text.sequences import Sequences, sequences
from softcount.text.treebank import Trees
from softcount.text.trees import Tree, from_spans

if TYPE_CHECKING:
    from softcount.grammar.estimators import PCFG

MOST = 12
"""Number of rules and words kept for each symbol."""
RULES_IN_LINE, WORDS_IN_LINE = 3, 6
ROWS = 8
"""Number of rules and words of a symbol on the page."""
LONGEST_RULE = 60

Ranked = Sequence[tuple[str, float]]
"""Right sides of rules, or words, with their probabilities, the most probable first."""


@dataclass(frozen=True)
class SymbolSummary:
    """Summary of a symbol.

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
    rules: Ranked
    words: Ranked

    def make_bars(self) -> list[Bars]:
        """Make bars of its rules and words, each on its own scale: their numbers vary widely."""
        found = []
        for what, some, longest in (("rules", self.rules, LONGEST_RULE), ("words", self.words, 24)):
            named: dict[str, float] = {}
            for text, p in some:
                named.setdefault(shorten_word(text, longest), p)  # what is cut may be the same
            bars = make_bars(f"most probable {what}", named, ROWS, own_scale=True)
            found += [replace(bars, left_out=0)] if some else []
        return found


@dataclass(frozen=True, eq=False)
class GrammarOverview(Overview):
    """Overview of all symbols, the most frequent first.

    ``fit``     None if nothing was learned, or the model came from a file
    ``notes``   remarks, each a sentence
    ``scores``  lines on how trees agree with gold ones, if there are any
    """

    symbols: Sequence[SymbolSummary]
    signature: str
    fit: Fit | None = None
    notes: Sequence[str] = ()
    scores: Sequence[str] = ()

    def first(self, n: int) -> GrammarOverview:
        """Truncate to at most n symbols, with a remark on the others."""
        if len(self.symbols) <= n:
            return self
        remark = f"{n} of {len(self.symbols):,} symbols; --summary has all"
        return replace(self, symbols=self.symbols[:n], notes=[*self.notes, remark])

    def columns(self) -> list[Column]:
        """Return the columns of the table, with a row for each symbol."""
        names, rules = [s.name for s in self.symbols], []
        for symbol in self.symbols:
            right_sides = [text for text, _ in symbol.rules[:RULES_IN_LINE]]
            words = " ".join(shorten_word(word) for word, _ in symbol.words[:WORDS_IN_LINE])
            rules.append(" | ".join([*right_sides, *([words] if words else [])]))
        numbers = ["" if s.number is None else f"{s.number:,}" for s in self.symbols]
        shares = ["" if s.number is None else f"{s.share:.4f}" for s in self.symbols]
        return [
            Column("symbol", names, names, "name"),
            Column("constituents", numbers, [text.replace(",", "") for text in numbers]),
            Column("share", None, shares),
            Column("", draw_bars([s.share for s in self.symbols]), kind="bar"),
            Column("rules and words", rules, rules, "words"),
        ]

    def remarks(self) -> list[str]:
        """Return the notes, and the scores against gold trees."""
        return [*self.notes, *self.scores]

    def facts(self) -> dict[str, Any]:
        """Return the remarks and all symbols, for JSON."""
        symbols = [
            {
                **{"symbol": one.name, "constituents": one.number, "share": one.share},
                **{"root": one.root, "rules": dict(one.rules), "words": dict(one.words)},
            }
            for one in self.symbols
        ]
        return {"notes": list(self.notes), "scores": list(self.scores), "symbols": symbols}


def summarise_grammar(
    model: PCFG,
    trees: Iterable[Tree | None] | Counter[str] | None = None,
    notes: Sequence[str] = (),
    scores: Sequence[str] = (),
) -> GrammarOverview:
    """Summarise the symbols of a grammar.

    ``trees``  the predicted trees of sentences, or how many constituents have each label
    """
    tables = model.params_
    core: Any = model.core_  # of rules it has symbols that trees do not show
    names = model.labels_ if WORDS in tables else core.rules.symbols
    rules, words = ([list[tuple[str, float]]() for _ in names] for _ in range(2))
    if WORDS in tables:  # nonterminals have no words, preterminals no rules
        n = len(names)
        for a, row in enumerate(tables[RULES]):
            rules[a] = _rank(row, lambda at: f"{names[at // n]} {names[at % n]}")
        for a, row in enumerate(tables[WORDS], len(tables[RULES])):
            words[a] = _rank(row, lambda at: core.vocabulary.words[at])
    else:
        grammar = model.grammar(0.0)
        for rule, p in zip(grammar.rules, grammar.probabilities.tolist(), strict=True):
            if rule.is_lexical:
                words[core.rules.index[rule.lhs]].append((rule.rhs[0], p))
                continue
            parts = zip(rule.rhs, rule.is_word, strict=True)
            right = " ".join(f"'{item}'" if word else item for item, word in parts)
            rules[core.rules.index[rule.lhs]].append((right, p))
        for some in (*rules, *words):
            some.sort(key=lambda pair: -pair[1])
    # trees have plain labels
    counts = trees if isinstance(trees, Counter) else count_labels(trees or ())
    if names != model.labels_:
        counts = Counter()
    total = counts.total()
    symbols = []
    for a, (name, root) in enumerate(zip(names, tables[ROOT][0].tolist(), strict=True)):
        number, share = (counts[name], counts[name] / total) if total else (None, 0.0)
        likeliest = (rules[a][:MOST], words[a][:MOST])
        symbols.append(SymbolSummary(name, root, number, share, *likeliest))
    symbols.sort(key=lambda one: -one.share)
    return GrammarOverview(symbols, model.signature_, getattr(model, "fit_", None), notes, scores)


def count_labels(trees: Iterable[Tree | None]) -> Counter[str]:
    """Count the constituents that have each label."""
    return Counter(node.label for tree in trees if tree is not None for node in tree.nodes())


def _rank(row: FloatArray, name: Callable[[int], str]) -> list[tuple[str, float]]:
    """Return the largest probabilities of a row, by name."""
    best = np.argsort(-row, kind="stable")[:MOST].tolist()
    return [(name(number), float(row[number])) for number in best if row[number] >= SMALLEST]


# Where the labels and words of a tree stand in a picture: parents above the middle of children.


@dataclass(slots=True)
class Spot:
    """A label or a word, and its position.

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
        return self.x - count_left(self.size)


def count_left(size: int) -> int:
    """How many columns are left of the middle one.

    >>> [count_left(size) for size in (1, 2, 3, 4)]
    [0, 0, 1, 1]
    """
    return (size - 1) // 2


def list_spots(tree: Tree, measure: Callable[[str], int]) -> list[Spot]:
    """List all labels and words of a tree in preorder, without positions.

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
        text = isolate(flatten(step if isinstance(step, str) else step.label))
        found.append(Spot(text, len(above), max(measure(text), 1)))
        if not isinstance(step, str):
            above.append(len(found) - 1)
    return found


def lay_out(tree: Tree, measure: Callable[[str], int], gap: int) -> list[Spot]:
    """Lay out all labels and words of a tree in preorder; the first box is that of the picture.

    ``gap``  how much room is between neighbours

    >>> from softcount.text.trees import tree
    >>> some = lay_out(tree("(S (NP it) (VP rains))"), len, 1)
    >>> [(spot.text, spot.depth, spot.x) for spot in some], some[0].box
    ([('S', 0, 2), ('NP', 1, 0), ('it', 2, 0), ('VP', 1, 5), ('rains', 2, 5)], 8)
    """
    found = list_spots(tree, measure)
    for spot in reversed(found):
        # side by side what is below, and the spot itself above the middle of the first and the
        # last; places count from the box's left edge
        below, width = [found[n] for n in spot.below], -gap
        for one in below:
            one.edge = width + gap
            width = one.edge + one.box
        middle = (below[0].edge + below[0].x + below[-1].edge + below[-1].x) // 2 if below else 0
        spot.x = max(middle, count_left(spot.size))
        for one in below:
            one.edge += spot.x - middle
        spot.box = spot.x + max(width - middle, spot.size - count_left(spot.size))
    for spot in found:  # places in boxes become places in the picture
        spot.x += spot.edge
        for n in spot.below:
            found[n].edge += spot.edge
    return found


# Trees as plain SVG: no script, no network, legible in the dark and in print.


FIGURE = 8
"""How wide a letter is taken to be; those of Chinese and its like are two wide."""
GAP, MARGIN = 14, 10
LEVEL, ASCENT, DESCENT = 46, 13, 5
"""Distance of rows, and what a text covers above and below its base line."""


def tree_svg(tree: Tree) -> str:
    """Draw a tree as a self-contained ``<svg>`` element.

    The words stand side by side below, as a sentence.

    >>> from softcount.text.trees import tree
    >>> picture = str(tree_svg(tree("(NP (DT the) (NN dog))")))
    >>> picture[:20], picture.count("<text"), "<title>the dog</title>" in picture
    ('<svg class="sc-tree"', 5, True)
    """
    found = lay_out(tree, lambda text: FIGURE * cell_len(text), GAP)
    last = max(spot.depth for spot in found)
    # base lines; words are in the last row
    base = [MARGIN + ASCENT + LEVEL * (spot.depth if spot.below else last) for spot in found]
    edges = [
        f"M{spot.x + MARGIN} {y + DESCENT}L{found[n].x + MARGIN} {base[n] - ASCENT - 2}"
        for spot, y in zip(found, base, strict=True)
        for n in spot.below
    ]
    return render(
        "grammar/tree.svg",
        width=found[0].box + 2 * MARGIN,
        height=last * LEVEL + ASCENT + DESCENT + 2 * MARGIN,
        title=" ".join(isolate(flatten(word)) for word in tree.words()),
        edges="".join(edges),
        spots=[(spot.x + MARGIN, y, spot) for spot, y in zip(found, base, strict=True)],
    )


# Trees in the terminal: from the top down with the sentence below, or as indented lines.


TEXT_GAP = 2
CUT = "…"
KNEES, LAST_KNEE = ("├─ ", "│  "), ("└─ ", "   ")
"""What is before a label, and before all below it."""


def draw_tree(tree: Tree, width: int | None = None) -> str:
    """Draw a tree as plain text.

    ``width``  columns that there are; None: those of the terminal. A tree that is wider has a line
               for each label instead, and below each other what is on one level; where even that
               has no room, the left margin is cut

    >>> from softcount.text.trees import tree
    >>> print(draw_tree(tree("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"), 40))
           S
       ┌───┴────┐
       NP       VP
     ┌─┴──┐     │
     DT   NN   VBZ
     │    │     │
    the  dog  barks
    >>> print(draw_tree(tree("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"), 12))
    S
    ├─ NP
    │  ├─ DT the
    │  └─ NN dog
    └─ VP
       └─ VBZ barks
    """
    room = shutil.get_terminal_size().columns if width is None else width
    found = lay_out(tree, cell_len, TEXT_GAP)
    return "\n".join(_from_above(found) if found[0].box <= room else _indented(tree, room))


# from the top down
def _from_above(found: Sequence[Spot]) -> Iterable[str]:
    """Draw rows of labels with rows of lines between them; the words are in the last row."""
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
    for parts in rows:
        line, end = "", 0
        for start, text in sorted(parts):
            line += " " * (start - end) + text
            end = start + cell_len(text)
        yield line.rstrip()


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


# as indented lines
def _indented(tree: Tree, room: int) -> Iterable[str]:
    """Draw one line for each constituent; a tag has its word next to it."""
    found = list_spots(tree, cell_len)
    most = max(room // 2, 6)  # so wide is the margin at most, however deep the tree
    ahead: list[tuple[int, str, str]] = [(0, "", "")]  # spots, their margins, and those below them
    while ahead:
        n, margin, margin_below = ahead.pop()
        spot = found[n]
        only = found[spot.below[0]] if len(spot.below) == 1 else None
        is_tag = only is not None and not only.below
        yield f"{margin}{spot.text}{f' {only.text}' if only and is_tag else ''}"
        for number, below in enumerate(reversed(() if is_tag else spot.below)):
            margins = [margin_below + part for part in (KNEES if number else LAST_KNEE)]
            own, after = (m if len(m) <= most else CUT + m[1 - most :] for m in margins)
            ahead.append((below, own, after))


# The page


EXAMPLES = 8
MOST_SYMBOLS = 200
BINS = (5, 10, 15, 20, 30, 40, 60)
"""Upper bounds of the bins of sentence lengths."""


def grammar_report(
    model: PCFG,
    sentences: Any = None,
    n: int = EXAMPLES,
    *,
    method: str = "viterbi",
    title: str = "A grammar",
) -> str:
    """Make an HTML page about a grammar: symbols, their rules and words, trees of sentences.

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
        raise DataError(f"n={brief(n)} trees cannot be shown", "give a number from 0 on")
    if sentences is None:
        return grammar_page(model, summarise_grammar(model), title=title)
    some = sentences.words() if isinstance(sentences, Trees) else sentences
    text = some if isinstance(some, Sequences) else sequences(some)
    trees = [
        tree if tree is None else from_spans(text.sentence(i), tree.spans())
        for i, tree in enumerate(model.predict(text, method=method))
    ]
    return grammar_page(model, summarise_grammar(model, trees), text, trees, n, title=title)


def grammar_page(
    model: PCFG,
    overview: GrammarOverview,
    text: Sequences | None = None,
    trees: Sequence[Tree | None] = (),
    n: int = EXAMPLES,
    *,
    title: str = "A grammar",
) -> str:
    """Render the page, given the trees of sentences (None: no tree)."""
    lengths = [] if text is None else text.lengths.tolist()
    words = len(model.core_.vocabulary.words)
    lead = f"{plural(len(model.labels_), 'symbol')} over {plural(words, 'different word')}"
    if any(lengths):
        lead += f"; {plural(sum(length > 0 for length in lengths), 'sentence')}"
    rows = []  # of lengths: the ends of the range, how many sentences, and the share with a tree
    for first, last in zip((0, *BINS), (*BINS, max([*lengths, BINS[-1]])), strict=True):
        own = [i for i, length in enumerate(lengths) if first < length <= last]
        if own:
            parsed = sum(trees[i] is not None for i in own) / len(own)
            rows.append((first + 1, last, len(own), parsed))
    examples = choose_sentences([0 if tree is None else len(tree.words()) for tree in trees], n)
    return render_page(
        "grammar/report.html",
        clean(title),
        f"{lead}.",
        overview=overview,
        symbols=overview.symbols[:MOST_SYMBOLS],
        lengths=rows,
        trees=[tree_svg(tree) for tree in (trees[i] for i in examples) if tree is not None],
        settings=repr(model),
        outcome=describe_outcome(overview.outcome).replace("-", "−").replace("log−", "log-"),
    )
