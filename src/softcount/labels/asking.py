"""Active learning: which items to label next (Settles 2012, *Active Learning*).

A model that has learned from a few labels is asked which of the unlabelled items it would learn
most from. `ask` ranks them by how unsure the model is of each, or by how much a committee of models
disagrees about it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import entr

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimator import Estimator
from softcount.core.fit import open_session
from softcount.core.parameters import check_whole
from softcount.core.theory import decompose
from softcount.core.types import EStep, FloatArray, IntArray, Params
from softcount.learners.named import Gibbs

By = Literal["margin", "entropy", "committee", "information", "random"]
SURE = 1e-12
"""Scores below this fraction of an item's own terms are rounding."""


@dataclass(frozen=True)
class Questions:
    """The items to label next, the most informative first.

    ``items``   their numbers, (questions,)
    ``scores``  how much each promises, by the criterion ``by``, (questions,)

    >>> questions = Questions(np.array([4, 2]), np.array([0.9, 0.1]), "margin")
    >>> list(questions)
    [4, 2]
    """

    items: IntArray
    scores: FloatArray
    by: str

    def __iter__(self) -> Iterator[int]:
        return iter(self.items.tolist())

    def __len__(self) -> int:
        return len(self.items)


def ask(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    n: int = 20,
    by: By = "margin",
    committee: int = 8,
    density: float = 0.0,
    random_state: Any = 0,
) -> Questions:
    """Choose n unlabelled items whose labels would teach the model most.

    ``model``         fitted: a classifier with ``predict_proba``, a `HMM` or a `PCFG`
    ``X``             the items: documents, rows, sentences
    ``y``             their labels, −1 or None where unknown; for an `HMM` a list of tags for each
                      sentence. Labelled items are never asked for. None: nothing is labelled
    ``n``             number of items
    ``by``            "margin": the two best classes are nearly as probable as each other. For a
                      sentence, those of its least certain word; for a tree, the two best trees
                      "entropy": H(z | x), for sentences and trees that of the whole derivation
                      "committee": votes of several models differ (entropy of the votes)
                      "information": probabilities of several models differ (mutual information of
                      label and parameters)
                      "random": for comparison
    ``committee``     number of models: draws from the posterior of the parameters. The draws that
                      the learner kept (`Gibbs`), or else draws given the expected counts of X and
                      y, which must then be the data that the model was fitted to
    ``density``       multiply scores by the mean cosine with all items, raised to this power, so
                      that outliers are asked for last; for rows and documents only
    ``random_state``  seed of committees and random choices

    Entropy and committees of sentences are sums over their words, so long sentences come first.

    >>> import softcount as sc
    >>> texts = ["good good fine", "bad awful bad", "good bad", "fine good", "awful"]
    >>> labels = ["+", "-", None, None, None]
    >>> model = sc.NaiveBayes().fit(texts, labels)
    >>> list(ask(model, texts, labels, n=1))
    [2]
    """
    check_whole("n", n)
    check_whole("committee", committee, 2)
    if by not in get_args(By):
        raise LearnerError(
            f"by={brief(by)} is not a criterion", f"choose from {', '.join(get_args(By))}"
        )
    if not density >= 0.0:
        raise LearnerError(f"density is {density}", "give 0 or more")
    X = X if hasattr(X, "shape") else list(X)
    n_items = X.shape[0] if hasattr(X, "shape") else len(X)
    free = np.flatnonzero(~_find_known(y, n_items))
    rng = np.random.default_rng(random_state)
    pool = _take(X, free)
    n = min(n, len(free))
    if not n:
        return Questions(free, np.zeros(0), by)
    if by == "random":
        chosen = rng.permutation(len(free))[:n]
        return Questions(free[chosen], np.ones(n), by)
    if by in ("committee", "information"):
        members = _draw_committee(model, X, y, committee, rng)
        scores = _disagreement([_predict(one, pool) for one in members], votes=by == "committee")
    elif by == "entropy" and _has_derivations(model):
        best, scores = _most_uncertain(model, pool, n)
        return Questions(free[best], scores, by)
    else:
        scores = _margins(model, pool) if by == "margin" else _entropies(_predict(model, pool))
    if density:
        scores = scores * _density(model, X)[free] ** density
    best = np.argsort(-scores, kind="stable")[:n]
    return Questions(free[best], scores[best], by)


