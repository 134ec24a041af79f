"""``softcount story``."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.conflicts import refuse_spectral
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.lines import Form, Line, read
from softcount.cli.targets import refuse_read
from softcount.errors import DataError, ImpossibleItem, SoftcountError, StoryError

if TYPE_CHECKING:
    from softcount.show.finding import Finding
    from softcount.stories import StoryModel
    from softcount.types import Fit


def story_from(path: Path, name: str | None) -> Callable[..., Any]:
    """Run the file and give back the story called ``name``, or else the last one defined."""
    from softcount.stories.language import Story

    module = _run(path)
    stories: dict[str, Callable[..., Any]] = {
        key: value
        for key, value in vars(module).items()
        if isinstance(getattr(value, "story", None), Story)
    }
    if not stories:
        raise StoryError(f"{path}: there is no story in this file", hint="mark one with @sc.story")
    if name is None:
        return stories.popitem()[1]
    if name not in stories:
        raise StoryError(
            f"{path}: there is no story called {name}",
            hint=f"stories in this file: {', '.join(stories)}",
        )
    return stories[name]


def imported_from(path: Path) -> list[str]:
    """The files of modules that are in the folder of this file, or below: its own, most likely."""
    folder = os.path.join(path.resolve().parent, "")  # as it was put where modules are found
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [file for file in files if isinstance(file, str) and file.startswith(folder)]


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        fault = "this is not a file" if path.exists() else "there is no such file"
        raise StoryError(f"{path}: {fault}", hint="the first argument is a Python file")
    spec = importlib.util.spec_from_file_location(f"story_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise StoryError(f"{path}: not a Python file", hint="its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))  # as `python MODEL.py` does
    spec.loader.exec_module(module)
    return module


# What was learnt, on stdout: tables for people, tab-separated values for pipes, or JSON.


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
    from softcount.show.finding import distributions

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


# ``softcount story``.


SHOWN = 40
"""How many distributions are shown with bars; pipes and JSON get all of them."""


def story(
    ctx: typer.Context,
    model: options.ModelFile,
    data: options.Data,
    learner: Annotated[LearnerName, options.HOW_TO_LEARN] = LearnerName.EM,
    name: options.Name = None,
    tokens: options.Tokens = False,
    chars: options.Chars = False,
    json_lines: options.JsonLines = False,
    init: options.Init = "random",
    smoothing: options.Smoothing = None,
    prior: options.Prior = 1.0,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    best: options.Best = False,
    json: options.Json = False,
    save: options.Save = None,
    html: options.Html = None,
) -> None:
    """Learn the tables of your own story from your own data.

    Lines become items: words split at spaces (--tokens), characters (--chars) or JSON values
    (--json-lines); ||| separates the arguments of a story that takes several. Blank lines are
    skipped. The learned tables go to stdout: with bars in a terminal, tab-separated in a pipe.

    \b
    softcount story examples/coins.py tosses.txt --chars
    softcount story model.py pairs.txt.gz --learner hard-em --save model.softcount
    zcat big.gz | softcount story model.py - --json > learned.json
    """
    form = _form(tokens, chars, json_lines)
    refuse_spectral(learner)
    with readable_errors(model):
        from softcount.engines import Local
        from softcount.stories import StoryModel
        from softcount.stories.language import story_of

        told = story_from(model, name)
        refuse_read(ctx, f"what {model} imports", imported_from(model))
        lines = read(data, form, story_of(told).n_arguments)
        fitted = StoryModel(
            told,
            learner=learner_called(learner, max_iter, tol, n_init),
            engine=Local(threads),
            init=init,
            prior=prior,
            smoothing=smoothing,
            random_state=seed,
        )
        _fit(fitted, lines, data)
        try_all(
            at(save, fitted.save),
            lambda: _print(fitted, lines, data, best, json),
            at(html, lambda path: _write_page(fitted, data, path)),
        )


def _form(tokens: bool, chars: bool, json_lines: bool) -> Form:
    if tokens + chars + json_lines > 1:
        raise typer.BadParameter("choose one of --tokens, --chars and --json-lines")
    return Form.CHARS if chars else Form.JSON if json_lines else Form.TOKENS


def _fit(model: StoryModel, lines: Sequence[Line], data: str) -> None:
    from softcount.cli.progress import Progress

    full = [line for line in lines if not line.blank]
    if not full:
        raise DataError(f"{data}: the file is empty, or all its lines are", "one item a line")
    progress = Progress(len(full))
    try:
        with _lines_for_items(model, full, data):
            model.fit([line.item for line in full], on_step=progress)
    finally:
        progress.end()


@contextmanager
def _lines_for_items(model: StoryModel, lines: Sequence[Line], data: str) -> Iterator[None]:
    """Where an error names an item, or comes from the story, name the line that it came from."""
    try:
        yield
    except ImpossibleItem as error:
        if error.item is not None:
            error.call_it(f"{data}:{lines[error.item].number}")
        raise
    except SoftcountError:
        raise
    except Exception as error:
        guilty = next((line for line in lines if _fails(model, line)), None)
        if guilty:
            error.add_note(f"when told of {data}:{guilty.number}")
        raise


def _fails(model: StoryModel, line: Line) -> bool:
    """Whether the story's own code fails on this line."""
    from softcount.stories.tracing import trace_story

    try:
        trace_story(model.story, line.item)
    except Exception:
        return True
    return False


def _print(model: StoryModel, lines: Sequence[Line], data: str, best: bool, json: bool) -> None:
    derivations = [_derivation(model, line, data) for line in lines] if best else None
    if json:
        print_json(model.params_, model.fit_, derivations)
    elif derivations is not None:
        print_derivations(derivations)
    else:
        print_finding(_finding(model, data), model.params_)


def _derivation(model: StoryModel, line: Line, data: str) -> list[str]:
    """What happened in a line's likeliest derivation; nothing in a blank line."""
    if line.blank:
        return []
    try:
        return [repr(entry) for entry in model.best(line.item).events]
    except ImpossibleItem as error:
        error.message = f"{data}:{line.number}: {error.message}"
        raise


def _finding(model: StoryModel, data: str) -> Finding:
    from softcount.show.finding import Finding, all_bars

    bars = all_bars(model.params_, most=SHOWN + 1)
    more = f" Only the first {SHOWN} distributions are shown." if len(bars) > SHOWN else ""
    title, text = f"The story {model.core_.name}", f"Learned from {data}.{more}"
    return Finding(title, text, bars[:SHOWN], [], model.fit_)


def _write_page(model: StoryModel, data: str, path: Path) -> None:
    from softcount.show import report

    finding = _finding(model, data)
    report.write_page(path, report.page(finding.title, finding.text, [finding]))
