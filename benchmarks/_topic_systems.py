"""Topic models of softcount and of other libraries, each as a curve: CPU seconds and topics.

A system is called with counts, the words of the columns, how many topics, and a seed; it yields
(CPU seconds so far, topics), the last being what it ends with. Libraries that are not installed are
left out, and said to be.
"""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.decomposition import NMF, LatentDirichletAllocation

import softcount as sc
from softcount import LDA, PLSA
from softcount.topics.gibbs import CollapsedTopics

Table = NDArray[np.float64]
Point = tuple[float, Table]
System = Callable[[csr_matrix, list[str], int, int], Iterator[Point]]
ALPHA, BETA, SWEEPS = 0.1, 0.01, 200
SOME_STEPS = {1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100}


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads, and the result."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def absent() -> list[str]:
    """Libraries that could be measured but are not installed."""
    return [name for name in ("tomotopy", "gensim") if importlib.util.find_spec(name) is None]


def of_softcount(make: Callable[[int, int], Any]) -> System:
    """A softcount model, made from the number of topics and a seed."""

    def system(x: csr_matrix, words: list[str], n_topics: int, seed: int) -> Iterator[Point]:
        points: list[Point] = []
        watching = 0.0
        began = time.process_time()

        def watch(state: Any) -> None:
            nonlocal watching
            now = time.process_time()
            if state.step in SOME_STEPS:
                points.append((now - began - watching, np.array(state.params["topics"])))
            watching += time.process_time() - now

        model = make(n_topics, seed).fit(x, on_step=watch)
        points.append((time.process_time() - began - watching, np.array(model.topics_)))
        yield from points

    return system


def collapsed(optimise: bool) -> System:
    """softcount's collapsed sampler; with ``optimise``, priors fitted every ten sweeps from 50."""

    def system(x: csr_matrix, words: list[str], n_topics: int, seed: int) -> Iterator[Point]:
        parts = (x.indptr, x.indices, x.data, x.shape[1])
        alpha = np.full(n_topics, ALPHA)
        spent, state = cpu(lambda: CollapsedTopics(*parts, alpha=alpha, beta=BETA, seed=seed))
        for sweep in range(1, SWEEPS + 1):
            spent += cpu(lambda sweep=sweep: state.sweep(seed * SWEEPS + sweep))[0]
            if optimise and sweep >= 50 and sweep % 10 == 0:
                spent += cpu(state.optimise)[0]
            if sweep % 25 == 0:
                yield spent, state.counts()["topics"] + state.beta

    return system


def nmf(steps: int, every: int = 10) -> System:
    """scikit-learn's NMF by multiplicative updates of the Kullback–Leibler divergence."""

    def system(x: csr_matrix, words: list[str], n_topics: int, seed: int) -> Iterator[Point]:
        settings: dict[str, Any] = {"solver": "mu", "beta_loss": "kullback-leibler", "tol": 0.0}
        model = NMF(n_topics, init="random", random_state=seed, max_iter=every, **settings)
        spent, rows = cpu(lambda: model.fit_transform(x))
        yield spent, model.components_
        model.set_params(init="custom")
        for _ in range(every, steps, every):
            went, rows = cpu(lambda w=rows, h=model.components_: model.fit_transform(x, W=w, H=h))
            spent += went
            yield spent, model.components_

    return system


def sklearn_lda_batch(x: csr_matrix, words: list[str], n_topics: int, seed: int) -> Iterator[Point]:
    """scikit-learn's variational Bayes; it cannot be watched, so every point is a run."""
    for steps in (3, 10):
        model = LatentDirichletAllocation(n_topics, max_iter=steps, random_state=seed)
        yield cpu(lambda model=model: model.fit(x))[0], model.components_


def sklearn_lda_online(
    x: csr_matrix, words: list[str], n_topics: int, seed: int
) -> Iterator[Point]:
    """scikit-learn's stochastic variational Bayes, 20 passes."""
    model = LatentDirichletAllocation(n_topics, total_samples=x.shape[0], random_state=seed)
    spent = 0.0
    for passes in range(1, 21):
        spent += cpu(lambda: model.partial_fit(x))[0]
        if passes in (1, 3, 5, 10, 20):
            yield spent, model.components_


