"""The framework of the commands: how a command is declared, and what all of them have in common.

A command is a class. Its docstring is its help, with examples after a line ``\\b``; its annotated
attributes are its options (see `softcount.cli.options`), including those of the groups that it
inherits; and the parameters of an estimator that it lists (``declared``, ``takes``) become options
automatically, with their own names, defaults, bounds and help:

    class Cluster(WordOptions, AnswerOptions, LearnerOptions, LearningCommand):
        \"""Cluster the lines of a file into classes, without labels. …\"""

        declared = MixtureParameters                      # a light dataclass: see core.parameters
        takes = {"n_components": ("-k", "--n-components"), "smoothing": ()}
        file: TextFile                                    # an option of this command only

        def read(self, model): ...                        # the data, to learn from and to predict
        def make(self, data): ...                         # the estimator, not fitted yet
        def answer(self, model, data): ...                # its predictions for the data
        def overview(self, found): ...                    # for stderr, or --summary
        def print_answers(self, found): ...               # exactly one line for each line read
        def page(self, found): ...                        # for --html

It also needs a row in the table in `softcount.cli.app`, which says what kinds of models it loads.
The framework parses the command line (by typer), rejects options that cannot be combined with
``--load``, checks all files before the command starts, shows progress, saves, prints, writes the
page, and turns errors into messages. Modules of commands must import nothing heavy at the top
level, because ``--help`` loads them.
"""

from __future__ import annotations

import inspect
import logging
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
)

import typer
from typer.core import TyperCommand

from softcount.cli.options import PANELS, HtmlFile, Input, Option, Output, make_option
from softcount.cli.status import StatusLine, Terminal, complain, silenced
from softcount.cli.streams import ReaderGone
from softcount.cli.targets import WRITTEN, check_files, list_names
from softcount.core.errors import SoftcountError, StoreError, StoryError
from softcount.core.parameters import describe
from softcount.core.progress import (
    LOG,
    STEPS,
    Pace,
    bar_line,
    format_seconds,
    heard_by,
    list_figures,
    phase,
    step_line,
)

if TYPE_CHECKING:  # these import numba, scipy and safetensors, which --help does not need
    from softcount.core.estimate import Estimate
    from softcount.core.store import Stored
    from softcount.core.types import State
    from softcount.engines.progress import ShardProgress
    from softcount.report.tables import Overview

T = TypeVar("T")
Action = Callable[[], object] | None
"""An output action of a command, such as saving or printing; None: it was not asked for."""


class Command:
    """The base of all commands."""

    name: ClassVar[str] = ""
    """Name on the command line; set by `make_group`."""
    declared: ClassVar[type | None] = None
    """Declaration of the estimator's parameters, see `softcount.core.parameters`."""
    takes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The parameters that become options, with their flags; no flags: ``--parameter-name``."""
    without: ClassVar[Sequence[str]] = ()
    """Options of inherited groups that this command does not have."""
    context: typer.Context
    notes: list[str]
    """What the line at the end says."""

    quiet: Annotated[bool, Output("Print nothing on stderr but warnings and errors.")] = False
    verbose: Annotated[
        bool, Output("Print every step on stderr, what is done meanwhile, and what it took.")
    ] = False

    def check(self) -> None:
        """Raise usage errors that can be found without reading any file.

        The checks of inherited groups of options come first, and need not be called.
        """

    def run(self) -> None:
        """Run the command."""
        raise NotImplementedError

    def runs_file(self) -> Path | None:
        """Return the user's Python file that is run, if any: messages name the line of errors."""
        return None

    def reads_stdin(self) -> bool:
        """Return whether the command reads standard input."""
        options = list_options(type(self)).items()
        read = [name for name, (option, _) in options if option.file is None]
        return "-" in list_names([getattr(self, name) for name in read])

    def describe_run(self) -> list[str] | None:
        """Return the parts of the line that ends the command; None if there shall be none."""
        return self.notes

    # helpers for commands
    def is_given(self, name: str) -> bool:
        """Return whether an option was given on the command line."""
        source = self.context.get_parameter_source(name)
        return source is not None and source.name != "DEFAULT"

    def settings(self) -> dict[str, Any]:
        """Return the estimator's parameters that were given on the command line."""
        return {name: getattr(self, name) for name in self.takes if self.is_given(name)}

    def refuse(self, what: str, names: Sequence[str], why: str) -> None:
        """Raise a usage error if any of these options was given together with ``what``, with which
        they have no effect."""
        given = [
            parameter.opts[-1]
            for parameter in self.context.command.params
            if parameter.name in names and self.is_given(parameter.name)
        ]
        if given:
            raise typer.BadParameter(f"{what} does not go with {', '.join(given)}: {why}")


