"""The page about topics: relevance, map, snippets, and HTML that is whole, safe and small."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from softcount.core.errors import DataError
from softcount.learners import EM
from softcount.report.text import LONGEST_SNIPPET, clean, find_snippet
from softcount.topics import LDA
from softcount.topics.report import (
    HEIGHT,
    WIDTH,
    choose_words,
    embed,
    find_typical,
    lay_out_map,
    measure_distances,
    place_labels,
    topic_report,
)

NASTY = '</script><script>alert("x")</script><img src=x onerror=alert(1)> & "\' ]]>'
NOTES = ["cup match goal", "goal cup team match", "oil price rise", "price oil market rise"]
VOID = {"meta", "input", "circle", "rect", "line", "use", "path"}


class Page(HTMLParser):
    """A page taken apart; complains if tags are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.scripts.append(data)
        elif inside != "style":
            self.text.append(data)

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


def made(K: int, V: int, n: int = 50, seed: int = 0, word: str = "w") -> SimpleNamespace:
    """What a page needs of a model, made up: every topic has words of its own and common ones."""
    rng = np.random.default_rng(seed)
    topics = rng.gamma(0.05, size=(K, V)) / np.arange(1, V + 1) + 1e-9
    documents = rng.dirichlet(np.full(K, 0.1), size=n)
    names = np.array([f"{word}{w}" for w in range(V)], dtype=object)
    return SimpleNamespace(
        topics_=topics / topics.sum(axis=1, keepdims=True),
        documents_=documents,
        weights_=documents.mean(axis=0),
        word_names=lambda: names,
        signature_="signed",
    )


# words
def relevance(p: float, anywhere: float, share: float) -> float:
    """Sievert & Shirley (2014), as they write it; ``share`` is their λ."""
    return share * math.log(p) + (1 - share) * math.log(p / anywhere) if p else -math.inf


def test_words_that_a_topic_never_has_are_not_shown() -> None:
    words = choose_words(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), np.array([0.5, 0.5]))
    assert [[column for column, _, _ in words.top(k, 9)] for k in (0, 1)] == [[0], [1]]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 400))
def test_the_page_has_the_most_relevant_words_of_every_step_of_the_slider(
    seed: int, K: int, V: int
) -> None:
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(V, 0.2), size=K)
    weights = rng.dirichlet(np.ones(K))
    words = choose_words(topics, weights)
    overall = weights @ topics
    for tenths in (0, 1, 6, 10):
        for k in range(K):
            pairs = zip(topics[k], overall, strict=True)
            exact = np.array([relevance(p, anywhere, tenths / 10) for p, anywhere in pairs])
            brief = [column for column, _, _ in words.top(k, words.n, tenths)]
            best = np.sort(exact[np.isfinite(exact)])[::-1][: words.n]
            assert len(set(brief)) == len(best)
            # thousandths of nats are kept: no more may be lost by it
            assert exact[brief] == pytest.approx(best, abs=3e-3)


def test_chances_and_topics_of_words_are_those_of_the_model() -> None:
    model = made(4, 60)
    words = choose_words(model.topics_, model.weights_)
    overall = model.weights_ @ model.topics_
    for column, chance, anywhere in words.top(2, 10):
        assert chance == pytest.approx(model.topics_[2, column], rel=1e-3)
        assert anywhere == pytest.approx(overall[column], rel=1e-3)
    joint = model.weights_[:, None] * model.topics_[:, words.chosen]
    for w, flat in enumerate(words.spread):
        share = 100 * joint[:, w] / joint[:, w].sum()
        assert flat[0] in np.flatnonzero(share > share.max() - 1)  # the likeliest, as rounded
        assert flat[1::2] == pytest.approx(share[flat[::2]], abs=0.51)
        assert sum(flat[1::2]) <= 104


