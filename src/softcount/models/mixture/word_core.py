"""Mixtures of documents can be sampled with all their parameters integrated out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from softcount.corpus.bags import Bags
from softcount.errors import LearnerError
from softcount.families import Categorical, StickBreaking
from softcount.models.mixture.collapsed import CollapsedMixture, Restaurant
from softcount.models.mixture.core import MixtureCore, fill
from softcount.models.mixture.items import Known, Shard
from softcount.types import Array, How, Params


class WordCore(MixtureCore):
    """A mixture whose classes are multinomials over words (`softcount.job.Collapsible`)."""

    def collapse(self, shards: Sequence[Shard], params: Params, stream: int) -> CollapsedMixture:
        """The sampler for all documents, which begin in classes drawn from their posterior."""
        _demand_plain(shards)
        words = self.families["words"]
        assert isinstance(words, Categorical)
        documents = Bags.of(sparse.vstack([_bags(shard).matrix for shard in shards]))
        known = [shard.known for shard in shards]
        return CollapsedMixture(
            *documents.by_document,
            documents.n_words,
            alpha=self._restaurant() or np.broadcast_to(self._alpha(), self.n_classes),
            beta=_of_words(words),
            assignments=np.concatenate([self._drawn(params, shard, stream) for shard in shards]),
            allowed=(
                np.concatenate([each.lower for each in known]),
                np.concatenate([each.upper for each in known]),
            ),
        )

    def _drawn(self, params: Params, shard: Shard, stream: int) -> Array:
        """A class for each document, drawn from its posterior."""
        joint = self.joint(params, shard.x, floor=1e-300)
        (reading,) = shard.known.readings()
        shares, _, _ = fill(joint, reading, shard.numbers, How(fill="sample", stream=stream))
        classes: Array = shares.argmax(axis=1)
        return classes

    def _restaurant(self) -> Restaurant | None:
        weights = self.families["weights"]
        if isinstance(weights, StickBreaking):
            return Restaurant(weights.concentration, self.n_classes)
        return None

    def _alpha(self) -> float | Array:
        weights = self.families["weights"]
        assert isinstance(weights, Categorical)
        return weights.alpha


def _of_words(family: Categorical) -> float | Array:
    """The prior of words, which all classes must share."""
    if isinstance(family.alpha, float):
        return family.alpha
    rows = family.alpha.reshape(family.shape)
    if np.any(rows != rows[0]):
        raise LearnerError(
            "a collapsed sampler needs one prior of words for all classes", "use Gibbs()"
        )
    first: Array = rows[0]
    return first


def _bags(shard: Shard) -> Bags:
    assert isinstance(shard.x, Bags)
    return shard.x


def _demand_plain(shards: Sequence[Shard]) -> None:
    """A document is in one class, once: weights and shares have no meaning to this sampler."""
    known: list[Known] = [shard.known for shard in shards]
    if any(each.shares is not None or np.any(each.weights != 1.0) for each in known):
        raise LearnerError(
            "a collapsed sampler takes every document once: there can be neither weights nor "
            "soft labels",
            "use Gibbs(), or leave the weights out",
        )
