"""Mixtures behind the commands: learning with a line of progress, and models from files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import typer

from softcount.cli.progress import Progress
from softcount.errors import StoreError
from softcount.models.mixture.base import Clusterer, Mixture
from softcount.models.mixture.naive_bayes import CollapseWarning, NaiveBayes
from softcount.models.mixture.words import WordMixture
from softcount.store import load

AGAINST_COLLAPSE = (
    "try a smaller --smoothing, --length 100, a smaller --unlabelled-weight, or "
    "--unlabelled-weight cv"
)


def is_of_words(model: Mixture) -> bool:
    """Whether its items are documents, and not points."""
    return isinstance(model, WordMixture)


def learn(model: Any, items: Any, labels: Any = None) -> None:
    """Fit a model, with a line of progress; what it warns of is said in plain words."""
    progress = Progress(len(items))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CollapseWarning)
            model.fit(items, labels, on_step=progress)
    finally:
        progress.end()
    for warning in caught:
        _say(warning)


def _say(warning: warnings.WarningMessage) -> None:
    text = str(warning.message)
    if issubclass(warning.category, CollapseWarning):  # its advice is for users of Python
        text = f"{text.partition(' Try ')[0]}\n  hint: {AGAINST_COLLAPSE}"
    typer.echo(f"softcount: warning: {text}", err=True)


def load_clusterer(path: Path) -> Clusterer:
    """The model in a file, if it sorts into classes."""
    model: Clusterer = _loaded(path, Clusterer, "softcount cluster --save")
    return model


def load_classifier(path: Path) -> NaiveBayes:
    """The model in a file, if it gives labels."""
    model: NaiveBayes = _loaded(path, NaiveBayes, "softcount classify --save")
    return model


def _loaded(path: Path, kind: type[Any], command: str) -> Any:
    model = load(path)
    if not isinstance(model, kind):
        raise StoreError(
            f"{path} holds a {type(model).__name__}, which this command cannot use",
            f"give a file that {command} wrote",
        )
    return model
