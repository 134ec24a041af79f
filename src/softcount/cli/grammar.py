"""``softcount grammar``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softcount.cli import grammar_options as o
from softcount.cli import options
from softcount.cli.align_learning import DTYPES
from softcount.cli.align_options import Precision
from softcount.cli.conflicts import refuse_two_of_stdin, refuse_with
from softcount.cli.ending import Deed, at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName

if TYPE_CHECKING:
    from softcount.cli.grammar_answers import Parsed
    from softcount.cli.grammar_learning import Known, Lessons
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.treebank import Trees
    from softcount.models.grammar import PCFG
    from softcount.show.grammar_symbols import GrammarShown

NOT_COUNTED = (
    *("n", "p", "rules", "brackets", "labels", "trees", "max_length", "init", "smoothing"),
    *("learner", "max_iter", "tol", "n_init", "precision", "seed"),
)
NOT_WITH_RULES = ("n", "p", "precision")
MOST_SYMBOLS = 60
"""So many are told of on stderr; treebanks have thousands, if symbols know what is around them."""
ALONE = "scores are of trees that were found without --brackets and --trees"


def grammar(
    ctx: typer.Context,
    file: o.File = None,
    n: o.Nonterminals = None,
    p: o.Preterminals = None,
    rules: o.Rules = None,
    treebank: o.Treebank = None,
    brackets: o.Brackets = None,
    labels: o.Labels = False,
    trees: o.KnownTrees = None,
    keep_functions: o.KeepFunctions = False,
    horizontal: o.Horizontal = None,
    vertical: o.Vertical = 1,
    lowercase: o.Lowercase = False,
    max_length: o.MaxLength = None,
    init: o.Init = None,
    smoothing: o.Smoothing = None,
    learner: o.Learner = None,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    precision: o.Precision_ = Precision.DOUBLE,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    summary: options.Summary = False,
    show: o.Show = 0,
    gold: o.Gold = None,
    grammar_text: o.GrammarText = None,
    save: o.Save = None,
    html: o.Html = None,
) -> None:
    """Learn how sentences are made: a probabilistic context-free grammar, and their trees.

    Prints the best tree of every sentence in Penn brackets: exactly one line for each line of the
    file, a blank one for a blank one. A sentence without a tree is a flat one, (FAILED (XX word)
    …), and stderr names its line. Nothing need be known (then say -n); or the rules, or some
    brackets, which the trees agree with, or some trees, which stay as they are; or there is a
    treebank, whose rules are counted. What was learned goes to stderr.

    \b
    softcount grammar sentences.txt -n 20 -o grammar.softcount --report grammar.html > trees.txt
    softcount grammar sentences.txt --rules rules.txt --grammar-text learned.txt
    softcount grammar sentences.txt -n 15 --brackets known.txt --gold gold.mrg
    softcount grammar --treebank wsj.mrg --horizontal 1 --vertical 2 -o wsj.softcount
    softcount parse wsj.softcount new.txt
    """
    _refuse(ctx, n, rules, treebank, trees, learner)
    if labels and brackets is None:
        raise typer.BadParameter("--labels needs --brackets")
    alone = treebank is not None or trees is not None
    file = _source(file, alone, bool(save or html or summary or grammar_text))
    if file is None and (brackets is not None or gold is not None or show):
        raise typer.BadParameter("--brackets, --gold and --show need FILE, the sentences")
    refuse_two_of_stdin(file, rules, treebank, brackets, trees, gold)
    with readable_errors():
        from softcount.cli.grammar_learning import Known, learner_for, n_preterminals
        from softcount.cli.tag_learning import prior_for
        from softcount.engines import Local

        known = Known(rules, treebank, brackets, trees, labels, keep_functions)
        settings: dict[str, Any] = {"lowercase": lowercase, "engine": Local(threads)}
        if treebank is not None:
            settings |= {"horizontal": horizontal, "vertical": vertical}
        else:
            settings |= {
                "smoothing": prior_for(learner, smoothing),
                "learner": learner_for(learner, max_iter, tol, n_init),
                "init": None if init is None else init.value,
                "random_state": seed,
            }
        if treebank is None and rules is None:
            settings |= {"n_nonterminals": n, "n_preterminals": n_preterminals(n, p, known)}
            settings["dtype"] = DTYPES[precision]
        job = _Job(file, known, max_length, summary, show, gold, grammar_text, save, html)
        job.run(settings)


def _refuse(
    ctx: typer.Context,
    n: int | None,
    rules: str | None,
    treebank: str | None,
    trees: str | None,
    learner: LearnerName | None,
) -> None:
    """Usage errors of options that do not go together."""
    if learner is LearnerName.SPECTRAL:
        raise typer.BadParameter("--learner spectral is for documents, and for softcount tag")
    if treebank is None:
        needs = ("horizontal", "vertical")
        refuse_with(ctx, "a grammar without --treebank", needs, "they are about its rules")
    if treebank is not None:
        refuse_with(ctx, "--treebank", NOT_COUNTED, "its rules are counted, and nothing learned")
    elif rules is not None:
        refuse_with(ctx, "--rules", NOT_WITH_RULES, "they say which symbols there are")
    elif n is None and trees is None:
        raise typer.BadParameter("which symbols? give -n, or --rules, --treebank or --trees")


def _source(file: str | None, alone: bool, wanted: bool) -> str | None:
    """Where sentences are; None: there are those of trees alone."""
    if file is not None:
        return file
    if alone:
        if not wanted:
            raise typer.BadParameter("nothing to parse: give FILE, or --output")
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        raise typer.BadParameter("no sentences: give a file, or - to type them")
    return "-"


@dataclass(frozen=True)
class _Job:
    """Where sentences are, and what is wanted of them."""

    file: str | None
    known: Known
    max_length: int | None
    summary: bool
    show: int
    gold: str | None
    grammar_text: str | None
    save: Path | None
    html: Path | None

    def run(self, settings: dict[str, Any]) -> None:
        """Learn, and print and write all that is wanted."""
        from softcount.cli.grammar_answers import say
        from softcount.cli.grammar_known import (
            demand_as_many,
            read_sentences,
            read_trees,
            remark_on_brackets,
        )

        text = None if self.file is None else read_sentences(self.file)
        if text is not None:
            say(remark_on_brackets(text))
        gold = None
        if self.gold is not None and text is not None:
            gold = read_trees(self.gold, self.known.changes)
            demand_as_many("--gold", self.gold, len(gold), len(text), "trees")
        model, told, notes = self._learned(settings, text)
        try_all(at(self.save, model.save), lambda: self._finish(model, told, gold, notes))

    def _learned(
        self, settings: dict[str, Any], text: Sequences | None
    ) -> tuple[PCFG, Lessons, list[str]]:
        """The grammar, the sentences and what is known of them, and what is to be said."""
        from softcount.cli import grammar_known, grammar_learning
        from softcount.models.grammar import PCFG

        if self.known.treebank is not None:
            model = grammar_learning.counted(self.known, settings)
            return model, grammar_learning.Lessons(text), []
        if self.known.rules is None:
            model, symbols = PCFG(**settings), None
        else:
            model = PCFG.from_rules(grammar_known.read_rules(self.known.rules), **settings)
            symbols = model.labels_
        every = grammar_learning.lessons(text, self.known, symbols)
        some, remark = every.up_to(self.max_length)
        grammar_learning.learn(model, some)
        return model, every, [remark] if remark else []

    def _finish(self, model: PCFG, told: Lessons, gold: Trees | None, notes: list[str]) -> None:
        from softcount.cli import grammar_answers as answers
        from softcount.cli.tag_answers import print_overview, print_text
        from softcount.show.grammar_symbols import grammar_shown

        text = told.text
        found = None if text is None else answers.parsed_as_told(model, text, told)
        scores: list[str] = []
        if text is not None and found is not None:
            remark = answers.remark_on(found.failures, len(found.trees))
            notes = [*notes, *([remark] if remark else [])]
            if gold is not None:
                alone = answers.parsed(model, text) if told.tells_trees else found
                scores = answers.beside_branching(alone.trees, gold, model.labels_)
                notes += [ALONE] if told.tells_trees else []
        shown = grammar_shown(model, None if found is None else found.trees, notes, scores)
        brief = shown if self.summary else shown.first(MOST_SYMBOLS)

        def tell() -> None:
            watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
            if self.summary or not watched:
                self._draw(found, to_stderr=not self.summary)
                print_overview(brief, summary=self.summary, as_json=False)
            if self.grammar_text == "-":
                print_text(self._rules(model))
            elif found is not None and not self.summary:
                print_text(answers.joined(found.lines()))
            if watched and not self.summary:
                self._draw(found, to_stderr=True)
                print_overview(brief, summary=False, as_json=False)

        try_all(tell, *self._files(model, shown, found))

    def _draw(self, found: Parsed | None, *, to_stderr: bool) -> None:
        """Some trees, for eyes."""
        from softcount.cli.grammar_answers import Parsed
        from softcount.show.sequences import chosen

        if found is None or not self.show:
            return
        lengths = [0 if tree is None else len(tree.words()) for tree in found.trees]
        numbers = chosen(lengths, self.show)
        some = Parsed(found.text.select(numbers), [found.trees[i] for i in numbers])
        for drawing in some.drawings():
            typer.echo(drawing, err=to_stderr)

    def _rules(self, model: PCFG) -> str:
        """The grammar as a text."""
        from softcount.cli.grammar_answers import joined

        dense = "words" in model.params_
        return joined([str(model.grammar() if dense else model.grammar(0.0))])

    def _files(self, model: PCFG, shown: GrammarShown, found: Parsed | None) -> Iterator[Deed]:
        """The files beside the model."""
        from softcount.cli.answers import called
        from softcount.show.grammar import page_of
        from softcount.show.report import write_whole

        def write_rules(name: str) -> None:
            write_whole(Path(name), self._rules(model), "the rules", "--grammar-text")

        def write_page(path: Path) -> None:
            where = self.file or self.known.treebank or self.known.trees or ""
            title = f"A grammar of {called(where)}"
            text, trees = (None, ()) if found is None else (found.text, found.trees)
            page = page_of(model, shown, text, trees, title=title)
            write_whole(path, page, "the page", "--report")

        yield at(None if self.grammar_text == "-" else self.grammar_text, write_rules)
        yield at(self.html, write_page)
