"""``softcount grammar`` and ``softcount parse``."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

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
from softcount.grammar.parameters import PCFGParameters

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

# Reading: rules, trees, sentences, and what is known of their brackets

SPANS = (
    "write nothing, a tree, brackets around the sentence's words, or spans: 0-2 NP:3-5, the end "
    "being the first word behind"
)
_PART = re.compile(r"[()]|[^\s()]+")
_SPAN = re.compile(r"(?:(?P<label>.+):)?(?P<start>[0-9]+)-(?P<end>[0-9]+)")
FEWEST_OPEN = 2
"""The fewest words that begin with a bracket, the first among them, if it may be a tree."""
LONGEST_NUMBER = 9
"""Digits that the place of a word may have."""
UNLABELLED = "X"
"""The label of constituents of files that have none."""


def read_rules(path: str) -> GrammarRules:
    """Read rules from a file; messages name it and the line."""
    from softcount.grammar.rules import parse_rules
    from softcount.text.lines import decode_text, strip_mark

    name = name_source(path)
    raw = b"".join(strip_mark(read_pieces(path)))
    text = decode_text(raw, lambda line: f"{name}:{line + 1}")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rules = parse_rules(text.replace("\r\n", "\n"))
    except DataError as error:  # "line 3 has two arrows" becomes "rules.txt:3 has two arrows"
        line = re.match(r"line (\d+) ", error.message)
        place = f"{name}:{line[1]} " if line else f"{name}: "
        raise DataError(place + error.message[line.end() if line else 0 :], error.hint) from None
    for warning in caught:
        typer.echo(f"softcount: warning: {name}: {warning.message}", err=True)
    return rules


def choose_cleaning(keep_functions: bool) -> list[Change]:
    """What is done to trees of files: traces are removed, and functions, unless they are kept."""
    from softcount.text.treebank import remove_functions, remove_traces

    return [remove_traces] if keep_functions else [remove_traces, remove_functions]


def read_trees(path: str, changes: Sequence[Change]) -> Trees:
    """Read the trees of a file, and change them; constituents without a label get one."""
    from softcount.text.treebank import from_pieces

    trees = from_pieces(read_pieces(path), name_source(path), unlabelled=UNLABELLED)
    return trees.changed(*changes)


def check_one_each(option: str, path: str, n: int, n_sentences: int, what: str) -> None:
    """Raise an error if there is not one for each sentence."""
    if n != n_sentences:
        raise DataError(
            f"{option} {path}: {n:,} {what}, while there are {n_sentences:,} sentences",
            "give one for each sentence, in the same order; a blank line where nothing is known",
        )


def is_treebank(path: str) -> bool:
    """Whether a file has trees instead of plain sentences, by its name."""
    return path.removesuffix(".gz").endswith(".mrg")


def read_sentences_of_trees(path: str) -> Sequences:
    """Read the sentences of trees."""
    from softcount.text.sequences import sequences

    return sequences(read_trees(path, choose_cleaning(keep_functions=True)).words())


def warn_of_trees(text: Sequences) -> None:
    """Warn of trees that are taken for sentences, going by the first one that has words."""
    for n in range(len(text)):
        if words := text.sentence(n):
            n_open = sum(word.startswith("(") for word in words)
            if words[0].startswith("(") and n_open >= FEWEST_OPEN:
                say(
                    f"warning: {text.name(n)} looks like a tree, and its brackets are taken for "
                    "words; the sentences of trees are read from files called .mrg"
                )
            return


class BracketReader:
    """Reads brackets line by line, beside sentences as they come.

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
        self.lines, self.path, self.changes = lines, path, changes
        self.labels, self.known = labels, known

    def read(self, text: Sequences) -> list[list[Bracket]]:
        """Read the brackets of the next sentences."""
        found = []
        for n in range(len(text)):
            number, line = next(self.lines, (None, ""))
            if number is None:
                raise DataError(
                    f"--brackets {self.path} has no line for {text.name(n)}",
                    "give a line for each sentence, a blank one where nothing is known",
                )
            where = f"{name_source(self.path)}:{number}"
            found.append(self._read_line(line, where, text.sentence(n)))
        return found

    def check_end(self) -> None:
        """Raise an error if there are brackets of sentences that are not there."""
        number, _ = next(self.lines, (None, ""))
        if number is not None:
            raise DataError(
                f"--brackets {name_source(self.path)}:{number} has no sentence",
                "give a line for each sentence, in the same order",
            )

    def _read_line(self, line: str, where: str, words: Sequence[str]) -> list[Bracket]:
        from softcount.text.trees import find_crossing

        if (unlabelled := read_bracketed_words(line, where, words)) is not None:
            return unlabelled
        if line.lstrip().startswith("("):
            found = self._read_tree(line, where, words)
        else:
            found = [read_span(part, where, len(words)) for part in line.split()]
            for n, (_, start, end) in enumerate(found):
                for _, first, last in find_crossing(found[:n], start, end):
                    raise DataError(
                        f"{where} has the spans {first}-{last} and {start}-{end}, which cross",
                        "leave one of them out",
                    )
        for label, _, _ in found:
            if label is not None and self.known is not None and label not in self.known:
                raise DataError(
                    f"{where} has the label {brief(label)}, which the grammar has not",
                    "leave it out: 3-5 says that there is a constituent, whatever it is",
                )
        return found

    def _read_tree(self, line: str, where: str, words: Sequence[str]) -> list[Bracket]:
        from softcount.grammar.data import find_other_word
        from softcount.text.treebank import compose
        from softcount.text.trees import escape_brackets, parse_whole

        def name_place(place: int) -> str:
            return f"{where}, character {place + 1}"

        tree = compose(*self.changes)(parse_whole(line, name_place, UNLABELLED))
        if tree is None:
            return []
        lower = [[escape_brackets(word).lower() for word in some] for some in (tree.words(), words)]
        if difference := find_other_word(*lower):
            raise DataError(
                f"{where} has other words than its sentence: {difference}",
                "give the trees of the same sentences in the same order",
            )
        return [(label if self.labels else None, start, end) for label, start, end in tree.spans()]


