"""Induced senses in files: the mixture, and how contexts become what it sees."""

from __future__ import annotations

from os import PathLike
from typing import Any

from softcount import store
from softcount.corpus.space import SemanticSpace
from softcount.errors import SoftcountError, StoreError
from softcount.models.files import content, plain_settings
from softcount.models.mixture import GaussianMixture, MultinomialMixture
from softcount.models.senses.findings import Sense
from softcount.models.stored import AGAIN, numbers, strings

MIXTURE, IDF, AXES = "mixture.", "space.idf", "space.axes"


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model."""
    mixture = content(model.mixture_, *model.mixture_.stored())
    arrays = {MIXTURE + name: array for name, array in mixture.arrays.items()}
    if model.space_ is not None:
        arrays |= {IDF: model.space_.idf, AXES: model.space_.axes}
    meta = {
        "settings": plain_settings(model),
        "forms": None if model.forms_ is None else sorted(model.forms_),
        "vocabulary": model.vocabulary_.tolist(),
        "senses": [[s.number, s.share, s.words, s.examples] for s in model.senses_],
        "mixture": mixture.meta,
    }
    store.write(path, type(model).__name__, arrays, meta, model.signature_)


def restore(cls: Any, stored: store.Stored, given: dict[str, Any]) -> Any:
    """A model from a file: whatever is wrong with the file, the answer is a `StoreError`."""
    try:
        return _restored(cls, stored, given)
    except StoreError:
        raise
    except (SoftcountError, LookupError, TypeError, ArithmeticError, ValueError) as error:
        raise StoreError(
            f"the file does not describe a {cls.__name__}: {getattr(error, 'message', error)}",
            AGAIN,
        ) from error


def _restored(cls: Any, stored: store.Stored, given: dict[str, Any]) -> Any:
    meta = stored.meta
    model = cls(**{**meta["settings"], **given})
    model._check_settings()
    vocabulary = strings(meta["vocabulary"], len(meta["vocabulary"]), "words")
    forms = meta["forms"]
    model.vocabulary_ = vocabulary
    model.forms_ = None if forms is None else frozenset(strings(forms, len(forms), "forms"))  # type: ignore[arg-type]
    model.space_ = None if model.svd is None else _space(stored, len(meta["vocabulary"]))
    model.mixture_ = _mixture(stored, model.svd is not None)
    seen = len(meta["vocabulary"]) if model.space_ is None else len(model.space_.axes)
    if model.mixture_.n_features_in_ != seen or model.mixture_.n_components != model.n_components:
        raise StoreError("the mixture in the file is of other contexts", AGAIN)
    model.senses_ = [_sense(*row) for row in meta["senses"]]
    return model


def _space(stored: store.Stored, n_words: int) -> SemanticSpace:
    return SemanticSpace(numbers(stored, IDF, (n_words,)), numbers(stored, AXES, (None, n_words)))


def _mixture(stored: store.Stored, of_points: bool) -> Any:
    kind = GaussianMixture if of_points else MultinomialMixture
    arrays = {
        name.removeprefix(MIXTURE): array
        for name, array in stored.arrays.items()
        if name.startswith(MIXTURE)
    }
    return kind.restore(
        store.Stored(kind.__name__, arrays, stored.meta["mixture"], stored.signature)
    )


def _sense(number: Any, share: Any, words: Any, examples: Any) -> Sense:
    marks = tuple((str(name), float(part)) for name, part in words)
    return Sense(int(number), float(share), marks, tuple(map(str, examples)))
