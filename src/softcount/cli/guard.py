"""Errors as a person wants to read them: what, where, what to do; no traceback, exit code 1."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from softcount.errors import SoftcountError, StoryError


@contextmanager
def readable_errors(model_file: Path | None = None) -> Iterator[None]:
    """Turn errors on purpose, too little memory, and errors of the user's own model file, into one
    message; warnings are said in one line each, without the place in our code.

    Anything else is a fault of ours and keeps its traceback, so that it can be reported.
    A fit that seems to need more memory than there is says so at once, before it begins.
    """
    from softcount.estimate import heard_by

    said: set[str] = set()  # of many fits that are alike, once

    def warn(text: str) -> None:
        if text not in said:
            said.add(text)
            typer.echo(f"softcount: warning: {text}", err=True)

    try:
        with warnings.catch_warnings(), heard_by(warn):
            warnings.showwarning = _say
            yield
    except SoftcountError as error:
        _leave(_placed(error, model_file))
    except MemoryError as error:
        _leave(f"there is not enough memory: {error}\n  hint: give less, or shorter sentences")
    except Exception as error:
        where = _line_in(model_file, error) if model_file else None
        if where is None:
            raise
        notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
        _leave(f"{where}: {type(error).__name__}: {_said(error)}{notes}")


def _say(message: Warning | str, *_: object, **__: object) -> None:
    if sys.stderr.isatty():  # there may be a line of progress
        typer.echo("\r\x1b[K", err=True, nl=False)
    typer.echo(f"softcount: warning: {message}", err=True)


def _placed(error: SoftcountError, model_file: Path | None) -> str:
    """The message, after the place in the model file if it is a story that went wrong."""
    if model_file is None or not isinstance(error, StoryError) or str(model_file) in error.message:
        return str(error)
    return f"{_line_in(model_file, error) or model_file}: {error}"


def _said(error: Exception) -> str:
    """What an error says, without the place, which is said already."""
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _line_in(file: Path, error: Exception) -> str | None:
    """FILE:LINE of the innermost frame in the user's file, None if it was not involved."""
    if isinstance(error, SyntaxError):
        if error.filename is None:  # text that is no Python at all, such as a null byte
            return str(file)
        return f"{error.filename if not _same(error.filename, file) else file}:{error.lineno}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _same(f.filename, file)]
    return f"{file}:{frames[-1].lineno}" if frames else None


def _same(name: str, file: Path) -> bool:
    """Whether both are one file: Python makes the names of modules absolute."""
    return Path(name).resolve() == file.resolve()


def _leave(message: str) -> None:
    typer.echo(f"softcount: {message}", err=True)
    raise typer.Exit(1)
