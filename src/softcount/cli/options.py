"""Options of the commands, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softcount.cli.choices import one_of
from softcount.cli.learner_names import LearnerName
from softcount.cli.targets import PLAIN, WRITTEN, WRITTEN_OR_PRINTED

ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL.py",
        help="A Python file with a @story in it. It is RUN as a program: use your own, or read it "
        "first.",
    ),
]
Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A text file, one item a line; .gz too; - is stdin."),
]
LEARNER = one_of(LearnerName)
OTHER_LEARNERS = (
    "hard-em: Viterbi training. online-em (online): mini-batches. incremental-em. "
    "variational-bayes (vb), stochastic-vb (svb), gibbs, collapsed-gibbs: with a prior. "
    "monte-carlo-em (mcem): EM with draws."
)
"""What learners of sequences and trees do, beside the usual one."""
HOW_TO_LEARN = typer.Option(
    metavar="NAME",
    parser=LEARNER,
    help="em: exact, climbs at every step; begin here. hard-em: single best guesses. online-em: "
    "mini-batches, for much data. incremental-em: shard by shard. variational-bayes, "
    "stochastic-vb: a posterior over the tables. monte-carlo-em: EM with draws. gibbs: draws from "
    "the posterior, in several chains. Some models of documents also: collapsed-gibbs, spectral.",
)
Name = Annotated[str | None, typer.Option(help="Which story of the file, if not the last."), PLAIN]
Tokens = Annotated[
    bool, typer.Option("--tokens", help="A line is words, split at spaces (the default).")
]
Chars = Annotated[bool, typer.Option("--chars", help="A line is its characters.")]
JsonLines = Annotated[bool, typer.Option("--json-lines", help="A line is a JSON value.")]
Init = Annotated[str, typer.Option(help="Where to start: random or uniform."), PLAIN]
Smoothing = Annotated[
    float | None, typer.Option(help="Add this to every count (instead of --prior).")
]
Prior = Annotated[float, typer.Option(help="Dirichlet prior of all tables; 1 is flat.")]
MaxIter = Annotated[int | None, typer.Option(help="At most so many steps (else 100; gibbs 1000).")]
Tol = Annotated[
    float | None,
    typer.Option(
        help="Stop when a step changes the objective by less than this part of it (else 1e-6); "
        "0 takes all steps."
    ),
]
NInit = Annotated[int | None, typer.Option(help="How many starts (else 1; gibbs: chains, 4).")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same result, to the last bit.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="If not given, one for each processor; the result is the same."),
]
Best = Annotated[
    bool,
    typer.Option(
        "--best", help="Print each line's likeliest derivation: one line out for each line in."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
Save = Annotated[
    Path | None,
    typer.Option(help="Keep the fitted model in this file, for softcount.load."),
    WRITTEN,
]
Html = Annotated[
    Path | None, typer.Option(help="Write a page with tables and curves to this file."), WRITTEN
]

# documents
Texts = Annotated[
    str,
    typer.Argument(metavar="FILE", help="A text file, one document a line; .gz too; - is stdin."),
]
Classes = Annotated[
    int | None,
    typer.Option(
        "-k",
        "--classes",
        min=1,
        help="How many classes. [default: 8; for process and process-gaussian, where it is the "
        "most there can be, 50]",
    ),
]
HOW_TO_LEARN_CLASSES = typer.Option(
    metavar="NAME",
    parser=LEARNER,
    help="If not given, what suits the model: em; hard-em for kmeans; variational-bayes for "
    "process and process-gaussian. Also online-em, incremental-em, stochastic-vb, monte-carlo-em, "
    "gibbs; collapsed-gibbs (multinomial and process); spectral (multinomial: solved from moments, "
    "with --max-iter steps of EM after that, else none).",
)
SplitAtSpaces = Annotated[
    bool,
    typer.Option(
        "--tokens", help="Words stand between spaces; else they are found and put in lower case."
    ),
]
ClassInit = Annotated[
    str | None,
    typer.Option(
        help="Where to start: kmeans, random, spectral or anchor; for numbers kmeans, k-means++ "
        "or random."
    ),
    PLAIN,
]
WordSmoothing = Annotated[
    float, typer.Option(min=0.0, help="Add this to every count of a word in a class.")
]
StopWords = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Leave out the words in this file; english: scikit-learn's list."
    ),
]
Gold = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Say how well the answers agree with these: the known class of each line; -1 or a "
        "blank line if it is unknown.",
    ),
]
MinCount = Annotated[
    int, typer.Option(min=1, help="Leave out words that fewer lines than this have.")
]
MaxShare = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="Leave out words that more than this part of lines has."),
]
Scouts = Annotated[
    int, typer.Option(min=0, help="Try so many starts by two quick passes; go on from the best.")
]
Proba = Annotated[
    bool, typer.Option("--proba", help="Print the probabilities of all classes, tab-separated.")
]
JsonAnswers = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Summary = Annotated[
    bool,
    typer.Option("--summary", help="Print what was learned to stdout, instead of the lines."),
]
Load = Annotated[
    Path | None, typer.Option(help="Take the model from this file, and learn nothing.")
]

# topics
Documents = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Text files, one document a line; .gz too; - is stdin. Or one archive, a folder that "
        "softcount corpus build has made.",
    ),
]
Topics = Annotated[int, typer.Option("-k", "--topics", min=1, help="How many topics.")]
HOW_TO_LEARN_TOPICS = typer.Option(
    metavar="NAME",
    parser=LEARNER,
    help="If not given, em with --tol 5e-5. online-em (or online): mini-batches, for much data. "
    "tempered-em: EM that does not learn documents by heart, for plsa with many topics. For "
    "lda also variational-bayes (vb), stochastic-vb (svb), gibbs, and collapsed-gibbs, which finds "
    "good topics in a hundred sweeps. Also hard-em, incremental-em, monte-carlo-em.",
)
TopicInit = Annotated[
    str | None,
    typer.Option(
        help="Where to start: anchors (words that one topic alone has) or random. If not given, "
        "anchors for em; random for others, and with --n-init, --scouts, --seeds, --labels or "
        "--freeze."
    ),
    PLAIN,
]
TopicScouts = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Try so many random starts by two quick passes; go on from the best (of random starts "
        "else 3; for more than 2000 documents 1, which warms up).",
    ),
]
DocPrior = Annotated[
    float | None,
    typer.Option(min=0.0, help="lda: add this to every count of a topic in a document (else 0.1)."),
]
WordPrior = Annotated[
    float | None,
    typer.Option(min=0.0, help="lda: add this to every count of a word in a topic (else 0.01)."),
]
TopicSmoothing = Annotated[
    float | None,
    typer.Option(min=0.0, help="plsa: add this to every count of a word in a topic (else 0)."),
]
Optimise = Annotated[
    int | None,
    typer.Option(min=1, help="collapsed-gibbs: fit the priors after every so many sweeps."),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Words that belong to topics: those of topic 0 on the first line, and so on; or a "
        "line says which: '3: oil price'. A blank line is a topic without any.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The topics that each document may have: one or more numbers; -1 or a blank line if "
        "nothing is known.",
    ),
]
Freeze = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL", help="The first topics are those of this model, and stay as they are."
    ),
]
Float32 = Annotated[
    bool, typer.Option("--float32", help="Seven digits: less memory, and less time.")
]
TopWords = Annotated[
    int | None, typer.Option(min=1, help="Show so many words a topic (else 8, as JSON 10).")
]
TopicProba = Annotated[
    bool, typer.Option("--proba", help="Print the shares of all topics, tab-separated.")
]
Dates = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="When each document is from: 1994, 1994-03, 1994-03-07, or a number; a blank line if "
        "it is unknown. The page then shows topics over time.",
    ),
]
OverTime = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write each topic's share in every period of the --dates to this file, "
        "tab-separated; - prints it instead of the lines.",
    ),
    WRITTEN_OR_PRINTED,
]
PyLDAvis = Annotated[
    Path | None,
    typer.Option(
        "--pyldavis",
        metavar="FILE.json",
        help="Write what pyLDAvis.prepare(**…) takes to this file.",
    ),
    WRITTEN,
]
