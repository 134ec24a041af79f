"""Summaries of a fit, the same in a terminal and on a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from softcount.core.types import Fit
from softcount.report.text import plural


@dataclass(frozen=True)
class Bars:
    """A distribution as bars: its title, and its outcomes with probabilities, most probable first.

    ``left_out``  number of outcomes that are not among the rows
    ``full``      the probability represented by a bar of full length
    """

    title: str
    rows: Sequence[tuple[str, float]]
    left_out: int = 0
    full: float = 1.0


@dataclass(frozen=True)
class Finding:
    """A fitted model to be shown: title, text, distributions, further lines, and the fit itself.

    ``source``  source code of the story, if it is to be shown
    """

    title: str
    text: str
    bars: Sequence[Bars]
    lines: Sequence[str]
    fit: Fit
    source: str = ""

    @property
    def scale(self) -> str:
        """A sentence on what a full bar represents; empty if that is 1."""
        scales = sorted({one.full for one in self.bars} - {1.0}, reverse=True)
        if not scales:
            return ""
        others = "" if {one.full for one in self.bars} == set(scales) else "1, "
        return f"A full bar is {others}{', '.join(f'{full:g}' for full in scales)}."


def list_distributions(
    params: Mapping[Any, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[Any, float]]]:
    """Yield every distribution in a nested mapping of tables, with the path of keys to it.

    >>> list(list_distributions({"which": {"A": 1.0}, "flip": {"A": {"H": .3, "T": .7}}}))
    [(('which',), {'A': 1.0}), (('flip', 'A'), {'H': 0.3, 'T': 0.7})]
    """
    if params and all(isinstance(value, Mapping) for value in params.values()):
        for key, inner in params.items():
            yield from list_distributions(inner, (*path, str(key)))
    else:
        yield path, params


def make_bars(
    title: str, distribution: Mapping[Any, float], top: int = 8, *, own_scale: bool = False
) -> Bars:
    """Make bars of the most probable outcomes of a distribution, without those that read 0.000.

    A full bar represents the smallest power of ten that no probability exceeds. With ``own_scale``,
    the title says so if that is not 1.

    >>> make_bars("coin", {"H": .2, "T": .8, "edge": 0.0}).rows
    [('T', 0.8), ('H', 0.2)]
    >>> make_bars("words", {"a": .02, "b": .01}, own_scale=True).title
    'words (a full bar is 0.1)'
    """
    order = sorted(distribution.items(), key=lambda item: -item[1])
    possible = [(str(outcome), float(p)) for outcome, p in order if p >= 5e-4]
    full = float(10.0 ** math.ceil(math.log10(possible[0][1]) - 1e-9)) if possible else 1.0
    if own_scale and full != 1.0:
        title = f"{title} (a full bar is {full:g})"
    return Bars(title, possible[:top], max(0, len(possible) - top), full)


def share_scale(group: Sequence[Bars]) -> list[Bars]:
    """Put bars on a common scale, so that their lengths can be compared.

    >>> bars = [make_bars("A", {"x": .04}), make_bars("B", {"x": .4, "y": .6})]
    >>> [one.full for one in share_scale(bars)]
    [1.0, 1.0]
    """
    full = max((one.full for one in group), default=1.0)
    return [replace(one, full=full) for one in group]


def make_all_bars(params: Mapping[Any, Any], top: int = 8, most: int | None = None) -> list[Bars]:
    """Make bars of all distributions (at most ``most``), with titles such as: flip given A.

    All distributions of one table are on one scale.
    """
    bars = []
    shown = islice(list_distributions(params), most)
    for table, rows in groupby(shown, key=lambda found: found[0][0]):
        titled = [(f"{table} given {', '.join(p[1:])}" if p[1:] else table, row) for p, row in rows]
        bars += share_scale([make_bars(title, row, top) for title, row in titled])
    return bars


def summarise_fit(fit: Fit | None) -> dict[str, float]:
    """Return the final figures of the kept run; empty without a fit."""
    if fit is None:
        return {}
    last = fit.trace[-1]
    return {
        "log_likelihood": last.log_likelihood,
        "objective": last.objective,
        "perplexity": last.perplexity,
        "steps": last.step,
    }


def describe_outcome(outcome: Mapping[str, float]) -> str:
    """Format the figures of `summarise_fit` as a line.

    >>> describe_outcome({"log_likelihood": -1234.5, "steps": 7})
    'log-likelihood -1,234.5000 · 7 steps'
    """
    figures = dict(outcome)
    steps = int(figures.pop("steps", 0))
    ended = [f"{name.replace('_', '-')} {value:,.4f}" for name, value in figures.items()]
    return " · ".join([*ended, plural(steps, "step")]) if ended else ""
