"""Runs, fits, verdicts, selections and laws as tables; and the shell's table of a run."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.display import MissingPackage
from softcount.stories import StoryModel
from tests.commands import done, refused
from tests.oracles import stories

TEXTS = ["a b a c", "b b c", "d e d", "e d d a"]
START = {
    "which": {"A": 0.3, "B": 0.7},
    "flip": {"A": {"H": 0.3, "T": 0.7}, "B": {"H": 0.6, "T": 0.4}},
}
ITEMS = ["HHH", "TTT", "HHH", "TTT"]


def coins(**options: Any) -> StoryModel:
    learner = sc.EM(max_iter=3, tol=0)
    model = StoryModel(stories.coins(sc.table, sc.story), learner=learner)
    return model.fit(ITEMS, init=START, **options)


def test_a_trace_prints_its_figures_and_the_verdict() -> None:
    trace = coins().trace_
    head, *rows, verdict = repr(trace).splitlines()
    assert head.split() == ["step", "log_likelihood", "perplexity", "change", "seconds"]
    assert [row.split()[1] for row in rows] == ["-7.499076", "-4.931993", "-2.945809", "-2.772725"]
    assert verdict == str(trace.verdict)
    assert "<td>-7.499076</td>" in trace._repr_html_()


def test_a_run_prints_as_textbooks_do() -> None:
    model = coins(keep_posteriors=True)
    columns = model.steps().columns
    assert list(columns)[:4] == ["which[A]", "which[B]", "flip[A][H]", "flip[A][T]"]
    assert columns["flip[B][H]"] == [params["flip"]["B"]["H"] for params in tables(model)]
    ours = ["A | HHH", "A | TTT", "A | HHH #2", "A | TTT #2"]
    assert [name for name in columns if "|" in name] == ours
    for n, name in enumerate(ours):
        assert columns[name] == [step["A"][n] for step in model.trace_.posteriors]
    assert "which[A]" not in coins().steps().columns  # nothing was kept


def tables(model: StoryModel) -> list[Any]:
    return [model.core_.view_params(params) for params in model.trace_.params]


def test_half_steps_come_by_turns() -> None:
    model = coins(keep_posteriors=True)
    halves = list(model.trace_.half_steps())
    assert [kind for _, kind, _ in halves] == ["M", "E"] * 4
    (_, _, params), (_, _, posteriors) = halves[2:4]
    np.testing.assert_array_equal(model.e_step(ITEMS, params).values, posteriors.values)
    with pytest.raises(AttributeError, match="keep_posteriors=True"):
        next(coins().trace_.half_steps())


def test_large_models_do_not_print_all_their_parameters() -> None:
    model = sc.PLSA(5).fit(TEXTS * 3, keep_posteriors=True)
    assert next(iter(model.steps().columns)) in ("log-likelihood", "objective")


def test_fits_verdicts_and_laws_print() -> None:
    model = sc.MultinomialMixture(2, learner=sc.EM(n_init=2, max_iter=5)).fit(TEXTS)
    lines = repr(model.fit_).splitlines()
    assert lines[0] == model.signature_
    assert len(lines) == 5
    assert sum("*" in line for line in lines[2:4]) == 1
    assert str(model.verdict_) in model.verdict_._repr_html_()
    report = sc.check_model(sc.MultinomialMixture(2), TEXTS)
    assert repr(report).splitlines()[0].split() == ["law", "holds", "figures"]
    assert len(repr(report).splitlines()) == len(report) + 1
    selection = sc.select(sc.MultinomialMixture(), TEXTS, k=[1, 2])
    assert "<table>" in selection._repr_html_()
    assert [row[0] for row in selection.rows().grid().rows] == [1, 2]


def test_derivations_print_as_trees() -> None:
    model = StoryModel(stories.hmm(sc.table, sc.story)).fit([["x", "y", "x"]])
    lines = str(model.best(["x", "y", "x"])).splitlines()
    assert len(lines) > 1
    assert all(line.lstrip("│ ").startswith(("├─", "└─")) for line in lines[1:])
    assert "<pre>" in model.best(["x", "y", "x"])._repr_html_()


def test_frames_and_plots_or_what_to_install() -> None:
    trace = coins().trace_
    if find_spec("pandas"):
        assert trace.to_frame()["log_likelihood"].tolist() == trace.log_likelihood.tolist()
    else:
        with pytest.raises(MissingPackage, match="pandas"):
            trace.to_frame()
    if find_spec("matplotlib"):
        (line,) = trace.plot("log_likelihood").lines
        np.testing.assert_array_equal(line.get_ydata(), trace.log_likelihood)
    else:
        with pytest.raises(MissingPackage, match="softcount\\[plot\\]"):
            trace.plot()


COINS = Path(__file__).parents[2] / "examples" / "coins.py"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    data, start = tmp_path / "tosses.txt", tmp_path / "start.json"
    data.write_text("\n".join(ITEMS) + "\n")
    start.write_text(json.dumps(START))
    return data, start


def test_the_shell_starts_from_a_file_and_prints_the_steps(files: tuple[Path, Path]) -> None:
    data, start = files
    common = ("story", COINS, data, "--chars", "--init", start, "--max-iter", "3", "--tol", "0")
    got = done(*common, "--steps").stdout.splitlines()
    assert got[0].split()[:3] == ["step", "which[A]", "which[B]"]
    assert got[1].split()[-1] == "-7.499076"
    assert got[2].split()[1] == "0.3738"
    figures = json.loads(done(*common, "--json").stdout)["trace"]["log_likelihood"]
    assert figures == pytest.approx([-7.499076, -4.931993, -2.945809, -2.772725], abs=1e-6)


def test_the_shell_says_what_is_wrong_with_a_start(files: tuple[Path, Path]) -> None:
    data, start = files
    refused("story", COINS, data, "--chars", "--init", "tables", message="nor a file")
    start.write_text("{")
    refused("story", COINS, data, "--chars", "--init", start, message="is not JSON")
    start.write_text("[1]")
    refused("story", COINS, data, "--chars", "--init", start, message="tables by name")
    start.write_text('{"whoch": {"A": 1}}')
    refused("story", COINS, data, "--chars", "--init", start, message="no such table")
