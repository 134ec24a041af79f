"""The ``softcount align`` command: options, input, training, and output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

import typer

from softcount.align import parameters
from softcount.align.parameters import MEANS
from softcount.cli.frame import (
    Action,
    FitProgress,
    LearningCommand,
    if_given,
    refuse_two_of_stdin,
    try_all,
)
from softcount.cli.options import (
    ENGINE_OPTIONS,
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
from softcount.cli.targets import PLAIN, WRITTEN, option_name
from softcount.core.drafts import open_whole
from softcount.core.errors import DataError, SoftcountError, brief
from softcount.core.parameters import describe

if TYPE_CHECKING:
    from softcount.align.estimators import BidirectionalAligner, DirectionalAligner
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
"""The choices of ``--model``: the name of the estimator class, and the class of its parameters."""
METHODS = (
    *MEANS,
    *("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"),
    *("forward", "backward"),
)
WITH_PRIOR = ("variational-bayes", "stochastic-vb", "gibbs")
USUAL_PRIOR = 0.01
"""Default Dirichlet prior of the learners that need one; the same value as in fast_align."""

FastAlign = partial(Option, panel="As fast_align", learns=True)
KnownFile = partial(Input, learns=True)
OutputFile = partial(Output, file=WRITTEN)

SourceFile = Annotated[str | None, Input("Source sentences, one per line.", "-s", "--source")]
TargetFile = Annotated[str | None, Input("Target sentences, line by line.", "-t", "--target")]
MaxIter = Annotated[
    int | None,
    Learning(
        "Maximum number of steps. [default: 5; 1000 with --learner gibbs; with -m gibbs, 8 sweeps]",
        "-I",
        "--max-iter",
        least=1,
    ),
]


class AlignmentInput(NamedTuple):
    """Sentence pairs, their known links (supervision), and gold links for evaluation."""

    pairs: Bitext
    links: Sequence[Any] | None = None
    gold: Sequence[Links] | None = None


@dataclass(frozen=True, eq=False)
class AlignmentResult:
    """An aligner and the links that it predicts, as (source position, target position).

    ``pairs``    the aligned pairs; None: the training pairs
    ``predict``  function that predicts links, and their probabilities if requested, of some pairs
                 after another: there may be more of them than fit into memory
    """

    aligner: AnyAligner
    pairs: Bitext | None
    predict: Callable[[], Iterator[tuple[FlatLinks, FloatArray]]]
    gold: Sequence[Links] | None

    @cached_property
    def links(self) -> FlatLinks:
        """All links, in memory."""
        from softcount.text.links import join_links

        return join_links(links for links, _ in self.predict())


class Align(LearnerOptions, LearningCommand):
    """Find which words of sentence pairs are translations of each other.

    Prints links i-j (source word i, target word j, counted from 0): exactly one line per pair, a
    blank one if either side is empty. By default, HMM aligners for both directions are trained
    to agree. Accepts the flags of fast_align: -d -o -v -r -I -q -a -N -p.

    \b
    softcount align -i corpus.fr-en > links.txt
    softcount align -s corpus.fr -t corpus.en --symmetrize grow-diag-final-and > links.txt
    softcount align -i corpus.fr-en -d -o -v > forward.txt
    softcount align -i corpus.fr-en --dictionary known.tsv --save model.softcount --proba
    softcount align --load model.softcount new.fr-en
    """

    without = ("tol", "n_init")
    with_load = (*ENGINE_OPTIONS, "reverse")

    # sentence pairs
    file: Annotated[
        str | None,
        Argument(
            "Lines 'source ||| target', plain or .gz; - or no FILE: read stdin. Or a corpus of "
            "pairs on disk."
        ),
    ] = None
    corpus: Annotated[str | None, Input("The same as the argument FILE.", "-i", "--input")] = None
    source: SourceFile = None
    target: TargetFile = None
    lowercase: Annotated[
        bool, Input("Lower-case all words; a saved model will do so, too.", learns=True)
    ] = False
    dictionary: Annotated[
        str | None,
        KnownFile(
            "Known translations: source word, tab, target word, and optionally a tab and a weight. "
            "A listed word can have no other translations, unless --dictionary-strength is given."
        ),
    ] = None
    dictionary_strength: Annotated[
        float | None,
        Input(
            "Add this pseudo-count to each dictionary entry; other translations stay possible.",
            metavar="NUMBER",
            learns=True,
        ),
    ] = None
    links: Annotated[
        str | None,
        KnownFile("Known links, such as 0-0 2-1: one line per pair, blank if none are known."),
    ] = None

    # the model
    model: Annotated[
        str | None,
        Model(
            "ibm1, ibm2, diagonal or hmm: one direction (source words generate target words). "
            "gibbs: sample both directions, with fertilities. [default: hmm --both]",
            "-m",
            "--model",
            choices=tuple(MODELS),
        ),
    ] = None
    both: Annotated[bool, Model("Train both directions to agree (the default).")] = False
    no_agree: Annotated[bool, Model("Train both directions, independently.")] = False
    reverse: Annotated[
        bool,
        Model(
            "Train the reverse direction only: target words generate source words. Links are still "
            "printed as source-target. A saved model remembers its direction.",
            "-r",
            "--reverse",
        ),
    ] = False
    smoothing: Annotated[
        float | None,
        Model(
            "Add this to the count of every word pair; for vb and gibbs, the Dirichlet prior. "
            "[default: 0.01 for vb and gibbs, 0.0003 for both directions, 0 for one]",
            "-a",
            "--smoothing",
            "--alpha",
            least=0.0,
        ),
    ] = None
    stem: Annotated[
        int | None,
        Model(
            "Share counts between words that have the same first N letters; 0: do not share. "
            "[default: 4 for both directions, 0 for one]",
            metavar="N",
            least=0,
        ),
    ] = None
    p_null: Annotated[
        float | None,
        Model(
            "Probability of alignment to NULL. [default: hmm 0.1, diagonal 0.08, gibbs 0.2]",
            "-q",
            "--p-null",
            least=0.0,
        ),
    ] = None
    no_null: Annotated[
        bool, Model("No NULL word: align every word to some word.", "-N", "--no-null")
    ] = False
    max_jump: Annotated[
        int | None,
        Model("hmm: wider jumps are as probable as one of this width. [default: 20]", least=1),
    ] = None
    dtype: Annotated[
        str | None,
        Model(
            "float32 (seven digits, half the memory, faster) or float64. [default: float32; "
            "float64 for vb, svb and gibbs]",
            choices=("float32", "float64"),
        ),
    ] = None
    learner: Annotated[
        str | None,
        Learning(
            "em (default). hard-em: single best alignments. online-em (online): mini-batches. "
            "incremental-em. variational-bayes (vb), stochastic-vb (svb), gibbs: with a prior. "
            "monte-carlo-em (mcem): EM with sampled alignments.",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None
    max_iter: MaxIter = None
    warm_up: Annotated[
        int | None,
        Learning(
            "Initialise by this many steps of IBM Model 1. [default: 5; 0 for -m diagonal]", least=0
        ),
    ] = None

    # output
    symmetrize: Annotated[
        str | None,
        Output(
            "How to combine both directions. product (default) and soft-union: links whose "
            "geometric or arithmetic mean probability is above the threshold. intersection, union, "
            "grow-diag, grow-diag-final, grow-diag-final-and: combine the best alignments. "
            "forward, backward: the best alignment of one direction. Implies --both.",
            "--symmetrize",
            "--symmetrise",
            choices=METHODS,
            metavar="METHOD",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        Output(
            "Print links that are more probable than this. [default: 0.5 for both directions; for "
            "one, print the best alignment]",
            least=0.0,
        ),
    ] = None
    proba: Annotated[bool, Output("Print link probabilities, as i-j:p.")] = False
    output: Annotated[
        Path | None,
        OutputFile(
            "Write the links to this file instead of stdout; it appears only when complete."
        ),
    ] = None
    dictionary_out: Annotated[
        Path | None,
        OutputFile(
            "Write the learned translation table: source word, target word, probability of the "
            "target word given the source word (with -r, of the source word given the target "
            "word), tab-separated, most probable first.",
            "-p",
            "-c",
            "--dictionary-out",
        ),
    ] = None
    min_prob: Annotated[
        float,
        Output("Omit less probable entries from --dictionary-out.", least=0.0, most=1.0),
    ] = 0.01
    phrases: Annotated[
        Path | None,
        OutputFile("Write a phrase table in Moses format, extracted using the printed links."),
    ] = None
    max_phrase: Annotated[int, Output("Maximum phrase length, in words.", least=1)] = 7
    gold: Annotated[
        str | None,
        Output(
            "Evaluate against these gold links and report to stderr: 0-0 is sure, 0?0 possible. "
            "If there are fewer lines than pairs, only the first pairs are evaluated."
        ),
    ] = None
    html: Annotated[Path | None, OutputFile("Write an HTML report of the alignments.")] = None
    show: Annotated[
        int | None, Output("Show pair N (line N) as a grid, on stderr.", metavar="N", least=1)
    ] = None

    # flags of fast_align
    diagonal: Annotated[bool, FastAlign("The same as -m diagonal.", "-d")] = False
    optimise: Annotated[bool, FastAlign("No effect: the tension is always learned.", "-o")] = False
    variational: Annotated[bool, FastAlign("The same as --learner vb.", "-v")] = False
    tension: Annotated[
        float | None, FastAlign("diagonal: initial tension. [default: 4]", "-T", least=0.0)
    ] = None
    force_align: Annotated[
        str | None, FastAlign("See --load.", "-f", learns=None, hidden=True, file=PLAIN)
    ] = None

    def check(self) -> None:
        self.refuse_spectral()
        if self.force_align is not None:
            raise typer.BadParameter(
                "-f is not supported: save the model with --save FILE and align with --load FILE"
            )
        self.pairs = PairFiles.given(self.file, self.corpus, self.source, self.target)
        if self.dictionary_strength is not None and self.dictionary is None:
            raise typer.BadParameter("--dictionary-strength needs --dictionary")
        refuse_two_of_stdin("-" if self.pairs.is_stdin else None, self.dictionary)
        if self.threshold is not None and self.threshold >= 1.0:
            raise typer.BadParameter(
                f"--threshold {self.threshold:g}: must be below 1, or no link is printed"
            )
        if self.threshold is not None and self.symmetrize not in (None, *MEANS):
            names = " and ".join(MEANS)
            raise typer.BadParameter(
                f"--threshold is for {names}, it cannot be used with --symmetrize {self.symmetrize}"
            )
        if self.load is not None:
            return
        if self.diagonal or self.tension is not None:
            if self.model not in (None, "diagonal"):
                raise typer.BadParameter(
                    f"-d means -m diagonal: it cannot be used with -m {self.model}"
                )
            self.model = "diagonal"
        if self.variational:
            if self.learner not in (None, "variational-bayes"):
                raise typer.BadParameter(
                    f"-v means --learner vb: it cannot be used with --learner {self.learner}"
                )
            self.learner = "variational-bayes"
        if self.reverse and self.directions == 2:
            raise typer.BadParameter(
                "-r is for a model of one direction: name a model, such as -m hmm, without --both"
            )

    @property
    def directions(self) -> int:
        """The number of directions to train: both by default, one if a model is named."""
        wants_both = self.both or self.no_agree or self.symmetrize is not None
        return 2 if wants_both or self.model in (None, "gibbs") else 1

    # reading
    def read(self, model: AnyAligner | None) -> AlignmentInput:
        from softcount.text.links import FlatLinks, read_links

        if model is None:
            self.prepared = self._make_aligner()  # report errors before reading a large corpus
        pairs = self.pairs.read()
        if self.show is not None and self.show > len(pairs):
            raise DataError(
                f"--show {self.show}: there are {len(pairs):,} pairs",
                f"give a number from 1 to {len(pairs)}",
            )
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
                    f"--gold {self.gold}: {len(gold):,} lines of links, but {len(pairs):,} pairs",
                    "give one line per pair, or fewer lines to evaluate only the first pairs",
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
        model_settings = self._collect_model_settings(name)
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
        if name == "gibbs":  # the sampler is its own learner, with a prior and a number of sweeps
            learner = learning.pop("learner")
            if self.learner not in (None, "em"):
                raise typer.BadParameter(
                    "-m gibbs has its own learning algorithm: leave out --learner and -v"
                )
            if smoothing is not None:
                model_settings["prior"] = smoothing
            if learner is not None:
                sweeps = learner.max_iter
                model_settings |= {"max_iter": sweeps, "kept": min(2, sweeps)}
            return align.GibbsAligner(**settings, **learning, **model_settings)
        settings |= {**learning, "dtype": self.dtype or ("float64" if with_prior else "float32")}
        if smoothing is not None:
            settings["smoothing"] = smoothing
        if "stem" in model_settings:
            model_settings["stem"] = model_settings["stem"] or None
        if self.directions == 1:
            estimator = getattr(align, MODELS[name][0])
            aligner: DirectionalAligner = estimator(**settings, **model_settings)
            return aligner
        for shared in ("warm_up", "stem"):
            if shared in model_settings:
                settings[shared] = model_settings.pop(shared)
        return align.Aligner(
            name, agree=not self.no_agree, settings=model_settings or None, **settings
        )

    def _collect_model_settings(self, model: str) -> dict[str, Any]:
        """Collect the given options that only some models have; raise if this model lacks one."""
        names = ("p_null", "max_jump", "warm_up", "tension")
        options = {name: getattr(self, name) for name in names}
        options |= {"null": False if self.no_null else None, "stem": self.stem}
        settings = {name: value for name, value in options.items() if value is not None}
        for name in settings:
            supporting = [
                candidate
                for candidate, (_, declared) in MODELS.items()
                if any(parameter.name == name for parameter in describe(declared))
            ]
            # `Aligner` has a warm-up whatever its directional models are
            of_both = self.directions == 2 and name == "warm_up"
            if model not in supporting and not of_both:
                option = {"null": "no_null"}.get(name, name)
                labels = {param.name: option_name(param) for param in self.context.command.params}
                raise typer.BadParameter(
                    f"{labels[option]} is for -m {' or '.join(supporting)}, not for {model}"
                )
        return settings

    def reads_stdin(self) -> bool:
        return self.pairs.is_stdin or super().reads_stdin()

    def make_progress(self, data: AlignmentInput) -> AlignmentProgress:
        return AlignmentProgress(0, self.verbose)

    def fit(self, model: AnyAligner, data: AlignmentInput, progress: FitProgress) -> None:
        pairs = data.pairs.flipped() if self.reverse else data.pairs
        model.fit(pairs, links=data.links, **self.fit_options(progress))
        if self.verbose:
            typer.echo(f"# {model.signature_}", err=True)
        model.reversed_ = self.reverse

    def restore(self, kind: Any, stored: Stored) -> AnyAligner:
        """Restore a saved aligner; raise if it does not support the options given."""
        from softcount.align.estimators import BidirectionalAligner

        aligner: AnyAligner = kind.restore(stored, engine=self.make_engine())
        both = isinstance(aligner, BidirectionalAligner)
        if both and self.reverse:
            raise DataError(
                f"{self.load} has both directions, but -r is for a single one", "leave out -r"
            )
        if self.reverse and not aligner.reversed_:
            raise DataError(f"{self.load} was trained without -r", "leave out -r")
        if self.symmetrize is not None and not both:
            raise DataError(
                f"{self.load} has only one direction ({type(aligner).__name__}): there is nothing "
                "to symmetrise",
                "train both directions: softcount align --both --save …",
            )
        return aligner

    # answers
    def answer_stream(self, model: AnyAligner) -> bool:
        """Align pairs as they arrive, unless some output needs all of them at once."""
        needs_all = (self.phrases, self.html, self.show, self.gold)
        if any(option is not None for option in needs_all) or self.pairs.joint is None:
            return False

        def write_links() -> None:
            with open_output(self.output) as out:
                for pairs in self.pairs.stream():
                    self._write(self._find_links(model, pairs), out)

        try_all(
            write_links, if_given(self.dictionary_out, lambda path: self._write_table(path, model))
        )
        return True

    def answer(self, model: AnyAligner, data: AlignmentInput) -> AlignmentResult:
        pairs = None if self.load is None else data.pairs
        return AlignmentResult(model, pairs, partial(self._find_links, model, pairs), data.gold)

    def _find_links(
        self, aligner: AnyAligner, pairs: Bitext | None
    ) -> Iterator[tuple[FlatLinks, FloatArray]]:
        """Yield the (source, target) links of pairs, and their probabilities if requested.

        ``pairs``  None: the training pairs
        """
        options: dict[str, Any] = {"probabilities": self.proba, "threshold": self.threshold}
        if self.symmetrize is not None:
            options["method"] = self.symmetrize
        for links, values in aligner.links_in_parts(_orient_pairs(aligner, pairs), **options):
            yield links.flipped(values) if aligner.reversed_ else (links, values)

    def print_results(self, found: AlignmentResult) -> None:
        def print_links() -> None:
            with open_output(self.output) as out:
                self._write(found.predict(), out)

        print_links()

    def _write(self, parts: Iterable[tuple[FlatLinks, FloatArray]], out: BinaryIO) -> None:
        for links, values in parts:
            out.write(links.text(values if self.proba else None))
            out.flush()

    def describe_data(self, data: AlignmentInput) -> list[str]:
        from softcount.text.sequences import count_noun

        n_words = len(data.pairs.source.tokens) + len(data.pairs.target.tokens)
        return [count_noun(len(data.pairs), "pair"), count_noun(n_words, "word")]

    def describe_fit(self, model: AnyAligner) -> list[str]:
        return describe_alignment_fit(model)

    def page(self, found: AlignmentResult) -> str:
        """Render the HTML report, with the pairs in the direction of the aligner."""
        from softcount.align.report import alignment_report
        from softcount.text.links import Links

        gold = found.gold
        if found.aligner.reversed_ and gold is not None:
            gold = [
                Links([(j, i) for i, j in links.sure], [(j, i) for i, j in links.possible])
                for links in gold
            ]
        return alignment_report(found.aligner, _get_aligner_pairs(found), gold=gold)

    def files(self, found: Callable[[], AlignmentResult]) -> Iterator[Action]:
        def write_phrases(path: Path) -> None:
            from softcount.align.phrases import phrase_table

            pairs = _orient_pairs(found().aligner, _get_aligner_pairs(found()))
            _write_lines(path, phrase_table(pairs, found().links, self.max_phrase).lines())

        def show(number: int) -> None:
            from softcount.align.report import alignment_view

            aligner, pairs = found().aligner, _get_aligner_pairs(found())
            (p,) = aligner.posteriors(pairs.select([number - 1]))
            source, target = _orient_pairs(aligner, pairs).pair(number - 1)
            links = found().links.lists()[number - 1]
            posterior = p.T if aligner.reversed_ else p
            typer.echo(alignment_view(source, target, posterior, links), err=True)

        def print_scores(_: str) -> None:
            from softcount.metrics import align_scores

            gold = found().gold or ()
            scores = align_scores(found().links.lists()[: len(gold)], gold)
            typer.echo(f"{scores} in {len(gold):,} pair{'s' * (len(gold) != 1)}", err=True)

        yield if_given(self.dictionary_out, lambda path: self._write_table(path, found().aligner))
        yield if_given(self.phrases, write_phrases)
        yield if_given(self.show, show)
        yield if_given(self.gold, print_scores)

    def _write_table(self, path: Path, aligner: AnyAligner) -> None:
        """Write source word, target word and probability, most probable first for each word.

        Only the forward table is written, without the row of the empty word (NULL).
        """
        import numpy as np

        def generate_lines() -> Iterator[str]:
            forward: Any = getattr(aligner, "forward_", aligner)
            table, targets = forward.table(), forward.target_words_
            for word, (a, b) in zip(forward.source_words_, pairwise(table.indptr), strict=False):
                p, columns = table.data[a:b], table.indices[a:b]
                for k in np.argsort(-p, kind="stable")[: np.count_nonzero(p >= self.min_prob)]:
                    words = word, targets[columns[k]]
                    source, target = reversed(words) if aligner.reversed_ else words
                    yield f"{source}\t{target}\t{p[k]:.6g}"

        _write_lines(path, generate_lines())


def _orient_pairs(aligner: AnyAligner, pairs: Any) -> Any:
    """Exchange source and target if the aligner was trained with -r; its own inverse."""
    return pairs.flipped() if aligner.reversed_ and pairs is not None else pairs


def _get_aligner_pairs(found: AlignmentResult) -> Bitext:
    """Return the pairs as the aligner sees them: in its direction and its letter case."""
    pairs: Bitext = found.aligner._shards(_orient_pairs(found.aligner, found.pairs))[0]
    return pairs


def make_aligner_learner(options: LearnerOptions) -> Any:
    """Make the learner that the options name; None: use the aligners' default."""
    if options.learner is None and options.max_iter is None:
        return None
    from softcount.align.core import AlignmentCore

    more: dict[str, Any] = {}
    if options.max_iter is None and options.learner != "gibbs":
        more["max_iter"] = AlignmentCore.default_learner.max_iter
    return options.make_learner(**more)


