"""``softcount tag``: the command."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from softcount.cli.answers import list_lines, name_file, print_text
from softcount.cli.frame import LearningCommand, refuse_two_of_stdin
from softcount.cli.options import (
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
    from softcount.cli.frame import Progress
    from softcount.core.store import Stored
    from softcount.hmm import HMM
    from softcount.hmm.report import StatesOverview
    from softcount.text.sequences import Sequences
    from softcount.text.tagged import Tagged

WRONG = 5
"""Maximum number of frequent mistakes that are listed."""
PROBABILITY, STATE = "Prob", "State"
"""Keys in MISC."""


class SentencesRead(NamedTuple):
    """What is learned from and answered; one of ``text`` and ``known`` at least.

    ``text``   sentences without tags
    ``known``  sentences with tags, which are learned from as well
    ``gold``   the right tags of ``text``, to compare with
    """

    text: SentenceText | None
    known: Tagged | None = None
    gold: Tagged | None = None

    def join(self) -> Sequences | Tagged:
        """All sentences as one corpus, those without tags first."""
        import numpy as np

        from softcount.text.sequences import Sequences, Side
        from softcount.text.tagged import UNKNOWN, Tagged, tagged

        if self.known is None:
            assert self.text is not None
            return self.text.sequences
        if self.text is None:
            return self.known
        plain = self.text.sequences
        known = tagged(self.known, like=plain.words)
        more = known.sequences
        tokens = np.concatenate([plain.tokens, more.tokens])
        indptr = np.concatenate([plain.indptr, more.indptr[1:] + plain.indptr[-1]])
        tags = np.concatenate([np.full(len(plain.tokens), UNKNOWN, np.int32), known.tags])
        return Tagged(Sequences(Side(more.words, tokens, indptr)), tags, known.names)

    def name(self, n: int) -> str:
        """What messages call a sentence of all."""
        before = 0 if self.text is None else len(self.text)
        if self.text is not None and n < before:
            return self.text.sequences.name(n)
        assert self.known is not None
        return self.known.sequences.name(n - before)


@dataclass(frozen=True, eq=False)
class TaggedSentences:
    """States of sentences.

    ``states``      those of each sentence
    ``named``       whether states have names, some at least
    ``posteriors``  how probable each of them is, if that is wanted
    ``impossible``  the numbers of sentences that no sequence of states could have produced
    """

    text: SentenceText
    states: Sequence[Sequence[Any]]
    named: bool
    posteriors: Sequence[Sequence[float]] | None = None
    impossible: Sequence[int] = ()

    def remark(self) -> str:
        """A sentence on those that are impossible; empty if there are none."""
        if not self.impossible:
            return ""
        lines = [self.text.line(n) for n in self.impossible]
        return (
            f"{list_lines(lines)} cannot come about: no sequence of states has such words. "
            "The states are those that take the fewest impossible transitions and words; a model "
            "that is learned with --smoothing holds nothing impossible"
        )


class TagsFound(NamedTuple):
    """A model, what it says of sentences (if there are any), and what is shown of that."""

    answers: TaggedSentences | None
    overview: StatesOverview
    model: HMM


class Tag(AnswerOptions, LearnerOptions, LearningCommand):
    """Find what kind of word each word is: a hidden Markov model of sentences.

    Prints every sentence with a state (or tag) for each word, word/STATE: exactly one line for each
    line of the file, a blank one for a blank one; or the same CoNLL-U file with a column filled in.
    Nothing need be known (then say -k); or a dictionary of tags, or the tags of some sentences.
    What was learned goes to stderr. A sentence that the model takes to be impossible gets the
    states that take the fewest impossible transitions and words, and stderr names its line.

    \b
    softcount tag sentences.txt -k 45 --html states.html > states.txt
    softcount tag sentences.txt --dictionary words.tsv --open-tags NOUN,VERB,ADJ
    softcount tag more.conllu --tagged some.conllu --save tags.softcount > tagged.conllu
    softcount tag --load tags.softcount new.txt --proba
    softcount tag --load tags.softcount test.conllu --gold test.conllu > tagged.conllu
    """

    with_load = ("threads",)
    declared = HMMParameters
    takes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "n_components": ("-k", "--n-components"),
        **dict.fromkeys(("stop", "emissions", "dtype"), ()),
    }
    n_components: int | None

    file: Annotated[
        str | None,
        Argument(
            "One sentence a line, words between spaces; or CoNLL-U. .gz too; - is stdin. If not "
            "given: stdin, or with --tagged nothing.",
            metavar="FILE",
        ),
    ] = None
    format: Annotated[
        str | None,
        Input(
            "lines or conllu: what FILE is; else it is told by its shape.",
            choices=("lines", "conllu"),
        ),
    ] = None
    tagged: Annotated[
        str | None,
        Input(
            "Sentences whose tags are known, all or some: word/TAG word/TAG, or CoNLL-U. They are "
            "learned from beside those of FILE.",
            metavar="FILE",
            learns=True,
        ),
    ] = None
    dictionary: Annotated[
        str | None,
        Input(
            "The tags that words may have: word, tab, tags between spaces (or one tag, tab, a "
            "count). Other words may have any tag, or the --open-tags.",
            metavar="FILE",
            learns=True,
        ),
    ] = None
    open_tags: Annotated[
        str | None,
        Input(
            "What words may have that are not in the --dictionary.",
            metavar="TAG,TAG",
            file=PLAIN,
            learns=True,
        ),
    ] = None
    lowercase: Annotated[
        bool, Input("Learn from words in lower case; a saved model does too.", learns=True)
    ] = False
    order: Annotated[
        int, Model("A state depends on so many states before it: 1 or 2.", least=1, most=2)
    ] = 1
    smoothing: Annotated[
        float | None,
        Model(
            "Add this to every count; for vb, svb, gibbs and collapsed-gibbs, their prior. [else "
            "0.1 for those, 0 for others]",
            least=0.0,
        ),
    ] = None
    learner: Annotated[
        str | None,
        Learning(
            f"If not given, em (Baum-Welch). {OTHER_LEARNERS}",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None
    init: Annotated[
        str | None,
        Learning(
            "Where to start: random, or spectral (from moments of neighbouring words). [else what "
            "tags and dictionary say, or random]",
            choices=("random", "spectral"),
        ),
    ] = None
    decode: Annotated[
        str,
        Output(
            "viterbi: the best sequence of states. posterior: each word's own best state.",
            choices=("viterbi", "posterior"),
        ),
    ] = "viterbi"
    separator: Annotated[
        str,
        Output("What stands between a word and its tag, in and out.", metavar="TEXT", file=PLAIN),
    ] = "/"
    states: Annotated[bool, Output("Print states without words, a line for each sentence.")] = False
    column: Annotated[
        str | None,
        Output(
            "CoNLL-U: the column of tags, filled in, and read of --tagged and --gold: upos, xpos, "
            "or a key in MISC. [else upos; states without names go to MISC, State=]",
            metavar="NAME",
            file=PLAIN,
        ),
    ] = None
    proba: Annotated[
        bool,
        Output("Print how probable each state is, too: word/STATE:p; in CoNLL-U as Prob= in MISC."),
    ] = False
    json: Annotated[bool, Output("Print a JSON object for each sentence, or --summary as one.")] = (
        False
    )
    gold: Annotated[
        str | None,
        Output(
            "Say how well the states agree with the tags of this file, which has the same "
            "sentences: word/TAG or CoNLL-U.",
            metavar="FILE",
        ),
    ] = None
    html: Annotated[
        Path | None,
        Output(
            "Write a page to this file: states, their words, how they follow each other, examples.",
            file=WRITTEN,
        ),
    ] = None

    def check(self) -> None:
        if self.learner == "spectral":
            raise typer.BadParameter(
                "--learner spectral: to start from moments, say --init spectral"
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
                raise typer.BadParameter("--gold needs FILE, the sentences that it is of")
        elif self.file is None:
            if sys.stdin is not None and sys.stdin.isatty():
                raise typer.BadParameter("no sentences: give a file, or - to type them")
            self.file = "-"
        refuse_two_of_stdin(self.file, self.dictionary, self.tagged, self.gold)
        if self.column is not None:
            from softcount.text.conllu import column_index

            column_index(self.column)

    # what is read
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
        found = read_tags(path, self.column, self.separator)
        if not found.names:
            raise DataError(
                f"{option} {path}: not a single word has a tag",
                f"write word{self.separator}TAG (or say another --separator); CoNLL-U has tags in "
                "UPOS, or in another --column",
            )
        return found

    def _check_printable(self, names: Iterable[Any], text: SentenceText | None) -> None:
        """Raise if tags could not be told apart from each other, or from words, in the output."""
        separator = self.separator
        if not separator or any(letter.isspace() for letter in separator):
            raise DataError(
                f"--separator {brief(separator)} cannot stand between a word and its tag",
                "give something without spaces, as / or _",
            )
        if text is None or self.json or (text.conllu is not None and not self.states):
            return
        for name in map(str, names):
            if any(letter.isspace() for letter in name):
                raise DataError(
                    f"there is a tag {brief(name)}, with a space in it", "print it as --json"
                )
            if separator in name and not self.states:
                raise DataError(
                    f"there is a tag {brief(name)}, with the separator {separator} in it",
                    "choose another --separator, or print --states alone",
                )

    # how it is learned
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
        return sum(0 if some is None else len(some) for some in (data.text, data.known))

    def fit(self, model: HMM, data: SentencesRead, progress: Progress) -> None:
        """A sentence that cannot be is called by its line."""
        try:
            model.fit(data.join(), on_step=progress)
        except ImpossibleItem as error:
            if error.item is not None:
                error.message = error.message.replace(
                    f"sentence {error.item}", data.name(error.item), 1
                )
            raise

    def restore(self, kind: type[HMM], stored: Stored) -> HMM:
        from softcount.engines import Local

        return kind.restore(stored, engine=Local(self.threads))

    # what is answered
    def answer_stream(self, model: HMM) -> bool:
        """As sentences come, if nothing is wanted of all together."""
        if self.summary or self.gold is not None or self.html is not None:
            return False
        for text in stream_text(self.file or "-", self.format):
            self._check_printable(model.states_, text)
            answers = self._tag(model, text)
            print_text(self._write(answers))
            say(answers.remark())
        return True

    def answer(self, model: HMM, data: SentencesRead) -> TagsFound:
        from softcount.hmm.report import summarise_states

        answers = scores = states = None
        remarks: list[str] = []
        if data.text is not None:
            answers = self._tag(model, data.text)
            states = answers.states
            remarks = [answers.remark(), remark_on_dictionary(model, data.text)]
            if data.gold is not None:
                from softcount.metrics import induction_scores, tag_scores

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
        return TagsFound(answers, summarise_states(model, states, notes, scores), model)

    def _tag(self, model: HMM, text: SentenceText) -> TaggedSentences:
        named = any(isinstance(name, str) for name in model.states_)
        if not len(text):  # the end of a CoNLL-U file may be a comment
            return TaggedSentences(text, [], named)
        from softcount.core.warnings import ImpossibleWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ImpossibleWarning)
            states = model.predict(text.sequences, method=self.decode)
            each = model.predict_proba(text.sequences) if self.proba else None
        notes = [one.message for one in caught if isinstance(one.message, ImpossibleWarning)]
        impossible = notes[0].items if notes else ()  # probabilities say the same once more
        if each is None:
            return TaggedSentences(text, states, named, impossible=impossible)
        number = {name: k for k, name in enumerate(model.states_)}
        posteriors = [
            [min(1.0, float(row[number[name]])) for row, name in zip(p, some, strict=True)]
            for p, some in zip(each, states, strict=True)
        ]
        return TaggedSentences(text, states, named, posteriors, impossible)

    # what is printed
    def overview(self, found: TagsFound) -> StatesOverview:
        return found.overview

    def print_answers(self, found: TagsFound) -> None:
        if found.answers is not None:
            print_text(self._write(found.answers))

    def _write(self, answers: TaggedSentences) -> str:
        """All sentences as they are printed."""
        file = answers.text.conllu
        if self.json or self.states or file is None:
            return "".join(f"{line}\n" for line in self._lines(answers))
        text = file.text(answers.states, self.column or ("upos" if answers.named else STATE))
        if answers.posteriors is None:
            return text
        figures = [[f"{p:.4g}" for p in some] for some in answers.posteriors]
        return replace(file, lines=text.split("\n")).text(figures, PROBABILITY)

    def _lines(self, answers: TaggedSentences) -> Iterator[str]:
        text = answers.text
        for n, states in enumerate(answers.states):
            posteriors = None if answers.posteriors is None else answers.posteriors[n]
            words = text.sequences.sentence(n)
            if self.json:
                one: dict[str, Any] = {"line": text.line(n), "words": list(words)}
                one["states"] = list(states)
                if posteriors is not None:
                    one["probabilities"] = list(posteriors)
                yield json.dumps(one, ensure_ascii=False)
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
            some = answers.text.sequences
            sentences, states = [some.sentence(n) for n in range(len(some))], answers.states
        return states_page(found.model, found.overview, sentences, states, title=title)


def say(remark: str) -> None:
    """A remark on stderr, if there is one."""
    if remark:
        typer.echo(f"softcount: {remark}", err=True)


def read_open_tags(text: str | None) -> list[str] | None:
    """Tags between commas."""
    if text is None:
        return None
    tags = [tag.strip() for tag in text.split(",")]
    if not all(tags):
        raise DataError(
            f"--open-tags {brief(text)} has an empty tag",
            "give tags with commas between: NOUN,VERB",
        )
    return tags


def remark_on_open_tags(given: Sequence[str] | None, others: Collection[str]) -> str:
    """Open tags that are nowhere else, for they may be misspelt; empty if there are none.

    >>> remark_on_open_tags(["N", "NUON"], {"N", "V"})
    '--open-tags: NUON is in no dictionary and no tagged sentence, and is taken for a new tag'
    """
    new = [tag for tag in dict.fromkeys(given or ()) if tag not in others]
    if not new:
        return ""
    are, taken = ("is", "is taken for a new tag") if len(new) == 1 else ("are", "are new tags")
    return (
        f"--open-tags: {', '.join(new)} {are} in no dictionary and no tagged sentence, and {taken}"
    )


def remark_on_dictionary(model: HMM, text: SentenceText) -> str:
    """How many words of a text the dictionary has; empty if it has all, or if there is none."""
    dictionary, words = model._tags.dictionary, text.sequences
    if dictionary is None or not len(words.tokens):
        return ""
    import numpy as np

    counts, spelt = np.bincount(words.tokens, minlength=len(words.words)), words.words
    if model.lowercase:
        spelt = [word.lower() for word in spelt]
    n = counts[[word in dictionary for word in spelt]].sum()
    if n == counts.sum():
        return ""
    more = counts[[word.lower() in dictionary and word not in dictionary for word in spelt]].sum()
    case = f"; with --lowercase it would have {more:,} more" if more else ""
    return f"the dictionary has {n / counts.sum():.1%} of {counts.sum():,} words{case}"


def check_same_sentences(gold: Tagged, text: SentenceText, path: str) -> None:
    """Raise if the gold tags belong to other sentences."""
    given, read = gold.sequences, text.sequences
    hint = "give the same sentences in the same order"
    if len(given) != len(read):
        raise DataError(
            f"--gold {path}: {len(given):,} sentences, while there are {len(read):,}", hint
        )
    for n, (ours, theirs) in enumerate(zip(read.lengths, given.lengths, strict=True)):
        if ours != theirs:
            raise DataError(
                f"--gold {given.name(n)}: {theirs} words, while {read.name(n)} has {ours}", hint
            )
    for n in range(len(read)):
        for word, other in zip(read.sentence(n), given.sentence(n), strict=True):
            if word != other and word.lower() != other.lower():
                where = f"--gold {given.name(n)} has {brief(other)}, where {read.name(n)} has"
                raise DataError(f"{where} {brief(word)}", hint)


def remark_on_mistakes(
    states: Sequence[Sequence[Any]], gold: Sequence[Sequence[Any]], named: bool
) -> str:
    """The most frequent mistakes; of states without names, which tag each has most often.

    >>> remark_on_mistakes([["N", "N", "V"]], [["N", "V", "V"]], named=True)
    'most often wrong: V taken for N 1'
    >>> remark_on_mistakes([[1, 0, 1]], [["N", "V", "N"]], named=False)
    'the most frequent gold tag of each state: 0 V, 1 N'
    """
    from softcount.metrics import confusion, mapping

    if not named:
        pairs = sorted(mapping(states, gold).items(), key=lambda one: str(one[0]).rjust(9))
        tags = ", ".join(f"{state} {tag}" for state, tag in pairs)
        return f"the most frequent gold tag of each state: {tags}"
    wrong = confusion(states, gold).most_confused(WRONG)
    mistakes = ", ".join(f"{right} taken for {found} {n:,}" for right, found, n in wrong)
    return f"most often wrong: {mistakes}" if wrong else ""
