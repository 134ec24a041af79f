"""``softcount cluster`` and ``softcount classify``: cluster or classify documents and points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from softcount.cli.frame import Command, LearningCommand
from softcount.cli.options import (
    AnswerOptions,
    Argument,
    ClassInit,
    GoldFile,
    Input,
    LearnerOptions,
    Learning,
    Model,
    Output,
    ShortRunsOption,
    WordOptions,
    read_learner_name,
)
from softcount.cli.reading import (
    Lines,
    WordFilter,
    open_items,
    read_gold,
    read_labelled,
    read_points,
    read_texts,
)
from softcount.cli.targets import PLAIN
from softcount.mixture.parameters import MultinomialMixtureParameters, NaiveBayesParameters

if TYPE_CHECKING:
    import warnings

    from softcount.cli.answers import Answers
    from softcount.cli.frame import FitProgress
    from softcount.learners import Share
    from softcount.mixture import NaiveBayes
    from softcount.mixture.base import Clusterer
    from softcount.mixture.report import Group, Grouping


class LineData(NamedTuple):
    """Input lines to cluster or classify, with their gold classes if known.

    ``lines``                  the lines to predict
    ``gold``                   gold class of each line, or None without ``--gold``
    ``labels, labelled``       training labels and the lines they belong to (`classify` only)
    ``unlabelled``             training lines without labels (`classify` only)
    """

    lines: Lines
    gold: Sequence[str | None] | None
    labels: Sequence[str] = ()
    labelled: Sequence[str] = ()
    unlabelled: Sequence[str] = ()


class LinePredictions(NamedTuple):
    """A fitted model, its predictions, and the lines they are for."""

    model: Any
    answers: Answers
    data: LineData


CONSTRAINTS = (
    "What is known of {classes}: lines such as: puck hockey:0.9 baseball:0.1. Of the lines with "
    "the word, these shares have {named}; hockey:0.9,1 is a range of shares, a class without a "
    "number has 0.9 or more, and * stands for all lines."
)


class _LinesCommand(WordOptions, AnswerOptions, LearnerOptions, LearningCommand):
    """Base of both commands: predict a class for each line of a file, and report the groups."""

    gold: GoldFile = None
    smoothing: float

    def size(self, data: LineData) -> int:
        return len(data.lines.items)

    def describe(self, result: LinePredictions, groups: list[Group]) -> dict[str, Any]:
        """Return the command-specific fields of a `Grouping`: title, text, kind, groups, notes,
        counts."""
        raise NotImplementedError

    def grouping(self, result: LinePredictions, *, examples: bool) -> Grouping:
        """Return the groups, for the overview and the HTML page."""
        from softcount.cli.answers import compare_with_gold, make_line_groups
        from softcount.mixture.report import Grouping, counts_tokens, describe_figures

        model, answers = result.model, result.answers
        return Grouping(
            figures=describe_figures(model),
            signature=model.signature_,
            fit=getattr(model, "fit_", None),
            tokens=counts_tokens(model),
            comparison=compare_with_gold(answers, result.data.gold),
            **self.describe(result, make_line_groups(model, answers, examples=examples)),
        )

    def overview(self, result: LinePredictions) -> Grouping:
        return self.grouping(result, examples=False)

    def page(self, result: LinePredictions) -> str:
        from softcount.mixture.report import groups_page

        return groups_page(self.grouping(result, examples=True))

    def print_answers(self, result: LinePredictions) -> None:
        from softcount.cli.answers import print_answers

        print_answers(result.answers, self.proba, self.json)


# softcount cluster
WORD_MODELS = ("multinomial", "bernoulli", "process")
PROCESS_MODELS = ("process", "process-gaussian")
DEFAULT_LEARNERS = {"kmeans": "hard-em", **dict.fromkeys(PROCESS_MODELS, "variational-bayes")}
"""Default learners of the models whose default is not EM."""
CLUSTERERS = {
    "multinomial": "MultinomialMixture",
    "bernoulli": "MultinomialMixture",
    "gaussian": "GaussianMixture",
    "kmeans": "KMeans",
    "soft-kmeans": "SoftKMeans",
    "process": "DirichletProcessMixture",
    "process-gaussian": "DirichletProcessGaussianMixture",
}


class MixtureOptions(WordOptions, LearnerOptions, Command):
    """Options of an unsupervised mixture and its initialisation; also for ``softcount select``."""

    declared = MultinomialMixtureParameters
    takes: ClassVar = {"smoothing": ()}

    model: str
    init: ClassInit = None
    short_runs: ShortRunsOption = 0

    def check(self) -> None:
        self.refuse_spectral(unless=self.model == "multinomial")
        if self.model not in WORD_MODELS:
            names = ("tokens", "smoothing", "stop_words", "min_count", "max_share")
            self.refuse(f"--model {self.model}", names, "it reads numbers, not words")

    def make_mixture(self, items: Any) -> Clusterer:
        """Make the mixture chosen by the options, unfitted, for these texts or points."""
        from softcount import mixture

        settings = self.settings() | self.learning(
            self.make_learner(DEFAULT_LEARNERS.get(self.model, "em"))
        )
        settings["short_runs"] = self.short_runs
        if self.init is not None:
            settings["init"] = self.init
        if self.model in WORD_MODELS:
            if isinstance(items, Sequence):  # a corpus on disk has a vocabulary
                settings["vectorizer"] = self.make_vectorizer(items)
            settings["bernoulli"] = self.model == "bernoulli"
        model: Clusterer = getattr(mixture, CLUSTERERS[self.model])(**settings)
        return model


class Cluster(MixtureOptions, _LinesCommand):
    """Cluster the lines of a file into classes, without labels.

    Prints the number of each line's class, counting from 0: exactly one output line for each input
    line. A summary of the model (class sizes, characteristic words of each class, how the run
    ended) goes to stderr. A line without any word known to the model gets the most common class;
    stderr lists these lines, and --json marks them with "words": 0. If the lines are numbers, a
    blank line gives a blank line.

    \b
    softcount cluster documents.txt -k 20 > classes.txt
    softcount cluster documents.txt -k 20 --min-count 3 --html classes.html --save model.softcount
    softcount cluster --load model.softcount more.txt --proba
    softcount cluster documents.txt -k 20 --gold known.txt --summary
    softcount cluster documents.txt -k 2 --constraints words.txt
    """

    takes: ClassVar = {"n_components": ("-k", "--n-components"), "smoothing": ()}

    file: Annotated[
        str,
        Argument(
            "Text file, one document per line. May be .gz; - is stdin. Or a corpus on disk, of "
            "documents or vectors."
        ),
    ]
    model: Annotated[
        str,
        Model(
            "multinomial: models word counts. bernoulli: models the presence or absence of words. "
            "process: multinomial with the number of classes inferred from the texts, at most -k "
            "(default 50). gaussian, kmeans, soft-kmeans, process-gaussian: lines are columns of "
            "numbers, separated by tabs or spaces.",
            choices=tuple(CLUSTERERS),
        ),
    ] = "multinomial"
    learner: Annotated[
        str | None,
        Learning(
            "Default depends on the model: em; hard-em for kmeans; variational-bayes for process "
            "and process-gaussian. Also online-em, incremental-em, stochastic-vb, monte-carlo-em, "
            "gibbs; collapsed-gibbs (multinomial and process); spectral (multinomial: solved from "
            "moments, followed by --max-iter steps of EM, or by none if not given).",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None
    constraints: Annotated[
        str | None,
        Input(CONSTRAINTS.format(classes="classes", named="class 0, 1, …"), learns=True),
    ] = None

    def read(self, model: Clusterer | None) -> LineData:
        from softcount.cli.answers import is_of_words

        of_words = self.model in WORD_MODELS if model is None else is_of_words(model)
        found = open_items(self.file, "documents" if of_words else "vectors")
        lines = found or (read_texts if of_words else read_points)(self.file)
        if found is not None:
            names = ("tokens", "stop_words", "min_count", "max_share")
            self.refuse(self.file, names, "the corpus has a fixed vocabulary")
        elif model is None:
            lines.require_lines(self.file)
        return LineData(lines, read_gold(self.gold, self.file, len(lines.texts)))

    def make(self, data: LineData) -> Clusterer:
        model = self.make_mixture(data.lines.items)
        if self.constraints is None:
            return model
        shares = [
            replace(each, value=int(each.value) if each.value.isdecimal() else each.value)
            for each in _read_shares(self.constraints)
        ]
        model.learner = model._learner.set_params(constraints=shares)
        return model

    def fit(self, model: Clusterer, data: LineData, progress: FitProgress) -> None:
        model.fit(data.lines.items, **self.fit_options(progress))

    def answer(self, model: Clusterer, data: LineData) -> LinePredictions:
        from softcount.cli.answers import answer

        answers = answer(model, data.lines, "class", range(model.n_components))
        return LinePredictions(model, answers, data)

    def describe(self, result: LinePredictions, groups: list[Group]) -> dict[str, Any]:
        """Describe the classes, largest first; empty classes are only counted."""
        from softcount.cli.answers import name_file

        model, answers, notes = result.model, result.answers, []
        used = sorted((group for group in groups if group.size), key=lambda group: -group.size)
        if self.load is None and self.model not in PROCESS_MODELS and not result.data.lines.on_disk:
            different = len({" ".join(answers.lines[i].split()) for i in answers.where} - {""})
            if model.n_components > different:  # so some classes cannot have a line of their own
                notes.append(
                    f"{model.n_components} classes are more than the {different} different lines: "
                    "use fewer (-k)"
                )
        if answers.remark():
            notes.append(answers.remark())
        notes += _describe_constraints(model)
        empty = len(groups) - len(used)
        if answers.lines and empty:
            verb = "has" if empty == 1 else "have"
            notes.append(f"{empty} of the {len(groups)} classes {verb} no line")
        return {
            "title": f"{len(used)} class{'es' * (len(used) != 1)} in {name_file(self.file)}",
            "text": f"{len(answers.lines):,} lines, sorted by a {model.core_.name}.",
            "kind": "class",
            "groups": used,
            "notes": notes,
            "counts": [("lines", [group.size for group in used])],
        }


# softcount classify
def read_weight(text: Any) -> float | None:
    """Return λ as a number, or None if it is to be chosen by cross-validation."""
    if text == "cv":
        return None
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"--unlabelled-weight {text}: give a number, or cv") from None


class Classify(_LinesCommand):
    """Classify the lines of a file, learning from labelled and unlabelled lines.

    Prints each line's label: exactly one output line for each input line. A summary of the model
    goes to stderr. A line without any word known to the model gets the most common label; stderr
    lists these lines, and --json marks them with "words": 0.

    \b
    softcount classify --train labelled.tsv new.txt > labels.txt
    softcount classify --train labelled.tsv --unlabelled more.txt --unlabelled-weight cv new.txt
    softcount classify --train labelled.tsv --save model.softcount
    softcount classify --load model.softcount new.txt --json
    softcount classify --constraints words.txt --unlabelled posts.txt
    """

    declared = NaiveBayesParameters
    takes: ClassVar = {
        "n_components": ("-k", "--n-components"),
        "smoothing": (),
        "length": (),
        "bernoulli": (),
    }
    length: float | None
    bernoulli: bool

    file: Annotated[
        str | None,
        Argument(
            "Lines to classify; may be .gz; - is stdin. Default: the --unlabelled lines.",
            metavar="[FILE]",
        ),
    ] = None
    train: Annotated[str | None, Input("Labelled lines: label, tab, text.", learns=True)] = None
    unlabelled: Annotated[
        str | None,
        Input("Unlabelled lines to learn from as well.", learns=True),
    ] = None
    constraints: Annotated[
        str | None,
        Input(CONSTRAINTS.format(classes="labels", named="this label"), learns=True),
    ] = None
    unlabelled_weight: Annotated[
        str,
        Model(
            "Weight of an unlabelled line relative to a labelled one, 0 to 1; cv: chosen by "
            "cross-validation on the labelled lines.",
            metavar="NUMBER",
            file=PLAIN,
        ),
    ] = "1"
    proba: Annotated[
        bool,
        Output(
            "Print the label and the probabilities of all labels, in alphabetical order, "
            "tab-separated."
        ),
    ] = False

    def check(self) -> None:
        read_weight(self.unlabelled_weight)
        self.refuse_spectral()
        by_words = self.constraints is not None and self.unlabelled is not None
        if self.train is None and self.load is None and not by_words:
            raise typer.BadParameter(
                "give labelled lines (--train), a saved model (--load), or --constraints with "
                "--unlabelled lines"
            )
        if self.load is not None and self.file is None:
            raise typer.BadParameter("nothing to label: give FILE")
        wanted = self.save or self.html or self.summary
        if self.load is None and self.file is None and self.unlabelled is None and not wanted:
            raise typer.BadParameter("nothing to label: give FILE, --unlabelled, or --save")

    @property
    def where(self) -> str:
        """The file whose lines are classified; if there is none, the training file."""
        return self.file or self.unlabelled or self.train or ""

    def read(self, model: NaiveBayes | None) -> LineData:
        labels: Sequence[str] = ()
        labelled: Sequence[str] = ()
        unlabelled: Sequence[str] = ()
        if model is None:
            if self.train is not None:
                labels, labelled = read_labelled(self.train)
            if self.unlabelled is not None:
                unlabelled = read_texts(self.unlabelled).texts
        if self.file is not None:
            lines = read_texts(self.file)
        else:
            texts = unlabelled or labelled
            lines = Lines(texts, texts, range(len(texts)))
        known = read_gold(self.gold, self.where, len(lines.texts))
        return LineData(lines, known, labels, labelled, unlabelled)

    def make(self, data: LineData) -> NaiveBayes:
        from softcount.mixture import NaiveBayes, NaiveBayesCV

        weight = read_weight(self.unlabelled_weight)
        shares = None if self.constraints is None else _read_shares(self.constraints)
        settings = self.settings() | self.learning(self.make_learner(constraints=shares))
        settings["vectorizer"] = self.make_vectorizer([*data.labelled, *data.unlabelled])
        if weight is None:
            return NaiveBayesCV(**settings)
        return NaiveBayes(unlabelled_weight=weight, **settings)

    def fit(self, model: NaiveBayes, data: LineData, progress: FitProgress) -> None:
        labels = [*data.labels, *[None] * len(data.unlabelled)]
        model.fit([*data.labelled, *data.unlabelled], labels, **self.fit_options(progress))

    def say_warning(self, warning: warnings.WarningMessage) -> str:
        """Return the text of a warning; for a collapse, with advice in terms of options.

        The most promising remedy comes first, with the current value of its option.
        """
        from softcount.mixture import CollapseWarning

        text = str(warning.message)
        if not issubclass(warning.category, CollapseWarning):
            return text
        wanted = WordFilter(self.min_count, self.max_share, self.stop_words)
        advice = [f"a smaller --smoothing (now {self.smoothing:g})", wanted.fewer]
        if self.length is None and not self.bernoulli:
            advice.append("--length 100")
        if self.unlabelled_weight != "cv":
            advice.append("--unlabelled-weight cv")
        finding = text.partition(" Try ")[0]  # the rest is advice for users of Python
        return f"{finding}\n  hint: try {', '.join(advice[:-1])} or {advice[-1]}"

    def answer(self, model: NaiveBayes, data: LineData) -> LinePredictions:
        from softcount.cli.answers import answer

        answers = answer(model, data.lines, "label", [str(label) for label in model.classes_])
        return LinePredictions(model, answers, data)

    def print_answers(self, result: LinePredictions) -> None:
        if self.file is not None or self.unlabelled is not None:
            super().print_answers(result)

    def describe(self, result: LinePredictions, groups: list[Group]) -> dict[str, Any]:
        from softcount.cli.answers import name_file

        model, answers, data = result.model, result.answers, result.data
        # lines per label: among the training labels, the unlabelled training lines, and the output
        columns: list[tuple[str, Counter[Any]]] = []
        by = "Naive Bayes, learned before"  # a loaded model
        if data.unlabelled and not data.labels:
            by = f"Naive Bayes from {len(data.unlabelled):,} lines and constraints alone"
        if data.labels:
            more = f" and {len(data.unlabelled):,} without" if data.unlabelled else ""
            by = f"Naive Bayes from {len(data.labels):,} lines with labels{more}"
            columns.append(("with label", Counter(data.labels)))
        if data.unlabelled and self.unlabelled != self.where:
            guessed = model.transduction_[len(data.labels) :].tolist()
            columns.append((name_file(self.unlabelled or ""), Counter(guessed)))
        answered = Counter(answers.names[k] for k in answers.chosen.tolist())
        columns.append((name_file(self.where), answered))
        return {
            "title": f"Labels in {name_file(self.where)}",
            "text": f"{len(answers.lines):,} lines, labelled by {by}.",
            "kind": "label",
            "groups": groups,
            "notes": [
                *(note for note in (_describe_weight(model), answers.remark()) if note),
                *_describe_constraints(model),
            ],
            "counts": [
                (head, [counts[name] for name in answers.names]) for head, counts in columns
            ],
        }


def _read_shares(path: str) -> list[Share]:
    """Read a file of constraints."""
    from softcount.learners import read_constraints

    try:
        return read_constraints(path)
    except OSError as error:
        raise typer.BadParameter(f"--constraints {path}: {error.strerror}") from None


def _describe_constraints(model: Any) -> list[str]:
    """Return a sentence on the constraints that do not hold, if there are any."""
    from softcount.core.tilting import SATISFIED

    attained = getattr(model, "constraints_", ())
    lacking = [each for each in attained if each.slack > SATISFIED]
    if not lacking:
        return []
    worst = max(lacking, key=lambda each: each.slack)
    verb = "does" if len(lacking) == 1 else "do"
    return [f"{len(lacking)} of {len(attained)} constraints {verb} not hold; the worst: {worst}"]


def _describe_weight(model: NaiveBayes) -> str:
    """Return a sentence on the λ that cross-validation chose; empty if λ was given."""
    scores = getattr(model, "cv_scores_", None)
    if scores is None:
        return ""
    weight = f"unlabelled weight {getattr(model, 'unlabelled_weight_', 1.0):g}"
    if not scores:
        return f"{weight}: not chosen by cross-validation (too few labels or no unlabelled lines)"
    accuracies = ", ".join(f"{value:g}: {score:.3f}" for value, score in scores.items())
    return f"{weight}, chosen by cross-validation; accuracy by weight {accuracies}"
