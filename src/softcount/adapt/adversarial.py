"""`AdversarialNetwork`: features that do not tell domains apart.

A network with one hidden layer, a head for classes and a head for domains, in numpy.

h = tanh(x W + b);  p(class | x) = softmax(h V + c);  p(target | x) = σ(h·u + d)

Between h and the head for domains lies a gradient reversal layer (Ganin et al. 2016): forwards it
does nothing, backwards it multiplies by −λ. The head learns to tell the domains apart, what is
below it to make that impossible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils.validation import check_is_fitted

from softcount.adapt.base import Adapter
from softcount.adapt.data import Task
from softcount.adapt.parameters import AdversarialParameters
from softcount.core import interrupt
from softcount.core.errors import DataError, brief
from softcount.core.estimate import NUMBER, Estimate
from softcount.core.parameters import generator
from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.core.verdict import Verdict
from softcount.mixture.data import UNKNOWN

FAINT = 0.01
"""Size of the first inputs of hidden units: words that no label speaks of go on saying nothing."""
RIDGE = 0.01
"""Of the penalty on the domain head, ½ RIDGE |u|². Without it, u chases the gap between the
domains and the gap flees from u: the loss is at chance, and yet h tells the domains apart."""
HEAD_RATE = 5.0
"""So many times faster learns the domain head: what is reversed should be near the best head."""
FEWEST_BATCHES = 50
"""An epoch has at least so many, however few items there are: steps are short."""
STEEPNESS = 10.0
"""Of the schedule of λ, as published."""


@dataclass
class AdversarialWeights:
    """The parameters: ``W`` (columns, units), ``b``, ``V`` (units, classes), ``c``, ``u``, ``d``.

    >>> net = draw_network(np.random.default_rng(0), 3, 4, 2)
    >>> net.class_posteriors(np.eye(3)).shape
    (3, 2)
    """

    W: FloatArray
    b: FloatArray
    V: FloatArray
    c: FloatArray
    u: FloatArray
    d: FloatArray

    def units(self, X: Any) -> FloatArray:
        """h, a row for each item."""
        return np.tanh(np.asarray(X @ self.W) + self.b)

    def class_posteriors(self, X: Any) -> FloatArray:
        """p(class | item)."""
        return np.asarray(softmax(self.units(X) @ self.V + self.c, axis=1))

    def label_loss(self, X: Any, y: IntArray) -> float:
        """The mean of −log p(label)."""
        log_p = log_softmax(self.units(X) @ self.V + self.c, axis=1)
        return float(-log_p[np.arange(len(y)), y].mean())

    def arrays(self) -> dict[str, FloatArray]:
        """The parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def copy(self) -> AdversarialWeights:
        """The same numbers in arrays of their own."""
        return AdversarialWeights(**{name: array.copy() for name, array in self.arrays().items()})


def draw_network(
    rng: np.random.Generator, n_columns: int, n_units: int, n_classes: int
) -> AdversarialWeights:
    """A network for rows of about length 1: x W is faint, and the domain head knows nothing."""
    return AdversarialWeights(
        W=rng.normal(size=(n_columns, n_units)) * FAINT,
        b=np.zeros(n_units),
        V=rng.normal(size=(n_units, n_classes)) / np.sqrt(n_units),
        c=np.zeros(n_classes),
        u=np.zeros(n_units),
        d=np.zeros(1),
    )


class Gradients(NamedTuple):
    """What a batch says: sums of losses, and the gradients by parameter.

    ``columns``      the columns that the rows of the gradient of W are for
    ``label_loss``   sum of −log p(label) over the ``n_labelled`` items with one
    ``domain_loss``  sum of −log p(domain) over all, without the penalty
    ``n_right``      so many domains are recognised
    """

    gradients: dict[str, FloatArray]
    columns: Any
    label_loss: float
    n_labelled: int
    domain_loss: float
    n_right: int


