"""A self-contained page about one or more fits: text, bars, curves; no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from pathlib import Path

from softcount import drafts
from softcount.errors import SoftcountError
from softcount.show.finding import Bars, Finding
from softcount.show.marks import visible
from softcount.show.svg import Series, line_chart
from softcount.types import Fit

STYLE = """
:root { color-scheme: light dark; --paper: #fdfcf9; --ink: #23221f; --soft: #6b6860;
  --rule: #e4e1d8; --bar: #1d5c8f; --good: #2f7d5b; --poor: #b4541a; }
@media (prefers-color-scheme: dark) { :root { --paper: #1b1a18; --ink: #e8e5dc; --soft: #a09c91;
  --rule: #3a3934; --bar: #7db8e8; --good: #7cc9a3; --poor: #eba06c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 3.5rem 1.5rem 4rem; max-width: 46rem; background: var(--paper);
  color: var(--ink); font: 17px/1.55 Charter, "Iowan Old Style", Palatino, Georgia, serif; }
h1 { font-size: 2.1rem; line-height: 1.15; font-weight: 500; margin: 0 0 .4rem; }
h2 { font-size: 1.35rem; font-weight: 500; margin: 3rem 0 .3rem; padding-top: 1.4rem;
  border-top: 1px solid var(--rule); }
p { margin: .5rem 0; max-width: 40rem; } .lead, .scale { color: var(--soft); }
.verdict::before { content: "● "; color: var(--good); }
.poor.verdict::before { color: var(--poor); }
.verdict, .signature, .scale { font-size: .86rem; }
code, pre { font: .78rem/1.55 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { margin: .8rem 0; overflow-x: auto; white-space: pre-wrap; }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--soft); font-size: .86rem; }
.wide { overflow-x: auto; } .wide table { min-width: 100%; width: auto; }
.signature { color: var(--soft); overflow-wrap: anywhere; }
.tables { display: grid; grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr));
  gap: 1.2rem 2rem; margin: 1.2rem 0; align-items: start; }
table { border-collapse: collapse; width: 100%;
  font: .82rem/1.35 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
caption { text-align: left; color: var(--soft); padding-bottom: .25rem;
  border-bottom: 1px solid var(--rule); }
th { font-weight: 400; text-align: left; padding: .12rem .6rem .12rem 0; overflow-wrap: anywhere; }
td.bar { width: 45%; } td.bar span { display: block; height: .55em; min-width: 1px;
  background: var(--bar); border-radius: 1px; }
td.p { text-align: right; font-variant-numeric: tabular-nums; padding-left: .6rem; width: 3.6em; }
td.more { color: var(--soft); padding: .12rem 0; }
figure { margin: 1.2rem 0; } figcaption { color: var(--soft); font-size: .86rem; }
@media (max-width: 30rem) { body { padding: 1.6rem 1rem 2.4rem; } h1 { font-size: 1.6rem; } }
@media print { body { padding-top: 0; } h2 { break-after: avoid; } figure { break-inside: avoid; } }
"""


def bar_table(bars: Bars) -> str:
    """One distribution as a table with bars."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f'<td class="bar"><span style="width:{100 * p / bars.full:.1f}%"></span></td>'
        f'<td class="p">{p:.3f}</td></tr>'
        for name, p in bars.rows
    )
    if bars.left_out:
        rows += f'<tr><td class="more" colspan="3">and {bars.left_out} more</td></tr>'
    return f"<table><caption>{escape(bars.title)}</caption>{rows}</table>"


def curves(fit: Fit, title: str) -> str:
    """The objective of every run of a fit, step by step; the kept run stands out."""
    others = [
        Series(f"another start: {run.objective[-1]:,.4g}", run.objective.tolist(), faint=True)
        for run in fit.traces
        if run is not fit.trace
    ]
    kept = Series(f"kept: {fit.trace.objective[-1]:,.4g}", fit.trace.objective.tolist())
    chart = line_chart([*others, kept], f"{title}: objective by step", "step", "objective (nats)")
    note = f" Pale: {len(others)} other start{'s' * (len(others) > 1)}." if others else ""
    caption = f"The objective, step by step.{note}"
    return f"<figure>{chart}<figcaption>{caption}</figcaption></figure>"


def section(finding: Finding) -> str:
    """One finding as a section of the page."""
    scale = f'<p class="scale">{escape(finding.scale)}</p>' if finding.scale else ""
    lines = f"<pre>{escape(chr(10).join(finding.lines))}</pre>" if finding.lines else ""
    return (
        f"<section><h2>{escape(finding.title)}</h2><p>{escape(finding.text)}</p>"
        f"{source(finding.source)}"
        f'<div class="tables">{"".join(bar_table(bars) for bars in finding.bars)}</div>'
        f"{scale}{lines}"
        f"{ending(finding.fit, finding.title)}</section>"
    )


def ending(fit: Fit, title: str) -> str:
    """How a fit went: its curves, its verdict, its signature."""
    css = "verdict" if fit.verdict.good else "poor verdict"
    return f'{curves(fit, title)}<p class="{css}">{escape(fit.verdict)}</p>{signed(fit.signature)}'


def signed(signature: str) -> str:
    """The signature of a run."""
    return f'<p class="signature"><code>{escape(signature)}</code></p>'


def source(text: str) -> str:
    """A story as it was written, folded away until someone wants to read it."""
    if not text:
        return ""
    return f"<details><summary>The story</summary><pre>{escape(text)}</pre></details>"


def page(title: str, lead: str, findings: Sequence[Finding]) -> str:
    """A whole page.

    >>> page("Nothing yet", "", [])[:15]
    '<!doctype html>'
    """
    return document(title, lead, "".join(section(finding) for finding in findings))


def document(title: str, lead: str, body: str, style: str = "", script: str = "") -> str:
    """A page with this inside; all but the title and the lead is HTML already.

    The one frame of all pages: here, and nowhere else, are the policy and the marks.
    """
    code = f"<script>{script}</script>" if script else ""
    return visible(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>"
        f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>'
        f"<main>{body}{code}</main></body></html>\n"
    )


def _policy(script: str) -> str:
    """Nothing is fetched, sent or embedded, and no script runs but ours, whatever texts contain.

    Styles stay as they are: bars have their widths in attributes, and all text is escaped.
    """
    rules = ["default-src 'none'", "style-src 'unsafe-inline'"]
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def write_page(path: Path, html: str) -> None:
    """Write the page whole or not at all."""
    write_whole(path, html, "the page", "--html")


def write_whole(path: Path, text: str, what: str, option: str) -> None:
    """Write a file whole or not at all; ``what`` it is, and which ``option`` says where."""
    try:
        drafts.write_whole(path, text.encode())
    except OSError as error:
        raise SoftcountError(
            f"cannot write {what} {path}: {error.strerror}",
            hint=f"choose another place with {option}",
        ) from error
