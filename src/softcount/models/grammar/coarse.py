"""Coarse grammars: classes of symbols in place of symbols.

A class a stands for its symbols A with p(A | a), their shares of how often the grammar uses them:

    p(a → x r) = Σ_{A in a} p(A | a) Σ_{X in x, R in r} p(A → X R)

and likewise for chains of unary rules and for words. What only single words are made of (tags) is
a class each; all symbols that may have several words are one class, and so are the rests of rules,
such as ⟨Y Z⟩: finer classes say little more and cost far more than they save.

Classes whose chances are the largest of their symbols', so that p(class | sentence) were a bound,
are of no use: with each of six ways to make classes, the bound on p(sentence) was in the mean e^48
to e^94 times too large (60 sentences of 25 to 40 words, WSJ sample). So what is left out here is
improbable by an estimate, and `pruning.lost` measures what that costs.
"""

from __future__ import annotations

import numpy as np

from softcount.errors import LearnerError, shown
from softcount.kernels.rule_charts import Grammar, Joins, Words
from softcount.kernels.rule_coarse import Coarse
from softcount.kernels.unary_chains import Chains
from softcount.models.grammar.rules import borders
from softcount.types import Array

ROUNDS = 50
"""How deep trees are, for the sake of how often symbols are used in them."""
RARE = 1e-9
"""Symbols that are further down are used so often."""


def coarse_of(grammar: Grammar, words: Words, prune: float) -> Coarse:
    """The coarse grammar by which what is less probable than ``prune`` is left out; 0: nothing."""
    if not 0.0 <= prune < 1.0:
        raise LearnerError(
            f"prune is {shown(prune)}", "give a probability: 0 (nothing is left out), or 1e-4"
        )
    if prune == 0.0:
        return Coarse(0.0, np.zeros(0, np.int32), np.zeros(0), grammar, words)
    return projected(grammar, words, _classes(grammar), prune)


def projected(grammar: Grammar, words: Words, classes: Array, prune: float) -> Coarse:
    """The grammar of classes: those of symbols that users know come first, and those of rests, such
    as ⟨Y Z⟩, last."""
    often = _used(grammar)
    priors = often / np.bincount(classes, often)[classes]
    coarse = Grammar(
        np.bincount(classes[: len(grammar.root)], grammar.root),
        int(classes[: grammar.n_left].max()) + 1,
        _joins(grammar.joins, classes, priors),
        _chains(grammar.chains, classes[: len(grammar.root)], priors),
        False,
    )
    return Coarse(prune, classes, priors, coarse, _words(words, classes, priors))


def _classes(grammar: Grammar) -> Array:
    joins, chains, n_known = grammar.joins, grammar.chains, len(grammar.root)
    found = np.arange(len(joins.wide))
    found[n_known : grammar.n_left] = n_known + 1
    found[grammar.n_left :] = n_known + 2
    is_wide = np.zeros(len(joins.wide), np.bool_)
    is_wide[joins.parent] = True
    bottoms = _numbers(chains.begins) % n_known
    is_wide[chains.tops[is_wide[bottoms]]] = True
    found[:n_known][is_wide[:n_known]] = n_known
    return np.unique(found, return_inverse=True)[1].astype(np.int32)


def _used(grammar: Grammar) -> Array:
    """How often a tree is expected to use each symbol, down to some depth."""
    joins, chains, n = grammar.joins, grammar.chains, len(grammar.joins.wide)
    rights, tops = _numbers(joins.indptr), _numbers(chains.indptr)
    first = np.concatenate([grammar.root, np.zeros(n - len(grammar.root))])
    found = first
    for _ in range(ROUNDS):
        shares, below = found[joins.parent] * joins.chance, found[tops] * chains.chance
        found = first + np.bincount(chains.child, below, n)
        found += np.bincount(joins.left, shares, n) + np.bincount(rights, shares, n)
    return found + RARE


def _joins(joins: Joins, classes: Array, priors: Array) -> Joins:
    n, rights = int(classes.max()) + 1, _numbers(joins.indptr)
    may_be_wide = np.zeros(n, np.bool_)
    may_be_wide[classes[joins.left[np.arange(len(rights)) < joins.wide[rights]]]] = True
    alone = ~may_be_wide[classes[joins.left]]
    parts = (classes[rights], alone, classes[joins.left], classes[joins.parent])
    keys, chance = _summed(parts, (n, 2, n, n), priors[joins.parent] * joins.chance)
    right, alone, left, parent = keys
    indptr = borders(right, n)
    wide = indptr[:-1] + np.bincount(right[alone == 0], minlength=n)
    return Joins(indptr, wide, left.astype(np.int32), parent.astype(np.int32), chance)


def _chains(chains: Chains, classes: Array, priors: Array) -> Chains:
    """What chains add up to; single rules are not needed, as nobody wants to know their counts."""
    n_known, n = len(classes), int(classes.max()) + 1
    n_sets, bottoms = (len(chains.begins) - 1) // n_known, _numbers(chains.begins)
    parts = (bottoms // n_known, classes[bottoms % n_known], classes[chains.tops])
    keys, weights = _summed(parts, (n_sets, n, n), priors[chains.tops] * chains.weights)
    begins = borders(keys[0] * n + keys[1], n_sets * n)
    indptr, child = np.zeros(n + 1, chains.indptr.dtype), np.zeros(0, chains.child.dtype)
    return Chains(indptr, child, np.zeros(0), begins, keys[2].astype(chains.tops.dtype), weights)


def _words(words: Words, classes: Array, priors: Array) -> Words:
    n_rows = len(words.indptr) - 1
    parts = (_numbers(words.indptr), classes[words.symbols])
    values = priors[words.symbols] * words.chances
    (rows, symbols), chances = _summed(parts, (n_rows, int(classes.max()) + 1), values)
    return Words(words.rows, borders(rows, n_rows), symbols.astype(np.int32), chances)


def _summed(
    parts: tuple[Array, ...], shape: tuple[int, ...], values: Array
) -> tuple[tuple[Array, ...], Array]:
    """Sums of the values that have the same numbers, in the order of these."""
    wide = tuple(part.astype(np.int64) for part in parts)
    keys, at = np.unique(np.ravel_multi_index(wide, shape), return_inverse=True)
    return np.unravel_index(keys, shape), np.bincount(at, values, len(keys))


def _numbers(indptr: Array) -> Array:
    """The row of each entry."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
