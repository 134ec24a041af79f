"""The ``softcount grammar`` and ``softcount parse`` commands."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from softcount.cli.answers import Spool, list_lines, name_file, print_text
from softcount.cli.frame import Action, Command, LearningCommand, if_given, load_model
from softcount.cli.options import (
    OTHER_LEARNERS,
    Argument,
    EngineOptions,
    Input,
    LearnerOptions,
    Learning,
    Model,
    Output,
    read_learner_name,
)
from softcount.cli.reading import (
    name_source,
    open_folder,
    read_lines,
    read_pieces,
    read_text,
    stream_text,
)
from softcount.cli.targets import WRITTEN, WRITTEN_OR_PRINTED
from softcount.core.errors import DataError, LearnerError, brief
from softcount.grammar.parameters import PCFGParameters

if TYPE_CHECKING:
    from softcount.cli.frame import FitProgress
    from softcount.core.store import Stored
    from softcount.grammar import PCFG
    from softcount.grammar.data import Bracket
    from softcount.grammar.report import GrammarOverview
    from softcount.grammar.rules import GrammarRules
    from softcount.text.sequences import Sequences
    from softcount.text.treebank import Change, Trees
    from softcount.text.trees import Tree

# Reading: rules, trees, sentences, and known brackets

SPANS = (
    "leave the line blank, or write a tree, the sentence with brackets, or spans start-end such as "
    "0-2 NP:3-5, where end is exclusive"
)
_PART = re.compile(r"[()]|[^\s()]+")
_SPAN = re.compile(r"(?:(?P<label>.+):)?(?P<start>[0-9]+)-(?P<end>[0-9]+)")
FEWEST_OPEN = 2
"""A line looks like a tree if this many of its words, including the first, begin with ``(``."""
LONGEST_NUMBER = 9
"""Maximum number of digits read as a word position; longer numbers are out of range anyway."""
UNLABELLED = "X"
"""The label given to unlabelled constituents of files."""


def read_rules(path: str) -> GrammarRules:
    """Read rules from a file; errors name the file and the line."""
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
    """Choose the cleaning of trees: remove traces and, unless kept, function labels."""
    from softcount.text.treebank import remove_functions, remove_traces

    return [remove_traces] if keep_functions else [remove_traces, remove_functions]


def read_trees(path: str, changes: Sequence[Change]) -> Trees:
    """Read the trees of a file and apply the changes; unlabelled constituents get a label."""
    from softcount.text.treebank import from_pieces

    trees: Trees = open_folder(path, "trees")
    if trees is None:
        trees = from_pieces(read_pieces(path), name_source(path), unlabelled=UNLABELLED)
    return trees.changed(*changes)


def check_one_each(option: str, path: str, n: int, n_sentences: int, what: str) -> None:
    """Raise if there is not exactly one of ``what`` for each sentence."""
    if n != n_sentences:
        raise DataError(
            f"{option} {path} has {n:,} {what}, but there are {n_sentences:,} sentences",
            "give one for each sentence, in the same order; a blank line where nothing is known",
        )


def is_treebank(path: str) -> bool:
    """Return whether a file holds trees rather than plain sentences, judging by its name."""
    return path.removesuffix(".gz").endswith(".mrg")


def read_sentences_of_trees(path: str) -> Sequences:
    """Read the sentences (the leaves) of the trees of a file."""
    from softcount.text.sequences import sequences

    return sequences(read_trees(path, choose_cleaning(keep_functions=True)).words())


def warn_of_trees(text: Sequences) -> None:
    """Warn if the first non-empty sentence looks like a tree."""
    for n in range(len(text)):
        if words := text.sentence(n):
            n_open = sum(word.startswith("(") for word in words)
            if words[0].startswith("(") and n_open >= FEWEST_OPEN:
                say(
                    f"warning: {text.name(n)} looks like a tree, but its brackets are read as "
                    "words; to read the sentences of trees, give a file named *.mrg"
                )
            return


class BracketReader:
    """Reader of known brackets, line by line, in step with the sentences as they arrive.

    ``lines``    numbered lines of the file of brackets
    ``changes``  changes applied to lines that are trees
    ``labels``   whether the labels of trees are constraints too
    ``known``    the labels of the grammar; None: any
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
        brackets = []
        for n in range(len(text)):
            number, line = next(self.lines, (None, ""))
            if number is None:
                raise DataError(
                    f"--brackets {self.path} has no line for {text.name(n)}",
                    "give one line for each sentence, blank where nothing is known",
                )
            where = f"{name_source(self.path)}:{number}"
            brackets.append(self._read_line(line, where, text.sentence(n)))
        return brackets

    def check_end(self) -> None:
        """Raise if there are more lines of brackets than sentences."""
        number, _ = next(self.lines, (None, ""))
        if number is not None:
            raise DataError(
                f"--brackets {name_source(self.path)}:{number} has no corresponding sentence",
                "give one line for each sentence, in the same order",
            )

    def _read_line(self, line: str, where: str, words: Sequence[str]) -> list[Bracket]:
        from softcount.text.trees import find_crossing

        if (unlabelled := read_bracketed_words(line, where, words)) is not None:
            return unlabelled
        if line.lstrip().startswith("("):
            brackets = self._read_tree(line, where, words)
        else:
            brackets = [read_span(part, where, len(words)) for part in line.split()]
            for n, (_, start, end) in enumerate(brackets):
                for _, first, last in find_crossing(brackets[:n], start, end):
                    raise DataError(
                        f"{where} has the spans {first}-{last} and {start}-{end}, which cross",
                        "leave one of them out",
                    )
        for label, _, _ in brackets:
            if label is not None and self.known is not None and label not in self.known:
                raise DataError(
                    f"{where} has the label {brief(label)}, which is not in the grammar",
                    "omit the label: 3-5 stands for a constituent with any label",
                )
        return brackets

    def _read_tree(self, line: str, where: str, words: Sequence[str]) -> list[Bracket]:
        from softcount.grammar.data import find_other_word
        from softcount.text.treebank import compose
        from softcount.text.trees import escape_brackets, parse_whole

        def name_place(place: int) -> str:
            return f"{where}, character {place + 1}"

        tree = compose(*self.changes)(parse_whole(line, name_place, UNLABELLED))
        if tree is None:
            return []
        lower = [[escape_brackets(word).lower() for word in side] for side in (tree.words(), words)]
        if difference := find_other_word(*lower):
            raise DataError(
                f"{where} differs from its sentence: {difference}",
                "give the trees of the same sentences in the same order",
            )
        return [(label if self.labels else None, start, end) for label, start, end in tree.spans()]


def read_bracketed_words(line: str, where: str, words: Sequence[str]) -> list[Bracket] | None:
    """Read a sentence with brackets around some of its words; None if the line is not one.

    >>> read_bracketed_words("she (sees (a dog))", "known.txt:1", "she sees a dog".split())
    [(None, 2, 4), (None, 1, 4)]
    """
    parts = _PART.findall(line)
    bracketed = [part.lower() for part in parts if part not in "()"]
    if len(bracketed) == len(parts) or bracketed != [word.lower() for word in words]:
        return None
    brackets: list[Bracket] = []
    starts: list[int] = []
    place = 0
    for part in parts:
        if part == "(":
            starts.append(place)
        elif part != ")":
            place += 1
        elif not starts or starts[-1] == place:
            what = "an empty pair of brackets" if starts else "an unmatched )"
            raise DataError(f"{where} has {what}", "put brackets around words: she (sees (a dog))")
        else:
            brackets.append((None, starts.pop(), place))
    if starts:
        raise DataError(f"{where} has {len(starts)} unclosed (", "close each ( with a )")
    return brackets


def read_span(part: str, where: str, n: int) -> Bracket:
    """Read a span of a sentence of n words: 3-5 or NP:3-5.

    >>> read_span("NP:3-5", "known.txt:1", 7), read_span("0-2", "known.txt:1", 7)
    (('NP', 3, 5), (None, 0, 2))
    """
    match = _SPAN.fullmatch(part)
    if match is None:
        raise DataError(f"{where} has {brief(part)}, which is not a span", SPANS)
    numbers = match["start"], match["end"]
    start, end = (
        int(digits) if len(digits) <= LONGEST_NUMBER else sys.maxsize for digits in numbers
    )
    if not start < end <= n:
        raise DataError(
            f"{where} has the span {brief(part)}, but its sentence has {n} words",
            "a span is start-end: words are counted from 0, and end is exclusive",
        )
    return match["label"], start, end


@dataclass(frozen=True, eq=False)
class GrammarData:
    """Sentences with whatever is known about their trees.

    ``text``      the sentences to learn from and parse; None: learn from the trees' own sentences
    ``trees``     a tree for each sentence, None where unknown
    ``brackets``  the known brackets of each sentence
    ``gold``      trees for evaluation
    """

    text: Sequences | None
    trees: Trees | None = None
    brackets: Sequence[list[Bracket]] | None = None
    gold: Trees | None = None

    def __len__(self) -> int:
        items = self.trees if self.text is None else self.text
        return 0 if items is None else len(items)

    def select_short(self, longest: int | None) -> tuple[GrammarData, list[str]]:
        """Select the sentences of at most ``longest`` words, with a vocabulary of their own.

        Returns them with a list of remarks on what was left out.
        """
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
                f"--max-length {longest}: all sentences are longer", "raise --max-length"
            )
        text, trees, brackets = self.text, self.trees, self.brackets
        if text is not None:
            short = text.select(chosen)
            renumbered = sequences([short.sentence(n) for n in range(len(short))])
            text = replace(renumbered, origin=short.origin, numbers=short.numbers)
        if trees is not None:
            trees = trees.select(chosen)
        if brackets is not None:
            brackets = [brackets[n] for n in chosen]
        remark = (
            f"{len(lengths) - len(chosen):,} of {len(lengths):,} sentences have more than "
            f"{longest} words, and are not used for learning"
        )
        return GrammarData(text, trees, brackets), [remark]


