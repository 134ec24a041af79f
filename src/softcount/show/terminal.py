"""Findings in the terminal, by rich."""

from __future__ import annotations

from collections.abc import Sequence

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from softcount.show.finding import Bars, Finding
from softcount.verdict import Verdict

EIGHTHS = " ▏▎▍▌▋▊▉"
BAR = 10


def bar(p: float, width: int = BAR) -> str:
    """A probability as a bar of at most ``width`` characters.

    >>> bar(0.5, 4)
    '██'
    """
    eighths = round(p * width * 8)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def bar_table(bars: Bars) -> Table:
    """One distribution as a small table with bars."""
    table = Table(
        title=Text(bars.title, style="italic"),
        title_justify="left",
        box=None,
        show_header=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column(overflow="fold", max_width=24)
    table.add_column(justify="right")
    table.add_column(style="cyan", min_width=BAR, no_wrap=True)
    for name, p in bars.rows:
        table.add_row(Text(name), f"{p:.3f}", bar(p / bars.full))
    if bars.left_out:
        table.add_row(Text(f"and {bars.left_out} more", style="dim"))
    return table


def verdict_line(verdict: Verdict) -> Text:
    """The verdict as a sentence, green if the result can be trusted, yellow if not."""
    return Text(f"● {verdict}", style="green" if verdict.good else "yellow")


def all_bar_tables(bars: Sequence[Bars]) -> RenderableType:
    """Distributions side by side, as many as fit."""
    spaced = [Padding(bar_table(one), (0, 0, 1, 0)) for one in bars]
    return Columns(spaced, padding=(0, 3, 0, 0), equal=True)


def render(finding: Finding) -> RenderableType:
    """One finding, ready to print."""
    parts: list[RenderableType] = [
        Text(finding.title, style="bold"),
        Text(finding.text),
        Text(),
        all_bar_tables(finding.bars),
    ]
    if finding.scale:
        parts += [Text(finding.scale, style="dim"), Text()]
    if finding.lines:
        parts += [*map(Text, finding.lines), Text()]
    parts.append(verdict_line(finding.fit.verdict))
    parts.append(Text(finding.fit.signature, style="dim", no_wrap=True, overflow="ignore"))
    return Group(*parts, Text())


def show(finding: Finding, console: Console | None = None) -> None:
    """Print one finding."""
    # not cropped: the signature is one line, to be copied whole
    (console or Console(highlight=False)).print(render(finding), crop=False)
