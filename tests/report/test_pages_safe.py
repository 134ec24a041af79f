"""Every page there is: one policy, no text that becomes markup, no character that acts unseen."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

import softcount
from softcount.cli.app import app
from softcount.report.page import render_page
from softcount.report.text import clean
from tests.commands import done
from tests.every_command import every_call

MARKUP = "<hostile-tag onx='1'>\"'&amp;</style></title></script><!--"
UNSEEN = (
    "\x1b[31m\x07\x7f\x85\x9b\u061c\u200b\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2067\u2068"
)
UNSEEN += "\u206a\u3164\ufeff\ufff9\ufffe\U000e0041\U0001d173"
ODD = f"a{MARKUP}b{UNSEEN}c"
WORSE = f"{ODD}\ud800\x00\u2028\u2029\n"
"""What files cannot have, but strings can."""

NAME = "<hostile-tag onx='1'>&\"\u202e\u200b\x1b"

SEEN = {"\t", "\n", "\r"}
FORBIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.comments: list[str] = []
        self.policies: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.text: list[str] = []
        self._inside: str | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy":
            assert not {"script", "style", "title", "body"} & set(self.tags), "it comes too late"
            self.policies.append(given["content"] or "")
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append((given.get("type"), ""))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            kind, before = self.scripts[-1]
            self.scripts[-1] = (kind, before + data)
        elif self._inside != "style":
            self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from strings(key)
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)


def unseen_in(text: str) -> set[str]:
    return {c for c in text if unicodedata.category(c) in FORBIDDEN and c not in SEEN}


def check(html: str) -> Page:
    """That a page is safe, told by other means than those that make it so."""
    page = Page(html)
    assert len(page.policies) == 1
    rules = dict(rule.split(" ", 1) for rule in page.policies[0].split("; "))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    assert rules.pop("style-src") == "'unsafe-inline'"
    run = [code for kind, code in page.scripts if kind != "application/json"]
    digests = [hashlib.sha256(code.encode()).digest() for code in run]
    allowed = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    assert rules.pop("script-src", "") == " ".join(allowed)
    assert rules == {}
    assert len(run) <= 1
    assert "hostile-tag" not in page.tags
    assert page.comments == []
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    for name, value in page.attributes:  # nothing is fetched, and links stay in the page
        assert name not in ("src", "srcset", "action", "formaction", "data", "xlink:href")
        assert name != "href" or (value or "").startswith("#")
    assert not {"link", "base", "iframe", "object", "embed", "form", "img"} & set(page.tags)
    assert unseen_in(html) == set()
    for kind, code in page.scripts:
        if kind == "application/json":  # a script will show what it says
            assert unseen_in("".join(strings(json.loads(code)))) == set()
    return page


# all pages
def commands_with_pages() -> dict[str, str]:
    """Names of commands, and the option that writes a page."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        options = {option for one in command.params for option in one.opts}
        if "--html" in options:
            found[name] = "--html"
    return found


PAGES = commands_with_pages()


