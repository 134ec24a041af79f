"""Hidden Markov models of vectors: every state scatters them about a centre of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from softcount import store
from softcount.bounds import MAX_POINT_WEIGHT, MAX_VALUE, demand_values
from softcount.errors import DataError, LearnerError, StartError, StoreError, shown
from softcount.families import Gaussian
from softcount.families.covariance import Full
from softcount.families.gaussian import NIW
from softcount.kernels.packs import padded
from softcount.models import files
from softcount.models.mixture import GaussianMixture
from softcount.models.mixture.items import Points
from softcount.models.mixture.points import demand_places, demand_shapes
from softcount.models.sequences import vector_starts
from softcount.models.sequences.core import MOVES, HMMCore
from softcount.models.sequences.emissions import TABLE
from softcount.models.sequences.knowledge import TagKnowledge, Told
from softcount.models.sequences.model import MarkovModel
from softcount.models.sequences.own_starts import completed, own_tables
from softcount.models.sequences.shards import Sentences, Shard, sentence_weights
from softcount.models.sequences.tables import chain_families
from softcount.models.sequences.vector_starts import MEANS, SPREADS
from softcount.models.settings import demand_prior, smoothings
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array


class Vectors:
    """Each token is a vector, scattered about the centre of its state."""

    def __init__(self, family: Gaussian) -> None:
        self.family = family

    def likelihoods(self, params: Array, shard: Shard) -> tuple[Array, Array | None]:
        logs = self.logs(params, shard)
        peaks = logs.max(axis=1, initial=-np.inf)
        peaks = np.where(np.isfinite(peaks), peaks, 0.0)
        return padded(np.exp(logs - peaks[:, None]), np.float64), peaks

    def logs(self, params: Array, shard: Shard) -> Array:
        points = Points(shard.observed)
        return self.family.log_density(params, points.x, points.outer(self.family.form))

    def counts(self, shard: Shard, shares: Array) -> Array:
        points = Points(shard.observed)
        return self.family.statistics(points.x, shares, points.outer(self.family.form))

    def magnitude(self, params: Array, shard: Shard) -> float:
        """Σ w xᵀ P x, as of mixtures of points; full covariances go by differences."""
        if isinstance(self.family.form, Full):
            return 0.0
        return float(np.sum(shard.squares * self.family.precisions(params).max(axis=0)))


@dataclass(eq=False, repr=False)
class GaussianHMM(files.Stored, MarkovModel):
    """A hidden Markov model of vectors: p(x_i | z_i = k) = N(x_i; μ_k, Σ_k).

    ``n_states``    how many states; None: as many as there are tags
    ``covariance``  "full", "tied", "diag" or "spherical"
    ``floor``       the least variance, as a share of the data's
    ``prior``       an `NIW`, for learners with priors; None: a weak one on the scale of the data
    ``smoothing``   added to counts of starts and transitions
    ``init``        "kmeans"; or {"means": …}, also with "covariances", as ``means_`` and
                    ``covariances_`` have them; or tables as ``params_`` has them. Tables that are
                    left out begin with the states that vectors then belong to

    For the other settings see `HMM`; transitions and starts are its, too. Sequences are arrays
    (length, dimensions).

    >>> rng = np.random.default_rng(0)
    >>> walks = [rng.normal([[0.0]] * 5 + [[9.0]] * 5) for _ in range(4)]
    >>> model = GaussianHMM(2).fit(walks)
    >>> sorted(model.means_[:, 0].round().tolist()), model.predict(walks)[0][4:6]
    ([-0.0, 9.0], [1, 0])
    """

    _: KW_ONLY
    covariance: str = "full"
    floor: float = 1e-6
    prior: NIW | None = None
    starts = ("kmeans", "random")
    units = "sequences"
    smoothed = (MOVES,)

    # learning
    def bind(
        self, sequences: Any, tags: Any = None, sample_weight: Any = None
    ) -> tuple[HMMCore, Sentences]:
        """The core and the corpus."""
        self._check_settings()
        points, indptr = _points(sequences)
        if not len(points):
            raise DataError("there is not a single vector in the sequences", "look at the data")
        weights = sentence_weights(sample_weight, len(indptr) - 1, MAX_POINT_WEIGHT)
        of_tokens = np.repeat(weights, np.diff(indptr))
        if not of_tokens.any():
            raise DataError("no vector counts: all of them have the weight 0", "look at the data")
        told = Told.of_vectors(np.diff(indptr), tags)
        self.knowledge_ = TagKnowledge.of(told.names, self.n_states)
        self.n_features_in_ = points.shape[1]
        self.offset_ = np.average(points, axis=0, weights=of_tokens)
        family = self._gaussian(points - self.offset_, of_tokens)
        return self.made_core(family), self._corpus(points, indptr, told, weights)

    def _gaussian(self, points: Array, weights: Array | None) -> Gaussian:
        if self.covariance not in ("full", "tied", "diag", "spherical"):
            raise LearnerError(
                f"covariance={self.covariance!r} is unknown", "full, tied, diag or spherical"
            )
        if not isinstance(self.prior, NIW | None):
            raise LearnerError(f"prior={shown(self.prior)}", "give an NIW, or None: a weak one")
        k: Any = self.knowledge_.n_states
        like = GaussianMixture(
            k,
            covariance=self.covariance,  # type: ignore[arg-type]
            floor=self.floor,
            prior=self.prior,
            learner=self.learner,
        )
        return like.gaussian(Points(points), weights)

    def made_core(self, family: Gaussian) -> HMMCore:
        """The core for such emissions."""
        k = self.knowledge_.n_states
        self._demand_room(k)
        moves, _ = smoothings(self.smoothing, MOVES, TABLE)
        maximises = demand_prior(self.learner, moves)
        rows = self._rows()
        rows.demand_nothing_of(TABLE, "Gaussians of states")
        chain = chain_families(rows, k, self.order, self.stop, moves + maximises)
        kind = (k, self.order, self.stop, self.dtype)
        return HMMCore("GaussianHMM", chain, Vectors(family), *kind)

    def _corpus(self, points: Array, indptr: Array, told: Told, weights: Array) -> Sentences:
        sets, states = self.knowledge_.sets(told)
        shifted = points - self.offset_
        shard = Shard(np.arange(len(weights)), shifted, indptr, sets, states, weights)
        return Sentences(shard, lambda n: f"sequence {n}")

    def read(self, sentences: Any, tags: Any = None) -> Sentences:
        points, indptr = _points(sentences, self.n_features_in_)
        told = Told.of_vectors(np.diff(indptr), tags)
        return self._corpus(points, indptr, told, np.ones(len(indptr) - 1))

    def start_values(self, core: HMMCore, corpus: Sentences, init: Any) -> Any:
        if isinstance(init, Mapping):
            return self._own_start(core, corpus.everything, init)
        if init is None or (isinstance(init, str) and init == "kmeans"):
            return lambda rng: vector_starts.clustered(core, corpus.everything, rng)
        return super().start_values(core, corpus, init)

    def _own_start(self, core: HMMCore, shard: Shard, init: Mapping[str, Any]) -> Any:
        """Tables that are given; the others as vectors say that belong to states so far."""
        init = dict(init)
        centres = {name: init.pop(name) for name in (MEANS, SPREADS) if name in init}
        if centres and (TABLE in init or MEANS not in centres):
            raise StartError(
                f"the start has {', '.join([*centres, *init])}",
                f"give {MEANS}, with {SPREADS} or without, or {TABLE} as params_ has them",
            )
        tables = own_tables(core, init, self._rows()) if init or not centres else {}
        if centres:
            labels, tables[TABLE] = vector_starts.about(core, shard, self.offset_, **centres)
        elif TABLE in tables:
            labels = vector_starts.likeliest(core, shard, tables[TABLE])
        else:
            return completed(core, tables, lambda rng: vector_starts.clustered(core, shard, rng))
        return {**vector_starts.counted(core, shard, labels), **tables}

    # what was learned
    @property
    def means_(self) -> Array:
        """The centre of each state, (states, dimensions)."""
        self._require_fit()
        means: Array = self._family.means(self.raw_params_[TABLE]) + self.offset_
        return means

    @property
    def covariances_(self) -> Array:
        """full, tied (states, D, D); diag (states, D); spherical (states,)"""
        self._require_fit()
        return self._family.covariances(self.raw_params_[TABLE])

    @property
    def _family(self) -> Gaussian:
        family = self.core_.emission.family
        assert isinstance(family, Gaussian)
        return family

    def generate(
        self, n: int = 1, random_state: Any = 0, *, length: int | None = None
    ) -> list[tuple[Array, list[Any]]]:
        """New sequences, each with its states."""
        rng = self._asked(n, length, random_state)
        family, table = self._family, self.raw_params_[TABLE]
        made = []
        for _ in range(n):
            states = np.array(self._drawn_states(length, rng))
            noise = rng.standard_normal((len(states), family.n_dims))
            spread = family.form.whitened(noise, family.precisions(table)[states])
            made.append((self.means_[states] + spread, self.named(states)))
        return made

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        facts = {"tags": list(self.knowledge_.names), "n_states": self.knowledge_.n_states}
        return {"offset": self.offset_}, facts

    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> HMMCore:
        tags, k = stored.meta["tags"], stored.meta["n_states"]
        strings(tags, len(tags), "tags")
        if not isinstance(k, int) or len(stored.arrays[files.TABLE + TABLE]) != k:
            raise StoreError("the tables do not fit the states", AGAIN)
        self._check_settings()
        self.knowledge_ = TagKnowledge.of(tags, k)
        self.offset_ = numbers(stored, "offset", (self.n_features_in_,), MAX_VALUE)
        family = self._gaussian(np.zeros((0, self.n_features_in_)), None)
        table = numbers(stored, files.TABLE + TABLE, family.param_shape)
        demand_places(table, self.n_features_in_)
        demand_shapes(family, table)
        return self.made_core(family)


def _points(sequences: Any, n_dims: int | None = None) -> tuple[Array, Array]:
    """All vectors, one sequence after the other, and where sequences begin."""
    if not isinstance(sequences, Iterable):
        raise DataError(f"the data are {shown(sequences)}", "give a list of arrays (length, dims)")
    parts = [_part(n, given) for n, given in enumerate(sequences)]
    full = [part for part in parts if len(part)]
    if n_dims is None and not full:
        raise DataError("there is not a single vector in the sequences", "look at the data")
    wanted = full[0].shape[1] if n_dims is None else n_dims
    for n, part in enumerate(parts):
        if len(part) and part.shape[1] != wanted:
            raise DataError(
                f"sequence {n} has {part.shape[1]} dimensions, not {wanted}",
                "give vectors of one length",
            )
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    points = np.concatenate([np.zeros((0, wanted)), *full])
    return points, np.concatenate([np.zeros(1, np.int64), ends])


def _part(n: int, given: Any) -> Array:
    try:
        part = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"sequence {n} is not numbers", "give arrays (length, dims)") from None
    if part.size and (part.ndim != 2 or not np.isfinite(part).all()):
        raise DataError(
            f"sequence {n} has the shape {part.shape}, or a value that is no number",
            "give arrays (length, dimensions) of finite numbers",
        )
    demand_values(part, f"sequence {n} has")
    return part if part.size else np.zeros((0, 0))
