"""Errors as a person wants to read them: what, where, what to do; no traceback, exit code 1."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from softcount.errors import SoftcountError


@contextmanager
def readable_errors(model_file: Path | None = None) -> Iterator[None]:
    """Turn errors on purpose, and errors of the user's own model file, into one message.

    Anything else is a fault of ours and keeps its traceback, so that it can be reported.
    """
    try:
        yield
    except SoftcountError as error:
        _leave(str(error))
    except Exception as error:
        where = _line_in(model_file, error) if model_file else None
        if where is None:
            raise
        _leave(f"{where}: {type(error).__name__}: {error}")


def _line_in(file: Path, error: Exception) -> str | None:
    """FILE:LINE of the innermost frame in the user's file, None if it was not involved."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
    return f"{file}:{frames[-1].lineno}" if frames else None


def _leave(message: str) -> None:
    typer.echo(f"softcount: {message}", err=True)
    raise typer.Exit(1)
