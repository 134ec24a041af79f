"""Which learners a model cannot be learned by; the first complaint is the last.

The lists are those of docs/learners.md ("What goes with what"). Every hint is followed: what it
names must work, and not lead to another complaint.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import softcount as sc
from softcount.core.errors import ImpossibleItem, LearnerError
from tests.core.estimators import DOCUMENTS, PAIRS, POINTS, SENTENCES, estimators, every_learner

EVERY = list(estimators(1.0))
LEARNERS = every_learner(sweeps=2)

SAMPLED = {
    "MultinomialMixture",
    "DirichletProcessMixture",
    "NaiveBayes",
    "SenseInducer",
    "LDA",
    "HMM",
    "HMM(order=2)",
    "PCFG",
    "PCFG(rules)",
}
"""What `CollapsedGibbs` is for."""

TEMPERED = {"LDA", "PLSA"}
SOLVED = {
    "MultinomialMixture",
    "DirichletProcessMixture",
    "SenseInducer",
    "HMM",
    "HMM(features)",
}
AVERAGING = {
    "VariationalBayes",
    "StochasticVB",
    "Gibbs",
    "CollapsedGibbs",
    "drawn by mini-batches",
}
NEEDING = set(EVERY) - {
    "GaussianMixture",
    "KMeans",
    "SoftKMeans",
    "DirichletProcessGaussianMixture",
    "StoryModel",
    "StoryModel(smoothing)",
}
"""What has no prior where smoothing is 0."""


def refused(model: str, learner: str, smoothed: bool) -> bool:
    """What the page says."""
    if learner == "CollapsedGibbs" and model not in SAMPLED:
        return True
    if learner == "TemperedEM" and model not in TEMPERED:
        return True
    if learner == "Spectral" and model not in SOLVED:
        return True
    if model == "PLSA" and learner in AVERAGING:
        return True
    averages = learner in AVERAGING or (learner == "usual" and model == "DirichletProcessMixture")
    return not smoothed and model in NEEDING and averages


def complaint(model: str, learner: Any, smoothing: float) -> LearnerError | None:
    made, data = estimators(smoothing)[model](learner)
    try:
        made.fit(*data)
    except LearnerError as error:
        return error
    except ImpossibleItem:
        assert smoothing == 0.0  # of the data, not of the learner
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("model", EVERY)
def test_refused_pairs_are_those_that_are_documented(model: str, smoothing: float) -> None:
    for name, learner in LEARNERS.items():
        error = complaint(model, learner, smoothing)
        assert (error is not None) == refused(model, name, smoothing > 0.0), (name, error)
        if error is None:
            continue
        assert model.split("(")[0] in error.message, error
        followed = set(re.findall(r"(\w+)\(\)", error.hint))
        assert followed or "give smoothing above 0" in error.hint, error
        for named in followed:
            more = 0.1 if "above 0" in error.hint and named != "EM" else smoothing
            again = complaint(model, getattr(sc, named)(max_iter=2), more)
            assert again is None, (name, error, named, again)
        if "above 0" in error.hint and "Gibbs()" not in error.hint:
            assert complaint(model, learner, 0.1) is None, error


def told(model: Any, *data: Any) -> str:
    with pytest.raises(LearnerError) as found:
        model.fit(*data)
    return str(found.value)


def test_what_is_the_matter_is_said_at_once() -> None:
    """Of a model without a sampler nobody is asked for smoothing first."""
    sampler = sc.CollapsedGibbs(max_iter=2)
    for model, data in (
        (sc.align.IBM1(learner=sampler), PAIRS),
        (sc.align.IBM2(learner=sampler), PAIRS),
        (sc.align.Diagonal(learner=sampler), PAIRS),
        (sc.align.HMMAligner(learner=sampler), PAIRS),
        (sc.Aligner(smoothing=0.0, learner=sampler), PAIRS),
        (sc.GaussianHMM(2, learner=sampler), [POINTS]),
        (sc.HMM(2, emissions="features", learner=sampler), SENTENCES),
        (sc.Annotators(smoothing=0.0, learner=sampler), [(0, "x", 0), (1, "x", 1)]),
        (sc.MultinomialMixture(2, bernoulli=True, smoothing=0.0, learner=sampler), DOCUMENTS),
    ):
        message = told(model, data)
        assert f"{type(model).__name__} has no collapsed sampler" in message
        assert "use Gibbs()" in message
        assert "give smoothing above 0" in message


def test_rows_that_no_collapsed_sampler_knows() -> None:
    sampler = sc.CollapsedGibbs(max_iter=2)
    for rows in ({"tied": {"emissions": [0, 0]}}, {"frozen": ["emissions"]}):
        for smoothing in (0.0, 0.1):
            model = sc.HMM(2, smoothing=smoothing, learner=sampler, **rows)
            assert f"no collapsed sampler for {next(iter(rows))} rows" in told(model, SENTENCES)
    for unsaid in ({"tied": {}}, {"frozen": {"emissions": [False, False]}}, {"zero": {}}):
        sc.HMM(2, smoothing=0.1, learner=sampler, **unsaid).fit(SENTENCES)
    zero = {"transitions": [[True, False, False], [False, False, False]]}
    for smoothing in (0.0, 0.1):
        barred = sc.HMM(2, smoothing=smoothing, zero=zero, learner=sampler)
        assert "no collapsed sampler for zeros among transitions" in told(barred, SENTENCES)
    frozen = sc.LDA(2, frozen_topics=[{"a": 1.0}], learner=sampler, smoothing={"words": 0.0})
    assert "LDA cannot hold topics frozen" in told(frozen, DOCUMENTS)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_plsa_has_no_prior_of_documents(smoothing: float) -> None:
    for learner in (sc.VariationalBayes(), sc.StochasticVB(), sc.Gibbs(), sc.CollapsedGibbs()):
        message = told(sc.PLSA(2, smoothing=smoothing, learner=learner), DOCUMENTS)
        assert "PLSA has none (not for the topics of documents, whatever the smoothing)" in message
        assert "use LDA" in message
        assert "EM()" in message


def test_a_part_without_smoothing_is_named() -> None:
    learner = sc.VariationalBayes(max_iter=2)
    part = sc.HMM(2, smoothing={"transitions": 0.1}, learner=learner)
    assert "smoothing['emissions']=0" in told(part, SENTENCES)
    grammar = sc.PCFG(2, 2, smoothing={"words": 0.1}, learner=learner)
    assert "smoothing['rules']=0" in told(grammar, SENTENCES)
    # vectors have a prior of their own
    sc.GaussianHMM(2, smoothing={"transitions": 0.1}, learner=learner).fit([POINTS, POINTS[::-1]])
    assert "smoothing['words']=0" in told(
        sc.LDA(2, smoothing={"words": 0.0}, learner=learner), DOCUMENTS
    )
    # and words that have a prior need no smoothing
    sc.MultinomialMixture(2, smoothing=0.0, prior=0.5, learner=learner).fit(DOCUMENTS)


@pytest.mark.parametrize("learner", [sc.EM(), sc.HardEM(), sc.TemperedEM(), sc.Spectral(), None])
def test_priors_without_a_mode(learner: Any) -> None:
    """Where two things are the matter, no remedy leads to the other."""
    which, flip = sc.table("which"), sc.table("flip")

    @sc.story
    def coins(tosses):
        for z in "AB":
            yield which[z], *(flip[z, x] for x in tosses)

    cases: list[tuple[Any, Any]] = [
        (sc.MultinomialMixture(2, prior=0.5, learner=learner), DOCUMENTS),
        (sc.Annotators(prior={"weights": 0.5}, learner=learner), [(0, "x", 0), (1, "x", 1)]),
        (sc.StoryModel(coins, prior=0.5, learner=learner), ["HH", "TT"]),
        (sc.StoryModel(coins, prior={"flip": 0.5}, learner=learner), ["HH", "TT"]),
    ]
    if learner is not None:
        cases.append((sc.DirichletProcessMixture(3, concentration=0.5, learner=learner), DOCUMENTS))
        process = sc.DirichletProcessGaussianMixture(3, concentration=0.5, learner=learner)
        cases.append((process, POINTS))
    for model, data in cases:
        message = told(model, data)
        assert type(model).__name__ in message
        assert "use VariationalBayes()" in message
        model.set_params(learner=sc.VariationalBayes(max_iter=2)).fit(data)
        model.set_params(learner=sc.Gibbs(max_iter=4, n_init=1)).fit(data)


def test_priors_that_cannot_be_learned() -> None:
    model = sc.HMM(2, learner=sc.CollapsedGibbs(max_iter=2, optimise=1))
    assert "the priors of HMM cannot be learned" in told(model, SENTENCES)
    sc.LDA(2, learner=sc.CollapsedGibbs(max_iter=2, optimise=1)).fit(DOCUMENTS)


def test_an_inducer_is_called_by_its_own_name() -> None:
    points = sc.SenseInducer(2, svd=2, min_count=1, learner=sc.CollapsedGibbs(max_iter=2))
    assert "SenseInducer has no collapsed sampler" in told(points, DOCUMENTS, "a")
