"""``softcount senses``."""

from __future__ import annotations

import json as jsons
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.conflicts import refuse_spectral, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.targets import PLAIN
from softcount.cli.texts import read_texts, stop_words_in

if TYPE_CHECKING:
    from softcount.senses import SenseInducer
    from softcount.show.groups import Grouping
    from softcount.types import Array

NOWHERE = "-"
"""What is printed for a line without the word."""
LEARNING_OPTIONS = (
    *("word", "forms", "k", "window", "near", "min_count", "svd", "smoothing", "learner", "init"),
    *("stop_words", "scouts", "max_iter", "tol", "n_init", "seed", "threads", "save"),
)

Word = Annotated[
    str | None,
    typer.Option(metavar="WORD", help="The word; upper and lower case are the same."),
    PLAIN,
]
Forms = Annotated[
    str | None,
    typer.Option(metavar="A,B,…", help="Forms that are looked for together: line,lines."),
    PLAIN,
]
Senses = Annotated[int, typer.Option("-k", "--senses", min=1, help="How many senses.")]
Window = Annotated[
    int, typer.Option(min=0, help="Look at so many words on each side; 0: at the whole line.")
]
Near = Annotated[
    int,
    typer.Option(min=0, help="So many on each side count once more, with their place."),
]
MinContexts = Annotated[
    int, typer.Option(min=1, help="Leave out words that fewer contexts than this have.")
]
StopWords = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Words in this file count only with their place; english: scikit-learn's list.",
    ),
]
Svd = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Reduce tf-idf of the contexts to so many dimensions, and look for Gaussian senses "
        "there; if not given, senses are multinomials of words.",
    ),
]


def senses(
    ctx: typer.Context,
    file: options.Texts,
    word: Word = None,
    forms: Forms = None,
    k: Senses = 2,
    window: Window = 25,
    near: Near = 3,
    min_count: MinContexts = 2,
    stop_words: StopWords = None,
    svd: Svd = None,
    tokens: options.SplitAtSpaces = False,
    smoothing: options.WordSmoothing = 0.1,
    learner: Annotated[LearnerName, options.HOW_TO_LEARN] = LearnerName.EM,
    init: options.ClassInit = "kmeans",
    scouts: options.Scouts = 5,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    json: options.JsonAnswers = False,
    summary: options.Summary = False,
    save: options.Save = None,
    load: options.Load = None,
    html: options.Html = None,
) -> None:
    """Tell the senses of a word apart by what stands around it.

    Prints exactly one line for each line of the file: the numbers of the senses, from 0, of the
    word's occurrences in it, separated by spaces; - if the word does not occur. What was learned
    (how common each sense is, the words that mark it) goes to stderr. In these, _ is the place of
    the word: 'the_' stands just before it, '_·of' after it with one word between.

    \b
    softcount senses --word bank -k 2 sentences.txt > senses.txt
    softcount senses --word line --forms line,lines -k 6 sentences.txt --html line.html
    softcount senses --load line.softcount more.txt
    """
    refuse_spectral(learner, unless=svd is None)
    with readable_errors():
        from softcount.cli import models

        lines = read_texts(file)
        sentences: list[Any] = [text.split() for text in lines.texts] if tokens else [*lines.texts]
        if load is not None:
            refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
            model = models.load_inducer(load)
        else:
            if word is None and forms is None:
                raise typer.BadParameter("say which word: --word bank")
            lines.demand_some(file)
            from softcount.corpus.tokenise import words
            from softcount.engines import Local
            from softcount.senses import SenseInducer

            model = SenseInducer(
                k,
                window=window or None,
                near=near,
                min_count=min_count,
                stop_words=sorted(stop_words_in(stop_words, words)),
                svd=svd,
                smoothing=smoothing,
                init=init,
                scouts=scouts,
                learner=learner_called(learner, max_iter, tol, n_init),
                engine=Local(threads),
                random_state=seed,
            )
            _learn(model, sentences, _targets(word, forms))
        try_all(
            at(save, model.save),
            lambda: _report(model, sentences, file, html, as_json=json, summary=summary),
        )


def _targets(word: str | None, forms: str | None) -> list[str]:
    named = [form.strip() for form in (forms or "").split(",") if form.strip()]
    return [word, *named] if word is not None else named


def _learn(model: SenseInducer, sentences: list[Any], forms: list[str]) -> None:
    from softcount.cli.progress import Progress

    progress = Progress(len(sentences))
    try:
        model.fit(sentences, forms, on_step=progress)
    finally:
        progress.end()


def _report(
    model: SenseInducer,
    sentences: list[Any],
    file: str,
    html: Path | None,
    *,
    as_json: bool,
    summary: bool,
) -> None:
    from softcount.cli.answers import print_overview

    found = model.occurrences(sentences)
    shares = model.predict_proba(sentences)
    grouping = _grouping(model, shares, file, len(sentences))

    def tell() -> None:
        if summary:
            print_overview(grouping, sys.stdout, as_json)
            return
        rows: list[list[int]] = [[] for _ in sentences]
        for row, where in enumerate(found):
            rows[where.sentence].append(row)
        watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
        if not watched:
            print_overview(grouping, sys.stderr)
        _print_lines(rows, shares, [where.position for where in found], as_json)
        if watched:
            print_overview(grouping, sys.stderr)

    def write(path: Path) -> None:
        from softcount.mixture import report as documents
        from softcount.show import report

        report.write_page(path, documents.page(grouping))

    try_all(tell, at(html, write))


def _print_lines(rows: list[list[int]], shares: Array, positions: list[int], as_json: bool) -> None:
    chosen = shares.argmax(axis=1).tolist()
    for number, here in enumerate(rows, 1):
        if as_json:
            each = [
                {"sense": chosen[i], "position": positions[i], "probabilities": shares[i].tolist()}
                for i in here
            ]
            sys.stdout.write(jsons.dumps({"line": number, "occurrences": each}) + "\n")
        else:
            sys.stdout.write((" ".join(str(chosen[i]) for i in here) or NOWHERE) + "\n")
    sys.stdout.flush()  # here, where a closed pipe is no fault


def _grouping(model: SenseInducer, shares: Array, file: str, n_lines: int) -> Grouping:
    """What was learned, with the sizes that the senses have in this file; the largest first."""
    import numpy as np

    from softcount.cli.answers import called
    from softcount.show.groups import Group, Grouping, Mark

    chosen = np.bincount(shares.argmax(axis=1), minlength=model.n_components)
    sizes = zip(model.senses_, chosen.tolist(), strict=True)
    groups = []
    for sense, size in sorted(sizes, key=lambda one: -one[1]):
        longest = max((part for _, part in sense.words), default=1.0)
        marks = [Mark(name, f"{100 * part:.1f}", part / longest) for name, part in sense.words]
        share = size / max(len(shares), 1)
        groups.append(Group(str(sense.number), size, share, marks, sense.examples))
    word = " / ".join(sorted(model.forms_ or ()))
    return Grouping(
        title=f"{model.n_components} senses of “{word}”",
        text=f"{len(shares):,} occurrences in {n_lines:,} lines of {called(file)}.",
        kind="sense",
        figures="% of the sense’s contexts that have the word; _ is the place of the word itself",
        groups=groups,
        signature=model.signature_,
        fit=getattr(model.mixture_, "fit_", None),
        counted="occurrence",
    )
