"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from softcount import __version__
from softcount.adapt import command as adapt
from softcount.align import command as align
from softcount.annotators import command as annotators
from softcount.cli import classify, cluster, corpus, demo, select
from softcount.cli.command import Commands
from softcount.grammar import command as grammar
from softcount.grammar import command as parse
from softcount.hmm import command as tag
from softcount.labels import command as bootstrap
from softcount.labels import command as cotrain
from softcount.labels import command as propagate
from softcount.senses import command as senses
from softcount.stories import command as story
from softcount.topics import command as similar
from softcount.topics import command as topics
from softcount.translate import command as translate

# plain help and plain exceptions: rich would double the time that --help takes
app = Commands(
    name="softcount",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
)
app.command("cluster")(cluster.cluster)
app.command("classify")(classify.classify)
app.command("annotators")(annotators.annotators)
app.command("bootstrap")(bootstrap.bootstrap)
app.command("propagate")(propagate.propagate)
app.command("cotrain")(cotrain.cotrain)
app.command("adapt")(adapt.adapt)
app.command("select")(select.select)
app.command("topics")(topics.topics)
app.command("similar")(similar.similar)
app.command("senses")(senses.senses)
app.command("align")(align.align)
app.command("translate")(translate.translate)
app.command("tag")(tag.tag)
app.command("grammar")(grammar.grammar)
app.command("parse")(parse.parse)
app.command("story")(story.story)
app.add_typer(corpus.group, name="corpus")
app.command("demo")(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"softcount {__version__}")
        raise typer.Exit


@app.callback()
def softcount(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Learn hidden structure from text that nobody labelled.

    Begin with the demo. Then sort your own documents into classes, or write how your data could
    have come about (a story: a few lines of Python), and let softcount learn its probabilities.

    \b
    softcount demo
    softcount cluster documents.txt -k 20 --html classes.html
    softcount topics documents.txt -k 50 --html topics.html
    softcount propagate lines.tsv > labelled.tsv
    softcount adapt --source books.tsv --target kitchen.tsv > labelled.tsv
    softcount align -i corpus.fr-en > links.txt
    softcount tag sentences.txt -k 45 > states.txt
    softcount grammar sentences.txt -n 20 -o grammar.softcount > trees.txt
    softcount story examples/coins.py tosses.txt --chars
    """
