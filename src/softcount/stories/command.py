"""The command ``softcount story``."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from softcount.cli.frame import LearningCommand
from softcount.cli.options import Argument, Input, LearnerOptions, Learning, Model, Output
from softcount.cli.reading import Line, open_folder, read_items
from softcount.cli.targets import PLAIN, refuse_read
from softcount.core.errors import DataError, ImpossibleItem, SoftcountError, StartError, StoryError

if TYPE_CHECKING:
    from softcount.cli.frame import FitProgress
    from softcount.core.types import Fit
    from softcount.report.finding import Finding
    from softcount.stories import StoryModel


def load_story(path: Path, name: str | None) -> Callable[..., Any]:
    """Run the file and return the story called ``name``, or the last one defined if it is None."""
    from softcount.stories.language import Story

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
    stories: dict[str, Callable[..., Any]] = {
        key: value
        for key, value in vars(module).items()
        if isinstance(getattr(value, "story", None), Story)
    }
    if not stories:
        raise StoryError(
            f"{path}: there is no story in this file",
            hint="decorate a generator function with @sc.story",
        )
    if name is None:
        return stories.popitem()[1]
    if name not in stories:
        raise StoryError(
            f"{path}: there is no story called {name}",
            hint=f"stories in this file: {', '.join(stories)}",
        )
    return stories[name]


def print_tsv(params: Mapping[str, Any], fit: Fit) -> None:
    """Print one entry per line: table, condition, outcome, probability.

    Facts about the fit come first, as comments that begin with #.
    """
    from softcount.report.finding import list_distributions

    objective = float(fit.trace.objective[-1])
    typer.echo(f"# {fit.signature}\n# {fit.verdict}\n# objective {objective:.6f}")
    typer.echo("table\tcondition\toutcome\tprobability")
    for (table, *condition), row in list_distributions(params):
        for outcome, p in row.items():
            fields = (table, ", ".join(condition), str(outcome))
            typer.echo("\t".join(map(escape_field, fields)) + f"\t{p:.6g}")


def print_json(params: Mapping[str, Any], fit: Fit, best: Sequence[Sequence[str]] | None) -> None:
    """Print everything as one JSON object."""
    columns = ("objective", "log_likelihood", "perplexity", "seconds", "change")
    report: dict[str, Any] = {
        "signature": fit.signature,
        "verdict": {"name": fit.verdict.name.lower(), "sentence": str(fit.verdict)},
        "params": _make_plain(params),
        "trace": {name: [_number(v) for v in fit.trace.column(name)] for name in columns},
        "diagnostics": {name: _number(v) for name, v in fit.diagnostics.items()},
    }
    if best is not None:
        report["best"] = best
    typer.echo(json.dumps(report, ensure_ascii=False, indent=1))


def escape_field(text: str) -> str:
    """Escape tabs and line breaks, so that the text stays in one field of a TSV line."""
    return text.translate({ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"})


def _make_plain(params: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert nested mappings to dicts with string keys, as JSON requires."""
    return {
        str(key): _make_plain(value) if isinstance(value, Mapping) else float(value)
        for key, value in params.items()
    }


