"""``softcount align``."""

from __future__ import annotations

from pathlib import Path

import typer

from softcount.cli import align_options as o
from softcount.cli import options
from softcount.cli.align_answers import Decoding, Wanted, opened
from softcount.cli.align_knowledge import exchanged, read_dictionary, read_known
from softcount.cli.align_learning import Choice, dtype_for, learn, learner_for, prior_for
from softcount.cli.conflicts import refuse_spectral, refuse_two_of_stdin, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName
from softcount.cli.pairs import PairFiles

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
    file: o.File = None,
    corpus: o.Input = None,
    source: o.Source = None,
    target: o.Target = None,
    lowercase: o.Lowercase = False,
    model: o.Model = None,
    both: o.Both = False,
    no_agree: o.NoAgree = False,
    reverse: o.Reverse = False,
    learner: o.Learner = None,
    max_iter: o.MaxIter = None,
    smoothing: o.Smoothing = None,
    stem: o.Stem = None,
    precision: o.Precision_ = None,
    warm_up: o.WarmUp = None,
    p_null: o.PNull = None,
    no_null: o.NoNull = False,
    max_jump: o.MaxJump = None,
    dictionary: o.DictionaryIn = None,
    dictionary_strength: o.Strength = None,
    links: o.KnownLinks = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    symmetrize: o.Symmetrize = None,
    threshold: o.Threshold = None,
    probs: o.Probs = False,
    output: o.Output = None,
    save: options.Save = None,
    load: options.Load = None,
    dictionary_out: o.DictionaryOut = None,
    min_prob: o.MinProb = 0.01,
    phrases: o.PhrasesOut = None,
    max_phrase: o.MaxPhrase = 7,
    gold: o.Gold = None,
    report: o.Report = None,
    show: o.Show = None,
    verbose: o.Verbose = False,
    diagonal: o.Diagonal = False,
    optimise: o.Optimise = False,
    variational: o.Variational = False,
    tension: o.Tension = None,
    force_align: o.ForceAlign = None,
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


def _model(named: o.ModelName | None, diagonal: bool) -> o.ModelName | None:
    if diagonal and named not in (None, o.ModelName.DIAGONAL):
        raise typer.BadParameter(f"-d is -m diagonal: it does not go with -m {named}")
    return o.ModelName.DIAGONAL if diagonal else named


def _learner(named: LearnerName | None, variational: bool) -> LearnerName | None:
    if variational and named not in (None, LearnerName.VARIATIONAL_BAYES):
        raise typer.BadParameter(f"-v is --learner vb: it does not go with --learner {named}")
    return LearnerName.VARIATIONAL_BAYES if variational else named


def _refuse_threshold(method: o.Method | None, threshold: float | None) -> None:
    if threshold is None:
        return
    if threshold >= 1.0:
        raise typer.BadParameter(f"--threshold {threshold:g}: no link is that probable; below 1")
    if method not in (None, *o.BY_POSTERIORS):
        names = " and ".join(o.BY_POSTERIORS)
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
