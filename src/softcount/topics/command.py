"""``softcount topics`` and ``softcount similar``."""

from __future__ import annotations

import copy
import json
import json as jsons
import re
import shutil
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import models, options
from softcount.cli.answers import called, counted, few_named
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_spectral, refuse_two_of_stdin, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.gold import UNKNOWN, one_a_line
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.lines import numbered
from softcount.cli.targets import PLAIN
from softcount.cli.texts import WordFilter, word_counter
from softcount.errors import DataError, shown

if TYPE_CHECKING:
    from softcount.corpus.archive import Archive
    from softcount.learners import Learner
    from softcount.show.groups import Grouping
    from softcount.topics.estimators import TopicModel
    from softcount.topics.report import OverTime
    from softcount.types import Array


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
        return called(first) + (f" and {len(others)} more" if others else "")

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
        return f"{called(self.files[which])}:{number - self.borders[which] + 1}"

    def about(self, number: int) -> dict[str, Any]:
        """What to show of a document that was found."""
        return {"text": self.items[number]}

    def lengths(self, model: TopicModel) -> Array:
        """How many words of each document the model knows."""
        import numpy as np

        return np.asarray(counted(model, self.items).sum(axis=1)).reshape(-1)

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
        from softcount.corpus.archive import Archive

        return OnDisk(Archive.open(files[0]))
    texts: list[str] = []
    borders = []
    for file in files:
        if Path(file).is_dir():
            raise DataError(f"{file} is a folder", "give one archive and nothing else, or files")
        borders.append(len(texts))
        texts += [text for _, text in numbered(file)]
    return LinesOfFiles(files, texts, borders)


# what is known of them
def read_labels(path: str | None, documents: Documents, n_topics: int) -> list[Any] | None:
    """The topics that each document may have: a list of them, or -1."""
    if path is None:
        return None
    said = one_a_line("--labels", path, documents.called, len(documents.items), "topic")
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
            f"{where}: {shown(text)} is no topic",
            f"topics go from 0 to {n_topics - 1} (see -k); -1 or nothing where none is known",
        )
    return found


def read_dates(path: str | None, documents: Documents) -> list[str | None] | None:
    """When each document is from."""
    if path is None:
        return None
    from softcount.topics.report import periods

    said = one_a_line("--dates", path, documents.called, len(documents.items), "date")
    try:
        periods(said)
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
    for number, line in numbered(path):
        named = NAMED.fullmatch(line)
        topic, text = (int(named[1]), named[2]) if named else (number - 1, line)
        words = cut(text)
        if not words:
            continue
        if topic >= n_topics:
            raise DataError(
                f"--seeds {path}:{number}: there is no topic {topic}",
                f"topics go from 0 to {n_topics - 1}: ask for more (-k)",
            )
        if topic in seeds:
            raise DataError(
                f"--seeds {path}:{number}: topic {topic} has seeds already", "put them on one line"
            )
        seeds[topic] = words
    if not seeds:
        raise DataError(f"--seeds {path}: there are no words", "one topic a line: 'oil price'")
    return seeds


# Topic models made as the command line says, and learned from documents.


FEW = 5
"""How many words a remark names before it only counts the rest."""


def learner_for(
    name: LearnerName | None,
    max_iter: int | None,
    tol: float | None,
    n_init: int | None,
    optimise: int | None,
) -> Learner:
    """The learner with the dials that were given; if none is named, what topic models prefer."""
    from softcount.topics.core import TopicCore

    if name is None and tol is None:
        tol = TopicCore.usual_dials["tol"]
    return learner_called(name or LearnerName.EM, max_iter, tol, n_init, optimise=optimise)


def counter_of(documents: Documents, tokens: bool, wanted: WordFilter) -> Any:
    """What counts the documents' words; None if they were counted in Python."""
    if isinstance(documents, OnDisk):
        return documents.items.vectorizer()
    return word_counter(documents.items, tokens, wanted)


def cut_by(counter: Any) -> Callable[[str], list[str]]:
    """What cuts a text into words."""
    if counter is None:
        return str.split
    cut: Callable[[str], list[str]] = counter.build_analyzer()
    return cut


