"""``softcount adapt``."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from softcount.cli.answers import list_lines, name_file
from softcount.cli.frame import Command, StatusLine, at, refuse_two_of_stdin, try_all
from softcount.cli.options import GoldFile, HtmlFile, Input, Model, Output, SeedOption, WordOptions
from softcount.cli.reading import read_gold
from softcount.cli.records import LABEL, Records, column_names, print_records, read_records
from softcount.cli.targets import PLAIN
from softcount.core.errors import DataError, SoftcountError, brief

if TYPE_CHECKING:
    from softcount.adapt.base import Adapter
    from softcount.adapt.comparison import Result
    from softcount.adapt.report import Adaptation, Judgement
    from softcount.core.types import Array
    from softcount.labels.report import LabellingFigures


TEXT = "text"
TARGET = -1


@dataclass(frozen=True, eq=False)
class DomainFiles:
    """The lines of the sources, of the target, and perhaps more of the target that have labels.

    Items are all lines that are not blank: of the sources, of ``more``, of the target.
    """

    sources: Sequence[Records]
    target: Records
    more: Records | None = None

    @cached_property
    def texts(self) -> list[str]:
        """Of each item."""
        found = {id(records): records.texts(TEXT) for _, records in self._files()}
        return [found[id(records)][n] for records, n, _ in self._items()]

    @cached_property
    def labels(self) -> list[str | None]:
        """Of each item; None where it is unknown."""
        return [records.labels[n] for records, n, _ in self._items()]

    @cached_property
    def numbers(self) -> list[int]:
        """Each item's domain: sources from 1 up, −1 for the target."""
        return [domain for _, _, domain in self._items()]

    @cached_property
    def lines(self) -> list[int]:
        """The lines of the target that are items, the last of them, by number from 0."""
        return [n for n in range(len(self.target)) if n not in self.target.blank]

    def labels_in(self, where: str) -> Counter[str]:
        """The labels in the source or the target, and how often they are there."""
        both = zip(self.labels, self.numbers, strict=True)
        return Counter(y for y, d in both if y is not None and (d > 0) == (where == "source"))

    @property
    def written(self) -> Mapping[str, Any]:
        """Labels that are no texts in JSON, such as 1 and true, as they are written there."""
        return {
            label: records.fields[n][LABEL]
            for records, n, _ in self._items()
            if (label := records.labels[n]) is not None
            and not isinstance(records.fields[n][LABEL], str)
        }

    def unseen_labels(self) -> dict[str, str]:
        """Labels of the target that the sources never have, and where each is first."""
        known, found = self.labels_in("source"), dict[str, str]()
        for records, n, domain in self._items():
            label = records.labels[n]
            if domain < 0 and label is not None and label not in known:
                found.setdefault(label, f"{records.path}:{n + 1}")
        return found

    def _files(self) -> Iterator[tuple[int, Records]]:
        yield from enumerate(self.sources, 1)
        if self.more is not None:
            yield TARGET, self.more
        yield TARGET, self.target

    def _items(self) -> Iterator[tuple[Records, int, int]]:
        for domain, records in self._files():
            for n in range(len(records)):
                if n not in records.blank:
                    yield records, n, domain


def read_domain_files(
    sources: Sequence[str], target: str, more: str | None, columns: Sequence[str]
) -> DomainFiles:
    """Read the files; complain if the sources do not have two labels to learn."""
    _refuse_repeated(sources, target, more)
    found = DomainFiles(
        [read_records(path, columns) for path in sources],
        read_records(target, columns),
        None if more is None else read_records(more, columns),
    )
    labels = sorted(found.labels_in("source"))
    if len(labels) < 2:
        said = f"no label but {brief(labels[0])}" if labels else "no line has a label"
        raise DataError(
            f"--source {', '.join(sources)}: {said}",
            "label lines of at least two classes; an empty label, or -1, is unknown",
        )
    if found.more is not None:
        found.more.demand_labels(1)
    return found


def _refuse_repeated(sources: Sequence[str], target: str, more: str | None) -> None:
    """Complain of a file that would be two domains, or count twice."""
    given = [*(("--source", path) for path in sources), ("--target", target)]
    if more is not None:
        given.append(("--target-labelled", more))
    seen = set[Path]()
    for option, path in given:
        place = Path(path).resolve()
        if place in seen:
            raise DataError(
                f"{option} {path}: this file is given twice", "each domain has a file of its own"
            )
        seen.add(place)


# Methods of adaptation by the names that the command line has for them, and what they need.


