"""Numbers that are too large, too small or none: refused by name, or right; never a crash."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core import bounds, store
from softcount.families.gaussian import NIW
from tests.commands import run
from tests.core.extremes import (
    ADAPTED,
    ALIGNED,
    BANKS,
    CASES,
    COUNTS,
    DOMAINS,
    LEARNERS,
    PAIRS,
    POINTED,
    POINTS,
    SENTENCES,
    VALUES,
    VECTORS,
    VOTES,
    WHOLE,
    merge_settings,
)

RAW = re.compile("int too (large|big)|Singular|positive definite|Maximum allowed|out of bounds")
"""What numpy and Python say of numbers that they cannot hold; users should not have to read it."""


def faults_of(attempt: Callable[[], list[str]]) -> list[str]:
    """What is wrong with an attempt that may refuse to do what it is asked for, in clear words."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = attempt()
        except sc.SoftcountError as error:
            return [] if str(error) else ["an error without a message"]
        except (ValueError, TypeError) as error:  # scikit-learn's word on NaN and infinity
            raw = RAW.search(str(error)) or isinstance(error, np.linalg.LinAlgError)
            return [f"{type(error).__name__}: {error}"] if raw else []
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
    return found + [str(w.message) for w in said if issubclass(w.category, RuntimeWarning)]


def wrong_in(model: Any) -> list[str]:
    """What is wrong with what was learned."""
    faults = []
    if hasattr(model, "fit_"):
        objective = model.trace_.objective
        # a variational posterior does not exist at the start: there the bound is −inf
        if np.isnan(objective).any() or not np.isfinite(objective[1:]).all():
            faults.append(f"objective {objective[:4]}")
        if objective[0] == np.inf:
            faults.append("objective of +inf")
        if model.verdict_ is sc.Verdict.FELL:
            faults.append(f"fell: {objective[-2:]}")
    for name, table in getattr(model, "raw_params_", {}).items():
        if not np.isfinite(np.asarray(table)).all():
            faults.append(f"{name} is not finite")
    return faults


def told(value: Any) -> str:
    return repr(value)[:12]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_settings(name: str) -> None:
    case, faults = CASES[name], []
    assert wrong_in(case.learned()) == []
    for setting in merge_settings(name):
        for value in WHOLE:

            def attempt(setting: str = setting, value: Any = value) -> list[str]:
                return wrong_in(case.learned({setting: value}))

            faults += [f"{setting}={told(value)}: {fault}" for fault in faults_of(attempt)]
    assert faults == []


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.inputs])
def test_data(name: str) -> None:
    case, faults = CASES[name], []
    for what in case.inputs:
        for value in VALUES:

            def attempt(what: str = what, value: Any = value) -> list[str]:
                model = case.learned(**{what: value})
                return wrong_in(model) + wrong_answers(model, name)

            faults += [f"{what}={told(value)}: {fault}" for fault in faults_of(attempt)]
    assert faults == []


@pytest.mark.parametrize("name", ["MultinomialMixture", "HMM", "IBM1", "PLSA", "StoryModel"])
def test_learners(name: str) -> None:
    case, faults = CASES[name], []
    more = {} if name == "PLSA" else {"smoothing": 0.1}
    for kind, (make, dials) in LEARNERS.items():
        for dial in dials:
            for value in WHOLE:

                def attempt(make: Any = make, dial: str = dial, value: Any = value) -> list[str]:
                    return wrong_in(case.learned({**more, "learner": make(**{dial: value})}))

                faults += [f"{kind}({dial}={told(value)}): {f}" for f in faults_of(attempt)]
    assert faults == []


# rounding
HEAVY = [
    ("LDA", {}, {"count": 1e15}),
    ("PLSA", {"learner": sc.EM(tol=0, max_iter=60)}, {"count": 1e15}),
    ("KMeans", {}, {"value": 1e15}),
    ("SoftKMeans", {}, {"value": 1e15}),
    ("Bernoulli", {"learner": sc.VariationalBayes(tol=0, max_iter=40)}, {"weight": 1e12}),
    ("PCFG", {"learner": sc.EM(tol=0, max_iter=60), "smoothing": 0.1}, {"weight": 1e14}),
    ("DirichletProcessGaussianMixture", {"concentration": 1e15}, {}),
]


