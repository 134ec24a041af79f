"""Methods side by side, and labels for another domain: as text, as a picture, as a page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sklearn.naive_bayes import MultinomialNB

from softcount.adapt.base import Explanation, MovedWord
from softcount.adapt.comparison import CEILING, Comparison, Result
from softcount.adapt.report import (
    Adaptation,
    Judgement,
    adaptation_page,
    adaptation_report,
    draw_comparison,
    record_labels,
    write_comparison,
)
from softcount.adapt.supervised import Merge, SourceOnly
from tests.labels.test_report import NASTY, Parts

DOMAINS = ("books", "dvd", "electronics", "kitchen")
LIFT = {"SourceOnly": 0.0, "EasyAdapt": 0.03, "TargetOnly": -0.1, CEILING: 0.1}
SVG = "{http://www.w3.org/2000/svg}"
BOOKS = ["a good book", "a bad book", "good plot", "bad plot"]
KNIVES = ["sharp knife", "blunt knife", "good and sharp", "blunt & bad"]


def compared(n_domains: int = 2, draws: int = 1, lift: dict[str, float] = LIFT) -> Comparison:
    """A comparison in which all figures differ, and are easy to foretell."""
    names = DOMAINS[:n_domains]
    return Comparison(
        [
            Result(source, target, method, draw, figure(source, target, draw) + more, 0.25, {})
            for source in names
            for target in names
            if source != target
            for draw in range(draws)
            for method, more in lift.items()
        ]
    )


def figure(source: str, target: str, draw: int) -> float:
    places = DOMAINS.index(source), DOMAINS.index(target)
    return 0.7 + 0.02 * places[1] + 0.004 * places[0] + 0.001 * draw


def classes_of(svg: str, css: str) -> list[ElementTree.Element]:
    found = ElementTree.fromstring(svg).iter()
    return [one for one in found if css in one.get("class", "").split()]


def told(one: ElementTree.Element) -> str:
    return one.findtext(f"{SVG}title") or ""


def places_of(svg: str) -> dict[str, float]:
    """Where every dot and mean is, by what its tooltip says."""
    found = {told(one): start_of(one)[0] for one in dots(svg)}
    found |= {told(one): float(one.get("cx", "nan")) for one in classes_of(svg, "hollow")}
    return found | {told(one): start_of(one)[0] for one in means(svg)}


def start_of(path: ElementTree.Element) -> tuple[float, float]:
    x, y = re.findall(r"[\d.]+", path.get("d", ""))[:2]
    return float(x), float(y)


def dots(svg: str) -> list[ElementTree.Element]:
    return [one for one in classes_of(svg, "dot") if told(one)]


def means(svg: str) -> list[ElementTree.Element]:
    return [one for one in classes_of(svg, "mean") if told(one)]


def colour_of(one: ElementTree.Element) -> str:
    return next(css for css in one.get("class", "").split() if re.fullmatch(r"c\d", css))


# text
def test_few_transfers_have_columns_of_their_own() -> None:
    heads, *rows, end = write_comparison(compared()).split("\n")
    assert heads.split("  ")[0] == "method"
    assert [head.strip() for head in heads.split("  ") if head][-2:] == [
        "books → dvd",
        "dvd → books",
    ]
    cells = {row.split("  ")[0]: row.split()[-4:] for row in rows}
    assert cells["SourceOnly"] == ["0.712", "0.25", "0.720", "0.704"]
    assert cells["EasyAdapt"] == ["0.742*", "0.25", "0.750", "0.734"]
    assert cells[CEILING] == ["0.812", "0.25", "0.820", "0.804"], "better, and no rival"
    assert end == "Accuracy on 2 transfers; * is the best."
    assert len({len(row) for row in (heads, *rows)}) == 1


def test_many_transfers_have_their_least_and_largest() -> None:
    text = write_comparison(compared(4, draws=3))
    heads, *rows, end = text.split("\n")
    assert heads.split() == ["method", "mean", "CPU", "s", "min", "max"]
    found = [figure(s, t, 1) for s in DOMAINS for t in DOMAINS if s != t]
    expected = [np.mean(found), 0.25, min(found), max(found)]
    assert list(map(float, rows[0].split()[1:])) == pytest.approx(expected, abs=6e-4)
    assert end == "Accuracy on 12 transfers, mean of 3 draws; * is the best."
    assert str(compared(4, draws=3)) == text


# the picture
def test_every_transfer_has_a_dot_where_its_accuracy_is() -> None:
    found = compared(4)
    svg = draw_comparison(found)
    places = places_of(svg)
    assert len(dots(svg)) == 3 * 12
    assert len(classes_of(svg, "hollow")) == 12, "the ceiling stands apart"
    ticks = [
        (float(one.text or "nan"), float(one.get("x", "nan")))
        for one in ElementTree.fromstring(svg).iter(f"{SVG}text")
        if (one.text or "").startswith("0.") and one.get("text-anchor") == "middle"
    ]
    (low, left), (high, right) = ticks[0], ticks[-1]
    assert 100 < left < 200 < 580 < right < 620
    for name, x in places.items():
        accuracy = float(name.split()[-1])
        assert low <= accuracy <= high
        assert x == pytest.approx(left + (right - left) * (accuracy - low) / (high - low), abs=1.6)


def test_the_source_alone_is_a_line_through_all_rows() -> None:
    svg = draw_comparison(compared())
    line, rows = classes_of(svg, "reference")[-1], [start_of(one)[1] for one in means(svg)]
    assert float(line.get("x1", "nan")) == places_of(svg)["SourceOnly: mean 0.712"]
    assert float(line.get("y1", "nan")) <= min(rows)
    assert float(line.get("y2", "nan")) >= max(rows)
    assert classes_of(draw_comparison(compared(), reference="another"), "reference") == []
    assert [one.text for one in classes_of(svg, "best")] == ["EasyAdapt", "0.742"]
    assert [one.text for one in classes_of(svg, "apart")] == [CEILING, "0.812"]


def test_dots_to_one_target_have_one_colour() -> None:
    for n, colours in ((4, 4), (2, 2)):
        svg = draw_comparison(compared(n))
        found = {(told(one).split(" → ")[1].split(":")[0], colour_of(one)) for one in dots(svg)}
        assert len(found) == len({css for _, css in found}) == colours
        texts = [one.text for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]
        assert {f"to {target}" for target, _ in found} <= set(texts)


def test_what_stands_apart_is_below_all_others() -> None:
    first = {CEILING: 0.1, "SourceOnly": 0.0}
    svg = draw_comparison(compared(lift=first))
    apart, other = classes_of(svg, "apart")[0], classes_of(svg, "best")[0]
    assert float(apart.get("y", "nan")) > float(other.get("y", "nan")) + 30


def test_a_single_transfer_shows_its_draws() -> None:
    found = Comparison([one for one in compared(2, draws=3).results if one.source == "books"])
    names = [told(one) for one in dots(draw_comparison(found, of="fold"))]
    assert names[0] == "fold 1: 0.720"
    assert len(names) == 3 * 3


@pytest.mark.parametrize("accuracies", [[1.0, 1.0], [0.0, 0.0], [0.5, math.nan], []])
def test_pictures_of_odd_accuracies(accuracies: list[float]) -> None:
    results = [Result("a", "b", f"m{k}", 0, a, 0.1, {}) for k, a in enumerate(accuracies)]
    svg = draw_comparison(Comparison(results))
    assert "nan" not in svg
    assert len(dots(svg)) == sum(map(math.isfinite, accuracies))
    figures = re.findall(r"middle\">(−?[\d.]+)</text>", svg)
    assert figures
    assert all(0.0 <= float(one.replace("−", "-")) <= 1.0 for one in figures)


def test_names_in_text_and_picture_are_harmless() -> None:
    found = compared(2, lift={NASTY: 0.0, "SourceOnly": 0.1})
    for text in (draw_comparison(found, reference=NASTY), write_comparison(found)):
        assert not {"\x00", "\x1b", "\u202e"} & set(text)
    ElementTree.fromstring(found._repr_html_())


# the page
def shown(**changed: Any) -> Adaptation:
    shares = np.array([[0.9, 0.1], [0.45, 0.55], [0.2, 0.8], [np.nan, np.nan]])
    texts = ["one", "two", "three", ""]
    gold = ["no", "no", "yes", None]
    found = record_labels(
        "easy", np.array(["no", "yes"]), shares, ["yes"] + [None] * 3, gold, texts
    )
    moved = [MovedWord("sharp", "yes", -0.5, 2.0, 0.25), MovedWord("plot", "yes", 1.0, 0.0, 0.01)]
    explained = Explanation(moved, [("sharp", [("moving", 0.91), ("deep", 0.5)])])
    return Adaptation(**{"title": "Labels", "method": "easy", "figures": found, "texts": texts,
                         "kind": "line", "explanation": explained, **changed})  # fmt: skip


def test_given_labels_stay_and_items_without_shares_get_none() -> None:
    found = shown().figures
    assert found.labels.tolist() == [1, 1, 1, -1]
    assert found.confidence.tolist() == [1.0, 0.55, 0.8, 0.0]
    assert shown().lead == "4 lines of the target: 1 had a label, 2 got one by easy."
    assert shown().accuracy.startswith("accuracy 0.500 on 2 lines with a gold label")


def test_the_page_says_everything_and_needs_no_network() -> None:
    one = Judgement("held-out target", compared(2, lift={"easy": 0.0, "SourceOnly": 0.1}), "Told.")
    other = Judgement("gold", compared(2, lift={"easy": 0.2}), "Gold.")
    html = adaptation_page(shown(judgements=[one, other], notes=["a note"]))
    parts = Parts(html)
    assert parts.open == []
    assert not {"script", "link", "img", "iframe"} & set(parts.tags)
    heads = ("Methods", "Labels", "Words that moved", "Words that correspond", "What to label next")
    for title in heads:
        assert f"<h2>{title}</h2>" in html
    assert ["easy", "0.712", "0.912", "0.25"] in parts.rows
    assert ["SourceOnly", "0.812", "–", "0.25"] in parts.rows
    assert ["sharp", "", "−0.50", "+2.00", "25%"] in parts.rows
    assert ["plot", "", "+1.00", "+0.00", "1.0%"] in parts.rows
    assert ["sharp", "moving 0.91, deep 0.50"] in parts.rows
    assert ["yes", "", "1", "3", "0.500", "1.000"] in parts.rows
    doubtful = [row for row in parts.rows if row[-1] in ("one", "two", "three", "")][-2:]
    assert doubtful == [["yes ✗", "0.550", "2", "two"], ["yes ✓", "0.800", "3", "three"]]
    assert html.count('<svg class="sc-chart"') == 2
    assert "A note." in html
    assert '<tr class="chosen"><th scope="row" class="name">easy<' in html


def test_what_does_not_measure_the_target_has_no_picture() -> None:
    judged = Judgement("held-out source", compared(), "No measure.", of_target=False)
    html = adaptation_page(shown(judgements=[judged]))
    assert '<svg class="sc-chart"' not in html
    assert "No measure." in html


def test_bars_are_as_long_as_weights() -> None:
    html = adaptation_page(shown())
    start = html.index('<svg class="weights"')
    first, second = ElementTree.fromstring(html[start : html.index("</svg>", start) + 6]).iter(
        "rect"
    )
    assert (float(first.get("x", "nan")), float(first.get("width", "nan"))) == (-25.0, 25.0)
    assert (float(second.get("x", "nan")), float(second.get("width", "nan"))) == (0.0, 100.0)
    assert (first.get("class"), second.get("class")) == ("before", "after")


def test_words_of_several_labels_say_which() -> None:
    moved = [MovedWord("a", "yes", 1.0, 2.0, 1.0), MovedWord("b", "no", 1.0, -2.0, 1.0)]
    rows = Parts(adaptation_page(shown(explanation=Explanation(moved)))).rows
    assert ["b", "no", "", "+1.00", "−2.00", "100%"] in rows


def fitted(classifier: Any = None) -> Merge:
    return Merge(classifier).fit(
        [*BOOKS, *KNIVES], [1, 0, 1, 0, 1, 0, -1, -1], sample_domain=[1] * 4 + [-1] * 4
    )


def test_a_report_of_a_model() -> None:
    found = compared(lift={"Merge": 0.1, "SourceOnly": 0.0})
    html = adaptation_report(fitted(), KNIVES, [1, 0, None, None], gold=[0, 0, 1, 1],
                             comparison=found, words=3)  # fmt: skip
    parts = Parts(html)
    assert "4 items of the target: 2 had a label, 2 got one by Merge." in html
    assert "Accuracy 0.500 on 2 items" in html
    assert "blunt &amp; bad" in html
    assert ["Merge", "0.812", "0.25"] in parts.rows
    words = [row[0] for row in parts.rows if len(row) == 5 and row[-1].endswith("%")]
    assert words == [word.word for word in fitted().explain(3).moved]


def test_reports_of_lists_of_words_and_of_matrices() -> None:
    words = [text.split() for text in [*BOOKS, *KNIVES]]
    y, domain = [1, 0, 1, 0] + [-1] * 4, [1] * 4 + [-1] * 4
    assert "sharp knife" in adaptation_report(SourceOnly().fit(words, y, domain), words[4:])
    X = np.eye(8)
    html = adaptation_report(SourceOnly().fit(X, y, domain), X[4:])
    assert "4 items of the target" in html
    assert '<td class="text">' not in html


def test_a_classifier_without_weights_of_words_is_no_hindrance() -> None:
    html = adaptation_report(fitted(MultinomialNB()), KNIVES)
    assert "MultinomialNB has no weights of words." in html
    assert "Words that moved" not in html


def everywhere(text: str) -> Adaptation:
    """A page with this text wherever there can be one."""
    names = np.array([text, "other"])
    found = record_labels(
        text, names, np.array([[0.6, 0.4]] * 2), [None] * 2, [text, None], [text] * 2
    )
    explained = Explanation([MovedWord(text, text, 1.0, -2.0, 0.5)], [(text, [(text, 0.5)])])
    runs = [Result(text, text + "2", text, 0, 0.5, 0.1, {})]
    judged = [Judgement(text, Comparison(runs), text)]
    return Adaptation(text, text, found, [text] * 2, "line", explained, judged, [text], text)


def in_terminal(one: Adaptation) -> str:
    console = Console(width=100, highlight=False, color_system=None)
    with console.capture() as capture:
        one.show(console, words=True)
    return capture.get()


def as_tsv(one: Adaptation) -> str:
    return one.as_tsv(words=True)


@pytest.mark.parametrize("form", [adaptation_page, in_terminal, as_tsv])
def test_every_name_and_text_is_harmless(form: Callable[[Adaptation], str]) -> None:
    said = form(everywhere(NASTY))
    assert not {"\x00", "\x1b", "\u202e"} & set(said)
    if form is adaptation_page:
        parts = Parts(said)
        assert parts.open == []
        assert "script" not in parts.tags
        assert not any(name.startswith("on") or name == "src" for name, _ in parts.attributes)


@given(st.text(min_size=1, max_size=30))
def test_pages_of_any_text_are_whole(text: str) -> None:
    if text != "other":
        assert Parts(adaptation_page(everywhere(text))).open == []
        assert len(as_tsv(everywhere(text)).split("\n\n")) == 2


# in the terminal and for programs
def test_remarks_and_tables_for_programs() -> None:
    judged = Judgement("gold", compared(lift={"easy": 0.0, "SourceOnly": 0.1}), "Told.")
    one = shown(judgements=[judged], notes=["a note"])
    first, second = as_tsv(one).split("\n\n")
    lines = first.split("\n")
    assert lines[:2] == ["# Labels", f"# {one.lead}"]
    for remark in (one.accuracy, "Told", "a note", "sharp is near moving (0.91), deep (0.50)"):
        assert f"# {remark}" in lines
    assert "# yes: 1 given, 3 at the end" in lines
    assert lines[-3:] == ["method\tgold\tseconds\tchosen", "easy\t0.7120\t0.250\tyes",
                          "SourceOnly\t0.8120\t0.250\t"]  # fmt: skip
    assert second == (
        "word\tlabel\tsource\ttarget\tmoved\tshare\n"
        "sharp\tyes\t-0.5000\t2.0000\t2.5000\t0.2500\n"
        "plot\tyes\t1.0000\t0.0000\t-1.0000\t0.0100\n"
    )
    brief = one.as_tsv()
    assert "sharp" not in brief
    assert brief.startswith(first.split("# a note")[0])


def test_whoever_watches_sees_tables() -> None:
    judged = Judgement("gold", compared(lift={"easy": 0.0, "SourceOnly": 0.1}), "Told.")
    text = in_terminal(shown(judgements=[judged]))
    rows = [line.split() for line in text.split("\n")]
    assert ["→", "easy", "0.712", "0.25"] in rows
    assert ["SourceOnly", "0.812", "0.25"] in rows
    assert ["sharp", "-0.50", "+2.00", "+2.50", "25%", "yes"] in rows
    assert ["yes", "1", "3", "0.500", "1.000", "██████████"] in rows
    assert "\t" not in text
