"""``softcount align``: its options, what it is told, how it learns, what it answers."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, overload

import typer

from softcount.cli import options
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_spectral, refuse_two_of_stdin, refuse_with
from softcount.cli.ending import Deed, at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.lines import numbered
from softcount.cli.options import LEARNER
from softcount.cli.pairs import PairFiles, shapes_of
from softcount.cli.targets import PLAIN, WRITTEN
from softcount.drafts import open_whole
from softcount.errors import DataError, SoftcountError, shown

if TYPE_CHECKING:
    from softcount.align.bidirectional import TwoWays
    from softcount.align.estimators import OneWay
    from softcount.corpus.bitext import Bitext
    from softcount.corpus.links import FlatLinks, Link, Links
    from softcount.estimate import Estimate
    from softcount.learners import Learner
    from softcount.types import Array, State


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
LearnerOption = Annotated[
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


# What is known before aligning: a dictionary, links, and gold links to compare with.


FORM = "write: source word, tab, target word, and perhaps a tab and a weight above 0"
Entries = dict[str, dict[str, float | None]]


def read_dictionary(path: str | None, lowercase: bool) -> dict[str, Any] | None:
    """The entries of a file, as aligners take them; None without a path.

    Entries of several words are left out, and stderr says how many they are.
    """
    if path is None:
        return None
    entries: Entries = {}
    several = 0
    for number, line in numbered(path):
        if not line.strip():
            continue
        source, target, weight = _entry(line, f"{path}:{number}")
        if lowercase:
            source, target = source.lower(), target.lower()
        if len(source.split()) > 1 or len(target.split()) > 1:
            several += 1
            continue
        known = entries.setdefault(source, {})
        _demand_alike(known, source, target, weight, f"{path}:{number}")
        known[target] = weight
    if several:
        what = "entry" if several == 1 else "entries"
        typer.echo(f"softcount: {path}: {several:,} {what} of several words left out", err=True)
    if not entries:
        raise DataError(f"{path}: there is no entry of single words", FORM)
    return {
        word: list(known) if None in known.values() else known for word, known in entries.items()
    }


def _entry(line: str, where: str) -> tuple[str, str, float | None]:
    words = [field.strip() for field in line.split("\t")]
    if len(words) not in (2, 3) or not all(words):
        raise DataError(f"{where}: {shown(line)} is no entry of a dictionary", FORM)
    if len(words) == 2:
        return words[0], words[1], None
    try:
        weight = float(words[2])
    except ValueError:
        weight = math.nan
    if not 0.0 < weight < math.inf:
        raise DataError(f"{where}: {shown(words[2])} is no weight", FORM)
    return words[0], words[1], weight


def _demand_alike(
    known: dict[str, float | None], source: str, target: str, weight: float | None, where: str
) -> None:
    if known.get(target, weight) != weight:
        raise DataError(f"{where}: {source} – {target} is there with another weight", "keep one")
    if known and (None in known.values()) != (weight is None):
        raise DataError(
            f"{where}: some translations of {shown(source)} have a weight, and some have none",
            "give a weight to all translations of a word, or to none",
        )


def exchanged(entries: dict[str, Any] | None) -> dict[str, Any] | None:
    """From target words to source words; weights, which are those of one direction, are lost."""
    if entries is None:
        return None
    found: dict[str, list[str]] = {}
    for source, known in entries.items():
        for target in known:
            found.setdefault(target, []).append(source)
    return found


def read_known(
    path: str | None, pairs: Bitext, reverse: bool
) -> list[list[tuple[int, int]]] | None:
    """The sure links of every pair, as (target, source) if reversed; None without a path."""
    if path is None:
        return None
    from softcount.corpus.links import read_links

    every = read_links(path, shapes_of(pairs))
    return [[(j, i) if reverse else (i, j) for i, j in links] for links in every]


def read_gold(path: str | None, pairs: Bitext) -> Sequence[Links] | None:
    """Gold links of the first pairs; None without a path."""
    if path is None:
        return None
    from softcount.corpus.links import FlatLinks, read_links

    gold = read_links(path)
    if not 0 < len(gold) <= len(pairs):
        raise DataError(
            f"--gold {path}: {len(gold):,} lines of links, while there are {len(pairs):,} pairs",
            "give one line a pair; if only the first pairs are known, fewer lines",
        )
    head = pairs.select(slice(len(gold)))
    every = FlatLinks.of([sorted(links.possible) for links in gold])
    every.demand_inside(head.source.lengths, head.target.lengths, lambda n: f"{path}:{n + 1}")
    return gold


# Aligners made as the command line says, and learned from sentence pairs.


WITH_PRIOR = (LearnerName.VARIATIONAL_BAYES, LearnerName.STOCHASTIC_VB, LearnerName.GIBBS)
USUAL_PRIOR = 0.01
"""The prior of learners that need one, if no other is given; fast_align has the same."""

ALL_BUT_GIBBS = (ModelName.IBM1, ModelName.IBM2, ModelName.DIAGONAL, ModelName.HMM)
TAKEN_BY = {
    "p_null": (ModelName.DIAGONAL, ModelName.HMM, ModelName.GIBBS),
    "max_jump": (ModelName.HMM,),
    "warm_up": (ModelName.IBM2, ModelName.DIAGONAL, ModelName.HMM, ModelName.GIBBS),
    "tension": (ModelName.DIAGONAL,),
    "null": ALL_BUT_GIBBS,
    "stem": ALL_BUT_GIBBS,
}
"""Which models have which settings, where not all have."""
OPTIONS = {
    "p_null": "--p-null",
    "max_jump": "--max-jump",
    "warm_up": "--warm-up",
    "tension": "-T",
    "null": "--no-null",
    "stem": "--stem",
}
DTYPES = {Precision.DOUBLE: "float64", Precision.SINGLE: "float32"}


@dataclass(frozen=True)
class Choice:
    """Which aligner: a model for one direction, or for both, which may learn to agree.

    ``reverse``  source words come from target words
    """

    model: ModelName
    both: bool
    agree: bool = True
    reverse: bool = False

    @classmethod
    def given(
        cls, model: ModelName | None, both: bool, no_agree: bool, reverse: bool, symmetrised: bool
    ) -> Choice:
        """From the options; without a model, both directions."""
        two = model in (None, ModelName.GIBBS) or both or no_agree or symmetrised
        if reverse and two:
            raise typer.BadParameter("-r is for one direction alone: say which model, as in -m hmm")
        return cls(model or ModelName.HMM, two, not no_agree, reverse)

    def made(self, settings: Mapping[str, Any], own: Mapping[str, Any]) -> TwoWays | OneWay:
        """The aligner; ``own`` are settings that not all models have, None where not given."""
        from softcount import align as alignment

        given: dict[str, Any] = {name: x for name, x in own.items() if x is not None}
        for name in given:
            of_aligner = self.both and name == "warm_up"
            if self.model not in TAKEN_BY[name] and not of_aligner:
                fit = " or ".join(TAKEN_BY[name])
                raise typer.BadParameter(f"{OPTIONS[name]} is for -m {fit}, not for {self.model}")
        if self.model is ModelName.GIBBS:
            return alignment.GibbsAligner(**_sampling(settings), **given)
        if "stem" in given:
            given["stem"] = given["stem"] or None
        if not self.both:
            kinds: dict[ModelName, type[OneWay]] = {
                ModelName.IBM1: alignment.IBM1,
                ModelName.IBM2: alignment.IBM2,
                ModelName.DIAGONAL: alignment.Diagonal,
                ModelName.HMM: alignment.HMMAligner,
            }
            return kinds[self.model](**settings, **given)
        way: dict[str, Any] = {"agree": self.agree}
        for name in ("warm_up", "stem"):
            if name in given:
                way[name] = given.pop(name)
        way["settings"] = given or None
        return alignment.Aligner(self.model.value, **settings, **way)


def _sampling(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a sampler: it has a prior and sweeps, and is a learner by itself."""
    given = dict(settings)
    learner = given.pop("learner")
    del given["dtype"]  # a sampler counts
    if learner is not None and type(learner).__name__ != "EM":
        raise typer.BadParameter("-m gibbs is a learner by itself: leave out --learner and -v")
    if "smoothing" in given:
        given["prior"] = given.pop("smoothing")
    if learner is not None:
        given |= {"sweeps": learner.max_iter, "kept": min(2, learner.max_iter)}
    return given


