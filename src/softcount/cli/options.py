"""Options of the commands, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL.py",
        help="A Python file with a @story in it. It is RUN as a program: use your own, or read it "
        "first.",
    ),
]
Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A text file, one item a line; .gz too; - is stdin."),
]
Name = Annotated[str | None, typer.Option(help="Which story of the file; if not given, the last.")]
Tokens = Annotated[
    bool, typer.Option("--tokens", help="A line is words, split at spaces (the default).")
]
Chars = Annotated[bool, typer.Option("--chars", help="A line is its characters.")]
JsonLines = Annotated[bool, typer.Option("--json-lines", help="A line is a JSON value.")]
Init = Annotated[str, typer.Option(help="Where to start: random or uniform.")]
Smoothing = Annotated[
    float | None, typer.Option(help="Add this to every count (instead of --prior).")
]
Prior = Annotated[float, typer.Option(help="Dirichlet prior of all tables; 1 is flat.")]
MaxIter = Annotated[int | None, typer.Option(help="At most so many steps.")]
Tol = Annotated[float | None, typer.Option(help="Stop when a step changes less than this.")]
NInit = Annotated[int | None, typer.Option(help="How many starts (for gibbs: chains).")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
Threads = Annotated[int | None, typer.Option(help="If not given, one for each processor.")]
Best = Annotated[
    bool,
    typer.Option(
        "--best", help="Print each line's likeliest derivation: one line out for each line in."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
Save = Annotated[Path | None, typer.Option(help="Keep the fitted model in this file.")]
Html = Annotated[Path | None, typer.Option(help="Write a page with curves to this file.")]
