"""``softcount grammar`` and ``softcount parse``."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.align.command import DTYPES, Precision
from softcount.cli import options
from softcount.cli.answers import few_named
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_two_of_stdin, refuse_with
from softcount.cli.ending import Deed, at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.lines import numbered
from softcount.cli.options import LEARNER, OTHER_LEARNERS
from softcount.cli.progress import Progress
from softcount.cli.targets import WRITTEN, WRITTEN_OR_PRINTED
from softcount.errors import DataError, shown
from softcount.hmm import command as tag_options
from softcount.hmm.command import called_texts, pieces_of

if TYPE_CHECKING:
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.treebank import Change, Trees
    from softcount.corpus.trees import Tree
    from softcount.grammar import PCFG
    from softcount.grammar.data import Bracket
    from softcount.grammar.report import GrammarShown
    from softcount.grammar.rules import Rules
    from softcount.learners import Learner


class Start(StrEnum):
    """What ``--init`` may say."""

    RANDOM = "random"
    UNIFORM = "uniform"


class Method(StrEnum):
    """What ``--method`` may say."""

    VITERBI = "viterbi"
    BRACKETS = "brackets"
    LABELLED = "labelled"


# sentences
File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="One sentence a line, words between spaces; .gz too; - is stdin. Trees (.mrg): their "
        "sentences. If not given: stdin, or with --treebank or --trees nothing.",
    ),
]
Lowercase = tag_options.Lowercase
MaxLength = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Learn from no sentence of more words; they are parsed all the same.",
    ),
]

# the grammar
Nonterminals = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--nonterminals",
        min=1,
        help="How many symbols constituents may have: a grammar with every rule A -> B C.",
    ),
]
Preterminals = Annotated[
    int | None,
    typer.Option(
        "-p",
        "--preterminals",
        min=1,
        help="How many symbols words may have. [else half as many again as -n; with --trees, as "
        "many as these have]",
    ),
]
RulesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Learn the probabilities of these rules: S -> NP VP [0.9] | VP [0.1], words in "
        "quotes; without probabilities all begin alike.",
    ),
]
Treebank = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Take all rules of these trees (Penn brackets), as often as they are there. Nothing "
        "is learned from FILE: its sentences are parsed.",
    ),
]

# what is known
Brackets = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What is known of the trees, a line for each line of FILE: nothing; or a tree, whose "
        "brackets no other constituent crosses; or the sentence with brackets in it, she (sees (a "
        "dog)); or spans, 0-2 NP:3-5, from the first word, which is 0, to the first one behind.",
    ),
]
Labels = Annotated[
    bool,
    typer.Option(
        "--labels", help="The labels of trees in --brackets are right, too; else only the brackets."
    ),
]
KnownTrees = Annotated[
    str | None,
    typer.Option(
        "--trees",
        metavar="FILE",
        help="The whole trees of sentences, a line for each line of FILE, blank if it is unknown; "
        "without FILE, what is learned from.",
    ),
]
KeepFunctions = Annotated[
    bool,
    typer.Option(
        "--keep-functions",
        help="Labels of trees stay as they are; else NP-SBJ-1 is NP. Traces are left out anyway.",
    ),
]

Horizontal = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="With --treebank: a long rule is taken apart, its parts knowing N neighbours to the "
        "left. Not given: rules as they are.",
    ),
]
Vertical = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="With --treebank: symbols know N - 1 of those above them, so that NP below S is not "
        "NP below VP. Trees have plain labels.",
    ),
]

# how to learn
Init = Annotated[
    Start | None,
    typer.Option(
        metavar="NAME",
        parser=one_of(Start),
        help="Where to start: random, or with --rules also uniform. [else the probabilities of "
        "--rules, what labels say, or random]",
    ),
]
Smoothing = tag_options.Smoothing
LearnerOption = Annotated[
    LearnerName | None,
    typer.Option(
        metavar="NAME",
        parser=LEARNER,
        help=f"If not given, em (inside-outside). {OTHER_LEARNERS}",
    ),
]
Precision_ = Annotated[
    Precision,
    typer.Option(
        metavar="NAME",
        parser=one_of(Precision),
        help="double; or single: less exact, in less time (not with --rules and --treebank).",
    ),
]

# what is printed
Gold = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Say how well the brackets agree with those of these trees, which are of the same "
        "sentences, beside trees that branch to the right and to the left. Of what is known "
        "of the trees nothing is used for this.",
    ),
]
Show = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="Draw the trees of so many sentences, evenly spread."),
]
Save = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        "--save",
        metavar="MODEL",
        help="Keep the grammar in this file, for softcount parse and softcount.load.",
    ),
    WRITTEN,
]
GrammarText = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write the rules to this file, as --rules reads them; of learned ones those with a "
        "probability of 0.0001 and more. - prints them instead of the trees.",
    ),
    WRITTEN_OR_PRINTED,
]
Html = Annotated[
    Path | None,
    typer.Option(
        "--report",
        "--html",
        metavar="PAGE.html",
        help="Write a page to this file: symbols with their rules and words, trees, the course of "
        "learning.",
    ),
    WRITTEN,
]

# softcount parse
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A grammar, as softcount grammar has saved it.")
]
ToParse = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="One sentence a line, words between spaces; .gz too; - is stdin. Trees (.mrg): their "
        "sentences.",
    ),
]
Method_ = Annotated[
    Method,
    typer.Option(
        metavar="NAME",
        parser=one_of(Method),
        help="viterbi: the most probable tree. brackets: that of the most expected brackets. "
        "labelled: of the most expected brackets with labels.",
    ),
]
Prune = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=0.5,
        metavar="P",
        help="Grammars of rules: leave out what is less probable than P by a coarse grammar; 1e-5 "
        "is twice as fast. What the first sentences lose by it is told.",
    ),
]
KBest = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Print the N most probable trees of each sentence, the best first: line ||| log p ||| "
        "tree. A blank line has none.",
    ),
]
Draw = Annotated[
    bool, typer.Option("--draw", help="Draw the trees, for eyes, instead of printing brackets.")
]
ParseBrackets = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What is known of the trees: see softcount grammar. Labels of spans (NP:3-5) count, "
        "those of trees with --labels.",
    ),
]
ParseGold = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Say how well the trees agree with these, which are of the same sentences: brackets, "
        "labelled ones if labels are the same, and how many sentences have a tree at all.",
    ),
]


# What files say of a grammar and of the trees of sentences: rules, treebanks, brackets.


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
    from softcount.grammar.rules import from_text

    raw = b"".join(unmarked(pieces_of(path)))
    text = decoded(raw, lambda line: f"{called_texts(path)}:{line + 1}")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rules = from_text(text.replace("\r\n", "\n"))
    except DataError as error:
        raise DataError(_placed(error.message, called_texts(path)), error.hint) from None
    for warning in caught:
        typer.echo(f"softcount: warning: {called_texts(path)}: {warning.message}", err=True)
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

    return from_pieces(pieces_of(path), called_texts(path), unlabelled=UNLABELLED).changed(*changes)


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
    from softcount.hmm.command import Form, read_text

    return _of_trees(path) if _has_trees(path) else read_text(path, Form.LINES).sequences


def stream_sentences(path: str) -> Iterator[Sequences]:
    """Sentences as they come, those that are there together."""
    from softcount.hmm.command import Form, stream

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
            found.append(self._of(line, f"{called_texts(self.path)}:{number}", text.sentence(n)))
        return found

    def demand_end(self) -> None:
        """Complain of brackets of sentences that are not there."""
        number, _ = next(self.lines, (None, ""))
        if number is not None:
            raise DataError(
                f"--brackets {called_texts(self.path)}:{number} has no sentence",
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
        from softcount.grammar.data import other_word

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


# Grammars made as the command line says, and learned from sentences.


MORE_TAGS = 1.5
"""Words have so many times the symbols that constituents have, if nothing is said of them."""


@dataclass(frozen=True)
class Known:
    """Files that say what is known already.

    ``treebank``  whose rules are the grammar
    ``brackets``, ``trees``  those of the sentences that are learned from
    """

    rules: str | None = None
    treebank: str | None = None
    brackets: str | None = None
    trees: str | None = None
    labels: bool = False
    keep_functions: bool = False

    @property
    def changes(self) -> list[Change]:
        """What is done to trees of files."""
        return cleaning(self.keep_functions)


@dataclass(frozen=True, eq=False)
class Lessons:
    """What is learned from: sentences (None: those of the trees), and what is known of them."""

    text: Sequences | None
    trees: Trees | None = None
    brackets: Sequence[list[Bracket]] | None = None

    def __len__(self) -> int:
        some = self.trees if self.text is None else self.text
        return 0 if some is None else len(some)

    @property
    def tells_trees(self) -> bool:
        """Whether anything is known of trees."""
        return self.trees is not None or self.brackets is not None

    @property
    def lengths(self) -> list[int]:
        """How many words each sentence has."""
        if self.text is not None:
            return [int(length) for length in self.text.lengths]
        return [] if self.trees is None else [len(words) for words in self.trees.words()]

    def up_to(self, longest: int | None) -> tuple[Lessons, str]:
        """Those of at most so many words, and a remark on the others."""
        lengths = self.lengths
        chosen = [n for n, length in enumerate(lengths) if longest is None or length <= longest]
        if len(chosen) == len(lengths):
            return self, ""
        if not any(lengths[n] for n in chosen):
            raise DataError(
                f"--max-length {longest}: all sentences are longer", "let them have more words"
            )
        brackets = None if self.brackets is None else [self.brackets[n] for n in chosen]
        trees = None if self.trees is None else self.trees.select(chosen)
        text = None if self.text is None else _apart(self.text, chosen)
        remark = (
            f"{len(lengths) - len(chosen):,} of {len(lengths):,} sentences have more than "
            f"{longest} words, and are not learned from"
        )
        return replace(self, text=text, trees=trees, brackets=brackets), remark


def _apart(text: Sequences, chosen: Sequence[int]) -> Sequences:
    """Some sentences, with no other words than theirs."""
    from softcount.corpus.sequences import sequences

    some = [text.sentence(n) for n in chosen]
    import numpy as np

    numbers = np.array(chosen) if text.numbers is None else text.numbers[chosen]
    return replace(sequences(some), origin=text.origin, numbers=numbers)


def lessons(text: Sequences | None, files: Known, symbols: Sequence[str] | None) -> Lessons:
    """Sentences and what files say of them; ``symbols``: labels that may be, None: any."""
    trees = brackets = None
    if files.trees is not None:
        trees = read_trees(files.trees, files.changes)
        if text is not None:
            demand_as_many("--trees", files.trees, len(trees), len(text), "trees")
    if files.brackets is not None:
        assert text is not None
        brackets = read_brackets(files.brackets, text, files.changes, files.labels, symbols)
    return Lessons(text, trees, brackets)


def n_preterminals(n: int | None, p: int | None, files: Known) -> int | None:
    """How many symbols words have; None: as many as trees say.

    >>> n_preterminals(5, None, Known()), n_preterminals(5, 3, Known())
    (8, 3)
    """
    if p is not None or n is None or files.trees is not None:
        return p
    return math.ceil(MORE_TAGS * n)


def learner_for(
    name: LearnerName | None, max_iter: int | None, tol: float | None, n_init: int | None
) -> Learner | None:
    """The learner with the dials that were given; None: as the model does if nothing is said."""
    if name is None and max_iter is None and tol is None and n_init is None:
        return None
    return learner_called(name or LearnerName.EM, max_iter, tol, n_init)


def counted(files: Known, settings: dict[str, Any]) -> PCFG:
    """The grammar of a treebank."""
    from softcount.corpus.treebank import lowercase
    from softcount.grammar import PCFG

    assert files.treebank is not None
    changes = [*files.changes, lowercase] if settings["lowercase"] else files.changes
    return PCFG.from_treebank(read_trees(files.treebank, changes), **settings)


def learn(model: PCFG, some: Lessons) -> None:
    """Fit a model, with a line of progress."""
    progress = Progress(len(some))
    try:
        model.fit(some.text, some.trees, some.brackets, on_step=progress)
    finally:
        progress.end()


# Trees of sentences as ``softcount grammar`` and ``softcount parse`` print and score them.


FAILED, TAG = "FAILED", "XX"
"""The mark of a sentence without a tree, and what stands for the tags of its words."""
SEPARATOR = " ||| "
TOLD = 100
"""Of so many sentences it is told what they lose by what is left out."""


def say(remark: str) -> None:
    """A remark on stderr, if there is one."""
    if remark:
        typer.echo(f"softcount: {remark}", err=True)


def failed(words: Sequence[str]) -> Tree:
    """What stands for the tree of a sentence that has none.

    >>> print(failed(["no", "(", "way"]))
    (FAILED (XX no) (XX -LRB-) (XX way))
    """
    from softcount.corpus.trees import Tree

    return Tree(FAILED, tuple(Tree(TAG, (word,)) for word in words))


@dataclass(frozen=True, eq=False)
class Parsed:
    """Trees of sentences: None if one is empty, or has none."""

    text: Sequences
    trees: Sequence[Tree | None]

    def lines(self) -> list[str]:
        """Penn brackets, exactly one line for each sentence."""
        return [self.line(n) for n in range(len(self.trees))]

    def line(self, n: int) -> str:
        """A sentence's tree; nothing for nothing."""
        tree, words = self.trees[n], self.text.sentence(n)
        return "" if not words else str(failed(words) if tree is None else tree)

    def drawings(self) -> list[str]:
        """The trees for eyes, with an empty line below each."""
        from softcount.grammar.report import drawn

        found = []
        for n, tree in enumerate(self.trees):
            words = self.text.sentence(n)
            if words:
                found.append(f"{drawn(failed(words) if tree is None else tree)}\n")
        return found

    @property
    def failures(self) -> list[int]:
        """Lines of sentences that have words and no tree, from 1."""
        text, lengths = self.text, self.text.lengths.tolist()
        return [
            (n if text.numbers is None else int(text.numbers[n])) + 1
            for n, (tree, length) in enumerate(zip(self.trees, lengths, strict=True))
            if tree is None and length
        ]