# map
def test_distances_are_roots_of_jensen_shannon_divergences() -> None:
    p, q = [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    by_hand = sum(
        a * math.log2(a / m) / 2 for x in (p, q) for a, m in zip(x, middle, strict=True) if a
    )
    found = measure_distances(np.array([p, q, p, [0.0, 0.0, 1.0]]))
    assert found[0, 1] == found[1, 0] == pytest.approx(math.sqrt(by_hand), abs=1e-4)
    assert found[0, 2] == pytest.approx(0.0, abs=1e-3)
    assert found[0, 3] == pytest.approx(1.0, abs=1e-6)


def test_many_topics_lose_little_by_adding_up_rare_words(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = made(30, 3000).topics_
    exact = measure_distances(topics)
    monkeypatch.setattr("softcount.topics.report.WORK", 0)  # 100 words as they are
    few = measure_distances(topics)
    assert (few <= exact + 1e-3).all()
    pairs = np.triu_indices(30, 1)
    assert np.corrcoef(few[pairs], exact[pairs])[0, 1] > 0.9


@given(hnp.arrays(np.float64, (6, 2), elements=st.floats(-5, 5)))
def test_points_of_a_plane_are_found_again_from_their_distances(points: Any) -> None:
    def apart(at: Any) -> Any:
        return np.linalg.norm(at[:, None] - at[None], axis=2)

    assert apart(embed(apart(points))) == pytest.approx(apart(points), abs=1e-5)


@pytest.mark.parametrize("K", [1, 2, 20, 100])
def test_circles_stay_in_the_frame_and_apart(K: int) -> None:
    model = made(K, 500)
    chart = lay_out_map(measure_distances(model.topics_), model.weights_)
    x, y = chart.centre.T
    assert (x - chart.radius >= 0).all()
    assert (x + chart.radius <= WIDTH).all()
    assert (y - chart.radius >= 0).all()
    assert (y + chart.radius <= HEIGHT).all()
    apart = np.hypot(x[:, None] - x, y[:, None] - y) - chart.radius[:, None] - chart.radius
    assert apart[np.triu_indices(K, 1)].min(initial=0.0) >= -1.0


def test_topics_that_are_all_the_same_do_not_lie_on_one_another() -> None:
    chart = lay_out_map(np.zeros((8, 8)), np.full(8, 0.125))
    apart = np.linalg.norm(chart.centre[:, None] - chart.centre, axis=2)
    assert (apart + np.eye(8) * 1e9).min() > 2 * chart.radius[0]


def test_areas_of_circles_are_sizes_of_topics() -> None:
    weights = np.repeat([0.02, 0.04, 0.08], [10, 10, 5])
    radius = lay_out_map(np.ones((25, 25)) - np.eye(25), weights / weights.sum()).radius
    assert radius[24] ** 2 == pytest.approx(4 * radius[0] ** 2)


def test_labels_cover_neither_circles_nor_each_other() -> None:
    model = made(40, 500)
    chart = lay_out_map(measure_distances(model.topics_), model.weights_)
    labels = [
        label for label in place_labels(chart, [["two words", "one"]] * 40) if label is not None
    ]
    assert len(labels) > 5
    boxes = [(a.x - 3.2 * len(a.text), a.y - 6, a.x + 3.2 * len(a.text), a.y + 6) for a in labels]
    for i, (l1, t1, r1, b1) in enumerate(boxes):
        for l2, t2, r2, b2 in boxes[:i]:
            assert r1 <= l2 or r2 <= l1 or b1 <= t2 or b2 <= t1
        for (x, y), r in zip(chart.centre, chart.radius, strict=True):
            dx, dy = max(l1 - x, 0, x - r1), max(t1 - y, 0, y - b1)
            assert math.hypot(dx, dy) >= r - 1


# documents
def test_typical_documents_are_not_those_of_one_word() -> None:
    shares = np.array([[1.0, 0.0], [0.95, 0.05], [0.1, 0.9]])
    short_first = find_typical(shares, np.array([0.5, 0.5]), np.array([1, 500, 500]))
    assert [found.tolist() for found in short_first] == [[1, 0], [2]]
    alike = find_typical(shares, np.array([0.5, 0.5]), None)
    assert alike[0].tolist() == [0, 1]


def test_a_topic_that_died_out_has_no_typical_documents() -> None:
    found = find_typical(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 0.0]), None)
    assert found[1].tolist() == []


