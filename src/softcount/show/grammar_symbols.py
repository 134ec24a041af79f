"""What there is to show of a grammar, the same for the page, the terminal and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.corpus.trees import Tree
from softcount.models.grammar.dense import ROOT, RULES, WORDS
from softcount.show.finding import ended
from softcount.show.sequences_states import SMALLEST, one_word
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
