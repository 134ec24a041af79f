"""Alignment models told as stories: the story engine, which knows none of them, learns the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.fit import fit
from softcount.core.types import EStep
from tests.align.cases import (
    Case,
    core_of,
    place_keys,
    places_of,
    random_params,
    shapes,
    word_pairs,
)
from tests.oracles import stories
from tests.oracles.alignments import Chain

EXACT = 1e-10
DATA = [
    (["a", "b", "c"], ["X", "Y", "Z", "W"]),
    (["b", "c"], ["Y", "Z"]),
    (["a", "a", "d"], ["X", "W"]),
    (["d"], ["Q", "W", "X"]),
    (["c"], ["Z"]),
]
STEPS = 4

nulls = pytest.mark.parametrize("null", [True, False])


def case_of(null: bool, reach: int = 2) -> Case:
    return Case(DATA, None, null, 11, reach=reach)


def nested(flat: Mapping[tuple[Any, Any], float]) -> dict[Any, dict[Any, float]]:
    found: dict[Any, dict[Any, float]] = {}
    for (condition, outcome), p in flat.items():
        found.setdefault(condition, {})[outcome] = p
    return found


class Learned:
    """A kernel's model, learned for a few steps from a random start."""

    def __init__(self, kind: str, case: Case, prior: float = 1.0, steps: int = STEPS) -> None:
        self.kind, self.case, self.corpus = kind, case, case.corpus()
        self.core = core_of(kind, self.corpus, case, prior)
        self.start = random_params(self.core, case)
        learner = sc.EM(max_iter=steps, tol=0.0)
        self.fit = fit(self.core, self.corpus, learner, init=self.start)

    @property
    def log_likelihood(self) -> np.ndarray:
        return np.asarray(self.fit.trace.log_likelihood)

    def words(self, params: Any) -> dict[tuple[str | None, str], float]:
        return dict(zip(word_pairs(self.corpus), params["translation"].tolist(), strict=True))

    def check_words(self, table: Any, tolerance: float = EXACT) -> None:
        for (e, f), p in self.words(self.fit.params).items():
            assert table[e][f] == pytest.approx(p, abs=tolerance), (e, f)


def told(story: Any, start: Any, steps: int = STEPS, **options: Any) -> Any:
    learner = sc.EM(max_iter=steps, tol=0.0)
    return sc.StoryModel(story, learner=learner, **options).fit(DATA, init=start)


@nulls
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_model_1(null: bool, smoothing: float) -> None:
    learned = Learned("model 1", case_of(null), 1.0 + smoothing)
    story = (stories.ibm1_null if null else stories.ibm1)(sc.table, sc.story)
    model = told(story, {"t": nested(learned.words(learned.start))}, smoothing=smoothing)
    even = -sum(len(fs) * np.log(len(es) + null) for es, fs in DATA)  # the story does not weigh it
    found = np.asarray(model.trace_.log_likelihood) + even
    assert found == pytest.approx(learned.log_likelihood, abs=EXACT)
    learned.check_words(model.params_["t"])


def model_2(null: bool) -> Any:
    t, d = sc.table("t"), sc.table("d")

    @sc.story
    def link(es: Sequence[str], f: str, m: int, j: int) -> Iterator[Any]:
        for i, e in enumerate(es):
            yield d[(len(es), m, j), i], t[e, f]
        if null:
            yield d[(len(es), m, j), None], t[None, f]

    @sc.story
    def pair(es: Sequence[str], fs: Sequence[str]) -> Iterator[Any]:
        yield tuple(link(es, f, len(fs), j) for j, f in enumerate(fs))

    return pair


@nulls
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_model_2(null: bool, smoothing: float) -> None:
    learned = Learned("model 2", case_of(null), 1.0 + smoothing)
    keys = place_keys("model 2", learned.case)

    def places(params: Any) -> dict[tuple[Any, Any], float]:
        each = zip(keys, params["places"].tolist(), strict=True)
        return {((l, m, j), i): p for (l, m, j, i), p in each if null or i is not None}

    start = {"t": nested(learned.words(learned.start)), "d": nested(places(learned.start))}
    model = told(model_2(null), start, smoothing=smoothing)
    assert np.asarray(model.trace_.log_likelihood) == pytest.approx(
        learned.log_likelihood, abs=EXACT
    )
    learned.check_words(model.params_["t"])
    for (condition, i), p in places(learned.fit.params).items():
        assert model.params_["d"][condition][i] == pytest.approx(p, abs=EXACT)


