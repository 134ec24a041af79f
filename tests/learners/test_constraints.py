"""Constraints on expectations: against enumeration, and what users see."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import DataError, LearnerError
from softcount.core.tilting import Tilt, make_groups
from softcount.kernels.simplex import project_columns
from softcount.learners import (
    EM,
    ConstraintWarning,
    EachItem,
    Events,
    FewValues,
    OneToOne,
    Share,
    VariationalBayes,
    read_constraints,
)
from tests.mixture.test_collapse_two_classes import REVIEWS, SHOWN
from tests.oracles import sequences
from tests.oracles.projections import Listed, Nearest, project

DOCUMENTS = ["a a b", "a c", "b b c", "c c a", "b d", "d d d", "a d c b", "b a"]
WORDS = "abcd"
START = {
    "weights": np.array([[0.5, 0.3, 0.2]]),
    "words": np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.2, 0.4], [0.25, 0.15, 0.5, 0.1]]),
}
EXACT: dict[str, Any] = {"max_iter": 1, "tol": 0.0}


def close(found: Any, expected: Any, within: float = 1e-5) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=within)


# against enumeration


def list_documents(features: Any, weights: Any) -> list[Listed]:
    """p(class, document) and the features of each class."""
    listed = []
    for text, weight in zip(DOCUMENTS, weights, strict=True):
        joint = []
        for k in range(3):
            p = START["weights"][0, k]
            for word in text.split():
                p *= START["words"][k, WORDS.index(word)]
            joint.append(p)
        listed.append(Listed(joint, [features(text, k) for k in range(3)], weight))
    return listed


def expect_words(nearest: Nearest, weights: Any) -> np.ndarray:
    """Expected counts of words by class, as an M-step without a prior normalises them."""
    counts = np.zeros((3, 4))
    for text, q, weight in zip(DOCUMENTS, nearest.q, weights, strict=True):
        for word in text.split():
            counts[:, WORDS.index(word)] += weight * q
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "weights", [np.ones(8), np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 1.0, 0.25])], ids=["1", "w"]
)
def test_documents(weights: np.ndarray) -> None:
    def features(text: str, k: int) -> list[float]:
        return [("a" in text) * (k == 1), k == 2, ("d" in text) * (k in (0, 2))]

    having = [float(weights @ [word in text for text in DOCUMENTS]) for word in ["a", "d"]]
    low = [0.45 * having[0], 0.3 * weights.sum(), 0.0]
    high = [1e9, 0.3 * weights.sum(), 0.2 * having[1]]
    oracle = project(list_documents(features, weights), low, high)
    constraints = [
        Share(1, at_least=0.45, among="a"),
        Share(2, at_least=0.3, at_most=0.3),
        Share([0, 2], at_most=0.2, among="d"),
    ]
    model = sc.MultinomialMixture(
        3, learner=EM(constraints=constraints, **EXACT), smoothing=0.0
    ).fit(columns(), None, weights, init=START, keep_params=True, theory=True)
    close(model.trace_[0].objective, oracle.objective, 1e-6)
    close(model.trace_.params[1]["words"], expect_words(oracle, weights))
    assert model.trace_[0].slack < 1e-6
    plain = sc.MultinomialMixture(3, learner=EM(**EXACT), smoothing=0.0)
    plain.fit(columns(), None, weights, init=START)
    assert model.trace_[0].log_likelihood == plain.trace_[0].log_likelihood
    assert model.trace_[0].objective < plain.trace_[0].objective - 0.1
    # the bound Q + H of the constrained posteriors at the next parameters
    q = np.concatenate(oracle.q)
    entropy = -float(np.repeat(weights, 3) @ (q * np.log(q)))
    close(model.trace_[1].bound - model.trace_[1].q, entropy, 1e-4)
    assert model.trace_[1].bound <= model.trace_[1].objective + 1e-9


def columns() -> Any:
    """The documents as texts, with words of one letter."""
    return np.array([[text.split().count(word) for word in WORDS] for text in DOCUMENTS])


@pytest.fixture(autouse=True)
def words_are_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests name the columns of `columns` by letters."""
    find = sc.MultinomialMixture._find_items

    def by_letter(self: Any, x: Any, word: Any) -> Any:
        letters = self.vocabulary_ is None and isinstance(word, str) and word in WORDS
        return find(self, x, WORDS.index(word) if letters else word)

    monkeypatch.setattr(sc.MultinomialMixture, "_find_items", by_letter)


