"""Grammars that have every rule A → B C."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from typing import Any

import numpy as np

from softcount import store
from softcount.corpus.numbering import Vocabulary
from softcount.corpus.sequences import Sequences
from softcount.corpus.trees import Span, Tree
from softcount.errors import DataError, LearnerError, StoreError
from softcount.families import Categorical
from softcount.grammar import inside_outside as passes
from softcount.grammar import parsing as dense_spans
from softcount.grammar.core import PCFGCore
from softcount.grammar.data import Bracket, Limits, Sentences, Told, labelled, n_spans, span_sets
from softcount.grammar.form import MOST_NODES, Asked, Choices, Spans, demand_freezable
from softcount.grammar.inside_outside import ROOT, RULES, WORDS, Shape
from softcount.grammar.parsing import best_trees, most_expected, tree_of
from softcount.grammar.rules import Rule, Rules, scaled
from softcount.hmm.core import Words, unseen_words
from softcount.hmm.data import Sentences as Texts
from softcount.hmm.data import Sets, StateSets
from softcount.hmm.data import Shard as TextShard
from softcount.models.files import TABLE
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array, Params

OFTEN = "often"
NAMES = ("nonterminals", "preterminals", "words")


def is_dense(stored: store.Stored) -> bool:
    """Whether a file has such a grammar: those of rules have no list of words."""
    return NAMES[-1] in stored.meta


def facts(form: DenseForm) -> dict[str, Any]:
    """Symbols and words as JSON has them."""
    lists = (form.nonterminals, form.preterminals, form.vocabulary.words)
    return {name: list(some) for name, some in zip(NAMES, lists, strict=True)}


def arrays(form: DenseForm) -> dict[str, Array]:
    """What it has beside the tables."""
    return {OFTEN: form.often}


def form(stored: store.Stored) -> DenseForm:
    """Symbols and words from a file, whose tables fit them."""
    nonterminals, preterminals, words = (_names(stored, name) for name in NAMES)
    k, t, v = map(len, (nonterminals, preterminals, words))
    for table, shape in ((RULES, (k, (k + t) ** 2)), (WORDS, (t, v))):
        numbers(stored, TABLE + table, shape)
    often = numbers(stored, OFTEN, (v,))
    if often.min() < 1 or (often % 1).any():
        raise StoreError("how often words are there makes no sense", AGAIN)
    symbols = tuple(nonterminals), tuple(preterminals)
    return DenseForm(*symbols, Vocabulary(words), often.astype(np.int64))


def _names(stored: store.Stored, name: str) -> list[str]:
    given: list[str] = stored.meta[name]
    strings(given, len(given), name)
    if not given or "" in given or len(set(given)) != len(given):
        raise StoreError(f"the {name} make no sense", AGAIN)
    return given


# Dense grammars as users see them: names of symbols, what is known of spans, trees.


MOST_RULES = 1 << 28
"""A table of rules has so many entries at most: 2 GB."""
STEPS = 30
"""Shares of preterminals are found in so many steps."""
AT_A_TIME = passes.PIECES * passes.TOGETHER
"""Expected spans of so many sentences are kept: those of all would fill the memory."""


@dataclass(frozen=True, eq=False)
class DenseForm:
    """A grammar in Chomsky normal form in which any rule may be.

    ``often``  how often each word was seen
    """

    nonterminals: tuple[str, ...]
    preterminals: tuple[str, ...]
    vocabulary: Vocabulary
    often: Array

    @classmethod
    def of(cls, told: Told, n_nonterminals: int | None, n_preterminals: int | None) -> DenseForm:
        """The symbols: those that sentences are told to have, then others."""
        _demand_room(n_nonterminals or 1, n_preterminals or 1)
        labels = {
            label
            for some in told.brackets
            for label, start, end in some
            if label is not None and end > start + 1  # one word has a preterminal
        }
        tags: set[str] = set()
        for tree in told.trees:
            if tree is not None:
                labels.update(label for label, *_ in _phrases(tree))
                tags.update(node.label for node in tree.nodes() if node.is_preterminal)
        words, taken = told.text.words, labels | tags
        nonterminals = _named(labels, taken, n_nonterminals, "N", "n_nonterminals")
        preterminals = _named(tags, taken, n_preterminals, "P", "n_preterminals")
        _demand_room(len(nonterminals), len(preterminals))
        often = np.bincount(told.text.tokens, minlength=len(words))
        return cls(nonterminals, preterminals, Vocabulary(words), often)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of symbols, by their numbers."""
        return self.nonterminals + self.preterminals

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Names in rules: preterminals that are called as nonterminals are have = behind them."""
        taken = set(self.labels)
        found = list(self.nonterminals)
        for name in self.preterminals:
            apart = name
            while name in self.nonterminals and apart in taken:
                apart += "="
            taken.add(apart)
            found.append(apart)
        return tuple(found)

    @property
    def shape(self) -> Shape:
        return Shape(len(self.nonterminals), len(self.preterminals))

    def core(self, choices: Choices) -> PCFGCore:
        """What learns."""
        demand_freezable(choices.frozen, (ROOT, RULES, WORDS), self.labels)
        k, t, v = len(self.nonterminals), len(self.preterminals), len(self.vocabulary.words)
        held = choices.held(ROOT, ["the only row"])
        root = Categorical((1, k + t), choices.rules, frozen=held)
        held = choices.held(RULES, self.nonterminals)
        rules = Categorical((k, (k + t) ** 2), choices.rules, frozen=held)
        held = choices.held(WORDS, self.preterminals)
        words = Words(Categorical((t, v), choices.words, frozen=held), (t, v))
        return PCFGCore("PCFG", root, rules, words, self.shape, choices.dtype)

    def see_rare_words(self, core: PCFGCore, table: Array, unknown: bool) -> None:
        """Words seen once speak for those never seen, if these may be."""
        assert isinstance(core.emission, Words)
        core.emission.unseen = np.zeros(len(table))
        if unknown:
            core.emission.unseen = unseen_words(table, self._shares(table), self.often)

    def _shares(self, table: Array) -> Array:
        """The share of each preterminal among tokens, by what words there are: EM of a mixture."""
        share = np.full(len(table), 1.0 / len(table))
        for _ in range(STEPS):
            joint = table * share[:, None]
            joint *= self.often / np.maximum(joint.sum(axis=0), 1e-300)
            share = joint.sum(axis=1) / max(joint.sum(), 1e-300)
        return share

    # what is known
    def corpus(self, told: Told, weights: Array) -> Sentences:
        """What it learns from."""
        text = told.text
        sets, states = self._tags(told)
        new = text.words[len(self.vocabulary.words) :]
        known = (sets, states, weights, new)
        shard = TextShard(np.arange(len(text)), text.tokens, text.indptr, *known)
        return Sentences(Texts(shard, text.name), self._limits(told))

    def _tags(self, told: Told) -> tuple[Array, StateSets]:
        """What words may be: those of trees have their tag."""
        sets, number = Sets(len(self.preterminals)), _numbers(self.preterminals)
        found = np.zeros(len(told.text.tokens), np.int32)
        for begin, tree in zip(told.text.indptr.tolist(), told.trees, strict=False):
            if tree is None:
                continue
            for node, (label, start, _) in zip(tree.nodes(), tree.spans(), strict=True):
                if node.is_preterminal:
                    found[begin + start] = sets.number([_number_of(number, label, "preterminal")])
        return found, sets.made()

    def _limits(self, told: Told) -> Limits:
        """What spans may be."""
        sets, number = Sets(len(self.nonterminals)), _numbers(self.nonterminals)
        each = zip(told.brackets, told.trees, strict=True)
        given = [[*some, *(_phrases(tree) if tree is not None else ())] for some, tree in each]
        if not any(given):
            return Limits.none(len(self.nonterminals))
        lengths = told.text.lengths
        found = [
            _span_sets(n, some, sets, number)
            for n, some in zip(lengths.tolist(), given, strict=True)
        ]
        return Limits(np.concatenate(found), sets.made().allowed, n_spans(lengths))

    # what it says of sentences
    def _passing(self, asked: Asked) -> passes.Pass:
        core: PCFGCore = asked.core
        return core.passing(asked.params, asked.shard, asked.threads)

    def logs(self, asked: Asked) -> Array:
        """log p of each sentence."""
        return passes.posteriors(asked.shard, self._passing(asked), counting=False).logs

    def best(self, asked: Asked) -> tuple[list[Tree | None], Array]:
        """The best tree of each sentence, and log p of both."""
        nodes, logs = passes.trace_trees(asked.shard, self._passing(asked), True)
        trees = self._trees(asked.text, nodes.symbols[0], np.isfinite(logs))
        return list(trees), logs

    def drawn(self, asked: Asked, stream: int, samples: int) -> list[list[Tree]]:
        """Trees drawn from the posterior of each sentence."""
        nodes, logs = passes.trace_trees(asked.shard, self._passing(asked), False, stream, samples)
        possible = np.isfinite(logs)
        drawn = [self._trees(asked.text, symbols, possible) for symbols in nodes.symbols]
        return [[tree for tree in some if tree is not None] for some in zip(*drawn, strict=True)]

    def _trees(self, text: Sequences, symbols: Array, possible: Array) -> Iterator[Tree | None]:
        """A tree for each sentence, None if there is none."""
        borders = 2 * text.indptr
        for n, may in enumerate(possible.tolist()):
            size = borders[n + 1] - borders[n] - 1
            own = symbols[borders[n] : borders[n] + size]
            yield self.tree(own, text.sentence(n)) if may and size > 0 else None

    def tree(self, symbols: Array, words: Sequence[str]) -> Tree:
        """The tree of symbols from the top down, the left ones first."""
        done: list[Tree] = []
        ahead, k = len(words), len(self.nonterminals)
        for symbol in symbols[::-1].tolist():
            if symbol >= k:
                ahead -= 1
                done.append(Tree(self.labels[symbol], (words[ahead],)))
            else:
                done.append(Tree(self.labels[symbol], (done.pop(), done.pop())))
        return done.pop()

    def some_best(self, asked: Asked, k: int) -> list[list[tuple[float, Tree]]]:
        """The k best trees of each sentence with log p of each and the sentence."""
        found = best_trees(asked.shard, self._passing(asked), k)
        return [
            [(log_p, self.tree(symbols, asked.text.sentence(n))) for log_p, symbols in some]
            for n, some in enumerate(found)
        ]

    def spans(self, asked: Asked) -> Iterator[Spans]:
        """Expected spans of each sentence."""
        core: PCFGCore = asked.core
        for block in core.blocks(asked.shard, AT_A_TIME):
            every = dense_spans.spans(block, core.passing(asked.params, block, asked.threads))
            yield from (Spans(*dense_spans.one_sentence(every, n)) for n in range(len(block)))

    def least_risk(self, spans: Spans, sentence: Sequence[str], labelled: bool) -> Tree | None:
        """The tree of the most expected brackets."""
        found = most_expected(len(sentence), *spans, labelled=labelled)
        return tree_of(found, self.labels, sentence)

    def expected_rules(self, asked: Asked) -> dict[Rule, float]:
        """How often sentences are expected to use which rules."""
        this = self._passing(asked)
        tally = passes.posteriors(asked.shard, this)
        _, rules, words = self.shape.counts(tally, asked.params)
        seen = [*self.vocabulary.words, *asked.shard.text.new_words]
        return self._listed(rules, words[: len(seen)].T, seen, 0.0)

    # what was learned
    def rules(self, params: Params, least: float) -> Rules:
        """Rules whose probability is at least so much."""
        rules, words = (np.asarray(params[name]) for name in (RULES, WORDS))
        root = zip(self._names, np.asarray(params[ROOT])[0].tolist(), strict=True)
        return scaled(
            self._listed(rules, words, self.vocabulary.words, least),
            {label: p for label, p in root if p >= least and p > 0.0},
        )

    def _listed(
        self, rules: Array, words: Array, texts: Sequence[str], least: float
    ) -> dict[Rule, float]:
        """The rules with a number from ``least`` on, and above zero."""
        found: dict[Rule, float] = {}
        labels, n = self._names, len(self._names)
        for a, column in np.argwhere((rules >= least) & (rules > 0.0)).tolist():
            pair = labels[column // n], labels[column % n]
            found[Rule(labels[a], pair, (False, False))] = float(rules[a, column])
        for t, w in np.argwhere((words >= least) & (words > 0.0)).tolist():
            tag = labels[len(self.nonterminals) + t]
            found[Rule(tag, (texts[w],), (True,))] = float(words[t, w])
        return found

    def made(self, params: Params, rng: np.random.Generator) -> Tree | None:
        """A new tree; None if it became too large."""
        n, k = len(self.labels), len(self.nonterminals)
        rules, words = np.asarray(params[RULES]), np.asarray(params[WORDS])
        symbols: list[int] = []
        texts: list[str] = []
        ahead = [_drawn(np.asarray(params[ROOT])[0], rng)]
        while ahead:
            symbol = ahead.pop()
            symbols.append(symbol)
            if len(symbols) > MOST_NODES:
                return None
            if symbol < k:
                left, right = divmod(_drawn(rules[symbol], rng), n)
                ahead += (right, left)
            else:
                texts.append(self.vocabulary.words[_drawn(words[symbol - k], rng)])
        return self.tree(np.array(symbols), texts)


def _demand_room(k: int, t: int) -> None:
    if k * (k + t) ** 2 > MOST_RULES:
        raise LearnerError(
            f"{k:,} nonterminals and {t:,} preterminals have too many rules",
            "use fewer of them: 100 and 200 are many",
        )


def _drawn(chances: Array, rng: np.random.Generator) -> int:
    return int(rng.choice(len(chances), p=chances / chances.sum()))


def _named(
    given: Iterable[str], taken: Collection[str], n: int | None, letter: str, setting: str
) -> tuple[str, ...]:
    """n names: those that are given, then letters with numbers that are not taken."""
    names = sorted(given)
    if n is None and not names:
        raise DataError(f"how many symbols? {setting} is missing", f"give {setting}, or trees")
    if n is not None and n < len(names):
        raise DataError(
            f"there are {len(names)} labels, but {setting}={n}",
            "leave it out, or give at least as many",
        )
    others = (f"{letter}{number}" for number in count())
    free = (name for name in others if name not in taken)
    return (*names, *islice(free, (n or len(names)) - len(names)))


def _numbers(names: Sequence[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def _number_of(numbers: dict[str, int], label: str, what: str) -> int:
    if label not in numbers:
        raise DataError(f"there is no {what} {label!r}", "such labels were not there to learn from")
    return numbers[label]


def _phrases(tree: Tree) -> list[Span]:
    """Constituents of two words or more."""
    return [span for span in tree.spans() if span[2] > span[1] + 1]


def _span_sets(n: int, some: Sequence[Bracket], sets: Sets, number: dict[str, int]) -> Array:
    """What the spans of two words or more may be, the short ones first."""
    firsts, lasts = np.triu_indices(n, 1)
    order = np.argsort(lasts - firsts, kind="stable")
    longer = [one for one in some if one[2] > one[1] + 1]
    own = labelled(longer, lambda label: [_number_of(number, label, "nonterminal")])
    return span_sets(firsts[order], lasts[order] + 1, some, own, sets)
