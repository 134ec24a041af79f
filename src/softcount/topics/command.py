"""``softcount topics`` and ``softcount similar``."""

from __future__ import annotations

import copy
import json
import re
import shutil
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from softcount.cli.answers import count_words, list_lines, name_file
from softcount.cli.frame import Command, Deed, LearningCommand, at, load_model, refuse_two_of_stdin
from softcount.cli.options import (
    WITH_PRIOR,
    AnswerOptions,
    Argument,
    Input,
    LearnerOptions,
    Learning,
    Model,
    Output,
    WordOptions,
    read_learner_name,
    read_smoothing,
)
from softcount.cli.reading import UNKNOWN, read_line_by_line, read_lines
from softcount.cli.targets import PLAIN, WRITTEN, WRITTEN_OR_PRINTED
from softcount.core.errors import DataError, brief

if TYPE_CHECKING:
    from softcount.cli.frame import Progress
    from softcount.core.types import Array, FloatArray
    from softcount.mixture.report import Grouping
    from softcount.text.archive import Archive
    from softcount.topics.estimators import TopicModel
    from softcount.topics.over_time import OverTime

FEW = 5
"""How many words a remark names before it only counts the rest."""
LEAST_TEXT = 20
"""So many characters of a text are shown in a terminal, however narrow it is."""
SHORT_NUMBER = re.compile(r"[0-9]{1,9}")
NAMED = re.compile(r"\s*([0-9]{1,9})\s*:(.*)", re.DOTALL)
"""A line of seeds that says which topic it is for."""


@dataclass(frozen=True, eq=False)
class LinesOfFiles:
    """Documents in memory: every line of some files, blank ones too.

    ``items``    what models take
    ``borders``  how many lines come before each file
    """

    files: Sequence[str]
    items: Sequence[str]
    borders: Sequence[int]

    @property
    def called(self) -> str:
        """What titles say."""
        first, *others = self.files
        return name_file(first) + (f" and {len(others)} more" if others else "")

    @property
    def texts(self) -> Sequence[str]:
        return self.items

    @property
    def places(self) -> Sequence[int]:
        """Where each document stands among the lines, counted from 0."""
        return range(len(self.items))

    def name(self, number: int) -> str:
        """FILE:LINE of a document."""
        which = bisect_right(self.borders, number) - 1
        return f"{name_file(self.files[which])}:{number - self.borders[which] + 1}"

    def about(self, number: int) -> dict[str, Any]:
        """What to show of a document that was found."""
        return {"text": self.items[number]}

    def lengths(self, model: TopicModel) -> Array:
        """How many words of each document the model knows."""
        import numpy as np

        return np.asarray(count_words(model, self.items).sum(axis=1)).reshape(-1)

    def demand_some(self) -> None:
        """Complain of files without anything to learn from."""
        if not any(text.strip() for text in self.items):
            one = len(self.files) == 1
            fault = "the file is empty, or all its lines are" if one else "all lines are empty"
            raise DataError(f"{', '.join(self.files)}: {fault}", "one document a line")


@dataclass(frozen=True, eq=False)
class OnDisk:
    """Documents in an archive, which may be in another order than the lines it was built from."""

    items: Archive

    texts = None

    @property
    def called(self) -> str:
        return self.items.path.resolve().name

    @cached_property
    def places(self) -> Sequence[int]:
        places: list[int] = self.items.origin.tolist()
        return places

    def name(self, number: int) -> str:
        return self.items.name(number)

    def about(self, number: int) -> dict[str, Any]:
        return {"line": self.places[number] + 1, "name": self.name(number)}

    def lengths(self, model: TopicModel) -> Array:
        """How many words each document has: the model knows all of them."""
        import numpy as np

        parts = self.items.shards()
        return np.concatenate([parts[i].bags.lengths for i in range(len(parts))])

    def demand_some(self) -> None:
        """An archive is never empty."""


Documents = LinesOfFiles | OnDisk


