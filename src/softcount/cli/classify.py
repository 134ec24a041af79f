"""``softcount classify``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.conflicts import refuse_spectral, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.gold import compared, read_gold
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.targets import PLAIN
from softcount.cli.texts import Lines, WordFilter, read_labelled, read_texts, word_counter

if TYPE_CHECKING:
    from softcount.cli.answers import Answers
    from softcount.mixture import NaiveBayes
    from softcount.show.groups import Comparison, Grouping


@dataclass(frozen=True)
class Lessons:
    """What was learned from: lines with their labels, and lines without."""

    labels: Sequence[str] = ()
    labelled: Sequence[str] = ()
    unlabelled: Sequence[str] = ()
    source: str = ""


LEARNING_OPTIONS = (
    *("train", "unlabelled", "unlabelled_weight", "components", "smoothing", "length"),
    *("bernoulli", "tokens", "stop_words", "min_count", "max_share", "learner", "max_iter", "tol"),
    *("n_init", "seed", "threads", "save"),
)


def classify(
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="Lines to be labelled; .gz too; - is stdin. If not given: the --unlabelled lines.",
        ),
    ] = None,
    train: Annotated[
        str | None, typer.Option(metavar="FILE", help="Lines with labels: label, tab, text.")
    ] = None,
    unlabelled: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Lines without labels, to be learned from as well."),
    ] = None,
    unlabelled_weight: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="What an unlabelled line counts beside a labelled one, 0 to 1; cv: found by "
            "cross-validation on the labelled lines.",
        ),
        PLAIN,
    ] = "1",
    components: Annotated[int, typer.Option(min=1, help="Hidden components a label.")] = 1,
    smoothing: options.WordSmoothing = 0.1,
    length: Annotated[
        float | None,
        typer.Option(help="Stretch or shrink every line to so many words; 100 is usual."),
    ] = None,
    bernoulli: Annotated[
        bool, typer.Option("--bernoulli", help="Whether a word occurs, not how often.")
    ] = False,
    tokens: options.SplitAtSpaces = False,
    stop_words: options.StopWords = None,
    min_count: options.MinCount = 1,
    max_share: options.MaxShare = 1.0,
    learner: Annotated[LearnerName, options.HOW_TO_LEARN] = LearnerName.EM,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba",
            help="Print the label and the probabilities of all labels, in alphabetical order, "
            "tab-separated.",
        ),
    ] = False,
    json: options.JsonAnswers = False,
    summary: options.Summary = False,
    gold: options.Gold = None,
    save: options.Save = None,
    load: options.Load = None,
    html: options.Html = None,
) -> None:
    """Label the lines of a file, from labelled lines and from lines without labels.

    Prints each line's label: exactly one line for each line of the file. What was learned goes to
    stderr. A line without any word that the model knows gets the most common label, and stderr
    says which lines these are; --json shows them by "words": 0.

    \b
    softcount classify --train labelled.tsv new.txt > labels.txt
    softcount classify --train labelled.tsv --unlabelled more.txt --unlabelled-weight cv new.txt
    softcount classify --train labelled.tsv --save model.softcount
    softcount classify --load model.softcount new.txt --json
    """
    weight = _weight(unlabelled_weight)
    refuse_spectral(learner)
    _check_sources(train, unlabelled, file, gold, load)
    if load is not None:
        refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
    elif file is None and unlabelled is None and not (save or html or summary):
        raise typer.BadParameter("nothing to label: give FILE, --unlabelled, or --save")
    with readable_errors():
        from softcount.cli import answers, models
        from softcount.engines import Local
        from softcount.mixture import report as documents
        from softcount.show import report

        if load is not None:
            lessons, found = Lessons(), models.load_classifier(load)
        else:
            lessons = _lessons(train or "", unlabelled)
            found = _estimator(
                weight,
                components=components,
                smoothing=smoothing,
                length=length,
                bernoulli=bernoulli,
                learner=learner_called(learner, max_iter, tol, n_init),
                engine=Local(threads),
                random_state=seed,
            )
        where = file or lessons.source
        lines = _lines(file, lessons)
        known = read_gold(gold, where, len(lines.texts))
        if load is None:
            _learn(found, lessons, tokens, WordFilter(min_count, max_share, stop_words))
        said = answers.answer(found, lines, "label", [str(label) for label in found.classes_])

        def overview(*, examples: bool) -> Grouping:
            agreed = compared(said, known)
            return _grouping(found, said, lessons, where, agreed, examples=examples)

        def tell() -> None:
            asked = said if file is not None or unlabelled is not None else None
            shown = overview(examples=False)
            answers.print_all(asked, shown, proba=proba, as_json=json, summary=summary)

        def write(path: Path) -> None:
            report.write_page(path, documents.page(overview(examples=True)))

        try_all(at(save, found.save), tell, at(html, write))


def _weight(text: str) -> float | None:
    """λ, or None if it is to be found by cross-validation."""
    if text == "cv":
        return None
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"--unlabelled-weight {text}: give a number, or cv") from None


def _check_sources(
    train: str | None,
    unlabelled: str | None,
    file: str | None,
    gold: str | None,
    load: Path | None,
) -> None:
    if train is None and load is None:
        raise typer.BadParameter("give --train with labelled lines, or --load with a model")
    if load is not None and file is None:
        raise typer.BadParameter("nothing to label: give FILE")
    if [train, unlabelled, file, gold].count("-") > 1:
        raise typer.BadParameter("only one file can be standard input")


def _lessons(train: str, unlabelled: str | None) -> Lessons:
    labels, texts = read_labelled(train)
    more = read_texts(unlabelled).texts if unlabelled is not None else ()
    return Lessons(labels, texts, more, train if unlabelled is None else unlabelled)


def _estimator(weight: float | None, **settings: Any) -> NaiveBayes:
    from softcount.mixture import NaiveBayes, NaiveBayesCV

    if weight is None:
        return NaiveBayesCV(**settings)
    return NaiveBayes(unlabelled_weight=weight, **settings)


def _learn(model: NaiveBayes, lessons: Lessons, tokens: bool, wanted: WordFilter) -> None:
    from softcount.cli import models

    texts = [*lessons.labelled, *lessons.unlabelled]
    model.vectorizer = word_counter(texts, tokens, wanted)
    labels = [*lessons.labels, *[None] * len(lessons.unlabelled)]
    models.learn(model, texts, labels, _against_collapse(model, wanted))


def _against_collapse(model: NaiveBayes, wanted: WordFilter) -> str:
    """What to try, the most promising first, with what is in use now."""
    from softcount.mixture import NaiveBayesCV

    advice = [f"a smaller --smoothing (now {model.smoothing:g})", wanted.fewer]
    if model.length is None and not model.bernoulli:
        advice.append("--length 100")
    if not isinstance(model, NaiveBayesCV):
        advice.append("--unlabelled-weight cv")
    return f"try {', '.join(advice[:-1])} or {advice[-1]}"


def _lines(file: str | None, lessons: Lessons) -> Lines:
    """The lines to be labelled; where there are none, those that were learned from."""
    if file is not None:
        return read_texts(file)
    texts = lessons.unlabelled or lessons.labelled
    return Lines(texts, texts, range(len(texts)))


def _grouping(
    model: NaiveBayes,
    said: Answers,
    lessons: Lessons,
    where: str,
    comparison: Comparison | None,
    *,
    examples: bool,
) -> Grouping:
    from softcount.cli.answers import called, grouped
    from softcount.show.groups import Grouping, counts_tokens, figures_of

    notes = [note for note in (_chosen_weight(model), said.remark()) if note]
    return Grouping(
        title=f"Labels in {called(where)}",
        text=f"{len(said.lines):,} lines, labelled by {_teachers(lessons)}.",
        kind="label",
        figures=figures_of(model),
        groups=grouped(model, said, examples=examples),
        signature=model.signature_,
        fit=getattr(model, "fit_", None),
        notes=notes,
        counts=_counts(model, said, lessons, where),
        tokens=counts_tokens(model),
        comparison=comparison,
    )


def _teachers(lessons: Lessons) -> str:
    if not lessons.labels:
        return "Naive Bayes, learned before"
    more = f" and {len(lessons.unlabelled):,} without" if lessons.unlabelled else ""
    return f"Naive Bayes from {len(lessons.labels):,} lines with labels{more}"


def _chosen_weight(model: NaiveBayes) -> str:
    """What cross-validation found, as a sentence."""
    scores = getattr(model, "cv_scores_", None)
    if scores is None:
        return ""
    weight = f"unlabelled weight {getattr(model, 'unlabelled_weight_', 1.0):g}"
    if not scores:
        return f"{weight}: there was nothing to choose it by, too few labels or no other lines"
    found = ", ".join(f"{value:g}: {score:.3f}" for value, score in scores.items())
    return f"{weight}, chosen by cross-validation; accuracy by weight {found}"


def _counts(
    model: NaiveBayes, said: Answers, lessons: Lessons, where: str
) -> list[tuple[str, list[int]]]:
    """How many lines of each label: as taught, as found in what was learned from, as answered."""
    from softcount.cli.answers import called

    columns: list[tuple[str, Counter[Any]]] = []
    if lessons.labels:
        columns.append(("with label", Counter(lessons.labels)))
    if lessons.unlabelled and lessons.source != where:
        guessed = model.transduction_[len(lessons.labels) :].tolist()
        columns.append((called(lessons.source), Counter(guessed)))
    columns.append((called(where), Counter(said.names[k] for k in said.chosen.tolist())))
    return [(head, [counts[name] for name in said.names]) for head, counts in columns]
