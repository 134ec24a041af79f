"""Pages and overviews of hidden Markov models: what is shown is right, and pages are sound."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import DataError
from softcount.hmm import HMM
from softcount.hmm.report import (
    FEW,
    LEAST,
    LEAST_OF_FEW,
    MARGIN,
    MOST_TRANSITIONS,
    RADIUS,
    choose_hue,
    choose_sentences,
    choose_transitions,
    draw_transitions,
    read_transitions,
    summarise_states,
    tagging_report,
)
from softcount.text.tagged import tagged
from tests.commands import done, refused
from tests.hmm.tagged_text import KNOWN, TEXT, WORDS

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
    brief = [n for n, words in enumerate(sentences) if len(words) >= 4]  # of fair length
    states = model.predict(sentences)
    assert page.words == [
        [word, state] for n in brief for word, state in zip(sentences[n], states[n], strict=True)
    ]
    assert all(len(hues) == 1 for hues in page.hues.values())
    assert len(set.union(*page.hues.values())) == 4


def test_links_lead_somewhere_and_ids_are_single() -> None:
    page = Page(tagging_report(fitted(), TAGGED))
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert {f"state-{k}" for k in range(4)} <= set(page.ids)


def test_arrows_are_the_likeliest_transitions() -> None:
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
    with pytest.warns(sc.errors.ImpossibleWarning):
        html = tagging_report(model, ["the dog barks", "barks unheard-of the dog"])
    assert "unheard-of" in html
    with pytest.raises(DataError, match="n=-1"):
        tagging_report(model, n=-1)


# states
def test_sizes_are_counted() -> None:
    model = fitted()
    states = model.predict(TAGGED)
    brief = summarise_states(model, [*states, None])
    flat = [state for own in states for state in own]
    assert {one.name: one.tokens for one in brief.states} == {s: flat.count(s) for s in set(flat)}
    assert sum(one.share for one in brief.states) == pytest.approx(1.0)
    assert [one.share for one in brief.states] == sorted(o.share for o in brief.states)[::-1]


def test_shares_in_the_long_run_are_those_of_generated_sentences() -> None:
    model = fitted()
    made = [state for one in model.generate(4000, random_state=1) for _, state in one]
    counts = np.array([made.count(name) for name in model.states_]) / len(made)
    states = sorted(summarise_states(model).states, key=lambda one: one.number)
    np.testing.assert_allclose([one.share for one in states], counts, atol=0.02)


def test_transitions_of_order_two_are_probabilities() -> None:
    start, table, ends = read_transitions(fitted(order=2))
    assert start.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(table.sum(axis=1) + ends, 1.0)
    first = read_transitions(fitted())
    assert first[1][1].argmax() == table[1].argmax()  # a noun after a determiner, most often


# the graph
def test_few_arrows_even_of_many_states() -> None:
    k = 50
    rng = np.random.default_rng(0)
    whole = rng.dirichlet(np.full(k, 0.1), k)
    found = choose_transitions(whole)
    assert len(found) <= MOST_TRANSITIONS * k
    assert all(move.p >= LEAST for move in found)
    for i, row in enumerate(whole):
        assert any(move.origin == i and move.p == row.max() for move in found) == (
            row.max() >= LEAST
        )


def test_circles_are_apart_and_inside() -> None:
    text = [" ".join(f"w{i}" for i in range(50))]
    model = HMM(50, init="random").fit(text)
    svg = draw_transitions(summarise_states(model).states, read_transitions(model))
    circles = np.array(
        re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', svg), dtype=float
    )
    assert len(circles) == 52
    side = 2 * (RADIUS + MARGIN)
    assert ((circles[:, :2] > circles[:, 2:]) & (circles[:, :2] < side - circles[:, 2:])).all()
    apart = np.hypot(*(circles[:, None, :2] - circles[None, :, :2]).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    assert (apart >= circles[:, 2] + circles[:, 2][:, None]).all()


def test_neighbouring_states_differ_in_colour() -> None:
    hues = np.array([choose_hue(k) for k in range(50)])
    assert len(set(hues.tolist())) == 50
    steps = np.abs(np.diff(hues))
    assert np.minimum(steps, 360 - steps).min() > 100


def test_examples_are_spread() -> None:
    assert choose_sentences([5] * 100, 3) == [0, 50, 99]
    assert choose_sentences([5] * 2, 20) == [0, 1]
    assert choose_sentences([], 3) == []
    assert choose_sentences([5, 5], 0) == []


# What newcomers to tagging stumble over: words that are none, slips, small models on a page.


WORDS_OF = {"D": "the a an my no", "N": "dog cat rat cow", "V": "barks sleeps runs", "J": "old red"}


def tagged_text(n: int = 60) -> tuple[list[list[str]], list[list[str]]]:
    rng = np.random.default_rng(0)
    tags = [["D", "N", "V"] if rng.random() < 0.7 else ["D", "J", "N", "V"] for _ in range(n)]
    return [[str(rng.choice(WORDS_OF[tag].split())) for tag in some] for some in tags], tags


# words of a state
@pytest.mark.parametrize("smoothing", [0.0, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("order", [1, 2])
def test_words_that_smoothing_alone_puts_into_a_state_are_not_shown(
    smoothing: float, order: int
) -> None:
    words, tags = tagged_text()
    model = HMM(smoothing=smoothing, order=order).fit(words, tags)
    seen = set(zip(chain.from_iterable(tags), chain.from_iterable(words), strict=True))
    for one in summarise_states(model).states:
        assert {word for word, _ in one.words} == {w for tag, w in seen if tag == one.name}


def test_a_word_of_every_state_is_shown_in_every_state() -> None:
    model = HMM(smoothing=0.1).fit(
        [["a", "b", "c"]] * 5, [["X", "Y", "X"], ["Y", "X", "Y"]] * 2 + [None]
    )
    assert all(
        {word for word, _ in one.words} == {"a", "b", "c"} for one in summarise_states(model).states
    )


def test_an_unused_state_has_no_words_and_a_page() -> None:
    model = HMM(open_tags=["NOBODY"], smoothing=0.1).fit(*tagged_text())
    [empty] = [one for one in summarise_states(model).states if one.name == "NOBODY"]
    assert not empty.words
    assert "NOBODY" in sc.hmm.tagging_report(model)


# the command line
@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    given = {"text": TEXT, "words": WORDS, "known": KNOWN, "other": KNOWN.replace("/", "_")}
    paths = {name: tmp_path / name for name in given}
    for name, content in given.items():
        paths[name].write_text(content)
    return paths


def test_tags_behind_another_separator(files: dict[str, Path]) -> None:
    message = f"--tagged {files['other']}: not a single word has a tag"
    refused("tag", files["text"], "--tagged", files["other"], message=message)
    args = ("--dictionary", files["words"], "--tagged", files["other"])
    refused("tag", files["text"], *args, message="write word/TAG (or set --separator)")
    done("tag", files["text"], "--tagged", files["other"], "--separator", "_")


def test_open_tags_that_nobody_has(files: dict[str, Path]) -> None:
    args = ("tag", files["text"], "--dictionary", files["words"], "--smoothing", ".1")
    told = done(*args, "--open-tags", "N,NUON").stderr.splitlines()[0]
    assert told.startswith("softcount: --open-tags: NUON is in no dictionary")
    assert "--open-tags:" not in done(*args, "--open-tags", "N,V").stderr
    known = done(*args, "--open-tags", "N,V", "--tagged", files["known"])
    assert "--open-tags:" not in known.stderr


def test_how_much_a_dictionary_has(files: dict[str, Path]) -> None:
    files["words"].write_text("the\tD\na\tD\ndog\tN\ncat\tN\n")
    args = ("tag", files["text"], "--dictionary", files["words"], "--smoothing", ".1")
    share = "# the dictionary has 53.8% of 13 words; with --lowercase it would have 1 more\n"
    assert share in done(*args).stderr
    assert "# the dictionary has 61.5% of 13 words\n" in done(*args, "--lowercase").stderr
    files["words"].write_text("".join(f"{word}\tX Y\n" for word in set(TEXT.split())))
    assert "the dictionary has" not in done(*args).stderr
    assert "the dictionary has" not in done("tag", files["text"], "-k", "2").stderr


def test_which_tags_are_wrong(files: dict[str, Path], tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.write_text(
        "the/D dog/N barks/N\na/D cat/N sleeps/V\n\nthe/D old/J cat/N barks/N\nA/D dog/N sleeps/V\n"
    )
    words = "the\tD\na\tD\nA\tD\ndog\tN\ncat\tN\nold\tJ\nbarks\tV\nsleeps\tV\n"
    files["words"].write_text(words)
    args = ("tag", files["text"], "--gold", gold)
    named = done(*args, "--dictionary", files["words"], "--summary", "--json")
    assert json.loads(named.stdout)["notes"] == ["most often wrong: N taken for V 2"]
    states = done(*args, "-k", "1").stderr
    assert "# the most frequent gold tag of each state: 0 N\n" in states


# the page
def figures(svg: str) -> list[tuple[float, float, float]]:
    found = re.findall(r'<text class="figure" x="([\d.]+)" y="([\d.]+)">([\d.]+)</text>', svg)
    return [(float(x), float(y), float(p)) for x, y, p in found]


@pytest.mark.parametrize("k", [1, 2, FEW, FEW + 1])
def test_few_states_have_all_transitions_with_figures(k: int) -> None:
    model = HMM(k, smoothing=0.1).fit(tagged_text()[0])
    start, table, ends = found = read_transitions(model)
    svg = draw_transitions(summarise_states(model).states, found)
    side = float(re.findall(r'viewBox="0 0 ([\d.]+) ', svg)[0])
    assert side < 2 * (RADIUS + MARGIN)
    given = figures(svg)
    every = np.concatenate([start, table.ravel(), ends])
    wanted = sorted(every[every >= LEAST_OF_FEW].round(2).tolist()) if k <= FEW else []
    assert sorted(p for _, _, p in given) == pytest.approx(wanted, abs=0.0051)
    assert all(0 < x < side and 0 < y < side for x, y, _ in given)


def test_the_page_says_what_its_graph_shows() -> None:
    words, _ = tagged_text()
    few = sc.hmm.tagging_report(HMM(2).fit(words), words)
    assert "Transitions with a probability of at least 0.01" in few
    many = sc.hmm.tagging_report(HMM(FEW + 1).fit(words), words[:1])
    assert "2 likeliest transitions" in many
    assert "words of 1 sentence." in many


def test_there_is_no_page_about_vectors() -> None:
    model = sc.GaussianHMM(1).fit([np.arange(6.0).reshape(3, 2)])
    with pytest.raises(DataError, match="no page about a GaussianHMM"):
        sc.hmm.tagging_report(model)