def frozen_rows(path: Path | None, documents: Documents, counter: Any, k: int) -> Array | None:
    """The topics of the model in a file, in terms of the words of these documents."""
    if path is None:
        return None
    import numpy as np

    model = models.load_topics(path)
    if model.n_topics >= k:
        raise DataError(
            f"--freeze {path} has {model.n_topics} topics: with -k {k} there is nothing to learn",
            f"ask for more: -k {model.n_topics + 1} or above",
        )
    columns = {word: column for column, word in enumerate(_words(documents, counter))}
    rows = np.zeros((model.n_topics, len(columns)))
    for word, chances in zip(model.word_names().tolist(), model.topics_.T, strict=True):
        if word in columns:
            rows[:, columns[word]] = chances
    if not rows.any(axis=1).all():
        raise DataError(
            f"--freeze {path}: topic {int(rows.any(axis=1).argmin())} has none of the words of "
            f"{documents.called}",
            "freeze a model of similar documents, cut into words the same way",
        )
    return rows


def _words(documents: Documents, counter: Any) -> list[Any]:
    """The words that a model of these documents will have, in the order of its columns."""
    from softcount.corpus.texts import learn_words, vocabulary_of

    if isinstance(documents, OnDisk):
        names = documents.items.vocabulary
        return list(range(documents.items.n_words)) if names is None else names.tolist()
    learn_words(counter, documents.items)
    words: list[Any] = vocabulary_of(counter).tolist()
    return words


def learned(
    kind: str,
    documents: Documents,
    labels: Any,
    dates: Sequence[str | None] | None,
    settings: Mapping[str, Any],
) -> Told:
    """A model of this kind and what it says of the documents; settings may be None: as usual."""
    from softcount.topics import LDA, PLSA

    given = {name: value for name, value in settings.items() if value is not None}
    model: TopicModel = {"lda": LDA, "plsa": PLSA}[kind](**given)
    models.learn(model, documents.items, labels=labels)
    # folded in, as a saved model will answer when it is asked again
    return Told(model, documents, model.fold_learned(), documents.lengths(model), dates)


def unused(model: TopicModel, seeds: Mapping[int, Sequence[str]] | None) -> list[str]:
    """A remark on seed words that no document has."""
    known = set(model.word_names().tolist())
    strange = sorted({word for words in (seeds or {}).values() for word in words} - known)
    if not strange:
        return []
    more = f" and {len(strange) - FEW:,} more" if len(strange) > FEW else ""
    return [
        f"no document has the seed word{'s' * (len(strange) > 1)} {', '.join(strange[:FEW])}{more}"
    ]


# What a topic model says of documents: a line each, and an overview of the topics.


@dataclass(frozen=True, eq=False)
class Told:
    """Documents and their topics.

    ``shares``  p(topic | document), in the order of the documents
    ``words``   how many words of each document the model knows
    ``dates``   when they are from, if that is known
    """

    model: TopicModel
    documents: Documents
    shares: Array
    words: Array
    dates: Sequence[str | None] | None

    @property
    def weights(self) -> Array:
        """Each topic's share of all words of these documents; of none, of what was learned from."""
        total = self.words.sum()
        found: Array = self.words @ self.shares / total if total else self.model.weights_
        return found

    def remark(self) -> str:
        """A sentence on lines that have no topics; empty if there are none."""
        places, empty = self.documents.places, (self.words == 0).nonzero()[0].tolist()
        if not empty:
            return ""
        lines = few_named(sorted(places[d] + 1 for d in empty))
        verb = "has" if len(empty) == 1 else "have"
        return f"{lines} {verb} no word that the model knows, and so no topic"

    def over_time(self) -> OverTime:
        """How large a part each topic has in every period."""
        from softcount.topics.report import topics_over_time

        return topics_over_time(self.shares, self.words, self.dates or ())


def folded_in(model: TopicModel, documents: Documents, dates: Sequence[str | None] | None) -> Told:
    """What a model says of documents that it has not learned from."""
    import numpy as np

    if not len(documents.items):
        return Told(model, documents, np.zeros((0, model.n_topics)), np.zeros(0), dates)
    shares = model.transform(documents.items)
    return Told(model, documents, shares, documents.lengths(model), dates)


# lines
def print_lines(found: Told, proba: bool, as_json: bool) -> None:
    """One line for each line of the files, in their order."""
    form = _json_lines if as_json else _share_lines if proba else _main_lines
    places = found.documents.places
    order = sorted(range(len(places)), key=places.__getitem__)
    for text in form(found, order, proba):
        sys.stdout.write(text + "\n")
    sys.stdout.flush()  # here, where a closed pipe is no fault


def _main_lines(found: Told, order: Sequence[int], proba: bool) -> Iterator[str]:
    main = found.shares.argmax(axis=1).tolist()
    for d in order:
        k = main[d]
        yield f"{k}\t{found.shares[d, k]:.4f}" if found.words[d] else ""


