"""The frame of the commands: how one is declared, and what all of them do.

A command is a class. Its docstring is its help, with examples after a line ``\\b``; its annotated
attributes are its options (see `softcount.cli.options`), those of the groups that it inherits
included; and parameters of an estimator that are declared with it (``declared``, ``takes``) become
options by themselves, with their own names, defaults, bounds and help:

    class Cluster(WordOptions, AnswerOptions, LearnerOptions, LearningCommand):
        \"""Sort the lines of a file into classes that nobody named. …\"""

        declared = MixtureParameters                      # a light dataclass: see core.parameters
        takes = {"n_components": ("-k", "--n-components"), "smoothing": ()}
        file: TextFile                                    # an option that is the command's own

        def read(self, model): ...                        # what is learned from and answered
        def make(self, data): ...                         # the estimator, not fitted yet
        def answer(self, model, data): ...                # its answers for the data
        def overview(self, found): ...                    # for stderr, or --summary
        def print_answers(self, found): ...               # exactly one line for each line read
        def page(self, found): ...                        # for --html

and a row of the table in `softcount.cli.app`, which also says what kinds of models it loads. The
frame parses (by typer), refuses what does not go together with ``--load``, looks at all files
before anything begins, shows progress, saves, prints, writes the page, and turns errors into
messages. Modules of commands import nothing heavy at their top: ``--help`` loads them.
"""

from __future__ import annotations

import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from softcount.cli.options import PANELS, HtmlFile, Input, Option, Output, of_parameter
from softcount.cli.streams import ReaderGone
from softcount.cli.targets import WRITTEN, check_files, list_names
from softcount.core.errors import SoftcountError, StoreError, StoryError
from softcount.core.parameters import describe

if TYPE_CHECKING:  # numba, scipy and safetensors come with these, and --help does without
    from softcount.core.estimate import Estimate
    from softcount.core.store import Stored
    from softcount.core.types import State
    from softcount.report.tables import Overview

T = TypeVar("T")
Deed = Callable[[], object] | None
"""One of the things that a command does at its end; None: it was not asked for."""


class Command:
    """The base of all commands: options, and what is done with them."""

    name: ClassVar[str] = ""
    """What is typed; set by the table of commands."""
    declared: ClassVar[type | None] = None
    """The parameters of the estimator, as `softcount.core.parameters` has them."""
    takes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Which of them become options, and what is typed for them, if that is not their name."""
    without: ClassVar[Sequence[str]] = ()
    """Options of inherited groups that this command does without."""
    context: typer.Context

    def check(self) -> None:
        """Raise usage errors that show without reading any file."""

    def run(self) -> None:
        """Run the command."""
        raise NotImplementedError

    def runs_file(self) -> Path | None:
        """A Python file of the user's that is run: messages name the line of errors in it."""
        return None

    # for those who declare commands
    def is_given(self, name: str) -> bool:
        """Return whether an option was given on the command line."""
        source = self.context.get_parameter_source(name)
        return source is not None and source.name != "DEFAULT"

    def settings(self) -> dict[str, Any]:
        """The parameters of the estimator that were given."""
        return {name: getattr(self, name) for name in self.takes if self.is_given(name)}

    def refuse(self, what: str, names: Sequence[str], why: str) -> None:
        """Raise a usage error if any of these options was given beside ``what``, with which they
        have no effect."""
        given = [
            parameter.opts[-1]
            for parameter in self.context.command.params
            if parameter.name in names and self.is_given(parameter.name)
        ]
        if given:
            raise typer.BadParameter(f"{what} does not go with {', '.join(given)}: {why}")


def refuse_two_of_stdin(*files: str | None) -> None:
    """Raise a usage error if more than one file is standard input. The frame calls this with all
    options that name files, after `Command.check`."""
    if files.count("-") > 1:
        raise typer.BadParameter("only one file can be standard input")


