"""Pages: self-contained, without network, from templates that escape whatever they are given.

Templates lie beside the code that fills them: the frame and the parts that pages share in
``report/templates``, each model's page in its own package as ``report.html``.
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
    # imported when the first page is written: whoever only looks at a terminal does not pay for it
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
    """Fill in a template; the result can be put into another one as it is (a ``Markup``).

    ``template``  its path below the package ``softcount``
    """
    from markupsafe import Markup

    return Markup(_environment().get_template(template).render(**context))


def render_page(template: str, title: str, lead: str, script: str = "", **context: Any) -> str:
    """Make a whole page by a template that extends the frame ``report/templates/page.html``.

    ``script``  path of a script of ours; no other one can run in the page

    >>> render_page("report/templates/page.html", "Nothing yet", "")[:15]
    '<!doctype html>'
    """
    from markupsafe import Markup

    # nothing is fetched, sent or embedded, and no script runs but ours, whatever texts contain;
    # styles stay as they are: bars have their widths in attributes, and all text is escaped
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