def _share_lines(found: Told, order: Sequence[int], proba: bool) -> Iterator[str]:
    for d in order:
        yield "\t".join(f"{p:.6g}" for p in found.shares[d].tolist())


def _json_lines(found: Told, order: Sequence[int], proba: bool) -> Iterator[str]:
    main = found.shares.argmax(axis=1).tolist()
    for number, d in enumerate(order, 1):
        k, shares = main[d], found.shares[d].tolist()
        some = found.words[d] > 0
        one: dict[str, Any] = {"line": number, "topic": k if some else None}
        one |= {"share": shares[k] if some else None, "words": _whole(float(found.words[d]))}
        if proba:
            one["shares"] = shares
        yield json.dumps(one, ensure_ascii=False)


def _whole(count: float) -> int | float:
    """Archives made in Python may have halves of words."""
    return int(count) if count.is_integer() else count


# the overview
def overview(found: Told, notes: Sequence[str], top_words: int | None) -> Grouping:
    """All topics, the largest first."""
    import numpy as np

    from softcount.show.groups import IN_A_LINE, MARKS, Group, Grouping, word_marks

    model: Any = found.model
    marks = word_marks(model, top_words or MARKS)
    some = found.shares[found.words > 0]
    mainly = np.bincount(some.argmax(axis=1), minlength=model.n_topics).tolist()
    weights = found.weights.tolist()
    topics = [Group(str(k), mainly[k], weights[k], marks[k]) for k in range(model.n_topics)]
    n = len(found.shares)
    return Grouping(
        title=_title(found),
        text=f"{n:,} line{'s' * (n != 1)} of {found.words.sum():,.0f} words, by "
        f"{type(model).__name__}. Lines: those whose largest topic it is. Share: of all words.",
        kind="topic",
        figures="% of the topic’s words",
        groups=sorted(topics, key=lambda topic: -topic.share),
        signature=model.signature_,
        fit=getattr(model, "fit_", None),
        notes=[*notes, *filter(None, [found.remark()])],
        tokens=True,
        in_a_line=top_words or IN_A_LINE,
    )


def _title(found: Told) -> str:
    k = found.model.n_topics
    return f"{k:,} topic{'s' * (k != 1)} in {found.documents.called}"


def print_all(
    found: Told, grouping: Grouping, proba: bool, *, as_json: bool, summary: bool, lines: bool
) -> None:
    """Lines on stdout, if they are wanted, and the overview on stderr; or the overview alone."""
    from softcount.cli.answers import print_overview

    if summary:
        print_overview(grouping, sys.stdout, as_json)
        return
    watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
    if not watched:  # first, for whoever reads the pipe may not read to the end
        print_overview(grouping, sys.stderr)
    if lines:
        print_lines(found, proba, as_json)
    if watched:
        print_overview(grouping, sys.stderr)


# files
def write_page(found: Told, path: Path) -> None:
    """The page about the topics, as these documents have them."""
    from softcount.show import report
    from softcount.topics.report import topic_report

    model: Any = copy.copy(found.model)
    model.weights_ = found.weights
    model.documents_ = found.shares if len(found.shares) else None
    known: dict[str, Any] = {}
    if len(found.shares):
        known = {"texts": found.documents.texts, "names": Names(found.documents)}
        known |= {"times": found.dates, "lengths": found.words}
    report.write_page(path, topic_report(model, title=_title(found), **known))


def write_pyldavis(found: Told, path: Path) -> None:
    """What pyLDAvis takes, as JSON."""
    from softcount.show import report

    inputs = found.model.for_pyldavis(found.documents.items)
    plain = {name: getattr(value, "tolist", lambda v=value: v)() for name, value in inputs.items()}
    text = json.dumps(plain, ensure_ascii=False)
    report.write_whole(path, text + "\n", "what pyLDAvis takes to", "--pyldavis")


def write_over_time(found: Told, path: str) -> None:
    """Periods × topics, tab-separated; shares are blank where a period has no words."""
    from softcount.show import report

    table = found.over_time()
    lines = ["\t".join(["period", "documents", *map(str, range(found.model.n_topics))])]
    rows = zip(table.periods, table.documents.tolist(), table.shares.tolist(), strict=True)
    for period, n, shares in rows:
        cells = ["" if p != p else f"{p:.6g}" for p in shares]  # NaN is not itself
        lines.append("\t".join([period, str(n), *cells]))
    text = "\n".join(lines) + "\n"
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        report.write_whole(Path(path), text, "topics over time to", "--over-time")


