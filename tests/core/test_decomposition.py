"""L = F + KL, H ≥ 0 and F that never falls: every estimator, against enumeration."""

from __future__ import annotations

from dataclasses import astuple, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import softcount as sc
from softcount.core.errors import DataError, LearnerError, StartError
from softcount.core.laws import Bench, entropy_is_the_posteriors, likelihood_is_bound_plus_gap
from softcount.core.types import Stats, Uncounted
from tests.oracles import apart
from tests.oracles.bags_mixture import DATA, Estimator, Mixture
from tests.oracles.worlds import WORLDS

CASES = 200
BETA = 0.6
LEARNERS: dict[str, Any] = {
    "EM": sc.EM(max_iter=2, tol=0),
    "tempered": sc.EM(max_iter=2, tol=0, temper=BETA),
    "Squarem": sc.EM(max_iter=2, tol=0, schedule=sc.learners.Squarem()),
    "VariationalBayes": sc.VariationalBayes(max_iter=2, tol=0),
}
CLOSE = {"rel": 1e-9, "abs": 1e-8}


def check_case(name: str, way: str, seed: int) -> None:
    """One random case: every step of a run, as trace and as `decompose` have it."""
    rng = np.random.default_rng((seed, list(WORLDS).index(name)))
    world, learner = WORLDS[name](rng), LEARNERS[way]
    bayes, temper = learner.m == "mean_field", BETA if way == "tempered" else 1.0
    model = world.model(learner, bayes)
    model.fit(world.data, **world.known, keep_params=True, theory=way != "Squarem")
    trace = model.trace_
    every = [world.items(model, params) for params in trace.params]
    for step, (params, here) in enumerate(zip(trace.params, every, strict=True)):
        before = max(step - 1, 0)
        old, there = trace.params[before], every[before]
        if trace[step].restarted:  # the E-step before this one was at classes that were joined
            old = trace[step].restarted_from
            there = world.items(model, old)
        wanted = apart.take_apart(here, there, world.weights)
        found = model.decompose(world.data, params, at=old, **world.known)
        open_q = apart.is_open(here, there)
        for figure in ("log_likelihood", "entropy") if open_q else wanted._fields:
            assert getattr(found, figure) == pytest.approx(getattr(wanted, figure), **CLOSE), figure
        assert trace.log_likelihood[step] == pytest.approx(wanted.log_likelihood, **CLOSE)
        assert min(found.entropy, found.kl) >= -1e-9 * (1.0 + abs(found.log_likelihood))
        if step and way != "Squarem":
            was = apart.take_apart(here, there, world.weights, temper)
            assert trace.q[step] == pytest.approx(was.q, **CLOSE)
            assert trace.bound[step] == pytest.approx(was.q + was.entropy / temper, **CLOSE)
        if not (bayes or world.priors):
            objective = apart.tempered(here, temper, world.weights)
            assert trace.objective[step] == pytest.approx(objective, **CLOSE)
            if step and way != "Squarem":  # up the bound, and up to the curve above it
                room = 1e-8 * (1.0 + abs(objective))
                assert trace.objective[before] <= trace.bound[step] + room
                assert trace.bound[step] <= trace.objective[step] + room
    own, wanted = model.decompose(world.data, params, **world.known), apart.take_apart(here, here)
    assert own.kl == pytest.approx(0.0, abs=1e-8 * (1.0 + abs(own.log_likelihood)))
    if world.weights is None:
        assert own.entropy == pytest.approx(wanted.entropy, **CLOSE)
    # it climbs between restarts, and a stretch after a restart ends above the stretch before it
    restarts = [state.step for state in trace if state.restarted]
    stretches = np.split(trace.objective, restarts)
    ends = np.array([stretch[-1] for stretch in stretches])
    for climbed in (stretches[0][int(bayes) :], *stretches[1:], ends):
        assert (np.diff(climbed) >= -1e-8 * (1.0 + np.abs(climbed[1:]))).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", LEARNERS)
@pytest.mark.parametrize("name", WORLDS)
def test_every_step_is_what_enumeration_makes_of_it(name: str, way: str) -> None:
    for seed in range(CASES):
        try:
            check_case(name, way, seed)
        except AssertionError as error:
            raise AssertionError(f"case {seed}: {error}") from error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["EM", "VariationalBayes"])