@pytest.mark.parametrize(("name", "settings", "data"), HEAVY, ids=[name for name, _, _ in HEAVY])
def test_rounding_is_no_fall(name: str, settings: Any, data: Any) -> None:
    assert wrong_in(CASES[name].learned(settings, **data)) == []


def test_a_fall_is_a_fall_all_the_same() -> None:
    """What is allowed for rounding is next to nothing of what observations can lose."""
    model = CASES["MultinomialMixture"].learned({"learner": sc.EM(tol=0, max_iter=20)})
    last = model.trace_[-1]
    assert 0.0 < last.rounding < 1e-10
    heavy = CASES["MultinomialMixture"].learned(weight=1e12)
    assert heavy.trace_[-1].rounding < 1e-11 * 1e12


@pytest.mark.parametrize("weight", [1e9, 1e10, 1e11])
@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
def test_one_point_that_outweighs_all_others(weight: float, covariance: str) -> None:
    model = sc.GaussianMixture(2, covariance=covariance)  # type: ignore[arg-type]
    model.fit(POINTS, sample_weight=[weight, 1, 1, 1, 1, 1])
    assert wrong_in(model) == []
    np.testing.assert_allclose(model.predict_proba(POINTS).sum(axis=1), 1.0)


# what counts as nothing, and what is at the bounds
def test_weights_too_small_to_be_felt_are_no_weights() -> None:
    dust = [1, 1e-320, 1, 1, 5e-324, 1]
    zero = [1, 0, 1, 1, 0, 1]
    for make, data in ((sc.MultinomialMixture, COUNTS), (sc.GaussianMixture, POINTS)):
        found, same = (make(2).fit(data, sample_weight=some) for some in (dust, zero))
        assert found.trace_.objective.tolist() == same.trace_.objective.tolist()
    with pytest.raises(sc.DataError, match="zero everywhere"):
        sc.MultinomialMixture(2).fit(COUNTS, sample_weight=[1e-320] * 6)


def test_counts_too_small_to_be_felt_are_no_counts() -> None:
    dust = np.where(COUNTS == 0.0, 1e-310, COUNTS)
    found, same = (sc.MultinomialMixture(2).fit(some) for some in (dust, COUNTS))
    assert found.trace_.objective.tolist() == same.trace_.objective.tolist()


@pytest.mark.parametrize("where", [3, 0])
def test_a_message_names_the_place_and_the_bound(where: int) -> None:
    weights = np.ones(6)
    weights[where] = 2 * bounds.MAX_WEIGHT
    with pytest.raises(sc.DataError, match=rf"2e\+15 at position {where}.*nor above 1e\+15"):
        sc.MultinomialMixture(2).fit(COUNTS, sample_weight=weights)
    counts = np.array(COUNTS)
    counts[where, 0] = 1e16
    with pytest.raises(sc.DataError, match=rf"document {where} has a count of 1e\+16"):
        sc.MultinomialMixture(2).fit(counts)
    with pytest.raises(sc.DataError, match=r"a value of 1e\+60, which is beyond 1e\+50"):
        sc.KMeans(2).fit(np.where(np.arange(6)[:, None] == where, 1e60, POINTS))


@pytest.mark.parametrize("field", ["kappa", "dof", "mean", "scale"])
def test_priors_of_gaussians(field: str) -> None:
    faults = []
    for value in VALUES:

        def attempt(value: Any = value) -> list[str]:
            prior = NIW(**{field: value})
            return wrong_in(sc.GaussianMixture(2, prior=prior).fit(POINTS))

        faults += [f"{told(value)}: {fault}" for fault in faults_of(attempt)]
    assert faults == []


def test_numbers_of_thousands_of_digits_are_told_of() -> None:
    for what in ({"n_components": 10**5000}, {"smoothing": 10**5000}):
        with pytest.raises(sc.LearnerError, match="thousands of digits"):
            sc.MultinomialMixture(**what).fit(COUNTS)


# model files that somebody has forged
DATA: dict[str, Any] = {
    **dict.fromkeys(POINTED, POINTS),
    **dict.fromkeys(ALIGNED, PAIRS),
    **dict.fromkeys(ADAPTED, DOMAINS[0]),
    **dict.fromkeys(("HMM", "HMM of features", "PCFG", "PCFG of rules"), SENTENCES),
    "GaussianHMM": VECTORS,
    "Annotators": VOTES,
    "SenseInducer": BANKS,
}


