"""What all commands have in common, so that none can do without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from softcount.cli.guard import readable_errors
from softcount.cli.targets import check_files

F = TypeVar("F", bound=Callable[..., Any])


class Command(TyperCommand):
    """A command whose files are looked at before it begins."""

    def invoke(self, ctx: Any) -> Any:
        with readable_errors():
            check_files(self.params, ctx.params, self.callback)
            return super().invoke(ctx)


class Commands(typer.Typer):
    """Commands, all of them of this kind, whoever adds them."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        return super().command(name, **{**settings, "cls": Command})
