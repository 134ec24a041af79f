"""Options of ``softcount tag``, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from softcount.cli.align_options import Precision
from softcount.cli.choices import one_of
from softcount.cli.learner_names import LearnerName
from softcount.cli.options import LEARNER, OTHER_LEARNERS
from softcount.cli.targets import PLAIN, WRITTEN


class Form(StrEnum):
    """What ``--format`` may say."""

    LINES = "lines"
    CONLLU = "conllu"


class Start(StrEnum):
    """What ``--init`` may say."""

    RANDOM = "random"
    SPECTRAL = "spectral"


class Decoder(StrEnum):
    """What ``--decode`` may say."""

    VITERBI = "viterbi"
    POSTERIOR = "posterior"


# sentences
File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="One sentence a line, words between spaces; or CoNLL-U. .gz too; - is stdin. If not "
        "given: stdin, or with --tagged nothing.",
    ),
]
Format = Annotated[
    Form | None,
    typer.Option(
        "--format",
        metavar="NAME",
        parser=one_of(Form),
        help="lines or conllu: what FILE is; else it is told by its shape.",
    ),
]
Lowercase = Annotated[
    bool,
    typer.Option("--lowercase", help="Learn from words in lower case; a saved model does too."),
]

# what is known
States = Annotated[
    int | None,
    typer.Option(
        "-k", "--n-states", min=1, help="How many states; else as many as there are tags."
    ),
]
Dictionary = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The tags that words may have: word, tab, tags between spaces (or one tag, tab, a "
        "count). Other words may have any tag, or the --open-tags.",
    ),
]
OpenTags = Annotated[
    str | None,
    typer.Option(metavar="TAG,TAG", help="What words may have that are not in the --dictionary."),
    PLAIN,
]
TaggedFile = Annotated[
    str | None,
    typer.Option(
        "--tagged",
        metavar="FILE",
        help="Sentences whose tags are known, all or some: word/TAG word/TAG, or CoNLL-U. They "
        "are learned from beside those of FILE.",
    ),
]

# how to learn
Order = Annotated[
    int,
    typer.Option(min=1, max=2, help="A state depends on so many states before it: 1 or 2."),
]
Features = Annotated[
    bool,
    typer.Option(
        "--features",
        help="Words by what they look like (endings, case, digits), also those never seen; slower.",
    ),
]
Init = Annotated[
    Start | None,
    typer.Option(
        metavar="NAME",
        parser=one_of(Start),
        help="Where to start: random, or spectral (from moments of neighbouring words). [else what "
        "tags and dictionary say, or random]",
    ),
]
NoStop = Annotated[
    bool, typer.Option("--no-stop", help="Where sentences end says nothing of their states.")
]
Smoothing = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="Add this to every count; for vb, svb, gibbs and collapsed-gibbs, their prior. [else "
        "0.1 for those, 0 for others]",
    ),
]
Learner = Annotated[
    LearnerName | None,
    typer.Option(
        metavar="NAME",
        parser=LEARNER,
        help=f"If not given, em (Baum-Welch). {OTHER_LEARNERS}",
    ),
]
Precision_ = Annotated[
    Precision,
    typer.Option(
        metavar="NAME",
        parser=one_of(Precision),
        help="double; or single: less exact, in about half the time.",
    ),
]

# what is printed
Decode = Annotated[
    Decoder,
    typer.Option(
        metavar="NAME",
        parser=one_of(Decoder),
        help="viterbi: the best sequence of states. posterior: each word's own best state.",
    ),
]
Separator = Annotated[
    str,
    typer.Option(metavar="TEXT", help="What stands between a word and its tag, in and out."),
    PLAIN,
]
StatesAlone = Annotated[
    bool,
    typer.Option("--states", help="Print states without words, a line for each sentence."),
]
Column = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="CoNLL-U: the column of tags, filled in, and read of --tagged and --gold: upos, xpos, "
        "or a key in MISC. [else upos; states without names go to MISC, State=]",
    ),
    PLAIN,
]
Proba = Annotated[
    bool,
    typer.Option(
        "--proba",
        help="Print how probable each state is, too: word/STATE:p; in CoNLL-U as Prob= in MISC.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print a JSON object for each sentence, or --summary as one.")
]
Gold = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Say how well the states agree with the tags of this file, which has the same "
        "sentences: word/TAG or CoNLL-U.",
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(
        help="Write a page to this file: states, their words, how they follow each other, examples."
    ),
    WRITTEN,
]
