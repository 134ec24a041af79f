"""The ``softcount translate`` command."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.align.command import (
    MODELS,
    AlignmentProgress,
    MaxIter,
    SourceFile,
    TargetFile,
    describe_alignment_fit,
    make_aligner_learner,
)
from softcount.cli.frame import LearningCommand, if_given, try_all
from softcount.cli.options import Argument, Input, LearnerOptions, Model, Output
from softcount.cli.reading import PairFiles, read_lines
from softcount.core.errors import DataError
from softcount.translate.parameters import SearchSettings

if TYPE_CHECKING:
    from softcount.translate import Translator


class Translate(LearnerOptions, LearningCommand):
    """Translate sentences by what was learned from sentence pairs.

    Translates from the pairs' source language into their target language, one line of output
    per line of input. The best translation Y of a sentence X maximises P(X | Y) P(Y), the noisy
    channel: faithful word by word, and fluent. Suited to short sentences like the training pairs.

    \b
    softcount translate --pairs corpus.fr-en french.txt > english.txt
    softcount translate --pairs corpus.fr-en --reverse --explain english.txt
    softcount translate --pairs corpus.fr-en --lowercase --save model.softcount
    softcount translate --load model.softcount --lowercase < french.txt
    """

    without = ("learner", "tol", "n_init", "html")
    declared = SearchSettings
    takes = MappingProxyType({"beam": (), "reorder": ()})

    file: Annotated[
        str | None,
        Argument(
            "Sentences to translate, one per line, plain or .gz; -: stdin. Without FILE, stdin is "
            "read unless --save is given."
        ),
    ] = None
    pairs: Annotated[
        str | None,
        Input("Train on lines 'source ||| target', plain or .gz.", learns=True),
    ] = None
    source: SourceFile = None
    target: TargetFile = None
    reverse: Annotated[
        bool,
        Input("Translate from the pairs' target language into their source language.", learns=True),
    ] = False
    lowercase: Annotated[bool, Input("Lower-case pairs and sentences.")] = False
    model: Annotated[
        str,
        Model(
            "Alignment model: ibm1, ibm2, diagonal or hmm, trained in both directions.",
            "-m",
            "--model",
            choices=tuple(MODELS),
        ),
    ] = "hmm"
    order: Annotated[int, Model("Order n of the n-gram language model.", least=1)] = 3
    max_iter: MaxIter = None
    n_best: Annotated[
        int | None,
        Output(
            "Print the N best translations of each line: line number (from 0) ||| translation ||| "
            "log score.",
            metavar="N",
            least=1,
        ),
    ] = None
    explain: Annotated[
        bool, Output("Show how the channel and the language model score each line.")
    ] = False

    def check(self) -> None:
        if self.load is None and self.pairs is None and self.source is None:
            raise typer.BadParameter(
                "nothing to learn from: give --pairs FILE, -s and -t, or --load FILE"
            )
        if self.file is None and self.save is None:
            self.file = "-"
        if self.explain and self.n_best is not None:
            raise typer.BadParameter("--explain cannot be used with --n-best: choose one")

    def run(self) -> None:
        if self.load is not None:
            if self.source is not None or self.target is not None:
                self.refuse("--load", ("source", "target"), "its model is already trained")
            translator = self.load_model(self.load)
        else:
            translator = self._learn_translator()

        def print_translations(path: str) -> None:
            number = 0
            for number, line in read_lines(path):
                sentence = line.lower() if self.lowercase else line
                self._print(translator, sentence, number - 1)
            self.notes.append(f"{number:,} lines translated")

        try_all(if_given(self.save, translator.save), if_given(self.file, print_translations))

    def _learn_translator(self) -> Translator:
        """Train a translator into the source language of the pairs, flipped unless --reverse.

        The aligner is the channel: it models how sources generate targets.
        """
        from softcount.align import Aligner
        from softcount.translate import Translator
        from softcount.translate.language_model import END, START, LanguageModel

        corpus = PairFiles.given(None, self.pairs, self.source, self.target).read(self.lowercase)
        pairs = corpus if self.reverse else corpus.flipped()
        side = pairs.source
        for word in {START, END}.intersection(side.words):  # check before the lengthy training
            first = int((side.tokens == side.words.index(word)).argmax())
            n = int(side.indptr.searchsorted(first, side="right")) - 1
            raise DataError(
                f"{pairs.name(n)} contains {word}",
                "remove it: the language model adds sentence boundaries itself",
            )
        settings: dict[str, Any] = self.learning(make_aligner_learner(self))
        aligner = Aligner(self.model, **settings)
        with AlignmentProgress(0, self.verbose) as progress:
            aligner.fit(pairs, **self.fit_options(progress))
        self.notes += [f"{len(pairs):,} pairs", *describe_alignment_fit(aligner)]
        if self.verbose:
            typer.echo(f"# {aligner.signature_}", err=True)
        non_empty = [n for n, length in enumerate(side.lengths.tolist()) if length]
        language = LanguageModel(self.order).fit([side.sentence(n) for n in non_empty])
        return Translator(aligner.forward_, language, **self.settings())

    def _print(self, translator: Translator, sentence: str, number: int) -> None:
        if self.explain:
            typer.echo(f"{translator.explain(sentence)}\n")
        elif self.n_best is None:
            typer.echo(str(translator.translate(sentence)))
        else:
            for translation in translator.n_best(sentence, self.n_best):
                typer.echo(f"{number} ||| {translation} ||| {translation.score:.4f}")