@contextmanager
def in_silence() -> Iterator[None]:
    """Nothing is said of sentences without a tree: lines and remarks name them."""
    from softcount.models.possible import ImpossibleWarning

    with warnings.catch_warnings(action="ignore", category=ImpossibleWarning):
        yield


def parsed(
    model: PCFG, text: Sequences, *, method: str = "viterbi", brackets: Any = None
) -> Parsed:
    """The tree of each sentence, with words as they are written there."""
    with in_silence():
        found = model.predict(text, brackets=brackets, method=method)
    return Parsed(text, [_spelt(model, tree, text, n) for n, tree in enumerate(found)])


def parsed_as_told(model: PCFG, text: Sequences, told: Lessons) -> Parsed:
    """The tree of each sentence that agrees with its brackets; those that are known stay."""
    from softcount.corpus.trees import from_spans

    brackets = None
    if told.brackets is not None:  # of sentences that were too long, labels may be new
        labels = {*model.labels_}
        brackets = [
            [(label if label in labels else None, start, end) for label, start, end in some]
            for some in told.brackets
        ]
    found = list(parsed(model, text, brackets=brackets).trees)
    for n, tree in enumerate(told.trees or ()):
        if tree is not None:
            found[n] = from_spans(text.sentence(n), tree.spans())
    return Parsed(text, found)


