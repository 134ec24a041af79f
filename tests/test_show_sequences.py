"""Pages about hidden Markov models: that what is shown is right, and that pages are sound."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.corpus.tagged import tagged
from softcount.errors import DataError
from softcount.hmm import HMM
from softcount.hmm.report import (
    LEAST,
    MOST_MOVES,
    SIDE,
    chosen,
    hue,
    long_run,
    moves,
    states_shown,
    strongest,
    tagging_report,
    transition_graph,
)

NASTY = '</table><script>alert("x")</script><img/src=x/onerror=alert(1)>&"\']]>'
TAGGED = tagged(["the/D dog/N barks/V", "a/D old/J cat/N sleeps/V", "", "the/D cat/N barks/V"])
VOID = {"meta"}


class Page(HTMLParser):
    """A page taken apart: attributes, the words of sentences and the arrows of the graph."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.open: list[tuple[str, dict[str, str]]] = []
        self.words: list[list[str]] = []
        self.hues: dict[str, set[str]] = {}
        self.arrows: dict[str, float] = {}
        self.text: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if "id" in named:
            self.ids.append(named["id"])
        if "href" in named:
            self.links.append(named["href"])
        if named.get("class") == "w":
            self.words.append([])
            self.hues.setdefault(named["href"], set()).add(named["style"])
        if tag not in VOID:
            self.open.append((tag, named))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        inside = [named for _, named in self.open]
        if any(named.get("class") == "w" for named in inside):
            self.words[-1].append(data)
        if len(inside) > 1 and inside[-2].get("class") == "move":
            self.arrows[data] = float(inside[-2]["stroke-width"])


def fitted(**settings: Any) -> HMM:
    return HMM(smoothing=0.1, **settings).fit(TAGGED)


# the page
@pytest.mark.parametrize(
    "settings", [{}, {"order": 2}, {"stop": False}, {"order": 2, "stop": False}]
)
def test_words_have_the_states_that_the_model_gives_them(settings: dict[str, Any]) -> None:
    model = fitted(**settings)
    page = Page(tagging_report(model, TAGGED))
    sentences = [TAGGED.sequences.sentence(n) for n in range(len(TAGGED))]
    shown = [n for n, words in enumerate(sentences) if len(words) >= 4]  # of fair length
    states = model.predict(sentences)
    assert page.words == [
        [word, state] for n in shown for word, state in zip(sentences[n], states[n], strict=True)
    ]
    assert all(len(hues) == 1 for hues in page.hues.values())
    assert len(set.union(*page.hues.values())) == 4


def test_links_lead_somewhere_and_ids_are_single() -> None:
    page = Page(tagging_report(fitted(), TAGGED))
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert {f"state-{k}" for k in range(4)} <= set(page.ids)


def test_arrows_are_the_likeliest_moves() -> None:
    model = HMM().fit(TAGGED)
    arrows = Page(tagging_report(model)).arrows
    assert set(arrows) == {
        *("start → D: 1.00", "D → N: 0.67", "D → J: 0.33", "J → N: 1.00", "N → V: 1.00"),
        "V → end: 1.00",
    }
    assert arrows["D → N: 0.67"] == pytest.approx(2 * arrows["D → J: 0.33"], abs=0.11)


def test_nothing_is_fetched_and_nothing_runs() -> None:
    text = [[NASTY, "a"], ["a", NASTY, "\x01", "\u202e", "x" * 99]]
    tags = [[NASTY, "A"], ["A", NASTY, "A", "A", "A"]]
    html = tagging_report(HMM().fit(text, tags), text, title=NASTY)
    page = Page(html)
    assert not {"script", "img", "iframe", "link", "object"} & set(page.tags)
    assert "default-src 'none'" in html
    assert not re.search(r"(?:src|href)=\"(?!#)", html)
    assert "http" not in re.sub(r'xmlns="[^"]*"|http-equiv', "", html)
    assert "\x01" not in html
    assert "\u202e" not in html
    assert "prefers-color-scheme: dark" in html