def test_snippets_show_the_telling_part_and_mark_its_words() -> None:
    text = "Hello all. " + "nothing here. " * 60 + "The Cup final saw a goal. " + "and so on " * 60
    parts = find_snippet(text, {"cup": 1.0, "goal": 1.0})
    assert [part.text for part in parts if part.telling] == ["Cup", "goal"]
    whole = "".join(part.text for part in parts)
    assert whole.startswith("…The Cup final saw a goal.")
    assert whole.endswith("…")
    model = made(1, 3)
    model.word_names = lambda: np.array(["cup", "goal", "<b>"], dtype=object)
    html = topic_report(model, texts=["The Cup & a <b> goal"] * 50)
    assert "The <mark>Cup</mark> &amp; a &lt;b&gt; <mark>goal</mark>" in html


@given(st.text(max_size=2000), st.integers(20, 300))
def test_snippets_of_any_text_are_short_and_safe(text: str, most: int) -> None:
    brief = "".join(part.text for part in find_snippet(text, {"a": 1.0, "0": 2.0}, most))
    assert len(brief) <= most + 2
    assert brief.strip("… ") in clean(re.sub(r"\s+", " ", text))
    brief.encode("utf-8")


def test_huge_documents_are_looked_at_in_part() -> None:
    for text in ("goal " * 10**6, "x" * 10**6):
        parts = find_snippet(text, {"goal": 1.0})
        assert sum(len(part.text) for part in parts) <= LONGEST_SNIPPET + 1


# the page
@pytest.fixture(scope="module")
def fitted() -> LDA:
    return LDA(2, learner=EM(n_init=2)).fit(NOTES)


def test_page_says_what_the_model_learned(fitted: LDA) -> None:
    page = Page(topic_report(fitted, texts=NOTES, names=list("abcd"), title="Four notes"))
    text = " ".join(page.text)
    assert "2 topics over 8 words in 4 documents, by LDA." in text
    for word in ("Four notes", "goal", "price", fitted.signature_, str(fitted.verdict_)):
        assert word in text
    assert "perplexity" in text
    assert {"topic-0", "topic-1", "relevance", "topic-data"} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_page_has_the_curves_of_all_runs(fitted: LDA) -> None:
    html = topic_report(fitted)
    assert html.count('class="run faint"') == 1
    assert html.count('class="run c0"') == 1


def test_a_model_from_a_file_has_no_curves_and_reads_texts_anew(fitted: LDA) -> None:
    bare = SimpleNamespace(
        topics_=fitted.topics_,
        weights_=fitted.weights_,
        word_names=fitted.word_names,
        signature_="signed",
        transform=fitted.transform,
    )
    html = topic_report(bare)
    assert "sc-chart" not in html
    assert "signed" in html
    assert "Typical documents" not in html
    assert "Typical documents" in topic_report(bare, texts=NOTES)
    with pytest.raises(DataError, match="the model has no documents"):
        topic_report(bare, dates=[1, 2, 3, 4])


def test_every_link_leads_somewhere_on_the_page(fitted: LDA) -> None:
    page = Page(topic_report(fitted, texts=NOTES, dates=[1990, 1990, 1991, None]))
    targets = [value for name, value in page.attributes if name == "href"]
    assert targets
    assert all(target.startswith("#") and target[1:] in page.ids for target in targets)


def test_page_needs_no_network(fitted: LDA) -> None:
    html = topic_report(fitted, texts=["see http://example.org", *NOTES[1:]])
    page = Page(html)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert "src" not in dict(page.attributes)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", html)


