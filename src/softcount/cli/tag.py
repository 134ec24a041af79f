"""``softcount tag``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softcount.cli import options
from softcount.cli import tag_options as o
from softcount.cli.align_learning import DTYPES
from softcount.cli.align_options import Precision
from softcount.cli.conflicts import refuse_two_of_stdin, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName

if TYPE_CHECKING:
    from softcount.cli.tag_answers import Answers, Style
    from softcount.cli.tag_text import TagText
    from softcount.corpus.tagged import Tagged
    from softcount.models.sequences import HMM

LEARNING_OPTIONS = (
    *("k", "dictionary", "open_tags", "tagged", "order", "no_stop", "smoothing", "learner"),
    *("features", "init"),
    *("max_iter", "n_init", "precision", "lowercase", "seed", "save"),
)


def tag(
    ctx: typer.Context,
    file: o.File = None,
    k: o.States = None,
    dictionary: o.Dictionary = None,
    open_tags: o.OpenTags = None,
    tagged: o.TaggedFile = None,
    form: o.Format = None,
    lowercase: o.Lowercase = False,
    order: o.Order = 1,
    no_stop: o.NoStop = False,
    features: o.Features = False,
    init: o.Init = None,
    smoothing: o.Smoothing = None,
    learner: o.Learner = None,
    max_iter: options.MaxIter = None,
    n_init: options.NInit = None,
    precision: o.Precision_ = Precision.DOUBLE,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    decode: o.Decode = o.Decoder.VITERBI,
    separator: o.Separator = "/",
    states: o.StatesAlone = False,
    column: o.Column = None,
    proba: o.Proba = False,
    json: o.Json = False,
    summary: options.Summary = False,
    gold: o.Gold = None,
    save: options.Save = None,
    load: options.Load = None,
    html: o.Html = None,
) -> None:
    """Find what kind of word each word is: a hidden Markov model of sentences.

    Prints every sentence with a state (or tag) for each word, word/STATE: exactly one line for each
    line of the file, a blank one for a blank one; or the same CoNLL-U file with a column filled in.
    Nothing need be known (then say -k); or a dictionary of tags, or the tags of some sentences.
    What was learned goes to stderr. A sentence that the model takes to be impossible gets the
    states that take the fewest impossible moves and words, and stderr names its line.

    \b
    softcount tag sentences.txt -k 45 --html states.html > states.txt
    softcount tag sentences.txt --dictionary words.tsv --open-tags NOUN,VERB,ADJ
    softcount tag more.conllu --tagged some.conllu --save tags.softcount > tagged.conllu
    softcount tag --load tags.softcount new.txt --proba
    softcount tag --load tags.softcount test.conllu --gold test.conllu > tagged.conllu
    """
    if learner is LearnerName.SPECTRAL:
        raise typer.BadParameter("--learner spectral: to start from moments, say --init spectral")
    if load is not None:
        refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
    elif k is None and dictionary is None and tagged is None:
        raise typer.BadParameter("how many states? give -k, or --dictionary, or --tagged")
    if open_tags is not None and dictionary is None:
        raise typer.BadParameter("--open-tags needs --dictionary")
    file = _source(file, tagged, bool(save or html or summary))
    refuse_two_of_stdin(file, dictionary, tagged, gold)
    if gold is not None and file is None:
        raise typer.BadParameter("--gold needs FILE, the sentences that it is of")
    with readable_errors():
        from softcount.cli import tag_learning
        from softcount.cli.tag_answers import Style
        from softcount.engines import Local

        _check_column(column)
        style = Style(separator, states, column, json)
        job = _Job(file, form, decode, proba, style, summary, gold, html)
        if load is not None:
            from softcount.cli.models import load_tagger

            job.tag_by(load_tagger(load, threads))
            return
        settings: dict[str, Any] = {
            **{"order": order, "stop": not no_stop, "lowercase": lowercase},
            "emissions": "features" if features else "table",
            "init": None if init is None else init.value,
            "smoothing": tag_learning.prior_for(learner, smoothing),
            "dictionary": tag_learning.read_dictionary(dictionary, lowercase),
            "open_tags": tag_learning.open_tags(open_tags),
            "learner": tag_learning.learner_for(learner, max_iter, n_init),
            **{"dtype": DTYPES[precision], "engine": Local(threads), "random_state": seed},
        }
        model, text, right = job.learned(k, settings, tagged)
        try_all(at(save, model.save), lambda: job.finish(model, text, right, unseen=False))


def _source(file: str | None, tagged: str | None, wanted: bool) -> str | None:
    """Where sentences are; None: there are those of --tagged alone."""
    if file is not None:
        return file
    if tagged is not None:
        if not wanted:
            raise typer.BadParameter("nothing to tag: give FILE, or --save")
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        raise typer.BadParameter("no sentences: give a file, or - to type them")
    return "-"


def _check_column(column: str | None) -> None:
    if column is not None:
        from softcount.corpus.conllu import column_index

        column_index(column)


@dataclass(frozen=True)
class _Job:
    """What is to be tagged, and what is wanted of it."""

    file: str | None
    form: o.Form | None
    decoder: o.Decoder
    proba: bool
    style: Style
    summary: bool
    gold: str | None
    html: Path | None

    def learned(
        self, k: int | None, settings: dict[str, Any], tagged: str | None
    ) -> tuple[HMM, TagText | None, Tagged | None]:
        """A model of the sentences, these, and their gold tags."""
        from softcount.cli import tag_learning
        from softcount.cli.tag_notes import of_open_tags
        from softcount.cli.tag_text import read_text
        from softcount.models.sequences import HMM

        known = None if tagged is None else self._tags("--tagged", tagged)
        spoken = tag_learning.tags_of(settings["dictionary"], known)
        self._say(of_open_tags(settings["open_tags"], spoken))
        text = None if self.file is None else read_text(self.file, self.form)
        self._demand_printable(spoken, text)
        gold = self._gold(text)
        model = HMM(k, **settings)
        plain = None if text is None else text.sequences
        tag_learning.learn(model, tag_learning.Lessons(plain, known))
        return model, text, gold

    def _demand_printable(self, names: Any, text: TagText | None) -> None:
        from softcount.cli.tag_learning import demand_printable

        printed = names if text is not None and self.style.is_lines(text) else ()
        demand_printable(printed, self.style.separator, self.style.alone)

    def _gold(self, text: TagText | None) -> Tagged | None:
        if self.gold is None or text is None:
            return None
        from softcount.cli.tag_answers import demand_same

        gold = self._tags("--gold", self.gold)
        demand_same(gold, text, self.gold)
        return gold

    def _tags(self, option: str, path: str) -> Tagged:
        from softcount.cli.tag_notes import demand_tags
        from softcount.cli.tag_text import read_tags

        known = read_tags(path, self.style.column, self.style.separator)
        demand_tags(known, f"{option} {path}", self.style.separator)
        return known

    def tag_by(self, model: HMM) -> None:
        """Tag by a model from a file: as sentences come, if nothing is wanted of all together."""
        from softcount.cli.tag_answers import answered, print_text
        from softcount.cli.tag_text import read_text, stream

        assert self.file is not None
        if self.summary or self.gold is not None or self.html is not None:
            whole = read_text(self.file, self.form)
            self._demand_printable(model.states_, whole)
            self.finish(model, whole, self._gold(whole), unseen=True)
            return
        for text in stream(self.file, self.form):
            self._demand_printable(model.states_, text)
            answers = answered(model, text, self.decoder, self.proba)
            print_text(self.style.text(answers))
            self._say(answers.remark())

    def _say(self, remark: str) -> None:
        if remark:
            typer.echo(f"softcount: {remark}", err=True)

    def finish(
        self, model: HMM, text: TagText | None, gold: Tagged | None, *, unseen: bool
    ) -> None:
        """Print and write all that is wanted."""
        from softcount.cli import tag_answers, tag_notes
        from softcount.show.sequences_states import states_shown

        answers = scores = None
        remarks: list[str] = []
        if text is not None:
            answers = tag_answers.answered(model, text, self.decoder, self.proba)
            remarks = [answers.remark(), tag_notes.of_dictionary(model, text)]
            if gold is not None:
                pair = tag_answers.beside(answers, gold, model)
                scores = tag_answers.scored(pair, answers.text, model, unseen=unseen)
                remarks.append(tag_notes.beside_gold(pair))
        notes = [remark for remark in remarks if remark]
        shown = states_shown(model, None if answers is None else answers.states, notes, scores)

        def tell() -> None:
            watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
            if self.summary or not watched:
                tag_answers.print_overview(shown, summary=self.summary, as_json=self.style.as_json)
            if answers is not None and not self.summary:
                tag_answers.print_text(self.style.text(answers))
            if watched and not self.summary:
                tag_answers.print_overview(shown, summary=False, as_json=False)

        try_all(tell, lambda: self._write_page(model, shown, text, answers))

    def _write_page(
        self, model: HMM, shown: Any, text: TagText | None, answers: Answers | None
    ) -> None:
        if self.html is None:
            return
        from softcount.cli.answers import called
        from softcount.show.report import write_page
        from softcount.show.sequences import page_of

        where = "" if self.file is None else f" in {called(self.file)}"
        sentences: Sequence[Sequence[str]] = ()
        if text is not None:
            sentences = [text.sequences.sentence(n) for n in range(len(text))]
        states = () if answers is None else answers.states
        title = f"{len(model.states_):,} hidden states{where}"
        write_page(self.html, page_of(model, shown, sentences, states, title=title))