SENTENCES = [[0, 1, 2], [1, 1], [2, 0], [3]]


@pytest.mark.parametrize(("order", "dictionary"), [(1, False), (1, True), (2, False)])
def test_sentences(order: int, dictionary: bool) -> None:
    rng = np.random.default_rng(order)
    tables = sequences.random_tables(rng, 3, 4, order, stop=True)
    allowed = {0: [0, 1], 3: [1, 2]} if dictionary else {}
    chain = sequences.Chain(tables, 3, order, stop=True)
    listed, paths, weights = [], [], [1.0, 2.0, 1.0, 0.5]
    for n, (words, weight) in enumerate(zip(SENTENCES, weights, strict=True)):
        states = [allowed.get(word, [0, 1, 2]) for word in words]
        found = [(path, p) for path, p in chain.paths(sequences.Sentence(words, states)) if p > 0.0]
        per_sentence = [
            [path.count(1) * (n == s) for s in range(len(SENTENCES))] for path, _ in found
        ]
        of_word = [
            sum(w == 0 and z == 0 for w, z in zip(words, path, strict=True)) for path, _ in found
        ]
        features = [[*each, one] for each, one in zip(per_sentence, of_word, strict=True)]
        listed.append(Listed([p for _, p in found], features, weight))
        paths.append([path for path, _ in found])
    zeros = 1.0 + 1.0  # weighted occurrences of word 0, in sentences 0 and 2
    low = [0.9 * weight for weight in weights] + [0.0]
    oracle = project(listed, low, [1e9] * 4 + [0.3 * zeros])
    texts = [[f"w{word}" for word in words] for words in SENTENCES]
    tags = {f"w{w}": [str(k) for k in allowed.get(w, [0, 1, 2])] for w in range(4)}
    model = sc.HMM(
        3,
        order=order,
        dictionary=tags if dictionary else None,
        smoothing=0.0,
        learner=EM(
            constraints=[EachItem(1, at_least=0.9), Share(0, at_most=0.3, among="w0")], **EXACT
        ),
    )
    start = {**tables}
    order_of_words = [int(w[1:]) for w in dict.fromkeys(itertools.chain(*texts))]
    start["emissions"] = tables["emissions"][:, order_of_words]
    model.fit(texts, None, weights, init=start, keep_params=True)
    close(model.trace_[0].objective, oracle.objective, 1e-5)
    counts = chain.no_counts()
    for words, some, q, weight in zip(SENTENCES, paths, oracle.q, weights, strict=True):
        sentence = sequences.Sentence(words, [], weight)
        for path, share in zip(some, q, strict=True):
            chain.add(counts, sentence, path, share)
    emissions = counts["emissions"][:, order_of_words]
    emissions /= emissions.sum(axis=1, keepdims=True)
    close(model.trace_.params[1]["emissions"], emissions, 1e-4)