# ``softcount topics``.


class ModelName(StrEnum):
    """What ``--model`` may say."""

    LDA = "lda"
    PLSA = "plsa"


WITH_PRIORS = (
    LearnerName.VARIATIONAL_BAYES,
    LearnerName.STOCHASTIC_VB,
    LearnerName.GIBBS,
    LearnerName.COLLAPSED_GIBBS,
)
"""Learners of a posterior, which needs a prior."""

WORD_OPTIONS = ("tokens", "stop_words", "min_count", "max_share")
LEARNING_OPTIONS = (
    *("k", "model", "learner", "init", "scouts", "seed", "threads", "max_iter", "tol", "n_init"),
    *("doc_prior", "word_prior", "smoothing", "optimise", "seeds", "labels", "freeze", "float32"),
    *(*WORD_OPTIONS, "save"),
)


def topics(
    ctx: typer.Context,
    files: options.Documents,
    k: options.Topics = 20,
    model: Annotated[
        ModelName,
        typer.Option(
            help="lda: latent Dirichlet allocation. plsa: the same without priors.",
            metavar="NAME",
            parser=one_of(ModelName),
        ),
    ] = ModelName.LDA,
    tokens: options.SplitAtSpaces = False,
    stop_words: options.StopWords = None,
    min_count: options.MinCount = 1,
    max_share: options.MaxShare = 1.0,
    learner: Annotated[LearnerName | None, options.HOW_TO_LEARN_TOPICS] = None,
    init: options.TopicInit = None,
    scouts: options.TopicScouts = None,
    doc_prior: options.DocPrior = None,
    word_prior: options.WordPrior = None,
    smoothing: options.TopicSmoothing = None,
    optimise: options.Optimise = None,
    seeds: options.Seeds = None,
    labels: options.Labels = None,
    freeze: options.Freeze = None,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    float32: options.Float32 = False,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    dates: options.Dates = None,
    over_time: options.OverTime = None,
    top_words: options.TopWords = None,
    proba: options.TopicProba = False,
    json: options.JsonAnswers = False,
    summary: options.Summary = False,
    save: options.Save = None,
    load: options.Load = None,
    html: options.Html = None,
    pyldavis: options.PyLDAvis = None,
) -> None:
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
    refuse_spectral(learner)
    _refuse_together(ctx, files, model, learner, load)
    _refuse_over_time(over_time, dates, summary)
    refuse_two_of_stdin(*files, stop_words, seeds, labels, dates)
    with readable_errors():
        from softcount.cli import models
        from softcount.engines import Local

        documents = read_documents(files)
        times = read_dates(dates, documents)
        notes: list[str] = []
        if load is not None:
            found = folded_in(models.load_topics(load), documents, times)
        else:
            documents.demand_some()
            known = read_labels(labels, documents, k)
            wanted = WordFilter(min_count, max_share, stop_words)
            counter = counter_of(documents, tokens, wanted)
            words = read_seeds(seeds, k, cut_by(counter))
            settings = {
                **{"n_topics": k, "vectorizer": counter, "init": init, "scouts": scouts},
                **{"doc_prior": doc_prior, "word_prior": word_prior, "smoothing": smoothing},
                **{"seeds": words, "random_state": seed, "engine": Local(threads)},
                "learner": learner_for(learner, max_iter, tol, n_init, optimise),
                "frozen": frozen_rows(freeze, documents, counter, k),
                "dtype": "float32" if float32 else "float64",
            }
            found = learned(model, documents, known, times, settings)
            notes = unused(found.model, words)
        table = None if over_time == "-" else over_time

        def tell() -> None:
            shown = overview(found, notes, top_words)
            lines = over_time != "-"
            if not lines:
                write_over_time(found, "-")
            print_all(found, shown, proba, as_json=json, summary=summary, lines=lines)

        try_all(
            at(save, found.model.save),
            tell,
            at(html, lambda path: write_page(found, path)),
            at(pyldavis, lambda path: write_pyldavis(found, path)),
            at(table, lambda path: write_over_time(found, path)),
        )


