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
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, cast

import typer

from softcount.cli.answers import count_words, list_lines, name_file
from softcount.cli.frame import Command, LearningCommand, if_given, load_model, refuse_two_of_stdin
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
from softcount.cli.reading import UNKNOWN, open_folder, read_line_by_line, read_lines
from softcount.cli.targets import PLAIN, WRITTEN, WRITTEN_OR_PRINTED
from softcount.core.errors import DataError, brief
from softcount.topics.parameters import LDAParameters

if TYPE_CHECKING:
    from softcount.cli.frame import FitProgress
    from softcount.core.types import FloatArray
    from softcount.mixture.report import Grouping
    from softcount.text.archive import Archive
    from softcount.topics.estimators import TopicModel

MAX_NAMED = 5
"""The most words that a remark lists; the rest are only counted."""
LEAST_TEXT = 20
"""At least this many characters of a text are shown in a terminal, however narrow it is."""
TOPIC_NUMBER = re.compile(r"[0-9]{1,9}")
SEEDS_OF_TOPIC = re.compile(r"\s*([0-9]{1,9})\s*:(.*)", re.DOTALL)
"""A line of seed words that begins with the number of its topic: ``3: oil price``."""
DATE_HINT = "give 1994, 1994-03, 1994-03-07, or a number; leave the line blank if it is unknown"


@dataclass(frozen=True, eq=False)
class Documents:
    """The documents of a command: all lines of some files, blank ones included, or an archive.

    ``texts``    the lines; empty for an archive
    ``starts``   for each file, the number of lines before its first
    ``archive``  documents on disk, possibly in another order than the lines it was built from
    """

    files: Sequence[str]
    texts: Sequence[str] = ()
    starts: Sequence[int] = ()
    archive: Archive | None = None

    @property
    def items(self) -> Sequence[str] | Archive:
        """The documents in the form that models accept."""
        return self.texts if self.archive is None else self.archive

    @property
    def title(self) -> str:
        """The name of the documents, as used in titles."""
        if self.archive is not None:
            return self.archive.path.resolve().name
        first, *others = self.files
        return name_file(first) + (f" and {len(others)} more" if others else "")

    @cached_property
    def places(self) -> Sequence[int]:
        """The line of the input that each document comes from, counted from 0."""
        if self.archive is None:
            return range(len(self.texts))
        # an array: a list would take five times the memory
        return cast("Sequence[int]", self.archive.origin)

    def name(self, number: int) -> str:
        """Return FILE:LINE of a document."""
        if self.archive is not None:
            return self.archive.name(number)
        file = bisect_right(self.starts, number) - 1
        return f"{name_file(self.files[file])}:{number - self.starts[file] + 1}"

    def count_known_words(self, model: TopicModel) -> FloatArray:
        """Count the words of each document that the model knows, (documents,).

        The model knows every word of an archive.
        """
        import numpy as np

        if self.archive is None:
            return np.asarray(count_words(model, self.texts).sum(axis=1)).reshape(-1)
        return np.concatenate([part.bags.lengths for part in self.archive.shards()])

    def check_not_empty(self) -> None:
        """Raise if there is nothing to learn from; an archive is never empty."""
        if self.archive is None and not any(text.strip() for text in self.texts):
            is_single = len(self.files) == 1
            fault = "the file or every line of it is empty" if is_single else "all lines are empty"
            raise DataError(f"{', '.join(self.files)}: {fault}", "give one document per line")


def is_archive(files: Sequence[str]) -> bool:
    """Return whether the arguments name an archive (one folder) rather than text files."""
    return len(files) == 1 and Path(files[0]).is_dir()


def read_documents(files: Sequence[str]) -> Documents:
    """Read the documents of an archive, or all lines of some files, file after file."""
    if is_archive(files):
        return Documents(files, archive=open_folder(files[0], "documents"))
    texts: list[str] = []
    starts = []
    for file in files:
        if Path(file).is_dir():
            raise DataError(f"{file} is a folder", "give either a single archive or text files")
        starts.append(len(texts))
        texts += [text for _, text in read_lines(file)]
    return Documents(files, texts, starts)


