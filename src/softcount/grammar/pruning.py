"""Coarse-to-fine pruning: a grammar of classes of symbols, and what pruning by it loses.

A class a stands for its symbols A with p(A | a), their shares of how often the grammar uses them:

    p(a → x r) = Σ_{A in a} p(A | a) Σ_{X in x, R in r} p(A → X R)

and likewise for chains of unary rules and for words (Charniak et al. 2006, "Multilevel
coarse-to-fine PCFG parsing"). Symbols that only span single words (tags) are a class each; all
symbols that may span several words are one class, and so are the rests of rules, such as ⟨Y Z⟩:
finer classes say little more and cost far more than they save.

Classes whose probabilities are the largest of their symbols', so that p(class | sentence) would be
a bound, are of no use: with each of six ways to make classes, the bound on p(sentence) was on
average e^48 to e^94 times too large (60 sentences of 25 to 40 words, WSJ sample). So what is pruned
here is improbable by an estimate, and `measure_pruning_loss` says what that costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softcount.core.errors import LearnerError, brief
from softcount.core.types import Array, FloatArray, IntArray
from softcount.grammar.kernels.rules import (
    BinaryRules,
    CoarseGrammar,
    LexicalRules,
    RuleTables,
    UnaryRules,
)
from softcount.grammar.rules import make_indptr

if TYPE_CHECKING:
    from softcount.grammar.rule_based import RuleInference

DEPTH = 50
"""How deep trees are taken to be when the expected use of symbols is computed."""
RARE = 1e-9
"""The expected use of symbols that are further down."""
SLACK = 1e-9
"""Log-probabilities that differ by less are equal."""


def make_coarse_grammar(
    grammar: RuleTables, lexical: LexicalRules, threshold: float
) -> CoarseGrammar:
    """The grammar by which what is less probable than ``threshold`` is pruned; 0: nothing is."""
    if not 0.0 <= threshold < 1.0:
        raise LearnerError(
            f"prune is {brief(threshold)}", "give a probability: 0 (nothing is left out), or 1e-4"
        )
    if threshold == 0.0:
        return CoarseGrammar(0.0, np.zeros(0, np.int32), np.zeros(0), grammar, lexical)
    return project(grammar, lexical, _make_classes(grammar), threshold)


def project(
    grammar: RuleTables, lexical: LexicalRules, classes: IntArray, threshold: float
) -> CoarseGrammar:
    """The grammar of classes.

    ``classes``  (symbols,): those of nonterminals come first, and those of rests, such as ⟨Y Z⟩,
                 last
    """
    binary, unary = grammar.binary, grammar.unary
    n, n_rows = int(classes.max()) + 1, len(lexical.indptr) - 1
    uses = _expected_uses(grammar)
    priors = uses / np.bincount(classes, uses)[classes]

    rights = _row_numbers(binary.indptr)
    may_be_wide = np.zeros(n, np.bool_)
    may_be_wide[classes[binary.left[np.arange(len(rights)) < binary.wide[rights]]]] = True
    one_word = ~may_be_wide[classes[binary.left]]
    (right, one_word, left, parent), probability = _sum_by_key(
        (classes[rights], one_word, classes[binary.left], classes[binary.parent]),
        (n, 2, n, n),
        priors[binary.parent] * binary.probability,
    )
    indptr = make_indptr(right, n)
    wide = indptr[:-1] + np.bincount(right[one_word == 0], minlength=n)
    children = (left.astype(np.int32), parent.astype(np.int32))
    coarse_binary = BinaryRules(indptr, wide, *children, probability)

    # the closure of chains alone, as nobody asks for counts of single unary rules
    nonterminals = classes[: len(grammar.root)]
    n_high, bottoms = int(nonterminals.max()) + 1, _row_numbers(unary.closure_indptr)
    sets, bottoms = np.divmod(bottoms, len(nonterminals))
    n_sets, tops = (len(unary.closure_indptr) - 1) // len(nonterminals), unary.closure_parents
    (sets, bottoms, tops), weights = _sum_by_key(
        (sets, nonterminals[bottoms], nonterminals[tops]),
        (n_sets, n_high, n_high),
        priors[tops] * unary.closure_weights,
    )
    none = (np.zeros(n_high + 1, unary.indptr.dtype), np.zeros(0, unary.child.dtype), np.zeros(0))
    begins = make_indptr(sets * n_high + bottoms, n_sets * n_high)
    coarse_unary = UnaryRules(*none, begins, tops.astype(unary.closure_parents.dtype), weights)

    (rows, symbols), sums = _sum_by_key(
        (_row_numbers(lexical.indptr), classes[lexical.symbols]),
        (n_rows, n),
        priors[lexical.symbols] * lexical.probabilities,
    )
    words = LexicalRules(lexical.rows, make_indptr(rows, n_rows), symbols.astype(np.int32), sums)

    root = np.bincount(nonterminals, grammar.root).astype(np.float64, copy=False)
    n_left = int(classes[: grammar.n_left].max()) + 1
    coarse = RuleTables(root, n_left, coarse_binary, coarse_unary, False)
    return CoarseGrammar(threshold, classes, priors, coarse, words)


def _make_classes(grammar: RuleTables) -> IntArray:
    binary, unary, n_nonterminals = grammar.binary, grammar.unary, len(grammar.root)
    found = np.arange(len(binary.wide))
    found[n_nonterminals : grammar.n_left] = n_nonterminals + 1
    found[grammar.n_left :] = n_nonterminals + 2
    is_wide = np.zeros(len(binary.wide), np.bool_)
    is_wide[binary.parent] = True
    bottoms = _row_numbers(unary.closure_indptr) % n_nonterminals
    is_wide[unary.closure_parents[is_wide[bottoms]]] = True
    found[:n_nonterminals][is_wide[:n_nonterminals]] = n_nonterminals
    return np.unique(found, return_inverse=True)[1].astype(np.int32)


def _expected_uses(grammar: RuleTables) -> FloatArray:
    """How often a tree is expected to use each symbol, down to `DEPTH`."""
    binary, unary, n = grammar.binary, grammar.unary, len(grammar.binary.wide)
    rights, parents = _row_numbers(binary.indptr), _row_numbers(unary.indptr)
    first = np.concatenate([grammar.root, np.zeros(n - len(grammar.root))])
    found = first
    for _ in range(DEPTH):
        pairs, below = found[binary.parent] * binary.probability, found[parents] * unary.probability
        found = first + np.bincount(unary.child, below, n)
        found += np.bincount(binary.left, pairs, n) + np.bincount(rights, pairs, n)
    return found + RARE


def _sum_by_key(
    parts: tuple[Array, ...], shape: tuple[int, ...], values: FloatArray
) -> tuple[tuple[Array, ...], Array]:
    """Sums of the values that have the same key, in the order of keys; ``parts`` make up a key."""
    wide = tuple(part.astype(np.int64) for part in parts)
    keys, at = np.unique(np.ravel_multi_index(wide, shape), return_inverse=True)
    return np.unravel_index(keys, shape), np.bincount(at, values, len(keys))


def _row_numbers(indptr: IntArray) -> IntArray:
    """The row of each entry."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