def _refuse_together(
    ctx: typer.Context,
    files: Sequence[str],
    model: ModelName,
    learner: LearnerName | None,
    load: Path | None,
) -> None:
    """Usage errors for options that would be without effect, or cannot be."""
    if load is not None:
        refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
        return
    if model is ModelName.PLSA:
        refuse_with(ctx, "--model plsa", ("doc_prior", "word_prior"), "it has no priors")
        if learner in WITH_PRIORS:
            raise typer.BadParameter(f"--learner {learner} needs priors: choose --model lda")
    else:
        refuse_with(ctx, "--model lda", ("smoothing",), "say --word-prior")
    if learner is not LearnerName.COLLAPSED_GIBBS:
        what = f"--learner {learner or LearnerName.EM}"
        refuse_with(ctx, what, ("optimise",), "it is for collapsed-gibbs alone")
    if is_archive(files):
        refuse_with(ctx, files[0], WORD_OPTIONS, "the archive says which words count")


def _refuse_over_time(over_time: str | None, dates: str | None, summary: bool) -> None:
    if over_time is not None and dates is None:
        raise typer.BadParameter("--over-time needs --dates")
    if over_time == "-" and summary:
        raise typer.BadParameter("--over-time - and --summary both go to stdout: choose one")


# ``softcount similar``.


LEAST_TEXT = 20
"""So many characters of a text are shown in a terminal, however narrow it is."""


def similar(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A file that softcount topics --save wrote.")
    ],
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY", help="What to look for; if not given, or -: each line of stdin."
        ),
        PLAIN,
    ] = None,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The documents to be found, one a line; .gz too; - is stdin; or an archive. If "
            "not given: those that the model has learned from.",
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many documents a query.")] = 10,
    words: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="How much shared words count (tf-idf), beside shared topics; 0.7 is a good start.",
        ),
    ] = 0.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a query.")] = False,
) -> None:
    """Find the documents most like a query, by their topics.

    Prints the best first, tab-separated: rank, score (0 to 1), the number of the document's line,
    and the line itself if FILE is given. If queries come from stdin, the number of the query stands
    before these. A query without any word that the model knows finds nothing, and stderr says so.

    \b
    softcount topics documents.txt -k 50 --save topics.softcount > topics.txt
    softcount similar topics.softcount "price of oil" documents.txt --words 0.7
    softcount similar topics.softcount -n 5 --json < queries.txt
    """
    several = query is None or query == "-"
    if several and file == "-":
        raise typer.BadParameter("only one of queries and documents can be standard input")
    if query is None and sys.stdin.isatty():
        raise typer.BadParameter("what to look for? Give a query, or - to type some, one a line")
    with readable_errors():
        search = _search(model, file, n, words)
        for number, text in numbered("-") if several else [(1, str(query))]:
            hits = search(text)
            if not hits and text.strip():
                which = f"query {number}" if several else "the query"
                typer.echo(f"softcount: {which} has no word that the model knows", err=True)
            if json:
                whole = {"query": number, "text": text, "hits": hits}
                sys.stdout.write(jsons.dumps(whole, ensure_ascii=False) + "\n")
            else:
                _print(hits, number if several else None)
            sys.stdout.flush()  # an answer for each query as it comes


@dataclass(frozen=True, eq=False)
class _Search:
    """A model, and the documents that it finds: its own, if there are no others."""

    model: TopicModel
    documents: Documents | None
    n: int
    words: float

    def __call__(self, query: str) -> list[dict[str, Any]]:
        found = self.model.similar(query, self.n, self.words)
        return [self._hit(rank, *one) for rank, one in enumerate(found, 1)]

    def _hit(self, rank: int, number: int, score: float) -> dict[str, Any]:
        hit: dict[str, Any] = {"rank": rank, "score": score, "line": number + 1}
        return hit if self.documents is None else hit | self.documents.about(number)


def _search(path: Path, file: str | None, n: int, words: float) -> _Search:
    from softcount.cli import models

    model = models.load_topics(path, models.SIMILAR)
    if file is None:
        if model.index_ is None:
            raise DataError(
                f"{path} holds no documents to be found: they were in an archive",
                f'say where they are: softcount similar {path} "query" ARCHIVE',
            )
        return _Search(model, None, n, words)
    documents = read_documents([file])
    documents.demand_some()
    model.index(documents.items)
    return _Search(model, documents, n, words)


def _print(hits: list[dict[str, Any]], query: int | None) -> None:
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
    from softcount.show.groups import shortened
    from softcount.show.snippets import clean

    room = shutil.get_terminal_size().columns - len("\t".join(before).expandtabs()) - 8
    yield shortened(clean(hit["text"]), max(room, LEAST_TEXT))