def read_bracketed_words(line: str, where: str, words: Sequence[str]) -> list[Bracket] | None:
    """Read brackets around the words of a sentence; None if the line is something else.

    >>> read_bracketed_words("she (sees (a dog))", "known.txt:1", "she sees a dog".split())
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


def read_span(part: str, where: str, n: int) -> Bracket:
    """Read a span of a sentence of n words: 3-5 or NP:3-5.

    >>> read_span("NP:3-5", "known.txt:1", 7), read_span("0-2", "known.txt:1", 7)
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


@dataclass(frozen=True, eq=False)
class GrammarData:
    """Sentences, and what is known of their trees.

    ``text``      None: there are no sentences to be parsed, and those of the trees are learned from
    ``trees``     those of sentences, None where a tree is unknown
    ``brackets``  those of each sentence
    ``gold``      trees to compare with
    """

    text: Sequences | None
    trees: Trees | None = None
    brackets: Sequence[list[Bracket]] | None = None
    gold: Trees | None = None

    def __len__(self) -> int:
        some = self.trees if self.text is None else self.text
        return 0 if some is None else len(some)

    def select_short(self, longest: int | None) -> tuple[GrammarData, list[str]]:
        """The sentences of at most ``longest`` words, with their own vocabulary; and a remark."""
        from softcount.text.sequences import sequences

        if self.text is not None:
            lengths = self.text.lengths.tolist()
        else:
            lengths = [] if self.trees is None else [len(words) for words in self.trees.words()]
        chosen = [n for n, length in enumerate(lengths) if longest is None or length <= longest]
        if len(chosen) == len(lengths):
            return self, []
        if not any(lengths[n] for n in chosen):
            raise DataError(
                f"--max-length {longest}: all sentences are longer", "let them have more words"
            )
        text, trees, brackets = self.text, self.trees, self.brackets
        if text is not None:
            some = text.select(chosen)
            own = sequences([some.sentence(n) for n in range(len(some))])
            text = replace(own, origin=some.origin, numbers=some.numbers)
        if trees is not None:
            trees = trees.select(chosen)
        if brackets is not None:
            brackets = [brackets[n] for n in chosen]
        remark = (
            f"{len(lengths) - len(chosen):,} of {len(lengths):,} sentences have more than "
            f"{longest} words, and are not learned from"
        )
        return GrammarData(text, trees, brackets), [remark]