@pytest.mark.parametrize(
    ("n_states", "text"),
    [(1, ["a"]), (3, ["a", ""]), (50, ["a b c d e f g h"]), (2, [["नमस्ते", "你好", "🙂 🙂"]])],
)
def test_small_and_large(n_states: int, text: Any) -> None:
    model = HMM(n_states).fit(text)
    page = Page(tagging_report(model, text))
    assert f"state-{n_states - 1}" in page.ids
    assert len(page.words) == sum(len(one.split() if isinstance(one, str) else one) for one in text)


def test_a_model_from_a_file_and_no_sentences(tmp_path: Any) -> None:
    model = fitted()
    model.save(tmp_path / "kept")
    again = sc.load(tmp_path / "kept")
    html = tagging_report(again, TAGGED)
    assert Page(html).words == Page(tagging_report(model, TAGGED)).words
    assert "objective by step" not in html
    assert "objective by step" in tagging_report(model)
    assert Page(tagging_report(model)).words == []


def test_sentences_that_cannot_be_are_shown_too() -> None:
    model = HMM(order=2).fit(TAGGED)
    with pytest.warns(sc.ImpossibleWarning):
        html = tagging_report(model, ["the dog barks", "barks unheard-of the dog"])
    assert "unheard-of" in html
    with pytest.raises(DataError, match="n=-1"):
        tagging_report(model, n=-1)


# states
def test_sizes_are_counted() -> None:
    model = fitted()
    states = model.predict(TAGGED)
    shown = states_shown(model, [*states, None])
    flat = [state for own in states for state in own]
    assert {one.name: one.tokens for one in shown.states} == {s: flat.count(s) for s in set(flat)}
    assert sum(one.share for one in shown.states) == pytest.approx(1.0)
    assert [one.share for one in shown.states] == sorted(o.share for o in shown.states)[::-1]


def test_shares_in_the_long_run_are_those_of_generated_sentences() -> None:
    model = fitted()
    made = [state for one in model.generate(4000, random_state=1) for _, state in one]
    counts = np.array([made.count(name) for name in model.states_]) / len(made)
    np.testing.assert_allclose(long_run(model), counts, atol=0.02)


def test_moves_of_order_two_are_probabilities() -> None:
    start, table, ends = moves(fitted(order=2))
    assert start.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(table.sum(axis=1) + ends, 1.0)
    first = moves(fitted())
    assert first[1][1].argmax() == table[1].argmax()  # a noun after a determiner, most often


# the graph
def test_few_arrows_even_of_many_states() -> None:
    k = 50
    rng = np.random.default_rng(0)
    whole = rng.dirichlet(np.full(k, 0.1), k)
    found = strongest(whole)
    assert len(found) <= MOST_MOVES * k
    assert all(move.p >= LEAST for move in found)
    for i, row in enumerate(whole):
        assert any(move.origin == i and move.p == row.max() for move in found) == (
            row.max() >= LEAST
        )


def test_circles_are_apart_and_inside() -> None:
    text = [" ".join(f"w{i}" for i in range(50))]
    model = HMM(50, init="random").fit(text)
    svg = transition_graph(states_shown(model).states, *moves(model))
    circles = np.array(
        re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', svg), dtype=float
    )
    assert len(circles) == 52
    assert ((circles[:, :2] > circles[:, 2:]) & (circles[:, :2] < SIDE - circles[:, 2:])).all()
    apart = np.hypot(*(circles[:, None, :2] - circles[None, :, :2]).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    assert (apart >= circles[:, 2] + circles[:, 2][:, None]).all()


def test_neighbouring_states_differ_in_colour() -> None:
    hues = np.array([hue(k) for k in range(50)])
    assert len(set(hues.tolist())) == 50
    steps = np.abs(np.diff(hues))
    assert np.minimum(steps, 360 - steps).min() > 100


def test_examples_are_spread() -> None:
    assert chosen([5] * 100, 3) == [0, 50, 99]
    assert chosen([5] * 2, 20) == [0, 1]
    assert chosen([], 3) == []
    assert chosen([5, 5], 0) == []
