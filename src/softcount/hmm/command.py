"""``softcount tag``: its options, what it reads, how it learns, what it answers."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.align.command import DTYPES, Precision
from softcount.cli import options
from softcount.cli.answers import few_named
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_two_of_stdin, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.options import LEARNER, OTHER_LEARNERS
from softcount.cli.progress import Progress
from softcount.cli.targets import PLAIN, WRITTEN
from softcount.errors import DataError, ImpossibleItem, shown

if TYPE_CHECKING:
    from softcount.corpus.conllu import ConlluFile
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.tagged import Tagged
    from softcount.hmm import HMM
    from softcount.learners import Learner


class Form(StrEnum):
    """What ``--format`` may say."""

    LINES = "lines"
    CONLLU = "conllu"


class Start(StrEnum):
    """What ``--init`` may say."""

    RANDOM = "random"
    SPECTRAL = "spectral"


class Decoder(StrEnum):
    """What ``--decode`` may say."""

    VITERBI = "viterbi"
    POSTERIOR = "posterior"


# sentences
File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="One sentence a line, words between spaces; or CoNLL-U. .gz too; - is stdin. If not "
        "given: stdin, or with --tagged nothing.",
    ),
]
Format = Annotated[
    Form | None,
    typer.Option(
        "--format",
        metavar="NAME",
        parser=one_of(Form),
        help="lines or conllu: what FILE is; else it is told by its shape.",
    ),
]
Lowercase = Annotated[
    bool,
    typer.Option("--lowercase", help="Learn from words in lower case; a saved model does too."),
]

# what is known
States = Annotated[
    int | None,
    typer.Option(
        "-k", "--n-states", min=1, help="How many states; else as many as there are tags."
    ),
]
Dictionary = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The tags that words may have: word, tab, tags between spaces (or one tag, tab, a "
        "count). Other words may have any tag, or the --open-tags.",
    ),
]
OpenTags = Annotated[
    str | None,
    typer.Option(metavar="TAG,TAG", help="What words may have that are not in the --dictionary."),
    PLAIN,
]
TaggedFile = Annotated[
    str | None,
    typer.Option(
        "--tagged",
        metavar="FILE",
        help="Sentences whose tags are known, all or some: word/TAG word/TAG, or CoNLL-U. They "
        "are learned from beside those of FILE.",
    ),
]

# how to learn
Order = Annotated[
    int,
    typer.Option(min=1, max=2, help="A state depends on so many states before it: 1 or 2."),
]
Features = Annotated[
    bool,
    typer.Option(
        "--features",
        help="Words by what they look like (endings, case, digits), also those never seen; slower.",
    ),
]
Init = Annotated[
    Start | None,
    typer.Option(
        metavar="NAME",
        parser=one_of(Start),
        help="Where to start: random, or spectral (from moments of neighbouring words). [else what "
        "tags and dictionary say, or random]",
    ),
]
NoStop = Annotated[
    bool, typer.Option("--no-stop", help="Where sentences end says nothing of their states.")
]
Smoothing = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="Add this to every count; for vb, svb, gibbs and collapsed-gibbs, their prior. [else "
        "0.1 for those, 0 for others]",
    ),
]
LearnerOption = Annotated[
    LearnerName | None,
    typer.Option(
        metavar="NAME",
        parser=LEARNER,
        help=f"If not given, em (Baum-Welch). {OTHER_LEARNERS}",
    ),
]
Precision_ = Annotated[
    Precision,
    typer.Option(
        metavar="NAME",
        parser=one_of(Precision),
        help="double; or single: less exact, in about half the time.",
    ),
]

# what is printed
Decode = Annotated[
    Decoder,
    typer.Option(
        metavar="NAME",
        parser=one_of(Decoder),
        help="viterbi: the best sequence of states. posterior: each word's own best state.",
    ),
]
Separator = Annotated[
    str,
    typer.Option(metavar="TEXT", help="What stands between a word and its tag, in and out."),
    PLAIN,
]
StatesAlone = Annotated[
    bool,
    typer.Option("--states", help="Print states without words, a line for each sentence."),
]
Column = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="CoNLL-U: the column of tags, filled in, and read of --tagged and --gold: upos, xpos, "
        "or a key in MISC. [else upos; states without names go to MISC, State=]",
    ),
    PLAIN,
]
Proba = Annotated[
    bool,
    typer.Option(
        "--proba",
        help="Print how probable each state is, too: word/STATE:p; in CoNLL-U as Prob= in MISC.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print a JSON object for each sentence, or --summary as one.")
]
Gold = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Say how well the states agree with the tags of this file, which has the same "
        "sentences: word/TAG or CoNLL-U.",
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(
        help="Write a page to this file: states, their words, how they follow each other, examples."
    ),
    WRITTEN,
]


# Sentences for ``softcount tag``: one a line or CoNLL-U, whole files and as they come.


STDIN = "standard input"
MARK = b"\xef\xbb\xbf"
TABS = 5
"""A line of CoNLL-U has nine; one with so many is a damaged one rather than plain text."""


@dataclass(frozen=True, eq=False)
class TagText:
    """Sentences to be tagged; ``conllu`` is their file, if it is one of CoNLL-U."""

    sequences: Sequences
    conllu: ConlluFile | None = None

    def __len__(self) -> int:
        return len(self.sequences)

    def line(self, n: int) -> int:
        """Where a sentence is in its file, from 1 on: the line of its first word."""
        numbers = self.sequences.numbers
        return (n if numbers is None else int(numbers[n])) + 1


def shape(head: bytes) -> Form | None:
    r"""What lines are, by the first one that is no comment; None if there is none.

    >>> shape(b"# text = it\n1\tit\t_\tPRON\t_\t_\t_\t_\t_\t_\n").value, shape(b"it rains").value
    ('conllu', 'lines')
    """
    for line in head.removeprefix(MARK).split(b"\n"):
        if line.strip() and not line.startswith(b"#"):
            words = line.count(b"\t") >= TABS and line[:1].isdigit()
            return Form.CONLLU if words else Form.LINES
    return None


def read_text(path: str, form: Form | None) -> TagText:
    """All sentences of a file."""
    from softcount.corpus import conllu, sequences
    from softcount.corpus.lines import unmarked

    form, some = _opened(path, form)
    if form is Form.CONLLU:
        return _of_conllu(conllu.from_pieces(some, called_texts(path)))
    return TagText(sequences.from_pieces(unmarked(some), called_texts(path)))


def stream(path: str, form: Form | None) -> Iterator[TagText]:
    """Sentences as they come, those that are there together."""
    from softcount.corpus import conllu, sequences
    from softcount.corpus.lines import unmarked

    form, some = _opened(path, form)
    if form is Form.CONLLU:
        yield from map(_of_conllu, conllu.parts(some, called_texts(path)))
        return
    before = 0
    for piece in unmarked(some):
        text = TagText(sequences.from_pieces([piece], called_texts(path), before))
        yield text
        before += len(text)


def read_tags(path: str, column: str | None, separator: str) -> Tagged:
    """Sentences with tags, from lines word/TAG or from CoNLL-U."""
    from softcount.corpus import conllu, tagged
    from softcount.corpus.lines import unmarked

    form, some = _opened(path, None)
    if form is Form.CONLLU:
        return conllu.from_pieces(some, called_texts(path)).tagged(column or "upos")
    return tagged.from_pieces(unmarked(some), called_texts(path), separator=separator)


def _opened(path: str, form: Form | None) -> tuple[Form, Iterator[bytes]]:
    """What a file is, and its lines in pieces: it may be a pipe, which can be read but once."""
    some = pieces_of(path)
    if form is None and path.removesuffix(".gz").endswith(".conllu"):
        form = Form.CONLLU
    head = b""
    while form is None and (piece := next(some, b"")):
        head += piece
        form = shape(head)
    return form or Form.LINES, chain([head] if head else [], some)


def pieces_of(path: str) -> Iterator[bytes]:
    """Whole lines of a file (-: standard input), a piece at a time."""
    from softcount.corpus.lines import opened, whole_lines

    if path == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed", "give a file")
        try:
            yield from whole_lines(sys.stdin.buffer)  # type: ignore[arg-type]  # it can read1
        except OSError as error:
            raise DataError(f"{STDIN} cannot be read: {error.strerror}", "give a file") from error
        return
    with opened(path) as file:
        yield from whole_lines(file)


def called_texts(path: str) -> str:
    """A file as messages name it."""
    return STDIN if path == "-" else path


def _of_conllu(file: ConlluFile) -> TagText:
    return TagText(file.sequences(), file)


# Hidden Markov models made as the command line says, and learned from sentences.


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


def read_open_tags(text: str | None) -> list[str] | None:
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


# Remarks of ``softcount tag``: what its dictionary has, and where states and gold tags differ.


WRONG = 5
"""So many kinds of mistakes are named."""


def demand_tags(known: Tagged, called: str, separator: str) -> None:
    """Complain of a file of tagged sentences in which nothing is tagged."""
    if not known.names:
        raise DataError(
            f"{called}: not a single word has a tag",
            f"write word{separator}TAG (or say another --separator); CoNLL-U has tags in UPOS, or "
            "in another --column",
        )


def of_open_tags(given: Sequence[str] | None, spoken: Collection[str]) -> str:
    """Open tags that nothing else speaks of, for they may be slips; empty if there are none.

    >>> of_open_tags(["N", "NUON"], {"N", "V"})
    '--open-tags: NUON is in no dictionary and no tagged sentence, and is taken for a new tag'
    """
    new = [tag for tag in dict.fromkeys(given or ()) if tag not in spoken]
    if not new:
        return ""
    are, told = ("is", "is taken for a new tag") if len(new) == 1 else ("are", "are new tags")
    return (
        f"--open-tags: {', '.join(new)} {are} in no dictionary and no tagged sentence, and {told}"
    )


def of_dictionary(model: HMM, text: TagText) -> str:
    """How many words of a text the dictionary has; empty if it has all, or if there is none."""
    dictionary, words = model.knowledge_.dictionary, text.sequences
    if dictionary is None or not len(words.tokens):
        return ""
    import numpy as np

    often = np.bincount(words.tokens, minlength=len(words.words))
    spelt = [word.lower() if model.lowercase else word for word in words.words]
    n = sum(count for word, count in zip(spelt, often.tolist(), strict=True) if word in dictionary)
    if n == often.sum():
        return ""
    more = sum(
        count
        for word, count in zip(spelt, often.tolist(), strict=True)
        if word not in dictionary and word.lower() in dictionary
    )
    case = f"; with --lowercase it would have {more:,} more" if more else ""
    return f"the dictionary has {n / often.sum():.1%} of {often.sum():,} words{case}"


def beside_gold(pair: Beside) -> str:
    """The most frequent mistakes; of states without names, which tag each of them has most often.

    >>> from softcount.hmm.command import Beside
    >>> beside_gold(Beside([["N", "N", "V"]], [["N", "V", "V"]], named=True))
    'most often wrong: V taken for N 1'
    >>> beside_gold(Beside([[1, 0, 1]], [["N", "V", "N"]], named=False))
    'the most frequent gold tag of each state: 0 V, 1 N'
    """
    from softcount.metrics import confusion, mapping

    if not pair.named:
        tags = sorted(mapping(pair.found, pair.gold).items(), key=lambda one: str(one[0]).rjust(9))
        told = ", ".join(f"{state} {tag}" for state, tag in tags)
        return f"the most frequent gold tag of each state: {told}"
    wrong = confusion(pair.found, pair.gold).most_confused(WRONG)
    told = ", ".join(f"{gold} taken for {found} {n:,}" for gold, found, n in wrong)
    return f"most often wrong: {told}" if wrong else ""


# What ``softcount tag`` prints: sentences with their states, and an overview of these.


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
    from softcount.metrics import induction_scores, tag_scores

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


# ``softcount tag``.


LEARNING_OPTIONS = (
    *("k", "dictionary", "open_tags", "tagged", "order", "no_stop", "smoothing", "learner"),
    *("features", "init"),
    *("max_iter", "n_init", "precision", "lowercase", "seed", "save"),
)


def tag(
    ctx: typer.Context,
    file: File = None,
    k: States = None,
    dictionary: Dictionary = None,
    open_tags: OpenTags = None,
    tagged: TaggedFile = None,
    form: Format = None,
    lowercase: Lowercase = False,
    order: Order = 1,
    no_stop: NoStop = False,
    features: Features = False,
    init: Init = None,
    smoothing: Smoothing = None,
    learner: LearnerOption = None,
    max_iter: options.MaxIter = None,
    n_init: options.NInit = None,
    precision: Precision_ = Precision.DOUBLE,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    decode: Decode = Decoder.VITERBI,
    separator: Separator = "/",
    states: StatesAlone = False,
    column: Column = None,
    proba: Proba = False,
    json: Json = False,
    summary: options.Summary = False,
    gold: Gold = None,
    save: options.Save = None,
    load: options.Load = None,
    html: Html = None,
) -> None:
    """Find what kind of word each word is: a hidden Markov model of sentences.

    Prints every sentence with a state (or tag) for each word, word/STATE: exactly one line for each
    line of the file, a blank one for a blank one; or the same CoNLL-U file with a column filled in.
    Nothing need be known (then say -k); or a dictionary of tags, or the tags of some sentences.
    What was learned goes to stderr. A sentence that the model takes to be impossible gets the
    states that take the fewest impossible moves and words, and stderr names its line.

    \b
    softcount tag sentences.txt -k 45 --html states.html > states.txt
    softcount tag sentences.txt --dictionary words.tsv --open-tags NOUN,VERB,ADJ
    softcount tag more.conllu --tagged some.conllu --save tags.softcount > tagged.conllu
    softcount tag --load tags.softcount new.txt --proba
    softcount tag --load tags.softcount test.conllu --gold test.conllu > tagged.conllu
    """
    if learner is LearnerName.SPECTRAL:
        raise typer.BadParameter("--learner spectral: to start from moments, say --init spectral")
    if load is not None:
        refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
    elif k is None and dictionary is None and tagged is None:
        raise typer.BadParameter("how many states? give -k, or --dictionary, or --tagged")
    if open_tags is not None and dictionary is None:
        raise typer.BadParameter("--open-tags needs --dictionary")
    file = _source(file, tagged, bool(save or html or summary))
    refuse_two_of_stdin(file, dictionary, tagged, gold)
    if gold is not None and file is None:
        raise typer.BadParameter("--gold needs FILE, the sentences that it is of")
    with readable_errors():
        from softcount.engines import Local

        _check_column(column)
        style = Style(separator, states, column, json)
        job = _Job(file, form, decode, proba, style, summary, gold, html)
        if load is not None:
            from softcount.cli.models import load_tagger

            job.tag_by(load_tagger(load, threads))
            return
        settings: dict[str, Any] = {
            **{"order": order, "stop": not no_stop, "lowercase": lowercase},
            "emissions": "features" if features else "table",
            "init": None if init is None else init.value,
            "smoothing": prior_for(learner, smoothing),
            "dictionary": read_dictionary(dictionary, lowercase),
            "open_tags": read_open_tags(open_tags),
            "learner": learner_for(learner, max_iter, n_init),
            **{"dtype": DTYPES[precision], "engine": Local(threads), "random_state": seed},
        }
        model, text, right = job.learned(k, settings, tagged)
        try_all(at(save, model.save), lambda: job.finish(model, text, right, unseen=False))


def _source(file: str | None, tagged: str | None, wanted: bool) -> str | None:
    """Where sentences are; None: there are those of --tagged alone."""
    if file is not None:
        return file
    if tagged is not None:
        if not wanted:
            raise typer.BadParameter("nothing to tag: give FILE, or --save")
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        raise typer.BadParameter("no sentences: give a file, or - to type them")
    return "-"


def _check_column(column: str | None) -> None:
    if column is not None:
        from softcount.corpus.conllu import column_index

        column_index(column)


@dataclass(frozen=True)
class _Job:
    """What is to be tagged, and what is wanted of it."""

    file: str | None
    form: Form | None
    decoder: Decoder
    proba: bool
    style: Style
    summary: bool
    gold: str | None
    html: Path | None

    def learned(
        self, k: int | None, settings: dict[str, Any], tagged: str | None
    ) -> tuple[HMM, TagText | None, Tagged | None]:
        """A model of the sentences, these, and their gold tags."""
        from softcount.hmm import HMM

        known = None if tagged is None else self._tags("--tagged", tagged)
        spoken = tags_of(settings["dictionary"], known)
        self._say(of_open_tags(settings["open_tags"], spoken))
        text = None if self.file is None else read_text(self.file, self.form)
        self._demand_printable(spoken, text)
        gold = self._gold(text)
        model = HMM(k, **settings)
        plain = None if text is None else text.sequences
        learn(model, Lessons(plain, known))
        return model, text, gold

    def _demand_printable(self, names: Any, text: TagText | None) -> None:
        printed = names if text is not None and self.style.is_lines(text) else ()
        demand_printable(printed, self.style.separator, self.style.alone)

    def _gold(self, text: TagText | None) -> Tagged | None:
        if self.gold is None or text is None:
            return None
        gold = self._tags("--gold", self.gold)
        demand_same(gold, text, self.gold)
        return gold

    def _tags(self, option: str, path: str) -> Tagged:
        known = read_tags(path, self.style.column, self.style.separator)
        demand_tags(known, f"{option} {path}", self.style.separator)
        return known

    def tag_by(self, model: HMM) -> None:
        """Tag by a model from a file: as sentences come, if nothing is wanted of all together."""
        assert self.file is not None
        if self.summary or self.gold is not None or self.html is not None:
            whole = read_text(self.file, self.form)
            self._demand_printable(model.states_, whole)
            self.finish(model, whole, self._gold(whole), unseen=True)
            return
        for text in stream(self.file, self.form):
            self._demand_printable(model.states_, text)
            answers = answered(model, text, self.decoder, self.proba)
            print_text(self.style.text(answers))
            self._say(answers.remark())

    def _say(self, remark: str) -> None:
        if remark:
            typer.echo(f"softcount: {remark}", err=True)

    def finish(
        self, model: HMM, text: TagText | None, gold: Tagged | None, *, unseen: bool
    ) -> None:
        """Print and write all that is wanted."""
        from softcount.hmm.report import states_shown

        answers = scores = None
        remarks: list[str] = []
        if text is not None:
            answers = answered(model, text, self.decoder, self.proba)
            remarks = [answers.remark(), of_dictionary(model, text)]
            if gold is not None:
                pair = beside(answers, gold, model)
                scores = scored(pair, answers.text, model, unseen=unseen)
                remarks.append(beside_gold(pair))
        notes = [remark for remark in remarks if remark]
        shown = states_shown(model, None if answers is None else answers.states, notes, scores)

        def tell() -> None:
            watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
            if self.summary or not watched:
                print_overview(shown, summary=self.summary, as_json=self.style.as_json)
            if answers is not None and not self.summary:
                print_text(self.style.text(answers))
            if watched and not self.summary:
                print_overview(shown, summary=False, as_json=False)

        try_all(tell, lambda: self._write_page(model, shown, text, answers))

    def _write_page(
        self, model: HMM, shown: Any, text: TagText | None, answers: Answers | None
    ) -> None:
        if self.html is None:
            return
        from softcount.cli.answers import called
        from softcount.hmm.report import page_of
        from softcount.show.report import write_page

        where = "" if self.file is None else f" in {called(self.file)}"
        sentences: Sequence[Sequence[str]] = ()
        if text is not None:
            sentences = [text.sequences.sentence(n) for n in range(len(text))]
        states = () if answers is None else answers.states
        title = f"{len(model.states_):,} hidden states{where}"
        write_page(self.html, page_of(model, shown, sentences, states, title=title))
