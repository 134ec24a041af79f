"""A network with one hidden layer, a head for classes and a head for domains, in numpy.

h = tanh(x W + b);  p(class | x) = softmax(h V + c);  p(target | x) = σ(h·u + d)

Between h and the head for domains lies a gradient reversal layer (Ganin et al. 2016): forwards it
does nothing, backwards it multiplies by −λ. The head learns to tell the domains apart, what is
below it to make that impossible.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, log_expit, log_softmax, softmax

from softcount.models.mixture.labels import UNKNOWN
from softcount.types import Array

FAINT = 0.01
"""Size of the first inputs of hidden units: words that no label speaks of go on saying nothing."""
RIDGE = 0.01
"""Of the penalty on the domain head, ½ RIDGE |u|². Without it, u chases the gap between the
domains and the gap flees from u: the loss is at chance, and yet h tells the domains apart."""
HEAD_RATE = 5.0
"""So many times faster learns the domain head: what is reversed should be near the best head."""


@dataclass
class Network:
    """The parameters: ``W`` (columns, units), ``b``, ``V`` (units, classes), ``c``, ``u``, ``d``.

    >>> net = random_network(np.random.default_rng(0), 3, 4, 2)
    >>> net.class_shares(np.eye(3)).shape
    (3, 2)
    """

    W: Array
    b: Array
    V: Array
    c: Array
    u: Array
    d: Array

    def units(self, X: Any) -> Array:
        """h, a row for each item."""
        found: Array = np.tanh(np.asarray(X @ self.W) + self.b)
        return found

    def class_shares(self, X: Any) -> Array:
        """p(class | item)."""
        shares: Array = softmax(self.units(X) @ self.V + self.c, axis=1)
        return shares

    def label_loss(self, X: Any, y: Array) -> float:
        """The mean of −log p(label)."""
        found = log_softmax(self.units(X) @ self.V + self.c, axis=1)
        return float(-found[np.arange(len(y)), y].mean())

    def arrays(self) -> dict[str, Array]:
        """The parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def copy(self) -> Network:
        """The same numbers in arrays of their own."""
        return Network(**{name: array.copy() for name, array in self.arrays().items()})


def random_network(
    rng: np.random.Generator, n_columns: int, n_units: int, n_classes: int
) -> Network:
    """A network for rows of about length 1: x W is faint, and the domain head knows nothing."""
    return Network(
        W=rng.normal(size=(n_columns, n_units)) * FAINT,
        b=np.zeros(n_units),
        V=rng.normal(size=(n_units, n_classes)) / np.sqrt(n_units),
        c=np.zeros(n_classes),
        u=np.zeros(n_units),
        d=np.zeros(1),
    )


class Slopes(NamedTuple):
    """What a batch says: sums of losses, and the gradients by parameter.

    ``columns``      the columns that the rows of the gradient of W are for
    ``label_loss``   sum of −log p(label) over the ``n_labelled`` items with one
    ``domain_loss``  sum of −log p(domain) over all, without the penalty
    ``n_right``      so many domains are recognised
    """

    gradients: dict[str, Array]
    columns: Any
    label_loss: float
    n_labelled: int
    domain_loss: float
    n_right: int


def slopes(net: Network, X: Any, y: Array, in_target: Array, reversal: float) -> Slopes:
    """Gradients of L_y for V and c, of L_d + ½ RIDGE |u|² for u and d, of L_y − λ L_d for W and b.

    L_y and L_d are means of −log p over items with a label, and over all items.

    >>> net = random_network(np.random.default_rng(0), 2, 4, 2)
    >>> found = slopes(net, np.eye(2), np.array([0, -1]), np.array([False, True]), 1.0)
    >>> round(found.domain_loss / 2, 4)  # chance
    0.6931
    """
    h = net.units(X)
    known = np.flatnonzero(y != UNKNOWN)
    scores = log_softmax(h[known] @ net.V + net.c, axis=1)
    said = (np.arange(len(known)), y[known])
    off = np.exp(scores)
    off[said] -= 1.0
    off /= max(len(known), 1)
    margin = h @ net.u + net.d
    off_domain = (expit(margin) - in_target) / len(y)

    back = -reversal * np.outer(off_domain, net.u)
    back[known] += off @ net.V.T
    back *= 1.0 - h * h
    columns, part = _met(X)
    gradients = {
        "W": np.asarray(part.T @ back),
        "b": back.sum(axis=0),
        "V": h[known].T @ off,
        "c": off.sum(axis=0),
        "u": h.T @ off_domain + RIDGE * net.u,
        "d": off_domain.sum(keepdims=True),
    }
    return Slopes(
        gradients,
        columns,
        float(-scores[said].sum()),
        len(known),
        float(-log_expit(np.where(in_target, margin, -margin)).sum()),
        int(((margin > 0.0) == in_target).sum()),
    )


def _met(X: Any) -> tuple[Any, Any]:
    """The columns that some row has, and X with these only; all if X is dense."""
    if not sparse.issparse(X):
        return slice(None), X
    there = np.zeros(X.shape[1], dtype=bool)
    there[X.indices] = True
    columns = np.flatnonzero(there)
    place = np.cumsum(there) - 1
    shape = (X.shape[0], len(columns))
    return columns, sparse.csr_matrix((X.data, place[X.indices], X.indptr), shape=shape)


class Optimiser:
    """Each array of parameters moves by rate · g / √(mean of |g|² so far).

    |g|² is over the whole array: scaled one by one, rare words would move as far as common ones,
    and rare words are what domains do not share. No momentum: it would make the domain head and
    the features circle. A word that a batch has not stays put, and costs no time.

    >>> net = random_network(np.random.default_rng(0), 2, 4, 2)
    >>> before = net.c.copy()
    >>> found = slopes(net, np.eye(2), np.array([0, 0]), np.array([False, True]), 0.0)
    >>> Optimiser(net, rate=0.5).step(found)
    >>> round(float(np.linalg.norm(net.c - before)), 3)  # a first step is as long as the rate
    0.5
    """

    def __init__(self, net: Network, rate: float) -> None:
        self._net = net
        self._squares = dict.fromkeys(net.arrays(), 0.0)
        self._rates = {
            name: rate * (HEAD_RATE if name in ("u", "d") else 1.0) for name in self._squares
        }
        self._steps = 0

    def step(self, found: Slopes) -> None:
        """Move the network against these gradients."""
        self._steps += 1
        for name, array in self._net.arrays().items():
            gradient = found.gradients[name]
            self._squares[name] += float((gradient * gradient).sum())
            size = np.sqrt(self._squares[name] / self._steps)
            if size > 0.0:
                rows = found.columns if name == "W" else slice(None)
                array[rows] -= (self._rates[name] / size) * gradient
