"""How commands end: whatever becomes of one thing that was asked for, the others are tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import typer

from softcount.cli.streams import ReaderGone
from softcount.errors import SoftcountError

T = TypeVar("T")
Deed = Callable[[], object] | None


def try_all(*deeds: Deed) -> None:
    """Do all of these (None: nothing is to be done), and then complain of those that failed.

    The first comes first: a model, which took time, before answers, and answers before pages. A
    fault of ours is raised, or else what is wrong with the last that failed, and the rest is said
    on standard error. A reader that has gone away ends the command when all is done.
    """
    faults: dict[str, SoftcountError] = {}
    ours: list[Exception] = []
    gone: list[ReaderGone] = []
    for deed in deeds:
        if deed is None:
            continue
        try:
            deed()
        except SoftcountError as error:
            faults[str(error)] = error  # once, though two may fail for one reason
        except ReaderGone as error:
            gone.append(error)
        except Exception as error:
            ours.append(error)
    last = [*gone, *faults.values(), *ours][-1:]
    for message, fault in faults.items():
        if fault not in last:
            typer.echo(f"softcount: {message}", err=True)
    if last:
        raise last[0]


def at(place: T | None, deed: Callable[[T], object]) -> Deed:
    """A deed for a place, if one was given."""
    return None if place is None else lambda: deed(place)
