"""Grammars of given rules, and of treebanks.

Grammars whose symbols tell what is around them, which users do not want to see.

Rules of a treebank know too little (an NP below S is not one below VP) and too much (a right side
of nine parts was seen once). So labels may get those above them, and right sides be taken apart,
their parts knowing some of their neighbours (Johnson 1998; Klein & Manning 2003): what
`softcount.corpus.binarising` does. What is said of sentences is said by plain labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from softcount import store
from softcount.corpus.binarising import plain_label, right_binarised, unbinarised
from softcount.corpus.numbering import Vocabulary
from softcount.corpus.trees import Tree
from softcount.errors import DataError, StoreError
from softcount.families import Categorical, SparseCategorical
from softcount.grammar import inside_outside as rule_passes
from softcount.grammar.binarised import KNOWN, Binarised, UnknownWords
from softcount.grammar.core import Ready, RuleCore
from softcount.grammar.data import Bracket, Limits, Sentences, Told, labelled, span_sets
from softcount.grammar.form import MOST_NODES, Asked, Choices, Spans, demand_freezable
from softcount.grammar.inside_outside import ROOT, RULES
from softcount.grammar.parsing import Links, best_parses, most_expected, tree_of
from softcount.grammar.rules import Rule, Rules, check, demand_defined, rule_of, scaled
from softcount.hmm.data import Sentences as Texts
from softcount.hmm.data import Sets, StateSets
from softcount.hmm.data import Shard as TextShard
from softcount.models.files import TABLE
from softcount.models.stored import AGAIN, numbers
from softcount.types import Array, Params


def annotated(tree: Tree, horizontal: int | None, vertical: int) -> Tree:
    """A tree with symbols that tell what is around them; with None and 1 they tell nothing."""
    if horizontal is None and vertical == 1:
        return tree
    return right_binarised(tree, horizontal, vertical, tags=vertical > 1)


class Annotation:
    """The plain labels of symbols.

    ``labels``  plain ones, by their numbers
    ``of``      the plain label of each symbol; −1 of those that users do not know

    >>> known = Annotation(("S", "NP^S", "@NP^S/DT", "NP^VP", "DT^NP"), {4}, vertical=2)
    >>> known.labels, known.of.tolist()
    (('S', 'NP', 'DT'), [0, 1, -1, 1, 2])
    """

    def __init__(self, symbols: tuple[str, ...], tags: set[int], vertical: int) -> None:
        self._above = vertical > 1
        plain = [
            plain_label(symbol, is_tag=a in tags, tags=self._above)
            for a, symbol in enumerate(symbols)
        ]
        self.labels = tuple(dict.fromkeys(label for label in plain if label is not None))
        number = {label: n for n, label in enumerate(self.labels)}
        self.of = np.array([-1 if label is None else number[label] for label in plain])

    def symbols(self, label: str) -> set[int]:
        """The symbols that have a plain label."""
        if label not in self.labels:
            return set()
        return set(np.flatnonzero(self.of == self.labels.index(label)).tolist())

    def tree(self, tree: Tree) -> Tree:
        """A tree as users know it."""
        return unbinarised(tree, tags=self._above)

    def spans(self, spans: Spans) -> Spans:
        """Expected spans by plain labels."""
        plain = self.of[spans.symbols]
        kept = plain >= 0
        keys = np.stack([spans.starts[kept], spans.ends[kept], plain[kept]])
        places, at = np.unique(keys, axis=1, return_inverse=True)
        shares = np.bincount(at.reshape(-1), spans.shares[kept], minlength=places.shape[1])
        starts, ends, symbols = places
        return Spans(starts, ends, symbols, shares)


class NoAnnotation(Annotation):
    """Symbols that tell nothing of what is around them: they are plain labels themselves."""

    def __init__(self, symbols: tuple[str, ...]) -> None:
        self.labels, self.of = symbols, np.arange(len(symbols))

    def tree(self, tree: Tree) -> Tree:
        return tree

    def spans(self, spans: Spans) -> Spans:
        return spans


# Rules in model files.


SYMBOL, WORD = "s", "w"
COUNTS = "counts"
MOST_OVER = 1e-6
"""Sums may be above one by so much, having been rounded."""


def facts(rules: Rules) -> dict[str, Any]:
    """Rules as JSON has them: left sides, right sides, and which of their items are words."""
    kinds = ["".join(WORD if word else SYMBOL for word in rule.is_word) for rule in rules.rules]
    return {
        "left": [rule.lhs for rule in rules.rules],
        "right": [list(rule.rhs) for rule in rules.rules],
        "kinds": kinds,
        "roots": list(rules.root),
    }


def arrays(rules: Rules) -> dict[str, Array]:
    """What rules have beside their probabilities, which are a table."""
    return {} if rules.counts is None else {COUNTS: rules.counts}


def rules(stored: store.Stored) -> Rules:
    """Rules from a file, with the probabilities that were learned."""
    meta = stored.meta
    each = zip(meta["left"], meta["right"], meta["kinds"], strict=True)
    found = tuple(_rule(*parts) for parts in each)
    order = list(dict.fromkeys(rule.lhs for rule in found))
    place = {symbol: n for n, symbol in enumerate(order)}
    places = [place[rule.lhs] for rule in found]
    chances = numbers(stored, TABLE + RULES, (len(found),))
    top = numbers(stored, TABLE + ROOT, (1, len(order)))[0]
    roots = meta["roots"]
    if not isinstance(roots, list) or len(set(roots)) != len(roots):
        raise StoreError("the roots make no sense", AGAIN)
    if len(set(found)) != len(found) or places != sorted(places):
        raise StoreError("the rules make no sense", AGAIN)
    if (chances < 0.0).any() or (top < 0.0).any():
        raise StoreError("some probabilities are negative", AGAIN)
    counts = numbers(stored, COUNTS, (len(found),)) if COUNTS in stored.arrays else None
    if counts is not None and not (counts > 0.0).all():
        raise StoreError("rules were used less than never", AGAIN)
    chosen = {symbol: float(top[place[symbol]]) for symbol in roots}
    made = Rules(found, chances, chosen, counts)
    demand_defined(made)
    check(made)
    sums = np.add.reduceat(chances, made.indptr[:-1])
    if (sums == 0.0).any() or (sums > 1.0 + MOST_OVER).any():
        raise StoreError("rules of a left side do not add up to one", AGAIN)
    return made


def _rule(left: Any, right: Any, kinds: Any) -> Rule:
    texts = [left, *right] if isinstance(right, list) and right else [None]
    if not all(isinstance(text, str) and text for text in texts):
        raise StoreError(f"{left!r} -> {right!r} is no rule", AGAIN)
    if not isinstance(kinds, str) or len(kinds) != len(right) or set(kinds) - {SYMBOL, WORD}:
        raise StoreError(f"{kinds!r} does not say what is a word in a rule", AGAIN)
    return Rule(left, tuple(right), tuple(kind == WORD for kind in kinds))


# Grammars of rules as users see them: what is known of spans, whole trees, best trees.


WRONG = 0.5
"""What a bracket must be expected at least: trees of any shape need not have one that is more
likely to be wrong than right."""


@dataclass(frozen=True, eq=False)
class RuleForm:
    """A grammar of rules that users give.

    ``own``         the rules, binarised
    ``unknown``     what words may be that are in no rule; None: nothing
    ``horizontal``, ``vertical``  what symbols tell of what is around them: see `annotation`
    """

    own: Binarised
    unknown: UnknownWords | None = None
    horizontal: int | None = None
    vertical: int = 1

    @classmethod
    def of(
        cls, rules: Rules, unknown: bool, horizontal: int | None = None, vertical: int = 1
    ) -> RuleForm:
        """A grammar, and whether words that are in no rule may be something."""
        counted = unknown and rules.counts is not None
        words = UnknownWords(rules) if counted else None
        return cls(Binarised(rules), words, horizontal, vertical)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of symbols, by their numbers, as users know them."""
        return self.annotation.labels

    @cached_property
    def annotation(self) -> Annotation:
        """What users know of symbols that tell what is around them."""
        if self.horizontal is None and self.vertical == 1:
            return NoAnnotation(self.own.labels)
        return Annotation(self.own.labels, self._tags, self.vertical)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words that are in rules."""
        return Vocabulary(list(self.own.word_rows))

    @cached_property
    def _rule_numbers(self) -> dict[Rule, int]:
        return {rule: number for number, rule in enumerate(self.own.rules.rules)}

    @cached_property
    def _of_words(self) -> Array:
        """Whether each rule has a single word."""
        return np.array([rule.is_lexical for rule in self.own.rules.rules])

    @cached_property
    def _tags(self) -> set[int]:
        """Symbols that single words may be."""
        rules = self.own.rules
        return {rules.number[rule.lhs] for rule in rules.rules if rule.is_lexical}

    def core(self, choices: Choices) -> RuleCore:
        """What learns."""
        demand_freezable(choices.frozen, (ROOT, RULES), self.own.labels)
        possible, held = (self.own.root > 0.0)[None], choices.held(ROOT, ["the only row"])
        root = Categorical(possible.shape, choices.rules, possible, held)
        prior = np.where(self._of_words, choices.words, choices.rules)
        held = choices.held(RULES, self.own.labels)
        rules = SparseCategorical(self.own.rules.indptr, prior, frozen=held)
        return RuleCore("PCFG", root, rules, self.own, self.unknown, choices.prune)

    def start(self) -> dict[str, Array]:
        """The rules' own probabilities."""
        return {ROOT: self.own.root[None], RULES: self.own.rules.chances}

    # what is known
    def corpus(self, told: Told, weights: Array) -> Sentences:
        """What it learns from."""
        text = told.text
        new = text.words[len(self.vocabulary.words) :]
        sets = (np.zeros(len(text.tokens), np.int32), StateSets.all_of(1))
        shard = TextShard(np.arange(len(text)), text.tokens, text.indptr, *sets, weights, new)
        return Sentences(Texts(shard, text.name), self._limits(told), self._trees(told))

    def _trees(self, told: Told) -> csr_matrix | None:
        """How often known trees have each root and rule."""
        if not any(tree is not None for tree in told.trees):
            return None
        entries: list[int] = []
        borders = [0]
        for n, tree in enumerate(told.trees):
            if tree is not None:
                entries += self._entries(tree, told.text.name(n))
            borders.append(len(entries))
        shape = (len(told.trees), self.own.n_known + len(self.own.rules))
        found = csr_matrix((np.ones(len(entries)), np.array(entries), np.array(borders)), shape)
        found.sum_duplicates()
        return found

    def _entries(self, tree: Tree, where: str) -> list[int]:
        """The root and the rules of a tree, by their number among all parameters."""
        tree = annotated(tree, self.horizontal, self.vertical)
        root = self.own.rules.number.get(tree.label)
        if root is None or self.own.root[root] == 0.0:
            raise DataError(
                f"the tree of {where} is of {tree.label}, which is never a root",
                f"roots are {', '.join(self.own.rules.root)}",
            )
        found = [root]
        for node in tree.nodes():
            number = self._rule_numbers.get(rule_of(node))
            if number is None:
                raise DataError(
                    f"the tree of {where} has the rule {rule_of(node)}, which the grammar has not",
                    "PCFG.from_treebank makes a grammar of all rules that trees have",
                )
            found.append(self.own.n_known + number)
        return found

    def _limits(self, told: Told) -> Limits:
        """What spans may be."""
        if not any(told.brackets):
            return Limits.none(self.own.n_known)
        sets = Sets(self.own.n_known)
        found = [
            self._span_sets(n, some, sets)
            for n, some in zip(told.text.lengths.tolist(), told.brackets, strict=True)
        ]
        sizes = np.array([len(some) for some in found])
        return Limits(np.concatenate(found), sets.made().allowed, sizes)

    def _span_sets(self, n: int, some: Sequence[Bracket], sets: Sets) -> Array:
        """What the spans of a sentence of n words may be, if anything is known of them."""
        if not some:
            return np.zeros(0, np.int64)
        own = labelled(some, self._symbols)
        for (start, end), symbols in own.items():
            if end == start + 1 and not symbols & self._tags:
                symbols |= self._tags  # what is above the word is known, not its tag
        firsts, lasts = np.triu_indices(n)
        return span_sets(firsts, lasts + 1, some, own, sets)

    def _symbols(self, label: str) -> set[int]:
        """The symbols that have a label."""
        found = self.annotation.symbols(label)
        if not found:
            raise DataError(f"there is no symbol {label!r} in the rules", "look at the brackets")
        return found

    # what it says of sentences
    def logs(self, asked: Asked) -> Array:
        """log p of each sentence."""
        core: RuleCore = asked.core
        return core.logs(asked.params, asked.shard, asked.threads)

    def best(self, asked: Asked) -> tuple[list[Tree | None], Array]:
        """The best tree of each sentence, and log p of both."""
        ready, found = self._derived(asked, True, 1, 0)
        sentences = (asked.text.sentence(n) for n in range(len(asked.shard)))
        trees = [self._tree(found.of(n), words, ready) for n, words in enumerate(sentences)]
        return trees, found.logs

    def drawn(self, asked: Asked, stream: int, samples: int) -> list[list[Tree]]:
        """Trees drawn from the posterior of each sentence."""
        ready, found = self._derived(asked, False, samples, stream)
        trees: list[list[Tree]] = []
        for n in range(len(asked.shard)):
            words, own = asked.text.sentence(n), range(n * samples, (n + 1) * samples)
            made = (self._tree(found.of(m), words, ready) for m in own)
            trees.append([tree for tree in made if tree is not None])
        return trees

    def _tree(self, codes: Array, sentence: Sequence[str], ready: Ready) -> Tree | None:
        """The tree of a derivation, as users know it; None if there is no derivation."""
        tree = self.own.tree(codes, sentence, ready.words)
        return None if tree is None else self.annotation.tree(tree)

    def _ready(self, asked: Asked) -> Ready:
        """Sentences as kernels want them, for answers about trees."""
        core: RuleCore = asked.core
        return core.ready(asked.params, asked.shard, known=KNOWN)

    def _derived(
        self, asked: Asked, best: bool, samples: int, stream: int
    ) -> tuple[Ready, rule_passes.Derived]:
        core: RuleCore = asked.core
        ready, grammar = self._ready(asked), core.grammar(asked.params, asked.shard, best)
        about = (asked.shard.text.numbers, samples, stream, asked.threads, core.prune)
        return ready, rule_passes.derived(grammar, ready.words, ready.text, *about)

    def spans(self, asked: Asked) -> Iterator[Spans]:
        """Expected spans of each sentence."""
        core: RuleCore = asked.core
        ready = self._ready(asked)
        about = (core.grammar(asked.params, asked.shard), ready.words, ready.text)
        found = (Spans(*rule_passes.spans(self.own, *about, n)) for n in range(len(asked.shard)))
        return (self.annotation.spans(one) for one in found)

    def some_best(self, asked: Asked, k: int) -> list[list[tuple[float, Tree]]]:
        """The k best trees of each sentence with log p of each and the sentence."""
        core: RuleCore = asked.core
        ready, grammar = self._ready(asked), core.grammar(asked.params, asked.shard, best=True)
        trees: list[list[tuple[float, Tree]]] = []
        for n, some in enumerate(best_parses(grammar, ready.words, ready.text, k)):
            words = asked.text.sentence(n)
            made = ((log_p, self._tree(codes, words, ready)) for log_p, codes in some)
            trees.append([(log_p, tree) for log_p, tree in made if tree is not None])
        return trees

    def least_risk(self, spans: Spans, sentence: Sequence[str], labelled: bool) -> Tree | None:
        """The tree of the most expected brackets, less those that are expected to be wrong."""
        given = (self._links, labelled, WRONG)
        return tree_of(most_expected(len(sentence), *spans, *given), self.labels, sentence)

    @cached_property
    def _links(self) -> Links:
        return Links.of(self.own.rules, self.annotation.of)

    def expected_rules(self, asked: Asked) -> dict[Rule, float]:
        """How often sentences are expected to use which rules."""
        core: RuleCore = asked.core
        found = core.used(asked.params, asked.shard, asked.threads).rules
        return dict(zip(self.own.rules.rules, found.tolist(), strict=True))

    # what was learned
    def rules(self, params: Params, least: float) -> Rules:
        """Rules whose probability is at least so much."""
        chances, root = np.asarray(params[RULES]), np.asarray(params[ROOT])[0]
        pairs = zip(self.own.rules.rules, chances.tolist(), strict=True)
        tops = zip(self.own.labels, root.tolist(), strict=True)
        counts = {rule: p for rule, p in pairs if p >= least and p > 0.0}
        return scaled(counts, {label: p for label, p in tops if p >= least and p > 0.0})

    def made(self, params: Params, rng: np.random.Generator) -> Tree | None:
        """A new tree; None if it became too large."""
        chances, indptr = np.asarray(params[RULES]), self.own.rules.indptr
        root = np.asarray(params[ROOT])[0]
        used: list[Rule] = []
        ahead = [int(rng.choice(len(root), p=root / root.sum()))]
        while ahead:
            first, last = indptr[ahead.pop() :][:2]
            own = chances[first:last] / chances[first:last].sum()
            rule = self.own.rules.rules[first + rng.choice(last - first, p=own)]
            used.append(rule)
            if len(used) > MOST_NODES:
                return None
            ahead += [self.own.rules.number[symbol] for symbol in reversed(rule.symbols)]
        done: list[Tree] = []
        for rule in reversed(used):
            parts = zip(rule.rhs, rule.is_word, strict=True)
            done.append(Tree(rule.lhs, tuple(x if word else done.pop() for x, word in parts)))
        return self.annotation.tree(done.pop())
