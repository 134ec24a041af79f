"""Charts, pages and terminal tables: well-formed, escaped, and saying what they were given."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.console import Console

from softcount.core.errors import SoftcountError
from softcount.core.types import Fit, State, Trace
from softcount.core.verdict import Verdict
from softcount.report import charts as svg
from softcount.report import page as report
from softcount.report.finding import Finding, list_distributions, make_all_bars, make_bars
from softcount.report.tables import show_finding

NASTY = '<script>alert("x")</script> & [bold]'
SVG = "{http://www.w3.org/2000/svg}"


def run(*objective: float, verdict: Verdict = Verdict.CONVERGED) -> Trace:
    states = [State(k, {}, v, v, 1.0, 0.1 * k, 0.0) for k, v in enumerate(objective)]
    return Trace(tuple(states), verdict)


def finding(text: str = "words", verdict: Verdict = Verdict.CONVERGED) -> Finding:
    kept, other = run(-9, -4, -3, verdict=verdict), run(-9, -8, -7)
    fit = Fit({}, kept, (other, kept), f"signature {text}")
    return Finding(text, text, [make_bars(text, {text: 0.75, "b": 0.25})], [text], fit)


def brief(one: Finding) -> str:
    console = Console(width=100, highlight=False, color_system=None)
    with console.capture() as capture:
        show_finding(one, console)
    return capture.get()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_cover_the_values_with_few_even_steps(low: float, width: float) -> None:
    high = low + width
    assume(high - low > 1e-9 * abs(low))
    marks = svg.choose_ticks(low, high)
    gap = marks[1] - marks[0]
    assert marks[0] <= low + 1e-6 * gap
    assert marks[-1] >= high - 1e-6 * gap
    assert 2 <= len(marks) <= 12


def test_ticks_of_a_flat_line_leave_room_on_both_sides() -> None:
    marks = svg.choose_ticks(-5.0, -5.0)
    assert marks[0] < -5.0 < marks[-1]


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [(-2.5, 2.5, "−2.5"), (0.25, 0.25, "0.25"), (-1200, 200, "−1,200"), (3e9, 1e9, "3e+09")],
)
def test_tick_labels(value: float, step: float, text: str) -> None:
    assert svg.label_tick(value, step) == text


def test_higher_values_are_drawn_higher() -> None:
    root = ET.fromstring(svg.draw_lines([svg.Series("one", [1.0, 2.0, 3.0])], "t"))
    (path,) = root.iter(f"{SVG}path")
    ys = [float(point.split(" ")[1]) for point in path.attrib["d"][1:].split("L")]
    assert ys == sorted(ys, reverse=True)
    assert len(ys) == 3


def test_chart_is_well_formed_and_has_a_title() -> None:
    root = ET.fromstring(svg.draw_lines([svg.Series(NASTY, [1.0, 2.0])], NASTY, NASTY, NASTY))
    assert root.attrib["role"] == "img"
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == NASTY


@pytest.mark.parametrize(
    "values", [[], [1.0], [math.nan, math.inf], [1.0, math.nan, 2.0], [2.0] * 5, [1.0] * 5000]
)
def test_odd_series_still_give_a_chart(values: list[float]) -> None:
    text = svg.draw_lines([svg.Series("odd", values)], "odd")
    ET.fromstring(text)
    assert "nan" not in text
    assert "inf" not in text.replace('role="img"', "")


def test_a_gap_breaks_the_line() -> None:
    text = svg.draw_lines([svg.Series("gap", [1.0, 1.5, math.nan, 2.0, 3.0])], "gap")
    (path,) = ET.fromstring(text).iter(f"{SVG}path")
    assert path.attrib["d"].count("M") == 2


def test_page_escapes_everything_and_needs_no_network() -> None:
    html = report.findings_page(NASTY, NASTY, [finding(NASTY)])
    tags = Tags()
    tags.feed(html)
    assert "script" not in tags.tags
    assert not {"link", "img", "iframe"} & set(tags.tags)
    assert not {"src", "href"} & {name for name, _ in tags.attributes}


def test_page_tells_good_verdicts_from_poor_ones() -> None:
    assert 'class="verdict"' in report.findings_page("", "", [finding()])
    assert 'class="poor verdict"' in report.findings_page(
        "", "", [finding(verdict=Verdict.OUT_OF_STEPS)]
    )


def test_page_draws_every_run() -> None:
    html = report.findings_page("", "", [finding()])
    assert html.count('class="run faint"') == 1
    assert html.count('class="run c0"') == 1
    assert "1 other start." in html


def test_page_is_written_whole_or_refused_with_a_hint(tmp_path: Path) -> None:
    report.write_page(tmp_path / "page.html", "whole")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["whole"]
    with pytest.raises(SoftcountError, match="cannot write the page"):
        report.write_page(tmp_path / "nowhere" / "page.html", "whole")


def test_terminal_shows_the_same_as_the_page() -> None:
    text = brief(finding("coin"))
    for part in ("coin", "0.750", "0.250", str(Verdict.CONVERGED), "signature coin"):
        assert part in text


def test_terminal_takes_markup_literally() -> None:
    assert "[bold]" in brief(finding("[bold]"))


def test_distributions_are_found_at_any_depth() -> None:
    deep = {"rule": {"S": {1: {"a": 0.5, "b": 0.5}}}, "which": {"A": 1.0}}
    assert list(list_distributions(deep)) == [
        (("rule", "S", "1"), {"a": 0.5, "b": 0.5}),
        (("which",), {"A": 1.0}),
    ]
    assert [one.title for one in make_all_bars(deep)] == ["rule given S, 1", "which"]


def test_bars_of_one_table_can_be_compared() -> None:
    """A full bar is 1, 0.1, 0.01 …: the same in all rows of a table, and never too short."""
    params = {"which": {"A": 0.5, "B": 0.5}, "word": {"A": {"x": 0.04}, "B": {"x": 0.1, "y": 0.02}}}
    which, *words = make_all_bars(params)
    assert which.full == 1.0
    assert [one.full for one in words] == pytest.approx([0.1, 0.1])
    assert all(p <= one.full * 1.001 for one in (which, *words) for _, p in one.rows)


def test_a_scale_other_than_one_is_said() -> None:
    one = finding("coin")
    assert one.scale == ""
    small = replace(one, bars=[make_bars("t", {"a": 0.04})])
    assert small.scale == "A full bar is 0.1."
    assert small.scale in brief(small)
    assert small.scale in report.findings_page("", "", [small])
    assert replace(one, bars=[*one.bars, *small.bars]).scale == "A full bar is 1, 0.1."


def test_the_signature_stays_on_one_line() -> None:
    one = finding()
    long = replace(one, fit=replace(one.fit, signature="softcount " * 30 + "end"))
    assert "softcount " * 30 + "end" in brief(long)


def test_the_story_is_on_the_page_if_there_is_one() -> None:
    assert "<details>" not in report.findings_page("", "", [finding()])
    page = report.findings_page("", "", [replace(finding(), source="def coins(x < y):")])
    assert "def coins(x &lt; y):" in page


def test_bars_keep_the_likeliest_and_count_the_rest() -> None:
    one = make_bars("t", {"a": 0.1, "b": 0.6, "c": 0.3, "never": 0.0}, top=2)
    assert one.rows == [("b", 0.6), ("c", 0.3)]
    assert one.left_out == 1


@pytest.mark.parametrize(
    ("low", "high"),
    [(3.0 - 4e-16, 3.0), (1e-20, 3e-20), (0.0, 0.0), (-1e300, -1e300), (5e8, 5e8 + 1)],
)
def test_figures_that_hardly_differ_have_room(low: float, high: float) -> None:
    found = svg.choose_ticks(low, high)
    assert found[0] <= low <= high <= found[-1]
    assert found == sorted(set(found))
    assert "NaN" not in svg.draw_lines([svg.Series("", [low, high])], "")
