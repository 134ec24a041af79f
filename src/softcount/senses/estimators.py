"""`SenseInducer`, as users call it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

from softcount.core import store
from softcount.core.errors import DataError, LearnerError, SoftcountError, StoreError, brief
from softcount.core.estimate import Estimate
from softcount.core.estimator import FitOptions, HasLearner, all_or_nothing, check_learner
from softcount.core.parameters import check_whole
from softcount.core.store import AGAIN, content, numbers, plain_settings, strings
from softcount.core.theory import Decomposition
from softcount.core.types import Array, Fit, Trace
from softcount.core.verdict import Verdict
from softcount.mixture import GaussianMixture, MultinomialMixture
from softcount.mixture.base import FLOOR, Clusterer
from softcount.mixture.core import MixtureCore
from softcount.mixture.data import Items
from softcount.text import contexts
from softcount.text.contexts import Occurrence, format_passage
from softcount.text.documents import as_it_is
from softcount.text.semantic_space import SemanticSpace

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


MARKS, EXAMPLES = 12, 4
EXAMPLE_WINDOW = 12


@dataclass(frozen=True)
class Sense:
    """What was found of one sense.

    ``share``     how much of all occurrences
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


def marking(counts: Any, shares: Array, names: Array) -> list[tuple[tuple[str, float], ...]]:
    """The words that mark each sense, with the part q(w | k) of its contexts that have them.

    Those with the largest q(w | k) log [q(w | k) / q(w)]: common in the sense, and more so than
    elsewhere. One context as all are on average is added to every sense, lest a word that occurs
    twice, both times in it, look certain.

    >>> from scipy.sparse import csr_matrix
    >>> counts = csr_matrix([[1, 0, 1], [1, 0, 1], [0, 2, 1], [0, 1, 1]])
    >>> shares = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    >>> [[word for word, _ in row] for row in marking(counts, shares, np.array(["a", "b", "c"]))]
    [['a'], ['b']]
    """
    present = (counts > 0).astype(np.float64)
    overall = np.asarray(present.mean(axis=0)).reshape(-1)
    size = shares.sum(axis=0)[:, None]
    found = np.asarray((present.T @ shares).T)
    q = (found + overall) / (size + 1.0)
    telling = q * np.log(np.where(overall > 0.0, q / np.where(overall > 0.0, overall, 1.0), 1.0))
    rows = []
    for k, worth in enumerate(telling):
        best = [w for w in np.argsort(-worth, kind="stable")[:MARKS] if worth[w] > 1e-9]
        rows.append(tuple((str(names[w]), float(q[k, w])) for w in best))
    return rows


def typical(
    k: int, joint: Array, tokens: Sequence[Sequence[str]], found: Sequence[Occurrence]
) -> tuple[str, ...]:
    """Contexts of a sense, those first in which the next best sense is farthest behind."""
    others = np.delete(joint, k, axis=1)
    lead = joint[:, k] - others.max(axis=1) if others.size else joint[:, k]
    own = np.flatnonzero(joint.argmax(axis=1) == k)
    texts: dict[str, None] = {}
    for i in own[np.argsort(-lead[own], kind="stable")].tolist():
        texts[format_passage(tokens[found[i].sentence], found[i].position, EXAMPLE_WINDOW)] = None
        if len(texts) == EXAMPLES:
            break
    return tuple(texts)


# Induced senses in files: the mixture, and how contexts become what it sees.


