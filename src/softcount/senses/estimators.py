"""`SenseInducer`: the occurrences of a word, sorted by a mixture of their contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self, Unpack

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

from softcount.core import store
from softcount.core.errors import DataError, StoreError
from softcount.core.estimate import Estimate
from softcount.core.estimator import FitOptions, HasLearner, all_or_nothing, check_learner
from softcount.core.parameters import ShortRunParameters, check_parameters, describe
from softcount.core.store import AGAIN, Stored, numbers, strings
from softcount.core.theory import Decomposition
from softcount.core.types import Array, Fit, FloatArray, IntArray, Trace
from softcount.core.verdict import Verdict
from softcount.mixture import GaussianMixture, MultinomialMixture
from softcount.mixture.base import Clusterer
from softcount.mixture.core import MixtureCore
from softcount.mixture.data import Items
from softcount.senses.parameters import SenseInducerParameters
from softcount.text import contexts
from softcount.text.contexts import Occurrence, format_passage
from softcount.text.documents import as_it_is
from softcount.text.semantic_space import SemanticSpace

MARKS, EXAMPLES = 12, 4
EXAMPLE_WINDOW = 12
Target = str | Iterable[str] | None
"""A word, or several forms of it."""
Positions = Sequence[Any] | None
"""Where a word stands in each sentence: a number, or a list of numbers."""

MIXTURE, IDF, AXES = "mixture.", "space.idf", "space.axes"
"""Names of arrays in files; those of the mixture begin with the first."""


@dataclass(frozen=True)
class Sense:
    """What was learned of one sense.

    ``share``     its share of all occurrences
    ``words``     what marks it, the most telling first, each with the part of its contexts that
                  have it; ``the_`` is a word just before the target, ``_of`` one just after it
    ``examples``  its most typical contexts, the target in brackets
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
    """The words that mark each sense, with the part q(w | k) of its contexts that have them.

    Those with the largest q(w | k) log [q(w | k) / q(w)]: common in the sense, and more so than
    elsewhere. One context as all are on average is added to every sense, lest a word that occurs
    twice, both times in it, look certain.

    ``counts``      (contexts, words)
    ``posteriors``  (contexts, senses)
    ``names``       of the words

    >>> counts = sparse.csr_matrix([[1, 0, 1], [1, 0, 1], [0, 2, 1], [0, 1, 1]])
    >>> posteriors = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    >>> found = find_marking_words(counts, posteriors, np.array(["a", "b", "c"]))
    >>> [[word for word, _ in row] for row in found]
    [['a'], ['b']]
    """
    present = (counts > 0).astype(np.float64)
    overall = np.asarray(present.mean(axis=0)).reshape(-1)
    size = posteriors.sum(axis=0)[:, None]
    q = (np.asarray((present.T @ posteriors).T) + overall) / (size + 1.0)
    telling = q * np.log(np.where(overall > 0.0, q / np.where(overall > 0.0, overall, 1.0), 1.0))
    rows = []
    for k, worth in enumerate(telling):
        best = [w for w in np.argsort(-worth, kind="stable")[:MARKS] if worth[w] > 1e-9]
        rows.append(tuple((str(names[w]), float(q[k, w])) for w in best))
    return rows


def choose_examples(
    k: int, joint: FloatArray, tokens: Sequence[Sequence[str]], places: Sequence[Occurrence]
) -> tuple[str, ...]:
    """Contexts of sense k, those first in which the next best sense is farthest behind.

    ``joint``  log p(sense, context), (contexts, senses)
    """
    others = np.delete(joint, k, axis=1)
    lead = joint[:, k] - others.max(axis=1) if others.size else joint[:, k]
    own = np.flatnonzero(joint.argmax(axis=1) == k)
    texts: dict[str, None] = {}
    for i in own[np.argsort(-lead[own], kind="stable")].tolist():
        texts[format_passage(tokens[places[i].sentence], places[i].position, EXAMPLE_WINDOW)] = None
        if len(texts) == EXAMPLES:
            break
    return tuple(texts)


