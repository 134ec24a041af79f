"""scikit-learn's contract, kept in one way by all estimators, and learners by name."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import (
    check_do_not_raise_errors_in_init_or_set_params,
    check_estimator_repr,
    check_estimator_tags_renamed,
    check_get_params_invariance,
    check_mixin_order,
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
    check_set_params,
    check_valid_tag_types,
)
from sklearn.utils.validation import check_is_fitted

import softcount as sc
from softcount.core.errors import LearnerError, ParameterError
from softcount.learners.named import BY_NAME
from softcount.learners.names import SHORT, LearnerName, make_learner

SENTENCES = ["the dog barks", "a cat sleeps", "the cat barks", "a dog sleeps"] * 3
PAIRS = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
VECTORS = [np.array([[0.0, 1.0], [2.0, 1.0], [0.5, 0.5]]) + n for n in range(4)]
which, flip = sc.table("which"), sc.table("flip")


@sc.story
def coins(tosses):
    for z in "AB":
        yield which[z], *(flip[z, x] for x in tosses)


ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "HMM": (sc.HMM(2, smoothing=0.1), SENTENCES),
    "GaussianHMM": (sc.GaussianHMM(2, smoothing=0.1), VECTORS),
    "PCFG": (sc.PCFG(2, 3, smoothing=0.1), SENTENCES),
    "IBM1": (sc.align.IBM1(), PAIRS),
    "IBM2": (sc.align.IBM2(), PAIRS),
    "Diagonal": (sc.align.Diagonal(), PAIRS),
    "HMMAligner": (sc.align.HMMAligner(), PAIRS),
    "Aligner": (sc.Aligner(), PAIRS),
    "GibbsAligner": (sc.align.GibbsAligner(), PAIRS),
    "StoryModel": (sc.StoryModel(coins), ["HHT", "TTH", "HHH"]),
    "MultinomialMixture": (sc.MultinomialMixture(2), SENTENCES),
    "LDA": (sc.LDA(2), SENTENCES),
    "Annotators": (sc.Annotators(), [(i, who, i % 2) for i in range(4) for who in "xyz"]),
}
BY_THE_LOOP = {name: made for name, made in ESTIMATORS.items() if name != "GibbsAligner"}
CHECKS = (
    check_estimator_repr,
    check_estimator_tags_renamed,
    check_get_params_invariance,
    check_mixin_order,
    check_no_attributes_set_in_init,
    check_set_params,
    check_valid_tag_types,
    check_do_not_raise_errors_in_init_or_set_params,
)
"""Of scikit-learn's own checks, those that ask nothing of the data: ours are no matrices."""


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learns_own_checks(name: str) -> None:
    model = ESTIMATORS[name][0]
    for check in CHECKS:
        check(name, clone(model))
    if name != "StoryModel":  # which cannot do without its story
        check_parameters_default_constructible(name, type(model)())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_clone_learns_the_same(name: str) -> None:
    model, data = ESTIMATORS[name]
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(model))
    first = clone(model).fit(data)
    check_is_fitted(first)
    again = clone(first)
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    again.fit(data)
    for table, values in first.raw_params_.items():
        assert np.asarray(values).tobytes() == np.asarray(again.raw_params_[table]).tobytes()


@pytest.mark.parametrize("name", BY_THE_LOOP)
def test_steps_may_be_given_to_the_estimator(name: str) -> None:
    model, data = BY_THE_LOOP[name]
    by_learner = clone(model).set_params(learner=sc.EM(max_iter=2, tol=0.0)).fit(data)
    direct = clone(model).set_params(learner="em", max_iter=2, tol=0.0).fit(data)
    nested = clone(model).set_params(learner__max_iter=2, learner__tol=0.0).fit(data)
    expected = by_learner.trace_.objective.tolist()
    assert len(expected) == 3
    assert direct.trace_.objective.tolist() == nested.trace_.objective.tolist() == expected


def test_restarts_may_be_given_to_the_estimator() -> None:
    model = sc.MultinomialMixture(2, init="random", n_init=3, max_iter=2).fit(SENTENCES)
    assert len(model.fit_.traces) == 3
    chains = sc.HMM(2, smoothing=0.1, learner="gibbs", n_init=2, max_iter=4).fit(SENTENCES)
    assert len(chains.fit_.traces) == 2


def test_a_search_goes_through_learners_hyperparameters() -> None:
    grid = {"learner__max_iter": [1, 4], "n_components": [2, 3]}
    search = GridSearchCV(sc.HMM(smoothing=0.1), grid, cv=2).fit(SENTENCES)
    assert search.best_estimator_._learner.max_iter == search.best_params_["learner__max_iter"]
    piped = Pipeline([("model", sc.HMM(2, smoothing=0.1))])
    piped.set_params(model__learner="vb", model__learner__max_iter=2).fit(SENTENCES)
    assert str(piped["model"].learner) == "VariationalBayes(max_iter=2, tol=1e-06)"


@pytest.mark.parametrize("name", [*LearnerName, *SHORT])
def test_every_learner_has_a_name(name: str) -> None:
    assert type(make_learner(name)) is BY_NAME[LearnerName(name)]


def test_unknown_learners_are_named() -> None:
    for learner in ("emm", 3, sc.EM):
        with pytest.raises(LearnerError, match="learner="):
            sc.HMM(2, learner=learner).fit(SENTENCES)


def test_a_learner_stays_as_it_is() -> None:
    learner = sc.EM(max_iter=3)
    assert learner.set_params(max_iter=5) == sc.EM(max_iter=5)
    assert learner.max_iter == 3
    assert clone(learner) is learner
    assert sc.Gibbs().get_params()["burn_in"] == 0.5
    with pytest.raises(ParameterError, match="'n_iter'"):
        learner.set_params(n_iter=3)


@pytest.mark.parametrize(
    ("kind", "name", "ours"),
    [
        (sc.HMM, "n_states", "n_components"),
        (sc.LDA, "n_topics", "n_components"),
        (sc.MultinomialMixture, "n_clusters", "n_components"),
        (sc.LDA, "passes", "max_iter"),
        (sc.LDA, "alpha", "smoothing"),
        (sc.KMeans, "n_jobs", "engine=Local"),
        (sc.GaussianMixture, "covariance_type", "covariance"),
        (sc.align.IBM1, "seed", "random_state"),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(kind: Any, name: str, ours: str) -> None:
    with pytest.raises(TypeError, match=ours):
        kind(**{name: 3})
    with pytest.raises(ValueError, match=ours):
        kind().set_params(**{name: 3})


@pytest.mark.parametrize(
    "code",
    [
        f"sc.HMM(2, max_iter=2).fit({SENTENCES}).predict({SENTENCES[:1]})",
        f"sc.PCFG(2, 3, max_iter=2).fit({SENTENCES}).predict({SENTENCES[:1]})",
        f"sc.Aligner(max_iter=2).fit({PAIRS}).align()",
    ],
    ids=["HMM", "PCFG", "Aligner"],
)
def test_learning_does_not_import_scikit_learn(code: str) -> None:
    script = f"import sys\nimport softcount as sc\n{code}\nprint('sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split()[-1] == "False"