@dataclass(frozen=True, eq=False)
class DocumentNames(Sequence[str]):
    """Names of documents on a page, without their folders; created on demand."""

    documents: Documents

    def __len__(self) -> int:
        return len(self.documents.items)

    def __getitem__(self, index: Any) -> Any:
        return Path(self.documents.name(index)).name


# softcount topics
class DocumentsRead(NamedTuple):
    """Documents and what the other input files say about them.

    ``dates``       the date of each document
    ``labels``      the topics that each document may have
    ``vectorizer``  counts the words of the documents
    ``seed_words``  words known to belong to a topic
    """

    documents: Documents
    dates: Sequence[str | None] | None
    labels: Sequence[Any] | None = None
    vectorizer: Any = None
    seed_words: Mapping[int, Sequence[str]] | None = None


class TopicAnswers(NamedTuple):
    """Documents and their topic proportions.

    ``proportions``  p(topic | document), in the order of the documents, (documents, topics)
    ``words``        the number of words of each document that the model knows, (documents,)
    """

    model: TopicModel
    data: DocumentsRead
    proportions: FloatArray
    words: FloatArray

    @property
    def weights(self) -> FloatArray:
        """The proportion of all words in these documents that each topic accounts for.

        If the documents have no known word, the proportions in the training documents.
        """
        total = self.words.sum()
        return self.words @ self.proportions / total if total else self.model.weights_

    @property
    def title(self) -> str:
        k = self.model.n_components
        return f"{k:,} topic{'s' * (k != 1)} in {self.data.documents.title}"

    def format_periods(self) -> str:
        """Format the table periods × topics, tab-separated; cells of a period without words are
        blank.
        """
        from softcount.topics.over_time import topics_over_time

        table = topics_over_time(self.proportions, self.words, self.data.dates or ())
        lines = ["\t".join(["period", "documents", *map(str, range(self.model.n_components))])]
        rows = zip(table.periods, table.documents.tolist(), table.shares.tolist(), strict=True)
        for period, n, shares in rows:
            cells = ["" if p != p else f"{p:.6g}" for p in shares]  # NaN is not itself
            lines.append("\t".join([period, str(n), *cells]))
        return "\n".join(lines) + "\n"


