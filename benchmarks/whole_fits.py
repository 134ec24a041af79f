"""Whole fits, from text or matrix to fitted model, beside what users would take instead.

    documents  MultinomialMixture on 20 Newsgroups and Reuters, from counts and from text, beside
               ten lines of scipy.sparse (from text: of scikit-learn's CountVectorizer, too)
    points     KMeans beside scikit-learn's by Lloyd and by Elkan, GaussianMixture beside
               scikit-learn's, on 20 Newsgroups reduced by an SVD, and on simulated clusters
    topics     PLSA and LDA beside scikit-learn's NMF (Kullback–Leibler, multiplicative), its LDA,
               tomotopy and gensim, all to the held-out perplexity that is NMF's best
    tags       HMM on some 29,000 tokens of English Web Treebank, from a file of text, beside
               hmmlearn's CategoricalHMM(implementation="scaling")

Where nothing else is said all begin at the same parameters and take the same number of steps. Of
topic models the steps that are needed are found by a run that is not timed. Each fit is timed in a
process of its own with one thread, after a small one that loads libraries and kernels; systems
take turns. Figures are CPU seconds, best and median of all rounds, and the memory that the fit
added at its peak, in MB. Fits of softcount that take over a second are timed with two threads as
well, in seconds of wall time.

    python benchmarks/whole_fits.py [--rounds 3] [--scale 1.0] [--only documents,tags] [--json]

--scale 0.1 takes a tenth of all documents, points and sentences.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _costs import forget_peak, memory

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
LONG = 1.0  # fits of so many seconds are timed with two threads, too
NEAR = 1.002  # a perplexity as good as another is at most so many times as large
MOST_STEPS = 100  # in the search for the steps that reach a perplexity

Data = dict[str, Any]
Finish = Callable[[], float]
"""How good the model is, found out after the time was taken."""


@dataclass(frozen=True)
class System:
    """A library, and how it fits a model of one case.

    ``fit``      from data and the number of threads to how good it is
    ``library``  what has to be installed
    ``points``   of topic models: all numbers of steps, each with the perplexity reached
    """

    fit: Callable[[Data, int], Finish]
    library: str = "softcount"
    points: Callable[[Data], Iterator[tuple[int, float]]] | None = None


@dataclass(frozen=True)
class Case:
    """Data, and the systems that learn from them; the first is ours, the last its main peer."""

    data: Callable[[float], Data]
    part: Callable[[Data], Data]
    systems: dict[str, System]
    quality: str


# documents


def newsgroups(scale: float) -> Data:
    from _corpora import newsgroups_texts

    texts = newsgroups_texts().train
    return _documents(texts[: int(scale * len(texts))])


def reuters(scale: float) -> Data:
    from _corpora import _unescaped, lines

    rows = [line.split("\t") for line in lines("reuters21578/modapte.train.tsv.gz")]
    texts = [_unescaped(f"{title} {body}") for _, _, title, body in rows]
    order = np.random.default_rng(0).permutation(len(texts))
    return _documents([texts[i] for i in order[: int(scale * len(texts))]])


def _documents(texts: list[str]) -> Data:
    from sklearn.feature_extraction.text import CountVectorizer

    counts = CountVectorizer(stop_words="english", min_df=3).fit_transform(texts)
    return {"texts": texts, "counts": counts.astype(np.float64).tocsr(), "steps": 20}


def few_documents(data: Data) -> Data:
    return {**data, "texts": data["texts"][:200], "counts": data["counts"][:200], "steps": 3}


def of_documents(read: Callable[[float], Data], n_classes: int) -> Callable[[float], Data]:
    """Counts, and where all begin."""

    def data(scale: float) -> Data:
        found = read(scale)
        words = np.random.default_rng(0).dirichlet(np.ones(found["counts"].shape[1]), n_classes)
        return {**found, "texts": [], "words": words}

    return data


def of_texts(read: Callable[[float], Data], n_classes: int) -> Callable[[float], Data]:
    """Texts alone; each begins with random responsibilities."""
    return lambda scale: {**read(scale), "counts": np.zeros((0, 1)), "n_classes": n_classes}


def ours_of_documents(data: Data, threads: int) -> Finish:
    import softcount as sc

    counts, words = data["counts"], data["words"]
    learner = sc.EM(max_iter=data["steps"], tol=0.0)
    model = sc.MultinomialMixture(len(words), learner=learner, engine=sc.Local(threads))
    model.fit(counts, init={"weights": np.full(len(words), 1.0 / len(words)), "words": words})
    return lambda: float(model.trace_.log_likelihood[-1])


def plain_em(counts: Any, words: Any, weights: Any, steps: int) -> tuple[float, Any]:
    """EM of a mixture as one would write it with scipy.sparse: log-likelihood and labels."""
    from scipy.special import logsumexp

    transposed = counts.T.tocsr()
    for step in range(steps + 1):
        joint = counts @ np.log(words).T + np.log(weights)
        logs = logsumexp(joint, axis=1)
        if step < steps:
            shares = np.exp(joint - logs[:, None])
            weights = shares.mean(axis=0)
            words = (transposed @ shares).T + 0.1
            words /= words.sum(axis=1, keepdims=True)
    return float(logs.sum()), joint.argmax(axis=1)


def plain_of_documents(data: Data, threads: int) -> Finish:
    words = data["words"]
    log_likelihood, _ = plain_em(
        data["counts"], words, np.full(len(words), 1.0 / len(words)), data["steps"]
    )
    return lambda: log_likelihood


def ours_of_texts(data: Data, threads: int) -> Finish:
    import softcount as sc

    learner = sc.EM(max_iter=data["steps"], tol=0.0)
    model = sc.MultinomialMixture(
        data["n_classes"], init="random", learner=learner, engine=sc.Local(threads)
    )
    model.fit(data["texts"])
    return lambda: float(model.trace_.log_likelihood[-1])


def plain_of_texts(data: Data, threads: int) -> Finish:
    from sklearn.feature_extraction.text import CountVectorizer

    counts = CountVectorizer().fit_transform(data["texts"]).astype(np.float64)
    k = data["n_classes"]
    shares = np.random.default_rng(0).dirichlet(np.ones(k), counts.shape[0])
    words = (counts.T @ shares).T + 0.1
    words /= words.sum(axis=1, keepdims=True)
    log_likelihood, _ = plain_em(counts, words, shares.mean(axis=0), data["steps"])
    return lambda: log_likelihood


DOCUMENTS = {"softcount": System(ours_of_documents), "scipy": System(plain_of_documents, "scipy")}
TEXTS = {
    "softcount": System(ours_of_texts),
    "scikit-learn, scipy": System(plain_of_texts, "sklearn"),
}


# points


def reduced(dimensions: int, n_classes: int, steps: int) -> Callable[[float], Data]:
    """20 Newsgroups reduced by tf-idf and an SVD."""

    def data(scale: float) -> Data:
        from softcount.text.semantic_space import SemanticSpace

        counts = newsgroups(scale)["counts"]
        points = SemanticSpace.of(counts, dimensions, 0).points(counts)
        rng = np.random.default_rng(0)
        centres = points[rng.choice(len(points), n_classes, replace=False)]
        return {"x": points, "centres": centres, "steps": steps}

    return data


def simulated(n_classes: int, steps: int) -> Callable[[float], Data]:
    """50,000 points of 50 dimensions in 20 clusters that overlap."""

    def data(scale: float) -> Data:
        rng = np.random.default_rng(0)
        n = int(50_000 * scale)
        x = rng.normal(size=(20, 50))[rng.integers(20, size=n)] + 1.5 * rng.normal(size=(n, 50))
        return {"x": x, "centres": x[:n_classes].copy(), "steps": steps}

    return data


def few_points(data: Data) -> Data:
    return {**data, "x": data["x"][:2000], "steps": 2}


def ours_of_kmeans(data: Data, threads: int) -> Finish:
    import softcount as sc

    learner = sc.HardEM(max_iter=data["steps"], tol=0.0)
    model = sc.KMeans(len(data["centres"]), learner=learner, engine=sc.Local(threads))
    model.fit(data["x"], init={"means": data["centres"]})
    return lambda: float(model.inertia_)


def scikit_kmeans(algorithm: str) -> Callable[[Data, int], Finish]:
    def fit(data: Data, threads: int) -> Finish:
        from sklearn.cluster import KMeans

        centres = data["centres"]
        model = KMeans(
            len(centres),
            init=centres,
            n_init=1,
            max_iter=data["steps"],
            tol=0.0,
            algorithm=algorithm,
        ).fit(data["x"])
        return lambda: float(model.inertia_)

    return fit


def of_gaussians(covariance: str) -> dict[str, System]:
    def tables(data: Data) -> tuple[Any, Any]:
        k = len(data["centres"])
        variance = data["x"].var(axis=0)
        if covariance == "full":
            return np.tile(np.diag(variance), (k, 1, 1)), np.tile(np.diag(1 / variance), (k, 1, 1))
        return np.tile(variance, (k, 1)), np.tile(1 / variance, (k, 1))

    def ours(data: Data, threads: int) -> Finish:
        import softcount as sc

        k = len(data["centres"])
        start = {"means": data["centres"], "covariances": tables(data)[0]}
        model = sc.GaussianMixture(
            k,
            covariance=covariance,  # type: ignore[arg-type]
            learner=sc.EM(max_iter=data["steps"], tol=0.0),
            engine=sc.Local(threads),
        )
        model.fit(data["x"], init={**start, "weights": np.full(k, 1.0 / k)})
        return lambda: float(model.trace_.log_likelihood[-1]) / len(data["x"])

    def theirs(data: Data, threads: int) -> Finish:
        from sklearn.mixture import GaussianMixture

        k = len(data["centres"])
        model = GaussianMixture(
            k,
            covariance_type=covariance,
            means_init=data["centres"],
            weights_init=np.full(k, 1.0 / k),
            precisions_init=tables(data)[1],
            max_iter=data["steps"],
            tol=0.0,
            init_params="random_from_data",
        ).fit(data["x"])
        return lambda: float(model.score(data["x"]))

    return {"softcount": System(ours), "scikit-learn": System(theirs, "sklearn")}


KMEANS = {
    "softcount": System(ours_of_kmeans),
    "scikit-learn, Elkan": System(scikit_kmeans("elkan"), "sklearn"),
    "scikit-learn, Lloyd": System(scikit_kmeans("lloyd"), "sklearn"),
}


# topics


def clusters(n_topics: int) -> Callable[[float], Data]:
    """20 Newsgroups as for the study of topic models, with counts that are held out."""

    def data(scale: float) -> Data:
        from _corpora import newsgroups_clusters

        posts = newsgroups_clusters()
        n = int(scale * posts.train.shape[0])
        x, held_out = posts.train[:n], posts.test[: int(scale * posts.test.shape[0])]
        seen = np.flatnonzero(np.asarray(x.sum(axis=0)).ravel())  # all words, unless scaled down
        x, held_out = x[:, seen].astype(np.float64).tocsr(), held_out[:, seen].tocsr()
        return {"x": x, "held_out": held_out, "k": n_topics}

    return data


def few_posts(data: Data) -> Data:
    return {**data, "x": data["x"][:300], "held_out": data["held_out"][:50], "steps": 2}


def perplexity(data: Data, topics: Any) -> float:
    from softcount.metrics import completion_perplexity

    return float(completion_perplexity(topics, data["held_out"]))


def of_topics(name: str) -> System:
    def make(data: Data, steps: int, threads: int) -> Any:
        import softcount as sc

        learner = sc.EM(max_iter=steps, tol=0.0)
        model = getattr(sc, name.partition(" ")[0])
        return model(
            data["k"],
            learner=learner,
            engine=sc.Local(threads),
            dtype="float32" if "float32" in name else "float64",
        )

    def fit(data: Data, threads: int) -> Finish:
        model = make(data, data["steps"], threads).fit(data["x"])
        return lambda: perplexity(data, model.topics_)

    def points(data: Data) -> Iterator[tuple[int, float]]:
        found: list[tuple[int, float]] = []

        def look(state: Any) -> bool:
            found.append((state.step, perplexity(data, state.params["topics"])))
            return found[-1][1] <= data.get("goal", 0.0)

        make(data, MOST_STEPS, 1).fit(data["x"], on_step=look)
        yield from found[1:]  # a fit takes a step at least

    return System(fit, points=points)


def nmf(data: Data, steps: int, **rows: Any) -> tuple[Any, Any]:
    from sklearn.decomposition import NMF

    settings: dict[str, Any] = {"solver": "mu", "beta_loss": "kullback-leibler", "tol": 0.0}
    settings["init"] = "custom" if rows else "random"
    model = NMF(data["k"], random_state=0, max_iter=steps, **settings)
    return model.fit_transform(data["x"], **rows), model.components_


def fit_nmf(data: Data, threads: int) -> Finish:
    _, topics = nmf(data, data["steps"])
    return lambda: perplexity(data, topics)


def points_of_nmf(data: Data) -> Iterator[tuple[int, float]]:
    rows, topics = nmf(data, 2)
    for steps in range(4, MOST_STEPS + 1, 2):
        rows, topics = nmf(data, 2, W=rows, H=topics)
        yield steps, perplexity(data, topics)


def lda_of_scikit_learn(data: Data, steps: int) -> Any:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(data["k"], max_iter=steps, random_state=0)
    return model.fit(data["x"]).components_


def points_of_lda(data: Data) -> Iterator[tuple[int, float]]:
    for steps in (1, 2, 3, 5, 8, 12):
        yield steps, perplexity(data, lda_of_scikit_learn(data, steps))


def fit_lda(data: Data, threads: int) -> Finish:
    topics = lda_of_scikit_learn(data, data["steps"])
    return lambda: perplexity(data, topics)


def tomotopy_model(data: Data) -> Any:
    import tomotopy

    x = data["x"]
    model = tomotopy.LDAModel(k=data["k"], alpha=0.1, eta=0.01, seed=1)
    names = np.array([str(w) for w in range(x.shape[1])])
    for d in range(x.shape[0]):
        row = slice(x.indptr[d], x.indptr[d + 1])
        model.add_doc(np.repeat(names[x.indices[row]], x.data[row].astype(int)).tolist())
    return model


def sweep(model: Any, sweeps: int) -> None:
    import tomotopy

    model.train(sweeps, workers=1, parallel=tomotopy.ParallelScheme.NONE)


def topics_of_tomotopy(data: Data, model: Any) -> Any:
    topics = np.full((data["k"], data["x"].shape[1]), 1e-12)
    topics[:, [int(w) for w in model.used_vocabs]] = [
        model.get_topic_word_dist(k) for k in range(data["k"])
    ]
    return topics


def fit_tomotopy(data: Data, threads: int) -> Finish:
    model = tomotopy_model(data)
    sweep(model, data["steps"])
    return lambda: perplexity(data, topics_of_tomotopy(data, model))


def points_of_tomotopy(data: Data) -> Iterator[tuple[int, float]]:
    model = tomotopy_model(data)
    for sweeps in range(5, 4 * MOST_STEPS, 5):
        sweep(model, 5)
        yield sweeps, perplexity(data, topics_of_tomotopy(data, model))


def topics_of_gensim(data: Data, passes: int) -> Any:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    logging.getLogger("gensim").setLevel(logging.ERROR)
    documents = list(Sparse2Corpus(data["x"], documents_columns=False))
    names = {w: str(w) for w in range(data["x"].shape[1])}
    return LdaModel(documents, data["k"], names, passes=passes, random_state=0).get_topics()


def fit_gensim(data: Data, threads: int) -> Finish:
    topics = topics_of_gensim(data, data["steps"])
    return lambda: perplexity(data, topics)


def points_of_gensim(data: Data) -> Iterator[tuple[int, float]]:
    for passes in (1, 3, 8):
        yield passes, perplexity(data, topics_of_gensim(data, passes))


def topic_systems(slow: bool) -> dict[str, System]:
    """Our systems and their peers, those that take minutes only if ``slow``."""
    slow_ones = {
        "scikit-learn LDA": System(fit_lda, "sklearn", points_of_lda),
        "gensim": System(fit_gensim, "gensim", points_of_gensim),
    }
    return {
        "PLSA": of_topics("PLSA"),
        "LDA": of_topics("LDA"),
        "PLSA float32": of_topics("PLSA float32"),
        "tomotopy": System(fit_tomotopy, "tomotopy", points_of_tomotopy),
        **(slow_ones if slow else {}),
        "scikit-learn NMF": System(fit_nmf, "sklearn", points_of_nmf),
    }


# tags


def treebank(n_states: int) -> Callable[[float], Data]:
    """The first 29,000 tokens of English Web Treebank, a sentence a line, and where all begin."""

    def data(scale: float) -> Data:
        from _corpora import lines

        text, words, n = [], [], 0
        for line in lines("ud/en_ewt-ud-train.conllu.gz"):
            if line[:1].isdigit() and re.match(r"\d+\t", line):
                words.append(line.split("\t")[1].lower().replace(" ", "_"))
            elif not line and words:
                text.append(" ".join(words))
                n += len(words)
                words = []
            if n >= 29_000 * scale:
                break
        vocabulary = len({word for line in text for word in line.split()})
        rng = np.random.default_rng(0)
        start = {
            "start": rng.dirichlet(np.full(n_states, 5.0), 1),
            "transitions": rng.dirichlet(np.full(n_states, 5.0), n_states),
            "emissions": rng.dirichlet(np.full(vocabulary, 5.0), n_states),
        }
        return {"text": "\n".join(text) + "\n", "start": start, "steps": 10}

    return data


def few_sentences(data: Data) -> Data:
    text = "\n".join(data["text"].split("\n")[:100]) + "\n"
    n = len(set(text.split()))
    emissions = data["start"]["emissions"][:, :n]
    emissions = emissions / emissions.sum(axis=1, keepdims=True)
    return {**data, "text": text, "start": {**data["start"], "emissions": emissions}, "steps": 2}


def ours_of_tags(data: Data, threads: int) -> Finish:
    import softcount as sc
    from softcount.text.sequences import read_sequences

    model = sc.HMM(
        len(data["start"]["transitions"]),
        stop=False,
        smoothing=0.0,
        init=data["start"],
        learner=sc.EM(max_iter=data["steps"], tol=0.0),
        engine=sc.Local(threads),
    )
    model.fit(read_sequences(data["file"]))
    return lambda: float(model.trace_.log_likelihood[-1])


def hmmlearn_of_tags(data: Data, threads: int) -> Finish:
    from hmmlearn.hmm import CategoricalHMM

    text = [line.split() for line in Path(data["file"]).read_text().splitlines()]
    numbers: dict[str, int] = {}
    tokens = np.array([numbers.setdefault(w, len(numbers)) for words in text for w in words])
    lengths = [len(words) for words in text]
    start = data["start"]
    k, v = start["emissions"].shape
    model = CategoricalHMM(
        k, implementation="scaling", n_iter=data["steps"], tol=-np.inf, init_params=""
    )
    model.n_features = v
    model.startprob_, model.transmat_ = start["start"][0], start["transitions"]
    model.emissionprob_ = start["emissions"]
    model.fit(tokens[:, None], lengths)
    return lambda: float(model.score(tokens[:, None], lengths))


TAGS = {"softcount": System(ours_of_tags), "hmmlearn": System(hmmlearn_of_tags, "hmmlearn")}


# all cases

CASES: dict[str, Case] = {}
for corpus, read in (("20NG", newsgroups), ("Reuters", reuters)):
    for k in (20, 100):
        data, texts = of_documents(read, k), of_texts(read, k)
        likelihood = "log-likelihood"
        CASES[f"documents {corpus}, counts, K={k}"] = Case(
            data, few_documents, DOCUMENTS, likelihood
        )
        CASES[f"documents {corpus}, texts, K={k}"] = Case(texts, few_documents, TEXTS, likelihood)
for k in (20, 100):
    CASES[f"points k-means 20NG, D=100, K={k}"] = Case(
        reduced(100, k, 30), few_points, KMEANS, "inertia"
    )
    CASES[f"points k-means simulated, D=50, K={k}"] = Case(
        simulated(k, 30), few_points, KMEANS, "inertia"
    )
for shape in ("full", "diag"):
    CASES[f"points gaussian {shape} 20NG, D=50, K=20"] = Case(
        reduced(50, 20, 10), few_points, of_gaussians(shape), "mean log-likelihood"
    )
    CASES[f"points gaussian {shape} simulated, D=50, K=20"] = Case(
        simulated(20, 10), few_points, of_gaussians(shape), "mean log-likelihood"
    )
for k in (20, 100):
    CASES[f"topics 20NG, K={k}"] = Case(
        clusters(k), few_posts, topic_systems(k == 20), "held-out perplexity"
    )
for k in (17, 45):
    CASES[f"tags EWT, K={k}"] = Case(treebank(k), few_sentences, TAGS, "log-likelihood")


# measuring


def one(folder: Path, case: str, system: str, threads: int) -> dict[str, float]:
    """Fit in this process, and say what it cost."""
    warnings.simplefilter("ignore")  # none of the runs is to converge
    data, what = load(folder), CASES[case].systems[system]
    small = CASES[case].part(data)
    for name, one in (("small", small), ("text", data)):
        if "text" in one:
            one["file"] = str(folder / f"{name}.txt")
            Path(one["file"]).write_text(one["text"])
    what.fit(small, threads)()
    data = {**data, **load_steps(folder, system)}
    forget_peak()
    before = memory("VmRSS")
    cpu, wall = time.process_time(), time.perf_counter()
    finish = what.fit(data, threads)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = memory("VmHWM") - before
    return {"cpu": cpu, "wall": wall, "memory": peak, "quality": finish()}


def load(folder: Path) -> Data:
    loaded: Data = pickle.loads((folder / "data").read_bytes())
    return loaded


def load_steps(folder: Path, system: str) -> Data:
    """The steps that a system needs to be as good as others, where they differ."""
    path = folder / "steps.json"
    return {"steps": json.loads(path.read_text())[system]} if path.is_file() else {}


def apart(folder: Path, case: str, system: str, threads: int) -> dict[str, float]:
    """The same in a process of its own."""
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, __file__, "--one", str(folder), case, system, str(threads)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{case}: {system} failed:\n{done.stderr[-2000:]}")
    measured: dict[str, float] = json.loads(done.stdout.split("\n")[-2])
    return measured


def find_steps(data: Data, systems: dict[str, System]) -> dict[str, int]:
    """The steps that each system needs for NMF's best perplexity; those that never reach it are
    left out."""
    from threadpoolctl import threadpool_limits

    *others, peer = systems
    with threadpool_limits(1):
        curve = list(systems[peer].points(data))  # type: ignore[misc]
        goal = NEAR * min(value for _, value in curve)
        steps = {peer: next(n for n, value in curve if value <= goal)}
        for name in others:
            for n, value in systems[name].points({**data, "goal": goal}):  # type: ignore[misc]
                if value <= goal:
                    steps[name] = n
                    break
            else:
                print(f"  {name} does not get to a perplexity of {goal:.0f}", file=sys.stderr)
    return {name: steps[name] for name in systems if name in steps}


def measure(name: str, case: Case, rounds: int, scale: float) -> dict[str, dict[str, float]]:
    """Figures of each system in a case."""
    print(f"{name} …", file=sys.stderr, flush=True)
    systems = {name: one for name, one in case.systems.items() if find_spec(one.library)}
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as where:
        folder, data = Path(where), case.data(scale)
        (folder / "data").write_bytes(pickle.dumps(data))
        if any(system.points for system in systems.values()):
            steps = find_steps(data, systems)
            (folder / "steps.json").write_text(json.dumps(steps))
            systems = {name: systems[name] for name in steps}
        del data
        found: dict[str, list[dict[str, float]]] = {system: [] for system in systems}
        for _ in range(rounds):
            for system in systems:
                found[system].append(apart(folder, name, system, 1))
        for system, runs in found.items():
            figures[system] = {
                "cpu": min(run["cpu"] for run in runs),
                "median": median(run["cpu"] for run in runs),
                "memory": median(run["memory"] for run in runs),
                "quality": runs[0]["quality"],
            }
            if systems[system].library == "softcount":
                figures[system]["wall"] = min(run["wall"] for run in runs)
        for system, own in figures.items():
            if own.get("wall", 0.0) > LONG:
                pairs = [[apart(folder, name, system, n)["wall"] for n in (1, 2)] for _ in "abc"]
                single, double = (min(column) for column in zip(*pairs, strict=True))
                own["two threads"] = single / double
    ours = [system for system, own in figures.items() if "wall" in own]
    for system in figures:
        for own in ours:
            if system not in ours:
                figures[own][f"times faster than {system}"] = (
                    figures[system]["cpu"] / figures[own]["cpu"]
                )
    return figures


def show(name: str, case: Case, figures: dict[str, dict[str, float]]) -> None:
    print(f"\n{name}\n{'':24}{'best, s':>9} {'median':>8} {'MB':>7}  {case.quality}")
    for system, own in figures.items():
        print(
            f"  {system:22}{own['cpu']:9.3f} {own['median']:8.3f} {own['memory']:7.0f}  "
            f"{own['quality']:,.6g}"
        )
    for system, own in figures.items():
        for title, value in own.items():
            if title.startswith(("times", "two")):
                print(f"  {system}: {title} {value:.2f}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="the share of all data")
    parser.add_argument("--only", default="", help="cases whose names have one of these, by commas")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        folder, case, system, threads = options.one
        print(json.dumps(one(Path(folder), case, system, int(threads))))
        return
    for library in ("hmmlearn", "tomotopy", "gensim"):
        if find_spec(library) is None:
            print(f"left out: {library} is not installed (pip install {library})", file=sys.stderr)
    wanted = options.only.split(",")
    figures = {}
    for name, case in CASES.items():
        if any(part.strip() in name for part in wanted):
            figures[name] = measure(name, case, options.rounds, options.scale)
            if not options.json:
                show(name, case, figures[name])
    if options.json:
        print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
