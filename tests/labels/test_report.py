"""Labels learned from a few, as a page, in the terminal and for programs"""

from __future__ import annotations

import math
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import softcount as sc
from softcount.core.errors import DataError
from softcount.labels.history import History
from softcount.labels.report import (
    GoldAccuracy,
    LabelledItem,
    Labelling,
    LabellingFigures,
    compute_figures,
    history_card,
    labelling_page,
    labelling_report,
)

NASTY = '<script>alert("x")</script> & [bold] \x00\x1b[31m\u202e'
WORDS = {"pets": "cat dog mouse bird", "cars": "wheel road motor fuel"}


class Parts(HTMLParser):
    """The tags of a page, and what stands in the cells of its tables."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in ("meta", "line"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def co_trained(
    n: int = 60, seed: int = 0, rounds: int = 5
) -> tuple[History, list[str], np.ndarray, np.ndarray]:
    """A history as co-training leaves it, on texts of two classes with a subject and a body: each
    view counts words of labelled texts, and labels those of which it is surest, three a class."""
    draws = np.random.default_rng(seed)
    classes = sorted(WORDS)
    truth = np.arange(n) % 2
    own = [[*WORDS[classes[k]].split(), "the", "of"] for k in truth]
    views = {
        "subject": [draws.choice(words, 2) for words in own],
        "body": [draws.choice(words, 6) for words in own],
    }
    now = np.where(np.arange(n) < 4, truth, -1)
    sure, who = np.ones(n), np.full(n, "given", dtype=object)
    history = History(classes, now, truth)
    for _ in range(rounds):
        for name, texts in views.items():
            chances = _chances(texts, now)
            for k, p in enumerate((1 - chances, chances)):
                free = np.flatnonzero((now == -1) & (p >= 0.5))
                best = free[np.argsort(-p[free], kind="stable")[:3]]
                now[best], sure[best], who[best] = k, p[best], name
        history.record(now, sure, who)
    texts = [" ".join([*a, "|", *b]) for a, b in zip(*views.values(), strict=True)]
    return history, texts, truth, sure


def _chances(texts: list[np.ndarray], now: np.ndarray) -> np.ndarray:
    """p(class 1 | words) of each text, by naive Bayes from those that have a label now."""
    seen = [Counter(w for i in np.flatnonzero(now == k) for w in set(texts[i])) for k in (0, 1)]
    scores = [
        sum(math.log((seen[1][word] + 0.5) / (seen[0][word] + 0.5)) for word in words)
        for words in texts
    ]
    return 1 / (1 + np.exp(-np.array(scores)))


def brief(**changed: Any) -> Labelling:
    history, texts, _, _ = co_trained()
    return Labelling("Labels", compute_figures(history, texts), texts, **changed)


def in_terminal(one: Labelling, width: int = 100) -> str:
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as capture:
        one.show(console)
    return capture.get()


# the page
def test_the_page_says_everything_and_needs_no_network() -> None:
    history, texts, _, _ = co_trained()
    html = labelling_report(history, texts, rules=[("<cat>", "pets", 3.5)], title="A & B")
    parts = Parts(html)
    assert parts.open == []
    assert not {"script", "link", "img", "iframe"} & set(parts.tags)
    for title in ("Rounds", "Classes", "Views", "Rules", "What to label next", "Round by round"):
        assert f"<h2>{title}</h2>" in html
    assert parts.tags.count("details") == sum(one.new > 0 for one in history.rounds[1:])
    assert ["<cat>", "pets", "3.500", ""] in parts.rows
    for one in history.rounds:
        accuracy = "–" if math.isnan(one.accuracy) else f"{one.accuracy:.3f}"
        cells = [one.number, one.labelled, one.new, one.changed, one.lost]
        assert [*map(str, cells), f"{one.confidence:.3f}", accuracy] in parts.rows
    assert "60 items: 4 with a label from the start, 60 after 5 rounds." in html


def test_every_name_and_text_is_escaped() -> None:
    history = History([NASTY, "b"], np.array([0, -1, -1]), np.array([0, 1, 0]))
    history.record(np.array([0, 1, -1]), np.array([1, 0.5, 0]), NASTY)
    history.record(np.array([0, 0, -1]), np.array([1, 0.5, 0]), [NASTY * 2] * 3)
    history.record(np.array([0, 1, -1]), np.array([1, 0.5, 0]), "back")
    some = compute_figures(history, [NASTY] * 3)
    one = Labelling(NASTY, some, [NASTY] * 3, "line", [(NASTY, NASTY, 1.0)], [NASTY], NASTY)
    for html in (labelling_page(one), history_card(history)):
        parts = Parts(html)
        assert parts.open == []
        assert "script" not in parts.tags
        assert not any(name.startswith("on") or name == "src" for name, _ in parts.attributes)
        assert not {"\x00", "\x1b", "\u202e"} & set(html)
    assert "\x1b" not in in_terminal(one)
    assert "\x1b" not in one.as_tsv()


@given(st.lists(st.text(max_size=30), min_size=3, max_size=3))
def test_pages_of_any_text_are_whole(texts: list[str]) -> None:
    history = History(["a", "b"], np.array([0, -1, -1]))
    history.record(np.array([0, 1, -1]), np.array([1, 0.5, 0]), "body")
    parts = Parts(labelling_report(history, texts))
    assert parts.open == []
    assert "script" not in parts.tags


@pytest.mark.parametrize("n_classes", [1, 2, 5, 300])
def test_pages_stay_small_and_are_whole_for_any_number_of_classes(n_classes: int) -> None:
    n, rounds = 20_000, 100
    draws = np.random.default_rng(0)
    labels = np.full(n, -1)
    labels[:n_classes] = np.arange(n_classes)
    history = History([f"class {k}" for k in range(n_classes)], labels)
    for number in range(rounds):
        some = draws.integers(n_classes, n, 300)
        labels[some] = draws.integers(-1, n_classes, 300)
        views = np.array([f"rule {k}" for k in draws.integers(0, 200, n)])
        history.record(labels, draws.random(n), views if number % 2 else "body")
    html = labelling_report(history, ["word " * 400] * n)
    parts = Parts(html)
    assert parts.open == []
    assert len(html) < 400_000
    assert parts.tags.count("details") == 30
    assert "and 171 more" in html  # views
    assert "70 rounds left out" in html
    assert ("and 200 more" in html) == (n_classes == 300)
    assert ("more classes" in html) == (n_classes == 300)


def test_a_history_of_nothing_is_a_page_all_the_same() -> None:
    for given_labels in ([], [-1, -1], [0, 0]):
        history = History(["a"], np.array(given_labels, dtype=int))
        assert Parts(labelling_report(history, [""] * len(given_labels))).open == []
        assert Parts(history_card(history)).open == []
        history.record(history.given, np.ones(len(given_labels)), "body")
        history.record(history.given, np.ones(len(given_labels)), "body")
        one = Labelling("", compute_figures(history))
        assert Parts(labelling_page(one)).open == []
        assert in_terminal(one)


def test_curves_are_by_class_where_these_are_few() -> None:
    for n_classes, named in ((3, True), (6, False)):
        history = History([f"class {k}" for k in range(n_classes)], np.arange(-1, n_classes))
        for k in range(n_classes):
            labels = np.array([k, *range(n_classes)])
            history.record(labels, np.full(n_classes + 1, 0.5), "body")
        charts = labelling_page(Labelling("", compute_figures(history))).partition("<table")[0]
        assert (">class 0</text>" in charts) == named


def test_classes_of_the_same_size_share_a_curve_that_says_so() -> None:
    history = History(["a", "b"], np.array([0, 1, -1, -1]))
    history.record(np.array([0, 1, 0, 1]), np.ones(4), "body")
    history.record(np.array([0, 1, 0, 1]), np.ones(4), "body")
    assert "a and b have the same numbers." in labelling_page(
        Labelling("", compute_figures(history))
    )


def test_a_notebook_shows_curves_and_a_short_table() -> None:
    history, _, _, _ = co_trained(rounds=40)
    html = history._repr_html_()
    assert html.count("<svg") == 2
    assert html.count("<tr") <= 15
    assert "<style" not in html.replace("<style>\n.sc-chart", "")


# the figures
def test_the_least_confident_come_first_among_those_that_can_be_read() -> None:
    history = History(["a", "b"], np.array([0, -1, -1, -1, -1]))
    history.record(np.array([0, 1, 1, 0, -1]), np.array([1, 0.9, 0.5, 0.6, 0]), "body")
    found = compute_figures(history, ["one", "two", " \t", "three", "four"])
    assert [(item.number, item.label) for item in found.doubtful()] == [(3, "a"), (1, "b")]
    items, total = found.unlabelled()
    assert ([item.number for item in items], total) == ([4], 1)
    other = compute_figures(history, None, ["a", "a", "b", None, "b"], [1, 0.2, 0.4, 0.1, 0.3])
    assert [item.number for item in other.doubtful()] == [1, 4, 2]
    assert [item.number for item in other.unlabelled()[0]] == [3]


def brute_views(history: History, gold: np.ndarray) -> dict[str, list[float]]:
    """New, changed, kept, and right of what each view said, event by event."""
    found: dict[str, list[float]] = {}
    for item in range(history.n_items):
        events = [event for event in history.of(item) if event.round > 0]
        before = None if history.given[item] == -1 else "given"
        for event in events:
            row = found.setdefault(event.view, [0, 0, 0, 0, 0])
            if event.label is not None:
                row[0 if before is None else 1] += 1
                if history.given[item] == -1 and gold[item] != -1:
                    row[3] += 1
                    row[4] += gold[item] >= 0 and history.classes[gold[item]] == event.label
            before = event.label
        if events and events[-1].label is not None:
            found[events[-1].view][2] += 1
    return found


@given(st.integers(0, 10**6))
def test_views_and_classes_are_those_of_a_replay(seed: int) -> None:
    draws = np.random.default_rng(seed)
    n, gold = 8, draws.integers(-2, 3, 8)
    history = History(["a", "b", "c"], draws.integers(-1, 3, n), gold)
    for _ in range(4):
        views = draws.choice(["x", "y"], n)
        history.record(draws.integers(-1, 3, n), draws.random(n), views)
    found = compute_figures(history)
    rows = {row.name: [row.new, row.changed, row.kept] for row in found.views()}
    brute = brute_views(history, gold)
    assert rows == {name: row[:3] for name, row in brute.items()}
    for row in found.views():
        *_, compared, right = brute[row.name]
        wanted = right / compared if compared else math.nan
        assert row.accuracy == pytest.approx(wanted, nan_ok=True)
    for k, row in enumerate(found.classes()):
        own = [i for i in range(n) if history.labels[i] == k]
        assert (row.given, row.labelled) == (int((history.given == k).sum()), len(own))
        known = [gold[i] == k for i in own if history.given[i] == -1 and gold[i] != -1]
        assert row.precision == pytest.approx(
            sum(known) / len(known) if known else math.nan, nan_ok=True
        )
        wanted = [
            history.labels[i] == k
            for i in range(n)
            if gold[i] == k and history.given[i] == -1 and history.labels[i] != -1
        ]
        share = sum(wanted) / len(wanted) if wanted else math.nan
        assert row.recall == pytest.approx(share, nan_ok=True)


def test_rounds_list_the_surest_of_each_class_and_count_the_rest() -> None:
    history = History(["a", "b"], np.full(8, -1), np.array([0, 1, 0, -1, 1, 1, 1, 1]))
    history.record(
        np.array([0, 0, 0, 0, 0, 1, -1, -1]), np.array([0.5, 0.9, 0.7, 0.9, 0.6, 1, 0, 0]), "body"
    )
    history.record(np.array([1, 0, 0, 0, 0, 1, -1, -1]), np.full(8, 0.8), "subject")
    first, second = compute_figures(history).rounds()
    a, b = first.given
    assert [item.number for item in a.items] == [1, 3, 2]
    assert [item.right for item in a.items] == [False, None, True]
    assert (a.label, a.total, b.label, b.total) == ("a", 5, "b", 1)
    (changed,) = second.given[0].items
    assert changed == LabelledItem(0, "b", 0.8, "subject", "a", False)


def test_what_fits_no_item_is_refused() -> None:
    history = History(["a", "b"], np.array([0, -1]))
    with pytest.raises(DataError, match="texts: 1 for 2 items"):
        compute_figures(history, ["one"])
    with pytest.raises(DataError, match="labels: 'z' is none of the classes"):
        compute_figures(history, None, ["a", "z"])
    with pytest.raises(DataError, match="confidence: 3 for 2"):
        compute_figures(history, None, None, [1, 1, 1])


# other forms
def test_the_terminal_has_rounds_classes_views_and_accuracy() -> None:
    said = in_terminal(brief(notes=["a note"], signature="signed"))
    head, lead, *_ = said.splitlines()
    assert head.strip() == "Labels"
    assert lead.startswith("60 items: 4 with a label")
    for word in ("accuracy", "cars", "pets", "subject", "body", "a note", "signed"):
        assert word in said
    assert "on 56 items with a gold label, given ones left out" in said


def test_tables_for_programs_have_all_rounds() -> None:
    history, texts, _, _ = co_trained(rounds=30)
    one = Labelling("Labels\nof two", compute_figures(history, texts), texts)
    lines = one.as_tsv().splitlines()
    remarks = [line for line in lines if line.startswith("# ")]
    head, *rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert remarks[0] == "# Labels of two"
    assert "# cars: 2 given, 30 at the end" in remarks
    assert head[0] == "round"
    assert [int(row[1]) for row in rows] == [done.labelled for done in history.rounds]
    assert rows[0][-1] == ""
    assert float(rows[1][-1]) == pytest.approx(history.rounds[1].accuracy, abs=1e-4)


def test_comparisons_in_words() -> None:
    assert GoldAccuracy(0, 0, 2).accuracy != GoldAccuracy(0, 0, 2).accuracy
    one = Labelling("", compute_figures(History(["a"], np.array([0, -1]), np.array([0, 0]))))
    assert one.accuracy == "no item that was labelled has a gold label; 1 more has no label"


def test_the_report_is_there_by_name() -> None:
    assert sc.labels.labelling_report is labelling_report
    assert isinstance(brief().figures, LabellingFigures)
