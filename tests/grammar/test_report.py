"""Pages about grammars: that what is shown is right, and that pages are sound."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import pytest

import softcount as sc
from softcount import PCFG
from softcount.core.errors import DataError
from softcount.grammar.report import grammar_page, grammar_report, summarise_grammar
from softcount.grammar.rules import GrammarRule, estimate_rules
from softcount.report.finding import describe_outcome, summarise_fit
from softcount.text.treebank import trees
from tests.grammar.banks import RULES, SENTENCES

NASTY = '</table><script>alert("x")</script><img/src=x/onerror=alert(1)>&"\']]>'
VOID = {"meta"}


class Page(HTMLParser):
    """A page taken apart; all that is opened must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def model() -> PCFG:
    return PCFG.from_rules(RULES, learner=sc.EM(max_iter=5)).fit(SENTENCES)


def test_a_page_without_anything_from_elsewhere(model: PCFG) -> None:
    html = grammar_report(model, SENTENCES, title="Dogs & cats")
    page = Page(html)
    assert "Dogs &amp; cats" in html
    assert not {"script", "link", "img", "iframe"}.intersection(page.tags)
    assert not any(name in ("src", "href") for name, _ in page.attributes)
    assert "default-src 'none'" in html
    assert html.count('<svg class="sc-tree"') == 3  # those of a fair length
    assert html.count('<svg class="sc-chart"') == 1
    assert str(model.verdict_) in html
    assert escape(model.signature_) in html
    assert "max_iter=5" in html
    assert "7 symbols over 8 different words; 4 sentences." in html


def test_symbols_rules_and_words(model: PCFG) -> None:
    trees_ = model.predict(SENTENCES)
    brief = summarise_grammar(model, trees_)
    by_name = {one.name: one for one in brief.symbols}
    nodes = [node.label for tree in trees_ if tree for node in tree.nodes()]
    assert {name: one.number for name, one in by_name.items()} == {
        label: nodes.count(label) for label in model.labels_
    }
    assert sum(one.share for one in brief.symbols) == pytest.approx(1.0)
    assert [one.share for one in brief.symbols] == sorted(
        (one.share for one in brief.symbols), reverse=True
    )
    assert by_name["S"].root == 1.0
    assert by_name["S"].rules == [("NP VP", 1.0)]
    assert by_name["PP"].rules == [("'with' NP", 1.0)]
    assert dict(by_name["VB"].words) == pytest.approx({"sees": 0.75, "sleeps": 0.25})
    assert by_name["VB"].words[0][0] == "sees"
    assert by_name["DT"].rules == []
    assert "VB\t4\t" in brief.as_tsv()
    assert "\tsees sleeps\n" in brief.as_tsv()


def test_symbols_of_a_dense_grammar() -> None:
    text = ["a b", "a b", "a c"]
    model = PCFG(1, 2, learner=sc.EM(max_iter=50)).fit(text)
    brief = {one.name: one for one in summarise_grammar(model, model.predict(text)).symbols}
    assert brief["N0"].number == 3
    first, second = brief["N0"].rules[0][0].split()
    assert brief[first].words[0] == ("a", pytest.approx(1.0))
    assert dict(brief[second].words[:2]) == pytest.approx({"b": 2 / 3, "c": 1 / 3})
    assert Page(grammar_report(model, text)).tags.count("section") == 3


def test_sentences_without_a_tree(model: PCFG) -> None:
    long = " ".join(["she sees she", *["with she"] * 3])
    html = grammar_report(model, [*SENTENCES, "dog dog", long, "x " * 70])
    rows = re.findall(
        r"<th scope=\"row\">([\d–]+) words</th><td class=\"p\">(\d+)</td>.*?"
        r"<td class=\"p\">([\d.]+)%</td>",
        html,
    )
    assert rows == [("1–5", "4", "75.0"), ("6–10", "2", "100.0"), ("61–70", "1", "0.0")]
    nothing = grammar_report(model, ["dog dog"])
    assert "<h2>Trees</h2>" not in nothing
    assert "0.0%" in nothing


def test_pages_of_little(model: PCFG, tmp_path: object) -> None:
    alone = grammar_report(model)
    assert "<h2>Sentences</h2>" not in alone
    assert "<h2>Symbols</h2>" in alone
    given = PCFG.from_rules(RULES)
    html = grammar_report(given, [""])
    assert "rules as they were given" in html
    assert '<svg class="sc-chart"' not in html  # nothing was learned
    assert grammar_report(model, SENTENCES, n=0).count('<svg class="sc-tree"') == 0
    assert summarise_fit(None) == {}
    assert describe_outcome({}) == ""


def test_words_in_lower_case_are_shown_as_they_are() -> None:
    model = PCFG.from_rules(RULES, lowercase=True)
    assert ">SHE<" in grammar_report(model, ["SHE sleeps"])


def test_gold_trees_are_sentences(model: PCFG) -> None:
    assert grammar_report(model, trees(["(X (X she) (X sleeps))"])).count("sc-tree") > 0


def test_what_means_harm_is_escaped() -> None:
    rules = {
        GrammarRule(NASTY, (NASTY, "B"), (True, False)): 1.0,
        GrammarRule("B", (NASTY,), (True,)): 1.0,
        GrammarRule("B", ("a\x00\u202eb",), (True,)): 1.0,
    }
    model = PCFG.from_rules(estimate_rules(rules, {NASTY: 1.0}))
    html = grammar_page(
        model,
        summarise_grammar(model, model.predict([[NASTY, NASTY]]), [NASTY], [NASTY]),
        title=NASTY,
    )
    html += grammar_report(model, [[NASTY, NASTY]], title=NASTY)
    assert "<script" not in html
    assert "<img" not in html
    assert "\x00" not in html
    assert "\u202e" not in html
    Page(html)


def test_what_cannot_be_shown(model: PCFG) -> None:
    with pytest.raises(DataError, match="no such page about a HMM"):
        grammar_report(sc.HMM(2).fit(["a b"]))
    with pytest.raises(DataError, match="n=-1 trees cannot be shown"):
        grammar_report(model, n=-1)
    assert sc.grammar.grammar_report is grammar_report


def test_in_the_terminal(model: PCFG) -> None:
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    brief = summarise_grammar(model, model.predict(SENTENCES), ["[red]a note"], ["F1 99"])
    brief.show(Console(file=out, width=90))
    told = out.getvalue()
    assert "[red]a note" in told  # no markup
    assert "F1 99" in told
    assert "NP VP" in told
    assert model.signature_ in told.replace("\n", "")