# Trees of sentences as both commands print and score them

FAILED, TAG = "FAILED", "XX"
"""The mark of a sentence without a tree, and what stands for the tags of its words."""
SEPARATOR = " ||| "


def say(remark: str) -> None:
    """A remark on stderr."""
    typer.echo(f"softcount: {remark}", err=True)


def mark_failed(words: Sequence[str]) -> Tree:
    """What stands for the tree of a sentence that has none.

    >>> print(mark_failed(["no", "(", "way"]))
    (FAILED (XX no) (XX -LRB-) (XX way))
    """
    from softcount.text.trees import Tree

    return Tree(FAILED, tuple(Tree(TAG, (word,)) for word in words))


@dataclass(frozen=True, eq=False)
class Parses:
    """Trees of sentences: None if one is empty, or has none."""

    text: Sequences
    trees: Sequence[Tree | None]

    def shown(self) -> list[Tree | None]:
        """Failed sentences are marked; those without words have None."""
        sentences = (self.text.sentence(n) for n in range(len(self.trees)))
        return [
            (tree or mark_failed(words)) if words else None
            for words, tree in zip(sentences, self.trees, strict=True)
        ]

    def lines(self) -> list[str]:
        """Penn brackets, exactly one line for each sentence."""
        return ["" if tree is None else str(tree) for tree in self.shown()]

    def drawings(self) -> list[str]:
        """The trees drawn, with an empty line below each."""
        from softcount.grammar.report import draw_tree

        return [f"{draw_tree(tree)}\n" for tree in self.shown() if tree is not None]

    @property
    def failures(self) -> list[int]:
        """Lines of sentences that have words and no tree, from 1."""
        lengths = self.text.lengths.tolist()
        return [
            number_line(self.text, n)
            for n, (tree, length) in enumerate(zip(self.trees, lengths, strict=True))
            if tree is None and length
        ]


def number_line(text: Sequences, n: int) -> int:
    """The line of a sentence, from 1."""
    return (n if text.numbers is None else int(text.numbers[n])) + 1


def without_warnings() -> AbstractContextManager[object]:
    """Nothing is said of sentences without a tree: lines and remarks name them."""
    from softcount.core.warnings import ImpossibleWarning

    return warnings.catch_warnings(action="ignore", category=ImpossibleWarning)


def parse_text(
    model: PCFG, text: Sequences, *, method: str = "viterbi", brackets: Any = None
) -> Parses:
    """The tree of each sentence, with words as they are written there."""
    with without_warnings():
        found = model.predict(text, brackets=brackets, method=method)
    return Parses(text, [restore_words(model, tree, text, n) for n, tree in enumerate(found)])


def restore_words(model: PCFG, tree: Tree | None, text: Sequences, n: int) -> Tree | None:
    """A tree with the words of its sentence, which the model may have in lower case."""
    from softcount.text.trees import from_spans

    if tree is None or not model.lowercase:
        return tree
    return from_spans(text.sentence(n), tree.spans())


def join_lines(lines: Iterable[str]) -> str:
    """Lines, each with its end."""
    return "".join(f"{line}\n" for line in lines)


