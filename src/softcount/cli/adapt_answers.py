"""How ``softcount adapt`` ends: lines filled in, what was learned, a page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from softcount.cli.adapt_domains import TEXT, Domains
from softcount.cli.adapt_methods import Method
from softcount.cli.ending import at, try_all
from softcount.cli.records import print_records

if TYPE_CHECKING:
    from softcount.adapt.base import Adapter
    from softcount.show.adaptation import Adaptation, Judgement
    from softcount.show.labelling_figures import Figures


def finish(
    domains: Domains,
    model: Adapter,
    method: str,
    *,
    judgements: Sequence[Judgement] = (),
    gold: Sequence[str | None] | None = None,
    explain: int | None = None,
    html: Path | None = None,
    notes: Sequence[str] = (),
) -> None:
    """The target's lines on stdout, what was learned on stderr, and the page if it is wanted.

    ``explain``  show so many words that moved; None: not on stderr
    """
    from softcount.cli.answers import called
    from softcount.show.adaptation import WORDS, Adaptation, explanation_of, page
    from softcount.show.report import write_page

    texts = domains.target.texts(TEXT)
    found = _figures(domains, model, method, gold, texts)
    wanted = explain is not None or html is not None
    explanation, reason = explanation_of(model, explain or WORDS) if wanted else (None, "")
    one = Adaptation(
        f"Labels in {called(domains.target.path)}",
        method,
        found,
        texts,
        "line",
        explanation,
        judgements,
        [*notes, *([f"no words are explained: {reason}"] if reason else [])],
        reference=Method.SOURCE_ONLY,
    )

    def tell() -> None:
        watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
        if not watched:
            print_adaptation(one, sys.stderr, words=explain is not None)
        names = [found.names[k] if k >= 0 else None for k in found.labels.tolist()]
        print_records(domains.target, _as_written(names, domains), found.confidence.tolist())
        if watched:
            print_adaptation(one, sys.stderr, words=explain is not None)

    try_all(tell, at(html, lambda path: write_page(path, page(one))))


def print_adaptation(one: Adaptation, stream: TextIO, *, words: bool) -> None:
    """Tables if someone is watching, else tab-separated values."""
    from rich.console import Console

    from softcount.show import adaptation_text

    if stream.isatty():
        adaptation_text.show(one, Console(file=stream, highlight=False), words=words)
    else:
        stream.write(adaptation_text.as_tsv(one, words=words))
    stream.flush()


def _figures(
    domains: Domains,
    model: Adapter,
    method: str,
    gold: Sequence[str | None] | None,
    texts: Sequence[str],
) -> Figures:
    """The labels of all lines of the target; blank ones get none, and have none to be told."""
    import numpy as np

    from softcount.show.adaptation import labelled_by

    shares = np.full((len(texts), len(model.classes_)), np.nan)
    shares[domains.lines] = model.predict_proba([texts[n] for n in domains.lines])
    target, true = domains.target, gold
    if gold is not None:
        true = [None if n in target.blank else label for n, label in enumerate(gold)]
    return labelled_by(method, model.classes_, shares, target.labels, true, texts)


def _as_written(names: Sequence[str | None], domains: Domains) -> list[Any]:
    """Labels for JSON as files of JSON have them: 1 and true are to stay what they are."""
    if not domains.target.is_json:
        return list(names)
    written = domains.written
    return [name if name is None else written.get(name, name) for name in names]