@dataclass(frozen=True, eq=False)
class Names(Sequence[str]):
    """What documents are called on a page, without folders, made when it is asked for."""

    documents: Documents

    def __len__(self) -> int:
        return len(self.documents.items)

    def __getitem__(self, index: Any) -> Any:
        return Path(self.documents.name(index)).name


def is_archive(files: Sequence[str]) -> bool:
    """Whether this is a folder, and no files with lines."""
    return len(files) == 1 and Path(files[0]).is_dir()


def read_documents(files: Sequence[str]) -> Documents:
    """The documents of an archive, or all lines of some files, one after the other."""
    if is_archive(files):
        from softcount.text.archive import Archive

        return OnDisk(Archive.open(files[0]))
    texts: list[str] = []
    borders = []
    for file in files:
        if Path(file).is_dir():
            raise DataError(f"{file} is a folder", "give one archive and nothing else, or files")
        borders.append(len(texts))
        texts += [text for _, text in read_lines(file)]
    return LinesOfFiles(files, texts, borders)


# what is known of them
def read_labels(path: str | None, documents: Documents, n_topics: int) -> list[Any] | None:
    """The topics that each document may have: a list of them, or -1."""
    if path is None:
        return None
    said = read_line_by_line("--labels", path, documents.called, len(documents.items), "topic")
    labels = [
        _topics(text, f"--labels {path}:{number}", n_topics) if text not in UNKNOWN else -1
        for number, text in enumerate(said, 1)
    ]
    return [labels[place] for place in documents.places]


def _topics(text: str, where: str, n_topics: int) -> list[int]:
    fields = text.replace(",", " ").split()
    found = [int(field) if SHORT_NUMBER.fullmatch(field) else n_topics for field in fields]
    if not found or max(found) >= n_topics:
        raise DataError(
            f"{where}: {brief(text)} is no topic",
            f"topics go from 0 to {n_topics - 1} (see -k); -1 or nothing where none is known",
        )
    return found


def read_dates(path: str | None, documents: Documents) -> list[str | None] | None:
    """When each document is from."""
    if path is None:
        return None
    from softcount.topics.over_time import cut_periods

    said = read_line_by_line("--dates", path, documents.called, len(documents.items), "date")
    try:
        cut_periods(said)
    except DataError as error:
        one = re.fullmatch(r"document (\d+): (.*)", error.message, re.DOTALL)
        where, fault = (f":{int(one[1]) + 1}", one[2]) if one else ("", error.message)
        raise DataError(f"--dates {path}{where}: {fault}", DATE) from error
    return [said[place] or None for place in documents.places]


DATE = "give 1994, 1994-03, 1994-03-07, or a number; a blank line where it is unknown"


def read_seeds(
    path: str | None, n_topics: int, cut: Callable[[str], list[str]]
) -> dict[int, list[str]] | None:
    """Words that belong to topics, cut as those of the documents are."""
    if path is None:
        return None
    seeds: dict[int, list[str]] = {}
    for number, line in read_lines(path):
        named = NAMED.fullmatch(line)
        topic, text = (int(named[1]), named[2]) if named else (number - 1, line)
        words = cut(text)
        if not words:
            continue
        if topic >= n_topics:
            raise DataError(
                f"--seed-words {path}:{number}: there is no topic {topic}",
                f"topics go from 0 to {n_topics - 1}: ask for more (-k)",
            )
        if topic in seeds:
            raise DataError(
                f"--seed-words {path}:{number}: topic {topic} has seeds already",
                "put them on one line",
            )
        seeds[topic] = words
    if not seeds:
        raise DataError(f"--seed-words {path}: there are no words", "one topic a line: 'oil price'")
    return seeds


def cut_by(counter: Any) -> Callable[[str], list[str]]:
    """What cuts a text into words."""
    if counter is None:
        return str.split
    cut: Callable[[str], list[str]] = counter.build_analyzer()
    return cut