def wrong_answers(model: Any, name: str) -> list[str]:
    """What is wrong with what a model says of data like its own."""
    data = DATA.get(name, COUNTS)
    if name == "Translator":
        model.explain("the book")
    if hasattr(model, "generate") and name not in ALIGNED and name != "LanguageModel":
        model.generate(2)
    if not hasattr(model, "predict_proba") or name in ALIGNED:
        return []
    answers = model.predict_proba(data)
    each = [answers] if isinstance(answers, np.ndarray) else [a for a in answers if len(a)]
    sums = np.concatenate([np.asarray(one, dtype=float).sum(axis=-1) for one in each])
    # a sequence that cannot come about has no states; its shares are all zero
    good = np.isclose(sums, 1.0) | ((sums == 0.0) if name == "GaussianHMM" else False)
    return [] if good.all() else [f"shares add up to {sums}"]


def _numbers_in(facts: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(facts, dict):
        for name, fact in facts.items():
            yield from _numbers_in(fact, (*path, name))
    elif isinstance(facts, int | float) and not isinstance(facts, bool):
        yield path


def forged(stored: store.Stored) -> Iterator[tuple[str, store.Stored]]:
    """The file with one number changed, or all of one array."""
    for path in _numbers_in(stored.meta):
        for value in WHOLE:
            meta: Any = copy.deepcopy(stored.meta)
            facts = meta
            for name in path[:-1]:
                facts = facts[name]
            facts[path[-1]] = value
            what = f"{path[-1]}={told(value)}"
            yield what, store.Stored(stored.kind, stored.arrays, meta, stored.signature)
    for name, array in stored.arrays.items():
        if array.dtype.kind != "f" or not array.size:
            continue
        for value in (0.0, 5e-324, 1e-300, 1e12, 1e100, 1e155, 1e300, -1.0):
            for where in (slice(1), slice(None)):
                other = np.array(array)
                with np.errstate(over="ignore"):
                    other.reshape(-1)[where] = value
                arrays = {**stored.arrays, name: other}
                what = f"{name}[{where.stop}]={value}"
                yield what, store.Stored(stored.kind, arrays, stored.meta, stored.signature)


SAVED = [name for name, case in CASES.items() if hasattr(case.kind or case.make, "save")]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name for name in SAVED if name != "StoryModel"])
def test_forged_files(name: str, tmp_path: Path) -> None:
    model, faults = CASES[name].learned(), []
    model.save(tmp_path / "m")
    stored = store.read(tmp_path / "m")
    assert wrong_answers(type(model).restore(stored), name) == []
    for what, other in forged(stored):

        def attempt(other: store.Stored = other) -> list[str]:
            return wrong_answers(type(model).restore(other), name)

        faults += [f"{what}: {fault}" for fault in faults_of(attempt)]
    assert faults == []


def test_a_model_file_whose_points_are_out_of_bounds_is_refused(tmp_path: Path) -> None:
    sc.KMeans(2).fit(POINTS).save(tmp_path / "m")
    stored = store.read(tmp_path / "m")
    arrays = {**stored.arrays, "offset": np.full(2, 1e155)}
    with pytest.raises(sc.errors.StoreError, match=r"'offset' holds 1e\+155, beyond 1e\+50"):
        sc.KMeans.restore(store.Stored(stored.kind, arrays, stored.meta, stored.signature))


# commands
@pytest.mark.parametrize("number", ["1e400", "1e60", "nan", "9" * 400])
def test_points_in_files(points: Path, number: str) -> None:
    points.write_text(points.read_text() + f"{number} 1\n")
    result = run("cluster", points, "-k", "2", "--model", "kmeans")
    assert result.exit_code == 1
    assert "not a number" in result.stderr or "beyond 1e+50" in result.stderr


@pytest.mark.parametrize("k", [10**7, 10**12, 10**30])
def test_classes_by_the_command(texts: Path, k: int) -> None:
    result = run("cluster", texts, "-k", str(k))
    assert result.exit_code == 1
    assert f"must be a whole number, at most {bounds.MAX_CLASSES}" in result.stderr
