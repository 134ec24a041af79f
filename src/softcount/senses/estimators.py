"""`SenseInducer`: word sense induction by a mixture over the contexts of a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np
from scipy import sparse

from softcount.core import store
from softcount.core.display import PrintedTable
from softcount.core.errors import DataError, StoreError
from softcount.core.estimate import Estimate
from softcount.core.estimator import FitOptions, HasLearner, all_or_nothing, check_learner
from softcount.core.folder import resumable
from softcount.core.parameters import ShortRunParameters, check_parameters, describe
from softcount.core.posteriors import Posteriors
from softcount.core.store import AGAIN, Stored, numbers, strings
from softcount.core.theory import Decomposition
from softcount.core.types import Array, Fit, FloatArray, IntArray, Trace
from softcount.core.verdict import Verdict
from softcount.mixture import GaussianMixture, MultinomialMixture
from softcount.mixture.base import Clusterer
from softcount.mixture.core import MixtureCore
from softcount.mixture.data import MixtureCorpus
from softcount.senses.parameters import SenseInducerParameters
from softcount.text import contexts
from softcount.text.contexts import Occurrence, format_passage
from softcount.text.counter import WordCounter, as_it_is
from softcount.text.semantic_space import SemanticSpace

MARKS, EXAMPLES = 12, 4
EXAMPLE_WINDOW = 12
Target = str | Iterable[str] | None
"""The target word, or several forms of it."""
Positions = Sequence[Any] | None
"""Token positions of the target in each sentence: a number, or a list of numbers."""

MIXTURE, IDF, AXES = "mixture.", "space.idf", "space.axes"
"""Names of arrays in model files; ``MIXTURE`` is the prefix of those of the mixture."""


@dataclass(frozen=True)
class Sense:
    """One induced sense.

    ``share``     fraction of all occurrences that have this sense
    ``words``     its characteristic words, the most informative first, each with the fraction of
                  the sense's contexts in which it occurs; ``the_`` is a word directly before the
                  target, ``_of`` one directly after it
    ``examples``  its most typical contexts, with the target in brackets
    """

    number: int
    share: float
    words: tuple[tuple[str, float], ...]
    examples: tuple[str, ...]

    def __str__(self) -> str:
        marks = ", ".join(name for name, _ in self.words)
        lines = "".join(f"\n  {example}" for example in self.examples)
        return f"sense {self.number} ({self.share:.1%}): {marks}{lines}"


def find_marking_words(
    counts: sparse.csr_matrix, posteriors: FloatArray, names: Array
) -> list[tuple[tuple[str, float], ...]]:
    """Return the characteristic words of each sense, with the fraction q(w | k) of its contexts
    that contain them.

    These are the words with the largest q(w | k) log [q(w | k) / q(w)]: common in the sense, and
    more so than elsewhere. One average context is added to every sense as a pseudo-observation;
    otherwise a word that occurs twice, both times in the same sense, would look certain.

    ``counts``      (contexts, words)
    ``posteriors``  (contexts, senses)
    ``names``       the words, (words,)

    >>> counts = sparse.csr_matrix([[1, 0, 1], [1, 0, 1], [0, 2, 1], [0, 1, 1]])
    >>> posteriors = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    >>> marks = find_marking_words(counts, posteriors, np.array(["a", "b", "c"]))
    >>> [[word for word, _ in row] for row in marks]
    [['a'], ['b']]
    """
    present = (counts > 0).astype(np.float64)
    overall = np.asarray(present.mean(axis=0)).reshape(-1)
    size = posteriors.sum(axis=0)[:, None]
    q = (np.asarray((present.T @ posteriors).T) + overall) / (size + 1.0)
    scores = q * np.log(np.where(overall > 0.0, q / np.where(overall > 0.0, overall, 1.0), 1.0))
    rows = []
    for k, score in enumerate(scores):
        best = [w for w in np.argsort(-score, kind="stable")[:MARKS] if score[w] > 1e-9]
        rows.append(tuple((str(names[w]), float(q[k, w])) for w in best))
    return rows


def choose_examples(
    k: int, joint: FloatArray, tokens: Sequence[Sequence[str]], places: Sequence[Occurrence]
) -> tuple[str, ...]:
    """Return contexts of sense k, first those with the largest margin over the next best sense.

    ``joint``  log p(sense, context), (contexts, senses)
    """
    others = np.delete(joint, k, axis=1)
    margin = joint[:, k] - others.max(axis=1) if others.size else joint[:, k]
    members = np.flatnonzero(joint.argmax(axis=1) == k)
    texts: dict[str, None] = {}  # without duplicates, in order
    for i in members[np.argsort(-margin[members], kind="stable")].tolist():
        texts[format_passage(tokens[places[i].sentence], places[i].position, EXAMPLE_WINDOW)] = None
        if len(texts) == EXAMPLES:
            break
    return tuple(texts)


class SenseInducer(SenseInducerParameters, store.Saveable, HasLearner):
    """Word sense induction: clusters the occurrences of a word into senses (Schütze 1998).

    Each occurrence is represented by the bag of words around it, and a mixture with
    ``n_components`` classes, the senses, is fitted to these bags: ``mixture_``.

    ``window``       number of context words on each side; None: the whole sentence
    ``near``         this many nearest words on each side are counted again with their position
                     ('on·_', '_of')
    ``min_count``    leave out features that occur in fewer contexts than this
    ``stop_words``   words that count only together with their position
    ``svd``          None: a multinomial mixture over counts; a number: tf-idf, reduced to this
                     many dimensions by a truncated SVD, and a Gaussian mixture there
    ``smoothing``    of the multinomial mixture: pseudocount added to every count
    ``init``, ``short_runs``, ``learner``, ``engine``, ``random_state``  as for the mixtures

    >>> sentences = ["She put the money into the bank.", "The bank pays interest on money.",
    ...              "A loan from the bank costs interest.", "Reeds grow along the river bank.",
    ...              "They fished from the bank of the river.", "The river broke its bank.",
    ...              "The bank raised interest on every loan.", "Mud lay on the bank of the river."]
    >>> model = SenseInducer(2).fit(sentences, target="bank")
    >>> [int(k != model.labels_[0]) for k in model.labels_]
    [0, 0, 0, 1, 1, 1, 0, 1]
    """

    mixture_: Clusterer
    forms_: frozenset[str] | None
    """The forms of the target word; None if the occurrences were given by ``positions``."""
    vocabulary_: Array
    space_: SemanticSpace | None
    occurrences_: list[Occurrence]
    """Positions of the training occurrences, in the order of ``labels_``."""
    senses_: list[Sense]

    # learning
    @resumable
    def fit(
        self,
        sentences: Any,
        target: Target = None,
        *,
        positions: Positions = None,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn the senses of a word from sentences: texts, or lists of words.

        ``target``     the word, or several forms of it; case is ignored
        ``positions``  instead of ``target``: its token position in each sentence (a number, or a
                       list of numbers)

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            tokens, counts = self._learn_contexts(sentences, target, positions)
            if options.get("development") is not None:
                options["development"] = self._encode(options["development"], None)
            x = self._project(counts)
            self.mixture_ = self._make_mixture().fit(x, init=init, **options)
            joint = self.mixture_._joint(self.mixture_.observe(x, first=False))
            posteriors = self.mixture_.predict_proba(x)
            marks = find_marking_words(counts, posteriors, self.vocabulary_)
            self.senses_ = [
                Sense(
                    k, float(share), marks[k], choose_examples(k, joint, tokens, self.occurrences_)
                )
                for k, share in enumerate(posteriors.mean(axis=0))
            ]
        return self

    def fit_predict(
        self, sentences: Any, target: Target = None, *, positions: Positions = None
    ) -> IntArray:
        """Fit, and return the sense of each occurrence."""
        return self.fit(sentences, target, positions=positions).labels_

    def _bind(self, sentences: Any, target: Target = None) -> tuple[MixtureCore, MixtureCorpus]:
        """Return the mixture's core and corpus; the default target is that of an earlier fit."""
        fresh = type(self)(**self.get_params(deep=False))
        forms = getattr(self, "forms_", None) if target is None else target
        _, counts = fresh._learn_contexts(sentences, forms, None)
        return fresh._make_mixture()._bind(fresh._project(counts))

    def estimate(self, sentences: Any, target: Target = None) -> Estimate:
        """Estimate the resources `fit` needs: bytes, and work per step. Nothing is learned."""
        needed = self._make_mixture()._estimate(*self._bind(sentences, target))
        n_words = sum(
            len(sentence.split() if isinstance(sentence, str) else sentence)
            for sentence in sentences
        )
        return needed.plus(words=100.0 * n_words)  # the texts as strings, about 100 bytes a word

    def _check_settings(self) -> None:
        check_parameters(self)
        check_learner(self._make_mixture(), type(self).__name__)

    def _make_mixture(self) -> Clusterer:
        """Return the unfitted mixture of contexts, with this model's learning parameters."""
        learning = {field.name: getattr(self, field.name) for field in describe(ShortRunParameters)}
        if self.svd is None:
            return MultinomialMixture(self.n_components, smoothing=self.smoothing, **learning)
        return GaussianMixture(self.n_components, covariance="spherical", **learning)

    # from sentences to the input of the mixture
    def _learn_contexts(
        self, sentences: Any, target: Target, positions: Positions
    ) -> tuple[list[list[str]], sparse.csr_matrix]:
        """Locate the target, and learn the features of its contexts: vocabulary and SVD space.

        Returns the tokenised sentences, and counts (occurrences, vocabulary).
        """
        forms = None if target is None else contexts.list_forms(target)
        self._check_settings()
        if (forms is None) == (positions is None):
            raise DataError(
                "give exactly one of target and positions",
                "say which word is meant: target='bank', or its positions=[…] in each sentence",
            )
        tokens, places = _locate(sentences, forms, positions)
        contexts.check_occurs(places, tokens, forms or {"the word"})
        features = self._extract_features(tokens, places)
        n_contexts = Counter(word for bag in features for word in set(bag))
        kept = sorted(word for word, n in n_contexts.items() if n >= self.min_count)
        if not kept:
            raise DataError(
                f"no word occurs in at least {self.min_count} of the {len(places)} contexts",
                "lower min_count, or give more sentences",
            )
        self.forms_, self.occurrences_ = forms, places
        self.vocabulary_ = np.array(kept, dtype=object)
        counts = self._count(features)
        seed = self.random_state if isinstance(self.random_state, int) else 0
        self.space_ = None if self.svd is None else SemanticSpace.of(counts, self.svd, seed)
        return tokens, counts

    def _extract_features(
        self, tokens: list[list[str]], places: Sequence[Occurrence]
    ) -> list[list[str]]:
        """Return the features of each occurrence: context words, near ones also with position."""
        dropped = frozenset(word.casefold() for word in self.stop_words)
        return [
            contexts.context_features(tokens[sentence], position, self.window, self.near, dropped)
            for sentence, position in places
        ]

    def _count(self, features: list[list[str]]) -> sparse.csr_matrix:
        counter = WordCounter(as_it_is, self.vocabulary_)
        return sparse.csr_matrix(counter.transform(features))

    def _project(self, counts: sparse.csr_matrix) -> Any:
        """Return the mixture's input: the counts themselves, or their points in the SVD space."""
        return counts if self.space_ is None else self.space_.points(counts)

    def _encode(self, sentences: Any, positions: Positions) -> Any:
        """Return the mixture's input for new sentences, one row per occurrence."""
        return self._project(
            self._count(self._extract_features(*_locate(sentences, self.forms_, positions)))
        )

    # fitted attributes
    def _require_fit(self) -> Clusterer:
        if not hasattr(self, "mixture_"):
            from sklearn.exceptions import NotFittedError  # imported only when it is needed

            raise NotFittedError("this SenseInducer has not been fitted: call fit first")
        return self.mixture_

    @property
    def labels_(self) -> IntArray:
        """The sense of each training occurrence."""
        return self._require_fit().labels_

    @property
    def weights_(self) -> FloatArray:
        """The probability of each sense."""
        return self._require_fit().weights_

    @property
    def params_(self) -> dict[str, Array]:
        """The parameters of the mixture."""
        return self._require_fit().params_

    @property
    def fit_(self) -> Fit:
        """The record of the mixture's fit."""
        return self._require_fit().fit_

    @property
    def trace_(self) -> Trace:
        """The best run, step by step."""
        return self._require_fit().trace_

    @property
    def verdict_(self) -> Verdict:
        """How the best run ended, as a sentence."""
        return self._require_fit().verdict_

    @property
    def signature_(self) -> str:
        """One line that identifies the run, for citing it."""
        return self._require_fit().signature_

    def decompose(
        self, sentences: Any, params: Any, at: Any = None, *, positions: Positions = None
    ) -> Decomposition:
        """Decompose the log-likelihood of the mixture of contexts, which shows why EM never
        decreases it: see `softcount.decompose`."""
        mixture = self._require_fit()
        return mixture.decompose(self._encode(sentences, positions), params, at)

    def e_step(self, data: Any, params: Any = None, *, positions: Positions = None) -> Posteriors:
        """Do the E-step by itself: the posterior of each sense of each occurrence."""
        mixture = self._require_fit()
        return mixture.e_step(self._encode(data, positions), params)

    def m_step(self, data: Any, posteriors: Any = None, *, positions: Positions = None) -> Any:
        """Do the M-step by itself: the mixture's parameters from posteriors."""
        return self._require_fit().m_step(self._encode(data, positions), posteriors)

    def steps(self) -> PrintedTable:
        """Return the run of the mixture as a table: see `Estimator.steps`."""
        return self._require_fit().steps()

    # inference for sentences
    def occurrences(self, sentences: Any, *, positions: Positions = None) -> list[Occurrence]:
        """Locate the word: one occurrence for each row of `predict` and `predict_proba`."""
        self._require_fit()
        return _locate(sentences, self.forms_, positions)[1]

    def predict(self, sentences: Any, *, positions: Positions = None) -> IntArray:
        """Return the most probable sense of each occurrence, in the order of `occurrences`."""
        mixture, x = self._require_fit(), self._encode(sentences, positions)
        return mixture.predict(x) if x.shape[0] else np.zeros(0, np.int64)

    def predict_proba(self, sentences: Any, *, positions: Positions = None) -> FloatArray:
        """Return the posterior of each sense for each occurrence, (occurrences, senses)."""
        mixture, x = self._require_fit(), self._encode(sentences, positions)
        return mixture.predict_proba(x) if x.shape[0] else np.zeros((0, self.n_components))

    transform = predict_proba

    def score_samples(self, sentences: Any, *, positions: Positions = None) -> FloatArray:
        """Return log p(context) of each occurrence."""
        mixture, x = self._require_fit(), self._encode(sentences, positions)
        return mixture.score_samples(x) if x.shape[0] else np.zeros(0)

    def score(self, sentences: Any, y: Any = None, *, positions: Positions = None) -> float:
        """Return the mean of log p(context) over the occurrences."""
        logs = self.score_samples(sentences, positions=positions)
        if not len(logs):
            raise DataError(
                "the word does not occur in these sentences", "give sentences that contain it"
            )
        return float(np.mean(logs))

    def generate(self, n: int = 1, random_state: Any = 0) -> Any:
        """Draw new contexts: bags as lists of words; with ``svd``, points."""
        drawn = self._require_fit().generate(n, random_state)
        if self.space_ is not None:
            return drawn
        return [np.repeat(self.vocabulary_, row.astype(int)).tolist() for row in drawn.toarray()]

    # files: the mixture, and the mapping from contexts to its input
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        mixture = self.mixture_.content()
        arrays = {MIXTURE + name: array for name, array in mixture.arrays.items()}
        if self.space_ is not None:
            arrays |= {IDF: self.space_.idf, AXES: self.space_.axes}
        return arrays, {
            "forms": None if self.forms_ is None else sorted(self.forms_),
            "vocabulary": self.vocabulary_.tolist(),
            "senses": [[s.number, s.share, s.words, s.examples] for s in self.senses_],
            "mixture": mixture.meta,
        }

    def unpack(self, stored: Stored, given: Mapping[str, Any]) -> None:
        meta = stored.meta
        self._check_settings()
        V, forms = len(meta["vocabulary"]), meta["forms"]
        self.vocabulary_ = strings(meta["vocabulary"], V, "words")  # type: ignore[assignment]
        self.forms_ = None if forms is None else frozenset(strings(forms, len(forms), "forms"))  # type: ignore[arg-type]
        self.space_, n_features = None, V
        if self.svd is not None:
            axes = numbers(stored, AXES, (None, V))
            self.space_, n_features = SemanticSpace(numbers(stored, IDF, (V,)), axes), len(axes)
        kind = type(self._make_mixture())
        arrays = {
            name.removeprefix(MIXTURE): array
            for name, array in stored.arrays.items()
            if name.startswith(MIXTURE)
        }
        mixture = kind.restore(Stored(kind.__name__, arrays, meta["mixture"], stored.signature))
        if (mixture.n_features_in_, mixture.n_components) != (n_features, self.n_components):
            raise StoreError("the mixture in the file does not match its settings", AGAIN)
        self.mixture_ = mixture
        self.senses_ = [
            Sense(
                int(number),
                float(share),
                tuple((str(name), float(part)) for name, part in words),
                tuple(map(str, examples)),
            )
            for number, share, words, examples in meta["senses"]
        ]


def _locate(
    sentences: Any, forms: frozenset[str] | None, positions: Positions
) -> tuple[list[list[str]], list[Occurrence]]:
    """Return the tokenised sentences, and the occurrences of the target in them."""
    tokens = contexts.split_sentences(sentences)
    if positions is None:
        if forms is None:
            raise DataError(
                "this model was fitted with positions instead of a target word",
                "give the positions here too: positions=[…]",
            )
        return tokens, contexts.find_occurrences(tokens, forms)
    if any(isinstance(sentence, str) for sentence in sentences):
        raise DataError(
            "positions are token positions, but these sentences are not tokenised",
            "give lists of words, or a target instead of positions",
        )
    return tokens, contexts.check_positions(tokens, positions)