def _find_known(y: Any, n_items: int) -> Any:
    """Return which items have a label, (items,); a list of tags counts if none of it is unknown."""
    if y is None:
        return np.zeros(n_items, bool)
    if len(y) != n_items:
        raise DataError(f"{len(y)} labels for {n_items} items", "give one for each, -1 if unknown")
    known = []
    for label in y:
        parts = label if isinstance(label, list | tuple) else [label]
        known.append(all(part is not None and not _is_unknown(part) for part in parts))
    return np.array(known, bool)


def _is_unknown(label: Any) -> bool:
    return isinstance(label, int | float | np.number) and not label >= 0  # −1, NaN


def _take(X: Any, numbers: IntArray) -> Any:
    """Return some of the items, in the form they came in."""
    if hasattr(X, "iloc"):
        return X.iloc[numbers]
    return X[numbers] if hasattr(X, "shape") else [X[number] for number in numbers.tolist()]


def _has_derivations(model: Any) -> bool:
    """Return whether items are sentences with hidden sequences or trees, not a class each."""
    return isinstance(model, Estimator) and (
        hasattr(model, "posterior_sample") or hasattr(model, "k_best")
    )


# uncertainty of one model

Tables = list[FloatArray]
"""Probabilities of each item: (parts of the item, classes), where documents have one part."""


def _predict(model: Any, items: Any) -> Tables:
    if not hasattr(model, "predict_proba"):
        raise LearnerError(
            f"{type(model).__name__} has no probabilities of labels to ask by",
            'use by="margin" or by="entropy", or a model with predict_proba',
        )
    found = model.predict_proba(items)
    return [np.atleast_2d(table) for table in found]


def _entropies(tables: Tables) -> FloatArray:
    return np.array([entr(table).sum() for table in tables])


def _margins(model: Any, items: Any) -> FloatArray:
    """Return 1 − (p(best) − p(second)) of each item, its least certain part if it has several."""
    if not hasattr(model, "predict_proba") and hasattr(model, "k_best"):
        return _tree_margins(model, items)
    margins = []
    for table in _predict(model, items):
        if not len(table):
            margins.append(0.0)
            continue
        two = np.sort(table, axis=1)[:, -2:]
        gaps = two[:, -1] - two[:, 0] if table.shape[1] > 1 else np.ones(len(table))
        margins.append(1.0 - float(gaps.min()))
    return np.array(margins)


def _tree_margins(model: Any, items: Any) -> FloatArray:
    logs = model.score_samples(items)
    margins = []
    for log_p, trees in zip(logs, model.k_best(items, 2), strict=True):
        p = [float(np.exp(tree_log - log_p)) for tree_log, _ in trees]
        margins.append(1.0 - (p[0] - (p[1] if len(p) > 1 else 0.0)) if p else 0.0)
    return np.array(margins)


def _most_uncertain(model: Any, items: Any, n: int) -> tuple[IntArray, FloatArray]:
    """Return the n items whose derivations have the highest entropy, and these entropies.

    The entropy of a sequence is at most the sum of its words' entropies, so sentences are looked at
    in the order of these sums, and only until no other can be among the best.
    """
    if hasattr(model, "predict_proba"):
        limits = _entropies(_predict(model, items))
    else:
        limits = np.full(len(items), np.inf)
    order = np.argsort(-limits, kind="stable")
    found: dict[int, float] = {}
    least = -np.inf
    for number in order.tolist():
        if len(found) >= n and limits[number] <= least:
            break
        found[number] = _entropy_of_derivations(model, items[number])
        if len(found) >= n:
            least = sorted(found.values(), reverse=True)[n - 1]
    best = sorted(found, key=lambda number: (-found[number], number))[:n]
    return np.array(best), np.array([found[number] for number in best])