@pytest.mark.parametrize("name", WORLDS)
def test_parameters_go_in_as_a_model_shows_them(name: str, way: str) -> None:
    for seed in range(10):
        rng = np.random.default_rng((1, seed))
        world, learner = WORLDS[name](rng), LEARNERS[way]
        model = world.model(learner, way != "EM").fit(world.data, **world.known)
        before = {name: id(value) for name, value in vars(model).items()}
        found = model.decompose(world.data, model.params_, **world.known)
        assert {name: id(value) for name, value in vars(model).items()} == before
        if way == "EM":
            assert found.log_likelihood == pytest.approx(model.trace_.log_likelihood[-1], **CLOSE)
        own = {**model.fit_.params, **model.fit_.local}
        items = world.items(model, own)
        wanted = apart.take_apart(items, items, world.weights)
        assert found.log_likelihood == pytest.approx(wanted.log_likelihood, **CLOSE)
        assert found.q == pytest.approx(wanted.q, **CLOSE)
        assert found.entropy == pytest.approx(wanted.entropy, **CLOSE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["EM", "VariationalBayes"])
@pytest.mark.parametrize("name", WORLDS)
def test_asking_for_theory_changes_nothing_else(name: str, way: str) -> None:
    runs = []
    for theory in (False, True):
        world = WORLDS[name](np.random.default_rng(3))
        model = world.model(LEARNERS[way], way != "EM")
        runs.append(model.fit(world.data, **world.known, theory=theory))
    one, two = (run.fit_ for run in runs)
    assert one.trace.objective.tobytes() == two.trace.objective.tobytes()
    for table, values in one.params.items():
        assert np.asarray(values).tobytes() == np.asarray(two.params[table]).tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WORLDS)
def test_the_free_energy_of_incremental_em(name: str) -> None:
    """It climbs from pass to pass, and never above the log-likelihood."""
    for seed in range(10):
        world = WORLDS[name](np.random.default_rng((2, seed)))
        learner = sc.IncrementalEM(max_iter=3, tol=0, batch_size=2)
        model = world.model(learner, False).fit(world.data, **world.known, keep_params=True)
        trace = model.trace_
        room = 1e-8 * (1.0 + np.abs(trace.objective))
        assert (np.diff(trace.objective) >= -room[1:]).all()
        for step, params in enumerate(trace.params):
            items = world.items(model, params)
            likelihood = apart.take_apart(items, items, world.weights).log_likelihood
            assert trace.log_likelihood[step] == pytest.approx(likelihood, **CLOSE)
            if not world.priors:
                assert trace.objective[step] <= likelihood + room[step]


# figures


def test_topics_after_three_steps() -> None:
    notes = ["a a b", "a b b", "c c d"]
    words = CountVectorizer(token_pattern=r"\w+")
    model = sc.PLSA(2, vectorizer=words, learner=sc.EM(max_iter=3, tol=0)).fit(notes)
    parts = model.decompose(notes, model.params_)
    assert parts.log_likelihood == pytest.approx(model.trace_.log_likelihood[-1])
    assert parts.log_likelihood == pytest.approx(-8.996, abs=5e-4)
    assert parts.entropy == pytest.approx(2.310, abs=5e-4)


RABBITS = [("three rabbits", "trois lapins"), ("rabbits of grenoble", "lapins de Grenoble")]
t = sc.table("t")


@sc.story
def model_1(pair: Any) -> Any:
    source, target = pair
    for a in product(range(len(source)), repeat=len(target)):
        yield tuple(t[source[i], f] for i, f in zip(a, target, strict=True))