class LearningCommand(Command):
    """A command that reads, learns or loads a model, answers and reports."""

    with_load: ClassVar[Sequence[str]] = ()
    """Options of learning that are of use with --load all the same."""

    save: Annotated[
        Path | None,
        Output(
            "Keep the fitted model in this file, for softcount.load.", file=WRITTEN, learns=True
        ),
    ] = None
    load: Annotated[Path | None, Input("Take the model from this file, and learn nothing.")] = None
    html: HtmlFile = None
    summary: bool
    json: bool

    # what a command declares
    def read(self, model: Any) -> Any:
        """Read what is learned from, and what is to be answered; ``model``: if one was loaded."""
        raise NotImplementedError

    def make(self, data: Any) -> Any:
        """Make the estimator that the options describe."""
        raise NotImplementedError

    def fit(self, model: Any, data: Any, progress: Progress) -> None:
        """Fit the model to the data."""
        raise NotImplementedError

    def answer(self, model: Any, data: Any) -> Any:
        """Compute the model's answers for the data."""
        raise NotImplementedError

    def overview(self, found: Any) -> Overview:
        """Summarise what was learned."""
        raise NotImplementedError

    def print_answers(self, found: Any) -> None:
        """Print the answers to stdout."""
        raise NotImplementedError

    def page(self, found: Any) -> str:
        """Make the page that --html writes."""
        raise NotImplementedError

    def files(self, found: Callable[[], Any]) -> Iterator[Deed]:
        """Write what else was asked for, beside model, answers and page."""
        return iter(())

    def restore(self, kind: Any, stored: Stored) -> Any:
        """Restore the model in a file."""
        return kind.restore(stored)

    def answer_stream(self, model: Any) -> bool:
        """Answer line by line as lines come, if that can be done; return whether it was."""
        return False

    def say_warning(self, warning: warnings.WarningMessage) -> str:
        """Word a warning that was raised while learning."""
        return str(warning.message)

    # what the frame does
    def run(self) -> None:
        if self.load is not None:
            model = self.load_model(self.load)
            if self.answer_stream(model):
                return
            data = self.read(model)
        else:
            data = self.read(None)
            model = self.make(data)
            self._learn(model, data)
        found = cache(lambda: self.answer(model, data))
        try_all(
            at(self.save, lambda path: model.save(path)),
            lambda: self.tell(found()),
            at(self.html, lambda path: write_page(path, self.page(found()))),
            *self.files(found),
        )

    def load_model(self, path: Path) -> Any:
        """Load the model in a file; options of learning are refused beside it."""
        options = list_options(type(self)).items()
        learning = {*self.takes, *(name for name, (option, _) in options if option.learns)}
        names = [*learning.difference(self.with_load)]
        self.refuse("--load", names, "its model is learned already")
        return load_model(path, self.name, self.restore)

    def _learn(self, model: Any, data: Any) -> None:
        with self.make_progress(data) as progress, warnings.catch_warnings(record=True) as caught:
            self.fit(model, data, progress)
        for warning in caught:
            typer.echo(f"softcount: warning: {self.say_warning(warning)}", err=True)

    def make_progress(self, data: Any) -> Progress:
        """Make the line that shows the progress of learning."""
        return Progress(self.size(data))

    def size(self, data: Any) -> int:
        """Count the items, for the line of progress."""
        return len(data)

    def tell(self, found: Any) -> None:
        """Print the answers to stdout and the overview to stderr; or only that, to stdout."""
        if self.summary:
            self.overview(found).print(sys.stdout, self.json)
            return
        print_with_overview(
            lambda: self.print_answers(found), lambda: self.overview(found).print(sys.stderr)
        )


def print_with_overview(
    print_answers: Callable[[], None], print_overview: Callable[[], None]
) -> None:
    """Print answers to stdout, and an overview to stderr: after them if stdout is a terminal, where
    it stays in sight; else before them, because the reader of a pipe may stop early."""
    watched = sys.stdout.isatty()
    if not watched:
        print_overview()
    print_answers()
    if watched:
        print_overview()


