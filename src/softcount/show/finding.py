"""What there is to show of a fit, the same for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from softcount.types import Fit


@dataclass(frozen=True)
class Bars:
    """One distribution: its name, and its outcomes with their probabilities, likeliest first."""

    title: str
    rows: Sequence[tuple[str, float]]
    left_out: int = 0

    @property
    def full(self) -> float:
        """What a bar of full length stands for: the likeliest outcome."""
        return self.rows[0][1] if self.rows else 1.0


@dataclass(frozen=True)
class Finding:
    """One fitted model: what it is, the distributions worth a look, remarks, and the fit itself."""

    title: str
    text: str
    bars: Sequence[Bars]
    lines: Sequence[str]
    fit: Fit


def distributions(
    params: Mapping[Any, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[Any, float]]]:
    """Every distribution in a nested mapping of tables, with the way that leads to it.

    >>> list(distributions({"which": {"A": 1.0}, "flip": {"A": {"H": .3, "T": .7}}}))
    [(('which',), {'A': 1.0}), (('flip', 'A'), {'H': 0.3, 'T': 0.7})]
    """
    if params and all(isinstance(value, Mapping) for value in params.values()):
        for key, inner in params.items():
            yield from distributions(inner, (*path, str(key)))
    else:
        yield path, params


def bars(title: str, distribution: Mapping[Any, float], top: int = 8) -> Bars:
    """The likeliest outcomes of a distribution; those that would read 0.000 are dropped.

    >>> bars("coin", {"H": .2, "T": .8, "edge": 0.0}).rows
    [('T', 0.8), ('H', 0.2)]
    """
    order = sorted(distribution.items(), key=lambda item: -item[1])
    possible = [(str(outcome), float(p)) for outcome, p in order if p >= 5e-4]
    return Bars(title, possible[:top], left_out=max(0, len(possible) - top))


def all_bars(params: Mapping[Any, Any], top: int = 8, most: int | None = None) -> list[Bars]:
    """The bars of all distributions (at most ``most``), named as one would say: flip given A."""
    return [
        bars(f"{path[0]} given {', '.join(path[1:])}" if path[1:] else path[0], row, top)
        for path, row in islice(distributions(params), most)
    ]
