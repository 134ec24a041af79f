"""``softcount story``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softcount.cli import options
from softcount.cli.conflicts import refuse_spectral
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.lines import Form, Line, read
from softcount.cli.targets import refuse_read
from softcount.errors import DataError, ImpossibleItem, SoftcountError

if TYPE_CHECKING:
    from softcount.models.story import StoryModel
    from softcount.show.finding import Finding


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
        from softcount.cli.model_file import imported_from, story_from
        from softcount.engines import Local
        from softcount.models.story import StoryModel
        from softcount.models.story.language import story_of

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
    from softcount.models.story.trail import trace_story

    try:
        trace_story(model.story, line.item)
    except Exception:
        return True
    return False


def _print(model: StoryModel, lines: Sequence[Line], data: str, best: bool, json: bool) -> None:
    from softcount.cli import output

    derivations = [_derivation(model, line, data) for line in lines] if best else None
    if json:
        output.print_json(model.params_, model.fit_, derivations)
    elif derivations is not None:
        output.print_derivations(derivations)
    else:
        output.print_finding(_finding(model, data), model.params_)


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
