"""``softcount cluster`` and ``softcount classify``: documents and points, sorted or labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from softcount.cli.frame import Command, LearningCommand, refuse_two_of_stdin
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
    TextFile,
    WordOptions,
    read_learner_name,
)
from softcount.cli.reading import (
    Lines,
    WordFilter,
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
    from softcount.cli.frame import Progress
    from softcount.mixture import NaiveBayes
    from softcount.mixture.base import Clusterer
    from softcount.mixture.report import Group, Grouping


class LinesRead(NamedTuple):
    """The lines that answers are wanted for, and their gold classes, if these are known.

    ``labelled, unlabelled``  what is learned from, where labels are
    """

    lines: Lines
    gold: Sequence[str | None] | None
    labels: Sequence[str] = ()
    labelled: Sequence[str] = ()
    unlabelled: Sequence[str] = ()


class LinesAnswered(NamedTuple):
    """A model and what it says of lines."""

    model: Any
    answers: Answers
    data: LinesRead


class _LinesCommand(WordOptions, AnswerOptions, LearnerOptions, LearningCommand):
    """What both commands do: the lines of a file are told apart, and the groups shown."""

    gold: GoldFile = None
    smoothing: float

    def size(self, data: LinesRead) -> int:
        return len(data.lines.items)

    def describe(self, found: LinesAnswered, groups: list[Group]) -> dict[str, Any]:
        """What is this command's own in a `Grouping`: title, text, kind, groups, notes, counts."""
        raise NotImplementedError

    def grouping(self, found: LinesAnswered, *, examples: bool) -> Grouping:
        """The groups, for the overview and the page."""
        from softcount.cli.answers import compare_with_gold, make_line_groups
        from softcount.mixture.report import Grouping, counts_tokens, describe_figures

        model, answers = found.model, found.answers
        return Grouping(
            figures=describe_figures(model),
            signature=model.signature_,
            fit=getattr(model, "fit_", None),
            tokens=counts_tokens(model),
            comparison=compare_with_gold(answers, found.data.gold),
            **self.describe(found, make_line_groups(model, answers, examples=examples)),
        )

    def overview(self, found: LinesAnswered) -> Grouping:
        return self.grouping(found, examples=False)

    def page(self, found: LinesAnswered) -> str:
        from softcount.mixture.report import groups_page

        return groups_page(self.grouping(found, examples=True))

    def print_answers(self, found: LinesAnswered) -> None:
        from softcount.cli.answers import print_answers

        print_answers(found.answers, self.proba, self.json)


# softcount cluster
OF_WORDS = ("multinomial", "bernoulli", "process")
PROCESSES = ("process", "process-gaussian")
USUAL = {"kmeans": "hard-em", **dict.fromkeys(PROCESSES, "variational-bayes")}
"""Learners of models that do not use EM, if no other is asked for."""
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
    """Which mixture is learned without labels, and where it starts; ``softcount select``, too."""

    declared = MultinomialMixtureParameters
    takes: ClassVar = {"smoothing": ()}

    model: str
    init: ClassInit = None
    short_runs: ShortRunsOption = 0

    def check(self) -> None:
        self.refuse_spectral(unless=self.model == "multinomial")
        if self.model not in OF_WORDS:
            names = ("tokens", "smoothing", "stop_words", "min_count", "max_share")
            self.refuse(f"--model {self.model}", names, "it reads numbers, not words")

    def make_mixture(self, items: Any) -> Clusterer:
        """The mixture that was asked for, for these texts or points."""
        from softcount import mixture

        settings = self.settings() | self.learning(self.make_learner(USUAL.get(self.model, "em")))
        settings["short_runs"] = self.short_runs
        if self.init is not None:
            settings["init"] = self.init
        if self.model in OF_WORDS:
            settings["vectorizer"] = self.make_vectorizer(items)
            settings["bernoulli"] = self.model == "bernoulli"
        model: Clusterer = getattr(mixture, CLUSTERERS[self.model])(**settings)
        return model