def _spelt(model: PCFG, tree: Tree | None, text: Sequences, n: int) -> Tree | None:
    """A tree with the words of its sentence, which the model may have in lower case."""
    from softcount.corpus.trees import from_spans

    if tree is None or not model.lowercase:
        return tree
    return from_spans(text.sentence(n), tree.spans())


def best_lines(model: PCFG, text: Sequences, k: int, brackets: Any = None) -> tuple[Parsed, str]:
    """The best tree of each sentence, and lines of the k best of all."""
    best: list[Tree | None] = []
    lines: list[str] = []
    with in_silence():
        found = model.k_best(text, k, brackets=brackets)
    for n, some in enumerate(found):
        line = str((n if text.numbers is None else int(text.numbers[n])) + 1)
        trees = [(log, _spelt(model, tree, text, n)) for log, tree in some]
        best.append(trees[0][1] if trees else None)
        words = text.sentence(n)
        if not trees and words:
            trees = [(float("-inf"), failed(words))]
        lines += [SEPARATOR.join((line, f"{log:.6f}", str(tree))) for log, tree in trees]
    return Parsed(text, best), joined(lines)


def joined(lines: Iterable[str]) -> str:
    """Lines, each with its end."""
    return "".join(f"{line}\n" for line in lines)


def remark_on(failures: Sequence[int], total: int) -> str:
    """A sentence on those without a tree; empty if there are none."""
    if not failures:
        return ""
    are = "has" if len(failures) == 1 else "have"
    return (
        f"{few_named(failures)} of {total:,} {are} no tree by this grammar, and "
        f"{'is' if len(failures) == 1 else 'are'} marked ({FAILED} …)"
    )