# What pruning loses


class PruningLoss(NamedTuple):
    """What some sentences lose by pruning.

    ``sentences``      how many have a derivation
    ``pruned``         the share of the symbols of cells that were pruned
    ``parsed_again``   how many sentences had to be parsed again without pruning
    ``mean``, ``worst``  log p(sentence) that was lost, on average, and at most
    ``worse_trees``    how many best trees are less probable than those found without pruning
    """

    sentences: int
    pruned: float
    parsed_again: int
    mean: float
    worst: float
    worse_trees: int


def measure_pruning_loss(sums: RuleInference, best: RuleInference) -> PruningLoss:
    """Parse sentences with pruning and without it.

    ``sums``, ``best``  inference over the same sentences, with tables for sums and for Viterbi

    >>> from softcount.grammar.binarise import BinarisedRules
    >>> from softcount.grammar.rule_based import RuleInference, make_rule_text
    >>> from softcount.grammar.rules import parse_rules
    >>> rules = parse_rules("S -> S S [0.4] | 'a'")
    >>> own, text = BinarisedRules(rules), make_rule_text(np.array([4]))
    >>> words = own.make_lexical(rules.probabilities, own.find_rows("aaaa"))
    >>> tables = [own.make_tables(rules.probabilities, own.root, viterbi=v) for v in (False, True)]
    >>> measure_pruning_loss(*(RuleInference(own, t, words, text, prune=1e-4) for t in tables))[-1]
    0
    """
    full = sums._replace(prune=0.0).inside_outside(with_counts=False)
    pruned = sums.inside_outside(with_counts=False)
    best_full, best_pruned = best._replace(prune=0.0).trace(), best.trace()
    possible = np.isfinite(full.log_p) & (np.diff(sums.text.indptr) > 0)
    lost = full.log_p[possible] - pruned.log_p[possible]
    before, left_out, again = pruned.pruned
    return PruningLoss(
        len(lost),
        float(left_out / max(before, 1.0)),
        int(again),
        float(lost.mean()) if len(lost) else 0.0,
        float(lost.max(initial=0.0)),
        int(np.count_nonzero(best_full.log_p[possible] - best_pruned.log_p[possible] > SLACK)),
    )