class Cluster(MixtureOptions, _LinesCommand):
    """Sort the lines of a file into classes that nobody named.

    Prints the number of each line's class, from 0: exactly one line for each line of the file. What
    was learned (sizes, words that mark each class, how the run ended) goes to stderr. A line
    without any word that the model knows gets the most common class, and stderr says which lines
    these are; --json shows them by "words": 0. Where lines are numbers, a blank line gets a blank
    line.

    \b
    softcount cluster documents.txt -k 20 > classes.txt
    softcount cluster documents.txt -k 20 --min-count 3 --html classes.html --save model.softcount
    softcount cluster --load model.softcount more.txt --proba
    softcount cluster documents.txt -k 20 --gold known.txt --summary
    """

    takes: ClassVar = {"n_components": ("-k", "--n-components"), "smoothing": ()}

    file: TextFile
    model: Annotated[
        str,
        Model(
            "multinomial: how often words occur. bernoulli: whether they do. process: multinomial, "
            "with as many classes as the texts call for, -k at most (else 50). gaussian, kmeans, "
            "soft-kmeans, process-gaussian: lines are columns of numbers, separated by tabs or "
            "spaces.",
            choices=tuple(CLUSTERERS),
        ),
    ] = "multinomial"
    learner: Annotated[
        str | None,
        Learning(
            "If not given, what suits the model: em; hard-em for kmeans; variational-bayes for "
            "process and process-gaussian. Also online-em, incremental-em, stochastic-vb, "
            "monte-carlo-em, gibbs; collapsed-gibbs (multinomial and process); spectral "
            "(multinomial: solved from moments, with --max-iter steps of EM after that, else "
            "none).",
            parser=read_learner_name,
            metavar="NAME",
        ),
    ] = None

    def read(self, model: Clusterer | None) -> LinesRead:
        from softcount.cli.answers import is_of_words

        of_words = self.model in OF_WORDS if model is None else is_of_words(model)
        lines = (read_texts if of_words else read_points)(self.file)
        if model is None:
            lines.demand_some(self.file)
        return LinesRead(lines, read_gold(self.gold, self.file, len(lines.texts)))

    def make(self, data: LinesRead) -> Clusterer:
        return self.make_mixture(data.lines.items)

    def fit(self, model: Clusterer, data: LinesRead, progress: Progress) -> None:
        model.fit(data.lines.items, on_step=progress)

    def answer(self, model: Clusterer, data: LinesRead) -> LinesAnswered:
        from softcount.cli.answers import answer

        answers = answer(model, data.lines, "class", range(model.n_components))
        return LinesAnswered(model, answers, data)

    def describe(self, found: LinesAnswered, groups: list[Group]) -> dict[str, Any]:
        """The largest class first; those without lines are only counted."""
        from softcount.cli.answers import name_file

        model, answers, notes = found.model, found.answers, []
        used = sorted((group for group in groups if group.size), key=lambda group: -group.size)
        if self.load is None and self.model not in PROCESSES:
            different = len({" ".join(answers.lines[i].split()) for i in answers.where} - {""})
            if model.n_components > different:  # some cannot have a line to themselves
                notes.append(
                    f"{model.n_components} classes are more than the {different} different lines: "
                    "ask for fewer (-k)"
                )
        if answers.remark():
            notes.append(answers.remark())
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
    """λ, or None if it is to be found by cross-validation."""
    if text == "cv":
        return None
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"--unlabelled-weight {text}: give a number, or cv") from None


