"""Remarks of ``softcount tag``: what its dictionary has, and where states and gold tags differ."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.cli.tag_answers import Beside
    from softcount.cli.tag_text import TagText
    from softcount.corpus.tagged import Tagged
    from softcount.models.sequences import HMM

WRONG = 5
"""So many kinds of mistakes are named."""


def demand_tags(known: Tagged, called: str, separator: str) -> None:
    """Complain of a file of tagged sentences in which nothing is tagged."""
    if not known.names:
        raise DataError(
            f"{called}: not a single word has a tag",
            f"write word{separator}TAG (or say another --separator); CoNLL-U has tags in UPOS, or "
            "in another --column",
        )


def of_open_tags(given: Sequence[str] | None, spoken: Collection[str]) -> str:
    """Open tags that nothing else speaks of, for they may be slips; empty if there are none.

    >>> of_open_tags(["N", "NUON"], {"N", "V"})
    '--open-tags: NUON is in no dictionary and no tagged sentence, and is taken for a new tag'
    """
    new = [tag for tag in dict.fromkeys(given or ()) if tag not in spoken]
    if not new:
        return ""
    are, told = ("is", "is taken for a new tag") if len(new) == 1 else ("are", "are new tags")
    return (
        f"--open-tags: {', '.join(new)} {are} in no dictionary and no tagged sentence, and {told}"
    )


def of_dictionary(model: HMM, text: TagText) -> str:
    """How many words of a text the dictionary has; empty if it has all, or if there is none."""
    dictionary, words = model.knowledge_.dictionary, text.sequences
    if dictionary is None or not len(words.tokens):
        return ""
    import numpy as np

    often = np.bincount(words.tokens, minlength=len(words.words))
    spelt = [word.lower() if model.lowercase else word for word in words.words]
    n = sum(count for word, count in zip(spelt, often.tolist(), strict=True) if word in dictionary)
    if n == often.sum():
        return ""
    more = sum(
        count
        for word, count in zip(spelt, often.tolist(), strict=True)
        if word not in dictionary and word.lower() in dictionary
    )
    case = f"; with --lowercase it would have {more:,} more" if more else ""
    return f"the dictionary has {n / often.sum():.1%} of {often.sum():,} words{case}"


def beside_gold(pair: Beside) -> str:
    """The most frequent mistakes; of states without names, which tag each of them has most often.

    >>> from softcount.cli.tag_answers import Beside
    >>> beside_gold(Beside([["N", "N", "V"]], [["N", "V", "V"]], named=True))
    'most often wrong: V taken for N 1'
    >>> beside_gold(Beside([[1, 0, 1]], [["N", "V", "N"]], named=False))
    'the most frequent gold tag of each state: 0 V, 1 N'
    """
    from softcount.evaluate import confusion, mapping

    if not pair.named:
        tags = sorted(mapping(pair.found, pair.gold).items(), key=lambda one: str(one[0]).rjust(9))
        told = ", ".join(f"{state} {tag}" for state, tag in tags)
        return f"the most frequent gold tag of each state: {told}"
    wrong = confusion(pair.found, pair.gold).most_confused(WRONG)
    told = ", ".join(f"{gold} taken for {found} {n:,}" for gold, found, n in wrong)
    return f"most often wrong: {told}" if wrong else ""
