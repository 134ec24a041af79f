"""``softcount align``: its options, what it reads, how it learns, what it prints and writes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

import typer

from softcount.align import parameters
from softcount.align.parameters import MEANS
from softcount.cli.frame import Deed, LearningCommand, Progress, at, refuse_two_of_stdin, try_all
from softcount.cli.options import (
    Argument,
    Input,
    LearnerOptions,
    Learning,
    Model,
    Option,
    Output,
    read_learner_name,
)
from softcount.cli.reading import PairFiles, read_lines, shapes_of
from softcount.cli.targets import PLAIN, WRITTEN, label_of
from softcount.core.drafts import open_whole
from softcount.core.errors import DataError, SoftcountError, brief
from softcount.core.parameters import describe

if TYPE_CHECKING:
    from softcount.align.estimators import BidirectionalAligner, DirectionalAligner
    from softcount.core.estimate import Estimate
    from softcount.core.store import Stored
    from softcount.core.types import FloatArray, State
    from softcount.text.bitext import Bitext
    from softcount.text.links import FlatLinks, Links

    AnyAligner = BidirectionalAligner | DirectionalAligner

MODELS = {
    "ibm1": ("IBM1", parameters.DirectionParameters),
    "ibm2": ("IBM2", parameters.IBM2Parameters),
    "diagonal": ("Diagonal", parameters.DiagonalParameters),
    "hmm": ("HMMAligner", parameters.HMMAlignerParameters),
    "gibbs": ("GibbsAligner", parameters.GibbsAlignerParameters),
}
"""What ``--model`` may say: the estimator, and the parameters that it has."""
METHODS = (
    *MEANS,
    *("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"),
    *("forward", "backward"),
)
WITH_PRIOR = ("variational-bayes", "stochastic-vb", "gibbs")
USUAL_PRIOR = 0.01
"""The prior of learners that need one, if no other is given; fast_align has the same."""

FastAlign = partial(Option, panel="As fast_align", learns=True)
KnownFile = partial(Input, metavar="FILE", learns=True)
OutputFile = partial(Output, metavar="FILE", file=WRITTEN)

SourceFile = Annotated[
    str | None, Input("Source sentences alone, one a line.", "-s", "--source", metavar="FILE")
]
TargetFile = Annotated[
    str | None, Input("Their translations, line by line.", "-t", "--target", metavar="FILE")
]
MaxIter = Annotated[
    int | None,
    Learning(
        "At most this many steps (else 5; --learner gibbs 1000; -m gibbs: sweeps, else 8).",
        "-I",
        "--max-iter",
        least=1,
    ),
]
Verbose = Annotated[bool, Learning("Say on stderr how every step of learning went.")]


class AlignmentInput(NamedTuple):
    """Sentence pairs, the links that are known of them, and gold links to compare with."""

    pairs: Bitext
    links: Sequence[Any] | None = None
    gold: Sequence[Links] | None = None


class AlignmentResult(NamedTuple):
    """An aligner and the links that it chose, as (source, target).

    ``pairs``   None: those that were learned from
    ``values``  their probabilities, if they are wanted
    """

    aligner: AnyAligner
    pairs: Bitext | None
    links: FlatLinks
    values: FloatArray
    gold: Sequence[Links] | None


class Align(LearnerOptions, LearningCommand):
    """Find which words of sentence pairs are translations of each other.

    Prints links i-j (source word i, target word j, counted from 0): exactly one line for each
    pair, a blank one where a side is empty. If nothing else is said, hidden Markov models of both
    directions learn to agree. Takes the flags of fast_align: -d -o -v -r -I -q -a -N -p.

    \b
    softcount align -i corpus.fr-en > links.txt
    softcount align -s corpus.fr -t corpus.en --symmetrize grow-diag-final-and > links.txt
    softcount align -i corpus.fr-en -d -o -v > forward.txt
    softcount align -i corpus.fr-en --dictionary known.tsv --save model.softcount --proba
    softcount align --load model.softcount new.fr-en
    """

    without = ("tol", "n_init")
    with_load = ("threads", "reverse")

    # sentence pairs
    file: Annotated[
        str | None,
        Argument(
            "Lines 'source ||| target'; .gz too; - is stdin, and so is no FILE at all.",
            metavar="FILE",
        ),
    ] = None
    corpus: Annotated[
        str | None, Input("Another way to say FILE.", "-i", "--input", metavar="FILE")
    ] = None
    source: SourceFile = None
    target: TargetFile = None
    lowercase: Annotated[
        bool, Input("Put all words in lower case; a saved model does too.", learns=True)
    ] = False
    dictionary: Annotated[
        str | None,
        KnownFile(
            "Translations that are known: source word, tab, target word, and perhaps a tab and a "
            "weight. All that a word may become, unless --dictionary-strength is given."
        ),
    ] = None
    dictionary_strength: Annotated[
        float | None,
        Input(
            "Entries of the dictionary count so much more, and other translations stay possible.",
            metavar="NUMBER",
            learns=True,
        ),
    ] = None
    links: Annotated[
        str | None,
        KnownFile("Links that are known, such as 0-0 2-1: one line a pair, blank where none is."),
    ] = None

    # the model
    model: Annotated[
        str | None,
        Model(
            "ibm1, ibm2, diagonal or hmm, in one direction (target words come from source words). "
            "gibbs: both directions sampled, with fertilities. If not given: hmm, --both.",
            "-m",
            "--model",
            choices=tuple(MODELS),
        ),
    ] = None
    both: Annotated[bool, Model("Both directions, which learn to agree: the usual thing.")] = False
    no_agree: Annotated[bool, Model("Both directions, and each learns for itself.")] = False
    reverse: Annotated[
        bool,
        Model(
            "The other direction alone: source words come from target words. Links are still "
            "source-target. A model that was learned so remembers it.",
            "-r",
            "--reverse",
        ),
    ] = False
    smoothing: Annotated[
        float | None,
        Model(
            "Add this to the count of every pair of words; for vb and gibbs, their prior. [else "
            "0.01 for those, 0.0003 for both directions, 0 for one]",
            "-a",
            "--smoothing",
            "--alpha",
            least=0.0,
        ),
    ] = None
    stem: Annotated[
        int | None,
        Model(
            "Words with the same first N letters lend each other counts; 0: they do not. [else 4 "
            "for both directions, 0 for one]",
            metavar="N",
            least=0,
        ),
    ] = None
    p_null: Annotated[
        float | None,
        Model(
            "hmm, diagonal, gibbs: how often words come from no word (else 0.1, 0.08, 0.2).",
            "-q",
            "--p-null",
            least=0.0,
        ),
    ] = None
    no_null: Annotated[
        bool, Model("Every word comes from some word of the other side.", "-N", "--no-null")
    ] = False
    max_jump: Annotated[int | None, Model("hmm: wider jumps are all alike (else 20).", least=1)] = (
        None
    )
    dtype: Annotated[
        str | None,
        Model(
            "float32: seven digits, half the memory and less time; or float64. [else float32, but "
            "float64 for vb, svb, gibbs]",
            choices=("float32", "float64"),
        ),
    ] = None
    learner: Annotated[
        str | None,
        Learning(
            "If not given, em. hard-em: single best guesses. online-em (online): mini-batches. "
            "incremental-em. variational-bayes (vb), stochastic-vb (svb), gibbs: with a prior. "
            "monte-carlo-em (mcem): EM with draws.",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None
    max_iter: MaxIter = None
    warm_up: Annotated[
        int | None,
        Learning("Begin with this many steps of Model 1 (else 5; for -m diagonal 0).", least=0),
    ] = None
    verbose: Verbose = False

    # output
    symmetrize: Annotated[
        str | None,
        Output(
            "How both directions become one alignment. product (if not given) and soft-union: "
            "links whose mean probability is above the threshold. intersection, union, grow-diag, "
            "grow-diag-final, grow-diag-final-and: of the best alignments. forward, backward: of "
            "one direction. Means --both.",
            "--symmetrize",
            "--symmetrise",
            choices=METHODS,
            metavar="METHOD",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        Output(
            "Print links that are more probable than this. [else 0.5 for both directions; for one, "
            "the best alignment is printed]",
            least=0.0,
        ),
    ] = None
    proba: Annotated[bool, Output("Print the links' probabilities: i-j:p.")] = False
    output: Annotated[
        Path | None,
        OutputFile(
            "Write the lines to this file, not to stdout; it is there when all of them are."
        ),
    ] = None
    dictionary_out: Annotated[
        Path | None,
        OutputFile(
            "Write what was learned of words: source word, target word, probability of the target "
            "word given the source word (with -r, the other way round), tab-separated, best "
            "first.",
            "-p",
            "-c",
            "--dictionary-out",
        ),
    ] = None
    min_prob: Annotated[
        float,
        Output("Leave out of --dictionary-out what is less probable.", least=0.0, most=1.0),
    ] = 0.01
    phrases: Annotated[
        Path | None,
        OutputFile("Write a phrase table, as Moses reads it, from the links that are printed."),
    ] = None
    max_phrase: Annotated[int, Output("No phrase has more words than this.", least=1)] = 7
    gold: Annotated[
        str | None,
        Output(
            "Say on stderr how well the links agree with these: 0-0 is sure, 0?0 possible. If "
            "there are fewer lines, they belong to the first pairs.",
            metavar="FILE",
        ),
    ] = None
    html: Annotated[Path | None, OutputFile("Write a page of alignments.")] = None
    show: Annotated[
        int | None, Output("Show pair N (line N) on stderr, as a grid.", metavar="N", least=1)
    ] = None

    # fast_align has these as well
    diagonal: Annotated[bool, FastAlign("-m diagonal.", "-d")] = False
    optimise: Annotated[bool, FastAlign("Nothing: the tension is always learned.", "-o")] = False
    variational: Annotated[bool, FastAlign("--learner vb.", "-v")] = False
    tension: Annotated[
        float | None, FastAlign("diagonal: the tension to begin with (else 4).", "-T", least=0.0)
    ] = None
    force_align: Annotated[
        str | None, FastAlign("See --load.", "-f", learns=None, hidden=True, file=PLAIN)
    ] = None

    def check(self) -> None:
        self.refuse_spectral()
        if self.force_align is not None:
            raise typer.BadParameter(
                "-f: keep the model with --save FILE, and align by --load FILE"
            )
        self.pairs = PairFiles.given(self.file, self.corpus, self.source, self.target)
        if self.dictionary_strength is not None and self.dictionary is None:
            raise typer.BadParameter("--dictionary-strength needs --dictionary")
        refuse_two_of_stdin("-" if self.pairs.is_stdin else None, self.dictionary)
        if self.threshold is not None and self.threshold >= 1.0:
            raise typer.BadParameter(
                f"--threshold {self.threshold:g}: no link is that probable; below 1"
            )
        if self.threshold is not None and self.symmetrize not in (None, *MEANS):
            names = " and ".join(MEANS)
            raise typer.BadParameter(
                f"--threshold is for {names}, not for --symmetrize {self.symmetrize}"
            )
        if self.load is not None:
            return
        if self.diagonal or self.tension is not None:
            if self.model not in (None, "diagonal"):
                raise typer.BadParameter(f"-d is -m diagonal: it does not go with -m {self.model}")
            self.model = "diagonal"
        if self.variational:
            if self.learner not in (None, "variational-bayes"):
                raise typer.BadParameter(
                    f"-v is --learner vb: it does not go with --learner {self.learner}"
                )
            self.learner = "variational-bayes"
        if self.reverse and self.directions == 2:
            raise typer.BadParameter("-r is for one direction alone: say which model, as in -m hmm")

    @property
    def directions(self) -> int:
        """Without a model, both directions are learned."""
        named = self.both or self.no_agree or self.symmetrize is not None
        return 2 if named or self.model in (None, "gibbs") else 1

    # reading
    def read(self, model: AnyAligner | None) -> AlignmentInput:
        from softcount.text.links import FlatLinks, read_links

        if model is None:
            self.prepared = self._make_aligner()  # errors come before anything large is read
        pairs = self.pairs.read()
        if self.show is not None and self.show > len(pairs):
            raise DataError(f"--show {self.show}: there are {len(pairs):,} pairs", "choose one")
        links = gold = None
        if model is None and self.links is not None:
            links = [
                [(j, i) if self.reverse else (i, j) for i, j in sure]
                for sure in read_links(self.links, shapes_of(pairs))
            ]
        if self.gold is not None:
            gold = read_links(self.gold)
            if not 0 < len(gold) <= len(pairs):
                raise DataError(
                    f"--gold {self.gold}: {len(gold):,} lines of links, while there are "
                    f"{len(pairs):,} pairs",
                    "give one line a pair; if only the first pairs are known, fewer lines",
                )
            head = pairs.select(slice(len(gold)))
            FlatLinks.of([sorted(links.possible) for links in gold]).check_inside(
                head.source.lengths, head.target.lengths, lambda n: f"{self.gold}:{n + 1}"
            )
        return AlignmentInput(pairs, links, gold)

    # learning
    def make(self, data: AlignmentInput) -> AnyAligner:
        return self.prepared

    def _make_aligner(self) -> AnyAligner:
        from softcount import align
        from softcount.align.data import Dictionary

        name = self.model or "hmm"
        given = self._own_settings(name)
        dictionary: Any = None
        if self.dictionary is not None:
            dictionary = read_dictionary(self.dictionary, self.lowercase)
            if self.reverse:
                dictionary = Dictionary.of(dictionary).reversed()
        settings: dict[str, Any] = {
            "dictionary": dictionary,
            "dictionary_strength": self.dictionary_strength,
            "lowercase": self.lowercase,
        }
        with_prior = self.learner in WITH_PRIOR
        smoothing = self.smoothing
        if smoothing is None and with_prior:
            smoothing = USUAL_PRIOR
        learning = self.learning(make_aligner_learner(self))
        if name == "gibbs":  # a sampler has a prior and sweeps, and is a learner by itself
            learner = learning.pop("learner")
            if self.learner not in (None, "em"):
                raise typer.BadParameter(
                    "-m gibbs is a learner by itself: leave out --learner and -v"
                )
            if smoothing is not None:
                given["prior"] = smoothing
            if learner is not None:
                given |= {"max_iter": learner.max_iter, "kept": min(2, learner.max_iter)}
            return align.GibbsAligner(**settings, **learning, **given)
        settings |= {**learning, "dtype": self.dtype or ("float64" if with_prior else "float32")}
        if smoothing is not None:
            settings["smoothing"] = smoothing
        if "stem" in given:
            given["stem"] = given["stem"] or None
        if self.directions == 1:
            one: DirectionalAligner = getattr(align, MODELS[name][0])(**settings, **given)
            return one
        for shared in ("warm_up", "stem"):
            if shared in given:
                settings[shared] = given.pop(shared)
        return align.Aligner(name, agree=not self.no_agree, settings=given or None, **settings)

    def _own_settings(self, model: str) -> dict[str, Any]:
        """Options that not all models have; it is an error if this one does not have them."""
        own = {name: getattr(self, name) for name in ("p_null", "max_jump", "warm_up", "tension")}
        own |= {"null": False if self.no_null else None, "stem": self.stem}
        given = {name: value for name, value in own.items() if value is not None}
        for name in given:
            takers = [
                taker
                for taker, (_, declared) in MODELS.items()
                if any(parameter.name == name for parameter in describe(declared))
            ]
            of_both = self.directions == 2 and name == "warm_up"
            if model not in takers and not of_both:
                typed = {"null": "no_null"}.get(name, name)
                every = {one.name: label_of(one) for one in self.context.command.params}
                raise typer.BadParameter(
                    f"{every[typed]} is for -m {' or '.join(takers)}, not for {model}"
                )
        return given

    def make_progress(self, data: AlignmentInput) -> AlignmentProgress:
        return AlignmentProgress(self.verbose)

    def fit(self, model: AnyAligner, data: AlignmentInput, progress: Progress) -> None:
        pairs = data.pairs.flipped() if self.reverse else data.pairs
        model.fit(pairs, links=data.links, on_step=progress)
        if self.verbose:
            typer.echo(f"# {model.signature_}", err=True)
        model.reversed_ = self.reverse

    def restore(self, kind: Any, stored: Stored) -> AnyAligner:
        """The aligner in a file; it is an error if it cannot do what is asked."""
        from softcount.align.estimators import BidirectionalAligner
        from softcount.engines import Local

        aligner: AnyAligner = kind.restore(stored, engine=Local(self.threads))
        both = isinstance(aligner, BidirectionalAligner)
        if both and self.reverse:
            raise DataError(f"{self.load} has both directions, while -r is for one", "leave out -r")
        if self.reverse and not aligner.reversed_:
            raise DataError(f"{self.load} was learned without -r", "leave out -r")
        if self.symmetrize is not None and not both:
            raise DataError(
                f"{self.load} has one direction alone ({type(aligner).__name__}): there is nothing "
                "to symmetrise",
                "learn both directions: softcount align --both --save …",
            )
        return aligner

    # answers
    def answer_stream(self, model: AnyAligner) -> bool:
        """As pairs come, if nothing is wanted of all together."""
        together = (self.phrases, self.html, self.show, self.gold)
        if any(one is not None for one in together) or self.pairs.joint is None:
            return False

        def write_links() -> None:
            with open_output(self.output) as out:
                for pairs in self.pairs.stream():
                    links, values = self._find_links(model, pairs)
                    out.write(links.text(values if self.proba else None))
                    out.flush()

        try_all(write_links, at(self.dictionary_out, lambda path: self._write_table(path, model)))
        return True

    def answer(self, model: AnyAligner, data: AlignmentInput) -> AlignmentResult:
        pairs = None if self.load is None else data.pairs
        return AlignmentResult(model, pairs, *self._find_links(model, pairs), data.gold)

    def _find_links(
        self, aligner: AnyAligner, pairs: Bitext | None
    ) -> tuple[FlatLinks, FloatArray]:
        """(source, target) links of pairs (None: those learned from); probabilities if asked."""
        asked: dict[str, Any] = {"probabilities": self.proba, "threshold": self.threshold}
        if self.symmetrize is not None:
            asked["method"] = self.symmetrize
        links, values = aligner.links(_as_learned(aligner, pairs), **asked)
        return links.flipped(values) if aligner.reversed_ else (links, values)

    def tell(self, found: AlignmentResult) -> None:
        with open_output(self.output) as out:
            out.write(found.links.text(found.values if self.proba else None))
            out.flush()

    def page(self, found: AlignmentResult) -> str:
        """Pairs as the aligner reads them."""
        from softcount.align.report import alignment_report
        from softcount.text.links import Links

        gold = found.gold
        if found.aligner.reversed_ and gold is not None:
            gold = [
                Links([(j, i) for i, j in one.sure], [(j, i) for i, j in one.possible])
                for one in gold
            ]
        return alignment_report(found.aligner, _pairs_read(found), gold=gold)

    def files(self, found: Callable[[], AlignmentResult]) -> Iterator[Deed]:
        def write_phrases(path: Path) -> None:
            from softcount.align.phrases import phrase_table

            seen = _as_learned(found().aligner, _pairs_read(found()))
            _write_lines(path, phrase_table(seen, found().links, self.max_phrase).lines())

        def show(number: int) -> None:
            from softcount.align.report import alignment_view

            aligner, read = found().aligner, _pairs_read(found())
            (p,) = aligner.posteriors(read.select([number - 1]))
            source, target = _as_learned(aligner, read).pair(number - 1)
            links = found().links.lists()[number - 1]
            posterior = p.T if aligner.reversed_ else p
            typer.echo(alignment_view(source, target, posterior, links), err=True)

        def print_scores(_: str) -> None:
            from softcount.metrics import align_scores

            gold = found().gold or ()
            scores = align_scores(found().links.lists()[: len(gold)], gold)
            typer.echo(f"{scores} in {len(gold):,} pair{'s' * (len(gold) != 1)}", err=True)

        yield at(self.dictionary_out, lambda path: self._write_table(path, found().aligner))
        yield at(self.phrases, write_phrases)
        yield at(self.show, show)
        yield at(self.gold, print_scores)

    def _write_table(self, path: Path, aligner: AnyAligner) -> None:
        """Source word, target word and probability, the most probable of each word first.

        Those of the forward direction, without the empty word.
        """
        import numpy as np

        def list_lines() -> Iterator[str]:
            forward: Any = getattr(aligner, "forward_", aligner)
            table, targets = forward.table(), forward.target_words_
            for word, (a, b) in zip(forward.source_words_, pairwise(table.indptr), strict=False):
                p, columns = table.data[a:b], table.indices[a:b]
                for k in np.argsort(-p, kind="stable")[: np.count_nonzero(p >= self.min_prob)]:
                    words = word, targets[columns[k]]
                    source, target = reversed(words) if aligner.reversed_ else words
                    yield f"{source}\t{target}\t{p[k]:.6g}"

        _write_lines(path, list_lines())


def _as_learned(aligner: AnyAligner, pairs: Any) -> Any:
    """Pairs as the aligner sees them; or, of pairs that it has seen, as they were."""
    return pairs.flipped() if aligner.reversed_ and pairs is not None else pairs


def _pairs_read(found: AlignmentResult) -> Bitext:
    """Pairs as the aligner reads them: in lower case, if it was learned so."""
    pairs: Bitext = found.aligner._shards(_as_learned(found.aligner, found.pairs))[0]
    return pairs


def make_aligner_learner(options: LearnerOptions) -> Any:
    """The learner that was asked for; None: what aligners do if nothing is said."""
    if options.learner is None and options.max_iter is None:
        return None
    from softcount.align.core import AlignmentCore

    more: dict[str, Any] = {}
    if options.max_iter is None and options.learner != "gibbs":
        more["max_iter"] = AlignmentCore.default_learner.max_iter
    return options.make_learner(**more)


class AlignmentProgress(Progress):
    """Progress of learning: a line that is rewritten in a terminal, or one line for each step."""

    def __init__(self, verbose: bool) -> None:
        super().__init__(0)
        self.verbose = verbose
        self.wanted = sys.stderr.isatty() and not verbose

    def begin(self, needed: Estimate) -> None:
        if self.verbose:
            typer.echo(f"# {needed}", err=True)
        super().begin(needed)

    def __call__(self, state: State) -> None:
        figures = f"perplexity {state.perplexity:,.3f}   entropy {state.entropy:.3f} bits"
        line = f"step {state.step:>3}   {figures}   {state.seconds:.2f} s"
        if self.verbose:
            typer.echo(line, err=True)
        self.show(line)


FORM = "write: source word, tab, target word, and perhaps a tab and a weight above 0"


def read_dictionary(path: str, lowercase: bool) -> dict[str, Any]:
    """The entries of a file, as aligners take them.

    Entries of several words are left out, and stderr says how many they are.
    """
    entries: dict[str, dict[str, float | None]] = {}
    several = 0
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        words = [field.strip() for field in line.split("\t")]
        if len(words) not in (2, 3) or not all(words):
            raise DataError(f"{where}: {brief(line)} is no entry of a dictionary", FORM)
        source, target = (word.lower() if lowercase else word for word in words[:2])
        weight = None
        if len(words) == 3:
            try:
                weight = float(words[2])
            except ValueError:
                weight = math.nan
            if not 0.0 < weight < math.inf:
                raise DataError(f"{where}: {brief(words[2])} is no weight", FORM)
        if len(source.split()) > 1 or len(target.split()) > 1:
            several += 1
            continue
        known = entries.setdefault(source, {})
        if known.get(target, weight) != weight:
            raise DataError(
                f"{where}: {source} – {target} is there with another weight", "keep one"
            )
        if known and (None in known.values()) != (weight is None):
            raise DataError(
                f"{where}: some translations of {brief(source)} have a weight, and some have none",
                "give a weight to all translations of a word, or to none",
            )
        known[target] = weight
    if several:
        what = "entry" if several == 1 else "entries"
        typer.echo(f"softcount: {path}: {several:,} {what} of several words left out", err=True)
    if not entries:
        raise DataError(f"{path}: there is no entry of single words", FORM)
    return {
        word: list(known) if None in known.values() else known for word, known in entries.items()
    }


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
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
    with open_output(path) as file:
        for line in lines:
            file.write(f"{line}\n".encode())
