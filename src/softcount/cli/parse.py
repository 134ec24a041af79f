"""``softcount parse``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from softcount.cli import grammar_options as o
from softcount.cli import options
from softcount.cli.conflicts import refuse_two_of_stdin, refuse_with
from softcount.cli.guard import readable_errors

if TYPE_CHECKING:
    from softcount.cli.grammar_answers import Parsed
    from softcount.cli.grammar_known import BracketReader
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.treebank import Trees
    from softcount.corpus.trees import Tree
    from softcount.models.grammar import PCFG

BATCH = 256
"""So many sentences are parsed at a time: what is printed comes soon, and memory stays small."""


def parse(
    ctx: typer.Context,
    model: o.Model,
    file: o.ToParse = "-",
    method: o.Method_ = o.Method.VITERBI,
    k_best: o.KBest = None,
    draw: o.Draw = False,
    brackets: o.ParseBrackets = None,
    labels: o.Labels = False,
    gold: o.ParseGold = None,
    prune: o.Prune = 0.0,
    threads: options.Threads = None,
) -> None:
    """Find the trees of sentences by a grammar.

    Prints the tree of every sentence in Penn brackets: exactly one line for each line of the file,
    a blank one for a blank one, as soon as sentences come. A sentence that has no tree is a flat
    one, (FAILED (XX word) (XX word) …), and stderr counts them. Brackets in words are -LRB- and
    -RRB-.

    \b
    softcount parse grammar.softcount new.txt > trees.txt
    softcount parse grammar.softcount new.txt --method labelled --gold new.mrg > trees.txt
    softcount parse grammar.softcount new.txt --k-best 5
    echo 'the dog barks' | softcount parse grammar.softcount --draw
    """
    if k_best is not None:
        refuse_with(ctx, "--k-best", ("method", "draw"), "it prints the most probable trees")
    if labels and brackets is None:
        raise typer.BadParameter("--labels needs --brackets")
    refuse_two_of_stdin(file, brackets, gold)
    with readable_errors():
        from softcount.cli.models import load_grammar

        grammar = load_grammar(model, threads, prune)
        _Job(grammar, file, method, k_best, draw, brackets, labels, gold).run()


@dataclass(frozen=True)
class _Job:
    """What is to be parsed, and what is wanted of it."""

    model: PCFG
    file: str
    method: o.Method
    k_best: int | None
    draw: bool
    brackets: str | None
    labels: bool
    gold: str | None
    failures: list[int] = field(default_factory=list)

    def run(self) -> None:
        """Print trees as sentences come; then say what there is to be said of all of them."""
        from softcount.cli import grammar_answers as answers
        from softcount.cli.grammar_known import demand_as_many, remark_on_brackets
        from softcount.cli.tag_answers import print_text

        gold, reader = self._gold(), self._reader()
        kept: list[Tree | None] = []
        total = 0
        for text in self._batches():
            found, printed = self._parsed(text, None if reader is None else reader.take(text))
            print_text(printed)
            if total == 0:
                answers.say(remark_on_brackets(text))
                answers.say(answers.remark_on_pruning(self.model, text))
            self.failures.extend(found.failures)
            total += len(text)
            if gold is not None:
                kept += found.trees
        if reader is not None:
            reader.demand_end()
        answers.say(answers.remark_on(self.failures, total))
        if gold is not None:
            demand_as_many("--gold", gold.origin, len(gold), total, "trees")
            for line in answers.beside_gold(kept, gold, self.model.labels_):
                typer.echo(line, err=True)

    def _batches(self) -> Iterator[Sequences]:
        from softcount.cli.grammar_answers import batches
        from softcount.cli.grammar_known import stream_sentences

        for piece in stream_sentences(self.file):
            yield from batches(piece, BATCH)

    def _gold(self) -> Trees | None:
        if self.gold is None:
            return None
        from softcount.cli.grammar_known import cleaning_for, read_trees

        return read_trees(self.gold, cleaning_for(self.model.labels_))

    def _reader(self) -> BracketReader | None:
        if self.brackets is None:
            return None
        from softcount.cli.grammar_known import BracketReader, cleaning_for
        from softcount.cli.lines import numbered

        symbols = self.model.labels_
        lines = numbered(self.brackets)
        return BracketReader(lines, self.brackets, cleaning_for(symbols), self.labels, symbols)

    def _parsed(self, text: Sequences, known: object) -> tuple[Parsed, str]:
        """Trees, and what is printed of them."""
        from softcount.cli import grammar_answers as answers

        if self.k_best is not None:
            return answers.best_lines(self.model, text, self.k_best, known)
        found = answers.parsed(self.model, text, method=self.method.value, brackets=known)
        return found, answers.joined(found.drawings() if self.draw else found.lines())
