"""Small worlds: data, an estimator for them, and what enumeration says of its tables.

Each is a function of random numbers. Tables are read as arrays; no figure comes from src.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import softcount as sc
from tests.oracles import apart


@dataclass
class World:
    """What to fit, and how to enumerate it.

    ``model``    takes a learner, and whether that learner needs priors
    ``items``    (fitted model, tables) → log p(x, z) of all hidden values of all items
    ``known``    what `fit` and `decompose` are told beside the data
    ``weights``  how much each item counts
    ``priors``   whether there is a prior even if the learner needs none
    ``items_of`` the same as ``items``, of other data
    """

    model: Callable[[Any, bool], Any]
    data: Any
    items: Callable[[Any, Any], apart.Items]
    known: dict[str, Any] = field(default_factory=dict)
    weights: Any = None
    priors: bool = False
    items_of: Any = None


def counts(rng: Any, n: int = 4, V: int = 3, longest: int = 3) -> Any:
    lengths = rng.integers(1, longest + 1, n)
    found = np.array([rng.multinomial(m, np.full(V, 1 / V)) for m in lengths])
    found[0, found.sum(axis=0) == 0] = 1  # every word occurs
    return found


def smooth(needs: bool, rng: Any) -> dict[str, float]:
    return {"smoothing": float(rng.uniform(0.1, 1.0)) if needs else 0.0}


# stories
_which, _flip = sc.table("which"), sc.table("flip")


@sc.story
def _tosses(item: str) -> Any:
    for z in "AB":
        yield _which[z], *(_flip[z, x] for x in item)


def story(rng: Any) -> World:
    data = ["".join(rng.choice(list("HT"), rng.integers(1, 4))) for _ in range(4)] + ["HT"]

    def items(model: Any, params: Any) -> apart.Items:
        read = model.core_.view_params(params).to_dict()
        return [
            apart.log(
                [read["which"][z] * np.prod([read["flip"][z][x] for x in item]) for z in "AB"]
            )
            for item in data
        ]

    def made(learner: Any, needs: bool) -> Any:
        prior = float(rng.uniform(0.2, 2.0)) if needs else 1.0
        return sc.StoryModel(_tosses, learner=learner, prior=prior, random_state=1)

    return World(made, data, items)


# mixtures
def documents(rng: Any, **more: Any) -> World:
    x, K = counts(rng), int(rng.integers(2, 4))
    weights = rng.uniform(0.2, 3.0, len(x)) if rng.random() < 0.5 else None

    def items(model: Any, params: Any) -> apart.Items:
        words = params["words"]
        logs = apart.coins(x, words, K) if more.get("bernoulli") else apart.bags(x, words)
        return apart.classes(params["weights"], logs)

    def made(learner: Any, needs: bool) -> Any:
        given = {**smooth(needs, rng), **more}
        return sc.MultinomialMixture(K, init="random", learner=learner, **given)

    known = {} if weights is None else {"sample_weight": weights}
    return World(made, x, items, known, weights)


def presence(rng: Any) -> World:
    return documents(rng, bernoulli=True)


def process(rng: Any) -> World:
    x = counts(rng)

    def items(model: Any, params: Any) -> apart.Items:
        return apart.classes(params["weights"], apart.bags(x, params["words"]))

    def made(learner: Any, needs: bool) -> Any:
        given = smooth(needs, rng)
        return sc.DirichletProcessMixture(3, init="random", learner=learner, **given)

    return World(made, x, items)


def labelled(rng: Any) -> World:
    x = np.vstack([counts(rng, 5), np.eye(3, dtype=int)])
    y = np.where(rng.random(len(x)) < 0.5, rng.integers(0, 2, len(x)), -1)
    y[:2] = [0, 1]
    share, m = float(rng.uniform(0.2, 1.0)), int(rng.integers(1, 3))
    bernoulli = bool(rng.random() < 0.3)

    def items(model: Any, params: Any) -> apart.Items:
        words = params["words"]
        of = apart.coins(x, words, 2 * m) if bernoulli else apart.bags(x, words)
        every = apart.classes(params["weights"], of)
        return [
            logs if label < 0 else logs[m * label : m * (label + 1)]
            for logs, label in zip(every, y, strict=True)
        ]

    def made(learner: Any, needs: bool) -> Any:
        return sc.NaiveBayes(
            n_components=m,
            unlabelled_weight=share,
            smoothing=0.3,
            bernoulli=bernoulli,
            learner=learner,
        )

    return World(made, x, items, {"y": y}, np.where(y < 0, share, 1.0), priors=True)


def annotators(rng: Any) -> World:
    n, A, L = 5, 3, 2
    said = rng.integers(0, L, (n, A))
    said[rng.random((n, A)) < 0.3] = -1
    said[0], said[1] = 0, 1
    truth = np.full(n, -1)
    if rng.random() < 0.5:
        truth[2] = rng.integers(0, L)

    def items(model: Any, params: Any) -> apart.Items:
        table = apart.log(params["confusion"]).reshape(A, L, L)
        found = []
        for row, label in zip(said, truth, strict=True):
            logs = apart.log(np.ravel(params["weights"])).copy()
            for a in range(A):
                if row[a] >= 0:
                    logs += table[a, :, row[a]]
            found.append(logs if label < 0 else logs[[label]])
        return found

    def made(learner: Any, needs: bool) -> Any:
        return sc.Annotators(smoothing=0.4, init="majority", learner=learner)

    known = {"y": truth} if (truth >= 0).any() else {}
    return World(made, said, items, known, priors=True)


def points(rng: Any, kind: str = "full", cls: Any = None, **more: Any) -> World:
    D = int(rng.integers(1, 3)) if kind == "identity" else 2
    x = rng.normal(size=(7, D)) + 2.0 * rng.integers(0, 2, (7, 1))
    variance = more.get("variance", 1.0) if kind == "identity" else None

    def items(model: Any, params: Any) -> apart.Items:
        centred = x - x.mean(axis=0)
        return apart.classes(params["weights"], apart.bells(centred, params["points"], variance))

    def made(learner: Any, needs: bool) -> Any:
        own = cls or sc.GaussianMixture
        given = more if kind == "identity" else {**more, "covariance": kind, "floor": 1e-2}
        return own(2, learner=learner, init="random", random_state=2, **given)

    return World(made, x, items, priors=cls is sc.DirichletProcessGaussianMixture)


def gaussians(kind: str) -> Callable[[Any], World]:
    return lambda rng: points(rng, kind)


def k_means(rng: Any) -> World:
    return points(rng, "identity", sc.KMeans)


def soft_k_means(rng: Any) -> World:
    return points(rng, "identity", sc.SoftKMeans, variance=float(rng.uniform(0.3, 2.0)))


def gaussian_process(rng: Any) -> World:
    return points(rng, "diag", sc.DirichletProcessGaussianMixture)


# topics
def topics(rng: Any, kind: Any = None) -> World:
    x = counts(rng, 3, 3, 4)

    def items(model: Any, params: Any) -> apart.Items:
        return apart.topics(x, params["documents"], params["topics"])

    def made(learner: Any, needs: bool) -> Any:
        if kind is sc.PLSA and not needs:
            return sc.PLSA(2, init="random", short_runs=0, learner=learner, random_state=3)
        given = {name: float(rng.uniform(0.1, 1)) for name in ("documents", "words")}
        return sc.LDA(
            2, init="random", short_runs=0, learner=learner, random_state=3, smoothing=given
        )

    return World(made, x, items, priors=kind is not sc.PLSA)


def plsa(rng: Any) -> World:
    return topics(rng, sc.PLSA)


def known_topics(rng: Any) -> World:
    world = topics(rng)
    world.known = {"labels": [int(rng.integers(0, 2)), -1, [0, 1]]}
    label = world.known["labels"][0]
    free = world.items

    def items(model: Any, params: Any) -> apart.Items:
        first = world.data[:1]
        rest = free(model, params)[1:]
        row = np.zeros((1, 2))
        row[0, label] = params["documents"][0, label]
        only = apart.topics(first, row, params["topics"])[0]
        return [only[np.isfinite(only)], *rest]

    world.items = items
    return world


# alignment
def as_bitext(rng: Any, cls: Any, place: Callable[[Any, Any], Any], **more: Any) -> World:
    null = bool(rng.random() < 0.6)
    pairs = [
        (
            list(rng.choice(list("abc"), rng.integers(1, 4))),
            list(rng.choice(list("xyz"), rng.integers(1, 4))),
        )
        for _ in range(3)
    ]
    links: Any = None
    if rng.random() < 0.4:
        links = [None, [(int(rng.integers(0, len(pairs[1][0]))), 0)], None]

    sizes = {(len(e), len(f)) for e, f in pairs}

    def items_of(some: Any, known: Any = None) -> Any:
        return lambda model, params: enumerate_pairs(
            model, params, some, place(params, sizes)(null), null, known
        )

    def made(learner: Any, needs: bool) -> Any:
        given = {**smooth(needs, rng), **more}
        return cls(null=null, init="random", learner=learner, random_state=4, **given)

    data = [(" ".join(e), " ".join(f)) for e, f in pairs]
    known = {} if links is None else {"links": links}
    return World(made, data, items_of(pairs, links), known, items_of=items_of)


def enumerate_pairs(
    model: Any, params: Any, pairs: Any, place: Any, null: bool, links: Any = None
) -> apart.Items:
    """By the model's lexicon: which entry of the table is which pair of words."""
    lexicon, source, target = model._lexicon, model.source_words_, model.target_words_
    entries = {}
    names = [*source, None]
    for row, (a, b) in enumerate(zip(lexicon.indptr, lexicon.indptr[1:], strict=False)):
        for entry in range(a, b):
            word = target[int(lexicon.targets[entry])]
            entries[word, names[row]] = float(params["translation"][entry])
    return apart.alignments(pairs, lambda f, e: entries.get((f, e), 1e-9), place, null, links)


