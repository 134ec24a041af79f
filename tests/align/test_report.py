"""Pictures of alignments: which pairs and words are shown, and that what is shown is right."""

from __future__ import annotations

import math
import re
from collections import Counter
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from softcount import samples
from softcount.align import IBM1, Aligner
from softcount.align.report import (
    ENOUGH,
    LONGEST,
    align_sample,
    alignment_report,
    count_occurrences,
    find_certain_entries,
    find_uncertain_words,
    find_unlinked_words,
    measure_doubt,
)
from softcount.core.errors import DataError
from softcount.text.bitext import as_bitext
from softcount.text.links import Links

NASTY = '</table><script>alert("x")</script><img/src=x/onerror=alert(1)>&"\']]>'
PAIRS = samples.pairs()
VOID = {"meta", "line", "path"}


class Page(HTMLParser):
    """A page taken apart: its tags, its text, and the cells of its matrices."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.matrices: list[list[list[tuple[str, str]]]] = []
        self.heads: list[str] = []
        self.directions: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.attributes += named.items()
        if tag not in VOID:
            self.open.append((tag, named))
        if tag == "table" and named.get("class") == "matrix":
            self.matrices.append([])
            self.directions.append(named["dir"])
        elif self.matrices and tag == "tr" and self._inside("matrix"):
            self.matrices[-1].append([])
        elif self.matrices and tag == "td" and self._inside("matrix"):
            self.matrices[-1][-1].append((named.get("class", ""), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] != "style":
            self.text.append(data)
        if self._inside("matrix") and any(tag == "td" for tag, _ in self.open):
            css, figure = self.matrices[-1][-1][-1]
            self.matrices[-1][-1][-1] = css, figure + data
        elif self.open and self.open[-1][0] == "h2":
            self.heads.append(data)

    def _inside(self, css: str) -> bool:
        return any(named.get("class") == css for _, named in self.open)

    def cells(self, k: int) -> list[list[tuple[str, str]]]:
        """Class and figure of every cell of a matrix, without its head."""
        return self.matrices[k][1:]

    @property
    def numbers(self) -> list[int]:
        """The pairs that are shown, as they are called."""
        return [int(text[5:]) for text in self.text if re.fullmatch(r"pair \d+", text)]


@pytest.fixture(scope="module")
def one_way() -> IBM1:
    return IBM1().fit(PAIRS)


@pytest.fixture(scope="module")
def both() -> Aligner:
    return Aligner("ibm1").fit(PAIRS)


# which pairs
def test_a_large_text_is_looked_at_in_part(one_way: IBM1, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.align.report.MOST_PAIRS", 7)
    text = as_bitext(PAIRS)
    looked = align_sample(one_way, text, needed=[3, 4])
    assert {3, 4} <= set(looked.numbers.tolist())
    assert 7 <= len(looked.numbers) <= 9
    assert np.diff(looked.numbers).max() <= 15
    for k, number in enumerate(looked.numbers.tolist()):
        assert looked.words(k) == tuple(map(tuple, PAIRS[number]))
        assert looked.links_of(k) == one_way.align([PAIRS[number]])[0]
    monkeypatch.setattr("softcount.align.report.MOST_LINKS", 60)
    assert 1 <= len(align_sample(one_way, text).numbers) <= 4


def test_the_page_says_that_it_looks_at_a_part(
    one_way: IBM1, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "evenly spaced" not in alignment_report(one_way, n=0)
    monkeypatch.setattr("softcount.align.report.MOST_PAIRS", 10)
    assert re.search(r"\d+ links in 10 pairs, the evenly spaced", alignment_report(one_way, n=0))


# words
def frequent_words(side: int) -> dict[str, int]:
    counts = Counter(word for pair in PAIRS for word in pair[side])
    return {word: times for word, times in counts.items() if times >= ENOUGH}


def test_uncertain_words_are_those_of_most_entropy_by_times(one_way: IBM1) -> None:
    table, times = one_way.params_["translation"], frequent_words(0)
    bits = {e: -sum(p * math.log2(p) for p in table[e].values() if p > 0) for e in times}
    counts = count_occurrences(one_way, as_bitext(PAIRS).source)
    found = find_uncertain_words(one_way, counts, 8)
    right = sorted(times, key=lambda e: -bits[e] * times[e])[:8]
    assert [one.word for one in found] == right
    for one in found:
        assert one.times == times[one.word]
        assert one.bits == pytest.approx(bits[one.word], abs=1e-9)
        assert one.translations[0][1] == max(table[one.word].values())


def test_certain_entries_are_probable_in_both_directions(both: Aligner) -> None:
    there, back = (way.params_["translation"] for way in (both.forward_, both.backward_))
    counts = count_occurrences(both.forward_, as_bitext(PAIRS).source)
    found = find_certain_entries(both.forward_, both.backward_, counts, 10)
    scores = {}
    for e, times in frequent_words(0).items():
        f, p = max(there[e].items(), key=lambda one: one[1])
        scores[e] = p * back[f][e] * times / (times + 1)
    assert sorted((one.word for one in found), key=lambda e: -scores[e]) == [o.word for o in found]
    assert min(scores[one.word] for one in found) == pytest.approx(sorted(scores.values())[-10])
    for one in found:
        assert one.p == there[one.word][one.translation]
        assert one.back == back[one.translation][one.word]


def test_an_entry_that_the_other_direction_does_not_believe_in_is_less_certain() -> None:
    def model(table: list[list[float]]) -> SimpleNamespace:
        return SimpleNamespace(
            table=lambda: sparse.csr_matrix(table),
            source_words_=["a", "b"],
            target_words_=["x", "y"],
        )

    there, back = model([[0.9, 0.1], [0.2, 0.8], [1, 0]]), model([[0.3, 0.7], [0, 1.0], [1, 0]])
    counts = np.array([50, 50])
    assert [one.word for one in find_certain_entries(there, None, counts, 2)] == ["a", "b"]
    assert [one.word for one in find_certain_entries(there, back, counts, 2)] == ["b", "a"]


def test_words_without_links_are_counted(both: Aligner) -> None:
    links = both.align()
    for side, found in enumerate(find_unlinked_words(align_sample(both, as_bitext(PAIRS)), 50)):
        without = Counter(
            word
            for pair, some in zip(PAIRS, links, strict=True)
            for place, word in enumerate(pair[side])
            if place not in {link[side] for link in some}
        )
        times = frequent_words(side)
        right = {word: n for word, n in without.items() if word in times}
        assert {one.word: one.without for one in found} == right
        assert all(one.times == times[one.word] for one in found)


def test_pairs_with_an_empty_side_count_neither_as_linked_nor_as_not(one_way: IBM1) -> None:
    text = as_bitext([*PAIRS, (["the"] * 9, []), ([], ["das"] * 9)])
    looked, without_them = align_sample(one_way, text), align_sample(one_way, as_bitext(PAIRS))
    assert find_unlinked_words(looked, 50) == find_unlinked_words(without_them, 50)
    assert looked.numbers.tolist() == list(range(100))
    assert "2 pairs with an empty side" in alignment_report(one_way, text, n=1)


def test_words_that_are_new_to_the_model_have_no_entries(one_way: IBM1) -> None:
    page = Page(alignment_report(one_way, [("the unheard house", "das unerhörte haus")] * 6))
    assert page.numbers == [0]
    assert "unheard" in page.text


def test_where_all_words_are_rare_the_most_frequent_are_shown() -> None:
    text = " ".join(Page(alignment_report(IBM1().fit([("a b", "x y"), ("a c", "x z")]))).text)
    assert "a 2" in text


# the page
def test_shades_are_posteriors_and_outlines_are_links(one_way: IBM1) -> None:
    page = Page(alignment_report(one_way, n=12))
    posteriors, links = one_way.posteriors(), one_way.align()
    assert len(page.numbers) == len(page.matrices) == 12
    for k, number in enumerate(page.numbers):
        *rows, nothing = page.cells(k)
        p = posteriors[number]
        assert (len(rows), len(rows[0])) == p.shape
        for i, row in enumerate(rows):
            assert [int(figure or 0) for _, figure in row] == [round(100 * x) for x in p[i]]
            assert [j for j, (css, _) in enumerate(row) if "link" in css] == [
                j for k, j in links[number] if k == i
            ]
        missing = 100 * (1 - p.sum(axis=0))
        assert [int(figure or 0) for _, figure in nothing] == pytest.approx(missing, abs=0.6)


def test_links_that_the_aligner_was_told_are_shown_as_certain() -> None:
    model = IBM1().fit(PAIRS, links=[[(0, 3)], *[None] * 99])
    page = Page(alignment_report(model, n=1000))
    assert page.cells(page.numbers.index(0))[0][3] == ("link deep", "100")


def test_worst_pairs_come_first(one_way: IBM1) -> None:
    page = Page(alignment_report(one_way, n=10))
    doubts = [measure_doubt(p) for p in one_way.posteriors()]
    assert doubts[page.numbers[0]] == max(doubts)
    assert page.numbers[:5] == sorted(page.numbers[:5], key=lambda n: -doubts[n])
    text = " ".join(page.text)
    assert text.index("The most uncertain pairs") < text.index("Typical pairs")


def test_two_directions_have_no_row_of_the_empty_word_but_words_of_both_sides(
    both: Aligner,
) -> None:
    page = Page(alignment_report(both, n=4))
    for k, number in enumerate(page.numbers):
        assert len(page.cells(k)) == len(PAIRS[number][0])
    assert page.text.count("Target words") >= 1
    assert "p back" in page.text


def test_page_says_how_it_was_learned(one_way: IBM1) -> None:
    html = alignment_report(one_way, n=2, title="A <b> title")
    page = Page(html)
    text = " ".join(page.text)
    for told in ("A <b> title", "100 sentence pairs, aligned by IBM1.", one_way.signature_):
        assert told in text
    assert str(one_way.verdict_) in text
    assert f"{one_way.trace_.perplexity[-1]:,.3g} at the end" in text
    assert html.count("<svg") == 2
    assert page.heads == [
        "Sentence pairs",
        "The most uncertain words",
        "The most certain translations",
        "Words that align to nothing",
    ]


def test_a_model_without_steps_or_pairs_of_its_own(one_way: IBM1, tmp_path: Any) -> None:
    one_way.save(tmp_path / "model")
    bare = IBM1.load(tmp_path / "model")
    with pytest.raises(DataError, match="training pairs are not saved"):
        alignment_report(bare)
    html = alignment_report(bare, PAIRS[:5])
    assert "<svg" not in html
    assert bare.signature_ in html
    assert len(Page(html).matrices) == 5


def test_gold_links_are_rings(one_way: IBM1) -> None:
    gold: list[Any] = [None] * 4
    gold[1] = Links(sure=[(0, 0), (3, 1)], possible=[(1, 1)])
    gold[3] = [(2, 2)]
    html = alignment_report(one_way, gold=gold)
    page = Page(html)
    assert sorted(page.numbers) == [1, 3]
    assert "Only pairs with gold links" in html
    rings = {
        number: {
            (i, j): css.split()
            for i, row in enumerate(page.cells(k))
            for j, (css, _) in enumerate(row)
            if {"sure", "possible"} & set(css.split())
        }
        for k, number in enumerate(page.numbers)
    }
    assert {link for link, css in rings[1].items() if "sure" in css} == {(0, 0), (3, 1)}
    assert {link for link, css in rings[1].items() if "possible" in css} == {(1, 1)}
    assert set(rings[3]) == {(2, 2)}
    links = set(one_way.align()[1])
    found, wrong = len(links & {(0, 0), (3, 1)}), len(links - {(0, 0), (3, 1), (1, 1)})
    assert f"{found} of 2 sure gold links found · {wrong} wrong" in html


def test_gold_that_does_not_fit_is_refused(one_way: IBM1) -> None:
    with pytest.raises(DataError, match="gold links of 101 pairs, but 100"):
        alignment_report(one_way, gold=[[]] * 101)
    with pytest.raises(DataError, match="pair 1: the link 9-0 is outside its pair"):
        alignment_report(one_way, gold=[[], [(9, 0)]])
    with pytest.raises(DataError, match=r"pair 0: .* is not a link"):
        alignment_report(one_way, gold=[["0-0"]])


def test_odd_numbers_of_matrices(one_way: IBM1) -> None:
    assert Page(alignment_report(one_way, n=0)).matrices == []
    assert len(Page(alignment_report(one_way, n=1)).matrices) == 1
    assert len(Page(alignment_report(one_way, n=1000)).matrices) == len({str(p) for p in PAIRS})
    with pytest.raises(DataError, match="n=-1"):
        alignment_report(one_way, n=-1)
    with pytest.raises(NotFittedError):
        alignment_report(IBM1())


def test_text_without_a_pair_to_align_gives_a_page(one_way: IBM1) -> None:
    html = alignment_report(one_way, [("", "das haus"), ("the", "")])
    assert "There are none to show." in html
    assert "2 pairs with an empty side" in html


def test_long_sentences_are_cut_and_scroll_in_their_box() -> None:
    pair = ([f"w{i}" for i in range(LONGEST + 20)], [f"v{i}" for i in range(300)])
    html = alignment_report(IBM1().fit([pair, *PAIRS[:3]]), [pair])
    page = Page(html)
    rows = page.cells(0)
    assert (len(rows), len(rows[0])) == (LONGEST + 1, LONGEST)
    assert f"Only the first {LONGEST} words" in html
    assert ("role", "region") in page.attributes
    assert ("tabindex", "0") in page.attributes


def test_sentences_read_from_the_right_have_their_columns_from_the_right() -> None:
    pairs = [("peace be with you", "3 שלום עליכם"), ("我 喜欢 苹果", "私 は りんご")]
    page = Page(alignment_report(IBM1().fit(pairs)))
    directions = dict(zip(page.numbers, page.directions, strict=True))
    assert directions == {0: "rtl", 1: "ltr"}
    assert {"שלום", "苹果", "りんご"} <= set(page.text)


def test_hostile_words_stay_text() -> None:
    odd = [NASTY, "\u202eab", "\x1b[1m", "a\u2029b", "x" * 5000, "🙂" * 60, "a\nb"]
    pairs = [(odd, [*odd[::-1], "haus"])] * 6
    html = alignment_report(IBM1().fit(pairs), title=NASTY)
    html.encode("utf-8")
    page = Page(html)
    assert not {"script", "img", "iframe", "link"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert not re.search("[\x00-\x08\x0e-\x1f\u202e]", html)
    assert "x" * 300 not in html


def test_page_needs_no_network(both: Aligner) -> None:
    html = alignment_report(both)
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "base", "form"} & set(page.tags)
    assert not re.search(r"@import|url\(", html)
    policies = [value for _, value in page.attributes if "default-src" in value]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'; style-src 'unsafe-inline';")
