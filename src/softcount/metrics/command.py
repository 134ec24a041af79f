"""``softcount select``: compare numbers of classes."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Annotated, Any

import typer

from softcount.cli.frame import if_given, try_all, write_page
from softcount.cli.options import HtmlFile, Model, Output, TextFile
from softcount.cli.reading import read_points, read_texts
from softcount.cli.status import StatusLine
from softcount.cli.targets import PLAIN
from softcount.mixture.command import MixtureOptions


class Select(MixtureOptions):
    """Compare numbers of classes for the lines of a file.

    Prints a row for each number of classes, with all criteria side by side; a * marks the best
    value of each criterion. Blank lines are skipped. A few restarts (--n-init 5) guard against poor
    local maxima.

    \b
    softcount select documents.txt -k 2:20 --n-init 5
    softcount select documents.txt -k 5:50:5 --by heldout --html classes.html
    softcount select points.tsv --model gaussian --json > criteria.json
    """

    without = ("folder",)  # it fits many models

    file: TextFile
    n_components: Annotated[
        str,
        Model(
            "Numbers of classes: 2:20 (both ends), 5:50:5 (in steps) or 5,10,20.",
            "-k",
            "--n-components",
            file=PLAIN,
        ),
    ] = "2:20"
    by: Annotated[
        str,
        Model(
            "Criterion that decides. bic, icl: prefer few classes if the vocabulary is large. aic: "
            "prefers more. heldout: log-likelihood of held-out lines (a second fit for each k).",
            choices=("bic", "aic", "icl", "heldout"),
        ),
    ] = "bic"
    model: Annotated[
        str,
        Model(
            "multinomial: models word counts. bernoulli: models the presence or absence of words. "
            "gaussian: lines are columns of numbers, separated by tabs or spaces.",
            choices=("multinomial", "bernoulli", "gaussian"),
        ),
    ] = "multinomial"
    json: Annotated[bool, Output("Print everything as JSON.")] = False
    html: HtmlFile = None

    def run(self) -> None:
        numbers = parse_numbers(self.n_components)
        from softcount.metrics import select
        from softcount.metrics.report import find_edge, selection_page

        lines = (read_points if self.model == "gaussian" else read_texts)(self.file)
        lines.require_lines(self.file)
        items: Any = lines.items
        if self.model != "gaussian":
            items = [text for text in lines.texts if text.strip()]
        order = sorted(set(numbers))
        with StatusLine() as status:
            selection = select(
                self.make_mixture(items),
                items,
                numbers,
                self.by,  # type: ignore[arg-type]  # one of the choices
                random_state=self.seed,
                on_fit=lambda row: status.show(
                    f"k = {row.k}   {order.index(row.k) + 1} of {len(order)}"
                ),
            )
        self.notes += [
            f"{selection.n_items:,} items",
            f"k = {selection.best_k} is best by {selection.by}",
        ]
        text = str(selection)
        if self.json:
            content = {
                "by": selection.by,
                "best_k": selection.best_k,
                "edge": find_edge(selection),
                "winners": {by: selection.winner(by) for by in selection.known},
                "items": selection.n_items,
                "signature": selection.best.signature_,
                "table": [
                    {name: _finite_or_none(value) for name, value in asdict(row).items()}
                    for row in selection.table
                ],
            }
            text = json.dumps(content, ensure_ascii=False, indent=1)
        try_all(
            lambda: typer.echo(text),
            if_given(
                self.html, lambda path: write_page(path, selection_page(selection, self.file))
            ),
        )


def _finite_or_none(value: Any) -> Any:
    """Return None for infinity and NaN, which JSON cannot express, else the value itself."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse_numbers(text: str) -> list[int]:
    """Parse the numbers of classes given on the command line.

    >>> parse_numbers("2:5"), parse_numbers("5:20:5"), parse_numbers("3,7")
    ([2, 3, 4, 5], [5, 10, 15, 20], [3, 7])
    """
    try:
        if ":" not in text:
            return [int(part) for part in text.split(",")]
        first, last, *step = (int(part) for part in text.split(":"))
        if last >= first >= 1 and len(step) <= 1 and min(step, default=1) >= 1:
            return list(range(first, last + 1, *step))
    except ValueError:
        pass
    raise typer.BadParameter(f"-k {text}: write 2:20, 5:50:5 or 5,10,20")
