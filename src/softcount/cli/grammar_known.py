"""What files say of a grammar and of the trees of sentences: rules, treebanks, brackets."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from softcount.cli.lines import numbered
from softcount.cli.tag_text import called, pieces_of
from softcount.errors import DataError, shown

if TYPE_CHECKING:
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.treebank import Change, Trees
    from softcount.models.grammar.rules import Rules
    from softcount.models.grammar.told import Bracket

SPANS = (
    "write nothing, a tree, brackets around the sentence's words, or spans: 0-2 NP:3-5, the end "
    "being the first word behind"
)
_PART = re.compile(r"[()]|[^\s()]+")
_LINE = re.compile(r"line (\d+) ")
_SPAN = re.compile(r"(?:(?P<label>.+):)?(?P<start>[0-9]+)-(?P<end>[0-9]+)")
FEWEST_OPEN = 2
"""A sentence of which so many words begin with a bracket, the first of them, may be a tree."""
LONGEST_NUMBER = 9
"""Digits that the place of a word may have."""
UNLABELLED = "X"
"""The label of constituents of files that have none."""


# rules
def read_rules(path: str) -> Rules:
    """Rules from a file; messages name it and the line."""
    from softcount.corpus.lines import decoded, unmarked
    from softcount.models.grammar.rule_text import from_text

    raw = b"".join(unmarked(pieces_of(path)))
    text = decoded(raw, lambda line: f"{called(path)}:{line + 1}")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rules = from_text(text.replace("\r\n", "\n"))
    except DataError as error:
        raise DataError(_placed(error.message, called(path)), error.hint) from None
    for warning in caught:
        typer.echo(f"softcount: warning: {called(path)}: {warning.message}", err=True)
    return rules


def _placed(message: str, path: str) -> str:
    """A message with its line after the name of the file.

    >>> _placed("line 3 has two arrows", "rules.txt")
    'rules.txt:3 has two arrows'
    >>> _placed("there are no rules in the text", "rules.txt")
    'rules.txt: there are no rules in the text'
    """
    found = _LINE.match(message)
    return f"{path}:{found[1]} {message[found.end() :]}" if found else f"{path}: {message}"


# trees
def cleaning(keep_functions: bool) -> list[Change]:
    """What is done to trees of files: traces are left out, and functions, unless they are kept."""
    from softcount.corpus.treebank import without_functions, without_traces

    return [without_traces] if keep_functions else [without_traces, without_functions]


def cleaning_for(labels: Collection[str]) -> list[Change]:
    """The same for a grammar with these labels: functions are kept if it has some."""
    from softcount.corpus.treebank import without_functions
    from softcount.corpus.trees import Tree

    plain = all(without_functions(Tree(label, ("a",))).label == label for label in labels)
    return cleaning(not plain)


def read_trees(path: str, changes: Sequence[Change]) -> Trees:
    """The trees of a file, with these changes; constituents without a label have one."""
    from softcount.corpus.treebank import from_pieces

    return from_pieces(pieces_of(path), called(path), unlabelled=UNLABELLED).changed(*changes)


def demand_as_many(option: str, path: str, n: int, n_sentences: int, what: str) -> None:
    """Complain if there is not one for each sentence."""
    if n != n_sentences:
        raise DataError(
            f"{option} {path}: {n:,} {what}, while there are {n_sentences:,} sentences",
            "give one for each sentence, in the same order; a blank line where nothing is known",
        )


# sentences
def read_sentences(path: str) -> Sequences:
    """All sentences of a file."""
    from softcount.cli.tag_options import Form
    from softcount.cli.tag_text import read_text

    return _of_trees(path) if _has_trees(path) else read_text(path, Form.LINES).sequences


def stream_sentences(path: str) -> Iterator[Sequences]:
    """Sentences as they come, those that are there together."""
    from softcount.cli.tag_options import Form
    from softcount.cli.tag_text import stream

    if _has_trees(path):
        yield _of_trees(path)
        return
    yield from (piece.sequences for piece in stream(path, Form.LINES))


def _has_trees(path: str) -> bool:
    return path.removesuffix(".gz").endswith(".mrg")


def _of_trees(path: str) -> Sequences:
    from softcount.corpus.sequences import sequences

    return sequences(read_trees(path, cleaning(keep_functions=True)).words())


def remark_on_brackets(text: Sequences) -> str:
    """A sentence on trees that are taken for sentences; empty if they are none, by the first."""
    first = next((n for n in range(len(text)) if text.sentence(n)), None)
    if first is None:
        return ""
    words = text.sentence(first)
    if not words[0].startswith("(") or sum(word.startswith("(") for word in words) < FEWEST_OPEN:
        return ""
    return (
        f"warning: {text.name(first)} looks like a tree, and its brackets are taken for words; "
        "the sentences of trees are read from files called .mrg"
    )


# brackets
def read_brackets(
    path: str,
    text: Sequences,
    changes: Sequence[Change],
    labels: bool,
    known: Collection[str] | None = None,
) -> list[list[Bracket]]:
    """What is known of each sentence of a text."""
    lines = list(numbered(path))
    demand_as_many("--brackets", path, len(lines), len(text), "lines")
    reader = BracketReader(iter(lines), path, changes, labels, known)
    return reader.take(text)


class BracketReader:
    """Brackets line by line, beside sentences as they come.

    ``labels``  whether labels of trees count
    ``known``   the labels that there are; None: any
    """

    def __init__(
        self,
        lines: Iterator[tuple[int, str]],
        path: str,
        changes: Sequence[Change],
        labels: bool,
        known: Collection[str] | None = None,
    ) -> None:
        self.lines = lines
        self.path = path
        self.changes = changes
        self.labels = labels
        self.known = known

    def take(self, text: Sequences) -> list[list[Bracket]]:
        """What is known of the next sentences."""
        found = []
        for n in range(len(text)):
            number, line = next(self.lines, (None, ""))
            if number is None:
                raise DataError(
                    f"--brackets {self.path} has no line for {text.name(n)}",
                    "give a line for each sentence, a blank one where nothing is known",
                )
            found.append(self._of(line, f"{called(self.path)}:{number}", text.sentence(n)))
        return found

    def demand_end(self) -> None:
        """Complain of brackets of sentences that are not there."""
        number, _ = next(self.lines, (None, ""))
        if number is not None:
            raise DataError(
                f"--brackets {called(self.path)}:{number} has no sentence",
                "give a line for each sentence, in the same order",
            )

    def _of(self, line: str, where: str, words: Sequence[str]) -> list[Bracket]:
        if (plain := _without_labels(line, where, words)) is not None:
            return plain
        if line.lstrip().startswith("("):
            return self._of_tree(line, where, words)
        found = [_span(part, where, len(words)) for part in line.split()]
        self._demand_known(found, where)
        _demand_nested(found, where)
        return found

    def _of_tree(self, line: str, where: str, words: Sequence[str]) -> list[Bracket]:
        from softcount.corpus.treebank import composed
        from softcount.corpus.trees import whole, written
        from softcount.models.grammar.told import other_word

        tree = composed(*self.changes)(
            whole(line, lambda place: f"{where}, character {place + 1}", unlabelled="X")
        )
        if tree is None:
            return []
        lower = [[written(word).lower() for word in some] for some in (tree.words(), words)]
        if difference := other_word(*lower):
            raise DataError(
                f"{where} has other words than its sentence: {difference}",
                "give the trees of the same sentences in the same order",
            )
        spans = tree.spans()
        if not self.labels:
            return [(None, start, end) for _, start, end in spans]
        self._demand_known(spans, where)
        return [*spans]

    def _demand_known(self, some: Sequence[Bracket], where: str) -> None:
        for label, _, _ in some:
            if label is not None and self.known is not None and label not in self.known:
                raise DataError(
                    f"{where} has the label {shown(label)}, which the grammar has not",
                    "leave it out: 3-5 says that there is a constituent, whatever it is",
                )


def _without_labels(line: str, where: str, words: Sequence[str]) -> list[Bracket] | None:
    """Brackets around the words of a sentence; None if the line is something else.

    >>> _without_labels("she (sees (a dog))", "known.txt:1", "she sees a dog".split())
    [(None, 2, 4), (None, 1, 4)]
    """
    parts = _PART.findall(line)
    own = [part.lower() for part in parts if part not in "()"]
    if len(own) == len(parts) or own != [word.lower() for word in words]:
        return None
    found: list[Bracket] = []
    starts: list[int] = []
    place = 0
    for part in parts:
        if part == "(":
            starts.append(place)
        elif part != ")":
            place += 1
        elif not starts or starts[-1] == place:
            what = "a bracket with nothing in it" if starts else "a ) too many"
            raise DataError(f"{where} has {what}", "brackets are around words: she (sees (a dog))")
        else:
            found.append((None, starts.pop(), place))
    if starts:
        raise DataError(f"{where}: {len(starts)} ) are missing", "each ( needs its )")
    return found


def _span(part: str, where: str, n: int) -> Bracket:
    """A span as it is written: 3-5 or NP:3-5.

    >>> _span("NP:3-5", "known.txt:1", 7), _span("0-2", "known.txt:1", 7)
    (('NP', 3, 5), (None, 0, 2))
    """
    found = _SPAN.fullmatch(part)
    if found is None:
        raise DataError(f"{where} has {shown(part)}, which is no span", SPANS)
    digits = found["start"], found["end"]
    start, end = (int(some) if len(some) <= LONGEST_NUMBER else sys.maxsize for some in digits)
    if not start < end <= n:
        raise DataError(
            f"{where} has the span {shown(part)}, but its sentence has {n} words",
            "start is the first word, from 0, end the first one behind",
        )
    return found["label"], start, end


def _demand_nested(some: Sequence[Bracket], where: str) -> None:
    from softcount.corpus.trees import crossing

    for n, (_, start, end) in enumerate(some):
        for _, first, last in crossing(some[:n], start, end):
            raise DataError(
                f"{where} has the spans {first}-{last} and {start}-{end}, which cross",
                "leave one of them out",
            )
