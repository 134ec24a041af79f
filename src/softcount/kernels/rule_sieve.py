"""Leaving out symbols of a cell that a coarse grammar thinks improbable: see `rule_coarse`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from softcount.kernels.jit import lean
from softcount.types import Array

if TYPE_CHECKING:
    from softcount.kernels.rule_charts import Grammar, Room


class Sieve(NamedTuple):
    """Which symbols of cells are left out: those that a coarse grammar thinks improbable.

    ``least``    what is less probable is left out; 0: nothing
    ``classes``  of symbols
    ``priors``   p(symbol | class)
    ``shares``   p(class | sentence) of each cell, classes of a cell side by side
    ``sums``     zeros, one for each class
    """

    least: float
    classes: Array
    priors: Array
    shares: Array
    sums: Array


@lean
def is_open(c: int, sieve: Sieve) -> bool:
    """Whether anything may stay in a cell."""
    n_classes = len(sieve.sums)
    for a in range(n_classes):
        if sieve.shares[c * n_classes + a] >= sieve.least:
            return True
    return n_classes == 0


@lean
def sift(count: int, c: int, grammar: Grammar, room: Room, sieve: Sieve) -> None:
    """Make zeros of what is left out: p(class | sentence) times the symbol's share in its class.

    What a symbol that stays may consist of by unary rules stays too, as c has these chains in it.
    """
    risen, raised, stays, waiting = room.risen, room.raised, room.base, room.based
    classes, priors, sums, chains = sieve.classes, sieve.priors, sieve.sums, grammar.chains
    at, n_known, n_waiting = c * len(sums), len(grammar.root), 0
    for e in range(count):
        sums[classes[raised[e]]] += risen[raised[e]] * priors[raised[e]]
    for e in range(count):
        symbol, own = raised[e], classes[raised[e]]
        if sieve.shares[at + own] * risen[symbol] * priors[symbol] >= sieve.least * sums[own]:
            stays[symbol] = 1.0
            if symbol < n_known:
                waiting[n_waiting] = symbol
                n_waiting += 1
    while n_waiting > 0:
        n_waiting -= 1
        top = waiting[n_waiting]
        for u in range(chains.indptr[top], chains.indptr[top + 1]):
            below = chains.child[u]
            if risen[below] > 0.0 and stays[below] == 0.0 and chains.chance[u] > 0.0:
                stays[below] = 1.0
                waiting[n_waiting] = below
                n_waiting += 1
    for e in range(count):
        symbol = raised[e]
        sums[classes[symbol]] = 0.0
        risen[symbol] *= stays[symbol]
        stays[symbol] = 0.0
