"""Derivations as lists of cells: the entries of tables that they use, which have a number each.

Tables are numbered through one after the other: root, rules and words of dense grammars, root and
rules of grammars of rules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from softcount.kernels.chart_trees import Nodes
from softcount.kernels.rule_charts import Words
from softcount.kernels.tree_cells import cells_of
from softcount.models.grammar.binarised import CERTAIN, Binarised
from softcount.models.grammar.dense import Shape
from softcount.models.grammar.rule_passes import Derived
from softcount.models.grammar.shards import Shard
from softcount.types import Array


class Derivations(NamedTuple):
    """Sentence s uses ``cells[borders[s]:borders[s + 1]]``, its root's cell first.

    ``logs`` are those of sentences: −inf where there is no derivation.
    """

    cells: Array
    borders: Array
    logs: Array


def of_trees(shape: Shape, n_words: int, shard: Shard, nodes: Nodes, logs: Array) -> Derivations:
    """Trees of a dense grammar, one a sentence; a word that is new to the model has no cell."""
    text = shard.text
    sizes = (shape.k, shape.n_symbols, n_words)
    known = (text.indptr, text.rows, np.isfinite(logs))
    return Derivations(*cells_of(nodes.symbols[0], nodes.ends[0], *known, *sizes), logs)


def of_rules(own: Binarised, words: Words, found: Derived) -> Derivations:
    """Derivations of a grammar of rules, one a sentence.

    What has probability one has no cell, nor have words that are in no rule.

    >>> from softcount.models.grammar import rule_passes
    >>> from softcount.models.grammar.rule_text import from_text
    >>> rules = from_text("S -> 'a' S 'b' [0.4] | 'a' 'b' [0.6]")
    >>> own, text = Binarised(rules), rule_passes.text(np.array([4, 2]))
    >>> words = own.words(rules.chances, own.rows("aabbab"))
    >>> grammar = own.grammar(rules.chances, own.root)
    >>> found = rule_passes.derived(grammar, words, text, np.arange(2))
    >>> cells, borders, logs = of_rules(own, words, found)
    >>> cells.tolist(), borders.tolist()  # root S; rules from 1 on
    ([0, 1, 2, 0, 2], [0, 3, 5])
    """
    rules = own.rule_of(words)[found.codes]
    begins = found.borders[:-1][np.diff(found.borders) > 0]
    roots = own.made(words)[found.codes[begins]]
    kept = np.insert(rules != CERTAIN, begins, True)
    cells = np.insert(own.n_known + rules.astype(np.int64), begins, roots)[kept]
    n_roots = np.searchsorted(begins, found.borders)  # those of sentences before
    n_kept = np.concatenate([[0], np.cumsum(kept)])
    return Derivations(cells, n_kept[found.borders + n_roots], found.logs)


def with_known(found: Derivations, numbers: Array, trees: csr_matrix) -> Derivations:
    """Derivations of all sentences: some were found, others are known.

    ``numbers``  of the sentences that were found
    ``trees``    how often each sentence's tree has each cell; empty rows of those that were found
    """
    sizes = np.asarray(trees.sum(axis=1)).reshape(-1).astype(np.int64)
    sizes[numbers] = np.diff(found.borders)
    borders = np.concatenate([[0], np.cumsum(sizes)])
    is_found = np.zeros(len(sizes), np.bool_)
    is_found[numbers] = True
    here = np.repeat(is_found, sizes)
    cells, logs = np.empty(borders[-1], np.int64), np.zeros(len(sizes))
    cells[here], logs[numbers] = found.cells, found.logs
    cells[~here] = np.repeat(trees.indices, trees.data.astype(np.int64))
    return Derivations(cells, borders, logs)
