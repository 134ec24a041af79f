"""Options that do not go together."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from softcount.cli.learner_names import LearnerName


def refuse_with(ctx: typer.Context, option: str, names: Sequence[str], why: str) -> None:
    """A usage error if ``option`` came with any of these, which it would leave without effect."""
    given = [
        parameter.opts[-1]
        for parameter in ctx.command.params
        if parameter.name in names and _is_given(ctx, parameter.name)
    ]
    if given:
        raise typer.BadParameter(f"{option} does not go with {', '.join(given)}: {why}")


def refuse_spectral(learner: LearnerName | None, *, unless: bool = False) -> None:
    """A usage error where no classes of bags of words are looked for: these it solves for."""
    if learner is LearnerName.SPECTRAL and not unless:
        raise typer.BadParameter(
            "--learner spectral is for documents without labels and --model multinomial"
        )


def refuse_two_of_stdin(*files: str | None) -> None:
    """A usage error if more than one file is standard input."""
    if files.count("-") > 1:
        raise typer.BadParameter("only one file can be standard input")


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