def remark_on_pruning(model: PCFG, text: Sequences) -> str:
    """What the first sentences lose by what is left out; empty if nothing is."""
    if not model.prune:
        return ""
    first = [text.sentence(n) for n in range(min(len(text), TOLD))]
    lost = model.pruning_loss(first)
    return (
        f"--prune: of {lost.sentences} sentences, {lost.trees} have a less probable tree; log p is "
        f"{lost.mean:.2g} lower on average, {lost.worst:.2g} at worst; {lost.again} were parsed "
        "again with nothing left out"
    )


# beside gold trees
def bare(gold: Tree) -> list[str]:
    """The words of a gold tree that count."""
    from softcount.corpus.treebank import without_punctuation

    left = without_punctuation(gold)
    return [] if left is None else left.words()


def beside_branching(
    found: Sequence[Tree | None], gold: Trees, labels: Sequence[str] = ()
) -> list[str]:
    """Scores, and those of trees that know nothing but how many words there are."""
    from softcount.grammar.metrics import bracket_scores, left_branching, right_branching

    told = _scores(found, gold, labels)
    words = [[] if tree is None else bare(tree) for tree in gold]
    for name, branching in (("right", right_branching), ("left", left_branching)):
        scores = bracket_scores([branching(some) if some else None for some in words], gold)
        told.append(
            f"{name}-branching trees: F1 {100 * scores.f1:.1f}, mean F1 "
            f"{100 * scores.sentence_f1:.1f}, exact {100 * scores.exact:.1f}%"
        )
    return told


