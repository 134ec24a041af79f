"""Tags of tokens beside gold ones: named tags, and hidden states that have no names.

Tags are strings or numbers: a list of them for every sentence, or one flat list for everything.
Tokens whose gold tag is unknown (−1, None, or "_" as in CoNLL-U) are left out of every figure.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from softcount.errors import DataError, shown
from softcount.evaluate.clustering import agreement, many_to_one, many_to_one_map, matching
from softcount.evaluate.confusions import confusion
from softcount.evaluate.tokens import (
    Tags,
    Tokens,
    demand_alike,
    is_list,
    listed,
    read_tokens,
    tokens_of,
)
from softcount.types import Array

Method = Literal["many-to-one", "one-to-one"]


@dataclass(frozen=True)
class TagScores:
    """How many tags are right; ``print`` shows it as one or two lines.

    ``tokens``             tokens with a known gold tag, the only ones counted
    ``left_out``           tokens whose gold tag is unknown
    ``accuracy``           share of the tokens with the right tag
    ``sentences``          sentences with a known gold tag; 0 if the tags were one flat list
    ``sentence_accuracy``  share of these in which every tag is right
    ``known``              tokens whose word is a known one
    ``known_accuracy``     share of these with the right tag
    ``unknown``            tokens whose word is unknown
    ``unknown_accuracy``   share of these with the right tag

    A share of nothing is None, and so are the last four if no known words were given.
    """

    tokens: int
    left_out: int
    accuracy: float
    sentences: int
    sentence_accuracy: float | None
    known: int | None
    known_accuracy: float | None
    unknown: int | None
    unknown_accuracy: float | None

    def __str__(self) -> str:
        line = f"accuracy {_share(self.accuracy, self.tokens)} tokens"
        if self.sentences:
            line += f", all right in {_share(self.sentence_accuracy, self.sentences)} sentences"
        if self.left_out:
            line += f" (left out, their gold tag being unknown: {self.left_out})"
        if self.known is None or self.unknown is None:
            return line
        return (
            f"{line}\nknown words {_share(self.known_accuracy, self.known)}"
            f", unknown words {_share(self.unknown_accuracy, self.unknown)}"
        )


def tag_scores(
    found: Tags, gold: Tags, known_words: Iterable[Any] | None = None, words: Tags | None = None
) -> TagScores:
    """Accuracy of tags that have the same names on both sides.

    ``known_words``  the words that the tagger knows: a set, a list, a dictionary's keys, or the
                     sentences that it learned from
    ``words``        the tokens that were tagged, in the form of the tags

    Found tags may be None for a sentence that a tagger has none for: none of its tags is right.

    >>> found, gold = [["DET", "NOUN"], ["NOUN", "VERB"]], [["DET", "NOUN"], ["VERB", "_"]]
    >>> words = [["the", "dog"], ["bark", "!"]]
    >>> print(tag_scores(found, gold, known_words={"the", "dog"}, words=words))
    accuracy 66.7% of 3 tokens, all right in 50.0% of 2 sentences (left out, ...: 1)
    known words 100.0% of 2, unknown words 0.0% of 1
    """
    tokens = tokens_of(found, gold, gaps=True)
    _demand_comparable(tokens)
    right = np.array([f == g for f, g in zip(tokens.found, tokens.gold, strict=True)], dtype=bool)
    wrong_in = np.bincount(tokens.sentence, ~right)[np.unique(tokens.sentence)]
    sentences = len(wrong_in) if tokens.source.nested else 0
    known = _known(tokens, known_words, words)
    return TagScores(
        tokens=len(right),
        left_out=tokens.left_out,
        accuracy=float(right.mean()),
        sentences=sentences,
        sentence_accuracy=float((wrong_in == 0).mean()) if sentences else None,
        known=None if known is None else int(known.sum()),
        known_accuracy=None if known is None else _mean(right[known]),
        unknown=None if known is None else int((~known).sum()),
        unknown_accuracy=None if known is None else _mean(right[~known]),
    )


@dataclass(frozen=True)
class InductionScores:
    """How well hidden states agree with gold tags; ``print`` shows the figures as a table.

    ``tokens``           tokens with a known gold tag, the only ones counted
    ``left_out``         tokens whose gold tag is unknown
    ``states``           how many states these tokens have
    ``tags``             how many gold tags they have
    ``many_to_one``      accuracy with each state called after its most frequent gold tag
    ``cross_validated``  the same, with names from the other half: of every second sentence (or
                         token, of flat lists) from those between, and the reverse; None if there is
                         no second one
    ``one_to_one``       accuracy under the best one-to-one matching
    ``homogeneity``      1 if every state holds tokens of one tag only
    ``completeness``     1 if every tag lies within one state
    ``v_measure``        their harmonic mean
    ``vi``               variation of information in bits: 0 is perfect, smaller is better
    ``nvi``              the same in units of the entropy of the gold tags
    """

    tokens: int
    left_out: int
    states: int
    tags: int
    many_to_one: float
    cross_validated: float | None
    one_to_one: float
    homogeneity: float
    completeness: float
    v_measure: float
    vi: float
    nvi: float

    def __str__(self) -> str:
        rows = {
            "many-to-one": self.many_to_one,
            "  cross-validated": self.cross_validated,
            "one-to-one": self.one_to_one,
            "homogeneity": self.homogeneity,
            "completeness": self.completeness,
            "V-measure": self.v_measure,
            "VI (bits)": self.vi,
            "NVI": self.nvi,
        }
        head = f"{self.tokens} tokens, {self.states} states, {self.tags} tags"
        if self.left_out:
            head += f" (left out, their gold tag being unknown: {self.left_out})"
        known = [(name, figure) for name, figure in rows.items() if figure is not None]
        return "\n".join([head, *(f"  {name:<18}{figure:7.3f}" for name, figure in known)])


def induction_scores(found: Tags, gold: Tags) -> InductionScores:
    """Hidden states beside gold tags, whatever the states are called.

    VI = H(gold | found) + H(found | gold), in bits (Meilă 2007), is a distance between partitions.
    NVI = VI / H(gold) (Reichart & Rappoport 2009), or H(found) where there is but one gold tag;
    one state for everything has an NVI of 1, and too many states have more. The rest is
    `agreement`'s. Every sentence must have states.

    >>> scores = induction_scores([[0, 1], [0, 1, 1]], [["D", "N"], ["D", "N", "V"]])
    >>> scores.many_to_one, scores.one_to_one, round(scores.vi, 3), round(scores.nvi, 3)
    (0.8, 0.8, 0.551, 0.362)
    """
    tokens = tokens_of(found, gold)
    figures = agreement(tokens.found, tokens.gold)
    vi, gold_entropy = _information(confusion(tokens.found, tokens.gold).counts)
    return InductionScores(
        tokens=figures.n,
        left_out=tokens.left_out,
        states=figures.found_classes,
        tags=figures.gold_classes,
        many_to_one=figures.many_to_one,
        cross_validated=_cross_validated(tokens),
        one_to_one=figures.one_to_one,
        homogeneity=figures.homogeneity,
        completeness=figures.completeness,
        v_measure=figures.v_measure,
        vi=vi,
        nvi=vi / gold_entropy if gold_entropy else vi,
    )


def mapping(found: Tags, gold: Tags, method: Method = "many-to-one") -> dict[Any, Any]:
    """A gold tag for each state, so that states can be renamed and scored as tags.

    "many-to-one" gives every state its most frequent tag; "one-to-one" gives no tag twice, and none
    to states that are left over.

    >>> found, gold = [[0, 1, 2], [1, 1]], [["D", "N", "N"], ["N", "N"]]
    >>> mapping(found, gold)
    {0: 'D', 1: 'N', 2: 'N'}
    >>> mapping(found, gold, "one-to-one")
    {0: 'D', 1: 'N'}
    """
    methods = {"many-to-one": many_to_one_map, "one-to-one": matching}
    if method not in methods:
        raise DataError(f"there is no mapping {shown(method)}", f"choose from {', '.join(methods)}")
    tokens = tokens_of(found, gold)
    return methods[method](tokens.found, tokens.gold)


def _demand_comparable(tokens: Tokens) -> None:
    """Numbers never equal names: an accuracy of 0 would hide the mistake."""
    given = [tag for tag in tokens.found if tag is not None]
    found, gold = ({isinstance(tag, str) for tag in tags} for tags in (given, tokens.gold))
    if {*found, *gold} == {True, False} and len(found) == len(gold) == 1:
        raise DataError(
            f"found tags such as {shown(given[0])} never equal gold tags such as "
            f"{shown(tokens.gold[0])}: one side has names, the other has not",
            "induction_scores scores states that have no names; mapping gives them names",
        )


def _known(tokens: Tokens, known_words: Any, words: Any) -> Array | None:
    """Whether the word of each token is a known one."""
    if known_words is None and words is None:
        return None
    if known_words is None or words is None:
        missing = "words" if words is None else "known_words"
        raise DataError(f"{missing} is missing", "give both known_words and words, or neither")
    if isinstance(known_words, str) or not isinstance(known_words, Iterable):
        raise DataError(f"known_words is {shown(known_words)}", "give a set or a list of words")
    read = read_tokens(words, "words")
    demand_alike(read, tokens.source)
    every = list(chain.from_iterable(read.sentences))
    known = _vocabulary(known_words)
    return np.array([every[i] in known for i in tokens.place], dtype=bool)


def _vocabulary(known_words: Iterable[Any]) -> set[Hashable]:
    """The words of a list of words, or of sentences."""
    parts = (listed(item) if is_list(item) else [item] for item in known_words)
    words = list(chain.from_iterable(parts))
    for word in words:
        if is_list(word):
            raise DataError(
                f"{shown(word)} in known_words is no word", "give words only, without their tags"
            )
    return set(words)


def _information(counts: Array) -> tuple[float, float]:
    """VI of rows and columns, and the entropy of the rows, in bits.

    Σ p_rc log2(p_r p_c / p_rc²): every addend is ≥ 0, and exactly 0 where a row is a column.
    """
    n = counts.sum()
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    r, c = np.nonzero(counts)
    shared = counts[r, c].astype(np.float64)
    vi = shared @ np.log2((rows[r] / shared) * (columns[c] / shared)) / n
    return float(vi), float(rows @ np.log2(n / rows) / n)


def _cross_validated(tokens: Tokens) -> float | None:
    """Many-to-one with names from the other half, both ways; halves are every second sentence."""
    half = np.unique(tokens.sentence, return_inverse=True)[1] % 2
    if not half.any():
        return None
    right = 0.0
    for learnt, scored in ((0, 1), (1, 0)):
        names = many_to_one_map(*_part(tokens, half == learnt))
        found, gold = _part(tokens, half == scored)
        right += many_to_one(found, gold, names) * len(gold)
    return right / len(tokens.gold)


def _part(tokens: Tokens, here: Array) -> tuple[list[Hashable], list[Hashable]]:
    at = np.flatnonzero(here)
    return [tokens.found[i] for i in at], [tokens.gold[i] for i in at]


def _mean(right: Array) -> float | None:
    return float(right.mean()) if len(right) else None


def _share(figure: float | None, n: int) -> str:
    return "none" if figure is None else f"{100 * figure:.1f}% of {n}"