class Topics(WordOptions, AnswerOptions, LearnerOptions, LearningCommand):
    """Find the topics of documents, where each document can have several.

    Prints the largest topic of each document, a tab, and its proportion: exactly one line for each
    line of the files. A summary of the model (the topics' sizes, their characteristic words, how
    the run ended) goes to stderr. A line without any word that the model knows has no topic: a
    blank line is printed for it, or the prior with --proba, and stderr lists such lines.

    \b
    softcount topics documents.txt -k 50 --stop-words english --html topics.html
    softcount topics documents.txt -k 50 --save topics.softcount > topics.txt
    softcount topics --load topics.softcount more.txt --proba
    softcount corpus build huge.txt.gz -o huge.archive --min-count 5
    softcount topics huge.archive -k 200 --learner online --summary
    """

    declared = LDAParameters
    takes: ClassVar = {"n_components": ("-k", "--n-components"), "dtype": (), "short_runs": ()}
    n_components: int
    texts: Annotated[
        list[str],
        Argument(
            "Text files with one document per line, plain or .gz; - is stdin. Or one archive: a "
            "folder written by softcount corpus build."
        ),
    ]
    seed_words: Annotated[
        str | None,
        Input(
            "Words known to belong to a topic, one topic per line: topic 0 on the first line, and "
            "so on, or with its number: '3: oil price'. A blank line is a topic without seed "
            "words.",
            learns=True,
        ),
    ] = None
    labels: Annotated[
        str | None,
        Input(
            "The topics that each document may have, one line per document: one or more numbers; "
            "-1 or a blank line if unknown.",
            learns=True,
        ),
    ] = None
    frozen_topics: Annotated[
        Path | None,
        Input(
            "Take the first topics from this model and keep them fixed.",
            metavar="MODEL",
            learns=True,
        ),
    ] = None
    dates: Annotated[
        str | None,
        Input(
            "The date of each document, one per line: 1994, 1994-03, 1994-03-07, or a number; a "
            "blank line if unknown. The HTML page then shows topics over time."
        ),
    ] = None
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
            "Pseudo-count added to every count of a word in a topic and, for lda, of a topic in a "
            "document: one number, or words=0.01,documents=0.1 (the default for lda; plsa adds "
            "nothing).",
            parser=read_smoothing,
            metavar="NUMBER",
        ),
    ] = None
    learner: Annotated[
        str | None,
        Learning(
            "Default: em with --tol 5e-5. online-em (or online): mini-batches, for large corpora. "
            "tempered-em: EM that avoids overfitting the documents, for plsa with many topics. "
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
            "Initial topics: anchors (from words that occur in one topic only) or random. Default: "
            "anchors for em; random for other learners, and with --n-init, --short-runs, "
            "--seed-words, --labels or --frozen-topics.",
            file=PLAIN,
        ),
    ] = None
    optimise: Annotated[
        int | None,
        Learning("collapsed-gibbs: optimise the priors every this many sweeps.", least=1),
    ] = None
    top_words: Annotated[
        int | None, Output("Number of words shown per topic (default: 8; 10 in JSON).", least=1)
    ] = None
    proba: Annotated[bool, Output("Print the proportions of all topics, tab-separated.")] = False
    over_time: Annotated[
        str | None,
        Output(
            "Write the proportion of each topic in every period of --dates to this file, "
            "tab-separated; - prints this table instead of the lines.",
            file=WRITTEN_OR_PRINTED,
        ),
    ] = None
    pyldavis: Annotated[
        Path | None,
        Output(
            "Write the arguments of pyLDAvis.prepare(**…) to this file.",
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
                learner = f"--learner {self.learner or 'em'}"
                self.refuse(learner, ("optimise",), "it applies to collapsed-gibbs only")
            if is_archive(self.texts):
                names = ("tokens", "stop_words", "min_count", "max_share")
                self.refuse(self.texts[0], names, "the archive has a fixed vocabulary")
        if self.over_time is not None and self.dates is None:
            raise typer.BadParameter("--over-time needs --dates")
        if self.over_time == "-" and self.summary:
            raise typer.BadParameter("--over-time - and --summary both print to stdout: choose one")
        refuse_two_of_stdin(*self.texts, self.stop_words, self.seed_words, self.labels, self.dates)

    def read(self, model: TopicModel | None) -> DocumentsRead:
        documents = read_documents(self.texts)
        dates = self.read_dates(documents)
        if model is not None:
            return DocumentsRead(documents, dates)
        documents.check_not_empty()
        labels = self.read_labels(documents)
        if documents.archive is None:
            vectorizer = self.make_vectorizer(documents.texts)
        else:
            vectorizer = documents.archive.vectorizer()
        return DocumentsRead(documents, dates, labels, vectorizer, self.read_seeds(vectorizer))

    def read_dates(self, documents: Documents) -> list[str | None] | None:
        """Read the date of each document, in the order of the documents."""
        if self.dates is None:
            return None
        from softcount.topics.over_time import cut_periods

        n = len(documents.items)
        dates = read_line_by_line("--dates", self.dates, documents.title, n, "date")
        try:
            cut_periods(dates)
        except DataError as error:
            # the lines of the file are numbered from 1, documents from 0
            match = re.fullmatch(r"document (\d+): (.*)", error.message, re.DOTALL)
            where, fault = (f":{int(match[1]) + 1}", match[2]) if match else ("", error.message)
            raise DataError(f"--dates {self.dates}{where}: {fault}", DATE_HINT) from error
        return [dates[place] or None for place in documents.places]

    def read_labels(self, documents: Documents) -> list[Any] | None:
        """Read the topics that each document may have: a list of them, or -1 if unknown."""
        if self.labels is None:
            return None
        n, n_topics = len(documents.items), self.n_components
        labels: list[Any] = []
        lines = read_line_by_line("--labels", self.labels, documents.title, n, "topic")
        for number, text in enumerate(lines, 1):
            if text in UNKNOWN:
                labels.append(-1)
                continue
            fields = text.replace(",", " ").split()
            # what is not a number becomes n_topics, which is out of range
            topics = [int(field) if TOPIC_NUMBER.fullmatch(field) else n_topics for field in fields]
            if not topics or max(topics) >= n_topics:
                raise DataError(
                    f"--labels {self.labels}:{number}: {brief(text)} is not a topic",
                    f"topics are numbered from 0 to {n_topics - 1} (see -k); give -1 or a blank "
                    "line if unknown",
                )
            labels.append(topics)
        return [labels[place] for place in documents.places]

    def read_seeds(self, vectorizer: Any) -> dict[int, list[str]] | None:
        """Read the seed words of topics, tokenised in the same way as the documents."""
        if self.seed_words is None:
            return None
        analyse = str.split if vectorizer is None else vectorizer.build_analyzer()
        seeds: dict[int, list[str]] = {}
        for number, line in read_lines(self.seed_words):
            match = SEEDS_OF_TOPIC.fullmatch(line)
            topic, text = (int(match[1]), match[2]) if match else (number - 1, line)
            words = analyse(text)
            if not words:
                continue
            where = f"--seed-words {self.seed_words}:{number}"
            if topic >= self.n_components:
                raise DataError(
                    f"{where}: there is no topic {topic}",
                    f"topics are numbered from 0 to {self.n_components - 1}: ask for more with -k",
                )
            if topic in seeds:
                raise DataError(
                    f"{where}: topic {topic} already has seed words", "put them on one line"
                )
            seeds[topic] = words
        if not seeds:
            raise DataError(
                f"--seed-words {self.seed_words}: the file has no words",
                "give the words of one topic per line: 'oil price'",
            )
        return seeds

    def read_frozen_topics(self, data: DocumentsRead) -> FloatArray | None:
        """Read the topics of a saved model and map them to the vocabulary of these documents."""
        if self.frozen_topics is None:
            return None
        import numpy as np

        from softcount.text.documents import learn_words, vocabulary_of

        path, k, archive = self.frozen_topics, self.n_components, data.documents.archive
        model = load_model(path, "topics", lambda kind, stored: kind.restore(stored))
        if model.n_components >= k:
            raise DataError(
                f"--frozen-topics {path} has {model.n_components} topics: with -k {k} there is "
                "nothing left to learn",
                f"ask for more topics: -k {model.n_components + 1} or above",
            )
        if archive is None:
            learn_words(data.vectorizer, data.documents.texts)
            words = vocabulary_of(data.vectorizer)
        else:
            words = archive.vocabulary
            words = np.arange(archive.n_words) if words is None else words
        columns = {word: column for column, word in enumerate(words.tolist())}
        rows = np.zeros((model.n_components, len(columns)))
        for word, probabilities in zip(model.word_names().tolist(), model.topics_.T, strict=True):
            if word in columns:
                rows[:, columns[word]] = probabilities
        if not rows.any(axis=1).all():
            raise DataError(
                f"--frozen-topics {path}: topic {int(rows.any(axis=1).argmin())} has none of the "
                f"words of {data.documents.title}",
                "use a model of similar documents, tokenised in the same way",
            )
        return rows

    def make(self, data: DocumentsRead) -> TopicModel:
        from softcount.topics import LDA, PLSA
        from softcount.topics.core import TopicCore

        options: dict[str, Any] = {"optimise": self.optimise}
        if self.learner is None and self.tol is None:
            options["tol"] = TopicCore.default_learner.tol
        settings = {
            **self.settings(),
            **self.learning(self.make_learner(**options)),
            "vectorizer": data.vectorizer,
            "init": self.init,
            "seed_words": data.seed_words,
            "frozen_topics": self.read_frozen_topics(data),
        }
        if self.smoothing is not None:
            settings["smoothing"] = self.smoothing
        return LDA(**settings) if self.model == "lda" else PLSA(**settings)

    def size(self, data: DocumentsRead) -> int:
        return len(data.documents.items)

    def fit(self, model: TopicModel, data: DocumentsRead, progress: FitProgress) -> None:
        model.fit(data.documents.items, labels=data.labels, **self.fit_options(progress))

    def answer(self, model: TopicModel, data: DocumentsRead) -> TopicAnswers:
        import numpy as np

        documents = data.documents
        if not len(documents.items):
            return TopicAnswers(model, data, np.zeros((0, model.n_components)), np.zeros(0))
        if self.load is None:  # fold in, so that the saved model gives the same answers later
            proportions = model.fold_in_training_documents()
        else:
            proportions = model.transform(documents.items)
        return TopicAnswers(model, data, proportions, documents.count_known_words(model))

    # output
    def overview(self, answers: TopicAnswers) -> Grouping:
        """Summarise all topics, the largest first."""
        import numpy as np

        from softcount.mixture.report import MARKS, MARKS_IN_LINE, Group, Grouping, find_word_marks

        model: Any = answers.model
        marks = find_word_marks(model, self.top_words or MARKS)
        main = answers.proportions.argmax(axis=1)[answers.words > 0]  # of a large file no copy
        n_lines = np.bincount(main, minlength=model.n_components).tolist()
        weights = answers.weights.tolist()
        topics = [Group(str(k), n_lines[k], weights[k], marks[k]) for k in range(len(weights))]
        seeds = {word for words in (answers.data.seed_words or {}).values() for word in words}
        unseen = sorted(seeds - set(model.word_names().tolist()))
        notes = []
        if unseen:
            names = ", ".join(unseen[:MAX_NAMED])
            more = f" and {len(unseen) - MAX_NAMED:,} more" if len(unseen) > MAX_NAMED else ""
            notes = [f"no document has the seed word{'s' * (len(unseen) > 1)} {names}{more}"]
        empty = np.flatnonzero(answers.words == 0).tolist()
        if empty:
            lines = list_lines(sorted(answers.data.documents.places[d] + 1 for d in empty))
            verb = "has" if len(empty) == 1 else "have"
            notes.append(f"{lines} {verb} no word that the model knows, and so no topic")
        n = len(answers.proportions)
        return Grouping(
            title=answers.title,
            text=f"{n:,} line{'s' * (n != 1)} of {answers.words.sum():,.0f} words, by "
            f"{type(model).__name__}. Lines: those with this as their largest topic. "
            "Share: of all words.",
            kind="topic",
            figures="% of the topic’s words",
            groups=sorted(topics, key=lambda topic: -topic.share),
            signature=model.signature_,
            fit=getattr(model, "fit_", None),
            notes=notes,
            tokens=True,
            n_marks=self.top_words or MARKS_IN_LINE,
        )

    def print_results(self, answers: TopicAnswers) -> None:
        if self.over_time == "-":
            sys.stdout.write(answers.format_periods())
            sys.stdout.flush()
        super().print_results(answers)

    def print_answers(self, answers: TopicAnswers) -> None:
        """Print one line for each line of the files, in their order."""
        if self.over_time == "-":
            return
        import numpy as np

        order = np.argsort(np.asarray(answers.data.documents.places, np.int64), kind="stable")
        for number, d in enumerate(order, 1):
            proportions, has_topic = answers.proportions[d], answers.words[d] > 0
            k, row = int(proportions.argmax()), proportions.tolist()
            if self.json:
                count = float(answers.words[d])  # an archive built in Python can have fractions
                answer: dict[str, Any] = {
                    "line": number,
                    "topic": k if has_topic else None,
                    "proportion": row[k] if has_topic else None,
                    "words": int(count) if count.is_integer() else count,
                }
                if self.proba:
                    answer["proportions"] = row
                text = json.dumps(answer, ensure_ascii=False)
            elif self.proba:
                text = "\t".join(f"{p:.6g}" for p in row)
            else:
                text = f"{k}\t{row[k]:.4f}" if has_topic else ""
            sys.stdout.write(text + "\n")
        sys.stdout.flush()  # here, where a closed pipe is not treated as an error

    def page(self, answers: TopicAnswers) -> str:
        """Return the HTML page about the topics, with the proportions of these documents."""
        from softcount.topics.report import topic_report

        model: Any = copy.copy(answers.model)
        model.weights_, model.documents_ = answers.weights, None
        details: dict[str, Any] = {}
        if len(answers.proportions):
            model.documents_ = answers.proportions
            documents = answers.data.documents
            details = {"texts": documents.texts or None, "names": DocumentNames(documents)}
            details |= {"dates": answers.data.dates, "lengths": answers.words}
        return topic_report(model, title=answers.title, **details)

    def files(self, answers: Callable[[], TopicAnswers]) -> Iterator[Callable[[], object] | None]:
        from softcount.report.page import write_whole

        def write_pyldavis(path: Path) -> None:
            inputs = answers().model.for_pyldavis(answers().data.documents.items)
            plain = {name: getattr(x, "tolist", lambda x=x: x)() for name, x in inputs.items()}
            text = json.dumps(plain, ensure_ascii=False)
            write_whole(path, text + "\n", "the input of pyLDAvis to", "--pyldavis")

        def write_over_time(path: str) -> None:
            write_whole(
                Path(path), answers().format_periods(), "topics over time to", "--over-time"
            )

        yield if_given(self.pyldavis, write_pyldavis)
        yield if_given(None if self.over_time == "-" else self.over_time, write_over_time)


# softcount similar
class Similar(Command):
    """Find the documents most similar to a query, by their topics.

    Prints the best matches first, tab-separated: rank, score (0 to 1), the document's line number,
    and the line itself if FILE is given. If queries come from stdin, the number of the query is the
    first column. A query without any word that the model knows has no matches, and stderr says so.

    \b
    softcount topics documents.txt -k 50 --save topics.softcount > topics.txt
    softcount similar topics.softcount "price of oil" documents.txt --words 0.7
    softcount similar topics.softcount -n 5 --json < queries.txt
    """

    model: Annotated[Path, Argument("A model saved by softcount topics --save.", metavar="MODEL")]
    query: Annotated[
        str | None,
        Argument(
            "The query; if not given, or -: one query per line of stdin.",
            metavar="QUERY",
            file=PLAIN,
        ),
    ] = None
    file: Annotated[
        str | None,
        Argument(
            "The documents to search, one per line, plain or .gz; - is stdin; or an archive. "
            "Default: the documents that the model was fitted to."
        ),
    ] = None
    n: Annotated[int, Output("The number of documents per query.", "-n", least=1)] = 10
    words: Annotated[
        float,
        Model(
            "The weight of shared words (tf-idf) relative to shared topics, from 0 to 1; 0.7 is a "
            "good start.",
            least=0.0,
            most=1.0,
        ),
    ] = 0.0
    json: Annotated[bool, Output("Print one JSON object per query.")] = False

    def check(self) -> None:
        if self.query in (None, "-") and self.file == "-":
            raise typer.BadParameter(
                "queries and documents cannot both be read from standard input"
            )
        if self.query is None and sys.stdin.isatty():
            raise typer.BadParameter(
                "the query is missing: give one, or - to type queries, one per line"
            )

    def run(self) -> None:
        from_stdin = self.query in (None, "-")
        model = load_model(self.model, self.name, lambda kind, stored: kind.restore(stored))
        documents = None
        if self.file is not None:
            documents = read_documents([self.file])
            documents.check_not_empty()
            model.index(documents.items)
        elif model.index_ is None:
            raise DataError(
                f"{self.model} has no documents to search: they were in an archive",
                f'name the archive: softcount similar {self.model} "query" ARCHIVE',
            )
        for number, text in read_lines("-") if from_stdin else [(1, str(self.query))]:
            hits: list[dict[str, Any]] = []
            for rank, (d, score) in enumerate(model.similar(text, self.n, self.words), 1):
                hits.append({"rank": rank, "score": score, "line": d + 1})
                if documents is not None and documents.archive is None:
                    hits[-1]["text"] = documents.texts[d]
                elif documents is not None:
                    hits[-1] |= {"line": int(documents.places[d]) + 1, "name": documents.name(d)}
            if not hits and text.strip():
                name = f"query {number}" if from_stdin else "the query"
                typer.echo(f"softcount: {name} has no word that the model knows", err=True)
            if self.json:
                answer = {"query": number, "text": text, "hits": hits}
                sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
            else:
                _print_hits(hits, number if from_stdin else None)
            sys.stdout.flush()  # so that each query is answered at once


def _print_hits(hits: list[dict[str, Any]], query: int | None) -> None:
    """Print tab-separated fields; in a terminal, truncate the document to the line's width."""
    for hit in hits:
        fields = [] if query is None else [str(query)]
        fields += [str(hit["rank"]), f"{hit['score']:.4f}", hit.get("name") or str(hit["line"])]
        if "text" in hit and sys.stdout.isatty():
            from softcount.report.text import clean, shorten

            room = shutil.get_terminal_size().columns - len("\t".join(fields).expandtabs()) - 8
            fields.append(shorten(clean(hit["text"]), max(room, LEAST_TEXT)))
        elif "text" in hit:
            from softcount.stories.command import escape_field

            fields.append(escape_field(hit["text"]))
        sys.stdout.write("\t".join(fields) + "\n")
