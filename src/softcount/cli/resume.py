"""``softcount resume`` and ``softcount show``: fits in folders, see `softcount.core.folder`."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from softcount.cli.frame import Command, FitProgress, describe_verdict
from softcount.cli.options import ENGINE_OPTIONS, Argument, EngineOptions, Output
from softcount.cli.targets import FIT_FOLDER
from softcount.core.progress import format_seconds

FolderArgument = Annotated[
    Path, Argument("The folder that --folder named.", metavar="FOLDER", file=FIT_FOLDER)
]


class Resume(EngineOptions, Command):
    """Continue a fit that was stopped or killed, from the folder that --folder named.

    The command is run again where it was, with the same options, and goes on from the last
    checkpoint: the result is the same, bit by bit, as if it had never been stopped. Files that it
    read must still be there. A fit that has ended prints its answers again. The work may be done
    elsewhere than before: with other threads, or on another cluster.

    \b
    softcount topics letters.txt -k 50 --folder run > topics.txt
    softcount resume run > topics.txt
    """

    folder_: FolderArgument
    is_another = False

    def describe_run(self) -> list[str] | None:
        return None if self.is_another else self.notes

    def run(self) -> None:
        from softcount.core import folder
        from softcount.core.errors import StoreError
        from softcount.engines.cloud import find_place

        facts = folder.read_facts(self.folder_)
        command = facts.get("command")
        if command is None:
            self._resume_model()
            return
        if not isinstance(command, Mapping) or not isinstance(command.get("arguments"), list):
            raise StoreError(f"{self.folder_} names no command", "run the command again")
        arguments = [str(each) for each in command["arguments"]]
        arguments = replace_option(arguments, "--folder", str(self.folder_.resolve()))
        if self._engine_is_given:  # in place of the one that the command had
            for name in ENGINE_OPTIONS:
                value = getattr(self, name)
                if name == "cluster_folder" and value is not None:
                    value = find_place(value)  # the command may run in another folder
                arguments = replace_option(arguments, f"--{name.replace('_', '-')}", value)
        stdin = self.folder_.resolve() / folder.STDIN
        try:
            os.chdir(command["folder"])
        except (OSError, TypeError) as error:
            raise StoreError(
                f"the command was run in {command.get('folder')}, which cannot be opened",
                "run it again, from where its files are now, with the same --folder",
            ) from error
        if command.get("reads_stdin"):
            sys.stdin = open(stdin, encoding="utf-8")  # noqa: SIM115 (read by the command)
        for how, wanted in {"--quiet": self.quiet, "--verbose": self.verbose}.items():
            arguments = [one for one in arguments if one != how] + [how] * wanted
        typer.echo(f"softcount: softcount {shlex.join(arguments)}", err=True)
        self.is_another = True  # and says itself what it did
        from softcount.cli.app import app

        if code := app(arguments, standalone_mode=False):
            raise typer.Exit(code)

    @property
    def _engine_is_given(self) -> bool:
        return any(getattr(self, name) is not None for name in ENGINE_OPTIONS)

    def _resume_model(self) -> None:
        """Continue a fit that was begun in Python."""
        from softcount.core import folder

        facts = folder.read_facts(self.folder_)
        more = {"engine": self.make_engine()} if self._engine_is_given else {}
        with FitProgress(0, self.verbose) as progress:
            model = folder.resume(self.folder_, on_step=progress, **more)
        self.notes.append(describe_verdict(model.verdict_))
        typer.echo(f"{facts['model']}: {model.verdict_}")
        place = self.folder_ / folder.MODEL
        if place.exists():
            typer.echo(f"the fitted model is {place}: softcount.load({str(place)!r})")


def replace_option(arguments: list[str], option: str, value: object) -> list[str]:
    """Return the arguments of a command with another value of an option; None: without it.

    >>> replace_option(["tag", "a.txt", "--folder", "x", "-k", "3"], "--folder", "y")
    ['tag', 'a.txt', '-k', '3', '--folder', 'y']
    >>> replace_option(["tag", "a.txt", "--threads=3", "--", "-b.txt"], "--threads", None)
    ['tag', 'a.txt', '--', '-b.txt']
    """
    kept: list[str] = []
    added = [] if value is None else [option, str(value)]
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*kept, *added, argument, *rest]
        if argument == option:
            next(rest, None)
        elif not argument.startswith(f"{option}="):
            kept.append(argument)
    return [*kept, *added]


BLOCKS = "▁▂▃▄▅▆▇█"


class Show(Command):
    """Show what a folder of --folder holds, and how far it is.

    \b
    softcount show run
    """

    folder_: FolderArgument
    json: Annotated[bool, Output("Print everything as JSON.")] = False

    def run(self) -> None:
        import json

        from softcount.core.folder import (
            FACTS,
            MODEL,
            PROGRESS,
            FitFolder,
            blocks_of_stream,
            read_facts,
        )

        facts = read_facts(self.folder_)
        has_begun = (self.folder_ / PROGRESS).exists()
        progress = read_facts(self.folder_, PROGRESS) if has_begun else {}
        size = sum(path.stat().st_size for path in self.folder_.rglob("*") if path.is_file())
        if self.json:
            about = {FACTS: facts, PROGRESS: progress, "bytes": size}
            typer.echo(json.dumps(about, indent=1))
            return
        for line in describe_fit(facts, progress, size, time.time()):
            typer.echo(line)
        if facts.get("stream"):
            typer.echo(f"learned    {blocks_of_stream(self.folder_):,} blocks of a stream")
        name, model = shlex.quote(str(self.folder_)), self.folder_ / MODEL
        in_use = FitFolder(self.folder_).is_in_use()
        if in_use:
            typer.echo("now        a process is fitting")
        elif in_use is False and facts.get("stream"):
            typer.echo("now        stopped; learn_stream goes on")
        elif model.exists():  # written at the very end
            typer.echo(f"fitted     {model}")
        elif in_use is False:
            typer.echo(f"now        stopped; `softcount resume {name}` goes on")


def describe_fit(
    facts: Mapping[str, Any], progress: Mapping[str, Any], size: int, now: float
) -> list[str]:
    """Describe the fit in a folder, in lines."""
    from softcount.core.estimate import readable_bytes

    lines = [f"model      {facts.get('model')}"]
    command = facts.get("command") or {}
    if command:
        lines.append(f"command    softcount {shlex.join(map(str, command.get('arguments', ())))}")
        lines.append(f"in         {command.get('folder')}")
    data = facts.get("data") or {}
    lines += [f"{name:10} {what}" for name, what in data.items()]
    lines.append(f"on disk    {readable_bytes(size)}")
    if not progress:
        return lines if facts.get("stream") else [*lines, "no checkpoint yet"]
    step, most = progress.get("step"), progress.get("max_iter")
    if "finished" in progress:
        lines.append(f"ended      after step {step}: {progress['finished']}")
    else:
        run = f", run {progress['run'] + 1} of {progress['n_init']}" if most else ""
        lines.append(f"step       {step} of at most {most}{run} ({progress.get('loop')})")
        ago = now - float(progress.get("time", now))
        lines.append(f"written    {format_seconds(ago)} ago")
        if most and step is not None:
            left = max(most - step, 0) * float(progress.get("seconds_per_step", 0.0))
            lines.append(f"time left  at most {format_seconds(left)} for this run")
    lines.append(f"objective  {progress.get('objective')}")
    curve = [value for value in progress.get("curve", ()) if value is not None]
    if len(curve) > 1:
        lines.append(f"           {draw_curve(curve)}")
    return lines


def draw_curve(values: list[float], width: int = 60) -> str:
    """Draw a curve in one line of characters.

    >>> draw_curve([0.0, 1.0, 2.0, 7.0])
    '▁▂▃█'
    """
    every = -(-len(values) // width)
    values = values[::-every][::-1]
    least, most = min(values), max(values)
    scale = (len(BLOCKS) - 1) / (most - least) if most > least else 0.0
    return "".join(BLOCKS[round((value - least) * scale)] for value in values)
