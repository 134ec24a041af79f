"""Tables whose conditions or outcomes are tuples, and probabilities of 0 that are no entries."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from tests.commands import run

DATA = ["HHT", "TTT", "HTH", "TTH"]

which, toss, three = sc.table("which"), sc.table("toss"), sc.table("three")


@sc.story
def hands(tosses):
    """The condition of `toss` is a tuple; `three` has the same values as two conditions."""
    for h in "AB":
        for k in (0, 1):
            yield which[h, k], *(toss[(h, k), x] for x in tosses), three[h, k, tosses[0]]


pair = sc.table("pair")


@sc.story
def pairs(item):
    """Outcomes are tuples, and so are conditions of tuples."""
    for z in "AB":
        yield which[z], *(pair[(z, (z, z)), (a, b)] for a, b in itertools.pairwise(item))


def fitted(story: Any, **settings: Any) -> sc.StoryModel:
    return sc.StoryModel(story, learner=sc.EM(max_iter=3, tol=0), **settings).fit(DATA)


@pytest.mark.parametrize("story", [hands, pairs])
@pytest.mark.parametrize("plain", [False, True])
def test_learning_goes_on_where_it_stopped(story: Any, plain: bool) -> None:
    model = fitted(story)
    start = model.params_.to_dict() if plain else model.params_
    again = sc.StoryModel(story, init=start, learner=sc.EM(max_iter=1, tol=0)).fit(DATA)
    assert again.trace_.log_likelihood[0] == model.trace_.log_likelihood[-1]
    given = sc.StoryModel(story, learner=sc.EM(max_iter=1, tol=0)).fit(DATA, init=start)
    assert given.trace_.log_likelihood[0] == model.trace_.log_likelihood[-1]


@pytest.mark.parametrize("story", [hands, pairs])
def test_the_likelihood_is_taken_apart_at_them(story: Any) -> None:
    model = fitted(story)
    for params in (model.params_, model.params_.to_dict()):
        seen = model.decompose(DATA, params)
        assert seen.log_likelihood == pytest.approx(model.trace_.log_likelihood[-1])


@pytest.mark.parametrize("story", [hands, pairs])
def test_files(story: Any, tmp_path: Path) -> None:
    model = fitted(story)
    model.save(tmp_path / "model.softcount")
    again = sc.load(tmp_path / "model.softcount", story=story)
    assert again.params_.to_dict() == model.params_.to_dict()
    assert (again.score(DATA) == model.score(DATA)).all()
    onward = sc.StoryModel(story, init=again.params_, learner=sc.EM(max_iter=1, tol=0)).fit(DATA)
    assert onward.trace_.log_likelihood[0] == model.trace_.log_likelihood[-1]


def test_all_ways_to_write_a_key() -> None:
    rows = {("A", 0): {"H": 0.1, "T": 0.9}, ("A", 1): {"H": 0.2, "T": 0.8}}
    rows |= {("B", 0): {"H": 0.3, "T": 0.7}, ("B", 1): {"H": 0.4, "T": 0.6}}
    flat = {(condition, x): p for condition, row in rows.items() for x, p in row.items()}
    parts = {(*condition, x): p for condition, row in rows.items() for x, p in row.items()}
    nested: dict[Any, Any] = {}
    for (h, k), row in rows.items():
        nested.setdefault(h, {})[k] = row
    found = []
    for of_toss in (rows, flat):
        for of_three in (rows, parts, nested):
            start = {"toss": of_toss, "three": of_three}
            core, _ = sc.StoryModel(hands)._bind(DATA)
            found.append(core.view_params(core.params(start)))
    assert all(each.to_dict() == found[0].to_dict() for each in found)
    view = found[0]
    assert view["toss"][("A", 1)]["H"] == view["toss"][("A", 1), "H"] == 0.2
    assert view["three"]["A"][1]["H"] == view["three"]["A", 1, "H"] == 0.2
    assert view["three"][("A", 1)]["T"] == 0.8  # two conditions here, though a tuple elsewhere


def test_a_key_of_the_wrong_length_is_named() -> None:
    core, _ = sc.StoryModel(hands)._bind(DATA)
    for wrong in ({("A", 0, "H"): 1.0}, {"A": 0.5}, {("A", 0): 0.5}):
        with pytest.raises(sc.errors.StartError, match="toss"):
            core.params({"toss": wrong})


def test_tables_print_themselves_and_are_json(tmp_path: Path) -> None:
    model = fitted(hands)
    assert "\nA, 0 " in repr(model.params_)
    program = tmp_path / "hands.py"
    program.write_text(
        "import softcount as sc\n"
        "which, toss = sc.table('which'), sc.table('toss')\n"
        "@sc.story\n"
        "def hands(tosses):\n"
        "    for h in 'AB':\n"
        "        for k in (0, 1):\n"
        "            yield which[h, k], *(toss[(h, k), x] for x in tosses)\n"
    )
    (tmp_path / "data.txt").write_text("\n".join(DATA) + "\n")
    result = run("story", program, tmp_path / "data.txt", "--chars", "--json")
    assert result.exit_code == 0, result.output
    params = json.loads(result.stdout)["params"]
    assert sorted(params["toss"]) == ["('A', 0)", "('A', 1)", "('B', 0)", "('B', 1)"]
    assert sum(params["toss"]["('B', 1)"].values()) == pytest.approx(1.0)
    lines = run("story", program, tmp_path / "data.txt", "--chars").stdout
    assert "toss\t('A', 0)\tH\t" in lines


# probabilities of 0
label, coin = sc.table("label"), sc.table("coin")


@sc.story
def labelled(z, tosses):
    """Nothing is hidden: example A4."""
    yield label[z], *(coin[z, x] for x in tosses)


A4 = [("A", "HHH"), ("A", "HHH"), ("B", "TTT")]


def test_what_was_never_counted_has_probability_zero() -> None:
    """Worked example A4: lam = 2/3, p_A = 1, p_B = 0/3 = 0."""
    params = sc.StoryModel(labelled).fit(A4).params_
    assert params["label"]["A"] == pytest.approx(2 / 3)
    assert params["coin"]["A"]["H"] == params["coin"]["A", "H"] == 1.0
    assert params["coin"]["B"]["H"] == params["coin"]["B", "H"] == 0.0
    assert params["coin"]["A"].get("T") == 0.0
    assert dict(params["coin"]["B"]) == {"T": 1.0}
    assert "H" not in params["coin"]["B"]
    assert ("A", "H") in params["coin"]
    assert ("B", "H") not in params["coin"]


def test_what_is_unknown_is_an_error_still() -> None:
    params = sc.StoryModel(labelled).fit(A4).params_
    with pytest.raises(sc.errors.MissingEntry, match="no table 'coins'"):
        params["coins"]
    with pytest.raises(sc.errors.MissingEntry, match="outcome 'X'"):
        params["coin"]["A"]["X"]
    with pytest.raises(sc.errors.MissingEntry, match="condition 'C'"):
        params["coin"]["C"]
    with pytest.raises(sc.errors.MissingEntry, match="condition 'C'"):
        params["coin"]["C", "H"]
    with pytest.raises(sc.errors.MissingEntry, match="too many parts"):
        params["coin"]["A", "H", "H"]
    with pytest.raises(sc.errors.MissingEntry, match="too many parts"):
        params["coin"]["B", "H", "H"]
    with pytest.raises(sc.errors.MissingEntry) as found:
        params["label"]["a"]
    assert "'a'" in str(found.value)


def test_zeros_may_be_written_as_start_values() -> None:
    start = {"coin": {"A": {"H": 1.0, "T": 0.0}, "B": {"H": 0, "T": 1}}}
    model = sc.StoryModel(labelled, init=start, learner=sc.EM(max_iter=1)).fit(A4)
    assert model.trace_.log_likelihood[-1] == pytest.approx(2 * np.log(2 / 3) + np.log(1 / 3))
    with pytest.raises(sc.errors.StartError, match="never occurs"):
        sc.StoryModel(labelled, init={"coin": {"A": {"H": 0.9, "T": 0.1}}}).fit(A4)
    with pytest.raises(sc.errors.StartError, match="never occurs"):
        sc.StoryModel(labelled, init={"coin": {"A": {"H": 1.0, "X": 0.0}}}).fit(A4)


# the same of aligners
C = [("three rabbits", "trois lapins"), ("rabbits of grenoble", "lapins de Grenoble")]


@pytest.mark.parametrize(
    "kind", [sc.align.IBM1, sc.align.IBM2, sc.align.Diagonal, sc.align.HMMAligner]
)
@pytest.mark.parametrize("null", [False, True])
def test_translations_that_never_occur_have_probability_zero(kind: Any, null: bool) -> None:
    model = kind(null=null, learner=sc.EM(max_iter=2, tol=0)).fit(C)
    table = model.params_["translation"]
    assert table["three"]["de"] == 0.0
    assert "de" not in table["three"]
    assert copy.deepcopy(table) == table
    with pytest.raises(sc.errors.MissingEntry, match="'rabbits'"):
        table["three"]["rabbits"]
    again = kind(null=null, learner=sc.EM(max_iter=1, tol=0)).fit(C, init=model.params_)
    assert again.trace_.log_likelihood[0] == model.trace_.log_likelihood[-1]


def test_start_tables_of_aligners_that_make_no_sense() -> None:
    bad = [{"four": {"trois": 1.0}}, {"three": {"quatre": 1.0}}, {"three": {"de": 1.0}}]
    for table in bad:
        with pytest.raises(sc.errors.StartError, match="translation"):
            sc.align.IBM1().fit(C, init={"translation": table})
    start = {"translation": {"three": {"trois": 1.0, "de": 0.0}}}
    model = sc.align.IBM1(null=False, learner=sc.EM(max_iter=1, tol=0)).fit(C, init=start)
    # (0 + 1/4 + …)/2 each: trois from "three" or "rabbits" of the first pair, and so on
    first = np.log((1.0 + 0.25) / 2) + np.log((0.0 + 0.25) / 2)
    assert model.trace_.log_likelihood[0] == pytest.approx(first + 3 * np.log(0.25))
