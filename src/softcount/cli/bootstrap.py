"""``softcount bootstrap``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_two_of_stdin
from softcount.cli.ending import at, try_all
from softcount.cli.gold import read_gold
from softcount.cli.guard import readable_errors
from softcount.cli.lines import numbered
from softcount.cli.records import Records, column_names, read_records
from softcount.cli.targets import PLAIN, WRITTEN
from softcount.cli.texts import WordFilter, stop_words_in, word_counter

if TYPE_CHECKING:
    from softcount.weak.yarowsky import Yarowsky

STRONGEST = 8
"""So many rules of each label are shown."""


class Variant(StrEnum):
    """Which rules are taken each round."""

    PLAIN = "plain"
    CAUTIOUS = "cautious"
    PROPAGATING = "propagating"
    PROPAGATING_CAUTIOUS = "propagating-cautious"


def bootstrap(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Lines to be labelled: tab-separated columns, or JSON objects; .gz too; - is "
            "stdin.",
        ),
    ],
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rules to begin with: label, feature and perhaps strength a line, separated by "
            "tabs, or by spaces if features have none. If not given: the labels in FILE.",
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(metavar="A,B,…", help="The columns of FILE, in their order."), PLAIN
    ] = "label,text",
    tokens: options.SplitAtSpaces = False,
    word: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Tell the senses of this word: features are the words around it. Several forms: "
            "line,lines. Lines without it get no label.",
        ),
        PLAIN,
    ] = None,
    window: Annotated[
        int, typer.Option(min=0, help="--word: look at so many words on each side; 0: at all.")
    ] = 25,
    stop_words: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Words in this file are no features; around a --word, they count with their "
            "place. english: scikit-learn's list.",
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Which column or key names a line's document."),
        PLAIN,
    ] = None,
    discourse: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="What the other lines of its --document count beside a line's own rule: one sense "
            "per discourse, as a weight.",
        ),
    ] = 0.0,
    variant: Annotated[
        Variant,
        typer.Option(
            metavar="NAME",
            parser=one_of(Variant),
            help="plain: each round takes all rules above the threshold. cautious: only the most "
            "frequent of these, some more each round. propagating, propagating-cautious: the "
            "same, but all features of a line say what its label is.",
        ),
    ] = Variant.CAUTIOUS,
    threshold: Annotated[
        float,
        typer.Option(min=0.0, help="Which part of a rule's labelled lines must have its label."),
    ] = 0.95,
    rounds: Annotated[
        int, typer.Option(min=0, help="At most so many rounds; 0 applies the seeds, no more.")
    ] = 500,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the learned rules here, for --seeds."),
        WRITTEN,
    ] = None,
    gold: options.Gold = None,
    html: options.Html = None,
) -> None:
    """Label the lines of a file, from a few rules: which words mark which label.

    Prints every line as it is, its label filled in and a confidence added; a line that no rule
    applies to has no label, and confidence 0. The strongest rules of each label go to stderr.

    \b
    softcount bootstrap lines.tsv --seeds rules.txt > labelled.tsv
    softcount bootstrap lines.tsv --seeds rules.txt --rules learned.txt --gold gold.txt
    softcount bootstrap more.tsv --seeds learned.txt --rounds 0
    softcount bootstrap bank.jsonl --word bank,banks --seeds senses.txt --document source \\
        --discourse .5
    """
    refuse_two_of_stdin(file, seeds, gold)
    if (document is None) != (discourse == 0.0):
        raise typer.BadParameter("--document and --discourse go together")
    with readable_errors():
        from softcount.cli.answers import called
        from softcount.cli.labelling_answers import finish
        from softcount.show.report import write_whole
        from softcount.weak.seeds import parse_rules
        from softcount.weak.yarowsky import Yarowsky

        records = read_records(file, column_names(columns))
        known = read_gold(gold, file, len(records))
        if seeds is None:
            records.demand_labels()
        given = None if seeds is None else parse_rules(numbered(seeds), seeds)
        model = Yarowsky(
            variant=str(variant),
            threshold=threshold,
            max_rounds=rounds,
            discourse=discourse,
            abstain=True,
        )
        texts = records.texts("text")
        items: Any = texts
        if word is None:
            model.vectorizer = word_counter(texts, tokens, WordFilter(stop_words=stop_words))
        else:
            items = _contexts(texts, word, window, stop_words, tokens)
        documents = None if document is None else records.texts(document)
        _learn(model, items, records.labels, seeds=given, documents=documents, gold=known)

        def write(path: Path) -> None:
            write_whole(path, model.rules_.to_text(), "the rules", "--rules")

        def tell() -> None:
            finish(
                records,
                model.transduction_.tolist(),
                _confidence(model, records, items, documents),
                model.history_,
                title=f"Labels in {called(file)}",
                texts=texts,
                gold=known,
                html=html,
                rules=_strongest(model),
                notes=[_told(model)],
            )

        try_all(at(rules, write), tell)


def _learn(model: Yarowsky, items: Any, labels: Any, **given: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(items, labels, **given)
    for warning in caught:
        typer.echo(f"softcount: warning: {warning.message}", err=True)


def _contexts(
    texts: Sequence[str], word: str, window: int, stop_words: str | None, tokens: bool
) -> list[list[str]]:
    """What stands around the first occurrence of a word in each line; nothing without any."""
    from softcount.corpus import contexts
    from softcount.corpus.tokenise import spaces, words
    from softcount.weak.collocations import collocations

    sentences = contexts.cut([spaces(text) for text in texts] if tokens else list(texts))
    forms = contexts.forms_of(word.split(","))
    found = contexts.find(sentences, forms)
    contexts.demand_some(found, sentences, forms)
    dropped = stop_words_in(stop_words, words)
    first = {one.sentence: one.position for one in reversed(found)}
    return [
        collocations(sentence, first[number], window or None, dropped) if number in first else []
        for number, sentence in enumerate(sentences)
    ]


def _confidence(
    model: Yarowsky, records: Records, items: Any, documents: Sequence[str] | None
) -> list[float]:
    """How sure each line's label is: given ones are, and no label is nothing to be sure of."""
    shares = model.predict_proba(items, documents).max(axis=1).tolist()
    known = zip(model.transduction_.tolist(), records.labels, shares, strict=True)
    return [0.0 if said is None else 1.0 if told is not None else p for said, told, p in known]


def _told(model: Yarowsky) -> str:
    """How many rules there are, and what the rounds mean."""
    rules = f"{len(model.rules_):,} rule{'s' * (len(model.rules_) != 1)}"
    if not model.max_rounds:
        return f"{rules}, as given"
    return f"{rules}; round 1 is what the seeds say, the last one what all rules say"


def _strongest(model: Yarowsky) -> list[tuple[str, Any, float]]:
    """The strongest rules of each label, as the overview shows them."""
    rules = model.rules_
    return [
        (f"{rule.feature} ({rule.count:,} of {rule.total:,})", rule.label, rule.strength)
        if rule.total
        else (f"{rule.feature} (given)", rule.label, rule.strength)
        for label in rules.classes
        for rule in rules.of_class(label, STRONGEST)
    ]