def describe_failures(failures: Sequence[int], total: int) -> list[str]:
    """A sentence on those without a tree, if there are any."""
    if not failures:
        return []
    have, are = ("has", "is") if len(failures) == 1 else ("have", "are")
    return [
        f"{list_lines(failures)} of {total:,} {have} no tree by this grammar, and "
        f"{are} marked ({FAILED} …)"
    ]


def score_trees(found: Sequence[Tree | None], gold: Trees, labels: Sequence[str]) -> list[str]:
    """Unlabelled scores, and labelled ones if any labels are the same."""
    from softcount.grammar.metrics import bracket_scores

    scores = str(bracket_scores(found, gold)).splitlines()
    theirs = {node.label for tree in gold if tree is not None for node in tree.nodes()}
    if theirs.intersection(labels):
        scores += str(bracket_scores(found, gold, labelled=True)).splitlines()
    return scores


def score_baselines(gold: Trees) -> list[str]:
    """Scores of trees that know nothing but how many words there are, punctuation aside."""
    from softcount.grammar.metrics import bracket_scores, left_branching, right_branching
    from softcount.text.treebank import remove_punctuation

    sentences, lines = gold.changed(remove_punctuation).words(), []
    for name, branch in (("right", right_branching), ("left", left_branching)):
        scores = bracket_scores([branch(words) if words else None for words in sentences], gold)
        lines.append(
            f"{name}-branching trees: F1 {100 * scores.f1:.1f}, mean F1 "
            f"{100 * scores.sentence_f1:.1f}, exact {100 * scores.exact:.1f}%"
        )
    return lines


ArgumentFile = partial(Argument, metavar="FILE")
InputFile = partial(Input, metavar="FILE")
OutputFile = partial(Output, metavar="FILE")
BracketLabels = Annotated[
    bool, Input("The labels of trees in --brackets are right, too; else only the brackets.")
]


# softcount grammar

NOT_COUNTED = (
    *("n_components", "n_preterminals", "rules", "brackets", "labels", "trees", "max_length"),
    *("init", "smoothing", "learner", "max_iter", "tol", "n_init", "dtype", "seed"),
)
"""Options that are of no use with a treebank, whose rules are counted."""
MORE_TAGS = 1.5
"""The number of preterminals for each nonterminal, unless it is given."""
MOST_SYMBOLS = 60
"""The most symbols that stderr lists: annotated symbols of a treebank are thousands."""
ALONE = "scores are of trees that were found without --brackets and --trees"


