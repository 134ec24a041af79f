"""``softcount demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from softcount.cli.frame import Command, write_page
from softcount.cli.options import Output
from softcount.cli.targets import WRITTEN

LEAD = (
    "Four small texts, each with a story: a description of how the text could have been generated. "
    "Nothing is labelled: softcount computes the expected counts of the hidden events, turns these "
    "counts into probabilities, and repeats both until nothing changes. The curves show the "
    "objective, the log-likelihood of the text (plus the log prior, if there is one): higher is "
    "better."
)


class Demo(Command):
    """Fit four small models to example texts, and show the results.

    The texts come with softcount, and nothing leaves this machine. The demo takes a few seconds;
    the first run takes longer, because the kernels are compiled.
    """

    html: Annotated[
        Path, Output("Write an HTML page with curves and the stories here.", file=WRITTEN)
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
        self.notes += [f"{len(findings)} models", f"page in {self.html}"]
        console.print(
            f"The same page with curves and the stories themselves: {self.html}", soft_wrap=True
        )
        console.print("To write your own story: softcount story --help", soft_wrap=True)
