"""``softcount translate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from softcount.align import command as o
from softcount.align.command import learn, learner_for
from softcount.cli import options
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_two_of_stdin, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.lines import numbered
from softcount.cli.pairs import PairFiles
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.align import Aligner
    from softcount.corpus.bitext import Bitext
    from softcount.translate import Translator

LEARNING_OPTIONS = (
    *("pairs", "source", "target", "reverse", "model", "max_iter", "order", "beam", "reorder"),
    *("seed", "threads", "save", "verbose"),
)


def translate(
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="Sentences to translate, one a line; .gz too; - is stdin, and so is no FILE at "
            "all, unless there is --save.",
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Learn from lines 'source ||| target'; .gz too."),
    ] = None,
    source: o.Source = None,
    target: o.Target = None,
    reverse: Annotated[
        bool,
        typer.Option(
            "--reverse", help="From the target language of the pairs into their source language."
        ),
    ] = False,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Put pairs and sentences in lower case.")
    ] = False,
    model: Annotated[
        o.ModelName,
        typer.Option(
            "-m",
            "--model",
            metavar="NAME",
            parser=one_of(o.ModelName),
            help="How words are aligned: ibm1, ibm2, diagonal or hmm, in both directions.",
        ),
    ] = o.ModelName.HMM,
    max_iter: o.MaxIter = None,
    order: Annotated[
        int, typer.Option(min=1, help="The language model looks at so many words at a time.")
    ] = 3,
    beam: Annotated[
        int, typer.Option(min=1, help="So many partial translations are gone on with.")
    ] = 100,
    reorder: Annotated[
        int, typer.Option(min=0, help="A word may be read so many places before its turn.")
    ] = 3,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    n_best: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Print the N best of each line: line (from 0) ||| translation ||| log score.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print what either model has to say of each line.")
    ] = False,
    save: options.Save = None,
    load: options.Load = None,
    verbose: o.Verbose = False,
) -> None:
    """Translate sentences by what was learned from sentence pairs.

    From the pairs' source language into their target language: exactly one line for each line.
    The best translation Y of a sentence X has the highest P(X | Y) P(Y): word by word a good
    account of X, and good language. Made for short sentences like those of the pairs.

    \b
    softcount translate --pairs corpus.fr-en french.txt > english.txt
    softcount translate --pairs corpus.fr-en --reverse --explain english.txt
    softcount translate --pairs corpus.fr-en --lowercase --save model.softcount
    softcount translate --load model.softcount --lowercase < french.txt
    """
    lines = file if file is not None or save is not None else "-"
    if load is not None:
        refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
    elif pairs is None and source is None:
        raise typer.BadParameter("nothing to learn from: give --pairs FILE, -s and -t, or --load")
    refuse_two_of_stdin(lines, pairs)
    if explain and n_best is not None:
        raise typer.BadParameter("--explain and --n-best: choose one")
    with readable_errors():
        if load is not None:
            from softcount.cli.models import load_translator

            translator = load_translator(load)
        else:
            text = PairFiles.given(None, pairs, source, target).read(lowercase)
            aligner = _aligner(model, max_iter, threads, seed)
            translator = _learned(
                aligner, text if reverse else text.flipped(), order, beam, reorder, verbose
            )

        def tell(path: str) -> None:
            for number, line in numbered(path):
                sentence = line.lower() if lowercase else line
                _print(translator, sentence, number - 1, n_best, explain)

        try_all(at(save, translator.save), at(lines, tell))


def _aligner(model: o.ModelName, max_iter: int | None, threads: int | None, seed: int) -> Aligner:
    from softcount.align import Aligner
    from softcount.engines import Local

    learner, engine = learner_for(None, max_iter), Local(threads)
    return Aligner(model.value, learner=learner, engine=engine, random_state=seed)


def _learned(
    aligner: Aligner, pairs: Bitext, order: int, beam: int, reorder: int, verbose: bool
) -> Translator:
    """A translator into the source language of pairs: how their targets come about is learned."""
    from softcount.translate import Translator
    from softcount.translate.language_model import LanguageModel

    _refuse_marks(pairs)
    learn(aligner, pairs, verbose=verbose)
    full = [n for n, length in enumerate(pairs.source.lengths.tolist()) if length]
    language = LanguageModel(order).fit([pairs.source.sentence(n) for n in full])
    return Translator(aligner.forward_, language, beam=beam, reorder=reorder)


def _refuse_marks(pairs: Bitext) -> None:
    """Complain, before learning, of words that a language model has a use of its own for."""
    from softcount.translate.language_model import END, START

    side = pairs.source
    for word in {START, END}.intersection(side.words):
        first = int((side.tokens == side.words.index(word)).argmax())
        n = int(side.indptr.searchsorted(first, side="right")) - 1
        raise DataError(
            f"{pairs.name(n)} contains {word}", "leave it out: the language model puts it there"
        )


def _print(
    translator: Translator, sentence: str, number: int, n_best: int | None, explain: bool
) -> None:
    if explain:
        typer.echo(f"{translator.explain(sentence)}\n")
    elif n_best is None:
        typer.echo(str(translator.translate(sentence)))
    else:
        for one in translator.n_best(sentence, n_best):
            typer.echo(f"{number} ||| {one} ||| {one.score:.4f}")