def write_page(path: Path, page: str) -> None:
    """Write a page, all or nothing."""
    from softcount.report.page import write_page

    write_page(path, page)


def load_model(path: Path, command: str, restore: Callable[[Any, Stored], Any]) -> Any:
    """Load the model in a file, if this command can use it."""
    from softcount.cli.app import COMMANDS, command_for
    from softcount.core.store import LOADERS, read

    stored = read(path)
    if stored.kind not in COMMANDS[command].loads:
        raise StoreError(
            f"{path} has a model of kind {stored.kind}, which softcount {command} cannot use",
            command_for(stored.kind, path),
        )
    module, name = LOADERS[stored.kind].split(":")
    return restore(getattr(import_module(module), name), stored)


def list_options(command: type[Command]) -> dict[str, tuple[Option, Any]]:
    """List the options that are annotated attributes of a command, with annotations for typer."""
    hints = get_type_hints(command, include_extras=True)
    options = {}
    # its own before those of groups
    for name in (name for base in command.__mro__ for name in inspect.get_annotations(base)):
        for note in getattr(hints[name], "__metadata__", ()):
            if isinstance(note, Option) and name not in command.without:
                options[name] = note, note.annotation(name, get_args(hints[name])[0])
    return options


def make_callback(command: type[Command]) -> Callable[..., None]:
    """Make a function whose parameters are the options of a command: this is what typer takes."""
    keyword, missing = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    own, options = list_options(command), []
    if command.declared is not None:
        for one in describe(command.declared, command.takes):
            options.append(("Model", one.name, *of_parameter(one, *command.takes[one.name])))
    for name, (option, annotation) in own.items():
        options.append((option.panel, name, annotation, getattr(command, name, missing)))
    options.sort(key=lambda option: PANELS.index(option[0]))

    def callback(context: typer.Context, **values: Any) -> None:
        one = command()
        one.context = context
        vars(one).update(values)
        with readable_errors(one.runs_file()):
            one.check()
            read = [vars(one)[name] for name, (option, _) in own.items() if option.file is None]
            refuse_two_of_stdin(*list_names(read))
            one.run()

    annotations = {"context": typer.Context, "return": None}
    parameters = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    for _, name, annotation, default in options:
        annotations[name] = annotation
        parameters.append(inspect.Parameter(name, keyword, annotation=annotation, default=default))
    callback.__annotations__ = annotations
    callback.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    callback.__doc__ = inspect.getdoc(command)
    return callback