def read_frozen(path: Path | None, documents: Documents, counter: Any, k: int) -> Array | None:
    """The topics of the model in a file, in terms of the words of these documents."""
    if path is None:
        return None
    import numpy as np

    model = load_model(path, "topics", lambda kind, stored: kind.restore(stored))
    if model.n_components >= k:
        raise DataError(
            f"--frozen-topics {path} has {model.n_components} topics: with -k {k} there is "
            "nothing to learn",
            f"ask for more: -k {model.n_components + 1} or above",
        )
    columns = {word: column for column, word in enumerate(_words(documents, counter))}
    rows = np.zeros((model.n_components, len(columns)))
    for word, probabilities in zip(model.word_names().tolist(), model.topics_.T, strict=True):
        if word in columns:
            rows[:, columns[word]] = probabilities
    if not rows.any(axis=1).all():
        raise DataError(
            f"--frozen-topics {path}: topic {int(rows.any(axis=1).argmin())} has none of the "
            f"words of {documents.called}",
            "freeze a model of similar documents, cut into words the same way",
        )
    return rows


def _words(documents: Documents, counter: Any) -> list[Any]:
    """The words that a model of these documents will have, in the order of its columns."""
    from softcount.text.documents import learn_words, vocabulary_of

    if isinstance(documents, OnDisk):
        names = documents.items.vocabulary
        return list(range(documents.items.n_words)) if names is None else names.tolist()
    learn_words(counter, documents.items)
    words: list[Any] = vocabulary_of(counter).tolist()
    return words


def remark_on_seeds(model: TopicModel, seeds: Mapping[int, Sequence[str]] | None) -> list[str]:
    """A remark on seed words that no document has."""
    known = set(model.word_names().tolist())
    strange = sorted({word for words in (seeds or {}).values() for word in words} - known)
    if not strange:
        return []
    more = f" and {len(strange) - FEW:,} more" if len(strange) > FEW else ""
    return [
        f"no document has the seed word{'s' * (len(strange) > 1)} {', '.join(strange[:FEW])}{more}"
    ]


# softcount topics
class DocumentsRead(NamedTuple):
    """Documents, and what files say of them.

    ``dates``       when they are from
    ``labels``      the topics that each may have
    ``counter``     what counts their words
    ``seed_words``  words that belong to topics
    """

    documents: Documents
    dates: Sequence[str | None] | None
    labels: Sequence[Any] | None = None
    counter: Any = None
    seed_words: Mapping[int, Sequence[str]] | None = None


@dataclass(frozen=True, eq=False)
class TopicsFound:
    """Documents and their topics.

    ``proportions``  p(topic | document), in the order of the documents
    ``words``        how many words of each document the model knows
    ``dates``        when they are from, if that is known
    """

    model: TopicModel
    documents: Documents
    proportions: FloatArray
    words: Array
    dates: Sequence[str | None] | None
    notes: Sequence[str] = ()

    @property
    def weights(self) -> Array:
        """Each topic's share of all words of these documents; of none, of what was learned from."""
        total = self.words.sum()
        found: Array = self.words @ self.proportions / total if total else self.model.weights_
        return found

    @property
    def title(self) -> str:
        k = self.model.n_components
        return f"{k:,} topic{'s' * (k != 1)} in {self.documents.called}"

    def remark(self) -> str:
        """A sentence on lines that have no topics; empty if there are none."""
        places, empty = self.documents.places, (self.words == 0).nonzero()[0].tolist()
        if not empty:
            return ""
        lines = list_lines(sorted(places[d] + 1 for d in empty))
        verb = "has" if len(empty) == 1 else "have"
        return f"{lines} {verb} no word that the model knows, and so no topic"

    def over_time(self) -> OverTime:
        """How large a part each topic has in every period."""
        from softcount.topics.over_time import topics_over_time

        return topics_over_time(self.proportions, self.words, self.dates or ())


