"""The ``softcount tag`` command."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from softcount.cli.answers import Spool, list_lines, name_file, print_text
from softcount.cli.frame import LearningCommand
from softcount.cli.options import (
    ENGINE_OPTIONS,
    OTHER_LEARNERS,
    AnswerOptions,
    Argument,
    Input,
    LearnerOptions,
    Learning,
    Model,
    Output,
    read_learner_name,
)
from softcount.cli.reading import SentenceText, read_tags, read_text, stream_text
from softcount.cli.targets import PLAIN, WRITTEN
from softcount.core.errors import DataError, ImpossibleItem, brief
from softcount.hmm.parameters import HMMParameters

if TYPE_CHECKING:
    from softcount.cli.frame import FitProgress
    from softcount.core.store import Stored
    from softcount.hmm import HMM
    from softcount.hmm.report import StatesOverview
    from softcount.text.sequences import Sequences
    from softcount.text.tagged import Tagged

WRONG = 5
"""Maximum number of confusions listed with ``--gold``."""
PROBABILITY, STATE = "Prob", "State"
"""Keys of the MISC column of CoNLL-U."""


class SentencesRead(NamedTuple):
    """The input corpora; at least one of ``text`` and ``known`` is present.

    ``text``   untagged sentences: training data (unless a model is loaded), and tagged afterwards
    ``known``  tagged sentences: additional training data
    ``gold``   the correct tags of ``text``, for evaluation
    """

    text: SentenceText | None
    known: Tagged | None = None
    gold: Tagged | None = None

    def join(self) -> Sequences | Tagged:
        """Concatenate all training sentences into one corpus, untagged ones first."""
        import numpy as np

        from softcount.text.disk import is_on_disk
        from softcount.text.sequences import Sequences, Side
        from softcount.text.tagged import UNKNOWN, Tagged, tagged

        if self.known is None:
            assert self.text is not None
            return self.text.sequences
        if self.text is None:
            return self.known
        plain = self.text.sequences
        if is_on_disk(plain.tokens) or is_on_disk(self.known.tags):
            raise DataError(
                "FILE and --tagged cannot be learned from together if one is a corpus on disk",
                "make one corpus of both, and give it as --tagged: softcount corpus build --kind "
                "tagged; words without a tag are untagged",
            )
        known = tagged(self.known, like=plain.words)
        more = known.sequences
        tokens = np.concatenate([plain.tokens, more.tokens])
        indptr = np.concatenate([plain.indptr, more.indptr[1:] + plain.indptr[-1]])
        tags = np.concatenate([np.full(len(plain.tokens), UNKNOWN, np.int32), known.tags])
        return Tagged(Sequences(Side(more.words, tokens, indptr)), tags, known.names)

    def name(self, n: int) -> str:
        """Return the name of sentence ``n`` of the joint corpus, for messages."""
        before = 0 if self.text is None else len(self.text)
        if self.text is not None and n < before:
            return self.text.sequences.name(n)
        assert self.known is not None
        return self.known.sequences.name(n - before)


@dataclass(frozen=True, eq=False)
class TaggedSentences:
    """Decoded sentences.

    ``states``      the predicted states, one sequence per sentence
    ``named``       whether any state has a name (a tag)
    ``posteriors``  the posterior probability of each predicted state; None unless requested
    ``impossible``  the indices of the sentences of probability zero under the model
    """

    text: SentenceText
    states: Sequence[Sequence[Any]]
    named: bool
    posteriors: Sequence[Sequence[float]] | None = None
    impossible: Sequence[int] = ()


class TagsFound(NamedTuple):
    """A model, its predictions, and the overview to print.

    ``lines``    the predictions as they are printed
    ``answers``  all predictions; None without sentences to tag, or if only their lines are wanted
    """

    lines: Spool
    answers: TaggedSentences | None
    overview: StatesOverview
    model: HMM


class Tag(AnswerOptions, LearnerOptions, LearningCommand):
    """Tag the words of sentences with a hidden Markov model.

    Prints every sentence with a state (or tag) for each word, as word/STATE: exactly one output
    line for each input line, blank for blank; or the same CoNLL-U file with one column filled in.
    Learning may be unsupervised (give -k), or use a tag dictionary, or some tagged sentences.
    A summary of the model goes to stderr. A sentence of probability zero gets the states that use
    the fewest impossible transitions and words, and stderr names its line.

    \b
    softcount tag sentences.txt -k 45 --html states.html > states.txt
    softcount tag sentences.txt --dictionary words.tsv --open-tags NOUN,VERB,ADJ
    softcount tag more.conllu --tagged some.conllu --save tags.softcount > tagged.conllu
    softcount tag --load tags.softcount new.txt --proba
    softcount tag --load tags.softcount test.conllu --gold test.conllu > tagged.conllu
    """

    with_load = ENGINE_OPTIONS
    declared = HMMParameters
    takes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "n_components": ("-k", "--n-components"),
        **dict.fromkeys(("stop", "emissions", "dtype"), ()),
    }
    n_components: int | None

    file: Annotated[
        str | None,
        Argument(
            "One sentence per line, words separated by spaces; or CoNLL-U; may be gzipped; - is "
            "stdin. Or a corpus of sentences on disk. Default: stdin, or no file with --tagged."
        ),
    ] = None
    format: Annotated[
        str | None,
        Input(
            "Format of FILE: lines or conllu. Default: detected from the contents.",
            choices=("lines", "conllu"),
        ),
    ] = None
    tagged: Annotated[
        str | None,
        Input(
            "Fully or partly tagged sentences: word/TAG word/TAG, CoNLL-U, or a corpus on disk. "
            "The model is learned from these as well as from FILE.",
            learns=True,
        ),
    ] = None
    dictionary: Annotated[
        str | None,
        Input(
            "The tags each word may have: word, tab, tags separated by spaces (or one tag, tab, "
            "a count). Words not listed may have any tag, or any of --open-tags.",
            learns=True,
        ),
    ] = None
    open_tags: Annotated[
        str | None,
        Input(
            "The tags that words missing from --dictionary may have.",
            metavar="TAG,TAG",
            file=PLAIN,
            learns=True,
        ),
    ] = None
    lowercase: Annotated[
        bool, Input("Lower-case all words; a saved model will do the same.", learns=True)
    ] = False
    order: Annotated[
        int,
        Model("Order of the chain: a state depends on this many before it.", least=1, most=2),
    ] = 1
    smoothing: Annotated[
        float | None,
        Model(
            "Pseudo-count added to every count; for vb, svb, gibbs and collapsed-gibbs, the "
            "Dirichlet prior. [default: 0.1 for those, 0 for others]",
            least=0.0,
        ),
    ] = None
    learner: Annotated[
        str | None,
        Learning(
            f"Default: em (Baum-Welch). {OTHER_LEARNERS}", parser=read_learner_name, metavar="NAME"
        ),
    ] = None
    init: Annotated[
        str | None,
        Learning(
            "Initial parameters: random, or spectral (from moments of neighbouring words). "
            "[default: from the tags and dictionary if given, else random]",
            choices=("random", "spectral"),
        ),
    ] = None
    decode: Annotated[
        str,
        Output(
            "viterbi: the most probable state sequence. posterior: the most probable state of each "
            "word.",
            choices=("viterbi", "posterior"),
        ),
    ] = "viterbi"
    separator: Annotated[
        str,
        Output(
            "Separator between a word and its tag, in input and output.", metavar="TEXT", file=PLAIN
        ),
    ] = "/"
    states: Annotated[bool, Output("Print states without words, one line per sentence.")] = False
    column: Annotated[
        str | None,
        Output(
            "CoNLL-U: the column of tags, both written and read (--tagged, --gold): upos, xpos, or "
            "a key in MISC. [default: upos; unnamed states go to MISC as State=]",
            metavar="NAME",
            file=PLAIN,
        ),
    ] = None
    proba: Annotated[
        bool,
        Output("Also print the posterior of each state: word/STATE:p; in CoNLL-U, Prob= in MISC."),
    ] = False
    json: Annotated[bool, Output("Print one JSON object per sentence, or --summary as one.")] = (
        False
    )
    gold: Annotated[
        str | None,
        Output(
            "Score the states against the tags of this file, which must hold the same sentences: "
            "word/TAG or CoNLL-U."
        ),
    ] = None
    html: Annotated[
        Path | None,
        Output(
            "Write an HTML page to this file: states, their words, transitions, examples.",
            file=WRITTEN,
        ),
    ] = None

    def check(self) -> None:
        if self.learner == "spectral":
            raise typer.BadParameter(
                "--learner spectral: for a spectral start, use --init spectral"
            )
        if self.load is None and not (self.n_components or self.dictionary or self.tagged):
            raise typer.BadParameter("how many states? give -k, or --dictionary, or --tagged")
        if self.open_tags is not None and self.dictionary is None:
            raise typer.BadParameter("--open-tags needs --dictionary")
        wanted = self.save or self.html or self.summary
        if self.file is None and self.tagged is not None:
            if not wanted:
                raise typer.BadParameter("nothing to tag: give FILE, or --save")
            if self.gold is not None:
                raise typer.BadParameter("--gold needs FILE, the sentences whose tags it holds")
        elif self.file is None:
            if sys.stdin is not None and sys.stdin.isatty():
                raise typer.BadParameter("no sentences: give a file, or - to type them")
            self.file = "-"
        if self.column is not None:
            from softcount.text.conllu import column_index

            column_index(self.column)

    # reading
    def read(self, model: HMM | None) -> SentencesRead:
        known, names = None, set[str]()
        if model is None:
            if self.tagged is not None:
                known = self._read_tags("--tagged", self.tagged)
            self.tag_dictionary = None
            if self.dictionary is not None:
                from softcount.text.tagged import read_tag_dictionary

                self.tag_dictionary = read_tag_dictionary(self.dictionary)
            names = set(() if known is None else known.names)
            names.update(*(self.tag_dictionary or {}).values())
            say(remark_on_open_tags(read_open_tags(self.open_tags), names))
        text = None if self.file is None else read_text(self.file, self.format)
        self._check_printable(names if model is None else model.states_, text)
        gold = None
        if self.gold is not None and text is not None:
            gold = self._read_tags("--gold", self.gold)
            check_same_sentences(gold, text, self.gold)
        return SentencesRead(text, known, gold)

    def _read_tags(self, option: str, path: str) -> Tagged:
        tagged = read_tags(path, self.column, self.separator)
        if not tagged.names:
            raise DataError(
                f"{option} {path}: not a single word has a tag",
                f"write word{self.separator}TAG (or set --separator); in CoNLL-U, tags are read "
                "from UPOS, or from the --column you name",
            )
        return tagged

    def _check_printable(self, names: Iterable[Any], text: SentenceText | None) -> None:
        """Raise if the output could not be split back into words and tags unambiguously."""
        separator = self.separator
        if not separator or any(letter.isspace() for letter in separator):
            raise DataError(
                f"--separator {brief(separator)} is empty or contains white space",
                "use a separator without spaces, such as / or _",
            )
        if text is None or self.json or (text.conllu is not None and not self.states):
            return
        for name in map(str, names):
            if any(letter.isspace() for letter in name):
                raise DataError(f"the tag {brief(name)} contains white space", "print it as --json")
            if separator in name and not self.states:
                raise DataError(
                    f"the tag {brief(name)} contains the separator {separator}",
                    "choose another --separator, or print only the --states",
                )

    # learning
    def make(self, data: SentencesRead) -> HMM:
        from softcount.hmm import HMM

        return HMM(
            order=self.order,
            lowercase=self.lowercase,
            init=self.init,
            dictionary=self.tag_dictionary,
            open_tags=read_open_tags(self.open_tags),
            smoothing=self.choose_smoothing(self.smoothing, 0.1),
            **self.settings(),
            **self.learning(self.make_learner_if_asked()),
        )

    def size(self, data: SentencesRead) -> int:
        return sum(0 if corpus is None else len(corpus) for corpus in (data.text, data.known))

    def fit(self, model: HMM, data: SentencesRead, progress: FitProgress) -> None:
        """Fit the model; an error about a sentence of probability zero names its line."""
        try:
            model.fit(data.join(), **self.fit_options(progress))
        except ImpossibleItem as error:
            if error.item is not None:
                error.message = error.message.replace(
                    f"sentence {error.item}", data.name(error.item), 1
                )
            raise

    def restore(self, kind: type[HMM], stored: Stored) -> HMM:
        return kind.restore(stored, engine=self.make_engine())

    # predicting
    def answer_stream(self, model: HMM) -> bool:
        """Tag sentences as they arrive, unless an output needs the whole text; return whether."""
        if self.summary or self.gold is not None or self.html is not None:
            return False
        for text in stream_text(self.file or "-", self.format):
            self._check_printable(model.states_, text)
            answers = self._tag(model, text)
            print_text(self._write(answers))
            say(remark_on_impossible([answers.text.line(n) for n in answers.impossible]))
        return True

    def answer(self, model: HMM, data: SentencesRead) -> TagsFound:
        from softcount.hmm.report import count_states, summarise_states

        answers = scores = None
        lines, counts, impossible = Spool(), Counter[Any](), list[int]()
        remarks: list[str] = []
        if data.text is not None:
            whole = self.html is not None or data.gold is not None
            parts = iter([data.text]) if whole else data.text.parts()
            for answers in (self._tag(model, part) for part in parts):
                lines.write(self._write(answers))
                counts += count_states(answers.states)
                impossible += [answers.text.line(n) for n in answers.impossible]
            remarks = [remark_on_impossible(impossible), remark_on_dictionary(model, data.text)]
            answers = answers if whole else None
            if answers is not None and data.gold is not None:
                from softcount.metrics import induction_scores, tag_scores

                states = answers.states

                gold = [data.gold.tags_of(n) for n in range(len(data.gold))]
                named = not set(model.states_).isdisjoint(data.gold.names)
                remarks.append(remark_on_mistakes(states, gold, named))
                known: dict[str, Any] = {}
                if self.load is not None:
                    text = data.text.sequences
                    words = [text.sentence(n) for n in range(len(text))]
                    if model.lowercase:
                        words = [[word.lower() for word in sentence] for sentence in words]
                    known = {"known_words": model.words_, "words": words}
                scores = (
                    tag_scores(states, gold, **known) if named else induction_scores(states, gold)
                )
        notes = [remark for remark in remarks if remark]
        return TagsFound(lines, answers, summarise_states(model, counts, notes, scores), model)

    def _tag(self, model: HMM, text: SentenceText) -> TaggedSentences:
        named = any(isinstance(name, str) for name in model.states_)
        if not len(text):  # a CoNLL-U file may end in a comment, which holds no sentence
            return TaggedSentences(text, [], named)
        from softcount.core.warnings import ImpossibleWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ImpossibleWarning)
            states = model.predict(text.sequences, method=self.decode)
            gamma = model.predict_proba(text.sequences) if self.proba else None
        notes = [w.message for w in caught if isinstance(w.message, ImpossibleWarning)]
        impossible = notes[0].items if notes else ()  # predict_proba repeats predict's warning
        if gamma is None:
            return TaggedSentences(text, states, named, impossible=impossible)
        index = {name: k for k, name in enumerate(model.states_)}
        posteriors = [
            [min(1.0, float(row[index[name]])) for row, name in zip(p, path, strict=True)]
            for p, path in zip(gamma, states, strict=True)
        ]
        return TaggedSentences(text, states, named, posteriors, impossible)

    # printing
    def overview(self, found: TagsFound) -> StatesOverview:
        return found.overview

    def print_answers(self, found: TagsFound) -> None:
        found.lines.print()

    def _write(self, answers: TaggedSentences) -> str:
        """Format all sentences for output."""
        file = answers.text.conllu
        if self.json or self.states or file is None:
            return "".join(f"{line}\n" for line in self._lines(answers))
        text = file.text(answers.states, self.column or ("upos" if answers.named else STATE))
        if answers.posteriors is None:
            return text
        numbers = [[f"{p:.4g}" for p in sentence] for sentence in answers.posteriors]
        return replace(file, lines=text.split("\n")).text(numbers, PROBABILITY)

    def _lines(self, answers: TaggedSentences) -> Iterator[str]:
        text = answers.text
        for n, states in enumerate(answers.states):
            posteriors = None if answers.posteriors is None else answers.posteriors[n]
            words = text.sequences.sentence(n)
            if self.json:
                record: dict[str, Any] = {"line": text.line(n), "words": list(words)}
                record["states"] = list(states)
                if posteriors is not None:
                    record["probabilities"] = list(posteriors)
                yield json.dumps(record, ensure_ascii=False)
                continue
            parts = list(map(str, states))
            if posteriors is not None:
                parts = [f"{state}:{p:.4g}" for state, p in zip(parts, posteriors, strict=True)]
            if not self.states:
                pairs = zip(words, parts, strict=True)
                parts = [f"{word}{self.separator}{state}" for word, state in pairs]
            yield " ".join(parts)

    def page(self, found: TagsFound) -> str:
        from softcount.hmm.report import states_page

        where = "" if self.file is None else f" in {name_file(self.file)}"
        title = f"{len(found.model.states_):,} hidden states{where}"
        answers = found.answers
        sentences: Sequence[Sequence[str]] = ()
        states: Sequence[Any] = ()
        if answers is not None:
            text = answers.text.sequences
            sentences, states = [text.sentence(n) for n in range(len(text))], answers.states
        return states_page(found.model, found.overview, sentences, states, title=title)


def remark_on_impossible(lines: Sequence[int]) -> str:
    """Return a remark on the lines of probability zero; empty if there are none."""
    if not lines:
        return ""
    have = "has" if len(lines) == 1 else "have"
    return (
        f"{list_lines(lines)} {have} probability zero: no sequence of states could have "
        "produced such words. The states printed use the fewest impossible transitions and "
        "words; a model learned with --smoothing has no impossible sentences"
    )


def say(remark: str) -> None:
    """Print a remark on stderr, unless it is empty."""
    if remark:
        typer.echo(f"softcount: {remark}", err=True)


def read_open_tags(text: str | None) -> list[str] | None:
    """Split a comma-separated list of tags."""
    if text is None:
        return None
    tags = [tag.strip() for tag in text.split(",")]
    if not all(tags):
        raise DataError(
            f"--open-tags {brief(text)} has an empty tag",
            "separate tags by single commas: NOUN,VERB",
        )
    return tags


def remark_on_open_tags(open_tags: Sequence[str] | None, others: Collection[str]) -> str:
    """Name the open tags found nowhere else, since they may be misspelt; empty if none are.

    >>> remark_on_open_tags(["N", "NUON"], {"N", "V"})
    '--open-tags: NUON is in no dictionary and no tagged sentence, and is taken for a new tag'
    """
    new = [tag for tag in dict.fromkeys(open_tags or ()) if tag not in others]
    if not new:
        return ""
    are, taken = ("is", "is taken for a new tag") if len(new) == 1 else ("are", "are new tags")
    return (
        f"--open-tags: {', '.join(new)} {are} in no dictionary and no tagged sentence, and {taken}"
    )


def remark_on_dictionary(model: HMM, text: SentenceText) -> str:
    """Describe the dictionary's coverage of a text; empty if complete or without dictionary."""
    dictionary, words = model._tags.dictionary, text.sequences
    if dictionary is None or not len(words.tokens):
        return ""

    counts, types = words.count_words(), words.words
    if model.lowercase:
        types = [word.lower() for word in types]
    n = counts[[word in dictionary for word in types]].sum()
    if n == counts.sum():
        return ""
    more = counts[[word.lower() in dictionary and word not in dictionary for word in types]].sum()
    case = f"; with --lowercase it would have {more:,} more" if more else ""
    return f"the dictionary has {n / counts.sum():.1%} of {counts.sum():,} words{case}"


