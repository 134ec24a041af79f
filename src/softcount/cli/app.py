"""The table of commands: where each is implemented, its summary, and which models it can load.

A command's module is imported only when the command is called, so that ``--help`` of one command
does not pay for importing the others.
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
from softcount.cli.options import ARGUMENTS


class Entry(NamedTuple):
    """An entry of the table of commands.

    ``place``        ``module:class`` of the command
    ``help``         its summary: the first sentence of its docstring
    ``loads``        the kinds of models that it can load
    ``by_argument``  whether the model is its first argument, rather than given by --load
    ``compiles``     seconds that it compiles for if nothing is ready, about
    """

    place: str
    help: str
    loads: tuple[str, ...] = ()
    by_argument: bool = False
    compiles: float = 0.0


COMMANDS = {
    "cluster": Entry(
        "softcount.mixture.command:Cluster",
        "Cluster the lines of a file into classes, without labels.",
        (
            *("MultinomialMixture", "GaussianMixture", "KMeans", "SoftKMeans"),
            *("DirichletProcessMixture", "DirichletProcessGaussianMixture"),
        ),
        compiles=3,
    ),
    "classify": Entry(
        "softcount.mixture.command:Classify",
        "Classify the lines of a file, learning from labelled and unlabelled lines.",
        ("NaiveBayes", "NaiveBayesCV"),
        compiles=3,
    ),
    "annotators": Entry(
        "softcount.annotators.command:VoteCounting",
        "Estimate true labels, and the accuracy of each annotator, from votes that disagree.",
        ("Annotators",),
        compiles=3,
    ),
    "rules": Entry(
        "softcount.annotators.command:LabelByRules",
        "Label lines by rules that vote for labels, and are mostly silent (distant supervision).",
        ("Annotators",),
        compiles=3,
    ),
    "bags": Entry(
        "softcount.instances.command:LabelBags",
        "Learn from labels of bags which of their lines are positive (multiple-instance learning).",
        ("MultipleInstance",),
        compiles=4,
    ),
    "bootstrap": Entry(
        "softcount.labels.command:Bootstrap",
        "Label lines from a few seed rules (which word marks which label), by bootstrapping.",
    ),
    "propagate": Entry(
        "softcount.labels.command:Propagate",
        "Spread a few labels to all lines along a graph of similar lines (label propagation).",
        ("LabelPropagation",),
    ),
    "cotrain": Entry(
        "softcount.labels.command:Cotrain",
        "Label lines from a few labelled ones by co-training: two or more views teach each other.",
    ),
    "ask": Entry(
        "softcount.labels.command:Ask",
        "Choose the lines to label next: those whose labels a classifier would learn most from.",
        compiles=3,
    ),
    "adapt": Entry(
        "softcount.adapt.command:Adapt",
        "Label the lines of one domain with a classifier learned in another, such as reviews of "
        "kettles from reviews of books.",
    ),
    "select": Entry(
        "softcount.metrics.command:Select",
        "Compare numbers of classes for the lines of a file.",
        compiles=3,
    ),
    "topics": Entry(
        "softcount.topics.command:Topics",
        "Find the topics of documents, where each document can have several.",
        ("LDA", "PLSA"),
        compiles=5,
    ),
    "similar": Entry(
        "softcount.topics.command:Similar",
        "Find the documents most similar to a query, by their topics.",
        ("LDA", "PLSA"),
        by_argument=True,
        compiles=5,
    ),
    "senses": Entry(
        "softcount.senses.command:Senses",
        "Induce the senses of a word from its contexts.",
        ("SenseInducer",),
        compiles=3,
    ),
    "align": Entry(
        "softcount.align.command:Align",
        "Find which words of sentence pairs are translations of each other.",
        ("Aligner", "GibbsAligner", "IBM1", "IBM2", "Diagonal", "HMMAligner"),
        compiles=25,
    ),
    "translate": Entry(
        "softcount.translate.command:Translate",
        "Translate sentences by what was learned from sentence pairs.",
        ("Translator",),
        compiles=33,
    ),
    "tag": Entry(
        "softcount.hmm.command:Tag",
        "Tag the words of sentences with a hidden Markov model.",
        ("HMM",),
        compiles=24,
    ),
    "grammar": Entry(
        "softcount.grammar.command:LearnGrammar",
        "Learn a probabilistic context-free grammar from sentences, and parse them.",
        compiles=16,
    ),
    "parse": Entry(
        "softcount.grammar.command:Parse",
        "Parse sentences with a saved grammar.",
        ("PCFG",),
        by_argument=True,
        compiles=25,
    ),
    "story": Entry(
        "softcount.stories.command:TellStory",
        "Learn the tables of your own story from your own data.",
        compiles=8,
    ),
    "corpus": Entry(
        "softcount.text.command:group",
        "Write data to a folder, a corpus, from which models learn though it is larger than "
        "memory.",
    ),
    "warm-up": Entry(
        "softcount.cli.warm_up:WarmUp",
        "Compile what commands need, so that their first run need not.",
    ),
    "resume": Entry(
        "softcount.cli.resume:Resume",
        "Continue a fit that was stopped or killed, from the folder that --folder named.",
    ),
    "show": Entry(
        "softcount.cli.resume:Show", "Show what a folder of --folder holds, and how far it is."
    ),
    "demo": Entry(
        "softcount.cli.demo:Demo",
        "Fit four small models to example texts, and show the results.",
        compiles=10,
    ),
}


def command_for(kind: str, path: Path) -> str:
    """Return a hint that names the command which loads models of this kind."""
    for name, entry in COMMANDS.items():
        if kind in entry.loads:
            return f"try softcount {name} {'' if entry.by_argument else '--load '}{path}"
    return "use it in Python: softcount.load"


class _LazyCommands(Mapping[str, Any]):
    """Mapping from names to commands, each imported when it is first used."""

    def __getitem__(self, name: str) -> Any:
        return _load_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def _load_command(name: str) -> Any:
    module, attribute = COMMANDS[name].place.split(":")
    command = getattr(import_module(module), attribute)
    group = command if isinstance(command, typer.Typer) else make_group("", {name: command})
    return typer.main.get_command(group)


class LazyGroup(TyperGroup):
    """The group of all commands; it lists their summaries without importing them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _LazyCommands()  # type: ignore[assignment]  # read-only, never added to

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = list(args)  # for `softcount resume`
        return super().parse_args(ctx, args)

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
    """Learn hidden structure from unlabelled text.

    Start with the demo. Then cluster your own documents, or describe how your data could have been
    generated (a story: a few lines of Python) and let softcount learn its probabilities.

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
