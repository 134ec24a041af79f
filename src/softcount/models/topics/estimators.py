"""PLSA, and LDA, which is PLSA with priors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcount.models.settings import check_number
from softcount.models.topics.model import TopicModel

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


class PLSA(TopicModel):
    """Probabilistic latent semantic analysis (Hofmann 1999): p(w | d) = Σ_k θ_dk φ_kw.

    ``n_topics``       how many topics
    ``smoothing``      add so much to every count of a word in a topic
    ``seeds``          words that belong to a topic: {topic: [word, …]}
    ``seed_strength``  a seed word counts for its topic as often again as so many times the corpus
                       has it
    ``frozen``         the first topics, which stay as they are: rows of p(word | topic), or
                       mappings from words to weights
    ``init``           'anchors' (words that one topic alone has), 'random', or tables
                       {"topics": …}. None: anchors for EM; at random for other learners, for
                       several runs or scouts, and if something is known of topics
    ``scouts``         try so many random starts by two quick passes each; go on from the best.
                       None: three for a few documents, one for many
    ``dtype``          'float32' takes less memory and time, at seven digits
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
        seeds: Any = None,
        seed_strength: float = 1.0,
        frozen: Any = None,
        init: Any = None,
        scouts: int | None = None,
        dtype: str = "float64",
        vectorizer: Any = None,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_topics = n_topics
        self.smoothing = smoothing
        self.seeds = seeds
        self.seed_strength = seed_strength
        self.frozen = frozen
        self.init = init
        self.scouts = scouts
        self.dtype = dtype
        self.vectorizer = vectorizer
        self.learner = learner
        self.engine = engine
        self.random_state = random_state

    def priors(self) -> tuple[float, float]:
        check_number("smoothing", self.smoothing, "0 does not smooth")
        return 0.0, self.smoothing

    def lacks_prior(self) -> str:
        return "not for the topics of documents, whatever the smoothing"

    def prior_hint(self) -> str:
        return "use LDA, which is PLSA with a doc_prior and a word_prior"

    def lacks_sampler(self) -> str:
        return ""  # there is one, but not without a prior: of that `lacks_prior` complains


class LDA(TopicModel):
    """Latent Dirichlet allocation (Blei, Ng & Jordan 2003): PLSA with Dirichlet priors.

    ``n_topics``    how many topics
    ``doc_prior``   what is added to every count of a topic in a document
    ``word_prior``  what is added to every count of a word in a topic
    ``seeds``, …    see `PLSA`

    For learners that look for the mode the Dirichlet concentrations are 1 + these, for those that
    average or draw they are these themselves: both add so much to every count.
    """

    def __init__(
        self,
        n_topics: int = 20,
        *,
        doc_prior: float = 0.1,
        word_prior: float = 0.01,
        seeds: Any = None,
        seed_strength: float = 1.0,
        frozen: Any = None,
        init: Any = None,
        scouts: int | None = None,
        dtype: str = "float64",
        vectorizer: Any = None,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_topics = n_topics
        self.doc_prior = doc_prior
        self.word_prior = word_prior
        self.seeds = seeds
        self.seed_strength = seed_strength
        self.frozen = frozen
        self.init = init
        self.scouts = scouts
        self.dtype = dtype
        self.vectorizer = vectorizer
        self.learner = learner
        self.engine = engine
        self.random_state = random_state

    def priors(self) -> tuple[float, float]:
        check_number("doc_prior", self.doc_prior, "0.1 is usual")
        check_number("word_prior", self.word_prior, "0.01 is usual")
        return self.doc_prior, self.word_prior

    def lacks_prior(self) -> str:
        zeros = [name for name in ("doc_prior", "word_prior") if getattr(self, name) == 0]
        return f"{zeros[0]}=0" if zeros else ""

    def prior_hint(self) -> str:
        return "give a doc_prior and a word_prior above 0, for example 0.1 and 0.01"
