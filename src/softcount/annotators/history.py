"""History of the labels of items over the steps of learning."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from softcount.annotators import Annotators
from softcount.core.errors import DataError
from softcount.kernels.posterior import soft
from softcount.labels.history import History
from softcount.mixture.core import FLOOR


def annotator_history(model: Annotators, votes: Any, y: Any = None, gold: Any = None) -> History:
    """Return the label and confidence of each item after every step of learning.

    Round 0 is the known labels, round 1 the initial parameters, round 2 the first step. The model
    must have been fitted to these ``votes`` and ``y`` with ``keep_params=True``. ``gold`` are true
    labels for the accuracy, one per item or a mapping {item: label}.

    >>> votes = [("s1", "ann", "yes"), ("s1", "bob", "yes"), ("s1", "eve", "no"),
    ...          ("s2", "ann", "no"), ("s2", "bob", "no"), ("s2", "eve", "yes"),
    ...          ("s3", "ann", "yes"), ("s3", "eve", "no")]
    >>> model = Annotators().fit(votes, keep_params=True)
    >>> history = annotator_history(model, votes, gold={"s3": "yes"})
    >>> [event.label for event in history.of(2)], history.rounds[-1].accuracy
    (['yes'], 1.0)
    """
    rebound = copy(model)  # because binding overwrites attributes
    _, corpus = rebound._bind(votes, y)
    for name in ("items_", "annotators_", "classes_"):
        if not np.array_equal(getattr(rebound, name), getattr(model, name)):
            raise DataError(
                f"the model was fitted to other votes: {name} differs",
                "give the votes, and the labels y, that it was fitted to",
            )
    known = corpus.known
    given = np.where(known.upper - known.lower == 1, known.lower, -1)
    if isinstance(gold, Mapping):
        gold = [gold.get(item) for item in model.items_.tolist()]
    history = History.begin(model.classes_, given, gold)
    for state, params in zip(model.trace_, model.trace_.params, strict=True):
        joint = model.core_.joint(params, corpus.x, floor=FLOOR)
        posteriors = np.empty_like(joint)
        soft(joint, known.lower, known.upper, 1.0, posteriors)
        view = "step" if state.step else "start"
        history.record(posteriors.argmax(axis=1), posteriors.max(axis=1), view)
    return history
