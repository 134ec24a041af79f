"""`AdversarialNetwork`: a network whose features do not distinguish domains.

A network with one hidden layer, a head for classes and a head for domains, in numpy.

h = tanh(x W + b);  p(class | x) = softmax(h V + c);  p(target | x) = σ(h·u + d)

Between h and the domain head there is a gradient reversal layer (Ganin et al. 2016): it is the
identity in the forward pass, and multiplies gradients by −λ in the backward pass. The domain head
learns to distinguish the domains, and the hidden layer to make that impossible.

Instead of a domain head there may be a distance between the features h of both domains, which is
minimised with weight λ: their maximum mean discrepancy (Long et al. 2015), or the difference of
their covariances (Sun and Saenko 2016).
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
"""Scale of the initial weights W: small, so that words without labels keep hardly any effect."""
RIDGE = 0.01
"""L2 penalty on the domain head, ½ RIDGE |u|². Without it, u follows the gap between the domains
while the gap moves away from u: the loss is at chance, and yet h distinguishes the domains."""
HEAD_RATE = 5.0
"""Learning rate of the domain head relative to the rest: it should be close to its optimum when its
gradient is reversed."""
FEWEST_BATCHES = 50
"""Minimum number of batches in an epoch, however few items there are, because steps are short."""
STEEPNESS = 10.0
"""Steepness of the schedule of λ, as published."""


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
        """Compute h, a row for each item."""
        return np.tanh(np.asarray(X @ self.W) + self.b)

    def class_posteriors(self, X: Any) -> FloatArray:
        """Compute p(class | item)."""
        return np.asarray(softmax(self.units(X) @ self.V + self.c, axis=1))

    def label_loss(self, X: Any, y: IntArray) -> float:
        """Compute the mean of −log p(label)."""
        log_p = log_softmax(self.units(X) @ self.V + self.c, axis=1)
        return float(-log_p[np.arange(len(y)), y].mean())

    def arrays(self) -> dict[str, FloatArray]:
        """Return the parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def copy(self) -> AdversarialWeights:
        """Return a deep copy."""
        return AdversarialWeights(**{name: array.copy() for name, array in self.arrays().items()})


def draw_network(
    rng: np.random.Generator, n_columns: int, n_units: int, n_classes: int
) -> AdversarialWeights:
    """Draw initial weights for rows of norm about 1: x W is small, and the domain head is zero."""
    return AdversarialWeights(
        W=rng.normal(size=(n_columns, n_units)) * FAINT,
        b=np.zeros(n_units),
        V=rng.normal(size=(n_units, n_classes)) / np.sqrt(n_units),
        c=np.zeros(n_classes),
        u=np.zeros(n_units),
        d=np.zeros(1),
    )


class Gradients(NamedTuple):
    """Losses and gradients of a batch.

    ``columns``      the columns of X to which the rows of the gradient of W belong
    ``label_loss``   sum of −log p(label) over the ``n_labelled`` labelled items
    ``domain_loss``  sum of −log p(domain) over all items, without the penalty; or the distance
                     between domains, times the number of items
    ``n_right``      number of items whose domain is predicted correctly; NaN: none is predicted
    """

    gradients: dict[str, FloatArray]
    columns: Any
    label_loss: float
    n_labelled: int
    domain_loss: float
    n_right: float


WIDTHS = 0.25, 0.5, 1.0, 2.0, 4.0
"""Widths of the kernels of `mean_discrepancy`, relative to the median squared distance."""


def find_bandwidth(h: FloatArray) -> float:
    """Return the median squared distance of two items' features, (items, units)."""
    squares = (h * h).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * h @ h.T, 0.0)
    return float(np.median(distances[np.triu_indices(len(h), 1)])) or 1.0


def mean_discrepancy(
    h: FloatArray, in_target: BoolArray, bandwidth: float
) -> tuple[float, FloatArray]:
    """Compute the maximum mean discrepancy of two domains, and its gradient, (items, units).

    MMD² = Σ_ij a_i a_j k(h_i, h_j), where a is 1 / n for items of the source and −1 / n for items
    of the target, and k a mean of Gaussian kernels of several widths. It is 0 if, as far as the
    kernels tell, both domains have the same distribution.
    """
    a = np.where(in_target, -1.0 / max(in_target.sum(), 1), 1.0 / max((~in_target).sum(), 1))
    squares = (h * h).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * h @ h.T, 0.0)
    kernel, slope = np.zeros_like(distances), np.zeros_like(distances)
    for width in WIDTHS:
        part = np.exp(-distances / (width * bandwidth)) / len(WIDTHS)
        kernel += part
        slope -= part / (width * bandwidth)
    pulls = a[:, None] * a * slope
    return float(a @ kernel @ a), 4.0 * (pulls.sum(axis=1)[:, None] * h - pulls @ h)


