"""Hidden Markov models made as the command line says, and learned from sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.progress import Progress
from softcount.errors import DataError, ImpossibleItem, shown

if TYPE_CHECKING:
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.tagged import Tagged
    from softcount.learners import Learner
    from softcount.models.sequences import HMM

WITH_PRIOR = (
    LearnerName.VARIATIONAL_BAYES,
    LearnerName.STOCHASTIC_VB,
    LearnerName.GIBBS,
    LearnerName.COLLAPSED_GIBBS,
)
USUAL_PRIOR = 0.1
"""The prior of learners that need one, if no other is given."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """What is learned from: sentences without tags, and sentences with tags; one of them at least.

    Both together are one corpus, those without tags first.
    """

    plain: Sequences | None
    known: Tagged | None

    def joined(self) -> Sequences | Tagged:
        """All sentences."""
        import numpy as np

        from softcount.corpus.bitext import Side
        from softcount.corpus.sequences import Sequences
        from softcount.corpus.tagged import UNKNOWN, Tagged, tagged

        if self.known is None:
            assert self.plain is not None
            return self.plain
        if self.plain is None:
            return self.known
        plain, known = self.plain, tagged(self.known, like=self.plain.words)
        more = known.sequences
        tokens = np.concatenate([plain.tokens, more.tokens])
        indptr = np.concatenate([plain.indptr, more.indptr[1:] + plain.indptr[-1]])
        tags = np.concatenate([np.full(len(plain.tokens), UNKNOWN, np.int32), known.tags])
        return Tagged(Sequences(Side(more.words, tokens, indptr)), tags, known.names)

    def name(self, n: int) -> str:
        """What messages call a sentence of all."""
        before = 0 if self.plain is None else len(self.plain)
        if self.plain is not None and n < before:
            return self.plain.name(n)
        assert self.known is not None
        return self.known.sequences.name(n - before)


def learn(model: HMM, lessons: Lessons) -> None:
    """Fit a model, with a line of progress; a sentence that cannot be is called by its line."""
    sentences = lessons.joined()
    progress = Progress(len(sentences))
    try:
        model.fit(sentences, on_step=progress)
    except ImpossibleItem as error:
        if error.item is not None:
            error.message = error.message.replace(
                f"sentence {error.item}", lessons.name(error.item), 1
            )
        raise
    finally:
        progress.end()


def learner_for(
    name: LearnerName | None, max_iter: int | None, n_init: int | None
) -> Learner | None:
    """The learner with the dials that were given; None: as the model does if nothing is said."""
    if name is None and max_iter is None and n_init is None:
        return None
    return learner_called(name or LearnerName.EM, max_iter, None, n_init)


def prior_for(name: LearnerName | None, smoothing: float | None) -> float:
    """What to add to counts."""
    if smoothing is None:
        return USUAL_PRIOR if name in WITH_PRIOR else 0.0
    return smoothing


def read_dictionary(path: str | None, lowercase: bool) -> dict[str, list[str]] | None:
    """The tags of words; of words that are one in lower case, the tags of both."""
    if path is None:
        return None
    from softcount.corpus.tag_dictionary import read_tag_dictionary

    entries = read_tag_dictionary(path)
    if not lowercase:
        return entries
    found: dict[str, dict[str, None]] = {}
    for word, tags in entries.items():
        found.setdefault(word.lower(), {}).update(dict.fromkeys(tags))
    return {word: list(tags) for word, tags in found.items()}


def open_tags(text: str | None) -> list[str] | None:
    """Tags between commas."""
    if text is None:
        return None
    tags = [tag.strip() for tag in text.split(",")]
    if not all(tags):
        raise DataError(
            f"--open-tags {shown(text)} has an empty tag",
            "give tags with commas between: NOUN,VERB",
        )
    return tags


def demand_printable(names: Iterable[Any], separator: str, alone: bool) -> None:
    """Complain of tags that could not be told from each other, or from words if these are there."""
    if not separator or any(letter.isspace() for letter in separator):
        raise DataError(
            f"--separator {shown(separator)} cannot stand between a word and its tag",
            "give something without spaces, as / or _",
        )
    for name in map(str, names):
        if any(letter.isspace() for letter in name):
            raise DataError(
                f"there is a tag {shown(name)}, with a space in it", "print it as --json"
            )
        if separator in name and not alone:
            raise DataError(
                f"there is a tag {shown(name)}, with the separator {separator} in it",
                "choose another --separator, or print --states alone",
            )


def tags_of(dictionary: Mapping[str, list[str]] | None, known: Tagged | None) -> set[str]:
    """All tags that are spoken of."""
    spoken = set() if dictionary is None else set().union(*dictionary.values())
    return spoken if known is None else {*spoken, *known.names}