# Printing and scoring trees, for both commands

FAILED, TAG = "FAILED", "XX"
"""The root label of the flat tree that stands for a failed parse, and the tag of its words."""
SEPARATOR = " ||| "


def say(remark: str) -> None:
    """Print a remark on stderr."""
    typer.echo(f"softcount: {remark}", err=True)


def mark_failed(words: Sequence[str]) -> Tree:
    """Make the flat placeholder tree of a sentence that could not be parsed.

    >>> print(mark_failed(["no", "(", "way"]))
    (FAILED (XX no) (XX -LRB-) (XX way))
    """
    from softcount.text.trees import Tree

    return Tree(FAILED, tuple(Tree(TAG, (word,)) for word in words))


@dataclass(frozen=True, eq=False)
class Parses:
    """Parsed sentences; the tree is None if a sentence is empty or has no parse."""

    text: Sequences
    trees: Sequence[Tree | None]

    def shown(self) -> list[Tree | None]:
        """Return the trees with placeholders for failed parses; None for empty sentences."""
        sentences = (self.text.sentence(n) for n in range(len(self.trees)))
        return [
            (tree or mark_failed(words)) if words else None
            for words, tree in zip(sentences, self.trees, strict=True)
        ]

    def lines(self) -> list[str]:
        """Format the trees in Penn brackets, exactly one line for each sentence."""
        return ["" if tree is None else str(tree) for tree in self.shown()]

    def drawings(self) -> list[str]:
        """Draw the trees, with an empty line below each."""
        from softcount.grammar.report import draw_tree

        return [f"{draw_tree(tree)}\n" for tree in self.shown() if tree is not None]

    @property
    def failures(self) -> list[int]:
        """Line numbers, from 1, of non-empty sentences without a tree."""
        lengths = self.text.lengths.tolist()
        return [
            number_line(self.text, n)
            for n, (tree, length) in enumerate(zip(self.trees, lengths, strict=True))
            if tree is None and length
        ]