def covariance_distance(h: FloatArray, in_target: BoolArray) -> tuple[float, FloatArray]:
    """Compute ‖C_source − C_target‖² / (4 units²), and its gradient, (items, units)."""
    width, parts = h.shape[1], (np.flatnonzero(~in_target), np.flatnonzero(in_target))
    centred = [h[rows] - h[rows].mean(axis=0) for rows in parts]
    most = [max(len(rows) - 1, 1) for rows in parts]
    source, target = (part.T @ part / n for part, n in zip(centred, most, strict=True))
    gap = source - target
    gradient = np.zeros_like(h)
    for rows, part, n, sign in zip(parts, centred, most, (1.0, -1.0), strict=True):
        gradient[rows] = sign * part @ gap / (n * width**2)
    return float((gap * gap).sum()) / (4.0 * width**2), gradient


def compute_gradients(
    net: AdversarialWeights,
    X: Any,
    y: IntArray,
    in_target: BoolArray,
    reversal: float,
    domain_loss: str = "adversary",
) -> Gradients:
    """Compute gradients of L_y for V and c, of L_d + ½ RIDGE |u|² for u and d, and of L_y − λ L_d
    for W and b. With a distance L_d between domains, they are those of L_y + λ L_d.

    L_y and L_d are means of −log p over labelled items, and over all items.

    >>> net = draw_network(np.random.default_rng(0), 2, 4, 2)
    >>> found = compute_gradients(net, np.eye(2), np.array([0, -1]), np.array([False, True]), 1.0)
    >>> round(found.domain_loss / 2, 4)  # chance
    0.6931
    """
    h = net.units(X)
    known = np.flatnonzero(y != UNKNOWN)
    log_p = log_softmax(h[known] @ net.V + net.c, axis=1)
    at_labels = (np.arange(len(known)), y[known])
    # derivatives with respect to the class scores, and to the domain margin
    by_scores = np.exp(log_p)
    by_scores[at_labels] -= 1.0
    by_scores /= max(len(known), 1)
    margin = h @ net.u + net.d
    by_margin: FloatArray = np.zeros(len(y))
    back: FloatArray
    if domain_loss == "adversary":
        by_margin = (expit(margin) - in_target) / len(y)
        back = -reversal * np.outer(by_margin, net.u)
        total = float(-log_expit(np.where(in_target, margin, -margin)).sum())
        n_right: float = int(((margin > 0.0) == in_target).sum())
    else:
        if domain_loss == "mmd":
            distance, back = mean_discrepancy(h, in_target, find_bandwidth(h))
        else:
            distance, back = covariance_distance(h, in_target)
        back *= reversal
        total, n_right = distance * len(y), float("nan")
    back[known] += by_scores @ net.V.T
    back *= 1.0 - h * h
    columns: Any = slice(None)
    if sparse.issparse(X):  # only the columns that occur in the batch
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
        total,
        n_right,
    )


