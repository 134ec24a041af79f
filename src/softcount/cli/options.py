"""Options of the commands: how one is declared, and the groups that several commands have.

An option is an annotated attribute of a command's class, or of a group that the class inherits:

    n_components: Annotated[int | None, Model("How many classes.", "-k", "--n-components", least=1)]

Its name on the command line is the attribute's with hyphens, unless flags are given. `Argument`,
`Input`, `Model`, `Learning` and `Output` say under which head ``--help`` lists it; what belongs to
the model or to learning (`learns`) does not go together with ``--load``. What an option shares with
a parameter of an estimator is not declared here at all: see `of_parameter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from softcount.cli.targets import PLAIN, WRITTEN, Plain, Written
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
    from softcount.learners import Learner

PANELS = ("Arguments", "Input", "Model", "Learning", "Output", "As fast_align", "Options")
"""The heads under which options are listed, in their order."""


class Option:
    """An option, or an argument, as a command declares it.

    ``help``           what it does, in a sentence or two
    ``flags``          what is typed, if that is not ``--its-name``
    ``panel``          the head under which it is listed
    ``least, most``    bounds of a number
    ``choices``        the words that it may be
    ``parser``         makes a value of what is typed
    ``metavar``        what stands for a value in --help; if not given, FILE where it names one
    ``file``           what a text or path names, if not a file that is read: see `targets`
    ``learns``         whether it is of no use with a model that is learned already; None: if it is
                       listed under Model or Learning
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
        self.least, self.most, self.file = least, most, file
        self.parser = choose_from(choices) if choices else parser
        self.metavar = metavar or ("NAME" if choices else None)
        self.learns = panel in ("Model", "Learning") if learns is None else learns

    def annotation(self, name: str, kind: Any) -> Any:
        """Make its annotation for typer; ``kind`` is the type of its values."""
        given: dict[str, Any] = {"help": self.help, "rich_help_panel": self.panel}
        given |= {"metavar": self.metavar, "hidden": self.hidden}
        given |= {"min": self.least, "max": self.most}
        marks = [] if self.file is None else [self.file]
        if self.parser is not None:
            kind, given["parser"], marks = str | None, self.parser, marks or [PLAIN]
        elif self.file != PLAIN and {kind, *get_args(kind)} & {str, Path}:
            given["metavar"] = self.metavar or "FILE"
        if self.panel == "Arguments":
            return Annotated[kind, typer.Argument(**given), *marks]
        flags = self.flags or ((f"--{name.replace('_', '-')}",) if kind is bool else ())
        return Annotated[kind, typer.Option(*flags, **given), *marks]


Argument = partial(Option, panel="Arguments")
Input = partial(Option, panel="Input")
Model = partial(Option, panel="Model")
Learning = partial(Option, panel="Learning")
Output = partial(Option, panel="Output")


def choose_from(choices: Sequence[str]) -> Callable[[str], str]:
    """Make the parser of an option that takes one of a few words."""

    def read(text: str) -> str:
        if text not in choices:
            raise typer.BadParameter(f"{text}: choose one of {', '.join(choices)}")
        return text

    return read


def read_learner_name(text: str) -> str:
    """Read the name of a learner; return its long name if it has two."""
    return choose_from(tuple(map(str, LearnerName)))(SHORT.get(text, text))


def read_smoothing(text: Any) -> Any:
    """Read a number for all tables, or a number for each table.

    >>> read_smoothing("0.1"), read_smoothing("emissions=0.1,transitions=1")
    (0.1, {'emissions': 0.1, 'transitions': 1.0})
    """
    if not isinstance(text, str):  # a default
        return text
    parts = dict(part.split("=", 1) for part in text.split(",")) if "=" in text else {"": text}
    try:
        found = {table.strip(): float(number) for table, number in parts.items()}
    except ValueError:
        raise typer.BadParameter(
            f"{text}: write a number, or one for each table: emissions=0.1,transitions=1"
        ) from None
    for number in found.values():
        if not number >= 0.0:
            raise typer.BadParameter(f"{number:g} is not in the range x>=0.")
    return found if "=" in text else found[""]


def of_parameter(parameter: Parameter, *flags: str, panel: str = "Model") -> tuple[Any, Any]:
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


SeedOption = Annotated[int, Learning("Same seed, same result, to the last bit.", least=0)]
ThreadsOption = Annotated[
    int | None, Learning("If not given, one for each processor; the result is the same.", least=1)
]