def test_example_c_has_the_entropy_of_its_story() -> None:
    """Model 1 has 1 / l^m beside what the story says, and the same posterior."""
    pairs = [(e.split(), f.split()) for e, f in RABBITS]
    for steps in (1, 2, 5):
        model = sc.align.IBM1(null=False, learner=sc.EM(max_iter=steps, tol=0)).fit(RABBITS)
        found = model.decompose(RABBITS, model.params_)
        table = {e: row for e, row in model.params_["translation"].items() if e is not None}
        story = sc.StoryModel(model_1)
        wanted = story.decompose(pairs, {"t": table})
        assert found.entropy == pytest.approx(wanted.entropy)
        constant = -2 * np.log(2) - 3 * np.log(3)
        assert found.q == pytest.approx(wanted.q + constant)
        assert found.log_likelihood == pytest.approx(model.trace_.log_likelihood[-1])
        if steps == 2:
            assert found.entropy == pytest.approx(4.35, abs=5e-3)


# data that the model has not seen


@pytest.mark.parametrize("name", ["IBM1", "IBM2", "Diagonal", "HMMAligner"])
@pytest.mark.filterwarnings("ignore")
def test_pairs_of_new_lengths_and_new_words(name: str) -> None:
    new = [("c a b a", "y x"), ("a q", "x z x x"), ("b", "new")]
    pairs = [(e.split(), f.split()) for e, f in new]
    for seed in range(40):
        rng = np.random.default_rng((4, seed))
        world = WORLDS[name](rng)
        model = world.model(sc.EM(max_iter=1, tol=0), False)
        model.fit(world.data, keep_params=True)
        here, there = model.trace_.params[::-1]
        items = [world.items_of(pairs)(model, params) for params in (here, there)]
        wanted = apart.take_apart(*items)
        found = model.decompose(new, here, at=there)
        if not apart.is_open(*items):
            assert astuple(found) == pytest.approx(wanted, **CLOSE), seed


SENTENCES = ["aing bed cing", "aing cing", "bed bed cing"] * 2
STRANGE = ["aing ned cing xing", "xing bed"]
TREES = ["(S (A a) (B b))", "(S (A c) (S (A a) (B d)))", "(S (B b) (B d))"]


@pytest.mark.parametrize(
    ("model", "new"),
    [
        (sc.HMM(2, smoothing=0.5, learner=sc.EM(max_iter=2)), STRANGE),
        (sc.HMM(2, smoothing=0.5, emissions="features", learner=sc.EM(max_iter=2)), STRANGE),
        (sc.PCFG(2, 2, smoothing=0.5, learner=sc.EM(max_iter=2)), STRANGE),
        (sc.PCFG.from_treebank(TREES), ["c e d", "f b"]),
    ],
    ids=["HMM", "HMM, features", "PCFG", "PCFG, rules"],
)
def test_sentences_with_new_words(model: Any, new: list[str]) -> None:
    if not hasattr(model, "core_"):
        model.fit(SENTENCES)
    core = model.core_
    bench = Bench.of(core, model._bind_more(core, new), None, 0)
    assert likelihood_is_bound_plus_gap(bench)
    assert entropy_is_the_posteriors(bench)
    # Fisher's identity: where the bound touches the curve it has the same slope
    rng = np.random.default_rng(0)
    start = bench.params
    step = {n: 1e-5 * rng.normal(size=f.free(start[n]).shape) for n, f in core.families.items()}
    ahead, behind = (
        {n: f.bound(f.free(start[n]) + way * step[n], start[n]) for n, f in core.families.items()}
        for way in (1, -1)
    )
    up, down = (sc.decompose(core, bench.corpus, end, at=start) for end in (ahead, behind))
    rise = up.log_likelihood - down.log_likelihood
    assert up.bound - down.bound == pytest.approx(rise, abs=1e-9)
    assert abs(rise) > 1e-7
    told = model.decompose(new, model.params_)
    assert told.log_likelihood == pytest.approx(model.score_samples(new).sum())


def test_senses() -> None:
    texts = ["the bank of the river", "a river bank with fish", "money in the bank", "bank money"]
    model = sc.SenseInducer(2, min_count=1, learner=sc.EM(max_iter=2, tol=0)).fit(texts, "bank")
    parts = model.decompose(texts, model.params_)
    assert parts.log_likelihood == pytest.approx(model.trace_.log_likelihood[-1])
    shares = model.predict_proba(texts)
    logs = np.log(np.where(shares > 0.0, shares, 1.0))
    assert parts.entropy == pytest.approx(-(shares * logs).sum(), abs=1e-9)