def test_events_of_a_story() -> None:
    which, flip = sc.table("which"), sc.table("flip")

    @sc.story
    def coins(tosses: str) -> Any:
        for z in "AB":
            yield which[z], *(flip[z, x] for x in tosses)

    flips = {"A": {"H": 0.8, "T": 0.2}, "B": {"H": 0.5, "T": 0.5}}
    start: dict[str, Any] = {"which": {"A": 0.3, "B": 0.7}, "flip": flips}
    items = ["HHH", "HHT", "TTT", "HT"]
    listed = []
    for tosses in items:
        joint = [start["which"][z] * math.prod(start["flip"][z][x] for x in tosses) for z in "AB"]
        listed.append(Listed(joint, [[1.0, tosses.count("T")], [0.0, 0.0]]))
    oracle = project(listed, [0.6 * len(items), 0.0], [1e9, 2.5])
    model = sc.StoryModel(
        coins,
        learner=EM(
            constraints=[
                Events("which", {"A": 1}, at_least=0.6, of=True),
                Events("flip", lambda z, x: z == "A" and x == "T", at_most=2.5),
            ],
            **EXACT,
        ),
    ).fit(items, init=start, keep_params=True)
    close(model.trace_[0].objective, oracle.objective, 1e-6)
    close(model.trace_.params[1]["which"][0], np.mean([q[0] for q in oracle.q]))
    close(model.trace_[0].log_likelihood, sum(math.log(sum(one.joint)) for one in listed), 1e-9)


def test_links_one_to_one() -> None:
    """IBM Model 1 at a given table: every alignment of three pairs, one by one."""
    rng = np.random.default_rng(7)
    pairs = [("a b", "x y z"), ("b c a", "x y"), ("c", "z")]
    table = rng.dirichlet(np.ones(3), size=4)  # of a, b, c and the empty word
    words = [(n, e) for n, (source, _) in enumerate(pairs) for e in range(len(source.split()))]
    listed = []
    for n, (source, target) in enumerate(pairs):
        rows = [table["abc".index(e)] for e in source.split()] + [table[3]]
        columns_of = ["xyz".index(f) for f in target.split()]
        joint, features = [], []
        for links in itertools.product(range(len(rows)), repeat=len(columns_of)):
            p = math.prod(rows[i][f] for f, i in zip(columns_of, links, strict=True))
            joint.append(p / len(rows) ** len(links))
            features.append([links.count(i) * (m == n) for m, i in words])
        listed.append(Listed(joint, features))
    oracle = project(listed, [-1e9] * len(words), [0.8] * len(words))
    model = sc.align.IBM1(learner=EM(max_iter=1, tol=0.0, constraints=[OneToOne(at_most=0.8)]))
    model._bind(pairs)
    values = table[model._lexicon.rows(), model._lexicon.targets]  # in order of first occurrence
    model._start_values = lambda *_: {"translation": values}  # type: ignore[method-assign]
    model.fit(pairs)
    close(model.trace_[0].objective, oracle.objective, 1e-5)
    close(model.trace_[0].log_likelihood, sum(math.log(sum(one.joint)) for one in listed), 1e-9)
    assert model.trace_[0].slack < 1e-6
    # without the empty word, three target words cannot have two source words at .8 each
    alone = sc.align.IBM1(null=False, learner=EM(max_iter=1, constraints=[OneToOne(0.8)]))
    assert alone.fit(pairs).constraints_.slack > 0.2


