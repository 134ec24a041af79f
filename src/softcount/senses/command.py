"""``softcount senses``."""

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
    from softcount.cli.frame import Progress
    from softcount.core.types import FloatArray
    from softcount.mixture.report import Grouping
    from softcount.senses import SenseInducer
    from softcount.text.contexts import Occurrence

NOWHERE = "-"
"""What is printed for a line without the word."""


class SensesFound(NamedTuple):
    """The occurrences of the word in the lines of a file, and their senses."""

    model: SenseInducer
    n_lines: int
    places: list[Occurrence]
    posteriors: FloatArray  # (occurrences, senses)


class Senses(AnswerOptions, LearnerOptions, LearningCommand):
    """Tell the senses of a word apart by what stands around it.

    Prints exactly one line for each line of the file: the numbers of the senses, from 0, of the
    word's occurrences in it, separated by spaces; - if the word does not occur. What was learned
    (how common each sense is, the words that mark it) goes to stderr. In these, _ is the place of
    the word: 'the_' stands just before it, '_·of' after it with one word between.

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
        Input(
            "The word; upper and lower case are the same.", metavar="WORD", file=PLAIN, learns=True
        ),
    ] = None
    forms: Annotated[
        str | None,
        Input(
            "Forms that are looked for together: line,lines.",
            metavar="A,B,…",
            file=PLAIN,
            learns=True,
        ),
    ] = None
    tokens: TokensOption = False
    stop_words: Annotated[
        str | None,
        Input(
            "Words in this file count only with their place; english: scikit-learn's list.",
            metavar="FILE",
            learns=True,
        ),
    ] = None
    window: Annotated[
        int, Model("Look at so many words on each side; 0: at the whole line.", least=0)
    ] = 25
    init: ClassInit = "kmeans"
    short_runs: ShortRunsOption = 5

    def check(self) -> None:
        self.refuse_spectral(unless=self.svd is None)
        if self.load is None and self.word is None and self.forms is None:
            raise typer.BadParameter("say which word: --word bank")

    def read(self, model: SenseInducer | None) -> list[Any]:
        lines = read_texts(self.file)
        if model is None:
            lines.demand_some(self.file)
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

    def fit(self, model: SenseInducer, data: list[Any], progress: Progress) -> None:
        named = [form.strip() for form in (self.forms or "").split(",") if form.strip()]
        model.fit(data, named if self.word is None else [self.word, *named], on_step=progress)

    def answer(self, model: SenseInducer, data: list[Any]) -> SensesFound:
        return SensesFound(model, len(data), model.occurrences(data), model.predict_proba(data))

    def overview(self, found: SensesFound) -> Grouping:
        """What was learned, with the sizes that the senses have in this file; the largest first."""
        import numpy as np

        from softcount.cli.answers import name_file
        from softcount.mixture.report import Group, Grouping, Mark

        model, n = found.model, len(found.places)
        sizes = np.bincount(found.posteriors.argmax(axis=1), minlength=model.n_components).tolist()
        groups = []
        for sense, size in zip(model.senses_, sizes, strict=True):
            longest = max((part for _, part in sense.words), default=1.0)
            marks = [Mark(name, f"{100 * part:.1f}", part / longest) for name, part in sense.words]
            groups.append(Group(str(sense.number), size, size / max(n, 1), marks, sense.examples))
        word = " / ".join(sorted(model.forms_ or ()))
        return Grouping(
            title=f"{model.n_components} senses of “{word}”",
            text=f"{n:,} occurrences in {found.n_lines:,} lines of {name_file(self.file)}.",
            kind="sense",
            figures="% of the sense’s contexts with the word; _ is the place of the word itself",
            groups=sorted(groups, key=lambda group: -group.size),
            signature=model.signature_,
            fit=getattr(model.mixture_, "fit_", None),
            counted="occurrence",
        )

    def page(self, found: SensesFound) -> str:
        from softcount.mixture.report import groups_page

        return groups_page(self.overview(found))

    def print_answers(self, found: SensesFound) -> None:
        lines: list[list[dict[str, Any]]] = [[] for _ in range(found.n_lines)]
        for place, posterior in zip(found.places, found.posteriors, strict=True):
            lines[place.sentence].append(
                {
                    "sense": int(posterior.argmax()),
                    "position": place.position,
                    "probabilities": posterior.tolist(),
                }
            )
        for number, senses in enumerate(lines, 1):
            if self.json:
                line = json.dumps({"line": number, "occurrences": senses})
            else:
                line = " ".join(str(one["sense"]) for one in senses) or NOWHERE
            sys.stdout.write(line + "\n")
        sys.stdout.flush()  # here, where a closed pipe is no fault