def chain(null: bool, **options: Any) -> Any:
    """The place last jumped to is remembered while words come from the empty word."""
    t, jump, empty = sc.table("t"), sc.table("jump", **options), sc.table("empty")

    @sc.story
    def tail(es: Sequence[str], fs: Sequence[str], j: int, h: int) -> Iterator[Any]:
        if j == len(fs):
            yield ()
            return
        if null:
            yield empty["empty"], t[None, fs[j]], tail(es, fs, j + 1, h)
        for i, e in enumerate(es):
            moved = (jump[f"{h} of {len(es)}", i + 1], t[e, fs[j]], tail(es, fs, j + 1, i + 1))
            yield (empty["word"], *moved) if null else moved

    @sc.story
    def pair(es: Sequence[str], fs: Sequence[str]) -> Iterator[Any]:
        yield tail(es, fs, 0, 0)

    return pair


def jumps_of(case: Case, params: Any) -> dict[tuple[Any, Any], float]:
    """p(k | h, l) of all places that can be left and reached."""
    places = places_of("chain", case, params)
    assert isinstance(places, Chain)
    return {
        (f"{h} of {l}", k): places.chance(h, k, l)
        for l in sorted({l for l, _ in shapes(DATA)})
        for h in range(l + 1)
        for k in range(1, l + 1)
        if h == 0 or any(m > 1 for ll, m in shapes(DATA) if ll == l)
    }


@nulls
@pytest.mark.parametrize("reach", [1, 3])
def test_one_step_of_the_chain(null: bool, reach: int) -> None:
    """The story has a row of its own for every place: the first E-step must be the same."""
    learned = Learned("chain", case_of(null, reach), steps=1)
    p0 = learned.case.p_null
    start = {
        "t": nested(learned.words(learned.start)),
        "jump": nested(jumps_of(learned.case, learned.start)),
        **({"empty": {"empty": p0, "word": 1.0 - p0}} if null else {}),
    }
    model = told(chain(null), start, steps=1)
    assert model.trace_.log_likelihood[0] == pytest.approx(learned.log_likelihood[0], abs=EXACT)
    learned.check_words(model.params_["t"])
    stats = learned.core.expect(learned.start, learned.corpus.everything, EStep())
    counts = np.asarray(stats.counts["jumps"])
    keys = place_keys("chain", learned.case)
    left = {key[1:]: n for key, n in zip(keys, counts, strict=True) if key[0] == "left"}
    places = places_of("chain", learned.case, learned.start)
    assert isinstance(places, Chain)
    by_bin = dict.fromkeys((key for key in keys if key[0] != "left"), 0.0)
    for (l, h), n in left.items():  # the story's new rows, times how often they were left
        for k in range(1, l + 1) if n > 0.0 else ():
            by_bin[places.bin(h, k)] += n * model.params_["jump"][f"{h} of {l}"][k]
    found = [n for key, n in zip(keys, counts, strict=True) if key[0] != "left"]
    assert found == pytest.approx(list(by_bin.values()), abs=EXACT)
    if null:
        total = sum(len(fs) for _, fs in DATA)
        assert model.params_["empty"]["word"] == pytest.approx(sum(left.values()) / total)


def test_some_steps_of_the_chain() -> None:
    """With one weight a width in the story as well, learned by features: the same path.

    Both climb to the best weights inside each M-step, by different means, and stop near them.
    """
    case = case_of(False, 1)
    corpus = case.corpus()
    core = core_of("chain", corpus, case)
    places = places_of("chain", case, random_params(core, case))
    assert isinstance(places, Chain)

    def width(place: str, k: int) -> list[Any]:
        return [places.bin(int(place.split()[0]), k)]

    model = told(chain(False, features=width, l2=1e-9), "uniform", steps=3)
    even = np.full(core.table.n_entries, 1.0 / len(corpus.pairs.target.words))
    start = {"translation": even, "jumps": core.families["jumps"].uniform()}
    found = fit(core, corpus, sc.EM(max_iter=3, tol=0.0), init=start).trace.log_likelihood
    told_so = model.trace_.log_likelihood  # its even start has rows that do not sum to one
    assert told_so[1] == pytest.approx(found[1], abs=1e-6)
    assert told_so[2:] == pytest.approx(found[2:], abs=1e-3)
    assert found[3] > found[1] + 0.1