MIXTURE, IDF, AXES = "mixture.", "space.idf", "space.axes"


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model."""
    mixture = content(model.mixture_, *model.mixture_.stored())
    arrays = {MIXTURE + name: array for name, array in mixture.arrays.items()}
    if model.space_ is not None:
        arrays |= {IDF: model.space_.idf, AXES: model.space_.axes}
    meta = {
        "settings": plain_settings(model),
        "forms": None if model.forms_ is None else sorted(model.forms_),
        "vocabulary": model.vocabulary_.tolist(),
        "senses": [[s.number, s.share, s.words, s.examples] for s in model.senses_],
        "mixture": mixture.meta,
    }
    store.write(path, type(model).__name__, arrays, meta, model.signature_)


def restore(cls: Any, stored: store.Stored, given: dict[str, Any]) -> Any:
    """A model from a file: whatever is wrong with the file, the answer is a `StoreError`."""
    try:
        return _restored(cls, stored, given)
    except StoreError:
        raise
    except (SoftcountError, LookupError, TypeError, ArithmeticError, ValueError) as error:
        raise StoreError(
            f"the file does not describe a {cls.__name__}: {getattr(error, 'message', error)}",
            AGAIN,
        ) from error


def _restored(cls: Any, stored: store.Stored, given: dict[str, Any]) -> Any:
    meta = stored.meta
    model = cls(**{**meta["settings"], **given})
    model._check_settings()
    vocabulary = strings(meta["vocabulary"], len(meta["vocabulary"]), "words")
    forms = meta["forms"]
    model.vocabulary_ = vocabulary
    model.forms_ = None if forms is None else frozenset(strings(forms, len(forms), "forms"))  # type: ignore[arg-type]
    model.space_ = None if model.svd is None else _space(stored, len(meta["vocabulary"]))
    model.mixture_ = _mixture(stored, model.svd is not None)
    seen = len(meta["vocabulary"]) if model.space_ is None else len(model.space_.axes)
    if model.mixture_.n_features_in_ != seen or model.mixture_.n_components != model.n_components:
        raise StoreError("the mixture in the file is of other contexts", AGAIN)
    model.senses_ = [_sense(*row) for row in meta["senses"]]
    return model


def _space(stored: store.Stored, n_words: int) -> SemanticSpace:
    return SemanticSpace(numbers(stored, IDF, (n_words,)), numbers(stored, AXES, (None, n_words)))


def _mixture(stored: store.Stored, of_points: bool) -> Any:
    kind = GaussianMixture if of_points else MultinomialMixture
    arrays = {
        name.removeprefix(MIXTURE): array
        for name, array in stored.arrays.items()
        if name.startswith(MIXTURE)
    }
    return kind.restore(
        store.Stored(kind.__name__, arrays, stored.meta["mixture"], stored.signature)
    )


def _sense(number: Any, share: Any, words: Any, examples: Any) -> Sense:
    marks = tuple((str(name), float(part)) for name, part in words)
    return Sense(int(number), float(share), marks, tuple(map(str, examples)))


# The estimator: sentences in, senses out.


class SenseInducer(HasLearner, BaseEstimator):  # type: ignore[misc]
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

    def __init__(
        self,
        n_components: int = 2,
        *,
        window: int | None = 25,
        near: int = 3,
        min_count: int = 2,
        stop_words: Collection[str] = (),
        svd: int | None = None,
        smoothing: float = 0.1,
        init: Any = "kmeans",
        short_runs: int = 5,
        learner: Learner | str | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        n_init: int | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.window = window
        self.near = near
        self.min_count = min_count
        self.stop_words = stop_words
        self.svd = svd
        self.smoothing = smoothing
        self.init = init
        self.short_runs = short_runs
        self.learner = learner
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.engine = engine
        self.random_state = random_state

    # learning
    def fit(
        self,
        sentences: Any,
        target: str | Iterable[str] | None = None,
        *,
        positions: Sequence[Any] | None = None,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn the senses of a word from sentences: texts, or lists of words.

        ``target``     the word, or several forms of it; upper and lower case are the same
        ``positions``  instead: where it stands in each sentence (a number, or a list of numbers)

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        forms = None if target is None else contexts.list_forms(target)
        tokens, found = self._found(sentences, forms, positions)
        with all_or_nothing(self):
            self._learn_words(tokens, found)
            self.forms_, self.occurrences_ = forms, found
            counts = self._counts(tokens, found)
            self.space_ = self._space(counts)
            if options.get("development") is not None:
                options["development"] = self._observed(options["development"], None)[0]
            self.mixture_ = self._mixture().fit(self._placed(counts), init=init, **options)
            self.senses_ = self._described(counts, tokens)
        return self

    def _space(self, counts: Any) -> SemanticSpace | None:
        return None if self.svd is None else SemanticSpace.of(counts, self.svd, self._seed())

    def _bind(
        self, sentences: Any, target: str | Iterable[str] | None = None
    ) -> tuple[MixtureCore, Items]:
        """The mixture's core and its corpus; without a target, for that of an earlier fit."""
        forms = getattr(self, "forms_", None) if target is None else contexts.list_forms(target)
        fresh = type(self)(**self.get_params(deep=False))
        tokens, found = fresh._found(sentences, forms, None)
        fresh._learn_words(tokens, found)
        counts = fresh._counts(tokens, found)
        fresh.space_ = fresh._space(counts)
        return fresh._mixture()._bind(fresh._placed(counts))

    def estimate(self, sentences: Any, target: str | Iterable[str] | None = None) -> Estimate:
        """What `fit` will need: bytes, and work a step. Nothing is learned."""
        core, corpus = self._bind(sentences, target)
        # words of contexts are texts before they are numbers
        return self._mixture()._estimate(core, corpus).plus(words=100.0 * _n_words(sentences))

    def fit_predict(
        self,
        sentences: Any,
        target: str | Iterable[str] | None = None,
        *,
        positions: Sequence[Any] | None = None,
    ) -> Array:
        """Learn, and give the sense of each occurrence."""
        return self.fit(sentences, target, positions=positions).labels_

    def _mixture(self) -> Clusterer:
        settings = {
            "init": self.init,
            "short_runs": self.short_runs,
            "learner": self.learner,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "n_init": self.n_init,
            "engine": self.engine,
            "random_state": self.random_state,
        }
        if self.svd is None:
            return MultinomialMixture(self.n_components, smoothing=self.smoothing, **settings)
        return GaussianMixture(self.n_components, covariance="spherical", **settings)

    def _seed(self) -> int:
        return self.random_state if isinstance(self.random_state, int) else 0

    # from sentences to what the mixture sees
    def _found(
        self, sentences: Any, forms: frozenset[str] | None, positions: Sequence[Any] | None
    ) -> tuple[list[list[str]], list[Occurrence]]:
        """Sentences cut into words, and the occurrences to learn from."""
        self._check_settings()
        if (forms is None) == (positions is None):
            raise DataError(
                "say which word is meant, in one way", "give target='bank', or else positions=[…]"
            )
        tokens, found = _located(sentences, forms, positions)
        contexts.demand_found(found, tokens, forms or {"the word"})
        return tokens, found

    def _check_settings(self) -> None:
        check_learner(self._mixture(), type(self).__name__)
        least = {"window": 1, "near": 0, "min_count": 1, "svd": 1}
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is None and name in ("window", "svd"):
                continue
            check_whole(name, value, smallest)
        listed = isinstance(self.stop_words, Collection) and not isinstance(self.stop_words, str)
        if not listed or not all(isinstance(word, str) for word in self.stop_words):
            raise LearnerError(
                f"stop_words={brief(self.stop_words)} is no list of words", "give a list of texts"
            )

    def _features(self, tokens: list[list[str]], found: Sequence[Occurrence]) -> list[list[str]]:
        dropped = frozenset(word.casefold() for word in self.stop_words)
        return [
            contexts.context_features(
                tokens[where.sentence], where.position, self.window, self.near, dropped
            )
            for where in found
        ]

    def _learn_words(self, tokens: list[list[str]], found: Sequence[Occurrence]) -> None:
        seen: dict[str, int] = {}
        for bag in self._features(tokens, found):
            for word in set(bag):
                seen[word] = seen.get(word, 0) + 1
        kept = sorted(word for word, n in seen.items() if n >= self.min_count)
        if not kept:
            raise DataError(
                f"no word is in {self.min_count} of the {len(found)} contexts",
                "lower min_count, or give more sentences",
            )
        self.vocabulary_ = np.array(kept, dtype=object)

    def _counts(self, tokens: list[list[str]], found: Sequence[Occurrence]) -> Any:
        counter = CountVectorizer(analyzer=as_it_is, vocabulary=self.vocabulary_)
        return sparse.csr_matrix(counter.transform(self._features(tokens, found)))

    def _placed(self, counts: Any) -> Any:
        return counts if self.space_ is None else self.space_.points(counts)

    def _observed(self, sentences: Any, positions: Sequence[Any] | None) -> tuple[Any, int]:
        """What the mixture sees of further sentences, and how many occurrences that are."""
        if not hasattr(self, "forms_"):
            raise NotFittedError("this SenseInducer has not been fitted: call fit first")
        tokens, found = _located(sentences, self.forms_, positions)
        return self._placed(self._counts(tokens, found)), len(found)

    # what was learned
    @property
    def labels_(self) -> Array:
        """The sense of each occurrence learned from."""
        labels: Array = self._fitted().labels_
        return labels

    @property
    def weights_(self) -> Array:
        """How common each sense is."""
        return self._fitted().weights_

    @property
    def params_(self) -> dict[str, Array]:
        """The tables of the mixture."""
        return self._fitted().params_

    def decompose(
        self,
        sentences: Any,
        params: Any,
        at: Any = None,
        *,
        positions: Sequence[Any] | None = None,
    ) -> Decomposition:
        """Why EM climbs, of the mixture of contexts: see `softcount.decompose`."""
        mixture = self._fitted()
        return mixture.decompose(self._observed(sentences, positions)[0], params, at)

    @property
    def fit_(self) -> Fit:
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

    def _fitted(self) -> Clusterer:
        if not hasattr(self, "mixture_"):
            raise NotFittedError("this SenseInducer has not been fitted: call fit first")
        return self.mixture_

    def _described(self, counts: Any, tokens: list[list[str]]) -> list[Sense]:
        seen = self._placed(counts)
        shares = self.mixture_.predict_proba(seen)
        core = self.mixture_.core_
        x = self.mixture_.observe(seen, first=False)
        joint = core.joint(self.mixture_.raw_params_, x, floor=FLOOR)
        marks = marking(counts, shares, self.vocabulary_)
        return [
            Sense(k, float(share), marks[k], typical(k, joint, tokens, self.occurrences_))
            for k, share in enumerate(shares.mean(axis=0))
        ]

    # what it says of sentences
    def occurrences(
        self, sentences: Any, *, positions: Sequence[Any] | None = None
    ) -> list[Occurrence]:
        """Where the word occurs: what rows of `predict` and `predict_proba` belong to."""
        self._fitted()
        return _located(sentences, self.forms_, positions)[1]

    def predict(self, sentences: Any, *, positions: Sequence[Any] | None = None) -> Array:
        """The likeliest sense of each occurrence, in the order of `occurrences`."""
        return self._asked("predict", sentences, positions, np.zeros(0, np.int64))

    def predict_proba(self, sentences: Any, *, positions: Sequence[Any] | None = None) -> Array:
        """The probability of each sense for each occurrence, (occurrences, senses)."""
        nothing = np.zeros((0, self.n_components))
        return self._asked("predict_proba", sentences, positions, nothing)

    transform = predict_proba

    def score_samples(self, sentences: Any, *, positions: Sequence[Any] | None = None) -> Array:
        """log p(context) of each occurrence."""
        return self._asked("score_samples", sentences, positions, np.zeros(0))

    def score(
        self, sentences: Any, y: Any = None, *, positions: Sequence[Any] | None = None
    ) -> float:
        """The mean of log p(context) over the occurrences."""
        logs = self.score_samples(sentences, positions=positions)
        if not len(logs):
            raise DataError("the word does not occur here", "there is nothing to score")
        return float(np.mean(logs))

    def _asked(self, what: str, sentences: Any, positions: Any, nothing: Array) -> Array:
        seen, n = self._observed(sentences, positions)
        return getattr(self._fitted(), what)(seen) if n else nothing

    def generate(self, n: int = 1, random_state: Any = 0) -> Any:
        """New contexts: bags as lists of words; with ``svd``, points."""
        drawn = self._fitted().generate(n, random_state)
        if self.space_ is not None:
            return drawn
        return [np.repeat(self.vocabulary_, row.astype(int)).tolist() for row in drawn.toarray()]

    # files
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, for `softcount.load`."""
        self._fitted()
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a model that `save` wrote."""
        return cls.restore(store.read(path, cls.__name__))

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        """A model from what a file holds (see `softcount.load`)."""
        model: Self = restore(cls, stored, given)
        return model


def _located(
    sentences: Any, forms: frozenset[str] | None, positions: Sequence[Any] | None
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


def _n_words(sentences: Any) -> int:
    return sum(len(one.split()) if isinstance(one, str) else len(one) for one in sentences)
