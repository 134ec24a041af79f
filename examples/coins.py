"""Two coins, one of them picked unseen: the smallest story.

softcount story examples/coins.py tosses.txt --chars
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import softcount as sc

which, flip = sc.table("which"), sc.table("flip")


@sc.story
def coins(tosses: str) -> Iterator[Any]:
    """A coin is picked out of sight, then tossed."""
    for z in "AB":
        yield which[z], *(flip[z, x] for x in tosses)


if __name__ == "__main__":
    model = sc.StoryModel(coins).fit(["HHH", "TTT", "HHH", "TTT"])
    print(model.params_)
    print(model.verdict_)