class Classify(_LinesCommand):
    """Label the lines of a file, from labelled lines and from lines without labels.

    Prints each line's label: exactly one line for each line of the file. What was learned goes to
    stderr. A line without any word that the model knows gets the most common label, and stderr
    says which lines these are; --json shows them by "words": 0.

    \b
    softcount classify --train labelled.tsv new.txt > labels.txt
    softcount classify --train labelled.tsv --unlabelled more.txt --unlabelled-weight cv new.txt
    softcount classify --train labelled.tsv --save model.softcount
    softcount classify --load model.softcount new.txt --json
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
            "Lines to be labelled; .gz too; - is stdin. If not given: the --unlabelled lines.",
            metavar="[FILE]",
        ),
    ] = None
    train: Annotated[
        str | None, Input("Lines with labels: label, tab, text.", metavar="FILE", learns=True)
    ] = None
    unlabelled: Annotated[
        str | None,
        Input("Lines without labels, to be learned from as well.", metavar="FILE", learns=True),
    ] = None
    unlabelled_weight: Annotated[
        str,
        Model(
            "What an unlabelled line counts beside a labelled one, 0 to 1; cv: found by "
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
        if self.train is None and self.load is None:
            raise typer.BadParameter("give --train with labelled lines, or --load with a model")
        if self.load is not None and self.file is None:
            raise typer.BadParameter("nothing to label: give FILE")
        refuse_two_of_stdin(self.train, self.unlabelled, self.file, self.gold)
        wanted = self.save or self.html or self.summary
        if self.load is None and self.file is None and self.unlabelled is None and not wanted:
            raise typer.BadParameter("nothing to label: give FILE, --unlabelled, or --save")

    @property
    def where(self) -> str:
        """The file whose lines are labelled; if there is none, what is learned from."""
        return self.file or self.unlabelled or self.train or ""

    def read(self, model: NaiveBayes | None) -> LinesRead:
        labels: Sequence[str] = ()
        labelled: Sequence[str] = ()
        unlabelled: Sequence[str] = ()
        if model is None:
            labels, labelled = read_labelled(self.train or "")
            if self.unlabelled is not None:
                unlabelled = read_texts(self.unlabelled).texts
        if self.file is not None:
            lines = read_texts(self.file)
        else:
            texts = unlabelled or labelled
            lines = Lines(texts, texts, range(len(texts)))
        known = read_gold(self.gold, self.where, len(lines.texts))
        return LinesRead(lines, known, labels, labelled, unlabelled)

    def make(self, data: LinesRead) -> NaiveBayes:
        from softcount.mixture import NaiveBayes, NaiveBayesCV

        weight = read_weight(self.unlabelled_weight)
        settings = self.settings() | self.learning(self.make_learner())
        settings["vectorizer"] = self.make_vectorizer([*data.labelled, *data.unlabelled])
        if weight is None:
            return NaiveBayesCV(**settings)
        return NaiveBayes(unlabelled_weight=weight, **settings)

    def fit(self, model: NaiveBayes, data: LinesRead, progress: Progress) -> None:
        labels = [*data.labels, *[None] * len(data.unlabelled)]
        model.fit([*data.labelled, *data.unlabelled], labels, on_step=progress)

    def say_warning(self, warning: warnings.WarningMessage) -> str:
        """Of a collapse what to try, the most promising first, with what is in use now."""
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
        own = text.partition(" Try ")[0]  # the rest is for users of Python
        return f"{own}\n  hint: try {', '.join(advice[:-1])} or {advice[-1]}"

    def answer(self, model: NaiveBayes, data: LinesRead) -> LinesAnswered:
        from softcount.cli.answers import answer

        answers = answer(model, data.lines, "label", [str(label) for label in model.classes_])
        return LinesAnswered(model, answers, data)

    def print_answers(self, found: LinesAnswered) -> None:
        if self.file is not None or self.unlabelled is not None:
            super().print_answers(found)

    def describe(self, found: LinesAnswered, groups: list[Group]) -> dict[str, Any]:
        from softcount.cli.answers import name_file

        model, answers, data = found.model, found.answers, found.data
        # how many lines of each label: as taught, as found in what was learned from, as answered
        columns: list[tuple[str, Counter[Any]]] = []
        by = "Naive Bayes, learned before"
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
            "notes": [note for note in (_describe_weight(model), answers.remark()) if note],
            "counts": [
                (head, [counts[name] for name in answers.names]) for head, counts in columns
            ],
        }


def _describe_weight(model: NaiveBayes) -> str:
    """What cross-validation chose, as a sentence; nothing, if λ was given."""
    scores = getattr(model, "cv_scores_", None)
    if scores is None:
        return ""
    weight = f"unlabelled weight {getattr(model, 'unlabelled_weight_', 1.0):g}"
    if not scores:
        return f"{weight}: there was nothing to choose it by, too few labels or no other lines"
    found = ", ".join(f"{value:g}: {score:.3f}" for value, score in scores.items())
    return f"{weight}, chosen by cross-validation; accuracy by weight {found}"
