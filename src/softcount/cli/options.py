"""Options of the commands: how an option is declared, and groups of options that commands share.

An option is an annotated attribute of a command's class, or of a group that the class inherits:

    n_components: Annotated[int | None, Model("How many classes.", "-k", "--n-components", least=1)]

Its name on the command line is the attribute's name with hyphens, unless flags are given.
`Argument`, `Input`, `Model`, `Learning` and `Output` determine the heading under which ``--help``
lists it; options of the model or of learning (`learns`) cannot be combined with ``--load``. Options
that set a parameter of an estimator are not declared here, but derived from the parameter: see
`make_option`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from softcount.cli.targets import FIT_FOLDER, PLAIN, WRITTEN, Plain, Written
from softcount.core.parameters import (
    Boolean,
    Integer,
    Number,
    OneOf,
    Parameter,
    Probability,
    Smoothing,
)
from softcount.learners.names import SHORT, LearnerName, make_learner

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners import Learner

PANELS = ("Arguments", "Input", "Model", "Learning", "Output", "As fast_align", "Options")
"""The headings under which options are listed, in order."""


class Option:
    """Declaration of an option or an argument.

    ``help``           what it does, in a sentence or two
    ``flags``          its names on the command line, if not ``--attribute-name``
    ``panel``          the heading under which it is listed
    ``least, most``    bounds of a number
    ``choices``        the permitted words
    ``parser``         function from the text typed to the value
    ``metavar``        placeholder of the value in --help; default FILE for text and paths
    ``file``           what a text or path names, if not a file to read: see `targets`; text for a
                       parser names no file
    ``learns``         whether it has no effect on a model that is fitted already, so that it cannot
                       be combined with --load; None: if it is listed under Model or Learning
    ``hidden``         whether --help leaves it out
    """

    def __init__(
        self,
        help: str,
        *flags: str,
        panel: str = "Model",
        least: float | None = None,
        most: float | None = None,
        choices: Sequence[str] = (),
        parser: Callable[[Any], Any] | None = None,
        metavar: str | None = None,
        file: Written | Plain | None = None,
        learns: bool | None = None,
        hidden: bool = False,
    ) -> None:
        self.help, self.flags, self.panel, self.hidden = help, flags, panel, hidden
        self.least, self.most = least, most
        self.parser = choose_from(choices) if choices else parser
        self.file = PLAIN if file is None and self.parser is not None else file
        self.metavar = metavar or ("NAME" if choices else None)
        self.learns = panel in ("Model", "Learning") if learns is None else learns

    def annotation(self, name: str, kind: Any) -> Any:
        """Make the annotation for typer; ``kind`` is the type of the values."""
        settings: dict[str, Any] = {"help": self.help, "rich_help_panel": self.panel}
        settings |= {"metavar": self.metavar, "hidden": self.hidden}
        settings |= {"min": self.least, "max": self.most}
        marks = [] if self.file is None else [self.file]
        if self.parser is not None:
            kind, settings["parser"] = str | None, self.parser
        elif self.file != PLAIN and {kind, *get_args(kind)} & {str, Path}:
            settings["metavar"] = self.metavar or "FILE"
        if self.panel == "Arguments":
            return Annotated[kind, typer.Argument(**settings), *marks]
        flags = self.flags or ((f"--{name.replace('_', '-')}",) if kind is bool else ())
        return Annotated[kind, typer.Option(*flags, **settings), *marks]


Argument = partial(Option, panel="Arguments")
Input = partial(Option, panel="Input")
Model = partial(Option, panel="Model")
Learning = partial(Option, panel="Learning")
Output = partial(Option, panel="Output")


def choose_from(choices: Sequence[str]) -> Callable[[str], str]:
    """Make a parser that accepts only these words."""

    def read(text: str) -> str:
        if text not in choices:
            raise typer.BadParameter(f"{text}: choose one of {', '.join(choices)}")
        return text

    return read


def read_learner_name(text: str) -> str:
    """Check the name of a learner, and return its long form if it is an abbreviation."""
    return choose_from(tuple(map(str, LearnerName)))(SHORT.get(text, text))


def read_smoothing(text: Any) -> Any:
    """Parse a number for all tables, or a number for each table.

    >>> read_smoothing("0.1"), read_smoothing("emissions=0.1,transitions=1")
    (0.1, {'emissions': 0.1, 'transitions': 1.0})
    """
    if not isinstance(text, str):  # a default
        return text
    parts = dict(part.split("=", 1) for part in text.split(",")) if "=" in text else {"": text}
    try:
        numbers = {table.strip(): float(number) for table, number in parts.items()}
    except ValueError:
        raise typer.BadParameter(
            f"{text}: write a number, or one for each table: emissions=0.1,transitions=1"
        ) from None
    for number in numbers.values():
        if not number >= 0.0:
            raise typer.BadParameter(f"{number:g} is not in the range x>=0.")
    return numbers if "=" in text else numbers[""]


def make_option(parameter: Parameter, *flags: str, panel: str = "Model") -> tuple[Any, Any]:
    """Make the annotation and the default of an option for a declared parameter of an estimator."""
    bounds: dict[str, Any] = {}
    match parameter.constraint:
        case Integer(least=least):
            bounds = {"least": least}
        case Number() | Probability():
            bounds = {"least": 0.0}
        case OneOf(choices=choices):
            bounds = {"choices": [choice for choice in choices if choice is not None]}
        case Smoothing():
            bounds = {"parser": read_smoothing, "metavar": "NUMBER"}
        case Boolean() if not flags:
            name = parameter.name.replace("_", "-")
            flags = (f"--{name}/--no-{name}",) if parameter.default else (f"--{name}",)
    option = Option(parameter.doc, *flags, panel=panel, **bounds)
    default = ... if parameter.default is MISSING else parameter.default
    kind: Any = parameter.type | None if default is None else parameter.type
    return option.annotation(parameter.name, kind), default


SeedOption = Annotated[
    int,
    Learning("Seed of random numbers; the same seed gives the same result, bit by bit.", least=0),
]
ThreadsOption = Annotated[
    int | None,
    Learning(
        "Number of threads; by default one per processor. The result does not depend on it.",
        least=1,
    ),
]
ENGINE_OPTIONS = ("threads", "processes", "cluster", "cluster_folder")


def read_cluster(text: str) -> int | str:
    """Parse what --cluster names: a number of workers, or the address of a scheduler.

    >>> read_cluster("2"), read_cluster("tcp://127.0.0.1:8786")
    (2, 'tcp://127.0.0.1:8786')
    """
    if text.isdecimal() and int(text) > 0:
        return int(text)
    if not re.search(r".:\d+$", text):
        raise typer.BadParameter(
            f"{text}: write the address of a scheduler, such as tcp://127.0.0.1:8786, or a number "
            "of workers to start on this machine"
        )
    return text


class EngineOptions:
    """Options that say where the work is done; the result does not depend on them."""

    threads: ThreadsOption = None
    processes: Annotated[
        int | None, Learning("Work in this many processes instead of threads.", least=1)
    ] = None
    cluster: Annotated[
        Any,
        Learning(
            "Work on a cluster of Dask: the address of its scheduler, such as "
            "tcp://127.0.0.1:8786; or a number of workers to start on this machine, to try it out.",
            parser=read_cluster,
            metavar="ADDRESS",
        ),
    ] = None
    cluster_folder: Annotated[
        str | None,
        Learning(
            "Folder that this machine and all workers of the cluster see by the same path, or "
            "its URL in object storage.",
            metavar="FOLDER",
            file=FIT_FOLDER,
        ),
    ] = None

    def check(self) -> None:
        command: Any = self
        for name in ("processes", "cluster"):
            if getattr(self, name) is not None:
                others = {"threads", "processes"} - {name}
                command.refuse(f"--{name}", [*others], "work is done in one place")
        if isinstance(self.cluster, str) and self.cluster_folder is None:
            raise typer.BadParameter(
                f"--cluster {self.cluster} needs --cluster-folder, a folder that this machine and "
                "all workers see"
            )
        if self.cluster is None and self.cluster_folder is not None:
            raise typer.BadParameter("--cluster-folder needs --cluster")

    def make_engine(self) -> Engine:
        """Make the engine that the options name."""
        from softcount import engines

        if self.processes is not None:
            return engines.Processes(self.processes)
        if self.cluster is None:
            return engines.Local(self.threads)
        # what Dask says of workers that go and come would break the status line
        os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
        own = isinstance(self.cluster, int)
        return engines.Dask(
            None if own else self.cluster,
            workers=self.cluster if own else None,
            folder=self.cluster_folder,
        )


FolderOption = Annotated[
    Path | None,
    Learning(
        "Write checkpoints to this folder, about one a minute; if the command is killed, "
        "softcount resume FOLDER continues it with the same bits. See softcount show FOLDER.",
        metavar="FOLDER",
        file=FIT_FOLDER,
    ),
]

ARGUMENTS = "softcount.arguments"
"""Where the context of a command has all its arguments, as they were typed."""


class LearnerOptions(EngineOptions):
    """Options of the learning algorithm."""

    learner: Annotated[
        str | None,
        Learning(
            "em: exact EM, improves the objective at every step; start here. hard-em: EM with the "
            "single best hidden structure. online-em: mini-batches, for large data. "
            "incremental-em: one shard at a time. variational-bayes, stochastic-vb: a posterior "
            "over the parameters. monte-carlo-em: EM with sampled hidden structures. gibbs: "
            "samples from the posterior, in several chains. Some models of documents also take "
            "collapsed-gibbs and spectral.",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None
    max_iter: Annotated[
        int | None, Learning("Maximum number of steps (default 100; gibbs 1000).")
    ] = None
    tol: Annotated[
        float | None,
        Learning(
            "Stop when the relative change of the objective is below this (default 1e-6); 0 "
            "always takes all steps."
        ),
    ] = None
    n_init: Annotated[
        int | None,
        Learning(
            "Number of initialisations, of which the best is kept (default 1); gibbs: of "
            "chains (default 4)."
        ),
    ] = None
    seed: SeedOption = 0
    folder: FolderOption = None

    def fit_options(self, on_step: Any) -> dict[str, Any]:
        """Return the options of ``fit`` that all models share: progress, and --folder."""
        if self.folder is None:
            return {"on_step": on_step}
        from softcount.core.folder import FitFolder

        command: Any = self
        about = {
            "arguments": command.context.meta[ARGUMENTS],
            "folder": os.getcwd(),
            "reads_stdin": command.reads_stdin(),
        }
        # the data are in the files that the command reads: a copy would be of no use
        folder = FitFolder(self.folder, keep_data=False, facts={"command": about})
        return {"on_step": on_step, "folder": folder}

    def make_learner(self, usual: str = "em", **more: Any) -> Learner:
        """Make the learner of --learner, by default the ``usual`` one, with the options given."""
        settings = {"max_iter": self.max_iter, "tol": self.tol, "n_init": self.n_init, **more}
        return make_learner(self.learner or usual, **settings)

    def make_learner_if_asked(self, **more: Any) -> Learner | None:
        """Make the learner as above, or return None if none of its options was given, so that the
        model uses its own default."""
        options = (self.learner, self.max_iter, self.tol, self.n_init)
        return None if all(value is None for value in options) else self.make_learner(**more)

    def learning(self, learner: Learner | None) -> dict[str, Any]:
        """Return the parameters of learning that all estimators share."""
        return {"learner": learner, "engine": self.make_engine(), "random_state": self.seed}

    def choose_smoothing(self, smoothing: float | None, prior: float) -> float:
        """Return the smoothing if given; else ``prior`` for learners that need a prior, else 0."""
        if smoothing is None:
            return prior if self.learner in WITH_PRIOR else 0.0
        return smoothing

    def refuse_spectral(self, *, unless: bool = False) -> None:
        """Raise a usage error for ``--learner spectral``, unless it is applicable (``unless``)."""
        if self.learner == "spectral" and not unless:
            raise typer.BadParameter(
                "--learner spectral is for documents without labels and --model multinomial"
            )


OTHER_LEARNERS = (
    "hard-em: Viterbi training. online-em (online): mini-batches. incremental-em. "
    "variational-bayes (vb), stochastic-vb (svb), gibbs, collapsed-gibbs: with a prior. "
    "monte-carlo-em (mcem): EM with samples."
)
"""Help on the learners of sequences and trees other than the default one."""

WITH_PRIOR = ("variational-bayes", "stochastic-vb", "gibbs", "collapsed-gibbs")
"""Learners of a posterior over the parameters, which need a prior."""


TOKENS = "Split text at spaces only, and keep capitals; by default words are found and lower-cased."
TokensOption = Annotated[bool, Input(TOKENS)]


class WordOptions:
    """Options that select the words of documents."""

    tokens: Annotated[bool, Input(TOKENS, learns=True)] = False
    stop_words: Annotated[
        str | None,
        Input("Ignore the words in this file; english: scikit-learn's list.", learns=True),
    ] = None
    min_count: Annotated[
        int, Input("Ignore words that occur in fewer lines than this.", least=1, learns=True)
    ] = 1
    max_share: Annotated[
        float,
        Input(
            "Ignore words that occur in more than this proportion of the lines.",
            least=0.0,
            most=1.0,
            learns=True,
        ),
    ] = 1.0

    def make_vectorizer(self, texts: Sequence[str]) -> Any:
        """Make the vectorizer that counts the words of these texts."""
        from softcount.cli.reading import WordFilter, make_counter

        wanted = WordFilter(self.min_count, self.max_share, self.stop_words)
        return make_counter(texts, self.tokens, wanted)


class AnswerOptions:
    """Options that set what is printed, and how."""

    proba: Annotated[bool, Output("Print the probabilities of all classes, tab-separated.")] = False
    json: Annotated[bool, Output("Print one JSON object per line.")] = False
    summary: Annotated[
        bool, Output("Print a summary of the fitted model to stdout, instead of the answers.")
    ] = False


GoldFile = Annotated[
    str | None,
    Output(
        "Compare the answers with these true classes, one per line; -1 or a blank line means "
        "unknown."
    ),
]
HtmlFile = Annotated[
    Path | None, Output("Write an HTML page with tables and curves here.", file=WRITTEN)
]
TextFile = Annotated[str, Argument("Text file, one document per line. May be .gz; - is stdin.")]
ClassInit = Annotated[
    str | None,
    Learning(
        "Initial parameters: kmeans, random, spectral or anchor; for numeric data kmeans, "
        "k-means++ or random.",
        file=PLAIN,
    ),
]
ShortRunsOption = Annotated[
    int,
    Learning("Try this many initialisations for two steps each; continue from the best.", least=0),
]