def tomotopy_lda(x: csr_matrix, words: list[str], n_topics: int, seed: int) -> Iterator[Point]:
    """tomotopy's collapsed sampler, priors fitted every ten sweeps, as it does unless told not."""
    model = tomotopy_model(x, words, n_topics, seed)
    order = _places(model.used_vocabs, words)
    spent = 0.0
    for _ in range(0, SWEEPS, 25):
        spent += cpu(lambda: train(model, 25))[0]
        topics = np.array([model.get_topic_word_dist(k) for k in range(n_topics)], float)
        yield spent, topics[:, order]


def tomotopy_model(x: csr_matrix, words: list[str], n_topics: int, seed: int) -> Any:
    """A model of tomotopy with all documents, before its first sweep."""
    import tomotopy

    model = tomotopy.LDAModel(k=n_topics, alpha=ALPHA, eta=BETA, seed=seed + 1)
    names = np.array(words)
    for d in range(x.shape[0]):
        row = slice(x.indptr[d], x.indptr[d + 1])
        model.add_doc(np.repeat(names[x.indices[row]], x.data[row].astype(int)).tolist())
    train(model, 0)
    return model


def train(model: Any, sweeps: int) -> None:
    """Sweeps of tomotopy on one thread."""
    import tomotopy

    model.train(sweeps, workers=1, parallel=tomotopy.ParallelScheme.NONE)


def gensim_lda(x: csr_matrix, words: list[str], n_topics: int, seed: int) -> Iterator[Point]:
    """gensim's stochastic variational Bayes; every point is a run."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    logging.getLogger("gensim").setLevel(logging.ERROR)
    documents = list(Sparse2Corpus(x, documents_columns=False))
    names = dict(enumerate(words))
    for passes in (3, 20):
        seconds, model = cpu(
            lambda passes=passes: LdaModel(
                documents, n_topics, names, passes=passes, random_state=seed
            )
        )
        yield seconds, model.get_topics()


def _places(used: Any, words: list[str]) -> list[int]:
    """Where each of our words stands among a library's."""
    where = {word: i for i, word in enumerate(used)}
    return [where[word] for word in words]


ONE = sc.Local(threads=1)
SYSTEMS: dict[str, System] = {
    "softcount PLSA, random start": of_softcount(
        lambda k, seed: PLSA(
            k, init="random", engine=ONE, random_state=seed, learner=sc.EM(max_iter=50, tol=0.0)
        )
    ),
    "softcount LDA": of_softcount(lambda k, seed: LDA(k, engine=ONE, random_state=seed)),
    "softcount LDA, random start": of_softcount(
        lambda k, seed: LDA(k, init="random", engine=ONE, random_state=seed)
    ),
    "softcount LDA, random start, online, 3 passes": of_softcount(
        lambda k, seed: LDA(
            k,
            init="random",
            engine=ONE,
            random_state=seed,
            learner=sc.OnlineEM(max_iter=3, tol=0.0),
        )
    ),
    "softcount LDA, random start, variational Bayes": of_softcount(
        lambda k, seed: LDA(
            k,
            init="random",
            engine=ONE,
            random_state=seed,
            learner=sc.VariationalBayes(max_iter=50, tol=0.0),
        )
    ),
    "softcount collapsed Gibbs": collapsed(optimise=False),
    "softcount collapsed Gibbs, priors fitted": collapsed(optimise=True),
    "scikit-learn NMF, 20 steps": nmf(20),
    "scikit-learn NMF, 100 steps": nmf(100),
    "scikit-learn LDA, batch": sklearn_lda_batch,
    "scikit-learn LDA, online": sklearn_lda_online,
    "tomotopy": tomotopy_lda,
    "gensim": gensim_lda,
}


def available() -> dict[str, System]:
    """The systems whose library is installed."""
    gone = absent()
    return {name: system for name, system in SYSTEMS.items() if name not in gone}
