"""What a topic model says of documents: a line each, and an overview of the topics."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcount.cli.answers import few_named
from softcount.cli.topic_documents import Documents, Names

if TYPE_CHECKING:
    from softcount.models.topics.model import TopicModel
    from softcount.show.groups import Grouping
    from softcount.show.over_time import OverTime
    from softcount.types import Array


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
        from softcount.show.over_time import topics_over_time

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
    from softcount.show.topics import topic_report

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
