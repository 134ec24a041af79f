"""``softcount adapt``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.adapt_domains import TEXT, Domains, read_domains
from softcount.cli.adapt_methods import (
    USUAL_WITH_LABELS,
    USUAL_WITHOUT_LABELS,
    Method,
    demand_possible,
    possible_methods,
    usual_method,
)
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_two_of_stdin
from softcount.cli.gold import read_gold
from softcount.cli.guard import readable_errors
from softcount.cli.records import column_names
from softcount.cli.targets import PLAIN
from softcount.cli.texts import WordFilter, word_counter
from softcount.errors import shown

if TYPE_CHECKING:
    from softcount.cli.adapt_judging import Workshop
    from softcount.show.adaptation import Judgement

LINES = (
    "label, tab, text; or JSON objects with the keys label and text. An empty label, or -1, is "
    "unknown. .gz too; - is stdin."
)


def adapt(
    source: Annotated[
        list[str],
        typer.Option(
            metavar="FILE",
            help=f"Where labels are: {LINES} Several times: each file is a domain of its own. "
            "Lines without a label are learned from, too.",
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Where labels are wanted: the same; those that it has stay, and are learned from.",
        ),
    ],
    target_labelled: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="More lines of the target, to be learned from and not printed."
        ),
    ] = None,
    method: Annotated[
        Method | None,
        typer.Option(
            metavar="NAME",
            parser=one_of(Method),
            help="source-only: what is learned in the source, as it is. target-only, merge, "
            "weighted, interpolation, prediction, prior, easyadapt: with labels of the target. "
            "pivots, denoising, adversarial: with its words only, or with labels, too. all: "
            f"compare them. If not given: {USUAL_WITH_LABELS} if the target has labels of two "
            f"classes, else {USUAL_WITHOUT_LABELS}.",
        ),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(metavar="NAMES", help="What the columns are; text is what is read."),
        PLAIN,
    ] = "label,text",
    explain: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Tell the N words whose weights moved most."),
    ] = None,
    tokens: options.SplitAtSpaces = False,
    stop_words: options.StopWords = None,
    min_count: options.MinCount = 1,
    max_share: options.MaxShare = 1.0,
    gold: options.Gold = None,
    seed: options.Seed = 0,
    html: options.Html = None,
) -> None:
    """Label the lines of one domain by what is learned in another, such as reviews of kettles by
    reviews of books.

    Prints every line of the target as it was, with its label filled in and one column more: how
    sure that is, 0 to 1 (JSON: the key confidence). Labels that were given stay. What happened
    goes to stderr.

    With --method all, methods are judged on labels of the target that are held out in turn, and the
    best labels the lines. If the target has none, nothing can judge them there: stderr tells how
    they do in the source, and the usual one labels the lines.

    \b
    softcount adapt --source books.tsv --target kitchen.tsv > labelled.tsv
    softcount adapt --source books.tsv --source dvd.tsv --target kitchen.tsv --method all
    softcount adapt --source books.tsv --target kitchen.tsv --target-labelled few.tsv --explain 20
    """
    refuse_two_of_stdin(*source, target, target_labelled, stop_words, gold)
    with readable_errors():
        domains = read_domains(source, target, target_labelled, column_names(columns))
        true = read_gold(gold, target, len(domains.target))
        wanted = usual_method(domains) if method is None else method
        if wanted is not Method.ALL:
            demand_possible(wanted, domains)
        from softcount.cli.adapt_answers import finish
        from softcount.cli.adapt_judging import Workshop
        from softcount.show.adaptation import Judgement

        vectorizer = _vectorizer(domains, tokens, WordFilter(min_count, max_share, stop_words))
        workshop = Workshop(domains, vectorizer, seed)
        chosen, judgements, notes = wanted, list[Judgement](), list[str]()
        if wanted is Method.ALL:
            chosen, judgements, notes = _judged(workshop, true)
        model, warned = workshop.fitted(chosen)
        notes += [*_facts(domains), *_silent(domains, vectorizer), *warned]
        finish(
            domains,
            model,
            chosen,
            judgements=judgements,
            gold=true,
            explain=explain,
            html=html,
            notes=notes,
        )


def _vectorizer(domains: Domains, tokens: bool, wanted: WordFilter) -> Any:
    """What makes rows of texts: tf-idf of the words that are wanted, in all domains together."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    counter = word_counter(domains.texts, tokens, wanted)
    return TfidfVectorizer(
        analyzer=counter.analyzer, vocabulary=counter.vocabulary, sublinear_tf=True
    )


def _judged(
    workshop: Workshop, gold: Sequence[str | None] | None
) -> tuple[Method, list[Judgement], list[str]]:
    """The method that is to label the lines, how all compare, and why it is this one."""
    from softcount.cli.adapt_judging import best_of

    domains, methods = workshop.domains, possible_methods(workshop.domains)
    usual = usual_method(domains)
    on_target = workshop.held_out(methods, "target")
    if on_target is not None:
        chosen, judged = best_of(on_target, usual), [on_target]
        why = "none is right more often on held-out labels of the target"
    else:
        on_source = workshop.held_out(methods, "source")
        judged = [] if on_source is None else [on_source]
        chosen = Method.SOURCE_ONLY if usual in workshop.faults else usual
        few = "too few labels of some class" if domains.labels_in("target") else "no labels"
        why = f"{few} in the target to judge methods by"
    beside = None if gold is None else workshop.beside_gold(methods, gold)
    if beside is not None:
        judged.append(beside)
    faults = [f"{one} cannot do: {fault}" for one, fault in workshop.faults.items()]
    return chosen, judged, [f"{chosen} labels the lines: {why}", *faults]


def _facts(domains: Domains) -> list[str]:
    """What was learned from."""
    from softcount.cli.answers import called

    files = [(f"source {called(one.path)}", one) for one in domains.sources]
    if domains.more is not None:
        files.append((f"more of the target, {called(domains.more.path)}", domains.more))
    told = []
    for name, records in files:
        known = sum(label is not None for label in records.labels)
        free = len(records) - len(records.blank) - known
        told.append(f"{name}: {known:,} line{'s' * (known != 1)} with a label, {free:,} without")
    told += [
        f"no source has the label {shown(label)} ({where}): only the target teaches it"
        for label, where in domains.newcomers().items()
    ]
    return told


def _silent(domains: Domains, vectorizer: Any) -> list[str]:
    """A remark on lines that ask for a label and have no word to read, if there are any."""
    from softcount.cli.answers import few_named

    target, texts, words = domains.target, domains.target.texts(TEXT), vectorizer.build_analyzer()
    known = None if vectorizer.vocabulary is None else set(vectorizer.vocabulary)
    silent = [
        n + 1
        for n in domains.lines
        if target.labels[n] is None
        and not any(known is None or word in known for word in words(texts[n]))
    ]
    return [f"{few_named(silent)}: no word to go by; the label is a guess"] if silent else []