def ibm1(rng: Any) -> World:
    return as_bitext(rng, sc.align.IBM1, lambda params, sizes: apart.even_places)


def ibm2(rng: Any) -> World:
    def place(params: Any, sizes: Any) -> Any:
        return lambda null: apart.tabled_places(params["places"], sizes, null)

    return as_bitext(rng, sc.align.IBM2, place, warm_up=0)


def diagonal(rng: Any) -> World:
    p_null = float(rng.uniform(0.05, 0.5))

    def place(params: Any, sizes: Any) -> Any:
        tension = float(params["places"][0])
        return lambda null: apart.diagonal_places(tension, p_null if null else 0.0)

    return as_bitext(rng, sc.align.Diagonal, place, p_null=p_null)


def hmm_aligner(rng: Any) -> World:
    p_null, reach = float(rng.uniform(0.05, 0.5)), int(rng.integers(1, 4))

    def place(params: Any, sizes: Any) -> Any:
        return lambda null: apart.jumping_places(params["jumps"], reach, p_null if null else 0.0)

    return as_bitext(rng, sc.align.HMMAligner, place, p_null=p_null, max_jump=reach, warm_up=0)


# chains
def chain(rng: Any, order: int = 1, **more: Any) -> World:
    K, stop = 2, bool(rng.random() < 0.5)
    sentences = [list(rng.choice(list("abc"), rng.integers(1, 5))) for _ in range(3)]
    sentences.append(["c", "a", "b"])
    weights = rng.uniform(0.3, 2.0, len(sentences)) if rng.random() < 0.5 else None
    tags: Any = None
    if rng.random() < 0.4:
        tags = [None, ["N", *[None] * (len(sentences[1]) - 1)], None, ["V", None, "N"]]

    def allowed(s: int, n: int) -> Any:
        tag = None if tags is None or tags[s] is None else tags[s][n]
        return None if tag is None else {"NV".index(tag)}

    def items(model: Any, params: Any) -> apart.Items:
        where = {word: w for w, word in enumerate(model.words_)}
        table = np.ravel(params["emissions"])[: K * len(where)].reshape(K, -1)
        assert not tags or list(model.states_) == ["N", "V"]
        return apart.chains(
            sentences,
            params["start"],
            params["transitions"],
            params.get("second"),
            lambda word: apart.log(table[:, where[word]]),
            stop,
            allowed,
        )

    def made(learner: Any, needs: bool) -> Any:
        given = {**smooth(needs, rng), **more}
        return sc.HMM(
            K, order=order, stop=stop, init="random", learner=learner, random_state=5, **given
        )

    known: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
    if tags is not None:
        known["tags"] = tags
    return World(made, sentences, items, known, weights)