def _entropy_of_derivations(model: Any, item: Any) -> float:
    """Return H(z | x) of one item, by Q and the log-likelihood; 0 if it is impossible or empty."""
    if not len(item) or not np.isfinite(model.score_samples([item])[0]):
        return 0.0
    corpus = model._bind_more(model.core_, [item])
    found = decompose(model.core_, corpus, model.raw_params_)
    return found.entropy if found.entropy > SURE * abs(found.log_likelihood) else 0.0


# committees


def _disagreement(members: Sequence[Tables], *, votes: bool) -> FloatArray:
    """Return how much members disagree about each item, in nats.

    ``votes``  the entropy of their votes; else the Jensen–Shannon divergence of their
               probabilities, which is the mutual information of labels and parameters
    """
    scores = []
    for tables in zip(*members, strict=True):
        p = np.stack(tables)  # (members, parts, classes)
        if votes:
            p = p == p.max(axis=2, keepdims=True)
            p = p / p.sum(axis=2, keepdims=True)
        mixed = entr(p.mean(axis=0)).sum()
        scores.append(mixed if votes else max(0.0, mixed - entr(p).sum() / len(p)))
    return np.array(scores)


def _draw_committee(model: Any, X: Any, y: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """Return models whose parameters are drawn from their posterior."""
    if not isinstance(model, Estimator):
        raise LearnerError(
            f"a committee needs draws of parameters, which {type(model).__name__} does not have",
            'use by="margin" or by="entropy"',
        )
    kept = [draw for chain in model._get_fit().draws for draw in chain]
    if kept:
        spread = np.linspace(0, len(kept) - 1, min(size, len(kept))).round().astype(int)
        draws = [kept[number] for number in spread.tolist()]
    else:
        draws = list(_draw_params(model, X, y, size, rng))
    members = []
    for draw in draws:
        member = copy(model)
        member.raw_params_ = draw
        members.append(member)
    return members


def _draw_params(
    model: Estimator, X: Any, y: Any, size: int, rng: np.random.Generator
) -> Iterator[Params]:
    """Draw parameters given the expected counts of the data (McCallum and Nigam 1998)."""
    lacks = model._lacks_prior()
    if lacks:
        raise LearnerError(
            f"a committee needs a prior, but {type(model).__name__} has none ({lacks})",
            f'{model._prior_hint()}; or use by="margin"',
        )
    sampler = copy(model)  # priors are those of averages, not of modes
    sampler.learner, sampler.max_iter, sampler.tol, sampler.n_init = Gibbs(), None, None, None
    core, corpus = _bind_with_labels(sampler._bind, X, y)
    params = model.raw_params_
    shapes = {name: np.shape(family.uniform()) for name, family in core.families.items()}
    if shapes != {name: np.shape(table) for name, table in params.items()}:
        raise DataError(
            "these are not the data that the model was fitted to: their words or labels differ",
            "give the data of fit, labelled and unlabelled; or fit with Gibbs(), which keeps draws",
        )
    with open_session(core, corpus, model.engine) as session:
        counts = session.expect(core.expect, params, EStep()).counts
    for _ in range(size):
        yield {
            name: family.draw(counts[name], params[name], rng)
            for name, family in core.families.items()
        }


def _bind_with_labels(bind: Callable[..., Any], X: Any, y: Any) -> Any:
    """Bind data and labels; those of sequences are called tags."""
    return bind(X, **{"tags" if "tags" in inspect.signature(bind).parameters else "y": y})


def _density(model: Any, X: Any) -> FloatArray:
    """Return the mean cosine of each item with all items, (items,)."""
    from scipy import sparse

    rows = X
    if not (sparse.issparse(X) or np.asarray(X).dtype.kind in "biuf"):
        vectorizer = getattr(model, "vectorizer_", None)
        if vectorizer is None:
            raise LearnerError(
                "density is for documents and rows: other items have no cosine", "use density=0"
            )
        rows = vectorizer.transform(X)
    rows = sparse.csr_matrix(rows, dtype=np.float64)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    unit = sparse.diags(1.0 / np.where(lengths > 0.0, lengths, 1.0)) @ rows
    mean = np.asarray(unit.mean(axis=0)).ravel()
    similar: FloatArray = np.maximum(unit @ mean, 0.0)
    return similar
