"""Mixtures behind the commands: learning with a line of progress, and models from files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softcount.cli.progress import Progress
from softcount.errors import LearnerError, StoreError

if TYPE_CHECKING:  # scikit-learn comes with mixtures, and aligners do without
    from softcount import store
    from softcount.align.bidirectional import TwoWays
    from softcount.align.estimators import OneWay
    from softcount.annotators import Annotators
    from softcount.grammar import PCFG
    from softcount.hmm import HMM
    from softcount.labels.propagation import LabelPropagation
    from softcount.mixture.base import Clusterer, Mixture
    from softcount.mixture.naive_bayes import NaiveBayes
    from softcount.senses import SenseInducer
    from softcount.topics.estimators import TopicModel
    from softcount.translate import Translator

CLUSTER, CLASSIFY, SENSES = "softcount cluster", "softcount classify", "softcount senses"
TOPICS, SIMILAR = "softcount topics", "softcount similar"
ALIGN, TRANSLATE = "softcount align", "softcount translate"
TAG, PARSE = "softcount tag", "softcount parse"
ANNOTATORS, PROPAGATE = "softcount annotators", "softcount propagate"
COMMANDS = {
    "Annotators": ANNOTATORS,
    "LabelPropagation": PROPAGATE,
    "SenseInducer": SENSES,
    **dict.fromkeys(("LDA", "PLSA"), TOPICS),
    **dict.fromkeys(("Aligner", "GibbsAligner"), ALIGN),
    **dict.fromkeys(("IBM1", "IBM2", "Diagonal", "HMMAligner"), ALIGN),
    "Translator": TRANSLATE,
    "HMM": TAG,
    "PCFG": PARSE,
}
"""Which command uses models of which kind; of mixtures see `_command_for`."""


def is_of_words(model: Mixture) -> bool:
    """Whether its items are documents, and not points."""
    from softcount.mixture.documents import WordMixture

    return isinstance(model, WordMixture)


def learn(
    model: Any, items: Any, y: Any = None, against_collapse: str = "", **options: Any
) -> None:
    """Fit a model, with a line of progress; what it warns of is said in words of the command."""
    from softcount.mixture import CollapseWarning

    progress = Progress(len(items))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CollapseWarning)
            model.fit(items, y, on_step=progress, **options)
    finally:
        progress.end()
    for warning in caught:
        _say(warning, against_collapse)


def _say(warning: warnings.WarningMessage, against_collapse: str) -> None:
    from softcount.mixture import CollapseWarning

    text = str(warning.message)
    if issubclass(warning.category, CollapseWarning):  # its advice is for users of Python
        text = f"{text.partition(' Try ')[0]}\n  hint: {against_collapse}"
    typer.echo(f"softcount: warning: {text}", err=True)


def load_clusterer(path: Path) -> Clusterer:
    """The model in a file, if it sorts into classes."""
    from softcount import mixture

    stored = _stored(path, CLUSTER)
    model: Clusterer = getattr(mixture, stored.kind).restore(stored)
    return model


def load_classifier(path: Path) -> NaiveBayes:
    """The model in a file, if it gives labels."""
    from softcount import mixture

    stored = _stored(path, CLASSIFY)
    model: NaiveBayes = getattr(mixture, stored.kind).restore(stored)
    return model


def load_annotators(path: Path) -> Annotators:
    """The model in a file, if it knows annotators."""
    from softcount.annotators import Annotators

    return Annotators.restore(_stored(path, ANNOTATORS))


def load_inducer(path: Path) -> SenseInducer:
    """The model in a file, if it tells senses apart."""
    from softcount.senses import SenseInducer

    return SenseInducer.restore(_stored(path, SENSES))


def load_propagation(path: Path, threads: int | None) -> LabelPropagation:
    """The model in a file, if it spreads labels."""
    from softcount.labels.propagation import LabelPropagation

    return LabelPropagation.restore(_stored(path, PROPAGATE), n_jobs=threads)


def load_topics(path: Path, command: str = TOPICS) -> TopicModel:
    """The model in a file, if it has topics; ``command`` is who asks."""
    from softcount import topics

    stored = _stored(path, command)
    model: TopicModel = getattr(topics, stored.kind).restore(stored)
    return model


def load_aligner(path: Path, threads: int | None) -> TwoWays | OneWay:
    """The model in a file, if it aligns words."""
    from softcount import align as alignment
    from softcount.engines import Local

    stored = _stored(path, ALIGN)
    kind = getattr(alignment, stored.kind)
    model: TwoWays | OneWay = kind.restore(stored, engine=Local(threads))
    return model


def load_translator(path: Path) -> Translator:
    """The model in a file, if it translates."""
    from softcount.translate import Translator

    return Translator.restore(_stored(path, TRANSLATE))


def load_tagger(path: Path, threads: int | None) -> HMM:
    """The model in a file, if it tags words."""
    from softcount.engines import Local
    from softcount.hmm import HMM

    return HMM.restore(_stored(path, TAG), engine=Local(threads))


def load_grammar(path: Path, threads: int | None, prune: float = 0.0) -> PCFG:
    """The model in a file, if it parses sentences."""
    from softcount.engines import Local
    from softcount.grammar import PCFG

    given = {"prune": prune} if prune else {}  # if not, it is as the model has it
    model = PCFG.restore(_stored(path, PARSE), engine=Local(threads), **given)
    if prune and model.rules is None:
        raise LearnerError(
            f"--prune {prune:g}: nothing is left out of a dense grammar, as {path} has one",
            "leave out --prune",
        )
    return model


def _stored(path: Path, command: str) -> store.Stored:
    """What a file holds, if this command can use it."""
    from softcount import store  # safetensors come with it

    stored = store.read(path)
    theirs = _command_for(stored.kind)
    if theirs != (TOPICS if command == SIMILAR else command):
        raise StoreError(
            f"{path} has a model of kind {stored.kind}, which {command} cannot use",
            _advice(theirs, path),
        )
    return stored


def _advice(command: str | None, path: Path) -> str:
    if command is None:
        return "use it in Python: softcount.load"
    return f"try {command} {path}" if command == PARSE else f"try {command} --load {path}"


def _command_for(kind: str) -> str | None:
    """The command that uses models of this kind; None if there is none."""
    if kind in COMMANDS:
        return COMMANDS[kind]
    from softcount import mixture
    from softcount.mixture import NaiveBayes

    if kind not in mixture.__all__:
        return None
    return CLASSIFY if issubclass(getattr(mixture, kind), NaiveBayes) else CLUSTER
