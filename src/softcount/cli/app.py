"""The table of commands: where each is, what it is for, and which models it loads.

Nothing of a command is imported before it is called, so that ``--help`` of one does not pay for the
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from softcount import __version__
from softcount.cli.frame import PLAIN_HELP, make_group


class Entry(NamedTuple):
    """A command.

    ``place``  its module and its class there
    ``help``   what it is for, the first sentence of its docstring
    ``loads``  the kinds of models that it loads: by --load, or as its first argument
    """

    place: str
    help: str
    loads: tuple[str, ...] = ()
    by_argument: bool = False


COMMANDS = {
    "cluster": Entry(
        "softcount.mixture.command:Cluster",
        "Sort the lines of a file into classes that nobody named.",
        (
            *("MultinomialMixture", "GaussianMixture", "KMeans", "SoftKMeans"),
            *("DirichletProcessMixture", "DirichletProcessGaussianMixture"),
        ),
    ),
    "classify": Entry(
        "softcount.mixture.command:Classify",
        "Label the lines of a file, from labelled lines and from lines without labels.",
        ("NaiveBayes", "NaiveBayesCV"),
    ),
    "annotators": Entry(
        "softcount.annotators.command:VoteCounting",
        "Find the true labels behind the votes of many annotators, and how good each of them is.",
        ("Annotators",),
    ),
    "bootstrap": Entry(
        "softcount.labels.command:Bootstrap",
        "Label the lines of a file, from a few rules: which words mark which label.",
    ),
    "propagate": Entry(
        "softcount.labels.command:Propagate",
        "Spread a few labels to all lines, along a graph of lines that are alike.",
        ("LabelPropagation",),
    ),
    "cotrain": Entry(
        "softcount.labels.command:Cotrain",
        "Label lines from a few that have a label, by views that teach each other.",
    ),
    "adapt": Entry(
        "softcount.adapt.command:Adapt",
        "Label the lines of one domain by what is learned in another, such as reviews of kettles "
        "by reviews of books.",
    ),
    "select": Entry(
        "softcount.metrics.command:Select", "Compare numbers of classes for the lines of a file."
    ),
    "topics": Entry(
        "softcount.topics.command:Topics",
        "Find what documents are about: topics, of which a document can have several.",
        ("LDA", "PLSA"),
    ),
    "similar": Entry(
        "softcount.topics.command:Similar",
        "Find the documents most like a query, by their topics.",
        ("LDA", "PLSA"),
        by_argument=True,
    ),
    "senses": Entry(
        "softcount.senses.command:Senses",
        "Tell the senses of a word apart by what stands around it.",
        ("SenseInducer",),
    ),
    "align": Entry(
        "softcount.align.command:Align",
        "Find which words of sentence pairs are translations of each other.",
        ("Aligner", "GibbsAligner", "IBM1", "IBM2", "Diagonal", "HMMAligner"),
    ),
    "translate": Entry(
        "softcount.translate.command:Translate",
        "Translate sentences by what was learned from sentence pairs.",
        ("Translator",),
    ),
    "tag": Entry(
        "softcount.hmm.command:Tag",
        "Find what kind of word each word is: a hidden Markov model of sentences.",
        ("HMM",),
    ),
    "grammar": Entry(
        "softcount.grammar.command:LearnGrammar",
        "Learn how sentences are made: a probabilistic context-free grammar, and their trees.",
    ),
    "parse": Entry(
        "softcount.grammar.command:Parse",
        "Find the trees of sentences by a grammar.",
        ("PCFG",),
        by_argument=True,
    ),
    "story": Entry(
        "softcount.stories.command:TellStory",
        "Learn the tables of your own story from your own data.",
    ),
    "corpus": Entry(
        "softcount.text.command:group",
        "Count the words of documents once and keep the counts on disk: an archive, for corpora "
        "that are larger than memory.",
    ),
    "demo": Entry(
        "softcount.cli.demo:Demo", "Learn from four small texts, and show what was found."
    ),
}


def command_for(kind: str, path: Path) -> str:
    """Make a hint that names the command for models of this kind."""
    for name, entry in COMMANDS.items():
        if kind in entry.loads:
            return f"try softcount {name} {'' if entry.by_argument else '--load '}{path}"
    return "use it in Python: softcount.load"


class _LazyCommands(Mapping[str, Any]):
    """Commands by name, imported when they are first used."""

    def __getitem__(self, name: str) -> Any:
        return _load_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def _load_command(name: str) -> Any:
    module, attribute = COMMANDS[name].place.split(":")
    found = getattr(import_module(module), attribute)
    group = found if isinstance(found, typer.Typer) else make_group("", {name: found})
    return typer.main.get_command(group)


class LazyGroup(TyperGroup):
    """All commands; what each is for is known without importing it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _LazyCommands()  # type: ignore[assignment]  # nothing is added to them

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


app = typer.Typer(
    name="softcount", cls=LazyGroup, add_completion=False, no_args_is_help=True, **PLAIN_HELP
)


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
    softcount grammar sentences.txt -k 20 --save my.softcount > trees.txt
    softcount story examples/coins.py tosses.txt --chars
    """