class Topics(WordOptions, AnswerOptions, LearnerOptions, LearningCommand):
    """Find what documents are about: topics, of which a document can have several.

    Prints the topic that a document has most of, a tab, and its share: exactly one line for each
    line of the files. What was learned (the topics' sizes, the words that mark them, how the run
    ended) goes to stderr. A line without any word that the model knows has no topic: it gets a
    blank line, or with --proba what the prior says, and stderr names such lines.

    \b
    softcount topics documents.txt -k 50 --stop-words english --html topics.html
    softcount topics documents.txt -k 50 --save topics.softcount > topics.txt
    softcount topics --load topics.softcount more.txt --proba
    softcount corpus build huge.txt.gz -o huge.archive --min-count 5
    softcount topics huge.archive -k 200 --learner online --summary
    """

    texts: Annotated[
        list[str],
        Argument(
            "Text files, one document a line; .gz too; - is stdin. Or one archive, a folder that "
            "softcount corpus build has made.",
            metavar="FILE",
        ),
    ]
    seed_words: Annotated[
        str | None,
        Input(
            "Words that belong to topics: those of topic 0 on the first line, and so on; or a line "
            "says which: '3: oil price'. A blank line is a topic without any.",
            metavar="FILE",
            learns=True,
        ),
    ] = None
    labels: Annotated[
        str | None,
        Input(
            "The topics that each document may have: one or more numbers; -1 or a blank line if "
            "nothing is known.",
            metavar="FILE",
            learns=True,
        ),
    ] = None
    frozen_topics: Annotated[
        Path | None,
        Input(
            "The first topics are those of this model, and stay as they are.",
            metavar="MODEL",
            learns=True,
        ),
    ] = None
    dates: Annotated[
        str | None,
        Input(
            "When each document is from: 1994, 1994-03, 1994-03-07, or a number; a blank line if "
            "it is unknown. The page then shows topics over time.",
            metavar="FILE",
        ),
    ] = None
    n_components: Annotated[int, Model("How many topics.", "-k", "--n-components", least=1)] = 20
    model: Annotated[
        str,
        Model(
            "lda: latent Dirichlet allocation. plsa: the same without priors.",
            choices=("lda", "plsa"),
        ),
    ] = "lda"
    smoothing: Annotated[
        float | dict[str, float] | None,
        Model(
            "Add this to every count of a word in a topic and, for lda, of a topic in a document: "
            "one number, or words=0.01,documents=0.1 (which is what lda does if nothing is said; "
            "plsa adds nothing).",
            parser=read_smoothing,
            metavar="NUMBER",
        ),
    ] = None
    dtype: Annotated[
        str,
        Model(
            "float64; or float32: seven digits, less memory, and less time.",
            choices=("float64", "float32"),
        ),
    ] = "float64"
    learner: Annotated[
        str | None,
        Learning(
            "If not given, em with --tol 5e-5. online-em (or online): mini-batches, for much data. "
            "tempered-em: EM that does not learn documents by heart, for plsa with many topics. "
            "For lda also variational-bayes (vb), stochastic-vb (svb), gibbs, and collapsed-gibbs, "
            "which finds good topics in a hundred sweeps. Also hard-em, incremental-em, "
            "monte-carlo-em.",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None
    init: Annotated[
        str | None,
        Learning(
            "Where to start: anchors (words that one topic alone has) or random. If not given, "
            "anchors for em; random for others, and with --n-init, --short-runs, --seed-words, "
            "--labels or --frozen-topics.",
            file=PLAIN,
        ),
    ] = None
    short_runs: Annotated[
        int | None,
        Learning(
            "Try so many random starts by two quick passes; go on from the best (of random starts "
            "else 3; for more than 2000 documents 1, which warms up).",
            least=0,
        ),
    ] = None
    optimise: Annotated[
        int | None,
        Learning("collapsed-gibbs: fit the priors after every so many sweeps.", least=1),
    ] = None
    top_words: Annotated[
        int | None, Output("Show so many words a topic (else 8, as JSON 10).", least=1)
    ] = None
    proba: Annotated[bool, Output("Print the shares of all topics, tab-separated.")] = False
    over_time: Annotated[
        str | None,
        Output(
            "Write each topic's share in every period of the --dates to this file, tab-separated; "
            "- prints it instead of the lines.",
            metavar="FILE",
            file=WRITTEN_OR_PRINTED,
        ),
    ] = None
    pyldavis: Annotated[
        Path | None,
        Output(
            "Write what pyLDAvis.prepare(**…) takes to this file.",
            metavar="FILE.json",
            file=WRITTEN,
        ),
    ] = None

    def check(self) -> None:
        self.refuse_spectral()
        if self.load is None:
            if self.model == "plsa" and self.learner in WITH_PRIOR:
                raise typer.BadParameter(
                    f"--learner {self.learner} needs priors: choose --model lda"
                )
            if self.learner != "collapsed-gibbs":
                what = f"--learner {self.learner or 'em'}"
                self.refuse(what, ("optimise",), "it is for collapsed-gibbs alone")
            if is_archive(self.texts):
                names = ("tokens", "stop_words", "min_count", "max_share")
                self.refuse(self.texts[0], names, "the archive says which words count")
        if self.over_time is not None and self.dates is None:
            raise typer.BadParameter("--over-time needs --dates")
        if self.over_time == "-" and self.summary:
            raise typer.BadParameter("--over-time - and --summary both go to stdout: choose one")
        refuse_two_of_stdin(*self.texts, self.stop_words, self.seed_words, self.labels, self.dates)

    def read(self, model: TopicModel | None) -> DocumentsRead:
        documents = read_documents(self.texts)
        dates = read_dates(self.dates, documents)
        if model is not None:
            return DocumentsRead(documents, dates)
        documents.demand_some()
        labels = read_labels(self.labels, documents, self.n_components)
        if isinstance(documents, OnDisk):
            counter = documents.items.vectorizer()
        else:
            counter = self.make_vectorizer(documents.items)
        words = read_seeds(self.seed_words, self.n_components, cut_by(counter))
        return DocumentsRead(documents, dates, labels, counter, words)

    def make(self, data: DocumentsRead) -> TopicModel:
        from softcount.topics import LDA, PLSA
        from softcount.topics.core import TopicCore

        more: dict[str, Any] = {"optimise": self.optimise}
        if self.learner is None and self.tol is None:
            more["tol"] = TopicCore.default_learner.tol
        k, documents = self.n_components, data.documents
        settings = {
            "n_components": k,
            "vectorizer": data.counter,
            "init": self.init,
            "short_runs": self.short_runs,
            "smoothing": self.smoothing,
            "seed_words": data.seed_words,
            "frozen_topics": read_frozen(self.frozen_topics, documents, data.counter, k),
            "dtype": self.dtype,
            **self.learning(self.make_learner(**more)),
        }
        kinds: dict[str, type[TopicModel]] = {"lda": LDA, "plsa": PLSA}
        given = {name: value for name, value in settings.items() if value is not None}
        return kinds[self.model](**given)

    def size(self, data: DocumentsRead) -> int:
        return len(data.documents.items)

    def fit(self, model: TopicModel, data: DocumentsRead, progress: Progress) -> None:
        model.fit(data.documents.items, labels=data.labels, on_step=progress)

    def answer(self, model: TopicModel, data: DocumentsRead) -> TopicsFound:
        import numpy as np

        documents = data.documents
        if self.load is None:  # folded in, as a saved model will answer when it is asked again
            proportions = model.fold_in_training_documents()
        elif len(documents.items):
            proportions = model.transform(documents.items)
        else:
            proportions = np.zeros((0, model.n_components))
        words = documents.lengths(model) if len(proportions) else np.zeros(0)
        notes = remark_on_seeds(model, data.seed_words)
        return TopicsFound(model, documents, proportions, words, data.dates, notes)

    # what is printed
    def overview(self, found: TopicsFound) -> Grouping:
        """All topics, the largest first."""
        import numpy as np

        from softcount.mixture.report import MARKS, MARKS_IN_LINE, Group, Grouping, find_word_marks

        model: Any = found.model
        marks = find_word_marks(model, self.top_words or MARKS)
        some = found.proportions[found.words > 0]
        mainly = np.bincount(some.argmax(axis=1), minlength=model.n_components).tolist()
        weights = found.weights.tolist()
        topics = [Group(str(k), mainly[k], weights[k], marks[k]) for k in range(len(weights))]
        n = len(found.proportions)
        return Grouping(
            title=found.title,
            text=f"{n:,} line{'s' * (n != 1)} of {found.words.sum():,.0f} words, by "
            f"{type(model).__name__}. Lines: those whose largest topic it is. Share: of all words.",
            kind="topic",
            figures="% of the topic’s words",
            groups=sorted(topics, key=lambda topic: -topic.share),
            signature=model.signature_,
            fit=getattr(model, "fit_", None),
            notes=[*found.notes, *filter(None, [found.remark()])],
            tokens=True,
            n_marks=self.top_words or MARKS_IN_LINE,
        )

    def tell(self, found: TopicsFound) -> None:
        if self.over_time == "-":
            sys.stdout.write(write_periods(found))
            sys.stdout.flush()
        super().tell(found)

    def print_answers(self, found: TopicsFound) -> None:
        """One line for each line of the files, in their order."""
        if self.over_time == "-":
            return
        places = found.documents.places
        main = found.proportions.argmax(axis=1).tolist()
        for number, d in enumerate(sorted(range(len(places)), key=places.__getitem__), 1):
            k, row, some = main[d], found.proportions[d].tolist(), found.words[d] > 0
            if self.json:
                count = float(found.words[d])  # archives made in Python may have halves of words
                one: dict[str, Any] = {"line": number, "topic": k if some else None}
                one["share"] = row[k] if some else None
                one["words"] = int(count) if count.is_integer() else count
                if self.proba:
                    one["shares"] = row
                text = json.dumps(one, ensure_ascii=False)
            elif self.proba:
                text = "\t".join(f"{p:.6g}" for p in row)
            else:
                text = f"{k}\t{row[k]:.4f}" if some else ""
            sys.stdout.write(text + "\n")
        sys.stdout.flush()  # here, where a closed pipe is no fault

    def page(self, found: TopicsFound) -> str:
        """The page about the topics, as these documents have them."""
        from softcount.topics.report import topic_report

        model: Any = copy.copy(found.model)
        n = len(found.proportions)
        model.weights_ = found.weights
        model.documents_ = found.proportions if n else None
        known: dict[str, Any] = {}
        if n:
            known = {"texts": found.documents.texts, "names": Names(found.documents)}
            known |= {"dates": found.dates, "lengths": found.words}
        return topic_report(model, title=found.title, **known)

    def files(self, found: Callable[[], TopicsFound]) -> Iterator[Deed]:
        from softcount.report.page import write_whole

        def write_pyldavis(path: Path) -> None:
            inputs = found().model.for_pyldavis(found().documents.items)
            plain = {name: getattr(x, "tolist", lambda x=x: x)() for name, x in inputs.items()}
            text = json.dumps(plain, ensure_ascii=False)
            write_whole(path, text + "\n", "what pyLDAvis takes to", "--pyldavis")

        def write_over_time(path: str) -> None:
            text = write_periods(found())
            write_whole(Path(path), text, "topics over time to", "--over-time")

        yield at(self.pyldavis, write_pyldavis)
        yield at(None if self.over_time == "-" else self.over_time, write_over_time)


def write_periods(found: TopicsFound) -> str:
    """Periods × topics, tab-separated; shares are blank where a period has no words."""
    table = found.over_time()
    lines = ["\t".join(["period", "documents", *map(str, range(found.model.n_components))])]
    rows = zip(table.periods, table.documents.tolist(), table.shares.tolist(), strict=True)
    for period, n, shares in rows:
        cells = ["" if p != p else f"{p:.6g}" for p in shares]  # NaN is not itself
        lines.append("\t".join([period, str(n), *cells]))
    return "\n".join(lines) + "\n"


# softcount similar
class Similar(Command):
    """Find the documents most like a query, by their topics.

    Prints the best first, tab-separated: rank, score (0 to 1), the number of the document's line,
    and the line itself if FILE is given. If queries come from stdin, the number of the query stands
    before these. A query without any word that the model knows finds nothing, and stderr says so.

    \b
    softcount topics documents.txt -k 50 --save topics.softcount > topics.txt
    softcount similar topics.softcount "price of oil" documents.txt --words 0.7
    softcount similar topics.softcount -n 5 --json < queries.txt
    """

    model: Annotated[Path, Argument("A file that softcount topics --save wrote.", metavar="MODEL")]
    query: Annotated[
        str | None,
        Argument(
            "What to look for; if not given, or -: each line of stdin.",
            metavar="QUERY",
            file=PLAIN,
        ),
    ] = None
    file: Annotated[
        str | None,
        Argument(
            "The documents to be found, one a line; .gz too; - is stdin; or an archive. If not "
            "given: those that the model has learned from.",
            metavar="FILE",
        ),
    ] = None
    n: Annotated[int, Output("How many documents a query.", "-n", least=1)] = 10
    words: Annotated[
        float,
        Model(
            "How much shared words count (tf-idf), beside shared topics; 0.7 is a good start.",
            least=0.0,
            most=1.0,
        ),
    ] = 0.0
    json: Annotated[bool, Output("Print one JSON object a query.")] = False

    def check(self) -> None:
        if self.query in (None, "-") and self.file == "-":
            raise typer.BadParameter("only one of queries and documents can be standard input")
        if self.query is None and sys.stdin.isatty():
            raise typer.BadParameter(
                "what to look for? Give a query, or - to type some, one a line"
            )

    def run(self) -> None:
        several = self.query in (None, "-")
        model = load_model(self.model, self.name, lambda kind, stored: kind.restore(stored))
        documents = None
        if self.file is not None:
            documents = read_documents([self.file])
            documents.demand_some()
            model.index(documents.items)
        elif model.index_ is None:
            raise DataError(
                f"{self.model} holds no documents to be found: they were in an archive",
                f'say where they are: softcount similar {self.model} "query" ARCHIVE',
            )
        for number, text in read_lines("-") if several else [(1, str(self.query))]:
            hits: list[dict[str, Any]] = []
            for rank, (d, score) in enumerate(model.similar(text, self.n, self.words), 1):
                hits.append({"rank": rank, "score": score, "line": d + 1})
                if documents is not None:
                    hits[-1] |= documents.about(d)
            if not hits and text.strip():
                which = f"query {number}" if several else "the query"
                typer.echo(f"softcount: {which} has no word that the model knows", err=True)
            if self.json:
                whole = {"query": number, "text": text, "hits": hits}
                sys.stdout.write(json.dumps(whole, ensure_ascii=False) + "\n")
            else:
                _print_hits(hits, number if several else None)
            sys.stdout.flush()  # an answer for each query as it comes


def _print_hits(hits: list[dict[str, Any]], query: int | None) -> None:
    for hit in hits:
        fields = [] if query is None else [str(query)]
        fields += [str(hit["rank"]), f"{hit['score']:.4f}", hit.get("name") or str(hit["line"])]
        sys.stdout.write("\t".join([*fields, *_text(hit, fields)]) + "\n")


def _text(hit: dict[str, Any], before: list[str]) -> Iterator[str]:
    """The line of a document; in a terminal as much of it as there is room for."""
    if "text" not in hit:
        return
    if not sys.stdout.isatty():
        from softcount.stories.command import one_field

        yield one_field(hit["text"])
        return
    from softcount.report.text import clean, shorten

    room = shutil.get_terminal_size().columns - len("\t".join(before).expandtabs()) - 8
    yield shorten(clean(hit["text"]), max(room, LEAST_TEXT))
