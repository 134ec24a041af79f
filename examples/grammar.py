"""A tiny grammar learned from plain sentences, without any trees in the training data.

It prints the most probable trees, which need not be those that a linguist would draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import softcount as sc
from softcount import samples

KINDS = ("S", "A", "B", "C", "D")

rule = sc.table("rule")


@sc.story
def span(words: Sequence[str], i: int, j: int, kind: str) -> Iterator[Any]:
    """Words i to j are a single word, or two adjacent spans."""
    if j - i == 1:
        yield rule[kind, words[i]]
        return
    for k in range(i + 1, j):
        for left in KINDS:
            for right in KINDS:
                yield rule[kind, (left, right)], span(words, i, k, left), span(words, k, j, right)


@sc.story
def tree(words: Sequence[str]) -> Iterator[Any]:
    """The whole sentence is an S."""
    yield span(words, 0, len(words), "S")


if __name__ == "__main__":
    sentences = samples.sentences()
    model = sc.StoryModel(tree, learner=sc.EM(max_iter=200, n_init=3), smoothing=0.01).fit(
        sentences
    )
    print(model.best(sentences[0]))
    print(model.verdict_)
