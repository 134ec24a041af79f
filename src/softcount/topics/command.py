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
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from softcount.cli.answers import count_words, list_lines, name_file
from softcount.cli.frame import Command, LearningCommand, at, load_model, refuse_two_of_stdin
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
from softcount.topics.parameters import LDAParameters

if TYPE_CHECKING:
    from softcount.cli.frame import Progress
    from softcount.core.types import FloatArray
    from softcount.mixture.report import Grouping
    from softcount.text.archive import Archive
    from softcount.topics.estimators import TopicModel

MAX_NAMED = 5
"""How many words a remark names before it only counts the rest."""
LEAST_TEXT = 20
"""So many characters of a text are shown in a terminal, however narrow it is."""
TOPIC_NUMBER = re.compile(r"[0-9]{1,9}")
SEEDS_OF_TOPIC = re.compile(r"\s*([0-9]{1,9})\s*:(.*)", re.DOTALL)
"""A line of seeds that says which topic it is for."""
DATE_HINT = "give 1994, 1994-03, 1994-03-07, or a number; a blank line where it is unknown"


@dataclass(frozen=True, eq=False)
class Documents:
    """What a command was given: all lines of some files, blank ones too, or an archive.

    ``texts``    the lines; none of an archive
    ``starts``   how many lines come before each file
    ``archive``  documents on disk, perhaps in another order than the lines it was built from
    """

    files: Sequence[str]
    texts: Sequence[str] = ()
    starts: Sequence[int] = ()
    archive: Archive | None = None

    @property
    def items(self) -> Sequence[str] | Archive:
        """What models take."""
        return self.texts if self.archive is None else self.archive

    @property
    def title(self) -> str:
        """What titles say."""
        if self.archive is not None:
            return self.archive.path.resolve().name
        first, *others = self.files
        return name_file(first) + (f" and {len(others)} more" if others else "")

    @cached_property
    def places(self) -> Sequence[int]:
        """Where each document stands among the lines, counted from 0."""
        return range(len(self.texts)) if self.archive is None else self.archive.origin.tolist()

    def name(self, number: int) -> str:
        """FILE:LINE of a document."""
        if self.archive is not None:
            return self.archive.name(number)
        which = bisect_right(self.starts, number) - 1
        return f"{name_file(self.files[which])}:{number - self.starts[which] + 1}"

    def count_known_words(self, model: TopicModel) -> FloatArray:
        """How many words of each document the model knows; of an archive it knows all."""
        import numpy as np

        if self.archive is None:
            return np.asarray(count_words(model, self.texts).sum(axis=1)).reshape(-1)
        return np.concatenate([part.bags.lengths for part in self.archive.shards()])

    def require_some(self) -> None:
        """Raise if there is nothing to learn from; an archive is never empty."""
        if self.archive is None and not any(text.strip() for text in self.texts):
            one = len(self.files) == 1
            fault = "the file is empty, or all its lines are" if one else "all lines are empty"
            raise DataError(f"{', '.join(self.files)}: {fault}", "one document a line")


def is_archive(files: Sequence[str]) -> bool:
    """Whether this is a folder, and no files with lines."""
    return len(files) == 1 and Path(files[0]).is_dir()


def read_documents(files: Sequence[str]) -> Documents:
    """The documents of an archive, or all lines of some files, one after the other."""
    if is_archive(files):
        from softcount.text.archive import Archive

        return Documents(files, archive=Archive.open(files[0]))
    texts: list[str] = []
    starts = []
    for file in files:
        if Path(file).is_dir():
            raise DataError(f"{file} is a folder", "give one archive and nothing else, or files")
        starts.append(len(texts))
        texts += [text for _, text in read_lines(file)]
    return Documents(files, texts, starts)


@dataclass(frozen=True, eq=False)
class DocumentNames(Sequence[str]):
    """What documents are called on a page, without folders; made when asked for."""

    documents: Documents

    def __len__(self) -> int:
        return len(self.documents.items)

    def __getitem__(self, index: Any) -> Any:
        return Path(self.documents.name(index)).name


# softcount topics
class DocumentsRead(NamedTuple):
    """Documents, and what files say of them.

    ``dates``       when they are from
    ``labels``      the topics that each may have
    ``vectorizer``  what counts their words
    ``seed_words``  words that belong to topics
    """

    documents: Documents
    dates: Sequence[str | None] | None
    labels: Sequence[Any] | None = None
    vectorizer: Any = None
    seed_words: Mapping[int, Sequence[str]] | None = None


