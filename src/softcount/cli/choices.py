"""Options that take one of a few words."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

import typer

Choice = TypeVar("Choice", bound=StrEnum)


def one_of(kind: type[Choice]) -> Callable[[str], Choice]:
    """What reads the value of such an option, for ``typer.Option(parser=…)``."""

    def read(text: str) -> Choice:
        try:
            return kind(text)
        except ValueError:
            raise typer.BadParameter(f"{text}: choose one of {', '.join(kind)}") from None

    return read