def refuse_two_of_stdin(*files: str | None) -> None:
    """Raise a usage error if more than one file is standard input (``-``). The framework calls this
    with all options that name files to read, after `Command.check`."""
    if files.count("-") > 1:
        raise typer.BadParameter("only one file can be standard input")


def keep_stdin(command: Command) -> None:
    """Copy standard input to the folder of a fit (--folder), so that it can be read again."""
    folder = getattr(command, "folder", None)
    if folder is None or not command.reads_stdin():
        return
    from softcount.core.folder import copy_stream

    sys.stdin = copy_stream(sys.stdin, folder)


class LearningCommand(Command):
    """A command that reads data, fits or loads a model, predicts and reports."""

    with_load: ClassVar[Sequence[str]] = ()
    """Options of learning that are nevertheless allowed with --load."""

    save: Annotated[
        Path | None,
        Output(
            "Save the fitted model here, for --load or softcount.load.", file=WRITTEN, learns=True
        ),
    ] = None
    load: Annotated[
        Path | None, Input("Load the fitted model from this file, and do not learn.")
    ] = None
    html: HtmlFile = None
    summary: bool
    json: bool

    # to be overridden by commands
    def read(self, model: Any) -> Any:
        """Read the data to learn from and to predict; ``model``: the loaded model, or None."""
        raise NotImplementedError

    def make(self, data: Any) -> Any:
        """Make the estimator that the options describe."""
        raise NotImplementedError

    def fit(self, model: Any, data: Any, progress: FitProgress) -> None:
        """Fit the model to the data."""
        raise NotImplementedError

    def answer(self, model: Any, data: Any) -> Any:
        """Compute the model's predictions for the data; the result is the ``found`` below."""
        raise NotImplementedError

    def overview(self, found: Any) -> Overview:
        """Summarise the fitted model."""
        raise NotImplementedError

    def print_answers(self, found: Any) -> None:
        """Print the predictions to stdout."""
        raise NotImplementedError

    def page(self, found: Any) -> str:
        """Make the page that --html writes."""
        raise NotImplementedError

    def files(self, found: Callable[[], Any]) -> Iterator[Action]:
        """Yield actions that write further files, besides the model, the answers and the page."""
        return iter(())

    def restore(self, kind: Any, stored: Stored) -> Any:
        """Restore a model of class ``kind`` from a file."""
        return kind.restore(stored)

    def answer_stream(self, model: Any) -> bool:
        """Predict line by line as lines arrive, if possible; return whether this was done."""
        return False

    def say_warning(self, warning: warnings.WarningMessage) -> str:
        """Format a warning that was raised during learning."""
        return str(warning.message)

    # done by the framework
    def run(self) -> None:
        if self.load is not None:
            model = self.load_model(self.load)
            if self.answer_stream(model):
                return
            with phase("reading"):
                data = self.read(model)
        else:
            with phase("reading"):
                data = self.read(None)
            self.notes += self.describe_data(data)
            model = self.make(data)
            self._learn(model, data)
            self.notes += self.describe_fit(model)
        found = cache(lambda: self._answer(model, data))
        try_all(
            if_given(self.save, lambda path: model.save(path)),
            lambda: self.print_results(found()),
            if_given(self.html, lambda path: write_page(path, self.page(found()))),
            *self.files(found),
        )
        written = {"model": self.save, "page": self.html}
        self.notes += [f"{what} in {path}" for what, path in written.items() if path is not None]

    def describe_data(self, data: Any) -> list[str]:
        """Describe the data for the line at the end."""
        size = self.size(data)
        return [f"{size:,} item{'s' * (size != 1)}"] if size else []

    def describe_fit(self, model: Any) -> list[str]:
        """Describe how learning went for the line at the end."""
        fit = getattr(model, "fit_", None)
        verdict = getattr(model, "verdict_", None)
        step = fit.trace[-1].step if fit is not None else getattr(model, "n_iter_", 0)
        steps = [f"{step} step{'s' * (step != 1)}"] if step else []
        return [*steps, *([] if verdict is None else [describe_verdict(verdict)])]

    def load_model(self, path: Path) -> Any:
        """Load the model in a file; raise a usage error if options of learning were given."""
        options = list_options(type(self)).items()
        learning = {*self.takes, *(name for name, (option, _) in options if option.learns)}
        names = [*learning.difference(self.with_load)]
        self.refuse("--load", names, "its model is fitted already")
        return load_model(path, self.name, self.restore)

    def _learn(self, model: Any, data: Any) -> None:
        with self.make_progress(data) as progress, warnings.catch_warnings():

            def show_warning(*about: Any, **more: Any) -> None:
                warning = warnings.WarningMessage(*about, **more)
                progress.complain(f"softcount: warning: {self.say_warning(warning)}")

            # at once: learning may take hours, and a warning may be that it waits for workers
            warnings.showwarning = show_warning
            with phase("fitting"):
                self.fit(model, data, progress)

    def _answer(self, model: Any, data: Any) -> Any:
        with FitProgress(0), phase("answering"):
            return self.answer(model, data)

    def make_progress(self, data: Any) -> FitProgress:
        """Make the status line that shows the progress of learning."""
        return FitProgress(self.size(data), self.verbose)

    def size(self, data: Any) -> int:
        """Return the number of items, for the status line."""
        return len(data)

    def print_results(self, found: Any) -> None:
        """Print the answers to stdout and the overview to stderr; with --summary, print only the
        overview, to stdout."""
        if self.summary:
            self.overview(found).print(sys.stdout, self.json)
            return
        print_with_overview(
            lambda: self.print_answers(found), lambda: self.overview(found).print(sys.stderr)
        )


