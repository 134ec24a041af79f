"""Files of documents: a text a line, a label and a text a line, or a row of numbers a line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from softcount.cli.lines import numbered
from softcount.errors import DataError, shown

ENGLISH = "english"


@dataclass(frozen=True)
class WordFilter:
    """Which words count: those in enough lines, not in too many, and not on a list of others."""

    min_count: int = 1
    max_share: float = 1.0
    stop_words: str | None = None

    @property
    def passes_all(self) -> bool:
        return self == WordFilter()

    @property
    def fewer(self) -> str:
        """How to ask for fewer words than these, on the command line."""
        if (self.min_count, self.max_share) == (1, 1.0):
            return "fewer words (--min-count 2 --max-share .1)"
        return f"fewer words (now --min-count {self.min_count} --max-share {self.max_share:g})"


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a file, and what a model makes of them.

    ``texts``  every line as it stands
    ``items``  texts, or an array of points: what models take
    ``where``  the index of each item's line
    """

    texts: Sequence[str]
    items: Any
    where: Sequence[int]

    def demand_some(self, path: str) -> None:
        """Complain of a file without anything to learn from."""
        if not any(text.strip() for text in self.texts):
            fault = "the file is empty, or all its lines are"
            raise DataError(f"{path}: {fault}", "one document a line")


def read_texts(path: str) -> Lines:
    """Every line of a file, blank ones too: those are empty documents."""
    texts = [text for _, text in numbered(path)]
    return Lines(texts, texts, range(len(texts)))


def read_labelled(path: str) -> tuple[list[str], list[str]]:
    """Labels and texts of a file with ``label TAB text`` on every line; blank lines are skipped."""
    labels, texts = [], []
    for number, line in numbered(path):
        if not line.strip():
            continue
        label, tab, text = line.partition("\t")
        if not tab or not label.strip():
            fault = "there is no label before the tab" if tab else "there is no tab in this line"
            raise DataError(f"{path}:{number}: {fault}", "write: label, tab, text")
        labels.append(label.strip())
        texts.append(text)
    if len(set(labels)) < 2:
        found = f"every line has the label {labels[0]!r}" if labels else "the file is empty"
        raise DataError(f"{path}: {found}", "give lines of at least two labels")
    return labels, texts


def read_points(path: str) -> Lines:
    """Numbers in columns; blank lines are no items."""
    import numpy as np

    rows: list[list[float]] = []
    where, lines = [], []
    for number, line in numbered(path):
        lines.append(line)
        fields = line.split()
        if not fields:
            continue
        rows.append([_number(field, f"{path}:{number}") for field in fields])
        where.append(number - 1)
        if len(fields) != len(rows[0]):
            raise DataError(
                f"{path}:{number}: {len(fields)} columns, while line {where[0] + 1} has "
                f"{len(rows[0])}",
                "give the same columns on every line",
            )
    return Lines(lines, np.array(rows, dtype=float), where)


def _number(field: str, where: str) -> float:
    try:
        value = float(field)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(
            f"{where}: {shown(field)} is not a number",
            "this model reads columns of numbers, separated by tabs or spaces; "
            "for texts choose --model multinomial",
        )
    return value


def word_counter(texts: Sequence[str], tokens: bool, wanted: WordFilter) -> Any:
    """What counts the words of these texts: a vectorizer that model files can describe."""
    from sklearn.feature_extraction.text import CountVectorizer

    from softcount.corpus.tokenise import spaces, words

    cut = spaces if tokens else words
    if wanted.passes_all:
        return CountVectorizer(analyzer=cut)
    return CountVectorizer(analyzer=cut, vocabulary=_vocabulary(texts, cut, wanted))


def _vocabulary(
    texts: Sequence[str], cut: Callable[[str], list[str]], wanted: WordFilter
) -> list[str]:
    lines_with = Counter(word for text in texts for word in set(cut(text)))
    unwanted = stop_words_in(wanted.stop_words, cut)
    most = wanted.max_share * len(texts)
    kept = [
        word
        for word, n in lines_with.items()
        if wanted.min_count <= n <= most and word not in unwanted
    ]
    if not kept:
        raise DataError(
            f"none of the {len(lines_with)} words is left to learn from",
            "lower --min-count, raise --max-share, or shorten the --stop-words",
        )
    return sorted(kept)


def stop_words_in(source: str | None, cut: Callable[[str], list[str]]) -> set[str]:
    """The words in a file, or scikit-learn's list for ``english``; none without a source."""
    if source is None:
        return set()
    if source != ENGLISH:
        return {word for _, text in numbered(source) for word in cut(text)}
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    # capitals too, for what cuts at spaces keeps them
    return {form for word in ENGLISH_STOP_WORDS for form in (word, word.capitalize())}