def beside_gold(found: Sequence[Tree | None], gold: Trees, labels: Sequence[str]) -> list[str]:
    """Unlabelled scores, labelled ones if labels are the same, and how many have a tree."""
    told = _scores(found, gold, labels)
    pairs = [pair for pair in zip(found, gold, strict=True) if pair[1] is not None]
    n = sum(tree is not None for tree, _ in pairs)
    told.append(f"coverage {n / max(len(pairs), 1):.1%}: {n:,} of {len(pairs):,} have a tree")
    return told


def _scores(found: Sequence[Tree | None], gold: Trees, labels: Sequence[str]) -> list[str]:
    """Unlabelled scores, and labelled ones if labels are the same."""
    from softcount.grammar.metrics import bracket_scores

    told = str(bracket_scores(found, gold)).splitlines()
    theirs = {node.label for tree in gold if tree is not None for node in tree.nodes()}
    if theirs.intersection(labels):
        told += str(bracket_scores(found, gold, labelled=True)).splitlines()
    return told


def batches(text: Sequences, size: int) -> Iterable[Sequences]:
    """Sentences, so many at a time."""
    borders = [*range(0, len(text), size), len(text)]
    return (text.select(slice(first, last)) for first, last in pairwise(borders))


# ``softcount grammar``.


NOT_COUNTED = (
    *("n", "p", "rules", "brackets", "labels", "trees", "max_length", "init", "smoothing"),
    *("learner", "max_iter", "tol", "n_init", "precision", "seed"),
)
NOT_WITH_RULES = ("n", "p", "precision")
MOST_SYMBOLS = 60
"""So many are told of on stderr; treebanks have thousands, if symbols know what is around them."""
ALONE = "scores are of trees that were found without --brackets and --trees"


