"""``softcount senses``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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

if TYPE_CHECKING:
    from softcount.cli.frame import Progress
    from softcount.core.types import FloatArray
    from softcount.mixture.report import Grouping
    from softcount.senses import SenseInducer

NOWHERE = "-"
"""What is printed for a line without the word."""


class SensesFound(NamedTuple):
    """The occurrences of the word, and their senses.

    ``rows``        the numbers of the occurrences in each sentence
    ``positions``   where in its sentence each occurrence is
    ``posteriors``  (occurrences, senses)
    """

    rows: list[list[int]]
    positions: list[int]
    posteriors: FloatArray
    grouping: Grouping


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

    without = ("proba",)

    file: TextFile
    word: Annotated[
        str | None,
        Input(
            "The word; upper and lower case are the same.",
            metavar="WORD",
            file=PLAIN,
            learns=True,
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
    min_count: Annotated[
        int, Input("Leave out words that fewer contexts than this have.", least=1, learns=True)
    ] = 2
    n_components: Annotated[int, Model("How many senses.", "-k", "--n-components", least=1)] = 2
    window: Annotated[
        int, Model("Look at so many words on each side; 0: at the whole line.", least=0)
    ] = 25
    near: Annotated[
        int, Model("So many on each side count once more, with their place.", least=0)
    ] = 3
    svd: Annotated[
        int | None,
        Model(
            "Reduce tf-idf of the contexts to so many dimensions, and look for Gaussian senses "
            "there; if not given, senses are multinomials of words.",
            least=1,
        ),
    ] = None
    smoothing: Annotated[
        float, Model("Add this to every count of a word in a class.", least=0.0)
    ] = 0.1
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
            self.n_components,
            window=self.window or None,
            near=self.near,
            min_count=self.min_count,
            stop_words=sorted(read_stop_words(self.stop_words, words)),
            svd=self.svd,
            smoothing=self.smoothing,
            init=self.init,
            short_runs=self.short_runs,
            **self.learning(self.make_learner()),
        )

    def fit(self, model: SenseInducer, data: list[Any], progress: Progress) -> None:
        named = [form.strip() for form in (self.forms or "").split(",") if form.strip()]
        model.fit(data, named if self.word is None else [self.word, *named], on_step=progress)

    def answer(self, model: SenseInducer, data: list[Any]) -> SensesFound:
        found, posteriors = model.occurrences(data), model.predict_proba(data)
        rows: list[list[int]] = [[] for _ in data]
        for row, where in enumerate(found):
            rows[where.sentence].append(row)
        grouping = _make_grouping(model, posteriors, self.file, len(data))
        return SensesFound(rows, [where.position for where in found], posteriors, grouping)

    def overview(self, found: SensesFound) -> Grouping:
        return found.grouping

    def page(self, found: SensesFound) -> str:
        from softcount.mixture.report import groups_page

        return groups_page(found.grouping)

    def print_answers(self, found: SensesFound) -> None:
        chosen = found.posteriors.argmax(axis=1).tolist()
        for number, here in enumerate(found.rows, 1):
            if self.json:
                each = [
                    {
                        "sense": chosen[i],
                        "position": found.positions[i],
                        "probabilities": found.posteriors[i].tolist(),
                    }
                    for i in here
                ]
                sys.stdout.write(json.dumps({"line": number, "occurrences": each}) + "\n")
            else:
                sys.stdout.write((" ".join(str(chosen[i]) for i in here) or NOWHERE) + "\n")
        sys.stdout.flush()  # here, where a closed pipe is no fault


def _make_grouping(
    model: SenseInducer, posteriors: FloatArray, file: str, n_lines: int
) -> Grouping:
    """What was learned, with the sizes that the senses have in this file; the largest first."""
    import numpy as np

    from softcount.cli.answers import name_file
    from softcount.mixture.report import Group, Grouping, Mark

    chosen = np.bincount(posteriors.argmax(axis=1), minlength=model.n_components)
    sizes = zip(model.senses_, chosen.tolist(), strict=True)
    groups = []
    for sense, size in sorted(sizes, key=lambda one: -one[1]):
        longest = max((part for _, part in sense.words), default=1.0)
        marks = [Mark(name, f"{100 * part:.1f}", part / longest) for name, part in sense.words]
        share = size / max(len(posteriors), 1)
        groups.append(Group(str(sense.number), size, share, marks, sense.examples))
    word = " / ".join(sorted(model.forms_ or ()))
    return Grouping(
        title=f"{model.n_components} senses of “{word}”",
        text=f"{len(posteriors):,} occurrences in {n_lines:,} lines of {name_file(file)}.",
        kind="sense",
        figures="% of the sense’s contexts that have the word; _ is the place of the word itself",
        groups=groups,
        signature=model.signature_,
        fit=getattr(model.mixture_, "fit_", None),
        counted="occurrence",
    )