def learner_for(name: LearnerName | None, max_iter: int | None) -> Learner | None:
    """The learner with the dials that were given; None: what aligners do if nothing is said."""
    if name is None and max_iter is None:
        return None
    from softcount.align.core import AlignmentCore

    if max_iter is None and name is not LearnerName.GIBBS:
        max_iter = AlignmentCore.usual_dials["max_iter"]
    return learner_called(name or LearnerName.EM, max_iter, None, None)


def dtype_for(precision: Precision | None, name: LearnerName | None) -> str:
    """The numbers of tables; those of learners with a prior may be too small for 32 bits."""
    usual = Precision.DOUBLE if name in WITH_PRIOR else Precision.SINGLE
    return DTYPES[precision or usual]


def prior_for(name: LearnerName | None, smoothing: float | None) -> dict[str, float]:
    """What to add to counts, if something was said of it."""
    if smoothing is None and name in WITH_PRIOR:
        smoothing = USUAL_PRIOR
    return {} if smoothing is None else {"smoothing": smoothing}


def learn(
    aligner: TwoWays | OneWay,
    pairs: Bitext,
    links: Sequence[Any] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Fit an aligner, with a line of progress, or of every step."""
    watch = Watch(verbose)
    try:
        aligner.fit(pairs, links=links, on_step=watch)
    finally:
        watch.end()
    if verbose:
        typer.echo(f"# {aligner.signature_}", err=True)


class Watch:
    """Says how steps go: one line that is written again if someone is watching, or one a step."""

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self.watched = sys.stderr.isatty() and not verbose

    def begin(self, needed: Estimate) -> None:
        """Before the first step, what is to come."""
        if self.verbose:
            typer.echo(f"# {needed}", err=True)
        elif self.watched:
            sys.stderr.write(f"\r\x1b[K{needed}")
            sys.stderr.flush()

    def __call__(self, state: State) -> None:
        line = step_line(state)
        if self.verbose:
            typer.echo(line, err=True)
        elif self.watched:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def end(self) -> None:
        if self.watched:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def step_line(state: State) -> str:
    """What is said of a step."""
    figures = f"perplexity {state.perplexity:,.3f}   entropy {state.entropy:.3f} bits"
    return f"step {state.step:>3}   {figures}   {state.seconds:.2f} s"


# What ``softcount align`` writes: links, and what can be made of them.


@dataclass(frozen=True)
class Decoding:
    """How links are chosen and printed; None: as the aligner does.

    ``reverse``  the aligner learned from pairs with source and target exchanged
    """

    reverse: bool = False
    method: Method | None = None
    threshold: float | None = None
    probs: bool = False

    def fitting(self, aligner: TwoWays | OneWay, where: str) -> Decoding:
        """As an aligner from a file was learned; complains if it cannot be asked so."""
        from softcount.align.bidirectional import TwoWays

        kind, both = type(aligner).__name__, isinstance(aligner, TwoWays)
        if both and self.reverse:
            raise DataError(f"{where} has both directions, while -r is for one", "leave out -r")
        if self.reverse and not aligner.turned_:
            raise DataError(f"{where} was learned without -r", "leave out -r")
        if self.method is not None and not both:
            raise DataError(
                f"{where} has one direction alone ({kind}): there is nothing to symmetrise",
                "learn both directions: softcount align --both --save …",
            )
        return replace(self, reverse=aligner.turned_)

    def links(self, aligner: TwoWays | OneWay, pairs: Bitext | None) -> tuple[FlatLinks, Array]:
        """(source, target) links of pairs (None: those learned from); probabilities if asked."""
        asked: dict[str, Any] = {"probabilities": self.probs, "threshold": self.threshold}
        if self.method is not None:
            asked["method"] = self.method.value
        found, values = aligner.links(self.turned(pairs), **asked)
        return _exchanged(found, values) if self.reverse else (found, values)

    @overload
    def turned(self, pairs: Bitext) -> Bitext: ...
    @overload
    def turned(self, pairs: None) -> None: ...
    def turned(self, pairs: Bitext | None) -> Bitext | None:
        """Pairs as the aligner sees them, or the other way round."""
        return pairs.flipped() if self.reverse and pairs is not None else pairs

    def text(self, links: FlatLinks, values: Array) -> bytes:
        """A line for each pair."""
        return with_probabilities(links, values) if self.probs else links.text()


def _exchanged(links: FlatLinks, values: Array) -> tuple[FlatLinks, Array]:
    """Source and target exchanged, in the order of (i, j) again."""
    import numpy as np

    from softcount.corpus.links import FlatLinks

    order = np.lexsort((links.source, links.target, links.pair))
    turned = FlatLinks(links.indptr, links.target[order], links.source[order])
    return turned, values[order] if len(values) else values


def with_probabilities(links: FlatLinks, values: Array) -> bytes:
    """Lines of i-j:p."""
    each = [
        f"{i}-{j}:{p:.6g}"
        for i, j, p in zip(
            links.source.tolist(), links.target.tolist(), values.tolist(), strict=True
        )
    ]
    ends = links.indptr.tolist()
    lines = (" ".join(each[a:b]) for a, b in pairwise(ends))
    return "".join(f"{line}\n" for line in lines).encode()


@contextmanager
def opened(path: Path | None) -> Iterator[BinaryIO]:
    """A file to write lines to, which is there when all of it is; None: standard output."""
    if path is None:
        yield typer.get_binary_stream("stdout")
        return
    try:
        with open_whole(path) as file:
            yield file
    except OSError as error:
        raise SoftcountError(
            f"{path}: cannot be written: {error.strerror}", "choose a place with room"
        ) from error


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with opened(path) as file:
        for line in lines:
            file.write(f"{line}\n".encode())


@dataclass(frozen=True)
class Wanted:
    """What is to be written beside the lines, and where the lines go (None: standard output)."""

    output: Path | None = None
    dictionary: Path | None = None
    least: float = 0.0
    phrases: Path | None = None
    longest: int = 7
    report: Path | None = None
    shown: int | None = None
    gold: str | None = None

    @property
    def of_all(self) -> bool:
        """Whether all pairs must be there together."""
        needed = (self.phrases, self.report, self.shown, self.gold)
        return any(one is not None for one in needed)

    def check_pairs(self, pairs: Bitext) -> Sequence[Links] | None:
        """Gold links, if there are any; complains if these or the pair to be shown do not fit."""
        if self.shown is not None and self.shown > len(pairs):
            raise DataError(f"--show {self.shown}: there are {len(pairs):,} pairs", "choose one")
        return read_gold(self.gold, pairs)

    def write(
        self,
        aligner: TwoWays | OneWay,
        decoding: Decoding,
        pairs: Bitext | None,
        gold: Sequence[Links] | None,
    ) -> None:
        """Lines first, then all else; pairs may be None: those that were learned from."""
        links, values = decoding.links(aligner, pairs)

        def write_links() -> None:
            with opened(self.output) as out:
                out.write(decoding.text(links, values))
                out.flush()

        try_all(
            write_links,
            lambda: self.write_dictionary(aligner, decoding.reverse),
            lambda: try_all(*self._of_all(aligner, decoding, pairs, links, gold)),
        )

    def _of_all(
        self,
        aligner: TwoWays | OneWay,
        decoding: Decoding,
        pairs: Bitext | None,
        links: FlatLinks,
        gold: Sequence[Links] | None,
    ) -> Iterator[Deed]:
        """What is wanted of all pairs together."""
        if not self.of_all:
            return
        read = aligner.shards(decoding.turned(pairs))[0]
        seen = decoding.turned(read)
        yield at(self.phrases, lambda path: _write_phrases(path, seen, links, self.longest))
        yield at(
            self.report, lambda path: _write_report(path, aligner, read, gold, decoding.reverse)
        )

        def show(number: int) -> None:
            (p,) = aligner.posteriors(read.select([number - 1]))
            posterior = p.T if decoding.reverse else p
            _show(seen.pair(number - 1), posterior, links.lists()[number - 1])

        yield at(self.shown, show)
        yield at(gold, lambda some: _print_scores(links, some))

    def write_dictionary(self, aligner: TwoWays | OneWay, reverse: bool) -> None:
        """Source word, target word and probability, the most probable of each word first."""
        if self.dictionary is None:
            return
        entries = _entries(aligner, self.least)
        if reverse:
            entries = ((target, source, p) for source, target, p in entries)
        lines = (f"{source}\t{target}\t{p:.6g}" for source, target, p in entries)
        _write_lines(self.dictionary, lines)


def _entries(aligner: TwoWays | OneWay, least: float) -> Iterator[tuple[str, str, float]]:
    """What words become: those of the forward direction, the empty word left out."""
    import numpy as np

    way: Any = getattr(aligner, "forward_", aligner)
    table, others = way.table(), way.target_words_
    for word, (start, end) in zip(way.source_words_, pairwise(table.indptr), strict=False):
        p, places = table.data[start:end], table.indices[start:end]
        for k in np.argsort(-p, kind="stable")[: np.count_nonzero(p >= least)]:
            yield word, others[places[k]], float(p[k])


def _write_phrases(path: Path, pairs: Bitext, links: FlatLinks, longest: int) -> None:
    from softcount.align.phrases import phrase_table

    table = phrase_table(pairs, links, longest)
    _write_lines(path, table.lines())


def _write_report(
    path: Path,
    aligner: TwoWays | OneWay,
    pairs: Bitext,
    gold: Sequence[Links] | None,
    reverse: bool,
) -> None:
    """A page, which shows pairs as the aligner reads them."""
    from softcount.align.report import alignment_report
    from softcount.corpus.links import Links
    from softcount.show.report import write_page

    if reverse and gold is not None:
        gold = [
            Links([(j, i) for i, j in one.sure], [(j, i) for i, j in one.possible]) for one in gold
        ]
    write_page(path, alignment_report(aligner, pairs, gold=gold))


def _show(pair: tuple[list[str], list[str]], posterior: Array, links: list[Link]) -> None:
    from softcount.align.report import alignment_view

    typer.echo(alignment_view(*pair, posterior, links), err=True)


def _print_scores(links: FlatLinks, gold: Sequence[Links]) -> None:
    """How well the links of the first pairs agree with gold ones."""
    from softcount.metrics import align_scores

    scores = align_scores(links.lists()[: len(gold)], gold)
    typer.echo(f"{scores} in {len(gold):,} pair{'s' * (len(gold) != 1)}", err=True)


# ``softcount align``.


LEARNING_OPTIONS = (
    *(
        "lowercase",
        "model",
        "both",
        "no_agree",
        "learner",
        "max_iter",
        "smoothing",
        "precision",
        "stem",
    ),
    *("warm_up", "p_null", "no_null", "max_jump", "dictionary", "dictionary_strength", "links"),
    *("seed", "save", "diagonal", "optimise", "variational", "tension", "verbose"),
)


def align(
    ctx: typer.Context,
    file: File = None,
    corpus: Input = None,
    source: Source = None,
    target: Target = None,
    lowercase: Lowercase = False,
    model: Model = None,
    both: Both = False,
    no_agree: NoAgree = False,
    reverse: Reverse = False,
    learner: LearnerOption = None,
    max_iter: MaxIter = None,
    smoothing: Smoothing = None,
    stem: Stem = None,
    precision: Precision_ = None,
    warm_up: WarmUp = None,
    p_null: PNull = None,
    no_null: NoNull = False,
    max_jump: MaxJump = None,
    dictionary: DictionaryIn = None,
    dictionary_strength: Strength = None,
    links: KnownLinks = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    symmetrize: Symmetrize = None,
    threshold: Threshold = None,
    probs: Probs = False,
    output: Output = None,
    save: options.Save = None,
    load: options.Load = None,
    dictionary_out: DictionaryOut = None,
    min_prob: MinProb = 0.01,
    phrases: PhrasesOut = None,
    max_phrase: MaxPhrase = 7,
    gold: Gold = None,
    report: Report = None,
    show: Show = None,
    verbose: Verbose = False,
    diagonal: Diagonal = False,
    optimise: Optimise = False,
    variational: Variational = False,
    tension: Tension = None,
    force_align: ForceAlign = None,
) -> None:
    """Find which words of sentence pairs are translations of each other.

    Prints links i-j (source word i, target word j, counted from 0): exactly one line for each
    pair, a blank one where a side is empty. If nothing else is said, hidden Markov models of both
    directions learn to agree. Takes the flags of fast_align: -d -o -v -r -I -q -a -N -p.

    \b
    softcount align -i corpus.fr-en > links.txt
    softcount align -s corpus.fr -t corpus.en --symmetrize grow-diag-final-and > links.txt
    softcount align -i corpus.fr-en -d -o -v > forward.txt
    softcount align -i corpus.fr-en --dictionary known.tsv --save model.softcount --probs
    softcount align --load model.softcount new.fr-en
    """
    refuse_spectral(learner)
    if force_align is not None:
        raise typer.BadParameter("-f: keep the model with --save FILE, and align by --load FILE")
    files = PairFiles.given(file, corpus, source, target)
    if dictionary_strength is not None and dictionary is None:
        raise typer.BadParameter("--dictionary-strength needs --dictionary")
    refuse_two_of_stdin("-" if files.is_stdin else None, dictionary)
    _refuse_threshold(symmetrize, threshold)
    decoding = Decoding(reverse, symmetrize, threshold, probs)
    wanted = Wanted(output, dictionary_out, min_prob, phrases, max_phrase, report, show, gold)
    if load is not None:
        refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
    else:
        model = _model(model, diagonal or tension is not None)
        learner = _learner(learner, variational)
        choice = Choice.given(model, both, no_agree, reverse, symmetrize is not None)
    with readable_errors():
        if load is not None:
            _align_by(load, files, decoding, wanted, threads)
            return
        from softcount.engines import Local

        known = read_dictionary(dictionary, lowercase)
        settings = {
            **{"learner": learner_for(learner, max_iter), **prior_for(learner, smoothing)},
            **{"dictionary": exchanged(known) if reverse else known, "lowercase": lowercase},
            **{"dictionary_strength": dictionary_strength, "dtype": dtype_for(precision, learner)},
            **{"engine": Local(threads), "random_state": seed},
        }
        null = False if no_null else None
        own = {"p_null": p_null, "max_jump": max_jump, "warm_up": warm_up, "null": null}
        own |= {"tension": tension, "stem": stem}
        aligner = choice.made(settings, own)
        pairs = files.read()
        told, right = read_known(links, pairs, reverse), wanted.check_pairs(pairs)
        learn(aligner, pairs.flipped() if reverse else pairs, told, verbose=verbose)
        aligner.turned_ = reverse
        try_all(at(save, aligner.save), lambda: wanted.write(aligner, decoding, None, right))


def _model(named: ModelName | None, diagonal: bool) -> ModelName | None:
    if diagonal and named not in (None, ModelName.DIAGONAL):
        raise typer.BadParameter(f"-d is -m diagonal: it does not go with -m {named}")
    return ModelName.DIAGONAL if diagonal else named


def _learner(named: LearnerName | None, variational: bool) -> LearnerName | None:
    if variational and named not in (None, LearnerName.VARIATIONAL_BAYES):
        raise typer.BadParameter(f"-v is --learner vb: it does not go with --learner {named}")
    return LearnerName.VARIATIONAL_BAYES if variational else named


def _refuse_threshold(method: Method | None, threshold: float | None) -> None:
    if threshold is None:
        return
    if threshold >= 1.0:
        raise typer.BadParameter(f"--threshold {threshold:g}: no link is that probable; below 1")
    if method not in (None, *BY_POSTERIORS):
        names = " and ".join(BY_POSTERIORS)
        raise typer.BadParameter(f"--threshold is for {names}, not for --symmetrize {method}")


def _align_by(
    model: Path, files: PairFiles, decoding: Decoding, wanted: Wanted, threads: int | None
) -> None:
    """Align pairs by a model in a file: as they come, if nothing is wanted of all together."""
    from softcount.cli.models import load_aligner

    aligner = load_aligner(model, threads)
    decoding = decoding.fitting(aligner, str(model))
    if wanted.of_all or files.joint is None:
        pairs = files.read()
        wanted.write(aligner, decoding, pairs, wanted.check_pairs(pairs))
        return

    def write_links() -> None:
        with opened(wanted.output) as out:
            for pairs in files.stream():
                out.write(decoding.text(*decoding.links(aligner, pairs)))
                out.flush()

    try_all(write_links, lambda: wanted.write_dictionary(aligner, decoding.reverse))
