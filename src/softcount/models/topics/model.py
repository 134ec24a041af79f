"""Topic models as estimators: PLSA, and LDA, which is PLSA with priors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.preprocessing import normalize

from softcount.corpus.bags import Bags
from softcount.errors import LearnerError
from softcount.families import Categorical
from softcount.models.base import Estimator, FitOptions, all_or_nothing
from softcount.models.reading import ReadsWords, telling
from softcount.models.settings import check_number, check_whole
from softcount.models.topics.core import TopicCore, fold_in
from softcount.models.topics.documents import Documents
from softcount.models.topics.rows import RowPrior
from softcount.types import Array, Params, Update

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner

INNER = 5
"""How often a mini-batch's documents are looked at before its words are counted."""


class TopicModel(ReadsWords, TransformerMixin, Estimator):  # type: ignore[misc]
    """What PLSA and LDA share."""

    core_: TopicCore
    n_topics: int

    @abstractmethod
    def priors(self) -> tuple[float, float]:
        """What is added to every count of a topic in a document, and of a word in a topic."""

    # learning
    def fit(  # type: ignore[override]  # as scikit-learn has it
        self, X: Any, y: Any = None, *, init: Any = None, **options: Unpack[FitOptions]
    ) -> Self:
        """Learn from documents: texts, lists of words, or counts; ``y`` is not looked at.

        For the other options see `softcount.models.base.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self.bind(X)
            return self.learn(core, corpus, init, **options)

    def bind(self, X: Any) -> tuple[TopicCore, Documents]:
        """The core and the corpus."""
        self._check_settings()
        check_whole("n_topics", self.n_topics)
        bags = self.read(X, first=True)
        return self._made_core(bags.n_words), Documents(bags)

    def bind_more(self, core: TopicCore, X: Any) -> Documents:
        return Documents(self.read(X, first=False))

    def _made_core(self, n_words: int) -> TopicCore:
        word: Update = "maximise" if self.learner is None else self.learner.m
        of_documents, of_words = (a + (word == "maximise") for a in self.priors())
        batches = self.learner is not None and self.learner.schedule.shuffles
        return TopicCore(
            "topics",
            Categorical((self.n_topics, n_words), of_words),
            RowPrior(np.full(self.n_topics, of_documents), word),
            INNER if batches else 1,
        )

    def start_values(self, core: TopicCore, corpus: Documents, init: Any) -> Any:
        if isinstance(init, Mapping):
            return core.params(init)
        if init == "random":
            return lambda rng: _random(core, corpus, rng)
        raise LearnerError(f"init={init!r} is not known here", "choose 'random', or give tables")

    def remember(self, corpus: Documents) -> None:
        self.remember_lengths(corpus.bags)
        self.documents_ = self._rows(corpus.bags)
        self.weights_ = corpus.bags.lengths @ self.documents_ / corpus.bags.lengths.sum()
        self.n_iter_ = len(self.fit_.trace) - 1

    # what was learned
    @property
    def topics_(self) -> Array:
        """p(word | topic), (topics, words)."""
        self._require_fit()
        table: Array = self.raw_params_["topics"]
        return table

    @property
    def params_(self) -> dict[str, Array]:
        """The learned table; it may be given back as ``init``."""
        return {"topics": np.array(self.topics_)}

    @property
    def _n_features_out(self) -> int:  # for get_feature_names_out
        return self.n_topics

    def top_words(self, n: int = 10) -> list[list[tuple[Any, float]]]:
        """The words that mark each topic, with their probabilities."""
        return telling(self.weights_, self.topics_, self.word_names(), n)

    # what it says of documents
    def _rows(self, bags: Bags) -> Array:
        """p(topic | document) with the topics held fixed."""
        return fold_in(self.topics_, bags, self.core_.rows)

    def transform(self, X: Any) -> Array:
        """p(topic | document), (documents, topics), folded in: the topics stay as they are.

        A document without any known word has all topics alike.
        """
        self._require_fit()
        return self._rows(self.read(X, first=False))

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Array:
        """Learn, and give p(topic | document) of what was learned from."""
        return self.fit(X, y, **options).documents_

    def similar(self, query: Any, n: int = 10) -> list[tuple[int, float]]:
        """The documents most like a query, by the cosine of topics: (number, cosine)."""
        asked = normalize(self.transform([query]))
        cosines = (normalize(self.documents_) @ asked.T).ravel()
        best = np.argsort(-cosines, kind="stable")[:n]
        return [(int(d), float(cosines[d])) for d in best]

    def score_samples(self, X: Any) -> Array:
        """log p(words of a document | its folded-in topics); −inf for what no topic can say.

        The topics are fitted to the very words that are scored: for unseen words see
        `softcount.evaluate`.
        """
        self._require_fit()
        bags = self.read(X, first=False)
        rows = bags.by_document
        numbers = np.repeat(np.arange(len(bags)), np.diff(rows.indptr))
        chances = np.einsum("ik,ki->i", self._rows(bags)[numbers], self.topics_[:, rows.columns])
        with np.errstate(divide="ignore"):
            logs = rows.value * np.log(chances)
        return np.bincount(numbers, logs, minlength=len(bags))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def generate(self, n: int = 1, random_state: Any = 0) -> Any:
        """New documents, of topics as documents seen had: texts for texts, counts for counts."""
        self._require_fit()
        rng = np.random.default_rng(random_state)
        theta = self.documents_[rng.integers(len(self.documents_), size=n)]
        rows, columns = [], []
        for d, length in enumerate(self.some_lengths(n, rng)):
            chances = theta[d] @ self.topics_
            columns.append(rng.choice(len(chances), size=length, p=chances / chances.sum()))
            rows.append(np.full(length, d))
        place = (np.concatenate(rows), np.concatenate(columns))
        ones = np.ones(len(place[0]), np.int64)
        shape = (n, self.n_features_in_)
        return self.told(sparse.csr_matrix((ones, place), shape=shape), rng)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _random(core: TopicCore, corpus: Documents, rng: np.random.Generator) -> Params:
    """Topics near the frequencies of all words, each a little another way."""
    rows = corpus.bags.by_document
    often = np.bincount(rows.columns, rows.value, minlength=corpus.bags.n_words) + 0.1
    noise = rng.uniform(0.5, 1.5, (core.n_topics, len(often)))
    mass = often * noise
    return {"topics": mass / mass.sum(axis=1, keepdims=True)}


class PLSA(TopicModel):
    """Probabilistic latent semantic analysis (Hofmann 1999): p(w | d) = Σ_k θ_dk φ_kw.

    ``n_topics``   how many topics
    ``smoothing``  add so much to every count of a word in a topic
    ``init``       'random', or tables {"topics": …}
    ``scouts``     try so many starts by two quick passes each; go on from the best
    ``vectorizer``, ``learner``, ``engine``, ``random_state``  see `MultinomialMixture`

    >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
    >>> shares = PLSA(2).fit(notes).transform(["team goal", "market price"])
    >>> bool(shares[0].argmax() != shares[1].argmax())
    True
    """

    def __init__(
        self,
        n_topics: int = 20,
        *,
        smoothing: float = 0.0,
        init: Any = "random",
        scouts: int = 3,
        vectorizer: Any = None,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_topics = n_topics
        self.smoothing = smoothing
        self.init = init
        self.scouts = scouts
        self.vectorizer = vectorizer
        self.learner = learner
        self.engine = engine
        self.random_state = random_state

    def priors(self) -> tuple[float, float]:
        check_number("smoothing", self.smoothing, "0 does not smooth")
        return 0.0, self.smoothing


class LDA(TopicModel):
    """Latent Dirichlet allocation (Blei, Ng & Jordan 2003): PLSA with Dirichlet priors.

    ``n_topics``    how many topics
    ``doc_prior``   what is added to every count of a topic in a document
    ``word_prior``  what is added to every count of a word in a topic
    ``init``, …     see `PLSA`

    For learners that look for the mode the Dirichlet concentrations are 1 + these, for those that
    average or draw they are these themselves: both add so much to every count.
    """

    def __init__(
        self,
        n_topics: int = 20,
        *,
        doc_prior: float = 0.1,
        word_prior: float = 0.01,
        init: Any = "random",
        scouts: int = 3,
        vectorizer: Any = None,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_topics = n_topics
        self.doc_prior = doc_prior
        self.word_prior = word_prior
        self.init = init
        self.scouts = scouts
        self.vectorizer = vectorizer
        self.learner = learner
        self.engine = engine
        self.random_state = random_state

    def priors(self) -> tuple[float, float]:
        check_number("doc_prior", self.doc_prior, "0.1 is usual")
        check_number("word_prior", self.word_prior, "0.01 is usual")
        return self.doc_prior, self.word_prior
