"""What was learnt, on stdout: tables for people, tab-separated values for pipes, or JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from softcount.show.finding import Finding, distributions
from softcount.types import Fit


def print_finding(finding: Finding, params: Mapping[str, Any]) -> None:
    """Tables if someone is watching, else tab-separated values."""
    if sys.stdout.isatty():
        from softcount.show import terminal

        terminal.show(finding)
    else:
        print_tsv(params, finding.fit)


def print_tsv(params: Mapping[str, Any], fit: Fit) -> None:
    """One entry a line: table, condition, outcome, probability; what is known of the fit as #."""
    typer.echo(f"# {fit.signature}\n# {fit.verdict}\n# objective {_objective(fit):.6f}")
    typer.echo("table\tcondition\toutcome\tprobability")
    for (table, *condition), row in distributions(params):
        for outcome, p in row.items():
            fields = (table, ", ".join(condition), str(outcome))
            typer.echo("\t".join(map(one_field, fields)) + f"\t{p:.6g}")


def print_json(params: Mapping[str, Any], fit: Fit, best: Sequence[Sequence[str]] | None) -> None:
    """Everything as one JSON object."""
    trace = fit.trace
    columns = ("objective", "log_likelihood", "perplexity", "seconds", "change")
    whole: dict[str, Any] = {
        "signature": fit.signature,
        "verdict": {"name": fit.verdict.name.lower(), "sentence": str(fit.verdict)},
        "params": _plain(params),
        "trace": {name: [_number(v) for v in trace.column(name)] for name in columns},
        "diagnostics": {name: _number(v) for name, v in fit.diagnostics.items()},
    }
    if best is not None:
        whole["best"] = best
    typer.echo(json.dumps(whole, ensure_ascii=False, indent=1))


def print_derivations(derivations: Sequence[Sequence[str]]) -> None:
    """One line for each: what happened, tab-separated, in the order of the story."""
    for happened in derivations:
        typer.echo("\t".join(map(one_field, happened)))


def _objective(fit: Fit) -> float:
    return float(fit.trace.objective[-1])


def one_field(text: str) -> str:
    """Text that cannot be mistaken for the end of its field."""
    return text.translate({ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"})


def _plain(params: Mapping[Any, Any]) -> dict[str, Any]:
    """Nested mappings with strings as keys, as JSON wants them."""
    return {
        str(key): _plain(value) if isinstance(value, Mapping) else float(value)
        for key, value in params.items()
    }


def _number(value: float) -> float | None:
    """JSON knows neither infinity nor NaN."""
    return float(value) if math.isfinite(value) else None