def _number(value: float) -> float | None:
    """Return the number, or None for infinity and NaN, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


NAMED_STARTS = ("random", "uniform")


def read_start_file(name: str) -> dict[str, Any]:
    """Read initial tables from a JSON file, as nested objects: table, conditions, outcome."""
    path = Path(name)
    if not path.is_file():
        raise StartError(
            f"--init {name}: neither {' nor '.join(NAMED_STARTS)}, nor a file",
            'give a JSON file such as {"which": {"A": 0.3, "B": 0.7}}',
        )
    try:
        tables = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StartError(f"{name} is not JSON: {error}", "write tables as nested objects") from None
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise StartError(
            f"{name} does not hold tables by name", 'write {"which": {"A": 0.3, "B": 0.7}}'
        )
    return tables


SHOWN = 40
"""Number of distributions shown with bars in a terminal; pipes and JSON get all of them."""


class StoryItems(NamedTuple):
    """The user's story, all lines of the data file, and the lines that are not blank.

    ``corpus``  items on disk; lines are made of them on demand, and none is blank
    """

    story: Callable[..., Any]
    lines: Sequence[Line]
    non_blank: Sequence[Line]
    corpus: Any = None

    @property
    def items(self) -> Sequence[Any]:
        """What there is to learn from."""
        return [line.item for line in self.non_blank] if self.corpus is None else self.corpus


class CorpusLines(Sequence[Line]):
    """The items of a corpus on disk as lines, read on demand."""

    def __init__(self, corpus: Any) -> None:
        self._corpus = corpus

    def __len__(self) -> int:
        return len(self._corpus)

    def __getitem__(self, n: Any) -> Any:
        return Line(n + 1, self._corpus[n])

    def __iter__(self) -> Iterator[Line]:
        from softcount.text.corpora import in_parts

        items = chain.from_iterable(in_parts(self._corpus))
        return (Line(number, item) for number, item in enumerate(items, 1))


class StoryFound(NamedTuple):
    """The fitted model, and the lines whose derivations may be requested."""

    model: StoryModel
    lines: Sequence[Line]


class TellStory(LearnerOptions, LearningCommand):
    """Learn the tables of your own story from your own data.

    Each line is one item: words split at spaces (--tokens), characters (--chars) or a JSON value
    (--json-lines); ||| separates the arguments of a story that takes several. Blank lines are
    skipped. The learned tables go to stdout: with bars in a terminal, tab-separated in a pipe.

    \b
    softcount story examples/coins.py tosses.txt --chars
    softcount story model.py pairs.txt.gz --learner hard-em --save model.softcount
    zcat big.gz | softcount story model.py - --json > learned.json
    """

    without = ("load",)

    model: Annotated[
        Path,
        Argument(
            "A Python file with a @story in it. It is RUN as a program: use your own, or read it "
            "first.",
            metavar="MODEL.py",
        ),
    ]
    data: Annotated[
        str,
        Argument(
            "A text file, one item per line; may be .gz; - is stdin. Or a corpus of items on disk.",
            metavar="DATA",
        ),
    ]
    story_name: Annotated[
        str | None,
        Input("Name of the story to use, by default the last in the file.", "--name", file=PLAIN),
    ] = None
    tokens: Annotated[bool, Input("Read each line as words split at spaces (the default).")] = False
    chars: Annotated[bool, Input("Read each line as a sequence of characters.")] = False
    json_lines: Annotated[bool, Input("Read each line as a JSON value.")] = False
    smoothing: Annotated[float | None, Model("Add this to every count (instead of --prior).")] = (
        None
    )
    prior: Annotated[
        float, Model("Dirichlet concentration of the prior of every table; 1 is flat.")
    ] = 1.0
    init: Annotated[
        str,
        Learning(
            "Initial parameters: random, uniform, or a JSON file with tables: "
            '{"which": {"A": 0.3, "B": 0.7}}.',
        ),
    ] = "random"
    steps: Annotated[
        bool,
        Output("Print the run step by step: parameters and posteriors, if they are few."),
    ] = False
    best: Annotated[
        bool, Output("Print the most probable derivation of each line, one line per input line.")
    ] = False
    json: Annotated[bool, Output("Print everything as JSON.")] = False

    def runs_file(self) -> Path:
        return self.model

    def check(self) -> None:
        if self.steps and (self.best or self.json):
            raise typer.BadParameter("choose one of --steps, --best and --json")
        if self.tokens + self.chars + self.json_lines > 1:
            raise typer.BadParameter("choose one of --tokens, --chars and --json-lines")
        self.refuse_spectral()

    def read(self, model: None) -> StoryItems:
        from softcount.stories.language import find_story

        caller = load_story(self.model, self.story_name)
        # modules in or below the folder of this file are most likely imported by it
        folder = os.path.join(self.model.resolve().parent, "")
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        imported = [file for file in files if isinstance(file, str) and file.startswith(folder)]
        refuse_read(self.context, f"what {self.model} imports", imported)
        corpus = open_folder(self.data, "items")
        if corpus is not None:
            names = ("tokens", "chars", "json_lines")
            self.refuse(self.data, names, "the corpus has been read already")
            on_demand = CorpusLines(corpus)
            return StoryItems(caller, on_demand, on_demand, corpus)
        form = "chars" if self.chars else "json" if self.json_lines else "tokens"
        lines = read_items(self.data, form, find_story(caller).n_arguments)
        non_blank = [line for line in lines if not line.blank]
        if not non_blank:
            raise DataError(
                f"{self.data}: the file is empty, or all its lines are", "write one item per line"
            )
        return StoryItems(caller, lines, non_blank)

    def make(self, data: StoryItems) -> StoryModel:
        from softcount.stories import StoryModel

        return StoryModel(
            data.story,
            init=self.init if self.init in NAMED_STARTS else read_start_file(self.init),
            prior=self.prior,
            smoothing=self.smoothing,
            **self.learning(self.make_learner()),
        )

    def size(self, data: StoryItems) -> int:
        return len(data.non_blank)

    def fit(self, model: StoryModel, data: StoryItems, progress: FitProgress) -> None:
        try:
            keep: dict[str, Any] = {"keep_posteriors": True} if self.steps else {}
            model.fit(data.items, **keep, **self.fit_options(progress))
        # where an error is about an item, or comes from the story, name the line of the file
        except ImpossibleItem as error:
            if error.item is not None:
                error.call_it(f"{self.data}:{data.non_blank[error.item].number}")
            raise
        except SoftcountError:
            raise
        except Exception as error:
            from softcount.stories.language import trace_story

            for line in data.non_blank:
                try:
                    trace_story(model.story, line.item)
                except Exception:
                    error.add_note(f"while tracing the story on {self.data}:{line.number}")
                    break
            raise

    def answer(self, model: StoryModel, data: StoryItems) -> StoryFound:
        return StoryFound(model, data.lines)

    def print_results(self, found: StoryFound) -> None:
        model = found.model
        best = (_derive_line(model, line, self.data) for line in found.lines)
        if self.steps:
            typer.echo(str(model.steps()))
            return
        if self.json:
            print_json(model.params_, model.fit_, list(best) if self.best else None)
        elif self.best:  # one line per item: its events, in the order of the story
            for events in best:
                typer.echo("\t".join(map(escape_field, events)))
        elif sys.stdout.isatty():
            from softcount.report.tables import show_finding

            show_finding(_make_finding(model, self.data))
        else:
            print_tsv(model.params_, model.fit_)

    def page(self, found: StoryFound) -> str:
        from softcount.report.page import findings_page

        finding = _make_finding(found.model, self.data)
        return findings_page(finding.title, finding.text, [finding])


def _derive_line(model: StoryModel, line: Line, data: str) -> list[str]:
    """Return the events of a line's most probable derivation; empty for a blank line."""
    if line.blank:
        return []
    try:
        return [repr(entry) for entry in model.best(line.item).events]
    except ImpossibleItem as error:
        error.message = f"{data}:{line.number}: {error.message}"
        raise


def _make_finding(model: StoryModel, data: str) -> Finding:
    from softcount.report.finding import Finding, make_all_bars

    bars = make_all_bars(model.params_, most=SHOWN + 1)
    more = f" Only the first {SHOWN} distributions are shown." if len(bars) > SHOWN else ""
    title, text = f"The story {model.core_.name}", f"Learned from {data}.{more}"
    return Finding(title, text, bars[:SHOWN], [], model.fit_)