def test_few_values_against_enumeration() -> None:
    """The penalty, by its definition, at distributions found without multipliers."""
    rng = np.random.default_rng(3)
    tables = sequences.random_tables(rng, 2, 2, 1, stop=True)
    chain = sequences.Chain(tables, 2, 1, stop=True)
    texts, strength = [[0, 1, 0], [0, 0], [1, 0]], 1.5
    posteriors = []
    for words in texts:
        states = [[0, 1]] * len(words)
        found = list(chain.paths(sequences.Sentence(words, states)))
        posteriors.append(([path for path, _ in found], np.array([p for _, p in found])))

    from scipy.optimize import minimize

    ends = np.cumsum([len(paths) for paths, _ in posteriors])
    n_paths = int(ends[-1])

    def objective(x: np.ndarray) -> float:
        value = 0.0
        for (_, p), q in zip(posteriors, np.split(x[:n_paths], ends[:-1]), strict=True):
            q = np.maximum(q, 1e-300)
            value += float(q @ (np.log(q) - np.log(p)))
        return value + strength * float(x[n_paths:].sum())  # the largest of each word and state

    limits: list[Any] = []
    for n in range(len(texts)):
        where = np.zeros(n_paths + 4)
        where[ends[n - 1] if n else 0 : ends[n]] = 1.0
        limits.append({"type": "eq", "fun": lambda x, w=where: w @ x - 1.0})
    for n, words in enumerate(texts):
        for i, word in enumerate(words):
            for state in range(2):
                where = np.zeros(n_paths + 4)
                where[n_paths + 2 * word + state] = 1.0
                paths = posteriors[n][0]
                first = ends[n - 1] if n else 0
                for place, path in enumerate(paths):
                    where[first + place] = -float(path[i] == state)
                limits.append({"type": "ineq", "fun": lambda x, w=where: w @ x})
    start = np.concatenate([*(np.full(len(p), 1 / len(p)) for p, _ in posteriors), np.ones(4)])
    bounds = [(1e-12, 1.0)] * len(start)
    options = {"maxiter": 1000, "ftol": 1e-14}
    best = minimize(
        objective, start, method="SLSQP", bounds=bounds, constraints=limits, options=options
    )
    learner = EM(max_iter=1, tol=0.0, constraints=[FewValues(strength, min_count=1)])
    model = sc.HMM(2, smoothing=0.0, learner=learner)
    model.fit([[f"w{w}" for w in words] for words in texts], init=tables)
    gap = model.trace_[0].rounding
    assert -best.fun - 1e-6 <= model.trace_[0].objective <= -best.fun + gap + 1e-6
    assert gap < 1e-2


# what must hold


def test_the_bound_climbs_and_constraints_hold() -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, size=(300, 40))
    constraints = [Share(0, at_least=0.5, among=3), Share(1, at_least=0.1, at_most=0.2)]
    for learner in (EM(max_iter=40, tol=0.0, constraints=constraints),
                    VariationalBayes(max_iter=40, tol=0.0, constraints=constraints)):  # fmt: skip
        model = sc.MultinomialMixture(4, learner=learner).fit(X)
        assert (np.diff(model.trace_.objective[1:]) > -1e-6).all()
        assert model.trace_.slack.max() <= 1e-6
        assert model.verdict_ is not sc.Verdict.FELL


def test_the_bound_climbs_for_chains() -> None:
    rng = np.random.default_rng(0)
    sentences = [[f"w{w}" for w in rng.integers(0, 12, rng.integers(1, 8))] for _ in range(60)]
    constraints = [EachItem(0, at_least=0.5), Share(1, at_most=0.3)]
    model = sc.HMM(4, smoothing=0.1, learner=EM(max_iter=25, tol=0.0, constraints=constraints))
    model.fit(sentences)
    assert (np.diff(model.trace_.objective) > -1e-6).all()
    assert model.trace_.slack.max() <= 1e-6
    penalised = sc.HMM(
        4, smoothing=0.1, learner=EM(max_iter=25, tol=0.0, constraints=[FewValues(2.0, 3)])
    )
    penalised.fit(sentences)
    falls = -np.diff(penalised.trace_.objective)
    assert (falls <= penalised.trace_.column("rounding")[1:] + 1e-6).all()


def test_what_cannot_hold_is_slack() -> None:
    texts = ["good fine", "bad awful", "good great", "awful sad"]
    constraints = [
        Share("+", at_least=0.9, among="good"),
        Share("+", at_most=0.2, among="good"),
        Share("-", at_least=0.1),
    ]
    model = sc.NaiveBayes(learner=EM(constraints=constraints)).fit(texts, ["+", "-", None, None])
    assert model.verdict_ is sc.Verdict.UNSATISFIED
    assert not model.verdict_.good
    assert model.constraints_.slack == pytest.approx(model.trace_.slack[-1], abs=1e-6)
    close(sum(each.slack for each in model.constraints_), 0.7)
    assert "violated by" in str(model.constraints_)
    # two labels say otherwise
    constraints = [Share("-", at_least=0.9, among="good")]
    model = sc.NaiveBayes(learner=EM(constraints=constraints)).fit(texts, ["+", "-", "+", None])
    (one,) = model.constraints_
    close([one.value, one.slack], [0.0, 0.9])