def compute_gradients(
    net: AdversarialWeights, X: Any, y: IntArray, in_target: BoolArray, reversal: float
) -> Gradients:
    """Gradients of L_y for V and c, of L_d + ½ RIDGE |u|² for u and d, of L_y − λ L_d for W and b.

    L_y and L_d are means of −log p over items with a label, and over all items.

    >>> net = draw_network(np.random.default_rng(0), 2, 4, 2)
    >>> found = compute_gradients(net, np.eye(2), np.array([0, -1]), np.array([False, True]), 1.0)
    >>> round(found.domain_loss / 2, 4)  # chance
    0.6931
    """
    h = net.units(X)
    known = np.flatnonzero(y != UNKNOWN)
    log_p = log_softmax(h[known] @ net.V + net.c, axis=1)
    at_labels = (np.arange(len(known)), y[known])
    # derivatives by the scores of classes, and by the margin of domains
    by_scores = np.exp(log_p)
    by_scores[at_labels] -= 1.0
    by_scores /= max(len(known), 1)
    margin = h @ net.u + net.d
    by_margin = (expit(margin) - in_target) / len(y)

    back = -reversal * np.outer(by_margin, net.u)
    back[known] += by_scores @ net.V.T
    back *= 1.0 - h * h
    columns: Any = slice(None)
    if sparse.issparse(X):  # only the columns that some row has
        present = np.zeros(X.shape[1], dtype=bool)
        present[X.indices] = True
        columns, place = np.flatnonzero(present), np.cumsum(present) - 1
        shape = (X.shape[0], len(columns))
        X = sparse.csr_matrix((X.data, place[X.indices], X.indptr), shape=shape)
    gradients = {
        "W": np.asarray(X.T @ back),
        "b": back.sum(axis=0),
        "V": h[known].T @ by_scores,
        "c": by_scores.sum(axis=0),
        "u": h.T @ by_margin + RIDGE * net.u,
        "d": by_margin.sum(keepdims=True),
    }
    return Gradients(
        gradients,
        columns,
        float(-log_p[at_labels].sum()),
        len(known),
        float(-log_expit(np.where(in_target, margin, -margin)).sum()),
        int(((margin > 0.0) == in_target).sum()),
    )


class GradientSteps:
    """Each array of parameters moves by rate · g / √(mean of |g|² so far).

    |g|² is over the whole array: scaled one by one, rare words would move as far as common ones,
    and rare words are what domains do not share. No momentum: it would make the domain head and
    the features circle. A word that a batch has not stays put, and costs no time.

    >>> net = draw_network(np.random.default_rng(0), 2, 4, 2)
    >>> before = net.c.copy()
    >>> found = compute_gradients(net, np.eye(2), np.array([0, 0]), np.array([False, True]), 0.0)
    >>> GradientSteps(net, rate=0.5).step(found)
    >>> round(float(np.linalg.norm(net.c - before)), 3)  # a first step is as long as the rate
    0.5
    """

    def __init__(self, net: AdversarialWeights, rate: float) -> None:
        self._net = net
        self._squares = dict.fromkeys(net.arrays(), 0.0)
        self._rates = {
            name: rate * (HEAD_RATE if name in ("u", "d") else 1.0) for name in self._squares
        }
        self._steps = 0

    def step(self, found: Gradients) -> None:
        """Move the network against these gradients."""
        self._steps += 1
        for name, array in self._net.arrays().items():
            gradient = found.gradients[name]
            self._squares[name] += float((gradient * gradient).sum())
            size = np.sqrt(self._squares[name] / self._steps)
            if size > 0.0:
                rows = found.columns if name == "W" else slice(None)
                array[rows] -= (self._rates[name] / size) * gradient


class Epoch(NamedTuple):
    """Means over an epoch's batches, and what the held-out labels of the source say after it.

    ``domain_loss``      log 2 ≈ 0.693 is chance; 0.5 is chance for ``domain_accuracy``
    ``validation_loss``  NaN, like ``validation_accuracy``, if nothing is held out
    """

    number: int
    reversal: float
    label_loss: float
    domain_loss: float
    domain_accuracy: float
    validation_loss: float
    validation_accuracy: float


