"""What ``softcount tag`` prints: sentences with their states, and an overview of these."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from softcount.cli.answers import few_named
from softcount.cli.tag_options import Decoder
from softcount.cli.tag_text import TagText
from softcount.errors import DataError, shown

if TYPE_CHECKING:
    from softcount.corpus.tagged import Tagged
    from softcount.models.sequences import HMM

PROBABILITY, STATE = "Prob", "State"
"""Keys in MISC."""


@dataclass(frozen=True, eq=False)
class Answers:
    """States of sentences.

    ``states``      those of each sentence
    ``named``       whether states have names, some at least
    ``shares``      how probable each of them is, if that is wanted
    ``impossible``  the numbers of sentences that no sequence of states could have produced
    """

    text: TagText
    states: Sequence[Sequence[Any]]
    named: bool
    shares: Sequence[Sequence[float]] | None = None
    impossible: Sequence[int] = ()

    def remark(self) -> str:
        """A sentence on those that are impossible; empty if there are none."""
        if not self.impossible:
            return ""
        lines = [self.text.line(n) for n in self.impossible]
        return (
            f"{few_named(lines)} cannot come about: no sequence of states has such words. "
            "The states are those that take the fewest impossible moves and words; a model that "
            "is learned with --smoothing holds nothing impossible"
        )


def answered(model: HMM, text: TagText, decoder: Decoder, proba: bool) -> Answers:
    """What a model says of sentences."""
    sentences = text.sequences
    named = any(isinstance(name, str) for name in model.states_)
    if not len(text):  # the end of a CoNLL-U file may be a comment
        return Answers(text, [], named)
    from softcount.models.possible import ImpossibleWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ImpossibleWarning)
        states = model.predict(sentences, method=decoder.value)
        each = model.predict_proba(sentences) if proba else None
    told = [one.message for one in caught if isinstance(one.message, ImpossibleWarning)]
    impossible = told[0].items if told else ()  # probabilities say the same once more
    if each is None:
        return Answers(text, states, named, impossible=impossible)
    number = {name: k for k, name in enumerate(model.states_)}
    shares = [
        [min(1.0, float(row[number[name]])) for row, name in zip(p, some, strict=True)]
        for p, some in zip(each, states, strict=True)
    ]
    return Answers(text, states, named, shares, impossible)


@dataclass(frozen=True)
class Style:
    """How sentences are printed.

    ``alone``   states without words
    ``column``  where CoNLL-U has them; None: where they belong
    """

    separator: str = "/"
    alone: bool = False
    column: str | None = None
    as_json: bool = False

    def is_lines(self, text: TagText) -> bool:
        """Whether words or states of this text stand between spaces."""
        return not self.as_json and (self.alone or text.conllu is None)

    def text(self, answers: Answers) -> str:
        """All sentences."""
        if self.as_json:
            return _lines(map(_object, _sentences(answers)))
        file = answers.text.conllu
        if self.alone or file is None:
            return _lines(map(self._line, _sentences(answers)))
        text = file.text(answers.states, self.column or ("upos" if answers.named else STATE))
        if answers.shares is None:
            return text
        figures = [[f"{p:.4g}" for p in some] for some in answers.shares]
        return replace(file, lines=text.split("\n")).text(figures, PROBABILITY)

    def _line(self, sentence: Sentence) -> str:
        told = list(map(str, sentence.states))
        if sentence.shares is not None:
            told = [f"{state}:{p:.4g}" for state, p in zip(told, sentence.shares, strict=True)]
        if self.alone:
            return " ".join(told)
        pairs = zip(sentence.words, told, strict=True)
        return " ".join(f"{word}{self.separator}{state}" for word, state in pairs)


@dataclass(frozen=True)
class Sentence:
    """One sentence with its states."""

    line: int
    words: Sequence[str]
    states: Sequence[Any]
    shares: Sequence[float] | None


def _sentences(answers: Answers) -> Iterator[Sentence]:
    text = answers.text
    for n, states in enumerate(answers.states):
        shares = None if answers.shares is None else answers.shares[n]
        yield Sentence(text.line(n), text.sequences.sentence(n), states, shares)


def _object(sentence: Sentence) -> str:
    states = list(sentence.states)
    one: dict[str, Any] = {"line": sentence.line, "words": list(sentence.words), "states": states}
    if sentence.shares is not None:
        one["probabilities"] = list(sentence.shares)
    return json.dumps(one, ensure_ascii=False)


def _lines(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def print_text(text: str) -> None:
    """Sentences on stdout: as they are, whatever the system thinks of lines' ends and letters."""
    out = typer.get_binary_stream("stdout")
    out.write(text.encode())
    out.flush()


# beside gold tags
def demand_same(gold: Tagged, text: TagText, path: str) -> None:
    """Complain if gold tags are of other sentences."""
    given, read = gold.sequences, text.sequences
    if len(given) != len(read):
        raise DataError(
            f"--gold {path}: {len(given):,} sentences, while there are {len(read):,}",
            "give the same sentences in the same order",
        )
    for n, (ours, theirs) in enumerate(zip(read.lengths, given.lengths, strict=True)):
        if ours != theirs:
            raise DataError(
                f"--gold {given.name(n)}: {theirs} words, while {read.name(n)} has {ours}",
                "give the same sentences in the same order",
            )
    for n in range(len(read)):
        for word, other in zip(read.sentence(n), given.sentence(n), strict=True):
            if word != other and word.lower() != other.lower():
                raise DataError(
                    f"--gold {given.name(n)} has {shown(other)}, where {read.name(n)} has "
                    f"{shown(word)}",
                    "give the same sentences in the same order",
                )


@dataclass(frozen=True, eq=False)
class Beside:
    """States and gold tags of the same words; ``named``: whether states are called as tags are."""

    found: Sequence[Sequence[Any]]
    gold: Sequence[Sequence[Any]]
    named: bool


def beside(answers: Answers, gold: Tagged, model: HMM) -> Beside:
    """States and gold tags."""
    right = [gold.tags_of(n) for n in range(len(gold))]
    names = {name for name in model.states_ if isinstance(name, str)}
    return Beside(answers.states, right, bool(names.intersection(gold.names)))


def scored(pair: Beside, text: TagText, model: HMM, *, unseen: bool) -> Any:
    """How well states agree with gold tags: by their names, or whatever they are called.

    ``unseen``  whether the sentences were not learned from, so that words may be unknown
    """
    from softcount.evaluate import induction_scores, tag_scores

    if not pair.named:
        return induction_scores(pair.found, pair.gold)
    if not unseen:
        return tag_scores(pair.found, pair.gold)
    some = text.sequences
    words = [some.sentence(n) for n in range(len(some))]
    if model.lowercase:
        words = [[word.lower() for word in sentence] for sentence in words]
    return tag_scores(pair.found, pair.gold, known_words=model.words_, words=words)


def print_overview(shown: Any, *, summary: bool, as_json: bool) -> None:
    """A table if someone is watching, else tab-separated values; or JSON."""
    stream = sys.stdout if summary else sys.stderr
    if summary and as_json:
        stream.write(json.dumps(shown.as_json(), ensure_ascii=False, indent=1) + "\n")
    elif stream.isatty():
        from rich.console import Console

        shown.show(Console(file=stream, highlight=False))
    else:
        stream.write(shown.as_tsv())
    stream.flush()
