"""``softcount topics``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from softcount.cli import options
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_spectral, refuse_two_of_stdin, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName
from softcount.cli.texts import WordFilter
from softcount.cli.topic_documents import is_archive


class ModelName(StrEnum):
    """What ``--model`` may say."""

    LDA = "lda"
    PLSA = "plsa"


WITH_PRIORS = (
    LearnerName.VARIATIONAL_BAYES,
    LearnerName.STOCHASTIC_VB,
    LearnerName.GIBBS,
    LearnerName.COLLAPSED_GIBBS,
)
"""Learners of a posterior, which needs a prior."""

WORD_OPTIONS = ("tokens", "stop_words", "min_count", "max_share")
LEARNING_OPTIONS = (
    *("k", "model", "learner", "init", "scouts", "seed", "threads", "max_iter", "tol", "n_init"),
    *("doc_prior", "word_prior", "smoothing", "optimise", "seeds", "labels", "freeze", "float32"),
    *(*WORD_OPTIONS, "save"),
)


def topics(
    ctx: typer.Context,
    files: options.Documents,
    k: options.Topics = 20,
    model: Annotated[
        ModelName,
        typer.Option(
            help="lda: latent Dirichlet allocation. plsa: the same without priors.",
            metavar="NAME",
            parser=one_of(ModelName),
        ),
    ] = ModelName.LDA,
    tokens: options.SplitAtSpaces = False,
    stop_words: options.StopWords = None,
    min_count: options.MinCount = 1,
    max_share: options.MaxShare = 1.0,
    learner: Annotated[LearnerName | None, options.HOW_TO_LEARN_TOPICS] = None,
    init: options.TopicInit = None,
    scouts: options.TopicScouts = None,
    doc_prior: options.DocPrior = None,
    word_prior: options.WordPrior = None,
    smoothing: options.TopicSmoothing = None,
    optimise: options.Optimise = None,
    seeds: options.Seeds = None,
    labels: options.Labels = None,
    freeze: options.Freeze = None,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    float32: options.Float32 = False,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    dates: options.Dates = None,
    over_time: options.OverTime = None,
    top_words: options.TopWords = None,
    proba: options.TopicProba = False,
    json: options.JsonAnswers = False,
    summary: options.Summary = False,
    save: options.Save = None,
    load: options.Load = None,
    html: options.Html = None,
    pyldavis: options.PyLDAvis = None,
) -> None:
    """Find what documents are about: topics, of which a document can have several.

    Prints the topic that a document has most of, a tab, and its share: exactly one line for each
    line of the files. What was learned (the topics' sizes, the words that mark them, how the run
    ended) goes to stderr. A line without any word that the model knows has no topic: it gets a
    blank line, or with --proba what the prior says, and stderr names such lines.

    \b
    softcount topics documents.txt -k 50 --stop-words english --html topics.html
    softcount topics documents.txt -k 50 --save topics.softcount > topics.txt
    softcount topics --load topics.softcount more.txt --proba
    softcount corpus build huge.txt.gz -o huge.archive --min-count 5
    softcount topics huge.archive -k 200 --learner online --summary
    """
    refuse_spectral(learner)
    _refuse_together(ctx, files, model, learner, load)
    _refuse_over_time(over_time, dates, summary)
    refuse_two_of_stdin(*files, stop_words, seeds, labels, dates)
    with readable_errors():
        from softcount.cli import models, topic_answers, topic_documents, topic_learning
        from softcount.engines import Local

        documents = topic_documents.read_documents(files)
        times = topic_documents.read_dates(dates, documents)
        notes: list[str] = []
        if load is not None:
            found = topic_answers.folded_in(models.load_topics(load), documents, times)
        else:
            documents.demand_some()
            known = topic_documents.read_labels(labels, documents, k)
            wanted = WordFilter(min_count, max_share, stop_words)
            counter = topic_learning.counter_of(documents, tokens, wanted)
            words = topic_documents.read_seeds(seeds, k, topic_learning.cut_by(counter))
            settings = {
                **{"n_topics": k, "vectorizer": counter, "init": init, "scouts": scouts},
                **{"doc_prior": doc_prior, "word_prior": word_prior, "smoothing": smoothing},
                **{"seeds": words, "random_state": seed, "engine": Local(threads)},
                "learner": topic_learning.learner_for(learner, max_iter, tol, n_init, optimise),
                "frozen": topic_learning.frozen_rows(freeze, documents, counter, k),
                "dtype": "float32" if float32 else "float64",
            }
            found = topic_learning.learned(model, documents, known, times, settings)
            notes = topic_learning.unused(found.model, words)
        table = None if over_time == "-" else over_time

        def tell() -> None:
            shown = topic_answers.overview(found, notes, top_words)
            lines = over_time != "-"
            if not lines:
                topic_answers.write_over_time(found, "-")
            topic_answers.print_all(found, shown, proba, as_json=json, summary=summary, lines=lines)

        try_all(
            at(save, found.model.save),
            tell,
            at(html, lambda path: topic_answers.write_page(found, path)),
            at(pyldavis, lambda path: topic_answers.write_pyldavis(found, path)),
            at(table, lambda path: topic_answers.write_over_time(found, path)),
        )


def _refuse_together(
    ctx: typer.Context,
    files: Sequence[str],
    model: ModelName,
    learner: LearnerName | None,
    load: Path | None,
) -> None:
    """Usage errors for options that would be without effect, or cannot be."""
    if load is not None:
        refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
        return
    if model is ModelName.PLSA:
        refuse_with(ctx, "--model plsa", ("doc_prior", "word_prior"), "it has no priors")
        if learner in WITH_PRIORS:
            raise typer.BadParameter(f"--learner {learner} needs priors: choose --model lda")
    else:
        refuse_with(ctx, "--model lda", ("smoothing",), "say --word-prior")
    if learner is not LearnerName.COLLAPSED_GIBBS:
        what = f"--learner {learner or LearnerName.EM}"
        refuse_with(ctx, what, ("optimise",), "it is for collapsed-gibbs alone")
    if is_archive(files):
        refuse_with(ctx, files[0], WORD_OPTIONS, "the archive says which words count")


def _refuse_over_time(over_time: str | None, dates: str | None, summary: bool) -> None:
    if over_time is not None and dates is None:
        raise typer.BadParameter("--over-time needs --dates")
    if over_time == "-" and summary:
        raise typer.BadParameter("--over-time - and --summary both go to stdout: choose one")
