"""Options of the commands for sentence pairs, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from softcount.cli.choices import one_of
from softcount.cli.learner_names import LearnerName
from softcount.cli.options import LEARNER
from softcount.cli.targets import PLAIN, WRITTEN


class ModelName(StrEnum):
    """What ``--model`` may say."""

    IBM1 = "ibm1"
    IBM2 = "ibm2"
    DIAGONAL = "diagonal"
    HMM = "hmm"
    GIBBS = "gibbs"


class Method(StrEnum):
    """What ``--symmetrize`` may say."""

    PRODUCT = "product"
    SOFT_UNION = "soft-union"
    INTERSECTION = "intersection"
    UNION = "union"
    GROW_DIAG = "grow-diag"
    GROW_DIAG_FINAL = "grow-diag-final"
    GROW_DIAG_FINAL_AND = "grow-diag-final-and"
    FORWARD = "forward"
    BACKWARD = "backward"


BY_POSTERIORS = (Method.PRODUCT, Method.SOFT_UNION)
"""Methods that a threshold makes sense for."""


class Precision(StrEnum):
    """What ``--precision`` may say."""

    DOUBLE = "double"
    SINGLE = "single"


# sentence pairs
File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="Lines 'source ||| target'; .gz too; - is stdin, and so is no FILE at all.",
    ),
]
Input = Annotated[
    str | None, typer.Option("-i", "--input", metavar="FILE", help="Another way to say FILE.")
]
Source = Annotated[
    str | None,
    typer.Option("-s", "--source", metavar="FILE", help="Source sentences alone, one a line."),
]
Target = Annotated[
    str | None,
    typer.Option("-t", "--target", metavar="FILE", help="Their translations, line by line."),
]
Lowercase = Annotated[
    bool, typer.Option("--lowercase", help="Put all words in lower case; a saved model does too.")
]

# what is learned
Model = Annotated[
    ModelName | None,
    typer.Option(
        "-m",
        "--model",
        metavar="NAME",
        parser=one_of(ModelName),
        help="ibm1, ibm2, diagonal or hmm, in one direction (target words come from source words). "
        "gibbs: both directions sampled, with fertilities. If not given: hmm, "
        "--both.",
    ),
]
Both = Annotated[
    bool,
    typer.Option("--both", help="Both directions, which learn to agree: the usual thing."),
]
NoAgree = Annotated[
    bool, typer.Option("--no-agree", help="Both directions, and each learns for itself.")
]
Reverse = Annotated[
    bool,
    typer.Option(
        "-r",
        "--reverse",
        help="The other direction alone: source words come from target words. Links are still "
        "source-target. A model that was learned so remembers it.",
    ),
]
Learner = Annotated[
    LearnerName | None,
    typer.Option(
        metavar="NAME",
        parser=LEARNER,
        help="If not given, em. hard-em: single best guesses. online-em (online): mini-batches. "
        "incremental-em. variational-bayes (vb), stochastic-vb (svb), gibbs: with a prior. "
        "monte-carlo-em (mcem): EM with draws.",
    ),
]
MaxIter = Annotated[
    int | None,
    typer.Option(
        "-I",
        "--max-iter",
        min=1,
        help="At most so many steps (else 5; --learner gibbs 1000; -m gibbs: sweeps, else 8).",
    ),
]
Stem = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Words with the same first N letters lend each other counts; 0: they do not. [else 4 "
        "for both directions, 0 for one]",
    ),
]
Smoothing = Annotated[
    float | None,
    typer.Option(
        "-a",
        "--smoothing",
        "--alpha",
        min=0.0,
        help="Add this to the count of every pair of words; for vb and gibbs, their prior. [else "
        "0.01 for those, 0.0003 for both directions, 0 for one]",
    ),
]
Precision_ = Annotated[
    Precision | None,
    typer.Option(
        metavar="NAME",
        parser=one_of(Precision),
        help="single: seven digits, half the memory and less time; or double. [else single, but "
        "double for vb, svb, gibbs]",
    ),
]
WarmUp = Annotated[
    int | None,
    typer.Option(min=0, help="Begin with so many steps of Model 1 (else 5; for -m diagonal 0)."),
]
PNull = Annotated[
    float | None,
    typer.Option(
        "-q",
        "--p-null",
        min=0.0,
        help="hmm, diagonal, gibbs: how often words come from no word (else 0.1, 0.08, 0.2).",
    ),
]
NoNull = Annotated[
    bool, typer.Option("-N", "--no-null", help="Every word comes from some word of the other side.")
]
MaxJump = Annotated[
    int | None, typer.Option(min=1, help="hmm: wider jumps are all alike (else 20).")
]

# what is known
DictionaryIn = Annotated[
    str | None,
    typer.Option(
        "--dictionary",
        metavar="FILE",
        help="Translations that are known: source word, tab, target word, and perhaps a tab and a "
        "weight. All that a word may become, unless --dictionary-strength is given.",
    ),
]
Strength = Annotated[
    float | None,
    typer.Option(
        "--dictionary-strength",
        metavar="NUMBER",
        help="Entries of the dictionary count so much more, and other translations stay possible.",
    ),
]
KnownLinks = Annotated[
    str | None,
    typer.Option(
        "--links",
        metavar="FILE",
        help="Links that are known, such as 0-0 2-1: one line a pair, blank where none is.",
    ),
]

# what is written
Symmetrize = Annotated[
    Method | None,
    typer.Option(
        "--symmetrize",
        "--symmetrise",
        metavar="METHOD",
        parser=one_of(Method),
        help="How both directions become one alignment. product (if not given) and soft-union: "
        "links whose mean probability is above the threshold. intersection, union, grow-diag, "
        "grow-diag-final, grow-diag-final-and: of the best alignments. forward, backward: of one "
        "direction. Means --both.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="Print links that are more probable than this. [else 0.5 for both directions; for "
        "one, the best alignment is printed]",
    ),
]
Probs = Annotated[bool, typer.Option("--probs", help="Print the links' probabilities: i-j:p.")]
Output = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the lines to this file, not to stdout; it is there when all of them are.",
    ),
    WRITTEN,
]
DictionaryOut = Annotated[
    Path | None,
    typer.Option(
        "-p",
        "-c",
        "--dictionary-out",
        metavar="FILE",
        help="Write what was learned of words: source word, target word, probability of the target "
        "word given the source word (with -r, the other way round), tab-separated, best first.",
    ),
    WRITTEN,
]
MinProb = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="Leave out of --dictionary-out what is less probable."),
]
PhrasesOut = Annotated[
    Path | None,
    typer.Option(
        "--phrases",
        metavar="FILE",
        help="Write a phrase table, as Moses reads it, from the links that are printed.",
    ),
    WRITTEN,
]
MaxPhrase = Annotated[int, typer.Option(min=1, help="No phrase has more words than this.")]
Gold = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Say on stderr how well the links agree with these: 0-0 is sure, 0?0 possible. If "
        "there are fewer lines, they belong to the first pairs.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", "--html", metavar="FILE", help="Write a page of alignments."),
    WRITTEN,
]
Show = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Show pair N (line N) on stderr, as a grid.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Say on stderr how every step of learning went.")
]

# fast_align has these as well
Diagonal = Annotated[bool, typer.Option("-d", help="As fast_align: -m diagonal.")]
Optimise = Annotated[
    bool, typer.Option("-o", help="As fast_align; but the tension is always learned.")
]
Variational = Annotated[bool, typer.Option("-v", help="As fast_align: --learner vb.")]
Tension = Annotated[
    float | None,
    typer.Option("-T", min=0.0, help="diagonal: the tension to begin with (else 4)."),
]
ForceAlign = Annotated[str | None, typer.Option("-f", hidden=True, help="See --load."), PLAIN]
