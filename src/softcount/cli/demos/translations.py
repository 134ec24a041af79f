"""Word translations from sentence pairs, by IBM Model 1 (Brown et al. 1993)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import getsource
from typing import Any

import softcount as sc
from softcount import samples
from softcount.show.finding import Finding, bars, on_one_scale

SHOWN = ("house", "book", "cat", "child", "sleeps", "drinks", "old", "today", "the")

t = sc.table("t")


@sc.story
def link(es: Sequence[str], f: str) -> Iterator[Any]:
    """A word comes from one of the words on the other side."""
    for e in es:
        yield t[e, f]


@sc.story
def pair(es: Sequence[str], fs: Sequence[str]) -> Iterator[Any]:
    """Each word of the translation on its own."""
    yield tuple(link(es, f) for f in fs)


def find() -> Finding:
    model = sc.StoryModel(pair, init="uniform").fit(samples.pairs())
    return Finding(
        "Translations from a hundred sentence pairs",
        "English sentences and their German translations; which word goes with which is hidden. "
        "The likeliest translations of some words:",
        on_one_scale([bars(english, model.params_["t"][english], top=3) for english in SHOWN]),
        [],
        model.fit_,
        "\n".join(map(getsource, (link, pair))),
    )