def chain_of_pairs(rng: Any) -> World:
    return chain(rng, 2)


def chain_of_features(rng: Any) -> World:
    world = chain(rng, emissions="features")
    world.priors = True
    return world


def chain_of_points(rng: Any) -> World:
    stop = bool(rng.random() < 0.5)
    kind = str(rng.choice(["full", "diag", "spherical", "tied"]))
    walks = [rng.normal(size=(n, 2)) for n in (3, 2, 4)]
    every = np.concatenate(walks)

    def items(model: Any, params: Any) -> apart.Items:
        def emit(x: Any) -> Any:
            return apart.bells((x - every.mean(axis=0))[None], params["emissions"])[0]

        return apart.chains(walks, params["start"], params["transitions"], None, emit, stop)

    def made(learner: Any, needs: bool) -> Any:
        return sc.GaussianHMM(
            2,
            covariance=kind,
            stop=stop,
            floor=1e-2,
            init="random",
            learner=learner,
            random_state=6,
            **smooth(needs, rng),
        )

    return World(made, walks, items)


# grammars
def grammar(rng: Any) -> World:
    K, T = 2, 2
    sentences = [list(rng.choice(list("ab"), rng.integers(1, 4))) for _ in range(2)] + [["a", "b"]]

    def items(model: Any, params: Any) -> apart.Items:
        names = list(model.core_.vocabulary.words)
        n = K + T
        rules: apart.Rules = {
            k: [
                ((b, c), float(apart.log(params["rules"][k, b * n + c])))
                for b in range(n)
                for c in range(n)
            ]
            for k in range(K)
        }
        for t in range(T):
            rules[K + t] = [
                ((word,), float(apart.log(params["words"][t, w]))) for w, word in enumerate(names)
            ]
        root = {a: float(apart.log(params["root"][0, a])) for a in range(n)}
        return apart.trees(sentences, root, rules)

    def made(learner: Any, needs: bool) -> Any:
        return sc.PCFG(K, T, init="random", learner=learner, random_state=7, **smooth(needs, rng))

    return World(made, sentences, items)


