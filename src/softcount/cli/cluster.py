"""``softcount cluster``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_spectral, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.gold import compared, read_gold
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.texts import Lines, WordFilter, read_points, read_texts, word_counter

if TYPE_CHECKING:
    from softcount.cli.answers import Answers
    from softcount.mixture.base import Clusterer
    from softcount.show.groups import Comparison, Grouping


class ModelName(StrEnum):
    """What ``--model`` may say."""

    MULTINOMIAL = "multinomial"
    BERNOULLI = "bernoulli"
    GAUSSIAN = "gaussian"
    KMEANS = "kmeans"
    SOFT_KMEANS = "soft-kmeans"
    PROCESS = "process"
    PROCESS_GAUSSIAN = "process-gaussian"


OF_WORDS = (ModelName.MULTINOMIAL, ModelName.BERNOULLI, ModelName.PROCESS)
WORD_OPTIONS = ("tokens", "smoothing", "stop_words", "min_count", "max_share")
PROCESSES = (ModelName.PROCESS, ModelName.PROCESS_GAUSSIAN)
USUAL = {
    ModelName.KMEANS: LearnerName.HARD_EM,
    **dict.fromkeys(PROCESSES, LearnerName.VARIATIONAL_BAYES),
}
"""Learners of models that do not use EM, if no other is asked for."""

LEARNING_OPTIONS = (
    *("k", "model", "learner", "init", "scouts", "seed", "threads", "max_iter", "tol", "n_init"),
    *(*WORD_OPTIONS, "save"),
)


def cluster(
    ctx: typer.Context,
    file: options.Texts,
    k: options.Classes = None,
    model: Annotated[
        ModelName,
        typer.Option(
            help="multinomial: how often words occur. bernoulli: whether they do. process: "
            "multinomial, with as many classes as the texts call for. gaussian, kmeans, "
            "soft-kmeans, process-gaussian: lines are columns of numbers, separated by tabs or "
            "spaces.",
            metavar="NAME",
            parser=one_of(ModelName),
        ),
    ] = ModelName.MULTINOMIAL,
    tokens: options.SplitAtSpaces = False,
    learner: Annotated[LearnerName | None, options.HOW_TO_LEARN_CLASSES] = None,
    init: options.ClassInit = None,
    smoothing: options.WordSmoothing = 0.1,
    stop_words: options.StopWords = None,
    min_count: options.MinCount = 1,
    max_share: options.MaxShare = 1.0,
    scouts: options.Scouts = 0,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    proba: options.Proba = False,
    json: options.JsonAnswers = False,
    summary: options.Summary = False,
    gold: options.Gold = None,
    save: options.Save = None,
    load: options.Load = None,
    html: options.Html = None,
) -> None:
    """Sort the lines of a file into classes that nobody named.

    Prints the number of each line's class, from 0: exactly one line for each line of the file. What
    was learned (sizes, words that mark each class, how the run ended) goes to stderr. A line
    without any word that the model knows gets the most common class, and stderr says which lines
    these are; --json shows them by "words": 0. Where lines are numbers, a blank line gets a blank
    line.

    \b
    softcount cluster documents.txt -k 20 > classes.txt
    softcount cluster documents.txt -k 20 --min-count 3 --html classes.html --save model.softcount
    softcount cluster --load model.softcount more.txt --proba
    softcount cluster documents.txt -k 20 --gold known.txt --summary
    """
    refuse_spectral(learner, unless=model is ModelName.MULTINOMIAL)
    with readable_errors():
        from softcount.cli import answers, models
        from softcount.engines import Local

        notes = []
        if load is not None:
            refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
            found = models.load_clusterer(load)
            lines = (read_texts if models.is_of_words(found) else read_points)(file)
            known = read_gold(gold, file, len(lines.texts))
        else:
            of_words = model in OF_WORDS
            if not of_words:
                refuse_with(ctx, f"--model {model}", WORD_OPTIONS, "it reads numbers, not words")
            lines = (read_texts if of_words else read_points)(file)
            lines.demand_some(file)
            known = read_gold(gold, file, len(lines.texts))
            settings: dict[str, Any] = {"scouts": scouts, "random_state": seed}
            if of_words:
                wanted = WordFilter(min_count, max_share, stop_words)
                settings["vectorizer"] = word_counter(lines.items, tokens, wanted)
                settings["smoothing"] = smoothing
            how = learner_called(learner or USUAL.get(model, LearnerName.EM), max_iter, tol, n_init)
            settings |= {"learner": how, "engine": Local(threads)}
            found = _estimator(model, k, init, settings)
            models.learn(found, lines.items)
            if model not in PROCESSES:
                notes = _too_many(found.n_components, lines)
        said = answers.answer(found, lines, "class", range(found.n_components))

        def overview(*, examples: bool) -> Grouping:
            agreed = compared(said, known)
            return _grouping(found, said, file, notes, agreed, examples=examples)

        def tell() -> None:
            shown = overview(examples=False)
            answers.print_all(said, shown, proba=proba, as_json=json, summary=summary)

        try_all(
            at(save, found.save),
            tell,
            at(html, lambda path: _write_page(overview(examples=True), path)),
        )


def _too_many(k: int, lines: Lines) -> list[str]:
    """A remark if some classes cannot have a line to themselves."""
    different = len({" ".join(lines.texts[i].split()) for i in lines.where} - {""})
    if k <= different:
        return []
    return [f"{k} classes are more than the {different} different lines: ask for fewer (-k)"]


def _estimator(
    name: ModelName, k: int | None, init: str | None, settings: dict[str, Any]
) -> Clusterer:
    from softcount import mixture

    kinds: dict[ModelName, type[Clusterer]] = {
        ModelName.MULTINOMIAL: mixture.MultinomialMixture,
        ModelName.BERNOULLI: mixture.MultinomialMixture,
        ModelName.GAUSSIAN: mixture.GaussianMixture,
        ModelName.KMEANS: mixture.KMeans,
        ModelName.SOFT_KMEANS: mixture.SoftKMeans,
        ModelName.PROCESS: mixture.DirichletProcessMixture,
        ModelName.PROCESS_GAUSSIAN: mixture.DirichletProcessGaussianMixture,
    }
    if k is not None:
        settings["n_components"] = k
    if init is not None:
        settings["init"] = init
    if name is ModelName.BERNOULLI:
        settings["bernoulli"] = True
    return kinds[name](**settings)


def _grouping(
    model: Clusterer,
    said: Answers,
    file: str,
    notes: Sequence[str],
    comparison: Comparison | None,
    *,
    examples: bool,
) -> Grouping:
    """The largest class first; those without lines are only counted."""
    from softcount.cli.answers import called, grouped
    from softcount.show.groups import Grouping, counts_tokens, figures_of

    every = grouped(model, said, examples=examples)
    used = sorted((group for group in every if group.size), key=lambda group: -group.size)
    remarks = [*notes, *filter(None, [said.remark()])]
    empty = len(every) - len(used)
    if said.lines and empty:
        verb = "has" if empty == 1 else "have"
        remarks.append(f"{empty} of the {len(every)} classes {verb} no line")
    return Grouping(
        title=f"{len(used)} class{'es' * (len(used) != 1)} in {called(file)}",
        text=f"{len(said.lines):,} lines, sorted by a {model.core_.name}.",
        kind="class",
        figures=figures_of(model),
        groups=used,
        signature=model.signature_,
        fit=getattr(model, "fit_", None),
        notes=remarks,
        counts=[("lines", [group.size for group in used])],
        tokens=counts_tokens(model),
        comparison=comparison,
    )


def _write_page(grouping: Grouping, path: Path) -> None:
    from softcount.mixture import report as documents
    from softcount.show import report

    report.write_page(path, documents.page(grouping))