class GradientSteps:
    """Optimiser: each parameter array is updated by rate · g / √(mean of |g|² so far).

    |g|² is the squared norm of the whole array: scaled entry by entry, rare words would move as far
    as common ones, and rare words are what domains do not share. There is no momentum, because it
    would make the domain head and the features oscillate. Words that a batch does not contain are
    not updated, and cost no time.

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
        """Update the network by a step against these gradients."""
        self._steps += 1
        for name, array in self._net.arrays().items():
            gradient = found.gradients[name]
            self._squares[name] += float((gradient * gradient).sum())
            size = np.sqrt(self._squares[name] / self._steps)
            if size > 0.0:
                rows = found.columns if name == "W" else slice(None)
                array[rows] -= (self._rates[name] / size) * gradient


class Epoch(NamedTuple):
    """Means over an epoch's batches, and the loss and accuracy on held-out labels of the source.

    ``domain_loss``      log 2 ≈ 0.693 is chance level; that of ``domain_accuracy`` is 0.5. Or the
                         distance between the domains, and NaN
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
    """The epochs of training; ``best`` is the number of the epoch whose weights were kept.

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
    """A shallow domain-adversarial network (Ganin et al. 2016): its hidden features predict the
    class, but not whether an item is of a source or of the target.

    Training minimises L_y − λ L_d over the hidden layer, L_y over the class head and L_d over the
    domain head, in mini-batches of half source, half target. Labels of the target are used, too, if
    there are any. λ grows with the fraction t of training that is done:
    λ(t) = λ (2 / (1 + exp(−10 t)) − 1). The domain head distinguishes the target from all sources
    together; the sources need not be similar to each other.

    ``reversal``       λ; 0: a plain network, which ignores domains
    ``domain_loss``    "adversary" as above. "mmd", "coral": no domain head, but a distance between
                       the domains, which is minimised: L_y + λ L_d
    ``n_units``        number of hidden units
    ``learning_rate``  approximate size of a step for each array; rows are scaled to suit it
    ``batch_size``     number of items in a batch, half source, half target
    ``max_iter``       maximum number of epochs, passes over the source (of at least 50 batches)
    ``validation``     proportion of the source's labels held out for early stopping; 0: do not stop
                       early
    ``patience``       stop after this many epochs without improvement of the held-out loss, and
                       restore the best weights
    ``vectorizer``     turns texts into rows; None: tf-idf with 1 + log tf
    ``random_state``   seed of the initial weights, the held-out labels and the batches

    Attributes after ``fit``: ``history_`` (print it), ``n_iter_``, ``network_``, ``verdict_``. A
    domain loss at chance level is necessary for success, but no proof of it.

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
        """Estimate the cost, including the weights of all words for each unit, and gradients."""
        units = 2.0 * NUMBER * task.X.shape[1] * self.n_units
        found = super()._estimate(task)
        return found.plus(4.0 * found.tokens * self.n_units, units=units)

    def _learn(self, task: Task) -> None:
        """Train; keep the weights of the epoch with the best loss on held-out source labels."""
        rng = generator(self.random_state)
        held_out = _hold_out(task, self.validation, rng)
        # scale rows to a mean of |x|² of 1, so that the learning rate does not depend on units
        X = task.X
        square = X.multiply(X).sum() if sparse.issparse(X) else (X * X).sum()
        scale = float(np.sqrt(X.shape[0] / square)) if square > 0.0 else 1.0
        self._train(task, X * scale, held_out, rng)
        self.network_.W *= scale  # so that prediction needs no scaling of rows
        h = self.network_.units(X)
        of_domain = {int(d): task.domain == d for d in self.domains_}
        self._derivatives = {d: 1.0 - (h[rows] ** 2).mean(0) for d, rows in of_domain.items()}
        self._sizes = {d: int(rows.sum()) for d, rows in of_domain.items()}

    @interrupt.graceful()
    def _train(self, task: Task, X: Any, held_out: IntArray, rng: np.random.Generator) -> None:
        """Train on rows X; the labels of held-out rows are hidden."""
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
                found = compute_gradients(
                    net, X[rows], y[rows], task.in_target[rows], weight, self.domain_loss
                )
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
        """Compute p(class | item), the same in all domains."""
        return self.network_.class_posteriors(X)

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """Return the mean derivatives ∂s/∂x over the training items of a domain (None: of all
        targets), (classes, columns), where s is a class's score minus the mean over classes; with
        two classes there is one row, of ∂ log [p(second)/p(first)] / ∂x.

        The derivative of tanh is 1 − h², so this is W diag(mean of 1 − h²) V, with V centred in the
        same way.
        """
        check_is_fitted(self, "classes_")
        wanted = (
            [d for d in self._derivatives if d < 0] if sample_domain is None else [sample_domain]
        )
        if any(d not in self._derivatives for d in wanted):
            raise DataError(
                f"no training item is of the domain {brief(sample_domain)}",
                f"choose one of {', '.join(map(str, self._derivatives))}",
            )
        sizes = [self._sizes[d] for d in wanted]
        slope = np.average([self._derivatives[d] for d in wanted], axis=0, weights=sizes)
        V = self.network_.V
        V = V[:, 1:] - V[:, :1] if V.shape[1] == 2 else V - V.mean(axis=1, keepdims=True)
        return (self.network_.W @ (slope[:, None] * V)).T


class _Batches:
    """Mini-batches with equal numbers of source and target items, from endless shuffled passes."""

    def __init__(self, in_target: BoolArray, size: int, rng: np.random.Generator) -> None:
        self._pools = [np.flatnonzero(~in_target), np.flatnonzero(in_target)]
        self._half = min(size // 2, max(map(len, self._pools)))
        self._left = [np.empty(0, dtype=np.int64)] * 2
        self._rng = rng
        self.n_batches = max(-(-len(self._pools[0]) // self._half), FEWEST_BATCHES)

    def epoch(self) -> Iterator[IntArray]:
        """Yield the item numbers of each batch of an epoch."""
        for _ in range(self.n_batches):
            yield np.concatenate([self._draw(0), self._draw(1)])

    def _draw(self, side: int) -> IntArray:
        while len(self._left[side]) < self._half:
            more = self._rng.permutation(self._pools[side])
            self._left[side] = np.concatenate([self._left[side], more])
        drawn, self._left[side] = np.split(self._left[side], [self._half])
        return drawn


def _hold_out(task: Task, share: float, rng: np.random.Generator) -> IntArray:
    """Choose this proportion of each class's labelled source items, rounded down, at random."""
    held = []
    for number in range(len(task.classes)):
        rows = task.source[task.y[task.source] == number]
        held.append(rng.permutation(rows)[: int(share * len(rows))])
    return np.sort(np.concatenate(held))


def _hide_labels(task: Task, held_out: IntArray) -> IntArray:
    """Return the training labels, with the held-out ones set to unknown."""
    y = task.y.copy()
    y[held_out] = UNKNOWN
    return y
