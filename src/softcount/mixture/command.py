"""``softcount cluster`` and ``softcount classify``: documents and points, sorted or labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from softcount.cli.answers import compare_with_gold
from softcount.cli.frame import LearningCommand, refuse_two_of_stdin
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

if TYPE_CHECKING:
    import warnings

    from softcount.cli.answers import Answers
    from softcount.cli.frame import Progress
    from softcount.mixture import NaiveBayes
    from softcount.mixture.base import Clusterer
    from softcount.mixture.report import GoldComparison, Grouping


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

    @property
    def comparison(self) -> GoldComparison | None:
        """How well the answers agree with the gold classes, if there are any."""
        return compare_with_gold(self.answers, self.data.gold)


class _LinesCommand(WordOptions, AnswerOptions, LearnerOptions, LearningCommand):
    """What both commands do: the lines of a file are told apart, and the groups shown."""

    gold: GoldFile = None

    def size(self, data: LinesRead) -> int:
        return len(data.lines.items)

    def grouping(self, found: LinesAnswered, *, examples: bool) -> Grouping:
        """The groups, for the overview and the page."""
        raise NotImplementedError

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


class Cluster(_LinesCommand):
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

    file: TextFile
    n_components: Annotated[
        int | None,
        Model(
            "How many classes. [default: 8; for process and process-gaussian, where it is the most "
            "there can be, 50]",
            "-k",
            "--n-components",
            least=1,
        ),
    ] = None
    model: Annotated[
        str,
        Model(
            "multinomial: how often words occur. bernoulli: whether they do. process: multinomial, "
            "with as many classes as the texts call for. gaussian, kmeans, soft-kmeans, "
            "process-gaussian: lines are columns of numbers, separated by tabs or spaces.",
            choices=tuple(CLUSTERERS),
        ),
    ] = "multinomial"
    smoothing: Annotated[
        float, Model("Add this to every count of a word in a class.", least=0.0)
    ] = 0.1
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
    init: ClassInit = None
    short_runs: ShortRunsOption = 0

    def check(self) -> None:
        self.refuse_spectral(unless=self.model == "multinomial")
        if self.model not in OF_WORDS:
            names = ("tokens", "smoothing", "stop_words", "min_count", "max_share")
            self.refuse(f"--model {self.model}", names, "it reads numbers, not words")

    def read(self, model: Clusterer | None) -> LinesRead:
        if model is None:
            of_words = self.model in OF_WORDS
        else:
            from softcount.cli.answers import is_of_words

            of_words = is_of_words(model)
        lines = (read_texts if of_words else read_points)(self.file)
        if model is None:
            lines.demand_some(self.file)
        return LinesRead(lines, read_gold(self.gold, self.file, len(lines.texts)))

    def make(self, data: LinesRead) -> Clusterer:
        from softcount import mixture

        settings = self.learning(self.make_learner(USUAL.get(self.model, "em")))
        settings["short_runs"] = self.short_runs
        if self.model in OF_WORDS:
            settings["vectorizer"] = self.make_vectorizer(data.lines.items)
            settings["smoothing"] = self.smoothing
        for name in ("n_components", "init"):
            if getattr(self, name) is not None:
                settings[name] = getattr(self, name)
        if self.model == "bernoulli":
            settings["bernoulli"] = True
        model: Clusterer = getattr(mixture, CLUSTERERS[self.model])(**settings)
        return model

    def fit(self, model: Clusterer, data: LinesRead, progress: Progress) -> None:
        model.fit(data.lines.items, on_step=progress)

    def answer(self, model: Clusterer, data: LinesRead) -> LinesAnswered:
        from softcount.cli.answers import answer

        said = answer(model, data.lines, "class", range(model.n_components))
        return LinesAnswered(model, said, data)

    def grouping(self, found: LinesAnswered, *, examples: bool) -> Grouping:
        """The largest class first; those without lines are only counted."""
        from softcount.cli.answers import make_line_groups, name_file
        from softcount.mixture.report import Grouping, counts_tokens, describe_figures

        model, said = found.model, found.answers
        every = make_line_groups(model, said, examples=examples)
        used = sorted((group for group in every if group.size), key=lambda group: -group.size)
        remarks = [*self._too_many(model.n_components, said), *filter(None, [said.remark()])]
        empty = len(every) - len(used)
        if said.lines and empty:
            verb = "has" if empty == 1 else "have"
            remarks.append(f"{empty} of the {len(every)} classes {verb} no line")
        return Grouping(
            title=f"{len(used)} class{'es' * (len(used) != 1)} in {name_file(self.file)}",
            text=f"{len(said.lines):,} lines, sorted by a {model.core_.name}.",
            kind="class",
            figures=describe_figures(model),
            groups=used,
            signature=model.signature_,
            fit=getattr(model, "fit_", None),
            notes=remarks,
            counts=[("lines", [group.size for group in used])],
            tokens=counts_tokens(model),
            comparison=found.comparison,
        )

    def _too_many(self, k: int, said: Answers) -> list[str]:
        """A remark if some classes cannot have a line to themselves."""
        if self.load is not None or self.model in PROCESSES:
            return []
        different = len({" ".join(said.lines[i].split()) for i in said.where} - {""})
        if k <= different:
            return []
        return [f"{k} classes are more than the {different} different lines: ask for fewer (-k)"]


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
    n_components: Annotated[
        int, Model("Hidden components of each label.", "-k", "--n-components", least=1)
    ] = 1
    smoothing: Annotated[
        float, Model("Add this to every count of a word in a class.", least=0.0)
    ] = 0.1
    length: Annotated[
        float | None, Model("Stretch or shrink every line to so many words; 100 is usual.")
    ] = None
    bernoulli: Annotated[bool, Model("Whether a word occurs, not how often.")] = False
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
        settings = {
            "n_components": self.n_components,
            "smoothing": self.smoothing,
            "length": self.length,
            "bernoulli": self.bernoulli,
            "vectorizer": self.make_vectorizer([*data.labelled, *data.unlabelled]),
            **self.learning(self.make_learner()),
        }
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

        said = answer(model, data.lines, "label", [str(label) for label in model.classes_])
        return LinesAnswered(model, said, data)

    def print_answers(self, found: LinesAnswered) -> None:
        if self.file is not None or self.unlabelled is not None:
            super().print_answers(found)

    def grouping(self, found: LinesAnswered, *, examples: bool) -> Grouping:
        from softcount.cli.answers import make_line_groups, name_file
        from softcount.mixture.report import Grouping, counts_tokens, describe_figures

        model, said, data = found.model, found.answers, found.data
        by = "Naive Bayes, learned before"
        if data.labels:
            more = f" and {len(data.unlabelled):,} without" if data.unlabelled else ""
            by = f"Naive Bayes from {len(data.labels):,} lines with labels{more}"
        return Grouping(
            title=f"Labels in {name_file(self.where)}",
            text=f"{len(said.lines):,} lines, labelled by {by}.",
            kind="label",
            figures=describe_figures(model),
            groups=make_line_groups(model, said, examples=examples),
            signature=model.signature_,
            fit=getattr(model, "fit_", None),
            notes=[note for note in (_describe_weight(model), said.remark()) if note],
            counts=self._counts(found),
            tokens=counts_tokens(model),
            comparison=found.comparison,
        )

    def _counts(self, found: LinesAnswered) -> list[tuple[str, list[int]]]:
        """How many lines of each label: as taught, as found in what was learned from, as
        answered."""
        from softcount.cli.answers import name_file

        said, data = found.answers, found.data
        columns: list[tuple[str, Counter[Any]]] = []
        if data.labels:
            columns.append(("with label", Counter(data.labels)))
        if data.unlabelled and self.unlabelled != self.where:
            guessed = found.model.transduction_[len(data.labels) :].tolist()
            columns.append((name_file(self.unlabelled or ""), Counter(guessed)))
        answered = Counter(said.names[k] for k in said.chosen.tolist())
        columns.append((name_file(self.where), answered))
        return [(head, [counts[name] for name in said.names]) for head, counts in columns]


def _describe_weight(model: NaiveBayes) -> str:
    """What cross-validation found, as a sentence."""
    scores = getattr(model, "cv_scores_", None)
    if scores is None:
        return ""
    weight = f"unlabelled weight {getattr(model, 'unlabelled_weight_', 1.0):g}"
    if not scores:
        return f"{weight}: there was nothing to choose it by, too few labels or no other lines"
    found = ", ".join(f"{value:g}: {score:.3f}" for value, score in scores.items())
    return f"{weight}, chosen by cross-validation; accuracy by weight {found}"