def number_line(text: Sequences, n: int) -> int:
    """Return the line number of sentence ``n``, from 1."""
    return (n if text.numbers is None else int(text.numbers[n])) + 1


def without_warnings() -> AbstractContextManager[object]:
    """Silence `ImpossibleWarning`: the commands report failed sentences themselves."""
    from softcount.core.warnings import ImpossibleWarning

    return warnings.catch_warnings(action="ignore", category=ImpossibleWarning)


def parse_text(
    model: PCFG, text: Sequences, *, method: str = "viterbi", brackets: Any = None
) -> Parses:
    """Parse each sentence; trees keep the words as they are written in the text."""
    with without_warnings():
        trees = model.predict(text, brackets=brackets, method=method)
    return Parses(text, [restore_words(model, tree, text, n) for n, tree in enumerate(trees)])


def restore_words(model: PCFG, tree: Tree | None, text: Sequences, n: int) -> Tree | None:
    """Put the original words back into a tree whose model lower-cases them."""
    from softcount.text.trees import from_spans

    if tree is None or not model.lowercase:
        return tree
    return from_spans(text.sentence(n), tree.spans())


def join_lines(lines: Iterable[str]) -> str:
    """Join lines, each terminated by a newline."""
    return "".join(f"{line}\n" for line in lines)