def grammar(
    ctx: typer.Context,
    file: File = None,
    n: Nonterminals = None,
    p: Preterminals = None,
    rules: RulesOption = None,
    treebank: Treebank = None,
    brackets: Brackets = None,
    labels: Labels = False,
    trees: KnownTrees = None,
    keep_functions: KeepFunctions = False,
    horizontal: Horizontal = None,
    vertical: Vertical = 1,
    lowercase: Lowercase = False,
    max_length: MaxLength = None,
    init: Init = None,
    smoothing: Smoothing = None,
    learner: LearnerOption = None,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    precision: Precision_ = Precision.DOUBLE,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    summary: options.Summary = False,
    show: Show = 0,
    gold: Gold = None,
    grammar_text: GrammarText = None,
    save: Save = None,
    html: Html = None,
) -> None:
    """Learn how sentences are made: a probabilistic context-free grammar, and their trees.

    Prints the best tree of every sentence in Penn brackets: exactly one line for each line of the
    file, a blank one for a blank one. A sentence without a tree is a flat one, (FAILED (XX word)
    …), and stderr names its line. Nothing need be known (then say -n); or the rules, or some
    brackets, which the trees agree with, or some trees, which stay as they are; or there is a
    treebank, whose rules are counted. What was learned goes to stderr.

    \b
    softcount grammar sentences.txt -n 20 -o grammar.softcount --report grammar.html > trees.txt
    softcount grammar sentences.txt --rules rules.txt --grammar-text learned.txt
    softcount grammar sentences.txt -n 15 --brackets known.txt --gold gold.mrg
    softcount grammar --treebank wsj.mrg --horizontal 1 --vertical 2 -o wsj.softcount
    softcount parse wsj.softcount new.txt
    """
    _refuse(ctx, n, rules, treebank, trees, learner)
    if labels and brackets is None:
        raise typer.BadParameter("--labels needs --brackets")
    alone = treebank is not None or trees is not None
    file = _source(file, alone, bool(save or html or summary or grammar_text))
    if file is None and (brackets is not None or gold is not None or show):
        raise typer.BadParameter("--brackets, --gold and --show need FILE, the sentences")
    refuse_two_of_stdin(file, rules, treebank, brackets, trees, gold)
    with readable_errors():
        from softcount.engines import Local
        from softcount.hmm.command import prior_for

        known = Known(rules, treebank, brackets, trees, labels, keep_functions)
        settings: dict[str, Any] = {"lowercase": lowercase, "engine": Local(threads)}
        if treebank is not None:
            settings |= {"horizontal": horizontal, "vertical": vertical}
        else:
            settings |= {
                "smoothing": prior_for(learner, smoothing),
                "learner": learner_for(learner, max_iter, tol, n_init),
                "init": None if init is None else init.value,
                "random_state": seed,
            }
        if treebank is None and rules is None:
            settings |= {"n_nonterminals": n, "n_preterminals": n_preterminals(n, p, known)}
            settings["dtype"] = DTYPES[precision]
        job = _Job(file, known, max_length, summary, show, gold, grammar_text, save, html)
        job.run(settings)


def _refuse(
    ctx: typer.Context,
    n: int | None,
    rules: str | None,
    treebank: str | None,
    trees: str | None,
    learner: LearnerName | None,
) -> None:
    """Usage errors of options that do not go together."""
    if learner is LearnerName.SPECTRAL:
        raise typer.BadParameter("--learner spectral is for documents, and for softcount tag")
    if treebank is None:
        needs = ("horizontal", "vertical")
        refuse_with(ctx, "a grammar without --treebank", needs, "they are about its rules")
    if treebank is not None:
        refuse_with(ctx, "--treebank", NOT_COUNTED, "its rules are counted, and nothing learned")
    elif rules is not None:
        refuse_with(ctx, "--rules", NOT_WITH_RULES, "they say which symbols there are")
    elif n is None and trees is None:
        raise typer.BadParameter("which symbols? give -n, or --rules, --treebank or --trees")