def print_with_overview(
    print_answers: Callable[[], None], print_overview: Callable[[], None]
) -> None:
    """Print answers to stdout and an overview to stderr.

    The overview comes last if stdout is a terminal, where it then stays visible; else first,
    because the reader of a pipe may stop early.
    """
    is_terminal = sys.stdout.isatty()
    if not is_terminal:
        print_overview()
    print_answers()
    if is_terminal:
        print_overview()


def write_page(path: Path, page: str) -> None:
    """Write a page atomically."""
    from softcount.report.page import write_page

    write_page(path, page)


def load_model(path: Path, command: str, restore: Callable[[Any, Stored], Any]) -> Any:
    """Load the model in a file; raise if this command cannot use models of its kind."""
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
    """Return the options declared as attributes: name → (option, annotation for typer)."""
    hints = get_type_hints(command, include_extras=True)
    options = {}
    # the command's own options before those of inherited groups
    for name in (name for base in command.__mro__ for name in inspect.get_annotations(base)):
        for note in getattr(hints[name], "__metadata__", ()):
            if isinstance(note, Option) and name not in command.without:
                options[name] = note, note.annotation(name, get_args(hints[name])[0])
    return options


def make_callback(command: type[Command]) -> Callable[..., None]:
    """Make a function whose parameters are the options of a command, as typer requires."""
    keyword, missing = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    attributes, options = list_options(command), []
    if command.declared is not None:
        for declared in describe(command.declared, command.takes):
            flags = command.takes[declared.name]
            options.append(("Model", declared.name, *make_option(declared, *flags)))
    for name, (option, annotation) in attributes.items():
        options.append((option.panel, name, annotation, getattr(command, name, missing)))
    options.sort(key=lambda option: PANELS.index(option[0]))

    def callback(context: typer.Context, **values: Any) -> None:
        instance = command()
        instance.context, instance.notes = context, []
        vars(instance).update(values)
        with readable_errors(instance.runs_file()):
            for group in reversed(command.__mro__):  # groups of options check their own
                if "check" in vars(group):
                    vars(group)["check"](instance)
            keep_stdin(instance)
            given = vars(instance)
            read = [name for name, (option, _) in attributes.items() if option.file is None]
            refuse_two_of_stdin(*list_names([given[name] for name in read]))
            Terminal.is_input = instance.reads_stdin() and sys.stdin.isatty()
            with reported(instance):
                instance.run()

    annotations = {"context": typer.Context, "return": None}
    parameters = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    for _, name, annotation, default in options:
        annotations[name] = annotation
        parameters.append(inspect.Parameter(name, keyword, annotation=annotation, default=default))
    callback.__annotations__ = annotations
    callback.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    callback.__doc__ = inspect.getdoc(command)
    return callback