def test_strength_is_the_price_of_slack() -> None:
    texts = ["good fine", "bad awful", "good great", "awful sad", "good sad"]
    shares = []
    for strength in (0.01, 0.5, 2.0, math.inf):
        constraints = [Share("+", at_least=0.9, among="good", strength=strength)]
        model = sc.NaiveBayes(learner=EM(max_iter=1, constraints=constraints))
        (one,) = model.fit(texts, ["-", "+", None, None, None]).constraints_
        shares.append(one.value)
        assert one.multiplier <= strength
    assert shares == sorted(shares)


def test_example_h() -> None:
    """Whole reviews collapse; a constraint on the shares of classes leads to the right answer."""
    half = [Share("+", at_least=0.5, at_most=0.5)]
    truth = ["+", "-", "+", "-", "+", "-"]
    for smoothing in (1.0, 0.5, 0.1, 0.02):
        with pytest.warns(sc.errors.CollapseWarning):
            plain = sc.NaiveBayes(bernoulli=True, smoothing=smoothing).fit(REVIEWS, SHOWN)
        assert plain.transduction_.tolist() != truth
        learner = EM(max_iter=500, constraints=half)
        model = sc.NaiveBayes(bernoulli=True, smoothing=smoothing, learner=learner)
        assert model.fit(REVIEWS, SHOWN).transduction_.tolist() == truth
        assert model.verdict_.good
        close(model.constraints_[0].value, 0.5, 1e-6)


def test_words_alone_make_a_classifier() -> None:
    texts = ["puck ice goal", "bat ball run", "ice skate goal", "run base ball", "goal puck"]
    learner = EM(constraints=read_constraints(["puck hockey:0.9,1", "bat baseball:0.9,1"]))
    model = sc.NaiveBayes(learner=learner).fit(texts)
    assert model.classes_.tolist() == ["baseball", "hockey"]
    assert model.predict(["skate", "base"]).tolist() == ["hockey", "baseball"]


# engines, threads, files


def test_engines_agree() -> None:
    rng = np.random.default_rng(1)
    sentences = [[f"w{w}" for w in rng.integers(0, 9, 5)] for _ in range(40)]
    learner = EM(max_iter=3, constraints=[EachItem(0, at_least=1)])
    here = sc.HMM(3, learner=learner).fit(sentences)
    there = sc.HMM(3, learner=learner, engine=sc.Processes(2)).fit(sentences)
    assert here.trace_.objective.tobytes() == there.trace_.objective.tobytes()
    assert here.params_["emissions"].tobytes() == there.params_["emissions"].tobytes()


def test_a_fit_in_a_folder_is_the_same(tmp_path: Path) -> None:
    learner = EM(max_iter=5, tol=0.0, constraints=[Share(0, at_least=0.6)])
    model = sc.MultinomialMixture(2, learner=learner)
    plain = sc.MultinomialMixture(2, learner=learner).fit(columns())
    place = sc.learners.FitFolder(tmp_path / "fit", steps=1)
    model.fit(columns(), folder=place)
    again = sc.resume(place.path)
    for each in (model, again):
        assert each.trace_.objective.tobytes() == plain.trace_.objective.tobytes()