class Method(StrEnum):
    """How a classifier comes to the target; simple ones first."""

    SOURCE_ONLY = "source-only"
    TARGET_ONLY = "target-only"
    MERGE = "merge"
    WEIGHTED = "weighted"
    INTERPOLATION = "interpolation"
    PREDICTION = "prediction"
    PRIOR = "prior"
    EASYADAPT = "easyadapt"
    PIVOTS = "pivots"
    DENOISING = "denoising"
    ADVERSARIAL = "adversarial"
    ALL = "all"


USUAL_WITH_LABELS = Method.EASYADAPT
USUAL_WITHOUT_LABELS = Method.DENOISING
"""What labels the lines if nobody says what should, with labels in the target and without."""

CLASSES = {
    Method.SOURCE_ONLY: "SourceOnly",
    Method.TARGET_ONLY: "TargetOnly",
    Method.MERGE: "Merge",
    Method.WEIGHTED: "Weighted",
    Method.INTERPOLATION: "Interpolation",
    Method.PREDICTION: "PredictionFeature",
    Method.PRIOR: "SourcePrior",
    Method.EASYADAPT: "EasyAdapt",
    Method.PIVOTS: "PivotProjection",
    Method.DENOISING: "DenoisingProjection",
    Method.ADVERSARIAL: "AdversarialNetwork",
}
NEEDS = {
    Method.TARGET_ONLY: 2,
    Method.INTERPOLATION: 2,
    Method.PREDICTION: 2,
    Method.MERGE: 1,
    Method.WEIGHTED: 1,
    Method.PRIOR: 1,
    Method.EASYADAPT: 1,
}
"""So many different labels in the target a method is of use with; others do without."""


def choose_method(domains: DomainFiles) -> Method:
    """What labels the lines if nobody says what should: labels of one class only say little, and
    would speak for that class everywhere."""
    enough = len(domains.labels_in("target")) > 1
    return USUAL_WITH_LABELS if enough else USUAL_WITHOUT_LABELS


def list_possible(domains: DomainFiles) -> list[Method]:
    """Those that can do with the labels there are."""
    return [one for one in CLASSES if NEEDS.get(one, 0) <= len(domains.labels_in("target"))]


def check_possible(method: Method, domains: DomainFiles) -> None:
    """Complain of a method that cannot do with the labels there are, or not learn some of them."""
    labels = sorted(domains.labels_in("target"))
    if len(labels) < NEEDS.get(method, 0):
        said = f"all labels are {brief(labels[0])}" if labels else "no line has a label"
        others = ", ".join(m for m in list_possible(domains) if m is not Method.SOURCE_ONLY)
        raise DataError(
            f"--method {method} learns from labels of the target, where {said}",
            f"label some lines of it, or give --target-labelled; {others} do without",
        )
    strange = domains.unseen_labels()
    if method is Method.SOURCE_ONLY and strange:
        label, where = next(iter(strange.items()))
        raise DataError(
            f"{where}: no source has the label {brief(label)}, and {method} learns no other",
            "correct it, or take a method that learns labels of the target, such as easyadapt",
        )


# How ``softcount adapt`` ends: lines filled in, what was learned, a page.


def finish(
    domains: DomainFiles,
    model: Adapter,
    method: str,
    *,
    judgements: Sequence[Judgement] = (),
    gold: Sequence[str | None] | None = None,
    explain: int | None = None,
    html: Path | None = None,
    notes: Sequence[str] = (),
) -> None:
    """The target's lines on stdout, what was learned on stderr, and the page if it is wanted.

    ``explain``  show so many words that moved; None: not on stderr
    """
    from softcount.adapt.report import WORDS, Adaptation, adaptation_page, explain_or_tell_why
    from softcount.cli.answers import name_file
    from softcount.report.page import write_page

    texts = domains.target.texts(TEXT)
    found = _record_figures(domains, model, method, gold, texts)
    wanted = explain is not None or html is not None
    explanation, reason = explain_or_tell_why(model, explain or WORDS) if wanted else (None, "")
    one = Adaptation(
        f"Labels in {name_file(domains.target.path)}",
        method,
        found,
        texts,
        "line",
        explanation,
        judgements,
        [*notes, *([f"no words are explained: {reason}"] if reason else [])],
        reference=Method.SOURCE_ONLY,
    )

    def tell() -> None:
        watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
        if not watched:
            print_adaptation(one, sys.stderr, words=explain is not None)
        names = [found.names[k] if k >= 0 else None for k in found.labels.tolist()]
        print_records(domains.target, _as_written(names, domains), found.confidence.tolist())
        if watched:
            print_adaptation(one, sys.stderr, words=explain is not None)

    try_all(tell, at(html, lambda path: write_page(path, adaptation_page(one))))