class GrammarAnswer(NamedTuple):
    """A grammar, and the trees of the sentences by it, if there are any."""

    model: PCFG
    parses: Parses | None
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
    declared = PCFGParameters
    takes: ClassVar = {
        **{"n_components": ("-k", "--n-components"), "n_preterminals": (), "horizontal": ()},
        **{"vertical": (), "smoothing": (), "dtype": (), "lowercase": ()},
    }
    n_components: int | None
    n_preterminals: int | None
    smoothing: float
    lowercase: bool

    file: Annotated[
        str | None,
        ArgumentFile(
            "One sentence a line, words between spaces; .gz too; - is stdin. Trees (.mrg): their "
            "sentences. If not given: stdin, or with --treebank or --trees nothing."
        ),
    ] = None
    rules: Annotated[
        str | None,
        InputFile(
            "Learn the probabilities of these rules: S -> NP VP [0.9] | VP [0.1], words in quotes; "
            "without probabilities all begin alike."
        ),
    ] = None
    treebank: Annotated[
        str | None,
        InputFile(
            "Take all rules of these trees (Penn brackets), by how often they are used. Nothing is "
            "learned from FILE: its sentences are parsed."
        ),
    ] = None
    brackets: Annotated[
        str | None,
        InputFile(
            "What is known of the trees, a line for each line of FILE: nothing; or a tree, whose "
            "brackets no other constituent crosses; or the sentence with brackets in it, she (sees "
            "(a dog)); or spans, 0-2 NP:3-5, from the first word, which is 0, to the first one "
            "behind."
        ),
    ] = None
    labels: BracketLabels = False
    trees: Annotated[
        str | None,
        InputFile(
            "The whole trees of sentences, a line for each line of FILE, blank if it is unknown; "
            "without FILE, what is learned from."
        ),
    ] = None
    keep_functions: Annotated[
        bool,
        Input("Labels of trees stay as they are; else NP-SBJ-1 is NP. Traces are left out anyway."),
    ] = False
    max_length: Annotated[
        int | None,
        Input(
            "Learn from no sentence of more words; they are parsed all the same.",
            metavar="N",
            least=1,
        ),
    ] = None
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
        int, Output("Draw the trees of N sentences, evenly spread.", metavar="N", least=0)
    ] = 0
    gold: Annotated[
        str | None,
        OutputFile(
            "Say how well the brackets agree with those of these trees, which are of the same "
            "sentences, beside trees that branch to the right and to the left. Of what is known of "
            "the trees nothing is used for this."
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

    def read(self, model: None) -> GrammarData:
        text = trees = brackets = gold = None
        self.cleaning = choose_cleaning(self.keep_functions)
        if self.file is not None:
            if is_treebank(self.file):
                text = read_sentences_of_trees(self.file)
            else:
                text = read_text(self.file, "lines").sequences
            warn_of_trees(text)
        if self.gold is not None and text is not None:
            gold = read_trees(self.gold, self.cleaning)
            check_one_each("--gold", self.gold, len(gold), len(text), "trees")
        self.given_rules = None if self.rules is None else read_rules(self.rules)
        if self.trees is not None:
            trees = read_trees(self.trees, self.cleaning)
            if text is not None:
                check_one_each("--trees", self.trees, len(trees), len(text), "trees")
        if self.brackets is not None and text is not None:
            lines = list(read_lines(self.brackets))
            check_one_each("--brackets", self.brackets, len(lines), len(text), "lines")
            known = None if self.given_rules is None else self.given_rules.symbols
            reader = BracketReader(iter(lines), self.brackets, self.cleaning, self.labels, known)
            brackets = reader.read(text)
        data = GrammarData(text, trees, brackets, gold)
        self.short, self.notes = data.select_short(self.max_length)
        return data

    def make(self, data: GrammarData) -> PCFG:
        from softcount.grammar import PCFG
        from softcount.text.treebank import lowercase

        settings = {**self.learning(self.make_learner_if_asked()), **self.settings()}
        if self.treebank is not None:
            for name in ("learner", "random_state"):
                del settings[name]
            changes = [*self.cleaning, *([lowercase] if self.lowercase else [])]
            return PCFG.from_treebank(read_trees(self.treebank, changes), **settings)
        given = self.smoothing if self.is_given("smoothing") else None
        settings |= {"smoothing": self.choose_smoothing(given, 0.1), "init": self.init}
        if self.given_rules is not None:
            return PCFG.from_rules(self.given_rules, **settings)
        if self.n_preterminals is None and self.n_components is not None and self.trees is None:
            settings["n_preterminals"] = math.ceil(MORE_TAGS * self.n_components)
        return PCFG(**settings)

    def size(self, data: GrammarData) -> int:
        return len(self.short)

    def fit(self, model: PCFG, data: GrammarData, progress: Progress) -> None:
        if self.treebank is None:
            short = self.short
            model.fit(short.text, short.trees, short.brackets, on_step=progress)

    def answer(self, model: PCFG, data: GrammarData) -> GrammarAnswer:
        from softcount.grammar.report import summarise_grammar

        notes, scores, parses = [*self.notes], list[str](), None
        if data.text is not None:
            parses = self._parse_with_supervision(model, data, data.text)
            notes += describe_failures(parses.failures, len(parses.trees))
            if data.gold is not None:
                alone = parses
                if data.trees is not None or data.brackets is not None:
                    alone = parse_text(model, data.text)
                    notes.append(
                        "scores are of trees that were found without --brackets and --trees"
                    )
                scores = score_trees(alone.trees, data.gold, model.labels_)
                scores += score_baselines(data.gold)
        overview = summarise_grammar(model, None if parses is None else parses.trees, notes, scores)
        overview = overview if self.summary else overview.first(MOST_SYMBOLS)
        return GrammarAnswer(model, parses, overview)

    def _parse_with_supervision(self, model: PCFG, data: GrammarData, text: Sequences) -> Parses:
        """The tree of each sentence that agrees with its brackets; those that are known stay."""
        from softcount.text.trees import from_spans

        brackets = None
        if data.brackets is not None:  # of sentences that were too long, labels may be new
            labels = {*model.labels_}
            brackets = [
                [(label if label in labels else None, start, end) for label, start, end in some]
                for some in data.brackets
            ]
        trees = list(parse_text(model, text, brackets=brackets).trees)
        for n, tree in enumerate(data.trees or ()):
            if tree is not None:
                trees[n] = from_spans(text.sentence(n), tree.spans())
        return Parses(text, trees)

    # what is printed
    def tell(self, found: GrammarAnswer) -> None:
        watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
        if self.summary or not watched:
            self._print_overview(found)
        if self.grammar_text == "-":
            print_text(write_rules(found.model))
        elif found.parses is not None and not self.summary:
            print_text(join_lines(found.parses.lines()))
        if watched and not self.summary:
            self._print_overview(found)

    def _print_overview(self, found: GrammarAnswer) -> None:
        """Some trees, drawn, and what was learned."""
        from softcount.hmm.report import choose_sentences

        if found.parses is not None and self.show:
            trees = found.parses.trees
            lengths = [0 if tree is None else len(tree.words()) for tree in trees]
            numbers = choose_sentences(lengths, self.show)
            some = Parses(found.parses.text.select(numbers), [trees[i] for i in numbers])
            for drawing in some.drawings():
                typer.echo(drawing, err=not self.summary)
        found.overview.print(sys.stdout if self.summary else sys.stderr)

    def page(self, found: GrammarAnswer) -> str:
        from softcount.grammar.report import grammar_page

        text, trees = (found.parses.text, found.parses.trees) if found.parses else (None, ())
        title = f"A grammar of {name_file(self.file or self.treebank or self.trees or '')}"
        return grammar_page(found.model, found.overview, text, trees, title=title)

    def files(self, found: Callable[[], GrammarAnswer]) -> Iterator[Deed]:
        from softcount.report.page import write_whole

        def write(name: str) -> None:
            write_whole(Path(name), write_rules(found().model), "the rules", "--grammar-text")

        yield at(None if self.grammar_text == "-" else self.grammar_text, write)


def write_rules(model: PCFG) -> str:
    """The grammar as a text."""
    dense = "words" in model.params_
    return join_lines([str(model.grammar() if dense else model.grammar(0.0))])


# softcount parse

BATCH = 256
"""The number of sentences that are parsed at a time: output comes soon, and memory stays small."""
PRUNING_SAMPLE = 100
"""The number of sentences that are parsed with pruning and without it, to say what they lose."""


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
        ArgumentFile(
            "One sentence a line, words between spaces; .gz too; - is stdin. Trees (.mrg): their "
            "sentences."
        ),
    ] = "-"
    brackets: Annotated[
        str | None,
        InputFile(
            "What is known of the trees: see softcount grammar. Labels of spans (NP:3-5) count, "
            "those of trees with --labels."
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
            "is twice as fast. stderr says what the first sentences lose by it.",
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
    draw: Annotated[bool, Output("Draw the trees instead of printing brackets.")] = False
    gold: Annotated[
        str | None,
        OutputFile(
            "Say how well the trees agree with these, which are of the same sentences: brackets, "
            "labelled ones if labels are the same, and how many sentences have a tree at all."
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
        from softcount.text.treebank import remove_functions
        from softcount.text.trees import Tree

        model = load_model(self.model, self.name, self._restore)
        labels = model.labels_  # functions of trees are kept if the grammar has some
        plain = all(remove_functions(Tree(label, ("a",))).label == label for label in labels)
        cleaning = choose_cleaning(keep_functions=not plain)
        gold = None if self.gold is None else read_trees(self.gold, cleaning)
        reader = None
        if self.brackets is not None:
            lines = read_lines(self.brackets)
            reader = BracketReader(lines, self.brackets, cleaning, self.labels, labels)
        trees: list[Tree | None] = []
        failures: list[int] = []
        total = 0
        for text in self._stream_batches():
            brackets = None if reader is None else reader.read(text)
            if self.k_best is not None:
                parses, printed = self._parse_k_best(model, text, self.k_best, brackets)
            else:
                parses = parse_text(model, text, method=self.method, brackets=brackets)
                printed = parses.drawings() if self.draw else parses.lines()
            print_text(join_lines(printed))
            if total == 0:
                warn_of_trees(text)
                self._tell_pruning_loss(model, text)
            failures += parses.failures
            total += len(text)
            if gold is not None:
                trees += parses.trees
        if reader is not None:
            reader.check_end()
        for remark in describe_failures(failures, total):
            say(remark)
        if gold is not None:
            check_one_each("--gold", gold.origin, len(gold), total, "trees")
            pairs = [pair for pair in zip(trees, gold, strict=True) if pair[1] is not None]
            n = sum(tree is not None for tree, _ in pairs)
            share = n / max(len(pairs), 1)
            coverage = f"coverage {share:.1%}: {n:,} of {len(pairs):,} have a tree"
            for line in (*score_trees(trees, gold, labels), coverage):
                typer.echo(line, err=True)

    def _stream_batches(self) -> Iterator[Sequences]:
        """Sentences as they come, at most `BATCH` at a time."""
        if is_treebank(self.file):
            pieces: Iterable[Sequences] = [read_sentences_of_trees(self.file)]
        else:
            pieces = (piece.sequences for piece in stream_text(self.file, "lines"))
        for piece in pieces:
            for first in range(0, len(piece), BATCH):
                yield piece.select(slice(first, first + BATCH))

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

    def _parse_k_best(
        self, model: PCFG, text: Sequences, k: int, brackets: Any
    ) -> tuple[Parses, list[str]]:
        """The best tree of each sentence, and lines of the k best of all."""
        best: list[Tree | None] = []
        lines: list[str] = []
        with without_warnings():
            found = model.k_best(text, k, brackets=brackets)
        for n, some in enumerate(found):
            trees = [(log_p, restore_words(model, tree, text, n)) for log_p, tree in some]
            best.append(trees[0][1] if trees else None)
            if not trees and (words := text.sentence(n)):
                trees = [(-math.inf, mark_failed(words))]
            number = str(number_line(text, n))
            lines += [SEPARATOR.join((number, f"{log_p:.6f}", str(tree))) for log_p, tree in trees]
        return Parses(text, best), lines

    def _tell_pruning_loss(self, model: PCFG, text: Sequences) -> None:
        """What the first sentences lose by pruning."""
        if model.prune:
            lost = model.pruning_loss(
                [text.sentence(n) for n in range(min(len(text), PRUNING_SAMPLE))]
            )
            say(
                f"--prune: of {lost.sentences} sentences, {lost.worse_trees} have a less probable "
                f"tree; log p is {lost.mean:.2g} lower on average, {lost.worst:.2g} at worst; "
                f"{lost.parsed_again} were parsed again with nothing left out"
            )