class Epochs(list[Epoch]):
    """The epochs of a training; ``best`` is the number of the one whose weights were kept.

    >>> print(Epochs([Epoch(1, 0.5, 0.6, 0.69, 0.52, 0.5, 0.8)], best=1))
    epoch     λ  label loss  domain loss  domain accuracy  validation loss  validation accuracy
        1* 0.50       0.600        0.690            0.520            0.500                0.800
    """

    def __init__(self, epochs: Iterable[Epoch], best: int) -> None:
        super().__init__(epochs)
        self.best = best

    def __str__(self) -> str:
        names = [name.replace("_", " ") for name in Epoch._fields[2:]]
        lines = ["epoch     λ  " + "  ".join(names)]
        for one in self:
            start = f"{one.number:>5}{'*' if one.number == self.best else ' '}{one.reversal:5.2f}"
            cells = [f"{v:{len(n)}.3f}" for n, v in zip(names, one[2:], strict=True)]
            lines.append("  ".join([start, *cells]))
        return "\n".join(lines)


class AdversarialNetwork(AdversarialParameters, Adapter):
    """A shallow domain-adversarial network (Ganin et al. 2016): hidden features from which classes
    can be told, and from which it cannot be told whether an item is of a source or of the target.

    Minimises L_y − λ L_d over the hidden layer, L_y over the head for classes, L_d over the head
    for domains, step by step in batches of half source, half target. Labels of the target count
    too, where there are any. λ grows with the share t of the training that is done:
    λ(t) = λ (2 / (1 + exp(−10 t)) − 1). Several sources are one to the domain head, which tells
    them from the target: they need not be alike among themselves to be of use to it.

    ``reversal``       λ; 0: a plain network, which does not care about domains
    ``n_units``        hidden units
    ``learning_rate``  how far a step moves each array, about; rows are scaled to suit it
    ``batch_size``     half of it source, half target
    ``max_iter``       at most so many epochs, passes over the source (of 50 batches or more)
    ``validation``     share of the source's labels held out to tell when to stop; 0: never early
    ``patience``       stop after so many epochs without a smaller loss of these, and go back
    ``vectorizer``     how texts become rows; None: tf-idf with 1 + log tf
    ``random_state``   of first weights, held-out labels and batches

    Afterwards: ``history_`` (print it), ``n_iter_``, ``network_``, ``verdict_``. That the domain
    loss is at chance is necessary for success and no proof of it.

    >>> texts = ["good plot", "bad plot", "fine read", "awful read", "good blender", "bad blender"]
    >>> model = AdversarialNetwork(validation=0).fit(
    ...     texts, [1, 0, 1, 0, None, None], sample_domain=[1, 1, 1, 1, -1, -1])
    >>> model.predict(["good knife", "bad knife"]).tolist()
    [1, 0]
    """

    _needs = ("both", "source")
    network_: AdversarialWeights
    history_: Epochs
    n_iter_: int
    verdict_: Verdict

    def _estimate(self, task: Task) -> Estimate:
        """Weights of all words for each unit, and how they move."""
        units = 2.0 * NUMBER * task.X.shape[1] * self.n_units
        found = super()._estimate(task)
        return found.plus(4.0 * found.tokens * self.n_units, units=units)

    def _learn(self, task: Task) -> None:
        """Train; keep the weights of the epoch that did best on held-out labels of the source."""
        rng = generator(self.random_state)
        held_out = _hold_out(task, self.validation, rng)
        # the mean of |x|² over rows is made 1, so that a rate means the same in any units
        X = task.X
        square = X.multiply(X).sum() if sparse.issparse(X) else (X * X).sum()
        scale = float(np.sqrt(X.shape[0] / square)) if square > 0.0 else 1.0
        self._train(task, X * scale, held_out, rng)
        self.network_.W *= scale  # from here on, for rows as they come
        h = self.network_.units(X)
        of_domain = {int(d): task.domain == d for d in self.domains_}
        self._derivatives = {d: 1.0 - (h[rows] ** 2).mean(0) for d, rows in of_domain.items()}
        self._sizes = {d: int(rows.sum()) for d, rows in of_domain.items()}

    @interrupt.graceful()
    def _train(self, task: Task, X: Any, held_out: IntArray, rng: np.random.Generator) -> None:
        """Train on rows X, those held out without their labels."""
        y = _hide_labels(task, held_out)
        net = draw_network(rng, X.shape[1], self.n_units, len(task.classes))
        optimiser = GradientSteps(net, self.learning_rate)
        batches = _Batches(task.in_target, self.batch_size, rng)
        epochs: list[Epoch] = []
        best, least = 0, np.inf
        self.verdict_ = Verdict.OUT_OF_STEPS if len(held_out) else Verdict.ENOUGH
        for number in range(1, self.max_iter + 1):
            sums, weight = np.zeros(5), 0.0
            for k, rows in enumerate(batches.epoch()):
                done = (number - 1 + k / batches.n_batches) / self.max_iter
                weight = self.reversal * (2.0 / (1.0 + np.exp(-STEEPNESS * done)) - 1.0)
                found = compute_gradients(net, X[rows], y[rows], task.in_target[rows], weight)
                optimiser.step(found)
                sums += (*found[2:], len(rows))
            label_loss, n_labelled, domain_loss, n_right, n = sums.tolist()
            loss = accuracy = np.nan
            if len(held_out):
                unseen, true = X[held_out], task.y[held_out]
                right = net.class_posteriors(unseen).argmax(axis=1) == true
                loss, accuracy = net.label_loss(unseen, true), float(right.mean())
            mean = label_loss / n_labelled if n_labelled else np.nan
            heads = (domain_loss / n, n_right / n)
            epochs.append(Epoch(number, float(weight), mean, *heads, loss, accuracy))
            if not len(held_out) or loss < least:
                best, least, self.network_ = number, loss, net.copy()
            elif number - best >= self.patience:
                self.verdict_ = Verdict.CONVERGED
                break
            if interrupt.asked():
                self.verdict_ = Verdict.INTERRUPTED
                interrupt.tell(f"after {number:,} epochs: the best weights by then are kept")
                break
        self.history_, self.n_iter_ = Epochs(epochs, best), len(epochs)

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        """p(class | item), whatever the domain."""
        return self.network_.class_posteriors(X)

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """(classes, columns): how much a word speaks for each class, on average over the training
        items of a domain (None: of all targets): the mean of ∂s/∂x, where s is a class's score
        less the mean of all; with two classes one row, of ∂ log p(second)/p(first) / ∂x.

        ∂ tanh is 1 − h², so this is W diag(mean of 1 − h²) V, with V so centred.
        """
        check_is_fitted(self, "classes_")
        wanted = (
            [d for d in self._derivatives if d < 0] if sample_domain is None else [sample_domain]
        )
        if any(d not in self._derivatives for d in wanted):
            raise DataError(
                f"no item was of the domain {brief(sample_domain)}",
                f"one of {', '.join(map(str, self._derivatives))}",
            )
        sizes = [self._sizes[d] for d in wanted]
        bend = np.average([self._derivatives[d] for d in wanted], axis=0, weights=sizes)
        V = self.network_.V
        V = V[:, 1:] - V[:, :1] if V.shape[1] == 2 else V - V.mean(axis=1, keepdims=True)
        return (self.network_.W @ (bend[:, None] * V)).T