def describe_failures(failures: Sequence[int], total: int) -> list[str]:
    """Return a remark on the sentences without a tree, if there are any."""
    if not failures:
        return []
    have, are = ("has", "is") if len(failures) == 1 else ("have", "are")
    return [
        f"{list_lines(failures)} of {total:,} {have} no tree under this grammar, and "
        f"{are} marked ({FAILED} …)"
    ]


def score_trees(trees: Sequence[Tree | None], gold: Trees, labels: Sequence[str]) -> list[str]:
    """Compute unlabelled scores, and labelled ones if grammar and gold share any label."""
    from softcount.grammar.metrics import bracket_scores

    scores = str(bracket_scores(trees, gold)).splitlines()
    gold_labels = {node.label for tree in gold if tree is not None for node in tree.nodes()}
    if gold_labels.intersection(labels):
        scores += str(bracket_scores(trees, gold, labelled=True)).splitlines()
    return scores


def score_baselines(gold: Trees) -> list[str]:
    """Compute the scores of right- and left-branching trees over the words but punctuation."""
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


ArgumentFile = partial(Argument)
InputFile = partial(Input)
OutputFile = partial(Output)
BracketLabels = Annotated[
    bool, Input("Use the labels of trees in --brackets too, not only their brackets.")
]


# softcount grammar

NOT_COUNTED = (
    *("n_components", "n_preterminals", "rules", "brackets", "labels", "trees", "max_length"),
    *("init", "smoothing", "learner", "max_iter", "tol", "n_init", "dtype", "seed"),
)
"""Options that do not apply to --treebank, whose rules are counted rather than learned."""
MORE_TAGS = 1.5
"""Default number of preterminals per nonterminal."""
MOST_SYMBOLS = 60
"""Maximum number of symbols listed on stderr: an annotated treebank has thousands."""
ALONE = "scores are of trees that were found without --brackets and --trees"


class GrammarAnswer(NamedTuple):
    """A grammar, its parses of sentences, and the overview to print.

    ``lines``   the trees as they are printed
    ``parses``  all trees; None without sentences, or if only their lines are wanted
    """

    model: PCFG
    lines: Spool
    parses: Parses | None
    overview: GrammarOverview


