"""Self-contained HTML pages, which need no network, from templates that escape all their values.

Templates are next to the code that renders them: the base template and shared parts are in
``report/templates``, each model's page is ``report.html`` in its own package.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcount.core import drafts
from softcount.core.errors import SoftcountError
from softcount.report import charts
from softcount.report.finding import Finding
from softcount.report.tables import format_share
from softcount.report.text import clean, plural, shorten, shorten_word

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    # imported when the first page is written, because terminal output does not need it
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("softcount", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(clean=clean, form=format, plural=plural, share=format_share)
    environment.filters["cut"] = lambda value, most: shorten(clean(value), most)
    environment.filters["cut_word"] = shorten_word
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.globals["draw_runs"] = charts.draw_runs
    return environment


def render(template: str, **context: Any) -> str:
    """Render a template; the result is a ``Markup``, which other templates do not escape again.

    ``template``  path relative to the package ``softcount``
    """
    from markupsafe import Markup

    return Markup(_environment().get_template(template).render(**context))


def render_page(template: str, title: str, lead: str, script: str = "", **context: Any) -> str:
    """Render a page with a template that extends ``report/templates/page.html``.

    ``script``  path of softcount's own script, if any; no other script can run in the page

    >>> render_page("report/templates/page.html", "Nothing yet", "")[:15]
    '<!doctype html>'
    """
    from markupsafe import Markup

    # content security policy: nothing is fetched, sent or embedded, and only our own script runs,
    # whatever the texts contain; inline styles are allowed, because bars have their widths in
    # attributes, and all text is escaped
    rules, code = ["default-src 'none'", "style-src 'unsafe-inline'"], ""
    if script:
        code = resources.files("softcount").joinpath(script).read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    rules += ["base-uri 'none'", "form-action 'none'"]
    safe = {"script": Markup(code), "policy": Markup("; ".join(rules))}
    return clean(render(template, title=title, lead=lead, **safe, **context))


def findings_page(title: str, lead: str, findings: Sequence[Finding]) -> str:
    """Make a page with a section for each finding."""
    return render_page("report/templates/findings.html", title, lead, findings=findings)


def write_page(path: Path, html: str) -> None:
    """Write a page atomically."""
    write_whole(path, html, "the page", "--html")


def write_whole(path: Path, text: str, what: str, option: str) -> None:
    """Write a text file atomically; messages name ``what`` it is, and the ``option`` for it."""
    try:
        drafts.write_whole(path, text.encode())
    except OSError as error:
        raise SoftcountError(
            f"cannot write {what} {path}: {error.strerror}",
            hint=f"choose another place with {option}",
        ) from error