def check_same_sentences(gold: Tagged, text: SentenceText, path: str) -> None:
    """Raise if the sentences of the gold tags differ from those of the text."""
    given, read = gold.sequences, text.sequences
    hint = "give the same sentences in the same order"
    if len(given) != len(read):
        raise DataError(
            f"--gold {path} has {len(given):,} sentences, but the text has {len(read):,}", hint
        )
    for n, (ours, theirs) in enumerate(zip(read.lengths, given.lengths, strict=True)):
        if ours != theirs:
            raise DataError(
                f"--gold {given.name(n)} has {theirs} words, but {read.name(n)} has {ours}", hint
            )
    for n in range(len(read)):
        for word, other in zip(read.sentence(n), given.sentence(n), strict=True):
            if word != other and word.lower() != other.lower():
                where = f"--gold {given.name(n)} has {brief(other)}, where {read.name(n)} has"
                raise DataError(f"{where} {brief(word)}", hint)


def remark_on_mistakes(
    states: Sequence[Sequence[Any]], gold: Sequence[Sequence[Any]], named: bool
) -> str:
    """List the most frequent confusions; for unnamed states, the majority tag of each.

    >>> remark_on_mistakes([["N", "N", "V"]], [["N", "V", "V"]], named=True)
    'most often wrong: V taken for N 1'
    >>> remark_on_mistakes([[1, 0, 1]], [["N", "V", "N"]], named=False)
    'the most frequent gold tag of each state: 0 V, 1 N'
    """
    from softcount.metrics import confusion, mapping

    if not named:
        pairs = sorted(mapping(states, gold).items(), key=lambda pair: str(pair[0]).rjust(9))
        tags = ", ".join(f"{state} {tag}" for state, tag in pairs)
        return f"the most frequent gold tag of each state: {tags}"
    wrong = confusion(states, gold).most_confused(WRONG)
    mistakes = ", ".join(f"{right} taken for {found} {n:,}" for right, found, n in wrong)
    return f"most often wrong: {mistakes}" if wrong else ""