def test_which_commands_write_pages() -> None:
    with_pages = "cluster classify annotators bootstrap propagate cotrain adapt select topics "
    with_pages += "bags rules senses align tag grammar story demo"
    assert set(PAGES) == set(with_pages.split())


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every page, of texts, labels, words and file names that mean harm."""
    folder, found = tmp_path_factory.mktemp("pages"), {}
    for name, call in every_call(folder, ODD, NAME).items():
        if name in PAGES:
            target = folder / f"{name}.html"
            done(*call, PAGES[name], target)
            found[name] = target.read_text(encoding="utf-8")
    return found


@pytest.mark.parametrize("name", sorted(PAGES))
def test_every_page_is_safe(pages: dict[str, str], name: str) -> None:
    page = check(pages[name])
    if name != "demo":  # has texts of its own only
        said = "".join(page.text)
        assert "⟨U+202E⟩" in said or "hostile" in said or name == "select"


def test_most_pages_show_marks(pages: dict[str, str]) -> None:
    """So that the test above has something to look at."""
    marked = {name for name, html in pages.items() if "⟨U+202E⟩" in html}
    assert marked >= set(PAGES) - {"demo", "select", "story"}


def test_pages_of_python() -> None:
    from softcount import HMM, LDA, PCFG, Aligner, NaiveBayes
    from softcount.labels import SelfTraining

    words = [[ODD, "a", "b"], ["a", ODD], ["b", "a"]]
    texts = [f"{' '.join(sentence)} \ud800\x00" for sentence in words]
    check(softcount.hmm.tagging_report(HMM(2).fit(words), words, title=WORSE))
    check(softcount.grammar.grammar_report(PCFG(2, 2).fit(words), words, title=WORSE))
    pairs = [(["a", ODD], ["b", ODD]), ([ODD], [ODD])]
    check(softcount.align.alignment_report(Aligner().fit(pairs), title=WORSE))
    topics = LDA(2).fit(texts)
    check(softcount.topics.topic_report(topics, texts=texts, names=[WORSE] * 3, title=WORSE))
    taught = SelfTraining(NaiveBayes()).fit(texts, [ODD, "b", -1])
    check(softcount.labels.labelling_report(taught.history_, texts, title=WORSE))


def test_what_notebooks_show() -> None:
    says = softcount.table("says")

    @softcount.story
    def one(word: str) -> Iterator[object]:
        yield says[word]

    html = softcount.StoryModel(one).fit([ODD, WORSE, "a"]).params_._repr_html_()
    assert "hostile-tag" not in Page(html).tags
    assert unseen_in(html) == set()
    assert "⟨U+202E⟩" in html


def test_there_is_one_frame() -> None:
    """A page that is made elsewhere would have neither policy nor marks."""
    folder = Path(softcount.__file__).parent
    files = [path for path in folder.rglob("*") if path.suffix in (".py", ".html")]
    found = {path.name for path in files if "</html>" in path.read_text()}
    assert found == {"page.html"}


TAG = re.compile(r"</?(?:[abip]|div|t[drh]|table|span|svg|path|text|html|section|style)(?:[ >/]|$)")


def test_markup_is_in_templates_only() -> None:
    """What is put together from strings is not escaped by anybody."""
    found = []
    for path in Path(softcount.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lone = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}  # docstrings
        for one in ast.walk(tree):
            text = one.value if isinstance(one, ast.Constant) and id(one) not in lone else None
            if isinstance(text, str) and TAG.search(text):
                found.append(f"{path.name}:{one.lineno}: {text[:40]}")
    assert found == []


def test_only_pages_pay_for_templates() -> None:
    code = (
        "import sys, io, softcount as sc; from rich.console import Console;"
        "from softcount.hmm.report import summarise_states; model = sc.HMM(2).fit(['a b', 'b a']);"
        "summarise_states(model).show(Console(file=io.StringIO()));"
        "assert 'jinja2' not in sys.modules;"
        "sc.hmm.tagging_report(model); assert 'jinja2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.text(), st.text())
def test_any_title_and_lead(title: str, lead: str) -> None:
    html = render_page("report/templates/page.html", title, lead)
    html.encode("utf-8")
    Page(html)


# marks
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a␀b"),
        ("\x1b[31m", "␛[31m"),
        ("\x7f", "␡"),
        ("\x85\x9b", "⟨U+0085⟩⟨U+009B⟩"),
        ("invoice\u202egnp.exe", "invoice⟨U+202E⟩gnp.exe"),
        ("\u2066a", "⟨U+2066⟩a"),
        ("\u2068a\n\u2069", "⟨U+2068⟩a\n⟨U+2069⟩"),
        ("\u2068a\u202eb\u2069", "⟨U+2068⟩a⟨U+202E⟩b⟨U+2069⟩"),
        ("\u2068a\x00\u2069", "\u2068a␀\u2069"),
        ("x\u200f 10-20", "x⟨U+200F⟩ 10-20"),
        ("pass\u200bword", "pass⟨U+200B⟩word"),
        ("pass\u200dword", "pass⟨U+200D⟩word"),
        ("\ufeffa", "⟨U+FEFF⟩a"),
        ("a\u2028b\u2029", "a⟨U+2028⟩b⟨U+2029⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\U0001f600\U000e0041", "\U0001f600⟨U+E0041⟩"),
        ("word\xad", "word⟨U+00AD⟩"),
        ("\uffff\U0010ffff", "⟨U+FFFF⟩⟨U+10FFFF⟩"),
    ],
)
def test_marks(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\r\n",
        "שלום עולם",
        "مرحبا بالعالم",
        "C++\u200e שפה",  # a mark of direction, beside letters that need it
        "\u200fשלום!",
        "می\u200cخواهم",  # Persian: letters that do not join
        "क\u094d\u200dष",  # Hindi: half a letter
        "ශ\u0dca\u200dර\u0dd3",  # Sinhala: Sri Lanka
        "👩\u200d🔬 👨\u200d👩\u200d👧",
        "🏳\ufe0f\u200d🌈",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # Scotland
        "ภาษา\u200bไทย",
        "ᠠ\u180eᠠ",
        "Donau\xaddampf\xadschiff",
        "葛\U000e0100",  # one of the shapes of a character
        "\u2068שלום\u2069 and on",
        "e\u0301 ﬁ ß \u00a0 \u3000 \ufffd",
    ],
)
def test_text_that_needs_them_stays_readable(text: str) -> None:
    assert clean(text) == text
    assert clean(f"<b>{text}</b>") == f"<b>{text}</b>"


@given(st.text())
def test_marks_are_final(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    once.encode("utf-8")
    kept = {c for c in once if unicodedata.category(c) in FORBIDDEN and c not in SEEN}
    assert not kept & set("\x00\x1b\x7f\x85\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2028\u2029")


@given(st.text(st.sampled_from("a\u2066\u2067\u2068\u2069\u202a\u202c\u202e<\n")))
def test_nothing_turns_what_comes_after(text: str) -> None:
    open_pairs = 0
    for character in clean(text):
        assert character not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067"
        open_pairs += (character == "\u2068") - (character == "\u2069")
        assert open_pairs in (0, 1)
        assert open_pairs == 0 or character not in "<\n"
    assert open_pairs == 0


def test_names_of_labels_and_annotators_cannot_act_in_a_terminal() -> None:
    """What people called labels is shown, and does nothing."""
    import io

    from rich.console import Console

    from softcount.annotators.report import survey_annotators

    hostile = "a\x1b[31m\u202eb"
    votes = [(0, hostile, hostile), (1, hostile, "x"), (0, "eve", hostile), (1, "eve", "x")]
    told = io.StringIO()
    model = softcount.Annotators().fit(votes)
    survey_annotators(model, hostile, hostile).show(Console(file=told, width=200))
    assert "\x1b" not in told.getvalue()
    assert "\u202e" not in told.getvalue()
    assert "⟨U+202E⟩" in told.getvalue()