@contextmanager
def reported(command: Command) -> Iterator[None]:
    """Say on stderr what a command does, as its options want it, and in the end what it did."""
    with ExitStack() as listening:
        if command.quiet:
            listening.enter_context(silenced())
        elif command.verbose:
            listening.enter_context(logged())
        listening.enter_context(heard_by(StatusLine.note))
        began, before = time.monotonic(), _seconds_of_compiling()
        yield
        took, compiled = time.monotonic() - began, _seconds_of_compiling() - before
        if (said := command.describe_run()) is not None:
            if command.verbose:
                LOG.debug("%s", describe_cost(compiled))
            # compiling is not a part of what was asked for
            parts = [*said, f"{max(took - compiled, 0.0):.1f} s"]
            if compiled >= 0.5:
                parts.append(f"and {format_seconds(compiled)} to prepare kernels, once")
            say_at_the_end(command, parts)


def _seconds_of_compiling() -> float:
    compiling = sys.modules.get("softcount.kernels.compiling")  # if there can have been any
    return 0.0 if compiling is None else float(compiling.progress().seconds)


def say_at_the_end(command: Command, parts: Sequence[str]) -> None:
    """Print the line at the end of a command."""
    from softcount.report.text import flatten

    names, context = list[str](), cast(Any, command.context)
    while context.parent is not None:
        names.insert(0, str(context.info_name))
        context = context.parent
    sys.stdout.flush()
    typer.echo(flatten(f"softcount {' '.join(names)}: {' · '.join(parts)}"), err=True)


def describe_verdict(verdict: Any) -> str:
    """Describe how a fit ended in a word or two."""
    return str(verdict.name).lower().replace("_", " ")


def describe_cost(compiled: float) -> str:
    """Describe what this process has taken so far."""
    parts = [f"{time.process_time():.2f} CPU s"]
    try:
        import resource  # not everywhere

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        parts.append(f"{most / (1e6 if sys.platform == 'darwin' else 1e3):.0f} MB at most")
    except ImportError:
        pass
    return ", ".join([*parts, f"{compiled:.1f} s of compiling"])


@contextmanager
def logged() -> Iterator[None]:
    """Print what is logged inside the block on stderr, without steps, which `Progress` prints."""
    if any(isinstance(known.formatter, _Since) for known in LOG.handlers):
        yield  # already: a command that runs another
        return
    began, handler = time.monotonic(), logging.StreamHandler(sys.stderr)
    handler.addFilter(lambda record: record.name != STEPS.name)
    handler.setFormatter(_Since(began))
    before = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.DEBUG)
    STEPS.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(before)
        STEPS.setLevel(logging.NOTSET)


class _Since(logging.Formatter):
    """Formats messages with the seconds since a moment."""

    def __init__(self, moment: float) -> None:
        super().__init__()
        self.moment = moment

    def format(self, record: logging.LogRecord) -> str:
        return f"# {time.monotonic() - self.moment:6.2f} s  {record.getMessage()}"


class GuardedCommand(TyperCommand):
    """A command that checks its files before it starts, and groups its options in --help."""

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
"""Plain help and plain exceptions: rich would double the time of --help."""


def make_group(help: str, commands: Mapping[str, Any]) -> typer.Typer:
    """Make a typer group of commands (classes, or functions) by name.

    Their files are checked and their help is plain. A group of a single command is that command.
    """
    group = typer.Typer(help=help, add_completion=False, no_args_is_help=True, **PLAIN_HELP)
    for name, command in commands.items():
        callback = command
        if isinstance(command, type) and issubclass(command, Command):
            command.name = name
            callback = make_callback(command)
        group.command(name, cls=GuardedCommand)(callback)
    return group