RULES = """
S -> S S [0.3]
S -> A B [0.4]
S -> A S B [0.2]
S -> 'x' [0.1]
A -> 'x' [0.5]
A -> 'y' [0.5]
B -> 'y' [0.3]
B -> S A [0.7]
"""


def rules(rng: Any) -> World:
    pool = ["x y", "x", "x y x y", "y y x", "y x y y", "x x y", "x x x"]
    sentences = [pool[n].split() for n in rng.choice(len(pool), 4, replace=False)]

    def items(model: Any, params: Any) -> apart.Items:
        own = model.core_.rules
        table: apart.Rules = {}
        for rule, p in zip(own.rules, params["rules"], strict=True):
            table.setdefault(rule.lhs, []).append((tuple(rule.rhs), float(apart.log(p))))
        root = {s: float(apart.log(p)) for s, p in zip(own.index, params["root"][0], strict=False)}
        return apart.trees(sentences, {s: p for s, p in root.items() if np.isfinite(p)}, table)

    def made(learner: Any, needs: bool) -> Any:
        return sc.PCFG.from_rules(
            RULES, init="random", learner=learner, random_state=8, **smooth(needs, rng)
        )

    return World(made, sentences, items)


WORLDS: dict[str, Callable[[Any], World]] = {
    "StoryModel": story,
    "MultinomialMixture": documents,
    "MultinomialMixture, bernoulli": presence,
    "DirichletProcessMixture": process,
    "NaiveBayes": labelled,
    "Annotators": annotators,
    **{
        f"GaussianMixture, {kind}": gaussians(kind)
        for kind in ("full", "tied", "diag", "spherical")
    },
    "KMeans": k_means,
    "SoftKMeans": soft_k_means,
    "DirichletProcessGaussianMixture": gaussian_process,
    "PLSA": plsa,
    "LDA": topics,
    "LDA, labels": known_topics,
    "IBM1": ibm1,
    "IBM2": ibm2,
    "Diagonal": diagonal,
    "HMMAligner": hmm_aligner,
    "HMM": chain,
    "HMM, order 2": chain_of_pairs,
    "HMM, features": chain_of_features,
    "GaussianHMM": chain_of_points,
    "PCFG": grammar,
    "PCFG, rules": rules,
}