class LearnerOptions:
    """How models are learned."""

    learner: Annotated[
        str | None,
        Learning(
            "em: exact, climbs at every step; begin here. hard-em: single best guesses. online-em: "
            "mini-batches, for much data. incremental-em: shard by shard. variational-bayes, "
            "stochastic-vb: a posterior over the tables. monte-carlo-em: EM with draws. gibbs: "
            "draws from the posterior, in several chains. Some models of documents also: "
            "collapsed-gibbs, spectral.",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None
    max_iter: Annotated[int | None, Learning("At most so many steps (else 100; gibbs 1000).")] = (
        None
    )
    tol: Annotated[
        float | None,
        Learning(
            "Stop when a step changes the objective by less than this part of it (else 1e-6); 0 "
            "takes all steps."
        ),
    ] = None
    n_init: Annotated[int | None, Learning("How many starts (else 1; gibbs: chains, 4).")] = None
    seed: SeedOption = 0
    threads: ThreadsOption = None

    def make_learner(self, usual: str = "em", **more: Any) -> Learner:
        """Make the learner that was asked for, or the ``usual`` one, with the options given."""
        given = {"max_iter": self.max_iter, "tol": self.tol, "n_init": self.n_init, **more}
        return make_learner(self.learner or usual, **given)

    def make_learner_if_asked(self, **more: Any) -> Learner | None:
        """The same; None if no option of learning was given: models then have their own default."""
        asked = (self.learner, self.max_iter, self.tol, self.n_init)
        return None if all(one is None for one in asked) else self.make_learner(**more)

    def learning(self, learner: Learner | None) -> dict[str, Any]:
        """The parameters of learning that all estimators have."""
        from softcount.engines import Local

        return {"learner": learner, "engine": Local(self.threads), "random_state": self.seed}

    def choose_smoothing(self, smoothing: float | None, prior: float) -> float:
        """Return the smoothing given; else the ``prior`` for learners that need one, else 0."""
        if smoothing is None:
            return prior if self.learner in WITH_PRIOR else 0.0
        return smoothing

    def refuse_spectral(self, *, unless: bool = False) -> None:
        """Raise a usage error for the spectral learner, unless bags of words are clustered."""
        if self.learner == "spectral" and not unless:
            raise typer.BadParameter(
                "--learner spectral is for documents without labels and --model multinomial"
            )


OTHER_LEARNERS = (
    "hard-em: Viterbi training. online-em (online): mini-batches. incremental-em. "
    "variational-bayes (vb), stochastic-vb (svb), gibbs, collapsed-gibbs: with a prior. "
    "monte-carlo-em (mcem): EM with draws."
)
"""What learners of sequences and trees do, beside the usual one."""

WITH_PRIOR = ("variational-bayes", "stochastic-vb", "gibbs", "collapsed-gibbs")
"""Learners of a posterior, which need a prior."""


TOKENS = "Words stand between spaces; else they are found and put in lower case."
TokensOption = Annotated[bool, Input(TOKENS)]


class WordOptions:
    """Which words of documents count."""

    tokens: Annotated[bool, Input(TOKENS, learns=True)] = False
    stop_words: Annotated[
        str | None,
        Input("Leave out the words in this file; english: scikit-learn's list.", learns=True),
    ] = None
    min_count: Annotated[
        int, Input("Leave out words that fewer lines than this have.", least=1, learns=True)
    ] = 1
    max_share: Annotated[
        float,
        Input(
            "Leave out words that more than this part of lines has.",
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
    """How answers are printed."""

    proba: Annotated[bool, Output("Print the probabilities of all classes, tab-separated.")] = False
    json: Annotated[bool, Output("Print one JSON object a line.")] = False
    summary: Annotated[bool, Output("Print what was learned to stdout, instead of the lines.")] = (
        False
    )


GoldFile = Annotated[
    str | None,
    Output(
        "Say how well the answers agree with these: the known class of each line; -1 or a blank "
        "line if it is unknown."
    ),
]
HtmlFile = Annotated[
    Path | None, Output("Write a page with tables and curves to this file.", file=WRITTEN)
]
TextFile = Annotated[str, Argument("A text file, one document a line; .gz too; - is stdin.")]
ClassInit = Annotated[
    str | None,
    Learning(
        "Where to start: kmeans, random, spectral or anchor; for numbers kmeans, k-means++ or "
        "random.",
        file=PLAIN,
    ),
]
ShortRunsOption = Annotated[
    int, Learning("Try so many starts by two quick passes; go on from the best.", least=0)
]