def print_adaptation(one: Adaptation, stream: TextIO, *, words: bool) -> None:
    """Tables if someone is watching, else tab-separated values."""
    from softcount.report.tables import print_view

    print_view(stream, partial(one.show, words=words), partial(one.as_tsv, words=words))


def _record_figures(
    domains: DomainFiles,
    model: Adapter,
    method: str,
    gold: Sequence[str | None] | None,
    texts: Sequence[str],
) -> LabellingFigures:
    """The labels of all lines of the target; blank ones get none, and have none to be told."""
    import numpy as np

    from softcount.adapt.report import record_labels

    shares = np.full((len(texts), len(model.classes_)), np.nan)
    shares[domains.lines] = model.predict_proba([texts[n] for n in domains.lines])
    target, true = domains.target, gold
    if gold is not None:
        true = [None if n in target.blank else label for n, label in enumerate(gold)]
    return record_labels(method, model.classes_, shares, target.labels, true, texts)


def _as_written(names: Sequence[str | None], domains: DomainFiles) -> list[Any]:
    """Labels for JSON as files of JSON have them: 1 and true are to stay what they are."""
    if not domains.target.is_json:
        return list(names)
    written = domains.written
    return [name if name is None else written.get(name, name) for name in names]


# Methods learn from the files, and are judged by labels that they were not shown.


MOST_FOLDS = 5
DIGITS = 9
"""Accuracies that are the same in so many figures are the same."""


class MethodTrials:
    """Methods that learn from the domains of some files.

    ``vectorizer``  makes rows of texts
    ``faults``      of methods that could not learn from these: why
    """

    def __init__(self, domains: DomainFiles, vectorizer: Any, seed: int) -> None:
        self.domains, self.vectorizer, self.seed = domains, vectorizer, seed
        self.faults: dict[Method, str] = {}
        self._fitted: dict[Method, tuple[Adapter, list[str]]] = {}

    def fit(self, method: Method) -> tuple[Adapter, list[str]]:
        """A method that has learned from everything, and what it warned of."""
        if method not in self._fitted:
            domains, model = self.domains, self._make(method, self.vectorizer)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                model.fit(domains.texts, domains.labels, sample_domain=domains.numbers)
            messages = [str(one.message).split("\n")[0] for one in caught]
            self._fitted[method] = model, list(dict.fromkeys(messages))
        return self._fitted[method]

    def judge_by_folds(self, methods: Sequence[Method], on: str) -> Judgement | None:
        """How right methods are on labels of the source or the target that they did not see.

        None if there are too few labels to hold any out.
        """
        folds = self._folds(on)
        if not folds:
            return None
        results: list[Result] = []
        with StatusLine() as watch:
            for method in methods:
                try:
                    results += [
                        self._try_fold(method, draw, fold, watch) for draw, fold in enumerate(folds)
                    ]
                except SoftcountError as error:
                    self.faults[method] = error.message
        return self._judge_held_out(results, on, len(folds))

    def judge_by_gold(
        self, methods: Sequence[Method], gold: Sequence[str | None]
    ) -> Judgement | None:
        """How right methods are on lines of the target without a label whose gold label is known;
        None if there are none."""
        from softcount.adapt.comparison import Comparison
        from softcount.adapt.report import Judgement

        target = self.domains.target
        asked = [n for n in self.domains.lines if target.labels[n] is None and gold[n] is not None]
        if not asked:
            return None
        texts = target.texts(TEXT)
        results = []
        with StatusLine() as watch:
            for method in methods:
                watch.show(f"{method}: all lines")
                begun = time.process_time()
                try:
                    said = self.fit(method)[0].predict([texts[n] for n in asked]).tolist()
                except SoftcountError as error:
                    self.faults[method] = error.message
                    continue
                right = sum(label == gold[n] for label, n in zip(said, asked, strict=True))
                seconds = time.process_time() - begun
                results.append(self._result(method, 0, right / len(asked), seconds))
        basis = (
            f"Gold: accuracy on {_count(len(asked), 'line')} of the target with a gold label; it "
            "had no part in the choice."
        )
        return Judgement("gold", Comparison(results), basis, of="run")

    def _make(self, method: Method, vectorizer: Any) -> Adapter:
        from softcount.adapt.comparison import make_methods

        found = make_methods(target_labels=True)[CLASSES[method]]
        found.vectorizer = vectorizer
        if "random_state" in found.get_params():
            found.set_params(random_state=self.seed)
        return found

    def _folds(self, on: str) -> list[tuple[Array, Array]]:
        """As many as the rarest label allows."""
        from softcount.adapt.data import domain_folds

        domains, counts = self.domains, self.domains.labels_in(on)
        n = min(MOST_FOLDS, *counts.values()) if len(counts) > 1 else 0
        return domain_folds(domains.labels, domains.numbers, on, n, self.seed) if n > 1 else []

    def _try_fold(
        self, method: Method, draw: int, fold: tuple[Array, Array], watch: StatusLine
    ) -> Result:
        """How right a method is on the second part of a fold, after learning from the first."""
        watch.show(f"{method}: fold {draw + 1}")
        train, test = fold
        X, labels, domain = self._rows
        begun = time.process_time()
        model = self._make(method, None)
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            model.fit(X[train], labels[train].tolist(), sample_domain=domain[train])
        right = (model.predict(X[test], sample_domain=domain[test]) == labels[test]).mean()
        return self._result(method, draw, float(right), time.process_time() - begun)

    @cached_property
    def _rows(self) -> tuple[Any, Array, Array]:
        """Matrix, labels and domains of all items: cut into words once, for all folds."""
        import numpy as np

        from softcount.text.documents import learn_words

        domains = self.domains
        labels = np.array(domains.labels, dtype=object)
        return learn_words(self.vectorizer, domains.texts), labels, np.array(domains.numbers)

    def _result(self, method: Method, draw: int, accuracy: float, seconds: float) -> Result:
        from softcount.adapt.comparison import Result

        source = "+".join(name_file(one.path) for one in self.domains.sources)
        target = name_file(self.domains.target.path)
        return Result(source, target, str(method), draw, accuracy, seconds, {})

    def _judge_held_out(self, results: Sequence[Result], on: str, n_folds: int) -> Judgement:
        from softcount.adapt.comparison import Comparison
        from softcount.adapt.report import Judgement

        found, n = Comparison(results), self.domains.labels_in(on).total()
        basis = f"Held-out {on}: accuracy on {_count(n, 'label')} of the {on}, held out in "
        basis += f"{n_folds} folds; "
        if on == "source":
            basis += "this is no measure of the target."
        else:
            # one right and one wrong more: else nothing would be sure where all are right
            p = (1 + n * max(map(found.accuracy, found.methods))) / (n + 2)
            basis += f"the best is uncertain by about ±{math.sqrt(p * (1 - p) / (n + 2)):.3f}."
        return Judgement(f"held-out {on}", found, basis, of_target=on == "target")


