"""Every estimator once: made, fitted to a little data, and asked; what it says, as bytes.

Used where something must hold for all of them: in other processes, with other versions of what the
package is built on. The data are few, yet enough for threads to be called (`kernels.threads.FEW`).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

import softcount as sc

TWO = sc.Local(threads=2)
"""Whatever the machine has, two threads: pools are made even where there is one processor."""

SHORT = sc.EM(max_iter=3)

N_TEXTS = 1000
THEMES = (
    "ball goal team match player",
    "stock bank money price trade",
    "cell gene protein drug dose",
)


def _texts(n: int = N_TEXTS) -> list[str]:
    rng = np.random.default_rng(1)
    common = [f"w{k}" for k in range(60)]
    found = []
    for k in range(n):
        theme = rng.choice(THEMES[k % 3].split(), 3)
        found.append(" ".join([*theme, *rng.choice(common, 5, replace=False)]))
    return found


TEXTS = _texts()
LABELS = np.array([k % 3 if k < 60 else -1 for k in range(N_TEXTS)])
POINTS = np.random.default_rng(2).normal(size=(9000, 3)) + 4.0 * (np.arange(9000)[:, None] % 3)
SEQUENCES = [POINTS[k : k + 10] for k in range(0, 600, 10)]
SENTENCES = [
    f"the {adjective} {noun} {verb} a {other}"
    for adjective in ("old", "small", "red")
    for noun in ("dog", "cat", "bird", "fox")
    for verb in ("sees", "likes", "hears", "finds", "hunts")
    for other in ("mouse", "stone", "tree", "house", "river", "road")
] * 2
TEXT = [" ".join(SENTENCES[k::60] * 31) for k in range(60)] * 2
"""Long enough to be cut into pieces for threads."""

PAIRS = [
    (sentence.replace(" ", "o ") + "o", " ".join(reversed(sentence.split())))
    for sentence in SENTENCES
]
VOTES = [
    (f"item{k}", f"rater{j}", "yes" if (k + (j * k) % 3) % 2 else "no")
    for k in range(300)
    for j in range(5)
]


def _domains() -> tuple[Any, Any, Any, Any]:
    """Rows of two domains, labels (−1: hidden), domains, and the rows to be asked about."""
    rng = np.random.default_rng(3)
    domain = np.repeat([1, -1], 80)
    truth = np.arange(160) % 2
    X = np.abs(rng.normal(size=(160, 40))) * (rng.random((160, 40)) < 0.5)
    X[:, :4] += truth[:, None]
    y = np.where((domain < 0) & (np.arange(160) < 140), -1, truth)
    return X, y, domain, X[-80:]


which, flip = sc.table("which"), sc.table("flip")


@sc.story
def coins(tosses: Any) -> Iterator[Any]:
    for z in "AB":
        yield which[z], *(flip[z, x] for x in tosses)


TOSSES = ["".join(row) for row in np.random.default_rng(4).choice(list("HT"), (300, 6))]


def _mixture(model: Any, X: Any = TEXTS) -> list[Any]:
    model.fit(X)
    return [*_learned(model), model.predict_proba(X), model.score_samples(X)]


def _topics(model: Any) -> list[Any]:
    model.fit(TEXTS)
    return [*_learned(model), model.transform(TEXTS)]


def _sequences(model: Any, X: Any = SENTENCES) -> list[Any]:
    model.fit(X)
    return [*_learned(model), *model.predict_proba(X[:20]), model.score_samples(X)]


def _aligner(model: Any) -> list[Any]:
    model.fit(PAIRS)
    return [*_learned(model), model.align(PAIRS[:20])]


def _grammar(model: Any) -> list[Any]:
    model.fit(SENTENCES)
    trees = [str(tree) for tree in model.predict(SENTENCES[:20])]
    return [*_learned(model), trees, model.score_samples(SENTENCES[:100])]


def _annotators(model: Any) -> list[Any]:
    model.fit(VOTES)
    return [*_learned(model), model.predict_proba(VOTES)]


def _bags(model: Any) -> list[Any]:
    bags = [number // 5 for number in range(N_TEXTS)]
    y = {bag: "yes" if bag % 3 else "no" for bag in range(N_TEXTS // 10)}
    model.fit(TEXTS, y, bags)
    return [*_learned(model), model.predict_proba(TEXTS, bags), model.instance_proba_]


def _story(model: Any) -> list[Any]:
    model.fit(TOSSES)
    return [*_learned(model), model.score(TOSSES)]


def _senses(model: Any) -> list[Any]:
    model.fit(TEXTS, "ball")
    return [model.predict(TEXTS[:100])]


def _language(model: Any) -> list[Any]:
    return [model.fit(SENTENCES).score_samples(SENTENCES)]


def _few_labels(model: Any) -> list[Any]:
    model.fit(TEXTS, LABELS)
    return [model.predict(TEXTS[:200]), model.predict_proba(TEXTS[:200])]


def _first(text: str) -> str:
    return " ".join(text.split()[:2])


def _last(text: str) -> str:
    return " ".join(text.split()[2:])


def _adapted(model: Any) -> list[Any]:
    X, y, domain, new = _domains()
    model.fit(X, y, sample_domain=domain)
    return [model.predict_proba(new)]


def _copies(model: Any) -> list[Any]:
    X, y, domain, _ = _domains()
    return [model.fit(X, y, sample_domain=domain).transform(X, domain)]


def _translator() -> list[Any]:
    aligner = sc.align.IBM1(engine=TWO, learner=SHORT).fit(PAIRS)
    language = sc.translate.LanguageModel(2).fit([source for source, _ in PAIRS])
    translator = sc.Translator(aligner, language)
    return [str(translator.translate(target)) for _, target in PAIRS[:3]]


GIVEN: dict[str, Any] = {"learner": SHORT, "engine": TWO}

ESTIMATORS: dict[str, Callable[[], list[Any]]] = {
    "AdversarialNetwork": lambda: _adapted(sc.adapt.AdversarialNetwork(max_iter=2)),
    "Aligner": lambda: _aligner(sc.Aligner(**GIVEN)),
    "Annotators": lambda: _annotators(sc.Annotators(**GIVEN)),
    "Annotators, silent and tied": lambda: _annotators(
        sc.Annotators(tying="mace", silence=True, groups=[["rater0", "rater1", "rater2"]], **GIVEN)
    ),
    "CoTraining": lambda: _few_labels(sc.labels.CoTraining([_first, _last], rounds=3)),
    "DenoisingProjection": lambda: _adapted(sc.adapt.DenoisingProjection(n_outputs=20)),
    "Diagonal": lambda: _aligner(sc.align.Diagonal(**GIVEN)),
    "DirichletProcessGaussianMixture": lambda: _mixture(
        sc.DirichletProcessGaussianMixture(4, engine=TWO, learner=sc.VariationalBayes(max_iter=3)),
        POINTS,
    ),
    "DirichletProcessMixture": lambda: _mixture(
        sc.DirichletProcessMixture(4, engine=TWO, learner=sc.VariationalBayes(max_iter=3))
    ),
    "EasyAdapt": lambda: _adapted(sc.adapt.EasyAdapt()),
    "FeatureCopies": lambda: _copies(sc.adapt.FeatureCopies()),
    "GaussianHMM": lambda: _sequences(sc.GaussianHMM(3, **GIVEN), SEQUENCES),
    "GaussianMixture": lambda: _mixture(sc.GaussianMixture(3, **GIVEN), POINTS),
    "GibbsAligner": lambda: _aligner(sc.align.GibbsAligner(max_iter=2, kept=1, engine=TWO)),
    "HMM": lambda: _sequences(sc.HMM(2, **GIVEN), TEXT),
    "HMMAligner": lambda: _aligner(sc.align.HMMAligner(**GIVEN)),
    "IBM1": lambda: _aligner(sc.align.IBM1(**GIVEN)),
    "IBM2": lambda: _aligner(sc.align.IBM2(**GIVEN)),
    "Interpolation": lambda: _adapted(sc.adapt.Interpolation()),
    "KMeans": lambda: [sc.KMeans(3, engine=TWO).fit(POINTS).predict(POINTS)],
    "LDA": lambda: _topics(
        sc.LDA(3, engine=TWO, short_runs=2, learner=sc.VariationalBayes(max_iter=3))
    ),
    "LabelPropagation": lambda: _few_labels(sc.labels.LabelPropagation(n_jobs=2)),
    "LanguageModel": lambda: _language(sc.translate.LanguageModel(3)),
    "Merge": lambda: _adapted(sc.adapt.Merge()),
    "MultipleInstance": lambda: _bags(sc.labels.MultipleInstance(**GIVEN)),
    "MultinomialMixture": lambda: _mixture(sc.MultinomialMixture(3, short_runs=2, **GIVEN)),
    "NaiveBayes": lambda: _few_labels(sc.NaiveBayes(**GIVEN)),
    "NaiveBayesCV": lambda: _few_labels(
        sc.NaiveBayesCV(unlabelled_weights=(0.0, 1.0), cv=2, **GIVEN)
    ),
    "PCFG": lambda: _grammar(sc.PCFG(3, 3, **GIVEN)),
    "PLSA": lambda: _topics(sc.PLSA(3, short_runs=2, **GIVEN)),
    "PivotProjection": lambda: _adapted(sc.adapt.PivotProjection(n_pivots=10, n_components=3)),
    "PredictionFeature": lambda: _adapted(sc.adapt.PredictionFeature()),
    "SelfTraining": lambda: _few_labels(sc.labels.SelfTraining(max_rounds=3)),
    "SenseInducer": lambda: _senses(sc.SenseInducer(2, **GIVEN)),
    "SoftKMeans": lambda: _mixture(sc.SoftKMeans(3, **GIVEN), POINTS),
    "SourceOnly": lambda: _adapted(sc.adapt.SourceOnly()),
    "SourcePrior": lambda: _adapted(sc.adapt.SourcePrior()),
    "StoryModel": lambda: _story(sc.StoryModel(coins, **GIVEN)),
    "TargetOnly": lambda: _adapted(sc.adapt.TargetOnly()),
    "Translator": _translator,
    "Weighted": lambda: _adapted(sc.adapt.Weighted()),
    "Yarowsky": lambda: _few_labels(sc.labels.Yarowsky(max_rounds=5)),
}
"""What each estimator says of the data, by its name."""


def said(name: str) -> list[Any]:
    """What one estimator says; that three steps are few is no news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ESTIMATORS[name]()


def answers(names: Iterable[str] = ESTIMATORS) -> dict[str, str]:
    """A digest of all bits that each estimator says."""
    return {name: _digest(said(name)) for name in names}


def _learned(model: Any) -> list[Any]:
    return [model.fit_.params, model.fit_.trace.objective]


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """All of a nested value, each part with its kind, so that no two values look the same."""
    digest.update(type(value).__name__.encode())
    if isinstance(value, dict):
        for key, part in value.items():
            _add(digest, (key, part))
    elif isinstance(value, list | tuple):
        digest.update(str(len(value)).encode())
        for part in value:
            _add(digest, part)
    elif sparse.issparse(value):
        _add(digest, (value.shape, *sparse.find(value)))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.ndarray):
        _add(digest, value.tolist())
    elif isinstance(value, str | int | float | np.number | None):
        digest.update(repr(value).encode())
    elif hasattr(value, "__dict__"):
        _add(digest, dict(vars(value)))
    else:
        raise TypeError(f"no bytes of {type(value)}")