def _source(file: str | None, alone: bool, wanted: bool) -> str | None:
    """Where sentences are; None: there are those of trees alone."""
    if file is not None:
        return file
    if alone:
        if not wanted:
            raise typer.BadParameter("nothing to parse: give FILE, or --output")
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        raise typer.BadParameter("no sentences: give a file, or - to type them")
    return "-"


@dataclass(frozen=True)
class _Job:
    """Where sentences are, and what is wanted of them."""

    file: str | None
    known: Known
    max_length: int | None
    summary: bool
    show: int
    gold: str | None
    grammar_text: str | None
    save: Path | None
    html: Path | None

    def run(self, settings: dict[str, Any]) -> None:
        """Learn, and print and write all that is wanted."""
        text = None if self.file is None else read_sentences(self.file)
        if text is not None:
            say(remark_on_brackets(text))
        gold = None
        if self.gold is not None and text is not None:
            gold = read_trees(self.gold, self.known.changes)
            demand_as_many("--gold", self.gold, len(gold), len(text), "trees")
        model, told, notes = self._learned(settings, text)
        try_all(at(self.save, model.save), lambda: self._finish(model, told, gold, notes))

    def _learned(
        self, settings: dict[str, Any], text: Sequences | None
    ) -> tuple[PCFG, Lessons, list[str]]:
        """The grammar, the sentences and what is known of them, and what is to be said."""
        from softcount.grammar import PCFG

        if self.known.treebank is not None:
            model = counted(self.known, settings)
            return model, Lessons(text), []
        if self.known.rules is None:
            model, symbols = PCFG(**settings), None
        else:
            model = PCFG.from_rules(read_rules(self.known.rules), **settings)
            symbols = model.labels_
        every = lessons(text, self.known, symbols)
        some, remark = every.up_to(self.max_length)
        learn(model, some)
        return model, every, [remark] if remark else []

    def _finish(self, model: PCFG, told: Lessons, gold: Trees | None, notes: list[str]) -> None:
        from softcount.grammar.report import grammar_shown
        from softcount.hmm.command import print_overview, print_text

        text = told.text
        found = None if text is None else parsed_as_told(model, text, told)
        scores: list[str] = []
        if text is not None and found is not None:
            remark = remark_on(found.failures, len(found.trees))
            notes = [*notes, *([remark] if remark else [])]
            if gold is not None:
                alone = parsed(model, text) if told.tells_trees else found
                scores = beside_branching(alone.trees, gold, model.labels_)
                notes += [ALONE] if told.tells_trees else []
        shown = grammar_shown(model, None if found is None else found.trees, notes, scores)
        brief = shown if self.summary else shown.first(MOST_SYMBOLS)

        def tell() -> None:
            watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
            if self.summary or not watched:
                self._draw(found, to_stderr=not self.summary)
                print_overview(brief, summary=self.summary, as_json=False)
            if self.grammar_text == "-":
                print_text(self._rules(model))
            elif found is not None and not self.summary:
                print_text(joined(found.lines()))
            if watched and not self.summary:
                self._draw(found, to_stderr=True)
                print_overview(brief, summary=False, as_json=False)

        try_all(tell, *self._files(model, shown, found))

    def _draw(self, found: Parsed | None, *, to_stderr: bool) -> None:
        """Some trees, for eyes."""
        from softcount.hmm.report import chosen

        if found is None or not self.show:
            return
        lengths = [0 if tree is None else len(tree.words()) for tree in found.trees]
        numbers = chosen(lengths, self.show)
        some = Parsed(found.text.select(numbers), [found.trees[i] for i in numbers])
        for drawing in some.drawings():
            typer.echo(drawing, err=to_stderr)

    def _rules(self, model: PCFG) -> str:
        """The grammar as a text."""
        dense = "words" in model.params_
        return joined([str(model.grammar() if dense else model.grammar(0.0))])

    def _files(self, model: PCFG, shown: GrammarShown, found: Parsed | None) -> Iterator[Deed]:
        """The files beside the model."""
        from softcount.cli.answers import called
        from softcount.grammar.report import page_of
        from softcount.show.report import write_whole

        def write_rules(name: str) -> None:
            write_whole(Path(name), self._rules(model), "the rules", "--grammar-text")

        def write_page(path: Path) -> None:
            where = self.file or self.known.treebank or self.known.trees or ""
            title = f"A grammar of {called(where)}"
            text, trees = (None, ()) if found is None else (found.text, found.trees)
            page = page_of(model, shown, text, trees, title=title)
            write_whole(path, page, "the page", "--report")

        yield at(None if self.grammar_text == "-" else self.grammar_text, write_rules)
        yield at(self.html, write_page)


