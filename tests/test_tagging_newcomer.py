"""What newcomers to tagging stumble over: words that are none, slips, small models on a page."""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from softcount.errors import DataError
from softcount.hmm import HMM
from softcount.hmm.report import FEW, LEAST_OF_FEW, SIDE, moves, states_shown, transition_graph
from tests.commands import done, refused
from tests.tagging import KNOWN, TEXT, WORDS

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
    for one in states_shown(model).states:
        assert {word for word, _ in one.words} == {w for tag, w in seen if tag == one.name}


def test_a_word_of_every_state_is_shown_in_every_state() -> None:
    model = HMM(smoothing=0.1).fit(
        [["a", "b", "c"]] * 5, [["X", "Y", "X"], ["Y", "X", "Y"]] * 2 + [None]
    )
    assert all(
        {word for word, _ in one.words} == {"a", "b", "c"} for one in states_shown(model).states
    )


def test_an_unused_state_has_no_words_and_a_page() -> None:
    model = HMM(open_tags=["NOBODY"], smoothing=0.1).fit(*tagged_text())
    [empty] = [one for one in states_shown(model).states if one.name == "NOBODY"]
    assert not empty.words
    assert "NOBODY" in sc.tagging_report(model)


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
    refused("tag", files["text"], *args, message="write word/TAG (or say another --separator)")
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
def test_few_states_have_all_moves_with_figures(k: int) -> None:
    model = HMM(k, smoothing=0.1).fit(tagged_text()[0])
    start, table, ends = moves(model)
    svg = transition_graph(states_shown(model).states, start, table, ends)
    side = float(re.findall(r'viewBox="0 0 ([\d.]+) ', svg)[0])
    assert side < SIDE
    given = figures(svg)
    every = np.concatenate([start, table.ravel(), ends])
    wanted = sorted(every[every >= LEAST_OF_FEW].round(2).tolist()) if k <= FEW else []
    assert sorted(p for _, _, p in given) == pytest.approx(wanted, abs=0.0051)
    assert all(0 < x < side and 0 < y < side for x, y, _ in given)


def test_the_page_says_what_its_graph_shows() -> None:
    words, _ = tagged_text()
    assert "All moves with a probability of 0.01" in sc.tagging_report(HMM(2).fit(words), words)
    many = sc.tagging_report(HMM(FEW + 1).fit(words), words[:1])
    assert "2 likeliest moves" in many
    assert "words of 1 sentence." in many


def test_there_is_no_page_about_vectors() -> None:
    model = sc.GaussianHMM(1).fit([np.arange(6.0).reshape(3, 2)])
    with pytest.raises(DataError, match="no page about a GaussianHMM"):
        sc.tagging_report(model)