class SenseInducer(SenseInducerParameters, HasLearner, BaseEstimator):  # type: ignore[misc]
    """Sorts the occurrences of a word into senses (Schütze 1998).

    Each occurrence becomes a bag of the words around it, and these bags a mixture of
    ``n_components`` classes, the senses: ``mixture_``.

    ``window``       so many words on each side are looked at; None: the whole sentence
    ``near``         so many on each side count once more, with their place ('on·_', '_of')
    ``min_count``    leave out what fewer contexts than this have
    ``stop_words``   words that only count with their place
    ``svd``          None: a multinomial mixture of counts; a number: tf-idf, a truncated SVD of so
                     many dimensions, and a Gaussian mixture there
    ``smoothing``    of the multinomial mixture: add so much to every count
    ``init``, ``short_runs``, ``learner``, ``engine``, ``random_state``  as of the mixtures

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
    """The forms that are looked for; None if the occurrences were given by their positions."""
    vocabulary_: Array
    space_: SemanticSpace | None
    occurrences_: list[Occurrence]
    """Where the occurrences learned from are, in the order of ``labels_``."""
    senses_: list[Sense]

    # learning
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

        ``target``     the word, or several forms of it; upper and lower case are the same
        ``positions``  instead: where it stands in each sentence (a number, or a list of numbers)

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            tokens, counts = self._learn_contexts(sentences, target, positions)
            if options.get("development") is not None:
                options["development"] = self._observe(options["development"], None)
            x = self._place(counts)
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
        """Learn, and give the sense of each occurrence."""
        return self.fit(sentences, target, positions=positions).labels_

    def _bind(self, sentences: Any, target: Target = None) -> tuple[MixtureCore, Items]:
        """The mixture's core and its corpus; without a target, for that of an earlier fit."""
        fresh = type(self)(**self.get_params(deep=False))
        forms = getattr(self, "forms_", None) if target is None else target
        _, counts = fresh._learn_contexts(sentences, forms, None)
        return fresh._make_mixture()._bind(fresh._place(counts))

    def estimate(self, sentences: Any, target: Target = None) -> Estimate:
        """What `fit` will need: bytes, and work a step. Nothing is learned."""
        needed = self._make_mixture()._estimate(*self._bind(sentences, target))
        n_words = sum(len(one.split() if isinstance(one, str) else one) for one in sentences)
        return needed.plus(words=100.0 * n_words)  # texts, before they are numbers

    def _check_settings(self) -> None:
        check_parameters(self)
        check_learner(self._make_mixture(), type(self).__name__)

    def _make_mixture(self) -> Clusterer:
        """The mixture of contexts, not fitted; it learns as this model is told to."""
        learning = {each.name: getattr(self, each.name) for each in describe(ShortRunParameters)}
        if self.svd is None:
            return MultinomialMixture(self.n_components, smoothing=self.smoothing, **learning)
        return GaussianMixture(self.n_components, covariance="spherical", **learning)

    # from sentences to what the mixture sees
    def _learn_contexts(
        self, sentences: Any, target: Target, positions: Positions
    ) -> tuple[list[list[str]], sparse.csr_matrix]:
        """Find the word, and learn by what its contexts are described: the vocabulary, the space.

        Gives the sentences cut into words, and counts (occurrences, vocabulary).
        """
        forms = None if target is None else contexts.list_forms(target)
        self._check_settings()
        if (forms is None) == (positions is None):
            raise DataError(
                "say which word is meant, in one way", "give target='bank', or else positions=[…]"
            )
        tokens, places = _locate(sentences, forms, positions)
        contexts.demand_found(places, tokens, forms or {"the word"})
        features = self._features(tokens, places)
        n_contexts = Counter(word for bag in features for word in set(bag))
        kept = sorted(word for word, n in n_contexts.items() if n >= self.min_count)
        if not kept:
            raise DataError(
                f"no word is in {self.min_count} of the {len(places)} contexts",
                "lower min_count, or give more sentences",
            )
        self.forms_, self.occurrences_ = forms, places
        self.vocabulary_ = np.array(kept, dtype=object)
        counts = self._count(features)
        seed = self.random_state if isinstance(self.random_state, int) else 0
        self.space_ = None if self.svd is None else SemanticSpace.of(counts, self.svd, seed)
        return tokens, counts

    def _features(self, tokens: list[list[str]], places: Sequence[Occurrence]) -> list[list[str]]:
        """The words around each occurrence, some of them with their places."""
        dropped = frozenset(word.casefold() for word in self.stop_words)
        return [
            contexts.context_features(tokens[sentence], position, self.window, self.near, dropped)
            for sentence, position in places
        ]

    def _count(self, features: list[list[str]]) -> sparse.csr_matrix:
        counter = CountVectorizer(analyzer=as_it_is, vocabulary=self.vocabulary_)
        return sparse.csr_matrix(counter.transform(features))

    def _place(self, counts: sparse.csr_matrix) -> Any:
        """What the mixture sees of these counts: themselves, or points of the space."""
        return counts if self.space_ is None else self.space_.points(counts)

    def _observe(self, sentences: Any, positions: Positions) -> Any:
        """What the mixture sees of further sentences, one row an occurrence."""
        return self._place(self._count(self._features(*_locate(sentences, self.forms_, positions))))

    # what was learned
    def _fitted(self) -> Clusterer:
        if not hasattr(self, "mixture_"):
            raise NotFittedError("this SenseInducer has not been fitted: call fit first")
        return self.mixture_

    @property
    def labels_(self) -> IntArray:
        """The sense of each occurrence learned from."""
        return self._fitted().labels_

    @property
    def weights_(self) -> FloatArray:
        """How common each sense is."""
        return self._fitted().weights_

    @property
    def params_(self) -> dict[str, Array]:
        """The tables of the mixture."""
        return self._fitted().params_

    @property
    def fit_(self) -> Fit:
        """How the mixture was learned."""
        return self._fitted().fit_

    @property
    def trace_(self) -> Trace:
        """The best run, step by step."""
        return self._fitted().trace_

    @property
    def verdict_(self) -> Verdict:
        """How the best run ended, as a sentence."""
        return self._fitted().verdict_

    @property
    def signature_(self) -> str:
        """One line that makes the run citable."""
        return self._fitted().signature_

    def decompose(
        self, sentences: Any, params: Any, at: Any = None, *, positions: Positions = None
    ) -> Decomposition:
        """Why EM climbs, of the mixture of contexts: see `softcount.decompose`."""
        mixture = self._fitted()
        return mixture.decompose(self._observe(sentences, positions), params, at)

    # what it says of sentences
    def occurrences(self, sentences: Any, *, positions: Positions = None) -> list[Occurrence]:
        """Where the word occurs: what rows of `predict` and `predict_proba` belong to."""
        self._fitted()
        return _locate(sentences, self.forms_, positions)[1]

    def predict(self, sentences: Any, *, positions: Positions = None) -> IntArray:
        """The likeliest sense of each occurrence, in the order of `occurrences`."""
        mixture, x = self._fitted(), self._observe(sentences, positions)
        return mixture.predict(x) if x.shape[0] else np.zeros(0, np.int64)

    def predict_proba(self, sentences: Any, *, positions: Positions = None) -> FloatArray:
        """The probability of each sense for each occurrence, (occurrences, senses)."""
        mixture, x = self._fitted(), self._observe(sentences, positions)
        return mixture.predict_proba(x) if x.shape[0] else np.zeros((0, self.n_components))

    transform = predict_proba

    def score_samples(self, sentences: Any, *, positions: Positions = None) -> FloatArray:
        """log p(context) of each occurrence."""
        mixture, x = self._fitted(), self._observe(sentences, positions)
        return mixture.score_samples(x) if x.shape[0] else np.zeros(0)

    def score(self, sentences: Any, y: Any = None, *, positions: Positions = None) -> float:
        """The mean of log p(context) over the occurrences."""
        logs = self.score_samples(sentences, positions=positions)
        if not len(logs):
            raise DataError("the word does not occur here", "there is nothing to score")
        return float(np.mean(logs))

    def generate(self, n: int = 1, random_state: Any = 0) -> Any:
        """New contexts: bags as lists of words; with ``svd``, points."""
        drawn = self._fitted().generate(n, random_state)
        if self.space_ is not None:
            return drawn
        return [np.repeat(self.vocabulary_, row.astype(int)).tolist() for row in drawn.toarray()]

    # files: the mixture, and how contexts become what it sees
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, for `softcount.load`."""
        mixture = store.content(self._fitted(), *self.mixture_.stored())
        arrays = {MIXTURE + name: array for name, array in mixture.arrays.items()}
        if self.space_ is not None:
            arrays |= {IDF: self.space_.idf, AXES: self.space_.axes}
        meta = {
            "settings": store.plain_settings(self),
            "forms": None if self.forms_ is None else sorted(self.forms_),
            "vocabulary": self.vocabulary_.tolist(),
            "senses": [[s.number, s.share, s.words, s.examples] for s in self.senses_],
            "mixture": mixture.meta,
        }
        store.write(path, type(self).__name__, arrays, meta, self.signature_)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a model that `save` wrote."""
        return cls.restore(store.read(path, cls.__name__))

    @classmethod
    def restore(cls, stored: Stored, **given: Any) -> Self:
        """A model from what a file holds (see `softcount.load`)."""
        return store.guarded(cls, lambda: cls._restore(stored, given))

    @classmethod
    def _restore(cls, stored: Stored, given: dict[str, Any]) -> Self:
        meta = stored.meta
        model = cls(**{**meta["settings"], **given})
        model._check_settings()
        V, forms = len(meta["vocabulary"]), meta["forms"]
        model.vocabulary_ = strings(meta["vocabulary"], V, "words")  # type: ignore[assignment]
        model.forms_ = None if forms is None else frozenset(strings(forms, len(forms), "forms"))  # type: ignore[arg-type]
        model.space_, n_features = None, V
        if model.svd is not None:
            axes = numbers(stored, AXES, (None, V))
            model.space_, n_features = SemanticSpace(numbers(stored, IDF, (V,)), axes), len(axes)
        kind = type(model._make_mixture())
        arrays = {
            name.removeprefix(MIXTURE): array
            for name, array in stored.arrays.items()
            if name.startswith(MIXTURE)
        }
        mixture = kind.restore(Stored(kind.__name__, arrays, meta["mixture"], stored.signature))
        if (mixture.n_features_in_, mixture.n_components) != (n_features, model.n_components):
            raise StoreError("the mixture in the file is of other contexts", AGAIN)
        model.mixture_ = mixture
        model.senses_ = [
            Sense(
                int(number),
                float(share),
                tuple((str(name), float(part)) for name, part in words),
                tuple(map(str, examples)),
            )
            for number, share, words, examples in meta["senses"]
        ]
        return model


def _locate(
    sentences: Any, forms: frozenset[str] | None, positions: Positions
) -> tuple[list[list[str]], list[Occurrence]]:
    """Sentences cut into words, and where the word is in them."""
    tokens = contexts.split_sentences(sentences)
    if positions is None:
        if forms is None:
            raise DataError(
                "this model was fitted to words at given positions",
                "say where they are: positions=[…]",
            )
        return tokens, contexts.find_occurrences(tokens, forms)
    if any(isinstance(one, str) for one in sentences):
        raise DataError(
            "positions are of words, and these sentences are not cut into words",
            "give lists of words, or a target instead of positions",
        )
    return tokens, contexts.check_positions(tokens, positions)