def choose_best(judged: Judgement, usual: Method) -> Method:
    """The method that is right most often; of equals the usual one, else the first."""
    found = judged.comparison
    worth = {name: (round(found.accuracy(name), DIGITS), name == usual) for name in found.methods}
    return Method(max(worth, key=lambda name: worth[name]))


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


# ``softcount adapt``.


LINES = (
    "label, tab, text; or JSON objects with the keys label and text. An empty label, or -1, is "
    "unknown. .gz too; - is stdin."
)


class Adapt(WordOptions, Command):
    """Label the lines of one domain by what is learned in another, such as reviews of kettles by
    reviews of books.

    Prints every line of the target as it was, with its label filled in and one column more: how
    sure that is, 0 to 1 (JSON: the key confidence). Labels that were given stay. What happened
    goes to stderr.

    With --method all, methods are judged on labels of the target that are held out in turn, and the
    best labels the lines. If the target has none, nothing can judge them there: stderr tells how
    they do in the source, and the usual one labels the lines.

    \b
    softcount adapt --source books.tsv --target kitchen.tsv > labelled.tsv
    softcount adapt --source books.tsv --source dvd.tsv --target kitchen.tsv --method all
    softcount adapt --source books.tsv --target kitchen.tsv --target-labelled few.tsv --explain 20
    """

    source: Annotated[
        list[str],
        Input(
            f"Where labels are: {LINES} Several times: each file is a domain of its own. Lines "
            "without a label are learned from, too.",
            metavar="FILE",
        ),
    ]
    target: Annotated[
        str,
        Input(
            "Where labels are wanted: the same; those that it has stay, and are learned from.",
            metavar="FILE",
        ),
    ]
    target_labelled: Annotated[
        str | None,
        Input("More lines of the target, to be learned from and not printed.", metavar="FILE"),
    ] = None
    columns: Annotated[
        str, Input("What the columns are; text is what is read.", metavar="NAMES", file=PLAIN)
    ] = "label,text"
    method: Annotated[
        str | None,
        Model(
            "source-only: what is learned in the source, as it is. target-only, merge, weighted, "
            "interpolation, prediction, prior, easyadapt: with labels of the target. pivots, "
            "denoising, adversarial: with its words only, or with labels, too. all: compare them. "
            f"If not given: {USUAL_WITH_LABELS} if the target has labels of two classes, else "
            f"{USUAL_WITHOUT_LABELS}.",
            choices=tuple(map(str, Method)),
        ),
    ] = None
    seed: SeedOption = 0
    explain: Annotated[
        int | None, Output("Tell the N words whose weights moved most.", metavar="N", least=1)
    ] = None
    gold: GoldFile = None
    html: HtmlFile = None

    def check(self) -> None:
        files = (*self.source, self.target, self.target_labelled, self.stop_words, self.gold)
        refuse_two_of_stdin(*files)

    def run(self) -> None:
        domains = read_domain_files(
            self.source, self.target, self.target_labelled, column_names(self.columns)
        )
        gold = read_gold(self.gold, self.target, len(domains.target))
        wanted = choose_method(domains) if self.method is None else Method(self.method)
        if wanted is not Method.ALL:
            check_possible(wanted, domains)
        from softcount.adapt.report import Judgement

        vectorizer = self.make_tfidf(domains)
        trials = MethodTrials(domains, vectorizer, self.seed)
        chosen, judgements, notes = wanted, list[Judgement](), list[str]()
        if wanted is Method.ALL:
            chosen, judgements, notes = _judge_methods(trials, gold)
        model, warned = trials.fit(chosen)
        notes += [*_list_facts(domains), *_find_silent(domains, vectorizer), *warned]
        finish(
            domains,
            model,
            chosen,
            judgements=judgements,
            gold=gold,
            explain=self.explain,
            html=self.html,
            notes=notes,
        )

    def make_tfidf(self, domains: DomainFiles) -> Any:
        """What makes rows of texts: tf-idf of the words that are wanted, in all domains
        together."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        counter = self.make_vectorizer(domains.texts)
        return TfidfVectorizer(
            analyzer=counter.analyzer, vocabulary=counter.vocabulary, sublinear_tf=True
        )


def _judge_methods(
    trials: MethodTrials, gold: Sequence[str | None] | None
) -> tuple[Method, list[Judgement], list[str]]:
    """The method that is to label the lines, how all compare, and why it is this one."""
    domains, methods = trials.domains, list_possible(trials.domains)
    usual = choose_method(domains)
    on_target = trials.judge_by_folds(methods, "target")
    if on_target is not None:
        chosen, judged = choose_best(on_target, usual), [on_target]
        why = "none is right more often on held-out labels of the target"
    else:
        on_source = trials.judge_by_folds(methods, "source")
        judged = [] if on_source is None else [on_source]
        chosen = Method.SOURCE_ONLY if usual in trials.faults else usual
        few = "too few labels of some class" if domains.labels_in("target") else "no labels"
        why = f"{few} in the target to judge methods by"
    beside = None if gold is None else trials.judge_by_gold(methods, gold)
    if beside is not None:
        judged.append(beside)
    faults = [f"{one} cannot do: {fault}" for one, fault in trials.faults.items()]
    return chosen, judged, [f"{chosen} labels the lines: {why}", *faults]


def _list_facts(domains: DomainFiles) -> list[str]:
    """What was learned from."""
    files = [(f"source {name_file(one.path)}", one) for one in domains.sources]
    if domains.more is not None:
        files.append((f"more of the target, {name_file(domains.more.path)}", domains.more))
    facts = []
    for name, records in files:
        known = sum(label is not None for label in records.labels)
        free = len(records) - len(records.blank) - known
        facts.append(f"{name}: {known:,} line{'s' * (known != 1)} with a label, {free:,} without")
    facts += [
        f"no source has the label {brief(label)} ({where}): only the target teaches it"
        for label, where in domains.unseen_labels().items()
    ]
    return facts


def _find_silent(domains: DomainFiles, vectorizer: Any) -> list[str]:
    """A remark on lines that ask for a label and have no word to read, if there are any."""
    target, texts, words = domains.target, domains.target.texts(TEXT), vectorizer.build_analyzer()
    known = None if vectorizer.vocabulary is None else set(vectorizer.vocabulary)
    silent = [
        n + 1
        for n in domains.lines
        if target.labels[n] is None
        and not any(known is None or word in known for word in words(texts[n]))
    ]
    return [f"{list_lines(silent)}: no word to go by; the label is a guess"] if silent else []
