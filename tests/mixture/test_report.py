"""Groups of documents: what is shown of them, and how."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import sparse

import softcount as sc
from softcount.core.types import Fit, State, Trace
from softcount.core.verdict import Verdict
from softcount.mixture.report import (
    EXAMPLES,
    Group,
    Grouping,
    Mark,
    find_point_marks,
    find_word_marks,
    groups_page,
    make_groups,
    rate_documents,
    rate_points,
)
from softcount.report.text import shorten

NASTY = '<script>alert("x")</script> & [bold]'


def fit() -> Fit:
    runs = [
        Trace(tuple(State(k, {}, v, v, 1.0, 0.1, 0.0) for k, v in enumerate(values)), verdict)
        for values, verdict in (
            ((-9.0, -5.0), Verdict.OUT_OF_STEPS),
            ((-9.0, -3.0), Verdict.CONVERGED),
        )
    ]
    return Fit({}, runs[1], tuple(runs), "signature")


def grouping(text: str = "words", kind: str = "label") -> Grouping:
    name = text if kind == "label" else "0"
    full = Group(name, 3, 0.75, [Mark(text, "1.25", 1.0), Mark("low", "-2", 0.5, True)], [text])
    empty = Group("none" if kind == "label" else "1", 0, 0.0, [Mark("b", "0.10", 1.0)])
    counts = [(text, [3, 0])]
    return Grouping(
        text, text, kind, text, [full, empty], f"signed {text}", fit(), notes=[text], counts=counts
    )


def in_terminal(one: Grouping, width: int = 100) -> str:
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as capture:
        one.show(console)
    return capture.get()


class Parts(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "line"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "line":
            assert self.open.pop() == tag


def test_page_escapes_everything_closes_its_tags_and_needs_no_network() -> None:
    parts = Parts(groups_page(grouping(NASTY)))
    assert parts.open == []
    assert not {"script", "link", "img", "iframe"} & set(parts.tags)
    links = {value for name, value in parts.attributes if name == "href"}
    anchors = {value for name, value in parts.attributes if name == "id"}
    assert links == {f"#{anchor}" for anchor in anchors}
    assert not any(name == "src" or name.startswith("on") for name, _ in parts.attributes)


@given(st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=4, unique=True))
def test_every_label_has_an_anchor_of_its_own(names: list[str]) -> None:
    anchors = [Group(name, 1, 0.5, ()).anchor for name in names]
    assert len(set(anchors)) == len(names)
    assert not any(c.isspace() or c in "\"<>&'#" for anchor in anchors for c in anchor)


def test_page_shows_groups_with_lines_and_lists_the_others() -> None:
    html = groups_page(grouping())
    assert html.count('class="group"') == 1
    assert ">none</th>" in html
    assert "75.0%" in html
    assert html.count('class="run faint"') == 1
    assert str(Verdict.CONVERGED) in html
    assert 'span class="below"' in html


def test_bars_are_in_the_order_of_their_length() -> None:
    marks = [Mark("telling", "0.10", 0.2), Mark("common", "0.50", 1.0)]
    one = replace(grouping(), groups=[Group("label", 3, 1.0, marks)])
    section = groups_page(one).partition('class="group"')[2]
    assert section.index("common") < section.index("telling")
    assert one.as_tsv().endswith("telling common\n")


def test_a_run_without_a_finite_end_is_still_json() -> None:
    state = State(0, {}, float("-inf"), float("nan"), float("inf"), 0.1, 0.0)
    trace = Trace((state,), Verdict.STOPPED)
    one = replace(grouping(), fit=Fit({}, trace, (trace,), ""), tokens=True)
    found = one.as_json()
    assert [found[name] for name in ("log_likelihood", "objective", "perplexity")] == [None] * 3


def test_a_model_from_a_file_has_no_curves() -> None:
    html = groups_page(replace(grouping(), fit=None))
    assert "<svg" not in html
    assert "signed words" in html


def test_terminal_and_tsv_say_the_same() -> None:
    one = grouping("[bold]", kind="class")
    for text in (in_terminal(one), one.as_tsv()):
        for part in ("[bold]", str(Verdict.CONVERGED), "signed [bold]", "class", "low"):
            assert part in text
    rows = [row for row in one.as_tsv().splitlines() if not row.startswith("#")]
    assert rows[1] == "0\t3\t0.7500\t[bold] low"


def test_a_long_signature_is_not_broken() -> None:
    one = replace(grouping(), signature="softcount " * 30 + "end")
    assert "softcount " * 30 + "end" in in_terminal(one, 60)


@given(st.text(max_size=300), st.integers(2, 50))
def test_shortened_texts_are_short_and_on_one_line(text: str, most: int) -> None:
    short = shorten(text, most)
    assert len(short) <= most
    assert "\n" not in short
    assert short.removesuffix("…") in " ".join(text.split())


def test_typical_documents() -> None:
    """Telling words count, not length: neither one word alone nor a long text of common ones."""
    texts = [
        "orbit moon launch rocket",
        "moon",
        "the of and the of and the of and moon",
        "hockey goal puck team",
        "team",
        "the and the and of goal",
    ] * 3
    model = sc.NaiveBayes().fit(texts, ["space", "space", "space", "ice", "ice", "ice"] * 3)
    counts = model.vectorizer_.transform(texts)
    shares = model.predict_proba(counts)
    fitness = rate_documents(model, counts, shares)
    found = make_groups(
        model.classes_, find_word_marks(model), shares.argmax(axis=1), fitness, texts
    )
    assert [group.examples[0] for group in found] == [texts[3], texts[0]]
    assert all(len(set(group.examples)) == len(group.examples) <= EXAMPLES for group in found)
    assert sum(group.size for group in found) == len(texts)


def test_marks_are_what_is_more_common_than_elsewhere() -> None:
    texts = ["the a a", "the a the", "the b", "the b b the"] * 3
    model = sc.MultinomialMixture(2).fit(texts)
    assert sorted(marks[0].name for marks in find_word_marks(model)) == ["a", "b"]
    assert all(marks[0].bar == 1.0 or marks[0].name != "the" for marks in find_word_marks(model))
    (alone,) = find_word_marks(sc.MultinomialMixture(1).fit(texts))
    assert alone[0].name == "the"


def test_components_of_a_label_are_taken_together() -> None:
    rng = np.random.default_rng(0)
    counts = sparse.csr_matrix(rng.poisson(1.0, size=(40, 6)))
    y = np.repeat([0, 1], 20)
    model = sc.NaiveBayes(n_components=2).fit(counts, y)
    weights, words = model.class_words()
    assert len(model.top_words()) == 2
    np.testing.assert_allclose(words.sum(axis=1), 1.0)
    np.testing.assert_allclose(weights, 0.5)
    pooled = (model.weights_[:2] / model.weights_[:2].sum()) @ model.words_[:2]
    np.testing.assert_allclose(words[0], pooled)


def test_points_are_marked_by_the_columns_that_differ() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    x[30:, 1] += 20.0
    model = sc.GaussianMixture(2, covariance="spherical").fit(x)
    marks = find_point_marks(model)
    high = int(model.means_[:, 1].argmax())
    named = {mark.name: mark for mark in marks[high]}
    assert not named["column 2"].below
    assert {mark.name: mark for mark in marks[1 - high]}["column 2"].below
    assert float(named["column 2"].figure) == pytest.approx(20, abs=1)
    shares = model.predict_proba(x)
    fitness = rate_points(model, x, shares)
    nearest = np.linalg.norm(x[30:] - model.means_[high], axis=1).argmin() + 30
    assert fitness[30:].argmax() + 30 == nearest
