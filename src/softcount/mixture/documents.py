"""Mixtures of bags of words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse

from softcount.core import store
from softcount.core.estimate import Estimate
from softcount.core.parameters import mixture_priors, no_mode, no_prior
from softcount.core.store import numbers
from softcount.core.types import Array, FloatArray, IntArray
from softcount.families import Categorical
from softcount.families.base import Family
from softcount.mixture import starts
from softcount.mixture.base import Clusterer, Mixture
from softcount.mixture.core import BagEmission, MixtureCore, PresenceEmission, WordCore
from softcount.mixture.data import MixtureCorpus, OnDisk
from softcount.mixture.parameters import MultinomialMixtureParameters
from softcount.mixture.starts import Start
from softcount.text.archive import Archive
from softcount.text.bags import Bags
from softcount.text.documents import DocumentReader, evenly_spaced, find_characteristic_words


@dataclass(frozen=True, eq=False)
class BagsOnDisk(OnDisk):
    """Documents of an archive as observations.

    ``archive``   the documents
    ``presence``  whether all counts are to be 1: see `Bags.present`
    ``length``    see `Bags.scaled`; None: documents as they are
    """

    archive: Archive
    presence: bool = False
    length: float | None = None

    @property
    def n_words(self) -> int:
        return self.archive.n_words

    @property
    def n_entries(self) -> int:
        return self.archive.facts.n_entries

    @property
    def tokens(self) -> float:
        if self.length is not None:
            return self.length * len(self)
        return float(self.n_entries) if self.presence else self.archive.tokens

    @property
    def width(self) -> float:
        return self.n_entries / len(self)

    def __len__(self) -> int:
        return len(self.archive)

    def take(self, items: IntArray) -> Bags:
        bags = self.archive.bags(items)
        bags = bags.present() if self.presence else bags
        return bags if self.length is None else bags.scaled(self.length)

    def part(self, first: int, last: int) -> Bags:
        return self.take(np.arange(first, last))

    @cached_property
    def _cut(self) -> list[tuple[int, int]]:
        return self.archive.cut()

    def cut(self) -> list[tuple[int, int]]:
        return self._cut

    def name(self, number: int) -> str:
        return self.archive.name(number)


class WordMixture(DocumentReader, Mixture):
    """Base of document mixtures: reading of documents, and p(word | class).

    Documents on disk are an `softcount.text.archive.Archive`.
    """

    smoothing: float
    prior: float | Mapping[str, float] | None
    bernoulli: bool

    def observe(self, X: Any, *, first: bool) -> Bags | BagsOnDisk:
        if isinstance(X, Archive):
            self._adopt_archive(X, first=first)
            return BagsOnDisk(X, self.bernoulli)
        bags = self._read_documents(X, first=first)
        return bags.present() if self.bernoulli else bags

    @property
    def _core_name(self) -> str:
        return "bernoulli mixture" if self.bernoulli else "multinomial mixture"

    def make_core(self, x: Any, weights: FloatArray | None = None) -> MixtureCore:
        core, emission = (
            (MixtureCore, PresenceEmission) if self.bernoulli else (WordCore, BagEmission)
        )
        return core(
            self._core_name,
            self.weights_family(),
            emission(self.n_classes, x.n_words, self._priors()["words"]),
            self.default_learner,
            averages=not self._maximises,
        )

    def weights_family(self) -> Family:
        """Return the family of the class weights."""
        return Categorical((1, self.n_classes), self._priors()["weights"])

    def _priors(self) -> dict[str, float]:
        """Return the Dirichlet concentrations of class weights and words."""
        return mixture_priors(self.smoothing, self.prior, self._maximises, "words")

    def _lacks_sampler(self) -> str:
        return f"{self._display_name} has no collapsed sampler for bernoulli=True" * self.bernoulli

    _item = "document"

    def _find_items(self, x: Any, word: Any) -> IntArray:
        if isinstance(x, BagsOnDisk):
            parts = (self._find_items(x.part(*run), word) + run[0] for run in x.cut())
            return np.concatenate([np.empty(0, np.int64), *parts])
        if isinstance(word, str) and self.vocabulary_ is not None:
            columns = np.flatnonzero(self.vocabulary_ == word)
            if not len(columns):  # texts are usually read in lower case
                columns = np.flatnonzero(self.vocabulary_ == word.lower())
        else:
            columns = np.array([word] if isinstance(word, int) and word < x.n_words else [], int)
        by_word = x.by_word
        items = [by_word.columns[by_word.indptr[w] : by_word.indptr[w + 1]] for w in columns]
        return np.concatenate([np.empty(0, np.int64), *items]).astype(np.int64)

    def _solvable_starts(self) -> Collection[str]:
        return {"spectral", "anchor"} & set(self.starts())

    def _lacks_prior(self) -> str:
        return no_prior(self.smoothing, self.prior, "words")

    def _lacks_mode(self) -> str:
        return no_mode(self.prior)

    def starts(self) -> Mapping[str, Start]:
        offered: dict[str, Start] = {
            "kmeans": starts.kmeans_of_words,
            "random": starts.at_random,
            "memberships": starts.random_memberships,
            "uniform": starts.uniform,
        }
        if not self.bernoulli:
            offered["spectral"] = partial(starts.by_estimate, starts.estimate_from_moments)
            offered["anchor"] = partial(starts.by_estimate, starts.estimate_from_anchors)
        return offered

    def _estimate(self, core: MixtureCore, corpus: MixtureCorpus) -> Estimate:
        """Add the memory of a k-means start, whose SVD may need more than the model itself."""
        needed = super()._estimate(core, corpus)
        if not isinstance(self.init, str) or self.init != "kmeans":
            return needed
        x: Any = corpus.x
        n = len(corpus)
        if isinstance(x, BagsOnDisk):
            n = starts.sample_size(x, core.n_classes)
        return needed.plus(start=starts.bytes_of_kmeans(n, x.n_words))

    def _after_fit(self, corpus: MixtureCorpus) -> None:
        super()._after_fit(corpus)
        x: Any = corpus.x
        if isinstance(x, BagsOnDisk):
            x = x.take(evenly_spaced(len(x)))
        self._remember_lengths(x.lengths)

    # fitted attributes
    @property
    def words_(self) -> FloatArray:
        """p(word | class), (classes, words); for a Bernoulli mixture p(word present | class)."""
        self._require_fit()
        table = self.raw_params_["words"]
        if self.bernoulli:
            return table.reshape(self.core_.n_classes, -1, 2)[:, :, 1]
        return table

    def _table_names(self) -> dict[str, tuple[Any, ...]]:
        classes, words = self._class_names, self.word_names().tolist()
        if self.bernoulli:
            rows = [(name, word) for name in classes for word in words]
            return {"words": (rows, ["absent", "present"])}
        return {"words": (classes, words)}

    def class_words(self) -> tuple[FloatArray, FloatArray]:
        """Return p(class), (classes,), and p(word | class), (classes, words)."""
        return self.weights_, self.words_

    def top_words(self, n: int = 10) -> list[list[tuple[Any, float]]]:
        """Return the characteristic words of each class, with their probabilities: see
        `find_characteristic_words`."""
        return find_characteristic_words(*self.class_words(), self.word_names(), n)

    # new data
    def _generate(self, classes: IntArray, rng: Generator) -> Any:
        """Draw documents with lengths of training documents: texts if the model was fitted to
        texts, else counts."""
        lengths = self._draw_lengths(len(classes), rng)
        table, emission = self.raw_params_["words"], self.core_.emission
        return self._write_documents(emission.generate(table, classes, rng, lengths), rng)

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        return self._store_words()

    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Bags:
        K, V = self.n_classes, self.n_features_in_
        numbers(stored, store.TABLE + "words", (K * V, 2) if self.bernoulli else (K, V))
        self._restore_words(stored, given)
        return Bags.of(sparse.csr_matrix((0, V)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


class MultinomialMixture(MultinomialMixtureParameters, WordMixture, Clusterer):
    """A mixture of multinomials over words: Naive Bayes without labels (Nigam et al. 2000).

    p(document) = Σ_k π_k Π_w θ_kw^count(w). Documents are texts, lists of words, or rows of a
    matrix of counts.

    ``n_components``  number of classes
    ``bernoulli``     model whether a word occurs, not how often (a Bernoulli mixture)
    ``smoothing``     pseudocount added to every count of a word in a class
    ``prior``         instead of ``smoothing``: the Dirichlet concentration of words (or one for
                      each table: "weights", "words"); below 1 only for `VariationalBayes` and
                      samplers
    ``init``          'kmeans' (on tf-idf reduced by SVD), 'random', 'memberships' (every document
                      in a random class), 'spectral', 'anchor', 'uniform', or tables {"weights": …,
                      "words": …}
    ``short_runs``    try this many starts with two quick passes each, and continue from the best
    ``vectorizer``    turns texts into counts (scikit-learn's `CountVectorizer` or similar)
    ``learner``, ``engine``, ``random_state``  learning algorithm, where it runs, and its seed

    >>> headlines = ["Apple released iPod", "Apple released iPhone", "Apple released iPad",
    ...              "Tom bought one iPod", "Tom bought one iPhone", "Tom bought one iPad"]
    >>> model = MultinomialMixture(2).fit(headlines)
    >>> [int(k != model.labels_[0]) for k in model.labels_]
    [0, 0, 0, 1, 1, 1]
    """
