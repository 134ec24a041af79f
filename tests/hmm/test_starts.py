"""Where learning begins: what tags and a dictionary say, or a start of one's own."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import LearnerError, StartError
from softcount.hmm import starts
from tests.hmm.text import SENTENCES, TAGS, assert_same, orders, stops

LETTERS = [["x", "y", "z"], ["y", "x"], ["z"], []]
STATES = range(3)
KNOWN: list[Any] = [[{"0", "1"}, "2", None], None, [{"1", "2"}], None]
"""Of the first sentence and the third something is known, of the second nothing."""
ALLOWED = {0: [{0, 1}, {2}, {0, 1, 2}], 2: [{1, 2}]}


class NoNoise:
    """Random numbers that are none: every factor is one."""

    def uniform(self, low: float, high: float, shape: tuple[int, ...]) -> Any:
        assert (low, high) == (0.9, 1.1)
        return np.ones(shape)


def counted(order: int, stop: bool) -> dict[str, Any]:
    """Counts of all sequences of states that are possible, each of them as likely as the others."""
    counts = {
        "start": np.zeros((1, 3)),
        "second": np.zeros((3, 3 + stop)),
        "transitions": np.zeros((3**order, 3 + stop)),
        "emissions": np.zeros((3, 3)),
    }
    for number, allowed in ALLOWED.items():
        paths = list(product(*allowed))
        for path in paths:
            one = 1.0 / len(paths)
            counts["start"][0, path[0]] += one
            for word, state in zip(LETTERS[number], path, strict=True):
                counts["emissions"][state, "xyz".index(word)] += one
            for i, after in enumerate([*path[1:], 3]):
                if after == 3 and not stop:
                    continue
                if order == 1:
                    counts["transitions"][path[i], after] += one
                elif i == 0:
                    counts["second"][path[0], after] += one
                else:
                    counts["transitions"][3 * path[i - 1] + path[i], after] += one
    return counts if order == 2 else {n: c for n, c in counts.items() if n != "second"}


def loosened(name: str, counts: Any) -> Any:
    """A tenth of each row, and one, for what was not seen: words by their frequency."""
    often = np.array([2.0, 2.0, 2.0]) if name == "emissions" else np.ones(counts.shape[1])
    extra = 0.1 * counts.sum(axis=1, keepdims=True) + 1.0
    rows = counts + extra * often / often.sum()
    shares = rows / rows.sum(axis=1, keepdims=True)
    return (1e6 * shares + 1.0) / (1e6 + shares.shape[1])  # a flat prior beside a million


@orders
@stops
def test_what_is_known_is_counted(order: int, stop: bool) -> None:
    core, corpus = sc.HMM(3, order=order, stop=stop)._bind(LETTERS, KNOWN)
    often = np.array([2, 2, 2])
    found = starts.count_supervision(core, corpus, often, NoNoise())  # type: ignore[arg-type]
    expected = counted(order, stop)
    assert found.keys() == expected.keys()
    for name, counts in expected.items():
        np.testing.assert_allclose(found[name], loosened(name, counts), rtol=1e-12, err_msg=name)


def test_words_that_nothing_is_known_of_begin_by_their_frequency() -> None:
    sentences = [["x"], ["y", "y", "y", "z"]]
    core, corpus = sc.HMM(2)._bind(sentences, [["0"], None])
    found = starts.count_supervision(core, corpus, np.array([1, 3, 1]), NoNoise())  # type: ignore[arg-type]
    # of state 1 there is nothing, of state 0 one x: 1.1 is shared by frequency
    expected = [np.array([1 + 1.1 * 0.2, 1.1 * 0.6, 1.1 * 0.2]) / 2.1, np.array([0.2, 0.6, 0.2])]
    np.testing.assert_allclose(found["emissions"], expected, rtol=1e-5)


def test_random_numbers_move_a_start_by_a_tenth() -> None:
    core, corpus = sc.HMM(3)._bind(LETTERS, KNOWN)
    often = np.array([2, 2, 2])
    still = starts.count_supervision(core, corpus, often, NoNoise())  # type: ignore[arg-type]
    moved = [
        starts.count_supervision(core, corpus, often, np.random.default_rng(n)) for n in range(20)
    ]
    for name, table in still.items():
        ratios = np.array([one[name] / table for one in moved])
        assert 0.9 / 1.1 - 1e-4 < ratios.min() < 0.95 < 1.05 < ratios.max() < 1.1 / 0.9 + 1e-4
        np.testing.assert_allclose([one[name].sum(axis=1) for one in moved], 1.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_fit_begins_there(seed: int) -> None:
    model = sc.HMM(3, random_state=seed, learner=sc.EM(max_iter=1))
    begun = model.fit(LETTERS, KNOWN, keep_params=True).trace_[0].params
    for name, counts in counted(1, True).items():
        ratios = begun[name] / loosened(name, counts)
        assert 0.8 < ratios.min() < 1.0 < ratios.max() < 1.25


# A start of one's own: some tables, some words, some centres; and what cannot be meant.


WEEKS = ["3 3 2 2 3 3 1", "2 3 3 1 2 1 1", "1 1 1 2 1 1 3"]
GUESS = {
    "start": [[0.5, 0.5]],
    "transitions": [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]],
    "emissions": [[0.1, 0.3, 0.6], [0.6, 0.3, 0.1]],
}
ONE_STEP = sc.EM(max_iter=1)


def begun(model: Any, *data: Any) -> Any:
    """The tables before the first step."""
    return model.fit(*data, keep_params=True).trace_[0].params


# tables
@orders
@pytest.mark.parametrize("name", ["start", "transitions", "emissions"])
def test_other_tables_begin_as_usual(name: str, order: int) -> None:
    how = {"order": order, "learner": ONE_STEP, "random_state": 7}
    usual = begun(sc.HMM(3, **how), SENTENCES)
    table = np.random.default_rng(0).dirichlet(np.ones(usual[name].shape[1]), len(usual[name]))
    own = begun(sc.HMM(3, init={name: table}, **how), SENTENCES)
    assert_same(own, {**usual, name: table})


def test_other_tables_begin_with_what_tags_say() -> None:
    usual = begun(sc.HMM(learner=ONE_STEP), SENTENCES, TAGS)
    own = begun(sc.HMM(learner=ONE_STEP, init={"start": [[0.2, 0.3, 0.5]]}), SENTENCES, TAGS)
    assert_same(own, {**usual, "start": np.array([[0.2, 0.3, 0.5]])})


def test_runs_differ_where_something_is_left_to_chance() -> None:
    several = sc.EM(max_iter=2, n_init=2)
    sc.HMM(2, learner=several, init={"start": GUESS["start"]}).fit(WEEKS)
    with pytest.raises(LearnerError, match="the same"):
        sc.HMM(2, learner=several, init=GUESS).fit(WEEKS)


def test_the_column_of_the_end() -> None:
    without = [[0.7, 0.3], [0.3, 0.7]]
    with pytest.raises(StartError, match=r"transitions(.|\n)*add a column for the end"):
        sc.HMM(2, init={"transitions": without}).fit(WEEKS)
    with pytest.raises(StartError, match=r"second(.|\n)*add a column for the end"):
        sc.HMM(2, order=2, init={"second": without}).fit(WEEKS)
    with pytest.raises(StartError, match=r"transitions(.|\n)*omit the column for the end"):
        sc.HMM(2, stop=False, init={"transitions": GUESS["transitions"]}).fit(WEEKS)
    sc.HMM(2, stop=False, init={"transitions": without}).fit(WEEKS)


# words
def test_words_of_states() -> None:
    given = {"cold": {"1": 0.6, "2": 0.2}, "hot": {"3": 1.0}}
    names = ["cold", "hot", "wet"]
    found = begun(sc.HMM(open_tags=names, init={"emissions": given}, learner=ONE_STEP), WEEKS)
    third = 1.0 / 3.0  # words are 3, 2, 1; nothing is said of wet
    expected = [[0.2, 0.2, 0.6], [1.0, 0.0, 0.0], [third, third, third]]
    np.testing.assert_allclose(found["emissions"], expected)


def test_states_by_number() -> None:
    found = begun(sc.HMM(2, init={"emissions": {1: {"3": 0.8}}}, learner=ONE_STEP), WEEKS)
    np.testing.assert_allclose(found["emissions"], [[1 / 3, 1 / 3, 1 / 3], [0.8, 0.1, 0.1]])


def test_words_with_a_number_for_each_state() -> None:
    given = {"3": [0.1, 0.6], "1": np.array([0.5, 0.1])}
    found = begun(sc.HMM(2, init={"emissions": given}, learner=ONE_STEP), WEEKS)
    np.testing.assert_allclose(found["emissions"], [[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]])


def test_what_is_left_is_not_for_words_that_a_state_never_has() -> None:
    never = [[True, False, False], [False, False, False]]  # state 0 has no 3
    how: dict[str, Any] = {"zero": {"emissions": never}, "learner": ONE_STEP}
    found = begun(sc.HMM(2, init={"emissions": {0: {"1": 0.6}}}, **how), WEEKS)
    np.testing.assert_allclose(found["emissions"], [[0.0, 0.4, 0.6], [1 / 3, 1 / 3, 1 / 3]])


def test_words_in_lower_case() -> None:
    given = {"emissions": {0: {"The": 0.25, "the": 0.25}}}
    model = sc.HMM(2, lowercase=True, init=given, learner=ONE_STEP)
    np.testing.assert_allclose(begun(model, ["THE dog"])["emissions"][0], [0.5, 0.5])


BAD: dict[str, tuple[dict[Any, Any], str]] = {
    "a word of no sentence": ({0: {"4": 0.5}}, "'4'"),
    "a word that is none": ({0: {3: 0.5}}, "3, which"),
    "a state that is none": ({2: {"3": 0.5}}, "state 2"),
    "inside out": ({"3": {0: 0.5}}, "state '3'"),
    "too few states": ({"3": [0.5]}, "2 states"),
    "less than nothing": ({0: {"3": -0.5}}, "-0.5"),
    "no number": ({0: {"3": np.nan}}, "nan"),
    "text": ({0: {"3": "often"}}, "often"),
    "one number": ({"3": 0.5}, "0.5"),
    "nothing left for a word": ({0: {"3": 1.0}, 1: {"3": 0.5, "2": 0.5}}, "no mass for '1'"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_words_are_named(what: str) -> None:
    given, named = BAD[what]
    with pytest.raises(StartError, match=named):
        sc.HMM(2, init={"emissions": given}).fit(WEEKS)


def test_features_do_not_begin_with_words() -> None:
    with pytest.raises(StartError, match="weights"):
        sc.HMM(2, emissions="features", init={"emissions": {0: {"3": 0.5}}}).fit(WEEKS)


# rows that stay
def test_a_frozen_row_with_something_where_zero_is_for_good() -> None:
    never = [[False, False, False], [False, False, True]]
    zero = {"transitions": never}
    with pytest.raises(StartError, match=r"row 1 of 'transitions'.*0\.1 in column 2"):
        sc.HMM(2, init=GUESS, zero=zero, frozen={"transitions": [1]}).fit(WEEKS)
    other = sc.HMM(2, init=GUESS, zero=zero, frozen={"transitions": [0]}).fit(WEEKS)
    assert other.params_["transitions"][0].tolist() == [0.7, 0.2, 0.1]
    good = {**GUESS, "transitions": [[0.7, 0.2, 0.1], [0.2, 0.8, 0.0]]}
    held = sc.HMM(2, init=good, zero=zero, frozen=["transitions"]).fit(WEEKS)
    assert held.params_["transitions"].tolist() == good["transitions"]


def test_a_frozen_row_that_sums_to_more_than_one() -> None:
    weights = {**GUESS, "emissions": [[0.1, 0.3, 0.6], [6.0, 3.0, 1.0]]}
    with pytest.raises(StartError, match=r"row 1 of 'emissions'.*sums to 10"):
        sc.HMM(2, init=weights, frozen=["emissions"]).fit(WEEKS)
    sc.HMM(2, init=weights, frozen={"emissions": [0]}).fit(WEEKS)


@pytest.mark.parametrize(
    "rows", [[True, False], [0], np.array([0]), ["cold"], "cold", {"cold"}, np.array([True, False])]
)
def test_rows_by_truth_number_and_name(rows: Any) -> None:
    how = {"open_tags": ["cold", "hot"], "init": GUESS}
    found = sc.HMM(frozen={"transitions": rows}, **how).fit(WEEKS).params_["transitions"]
    assert found[0].tolist() == GUESS["transitions"][0]
    assert found[1].tolist() != GUESS["transitions"][1]


@pytest.mark.parametrize("rows", [[2], [("hot", "cold")], [["hot", "cold"]], [(1, 0)]])
def test_rows_of_two_states(rows: Any) -> None:
    moves = np.random.default_rng(1).dirichlet(np.ones(3), 4)
    how: dict[str, Any] = {"open_tags": ["cold", "hot"], "order": 2, "init": {"transitions": moves}}
    found = sc.HMM(frozen={"transitions": rows}, **how).fit(WEEKS).params_["transitions"]
    assert (found == moves).all(axis=1).tolist() == [False, False, True, False]


def test_no_row_stays() -> None:
    usual = sc.HMM(2, init=GUESS).fit(WEEKS).params_
    for nothing in ({"emissions": []}, {"emissions": False}, []):
        assert_same(sc.HMM(2, init=GUESS, frozen=nothing).fit(WEEKS).params_, usual)


def test_frozen_names_are_kept_in_files(tmp_path: Any) -> None:
    model = sc.HMM(order=2, open_tags=["cold", "hot"], frozen={"transitions": [("hot", "cold")]})
    model.fit(WEEKS).save(tmp_path / "model")
    again = sc.load(tmp_path / "model")
    assert again.core_.families["transitions"].held_rows.tolist() == [False, False, True, False]


# vectors
def walks() -> list[Any]:
    """Thrice from 0 to 9, three steps each."""
    rng = np.random.default_rng(0)
    return [rng.normal([[0.0, 5.0]] * 3 + [[9.0, 5.0]] * 3) for _ in range(3)]


@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
def test_centres(covariance: str) -> None:
    data, means = walks(), np.array([[8.0, 5.0], [1.0, 5.0]])
    model = sc.GaussianHMM(2, covariance=covariance, init={"means": means}, learner=ONE_STEP)
    found = begun(model, data)
    np.testing.assert_allclose(found["emissions"][:, :2] + model._offset, means)
    # state 0 is at 9, where walks end; each move is counted, and one for each that might be
    np.testing.assert_allclose(found["start"], [[1 / 5, 4 / 5]])
    np.testing.assert_allclose(
        found["transitions"], [[7 / 12, 1 / 12, 4 / 12], [4 / 12, 7 / 12, 1 / 12]]
    )
    apart = [walk - means[[1, 1, 1, 0, 0, 0]] for walk in data]
    spread = np.cov(np.concatenate(apart).T, bias=True)
    wanted = {
        "full": np.array([spread] * 2),
        "tied": np.array([spread] * 2),
        "diag": np.array([spread.diagonal()] * 2),
        "spherical": np.array([spread.diagonal().mean()] * 2),
    }
    made = model._family.covariances(found["emissions"])
    np.testing.assert_allclose(made, wanted[covariance])
    assert model.predict(data)[0] == [1, 1, 1, 0, 0, 0]


def test_centres_and_covariances() -> None:
    means, spreads = [[8.0, 5.0], [1.0, 5.0]], [[1.0, 2.0], [3.0, 4.0]]
    init = {"means": means, "covariances": spreads, "start": [[0.3, 0.7]]}
    model = sc.GaussianHMM(2, covariance="diag", init=init, learner=ONE_STEP)
    found = begun(model, walks())
    np.testing.assert_allclose(model._family.covariances(found["emissions"]), spreads)
    assert found["start"].tolist() == [[0.3, 0.7]]


def test_moves_alone_and_centres_by_chance() -> None:
    moves = np.array([[0.5, 0.3, 0.2], [0.1, 0.7, 0.2]])
    usual = begun(sc.GaussianHMM(2, learner=ONE_STEP), walks())
    found = begun(sc.GaussianHMM(2, init={"transitions": moves}, learner=ONE_STEP), walks())
    assert_same(found, {**usual, "transitions": moves})


def test_what_was_learned_is_a_start() -> None:
    model = sc.GaussianHMM(2).fit(walks())
    assert_same(begun(sc.GaussianHMM(2, init=model.params_), walks()), model.params_)


@pytest.mark.parametrize(
    ("init", "named"),
    [
        ({"means": [[0.0, 1.0]]}, "means"),
        ({"means": [[0.0, 1.0], [0.0, np.nan]]}, "means"),
        ({"means": "far"}, "means"),
        ({"covariances": np.ones((2, 2, 2))}, "give means"),
        ({"means": np.eye(2), "emissions": np.eye(2)}, "give means"),
        ({"means": np.eye(2), "covariances": np.ones((2, 2))}, "covariances"),
        ({"means": np.eye(2), "moves": np.eye(2)}, "moves"),
        ({"means": np.eye(2), "transitions": np.eye(2)}, "column for the end"),
        ({"means": np.eye(2), "covariances": -np.array([np.eye(2)] * 2)}, "positive definite"),
        ({}, "no table"),
    ],
)
def test_bad_starts_of_vectors(init: Any, named: str) -> None:
    with pytest.raises(StartError, match=named):
        sc.GaussianHMM(2, init=init).fit(walks())


@pytest.mark.parametrize("what", ["frozen", "zero", "tied"])
def test_gaussians_cannot_be_fixed(what: str) -> None:
    with pytest.raises(LearnerError, match="Gaussians"):
        sc.GaussianHMM(2, **{what: {"emissions": [True, True]}}).fit(walks())
