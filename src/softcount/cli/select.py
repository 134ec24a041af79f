"""``softcount select``."""

from __future__ import annotations

import json as json_module
import math
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_spectral, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.targets import PLAIN
from softcount.cli.texts import WordFilter, read_points, read_texts, word_counter

if TYPE_CHECKING:
    from softcount.metrics.selection import Row, Selection

WORD_OPTIONS = ("tokens", "smoothing", "stop_words", "min_count", "max_share")


class ModelName(StrEnum):
    """What ``--model`` may say."""

    MULTINOMIAL = "multinomial"
    BERNOULLI = "bernoulli"
    GAUSSIAN = "gaussian"


class By(StrEnum):
    """What ``--by`` may say."""

    BIC = "bic"
    AIC = "aic"
    ICL = "icl"
    HELDOUT = "heldout"


def select(
    ctx: typer.Context,
    file: options.Texts,
    k: Annotated[
        str,
        typer.Option(
            "-k", help="Numbers of classes: 2:20 (both ends), 5:50:5 (in steps) or 5,10,20."
        ),
        PLAIN,
    ] = "2:20",
    by: Annotated[
        By,
        typer.Option(
            help="What decides. bic, icl: few classes if there are many words. aic: more. heldout: "
            "how well lines are foreseen that were not learned from (a second fit for each k).",
            metavar="NAME",
            parser=one_of(By),
        ),
    ] = By.BIC,
    model: Annotated[
        ModelName,
        typer.Option(
            help="multinomial: how often words occur. bernoulli: whether they do. gaussian: lines "
            "are columns of numbers, separated by tabs or spaces.",
            metavar="NAME",
            parser=one_of(ModelName),
        ),
    ] = ModelName.MULTINOMIAL,
    tokens: options.SplitAtSpaces = False,
    learner: Annotated[LearnerName, options.HOW_TO_LEARN] = LearnerName.EM,
    init: options.ClassInit = "kmeans",
    smoothing: options.WordSmoothing = 0.1,
    stop_words: options.StopWords = None,
    min_count: options.MinCount = 1,
    max_share: options.MaxShare = 1.0,
    scouts: options.Scouts = 0,
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    json: options.Json = False,
    html: options.Html = None,
) -> None:
    """Compare numbers of classes for the lines of a file.

    Prints a row for each number, with all criteria side by side; a * marks the best of each. Blank
    lines are skipped. A few restarts (--n-init 5) guard against a number that was unlucky.

    \b
    softcount select documents.txt -k 2:20 --n-init 5
    softcount select documents.txt -k 5:50:5 --by heldout --html classes.html
    softcount select points.tsv --model gaussian --json > criteria.json
    """
    refuse_spectral(learner, unless=model is ModelName.MULTINOMIAL)
    with readable_errors():
        numbers = numbers_in(k)
        from softcount.engines import Local
        from softcount.metrics import select as compare

        settings: dict[str, Any] = {
            "init": init,
            "scouts": scouts,
            "learner": learner_called(learner, max_iter, tol, n_init),
            "engine": Local(threads),
            "random_state": seed,
        }
        if model is ModelName.GAUSSIAN:
            refuse_with(ctx, f"--model {model}", WORD_OPTIONS, "it reads numbers, not words")
        else:
            settings["smoothing"] = smoothing
        items = _items(file, model)
        if model is not ModelName.GAUSSIAN:
            wanted = WordFilter(min_count, max_share, stop_words)
            settings["vectorizer"] = word_counter(items, tokens, wanted)
        progress = _Progress(len(numbers))
        try:
            estimator = _estimator(model, settings)
            found = compare(estimator, items, numbers, by.value, random_state=seed, on_fit=progress)
        finally:
            progress.end()
        try_all(
            lambda: typer.echo(_as_json(found) if json else str(found)),
            at(html, lambda path: _write_page(found, file, path)),
        )


def numbers_in(text: str) -> list[int]:
    """Numbers of classes as the command line says them.

    >>> numbers_in("2:5"), numbers_in("5:20:5"), numbers_in("3,7")
    ([2, 3, 4, 5], [5, 10, 15, 20], [3, 7])
    """
    try:
        if ":" not in text:
            return [int(part) for part in text.split(",")]
        first, last, *step = (int(part) for part in text.split(":"))
        if last >= first >= 1 and len(step) <= 1 and min(step, default=1) >= 1:
            return list(range(first, last + 1, *step))
    except ValueError:
        pass
    raise typer.BadParameter(f"-k {text}: write 2:20, 5:50:5 or 5,10,20")


def _items(file: str, model: ModelName) -> Any:
    if model is ModelName.GAUSSIAN:
        points = read_points(file)
        points.demand_some(file)
        return points.items
    lines = read_texts(file)
    lines.demand_some(file)
    return [text for text in lines.texts if text.strip()]


def _estimator(name: ModelName, settings: dict[str, Any]) -> Any:
    from softcount import mixture

    if name is ModelName.GAUSSIAN:
        return mixture.GaussianMixture(**settings)
    return mixture.MultinomialMixture(bernoulli=name is ModelName.BERNOULLI, **settings)


class _Progress:
    """One line on stderr that says which number is done; silent unless someone is watching."""

    def __init__(self, total: int) -> None:
        self.done, self.total = 0, total
        self.wanted = sys.stderr.isatty()

    def __call__(self, row: Row) -> None:
        self.done += 1
        if self.wanted:
            sys.stderr.write(f"\r\x1b[Kk = {row.k}   {self.done} of {self.total}")
            sys.stderr.flush()

    def end(self) -> None:
        if self.wanted:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _as_json(found: Selection) -> str:
    """Everything as one JSON object, which knows neither infinity nor NaN."""
    from softcount.show import selection

    rows = [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(row).items()
        }
        for row in found.table
    ]
    whole = {
        "by": found.by,
        "best_k": found.best_k,
        "edge": selection.edge(found),
        "winners": {by: found.winner(by) for by in found.known},
        "items": found.n_items,
        "signature": found.best.signature_,
        "table": rows,
    }
    return json_module.dumps(whole, ensure_ascii=False, indent=1)


def _write_page(found: Selection, file: str, path: Path) -> None:
    from softcount.show import report, selection

    report.write_page(path, selection.page(found, file))