def test_a_tilt_is_the_same_for_parts_of_the_items() -> None:
    rng = np.random.default_rng(0)
    indptr = np.array([0, 2, 2, 5, 6])
    groups = make_groups(6, [(np.array([0, 3]), np.ones(2)), (np.array([5, 3]), np.full(2, 0.5))])
    tilt = Tilt(indptr, groups, rng.normal(size=(2, 3)))
    whole = tilt.log_weights(np.arange(4))
    close(whole[3], -tilt.prices[0] - 0.5 * tilt.prices[1], 1e-12)
    parts = [tilt.log_weights(np.array(items)) for items in ([0, 1], [2], [3])]
    close(np.concatenate(parts), whole, 0.0)
    close(tilt.log_weights(np.array([3, 0])), whole[[5, 0, 1]], 0.0)
    q = rng.random((6, 3))
    close(tilt.expect(np.arange(4), q)[1], 0.5 * q[5] + 0.5 * q[3], 1e-12)
    close(pickle.loads(pickle.dumps(tilt)).log_weights(np.arange(4)), whole, 0.0)


def test_projection_onto_simplices() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    values = rng.normal(0.3, 1.0, size=(7, 2))
    blocks = np.array([0, 4, 7])
    found = values.copy()
    project_columns(found, blocks, 1.0)
    for first, last in ((0, 4), (4, 7)):
        for k in range(2):
            x = values[first:last, k]
            best = minimize(
                lambda y, x=x: float(np.sum((y - x) ** 2)),
                np.full(len(x), 0.1),
                bounds=[(0.0, None)] * len(x),
                constraints={"type": "ineq", "fun": lambda y: 1.0 - y.sum()},
                tol=1e-12,
            )
            close(found[first:last, k], best.x, 1e-5)


# what is refused, and what is said


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("# words\npuck hockey:0.9 baseball=0.1\n\nbat baseball\n* hockey:0.3,0.7\n")
    found = read_constraints(path)
    assert [(one.among, one.value, one.at_least, one.at_most) for one in found] == [
        ("puck", "hockey", 0.9, 0.9),
        ("puck", "baseball", 0.1, 0.1),
        ("bat", "baseball", 0.9, None),
        (None, "hockey", 0.3, 0.7),
    ]
    for line in ("puck", "puck hockey:much", "puck hockey:1.2", "puck hockey:0.9,0.1", "puck :0.5"):
        with pytest.raises(DataError, match="line:2"):
            read_constraints(["a b:1", line])


def test_refusals() -> None:
    share = Share(0, at_least=0.5)
    for wrong in (
        lambda: Share(0),
        lambda: Share(0, at_least=0.9, at_most=0.1),
        lambda: Share(0, at_least=1.5),
        lambda: Share(0, at_least=math.nan),
        lambda: Share(0, at_least=0.5, strength=0.0),
        lambda: EachItem(0),
        lambda: Events("t", {}),
        lambda: FewValues(strength=math.inf),
        lambda: OneToOne(at_most=-1.0),
        lambda: sc.learners.HardEM(constraints=[share]),
        lambda: sc.learners.OnlineEM(constraints=[share]),
        lambda: EM(temper=0.5, constraints=[share]),
    ):
        with pytest.raises(LearnerError):
            wrong()
    texts = ["a b", "b c", "c d"]
    for constraint, match in (
        (Share("x", at_least=0.5), "no hidden value 'x'"),
        (OneToOne(), "word alignments"),
        (FewValues(), "occurrences"),
        (Events("nothing", [1.0], at_most=1), "tables are weights, words"),
        (Events("weights", [1.0], at_most=1), r"shape \(1,\), not \(1, 2\)"),
    ):
        with pytest.raises(LearnerError, match=match):
            sc.MultinomialMixture(2, learner=EM(constraints=[constraint])).fit(texts)
    wrong_mask = Share(0, at_least=0.5, among=np.ones(2, bool))
    model = sc.MultinomialMixture(2, learner=EM(constraints=[wrong_mask]))
    with pytest.raises(DataError, match="does not choose documents"):
        model.fit(texts)
    absent = Share(0, at_least=0.5, among="zebra")
    model = sc.MultinomialMixture(2, learner=EM(constraints=[absent]))
    with pytest.warns(ConstraintWarning, match="no such document"):
        model.fit(texts)
