"""What grammars say of sentences once they have learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from softcount.corpus.trees import Span, Tree
from softcount.errors import LearnerError, shown
from softcount.kernels.pool import usable_cpus
from softcount.models.grammar.form import Asked, Form, generated
from softcount.models.grammar.pruning import Lost
from softcount.models.grammar.rule_core import RuleCore
from softcount.models.grammar.rules import Rules
from softcount.models.grammar.shards import Sentences
from softcount.models.grammar.told import Told
from softcount.models.learnable import Learnable
from softcount.models.possible import warn_of_impossible
from softcount.models.sequences.shards import sentence_weights
from softcount.models.settings import check_number, check_whole, generator
from softcount.types import Array, How, Params

NO_TREE = (
    "There is no tree for such a one: no rules lead to it, or a word is in none. More rules, "
    "smoothing, or unknown=True allow more"
)
METHODS = ("viterbi", "brackets", "labelled")


class Posterior(NamedTuple):
    """What is expected of sentences.

    ``brackets``  for each sentence (label, start, end) → how many are expected there; those of
                  one word included
    ``rules``     rule, as a text → how often all sentences are expected to use it
    """

    brackets: list[dict[Span, float]]
    rules: dict[str, float]


def _warn_of_none(asked: Asked, lacks: Sequence[bool]) -> None:
    """Warn of sentences that have words, and lack a tree."""
    text = asked.text
    lengths = text.lengths.tolist()
    both = zip(lacks, lengths, strict=True)
    items = [n for n, (lacking, length) in enumerate(both) if lacking and length]
    first = text.name(items[0]) if items else ""
    warn_of_impossible(items, len(lengths), "sentences", first, NO_TREE, stacklevel=3)


class GrammarModel(Learnable):
    """A grammar as an estimator; a subclass says how it learns."""

    form_: Form
    raw_params_: Params
    lowercase: bool
    dtype: str

    @property
    def threads(self) -> int:
        """How many threads may be used: the engine's, if it says."""
        threads = getattr(self.engine, "threads", None)
        return usable_cpus() if threads is None else int(threads)

    def _asked(self, sentences: Any, brackets: Any = None) -> Asked:
        self._require_fit()
        told, corpus = self._told(sentences, brackets)
        return Asked(self.core_, self.raw_params_, corpus.everything, told.text, self.threads)

    def _told(self, sentences: Any, brackets: Any = None) -> tuple[Told, Sentences]:
        """More sentences, in the words that the grammar knows."""
        told = Told.of(sentences, None, brackets, self.form_.vocabulary, self.lowercase)
        return told, self.form_.corpus(told, sentence_weights(None, len(told.text)))

    # trees of sentences
    def predict(
        self, sentences: Any, *, brackets: Any = None, method: str = "viterbi"
    ) -> list[Tree | None]:
        """The tree of each sentence; None if it is empty, or no tree could have produced it, which
        an `ImpossibleWarning` counts.

        ``brackets``  what is known of the trees already; see `PCFG.fit`
        ``method``    "viterbi": the most probable tree; "brackets": that of the most expected
                      brackets, whatever their labels; "labelled": of the most expected labelled
                      ones (Goodman 1996)
        """
        if method not in METHODS:
            raise LearnerError(f"method={shown(method)} is unknown", f"choose {METHODS}")
        asked = self._asked(sentences, brackets)
        if method == "viterbi":
            trees = self.form_.best(asked)[0]
        else:
            labelled = method == "labelled"
            trees = [
                self.form_.least_risk(spans, asked.text.sentence(n), labelled)
                for n, spans in enumerate(self.form_.spans(asked))
            ]
        _warn_of_none(asked, [tree is None for tree in trees])
        return trees

    def k_best(
        self, sentences: Any, k: int = 10, *, brackets: Any = None
    ) -> list[list[tuple[float, Tree]]]:
        """For each sentence the k most probable trees (fewer, if there are), the best first.

        Each comes with log p(tree, sentence). In parsing, words of treebank grammars may be what
        they never were (see `softcount.models.grammar.unknown`), which `score` knows nothing of: a
        tree may be more probable than the sentence that it says.
        """
        check_whole("k", k)
        asked = self._asked(sentences, brackets)
        found = self.form_.some_best(asked, k)
        _warn_of_none(asked, [not some for some in found])
        return found

    def sample_trees(
        self, sentences: Any, n: int = 1, random_state: Any = 0, *, brackets: Any = None
    ) -> list[list[Tree]]:
        """n trees for each sentence, drawn from their posterior; none, if there is no tree."""
        check_whole("n", n)
        stream = int(generator(random_state).integers(2**63))
        asked = self._asked(sentences, brackets)
        found = self.form_.drawn(asked, stream, n)
        _warn_of_none(asked, [not some for some in found])
        return found

    def posterior(self, sentences: Any, *, brackets: Any = None, least: float = 1e-6) -> Posterior:
        """Expected brackets of each sentence, and expected rules of all; from ``least`` on.

        Sentences that no tree could have produced have no brackets, and count no rules.
        """
        check_number("least", least)
        asked = self._asked(sentences, brackets)
        labels = self.form_.labels
        found: list[dict[Span, float]] = []
        for spans in self.form_.spans(asked):
            kept = spans.shares >= least
            places = zip(*(at[kept].tolist() for at in spans), strict=True)
            found.append({(labels[a], i, j): share for i, j, a, share in places})
        counts = self.form_.expected_rules(asked)
        return Posterior(found, {str(rule): n for rule, n in counts.items() if n >= least})

    def score_samples(self, sentences: Any, *, brackets: Any = None) -> Array:
        """log p of each sentence (in trees that agree with the brackets); −inf if it cannot be."""
        asked = self._asked(sentences, brackets)
        return self.form_.logs(asked)

    def score(self, sentences: Any, y: Any = None) -> float:
        """The mean log p of a sentence."""
        return float(self.score_samples(sentences).mean())

    def perplexity(self, sentences: Any) -> float:
        """exp of the negative log-likelihood a word; infinite if a sentence cannot come about."""
        asked = self._asked(sentences)
        logs = self.form_.logs(asked)
        return float(np.exp(-logs.sum() / max(asked.shard.text.n_tokens, 1)))

    def expected(self, sentences: Any, *, brackets: Any = None) -> dict[str, Any]:
        """Expected counts of all tables: what an E-step finds."""
        asked = self._asked(sentences, brackets)
        return dict(self.core_.expect(asked.params, asked.shard, How(threads=asked.threads)).counts)

    def pruning_loss(self, sentences: Any) -> Lost:
        """What these sentences lose by ``prune``: they are gone through with it and without it."""
        asked = self._asked(sentences)
        if not isinstance(asked.core, RuleCore):
            raise LearnerError(
                "nothing is ever left out of a dense grammar", "ask a grammar of rules"
            )
        return asked.core.lost(asked.params, asked.shard, asked.threads)

    # what was learned
    @property
    def params_(self) -> dict[str, Array]:
        """The learned tables, by name; they may be given back as ``init``."""
        self._require_fit()
        return {name: np.array(table) for name, table in self.raw_params_.items()}

    @property
    def labels_(self) -> tuple[str, ...]:
        """The symbols of trees: nonterminals, then preterminals, if these are told apart."""
        self._require_fit()
        return self.form_.labels

    def grammar(self, least: float = 1e-4) -> Rules:
        """The rules whose probability is at least ``least``, scaled to add up to one.

        Written as a text, `PCFG.from_rules` reads them again.
        """
        self._require_fit()
        check_number("least", least)
        return self.form_.rules(self.raw_params_, least)

    def generate(self, n: int = 1, random_state: Any = 0) -> list[Tree]:
        """New trees."""
        self._require_fit()
        check_whole("n", n, 0)
        rng = generator(random_state)
        return [generated(self.form_, self.raw_params_, rng) for _ in range(n)]
