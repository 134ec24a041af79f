"""``softcount grammar`` and ``softcount parse``."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from softcount.cli.answers import list_lines, name_file, print_text
from softcount.cli.frame import Command, Deed, LearningCommand, at, load_model, refuse_two_of_stdin
from softcount.cli.options import (
    OTHER_LEARNERS,
    Argument,
    Input,
    LearnerOptions,
    Learning,
    Model,
    Output,
    ThreadsOption,
    read_learner_name,
)
from softcount.cli.reading import name_source, read_lines, read_pieces, read_text, stream_text
from softcount.cli.targets import WRITTEN, WRITTEN_OR_PRINTED
from softcount.core.errors import DataError, LearnerError, brief

if TYPE_CHECKING:
    from softcount.cli.frame import Progress
    from softcount.core.store import Stored
    from softcount.grammar import PCFG
    from softcount.grammar.data import Bracket
    from softcount.grammar.report import GrammarOverview
    from softcount.grammar.rules import GrammarRules
    from softcount.text.sequences import Sequences
    from softcount.text.treebank import Change, Trees
    from softcount.text.trees import Tree

BracketLabels = Annotated[
    bool,
    Input("The labels of trees in --brackets are right, too; else only the brackets."),
]


# what files say of a grammar and of the trees of sentences: rules, treebanks, brackets
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
def read_rules(path: str) -> GrammarRules:
    """Rules from a file; messages name it and the line."""
    from softcount.grammar.rules import parse_rules
    from softcount.text.lines import decode_text, strip_mark

    raw = b"".join(strip_mark(read_pieces(path)))
    text = decode_text(raw, lambda line: f"{name_source(path)}:{line + 1}")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rules = parse_rules(text.replace("\r\n", "\n"))
    except DataError as error:
        raise DataError(_placed(error.message, name_source(path)), error.hint) from None
    for warning in caught:
        typer.echo(f"softcount: warning: {name_source(path)}: {warning.message}", err=True)
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
    from softcount.text.treebank import remove_functions, remove_traces

    return [remove_traces] if keep_functions else [remove_traces, remove_functions]


def cleaning_for(labels: Collection[str]) -> list[Change]:
    """The same for a grammar with these labels: functions are kept if it has some."""
    from softcount.text.treebank import remove_functions
    from softcount.text.trees import Tree

    plain = all(remove_functions(Tree(label, ("a",))).label == label for label in labels)
    return cleaning(not plain)


def read_trees(path: str, changes: Sequence[Change]) -> Trees:
    """The trees of a file, with these changes; constituents without a label have one."""
    from softcount.text.treebank import from_pieces

    return from_pieces(read_pieces(path), name_source(path), unlabelled=UNLABELLED).changed(
        *changes
    )


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
    return _of_trees(path) if _has_trees(path) else read_text(path, "lines").sequences


def stream_sentences(path: str) -> Iterator[Sequences]:
    """Sentences as they come, those that are there together."""
    if _has_trees(path):
        yield _of_trees(path)
        return
    yield from (piece.sequences for piece in stream_text(path, "lines"))


def _has_trees(path: str) -> bool:
    return path.removesuffix(".gz").endswith(".mrg")


def _of_trees(path: str) -> Sequences:
    from softcount.text.sequences import sequences

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
    lines = list(read_lines(path))
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
            found.append(self._of(line, f"{name_source(self.path)}:{number}", text.sentence(n)))
        return found

    def demand_end(self) -> None:
        """Complain of brackets of sentences that are not there."""
        number, _ = next(self.lines, (None, ""))
        if number is not None:
            raise DataError(
                f"--brackets {name_source(self.path)}:{number} has no sentence",
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
        from softcount.grammar.data import find_other_word
        from softcount.text.treebank import compose
        from softcount.text.trees import escape_brackets, parse_whole

        tree = compose(*self.changes)(
            parse_whole(line, lambda place: f"{where}, character {place + 1}", unlabelled="X")
        )
        if tree is None:
            return []
        lower = [[escape_brackets(word).lower() for word in some] for some in (tree.words(), words)]
        if difference := find_other_word(*lower):
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
                    f"{where} has the label {brief(label)}, which the grammar has not",
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
        raise DataError(f"{where} has {brief(part)}, which is no span", SPANS)
    digits = found["start"], found["end"]
    start, end = (int(some) if len(some) <= LONGEST_NUMBER else sys.maxsize for some in digits)
    if not start < end <= n:
        raise DataError(
            f"{where} has the span {brief(part)}, but its sentence has {n} words",
            "start is the first word, from 0, end the first one behind",
        )
    return found["label"], start, end


def _demand_nested(some: Sequence[Bracket], where: str) -> None:
    from softcount.text.trees import find_crossing

    for n, (_, start, end) in enumerate(some):
        for _, first, last in find_crossing(some[:n], start, end):
            raise DataError(
                f"{where} has the spans {first}-{last} and {start}-{end}, which cross",
                "leave one of them out",
            )


# what is learned from
MORE_TAGS = 1.5
"""Words have so many times the symbols that constituents have, if nothing is said of them."""


@dataclass(frozen=True)
class TreeFiles:
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
    from softcount.text.sequences import sequences

    some = [text.sentence(n) for n in chosen]
    import numpy as np

    numbers = np.array(chosen) if text.numbers is None else text.numbers[chosen]
    return replace(sequences(some), origin=text.origin, numbers=numbers)


def read_lessons(
    text: Sequences | None, files: TreeFiles, symbols: Sequence[str] | None
) -> Lessons:
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


def choose_preterminals(n: int | None, p: int | None, files: TreeFiles) -> int | None:
    """How many symbols words have; None: as many as trees say.

    >>> choose_preterminals(5, None, TreeFiles()), choose_preterminals(5, 3, TreeFiles())
    (8, 3)
    """
    if p is not None or n is None or files.trees is not None:
        return p
    return math.ceil(MORE_TAGS * n)


# trees of sentences as both commands print and score them
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
    from softcount.text.trees import Tree

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
        from softcount.grammar.report import draw_tree

        found = []
        for n, tree in enumerate(self.trees):
            words = self.text.sentence(n)
            if words:
                found.append(f"{draw_tree(failed(words) if tree is None else tree)}\n")
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
    from softcount.core.warnings import ImpossibleWarning

    with warnings.catch_warnings(action="ignore", category=ImpossibleWarning):
        yield


def parse_text(
    model: PCFG, text: Sequences, *, method: str = "viterbi", brackets: Any = None
) -> Parsed:
    """The tree of each sentence, with words as they are written there."""
    with in_silence():
        found = model.predict(text, brackets=brackets, method=method)
    return Parsed(text, [_spelt(model, tree, text, n) for n, tree in enumerate(found)])


def parse_as_told(model: PCFG, text: Sequences, told: Lessons) -> Parsed:
    """The tree of each sentence that agrees with its brackets; those that are known stay."""
    from softcount.text.trees import from_spans

    brackets = None
    if told.brackets is not None:  # of sentences that were too long, labels may be new
        labels = {*model.labels_}
        brackets = [
            [(label if label in labels else None, start, end) for label, start, end in some]
            for some in told.brackets
        ]
    found = list(parse_text(model, text, brackets=brackets).trees)
    for n, tree in enumerate(told.trees or ()):
        if tree is not None:
            found[n] = from_spans(text.sentence(n), tree.spans())
    return Parsed(text, found)


def _spelt(model: PCFG, tree: Tree | None, text: Sequences, n: int) -> Tree | None:
    """A tree with the words of its sentence, which the model may have in lower case."""
    from softcount.text.trees import from_spans

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
        f"{list_lines(failures)} of {total:,} {are} no tree by this grammar, and "
        f"{'is' if len(failures) == 1 else 'are'} marked ({FAILED} …)"
    )


def remark_on_pruning(model: PCFG, text: Sequences) -> str:
    """What the first sentences lose by what is left out; empty if nothing is."""
    if not model.prune:
        return ""
    first = [text.sentence(n) for n in range(min(len(text), TOLD))]
    lost = model.pruning_loss(first)
    return (
        f"--prune: of {lost.sentences} sentences, {lost.worse_trees} have a less probable tree; "
        f"log p is {lost.mean:.2g} lower on average, {lost.worst:.2g} at worst; "
        f"{lost.parsed_again} were parsed again with nothing left out"
    )


# beside gold trees
def bare(gold: Tree) -> list[str]:
    """The words of a gold tree that count."""
    from softcount.text.treebank import remove_punctuation

    left = remove_punctuation(gold)
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


# softcount grammar
NOT_COUNTED = (
    *("n_components", "n_preterminals", "rules", "brackets", "labels", "trees", "max_length"),
    *("init", "smoothing", "learner", "max_iter", "tol", "n_init", "dtype", "seed"),
)
MOST_SYMBOLS = 60
"""So many are told of on stderr; treebanks have thousands, if symbols know what is around them."""
ALONE = "scores are of trees that were found without --brackets and --trees"


class GrammarText(NamedTuple):
    """Sentences to be parsed, and their gold trees; None where there are none."""

    text: Sequences | None
    gold: Trees | None


class GrammarFound(NamedTuple):
    """A grammar, and the trees of the sentences by it, if there are any."""

    model: PCFG
    parsed: Parsed | None
    overview: GrammarOverview


class LearnGrammar(LearnerOptions, LearningCommand):
    """Learn how sentences are made: a probabilistic context-free grammar, and their trees.

    Prints the best tree of every sentence in Penn brackets: exactly one line for each line of the
    file, a blank one for a blank one. A sentence without a tree is a flat one, (FAILED (XX word)
    …), and stderr names its line. Nothing need be known (then say -k); or the rules, or some
    brackets, which the trees agree with, or some trees, which stay as they are; or there is a
    treebank, whose rules are counted. What was learned goes to stderr.

    \b
    softcount grammar sentences.txt -k 20 --save my.softcount --html grammar.html > trees.txt
    softcount grammar sentences.txt --rules rules.txt --grammar-text learned.txt
    softcount grammar sentences.txt -k 15 --brackets known.txt --gold gold.mrg
    softcount grammar --treebank wsj.mrg --horizontal 1 --vertical 2 --save wsj.softcount
    softcount parse wsj.softcount new.txt
    """

    without = ("load",)

    file: Annotated[
        str | None,
        Argument(
            "One sentence a line, words between spaces; .gz too; - is stdin. Trees (.mrg): their "
            "sentences. If not given: stdin, or with --treebank or --trees nothing.",
            metavar="FILE",
        ),
    ] = None
    rules: Annotated[
        str | None,
        Input(
            "Learn the probabilities of these rules: S -> NP VP [0.9] | VP [0.1], words in quotes; "
            "without probabilities all begin alike.",
            metavar="FILE",
        ),
    ] = None
    treebank: Annotated[
        str | None,
        Input(
            "Take all rules of these trees (Penn brackets), as often as they are there. Nothing is "
            "learned from FILE: its sentences are parsed.",
            metavar="FILE",
        ),
    ] = None
    brackets: Annotated[
        str | None,
        Input(
            "What is known of the trees, a line for each line of FILE: nothing; or a tree, whose "
            "brackets no other constituent crosses; or the sentence with brackets in it, she (sees "
            "(a dog)); or spans, 0-2 NP:3-5, from the first word, which is 0, to the first one "
            "behind.",
            metavar="FILE",
        ),
    ] = None
    labels: BracketLabels = False
    trees: Annotated[
        str | None,
        Input(
            "The whole trees of sentences, a line for each line of FILE, blank if it is unknown; "
            "without FILE, what is learned from.",
            metavar="FILE",
        ),
    ] = None
    keep_functions: Annotated[
        bool,
        Input("Labels of trees stay as they are; else NP-SBJ-1 is NP. Traces are left out anyway."),
    ] = False
    lowercase: Annotated[bool, Input("Learn from words in lower case; a saved model does too.")] = (
        False
    )
    max_length: Annotated[
        int | None,
        Input(
            "Learn from no sentence of more words; they are parsed all the same.",
            metavar="N",
            least=1,
        ),
    ] = None
    n_components: Annotated[
        int | None,
        Model(
            "How many symbols constituents may have: a grammar with every rule A -> B C.",
            "-k",
            "--n-components",
            least=1,
        ),
    ] = None
    n_preterminals: Annotated[
        int | None,
        Model(
            "How many symbols words may have. [else half as many again as -k; with --trees, as "
            "many as these have]",
            least=1,
        ),
    ] = None
    horizontal: Annotated[
        int | None,
        Model(
            "With --treebank: a long rule is taken apart, its parts knowing N neighbours to the "
            "left. Not given: rules as they are.",
            metavar="N",
            least=0,
        ),
    ] = None
    vertical: Annotated[
        int,
        Model(
            "With --treebank: symbols know N - 1 of those above them, so that NP below S is not NP "
            "below VP. Trees have plain labels.",
            metavar="N",
            least=1,
        ),
    ] = 1
    smoothing: Annotated[
        float | None,
        Model(
            "Add this to every count; for vb, svb, gibbs and collapsed-gibbs, their prior. [else "
            "0.1 for those, 0 for others]",
            least=0.0,
        ),
    ] = None
    dtype: Annotated[
        str,
        Model(
            "float64; or float32: less exact, in less time (not with --rules and --treebank).",
            choices=("float64", "float32"),
        ),
    ] = "float64"
    learner: Annotated[
        str | None,
        Learning(
            f"If not given, em (inside-outside). {OTHER_LEARNERS}",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None
    init: Annotated[
        str | None,
        Learning(
            "Where to start: random, or with --rules also uniform. [else the probabilities of "
            "--rules, what labels say, or random]",
            choices=("random", "uniform"),
        ),
    ] = None
    summary: Annotated[bool, Output("Print what was learned to stdout, instead of the lines.")] = (
        False
    )
    show: Annotated[
        int, Output("Draw the trees of so many sentences, evenly spread.", metavar="N", least=0)
    ] = 0
    gold: Annotated[
        str | None,
        Output(
            "Say how well the brackets agree with those of these trees, which are of the same "
            "sentences, beside trees that branch to the right and to the left. Of what is known of "
            "the trees nothing is used for this.",
            metavar="FILE",
        ),
    ] = None
    grammar_text: Annotated[
        str | None,
        Output(
            "Write the rules to this file, as --rules reads them; of learned ones those with a "
            "probability of 0.0001 and more. - prints them instead of the trees.",
            metavar="FILE",
            file=WRITTEN_OR_PRINTED,
        ),
    ] = None
    save: Annotated[
        Path | None,
        Output(
            "Keep the grammar in this file, for softcount parse and softcount.load.",
            metavar="MODEL",
            file=WRITTEN,
        ),
    ] = None
    html: Annotated[
        Path | None,
        Output(
            "Write a page to this file: symbols with their rules and words, trees, the course of "
            "learning.",
            metavar="PAGE.html",
            file=WRITTEN,
        ),
    ] = None

    def check(self) -> None:
        if self.learner == "spectral":
            raise typer.BadParameter("--learner spectral is for documents, and for softcount tag")
        if self.treebank is not None:
            self.refuse("--treebank", NOT_COUNTED, "its rules are counted, and nothing learned")
        else:
            needs = ("horizontal", "vertical")
            self.refuse("a grammar without --treebank", needs, "they are about its rules")
            if self.rules is not None:
                names = ("n_components", "n_preterminals", "dtype")
                self.refuse("--rules", names, "they say which symbols there are")
            elif self.n_components is None and self.trees is None:
                raise typer.BadParameter(
                    "which symbols? give -k, or --rules, --treebank or --trees"
                )
        if self.labels and self.brackets is None:
            raise typer.BadParameter("--labels needs --brackets")
        if self.file is None and (self.treebank is not None or self.trees is not None):
            if not (self.save or self.html or self.summary or self.grammar_text):
                raise typer.BadParameter("nothing to parse: give FILE, or --save")
            if self.brackets is not None or self.gold is not None or self.show:
                raise typer.BadParameter("--brackets, --gold and --show need FILE, the sentences")
        elif self.file is None:
            if sys.stdin is not None and sys.stdin.isatty():
                raise typer.BadParameter("no sentences: give a file, or - to type them")
            self.file = "-"
        refuse_two_of_stdin(
            self.file, self.rules, self.treebank, self.brackets, self.trees, self.gold
        )

    def read(self, model: None) -> GrammarText:
        self.known = TreeFiles(
            self.rules, self.treebank, self.brackets, self.trees, self.labels, self.keep_functions
        )
        text = None if self.file is None else read_sentences(self.file)
        gold = None
        if text is not None:
            say(remark_on_brackets(text))
            if self.gold is not None:
                gold = read_trees(self.gold, self.known.changes)
                demand_as_many("--gold", self.gold, len(gold), len(text), "trees")
        return GrammarText(text, gold)

    def make(self, data: GrammarText) -> PCFG:
        """The grammar; what files say of the sentences is read as well, for it may have labels
        that the rules do not have."""
        from softcount.grammar import PCFG

        settings = self.learning(self.make_learner_if_asked())
        settings["lowercase"] = self.lowercase
        self.lessons = self.short_lessons = Lessons(data.text)
        self.remarks: list[str] = []
        if self.treebank is not None:
            settings |= {"horizontal": self.horizontal, "vertical": self.vertical}
            return self._count_rules(settings)
        settings["smoothing"] = self.choose_smoothing(self.smoothing, 0.1)
        settings["init"] = self.init
        symbols = None
        if self.rules is not None:
            model = PCFG.from_rules(read_rules(self.rules), **settings)
            symbols = model.labels_
        else:
            words = choose_preterminals(self.n_components, self.n_preterminals, self.known)
            settings |= {"n_components": self.n_components, "n_preterminals": words}
            model = PCFG(dtype=self.dtype, **settings)
        self.lessons = read_lessons(data.text, self.known, symbols)
        self.short_lessons, remark = self.lessons.up_to(self.max_length)
        self.remarks = [remark] if remark else []
        return model

    def _count_rules(self, settings: dict[str, Any]) -> PCFG:
        """The grammar of a treebank."""
        from softcount.grammar import PCFG
        from softcount.text.treebank import lowercase

        for name in ("learner", "random_state"):
            del settings[name]
        changes = [*self.known.changes, *([lowercase] if self.lowercase else [])]
        return PCFG.from_treebank(read_trees(self.treebank or "", changes), **settings)

    def size(self, data: GrammarText) -> int:
        return len(self.short_lessons)

    def fit(self, model: PCFG, data: GrammarText, progress: Progress) -> None:
        some = self.short_lessons
        if self.treebank is None:
            model.fit(some.text, some.trees, some.brackets, on_step=progress)

    def answer(self, model: PCFG, data: GrammarText) -> GrammarFound:
        from softcount.grammar.report import summarise_grammar

        told, notes, found = self.lessons, list(self.remarks), None
        scores: list[str] = []
        if data.text is not None:
            found = parse_as_told(model, data.text, told)
            remark = remark_on(found.failures, len(found.trees))
            notes += [remark] if remark else []
            if data.gold is not None:
                alone = parse_text(model, data.text) if told.tells_trees else found
                scores = beside_branching(alone.trees, data.gold, model.labels_)
                notes += [ALONE] if told.tells_trees else []
        overview = summarise_grammar(model, None if found is None else found.trees, notes, scores)
        overview = overview if self.summary else overview.first(MOST_SYMBOLS)
        return GrammarFound(model, found, overview)

    # what is printed
    def tell(self, found: GrammarFound) -> None:
        watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
        if self.summary or not watched:
            self._draw(found)
            found.overview.print(sys.stdout if self.summary else sys.stderr)
        if self.grammar_text == "-":
            print_text(_write_rules(found.model))
        elif found.parsed is not None and not self.summary:
            print_text(joined(found.parsed.lines()))
        if watched and not self.summary:
            self._draw(found)
            found.overview.print(sys.stderr)

    def _draw(self, found: GrammarFound) -> None:
        """Some trees, for eyes."""
        from softcount.hmm.report import choose_sentences

        if found.parsed is None or not self.show:
            return
        trees = found.parsed.trees
        lengths = [0 if tree is None else len(tree.words()) for tree in trees]
        numbers = choose_sentences(lengths, self.show)
        some = Parsed(found.parsed.text.select(numbers), [trees[i] for i in numbers])
        for drawing in some.drawings():
            typer.echo(drawing, err=not self.summary)

    def page(self, found: GrammarFound) -> str:
        from softcount.grammar.report import grammar_page

        where = self.file or self.treebank or self.trees or ""
        parsed = found.parsed
        text, trees = (None, ()) if parsed is None else (parsed.text, parsed.trees)
        title = f"A grammar of {name_file(where)}"
        return grammar_page(found.model, found.overview, text, trees, title=title)

    def files(self, found: Callable[[], GrammarFound]) -> Iterator[Deed]:
        from softcount.report.page import write_whole

        def write_rules(name: str) -> None:
            write_whole(Path(name), _write_rules(found().model), "the rules", "--grammar-text")

        yield at(None if self.grammar_text == "-" else self.grammar_text, write_rules)


def _write_rules(model: PCFG) -> str:
    """The grammar as a text."""
    dense = "words" in model.params_
    return joined([str(model.grammar() if dense else model.grammar(0.0))])


# softcount parse
BATCH = 256
"""So many sentences are parsed at a time: what is printed comes soon, and memory stays small."""


class Parse(Command):
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

    model: Annotated[
        Path, Argument("A grammar, as softcount grammar has saved it.", metavar="MODEL")
    ]
    file: Annotated[
        str,
        Argument(
            "One sentence a line, words between spaces; .gz too; - is stdin. Trees (.mrg): their "
            "sentences.",
            metavar="FILE",
        ),
    ] = "-"
    brackets: Annotated[
        str | None,
        Input(
            "What is known of the trees: see softcount grammar. Labels of spans (NP:3-5) count, "
            "those of trees with --labels.",
            metavar="FILE",
        ),
    ] = None
    labels: BracketLabels = False
    method: Annotated[
        str,
        Model(
            "viterbi: the most probable tree. brackets: that of the most expected brackets. "
            "labelled: of the most expected brackets with labels.",
            choices=("viterbi", "brackets", "labelled"),
        ),
    ] = "viterbi"
    prune: Annotated[
        float,
        Model(
            "Grammars of rules: leave out what is less probable than P by a coarse grammar; 1e-5 "
            "is twice as fast. What the first sentences lose by it is told.",
            metavar="P",
            least=0.0,
            most=0.5,
        ),
    ] = 0.0
    threads: ThreadsOption = None
    k_best: Annotated[
        int | None,
        Output(
            "Print the N most probable trees of each sentence, the best first: line ||| log p ||| "
            "tree. A blank line has none.",
            metavar="N",
            least=1,
        ),
    ] = None
    draw: Annotated[bool, Output("Draw the trees, for eyes, instead of printing brackets.")] = False
    gold: Annotated[
        str | None,
        Output(
            "Say how well the trees agree with these, which are of the same sentences: brackets, "
            "labelled ones if labels are the same, and how many sentences have a tree at all.",
            metavar="FILE",
        ),
    ] = None

    def check(self) -> None:
        if self.k_best is not None:
            self.refuse("--k-best", ("method", "draw"), "it prints the most probable trees")
        if self.labels and self.brackets is None:
            raise typer.BadParameter("--labels needs --brackets")
        refuse_two_of_stdin(self.file, self.brackets, self.gold)

    def run(self) -> None:
        """Print trees as sentences come; then say what there is to be said of all of them."""
        model = load_model(self.model, self.name, self._restore)
        changes = cleaning_for(model.labels_)
        gold = None if self.gold is None else read_trees(self.gold, changes)
        reader = None
        if self.brackets is not None:
            lines = read_lines(self.brackets)
            reader = BracketReader(lines, self.brackets, changes, self.labels, model.labels_)
        kept: list[Tree | None] = []
        failures: list[int] = []
        total = 0
        for piece in stream_sentences(self.file):
            for text in batches(piece, BATCH):
                known = None if reader is None else reader.take(text)
                found, printed = self._parse(model, text, known)
                print_text(printed)
                if total == 0:
                    say(remark_on_brackets(text))
                    say(remark_on_pruning(model, text))
                failures.extend(found.failures)
                total += len(text)
                if gold is not None:
                    kept += found.trees
        if reader is not None:
            reader.demand_end()
        say(remark_on(failures, total))
        if gold is not None:
            demand_as_many("--gold", gold.origin, len(gold), total, "trees")
            for line in beside_gold(kept, gold, model.labels_):
                typer.echo(line, err=True)

    def _restore(self, kind: type[PCFG], stored: Stored) -> PCFG:
        from softcount.engines import Local

        given = {"prune": self.prune} if self.prune else {}  # if not, it is as the model has it
        model = kind.restore(stored, engine=Local(self.threads), **given)
        if self.prune and model.rules is None:
            raise LearnerError(
                f"--prune {self.prune:g}: nothing is left out of a dense grammar, as {self.model} "
                "has one",
                "leave out --prune",
            )
        return model

    def _parse(self, model: PCFG, text: Sequences, known: object) -> tuple[Parsed, str]:
        """Trees, and what is printed of them."""
        if self.k_best is not None:
            return best_lines(model, text, self.k_best, known)
        found = parse_text(model, text, method=self.method, brackets=known)
        return found, joined(found.drawings() if self.draw else found.lines())
