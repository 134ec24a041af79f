"""``softcount demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from softcount.cli.frame import Command, write_page
from softcount.cli.options import Output
from softcount.cli.targets import WRITTEN

LEAD = (
    "Four small texts, and for each a story of how it could have come about. Nobody labelled "
    "anything: softcount counts what cannot be seen by its expectation, turns the counts into "
    "probabilities, and does so again until nothing changes. The curves show the objective, the "
    "log-likelihood of the text (plus the log of the prior, where there is one): higher is better."
)


class Demo(Command):
    """Learn from four small texts, and show what was found.

    The texts come with softcount and nothing leaves this machine. It takes a few seconds, the
    first time longer, while the kernels are compiled.
    """

    html: Annotated[
        Path, Output("Where to write the page, with curves and the stories.", file=WRITTEN)
    ] = Path("softcount-demo.html")

    def run(self) -> None:
        from rich.console import Console

        from softcount.cli.demo_stories import FINDERS
        from softcount.report.page import findings_page
        from softcount.report.tables import show_finding

        console = Console(highlight=False)
        findings = []
        for find in FINDERS:
            findings.append(find())
            show_finding(findings[-1], console)
        write_page(self.html, findings_page("What softcount found", LEAD, findings))
        console.print(
            f"The same with curves and the stories themselves: {self.html}", soft_wrap=True
        )
        console.print("Your own story: softcount story --help", soft_wrap=True)