# what cannot be taken apart


@pytest.mark.parametrize("model", [sc.Aligner(), sc.align.GibbsAligner()], ids=["Aligner", "Gibbs"])
def test_two_directions_are_asked_one_by_one(model: Any) -> None:
    model.fit(RABBITS)
    with pytest.raises(LearnerError, match=r"(?s)two models.*forward_"):
        model.decompose(RABBITS, {})
    for way, pairs in (
        (model.forward_, RABBITS),
        (model.backward_, [(f, e) for e, f in RABBITS]),
    ):
        parts = way.decompose(pairs, way.params_)
        assert parts.log_likelihood == pytest.approx(way.score_samples(pairs).sum())
        assert parts.entropy > 0.0


def test_directions_that_agree_have_no_bound() -> None:
    model = sc.Aligner(stem=None)
    core, corpus = model._bind(RABBITS)
    params = {
        name: family.random(np.random.default_rng(0)) for name, family in core.families.items()
    }
    with pytest.raises(LearnerError, match="posterior of neither"):
        sc.decompose(core, corpus, params)
    with pytest.raises(LearnerError, match="posterior of neither"):
        model.fit(RABBITS, theory=True)
    names = [law.name for law in sc.check_model(model, RABBITS)]
    assert not {"L = F + KL", "entropy"} & set(names)


def test_directions_that_learn_apart_have() -> None:
    model = sc.Aligner(agree=False, stem=None).fit(RABBITS, theory=True)
    each = (
        model.forward_.decompose(RABBITS, model.forward_.params_),
        model.backward_.decompose([(f, e) for e, f in RABBITS], model.backward_.params_),
    )
    core, corpus = model._bind(RABBITS)
    parts = sc.decompose(core, corpus, model.raw_params_)
    assert parts.entropy == pytest.approx(sum(one.entropy for one in each))
    assert parts.q == pytest.approx(sum(one.q for one in each))


def test_rows_of_other_documents_are_refused() -> None:
    notes = [["a", "a", "b"], ["a", "b", "b"], ["c", "c", "d"]]
    model = sc.PLSA(2).fit(notes)
    with pytest.raises(DataError, match="2 documents, but topic proportions of 3"):
        model.decompose(notes[:2], model.params_)
    first = model.decompose(notes[:2], {"topics": model.topics_})
    assert first.kl == pytest.approx(0.0, abs=1e-9)
    core, corpus = model.core_, model._bind_more(model.core_, notes)
    with pytest.raises(DataError, match="no row for document 2"):
        sc.decompose(core, corpus, {"topics": model.topics_, "documents": model.documents_[:2]})


def test_translations_of_strange_words_are_refused() -> None:
    model = sc.align.IBM1(null=False).fit(RABBITS)
    for table in ({"three": {"de": 1.0}}, {"hare": {"de": 1.0}}, {"three": {"lièvre": 1.0}}):
        with pytest.raises(StartError, match=r"never seen|no pair has"):
            model.decompose(RABBITS, {"translation": table})


# the law


class Coefficient(Mixture):
    """A part of its likelihood is in no family's counts, and it does not say so."""

    told = False

    def expect(self, params: Any, shard: Any, how: Any, local: Any = None) -> Stats:
        stats = super().expect(params, shard, how, local)
        fixed = len(shard.words) * np.log(2.0)
        beside = Uncounted(fixed, fixed) if self.told else Uncounted()
        return replace(
            stats,
            log_likelihood=stats.log_likelihood + fixed,
            score=stats.score + fixed,
            uncounted=beside,
        )


class Told(Coefficient):
    told = True


class Generous(Mixture):
    """Claims to have what is not there: its entropy sinks below zero."""

    def expect(self, *args: Any, **options: Any) -> Stats:
        return replace(super().expect(*args, **options), uncounted=Uncounted(50.0, 50.0))


def test_the_laws_find_what_was_not_counted() -> None:
    def broken(core: Any) -> set[str]:
        return {law.name for law in sc.check_model(Estimator(core), DATA).failed}

    assert broken(Coefficient()) == {"entropy"}
    assert broken(Told()) == set()
    assert broken(Generous()) == {"entropy", "L = F + KL"}
