"""``softcount select``."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Annotated, Any

import typer

from softcount.cli.frame import StatusLine, at, try_all, write_page
from softcount.cli.options import HtmlFile, Model, Output, TextFile
from softcount.cli.reading import read_points, read_texts
from softcount.cli.targets import PLAIN
from softcount.mixture.command import MixtureOptions


class Select(MixtureOptions):
    """Compare numbers of classes for the lines of a file.

    Prints a row for each number, with all criteria side by side; a * marks the best of each. Blank
    lines are skipped. A few restarts (--n-init 5) guard against a number that was unlucky.

    \b
    softcount select documents.txt -k 2:20 --n-init 5
    softcount select documents.txt -k 5:50:5 --by heldout --html classes.html
    softcount select points.tsv --model gaussian --json > criteria.json
    """

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
            "What decides. bic, icl: few classes if there are many words. aic: more. heldout: how "
            "probable lines are that were not learned from (a second fit for each k).",
            choices=("bic", "aic", "icl", "heldout"),
        ),
    ] = "bic"
    model: Annotated[
        str,
        Model(
            "multinomial: how often words occur. bernoulli: whether they do. gaussian: lines are "
            "columns of numbers, separated by tabs or spaces.",
            choices=("multinomial", "bernoulli", "gaussian"),
        ),
    ] = "multinomial"
    json: Annotated[bool, Output("Print everything as JSON.")] = False
    html: HtmlFile = None

    def run(self) -> None:
        numbers = numbers_in(self.n_components)
        from softcount.metrics import select
        from softcount.metrics.report import find_edge, selection_page

        lines = (read_points if self.model == "gaussian" else read_texts)(self.file)
        lines.demand_some(self.file)
        items: Any = lines.items
        if self.model != "gaussian":
            items = [text for text in lines.texts if text.strip()]
        order = sorted(set(numbers))
        with StatusLine() as status:
            found = select(
                self.make_mixture(items),
                items,
                numbers,
                self.by,  # type: ignore[arg-type]  # one of the choices
                random_state=self.seed,
                on_fit=lambda row: status.show(
                    f"k = {row.k}   {order.index(row.k) + 1} of {len(order)}"
                ),
            )
        text = str(found)
        if self.json:
            whole = {
                "by": found.by,
                "best_k": found.best_k,
                "edge": find_edge(found),
                "winners": {by: found.winner(by) for by in found.known},
                "items": found.n_items,
                "signature": found.best.signature_,
                "table": [
                    {name: _finite_or_none(value) for name, value in asdict(row).items()}
                    for row in found.table
                ],
            }
            text = json.dumps(whole, ensure_ascii=False, indent=1)
        try_all(
            lambda: typer.echo(text),
            at(self.html, lambda path: write_page(path, selection_page(found, self.file))),
        )


def _finite_or_none(value: Any) -> Any:
    """JSON knows neither infinity nor NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def numbers_in(text: str) -> list[int]:
    """Numbers of classes as the command line says them.

    >>> numbers_in("2:5"), numbers_in("5:20:5"), numbers_in("3,7")
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
