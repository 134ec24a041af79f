"""Two coins behind a card."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import getsource
from typing import Any

import softcount as sc
from softcount.show.finding import Finding, all_bars

TOSSES = [
    "HHTHHHHTHH", "TTHTTTHTTT", "HHHHTHHHHH", "HTTTTHTTTT", "TTTHTTTTHT",
    "HHHTHHTHHH", "THTTTTTHTT", "HTHHHHHHHT", "HHHHHTHHTH", "TTTTHTTTTT",
]  # fmt: skip

which, flip = sc.table("which"), sc.table("flip")


@sc.story
def coins(tosses: str) -> Iterator[Any]:
    """Somebody picks a coin behind a card, then tosses it ten times."""
    for coin in "AB":
        yield which[coin], *(flip[coin, side] for side in tosses)


def find() -> Finding:
    model = sc.StoryModel(coins, learner=sc.EM(n_init=5)).fit(TOSSES)
    return Finding(
        "Two coins behind a card",
        "Ten times somebody picked one of two coins out of sight and tossed it ten times. "
        "Which coin it was is hidden; how each of them falls can still be learned.",
        all_bars(model.params_),
        [],
        model.fit_,
        getsource(coins),
    )