class _Batches:
    """Endless shuffled passes over source and target, as many of each in a batch."""

    def __init__(self, in_target: BoolArray, size: int, rng: np.random.Generator) -> None:
        self._pools = [np.flatnonzero(~in_target), np.flatnonzero(in_target)]
        self._half = min(size // 2, max(map(len, self._pools)))
        self._left = [np.empty(0, dtype=np.int64)] * 2
        self._rng = rng
        self.n_batches = max(-(-len(self._pools[0]) // self._half), FEWEST_BATCHES)

    def epoch(self) -> Iterator[IntArray]:
        """The items of each batch of an epoch."""
        for _ in range(self.n_batches):
            yield np.concatenate([self._draw(0), self._draw(1)])

    def _draw(self, side: int) -> IntArray:
        while len(self._left[side]) < self._half:
            more = self._rng.permutation(self._pools[side])
            self._left[side] = np.concatenate([self._left[side], more])
        drawn, self._left[side] = np.split(self._left[side], [self._half])
        return drawn


def _hold_out(task: Task, share: float, rng: np.random.Generator) -> IntArray:
    """So large a share of each class's labels in the source; never the last of a class."""
    held = []
    for number in range(len(task.classes)):
        rows = task.source[task.y[task.source] == number]
        held.append(rng.permutation(rows)[: int(share * len(rows))])
    return np.sort(np.concatenate(held))


def _hide_labels(task: Task, held_out: IntArray) -> IntArray:
    """Labels to learn from: all but those that are held out."""
    y = task.y.copy()
    y[held_out] = UNKNOWN
    return y