def try_all(*actions: Action) -> None:
    """Run all actions (None is skipped) even if some of them fail; then report the failures.

    Actions run in the order given: put saving the model first, because it took time to learn, then
    answers, then pages. A bug (an unexpected exception) is raised; else the last error; the other
    errors are printed to standard error. If the reader of standard output has gone away, the
    command exits after all actions have run.
    """
    errors: dict[str, SoftcountError] = {}  # each message once: two may fail for the same reason
    bugs: list[Exception] = []
    gone: list[ReaderGone] = []
    for action in filter(None, actions):
        try:
            action()
        except SoftcountError as error:
            errors[str(error)] = error
        except ReaderGone as error:
            gone.append(error)
        except Exception as error:
            bugs.append(error)
    last = [*gone, *errors.values(), *bugs][-1:]
    for message, failure in errors.items():
        if failure not in last:
            complain(f"softcount: {message}")
    if last:
        raise last[0]


def if_given(place: T | None, action: Callable[[T], object]) -> Action:
    """Return the action ``action(place)``, or None if no place was given."""
    return None if place is None else lambda: action(place)


@contextmanager
def readable_errors(model_file: Path | None = None) -> Iterator[None]:
    """Turn expected errors into one message (what, where, what to do) and exit code 1.

    These are softcount's own errors, lack of memory, and errors in the user's ``model_file``. Any
    other exception is a bug and keeps its traceback, so that it can be reported. Each warning is
    shown on one line, without its place in our code. A fit that is estimated to need more memory
    than there is warns before it starts.
    """
    from softcount.core.estimate import heard_by

    shown: set[str] = set()  # many similar fits warn only once

    def warn_once(text: str) -> None:
        if text not in shown:
            shown.add(text)
            complain(f"softcount: warning: {text}")

    def show_warning(message: Warning | str, *_: object, **__: object) -> None:
        StatusLine().complain(f"softcount: warning: {message}")

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
        text = f"not enough memory: {error}\n  hint: use less data, or shorter sentences"
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
    """Return FILE:LINE of the innermost frame in the user's file; None if it was not involved."""

    def is_file(name: str) -> bool:  # resolved, because Python makes module file names absolute
        return Path(name).resolve() == file.resolve()

    if isinstance(error, SyntaxError):
        if error.filename is None:  # the file cannot be parsed at all, because of a null byte, say
            return str(file)
        return f"{file if is_file(error.filename) else error.filename}:{error.lineno}"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if is_file(frame.filename)
    ]
    return f"{file}:{frames[-1].lineno}" if frames else None


class FitProgress(StatusLine):
    """Progress callback of a fit: it is called with every state.

    Inside ``with``, it also shows how far the workers of an engine are, if there are any. With
    ``verbose``, there is a line for each step.
    """

    every = 0.1
    """Seconds between two looks at the workers."""

    def __init__(self, items: int, verbose: bool = False) -> None:
        super().__init__()
        self.items, self.verbose, self.pace = items, verbose, Pace()
        self.wanted = self.wanted and not verbose
        self._line = self._work = ""
        self._looked = 0.0
        self._listening = ExitStack()

    def begin(self, needed: Estimate) -> None:
        """Show the estimated cost, before the first step."""
        self.pace.most = needed.steps
        self.show(str(needed))
        if self.verbose:
            typer.echo(f"# {needed}", err=True)

    def __call__(self, state: State) -> None:
        self.pace.note(state)
        if self.verbose:
            typer.echo(self.line(state), err=True)
        room = self.width - len(self._work) - (2 if self._work else 0)
        left, figures = self.pace.left(state), self.figures(state)
        self._line = bar_line(state.step, self.pace, left, figures, room)
        self._show_all()

    def line(self, state: State) -> str:
        """Format a state as a line."""
        return step_line(state, self.items, self.pace.most)

    def figures(self, state: State) -> list[str]:
        """List the figures of a state that a terminal shows, the most important first."""
        return list_figures(state, self.items)

    def hear(self, work: ShardProgress) -> None:
        """Show how far the workers are with a step, or with predictions."""
        if work.workers and time.monotonic() - self._looked < self.every:
            return
        self._looked = time.monotonic()
        workers = "1 worker" if work.workers == 1 else f"{work.workers} workers"
        how_far = f"{work.done}/{work.shards} shards, {workers}"
        self._work = how_far if work.workers else "no workers: waiting for some"
        self._show_all()

    def _show_all(self) -> None:
        # where workers work, steps take long, and this is what is looked at
        self.show("  ".join(filter(None, (self._work, self._line))))

    def __enter__(self) -> Self:
        from softcount.engines.progress import heard_by as workers_heard_by

        self._listening.enter_context(workers_heard_by(self.hear))
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        super().__exit__()
