"""Small fits whose results are written down, so that no change of the code changes them unseen.

A case is a function that gives a fitted model; its result is what `figures` makes of it. When names
of settings change, this file changes with them; the results of `results.json` must not.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import softcount as sc
from softcount import samples
from softcount.engines import Local
from softcount.learners import Squarem

CASES: dict[str, Callable[[], Any]] = {}

STEPS = {"max_iter": 6, "tol": 0.0}
NOTES, THEMES = samples.notes(), samples.note_labels()
PAIRS, SENTENCES = samples.pairs(), samples.sentences()
SOME = [theme if i % 5 == 0 else None for i, theme in enumerate(THEMES)]
RNG = np.random.default_rng(19)
POINTS = np.concatenate([RNG.normal(m, 1.0, (40, 3)) for m in (-2.0, 0.0, 3.0)])
WEIGHTS = RNG.uniform(0.2, 2.0, len(NOTES))
VECTORS = [RNG.normal(size=(n, 2)) + (n % 2) for n in RNG.integers(3, 9, 30)]
VOTES = [
    (item, who, int(RNG.random() < (0.2 if who else 0.45)) ^ (item % 2))
    for item in range(40)
    for who in range(5)
]
TAGS = {"the": ["DET"], "a": ["DET"], "on": ["ADP"], "dog": ["NOUN", "VERB"]}
BRACKETS = [[(0, 2)] if i % 3 == 0 else None for i, words in enumerate(SENTENCES)]
RULES = """
S -> NP VP
NP -> 'she' | 'the' N | NP PP
VP -> 'sees' NP | 'sleeps' | VP PP
PP -> 'with' NP
N -> 'dog' | 'telescope' | 'man'
"""
RULED = [
    "she sees the dog with the telescope",
    "the man sleeps",
    "the dog sees the man with the dog with the telescope",
    "she sleeps with the dog",
]
TREES = [
    "(S (NP it) (VP (VBZ rains)))",
    "(S (NP she) (VP (VBZ sees) (NP it)))",
    "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN man))))",
]
SENSES = [f"the bank of the river {w}" for w in ("rose", "fell", "froze")] * 4 + [
    f"the bank lent money {w}" for w in ("today", "again", "late")
] * 4
DOMAINS = [1] * 30 + [-1] * 30
SIDES = [int(theme == "sea") if i < 45 else -1 for i, theme in enumerate(THEMES)]

which, flip = sc.table("which"), sc.table("flip")
start, move, say = sc.table("start"), sc.table("move"), sc.table("say")


@sc.story
def coins(tosses):
    for z in "ABC":
        yield which[z], *(flip[z, x] for x in tosses)


TOSSES = ["".join(RNG.choice(list("HT"), 5, p=[p, 1 - p])) for p in (0.9, 0.2, 0.5) * 20]


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


def add(name: str, model: Callable[[], Any], *data: Any, **options: Any) -> None:
    CASES[name] = lambda: model().fit(*data, **options)


LEARNERS: dict[str, Callable[[], Any]] = {
    "em": lambda: sc.EM(**STEPS),
    "hard_em": lambda: sc.HardEM(**STEPS),
    "online_em": lambda: sc.OnlineEM(**STEPS, batch_size=8),
    "incremental_em": lambda: sc.IncrementalEM(**STEPS, batch_size=16),
    "squarem": lambda: sc.EM(**STEPS, schedule=Squarem()),
    "annealed_em": lambda: sc.EM(max_iter=6, tol=0.0, temper=(0.3, 0.6, 1.0)),
    "variational_bayes": lambda: sc.VariationalBayes(**STEPS),
    "stochastic_vb": lambda: sc.StochasticVB(**STEPS, batch_size=8),
    "monte_carlo_em": lambda: sc.MonteCarloEM(max_iter=6),
    "gibbs": lambda: sc.Gibbs(max_iter=8, n_init=2),
    "collapsed_gibbs": lambda: sc.CollapsedGibbs(max_iter=8, thin=2),
}


def _by_every(name: str, make: Callable[[Any], Any], *data: Any, without: tuple[str, ...] = ()):
    for learner, new in LEARNERS.items():
        if learner not in without:
            add(f"{name}_{learner}", lambda new=new: make(new()), *data)


_by_every(
    "story",
    lambda learner: sc.StoryModel(coins, learner=learner, smoothing=0.5),
    TOSSES,
    without=("collapsed_gibbs",),
)
_by_every("mixture", lambda learner: sc.MultinomialMixture(3, learner=learner), NOTES)
_by_every("hmm", lambda learner: sc.HMM(4, learner=learner, smoothing=0.1), SENTENCES)
_by_every("lda", lambda learner: sc.LDA(3, learner=learner), NOTES)
_by_every("pcfg", lambda learner: sc.PCFG(3, 4, learner=learner, smoothing=0.1), SENTENCES[:30])
_by_every(
    "ibm1",
    lambda learner: sc.align.IBM1(learner=learner, smoothing=0.1),
    PAIRS,
    without=("collapsed_gibbs",),
)
_by_every(
    "annotators",
    lambda learner: sc.Annotators(learner=learner),
    VOTES,
    without=("collapsed_gibbs",),
)

GROUP = [sorted({annotator for _, annotator, _ in VOTES})[:3]]
add("annotators_silent_tied", lambda: sc.Annotators(tying="one-coin", silence=True), VOTES)
add("annotators_copying", lambda: sc.Annotators(tying="mace", groups=GROUP), VOTES)
add(
    "annotators_with_words",
    lambda: sc.Annotators(length=5, class_balance="uniform"),
    VOTES,
    texts={item: NOTES[k % len(NOTES)] for k, item in enumerate({v[0]: 0 for v in VOTES})},
)
BAGS = [k // 4 for k in range(len(NOTES))]
SIDES_OF_BAGS = {bag: ("no", "yes", None)[bag % 3] for bag in BAGS}
for noisy in (False, True):
    add(
        f"bags_noisy_{noisy}".lower(),
        lambda noisy=noisy: sc.labels.MultipleInstance(noisy=noisy),
        NOTES,
        SIDES_OF_BAGS,
        BAGS,
    )

# mixtures
add("mixture_usual", lambda: sc.MultinomialMixture(3), NOTES)
add("mixture_bernoulli", lambda: sc.MultinomialMixture(3, bernoulli=True), NOTES)
add("mixture_weighted", lambda: sc.MultinomialMixture(3), NOTES, None, WEIGHTS)
add("mixture_spectral", lambda: sc.MultinomialMixture(3, learner=sc.Spectral()), NOTES)
add("mixture_scouts", lambda: sc.MultinomialMixture(3, init="random", short_runs=4), NOTES)
add(
    "mixture_restarts",
    lambda: sc.MultinomialMixture(3, init="random", learner=sc.EM(n_init=3)),
    NOTES,
)
add("mixture_threads", lambda: sc.MultinomialMixture(3, engine=Local(3)), NOTES)
for shape in ("full", "tied", "diag", "spherical"):
    add(f"gaussian_{shape}", lambda shape=shape: sc.GaussianMixture(3, covariance=shape), POINTS)
add("gaussian_hard", lambda: sc.GaussianMixture(3, learner=sc.HardEM()), POINTS)
add("kmeans_usual", lambda: sc.KMeans(3), POINTS)
add("soft_kmeans_usual", lambda: sc.SoftKMeans(3), POINTS)
add("process_usual", lambda: sc.DirichletProcessMixture(8), NOTES)
add(
    "process_collapsed",
    lambda: sc.DirichletProcessMixture(8, learner=sc.CollapsedGibbs(max_iter=8)),
    NOTES,
)
add("process_gaussian", lambda: sc.DirichletProcessGaussianMixture(8), POINTS)
add("naive_bayes_usual", lambda: sc.NaiveBayes(), NOTES, SOME)
add(
    "naive_bayes_components",
    lambda: sc.NaiveBayes(n_components=2, unlabelled_weight=0.3),
    NOTES,
    SOME,
)
add("naive_bayes_cv", lambda: sc.NaiveBayesCV(cv=3), NOTES, SOME)
add("senses_usual", lambda: sc.SenseInducer(2), SENSES, "bank")

# topics
add("plsa_usual", lambda: sc.PLSA(3), NOTES)
add("plsa_tempered", lambda: sc.PLSA(3, learner=sc.TemperedEM()), NOTES)
add("plsa_float32", lambda: sc.PLSA(3, dtype="float32"), NOTES)
add("lda_usual", lambda: sc.LDA(3), NOTES)
add("lda_seeds", lambda: sc.LDA(3, seed_words={0: ["boat", "wind"], 1: ["goal"]}), NOTES)
add(
    "lda_labels",
    lambda: sc.LDA(3),
    NOTES,
    labels=[-1 if theme is None else sorted(set(THEMES)).index(theme) for theme in SOME],
)
add("lda_threads", lambda: sc.LDA(3, engine=Local(3)), NOTES)
add(
    "lda_learned_priors",
    lambda: sc.LDA(3, learner=sc.CollapsedGibbs(max_iter=12, optimise=4)),
    NOTES,
)


@case
def lda_partial_fit():
    model = sc.LDA(3, learner=sc.OnlineEM(batch_size=8))
    return model.partial_fit(NOTES[:30]).partial_fit(NOTES[30:])


# alignment
for name, kind in {
    "ibm1": sc.align.IBM1,
    "ibm2": sc.align.IBM2,
    "diagonal": sc.align.Diagonal,
    "hmm_aligner": sc.align.HMMAligner,
    "aligner": sc.Aligner,
    "gibbs_aligner": sc.align.GibbsAligner,
}.items():
    add(f"{name}_usual", lambda kind=kind: kind(), PAIRS)
add("aligner_float32", lambda: sc.Aligner(dtype="float32"), PAIRS)
add("aligner_dictionary", lambda: sc.Aligner(dictionary={"house": "haus"}), PAIRS)
add(
    "aligner_links",
    lambda: sc.Aligner(),
    PAIRS,
    links=[[(0, 0)] if i % 4 == 0 else None for i in range(len(PAIRS))],
)
add("aligner_threads", lambda: sc.Aligner(engine=Local(3)), PAIRS)


@case
def aligner_partial_fit():
    return sc.Aligner().fit(PAIRS[:60]).partial_fit(PAIRS[60:])


# tagging
add("hmm_usual", lambda: sc.HMM(4), SENTENCES)
add("hmm_order_2", lambda: sc.HMM(3, order=2, smoothing=0.01), SENTENCES)
add("hmm_float32", lambda: sc.HMM(4, dtype="float32"), SENTENCES)
add("hmm_threads", lambda: sc.HMM(4, engine=Local(3)), SENTENCES)
add("hmm_spectral", lambda: sc.HMM(3, init="spectral"), SENTENCES)
add("hmm_dictionary", lambda: sc.HMM(dictionary=TAGS, open_tags=["NOUN", "VERB", "ADJ"]), SENTENCES)
add(
    "hmm_tags",
    lambda: sc.HMM(smoothing=0.1),
    SENTENCES,
    [
        ["DET" if w == "the" else "X" for w in words] if i % 2 else None
        for i, words in enumerate(SENTENCES)
    ],
)
add("gaussian_hmm_usual", lambda: sc.GaussianHMM(2), VECTORS)

# grammars
add("pcfg_usual", lambda: sc.PCFG(3, 4), SENTENCES[:40])
add("pcfg_float32", lambda: sc.PCFG(3, 4, dtype="float32"), SENTENCES[:40])
add("pcfg_brackets", lambda: sc.PCFG(3, 4), SENTENCES[:40], brackets=BRACKETS[:40])
add("pcfg_rules", lambda: sc.PCFG.from_rules(RULES), RULED)
add("pcfg_threads", lambda: sc.PCFG(3, 4, engine=Local(3)), SENTENCES[:40])


@case
def pcfg_treebank():
    return sc.PCFG.from_treebank(TREES)


# few labels, and other domains
add("self_training_usual", lambda: sc.labels.SelfTraining(), NOTES, SOME)
add(
    "co_training_usual",
    lambda: sc.labels.CoTraining(views={"begin": lambda t: t[:25], "end": lambda t: t[25:]}),
    NOTES,
    SOME,
)
add("propagation_usual", lambda: sc.labels.LabelPropagation(), NOTES, SOME)
add(
    "yarowsky_usual",
    lambda: sc.labels.Yarowsky(),
    NOTES,
    seeds={"sea": ["boat"], "football": ["goal"]},
)
for kind in (
    sc.adapt.EasyAdapt,
    sc.adapt.PivotProjection,
    sc.adapt.DenoisingProjection,
    sc.adapt.AdversarialNetwork,
    sc.adapt.SourcePrior,
    sc.adapt.Weighted,
    sc.adapt.Interpolation,
    sc.adapt.PredictionFeature,
):
    add(f"adapt_{kind.__name__}", lambda kind=kind: kind(), NOTES, SIDES, sample_domain=DOMAINS)


@case
def language_model_usual():
    return sc.translate.LanguageModel().fit(SENTENCES)


# what is written down of a fit
def figures(name: str) -> dict[str, Any]:
    """Objectives of all steps, the verdict, and digests of the tables and of what it predicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CASES[name]()
        found: dict[str, Any] = {"verdict": _verdict(model)}
        if getattr(model, "fit_", None) is not None:
            found["objective"] = model.trace_.objective.tolist()
        found["tables"] = sorted(_digest(table) for table in _tables(model).values())
        found["sums"] = sorted(
            float(np.sum(table * _weights(table))) for table in _tables(model).values()
        )
        found["answers"] = _digest_of_text(repr(_plain(_answers(model))))
    return found