class GuardedCommand(TyperCommand):
    """A command whose files are checked before it begins, and whose help is in groups."""

    def invoke(self, ctx: Any) -> Any:
        with readable_errors():
            check_files(self.params, ctx.params, self.callback)
            return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {head: [] for head in PANELS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                head = getattr(parameter, "rich_help_panel", None) or PANELS[-1]
                groups[PANELS[0] if is_argument else head].append(record)
        for head, records in groups.items():
            if records:
                with formatter.section(head):
                    formatter.write_dl(records)


PLAIN_HELP: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
"""Plain help and plain exceptions: rich would double the time that --help takes."""


def make_group(help: str, commands: Mapping[str, Any]) -> typer.Typer:
    """Make a group of commands by name, guarded and with plain help; one alone is itself."""
    group = typer.Typer(help=help, add_completion=False, no_args_is_help=True, **PLAIN_HELP)
    for name, command in commands.items():
        callback = command
        if isinstance(command, type) and issubclass(command, Command):
            command.name = name
            callback = make_callback(command)
        group.command(name, cls=GuardedCommand)(callback)
    return group


def try_all(*deeds: Deed) -> None:
    """Do all of these (None: nothing is to be done), whatever becomes of the others; then report
    those that failed.

    The first comes first: a model, which took time, before answers, and answers before pages. A
    fault of ours is raised, or else the error of the last that failed; the others are printed on
    standard error. A reader that has gone away ends the command when all is done.
    """
    faults: dict[str, SoftcountError] = {}  # each once, though two may fail for one reason
    ours: list[Exception] = []
    gone: list[ReaderGone] = []
    for deed in filter(None, deeds):
        try:
            deed()
        except SoftcountError as error:
            faults[str(error)] = error
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
    """Return what is to be done with a place, or None if no place was given."""
    return None if place is None else lambda: deed(place)


@contextmanager
def readable_errors(model_file: Path | None = None) -> Iterator[None]:
    """Turn errors on purpose, too little memory, and errors of the user's own model file, into one
    message (what, where, what to do) and the exit code 1; show each warning in one line, without
    the place in our code.

    Anything else is a fault of ours and keeps its traceback, so that it can be reported.
    A fit that seems to need more memory than there is says so at once, before it begins.
    """
    from softcount.core.estimate import heard_by

    shown: set[str] = set()  # of many fits that are alike, once

    def warn_once(text: str) -> None:
        if text not in shown:
            shown.add(text)
            typer.echo(f"softcount: warning: {text}", err=True)

    def show_warning(message: Warning | str, *_: object, **__: object) -> None:
        if sys.stderr.isatty():  # there may be a line of progress
            typer.echo("\r\x1b[K", err=True, nl=False)
        typer.echo(f"softcount: warning: {message}", err=True)

    try:
        with warnings.catch_warnings(), heard_by(warn_once):
            warnings.showwarning = show_warning
            yield
            return
    except SoftcountError as error:
        text = str(error)
        if model_file and isinstance(error, StoryError) and str(model_file) not in error.message:
            text = f"{_find_line(model_file, error) or model_file}: {error}"
    except MemoryError as error:
        text = f"there is not enough memory: {error}\n  hint: give less, or shorter sentences"
    except Exception as error:
        place = _find_line(model_file, error) if model_file else None
        if place is None:
            raise
        message = error.msg if isinstance(error, SyntaxError) else error
        notes = [f"\n  {note}" for note in getattr(error, "__notes__", ())]
        text = f"{place}: {type(error).__name__}: {message}{''.join(notes)}"
    typer.echo(f"softcount: {text}", err=True)
    raise typer.Exit(1)


def _find_line(file: Path, error: Exception) -> str | None:
    """Find FILE:LINE of the innermost frame in the user's file; None if it was not involved."""

    def is_file(name: str) -> bool:  # Python makes the names of modules absolute
        return Path(name).resolve() == file.resolve()

    if isinstance(error, SyntaxError):
        if error.filename is None:  # text that is no Python at all, such as a null byte
            return str(file)
        return f"{file if is_file(error.filename) else error.filename}:{error.lineno}"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if is_file(frame.filename)
    ]
    return f"{file}:{frames[-1].lineno}" if frames else None


class StatusLine:
    """A line on stderr that is written again and again, if that is a terminal; it is gone after
    ``end()``, or after ``with``."""

    def __init__(self) -> None:
        self.wanted = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Show this text instead of the last one."""
        if self.wanted:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def end(self) -> None:
        self.show("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Progress(StatusLine):
    """The progress of a fit: it is called with every state."""

    def __init__(self, items: int) -> None:
        super().__init__()
        self.items = items

    def begin(self, needed: Estimate) -> None:
        """Show the estimated cost, before the first step."""
        self.show(str(needed))

    def __call__(self, state: State) -> None:
        self.show(progress_line(state, self.items))


def progress_line(state: State, items: int) -> str:
    """Describe a state in a line."""
    speed = f"   {items / state.seconds:,.0f} items/s" if state.seconds > 0 else ""
    change = f"{state.change:.1e}" if state.step else "–"  # there is none at the start
    figures = f"objective {state.objective:,.4f}   change {change}"
    return f"step {state.step:>4}   {figures}{speed}"
