"""``softcount demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softcount.cli.targets import WRITTEN

LEAD = (
    "Four small texts, and for each a story of how it could have come about. Nobody labelled "
    "anything: softcount counts what cannot be seen by its expectation, turns the counts into "
    "probabilities, and does so again until nothing changes. The curves show the objective, the "
    "log-likelihood of the text (plus the log of the prior, where there is one): higher is better."
)


def demo(
    html: Annotated[
        Path, typer.Option(help="Where to write the page, with curves and the stories."), WRITTEN
    ] = Path("softcount-demo.html"),
) -> None:
    """Learn from four small texts, and show what was found.

    The texts come with softcount and nothing leaves this machine. It takes a few seconds, the
    first time longer, while the kernels are compiled.
    """
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
    console.print(f"The same with curves and the stories themselves: {html}", soft_wrap=True)
    console.print("Your own story: softcount story --help", soft_wrap=True)
