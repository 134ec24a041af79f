"""Options of ``softcount grammar`` and ``softcount parse``, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from softcount.cli import tag_options
from softcount.cli.align_options import Precision
from softcount.cli.choices import one_of
from softcount.cli.learner_names import LearnerName
from softcount.cli.options import LEARNER, OTHER_LEARNERS
from softcount.cli.targets import WRITTEN, WRITTEN_OR_PRINTED


class Start(StrEnum):
    """What ``--init`` may say."""

    RANDOM = "random"
    UNIFORM = "uniform"


class Method(StrEnum):
    """What ``--method`` may say."""

    VITERBI = "viterbi"
    BRACKETS = "brackets"
    LABELLED = "labelled"


# sentences
File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="One sentence a line, words between spaces; .gz too; - is stdin. Trees (.mrg): their "
        "sentences. If not given: stdin, or with --treebank or --trees nothing.",
    ),
]
Lowercase = tag_options.Lowercase
MaxLength = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Learn from no sentence of more words; they are parsed all the same.",
    ),
]

# the grammar
Nonterminals = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--nonterminals",
        min=1,
        help="How many symbols constituents may have: a grammar with every rule A -> B C.",
    ),
]
Preterminals = Annotated[
    int | None,
    typer.Option(
        "-p",
        "--preterminals",
        min=1,
        help="How many symbols words may have. [else half as many again as -n; with --trees, as "
        "many as these have]",
    ),
]
Rules = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Learn the probabilities of these rules: S -> NP VP [0.9] | VP [0.1], words in "
        "quotes; without probabilities all begin alike.",
    ),
]
Treebank = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Take all rules of these trees (Penn brackets), as often as they are there. Nothing "
        "is learned from FILE: its sentences are parsed.",
    ),
]

# what is known
Brackets = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What is known of the trees, a line for each line of FILE: nothing; or a tree, whose "
        "brackets no other constituent crosses; or the sentence with brackets in it, she (sees (a "
        "dog)); or spans, 0-2 NP:3-5, from the first word, which is 0, to the first one behind.",
    ),
]
Labels = Annotated[
    bool,
    typer.Option(
        "--labels", help="The labels of trees in --brackets are right, too; else only the brackets."
    ),
]
KnownTrees = Annotated[
    str | None,
    typer.Option(
        "--trees",
        metavar="FILE",
        help="The whole trees of sentences, a line for each line of FILE, blank if it is unknown; "
        "without FILE, what is learned from.",
    ),
]
KeepFunctions = Annotated[
    bool,
    typer.Option(
        "--keep-functions",
        help="Labels of trees stay as they are; else NP-SBJ-1 is NP. Traces are left out anyway.",
    ),
]

Horizontal = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="With --treebank: a long rule is taken apart, its parts knowing N neighbours to the "
        "left. Not given: rules as they are.",
    ),
]
Vertical = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="With --treebank: symbols know N - 1 of those above them, so that NP below S is not "
        "NP below VP. Trees have plain labels.",
    ),
]

# how to learn
Init = Annotated[
    Start | None,
    typer.Option(
        metavar="NAME",
        parser=one_of(Start),
        help="Where to start: random, or with --rules also uniform. [else the probabilities of "
        "--rules, what labels say, or random]",
    ),
]
Smoothing = tag_options.Smoothing
Learner = Annotated[
    LearnerName | None,
    typer.Option(
        metavar="NAME",
        parser=LEARNER,
        help=f"If not given, em (inside-outside). {OTHER_LEARNERS}",
    ),
]
Precision_ = Annotated[
    Precision,
    typer.Option(
        metavar="NAME",
        parser=one_of(Precision),
        help="double; or single: less exact, in less time (not with --rules and --treebank).",
    ),
]

# what is printed
Gold = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Say how well the brackets agree with those of these trees, which are of the same "
        "sentences, beside trees that branch to the right and to the left. Of what is known "
        "of the trees nothing is used for this.",
    ),
]
Show = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="Draw the trees of so many sentences, evenly spread."),
]
Save = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        "--save",
        metavar="MODEL",
        help="Keep the grammar in this file, for softcount parse and softcount.load.",
    ),
    WRITTEN,
]
GrammarText = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write the rules to this file, as --rules reads them; of learned ones those with a "
        "probability of 0.0001 and more. - prints them instead of the trees.",
    ),
    WRITTEN_OR_PRINTED,
]
Html = Annotated[
    Path | None,
    typer.Option(
        "--report",
        "--html",
        metavar="PAGE.html",
        help="Write a page to this file: symbols with their rules and words, trees, the course of "
        "learning.",
    ),
    WRITTEN,
]

# softcount parse
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A grammar, as softcount grammar has saved it.")
]
ToParse = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="One sentence a line, words between spaces; .gz too; - is stdin. Trees (.mrg): their "
        "sentences.",
    ),
]
Method_ = Annotated[
    Method,
    typer.Option(
        metavar="NAME",
        parser=one_of(Method),
        help="viterbi: the most probable tree. brackets: that of the most expected brackets. "
        "labelled: of the most expected brackets with labels.",
    ),
]
Prune = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=0.5,
        metavar="P",
        help="Grammars of rules: leave out what is less probable than P by a coarse grammar; 1e-5 "
        "is twice as fast. What the first sentences lose by it is told.",
    ),
]
KBest = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Print the N most probable trees of each sentence, the best first: line ||| log p ||| "
        "tree. A blank line has none.",
    ),
]
Draw = Annotated[
    bool, typer.Option("--draw", help="Draw the trees, for eyes, instead of printing brackets.")
]
ParseBrackets = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What is known of the trees: see softcount grammar. Labels of spans (NP:3-5) count, "
        "those of trees with --labels.",
    ),
]
ParseGold = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Say how well the trees agree with these, which are of the same sentences: brackets, "
        "labelled ones if labels are the same, and how many sentences have a tree at all.",
    ),
]