def _verdict(model: Any) -> str | None:
    try:
        verdict = model.verdict_
    except AttributeError:
        return None
    return str(verdict.name)


def _tables(model: Any) -> dict[str, Any]:
    tables: Mapping[str, Any] = getattr(model, "raw_params_", None) or {}
    found = {name: np.asarray(table) for name, table in tables.items()}
    if hasattr(model, "predict_proba") and hasattr(model, "classes_"):
        found["proba"] = np.asarray(_proba(model))
    if hasattr(model, "documents_"):
        found["documents"] = np.asarray(model.documents_)
    return found


def _proba(model: Any) -> Any:
    if isinstance(model, sc.Annotators):
        return model.predict_proba(VOTES)
    if isinstance(model, sc.labels.MultipleInstance):
        return model.predict_proba(NOTES, BAGS)
    try:
        return model.predict_proba(NOTES)
    except TypeError:
        return model.predict_proba(NOTES, sample_domain=[-1] * len(NOTES))


def _answers(model: Any) -> Any:
    """What it says of its data."""
    for name in ("labels_", "transduction_"):
        if hasattr(model, name):
            return getattr(model, name)
    if hasattr(model, "align"):
        return model.align(PAIRS[:20])
    if isinstance(model, sc.HMM):
        return model.predict(SENTENCES[:20])
    if isinstance(model, sc.GaussianHMM):
        return model.predict(VECTORS[:20])
    if isinstance(model, sc.PCFG):
        return [str(tree) for tree in model.predict(RULED)]
    if isinstance(model, sc.translate.LanguageModel):
        return [model.score_samples(SENTENCES[:5])]
    if hasattr(model, "documents_"):
        return model.documents_.argmax(axis=1)
    if hasattr(model, "best"):
        return [str(model.best(tosses)) for tosses in TOSSES[:10]]
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _weights(table: Any) -> Any:
    """Different weights for all entries, so that a sum tells where they changed places."""
    return np.cos(np.arange(table.size, dtype=np.float64)).reshape(table.shape)


def _digest(table: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()[:16]


def _digest_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