class TopicsFound(NamedTuple):
    """Documents and their topics.

    ``proportions``  p(topic | document), in the order of the documents, (documents, topics)
    ``words``        how many words of each document the model knows, (documents,)
    """

    model: TopicModel
    data: DocumentsRead
    proportions: FloatArray
    words: FloatArray

    @property
    def weights(self) -> FloatArray:
        """Each topic's share of all words of these documents; of none, of what was learned from."""
        total = self.words.sum()
        return self.words @ self.proportions / total if total else self.model.weights_

    @property
    def title(self) -> str:
        k = self.model.n_components
        return f"{k:,} topic{'s' * (k != 1)} in {self.data.documents.title}"

    def format_periods(self) -> str:
        """Periods × topics, tab-separated; shares are blank where a period has no words."""
        from softcount.topics.over_time import topics_over_time

        table = topics_over_time(self.proportions, self.words, self.data.dates or ())
        lines = ["\t".join(["period", "documents", *map(str, range(self.model.n_components))])]
        rows = zip(table.periods, table.documents.tolist(), table.shares.tolist(), strict=True)
        for period, n, shares in rows:
            cells = ["" if p != p else f"{p:.6g}" for p in shares]  # NaN is not itself
            lines.append("\t".join([period, str(n), *cells]))
        return "\n".join(lines) + "\n"


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

    declared = LDAParameters
    takes: ClassVar = {"n_components": ("-k", "--n-components"), "dtype": (), "short_runs": ()}
    n_components: int
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
    optimise: Annotated[
        int | None, Learning("collapsed-gibbs: fit the priors after every so many sweeps.", least=1)
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
        dates = self.read_dates(documents)
        if model is not None:
            return DocumentsRead(documents, dates)
        documents.require_some()
        labels = self.read_labels(documents)
        if documents.archive is None:
            vectorizer = self.make_vectorizer(documents.texts)
        else:
            vectorizer = documents.archive.vectorizer()
        return DocumentsRead(documents, dates, labels, vectorizer, self.read_seeds(vectorizer))

    def read_dates(self, documents: Documents) -> list[str | None] | None:
        """When each document is from."""
        if self.dates is None:
            return None
        from softcount.topics.over_time import cut_periods

        n = len(documents.items)
        given = read_line_by_line("--dates", self.dates, documents.title, n, "date")
        try:
            cut_periods(given)
        except DataError as error:
            one = re.fullmatch(r"document (\d+): (.*)", error.message, re.DOTALL)
            where, fault = (f":{int(one[1]) + 1}", one[2]) if one else ("", error.message)
            raise DataError(f"--dates {self.dates}{where}: {fault}", DATE_HINT) from error
        return [given[place] or None for place in documents.places]

    def read_labels(self, documents: Documents) -> list[Any] | None:
        """The topics that each document may have: a list of them, or -1."""
        if self.labels is None:
            return None
        n, n_topics = len(documents.items), self.n_components
        labels: list[Any] = []
        given = read_line_by_line("--labels", self.labels, documents.title, n, "topic")
        for number, text in enumerate(given, 1):
            if text in UNKNOWN:
                labels.append(-1)
                continue
            fields = text.replace(",", " ").split()
            topics = [int(one) if TOPIC_NUMBER.fullmatch(one) else n_topics for one in fields]
            if not topics or max(topics) >= n_topics:
                raise DataError(
                    f"--labels {self.labels}:{number}: {brief(text)} is no topic",
                    f"topics go from 0 to {n_topics - 1} (see -k); -1 or nothing where none is "
                    "known",
                )
            labels.append(topics)
        return [labels[place] for place in documents.places]

    def read_seeds(self, vectorizer: Any) -> dict[int, list[str]] | None:
        """Words that belong to topics, cut as those of the documents are."""
        if self.seed_words is None:
            return None
        analyse = str.split if vectorizer is None else vectorizer.build_analyzer()
        seeds: dict[int, list[str]] = {}
        for number, line in read_lines(self.seed_words):
            named = SEEDS_OF_TOPIC.fullmatch(line)
            topic, text = (int(named[1]), named[2]) if named else (number - 1, line)
            words = analyse(text)
            if not words:
                continue
            where = f"--seed-words {self.seed_words}:{number}"
            if topic >= self.n_components:
                raise DataError(
                    f"{where}: there is no topic {topic}",
                    f"topics go from 0 to {self.n_components - 1}: ask for more (-k)",
                )
            if topic in seeds:
                raise DataError(f"{where}: topic {topic} has seeds already", "put them on one line")
            seeds[topic] = words
        if not seeds:
            raise DataError(
                f"--seed-words {self.seed_words}: there are no words",
                "one topic a line: 'oil price'",
            )
        return seeds

    def read_frozen_topics(self, data: DocumentsRead) -> FloatArray | None:
        """The topics of the model in a file, in terms of the words of these documents."""
        if self.frozen_topics is None:
            return None
        import numpy as np

        from softcount.text.documents import learn_words, vocabulary_of

        path, k, archive = self.frozen_topics, self.n_components, data.documents.archive
        model = load_model(path, "topics", lambda kind, stored: kind.restore(stored))
        if model.n_components >= k:
            raise DataError(
                f"--frozen-topics {path} has {model.n_components} topics: with -k {k} there is "
                "nothing to learn",
                f"ask for more: -k {model.n_components + 1} or above",
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
                "freeze a model of similar documents, cut into words the same way",
            )
        return rows

    def make(self, data: DocumentsRead) -> TopicModel:
        from softcount.topics import LDA, PLSA
        from softcount.topics.core import TopicCore

        more: dict[str, Any] = {"optimise": self.optimise}
        if self.learner is None and self.tol is None:
            more["tol"] = TopicCore.default_learner.tol
        settings = {
            **self.settings(),
            **self.learning(self.make_learner(**more)),
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

    def fit(self, model: TopicModel, data: DocumentsRead, progress: Progress) -> None:
        model.fit(data.documents.items, labels=data.labels, on_step=progress)

    def answer(self, model: TopicModel, data: DocumentsRead) -> TopicsFound:
        import numpy as np

        documents = data.documents
        if not len(documents.items):
            return TopicsFound(model, data, np.zeros((0, model.n_components)), np.zeros(0))
        if self.load is None:  # folded in, as a saved model will answer when it is asked again
            proportions = model.fold_in_training_documents()
        else:
            proportions = model.transform(documents.items)
        return TopicsFound(model, data, proportions, documents.count_known_words(model))

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
        seeds = {word for words in (found.data.seed_words or {}).values() for word in words}
        unseen = sorted(seeds - set(model.word_names().tolist()))
        notes = []
        if unseen:
            names = ", ".join(unseen[:MAX_NAMED])
            more = f" and {len(unseen) - MAX_NAMED:,} more" if len(unseen) > MAX_NAMED else ""
            notes = [f"no document has the seed word{'s' * (len(unseen) > 1)} {names}{more}"]
        empty = np.flatnonzero(found.words == 0).tolist()
        if empty:
            lines = list_lines(sorted(found.data.documents.places[d] + 1 for d in empty))
            verb = "has" if len(empty) == 1 else "have"
            notes.append(f"{lines} {verb} no word that the model knows, and so no topic")
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
            notes=notes,
            tokens=True,
            n_marks=self.top_words or MARKS_IN_LINE,
        )

    def tell(self, found: TopicsFound) -> None:
        if self.over_time == "-":
            sys.stdout.write(found.format_periods())
            sys.stdout.flush()
        super().tell(found)

    def print_answers(self, found: TopicsFound) -> None:
        """One line for each line of the files, in their order."""
        if self.over_time == "-":
            return
        places = found.data.documents.places
        main = found.proportions.argmax(axis=1).tolist()
        for number, d in enumerate(sorted(range(len(places)), key=places.__getitem__), 1):
            k, row, some = main[d], found.proportions[d].tolist(), found.words[d] > 0
            if self.json:
                count = float(found.words[d])  # archives made in Python may have halves of words
                one: dict[str, Any] = {
                    "line": number,
                    "topic": k if some else None,
                    "share": row[k] if some else None,
                    "words": int(count) if count.is_integer() else count,
                }
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
        model.weights_, model.documents_ = found.weights, None
        known: dict[str, Any] = {}
        if len(found.proportions):
            model.documents_ = found.proportions
            documents = found.data.documents
            known = {"texts": documents.texts or None, "names": DocumentNames(documents)}
            known |= {"dates": found.data.dates, "lengths": found.words}
        return topic_report(model, title=found.title, **known)

    def files(self, found: Callable[[], TopicsFound]) -> Iterator[Callable[[], object] | None]:
        from softcount.report.page import write_whole

        def write_pyldavis(path: Path) -> None:
            inputs = found().model.for_pyldavis(found().data.documents.items)
            plain = {name: getattr(x, "tolist", lambda x=x: x)() for name, x in inputs.items()}
            text = json.dumps(plain, ensure_ascii=False)
            write_whole(path, text + "\n", "what pyLDAvis takes to", "--pyldavis")

        def write_over_time(path: str) -> None:
            write_whole(Path(path), found().format_periods(), "topics over time to", "--over-time")

        yield at(self.pyldavis, write_pyldavis)
        yield at(None if self.over_time == "-" else self.over_time, write_over_time)


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
            "What to look for; if not given, or -: each line of stdin.", metavar="QUERY", file=PLAIN
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
            documents.require_some()
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
                if documents is not None and documents.archive is None:
                    hits[-1]["text"] = documents.texts[d]
                elif documents is not None:
                    hits[-1] |= {"line": documents.places[d] + 1, "name": documents.name(d)}
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
    """Tab-separated fields; in a terminal as much of a document as there is room for."""
    for hit in hits:
        fields = [] if query is None else [str(query)]
        fields += [str(hit["rank"]), f"{hit['score']:.4f}", hit.get("name") or str(hit["line"])]
        if "text" in hit and sys.stdout.isatty():
            from softcount.report.text import clean, shorten

            room = shutil.get_terminal_size().columns - len("\t".join(fields).expandtabs()) - 8
            fields.append(shorten(clean(hit["text"]), max(room, LEAST_TEXT)))
        elif "text" in hit:
            from softcount.stories.command import one_field

            fields.append(one_field(hit["text"]))
        sys.stdout.write("\t".join(fields) + "\n")
