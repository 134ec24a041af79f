"""``softcount senses``: induce the senses of a word."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from softcount.cli.frame import LearningCommand
from softcount.cli.options import (
    AnswerOptions,
    ClassInit,
    Input,
    LearnerOptions,
    Model,
    ShortRunsOption,
    TextFile,
    TokensOption,
)
from softcount.cli.reading import read_stop_words, read_texts
from softcount.cli.targets import PLAIN
from softcount.senses.parameters import SenseInducerParameters

if TYPE_CHECKING:
    from softcount.cli.frame import FitProgress
    from softcount.core.types import FloatArray
    from softcount.mixture.report import Grouping
    from softcount.senses import SenseInducer
    from softcount.text.contexts import Occurrence

ABSENT = "-"
"""Output for a line in which the word does not occur."""


class SensePredictions(NamedTuple):
    """The occurrences of the word in the lines of a file, and the posteriors of their senses."""

    model: SenseInducer
    n_lines: int
    occurrences: list[Occurrence]
    posteriors: FloatArray  # (occurrences, senses)


class Senses(AnswerOptions, LearnerOptions, LearningCommand):
    """Induce the senses of a word from its contexts.

    Prints exactly one output line for each input line: the sense numbers, counting from 0, of the
    word's occurrences in it, separated by spaces; - if the word does not occur. A summary of the
    model (frequency and characteristic words of each sense) goes to stderr. There, _ stands for
    the target word: 'the_' is "the" directly before it, '_·of' is "of" after it with one word in
    between.

    \b
    softcount senses --word bank -k 2 sentences.txt > senses.txt
    softcount senses --word line --forms line,lines -k 6 sentences.txt --html line.html
    softcount senses --load line.softcount more.txt
    """

    declared = SenseInducerParameters
    takes: ClassVar = {
        "n_components": ("-k", "--n-components"),
        "near": (),
        "min_count": (),
        "svd": (),
        "smoothing": (),
    }
    without = ("proba",)
    svd: int | None

    file: TextFile
    word: Annotated[
        str | None,
        Input("The target word; case is ignored.", metavar="WORD", file=PLAIN, learns=True),
    ] = None
    forms: Annotated[
        str | None,
        Input(
            "Word forms treated as one target: line,lines.",
            metavar="A,B,…",
            file=PLAIN,
            learns=True,
        ),
    ] = None
    tokens: TokensOption = False
    stop_words: Annotated[
        str | None,
        Input(
            "Words in this file count only together with their position; english: scikit-learn's "
            "list.",
            learns=True,
        ),
    ] = None
    window: Annotated[
        int, Model("Number of context words on each side; 0: the whole line.", least=0)
    ] = 25
    init: ClassInit = "kmeans"
    short_runs: ShortRunsOption = 5

    def check(self) -> None:
        self.refuse_spectral(unless=self.svd is None)
        if self.load is None and self.word is None and self.forms is None:
            raise typer.BadParameter("no target word: give one, such as --word bank")

    def read(self, model: SenseInducer | None) -> list[Any]:
        lines = read_texts(self.file)
        if model is None:
            lines.require_lines(self.file)
        return [text.split() for text in lines.texts] if self.tokens else [*lines.texts]

    def make(self, data: list[Any]) -> SenseInducer:
        from softcount.senses import SenseInducer
        from softcount.text.tokenise import words

        return SenseInducer(
            window=self.window or None,
            stop_words=sorted(read_stop_words(self.stop_words, words)),
            init=self.init,
            short_runs=self.short_runs,
            **self.settings(),
            **self.learning(self.make_learner()),
        )

    def fit(self, model: SenseInducer, data: list[Any], progress: FitProgress) -> None:
        forms = [form.strip() for form in (self.forms or "").split(",") if form.strip()]
        model.fit(
            data, forms if self.word is None else [self.word, *forms], **self.fit_options(progress)
        )

    def answer(self, model: SenseInducer, data: list[Any]) -> SensePredictions:
        return SensePredictions(
            model, len(data), model.occurrences(data), model.predict_proba(data)
        )

    def overview(self, result: SensePredictions) -> Grouping:
        """Summarise the senses, with their sizes in this file, the largest first."""
        import numpy as np

        from softcount.cli.answers import name_file
        from softcount.mixture.report import Group, Grouping, Mark

        model, n = result.model, len(result.occurrences)
        sizes = np.bincount(result.posteriors.argmax(axis=1), minlength=model.n_components).tolist()
        groups = []
        for sense, size in zip(model.senses_, sizes, strict=True):
            longest = max((part for _, part in sense.words), default=1.0)
            marks = [Mark(name, f"{100 * part:.1f}", part / longest) for name, part in sense.words]
            groups.append(Group(str(sense.number), size, size / max(n, 1), marks, sense.examples))
        word = " / ".join(sorted(model.forms_ or ()))
        return Grouping(
            title=f"{model.n_components} senses of “{word}”",
            text=f"{n:,} occurrences in {result.n_lines:,} lines of {name_file(self.file)}.",
            kind="sense",
            figures="% of the sense’s contexts with the word; _ is the place of the word itself",
            groups=sorted(groups, key=lambda group: -group.size),
            signature=model.signature_,
            fit=getattr(model.mixture_, "fit_", None),
            counted="occurrence",
        )

    def page(self, result: SensePredictions) -> str:
        from softcount.mixture.report import groups_page

        return groups_page(self.overview(result))

    def print_answers(self, result: SensePredictions) -> None:
        lines: list[list[dict[str, Any]]] = [[] for _ in range(result.n_lines)]
        for occurrence, posterior in zip(result.occurrences, result.posteriors, strict=True):
            lines[occurrence.sentence].append(
                {
                    "sense": int(posterior.argmax()),
                    "position": occurrence.position,
                    "probabilities": posterior.tolist(),
                }
            )
        for number, senses in enumerate(lines, 1):
            if self.json:
                line = json.dumps({"line": number, "occurrences": senses})
            else:
                line = " ".join(str(answer["sense"]) for answer in senses) or ABSENT
            sys.stdout.write(line + "\n")
        sys.stdout.flush()  # flush here, where a closed pipe is not treated as an error