def describe_alignment_fit(aligner: AnyAligner) -> list[str]:
    """Describe how learning went for the line at the end."""
    from softcount.text.sequences import count_noun

    said, last = [count_noun(int(aligner.n_iter_), "step")], aligner.trace_[-1]
    if math.isfinite(last.perplexity):  # a sampler has no likelihood
        said.append(f"perplexity {last.perplexity:,.2f}")
    return said


class AlignmentProgress(FitProgress):
    """Training progress: one line rewritten in place in a terminal, or one line per step."""

    def figures(self, state: State) -> list[str]:
        return [f"perplexity {state.perplexity:,.3f}", f"entropy {state.entropy:.3f} bits"]

    def line(self, state: State) -> str:
        figures = f"perplexity {state.perplexity:,.3f}   entropy {state.entropy:.3f} bits"
        most = f" of {self.pace.most}" if self.pace.most else ""
        return f"step {state.step:>3}{most}   {figures}   {state.seconds:.2f} s"


FORM = "write: source word, tab, target word, and optionally a tab and a weight above 0"


def read_dictionary(path: str, lowercase: bool) -> dict[str, Any]:
    """Read a bilingual dictionary, in the form that aligners accept.

    Multi-word entries are skipped, and their number is reported on stderr.
    """
    entries: dict[str, dict[str, float | None]] = {}
    n_multiword = 0
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        words = [field.strip() for field in line.split("\t")]
        if len(words) not in (2, 3) or not all(words):
            raise DataError(f"{where}: {brief(line)} is not a valid dictionary entry", FORM)
        source, target = (word.lower() if lowercase else word for word in words[:2])
        weight = None
        if len(words) == 3:
            try:
                weight = float(words[2])
            except ValueError:
                weight = math.nan
            if not 0.0 < weight < math.inf:
                raise DataError(f"{where}: {brief(words[2])} is not a valid weight", FORM)
        if len(source.split()) > 1 or len(target.split()) > 1:
            n_multiword += 1
            continue
        known = entries.setdefault(source, {})
        if known.get(target, weight) != weight:
            raise DataError(
                f"{where}: {source} – {target} already has another weight",
                "keep only one of the entries",
            )
        if known and (None in known.values()) != (weight is None):
            raise DataError(
                f"{where}: some translations of {brief(source)} have a weight and some do not",
                "give a weight to all translations of a word, or to none",
            )
        known[target] = weight
    if n_multiword:
        what = "entry" if n_multiword == 1 else "entries"
        typer.echo(f"softcount: {path}: skipped {n_multiword:,} multi-word {what}", err=True)
    if not entries:
        raise DataError(f"{path}: no single-word entries", FORM)
    return {
        word: list(known) if None in known.values() else known for word, known in entries.items()
    }


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file that appears only when it is complete; None: standard output."""
    if path is None:
        yield typer.get_binary_stream("stdout")
        return
    try:
        with open_whole(path) as file:
            yield file
    except OSError as error:
        raise SoftcountError(
            f"{path}: cannot be written: {error.strerror}",
            "check the permissions and the free disk space",
        ) from error


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with open_output(path) as file:
        for line in lines:
            file.write(f"{line}\n".encode())
