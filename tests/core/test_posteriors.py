"""The E-step and the M-step by themselves, for every kind of model."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.display import Grid, MissingPackage, NamedArray, NamedTables, format_column
from softcount.core.errors import DataError, LearnerError, MissingEntry
from softcount.stories import StoryModel
from tests.oracles import stories

ONE = sc.EM(max_iter=1, tol=0)
TEXTS = ["a b a c", "b b c", "d e d", "e d d a"]
SENTENCES = ["the dog barks", "a cat sleeps", "the cat barks", "a dog sleeps"]
PAIRS = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
POINTS = [[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9]]
VOTES = [
    ("s1", "ann", "yes"),
    ("s1", "bob", "yes"),
    ("s1", "eve", "no"),
    ("s2", "ann", "no"),
    ("s2", "eve", "yes"),
]
RULES = "S -> A A [0.6] | A S [0.4]\nA -> 'a' [0.7] | 'b' [0.3]"

MODELS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "documents": (sc.MultinomialMixture(2, smoothing=0.1, init="random", learner=ONE), TEXTS, {}),
    "bernoulli": (
        sc.MultinomialMixture(2, bernoulli=True, init="random", learner=ONE),
        TEXTS,
        {},
    ),
    "points": (sc.GaussianMixture(2, learner=ONE), POINTS, {}),
    "k-means": (sc.KMeans(2, learner=sc.HardEM(max_iter=1, tol=0)), POINTS, {}),
    "naive bayes": (sc.NaiveBayes(learner=ONE), TEXTS, {"y": ["x", None, "y", None]}),
    "annotators": (sc.Annotators(learner=ONE), VOTES, {}),
    "plsa": (sc.PLSA(2, init="random", short_runs=0, learner=ONE), TEXTS, {}),
    "hmm": (sc.HMM(2, learner=ONE), SENTENCES, {}),
    "hmm 2": (sc.HMM(2, order=2, learner=ONE), SENTENCES, {}),
    "ibm1": (sc.align.IBM1(learner=ONE), PAIRS, {}),
    "ibm2": (sc.align.IBM2(warm_up=0, learner=ONE), PAIRS, {}),
    "aligner": (sc.align.HMMAligner(warm_up=0, learner=ONE), PAIRS, {}),
    "rules": (sc.PCFG(rules=RULES, learner=ONE), ["a b a", "b b", "a a a a"], {}),
    "grammar": (sc.PCFG(2, 2, learner=ONE), SENTENCES, {}),
    "story": (StoryModel(stories.coins(sc.table, sc.story), learner=ONE), ["HHT", "TTT"], {}),
}


def arrays(params: Any) -> list[np.ndarray]:
    """Parameters as flat arrays, whatever form they have."""
    if isinstance(params, dict) or hasattr(params, "items"):
        return [each for key in sorted(params, key=str) for each in arrays(params[key])]
    return [np.asarray(params, dtype=float).reshape(-1)]


@pytest.mark.parametrize("name", MODELS)
def test_half_steps_by_turns_are_the_steps_of_a_fit(name: str) -> None:
    fitted, data, known = MODELS[name]
    fitted.fit(data, **known, keep_posteriors=True)
    start = fitted.trace_.params[0]
    posteriors = fitted.e_step(data, start, **known)
    assert posteriors.log_likelihood == pytest.approx(fitted.trace_[0].log_likelihood, rel=1e-12)
    np.testing.assert_array_equal(posteriors.values, fitted.trace_.posteriors[0].values)
    assert posteriors.columns == fitted.trace_.posteriors[0].columns
    made = fitted.m_step(data, posteriors, **known)
    for found, expected in zip(arrays(made), arrays(fitted.params_), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


LINEAR = [
    "documents",
    "bernoulli",
    "points",
    "k-means",
    "naive bayes",
    "annotators",
    "plsa",
    "ibm1",
    "story",
]


@pytest.mark.parametrize("name", LINEAR)
def test_an_m_step_takes_plain_arrays_where_they_say_enough(name: str) -> None:
    model, data, known = MODELS[name]
    model.fit(data, **known)
    posteriors = model.e_step(data, **known)
    whole = model.m_step(data, posteriors, **known)
    by_values = model.m_step(data, posteriors.replaced(posteriors.values), **known)
    for found, expected in zip(arrays(by_values), arrays(whole), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["hmm", "ibm2", "aligner", "rules"])
def test_an_m_step_refuses_arrays_that_do_not_say_enough(name: str) -> None:
    model, data, _ = MODELS[name]
    posteriors = model.fit(data).e_step(data)
    with pytest.raises(LearnerError, match="do not follow from these posteriors"):
        model.m_step(data, np.array(posteriors))


def test_posteriors_of_words_are_those_of_hofmann() -> None:
    """P(z | d, w) = P(z | d) P(w | z) / Σ, written out."""
    topics = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    documents = np.array([[0.9, 0.1], [0.25, 0.75]])
    X = np.array([[2, 0, 1], [1, 1, 1]])
    found = sc.PLSA(2).e_step(X, {"topics": topics, "documents": documents})
    expected = []
    for d, w in [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]:
        joint = [documents[d, k] * topics[k, w] for k in range(2)]
        expected.append([p / sum(joint) for p in joint])
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    assert found.index == {"document": [0, 0, 1, 1, 1], "word": [0, 2, 0, 1, 2]}
    assert found.weights is not None
    assert found.weights.tolist() == [2, 1, 1, 1, 1]
    made = sc.PLSA(2).m_step(X, found)
    weighted = np.array(expected) * found.weights[:, None]
    rows = np.array([weighted[:2].sum(axis=0), weighted[2:].sum(axis=0)]) / 3.0
    np.testing.assert_allclose(made["documents"], rows, rtol=1e-12)


def test_posteriors_of_states_are_those_of_enumeration() -> None:
    rng = np.random.default_rng(0)
    words = ["x", "y"]
    start, emissions = rng.dirichlet([1, 1], 1), rng.dirichlet([1, 1], 2)
    transitions = rng.dirichlet([1, 1, 1], 2)
    tables = {"start": start, "transitions": transitions, "emissions": emissions}
    sentence = ["x", "y", "y"]
    found = sc.HMM(2).e_step([sentence, ["y"]], tables)
    joint = np.zeros((3, 2))
    for path in itertools.product(range(2), repeat=3):
        p = start[0, path[0]] * transitions[path[-1], 2]
        p *= math.prod(transitions[a, b] for a, b in itertools.pairwise(path))
        p *= math.prod(emissions[k, words.index(w)] for k, w in zip(path, sentence, strict=True))
        for i, k in enumerate(path):
            joint[i, k] += p
    np.testing.assert_allclose(
        found.item(0).values, joint / joint.sum(axis=1, keepdims=True), rtol=1e-12
    )
    assert found.index["word"] == ["x", "y", "y", "y"]


def test_hard_learners_have_hard_posteriors() -> None:
    model = sc.HMM(2, learner="hard-em").fit(SENTENCES)
    values = model.e_step(SENTENCES).values
    assert set(np.unique(values)) == {0.0, 1.0}
    assert [row.argmax() for row in values[:3]] == model.predict(SENTENCES)[0]


def test_known_labels_hold_in_the_e_step_of_the_training_data() -> None:
    model, known = sc.NaiveBayes(), ["x", None, "y", None]
    model.fit(TEXTS, known)
    told = model.e_step(TEXTS, y=known)
    assert told["x"][[0, 2]].tolist() == [1.0, 0.0]
    assert 0.0 < model.e_step(TEXTS)["x"][0] < 1.0
    np.testing.assert_allclose(told.values[[1, 3]], model.predict_proba(TEXTS)[[1, 3]])


def test_stories_with_many_derivations_are_laid_out_by_events() -> None:
    ibm1 = StoryModel(stories.ibm1(sc.table, sc.story))
    few = [(["three", "rabbits"], ["trois", "lapins"])]
    found = ibm1.e_step(few, "uniform")
    assert found.columns[1] == ("three", "rabbits")
    assert found.values.tolist() == [[0.25] * 4]
    many = [(list("abcdef"), list("uvwxyz"))]
    events = ibm1.e_step(many, "uniform")
    assert events.of == "event"
    assert events.values.sum() == pytest.approx(6.0)
    with pytest.raises(LearnerError, match="more than"):
        ibm1.e_step(many, "uniform", by="derivations")


@pytest.mark.parametrize("name", ["documents", "plsa", "ibm1", "ibm2"])
def test_draws_approach_the_posteriors(name: str) -> None:
    model, data, _ = MODELS[name]
    posteriors = model.fit(data).e_step(data)
    draws = model.sample_hidden(data, 4000, random_state=1)
    weights = np.ones(len(posteriors)) if posteriors.weights is None else posteriors.weights
    assert draws.numbers.shape == (4000, int(weights.sum()))
    error = np.nan_to_num(draws.frequencies().values - posteriors.values)
    assert np.abs(error).max() < 0.04
    assert len(draws.best) == int(weights.sum())
    again = model.sample_hidden(data, 4000, random_state=1)
    np.testing.assert_array_equal(draws.numbers, again.numbers)


def test_the_best_draw_has_the_largest_joint_probability() -> None:
    start = {"weights": [0.4, 0.6], "words": [[0.8, 0.2], [0.3, 0.7]]}
    X = [[2, 1], [0, 2], [3, 0]]
    draws = sc.MultinomialMixture(2, smoothing=0).sample_hidden(X, 50, params=start)
    for classes, log_joint in zip(draws.numbers, draws.log_joint, strict=True):
        expected = sum(
            math.log(start["weights"][k])  # type: ignore[arg-type]
            + sum(n * math.log(p) for n, p in zip(row, start["words"][k], strict=True))  # type: ignore[arg-type]
            for k, row in zip(classes.tolist(), X, strict=True)
        )
        assert log_joint == pytest.approx(expected, rel=1e-12)
    assert draws.best == draws[int(np.argmax(draws.log_joint))]


@pytest.mark.parametrize("name", ["hmm", "aligner"])
def test_chains_are_drawn_whole(name: str) -> None:
    model, data, _ = MODELS[name]
    draws = model.fit(data).sample_hidden(data, 1500, random_state=1)
    error = np.nan_to_num(draws.frequencies().values - draws.posteriors.values)
    assert np.abs(error).max() < 0.06


def test_the_joint_probability_of_a_drawn_path_is_its_product() -> None:
    model = sc.HMM(2, learner=ONE).fit(SENTENCES)
    start, transitions, emissions = (
        np.asarray(model.params_[name]) for name in ("start", "transitions", "emissions")
    )
    draws, words = model.sample_hidden(SENTENCES, 5), model.words_
    for drawn, log_joint in zip(draws.numbers, draws.log_joint, strict=True):
        total, paths = 0.0, drawn.reshape(4, 3).tolist()
        for path, sentence in zip(paths, SENTENCES, strict=True):
            total += math.log(start[0, path[0]]) + math.log(transitions[path[-1], 2])
            total += sum(math.log(transitions[a, b]) for a, b in itertools.pairwise(path))
            pairs = zip(path, sentence.split(), strict=True)
            total += sum(math.log(emissions[k, words.index(w)]) for k, w in pairs)
        assert log_joint == pytest.approx(total, rel=1e-10)


def test_spans_are_not_drawn_one_by_one() -> None:
    model, data, _ = MODELS["rules"]
    with pytest.raises(LearnerError, match="depend on each other"):
        model.fit(data).sample_hidden(data)


def test_an_e_step_needs_parameters_and_names_what_is_wrong() -> None:
    from sklearn.exceptions import NotFittedError

    model = sc.MultinomialMixture(2)
    with pytest.raises(NotFittedError):
        model.e_step(TEXTS)
    posteriors = model.fit(TEXTS).e_step(TEXTS)
    with pytest.raises(MissingEntry, match="no class is called 7"):
        posteriors[7]
    with pytest.raises(DataError, match="shape"):
        model.m_step(TEXTS, posteriors.values[:2])
    with pytest.raises(DataError, match="row 1 "):
        model.m_step(TEXTS, posteriors.values * [[1], [3], [1], [1]])
    with pytest.raises(LearnerError, match="two models"):
        sc.Aligner().fit(PAIRS).e_step(PAIRS)
    with pytest.raises(LearnerError, match="two models"):
        sc.Aligner().fit(PAIRS, keep_posteriors=True)


# how they print


def test_tables_keep_one_order_of_columns_for_all_rows() -> None:
    model = StoryModel(stories.coins(sc.table, sc.story), learner=ONE)
    start = {
        "which": {"A": 0.3, "B": 0.7},
        "flip": {"A": {"H": 0.3, "T": 0.7}, "B": {"H": 0.6, "T": 0.4}},
    }
    model.fit(["HHH", "TTT"], init=start)
    lines = repr(model.params_["flip"]).splitlines()
    assert lines[1].split() == ["H", "T"]
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    for coin in "AB":
        row = model.params_["flip"][coin]
        assert rows[coin] == [f"{row['H']:.4f}", f"{row['T']:.4f}"]


def test_posteriors_print_as_text_and_as_html() -> None:
    model = sc.Annotators().fit(VOTES)
    posteriors = model.e_step(VOTES)
    assert repr(posteriors).splitlines()[0].split() == ["item", "no", "yes"]
    assert repr(posteriors).splitlines()[1].split()[0] == "s1"
    assert "<th>s1</th><td>" in posteriors._repr_html_()
    evil = [("<b>", "ann", "yes"), ("<b>", "bob", "no")]
    assert "<b>" not in sc.Annotators().fit(evil).e_step(evil)._repr_html_()


def test_long_and_wide_tables_are_cut_in_the_middle() -> None:
    cells = np.arange(100.0 * 60).reshape(100, 60).tolist()
    lines = str(Grid(list(range(60)), cells)).splitlines()
    assert len(lines) == 41
    assert "…" in lines[0]
    assert lines[-6].strip().startswith("…")
    assert lines[-1].split()[-1] == "5,999.00" or lines[-1].split()[-1].startswith("5999")


def test_numbers_of_a_column_have_the_same_digits() -> None:
    assert format_column([0.25, float("nan"), 1.0, -0.0]) == ["0.2500", "", "1.0000", "0.0000"]
    assert format_column([3, None]) == ["3", ""]


def test_parameters_have_names_and_are_taken_back() -> None:
    model = sc.HMM(2).fit(SENTENCES)
    tables = model.params_
    assert isinstance(tables, NamedTables)
    table = tables["transitions"]
    assert table[0].tolist() == model.raw_params_["transitions"][0].tolist()
    assert type(table * 2.0) is np.ndarray
    assert type(table.sum()) is not NamedArray
    again = pickle.loads(pickle.dumps(tables))
    np.testing.assert_array_equal(again["transitions"], table)
    assert repr(again) == repr(tables)
    other = sc.HMM(2, learner=ONE).fit(SENTENCES, init=tables, keep_params=True)
    np.testing.assert_array_equal(other.trace_.params[0]["transitions"], table)
    tagged = sc.HMM().fit(["the dog barks"], [["DET", "NOUN", "VERB"]])
    assert tagged.params_["transitions"]["DET", "NOUN"] == pytest.approx(1.0)
    assert tagged.params_["emissions"]["NOUN", "dog"] == pytest.approx(1.0)
    with pytest.raises(KeyError, match="ADJ"):
        tagged.params_["emissions"]["ADJ", "dog"]
    positions = sc.align.IBM2().fit(PAIRS).params_["places"]
    assert positions["d(0 | 0, l=2, m=2)"] == positions[0]


def test_data_frames_need_pandas() -> None:
    posteriors = sc.Annotators().fit(VOTES).e_step(VOTES)
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        with pytest.raises(MissingPackage, match="pandas"):
            posteriors.to_frame()
        return
    frame = posteriors.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc["s1", "yes"] == posteriors["yes"][0]
    words = sc.HMM(2).fit(SENTENCES).e_step(SENTENCES).to_frame()
    assert words.index.names == ["sentence", "position", "word"]
