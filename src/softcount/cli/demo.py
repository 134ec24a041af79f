"""``softcount demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LEAD = (
    "Four small texts, four stories of how they could have come about, and nothing else: what is "
    "hidden in them was learned by counting what cannot be seen by its expectation."
)


def demo(
    html: Annotated[
        Path, typer.Option(help="Where to write the page with the convergence curves.")
    ] = Path("softcount-demo.html"),
) -> None:
    """Learn hidden structure from four small texts, and show what was found."""
    from rich.console import Console

    from softcount.cli.demos import coins, tags, themes, translations
    from softcount.cli.guard import readable_errors
    from softcount.show import report, terminal

    console = Console(highlight=False)
    with readable_errors():
        findings = []
        for part in (coins, themes, translations, tags):
            findings.append(part.find())
            terminal.show(findings[-1], console)
        report.write_page(html, report.page("What softcount found", LEAD, findings))
    console.print(f"The same with convergence curves: {html}", soft_wrap=True)