class LearnGrammar(LearnerOptions, LearningCommand):
    """Learn a probabilistic context-free grammar from sentences, and parse them.

    Prints the best tree of every sentence in Penn brackets: exactly one output line for each input
    line, blank for blank. A sentence that cannot be parsed becomes a flat tree, (FAILED (XX word)
    …), and stderr names its line. Learning may be unsupervised (give -k), or use given rules, or
    some known brackets, which the printed trees respect, or some known trees, which are printed as
    they are; or rules are counted in a treebank. A summary of the grammar goes to stderr.

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
            "One sentence per line, words separated by spaces; may be gzipped; - is stdin. Or a "
            "corpus on disk, of sentences or trees. Of trees (.mrg), the sentences are read. "
            "Default: stdin, or no file with --treebank or --trees."
        ),
    ] = None
    rules: Annotated[
        str | None,
        InputFile(
            "Learn the probabilities of these rules: S -> NP VP [0.9] | VP [0.1], words in quotes. "
            "The probabilities are initial values; without them, rules start out equal."
        ),
    ] = None
    treebank: Annotated[
        str | None,
        InputFile(
            "Estimate the grammar by counting the rules of these trees (Penn brackets). FILE is "
            "only parsed, not learned from."
        ),
    ] = None
    brackets: Annotated[
        str | None,
        InputFile(
            "Known brackets, one line for each line of FILE: blank; or a tree, whose brackets no "
            "constituent may cross; or the sentence with brackets, she (sees (a dog)); or spans, "
            "0-2 NP:3-5, counting words from 0, end exclusive."
        ),
    ] = None
    labels: BracketLabels = False
    trees: Annotated[
        str | None,
        InputFile(
            "Known trees, one line for each line of FILE, blank if unknown; without FILE, the "
            "trees to learn from."
        ),
    ] = None
    keep_functions: Annotated[
        bool,
        Input(
            "Keep function labels of trees; by default, NP-SBJ-1 becomes NP. Traces are removed."
        ),
    ] = False
    max_length: Annotated[
        int | None,
        Input(
            "Learn only from sentences of at most N words; longer ones are still parsed.",
            metavar="N",
            least=1,
        ),
    ] = None
    learner: Annotated[
        str | None,
        Learning(
            f"Default: em (inside-outside). {OTHER_LEARNERS}",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None
    init: Annotated[
        str | None,
        Learning(
            "Initial parameters: random, or with --rules also uniform. [default: the "
            "probabilities of --rules, or the labels of trees, or random]",
            choices=("random", "uniform"),
        ),
    ] = None
    summary: Annotated[bool, Output("Print a summary of the grammar instead of the trees.")] = False
    show: Annotated[
        int, Output("Draw the trees of N evenly spaced sentences.", metavar="N", least=0)
    ] = 0
    gold: Annotated[
        str | None,
        OutputFile(
            "Score the brackets against these trees of the same sentences, beside right- and "
            "left-branching baselines. --brackets and --trees are not used for the scored trees."
        ),
    ] = None
    grammar_text: Annotated[
        str | None,
        Output(
            "Write the rules to this file, as --rules reads them; of a dense grammar, those with "
            "probability at least 0.0001. - prints them instead of the trees.",
            file=WRITTEN_OR_PRINTED,
        ),
    ] = None
    save: Annotated[
        Path | None,
        Output(
            "Save the grammar to this file, for softcount parse and softcount.load.",
            metavar="MODEL",
            file=WRITTEN,
        ),
    ] = None
    html: Annotated[
        Path | None,
        Output(
            "Write an HTML page to this file: symbols with their rules and words, trees, the "
            "learning curve.",
            metavar="PAGE.html",
            file=WRITTEN,
        ),
    ] = None

    def check(self) -> None:
        if self.learner == "spectral":
            raise typer.BadParameter(
                "--learner spectral is not available for grammars (only for documents and tagging)"
            )
        if self.treebank is not None:
            self.refuse("--treebank", NOT_COUNTED, "its rules are counted, not learned")
        else:
            needs = ("horizontal", "vertical")
            self.refuse("a grammar without --treebank", needs, "they annotate treebank rules")
            if self.rules is not None:
                names = ("n_components", "n_preterminals", "dtype")
                self.refuse("--rules", names, "the rules determine the symbols")
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

    def read(self, model: None) -> GrammarData:
        text = trees = brackets = gold = None
        self.cleaning = choose_cleaning(self.keep_functions)
        if self.file is not None:
            corpus = open_folder(self.file, "sentences", "trees")
            if corpus is not None:
                text = getattr(corpus, "sentences", corpus)  # those of trees
            elif is_treebank(self.file):
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
        self.short, self.remarks = data.select_short(self.max_length)
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

    def fit(self, model: PCFG, data: GrammarData, progress: FitProgress) -> None:
        if self.treebank is None:
            short = self.short
            model.fit(short.text, short.trees, short.brackets, **self.fit_options(progress))

    def answer(self, model: PCFG, data: GrammarData) -> GrammarAnswer:
        from softcount.grammar.report import count_labels, summarise_grammar
        from softcount.text.corpora import in_parts

        notes, scores, parses = [*self.remarks], list[str](), None
        lines, counts, failures = Spool(), Counter[str](), list[int]()
        if data.text is not None:
            wanted = (data.gold, data.trees, data.brackets, self.html, self.show or None)
            if any(one is not None for one in wanted):
                parses = self._parse_with_supervision(model, data, data.text)
            # otherwise the trees of a large corpus are not kept
            parts = (parse_text(model, part) for part in in_parts(data.text))
            for part in parts if parses is None else [parses]:
                lines.write(join_lines(part.lines()))
                counts += count_labels(part.trees)
                failures += part.failures
            notes += describe_failures(failures, len(data.text))
            if parses is not None and data.gold is not None:
                alone = parses
                if data.trees is not None or data.brackets is not None:
                    alone = parse_text(model, data.text)
                    notes.append(ALONE)
                scores = score_trees(alone.trees, data.gold, model.labels_)
                scores += score_baselines(data.gold)
        overview = summarise_grammar(model, counts, notes, scores)
        overview = overview if self.summary else overview.first(MOST_SYMBOLS)
        return GrammarAnswer(model, lines, parses, overview)

    def _parse_with_supervision(self, model: PCFG, data: GrammarData, text: Sequences) -> Parses:
        """Parse each sentence subject to its brackets; known trees are kept as they are."""
        from softcount.text.trees import from_spans

        brackets = None
        if data.brackets is not None:  # sentences left out by --max-length may have new labels
            labels = {*model.labels_}
            brackets = [
                [(label if label in labels else None, start, end) for label, start, end in spans]
                for spans in data.brackets
            ]
        trees = list(parse_text(model, text, brackets=brackets).trees)
        for n, tree in enumerate(data.trees or ()):
            if tree is not None:
                trees[n] = from_spans(text.sentence(n), tree.spans())
        return Parses(text, trees)

    # printing
    def print_results(self, found: GrammarAnswer) -> None:
        interactive = sys.stdout.isatty()  # then the overview comes last, where it stays visible
        if self.summary or not interactive:
            self._print_overview(found)
        if self.grammar_text == "-":
            print_text(write_rules(found.model))
        elif not self.summary:
            found.lines.print()
        if interactive and not self.summary:
            self._print_overview(found)

    def _print_overview(self, found: GrammarAnswer) -> None:
        """Print the drawings of some trees, and the overview of the grammar."""
        from softcount.hmm.report import choose_sentences

        if found.parses is not None and self.show:
            trees = found.parses.trees
            lengths = [0 if tree is None else len(tree.words()) for tree in trees]
            numbers = choose_sentences(lengths, self.show)
            sample = Parses(found.parses.text.select(numbers), [trees[i] for i in numbers])
            for drawing in sample.drawings():
                typer.echo(drawing, err=not self.summary)
        found.overview.print(sys.stdout if self.summary else sys.stderr)

    def page(self, found: GrammarAnswer) -> str:
        from softcount.grammar.report import grammar_page

        text, trees = (found.parses.text, found.parses.trees) if found.parses else (None, ())
        title = f"A grammar of {name_file(self.file or self.treebank or self.trees or '')}"
        return grammar_page(found.model, found.overview, text, trees, title=title)

    def files(self, found: Callable[[], GrammarAnswer]) -> Iterator[Action]:
        from softcount.report.page import write_whole

        def write(name: str) -> None:
            write_whole(Path(name), write_rules(found().model), "the rules", "--grammar-text")

        yield if_given(None if self.grammar_text == "-" else self.grammar_text, write)


def write_rules(model: PCFG) -> str:
    """Format the rules of a grammar as text, as --rules reads it."""
    dense = "words" in model.params_
    return join_lines([str(model.grammar() if dense else model.grammar(0.0))])


# softcount parse

BATCH = 256
"""Number of sentences parsed at a time: small, for early output and little memory."""
PRUNING_SAMPLE = 100
"""Number of sentences parsed with and without pruning, to measure the loss."""


class Parse(EngineOptions, Command):
    """Parse sentences with a saved grammar.

    Prints the tree of every sentence in Penn brackets: exactly one output line for each input line,
    blank for blank, as sentences arrive. A sentence that cannot be parsed becomes a flat tree,
    (FAILED (XX word) (XX word) …), and stderr counts them. Brackets in words are written -LRB- and
    -RRB-.

    \b
    softcount parse grammar.softcount new.txt > trees.txt
    softcount parse grammar.softcount new.txt --method labelled --gold new.mrg > trees.txt
    softcount parse grammar.softcount new.txt --k-best 5
    echo 'the dog barks' | softcount parse grammar.softcount --draw
    """

    model: Annotated[
        Path, Argument("A grammar saved by softcount grammar --save.", metavar="MODEL")
    ]
    file: Annotated[
        str,
        ArgumentFile(
            "One sentence per line, words separated by spaces; may be gzipped; - is stdin. Or a "
            "corpus of sentences on disk. Of trees (.mrg), the sentences are read."
        ),
    ] = "-"
    brackets: Annotated[
        str | None,
        InputFile(
            "Known brackets, as for softcount grammar. Labels of spans (NP:3-5) are constraints "
            "too, those of trees only with --labels."
        ),
    ] = None
    labels: BracketLabels = False
    method: Annotated[
        str,
        Model(
            "viterbi: the most probable tree. brackets: the tree with the most expected correct "
            "brackets. labelled: the same for labelled brackets.",
            choices=("viterbi", "brackets", "labelled"),
        ),
    ] = "viterbi"
    prune: Annotated[
        float,
        Model(
            "Rule-based grammars: prune constituents with posterior below P under a coarse "
            "grammar; 1e-5 is twice as fast. stderr reports the loss on the first sentences.",
            metavar="P",
            least=0.0,
            most=0.5,
        ),
    ] = 0.0
    k_best: Annotated[
        int | None,
        Output(
            "Print the N most probable trees of each sentence, best first: line ||| log p ||| "
            "tree. Blank lines are skipped.",
            metavar="N",
            least=1,
        ),
    ] = None
    draw: Annotated[bool, Output("Draw the trees instead of printing brackets.")] = False
    gold: Annotated[
        str | None,
        OutputFile(
            "Score the trees against these gold trees of the same sentences: brackets, labelled "
            "brackets if they share labels, and the proportion of sentences parsed."
        ),
    ] = None

    def check(self) -> None:
        if self.k_best is not None:
            self.refuse("--k-best", ("method", "draw"), "it prints the most probable trees")
        if self.labels and self.brackets is None:
            raise typer.BadParameter("--labels needs --brackets")

    def run(self) -> None:
        """Print trees as sentences arrive; then report failures and scores."""
        from softcount.text.treebank import remove_functions
        from softcount.text.trees import Tree

        model = load_model(self.model, self.name, self._restore)
        labels = model.labels_  # keep function labels of trees if the grammar has any
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
        self.notes.append(f"{total - len(failures):,} of {total:,} sentences parsed")
        for remark in describe_failures(failures, total):
            say(remark)
        if gold is not None:
            check_one_each("--gold", gold.origin, len(gold), total, "trees")
            pairs = [pair for pair in zip(trees, gold, strict=True) if pair[1] is not None]
            n = sum(tree is not None for tree, _ in pairs)
            proportion = n / max(len(pairs), 1)
            coverage = f"coverage {proportion:.1%}: {n:,} of {len(pairs):,} have a tree"
            for line in (*score_trees(trees, gold, labels), coverage):
                typer.echo(line, err=True)

    def _stream_batches(self) -> Iterator[Sequences]:
        """Yield sentences as they arrive, at most `BATCH` at a time."""
        if is_treebank(self.file):
            pieces: Iterable[Sequences] = [read_sentences_of_trees(self.file)]
        else:
            pieces = (piece.sequences for piece in stream_text(self.file, "lines"))
        for piece in pieces:
            for first in range(0, len(piece), BATCH):
                yield piece.select(slice(first, first + BATCH))

    def _restore(self, kind: type[PCFG], stored: Stored) -> PCFG:
        given = {"prune": self.prune} if self.prune else {}  # else the model's own setting holds
        model = kind.restore(stored, engine=self.make_engine(), **given)
        if self.prune and model.rules is None:
            raise LearnerError(
                f"--prune {self.prune:g} is for rule-based grammars, but {self.model} holds a "
                "dense grammar",
                "omit --prune",
            )
        return model

    def _parse_k_best(
        self, model: PCFG, text: Sequences, k: int, brackets: Any
    ) -> tuple[Parses, list[str]]:
        """Return the best tree of each sentence, and the output lines of its k best."""
        best: list[Tree | None] = []
        lines: list[str] = []
        with without_warnings():
            k_best = model.k_best(text, k, brackets=brackets)
        for n, candidates in enumerate(k_best):
            trees = [(log_p, restore_words(model, tree, text, n)) for log_p, tree in candidates]
            best.append(trees[0][1] if trees else None)
            if not trees and (words := text.sentence(n)):
                trees = [(-math.inf, mark_failed(words))]
            number = str(number_line(text, n))
            lines += [SEPARATOR.join((number, f"{log_p:.6f}", str(tree))) for log_p, tree in trees]
        return Parses(text, best), lines

    def _tell_pruning_loss(self, model: PCFG, text: Sequences) -> None:
        """Report what pruning costs on the first sentences."""
        if model.prune:
            lost = model.pruning_loss(
                [text.sentence(n) for n in range(min(len(text), PRUNING_SAMPLE))]
            )
            say(
                f"--prune: of {lost.sentences} sentences, {lost.worse_trees} have a less probable "
                f"tree; log p is {lost.mean:.2g} lower on average, {lost.worst:.2g} at worst; "
                f"{lost.parsed_again} were parsed again without pruning"
            )
