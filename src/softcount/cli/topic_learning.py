"""Topic models made as the command line says, and learned from documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcount.cli import models
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.texts import WordFilter, word_counter
from softcount.cli.topic_answers import Told
from softcount.cli.topic_documents import Documents, OnDisk
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.learners import Learner
    from softcount.models.topics.model import TopicModel
    from softcount.types import Array

FEW = 5
"""How many words a remark names before it only counts the rest."""


def learner_for(
    name: LearnerName | None,
    max_iter: int | None,
    tol: float | None,
    n_init: int | None,
    optimise: int | None,
) -> Learner:
    """The learner with the dials that were given; if none is named, what topic models prefer."""
    from softcount.models.topics.core import TopicCore

    if name is None and tol is None:
        tol = TopicCore.usual_dials["tol"]
    return learner_called(name or LearnerName.EM, max_iter, tol, n_init, optimise=optimise)


def counter_of(documents: Documents, tokens: bool, wanted: WordFilter) -> Any:
    """What counts the documents' words; None if they were counted in Python."""
    if isinstance(documents, OnDisk):
        return documents.items.vectorizer()
    return word_counter(documents.items, tokens, wanted)


def cut_by(counter: Any) -> Callable[[str], list[str]]:
    """What cuts a text into words."""
    if counter is None:
        return str.split
    cut: Callable[[str], list[str]] = counter.build_analyzer()
    return cut


def frozen_rows(path: Path | None, documents: Documents, counter: Any, k: int) -> Array | None:
    """The topics of the model in a file, in terms of the words of these documents."""
    if path is None:
        return None
    import numpy as np

    model = models.load_topics(path)
    if model.n_topics >= k:
        raise DataError(
            f"--freeze {path} has {model.n_topics} topics: with -k {k} there is nothing to learn",
            f"ask for more: -k {model.n_topics + 1} or above",
        )
    columns = {word: column for column, word in enumerate(_words(documents, counter))}
    rows = np.zeros((model.n_topics, len(columns)))
    for word, chances in zip(model.word_names().tolist(), model.topics_.T, strict=True):
        if word in columns:
            rows[:, columns[word]] = chances
    if not rows.any(axis=1).all():
        raise DataError(
            f"--freeze {path}: topic {int(rows.any(axis=1).argmin())} has none of the words of "
            f"{documents.called}",
            "freeze a model of similar documents, cut into words the same way",
        )
    return rows


def _words(documents: Documents, counter: Any) -> list[Any]:
    """The words that a model of these documents will have, in the order of its columns."""
    from softcount.corpus.texts import learn_words, vocabulary_of

    if isinstance(documents, OnDisk):
        names = documents.items.vocabulary
        return list(range(documents.items.n_words)) if names is None else names.tolist()
    learn_words(counter, documents.items)
    words: list[Any] = vocabulary_of(counter).tolist()
    return words


def learned(
    kind: str,
    documents: Documents,
    labels: Any,
    dates: Sequence[str | None] | None,
    settings: Mapping[str, Any],
) -> Told:
    """A model of this kind and what it says of the documents; settings may be None: as usual."""
    from softcount.models.topics import LDA, PLSA

    given = {name: value for name, value in settings.items() if value is not None}
    model: TopicModel = {"lda": LDA, "plsa": PLSA}[kind](**given)
    models.learn(model, documents.items, labels=labels)
    # folded in, as a saved model will answer when it is asked again
    return Told(model, documents, model.fold_learned(), documents.lengths(model), dates)


def unused(model: TopicModel, seeds: Mapping[int, Sequence[str]] | None) -> list[str]:
    """A remark on seed words that no document has."""
    known = set(model.word_names().tolist())
    strange = sorted({word for words in (seeds or {}).values() for word in words} - known)
    if not strange:
        return []
    more = f" and {len(strange) - FEW:,} more" if len(strange) > FEW else ""
    return [
        f"no document has the seed word{'s' * (len(strange) > 1)} {', '.join(strange[:FEW])}{more}"
    ]