def test_the_policy_lets_our_script_run_and_no_other(fitted: LDA) -> None:
    page = Page(topic_report(fitted))
    policy = next(value for name, value in page.attributes if "default-src" in value)
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1]


def test_hostile_words_texts_names_and_times_stay_text() -> None:
    odd = ["\u202e\u05d0\u05d1", "\ud800", "\x00\x1b[1m", "a\u2028b", "🙂" * 100, "x" * 10**5]
    words = [NASTY, *odd, "plain"]
    counts = np.random.default_rng(0).poisson(2.0, size=(9, len(words)))
    model = LDA(2).fit(counts)
    model.vocabulary_ = np.array(words, dtype=object)
    texts = [NASTY + one for one in odd] + [NASTY * 1000, "", "plain"]
    html = topic_report(model, texts=texts, names=texts, dates=[1990] * 9, title=NASTY)
    html.encode("utf-8")
    page = Page(html)
    assert page.tags.count("script") == 2
    assert not {"img", "iframe"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "</script><script>alert" not in html
    assert NASTY[:36] in page.data["words"][0]
    assert not re.search("[\x00-\x08\x0e-\x1f\u2028\u202e]", html)


def test_script_and_page_rank_words_alike(fitted: LDA) -> None:
    """The script's own formula, here in Python, gives the words that stand on the page."""
    model = made(5, 300)
    html = topic_report(model)
    data = Page(html).data
    for k in range(5):
        rows = sorted(
            zip(data["places"][k], data["logs"][k], strict=True),
            key=lambda row: (-(4 * data["rarity"][row[0]] - 10 * row[1]), row[1], row[0]),
        )
        section = html.split(f'id="topic-{k}"')[1].split("</ol>")[0]
        brief = re.findall(r"<bdi>(.*?)</bdi>", section)
        assert brief == [data["words"][word] for word, _ in rows[: len(brief)]]
        assert len(brief) == 12


def test_curves_over_time_are_on_the_page_with_their_peaks() -> None:
    model = made(3, 40, n=6)
    model.documents_ = np.array([[1, 0, 0], [0, 1, 0]] * 3, dtype=float)
    model.weights_ = np.array([0.5, 0.5, 0.0])
    html = topic_report(model, dates=[1990, 1991, 1990, 1993, None, 1993])
    page = Page(html)
    assert {"curve-0", "curve-1", "curve-2"} <= set(page.ids)
    text = " ".join(page.text)
    assert "1990 to 1993, 4 periods" in text
    assert "1 document has no date" in text
    assert "highest in 1990, 100.0" in text
    paths = [value for name, value in page.attributes if name == "d"]
    assert len(paths) == 3
    assert all(re.fullmatch(r"[MLZ0-9. -]+", path) for path in paths)


def test_lists_that_do_not_fit_the_documents_are_refused(fitted: LDA) -> None:
    for what in ("texts", "names", "dates", "lengths"):
        with pytest.raises(DataError, match=f"there are 3 {what}, but 4 documents"):
            topic_report(fitted, **{what: NOTES[:3]})
    with pytest.raises(NotFittedError):
        topic_report(LDA(2))


@pytest.mark.parametrize(("K", "V"), [(1, 1), (1, 40), (2, 3), (30, 5)])
def test_odd_sizes_give_a_page(K: int, V: int) -> None:
    page = Page(topic_report(made(K, V), texts=["text"] * 50))
    assert sum(one.startswith("topic-") for one in page.ids) == K + 1  # and the data


def test_a_page_of_many_topics_stays_small() -> None:
    model = made(100, 5000, n=400, word="longerword")
    texts = [" ".join(model.word_names()[np.arange(d, d + 80)]) for d in range(400)]
    html = topic_report(model, texts=texts, dates=np.arange(400) % 40)
    assert len(html.encode()) < 1_000_000


@pytest.mark.slow
def test_a_page_of_a_thousand_topics() -> None:
    page = Page(topic_report(made(1000, 5000, n=1200)))
    assert len(page.data["places"]) == 1000