# ``softcount parse``.


BATCH = 256
"""So many sentences are parsed at a time: what is printed comes soon, and memory stays small."""


def parse(
    ctx: typer.Context,
    model: Model,
    file: ToParse = "-",
    method: Method_ = Method.VITERBI,
    k_best: KBest = None,
    draw: Draw = False,
    brackets: ParseBrackets = None,
    labels: Labels = False,
    gold: ParseGold = None,
    prune: Prune = 0.0,
    threads: options.Threads = None,
) -> None:
    """Find the trees of sentences by a grammar.

    Prints the tree of every sentence in Penn brackets: exactly one line for each line of the file,
    a blank one for a blank one, as soon as sentences come. A sentence that has no tree is a flat
    one, (FAILED (XX word) (XX word) …), and stderr counts them. Brackets in words are -LRB- and
    -RRB-.

    \b
    softcount parse grammar.softcount new.txt > trees.txt
    softcount parse grammar.softcount new.txt --method labelled --gold new.mrg > trees.txt
    softcount parse grammar.softcount new.txt --k-best 5
    echo 'the dog barks' | softcount parse grammar.softcount --draw
    """
    if k_best is not None:
        refuse_with(ctx, "--k-best", ("method", "draw"), "it prints the most probable trees")
    if labels and brackets is None:
        raise typer.BadParameter("--labels needs --brackets")
    refuse_two_of_stdin(file, brackets, gold)
    with readable_errors():
        from softcount.cli.models import load_grammar

        grammar = load_grammar(model, threads, prune)
        _ParseJob(grammar, file, method, k_best, draw, brackets, labels, gold).run()


@dataclass(frozen=True)
class _ParseJob:
    """What is to be parsed, and what is wanted of it."""

    model: PCFG
    file: str
    method: Method
    k_best: int | None
    draw: bool
    brackets: str | None
    labels: bool
    gold: str | None
    failures: list[int] = field(default_factory=list)

    def run(self) -> None:
        """Print trees as sentences come; then say what there is to be said of all of them."""
        from softcount.hmm.command import print_text

        gold, reader = self._gold(), self._reader()
        kept: list[Tree | None] = []
        total = 0
        for text in self._batches():
            found, printed = self._parsed(text, None if reader is None else reader.take(text))
            print_text(printed)
            if total == 0:
                say(remark_on_brackets(text))
                say(remark_on_pruning(self.model, text))
            self.failures.extend(found.failures)
            total += len(text)
            if gold is not None:
                kept += found.trees
        if reader is not None:
            reader.demand_end()
        say(remark_on(self.failures, total))
        if gold is not None:
            demand_as_many("--gold", gold.origin, len(gold), total, "trees")
            for line in beside_gold(kept, gold, self.model.labels_):
                typer.echo(line, err=True)

    def _batches(self) -> Iterator[Sequences]:
        for piece in stream_sentences(self.file):
            yield from batches(piece, BATCH)

    def _gold(self) -> Trees | None:
        if self.gold is None:
            return None
        return read_trees(self.gold, cleaning_for(self.model.labels_))

    def _reader(self) -> BracketReader | None:
        if self.brackets is None:
            return None
        from softcount.cli.lines import numbered

        symbols = self.model.labels_
        lines = numbered(self.brackets)
        return BracketReader(lines, self.brackets, cleaning_for(symbols), self.labels, symbols)

    def _parsed(self, text: Sequences, known: object) -> tuple[Parsed, str]:
        """Trees, and what is printed of them."""
        if self.k_best is not None:
            return best_lines(self.model, text, self.k_best, known)
        found = parsed(self.model, text, method=self.method.value, brackets=known)
        return found, joined(found.drawings() if self.draw else found.lines())
